//! Ranges of numbers in steps: an abstract domain for addresses and indices.
//!
//! # Invariants
//! - The result of an operation contains the results for all numbers of its operands. Numbers stay
//!   within their types: wrapping is not followed.
//! - Ranges end at a bound that is far outside of each object.

use std::collections::HashSet;

use program::{BinOp, Ty};

/// The numbers from `first` to `last` in steps of `step`; for a single number, `step` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Range {
    first: i64,
    last: i64,
    step: i64,
}

/// The bound for addresses and indices; unbounded ranges end here.
const FAR: i64 = 1 << 40;
impl Range {
    pub(super) const ANY: Range = Range {
        first: -FAR,
        last: FAR,
        step: 1,
    };
    pub(super) const BIT: Range = Range {
        first: 0,
        last: 1,
        step: 1,
    };

    pub(super) fn one(n: i64) -> Range {
        Range {
            first: n,
            last: n,
            step: 0,
        }
    }

    fn new(first: i64, last: i64, step: i64) -> Range {
        if first == last {
            Range::one(first)
        } else {
            Range {
                first,
                last,
                step: step.max(1),
            }
            .bounded()
        }
    }

    /// The range cut to the bounds, with the same step.
    fn bounded(self) -> Range {
        let Range { first, last, step } = self;
        let first = if first < -FAR {
            -FAR + (first.rem_euclid(step) - (-FAR).rem_euclid(step)).rem_euclid(step)
        } else {
            first
        };
        let last = if last > FAR {
            FAR - (FAR - first).rem_euclid(step)
        } else {
            last
        };
        if first < last {
            Range { first, last, step }
        } else {
            Range::ANY
        }
    }

    pub(super) fn is_one(self) -> Option<i64> {
        (self.step == 0).then_some(self.first)
    }

    /// The smallest range that contains both.
    pub(super) fn or(self, other: Range) -> Range {
        let apart = gcd(gcd(self.step, other.step), self.first - other.first);
        Range::new(
            self.first.min(other.first),
            self.last.max(other.last),
            apart,
        )
    }

    /// The range extended without end in the directions in which `later` exceeds it.
    pub(super) fn widened(self, later: Range) -> Range {
        let both = self.or(later);
        let step = both.step.max(1);
        let first = if later.first < self.first {
            both.first - (FAR + both.first).max(0) / step * step
        } else {
            both.first
        };
        let last = if later.last > self.last {
            both.last + (FAR - both.last).max(0) / step * step
        } else {
            both.last
        };
        Range::new(first, last, both.step)
    }

    pub(super) fn times(self, by: i64) -> Range {
        let (a, b) = (self.first.saturating_mul(by), self.last.saturating_mul(by));
        let step = self.step.saturating_mul(by).saturating_abs();
        Range::new(a.min(b), a.max(b), step)
    }

    pub(super) fn plus(self, other: Range) -> Range {
        match (self.is_one(), other.is_one()) {
            (Some(a), Some(b)) => Range::one(a.wrapping_add(b)),
            _ => Range::new(
                self.first.saturating_add(other.first),
                self.last.saturating_add(other.last),
                gcd(self.step, other.step),
            ),
        }
    }

    /// The largest power of 2 that divides all numbers of the range.
    fn unit(self) -> i64 {
        1 << gcd(self.first, self.step).max(1).trailing_zeros().min(40)
    }

    /// Multiples of `unit` from 0 to the largest number with as many bits as `most`.
    fn bits(most: i64, unit: i64) -> Range {
        let most = (most as u64 + 1).next_power_of_two() as i64 - 1;
        Range::new(0, most / unit * unit, unit)
    }

    /// Applies an operation to two ranges. At least one of them is no constant.
    pub(super) fn apply(op: BinOp, ty: Ty, a: Range, b: Range) -> Range {
        let either = op.is_free_of_order() || op == BinOp::Mul;
        let (a, b) = if either && b.is_one().is_none() {
            (b, a)
        } else {
            (a, b)
        };
        let (low, high) = (a.first.min(b.first), a.last.max(b.last));
        match (op, b.is_one()) {
            (BinOp::Add, _) => a.plus(b),
            (BinOp::Sub, _) => a.plus(b.times(-1)),
            (BinOp::Mul, Some(by)) => a.times(by),
            (BinOp::Shl, Some(by)) if (0..40).contains(&by) => a.times(1 << by),
            (BinOp::Shr, Some(by)) if (0..40).contains(&by) && (ty.signed || a.first >= 0) => {
                let step = if a.unit() % (1 << by) == 0 {
                    a.step >> by
                } else {
                    1
                };
                Range::new(a.first >> by, a.last >> by, step)
            }
            (BinOp::Div, Some(by)) if by > 0 && a.first >= 0 => {
                let exact = a.first % by == 0 && a.step % by == 0;
                Range::new(
                    a.first / by,
                    a.last / by,
                    if exact { a.step / by } else { 1 },
                )
            }
            (BinOp::Rem, Some(by)) if by > 0 && a.first >= 0 => {
                if a.last < by {
                    a
                } else {
                    Range::new(0, by - 1, 1).stepping(gcd(a.step, by), a.first)
                }
            }
            (BinOp::Rem, Some(by)) if by > 0 => Range::new(1 - by, by - 1, 1),
            (BinOp::And, Some(mask)) => a.masked(Ty { signed: true, ..ty }.wrap(mask)),
            // These bits are 0 in all numbers of the other range, so the operation is an addition.
            (BinOp::Or | BinOp::Xor, Some(bits)) if (0..a.unit()).contains(&bits) => a.plus(b),
            (BinOp::Or | BinOp::Xor, _) if low >= 0 && high < FAR => {
                Range::bits(high, a.unit().min(b.unit()))
            }
            (BinOp::Min, _) => Range::new(
                low,
                a.last.min(b.last),
                gcd(gcd(a.step, b.step), a.first - b.first),
            ),
            (BinOp::Max, _) => Range::new(
                a.first.max(b.first),
                high,
                gcd(gcd(a.step, b.step), a.first - b.first),
            ),
            _ => Range::ANY,
        }
    }

    fn masked(self, mask: i64) -> Range {
        let unit = 1i64 << mask.trailing_zeros().min(40);
        match mask {
            0 => Range::one(0),
            // A mask of the high bits rounds down to a multiple.
            mask if mask < 0 && -mask == unit => {
                let step = if self.step % unit == 0 {
                    self.step
                } else {
                    unit
                };
                Range::new(self.first & mask, self.last & mask, step)
            }
            mask if mask < 0 => Range::ANY,
            // A mask of the low bits.
            mask if (mask + 1).count_ones() == 1 => {
                if self.first >= 0 && self.last <= mask {
                    return self;
                }
                Range::new(0, mask, 1).stepping(gcd(self.step, mask + 1), self.first)
            }
            mask => Range::new(0, mask, unit),
        }
    }

    /// The numbers of the range that differ from `from` by a multiple of `step`.
    fn stepping(self, step: i64, from: i64) -> Range {
        let step = step.max(1);
        let first = self.first + (from - self.first).rem_euclid(step);
        Range::new(
            first,
            self.last - (self.last - first).rem_euclid(step),
            step,
        )
    }

    /// The range converted to a type.
    pub(super) fn cast(self, ty: Ty) -> Range {
        if let Some(n) = self.is_one() {
            return Range::one(ty.wrap(n));
        }
        if ty.wrap(self.first) == self.first && ty.wrap(self.last) == self.last || ty.bits >= 32 {
            return self;
        }
        let (least, most) = if ty.signed {
            (-1 << (ty.bits - 1), (1 << (ty.bits - 1)) - 1)
        } else {
            (0, (1 << ty.bits) - 1)
        };
        Range::new(least, most, 1).stepping(gcd(self.step, 1 << ty.bits), self.first)
    }

    /// The bytes of an object at these offsets. `apart`: the distance between copies of the object.
    pub(super) fn within(self, bytes: i64, apart: Option<i64>) -> Vec<i64> {
        if let Some(n) = self.is_one() {
            let n = apart.map_or(n, |apart| n.rem_euclid(apart));
            return Some(n)
                .filter(|n| (0..bytes).contains(n))
                .into_iter()
                .collect();
        }
        let count = (self.last - self.first) / self.step;
        match apart {
            Some(apart) if count < bytes => {
                let all: HashSet<i64> = (0..=count)
                    .map(|k| (self.first + k * self.step).rem_euclid(apart))
                    .collect();
                all.into_iter().filter(|n| (0..bytes).contains(n)).collect()
            }
            _ => {
                let step = apart
                    .map_or(self.step, |apart| gcd(self.step, apart))
                    .max(1);
                (self.first.rem_euclid(step)..bytes)
                    .step_by(step as usize)
                    .filter(|n: &i64| apart.is_some() || (self.first..=self.last).contains(n))
                    .collect()
            }
        }
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.saturating_abs(), b.saturating_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
