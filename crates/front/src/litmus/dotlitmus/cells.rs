//! Small pieces of `.litmus` syntax: tokens, cells of a row, keywords of the final part.

use std::ops::Range;

use program::litmus::Quantifier;

/// The offset of the next character that is not white space.
pub(super) fn skip_space(text: &str, at: usize) -> usize {
    at + (text[at..].len() - text[at..].trim_start().len())
}

/// A cursor over the tokens in a part of a text: words, numbers, single characters.
#[derive(Clone)]
pub(super) struct WordCursor<'t> {
    text: &'t str,
    at: usize,
    end: usize,
}

impl<'t> WordCursor<'t> {
    pub(super) fn new(text: &'t str, range: Range<usize>) -> Self {
        WordCursor {
            text,
            at: range.start,
            end: range.end,
        }
    }

    /// The next token; an empty range at the end.
    pub(super) fn token(&mut self) -> Range<usize> {
        let start = skip_space(&self.text[..self.end], self.at);
        let rest = &self.text[start..self.end];
        let word = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let len = if word > 0 {
            word
        } else {
            rest.chars().next().map_or(0, char::len_utf8)
        };
        self.at = start + len;
        start..self.at
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.')
}

pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| is_word(c) && !c.is_ascii_digit())
}

pub(super) fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// Splits a row into its cells.
pub(super) fn split(text: &str, row: Range<usize>) -> Vec<Range<usize>> {
    let mut cells = Vec::new();
    let mut start = row.start;
    for cell in text[row].split('|') {
        cells.push(start..start + cell.len());
        start += cell.len() + 1;
    }
    cells
}

/// The offset after the keyword, if the text begins with it.
pub(super) fn keyword(text: &str, word: &str) -> Option<usize> {
    let start = skip_space(text, 0);
    let rest = text[start..].strip_prefix(word)?;
    (!rest.starts_with(is_word)).then_some(start + word.len())
}

/// Whether the final part begins here, instead of another row.
pub(super) fn starts_final_part(text: &str) -> bool {
    let negated =
        |word| keyword(text, word).is_some_and(|n| keyword(&text[n..], "exists").is_some());
    ["exists", "forall", "filter", "locations"]
        .iter()
        .any(|w| keyword(text, w).is_some())
        || negated("not")
        || text.starts_with('~')
}

/// The quantifier, and the range of its words.
pub(super) fn find_quantifier(text: &str) -> Option<(Quantifier, Range<usize>)> {
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let word = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        match &rest[..word] {
            "forall" => return Some((Quantifier::ForAll, at..at + word)),
            "exists" => {
                let before = text[..at].trim_end();
                let negation = before
                    .strip_suffix('~')
                    .or_else(|| before.strip_suffix("not").filter(|b| !b.ends_with(is_word)));
                return Some(match negation {
                    Some(b) => (Quantifier::NotExists, b.len()..at + word),
                    None => (Quantifier::Exists, at..at + word),
                });
            }
            _ => {
                at += if word > 0 {
                    word
                } else {
                    rest.chars().next().map_or(1, char::len_utf8)
                }
            }
        }
    }
    None
}
