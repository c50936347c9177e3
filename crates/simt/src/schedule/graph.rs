//! Which states lead where: cycles in which every thread has its turn and nobody ends.
//!
//! # What counts
//! A run that goes on for ever stays, from some point on, in a strongly connected set of states. It is *fair* if every
//! thread that may step in all of them does step in one of them. Only steps count that may be taken infinitely often: reads
//! take what nothing overwrites, and writes come last. That a weak read finds an old value for ever is told apart.
//!
//! # Sources
//! - ISO C++, *Forward progress*: atomic stores become visible to atomic loads within a reasonable amount of time; CUDA
//!   Programming Guide, *Forward progress*. Who must step is up to the layer: a thread that it holds back need not.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::Step;
use super::rounds::Ways;
use crate::memory::Age;
use crate::set::Threads;
use crate::state::Status;

/// One step from a state to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) thread: u32,
    pub(super) age: Age,
}

/// The states visited; only kept for programs with loops.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) edges: Vec<Edge>,
    /// By state: who can step.
    able: Vec<Threads>,
    /// By state: where it was reached from first, and how.
    parents: Vec<Option<(u32, Step)>>,
    /// By state: what threads do, if that was asked for.
    pub(super) stands: Vec<Vec<Status>>,
}

/// States between which a fair run may go on for ever.
#[derive(Debug)]
pub(super) struct Cycle {
    /// The state of it that was visited first.
    pub(super) first: u32,
    /// Who steps in it.
    pub(super) threads: Threads,
    /// All its states, sorted.
    pub(super) states: Vec<u32>,
}

impl Cycle {
    /// Whether another cycle is inside of this one.
    pub(super) fn has(&self, other: &Cycle) -> bool {
        self.states.binary_search(&other.first).is_ok()
    }
}

impl Graph {
    /// A state is visited for the first time.
    pub(super) fn enter(&mut self, parent: Option<(u32, Step)>) {
        self.parents.push(parent);
        self.able.push(Threads::default());
    }

    /// A step of a thread leads from one state to another.
    pub(super) fn connect(&mut self, (from, to): (u32, u32), thread: usize, age: Age) {
        self.edges.push(Edge { from, to, thread: thread as u32, age });
    }

    /// What the threads do in the state visited last.
    pub(super) fn stand(&mut self, statuses: Vec<Status>) {
        self.stands.push(statuses);
    }

    /// A thread can step in a state.
    pub(super) fn can_step(&mut self, state: u32, thread: usize) {
        self.able[state as usize].insert(thread);
    }

    /// The steps that lead to a state.
    pub(super) fn path(&self, mut state: u32) -> Vec<Step> {
        let mut path = Vec::new();
        while let Some((from, step)) = &self.parents[state as usize] {
            path.push(step.clone());
            state = *from;
        }
        path.reverse();
        path
    }

    /// The steps of at most that age that do not lead out of a cycle.
    pub(super) fn within(&self, cycle: &Cycle, oldest: Age) -> Ways {
        let inside = |s: u32| cycle.states.binary_search(&s).is_ok();
        let mut ways = Ways::default();
        for e in self.edges.iter().filter(|e| e.age <= oldest && inside(e.from) && inside(e.to)) {
            ways.entry(e.from).or_default().push((e.to, e.thread as usize));
        }
        ways
    }

    /// The cycles of steps of at most that age in which every thread has its turn, in the order in which they were reached.
    pub(super) fn fair_cycles(&self, oldest: Age) -> Vec<Cycle> {
        let edges = || self.edges.iter().filter(|e| e.age <= oldest);
        let n = self.parents.len();
        let mut graph: DiGraph<(), ()> = DiGraph::with_capacity(n, self.edges.len());
        (0..n).for_each(|_| {
            graph.add_node(());
        });
        let node = |s: u32| NodeIndex::new(s as usize);
        edges().for_each(|e| {
            graph.add_edge(node(e.from), node(e.to), ());
        });
        let sets = kosaraju_scc(&graph);
        drop(graph);
        let mut set_of = vec![0u32; n];
        for (i, set) in sets.iter().enumerate() {
            set.iter().for_each(|s| set_of[s.index()] = i as u32);
        }
        let mut steps: Vec<Option<Threads>> = vec![None; sets.len()];
        for e in edges().filter(|e| set_of[e.from as usize] == set_of[e.to as usize]) {
            steps[set_of[e.from as usize] as usize].get_or_insert_default().insert(e.thread as usize);
        }
        let mut cycles = Vec::new();
        for (set, threads) in sets.iter().zip(steps) {
            let Some(threads) = threads else { continue };
            let able = |s: &NodeIndex| &self.able[s.index()];
            let Some(first) = set.iter().map(|s| s.index() as u32).min() else { continue };
            let left_out = |&t: &usize| !threads.has(t) && set.iter().all(|s| able(s).has(t));
            if !self.able[first as usize].iter().any(|t| left_out(&t)) {
                let mut states: Vec<u32> = set.iter().map(|s| s.index() as u32).collect();
                states.sort_unstable();
                cycles.push(Cycle { first, threads, states });
            }
        }
        cycles.sort_by_key(|c| c.first);
        cycles
    }
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
        edges.iter().for_each(|&(a, b, t)| g.connect((a, b), t, Age::New));
        g
    }

    #[test]
    fn a_spin_that_another_thread_could_end_is_not_fair() {
        // Thread 0 spins in state 0; thread 1 would lead out of it.
        assert!(graph(&[(0, 0, 0), (0, 1, 1)], &[&[0, 1], &[]]).fair_cycles(Age::New).is_empty());
        // Held back, it need not step.
        let cycles = graph(&[(0, 0, 0)], &[&[0]]).fair_cycles(Age::New);
        assert_eq!((cycles.len(), cycles[0].first), (1, 0));
    }

    #[test]
    fn two_that_undo_each_other_may_go_on_for_ever() {
        let cycles = graph(&[(0, 1, 0), (1, 0, 1), (0, 2, 1)], &[&[0, 1], &[0, 1], &[]]).fair_cycles(Age::New);
        assert_eq!(cycles.len(), 1);
        assert_eq!(cycles[0].threads, [0, 1].into_iter().collect());
    }
}
