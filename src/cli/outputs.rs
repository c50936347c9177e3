//! Writes the result to standard output, and the reports to files.
//!
//! # Invariants
//! - A reader that went away ends its output quietly; no failed write panics.
//! - A report file appears once the report is complete, and as a whole; devices and pipes are
//!   written to as it grows.
//! - A report that cannot be written is an error message, and stops no other one.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anstream::{AutoStream, StripStream};

use super::args::FormatArg;
use super::files;
use super::terminal::{Terminal, cannot_write, reader_left};
use diag::Diagnostic;
use report::{
    self, AdviceReport, AnswerLine, Comparison, CompiledReport, ConformanceSuite, Distinction,
    HumanOptions, Observations, OutcomeTable, ReportFormat, Reporter, Summary, reporter,
};

/// The target of one report.
enum Target {
    Stdout(AutoStream<io::Stdout>),
    /// Kept until it is complete.
    File(PathBuf, StripStream<Vec<u8>>),
    /// A device or a pipe.
    Stream(PathBuf, StripStream<Box<dyn Write>>),
}

impl Target {
    fn open(path: &Path) -> io::Result<Target> {
        if files::replaceable(path) {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            files::probe(path)?;
            return Ok(Target::File(path.to_owned(), StripStream::new(Vec::new())));
        }
        let stream = Box::new(BufWriter::new(File::create(path)?)) as Box<dyn Write>;
        Ok(Target::Stream(path.to_owned(), StripStream::new(stream)))
    }

    fn out(&mut self) -> &mut dyn Write {
        match self {
            Target::Stdout(out) => out,
            Target::File(_, out) => out,
            Target::Stream(_, out) => out,
        }
    }

    fn name(&self) -> &Path {
        match self {
            Target::Stdout(_) => Path::new("standard output"),
            Target::File(path, _) | Target::Stream(path, _) => path,
        }
    }

    /// Ends a complete report.
    fn complete(&mut self) -> io::Result<()> {
        match self {
            Target::File(path, out) => files::replace(path, out.as_inner()),
            stream => stream.out().flush(),
        }
    }
}

struct ReportSink {
    target: Target,
    reporter: Box<dyn Reporter>,
}

/// All reports of a run.
#[derive(Default)]
pub(super) struct Outputs {
    sinks: Vec<ReportSink>,
    failures: Vec<Diagnostic>,
}

impl Outputs {
    /// Opens everything. A file that cannot be written is a diagnostic, before anything is decided.
    pub(super) fn open(
        terminal: &Terminal,
        format: FormatArg,
        reports: &[(FormatArg, PathBuf)],
        human: &HumanOptions,
    ) -> Result<Outputs, Box<Diagnostic>> {
        let sink = |target, format, human: &HumanOptions| ReportSink {
            target,
            reporter: reporter(format, human),
        };
        let (mut sinks, mut failures) = (Vec::new(), Vec::new());
        match terminal.stdout() {
            Ok(stdout) => sinks.push(sink(
                Target::Stdout(stdout),
                ReportFormat::from(format),
                human,
            )),
            Err(error) => failures.push(cannot_write("standard output".as_ref(), &error)),
        }
        for (format, path) in reports {
            let target =
                Target::open(path).map_err(|error| Box::new(cannot_write(path, &error)))?;
            let human = HumanOptions {
                quiet: false,
                columns: None,
                ..human.clone()
            };
            sinks.push(sink(target, report::ReportFormat::from(*format), &human));
        }
        Ok(Outputs { sinks, failures })
    }

    /// Reports an answer; breaks if the reader has left.
    pub(super) fn line(&mut self, line: &AnswerLine) -> ControlFlow<()> {
        self.each(|reporter, out| reporter.line(out, line))
    }

    /// As [`Outputs::line`], for the reports that draw.
    pub(super) fn drawing(&mut self, line: &AnswerLine) -> ControlFlow<()> {
        self.each(|reporter, out| {
            if reporter.draws() {
                reporter.line(out, line)
            } else {
                Ok(())
            }
        })
    }

    /// As [`Outputs::line`], for all others.
    pub(super) fn writing(&mut self, line: &AnswerLine) -> ControlFlow<()> {
        self.each(|reporter, out| {
            if reporter.draws() {
                Ok(())
            } else {
                reporter.line(out, line)
            }
        })
    }

    /// Reports a fault of the input.
    pub(super) fn diagnostic(&mut self, diagnostic: &Diagnostic) {
        let _ = self.each(|reporter, out| reporter.diagnostic(out, diagnostic));
    }

    /// Reports a list of outcomes; breaks if the reader has left.
    pub(super) fn table(&mut self, table: &OutcomeTable) -> ControlFlow<()> {
        self.each(|reporter, out| reporter.table(out, table))
    }

    /// Reports a comparison; breaks if the reader has left.
    pub(super) fn comparison(&mut self, comparison: &Comparison) -> ControlFlow<()> {
        self.each(|reporter, out| reporter.comparison(out, comparison))
    }

    /// Reports the result of a search; breaks if the reader has left.
    pub(super) fn distinction(&mut self, distinction: &Distinction) -> ControlFlow<()> {
        self.each(|reporter, out| reporter.distinction(out, distinction))
    }

    /// Reports a suite; breaks if the reader has left.
    pub(super) fn suite(&mut self, suite: &ConformanceSuite) -> ControlFlow<()> {
        self.each(|reporter, out| reporter.suite(out, suite))
    }

    /// Reports compiled operations; breaks if the reader has left.
    pub(super) fn compiled(&mut self, compiled: &CompiledReport) -> ControlFlow<()> {
        self.each(|reporter, out| reporter.compiled(out, compiled))
    }

    /// Reports advice; breaks if the reader has left.
    pub(super) fn advice(&mut self, advice: &AdviceReport) -> ControlFlow<()> {
        self.each(|reporter, out| reporter.advice(out, advice))
    }

    /// Reports observations; breaks if the reader has left.
    pub(super) fn observations(&mut self, observations: &Observations) -> ControlFlow<()> {
        self.each(|reporter, out| reporter.observations(out, observations))
    }

    /// Ends all reports. The diagnostics are about files that could not be written.
    pub(super) fn end(mut self, summary: &Summary) -> Vec<Diagnostic> {
        let _ = self.each(|reporter, out| reporter.end(out, summary));
        let completed: Vec<_> = self
            .sinks
            .iter_mut()
            .map(|sink| sink.target.complete())
            .collect();
        let mut completed = completed.into_iter();
        let failures = &mut self.failures;
        self.sinks
            .retain(|sink| told(sink, completed.next().unwrap_or(Ok(())), failures));
        self.failures
    }

    fn each(
        &mut self,
        mut write: impl FnMut(&mut dyn Reporter, &mut dyn Write) -> io::Result<()>,
    ) -> ControlFlow<()> {
        let failures = &mut self.failures;
        self.sinks.retain_mut(|sink| {
            // A long report is written in pieces, and not in lines.
            let mut out = BufWriter::new(sink.target.out());
            let written = write(&mut *sink.reporter, &mut out).and_then(|()| out.flush());
            // The rest of a failed report is not tried again.
            let _ = out.into_parts();
            told(sink, written, failures)
        });
        if self.sinks.is_empty() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Whether a write succeeded; a failure is noted, unless the reader has seen enough.
fn told(sink: &ReportSink, written: io::Result<()>, failures: &mut Vec<Diagnostic>) -> bool {
    match written {
        Ok(()) => true,
        Err(error) => {
            if !reader_left(&error) {
                failures.push(cannot_write(sink.target.name(), &error));
            }
            false
        }
    }
}
