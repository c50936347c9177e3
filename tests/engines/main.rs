//! Checks the decisions of the engines: against each other, against authorities that share nothing
//! with them, and under changes of a program that must have no effect.
//!
//! The number of random programs has two settings: see `testkit::suite::programs`.

mod agreement;
mod bounds;
mod bytewise;
mod clike;
mod device;
mod fixed;
mod interleaving;
mod kept;
mod library_barriers;
mod liveness;
mod mapping;
mod memory_kinds;
mod metamorphic;
mod mutants;
mod needed;
mod orders;
mod outcomes;
mod phases;
mod polls;
mod sequential;
mod spirv;
mod steady;
mod stopped;
mod together;
mod vectors;
