//! Distinctions: the smallest programs on which two models differ, or that there are none.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::Comparison;
use verdict::Relation;

const BOLD: Style = Style::new().bold();
const UNSURE: Style = AnsiColor::Yellow.on_default();

/// A program that was found, and what the models say of it.
#[derive(Clone, Debug)]
pub struct Program {
    /// How many instructions it has.
    pub size: usize,
    /// As a test file.
    pub text: String,
    /// As any test would be compared.
    pub comparison: Comparison,
}

/// What came of a search.
#[derive(Clone, Debug)]
pub struct Distinction {
    /// The model that allows, as it is called, with its mapping.
    pub allows: String,
    /// The model that forbids.
    pub forbids: String,
    /// What programs were made of, in words.
    pub alphabet: String,
    /// At most so many instructions were asked for.
    pub size: usize,
    /// All programs of up to so many instructions were looked at.
    pub searched: usize,
    /// Where time ran out: shapes of one instruction more that were done, and all of them.
    pub stopped: Option<(usize, usize)>,
    /// What was found.
    pub found: Vec<Program>,
}

/// How many of something.
pub(super) fn count(n: usize, what: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {what}{s}")
}

impl Distinction {
    /// What came of it, in a sentence.
    pub fn verdict(&self) -> String {
        let (a, b) = (&self.allows, &self.forbids);
        let smallest = self.found.iter().map(|p| p.size).min();
        let mut text = match smallest {
            Some(size) => {
                let programs = match self.found.len() {
                    1 => format!("a program of {}", count(size, "instruction")),
                    n => format!(
                        "{n} programs, the smallest of {}",
                        count(size, "instruction")
                    ),
                };
                format!("`{a}` allows what `{b}` forbids: {programs}")
            }
            None => format!(
                "`{a}` allows nothing that `{b}` forbids: none up to {}",
                count(self.searched, "instruction")
            ),
        };
        if let Some((done, all)) = self.stopped {
            let next = self.searched + 1;
            text += &format!("; of {next} instructions, time ran out after {done} of {all} shapes");
        }
        text
    }
}

/// Writes it for people.
pub(super) fn human(
    out: &mut dyn Write,
    distinction: &Distinction,
    verbose: bool,
) -> io::Result<()> {
    for program in &distinction.found {
        writeln!(out, "{}", program.text)?;
        super::comparison::human(out, &program.comparison, verbose)?;
    }
    let style = if distinction.stopped.is_some() {
        UNSURE
    } else {
        BOLD
    };
    writeln!(out, "{style}{}{style:#}", distinction.verdict())?;
    writeln!(out, "  of: {}", distinction.alphabet)
}

#[derive(Serialize)]
struct DistinctionObject<'a> {
    allows: &'a str,
    forbids: &'a str,
    size: usize,
    searched: usize,
    complete: bool,
    alphabet: &'a str,
    found: Vec<ProgramObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<StoppedObject>,
}

#[derive(Serialize)]
struct ProgramObject<'a> {
    test: &'a str,
    size: usize,
    relation: Option<&'a str>,
    rule: Option<&'a str>,
    why: Option<&'a str>,
    program: &'a str,
}

#[derive(Serialize)]
struct StoppedObject {
    size: usize,
    done: usize,
    shapes: usize,
}

/// The object of one search, without a line end.
pub(super) fn write(out: &mut dyn Write, distinction: &Distinction) -> io::Result<()> {
    let Distinction {
        allows,
        forbids,
        alphabet,
        size,
        searched,
        stopped,
        found,
    } = distinction;
    let found = found.iter().map(
        |Program {
             size,
             text,
             comparison,
         }| {
            let finding = comparison.findings.first();
            ProgramObject {
                test: &comparison.test,
                size: *size,
                relation: finding.map(|f| f.relation.word()),
                rule: finding.and_then(|f| f.rule.as_deref()),
                why: finding.map(|f| f.why.as_str()),
                program: text,
            }
        },
    );
    let stopped = stopped.map(|(done, shapes)| StoppedObject {
        size: searched + 1,
        done,
        shapes,
    });
    let object = DistinctionObject {
        allows,
        forbids,
        size: *size,
        searched: *searched,
        complete: stopped.is_none(),
        alphabet,
        found: found.collect(),
        stopped,
    };
    super::compact::write(out, &object)
}

impl Distinction {
    /// Whether a mapping was shown not to keep what it promises, beyond what it is known not to.
    pub fn violated(&self) -> bool {
        let findings = self.found.iter().flat_map(|p| &p.comparison.findings);
        findings
            .into_iter()
            .any(|f| f.relation == Relation::Violated)
    }
}
