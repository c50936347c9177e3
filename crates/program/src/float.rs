//! Floating-point operations on bit patterns.
//!
//! # Invariants
//! - Results follow IEEE 754: the exact result ([`exact`]) is rounded once to the format of the
//!   operation.
//! - A NaN result has all bits set except the sign. PTX does not specify the bits of a NaN.
//!
//! # Sources
//! - PTX ISA 9.4: *Floating-Point Instructions*; *Half Precision Floating-Point Instructions*;
//!   *Comparison and Selection Instructions*; *Half Precision Comparison Instructions*; *cvt*.

mod exact;
#[cfg(test)]
mod tests;

use super::Ty;
use exact::Exact;
pub use exact::{Format, Rounding};

/// A floating-point operation with two operands; a unary operation ignores the second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FloatOp {
    /// Sum.
    Add(Rounding),
    /// Difference.
    Sub(Rounding),
    /// Product.
    Mul(Rounding),
    /// Quotient.
    Div(Rounding),
    /// The smaller operand; if one is NaN, the other one. -0 is smaller than +0.
    Min,
    /// The larger operand; if one is NaN, the other one.
    Max,
    /// Square root.
    Sqrt(Rounding),
    /// 1 if neither is NaN and the first is less.
    Less,
    /// 1 if neither is NaN and the first is not greater.
    LessEqual,
    /// 1 if neither is NaN and they are equal.
    Equal,
    /// 1 if one is NaN.
    Unordered,
    /// Replaces a subnormal number by a zero of its sign.
    Flush,
    /// Sum with both operands and the result flushed as by [`FloatOp::Flush`].
    AddFlush,
    /// The number rounded to an integer.
    Whole(Rounding),
    /// Conversion of a number of the format.
    To(NumberType, Rounding),
    /// Conversion of an integer to the format.
    From(Ty, Rounding),
}

/// A source or target type of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NumberType {
    /// A floating-point format.
    Float(Format),
    /// An integer type.
    Int(Ty),
}

impl FloatOp {
    /// `a op b` on bit patterns.
    pub fn apply(self, format: Format, a: i64, b: i64) -> i64 {
        let (nan, zero) = (format.is_nan(a) || format.is_nan(b), |negative| {
            if negative { format.sign() } else { 0 }
        });
        let negative = |bits| format.magnitude(bits).1;
        // Maps numbers to integers in the same order; both zeros map to 0.
        fn place(bits: i64, format: Format) -> i64 {
            match format.magnitude(bits) {
                (magnitude, true) => -magnitude,
                (magnitude, false) => magnitude,
            }
        }
        let smaller = || {
            if (place(a, format), !negative(a)) < (place(b, format), !negative(b)) {
                (a, b)
            } else {
                (b, a)
            }
        };
        fn flush(bits: i64, format: Format) -> i64 {
            if format.is_subnormal(bits) {
                bits & format.sign()
            } else {
                bits
            }
        }
        match self {
            FloatOp::Less => i64::from(!nan && place(a, format) < place(b, format)),
            FloatOp::LessEqual => i64::from(!nan && place(a, format) <= place(b, format)),
            FloatOp::Equal => i64::from(!nan && place(a, format) == place(b, format)),
            FloatOp::Unordered => i64::from(nan),
            FloatOp::Flush => flush(a, format),
            FloatOp::AddFlush => flush(
                FloatOp::Add(Rounding::Nearest).apply(format, flush(a, format), flush(b, format)),
                format,
            ),
            FloatOp::Min | FloatOp::Max if nan => match (format.is_nan(a), format.is_nan(b)) {
                (true, true) => format.nan(),
                (true, false) => b,
                _ => a,
            },
            FloatOp::Min => smaller().0,
            FloatOp::Max => smaller().1,
            FloatOp::From(ty, rounding) => {
                let v = ty.wrap(a);
                let (negative, size) = if ty.signed {
                    (v < 0, v.unsigned_abs())
                } else {
                    (false, v as u64)
                };
                format.bits_of(
                    &Exact {
                        negative,
                        size: size.into(),
                        exponent: 0,
                        more: false,
                    },
                    rounding,
                )
            }
            FloatOp::To(NumberType::Int(ty), rounding) => to_integer(format, ty, rounding, a),
            FloatOp::To(NumberType::Float(to), rounding) => match format.exact(a) {
                Some(v) => to.bits_of(&v, rounding),
                None if format.is_nan(a) => to.nan(),
                None => to.infinity() | if negative(a) { to.sign() } else { 0 },
            },
            FloatOp::Whole(rounding) => match format.exact(a) {
                Some(v) if v.exponent < 0 => format.bits_of(
                    &Exact {
                        size: v.over(0, rounding),
                        exponent: 0,
                        ..v
                    },
                    rounding,
                ),
                _ if format.is_nan(a) => format.nan(),
                _ => a,
            },
            FloatOp::Mul(rounding) => product(format, rounding, a, b),
            FloatOp::Add(rounding) => sum(format, rounding, a, b),
            FloatOp::Sub(rounding) => sum(format, rounding, a, b ^ format.sign()),
            FloatOp::Div(rounding) => match (format.exact(a), format.exact(b)) {
                (Some(x), Some(y)) if y.size > 0 => format.bits_of(&x.over_number(y), rounding),
                (Some(x), Some(_)) if x.size == 0 => format.nan(),
                (None, None) => format.nan(),
                _ if nan => format.nan(),
                (Some(_), None) => zero(negative(a) != negative(b)),
                _ => format.infinity() | zero(negative(a) != negative(b)),
            },
            FloatOp::Sqrt(rounding) => match format.exact(a) {
                Some(x) if x.size == 0 => a,
                Some(x) if !x.negative => format.bits_of(&x.root(), rounding),
                None if a == format.infinity() => a,
                _ => format.nan(),
            },
        }
    }
}

/// A fused multiply-add: `a * b + c`, rounded once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fused {
    /// The format of the three operands and of the result.
    pub format: Format,
    /// The rounding of the result.
    pub rounding: Rounding,
}

impl Fused {
    /// `a * b + c` on bit patterns.
    pub fn apply(self, a: i64, b: i64, c: i64) -> i64 {
        let Fused { format, rounding } = self;
        match [a, b, c].map(|bits| format.exact(bits)) {
            [Some(x), Some(y), Some(z)] => format.bits_of(&x.times(y).plus(z, rounding), rounding),
            // Rounding towards zero keeps a finite product finite.
            _ => sum(format, rounding, product(format, Rounding::Zero, a, b), c),
        }
    }
}

fn product(format: Format, rounding: Rounding, a: i64, b: i64) -> i64 {
    match (format.exact(a), format.exact(b)) {
        (Some(x), Some(y)) => format.bits_of(&x.times(y), rounding),
        _ if format.is_nan(a) || format.is_nan(b) => format.nan(),
        _ if format.magnitude(a).0 == 0 || format.magnitude(b).0 == 0 => format.nan(),
        _ => infinite(format, format.magnitude(a).1 != format.magnitude(b).1),
    }
}

fn sum(format: Format, rounding: Rounding, a: i64, b: i64) -> i64 {
    match (format.exact(a), format.exact(b)) {
        (Some(x), Some(y)) => format.bits_of(&x.plus(y, rounding), rounding),
        _ if format.is_nan(a) || format.is_nan(b) => format.nan(),
        (None, None) if format.magnitude(a).1 != format.magnitude(b).1 => format.nan(),
        (None, _) => infinite(format, format.magnitude(a).1),
        _ => infinite(format, format.magnitude(b).1),
    }
}

fn infinite(format: Format, negative: bool) -> i64 {
    format.infinity() | if negative { format.sign() } else { 0 }
}

/// Converts to an integer and clamps values out of range to the nearest integer. NaN becomes zero.
/// If either side has 64 bits, NaN becomes the least signed number instead.
fn to_integer(format: Format, ty: Ty, rounding: Rounding, a: i64) -> i64 {
    let bits = u32::from(ty.bits);
    if format.is_nan(a) {
        return if format.bits == 64 || bits == 64 {
            ty.wrap(1i64.wrapping_shl(bits - 1))
        } else {
            0
        };
    }
    let (least, most) = match ty.signed {
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    };
    let size = format.exact(a).map_or(u128::MAX, |v| v.over(0, rounding));
    let size = i128::try_from(size).unwrap_or(i128::MAX);
    let whole = if format.magnitude(a).1 { -size } else { size };
    whole.clamp(least, most) as i64
}
