//! The textbook evaluator: relations are sets of pairs, operators follow their definitions.
//!
//! It is the oracle for the other algebras and shares no code with them.

use std::collections::BTreeSet;

use cat::algebra::{RelAlgebra, Value};
use cat::model::ir::Test;

/// A relation.
pub(crate) type Pairs = BTreeSet<(usize, usize)>;
/// A set.
pub(crate) type Members = BTreeSet<usize>;

/// The algebra of one candidate: its executed events.
#[derive(Clone, Debug)]
pub(crate) struct Naive {
    pub(crate) executed: Members,
}

impl Naive {
    /// Whether a test succeeds.
    pub(crate) fn holds(&self, test: Test, value: &Value<Members, Pairs>) -> bool {
        match (test, value) {
            (Test::Empty, Value::Set(s)) => s.is_empty(),
            (Test::Empty, Value::Rel(r)) => r.is_empty(),
            (Test::Irreflexive, v) => v.rel().iter().all(|(a, b)| a != b),
            (Test::Acyclic, v) => self.plus(v.rel()).iter().all(|(a, b)| a != b),
        }
    }
}

impl RelAlgebra for Naive {
    type Set = Members;
    type Rel = Pairs;

    fn empty_set(&self) -> Members {
        Members::new()
    }
    fn empty_rel(&self) -> Pairs {
        Pairs::new()
    }
    fn universe(&self) -> Members {
        self.executed.clone()
    }
    fn identity_on(&self, a: &Members) -> Pairs {
        a.iter().map(|&e| (e, e)).collect()
    }
    fn product(&self, a: &Members, b: &Members) -> Pairs {
        a.iter()
            .flat_map(|&x| b.iter().map(move |&y| (x, y)))
            .collect()
    }
    fn union_set(&self, a: &Members, b: &Members) -> Members {
        a | b
    }
    fn inter_set(&self, a: &Members, b: &Members) -> Members {
        a & b
    }
    fn diff_set(&self, a: &Members, b: &Members) -> Members {
        a - b
    }
    fn union_rel(&self, a: &Pairs, b: &Pairs) -> Pairs {
        a | b
    }
    fn inter_rel(&self, a: &Pairs, b: &Pairs) -> Pairs {
        a & b
    }
    fn diff_rel(&self, a: &Pairs, b: &Pairs) -> Pairs {
        a - b
    }
    fn seq(&self, a: &Pairs, b: &Pairs) -> Pairs {
        let joins =
            |&(x, y): &(usize, usize)| b.iter().filter(move |p| p.0 == y).map(move |p| (x, p.1));
        a.iter().flat_map(joins).collect()
    }
    fn inverse(&self, a: &Pairs) -> Pairs {
        a.iter().map(|&(x, y)| (y, x)).collect()
    }
    /// The union of all powers.
    fn plus(&self, a: &Pairs) -> Pairs {
        let mut all = a.clone();
        loop {
            let longer = &all | &self.seq(&all, a);
            if longer == all {
                return all;
            }
            all = longer;
        }
    }
    fn domain(&self, a: &Pairs) -> Members {
        a.iter().map(|p| p.0).collect()
    }
    fn range(&self, a: &Pairs) -> Members {
        a.iter().map(|p| p.1).collect()
    }
}
