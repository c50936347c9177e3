//! Host programs: host threads that enqueue commands on lanes (CUDA streams, OpenCL command
//! queues), and wait for them.
//!
//! Everything that runs is a thread of the [`Program`](super::Program): host threads, the
//! work-items of every kernel launch, and one thread for each copy, host function and callback.
//! Host threads use the runtime through [`RuntimeCall`]s, micro-ops of their code
//! ([`Op::Call`](super::Op::Call)), and enqueue [`HostCommand`]s. [`LaneStates`] computes
//! call by call which command waits for which. [`LaunchGraph`] does so for a whole program.
//!
//! # Invariants
//! - Every call executes exactly once: it is in no branch and no loop, and no thread returns before
//!   it. A status query is no call but a [`HostQuery`], another micro-op ([`super::Op::Status`]),
//!   and may be repeated.
//! - Threads of commands follow those of the host; a command's threads are consecutive, its groups
//!   in ascending order.
//! - Indices are valid in their tables, and the calls of a thread are numbered in the order of its
//!   code.
//! # Sources
//! - OpenCL API specification, *Execution Model*; *Memory Ordering Rules: Host-side and Device-side
//!   Commands*.
//! - CUDA driver API, *Stream synchronization behavior*, *API synchronization behavior*; CUDA
//!   runtime API, *Stream Management*, *Event Management*, *Execution Control*.

mod calls;
mod commands;
mod graph;
mod lanes;
mod orders;
mod partial;
mod query;
mod rules;
mod stuck;
mod submission;
mod touch;

pub use calls::{
    CallId, ChildStart, CommandId, CommandKind, CommandOrigin, Handle, HandleId, HandleKind,
    HostCommand, HostOp, HostProgram, HostQuery, Lane, LaneId, LaneKind, LateUse, NeverComplete,
    QueryId, QuerySubject, Ref, RuntimeCall,
};
pub use graph::{LaunchEdge, LaunchGraph, LaunchNode, Mask};
pub use lanes::{CallEffect, LaneStates, On, StartCondition};
pub use orders::{LaunchOrders, TooManyOrders};
pub use partial::{PartialLaunch, UnclearEffect};
pub use query::QueryView;
pub use rules::{Rule, RuleSet};
pub use stuck::{StuckWait, WaitLink};
