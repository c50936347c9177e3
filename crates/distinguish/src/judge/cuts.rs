//! Cuts of a program: the parts that execute for each result of branches and compare-exchanges. A
//! program is defined if all its cuts are.
//!
//! # Invariants
//! - An execution of the whole program is an execution of exactly one cut: the cut with the same
//!   results of branches.

use crate::outcome::ShapeOutcome;
use crate::shape::{InstrKind, ProgramShape};

/// The executed part of a program if some of its branches end their threads and some of its
/// compare-exchanges fail.
pub(super) struct Cut {
    pub(super) shape: ProgramShape,
    /// The numbers of its instructions in the whole program.
    pub(super) kept: Vec<usize>,
    /// Its branches and compare-exchanges, each with its result: the thread continues, or the
    /// exchange writes.
    pub(super) branches: Vec<(usize, bool)>,
}

impl Cut {
    /// Whether reading `read` gives the results of this cut, if branches test for the values in
    /// `asked`. This works since all written values differ.
    pub(super) fn shows(&self, read: &ShapeOutcome, asked: &ShapeOutcome) -> bool {
        self.branches.iter().all(|&(at, goes_on)| {
            let source = read.sources[at].map(|w| self.kept[usize::from(w)]);
            (source == asked.sources[self.kept[at]].map(usize::from)) == goes_on
        })
    }
}

/// The whole program, and its cuts by branches and compare-exchanges.
pub(super) fn cuts(
    shape: &ProgramShape,
    branches: impl Fn(usize) -> bool,
    compares: impl Fn(usize) -> bool,
) -> Vec<Cut> {
    let mut all = vec![Cut {
        shape: ProgramShape {
            threads: Vec::new(),
        },
        kept: Vec::new(),
        branches: Vec::new(),
    }];
    let mut first = 0;
    for slots in &shape.threads {
        let branching: Vec<usize> = (0..slots.len() - 1)
            .filter(|i| branches(first + i))
            .collect();
        let ends = branching.iter().map(|i| i + 1).chain([slots.len()]);
        all = ends
            .flat_map(|end| {
                all.iter()
                    .map(|before| {
                        let (mut shape, mut kept) = (before.shape.clone(), before.kept.clone());
                        let mut known = before.branches.clone();
                        let here = branching.iter().filter(|i| **i < end);
                        known.extend(here.map(|i| (kept.len() + i, i + 1 < end)));
                        shape.threads.push(slots[..end].to_vec());
                        kept.extend(first..first + end);
                        Cut {
                            shape,
                            kept,
                            branches: known,
                        }
                    })
                    .collect::<Vec<Cut>>()
            })
            .collect();
        first += slots.len();
    }
    all.into_iter()
        .flat_map(|cut| fail(cut, &compares))
        .collect()
}

/// The cuts in which some compare-exchanges fail and only read.
fn fail(cut: Cut, compares: impl Fn(usize) -> bool) -> Vec<Cut> {
    let comparing: Vec<usize> = (0..cut.kept.len())
        .filter(|&at| compares(cut.kept[at]))
        .collect();
    let mut all = vec![cut];
    for at in comparing {
        let with = |cut: Cut, found: bool| {
            let Cut {
                mut shape,
                kept,
                mut branches,
            } = cut;
            if !branches.contains(&(at, found)) {
                branches.push((at, found));
            }
            if !found {
                let slots = shape.threads.iter_mut().flatten();
                slots
                    .skip(at)
                    .take(1)
                    .for_each(|slot| slot.kind = InstrKind::Read);
            }
            Cut {
                shape,
                kept,
                branches,
            }
        };
        all = all
            .into_iter()
            .flat_map(|cut| {
                // A branch after the compare-exchange fixes its result.
                let known = cut
                    .branches
                    .iter()
                    .find(|branch| branch.0 == at)
                    .map(|branch| branch.1);
                let Cut {
                    shape,
                    kept,
                    branches,
                } = cut;
                [true, false]
                    .into_iter()
                    .filter(move |found| known.is_none_or(|known| known == *found))
                    .map(move |found| {
                        with(
                            Cut {
                                shape: shape.clone(),
                                kept: kept.clone(),
                                branches: branches.clone(),
                            },
                            found,
                        )
                    })
            })
            .collect();
    }
    all
}
