//! Runs asynchronous copies of work-groups.
//!
//! All threads of a block begin the same copies in the same order, with equal operands; that they
//! do is asked ([`crate::pairs`]). So the number of a copy is the same in all of them. Some thread
//! makes the copy, at any time between the call and the wait.
//!
//! # Clauses of the model
//! - A wait for its event orders a copy in front of what comes behind the wait in the same thread
//!   (OpenCL C, *Async Copies*: `wait_group_events` waits for the copies to complete).
//! - A barrier orders accesses in front of it and a copy that begins behind it.
//! - Nothing else orders a copy. The caller's own accesses in front of it are unordered, too, for
//!   another thread may make the copy.

use program::RegId;

use crate::exec::{Among, BeginAt, Exec, State};
use crate::term::Term;

impl Exec<'_> {
    /// Notes the begin of a copy or a wait for it, if an assignment is one.
    pub(crate) fn begin_of_group(&mut self, at: usize, dst: RegId, state: &State) {
        let mut copies = self.program.group_copies.iter();
        if copies.any(|copy| copy.open == dst) {
            // Threads wait for the same events.
            let operands = vec![state.regs[usize::from(dst.0)]];
            return self.alike(at, operands, state);
        }
        let mut copies = self.program.group_copies.iter();
        let Some(copy) = copies.find(|copy| copy.begun == dst).copied() else {
            return;
        };
        self.comes(at, Among::Block, true, state);
        let mut operands = vec![state.regs[usize::from(copy.number.0)]];
        for end in [copy.to, copy.from] {
            let Some(places) = self.places(state.regs[usize::from(end.0)]) else {
                continue;
            };
            let is_one = places.len() == 1;
            for place in places {
                operands.push(place.offset);
                if !is_one {
                    operands.push(place.guard);
                }
            }
        }
        self.alike(at, operands, state);
    }

    /// Notes values that all threads of a block have to share.
    fn alike(&mut self, at: usize, operands: Vec<Term>, state: &State) {
        if self.recording {
            self.found.begins.push(BeginAt {
                guard: state.guard,
                facts: [&state.facts[..], &state.within].concat(),
                operands,
                iterations: self.outer.clone(),
                at: self.origin[at],
            });
        }
    }

    /// The place in the code of the copy that accesses belong to, and how many copies the thread
    /// has begun there before; `None`: they belong to none.
    pub(crate) fn of_group(&self, state: &State) -> Option<(usize, Term)> {
        let mut copies = self.program.group_copies.iter();
        let place = copies.position(|copy| {
            let runs = state.regs[usize::from(copy.runs.0)];
            self.terms.constant(runs) == Some(1)
        })?;
        let begun = self.program.group_copies[place].begun;
        Some((place, state.regs[usize::from(begun.0)]))
    }

    /// How many copies of each place are complete for a thread.
    pub(crate) fn waited(&mut self, state: &State) -> Vec<Term> {
        let program = self.program;
        let copies = program.group_copies.iter();
        copies
            .map(|copy| {
                let open = state.regs[usize::from(copy.open.0)];
                let begun = state.regs[usize::from(copy.begun.0)];
                let is_done = self.is_zero(open);
                let none = self.terms.int(0);
                self.terms.ite(is_done, begun, none)
            })
            .collect()
    }
}
