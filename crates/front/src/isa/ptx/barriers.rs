//! Barriers of a CTA, a warp and a cluster, and the waits of kernels that depend on others.
//!
//! # Sources
//! - PTX ISA 9.4, *bar / barrier*: sixteen resources per CTA; without a thread count, all threads
//!   of the CTA.
//! - PTX ISA 9.4, *bar.warp.sync*; *barrier.cluster*: arrive is release and wait is acquire unless
//!   they say otherwise.
//! - PTX ISA 9.4, *bar / barrier*: `.red` combines the predicates of all threads that arrive at the
//!   barrier.
//! - PTX ISA 9.4, *griddepcontrol*.
//! - The published suites' operands, if the test says so: a static instance, a run-time id, a
//!   quorum.

use super::copies::mark;
use super::lanes::{LaneSet, combine, named};
use super::lower::{Emit, PtxInstr};
use super::needs::Need;
use super::table::{InstrRow, OperandRole, QualGroup, QualKind, ResultTy};
use program::{Barrier, BarrierAction, BarrierNaming, BinOp, Expr, Op, Scope, Tag, Tags};

const CTA_SYNC: &[QualGroup] = &[QualGroup {
    kind: QualKind::Ignored,
    words: &["cta", "aligned"],
}];
const CTA_RED: &[QualGroup] = &[QualGroup {
    kind: QualKind::Ignored,
    words: &["cta", "aligned"],
}];
const ARRIVE_SEM: QualGroup = QualGroup {
    kind: QualKind::Sem,
    words: &["release", "relaxed"],
};
const WAIT_SEM: QualGroup = QualGroup {
    kind: QualKind::Sem,
    words: &["acquire"],
};
const ALIGNED: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["aligned"],
};
const OPERANDS: &[OperandRole] = &[OperandRole::Val, OperandRole::Val, OperandRole::Val];

/// The single resources of warp and cluster barriers, distinct from the CTA's sixteen.
const WARP_BARRIER: i64 = -1;
const CLUSTER_BARRIER: i64 = -2;

pub(super) const ROWS: &[InstrRow] = &[
    InstrRow::new(
        "bar",
        "`bar{.cta}.sync a{, b}`",
        "waits for the CTA's threads, or for `b` of them",
        CTA_SYNC,
        OPERANDS,
        sync,
    )
    .keyed(&["sync"])
    .optional(2),
    InstrRow::new(
        "bar",
        "`bar{.cta}.arrive a, b`",
        "arrives without waiting",
        CTA_SYNC,
        OPERANDS,
        arrive,
    )
    .keyed(&["arrive"])
    .optional(2),
    InstrRow::new(
        "barrier",
        "`barrier{.cta}.sync{.aligned} a{, b}`",
        "the same as `bar.sync`",
        CTA_SYNC,
        OPERANDS,
        sync,
    )
    .needs(&[Need::of(&["cta"], (7, 8), 70)])
    .keyed(&["sync"])
    .optional(2),
    InstrRow::new(
        "barrier",
        "`barrier{.cta}.arrive{.aligned} a, b`",
        "the same as `bar.arrive`",
        CTA_SYNC,
        OPERANDS,
        arrive,
    )
    .needs(&[Need::of(&["cta"], (7, 8), 70)])
    .keyed(&["arrive"])
    .optional(2),
    reduction(
        "bar",
        "`bar{.cta}.red.popc.u32 d, a, {!}p`",
        &["red", "popc", "u32"],
        ResultTy::U32,
    ),
    reduction(
        "bar",
        "`bar{.cta}.red.and.pred d, a, {!}p`",
        &["red", "and", "pred"],
        ResultTy::Pred,
    ),
    reduction(
        "bar",
        "`bar{.cta}.red.or.pred d, a, {!}p`",
        &["red", "or", "pred"],
        ResultTy::Pred,
    ),
    reduction(
        "barrier",
        "`barrier{.cta}.red.popc{.aligned}.u32 d, a, {!}p`",
        &["red", "popc", "u32"],
        ResultTy::U32,
    )
    .needs(&[Need::of(&["cta"], (7, 8), 70)]),
    reduction(
        "barrier",
        "`barrier{.cta}.red.and{.aligned}.pred d, a, {!}p`",
        &["red", "and", "pred"],
        ResultTy::Pred,
    )
    .needs(&[Need::of(&["cta"], (7, 8), 70)]),
    reduction(
        "barrier",
        "`barrier{.cta}.red.or{.aligned}.pred d, a, {!}p`",
        &["red", "or", "pred"],
        ResultTy::Pred,
    )
    .needs(&[Need::of(&["cta"], (7, 8), 70)]),
    InstrRow::new(
        "bar",
        "`bar.warp.sync mask`",
        "waits for the lanes in the mask",
        &[],
        &[OperandRole::Val],
        warp,
    )
    .keyed(&["warp", "sync"]),
    InstrRow::new(
        "barrier",
        "`barrier.cluster.arrive{.release|.relaxed}{.aligned}`",
        "arrives at the cluster's barrier; release unless relaxed",
        &[ARRIVE_SEM, ALIGNED],
        &[],
        |e, c| {
            let order = if c.quals.get(QualKind::Sem) == Some("relaxed") {
                Tag::Relaxed
            } else {
                Tag::Release
            };
            cluster(e, c, BarrierAction::Arrive, order);
        },
    )
    .needs(&[Need::always((7, 8), 90)])
    .keyed(&["cluster", "arrive"]),
    InstrRow::new(
        "barrier",
        "`barrier.cluster.wait{.acquire}{.aligned}`",
        "waits until all threads of the cluster have arrived; acquire",
        &[WAIT_SEM, ALIGNED],
        &[],
        |e, c| cluster(e, c, BarrierAction::Wait, Tag::Acquire),
    )
    .needs(&[Need::always((7, 8), 90)])
    .keyed(&["cluster", "wait"]),
    InstrRow::new(
        "griddepcontrol",
        "`griddepcontrol.launch_dependents`",
        "lets dependent kernels start, once all CTAs have executed it or ended",
        &[],
        &[],
        |e, _| e.push(mark(&[Tag::LaunchDependents], None)),
    )
    .needs(&[Need::always((7, 8), 90)])
    .keyed(&["launch_dependents"]),
    InstrRow::new(
        "griddepcontrol",
        "`griddepcontrol.wait`",
        "waits until the kernel on which this one depends is complete (if any)",
        &[],
        &[],
        |e, _| e.push(mark(&[Tag::GridWait], None)),
    )
    .needs(&[Need::always((7, 8), 90)])
    .keyed(&["wait"]),
];

/// A row for a barrier that reduces predicates.
const fn reduction(
    opcode: &'static str,
    syntax: &'static str,
    keys: &'static [&'static str],
    result: ResultTy,
) -> InstrRow {
    let doc = "waits for the CTA's threads (at most 64) and combines their predicates";
    InstrRow::new(
        opcode,
        syntax,
        doc,
        CTA_RED,
        &[OperandRole::Dst, OperandRole::Val, OperandRole::Pred],
        reduce,
    )
    .keyed(keys)
    .result(result)
}

/// The CTA's threads first exchange their predicates, then wait at the barrier. A thread that never
/// runs on after the exchange has not arrived at the barrier, so no thread passes it.
fn reduce(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let block = e.env.seats.block();
    if block.of > i64::BITS {
        let message = format!("a reduction over {} threads is not supported", block.of);
        e.error("unsupported-barrier", c.opcode.clone(), message, |d| {
            d.label(format!(
                "expected a kernel with at most {} threads in a block",
                i64::BITS
            ))
        });
        return;
    }
    if let Expr::Const(id) = c.expr(1)
        && !(0..=15).contains(&id)
    {
        e.error(
            "out-of-range",
            c.opcode.clone(),
            format!("there is no barrier {id}"),
            |d| d.label("barriers are numbered 0 to 15"),
        );
        return;
    }
    let all = LaneSet::new(Scope::Cta, block, Expr::Const(block.all()));
    e.push(all.meet(c.expr(2), Expr::Const(1)));
    let (arrive, wait) = halves(c, BarrierAction::Sync);
    e.push(Op::Barrier(Barrier {
        action: BarrierAction::Sync,
        domain: Scope::Cta,
        lanes: None,
        naming: BarrierNaming::Counted {
            id: c.expr(1),
            count: None,
        },
        arrive,
        wait,
        scope: None,
    }));
    let op = if c.quals.contains("popc") {
        BinOp::Add
    } else if c.quals.contains("and") {
        BinOp::And
    } else {
        BinOp::Or
    };
    combine(e, c, all, op);
}

fn tags(half: Tag) -> Tags {
    Tags::of(&[Tag::Barrier, half])
}

/// The tags of the arrive half and of the wait half of a CTA or cluster barrier. `.aligned` marks
/// one half: the arrival, if there is one. `bar` is `barrier` with `.aligned`.
fn halves(c: &PtxInstr, action: BarrierAction) -> (Tags, Tags) {
    let (mut arrive, mut wait) = (tags(Tag::BarrierArrive), tags(Tag::BarrierWait));
    if c.row.opcode == "bar" || c.quals.all(QualKind::Ignored).any(|w| w == "aligned") {
        let half = if action == BarrierAction::Wait {
            &mut wait
        } else {
            &mut arrive
        };
        half.extend(&[Tag::Aligned]);
    }
    (arrive, wait)
}

fn sync(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    of_cta(e, c, BarrierAction::Sync);
}

fn arrive(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    of_cta(e, c, BarrierAction::Arrive);
}

fn of_cta(e: &mut Emit<'_, '_>, c: &PtxInstr, action: BarrierAction) {
    let naming = if e.env.instance_barriers {
        instance(e, c)
    } else {
        counted(e, c, action)
    };
    let Some(naming) = naming else { return };
    let (arrive, wait) = halves(c, action);
    e.push(Op::Barrier(Barrier {
        action,
        domain: Scope::Cta,
        lanes: None,
        naming,
        arrive,
        wait,
        scope: None,
    }));
}

fn instance(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Option<BarrierNaming> {
    let Expr::Const(instance) = c.expr(0) else {
        e.error(
            "wrong-operand",
            c.opcode.clone(),
            "the first operand, the barrier's instance, is a constant",
            |d| d.label("expected instance, id, quorum (`barriers = \"litmus\"`)"),
        );
        return None;
    };
    Some(BarrierNaming::Instance {
        instance,
        id: c.given(1),
        quorum: c.given(2),
    })
}

fn counted(e: &mut Emit<'_, '_>, c: &PtxInstr, action: BarrierAction) -> Option<BarrierNaming> {
    if c.given(2).is_some() {
        e.error(
            "wrong-operands",
            c.opcode.clone(),
            "a barrier takes a number and a thread count",
            |d| {
                d.label(format!("expected the form {}", c.row.syntax)).help(
                    "operands (instance, id, quorum) as in the published suites need `barriers = \
                     \"litmus\"` in the test",
                )
            },
        );
        return None;
    }
    if let Expr::Const(id) = c.expr(0)
        && !(0..=15).contains(&id)
    {
        e.error(
            "out-of-range",
            c.opcode.clone(),
            format!("there is no barrier {id}"),
            |d| d.label("barriers are numbered 0 to 15"),
        );
        return None;
    }
    let count = c.given(1);
    if let Some(Expr::Const(n)) = count
        && n <= 0
    {
        e.error(
            "out-of-range",
            c.opcode.clone(),
            format!("a barrier cannot wait for {n} threads"),
            |d| d.label("the second operand is the number of threads"),
        );
        return None;
    }
    if count.is_none() && action == BarrierAction::Arrive {
        e.error(
            "wrong-operands",
            c.opcode.clone(),
            "an arrival needs a thread count",
            |d| d.label(format!("expected the form {}", c.row.syntax)),
        );
        return None;
    }
    Some(BarrierNaming::Counted {
        id: c.expr(0),
        count,
    })
}

fn warp(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let Some(lanes) = named(e, c, 0) else { return };
    e.push(Op::Barrier(Barrier {
        action: BarrierAction::Sync,
        domain: Scope::Warp,
        lanes: Some(lanes.mask).filter(|mask| *mask != Expr::Const(e.env.seats.whole_warp())),
        naming: BarrierNaming::Counted {
            id: Expr::Const(WARP_BARRIER),
            count: None,
        },
        arrive: tags(Tag::BarrierArrive),
        wait: tags(Tag::BarrierWait),
        scope: None,
    }));
}

fn cluster(e: &mut Emit<'_, '_>, c: &PtxInstr, action: BarrierAction, order: Tag) {
    let (mut arrive, mut wait) = halves(c, action);
    let half = if action == BarrierAction::Arrive {
        &mut arrive
    } else {
        &mut wait
    };
    half.extend(&[order, Tag::Atomic]);
    e.push(Op::Barrier(Barrier {
        action,
        domain: Scope::Cluster,
        lanes: None,
        naming: BarrierNaming::Counted {
            id: Expr::Const(CLUSTER_BARRIER),
            count: None,
        },
        arrive,
        wait,
        scope: Some(Scope::Cluster),
    }));
}
