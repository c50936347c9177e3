//! The registers that an analysis of a thread's code follows, in a dense numbering.
//!
//! # Invariants
//! - The value of a followed register depends on followed registers alone, memory and lanes apart.

use program::{Instr, Op, RegId};

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
