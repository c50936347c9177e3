//! Which registers are needed where.

use super::{Op, Thread, Update};

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
            if let Some(target) = op.target() {
                for (h, t) in here.iter_mut().zip(&live[target]) {
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
            op.operands().iter().for_each(|e| e.registers(&mut |r| here[r.0 as usize] |= Some(r) != own));
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
