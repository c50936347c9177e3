//! What the lowering of host code knows beyond that of other code: its calls so far, where it
//! stands, what was given back.

use super::Request;
use diag::Span;
use program::host::LaneId;

/// What the lowering of host code knows beyond that of other code.
#[derive(Default)]
pub(in crate::isa::clike) struct HostState {
    /// Calls so far.
    pub(in crate::isa::clike) requests: Vec<Request>,
    /// Where the code stands.
    pub(in crate::isa::clike) paths: Paths,
    /// OpenCL: names of queues of the device.
    pub(super) queues: Vec<String>,
    /// The device of calls.
    pub(super) device: u32,
    /// What was given back.
    pub(super) lifetimes: Lifetimes,
}

/// What was given back, and where.
#[derive(Default)]
pub(super) struct Lifetimes {
    pub(super) lanes: Vec<(LaneId, Span)>,
    pub(super) events: Vec<(String, Span)>,
    /// Events by name, once for each time that they were retained.
    pub(super) retained: Vec<String>,
}

/// How the lowering stands to branches.
#[derive(Default)]
pub(in crate::isa::clike) struct Paths {
    /// In so many branches and loops that depend on more than the thread's place.
    nesting: usize,
    /// In so many branches that this thread does not take.
    dead: usize,
    /// It may have ended before.
    may_have_left: bool,
    /// It has ended before.
    has_left: bool,
}

impl Paths {
    /// Enters a branch that is taken if `taken`, where that is known.
    pub(in crate::isa::clike) fn enter(&mut self, taken: Option<bool>) {
        match taken {
            Some(true) => {}
            Some(false) => self.dead += 1,
            None => self.nesting += 1,
        }
    }

    /// Leaves it.
    pub(in crate::isa::clike) fn exit(&mut self, taken: Option<bool>) {
        match taken {
            Some(true) => {}
            Some(false) => self.dead -= 1,
            None => self.nesting -= 1,
        }
    }

    /// The thread ends here.
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

    /// Whether the thread never comes here.
    pub(super) fn is_dead(&self) -> bool {
        self.dead > 0 || self.has_left
    }

    /// Whether it comes here in some executions only, or several times.
    pub(super) fn is_open(&self) -> bool {
        self.nesting > 0 || self.may_have_left
    }
}
