//! `markdown`: a table of the cases that need attention, for summaries of jobs and comments.
//!
//! # Invariants
//! - The counts come first. Only cases that need attention are rows, and at most [`MOST`]: GitHub
//!   refuses summaries of more than 1 MiB.
//! - No text of a test ends a cell or becomes a tag, a link or a mention.
//!
//! # Sources
//! - GitHub Docs, *Workflow commands for GitHub Actions*, Adding a job summary.
//! - GitHub Flavored Markdown, *Tables (extension)* and *Backslash escapes*.

use std::io::{self, Write};

use super::case::{Cases, ReportCase};
use super::line::OutcomeTable;
use super::status::QueryStatus;
use super::summary::Summary;
use super::verdicts::answer_word;
use diag::visible;

/// The number of rows at most.
const MOST: usize = 1000;

/// Collects the cases and writes them at the end, because the counts come first.
#[derive(Debug, Default)]
pub struct Markdown {
    cases: Vec<ReportCase>,
}

/// The row of a case: its status, its place, and its message with the next action.
fn row(out: &mut dyn Write, case: &ReportCase) -> io::Result<()> {
    let mark = match case.status {
        QueryStatus::Known => "known",
        status if status.warns() => "warning",
        _ => "error",
    };
    let place = case.site.as_ref();
    let place = place.map_or_else(
        || case.group.clone(),
        |site| format!("{}:{}", site.file, site.line),
    );
    write!(
        out,
        "| {mark} | {} | {}<br>{}",
        cell(&place),
        cell(&case.title),
        cell(&case.message)
    )?;
    if let Some(help) = &case.help {
        write!(out, "<br>help: {}", cell(help))?;
    }
    writeln!(out, " |")
}

/// Escapes the text of a cell: each ASCII punctuation mark that Markdown may act upon.
fn cell(text: &str) -> String {
    let mut escaped = String::new();
    for c in visible(text).chars() {
        match c {
            '<' => escaped += "&lt;",
            '&' => escaped += "&amp;",
            // A mention would tell its people of each run.
            '@' => escaped += "&#64;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' | '$' => {
                escaped.extend(['\\', c]);
            }
            _ => escaped.push(c),
        }
    }
    escaped
}

impl Cases for Markdown {
    fn case(&mut self, _: &mut dyn Write, case: ReportCase) -> io::Result<()> {
        if case.status.needs_attention() && !case.interrupted {
            self.cases.push(case);
        }
        Ok(())
    }

    fn outcomes(&mut self, out: &mut dyn Write, table: &OutcomeTable) -> io::Result<()> {
        let list = &table.outcomes;
        let whole = if list.complete { "" } else { ", not complete" };
        let (test, model) = (cell(&table.test), cell(&table.model));
        writeln!(out, "**{test}** under {model}{whole}\n")?;
        let first = list.outcomes.first().map(|outcome| &outcome.state);
        let names: Vec<String> = first.into_iter().flatten().map(|v| cell(&v.0)).collect();
        let heads: String = names.iter().map(|name| format!(" {name} |")).collect();
        writeln!(out, "|{heads} answer |")?;
        writeln!(out, "|{}---|", "---|".repeat(names.len()))?;
        for outcome in &list.outcomes {
            let values = outcome.state.iter().map(|v| format!(" {} |", cell(&v.1)));
            let values: String = values.collect();
            writeln!(out, "|{values} {} |", answer_word(outcome))?;
        }
        writeln!(out)
    }

    fn finish(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
        writeln!(out, "**Fencepost:** {}", cell(&summary.to_string()))?;
        if let Some(unasked) = summary.interruption() {
            writeln!(out, "\n**{}**", cell(&unasked))?;
        }
        if self.cases.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n| | place | answer |\n|---|---|---|")?;
        for case in self.cases.iter().take(MOST) {
            row(out, case)?;
        }
        match self.cases.len().saturating_sub(MOST) {
            0 => Ok(()),
            more => writeln!(out, "\n{more} more need attention."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HumanOptions, ReportFormat, samples};
    use super::MOST;

    #[test]
    fn the_counts_come_first_and_findings_are_rows() {
        let text = samples::written(ReportFormat::Markdown, &HumanOptions::default());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("**Fencepost:** 6 answers"), "{text}");
        assert_eq!(lines[2..4], ["| | place | answer |", "|---|---|---|"]);
        let first = "| error | tests/MP.litmus:3 | MP under ptx-v7.5: reachability<br>\
                     expected forbidden, got allowed";
        assert!(lines[4].starts_with(first), "{text}");
        let rows = lines.iter().filter(|line| line.starts_with("| ")).count();
        assert_eq!(rows, 4, "{text}");
    }

    #[test]
    fn no_name_ends_a_cell_or_becomes_a_tag() {
        let name = "a|b\n| x | <img src=y> @all [l](m) `c`";
        let line = samples::line(name, verdict::Verdict::Allowed, Some("forbidden"));
        let text = samples::written_lines(ReportFormat::Markdown, &[line]);
        assert!(text.contains("a\\|b"), "{text}");
        for bad in ["<img", "@all", " [l]", " `c`", "\n| x"] {
            assert!(!text.contains(bad), "{bad}: {text}");
        }
    }

    #[test]
    fn a_long_list_is_cut_and_that_is_said() {
        let line = || samples::line("MP", verdict::Verdict::Allowed, Some("forbidden"));
        let lines: Vec<_> = (0..MOST + 2).map(|_| line()).collect();
        let text = samples::written_lines(ReportFormat::Markdown, &lines);
        assert!(text.ends_with("\n2 more need attention.\n"), "{text}");
    }
}
