//! Compares runs with the models.
//!
//! `tests/corpus` checks the expectations about runs of the repository's tests.

mod buffering;
mod counts;
mod hangs;
mod languages;
mod loops;
mod misuse;
mod outcomes;
mod proxies;
mod trace;
