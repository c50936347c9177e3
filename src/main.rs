//! The `fencepost` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    match fencepost::check::z3_version::check() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
