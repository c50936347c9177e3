//! Finds the threads that share a group, at every level of the scope tree.
//!
//! # Invariants
//! - Two threads are in one group if [`program::Place::same`] says so. Threads are found by the
//!   numbers that their places share, not pair by pair: the time is that of their number.

use program::{Program, SCOPE_ROWS, Scope, SharedNumbers};
use rustc_hash::FxHashMap;

/// The groups of a program. The first thread of a group identifies it.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// By thread and scope: the first thread of its group.
    first: Vec<[usize; SCOPE_ROWS.len()]>,
    /// By scope and first thread: the members of the group.
    pub(super) members: Vec<Vec<Vec<usize>>>,
}

impl Groups {
    /// The groups of a program. Only its first `own` threads are members; agents merely have a
    /// place.
    pub(super) fn new(program: &Program, own: usize) -> Groups {
        let n = program.threads.len();
        let mut first = vec![[0; SCOPE_ROWS.len()]; n];
        let mut members = vec![vec![Vec::new(); n]; SCOPE_ROWS.len()];
        for (s, scope) in SCOPE_ROWS.iter().map(|row| row.scope).enumerate() {
            let mut known: FxHashMap<SharedNumbers, usize> = FxHashMap::default();
            for (t, row) in first.iter_mut().enumerate() {
                let numbers = program.threads[t].place.shared_numbers(scope);
                let group = numbers.iter().find_map(|n| known.get(n).copied());
                let group = group.unwrap_or(t);
                for number in numbers {
                    known.entry(number).or_insert(group);
                }
                row[s] = group;
                if t < own {
                    members[s][group].push(t);
                }
            }
        }
        Groups { first, members }
    }

    /// By thread: how many threads of its group come before it.
    pub(super) fn ranks(&self, scope: Scope) -> Vec<u32> {
        let mut counts: FxHashMap<usize, u32> = FxHashMap::default();
        let rank = |row: &[usize; SCOPE_ROWS.len()]| {
            let count = counts.entry(row[scope as usize]).or_default();
            *count += 1;
            *count - 1
        };
        self.first.iter().map(rank).collect()
    }

    /// The first thread of a thread's group.
    pub(super) fn of(&self, thread: usize, scope: Scope) -> usize {
        self.first[thread][scope as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use program::Place;

    /// Places that differ in each of their numbers, and in nothing.
    fn places() -> Vec<Place> {
        let at = |cta, warp| Place {
            warp,
            cluster: Some(cta / 2),
            ..Place::device(0, cta)
        };
        let plain = at(0, Some(0));
        let mut all: Vec<Place> = [
            (0, Some(0)),
            (0, Some(1)),
            (0, None),
            (1, Some(0)),
            (2, None),
        ]
        .map(|(cta, warp)| at(cta, warp))
        .into();
        for change in [
            |p: &mut Place| p.gpu = 1,
            |p: &mut Place| p.grid = 1,
            |p: &mut Place| p.domain = 1,
            |p: &mut Place| p.kernel = 1,
            |p: &mut Place| p.queue_family = 1,
            |p: &mut Place| p.cluster = None,
            |p: &mut Place| p.host = true,
        ] {
            let mut changed = plain.clone();
            change(&mut changed);
            if changed.cluster.is_none() {
                changed.cta = 7;
            }
            all.push(changed);
        }
        all
    }

    #[test]
    fn threads_share_what_makes_them_one_group() {
        let all = places();
        for row in SCOPE_ROWS {
            for (i, a) in all.iter().enumerate() {
                for (j, b) in all.iter().enumerate().filter(|(j, _)| *j != i) {
                    let numbers = b.shared_numbers(row.scope);
                    let one = a
                        .shared_numbers(row.scope)
                        .iter()
                        .any(|n| numbers.contains(n));
                    assert_eq!(one, a.same(b, row.scope), "{:?}: {i}, {j}", row.scope);
                }
            }
        }
    }
}
