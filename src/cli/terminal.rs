//! Standard output and standard error.
//!
//! # Invariants
//! - stdout carries the result; warnings, diagnostics and the progress bar go to stderr.
//! - A reader that went away ends the output quietly; no failed write panics. Standard output that
//!   was closed from the beginning is a failed write.
//! - No text of an input begins a line of standard error, where a CI job might read it as a
//!   command.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anstream::{AutoStream, ColorChoice};

use super::args::{Color, Talk};
use super::exit;
use diag::{self, Diagnostic, Severity, TextStyle, harmless};

/// The user's terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal {
    colour: ColorChoice,
    /// Only findings.
    pub quiet: bool,
    /// More than usual.
    pub verbose: bool,
    /// Everything.
    pub thorough: bool,
}

impl Terminal {
    /// From the arguments.
    pub(super) fn new(talk: &Talk) -> Terminal {
        let colour = match talk.color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        Terminal {
            colour,
            quiet: talk.quiet,
            verbose: talk.verbose > 0,
            thorough: talk.verbose > 1,
        }
    }

    /// Standard output; takes colours out if it must.
    ///
    /// # Errors
    /// If it is closed.
    pub(super) fn stdout(&self) -> io::Result<AutoStream<io::Stdout>> {
        if streams::stdout_was_closed() {
            return Err(io::Error::other("it is closed"));
        }
        Ok(AutoStream::new(io::stdout(), self.colour))
    }

    /// The width of human output in columns; `None`: no limit.
    pub(super) fn columns(&self) -> Option<usize> {
        let set = std::env::var("COLUMNS")
            .ok()
            .and_then(|columns| columns.parse().ok());
        let found =
            || terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
        set.or_else(found).filter(|columns| *columns > 0)
    }

    /// Prints a text to standard output.
    pub(super) fn print(&self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let mut out = self.stdout()?;
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Prints a finished text to standard output, and passes `code` on.
    pub(super) fn printed(&self, text: &str, code: u8) -> u8 {
        match self.print(text) {
            Err(error) if !reader_left(&error) => {
                self.diagnose(&cannot_write("standard output".as_ref(), &error));
                exit::INVALID
            }
            _ => code,
        }
    }

    /// A line on standard error.
    pub(super) fn remark(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(
                AutoStream::new(io::stderr(), self.colour),
                "{}",
                harmless(text)
            );
        }
    }

    /// Whether to report the effort of a run: to a person at a terminal, or with `--timings`.
    pub(super) fn wants_effort(&self, timings: bool) -> bool {
        timings || io::stderr().is_terminal()
    }

    /// A diagnostic, on standard error.
    pub(super) fn diagnose(&self, diagnostic: &Diagnostic) {
        if self.quiet && diagnostic.severity != Severity::Error {
            return;
        }
        let mut err = AutoStream::new(io::stderr(), self.colour);
        // A stream without colours removes them.
        let _ = err.write_all(diag::render(diagnostic, TextStyle::Coloured).as_bytes());
    }

    /// Several diagnostics, identical ones together; returns the number of errors.
    pub(super) fn diagnose_all(&self, diagnostics: &[Diagnostic]) -> usize {
        diag::together(diagnostics)
            .iter()
            .for_each(|d| self.diagnose(d));
        diagnostics
            .iter()
            .filter(|d| d.severity == Severity::Error)
            .count()
    }
}

/// Whether a failed write only means that the reader has seen enough.
pub(super) fn reader_left(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// A file that cannot be written.
pub(super) fn cannot_write(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::plain(
        "unwritable-path",
        format!("cannot write `{}`: {error}", path.display()),
    )
}
