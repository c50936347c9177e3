//! Computes which sets and relations can have members at all, given which leaves can. The result
//! holds for every execution of a program, before its events are known.
//!
//! # Invariants
//! - Sound: a value of `false` means empty in every execution. The right operand of `\` is ignored.

use super::RelAlgebra;
use crate::model::ir::Axiom;

/// The algebra: a set or relation is `true` if it may have members.
#[derive(Clone, Copy, Debug)]
pub struct Presence;

impl Presence {
    /// Whether a flag can be raised, given whether its node may have members.
    pub fn may_raise(flag: &Axiom, members: bool) -> bool {
        // A node without members is empty, irreflexive and acyclic.
        members || !flag.negated
    }
}

impl RelAlgebra for Presence {
    type Set = bool;
    type Rel = bool;

    fn empty_set(&self) -> bool {
        false
    }
    fn empty_rel(&self) -> bool {
        false
    }
    fn universe(&self) -> bool {
        true
    }
    fn identity_on(&self, a: &bool) -> bool {
        *a
    }
    fn product(&self, a: &bool, b: &bool) -> bool {
        *a && *b
    }
    fn union_set(&self, a: &bool, b: &bool) -> bool {
        *a || *b
    }
    fn inter_set(&self, a: &bool, b: &bool) -> bool {
        *a && *b
    }
    fn diff_set(&self, a: &bool, _: &bool) -> bool {
        *a
    }
    fn union_rel(&self, a: &bool, b: &bool) -> bool {
        *a || *b
    }
    fn inter_rel(&self, a: &bool, b: &bool) -> bool {
        *a && *b
    }
    fn diff_rel(&self, a: &bool, _: &bool) -> bool {
        *a
    }
    fn seq(&self, a: &bool, b: &bool) -> bool {
        *a && *b
    }
    fn inverse(&self, a: &bool) -> bool {
        *a
    }
    fn plus(&self, a: &bool) -> bool {
        *a
    }
    fn domain(&self, a: &bool) -> bool {
        *a
    }
    fn range(&self, a: &bool) -> bool {
        *a
    }
}
