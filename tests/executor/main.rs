//! What runs show, held against what the models allow.
//!
//! What the tests of the repository expect of runs is judged with all that they expect
//! (`tests/corpus`).

mod buffering;
mod counts;
mod hangs;
mod languages;
mod loops;
mod outcomes;
mod trace;
