//! Prepares lines for a terminal: folds them between words, and removes commands for the terminal
//! or log viewer.

use std::borrow::Cow;

use diag::harmless;

/// The additional indent of continuation lines.
const HANG: usize = 4;

/// Folds a text into lines of at most this many columns, except for longer words. Colours take no
/// columns.
pub(crate) fn fold(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else {
        return harmless(text).into_owned();
    };
    let folded: Vec<Cow<'_, str>> = text.split('\n').map(|line| one(line, columns)).collect();
    harmless(&folded.join("\n")).into_owned()
}

fn one(line: &str, columns: usize) -> Cow<'_, str> {
    if line.len() <= columns {
        return Cow::Borrowed(line);
    }
    let indent = line.len() - line.trim_start_matches(' ').len();
    let hang = (indent + HANG).min(columns / 2);
    let mut out = String::with_capacity(line.len() + 16);
    // The column, the blanks since the last word, and the offset after that word.
    let (mut column, mut blanks, mut end) = (0, 0, 0);
    let mut begun = false;
    for word in line.split_inclusive(' ') {
        let (text, blank) = word.strip_suffix(' ').map_or((word, 0), |text| (text, 1));
        if text.is_empty() {
            blanks += blank;
            continue;
        }
        let width = width(text);
        if begun && width > 0 && column + blanks + width > columns && column > hang {
            out.truncate(end);
            out.push('\n');
            out.push_str(&" ".repeat(hang));
            column = hang;
        } else {
            out.push_str(&" ".repeat(blanks));
            column += blanks;
        }
        out.push_str(text);
        column += width;
        end = out.len();
        blanks = blank;
        begun |= width > 0;
    }
    Cow::Owned(out)
}

/// The number of visible characters in a text with colours.
fn width(text: &str) -> usize {
    let mut shown = 0;
    let mut colour = false;
    for c in text.chars() {
        match c {
            '\x1b' => colour = true,
            'm' if colour => colour = false,
            _ => shown += usize::from(!colour),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fold_between_words_and_hang() {
        assert_eq!(
            fold("  one two three four\nfive", Some(12)),
            "  one two\n      three\n      four\nfive"
        );
        assert_eq!(fold("aaaa  bbbb  cccc", Some(10)), "aaaa  bbbb\n    cccc");
        assert_eq!(
            fold("\x1b[1mone\x1b[0m two", Some(7)),
            "\x1b[1mone\x1b[0m two"
        );
        assert_eq!(
            fold("incomprehensibilities", Some(10)),
            "incomprehensibilities"
        );
        assert_eq!(fold("one two", None), "one two");
    }

    #[test]
    fn what_a_fold_puts_first_is_no_command() {
        assert_eq!(
            fold("see here ::error::x", Some(10)),
            "see here\n    \\u{3a}:error::x"
        );
    }
}
