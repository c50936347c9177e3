//! Lists and lowers the functions of sub-groups that need not be reached by all work-items.
//!
//! # Invariants
//! - The work-items that run together at a call exchange values: all of the sub-group where no
//!   branch stands before the place, elsewhere any set of those that reach it.
//! - The value of a work-item that does not come, or does not exist, is unknown.
//!
//! # Sources
//! - OpenCL C 3.1, *Sub-group Rotation*, *General Purpose Shuffle*, *Relative Shuffle*, *Ballot*,
//!   *Non-Uniform Vote*, *Non-Uniform Arithmetic* and *Clustered Reduction Functions*. The text
//!   names active work-items, and does not define which are.
//!
//! # Where we differ
//! - A sub-group has at most 32 work-items here.

use super::ast::Expr as Tree;
use super::calls::{Does, FunctionRow, In, ONE, Role};
use super::function::Args;
use super::lanes::{Handed, NamedLane, combined_within};
use super::lower::Lowering;
use super::types::Value;
use crate::isa::ptx::{LaneSet, both, equal};
use program::{BinOp, Expr, Op, Scope, Ty};

impl NamedLane {
    /// The number of the named work-item, which may not exist. `most`: the maximum size.
    fn number(self, own: u32, most: i64, operand: Expr) -> Expr {
        let (own, most) = (Expr::Const(own.into()), Expr::Const(most));
        let bin = |op, a: Expr, b: Expr| Expr::Bin(op, Ty::WORD, a.into(), b.into());
        match self {
            NamedLane::Index => operand,
            NamedLane::Xor => bin(BinOp::Xor, own, operand),
            NamedLane::Up => bin(BinOp::Sub, own, operand),
            NamedLane::Down => bin(BinOp::Add, own, operand),
            NamedLane::Rotated => {
                let by = bin(BinOp::Rem, operand, most.clone());
                let sum = bin(BinOp::Add, bin(BinOp::Add, own, by), most.clone());
                bin(BinOp::Rem, sum, most)
            }
        }
    }
}

const fn row(name: &'static str, handed: Handed, args: &'static [Role]) -> FunctionRow {
    FunctionRow {
        name,
        dialects: In::OpenCl,
        does: Does::HandActive(handed),
        args,
        fixed: None,
        words: None,
    }
}

const fn reduce(name: &'static str, op: BinOp) -> FunctionRow {
    row(name, Handed::Reduced(op), ONE)
}

const fn exclusive(name: &'static str, op: BinOp) -> FunctionRow {
    row(name, Handed::Before(op), ONE)
}

const fn inclusive(name: &'static str, op: BinOp) -> FunctionRow {
    row(name, Handed::UpTo(op), ONE)
}

const fn clustered(name: &'static str, op: BinOp) -> FunctionRow {
    row(name, Handed::Clustered(op), &[Role::Val, Role::Width])
}

const fn shuffle(name: &'static str, named: NamedLane) -> FunctionRow {
    row(name, Handed::Named(named), &[Role::Val, Role::Lane])
}

/// The functions.
pub(super) const ROWS: &[FunctionRow] = &[
    shuffle("sub_group_shuffle", NamedLane::Index),
    shuffle("sub_group_shuffle_xor", NamedLane::Xor),
    shuffle("sub_group_shuffle_up", NamedLane::Up),
    shuffle("sub_group_shuffle_down", NamedLane::Down),
    shuffle("sub_group_rotate", NamedLane::Rotated),
    row(
        "sub_group_non_uniform_broadcast",
        Handed::Broadcast,
        &[Role::Val, Role::Lane],
    ),
    row("sub_group_broadcast_first", Handed::First, ONE),
    row("__sub_group_elect", Handed::Elected, ONE),
    row("__sub_group_ballot", Handed::Ballot, ONE),
    row("__sub_group_inverse_ballot", Handed::OwnBit, ONE),
    clustered("sub_group_clustered_reduce_add", BinOp::Add),
    clustered("sub_group_clustered_reduce_min", BinOp::Min),
    clustered("sub_group_clustered_reduce_max", BinOp::Max),
    clustered("sub_group_clustered_reduce_and", BinOp::And),
    clustered("sub_group_clustered_reduce_or", BinOp::Or),
    clustered("sub_group_clustered_reduce_xor", BinOp::Xor),
    row("sub_group_non_uniform_all", Handed::All, ONE),
    row("sub_group_non_uniform_any", Handed::Any, ONE),
    row("sub_group_non_uniform_all_equal", Handed::Equal, ONE),
    reduce("sub_group_non_uniform_reduce_add", BinOp::Add),
    reduce("sub_group_non_uniform_reduce_min", BinOp::Min),
    reduce("sub_group_non_uniform_reduce_max", BinOp::Max),
    reduce("sub_group_non_uniform_reduce_and", BinOp::And),
    reduce("sub_group_non_uniform_reduce_or", BinOp::Or),
    reduce("sub_group_non_uniform_reduce_xor", BinOp::Xor),
    exclusive("sub_group_non_uniform_scan_exclusive_add", BinOp::Add),
    exclusive("sub_group_non_uniform_scan_exclusive_min", BinOp::Min),
    exclusive("sub_group_non_uniform_scan_exclusive_max", BinOp::Max),
    inclusive("sub_group_non_uniform_scan_inclusive_add", BinOp::Add),
    inclusive("sub_group_non_uniform_scan_inclusive_min", BinOp::Min),
    inclusive("sub_group_non_uniform_scan_inclusive_max", BinOp::Max),
];

impl Lowering<'_, '_> {
    /// Passes a value to the work-items of the sub-group that run together.
    pub(super) fn hands_active(
        &mut self,
        handed: Handed,
        tree: &Tree,
        mut args: Args,
    ) -> Option<Value> {
        let together = self.lanes_together(&tree.range)?;
        args.lanes = Some(self.lanes_of(together));
        self.hands(handed, Scope::Warp, tree, args)
    }

    /// The bit of this work-item in a set, which is the same for all of them, or undefined.
    pub(super) fn own_bit(&mut self, lanes: &LaneSet, brought: Expr, ty: Ty) -> Expr {
        let all = lanes.possible();
        let met = self.brings(lanes, brought, ty, Expr::Const(1), &all);
        self.misused_unless(met.same(ty));
        let own = Expr::Const(lanes.seat.rank.into());
        let bit = Expr::Bin(BinOp::Shr, Ty::U32, met.own().into(), own.into());
        Expr::Bin(BinOp::And, Ty::U32, bit.into(), Expr::Const(1).into())
    }

    /// The values of this work-item's cluster, combined. A cluster larger than a sub-group is
    /// undefined.
    pub(super) fn clustered(
        &mut self,
        op: BinOp,
        width: i64,
        lanes: &LaneSet,
        brought: Expr,
        ty: Ty,
    ) -> Expr {
        let all = lanes.possible();
        let met = self.brings(lanes, brought, ty, Expr::Const(1), &all);
        if width > self.max_sub_group_size(lanes) {
            self.misused_unless(Expr::Const(0));
        }
        let width = width as u32;
        let first = lanes.seat.rank / width * width;
        combined_within(&met, op, ty, first..first + width)
    }

    /// The maximum size of a sub-group.
    pub(super) fn max_sub_group_size(&self, lanes: &LaneSet) -> i64 {
        let mut sizes = self.env.specials.iter();
        let most = sizes.find(|s| s.0 == "get_max_sub_group_size");
        most.map_or(i64::from(lanes.seat.of), |size| size.1)
    }

    /// The value of the work-item that this one names.
    pub(super) fn named_value(
        &mut self,
        named: NamedLane,
        operand: Expr,
        lanes: &LaneSet,
        brought: Expr,
        ty: Ty,
    ) -> Expr {
        let all = lanes.possible();
        let operand = Expr::Cast(Ty::WORD, operand.into());
        if named == NamedLane::Rotated {
            let distances = self.brings(lanes, operand.clone(), Ty::WORD, Expr::Const(1), &all);
            self.misused_unless(distances.same(Ty::WORD));
        }
        let most = self.max_sub_group_size(lanes);
        let number = self.temporary(Ty::WORD);
        let value = named.number(lanes.seat.rank, most, operand);
        self.push(Op::Assign { dst: number, value });
        let met = self.brings(lanes, brought, ty, Expr::Const(1), &all);
        let mut chosen = Expr::unknown(ty);
        for (rank, value) in met.taken {
            let is = equal(Ty::WORD, &[Expr::Reg(number), Expr::Const(rank.into())]);
            let is = both(met.lanes.has(rank), is);
            chosen = Expr::Select(is.into(), value.into(), chosen.into());
        }
        chosen
    }
}
