//! What the engines decide, held against each other, against authorities that share nothing with
//! them, and against changes of a program that must not matter.
//!
//! Random programs come in two sizes: `testkit::suite::programs` says which.

mod agreement;
mod bounds;
mod bytewise;
mod clike;
mod device;
mod fixed;
mod interleaving;
mod kept;
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
mod stopped;
mod together;
mod vectors;
