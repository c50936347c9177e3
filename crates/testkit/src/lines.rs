//! Turns answers into report lines, for tests without expectations.

use program::litmus::LitmusTest;
use report::{AnswerLine, FileSite};
use verdict::{Answer, Property};

/// The line of an answer.
pub fn line(
    path: &str,
    test: &LitmusTest,
    model: &str,
    property: Property,
    answer: Answer,
) -> AnswerLine {
    AnswerLine {
        path: path.into(),
        test: test.name.clone(),
        site: FileSite::default(),
        model: model.into(),
        property,
        quantifier: test.quantifier.name(),
        proposition: test.condition_text.trim().into(),
        expected: None,
        answer,
        mapping: None,
        settings: Vec::new(),
        values: Vec::new(),
        known: None,
        reading: None,
        mentions_undefined: false,
        denies_undefined: false,
        denies_fault: false,
        kernel: None,
        notes: Vec::new(),
        ms: None,
        part: None,
    }
}
