//! Binary floating-point formats, and exact numbers that are rounded to a format once.
//!
//! # Invariants
//! - [`Exact`] holds the unrounded result of an operation, except that the bit `more` replaces
//!   everything below its last bit. It keeps enough bits that `more` never decides a tie wrongly.
//! - A format is given by its sizes; all other properties derive from them.

/// An IEEE 754 format: a sign, an exponent and a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Format {
    /// The total number of bits.
    pub bits: u8,
    /// The number of fraction bits.
    pub fraction: u8,
}

/// The rounding of a number that the target cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rounding {
    /// To the nearest number; ties go to the even one.
    Nearest,
    /// Towards zero.
    Zero,
    /// Downwards.
    Down,
    /// Upwards.
    Up,
}

impl Format {
    /// `.f16`.
    pub const HALF: Format = Format {
        bits: 16,
        fraction: 10,
    };
    /// `.bf16`.
    pub const BRAIN: Format = Format {
        bits: 16,
        fraction: 7,
    };
    /// `.f32`.
    pub const SINGLE: Format = Format {
        bits: 32,
        fraction: 23,
    };
    /// `.f64`.
    pub const DOUBLE: Format = Format {
        bits: 64,
        fraction: 52,
    };

    /// The bit of the sign.
    pub fn sign(self) -> i64 {
        1i64 << (self.bits - 1)
    }

    /// The NaN that operations return: all bits except the sign.
    pub fn nan(self) -> i64 {
        !self.sign() & self.mask()
    }

    /// The largest finite number.
    pub fn largest(self) -> i64 {
        self.infinity() - 1
    }

    /// One.
    pub fn one(self) -> i64 {
        self.bits_of(
            &Exact {
                negative: false,
                size: 1,
                exponent: 0,
                more: false,
            },
            Rounding::Nearest,
        )
    }

    pub(super) fn infinity(self) -> i64 {
        let exponents = (1i64 << (self.bits - 1 - self.fraction)) - 1;
        exponents << self.fraction
    }

    fn mask(self) -> i64 {
        (-1i64 as u64 >> (64 - self.bits)) as i64
    }

    /// The exponent of the smallest normal number.
    fn least(self) -> i32 {
        2 - (1 << (self.bits - 2 - self.fraction))
    }

    /// The bits without the sign, and whether the sign is set.
    pub(super) fn magnitude(self, bits: i64) -> (i64, bool) {
        (bits & self.mask() & !self.sign(), bits & self.sign() != 0)
    }

    pub(super) fn is_nan(self, bits: i64) -> bool {
        self.magnitude(bits).0 > self.infinity()
    }

    pub(super) fn is_subnormal(self, bits: i64) -> bool {
        (1..1i64 << self.fraction).contains(&self.magnitude(bits).0)
    }

    /// Decodes a number; `None` for an infinity or a NaN.
    pub(super) fn exact(self, bits: i64) -> Option<Exact> {
        let (magnitude, negative) = self.magnitude(bits);
        let (exponent, fraction) = (
            magnitude >> self.fraction,
            magnitude & ((1 << self.fraction) - 1),
        );
        let leading = i64::from(exponent > 0) << self.fraction;
        (magnitude < self.infinity()).then_some(Exact {
            negative,
            size: (fraction | leading) as u128,
            exponent: self.least() - i32::from(self.fraction) + (exponent as i32 - 1).max(0),
            more: false,
        })
    }

    /// Rounds a number and encodes it.
    pub(super) fn bits_of(self, of: &Exact, rounding: Rounding) -> i64 {
        let sign = if of.negative { self.sign() } else { 0 };
        if of.size == 0 {
            return sign;
        }
        let leading = (of.exponent + of.size.ilog2() as i32).max(self.least());
        let rounded = of.over(leading - i32::from(self.fraction), rounding);
        // The leading bit of a normal number adds one to the exponent field, a carry another one.
        let magnitude = (((leading - self.least()) as u128) << self.fraction) + rounded;
        let infinite = match rounding {
            Rounding::Nearest => true,
            Rounding::Zero => false,
            Rounding::Down => of.negative,
            Rounding::Up => !of.negative,
        };
        sign | match i64::try_from(magnitude) {
            Ok(magnitude) if magnitude < self.infinity() => magnitude,
            _ if infinite => self.infinity(),
            _ => self.largest(),
        }
    }
}

/// `size * 2^exponent` with a sign; `more`: the magnitude is slightly larger than that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exact {
    pub(super) negative: bool,
    pub(super) size: u128,
    pub(super) exponent: i32,
    pub(super) more: bool,
}

impl Exact {
    /// The magnitude in units of `2^unit`, rounded.
    pub(super) fn over(&self, unit: i32, rounding: Rounding) -> u128 {
        let by = unit - self.exponent;
        let (whole, rest, half) = match by {
            // Larger than any integer type.
            ..=0 if by.unsigned_abs() > self.size.leading_zeros() => (u128::MAX, 0, 1),
            ..=0 => (self.size << by.unsigned_abs(), 0, 1),
            1..=127 => (self.size >> by, self.size & ((1 << by) - 1), 1 << (by - 1)),
            _ => (0, self.size, u128::MAX),
        };
        let inexact = rest > 0 || self.more;
        let up = match rounding {
            Rounding::Nearest => rest > half || (rest == half && (self.more || whole & 1 == 1)),
            Rounding::Zero => false,
            Rounding::Down => self.negative && inexact,
            Rounding::Up => !self.negative && inexact,
        };
        whole + u128::from(up)
    }

    /// The same number, with 126 bits.
    fn long(self) -> Exact {
        let by = self.size.leading_zeros().saturating_sub(2);
        Exact {
            size: self.size << by,
            exponent: self.exponent - by as i32,
            ..self
        }
    }

    /// The sum. A zero sum of two zeros keeps their common sign. Any other zero sum is positive, or
    /// negative under downward rounding.
    pub(super) fn plus(self, other: Exact, rounding: Rounding) -> Exact {
        let zero = Exact {
            negative: rounding == Rounding::Down,
            size: 0,
            exponent: 0,
            more: false,
        };
        match (self.size, other.size) {
            (0, 0) if self.negative != other.negative => return zero,
            (_, 0) => return self,
            (0, _) => return other,
            _ => {}
        }
        let (a, b) = (self.long(), other.long());
        let (a, b) = if (a.exponent, a.size) < (b.exponent, b.size) {
            (b, a)
        } else {
            (a, b)
        };
        let by = (a.exponent - b.exponent) as u32;
        let small = b.size.checked_shr(by).unwrap_or(0);
        let more = small.checked_shl(by) != Some(b.size);
        let size = match a.negative == b.negative {
            true => a.size + small,
            false => a.size - small - u128::from(more),
        };
        if size == 0 {
            zero
        } else {
            Exact { size, more, ..a }
        }
    }

    pub(super) fn times(self, other: Exact) -> Exact {
        let negative = self.negative != other.negative;
        Exact {
            negative,
            size: self.size * other.size,
            exponent: self.exponent + other.exponent,
            more: false,
        }
    }

    /// The quotient by a number other than zero.
    pub(super) fn over_number(self, other: Exact) -> Exact {
        let (a, negative) = (self.long(), self.negative != other.negative);
        let (size, more) = (a.size / other.size, !a.size.is_multiple_of(other.size));
        Exact {
            negative,
            size,
            exponent: a.exponent - other.exponent,
            more,
        }
    }

    /// The square root of a number that is not negative.
    pub(super) fn root(self) -> Exact {
        let a = self.long();
        let odd = a.exponent & 1;
        let size = a.size << odd;
        let root = size.isqrt();
        Exact {
            size: root,
            exponent: (a.exponent - odd) / 2,
            more: root * root != size,
            ..a
        }
    }
}
