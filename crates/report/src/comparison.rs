//! Comparisons: the answers of several models for one test, and why they differ.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::line::AnswerLine;
use verdict::{Definedness, Fault, Finding, Outcomes, Property, Relation, State, Verdict};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Red.on_default().bold();
const UNSURE: Style = AnsiColor::Yellow.on_default();

/// One model's answers.
#[derive(Clone, Debug)]
pub struct Column {
    /// Reachability, then races and undefined behaviour if the model covers them.
    pub lines: Vec<AnswerLine>,
    /// All outcomes.
    pub outcomes: Outcomes,
}

impl Column {
    /// The verdict for a property.
    pub fn verdict(&self, property: Property) -> Option<&Verdict> {
        self.lines
            .iter()
            .find(|line| line.property == property)
            .map(|line| &line.answer.verdict)
    }

    /// `allowed`, `forbidden`, with `racy`; `undefined` if no execution of an undefined program
    /// shows the outcome; `?` if an incomplete list lacks it.
    pub fn word(&self, state: &State) -> &'static str {
        match self.outcomes.outcomes.iter().find(|o| o.state == *state) {
            Some(o) if o.allowed && o.racy => "allowed, racy",
            Some(o) if o.allowed => "allowed",
            _ if self.undefined().is_some() => "undefined",
            _ if !self.outcomes.complete => "?",
            _ => "forbidden",
        }
    }

    /// The fault that makes the program undefined under the model.
    pub fn undefined(&self) -> Option<&Fault> {
        match &self.lines.first()?.answer.definedness {
            Some(Definedness::Undefined(fault)) => Some(fault),
            _ => None,
        }
    }

    /// The heading: the model with its mapping.
    pub fn head(&self) -> String {
        match self.lines.first() {
            Some(AnswerLine {
                model,
                mapping: Some(mapping),
                ..
            }) => format!("{model} via {mapping}"),
            Some(line) => line.model.clone(),
            None => String::new(),
        }
    }
}

/// One test under several models.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// As in [`AnswerLine`].
    pub path: String,
    /// As in [`AnswerLine`].
    pub test: String,
    /// One column per model.
    pub columns: Vec<Column>,
    /// The first model compared with each of the others.
    pub findings: Vec<Finding>,
}

impl Comparison {
    /// The outcomes that some model allows (`all`: all known outcomes), sorted.
    pub fn states(&self, all: bool) -> Vec<&State> {
        let outcomes = self.columns.iter().flat_map(|c| &c.outcomes.outcomes);
        let mut states: Vec<&State> = outcomes
            .filter(|o| all || o.allowed)
            .map(|o| &o.state)
            .collect();
        states.sort_unstable();
        states.dedup();
        states
    }

    /// Whether the user should look at it.
    pub fn striking(&self) -> bool {
        self.findings.iter().any(|f| {
            !matches!(
                f.relation,
                Relation::Agree | Relation::Respected | Relation::Exempt
            )
        })
    }
}

/// Writes a comparison as text: the answers, one row per outcome, the reasons.
pub(super) fn human(out: &mut dyn Write, comparison: &Comparison, verbose: bool) -> io::Result<()> {
    write!(out, "{BOLD}{}{BOLD:#}", comparison.test)?;
    if let Some(line) = comparison
        .columns
        .first()
        .and_then(|c| c.lines.first())
        .filter(|l| !l.proposition.is_empty())
    {
        write!(out, ": {} ({})", line.quantifier, line.proposition)?;
    }
    writeln!(out)?;
    for (i, column) in comparison.columns.iter().enumerate() {
        write!(out, "{} {}", if i == 0 { " " } else { "," }, column.head())?;
        for line in &column.lines {
            let shown =
                line.property == Property::Reachability || line.answer.verdict.reason().is_none();
            if shown {
                write!(out, " {}", line.answer.verdict.word())?;
            }
        }
    }
    writeln!(out)?;
    rows(out, comparison, verbose)?;
    for finding in &comparison.findings {
        let style = match finding.relation {
            Relation::Violated | Relation::Differ => BAD,
            Relation::KnownGap | Relation::Undecided => UNSURE,
            _ => Style::new(),
        };
        let (left, right, word) = (&finding.left, &finding.right, finding.relation.word());
        writeln!(
            out,
            "  {left} and {right}: {style}{word}{style:#}: {}",
            finding.why
        )?;
    }
    writeln!(out)
}

fn rows(out: &mut dyn Write, comparison: &Comparison, verbose: bool) -> io::Result<()> {
    let states = comparison.states(verbose);
    let Some(first) = states.first() else {
        return Ok(());
    };
    let mut table: Vec<Vec<String>> =
        vec![first.iter().map(|(name, _)| name.to_string()).collect()];
    // The heading of an outcome column always says if the program is undefined.
    let models = comparison.columns.iter().map(|c| match c.lines.first() {
        Some(line) if c.undefined().is_some() => format!("{} (undefined)", line.model),
        Some(line) => line.model.clone(),
        None => String::new(),
    });
    table[0].extend(models);
    for state in &states {
        let mut row: Vec<String> = state.iter().map(|(_, value)| value.to_string()).collect();
        row.extend(comparison.columns.iter().map(|c| c.word(state).to_owned()));
        table.push(row);
    }
    let values = first.len();
    let width = |i: usize| {
        table
            .iter()
            .filter_map(|r| r.get(i))
            .map(|c| c.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..values + comparison.columns.len()).map(width).collect();
    for (i, row) in table.iter().enumerate() {
        let mut text = String::from(" ");
        for (j, (cell, width)) in row.iter().zip(&widths).enumerate() {
            text += &if j < values {
                format!(" {cell:>width$}")
            } else {
                format!("  {cell:width$}")
            };
        }
        let style = if i == 0 { DIM } else { Style::new() };
        writeln!(out, "{style}{}{style:#}", text.trim_end())?;
    }
    Ok(())
}
