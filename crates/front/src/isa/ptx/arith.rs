//! Arithmetic, logic, comparisons, moves and conversions of integers, and of floating-point numbers
//! as their bits.
//!
//! # Sources
//! - PTX ISA 9.4, *Integer Arithmetic Instructions*, *Comparison and Selection Instructions*,
//!   *Logic and Shift Instructions*, *Data Movement and Conversion Instructions*, *Floating-Point
//!   Instructions*.
//!
//! # Where we differ
//! - Only floating-point operations that IEEE 754 defines to the last bit are supported
//!   ([`super::floats`]).
//! - Types may be left out: the default is 64 bits, signed.
//! - [`super::pointers`] restricts arithmetic on addresses.

use super::floats::{
    calculate, converted, fused, negated, reciprocal, root, rounds, saturating, set,
    set_predicates, suits,
};
use super::lower::{Emit, PtxArg, PtxInstr};
use super::needs::Need;
use super::table::{
    B128, DATA, DATA_PRED, FLUSH, InstrRow, NUMBERS, OperandRole, QualGroup, QualKind, ROUND,
    ResultTy, TYPES, TYPES_PRED, WIDE,
};
use program::{BinOp, Expr, Op, Ty};

const LOW: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["lo"],
};
const ARITH: &[QualGroup] = &[LOW, TYPES];
/// Qualifiers of arithmetic on integers and floating-point numbers.
const CALCULATED: &[QualGroup] = &[LOW, ROUND, FLUSH, SAT, SUMMED];
/// The types of sums and products, including pairs of `.f32`.
const SUMMED: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &[
        "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "b8", "b16", "b32", "b64", "f32",
        "f64", "f16", "f16x2", "bf16", "bf16x2", "f32x2",
    ],
};
const EXACT: &[QualGroup] = &[FLUSH, NUMBERS];
const ORDERED: &[QualGroup] = &[
    FLUSH,
    QualGroup {
        kind: QualKind::Clamp,
        words: &["NaN"],
    },
    NUMBERS,
];
const FLOATS: &[QualGroup] = &[
    ROUND,
    FLUSH,
    QualGroup {
        kind: QualKind::Type,
        words: &["f32", "f64"],
    },
];
const COPIED: &[QualGroup] = &[QualGroup {
    kind: QualKind::Type,
    words: &["f32", "f64"],
}];
const FUSED: &[QualGroup] = &[
    ROUND,
    FLUSH,
    SAT,
    RELU,
    QualGroup {
        kind: QualKind::Type,
        words: &["f32", "f64", "f32x2", "f16", "f16x2", "bf16", "bf16x2"],
    },
];
const SAT: QualGroup = QualGroup {
    kind: QualKind::Clamp,
    words: &["sat"],
};
const LIMITS: QualGroup = QualGroup {
    kind: QualKind::Clamp,
    words: &["sat", "satfinite"],
};
const RELU: QualGroup = QualGroup {
    kind: QualKind::Rectify,
    words: &["relu"],
};
const MOVED: &[QualGroup] = &[DATA_PRED];
const LOGIC: &[QualGroup] = &[TYPES_PRED];
pub(super) const COMPARISONS: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &[
        "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu",
        "gtu", "geu", "num", "nan",
    ],
};
const SPACE: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &[
        "to",
        "global",
        "shared",
        "shared::cta",
        "shared::cluster",
        "const",
        "local",
        "param",
        "param::entry",
    ],
};
const CONVERSIONS: QualGroup = QualGroup {
    kind: QualKind::Types,
    words: NUMBERS.words,
};
const ROUNDINGS: QualGroup = QualGroup {
    kind: QualKind::Round,
    words: &["rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"],
};
const BINARY: &[OperandRole] = &[OperandRole::Dst, OperandRole::Val, OperandRole::Val];
const SHIFT: &[OperandRole] = &[OperandRole::Dst, OperandRole::Val, OperandRole::Loose];
const UNARY: &[OperandRole] = &[OperandRole::Dst, OperandRole::Val];
const HALF_PAIRS: Need = Need::of(&["bf16", "bf16x2"], (7, 8), 90);
const SINGLE_PAIRS: Need = Need::of(&["f32x2"], (8, 6), 100);
const SMALL_EXTREMES: Need = Need::of(&["f16", "f16x2", "bf16", "bf16x2", "NaN"], (7, 0), 80);
const COMPARED: &[OperandRole] = &[OperandRole::DstAndPred, OperandRole::Val, OperandRole::Val];
const COMBINED: &[OperandRole] = &[
    OperandRole::DstAndPred,
    OperandRole::Val,
    OperandRole::Val,
    OperandRole::Pred,
];
const COMBINES: &str = "compares, and combines the results with `r`";
const SET: &[QualGroup] = &[COMPARISONS, FLUSH, CONVERSIONS];
const SET_OPERANDS: &[OperandRole] = &[OperandRole::Dst, OperandRole::Loose, OperandRole::Loose];
const SET_COMBINED: &[OperandRole] = &[
    OperandRole::Dst,
    OperandRole::Loose,
    OperandRole::Loose,
    OperandRole::Pred,
];
const TERNARY: &[OperandRole] = &[
    OperandRole::Dst,
    OperandRole::Val,
    OperandRole::Val,
    OperandRole::Val,
];

/// A row `op{.type} d, a, b`.
const fn binary(
    opcode: &'static str,
    syntax: &'static str,
    doc: &'static str,
    lower: fn(&mut Emit<'_, '_>, &PtxInstr),
) -> InstrRow {
    InstrRow::new(opcode, syntax, doc, CALCULATED, BINARY, lower)
}

/// A row of `setp`.
const fn compares(
    syntax: &'static str,
    doc: &'static str,
    keys: &'static [&'static str],
    operands: &'static [OperandRole],
    lower: fn(&mut Emit<'_, '_>, &PtxInstr),
) -> InstrRow {
    InstrRow::new(
        "setp",
        syntax,
        doc,
        &[COMPARISONS, FLUSH, NUMBERS],
        operands,
        lower,
    )
    .needs(&[HALF_PAIRS])
    .keyed(keys)
    .result(ResultTy::Pred)
}

pub(super) const ROWS: &[InstrRow] = &[
    InstrRow::new(
        "mov",
        "`mov{.type} d, a`, `mov.type {d, e}, a` or `mov.type d, {a, b}`",
        "copies a register, a constant or the address of a location; takes a value to pieces, \
         or puts it together, the lowest bits first",
        MOVED,
        &[OperandRole::Dsts, OperandRole::Vals],
        moved,
    ),
    InstrRow::new(
        "mov",
        "`mov.b128 {lo, hi}, {lo, hi}`, where a register of 128 bits is its halves",
        "copies 128 bits, puts them together or takes them to pieces",
        &[WIDE],
        UNARY,
        moved_halves,
    )
    .needs(&[Need::of(&["b128"], (8, 3), 70)])
    .one_of(&[B128]),
    InstrRow::new(
        "cvta",
        "`cvta{.to}.space.u64 d, a`",
        "generic to specific address or back: no effect here",
        &[SPACE, TYPES],
        UNARY,
        |e, c| {
            assign(e, c, c.expr(1));
        },
    ),
    InstrRow::new(
        "cvt",
        "`cvt{.rnd|.irnd}{.ftz}{.sat|.satfinite}{.relu}.type.type d, a{, b}`",
        "converts between integer and floating-point types; to integers and out of range: the \
         nearest one; two numbers `.f32` to a packed type, the first to its upper half",
        &[CONVERSIONS, ROUNDINGS, FLUSH, LIMITS, RELU],
        &[OperandRole::Dst, OperandRole::Loose, OperandRole::Loose],
        converted,
    )
    .needs(&[Need::of(&["bf16", "bf16x2"], (7, 0), 80)])
    .optional(1),
    binary(
        "add",
        "`add{.rnd}{.ftz}{.sat}{.type} d, a, b`",
        "sum",
        |e, c| bin(e, c, BinOp::Add),
    )
    .needs(&[HALF_PAIRS, SINGLE_PAIRS]),
    binary(
        "sub",
        "`sub{.rnd}{.ftz}{.sat}{.type} d, a, b`",
        "difference",
        |e, c| bin(e, c, BinOp::Sub),
    )
    .needs(&[HALF_PAIRS, SINGLE_PAIRS]),
    binary(
        "mul",
        "`mul{.lo}{.rnd}{.ftz}{.sat}{.type} d, a, b`",
        "product, lower half",
        |e, c| bin(e, c, BinOp::Mul),
    )
    .needs(&[HALF_PAIRS, SINGLE_PAIRS]),
    InstrRow::new(
        "mul",
        "`mul.wide.type d, a, b`",
        "product, twice as wide",
        &[TYPES],
        BINARY,
        |e, c| {
            let value = wide_product(e, c);
            assign(e, c, value);
        },
    )
    .keyed(&["wide"])
    .result(ResultTy::Wide),
    InstrRow::new(
        "mad",
        "`mad{.lo}{.type} d, a, b, c`",
        "product, lower half, plus `c`",
        ARITH,
        TERNARY,
        |e, c| {
            let product = op(BinOp::Mul, c.ty, c.expr(1), c.expr(2));
            assign(e, c, op(BinOp::Add, c.ty, product, c.expr(3)));
        },
    ),
    InstrRow::new(
        "mad",
        "`mad.wide.type d, a, b, c`",
        "product, twice as wide, plus `c`",
        &[TYPES],
        &[
            OperandRole::Dst,
            OperandRole::Val,
            OperandRole::Val,
            OperandRole::Loose,
        ],
        |e, c| {
            let wide = double(c.ty);
            let product = wide_product(e, c);
            assign(e, c, op(BinOp::Add, wide, product, c.expr(3)));
        },
    )
    .keyed(&["wide"])
    .result(ResultTy::Wide),
    InstrRow::new(
        "div",
        "`div{.rnd}{.ftz}{.type} d, a, b`",
        "quotient; of integers, rounded towards zero",
        &[ROUND, FLUSH, DATA],
        BINARY,
        |e, c| {
            if c.quals.format().is_none() || rounds(e, c) {
                bin(e, c, BinOp::Div);
            }
        },
    ),
    InstrRow::new(
        "rem",
        "`rem{.type} d, a, b`",
        "remainder",
        ARITH,
        BINARY,
        |e, c| bin(e, c, BinOp::Rem),
    ),
    InstrRow::new(
        "min",
        "`min{.ftz}{.NaN}{.type} d, a, b`",
        "smaller one",
        ORDERED,
        BINARY,
        |e, c| bin(e, c, BinOp::Min),
    )
    .needs(&[SMALL_EXTREMES]),
    InstrRow::new(
        "max",
        "`max{.ftz}{.NaN}{.type} d, a, b`",
        "larger one",
        ORDERED,
        BINARY,
        |e, c| bin(e, c, BinOp::Max),
    )
    .needs(&[SMALL_EXTREMES]),
    InstrRow::new(
        "and",
        "`and{.type} d, a, b`",
        "bitwise and",
        LOGIC,
        BINARY,
        |e, c| bin(e, c, BinOp::And),
    ),
    InstrRow::new(
        "or",
        "`or{.type} d, a, b`",
        "bitwise or",
        LOGIC,
        BINARY,
        |e, c| {
            // Builds a pointer from its halves if one of them is 0.
            if c.ty.bits == 64 {
                e.ask();
                for (half, other) in [(1, 2), (2, 1)] {
                    if c.expr(half) == Expr::Const(0) && c.expr(other).base().is_some() {
                        return assign(e, c, c.expr(other));
                    }
                }
            }
            bin(e, c, BinOp::Or);
        },
    ),
    InstrRow::new(
        "xor",
        "`xor{.type} d, a, b`",
        "bitwise exclusive or",
        LOGIC,
        BINARY,
        |e, c| bin(e, c, BinOp::Xor),
    ),
    InstrRow::new(
        "not",
        "`not{.type} d, a`",
        "bitwise complement; of a predicate, the opposite",
        LOGIC,
        UNARY,
        |e, c| {
            assign(
                e,
                c,
                op(BinOp::Xor, c.ty, c.expr(1), Expr::Const(c.ty.wrap(-1))),
            )
        },
    ),
    InstrRow::new(
        "neg",
        "`neg{.ftz}{.type} d, a`",
        "negation",
        EXACT,
        UNARY,
        |e, c| {
            if !suits(e, c) {
                return;
            }
            match c.quals.format() {
                Some(format) => negated(e, c, format),
                None => assign(e, c, op(BinOp::Sub, c.ty, Expr::Const(0), c.expr(1))),
            }
        },
    )
    .needs(&[Need::of(&["bf16", "bf16x2"], (7, 0), 80)]),
    InstrRow::new(
        "copysign",
        "`copysign.type d, a, b`",
        "`b` with the sign of `a`",
        COPIED,
        BINARY,
        |e, c| {
            let sign = Expr::Const(c.ty.wrap(1i64 << (c.ty.bits - 1)));
            let rest = op(BinOp::Xor, c.ty, sign.clone(), Expr::Const(c.ty.wrap(-1)));
            let signed = op(BinOp::And, c.ty, c.expr(1), sign);
            assign(
                e,
                c,
                op(
                    BinOp::Or,
                    c.ty,
                    signed,
                    op(BinOp::And, c.ty, c.expr(2), rest),
                ),
            );
        },
    ),
    InstrRow::new(
        "fma",
        "`fma.rnd{.ftz}{.sat|.relu}.type d, a, b, c`",
        "product plus `c`, rounded once",
        FUSED,
        TERNARY,
        fused,
    )
    .needs(&[
        Need::of(&["bf16", "bf16x2", "relu"], (7, 0), 80),
        SINGLE_PAIRS,
    ]),
    InstrRow::new(
        "mad",
        "`mad.rnd{.ftz}{.sat}.type d, a, b, c`",
        "product plus `c`, rounded once",
        &[
            ROUND,
            FLUSH,
            SAT,
            QualGroup {
                kind: QualKind::Type,
                words: &["f32", "f64"],
            },
        ],
        TERNARY,
        fused,
    )
    .one_of(&["f32", "f64"]),
    InstrRow::new(
        "sqrt",
        "`sqrt.rnd{.ftz}.type d, a`",
        "square root",
        FLOATS,
        UNARY,
        root,
    ),
    InstrRow::new(
        "rcp",
        "`rcp.rnd{.ftz}.type d, a`",
        "reciprocal",
        FLOATS,
        UNARY,
        reciprocal,
    ),
    InstrRow::new(
        "shl",
        "`shl{.type} d, a, n`",
        "shift left",
        ARITH,
        SHIFT,
        |e, c| shifted(e, c, BinOp::Shl),
    ),
    InstrRow::new(
        "shr",
        "`shr{.type} d, a, n`",
        "shift right, arithmetic if signed",
        ARITH,
        SHIFT,
        |e, c| shifted(e, c, BinOp::Shr),
    ),
    compares(
        "`setp.cmp{.ftz}{.type} p{|q}, a, b`",
        "compares; `eq ne lt le gt ge`, unsigned `lo ls hi hs`, of floating-point numbers \
         `equ neu ltu leu gtu geu num nan`; `q` is the opposite, of a packed type what \
         its upper numbers give",
        &[],
        COMPARED,
        |e, c| set_predicates(e, c, None),
    ),
    compares(
        "`setp.cmp.and{.ftz}{.type} p{|q}, a, b, r`",
        COMBINES,
        &["and"],
        COMBINED,
        |e, c| set_predicates(e, c, Some(BinOp::And)),
    ),
    compares(
        "`setp.cmp.or{.ftz}{.type} p{|q}, a, b, r`",
        COMBINES,
        &["or"],
        COMBINED,
        |e, c| set_predicates(e, c, Some(BinOp::Or)),
    ),
    compares(
        "`setp.cmp.xor{.ftz}{.type} p{|q}, a, b, r`",
        COMBINES,
        &["xor"],
        COMBINED,
        |e, c| set_predicates(e, c, Some(BinOp::Xor)),
    ),
    InstrRow::new(
        "set",
        "`set.cmp{.ftz}.type.type d, a, b`",
        "compares: all ones where it holds, of a floating-point type 1, else 0",
        SET,
        SET_OPERANDS,
        |e, c| set(e, c, None),
    ),
    InstrRow::new(
        "set",
        "`set.cmp.and{.ftz}.type.type d, a, b, p`",
        "compares, and combines the result with `p`",
        SET,
        SET_COMBINED,
        |e, c| set(e, c, Some(BinOp::And)),
    )
    .keyed(&["and"]),
    InstrRow::new(
        "set",
        "`set.cmp.or{.ftz}.type.type d, a, b, p`",
        "compares, and combines the result with `p`",
        SET,
        SET_COMBINED,
        |e, c| set(e, c, Some(BinOp::Or)),
    )
    .keyed(&["or"]),
    InstrRow::new(
        "set",
        "`set.cmp.xor{.ftz}.type.type d, a, b, p`",
        "compares, and combines the result with `p`",
        SET,
        SET_COMBINED,
        |e, c| set(e, c, Some(BinOp::Xor)),
    )
    .keyed(&["xor"]),
    InstrRow::new(
        "selp",
        "`selp{.type} d, a, b, p`",
        "`a` if `p` holds, else `b`",
        MOVED,
        &[
            OperandRole::Dst,
            OperandRole::Val,
            OperandRole::Val,
            OperandRole::Pred,
        ],
        |e, c| {
            let (a, b) = (e.fit(c.expr(1), c.ty), e.fit(c.expr(2), c.ty));
            assign(
                e,
                c,
                Expr::Select(Box::new(c.expr(3)), Box::new(a), Box::new(b)),
            );
        },
    ),
];

/// Lowers `mov`: copies a value, splits it into a vector, or joins a vector into a value.
fn moved(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let whole = Ty {
        signed: false,
        ..c.ty
    };
    let (to, from) = (c.elements(0).len() as u8, c.elements(1).len() as u8);
    let fits = |pieces: u8| {
        pieces > 0
            && c.ty.bits.is_multiple_of(pieces)
            && [8, 16, 32].contains(&(c.ty.bits / pieces))
    };
    let shift = |pieces: u8, i: usize| Expr::Const(i as i64 * i64::from(c.ty.bits / pieces));
    match (to, from) {
        (1, 1) => {
            let value = e.fit(c.expr(1), c.ty);
            assign(e, c, value);
        }
        (pieces, 1) if fits(pieces) => {
            let mut read = false;
            for (i, dst) in c.elements(0).iter().enumerate() {
                let PtxArg::Dst(Some(dst)) = *dst else {
                    continue;
                };
                let piece = op(BinOp::Shr, whole, c.expr(1), shift(pieces, i));
                read |= c.expr(1) == Expr::Reg(dst);
                e.push(Op::Assign {
                    dst,
                    value: Expr::Cast(whole.piece(pieces), Box::new(piece)),
                });
            }
            if read {
                e.error(
                    "wrong-operand",
                    c.opcode.clone(),
                    "a value is taken to pieces into itself",
                    |d| d.label("expected other registers for the pieces"),
                );
            }
        }
        (1, pieces) if fits(pieces) => {
            let pieces_of = c.elements(1).iter().enumerate().map(|(i, arg)| {
                let piece = if let PtxArg::Expr(piece) = arg {
                    piece.clone()
                } else {
                    Expr::Const(0)
                };
                let piece = Expr::Cast(whole.piece(pieces), Box::new(piece));
                op(BinOp::Shl, whole, piece, shift(pieces, i))
            });
            let value = pieces_of
                .reduce(|low, high| op(BinOp::Or, whole, low, high))
                .unwrap_or(Expr::Const(0));
            assign(e, c, value);
        }
        _ => e.error(
            "wrong-operand",
            c.opcode.clone(),
            "a value of this type does not have these pieces",
            |d| d.label(format!("expected two or four of {} bits in all", c.ty.bits)),
        ),
    }
}

/// Copies two halves of a wide value, the lower one first.
fn moved_halves(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let halves = c.elements(0).iter().zip(c.elements(1));
    let copies: Vec<_> = halves
        .filter_map(|(dst, from)| match (dst, from) {
            (PtxArg::Dst(Some(dst)), PtxArg::Expr(value)) => Some((*dst, value.clone())),
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
    copies
        .into_iter()
        .for_each(|(dst, value)| e.push(Op::Assign { dst, value }));
}

pub(super) fn assign(e: &mut Emit<'_, '_>, c: &PtxInstr, value: Expr) {
    match c.dst(0) {
        Some(dst) => e.push(Op::Assign { dst, value }),
        None => e.error(
            "wrong-operand",
            c.opcode.clone(),
            "a result is needed here",
            |d| d.label("only `atom` can discard its result with `_`"),
        ),
    }
}

pub(super) fn op(op: BinOp, ty: Ty, a: Expr, b: Expr) -> Expr {
    Expr::Bin(op, ty, Box::new(a), Box::new(b))
}

/// An operation on integers, or on floating-point numbers if the type says so.
fn bin(e: &mut Emit<'_, '_>, c: &PtxInstr, operation: BinOp) {
    if !suits(e, c) {
        return;
    }
    match (c.quals.format(), c.quals.place(QualKind::Clamp)) {
        (Some(format), _) => calculate(e, c, format, operation),
        (None, None) => assign(e, c, op(operation, c.ty, c.expr(1), c.expr(2))),
        (None, Some(_)) if matches!(operation, BinOp::Add | BinOp::Sub) => {
            saturating(e, c, operation)
        }
        (None, Some(place)) => e.error(
            "conflicting-qualifiers",
            place,
            "there is no such product",
            |d| d.label("expected `.sat` with `.f32`, `.f16` or `.f16x2`"),
        ),
    }
}

/// A shift. The distance has 32 bits, whatever the type of the shifted value (PTX ISA 9.4, *shl*,
/// *shr*).
fn shifted(e: &mut Emit<'_, '_>, c: &PtxInstr, operation: BinOp) {
    let by = match c.ty.bits {
        16 => op(BinOp::Min, Ty::U32, c.expr(2), Expr::Const(16)),
        _ => c.expr(2),
    };
    assign(e, c, op(operation, c.ty, c.expr(1), by));
}

pub(super) fn double(ty: Ty) -> Ty {
    Ty {
        bits: ty.bits.saturating_mul(2).min(64),
        ..ty
    }
}

pub(super) fn wide_product(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Expr {
    if c.ty.bits == 64 {
        e.error(
            "unsupported-type",
            c.opcode.clone(),
            "a product of 128 bits is not supported",
            |d| d.label("expected 16-bit or 32-bit types"),
        );
    }
    op(
        BinOp::Mul,
        double(c.ty),
        e.fit(c.expr(1), c.ty),
        e.fit(c.expr(2), c.ty),
    )
}
