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
    /// The bit of the first operand with the number of the second, which is less than the third,
    /// or undefined.
    Bit,
    /// The upper or lower half of two joined words after a shift. The shift is at most 32, or
    /// modulo 32.
    Funnel {
        left: bool,
        clamped: bool,
    },
    /// Four bytes of two words, by the lower three bits of each half byte of the third operand.
    Permute,
    /// An operation on each part of a word. The number is the bits of a part.
    Parts(PartOp, u8),
    /// The sum of the products of the four bytes, plus a third operand.
    Dot,
}

/// An operation on parts of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartOp {
    /// The lowest bits of the result of an operation.
    Plain(BinOp),
    /// The same of signed parts.
    Signed(BinOp),
    /// All ones where the comparison holds.
    Compare(CmpOp),
    /// The same of signed parts.
    CompareSigned(CmpOp),
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
    if ty.bits == 64 {
        return upper_of_words(ty, a, b);
    }
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
        let [a, b, c] = [0, 1, 2].map(|at| all.get(at).cloned().unwrap_or(Expr::Const(0)));
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
            Computed::Bit => bin(And, ty, &bin(Shr, ty, &a, &b), &n(1)),
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
            Computed::Permute => permuted(&a, &b, &c),
            Computed::Parts(does, width) => on_parts(does, width, &a, &b),
            Computed::Dot => {
                let byte = Ty { bits: 8, ..ty };
                let product = |at: i64| {
                    let [a, b] = [&a, &b].map(|word| part(word, at * 8, byte));
                    let [a, b] = [a, b].map(|part| Expr::Cast(ty, part.into()));
                    bin(Mul, ty, &a, &b)
                };
                (0..4).fold(c.clone(), |sum, at| bin(Add, ty, &sum, &product(at)))
            }
        };
        (value, ty)
    }
}

/// The upper half of a product of 128 bits: of the products of halves, with their carries.
fn upper_of_words(ty: Ty, a: &Expr, b: &Expr) -> Expr {
    use BinOp::{Add, Mul, Sub};
    let of = Ty::U64;
    fn low(word: &Expr) -> Expr {
        bin(BinOp::And, Ty::U64, word, &Expr::Const(0xffff_ffff))
    }
    fn high(word: &Expr) -> Expr {
        bin(BinOp::Shr, Ty::U64, word, &Expr::Const(32))
    }
    let cross = bin(
        Add,
        of,
        &bin(Mul, of, &high(a), &low(b)),
        &high(&bin(Mul, of, &low(a), &low(b))),
    );
    let middle = bin(Add, of, &bin(Mul, of, &low(a), &high(b)), &low(&cross));
    let product = bin(Mul, of, &high(a), &high(b));
    let upper = bin(
        Add,
        of,
        &bin(Add, of, &product, &high(&cross)),
        &high(&middle),
    );
    if !ty.signed {
        return upper;
    }
    // As an unsigned number, a negative factor is larger by `2^bits`.
    let lost = [(a, b), (b, a)].map(|(x, y)| select(cmp(CmpOp::Lt, ty, x, &n(0)), y.clone(), n(0)));
    let upper = lost
        .iter()
        .fold(upper, |upper, lost| bin(Sub, of, &upper, lost));
    Expr::Cast(ty, upper.into())
}

/// The part of a word that begins at a bit.
fn part(word: &Expr, from: i64, of: Ty) -> Expr {
    let shifted = bin(
        BinOp::Shr,
        Ty::U32,
        &unsigned_word(word),
        &Expr::Const(from),
    );
    Expr::Cast(of, shifted.into())
}

fn unsigned_word(word: &Expr) -> Expr {
    Expr::Cast(Ty::U32, word.clone().into())
}

/// The bytes of two joined words in another order (CUDA Math API, `__byte_perm`).
fn permuted(a: &Expr, b: &Expr, selector: &Expr) -> Expr {
    use BinOp::{And, Or, Shl, Shr};
    let high = bin(Shl, Ty::U64, &unsigned_word(b), &n(32));
    let joined = bin(Or, Ty::U64, &high, &unsigned_word(a));
    let all = (0..4).fold(n(0), |all, at| {
        let digit = bin(Shr, Ty::U32, selector, &n(4 * at));
        let index = bin(And, Ty::U32, &digit, &n(7));
        let shift = bin(Shl, Ty::U32, &index, &n(3));
        let byte = bin(And, Ty::U64, &bin(Shr, Ty::U64, &joined, &shift), &n(255));
        bin(Or, Ty::U64, &all, &bin(Shl, Ty::U64, &byte, &n(8 * at)))
    });
    Expr::Cast(Ty::U32, all.into())
}

/// An operation on each part of two words (CUDA Math API, *SIMD Intrinsics*).
fn on_parts(does: PartOp, width: u8, a: &Expr, b: &Expr) -> Expr {
    let (signed, mask) = match does {
        PartOp::Plain(_) | PartOp::Compare(_) => (false, (1 << width) - 1),
        PartOp::Signed(_) | PartOp::CompareSigned(_) => (true, (1 << width) - 1),
    };
    let of = Ty {
        bits: width,
        signed,
    };
    let starts = (0..32).step_by(usize::from(width));
    starts.fold(Expr::Const(0), |all, from| {
        let [a, b] = [a, b].map(|word| part(word, from, of));
        let value = match does {
            PartOp::Plain(op) | PartOp::Signed(op) => bin(op, of, &a, &b),
            PartOp::Compare(op) | PartOp::CompareSigned(op) => {
                select(cmp(op, of, &a, &b), Expr::Const(mask), Expr::Const(0))
            }
        };
        let value = bin(BinOp::And, Ty::U32, &value, &Expr::Const(mask));
        let placed = bin(BinOp::Shl, Ty::U32, &value, &Expr::Const(from));
        bin(BinOp::Or, Ty::U32, &all, &placed)
    })
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
        let upper = |a: i128, b: i128| match ty.signed {
            true => (a * b) >> bits,
            false => ((a as u128 * b as u128) >> bits) as i128,
        };
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
            Computed::Upper => upper(a, b),
            Computed::UpperAnd => upper(a, b) + c,
            Computed::Low | Computed::LowAnd if bits != 32 => return None,
            Computed::Low => low(a) * low(b),
            Computed::LowAnd => low(a) * low(b) + c,
            Computed::BitSelect => (a & !c) | (b & c),
            Computed::Bit if !(0..i128::from(bits)).contains(&b) => return None,
            Computed::Bit => (a >> b) & 1,
            Computed::Funnel { .. } if bits != 32 || ty.signed => return None,
            Computed::Funnel { left, clamped } => {
                let by = if clamped { c.min(32) } else { c & 31 } as u32;
                joined(if left { 32 - by } else { by }) as i128
            }
            Computed::Permute | Computed::Parts(..) if bits != 32 || ty.signed => return None,
            Computed::Permute => {
                let bytes = [(a as u32).to_le_bytes(), (b as u32).to_le_bytes()].concat();
                let byte = |at: u32| bytes[(c as u32 >> (4 * at)) as usize & 7];
                i128::from(u32::from_le_bytes([0, 1, 2, 3].map(byte)))
            }
            Computed::Parts(op, width) => {
                let all = (0..32).step_by(usize::from(width));
                let mask = (1i128 << width) - 1;
                all.fold(0, |all, from| {
                    let value = exact_part(op, width, [(a >> from) & mask, (b >> from) & mask]);
                    all | (value & mask) << from
                })
            }
            Computed::Dot if bits != 32 => return None,
            Computed::Dot => {
                let byte = |n: i128, at: usize| match (n as u32).to_le_bytes()[at] {
                    byte if ty.signed => i128::from(byte as i8),
                    byte => i128::from(byte),
                };
                (0..4).map(|at| byte(a, at) * byte(b, at)).sum::<i128>() + c
            }
        })
    }

    /// The result for two parts.
    fn exact_part(op: PartOp, width: u8, parts: [i128; 2]) -> i128 {
        let signed = parts.map(|n| {
            let sign = 1 << (width - 1);
            (n ^ sign) - sign
        });
        let (does, [a, b]) = match op {
            PartOp::Plain(_) | PartOp::Compare(_) => (op, parts),
            PartOp::Signed(_) | PartOp::CompareSigned(_) => (op, signed),
        };
        let holds = match does {
            PartOp::Plain(op) | PartOp::Signed(op) => {
                return match op {
                    BinOp::Add => a + b,
                    BinOp::Sub => a - b,
                    BinOp::Min => a.min(b),
                    _ => a.max(b),
                };
            }
            PartOp::Compare(op) | PartOp::CompareSigned(op) => match op {
                CmpOp::Eq => a == b,
                CmpOp::Ne => a != b,
                CmpOp::Lt => a < b,
                CmpOp::Le => a <= b,
                CmpOp::Gt => a > b,
                CmpOp::Ge => a >= b,
            },
        };
        if holds { -1 } else { 0 }
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
            Computed::Bit,
            Computed::Permute,
            Computed::Parts(PartOp::Plain(BinOp::Add), 8),
            Computed::Parts(PartOp::Plain(BinOp::Sub), 16),
            Computed::Parts(PartOp::Signed(BinOp::Min), 8),
            Computed::Parts(PartOp::Plain(BinOp::Max), 8),
            Computed::Parts(PartOp::Compare(CmpOp::Eq), 8),
            Computed::Parts(PartOp::CompareSigned(CmpOp::Gt), 16),
            Computed::Parts(PartOp::Compare(CmpOp::Gt), 8),
            Computed::Dot,
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
