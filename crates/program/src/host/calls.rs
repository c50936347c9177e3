//! The calls and queries by which host threads use the runtime, and the lanes, handles and commands
//! that these name.

use std::ops::RangeInclusive;

use super::rules::RuleSet;
use crate::ThreadId;
use diag::Span;

/// Index into [`HostProgram::lanes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneId(pub u16);

/// Index into [`HostProgram::commands`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommandId(pub u16);

/// Index into [`HostProgram::calls`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u16);

/// Index into [`HostProgram::handles`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HandleId(pub u16);

/// Index into [`HostProgram::queries`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueryId(pub u16);

/// The actions of host threads apart from memory accesses.
#[derive(Clone, Debug, Default)]
pub struct HostProgram {
    /// Streams and queues.
    pub lanes: Vec<Lane>,
    /// User events (OpenCL) and events that are recorded (CUDA).
    pub handles: Vec<Handle>,
    /// All enqueued commands, in the order of the calls; a child follows its parent.
    pub commands: Vec<HostCommand>,
    /// Every call of a host thread.
    pub calls: Vec<RuntimeCall>,
    /// All queries: places at which a host thread queries whether an event or a lane is complete.
    pub queries: Vec<HostQuery>,
    /// The ordering rules in force. A test may remove one to show which orderings depend on it.
    pub rules: RuleSet,
    /// The orders in which calls are issued; an order may leave calls out. `None`: all calls, in
    /// any order.
    pub orders: Option<Vec<Vec<CallId>>>,
    /// The uses of things whose life has ended, by the code itself.
    pub late_uses: Vec<LateUse>,
}

/// The use of memory, a stream, a queue or an event whose life has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateUse {
    /// The place of the use.
    pub used: Span,
    /// The place of the end, if it is known.
    pub ended: Option<Span>,
    /// What is used, in a sentence: ``the stream `s` ``.
    pub object: String,
}

impl HostProgram {
    /// The lane with that index.
    pub fn lane(&self, id: LaneId) -> &Lane {
        &self.lanes[usize::from(id.0)]
    }

    /// The command with that index.
    pub fn command(&self, id: CommandId) -> &HostCommand {
        &self.commands[usize::from(id.0)]
    }

    /// The name of a command in reports, with a number if several commands share the name.
    pub fn name_of(&self, id: CommandId) -> String {
        let name = &self.command(id).name;
        let mut same = self
            .command_ids()
            .filter(|c| self.command(*c).name == *name);
        match self.commands.iter().filter(|c| c.name == *name).count() {
            1 => name.clone(),
            _ => format!("{name}.{}", same.position(|c| c == id).map_or(0, |n| n + 1)),
        }
    }

    /// The call with that index.
    pub fn call(&self, id: CallId) -> &RuntimeCall {
        &self.calls[usize::from(id.0)]
    }

    /// The query with that index.
    pub fn query(&self, id: QueryId) -> &HostQuery {
        &self.queries[usize::from(id.0)]
    }

    /// The handle with that index.
    pub fn handle(&self, id: HandleId) -> &Handle {
        &self.handles[usize::from(id.0)]
    }

    /// The command that a thread belongs to; `None` for a host thread.
    pub fn command_of(&self, thread: ThreadId) -> Option<CommandId> {
        // A command has many threads, in ascending order.
        let has = |c: &HostCommand| c.threads.binary_search(&thread).is_ok();
        let at = self.commands.iter().position(has)?;
        Some(CommandId(at as u16))
    }

    /// The host-enqueued command from which a thread's command descends; the command itself if the
    /// host enqueued it. `None` for a host thread.
    pub fn family_of(&self, thread: ThreadId) -> Option<CommandId> {
        let mut id = self.command_of(thread)?;
        while let CommandOrigin::Device { parent, .. } = self.command(id).origin {
            id = parent;
        }
        Some(id)
    }

    /// Commands in order.
    pub fn command_ids(&self) -> impl Iterator<Item = CommandId> + use<> {
        (0..self.commands.len() as u16).map(CommandId)
    }

    /// Calls in order.
    pub fn call_ids(&self) -> impl Iterator<Item = CallId> + use<> {
        (0..self.calls.len() as u16).map(CallId)
    }
}

/// A stream or a command queue.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// The order among its commands.
    pub kind: LaneKind,
    /// The device that runs its commands.
    pub device: u32,
}

/// The kinds of lanes, which order their commands differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaneKind {
    /// OpenCL: an in-order queue of the host.
    InOrder,
    /// OpenCL: an out-of-order queue of the host.
    OutOfOrder,
    /// OpenCL: a queue on the device, which is always out of order.
    OnDevice,
    /// CUDA: a stream; a blocking one synchronizes with the legacy default stream.
    Stream {
        /// Created without `cudaStreamNonBlocking`.
        blocking: bool,
    },
    /// CUDA: the legacy default stream of a device.
    Null,
}

impl LaneKind {
    /// Whether it is a stream of CUDA.
    pub fn is_stream(self) -> bool {
        matches!(self, LaneKind::Stream { .. } | LaneKind::Null)
    }
}

/// An event that does not belong to a single command.
#[derive(Clone, Debug)]
pub struct Handle {
    /// Its name.
    pub name: String,
    /// What completes it.
    pub kind: HandleKind,
    /// Its status at the end: 0, or a negative one if the host says that it failed.
    pub status: i64,
}

/// The kinds of events that do not belong to a single command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandleKind {
    /// OpenCL: a user event, set by the host.
    User,
    /// CUDA: an event that represents the work captured by its latest record.
    Recorded,
}

/// An event that a command or a host call can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ref {
    /// The event of a command.
    Command(CommandId),
    /// A user event or a recorded event.
    Handle(HandleId),
}

/// An enqueued command.
#[derive(Clone, Debug)]
pub struct HostCommand {
    /// Its name in reports: the kernel's name, or the name of the enqueuing function.
    pub name: String,
    /// Its kind.
    pub kind: CommandKind,
    /// Its lane; `None`: a callback, which is in no queue.
    pub lane: Option<LaneId>,
    /// Its wait list.
    pub waits: Vec<Ref>,
    /// The call or thread that enqueues it.
    pub origin: CommandOrigin,
    /// The threads that execute it, in order; a copy has one, a marker none.
    pub threads: Vec<ThreadId>,
    /// The work-group of each thread, counted from 0.
    pub groups: Vec<u32>,
    /// CUDA: a kernel launched with programmatic stream serialization. It may start before the
    /// preceding kernel of its stream, on which it *depends*, has ended.
    pub programmatic: bool,
}

impl HostCommand {
    /// The number of work-groups.
    pub fn group_count(&self) -> u32 {
        self.groups.last().map_or(0, |g| g + 1)
    }

    /// The work-group of one of its threads.
    pub fn group_of(&self, thread: ThreadId) -> u32 {
        let at = self.threads.binary_search(&thread).ok();
        at.map_or(0, |at| self.groups[at])
    }
}

/// The kinds of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandKind {
    /// Runs a kernel.
    Kernel,
    /// Runs the initialisers of program-scope variables, before every kernel of a device (OpenCL).
    Initializer {
        /// The device.
        device: u32,
    },
    /// Copies, fills, reads or writes memory.
    Copy,
    /// Makes memory accessible to the host (OpenCL).
    Map,
    /// Ends a mapping (OpenCL).
    Unmap,
    /// A point in the queue.
    Marker,
    /// A marker that later commands wait for.
    Barrier,
    /// A user event of a kernel, which is complete as soon as a thread sets it (OpenCL).
    UserEvent,
    /// A host function that runs in stream order (CUDA).
    HostFunction,
    /// A host function that runs some time after an event has reached a status (OpenCL).
    Callback {
        /// The event.
        of: Ref,
        /// Registered for `CL_COMPLETE`; other statuses order nothing.
        complete: bool,
    },
}

impl CommandKind {
    /// Whether the runtime executes it, rather than the threads of a kernel.
    pub fn is_of_runtime(self) -> bool {
        !matches!(self, CommandKind::Kernel | CommandKind::Initializer { .. })
    }
}

/// The origin of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandOrigin {
    /// A call of the host.
    Call(CallId),
    /// Enqueued at the start: it runs before all other commands.
    Start,
    /// A thread of another command (OpenCL, `enqueue_kernel`).
    Device {
        /// The command that the thread belongs to.
        parent: CommandId,
        /// The thread, whose code contains a [`crate::Op::Enqueue`] for the call.
        thread: ThreadId,
        /// When the child may start.
        flag: ChildStart,
    },
}

/// When a command that a kernel enqueues may start (OpenCL C, *Determining when a Child Kernel
/// Begins Execution*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChildStart {
    /// `CLK_ENQUEUE_FLAGS_NO_WAIT`: at once.
    NoWait,
    /// `CLK_ENQUEUE_FLAGS_WAIT_KERNEL`: when all work-items of the parent have ended.
    WaitKernel,
    /// `CLK_ENQUEUE_FLAGS_WAIT_WORK_GROUP`: when the work-group of the thread has ended.
    WaitWorkGroup,
    /// CUDA, `cudaStreamTailLaunch`: when the parent has ended and everything else that it launched
    /// is complete.
    Tail,
}

/// A call of the runtime by a host thread.
#[derive(Clone, Debug)]
pub struct RuntimeCall {
    /// The calling thread, whose code contains a [`crate::Op::Call`] for the call.
    pub thread: ThreadId,
    /// The operation.
    pub op: HostOp,
}

/// The operation of a runtime call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostOp {
    /// Enqueues a command. A blocking call returns when the command is complete.
    Enqueue {
        /// The command.
        command: CommandId,
        /// Whether the call returns only when the command is complete.
        blocking: bool,
    },
    /// Waits for events: `clWaitForEvents`, `cudaEventSynchronize`.
    Wait(Vec<Ref>),
    /// Waits for all earlier commands of a lane: `clFinish`, `cudaStreamSynchronize`.
    Finish(LaneId),
    /// Submits the earlier commands of a queue: `clFlush`.
    Flush(LaneId),
    /// Waits for all earlier commands of a device: `cudaDeviceSynchronize`.
    SyncDevice(u32),
    /// Makes a user event: `clCreateUserEvent`.
    CreateUser(HandleId),
    /// Completes a user event: `clSetUserEventStatus`.
    SetUser(HandleId),
    /// Captures the earlier work of a stream: `cudaEventRecord`.
    Record(HandleId, LaneId),
    /// Makes later work of a stream wait: `cudaStreamWaitEvent`.
    LaneWait(LaneId, HandleId),
    /// Releases a lane: `cudaStreamDestroy`, `clReleaseCommandQueue`. Its commands still run.
    Release(LaneId),
}

/// A place at which a host thread queries whether an event or a lane is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostQuery {
    /// The querying thread, whose code contains a [`crate::Op::Status`] for the query.
    pub thread: ThreadId,
    /// The subject of the query.
    pub of: QuerySubject,
    /// Set if the subject is never complete.
    pub never: Option<NeverComplete>,
}

/// The statuses of a subject that is never complete. The values are those of OpenCL: 3 is
/// `CL_QUEUED`, 2 `CL_SUBMITTED`, and 1 `CL_RUNNING`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeverComplete {
    /// The lowest status that it reaches.
    pub lowest: i64,
    /// The highest status in which it may stay forever.
    pub stays: i64,
}

/// The subject of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QuerySubject {
    /// An event.
    Event(Ref),
    /// The earlier work of a stream.
    Lane(LaneId),
}

impl HostQuery {
    /// Whether the answer "complete" orders memory.
    pub fn orders(&self, host: &HostProgram) -> bool {
        match self.of {
            QuerySubject::Event(Ref::Handle(h)) => host.handle(h).kind == HandleKind::Recorded,
            QuerySubject::Event(Ref::Command(_)) => false,
            QuerySubject::Lane(_) => true,
        }
    }

    /// The answer for what is complete: 0, or the negative status of a failed event.
    pub fn complete(&self, host: &HostProgram) -> i64 {
        match self.of {
            QuerySubject::Event(Ref::Handle(h)) => host.handle(h).status,
            _ => 0,
        }
    }

    /// The answers other than "complete". CUDA has one such answer. A user event of OpenCL is
    /// `CL_SUBMITTED` until it is set; a command is queued, submitted or running.
    pub fn incomplete(&self, host: &HostProgram) -> RangeInclusive<i64> {
        let all = match self.of {
            QuerySubject::Event(Ref::Handle(h)) if host.handle(h).kind == HandleKind::User => 2..=2,
            QuerySubject::Event(Ref::Command(_)) => 1..=3,
            _ => 1..=1,
        };
        let lowest = self.never.map_or(1, |never| never.lowest);
        lowest.max(*all.start())..=*all.end()
    }
}
