//! What ends a step before its time, and with it a choice or a run.

/// What a thread did that has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// An access names no memory that the thread may access.
    Stray,
    /// A barrier is reached by part of those for whom it is.
    Barrier,
    /// A division by zero, where that is undefined.
    Division,
}

/// Why a step, and with it a choice or a run, ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// The choice made is not possible.
    Refused,
    /// The instruction cannot have its turn yet.
    Blocked,
    /// The thread did something that has no meaning; the run ends.
    Fault {
        kind: Fault,
        thread: usize,
        instr: usize,
        what: String,
    },
    /// A limit of the machine was met.
    Limit(&'static str),
    /// The machine cannot run this.
    Unsupported(String),
}

/// What may end a step.
pub(super) type Result<T = (), E = Halt> = std::result::Result<T, E>;
