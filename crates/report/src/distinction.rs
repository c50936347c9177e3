//! Distinctions: the smallest programs on which two models differ, if any exist.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::comparison::Comparison;
use verdict::Relation;

const BOLD: Style = Style::new().bold();
const UNSURE: Style = AnsiColor::Yellow.on_default();

/// A program that distinguishes the models, with their answers.
#[derive(Clone, Debug)]
pub struct DistinguishingProgram {
    /// The number of instructions.
    pub size: usize,
    /// The program as a test file.
    pub text: String,
    /// The comparison of the models on this test.
    pub comparison: Comparison,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Distinction {
    /// The name of the allowing model, with its mapping.
    pub allows: String,
    /// The name of the forbidding model.
    pub forbids: String,
    /// A description of the letters of programs.
    pub alphabet: String,
    /// The requested number of instructions.
    pub size: usize,
    /// The search covered all programs up to this number of instructions.
    pub searched: usize,
    /// If time ran out: the number of finished shapes with one instruction more, and the number of
    /// all such shapes.
    pub stopped: Option<(usize, usize)>,
    /// The programs found.
    pub found: Vec<DistinguishingProgram>,
}

/// A number with its noun.
pub(super) fn count(n: usize, what: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {what}{s}")
}

impl Distinction {
    /// The result in a sentence.
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

/// Writes it as text.
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

/// Writes the object for one search, without a line end.
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
        |DistinguishingProgram {
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
    /// Whether a mapping breaks its promise, apart from known exceptions.
    pub fn violated(&self) -> bool {
        let findings = self.found.iter().flat_map(|p| &p.comparison.findings);
        findings
            .into_iter()
            .any(|f| f.relation == Relation::Violated)
    }
}
