//! Asynchronous stores and reductions, and the memory accesses of a warpgroup's matrix
//! instructions.
//!
//! # Invariants
//! - As with copies ([`super::copies`]), their accesses are events `ASY`. If an mbarrier object
//!   tracks the operation, the operation on the object comes last. A release has no mbarrier
//!   object; it is complete at the end of its kernel.
//! - The results of a matrix instruction are unknown: no other instruction may name the register
//!   that it writes.
//!
//! # Sources
//! - PTX ISA 9.4, *st.async*, *red.async*: accesses of the generic proxy. They are weak stores and
//!   relaxed reductions of cluster scope in the shared memory of another CTA, and releases in
//!   global memory.
//! - PTX ISA 9.4, *wgmma.mma_async*, *wgmma.fence*, *wgmma.commit_group*, *wgmma.wait_group*:
//!   operands in shared memory are read through the async proxy. Memory Consistency Model,
//!   *Asynchronous Operations*: operations before a `wgmma.fence` come before operations that begin
//!   after it.
//!
//! # Where we differ
//! - `wgmma.mma_async d, [x], bytes` is a short form ([`super::wgmma`] has the form of PTX). It
//!   reads a location where PTX has a matrix descriptor. It leaves the first element that it read
//!   in `d`, where PTX has accumulators. One thread represents its warpgroup.

use super::atomics::{RED_OPS, SEM, acquires_nothing, updated_by};
use super::copies::{
    AsyncAccess, TRACKED, UNIT, aligned, end, mark, of_units, one_address, one_type, reduction,
    wait_group,
};
use super::lower::{Emit, PtxArg, PtxInstr};
use super::mbarrier;
use super::memory::{addresses, is_ordinary};
use super::needs::{Need, WARPGROUP};
use super::operands::plus;
use super::table::{B128, DATA, InstrRow, OperandRole, QualGroup, QualKind, SCOPES, TYPES};
use diag::Sink;
use program::{Expr, Op, Program, Scope, Space, Tag, Tags};

const STORE: QualGroup = QualGroup {
    kind: QualKind::Sem,
    words: &["weak", "release"],
};
const SPACE: QualGroup = QualGroup {
    kind: QualKind::Space,
    words: &["shared::cluster", "global"],
};
const FLAG: QualGroup = QualGroup {
    kind: QualKind::Flag,
    words: &["mmio"],
};
const TOLD: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &[TRACKED],
};
const WIDTHS: QualGroup = QualGroup {
    kind: QualKind::Vector,
    words: &["v2", "v4", B128],
};
const ALIGNED: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["sync", "aligned"],
};

pub(super) const ROWS: &[InstrRow] = &[
    InstrRow::new(
        "st",
        "`st.async{.weak}{.shared::cluster}{.mbarrier::complete_tx::bytes}{.v2|.v4}.type|.b128 \
         [a], b, [m]`, or `st.async{.mmio}.release.gpu|.sys{.global}.type [a], b`",
        "begins a store: weak, in shared memory of the cluster, completed through an mbarrier \
        object; or a release, in global memory",
        &[STORE, SCOPES, SPACE, FLAG, TOLD, WIDTHS, DATA],
        &[OperandRole::Addr, OperandRole::Val, OperandRole::Addr],
        store,
    )
    .needs(&[Need::always((8, 1), 90), Need::of(&["b128"], (8, 3), 70)])
    .keyed(&["async"])
    .optional(1),
    InstrRow::new(
        "red",
        "`red.async.relaxed.cluster{.shared::cluster}{.mbarrier::complete_tx::bytes}.op.type \
         [a], b, [m]`, or `red.async{.mmio}.release.gpu|.sys{.global}.add.type [a], b`",
        "begins a reduction: in shared memory of another CTA of the cluster, completed through an \
        mbarrier object; or a release, in global memory",
        &[SEM, SCOPES, SPACE, FLAG, TOLD, RED_OPS, TYPES],
        &[OperandRole::Addr, OperandRole::Val, OperandRole::Addr],
        reduce,
    )
    .needs(&[Need::always((8, 1), 90)])
    .keyed(&["async"])
    .optional(1),
    InstrRow::new(
        "wgmma",
        "`wgmma.mma_async d, [x], bytes`",
        "a matrix instruction that begins to read an operand in shared memory through the async \
        proxy; `d`, a register without other uses, gets the first element (short form)",
        &[],
        &[OperandRole::Dst, OperandRole::Addr, OperandRole::Loose],
        multiply,
    )
    .needs(&[WARPGROUP])
    .keyed(&["mma_async"]),
    InstrRow::new(
        "wgmma",
        "`wgmma.fence{.sync.aligned}`",
        "orders earlier accesses before later matrix instructions",
        &[ALIGNED],
        &[],
        |e, _| {
            e.push(mark(&[Tag::WgmmaFence], None));
            e.fence_fragments();
        },
    )
    .needs(&[WARPGROUP])
    .keyed(&["fence"]),
    InstrRow::new(
        "wgmma",
        "`wgmma.commit_group{.sync.aligned}`",
        "makes a group of the matrix instructions since the last such group",
        &[ALIGNED],
        &[],
        |e, _| {
            e.push(mark(&[Tag::CommitGroup, Tag::Wgmma], None));
            e.commit_fragments();
        },
    )
    .needs(&[WARPGROUP])
    .keyed(&["commit_group"]),
    InstrRow::new(
        "wgmma",
        "`wgmma.wait_group{.sync.aligned} n`",
        "waits until at most the `n` latest groups of matrix instructions are incomplete",
        &[ALIGNED],
        &[OperandRole::Loose],
        |e, c| {
            wait_group(e, c, &[Tag::WaitGroup, Tag::Wgmma]);
            if let Expr::Const(pending) = c.expr(0) {
                e.release_fragments(pending);
            }
        },
    )
    .needs(&[WARPGROUP])
    .keyed(&["wait_group"]),
];

/// Whether the instruction is a release in global memory (`true`) or tracked by an mbarrier object
/// (`false`). Reports an error and returns `None` for any other form.
fn releases(e: &mut Emit<'_, '_>, c: &PtxInstr, weak: bool) -> Option<bool> {
    // The mbarrier object does not determine the type.
    e.through_register = false;
    let (sem, scope, told) = (
        c.quals.get(QualKind::Sem),
        c.quals.scope(),
        c.given(2).is_some(),
    );
    let release = sem == Some("release");
    let wrong = match (release, scope) {
        _ if !release && !weak && sem.is_none() => {
            ("missing-order", "this needs an order and a scope")
        }
        (true, _) if told => (
            "conflicting-qualifiers",
            "a release is not completed through an mbarrier object",
        ),
        (false, _) if !told => (
            "wrong-operands",
            "this needs an mbarrier object for its completion",
        ),
        (_, None) if sem.is_some_and(|sem| sem != "weak") => {
            ("missing-scope", "an order needs a scope")
        }
        (true, Some(Scope::Gpu | Scope::Sys))
            if c.quals.get(QualKind::Ignored).is_none()
                && c.quals.get(QualKind::Vector).is_none()
                && c.quals.get(QualKind::Space) != Some("shared::cluster") =>
        {
            ("", "")
        }
        (false, None | Some(Scope::Cluster))
            if c.quals.get(QualKind::Flag).is_none()
                && (scope.is_none() || sem.is_some())
                && c.quals.get(QualKind::Space) != Some("global") =>
        {
            ("", "")
        }
        _ => ("conflicting-qualifiers", "there is no such form"),
    };
    if wrong.0.is_empty() {
        return Some(release);
    }
    e.error(wrong.0, c.opcode.clone(), wrong.1, |d| {
        d.label(format!("expected the form {}", c.row.syntax))
    });
    None
}

/// Reports a location in a wrong state space, and an access through a register without a type.
fn reaches(e: &mut Emit<'_, '_>, c: &PtxInstr, space: Space) -> Option<()> {
    let Some(loc) = c.expr(0).base() else {
        if c.quals.ty().is_none() {
            let message = format!("`{}.async` through a register needs a type", c.row.opcode);
            e.error("missing-type", c.opcode.clone(), message, |d| {
                d.label("expected a type such as `.u32` behind it")
            });
            return None;
        }
        return Some(());
    };
    is_ordinary(e, loc, &c.opcode)?;
    if e.symbols.object(loc).1.space == space {
        return Some(());
    }
    let symbol = e.symbols.get(loc);
    let (name, place) = (symbol.name.clone(), symbol.span);
    let word = if space == Space::Shared {
        "shared"
    } else {
        "global"
    };
    e.error(
        "wrong-space",
        c.opcode.clone(),
        format!("`{name}` is not in {word} memory"),
        |d| {
            d.label(format!("expected a location in {word} memory"))
                .also(place, "declared here")
        },
    );
    None
}

fn store(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let Some(release) = releases(e, c, true) else {
        return;
    };
    if reaches(
        e,
        c,
        if release {
            Space::Global
        } else {
            Space::Shared
        },
    )
    .is_none()
    {
        return;
    }
    if !release && c.ty.bits < 32 {
        e.error(
            "unsupported-type",
            c.opcode.clone(),
            format!("there is no such store of {} bits", c.ty.bits),
            |d| d.label("expected a type of 32 or 64 bits"),
        );
        return;
    }
    let how = AsyncAccess {
        strong: c.quals.scope().filter(|_| release),
        ..AsyncAccess::weak(Tag::Generic)
    };
    let Some(all) = addresses(e, c, c.expr(0)) else {
        return;
    };
    let bytes = all.len() as i64 * i64::from(c.ty.bytes());
    if !release && mbarrier::is_object(e, c, 2).is_none() {
        return;
    }
    // Without another CTA in the cluster, the operation is undefined (PTX ISA, st.async).
    if !release && e.env.cluster.len() < 2 {
        e.push(Op::fence(Tags::of(&[Tag::Misuse]), None));
        e.leave();
        return;
    }
    let ops = all.into_iter().zip(c.elements(1)).map(|(addr, value)| {
        let value = if let PtxArg::Expr(value) = value {
            value.clone()
        } else {
            c.expr(1)
        };
        Op::Store {
            addr,
            value: e.fit(value, c.ty),
            access: how.target(Tag::Release, c.ty),
        }
    });
    let ops = ops.collect();
    e.push_elements(ops);
    if !release {
        mbarrier::complete(e, c, 2, c.expr(2), bytes);
    }
}

fn reduce(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    if acquires_nothing(e, c).is_none() {
        return;
    }
    let Some(release) = releases(e, c, false) else {
        return;
    };
    if release && c.quals.get(QualKind::Op).is_some_and(|op| op != "add") {
        e.error(
            "conflicting-qualifiers",
            c.opcode.clone(),
            "a reduction that releases adds",
            |d| d.label(format!("expected the form {}", c.row.syntax)),
        );
        return;
    }
    if reduction(e, c, false).is_none()
        || reaches(
            e,
            c,
            if release {
                Space::Global
            } else {
                Space::Shared
            },
        )
        .is_none()
    {
        return;
    }
    let operand = e.fit(c.expr(1), c.ty);
    let Some(update) = updated_by(e, c, operand) else {
        return;
    };
    let how = AsyncAccess {
        strong: c.quals.scope(),
        away: !release,
        ..AsyncAccess::weak(Tag::Generic)
    };
    e.push(how.reduction(
        if release { Tag::Release } else { Tag::Relaxed },
        c.ty,
        c.expr(0),
        update,
    ));
    if !release {
        mbarrier::complete(e, c, 2, c.expr(2), i64::from(c.ty.bytes()));
    }
}

fn multiply(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    e.through_register = false;
    let Some(bytes) = of_units(e, c) else { return };
    let Some(source) = end(e, c, 1, Space::Shared, bytes, UNIT) else {
        return;
    };
    if one_address(e, c, source).is_none() {
        return;
    }
    let Some(ty) = one_type(e, c, source, source) else {
        return;
    };
    let from = aligned(c.expr(1), UNIT);
    let mut access = AsyncAccess::weak(Tag::AsyncProxy).source(ty);
    access.tags.insert(Tag::Wgmma);
    for k in 0..bytes / i64::from(ty.bytes()) {
        let first = c.dst(0).filter(|_| k == 0);
        let Some(dst) = first.or_else(|| e.temporary(c, "matrix operand", ty)) else {
            return;
        };
        e.push(Op::Load {
            dst,
            addr: plus(from.clone(), k, ty),
            access: access.clone(),
        });
    }
}

/// Reports instructions that name a register written by a matrix instruction, because its value is
/// unknown.
pub fn refuse_accumulators(program: &Program, sink: &mut Sink) {
    for thread in &program.threads {
        let code = &thread.code;
        for written in code
            .iter()
            .filter(|i| i.op.accesses().any(|access| access.tags.has(Tag::Wgmma)))
        {
            let Some(dst) = written.op.defines() else {
                continue;
            };
            let mut used = code
                .iter()
                .filter(|other| other.span != written.span)
                .filter(|other| {
                    let mut reads = other.op.defines() == Some(dst);
                    other
                        .op
                        .operands()
                        .iter()
                        .for_each(|e| e.registers(&mut |r| reads |= r == dst));
                    reads
                });
            let name = &thread.regs[usize::from(dst.0)].name;
            if let Some(other) = used.find(|_| name != "matrix operand") {
                let message = format!(
                    "`{name}` holds the result of a matrix instruction, and its value is unknown \
                    here"
                );
                sink.error("unsupported-operand", other.span, message, |d| {
                    d.label("expected a register without other uses")
                        .also(written.span, "the matrix instruction")
                });
            }
        }
    }
}
