//! Decides whether two terms are equal, by their sums of reads.
//!
//! The values of a sum of many reads are too many to list, and their bits make a large circuit. But
//! addition, and multiplication by constants, commute with the remainder by a power of two. So a
//! term is the sum of a constant and of multiples of other terms, modulo two to the number of bits
//! compared. If the difference of two terms has no multiple left, its constant decides.
//!
//! # Invariants
//! - An operation in a type with fewer bits than compared is opaque: it loses upper bits.
//! - Each term is taken apart once, the later ones first: operands have smaller ids.

use std::collections::BTreeMap;

use crate::skeleton::pool::{Term, TermId, TermPool};
use program::BinOp;

/// Whether two terms have equal remainders by two to the power of `bits` in every execution, or in
/// none; `None` if that depends on reads.
pub(crate) fn are_equal(pool: &TermPool, bits: u32, a: TermId, b: TermId) -> Option<bool> {
    let mask = u64::MAX >> (64 - bits);
    let mut constant = 0u64;
    let mut open: BTreeMap<TermId, u64> = BTreeMap::new();
    let add = |open: &mut BTreeMap<TermId, u64>, term: TermId, by: u64| {
        let sum = open.entry(term).or_default();
        *sum = sum.wrapping_add(by);
    };
    add(&mut open, a, 1);
    add(&mut open, b, u64::MAX);
    while let Some((term, by)) = open.pop_last() {
        if by & mask == 0 {
            continue;
        }
        match pool.term(term) {
            Term::Const(v) => constant = constant.wrapping_add(by.wrapping_mul(v as u64)),
            Term::Cast(ty, x) if u32::from(ty.bits) >= bits => add(&mut open, x, by),
            Term::Bin(op, ty, x, y) if u32::from(ty.bits) >= bits => {
                let factor = |t: TermId| pool.as_const(t).map(|v| by.wrapping_mul(v as u64));
                match (op, factor(x), factor(y)) {
                    (BinOp::Add, ..) => {
                        add(&mut open, x, by);
                        add(&mut open, y, by);
                    }
                    (BinOp::Sub, ..) => {
                        add(&mut open, x, by);
                        add(&mut open, y, by.wrapping_neg());
                    }
                    (BinOp::Mul, _, Some(by)) => add(&mut open, x, by),
                    (BinOp::Mul, Some(by), _) => add(&mut open, y, by),
                    _ => return None,
                }
            }
            _ => return None,
        }
    }
    Some(constant & mask == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cat::rel::EventId;
    use program::Ty;

    const U16: Ty = Ty {
        bits: 16,
        signed: false,
    };

    /// A sum of reads in both orders, each times a factor.
    fn sums(pool: &mut TermPool, ty: Ty, factors: &[i64]) -> [TermId; 2] {
        let parts: Vec<TermId> = (0..factors.len())
            .map(|i| {
                let (read, factor) = (pool.read(EventId::new(i), Ty::U32), factors[i]);
                let factor = pool.constant(factor);
                pool.bin(BinOp::Mul, ty, read, factor)
            })
            .collect();
        let zero = pool.constant(0);
        let mut sum = |parts: &mut dyn Iterator<Item = &TermId>| {
            parts.fold(zero, |sum, &part| pool.bin(BinOp::Add, ty, sum, part))
        };
        [sum(&mut parts.iter()), sum(&mut parts.iter().rev())]
    }

    #[test]
    fn the_order_of_a_sum_does_not_matter() {
        let mut pool = TermPool::default();
        let [a, b] = sums(&mut pool, Ty::U32, &[1, 3, -2, 7]);
        assert_ne!(a, b);
        assert_eq!(are_equal(&pool, 32, a, b), Some(true));
        let one = pool.constant(1);
        let more = pool.bin(BinOp::Add, Ty::U32, b, one);
        assert_eq!(are_equal(&pool, 32, a, more), Some(false));
        let [other, _] = sums(&mut pool, Ty::U32, &[1, 3, -2, 8]);
        assert_eq!(are_equal(&pool, 32, a, other), None);
    }

    #[test]
    fn bits_that_an_operation_loses_stay_open() {
        let mut pool = TermPool::default();
        let [a, b] = sums(&mut pool, U16, &[1, 3, 5]);
        assert_eq!(are_equal(&pool, 16, a, b), Some(true));
        assert_eq!(are_equal(&pool, 32, a, b), None);
        // Two to the power of 16 is nothing in 16 bits.
        let [a, _] = sums(&mut pool, Ty::U32, &[1, 3]);
        let [b, _] = sums(&mut pool, Ty::U32, &[1, 3 + (1 << 16)]);
        assert_eq!(are_equal(&pool, 16, a, b), Some(true));
        assert_eq!(are_equal(&pool, 32, a, b), None);
    }
}
