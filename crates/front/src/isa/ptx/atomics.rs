//! Atomic operations: `atom` and `red`.
//!
//! # Sources
//! - PTX ISA 9.4, *atom*, *red*: the default order is relaxed, the default scope is gpu; `red` has no acquire form.
//! - PTX ISA 9.4, *Memory Operations*: an `atom` whose result is discarded with `_` is still a read; `red` is not.
//!
//! # Where we differ
//! - `add.f32` on a generic address takes subnormal numbers as it does in global memory.
//! - `sub` is an operation (the published suites have it; PTX negates the operand of `add`).

use super::lower::{Call, Emit};
use super::memory::{opaque, read_only};
use super::table::{CACHE, DATA, Group, GroupKind, Role, Row, SCOPES, SPACES, TYPES};
use program::{Access, BinOp, Expr, FloatOp, Op, Scope, Tags, Update};

pub(super) const SEM: Group = Group { kind: GroupKind::Sem, words: &["relaxed", "acquire", "release", "acq_rel"] };
const OPS: Group =
    Group { kind: GroupKind::Op, words: &["add", "sub", "and", "or", "xor", "min", "max", "inc", "dec", "exch"] };
pub(super) const RED_OPS: Group =
    Group { kind: GroupKind::Op, words: &["add", "sub", "and", "or", "xor", "min", "max", "inc", "dec"] };

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "atom",
        "`atom{.order}{.scope}{.space}.op{.type} d, [a], b`",
        "reads, applies an operation (`add`, `sub`, `and`, `or`, `xor`, `min`, `max`, `inc`, `dec`, `exch`), writes",
        &[SEM, SCOPES, SPACES, OPS, CACHE, DATA],
        &[Role::Dst, Role::Addr, Role::Val],
        |e, c| {
            if let Some(update) = update(e, c, 2) {
                rmw(e, c, 1, update);
            }
        },
    ),
    Row::new(
        "atom",
        "`atom{.order}{.scope}{.space}.cas{.type} d, [a], expected, new`",
        "writes the new value if it reads the expected one",
        &[SEM, SCOPES, SPACES, CACHE, TYPES],
        &[Role::Dst, Role::Addr, Role::Val, Role::Val],
        |e, c| {
            let (expected, new) = (e.fit(c.expr(2), c.ty), e.fit(c.expr(3), c.ty));
            rmw(e, c, 1, Update::CompareExchange { expected, new });
        },
    )
    .keyed(&["cas"]),
    Row::new(
        "red",
        "`red{.relaxed|.release}{.scope}{.space}.op{.type} [a], b`",
        "as `atom`, without a result; its read never takes part in an acquire pattern",
        &[SEM, SCOPES, SPACES, RED_OPS, CACHE, DATA],
        &[Role::Addr, Role::Val],
        |e, c| {
            if e.env.acquiring_red || acquires_nothing(e, c).is_some() {
                update(e, c, 1).into_iter().for_each(|update| rmw(e, c, 0, update));
            }
        },
    ),
];

/// Reports a reduction that would acquire.
pub(super) fn acquires_nothing(e: &mut Emit<'_, '_>, c: &Call) -> Option<()> {
    let Some(sem @ ("acquire" | "acq_rel")) = c.quals.get(GroupKind::Sem) else { return Some(()) };
    let place = c.quals.place(GroupKind::Sem).unwrap_or_default();
    e.error("acquire-on-red", place, format!("`red` has no form `.{sem}`"), |d| {
        d.label("expected `.relaxed` or `.release`")
            .note("a reduction returns nothing, so nothing can be ordered after what it reads")
            .help("use `atom` with the result `_`")
    });
    None
}

/// The operation of an instruction whose operand is number `i`.
fn update(e: &mut Emit<'_, '_>, c: &Call, i: usize) -> Option<Update> {
    let operand = e.fit(c.expr(i), c.ty);
    updated_by(e, c, operand)
}

/// The operation of an instruction with that operand.
pub(super) fn updated_by(e: &mut Emit<'_, '_>, c: &Call, operand: Expr) -> Option<Update> {
    let Some(op) = c.quals.get(GroupKind::Op) else {
        let name = c.row.opcode;
        e.error("missing-operation", c.opcode.clone(), format!("`{name}` needs an operation"), |d| {
            d.label(format!("expected the form {}", c.row.syntax))
        });
        return None;
    };
    if c.quals.is_float() {
        if op != "add" {
            let message = format!("`.{op}` is no operation on floating-point numbers");
            let place = c.quals.place(GroupKind::Op).unwrap_or_default();
            e.error("conflicting-qualifiers", place, message, |d| d.label("expected `.add`"));
            return None;
        }
        // In global memory, subnormal numbers of 32 bits are zeros.
        let shared = c.quals.get(GroupKind::Space).is_some_and(|space| space.starts_with("shared"));
        let sum = if c.ty.bits == 64 || shared { FloatOp::Add } else { FloatOp::AddFlush };
        return Some(Update::Apply(BinOp::Float(sum), operand));
    }
    Some(match operation(op) {
        Some(op) => Update::Apply(op, operand),
        None => Update::Exchange(operand),
    })
}

/// The arithmetic of an operation; `exch` has none.
fn operation(name: &str) -> Option<BinOp> {
    Some(match name {
        "add" => BinOp::Add,
        "sub" => BinOp::Sub,
        "and" => BinOp::And,
        "or" => BinOp::Or,
        "xor" => BinOp::Xor,
        "min" => BinOp::Min,
        "max" => BinOp::Max,
        "inc" => BinOp::Inc,
        "dec" => BinOp::Dec,
        _ => return None,
    })
}

fn rmw(e: &mut Emit<'_, '_>, c: &Call, addr: usize, update: Update) {
    read_only(e, c);
    opaque(e, c);
    let (acquire, release) = match c.quals.get(GroupKind::Sem) {
        Some("acquire") => (true, false),
        Some("release") => (false, true),
        Some("acq_rel") => (true, true),
        _ => (false, false),
    };
    let scope = Some(c.quals.scope().unwrap_or(Scope::Gpu));
    let half = |order| {
        let mut tags = Tags::of(&["GEN", "A", "RMW", order]);
        if c.row.opcode == "red" {
            tags.insert("RED");
        }
        Access { tags, scope, ty: c.ty }
    };
    let (read, write) = (half(if acquire { "ACQ" } else { "RLX" }), half(if release { "REL" } else { "RLX" }));
    let dst = if addr == 0 { None } else { c.dst(0) };
    e.push(Op::Rmw { dst, addr: c.expr(addr), update, read, write });
}
