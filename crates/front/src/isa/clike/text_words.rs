//! Splits C-like code into words, before the preprocessor and for other passes over the text.
//!
//! # Sources
//! - C11, 6.4.8, *Preprocessing numbers*.

use std::ops::Range;

use super::lex::PUNCTUATION;
use diag::MappedText;

/// A word, and whether it is the first one of its line.
pub(super) type Word = (Range<usize>, bool);

/// Operators of the preprocessor only.
const SIGNS: &[&str] = &["::", "##"];

/// Appends a text with other words in the place of some ranges, which come in their order.
pub(super) fn append_changed<'w>(
    out: &mut MappedText,
    text: &MappedText,
    changes: impl Iterator<Item = (Range<usize>, &'w str)>,
) {
    let mut from = 0;
    for (range, word) in changes {
        out.push_slice(text, from..range.start);
        out.push_opaque(word, text.span(range.clone()));
        from = range.end;
    }
    out.push_slice(text, from..text.as_str().len());
}

/// The words of a text: identifiers, numbers, strings, operators; no white space, no comments.
pub(super) fn words(source: &str) -> Vec<Word> {
    let mut all = Vec::new();
    let (mut at, mut first) = (0, true);
    while let Some(c) = source[at..].chars().next() {
        let rest = &source[at..];
        fn word(c: char) -> bool {
            c.is_ascii_alphanumeric() || c == '_' || c == '$'
        }
        let len = if c == '\n' {
            first = true;
            at += 1;
            continue;
        } else if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        } else if rest.starts_with("\\\n") || rest.starts_with("\\\r\n") {
            at += rest.find('\n').map_or(1, |n| n + 1);
            continue;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        } else if let Some(body) = rest.strip_prefix("/*") {
            at += body.find("*/").map_or(rest.len(), |n| n + 4);
            continue;
        } else if c.is_ascii_digit() || (c == '.' && is_digit(rest, 1)) {
            number_length(rest)
        } else if word(c) {
            rest.find(|c| !word(c)).unwrap_or(rest.len())
        } else if c == '"' || c == '\'' {
            quoted(rest, c)
        } else {
            SIGNS
                .iter()
                .chain(PUNCTUATION)
                .find(|p| rest.starts_with(**p))
                .map_or(c.len_utf8(), |p| p.len())
        };
        all.push((at..at + len, first));
        (at, first) = (at + len, false);
    }
    all
}

/// The parts of a list of words between its commas. `behind` is the word behind the bracket that
/// closes the one at a word.
pub(super) fn parts<'a>(
    list: Range<usize>,
    word: impl Fn(usize) -> &'a str,
    behind: impl Fn(usize) -> Option<usize>,
) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let (mut at, mut start) = (list.start, list.start);
    while at < list.end {
        match word(at) {
            "(" | "[" | "{" => at = behind(at).unwrap_or(list.end),
            "," => {
                all.push(start..at);
                at += 1;
                start = at;
            }
            _ => at += 1,
        }
    }
    if start < list.end {
        all.push(start..list.end);
    }
    all
}

fn is_digit(text: &str, at: usize) -> bool {
    text.as_bytes().get(at).is_some_and(u8::is_ascii_digit)
}

/// The length of a number as the preprocessor takes it: `100.0f`, `1e-3` (C11, 6.4.8).
fn number_length(text: &str) -> usize {
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let sign = matches!(c, '+' | '-') && matches!(before, 'e' | 'E' | 'p' | 'P');
        // `0xe+1` is a sum in this code, whatever the standard says.
        let sign = sign && !text.starts_with("0x") && !text.starts_with("0X");
        let digit = c == '\'' && is_digit(text, at + 1);
        if !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.') || sign || digit) {
            return at;
        }
        before = c;
    }
    text.len()
}

/// The length of a string or character. If its end is missing, the length of the quote.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (n, c) in text.char_indices().skip(1) {
        match c {
            '\n' => break,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return n + 1,
            _ => {}
        }
    }
    1
}
