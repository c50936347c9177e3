//! Operations of a run on barriers of the CUDA C++ library, which are words like mbarrier objects.
//!
//! # Invariants
//! - An operation that is not recognized gives the run up.
//! - Only barriers in shared memory take part, so no thread of another block arrives.
//!
//! # Sources
//! - ISO C++, thread.barrier.class; libcu++, *cuda::barrier*. No call has to wait for the phase
//!   before an arrival, as PTX asks. An arrival that may be in two phases gives the run up.

use super::super::shadow::AccessKind;
use super::{Ended, SteadyRun, Turn, unsteady};
use program::mbarrier::{arrivals, count_of};
use program::{Access, Op, Scope, Space, Tag, Update};

impl SteadyRun<'_> {
    /// An operation of a thread on an object of the library.
    pub(super) fn library(&mut self, t: usize, at: usize) -> Ended<Turn> {
        let instr = self.instr(t, at);
        let op = &instr.op;
        let Some(address) = op.address().and_then(|addr| self.eval(t, addr)) else {
            return unsteady(instr, "at an address that depends on an unknown value");
        };
        let copy = self.memory.copy(address, address + 1);
        if copy.is_none_or(|(copy, _)| copy.space != Space::Shared) {
            return unsteady(instr, "on an object outside of shared memory");
        }
        let scopes = Scope::Cta..=Scope::Gpu;
        let is_wide = |access: &Access| access.scope.is_some_and(|scope| scopes.contains(&scope));
        match op {
            Op::Store { access, .. } if access.tags.has(Tag::Begins) => {
                self.begins(t, at, address, access)
            }
            _ if !op.accesses().all(is_wide) => unsteady(instr, "of another scope"),
            Op::Load { access, .. } if access.tags.has(Tag::Acquire) => {
                match self.phase_test(t, at) {
                    Some(test) => self.wait(t, at, address, &test),
                    None => unsteady(instr, "a look at an object"),
                }
            }
            Op::Rmw {
                write,
                update: Update::When { new, .. },
                ..
            } if arrivals(new).is_some() && write.tags.has(Tag::Release) => {
                let done = self.update(t, at, address)?;
                self.touches(t, at, write, AccessKind::Object)?;
                match done {
                    // What follows finds the misuse.
                    None => Ok(Turn::On),
                    Some(words) => self.arrives(t, at, address, words),
                }
            }
            _ => unsteady(instr, "an operation of this form on an object"),
        }
    }

    /// The begin of a barrier's life: a plain write.
    fn begins(&mut self, t: usize, at: usize, address: i64, access: &Access) -> Ended<Turn> {
        let instr = self.instr(t, at);
        let Op::Store { value, .. } = &instr.op else {
            return Ok(Turn::On);
        };
        let bytes = access.ty.bytes();
        let word = self.memory.load(address, bytes);
        if word.is_some_and(|word| count_of(word) != 0) {
            return unsteady(instr, "a second life of an object");
        }
        let Some(word) = self.eval(t, value) else {
            return unsteady(instr, "with an unknown count");
        };
        self.touches(t, at, access, AccessKind::Init)?;
        let end = address + i64::from(bytes);
        self.memory.store(address, end, Some(word));
        self.renew(t, at, address);
        Ok(Turn::On)
    }
}
