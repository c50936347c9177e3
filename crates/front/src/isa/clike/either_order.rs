//! Evaluates two operands in either order, where the language leaves their order open.
//!
//! # Invariants
//! - An operand that acts makes one access, or calls one function. No part of the other operand
//!   comes in between (ISO C++17, intro.execution, paragraph 11).
//! - If the other operand only reads plainly, none of its reads synchronises. So all of them stand
//!   before the access, or behind it.
//! - No operand writes a variable.
//! - Each execution chooses one order.
//!
//! # Sources
//! - C11, 6.5, paragraph 3, and 6.5.2.2, paragraph 10; ISO C++17, intro.execution.

use super::ast::{Expr as Tree, ExprKind};
use super::lower::Lowering;
use super::types::Value;
use program::{Expr, Op, RegId, Ty};

impl Lowering<'_, '_> {
    /// Evaluates two operands in either order. `None`: the order makes no difference, or the
    /// language admits more than two orders.
    pub(super) fn in_either_order(&mut self, a: &Tree, b: &Tree) -> Option<(Value, Value)> {
        let (of_a, of_b) = (self.effects(a), self.effects(b));
        let open = self.env.strict && of_a.acts_beside(&of_b);
        if !open || of_a.writes_variables() || of_b.writes_variables() {
            return None;
        }
        let single = |tree: &Tree, of: &super::effects::Effects| !of.acts() || self.is_single(tree);
        if !single(a, &of_a) || !single(b, &of_b) {
            return None;
        }
        let (first, second) = (self.temporary(Ty::WORD), self.temporary(Ty::WORD));
        let dst = self.temporary(Ty::U32);
        self.push(Op::Choice {
            dst,
            spurious: false,
        });
        let skip = self.branch(Expr::Reg(dst));
        let left = self.kept_in(first, a);
        let right = self.kept_in(second, b);
        let over = self.branch(Expr::Const(1));
        let middle = self.code.len();
        self.patch(skip, middle);
        self.kept_in(second, b);
        self.kept_in(first, a);
        let end = self.code.len();
        self.patch(over, end);
        Some((left, right))
    }

    /// Evaluates an operand into a register.
    fn kept_in(&mut self, dst: RegId, tree: &Tree) -> Value {
        let value = self.scalar(tree);
        self.push(Op::Assign {
            dst,
            value: value.expr.clone(),
        });
        Value {
            expr: Expr::Reg(dst),
            ..value
        }
    }

    /// Whether an operand with an effect makes one access, or calls one function.
    fn is_single(&self, tree: &Tree) -> bool {
        let quiet = |tree: &Tree| !self.effects(tree).any();
        match &tree.kind {
            ExprKind::Neg(a)
            | ExprKind::Plus(a)
            | ExprKind::Cast(_, a)
            | ExprKind::Not(a)
            | ExprKind::Complement(a) => self.is_single(a),
            ExprKind::Bin(_, a, b) | ExprKind::Cmp(_, a, b) => {
                (quiet(a) && self.is_single(b)) || (self.is_single(a) && quiet(b))
            }
            ExprKind::Call(_, args) => args.iter().all(quiet),
            ExprKind::Method(object, _, args) => {
                !self.effects_of_place(object).any() && args.iter().all(quiet)
            }
            ExprKind::Name => true,
            ExprKind::Deref(_) | ExprKind::Index(..) | ExprKind::Field(..) => {
                !self.effects_of_place(tree).any()
            }
            _ => false,
        }
    }
}
