//! Values handed from lane to lane of a warp: `__shfl_sync` and its like, votes, matches, reductions.
//!
//! # Sources
//! - CUDA C++ Programming Guide, *Warp Shuffle Functions*, *Warp Vote Functions*, *Warp Match Functions*, *Warp Reduce Functions*:
//!   they do not imply a memory barrier. In PTX they are `shfl.sync`, `vote.sync`, `match.sync` and `redux.sync`.
//!
//! # Where we differ
//! - The mask, the lane and the width are constants.

use super::ast::Expr as Tree;
use super::lower::Lowering;
use super::types::Value;
use crate::isa::ptx::{ShuffleMode, equal, fold, source_lane};
use program::{BinOp, CmpOp, Expr, Op, Ty};

/// What is made of what the lanes bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handed {
    /// The value of another lane.
    Shuffle(ShuffleMode),
    /// Whether it is not 0 in all lanes.
    All,
    /// Whether it is not 0 in some lane.
    Any,
    /// The lanes in which it is not 0.
    Ballot,
    /// The lanes that bring the same.
    Same,
    /// All of them, combined.
    Reduced(BinOp),
}

/// What a call names beside its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    /// The lanes that meet.
    pub(super) lanes: u32,
    /// The lane of a shuffle, or how far away it is.
    pub(super) lane: i64,
    /// The lanes in a section of the warp.
    pub(super) width: i64,
}

impl Lowering<'_, '_> {
    /// A constant that says which lanes.
    pub(super) fn lane_number(&mut self, tree: &Tree, width: bool) -> Option<i64> {
        let value = self.eval(tree).constant();
        let good = |n: &i64| !width || (1..=32).contains(n) && n.count_ones() == 1;
        if let Some(n) = value.filter(good) {
            return Some(n);
        }
        self.error("unsupported-lane", &tree.range, "only constants are supported here", |d| {
            d.label(if width { "expected a power of two, at most 32" } else { "expected the number of a lane" })
        });
        None
    }

    /// Hands a value to the lanes of a warp; what becomes of those that come back.
    pub(super) fn hands(&mut self, handed: Handed, value: &Value, named: Named) -> Value {
        let flag = matches!(handed, Handed::All | Handed::Any | Handed::Ballot);
        let (ty, brought) = if flag {
            (Ty::U32, Expr::Cmp(CmpOp::Ne, value.word(), value.expr.clone().into(), Expr::Const(0).into()))
        } else {
            // Narrow types are promoted.
            let ty = if value.word().bits < 32 { Ty::S32 } else { value.word() };
            (ty, Expr::Cast(ty, value.expr.clone().into()))
        };
        let own = i64::from(self.env.lane);
        let from = match handed {
            Handed::Shuffle(mode) => {
                let clamp = if mode == ShuffleMode::Up { 0 } else { 31 };
                Some(source_lane(mode, own, named.lane, (32 - named.width) << 8 | clamp).0)
            }
            _ => None,
        };
        // What is undefined meets nobody.
        let defined = named.lanes >> own & 1 != 0 && from.is_none_or(|from| named.lanes >> from & 1 != 0);
        self.push(Op::Give { value: brought, lanes: if defined { named.lanes } else { 0 } });
        let all: Vec<i64> = match from {
            Some(from) => vec![from],
            None => (0..32).filter(|lane| named.lanes >> lane & 1 != 0).collect(),
        };
        let mut taken = Vec::new();
        for &lane in &all {
            let dst = self.temporary(ty);
            self.push(Op::Take { dst, lane: lane as u8 });
            taken.push(Expr::Reg(dst));
        }
        let set = |is: &dyn Fn(&Expr) -> Expr| {
            let bit = |(lane, value): (&i64, &Expr)| {
                Expr::Select(is(value).into(), Expr::Const(1 << lane).into(), Expr::Const(0).into())
            };
            fold(BinOp::Or, Ty::U32, &all.iter().zip(&taken).map(bit).collect::<Vec<_>>())
        };
        let (result, ty) = match handed {
            Handed::Shuffle(_) => (taken[0].clone(), ty),
            Handed::All => (fold(BinOp::And, Ty::U32, &taken), Ty::S32),
            Handed::Any => (fold(BinOp::Or, Ty::U32, &taken), Ty::S32),
            Handed::Ballot => (set(&Expr::clone), Ty::U32),
            Handed::Same => {
                let own = all.iter().position(|lane| *lane == own).map_or(Expr::Const(0), |at| taken[at].clone());
                (set(&|value| equal(ty, &[value.clone(), own.clone()])), Ty::U32)
            }
            Handed::Reduced(op) => (fold(op, ty, &taken), ty),
        };
        let dst = self.temporary(ty);
        self.push(Op::Assign { dst, value: result });
        Value::of(Expr::Reg(dst), ty)
    }
}
