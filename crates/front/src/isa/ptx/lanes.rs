//! Exchange of values between the lanes of a warp: shuffles, votes, matches, elections, reductions.
//!
//! Each of them is one meeting of the lanes in the mask: each lane gives a value, and computes its
//! result from the others' values. None of them orders accesses to memory.
//!
//! # Sources
//! - PTX ISA 9.4, *shfl.sync*, *vote.sync*, *match.sync*, *elect.sync*, *redux.sync*: the lanes of
//!   the mask wait for each other; the `c` operand determines the lane that a shuffle reads;
//!   undefined cases.
//!
//! # Where we differ
//! - Lanes count as converged from the start, or from a barrier of the whole CTA that no thread can
//!   have missed by its end, to the next label or branch. Elsewhere, `activemask` returns any set
//!   of lanes that reach it, the same set to each of them.
//! - If the mask or the source lane of a shuffle is not constant, a lane takes the values of all
//!   possible lanes and selects one.
//! - A shuffle that reads a lane known to be absent gets an unknown value. If only values decide
//!   that the lane is absent, the reading lane meets no other lane.
//! - A lane outside its mask is undefined: an event `MISUSE`, and its thread ends there. So is a
//!   lane that takes the value of one that has ended; others do not miss that one.

use super::lower::{Emit, PtxArg, PtxInstr};
use super::mbarrier::misused_unless;
use super::needs::{FAMILY_OF_100, Need, TargetFeatures};
use super::table::{InstrRow, OperandRole, QualGroup, QualKind, ResultTy};
use program::{
    ATTENDED, Attendance, BinOp, CmpOp, Expr, FloatOp, Format, GroupSeat, Op, RegId, Scope, Ty,
};

const MODES: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &["up", "down", "bfly", "idx"],
};
const B32: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &["b32"],
};
const PRED: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["pred"],
};
const MATCHED: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &["b32", "b64"],
};
const REDUCED: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &["u32", "s32", "b32"],
};
const REDUCTIONS: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &["add", "min", "max", "and", "or", "xor"],
};
const EXTREMES: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &["min", "max"],
};
const NUMBERS: QualGroup = QualGroup {
    kind: QualKind::Clamp,
    words: &["NaN"],
};
const MAGNITUDES: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["abs"],
};
const SINGLE: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &["f32"],
};
const VOTE: &[OperandRole] = &[OperandRole::Dst, OperandRole::Pred, OperandRole::Loose];
const COMBINED: &[OperandRole] = &[OperandRole::Dst, OperandRole::Val, OperandRole::Loose];

pub(super) const ROWS: &[InstrRow] = &[
    InstrRow::new(
        "shfl",
        "`shfl.sync.{up|down|bfly|idx}.b32 d{|p}, a, b, c, mask`",
        "a value of another lane; orders no accesses",
        &[MODES, B32],
        &[
            OperandRole::DstAndPred,
            OperandRole::Val,
            OperandRole::Loose,
            OperandRole::Loose,
            OperandRole::Loose,
        ],
        shuffle,
    )
    .keyed(&["sync"]),
    InstrRow::new(
        "activemask",
        "`activemask.b32 d`",
        "the converged lanes, as a set of bits: all of the warp before labels and branches, or \
        between these and after a barrier of the CTA; elsewhere outside loops, any of the lanes \
        that reach it",
        &[B32],
        &[OperandRole::Dst],
        |e, c| {
            let threads = e.env.seats.warp_size();
            let all = LaneSet::new(
                Scope::Warp,
                e.env.seats.warp(),
                int(e.env.seats.whole_warp()),
            );
            if threads > 32 {
                return too_many_lanes(e, c);
            }
            if threads == 1 || e.converged || all.seat.anywhere {
                return put(e, c, 0, all.mask);
            }
            let value = int(1 << all.seat.rank);
            e.push(Op::Give {
                value,
                among: Scope::Warp,
                lanes: all.mask.clone(),
                attendance: Attendance::Present,
            });
            if let Some(set) = taken(e, c, all.seat.rank, Ty::U32) {
                put(e, c, 0, Expr::Reg(set));
            }
        },
    )
    .needs(&[Need::always((6, 2), 70)])
    .result(ResultTy::U32),
    InstrRow::new(
        "vote",
        "`vote.sync.all.pred d, {!}a, mask`",
        "whether a predicate holds in every lane",
        &[PRED],
        VOTE,
        |e, c| {
            vote(e, c, |all| all.combined(BinOp::And, Ty::U32));
        },
    )
    .keyed(&["sync", "all"])
    .result(ResultTy::Pred),
    InstrRow::new(
        "vote",
        "`vote.sync.any.pred d, {!}a, mask`",
        "whether a predicate holds in some lane",
        &[PRED],
        VOTE,
        |e, c| {
            vote(e, c, |all| all.combined(BinOp::Or, Ty::U32));
        },
    )
    .keyed(&["sync", "any"])
    .result(ResultTy::Pred),
    InstrRow::new(
        "vote",
        "`vote.sync.uni.pred d, {!}a, mask`",
        "whether a predicate is the same in all lanes",
        &[PRED],
        VOTE,
        |e, c| {
            vote(e, c, |all| all.same(Ty::U32));
        },
    )
    .keyed(&["sync", "uni"])
    .result(ResultTy::Pred),
    InstrRow::new(
        "vote",
        "`vote.sync.ballot.b32 d, {!}a, mask`",
        "the lanes in which a predicate holds, as a set of bits",
        &[B32],
        VOTE,
        |e, c| {
            let Some(met) = met(e, c, 2, c.expr(1), Ty::U32) else {
                return;
            };
            let set = met.set(Expr::clone);
            put(e, c, 0, set);
        },
    )
    .keyed(&["sync", "ballot"])
    .result(ResultTy::U32),
    InstrRow::new(
        "match",
        "`match.any.sync.{b32|b64} d, a, mask`",
        "the lanes that bring the same value as this one, as a set of bits",
        &[MATCHED],
        COMBINED,
        |e, c| {
            let own = e.fit(c.expr(1), c.ty);
            let Some(met) = met(e, c, 2, own, c.ty) else {
                return;
            };
            let own = met.own();
            let set = met.set(|value| equal(c.ty, &[value.clone(), own.clone()]));
            put(e, c, 0, set);
        },
    )
    .keyed(&["sync", "any"])
    .result(ResultTy::U32),
    InstrRow::new(
        "match",
        "`match.all.sync.{b32|b64} d{|p}, a, mask`",
        "the lanes of the mask if all bring the same value, else 0",
        &[MATCHED],
        &[
            OperandRole::DstAndPred,
            OperandRole::Val,
            OperandRole::Loose,
        ],
        |e, c| {
            let own = e.fit(c.expr(1), c.ty);
            let Some(met) = met(e, c, 2, own, c.ty) else {
                return;
            };
            let same = met.same(c.ty);
            put(
                e,
                c,
                0,
                Expr::Select(
                    same.clone().into(),
                    met.lanes.mask.clone().into(),
                    int(0).into(),
                ),
            );
            put(e, c, 1, same);
        },
    )
    .keyed(&["sync", "all"])
    .result(ResultTy::U32),
    InstrRow::new(
        "elect",
        "`elect.sync d{|p}, mask`",
        "one lane of a mask: any, but always the same one for this mask; orders no accesses",
        &[],
        &[OperandRole::DstAndPred, OperandRole::Loose],
        elect,
    )
    .needs(&[Need::always((8, 0), 90)])
    .keyed(&["sync"])
    .result(ResultTy::U32),
    InstrRow::new(
        "redux",
        "`redux.sync.{min|max}{.abs}{.NaN}.f32 d, a, mask`",
        "the smallest or the largest number of all lanes, of magnitudes with `.abs`; with `.NaN`, \
        NaN if a lane has NaN",
        &[EXTREMES, NUMBERS, MAGNITUDES, SINGLE],
        COMBINED,
        |e, c| {
            let operation = match c.quals.get(QualKind::Op) {
                Some("min") => FloatOp::Min,
                Some("max") => FloatOp::Max,
                _ => {
                    return e.error(
                        "missing-operation",
                        c.opcode.clone(),
                        "the type of the number is missing",
                        |d| d.label(format!("expected the form {}", c.row.syntax)),
                    );
                }
            };
            let own = match c.quals.get(QualKind::Ignored) {
                Some(_) => bin(
                    BinOp::And,
                    Ty::U32,
                    c.expr(1),
                    int(!Format::SINGLE.sign() & 0xFFFF_FFFF),
                ),
                None => c.expr(1),
            };
            let own = e.fit(own, c.ty);
            let Some(met) = met(e, c, 2, own, c.ty) else {
                return;
            };
            let extreme =
                |a: Expr, b: Expr| bin(BinOp::Float(operation, Format::SINGLE), c.ty, a, b);
            let values = met.values(&met.own());
            // A NaN result is the canonical one, even of a single lane.
            let all = values.iter().cloned().fold(met.own(), extreme);
            let value = match c.quals.get(QualKind::Clamp) {
                Some(_) => {
                    let none = fold(
                        BinOp::Or,
                        Ty::U32,
                        &values
                            .iter()
                            .map(|v| {
                                bin(
                                    BinOp::Float(FloatOp::Unordered, Format::SINGLE),
                                    c.ty,
                                    v.clone(),
                                    v.clone(),
                                )
                            })
                            .collect::<Vec<_>>(),
                    );
                    Expr::Select(none.into(), int(Format::SINGLE.nan()).into(), all.into())
                }
                None => all,
            };
            put(e, c, 0, value);
        },
    )
    .needs(&[Need::always((8, 6), 100).only(TargetFeatures::Family, FAMILY_OF_100)])
    .keyed(&["sync"])
    .one_of(&["f32"]),
    InstrRow::new(
        "redux",
        "`redux.sync.{add|min|max}.{u32|s32} d, a, mask`, `redux.sync.{and|or|xor}.b32 d, a, mask`",
        "the values of all lanes, combined",
        &[REDUCTIONS, REDUCED],
        COMBINED,
        |e, c| {
            let operation = match c.quals.get(QualKind::Op) {
                Some("min") => BinOp::Min,
                Some("max") => BinOp::Max,
                Some("and") => BinOp::And,
                Some("or") => BinOp::Or,
                Some("xor") => BinOp::Xor,
                _ => BinOp::Add,
            };
            let own = e.fit(c.expr(1), c.ty);
            let Some(met) = met(e, c, 2, own, c.ty) else {
                return;
            };
            put(e, c, 0, met.combined(operation, c.ty));
        },
    )
    .needs(&[Need::always((7, 0), 80)])
    .keyed(&["sync"]),
];

/// The addressing mode of a shuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShuffleMode {
    /// The lane `b` positions below.
    Up,
    /// The lane `b` positions above.
    Down,
    /// The lane with the number of this one exclusive or `b`.
    Bfly,
    /// The lane with number `b`.
    Idx,
}

/// The `c` operand of a shuffle in a whole warp. In mode `idx`, each lane then reads lane `b`.
const WHOLE: i64 = 31;

/// The lane that a shuffle reads, given its operands `b` and `c`, and whether that lane is in
/// bounds. Otherwise the lane reads its own value.
fn source_lane(mode: ShuffleMode, own: i64, b: i64, c: i64) -> (i64, bool) {
    let (b, segment, clamp) = (b & 31, c >> 8 & 31, c & 31);
    let last = (own & segment) | (clamp & !segment);
    let (from, within) = match mode {
        ShuffleMode::Up => (own - b, own - b >= last),
        ShuffleMode::Down => (own + b, own + b <= last),
        ShuffleMode::Bfly => (own ^ b, own ^ b <= last),
        ShuffleMode::Idx => {
            let lane = (own & segment) | (b & !segment);
            (lane, lane <= last)
        }
    };
    (if within { from } else { own }, within)
}

/// The threads of a group that meet, as one of them names them.
#[derive(Clone, Debug)]
pub(in crate::isa) struct LaneSet {
    /// The scope of the group.
    pub(in crate::isa) among: Scope,
    /// The seat in the group of the thread that names them.
    pub(in crate::isa) seat: GroupSeat,
    /// The threads that meet, as a set of bits.
    pub(in crate::isa) mask: Expr,
    /// Which of them have to come.
    pub(in crate::isa) attendance: Attendance,
}

impl LaneSet {
    /// The threads of a group in a mask. Bits for threads that do not exist are ignored.
    pub(in crate::isa) fn new(among: Scope, seat: GroupSeat, mask: Expr) -> LaneSet {
        let mask = match mask {
            Expr::Const(mask) => int(mask & seat.all()),
            mask => bin(BinOp::And, Ty::WORD, mask, int(seat.all())),
        };
        LaneSet {
            among,
            seat,
            mask,
            attendance: Attendance::All,
        }
    }

    /// Those of them that came to their last meeting; `attended` holds that set.
    pub(in crate::isa) fn that_came(&self, attended: RegId) -> LaneSet {
        LaneSet {
            mask: Expr::Reg(attended),
            ..self.clone()
        }
    }

    /// Whether a mask names other lanes although the test does not give the thread's warp, so the
    /// thread is alone in it. A mask of all ones is allowed: it means the whole warp.
    pub(in crate::isa) fn names_strangers(seat: GroupSeat, mask: &Expr) -> bool {
        seat.unsaid
            && !matches!(mask, Expr::Const(mask) if *mask as u32 == u32::MAX || *mask as u32 == 1)
    }

    /// The threads that the mask may name.
    pub(in crate::isa) fn possible(&self) -> Vec<u32> {
        (0..i64::BITS.min(self.seat.of))
            .filter(|rank| !matches!(self.has(*rank), Expr::Const(0)))
            .collect()
    }

    /// Whether the mask names a thread.
    pub(in crate::isa) fn has(&self, rank: u32) -> Expr {
        match &self.mask {
            Expr::Const(mask) => int(mask >> rank & 1),
            mask => {
                let shifted = bin(BinOp::Shr, Ty::WORD, mask.clone(), int(i64::from(rank)));
                bin(BinOp::And, Ty::WORD, shifted, int(1))
            }
        }
    }

    /// Whether the mask names its own thread; `None` if it is constant and names the whole group.
    pub(in crate::isa) fn names_itself(&self) -> Option<Expr> {
        let is_asked = self.mask != int(self.seat.all()) && !self.seat.anywhere;
        is_asked.then(|| self.has(self.seat.rank))
    }

    /// The micro-op by which a thread gives a value. If `defined` is 0, it meets no other thread.
    pub(in crate::isa) fn meet(&self, value: Expr, defined: Expr) -> Op {
        let lanes = match both(self.has(self.seat.rank), defined) {
            _ if self.seat.anywhere => self.mask.clone(),
            Expr::Const(0) => int(0),
            Expr::Const(_) => self.mask.clone(),
            defined => Expr::Select(defined.into(), self.mask.clone().into(), int(0).into()),
        };
        Op::Give {
            value,
            among: self.among,
            lanes,
            attendance: self.attendance,
        }
    }
}

/// The values that threads gave at a meeting, each with its rank.
pub(in crate::isa) struct LaneValues {
    pub(in crate::isa) lanes: LaneSet,
    pub(in crate::isa) taken: Vec<(u32, Expr)>,
}

impl LaneValues {
    /// The value that this thread gave.
    pub(in crate::isa) fn own(&self) -> Expr {
        let own = self.taken.iter().find(|t| t.0 == self.lanes.seat.rank);
        own.map_or(int(0), |t| t.1.clone())
    }

    /// All values; `absent` replaces the values of threads that did not arrive.
    pub(in crate::isa) fn values(&self, absent: &Expr) -> Vec<Expr> {
        self.taken
            .iter()
            .map(|(rank, value): &(u32, Expr)| match self.lanes.has(*rank) {
                Expr::Const(_) => value.clone(),
                has => Expr::Select(has.into(), value.clone().into(), absent.clone().into()),
            })
            .collect()
    }

    /// All values, combined.
    pub(in crate::isa) fn combined(&self, op: BinOp, ty: Ty) -> Expr {
        // If repeating a value changes nothing, this thread's own value replaces the missing ones.
        let counts = matches!(op, BinOp::Add | BinOp::Xor);
        fold(
            op,
            ty,
            &self.values(&if counts { int(0) } else { self.own() }),
        )
    }

    /// Whether all values are equal.
    pub(in crate::isa) fn same(&self, ty: Ty) -> Expr {
        equal(ty, &self.values(&self.own()))
    }

    /// The threads with a value for which `is` holds, as a set of bits.
    pub(in crate::isa) fn set(&self, is: impl Fn(&Expr) -> Expr) -> Expr {
        fold(
            BinOp::Or,
            Ty::WORD,
            &self
                .taken
                .iter()
                .map(|(rank, value): &(u32, Expr)| {
                    let is = both(self.lanes.has(*rank), is(value));
                    Expr::Select(is.into(), int(1 << rank).into(), int(0).into())
                })
                .collect::<Vec<_>>(),
        )
    }
}

/// The source lanes of a shuffle. A selector with 32 values decides among them; sets of its values
/// are bit masks.
pub(in crate::isa) struct ShuffleSources {
    /// The selector: operand `b`, or the source lane if `c` is not constant.
    by: Expr,
    /// The possible values of the selector.
    possible: u32,
    /// The source lanes, each with the selector values that read it.
    pub(in crate::isa) from: Vec<(u32, u32)>,
    /// Whether the named lane is in bounds.
    within: Expr,
}

impl ShuffleSources {
    /// The shuffle of a lane among the meeting lanes; `by` and `c` are its operands.
    pub(in crate::isa) fn new(
        mode: ShuffleMode,
        by: Expr,
        c: Expr,
        lanes: &LaneSet,
    ) -> ShuffleSources {
        match c {
            Expr::Const(c) => ShuffleSources::in_sections(mode, by, c, lanes),
            c => ShuffleSources::computed(mode, by, c, lanes),
        }
    }

    /// A shuffle with a constant `c`.
    fn in_sections(mode: ShuffleMode, by: Expr, c: i64, lanes: &LaneSet) -> ShuffleSources {
        let possible = if let Expr::Const(v) = by {
            1 << (v & 31)
        } else {
            u32::MAX
        };
        let (mut sets, mut within) = ([0u32; 32], 0);
        for b in (0..32).filter(|b| possible >> b & 1 != 0) {
            let (from, is_within) = source_lane(mode, i64::from(lanes.seat.rank), b, c);
            within |= u32::from(is_within) << b;
            sets[from as usize] |= 1 << b;
        }
        let from = lanes
            .possible()
            .into_iter()
            .map(|lane| (lane, sets[lane as usize]))
            .filter(|f| f.1 != 0)
            .collect();
        let mut shuffled = ShuffleSources {
            by,
            possible,
            from,
            within: int(0),
        };
        shuffled.within = shuffled.is_in(within);
        shuffled
    }

    /// A shuffle with a computed `c`: the code computes the source lane as [`source_lane`] does.
    fn computed(mode: ShuffleMode, b: Expr, c: Expr, lanes: &LaneSet) -> ShuffleSources {
        let own = i64::from(lanes.seat.rank);
        let segment = low_bits(bin(BinOp::Shr, Ty::U32, c.clone(), int(8)));
        let rest = bin(BinOp::Xor, Ty::S32, segment.clone(), int(31));
        let last = or32(
            and32(int(own), segment.clone()),
            and32(low_bits(c), rest.clone()),
        );
        let b = low_bits(b);
        let (meant, compare) = match mode {
            ShuffleMode::Up => (bin(BinOp::Sub, Ty::S32, int(own), b.clone()), CmpOp::Ge),
            ShuffleMode::Down => (bin(BinOp::Add, Ty::S32, int(own), b.clone()), CmpOp::Le),
            ShuffleMode::Bfly => (bin(BinOp::Xor, Ty::S32, int(own), b.clone()), CmpOp::Le),
            ShuffleMode::Idx => (
                or32(and32(int(own), segment), and32(b.clone(), rest)),
                CmpOp::Le,
            ),
        };
        let within = Expr::Cmp(compare, Ty::S32, meant.clone().into(), last.into());
        let by = Expr::Select(within.clone().into(), meant.into(), int(own).into());
        // Out of bounds, a lane reads its own value.
        let reads = |lane: &u32| {
            let (lane, other) = (
                i64::from(*lane),
                if let Expr::Const(b) = b {
                    Some(b)
                } else {
                    None
                },
            );
            let reached = match mode {
                ShuffleMode::Up => other.map_or(lane < own, |b| lane == own - b),
                ShuffleMode::Down => other.map_or(lane > own, |b| lane == own + b),
                ShuffleMode::Bfly => other.is_none_or(|b| lane == own ^ b),
                ShuffleMode::Idx => true,
            };
            lane == own || reached
        };
        let from = lanes
            .possible()
            .into_iter()
            .filter(reads)
            .map(|lane| (lane, 1 << lane))
            .collect();
        ShuffleSources {
            by,
            possible: u32::MAX,
            from,
            within,
        }
    }

    /// Whether the selector is in a set.
    fn is_in(&self, set: u32) -> Expr {
        match set & self.possible {
            0 => int(0),
            all if all == self.possible => int(1),
            some => {
                let at = bin(BinOp::And, Ty::U32, self.by.clone(), int(31));
                bin(
                    BinOp::And,
                    Ty::U32,
                    bin(BinOp::Shr, Ty::U32, int(i64::from(some)), at),
                    int(1),
                )
            }
        }
    }

    /// Whether the source lane arrives.
    pub(in crate::isa) fn is_defined(&self, lanes: &LaneSet) -> Expr {
        let (certain, asked): (Vec<_>, Vec<_>) = self
            .from
            .iter()
            .copied()
            .partition(|(lane, _)| matches!(lanes.has(*lane), Expr::Const(_)));
        let certain = self.is_in(certain.iter().fold(0, |all, (_, set)| all | set));
        let asked = asked
            .into_iter()
            .map(|(lane, set)| both(lanes.has(lane), self.is_in(set)));
        asked.fold(certain, |a, b| {
            if a == int(0) {
                b
            } else {
                bin(BinOp::Or, Ty::U32, a, b)
            }
        })
    }

    /// The value of the source lane, among the values taken from all possible ones.
    pub(in crate::isa) fn chosen(&self, taken: &[Expr]) -> Expr {
        let choices = self.from.iter().zip(taken);
        taken.first().map_or(int(0), |first| {
            choices.skip(1).fold(
                first.clone(),
                |other: Expr, ((_, set), value): (&(u32, u32), &Expr)| {
                    Expr::Select(self.is_in(*set).into(), value.clone().into(), other.into())
                },
            )
        })
    }
}

fn and32(a: Expr, b: Expr) -> Expr {
    bin(BinOp::And, Ty::S32, a, b)
}

fn or32(a: Expr, b: Expr) -> Expr {
    bin(BinOp::Or, Ty::S32, a, b)
}

fn low_bits(e: Expr) -> Expr {
    match e {
        Expr::Const(v) => int(v & 31),
        e => and32(e, int(31)),
    }
}

fn int(v: i64) -> Expr {
    Expr::Const(v)
}

fn bin(op: BinOp, ty: Ty, a: Expr, b: Expr) -> Expr {
    Expr::Bin(op, ty, a.into(), b.into())
}

/// Whether two conditions, each 0 or 1, hold.
pub(in crate::isa) fn both(a: Expr, b: Expr) -> Expr {
    match (a, b) {
        (Expr::Const(0), _) | (_, Expr::Const(0)) => int(0),
        (Expr::Const(_), other) | (other, Expr::Const(_)) => other,
        (a, b) => bin(BinOp::And, Ty::U32, a, b),
    }
}

/// All values, combined.
pub(in crate::isa) fn fold(op: BinOp, ty: Ty, all: &[Expr]) -> Expr {
    all.iter()
        .cloned()
        .reduce(|a, b| bin(op, ty, a, b))
        .unwrap_or(int(0))
}

/// Whether all values are equal.
pub(in crate::isa) fn equal(ty: Ty, all: &[Expr]) -> Expr {
    let pairs: Vec<Expr> = all
        .windows(2)
        .map(|w| Expr::Cmp(CmpOp::Eq, ty, w[0].clone().into(), w[1].clone().into()))
        .collect();
    if pairs.is_empty() {
        int(1)
    } else {
        fold(BinOp::And, Ty::U32, &pairs)
    }
}

/// Assigns a value to the destination with that number, if the instruction has it. In code of every
/// thread, it is not known which lanes the value is of.
fn put(e: &mut Emit<'_, '_>, c: &PtxInstr, number: usize, value: Expr) {
    if let Some(PtxArg::Dst(Some(dst))) = c.elements(0).get(number) {
        let value = match e.env.seats.is_anywhere() {
            true => Expr::unknown(Ty::WORD),
            false => value,
        };
        e.push(Op::Assign { dst: *dst, value });
    }
}

/// Messages about a mask that names other lanes although the test does not give the thread's warp.
pub(in crate::isa) const ALONE: &str =
    "this mask can name other lanes, but the thread is alone in its warp";
pub(in crate::isa) const NO_LANES: &str = "the only lane is 0";
pub(in crate::isa) const SAY_WARP: &str =
    "give the threads of one warp `warp = 0`: without it, each thread has a separate warp";

/// The lanes of the warp that a mask operand names.
pub(super) fn named(e: &mut Emit<'_, '_>, c: &PtxInstr, operand: usize) -> Option<LaneSet> {
    let seat = e.env.seats.warp();
    named_from(e, c, operand, seat)
}

/// The same for an instruction whose code is one for all lanes, if the mask names the whole warp.
/// Also returns the number of the thread's lane.
fn named_by_all(e: &mut Emit<'_, '_>, c: &PtxInstr, operand: usize) -> Option<(LaneSet, Expr)> {
    let all = e.env.seats.whole_warp();
    let is_whole = matches!(c.expr(operand), Expr::Const(mask) if mask & all == all);
    match e.env.varying_lane().filter(|_| is_whole) {
        Some(lane) => {
            let seat = e.env.seats.any_of_warp();
            Some((named_from(e, c, operand, seat)?, lane))
        }
        None => {
            let lanes = named(e, c, operand)?;
            let lane = int(i64::from(lanes.seat.rank));
            Some((lanes, lane))
        }
    }
}

/// The lanes that a mask operand names, seen from a seat in the warp.
fn named_from(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    operand: usize,
    seat: GroupSeat,
) -> Option<LaneSet> {
    let threads = e.env.seats.warp_size();
    if threads > 32 {
        too_many_lanes(e, c);
        return None;
    }
    if LaneSet::names_strangers(seat, &c.expr(operand)) {
        e.error("unplaced-lanes", c.opcode.clone(), ALONE, |d| {
            d.label(NO_LANES).help(SAY_WARP)
        });
        return None;
    }
    let mut lanes = LaneSet::new(Scope::Warp, seat, c.expr(operand));
    if e.may_have_ended {
        lanes.attendance = Attendance::Running;
    }
    if lanes.mask == int(0) {
        e.error(
            "unsupported-mask",
            c.opcode.clone(),
            "this mask names no thread of the warp",
            |d| {
                d.label(format!(
                    "the lanes of this warp are 0 to {}",
                    threads.saturating_sub(1)
                ))
            },
        );
        return None;
    }
    Some(lanes)
}

fn too_many_lanes(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let threads = e.env.seats.warp_size();
    e.error(
        "unsupported-mask",
        c.opcode.clone(),
        "a warp has at most 32 lanes",
        |d| d.label(format!("this one has {threads}")),
    );
}

/// Gives a value to the lanes in a mask operand, and returns the values of all.
fn met(e: &mut Emit<'_, '_>, c: &PtxInstr, mask: usize, value: Expr, ty: Ty) -> Option<LaneValues> {
    let lanes = named(e, c, mask)?;
    meet(e, c, lanes, value, ty)
}

/// A lane that its own mask does not name ends its thread, and the program is undefined.
fn among_them(e: &mut Emit<'_, '_>, lanes: &LaneSet) {
    if let Some(itself) = lanes.names_itself() {
        misused_unless(e, itself);
    }
}

/// Gives a value to the lanes, and returns the values of all.
fn meet(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    lanes: LaneSet,
    value: Expr,
    ty: Ty,
) -> Option<LaneValues> {
    among_them(e, &lanes);
    e.push(lanes.meet(value, int(1)));
    let met = take(e, c, lanes, ty)?;
    let lanes = those_that_came(e, c, &met.lanes)?;
    Some(LaneValues { lanes, ..met })
}

/// The lanes that came to the thread's last meeting: those of the mask, if none can have ended.
fn those_that_came(e: &mut Emit<'_, '_>, c: &PtxInstr, lanes: &LaneSet) -> Option<LaneSet> {
    if !lanes.attendance.spares_ended() {
        return Some(lanes.clone());
    }
    let attended = taken(e, c, u32::from(ATTENDED), Ty::WORD)?;
    Some(lanes.that_came(attended))
}

/// Takes the values of all lanes from the thread's last meeting.
fn take(e: &mut Emit<'_, '_>, c: &PtxInstr, lanes: LaneSet, ty: Ty) -> Option<LaneValues> {
    let mut all = Vec::new();
    let taken_from = match lanes.seat.anywhere {
        true => Vec::new(),
        false => lanes.possible(),
    };
    for lane in taken_from {
        all.push((lane, Expr::Reg(taken(e, c, lane, ty)?)));
    }
    Some(LaneValues { lanes, taken: all })
}

/// Combines the values from the thread's last meeting into the destination.
pub(super) fn combine(e: &mut Emit<'_, '_>, c: &PtxInstr, lanes: LaneSet, operation: BinOp) {
    let Some(met) = take(e, c, lanes, Ty::U32) else {
        return;
    };
    put(e, c, 0, met.combined(operation, Ty::U32));
}

/// Takes the value of one lane into a hidden register.
pub(super) fn taken(e: &mut Emit<'_, '_>, c: &PtxInstr, lane: u32, ty: Ty) -> Option<RegId> {
    let dst = e.temporary(c, &format!("lane {lane}"), ty)?;
    e.push(Op::Take {
        dst,
        lane: lane as u8,
    });
    Some(dst)
}

/// The prefix of the hidden registers that hold the elected lane of each mask, throughout a
/// thread's code.
pub(crate) const ELECTED: &str = "elected ";

/// Elects a lane. Each lane chooses freely whether to volunteer; the first volunteer is elected, or
/// else the first lane. A hidden register keeps the result for each mask, so later elections agree.
fn elect(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let Expr::Const(mask) = c.expr(1) else {
        return e.error(
            "unsupported-mask",
            c.opcode.clone(),
            "the mask of an election is not a constant",
            |d| d.label("expected a constant: one mask always elects the same lane"),
        );
    };
    let Some((lanes, own)) = named_by_all(e, c, 1) else {
        return;
    };
    let [Some(elected), Some(would)] = [format!("{ELECTED}{:x}", mask as u32), "would".to_owned()]
        .map(|name| e.temporary(c, &name, Ty::U32))
    else {
        return;
    };
    e.push(if lanes.possible().len() > 1 {
        Op::Choice {
            dst: would,
            spurious: false,
        }
    } else {
        Op::Assign {
            dst: would,
            value: int(1),
        }
    });
    let Some(met) = meet(e, c, lanes, Expr::Reg(would), Ty::U32) else {
        return;
    };
    // Lanes count from 1; 0 means that no lane is elected yet.
    fn lane_or(later: Expr, lane: u32, when: Expr) -> Expr {
        match when {
            Expr::Const(0) => later,
            Expr::Const(_) => lane_number(lane),
            when => Expr::Select(when.into(), lane_number(lane).into(), later.into()),
        }
    }
    let lanes = || met.taken.iter().rev();
    let first = lanes().fold(int(0), |later, (lane, _)| {
        lane_or(later, *lane, met.lanes.has(*lane))
    });
    let chosen = lanes().fold(first, |later, (lane, would)| {
        lane_or(later, *lane, both(met.lanes.has(*lane), would.clone()))
    });
    let value = Expr::Select(
        Expr::Reg(elected).into(),
        Expr::Reg(elected).into(),
        chosen.into(),
    );
    e.push(Op::Assign {
        dst: elected,
        value,
    });
    let lane = bin(BinOp::Sub, Ty::U32, Expr::Reg(elected), int(1));
    put(e, c, 0, lane.clone());
    put(
        e,
        c,
        1,
        Expr::Cmp(CmpOp::Eq, Ty::U32, lane.into(), own.into()),
    );
}

fn lane_number(lane: u32) -> Expr {
    int(i64::from(lane) + 1)
}

fn vote(e: &mut Emit<'_, '_>, c: &PtxInstr, combine: fn(&LaneValues) -> Expr) {
    let Some(met) = met(e, c, 2, c.expr(1), Ty::U32) else {
        return;
    };
    put(e, c, 0, combine(&met));
}

fn shuffle(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    // The bounds may be a constant in a register.
    let sections = c.expr(3);
    if !matches!(sections, Expr::Const(_)) {
        e.ask();
    }
    let mode = match c.quals.get(QualKind::Op) {
        Some("up") => ShuffleMode::Up,
        Some("down") => ShuffleMode::Down,
        Some("bfly") => ShuffleMode::Bfly,
        Some(_) => ShuffleMode::Idx,
        None => {
            return e.error(
                "unknown-instruction",
                c.opcode.clone(),
                "a shuffle needs a mode",
                |d| d.label(format!("expected the form {}", c.row.syntax)),
            );
        }
    };
    let value = e.fit(c.expr(1), c.ty);
    let of_all = mode == ShuffleMode::Idx && sections == int(WHOLE);
    let lanes = match of_all {
        true => named_by_all(e, c, 4).map(|(lanes, _)| lanes),
        false => named(e, c, 4),
    };
    let Some(lanes) = lanes else { return };
    if lanes.seat.anywhere {
        e.push(lanes.meet(value, int(1)));
        put(e, c, 1, int(0));
        return put(e, c, 0, int(0));
    }
    let shuffled = ShuffleSources::new(mode, c.expr(2), sections, &lanes);
    let defined = shuffled.is_defined(&lanes);
    among_them(e, &lanes);
    if defined == int(0) {
        // The source lane never arrives, so the result is unknown. The meeting still happens,
        // because other lanes may read this lane's value.
        e.push(lanes.meet(value, int(1)));
        put(e, c, 1, shuffled.within.clone());
        return put(e, c, 0, Expr::unknown(c.ty));
    }
    e.push(lanes.meet(value, defined));
    let Some(came) = those_that_came(e, c, &lanes) else {
        return;
    };
    if came.mask != lanes.mask {
        misused_unless(e, shuffled.is_defined(&came));
    }
    let mut all = Vec::new();
    for &(lane, _) in &shuffled.from {
        all.push(Expr::Reg(match taken(e, c, lane, c.ty) {
            Some(taken) => taken,
            None => return,
        }));
    }
    // Write the predicate first: the value may overwrite the register that selects the lane.
    put(e, c, 1, shuffled.within.clone());
    put(e, c, 0, shuffled.chosen(&all));
}
