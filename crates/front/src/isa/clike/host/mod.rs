//! Lowers calls of the runtime, as statements: CUDA's runtime API, OpenCL's host API, and enqueues
//! by kernels.
//!
//! [`calls`] has the table of calls; a new call is one row there. A statement becomes a [`Request`]
//! with its operands looked up in the [`Names`] that the test declares. The code that knows all
//! threads gives the requests their meaning.
//!
//! # Sources
//! - CUDA runtime API, *Stream Management*, *Event Management*, *Execution Control*, *Memory
//!   Management*.
//! - OpenCL API specification, *The OpenCL Runtime*.
//! # Where we differ
//! - The count of a list is optional, since a list `{e, f}` has a length. Operands at the end are
//!   optional, too.
//! - A call must not be in a branch or a loop, so that the commands of each thread are known before
//!   the program runs. A query may be.

mod advice;
mod calls;
mod device;
mod images;
mod lifetimes;
mod lower;
mod names;
mod operands;
mod query;
mod state;

pub use calls::CallAction;
pub(super) use calls::{is_call, is_value};
pub use names::{Name, Names, Request};
pub(super) use state::HostState;
