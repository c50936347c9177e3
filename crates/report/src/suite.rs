//! Minimal conformance suites: outcomes that a model forbids while it allows every weakening, and
//! the clauses that they show.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::distinction::count;

const BOLD: Style = Style::new().bold();
const UNSURE: Style = AnsiColor::Yellow.on_default();

/// A test of a suite.
#[derive(Clone, Debug, Serialize)]
pub struct SuiteTest {
    /// Its name.
    pub test: String,
    /// The number of instructions.
    pub size: usize,
    /// The clauses that the model needs to forbid it.
    pub clauses: Vec<String>,
    /// The test as a file.
    pub program: String,
}

/// A clause that no minimal test shows.
#[derive(Clone, Debug, Serialize)]
pub struct Unshown {
    /// The clause's name.
    pub clause: String,
    /// The name of a program that shows it, although it is not minimal or is allowed.
    pub test: Option<String>,
    /// The model's verdict on it; without the clause, the verdict is the opposite.
    pub verdict: Option<String>,
    /// The program as a test file.
    pub program: Option<String>,
    /// Whether the search ended in time, so that an absent program does not exist.
    pub complete: bool,
}

/// A suite.
#[derive(Clone, Debug, Serialize)]
pub struct ConformanceSuite {
    /// The model.
    pub model: String,
    /// The requested number of instructions.
    pub size: usize,
    /// The suite covers all programs up to this number of instructions.
    pub searched: usize,
    /// Whether the suite is complete.
    pub complete: bool,
    /// If time ran out: the number of finished shapes with one instruction more, and the number of
    /// all such shapes.
    #[serde(skip)]
    pub stopped: Option<(usize, usize)>,
    /// The number of clauses that were not examined before time ran out.
    pub late: usize,
    /// A description of the letters of programs.
    pub alphabet: String,
    /// The tests, the smallest first.
    pub tests: Vec<SuiteTest>,
    /// Clauses that no test shows.
    pub unshown: Vec<Unshown>,
    /// The number of instructions up to which these clauses were searched for further programs.
    pub unshown_searched: usize,
    /// The number of clauses without effect on any such program.
    pub silent: usize,
}

impl ConformanceSuite {
    /// The result in a sentence.
    pub fn verdict(&self) -> String {
        let sizes: Vec<String> = (1..=self.size)
            .map(|size| (size, self.tests.iter().filter(|t| t.size == size).count()))
            .filter(|(_, tests)| *tests > 0)
            .map(|(size, tests)| format!("{tests} of {size}"))
            .collect();
        let mut text = format!(
            "`{}` forbids, and allows every weakening of: {} up to {}",
            self.model,
            count(self.tests.len(), "program"),
            count(self.searched, "instruction")
        );
        if !sizes.is_empty() {
            text += &format!(" ({})", sizes.join(", "));
        }
        if let Some((done, all)) = self.stopped {
            let next = self.searched + 1;
            text += &format!("; of {next} instructions, time ran out after {done} of {all} shapes");
        }
        if self.late > 0 {
            text += &format!(
                "; time ran out before the search reached {}",
                count(self.late, "clause")
            );
        }
        text
    }

    /// For each clause: its number of tests, and the first one.
    fn by_clause(&self) -> Vec<(&str, usize, &str)> {
        let mut clauses: Vec<(&str, usize, &str)> = Vec::new();
        for test in &self.tests {
            for clause in &test.clauses {
                match clauses.iter_mut().find(|c| c.0 == clause) {
                    Some(known) => known.1 += 1,
                    None => clauses.push((clause, 1, &test.test)),
                }
            }
        }
        clauses.sort_unstable();
        clauses
    }
}

/// Writes it as text.
pub(super) fn human(out: &mut dyn Write, suite: &ConformanceSuite) -> io::Result<()> {
    let style = if suite.complete { BOLD } else { UNSURE };
    writeln!(out, "{style}{}{style:#}", suite.verdict())?;
    writeln!(out, "  of: {}", suite.alphabet)?;
    for (clause, tests, first) in suite.by_clause() {
        writeln!(
            out,
            "  {clause}: {}, the first is {first}",
            count(tests, "test")
        )?;
    }
    if !suite.unshown.is_empty() {
        writeln!(
            out,
            "no minimal test up to {} shows:",
            count(suite.searched, "instruction")
        )?;
    }
    for Unshown {
        clause,
        test,
        verdict,
        ..
    } in &suite.unshown
    {
        match (test, verdict.as_deref()) {
            (Some(test), Some("allowed")) => {
                writeln!(out, "  {clause}: without it, {test} is forbidden")?
            }
            (Some(test), _) => writeln!(
                out,
                "  {clause}: without it, {test} is allowed, which is not minimal"
            )?,
            (None, _) => {}
        }
    }
    for (complete, head) in [
        (true, "nor does any other program up to"),
        (false, "nor was there time for programs up to"),
    ] {
        let clauses: Vec<&str> = suite
            .unshown
            .iter()
            .filter(|u| u.test.is_none() && u.complete == complete)
            .map(|u| u.clause.as_str())
            .collect();
        if !clauses.is_empty() {
            writeln!(
                out,
                "{head} {} show:",
                count(suite.unshown_searched, "instruction")
            )?;
            clauses
                .iter()
                .try_for_each(|clause| writeln!(out, "  {clause}"))?;
        }
    }
    match suite.silent {
        0 => Ok(()),
        1 => writeln!(out, "1 clause applies to no such program"),
        n => writeln!(out, "{n} clauses apply to no such program"),
    }
}

/// Writes the object for one suite, without a line end.
pub(super) fn write(out: &mut dyn Write, suite: &ConformanceSuite) -> io::Result<()> {
    super::compact::write(out, &suite)
}
