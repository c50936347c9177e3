//! Defines functions that compute an integer from others: those of OpenCL C and of CUDA's math
//! library.
//!
//! # Invariants
//! - Operands are in registers, or are constants: the results use them several times.
//!
//! # Sources
//! - OpenCL C, *Integer Functions*; CUDA Math API, *Integer Intrinsics*.
//!
//! # Where we differ
//! - OpenCL C leaves `mul24` of operands with more than 24 bits to implementations; here it acts as
//!   in CUDA.

use crate::isa::bits::unsigned;
use program::{BinOp, CmpOp, Expr, Ty};

/// A function of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Computed {
    /// The smaller or the larger of two operands.
    Min,
    Max,
    /// The first operand, limited below by the second and above by the third.
    Clamp,
    /// A rotation to the left.
    Rotate,
    /// The distance of two operands, unsigned.
    Distance,
    /// The distance plus a third operand.
    DistanceAnd,
    /// Half of the sum, rounded down or up.
    HalfSum(bool),
    /// The sum or difference, limited to the range of the type.
    Saturated(BinOp),
    /// The upper half of the product; the second adds a third operand.
    Upper,
    UpperAnd,
    /// The product of the lowest 24 bits; the second adds a third operand.
    Low,
    LowAnd,
    /// The bits of the second operand where the third has ones, else those of the first.
    BitSelect,
    /// The upper or lower half of two joined words after a shift. The shift is at most 32, or
    /// modulo 32.
    Funnel {
        left: bool,
        clamped: bool,
    },
}

fn bin(op: BinOp, ty: Ty, a: &Expr, b: &Expr) -> Expr {
    Expr::Bin(op, ty, a.clone().into(), b.clone().into())
}

pub(super) fn select(cond: Expr, a: Expr, b: Expr) -> Expr {
    Expr::Select(cond.into(), a.into(), b.into())
}

pub(super) fn cmp(op: CmpOp, ty: Ty, a: &Expr, b: &Expr) -> Expr {
    Expr::Cmp(op, ty, a.clone().into(), b.clone().into())
}

/// The least and the greatest value of a type.
pub(super) fn limits(ty: Ty) -> (i64, i64) {
    match (ty.signed, ty.bits) {
        (true, bits) => (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits)),
        (false, 64) => (0, -1),
        (false, bits) => (0, (1 << bits) - 1),
    }
}

fn n(n: i64) -> Expr {
    Expr::Const(n)
}

/// The distance of two operands, unsigned.
fn distance(ty: Ty, a: &Expr, b: &Expr) -> Expr {
    let bits = unsigned(ty);
    let (more, less) = (bin(BinOp::Sub, bits, a, b), bin(BinOp::Sub, bits, b, a));
    select(cmp(CmpOp::Gt, ty, a, b), more, less)
}

/// The upper half of a product.
fn upper(ty: Ty, a: &Expr, b: &Expr) -> Expr {
    let wide = Ty { bits: 64, ..ty };
    let product = bin(BinOp::Mul, wide, a, b);
    let half = bin(BinOp::Shr, wide, &product, &n(i64::from(ty.bits)));
    Expr::Cast(ty, half.into())
}

/// The lowest 24 bits.
fn low(ty: Ty, of: &Expr) -> Expr {
    bin(BinOp::Shr, ty, &bin(BinOp::Shl, ty, of, &n(8)), &n(8))
}

/// `a` after a rotation to the left by `b`.
fn rotated(ty: Ty, a: &Expr, b: &Expr) -> Expr {
    use BinOp::{And, Or, Shl, Shr, Sub};
    let (bits, width) = (unsigned(ty), i64::from(ty.bits));
    let last = n(width - 1);
    let by = bin(And, bits, b, &last);
    let back = bin(And, bits, &bin(Sub, bits, &n(width), &by), &last);
    let a = Expr::Cast(bits, a.clone().into());
    let (left, right) = (bin(Shl, bits, &a, &by), bin(Shr, bits, &a, &back));
    Expr::Cast(ty, bin(Or, bits, &left, &right).into())
}

/// A sum or difference, limited to the range of the type.
fn saturated(op: BinOp, ty: Ty, a: &Expr, b: &Expr) -> Expr {
    use BinOp::{Add, And, Xor};
    let (least, most) = limits(ty);
    let result = bin(op, ty, a, b);
    if ty.signed {
        // The sign bit is set on overflow. A sum overflows if both operands have the other sign.
        let other = if op == Add {
            bin(Xor, ty, b, &result)
        } else {
            bin(Xor, ty, a, b)
        };
        let wrong = bin(And, ty, &bin(Xor, ty, a, &result), &other);
        let nearest = select(cmp(CmpOp::Lt, ty, a, &n(0)), n(least), n(most));
        select(cmp(CmpOp::Lt, ty, &wrong, &n(0)), nearest, result)
    } else if op == Add {
        select(cmp(CmpOp::Lt, ty, &result, a), n(most), result)
    } else {
        select(cmp(CmpOp::Lt, ty, a, b), n(0), result)
    }
}

/// Half of the joined words `b` and `a` after a shift: the upper one to the left, else the lower.
fn funnelled(ty: Ty, a: &Expr, b: &Expr, by: &Expr, left: bool) -> Expr {
    use BinOp::{Or, Shl, Shr};
    let wide = Ty::U64;
    let joined = bin(Or, wide, &bin(Shl, wide, b, &n(32)), a);
    let shifted = match left {
        true => bin(Shr, wide, &bin(Shl, wide, &joined, by), &n(32)),
        false => bin(Shr, wide, &joined, by),
    };
    Expr::Cast(ty, shifted.into())
}

impl Computed {
    /// The result for operands of type `ty`, and its type.
    pub(super) fn of(self, ty: Ty, all: &[Expr]) -> (Expr, Ty) {
        use BinOp::{Add, And, Max, Min, Mul, Or, Shr, Sub, Xor};
        let operand = |at: usize| all.get(at).cloned().unwrap_or(Expr::Const(0));
        let (a, b, c) = (operand(0), operand(1), operand(2));
        let bits = unsigned(ty);
        let value = match self {
            Computed::Min => bin(Min, ty, &a, &b),
            Computed::Max => bin(Max, ty, &a, &b),
            Computed::Clamp => bin(Min, ty, &bin(Max, ty, &a, &b), &c),
            Computed::Rotate => rotated(ty, &a, &b),
            Computed::Distance => return (distance(ty, &a, &b), bits),
            Computed::DistanceAnd => return (bin(Add, bits, &distance(ty, &a, &b), &c), bits),
            Computed::HalfSum(false) => bin(
                Add,
                ty,
                &bin(And, ty, &a, &b),
                &bin(Shr, ty, &bin(Xor, ty, &a, &b), &n(1)),
            ),
            Computed::HalfSum(true) => bin(
                Sub,
                ty,
                &bin(Or, ty, &a, &b),
                &bin(Shr, ty, &bin(Xor, ty, &a, &b), &n(1)),
            ),
            Computed::Saturated(op) => saturated(op, ty, &a, &b),
            Computed::Upper => upper(ty, &a, &b),
            Computed::UpperAnd => bin(Add, ty, &upper(ty, &a, &b), &c),
            Computed::Low => bin(Mul, ty, &low(ty, &a), &low(ty, &b)),
            Computed::LowAnd => bin(Add, ty, &bin(Mul, ty, &low(ty, &a), &low(ty, &b)), &c),
            Computed::BitSelect => {
                let first = bin(And, ty, &a, &bin(Xor, ty, &c, &n(-1)));
                bin(Or, ty, &first, &bin(And, ty, &b, &c))
            }
            Computed::Funnel { left, clamped } => {
                let by = if clamped {
                    bin(Min, ty, &c, &n(32))
                } else {
                    bin(And, ty, &c, &n(31))
                };
                funnelled(ty, &a, &b, &by, left)
            }
        };
        (value, ty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::clike::types::fold;

    /// The result of a function, calculated with more bits than any operand has.
    fn exact(does: Computed, ty: Ty, [a, b, c]: [i64; 3]) -> Option<i128> {
        let wide = |n: i64| {
            if ty.signed {
                i128::from(n)
            } else {
                i128::from(n as u64)
            }
        };
        let (a, b, c) = (wide(a), wide(b), wide(c));
        let bits = u32::from(ty.bits);
        let (least, most) = if ty.signed {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        } else {
            (0, (1 << bits) - 1)
        };
        let upper = |a: i128, b: i128| (a * b) >> bits;
        let low = |n: i128| {
            if ty.signed {
                i128::from((n as i32) << 8 >> 8)
            } else {
                n & 0xff_ffff
            }
        };
        let joined = |n: u32| ((b as u128) << 32 | a as u128) >> n;
        Some(match does {
            Computed::Min => a.min(b),
            Computed::Max => a.max(b),
            Computed::Clamp if b > c => return None,
            Computed::Clamp => a.clamp(b, c),
            Computed::Rotate => {
                let (field, by) = (
                    a as u128 & ((1 << bits) - 1),
                    b.rem_euclid(i128::from(bits)) as u32,
                );
                (field << by | field >> (bits - by)) as i128
            }
            Computed::Distance => (a - b).abs(),
            Computed::DistanceAnd => (a - b).abs() + c,
            Computed::HalfSum(up) => (a + b + i128::from(up)) >> 1,
            Computed::Saturated(BinOp::Add) => (a + b).clamp(least, most),
            Computed::Saturated(_) => (a - b).clamp(least, most),
            Computed::Upper | Computed::UpperAnd if bits > 32 => return None,
            Computed::Upper => upper(a, b),
            Computed::UpperAnd => upper(a, b) + c,
            Computed::Low | Computed::LowAnd if bits != 32 => return None,
            Computed::Low => low(a) * low(b),
            Computed::LowAnd => low(a) * low(b) + c,
            Computed::BitSelect => (a & !c) | (b & c),
            Computed::Funnel { .. } if bits != 32 || ty.signed => return None,
            Computed::Funnel { left, clamped } => {
                let by = if clamped { c.min(32) } else { c & 31 } as u32;
                joined(if left { 32 - by } else { by }) as i128
            }
        })
    }

    #[test]
    fn functions_give_what_exact_arithmetic_gives() {
        let functions = [
            Computed::Min,
            Computed::Max,
            Computed::Clamp,
            Computed::Rotate,
            Computed::Distance,
            Computed::DistanceAnd,
            Computed::HalfSum(false),
            Computed::HalfSum(true),
            Computed::Saturated(BinOp::Add),
            Computed::Saturated(BinOp::Sub),
            Computed::Upper,
            Computed::UpperAnd,
            Computed::Low,
            Computed::LowAnd,
            Computed::BitSelect,
            Computed::Funnel {
                left: true,
                clamped: false,
            },
            Computed::Funnel {
                left: true,
                clamped: true,
            },
            Computed::Funnel {
                left: false,
                clamped: false,
            },
            Computed::Funnel {
                left: false,
                clamped: true,
            },
        ];
        let mut compared = 0;
        for (bits, signed) in [8, 16, 32, 64]
            .into_iter()
            .flat_map(|bits| [(bits, true), (bits, false)])
        {
            let ty = Ty { bits, signed };
            let (least, most) = limits(ty);
            let all = [
                0,
                1,
                2,
                7,
                31,
                33,
                100,
                -1,
                -2,
                -5,
                least,
                least + 1,
                most,
                most - 1,
                0x5a5a_5a5a,
                0x1234_5678_9abc,
            ];
            let all: Vec<i64> = all.into_iter().map(|n: i64| ty.wrap(n)).collect();
            for does in functions {
                for (a, b, c) in all.iter().flat_map(|a| {
                    all.iter()
                        .flat_map(move |b| [1i64, 3, 40, -7, 0x7f].map(|c| (a, b, c)))
                }) {
                    let given = [*a, *b, ty.wrap(c)];
                    let Some(exact) = exact(does, ty, given) else {
                        continue;
                    };
                    let (value, of) = does.of(ty, &given.map(Expr::Const));
                    assert_eq!(
                        fold(&value).map(|n| of.wrap(n)),
                        Some(of.wrap(exact as i64)),
                        "{does:?} {ty:?} {given:?}"
                    );
                    compared += 1;
                }
            }
        }
        assert!(compared > 100_000, "{compared}");
    }
}
