//! The registers that an analysis of a thread's code follows, in a dense numbering.
//!
//! # Invariants
//! - The value of a followed register depends on followed registers alone, memory and lanes apart.

use program::points::access_of;
use program::{Expr, Instr, Op, RegId};

/// The registers that an analysis follows, numbered once: those that branches or some other
/// registers depend on.
pub(super) struct Followed {
    /// By register: its number, if it is followed.
    numbers: Vec<Option<usize>>,
    /// How many they are.
    pub(super) count: usize,
}

impl Followed {
    /// The registers that branches depend on, and these.
    pub(super) fn of(code: &[Instr], also: impl Iterator<Item = RegId>) -> Followed {
        let mut all = Followed {
            numbers: Vec::new(),
            count: 0,
        };
        also.for_each(|reg| all.add(reg));
        for instr in code {
            if let Op::Branch { cond, .. } = &instr.op {
                cond.registers(&mut |reg| all.add(reg));
            }
        }
        // Values of loops take several rounds.
        loop {
            let before = all.count;
            for instr in code.iter().rev() {
                if let Op::Assign { dst, value } = &instr.op
                    && all.number(*dst).is_some()
                {
                    value.registers(&mut |reg| all.add(reg));
                }
            }
            if all.count == before {
                return all;
            }
        }
    }

    /// By micro-op: which followed registers later addresses or branches depend on.
    pub(super) fn live(&self, code: &[Instr]) -> LiveRegisters {
        let width = self.count.div_ceil(64);
        let mut live = LiveRegisters {
            width,
            words: vec![0; width * (code.len() + 1)],
        };
        let mut here = vec![0; width];
        loop {
            let mut changed = false;
            for (at, instr) in code.iter().enumerate().rev() {
                let op = &instr.op;
                here.fill(0);
                let next = op.falls_through().then_some(at + 1);
                for to in next.into_iter().chain(op.target()) {
                    for (here, then) in here.iter_mut().zip(live.at(to)) {
                        *here |= then;
                    }
                }
                let defined = op.defines().and_then(|dst| self.number(dst));
                let is_used = defined.is_some_and(|slot| here[slot / 64] >> (slot % 64) & 1 == 1);
                if let Some(slot) = defined {
                    here[slot / 64] &= !(1 << (slot % 64));
                }
                let mut uses = |e: &Expr| {
                    e.registers(&mut |reg| {
                        if let Some(slot) = self.number(reg) {
                            here[slot / 64] |= 1 << (slot % 64);
                        }
                    });
                };
                match op {
                    Op::Assign { value, .. } if is_used => uses(value),
                    Op::Branch { cond, .. } => uses(cond),
                    // Another lane can take the value as an address.
                    Op::Give { value, .. } => uses(value),
                    _ => {}
                }
                if let Some((addr, _)) = access_of(op) {
                    uses(addr);
                }
                if here != live.at(at) {
                    live.words[at * width..][..width].copy_from_slice(&here);
                    changed = true;
                }
            }
            if !changed {
                return live;
            }
        }
    }

    fn add(&mut self, reg: RegId) {
        let at = usize::from(reg.0);
        if self.numbers.len() <= at {
            self.numbers.resize(at + 1, None);
        }
        if self.numbers[at].is_none() {
            self.numbers[at] = Some(self.count);
            self.count += 1;
        }
    }

    /// The number of a register, if it is followed.
    pub(super) fn number(&self, reg: RegId) -> Option<usize> {
        self.numbers.get(usize::from(reg.0)).copied().flatten()
    }
}

/// The followed registers that are live before each micro-op, as bits by their number.
pub(super) struct LiveRegisters {
    /// The number of words for each micro-op.
    width: usize,
    words: Vec<u64>,
}

impl LiveRegisters {
    fn at(&self, at: usize) -> &[u64] {
        &self.words[at * self.width..][..self.width]
    }

    /// Whether a register is live before a micro-op.
    pub(super) fn has(&self, at: usize, number: usize) -> bool {
        self.at(at)[number / 64] >> (number % 64) & 1 == 1
    }
}
