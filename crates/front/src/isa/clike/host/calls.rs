//! Lists the calls that host code may make.
//!
//! # Sources
//! - CUDA runtime API; OpenCL API specification, *The OpenCL Runtime*: the order of the operands.

use program::dialect::Runtime;

/// The action of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallAction {
    /// Launches a kernel.
    Launch,
    /// Copies memory.
    Copy,
    /// Copies a rectangle of memory.
    CopyRect,
    /// Moves memory to a device, which changes no value.
    Migrate,
    /// Fills memory with a value.
    Fill,
    /// Makes memory accessible to the host.
    Map,
    /// Ends a mapping.
    Unmap,
    /// Enqueues a marker.
    Marker,
    /// Enqueues a barrier.
    Barrier,
    /// Enqueues a function of the host.
    HostFunction,
    /// Registers a callback.
    Callback,
    /// Waits for events.
    Wait,
    /// Waits for all commands of a lane.
    Finish,
    /// Submits the commands of a queue.
    Flush,
    /// Waits for all commands of a device.
    SyncDevice,
    /// Makes a user event.
    CreateUser,
    /// Sets a user event.
    SetUser,
    /// Records an event.
    Record,
    /// Makes a stream wait for an event.
    LaneWait,
    /// Queries the status of an event or a stream.
    Status,
    /// Releases a stream or queue.
    Release,
    /// Chooses the device of later calls.
    SetDevice,
    /// Enqueues a kernel from a kernel.
    EnqueueKernel,
    /// Enqueues a marker from a kernel.
    EnqueueMarker,
    /// Returns the default queue of the device.
    DefaultQueue,
    /// Retains an event, so that it needs one more release.
    RetainEvent,
    /// Releases an event.
    ReleaseEvent,
    /// Frees memory as the host does: its life ends here.
    EndOfLife,
    /// Notes where the life of something has ended.
    Ended,
    /// Uses an object after the end of its life.
    UsedAfterEnd,
    /// Retains memory, so that it needs one more release.
    RetainMemory,
    /// Releases memory.
    ReleaseMemory,
    /// Has no effect that a model could see.
    Nothing,
}

/// The role of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParamRole {
    /// A stream or queue.
    Lane,
    /// A kernel.
    Kernel,
    /// The size with that index in [`super::Request::sizes`].
    Sizes(usize),
    /// A list of events, possibly empty; its count may come before it.
    Waits,
    /// An event.
    Event,
    /// `&e`: the event that the call makes.
    NewEvent,
    /// Memory that the call writes.
    To,
    /// Memory that the call reads.
    From,
    /// OpenCL C: the size of the next local memory that a block passes to its kernel; optional.
    LocalBytes,
    /// The distance in [`super::Request::pitches`] with that index.
    Pitch(usize),
    /// None, one or several of these words, joined by `|`.
    Flags(&'static [&'static str]),
    /// A number of bytes; optional in every call.
    Bytes,
    /// A number of bytes with `sizeof`; optional in every call.
    Extent,
    /// A number.
    Value,
    /// `CL_TRUE` or `CL_FALSE`.
    Blocking,
    /// One or several of these words, joined by `|`.
    Words(&'static [&'static str]),
    /// A function of the host.
    Function,
    /// `&r`: a register.
    Status,
    /// A context.
    Context,
    /// The number of a device.
    Device,
    /// A queue of the device.
    Queue,
    /// An index space such as `ndrange_1D(1)`.
    Range,
    /// A block that calls a kernel, `^{ child(); }`.
    Block,
    /// Memory, a stream, a queue or an event, dead or alive.
    Object,
    /// Memory. The call ends its life.
    Freed,
    /// An operand that makes no difference: `NULL` or a number.
    Unused,
}

pub(super) struct CallRow {
    pub(super) name: &'static str,
    pub(super) runtime: Runtime,
    pub(super) does: CallAction,
    /// The number of operands that a call must have.
    pub(super) needed: usize,
    pub(super) params: &'static [ParamRole],
    /// Whether the host thread may wait in the call.
    pub(super) waits: bool,
    /// Whether kernels make the call, and not the host.
    pub(super) of_device: bool,
}

const fn cuda(
    name: &'static str,
    does: CallAction,
    needed: usize,
    params: &'static [ParamRole],
) -> CallRow {
    CallRow {
        name,
        runtime: Runtime::Cuda,
        does,
        needed,
        params,
        waits: false,
        of_device: false,
    }
}

const fn cl(
    name: &'static str,
    does: CallAction,
    needed: usize,
    params: &'static [ParamRole],
) -> CallRow {
    CallRow {
        runtime: Runtime::OpenCl,
        ..cuda(name, does, needed, params)
    }
}

const fn device(
    name: &'static str,
    does: CallAction,
    needed: usize,
    params: &'static [ParamRole],
) -> CallRow {
    CallRow {
        of_device: true,
        ..cl(name, does, needed, params)
    }
}

const fn waiting(row: CallRow) -> CallRow {
    CallRow { waits: true, ..row }
}

const COPY_KINDS: &[&str] = &[
    "cudaMemcpyHostToHost",
    "cudaMemcpyHostToDevice",
    "cudaMemcpyDeviceToHost",
    "cudaMemcpyDeviceToDevice",
    "cudaMemcpyDefault",
];
const CALLBACK_STATUSES: &[&str] = &["CL_COMPLETE", "CL_RUNNING", "CL_SUBMITTED"];
const SET_STATUSES: &[&str] = &["CL_COMPLETE"];
const MAP_FLAGS: &[&str] = &[
    "CL_MAP_READ",
    "CL_MAP_WRITE",
    "CL_MAP_WRITE_INVALIDATE_REGION",
];
const MIGRATION_FLAGS: &[&str] = &["CL_MIGRATE_MEM_OBJECT_HOST"];
const START_FLAGS: &[&str] = &[
    "CLK_ENQUEUE_FLAGS_NO_WAIT",
    "CLK_ENQUEUE_FLAGS_WAIT_KERNEL",
    "CLK_ENQUEUE_FLAGS_WAIT_WORK_GROUP",
];
const STATUS_QUERY: &[&str] = &["CL_EVENT_COMMAND_EXECUTION_STATUS"];

use CallAction::*;
use ParamRole::{
    Blocking, Bytes, Context, Device, Event, Function, Kernel, Lane, NewEvent, Pitch, Sizes, To,
    Unused, Value,
};
use ParamRole::{From, Waits, Words};

/// A launch, `K<<<grid, block, bytes, stream>>>()`: the operands between the brackets.
pub(super) const LAUNCH: CallRow = cuda("<<<>>>", Launch, 2, &[Sizes(0), Sizes(1), Unused, Lane]);

pub(super) const ROWS: &[CallRow] = &[
    cuda(
        "cudaMemcpyAsync",
        Copy,
        3,
        &[To, From, Bytes, Words(COPY_KINDS), Lane],
    ),
    waiting(cuda(
        "cudaMemcpy",
        Copy,
        3,
        &[To, From, Bytes, Words(COPY_KINDS)],
    )),
    cuda("cudaMemset", Fill, 3, &[To, Value, Bytes]),
    cuda("cudaMemsetAsync", Fill, 3, &[To, Value, Bytes, Lane]),
    cuda("cudaMallocAsync", Fill, 1, &[To, Lane]),
    cuda("cudaFreeAsync", Fill, 1, &[To, Lane]),
    waiting(cuda("cudaFree", SyncDevice, 1, &[ParamRole::Freed])),
    cuda("cudaFreeHost", EndOfLife, 1, &[ParamRole::Freed]),
    cuda("end_of_life", EndOfLife, 1, &[ParamRole::Freed]),
    cuda("ended", Ended, 1, &[ParamRole::Object]),
    cuda("used_after_end", UsedAfterEnd, 1, &[ParamRole::Object]),
    cuda("cudaEventRecord", Record, 1, &[Event, Lane]),
    cuda("cudaStreamWaitEvent", LaneWait, 2, &[Lane, Event, Unused]),
    waiting(cuda("cudaEventSynchronize", Wait, 1, &[Event])),
    waiting(cuda("cudaStreamSynchronize", Finish, 1, &[Lane])),
    waiting(cuda("cudaDeviceSynchronize", SyncDevice, 0, &[])),
    cuda("cudaEventQuery", Status, 1, &[Event]),
    cuda("cudaStreamQuery", Status, 1, &[Lane]),
    cuda(
        "cudaLaunchHostFunc",
        HostFunction,
        2,
        &[Lane, Function, Unused],
    ),
    cuda("cudaStreamDestroy", Release, 1, &[Lane]),
    cuda("cudaSetDevice", SetDevice, 1, &[Device]),
    cuda("cudaEventCreate", Nothing, 1, &[Event]),
    cuda("cudaEventDestroy", ReleaseEvent, 1, &[Event]),
    cuda("cudaStreamCreate", Nothing, 1, &[Lane]),
    cl(
        "clEnqueueNDRangeKernel",
        Launch,
        2,
        &[Lane, Kernel, Sizes(0), Sizes(1), Sizes(2), Waits, NewEvent],
    ),
    cl("clEnqueueTask", Launch, 2, &[Lane, Kernel, Waits, NewEvent]),
    cl(
        "clEnqueueReadBuffer",
        Copy,
        4,
        &[Lane, From, Blocking, To, ParamRole::Extent, Waits, NewEvent],
    ),
    cl(
        "clEnqueueWriteBuffer",
        Copy,
        4,
        &[Lane, To, Blocking, From, ParamRole::Extent, Waits, NewEvent],
    ),
    cl(
        "clEnqueueCopyBuffer",
        Copy,
        3,
        &[Lane, From, To, ParamRole::Extent, Waits, NewEvent],
    ),
    cl(
        "clEnqueueReadBufferRect",
        CopyRect,
        11,
        &[
            Lane,
            From,
            Blocking,
            Sizes(1),
            Sizes(0),
            Sizes(2),
            Pitch(2),
            Pitch(3),
            Pitch(0),
            Pitch(1),
            To,
            Waits,
            NewEvent,
        ],
    ),
    cl(
        "clEnqueueWriteBufferRect",
        CopyRect,
        11,
        &[
            Lane,
            To,
            Blocking,
            Sizes(0),
            Sizes(1),
            Sizes(2),
            Pitch(0),
            Pitch(1),
            Pitch(2),
            Pitch(3),
            From,
            Waits,
            NewEvent,
        ],
    ),
    cl(
        "clEnqueueCopyBufferRect",
        CopyRect,
        10,
        &[
            Lane,
            From,
            To,
            Sizes(1),
            Sizes(0),
            Sizes(2),
            Pitch(2),
            Pitch(3),
            Pitch(0),
            Pitch(1),
            Waits,
            NewEvent,
        ],
    ),
    cl(
        "clEnqueueReadImage",
        CopyRect,
        8,
        &[
            Lane,
            From,
            Blocking,
            Sizes(1),
            Sizes(2),
            Pitch(0),
            Pitch(1),
            To,
            Waits,
            NewEvent,
        ],
    ),
    cl(
        "clEnqueueWriteImage",
        CopyRect,
        8,
        &[
            Lane,
            To,
            Blocking,
            Sizes(0),
            Sizes(2),
            Pitch(2),
            Pitch(3),
            From,
            Waits,
            NewEvent,
        ],
    ),
    cl(
        "clEnqueueCopyImage",
        CopyRect,
        6,
        &[
            Lane,
            From,
            To,
            Sizes(1),
            Sizes(0),
            Sizes(2),
            Waits,
            NewEvent,
        ],
    ),
    cl(
        "clEnqueueCopyImageToBuffer",
        CopyRect,
        6,
        &[
            Lane,
            From,
            To,
            Sizes(1),
            Sizes(2),
            Pitch(1),
            Waits,
            NewEvent,
        ],
    ),
    cl(
        "clEnqueueCopyBufferToImage",
        CopyRect,
        6,
        &[
            Lane,
            From,
            To,
            Pitch(3),
            Sizes(0),
            Sizes(2),
            Waits,
            NewEvent,
        ],
    ),
    cl(
        "clEnqueueFillImage",
        Fill,
        5,
        &[Lane, To, Value, Sizes(0), Sizes(2), Waits, NewEvent],
    ),
    cl(
        "clEnqueueMapImage",
        Map,
        8,
        &[
            Lane,
            To,
            Blocking,
            Words(MAP_FLAGS),
            Sizes(0),
            Sizes(2),
            Unused,
            Unused,
            Waits,
            NewEvent,
        ],
    ),
    cl(
        "clEnqueueMigrateMemObjects",
        Migrate,
        3,
        &[Lane, To, ParamRole::Flags(MIGRATION_FLAGS), Waits, NewEvent],
    ),
    cl(
        "clEnqueueSVMMemcpy",
        Copy,
        4,
        &[Lane, Blocking, To, From, Bytes, Waits, NewEvent],
    ),
    cl(
        "clEnqueueFillBuffer",
        Fill,
        3,
        &[Lane, To, Value, ParamRole::Extent, Waits, NewEvent],
    ),
    cl(
        "clEnqueueSVMMemFill",
        Fill,
        3,
        &[Lane, To, Value, Waits, NewEvent],
    ),
    cl(
        "clEnqueueMapBuffer",
        Map,
        4,
        &[
            Lane,
            To,
            Blocking,
            Words(MAP_FLAGS),
            ParamRole::Extent,
            Waits,
            NewEvent,
        ],
    ),
    cl(
        "clEnqueueSVMMap",
        Map,
        4,
        &[
            Lane,
            Blocking,
            Words(MAP_FLAGS),
            To,
            ParamRole::Extent,
            Waits,
            NewEvent,
        ],
    ),
    cl(
        "clEnqueueUnmapMemObject",
        Unmap,
        2,
        &[Lane, To, Waits, NewEvent],
    ),
    cl("clEnqueueSVMUnmap", Unmap, 2, &[Lane, To, Waits, NewEvent]),
    cl(
        "clEnqueueMarkerWithWaitList",
        Marker,
        1,
        &[Lane, Waits, NewEvent],
    ),
    cl(
        "clEnqueueBarrierWithWaitList",
        Barrier,
        1,
        &[Lane, Waits, NewEvent],
    ),
    cl("clFlush", Flush, 1, &[Lane]),
    waiting(cl("clFinish", Finish, 1, &[Lane])),
    waiting(cl("clWaitForEvents", Wait, 1, &[Waits])),
    cl("clCreateUserEvent", CreateUser, 0, &[Context, Unused]),
    cl(
        "clSetUserEventStatus",
        SetUser,
        2,
        &[Event, Words(SET_STATUSES)],
    ),
    cl(
        "clSetEventCallback",
        Callback,
        3,
        &[Event, Words(CALLBACK_STATUSES), Function, Unused],
    ),
    cl(
        "clGetEventInfo",
        Status,
        3,
        &[Event, Words(STATUS_QUERY), ParamRole::Status],
    ),
    cl("clReleaseCommandQueue", Release, 1, &[Lane]),
    cl("clReleaseMemObject", ReleaseMemory, 1, &[ParamRole::Freed]),
    cl("clRetainMemObject", RetainMemory, 1, &[To]),
    cl("clSVMFree", EndOfLife, 1, &[Context, ParamRole::Freed]),
    cl("end_of_life", EndOfLife, 1, &[ParamRole::Freed]),
    cl("ended", Ended, 1, &[ParamRole::Object]),
    cl("used_after_end", UsedAfterEnd, 1, &[ParamRole::Object]),
    cl("clReleaseEvent", ReleaseEvent, 1, &[Event]),
    cl("clRetainEvent", RetainEvent, 1, &[Event]),
    device(
        "enqueue_kernel",
        EnqueueKernel,
        6,
        &[
            ParamRole::Queue,
            Words(START_FLAGS),
            ParamRole::Range,
            Waits,
            NewEvent,
            ParamRole::Block,
            ParamRole::LocalBytes,
            ParamRole::LocalBytes,
            ParamRole::LocalBytes,
        ],
    ),
    device(
        "enqueue_marker",
        EnqueueMarker,
        3,
        &[ParamRole::Queue, Waits, NewEvent],
    ),
    device("get_default_queue", DefaultQueue, 0, &[]),
    device("create_user_event", CreateUser, 0, &[]),
    device(
        "set_user_event_status",
        SetUser,
        2,
        &[Event, Words(SET_STATUSES)],
    ),
    device("release_event", ReleaseEvent, 1, &[Event]),
    device("retain_event", RetainEvent, 1, &[Event]),
];

/// Whether a call has a result, so that it is an expression and no statement.
pub(in crate::isa::clike) fn is_value(word: &str) -> bool {
    ROWS.iter()
        .any(|row| row.name == word && row.does == Status && row.runtime == Runtime::Cuda)
}

/// Calls of kernels that are refused.
const REFUSED: &[&str] = &["capture_event_profiling_info"];

/// Whether a word looks like a runtime call, by its beginning.
pub(in crate::isa::clike) fn is_call(word: &str) -> bool {
    // Those of the host begin with the name of the runtime, but for notes about lives.
    let is_word =
        |row: &CallRow| row.of_device || matches!(row.does, EndOfLife | Ended | UsedAfterEnd);
    if REFUSED.contains(&word) || ROWS.iter().any(|row| row.name == word && is_word(row)) {
        return true;
    }
    let rest = word
        .strip_prefix("cuda")
        .or_else(|| word.strip_prefix("cl"));
    rest.and_then(|r| r.chars().next())
        .is_some_and(|c| c.is_ascii_uppercase())
}
