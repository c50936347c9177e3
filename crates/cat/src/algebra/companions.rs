//! Events that execute whenever another event does.
//!
//! A cell speaks of two events given that both execute. So a path between two events may lead over
//! an open event, if one of its ends brings that event along. For example, all threads of a block
//! pass a barrier together: behind it, events of the block order each other, although none of them
//! surely executes.
//!
//! # Invariants
//! - Sound: if the ends of an added pair execute, so does the event in the middle.
//! - [`Companions::closed`] is a fixpoint: another round adds no pair.

use crate::rel::{EventSet, Rel};

/// By event: the events that execute whenever it does.
#[derive(Debug, PartialEq)]
pub struct Companions {
    of: Rel,
    /// The inverse: by event, the events that bring it along.
    by: Rel,
}

impl Companions {
    /// Takes the pairs `(i, k)` where `k` executes whenever `i` does.
    pub fn new(of: Rel) -> Self {
        Companions {
            by: of.inverse(),
            of,
        }
    }

    /// Whether `k` executes whenever `i` does.
    pub(super) fn brings(&self, i: usize, k: usize) -> bool {
        self.of.has(i, k)
    }

    /// Adds the pairs of `a ; b` over an event of `open` that an end brings along.
    pub(super) fn sequence(&self, mut all: Rel, a: &Rel, b: &Rel, open: &EventSet) -> Rel {
        for i in 0..a.universe_len() {
            let middle = a.successors(i).filter(|&k| open.has(k));
            middle.for_each(|k| self.lead(&mut all, i, k, b.row(k)));
        }
        all
    }

    /// Adds paths over events of `open` that an end brings along, until there are no more.
    ///
    /// The relation is closed over the events that must execute, and stays so. If an end `i` of an
    /// added pair must execute, it brings no open event along; so the other end does, and serves
    /// the events before `i`, too.
    pub(super) fn closed(&self, mut all: Rel, open: &EventSet) -> Rel {
        loop {
            let before = all.clone();
            for k in open.iter() {
                let row = all.row(k).to_vec();
                if row.iter().any(|&word| word != 0) {
                    for i in 0..all.universe_len() {
                        if all.has(i, k) {
                            self.lead(&mut all, i, k, &row);
                        }
                    }
                }
            }
            if all == before {
                return all;
            }
        }
    }

    /// Adds the pairs of `i` over `k`, which has these successors.
    fn lead(&self, all: &mut Rel, i: usize, k: usize, row: &[u64]) {
        if self.of.has(i, k) {
            all.add_to_row(i, row.iter().copied());
        } else {
            let brought = row.iter().zip(self.by.row(k)).map(|(a, b)| a & b);
            all.add_to_row(i, brought);
        }
    }
}
