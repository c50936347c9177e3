//! `fencepost schema`: the JSON schema of the TOML test format.

use super::{exit, seams, terminal::Terminal};

/// Runs it; returns the exit code.
pub(super) fn run(terminal: &Terminal) -> u8 {
    terminal.printed(&format!("{:#}\n", seams::schema()), exit::OK)
}
