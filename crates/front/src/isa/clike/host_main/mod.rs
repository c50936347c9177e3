//! Follows `main` of a source file: computes the values that are known before the program runs, and
//! leaves a host program as tests write it.
//!
//! The result has the memory that the program allocates, its streams and events, each kernel with
//! the arguments of a launch, and the statements of the host threads. Loops over known values are
//! gone, and functions are in place. The mechanism of host programs gives all this its meaning.
//!
//! # Invariants
//! - A construct that is not modelled ends the following, with an error at its place.
//! - A known value depends on neither the device nor another thread.
//! - A path that depends on the device is followed both ways: each way is one program.
//!
//! # Sources
//! - ISO C++, stmt, expr; CUDA runtime API, *Memory Management*, *Stream Management*, *Event
//!   Management*, *API synchronization behavior*.
//!
//! # Where we differ
//! - Calls of the runtime succeed, and return `cudaSuccess`.
//! - Output is not computed.

mod access;
mod algorithms;
mod atomics;
mod cell_values;
mod choices;
mod class_parser;
mod classes;
mod code;
mod constants;
mod evaluate;
mod expressions;
mod graph_nodes;
mod graphs;
mod images;
mod launches;
mod library;
mod long_loops;
mod machine;
mod opencl;
mod operators;
mod outside;
mod parser;
mod records;
mod runtime;
mod samples;
mod stops;
mod symbols;
mod templates;
mod threads;
mod trace;
mod transfers;
mod tree;
mod values;
mod virtual_memory;

pub use code::HostCode;
pub use constants::Constants;
pub use trace::{ProgramArgument, ProgramKernel, ProgramMemory, ProgramTrace};
pub use values::LaunchRange;
