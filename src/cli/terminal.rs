//! Standard output, standard error and report files.
//!
//! # Invariants
//! - stdout carries the result; warnings, diagnostics and the progress bar go to stderr.
//! - A reader that went away ends the output quietly; nothing in here panics over a failed write.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::args::{Color, FormatArg, Talk};
use crate::diag::{self, Diagnostic, Severity, Style};
use crate::report::{self, Comparison, Format, HumanOptions, Line, Observations, Reporter, Summary, Table};

/// How to talk to the user.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal {
    colour: ColorChoice,
    /// Only what needs attention.
    pub quiet: bool,
    /// More than usual.
    pub verbose: bool,
}

impl Terminal {
    /// As the arguments say.
    pub(super) fn new(talk: &Talk) -> Terminal {
        let colour = match talk.color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        Terminal { colour, quiet: talk.quiet, verbose: talk.verbose }
    }

    /// Standard output; takes colours out if it must.
    pub(super) fn stdout(&self) -> AutoStream<io::Stdout> {
        AutoStream::new(io::stdout(), self.colour)
    }

    /// Prints a text to standard output.
    pub(super) fn print(&self, text: &str) -> io::Result<()> {
        let mut out = self.stdout();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// A diagnostic, on standard error.
    pub(super) fn diagnose(&self, diagnostic: &Diagnostic) {
        if self.quiet && diagnostic.severity != Severity::Error {
            return;
        }
        let mut err = AutoStream::new(io::stderr(), self.colour);
        // A stream that shows no colours takes them out again.
        let _ = err.write_all(diag::render(diagnostic, Style::Coloured).as_bytes());
    }

    /// A remark for whoever sits before the screen, on standard error.
    pub(super) fn remark(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(AutoStream::new(io::stderr(), self.colour), "{text}");
        }
    }

    /// Several diagnostics; returns how many are errors.
    pub(super) fn diagnose_all(&self, diagnostics: &[Diagnostic]) -> usize {
        diagnostics.iter().for_each(|d| self.diagnose(d));
        diagnostics.iter().filter(|d| d.severity == Severity::Error).count()
    }
}

/// Whether a failed write only says that the reader has seen enough.
pub(super) fn reader_left(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// Where one report goes.
struct Sink {
    /// `None`: standard output.
    file: Option<PathBuf>,
    reporter: Box<dyn Reporter>,
    out: Box<dyn Write>,
}

/// The result on standard output, and the reports beside it.
pub(super) struct Outputs {
    sinks: Vec<Sink>,
    failures: Vec<Diagnostic>,
}

impl Outputs {
    /// Opens everything; a file that cannot be created is a diagnostic, and nothing has been decided yet.
    pub(super) fn open(
        terminal: &Terminal,
        format: FormatArg,
        reports: &[(FormatArg, PathBuf)],
        human: &HumanOptions,
    ) -> Result<Outputs, Box<Diagnostic>> {
        let format = Format::from(format);
        let mut sinks =
            vec![Sink { file: None, reporter: report::reporter(format, human), out: Box::new(terminal.stdout()) }];
        for (format, path) in reports {
            let file = File::create(path).map_err(|error| Box::new(cannot_write(path, &error)))?;
            let human = HumanOptions { quiet: false, ..human.clone() };
            sinks.push(Sink {
                file: Some(path.clone()),
                reporter: report::reporter((*format).into(), &human),
                out: Box::new(anstream::StripStream::new(Box::new(BufWriter::new(file)) as Box<dyn Write>)),
            });
        }
        Ok(Outputs { sinks, failures: Vec::new() })
    }

    /// Reports an answer; breaks if nobody is left to hear more.
    pub(super) fn line(&mut self, line: &Line) -> ControlFlow<()> {
        self.each(|sink| sink.reporter.line(&mut sink.out, line))
    }

    /// Reports a list of outcomes; breaks if nobody is left to hear more.
    pub(super) fn table(&mut self, table: &Table) -> ControlFlow<()> {
        self.each(|sink| sink.reporter.table(&mut sink.out, table))
    }

    /// Reports a comparison; breaks if nobody is left to hear more.
    pub(super) fn comparison(&mut self, comparison: &Comparison) -> ControlFlow<()> {
        self.each(|sink| sink.reporter.comparison(&mut sink.out, comparison))
    }

    /// Reports what was observed; breaks if nobody is left to hear more.
    pub(super) fn observations(&mut self, observations: &Observations) -> ControlFlow<()> {
        self.each(|sink| sink.reporter.observations(&mut sink.out, observations))
    }

    /// Ends all reports. The diagnostics are about files that could not be written.
    pub(super) fn end(mut self, summary: &Summary) -> Vec<Diagnostic> {
        let _ = self.each(|sink| {
            sink.reporter.end(&mut sink.out, summary)?;
            sink.out.flush()
        });
        self.failures
    }

    fn each(&mut self, mut write: impl FnMut(&mut Sink) -> io::Result<()>) -> ControlFlow<()> {
        let failures = &mut self.failures;
        self.sinks.retain_mut(|sink| match write(sink) {
            Ok(()) => true,
            Err(error) => {
                if !reader_left(&error) {
                    let name = sink.file.clone().unwrap_or_else(|| "standard output".into());
                    failures.push(cannot_write(&name, &error));
                }
                false
            }
        });
        if self.sinks.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// A file that cannot be written.
pub(super) fn cannot_write(path: &std::path::Path, error: &io::Error) -> Diagnostic {
    Diagnostic::plain("unwritable-path", format!("cannot write `{}`: {error}", path.display()))
}

/// A progress bar on standard error: only on a terminal, and only once the work turns out to be long.
pub(super) struct Progress {
    bar: ProgressBar,
    start: Instant,
    wanted: bool,
    shown: AtomicBool,
}

/// Work shorter than this needs no progress bar.
const LONG: Duration = Duration::from_secs(1);

impl Progress {
    /// For so many pieces of work.
    pub(super) fn new(terminal: &Terminal, pieces: usize) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(pieces as u64), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed}") {
            bar.set_style(style);
        }
        let wanted = !terminal.quiet && pieces > 1 && io::stderr().is_terminal();
        Progress { bar, start: Instant::now(), wanted, shown: AtomicBool::new(false) }
    }

    /// One piece is done. Called by the workers.
    pub(super) fn done_one(&self) {
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
