//! Memory fences and proxy fences.
//!
//! # Sources
//! - PTX ISA 9.4, *membar / fence*: an omitted order is acq_rel; `membar.cta`, `.gl` and `.sys` are
//!   the `fence.sc` of cta, gpu and system scope; `fence.proxy` and `membar.proxy` are synonyms.
//! - PTX ISA 9.4, *membar / fence*: `.async` may name a state space, and then orders only accesses
//!   to that space.
//! - PTX ISA 9.4, *membar / fence*: `.alias.release.sys` and `.alias.acquire.sys` are halves of a
//!   fence of aliases; `.async::generic` has a release and an acquire half, each for shared memory
//!   alone, at cluster scope.
//! - PTX ISA 9.4, *membar / fence*: with `.sync_restrict`, a release fence is for shared memory of
//!   the CTA, and an acquire fence for that of the cluster, at cluster scope.
//! - PTX ISA 9.4, *membar / fence*: `.tensormap::generic` has a release and an acquire half; the
//!   acquire names 128 bytes.
//! - ISCA 2022, mixed-proxy extensions: the surface, texture and constant kinds.

use super::lower::{Emit, PtxInstr};
use super::needs::Need;
use super::table::{InstrRow, OperandRole, QualGroup, QualKind, SCOPES};
use super::tensormap::{PLACES, release, tensor_map};
use program::proxy::{ASYNC_HALVES, ASYNC_SPACES, PROXY_FENCE_WORDS, PROXY_FENCES};
use program::{EventKind, Expr, Mark, Op, Scope, Tag, Tags};

const SEM: QualGroup = QualGroup {
    kind: QualKind::Sem,
    words: &["sc", "acq_rel", "acquire", "release"],
};
const LEVELS: QualGroup = QualGroup {
    kind: QualKind::Scope,
    words: &["cta", "gl", "sys"],
};
const PROXIES: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &PROXY_FENCE_WORDS,
};
const SPACES: QualGroup = QualGroup {
    kind: QualKind::Space,
    words: &[ASYNC_SPACES[0].0, ASYNC_SPACES[1].0, ASYNC_SPACES[2].0],
};
const HALVES: QualGroup = QualGroup {
    kind: QualKind::Sem,
    words: &["acquire", "release"],
};
const RESTRICTIONS: QualGroup = QualGroup {
    kind: QualKind::Space,
    words: &[ASYNC_HALVES[0].0, ASYNC_HALVES[1].0, ASYNC_HALVES[2].0],
};
const RESTRICTED: QualGroup = QualGroup {
    kind: QualKind::Space,
    words: &[ASYNC_HALVES[0].0, ASYNC_HALVES[2].0],
};
const NO_OPERANDS: &[OperandRole] = &[];

pub(super) const ROWS: &[InstrRow] = &[
    InstrRow::new(
        "fence",
        "`fence{.sc|.acq_rel|.acquire|.release}.scope`, or \
         `fence.release.sync_restrict::shared::cta.cluster|\
         .acquire.sync_restrict::shared::cluster.cluster`",
        "orders this thread's accesses, or, with a restriction, those to shared memory of the \
         CTA or cluster; acq_rel unless it says otherwise",
        &[SEM, RESTRICTED, SCOPES],
        NO_OPERANDS,
        |e, c| {
            if c.quals.get(QualKind::Space).is_some() {
                return restricted(e, c);
            }
            let order = match c.quals.get(QualKind::Sem) {
                Some("sc") => Tag::SeqCst,
                Some("acquire") => Tag::Acquire,
                Some("release") => Tag::Release,
                _ => Tag::AcqRel,
            };
            fence(e, c, order);
        },
    )
    .needs(&[Need::of(&["acquire", "release"], (8, 6), 90)]),
    InstrRow::new(
        "membar",
        "`membar.cta|.gl|.sys`",
        "the same as `fence.sc` at cta, gpu or system scope",
        &[LEVELS],
        NO_OPERANDS,
        |e, c| fence(e, c, Tag::SeqCst),
    ),
    InstrRow::new(
        "fence",
        "`fence.proxy.alias{.release.sys|.acquire.sys}|.async{.space}|.generic|.surface|\
         .texture|.constant`",
        "orders accesses through different proxies, or to aliases; `.async` can be limited to one \
        state space; aliases can have a release in one thread and an acquire in another",
        &[PROXIES, SPACES, SEM, SCOPES],
        NO_OPERANDS,
        |e, c| match (c.quals.get(QualKind::Sem), c.quals.scope()) {
            (None, None) => proxy_fence(e, c),
            (order, scope) => half(e, c, order, scope),
        },
    )
    .needs(&[
        Need::of(&["async"], (8, 0), 90),
        Need::of(&["alias"], (7, 5), 70),
    ])
    .keyed(&["proxy"]),
    InstrRow::new(
        "fence",
        "`fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster|\
         .release.sync_restrict::shared::cluster::read.cluster|\
         .acquire.sync_restrict::shared::cluster.cluster`",
        "a release in one thread and an acquire in another: together they order generic accesses \
        to shared memory before those of the async proxy; `::read`: only reads of the own thread",
        &[HALVES, RESTRICTIONS, SCOPES],
        NO_OPERANDS,
        async_half,
    )
    .needs(&[Need::always((8, 6), 90)])
    .keyed(&["proxy", "async::generic"]),
    InstrRow::new(
        "fence",
        "`fence.proxy.tensormap::generic.release.scope`, or `.acquire.scope [map], 128`",
        "a release in one thread and an acquire in another: tensor copies of the latter's CTA \
        then see the written tensor map; each is also a fence of memory",
        &[HALVES, SCOPES],
        &[OperandRole::Addr, OperandRole::Loose],
        map_half,
    )
    .needs(&[Need::always((8, 3), 90)])
    .keyed(&["proxy", "tensormap::generic"])
    .optional(2),
    InstrRow::new(
        "membar",
        "`membar.proxy.alias|.async{.space}|.generic|.surface|.texture|.constant`",
        "the same as `fence.proxy`",
        &[PROXIES, SPACES],
        NO_OPERANDS,
        proxy_fence,
    )
    .keyed(&["proxy"]),
];

fn fence(e: &mut Emit<'_, '_>, c: &PtxInstr, order: Tag) {
    match c.quals.scope() {
        Some(scope) => e.push(Op::fence(Tags::of(&[order, Tag::Generic]), Some(scope))),
        None => e.error(
            "missing-scope",
            c.opcode.clone(),
            format!("`{}` needs a scope", c.row.opcode),
            |d| d.label(format!("expected the form {}", c.row.syntax)),
        ),
    }
}

fn proxy_fence(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let word = c.quals.get(QualKind::Op);
    let Some((_, kind)) = PROXY_FENCES.iter().find(|kind| Some(kind.0) == word) else {
        e.error(
            "missing-operation",
            c.opcode.clone(),
            "a proxy fence names its proxy",
            |d| d.label(format!("expected the form {}", c.row.syntax)),
        );
        return;
    };
    let space = c.quals.get(QualKind::Space);
    if let (Some(_), Some(place), true) = (
        space,
        c.quals.place(QualKind::Space),
        *kind != Tag::AsyncProxy,
    ) {
        e.error(
            "conflicting-qualifiers",
            place,
            "only `.async` goes with a state space",
            |d| d.label(format!("expected the form {}", c.row.syntax)),
        );
        return;
    }
    let mut tags = Tags::of(&[Tag::ProxyFence, *kind]);
    ASYNC_SPACES
        .iter()
        .filter(|row| Some(row.0) == space)
        .for_each(|row| tags.insert(row.1));
    e.push(Op::fence(tags, None));
}

/// A release or an acquire fence for the shared memory of the CTA or cluster alone.
fn restricted(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let (order, of) = (c.quals.get(QualKind::Sem), c.quals.get(QualKind::Space));
    let row = ASYNC_HALVES
        .iter()
        .find(|row| Some(row.0) == of && Some(row.1) == order);
    match (row, c.quals.scope()) {
        (Some((.., tags)), Some(Scope::Cluster)) => {
            let mut all = Tags::of(&[Tag::ProxyFence, Tag::Half]);
            all.extend(tags);
            e.push(Op::fence(all, Some(Scope::Cluster)));
        }
        _ => e.error(
            "conflicting-qualifiers",
            c.opcode.clone(),
            "this fence has no such form",
            |d| {
                d.label("expected one of two forms").note(
                    "fence.release.sync_restrict::shared::cta.cluster, \
                     fence.acquire.sync_restrict::shared::cluster.cluster",
                )
            },
        ),
    }
}

/// A half of the fence that makes writes of the generic proxy visible to the tensormap proxy.
fn map_half(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let order = match (c.quals.get(QualKind::Sem), c.quals.scope(), c.given(0)) {
        (Some("release"), Some(_), None) => Tag::Release,
        (Some("acquire"), Some(_), Some(_)) => Tag::Acquire,
        (_, None, _) => {
            e.error(
                "missing-scope",
                c.opcode.clone(),
                "this proxy fence needs a scope",
                |d| d.label(format!("expected the form {}", c.row.syntax)),
            );
            return;
        }
        _ => {
            e.error(
                "conflicting-qualifiers",
                c.opcode.clone(),
                "this proxy fence has no such form",
                |d| {
                    d.label(format!("expected {}", c.row.syntax))
                        .note("the acquire names a tensor map, and the release does not")
                },
            );
            return;
        }
    };
    if order == Tag::Acquire
        && (c.given(1) != Some(Expr::Const(128)) || tensor_map(e, c, 0, &PLACES).is_none())
    {
        if c.given(1) != Some(Expr::Const(128)) {
            e.error(
                "wrong-operand",
                c.opcode.clone(),
                "a tensor map has 128 bytes",
                |d| d.label("expected `128` behind it (PTX ISA, membar / fence)"),
            );
        }
        return;
    }
    if order == Tag::Release {
        return release(e, c);
    }
    let tags = Tags::of(&[Tag::Acquire, Tag::Generic, Tag::TensormapProxy, Tag::Half]);
    let mark = Mark {
        kind: EventKind::Fence,
        tags,
        scope: c.quals.scope(),
        pending: None,
        tensor: None,
    };
    e.push(Op::Mark {
        addr: c.given(0),
        mark,
    });
}

/// A half of the fence that orders the generic proxy before the async proxy.
fn async_half(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let (order, of) = (c.quals.get(QualKind::Sem), c.quals.get(QualKind::Space));
    let row = ASYNC_HALVES
        .iter()
        .find(|row| Some(row.0) == of && Some(row.1) == order);
    match (row, c.quals.scope()) {
        (Some((.., tags)), Some(Scope::Cluster)) => {
            let mut all = Tags::of(&[Tag::ProxyFence, Tag::AsyncProxy, Tag::Half]);
            all.extend(tags);
            e.push(Op::fence(all, Some(Scope::Cluster)));
        }
        _ => e.error(
            "conflicting-qualifiers",
            c.opcode.clone(),
            "this proxy fence has no such form",
            |d| {
                d.label("expected one of three forms")
                    .note(c.row.syntax.replace('`', ""))
            },
        ),
    }
}

/// A half of a fence of aliases; it is also a memory fence.
fn half(e: &mut Emit<'_, '_>, c: &PtxInstr, order: Option<&str>, scope: Option<Scope>) {
    let order = match order {
        Some("release") => Some(Tag::Release),
        Some("acquire") => Some(Tag::Acquire),
        _ => None,
    };
    match (
        c.quals.get(QualKind::Op),
        c.quals.get(QualKind::Space),
        order,
        scope,
    ) {
        (Some("alias"), None, Some(order), Some(Scope::Sys)) => {
            e.push(Op::fence(
                Tags::of(&[order, Tag::Generic, Tag::Alias, Tag::Half]),
                scope,
            ));
        }
        (Some(other), ..) if other != "alias" => {
            let message = format!("`fence.proxy.{other}` has no order and no scope");
            e.error("conflicting-qualifiers", c.opcode.clone(), message, |d| {
                d.label("expected it without them: it orders both directions")
                    .help("order memory by a separate fence, such as `fence.acq_rel.gpu`")
            });
        }
        _ => e.error(
            "conflicting-qualifiers",
            c.opcode.clone(),
            "this proxy fence has no such order and scope",
            |d| {
                d.label("expected `fence.proxy.alias.release.sys` or `.acquire.sys`")
                    .help(
                        "leave them out, and order memory by a separate fence, such as \
                        `fence.acq_rel.gpu`",
                    )
            },
        ),
    }
}
