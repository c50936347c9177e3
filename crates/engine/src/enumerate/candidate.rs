//! Defines candidates under construction: the decisions so far, and the facts that follow from
//! them.

use std::rc::Rc;

use super::orders::OrderBounds;
use crate::eval::Assignment;
use cat::algebra::Values;
use cat::algebra::bounds::{Bound, Bounds};
use cat::rel::Rel;
use program::memory::CellId;

/// Why a search ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchStop {
    /// The deadline has passed.
    Time,
    /// The steps are used up.
    Steps,
    /// A value that depends on itself has no listed domain.
    Values,
    /// The search begins again, in the order that it learnt.
    Again,
    /// The orders of the decisions take too much memory.
    Room,
}

/// A sorted set of pairs; it stays small.
#[derive(Clone, Default)]
struct PairSet(Vec<(usize, usize)>);

impl PairSet {
    fn has(&self, a: usize, b: usize) -> bool {
        self.0.binary_search(&(a, b)).is_ok()
    }

    fn insert(&mut self, a: usize, b: usize) {
        if let Err(place) = self.0.binary_search(&(a, b)) {
            self.0.insert(place, (a, b));
        }
    }
}

/// The known facts about operations that follow each other.
#[derive(Clone, Default)]
pub(super) struct Chains {
    /// Pairs of a read and a write that it does not read from.
    barred: PairSet,
    /// Pairs of writes in the order of their location.
    ordered: PairSet,
    /// Pairs of writes that were tested and may be in either order.
    either: PairSet,
}

impl Chains {
    /// Whether a read does not read from a write.
    pub(super) fn bars(&self, r: usize, w: usize) -> bool {
        self.barred.has(r, w)
    }

    /// Records that a read does not read from a write.
    pub(super) fn bar(&mut self, r: usize, w: usize) {
        self.barred.insert(r, w);
    }

    /// Whether a read is barred from some write.
    pub(super) fn bars_any(&self, r: usize) -> bool {
        let place = self.barred.0.partition_point(|pair| pair.0 < r);
        self.barred.0.get(place).is_some_and(|pair| pair.0 == r)
    }

    /// Whether the order of two writes is known, or known to be open.
    pub(super) fn is_tested(&self, a: usize, b: usize) -> bool {
        self.ordered.has(a, b) || self.ordered.has(b, a) || self.either.has(a, b)
    }

    /// Records that two writes may be in either order.
    pub(super) fn keep_open(&mut self, a: usize, b: usize) {
        self.either.insert(a, b);
    }

    /// Pairs of writes, the earlier one first.
    pub(super) fn ordered(&self) -> impl Iterator<Item = (usize, usize)> {
        self.ordered.0.iter().copied()
    }

    pub(super) fn put_before(&mut self, a: usize, b: usize) {
        let before: Vec<usize> = self
            .ordered()
            .filter(|pair| pair.1 == a)
            .map(|pair| pair.0)
            .collect();
        before
            .into_iter()
            .chain([a])
            .for_each(|earlier| self.ordered.insert(earlier, b));
    }
}

/// The next decision.
pub(super) enum Next {
    /// None: the candidate cannot be completed.
    Nothing,
    /// Which of these reads reads from the write; possibly none.
    Of(usize, Vec<usize>),
    /// The source of this read.
    Read(usize),
    /// The source of any other read.
    Any,
}

/// The decisions so far about sources, values and choices.
#[derive(Clone)]
pub(super) struct PartialCandidate {
    pub(super) known: Assignment,
    /// By event: the source of a read.
    pub(super) source: Vec<Option<usize>>,
    /// Reads with an address without memory, which return 0 without a source.
    pub(super) astray: Vec<bool>,
    /// The known facts about read-modify-writes that follow each other.
    pub(super) chains: Chains,
}

impl PartialCandidate {
    /// Whether a read waits for its source.
    pub(super) fn is_open(&self, r: usize) -> bool {
        self.source[r].is_none() && !self.astray[r]
    }
}

/// The facts about events that follow from the decisions.
pub(super) struct EventFacts {
    /// Events that surely and possibly execute.
    pub(super) algebra: Bounds,
    /// By event: the memory that it accesses, as in [`Eval::memory`].
    pub(super) memory: Vec<Option<Option<CellId>>>,
}

impl EventFacts {
    /// Whether an access surely executes at a known location.
    pub(super) fn is_sure(&self, event: usize) -> bool {
        self.algebra.must.has(event) && self.at(event).is_some()
    }

    /// The location of an access, if it is known and exists.
    pub(super) fn at(&self, event: usize) -> Option<CellId> {
        self.memory[event].flatten()
    }
}

/// Values that depend only on executed events and on open base cells.
pub(super) struct StaticValues {
    pub(super) algebra: Bounds,
    /// The known values of [`Facts::open`].
    pub(super) open: Vec<Option<bool>>,
    /// Values of static nodes.
    pub(super) values: Values<Bounds>,
    /// Free relations with their declared bounds.
    pub(super) free: Vec<Bound<Rel>>,
}

/// A candidate with everything decided except the orders.
pub(super) struct SettledCandidate {
    pub(super) partial: PartialCandidate,
    pub(super) known: Rc<StaticValues>,
    /// The values relation.
    pub(super) reads_from: Rel,
    pub(super) covering: Vec<Option<Rel>>,
}

/// The decisions about the orders of a [`SettledCandidate`] candidate.
#[derive(Clone)]
pub(super) struct OrderChoices {
    pub(super) orders: Vec<Option<OrderBounds>>,
    /// The last writes of the first of the required cells.
    pub(super) finals: Vec<(CellId, usize)>,
}

impl OrderChoices {
    /// The size of the orders, in words.
    pub(super) fn size(&self) -> usize {
        self.orders.iter().flatten().map(OrderBounds::size).sum()
    }
}
