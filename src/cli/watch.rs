//! `check --watch`: decides again whenever a file changes.
//!
//! It looks at the files repeatedly instead of watching through the system. A few thousand files
//! take some milliseconds; this works on every file system, also in networks and containers that
//! lose notifications; and an editor that replaces a file is no special case.
//!
//! # Invariants
//! - A round begins only after the files have rested for one interval, so no half-written file is
//!   read.
//! - Every round reads tests and models anew, and prints as a run without `--watch` does.

use std::collections::BTreeMap;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use super::args::CheckArgs;
use super::terminal::Terminal;
use super::{exit, interrupt, paths};
use diag::Diagnostic;

/// The time between two looks.
const INTERVAL: Duration = Duration::from_millis(300);

/// A file's state, to be compared with an earlier one.
type Stamp = (Option<SystemTime>, u64);

/// Runs `round` now and after every change, until Ctrl-C.
pub(super) fn run(args: &CheckArgs, terminal: &Terminal, mut round: impl FnMut() -> u8) -> u8 {
    if args.paths.iter().any(|path| path.as_os_str() == "-") {
        terminal.diagnose(
            &Diagnostic::plain("watch-stdin", "standard input cannot be watched")
                .help("name files or folders, or leave out `--watch`"),
        );
        return exit::INVALID;
    }
    loop {
        let before = stamps(args);
        clear(terminal);
        round();
        terminal.remark("watching: a changed test or model is decided again; Ctrl-C ends");
        let mut last = before.clone();
        loop {
            thread::sleep(INTERVAL);
            if let Some(code) = interrupt::code() {
                return code;
            }
            let now = stamps(args);
            let rested = now == last;
            if rested && now != before {
                break;
            }
            last = now;
        }
    }
}

/// Clears the screen, if there is one.
fn clear(terminal: &Terminal) {
    if std::io::stdout().is_terminal() {
        // Clears the screen and what was scrolled out of it; the cursor goes to the first column of
        // the first line.
        let _ = terminal.print("\x1b[2J\x1b[3J\x1b[H");
    }
}

/// All files that an answer can depend on: tests under the paths, model files, and the files beside
/// these.
fn stamps(args: &CheckArgs) -> BTreeMap<PathBuf, Stamp> {
    let mut found = BTreeMap::new();
    // The round itself reports unreadable files.
    for file in paths::discover_with(&args.paths, &args.question.kernels, &mut Vec::new())
        .into_iter()
        .filter_map(|f| f.file)
    {
        note(&mut found, &file);
    }
    for model in args
        .question
        .models
        .iter()
        .map(Path::new)
        .filter(|m| m.extension().is_some_and(|e| e == "cat"))
    {
        note(&mut found, model);
        let folder = model
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let beside = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        beside
            .filter(|p| p.extension().is_some_and(|e| e == "cat"))
            .for_each(|p| note(&mut found, &p));
    }
    found
}

fn note(found: &mut BTreeMap<PathBuf, Stamp>, path: &Path) {
    if let Ok(data) = fs::metadata(path) {
        found.insert(path.to_owned(), (data.modified().ok(), data.len()));
    }
}
