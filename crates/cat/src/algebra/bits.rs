//! Evaluates a model on one candidate execution, where every cell is known.
//!
//! # Invariants
//! - Leaves and results contain executed events only, so every operator has its textbook meaning.

use super::RelAlgebra;
use crate::model::ir::Test;
use crate::rel::{EventSet, Rel};

/// The algebra of one candidate, given by the set of its executed events.
#[derive(Clone, Debug)]
pub struct Bits {
    /// The executed events.
    pub executed: EventSet,
}

impl Bits {
    /// Whether a test succeeds on a value.
    pub fn holds(&self, test: Test, value: &super::Value<EventSet, Rel>) -> bool {
        match (test, value) {
            (Test::Empty, super::Value::Set(s)) => s.is_empty(),
            (Test::Empty, super::Value::Rel(r)) => r.is_empty(),
            (Test::Irreflexive, v) => !v.rel().has_loop(&self.executed),
            (Test::Acyclic, v) => !v.rel().has_cycle(&self.executed),
        }
    }
}

impl RelAlgebra for Bits {
    type Set = EventSet;
    type Rel = Rel;

    fn empty_set(&self) -> EventSet {
        EventSet::empty(self.executed.universe_len())
    }
    fn empty_rel(&self) -> Rel {
        Rel::empty(self.executed.universe_len())
    }
    fn universe(&self) -> EventSet {
        self.executed.clone()
    }
    fn identity_on(&self, a: &EventSet) -> Rel {
        Rel::identity_on(a)
    }
    fn product(&self, a: &EventSet, b: &EventSet) -> Rel {
        Rel::product(a, b)
    }
    fn union_set(&self, a: &EventSet, b: &EventSet) -> EventSet {
        a.clone().or(b)
    }
    fn inter_set(&self, a: &EventSet, b: &EventSet) -> EventSet {
        a.clone().and(b)
    }
    fn diff_set(&self, a: &EventSet, b: &EventSet) -> EventSet {
        a.clone().minus(b)
    }
    fn union_rel(&self, a: &Rel, b: &Rel) -> Rel {
        a.clone().or(b)
    }
    fn inter_rel(&self, a: &Rel, b: &Rel) -> Rel {
        a.clone().and(b)
    }
    fn diff_rel(&self, a: &Rel, b: &Rel) -> Rel {
        a.clone().minus(b)
    }
    fn seq(&self, a: &Rel, b: &Rel) -> Rel {
        a.seq(b, &self.executed)
    }
    fn inverse(&self, a: &Rel) -> Rel {
        a.inverse()
    }
    fn plus(&self, a: &Rel) -> Rel {
        a.clone().plus(&self.executed)
    }
    fn domain(&self, a: &Rel) -> EventSet {
        a.domain(&self.executed)
    }
    fn range(&self, a: &Rel) -> EventSet {
        a.range(&self.executed)
    }
}
