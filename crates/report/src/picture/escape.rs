//! Escapes foreign text for XML, HTML and Graphviz.
//!
//! # Invariants
//! - The output contains no character that XML 1.0 excludes, no character that changes the writing
//!   direction, and no line break.
//!
//! # Sources
//! - W3C, *Extensible Markup Language (XML) 1.0*, "Characters" and "Character Data and Markup".
//! - Graphviz, *The DOT Language*, "Quoted strings"; *escString*.

/// One line of harmless characters: line breaks and tabs become symbols or blanks, and other
/// invisible characters U+FFFD.
pub fn line(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' => '\u{23ce}',
            '\t' => ' ',
            '\r' => '\u{240d}',
            // Characters that change the writing direction could disguise code.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => {
                '\u{fffd}'
            }
            '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Escapes the content of an XML or HTML element, or an attribute in double quotes.
pub fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in line(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A quoted Graphviz string. A backslash begins an escape sequence there, such as `\n` for a line
/// break.
pub fn dot(text: &str) -> String {
    let escaped = line(text).replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_text() {
        assert_eq!(
            xml("<script>\"a\" & 'b'</script>"),
            "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/script&gt;"
        );
        assert_eq!(xml("a\nb\u{0}\u{202e}c"), "a\u{23ce}b\u{fffd}\u{fffd}c");
    }

    #[test]
    fn quoted_strings_end_where_they_should() {
        assert_eq!(dot(r#"a" /\ "b"#), r#""a\" /\\ \"b""#);
        assert_eq!(dot("a\n"), "\"a\u{23ce}\"");
    }
}
