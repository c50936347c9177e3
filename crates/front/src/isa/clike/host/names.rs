//! Defines the names that runtime calls use, and the calls after the lookup of their operands.

use super::calls::CallAction;
use diag::Span;
use program::host::LaneId;
use program::{LocId, RegId};

/// The names that host code can use.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Streams and queues.
    pub lanes: Vec<(String, LaneId)>,
    /// CUDA: the legacy default stream of each device.
    pub null: Vec<LaneId>,
    /// CUDA: the default stream of this thread alone.
    pub per_thread: Option<LaneId>,
    /// CUDA: events.
    pub events: Vec<String>,
    /// OpenCL: contexts.
    pub contexts: Vec<String>,
    /// Kernels.
    pub kernels: Vec<String>,
    /// Functions of the host.
    pub functions: Vec<String>,
    /// The code is a function that the runtime calls.
    pub inside: bool,
    /// The code is a kernel.
    pub of_kernel: bool,
}

/// A name with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name as written.
    pub word: String,
    /// The place of the name.
    pub span: Span,
}

/// A runtime call after the lookup of its operands.
#[derive(Clone, Debug)]
pub struct Request {
    /// The action.
    pub does: CallAction,
    /// The name of the function; for a launch, the kernel.
    pub name: String,
    /// The place of the call.
    pub span: Span,
    /// The stream or queue.
    pub lane: Option<LaneId>,
    /// The index of the kernel.
    pub kernel: Option<usize>,
    /// The index of the host function.
    pub function: Option<usize>,
    /// CUDA: grid and block; OpenCL: offset, global and local size, or of a rectangle the origins
    /// in the memory written and read, and the region. Each has its place in the text.
    pub sizes: [Option<(Vec<u64>, Span)>; 3],
    /// The memory written and the memory read.
    pub memory: [Option<(LocId, Span)>; 2],
    /// The first element of each.
    pub first: [u32; 2],
    /// OpenCL: bytes from row to row and from slice to slice, in the memory written and in the
    /// memory read.
    pub pitches: [u64; 4],
    /// The number of bytes to copy or to fill.
    pub bytes: Option<(u64, Span)>,
    /// The value for filling memory.
    pub value: i64,
    /// OpenCL: the local memory that a block passes to its kernel, as far as no size has come for
    /// it.
    pub locals: Vec<Name>,
    /// OpenCL: the events to wait for.
    pub waits: Vec<Name>,
    /// The event that the call makes, sets, records or queries.
    pub event: Option<Name>,
    /// Whether the call returns only when the command is complete.
    pub blocking: bool,
    /// Words such as `CL_MAP_READ`, `cudaMemcpyHostToDevice`, `CL_COMPLETE`.
    pub words: Vec<Name>,
    /// The device.
    pub device: u32,
    /// The register that receives a status.
    pub status: Option<RegId>,
}
