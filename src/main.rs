//! The `fencepost` binary: everything is in [`fencepost::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    fencepost::cli::run(std::env::args_os())
}
