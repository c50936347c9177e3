//! Races in runs that never end: which states lead to no end, whatever the threads do.
//!
//! A run that goes on for ever has no outcome, but it races all the same; that of a run that ends is known at its end.
//! Fairness plays no part: models count executions that spin, however unlucky.

use crate::record::Hazard;

/// States of a program with loops: which lead where, which are ends, which have seen a race.
#[derive(Debug, Default)]
pub(super) struct Spins {
    pub(super) edges: Vec<(u32, u32)>,
    pub(super) ends: Vec<u32>,
    pub(super) races: Vec<(u32, Hazard)>,
}

impl Spins {
    /// The races seen in states that lead to no end.
    pub(super) fn endless(self, states: usize) -> impl Iterator<Item = (u32, Hazard)> {
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); states];
        self.edges.iter().for_each(|&(a, b)| before[b as usize].push(a));
        let mut hopeful = vec![false; states];
        let mut todo = self.ends;
        while let Some(s) = todo.pop() {
            if !std::mem::replace(&mut hopeful[s as usize], true) {
                todo.extend(&before[s as usize]);
            }
        }
        self.races.into_iter().filter(move |(state, _)| !hopeful[*state as usize])
    }
}
