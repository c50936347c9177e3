//! Schedules: who decides what happens next, and what came of it.
//!
//! # Invariants
//! - A schedule is data: [`Recorded`] has the thread of every step and the answers to its choices. Replaying it gives the
//!   same run, event by event.
//! - Outcomes come sorted by state.

mod endless;
mod exhaustive;
mod graph;
mod random;
mod replay;
mod rounds;
mod spins;
mod stops;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::choice::Chooser;
use super::layer::Layer;
use super::memory::Backend;
use super::race::{self, Race};
use super::record::{Event, Hazard};
use super::state::Status;
use super::step::{Action, Machine, StateOf};
use super::{Fault, Halt, Schedule};
pub use endless::Endless;
use program::litmus::Observable;
pub(crate) use stops::Reason;
use stops::Stops;
pub use stops::{How, Stop};

/// One step of a recorded run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The thread.
    pub thread: usize,
    /// Whether it bound something before its turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub early: bool,
    /// Its choices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<u32>,
}

/// A recorded run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The memory, as [`super::MachineMemory::name`] has it.
    #[serde(default)]
    pub memory: String,
    /// The early binds allowed, as [`super::Early::parse`] reads them.
    #[serde(default)]
    pub early: String,
    /// The scheduling, as [`super::Scheduling::name`] has it; independent if empty.
    #[serde(default)]
    pub scheduling: String,
    /// What it was launched on.
    #[serde(default)]
    pub launch: super::Launch,
    /// Whether fences and barriers were steps of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub patient: bool,
    /// Whether commands waited for a flush.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lazy: bool,
    /// After how many steps each the memory was brought into normal form.
    #[serde(default = "every")]
    pub period: usize,
    /// In order.
    pub steps: Vec<Step>,
    /// How many steps at the end come back to the state before them: the run may go on so for ever.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round: usize,
    /// Which of the possible final values each location has.
    #[serde(default)]
    pub finals: Vec<u32>,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

fn every() -> usize {
    1
}

/// When to give up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) steps: usize,
    pub(super) states: usize,
    pub(super) timeout: Option<Duration>,
    /// Whether to look for races.
    pub(super) races: bool,
    /// Whether to tell under which progress models a run never ends.
    pub(super) progress: bool,
    /// Whether to say why races are that the memory itself finds.
    pub(super) explain: bool,
}

/// How runs ended; of an exhaustive exploration, how many states are such ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Every thread ran to its end.
    pub finished: u64,
    /// Threads wait at barriers that never let them pass.
    pub deadlock: u64,
    /// Threads go round and round, and no schedule leads out of it.
    pub livelock: u64,
    /// Threads go round and round if a weak read finds for ever what was overwritten.
    pub stale: u64,
    /// The limit of steps was met.
    pub step_limit: u64,
    /// An access named no memory.
    pub stray: u64,
    /// A barrier was reached by part of those for whom it is.
    pub divergence: u64,
    /// A division by zero.
    pub division: u64,
    /// The launch failed, and nothing ran.
    pub launch_failure: u64,
    /// Something bound early could not be committed: such a run counts for nothing.
    pub discarded: u64,
}

impl Ended {
    /// Whether no run finished, or came to anything else that says what the program does: they wait, or go on.
    pub fn only_hangs(&self) -> bool {
        let without = self.deadlock + self.livelock + self.stale + self.step_limit;
        let undefined = self.stray + self.divergence + self.division + self.launch_failure;
        self.finished + undefined == 0 && without > 0
    }
}

/// An outcome that was observed.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Final values, in the order of the test's observables.
    pub state: Vec<i64>,
    /// In how many runs, or final states.
    pub count: u64,
    /// A run that ends so.
    pub schedule: Recorded,
}

/// What was observed.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// Sorted by state.
    pub outcomes: Vec<Seen>,
    /// How runs ended.
    pub ended: Ended,
    /// Whether the machine can show no other outcome.
    pub complete: bool,
    /// If an exhaustive exploration is not complete: why.
    pub reason: Option<String>,
    /// States visited.
    pub states: u64,
    /// Steps taken.
    pub steps: u64,
    /// Runs that did not finish, each kind once.
    pub stops: Vec<Stop>,
    /// Races in the runs looked at.
    pub races: Vec<Race>,
    /// How many runs were looked at for races.
    pub judged: u64,
    /// If none were, though they should have been: why.
    pub not_judged: Option<String>,
    /// The events of a replayed run.
    pub events: Vec<Event>,
    /// By progress model under which some run never ends: one. Empty unless that was asked for.
    pub endless: Vec<Endless>,
    /// What is undefined by the memory's own account, sorted.
    pub hazards: Vec<Undefined>,
}

/// Undefined behaviour that was observed.
#[derive(Clone, Debug)]
pub struct Undefined {
    /// What.
    pub hazard: Hazard,
    /// The outcome of the run, if the test has a filter and the run came to its end.
    pub state: Option<Vec<i64>>,
    /// A run that shows it.
    pub schedule: Recorded,
}

/// Outcomes while they are collected.
#[derive(Default)]
struct Outcomes(BTreeMap<Vec<i64>, (u64, Recorded)>);

impl Outcomes {
    fn add(&mut self, state: Vec<i64>, schedule: impl FnOnce() -> Recorded) {
        self.0.entry(state).or_insert_with(|| (0, schedule())).0 += 1;
    }

    fn into_list(self) -> Vec<Seen> {
        self.0.into_iter().map(|(state, (count, schedule))| Seen { state, count, schedule }).collect()
    }
}

impl Observation {
    /// A launch that failed, whatever the schedule.
    pub(super) fn launch_failed(why: String) -> Observation {
        let (mut stops, reason) = (Stops::default(), Some(why.clone()));
        stops.add(How::Launch, || Reason::line(why), Recorded { period: 1, ..Recorded::default() });
        let ended = Ended { launch_failure: 1, ..Ended::default() };
        Observation { ended, stops: stops.into_list(), reason, ..Observation::default() }
    }

    /// Why it is not all that was asked for, if a limit of time, steps, states or history is the reason and not what
    /// a run did.
    pub fn limit(&self) -> Option<&str> {
        let own = |why: &&str| !self.stops.iter().any(|s| s.how != How::Limit && s.why.iter().any(|w| w == why));
        self.reason.as_deref().filter(own)
    }

    /// Adds what another exploration of the same test observed.
    pub fn merge(&mut self, other: Observation) {
        for seen in other.outcomes {
            match self.outcomes.binary_search_by(|o| o.state.cmp(&seen.state)) {
                Ok(at) => self.outcomes[at].count += seen.count,
                Err(at) => self.outcomes.insert(at, seen),
            }
        }
        let (a, b) = (&mut self.ended, other.ended);
        a.finished += b.finished;
        a.deadlock += b.deadlock;
        a.livelock += b.livelock;
        a.stale += b.stale;
        a.step_limit += b.step_limit;
        a.stray += b.stray;
        a.divergence += b.divergence;
        a.division += b.division;
        a.launch_failure += b.launch_failure;
        a.discarded += b.discarded;
        self.states += other.states;
        self.steps += other.steps;
        for stop in other.stops {
            match self.stops.iter_mut().find(|s| s.how == stop.how && s.why == stop.why) {
                Some(known) => known.count += stop.count,
                None => self.stops.push(stop),
            }
        }
        for race in other.races {
            match self.races.iter_mut().find(|r| (&r.first, &r.second) == (&race.first, &race.second)) {
                Some(known) => known.count += race.count,
                None => self.races.push(race),
            }
        }
        self.judged += other.judged;
        self.not_judged = self.not_judged.take().or(other.not_judged);
        self.reason = self.reason.take().or(other.reason);
        self.events.extend(other.events);
        for new in other.hazards {
            let key = |u: &Undefined| (u.hazard.clone(), u.state.clone());
            if let Err(at) = self.hazards.binary_search_by_key(&key(&new), key) {
                self.hazards.insert(at, new);
            }
        }
    }
}

/// Hazards while they are collected.
#[derive(Default)]
struct Hazards(BTreeMap<(Hazard, Option<Vec<i64>>), Recorded>);

impl Hazards {
    fn add(&mut self, hazard: Hazard, state: Option<Vec<i64>>, run: impl FnOnce() -> Recorded) {
        self.0.entry((hazard, state)).or_insert_with(run);
    }

    fn into_list(self) -> Vec<Undefined> {
        let one = |((hazard, state), schedule)| Undefined { hazard, state, schedule };
        self.0.into_iter().map(one).collect()
    }
}

/// A limit of wall time, cheap to ask.
struct Clock {
    end: Option<Instant>,
    asked: u32,
}

impl Clock {
    fn new(timeout: Option<Duration>) -> Clock {
        Clock { end: timeout.map(|t| Instant::now() + t), asked: 0 }
    }

    /// Whether the time is over, told exactly.
    fn is_past(&self) -> bool {
        stop::late(self.end)
    }

    fn is_over(&mut self) -> bool {
        self.asked += 1;
        self.asked.is_multiple_of(256) && stop::late(self.end)
    }
}

/// Runs a machine under a schedule.
pub(super) fn run<B: Backend, L: Layer>(
    machine: &Machine<'_, B, L>,
    schedule: Schedule<'_>,
    limits: &Limits,
) -> Result<Observation, String> {
    let mut begun: Vec<Event> = Vec::new();
    let start = match machine.start(&mut begun) {
        Ok(start) => start,
        Err(halt @ Halt::Fault { .. }) => {
            // Whatever the schedule: it happens before the first choice.
            let (mut ended, mut stops) = (Ended::default(), Stops::default());
            let how = ended.count_fault(&halt);
            stops.add(how, || Reason::line(machine.why(&halt)), machine.recorded());
            let (stops, reason) = (stops.into_list(), Some(machine.why(&halt)));
            return Ok(Observation { ended, stops, reason, events: begun, ..Observation::default() });
        }
        Err(halt) => return Err(machine.why(&halt)),
    };
    let judged = race::applies(machine.code);
    let (races, explain) = (limits.races && judged.is_ok(), limits.explain && judged.is_ok());
    let limits = Limits { races, explain, ..*limits };
    let mut observation = match schedule {
        Schedule::Exhaustive => exhaustive::explore(machine, start, &limits)?,
        Schedule::Random { runs, seed } => random::sample(machine, (&start, &begun), (runs, seed), &limits)?,
        Schedule::Replay(recorded) => replay::play(machine, recorded, &limits)?,
    };
    if let Err(why) = judged {
        observation.not_judged = Some(why);
    }
    Ok(observation)
}

impl Ended {
    /// Counts a run that ended with a fault.
    fn count_fault(&mut self, halt: &Halt) -> How {
        let Halt::Fault { kind, .. } = halt else {
            self.step_limit += 1;
            return How::Limit;
        };
        match kind {
            Fault::Stray => self.stray += 1,
            Fault::Barrier => self.divergence += 1,
            Fault::Division => self.division += 1,
        }
        How::Fault(*kind)
    }
}

impl<B: Backend, L: Layer> Machine<'_, B, L> {
    /// A halt in words.
    pub(super) fn why(&self, halt: &Halt) -> String {
        match halt {
            Halt::Refused | Halt::Blocked => "a step is not possible".into(),
            Halt::Unsupported(what) => what.clone(),
            Halt::Limit(what) => (*what).to_owned(),
            Halt::Fault { thread, instr, what, .. } => {
                let thread = &self.code.program.threads[*thread];
                let instr = &thread.code[*instr];
                format!("{}: line {}: `{}` {what}", thread.name, instr.line, instr.text)
            }
        }
    }

    /// The possible final values of the observed locations, in order of first mention.
    fn final_values(&self, state: &StateOf<B, L>) -> Vec<(usize, Vec<i64>)> {
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

    /// The outcome of a finished state, given which final value each observed location has.
    fn outcome(&self, state: &StateOf<B, L>, values: &[(usize, Vec<i64>)], picks: &[u32]) -> Vec<i64> {
        let value = |o: &Observable| match o {
            Observable::Reg(t, r) => {
                let (t, r) = (usize::from(t.0), usize::from(r.0));
                self.code.program.threads[t].regs[r].ty.wrap(state.threads[t].regs[r])
            }
            Observable::Mem { .. } => {
                let loc = self.code.observed_location(*o);
                let at = values.iter().position(|v| Some(v.0) == loc);
                at.map_or(0, |at| values[at].1[picks[at] as usize])
            }
        };
        self.code.observed.iter().map(value).collect()
    }

    /// Draws one outcome of a finished state.
    fn draw(&self, state: &StateOf<B, L>, chooser: &mut dyn Chooser) -> (Vec<i64>, Vec<u32>) {
        let values = self.final_values(state);
        let picks: Vec<u32> = values.iter().map(|v| chooser.choose(v.1.len()) as u32).collect();
        (self.outcome(state, &values, &picks), picks)
    }

    /// Counts a state without successors in which not every thread has ended; `None`: it counts for nothing.
    fn count_stuck(&self, state: &StateOf<B, L>, ended: &mut Ended) -> Option<How> {
        let refused = self.memory.may_refuse() && state.threads.iter().any(|t| t.status == Status::Running);
        if refused || self.memory.is_pending(&state.memory) || !self.memory.is_whole(&state.memory) {
            ended.discarded += 1;
            None
        } else if state.threads.iter().any(|t| t.status == Status::Lost) {
            ended.livelock += 1;
            Some(How::Livelock)
        } else {
            ended.deadlock += 1;
            Some(How::Deadlock)
        }
    }

    /// Notes what is undefined about a state in which every thread has ended, with that outcome, or waits for ever.
    fn note_hazards(
        &self,
        state: &StateOf<B, L>,
        outcome: Option<&[i64]>,
        hazards: &mut Hazards,
        run: impl Fn() -> Recorded,
    ) {
        let outcome = outcome.filter(|_| self.code.filtered);
        for hazard in self.memory.hazards(self.code, &state.memory) {
            hazards.add(hazard, outcome.map(<[i64]>::to_vec), &run);
        }
    }

    /// How many steps lie between two tidyings of a random run: tidying looks at everything.
    fn period(&self) -> usize {
        if self.code.threads.len() <= 16 { 1 } else { 4 * self.code.threads.len() }
    }

    /// The recording of a random run that has not begun.
    fn recorded(&self) -> Recorded {
        Recorded { period: self.period(), ..Recorded::default() }
    }

    /// Whether a run is tidied after its step of that number.
    fn tidies(&self, step: usize, period: usize) -> bool {
        (self.code.loops || period > 1) && step.is_multiple_of(period)
    }
}

impl Step {
    fn new(action: Action, answers: Vec<u32>) -> Step {
        Step { thread: action.thread, early: action.early, answers }
    }

    fn action(&self) -> Action {
        Action { thread: self.thread, early: self.early }
    }
}
