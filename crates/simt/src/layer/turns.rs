//! Runs threads one after the other, as OpenCL permits.
//!
//! In each group of a scope, only the first thread that can go on may step. So a thread runs to its
//! end or to a barrier before the next one begins. With `alone`, one group runs at a time, and the
//! choice of the next group is free.
//!
//! # Sources
//! - OpenCL API specification, *Execution Model*: work-groups may run one after the other;
//!   work-items of a group may be serialised before, between and after work-group functions;
//!   sub-groups may have independent forward progress.

use crate::code::Code;
use crate::thread::{ThreadState, ThreadStatus};
use program::Scope;

/// The threads of a group take turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    /// The scope of the groups.
    pub(super) scope: Scope,
    /// Whether only one group runs at a time.
    pub(super) alone: bool,
}

impl Turns {
    fn first(self, code: &Code, threads: &[ThreadState], thread: usize) -> Option<usize> {
        let group = code.members(code.group(thread, self.scope), self.scope);
        group.iter().copied().find(|&u| {
            matches!(
                threads[u].status,
                ThreadStatus::Running | ThreadStatus::Lost
            )
        })
    }

    pub(super) fn is_next(
        self,
        code: &Code,
        turn: Option<u32>,
        threads: &[ThreadState],
        thread: usize,
    ) -> bool {
        turn.is_none_or(|g| g as usize == code.group(thread, self.scope))
            && self.first(code, threads, thread) == Some(thread)
    }

    pub(super) fn stepped(
        self,
        code: &Code,
        turn: &mut Option<u32>,
        threads: &[ThreadState],
        thread: usize,
        woken: &mut Vec<usize>,
    ) {
        if code.program.threads[thread].place.host {
            return;
        }
        let group = code.group(thread, self.scope);
        let members = code.members(group, self.scope);
        if self.alone {
            let over = members.iter().all(|&u| threads[u].is_over());
            *turn = (!over).then_some(group as u32);
        }
        woken.extend(self.first(code, threads, thread));
    }

    pub(super) fn obstacle(
        self,
        code: &Code,
        turn: Option<u32>,
        threads: &[ThreadState],
        thread: usize,
    ) -> Option<String> {
        let name = |t: usize| &code.program.threads[t].name;
        if let Some(g) = turn
            && g as usize != code.group(thread, self.scope)
        {
            return Some(format!(
                "the group of {} runs first, to its end",
                name(g as usize)
            ));
        }
        let first = self.first(code, threads, thread).filter(|&f| f != thread)?;
        Some(format!(
            "{} of its group runs first, to its end or to a barrier",
            name(first)
        ))
    }
}
