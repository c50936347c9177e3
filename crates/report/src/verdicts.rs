//! Answers as a matrix: a row for each test and property, a column for each model.

use indexmap::{IndexMap, IndexSet};
use verdict::{Outcome, Property};

use super::comparison::Comparison;
use super::line::AnswerLine;

/// A row: the path, the test and the property.
pub(super) type VerdictRow = (String, String, String);

/// The verdicts so far, in order of their first answers.
#[derive(Clone, Debug, Default)]
pub(super) struct VerdictMatrix {
    pub(super) models: IndexSet<String>,
    pub(super) rows: IndexMap<VerdictRow, IndexMap<String, String>>,
}

impl VerdictMatrix {
    /// Adds an answer.
    pub(super) fn add(&mut self, line: &AnswerLine) {
        let row = (
            line.path.clone(),
            line.test.clone(),
            line.property.to_string(),
        );
        self.models.insert(line.model.clone());
        let verdicts = self.rows.entry(row).or_default();
        verdicts.insert(line.model.clone(), line.answer.verdict.word().to_owned());
    }

    /// Adds what models say of the condition, and of races.
    pub(super) fn add_comparison(&mut self, comparison: &Comparison) {
        let lines = comparison.columns.iter().flat_map(|column| &column.lines);
        lines.for_each(|line| self.add(line));
    }

    /// Whether every answer is about reachability, so that no row needs to say so.
    pub(super) fn is_reachability(&self) -> bool {
        let reachability = Property::Reachability.to_string();
        self.rows.keys().all(|row| row.2 == reachability)
    }
}

/// The answer about an outcome in words.
pub(super) fn answer_word(outcome: &Outcome) -> &'static str {
    match (outcome.allowed, outcome.racy) {
        (true, true) => "allowed, racy",
        (true, false) => "allowed",
        (false, _) => "forbidden",
    }
}
