//! Events: what a program's instructions do to memory, each under the condition that it executes.

use super::pool::{Cond, TermId};
use program::{EventKind, Scope, Tag, Tags, ThreadId, Ty};

/// One event of a skeleton.
#[derive(Clone, Debug)]
pub struct Event {
    /// What it is.
    pub kind: EventKind,
    /// Its thread; `None` for initial writes.
    pub thread: Option<ThreadId>,
    /// Index of its instruction in the thread's code; 0 for initial writes.
    pub instr: usize,
    /// Executes if and only if this holds.
    pub guard: Cond,
    /// Order, proxy, flags.
    pub tags: Tags,
    /// Scope of the operation.
    pub scope: Option<Scope>,
    /// Address, for reads, writes and what else names one.
    pub addr: Option<TermId>,
    /// Value read or written.
    pub value: Option<TermId>,
    /// Type of the access; [`Ty::WORD`] for other events. Of one to several cells, that of a cell.
    pub ty: Ty,
    /// An access to several cells is one event for each, one behind the other: how many of them
    /// come before this one.
    pub part: u8,
    /// How many there are.
    pub parts: u8,
}

impl Event {
    /// Whether it is a write, initial or not.
    pub fn is_write(&self) -> bool {
        self.kind.writes()
    }

    /// Whether it is a read.
    pub fn is_read(&self) -> bool {
        self.kind == EventKind::Read
    }

    /// Whether it is of an asynchronous operation: then it is not in program order.
    pub fn is_asynchronous(&self) -> bool {
        self.tags.has(Tag::Asynchronous)
    }

    /// Whether it accesses memory.
    pub fn is_memory(&self) -> bool {
        self.kind.accesses()
    }
}
