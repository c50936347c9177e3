//! Which registers are needed where.
//!
//! # Invariants
//! - A register is needed where its value can change what the thread does: an access, a fence, a barrier, or which of them come.
//!   What only computes values that nobody needs, and a branch that only chooses between such computations, need nothing.

use std::collections::BTreeSet;

use super::{BinOp, Expr, Op, Thread, Update};

/// Registers needed before each instruction (and at the end), by backward data flow. `observed` tells which are needed at the
/// end.
pub fn live_registers(thread: &Thread, observed: &[bool]) -> Vec<Vec<bool>> {
    let n = thread.code.len();
    let idle: Vec<Option<Idle>> = (0..n).map(|pc| Idle::at(thread, pc)).collect();
    let mut live = vec![vec![false; thread.regs.len()]; n];
    live.push(observed.to_vec());
    loop {
        let mut changed = false;
        for pc in (0..n).rev() {
            let mut here = live[pc + 1].clone();
            let op = &thread.code[pc].op;
            if let Some(target) = op.target() {
                for (h, t) in here.iter_mut().zip(&live[target]) {
                    *h |= t;
                }
            }
            let needed = match op {
                Op::Assign { dst, value } => here[dst.0 as usize] || may_fail(value),
                _ => !idle[pc].as_ref().is_some_and(|idle| idle.assigned.iter().all(|&d| !live[idle.end][d])),
            };
            if let Some(d) = op.defines() {
                here[d.0 as usize] = false;
            }
            // The operands of such an update see the value read in `dst`.
            let own = match op {
                Op::Rmw { dst, update: Update::When { .. }, .. } => *dst,
                _ => None,
            };
            if needed {
                op.operands().iter().for_each(|e| e.registers(&mut |r| here[r.0 as usize] |= Some(r) != own));
            }
            if let Some(addr) = op.address() {
                addr.registers(&mut |r| here[r.0 as usize] = true);
            }
            if here != live[pc] {
                live[pc] = here;
                changed = true;
            }
        }
        if !changed {
            return live;
        }
    }
}

/// What a branch chooses between: assignments alone, behind which its ways meet.
struct Idle {
    /// Where they meet.
    end: usize,
    /// The registers that are assigned on some way.
    assigned: BTreeSet<usize>,
}

impl Idle {
    fn at(thread: &Thread, pc: usize) -> Option<Idle> {
        let mut end = thread.code[pc].op.target().filter(|&target| target > pc)?;
        let mut assigned = BTreeSet::new();
        let mut at = pc + 1;
        while at < end {
            match &thread.code[at].op {
                Op::Assign { dst, value } if !may_fail(value) => drop(assigned.insert(usize::from(dst.0))),
                Op::Branch { target, .. } if *target > at => end = end.max(*target),
                _ => return None,
            }
            at += 1;
        }
        Some(Idle { end, assigned })
    }
}

/// Whether computing it can be an error of its own.
fn may_fail(value: &Expr) -> bool {
    match value {
        Expr::Bin(BinOp::Div | BinOp::Rem, ..) => true,
        Expr::Bin(_, _, a, b) | Expr::Cmp(_, _, a, b) => may_fail(a) || may_fail(b),
        Expr::Cast(_, a) => may_fail(a),
        Expr::Select(c, a, b) => may_fail(c) || may_fail(a) || may_fail(b),
        Expr::Const(_) | Expr::Reg(_) | Expr::Address(_) => false,
    }
}
