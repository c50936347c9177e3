//! Merges identical diagnostics: the first is kept in full, and a note lists the places of the
//! others.

use std::collections::HashMap;

use super::{Diagnostic, visible};

/// The number of places that a note names.
const NAMED: usize = 5;

/// Merges diagnostics that differ in nothing but their places, in the order of their first
/// occurrence.
pub fn together(diagnostics: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut first = HashMap::new();
    let mut kinds: Vec<(Diagnostic, Vec<String>)> = Vec::new();
    for diagnostic in diagnostics {
        let Diagnostic {
            id,
            severity,
            message,
            label,
            secondary,
            notes,
            help,
            ..
        } = diagnostic;
        let beside: Vec<&str> = secondary.iter().map(|(_, text)| text.as_str()).collect();
        let kind = (*id, *severity, message, label, beside, notes, help);
        let at = *first.entry(kind).or_insert(kinds.len());
        match kinds.get_mut(at) {
            Some((_, places)) => places.extend(place(diagnostic)),
            None => kinds.push((diagnostic.clone(), Vec::new())),
        }
    }
    kinds
        .into_iter()
        .map(|(diagnostic, places)| with_places(diagnostic, &places))
        .collect()
}

/// The place of a diagnostic, as `file:line:column`.
fn place(diagnostic: &Diagnostic) -> Option<String> {
    let source = diagnostic.source.as_ref()?;
    let (line, column) = source.line_column(diagnostic.span.start as usize);
    let name = source.part(diagnostic.span.start as usize).0;
    Some(format!("{}:{line}:{column}", visible(name)))
}

fn with_places(diagnostic: Diagnostic, places: &[String]) -> Diagnostic {
    let named = places
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match places.len() {
        0 => diagnostic,
        1 => diagnostic.note(format!("the same at {named}")),
        n if n <= NAMED => diagnostic.note(format!("the same at {n} other places: {named}")),
        n => diagnostic.note(format!("the same at {n} other places: {named}, …")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SourceFile, Span};
    use super::*;

    #[test]
    fn what_differs_in_its_place_alone_is_told_once() {
        let file = SourceFile::new("t", "a\nb\nc\nd\ne\nf\ng\nh");
        let at = |line: usize, message: &str| {
            Diagnostic::error("e", &file, Span::new(2 * line, 2 * line + 1), message)
        };
        let all = [at(0, "x"), at(1, "y"), at(2, "x"), at(3, "x").help("h")];
        let told = together(&all);
        assert_eq!(
            told.iter().map(|d| d.message.as_str()).collect::<Vec<_>>(),
            ["x", "y", "x"]
        );
        assert_eq!(told[0].notes, ["the same at t:3:1"]);
        assert!(told[1].notes.is_empty() && told[2].notes.is_empty());
        let many: Vec<_> = (0..8).map(|line| at(line, "x")).collect();
        let note = "the same at 7 other places: t:2:1, t:3:1, t:4:1, t:5:1, t:6:1, …";
        assert_eq!(together(&many)[0].notes, [note]);
    }
}
