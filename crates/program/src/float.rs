//! Floating-point operations on the bits of values.
//!
//! # Invariants
//! - Results are those of IEEE 754, rounded to nearest even, in 32 or 64 bits as the type of the operation has them.
//! - A result that is no number has all bits set but the sign. PTX promises no bits of it.
//!
//! # Sources
//! - PTX ISA 9.4, *Floating-Point Instructions*, *Comparison and Selection Instructions*, *cvt*.

use super::Ty;

/// A floating-point operation of two operands; one that has a single operand takes the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FloatOp {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient.
    Div,
    /// The smaller one; the other one if one is no number. -0 is smaller than +0.
    Min,
    /// The larger one; the other one if one is no number.
    Max,
    /// Square root.
    Sqrt,
    /// The product of two numbers of 32 bits as one of 64, which it fits.
    Product,
    /// The sum of a number of 64 bits and one of 32, rounded once, to 32.
    Accumulate,
    /// 1 if both are numbers and the first is less.
    Less,
    /// 1 if both are numbers and the first is not greater.
    LessEqual,
    /// 1 if both are numbers and equal.
    Equal,
    /// 1 if one is no number.
    Unordered,
    /// A subnormal number of 32 bits as a zero of its sign; anything else as it is.
    Flush,
    /// Sum, where each of the three numbers is as by [`FloatOp::Flush`].
    AddFlush,
    /// Conversion.
    Convert(Number, Number, Rounding),
}

/// A type between which values are converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Number {
    /// 32 bits.
    Single,
    /// 64 bits.
    Double,
    /// An integer type.
    Int(Ty),
}

/// How a conversion rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rounding {
    /// To the nearest value of the type, of two the even one.
    Nearest,
    /// To the nearest integer, of two the even one.
    Even,
    /// To an integer, towards zero.
    Zero,
    /// To an integer, downwards.
    Down,
    /// To an integer, upwards.
    Up,
}

impl FloatOp {
    /// `a op b`, by the bits.
    pub fn apply(self, ty: Ty, a: i64, b: i64) -> i64 {
        let flush = |v| FloatOp::Flush.apply(ty, v, 0);
        match self {
            FloatOp::AddFlush => flush(FloatOp::Add.apply(ty, flush(a), flush(b))),
            FloatOp::Product => double(f64::from(single(a)) * f64::from(single(b))),
            FloatOp::Accumulate => i64::from(bits32(accumulate(f64::from_bits(a as u64), single(b)))),
            FloatOp::Convert(from, to, rounding) => convert(from, to, rounding, a),
            _ if ty.bits == 32 => {
                let (x, y) = (single(a), single(b));
                match self {
                    FloatOp::Add => i64::from(bits32(x + y)),
                    FloatOp::Sub => i64::from(bits32(x - y)),
                    FloatOp::Mul => i64::from(bits32(x * y)),
                    FloatOp::Div => i64::from(bits32(x / y)),
                    FloatOp::Sqrt => i64::from(bits32(x.sqrt())),
                    FloatOp::Flush => i64::from(if x.is_subnormal() { a as u32 & 1 << 31 } else { a as u32 }),
                    // All of them are numbers of 64 bits, and -0 is one.
                    _ => match self.of_doubles(x.into(), y.into()) {
                        Ok(truth) => truth,
                        Err(result) => i64::from(bits32(result as f32)),
                    },
                }
            }
            _ => {
                let (x, y) = (f64::from_bits(a as u64), f64::from_bits(b as u64));
                match self {
                    FloatOp::Add => double(x + y),
                    FloatOp::Sub => double(x - y),
                    FloatOp::Mul => double(x * y),
                    FloatOp::Div => double(x / y),
                    FloatOp::Sqrt => double(x.sqrt()),
                    FloatOp::Flush => a,
                    _ => self.of_doubles(x, y).unwrap_or_else(double),
                }
            }
        }
    }

    /// Comparisons; the lesser and the greater one come as errors, as they are no truth values.
    fn of_doubles(self, x: f64, y: f64) -> Result<i64, f64> {
        let truth = |holds: bool| Ok(i64::from(holds));
        let smaller = if x < y || (x == y && x.is_sign_negative()) { x } else { y };
        match self {
            FloatOp::Less => truth(x < y),
            FloatOp::LessEqual => truth(x <= y),
            FloatOp::Equal => truth(x == y),
            FloatOp::Unordered => truth(x.is_nan() || y.is_nan()),
            _ if x.is_nan() => Err(y),
            _ if y.is_nan() => Err(x),
            FloatOp::Min => Err(smaller),
            _ => Err(if smaller.to_bits() == x.to_bits() { y } else { x }),
        }
    }
}

fn single(bits: i64) -> f32 {
    f32::from_bits(bits as u32)
}

fn bits32(value: f32) -> u32 {
    if value.is_nan() { 0x7fff_ffff } else { value.to_bits() }
}

fn double(value: f64) -> i64 {
    if value.is_nan() { i64::MAX } else { value.to_bits() as i64 }
}

/// A sum, rounded once: in 64 bits to odd, which the second rounding does not make wrong as 53 bits are more than twice 24
/// (S. Boldo, G. Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd, 2008).
fn accumulate(a: f64, b: f32) -> f32 {
    let b = f64::from(b);
    let sum = a + b;
    if !sum.is_finite() || sum == 0.0 {
        return sum as f32;
    }
    // What the sum lacks, exactly (Knuth).
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    let odd = sum.to_bits() & 1 == 1;
    if error == 0.0 || odd {
        return sum as f32;
    }
    // The other neighbour of the exact sum has an odd last bit.
    let up = (error > 0.0) == (sum > 0.0);
    f64::from_bits(if up { sum.to_bits() + 1 } else { sum.to_bits() - 1 }) as f32
}

fn convert(from: Number, to: Number, rounding: Rounding, a: i64) -> i64 {
    let value = match from {
        Number::Int(ty) => {
            let v = ty.wrap(a);
            return match (to, ty.signed) {
                (Number::Single, true) => i64::from(bits32(v as f32)),
                (Number::Single, false) => i64::from(bits32(v as u64 as f32)),
                (Number::Double, true) => double(v as f64),
                (Number::Double, false) => double(v as u64 as f64),
                (Number::Int(to), _) => to.wrap(v),
            };
        }
        Number::Single => f64::from(single(a)),
        Number::Double => f64::from_bits(a as u64),
    };
    let rounded = match rounding {
        Rounding::Nearest => value,
        Rounding::Even => value.round_ties_even(),
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    };
    match to {
        Number::Single => i64::from(bits32(rounded as f32)),
        Number::Double => double(rounded),
        // No number is zero, or where one side has 64 bits the least number, as of a signed type.
        Number::Int(ty) if value.is_nan() => match from == Number::Double || ty.bits == 64 {
            true => ty.wrap(1i64.wrapping_shl(u32::from(ty.bits) - 1)),
            false => 0,
        },
        Number::Int(ty) => {
            let (bits, whole) = (u32::from(ty.bits), rounded as i128);
            let (least, most) = match ty.signed {
                true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
                false => (0, (1i128 << bits) - 1),
            };
            whole.clamp(least, most) as i64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(op: FloatOp, a: f32, b: f32) -> f32 {
        f32::from_bits(op.apply(Ty::U32, i64::from(a.to_bits()), i64::from(b.to_bits())) as u32)
    }

    #[test]
    fn minimum_and_maximum_know_zeros_and_what_is_no_number() {
        for (a, b, least, most) in [(1.0, 2.0, 1.0, 2.0), (-0.0, 0.0, -0.0, 0.0), (f32::NAN, 3.0, 3.0, 3.0)] {
            for (a, b) in [(a, b), (b, a)] {
                assert_eq!(of(FloatOp::Min, a, b).to_bits(), f32::to_bits(least), "{a} {b}");
                assert_eq!(of(FloatOp::Max, a, b).to_bits(), f32::to_bits(most), "{a} {b}");
            }
        }
        assert_eq!(of(FloatOp::Min, f32::NAN, f32::NAN).to_bits(), 0x7fff_ffff);
        assert_eq!(of(FloatOp::Sub, f32::INFINITY, f32::INFINITY).to_bits(), 0x7fff_ffff);
    }

    #[test]
    fn comparisons_with_what_is_no_number_fail() {
        let truth = |op: FloatOp, a: f64, b: f64| op.apply(Ty::U64, a.to_bits() as i64, b.to_bits() as i64);
        let all = [FloatOp::Less, FloatOp::LessEqual, FloatOp::Equal, FloatOp::Unordered];
        assert_eq!(all.map(|op| truth(op, f64::NAN, 1.0)), [0, 0, 0, 1]);
        assert_eq!(all.map(|op| truth(op, -0.0, 0.0)), [0, 1, 1, 0]);
        assert_eq!(all.map(|op| truth(op, -1.0, 1.0)), [1, 1, 0, 0]);
    }

    #[test]
    fn a_product_is_added_with_one_rounding() {
        // Patterns that make ties, cancellation and subnormal results likely.
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bits = (seed >> 32) as u32;
            let exponent = [0, 1, 64, 126, 127, 128, 150, 254][(seed >> 20 & 7) as usize];
            let fraction = [bits, bits & 0x7f_f000, 0, 1, 0x7f_ffff][(seed >> 8 & 63).min(4) as usize];
            f32::from_bits(bits & 1 << 31 | exponent << 23 | fraction & 0x7f_ffff)
        };
        for _ in 0..200_000 {
            let (a, b, c) = (next(), next(), next());
            let bits = |v: f32| i64::from(v.to_bits());
            let product = FloatOp::Product.apply(Ty::U64, bits(a), bits(b));
            let sum = FloatOp::Accumulate.apply(Ty::U64, product, bits(c)) as u32;
            assert_eq!(sum, bits32(a.mul_add(b, c)), "{a:e} * {b:e} + {c:e}");
        }
    }

    #[test]
    fn conversions_round_and_stay_in_range() {
        let int = |signed, bits| Number::Int(Ty { bits, signed });
        let f32s = |v: f32| i64::from(v.to_bits());
        for (from, to, rounding, value, expected) in [
            (Number::Single, int(true, 32), Rounding::Zero, f32s(-1.9), -1),
            (Number::Single, int(true, 32), Rounding::Down, f32s(-1.1), -2),
            (Number::Single, int(true, 32), Rounding::Even, f32s(2.5), 2),
            (Number::Single, int(false, 32), Rounding::Up, f32s(2.1), 3),
            (Number::Single, int(false, 8), Rounding::Zero, f32s(300.0), 255),
            (Number::Single, int(false, 32), Rounding::Zero, f32s(-3.0), 0),
            (Number::Single, int(true, 32), Rounding::Zero, f32s(f32::NAN), 0),
            (Number::Double, int(true, 32), Rounding::Zero, f64::NAN.to_bits() as i64, i64::from(i32::MIN)),
            (Number::Single, int(true, 64), Rounding::Zero, f32s(f32::INFINITY), i64::MAX),
            (Number::Single, int(false, 64), Rounding::Zero, f32s(f32::INFINITY), -1),
            (int(false, 64), Number::Single, Rounding::Nearest, -1, f32s(18_446_744_073_709_551_616.0)),
            (int(true, 32), Number::Single, Rounding::Nearest, 16_777_217, f32s(16_777_216.0)),
            (int(true, 32), Number::Double, Rounding::Nearest, 0xffff_ffff, (-1f64).to_bits() as i64),
            (Number::Double, Number::Single, Rounding::Nearest, 0.1f64.to_bits() as i64, f32s(0.1)),
            (Number::Single, Number::Double, Rounding::Nearest, f32s(0.1), f64::from(0.1f32).to_bits() as i64),
            (Number::Single, Number::Single, Rounding::Up, f32s(0.5), f32s(1.0)),
        ] {
            assert_eq!(
                FloatOp::Convert(from, to, rounding).apply(Ty::U64, value, 0),
                expected,
                "{from:?} {to:?} {value:x}"
            );
        }
    }
}
