//! Finds the expectation of one test in a file, for [`crate::litmus::bless()`] to edit.

use ::toml::de::DeTable;

use super::template::Template;
use super::{TestReader, matrix};
use diag::{Sink, SourceFile, Span};

/// A place to edit.
pub(in crate::litmus) enum EditTarget {
    /// Replace this range by this text.
    Replace(Span, String),
    /// Edit the `expect` table of an instance, or of the file.
    Expect(Option<usize>),
}

/// Finds the place for an answer about one test.
pub(in crate::litmus) fn find(
    root: &DeTable<'_>,
    text: &str,
    test: &str,
    model: &str,
    property: &str,
    verdict: &str,
) -> Option<EditTarget> {
    let file = SourceFile::new("", text);
    let mut sink = Sink::new(&file);
    let template = Template::new(root, text, &mut sink);
    let choices = template.choices(&mut sink);
    let matrices = matrix::read(root, &template, text, &mut sink);
    let mut reader = TestReader {
        file: text,
        root,
        made: None,
        template,
        sink: &mut sink,
        reading: crate::litmus::reading::Reading::Exact,
    };
    let choice = choices
        .iter()
        .find(|c| reader.name(c).is_some_and(|n| n.0 == test))?;
    // If several matrices cover the test, the last one decides.
    if let Some(edit) = matrices
        .iter()
        .rev()
        .find_map(|m| m.edit(choice, model, property, verdict))
    {
        let (span, letter) = edit?;
        return Some(EditTarget::Replace(span, letter));
    }
    let alone = choice.instance.is_some() || choices.len() == 1;
    alone.then_some(EditTarget::Expect(choice.instance))
}
