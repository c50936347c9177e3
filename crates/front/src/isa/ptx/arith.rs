//! Arithmetic, logic, comparison, moves and conversions, of integers and of floating-point numbers, which are their bits.
//!
//! # Sources
//! - PTX ISA 9.4, *Integer Arithmetic Instructions*, *Comparison and Selection Instructions*, *Logic and Shift
//!   Instructions*, *Data Movement and Conversion Instructions*, *Floating-Point Instructions*.
//!
//! # Where we differ
//! - Of floating-point operations those are there that IEEE 754 defines to the last bit, rounded to nearest even; a result that is
//!   no number is the canonical one in 64 bits, too.
//! - A product and a sum without `.rn` are not contracted, as an implementation may.
//! - Types may be left out: 64 bits, signed.
//! - Arithmetic on addresses is restricted, by [`super::pointers`].

use super::lower::{Arg, Call, Emit};
use super::table::{
    B128, DATA, DATA_PRED, FLUSH, Group, GroupKind, PRED, ROUND, ResultTy, Role, Row, TYPES, TYPES_PRED, WIDE,
    bits_named, type_named,
};
use program::{BinOp, CmpOp, Expr, FloatOp, Number, Op, Rounding, Ty};

const LOW: Group = Group { kind: GroupKind::Ignored, words: &["lo"] };
const ARITH: &[Group] = &[LOW, TYPES];
/// Of integers and of floating-point numbers.
const NUMBERS: &[Group] = &[LOW, ROUND, FLUSH, DATA];
const EXACT: &[Group] = &[FLUSH, DATA];
const FLOATS: &[Group] = &[ROUND, FLUSH, Group { kind: GroupKind::Type, words: &["f32", "f64"] }];
const COPIED: &[Group] = &[Group { kind: GroupKind::Type, words: &["f32", "f64"] }];
const SINGLES: &[Group] = &[ROUND, FLUSH, Group { kind: GroupKind::Type, words: &["f32"] }];
const MOVED: &[Group] = &[DATA_PRED];
const LOGIC: &[Group] = &[TYPES_PRED];
pub(super) const COMPARISONS: Group = Group {
    kind: GroupKind::Op,
    words: &[
        "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu",
        "num", "nan",
    ],
};
const SPACE: Group = Group {
    kind: GroupKind::Ignored,
    words: &["to", "global", "shared", "shared::cta", "shared::cluster", "const", "local"],
};
const CONVERSIONS: Group = Group { kind: GroupKind::Types, words: DATA.words };
const ROUNDINGS: Group = Group { kind: GroupKind::Round, words: &["rn", "rni", "rzi", "rmi", "rpi"] };
const BINARY: &[Role] = &[Role::Dst, Role::Val, Role::Val];
const SHIFT: &[Role] = &[Role::Dst, Role::Val, Role::Loose];
const UNARY: &[Role] = &[Role::Dst, Role::Val];
const COMBINED: &[Role] = &[Role::Dst, Role::Val, Role::Val, Role::Pred];
const SET: &[Group] = &[COMPARISONS, FLUSH, CONVERSIONS];
const SET_OPERANDS: &[Role] = &[Role::Dst, Role::Loose, Role::Loose];
const SET_COMBINED: &[Role] = &[Role::Dst, Role::Loose, Role::Loose, Role::Pred];
const TERNARY: &[Role] = &[Role::Dst, Role::Val, Role::Val, Role::Val];

/// A row `op{.type} d, a, b`.
const fn binary(
    opcode: &'static str,
    syntax: &'static str,
    doc: &'static str,
    lower: fn(&mut Emit<'_, '_>, &Call),
) -> Row {
    Row::new(opcode, syntax, doc, NUMBERS, BINARY, lower)
}

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "mov",
        "`mov{.type} d, a`, `mov.type {d, e}, a` or `mov.type d, {a, b}`",
        "copies a register, a constant or the address of a location; takes a value to pieces, or puts it together, the lowest bits first",
        MOVED,
        &[Role::Dsts, Role::Vals],
        moved,
    ),
    Row::new(
        "mov",
        "`mov.b128 {lo, hi}, {lo, hi}`, where a register of 128 bits is its halves",
        "copies 128 bits, puts them together or takes them to pieces",
        &[WIDE],
        UNARY,
        moved_halves,
    )
    .one_of(&[B128]),
    Row::new(
        "cvta",
        "`cvta{.to}.space.u64 d, a`",
        "generic to specific address or back: no effect here",
        &[SPACE, TYPES],
        UNARY,
        |e, c| {
            assign(e, c, c.expr(1));
        },
    ),
    Row::new(
        "cvt",
        "`cvt{.rn|.rni|.rzi|.rmi|.rpi}{.ftz}.type.type d, a`",
        "converts between integer and floating-point types; to integers and out of range: the nearest one",
        &[CONVERSIONS, ROUNDINGS, FLUSH],
        &[Role::Dst, Role::Loose],
        |e, c| {
            let Some((to, from)) = c.quals.conversion() else {
                e.error("missing-type", c.opcode.clone(), "a conversion names two types", |d| {
                    d.label("expected the form `cvt.type.type d, a`")
                });
                return;
            };
            if let Some(value) = converted(e, c, to, from) {
                assign(e, c, value);
            }
        },
    ),
    binary("add", "`add{.type} d, a, b`", "sum", |e, c| bin(e, c, BinOp::Add)),
    binary("sub", "`sub{.type} d, a, b`", "difference", |e, c| bin(e, c, BinOp::Sub)),
    binary("mul", "`mul{.lo}{.type} d, a, b`", "product, lower half", |e, c| bin(e, c, BinOp::Mul)),
    Row::new("mul", "`mul.wide.type d, a, b`", "product, twice as wide", &[TYPES], BINARY, |e, c| {
        let value = wide_product(e, c);
        assign(e, c, value);
    })
    .keyed(&["wide"])
    .result(ResultTy::Wide),
    Row::new("mad", "`mad{.lo}{.type} d, a, b, c`", "product, lower half, plus `c`", ARITH, TERNARY, |e, c| {
        let product = op(BinOp::Mul, c.ty, c.expr(1), c.expr(2));
        assign(e, c, op(BinOp::Add, c.ty, product, c.expr(3)));
    }),
    Row::new(
        "mad",
        "`mad.wide.type d, a, b, c`",
        "product, twice as wide, plus `c`",
        &[TYPES],
        &[Role::Dst, Role::Val, Role::Val, Role::Loose],
        |e, c| {
            let wide = double(c.ty);
            let product = wide_product(e, c);
            assign(e, c, op(BinOp::Add, wide, product, c.expr(3)));
        },
    )
    .keyed(&["wide"])
    .result(ResultTy::Wide),
    binary("div", "`div{.rn}{.type} d, a, b`", "quotient; of integers, rounded towards zero", |e, c| {
        if !c.quals.is_float() || rounds(e, c) {
            bin(e, c, BinOp::Div);
        }
    }),
    Row::new("rem", "`rem{.type} d, a, b`", "remainder", ARITH, BINARY, |e, c| bin(e, c, BinOp::Rem)),
    Row::new("min", "`min{.type} d, a, b`", "smaller one", EXACT, BINARY, |e, c| bin(e, c, BinOp::Min)),
    Row::new("max", "`max{.type} d, a, b`", "larger one", EXACT, BINARY, |e, c| bin(e, c, BinOp::Max)),
    Row::new("and", "`and{.type} d, a, b`", "bitwise and", LOGIC, BINARY, |e, c| bin(e, c, BinOp::And)),
    Row::new("or", "`or{.type} d, a, b`", "bitwise or", LOGIC, BINARY, |e, c| {
        // A pointer from its halves, of which the upper one is 0.
        if c.ty.bits == 64 {
            e.ask();
            for (half, other) in [(1, 2), (2, 1)] {
                if c.expr(half) == Expr::Const(0) && c.expr(other).base().is_some() {
                    return assign(e, c, c.expr(other));
                }
            }
        }
        bin(e, c, BinOp::Or);
    }),
    Row::new("xor", "`xor{.type} d, a, b`", "bitwise exclusive or", LOGIC, BINARY, |e, c| bin(e, c, BinOp::Xor)),
    Row::new(
        "not",
        "`not{.type} d, a`",
        "bitwise complement; of a predicate, the opposite",
        LOGIC,
        UNARY,
        |e, c| assign(e, c, op(BinOp::Xor, c.ty, c.expr(1), Expr::Const(c.ty.wrap(-1)))),
    ),
    Row::new("neg", "`neg{.type} d, a`", "negation", EXACT, UNARY, |e, c| {
        let zero = if c.quals.is_float() { minus_zero(c.ty) } else { Expr::Const(0) };
        calculate(e, c, BinOp::Sub, zero, c.expr(1));
    }),
    Row::new("copysign", "`copysign.type d, a, b`", "`b` with the sign of `a`", COPIED, BINARY, |e, c| {
        let sign = Expr::Const(c.ty.wrap(1i64 << (c.ty.bits - 1)));
        let rest = op(BinOp::Xor, c.ty, sign.clone(), Expr::Const(c.ty.wrap(-1)));
        let signed = op(BinOp::And, c.ty, c.expr(1), sign);
        assign(e, c, op(BinOp::Or, c.ty, signed, op(BinOp::And, c.ty, c.expr(2), rest)));
    }),
    Row::new("fma", "`fma.rn{.ftz}.f32 d, a, b, c`", "product plus `c`, rounded once", SINGLES, TERNARY, |e, c| {
        if rounds(e, c) {
            let [x, y, z] = [1, 2, 3].map(|n| flushed(c, c.expr(n)));
            let product = op(BinOp::Float(FloatOp::Product), Ty::U64, x, y);
            let sum = op(BinOp::Float(FloatOp::Accumulate), Ty::U64, product, z);
            assign(e, c, flushed(c, sum));
        }
    }),
    Row::new("sqrt", "`sqrt.rn{.ftz}.type d, a`", "square root", FLOATS, UNARY, |e, c| {
        if rounds(e, c) {
            let root = op(BinOp::Float(FloatOp::Sqrt), c.ty, flushed(c, c.expr(1)), Expr::Const(0));
            assign(e, c, flushed(c, root));
        }
    }),
    Row::new("rcp", "`rcp.rn{.ftz}.type d, a`", "reciprocal", FLOATS, UNARY, |e, c| {
        if rounds(e, c) {
            let one = if c.ty.bits == 32 { i64::from(1f32.to_bits()) } else { 1f64.to_bits() as i64 };
            calculate(e, c, BinOp::Div, Expr::Const(one), c.expr(1));
        }
    }),
    Row::new("shl", "`shl{.type} d, a, n`", "shift left", ARITH, SHIFT, |e, c| shifted(e, c, BinOp::Shl)),
    Row::new("shr", "`shr{.type} d, a, n`", "shift right, arithmetic if signed", ARITH, SHIFT, |e, c| {
        shifted(e, c, BinOp::Shr)
    }),
    Row::new(
        "setp",
        "`setp.cmp{.type} p, a, b`",
        "compares; `eq ne lt le gt ge`, unsigned `lo ls hi hs`, of floating-point numbers `equ neu ltu leu gtu geu num nan`",
        &[COMPARISONS, FLUSH, DATA],
        BINARY,
        |e, c| {
            if let Some(value) = comparison(e, c) {
                assign(e, c, value);
            }
        },
    )
    .result(ResultTy::Pred),
    Row::new(
        "set",
        "`set.cmp{.ftz}.type.type d, a, b`",
        "compares: all ones where it holds, of the type `.f32` 1, else 0",
        SET,
        SET_OPERANDS,
        |e, c| set(e, c, None),
    ),
    Row::new(
        "set",
        "`set.cmp.and{.ftz}.type.type d, a, b, p`",
        "compares, and combines the result with `p`",
        SET,
        SET_COMBINED,
        |e, c| set(e, c, Some(BinOp::And)),
    )
    .keyed(&["and"]),
    Row::new(
        "set",
        "`set.cmp.or{.ftz}.type.type d, a, b, p`",
        "compares, and combines the result with `p`",
        SET,
        SET_COMBINED,
        |e, c| set(e, c, Some(BinOp::Or)),
    )
    .keyed(&["or"]),
    Row::new(
        "set",
        "`set.cmp.xor{.ftz}.type.type d, a, b, p`",
        "compares, and combines the result with `p`",
        SET,
        SET_COMBINED,
        |e, c| set(e, c, Some(BinOp::Xor)),
    )
    .keyed(&["xor"]),
    Row::new(
        "setp",
        "`setp.cmp.and{.type} p, a, b, q`",
        "compares, and combines the result with `q`",
        &[COMPARISONS, FLUSH, DATA],
        COMBINED,
        |e, c| combined(e, c, BinOp::And),
    )
    .keyed(&["and"])
    .result(ResultTy::Pred),
    Row::new(
        "setp",
        "`setp.cmp.or{.type} p, a, b, q`",
        "compares, and combines the result with `q`",
        &[COMPARISONS, FLUSH, DATA],
        COMBINED,
        |e, c| combined(e, c, BinOp::Or),
    )
    .keyed(&["or"])
    .result(ResultTy::Pred),
    Row::new(
        "setp",
        "`setp.cmp.xor{.type} p, a, b, q`",
        "compares, and combines the result with `q`",
        &[COMPARISONS, FLUSH, DATA],
        COMBINED,
        |e, c| combined(e, c, BinOp::Xor),
    )
    .keyed(&["xor"])
    .result(ResultTy::Pred),
    Row::new(
        "selp",
        "`selp{.type} d, a, b, p`",
        "`a` if `p` holds, else `b`",
        MOVED,
        &[Role::Dst, Role::Val, Role::Val, Role::Pred],
        |e, c| {
            let (a, b) = (e.fit(c.expr(1), c.ty), e.fit(c.expr(2), c.ty));
            assign(e, c, Expr::Select(Box::new(c.expr(3)), Box::new(a), Box::new(b)));
        },
    ),
];

/// Copies a value, takes it to pieces or puts it together.
fn moved(e: &mut Emit<'_, '_>, c: &Call) {
    let whole = Ty { signed: false, ..c.ty };
    let (to, from) = (c.elements(0).len() as u8, c.elements(1).len() as u8);
    let fits =
        |pieces: u8| pieces > 0 && c.ty.bits.is_multiple_of(pieces) && [8, 16, 32].contains(&(c.ty.bits / pieces));
    let shift = |pieces: u8, i: usize| Expr::Const(i as i64 * i64::from(c.ty.bits / pieces));
    match (to, from) {
        (1, 1) => {
            let value = e.fit(c.expr(1), c.ty);
            assign(e, c, value);
        }
        (pieces, 1) if fits(pieces) => {
            let mut read = false;
            for (i, dst) in c.elements(0).iter().enumerate() {
                let Arg::Dst(Some(dst)) = *dst else { continue };
                let piece = op(BinOp::Shr, whole, c.expr(1), shift(pieces, i));
                read |= c.expr(1) == Expr::Reg(dst);
                e.push(Op::Assign { dst, value: Expr::Cast(whole.piece(pieces), Box::new(piece)) });
            }
            if read {
                e.error("wrong-operand", c.opcode.clone(), "a value is taken to pieces into itself", |d| {
                    d.label("expected other registers for the pieces")
                });
            }
        }
        (1, pieces) if fits(pieces) => {
            let pieces_of = c.elements(1).iter().enumerate().map(|(i, arg)| {
                let piece = if let Arg::Expr(piece) = arg { piece.clone() } else { Expr::Const(0) };
                let piece = Expr::Cast(whole.piece(pieces), Box::new(piece));
                op(BinOp::Shl, whole, piece, shift(pieces, i))
            });
            let value = pieces_of.reduce(|low, high| op(BinOp::Or, whole, low, high)).unwrap_or(Expr::Const(0));
            assign(e, c, value);
        }
        _ => e.error("wrong-operand", c.opcode.clone(), "these are no pieces of a value of this type", |d| {
            d.label(format!("expected two or four of {} bits in all", c.ty.bits))
        }),
    }
}

/// Copies two halves, the lower one first.
fn moved_halves(e: &mut Emit<'_, '_>, c: &Call) {
    let halves = c.elements(0).iter().zip(c.elements(1));
    let copies: Vec<_> = halves
        .filter_map(|(dst, from)| match (dst, from) {
            (Arg::Dst(Some(dst)), Arg::Expr(value)) => Some((*dst, value.clone())),
            _ => None,
        })
        .collect();
    if let [(low, _), (_, value)] = &copies[..]
        && *value == Expr::Reg(*low)
    {
        e.error(
            "wrong-operand",
            c.opcode.clone(),
            "the lower half is written before the upper one is read from it",
            |d| d.label("expected other registers for the halves"),
        );
        return;
    }
    copies.into_iter().for_each(|(dst, value)| e.push(Op::Assign { dst, value }));
}

pub(super) fn assign(e: &mut Emit<'_, '_>, c: &Call, value: Expr) {
    match c.dst(0) {
        Some(dst) => e.push(Op::Assign { dst, value }),
        None => e.error("wrong-operand", c.opcode.clone(), "a result is needed here", |d| {
            d.label("only `atom` can discard its result with `_`")
        }),
    }
}

pub(super) fn op(op: BinOp, ty: Ty, a: Expr, b: Expr) -> Expr {
    Expr::Bin(op, ty, Box::new(a), Box::new(b))
}

fn bin(e: &mut Emit<'_, '_>, c: &Call, operation: BinOp) {
    calculate(e, c, operation, c.expr(1), c.expr(2));
}

/// A shift, by a number of 32 bits, whatever is shifted (PTX ISA 9.4, *shl*, *shr*).
fn shifted(e: &mut Emit<'_, '_>, c: &Call, operation: BinOp) {
    let by = match c.ty.bits {
        16 => op(BinOp::Min, Ty::U32, c.expr(2), Expr::Const(16)),
        _ => c.expr(2),
    };
    calculate(e, c, operation, c.expr(1), by);
}

/// An operation, on floating-point numbers if the type says so.
fn calculate(e: &mut Emit<'_, '_>, c: &Call, operation: BinOp, a: Expr, b: Expr) {
    if !suits(e, c) {
        return;
    }
    if !c.quals.is_float() {
        assign(e, c, op(operation, c.ty, a, b));
        return;
    }
    let operation = match operation {
        BinOp::Add => FloatOp::Add,
        BinOp::Sub => FloatOp::Sub,
        BinOp::Mul => FloatOp::Mul,
        BinOp::Div => FloatOp::Div,
        BinOp::Min => FloatOp::Min,
        _ => FloatOp::Max,
    };
    let value = op(BinOp::Float(operation), c.ty, flushed(c, a), flushed(c, b));
    assign(e, c, flushed(c, value));
}

/// The absolute value of a floating-point number: the larger one of it and its opposite.
pub(super) fn absolute_value(e: &mut Emit<'_, '_>, c: &Call) {
    let opposite = op(BinOp::Float(FloatOp::Sub), c.ty, minus_zero(c.ty), flushed(c, c.expr(1)));
    calculate(e, c, BinOp::Max, c.expr(1), opposite);
}

/// Whether qualifiers that only some types have go with this one; if not, says so.
pub(super) fn suits(e: &mut Emit<'_, '_>, c: &Call) -> bool {
    let wrong = match (c.quals.is_float(), c.ty.bits) {
        (true, 32) => [GroupKind::Ignored].as_slice(),
        (true, _) => &[GroupKind::Ignored, GroupKind::Flush],
        (false, _) => &[GroupKind::Round, GroupKind::Flush],
    };
    let Some(place) = wrong.iter().find_map(|kind| c.quals.place(*kind)) else { return true };
    let message = format!("`.{}` does not go with this type", e.str(&place));
    e.error("conflicting-qualifiers", place, message, |d| {
        d.label("`.rn` is for floating-point types, `.ftz` for `.f32`, `.lo` for integers")
    });
    false
}

/// Whether an instruction that may be an approximation is not; if it is, says so.
fn rounds(e: &mut Emit<'_, '_>, c: &Call) -> bool {
    if c.quals.place(GroupKind::Round).is_none() {
        let message = format!("`{}` without rounding is not supported", c.row.opcode);
        e.error("unsupported-qualifier", c.opcode.clone(), message, |d| {
            d.label("expected `.rn`: what an approximation gives is not defined")
        });
        return false;
    }
    suits(e, c)
}

/// Without subnormal numbers, if the instruction says so.
pub(super) fn flushed(c: &Call, value: Expr) -> Expr {
    match c.quals.get(GroupKind::Flush) {
        Some(_) => op(BinOp::Float(FloatOp::Flush), Ty::U32, value, Expr::Const(0)),
        None => value,
    }
}

/// What a number is taken from for its opposite, so that the opposite of a zero is the other one.
fn minus_zero(ty: Ty) -> Expr {
    Expr::Const(ty.wrap(1i64 << (ty.bits - 1)))
}

/// A conversion.
fn converted(e: &mut Emit<'_, '_>, c: &Call, to: &'static str, from: &'static str) -> Option<Expr> {
    let number = |word: &str| match word {
        "f32" => Number::Single,
        "f64" => Number::Double,
        word => Number::Int(type_named(word).unwrap_or(Ty::WORD)),
    };
    let (to, from) = (number(to), number(from));
    let word = c.quals.get(GroupKind::Round);
    let whole = match word {
        Some("rni") => Some(Rounding::Even),
        Some("rzi") => Some(Rounding::Zero),
        Some("rmi") => Some(Rounding::Down),
        Some("rpi") => Some(Rounding::Up),
        _ => None,
    };
    let (rounding, expected) = match (from, to) {
        (Number::Int(_), Number::Int(_)) => (word.is_none().then_some(Rounding::Nearest), "no rounding"),
        (Number::Int(_), _) | (Number::Double, Number::Single) => {
            ((word == Some("rn")).then_some(Rounding::Nearest), "`.rn`")
        }
        (_, Number::Int(_)) => (whole, "`.rni`, `.rzi`, `.rmi` or `.rpi`"),
        (Number::Single, Number::Double) => (word.is_none().then_some(Rounding::Nearest), "no rounding"),
        _ => (whole.or(word.is_none().then_some(Rounding::Nearest)), "an integer rounding, or none"),
    };
    let flushes = [from, to].contains(&Number::Single) || c.quals.get(GroupKind::Flush).is_none();
    let Some(rounding) = rounding.filter(|_| flushes) else {
        let place =
            c.quals.place(GroupKind::Round).or(c.quals.place(GroupKind::Flush)).unwrap_or(c.opcode.clone());
        e.error("conflicting-qualifiers", place, "this conversion does not round so", |d| {
            d.label(format!("expected {expected}, and `.ftz` with `.f32` alone"))
        });
        return None;
    };
    if let (Number::Int(_), Number::Int(source)) = (to, from) {
        return Some(Expr::Cast(c.ty, Box::new(e.fit(c.expr(1), source))));
    }
    let source = if from == Number::Single { flushed(c, c.expr(1)) } else { c.expr(1) };
    let value = op(BinOp::Float(FloatOp::Convert(from, to, rounding)), Ty::U64, source, Expr::Const(0));
    Some(if to == Number::Single { flushed(c, value) } else { value })
}

pub(super) fn double(ty: Ty) -> Ty {
    Ty { bits: ty.bits.saturating_mul(2).min(64), ..ty }
}

pub(super) fn wide_product(e: &mut Emit<'_, '_>, c: &Call) -> Expr {
    if c.ty.bits == 64 {
        e.error("unsupported-type", c.opcode.clone(), "a product of 128 bits is not supported", |d| {
            d.label("expected 16-bit or 32-bit types")
        });
    }
    op(BinOp::Mul, double(c.ty), e.fit(c.expr(1), c.ty), e.fit(c.expr(2), c.ty))
}

fn combined(e: &mut Emit<'_, '_>, c: &Call, operation: BinOp) {
    if let Some(value) = comparison(e, c) {
        assign(e, c, op(operation, PRED, value, c.expr(3)));
    }
}

fn comparison(e: &mut Emit<'_, '_>, c: &Call) -> Option<Expr> {
    if suits(e, c) { comparison_in(e, c, c.ty, c.quals.is_float()) } else { None }
}

/// A comparison of numbers of a type.
fn comparison_in(e: &mut Emit<'_, '_>, c: &Call, ty: Ty, float: bool) -> Option<Expr> {
    let word = c.quals.get(GroupKind::Op);
    let (a, b) = (c.expr(1), c.expr(2));
    if float {
        let (a, b) = (flushed(c, a), flushed(c, b));
        let test = |kind, a: &Expr, b: &Expr| op(BinOp::Float(kind), ty, a.clone(), b.clone());
        let not = |value| op(BinOp::Xor, PRED, value, Expr::Const(1));
        let (less, equal) = (FloatOp::Less, FloatOp::Equal);
        let at_most = FloatOp::LessEqual;
        let unordered = test(FloatOp::Unordered, &a, &b);
        return Some(match word {
            Some("eq") => test(equal, &a, &b),
            Some("ne") => not(op(BinOp::Or, PRED, test(equal, &a, &b), unordered)),
            Some("lt") => test(less, &a, &b),
            Some("le") => test(at_most, &a, &b),
            Some("gt") => test(less, &b, &a),
            Some("ge") => test(at_most, &b, &a),
            Some("equ") => op(BinOp::Or, PRED, test(equal, &a, &b), unordered),
            Some("neu") => not(test(equal, &a, &b)),
            Some("ltu") => not(test(at_most, &b, &a)),
            Some("leu") => not(test(less, &b, &a)),
            Some("gtu") => not(test(at_most, &a, &b)),
            Some("geu") => not(test(less, &a, &b)),
            Some("num") => not(unordered),
            Some("nan") => unordered,
            _ => return no_comparison(e, c),
        });
    }
    let unsigned = Ty { signed: false, ..ty };
    let (cmp, ty) = match word {
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
    Some(Expr::Cmp(cmp, ty, Box::new(a), Box::new(b)))
}

/// A comparison whose answer is a number: of integers all ones, of floating-point numbers 1.
fn set(e: &mut Emit<'_, '_>, c: &Call, combined: Option<BinOp>) {
    let typed = c.quals.conversion().and_then(|(to, of)| Some((to, of, bits_named(of)?)));
    let Some((to, of, ty)) = typed.filter(|(to, ..)| ["u32", "s32", "f32"].contains(to)) else {
        return e.error(
            "missing-type",
            c.opcode.clone(),
            "`set` names the type of its result and of what it compares",
            |d| d.label("expected `.u32`, `.s32` or `.f32`, and a type to compare"),
        );
    };
    let float = of.starts_with('f');
    if let Some(place) = c.quals.place(GroupKind::Flush).filter(|_| of != "f32") {
        return e.error("conflicting-qualifiers", place, "`.ftz` does not go with this type", |d| {
            d.label("`.ftz` is for numbers of the type `.f32`")
        });
    }
    let Some(mut holds) = comparison_in(e, c, ty, float) else { return };
    if let Some(combined) = combined {
        holds = op(combined, PRED, holds, c.expr(3));
    }
    let yes = if to == "f32" { 0x3f80_0000 } else { c.ty.wrap(-1) };
    assign(e, c, Expr::Select(holds.into(), Expr::Const(yes).into(), Expr::Const(0).into()));
}

fn no_comparison(e: &mut Emit<'_, '_>, c: &Call) -> Option<Expr> {
    let message = format!("`{}` names a comparison that its type has", c.row.opcode);
    e.error("missing-operation", c.opcode.clone(), message, |d| {
        d.label(format!("expected the form {}", c.row.syntax))
    });
    None
}
