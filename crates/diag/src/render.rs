//! Renders diagnostics as text in the style of rustc, plain or coloured.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::{Diagnostic, Severity, harmless, visible};

/// Whether the text has terminal colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// No escape sequences.
    Plain,
    /// ANSI colours.
    Coloured,
}

/// The maximum number of bytes shown from the marked place on; this cuts very long lines.
const SHOWN: usize = 2048;

/// Renders one diagnostic as several lines that end in a newline. Text from the input never begins
/// a line or forms a command.
pub fn render(diagnostic: &Diagnostic, style: Style) -> String {
    let label = visible(&diagnostic.label);
    let name = diagnostic
        .source
        .as_ref()
        .map(|source| visible(&source.name))
        .unwrap_or_default();
    let secondary: Vec<_> = diagnostic
        .secondary
        .iter()
        .map(|(span, text)| (span, visible(text)))
        .collect();
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level
        .primary_title(visible(&diagnostic.message))
        .id(diagnostic.id);
    let mut group = match &diagnostic.source {
        Some(source) => {
            let len = source.text.len();
            let whole = |r: std::ops::Range<usize>| {
                let mut start = r.start.min(len);
                let mut end = r.end.min(len).min(start + SHOWN);
                while !source.text.is_char_boundary(start) {
                    start -= 1;
                }
                while !source.text.is_char_boundary(end) {
                    end += 1;
                }
                start..end.max(start)
            };
            // Only the lines around the spans: searching a 10 MB file for one message is too slow.
            let spans = || {
                [diagnostic.span]
                    .into_iter()
                    .chain(diagnostic.secondary.iter().map(|s| s.0))
            };
            let first = spans().map(|s| whole(s.range()).start).min().unwrap_or(0);
            let last = spans().map(|s| whole(s.range()).end).max().unwrap_or(0);
            let begin = source.text[..first].rfind('\n').map_or(0, |n| n + 1);
            let shown = whole(last..len).end;
            let end = source.text[last..shown]
                .find('\n')
                .map_or(shown, |n| last + n + 1);
            let line = source.text[..begin].bytes().filter(|&b| b == b'\n').count() + 1;
            let clamp = |r: std::ops::Range<usize>| {
                let r = whole(r);
                r.start - begin..r.end - begin
            };
            let mut snippet = Snippet::source(&source.text[begin..end])
                .line_start(line)
                .path(name.as_str())
                .annotation(
                    AnnotationKind::Primary
                        .span(clamp(diagnostic.span.range()))
                        .label(label.as_str()),
                );
            for (span, text) in &secondary {
                snippet = snippet.annotation(
                    AnnotationKind::Context
                        .span(clamp(span.range()))
                        .label(text.as_str()),
                );
            }
            title.element(snippet)
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
        Style::Plain => Renderer::plain(),
        Style::Coloured => Renderer::styled(),
    };
    let mut text = harmless(&renderer.render(&[group]).to_string()).into_owned();
    text.push('\n');
    text
}
