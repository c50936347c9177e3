//! What code says to the runtime: CUDA's runtime API and OpenCL's host API, and what kernels
//! enqueue, as statements.
//!
//! The calls are the table in [`calls`]; a new one is a row there. A statement becomes a
//! [`Request`], whose operands are looked up in the [`Names`] that the test declares; what requests
//! come to is put together where all threads are known.
//!
//! # Sources
//! - CUDA runtime API, *Stream Management*, *Event Management*, *Execution Control*, *Memory
//!   Management*.
//! - OpenCL API specification, *The OpenCL Runtime*.
//! # Where we differ
//! - Counts of lists may be left out, since a list `{e, f}` says its own length, and so may
//!   operands at the end.
//! - A call stands in no branch and no loop: who enqueues what is known before the program runs.
//!   Queries may.

mod advice;
mod calls;
mod device;
mod lifetimes;
mod lower;
mod names;
mod operands;
mod query;
mod state;

pub use calls::Does;
pub(super) use calls::{is_call, is_value};
pub use names::{Name, Names, Request};
pub(super) use state::HostState;
