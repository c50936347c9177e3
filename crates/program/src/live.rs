//! Computes which registers are live before each instruction.
//!
//! # Invariants
//! - A register is live where its value can change the thread's accesses, fences or barriers, or
//!   which of them it executes. A computation of dead values uses nothing, and neither does a
//!   branch that only chooses between such computations.
//! - Two states at one instruction that agree in all live registers there have the same
//!   continuations, access by access. So counted polls collapse into one. If the count only chooses
//!   how to wait (`if (++n < 16) …; else nanosleep`), both paths join at the next poll without an
//!   access. No state depends on the count. A branch that can leave a loop or repeat it forever
//!   does choose what the thread does: its paths do not join.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{BinOp, Expr, Op, Thread, Update};

/// The registers that are live before each instruction (and at the end), by backward data flow.
/// `observed` says which are live at the end.
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
                _ => !idle[pc]
                    .as_ref()
                    .is_some_and(|idle| idle.assigned.iter().all(|&d| !live[idle.end][d])),
            };
            if let Some(d) = op.defines() {
                here[d.0 as usize] = false;
            }
            // The operands of such an update read the old value from `dst`.
            let own = match op {
                Op::Rmw {
                    dst,
                    update: Update::When { .. },
                    ..
                } => *dst,
                _ => None,
            };
            if needed {
                op.operands()
                    .iter()
                    .for_each(|e| e.registers(&mut |r| here[r.0 as usize] |= Some(r) != own));
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

/// A branch whose paths contain only assignments until they join, wherever these are in the code.
struct Idle {
    /// The instruction where the paths join.
    end: usize,
    /// The registers that some path assigns.
    assigned: BTreeSet<usize>,
}

impl Idle {
    fn at(thread: &Thread, pc: usize) -> Option<Idle> {
        let target = thread.code[pc].op.target()?;
        let ways: Vec<FxHashSet<usize>> = next(thread, pc)?
            .map(|way| Idle::reached(thread, way))
            .collect();
        // Every path passes the joining point, so following one path finds it.
        let (mut at, mut passed) = (target, BTreeSet::new());
        while passed.insert(at) {
            let may_join = ways.iter().all(|way| way.contains(&at));
            if may_join && let Some(assigned) = Idle::between(thread, pc, at) {
                return Some(Idle { end: at, assigned });
            }
            at = next(thread, at)?.next()?;
        }
        None
    }

    /// The instructions that paths of nothing but assignments lead to.
    fn reached(thread: &Thread, from: usize) -> FxHashSet<usize> {
        let mut reached = FxHashSet::default();
        let mut todo = vec![from];
        while let Some(at) = todo.pop() {
            if reached.insert(at) {
                todo.extend(next(thread, at).into_iter().flatten());
            }
        }
        reached
    }

    /// The registers assigned between a branch and `end`, if all paths lead there and contain
    /// nothing but assignments.
    fn between(thread: &Thread, pc: usize, end: usize) -> Option<BTreeSet<usize>> {
        let mut assigned = BTreeSet::new();
        // For each instruction, whether its whole continuation is known. An instruction that recurs
        // while still unknown is in a loop.
        let mut known: FxHashMap<usize, bool> = FxHashMap::from_iter([(pc, false)]);
        let mut todo: Vec<(usize, bool)> = next(thread, pc)?.map(|to| (to, false)).collect();
        while let Some((at, behind)) = todo.pop() {
            if behind {
                known.insert(at, true);
                continue;
            }
            match known.get(&at) {
                _ if at == end => continue,
                Some(true) => continue,
                Some(false) => return None,
                None => {}
            }
            if let Op::Assign { dst, .. } = &thread.code.get(at)?.op {
                assigned.insert(usize::from(dst.0));
            }
            known.insert(at, false);
            todo.push((at, true));
            todo.extend(next(thread, at)?.map(|to| (to, false)));
        }
        Some(assigned)
    }
}

/// The possible successors of an instruction, if it only assigns or branches.
fn next(thread: &Thread, at: usize) -> Option<impl Iterator<Item = usize>> {
    let op = &thread.code.get(at)?.op;
    match op {
        Op::Assign { value: e, .. } | Op::Branch { cond: e, .. } if may_fail(e) => return None,
        Op::Assign { .. } | Op::Branch { .. } => {}
        _ => return None,
    }
    Some(
        op.target()
            .into_iter()
            .chain(op.falls_through().then_some(at + 1)),
    )
}

/// Whether evaluating it can be an error.
fn may_fail(value: &Expr) -> bool {
    match value {
        Expr::Bin(BinOp::Div | BinOp::Rem, ..) => true,
        Expr::Bin(_, _, a, b) | Expr::Cmp(_, _, a, b) => may_fail(a) || may_fail(b),
        Expr::Cast(_, a) => may_fail(a),
        Expr::Select(c, a, b) => may_fail(c) || may_fail(a) || may_fail(b),
        Expr::Fused(_, three) => three.iter().any(|e| may_fail(e)),
        Expr::Const(_) | Expr::Reg(_) | Expr::Address(_) => false,
    }
}
