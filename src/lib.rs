//! Fencepost: a memory-model checker for GPU programs.
#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub)]

pub mod algebra;
pub mod check;
pub mod cli;
pub mod diag;
pub mod litmus;
pub mod model;
pub mod program;
pub mod rel;
pub mod report;
pub mod skeleton;
pub mod verdict;
