//! Lowers one micro-op of a source language to micro-ops of PTX.

use std::cmp::Ordering;

use super::table::{
    KINDS, Mapping, MappingStep, ORDERS, OpKind, Semantics, SourceOrder, StepScope, word,
};
use program::{
    Access, Barrier, BarrierAction, BarrierNaming, BinOp, EventKind, Expr, Instr, Op, Scope, Tag,
    Tags, Ty, Update,
};

/// PTX's resource for the single barrier of a CTA in source languages: `bar.sync 0`.
const CTA_BARRIER: i64 = 0;
/// The resources of `bar.warp.sync` and `barrier.cluster`, distinct from the CTA's sixteen.
const WARP_BARRIER: i64 = -1;
const CLUSTER_BARRIER: i64 = -2;

/// The barriers of votes in source languages.
const VOTE_BARRIER: i64 = -5;

/// The PTX micro-ops for a source micro-op. The error names the rule under which it has no
/// counterpart.
pub(super) fn op(mapping: &Mapping, op: &Op) -> Result<Vec<Op>, String> {
    if op.is_ptx() || op.has(Tag::Misuse) {
        return Ok(vec![op.clone()]);
    }
    if let Op::Rmw { update, read, .. } = op {
        supported(update, read.ty)?;
    }
    if let Some(ops) = accesses(mapping, op) {
        return ops;
    }
    match op {
        Op::Mark { mark, .. } if mark.kind == EventKind::Fence => {
            let order = order_of(&mark.tags, OpKind::Fence)?;
            steps(mapping, OpKind::Fence, order, mark.scope, |_, _| {
                Err("a fence becomes fences".into())
            })
        }
        Op::Mark { mark, .. } => Err(format!(
            "mapping `{}` has no row for: {}",
            mapping.name,
            mark.kind.row().noun
        )),
        Op::Barrier(barrier) => self::barrier(mapping, barrier),
        // PTX's `atom.cas` never fails spuriously.
        Op::Choice {
            dst,
            spurious: true,
        } => Ok(vec![Op::Assign {
            dst: *dst,
            value: Expr::Const(0),
        }]),
        other => Ok(vec![other.clone()]),
    }
}

/// The PTX micro-ops for an access; `None`: it is none.
fn accesses(mapping: &Mapping, op: &Op) -> Option<Result<Vec<Op>, String>> {
    let (kind, order) = match (op.read(), op.write()) {
        (Some(read), Some(write)) => (kind_of_rmw(op), order_of_rmw(&read.tags, &write.tags)),
        (Some(read), None) => (OpKind::Load, order_of(&read.tags, OpKind::Load)),
        (None, Some(write)) => (OpKind::Store, order_of(&write.tags, OpKind::Store)),
        (None, None) => return None,
    };
    Some(order.and_then(|order| {
        steps(mapping, kind, order, op.scope(), |step, scope| {
            Ok(access(op, step, scope))
        })
    }))
}

/// The PTX micro-ops for a member of an atomic object, which one `.b128` instruction or a smaller
/// one accesses. Fences before it come with the first member, those behind it with the last.
pub(super) fn member(mapping: &Mapping, instr: &Instr) -> Result<Vec<Op>, String> {
    let Some(ops) = accesses(mapping, &instr.op) else {
        return Err("access rows: this is not an access to a member".into());
    };
    let ops = ops?;
    let here = ops.iter().position(|op| op.address().is_some());
    let (element, here) = (instr.element, here.unwrap_or_default());
    let is_kept = |at: usize| match at.cmp(&here) {
        Ordering::Less => element.at == 0,
        Ordering::Equal => true,
        Ordering::Greater => element.at + 1 == element.of,
    };
    let kept = ops.into_iter().enumerate().filter(|step| is_kept(step.0));
    Ok(kept.map(|step| step.1).collect())
}

/// An access of the source as the access of a row's step.
pub(super) fn access(op: &Op, step: MappingStep, scope: Option<Scope>) -> Op {
    let (acquires, releases) = half(step.semantics);
    let mut new = op.clone();
    let (read, write) = new.halves_mut();
    for (access, tag) in [(read, acquires), (write, releases)] {
        if let Some(access) = access {
            *access = strong(step.semantics, tag, scope, access);
            if matches!(step.kind, OpKind::Rmw | OpKind::Cas) {
                access.tags.insert(Tag::Rmw);
            }
        }
    }
    new
}

/// Widens an atomic operation of a host thread to the widest scope: the host's language has no
/// scopes of OpenCL.
pub(super) fn of_host(op: &Op) -> Op {
    let mut op = op.clone();
    if op.scope().is_some_and(|s| s != Scope::Thread) {
        op.set_scope(Some(Scope::Sys));
    }
    op
}

/// The micro-ops of a row: its fences, with `access` building the other steps.
pub(super) fn steps(
    mapping: &Mapping,
    kind: OpKind,
    order: SourceOrder,
    scope: Option<Scope>,
    access: impl Fn(MappingStep, Option<Scope>) -> Result<Op, String>,
) -> Result<Vec<Op>, String> {
    let Some(row) = mapping.steps(kind, order, scope) else {
        let kind = if kind == OpKind::Cas {
            OpKind::Rmw
        } else {
            kind
        };
        let (name, order, kind) = (&mapping.name, word(ORDERS, &order), word(KINDS, &kind));
        return Err(format!("mapping `{name}` has no row for: {kind}, {order}"));
    };
    row.iter()
        .map(|step| {
            let reach = match step.reach {
                StepScope::None => None,
                StepScope::Mapped => Some(mapped(mapping, scope)?),
                StepScope::Fixed(scope) => Some(scope),
            };
            match step.kind {
                OpKind::Fence => Ok(fence(step.semantics, reach)),
                _ => access(*step, reach),
            }
        })
        .collect()
}

fn fence(semantics: Semantics, scope: Option<Scope>) -> Op {
    let tag = match semantics {
        Semantics::Acquire => Tag::Acquire,
        Semantics::Release => Tag::Release,
        Semantics::Sc => Tag::SeqCst,
        _ => Tag::AcqRel,
    };
    Op::fence(Tags::of(&[tag, Tag::Generic]), scope)
}

/// The tags of the read half and of the write half of an access.
pub(super) fn half(semantics: Semantics) -> (Tag, Tag) {
    match semantics {
        Semantics::Weak => (Tag::Weak, Tag::Weak),
        Semantics::Volatile | Semantics::Relaxed => (Tag::Relaxed, Tag::Relaxed),
        Semantics::Acquire => (Tag::Acquire, Tag::Relaxed),
        Semantics::Release => (Tag::Relaxed, Tag::Release),
        Semantics::AcqRel | Semantics::Sc => (Tag::Acquire, Tag::Release),
    }
}

/// A PTX access with the tags that `ld`, `st` and `atom` give it.
fn strong(semantics: Semantics, tag: Tag, scope: Option<Scope>, from: &Access) -> Access {
    let mut tags = Tags::of(&[Tag::Generic, tag]);
    let mut scope = scope;
    match semantics {
        Semantics::Weak => {}
        Semantics::Volatile => {
            tags.extend(&[Tag::Atomic, Tag::Volatile]);
            scope = Some(Scope::Sys);
        }
        _ => tags.insert(Tag::Atomic),
    }
    Access {
        tags,
        scope,
        ty: from.ty,
    }
}

/// The PTX scope for a source scope. An operation without one has system scope, as in C++.
fn mapped(mapping: &Mapping, scope: Option<Scope>) -> Result<Scope, String> {
    let scope = scope.unwrap_or(Scope::Sys);
    mapping
        .scope(scope)
        .ok_or_else(|| format!("scope table: PTX has no scope for {scope:?}"))
}

/// The row kind of a read-modify-write: a compare-exchange has separate rows, because some
/// compilers treat it differently.
fn kind_of_rmw(op: &Op) -> OpKind {
    match op {
        Op::Rmw {
            update:
                Update::When {
                    cond: Expr::Const(_),
                    ..
                },
            ..
        } => OpKind::Rmw,
        Op::Rmw {
            update: Update::CompareExchange { .. } | Update::When { .. },
            ..
        } => OpKind::Cas,
        _ => OpKind::Rmw,
    }
}

/// The order of a load, a store or a fence, from its tags.
fn order_of(tags: &Tags, kind: OpKind) -> Result<SourceOrder, String> {
    if tags.has(Tag::Volatile) {
        return Ok(SourceOrder::Volatile);
    }
    if kind != OpKind::Fence && !tags.has(Tag::Atomic) {
        return Ok(SourceOrder::Plain);
    }
    const ORDERS: &[(Tag, SourceOrder)] = &[
        (Tag::SeqCst, SourceOrder::SeqCst),
        (Tag::AcqRel, SourceOrder::AcqRel),
        (Tag::Acquire, SourceOrder::Acquire),
        (Tag::Release, SourceOrder::Release),
        (Tag::Relaxed, SourceOrder::Relaxed),
    ];
    let order = ORDERS.iter().find(|o| tags.has(o.0)).map(|o| o.1);
    order.ok_or_else(|| "order table: this order has no row (consume has none in PTX)".into())
}

/// The order of a read-modify-write, from the tags of its halves. One `atom.cas` carries one order.
/// A compare-exchange with a different order on failure gets the join of both.
fn order_of_rmw(read: &Tags, write: &Tags) -> Result<SourceOrder, String> {
    let success = order_on_success(read, write)?;
    Ok(match success {
        _ if read.has(Tag::FailSeqCst) => SourceOrder::SeqCst,
        SourceOrder::Relaxed if read.has(Tag::FailAcquire) => SourceOrder::Acquire,
        SourceOrder::Release if read.has(Tag::FailAcquire) => SourceOrder::AcqRel,
        _ => success,
    })
}

fn order_on_success(read: &Tags, write: &Tags) -> Result<SourceOrder, String> {
    match (order_of(read, OpKind::Rmw)?, order_of(write, OpKind::Rmw)?) {
        (SourceOrder::SeqCst, _) | (_, SourceOrder::SeqCst) => Ok(SourceOrder::SeqCst),
        (SourceOrder::AcqRel, _)
        | (_, SourceOrder::AcqRel)
        | (SourceOrder::Acquire, SourceOrder::Release) => Ok(SourceOrder::AcqRel),
        (SourceOrder::Acquire, _) => Ok(SourceOrder::Acquire),
        (_, SourceOrder::Release) => Ok(SourceOrder::Release),
        (order, _) => Ok(order),
    }
}

/// Rejects types that PTX's `atom` lacks: it has 32 and 64 bits, and for `exch` and `cas` also 16
/// bits.
fn supported(update: &Update, ty: Ty) -> Result<(), String> {
    let least = match update {
        Update::Apply(op, _) => {
            use BinOp::{Add, And, Dec, Inc, Max, Min, Or, Sub, Xor};
            if !matches!(op, Add | Sub | And | Or | Xor | Min | Max | Inc | Dec) {
                return Err(format!(
                    "read-modify-write rows: PTX `atom` has no operation {op:?}"
                ));
            }
            32
        }
        Update::Exchange(_) | Update::CompareExchange { .. } => 16,
        Update::When { .. } => {
            return Err("read-modify-write rows: PTX `atom` has no such operation".into());
        }
    };
    if ty.bits < least {
        return Err(format!(
            "read-modify-write rows: PTX `atom` has no such operation of {} bits",
            ty.bits
        ));
    }
    Ok(())
}

/// Lowers a barrier of the source, which orders all memory of its group. For a wider scope, the
/// mapping adds steps before and after it.
fn barrier(mapping: &Mapping, from: &Barrier) -> Result<Vec<Op>, String> {
    let (resource, domain) = match from.domain {
        group if !mapping.groups.contains(&group) => {
            return Err(format!(
                "barrier rows: PTX has no barrier of {group:?} scope"
            ));
        }
        Scope::Cta if from.takes_turns() && from.action != BarrierAction::Sync => {
            return Err(
                "barrier rows: PTX has no arrival at a CTA's barrier that says no number of \
                 threads"
                    .into(),
            );
        }
        Scope::Cta => (CTA_BARRIER, Scope::Cta),
        Scope::Warp => (WARP_BARRIER, Scope::Warp),
        Scope::Cluster => (CLUSTER_BARRIER, Scope::Cluster),
        Scope::Grid => return Ok(grid_barrier(from)),
        other => {
            return Err(format!(
                "barrier rows: PTX has no barrier of {other:?} scope"
            ));
        }
    };
    let naming = match &from.naming {
        // A negative number is the group's single barrier in the source; barriers of PTX keep their
        // number.
        // Votes have one of their own: they do not mix with other barriers (PTX ISA, bar.red).
        BarrierNaming::Counted {
            id: Expr::Const(id),
            count,
        } if *id < 0 && *id != VOTE_BARRIER => BarrierNaming::Counted {
            id: Expr::Const(resource),
            count: count.clone(),
        },
        other => other.clone(),
    };
    let (mut arrive, mut wait, mut scope) = (
        Tags::of(&[Tag::Barrier, Tag::BarrierArrive]),
        Tags::of(&[Tag::Barrier, Tag::BarrierWait]),
        None,
    );
    for (half, of) in [(&mut arrive, &from.arrive), (&mut wait, &from.wait)] {
        if of.has(Tag::Aligned) {
            half.insert(Tag::Aligned);
        }
    }
    if domain == Scope::Cluster {
        let relaxed = from.arrive.has(Tag::Relaxed);
        let arrives = from.action == BarrierAction::Arrive || from.action == BarrierAction::Sync;
        let waits = from.action == BarrierAction::Wait || from.action == BarrierAction::Sync;
        if arrives {
            arrive.extend(&[
                Tag::Atomic,
                if relaxed { Tag::Relaxed } else { Tag::Release },
            ]);
        }
        if waits {
            wait.extend(&[Tag::Atomic, Tag::Acquire]);
        }
        scope = Some(Scope::Cluster);
    }
    let action = from.action;
    let lanes = from.lanes.clone();
    let op = Op::Barrier(Barrier {
        action,
        domain,
        lanes,
        naming,
        arrive,
        wait,
        scope,
    });
    let wide = match from.scope {
        Some(asked) if asked > domain => mapped(mapping, Some(asked))
            .ok()
            .filter(|s| *s > Scope::Cta && *s > domain),
        _ => None,
    };
    Ok(match wide {
        Some(scope) => {
            let fences = wider_fences(mapping, scope);
            [fences.clone(), vec![op], fences].concat()
        }
        None => vec![op],
    })
}

/// A barrier of a grid. The first thread of each block arrives at a counter in memory with
/// `atom.release.gpu` and polls it with `ld.acquire.gpu`, between barriers of the block. So all
/// arrivals synchronize with all waits, as at a barrier instruction; the counter is no memory here.
fn grid_barrier(from: &Barrier) -> Vec<Op> {
    let (arrive, wait) = (
        Tags::of(&[Tag::Barrier, Tag::BarrierArrive]),
        Tags::of(&[Tag::Barrier, Tag::BarrierWait]),
    );
    let block = Op::Barrier(Barrier {
        action: BarrierAction::Sync,
        domain: Scope::Cta,
        lanes: None,
        naming: BarrierNaming::Counted {
            id: Expr::Const(CTA_BARRIER),
            count: None,
        },
        arrive,
        wait,
        scope: None,
    });
    let grid = Op::Barrier(Barrier {
        arrive,
        wait,
        scope: None,
        ..from.clone()
    });
    match from.action {
        BarrierAction::Arrive => vec![block, grid],
        BarrierAction::Wait => vec![grid, block],
        BarrierAction::Sync => vec![block.clone(), grid, block],
    }
}

/// The fences on each side of a barrier whose scope is wider than its domain.
fn wider_fences(mapping: &Mapping, scope: Scope) -> Vec<Op> {
    let fences = mapping.wider.iter().map(|step| {
        let reach = match step.reach {
            StepScope::Fixed(fixed) => fixed,
            _ => scope,
        };
        fence(step.semantics, Some(reach))
    });
    fences.collect()
}

/// A PTX access or fence as a step of a row, at its scope. `None` for anything else, and for
/// operations that no row can have, such as a reduction.
pub(super) fn step(op: &Op) -> Option<MappingStep> {
    let (kind, tags, scope) = match (op.read(), op.write(), op) {
        _ if op.has(Tag::Reduction) => return None,
        (Some(read), Some(_), _) => (kind_of_rmw(op), &read.tags, read.scope),
        (Some(read), None, _) => (OpKind::Load, &read.tags, read.scope),
        (None, Some(write), _) => (OpKind::Store, &write.tags, write.scope),
        (None, None, Op::Mark { mark, .. }) if mark.kind == EventKind::Fence => {
            (OpKind::Fence, &mark.tags, mark.scope)
        }
        _ => return None,
    };
    const OF_TAGS: &[(Tag, Semantics)] = &[
        (Tag::Volatile, Semantics::Volatile),
        (Tag::Weak, Semantics::Weak),
        (Tag::SeqCst, Semantics::Sc),
        (Tag::AcqRel, Semantics::AcqRel),
        (Tag::Acquire, Semantics::Acquire),
        (Tag::Release, Semantics::Release),
        (Tag::Relaxed, Semantics::Relaxed),
    ];
    let releases =
        kind != OpKind::Fence && op.write().is_some_and(|write| write.tags.has(Tag::Release));
    let semantics = match OF_TAGS.iter().find(|row| tags.has(row.0))?.1 {
        Semantics::Acquire if releases => Semantics::AcqRel,
        Semantics::Relaxed if releases => Semantics::Release,
        semantics => semantics,
    };
    let reach = match semantics {
        Semantics::Weak | Semantics::Volatile => StepScope::None,
        _ => StepScope::Fixed(scope?),
    };
    Some(MappingStep {
        kind,
        semantics,
        reach,
    })
}
