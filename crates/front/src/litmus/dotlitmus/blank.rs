//! Replaces comments and strings of a `.litmus` file by spaces.

use diag::{Sink, Span, one_line};

/// The text with comments and strings blanked, and the strings' contents. Length and line ends
/// stay. Returns `None` and reports an error if a comment or string is never closed. In functions
/// of a C-like dialect, `(*` begins a pointer, and `/* … */` is a comment.
pub(super) fn blank(text: &str, clike: bool, sink: &mut Sink) -> Option<(String, Vec<String>)> {
    let bytes = text.as_bytes();
    let mut clean = bytes.to_vec();
    let mut strings = Vec::new();
    let mut in_program = false;
    // `closed`: a pair of braces has ended; `depth`: open braces. The first pair is the initial
    // block, the others are functions.
    let (mut closed, mut depth) = (false, 0usize);
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let rest = &bytes[at..];
        let end = match bytes[at] {
            b'"' => match text[at + 1..].find('"') {
                Some(n) => {
                    strings.push(one_line(&text[at + 1..at + 1 + n]));
                    Some(at + n + 2)
                }
                None => return unterminated(sink, start..start + 1, "string", "`\"`"),
            },
            b'/' if clike && in_program && rest.starts_with(b"/*") => {
                match text[at + 2..].find("*/") {
                    Some(n) => Some(at + n + 4),
                    None => return unterminated(sink, start..start + 2, "comment", "`*/`"),
                }
            }
            b'(' if rest.starts_with(b"(*") && !(clike && closed && depth > 0) => {
                match text[at + 2..].find("*)") {
                    Some(n) => Some(at + n + 4),
                    None => return unterminated(sink, start..start + 2, "comment", "`*)`"),
                }
            }
            // Before the initial block, `//` is more likely part of a link.
            b'/' if in_program && rest.starts_with(b"//") => {
                Some(text[at..].find('\n').map_or(text.len(), |n| at + n))
            }
            b'{' => {
                in_program = true;
                depth += 1;
                None
            }
            b'}' => {
                depth = depth.saturating_sub(1);
                closed |= depth == 0;
                None
            }
            _ => None,
        };
        match end {
            Some(end) => {
                clean[start..end]
                    .iter_mut()
                    .filter(|b| **b != b'\n')
                    .for_each(|b| *b = b' ');
                at = end;
            }
            None => at += 1,
        }
    }
    // Only whole strings and comments were replaced, so the text is still UTF-8.
    Some((String::from_utf8(clean).unwrap_or_default(), strings))
}

fn unterminated<T>(
    sink: &mut Sink,
    range: std::ops::Range<usize>,
    what: &str,
    closing: &str,
) -> Option<T> {
    let span = Span::new(range.start, range.end);
    sink.error(
        "litmus-syntax",
        span,
        format!("this {what} is never closed"),
        |d| d.label(format!("expected {closing} after it")),
    );
    None
}
