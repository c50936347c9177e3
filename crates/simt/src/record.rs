//! The log of a run: a trace for people, and the run for the checker.
//!
//! A log receives every event at its commit. Exploring without a log costs nothing: [`Silent`]
//! keeps nothing.

use program::Scope;

/// A write, identified by its thread and its number among the thread's writes (in the order in
/// which they became visible).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WriteId {
    /// The initial write of a location.
    Initial(usize),
    /// A write of a thread.
    Write(usize, u32),
}

/// An instruction of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Thread.
    pub thread: usize,
    /// Instruction.
    pub instr: usize,
}

/// One event of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// A read half was committed.
    Read {
        /// Thread.
        thread: usize,
        /// Instruction.
        instr: usize,
        /// Location.
        loc: usize,
        /// The write that it reads from.
        source: WriteId,
        /// The value as stored.
        value: i64,
    },
    /// A write became visible.
    Write {
        /// Its name.
        source: WriteId,
        /// Instruction.
        instr: usize,
        /// Location.
        loc: usize,
        /// The value as stored.
        value: i64,
    },
    /// A write was committed: its instruction had its turn.
    Commit(WriteId),
    /// A fence was committed.
    Fence(Spot),
    /// A thread arrived at a barrier, in the phase of that number.
    Arrive(Spot, u32),
    /// A thread passed a barrier, of the phase of that number.
    Pass(Spot, u32),
    /// A thread hands its knowledge to a point of the host program, given by its number.
    Hand(Spot, u32),
    /// Release fences of a thread have published knowledge, at this scope or the widest; a point of
    /// the host program receives it.
    HandReleased(Spot, u32, Scope),
    /// The knowledge at one point of the host program goes to another.
    Pour(u32, u32),
    /// A thread learns the knowledge at a point of the host program.
    Tell(Spot, u32),
    /// A thread begins the agent of that number, which starts with its knowledge.
    Begin(Spot, usize),
    /// A thread learns that the accesses of an agent are over, or only its reads (`true`).
    Complete(Spot, usize, bool),
    /// An instruction was bound early, before its turn.
    Early(Spot),
    /// The scheduler picked a thread; for warps with one program counter, with the lanes active
    /// together. Only in replays.
    Turn {
        /// Thread.
        thread: usize,
        /// Active lanes of its warp.
        active: Option<u64>,
    },
    /// A thread executed a branch; whether it jumped to the target.
    Jump(Spot, bool),
    /// From here to its end the run returns to the same state, so it may continue forever. Only in
    /// replays.
    Round,
    /// At a location, the second write is coherence-after the first.
    After(usize, WriteId, WriteId),
}

/// Receives events.
pub trait Log {
    /// An event.
    fn note(&mut self, event: RunEvent);
}

/// A log that keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Log for Silent {
    fn note(&mut self, _: RunEvent) {}
}

impl Log for Vec<RunEvent> {
    fn note(&mut self, event: RunEvent) {
        self.push(event);
    }
}

/// Undefined behaviour of a run, or behaviour that is left to implementations.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunHazard {
    /// Its kind.
    pub kind: HazardKind,
    /// Thread and instruction.
    pub first: (usize, usize),
    /// The second one, if two take part.
    pub second: Option<(usize, usize)>,
    /// The location, as in [`RunEvent::Read`].
    pub loc: Option<usize>,
}

/// Kinds of undefined or implementation-specific behaviour that a memory reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HazardKind {
    /// Conflicting accesses that nothing orders, not both atomic with inclusive scopes.
    Race,
    /// Some thread of the group never executes the barrier, or not at the same call; in PTX,
    /// threads of a warp do not execute the same aligned instructions.
    Divergence,
    /// OpenCL: the work-items of a group execute a barrier with different arguments.
    BarrierArguments,
    /// An operation whose precondition does not hold.
    Misuse,
    /// OpenCL: a command uses memory while it is mapped to the host.
    WhileMapped,
    /// OpenCL: the host uses memory that it maps, at a time when it is not mapped for that use.
    Unmapped,
    /// OpenCL: kernel instances have unordered atomic operations on one buffer: not undefined, but
    /// left to implementations.
    Unspecified,
}

impl HazardKind {
    /// The name in models and reports.
    pub fn name(self) -> &'static str {
        match self {
            HazardKind::Race => "data race",
            HazardKind::Divergence => "divergence",
            HazardKind::BarrierArguments => "barrier arguments",
            HazardKind::Misuse => "misuse",
            HazardKind::WhileMapped => "used while mapped",
            HazardKind::Unmapped => "used unmapped",
            HazardKind::Unspecified => "implementation-defined",
        }
    }

    /// Whether it makes the program undefined; otherwise implementations may differ in its effect.
    pub fn is_undefined(self) -> bool {
        self != HazardKind::Unspecified
    }
}
