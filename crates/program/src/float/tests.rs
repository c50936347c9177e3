//! Compares results with independent computations: a sorted table of all 16-bit numbers, the
//! processor's own `f32` and `f64`, and the definition of rounding.

use super::*;

const FORMATS: [Format; 4] = [Format::HALF, Format::BRAIN, Format::SINGLE, Format::DOUBLE];
const ROUNDINGS: [Rounding; 4] = [
    Rounding::Nearest,
    Rounding::Zero,
    Rounding::Down,
    Rounding::Up,
];

/// Random numbers that make ties, cancellation, subnormal and infinite results likely.
struct Numbers(u64);

impl Numbers {
    fn bits(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 8 ^ self.0 << 40
    }

    fn next(&mut self, format: Format) -> i64 {
        let (bits, choice) = (self.bits(), self.bits());
        let exponents = (1u64 << (format.bits - 1 - format.fraction)) - 1;
        let (middle, last) = (exponents / 2, (1u64 << format.fraction) - 1);
        let exponent = match choice & 15 {
            0 => 0,
            1 => 1,
            2 => exponents,
            3 => exponents - 1,
            4 => middle / 2,
            5 => middle + u64::from(format.fraction),
            6 => bits >> 32 & exponents,
            near => middle - 8 + near,
        };
        let fraction = match choice >> 4 & 7 {
            0 => 0,
            1 => 1,
            2 => last,
            3 => bits & last & !(last >> 2),
            _ => bits & last,
        };
        (bits >> 63 << (format.bits - 1) | exponent << format.fraction | fraction) as i64
    }
}

fn single(bits: i64) -> f32 {
    f32::from_bits(bits as u32)
}

fn double(bits: i64) -> f64 {
    f64::from_bits(bits as u64)
}

fn bits32(value: f32) -> i64 {
    if value.is_nan() {
        0x7fff_ffff
    } else {
        value.to_bits().into()
    }
}

fn bits64(value: f64) -> i64 {
    if value.is_nan() {
        i64::MAX
    } else {
        value.to_bits() as i64
    }
}

/// The value as a double, which represents every number of the shorter formats.
fn value(format: Format, bits: i64) -> f64 {
    let (sign, exponents) = (
        bits >> (format.bits - 1) & 1,
        (1i64 << (format.bits - 1 - format.fraction)) - 1,
    );
    let (exponent, fraction) = (
        bits >> format.fraction & exponents,
        bits & ((1 << format.fraction) - 1),
    );
    let unit = -i32::from(format.fraction) - (exponents / 2) as i32;
    let magnitude = match exponent {
        0 => fraction as f64 * 2f64.powi(unit + 1),
        e if e == exponents && fraction > 0 => f64::NAN,
        e if e == exponents => f64::INFINITY,
        e => (fraction + (1 << format.fraction)) as f64 * 2f64.powi(unit + e as i32),
    };
    if sign == 1 { -magnitude } else { magnitude }
}

/// Every finite `.f16` number in units of 2^-48, with its bits; of the zeros only the positive one.
fn halves() -> Vec<(i128, i64)> {
    let finite = (0..0x1_0000).filter(|b| b & 0x7c00 != 0x7c00 && *b != 0x8000);
    let mut all: Vec<_> = finite.map(|b| (half(b), b)).collect();
    all.sort_unstable();
    all
}

fn half(bits: i64) -> i128 {
    (value(Format::HALF, bits) * 2f64.powi(48)) as i128
}

/// Rounds a non-zero exact number in those units by table lookup.
fn looked_up(table: &[(i128, i64)], exact: i128, rounding: Rounding) -> i64 {
    let above = table.partition_point(|(v, _)| *v < exact);
    // The next number if the exponent range were unbounded.
    let beyond = (1i128 << 16) << 48;
    let down = match above {
        at if table.get(at).is_some_and(|(v, _)| *v == exact) => table[at],
        0 => (-beyond, 0xfc00),
        at => table[at - 1],
    };
    let up = if down.0 == exact {
        down
    } else {
        table.get(above).copied().unwrap_or((beyond, 0x7c00))
    };
    let nearest = match (exact - down.0).cmp(&(up.0 - exact)) {
        std::cmp::Ordering::Less => down,
        std::cmp::Ordering::Greater => up,
        std::cmp::Ordering::Equal if down.1 & 1 == 0 => down,
        std::cmp::Ordering::Equal => up,
    };
    let (_, bits) = match rounding {
        // Infinity counts as the number that the next exponent would represent.
        Rounding::Nearest => nearest,
        Rounding::Zero if exact > 0 => down,
        Rounding::Zero => up,
        Rounding::Down => down,
        Rounding::Up => up,
    };
    match (bits, rounding) {
        (0, _) if exact < 0 => 0x8000,
        (0x7c00, Rounding::Zero | Rounding::Down) => 0x7bff,
        (0xfc00, Rounding::Zero | Rounding::Up) => 0xfbff,
        (bits, _) => bits,
    }
}

#[test]
fn halves_are_those_of_a_table() {
    let (table, mut numbers, format) = (halves(), Numbers(1), Format::HALF);
    let finite = |b: i64| b & 0x7c00 != 0x7c00;
    for round in 0..300_000 {
        let [a, b, c] = [0; 3].map(|_| numbers.next(format));
        let rounding = ROUNDINGS[round % 4];
        if ![a, b, c].into_iter().all(finite) {
            continue;
        }
        let (x, y, z) = (half(a), half(b), half(c));
        let product = (x >> 24) * (y >> 24);
        for (what, exact, found) in [
            ("+", x + y, FloatOp::Add(rounding).apply(format, a, b)),
            ("-", x - y, FloatOp::Sub(rounding).apply(format, a, b)),
            ("*", product, FloatOp::Mul(rounding).apply(format, a, b)),
            (
                "* +",
                product + z,
                Fused { format, rounding }.apply(a, b, c),
            ),
        ] {
            if exact != 0 {
                let expected = looked_up(&table, exact, rounding);
                assert_eq!(found, expected, "{a:#x} {what} {b:#x}, {c:#x} {rounding:?}");
            } else {
                assert_eq!(
                    found & 0x7fff,
                    0,
                    "{a:#x} {what} {b:#x}, {c:#x} {rounding:?}"
                );
            }
        }
    }
}

#[test]
fn conversions_to_halves_are_those_of_a_table() {
    let (table, mut numbers) = (halves(), Numbers(2));
    for round in 0..200_000 {
        let rounding = ROUNDINGS[round % 4];
        for from in [Format::SINGLE, Format::DOUBLE] {
            let a = numbers.next(from);
            let v = value(from, a);
            // Only values that the units represent exactly.
            let scaled = v * 2f64.powi(48);
            if scaled.fract() == 0.0 && scaled.abs() < 2f64.powi(80) && v != 0.0 {
                let found =
                    FloatOp::To(NumberType::Float(Format::HALF), rounding).apply(from, a, 0);
                assert_eq!(
                    found,
                    looked_up(&table, scaled as i128, rounding),
                    "{v:e} {rounding:?}"
                );
            }
        }
        let v = (numbers.bits() as i64) >> (numbers.bits() & 63);
        if v != 0 {
            let found = FloatOp::From(Ty::WORD, rounding).apply(Format::HALF, v, 0);
            assert_eq!(
                found,
                looked_up(&table, i128::from(v) << 48, rounding),
                "{v} {rounding:?}"
            );
        }
    }
}

#[test]
fn every_half_is_the_same_in_wider_formats_and_back() {
    for bits in 0..0x1_0000 {
        for format in [Format::HALF, Format::BRAIN] {
            let v = value(format, bits);
            let to =
                |to| FloatOp::To(NumberType::Float(to), Rounding::Nearest).apply(format, bits, 0);
            let (wide, widest) = (to(Format::SINGLE), to(Format::DOUBLE));
            assert_eq!((wide, widest), (bits32(v as f32), bits64(v)), "{bits:#x}");
            let back = FloatOp::To(NumberType::Float(format), Rounding::Nearest).apply(
                Format::SINGLE,
                wide,
                0,
            );
            assert_eq!(back, if v.is_nan() { 0x7fff } else { bits }, "{bits:#x}");
        }
    }
}

/// Sums, products, quotients and roots in 8 bits of precision equal those in 24 bits, rounded again
/// (S. Figueroa, When is double rounding innocuous?, 1995).
#[test]
fn numbers_with_the_exponents_of_floats_are_rounded_floats() {
    let (mut numbers, format) = (Numbers(3), Format::BRAIN);
    let rounded = |v: f32| match v.to_bits() {
        _ if v.is_nan() => 0x7fff,
        bits => i64::from((bits + 0x7fff + (bits >> 16 & 1)) >> 16),
    };
    for _ in 0..300_000 {
        let (a, b) = (numbers.next(format), numbers.next(format));
        let (x, y) = (single(a << 16), single(b << 16));
        for (op, expected) in [
            (FloatOp::Add(Rounding::Nearest), x + y),
            (FloatOp::Sub(Rounding::Nearest), x - y),
            (FloatOp::Mul(Rounding::Nearest), x * y),
            (FloatOp::Div(Rounding::Nearest), x / y),
            (FloatOp::Sqrt(Rounding::Nearest), x.sqrt()),
        ] {
            assert_eq!(
                op.apply(format, a, b),
                rounded(expected),
                "{op:?} {x:e} {y:e}"
            );
        }
    }
}

#[test]
fn floats_and_doubles_are_those_of_the_processor() {
    let (mut numbers, nearest) = (Numbers(4), Rounding::Nearest);
    for _ in 0..300_000 {
        let [a, b, c] = [0; 3].map(|_| numbers.next(Format::SINGLE));
        let [x, y, z] = [a, b, c].map(single);
        let fused = |format| Fused {
            format,
            rounding: nearest,
        };
        let sum = fused(Format::SINGLE).apply(a, b, c);
        assert_eq!(sum, bits32(x.mul_add(y, z)), "{x:e} * {y:e} + {z:e}");
        for (op, expected) in [
            (FloatOp::Add(nearest), x + y),
            (FloatOp::Sub(nearest), x - y),
            (FloatOp::Mul(nearest), x * y),
            (FloatOp::Div(nearest), x / y),
            (FloatOp::Sqrt(nearest), x.sqrt()),
            (FloatOp::Whole(nearest), x.round_ties_even()),
            (FloatOp::Whole(Rounding::Down), x.floor()),
            (FloatOp::From(Ty::S32, nearest), a as i32 as f32),
        ] {
            assert_eq!(
                op.apply(Format::SINGLE, a, b),
                bits32(expected),
                "{op:?} {x:e} {y:e}"
            );
        }
        let [a, b, c] = [0; 3].map(|_| numbers.next(Format::DOUBLE));
        let [x, y, z] = [a, b, c].map(double);
        // Cancels the product except for its lower half.
        let close = (-(x * y)).to_bits().wrapping_add(numbers.bits() & 3);
        for (c, z) in [(c, z), (close as i64, f64::from_bits(close))] {
            let sum = fused(Format::DOUBLE).apply(a, b, c);
            assert_eq!(sum, bits64(x.mul_add(y, z)), "{x:e} * {y:e} + {z:e}");
        }
        for (op, expected) in [
            (FloatOp::Add(nearest), x + y),
            (FloatOp::Sub(nearest), x - y),
            (FloatOp::Mul(nearest), x * y),
            (FloatOp::Div(nearest), x / y),
            (FloatOp::Sqrt(nearest), x.sqrt()),
            (FloatOp::Whole(Rounding::Zero), x.trunc()),
            (FloatOp::Whole(Rounding::Up), x.ceil()),
            (FloatOp::From(Ty::U64, nearest), a as u64 as f64),
        ] {
            assert_eq!(
                op.apply(Format::DOUBLE, a, b),
                bits64(expected),
                "{op:?} {x:e} {y:e}"
            );
        }
        let narrow =
            FloatOp::To(NumberType::Float(Format::SINGLE), nearest).apply(Format::DOUBLE, a, 0);
        assert_eq!(narrow, bits32(x as f32), "{x:e}");
        let whole =
            |ty| FloatOp::To(NumberType::Int(ty), Rounding::Zero).apply(Format::DOUBLE, a, 0);
        if !x.is_nan() {
            assert_eq!(
                (whole(Ty::S32), whole(Ty::U64)),
                (i64::from(x as i32), x as u64 as i64),
                "{x:e}"
            );
        }
    }
}

/// A directed result lies on its side of the exact result, and the next number does not.
#[test]
fn directions_are_those_of_what_is_exact() {
    let (mut numbers, format) = (Numbers(5), Format::SINGLE);
    let mut tried = 0;
    for _ in 0..300_000 {
        let (a, b) = (numbers.next(format), numbers.next(format));
        let (x, y) = (f64::from(single(a)), f64::from(single(b)));
        if !x.is_normal()
            || !y.is_normal()
            || x.abs().log2().abs() > 13.0
            || y.abs().log2().abs() > 13.0
        {
            continue;
        }
        tried += 1;
        // Doubles represent the sum and the product of two floats exactly. They also represent the
        // products that check a quotient and a root.
        for (rounding, sign) in [(Rounding::Down, 1.0), (Rounding::Up, -1.0)] {
            let of = |op: FloatOp| single(op.apply(format, a, b));
            let beside = |v: f32| {
                f64::from(if sign > 0.0 {
                    v.next_up()
                } else {
                    v.next_down()
                })
            };
            for (found, exact) in [
                (of(FloatOp::Add(rounding)), x + y),
                (of(FloatOp::Mul(rounding)), x * y),
            ] {
                assert!(
                    f64::from(found) * sign <= exact * sign,
                    "{x:e} {y:e} {rounding:?}"
                );
                assert!(
                    found == 0.0 || beside(found) * sign > exact * sign,
                    "{x:e} {y:e} {rounding:?}"
                );
            }
            let quotient = of(FloatOp::Div(rounding));
            let side = sign * y.signum();
            assert!(
                f64::from(quotient) * y * side <= x * side,
                "{x:e} / {y:e} {rounding:?}"
            );
            assert!(
                beside(quotient) * y * side > x * side,
                "{x:e} / {y:e} {rounding:?}"
            );
            if x > 0.0 {
                let root = of(FloatOp::Sqrt(rounding));
                assert!(
                    f64::from(root).powi(2) * sign <= x * sign,
                    "{x:e} {rounding:?}"
                );
                assert!(beside(root).powi(2) * sign > x * sign, "{x:e} {rounding:?}");
            }
        }
        let cut = |op: fn(Rounding) -> FloatOp, exact: f64| {
            let same = if exact > 0.0 {
                Rounding::Down
            } else {
                Rounding::Up
            };
            assert_eq!(
                op(Rounding::Zero).apply(format, a, b),
                op(same).apply(format, a, b),
                "{x:e} {y:e}"
            );
        };
        cut(FloatOp::Add, x + y);
        cut(FloatOp::Mul, x * y);
        cut(FloatOp::Div, x / y);
    }
    assert!(tried > 50_000);
}

#[test]
fn zeros_infinities_and_what_is_no_number() {
    for format in FORMATS {
        let (one, sign, infinity, nan) =
            (format.one(), format.sign(), format.infinity(), format.nan());
        assert_eq!(value(format, one), 1.0);
        let of = |op: FloatOp, a, b| op.apply(format, a, b);
        let (nearest, down) = (Rounding::Nearest, Rounding::Down);
        for (op, a, b, expected) in [
            (FloatOp::Min, 0, sign, sign),
            (FloatOp::Max, sign, 0, 0),
            (FloatOp::Min, nan, one, one),
            (FloatOp::Max, one | sign, nan, one | sign),
            (FloatOp::Max, nan | sign, nan, nan),
            (FloatOp::Min, infinity | sign, one, infinity | sign),
            (FloatOp::Add(nearest), one, one | sign, 0),
            (FloatOp::Add(down), one, one | sign, sign),
            (FloatOp::Sub(nearest), sign, 0, sign),
            (FloatOp::Sub(nearest), infinity, infinity, nan),
            (FloatOp::Sub(nearest), one, infinity, infinity | sign),
            (FloatOp::Mul(nearest), infinity, sign, nan),
            (FloatOp::Mul(nearest), infinity, one | sign, infinity | sign),
            (FloatOp::Div(nearest), one, sign, infinity | sign),
            (FloatOp::Div(nearest), 0, sign, nan),
            (FloatOp::Sqrt(nearest), sign, 0, sign),
            (FloatOp::Sqrt(nearest), one | sign, 0, nan),
            (
                FloatOp::Mul(nearest),
                format.largest(),
                format.largest(),
                infinity,
            ),
            (
                FloatOp::Mul(Rounding::Zero),
                format.largest(),
                format.largest() | sign,
                format.largest() | sign,
            ),
            (FloatOp::Mul(Rounding::Up), 1, 1, 1),
            (FloatOp::Mul(nearest), 1, sign | 1, sign),
            (FloatOp::Flush, sign | 1, 0, sign),
            (FloatOp::Flush, one, 0, one),
            (FloatOp::AddFlush, one, 1, one),
            (FloatOp::Less, nan, one, 0),
            (FloatOp::Unordered, nan, one, 1),
            (FloatOp::Equal, sign, 0, 1),
            (FloatOp::Less, sign, 0, 0),
            (FloatOp::LessEqual, one | sign, one, 1),
            (FloatOp::Equal, nan, nan, 0),
        ] {
            assert_eq!(of(op, a, b), expected, "{format:?} {op:?} {a:#x} {b:#x}");
        }
    }
}

#[test]
fn conversions_to_integers_stay_in_range() {
    let int = |signed, bits| Ty { bits, signed };
    for (from, to, rounding, value, expected) in [
        (
            Format::SINGLE,
            int(true, 32),
            Rounding::Zero,
            bits32(-1.9),
            -1,
        ),
        (
            Format::SINGLE,
            int(true, 32),
            Rounding::Down,
            bits32(-1.1),
            -2,
        ),
        (
            Format::SINGLE,
            int(true, 32),
            Rounding::Nearest,
            bits32(2.5),
            2,
        ),
        (Format::SINGLE, int(false, 32), Rounding::Up, bits32(2.1), 3),
        (
            Format::SINGLE,
            int(false, 8),
            Rounding::Zero,
            bits32(300.0),
            255,
        ),
        (
            Format::SINGLE,
            int(false, 32),
            Rounding::Zero,
            bits32(-3.0),
            0,
        ),
        (
            Format::SINGLE,
            int(true, 32),
            Rounding::Zero,
            bits32(f32::NAN),
            0,
        ),
        (Format::HALF, int(true, 32), Rounding::Zero, 0x7fff, 0),
        (
            Format::HALF,
            int(true, 64),
            Rounding::Zero,
            0x7fff,
            i64::MIN,
        ),
        (Format::HALF, int(true, 16), Rounding::Up, 0xc100, -2),
        (Format::BRAIN, int(false, 64), Rounding::Zero, 0x7f7f, -1),
        (
            Format::DOUBLE,
            int(true, 32),
            Rounding::Zero,
            bits64(f64::NAN),
            i64::from(i32::MIN),
        ),
        (
            Format::DOUBLE,
            int(true, 64),
            Rounding::Zero,
            bits64(-1e300),
            i64::MIN,
        ),
        (
            Format::SINGLE,
            int(true, 64),
            Rounding::Zero,
            bits32(f32::INFINITY),
            i64::MAX,
        ),
        (
            Format::SINGLE,
            int(false, 64),
            Rounding::Zero,
            bits32(f32::INFINITY),
            -1,
        ),
    ] {
        let found = FloatOp::To(NumberType::Int(to), rounding).apply(from, value, 0);
        assert_eq!(found, expected, "{from:?} {to:?} {value:x}");
    }
}
