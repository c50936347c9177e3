//! The ordering rules of host programs: each edge of the launch graph that orders memory rests on
//! exactly one.
//!
//! # Sources
//! - OpenCL API specification, *Memory Ordering Rules: Host-side and Device-side Commands* (below:
//!   Commands).
//! - CUDA driver API and CUDA runtime API, by section title.
//! # Where we differ
//! - An operation precedes the completion of its kernel by a chain of three rules here: end of its
//!   work-group, end of the kernel, completion. The texts also state the conclusion.
//! - The texts say that setting a user event synchronizes with the commands that wait for it. Here
//!   this is the event's completion, to which the rules of wait lists apply.
//! - For queries, the texts say: for the purposes of Unified Memory, `cudaSuccess` is equivalent to
//!   having called the function that waits. Here this covers all memory, since completion does not
//!   depend on the kind of memory.

macro_rules! rules {
    ($($name:ident $id:literal $doc:literal $source:literal;)*) => {
        /// An ordering rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Rule {
            $(#[doc = $doc] $name,)*
        }

        impl Rule {
            /// All rules, in order.
            pub const ALL: &'static [Rule] = &[$(Rule::$name),*];

            /// Its short name.
            pub fn id(self) -> &'static str {
                match self { $(Rule::$name => $id),* }
            }

            /// The text of the rule.
            pub fn doc(self) -> &'static str {
                match self { $(Rule::$name => $doc),* }
            }

            /// The section that states it.
            pub fn source(self) -> &'static str {
                match self { $(Rule::$name => $source),* }
            }
        }
    };
}

rules! {
    Issue "H1"
        "the call that enqueues a command precedes its start; for calls of a kernel this covers \
         fine-grained shared virtual memory only"
        "OpenCL API, Commands, rule 1";
    WaitList "H2"
        "an event of the wait list precedes the start of the command"
        "OpenCL API, Commands, rule 2";
    OwnEvent "H3" "the end of a command precedes its completion" "OpenCL API, Commands, rule 3";
    WaitForEvents "H4"
        "an event precedes the return from a call that waits for it"
        "OpenCL API, Commands, rule 4; clWaitForEvents";
    InOrder "H5"
        "commands of an in-order queue follow one another"
        "OpenCL API, Commands, rule 5; Execution Model";
    Marker "H6"
        "all earlier commands of the queue precede a marker without wait list"
        "OpenCL API, Commands, rule 6";
    BarrierAfter "H7a"
        "all earlier commands of the queue precede a barrier without wait list"
        "OpenCL API, Commands, rule 7";
    BarrierBefore "H7b"
        "a barrier without wait list precedes all later commands of the queue"
        "OpenCL API, Commands, rule 7";
    Finish "H8"
        "all earlier commands of the queue precede the return from clFinish"
        "OpenCL API, Commands, rule 8";
    KernelStart "H9"
        "the start of a command precedes all its operations"
        "OpenCL API, Commands, rule 9";
    KernelEnd "H10"
        "an operation precedes the end of its work-group"
        "OpenCL API, Commands, rule 10; Execution Model";
    Callback "H11"
        "an event precedes the callback registered for its completion"
        "OpenCL API, Commands, rule 11; clSetEventCallback";
    UserEvent "H12"
        "setting a user event precedes its completion"
        "OpenCL API, Commands, rule 12; clSetUserEventStatus";
    WaitKernel "H13"
        "the end of the parent precedes the start of a child enqueued with WAIT_KERNEL"
        "OpenCL API, Commands, rule 13";
    WaitWorkGroup "H14"
        "the end of the enqueuing work-group precedes the start of a child enqueued with \
         WAIT_WORK_GROUP"
        "OpenCL API, Commands, rule 14";
    Blocking "D1"
        "a command precedes the return from the blocking call that enqueues it"
        "OpenCL API, Execution Model: blocking commands";
    Family "D2"
        "a child precedes the completion of its parent"
        "OpenCL API, Execution Model: command states; CUDA Programming Guide, CUDA Dynamic \
         Parallelism: parent and child grids";
    GroupEnd "D3"
        "the end of a work-group precedes the end of its command"
        "OpenCL API, Execution Model: command states";
    BarrierList "D4"
        "a barrier with a wait list precedes all later commands of the queue"
        "OpenCL API, clEnqueueBarrierWithWaitList";
    Initializer "D6"
        "initialisers of program-scope variables precede the kernels of the device"
        "OpenCL API, Execution Model: program initialization";
    HostOrder "D8"
        "the calls and accesses of a host thread follow one another"
        "ISO C, 5.1.2.3; OpenCL API, Execution Model";
    Launch "S1"
        "a launch precedes the start of the launched work"
        "CUDA Programming Guide, Asynchronous Concurrent Execution";
    Stream "S2" "work of a stream follows one another" "CUDA runtime API, Stream Management";
    NullAfter "S3"
        "the legacy default stream waits for all blocking streams"
        "CUDA driver API, Stream synchronization behavior";
    NullBefore "S4"
        "all blocking streams wait for the legacy default stream"
        "CUDA driver API, Stream synchronization behavior";
    StreamWaitEvent "S5"
        "captured work precedes later work of a stream that waits for the event"
        "CUDA runtime API, cudaStreamWaitEvent";
    StreamSynchronize "S6"
        "earlier work of a stream precedes the return from cudaStreamSynchronize"
        "CUDA runtime API, cudaStreamSynchronize";
    DeviceSynchronize "S7"
        "earlier work of the device precedes the return from cudaDeviceSynchronize"
        "CUDA runtime API, cudaDeviceSynchronize";
    EventSynchronize "S8"
        "captured work precedes the return from cudaEventSynchronize"
        "CUDA runtime API, cudaEventSynchronize";
    SynchronousCopy "S9"
        "a synchronous copy precedes the return from the call"
        "CUDA driver API, API synchronization behavior";
    LaunchBody "S10"
        "the start of a kernel, copy or host function precedes all it does"
        "CUDA Programming Guide, Kernels";
    TailLaunch "S12"
        "the parent, all it launches otherwise and its earlier tail launches precede the start of \
         a tail launch"
        "CUDA Programming Guide, CUDA Dynamic Parallelism: tail launch stream";
    EventQuery "S13"
        "captured work precedes a cudaEventQuery that returns cudaSuccess"
        "CUDA runtime API, cudaEventQuery";
    StreamQuery "S14"
        "earlier work of a stream precedes a cudaStreamQuery that returns cudaSuccess"
        "CUDA runtime API, cudaStreamQuery";
    GridWait "S15"
        "the completion of the kernel on which its own depends precedes the return from \
         griddepcontrol.wait"
        "PTX ISA, griddepcontrol; CUDA Programming Guide, Programmatic Dependent Launch";
    LaunchEnd "S11"
        "all that a kernel, copy or host function does precedes its end"
        "CUDA Programming Guide, Kernels";
}

/// A set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleSet(u64);

impl Default for RuleSet {
    fn default() -> RuleSet {
        RuleSet(u64::MAX)
    }
}

impl RuleSet {
    /// Whether the rule holds.
    pub fn has(self, rule: Rule) -> bool {
        self.0 >> (rule as u32) & 1 != 0
    }

    /// The set without a rule.
    pub fn without(self, rule: Rule) -> RuleSet {
        RuleSet(self.0 & !(1 << (rule as u32)))
    }
}
