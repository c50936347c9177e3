//! Computes hashes of a model's nodes for one program. If all hashes of two models' tests are
//! equal, the models are equivalent for that program.
//!
//! # Invariants
//! - Sound except for hash collisions: nodes with equal numbers have equal values in every
//!   execution in which the leaves declared empty are empty. Members of fixpoints get distinct
//!   numbers without analysis.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::RelAlgebra;

/// The algebra: a set or relation is a number; 0 is the empty one.
#[derive(Clone, Copy, Debug)]
pub struct HashAlgebra;

/// The hash of an operator and its operands.
pub fn number(of: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    of.hash(&mut hasher);
    // Mixes the bits: the hasher's low bits are weak.
    let n = hasher.finish();
    (n ^ (n >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1
}

fn union(a: u64, b: u64) -> u64 {
    match (a, b) {
        (0, x) | (x, 0) => x,
        (a, b) if a == b => a,
        (a, b) => number(("|", a.min(b), a.max(b))),
    }
}

fn inter(a: u64, b: u64) -> u64 {
    match (a, b) {
        (0, _) | (_, 0) => 0,
        (a, b) if a == b => a,
        (a, b) => number(("&", a.min(b), a.max(b))),
    }
}

fn diff(a: u64, b: u64) -> u64 {
    match (a, b) {
        (a, 0) => a,
        (a, b) if a == b => 0,
        (0, _) => 0,
        (a, b) => number(("\\", a, b)),
    }
}

fn both(name: &str, a: u64, b: u64) -> u64 {
    if a == 0 || b == 0 {
        0
    } else {
        number((name, a, b))
    }
}

fn one(name: &str, a: u64) -> u64 {
    if a == 0 { 0 } else { number((name, a)) }
}

impl RelAlgebra for HashAlgebra {
    type Set = u64;
    type Rel = u64;

    fn empty_set(&self) -> u64 {
        0
    }
    fn empty_rel(&self) -> u64 {
        0
    }
    fn universe(&self) -> u64 {
        number("_")
    }
    fn identity_on(&self, a: &u64) -> u64 {
        one("[]", *a)
    }
    fn product(&self, a: &u64, b: &u64) -> u64 {
        both("*", *a, *b)
    }
    fn union_set(&self, a: &u64, b: &u64) -> u64 {
        union(*a, *b)
    }
    fn inter_set(&self, a: &u64, b: &u64) -> u64 {
        inter(*a, *b)
    }
    fn diff_set(&self, a: &u64, b: &u64) -> u64 {
        diff(*a, *b)
    }
    fn union_rel(&self, a: &u64, b: &u64) -> u64 {
        union(*a, *b)
    }
    fn inter_rel(&self, a: &u64, b: &u64) -> u64 {
        inter(*a, *b)
    }
    fn diff_rel(&self, a: &u64, b: &u64) -> u64 {
        diff(*a, *b)
    }
    fn seq(&self, a: &u64, b: &u64) -> u64 {
        both(";", *a, *b)
    }
    fn inverse(&self, a: &u64) -> u64 {
        one("^-1", *a)
    }
    fn plus(&self, a: &u64) -> u64 {
        one("+", *a)
    }
    fn domain(&self, a: &u64) -> u64 {
        one("domain", *a)
    }
    fn range(&self, a: &u64) -> u64 {
        one("range", *a)
    }
}
