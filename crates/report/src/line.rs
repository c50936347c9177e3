//! What reports are about: an answer with what it answers, a list of outcomes, and where in a file
//! something stands.

use std::fmt;
use std::sync::Arc;

use diag::{SourceFile, Span, visible};
use serde::{Deserialize, Serialize};
use verdict::{Answer, Definedness, Fault, Outcomes, Property, State, Verdict, Witness};

use super::status::Status;

/// Where in a file something stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The file, as the user named it or it was found; empty: none.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl Site {
    /// The beginning of a span.
    pub fn at(file: &Arc<SourceFile>, span: Span) -> Site {
        let (line, column) = file.line_column(span.start as usize);
        // As version control names it.
        let name = file.name.strip_prefix("./").unwrap_or(&file.name);
        Site {
            file: name.to_owned(),
            line,
            column,
        }
    }
}

impl Line {
    /// The options that the answer rests on, as they were set: `same-value=benign`.
    pub(crate) fn set(&self) -> impl Iterator<Item = String> {
        self.settings
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
    }

    /// How many pairs of lines race beside that of the fault, and whether there may be more.
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

impl fmt::Display for Site {
    /// `file:line`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", visible(&self.file), self.line)
    }
}

/// One answer, and what it answers.
#[derive(Clone, Debug)]
pub struct Line {
    /// Relative to the PATH argument the test was found under.
    pub path: String,
    /// The test's name.
    pub test: String,
    /// Where the test says what it expects, or else what it asks.
    pub site: Site,
    /// The model's name.
    pub model: String,
    /// What was asked.
    pub property: Property,
    /// How the condition is quantified: `exists`, `~exists`, `forall`, `none`.
    pub quantifier: &'static str,
    /// The proposition asked about, as written; empty if there is none.
    pub proposition: String,
    /// What the test expects: a verdict's word, or `required`.
    pub expected: Option<&'static str>,
    /// A reading of the source under which the answer is not what the test expects of it.
    pub reading: Option<Reading>,
    /// What came out.
    pub answer: Answer,
    /// The mapping through which the test was judged.
    pub mapping: Option<&'static str>,
    /// Options that were set and that the answer rests on, each with its value.
    pub settings: Vec<(&'static str, &'static str)>,
    /// Final values of an execution that shows the answer, where the execution itself is not kept.
    pub values: State,
    /// What is known of the expectation.
    pub known: Option<Known>,
    /// Whether the test says of this model that programs race, or are undefined.
    pub mentions_undefined: bool,
    /// Whether it is a failure if the program is undefined, and the test does not mention it.
    pub denies_undefined: bool,
    /// Remarks for people.
    pub notes: Vec<String>,
    /// Wall time in milliseconds, if timings were asked for.
    pub ms: Option<f64>,
    /// Where it stands in the whole run, if this is one of several parts.
    pub part: Option<PartOf>,
}

/// Where an answer stands in a run of which this is one of several parts: what tells that parts are
/// of one run, are disjoint and make up the whole. A (test, model) pair is in one part, with all
/// its answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartOf {
    /// The part, from 1.
    pub number: u64,
    /// Of how many.
    pub of: u64,
    /// The pair, from 0, in the order of the whole run.
    pub pair: usize,
    /// How many pairs this part has.
    pub here: usize,
    /// How many pairs there are in all.
    pub pairs: usize,
    /// The answer, from 0, of those about the pair.
    pub answer: usize,
    /// How many there are.
    pub answers: usize,
    /// Stands for everything that the answers of the whole run depend on.
    pub whole: String,
}

/// An answer under a reading of the source that is not the expected one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The reading: `async-fence=thread`.
    pub under: String,
    /// What the test expects there.
    pub expected: String,
    /// The answer's word.
    pub verdict: String,
}

/// An expectation that is known not to be met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Why.
    pub reason: String,
    /// Whether it is met all the same.
    pub passes: bool,
}

impl Line {
    /// The final values of an execution that shows the answer.
    pub fn values(&self) -> &State {
        self.answer
            .witness
            .as_ref()
            .map_or(&self.values, |witness| &witness.state)
    }

    /// What became of the question.
    pub fn status(&self) -> Status {
        match (&self.answer.verdict, &self.known, self.met()) {
            _ if self.answer.defect.is_some() => Status::Defect,
            (Verdict::Undecided(_), ..) => Status::Undecided(self.expected.is_some()),
            (_, Some(Known { passes: false, .. }), Some(false)) => Status::Known,
            (_, Some(Known { passes: true, .. }), _) | (_, _, Some(false)) => Status::Unmet,
            _ => match &self.answer.definedness {
                Some(Definedness::Undefined(_)) if !self.mentions_undefined => {
                    Status::Undefined(self.denies_undefined)
                }
                _ => Status::Passed,
            },
        }
    }

    /// Whether the answer is the expected one; `None` if nothing is expected or nothing was
    /// decided.
    pub fn met(&self) -> Option<bool> {
        is_met(self.expected, self.answer.verdict.word()).map(|met| met && self.reading.is_none())
    }

    /// What makes the program undefined, or race.
    pub fn fault(&self) -> Option<&Fault> {
        match &self.answer.definedness {
            Some(Definedness::Undefined(fault)) => Some(fault),
            _ => self.answer.fault.as_deref(),
        }
    }

    /// Forgets the executions that show the answer; the accesses that race stay.
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

    /// As [`Line::drop_evidence`], but how the threads of a run that hangs end is kept: that is the
    /// answer's reason.
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

/// Whether a verdict is the expected one; `None` if nothing is expected or nothing was decided.
/// The verdict is given by its word.
pub fn is_met(expected: Option<&str>, verdict: &str) -> Option<bool> {
    match (expected?, verdict) {
        (_, "undecided") => None,
        // `required P` asks whether some execution violates P, and is met if none does.
        ("required", verdict) => Some(verdict == "forbidden"),
        (expected, verdict) => Some(verdict == expected),
    }
}

/// Every outcome of one test under one model.
#[derive(Clone, Debug)]
pub struct Table {
    /// As in [`Line`].
    pub path: String,
    /// As in [`Line`].
    pub test: String,
    /// As in [`Line`].
    pub model: String,
    /// As in [`Line`].
    pub mapping: Option<&'static str>,
    /// What came out.
    pub outcomes: Outcomes,
    /// Wall time in milliseconds, if timings were asked for.
    pub ms: Option<f64>,
}
