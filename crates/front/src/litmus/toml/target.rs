//! Where in a file the expectation of one test stands: what [`crate::litmus::bless()`] edits.

use ::toml::de::DeTable;

use super::template::Template;
use super::{Reader, matrix};
use diag::{Sink, SourceFile, Span};

/// A place to edit.
pub(in crate::litmus) enum Target {
    /// This range is to be replaced by this text.
    Replace(Span, String),
    /// The `expect` table of an instance, or of the file.
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
) -> Option<Target> {
    let file = SourceFile::new("", text);
    let mut sink = Sink::new(&file);
    let template = Template::new(root, text, &mut sink);
    let choices = template.choices(&mut sink);
    let matrices = matrix::read(root, &template, text, &mut sink);
    let mut reader = Reader {
        file: text,
        root,
        template,
        sink: &mut sink,
    };
    let choice = choices
        .iter()
        .find(|c| reader.name(c).is_some_and(|n| n.0 == test))?;
    // The last matrix to speak of it decides.
    if let Some(edit) = matrices
        .iter()
        .rev()
        .find_map(|m| m.edit(choice, model, property, verdict))
    {
        let (span, letter) = edit?;
        return Some(Target::Replace(span, letter));
    }
    let alone = choice.instance.is_some() || choices.len() == 1;
    alone.then_some(Target::Expect(choice.instance))
}
