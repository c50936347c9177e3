//! The `fencepost` binary: everything is in [`fencepost::cli`].

use std::process::ExitCode;

use streams::CountingAllocator;

/// A third of the work is memory that lives for one question.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    streams::keep_freed_memory();
    fencepost::cli::run(std::env::args_os())
}
