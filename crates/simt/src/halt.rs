//! The ways in which a step ends early, and with it a choice or a run.

/// An action of a thread that has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// An access names no memory that the thread may access.
    Stray,
    /// Only part of the threads of a barrier reach it.
    Barrier,
    /// A division by zero, where that is undefined.
    Division,
}

/// The reason why a step ends early, and with it a choice or a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StepHalt {
    /// The choice is not possible.
    Refused,
    /// The instruction cannot execute yet.
    Blocked,
    /// The action has no meaning; the run ends.
    Fault {
        kind: FaultKind,
        thread: usize,
        instr: usize,
        what: String,
    },
    /// The machine reached one of its limits.
    Limit(&'static str),
    /// The machine cannot run this.
    Unsupported(String),
}

/// The result of a step that may end early.
pub(super) type Result<T = (), E = StepHalt> = std::result::Result<T, E>;
