//! Lowers the functions that exchange values among the threads of a group.
//!
//! These are `__shfl_sync` and similar functions, votes, matches and reductions, and the collective
//! functions of work-groups and sub-groups.
//!
//! # Sources
//! - CUDA C++ Programming Guide, *Warp Shuffle Functions*, *Warp Vote Functions*, *Warp Match
//!   Functions*, *Warp Reduce Functions*: they do not imply a memory barrier. In PTX they are
//!   `shfl.sync`, `vote.sync`, `match.sync` and `redux.sync`.
//! - CUDA C++ Programming Guide, *Warp Shuffle Functions*: threads that have exited are not missed,
//!   but a value taken from one is undefined. *Cooperative Groups*, *Group Collectives*: all
//!   threads of a tile or a coalesced group take part.
//! - OpenCL C, *Work-group Collective Functions*, *Sub-group Functions*: all work-items of the
//!   group must reach them. The text calls none of them a barrier.
//!
//! # Where we differ
//! - The width of a section is a constant.
//! - A group has at most 64 threads.

use std::ops::Range;

use super::ast::Expr as Tree;
use super::function::Args;
use super::lower::Lowering;
use super::types::{Type, Value};
use crate::isa::ptx::{LaneSet, LaneValues, ShuffleMode, ShuffleSources, both, equal, fold};
use program::{ATTENDED, Attendance, BinOp, CmpOp, Expr, GroupSeat, Op, Scope, Tag, Tags, Ty};

/// The result that a thread computes from the values of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handed {
    /// The value of another lane.
    Shuffle(ShuffleMode),
    /// Whether the value is not 0 in all lanes.
    All,
    /// Whether the value is not 0 in at least one lane.
    Any,
    /// The lanes in which the value is not 0.
    Ballot,
    /// The lanes with the same value.
    Same,
    /// All values, combined.
    Reduced(BinOp),
    /// The value of the thread that all threads name.
    Broadcast,
    /// The value of the work-item that each names for itself.
    Named(NamedLane),
    /// The value of the first of them.
    First,
    /// Whether this thread is the first of them.
    Elected,
    /// Whether all values are the same.
    Equal,
    /// The bit of this thread in a set of lanes, which all give.
    OwnBit,
    /// The values of its cluster, combined. The width is that of a cluster.
    Clustered(BinOp),
    /// The values of the threads before this one, combined.
    Before(BinOp),
    /// The same, including its own value.
    UpTo(BinOp),
}

/// How a work-item names another one, from its own number and an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamedLane {
    Index,
    Xor,
    Up,
    Down,
    /// Modulo the maximum size of a sub-group; all name the same distance.
    Rotated,
}

impl Lowering<'_, '_> {
    /// The number of lanes in a section of the warp.
    pub(super) fn section(&mut self, tree: &Tree) -> Option<i64> {
        let width = self
            .eval(tree)
            .constant()
            .filter(|n| (1..=32).contains(n) && n.count_ones() == 1);
        if width.is_none() {
            self.error(
                "unsupported-lane",
                &tree.range,
                "only constants are supported here",
                |d| d.label("expected a power of two, at most 32"),
            );
        }
        width
    }

    /// Meets the other threads with a value; the result holds the values of the given ranks.
    pub(super) fn brings(
        &mut self,
        lanes: &LaneSet,
        value: Expr,
        ty: Ty,
        defined: Expr,
        ranks: &[u32],
    ) -> LaneValues {
        // A mask must name its own thread, as in PTX.
        if let Some(itself) = lanes.names_itself() {
            self.misused_unless(itself);
        }
        self.push(lanes.meet(value, defined));
        let taken = ranks
            .iter()
            .map(|rank| {
                let dst = self.temporary(ty);
                self.push(Op::Take {
                    dst,
                    lane: *rank as u8,
                });
                (*rank, Expr::Reg(dst))
            })
            .collect();
        LaneValues {
            lanes: self.those_that_came(lanes),
            taken,
        }
    }

    /// The lanes that came to the last meeting. If all of them have to come, a missing one makes
    /// the program undefined.
    fn those_that_came(&mut self, lanes: &LaneSet) -> LaneSet {
        if !lanes.attendance.spares_ended() {
            return lanes.clone();
        }
        let dst = self.temporary(Ty::WORD);
        self.push(Op::Take {
            dst,
            lane: ATTENDED,
        });
        if lanes.attendance != Attendance::Collective {
            return lanes.that_came(dst);
        }
        let mask = lanes.mask.clone().into();
        self.misused_unless(Expr::Cmp(CmpOp::Eq, Ty::WORD, Expr::Reg(dst).into(), mask));
        lanes.clone()
    }

    /// The lanes that have to come to a meeting of this kind.
    fn attendance(&self, group: Scope, collective: bool) -> Attendance {
        match group {
            Scope::Warp if collective && !self.is_converged() => Attendance::Collective,
            Scope::Warp if self.env.language.cpp && self.may_have_ended() => Attendance::Running,
            _ => Attendance::All,
        }
    }

    /// All threads of a group, which have to come.
    pub(super) fn all_of(&self, group: Scope, seat: GroupSeat) -> LaneSet {
        LaneSet {
            attendance: self.attendance(group, true),
            ..LaneSet::new(group, seat, Expr::Const(-1))
        }
    }

    /// Ends the thread unless a condition holds; the program is then undefined.
    pub(super) fn misused_unless(&mut self, ok: Expr) {
        let skip = self.branch(ok);
        self.push(Op::fence(Tags::of(&[Tag::Misuse]), None));
        self.leave();
        let end = self.code.len();
        self.patch(skip, end);
    }

    /// Passes a value to the threads of a group and combines the values received.
    pub(super) fn hands(
        &mut self,
        handed: Handed,
        group: Scope,
        tree: &Tree,
        args: Args,
    ) -> Option<Value> {
        let value = args.value?;
        let seat = if group == Scope::Warp {
            self.env.warp
        } else {
            self.env.block
        };
        if self.refuse_handing(handed, &value, seat.of, tree) {
            return None;
        }
        let moves = handed.moves();
        let float = matches!(value.ty, Type::Float(_)).then(|| value.ty.clone());
        let lanes = LaneSet {
            attendance: self.attendance(group, args.collective),
            ..LaneSet::new(group, seat, args.lanes.unwrap_or(Expr::Const(-1)))
        };
        let flag = matches!(handed, Handed::All | Handed::Any | Handed::Ballot);
        let (ty, brought) = if flag {
            (Ty::U32, value.is_true())
        } else {
            // Narrow types are promoted.
            let ty = if value.word().bits < 32 {
                Ty::S32
            } else {
                value.word()
            };
            (ty, Expr::Cast(ty, value.expr.clone().into()))
        };
        let lane = args.lane.map_or(Expr::Const(0), |lane| match lane.ty {
            Type::Float(_) => lane.fit(Ty::S32),
            _ => lane.expr,
        });
        let (result, ty) = match handed {
            _ if seat.anywhere => {
                // Whose value it is depends on the thread.
                self.push(lanes.meet(brought, Expr::Const(1)));
                let ty = match handed {
                    Handed::All | Handed::Any => Ty::S32,
                    _ => ty,
                };
                (Expr::unknown(ty), ty)
            }
            // In which order numbers of floating point are combined is left open.
            Handed::Reduced(_) if float.is_some() => {
                self.push(lanes.meet(brought, Expr::Const(1)));
                (Expr::unknown(ty), ty)
            }
            Handed::Shuffle(mode) => {
                let clamp = if mode == ShuffleMode::Up { 0 } else { 31 };
                let section = Expr::Const((32 - args.width.unwrap_or(32)) << 8 | clamp);
                let is_fixed = matches!(lane, Expr::Const(_));
                let shuffled = ShuffleSources::new(mode, lane, section, &lanes);
                let from = shuffled.from.iter().map(|f| f.0).collect();
                // Lanes that meet at one place have code of one length, so each takes as many.
                let taken = match shuffled.is_defined(&lanes) {
                    _ if !is_fixed => lanes.possible(),
                    Expr::Const(0) => Vec::new(),
                    _ => from,
                };
                (self.shuffled(&shuffled, &taken, &lanes, brought, ty), ty)
            }
            Handed::Broadcast => (self.broadcast(lane, &lanes, brought, ty), ty),
            Handed::Named(named) => (self.named_value(named, lane, &lanes, brought, ty), ty),
            Handed::OwnBit => (self.own_bit(&lanes, brought, ty), Ty::S32),
            Handed::Clustered(op) => {
                let width = args.width.unwrap_or(1);
                (self.clustered(op, width, &lanes, brought, ty), ty)
            }
            _ => {
                let all = lanes.possible();
                let met = self.brings(&lanes, brought, ty, Expr::Const(1), &all);
                handed.combined(&met, ty, seat.rank)
            }
        };
        let dst = self.temporary(ty);
        self.push(Op::Assign { dst, value: result });
        let same_type = moves || matches!(handed, Handed::Reduced(_));
        Some(match float.filter(|_| same_type) {
            Some(float) => Value::new(Expr::Reg(dst), float),
            None => Value::of(Expr::Reg(dst), ty),
        })
    }

    /// Reports a value or a group of `size` threads that is not supported; `true` if it is one.
    fn refuse_handing(&mut self, handed: Handed, value: &Value, size: u32, tree: &Tree) -> bool {
        let computes = matches!(
            handed,
            Handed::Before(_)
                | Handed::UpTo(_)
                | Handed::Reduced(_)
                | Handed::Clustered(_)
                | Handed::Equal
                | Handed::OwnBit
        );
        // The sum of a tile is a value that is not worked out.
        let computes = computes && !(self.env.language.cpp && matches!(handed, Handed::Reduced(_)));
        let float = matches!(value.ty, Type::Float(_));
        if float && (computes || (handed.moves() && value.word().bits < 32)) {
            let message = format!("this function of a `{}` is not supported", value.ty.name());
            self.error("unsupported", &tree.range, message, |d| {
                d.label("expected an integer")
                    .note("in which order numbers of floating point are added is left open")
            });
            return true;
        }
        if size > i64::BITS {
            self.error(
                "unsupported-group",
                &tree.range,
                "groups of more than 64 are not supported here",
                |d| d.label(format!("this one has {size}")),
            );
            return true;
        }
        false
    }

    /// The value of the lane that this thread names. The thread takes the values of the lanes
    /// `taken`, among them all that it may name.
    fn shuffled(
        &mut self,
        sources: &ShuffleSources,
        taken: &[u32],
        lanes: &LaneSet,
        brought: Expr,
        ty: Ty,
    ) -> Expr {
        match sources.is_defined(lanes) {
            // The result is never defined, as in PTX.
            Expr::Const(0) => {
                self.brings(lanes, brought, ty, Expr::Const(1), taken);
                Expr::unknown(ty)
            }
            defined => {
                let met = self.brings(lanes, brought, ty, defined, taken);
                if met.lanes.mask != lanes.mask {
                    self.misused_unless(sources.is_defined(&met.lanes));
                }
                let named = |rank: u32| sources.from.iter().any(|from| from.0 == rank);
                let values: Vec<Expr> = met
                    .taken
                    .into_iter()
                    .filter(|of| named(of.0))
                    .map(|of| of.1)
                    .collect();
                sources.chosen(&values)
            }
        }
    }

    /// The value of the lane that all threads name; the program is undefined if they name several.
    fn broadcast(&mut self, lane: Expr, lanes: &LaneSet, brought: Expr, ty: Ty) -> Expr {
        let all = lanes.possible();
        let named = self.brings(lanes, lane, Ty::WORD, Expr::Const(1), &all);
        let arrives = |rank: &u32| both(lanes.has(*rank), names_rank(&named, *rank));
        let some: Vec<Expr> = all.iter().map(arrives).collect();
        let defined = fold(
            BinOp::And,
            Ty::U32,
            &[named.same(Ty::WORD), fold(BinOp::Or, Ty::U32, &some)],
        );
        let met = self.brings(lanes, brought, ty, defined, &all);
        let mut chosen = Expr::Const(0);
        for (rank, value) in met.taken {
            chosen = Expr::Select(names_rank(&named, rank).into(), value.into(), chosen.into());
        }
        chosen
    }
}

/// Whether the lane that a thread names has a rank.
fn names_rank(named: &LaneValues, rank: u32) -> Expr {
    equal(Ty::WORD, &[named.own(), Expr::Const(i64::from(rank))])
}

impl Handed {
    /// The result of a function of the values of all lanes, and its type. `rank`: that of the
    /// thread.
    fn combined(self, met: &LaneValues, ty: Ty, rank: u32) -> (Expr, Ty) {
        match self {
            Handed::All => (met.combined(BinOp::And, Ty::U32), Ty::S32),
            Handed::Any => (met.combined(BinOp::Or, Ty::U32), Ty::S32),
            Handed::Ballot => (met.set(Expr::clone), Ty::U32),
            Handed::Same => {
                let own = met.own();
                let same = met.set(|value| equal(ty, &[value.clone(), own.clone()]));
                (same, Ty::U32)
            }
            Handed::Before(op) if rank == 0 => (Expr::Const(neutral(op, ty)), ty),
            Handed::Before(op) => (combined_below(met, op, ty, rank), ty),
            Handed::UpTo(op) => (combined_below(met, op, ty, rank + 1), ty),
            Handed::Reduced(op) => (met.combined(op, ty), ty),
            Handed::Equal => (met.same(ty), Ty::S32),
            Handed::Elected => (is_first(&met.lanes, rank), Ty::S32),
            Handed::First => (first_value(met), ty),
            Handed::Shuffle(_)
            | Handed::Broadcast
            | Handed::Named(_)
            | Handed::OwnBit
            | Handed::Clustered(_) => unreachable!("they are combined by their own rules"),
        }
    }

    /// Whether the result is the value of one thread.
    fn moves(self) -> bool {
        matches!(
            self,
            Handed::Shuffle(_) | Handed::Broadcast | Handed::Named(_) | Handed::First
        )
    }
}

/// The values of the lanes of a smaller rank, combined.
fn combined_below(met: &LaneValues, op: BinOp, ty: Ty, rank: u32) -> Expr {
    combined_within(met, op, ty, 0..rank)
}

/// The values of the lanes of these ranks, combined.
pub(super) fn combined_within(met: &LaneValues, op: BinOp, ty: Ty, ranks: Range<u32>) -> Expr {
    let values = met.values(&Expr::Const(neutral(op, ty)));
    let those = met.taken.iter().zip(values);
    let those = those.filter(|(taken, _)| ranks.contains(&taken.0));
    fold(op, ty, &those.map(|(_, value)| value).collect::<Vec<_>>())
}

/// Whether no lane of a smaller rank came.
fn is_first(lanes: &LaneSet, rank: u32) -> Expr {
    let below = (0..rank).map(|lower| lanes.has(lower)).collect::<Vec<_>>();
    let some = fold(BinOp::Or, Ty::WORD, &below);
    Expr::Cmp(CmpOp::Eq, Ty::WORD, some.into(), Expr::Const(0).into())
}

/// The value of the lane with the smallest rank among those that came.
fn first_value(met: &LaneValues) -> Expr {
    let lanes = met.taken.iter().rev();
    lanes.fold(met.own(), |other, (rank, value)| {
        let has = met.lanes.has(*rank);
        Expr::Select(has.into(), value.clone().into(), other.into())
    })
}

/// The neutral element of an operation.
fn neutral(op: BinOp, ty: Ty) -> i64 {
    let sign = 1i64 << (ty.bits - 1);
    match op {
        BinOp::Min if ty.signed => sign.wrapping_sub(1),
        BinOp::Min | BinOp::And => ty.wrap(-1),
        BinOp::Max if ty.signed => ty.wrap(sign),
        _ => 0,
    }
}
