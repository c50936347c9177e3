//! Schedules: run a machine exhaustively, at random or by a recording, and collect the
//! observations.
//!
//! # Invariants
//! - A schedule is data: [`Recorded`] has the thread of every step and the answers to its choices.
//!   Replaying it gives the same run, event by event.
//! - Outcomes come sorted by state.

mod endless;
mod exhaustive;
mod graph;
mod random;
mod recorded;
mod replay;
mod rounds;
mod stops;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::choice::Chooser;
use super::memory::Backend;
use super::race::{self, Race};
use super::record::{RunEvent, RunHazard};
use super::state::MachineState;
use super::step::{Action, Machine};
use super::thread::ThreadStatus;
use super::{Result, StepHalt, explain, misuse};
pub use endless::Endless;
use program::litmus::Observable;
pub use recorded::{Recorded, ScheduleStep};
use stop;
pub(crate) use stops::StopReason;
use stops::Stops;
pub use stops::{EndCounts, StopKind, StopReport};

/// The source of all choices.
#[derive(Clone, Copy, Debug)]
pub enum Schedule<'a> {
    /// Every choice in turn.
    Exhaustive,
    /// Random choices.
    Random {
        /// The number of runs.
        runs: u64,
        /// The seed; another seed gives other runs.
        seed: u64,
    },
    /// A recording.
    Replay(&'a Recorded),
}

/// The limits and tasks of an exploration.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchLimits {
    pub(super) steps: usize,
    pub(super) states: usize,
    pub(super) timeout: Option<Duration>,
    /// Whether to look for races.
    pub(super) races: bool,
    /// Whether to find the progress models under which a run never ends.
    pub(super) progress: bool,
    /// Whether to explain the races that the memory itself finds.
    pub(super) explain: bool,
}

/// An outcome that was observed.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// Final values, in the order of the test's observables.
    pub state: Vec<i64>,
    /// The number of runs, or of final states.
    pub count: u64,
    /// A run that ends in this state.
    pub schedule: Recorded,
}

/// The result of an exploration.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// Sorted by state.
    pub outcomes: Vec<RunOutcome>,
    /// The numbers of runs by their kind of end.
    pub ended: EndCounts,
    /// Whether the machine can show no other outcome.
    pub complete: bool,
    /// The reason why an exhaustive exploration is not complete.
    pub reason: Option<String>,
    /// States visited.
    pub states: u64,
    /// Steps taken.
    pub steps: u64,
    /// Runs that did not finish, one of each kind.
    pub stops: Vec<StopReport>,
    /// Races in the runs examined.
    pub races: Vec<Race>,
    /// The number of runs examined for races.
    pub judged: u64,
    /// The reason why none was examined, although an option requested it.
    pub not_judged: Option<String>,
    /// The events of a replayed run.
    pub events: Vec<RunEvent>,
    /// For each progress model under which some run never ends, one. Empty unless an option
    /// requests it.
    pub endless: Vec<Endless>,
    /// Undefined behaviour that the memory reports, sorted.
    pub hazards: Vec<ObservedHazard>,
}

/// Undefined behaviour that was observed.
#[derive(Clone, Debug)]
pub struct ObservedHazard {
    /// The behaviour.
    pub hazard: RunHazard,
    /// The outcome of the run, if the test has a filter and the run ended.
    pub state: Option<Vec<i64>>,
    /// A run that shows it.
    pub schedule: Recorded,
}

/// Outcomes while they are collected.
#[derive(Default)]
struct OutcomeCounts(BTreeMap<Vec<i64>, (u64, Recorded)>);

impl OutcomeCounts {
    fn add(&mut self, state: Vec<i64>, schedule: impl FnOnce() -> Recorded) {
        self.0.entry(state).or_insert_with(|| (0, schedule())).0 += 1;
    }

    fn into_list(self) -> Vec<RunOutcome> {
        self.0
            .into_iter()
            .map(|(state, (count, schedule))| RunOutcome {
                state,
                count,
                schedule,
            })
            .collect()
    }
}

impl Observation {
    /// The result of a launch that failed, whatever the schedule.
    pub(super) fn launch_failed(why: String) -> Observation {
        let mut seeing = Seeing {
            reason: Some(why.clone()),
            ..Seeing::default()
        };
        seeing.stop(
            StopKind::Launch,
            || StopReason::line(why),
            Recorded::whole(Vec::new()),
        );
        seeing.into()
    }

    /// Whether the launch succeeds.
    pub fn launches(&self) -> bool {
        !self.stops.iter().any(|s| s.how == StopKind::Launch)
    }

    /// The reason why the exploration is not complete, if it is a limit (of time, steps, states or
    /// history) and not an action of a run.
    pub fn limit(&self) -> Option<&str> {
        self.reason.as_deref().filter(|why| {
            !self
                .stops
                .iter()
                .any(|s| s.how != StopKind::Limit && s.why.iter().any(|w| w == why))
        })
    }

    /// Adds the observations of another exploration of the same test.
    pub fn merge(&mut self, other: Observation) {
        for seen in other.outcomes {
            match self.outcomes.binary_search_by(|o| o.state.cmp(&seen.state)) {
                Ok(at) => self.outcomes[at].count += seen.count,
                Err(at) => self.outcomes.insert(at, seen),
            }
        }
        self.ended.add(&other.ended);
        self.states += other.states;
        self.steps += other.steps;
        for stop in other.stops {
            match self
                .stops
                .iter_mut()
                .find(|s| s.how == stop.how && s.why == stop.why)
            {
                Some(known) => known.count += stop.count,
                None => self.stops.push(stop),
            }
        }
        for race in other.races {
            match self
                .races
                .iter_mut()
                .find(|r| (&r.first, &r.second) == (&race.first, &race.second))
            {
                Some(known) => known.count += race.count,
                None => self.races.push(race),
            }
        }
        self.judged += other.judged;
        self.not_judged = self.not_judged.take().or(other.not_judged);
        self.reason = self.reason.take().or(other.reason);
        self.events.extend(other.events);
        for new in other.hazards {
            fn key(u: &ObservedHazard) -> (RunHazard, Option<Vec<i64>>) {
                (u.hazard.clone(), u.state.clone())
            }
            if let Err(at) = self.hazards.binary_search_by_key(&key(&new), key) {
                self.hazards.insert(at, new);
            }
        }
    }
}

/// The observations so far.
#[derive(Default)]
struct Seeing {
    outcomes: OutcomeCounts,
    ended: EndCounts,
    stops: Stops,
    hazards: BTreeMap<(RunHazard, Option<Vec<i64>>), Recorded>,
    races: Vec<Race>,
    judged: u64,
    reason: Option<String>,
}

impl Seeing {
    /// Records how a run ended.
    fn stop(&mut self, how: StopKind, reason: impl FnOnce() -> StopReason, schedule: Recorded) {
        self.ended.count(how, 1);
        self.stops.add(how, reason, schedule);
    }

    /// Records that a run ended with a fault, or reached a limit.
    fn fault<B: Backend>(&mut self, machine: &Machine<'_, B>, halt: &StepHalt, schedule: Recorded) {
        let how = match halt {
            StepHalt::Fault { kind, .. } => StopKind::Fault(*kind),
            _ => StopKind::Limit,
        };
        self.stop(how, || StopReason::line(machine.why(halt)), schedule);
        self.reason.get_or_insert_with(|| machine.why(halt));
    }

    /// Records a state without successors in which not every thread has ended.
    fn stuck<B: Backend>(
        &mut self,
        machine: &Machine<'_, B>,
        state: &MachineState<B>,
        schedule: impl FnOnce() -> Recorded,
    ) {
        if is_no_hang(machine, state) {
            self.ended.discarded += 1;
            return;
        }
        let schedule = schedule();
        let lost = state.threads.iter().any(|t| t.status == ThreadStatus::Lost);
        if !lost {
            self.hazards(machine, state, None, || schedule.clone());
        }
        let how = if lost {
            StopKind::Livelock
        } else {
            StopKind::Deadlock
        };
        self.stop(how, || explain::stuck(machine, state), schedule);
    }

    /// Records the undefined behaviour of a state in which every thread has ended, with that
    /// outcome, or waits forever.
    fn hazards<B: Backend>(
        &mut self,
        machine: &Machine<'_, B>,
        state: &MachineState<B>,
        outcome: Option<&[i64]>,
        run: impl Fn() -> Recorded,
    ) {
        let outcome = outcome.filter(|_| machine.code.filtered);
        for hazard in machine.memory.hazards(machine.code, &state.memory) {
            self.hazard(hazard, outcome.map(<[i64]>::to_vec), &run);
        }
    }

    /// Records the misuse of a run that has come to its end, unless the memory finds it.
    fn misuse<B: Backend>(
        &mut self,
        machine: &Machine<'_, B>,
        state: &MachineState<B>,
        events: &[RunEvent],
        outcome: Option<&[i64]>,
        recorded: &Recorded,
    ) {
        if !misuse::applies(machine.code) {
            return;
        }
        let outcome = outcome.filter(|_| machine.code.filtered);
        for hazard in misuse::find(machine.code, events, &state.threads) {
            self.hazard(hazard, outcome.map(<[i64]>::to_vec), || recorded.clone());
        }
    }

    fn hazard(
        &mut self,
        hazard: RunHazard,
        outcome: Option<Vec<i64>>,
        run: impl FnOnce() -> Recorded,
    ) {
        self.hazards.entry((hazard, outcome)).or_insert_with(run);
    }
}

/// Whether an earlier choice, not the program, led to a state without successors in which not every
/// thread has ended.
fn is_no_hang<B: Backend>(machine: &Machine<'_, B>, state: &MachineState<B>) -> bool {
    let memory = &machine.memory;
    let refused = memory.may_refuse()
        && state
            .threads
            .iter()
            .any(|t| t.status == ThreadStatus::Running);
    refused || memory.is_pending(&state.memory) || !memory.is_whole(&state.memory)
}

impl From<Seeing> for Observation {
    fn from(seeing: Seeing) -> Observation {
        let Seeing {
            outcomes,
            ended,
            stops,
            hazards,
            races,
            judged,
            reason,
        } = seeing;
        Observation {
            outcomes: outcomes.into_list(),
            ended,
            stops: stops.into_list(),
            hazards: hazards
                .into_iter()
                .map(|((hazard, state), schedule)| ObservedHazard {
                    hazard,
                    state,
                    schedule,
                })
                .collect(),
            races,
            judged,
            reason,
            ..Observation::default()
        }
    }
}

/// A limit of wall time that is cheap to check.
struct TimeLimit {
    end: Option<Instant>,
    asked: u32,
}

impl TimeLimit {
    fn new(timeout: Option<Duration>) -> TimeLimit {
        TimeLimit {
            end: timeout.map(|t| Instant::now() + t),
            asked: 0,
        }
    }

    /// Whether the time is over, by an exact check.
    fn is_past(&self) -> bool {
        stop::late(self.end)
    }

    fn is_over(&mut self) -> bool {
        self.asked += 1;
        // A step of a large launch copies the state of thousands of threads.
        self.asked.is_multiple_of(16) && stop::late(self.end)
    }
}

/// The longest time to find out whether a run counts.
const LONGEST_DOUBT: Duration = Duration::from_millis(500);

/// The resource that ran out, when a clock is over.
fn over() -> &'static str {
    match stop::spent() {
        Some(stop::Spent::Memory) => "out of memory",
        Some(stop::Spent::Stack) => "out of stack",
        None => "out of time",
    }
}

/// Runs a machine under a schedule.
pub(super) fn run<B: Backend>(
    machine: &Machine<'_, B>,
    schedule: Schedule<'_>,
    limits: &SearchLimits,
) -> Result<Observation, String> {
    let mut begun: Vec<RunEvent> = Vec::new();
    let start = match machine.start(&mut begun) {
        Ok(start) => start,
        Err(halt @ StepHalt::Fault { .. }) => {
            // This happens before the first choice, whatever the schedule.
            let mut seeing = Seeing::default();
            seeing.fault(machine, &halt, machine.recorded());
            return Ok(Observation {
                events: begun,
                ..seeing.into()
            });
        }
        Err(halt) => return Err(machine.why(&halt)),
    };
    let judged = race::applies(machine.code);
    let (races, explain) = (
        limits.races && judged.is_ok(),
        limits.explain && judged.is_ok(),
    );
    let limits = SearchLimits {
        races,
        explain,
        ..*limits
    };
    let mut observation = match schedule {
        Schedule::Exhaustive => exhaustive::explore(machine, start, &limits)?,
        Schedule::Random { runs, seed } => {
            random::sample(machine, &start, &begun, runs, seed, &limits)?
        }
        Schedule::Replay(recorded) => replay::play(machine, recorded, &limits)?,
    };
    if let Err(why) = judged {
        observation.not_judged = Some(why);
    }
    Ok(observation)
}

impl<B: Backend> Machine<'_, B> {
    /// Describes a halt in words.
    pub(super) fn why(&self, halt: &StepHalt) -> String {
        match halt {
            StepHalt::Refused | StepHalt::Blocked => "a step is not possible".into(),
            StepHalt::Unsupported(what) => what.clone(),
            StepHalt::Limit(what) => (*what).to_owned(),
            StepHalt::Fault {
                thread,
                instr,
                what,
                ..
            } => {
                let thread = &self.code.program.threads[*thread];
                let instr = &thread.code[*instr];
                format!(
                    "{}: line {}: `{}` {what}",
                    thread.name, instr.line, instr.text
                )
            }
        }
    }

    /// The possible final values of the observed locations, in order of first mention.
    fn final_values(&self, state: &MachineState<B>) -> Vec<(usize, Vec<i64>)> {
        let mut values: Vec<(usize, Vec<i64>)> = Vec::new();
        for o in &self.code.observed {
            if let Some(loc) = self.code.observed_location(*o)
                && values.iter().all(|v| v.0 != loc)
            {
                values.push((loc, self.memory.finals(&state.memory, loc)));
            }
        }
        values
    }

    /// The outcome of a finished state, with the given choice of final values.
    fn outcome(
        &self,
        state: &MachineState<B>,
        values: &[(usize, Vec<i64>)],
        picks: &[u32],
    ) -> Vec<i64> {
        self.code
            .observed
            .iter()
            .map(|o| match o {
                Observable::Reg(t, r) => {
                    let (t, r) = (usize::from(t.0), usize::from(r.0));
                    self.code.program.threads[t].regs[r]
                        .ty
                        .wrap(state.threads[t].regs[r])
                }
                Observable::Mem { .. } => {
                    let loc = self.code.observed_location(*o);
                    let at = values.iter().position(|v| Some(v.0) == loc);
                    at.map_or(0, |at| values[at].1[picks[at] as usize])
                }
            })
            .collect()
    }

    /// Draws one outcome of a finished state.
    fn draw(&self, state: &MachineState<B>, chooser: &mut dyn Chooser) -> (Vec<i64>, Vec<u32>) {
        let values = self.final_values(state);
        let picks: Vec<u32> = values
            .iter()
            .map(|v| chooser.choose(v.1.len()) as u32)
            .collect();
        (self.outcome(state, &values, &picks), picks)
    }

    /// Whether some thread has no way to go on because of an early bind or an assumption. The run
    /// is then not the beginning of an execution, and does not count. In a large launch, the answer
    /// may take long; without one after [`LONGEST_DOUBT`], the run does not count either.
    fn is_astray(&self, state: &MachineState<B>) -> bool {
        let end = Some(Instant::now() + LONGEST_DOUBT);
        let pending = self.memory.is_pending(&state.memory);
        let has_no_way = |thread: usize| {
            let action = Action {
                thread,
                early: false,
            };
            let results = || self.ways(state, action).map(|(_, result, _)| result);
            // A thread that has to wait may wait for something other than memory.
            let is_no_way = |r: Result<_>| matches!(r, Err(StepHalt::Refused | StepHalt::Blocked));
            self.may(state, action)
                && results().all(is_no_way)
                && (pending || results().any(|r| matches!(r, Err(StepHalt::Refused))))
        };
        let mut threads = 0..state.threads.len();
        (pending || self.memory.may_refuse()) && threads.any(|t| stop::late(end) || has_no_way(t))
    }

    /// The number of steps between two tidyings of a random run; tidying looks at the whole state.
    fn period(&self) -> usize {
        if self.code.threads.len() <= 16 {
            1
        } else {
            4 * self.code.threads.len()
        }
    }

    /// The recording of a random run, before its first step.
    fn recorded(&self) -> Recorded {
        Recorded {
            period: self.period(),
            ..Recorded::default()
        }
    }

    /// Whether a run is tidied after the step of that number.
    fn tidies(&self, step: usize, period: usize) -> bool {
        (self.code.loops || period > 1) && step.is_multiple_of(period)
    }
}

impl ScheduleStep {
    fn new(action: Action, answers: Vec<u32>) -> ScheduleStep {
        ScheduleStep {
            thread: action.thread,
            early: action.early,
            answers,
        }
    }

    fn action(&self) -> Action {
        Action {
            thread: self.thread,
            early: self.early,
        }
    }
}
