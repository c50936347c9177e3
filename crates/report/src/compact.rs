//! Writes JSON on one line without control characters, because its log may be shown in a terminal.
//!
//! # Sources
//! - RFC 8259, Section 7: a string may contain control characters beyond ASCII unescaped; escaping
//!   them gives the same string.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

struct Compact;

impl Formatter for Compact {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| c.is_control()) {
            out.write_all(&rest.as_bytes()[..at])?;
            write!(out, "\\u{:04x}", u32::from(c))?;
            rest = &rest[at + c.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

/// Writes a value.
pub(super) fn write(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    value
        .serialize(&mut Serializer::with_formatter(out, Compact))
        .map_err(io::Error::from)
}

/// A value as text.
pub(super) fn text(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    write(&mut out, value).expect("plain data, written to memory");
    String::from_utf8(out).expect("JSON is UTF-8")
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn control_characters_are_escaped_and_nothing_else() {
        assert_eq!(text(&"a\u{9b}\n\"é\u{7f}"), r#""a\u009b\n\"é\u007f""#);
        assert_eq!(text(&vec![1, 2]), "[1,2]");
    }
}
