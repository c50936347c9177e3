//! Renders diagnostics as text in the style of rustc, plain or coloured.

use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

use super::{Diagnostic, Severity, SourceFile, Span, harmless, visible};

/// Whether the text has terminal colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextStyle {
    /// No escape sequences.
    Plain,
    /// ANSI colours.
    Coloured,
}

/// The maximum number of bytes shown from the marked place on; this cuts very long lines.
const SHOWN: usize = 2048;

/// Renders one diagnostic as several lines that end in a newline. Text from the input never begins
/// a line or forms a command.
pub fn render(diagnostic: &Diagnostic, style: TextStyle) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level
        .primary_title(visible(&diagnostic.message))
        .id(diagnostic.id);
    let label = visible(&diagnostic.label);
    let marks = diagnostic.secondary.iter();
    let marks: Vec<(Span, String)> = marks.map(|(span, text)| (*span, visible(text))).collect();
    let mut group = match &diagnostic.source {
        Some(source) => {
            // The place of the diagnostic comes first, then those in other files.
            let part = |span: Span| source.part(span.start as usize).1;
            let first = part(diagnostic.span);
            let mut group = title.element(snippet(
                source,
                first.clone(),
                Some((diagnostic.span, &label)),
                &marks,
            ));
            let mut others: Vec<Range<usize>> = Vec::new();
            for (span, _) in &marks {
                let other = part(*span);
                if other != first && !others.contains(&other) {
                    others.push(other);
                }
            }
            for other in others {
                group = group.element(snippet(source, other, None, &marks));
            }
            group
        }
        None => Group::with_title(title),
    };
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(visible(note)));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(visible(help)));
    }
    let renderer = match style {
        TextStyle::Plain => Renderer::plain(),
        TextStyle::Coloured => Renderer::styled(),
    };
    let mut text = harmless(&renderer.render(&[group]).to_string()).into_owned();
    text.push('\n');
    text
}

/// The beginning of a range inside a part of a text, in whole characters.
fn within(source: &SourceFile, part: &Range<usize>, r: Range<usize>) -> Range<usize> {
    let mut start = r.start.min(part.end);
    let mut end = r.end.min(part.end).min(start + SHOWN);
    while !source.text.is_char_boundary(start) {
        start -= 1;
    }
    while !source.text.is_char_boundary(end) {
        end += 1;
    }
    start..end.max(start)
}

/// The lines of one part of a source text with the marks in it.
fn snippet<'a>(
    source: &'a SourceFile,
    part: Range<usize>,
    primary: Option<(Span, &'a String)>,
    marks: &'a [(Span, String)],
) -> Snippet<'a, Annotation<'a>> {
    let mut marks: Vec<&(Span, String)> = marks.iter().collect();
    marks.retain(|(span, _)| {
        let start = span.start as usize;
        part.contains(&start) || start >= source.text.len()
    });
    // Only the lines around the spans: searching a 10 MB file for one message is too slow.
    let primary_span = primary.iter().map(|one| one.0);
    let spans = primary_span.chain(marks.iter().map(|mark| mark.0));
    let ranges: Vec<Range<usize>> = spans.map(|s| within(source, &part, s.range())).collect();
    let first = ranges.iter().map(|r| r.start).min().unwrap_or(part.start);
    let last = ranges.iter().map(|r| r.end).max().unwrap_or(part.start);
    let before = &source.text[part.start..first.max(part.start)];
    let begin = before
        .rfind('\n')
        .map_or(part.start, |n| part.start + n + 1);
    let shown = within(source, &part, last..part.end).end;
    let end = source.text[last..shown]
        .find('\n')
        .map_or(shown, |n| last + n + 1);
    let above = &source.text[part.start..begin];
    let line = above.bytes().filter(|&b| b == b'\n').count() + 1;
    let clamp = |r: Range<usize>| {
        let r = within(source, &part, r);
        r.start - begin..r.end - begin
    };
    let mut snippet = Snippet::source(&source.text[begin..end])
        .line_start(line)
        .path(visible(source.part(part.start).0));
    if let Some((span, label)) = primary {
        let mark = AnnotationKind::Primary.span(clamp(span.range()));
        snippet = snippet.annotation(mark.label(label.as_str()));
    }
    for (span, text) in marks {
        let mark = AnnotationKind::Context.span(clamp(span.range()));
        snippet = snippet.annotation(mark.label(text.as_str()));
    }
    snippet
}
