//! Explores every schedule: depth first over states, each visited once.
//!
//! The fingerprint of its normal form identifies a state. Actions that commute with everything
//! happen at once ([`Machine::settle`](super::Machine)). If no other thread can touch a location
//! any more, an access to it is the only pick of its state, because all other steps commute with
//! it. There are three exceptions: loops, which could put off other threads forever; acquires,
//! which may have to wait; and early binds.
//!
//! # Invariants
//! - The stack is on the heap; its depth is at most the limit of steps.
//! - Complete means that every state reachable from the start was visited, and that the history
//!   never reached its bound.

use std::time::Instant;

use rustc_hash::{FxHashMap, FxHashSet};

use super::graph::Graph;
use super::{
    Observation, Recorded, ScheduleStep, SearchLimits, Seeing, StopKind, StopReason, TimeLimit,
    endless, replay, rounds,
};
use crate::choice::Script;
use crate::code::Act;
use crate::memory::{Age, Backend};
use crate::record::{HazardKind, Silent};
use crate::state::MachineState;
use crate::step::{Action, Machine};
use crate::thread::ThreadStatus;
use crate::{StepHalt, explain, misuse, race};

/// The largest number of explained cycles; those reached first count.
const MAX_EXPLAINED: usize = 16;

/// The largest number of combinations of final values of a state.
const MAX_COMBINATIONS: usize = 100_000;

/// Longer runs are not examined for races: the time grows with the square.
const MAX_JUDGED_STEPS: usize = 1_000;

/// A state on the stack, and its next successor to visit.
struct SearchFrame<S> {
    state: S,
    number: u32,
    actions: Vec<Action>,
    next: usize,
    script: Script,
    /// Whether some successor exists.
    alive: bool,
    /// The age of the reads of the step that is entered next.
    age: Age,
}

/// Visits all states.
pub(super) fn explore<B: Backend>(
    machine: &Machine<'_, B>,
    start: MachineState<B>,
    limits: &SearchLimits,
) -> Result<Observation, String> {
    // A quarter of the time is for races: chains of read-modify-writes take long.
    let share = match examines_runs(machine, limits) {
        true => limits.timeout.map(|time| time / 4 * 3),
        false => limits.timeout,
    };
    let mut search = StateSearch {
        machine,
        limits,
        numbers: FxHashMap::default(),
        seeing: Seeing::default(),
        graph: Graph::default(),
        begun: Instant::now(),
        clock: TimeLimit::new(share),
        whole: true,
        steps: 0,
        stack: Vec::new(),
        path: Vec::new(),
    };
    let mut next = Some(start);
    loop {
        if let Some(state) = next.take() {
            search.enter(state)?;
        }
        if search.is_cut() || search.stack.is_empty() {
            break;
        }
        next = search.step()?;
    }
    search.conclude()
}

/// An exploration in progress.
struct StateSearch<'s, 'm, B: Backend> {
    machine: &'s Machine<'m, B>,
    limits: &'s SearchLimits,
    /// By fingerprint: the number of a state.
    numbers: FxHashMap<u128, u32>,
    seeing: Seeing,
    graph: Graph,
    begun: Instant,
    clock: TimeLimit,
    /// Whether no history reached its bound.
    whole: bool,
    steps: u64,
    stack: Vec<SearchFrame<MachineState<B>>>,
    /// The steps to the state that is entered next.
    path: Vec<ScheduleStep>,
}

impl<B: Backend> StateSearch<'_, '_, B> {
    /// Enters a state, and puts it on the stack if it is new and has successors to visit.
    fn enter(&mut self, mut state: MachineState<B>) -> Result<(), String> {
        let machine = self.machine;
        self.whole &= machine.tidy(&mut state);
        let number = self.numbers.len() as u32;
        let known = *self
            .numbers
            .entry(machine.fingerprint(&state))
            .or_insert(number);
        if machine.code.loops || self.limits.progress {
            self.keep(&state, known, known == number);
        }
        if known != number {
            self.path.pop();
        } else if machine.is_finished(&state) {
            finish(machine, &state, &self.path, &mut self.seeing)?;
            self.graph.ends.push(number);
            self.path.pop();
        } else if self.stack.len() >= self.limits.steps {
            self.seeing.ended.count(StopKind::Limit, 1);
            self.seeing.reason = Some(format!(
                "step limit: a run takes more than {} steps",
                self.limits.steps
            ));
            self.path.pop();
        } else {
            let actions = if self.limits.progress {
                machine.actions(&state)
            } else {
                picks(machine, &state)
            };
            self.stack.push(SearchFrame {
                state,
                number,
                actions,
                next: 0,
                script: Script::default(),
                alive: false,
                age: Age::New,
            });
        }
        Ok(())
    }

    /// Records a state, if it is new, and the step to it in the graph.
    fn keep(&mut self, state: &MachineState<B>, number: u32, is_new: bool) {
        let (machine, graph) = (self.machine, &mut self.graph);
        if is_new {
            let found = machine.memory.hazards(machine.code, &state.memory);
            let races = found.into_iter().filter(|h| h.kind == HazardKind::Race);
            graph.races.extend(races.map(|h| (number, h)));
            let parent = self.stack.last().zip(self.path.last());
            graph.enter(parent.map(|(f, step)| (f.number, step.clone())));
            if self.limits.progress {
                graph.stand(
                    (0..state.threads.len())
                        .map(|t| {
                            let thread = &state.threads[t];
                            let is_held_up = thread.status == ThreadStatus::Running
                                && state.barriers.holds_up(machine.code, t, thread);
                            match is_held_up {
                                true => ThreadStatus::Waiting,
                                false => thread.status,
                            }
                        })
                        .collect(),
                );
            }
        }
        if let (Some(from), Some(step)) = (self.stack.last(), self.path.last()) {
            graph.can_step(from.number, step.thread);
            graph.connect(from.number, number, step.thread, from.age);
        }
    }

    /// Whether a limit ends the exploration.
    fn is_cut(&mut self) -> bool {
        let limit = self.limits.states;
        if self.numbers.len() >= limit {
            self.seeing.reason = Some(format!("state limit: more than {limit} states"));
        } else if self.clock.is_over() {
            self.seeing.reason = Some(super::over().into());
        } else {
            return false;
        }
        true
    }

    /// Takes the next step of the state on top of the stack; returns the state to enter, if the
    /// step leads to one. Removes the state from the stack after its last step.
    fn step(&mut self) -> Result<Option<MachineState<B>>, String> {
        let (machine, seeing) = (self.machine, &mut self.seeing);
        let Some(frame) = self.stack.last_mut() else {
            return Ok(None);
        };
        let Some(&action) = frame.actions.get(frame.next) else {
            if !frame.alive {
                seeing.stuck(machine, &frame.state, || Recorded::whole(self.path.clone()));
            }
            self.stack.pop();
            self.path.pop();
            return Ok(None);
        };
        let mut state = frame.state.clone();
        frame.script.rewind();
        self.steps += 1;
        let result = machine.step(&mut state, action, &mut frame.script, &mut Silent);
        let answers = frame.script.taken();
        if !frame.script.advance() {
            frame.next += 1;
            frame.script = Script::default();
        }
        match result {
            Ok(age) => {
                frame.alive = true;
                frame.age = age;
                self.path.push(ScheduleStep::new(action, answers));
                return Ok(Some(state));
            }
            Err(StepHalt::Refused | StepHalt::Blocked) => {}
            // An early bind may be the cause of the fault, and may turn out to be wrong.
            Err(StepHalt::Fault { .. }) if machine.memory.is_pending(&frame.state.memory) => {
                frame.alive = true;
                seeing.ended.discarded += 1;
            }
            Err(halt @ (StepHalt::Fault { .. } | StepHalt::Limit(_))) => {
                frame.alive = true;
                let mut steps = self.path.clone();
                steps.push(ScheduleStep::new(action, answers));
                seeing.fault(machine, &halt, Recorded::whole(steps));
            }
            Err(halt @ StepHalt::Unsupported(_)) => return Err(machine.why(&halt)),
        }
        Ok(None)
    }

    /// Turns the exploration into the observation: explains its livelocks and its races.
    fn conclude(mut self) -> Result<Observation, String> {
        let (machine, limits) = (self.machine, self.limits);
        if !self.whole {
            self.seeing.reason.get_or_insert_with(|| {
                "history bound: a thread made too many writes that another thread never read".into()
            });
        }
        if machine.code.loops && !machine.binds() {
            self.explain_cycles();
        }
        let states = self.numbers.len() as u64;
        drop(self.numbers);
        let complete = self.seeing.reason.is_none();
        if complete && machine.code.loops {
            for (state, hazard) in self.graph.endless_races() {
                self.seeing
                    .hazard(hazard, None, || Recorded::whole(self.graph.path(state)));
            }
        }
        let mut seen = Observation {
            complete,
            states,
            steps: self.steps,
            ..self.seeing.into()
        };
        if limits.progress && complete {
            seen.endless = endless::find(&self.graph, &machine.code.program)?;
        }
        if examines_runs(machine, limits) {
            examine_runs(machine, limits, self.begun, &mut seen)?;
        }
        if limits.explain {
            for undefined in seen.hazards.iter().take(MAX_EXPLAINED) {
                seen.races
                    .extend(replay::play(machine, &undefined.schedule, limits)?.races);
            }
        }
        Ok(seen)
    }

    /// Reports the fair cycles of the graph as livelocks, each with a round.
    fn explain_cycles(&mut self) {
        let (machine, graph, seeing) = (self.machine, &self.graph, &mut self.seeing);
        let cycles = graph.fair_cycles(Age::New);
        seeing.ended.count(StopKind::Livelock, cycles.len() as u64);
        let stale = graph.fair_cycles(Age::Stale);
        let stale = stale
            .iter()
            .filter(|c| !cycles.iter().any(|new| c.has(new)));
        seeing
            .ended
            .count(StopKind::Stale, stale.clone().count() as u64);
        let fresh = cycles.iter().map(|c| (StopKind::Livelock, Age::New, c));
        let all = fresh.chain(stale.map(|c| (StopKind::Stale, Age::Stale, c)));
        for (how, oldest, cycle) in all.take(MAX_EXPLAINED) {
            let mut recorded = Recorded::whole(graph.path(cycle.first));
            let why = match replay::state_after(machine, &recorded) {
                Ok(state) => {
                    let why = explain::spinning(machine, &state, Some(&cycle.threads));
                    let ways = graph.within(cycle, oldest);
                    let round = rounds::round(machine, state, &ways, cycle, &self.numbers)
                        .unwrap_or_default();
                    recorded.round = round.len();
                    recorded.steps.extend(round);
                    why
                }
                Err(why) => StopReason::line(why),
            };
            seeing.stops.add(how, || why, recorded);
        }
    }
}

/// Whether runs are examined for races or misuse.
fn examines_runs<B: Backend>(machine: &Machine<'_, B>, limits: &SearchLimits) -> bool {
    limits.races || misuse::applies(machine.code)
}

/// Examines one run for each outcome and each way to stop, in the time that is left since `begun`.
fn examine_runs<B: Backend>(
    machine: &Machine<'_, B>,
    limits: &SearchLimits,
    begun: Instant,
    seen: &mut Observation,
) -> Result<(), String> {
    let clock = TimeLimit::new(
        limits
            .timeout
            .map(|time| time.saturating_sub(begun.elapsed())),
    );
    let mut hazards = Vec::new();
    let runs = seen
        .outcomes
        .iter()
        .map(|o| &o.schedule)
        .chain(seen.stops.iter().map(|s| &s.schedule));
    for recorded in runs {
        if recorded.steps.len() > MAX_JUDGED_STEPS {
            seen.not_judged.get_or_insert_with(|| {
                format!("runs of more than {MAX_JUDGED_STEPS} steps were not searched for races")
            });
            continue;
        }
        if clock.is_past() {
            seen.not_judged.get_or_insert_with(|| race::NOT_ALL.into());
            break;
        }
        let silent = SearchLimits {
            races: false,
            explain: false,
            ..*limits
        };
        let played = replay::play(machine, recorded, &silent)?;
        hazards.extend(played.hazards);
        if limits.races {
            let (events, races) = (&played.events, &mut seen.races);
            let looked = race::find(machine.code, events, recorded, races, &|| false);
            seen.judged += u64::from(looked == race::RaceCoverage::Through);
        }
    }
    seen.merge(Observation {
        hazards,
        ..Observation::default()
    });
    Ok(())
}

/// Counts the outcomes of a finished state.
fn finish<B: Backend>(
    machine: &Machine<'_, B>,
    state: &MachineState<B>,
    path: &[ScheduleStep],
    seeing: &mut Seeing,
) -> Result<(), String> {
    if !machine.memory.is_whole(&state.memory) {
        seeing.ended.discarded += 1;
        return Ok(());
    }
    seeing.ended.finished += 1;
    let values = machine.final_values(state);
    let all = values
        .iter()
        .fold(1usize, |n, v| n.saturating_mul(v.1.len()));
    if all > MAX_COMBINATIONS {
        return Err(format!(
            "too many outcomes: one final state has more than {MAX_COMBINATIONS}"
        ));
    }
    let mut picks = vec![0u32; values.len()];
    let mut counted: FxHashSet<Vec<i64>> = FxHashSet::default();
    for _ in 0..all {
        let outcome = machine.outcome(state, &values, &picks);
        if counted.insert(outcome.clone()) {
            let recorded = || Recorded {
                finals: picks.clone(),
                ..Recorded::whole(path.to_vec())
            };
            if machine.code.filtered || counted.len() == 1 {
                seeing.hazards(machine, state, Some(&outcome), recorded);
            }
            seeing.outcomes.add(outcome, recorded);
        }
        for (pick, value) in picks.iter_mut().zip(&values) {
            *pick += 1;
            if (*pick as usize) < value.1.len() {
                break;
            }
            *pick = 0;
        }
    }
    Ok(())
}

/// The picks worth trying.
fn picks<B: Backend>(machine: &Machine<'_, B>, state: &MachineState<B>) -> Vec<Action> {
    let actions = machine.actions(state);
    let wide = machine.code.several && machine.memory.may_refuse();
    if wide
        || machine.code.loops
        || actions.iter().any(|a| a.early)
        || machine.memory.is_pending(&state.memory)
    {
        return actions;
    }
    let alone = |a: &&Action| {
        let (code, thread) = (machine.code, &state.threads[a.thread]);
        let act = &code.threads[a.thread].acts[thread.pc];
        if code.at_once(a.thread, thread.pc).0 > 1 {
            return false;
        }
        let Some(loc) = code.touched(act, &thread.regs) else {
            return false;
        };
        let acquire = act.accesses().next().is_some_and(|access| access.acquire);
        let others = (0..state.threads.len()).filter(|&u| u != a.thread);
        let mut reach = others.map(|u| code.threads[u].reach[state.threads[u].pc]);
        // A pick that also decides which side of a branch, or which group, comes first competes
        // with the others.
        let free = machine.layer.decides_nothing(&state.layer, a.thread);
        // The answer to a query depends on the progress of others. There are no loops here.
        let asks = |u: usize| {
            code.threads[u].acts[state.threads[u].pc..]
                .iter()
                .any(|a| matches!(a, Act::Status { .. }))
        };
        let free = free && !(0..state.threads.len()).any(|u| u != a.thread && asks(u));
        free && !acquire && loc < 128 && reach.all(|r| r >> loc & 1 == 0)
    };
    match actions.iter().find(alone) {
        Some(&only) => vec![only],
        None => actions,
    }
}
