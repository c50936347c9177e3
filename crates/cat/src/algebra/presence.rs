//! Whether sets and relations can have members at all, given which leaves can: what a program says
//! of every execution of it, before it has events.
//!
//! # Invariants
//! - Sound: what is `false` is empty in every execution. What `\` takes away is not looked at.

use super::RelAlgebra;
use crate::model::ir::Axiom;

/// The algebra: a set or relation is `true` if it may have members.
#[derive(Clone, Copy, Debug)]
pub struct Presence;

impl Presence {
    /// Whether a flag can be raised, if its node may have members or not.
    pub fn may_raise(flag: &Axiom, members: bool) -> bool {
        // What has no members is empty, irreflexive and acyclic.
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
