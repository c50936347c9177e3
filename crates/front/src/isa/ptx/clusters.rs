//! Requests to cancel a cluster that has not started, so that the requesting cluster can do its
//! work.
//!
//! # Invariants
//! - A response is opaque. Queries can read from its first byte whether the request was granted.
//!   For all other code, every byte of it is an unknown value.
//! - Whether a request is granted is a free choice of the execution. The cancelled cluster's
//!   identifier is unknown; it is never a cluster of the test.
//!
//! # Sources
//! - PTX ISA 9.4, *clusterlaunchcontrol.try_cancel*: weak writes through the async proxy store 16
//!   bytes in the memory of the thread's CTA, or of each CTA of its cluster. An mbarrier object
//!   there tracks them. A further request is undefined for a CTA that has seen a request fail.
//! - PTX ISA 9.4, *clusterlaunchcontrol.query_cancel*: querying the identifier is undefined if the
//!   request failed.
//!
//! # Where we differ
//! - A response in a register is written as its halves, `{lo, hi}`, as in `ld.b128`.
//! - The text does not list requests among asynchronous operations; we treat them like the rest.

use super::arith::op;
use super::copies::{
    AsyncAccess, TRACKED, UNIT, aligned, end, in_ctas, mark, one_address, one_type,
};
use super::lower::{Emit, PtxArg, PtxInstr};
use super::mbarrier::{self, misused_unless};
use super::needs::{Need, SINCE_100, TargetFeatures};
use super::operands::plus;
use super::table::{B128, InstrRow, OperandRole, QualGroup, QualKind, ResultTy};
use program::{BinOp, Expr, Op, Space, Tag, Ty};

/// The first byte of the response to a granted request.
const GRANTED: i64 = 0x59;
/// The first byte of the response to a failed request.
const REFUSED: i64 = 0x4e;

const ALL: &str = "multicast::cluster::all";
const REQUEST: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["shared::cta", TRACKED, ALL, B128],
};
const RESPONSE: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["pred", "v4", "b32", B128],
};
const BYTE: Ty = Ty {
    bits: 8,
    signed: false,
};

const NEEDS: &[Need] = &[Need::always((8, 6), 100)];
const REQUEST_NEEDS: &[Need] = &[
    Need::always((8, 6), 100),
    Need::of(&[ALL], (8, 6), 100).only(TargetFeatures::Family, SINCE_100),
];

pub(super) const ROWS: &[InstrRow] = &[
    InstrRow::new(
        "clusterlaunchcontrol",
        "`clusterlaunchcontrol.try_cancel.async{.shared::cta}\
         .mbarrier::complete_tx::bytes{.multicast::cluster::all}.b128 [dst], [a]`",
        "requests that a cluster that has not started be cancelled; the async proxy writes the \
        response of 16 bytes, and an mbarrier object counts them. Any request can be granted or \
        refused",
        &[REQUEST],
        &[OperandRole::Addr, OperandRole::Addr],
        request,
    )
    .needs(REQUEST_NEEDS)
    .keyed(&["try_cancel", "async"]),
    InstrRow::new(
        "clusterlaunchcontrol",
        "`clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, {lo, hi}`",
        "whether a request was granted",
        &[RESPONSE],
        &[OperandRole::Dsts, OperandRole::Vals],
        is_granted,
    )
    .needs(NEEDS)
    .keyed(&["query_cancel", "is_canceled"])
    .result(ResultTy::Pred),
    identifier(
        "`clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {x, y, z, _}, {lo, hi}`",
        &["query_cancel", "get_first_ctaid"],
    ),
    identifier(
        "`clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 d, {lo, hi}`",
        &["query_cancel", "get_first_ctaid::x"],
    ),
    identifier(
        "`clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 d, {lo, hi}`",
        &["query_cancel", "get_first_ctaid::y"],
    ),
    identifier(
        "`clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 d, {lo, hi}`",
        &["query_cancel", "get_first_ctaid::z"],
    ),
];

/// A row for a query of the identifier of the cancelled cluster's first CTA.
const fn identifier(syntax: &'static str, keys: &'static [&'static str]) -> InstrRow {
    let doc = "the first CTA of the cluster that was cancelled: a value that is not worked out";
    InstrRow::new(
        "clusterlaunchcontrol",
        syntax,
        doc,
        &[RESPONSE],
        &[OperandRole::Dsts, OperandRole::Vals],
        identify,
    )
    .needs(NEEDS)
    .keyed(keys)
    .result(ResultTy::U32)
}

fn request(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    // The writes have the type of the location.
    e.through_register = false;
    let words: Vec<&str> = c.quals.all(QualKind::Ignored).collect();
    if !words.contains(&TRACKED) || !words.contains(&B128) {
        e.error(
            "conflicting-qualifiers",
            c.opcode.clone(),
            "there is no such form of a request",
            |d| d.label(format!("expected {}", c.row.syntax)),
        );
        return;
    }
    let Some(response) = end(e, c, 0, Space::Shared, UNIT, UNIT) else {
        return;
    };
    let (Some(()), Some(ty)) = (
        one_address(e, c, response),
        one_type(e, c, response, response),
    ) else {
        return;
    };
    let everywhere = words.contains(&ALL);
    let targets = if everywhere {
        in_ctas(e, c, 1, 0..e.env.cluster.len() as i64)
    } else {
        Some(vec![(c.expr(0), c.expr(1))])
    };
    let (Some(targets), Some(granted)) = (targets, e.temporary(c, "request", Ty::U32)) else {
        return;
    };
    e.push(Op::Choice {
        dst: granted,
        spurious: false,
    });
    let opaque = Expr::unknown(ty);
    let code = Expr::Select(
        Expr::Reg(granted).into(),
        Expr::Const(GRANTED).into(),
        Expr::Const(REFUSED).into(),
    );
    let mut access = AsyncAccess::weak(Tag::AsyncProxy).target(Tag::Relaxed, ty);
    access.tags.insert(Tag::LaunchControl);
    if !everywhere {
        access.tags.insert(Tag::OwnCta);
    }
    for (to, object) in targets {
        let to = aligned(to, UNIT);
        for k in 0..UNIT / i64::from(ty.bytes()) {
            let value = if k == 0 {
                op(BinOp::Or, ty, code.clone(), opaque.clone())
            } else {
                opaque.clone()
            };
            e.push(Op::Store {
                addr: plus(to.clone(), k, ty),
                value,
                access: access.clone(),
            });
        }
        mbarrier::complete(e, c, 1, object, UNIT);
    }
}

/// The halves of the response operand of a query.
fn response(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Option<[Expr; 2]> {
    if let [PtxArg::Expr(low), PtxArg::Expr(high)] = c.elements(1)
        && c.quals.all(QualKind::Ignored).any(|word| word == B128)
    {
        return Some([low.clone(), high.clone()]);
    }
    e.error(
        "wrong-operand",
        c.opcode.clone(),
        "a response is of 128 bits",
        |d| d.label(format!("expected the form {}", c.row.syntax)),
    );
    None
}

/// Computes whether a response begins with the given byte.
fn says(e: &mut Emit<'_, '_>, c: &PtxInstr, name: &str, low: &Expr, code: i64) -> Option<Expr> {
    let dst = e.temporary(c, name, Ty::U32)?;
    e.push(Op::Assign {
        dst,
        value: op(BinOp::Tells, BYTE, low.clone(), Expr::Const(code)),
    });
    Some(Expr::Reg(dst))
}

fn is_granted(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let Some([low, _]) = response(e, c) else {
        return;
    };
    let (Some(granted), Some(refused)) = (
        says(e, c, "granted", &low, GRANTED),
        says(e, c, "refused", &low, REFUSED),
    ) else {
        return;
    };
    // A query of bytes that are not a response is undefined.
    misused_unless(e, op(BinOp::Or, Ty::U32, granted.clone(), refused));
    let behind = e.here() + 2;
    e.jump(granted.clone(), behind);
    e.push(mark(&[Tag::CancelRefused], None));
    if let Some(dst) = c.elements(0).first().and_then(|arg| {
        if let PtxArg::Dst(dst) = arg {
            *dst
        } else {
            None
        }
    }) {
        e.push(Op::Assign {
            dst,
            value: granted,
        });
    }
}

fn identify(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let Some([low, high]) = response(e, c) else {
        return;
    };
    let Some(granted) = says(e, c, "granted", &low, GRANTED) else {
        return;
    };
    misused_unless(e, granted);
    for arg in c.elements(0) {
        if let PtxArg::Dst(Some(dst)) = arg {
            let value = op(BinOp::Unknown, Ty::U32, low.clone(), high.clone());
            e.push(Op::Assign { dst: *dst, value });
        }
    }
}
