//! Operations on multimem addresses: each address names one location on every device of a group.
//!
//! # Sources
//! - PTX ISA 9.4, *multimem.ld_reduce, multimem.st, multimem.red*: default orders and scopes;
//!   Memory Consistency Model, *Multimem Addresses*: an operation is a vector of scalar operations,
//!   one for each location.
//! - PTX ISA 9.4, *multimem.red.async*: a release for each location, without an mbarrier object.
//!
//! # Where we differ
//! - Results of floating-point reductions are unknown values; types of 8 bits are not supported.
//! - A multimem location is an alias of an array (`multimem = true` in a test). The array has as
//!   many elements for each device as the instruction's vector, and its elements have the addresses
//!   of the single devices.

use super::atomics::{HALF, numbers, updated_by};
use super::copies::AsyncAccess;
use super::lower::{Emit, PtxArg, PtxInstr};
use super::memory::{LOAD_SEM, STORE_SEM, access};
use super::needs::Need;
use super::operands::plus;
use super::table::{InstrRow, NUMBERS, OperandRole, QualGroup, QualKind, SCOPES};
use program::{Access, BinOp, Expr, Op, Proxy, Scope, Tag, Tags, Ty, Update};

const RED_SEM: QualGroup = QualGroup {
    kind: QualKind::Sem,
    words: &["relaxed", "release"],
};
const RELEASE: QualGroup = QualGroup {
    kind: QualKind::Sem,
    words: &["release"],
};
const GLOBAL: QualGroup = QualGroup {
    kind: QualKind::Space,
    words: &["global"],
};
/// The precision of sums of numbers of 16 bits.
const PRECISION: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["acc::f32", "acc::f16"],
};
const WIDTHS: QualGroup = QualGroup {
    kind: QualKind::Vector,
    words: &["v2", "v4", "v8"],
};
const OPS: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &["add", "min", "max", "and", "or", "xor"],
};

pub(super) const ROWS: &[InstrRow] = &[
    InstrRow::new(
        "multimem",
        "`multimem.ld_reduce{.weak|.relaxed.scope|.acquire.scope}{.global}.op{.acc::f32}\
         {.vec}.type d, [a]`",
        "loads from every device, and combines the values (`add`, `min`, `max`, `and`, `or`, \
        `xor`)",
        &[LOAD_SEM, SCOPES, GLOBAL, OPS, PRECISION, WIDTHS, NUMBERS],
        &[OperandRole::Dst, OperandRole::Addr],
        load_reduce,
    )
    .needs(&[Need::always((8, 1), 90)])
    .keyed(&["ld_reduce"]),
    InstrRow::new(
        "multimem",
        "`multimem.st{.weak|.relaxed.scope|.release.scope}{.global}{.vec}.type [a], b`",
        "stores on every device",
        &[STORE_SEM, SCOPES, GLOBAL, WIDTHS, NUMBERS],
        &[OperandRole::Addr, OperandRole::Val],
        store,
    )
    .needs(&[Need::always((8, 1), 90)])
    .keyed(&["st"]),
    InstrRow::new(
        "multimem",
        "`multimem.red{.relaxed|.release}{.scope}{.global}.op{.vec}.type [a], b`",
        "a reduction on every device, of system scope unless it says otherwise",
        &[RED_SEM, SCOPES, GLOBAL, OPS, WIDTHS, NUMBERS],
        &[OperandRole::Addr, OperandRole::Val],
        reduce,
    )
    .needs(&[Need::always((8, 1), 90)])
    .keyed(&["red"]),
    InstrRow::new(
        "multimem",
        "`multimem.st.async.release.gpu|.sys{.global}.type [a], b`",
        "begins a store on every device, each a release",
        &[RELEASE, SCOPES, GLOBAL, NUMBERS],
        &[OperandRole::Addr, OperandRole::Val],
        begin_stores,
    )
    .needs(&[Need::always((9, 3), 90)])
    .keyed(&["st", "async"]),
    InstrRow::new(
        "multimem",
        "`multimem.red.async.release.gpu|.sys{.global}.add.type [a], b`",
        "begins a reduction on every device, each a release",
        &[RELEASE, SCOPES, GLOBAL, OPS, NUMBERS],
        &[OperandRole::Addr, OperandRole::Val],
        begin_reductions,
    )
    .needs(&[Need::always((9, 3), 90)])
    .keyed(&["red", "async"]),
];

/// The addresses of the location on every device.
fn replicas(e: &mut Emit<'_, '_>, c: &PtxInstr, at: usize) -> Option<Vec<Expr>> {
    let width = has_vectors(e, c)?;
    let Expr::Address(loc) = c.expr(at) else {
        e.error(
            "unsupported-address",
            c.opcode.clone(),
            "a multimem address in a register is not supported",
            |d| d.label("expected the name of a location that is declared with `multimem = true`"),
        );
        return None;
    };
    let symbol = e.symbols.get(loc);
    let (name, place) = (symbol.name.clone(), symbol.span);
    if !e.symbols.is_multimem(loc) {
        e.error(
            "wrong-operand",
            c.opcode.clone(),
            format!("`{name}` is not a multimem location"),
            |d| {
                d.label(
                    "expected an alias of an array with an element for each device, with \
                     `multimem = true`",
                )
                .also(place, "declared here")
                .note("such an operation on another address is undefined (PTX ISA, multimem)")
            },
        );
        return None;
    }
    let devices = e.symbols.object(loc).1.init.len() as i64 / (i64::from(c.quals.packed()) * width);
    if !(2..=8).contains(&devices) || e.symbols.ty(loc).bits != number(c).bits {
        e.error(
            "wrong-operand",
            c.opcode.clone(),
            format!("`{name}` is not an array of 2 to 8 devices with that type"),
            |d| {
                d.label(
                    "expected an array with, for each device, one element of the instruction's \
                    type (packed: two; vector: one per component)",
                )
                .also(place, "declared here")
            },
        );
        return None;
    }
    Some(
        (0..devices * width)
            .map(|k| plus(c.expr(at), k, c.ty))
            .collect(),
    )
}

/// The width of the vector; reports unsupported vectors.
fn has_vectors(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Option<i64> {
    let (width, ty) = (c.quals.width(), c.quals.get(QualKind::Type));
    let fits = width * c.ty.bytes() as usize <= 16;
    let alone = !matches!(ty, Some("f16" | "bf16"));
    if if width > 1 {
        fits && (c.quals.is_half() || ty == Some("f32"))
    } else {
        alone
    } {
        return Some(width as i64);
    }
    let message = if width > 1 {
        "there is no such vector here"
    } else {
        "numbers of 16 bits are in pairs or vectors here"
    };
    e.error("conflicting-qualifiers", c.opcode.clone(), message, |d| {
        d.label(
            "expected at most 16 bytes of `.f32`, `.f16`, `.f16x2`, `.bf16` or `.bf16x2`, \
             and of the shorter ones a vector",
        )
        .note("PTX ISA 9.4, multimem.ld_reduce, multimem.st, multimem.red")
    });
    None
}

/// The access of one half of a reduction.
fn half(c: &PtxInstr, order: Tag, scope: Option<Scope>) -> Access {
    Access {
        tags: Tags::of(&[Tag::Generic, Tag::Atomic, Tag::Rmw, Tag::Reduction, order]),
        scope,
        ty: number(c),
    }
}

/// The type of the numbers in a value.
fn number(c: &PtxInstr) -> Ty {
    if c.quals.packed() > 1 { HALF } else { c.ty }
}

/// The addresses of all numbers, each with its position in the vector of its device.
fn of_numbers(c: &PtxInstr, locations: Vec<Expr>) -> impl Iterator<Item = (usize, Expr)> {
    let (of, width, ty) = (usize::from(c.quals.packed()), c.quals.width(), number(c));
    locations
        .into_iter()
        .enumerate()
        .flat_map(move |(at, addr): (usize, Expr)| {
            (0..of).map(move |k| (at % width * of + k, plus(addr.clone(), k as i64, ty)))
        })
}

/// The numbers of operand `at`, over all elements of a vector.
fn values(e: &mut Emit<'_, '_>, c: &PtxInstr, at: usize) -> Vec<Expr> {
    let all: Vec<Expr> = c.elements(at).iter().map(value_of).collect();
    all.into_iter()
        .flat_map(|value_of| numbers(c.quals.packed(), &e.fit(value_of, c.ty)))
        .collect()
}

fn value_of(arg: &PtxArg) -> Expr {
    if let PtxArg::Expr(value) = arg {
        value.clone()
    } else {
        Expr::Const(0)
    }
}

/// The operation of a reduction. Results of floating-point numbers depend on the order of the
/// devices, so they are unknown.
fn operation(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Option<BinOp> {
    let ops = [
        ("add", BinOp::Add),
        ("min", BinOp::Min),
        ("max", BinOp::Max),
        ("and", BinOp::And),
        ("or", BinOp::Or),
        ("xor", BinOp::Xor),
    ];
    let floats = c.quals.format().is_some();
    let exact = !matches!(c.quals.get(QualKind::Op), Some("add")) && !c.quals.is_half();
    let bits = matches!(c.quals.get(QualKind::Op), Some("and" | "or" | "xor"));
    if floats && (exact || bits) {
        e.error(
            "conflicting-qualifiers",
            c.opcode.clone(),
            "there is no such reduction",
            |d| {
                d.label(
                    "expected `.add` of floating-point numbers, or `.min` or `.max` of such \
                     of 16 bits",
                )
            },
        );
        return None;
    }
    let found = ops
        .into_iter()
        .find(|op| Some(op.0) == c.quals.get(QualKind::Op));
    let found = found.map(|op| if floats { BinOp::Unknown } else { op.1 });
    if found.is_none() {
        e.error(
            "missing-operation",
            c.opcode.clone(),
            "a reduction needs an operation",
            |d| d.label(format!("expected the form {}", c.row.syntax)),
        );
    }
    found
}

fn store(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let (Some(all), Some(access)) = (replicas(e, c, 0), access(e, c, Proxy::Generic)) else {
        return;
    };
    let value = values(e, c, 1);
    let access = Access {
        ty: number(c),
        ..access
    };
    e.push_elements(
        of_numbers(c, all)
            .map(|(k, addr): (usize, Expr)| Op::Store {
                addr,
                value: value[k].clone(),
                access: access.clone(),
            })
            .collect(),
    );
}

fn load_reduce(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let (Some(all), Some(access)) = (replicas(e, c, 1), access(e, c, Proxy::Generic)) else {
        return;
    };
    let Some(op) = operation(e, c) else { return };
    let mut loads = Vec::new();
    // For each element of the result, the registers with its inputs.
    let mut read = vec![Vec::new(); c.quals.width()];
    let access = Access {
        ty: number(c),
        ..access
    };
    for (n, (k, addr)) in of_numbers(c, all).enumerate() {
        let Some(dst) = e.temporary(c, &format!("device {n}"), access.ty) else {
            return;
        };
        loads.push(Op::Load {
            dst,
            addr,
            access: access.clone(),
        });
        read[k / usize::from(c.quals.packed())].push(Expr::Reg(dst));
    }
    e.push_elements(loads);
    for (dst, read) in c.elements(0).iter().zip(read) {
        let value = read
            .into_iter()
            .reduce(|value, read| Expr::Bin(op, c.ty, value.into(), read.into()));
        if let (PtxArg::Dst(Some(dst)), Some(value)) = (dst, value) {
            e.push(Op::Assign { dst: *dst, value });
        }
    }
}

fn reduce(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let (Some(all), Some(op)) = (replicas(e, c, 0), operation(e, c)) else {
        return;
    };
    let operand = values(e, c, 1);
    let scope = Some(c.quals.scope().unwrap_or(Scope::Sys));
    let order = if c.quals.get(QualKind::Sem) == Some("release") {
        Tag::Release
    } else {
        Tag::Relaxed
    };
    e.push_elements(
        of_numbers(c, all)
            .map(|(k, addr): (usize, Expr)| Op::Rmw {
                dst: None,
                addr,
                update: Update::Apply(op, operand[k].clone()),
                read: half(c, Tag::Relaxed, scope),
                write: half(c, order, scope),
            })
            .collect(),
    );
}

/// The access of an asynchronous release. Nothing but the end of the kernel waits for it.
fn release(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Option<AsyncAccess> {
    let scope = c.quals.scope();
    let is_release = c.quals.get(QualKind::Sem) == Some("release");
    if !is_release || !matches!(scope, Some(Scope::Gpu | Scope::Sys)) {
        let message = "an asynchronous operation on a multimem address is a release";
        e.error("conflicting-qualifiers", c.opcode.clone(), message, |d| {
            d.label("expected `.release.gpu` or `.release.sys`")
        });
        return None;
    }
    Some(AsyncAccess {
        strong: scope,
        ..AsyncAccess::weak(Tag::Generic)
    })
}

fn begin_stores(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let (Some(how), Some(all)) = (release(e, c), replicas(e, c, 0)) else {
        return;
    };
    let value = e.fit(c.expr(1), c.ty);
    let stores = all.into_iter().map(|addr| Op::Store {
        addr,
        value: value.clone(),
        access: how.target(Tag::Release, c.ty),
    });
    e.push_elements(stores.collect());
}

fn begin_reductions(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let (Some(how), Some(all)) = (release(e, c), replicas(e, c, 0)) else {
        return;
    };
    if c.quals.get(QualKind::Op) != Some("add") {
        return e.error(
            "conflicting-qualifiers",
            c.opcode.clone(),
            "a reduction that releases adds",
            |d| d.label(format!("expected the form {}", c.row.syntax)),
        );
    }
    let operand = e.fit(c.expr(1), c.ty);
    let Some(update) = updated_by(e, c, operand) else {
        return;
    };
    let reductions = all
        .into_iter()
        .map(|addr| how.reduction(Tag::Release, c.ty, addr, update.clone()));
    e.push_elements(reductions.collect());
}
