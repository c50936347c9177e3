//! Which registers a micro-op reads and writes, and which are needed where.

use super::{BarrierNaming, Expr, Op, RegId, Thread, Update};

impl Op {
    /// Calls `f` for every expression that the micro-op evaluates.
    pub fn expressions<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        match self {
            Op::Load { addr, .. } => f(addr),
            Op::Store { addr, value, .. } => {
                f(addr);
                f(value);
            }
            Op::Rmw { addr, update, .. } => {
                f(addr);
                match update {
                    Update::Exchange(e) | Update::Apply(_, e) => f(e),
                    Update::CompareExchange { expected: a, new: b } | Update::When { cond: a, new: b } => {
                        f(a);
                        f(b);
                    }
                }
            }
            Op::Fence { .. } | Op::Spurious { .. } | Op::Call(_) | Op::Enqueue(_) | Op::Status { .. } => {}
            Op::Barrier(b) => match &b.naming {
                BarrierNaming::Counted { id, count } => {
                    f(id);
                    count.iter().for_each(f);
                }
                BarrierNaming::Instance { id, quorum, .. } => {
                    id.iter().for_each(&mut *f);
                    quorum.iter().for_each(f);
                }
            },
            Op::Assign { value, .. } => f(value),
            Op::Branch { cond, .. } => f(cond),
        }
    }

    /// The register that the micro-op writes.
    pub fn defines(&self) -> Option<RegId> {
        match self {
            Op::Load { dst, .. } | Op::Assign { dst, .. } | Op::Spurious { dst } | Op::Status { dst, .. } => {
                Some(*dst)
            }
            Op::Rmw { dst, .. } => *dst,
            Op::Store { .. }
            | Op::Fence { .. }
            | Op::Barrier(_)
            | Op::Branch { .. }
            | Op::Call(_)
            | Op::Enqueue(_) => None,
        }
    }
}

/// Registers needed before each instruction (and at the end), by the usual backward data flow. `observed` tells which are
/// needed at the end.
pub fn live_registers(thread: &Thread, observed: &[bool]) -> Vec<Vec<bool>> {
    let n = thread.code.len();
    let mut live = vec![vec![false; thread.regs.len()]; n];
    live.push(observed.to_vec());
    loop {
        let mut changed = false;
        for pc in (0..n).rev() {
            let mut here = live[pc + 1].clone();
            let op = &thread.code[pc].op;
            if let Op::Branch { target, .. } = op {
                for (h, t) in here.iter_mut().zip(&live[*target]) {
                    *h |= t;
                }
            }
            if let Some(d) = op.defines() {
                here[d.0 as usize] = false;
            }
            // The operands of such an update see the value read in `dst`.
            let own = match op {
                Op::Rmw { dst, update: Update::When { .. }, .. } => *dst,
                _ => None,
            };
            op.expressions(&mut |e| e.registers(&mut |r| here[r.0 as usize] |= Some(r) != own));
            if let Op::Rmw { addr, .. } = op {
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
