//! The graph of states: finds cycles in which every thread has its turn and none ends.
//!
//! # Fairness
//! From some point on, a run that goes on forever stays in a strongly connected set of states. It
//! is *fair* if every thread that may step in all of them steps in one of them. Only steps that can
//! happen infinitely often count: reads take writes that nothing overwrites, and writes come last.
//! Runs in which a weak read finds an old value forever are reported separately.
//!
//! # Sources
//! - ISO C++, *Forward progress*: atomic stores become visible to atomic loads within a reasonable
//!   amount of time; CUDA Programming Guide, *Forward progress*. The layer decides which threads
//!   must step: a thread that it holds back need not.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::ScheduleStep;
use super::rounds::Ways;
use crate::memory::Age;
use crate::record::RunHazard;
use crate::set::Set;
use crate::thread::ThreadStatus;

/// One step from a state to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct StateEdge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) thread: u32,
    pub(super) age: Age,
}

/// The states visited; only kept for programs with loops.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) edges: Vec<StateEdge>,
    /// By state: the threads that can step.
    able: Vec<Set>,
    /// By state: the first state that led to it, and the step.
    parents: Vec<Option<(u32, ScheduleStep)>>,
    /// By state: the status of each thread, if an option requests that.
    pub(super) stands: Vec<Vec<ThreadStatus>>,
    /// States in which a run has ended.
    pub(super) ends: Vec<u32>,
    /// Races, and the states that have seen them.
    pub(super) races: Vec<(u32, RunHazard)>,
}

/// States between which a fair run may continue forever.
#[derive(Debug)]
pub(super) struct Cycle {
    /// The state of the cycle that was visited first.
    pub(super) first: u32,
    /// The threads that step in it.
    pub(super) threads: Set,
    /// All its states, sorted.
    pub(super) states: Vec<u32>,
}

impl Cycle {
    /// Whether another cycle is inside this one.
    pub(super) fn has(&self, other: &Cycle) -> bool {
        self.states.binary_search(&other.first).is_ok()
    }
}

impl Graph {
    /// A state is visited for the first time.
    pub(super) fn enter(&mut self, parent: Option<(u32, ScheduleStep)>) {
        self.parents.push(parent);
        self.able.push(Set::default());
    }

    /// A step of a thread leads from one state to another.
    pub(super) fn connect(&mut self, from: u32, to: u32, thread: usize, age: Age) {
        self.edges.push(StateEdge {
            from,
            to,
            thread: thread as u32,
            age,
        });
    }

    /// Records the status of each thread in the state visited last.
    pub(super) fn stand(&mut self, statuses: Vec<ThreadStatus>) {
        self.stands.push(statuses);
    }

    /// A thread can step in a state.
    pub(super) fn can_step(&mut self, state: u32, thread: usize) {
        self.able[state as usize].insert(thread);
    }

    /// Races in states from which no end is reachable. A run that goes on forever has no outcome,
    /// but its races count. Fairness does not matter: models count all executions that spin.
    pub(super) fn endless_races(&mut self) -> Vec<(u32, RunHazard)> {
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); self.parents.len()];
        self.edges
            .iter()
            .for_each(|e| before[e.to as usize].push(e.from));
        let mut hopeful = vec![false; self.parents.len()];
        let mut todo = std::mem::take(&mut self.ends);
        while let Some(s) = todo.pop() {
            if !std::mem::replace(&mut hopeful[s as usize], true) {
                todo.extend(&before[s as usize]);
            }
        }
        self.races.retain(|(state, _)| !hopeful[*state as usize]);
        std::mem::take(&mut self.races)
    }

    /// The steps that lead to a state.
    pub(super) fn path(&self, mut state: u32) -> Vec<ScheduleStep> {
        let mut path = Vec::new();
        while let Some((from, step)) = &self.parents[state as usize] {
            path.push(step.clone());
            state = *from;
        }
        path.reverse();
        path
    }

    /// The steps of at most that age that stay inside a cycle.
    pub(super) fn within(&self, cycle: &Cycle, oldest: Age) -> Ways {
        let inside = |s: u32| cycle.states.binary_search(&s).is_ok();
        let mut ways = Ways::default();
        for e in self
            .edges
            .iter()
            .filter(|e| e.age <= oldest && inside(e.from) && inside(e.to))
        {
            ways.entry(e.from)
                .or_default()
                .push((e.to, e.thread as usize));
        }
        ways
    }

    /// The cycles of steps of at most that age in which every thread has its turn, in the order of
    /// their discovery.
    pub(super) fn fair_cycles(&self, oldest: Age) -> Vec<Cycle> {
        let edges = || self.edges.iter().filter(|e| e.age <= oldest);
        let (sets, set_of) = components(self.parents.len(), edges().map(|e| (e.from, e.to)));
        let mut steps: Vec<Option<Set>> = vec![None; sets.len()];
        for e in edges().filter(|e| set_of[e.from as usize] == set_of[e.to as usize]) {
            steps[set_of[e.from as usize] as usize]
                .get_or_insert_default()
                .insert(e.thread as usize);
        }
        let mut cycles = Vec::new();
        for (set, threads) in sets.into_iter().zip(steps) {
            let Some(threads) = threads else { continue };
            let first = set[0];
            if !self.able[first as usize]
                .iter()
                .any(|t| !threads.has(t) && set.iter().all(|&s| self.able[s as usize].has(t)))
            {
                cycles.push(Cycle {
                    first,
                    threads,
                    states: set,
                });
            }
        }
        cycles.sort_by_key(|c| c.first);
        cycles
    }
}

/// The strongly connected sets of the numbers below `n`, each sorted, and for each number the index
/// of its set.
pub(super) fn components(
    n: usize,
    edges: impl Iterator<Item = (u32, u32)>,
) -> (Vec<Vec<u32>>, Vec<u32>) {
    let mut graph: DiGraph<(), ()> = DiGraph::with_capacity(n, edges.size_hint().0);
    (0..n).for_each(|_| {
        graph.add_node(());
    });
    edges.for_each(|(a, b)| {
        graph.add_edge(NodeIndex::new(a as usize), NodeIndex::new(b as usize), ());
    });
    let mut set_of = vec![0; n];
    let mut sets: Vec<Vec<u32>> = Vec::new();
    for set in kosaraju_scc(&graph) {
        set.iter()
            .for_each(|s| set_of[s.index()] = sets.len() as u32);
        let mut set: Vec<u32> = set.into_iter().map(|s| s.index() as u32).collect();
        set.sort_unstable();
        sets.push(set);
    }
    (sets, set_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(u32, u32, usize)], able: &[&[usize]]) -> Graph {
        let mut g = Graph::default();
        for (s, threads) in able.iter().enumerate() {
            g.enter(None);
            threads.iter().for_each(|&t| g.can_step(s as u32, t));
        }
        edges
            .iter()
            .for_each(|&(a, b, t)| g.connect(a, b, t, Age::New));
        g
    }

    #[test]
    fn a_spin_that_another_thread_could_end_is_not_fair() {
        // Thread 0 spins in state 0; thread 1 would lead out of it.
        assert!(
            graph(&[(0, 0, 0), (0, 1, 1)], &[&[0, 1], &[]])
                .fair_cycles(Age::New)
                .is_empty()
        );
        // A thread that is held back need not step.
        let cycles = graph(&[(0, 0, 0)], &[&[0]]).fair_cycles(Age::New);
        assert_eq!((cycles.len(), cycles[0].first), (1, 0));
    }

    #[test]
    fn two_that_undo_each_other_may_go_on_for_ever() {
        let cycles = graph(&[(0, 1, 0), (1, 0, 1), (0, 2, 1)], &[&[0, 1], &[0, 1], &[]])
            .fair_cycles(Age::New);
        assert_eq!(cycles.len(), 1);
        assert_eq!(cycles[0].threads, [0, 1].into_iter().collect());
    }
}
