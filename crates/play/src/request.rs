//! The requests of a page, and the replies.

use diag::{Diagnostic, Severity, TextStyle, render};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, tag = "call", rename_all = "kebab-case")]
pub(crate) enum Request {
    /// The examples and the models of the page.
    About,
    /// A question about a text.
    Check(CheckRequest),
}

/// A question about a text.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CheckRequest {
    /// The name of the file: its ending tells the form of the text.
    pub(crate) file: String,
    /// The text.
    pub(crate) text: String,
    /// The test, if the text has several; empty: the first one.
    pub(crate) test: String,
    /// The models; none: those that the text expects something of, else that of its language.
    pub(crate) models: Vec<String>,
    /// The property as results name it; empty: what the text expects, else its condition.
    pub(crate) property: String,
    /// An outcome in place of the test's condition.
    pub(crate) outcome: String,
    /// Whether every outcome is listed.
    pub(crate) outcomes: bool,
    /// Whether verdicts suffice: no repairs, pictures, outcomes or differences.
    pub(crate) brief: bool,
}

/// The answers to a [`CheckRequest`].
#[derive(Debug, Default, Serialize)]
pub(crate) struct Reply {
    /// Errors and warnings of the text or the request.
    pub(crate) errors: Vec<InputError>,
    /// The tests of the text.
    pub(crate) tests: Vec<String>,
    /// The test in question.
    pub(crate) test: String,
    /// Of a kernel: its launch. The answers are about this launch alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) launch: Option<String>,
    /// The answers, model by model.
    pub(crate) columns: Vec<ModelColumn>,
    /// Why the models differ, if they do.
    pub(crate) difference: Vec<String>,
}

/// The answers under one model.
#[derive(Debug, Serialize)]
pub(crate) struct ModelColumn {
    pub(crate) model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mapping: Option<&'static str>,
    pub(crate) answers: Vec<PlayAnswer>,
    /// As a line of `outcomes --format jsonl`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcomes: Option<Box<RawValue>>,
}

/// An answer with its evidence.
#[derive(Debug, Serialize)]
pub(crate) struct PlayAnswer {
    /// As a line of `check --format jsonl`.
    pub(crate) line: Box<RawValue>,
    /// As `ask` prints it.
    pub(crate) text: String,
    /// The executions.
    pub(crate) pictures: Vec<Picture>,
}

/// An execution as a picture.
#[derive(Debug, Serialize)]
pub(crate) struct Picture {
    /// For a page that has the style sheet.
    pub(crate) svg: String,
    /// The relations in it, and whether a page shows them at first.
    pub(crate) relations: Vec<(String, bool)>,
}

/// An error or a warning. Lines and columns count from 1.
#[derive(Debug, Serialize)]
pub(crate) struct InputError {
    severity: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    /// As the program prints it.
    text: String,
}

impl InputError {
    pub(crate) fn of(diagnostic: &Diagnostic) -> InputError {
        let start = diagnostic.span.start as usize;
        let place = diagnostic.source.as_ref().map(|s| s.line_column(start));
        InputError {
            severity: match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            message: diagnostic.message.clone(),
            line: place.map(|(line, _)| line),
            column: place.map(|(_, column)| column),
            text: render(diagnostic, TextStyle::Plain),
        }
    }
}
