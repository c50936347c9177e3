//! Indices of threads, registers and locations of a program.

/// Index of a thread, in the order of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(pub u16);

/// Index of a register within its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegId(pub u16);

/// Index into [`Program::locations`](super::Program::locations).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocId(pub u16);

/// An instruction of a thread: the micro-ops of one instruction share it.
///
/// Lowering counts each time that it comes to an instruction, so a function that is inlined twice
/// has its instructions twice. Ids of different threads say nothing about each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstrId(pub u32);
