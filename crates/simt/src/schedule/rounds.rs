//! Finds the round of a livelock: steps that lead from a state back to it, in which every thread of
//! the cycle has its turn.
//!
//! The graph of states stores the thread and the ends of each step, but not its choices: this file
//! finds them again by trying.
//!
//! # Invariants
//! - A round is made of steps that the exploration took, and ends in the state that it began in.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::ScheduleStep;
use super::graph::Cycle;
use crate::memory::Backend;
use crate::state::MachineState;
use crate::step::{Action, Machine};

/// Longer rounds are not shown.
const MAX_STEPS: usize = 200;

/// A round of a cycle, from its first state; `None` if it takes too many steps.
pub(super) fn round<B: Backend>(
    machine: &Machine<'_, B>,
    mut state: MachineState<B>,
    ways: &Ways,
    cycle: &Cycle,
    seen: &FxHashMap<u128, u32>,
) -> Option<Vec<ScheduleStep>> {
    machine.tidy(&mut state);
    let mut steps = Vec::new();
    for (to, thread) in walk(ways, cycle)? {
        let (step, next) = step_to(machine, &state, thread, |fingerprint| {
            seen.get(&fingerprint) == Some(&to)
        })?;
        steps.push(step);
        state = next;
    }
    Some(steps)
}

/// For each state: the next states, and the threads that step there.
pub(super) type Ways = FxHashMap<u32, Vec<(u32, usize)>>;

/// A closed walk from the first state of a cycle in which each of its threads steps.
fn walk(ways: &Ways, cycle: &Cycle) -> Option<Vec<(u32, usize)>> {
    let (mut walk, mut at) = (Vec::new(), cycle.first);
    let mut left: Vec<usize> = cycle.threads.iter().collect();
    while !left.is_empty() {
        walk.extend(shortest(ways, at, |_, thread| left.contains(&thread))?);
        at = walk.last().map_or(at, |&(to, _): &(u32, usize)| to);
        left.retain(|t| !walk.iter().any(|(_, thread)| thread == t));
    }
    if at != cycle.first {
        walk.extend(shortest(ways, at, |to, _| to == cycle.first)?);
    }
    (walk.len() <= MAX_STEPS).then_some(walk)
}

/// The shortest walk from a state to a step that is wanted.
fn shortest(
    ways: &Ways,
    from: u32,
    wanted: impl Fn(u32, usize) -> bool,
) -> Option<Vec<(u32, usize)>> {
    let mut before: FxHashMap<u32, (u32, usize)> = FxHashMap::default();
    let mut todo = VecDeque::from([from]);
    while let Some(state) = todo.pop_front() {
        for &(to, thread) in ways.get(&state).into_iter().flatten() {
            if wanted(to, thread) {
                let (mut walk, mut at) = (vec![(to, thread)], state);
                while at != from {
                    let (earlier, thread) = before[&at];
                    walk.push((at, thread));
                    at = earlier;
                }
                walk.reverse();
                return Some(walk);
            }
            if to != from && !before.contains_key(&to) {
                before.insert(to, (state, thread));
                todo.push_back(to);
            }
        }
    }
    None
}

/// A step of a thread to a wanted state, identified by its fingerprint.
fn step_to<B: Backend>(
    machine: &Machine<'_, B>,
    state: &MachineState<B>,
    thread: usize,
    is_wanted: impl Fn(u128) -> bool,
) -> Option<(ScheduleStep, MachineState<B>)> {
    let action = Action {
        thread,
        early: false,
    };
    machine.ways(state, action).find_map(|(answers, next, _)| {
        let mut next = next.ok()?;
        machine.tidy(&mut next);
        is_wanted(machine.fingerprint(&next)).then(|| (ScheduleStep::new(action, answers), next))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_a_step_of_every_thread_and_comes_back() {
        let ways: Ways = [
            (0, vec![(1, 0)]),
            (1, vec![(0, 1), (2, 0)]),
            (2, vec![(0, 2)]),
        ]
        .into_iter()
        .collect();
        let cycle = |threads: &[usize]| Cycle {
            first: 0,
            threads: threads.iter().copied().collect(),
            states: vec![0, 1, 2],
        };
        assert_eq!(walk(&ways, &cycle(&[0, 1])), Some(vec![(1, 0), (0, 1)]));
        assert_eq!(
            walk(&ways, &cycle(&[0, 1, 2])),
            Some(vec![(1, 0), (0, 1), (1, 0), (2, 0), (0, 2)])
        );
        assert_eq!(walk(&ways, &cycle(&[3])), None);
    }
}
