//! Tests whose names come from files: expectations of tests, expectations of runs, numbered
//! programs, the book.
//!
//! Arguments are those of the standard harness: `cargo test --test corpus -- skeleton enumerate`
//! runs the matching tests.

mod book;
mod expectations;
mod kernels;
mod programs;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let trials = [
        expectations::trials(),
        kernels::trials(),
        programs::trials(),
        book::trials(),
    ];
    libtest_mimic::run(
        &Arguments::from_args(),
        trials.into_iter().flatten().collect(),
    )
    .exit_code()
}
