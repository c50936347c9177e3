//! `fencepost completions` and `fencepost man`: made from the argument definitions, so that they
//! agree with `--help`.

use std::fs;
use std::io;
use std::path::Path;

use clap::CommandFactory;

use super::args::{Cli, CompletionsArgs, ManArgs};
use super::exit;
use super::terminal::{Terminal, cannot_write};

/// Prints the completions of a shell; returns the exit code.
pub(super) fn completions(args: &CompletionsArgs, terminal: &Terminal) -> u8 {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "fencepost", &mut text);
    terminal.printed(&String::from_utf8_lossy(&text), exit::OK)
}

/// Prints the man page, or writes all of them into a folder; returns the exit code.
pub(super) fn run(args: &ManArgs, terminal: &Terminal) -> u8 {
    let Some(folder) = &args.output else {
        let mut page = Vec::new();
        // Writing to memory does not fail.
        let _ = clap_mangen::Man::new(Cli::command()).render(&mut page);
        return terminal.printed(&String::from_utf8_lossy(&page), exit::OK);
    };
    match write_all(folder) {
        Ok(()) => exit::OK,
        Err(error) => {
            terminal.diagnose(&cannot_write(folder, &error));
            exit::INVALID
        }
    }
}

/// One page per command: `fencepost.1`, `fencepost-check.1`, …
fn write_all(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Cli::command(), folder)
}
