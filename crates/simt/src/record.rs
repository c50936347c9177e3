//! What happened in a run, for those who want to know: the trace for people, and the run for the
//! checker.
//!
//! A log is told of every event as it is committed. Exploring without one costs nothing: [`Silent`]
//! keeps nothing.

use program::Scope;

/// A write, by its thread and its number among the thread's writes (in the order in which they
/// became visible).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
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
pub enum Event {
    /// A read half was committed.
    Read {
        /// Thread.
        thread: usize,
        /// Instruction.
        instr: usize,
        /// Location.
        loc: usize,
        /// Where the value comes from.
        source: Source,
        /// The value as stored.
        value: i64,
    },
    /// A write became visible.
    Write {
        /// Its name.
        source: Source,
        /// Instruction.
        instr: usize,
        /// Location.
        loc: usize,
        /// The value as stored.
        value: i64,
    },
    /// A write was committed: its instruction had its turn.
    Commit(Source),
    /// A fence was committed.
    Fence(Spot),
    /// A thread arrived at a barrier, in the phase of that number.
    Arrive(Spot, u32),
    /// A thread passed a barrier, of the phase of that number.
    Pass(Spot, u32),
    /// What a thread knows is known at the point of the host program of that number.
    Hand(Spot, u32),
    /// What release fences of a thread have published, of this scope or the widest, is known at
    /// such a point.
    HandReleased(Spot, u32, Scope),
    /// What is known at one point of the host program is known at another.
    Pour(u32, u32),
    /// A thread learns what is known at a point of the host program.
    Tell(Spot, u32),
    /// A thread begins an agent, of that number, which knows what it knows.
    Begin(Spot, usize),
    /// A thread learns that the accesses of an agent are over; of its reads alone if that is said.
    Complete(Spot, usize, bool),
    /// An instruction that has not had its turn was bound early.
    Early(Spot),
    /// The scheduler picked a thread; of warps with one program counter, the lanes that are active
    /// with it. Only noted in replays.
    Turn {
        /// Thread.
        thread: usize,
        /// Active lanes of its warp.
        active: Option<u64>,
    },
    /// A thread came to a branch; whether it went to the branch's target.
    Jump(Spot, bool),
    /// From here to its end, the run comes back to where it was, and may go on so for ever. Only
    /// noted in replays.
    Round,
    /// At a location, the second write is coherence-after the first.
    After(usize, Source, Source),
}

/// Is told of events.
pub trait Log {
    /// An event.
    fn note(&mut self, event: Event);
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Log for Silent {
    fn note(&mut self, _: Event) {}
}

impl Log for Vec<Event> {
    fn note(&mut self, event: Event) {
        self.push(event);
    }
}

/// Something undefined in a run, or left to implementations.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hazard {
    /// What.
    pub kind: HazardKind,
    /// Thread and instruction.
    pub first: (usize, usize),
    /// The other one, if two take part.
    pub second: Option<(usize, usize)>,
    /// The location, as in [`Event::Read`].
    pub loc: Option<usize>,
}

/// Kinds of undefined behaviour, and of what is left to implementations, that a memory reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HazardKind {
    /// Conflicting accesses that nothing orders, not both atomic with inclusive scopes.
    Race,
    /// OpenCL: some work-item of the group never executes the barrier.
    Divergence,
    /// OpenCL: the work-items of a group execute a barrier with different arguments.
    BarrierArguments,
    /// CUDA: a library function is called whose precondition does not hold.
    Misuse,
    /// OpenCL: a command uses memory while it is mapped to the host.
    WhileMapped,
    /// OpenCL: the host uses memory that it maps, but not while it is mapped for that.
    Unmapped,
    /// OpenCL: kernel instances have atomic operations on one buffer that nothing orders: not
    /// undefined, but left to implementations.
    Unspecified,
}

impl HazardKind {
    /// In words, as models and reports call it.
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

    /// Whether it makes the program undefined; else implementations may differ in what it does.
    pub fn is_undefined(self) -> bool {
        self != HazardKind::Unspecified
    }
}
