//! Holds the state that only the lowering of host code needs: its calls so far, its position among
//! branches, and the names it has released.

use super::Request;
use diag::Span;
use program::LocId;
use program::host::LaneId;

/// The state that only the lowering of host code needs.
#[derive(Default)]
pub(in crate::isa::clike) struct HostState {
    /// The calls so far.
    pub(in crate::isa::clike) requests: Vec<Request>,
    /// The position of the code among branches.
    pub(in crate::isa::clike) paths: Paths,
    /// OpenCL: names of device queues.
    pub(super) queues: Vec<String>,
    /// The current device.
    pub(super) device: u32,
    /// The releases so far.
    pub(super) lifetimes: Lifetimes,
}

/// Released names, and the places of their release.
#[derive(Default)]
pub(super) struct Lifetimes {
    pub(super) lanes: Vec<(LaneId, Span)>,
    pub(super) events: Vec<(String, Span)>,
    pub(super) memory: Vec<(LocId, Span)>,
    /// Memory objects, once for each retain.
    pub(super) retained_memory: Vec<LocId>,
    /// Events by name, once for each retain.
    pub(super) retained: Vec<String>,
}

/// The position of the lowering among branches.
#[derive(Default)]
pub(in crate::isa::clike) struct Paths {
    /// The number of open branches and loops that depend on more than the thread's position.
    nesting: usize,
    /// The number of open branches that this thread does not take.
    dead: usize,
    /// The thread may have ended before.
    may_have_left: bool,
    /// The thread has ended before.
    has_left: bool,
}

impl Paths {
    /// Enters a branch; `taken`: whether the thread takes it, if known.
    pub(in crate::isa::clike) fn enter(&mut self, taken: Option<bool>) {
        match taken {
            Some(true) => {}
            Some(false) => self.dead += 1,
            None => self.nesting += 1,
        }
    }

    pub(in crate::isa::clike) fn exit(&mut self, taken: Option<bool>) {
        match taken {
            Some(true) => {}
            Some(false) => self.dead -= 1,
            None => self.nesting -= 1,
        }
    }

    /// Ends the thread.
    pub(in crate::isa::clike) fn leave(&mut self) {
        if self.is_dead() {
            return;
        }
        if self.nesting == 0 {
            self.has_left = true;
        } else {
            self.may_have_left = true;
        }
    }

    /// Whether the thread never reaches this code.
    pub(super) fn is_dead(&self) -> bool {
        self.dead > 0 || self.has_left
    }

    /// Whether only some executions reach this code, or some reach it several times.
    pub(super) fn is_open(&self) -> bool {
        self.nesting > 0 || self.may_have_left
    }
}
