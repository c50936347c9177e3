//! Values handed from lane to lane of a warp: `__shfl_sync` and its like, votes, matches, reductions.
//!
//! # Sources
//! - CUDA C++ Programming Guide, *Warp Shuffle Functions*, *Warp Vote Functions*, *Warp Match Functions*, *Warp Reduce Functions*:
//!   they do not imply a memory barrier. In PTX they are `shfl.sync`, `vote.sync`, `match.sync` and `redux.sync`.
//!
//! # Where we differ
//! - The mask and the width are constants.

use super::ast::Expr as Tree;
use super::lower::Lowering;
use super::types::Value;
use crate::isa::ptx::{ShuffleMode, Shuffled, equal, fold, meet};
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
#[derive(Clone, Debug)]
pub(super) struct Named {
    /// The lanes that meet.
    pub(super) lanes: u32,
    /// The lane of a shuffle, or how far away it is.
    pub(super) lane: Expr,
    /// The lanes in a section of the warp.
    pub(super) width: i64,
}

impl Lowering<'_, '_> {
    /// How many lanes are in a section of the warp.
    pub(super) fn section(&mut self, tree: &Tree) -> Option<i64> {
        let width = self.eval(tree).constant().filter(|n| (1..=32).contains(n) && n.count_ones() == 1);
        if width.is_none() {
            self.error("unsupported-lane", &tree.range, "only constants are supported here", |d| {
                d.label("expected a power of two, at most 32")
            });
        }
        width
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
        let shuffled = match handed {
            Handed::Shuffle(mode) => {
                let clamp = if mode == ShuffleMode::Up { 0 } else { 31 };
                let c = (32 - named.width) << 8 | clamp;
                Some(Shuffled::new(mode, self.env.lane, named.lane, c, named.lanes))
            }
            _ => None,
        };
        // What is undefined meets nobody.
        let own_comes = Expr::Const(i64::from(named.lanes >> own & 1));
        let defined = shuffled.as_ref().map_or(own_comes, Shuffled::is_defined);
        for op in meet(brought, named.lanes, defined, self.code.len()) {
            self.push(op);
        }
        let all: Vec<i64> = match &shuffled {
            Some(shuffled) => shuffled.lanes.iter().map(|(lane, _)| i64::from(*lane)).collect(),
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
            Handed::Shuffle(_) => (shuffled.map_or(Expr::Const(0), |s| s.chosen(&taken)), ty),
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
