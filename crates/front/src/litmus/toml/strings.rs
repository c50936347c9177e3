//! Maps TOML strings to the file, character by character.

use std::ops::Range;

use diag::{MappedText, Span};

/// The contents of the string literal at `span` of `file`, which TOML decodes as `decoded`. If the
/// literal cannot be aligned with `decoded`, the text maps as a whole to the literal.
pub(super) fn map_string(file: &str, span: Range<usize>, decoded: &str) -> MappedText {
    let whole = Span::new(span.start, span.end);
    file.get(span.clone())
        .and_then(|raw| walk(raw, span.start, decoded))
        .unwrap_or_else(|| MappedText::opaque(decoded, whole))
}

fn walk(raw: &str, offset: usize, decoded: &str) -> Option<MappedText> {
    let delimiter = ["\"\"\"", "'''", "\"", "'"]
        .into_iter()
        .find(|d| raw.starts_with(d))?;
    let escapes = delimiter.starts_with('"');
    let mut start = delimiter.len();
    if delimiter.len() == 3 {
        // TOML drops a line end directly after the opening quotes.
        let rest = &raw[start..];
        start += if rest.starts_with("\r\n") {
            2
        } else {
            usize::from(rest.starts_with('\n'))
        };
    }
    let body = raw.get(start..raw.len().checked_sub(delimiter.len())?)?;
    let offset = offset + start;
    if body == decoded {
        return Some(MappedText::verbatim(decoded, offset));
    }
    let mut mapped = MappedText::new();
    let (mut at, mut run, mut done) = (0, 0, 0);
    // Invariant: `run..at` of the body equals the part of `decoded` that ends at `done`.
    while at < body.len() {
        let rest = &body[at..];
        let c = rest.chars().next()?;
        let special = if escapes && c == '\\' {
            Some(escape(rest)?)
        } else if rest.starts_with("\r\n") && !decoded[done..].starts_with('\r') {
            Some((2, true))
        } else {
            None
        };
        match special {
            None => {
                if !decoded[done..].starts_with(c) {
                    return None;
                }
                at += c.len_utf8();
                done += c.len_utf8();
            }
            Some((len, makes_char)) => {
                mapped.push_verbatim(&body[run..at], offset + run);
                if makes_char {
                    let c = decoded[done..].chars().next()?;
                    let text = &decoded[done..done + c.len_utf8()];
                    mapped.push_opaque(text, Span::new(offset + at, offset + at + len));
                    done += c.len_utf8();
                }
                at += len;
                run = at;
            }
        }
    }
    mapped.push_verbatim(&body[run..at], offset + run);
    (done == decoded.len()).then_some(mapped)
}

/// The length of an escape sequence, and whether it decodes to a character (a line continuation
/// does not).
fn escape(rest: &str) -> Option<(usize, bool)> {
    let len = match rest.as_bytes().get(1)? {
        b'u' => 6,
        b'U' => 10,
        b'x' => 4,
        b' ' | b'\t' | b'\r' | b'\n' => {
            return Some((
                rest.len() - rest[1..].trim_start_matches([' ', '\t', '\r', '\n']).len(),
                false,
            ));
        }
        _ => 2,
    };
    rest.is_char_boundary(len).then_some((len, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(file: &str, decoded: &str, part: &str) -> String {
        let mapped = map_string(file, 0..file.len(), decoded);
        assert_eq!(mapped.as_str(), decoded);
        let at = decoded.find(part).expect("the part occurs");
        file[mapped.span(at..at + part.len()).range()].to_string()
    }

    #[test]
    fn literal_strings_map_byte_for_byte() {
        assert_eq!(
            place("'''\nst x, 1\nld r0, y'''", "st x, 1\nld r0, y", "ld r0"),
            "ld r0"
        );
    }

    #[test]
    fn escapes_and_continuations_keep_the_place() {
        let file = "\"\"\"a\\tb \\\n   c\\u0041d\"\"\"";
        assert_eq!(place(file, "a\tb cAd", "c"), "c");
        assert_eq!(place(file, "a\tb cAd", "A"), "\\u0041");
        assert_eq!(place(file, "a\tb cAd", "d"), "d");
    }

    #[test]
    fn carriage_returns_may_be_dropped() {
        assert_eq!(place("'''a\r\nb'''", "a\nb", "b"), "b");
    }
}
