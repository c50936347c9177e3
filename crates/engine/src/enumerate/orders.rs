//! Builds partial orders: each keeps the pairs that it must contain and those that it may contain.
//!
//! # Invariants
//! - `must` is transitive inside `within` and irreflexive; no pair of `may` contradicts it.

use cat::rel::{EventSet, Rel};

/// The bounds of one free order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OrderBounds {
    pub(super) must: Rel,
    pub(super) may: Rel,
    within: Rel,
}

impl OrderBounds {
    /// The declared bounds, over events that execute. `None` if they contradict each other.
    pub(super) fn new(
        within: Rel,
        containing: Option<Rel>,
        executed: &EventSet,
    ) -> Option<OrderBounds> {
        let within = within.restricted(executed);
        let mut may = within.clone();
        for i in executed.iter() {
            may.remove(i, i);
        }
        let n = within.universe_len();
        let mut order = OrderBounds {
            must: Rel::empty(n),
            may,
            within,
        };
        if let Some(c) = containing {
            for (i, j) in c.restricted(executed).iter() {
                if !order.must.has(i, j) && !order.require(i, j) {
                    return None;
                }
            }
        }
        Some(order)
    }

    /// The size of `must` and `may`, in words.
    pub(super) fn size(&self) -> usize {
        let n = self.must.universe_len();
        2 * n * n.div_ceil(64)
    }

    /// Inserts a pair, and all pairs that follow by transitivity. False if that is impossible.
    pub(super) fn require(&mut self, i: usize, j: usize) -> bool {
        let mut todo = vec![(i, j)];
        while let Some((i, j)) = todo.pop() {
            if self.must.has(i, j) {
                continue;
            }
            if i == j || !self.may.has(i, j) {
                return false;
            }
            self.must.insert(i, j);
            self.may.remove(j, i);
            let after: Vec<usize> = self.must.successors(j).collect();
            let n = self.must.universe_len();
            for k in after {
                if self.within.has(i, k) {
                    todo.push((i, k));
                } else if i == k {
                    return false;
                }
            }
            for k in 0..n {
                if self.must.has(k, i) {
                    if self.within.has(k, j) {
                        todo.push((k, j));
                    } else if k == j {
                        return false;
                    }
                }
            }
        }
        // A pair that would close a cycle with `must` is impossible.
        true
    }

    /// Excludes a pair. False if the order must contain it.
    pub(super) fn exclude(&mut self, i: usize, j: usize) -> bool {
        if self.must.has(i, j) {
            return false;
        }
        self.may.remove(i, j);
        true
    }

    /// The first pair that is neither required nor excluded.
    pub(super) fn first_open(&self) -> Option<(usize, usize)> {
        self.may.clone().minus(&self.must).iter().next()
    }
}
