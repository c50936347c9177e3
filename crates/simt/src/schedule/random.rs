//! Random schedules: draws a thread, then the choices of its step.
//!
//! A thread stays on with probability 0.3, so that runs are neither lockstep nor one thread after
//! the other. Choices within a step are uniform, so that old values and inner places of coherence
//! order get their full weight. With early binds, one step in five tries one.
//!
//! # Invariants
//! - Run number `i` of a seed depends only on the seed and `i`.

use super::{
    Observation, Recorded, ScheduleStep, SearchLimits, Seeing, StopKind, StopReason, TimeLimit,
    is_no_hang,
};
use crate::choice::Dice;
use crate::memory::Backend;
use crate::race::{self, RaceCoverage};
use crate::record::{HazardKind, Log, RunEvent, Silent};
use crate::state::MachineState;
use crate::step::{Action, Machine};
use crate::thread::ThreadStatus;
use crate::{StepHalt, explain, misuse};

/// The number of consecutive refused choices, per thread that may step, after which all successors
/// are computed.
const MAX_TRIES: usize = 6;

/// The number of draws before the threads that may step are listed.
const MAX_DRAWS: usize = 8;

/// The number of steps between two looks at the clock; short runs never look, so that they repeat.
const STEPS_PER_LOOK: usize = 16_384;

/// The number of threads from which on a run looks more often.
const LARGE: usize = 512;

/// The largest number of runs whose events are examined for races.
const MAX_JUDGED: u64 = 1_000;

/// The end of a run.
enum RunEnd {
    Finished(Vec<i64>, Vec<u32>),
    Stuck,
    /// The limit that was reached, and whether a thread that goes on forever may be the reason.
    Limit(String, bool),
    Fault(StepHalt),
}

/// Draws runs.
pub(super) fn sample<B: Backend>(
    machine: &Machine<'_, B>,
    start: &MachineState<B>,
    begun: &[RunEvent],
    runs: u64,
    seed: u64,
    limits: &SearchLimits,
) -> Result<Observation, String> {
    let clock = TimeLimit::new(limits.timeout);
    let mut sample = Sample {
        machine,
        limits,
        clock: &clock,
        seeing: Seeing::default(),
        steps: 0,
        looked: 0,
        not_judged: None,
    };
    let misused = misuse::applies(machine.code);
    for run in 0..runs {
        let judge = (limits.races || limits.explain) && sample.looked < MAX_JUDGED;
        let logged = judge || misused && run < MAX_JUDGED;
        let mut events = begun.to_vec();
        let dice = Dice::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(run));
        let mut one = RandomRun {
            machine,
            state: start.clone(),
            dice,
            recorded: machine.recorded(),
        };
        let log: Option<&mut Vec<RunEvent>> = logged.then_some(&mut events);
        let end = one.finish(limits.steps, log, &clock)?;
        sample.steps += one.recorded.steps.len() as u64;
        if one.is_discarded(&end) {
            sample.seeing.ended.discarded += 1;
        } else {
            if judge {
                sample.judge(&one, &events);
            }
            sample.note(one, end, logged.then_some(&events));
        }
        if clock.is_past() && run + 1 < runs {
            sample.seeing.reason = Some(super::over().into());
            break;
        }
    }
    Ok(sample.into_observation())
}

/// The observations of the runs drawn so far.
struct Sample<'m, 'c, B: Backend> {
    machine: &'m Machine<'c, B>,
    limits: &'m SearchLimits,
    clock: &'m TimeLimit,
    seeing: Seeing,
    steps: u64,
    /// The number of runs that were examined for races.
    looked: u64,
    /// The reason why a run was not.
    not_judged: Option<String>,
}

impl<B: Backend> Sample<'_, '_, B> {
    /// Examines the events of a run for races, or explains the races that the memory found.
    fn judge(&mut self, one: &RandomRun<'_, '_, B>, events: &[RunEvent]) {
        let (machine, races) = (self.machine, &mut self.seeing.races);
        let late = || self.clock.is_past();
        if self.limits.races {
            match race::find(machine.code, events, &one.recorded, races, &late) {
                RaceCoverage::Through => self.looked += 1,
                RaceCoverage::Late => self.not_judged = Some(race::NOT_ALL.into()),
                RaceCoverage::Open => {}
            }
        } else {
            self.looked += 1;
            let found = machine.memory.hazards(machine.code, &one.state.memory);
            race::explain(machine.code, events, &one.recorded, &found, races, &late);
        }
    }

    /// Notes the end of a run; `events`: those of a run with a log.
    fn note(&mut self, one: RandomRun<'_, '_, B>, end: RunEnd, events: Option<&Vec<RunEvent>>) {
        let RandomRun {
            machine,
            state,
            mut recorded,
            ..
        } = one;
        let seeing = &mut self.seeing;
        match end {
            RunEnd::Finished(outcome, finals) => {
                seeing.ended.finished += 1;
                recorded.finals = finals;
                seeing.hazards(machine, &state, Some(&outcome), || recorded.clone());
                if let Some(events) = events {
                    seeing.misuse(machine, &state, events, Some(&outcome), &recorded);
                }
                seeing.outcomes.add(outcome, || recorded);
            }
            RunEnd::Stuck => {
                if let Some(events) = events {
                    seeing.misuse(machine, &state, events, None, &recorded);
                }
                seeing.stuck(machine, &state, || recorded);
            }
            RunEnd::Limit(what, endless) => {
                // The run may go on forever; its races count all the same.
                let found = machine.memory.hazards(machine.code, &state.memory);
                for hazard in found.into_iter().filter(|h| h.kind == HazardKind::Race) {
                    seeing.hazard(hazard, None, || recorded.clone());
                }
                let reason = || {
                    let mut reason = if endless {
                        explain::spinning(machine, &state, None)
                    } else {
                        StopReason::default()
                    };
                    reason.why.insert(0, what);
                    reason
                };
                seeing.stop(StopKind::Limit, reason, recorded);
            }
            RunEnd::Fault(halt) => seeing.fault(machine, &halt, recorded),
        }
    }

    fn into_observation(mut self) -> Observation {
        self.seeing.judged = if self.limits.races { self.looked } else { 0 };
        Observation {
            states: self.steps,
            steps: self.steps,
            not_judged: self.not_judged,
            ..self.seeing.into()
        }
    }
}

/// A run in progress.
struct RandomRun<'m, 'c, B: Backend> {
    machine: &'m Machine<'c, B>,
    state: MachineState<B>,
    dice: Dice,
    recorded: Recorded,
}

impl<B: Backend> RandomRun<'_, '_, B> {
    /// Whether no execution of the program has this run.
    fn is_discarded(&self, end: &RunEnd) -> bool {
        let (machine, memory) = (self.machine, &self.state.memory);
        match end {
            RunEnd::Finished(..) => !machine.memory.is_whole(memory),
            RunEnd::Stuck => is_no_hang(machine, &self.state),
            // The other threads may go on, but no execution of the program begins so.
            RunEnd::Limit(..) => machine.is_astray(&self.state),
            // An early bind may be the cause of the fault, and may turn out to be wrong.
            RunEnd::Fault(_) => machine.memory.is_pending(memory),
        }
    }

    fn finish(
        &mut self,
        limit: usize,
        mut log: Option<&mut Vec<RunEvent>>,
        clock: &TimeLimit,
    ) -> Result<RunEnd, String> {
        let machine = self.machine;
        let (mut last, mut tries, mut alive) = (None, 0, 0);
        let period = machine.period();
        loop {
            while alive < self.state.threads.len() && self.state.threads[alive].is_over() {
                alive += 1;
            }
            // Threads of a command that is never enqueued do not end, and a command without threads
            // may never complete.
            let over = match machine.code.program.host {
                Some(_) => machine.is_finished(&self.state),
                None => alive == self.state.threads.len(),
            };
            if over {
                self.dice.taken.clear();
                let (outcome, finals) = machine.draw(&self.state, &mut self.dice);
                return Ok(RunEnd::Finished(outcome, finals));
            }
            if self.recorded.steps.len() >= limit {
                return Ok(RunEnd::Limit(
                    format!("did not end within {limit} steps"),
                    true,
                ));
            }
            let n = self.recorded.steps.len();
            // A step of a large launch copies the state of all its threads.
            let look = if self.state.threads.len() < LARGE {
                STEPS_PER_LOOK
            } else {
                STEPS_PER_LOOK / 1024
            };
            if n > 0 && n.is_multiple_of(look) && clock.is_past() {
                return Ok(RunEnd::Limit("did not end within the time".into(), false));
            }
            let pick = if tries < MAX_TRIES.max(self.state.threads.len() / 4) {
                self.pick(last)
            } else {
                None
            };
            let mark = log.as_ref().map_or(0, |events| events.len());
            let done = match pick {
                Some(thread) => match self.attempt(thread, &mut log) {
                    Ok(step) => step,
                    Err(end) => return end,
                },
                None => {
                    // Random choices found no way on; checks whether there is one.
                    let Some(mut all) = successors(machine, &self.state, clock)? else {
                        return Ok(RunEnd::Limit("did not end within the time".into(), false));
                    };
                    if all.is_empty() {
                        return Ok(RunEnd::Stuck);
                    }
                    let (step, next, happened) = all.swap_remove(self.dice.below(all.len()));
                    self.state = next;
                    if let Some(events) = &mut log {
                        events.extend(happened);
                    }
                    Some(step)
                }
            };
            let Some(step) = done else {
                if let Some(events) = &mut log {
                    events.truncate(mark);
                }
                tries += 1;
                continue;
            };
            (last, tries) = (Some(step.thread), 0);
            self.recorded.steps.push(step);
            if machine.tidies(self.recorded.steps.len(), period) {
                machine.tidy(&mut self.state);
            }
        }
    }

    /// Attempts a step of a thread with random choices; `None` if they are not possible.
    ///
    /// # Errors
    /// The end of the run, if the step ends it.
    fn attempt(
        &mut self,
        thread: usize,
        log: &mut Option<&mut Vec<RunEvent>>,
    ) -> Result<Option<ScheduleStep>, Result<RunEnd, String>> {
        let machine = self.machine;
        let MachineState {
            memory, threads, ..
        } = &self.state;
        let early = machine.binds()
            && self.dice.below(5) == 0
            && machine
                .memory
                .may_bind_early(machine.code, memory, threads, thread);
        let action = Action { thread, early };
        self.dice.taken.clear();
        let log: &mut dyn Log = match log {
            Some(events) => *events,
            None => &mut Silent,
        };
        let result = machine.attempt(&mut self.state, action, &mut self.dice, log);
        if let Ok(false) = result {
            return Ok(None);
        }
        let step = ScheduleStep::new(action, std::mem::take(&mut self.dice.taken));
        match result {
            Ok(_) => Ok(Some(step)),
            Err(halt @ StepHalt::Fault { .. }) => {
                self.recorded.steps.push(step);
                Err(Ok(RunEnd::Fault(halt)))
            }
            Err(StepHalt::Limit(what)) => Err(Ok(RunEnd::Limit(what.into(), false))),
            Err(halt) => Err(Err(machine.why(&halt))),
        }
    }

    /// Draws a thread that may step.
    fn pick(&mut self, last: Option<usize>) -> Option<usize> {
        let (machine, state) = (self.machine, &self.state);
        let able = |t: usize| {
            state.threads[t].status == ThreadStatus::Running
                && machine
                    .layer
                    .may_step(machine.code, &state.layer, &state.threads, t)
                && machine.ready(state, t)
        };
        if let Some(t) = last.filter(|&t| able(t))
            && self.dice.below(10) < 3
        {
            return Some(t);
        }
        let n = state.threads.len();
        for _ in 0..MAX_DRAWS {
            let t = self.dice.below(n);
            if able(t) {
                return Some(t);
            }
        }
        let all: Vec<usize> = (0..n).filter(|&t| able(t)).collect();
        (!all.is_empty()).then(|| all[self.dice.below(all.len())])
    }
}

/// All successors of a state, with the events of each step; `None` if the time is over before.
#[allow(clippy::type_complexity)] // one triple, used once
fn successors<B: Backend>(
    machine: &Machine<'_, B>,
    state: &MachineState<B>,
    clock: &TimeLimit,
) -> Result<Option<Vec<(ScheduleStep, MachineState<B>, Vec<RunEvent>)>>, String> {
    let mut all = Vec::new();
    for action in machine.actions(state) {
        if clock.is_past() {
            return Ok(None);
        }
        for (answers, result, events) in machine.ways(state, action) {
            match result {
                Ok(next) => all.push((ScheduleStep::new(action, answers), next, events)),
                Err(
                    StepHalt::Refused
                    | StepHalt::Blocked
                    | StepHalt::Fault { .. }
                    | StepHalt::Limit(_),
                ) => {}
                Err(halt @ StepHalt::Unsupported(_)) => return Err(machine.why(&halt)),
            }
        }
    }
    Ok(Some(all))
}
