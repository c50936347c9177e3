//! `--bless` replaces unmet expectations by the decided answers.
//!
//! # Invariants
//! - It changes existing expectations that were decided otherwise, and nothing else of a file.
//! - It writes a file as a whole or not at all: only if the file is still as read, and the result
//!   is a valid file.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::plan::Unit;
use super::{catalogue, files, seams};
use diag::{Diagnostic, SourceFile, file, visible};
use program::litmus::Quantifier;
use report::{AnswerLine, FileSite, QueryStatus};

/// An expectation to write.
pub(super) struct Edit {
    file: Arc<SourceFile>,
    test: String,
    model: String,
    property: String,
    verdict: &'static str,
    /// For people: the place, and the old and new word.
    told: (FileSite, String),
}

/// The result of blessing.
#[derive(Default)]
pub(super) struct Blessed {
    /// The written expectations: their places, and the old and new words.
    pub written: Vec<(FileSite, String)>,
    /// The number of files written.
    pub files: usize,
    /// The number of expectations that could not be written.
    pub left: usize,
    /// The reasons.
    pub diagnostics: Vec<Diagnostic>,
}

/// The edit that makes an answer the expected one; `None` if it is already, or nothing was expected
/// or decided.
pub(super) fn edit(unit: &Unit<'_>, line: &AnswerLine) -> Option<Result<Edit, Diagnostic>> {
    // A known failure stays: the test says so.
    let own = report::is_met(line.expected, line.answer.verdict.word());
    if line.met() != Some(false) || line.status() == QueryStatus::Known || own != Some(false) {
        return None;
    }
    let left = |why: &str| {
        let message = format!(
            "{} under {}: {} not blessed: {why}",
            line.test, line.model, line.property
        );
        Some(Err(Diagnostic::plain("not-blessed", message).warning()))
    };
    if line.expected == Some("required") && unit.source.quantifier != Quantifier::ForAll {
        // A violation was found; the question whether the condition itself can hold was never put.
        return left(
            "the answer is not `required`, and this run did not ask between `allowed` and \
            `forbidden`",
        );
    }
    if unit.source.file.name == "<stdin>" {
        return left("it was read from standard input");
    }
    Some(Ok(Edit {
        file: Arc::clone(&unit.source.file),
        test: line.test.clone(),
        model: catalogue::label(&line.model),
        property: line.property.to_string(),
        verdict: line.answer.verdict.word(),
        told: (
            line.site.clone(),
            visible(&format!(
                "{} under {}, {}: {} becomes {}",
                line.test,
                line.model,
                line.property,
                line.expected.unwrap_or_default(),
                line.answer.verdict.word()
            )),
        ),
    }))
}

/// Writes all edits.
pub(super) fn apply(edits: &[Edit]) -> Blessed {
    let mut by_file: BTreeMap<&str, Vec<&Edit>> = BTreeMap::new();
    for edit in edits {
        by_file.entry(&edit.file.name).or_default().push(edit);
    }
    let mut blessed = Blessed::default();
    for (name, edits) in by_file {
        let mut refuse = |count: usize, id: &'static str, message: String| {
            blessed.left += count;
            let plain = Diagnostic::plain(id, message);
            blessed.diagnostics.push(if id == "not-blessed" {
                plain.warning()
            } else {
                plain
            });
        };
        let old = &edits[0].file.text;
        let mut text = old.clone();
        let mut written = Vec::new();
        for edit in &edits {
            match seams::bless(&text, &edit.test, &edit.model, &edit.property, edit.verdict) {
                Some(new) => {
                    text = new;
                    written.push(edit.told.clone());
                }
                None => refuse(
                    1,
                    "not-blessed",
                    format!(
                        "`{name}`: no expectation is about {} under {} alone",
                        edit.test, edit.model
                    ),
                ),
            }
        }
        if written.is_empty() {
            continue;
        }
        if file::read(name.as_ref(), file::LARGEST).ok().as_deref() != Some(old.as_bytes()) {
            refuse(
                written.len(),
                "not-blessed",
                format!("`{name}` changed since it was read; it is left as it is"),
            );
        } else if seams::read_tests(name, text.as_bytes()).is_err() {
            refuse(
                written.len(),
                "not-blessed",
                format!("`{name}` would not be valid any more; it is left as it is"),
            );
        } else if let Err(error) = files::keep(name.as_ref(), text.as_bytes()) {
            refuse(
                written.len(),
                "unwritable-path",
                format!("cannot write `{name}`: {error}"),
            );
        } else {
            blessed.written.extend(written);
            blessed.files += 1;
        }
    }
    blessed
}
