//! Threads: program counter, registers and status.

use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

use super::code::Code;

/// The status of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ThreadStatus {
    /// It executes the instruction at `pc` next.
    Running,
    /// It has arrived at the barrier at `pc` and waits there.
    Waiting,
    /// It runs in a loop without access to memory.
    Lost,
    /// Its command has not started, or it is in a call that has not returned.
    Held,
    /// It has run to its end.
    Ended,
}

/// One thread.
#[derive(Clone, Debug)]
pub(super) struct ThreadState {
    pub(super) pc: usize,
    pub(super) status: ThreadStatus,
    /// The number of executed micro-ops; early binds are numbered by it.
    pub(super) clock: u32,
    pub(super) regs: SmallVec<[i64; 8]>,
    /// By lane: the values of the thread's last meeting.
    pub(super) brought: Vec<i64>,
    /// For an agent: the number of groups that its thread has made since it began, and the agents
    /// that it waits for.
    pub(super) age: u32,
    pub(super) after: Vec<usize>,
}

impl ThreadState {
    pub(super) fn is_over(&self) -> bool {
        self.status == ThreadStatus::Ended
    }

    /// Hashes everything that can still matter; registers that no instruction reads any more do
    /// not.
    pub(super) fn hash_into(&self, live: &[Vec<bool>], hasher: &mut impl Hasher) {
        self.pc.hash(hasher);
        self.status.hash(hasher);
        self.brought.hash(hasher);
        (self.age, &self.after).hash(hasher);
        for (value, &live) in self.regs.iter().zip(&live[self.pc]) {
            if live {
                value.hash(hasher);
            }
        }
    }
}

/// The threads before their first instruction.
pub(super) fn threads(code: &Code) -> Vec<ThreadState> {
    let of = code.threads.iter().enumerate();
    of.map(|(i, t)| {
        let status = if t.acts.is_empty() || code.agent(i).is_some() {
            ThreadStatus::Ended
        } else {
            ThreadStatus::Running
        };
        ThreadState {
            pc: 0,
            status,
            clock: 0,
            regs: t.start.iter().copied().collect(),
            brought: Vec::new(),
            age: 0,
            after: Vec::new(),
        }
    })
    .collect()
}
