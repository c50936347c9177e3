//! Shows the progress of a long run, on standard error.
//!
//! # Invariants
//! - Only on a terminal, and only once the work turns out to be long: logs stay free of it.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::terminal::Terminal;
use diag::harmless;

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

/// What is left: the time, as long as it can be told. The last items of a run are often its longest
/// ones, so the time of the others says nothing of them.
fn left(time: Duration, open: u64) -> String {
    match time.as_secs() {
        0 => format!("{open} open"),
        seconds => format!("{} left", HumanDuration(Duration::from_secs(seconds))),
    }
}

impl Progress {
    /// A bar for a number of items.
    pub(super) fn new(terminal: &Terminal, pieces: usize) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(pieces as u64), ProgressDrawTarget::hidden());
        let template = "{pos}/{len} {wide_bar} {prefix}{elapsed}, {left}\n{wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(
                style.with_key("left", |state: &ProgressState, out: &mut dyn Write| {
                    let open = state.len().unwrap_or(0).saturating_sub(state.pos());
                    // A bar that cannot be written is no reason to stop.
                    let _ = out.write_str(&left(state.eta(), open));
                }),
            );
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
            self.bar.set_prefix(
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

    /// Names the pair that has run for the longest time, below the bar.
    pub(super) fn oldest(&self, text: &str) {
        if self.wanted {
            self.bar.set_message(harmless(text).into_owned());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_questions_are_never_no_time() {
        assert_eq!(left(Duration::from_millis(400), 5), "5 open");
        assert_eq!(left(Duration::from_millis(61_500), 5), "61 seconds left");
    }
}
