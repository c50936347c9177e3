//! Lowers `__activemask()` and coalesced groups: the lanes of a warp that execute a place together.
//!
//! The lanes are all of the warp where no branch stands between the place and the start or a
//! barrier of the block. Elsewhere, each set of lanes that reach the place may run together, as
//! `activemask` of PTX has it here. A coalesced group keeps its set in a register.
//!
//! # Sources
//! - CUDA C++ Programming Guide, *Warp Vote Functions*: `__activemask`; *Cooperative Groups*,
//!   *Coalesced Groups*.
//! - `cooperative_groups.h` of CUDA: ranks count the lanes of the group from the lowest. `shfl_up`
//!   and `shfl_down` return the own value where the group has no such rank; `ballot` and
//!   `match_any` return sets of ranks.
//!
//! # Where we differ
//! - A rank that the group does not have is the rank of no thread: `shfl` of it is undefined.

use std::ops::Range;

use super::lower::Lowering;
use super::scope::{GroupLanes, ThreadGroup};
use super::types::Value;
use crate::isa::ptx::ShuffleMode;
use program::{Attendance, BarrierAction, BinOp, CmpOp, Expr, Instr, Op, Scope, Ty};

/// The number of lanes of a warp.
const LANES: i64 = 32;

/// Up to this number of lanes, a barrier of a coalesced group is one for each set of them.
const MOST_LISTED: u32 = 5;

impl Lowering<'_, '_> {
    /// Whether all lanes of the warp that take part in the block run together here: no branch
    /// stands between this place and the start, or a barrier of the block that none can have
    /// missed.
    pub(super) fn is_converged(&self) -> bool {
        fn gathers(instr: &Instr) -> bool {
            let barrier = instr.op.barrier();
            barrier.is_some_and(|b| b.is_aligned() && b.action == BarrierAction::Sync)
        }
        for instr in self.code.iter().rev() {
            if matches!(instr.op, Op::Branch { .. }) {
                return false;
            }
            if gathers(instr) {
                return !self.may_have_ended();
            }
        }
        // In the body of a loop, a branch behind this place may lead to it.
        !self.is_in_loop()
    }

    /// The lanes that run together here, as a set of bits.
    pub(super) fn lanes_together(&mut self, range: &Range<usize>) -> Option<GroupLanes> {
        let warp = self.env.warp;
        if i64::from(warp.of) > LANES {
            self.error(
                "unsupported-mask",
                range,
                "a warp has at most 32 lanes",
                |d| d.label(format!("this one has {}", warp.of)),
            );
            return None;
        }
        if warp.of == 1 || self.is_converged() {
            return Some(GroupLanes::All);
        }
        self.push(Op::Give {
            value: Expr::Const(1 << warp.rank),
            among: Scope::Warp,
            lanes: Expr::Const(warp.all()),
            attendance: Attendance::Present,
        });
        let dst = self.temporary(Ty::U32);
        self.push(Op::Take {
            dst,
            lane: warp.rank as u8,
        });
        Some(GroupLanes::In(dst))
    }

    /// `__activemask()`.
    pub(super) fn active_mask(&mut self, range: &Range<usize>) -> Value {
        let lanes = self.lanes_together(range).unwrap_or(GroupLanes::All);
        Value::of(self.lanes_of(lanes), Ty::U32)
    }

    /// The set of bits of a group's lanes.
    pub(super) fn lanes_of(&self, lanes: GroupLanes) -> Expr {
        match lanes {
            GroupLanes::All => Expr::Const(self.env.warp.all()),
            GroupLanes::Some(mask) => Expr::Const(i64::from(mask)),
            GroupLanes::In(reg) => Expr::Reg(reg),
        }
    }

    /// `cg::coalesced_threads()`.
    pub(super) fn coalesced(&mut self, range: &Range<usize>) -> ThreadGroup {
        ThreadGroup {
            domain: Scope::Warp,
            lanes: self.lanes_together(range).unwrap_or(GroupLanes::All),
            size: LANES as u32,
            coalesced: true,
            of_block: false,
        }
    }

    /// The sets that the lanes of a group may be, if the code does not fix them and they are few.
    pub(super) fn possible_lanes(&self, group: ThreadGroup) -> Vec<u32> {
        let warp = self.env.warp;
        let open = matches!(group.lanes, GroupLanes::In(_)) && warp.of <= MOST_LISTED;
        let all = 0..1u32 << warp.of.min(MOST_LISTED);
        all.filter(|set| open && set >> warp.rank & 1 != 0)
            .collect()
    }

    /// By lane of the warp: the number of lanes of a group below it; at the end, the size of the
    /// group.
    pub(super) fn ranks(&mut self, lanes: GroupLanes) -> Vec<Expr> {
        let mask = self.lanes_of(lanes);
        let mut below = vec![Expr::Const(0)];
        for lane in 0..self.env.warp.of {
            let last = below.last().cloned().unwrap_or(Expr::Const(0));
            let next = match (bit(&mask, lane), last) {
                (Expr::Const(has), Expr::Const(last)) => Expr::Const(last + has),
                (has, last) => {
                    let dst = self.temporary(Ty::U32);
                    let value = bin(BinOp::Add, last, has);
                    self.push(Op::Assign { dst, value });
                    Expr::Reg(dst)
                }
            };
            below.push(next);
        }
        below
    }

    /// The lane with a rank in a group; `none` if the group has no such rank.
    fn lane_of_rank(&mut self, lanes: GroupLanes, rank: &Expr, none: i64) -> Expr {
        let mask = self.lanes_of(lanes);
        let ranks = self.ranks(lanes);
        let mut found = Expr::Const(none);
        for lane in 0..self.env.warp.of {
            let at = &ranks[lane as usize];
            let number = Expr::Const(i64::from(lane));
            found = match (bit(&mask, lane), at, rank) {
                (Expr::Const(0), ..) => found,
                (Expr::Const(_), Expr::Const(at), Expr::Const(rank)) => {
                    if at == rank {
                        number
                    } else {
                        found
                    }
                }
                (has, at, rank) => {
                    let is = Expr::Cmp(CmpOp::Eq, Ty::S32, at.clone().into(), rank.clone().into());
                    let is = bin(BinOp::And, has, is);
                    Expr::Select(is.into(), number.into(), found.into())
                }
            };
        }
        found
    }

    /// The source lane of a shuffle in a coalesced group.
    pub(super) fn source_in_group(
        &mut self,
        group: ThreadGroup,
        mode: ShuffleMode,
        by: Value,
    ) -> Value {
        let own = i64::from(self.env.warp.rank);
        let by = by.fit(Ty::S32);
        let rank = self.ranks(group.lanes)[self.env.warp.rank as usize].clone();
        let lane = match mode {
            ShuffleMode::Up => {
                let rank = moved(BinOp::Sub, rank, by);
                self.lane_of_rank(group.lanes, &rank, own)
            }
            ShuffleMode::Down => {
                let rank = moved(BinOp::Add, rank, by);
                self.lane_of_rank(group.lanes, &rank, own)
            }
            ShuffleMode::Idx | ShuffleMode::Bfly => self.lane_of_rank(group.lanes, &by, LANES - 1),
        };
        Value::of(lane, Ty::S32)
    }

    /// A set of lanes as a set of ranks in a group.
    pub(super) fn as_ranks(&mut self, group: ThreadGroup, set: Expr) -> Value {
        let mask = self.lanes_of(group.lanes);
        let ranks = self.ranks(group.lanes);
        let mut packed = Expr::Const(0);
        for lane in 0..self.env.warp.of {
            if bit(&mask, lane) == Expr::Const(0) {
                continue;
            }
            let placed = bin(BinOp::Shl, bit(&set, lane), ranks[lane as usize].clone());
            packed = match packed {
                Expr::Const(0) => placed,
                packed => bin(BinOp::Or, packed, placed),
            };
        }
        Value::of(packed, Ty::U32)
    }
}

/// The sum or difference of two ranks.
fn moved(op: BinOp, rank: Expr, by: Expr) -> Expr {
    match (&rank, &by) {
        (Expr::Const(a), Expr::Const(b)) => Expr::Const(op.apply(Ty::S32, *a, *b)),
        _ => Expr::Bin(op, Ty::S32, rank.into(), by.into()),
    }
}

/// Whether a set has a lane: 0 or 1.
fn bit(set: &Expr, lane: u32) -> Expr {
    match set {
        Expr::Const(set) => Expr::Const(set >> lane & 1),
        set => {
            let shifted = bin(BinOp::Shr, set.clone(), Expr::Const(i64::from(lane)));
            bin(BinOp::And, shifted, Expr::Const(1))
        }
    }
}

fn bin(op: BinOp, a: Expr, b: Expr) -> Expr {
    Expr::Bin(op, Ty::U32, a.into(), b.into())
}
