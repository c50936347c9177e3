//! Files of recorded runs: `--record` writes them, as do defects; `--schedule replay:FILE` reads
//! them.
//!
//! # Invariants
//! - A recording names its program; it is played on no other.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::cli::files;
use crate::cli::terminal::cannot_write;
use diag::Diagnostic;
use program::litmus::LitmusTest;
use simt::schedule::Recorded;
use simt::{self, MachineMemory};

/// The largest recording, in bytes.
const LARGEST: u64 = 256 << 20;

/// A file of recorded runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recording {
    /// The version of the format.
    pub(super) version: u32,
    /// The test's name, for people.
    pub(super) test: String,
    /// The digest of the program that it runs.
    pub(super) program: String,
    /// The runs, one per outcome and per way to stop.
    pub(super) runs: Vec<Recorded>,
}

impl Recording {
    /// Runs of a test.
    pub(super) fn of(test: &LitmusTest, runs: Vec<Recorded>) -> Recording {
        Recording {
            version: 1,
            test: test.name.clone(),
            program: simt::identity(test),
            runs,
        }
    }

    /// Whether it is a recording of a test's program.
    pub(super) fn is_of(&self, test: &LitmusTest) -> bool {
        self.program == simt::identity(test)
    }

    /// The memory of its runs.
    pub(super) fn memory(&self) -> Option<MachineMemory> {
        self.runs
            .first()
            .and_then(|run| MachineMemory::named(&run.memory))
    }
}

/// Reads a file of recorded runs.
pub(super) fn read(file: &Path) -> Result<Recording, Box<Diagnostic>> {
    let name = file.display();
    let unreadable = |why: String| {
        Box::new(
            Diagnostic::plain(
                "bad-schedule",
                format!("`{name}` is not a recorded schedule: {why}"),
            )
            .help("`fencepost run --record FILE` writes such files"),
        )
    };
    let bytes = diag::file::read(file, LARGEST).map_err(|e| {
        Box::new(Diagnostic::plain(
            "unreadable-file",
            format!("`{name}` cannot be read: {e}"),
        ))
    })?;
    let recording: Recording =
        serde_json::from_slice(&bytes).map_err(|e| unreadable(e.to_string()))?;
    if recording.version != 1 {
        return Err(unreadable(format!(
            "the file has version {} of the format; this build reads version 1",
            recording.version
        )));
    }
    Ok(recording)
}

/// The text of such a file.
pub(super) fn text(recording: &Recording) -> String {
    serde_json::to_string_pretty(recording).expect("a recording is plain data") + "\n"
}

/// Writes it.
pub(super) fn write(file: &Path, recording: &Recording) -> Result<(), Box<Diagnostic>> {
    files::replace(file, text(recording).as_bytes()).map_err(|e| Box::new(cannot_write(file, &e)))
}
