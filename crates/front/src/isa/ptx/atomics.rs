//! Atomic operations: `atom` and `red`.
//!
//! # Sources
//! - PTX ISA 9.4, *atom*, *red*: the default order is relaxed, the default scope is gpu; `red` has
//!   no acquire form.
//! - PTX ISA 9.4, *atom*, *red*: an operation with a vector or a packed type is a separate atomic
//!   for each number in it. Vectors hold floating-point numbers in global memory. They have `add`,
//!   and `min` and `max` for numbers of 16 bits; the results of `min` and `max` count as unknown.
//! - PTX ISA 9.4, *atom*: `exch` and `cas` of 128 bits are one atomic.
//! - PTX ISA 9.4, *Memory Operations*: an `atom` with its result discarded by `_` is still a read;
//!   `red` is not.
//!
//! # Where we differ
//! - A register of 128 bits is written as its halves, `{lo, hi}`, as in `ld.b128`.
//! - `add.f32` on a generic address flushes subnormal numbers as in global memory.
//! - `sub` is an operation (the published suites have it; PTX negates the operand of `add`).

use super::copies::aligned;
use super::lower::{Emit, PtxArg, PtxInstr};
use super::memory::{addresses, opaque, read_only};
use super::needs::Need;
use super::operands::plus;
use super::table::{
    B128, CACHE, InstrRow, NOFTZ, NUMBERS, OperandRole, QualGroup, QualKind, SCOPES, SPACES, TYPES,
    VECTORS, WIDE,
};
use program::{
    Access, BinOp, CmpOp, Expr, FloatOp, Format, Op, RegId, Rounding, Scope, Tag, Tags, Ty, Update,
};

pub(super) const SEM: QualGroup = QualGroup {
    kind: QualKind::Sem,
    words: &["relaxed", "acquire", "release", "acq_rel"],
};
const OPS: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &[
        "add", "sub", "and", "or", "xor", "min", "max", "inc", "dec", "exch",
    ],
};
pub(super) const RED_OPS: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &["add", "sub", "and", "or", "xor", "min", "max", "inc", "dec"],
};

/// The type of one number in a packed type.
pub(super) const HALF: Ty = Ty {
    bits: 16,
    signed: false,
};

pub(super) const ROWS: &[InstrRow] = &[
    InstrRow::new(
        "atom",
        "`atom{.order}{.scope}{.space}.op{.noftz}{.vec}{.type} d, [a], b`, or `.exch.b128 {d, \
         e}, [a], {lo, hi}`",
        "reads, applies an operation (`add`, `sub`, `and`, `or`, `xor`, `min`, `max`, `inc`, \
         `dec`, `exch`), writes; `.v2.f32`, `.v4.f32`, and vectors and pairs of numbers of 16 \
         bits, for each number",
        &[SEM, SCOPES, SPACES, OPS, CACHE, VECTORS, NOFTZ, NUMBERS],
        &[OperandRole::Dst, OperandRole::Addr, OperandRole::Val],
        |e, c| update(e, c, 1),
    )
    .needs(&[
        Need::of(&["noftz"], (6, 2), 70),
        Need::of(&["b128"], (8, 3), 90),
    ]),
    InstrRow::new(
        "atom",
        "`atom{.order}{.scope}{.space}.cas{.type} d, [a], expected, new`, or `.cas.b128` with \
         halves `{lo, hi}`",
        "writes the new value if it reads the expected one",
        &[SEM, SCOPES, SPACES, CACHE, WIDE, TYPES],
        &[
            OperandRole::Dst,
            OperandRole::Addr,
            OperandRole::Val,
            OperandRole::Val,
        ],
        |e, c| {
            if c.quals.width() > 1 {
                return wide(e, c, Some(2), 3);
            }
            let (expected, new) = (e.fit(c.expr(2), c.ty), e.fit(c.expr(3), c.ty));
            let op = rmw(
                e,
                c,
                c.dst(0),
                c.ty,
                c.expr(1),
                Update::CompareExchange { expected, new },
            );
            e.push(op);
        },
    )
    .needs(&[Need::of(&["b128"], (8, 3), 90)])
    .keyed(&["cas"]),
    InstrRow::new(
        "red",
        "`red{.relaxed|.release}{.scope}{.space}.op{.noftz}{.vec}{.type} [a], b`",
        "as `atom`, without a result; its read never takes part in an acquire pattern",
        &[SEM, SCOPES, SPACES, RED_OPS, CACHE, VECTORS, NOFTZ, NUMBERS],
        &[OperandRole::Addr, OperandRole::Val],
        |e, c| {
            if e.env.acquiring_red || acquires_nothing(e, c).is_some() {
                update(e, c, 0);
            }
        },
    )
    .needs(&[Need::of(&["noftz"], (6, 2), 70)]),
];

/// Reports an order of `red` that acquires.
pub(super) fn acquires_nothing(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Option<()> {
    let Some(sem @ ("acquire" | "acq_rel")) = c.quals.get(QualKind::Sem) else {
        return Some(());
    };
    let place = c.quals.place(QualKind::Sem).unwrap_or_default();
    e.error(
        "acquire-on-red",
        place,
        format!("`red` has no form `.{sem}`"),
        |d| {
            d.label("expected `.relaxed` or `.release`")
                .note("a reduction returns nothing, so no access can be ordered after its read")
                .help("use `atom` with the result `_`")
        },
    );
    None
}

/// Lowers an update: operand `addr` is the address, the next operand is the value. It is one
/// atomic, or one for each element.
fn update(e: &mut Emit<'_, '_>, c: &PtxInstr, addr: usize) {
    if c.quals.get(QualKind::Vector) == Some(B128) && c.quals.get(QualKind::Op) == Some("exch") {
        return wide(e, c, None, addr + 1);
    }
    let is_vector = c.quals.width() > 1;
    if is_vector && has_vectors(e, c).is_none() || of_halves(e, c, is_vector).is_none() {
        return;
    }
    let Some(addresses) = addresses(e, c, c.expr(addr)) else {
        return;
    };
    let packed = c.quals.packed();
    let ty = if packed > 1 { HALF } else { c.ty };
    let (mut ops, mut results) = (Vec::new(), Vec::new());
    for (i, at) in addresses.into_iter().enumerate() {
        let dst = if addr == 0 {
            None
        } else {
            c.elements(0).get(i)
        };
        let value = c.elements(addr + 1).get(i);
        let dst = dst.and_then(|dst| {
            if let PtxArg::Dst(dst) = dst {
                *dst
            } else {
                None
            }
        });
        let value = if let Some(PtxArg::Expr(value)) = value {
            value.clone()
        } else {
            Expr::Const(0)
        };
        let value = e.fit(value, c.ty);
        let at = if packed > 1 {
            aligned(at, i64::from(c.ty.bytes()))
        } else {
            at
        };
        let mut pieces = Vec::new();
        for (k, value) in numbers(packed, &value).into_iter().enumerate() {
            let old = match dst {
                Some(_) if packed > 1 => e.temporary(c, &format!("number {i}.{k}"), ty),
                dst => dst,
            };
            let Some(update) = updated_by(e, c, value) else {
                return;
            };
            ops.push(rmw(e, c, old, ty, plus(at.clone(), k as i64, ty), update));
            pieces.extend(old);
        }
        results.extend(dst.filter(|_| packed > 1).map(|dst| (dst, pieces)));
    }
    let written: Vec<RegId> = ops.iter().filter_map(Op::defines).collect();
    if is_vector
        && (ops.iter().any(|op: &Op| {
            written.iter().any(|&reg| {
                op.operands()
                    .into_iter()
                    .any(|input| input.any(&|e| *e == Expr::Reg(reg)))
            })
        }) || (1..written.len()).any(|i| written[..i].contains(&written[i])))
    {
        let message =
            "an atomic operation on a vector writes a register that it also reads, or twice";
        e.error("wrong-operand", c.opcode.clone(), message, |d| {
            d.label("expected other registers for its results")
        });
        return;
    }
    e.push_elements(ops);
    for (dst, pieces) in results {
        let value = joined(pieces.into_iter().map(Expr::Reg));
        e.push(Op::Assign { dst, value });
    }
}

/// Splits a value into `packed` numbers of 16 bits, the lowest first.
pub(super) fn numbers(packed: u8, value: &Expr) -> Vec<Expr> {
    pieces(HALF, packed, value)
}

/// Joins numbers of 16 bits into a value, the lowest first.
pub(super) fn joined(numbers: impl Iterator<Item = Expr>) -> Expr {
    put_together(HALF, numbers)
}

/// Splits a value into `packed` numbers of a type, the lowest first.
pub(super) fn pieces(of: Ty, packed: u8, value: &Expr) -> Vec<Expr> {
    let whole = Ty {
        bits: 2 * of.bits,
        signed: false,
    };
    match packed {
        1 => vec![value.clone()],
        count => (0..i64::from(count))
            .map(|k| {
                let down = Expr::Const(k * i64::from(of.bits));
                Expr::Cast(
                    of,
                    Expr::Bin(BinOp::Shr, whole, value.clone().into(), down.into()).into(),
                )
            })
            .collect(),
    }
}

/// Joins numbers of a type into a value, the lowest first.
pub(super) fn put_together(of: Ty, numbers: impl Iterator<Item = Expr>) -> Expr {
    let whole = Ty {
        bits: 2 * of.bits,
        signed: false,
    };
    let all = numbers
        .enumerate()
        .map(|(k, number): (usize, Expr)| match k {
            0 => number,
            k => Expr::Bin(
                BinOp::Shl,
                whole,
                number.into(),
                Expr::Const(k as i64 * i64::from(of.bits)).into(),
            ),
        });
    all.reduce(|low, high| Expr::Bin(BinOp::Or, whole, low.into(), high.into()))
        .unwrap_or(Expr::Const(0))
}

/// An atomic of 128 bits. It writes if the old value is the `expected` one; without `expected`,
/// always.
fn wide(e: &mut Emit<'_, '_>, c: &PtxInstr, expected: Option<usize>, new: usize) {
    let Some(addresses) = addresses(e, c, c.expr(1)) else {
        return;
    };
    let (Some(low), Some(high)) = (
        e.temporary(c, "low half", c.ty),
        e.temporary(c, "high half", c.ty),
    ) else {
        return;
    };
    let cond = expected.map_or(Expr::Const(1), |at| {
        let [low, high] = [(0, low), (1, high)].map(|(k, old): (usize, RegId)| {
            Expr::Cmp(
                CmpOp::Eq,
                c.ty,
                Expr::Reg(old).into(),
                half(c, at, k).into(),
            )
        });
        Expr::Bin(BinOp::And, c.ty, low.into(), high.into())
    });
    let mut ops = Vec::new();
    for (k, (addr, old)) in addresses.into_iter().zip([low, high]).enumerate() {
        let update = Update::When {
            cond: cond.clone(),
            new: e.fit(half(c, new, k), c.ty),
        };
        ops.push(rmw(e, c, Some(old), c.ty, addr, update));
    }
    e.push_scalar(ops);
    for (dst, old) in c.elements(0).iter().zip([low, high]) {
        if let PtxArg::Dst(Some(dst)) = dst {
            e.push(Op::Assign {
                dst: *dst,
                value: Expr::Reg(old),
            });
        }
    }
}

/// Reports unsupported operations on numbers of 16 bits, and `.noftz` on other types.
fn of_halves(e: &mut Emit<'_, '_>, c: &PtxInstr, is_vector: bool) -> Option<()> {
    let (op, flush) = (
        c.quals.get(QualKind::Op),
        c.quals.get(QualKind::Flush).is_some(),
    );
    let wrong = match (c.quals.is_half(), op) {
        (true, Some("add")) if !flush => "a sum of numbers of 16 bits needs `.noftz`",
        (true, Some("min" | "max")) if !is_vector => {
            "minima and maxima of numbers of 16 bits are of vectors"
        }
        (true, Some("add" | "min" | "max")) | (false, _) if !flush || c.quals.is_half() => {
            return Some(());
        }
        (true, _) => "there is no such operation on numbers of 16 bits",
        (false, _) => "`.noftz` is for numbers of 16 bits",
    };
    e.error("conflicting-qualifiers", c.opcode.clone(), wrong, |d| {
        d.label(
            "expected `.add.noftz` on `.f16`, `.f16x2`, `.bf16` or `.bf16x2`, or `.min` \
             or `.max` on vectors of them",
        )
    });
    None
}

/// Reports a vector whose operation, type or state space has no vector form.
fn has_vectors(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Option<()> {
    let place = c.quals.place(QualKind::Vector).unwrap_or_default();
    let space = c.quals.get(QualKind::Space).unwrap_or("global");
    let is_number = c.quals.is_half() || c.quals.get(QualKind::Type) == Some("f32");
    let bytes = c.quals.width() * c.ty.bytes() as usize;
    if is_number && bytes <= 16 && space == "global" && c.quals.get(QualKind::Vector) != Some(B128)
    {
        return Some(());
    }
    let message = format!("there is no such `{}` on a vector here", c.row.opcode);
    e.error("unsupported-qualifier", place, message, |d| {
        d.label(
            "expected at most 16 bytes of `.f32`, `.f16`, `.f16x2`, `.bf16` or `.bf16x2`, \
             in global memory",
        )
        .note(
            "PTX ISA 9.4, atom, red: vectors are of floating-point numbers; of 128 \
             bits, there is `atom.exch` and `atom.cas`",
        )
    });
    None
}

/// The update that the instruction's operation makes with an operand.
pub(super) fn updated_by(e: &mut Emit<'_, '_>, c: &PtxInstr, operand: Expr) -> Option<Update> {
    let Some(op) = c.quals.get(QualKind::Op) else {
        let name = c.row.opcode;
        e.error(
            "missing-operation",
            c.opcode.clone(),
            format!("`{name}` needs an operation"),
            |d| d.label(format!("expected the form {}", c.row.syntax)),
        );
        return None;
    };
    // PTX does not define `min` and `max` for a NaN, so their result counts as unknown.
    if c.quals.is_half() && op != "add" {
        return Some(Update::Apply(BinOp::Unknown, operand));
    }
    if let Some(format) = c.quals.format() {
        if op != "add" {
            let message = format!("floating-point numbers have no operation `.{op}`");
            let place = c.quals.place(QualKind::Op).unwrap_or_default();
            e.error("conflicting-qualifiers", place, message, |d| {
                d.label("expected `.add`")
            });
            return None;
        }
        // In global memory, an addition flushes subnormal numbers of 32 bits to zero.
        let shared = c
            .quals
            .get(QualKind::Space)
            .is_some_and(|space| space.starts_with("shared"));
        let flushes = format == Format::SINGLE && !shared;
        let sum = if flushes {
            FloatOp::AddFlush
        } else {
            FloatOp::Add(Rounding::Nearest)
        };
        return Some(Update::Apply(BinOp::Float(sum, format), operand));
    }
    Some(match operation(op) {
        Some(op) => Update::Apply(op, operand),
        None => Update::Exchange(operand),
    })
}

/// The arithmetic of an operation; `None` for `exch`.
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

/// Half `k` of the value in a 128-bit operand.
fn half(c: &PtxInstr, at: usize, k: usize) -> Expr {
    match c.elements(at).get(k) {
        Some(PtxArg::Expr(value)) => value.clone(),
        _ => Expr::Const(0),
    }
}

fn rmw(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    dst: Option<RegId>,
    ty: Ty,
    addr: Expr,
    update: Update,
) -> Op {
    read_only(e, c);
    opaque(e, c);
    let (acquire, release) = match c.quals.get(QualKind::Sem) {
        Some("acquire") => (true, false),
        Some("release") => (false, true),
        Some("acq_rel") => (true, true),
        _ => (false, false),
    };
    let scope = Some(c.quals.scope().unwrap_or(Scope::Gpu));
    let orders = [
        if acquire { Tag::Acquire } else { Tag::Relaxed },
        if release { Tag::Release } else { Tag::Relaxed },
    ];
    let [read, write] = orders.map(|order| {
        let mut tags = Tags::of(&[Tag::Generic, Tag::Atomic, Tag::Rmw, order]);
        if c.row.opcode == "red" {
            tags.insert(Tag::Reduction);
        }
        Access { tags, scope, ty }
    });
    Op::Rmw {
        dst,
        addr,
        update,
        read,
        write,
    }
}
