//! What calls of the runtime name, and the calls with their operands looked up.

use super::calls::Does;
use diag::Span;
use program::host::LaneId;
use program::{LocId, RegId};

/// What host code can name.
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
    /// This code is such a function.
    pub inside: bool,
    /// This code is a kernel's.
    pub of_kernel: bool,
}

/// A name with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Its place.
    pub span: Span,
}

/// A call of the runtime, its operands looked up.
#[derive(Clone, Debug)]
pub struct Request {
    /// What it does.
    pub does: Does,
    /// Name of the function; of a launch, that of the kernel.
    pub name: String,
    /// Where it stands.
    pub span: Span,
    /// Stream or queue.
    pub lane: Option<LaneId>,
    /// Kernel.
    pub kernel: Option<usize>,
    /// Function of the host.
    pub function: Option<usize>,
    /// CUDA: grid and block; OpenCL: offset, global and local size. With the place of each.
    pub sizes: [Option<(Vec<u64>, Span)>; 3],
    /// Memory written and memory read.
    pub memory: [Option<(LocId, Span)>; 2],
    /// How many bytes are copied.
    pub bytes: Option<(u64, Span)>,
    /// A value to fill memory with.
    pub value: i64,
    /// OpenCL: the events waited for.
    pub waits: Vec<Name>,
    /// The event that it makes, sets, records or asks about.
    pub event: Option<Name>,
    /// The call returns when the command is complete.
    pub blocking: bool,
    /// Words such as `CL_MAP_READ`, `cudaMemcpyHostToDevice`, `CL_COMPLETE`.
    pub words: Vec<Name>,
    /// Device.
    pub device: u32,
    /// Receives a status.
    pub status: Option<RegId>,
}
