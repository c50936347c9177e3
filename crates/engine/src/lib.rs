//! Checks a test against a model: answers questions with one engine or with all.
//!
//! | Module | Content |
//! |---|---|
//! | [`skeleton`] | what a program fixes: events, guards, values, base relations |
//! | [`task`] | one test under one model at one loop bound |
//! | [`facts`] | everything known about a task before solving, for any engine |
//! | `enumerate` | the engine that tries every candidate, with bounds |
//! | `symbolic` | the engines that use a solver: Z3, or one in Rust |
//! | [`liveness`] | questions about executions that never end |
//! | [`replay`] | the plain evaluator that every witness passes before it leaves the crate |
//! | [`fault`] | the faults of an execution that a model flags |
//! | `initial` | which reads can observe memory before any write to it |

pub mod computed;
pub mod engines;
mod enumerate;
pub mod eval;
pub mod execution;
mod expressible;
pub mod facts;
pub mod fault;
mod initial;
pub mod limits;
pub mod liveness;
pub mod query;
pub mod replay;
pub mod skeleton;
mod symbolic;
pub mod task;
#[cfg(test)]
mod tests;
pub mod thin_air;
pub mod witness;
pub mod z3_version;

pub use limits::{Engine, Limits};
pub use liveness::{Liveness, ProgressModel};
