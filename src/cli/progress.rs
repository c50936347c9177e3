//! Shows the progress of a long run, on standard error.
//!
//! # Invariants
//! - Only on a terminal, and only once the work turns out to be long: logs stay free of it.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::terminal::Terminal;

/// A bar with counts and the remaining time.
pub(super) struct Progress {
    bar: ProgressBar,
    start: Instant,
    wanted: bool,
    shown: AtomicBool,
    failed: AtomicUsize,
    undecided: AtomicUsize,
}

/// Work shorter than this needs no progress bar.
const LONG: Duration = Duration::from_secs(1);

impl Progress {
    /// A bar for a number of items.
    pub(super) fn new(terminal: &Terminal, pieces: usize) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(pieces as u64), ProgressDrawTarget::hidden());
        if let Ok(style) =
            ProgressStyle::with_template("{pos}/{len} {wide_bar} {msg}{elapsed}, {eta} left")
        {
            bar.set_style(style);
        }
        let wanted = !terminal.quiet && pieces > 1 && io::stderr().is_terminal();
        Progress {
            bar,
            start: Instant::now(),
            wanted,
            shown: AtomicBool::new(false),
            failed: AtomicUsize::new(0),
            undecided: AtomicUsize::new(0),
        }
    }

    /// Counts one item, with its failed and undecided answers. Workers call it.
    pub(super) fn done_one(&self, failed: usize, undecided: usize) {
        let failed = self.failed.fetch_add(failed, Ordering::Relaxed) + failed;
        let undecided = self.undecided.fetch_add(undecided, Ordering::Relaxed) + undecided;
        if self.wanted && failed + undecided > 0 {
            let counts = [(failed, "failed"), (undecided, "undecided")]
                .into_iter()
                .filter(|(n, _)| *n > 0);
            self.bar.set_message(
                counts
                    .map(|(n, what)| format!("{n} {what}, "))
                    .collect::<String>(),
            );
        }
        if self.wanted && self.start.elapsed() > LONG && !self.shown.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(1);
    }

    /// Takes the bar away while something is printed.
    pub(super) fn aside<R>(&self, print: impl FnOnce() -> R) -> R {
        self.bar.suspend(print)
    }

    /// Takes the bar away for good.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
