//! Patterns: `*` is any text, `?` any character, `[a-z]` one of those and `[!a-z]` one of the
//! others; `^` and `$` are the ends of the text. Every other character means that character, as
//! does one after a `\`.
//!
//! # Invariants
//! - A pattern may match anywhere, so one without marks is a plain substring.
//! - Matching takes at most the product of both lengths: no pattern makes it hang.

/// A pattern.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    Char(char),
    Any,
    OneOf {
        others: bool,
        ranges: Vec<(char, char)>,
    },
    Star,
}

impl Piece {
    fn takes(&self, c: char) -> bool {
        match self {
            Piece::Char(own) => *own == c,
            Piece::Any => true,
            Piece::OneOf { others, ranges } => {
                ranges.iter().any(|(a, b)| (*a..=*b).contains(&c)) != *others
            }
            Piece::Star => false,
        }
    }
}

impl Pattern {
    /// Reads a pattern, or states the expectation.
    pub(super) fn parse(text: &str) -> Result<Pattern, &'static str> {
        let (body, from_start) = match text.strip_prefix('^') {
            Some(body) => (body, true),
            None => (text, false),
        };
        let (body, to_end) = match body.strip_suffix('$') {
            Some(rest) if !rest.ends_with('\\') => (rest, true),
            _ => (body, false),
        };
        let mut pieces = Vec::new();
        if !from_start {
            pieces.push(Piece::Star);
        }
        let mut chars = body.chars();
        while let Some(c) = chars.next() {
            pieces.push(match c {
                '*' => Piece::Star,
                '?' => Piece::Any,
                '\\' => Piece::Char(chars.next().ok_or("expected a character after `\\`")?),
                '[' => class(&mut chars)?,
                other => Piece::Char(other),
            });
        }
        if !to_end {
            pieces.push(Piece::Star);
        }
        Ok(Pattern {
            text: text.to_owned(),
            pieces,
        })
    }

    /// As written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it matches somewhere in a text.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let (mut at, mut piece) = (0, 0);
        // The place to continue if the pieces after the last star do not fit here.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            match self.pieces.get(piece) {
                Some(Piece::Star) => {
                    piece += 1;
                    retry = Some((at, piece));
                }
                Some(one) if text.get(at).is_some_and(|c| one.takes(*c)) => {
                    at += 1;
                    piece += 1;
                }
                None if at == text.len() => return true,
                _ => match retry {
                    Some((from, after)) if from < text.len() => {
                        retry = Some((from + 1, after));
                        (at, piece) = (from + 1, after);
                    }
                    _ => return false,
                },
            }
        }
    }
}

/// The text after a `[`.
fn class(chars: &mut std::str::Chars<'_>) -> Result<Piece, &'static str> {
    let inside = chars.as_str();
    let end = inside
        .char_indices()
        .skip(1)
        .find(|(_, c)| *c == ']')
        .map(|(i, _)| i)
        .ok_or("expected `]`")?;
    *chars = inside[end + 1..].chars();
    let (body, others) = match inside[..end].strip_prefix('!') {
        Some(body) => (body, true),
        None => (&inside[..end], false),
    };
    let body: Vec<char> = body.chars().collect();
    let (mut ranges, mut i) = (Vec::new(), 0);
    while i < body.len() {
        let range = i + 2 < body.len() && body[i + 1] == '-';
        ranges.push((body[i], body[if range { i + 2 } else { i }]));
        i += if range { 3 } else { 1 };
    }
    Ok(Piece::OneOf { others, ranges })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in(pattern: &str, text: &str) -> bool {
        Pattern::parse(pattern).unwrap().is_in(text)
    }

    #[test]
    fn marks_mean_what_they_say() {
        for (pattern, text, expected) in [
            ("rel", "MP+rel+acq", true),
            ("rel", "MP", false),
            ("", "anything", true),
            ("^MP", "MP+rel", true),
            ("^MP", "a MP", false),
            ("acq$", "MP+acq", true),
            ("acq$", "MP+acq2", false),
            ("^MP$", "MP", true),
            ("M?+", "MP+", true),
            ("^M*q$", "MP+rel+acq", true),
            ("^a*b*c$", "aXbYbZc", true),
            ("^a*b*c$", "aXbYbZ", false),
            ("[0-9a]", "x7", true),
            ("^[!0-9]$", "7", false),
            ("[]]", "a]", true),
            ("\\*", "a*b", true),
            ("\\*", "ab", false),
            ("a\\$", "a$b", true),
        ] {
            assert_eq!(is_in(pattern, text), expected, "{pattern} in {text}");
        }
    }

    #[test]
    fn no_pattern_takes_for_ever() {
        assert!(!is_in(&"*a".repeat(500), &"b".repeat(20_000)));
        assert!(!is_in(
            &format!("^{}c$", "a*".repeat(200)),
            &"a".repeat(2_000)
        ));
    }
}
