//! Atomic operations: `atom` and `red`.
//!
//! # Sources
//! - PTX ISA 9.4, *atom*, *red*: the default order is relaxed, the default scope is gpu; `red` has no acquire form.
//! - PTX ISA 9.4, *atom*, *red*: one with a vector is an atomic for each of its elements; there are such of `add` on floating-point
//!   numbers in global memory.
//! - PTX ISA 9.4, *Memory Operations*: an `atom` whose result is discarded with `_` is still a read; `red` is not.
//!
//! # Where we differ
//! - `add.f32` on a generic address takes subnormal numbers as it does in global memory.
//! - `sub` is an operation (the published suites have it; PTX negates the operand of `add`).

use super::lower::{Arg, Call, Emit};
use super::memory::{addresses, opaque, read_only};
use super::table::{CACHE, DATA, Group, GroupKind, Role, Row, SCOPES, SPACES, TYPES, VECTORS};
use program::{Access, BinOp, Expr, FloatOp, Op, RegId, Scope, Tags, Update};

pub(super) const SEM: Group = Group { kind: GroupKind::Sem, words: &["relaxed", "acquire", "release", "acq_rel"] };
const OPS: Group =
    Group { kind: GroupKind::Op, words: &["add", "sub", "and", "or", "xor", "min", "max", "inc", "dec", "exch"] };
pub(super) const RED_OPS: Group =
    Group { kind: GroupKind::Op, words: &["add", "sub", "and", "or", "xor", "min", "max", "inc", "dec"] };

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "atom",
        "`atom{.order}{.scope}{.space}.op{.vec}{.type} d, [a], b`",
        "reads, applies an operation (`add`, `sub`, `and`, `or`, `xor`, `min`, `max`, `inc`, `dec`, `exch`), writes; `.v2.f32` and \
         `.v4.f32` for each element",
        &[SEM, SCOPES, SPACES, OPS, CACHE, VECTORS, DATA],
        &[Role::Dst, Role::Addr, Role::Val],
        |e, c| update(e, c, 1),
    ),
    Row::new(
        "atom",
        "`atom{.order}{.scope}{.space}.cas{.type} d, [a], expected, new`",
        "writes the new value if it reads the expected one",
        &[SEM, SCOPES, SPACES, CACHE, TYPES],
        &[Role::Dst, Role::Addr, Role::Val, Role::Val],
        |e, c| {
            let (expected, new) = (e.fit(c.expr(2), c.ty), e.fit(c.expr(3), c.ty));
            let op = rmw(e, c, c.dst(0), c.expr(1), Update::CompareExchange { expected, new });
            e.push(op);
        },
    )
    .keyed(&["cas"]),
    Row::new(
        "red",
        "`red{.relaxed|.release}{.scope}{.space}.op{.vec}{.type} [a], b`",
        "as `atom`, without a result; its read never takes part in an acquire pattern",
        &[SEM, SCOPES, SPACES, RED_OPS, CACHE, VECTORS, DATA],
        &[Role::Addr, Role::Val],
        |e, c| {
            if e.env.acquiring_red || acquires_nothing(e, c).is_some() {
                update(e, c, 0);
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

/// An instruction that updates what operand `addr` names with the operand behind it: one atomic, or one for each element.
fn update(e: &mut Emit<'_, '_>, c: &Call, addr: usize) {
    let is_vector = c.quals.width() > 1;
    if is_vector && has_vectors(e, c).is_none() {
        return;
    }
    let Some(addresses) = addresses(e, c, c.expr(addr)) else { return };
    let mut ops = Vec::new();
    for (i, at) in addresses.into_iter().enumerate() {
        let dst = if addr == 0 { None } else { c.elements(0).get(i) };
        let value = c.elements(addr + 1).get(i);
        let dst = dst.and_then(|dst| if let Arg::Dst(dst) = dst { *dst } else { None });
        let value = if let Some(Arg::Expr(value)) = value { value.clone() } else { Expr::Const(0) };
        let Some(update) = updated_by(e, c, e.fit(value, c.ty)) else { return };
        ops.push(rmw(e, c, dst, at, update));
    }
    let written: Vec<RegId> = ops.iter().filter_map(Op::defines).collect();
    let read = |op: &Op| {
        written.iter().any(|&reg| op.operands().into_iter().any(|input| input.any(&|e| *e == Expr::Reg(reg))))
    };
    if is_vector && (ops.iter().any(read) || (1..written.len()).any(|i| written[..i].contains(&written[i]))) {
        let message = "an atomic operation on a vector writes a register that it also reads, or twice";
        e.error("wrong-operand", c.opcode.clone(), message, |d| {
            d.label("expected other registers for its results")
        });
        return;
    }
    e.push_elements(ops);
}

/// Reports a vector of what there are no vectors of.
fn has_vectors(e: &mut Emit<'_, '_>, c: &Call) -> Option<()> {
    let place = c.quals.place(GroupKind::Vector).unwrap_or_default();
    let space = c.quals.get(GroupKind::Space).unwrap_or("global");
    if c.quals.is_float() && c.ty.bits == 32 && c.quals.width() < 8 && space == "global" {
        return Some(());
    }
    let message = format!("there is no such `{}` on a vector here", c.row.opcode);
    e.error("unsupported-qualifier", place, message, |d| {
        d.label("expected `.v2.f32` or `.v4.f32`, in global memory").note(
            "PTX ISA 9.4, atom, red: vectors are of floating-point numbers in global memory; of those with 16 bits, sums are not supported",
        )
    });
    None
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

fn rmw(e: &mut Emit<'_, '_>, c: &Call, dst: Option<RegId>, addr: Expr, update: Update) -> Op {
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
    Op::Rmw { dst, addr, update, read, write }
}
