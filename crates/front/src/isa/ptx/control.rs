//! Branches, the end of a thread, and instructions without effect on memory.
//!
//! # Sources
//! - PTX ISA 9.4, *Control Flow Instructions*: `bra`, `brx.idx`, `call`, `ret`, `exit`;
//!   *Miscellaneous Instructions*: `trap`.
//!
//! # Where we differ
//! - A call of an unknown function, and an index beyond the end of a list of labels, behave like
//!   `trap`: the verdict only says that an execution can reach them.
//! - `goto` and the compare-and-branch forms are those of the published suites.

use super::lower::{Emit, PtxArg, PtxInstr};
use super::needs::{Need, SINCE_90, TargetFeatures};
use super::table::{InstrRow, OperandRole, QualGroup, QualKind, TYPES};
use program::{Access, CmpOp, Expr, Op, Tag, Tags, Ty};

const REGISTERS: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["inc", "dec", "sync", "aligned"],
};
const UNIFORM: &[QualGroup] = &[QualGroup {
    kind: QualKind::Ignored,
    words: &["uni"],
}];
const COMPARE: &[OperandRole] = &[OperandRole::Val, OperandRole::Val, OperandRole::Label];
const COMPARE_TYPES: &[QualGroup] = &[TYPES];

pub(super) const ROWS: &[InstrRow] = &[
    InstrRow::new(
        "bra",
        "`{@p} bra{.uni} label`",
        "jumps",
        UNIFORM,
        &[OperandRole::Label],
        jump,
    )
    .takes_predicate(),
    InstrRow::new(
        "brx",
        "`{@p} brx.idx{.uni} i, list`, with `list: .branchtargets a, b;`",
        "jumps to the label of that number, from 0; executions beyond the last label are undecided",
        UNIFORM,
        &[OperandRole::Val, OperandRole::Label],
        indexed,
    )
    .keyed(&["idx"]),
    InstrRow::new(
        "call",
        "`call{.uni} (results), register, (parameters), prototype`",
        "calls an unknown function: executions that reach it are undecided",
        UNIFORM,
        &[OperandRole::Loose],
        abort,
    ),
    InstrRow::new(
        "goto",
        "`goto label`",
        "jumps (short form)",
        &[],
        &[OperandRole::Label],
        jump,
    )
    .takes_predicate(),
    InstrRow::new("ret", "`ret{.uni}`", "ends the thread", UNIFORM, &[], leave).takes_predicate(),
    InstrRow::new("exit", "`exit`", "ends the thread", &[], &[], leave).takes_predicate(),
    InstrRow::new(
        "trap",
        "`trap`",
        "ends the kernel: the answer says that executions can reach it, and no more",
        &[],
        &[],
        abort,
    ),
    InstrRow::new(
        "brkpt",
        "`brkpt`",
        "stops for a debugger: as with `trap`, executions that reach it are undecided",
        &[],
        &[],
        abort,
    ),
    InstrRow::new(
        "beq",
        "`beq a, b, label`",
        "jumps if equal (short form)",
        COMPARE_TYPES,
        COMPARE,
        |e, c| {
            compare(e, c, CmpOp::Eq);
        },
    ),
    InstrRow::new(
        "bne",
        "`bne a, b, label`",
        "jumps if different (short form)",
        COMPARE_TYPES,
        COMPARE,
        |e, c| {
            compare(e, c, CmpOp::Ne);
        },
    ),
    InstrRow::new(
        "blt",
        "`blt a, b, label`",
        "jumps if less (short form)",
        COMPARE_TYPES,
        COMPARE,
        |e, c| {
            compare(e, c, CmpOp::Lt);
        },
    ),
    InstrRow::new(
        "bgt",
        "`bgt a, b, label`",
        "jumps if greater (short form)",
        COMPARE_TYPES,
        COMPARE,
        |e, c| {
            compare(e, c, CmpOp::Gt);
        },
    ),
    InstrRow::new(
        "ble",
        "`ble a, b, label`",
        "jumps if less or equal (short form)",
        COMPARE_TYPES,
        COMPARE,
        |e, c| {
            compare(e, c, CmpOp::Le);
        },
    ),
    InstrRow::new(
        "bge",
        "`bge a, b, label`",
        "jumps if greater or equal (short form)",
        COMPARE_TYPES,
        COMPARE,
        |e, c| {
            compare(e, c, CmpOp::Ge);
        },
    ),
    InstrRow::new(
        "nanosleep",
        "`nanosleep.u32 t`",
        "a hint to the scheduler; does nothing here",
        &[TYPES],
        &[OperandRole::Loose],
        |_, _| {},
    )
    .needs(&[Need::always((6, 2), 70)]),
    InstrRow::new(
        "setmaxnreg",
        "`setmaxnreg{.inc|.dec}.sync.aligned.u32 n`",
        "gives registers to the warps of a group or takes them; orders nothing",
        &[REGISTERS, TYPES],
        &[OperandRole::Loose],
        |_, _| {},
    )
    .needs(&[Need::always((8, 0), 90).only(TargetFeatures::Family, SINCE_90)]),
];

fn condition(c: &PtxInstr) -> Expr {
    c.pred.clone().unwrap_or(Expr::Const(1))
}

fn jump(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    e.branch(condition(c), c.args.first());
}

/// Jumps to one of the labels of a list.
fn indexed(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let Some(PtxArg::Label(list)) = c.args.get(1) else {
        return;
    };
    let Some(labels) = e.targets(list) else {
        let message = format!("`{}` is not a list of labels of this thread", e.str(list));
        return e.error("unknown-label", list.clone(), message, |d| {
            d.label("expected the label of a `.branchtargets` directive")
        });
    };
    for (number, label) in (0..).zip(labels) {
        let is = Expr::Cmp(
            CmpOp::Eq,
            Ty::U32,
            c.expr(0).into(),
            Expr::Const(number).into(),
        );
        e.branch(is, Some(&PtxArg::Label(label.clone())));
    }
    abort(e, c);
}

fn leave(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    e.branch(condition(c), None);
}

/// An access to an address outside all memory. Models report whether it can be reached, and say
/// nothing about the code after it.
pub(super) fn abort(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    if let Some(dst) = e.temporary(c, "trap", Ty::U32) {
        let access = Access {
            tags: Tags::of(&[Tag::Generic, Tag::Weak]),
            scope: None,
            ty: Ty::U32,
        };
        e.push(Op::Load {
            dst,
            addr: Expr::Const(0),
            access,
        });
    }
}

fn compare(e: &mut Emit<'_, '_>, c: &PtxInstr, op: CmpOp) {
    let cond = Expr::Cmp(op, c.ty, Box::new(c.expr(0)), Box::new(c.expr(1)));
    e.branch(cond, c.args.get(2));
}
