//! Puts the kernels that a host program keeps in string literals behind the text of the file, as
//! `clCreateProgramWithSource` would read them.
//!
//! # Invariants
//! - Every character of a kernel points to its place in the literal.
//! - Only literals with a kernel change: they become empty, since no call needs their text.
//!
//! # Sources
//! - C11, 6.4.5, *String literals*: adjacent ones are one; ISO C++, lex.string: raw ones.
//! - OpenCL API specification, clCreateProgramWithSource.
//!
//! # Where we differ
//! - All kernels of a file belong to one program, and see the macros of the host above them.

use std::ops::Range;

use super::text_words::append_changed;
use diag::MappedText;

/// A part of a literal: a slice of the source, or the character of an escape.
enum LiteralPart {
    Slice(Range<usize>),
    Escape(char, Range<usize>),
}

/// Adjacent literals: their place, and their text.
struct Literal {
    range: Range<usize>,
    parts: Vec<LiteralPart>,
}

/// The text with the kernels of its literals behind it.
pub(super) fn with_kernels_of_literals(text: MappedText) -> MappedText {
    let source = text.as_str();
    if !source.contains('"') || !source.contains("kernel") {
        return text;
    }
    let found: Vec<Literal> = literals(source)
        .into_iter()
        .filter(|literal| has_kernel(&literal.text(source)))
        .collect();
    if found.is_empty() {
        return text;
    }
    let mut out = MappedText::new();
    let ranges = found.iter().map(|literal| literal.range.clone());
    append_changed(&mut out, &text, ranges.map(|range| (range, "\"\"")));
    for literal in &found {
        out.push_opaque("\n", text.span(literal.range.clone()));
        for part in &literal.parts {
            match part {
                LiteralPart::Slice(range) => out.push_slice(&text, range.clone()),
                LiteralPart::Escape(c, range) => {
                    out.push_opaque(c.encode_utf8(&mut [0; 4]), text.span(range.clone()));
                }
            }
        }
    }
    out.push_opaque("\n", text.span(source.len()..source.len()));
    out
}

/// Whether a text declares a kernel.
fn has_kernel(text: &str) -> bool {
    let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.any(|word| matches!(word, "kernel" | "__kernel")) && text.contains('{')
}

impl Literal {
    fn text(&self, source: &str) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                LiteralPart::Slice(range) => text.push_str(&source[range.clone()]),
                LiteralPart::Escape(c, _) => text.push(*c),
            }
        }
        text
    }
}

/// The string literals of a text; adjacent ones are one.
fn literals(source: &str) -> Vec<Literal> {
    let mut all: Vec<Literal> = Vec::new();
    let mut at = 0;
    // Whether the text since the last literal is white space and comments.
    let mut is_adjacent = false;
    while let Some(c) = source[at..].chars().next() {
        let rest = &source[at..];
        if c.is_whitespace() {
            at += c.len_utf8();
        } else if rest.starts_with("\\\n") {
            at += 2;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if let Some(body) = rest.strip_prefix("/*") {
            at += body.find("*/").map_or(rest.len(), |n| n + 4);
        } else if c == '\'' {
            (at, is_adjacent) = (at + 1 + inside(&rest[1..], '\''), false);
        } else if let Some((parts, length)) = raw(rest, at).or_else(|| plain(rest, at)) {
            let range = at..at + length;
            match all.last_mut().filter(|_| is_adjacent) {
                Some(last) => {
                    last.range.end = range.end;
                    last.parts.extend(parts);
                }
                None => all.push(Literal { range, parts }),
            }
            (at, is_adjacent) = (at + length, true);
        } else {
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let length = match word(c) {
                true => rest.find(|c| !word(c)).unwrap_or(rest.len()),
                false => c.len_utf8(),
            };
            (at, is_adjacent) = (at + length, false);
        }
    }
    all
}

/// The length of a literal behind its first quote, with the last one.
fn inside(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (n, c) in rest.char_indices() {
        match c {
            '\n' if !escaped => return n,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return n + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The parts and the length of a literal `"…"` that begins here, at `at`.
fn plain(rest: &str, at: usize) -> Option<(Vec<LiteralPart>, usize)> {
    let body = rest.strip_prefix('"')?;
    let length = 1 + inside(body, '"');
    let end = length - usize::from(rest[..length].ends_with('"') && length > 1);
    let mut parts = Vec::new();
    let mut from = 1;
    let mut next = 1;
    while let Some(found) = rest[next..end].find('\\') {
        let escape = next + found;
        let Some(c) = rest[escape + 1..end].chars().next() else {
            break;
        };
        parts.push(LiteralPart::Slice(at + from..at + escape));
        let range = at + escape..at + escape + 1 + c.len_utf8();
        next = escape + 1 + c.len_utf8();
        from = next;
        match c {
            'n' => parts.push(LiteralPart::Escape('\n', range)),
            't' => parts.push(LiteralPart::Escape('\t', range)),
            'r' => parts.push(LiteralPart::Escape(' ', range)),
            // A line that continues.
            '\n' => {}
            c => parts.push(LiteralPart::Escape(c, range)),
        }
    }
    parts.push(LiteralPart::Slice(at + from..at + end));
    Some((parts, length))
}

/// The same of a raw literal, `R"sign(…)sign"`.
fn raw(rest: &str, at: usize) -> Option<(Vec<LiteralPart>, usize)> {
    let body = rest.strip_prefix("R\"")?;
    let open = body.find('(').filter(|n| *n <= 16)?;
    let close = format!("){}\"", &body[..open]);
    let start = 2 + open + 1;
    let end = start + rest[start..].find(&close)?;
    let parts = vec![LiteralPart::Slice(at + start..at + end)];
    Some((parts, end + close.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(source: &str) -> String {
        let text = with_kernels_of_literals(MappedText::verbatim(source, 0));
        text.as_str()[source.len().min(text.as_str().len())..].to_owned()
    }

    fn whole(source: &str) -> String {
        with_kernels_of_literals(MappedText::verbatim(source, 0))
            .as_str()
            .to_owned()
    }

    #[test]
    fn adjacent_literals_are_one_kernel() {
        let source =
            "const char *s = \"kernel void k() {\\n\" /* one */\n  \"  int x = 'a'; }\\n\";";
        let text = whole(source);
        assert_eq!(
            text,
            "const char *s = \"\";\nkernel void k() {\n  int x = 'a'; }\n\n"
        );
        // Other literals stay.
        assert_eq!(
            whole("f(\"kernel\"); g(\"{\");"),
            "f(\"kernel\"); g(\"{\");"
        );
    }

    #[test]
    fn raw_literals_are_kernels() {
        let text = whole("auto s = R\"CL(\n__kernel void k() { }\n)CL\"; int n;");
        assert_eq!(text, "auto s = \"\"; int n;\n\n__kernel void k() { }\n\n");
        assert!(behind("char c = '\"'; // \"kernel {\"\n").is_empty());
    }

    #[test]
    fn a_kernel_points_into_its_literal() {
        let source = "s = \"\\tkernel void k() { }\";";
        let text = with_kernels_of_literals(MappedText::verbatim(source, 0));
        let at = text.as_str().find("void").expect("the kernel");
        let span = text.span(at..at + 4);
        assert_eq!(&source[span.start as usize..span.end as usize], "void");
    }
}
