//! Arithmetic, logic, comparison, moves and conversions.
//!
//! # Sources
//! - PTX ISA 9.4, *Integer Arithmetic Instructions*, *Comparison and Selection Instructions*, *Logic and Shift
//!   Instructions*, *Data Movement and Conversion Instructions*.
//!
//! # Where we differ
//! - Types may be left out: 64 bits, signed.
//! - Arithmetic on addresses is restricted, by [`super::pointers`].

use super::lower::{Call, Emit};
use super::table::{Group, GroupKind, PRED, ResultTy, Role, Row, TYPES, TYPES_PRED};
use program::{BinOp, CmpOp, Expr, Op, Ty};

const LOW: Group = Group { kind: GroupKind::Ignored, words: &["lo"] };
const ARITH: &[Group] = &[LOW, TYPES];
const LOGIC: &[Group] = &[TYPES_PRED];
const COMPARISONS: Group =
    Group { kind: GroupKind::Op, words: &["eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"] };
const SPACE: Group = Group {
    kind: GroupKind::Ignored,
    words: &["to", "global", "shared", "shared::cta", "shared::cluster", "const", "local"],
};
const CONVERSIONS: Group = Group { kind: GroupKind::Types, words: TYPES.words };
const BINARY: &[Role] = &[Role::Dst, Role::Val, Role::Val];
const SHIFT: &[Role] = &[Role::Dst, Role::Val, Role::Loose];
const UNARY: &[Role] = &[Role::Dst, Role::Val];
const COMBINED: &[Role] = &[Role::Dst, Role::Val, Role::Val, Role::Pred];
const TERNARY: &[Role] = &[Role::Dst, Role::Val, Role::Val, Role::Val];

/// A row `op{.type} d, a, b`.
const fn binary(
    opcode: &'static str,
    syntax: &'static str,
    doc: &'static str,
    lower: fn(&mut Emit<'_, '_>, &Call),
) -> Row {
    Row::new(opcode, syntax, doc, ARITH, BINARY, lower)
}

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "mov",
        "`mov{.type} d, a`",
        "copies a register, a constant or the address of a location",
        LOGIC,
        UNARY,
        |e, c| {
            let value = e.fit(c.expr(1), c.ty);
            assign(e, c, value);
        },
    ),
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
        "`cvt.type.type d, a`",
        "converts between integer types",
        &[CONVERSIONS],
        &[Role::Dst, Role::Loose],
        |e, c| {
            let Some(source) = c.quals.source_ty() else {
                e.error("missing-type", c.opcode.clone(), "a conversion names two types", |d| {
                    d.label("expected the form `cvt.type.type d, a`")
                });
                return;
            };
            let value = Expr::Cast(c.ty, Box::new(e.fit(c.expr(1), source)));
            assign(e, c, value);
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
    binary("div", "`div{.type} d, a, b`", "quotient, rounded towards zero", |e, c| bin(e, c, BinOp::Div)),
    binary("rem", "`rem{.type} d, a, b`", "remainder", |e, c| bin(e, c, BinOp::Rem)),
    binary("min", "`min{.type} d, a, b`", "smaller one", |e, c| bin(e, c, BinOp::Min)),
    binary("max", "`max{.type} d, a, b`", "larger one", |e, c| bin(e, c, BinOp::Max)),
    Row::new("and", "`and{.type} d, a, b`", "bitwise and", LOGIC, BINARY, |e, c| bin(e, c, BinOp::And)),
    Row::new("or", "`or{.type} d, a, b`", "bitwise or", LOGIC, BINARY, |e, c| bin(e, c, BinOp::Or)),
    Row::new("xor", "`xor{.type} d, a, b`", "bitwise exclusive or", LOGIC, BINARY, |e, c| bin(e, c, BinOp::Xor)),
    Row::new(
        "not",
        "`not{.type} d, a`",
        "bitwise complement; of a predicate, the opposite",
        LOGIC,
        UNARY,
        |e, c| assign(e, c, op(BinOp::Xor, c.ty, c.expr(1), Expr::Const(c.ty.wrap(-1)))),
    ),
    Row::new("neg", "`neg{.type} d, a`", "negation", ARITH, UNARY, |e, c| {
        assign(e, c, op(BinOp::Sub, c.ty, Expr::Const(0), c.expr(1)));
    }),
    Row::new("shl", "`shl{.type} d, a, n`", "shift left", ARITH, SHIFT, |e, c| bin(e, c, BinOp::Shl)),
    Row::new("shr", "`shr{.type} d, a, n`", "shift right, arithmetic if signed", ARITH, SHIFT, |e, c| {
        bin(e, c, BinOp::Shr)
    }),
    Row::new(
        "setp",
        "`setp.cmp{.type} p, a, b`",
        "compares; `eq ne lt le gt ge`, unsigned `lo ls hi hs`",
        &[COMPARISONS, TYPES],
        BINARY,
        |e, c| {
            if let Some(value) = comparison(e, c) {
                assign(e, c, value);
            }
        },
    )
    .result(ResultTy::Pred),
    Row::new(
        "setp",
        "`setp.cmp.and{.type} p, a, b, q`",
        "compares, and combines the result with `q`",
        &[COMPARISONS, TYPES],
        COMBINED,
        |e, c| combined(e, c, BinOp::And),
    )
    .keyed(&["and"])
    .result(ResultTy::Pred),
    Row::new(
        "setp",
        "`setp.cmp.or{.type} p, a, b, q`",
        "compares, and combines the result with `q`",
        &[COMPARISONS, TYPES],
        COMBINED,
        |e, c| combined(e, c, BinOp::Or),
    )
    .keyed(&["or"])
    .result(ResultTy::Pred),
    Row::new(
        "setp",
        "`setp.cmp.xor{.type} p, a, b, q`",
        "compares, and combines the result with `q`",
        &[COMPARISONS, TYPES],
        COMBINED,
        |e, c| combined(e, c, BinOp::Xor),
    )
    .keyed(&["xor"])
    .result(ResultTy::Pred),
    Row::new(
        "selp",
        "`selp{.type} d, a, b, p`",
        "`a` if `p` holds, else `b`",
        LOGIC,
        &[Role::Dst, Role::Val, Role::Val, Role::Pred],
        |e, c| {
            let (a, b) = (e.fit(c.expr(1), c.ty), e.fit(c.expr(2), c.ty));
            assign(e, c, Expr::Select(Box::new(c.expr(3)), Box::new(a), Box::new(b)));
        },
    ),
];

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
    assign(e, c, op(operation, c.ty, c.expr(1), c.expr(2)));
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
    let unsigned = Ty { signed: false, ..c.ty };
    let (cmp, ty) = match c.quals.get(GroupKind::Op) {
        Some("eq") => (CmpOp::Eq, c.ty),
        Some("ne") => (CmpOp::Ne, c.ty),
        Some("lt") => (CmpOp::Lt, c.ty),
        Some("le") => (CmpOp::Le, c.ty),
        Some("gt") => (CmpOp::Gt, c.ty),
        Some("ge") => (CmpOp::Ge, c.ty),
        Some("lo") => (CmpOp::Lt, unsigned),
        Some("ls") => (CmpOp::Le, unsigned),
        Some("hi") => (CmpOp::Gt, unsigned),
        Some("hs") => (CmpOp::Ge, unsigned),
        _ => {
            e.error("missing-operation", c.opcode.clone(), "`setp` names a comparison", |d| {
                d.label(format!("expected the form {}", c.row.syntax))
            });
            return None;
        }
    };
    Some(Expr::Cmp(cmp, ty, Box::new(c.expr(1)), Box::new(c.expr(2))))
}
