//! Every schedule: depth first over states, each visited once.
//!
//! A state is known by the fingerprint of its normal form. What commutes with everything is carried out at once
//! ([`Machine::settle`](super::Machine)), and an access to a location that no other thread can still touch is the only pick of
//! its state: all else commutes with it. (Not in loops, where others could be put off for ever, not for acquires, which
//! may have to wait, and not with early binds.)
//!
//! # Invariants
//! - The stack is on the heap; its depth is at most the limit of steps.
//! - Complete means: every state reachable from the start was visited, and no bound on the history was met.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Clock, Ended, Hazards, Limits, Observation, Outcomes, Recorded, Step};
use crate::simt::Halt;
use crate::simt::choice::Script;
use crate::simt::code::{Act, eval};
use crate::simt::layer::Layer;
use crate::simt::memory::Backend;
use crate::simt::record::{Hazard, HazardKind, Silent};
use crate::simt::step::{Action, Machine, StateOf};

/// At most so many combinations of final values of one state.
const MAX_COMBINATIONS: usize = 100_000;

/// A state on the stack, and how far its successors were visited.
struct Frame<S> {
    state: S,
    number: u32,
    actions: Vec<Action>,
    next: usize,
    script: Script,
    /// Whether some successor exists.
    alive: bool,
}

/// Which states lead where; only kept for programs with loops.
#[derive(Default)]
struct Graph {
    edges: Vec<(u32, u32)>,
    ends: Vec<u32>,
    /// By state: the state before it, and the step between.
    before: Vec<Option<(u32, Step)>>,
    /// States that have seen a race.
    races: Vec<(u32, Hazard)>,
}

impl Graph {
    /// States that lead to no end.
    fn hopeless(&self, states: usize) -> Vec<bool> {
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); states];
        self.edges.iter().for_each(|&(a, b)| before[b as usize].push(a));
        let mut hopeful = vec![false; states];
        let mut todo = self.ends.clone();
        while let Some(s) = todo.pop() {
            if !std::mem::replace(&mut hopeful[s as usize], true) {
                todo.extend(&before[s as usize]);
            }
        }
        hopeful.iter().map(|h| !h).collect()
    }

    /// The steps to a state.
    fn path(&self, mut state: u32) -> Vec<Step> {
        let mut path = Vec::new();
        while let Some((before, step)) = &self.before[state as usize] {
            path.push(step.clone());
            state = *before;
        }
        path.reverse();
        path
    }
}

/// Visits all states.
pub(super) fn explore<B: Backend, L: Layer>(
    machine: &Machine<'_, B, L>,
    start: StateOf<B, L>,
    limits: &Limits,
) -> Result<Observation, String> {
    let mut seen: FxHashMap<u128, u32> = FxHashMap::default();
    let (mut outcomes, mut ended) = (Outcomes::default(), Ended::default());
    let mut clock = Clock::new(limits.timeout);
    let (mut reason, mut whole, mut steps) = (None, true, 0u64);
    let mut graph = Graph::default();
    let mut hazards = Hazards::default();
    let mut stack: Vec<Frame<StateOf<B, L>>> = Vec::new();
    let mut path: Vec<Step> = Vec::new();
    let mut enter = Some(start);
    loop {
        if let Some(mut state) = enter.take() {
            whole &= machine.tidy(&mut state);
            let number = seen.len() as u32;
            let known = *seen.entry(machine.fingerprint(&state)).or_insert(number);
            if let (Some(from), true) = (stack.last(), machine.code.loops) {
                graph.edges.push((from.number, known));
            }
            if machine.code.loops && known == number {
                graph.before.push(stack.last().map(|f| f.number).zip(path.last().cloned()));
                let found = machine.memory.hazards(machine.code, &state.memory);
                graph.races.extend(found.into_iter().filter(|h| h.kind == HazardKind::Race).map(|h| (number, h)));
            }
            if known != number {
                path.pop();
            } else if machine.is_finished(&state) {
                finish(machine, &state, &path, &mut outcomes, (&mut ended, &mut hazards))?;
                graph.ends.push(number);
                path.pop();
            } else if stack.len() >= limits.steps {
                ended.step_limit += 1;
                reason = Some(format!("step limit: a run takes more than {} steps", limits.steps));
                graph.ends.push(number);
                path.pop();
            } else {
                let actions = picks(machine, &state);
                let script = Script::default();
                stack.push(Frame { state, number, actions, next: 0, script, alive: false });
            }
        }
        if seen.len() >= limits.states {
            reason = Some(format!("state limit: more than {} states", limits.states));
            break;
        }
        if clock.is_over() {
            reason = Some("out of time".into());
            break;
        }
        let Some(frame) = stack.last_mut() else { break };
        let Some(&action) = frame.actions.get(frame.next) else {
            if !frame.alive {
                machine.count_stuck(&frame.state, &mut ended, &mut hazards, || Recorded::of(&path));
                graph.ends.push(frame.number);
            }
            stack.pop();
            path.pop();
            continue;
        };
        let mut state = frame.state.clone();
        frame.script.rewind();
        steps += 1;
        let result = machine.step(&mut state, action, &mut frame.script, &mut Silent);
        let answers = frame.script.taken();
        if !frame.script.advance() {
            frame.next += 1;
            frame.script = Script::default();
        }
        match result {
            Ok(()) => {
                frame.alive = true;
                path.push(Step::new(action, answers));
                enter = Some(state);
            }
            Err(Halt::Refused | Halt::Blocked) => {}
            Err(halt @ (Halt::Stray { .. } | Halt::Limit(_))) => {
                frame.alive = true;
                graph.ends.push(frame.number);
                *(if matches!(halt, Halt::Limit(_)) { &mut ended.step_limit } else { &mut ended.stray }) += 1;
                reason.get_or_insert_with(|| machine.why(&halt));
            }
            Err(halt @ Halt::Unsupported(_)) => return Err(machine.why(&halt)),
        }
    }
    if !whole {
        reason.get_or_insert_with(|| "history bound: a thread wrote much that another never looked at".into());
    }
    let states = seen.len();
    drop(seen);
    if machine.code.loops && reason.is_none() {
        let hopeless = graph.hopeless(states);
        ended.livelock += hopeless.iter().filter(|h| **h).count() as u64;
        // A run that goes on for ever comes to no end, but it races all the same.
        for (state, hazard) in graph.races.iter().filter(|(state, _)| hopeless[*state as usize]) {
            hazards.add(hazard.clone(), None, || Recorded::of(&graph.path(*state)));
        }
    }
    let complete = reason.is_none();
    let outcomes = outcomes.into_list();
    Ok(Observation {
        outcomes,
        ended,
        complete,
        reason,
        states: states as u64,
        steps,
        events: Vec::new(),
        hazards: hazards.into_list(),
    })
}

/// Counts the outcomes of a finished state.
fn finish<B: Backend, L: Layer>(
    machine: &Machine<'_, B, L>,
    state: &StateOf<B, L>,
    path: &[Step],
    outcomes: &mut Outcomes,
    (ended, hazards): (&mut Ended, &mut Hazards),
) -> Result<(), String> {
    if !machine.memory.is_whole(&state.memory) {
        ended.discarded += 1;
        return Ok(());
    }
    ended.finished += 1;
    let values = machine.final_values(state);
    let all = values.iter().fold(1usize, |n, v| n.saturating_mul(v.1.len()));
    if all > MAX_COMBINATIONS {
        return Err(format!("too many outcomes: one final state has more than {MAX_COMBINATIONS}"));
    }
    let mut picks = vec![0u32; values.len()];
    let mut counted: FxHashSet<Vec<i64>> = FxHashSet::default();
    for _ in 0..all {
        let outcome = machine.outcome(state, &values, &picks);
        if counted.insert(outcome.clone()) {
            if machine.code.filtered || counted.len() == 1 {
                machine.note_hazards(state, Some(&outcome), hazards, || Recorded::of(path));
            }
            let recorded = || Recorded { finals: picks.clone(), ..Recorded::of(path) };
            outcomes.add(outcome, recorded);
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
fn picks<B: Backend, L: Layer>(machine: &Machine<'_, B, L>, state: &StateOf<B, L>) -> Vec<Action> {
    let actions = machine.actions(state);
    if machine.code.loops || actions.iter().any(|a| a.early) || machine.memory.is_pending(&state.memory) {
        return actions;
    }
    let alone = |a: &&Action| {
        let (code, thread) = (machine.code, &state.threads[a.thread]);
        let (addr, acquire) = match &code.threads[a.thread].acts[thread.pc] {
            Act::Load { addr, access, .. } | Act::Store { addr, access, .. } => (addr, access.acquire),
            Act::Rmw { addr, read, .. } => (addr, read.acquire),
            _ => return false,
        };
        let Some(cell) = code.memory.at(eval(addr, &thread.regs)) else { return false };
        let loc = code.location(cell);
        let others = (0..state.threads.len()).filter(|&u| u != a.thread);
        let mut reach = others.map(|u| code.threads[u].reach[state.threads[u].pc]);
        !acquire && loc < 128 && reach.all(|r| r >> loc & 1 == 0)
    };
    match actions.iter().find(alone) {
        Some(&only) => vec![only],
        None => actions,
    }
}
