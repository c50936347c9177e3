//! The values of the numbers in memory, as far as they are known.
//!
//! # Invariants
//! - Of memory with more than [`MOST_REMEMBERED`] numbers, all are unknown.

use std::ops::Range;
use std::rc::Rc;

/// Larger memory keeps no values.
const MOST_REMEMBERED: usize = 1 << 18;

/// The value of each number in memory; `None`: it may be any.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CellValues(Rc<Vec<Option<i64>>>);

impl CellValues {
    /// So many numbers of one value.
    pub(super) fn all(value: Option<i64>, count: usize) -> CellValues {
        let count = if count > MOST_REMEMBERED { 0 } else { count };
        CellValues(Rc::new(vec![value; count]))
    }

    pub(super) fn get(&self, cell: usize) -> Option<i64> {
        self.0.get(cell).copied().flatten()
    }

    /// Whether the first number, if there is one, is 0.
    pub(super) fn begin_with_zero(&self) -> bool {
        self.0.first() == Some(&Some(0))
    }

    pub(super) fn set(&mut self, cell: usize, value: Option<i64>) {
        if self.0.get(cell).is_some_and(|old| *old != value) {
            Rc::make_mut(&mut self.0)[cell] = value;
        }
    }

    pub(super) fn fill(&mut self, value: Option<i64>) {
        *self = CellValues::all(value, self.0.len());
    }

    /// Lets some of the numbers have any value.
    pub(super) fn forget(&mut self, cells: Range<usize>) {
        let count = self.0.len();
        let known = Rc::make_mut(&mut self.0);
        known[cells.start.min(count)..cells.end.min(count)].fill(None);
    }

    /// Changes how many numbers there are.
    pub(super) fn resize(&mut self, count: usize) {
        let count = if count > MOST_REMEMBERED { 0 } else { count };
        Rc::make_mut(&mut self.0).resize(count, None);
    }

    /// Forgets the values that `other` does not have; whether there was one.
    pub(super) fn keep_common(&mut self, other: &CellValues) -> bool {
        let mut changed = false;
        if Rc::ptr_eq(&self.0, &other.0) {
            return false;
        }
        for (old, new) in Rc::make_mut(&mut self.0).iter_mut().zip(other.0.iter()) {
            if old != new && old.is_some() {
                *old = None;
                changed = true;
            }
        }
        changed
    }

    /// The values that are remembered.
    pub(super) fn remembered(&self) -> &[Option<i64>] {
        &self.0
    }
}
