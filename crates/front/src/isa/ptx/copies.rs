//! Asynchronous copies between global and shared memory, bulk reductions, and the waits for them.
//!
//! # Invariants
//! - A bulk copy that an mbarrier object tracks ends with the operation on the object, once for
//!   each destination CTA. Any other bulk copy belongs to a bulk group.
//! - A copy is a load and a store for each element. The only order among them is that each load
//!   comes before its store.
//! - These accesses are events `ASY`: they are in no thread's program order, but after everything
//!   before the copy. Only a wait for the copy is ordered after it.
//!
//! # Sources
//! - PTX ISA 9.4, *cp.async*, *cp.async.commit_group*, *cp.async.wait_group / cp.async.wait_all*,
//!   *cp.async.mbarrier.arrive*; Memory Consistency Model, *Asynchronous Operations*: weak accesses
//!   of the generic proxy.
//! - PTX ISA 9.4, *cp.async.bulk*, *cp.async.bulk.commit_group*, *cp.async.bulk.wait_group*; *Async
//!   Proxy*: weak accesses of the async proxy. The operation on the mbarrier object uses the
//!   generic proxy and cluster scope. With `.relaxed` and a scope, the accesses are strong, with
//!   128 bits each.
//! - PTX ISA 9.4, *cp.reduce.async.bulk*: weak accesses read the source, atomics change the
//!   destination. They are `.relaxed.sys` by default; sums of `.f32` flush subnormal numbers.
//! - PTX ISA 9.4, *cp.async.bulk.tensor*, *cp.reduce.async.bulk.tensor*: the tensor map is read
//!   through the tensormap proxy, the tensor through the async proxy.
//!
//! # Where we differ
//! - `cp.async.bulk.tensor [x], [m], bytes, [b]` is a short form. A tensor map is a location that
//!   holds an address, where PTX has 128 bytes with shape and strides. The range is the whole
//!   tensor, where PTX has coordinates.
//! - The target of an address in a register may be unknown. Then the elements have the smallest
//!   width in that state space, and memory of another width is refused once it is known.
//! - An address without the required alignment points to no memory.
//! - Memory of bulk copies must not have a second address: the text has no clause about aliases for
//!   the async proxy.

use super::arith::op;
use super::atomics::{self, RED_OPS, acquires_nothing, updated_by};
use super::control;
use super::lower::{Emit, PtxInstr, truth};
use super::mbarrier;
use super::memory::is_ordinary;
use super::needs::Need;
use super::operands::plus;
use super::table::{
    B128, HINT, InstrRow, NOFTZ, NUMBERS, OperandRole, PRED, QualGroup, QualKind, SCOPES,
};
use super::tensormap::{PLACES, tensor_map};
use crate::isa::Object;
use diag::{Sink, Span};
use program::{
    Access, BinOp, CmpOp, EventKind, Expr, Instr, LocId, Mark, Op, Program, RegId, Scope, Space,
    Tag, Tags, Thread, Ty, Update,
};

const CACHE: QualGroup = QualGroup {
    kind: QualKind::Cache,
    words: &["ca", "cg"],
};
const TO: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["shared", "shared::cta"],
};
const FROM: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["global"],
};
const PREFETCH: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["L2::64B", "L2::128B", "L2::256B"],
};
const OWN: QualGroup = QualGroup {
    kind: QualKind::Space,
    words: &["shared", "shared::cta"],
};
pub(super) const BULK: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &[
        "shared::cta",
        "shared::cluster",
        "global",
        TRACKED,
        GROUPED,
        MULTICAST,
    ],
};
pub(super) const DIMENSIONS: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &["1d", "2d", "3d", "4d", "5d"],
};
/// The dimensions of a tensor, for an instruction that also has an operation.
pub(super) const AXES: QualGroup = QualGroup {
    kind: QualKind::Round,
    ..DIMENSIONS
};
const STRONG: QualGroup = QualGroup {
    kind: QualKind::Sem,
    words: &["relaxed"],
};
const WIDE_TYPE: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &[B128],
};
/// The qualifier of an operation that an mbarrier object tracks.
pub(super) const TRACKED: &str = "mbarrier::complete_tx::bytes";
/// The qualifier of an operation that belongs to a bulk group.
pub(super) const GROUPED: &str = "bulk_group";
/// The qualifier of a bulk copy to several CTAs.
pub(super) const MULTICAST: &str = "multicast::cluster";
const B64: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &["b64"],
};

/// The size of a bulk copy, and its addresses, are multiples of this number of bytes.
pub(super) const UNIT: i64 = 16;

/// The largest number of incomplete groups in a wait; there are never more.
const MOST_GROUPS: i64 = 1 << 16;

pub(super) const ROWS: &[InstrRow] = &[
    InstrRow::new(
        "cp",
        "`cp.async{.ca|.cg}{.shared{::cta}}{.global} [dst], [src], bytes{, src-bytes|ignore-src}`",
        "begins to copy 4, 8 or 16 bytes from global to shared memory; bytes beyond `src-bytes`, \
        or all if the predicate ignores the source, become zeros",
        &[CACHE, HINT, TO, FROM, PREFETCH],
        &[
            OperandRole::Addr,
            OperandRole::Addr,
            OperandRole::Loose,
            OperandRole::Loose,
        ],
        copy,
    )
    .needs(&[Need::always((7, 0), 80)])
    .keyed(&["async"])
    .optional(1),
    InstrRow::new(
        "cp",
        "`cp.async.commit_group`",
        "makes a group of the thread's copies since the last group",
        &[],
        &[],
        |e, _| e.push(mark(&[Tag::CommitGroup], None)),
    )
    .needs(&[Need::always((7, 0), 80)])
    .keyed(&["async", "commit_group"]),
    InstrRow::new(
        "cp",
        "`cp.async.wait_group n`",
        "waits until at most the `n` latest groups of the thread are incomplete",
        &[],
        &[OperandRole::Loose],
        |e, c| wait_group(e, c, &[Tag::WaitGroup]),
    )
    .needs(&[Need::always((7, 0), 80)])
    .keyed(&["async", "wait_group"]),
    InstrRow::new(
        "cp",
        "`cp.async.wait_all`",
        "waits until all copies of the thread are complete",
        &[],
        &[],
        |e, _| {
            e.push(mark(&[Tag::CommitGroup], None));
            e.push(mark(&[Tag::WaitGroup], Some(0)));
        },
    )
    .needs(&[Need::always((7, 0), 80)])
    .keyed(&["async", "wait_all"]),
    InstrRow::new(
        "cp",
        "`cp.async.mbarrier.arrive{.noinc}{.shared{::cta}}.b64 [a]`",
        "arrives at an mbarrier object when the thread's copies so far are complete; without \
         `.noinc`, the phase expects that arrival in addition",
        &[OWN, B64],
        &[OperandRole::Addr],
        |e, c| mbarrier::track(e, c, true),
    )
    .needs(&[Need::always((7, 0), 80)])
    .keyed(&["async", "mbarrier", "arrive"]),
    InstrRow::new(
        "cp",
        "`cp.async.mbarrier.arrive.noinc{.shared{::cta}}.b64 [a]`",
        "the same, and the arrival is one of the expected arrivals of the phase",
        &[OWN, B64],
        &[OperandRole::Addr],
        |e, c| mbarrier::track(e, c, false),
    )
    .needs(&[Need::always((7, 0), 80)])
    .keyed(&["async", "mbarrier", "arrive", "noinc"]),
    InstrRow::new(
        "cp",
        "`cp.async.bulk{.relaxed.scope}.shared::cta|\
         ::cluster.global.mbarrier::complete_tx::bytes{.multicast::cluster}{.b128} [dst], \
         [src], bytes, [a]{, mask}`, the same from `.shared::cta` to `.shared::cluster`, \
         or `cp.async.bulk{.relaxed.scope}.global.shared::cta.bulk_group{.b128} [dst], \
         [src], bytes`",
        "begins to copy a multiple of 16 bytes through the async proxy: to shared memory, \
        completed through an mbarrier object, or to global memory",
        &[BULK, HINT, STRONG, SCOPES, WIDE_TYPE],
        &[
            OperandRole::Addr,
            OperandRole::Addr,
            OperandRole::Loose,
            OperandRole::Addr,
            OperandRole::Loose,
        ],
        bulk,
    )
    .needs(&[Need::always((8, 0), 90)])
    .keyed(&["async", "bulk"])
    .optional(2),
    InstrRow::new(
        "cp",
        "`cp.async.bulk.tensor [dst], [map], bytes, [a]`, or `cp.async.bulk.tensor [map], \
         [src], bytes`",
        "begins to copy a range of memory through the async proxy, to shared memory (completed \
        through an mbarrier object) or from it; `map` holds the address of the range in global \
        memory, and the tensormap proxy reads `map` (short form)",
        &[DIMENSIONS, BULK, HINT],
        &[
            OperandRole::Addr,
            OperandRole::Addr,
            OperandRole::Loose,
            OperandRole::Addr,
        ],
        tensor,
    )
    .needs(&[Need::always((8, 0), 90)])
    .keyed(&["async", "bulk", "tensor"])
    .optional(1),
    InstrRow::new(
        "cp",
        "`cp.reduce.async.bulk.global.shared::cta.bulk_group{.relaxed.scope}.op.type \
         [dst], [src], bytes`, or \
         `cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes\
         {.relaxed.scope}.op.type [dst], [src], bytes, [a]`",
        "begins to apply an operation (`add`, `and`, `or`, `xor`, `min`, `max`, `inc`, `dec`) \
         to each element of memory, through the async proxy",
        &[BULK, HINT, atomics::SEM, SCOPES, RED_OPS, NOFTZ, NUMBERS],
        &[
            OperandRole::Addr,
            OperandRole::Addr,
            OperandRole::Loose,
            OperandRole::Addr,
        ],
        reduce,
    )
    .needs(&[Need::always((8, 0), 90)])
    .keyed(&["reduce", "async", "bulk"])
    .optional(1),
    InstrRow::new(
        "cp",
        "`cp.reduce.async.bulk.tensor.op.type [map], [src], bytes`",
        "begins to apply such an operation, `.relaxed.gpu`, to each element of a range of global \
        memory; `map` holds its address (short form: PTX has the type in the tensor map)",
        &[AXES, BULK, RED_OPS, NOFTZ, NUMBERS],
        &[OperandRole::Addr, OperandRole::Addr, OperandRole::Loose],
        reduce_tensor,
    )
    .needs(&[Need::always((8, 0), 90)])
    .keyed(&["reduce", "async", "bulk", "tensor"]),
    InstrRow::new(
        "cp",
        "`cp.async.bulk.commit_group`",
        "makes a bulk group of the thread's bulk copies since the last one",
        &[],
        &[],
        |e, _| e.push(mark(&[Tag::CommitGroup, Tag::Bulk], None)),
    )
    .needs(&[Need::always((8, 0), 90)])
    .keyed(&["async", "bulk", "commit_group"]),
    InstrRow::new(
        "cp",
        "`cp.async.bulk.wait_group n`",
        "waits until at most the `n` latest bulk groups of the thread are incomplete",
        &[],
        &[OperandRole::Loose],
        |e, c| wait_group(e, c, &[Tag::WaitGroup, Tag::Bulk]),
    )
    .needs(&[Need::always((8, 0), 90)])
    .keyed(&["async", "bulk", "wait_group"]),
    InstrRow::new(
        "cp",
        "`cp.async.bulk.wait_group.read n`",
        "waits until all bulk groups of the thread except the `n` latest have read their sources",
        &[],
        &[OperandRole::Loose],
        |e, c| wait_group(e, c, &[Tag::WaitGroupRead, Tag::Bulk]),
    )
    .needs(&[Need::always((8, 0), 90)])
    .keyed(&["async", "bulk", "wait_group", "read"]),
];

pub(super) fn mark(tags: &[Tag], pending: Option<u32>) -> Op {
    Op::Mark {
        addr: None,
        mark: Mark {
            kind: EventKind::Fence,
            tags: Tags::of(tags),
            scope: None,
            pending,
            tensor: None,
        },
    }
}

/// Waits until all groups except the last few are complete, or have been read.
pub(super) fn wait_group(e: &mut Emit<'_, '_>, c: &PtxInstr, tags: &[Tag]) {
    match c.expr(0) {
        Expr::Const(n) if (0..MOST_GROUPS).contains(&n) => e.push(mark(tags, Some(n as u32))),
        _ => e.error(
            "wrong-operand",
            c.opcode.clone(),
            "a wait needs a number of groups",
            |d| d.label(format!("expected a constant from 0 to {}", MOST_GROUPS - 1)),
        ),
    }
}

/// The kind of groups that an access or a mark belongs to, and the name of its instructions.
fn groups(tags: &Tags) -> (Option<Tag>, &'static str) {
    match () {
        () if tags.has(Tag::Wgmma) => (Some(Tag::Wgmma), "wgmma"),
        () if tags.has_any(&[Tag::Bulk, Tag::AsyncProxy, Tag::TensormapProxy]) => {
            (Some(Tag::Bulk), "cp.async.bulk")
        }
        () => (None, "cp.async"),
    }
}

/// Warns about waits for groups that never contain a pending copy, on no path and in no thread. The
/// warning says what is missing.
pub fn warn_of_empty_waits(program: &Program, sink: &mut Sink) {
    let mut found: Vec<(Span, Option<String>)> = Vec::new();
    for thread in &program.threads {
        for (at, wait) in thread.code.iter().enumerate() {
            let Some(mark) = wait
                .op
                .mark(EventKind::Fence)
                .filter(|m| m.tags.has(Tag::WaitGroup) || m.tags.has(Tag::WaitGroupRead))
            else {
                continue;
            };
            let why = empty(thread, at, mark);
            match found.iter_mut().find(|(span, _)| *span == wait.span) {
                Some((_, said)) if why.is_none() => *said = None,
                Some(_) => {}
                None => found.push((wait.span, why)),
            }
        }
    }
    for (span, why) in found
        .into_iter()
        .filter_map(|(span, why)| Some((span, why?)))
    {
        sink.warn(
            "empty-wait",
            span,
            "this wait has no copies to wait for",
            |d| {
                d.label(why).note(
                    "a wait for groups waits for copies that the thread has committed to one \
                 (PTX ISA 9.4, cp.async.wait_group)",
                )
            },
        );
    }
}

/// Warns about bytes that an mbarrier object expects, but no operation delivers, because the bulk
/// operations belong to groups.
pub fn warn_of_lost_bytes(program: &Program, sink: &mut Sink) {
    let all: Vec<&Instr> = program.threads.iter().flat_map(|t| &t.code).collect();
    let Some(copy) = all
        .iter()
        .find(|i| {
            i.op.accesses()
                .any(|a| a.tags.has(Tag::Asynchronous) && a.tags.has(Tag::AsyncProxy))
        })
        .filter(|_| {
            !all.iter()
                .any(|i| i.op.has(Tag::MbarrierBytes) || i.has_qualifier("complete_tx"))
        })
    else {
        return;
    };
    let mut found: Vec<Span> = all
        .iter()
        .filter(|i| i.op.has(Tag::Mbarrier) && i.has_qualifier("expect_tx"))
        .map(|i| i.span)
        .collect();
    found.dedup();
    for span in found {
        sink.warn(
            "lost-bytes",
            span,
            "bytes that never arrive at this object",
            |d| {
                d.label("no operation of this test completes bytes on an mbarrier object")
                    .also(copy.span, "this one completes with its bulk group")
                    .note(
                        "wait for a copy to global memory with `cp.async.bulk.wait_group` (PTX \
                        ISA 9.4, cp.async.bulk)",
                    )
            },
        );
    }
}

/// The reason why a wait of a thread waits for nothing; `None` if it waits for something.
fn empty(thread: &Thread, at: usize, mark: &Mark) -> Option<String> {
    let code = &thread.code;
    let (own, name) = groups(&mark.tags);
    // In a loop, code after the wait may also run before it.
    let looped = thread.has_loop();
    let before = if looped { 0..code.len() } else { 0..at };
    let copies: Vec<usize> = before.clone().filter(|i| is_copy(&code[*i], own)).collect();
    let Some(first) = copies.iter().find(|i| !is_tracked(code, **i)) else {
        return Some(if copies.is_empty() {
            format!("no `{name}` of this thread comes before it")
        } else {
            "the copies before it are tracked by an mbarrier object, and in no group".to_owned()
        });
    };
    let from = if looped { 0 } else { *first };
    let made = code[from..before.end]
        .iter()
        .filter(|instr| makes_group(instr, own))
        .count();
    let pending = mark.pending.unwrap_or(0) as usize;
    match made {
        0 => Some(format!(
            "no `{name}.commit_group` is between the copies and this wait"
        )),
        n if n <= pending && !looped => Some(format!(
            "{n} of the {pending} groups that it may leave incomplete are made before it"
        )),
        _ => None,
    }
}

/// Whether an instruction is a copy of these groups. All accesses of `cp.async` copies are weak.
fn is_copy(instr: &Instr, own: Option<Tag>) -> bool {
    instr.op.accesses().any(|access| {
        access.tags.has(Tag::Asynchronous)
            && (access.tags.has(Tag::AsyncProxy) || access.tags.has(Tag::Weak))
            && groups(&access.tags).0 == own
    })
}

/// Whether an mbarrier object tracks the operation of a micro-op. Such bulk operations belong to no
/// group, except for their reads of tensor maps.
fn is_tracked(code: &[Instr], at: usize) -> bool {
    !code[at].op.has(Tag::TensormapProxy)
        && code[at + 1..]
            .iter()
            .take_while(|instr| instr.id == code[at].id)
            .any(|instr| instr.op.has(Tag::Mbarrier))
}

fn makes_group(instr: &Instr, own: Option<Tag>) -> bool {
    instr
        .op
        .mark(EventKind::Fence)
        .is_some_and(|m| m.tags.has(Tag::CommitGroup) && groups(&m.tags).0 == own)
}

/// The conditions under which fewer bytes come from the source, each with their number, and the
/// number of bytes otherwise. `None` for that means that more is undefined.
type SourceSizes = (Vec<(Expr, i64)>, Option<i64>);

/// The number of bytes that a copy reads, given by operand 3.
fn source_sizes(e: &mut Emit<'_, '_>, c: &PtxInstr, bytes: i64) -> Option<SourceSizes> {
    Some(match c.given(3) {
        None => (Vec::new(), Some(bytes)),
        Some(Expr::Const(n)) if (0..=bytes).contains(&n) => (Vec::new(), Some(n)),
        Some(Expr::Reg(p)) if e.regs.has_type(p, PRED) => {
            (vec![(truth(Expr::Reg(p), false), 0)], Some(bytes))
        }
        Some(number @ Expr::Reg(_)) => {
            let cases = (0..=bytes).map(|n| {
                let size = Expr::Const(n).into();
                (
                    Expr::Cmp(CmpOp::Eq, Ty::U32, number.clone().into(), size),
                    n,
                )
            });
            (cases.collect(), None)
        }
        Some(_) => {
            let message = "the source cannot have more bytes than the copy";
            e.error("wrong-operand", c.opcode.clone(), message, |d| {
                d.label(format!(
                    "expected a constant from 0 to {bytes}, a register or a predicate"
                ))
            });
            return None;
        }
    })
}

fn copy(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let bytes = match c.expr(2) {
        Expr::Const(n @ (4 | 8 | 16)) => n,
        _ => {
            e.error(
                "wrong-operand",
                c.opcode.clone(),
                "an asynchronous copy has 4, 8 or 16 bytes",
                |d| d.label("expected a constant: 4, 8 or 16"),
            );
            return;
        }
    };
    if c.quals.get(QualKind::Cache) == Some("cg") && bytes != 16 {
        e.error(
            "conflicting-qualifiers",
            c.opcode.clone(),
            "`.cg` goes with 16 bytes alone",
            |d| d.label("expected `.ca` (PTX ISA, cp.async)"),
        );
        return;
    }
    // The accesses have the type of the locations.
    e.through_register = false;
    let (to, from) = (
        end(e, c, 0, Space::Shared, bytes, bytes),
        end(e, c, 1, Space::Global, bytes, bytes),
    );
    let (Some(to), Some(from)) = (to, from) else {
        return;
    };
    let Some(ty) = one_type(e, c, to, from) else {
        return;
    };
    let Some((fewer, most)) = source_sizes(e, c, bytes) else {
        return;
    };
    let ends = (aligned(c.expr(0), bytes), aligned(c.expr(1), bytes));
    let size = i64::from(ty.bytes());
    let mut leaving = Vec::new();
    for (case, of_source) in fewer
        .into_iter()
        .map(|(case, n)| (Some(case), Some(n)))
        .chain([(None, most)])
    {
        let passed = case.map(|case| {
            e.push(Op::Branch {
                cond: truth(case, true),
                target: usize::MAX,
            });
            e.here() - 1
        });
        let Some(of_source) = of_source else {
            // A source larger than the copy is undefined.
            control::abort(e, c);
            continue;
        };
        let range = CopyRange {
            to: ends.0.clone(),
            from: ends.1.clone(),
            bytes: of_source,
        };
        if elements(e, c, &AsyncAccess::weak(Tag::Generic), ty, &range).is_none() {
            return;
        }
        ((of_source + size - 1) / size..bytes / size).for_each(|k| e.push(zero(&ends.0, k, ty)));
        if let Some(passed) = passed {
            e.push(Op::Branch {
                cond: Expr::Const(1),
                target: usize::MAX,
            });
            leaving.push(e.here() - 1);
            e.aim(passed, e.here());
        }
    }
    leaving.into_iter().for_each(|jump| e.aim(jump, e.here()));
}

/// Stores a zero to an element of the destination.
fn zero(to: &Expr, k: i64, ty: Ty) -> Op {
    Op::Store {
        addr: plus(to.clone(), k, ty),
        value: Expr::Const(0),
        access: AsyncAccess::weak(Tag::Generic).target(Tag::Relaxed, ty),
    }
}

/// The direction of a bulk operation.
struct CopyDirection {
    to: Space,
    from: Space,
    /// An mbarrier object tracks it.
    tracked: bool,
    /// The destination is in another CTA.
    away: bool,
}

/// The direction that the qualifiers give. The short form has no qualifiers.
fn way(e: &mut Emit<'_, '_>, c: &PtxInstr, reduces: bool) -> Option<CopyDirection> {
    let words: Vec<&str> = c.quals.all(QualKind::Ignored).collect();
    let spaces: Vec<&str> = words
        .iter()
        .copied()
        .filter(|w| ![TRACKED, GROUPED, MULTICAST].contains(w))
        .collect();
    let tracked = c.given(3).is_some();
    let told = tracked && words.contains(&TRACKED) && !words.contains(&GROUPED);
    let (written, away) = match *spaces {
        ["shared::cta" | "shared::cluster", "global"] if !reduces => (told, false),
        ["shared::cluster", "shared::cta"] => (told && !words.contains(&MULTICAST), true),
        ["global", "shared::cta"] => (
            !tracked && words.contains(&GROUPED) && !words.contains(&TRACKED),
            false,
        ),
        _ => (words.is_empty(), reduces && tracked),
    };
    let cluster = words.is_empty() || spaces.first() == Some(&"shared::cluster");
    let multicast = c.given(4).is_some();
    if !written || words.contains(&MULTICAST) != multicast || multicast && !cluster {
        e.error(
            "conflicting-qualifiers",
            c.opcode.clone(),
            "there is no such form of a bulk operation",
            |d| d.label(format!("expected {}", c.row.syntax)),
        );
        return None;
    }
    let to = if tracked {
        Space::Shared
    } else {
        Space::Global
    };
    Some(CopyDirection {
        to,
        from: if tracked && !away {
            Space::Global
        } else {
            Space::Shared
        },
        tracked,
        away,
    })
}

/// The number of bytes of a bulk operation.
pub(super) fn of_units(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Option<i64> {
    if let Expr::Const(n) = c.expr(2)
        && n > 0
        && n % UNIT == 0
    {
        return Some(n);
    }
    e.error(
        "wrong-operand",
        c.opcode.clone(),
        "a bulk operation has a multiple of 16 bytes",
        |d| d.label("expected a constant: 16, 32, …"),
    );
    None
}

/// The common element type of source and destination of a bulk operation.
fn ends(e: &mut Emit<'_, '_>, c: &PtxInstr, way: &CopyDirection, bytes: i64) -> Option<Ty> {
    let source = end(e, c, 1, way.from, bytes, UNIT)?;
    let destination = end(e, c, 0, way.to, bytes, UNIT)?;
    one_address(e, c, source)?;
    one_address(e, c, destination)?;
    one_type(e, c, destination, source)
}

/// The address of a copy; a misaligned one becomes 0, which is outside all memory.
pub(super) fn aligned(addr: Expr, unit: i64) -> Expr {
    if addr.base().is_some() {
        return addr;
    }
    let rest = Expr::Bin(
        BinOp::And,
        Ty::U64,
        addr.clone().into(),
        Expr::Const(unit - 1).into(),
    );
    let aligned = Expr::Cmp(CmpOp::Eq, Ty::U64, rest.into(), Expr::Const(0).into());
    Expr::Select(aligned.into(), addr.into(), Expr::Const(0).into())
}

fn bulk(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    // The accesses have the type of the named locations.
    e.through_register = false;
    let strong = match (
        c.quals.place(QualKind::Sem),
        c.quals.scope(),
        c.quals.get(QualKind::Type),
    ) {
        (None, None, None) => None,
        (Some(_), Some(scope), Some(_)) => Some(scope),
        (Some(place), None, _) => {
            e.error("missing-scope", place, "`.relaxed` needs a scope", |d| {
                d.label("expected one of `.cta`, `.cluster`, `.gpu` or `.sys`")
            });
            return;
        }
        _ => {
            let message = "a strong bulk copy has an order, a scope and a type";
            e.error("conflicting-qualifiers", c.opcode.clone(), message, |d| {
                d.label("expected `.relaxed`, a scope and `.b128`, or none of them")
            });
            return;
        }
    };
    let Some(way) = way(e, c, false) else { return };
    let Some(bytes) = of_units(e, c) else { return };
    let Some(ty) = ends(e, c, &way, bytes) else {
        return;
    };
    let how = AsyncAccess {
        strong,
        away: way.away,
        ..AsyncAccess::weak(Tag::AsyncProxy)
    };
    let Some(targets) = targets(e, c, c.given(4).is_some()) else {
        return;
    };
    for (to, object) in targets {
        let range = CopyRange {
            to: aligned(to, UNIT),
            from: aligned(c.expr(1), UNIT),
            bytes,
        };
        if elements(e, c, &how, ty, &range).is_none() {
            return;
        }
        if way.tracked {
            mbarrier::complete(e, c, 3, object, bytes);
        }
    }
}

fn tensor(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    e.through_register = false;
    let loads = c.given(3).is_some();
    let words: Vec<&str> = c.quals.all(QualKind::Ignored).collect();
    let (shared, written): (_, &[&[&str]]) = match loads {
        true => (
            0,
            &[
                &["shared::cta", "global", TRACKED],
                &["shared::cluster", "global", TRACKED],
                &[TRACKED],
                &[],
            ],
        ),
        false => (1, &[&["global", "shared::cta", GROUPED], &[GROUPED], &[]]),
    };
    if !written.contains(&words.as_slice()) {
        e.error(
            "conflicting-qualifiers",
            c.opcode.clone(),
            "there is no such form of a tensor copy",
            |d| d.label(format!("expected {}", c.row.syntax)),
        );
        return;
    }
    let map = 1 - shared;
    if tensor_map(e, c, map, &PLACES).is_none() {
        return;
    }
    let Some(bytes) = of_units(e, c) else { return };
    let Some(range) = end(e, c, shared, Space::Shared, bytes, UNIT) else {
        return;
    };
    let there = unknown(e, Space::Global);
    let (Some(()), Some(())) = (one_address(e, c, range), one_address(e, c, there)) else {
        return;
    };
    let Some(ty) = one_type(e, c, range, there) else {
        return;
    };
    let Some(at) = read_map(e, c, map) else {
        return;
    };
    let (there, here) = (aligned(Expr::Reg(at), UNIT), aligned(c.expr(shared), UNIT));
    let (to, from) = if loads { (here, there) } else { (there, here) };
    let range = CopyRange { to, from, bytes };
    let copied = elements(e, c, &AsyncAccess::weak(Tag::AsyncProxy), ty, &range);
    if copied.is_some() && loads {
        mbarrier::complete(e, c, 3, c.expr(3), bytes);
    }
}

/// Emits the read of a tensor map; the register gets the address that it holds.
pub(super) fn read_map(e: &mut Emit<'_, '_>, c: &PtxInstr, map: usize) -> Option<RegId> {
    let at = e.temporary(c, "tensor map", Ty::U64)?;
    let mut access = AsyncAccess::weak(Tag::TensormapProxy).source(Ty::U64);
    access.tags.insert(Tag::Asynchronous);
    e.push(Op::Load {
        dst: at,
        addr: c.expr(map),
        access,
    });
    Some(at)
}

fn reduce(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    e.through_register = false;
    let Some(way) = way(e, c, true) else { return };
    if acquires_nothing(e, c).is_none() || reduction(e, c, way.to == Space::Global).is_none() {
        return;
    }
    let scope = match (c.quals.get(QualKind::Sem), c.quals.scope()) {
        (None, None) => Scope::Sys,
        (Some("relaxed"), Some(scope)) => scope,
        _ => {
            let message = "a bulk reduction is `.relaxed`, of a scope";
            e.error("conflicting-qualifiers", c.opcode.clone(), message, |d| {
                d.label("expected `.relaxed` with a scope, or neither, which is `.relaxed.sys`")
            });
            return;
        }
    };
    let Some(bytes) = of_units(e, c) else { return };
    let Some(ty) = ends(e, c, &way, bytes) else {
        return;
    };
    if of_elements(e, c, ty).is_none() {
        return;
    }
    let range = CopyRange {
        to: aligned(c.expr(0), UNIT),
        from: aligned(c.expr(1), UNIT),
        bytes,
    };
    let how = AsyncAccess {
        strong: Some(scope),
        away: way.away,
        ..AsyncAccess::weak(Tag::AsyncProxy)
    };
    if reductions(e, c, &how, &range).is_none() {
        return;
    }
    if way.tracked {
        mbarrier::complete(e, c, 3, c.expr(3), bytes);
    }
}

fn reduce_tensor(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    e.through_register = false;
    let words: Vec<&str> = c.quals.all(QualKind::Ignored).collect();
    let written: &[&[&str]] = &[&["global", "shared::cta", GROUPED], &[GROUPED], &[]];
    if !written.contains(&words.as_slice()) {
        e.error(
            "conflicting-qualifiers",
            c.opcode.clone(),
            "there is no such form of a tensor reduction",
            |d| d.label(format!("expected {}", c.row.syntax)),
        );
        return;
    }
    if reduction(e, c, true).is_none() || tensor_map(e, c, 0, &PLACES).is_none() {
        return;
    }
    let Some(bytes) = of_units(e, c) else { return };
    let Some(source) = end(e, c, 1, Space::Shared, bytes, UNIT) else {
        return;
    };
    let there = unknown(e, Space::Global);
    let (Some(()), Some(())) = (one_address(e, c, source), one_address(e, c, there)) else {
        return;
    };
    let Some(ty) = one_type(e, c, there, source) else {
        return;
    };
    if of_elements(e, c, ty).is_none() {
        return;
    }
    let Some(at) = read_map(e, c, 0) else {
        return;
    };
    let range = CopyRange {
        to: aligned(Expr::Reg(at), UNIT),
        from: aligned(c.expr(1), UNIT),
        bytes,
    };
    let how = AsyncAccess {
        strong: Some(Scope::Gpu),
        ..AsyncAccess::weak(Tag::AsyncProxy)
    };
    reductions(e, c, &how, &range);
}

/// Reports a reduction with a type that does not match the elements of the memory.
fn of_elements(e: &mut Emit<'_, '_>, c: &PtxInstr, ty: Ty) -> Option<()> {
    if ty.bits == c.ty.bits {
        return Some(());
    }
    let message = format!(
        "a reduction of {} bits of elements of {} bits",
        c.ty.bits, ty.bits
    );
    e.error("mixed-size", c.opcode.clone(), message, |d| {
        d.label("expected the size of the locations' elements")
    });
    None
}

/// Emits the accesses of a bulk reduction.
fn reductions(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    how: &AsyncAccess,
    range: &CopyRange,
) -> Option<()> {
    for k in 0..range.bytes / i64::from(c.ty.bytes()) {
        let dst = e.temporary(c, &format!("copy {k}"), c.ty)?;
        let update = updated_by(e, c, Expr::Reg(dst))?;
        e.push(Op::Load {
            dst,
            addr: plus(range.from.clone(), k, c.ty),
            access: AsyncAccess::weak(Tag::AsyncProxy).source(c.ty),
        });
        let target = plus(range.to.clone(), k, c.ty);
        e.push(how.reduction(Tag::Relaxed, c.ty, target, update));
    }
    Some(())
}

/// Checks that an asynchronous reduction with this operation and type exists. Global memory has
/// more of them than shared memory.
pub(super) fn reduction(e: &mut Emit<'_, '_>, c: &PtxInstr, global: bool) -> Option<()> {
    let (op, ty) = (c.quals.get(QualKind::Op), c.quals.get(QualKind::Type));
    let types: &[&str] = match (op, global) {
        (Some("add"), false) => &["u32", "s32", "u64"],
        (Some("add"), true) if c.quals.get(QualKind::Flush).is_some() => &["f16", "bf16"],
        (Some("add"), true) => &["u32", "s32", "u64", "f32", "f64"],
        _ if c.quals.get(QualKind::Flush).is_some() => &[],
        (Some("min" | "max"), false) => &["u32", "s32"],
        (Some("min" | "max"), true) => &["u32", "s32", "u64", "s64", "f16", "bf16"],
        (Some("inc" | "dec"), _) => &["u32"],
        (Some("and" | "or" | "xor"), false) => &["b32"],
        (Some("and" | "or" | "xor"), true) => &["b32", "b64"],
        _ => &[],
    };
    if ty.is_some_and(|ty| types.contains(&ty)) {
        return Some(());
    }
    let (id, message, expected) = match (op, ty) {
        (Some(op), Some(ty)) => {
            let message = format!("there is no such reduction, `.{op}.{ty}`");
            let expected = match types {
                [] => "expected `.noftz` with `.add.f16` or `.add.bf16` alone".to_owned(),
                types => format!("expected one of {}", types.join(", ")),
            };
            ("conflicting-qualifiers", message, expected)
        }
        (None, _) => (
            "missing-operation",
            "a reduction needs an operation".into(),
            format!("expected the form {}", c.row.syntax),
        ),
        (_, None) => (
            "missing-type",
            "a reduction needs the type of its elements".into(),
            format!("expected the form {}", c.row.syntax),
        ),
    };
    e.error(id, c.opcode.clone(), message, |d| d.label(expected));
    None
}

/// The destinations of a bulk copy, each with its mbarrier object: the same offset in the memory of
/// every CTA in the mask.
pub(super) fn targets(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    multicast: bool,
) -> Option<Vec<(Expr, Expr)>> {
    if !multicast {
        return Some(vec![(c.expr(0), c.expr(3))]);
    }
    let Expr::Const(mask) = c.expr(4) else {
        e.ask();
        let message = "a copy to several CTAs through a mask in a register is not supported";
        e.error("unsupported-mask", c.opcode.clone(), message, |d| {
            d.label("expected a constant mask")
        });
        return None;
    };
    if !(1..1 << 16).contains(&mask) {
        e.error(
            "out-of-range",
            c.opcode.clone(),
            format!("{mask} names no CTAs"),
            |d| d.label("expected a mask of 16 bits, not all 0"),
        );
        return None;
    }
    in_ctas(e, c, 3, (0..16).filter(|rank| mask >> rank & 1 == 1))
}

/// The addresses of operand 0 and of the mbarrier object at operand `object` in the CTAs with these
/// ranks.
pub(super) fn in_ctas(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    object: usize,
    mut ranks: impl Iterator<Item = i64>,
) -> Option<Vec<(Expr, Expr)>> {
    let (to, by) = (c.expr(0), c.expr(object));
    let (Some(to_base), Some(by_base)) = (to.base(), by.base()) else {
        e.ask();
        let message =
            "a write to several CTAs through addresses that are not known is not supported";
        e.error("unsupported-address", c.opcode.clone(), message, |d| {
            d.label(
                "expected the names of locations in shared memory, or registers that hold \
                 the same addresses of them on every way here",
            )
        });
        return None;
    };
    ranks.try_fold(Vec::new(), |mut all, rank| {
        let to = mbarrier::of_rank(e, c, to_base, to.clone(), rank)?;
        all.push((to, mbarrier::of_rank(e, c, by_base, by.clone(), rank)?));
        Some(all)
    })
}

/// Properties of the accesses of an asynchronous operation.
#[derive(Clone, Copy)]
pub(super) struct AsyncAccess {
    /// The tag of their proxy.
    pub(super) proxy: Tag,
    /// The scope of strong accesses; `None` for weak ones.
    pub(super) strong: Option<Scope>,
    /// The destination is memory of another CTA.
    pub(super) away: bool,
}

impl AsyncAccess {
    /// Weak accesses through a proxy.
    pub(super) const fn weak(proxy: Tag) -> AsyncAccess {
        AsyncAccess {
            proxy,
            strong: None,
            away: false,
        }
    }

    /// An access that reads the source.
    pub(super) fn source(self, ty: Ty) -> Access {
        AsyncAccess {
            away: false,
            ..self
        }
        .target(Tag::Relaxed, ty)
    }

    /// An access to the destination. If it is strong, it has the given order.
    pub(super) fn target(self, order: Tag, ty: Ty) -> Access {
        let mut tags = Tags::of(&[Tag::Asynchronous, self.proxy]);
        tags.extend(if self.strong.is_some() {
            &[Tag::Atomic]
        } else {
            &[Tag::Weak]
        });
        if self.strong.is_some() {
            tags.insert(order);
        }
        if self.away {
            tags.insert(Tag::OtherCta);
        }
        Access {
            tags,
            scope: self.strong,
            ty,
        }
    }

    /// A reduction with the given order.
    pub(super) fn reduction(self, order: Tag, ty: Ty, addr: Expr, update: Update) -> Op {
        let [read, write] = [Tag::Relaxed, order].map(|order| {
            let mut access = self.target(order, ty);
            access.tags.extend(&[Tag::Rmw, Tag::Reduction]);
            access
        });
        Op::Rmw {
            dst: None,
            addr,
            update,
            read,
            write,
        }
    }
}

/// The bytes that a copy or reduction covers.
struct CopyRange {
    to: Expr,
    from: Expr,
    bytes: i64,
}

/// Emits the accesses of a copy. Strong accesses have 128 bits. If the last element is copied in
/// part, its lower bytes are copied and the others become zero.
fn elements(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    how: &AsyncAccess,
    ty: Ty,
    range: &CopyRange,
) -> Option<()> {
    let bytes = range.bytes;
    let size = i64::from(ty.bytes());
    let all: Vec<i64> = (0..(bytes + size - 1) / size).collect();
    let together = if how.strong.is_some() {
        UNIT as usize / ty.bytes() as usize
    } else {
        1
    };
    for together in all.chunks(together) {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for &k in together {
            let dst = e.temporary(c, &format!("copy {k}"), ty)?;
            reads.push(Op::Load {
                dst,
                addr: plus(range.from.clone(), k, ty),
                access: how.source(ty),
            });
            let value = match bytes - k * size {
                left if left < size => op(
                    BinOp::And,
                    ty,
                    Expr::Reg(dst),
                    Expr::Const((1 << (8 * left)) - 1),
                ),
                _ => Expr::Reg(dst),
            };
            let addr = plus(range.to.clone(), k, ty);
            writes.push(Op::Store {
                addr,
                value,
                access: how.target(Tag::Relaxed, ty),
            });
        }
        match how.strong {
            Some(_) => [reads, writes]
                .into_iter()
                .for_each(|pieces| e.push_scalar(pieces)),
            None => reads.into_iter().chain(writes).for_each(|op| e.push(op)),
        }
    }
    Some(())
}

/// Source or destination of a copy.
#[derive(Clone, Copy)]
pub(super) enum CopyEnd {
    /// A known location.
    Of(LocId),
    /// Some location in this state space.
    In(Space),
}

/// The possible element types of one end of a copy. Empty means any type: accesses decide the types
/// of such memory.
fn types_of(e: &Emit<'_, '_>, end: CopyEnd) -> Vec<Ty> {
    match end {
        CopyEnd::Of(loc) if takes_any_type(e.symbols.object(loc).1) => Vec::new(),
        CopyEnd::Of(loc) => {
            member_types(e.symbols.object(loc).1).unwrap_or_else(|| vec![e.symbols.ty(loc)])
        }
        CopyEnd::In(space) => {
            let in_space = e
                .symbols
                .objects()
                .filter(|(_, o)| o.space == space && o.class.is_none() && !takes_any_type(o));
            in_space
                .flat_map(|(_, o)| {
                    member_types(o).unwrap_or_else(|| o.ty.iter().map(|ty| ty.0).collect())
                })
                .collect()
        }
    }
}

fn takes_any_type(o: &Object) -> bool {
    o.cut || o.fields.is_some()
}

/// A structure has the types of its members.
fn member_types(o: &Object) -> Option<Vec<Ty>> {
    let layout = o.record.as_ref().map(|_| o.layout())?;
    Some(
        (0..layout.cells() as u32)
            .map(|cell| layout.field(cell).ty)
            .collect(),
    )
}

/// The common element type of both ends.
pub(super) fn one_type(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    to: CopyEnd,
    from: CopyEnd,
) -> Option<Ty> {
    let (to, from) = (types_of(e, to), types_of(e, from));
    let (Some(ty), Some(other)) = (narrowest(&to), narrowest(&from)) else {
        return Some(narrowest(&to).or(narrowest(&from)).unwrap_or(Ty::U32));
    };
    let both: Vec<Ty> = to
        .into_iter()
        .filter(|ty| from.iter().any(|other| other.bits == ty.bits))
        .collect();
    let found = narrowest(&both);
    if found.is_none() {
        let message = format!(
            "a copy from elements of {} bits to such of {} bits",
            other.bits, ty.bits
        );
        e.error("mixed-size", c.opcode.clone(), message, |d| {
            d.label("expected locations with elements of one size")
        });
    }
    found
}

fn narrowest(types: &[Ty]) -> Option<Ty> {
    types.iter().copied().min_by_key(|ty| ty.bits)
}

/// Reports memory with several addresses.
pub(super) fn one_address(e: &mut Emit<'_, '_>, c: &PtxInstr, end: CopyEnd) -> Option<()> {
    let all: Vec<LocId> = match end {
        CopyEnd::Of(loc) => vec![e.symbols.object(loc).0],
        CopyEnd::In(space) => e
            .symbols
            .objects()
            .filter(|(_, o)| o.space == space)
            .map(|(id, _)| id)
            .collect(),
    };
    all.into_iter().try_for_each(|object| alone(e, c, object))
}

fn alone(e: &mut Emit<'_, '_>, c: &PtxInstr, object: LocId) -> Option<()> {
    let Some(other) = e.symbols.alias_of(object) else {
        return Some(());
    };
    let (name, place) = (
        e.symbols.get(object).name.clone(),
        e.symbols.get(other).span,
    );
    let message = format!("a bulk copy of `{name}`, which has a second address, is not supported");
    e.error("unsupported-alias", c.opcode.clone(), message, |d| {
        d.label("expected memory of one address")
            .also(place, "the second address")
            .note(
                "PTX ISA 9.4, Memory Consistency Model, Causality Order: the clause of aliases \
                does not cover the async proxy",
            )
    });
    None
}

/// Checks one end of a copy of `bytes` bytes with alignment `unit`, and returns its location.
pub(super) fn end(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    at: usize,
    space: Space,
    bytes: i64,
    unit: i64,
) -> Option<CopyEnd> {
    let (loc, offset) = match c.expr(at) {
        Expr::Address(loc) => (loc, 0),
        Expr::Bin(BinOp::Add, _, base, offset) => match (*base, *offset) {
            (Expr::Address(loc), Expr::Const(offset)) => (loc, offset),
            _ => return Some(unknown(e, space)),
        },
        _ => return Some(unknown(e, space)),
    };
    is_ordinary(e, loc, &c.opcode)?;
    let declared = e.symbols.object(loc).1;
    let lives = declared.space;
    // A structure is copied by its cells.
    let (elements, size) = match &declared.record {
        Some(_) => (
            declared.init.len(),
            e.symbols.layout(loc).field(0).ty.bytes(),
        ),
        None => (e.symbols.count(loc), e.symbols.ty(loc).bytes()),
    };
    let symbol = e.symbols.get(loc);
    let (name, place) = (symbol.name.clone(), symbol.span);
    let mut wrong = |id, message: String, expected: String| {
        e.error(id, c.opcode.clone(), message, |d| {
            d.label(expected).also(place, "declared here")
        });
        None
    };
    if lives != space {
        let word = if space == Space::Shared {
            "shared"
        } else {
            "global"
        };
        let what = if at == 0 { "writes" } else { "reads" };
        return wrong(
            "wrong-space",
            format!("this {what} {word} memory, and `{name}` is in another state space"),
            format!("expected a location in {word} memory"),
        );
    }
    if bytes % i64::from(size) != 0 || offset % unit != 0 {
        let place = if offset % unit != 0 {
            format!("byte {offset} of `{name}`")
        } else {
            format!("`{name}`")
        };
        return wrong(
            "misaligned",
            format!("{bytes} bytes at {place}, which has elements of {size} bytes"),
            format!("expected whole elements, at a multiple of {unit} bytes"),
        );
    }
    let length = elements as i64 * i64::from(size);
    if offset < 0 || offset + bytes > length {
        let end = offset + bytes;
        return wrong(
            "out-of-bounds",
            format!(
                "bytes {offset} to {} of `{name}`, which has {length}",
                end - 1
            ),
            format!("expected a location of at least {end} bytes"),
        );
    }
    Some(CopyEnd::Of(loc))
}

/// An end with an unknown location; a second pass may learn it.
pub(super) fn unknown(e: &mut Emit<'_, '_>, space: Space) -> CopyEnd {
    e.ask();
    CopyEnd::In(space)
}
