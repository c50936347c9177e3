//! The input of reports: an answer with its query, a list of outcomes, and places in files.

use std::fmt;
use std::sync::Arc;

use diag::{SourceFile, Span, visible};
use serde::{Deserialize, Serialize};
use verdict::{Answer, Definedness, Fault, Outcomes, Property, State, Verdict, Witness};

use super::kernel::KernelAnswer;
use super::status::QueryStatus;

/// A place in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSite {
    /// The path, as the user gave it or as found; empty: no file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl FileSite {
    /// The start of a span.
    pub fn at(file: &Arc<SourceFile>, span: Span) -> FileSite {
        let (line, column) = file.line_column(span.start as usize);
        // Version control uses this form of the path.
        let name = file.part(span.start as usize).0;
        let name = name.strip_prefix("./").unwrap_or(name);
        FileSite {
            file: name.to_owned(),
            line,
            column,
        }
    }
}

impl AnswerLine {
    /// The options that affect the answer, as they were set: `same-value=benign`.
    pub(crate) fn set(&self) -> impl Iterator<Item = String> {
        self.settings
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
    }

    /// The number of racing pairs of lines in addition to the fault's pair, and whether there may
    /// be more.
    pub(crate) fn further_races(&self) -> Option<String> {
        let races = self.answer.races.as_ref()?;
        match (races.pairs.len().saturating_sub(1), races.complete) {
            (0, true) => None,
            (0, false) => Some("and perhaps other lines".to_owned()),
            (count, complete) => {
                let s = if count == 1 { "" } else { "s" };
                let more = if complete { "" } else { " at least" };
                Some(format!("and {count} other pair{s} of lines{more}"))
            }
        }
    }
}

impl fmt::Display for FileSite {
    /// `file:line`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", visible(&self.file), self.line)
    }
}

/// One answer, and its query.
#[derive(Clone, Debug)]
pub struct AnswerLine {
    /// The path relative to the PATH argument that contains the test.
    pub path: String,
    /// The test's name.
    pub test: String,
    /// The place of the test's expectation, or else of its condition.
    pub site: FileSite,
    /// The model's name.
    pub model: String,
    /// The property.
    pub property: Property,
    /// How the condition is quantified: `exists`, `~exists`, `forall`, `none`.
    pub quantifier: &'static str,
    /// The proposition of the condition, as written; empty if there is none.
    pub proposition: String,
    /// The test's expectation: a verdict's word, or `required`.
    pub expected: Option<&'static str>,
    /// A reading of the source under which the answer differs from the test's expectation.
    pub reading: Option<UnmetReading>,
    /// The answer.
    pub answer: Answer,
    /// The mapping through which the test was judged.
    pub mapping: Option<&'static str>,
    /// Options that were set and that affect the answer, with their values.
    pub settings: Vec<(&'static str, &'static str)>,
    /// Final values of an execution that shows the answer, if the execution itself is not kept.
    pub values: State,
    /// The expectation's known failure, if any.
    pub known: Option<KnownFailure>,
    /// Whether the test states for this model that programs race or are undefined.
    pub mentions_undefined: bool,
    /// Whether an undefined program is a failure if the test does not mention it.
    pub denies_undefined: bool,
    /// Whether it is a failure if the program races, is undefined or hangs, and nothing is
    /// expected.
    pub denies_fault: bool,
    /// Of a kernel of a source file: what is told at its lines.
    pub kernel: Option<Box<KernelAnswer>>,
    /// Remarks for people.
    pub notes: Vec<String>,
    /// Wall time in milliseconds, if timings are on.
    pub ms: Option<f64>,
    /// The position in the whole run, if this run is one of several parts.
    pub part: Option<PartOf>,
}

impl AnswerLine {
    /// The line of an answer to a question without a condition, an expectation or settings.
    pub fn new(path: &str, test: &str, model: &str, property: Property, answer: Answer) -> Self {
        AnswerLine {
            path: path.into(),
            test: test.into(),
            site: FileSite::default(),
            model: model.into(),
            property,
            quantifier: "none",
            proposition: String::new(),
            expected: None,
            reading: None,
            answer,
            mapping: None,
            settings: Vec::new(),
            values: Vec::new(),
            known: None,
            mentions_undefined: false,
            denies_undefined: false,
            denies_fault: false,
            kernel: None,
            notes: Vec::new(),
            ms: None,
            part: None,
        }
    }
}

/// The position of an answer in a run with several parts. It shows whether parts belong to one run,
/// are disjoint and make up the whole. One part contains all answers for a (test, model) pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartOf {
    /// The part, from 1.
    pub number: u64,
    /// The number of parts.
    pub of: u64,
    /// The pair, from 0, in the order of the whole run.
    pub pair: usize,
    /// The number of pairs in this part.
    pub here: usize,
    /// The number of pairs in the whole run.
    pub pairs: usize,
    /// The answer's number among those for the pair, from 0.
    pub answer: usize,
    /// The number of answers for the pair.
    pub answers: usize,
    /// A digest of everything that the answers of the whole run depend on.
    pub whole: String,
}

/// An unexpected answer under a reading of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnmetReading {
    /// The reading: `async-fence=thread`.
    pub under: String,
    /// The test's expectation there.
    pub expected: String,
    /// The answer's word.
    pub verdict: String,
}

/// An expectation with a known failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownFailure {
    /// The reason.
    pub reason: String,
    /// Whether the expectation is met nevertheless.
    pub passes: bool,
}

impl AnswerLine {
    /// The final values of an execution that shows the answer.
    pub fn values(&self) -> &State {
        self.answer
            .witness
            .as_ref()
            .map_or(&self.values, |witness| &witness.state)
    }

    /// The status of the query.
    pub fn status(&self) -> QueryStatus {
        match (&self.answer.verdict, &self.known, self.met()) {
            _ if self.answer.defect.is_some() => QueryStatus::Defect,
            _ if let Some(fault) = self.fault_status().filter(|_| self.expected.is_none()) => fault,
            (Verdict::Undecided(_), ..) => QueryStatus::Undecided(self.expected.is_some()),
            (_, Some(KnownFailure { passes: false, .. }), Some(false)) => QueryStatus::Known,
            (_, Some(KnownFailure { passes: true, .. }), _) | (_, _, Some(false)) => {
                QueryStatus::Unmet
            }
            _ => match &self.answer.definedness {
                Some(Definedness::Undefined(_)) if !self.mentions_undefined => {
                    QueryStatus::Undefined(self.denies_undefined)
                }
                _ => QueryStatus::Passed,
            },
        }
    }

    /// Whether the answer is the expected one; `None` if nothing is expected or the answer is
    /// undecided.
    pub fn met(&self) -> Option<bool> {
        is_met(self.expected, self.answer.verdict.word()).map(|met| met && self.reading.is_none())
    }

    /// The fault that makes the program undefined or racy.
    pub fn fault(&self) -> Option<&Fault> {
        match &self.answer.definedness {
            Some(Definedness::Undefined(fault)) => Some(fault),
            _ => self.answer.fault.as_deref(),
        }
    }

    /// Drops the executions that show the answer; the racing accesses remain.
    pub fn drop_evidence(&mut self) {
        if let Some(witness) = self.answer.witness.take() {
            self.values = witness.state;
        }
        let undefined = match &mut self.answer.definedness {
            Some(Definedness::Undefined(fault)) => Some(fault),
            _ => None,
        };
        for fault in undefined.into_iter().chain(self.answer.fault.as_mut()) {
            fault.execution = None;
        }
    }

    /// The same as [`AnswerLine::drop_evidence`], but keeps the final states of threads in a run
    /// that hangs, because they are the reason for the answer.
    pub fn drop_executions(&mut self) {
        let ends = self
            .answer
            .witness
            .as_mut()
            .map(|w| std::mem::take(&mut w.ends))
            .filter(|ends| !ends.is_empty());
        self.drop_evidence();
        let (events, relations, state, threads, derived, styles) = Default::default();
        self.answer.witness = ends.map(|ends| Witness {
            events,
            relations,
            state,
            ends,
            threads,
            derived,
            styles,
        });
    }
}

/// Whether a verdict, given by its word, is the expected one. `None` if nothing is expected or the
/// verdict is undecided.
pub fn is_met(expected: Option<&str>, verdict: &str) -> Option<bool> {
    match (expected?, verdict) {
        (_, "undecided") => None,
        // `required P` searches for an execution that violates P, and is met if there is none.
        ("required", verdict) => Some(verdict == "forbidden"),
        (expected, verdict) => Some(verdict == expected),
    }
}

/// Every outcome of one test under one model.
#[derive(Clone, Debug)]
pub struct OutcomeTable {
    /// As in [`AnswerLine`].
    pub path: String,
    /// As in [`AnswerLine`].
    pub test: String,
    /// As in [`AnswerLine`].
    pub model: String,
    /// As in [`AnswerLine`].
    pub mapping: Option<&'static str>,
    /// The outcomes.
    pub outcomes: Outcomes,
    /// Wall time in milliseconds, if timings are on.
    pub ms: Option<f64>,
}
