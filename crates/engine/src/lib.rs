//! Checks a test against a model: answers questions with one engine or with all.
//!
//! | Module | Content |
//! |---|---|
//! | [`skeleton`] | what a program fixes: events, guards, values, base relations |
//! | [`task`] | one test under one model at one loop bound, ready for any engine |
//! | `enumerate` | the engine that tries every candidate, with bounds |
//! | `symbolic` | the engines that use a solver: Z3, or one in Rust |
//! | [`liveness`] | questions about executions that never end |
//! | [`replay`] | the plain evaluator that every witness passes before it leaves the crate |
//! | [`fault`] | the faults of an execution that a model flags |
//! | `initial` | which reads can observe memory before any write to it |

mod bounds;
pub mod computed;
pub mod engines;
mod enumerate;
pub mod eval;
mod excluded;
pub mod execution;
pub mod fault;
mod initial;
pub mod limits;
pub mod liveness;
mod objects;
pub mod query;
pub mod replay;
pub mod skeleton;
mod sums;
mod symbolic;
pub mod task;
pub mod witness;
pub mod z3_version;

pub use limits::{Engine, Limits};
pub use liveness::{Liveness, ProgressModel};
