//! Converts between the editor's positions and bytes of a text, and finds words and lines.
//!
//! # Invariants
//! - The editor counts lines from 0, and in a line UTF-16 code units. Positions outside the text
//!   count as its nearest place.

use serde_json::{Value, json};

/// The byte offset of a position.
pub(super) fn offset(text: &str, position: &Value) -> usize {
    let number = |key: &str| usize::try_from(position[key].as_u64().unwrap_or(0));
    let (line, units) = (
        number("line").unwrap_or(0),
        number("character").unwrap_or(0),
    );
    let mut start = 0;
    for _ in 0..line {
        match text[start..].find('\n') {
            Some(end) => start += end + 1,
            None => return text.len(),
        }
    }
    let mut left = units;
    for (at, c) in text[start..].char_indices() {
        if left == 0 || c == '\n' {
            return start + at;
        }
        left = left.saturating_sub(c.len_utf16());
    }
    text.len()
}

/// The position of a byte offset.
pub(super) fn position(text: &str, offset: usize) -> Value {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line = before.bytes().filter(|&byte| byte == b'\n').count();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let character: usize = before[start..].chars().map(char::len_utf16).sum();
    json!({ "line": line, "character": character })
}

/// The range between two byte offsets.
pub(super) fn range(text: &str, start: usize, end: usize) -> Value {
    json!({ "start": position(text, start), "end": position(text, end.max(start)) })
}

/// The bytes of a line, counted from 1, without its end.
pub(super) fn line(text: &str, number: usize) -> Option<(usize, &str)> {
    let mut start = 0;
    for (at, line) in text.split_inclusive('\n').enumerate() {
        if at + 1 == number {
            return Some((start, line.trim_end_matches(['\n', '\r'])));
        }
        start += line.len();
    }
    None
}

/// The range from a place to the end of its line; line and column count from 1, columns characters.
pub(super) fn rest_of_line(text: &str, number: usize, column: usize) -> Value {
    let Some((start, line)) = line(text, number) else {
        return range(text, text.len(), text.len());
    };
    let skipped = line.char_indices().nth(column.saturating_sub(1));
    let from = skipped.map_or_else(|| line.len() - line.trim_start().len(), |(at, _)| at);
    // The first column means the line, without its blanks.
    let from = from
        .max(line.len() - line.trim_start().len())
        .min(line.len());
    range(text, start + from, start + line.trim_end().len())
}

/// Whether a character belongs to a word. Dots do not: `ld.acquire.gpu` has three.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '$')
}

/// The word around an offset: its start and its text.
pub(super) fn word(text: &str, offset: usize) -> (usize, &str) {
    let before = text[..offset].trim_end_matches(is_of_word);
    let after = text[offset..].trim_start_matches(is_of_word);
    let (start, end) = (before.len(), text.len() - after.len());
    (start, &text[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a = 'é𝄞x'\r\nld.acquire.gpu r0, f\n";

    #[test]
    fn positions_count_utf_16() {
        for (at, line, character) in [(0, 0, 0), (5, 0, 5), (7, 0, 6), (11, 0, 8), (15, 1, 0)] {
            let there = json!({ "line": line, "character": character });
            assert_eq!(position(TEXT, at), there);
            assert_eq!(offset(TEXT, &there), at);
        }
        let outside = json!({ "line": 9, "character": 1 });
        assert_eq!(offset(TEXT, &outside), TEXT.len());
        assert_eq!(offset(TEXT, &json!("garbage")), 0);
    }

    #[test]
    fn a_word_ends_at_a_dot() {
        let at = TEXT.find("quire").expect("there");
        assert_eq!(word(TEXT, at), (at - 2, "acquire"));
        assert_eq!(word(TEXT, TEXT.len()).1, "");
    }

    #[test]
    fn a_range_stays_in_its_line() {
        let found = rest_of_line(TEXT, 2, 4);
        assert_eq!(found["start"], json!({ "line": 1, "character": 3 }));
        assert_eq!(found["end"], json!({ "line": 1, "character": 20 }));
        let outside = rest_of_line(TEXT, 7, 1);
        assert_eq!(outside["start"], outside["end"]);
    }
}
