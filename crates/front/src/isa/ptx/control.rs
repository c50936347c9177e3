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

use super::lower::{Arg, Call, Emit};
use super::table::{Group, GroupKind, Role, Row, TYPES};
use program::{Access, CmpOp, Expr, Op, Tag, Tags, Ty};

const REGISTERS: Group = Group {
    kind: GroupKind::Ignored,
    words: &["inc", "dec", "sync", "aligned"],
};
const UNIFORM: &[Group] = &[Group {
    kind: GroupKind::Ignored,
    words: &["uni"],
}];
const COMPARE: &[Role] = &[Role::Val, Role::Val, Role::Label];
const COMPARE_TYPES: &[Group] = &[TYPES];

pub(super) const ROWS: &[Row] = &[
    Row::new("bra", "`{@p} bra{.uni} label`", "jumps", UNIFORM, &[Role::Label], jump).takes_predicate(),
    Row::new(
        "brx",
        "`{@p} brx.idx{.uni} i, list`, with `list: .branchtargets a, b;`",
        "jumps to the label of that number, from 0; beyond the last one, nothing is said of executions that come to it",
        UNIFORM,
        &[Role::Val, Role::Label],
        indexed,
    )
    .keyed(&["idx"]),
    Row::new(
        "call",
        "`call{.uni} (results), register, (parameters), prototype`",
        "calls a function that is not known: nothing is said of executions that come to it",
        UNIFORM,
        &[Role::Loose],
        abort,
    ),
    Row::new("goto", "`goto label`", "jumps (short form)", &[], &[Role::Label], jump).takes_predicate(),
    Row::new("ret", "`ret{.uni}`", "ends the thread", UNIFORM, &[], leave).takes_predicate(),
    Row::new("exit", "`exit`", "ends the thread", &[], &[], leave).takes_predicate(),
    Row::new(
        "trap",
        "`trap`",
        "ends the kernel: that it can be reached is all that is said of such executions",
        &[],
        &[],
        abort,
    ),
    Row::new(
        "brkpt",
        "`brkpt`",
        "stops for a debugger: as `trap`, nothing is said of executions that come to it",
        &[],
        &[],
        abort,
    ),
    Row::new("beq", "`beq a, b, label`", "jumps if equal (short form)", COMPARE_TYPES, COMPARE, |e, c| {
        compare(e, c, CmpOp::Eq);
    }),
    Row::new("bne", "`bne a, b, label`", "jumps if different (short form)", COMPARE_TYPES, COMPARE, |e, c| {
        compare(e, c, CmpOp::Ne);
    }),
    Row::new("blt", "`blt a, b, label`", "jumps if less (short form)", COMPARE_TYPES, COMPARE, |e, c| {
        compare(e, c, CmpOp::Lt);
    }),
    Row::new("bgt", "`bgt a, b, label`", "jumps if greater (short form)", COMPARE_TYPES, COMPARE, |e, c| {
        compare(e, c, CmpOp::Gt);
    }),
    Row::new("ble", "`ble a, b, label`", "jumps if less or equal (short form)", COMPARE_TYPES, COMPARE, |e, c| {
        compare(e, c, CmpOp::Le);
    }),
    Row::new(
        "bge",
        "`bge a, b, label`",
        "jumps if greater or equal (short form)",
        COMPARE_TYPES,
        COMPARE,
        |e, c| {
            compare(e, c, CmpOp::Ge);
        },
    ),
    Row::new(
        "nanosleep",
        "`nanosleep.u32 t`",
        "a hint to the scheduler; does nothing here",
        &[TYPES],
        &[Role::Loose],
        |_, _| {},
    ),
    Row::new(
        "setmaxnreg",
        "`setmaxnreg{.inc|.dec}.sync.aligned.u32 n`",
        "gives registers to the warps of a group, or takes them: orders nothing",
        &[REGISTERS, TYPES],
        &[Role::Loose],
        |_, _| {},
    ),
];

fn condition(c: &Call) -> Expr {
    c.pred.clone().unwrap_or(Expr::Const(1))
}

fn jump(e: &mut Emit<'_, '_>, c: &Call) {
    e.branch(condition(c), c.args.first());
}

/// Jumps to one of the labels of a list.
fn indexed(e: &mut Emit<'_, '_>, c: &Call) {
    let Some(Arg::Label(list)) = c.args.get(1) else {
        return;
    };
    let Some(labels) = e.targets(list) else {
        let message = format!("`{}` is no list of labels of this thread", e.str(list));
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
        e.branch(is, Some(&Arg::Label(label.clone())));
    }
    abort(e, c);
}

fn leave(e: &mut Emit<'_, '_>, c: &Call) {
    e.branch(condition(c), None);
}

/// An access to an address outside all memory. Models report whether it can be reached, and say
/// nothing about the code after it.
pub(super) fn abort(e: &mut Emit<'_, '_>, c: &Call) {
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

fn compare(e: &mut Emit<'_, '_>, c: &Call, op: CmpOp) {
    let cond = Expr::Cmp(op, c.ty, Box::new(c.expr(0)), Box::new(c.expr(1)));
    e.branch(cond, c.args.get(2));
}
