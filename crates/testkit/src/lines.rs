//! Turns answers into report lines, for tests without expectations.

use program::litmus::LitmusTest;
use report::AnswerLine;
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
        quantifier: test.quantifier.name(),
        proposition: test.condition_text.trim().into(),
        ..AnswerLine::new(path, &test.name, model, property, answer)
    }
}
