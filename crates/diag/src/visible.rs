//! Makes text from users safe to print: a terminal or a log acts on nothing in it.
//!
//! # Sources
//! - GitHub Docs, *Workflow commands for GitHub Actions*: `::command` at the beginning of a line,
//!   optionally after blanks.
//! - `actions/runner`, `src/Runner.Common/ActionCommand.cs`: the older `##[command]` anywhere in a
//!   line.
//! - Azure Pipelines, *Logging commands*: `##vso[…]`; TeamCity, *Service Messages*:
//!   `##teamcity[…]`.

use std::borrow::Cow;

/// Prefixes of commands that CI servers recognise anywhere in a line.
const ANYWHERE: [&str; 3] = ["##[", "##vso[", "##teamcity["];

/// A text on one line, without anything that a terminal or a log would act on. Control characters,
/// characters that change the writing direction, and prefixes of CI commands are written as Rust
/// escapes.
pub fn visible(text: &str) -> String {
    without_commands(&escaped(text, is_hidden)).into_owned()
}

/// Like [`visible`], but keeps line ends and tabs, for formats that escape these themselves.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_hidden(c) && !matches!(c, '\n' | '\r' | '\t'))
}

/// Whether a terminal would act on the character, or the character changes the direction of the
/// text after it.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// The text with the `hidden` characters written as Rust escapes.
fn escaped(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hidden) {
        return Cow::Borrowed(text);
    }
    text.chars()
        .map(|c| {
            if hidden(c) {
                c.escape_default().to_string()
            } else {
                c.to_string()
            }
        })
        .collect()
}

/// The text with every CI command disabled, even if it quotes text of users.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let text = without_commands(text);
    if !text.contains("::") || !text.split('\n').any(|line| first_letter(line).is_some()) {
        return text;
    }
    Cow::Owned(
        text.split('\n')
            .map(|line: &str| match first_letter(line) {
                Some(at) => format!("{}\\u{{3a}}{}", &line[..at], &line[at + 1..]),
                None => line.to_owned(),
            })
            .collect::<Vec<_>>()
            .join("\n"),
    )
}

/// The byte offset of a `::` at the beginning of a line, after blanks and colour codes.
fn first_letter(line: &str) -> Option<usize> {
    let mut rest = line;
    loop {
        rest = rest.trim_start();
        match rest
            .strip_prefix('\x1b')
            .and_then(|colour| colour.split_once('m'))
        {
            Some((_, after)) => rest = after,
            None => break,
        }
    }
    rest.starts_with("::").then_some(line.len() - rest.len())
}

fn without_commands(text: &str) -> Cow<'_, str> {
    if !text.contains("##") {
        return Cow::Borrowed(text);
    }
    let text = ANYWHERE.iter().fold(text.to_owned(), |text, command| {
        text.replace(command, &command.replacen("##", "#\\u{23}", 1))
    });
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_upon_is_escaped() {
        assert_eq!(
            visible("a\nb\u{1b}[31m\u{202e}é"),
            "a\\nb\\u{1b}[31m\\u{202e}é"
        );
        assert_eq!(
            visible("##[error]x ##vso[a ## b"),
            "#\\u{23}[error]x #\\u{23}vso[a ## b"
        );
    }

    #[test]
    fn lines_stay_lines_without_what_a_terminal_would_act_upon() {
        assert_eq!(
            visible_lines("a\r\n\tb\u{9b}31m\u{1b}]\u{202e}##[é"),
            "a\r\n\tb\\u{9b}31m\\u{1b}]\\u{202e}##[é"
        );
    }

    #[test]
    fn no_line_begins_with_a_command() {
        assert_eq!(harmless("a ::error::x\n"), "a ::error::x\n");
        assert_eq!(harmless("a\n  ::error::x\n"), "a\n  \\u{3a}:error::x\n");
        assert_eq!(harmless("\x1b[1m::error::x"), "\x1b[1m\\u{3a}:error::x");
        assert_eq!(harmless("x ##[group]y"), "x #\\u{23}[group]y");
    }
}
