//! Tokens of the C-like dialects.
//!
//! # Invariants
//! - Every byte that is no white space and in no comment belongs to exactly one token or was reported.
//! - The last token is [`Tok::End`].

use std::ops::Range;

use diag::{MappedText, Sink};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tok {
    /// An identifier or keyword, with its namespaces.
    Name,
    /// An integer, decimal or hexadecimal, suffix aside.
    Int(i64),
    /// A string, quotes included.
    Str,
    /// An operator or a bracket, as written.
    Punct(&'static str),
    /// Behind the last one.
    End,
}

/// A token with its place in the text.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) tok: Tok,
    pub(super) range: Range<usize>,
}

/// Operators and brackets; longer ones before those they begin with.
pub(super) const PUNCTUATION: &[&str] = &[
    "<<=", ">>=", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=",
    "|=", "^=", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "<", ">", "=", "(", ")", "[", "]", "{", "}",
    ",", ";", ":", "?", ".",
];

/// Splits a text into tokens.
pub(super) fn tokens(text: &MappedText, sink: &mut Sink) -> Vec<Token> {
    let source = text.as_str();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = source[at..].chars().next() {
        let rest = &source[at..];
        let len = if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        } else if let Some(body) = rest.strip_prefix("/*") {
            match body.find("*/") {
                Some(n) => at += n + 4,
                None => {
                    sink.error("c-syntax", text.span(at..at + 2), "this comment is never closed", |d| {
                        d.label("expected `*/` after it")
                    });
                    at = source.len();
                }
            }
            continue;
        } else if c == '#' {
            let end = at + rest.find('\n').unwrap_or(rest.len());
            sink.error("unsupported", text.span(at..end), "a directive begins a line", |d| {
                d.label("expected a statement").help("write it on a line of its own")
            });
            at = end;
            continue;
        } else if is_word(c) {
            name_len(rest)
        } else if c == '"' {
            let line = rest.find('\n').unwrap_or(rest.len());
            match rest[1..line].find('"') {
                Some(n) => n + 2,
                None => {
                    sink.error("c-syntax", text.span(at..at + 1), "this string is never closed", |d| {
                        d.label("expected `\"` on the same line")
                    });
                    at += line;
                    continue;
                }
            }
        } else {
            PUNCTUATION.iter().find(|p| rest.starts_with(**p)).map_or(c.len_utf8(), |p| p.len())
        };
        let range = at..at + len;
        at += len;
        let tok = if c.is_ascii_digit() {
            integer(text, &range, sink)
        } else if is_word(c) {
            Tok::Name
        } else if c == '"' {
            Tok::Str
        } else if let Some(p) = PUNCTUATION.iter().find(|p| **p == &source[range.clone()]) {
            Tok::Punct(p)
        } else {
            let message = format!("`{c}` means nothing here");
            sink.error("c-syntax", text.span(range), message, |d| {
                d.label("expected a statement or an expression")
            });
            continue;
        };
        tokens.push(Token { tok, range });
    }
    tokens.push(Token { tok: Tok::End, range: source.len()..source.len() });
    tokens
}

/// The length of the word that a text begins with; `a::b` is one.
fn name_len(text: &str) -> usize {
    let mut len = 0;
    loop {
        let word = text[len..].find(|c: char| !is_word(c)).unwrap_or(text.len() - len);
        len += word;
        match text[len..].strip_prefix("::") {
            Some(more) if more.starts_with(is_word) => len += 2,
            _ => return len,
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

/// The value of an integer; 0 with a diagnostic if it has none.
fn integer(text: &MappedText, range: &Range<usize>, sink: &mut Sink) -> Tok {
    let word = &text.as_str()[range.clone()];
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let value = match hex {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse::<u64>().ok(),
    };
    if value.is_none() {
        sink.error("bad-number", text.span(range.clone()), format!("`{word}` is no integer"), |d| {
            d.label("expected a decimal or hexadecimal integer of at most 64 bits")
        });
    }
    Tok::Int(value.unwrap_or(0) as i64)
}

/// The table's entry for an operator or bracket.
pub(super) fn punctuation(text: &str) -> Option<&'static str> {
    PUNCTUATION.iter().find(|p| **p == text).copied()
}
