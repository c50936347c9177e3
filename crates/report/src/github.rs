//! `github`: workflow commands of GitHub Actions, shown as annotations next to the lines of tests.
//!
//! # Invariants
//! - Only cases that need attention and the summary are written, because the runner keeps few
//!   annotations per step.
//! - No text of a test can end a command or begin another one.
//!
//! # Sources
//! - GitHub Docs, *Workflow commands for GitHub Actions*, Setting an error message; the escapes are
//!   those of `actions/toolkit`, `packages/core/src/command.ts`.

use std::io::{self, Write};

use super::case::{Cases, ReportCase};
use super::status::QueryStatus;
use super::summary::Summary;
use diag::{visible, visible_lines};

/// Writes `github`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Github;

fn annotation(out: &mut dyn Write, case: &ReportCase) -> io::Result<()> {
    let command = match case.status {
        QueryStatus::Passed => return Ok(()),
        QueryStatus::Known => "notice",
        status if status.warns() => "warning",
        _ => "error",
    };
    write!(out, "::{command} ")?;
    if let Some(site) = &case.site {
        write!(
            out,
            "file={},line={},col={},",
            property(&site.file),
            site.line,
            site.column
        )?;
    }
    let mut message = case.line();
    let wanted = ["condition", "axioms", "at", "note", "help"];
    for (name, value) in case
        .details
        .iter()
        .filter(|(name, _)| wanted.contains(name))
    {
        message += &format!("\n{name}: {value}");
    }
    writeln!(out, "title={}::{}", property(&case.title), data(&message))
}

/// Escapes a message for the runner. Control characters from a test do not reach the log.
fn data(text: &str) -> String {
    visible_lines(text)
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes a property for the runner.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

impl Cases for Github {
    fn case(&mut self, out: &mut dyn Write, case: ReportCase) -> io::Result<()> {
        // Interrupted queries are reported once, at the end.
        if case.interrupted {
            Ok(())
        } else {
            annotation(out, &case)
        }
    }

    fn finish(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
        if let Some(unasked) = summary.interruption() {
            writeln!(out, "::warning title=interrupted::{}", data(&unasked))?;
        }
        // This line is no command and appears in the log as it is; a line that begins with `::`
        // would be one.
        writeln!(out, "fencepost: {}", visible(&summary.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HumanOptions, ReportFormat, samples};
    use super::*;

    #[test]
    fn only_what_needs_attention_is_annotated() {
        let text = samples::written(ReportFormat::Github, &HumanOptions::default());
        let heads: Vec<&str> = text.lines().filter_map(|l| l.split(' ').next()).collect();
        assert_eq!(heads, ["::error", "::warning", "::error", "fencepost:"]);
        let first = "::error file=tests/MP.litmus,line=3,col=1,title=MP under ptx-v7.5%3A \
                     reachability::tests/MP.litmus:3: \
                     expected forbidden, got allowed%0Acondition: exists (P1:r0 == 1 /\\ P1:r1 == \
                     0)";
        assert!(text.starts_with(first), "{text}");
    }

    #[test]
    fn escapes_are_those_of_the_runner() {
        assert_eq!(data("100%\r\n::error::x"), "100%25%0D%0A::error::x");
        assert_eq!(property("a:b,c%"), "a%3Ab%2Cc%25");
    }

    #[test]
    fn a_terminal_acts_upon_nothing_that_a_name_has() {
        let line = samples::line(
            "a\u{9b}31mb\u{1b}[0m",
            verdict::Verdict::Allowed,
            Some("forbidden"),
        );
        let text = samples::written_lines(ReportFormat::Github, &[line]);
        assert!(text.contains("a\\u{9b}31mb\\u{1b}[0m under"), "{text}");
    }

    #[test]
    fn a_name_cannot_begin_a_command() {
        let line = samples::line(
            "a\n::set-output name=x::y",
            verdict::Verdict::Allowed,
            Some("forbidden"),
        );
        let text = samples::written_lines(ReportFormat::Github, &[line]);
        assert_eq!(
            text.lines().filter(|l| l.starts_with("::")).count(),
            1,
            "{text}"
        );
    }
}
