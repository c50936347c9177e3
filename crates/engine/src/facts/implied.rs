//! Defines the facts that the axioms of a model imply before solving. Each pass fills one field.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::skeleton::images::Values;
use cat::rel::Rel;

/// The facts that the axioms imply. They hold for queries that include all axioms.
#[derive(Clone, Debug)]
pub(crate) struct Implied {
    /// Pairs of a write and a read that may access the same memory, but where the read never reads
    /// from the write.
    pub(crate) never: Rel,
    /// The sums of atomics at one location.
    pub(crate) sums: Vec<Sum>,
    /// The results for mbarrier objects with many operations.
    pub(crate) objects: ObjectResults,
}

impl Implied {
    /// No fact about this number of events.
    pub(crate) fn nothing(events: usize) -> Implied {
        Implied {
            never: Rel::empty(events),
            sums: Vec::new(),
            objects: ObjectResults::default(),
        }
    }

    /// Whether no fact narrows any value.
    pub(crate) fn is_empty(&self) -> bool {
        self.never.is_empty() && self.sums.is_empty() && self.objects.words.is_empty()
    }
}

/// The read half and the write half of an operation.
pub(crate) type Halves = (usize, usize);

/// Atomics that add to one location.
#[derive(Clone, Debug)]
pub(crate) struct Sum {
    /// The write that they start from.
    pub(crate) start: usize,
    /// The atomics.
    pub(crate) members: Vec<Halves>,
}

/// The results for mbarrier objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectResults {
    /// By read half: the words that it can find.
    pub(crate) words: BTreeMap<usize, Values>,
    /// By object: a possible order of its operations, each with the write before it and the word
    /// that it finds.
    pub(crate) runs: Vec<Vec<ObjectTurn>>,
    /// By write half: the phase in which it falls, if it falls in only one.
    pub(crate) phases: FxHashMap<usize, i64>,
    /// Pairs of operations in which the first comes before the second if both write, because its
    /// phase is earlier.
    pub(crate) before: Vec<(Halves, Halves)>,
}

/// An operation, the write before it, and the word that it finds.
pub(crate) type ObjectTurn = (Halves, usize, i64);
