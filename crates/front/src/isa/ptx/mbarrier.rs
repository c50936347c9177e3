//! mbarrier objects: atomic operations on one word of shared memory.
//!
//! # Invariants
//! - Every operation is a read-modify-write of the word, and it is the first of its micro-ops.
//!   [`program::mbarrier`] defines the encoding of the word and the effect of operations.
//! - A wait or test that finds its phase complete writes the word back unchanged. So it has a place
//!   in the order of operations on the object. If it fails, it writes nothing and orders nothing.
//! - An operation with an unmet precondition changes nothing: it is an event `MISUSE`, and its
//!   thread ends there.
//!
//! # Sources
//! - PTX ISA 9.4, *mbarrier* and the pages of its instructions. By default, an arrival is
//!   `.release.cta`, a test or wait `.acquire.cta`, and changes of the byte count are `.relaxed`.
//!   Order and scope are given together. *Support for mbarrier in the shared memory of a cluster*
//!   lists the operations on remote objects.
//!
//! # Where we differ
//! - `mbarrier.wait` is the short form of a loop around `mbarrier.try_wait`.
//! - `try_wait` behaves like `test_wait`: the time limit of its wait is not modelled.
//! - If a count or a number of bytes in a register is too large for an object here, the operation
//!   accesses no memory.

use super::lower::{Emit, PtxInstr};
use super::needs::Need;
use super::table::{InstrRow, OperandRole, QualGroup, QualKind, ResultTy, SCOPES};
use crate::isa::Symbols;
use program::mbarrier::{self as object, MOST_ARRIVALS, MOST_BYTES};
use program::{Access, CmpOp, Expr, LocId, Op, RegId, Scope, Tag, Tags, Ty, Update};

const B64: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &["b64"],
};
const OWN: QualGroup = QualGroup {
    kind: QualKind::Space,
    words: &["shared", "shared::cta"],
};
const ANY: QualGroup = QualGroup {
    kind: QualKind::Space,
    words: &["shared", "shared::cta", "shared::cluster"],
};
const REACH: QualGroup = QualGroup {
    kind: QualKind::Scope,
    words: &["cta", "cluster"],
};
const RELEASE: QualGroup = QualGroup {
    kind: QualKind::Sem,
    words: &["release", "relaxed"],
};
const ACQUIRE: QualGroup = QualGroup {
    kind: QualKind::Sem,
    words: &["acquire", "relaxed"],
};
const RELAXED: QualGroup = QualGroup {
    kind: QualKind::Sem,
    words: &["relaxed"],
};

const ARRIVE: &[QualGroup] = &[RELEASE, REACH, ANY, B64];
const COUNT: &[OperandRole] = &[OperandRole::Dst, OperandRole::Addr, OperandRole::Loose];
const WAIT: &[QualGroup] = &[ACQUIRE, REACH, OWN, B64];
const TEST: &[OperandRole] = &[OperandRole::Dst, OperandRole::Addr, OperandRole::Loose];
const TRY: &[OperandRole] = &[
    OperandRole::Dst,
    OperandRole::Addr,
    OperandRole::Loose,
    OperandRole::Loose,
];
const BYTES: &[QualGroup] = &[RELAXED, REACH, ANY, B64];

const ARRIVAL_NEEDS: &[Need] = &[
    Need::always((7, 0), 80),
    Need::of(&["release"], (8, 0), 80),
    Need::of(&["relaxed"], (8, 6), 90),
];
const BYTES_NEEDS: &[Need] = &[Need::always((8, 0), 90), Need::of(&["relaxed"], (8, 6), 90)];
const TRY_NEEDS: &[Need] = &[
    Need::always((7, 8), 90),
    Need::of(&["acquire"], (8, 0), 90),
    Need::of(&["relaxed"], (8, 6), 90),
];

pub(super) const ROWS: &[InstrRow] = &[
    InstrRow::new(
        "mbarrier",
        "`mbarrier.init{.shared::cta}.b64 [a], count`",
        "makes an mbarrier object with phases of `count` arrivals",
        &[OWN, B64],
        &[OperandRole::Addr, OperandRole::Loose],
        |e, c| {
            let Some(count) = counted(e, c, c.expr(1), MOST_ARRIVALS) else {
                return;
            };
            let what = MbarrierOp {
                own: true,
                role: Some(Tag::MbarrierInit),
                ..MbarrierOp::of(Tag::Weak)
            };
            operation(
                e,
                c,
                &what,
                &count,
                |old: &Expr| dead(old),
                |old| object::init(old, count.clone()),
            );
        },
    )
    .needs(&[Need::always((7, 0), 80)])
    .keyed(&["init"]),
    InstrRow::new(
        "mbarrier",
        "`mbarrier.inval{.shared::cta}.b64 [a]`",
        "ends an mbarrier object",
        &[OWN, B64],
        &[OperandRole::Addr],
        |e, c| {
            let what = MbarrierOp {
                own: true,
                ..MbarrierOp::of(Tag::Weak)
            };
            operation(
                e,
                c,
                &what,
                &Expr::Const(1),
                |old| object::live(old.clone()),
                object::inval,
            );
        },
    )
    .needs(&[Need::always((7, 0), 80)])
    .keyed(&["inval"]),
    InstrRow::new(
        "mbarrier",
        "`mbarrier.arrive{.release|.relaxed}{.scope}{.space}.b64 d, [a]{, count}`",
        "arrives; `d` receives the phase, or is `_`",
        ARRIVE,
        COUNT,
        |e, c| arrive(e, c, &ArrivalVariant::default()),
    )
    .needs(ARRIVAL_NEEDS)
    .keyed(&["arrive"])
    .optional(1),
    InstrRow::new(
        "mbarrier",
        "`mbarrier.arrive.expect_tx{.release|.relaxed}{.scope}{.space}.b64 d, [a], bytes`",
        "expects bytes, then arrives",
        ARRIVE,
        COUNT,
        |e, c| {
            arrive(
                e,
                c,
                &ArrivalVariant {
                    bytes: true,
                    ..ArrivalVariant::default()
                },
            )
        },
    )
    .needs(BYTES_NEEDS)
    .keyed(&["arrive", "expect_tx"]),
    InstrRow::new(
        "mbarrier",
        "`mbarrier.arrive.noComplete{.release}{.cta}{.shared::cta}.b64 d, [a], count`",
        "arrives; if this completes the phase, the behaviour is undefined",
        ARRIVE,
        COUNT,
        |e, c| {
            arrive(
                e,
                c,
                &ArrivalVariant {
                    incomplete: true,
                    ..ArrivalVariant::default()
                },
            )
        },
    )
    .needs(ARRIVAL_NEEDS)
    .keyed(&["arrive", "noComplete"]),
    InstrRow::new(
        "mbarrier",
        "`mbarrier.arrive_drop{.release|.relaxed}{.scope}{.space}.b64 d, [a]{, count}`",
        "arrives, and later phases expect that many arrivals fewer",
        ARRIVE,
        COUNT,
        |e, c| {
            arrive(
                e,
                c,
                &ArrivalVariant {
                    leaves: true,
                    ..ArrivalVariant::default()
                },
            )
        },
    )
    .needs(ARRIVAL_NEEDS)
    .keyed(&["arrive_drop"])
    .optional(1),
    InstrRow::new(
        "mbarrier",
        "`mbarrier.arrive_drop.expect_tx{.release|.relaxed}{.scope}{.space}.b64 d, [a], bytes`",
        "expects bytes, then arrives, and later phases expect one arrival fewer",
        ARRIVE,
        COUNT,
        |e, c| {
            arrive(
                e,
                c,
                &ArrivalVariant {
                    leaves: true,
                    bytes: true,
                    ..ArrivalVariant::default()
                },
            )
        },
    )
    .needs(BYTES_NEEDS)
    .keyed(&["arrive_drop", "expect_tx"]),
    InstrRow::new(
        "mbarrier",
        "`mbarrier.arrive_drop.noComplete{.release}{.cta}{.shared::cta}.b64 d, [a], count`",
        "as `mbarrier.arrive_drop`; if this completes the phase, the behaviour is undefined",
        ARRIVE,
        COUNT,
        |e, c| {
            arrive(
                e,
                c,
                &ArrivalVariant {
                    leaves: true,
                    incomplete: true,
                    ..ArrivalVariant::default()
                },
            )
        },
    )
    .needs(ARRIVAL_NEEDS)
    .keyed(&["arrive_drop", "noComplete"]),
    InstrRow::new(
        "mbarrier",
        "`mbarrier.expect_tx{.relaxed}{.scope}{.space}.b64 [a], bytes`",
        "adds a number of bytes to those that the current phase expects",
        BYTES,
        &[OperandRole::Addr, OperandRole::Loose],
        |e, c| bytes(e, c, 1),
    )
    .needs(&[Need::always((8, 0), 90)])
    .keyed(&["expect_tx"]),
    InstrRow::new(
        "mbarrier",
        "`mbarrier.complete_tx{.relaxed}{.scope}{.space}.b64 [a], bytes`",
        "counts a number of bytes as arrived, as if a copy had brought them",
        BYTES,
        &[OperandRole::Addr, OperandRole::Loose],
        |e, c| bytes(e, c, -1),
    )
    .needs(&[Need::always((8, 0), 90)])
    .keyed(&["complete_tx"]),
    InstrRow::new(
        "mbarrier",
        "`mbarrier.test_wait{.acquire|.relaxed}{.scope}{.shared::cta}.b64 p, [a], token`",
        "whether the phase of an arrival is complete",
        WAIT,
        TEST,
        |e, c| test(e, c, false),
    )
    .needs(&[
        Need::always((7, 0), 80),
        Need::of(&["acquire"], (8, 0), 80),
        Need::of(&["relaxed"], (8, 6), 90),
    ])
    .keyed(&["test_wait"])
    .result(ResultTy::Pred),
    InstrRow::new(
        "mbarrier",
        "`mbarrier.test_wait.parity{.acquire|.relaxed}{.scope}{.shared::cta}.b64 p, [a], parity`",
        "whether the phase of that parity is complete",
        WAIT,
        TEST,
        |e, c| test(e, c, true),
    )
    .needs(&[
        Need::always((7, 1), 80),
        Need::of(&["acquire"], (8, 0), 80),
        Need::of(&["relaxed"], (8, 6), 90),
    ])
    .keyed(&["test_wait", "parity"])
    .result(ResultTy::Pred),
    InstrRow::new(
        "mbarrier",
        "`mbarrier.try_wait{.acquire|.relaxed}{.scope}{.shared::cta}.b64 p, [a], token{, time}`",
        "as `mbarrier.test_wait`",
        WAIT,
        TRY,
        |e, c| test(e, c, false),
    )
    .needs(TRY_NEEDS)
    .keyed(&["try_wait"])
    .optional(1)
    .result(ResultTy::Pred),
    InstrRow::new(
        "mbarrier",
        "`mbarrier.try_wait.parity{.acquire|.relaxed}{.scope}{.shared::cta}.b64 p, [a], \
         parity{, time}`",
        "as `mbarrier.test_wait.parity`",
        WAIT,
        TRY,
        |e, c| test(e, c, true),
    )
    .needs(TRY_NEEDS)
    .keyed(&["try_wait", "parity"])
    .optional(1)
    .result(ResultTy::Pred),
    InstrRow::new(
        "mbarrier",
        "`mbarrier.wait{.acquire|.relaxed}{.scope}{.shared::cta}{.b64} [a], parity`",
        "waits for the phase of that parity; short for a loop around `mbarrier.try_wait.parity`",
        WAIT,
        &[OperandRole::Addr, OperandRole::Loose],
        wait,
    )
    .needs(&[Need::always((7, 0), 80)])
    .keyed(&["wait"]),
    InstrRow::new(
        "fence",
        "`fence.mbarrier_init.release.cluster`",
        "releases the thread's earlier `mbarrier.init`, and no other access",
        &[
            QualGroup {
                kind: QualKind::Sem,
                words: &["release"],
            },
            SCOPES,
        ],
        &[],
        |e, c| match (c.quals.get(QualKind::Sem), c.quals.scope()) {
            (Some("release"), Some(Scope::Cluster)) => {
                e.push(Op::fence(
                    Tags::of(&[Tag::MbarrierInit, Tag::Generic]),
                    Some(Scope::Cluster),
                ));
            }
            _ => e.error(
                "missing-scope",
                c.opcode.clone(),
                "`fence.mbarrier_init` has one form",
                |d| d.label(format!("expected the form {}", c.row.syntax)),
            ),
        },
    )
    .needs(&[Need::always((8, 0), 90)])
    .keyed(&["mbarrier_init"]),
    InstrRow::new(
        "mapa",
        "`mapa{.shared::cluster}{.u32|.u64} d, a, rank`",
        "the address of the copy of `a` in another CTA of the cluster",
        &[
            QualGroup {
                kind: QualKind::Space,
                words: &["shared::cluster"],
            },
            QualGroup {
                kind: QualKind::Type,
                words: &["u32", "u64"],
            },
        ],
        &[OperandRole::Dst, OperandRole::Loose, OperandRole::Loose],
        mapa,
    )
    .needs(&[Need::always((7, 8), 90)]),
    InstrRow::new(
        "getctarank",
        "`getctarank{.shared::cluster}{.u32|.u64} d, a`",
        "the rank in the cluster of the CTA with `a` in its shared memory: the thread's own CTA, \
        if the address was not mapped",
        &[
            QualGroup {
                kind: QualKind::Space,
                words: &["shared::cluster"],
            },
            QualGroup {
                kind: QualKind::Type,
                words: &["u32", "u64"],
            },
        ],
        &[OperandRole::Dst, OperandRole::Loose],
        |e, c| {
            if shared_object(e, c).is_none() {
                return;
            }
            let Some(own) = e.env.cluster.iter().position(|away| *away == 0) else {
                return e.error(
                    "unsupported-instruction",
                    c.opcode.clone(),
                    "the cluster is not known here",
                    |d| d.label("expected it in the code of a kernel"),
                );
            };
            if let Some(dst) = c.dst(0) {
                e.push(Op::Assign {
                    dst,
                    value: Expr::Const(own as i64),
                });
            }
        },
    )
    .needs(&[Need::always((7, 8), 90)])
    .result(ResultTy::U32),
];

/// What an operation is, besides what it does to the word.
struct MbarrierOp {
    /// The order of its write half.
    order: Tag,
    /// The object must be in the thread's own CTA.
    own: bool,
    /// The index of the address operand.
    at: usize,
    /// The tag by which models recognise it.
    role: Option<Tag>,
    /// The object's address, if it differs from the operand.
    address: Option<Expr>,
    /// It happens when copies are complete; the thread does not perform it.
    asynchronous: bool,
    /// It happens when products of tensor cores are complete.
    of_cores: bool,
}

impl MbarrierOp {
    /// The access of one half. Only the write half has a role.
    fn half(&self, order: Tag, role: Option<Tag>, scope: Option<Scope>) -> Access {
        let mut tags = Tags::of(&[Tag::Generic, Tag::Atomic, Tag::Rmw, Tag::Mbarrier, order]);
        role.into_iter().for_each(|role| tags.insert(role));
        if self.asynchronous {
            tags.insert(Tag::Asynchronous);
        }
        if self.of_cores {
            tags.insert(Tag::TensorCore);
        }
        if self.own && role.is_none() {
            tags.insert(Tag::OwnCta);
        }
        Access {
            tags,
            scope,
            ty: object::WORD,
        }
    }

    /// An operation of the thread, at its first operand, without a role.
    const fn of(order: Tag) -> MbarrierOp {
        MbarrierOp {
            order,
            own: false,
            at: 0,
            role: None,
            address: None,
            asynchronous: false,
            of_cores: false,
        }
    }
}

/// The variants of an arrival.
#[derive(Default)]
struct ArrivalVariant {
    /// The operand is a number of bytes, which the arrival first adds to the expected bytes.
    bytes: bool,
    /// It reduces the arrivals that later phases expect.
    leaves: bool,
    /// It must not complete the phase.
    incomplete: bool,
}

fn dead(old: &Expr) -> Expr {
    Expr::Cmp(
        CmpOp::Eq,
        Ty::WORD,
        object::live(old.clone()).into(),
        Expr::Const(0).into(),
    )
}

/// A read-modify-write of the word at operand `what.at`. It is undefined unless `ok` holds for the
/// old word.
fn operation(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    what: &MbarrierOp,
    operand: &Expr,
    ok: impl Fn(&Expr) -> Expr,
    new: impl Fn(Expr) -> Expr,
) -> Option<RegId> {
    let old = attempt(e, c, what, operand, &ok, new)?;
    misused_unless(e, ok(&Expr::Reg(old)));
    Some(old)
}

/// A read-modify-write that only writes if `writes` holds for the old word.
fn attempt(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    what: &MbarrierOp,
    operand: &Expr,
    writes: impl Fn(&Expr) -> Expr,
    new: impl Fn(Expr) -> Expr,
) -> Option<RegId> {
    let scope = if what.asynchronous {
        Scope::Cluster
    } else {
        scope(e, c)?
    };
    is_object(e, c, what.at)?;
    let addr = what.address.clone().unwrap_or_else(|| c.expr(what.at));
    let most = if c.quals.contains("expect_tx") || c.quals.contains("complete_tx") {
        MOST_BYTES
    } else {
        MOST_ARRIVALS
    };
    let counted = match operand {
        Expr::Const(_) => addr,
        // A count too large for the word must not lead to a verdict, so it makes the access one
        // outside all memory.
        operand => {
            let most = Expr::Cmp(
                CmpOp::Le,
                Ty::U64,
                operand.clone().into(),
                Expr::Const(most).into(),
            );
            Expr::Select(most.into(), addr.into(), Expr::Const(0).into())
        }
    };
    let scope = match what.order {
        Tag::Weak => None,
        _ => Some(scope),
    };
    let old = e.temporary(c, &format!("mbarrier {}", e.here()), object::WORD)?;
    let word = Expr::Reg(old);
    let update = Update::When {
        cond: writes(&word),
        new: new(word),
    };
    let read = what.half(
        if what.order == Tag::Weak {
            Tag::Weak
        } else {
            Tag::Relaxed
        },
        None,
        scope,
    );
    let write = what.half(what.order, what.role, scope);
    e.push(Op::Rmw {
        dst: Some(old),
        addr: counted,
        update,
        read,
        write,
    });
    Some(old)
}

/// Unless the condition holds, the thread ends and the program is undefined.
pub(super) fn misused_unless(e: &mut Emit<'_, '_>, ok: Expr) {
    let skip = e.here();
    e.jump(ok, skip + 3);
    e.push(Op::fence(Tags::of(&[Tag::Misuse]), None));
    e.leave();
}

/// Adds one to the arrivals that the current phase expects.
fn expect_one_more(e: &mut Emit<'_, '_>, c: &PtxInstr, by_thread: &MbarrierOp) -> Option<RegId> {
    operation(
        e,
        c,
        by_thread,
        &Expr::Const(1),
        |old| {
            let room = Expr::Cmp(
                CmpOp::Lt,
                Ty::WORD,
                object::pending(old.clone()).into(),
                Expr::Const(MOST_ARRIVALS).into(),
            );
            object::both(object::live(old.clone()), room)
        },
        |old| object::arrive(old, Expr::Const(-1)),
    )
}

/// Makes an object track the thread's copies: an arrival follows when they are complete. `adds`:
/// the current phase expects one more arrival.
pub(super) fn track(e: &mut Emit<'_, '_>, c: &PtxInstr, adds: bool) {
    let by_thread = MbarrierOp {
        own: true,
        ..MbarrierOp::of(Tag::Weak)
    };
    if adds && expect_one_more(e, c, &by_thread).is_none() {
        return;
    }
    let later = MbarrierOp {
        order: Tag::Relaxed,
        role: Some(Tag::MbarrierArrive),
        asynchronous: true,
        ..by_thread
    };
    arrive_later(e, c, &later);
}

/// `tcgen05.commit`: an arrival follows when the thread's products so far are complete.
pub(super) fn commit(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let words: Vec<&str> = c.quals.all(QualKind::Ignored).collect();
    if !words.contains(&"mbarrier::arrive::one") {
        let message = "a commit needs its arrival";
        return e.error("missing-qualifier", c.opcode.clone(), message, |d| {
            d.label(format!("expected the form {}", c.row.syntax))
        });
    }
    let later = MbarrierOp {
        role: Some(Tag::MbarrierArrive),
        asynchronous: true,
        of_cores: true,
        ..MbarrierOp::of(Tag::Relaxed)
    };
    arrive_later(e, c, &later);
}

/// An arrival at the end of asynchronous operations.
fn arrive_later(e: &mut Emit<'_, '_>, c: &PtxInstr, later: &MbarrierOp) {
    signal(
        e,
        c,
        later,
        &Expr::Const(1),
        |old: &Expr| {
            object::both(
                object::live(old.clone()),
                object::within(Expr::Const(1), object::pending(old.clone())),
            )
        },
        |old| object::settled(object::arrive(old, Expr::Const(1))),
    );
}

/// Subtracts the bytes of a complete copy from the object at `address`; `at` is the object's
/// operand.
pub(super) fn complete(e: &mut Emit<'_, '_>, c: &PtxInstr, at: usize, address: Expr, bytes: i64) {
    let bytes = Expr::Const(bytes);
    let what = MbarrierOp {
        at,
        role: Some(Tag::MbarrierBytes),
        address: Some(address),
        asynchronous: true,
        ..MbarrierOp::of(Tag::Relaxed)
    };
    signal(
        e,
        c,
        &what,
        &bytes,
        |old: &Expr| {
            object::both(
                object::live(old.clone()),
                object::in_range(old.clone(), bytes.clone(), -1),
            )
        },
        |old| object::settled(object::expect(old, bytes.clone(), -1)),
    );
}

/// The operation on an mbarrier object at the end of an asynchronous operation. The thread does not
/// wait for it.
fn signal(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    what: &MbarrierOp,
    operand: &Expr,
    ok: impl Fn(&Expr) -> Expr,
    new: impl Fn(Expr) -> Expr,
) {
    let Some(old) = attempt(e, c, what, operand, &ok, new) else {
        return;
    };
    let skip = e.here();
    e.jump(ok(&Expr::Reg(old)), skip + 2);
    e.push(Op::fence(Tags::of(&[Tag::Asynchronous, Tag::Misuse]), None));
}

fn arrive(e: &mut Emit<'_, '_>, c: &PtxInstr, how: &ArrivalVariant) {
    let remote = c.quals.get(QualKind::Space) == Some("shared::cluster");
    let order = if c.quals.get(QualKind::Sem) == Some("relaxed") {
        Tag::Relaxed
    } else {
        Tag::Release
    };
    if let (true, Some(_)) = (remote, c.dst(0)) {
        e.error(
            "wrong-operand",
            c.opcode.clone(),
            "an arrival at `.shared::cluster` returns nothing",
            |d| d.label("expected `_` in the place of its result (PTX ISA, mbarrier.arrive)"),
        );
        return;
    }
    if how.incomplete
        && (remote || order == Tag::Relaxed || !matches!(c.quals.scope(), None | Some(Scope::Cta)))
    {
        e.error(
            "conflicting-qualifiers",
            c.opcode.clone(),
            "`.noComplete` goes with `.release.cta` alone",
            |d| d.label(format!("expected the form {}", c.row.syntax)),
        );
        return;
    }
    let most = if how.bytes { MOST_BYTES } else { MOST_ARRIVALS };
    let operand = c.given(2).unwrap_or(Expr::Const(1));
    let Some(operand) = counted(e, c, operand, most) else {
        return;
    };
    let counts = ArrivalCounts::of(how, &operand);
    // With `.shared::cta`, or with a token as its result, the operation needs an object of its own
    // CTA.
    let own = matches!(c.quals.get(QualKind::Space), Some("shared" | "shared::cta"))
        || c.dst(0).is_some();
    let what = MbarrierOp {
        own,
        at: 1,
        role: Some(Tag::MbarrierArrive),
        ..MbarrierOp::of(order)
    };
    let Some(old) = operation(
        e,
        c,
        &what,
        &operand,
        |old| counts.defined(how, old),
        |old| object::settled(counts.arrived(how, old)),
    ) else {
        return;
    };
    if let Some(dst) = c.dst(0) {
        e.push(Op::Assign {
            dst,
            value: object::token(Expr::Reg(old), c.expr(1)),
        });
    }
}

/// The numbers that an arrival counts.
struct ArrivalCounts {
    /// Arrivals.
    count: Expr,
    /// Bytes to expect before the arrival; `None` if the variant has none.
    more: Option<Expr>,
}

impl ArrivalCounts {
    fn of(how: &ArrivalVariant, operand: &Expr) -> ArrivalCounts {
        if how.bytes {
            ArrivalCounts {
                count: Expr::Const(1),
                more: Some(operand.clone()),
            }
        } else {
            ArrivalCounts {
                count: operand.clone(),
                more: None,
            }
        }
    }

    /// The word after the arrival.
    fn arrived(&self, how: &ArrivalVariant, old: Expr) -> Expr {
        let word = match &self.more {
            Some(bytes) => object::expect(old, bytes.clone(), 1),
            None => old,
        };
        let word = if how.leaves {
            object::drop(word, self.count.clone())
        } else {
            word
        };
        object::arrive(word, self.count.clone())
    }

    /// Whether the arrival is defined for a word.
    fn defined(&self, how: &ArrivalVariant, old: &Expr) -> Expr {
        let mut ok = object::both(
            object::live(old.clone()),
            object::within(self.count.clone(), object::pending(old.clone())),
        );
        if let Some(bytes) = &self.more {
            ok = object::both(ok, object::in_range(old.clone(), bytes.clone(), 1));
        }
        if how.leaves {
            ok = object::both(ok, self.is_below(object::expected(old.clone())));
        }
        if how.incomplete {
            ok = object::both(ok, self.is_below(object::pending(old.clone())));
        }
        ok
    }

    fn is_below(&self, limit: Expr) -> Expr {
        Expr::Cmp(CmpOp::Lt, Ty::WORD, self.count.clone().into(), limit.into())
    }
}

fn bytes(e: &mut Emit<'_, '_>, c: &PtxInstr, sign: i64) {
    let Some(operand) = counted(e, c, c.expr(1), MOST_BYTES) else {
        return;
    };
    let own = matches!(c.quals.get(QualKind::Space), Some("shared" | "shared::cta"));
    let what = MbarrierOp {
        own,
        ..MbarrierOp::of(Tag::Relaxed)
    };
    operation(
        e,
        c,
        &what,
        &operand,
        |old| {
            object::both(
                object::live(old.clone()),
                object::in_range(old.clone(), operand.clone(), sign),
            )
        },
        |old| object::settled(object::expect(old, operand.clone(), sign)),
    );
}

/// A question about the phase of an object.
struct PhaseQuery {
    /// The parity of the phase, or the token of an arrival in it.
    phase: Expr,
    parity: bool,
    addr: Expr,
}

impl PhaseQuery {
    fn is_complete(&self, old: &Expr) -> Expr {
        let passed = if self.parity {
            object::has_passed_parity(old.clone(), self.phase.clone())
        } else {
            object::has_passed(old.clone(), self.phase.clone())
        };
        object::both(object::live(old.clone()), passed)
    }

    fn is_defined(&self, old: &Expr) -> Expr {
        let live = object::live(old.clone());
        let valid = match (&self.phase, self.parity) {
            (Expr::Const(_), true) => return live,
            (phase, true) => Expr::Cmp(
                CmpOp::Le,
                Ty::U64,
                phase.clone().into(),
                Expr::Const(1).into(),
            ),
            (phase, false) => object::is_token(old.clone(), phase.clone(), self.addr.clone()),
        };
        object::both(live, valid)
    }
}

/// Reads the word for a test or wait. Returns the old word, whether the phase is complete, and
/// whether the operation is defined.
fn look(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    at: usize,
    parity: bool,
) -> Option<(RegId, Expr, Expr)> {
    let phase = c.expr(at + 1);
    if let (true, Expr::Const(n)) = (parity, &phase)
        && !matches!(n, 0 | 1)
    {
        e.error(
            "out-of-range",
            c.opcode.clone(),
            format!("a phase has no parity {n}"),
            |d| d.label("expected 0 or 1"),
        );
        return None;
    }
    let query = PhaseQuery {
        phase,
        parity,
        addr: c.expr(at),
    };
    let order = if c.quals.get(QualKind::Sem) == Some("relaxed") {
        Tag::Relaxed
    } else {
        Tag::Acquire
    };
    let what = MbarrierOp {
        own: true,
        at,
        role: Some(Tag::MbarrierWait),
        ..MbarrierOp::of(order)
    };
    let old = attempt(
        e,
        c,
        &what,
        &Expr::Const(0),
        |old| object::both(query.is_complete(old), query.is_defined(old)),
        |old| old,
    )?;
    let old_word = Expr::Reg(old);
    Some((
        old,
        query.is_complete(&old_word),
        query.is_defined(&old_word),
    ))
}

fn test(e: &mut Emit<'_, '_>, c: &PtxInstr, parity: bool) {
    let Some((_, done, may)) = look(e, c, 1, parity) else {
        return;
    };
    misused_unless(e, may);
    if let Some(dst) = c.dst(0) {
        e.push(Op::Assign { dst, value: done });
    }
}

fn wait(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let head = e.here();
    let Some((_, done, may)) = look(e, c, 0, true) else {
        return;
    };
    misused_unless(e, may);
    let again = Expr::Cmp(CmpOp::Eq, Ty::WORD, done.into(), Expr::Const(0).into());
    e.jump(again, head);
}

/// Checks a constant count or number of bytes against its range.
fn counted(e: &mut Emit<'_, '_>, c: &PtxInstr, operand: Expr, most: i64) -> Option<Expr> {
    let least = i64::from(most == MOST_ARRIVALS);
    if let Expr::Const(n) = operand
        && !(least..=most).contains(&n)
    {
        let what = if most == MOST_ARRIVALS {
            "arrivals"
        } else {
            "bytes"
        };
        e.error(
            "out-of-range",
            c.opcode.clone(),
            format!("an mbarrier object cannot count {n} {what}"),
            |d| d.label(format!("expected {least} to {most}")),
        );
        return None;
    }
    Some(operand)
}

/// The scope; order and scope must be given together.
fn scope(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Option<Scope> {
    match (c.quals.place(QualKind::Sem), c.quals.scope()) {
        (Some(place), None) => {
            e.error("missing-scope", place, "an order needs a scope", |d| {
                d.label("expected `.cta` or `.cluster` behind it")
            });
            None
        }
        (None, Some(_)) => {
            let place = c.quals.place(QualKind::Scope).unwrap_or_default();
            e.error("missing-order", place, "a scope needs an order", |d| {
                d.label(format!("expected the form {}", c.row.syntax))
            });
            None
        }
        (_, scope) => Some(scope.unwrap_or(Scope::Cta)),
    }
}

/// Reports an operation on memory that is not an mbarrier object.
pub(super) fn is_object(e: &mut Emit<'_, '_>, c: &PtxInstr, at: usize) -> Option<()> {
    // Memory becomes an mbarrier object when operations reach it through a register.
    let Some(loc) = c.expr(at).base().filter(|_| !c.is_found(at)) else {
        return Some(());
    };
    let (id, declared) = e.symbols.object(loc);
    if declared.class == Some(program::Class::Mbarrier) || declared.cut || declared.fields.is_some()
    {
        return Some(());
    }
    let symbol = e.symbols.get(id);
    let (name, place) = (symbol.name.clone(), symbol.span);
    e.error(
        "no-mbarrier",
        c.opcode.clone(),
        format!("`{name}` is not an mbarrier object"),
        |d| {
            d.label("expected one").also(place, "declared here").help(format!(
            "declare it with `{name} = {{ type = \"mbarrier\", init = 1, space = \"shared\" \
             }}`, without `init` if the code makes the object"
        ))
        },
    );
    None
}

/// The location in shared memory that operand 1 points into.
fn shared_object(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Option<LocId> {
    let Some(loc) = c.expr(1).base() else {
        e.ask();
        let message = format!(
            "`{}` of an address that is not known is not supported",
            c.row.opcode
        );
        e.error("wrong-operand", c.opcode.clone(), message, |d| {
            d.label(
                "expected a location in shared memory, or a register that holds the same \
                 address of one on every way here",
            )
        });
        return None;
    };
    let name = e.symbols.get(loc).name.clone();
    if e.symbols.object(loc).1.space != program::Space::Shared {
        e.error(
            "wrong-space",
            c.opcode.clone(),
            format!("`{name}` is not in shared memory"),
            |d| d.label("expected a location of which each CTA has a copy"),
        );
        return None;
    }
    Some(loc)
}

fn mapa(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let Some(loc) = shared_object(e, c) else {
        return;
    };
    if !matches!(c.expr(2), Expr::Const(_)) {
        e.ask();
    }
    let value = match c.expr(2) {
        Expr::Const(rank) => of_rank(e, c, loc, c.expr(1), rank),
        rank => Some(of_some_rank(
            &e.env.cluster,
            &rank,
            &c.expr(1),
            stride(e.symbols, loc),
        )),
    };
    if let (Some(value), Some(dst)) = (value, c.dst(0)) {
        e.push(Op::Assign { dst, value });
    }
}

/// The address in another CTA's copy of `loc`, at the same offset as `address`. `rank` is the CTA's
/// rank in the cluster.
pub(super) fn of_rank(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    loc: LocId,
    address: Expr,
    rank: i64,
) -> Option<Expr> {
    let Some(away) = usize::try_from(rank)
        .ok()
        .and_then(|rank| e.env.cluster.get(rank))
        .copied()
    else {
        let count = e.env.cluster.len();
        e.error(
            "out-of-range",
            c.opcode.clone(),
            format!("the cluster has no CTA of rank {rank}"),
            |d| {
                d.label(format!(
                    "expected a rank below {count}: CTAs are counted in the order of their numbers"
                ))
            },
        );
        return None;
    };
    Some(away_by(address, away * stride(e.symbols, loc)))
}

/// The distance in bytes between the copies of a location in shared memory.
pub(crate) fn stride(symbols: &Symbols, loc: LocId) -> i64 {
    program::memory::stride(symbols.layout(loc).bytes(symbols.object(loc).1.init.len()))
}

/// The address `bytes` after another one.
pub(crate) fn away_by(address: Expr, bytes: i64) -> Expr {
    match bytes {
        0 => address,
        bytes => Expr::Bin(
            program::BinOp::Add,
            Ty::U64,
            address.into(),
            Expr::Const(bytes).into(),
        ),
    }
}

/// The address in the copy of the CTA with a computed rank. If the cluster does not have that CTA,
/// the address is outside all memory.
pub(crate) fn of_some_rank(cluster: &[i64], rank: &Expr, address: &Expr, stride: i64) -> Expr {
    cluster
        .iter()
        .enumerate()
        .rev()
        .fold(Expr::Const(0), |otherwise, (of, away)| {
            let meant = Expr::Cmp(
                CmpOp::Eq,
                Ty::U32,
                rank.clone().into(),
                Expr::Const(of as i64).into(),
            );
            Expr::Select(
                meant.into(),
                away_by(address.clone(), away * stride).into(),
                otherwise.into(),
            )
        })
}
