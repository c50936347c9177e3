//! Tests of the built binary from outside.

mod advise;
mod bad_input;
mod by_hand;
mod ci;
mod compare;
mod compiled;
mod compiler_explorer;
mod compilers;
mod distinguish;
mod every_launch;
mod explain;
mod forms;
mod guidelines;
mod kernels;
mod large;
mod last_calls;
mod limits;
mod lsp;
mod mappings;
mod mcp;
mod modules;
mod outcomes;
mod pipelines;
mod programs;
mod races;
mod readings;
mod reuse;
mod run;
mod sources;
mod spirv;
mod streams;
mod tiles;
mod undefined;
mod unknown;
mod unwritten;
mod vacuous;
mod with;
mod z3_program;

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The output of the binary.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl From<Output> for Said {
    fn from(
        Output {
            status,
            stdout,
            stderr,
        }: Output,
    ) -> Said {
        let text = |bytes| String::from_utf8(bytes).expect("what is said is UTF-8");
        Said {
            code: status.code(),
            out: text(stdout),
            err: text(stderr),
        }
    }
}

/// The binary in a folder, with empty standard input.
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command
        .args(arguments)
        .current_dir(folder)
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    command
}

/// Runs the binary in a folder.
fn fencepost(folder: &Path, arguments: &[&str]) -> Said {
    command(folder, arguments)
        .output()
        .expect("the binary was built for this test")
        .into()
}
