//! Minimal conformance suites: what a model forbids and allows with any weakening, and which of its
//! clauses that shows.

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
    /// How many instructions it has.
    pub size: usize,
    /// The clauses without any of which the model allows it.
    pub clauses: Vec<String>,
    /// As a test file.
    pub program: String,
}

/// A clause that no minimal test shows.
#[derive(Clone, Debug, Serialize)]
pub struct Unshown {
    /// Its name.
    pub clause: String,
    /// A program that shows it, though it is not minimal, or because it is allowed: its name.
    pub test: Option<String>,
    /// What the model says of it; without the clause, it says the opposite.
    pub verdict: Option<String>,
    /// As a test file.
    pub program: Option<String>,
    /// Whether the time sufficed to look for one.
    pub complete: bool,
}

/// A suite.
#[derive(Clone, Debug, Serialize)]
pub struct ConformanceSuite {
    /// The model.
    pub model: String,
    /// At most so many instructions were asked for.
    pub size: usize,
    /// All programs of up to so many instructions were looked at.
    pub searched: usize,
    /// Whether that is all.
    pub complete: bool,
    /// Where time ran out: shapes of one instruction more that were done, and all of them.
    #[serde(skip)]
    pub stopped: Option<(usize, usize)>,
    /// So many clauses were not asked about, as time ran out.
    pub late: usize,
    /// What programs were made of, in words.
    pub alphabet: String,
    /// The tests, the smallest first.
    pub tests: Vec<SuiteTest>,
    /// Clauses that no test shows.
    pub unshown: Vec<Unshown>,
    /// Where these were looked for besides: programs of up to so many instructions.
    pub unshown_searched: usize,
    /// How many clauses say nothing of any such program.
    pub silent: usize,
}

impl ConformanceSuite {
    /// What came of it, in a sentence.
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
                "; time ran out before {} could be asked about",
                count(self.late, "clause")
            );
        }
        text
    }

    /// By clause: how many tests it has, and the first of them.
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

/// Writes it for people.
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
        1 => writeln!(out, "1 clause says nothing of any such program"),
        n => writeln!(out, "{n} clauses say nothing of any such program"),
    }
}

/// The object of one suite, without a line end.
pub(super) fn write(out: &mut dyn Write, suite: &ConformanceSuite) -> io::Result<()> {
    super::compact::write(out, &suite)
}
