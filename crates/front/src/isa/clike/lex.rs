//! Splits text of the C-like dialects into tokens.
//!
//! # Invariants
//! - Every byte outside white space and comments belongs to exactly one token, unless an error
//!   reports it.
//! - The last token is [`Tok::End`].

use std::ops::Range;

use diag::{MappedText, Sink, Token};
use program::{Format, Ty};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tok {
    /// An identifier or keyword, with its namespaces.
    Name,
    /// An integer or character, with the type that its spelling implies.
    Int(i64, Ty),
    /// The bits of a number of floating point.
    Float(i64, Format),
    /// A string, quotes included.
    Str,
    /// An operator or a bracket, as written.
    Punct(&'static str),
    /// The end of the text.
    End,
}

/// The type of a character; no number has it.
pub(super) const CHARACTER: Ty = Ty {
    bits: 8,
    signed: true,
};

/// Operators and brackets; each comes before its prefixes.
pub(super) const PUNCTUATION: &[&str] = &[
    "...", "<<=", ">>=", "->", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "++", "--", "+=",
    "-=", "*=", "/=", "%=", "&=", "|=", "^=", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!",
    "<", ">", "=", "(", ")", "[", "]", "{", "}", ",", ";", ":", "?", ".",
];

/// Splits a text into tokens.
pub(super) fn tokens(text: &MappedText, cpp: bool, sink: &mut Sink) -> Vec<Token<Tok>> {
    let source = text.as_str();
    let mut lexer = Lexer {
        text,
        source,
        cpp,
        sink,
        at: 0,
    };
    let mut tokens = Vec::new();
    while let Some(c) = source[lexer.at..].chars().next() {
        if lexer.skip(c) {
            continue;
        }
        let start = lexer.at;
        if let Some(tok) = lexer.token(c) {
            tokens.push(Token::new(tok, start..lexer.at));
        }
    }
    tokens.push(Token::new(Tok::End, source.len()..source.len()));
    tokens
}

/// A text, split up to an offset.
struct Lexer<'a, 's> {
    text: &'a MappedText,
    source: &'a str,
    cpp: bool,
    sink: &'s mut Sink,
    at: usize,
}

impl<'a> Lexer<'a, '_> {
    /// The text that is not split yet.
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    /// Takes the next bytes; returns their place.
    fn take(&mut self, len: usize) -> Range<usize> {
        let start = self.at;
        self.at += len;
        start..self.at
    }

    /// Skips white space, a comment or a directive, if one begins here with the character `c`.
    fn skip(&mut self, c: char) -> bool {
        let rest = self.rest();
        let line = rest.find('\n').unwrap_or(rest.len());
        if c.is_whitespace() {
            self.take(c.len_utf8());
        } else if let Some(len) = ["\\\n", "\\\r\n"]
            .iter()
            .find_map(|splice| rest.starts_with(splice).then_some(splice.len()))
        {
            // C11, 5.1.1.2: a backslash joins a line with the next one.
            self.take(len);
        } else if rest.starts_with("//") {
            self.take(line);
        } else if let Some(body) = rest.strip_prefix("/*") {
            match body.find("*/") {
                Some(n) => drop(self.take(n + 4)),
                None => {
                    let opening = self.text.span(self.at..self.at + 2);
                    let message = "this comment is never closed";
                    self.sink.error("c-syntax", opening, message, |d| {
                        d.label("expected `*/` after it")
                    });
                    self.take(rest.len());
                }
            }
        } else if c == '#' {
            let directive = self.take(line);
            let span = self.text.span(directive);
            self.sink
                .error("unsupported", span, "a directive begins a line", |d| {
                    d.label("expected a statement")
                        .help("write it on a separate line")
                });
        } else {
            return false;
        }
        true
    }

    /// Reads the token that begins with the character `c`. `None`: this function reported an error.
    fn token(&mut self, c: char) -> Option<Tok> {
        let rest = self.rest();
        if let Some(len) = floating(rest) {
            let range = self.take(len);
            Some(number(self.text, &range, self.sink))
        } else if c.is_ascii_digit() {
            // `1'000`
            let len = match self.cpp {
                true => rest.find(|c| !(is_word(c) || c == '\'')),
                false => Some(name_len(rest)),
            };
            let range = self.take(len.unwrap_or(rest.len()));
            Some(integer(self.text, &range, self.sink))
        } else if is_word(c) {
            self.take(name_len(rest));
            Some(Tok::Name)
        } else if c == '"' {
            self.string()
        } else if c == '\'' {
            Some(self.character())
        } else if let Some(punct) = PUNCTUATION.iter().find(|p| rest.starts_with(**p)) {
            self.take(punct.len());
            Some(Tok::Punct(punct))
        } else {
            let range = self.take(c.len_utf8());
            let message = format!("`{c}` means nothing here");
            self.sink
                .error("c-syntax", self.text.span(range), message, |d| {
                    d.label("expected a statement or an expression")
                });
            None
        }
    }

    /// Reads a string. `None`: it has no end.
    fn string(&mut self) -> Option<Tok> {
        let rest = self.rest();
        let line = rest.find('\n').unwrap_or(rest.len());
        let Some(len) = end_of_string(&rest[1..line]) else {
            let opening = self.text.span(self.at..self.at + 1);
            let message = "this string is never closed";
            self.sink.error("c-syntax", opening, message, |d| {
                d.label("expected `\"` on the same line")
            });
            self.take(line);
            return None;
        };
        self.take(len + 2);
        Some(Tok::Str)
    }

    /// Reads a character: a `char` in C++ and an `int` in C. After promotion, the value is the
    /// same.
    fn character(&mut self) -> Tok {
        let rest = self.rest();
        if let Some((len, value)) = character(rest) {
            self.take(len);
            return Tok::Int(value, CHARACTER);
        }
        let line = rest.find('\n').unwrap_or(rest.len());
        let range = self.take(rest[1..line].find('\'').map_or(1, |n| n + 2));
        let (span, message) = (self.text.span(range), "this character is not supported");
        self.sink.error("unsupported", span, message, |d| {
            d.label("expected one character in quotes, such as `'a'`, `'\\n'` or `'\\x1f'`")
                .help("write its number")
        });
        Tok::Int(0, CHARACTER)
    }
}

/// The length of the floating-point number at the start of a text, if there is one (C11, 6.4.4.2).
fn floating(text: &str) -> Option<usize> {
    fn digits(text: &str) -> usize {
        text.find(|c: char| !c.is_ascii_digit() && c != '\'')
            .unwrap_or(text.len())
    }
    let hex = text.starts_with("0x") || text.starts_with("0X");
    fn hexadecimal(text: &str) -> usize {
        text.find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(text.len())
    }
    let first = if hex {
        2 + hexadecimal(&text[2..])
    } else {
        digits(text)
    };
    let mut len = first;
    if text[len..].starts_with('.') {
        len += 1;
        len += if hex {
            hexadecimal(&text[len..])
        } else {
            digits(&text[len..])
        };
        // `x.y`, `...`
        if len == 1 {
            return None;
        }
    } else if first == 0 {
        return None;
    }
    let signs = if hex { ['p', 'P'] } else { ['e', 'E'] };
    if let Some(rest) = text[len..].strip_prefix(signs) {
        let sign = usize::from(rest.starts_with(['+', '-']));
        let exponent = digits(&rest[sign..]);
        if exponent > 0 {
            len += 1 + sign + exponent;
        }
    }
    let suffix = text[len..]
        .strip_prefix(['f', 'F', 'l', 'L', 'h', 'H'])
        .map_or(0, |_| 1);
    let of_floats = len > first || (!hex && text[len..].starts_with(['f', 'F']));
    of_floats.then_some(len + if len > first { suffix } else { 1 })
}

/// A number of floating point: of type `float` with the suffix `f`, of type `double` without one.
fn number(text: &MappedText, range: &Range<usize>, sink: &mut Sink) -> Tok {
    let word = text.as_str()[range.clone()].replace('\'', "");
    let hex = word.starts_with("0x") || word.starts_with("0X");
    let digits = word.trim_end_matches(['f', 'F']);
    let suffixes = word.len() - digits.len();
    let value = match (hex, suffixes) {
        (false, 0) => digits.parse::<f64>().ok().map(double),
        (false, 1) => digits.parse::<f32>().ok().map(single),
        _ => None,
    };
    value.unwrap_or_else(|| {
        sink.error(
            "unsupported",
            text.span(range.clone()),
            "this floating-point number is not supported",
            |d| {
                d.label("expected one such as `1.5`, `1.5f` or `1e-3`")
                    .help("write it in decimal, as a `float` or a `double`")
            },
        );
        double(0.0)
    })
}

fn double(value: f64) -> Tok {
    Tok::Float(value.to_bits() as i64, Format::DOUBLE)
}

fn single(value: f32) -> Tok {
    Tok::Float(i64::from(value.to_bits()), Format::SINGLE)
}

/// The end of a string; the text begins with its contents.
fn end_of_string(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends.then_some(at)
    })
}

/// The length of the word at the start of a text; `a::b` is one word.
fn name_len(text: &str) -> usize {
    let mut len = 0;
    loop {
        let word = text[len..]
            .find(|c: char| !is_word(c))
            .unwrap_or(text.len() - len);
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

/// The value and type of an integer: the first type that its spelling allows and that holds the
/// value (C11, 6.4.4.1). Reports an invalid number, with the value 0.
fn integer(text: &MappedText, range: &Range<usize>, sink: &mut Sink) -> Tok {
    let word = &text.as_str()[range.clone()];
    let lower = word.to_ascii_lowercase().replace('\'', "");
    let (radix, rest) = match lower.strip_prefix("0x") {
        Some(hex) => (16, hex),
        None => match (lower.strip_prefix("0b"), lower.strip_prefix('0')) {
            (Some(binary), _) => (2, binary),
            (None, Some(octal)) if octal.starts_with(|c: char| c.is_ascii_digit()) => (8, octal),
            _ => (10, lower.as_str()),
        },
    };
    let digits = rest.trim_end_matches(['u', 'l']);
    let suffix = &rest[digits.len()..];
    let (unsigned, long) = (suffix.contains('u'), suffix.contains('l'));
    let known = ["", "u", "l", "ul", "lu", "ll", "ull", "llu"].contains(&suffix);
    let value = u64::from_str_radix(digits, radix).ok().filter(|_| known);
    let holds =
        |ty: &Ty, value| (long, ty.bits) != (true, 32) && ty.wrap(value as i64) as u64 == value;
    let mut types = [Ty::S32, Ty::U32, Ty::WORD, Ty::U64].into_iter();
    // A decimal number without `u` has no unsigned type.
    let may = |ty: &Ty| {
        if ty.signed {
            !unsigned
        } else {
            unsigned || radix != 10
        }
    };
    match value.and_then(|v| {
        Some((
            v,
            types.find(|ty| may(ty) && holds(ty, v) && (!ty.signed || v <= i64::MAX as u64))?,
        ))
    }) {
        Some((value, ty)) => Tok::Int(value as i64, ty),
        None => {
            sink.error(
                "bad-number",
                text.span(range.clone()),
                format!("`{word}` is not an integer"),
                |d| {
                    d.label(
                        "expected a decimal, octal, hexadecimal or binary integer of at most 64 \
                        bits",
                    )
                },
            );
            Tok::Int(0, Ty::S32)
        }
    }
}

/// The length of `'a'`, and its value.
fn character(text: &str) -> Option<(usize, i64)> {
    let mut chars = text.strip_prefix('\'')?.chars();
    let (value, len) = match chars.next()? {
        '\\' => {
            let value = match chars.next()? {
                'n' => 10,
                't' => 9,
                'r' => 13,
                'a' => 7,
                'b' => 8,
                'f' => 12,
                'v' => 11,
                c @ ('\\' | '\'' | '"' | '?') => c as i64,
                c @ ('x' | '0'..='7') => {
                    let (radix, from) = if c == 'x' { (16, 3) } else { (8, 2) };
                    let digits = &text[from..from + text[from..].find('\'')?];
                    // The value is that of a signed `char`.
                    let value = CHARACTER.wrap(i64::from(u8::from_str_radix(digits, radix).ok()?));
                    return Some((from + digits.len() + 1, value));
                }
                _ => return None,
            };
            (value, 2)
        }
        c if c.is_ascii() && c != '\'' => (c as i64, 1),
        _ => return None,
    };
    (chars.next()? == '\'').then_some((len + 2, value))
}

/// The table's entry for an operator or bracket.
pub(super) fn punctuation(text: &str) -> Option<&'static str> {
    PUNCTUATION.iter().find(|p| **p == text).copied()
}
