//! Floating-point arithmetic, comparisons and conversions for all formats, on the bits of the
//! numbers.
//!
//! # Invariants
//! - The name of a type gives its format ([`Quals::format`]); the code here is the same for all
//!   formats. Only the table [`GOES`] lists which qualifiers PTX allows for which type.
//! - An instruction on a packed type works on each number of it ([`each`]).
//!
//! # Sources
//! - PTX ISA 9.4, *Floating-Point Instructions*, *Half Precision Floating-Point Instructions*,
//!   *Comparison and Selection Instructions*, *Half Precision Comparison Instructions*, *cvt*. The
//!   qualifiers for each type were tested with `ptxas` 13.
//!
//! # Where we differ
//! - A NaN result is the canonical one, also in 64 bits and for `neg` and `abs`.
//! - A product and a sum without `.rn` are not contracted, although an implementation may do it.
//! - `.sat` and `.relu` turn a negative zero into the positive one.

use super::arith::{assign, op};
use super::atomics::{HALF, joined, numbers, pieces, put_together};
use super::lower::{Emit, PtxArg, PtxInstr};
use super::table::{PRED, QualKind, bits_named, format_named, type_named};
use program::{BinOp, CmpOp, Expr, FloatOp, Format, Fused, NumberType, Op, Rounding, Ty};

const SINGLES: &[&str] = &["f32", "f64", "f32x2"];
const FLOATS: &[&str] = &["f32", "f64", "f32x2", "f16", "f16x2", "bf16", "bf16x2"];
const HALVES: &[&str] = &["f16", "f16x2", "bf16", "bf16x2"];
const FLUSHED: &[&str] = &["f32", "f32x2", "f16", "f16x2"];

/// For each restricted qualifier, the types that it goes with; the others go with all types.
const GOES: &[(&str, &[&str])] = &[
    ("rn", FLOATS),
    ("rz", SINGLES),
    ("rm", SINGLES),
    ("rp", SINGLES),
    ("ftz", FLUSHED),
    ("sat", &["f32", "f16", "f16x2", "s32"]),
    ("NaN", &["f32", "f16", "f16x2", "bf16", "bf16x2"]),
    ("relu", HALVES),
    (
        "lo",
        &[
            "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "b8", "b16", "b32", "b64",
        ],
    ),
];

/// Whether the instruction's qualifiers go with its type; if not, reports an error.
pub(super) fn suits(e: &mut Emit<'_, '_>, c: &PtxInstr) -> bool {
    suits_type(e, c, c.quals.get(QualKind::Type).unwrap_or("s64"))
}

fn suits_type(e: &mut Emit<'_, '_>, c: &PtxInstr, ty: &str) -> bool {
    let wrong = c.quals.written().find(|(kind, word, _)| {
        is_modifier(*kind) && is_restricted(word) && !types_with(word).contains(&ty)
    });
    let Some((_, word, place)) = wrong else {
        return true;
    };
    e.error(
        "conflicting-qualifiers",
        place,
        format!("`.{word}` does not go with this type"),
        |d| {
            d.label(format!(
                "expected it with one of {}",
                types_with(word).join(", ")
            ))
        },
    );
    false
}

fn is_modifier(kind: QualKind) -> bool {
    matches!(
        kind,
        QualKind::Ignored | QualKind::Round | QualKind::Flush | QualKind::Clamp | QualKind::Rectify
    )
}

fn is_restricted(word: &str) -> bool {
    GOES.iter().any(|row| row.0 == word)
}

fn types_with(word: &str) -> &'static [&'static str] {
    GOES.iter()
        .find(|goes| goes.0 == word)
        .map_or(FLOATS, |goes| goes.1)
}

/// Whether the instruction has a rounding; if not, reports an error, because it would be an
/// approximation.
pub(super) fn rounds(e: &mut Emit<'_, '_>, c: &PtxInstr) -> bool {
    if c.quals.place(QualKind::Round).is_none() {
        let message = format!("`{}` without rounding is not supported", c.row.opcode);
        e.error("unsupported-qualifier", c.opcode.clone(), message, |d| {
            d.label(
                "expected a rounding such as `.rn`: PTX does not define the value of an \
                approximation",
            )
        });
        return false;
    }
    suits(e, c)
}

/// An operation of a format on two numbers.
fn float(operation: FloatOp, format: Format, a: Expr, b: Expr) -> Expr {
    let ty = match operation {
        FloatOp::To(..) | FloatOp::From(..) => Ty::U64,
        _ => Ty {
            bits: format.bits,
            signed: false,
        },
    };
    op(BinOp::Float(operation, format), ty, a, b)
}

pub(super) fn unary(operation: FloatOp, format: Format, a: Expr) -> Expr {
    float(operation, format, a, Expr::Const(0))
}

/// The rounding that the instruction names.
fn rounding(c: &PtxInstr) -> Rounding {
    match c.quals.get(QualKind::Round) {
        Some("rz" | "rzi") => Rounding::Zero,
        Some("rm" | "rmi") => Rounding::Down,
        Some("rp" | "rpi") => Rounding::Up,
        _ => Rounding::Nearest,
    }
}

/// The value, with subnormal numbers flushed if the instruction says so.
pub(super) fn flushed(c: &PtxInstr, format: Format, value: Expr) -> Expr {
    match c.quals.get(QualKind::Flush) {
        Some(_) => unary(FloatOp::Flush, format, value),
        None => value,
    }
}

/// The value, or the canonical NaN if `nan` holds.
fn unless(nan: Expr, format: Format, value: Expr) -> Expr {
    Expr::Select(nan.into(), Expr::Const(format.nan()).into(), value.into())
}

/// The value, limited to a range of numbers, given by their bits.
fn within(format: Format, value: Expr, least: i64, most: i64) -> Expr {
    float(
        FloatOp::Min,
        format,
        float(FloatOp::Max, format, value, Expr::Const(least)),
        Expr::Const(most),
    )
}

fn is_nan(format: Format, value: &Expr) -> Expr {
    float(FloatOp::Unordered, format, value.clone(), value.clone())
}

/// The value, limited to the range that the instruction gives.
fn limited(c: &PtxInstr, format: Format, mut value: Expr) -> Expr {
    match c.quals.get(QualKind::Clamp) {
        // `.sat` turns a NaN into zero.
        Some("sat") => value = within(format, value, 0, format.one()),
        Some("satfinite") => {
            let (nan, most) = (is_nan(format, &value), format.largest());
            value = unless(
                nan,
                format,
                within(format, value, most | format.sign(), most),
            );
        }
        _ => {}
    }
    if c.quals.get(QualKind::Rectify).is_some() {
        let nan = is_nan(format, &value);
        value = unless(
            nan,
            format,
            float(FloatOp::Max, format, value, Expr::Const(0)),
        );
    }
    value
}

/// Applies `of` to each number of the operands `1..=n`. Operands and results are flushed, and
/// results limited, as the instruction says.
fn each(c: &PtxInstr, format: Format, n: usize, of: impl Fn(&[Expr]) -> Expr) -> Expr {
    let number = Ty {
        bits: format.bits,
        signed: false,
    };
    let all: Vec<Vec<Expr>> = (1..=n)
        .map(|i| pieces(number, c.quals.packed(), &c.expr(i)))
        .collect();
    put_together(
        number,
        (0..usize::from(c.quals.packed())).map(|k: usize| {
            let operands: Vec<Expr> = all
                .iter()
                .map(|numbers| flushed(c, format, numbers[k].clone()))
                .collect();
            limited(c, format, flushed(c, format, of(&operands)))
        }),
    )
}

/// An operation on the first two operands, number by number.
pub(super) fn calculate(e: &mut Emit<'_, '_>, c: &PtxInstr, format: Format, operation: BinOp) {
    let (by, not_a_number) = (rounding(c), c.quals.get(QualKind::Clamp) == Some("NaN"));
    let operation = match operation {
        BinOp::Add => FloatOp::Add(by),
        BinOp::Sub => FloatOp::Sub(by),
        BinOp::Mul => FloatOp::Mul(by),
        BinOp::Div => FloatOp::Div(by),
        BinOp::Min => FloatOp::Min,
        _ => FloatOp::Max,
    };
    let value = each(c, format, 2, |of| {
        let (a, b) = (of[0].clone(), of[1].clone());
        let value = float(operation, format, a.clone(), b.clone());
        if not_a_number {
            unless(float(FloatOp::Unordered, format, a, b), format, value)
        } else {
            value
        }
    });
    assign(e, c, value);
}

/// The negated value. It is subtracted from negative zero, so that zeros change their sign, too.
fn opposite(format: Format, value: Expr) -> Expr {
    float(
        FloatOp::Sub(Rounding::Nearest),
        format,
        Expr::Const(format.sign()),
        value,
    )
}

pub(super) fn negated(e: &mut Emit<'_, '_>, c: &PtxInstr, format: Format) {
    let value = each(c, format, 1, |of| opposite(format, of[0].clone()));
    assign(e, c, value);
}

/// The absolute value: the maximum of a number and its negation.
pub(super) fn absolute_value(e: &mut Emit<'_, '_>, c: &PtxInstr, format: Format) {
    let value = each(c, format, 1, |of| {
        float(
            FloatOp::Max,
            format,
            of[0].clone(),
            opposite(format, of[0].clone()),
        )
    });
    assign(e, c, value);
}

/// A product and a sum with a single rounding.
pub(super) fn fused(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let Some(format) = c.quals.format().filter(|_| rounds(e, c)) else {
        return;
    };
    if let (Some(_), Some(place)) = (
        c.quals.get(QualKind::Clamp),
        c.quals.place(QualKind::Rectify),
    ) {
        return e.error(
            "conflicting-qualifiers",
            place,
            "`.relu` does not go with `.sat`",
            |d| d.label("expected one of them"),
        );
    }
    let value = each(c, format, 3, |of| {
        let three = [0, 1, 2].map(|i| of[i].clone().into());
        Expr::Fused(
            Fused {
                format,
                rounding: rounding(c),
            },
            three,
        )
    });
    assign(e, c, value);
}

pub(super) fn root(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let Some(format) = c.quals.format().filter(|_| rounds(e, c)) else {
        return;
    };
    let value = each(c, format, 1, |of| {
        unary(FloatOp::Sqrt(rounding(c)), format, of[0].clone())
    });
    assign(e, c, value);
}

pub(super) fn reciprocal(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let Some(format) = c.quals.format().filter(|_| rounds(e, c)) else {
        return;
    };
    let value = each(c, format, 1, |of| {
        float(
            FloatOp::Div(rounding(c)),
            format,
            Expr::Const(format.one()),
            of[0].clone(),
        )
    });
    assign(e, c, value);
}

pub(super) fn converted(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let Some((to_word, from_word)) = c.quals.conversion() else {
        return e.error(
            "missing-type",
            c.opcode.clone(),
            "a conversion names two types",
            |d| d.label("expected the form `cvt.type.type d, a`"),
        );
    };
    let (to, from) = (number_named(to_word), number_named(from_word));
    if !converts(e, c, to, from) {
        return;
    }
    let (to, from) = (to.number, from.number);
    let value = match (to, from) {
        (NumberType::Int(to), NumberType::Int(from)) => {
            let value = e.fit(c.expr(1), from);
            let value = if c.quals.get(QualKind::Clamp).is_some() {
                saturated(value, from, to)
            } else {
                value
            };
            Expr::Cast(c.ty, Box::new(value))
        }
        _ if to_word.ends_with("x2") => {
            let halves = [2, 1].into_iter();
            joined(halves.map(|i| converted_number(c, from, to, c.expr(i))))
        }
        _ => converted_number(c, from, to, c.expr(1)),
    };
    assign(e, c, value);
}

/// A number converted to another type, of which at least one is a floating-point type.
fn converted_number(c: &PtxInstr, from: NumberType, to: NumberType, value: Expr) -> Expr {
    let by = rounding(c);
    let value = match from {
        NumberType::Float(format @ Format::SINGLE) => flushed(c, format, value),
        _ => value,
    };
    let value = match (from, to) {
        (NumberType::Int(from), NumberType::Float(to)) => unary(FloatOp::From(from, by), to, value),
        (NumberType::Float(from), NumberType::Float(to))
            if from == to && c.quals.get(QualKind::Round).is_some() =>
        {
            unary(FloatOp::Whole(by), from, value)
        }
        (NumberType::Float(from), to) => unary(FloatOp::To(to, by), from, value),
        (NumberType::Int(_), NumberType::Int(_)) => value,
    };
    match to {
        NumberType::Float(format @ Format::SINGLE) => limited(c, format, flushed(c, format, value)),
        NumberType::Float(format) => limited(c, format, value),
        NumberType::Int(_) => value,
    }
}

/// An integer, limited to the range of another type.
fn saturated(value: Expr, from: Ty, to: Ty) -> Expr {
    let ((least, most), own) = (integer_range(to), integer_range(from));
    let [least, most] = [least, most].map(|n| Expr::Const(n.clamp(own.0, own.1) as i64));
    op(BinOp::Min, from, op(BinOp::Max, from, value, least), most)
}

fn integer_range(ty: Ty) -> (i128, i128) {
    match ty.signed {
        true => (-(1i128 << (ty.bits - 1)), (1i128 << (ty.bits - 1)) - 1),
        false => (0, (1i128 << ty.bits) - 1),
    }
}

/// A sum or difference, limited to the range of `.s32`.
pub(super) fn saturating(e: &mut Emit<'_, '_>, c: &PtxInstr, operation: BinOp) {
    let [a, b] = [1, 2].map(|i| Expr::Cast(Ty::S32, c.expr(i).into()));
    assign(
        e,
        c,
        saturated(op(operation, Ty::WORD, a, b), Ty::WORD, Ty::S32),
    );
}

fn number_named(word: &'static str) -> NamedNumber {
    let number = match format_named(word) {
        Some(format) => NumberType::Float(format),
        None => NumberType::Int(type_named(word).unwrap_or(Ty::WORD)),
    };
    NamedNumber { word, number }
}

/// A type of a conversion, with its name.
#[derive(Clone, Copy)]
struct NamedNumber {
    word: &'static str,
    number: NumberType,
}

/// Whether format `b` can represent all numbers of format `a`.
fn is_part_of(a: Format, b: Format) -> bool {
    a.fraction <= b.fraction && a.bits - a.fraction <= b.bits - b.fraction
}

/// Whether a conversion with these types and qualifiers exists; if not, reports an error.
fn converts(e: &mut Emit<'_, '_>, c: &PtxInstr, to: NamedNumber, from: NamedNumber) -> bool {
    let (to_word, from_word) = (to.word, from.word);
    let packed = to_word.ends_with("x2");
    let round = c.quals.get(QualKind::Round);
    let whole = round.is_some_and(|word| word.ends_with('i'));
    let is = |word: &str| to_word == word || from_word == word;
    let narrow = |bits: u8| bits == 8 && is("bf16");
    let (rounds, expected) = match (from.number, to.number) {
        (NumberType::Int(_), NumberType::Int(_)) => (round.is_none(), "no rounding"),
        (NumberType::Int(from), _) if narrow(from.bits) => {
            (false, "an integer of at least 16 bits")
        }
        (_, NumberType::Int(to)) if narrow(to.bits) => (false, "an integer of at least 16 bits"),
        (_, NumberType::Int(_)) => (whole, "`.rni`, `.rzi`, `.rmi` or `.rpi`"),
        (NumberType::Float(a), NumberType::Float(b)) if a == b => {
            (round.is_none() || whole, "an integer rounding, or none")
        }
        // A widening conversion is exact and takes no rounding.
        (NumberType::Float(a), NumberType::Float(b)) if is_part_of(a, b) => (
            round.is_none() || (from_word == "bf16" && !whole),
            "no rounding",
        ),
        _ => (round.is_some() && !whole, "`.rn`, `.rz`, `.rm` or `.rp`"),
    };
    let (clamp, relu) = (
        c.quals.get(QualKind::Clamp),
        c.quals.get(QualKind::Rectify).is_some(),
    );
    let from_single =
        from_word == "f32" && HALVES.contains(&to_word) && matches!(round, Some("rn" | "rz"));
    let wrong = if !rounds {
        Some((QualKind::Round, expected))
    } else if c.quals.get(QualKind::Flush).is_some() && (!is("f32") || packed) {
        Some((QualKind::Flush, "`.ftz` with `.f32` alone"))
    } else if (clamp == Some("satfinite") || relu) && !from_single {
        Some((
            QualKind::Clamp,
            "`.relu` and `.satfinite` from `.f32` to numbers of 16 bits, with `.rn` or `.rz`",
        ))
    } else if clamp == Some("sat") && (is("bf16") || packed) {
        Some((QualKind::Clamp, "`.sat` without `.bf16` and packed types"))
    } else if packed && (!from_single || relu && clamp == Some("sat")) {
        Some((QualKind::Types, "two numbers `.f32`, and `.rn` or `.rz`"))
    } else if clamp == Some("sat") && relu {
        Some((QualKind::Rectify, "one of `.sat` and `.relu`"))
    } else if packed != (c.args.len() == 3) {
        Some((QualKind::Types, "two operands for a packed type, else one"))
    } else {
        None
    };
    let Some((kind, expected)) = wrong else {
        return true;
    };
    let place = c.quals.place(kind).unwrap_or(c.opcode.clone());
    e.error(
        "conflicting-qualifiers",
        place,
        "there is no such conversion",
        |d| d.label(format!("expected {expected}")),
    );
    false
}

/// The comparisons of an instruction in the type `word`: one for each number of a packed type.
fn comparisons(e: &mut Emit<'_, '_>, c: &PtxInstr, word: &str) -> Option<Vec<Expr>> {
    let ty = bits_named(word).unwrap_or(Ty::WORD);
    let Some(format) = format_named(word) else {
        return Some(vec![of_integers(e, c, ty)?]);
    };
    let packed = if word.ends_with("x2") { 2 } else { 1 };
    let [a, b] = [1, 2].map(|i| numbers(packed, &c.expr(i)));
    a.into_iter()
        .zip(b)
        .map(|(a, b)| of_numbers(e, c, format, a, b))
        .collect()
}

fn of_numbers(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    format: Format,
    a: Expr,
    b: Expr,
) -> Option<Expr> {
    let (a, b) = (flushed(c, format, a), flushed(c, format, b));
    let test = |kind, a: &Expr, b: &Expr| float(kind, format, a.clone(), b.clone());
    let (less, equal, at_most) = (FloatOp::Less, FloatOp::Equal, FloatOp::LessEqual);
    let unordered = test(FloatOp::Unordered, &a, &b);
    Some(match c.quals.get(QualKind::Op) {
        Some("eq") => test(equal, &a, &b),
        Some("ne") => negation(op(BinOp::Or, PRED, test(equal, &a, &b), unordered)),
        Some("lt") => test(less, &a, &b),
        Some("le") => test(at_most, &a, &b),
        Some("gt") => test(less, &b, &a),
        Some("ge") => test(at_most, &b, &a),
        Some("equ") => op(BinOp::Or, PRED, test(equal, &a, &b), unordered),
        Some("neu") => negation(test(equal, &a, &b)),
        Some("ltu") => negation(test(at_most, &b, &a)),
        Some("leu") => negation(test(less, &b, &a)),
        Some("gtu") => negation(test(at_most, &a, &b)),
        Some("geu") => negation(test(less, &a, &b)),
        Some("num") => negation(unordered),
        Some("nan") => unordered,
        _ => return no_comparison(e, c),
    })
}

fn negation(value: Expr) -> Expr {
    op(BinOp::Xor, PRED, value, Expr::Const(1))
}

fn of_integers(e: &mut Emit<'_, '_>, c: &PtxInstr, ty: Ty) -> Option<Expr> {
    let unsigned = Ty {
        signed: false,
        ..ty
    };
    let (cmp, ty) = match c.quals.get(QualKind::Op) {
        Some("eq") => (CmpOp::Eq, ty),
        Some("ne") => (CmpOp::Ne, ty),
        Some("lt") => (CmpOp::Lt, ty),
        Some("le") => (CmpOp::Le, ty),
        Some("gt") => (CmpOp::Gt, ty),
        Some("ge") => (CmpOp::Ge, ty),
        Some("lo") => (CmpOp::Lt, unsigned),
        Some("ls") => (CmpOp::Le, unsigned),
        Some("hi") => (CmpOp::Gt, unsigned),
        Some("hs") => (CmpOp::Ge, unsigned),
        _ => return no_comparison(e, c),
    };
    Some(Expr::Cmp(cmp, ty, c.expr(1).into(), c.expr(2).into()))
}

/// A comparison that sets a predicate, optionally combined with another predicate. A second
/// destination gets the opposite result or, for a packed type, the result for the upper numbers.
pub(super) fn set_predicates(e: &mut Emit<'_, '_>, c: &PtxInstr, combined: Option<BinOp>) {
    if !suits(e, c) {
        return;
    }
    let word = c.quals.get(QualKind::Type).unwrap_or("s64");
    let Some(mut results) = comparisons(e, c, word) else {
        return;
    };
    if let ([one], false) = (&results[..], HALVES.contains(&word)) {
        let opposite = op(BinOp::Xor, PRED, one.clone(), Expr::Const(1));
        results.push(opposite);
    }
    let (destinations, mut written) = (c.elements(0), None);
    if destinations.len() > results.len() {
        return e.error(
            "wrong-operand",
            c.opcode.clone(),
            "numbers of 16 bits have one predicate",
            |d| d.label("expected one predicate, or a packed type"),
        );
    }
    if destinations
        .iter()
        .all(|dst| matches!(dst, PtxArg::Dst(None)))
    {
        return assign(e, c, Expr::Const(0));
    }
    for (dst, value) in destinations.iter().zip(results) {
        let value = match combined {
            Some(combined) => op(combined, PRED, value, c.expr(3)),
            None => value,
        };
        // The second comparison must use the old operands.
        if written.is_some_and(|w| value.any(&|e| *e == Expr::Reg(w))) {
            return e.error(
                "wrong-operand",
                c.opcode.clone(),
                "a predicate that is written is read for the other",
                |d| d.label("expected another predicate for one of them"),
            );
        }
        if let PtxArg::Dst(Some(dst)) = dst {
            e.push(Op::Assign { dst: *dst, value });
            written = Some(*dst);
        }
    }
}

/// A comparison with a number as its result: all ones for an integer type, 1.0 for a floating-point
/// type.
pub(super) fn set(e: &mut Emit<'_, '_>, c: &PtxInstr, combined: Option<BinOp>) {
    let Some((to, of)) = c.quals.conversion().filter(|(to, of)| is_set(to, of)) else {
        return e.error(
            "missing-type",
            c.opcode.clone(),
            "`set` names the type of its result and the type of its operands",
            |d| {
                d.label(
                    "expected `.u32`, `.s32`, `.f32` or, of numbers of 16 bits, a type of \
                     that size, and a type to compare",
                )
            },
        );
    };
    if !suits_type(e, c, of) {
        return;
    }
    let Some(results) = comparisons(e, c, of) else {
        return;
    };
    let yes = match (format_named(to), results.len()) {
        (Some(format), _) => format.one(),
        (None, 1) => c.ty.wrap(-1),
        (None, _) => HALF.wrap(-1),
    };
    assign(
        e,
        c,
        joined(results.into_iter().map(|holds: Expr| {
            let holds = match combined {
                Some(combined) => op(combined, PRED, holds, c.expr(3)),
                None => holds,
            };
            Expr::Select(holds.into(), Expr::Const(yes).into(), Expr::Const(0).into())
        })),
    );
}

/// Whether `set` allows a result of type `to` for a comparison in type `of`.
fn is_set(to: &str, of: &str) -> bool {
    let packed = of.ends_with("x2");
    match to {
        "u32" | "s32" => true,
        "f32" => !HALVES.contains(&of),
        "u16" | "s16" => ["f16", "bf16"].contains(&of),
        "f16" => !packed && of != "bf16",
        "bf16" => !packed && of != "f16",
        "f16x2" | "bf16x2" => of == to,
        _ => false,
    }
}

fn no_comparison<T>(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Option<T> {
    let message = format!("`{}` names a comparison that its type has", c.row.opcode);
    e.error("missing-operation", c.opcode.clone(), message, |d| {
        d.label(format!("expected the form {}", c.row.syntax))
    });
    None
}
