//! The trait of a format: its calls, one for each subject.
//!
//! # Invariants
//! - A subject that a format does not support is an error, never a silent gap.

use std::io::{self, Write};

use diag::Diagnostic;

use super::advice::AdviceReport;
use super::comparison::Comparison;
use super::compiled::CompiledReport;
use super::distinction::Distinction;
use super::line::{AnswerLine, OutcomeTable};
use super::observations::Observations;
use super::suite::ConformanceSuite;
use super::summary::Summary;

/// Writes one format. Calls come in the order of the answers; [`Reporter::end`] comes once, last.
/// The command line refuses subjects that a format does not support
/// ([`tells`](crate::ReportFormat::tells)).
pub trait Reporter {
    /// One answer.
    fn line(&mut self, out: &mut dyn Write, line: &AnswerLine) -> io::Result<()>;
    /// Whether it draws the executions in lines.
    fn draws(&self) -> bool {
        false
    }
    /// Writes an error in the input. Standard error has shown it already; formats for other
    /// programs repeat it.
    fn diagnostic(&mut self, _out: &mut dyn Write, _diagnostic: &Diagnostic) -> io::Result<()> {
        Ok(())
    }
    /// One list of outcomes.
    fn table(&mut self, _out: &mut dyn Write, _table: &OutcomeTable) -> io::Result<()> {
        unfit("lists of outcomes")
    }
    /// One comparison.
    fn comparison(&mut self, _out: &mut dyn Write, _comparison: &Comparison) -> io::Result<()> {
        unfit("comparisons")
    }
    /// The result of a search for programs.
    fn distinction(&mut self, _out: &mut dyn Write, _distinction: &Distinction) -> io::Result<()> {
        unfit("searches for programs")
    }
    /// A minimal conformance suite.
    fn suite(&mut self, _out: &mut dyn Write, _suite: &ConformanceSuite) -> io::Result<()> {
        unfit("suites")
    }
    /// A compiler's code for atomic operations.
    fn compiled(&mut self, _out: &mut dyn Write, _compiled: &CompiledReport) -> io::Result<()> {
        unfit("the instructions that compilers print for operations")
    }
    /// Advice on cheaper correct synchronization.
    fn advice(&mut self, _out: &mut dyn Write, _advice: &AdviceReport) -> io::Result<()> {
        unfit("advice")
    }
    /// The executor's observations.
    fn observations(
        &mut self,
        _out: &mut dyn Write,
        _observations: &Observations,
    ) -> io::Result<()> {
        unfit("observations")
    }
    /// Writes the end.
    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()>;
}

pub(super) fn unfit(what: &str) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!("this format cannot report {what}"),
    ))
}
