//! Comparisons of bits with a floating-point number, as comparisons with ranges of bits.
//!
//! # Invariants
//! - Comparisons follow IEEE 754: both zeros are equal. A NaN is unequal to every number, and
//!   neither less nor greater.
//!
//! # Sources
//! - IEEE 754-2019, 3.4 (the bits of positive numbers are in the order of the numbers) and 5.11.

use program::litmus::{Atom, ConditionTerm, Observable, Prop};
use program::{CmpOp, FloatOp, Format, NumberType, Rounding, Ty};

/// The floating-point format of values with that many bits. `None` if no format is possible, or
/// more than one.
pub(super) fn format(bits: u8) -> Option<Format> {
    [Format::SINGLE, Format::DOUBLE]
        .into_iter()
        .find(|format| format.bits == bits)
}

/// The bits of the nearest number; `None` if it is out of the format's range.
pub(super) fn nearest(format: Format, number: f64) -> Option<i64> {
    let bits = FloatOp::To(NumberType::Float(format), Rounding::Nearest).apply(
        Format::DOUBLE,
        number.to_bits() as i64,
        0,
    );
    (bits & !format.sign() <= format.largest()).then_some(bits)
}

/// The operator for the same comparison with its sides swapped.
pub(super) fn mirrored(op: CmpOp) -> CmpOp {
    match op {
        CmpOp::Lt => CmpOp::Gt,
        CmpOp::Le => CmpOp::Ge,
        CmpOp::Gt => CmpOp::Lt,
        CmpOp::Ge => CmpOp::Le,
        CmpOp::Eq | CmpOp::Ne => op,
    }
}

/// The comparison of an observable with a number, given by its bits.
pub(super) fn compared(op: CmpOp, format: Format, of: Observable, bits: i64) -> Prop {
    if op == CmpOp::Ne {
        return Prop::Not(Box::new(compared(CmpOp::Eq, format, of, bits)));
    }
    let ty = Ty {
        bits: format.bits,
        signed: false,
    };
    let compare = |op, n: i64| {
        Prop::Cmp(
            op,
            ty,
            Atom::Observable(of).into(),
            ConditionTerm::Atom(Atom::Const(ty.wrap(n))),
        )
    };
    let mut ranges: Vec<Prop> = ranges(op, format, bits)
        .into_iter()
        .map(|(first, last): (i64, i64)| match last - first {
            0 => compare(CmpOp::Eq, first),
            _ if first == 0 => compare(CmpOp::Le, last),
            _ => Prop::And(vec![compare(CmpOp::Ge, first), compare(CmpOp::Le, last)]),
        })
        .collect();
    if ranges.len() == 1 {
        ranges.remove(0)
    } else {
        Prop::Or(ranges)
    }
}

/// The bits of all numbers that compare this way with the number that has the given bits. Each
/// range is given by its first and last number.
fn ranges(op: CmpOp, format: Format, bits: i64) -> Vec<(i64, i64)> {
    let (sign, infinity) = (format.sign(), format.largest() + 1);
    let (size, negative) = (bits & !sign, bits & sign != 0);
    // A negative number is smaller the larger its absolute value is.
    let (all_positive, all_negative) = ((0, infinity), (sign, sign + infinity));
    let (least, most) = (i64::from(matches!(op, CmpOp::Lt | CmpOp::Gt)), infinity);
    match op {
        _ if size == 0 && matches!(op, CmpOp::Eq | CmpOp::Ne) => vec![(0, 0), (sign, sign)],
        CmpOp::Eq | CmpOp::Ne => vec![(bits, bits)],
        CmpOp::Lt if size == 0 => vec![(sign + 1, sign + most)],
        CmpOp::Gt if size == 0 => vec![(1, most)],
        CmpOp::Le if size == 0 => vec![(0, 0), all_negative],
        CmpOp::Ge if size == 0 => vec![all_positive, (sign, sign)],
        CmpOp::Lt | CmpOp::Le if negative => vec![(sign + size + least, sign + most)],
        CmpOp::Lt | CmpOp::Le => vec![(0, size - least), all_negative],
        CmpOp::Gt | CmpOp::Ge if negative => vec![all_positive, (sign, sign + size - least)],
        CmpOp::Gt | CmpOp::Ge => vec![(size + least, most)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Holds = fn(&f32, &f32) -> bool;

    /// The ranges agree with the language's comparisons, for numbers of every kind.
    #[test]
    fn ranges_are_those_of_the_numbers() {
        let sizes = [
            0.0,
            f32::from_bits(1),
            f32::MIN_POSITIVE,
            0.5,
            1.0,
            1.5,
            f32::MAX,
        ];
        let numbers: Vec<f32> = sizes.iter().flat_map(|n| [*n, -n]).collect();
        let all =
            numbers
                .iter()
                .copied()
                .chain([f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -f32::NAN]);
        let all: Vec<f32> = all
            .chain(numbers.iter().map(|n| f32::from_bits(n.to_bits() ^ 1)))
            .collect();
        for &b in &numbers {
            let operations: [(CmpOp, Holds); 5] = [
                (CmpOp::Eq, f32::eq),
                (CmpOp::Lt, f32::lt),
                (CmpOp::Le, f32::le),
                (CmpOp::Gt, f32::gt),
                (CmpOp::Ge, f32::ge),
            ];
            for (op, holds) in operations {
                let ranges = ranges(op, Format::SINGLE, i64::from(b.to_bits()));
                for a in &all {
                    let bits = i64::from(a.to_bits());
                    let inside = ranges
                        .iter()
                        .any(|(first, last)| (*first..=*last).contains(&bits));
                    assert_eq!(inside, holds(a, &b), "{a:e} {op:?} {b:e}: {ranges:x?}");
                }
            }
        }
    }

    #[test]
    fn numbers_are_rounded_to_the_format_that_values_have() {
        assert_eq!(
            nearest(Format::SINGLE, 0.1),
            Some(i64::from(0.1f32.to_bits()))
        );
        assert_eq!(
            nearest(Format::DOUBLE, -0.1),
            Some((-0.1f64).to_bits() as i64)
        );
        assert_eq!(
            (nearest(Format::SINGLE, 1e39), format(16), format(32)),
            (None, None, Some(Format::SINGLE))
        );
    }
}
