//! `fencepost schema`: the JSON schema of the TOML test format, or of `fencepost.toml`.

use super::args::SchemaArgs;
use super::{config, exit, seams, terminal::Terminal};

/// Runs it; returns the exit code.
pub(super) fn run(args: &SchemaArgs, terminal: &Terminal) -> u8 {
    let schema = match args.config {
        true => config::schema(),
        false => seams::schema(),
    };
    terminal.printed(&format!("{schema:#}\n"), exit::OK)
}
