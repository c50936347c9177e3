//! Sums and differences of more than one word, with a carry from one instruction to the next.
//!
//! # Invariants
//! - The carry is a register that code cannot name. Reading it before an instruction has written it
//!   is an error.
//!
//! # Sources
//! - PTX ISA 9.4, *Extended-Precision Arithmetic Instructions*: `add.cc`, `addc`, `sub.cc`, `subc`,
//!   `mad.cc`, `madc`.

use super::arith::{assign, op as bin};
use super::bits::upper;
use super::lower::{Emit, PtxInstr};
use super::table::{InstrRow, OperandRole, PRED, QualGroup, QualKind};
use program::{BinOp, CmpOp, Expr, Op, RegId, Ty};

const OUT: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &["cc"],
};
const WORDS: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &["u32", "s32", "u64", "s64"],
};
const BINARY: &[OperandRole] = &[OperandRole::Dst, OperandRole::Val, OperandRole::Val];
const TERNARY: &[OperandRole] = &[
    OperandRole::Dst,
    OperandRole::Val,
    OperandRole::Val,
    OperandRole::Val,
];

/// The ISA's name of the carry register.
const CARRY: &str = "CC.CF";

const fn row(
    opcode: &'static str,
    syntax: &'static str,
    doc: &'static str,
    operands: &'static [OperandRole],
    lower: fn(&mut Emit<'_, '_>, &PtxInstr),
) -> InstrRow {
    InstrRow::new(opcode, syntax, doc, &[OUT, WORDS], operands, lower)
}

pub(super) const ROWS: &[InstrRow] = &[
    row(
        "add",
        "`add.cc.type d, a, b`",
        "sum; keeps the carry",
        BINARY,
        |e, c| {
            extended(e, c, BinOp::Add, false, two);
        },
    )
    .one_of(&["cc"]),
    row(
        "addc",
        "`addc{.cc}.type d, a, b`",
        "sum and the carry",
        BINARY,
        |e, c| {
            extended(e, c, BinOp::Add, true, two);
        },
    ),
    row(
        "sub",
        "`sub.cc.type d, a, b`",
        "difference; keeps the borrow",
        BINARY,
        |e, c| {
            extended(e, c, BinOp::Sub, false, two);
        },
    )
    .one_of(&["cc"]),
    row(
        "subc",
        "`subc{.cc}.type d, a, b`",
        "difference, less the borrow",
        BINARY,
        |e, c| {
            extended(e, c, BinOp::Sub, true, two);
        },
    ),
    row(
        "mad",
        "`mad.lo.cc.type d, a, b, c`",
        "product, lower half, plus `c`; keeps the carry",
        TERNARY,
        |e, c| {
            extended(e, c, BinOp::Add, false, low);
        },
    )
    .keyed(&["lo"])
    .one_of(&["cc"]),
    row(
        "mad",
        "`mad.hi.cc.type d, a, b, c`",
        "product, upper half, plus `c`; keeps the carry",
        TERNARY,
        |e, c| {
            extended(e, c, BinOp::Add, false, high);
        },
    )
    .keyed(&["hi"])
    .one_of(&["cc"]),
    row(
        "madc",
        "`madc.lo{.cc}.type d, a, b, c`",
        "product, lower half, plus `c` and the carry",
        TERNARY,
        |e, c| {
            extended(e, c, BinOp::Add, true, low);
        },
    )
    .keyed(&["lo"]),
    row(
        "madc",
        "`madc.hi{.cc}.type d, a, b, c`",
        "product, upper half, plus `c` and the carry",
        TERNARY,
        |e, c| {
            extended(e, c, BinOp::Add, true, high);
        },
    )
    .keyed(&["hi"]),
];

fn two(_: &mut Emit<'_, '_>, c: &PtxInstr) -> (Expr, Expr) {
    (c.expr(1), c.expr(2))
}

fn low(_: &mut Emit<'_, '_>, c: &PtxInstr) -> (Expr, Expr) {
    (bin(BinOp::Mul, c.ty, c.expr(1), c.expr(2)), c.expr(3))
}

fn high(e: &mut Emit<'_, '_>, c: &PtxInstr) -> (Expr, Expr) {
    (upper(e, c), c.expr(3))
}

/// A sum or a difference. It adds or subtracts the carry if `takes`, and sets the carry if the
/// instruction has `.cc`.
fn extended(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    operation: BinOp,
    takes: bool,
    operands: fn(&mut Emit<'_, '_>, &PtxInstr) -> (Expr, Expr),
) {
    let known = e.regs.find(CARRY);
    if takes && known.is_none() {
        return e.error(
            "unknown-register",
            c.opcode.clone(),
            "no carry was kept before",
            |d| d.label("expected an instruction with `.cc` before it"),
        );
    }
    let unsigned = Ty {
        signed: false,
        ..c.ty
    };
    let [Some(first), Some(second)] =
        [("CC.A", c.ty), ("CC.B", c.ty)].map(|(name, ty)| e.temporary(c, name, ty))
    else {
        return;
    };
    // The carry depends on the old operands, which the result may overwrite: keep copies.
    let (a, b) = operands(e, c);
    let (a, b) = (e.fit(a, c.ty), e.fit(b, c.ty));
    set(e, first, a);
    set(e, second, b);
    let plain = bin(operation, c.ty, Expr::Reg(first), Expr::Reg(second));
    let carried = Expr::Cast(c.ty, known.map_or(Expr::Const(0), Expr::Reg).into());
    let result = if takes {
        bin(operation, c.ty, plain.clone(), carried.clone())
    } else {
        plain.clone()
    };
    let less =
        |a: &Expr, b: &Expr| Expr::Cmp(CmpOp::Lt, unsigned, a.clone().into(), b.clone().into());
    let (x, y) = (Expr::Reg(first), Expr::Reg(second));
    let (over, again) = match operation {
        BinOp::Sub => (less(&x, &y), less(&plain, &carried)),
        _ => (less(&plain, &x), less(&result, &plain)),
    };
    let over = if takes {
        bin(BinOp::Or, PRED, over, again)
    } else {
        over
    };
    assign(e, c, result);
    if c.quals.get(QualKind::Op).is_some()
        && let Some(carry) = e.temporary(c, CARRY, PRED)
    {
        set(e, carry, over);
    }
}

fn set(e: &mut Emit<'_, '_>, dst: RegId, value: Expr) {
    e.push(Op::Assign { dst, value })
}
