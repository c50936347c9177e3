//! Finds the dialect of a `.litmus` file from its first word.

use super::cells::skip_space;
use crate::litmus::fronts::FRONTS;
use diag::{Sink, Span};
use program::Dialect;

/// First words of dialects that are recognised, but not supported.
const UNREAD: &[&str] = &["VULKAN", "Vulkan"];

/// The offset of the text after a byte order mark and white space.
pub(super) fn begin(text: &str) -> usize {
    let bare = text.trim_start_matches('\u{feff}');
    text.len() - bare.len() + skip_space(bare, 0)
}

/// The dialect that the first word names.
pub(super) fn dialect(text: &str, sink: &mut Sink) -> Option<Dialect> {
    let start = begin(text);
    let word = text[start..].split_whitespace().next().unwrap_or("");
    let span = Span::new(start, start + word.len());
    if let Some(front) = FRONTS.iter().find(|front| front.heads.contains(&word)) {
        return Some(front.dialect);
    }
    let heads: Vec<String> = FRONTS
        .iter()
        .filter_map(|front| front.heads.first())
        .map(|word| format!("`{word}`"))
        .collect();
    let (last, others) = heads
        .split_last()
        .expect("some dialect has `.litmus` files");
    let read = format!("{} and {last}", others.join(", "));
    if UNREAD.contains(&word) {
        let message = "`.litmus` files of the Vulkan dialect are not supported yet";
        sink.error("unsupported-dialect", span, message, |d| {
            d.label(format!("only {read} are read"))
        });
    } else {
        sink.error(
            "unknown-dialect",
            span,
            format!("`{word}` is not a dialect of `.litmus` files"),
            |d| {
                let known = FRONTS
                    .iter()
                    .flat_map(|front| front.heads)
                    .chain(UNREAD)
                    .copied();
                d.label(format!("expected {} or {last}", others.join(", ")))
                    .did_you_mean(word, known)
            },
        );
    }
    None
}
