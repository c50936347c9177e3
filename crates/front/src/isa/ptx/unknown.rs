//! Operations with unknown results ([`program::unknown`]): approximations, formats of less than 16
//! bits, products of matrices, cache policies.
//!
//! The operands determine the result of such an operation. But the ISA leaves the function to the
//! implementation, or no verdict has needed it. Properties of a kernel that do not depend on the
//! results can still be decided, above all freedom of races.
//!
//! # Sources
//! - PTX ISA 9.4, *Floating-Point Instructions*, *Half Precision Floating-Point Instructions*,
//!   *cvt*, *Warp Level Matrix Multiply-Accumulate Instructions*, *createpolicy*.
//!
//! # Where we differ
//! - A product of matrices depends on the operands of all lanes. Here it depends only on its own
//!   lane's operands, which orders less.

use super::arith::op;
use super::lower::{Emit, PtxArg, PtxInstr};
use super::needs::Need;
use super::table::{FLUSH, InstrRow, OperandRole, QualGroup, QualKind, ResultTy};
use program::{BinOp, Expr, Op};

const QUOTIENTS: &[&str] = &["approx", "full"];
const MODES: QualGroup = QualGroup {
    kind: QualKind::Round,
    words: &["rn", "rz", "rm", "rp", "approx", "full"],
};
const CLAMPED: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["sat", "relu", "NaN", "xorsign", "abs", "oob"],
};
const NUMBERS: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &["f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "s32"],
};
const CONVERSIONS: QualGroup = QualGroup {
    kind: QualKind::Types,
    words: &[
        "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "f16x2", "bf16", "bf16x2",
        "tf32", "f32", "f64", "e4m3x2", "e5m2x2", "b32",
    ],
};
const CONVERTED: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &[
        "rn",
        "rz",
        "rm",
        "rp",
        "rna",
        "rs",
        "rni",
        "rzi",
        "rmi",
        "rpi",
        "sat",
        "satfinite",
        "relu",
    ],
};
/// Qualifiers that make the result of a conversion unknown.
const INEXACT_CONVERSION: &[&str] = &["tf32", "e4m3x2", "e5m2x2", "rna", "rs", "pack"];
const MATRICES: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &[
        "sync",
        "aligned",
        "row",
        "col",
        "satfinite",
        "xor",
        "and",
        "popc",
        "m8n8k4",
        "m8n8k16",
        "m8n8k32",
        "m8n8k128",
        "m16n8k4",
        "m16n8k8",
        "m16n8k16",
        "m16n8k32",
        "m16n8k64",
        "m16n8k128",
        "m16n8k256",
        "f16",
        "bf16",
        "tf32",
        "f32",
        "s32",
        "s8",
        "u8",
        "s4",
        "u4",
        "b1",
        "e4m3",
        "e5m2",
    ],
};
const PRIORITIES: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &[
        "L2",
        "L2::evict_last",
        "L2::evict_normal",
        "L2::evict_first",
        "L2::evict_unchanged",
    ],
};
const B64: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &["b64"],
};
const GLOBAL: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["global"],
};

const ALIKE: &[QualGroup] = &[MODES, FLUSH, CLAMPED, NUMBERS];
const UNARY: &[OperandRole] = &[OperandRole::Dst, OperandRole::Any];
const BINARY: &[OperandRole] = &[OperandRole::Dst, OperandRole::Any, OperandRole::Any];
const TERNARY: &[OperandRole] = &[
    OperandRole::Dst,
    OperandRole::Any,
    OperandRole::Any,
    OperandRole::Any,
];

/// A row for an operation on numbers.
const fn of(
    opcode: &'static str,
    syntax: &'static str,
    doc: &'static str,
    operands: &'static [OperandRole],
) -> InstrRow {
    InstrRow::new(opcode, syntax, doc, ALIKE, operands, unknown)
}

const SIGNED: &str = "of magnitudes, with a sign of both: a value that is not worked out";
const APPROXIMATE: &str = "an approximation: a value that is not worked out";

pub(super) const ROWS: &[InstrRow] = &[
    of(
        "fma",
        "`fma.rnd.oob{.relu}.type d, a, b, c`",
        "product plus `c`, where some operands count as zero: a value that is not worked \
         out",
        TERNARY,
    )
    .needs(&[Need::of(&["bf16", "bf16x2", "relu"], (7, 0), 80)])
    .keyed(&["oob"]),
    of(
        "min",
        "`min{.ftz}{.NaN}.xorsign.abs.type d, a, b`",
        SIGNED,
        BINARY,
    )
    .needs(&[Need::always((7, 2), 86)])
    .keyed(&["xorsign"]),
    of(
        "max",
        "`max{.ftz}{.NaN}.xorsign.abs.type d, a, b`",
        SIGNED,
        BINARY,
    )
    .needs(&[Need::always((7, 2), 86)])
    .keyed(&["xorsign"]),
    of(
        "div",
        "`div{.approx|.full|.rnd}{.ftz}.type d, a, b`",
        APPROXIMATE,
        BINARY,
    )
    .one_of(QUOTIENTS),
    of(
        "rcp",
        "`rcp{.approx|.rnd}{.ftz}.type d, a`",
        APPROXIMATE,
        UNARY,
    )
    .one_of(QUOTIENTS),
    of(
        "sqrt",
        "`sqrt{.approx|.rnd}{.ftz}.type d, a`",
        APPROXIMATE,
        UNARY,
    )
    .one_of(QUOTIENTS),
    of(
        "rsqrt",
        "`rsqrt.approx{.ftz}.type d, a`",
        APPROXIMATE,
        UNARY,
    )
    .keyed(&["approx"]),
    of("sin", "`sin.approx{.ftz}.f32 d, a`", APPROXIMATE, UNARY).keyed(&["approx"]),
    of("cos", "`cos.approx{.ftz}.f32 d, a`", APPROXIMATE, UNARY).keyed(&["approx"]),
    of("lg2", "`lg2.approx{.ftz}.f32 d, a`", APPROXIMATE, UNARY).keyed(&["approx"]),
    of("ex2", "`ex2.approx{.ftz}.type d, a`", APPROXIMATE, UNARY)
        .needs(&[
            Need::of(&["f16", "f16x2"], (7, 0), 75),
            Need::of(&["bf16", "bf16x2"], (7, 8), 90),
        ])
        .keyed(&["approx"]),
    of("tanh", "`tanh.approx.type d, a`", APPROXIMATE, UNARY)
        .needs(&[
            Need::always((7, 0), 75),
            Need::of(&["bf16", "bf16x2"], (7, 8), 90),
        ])
        .keyed(&["approx"]),
    InstrRow::new(
        "cvt",
        "`cvt{.rnd}{.ftz}{.sat|.satfinite}{.relu}.type.type d, a{, b{, c}}`",
        "of formats of less than 16 bits and of `.tf32`, and with random roundings: a value \
         that is not worked out",
        &[CONVERSIONS, CONVERTED, FLUSH],
        TERNARY,
        unknown,
    )
    .needs(&[
        Need::of(&["bf16", "bf16x2", "tf32"], (7, 0), 80),
        Need::of(&["e4m3x2", "e5m2x2"], (8, 1), 89),
    ])
    .one_of(INEXACT_CONVERSION)
    .optional(2),
    InstrRow::new(
        "mma",
        "`mma.sync.aligned.shape.row.col.type.type.type.type {d, …}, {a, …}, {b, …}, {c, …}`",
        "product of matrices in the registers of a warp: values that are not worked out",
        &[MATRICES],
        &[
            OperandRole::Dsts,
            OperandRole::Vals,
            OperandRole::Vals,
            OperandRole::Vals,
        ],
        unknown,
    )
    .needs(&[
        Need::always((6, 4), 70),
        Need::of(&["m16n8k16"], (7, 0), 80),
    ])
    .result(ResultTy::U32),
    InstrRow::new(
        "createpolicy",
        "`createpolicy.fractional.L2::priority{.L2::evict_unchanged}.b64 d{, fraction}`",
        "a cache policy, which changes no value that is read: itself a value that is not \
         worked out",
        &[PRIORITIES, B64],
        UNARY,
        unknown,
    )
    .needs(&[Need::always((7, 4), 80)])
    .keyed(&["fractional"])
    .optional(1),
    InstrRow::new(
        "createpolicy",
        "`createpolicy.cvt.L2.b64 d, a`",
        "the same, from a property of accesses",
        &[PRIORITIES, B64],
        UNARY,
        unknown,
    )
    .needs(&[Need::always((7, 4), 80)])
    .keyed(&["cvt"]),
    InstrRow::new(
        "applypriority",
        "`applypriority{.global}.L2::evict_normal [a], size`",
        "a hint; does nothing here",
        &[GLOBAL, PRIORITIES],
        &[OperandRole::Addr, OperandRole::Any],
        |_, _| {},
    )
    .needs(&[Need::always((7, 4), 80)]),
];

/// Writes an unknown value to each destination.
fn unknown(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let sources = (1..c.args.len())
        .flat_map(|i| c.elements(i))
        .filter_map(|arg| match arg {
            PtxArg::Expr(source) => Some(source.clone()),
            _ => None,
        });
    let value = sources.fold(Expr::Const(0), |all, source| {
        op(BinOp::Unknown, c.ty, all, source)
    });
    // Without operands, the result is unknown, too.
    let value = if value == Expr::Const(0) {
        Expr::unknown(c.ty)
    } else {
        value
    };
    for arg in c.elements(0) {
        match arg {
            PtxArg::Dst(Some(dst)) => e.push(Op::Assign {
                dst: *dst,
                value: value.clone(),
            }),
            _ => e.error(
                "wrong-operand",
                c.opcode.clone(),
                "a result is needed here",
                |d| d.label("only `atom` can discard its result with `_`"),
            ),
        }
    }
}
