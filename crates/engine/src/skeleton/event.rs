//! Defines events: the effects of a program's instructions on memory, each under the condition that
//! it executes.

use super::pool::{Cond, TermId};
use program::{EventKind, Scope, TENSOR_TAGS, Tag, Tags, ThreadId, Ty};

/// One event of a skeleton.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its kind.
    pub kind: EventKind,
    /// Its thread; `None` for initial writes.
    pub thread: Option<ThreadId>,
    /// Index of its instruction in the thread's code; 0 for initial writes.
    pub instr: usize,
    /// The event executes if and only if this holds.
    pub guard: Cond,
    /// Order, proxy, flags.
    pub tags: Tags,
    /// Scope of the operation.
    pub scope: Option<Scope>,
    /// Address, for reads, writes and other events with one.
    pub addr: Option<TermId>,
    /// Value read or written.
    pub value: Option<TermId>,
    /// Type of the access; [`Ty::WORD`] for other events. An event of an access to several cells
    /// has the type of its cell.
    pub ty: Ty,
    /// An access to several cells is one event for each, in sequence. This is the number of its
    /// events before this one.
    pub part: u8,
    /// The number of events of the access.
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

    /// Whether it belongs to an asynchronous operation: then it is not in program order.
    pub fn is_asynchronous(&self) -> bool {
        self.tags.has(Tag::Asynchronous)
    }

    /// Whether its address is a number of tensor memory, which names no cell.
    pub fn is_of_tensor_memory(&self) -> bool {
        self.tags.has_any(&TENSOR_TAGS)
    }

    /// Whether it accesses memory.
    pub fn is_memory(&self) -> bool {
        self.kind.accesses()
    }
}
