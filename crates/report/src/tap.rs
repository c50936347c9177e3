//! `tap`: the Test Anything Protocol, version 14: a test point per answer, with a YAML block for
//! those that need attention.
//!
//! # Invariants
//! - Test points are numbered from 1 without gaps. The plan comes last, when their number is known.
//! - An undecided expectation is `not ok`; an undecided answer without one is skipped.
//! - Values in YAML blocks are JSON strings, which are YAML.
//!
//! # Sources
//! - *TAP 14 specification*: Plan, Test Points, Escaping, YAML Diagnostics, Directives.

use std::io::{self, Write};

use super::case::{Cases, ReportCase};
use super::compact;
use super::status::QueryStatus;
use super::summary::Summary;
use diag::visible;

/// Writes `tap`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tap {
    points: usize,
}

impl Tap {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.points == 0 {
            writeln!(out, "TAP version 14")
        } else {
            Ok(())
        }
    }

    fn point(&mut self, out: &mut dyn Write, case: &ReportCase) -> io::Result<()> {
        self.begin(out)?;
        self.points += 1;
        let ok = match case.status {
            QueryStatus::Passed
            | QueryStatus::Undecided(false)
            | QueryStatus::Undefined(false)
            | QueryStatus::Fault(false) => "ok",
            _ => "not ok",
        };
        write!(
            out,
            "{ok} {} - {}: {}",
            self.points,
            escaped(&case.group),
            escaped(&case.title)
        )?;
        match case.status {
            QueryStatus::Undecided(false) => write!(out, " # SKIP {}", case.message)?,
            QueryStatus::Known => write!(out, " # TODO {}", case.message)?,
            _ => {}
        }
        writeln!(out)?;
        if !case.status.needs_attention() && case.ms.is_none() {
            return Ok(());
        }
        writeln!(out, "  ---")?;
        if case.status.needs_attention() {
            writeln!(out, "  message: {}", json(&case.line()))?;
            writeln!(out, "  severity: {}", case.status.rule())?;
            if let Some(site) = &case.site {
                writeln!(out, "  at:\n    file: {}", json(&site.file))?;
                writeln!(out, "    line: {}\n    column: {}", site.line, site.column)?;
            }
            // A mapping contains each key once.
            let mut names: Vec<&str> = case.details.iter().map(|(name, _)| *name).collect();
            names.dedup();
            for name in names {
                let values: Vec<_> = case
                    .details
                    .iter()
                    .filter(|d| d.0 == name)
                    .map(|d| json(&d.1))
                    .collect();
                match values.as_slice() {
                    // `at` already is the place in the file.
                    [one] if name != "at" => writeln!(out, "  {name}: {one}")?,
                    [one] => writeln!(out, "  events: {one}")?,
                    several => writeln!(out, "  {name}: [{}]", several.join(", "))?,
                }
            }
        }
        if let Some(ms) = case.ms {
            writeln!(out, "  duration_ms: {ms}")?;
        }
        writeln!(out, "  ...")
    }
}

/// `#` begins a directive, `\` escapes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('#', "\\#")
}

/// Writes a JSON string, which is also valid YAML and contains no raw control characters.
fn json(text: &str) -> String {
    compact::text(&text)
}

impl Cases for Tap {
    fn case(&mut self, out: &mut dyn Write, case: ReportCase) -> io::Result<()> {
        self.point(out, &case)
    }

    fn finish(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
        self.begin(out)?;
        writeln!(out, "1..{}", self.points)?;
        writeln!(out, "# {}", visible(&summary.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HumanOptions, ReportFormat, samples};

    #[test]
    fn points_are_numbered_and_the_plan_comes_last() {
        let text = samples::written(ReportFormat::Tap, &HumanOptions::default());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "TAP version 14");
        assert_eq!(
            lines[1],
            "ok 1 - ptx/MP-gpu.litmus: MP-gpu under ptx-v7.5: reachability"
        );
        assert_eq!(
            lines[2],
            "not ok 2 - ptx/MP.litmus: MP under ptx-v7.5: reachability"
        );
        assert_eq!(
            lines[4],
            r#"  message: "tests/MP.litmus:3: expected forbidden, got allowed""#
        );
        assert!(text.contains("\n1..6\n# 6 answers"), "{text}");
    }

    #[test]
    fn names_cannot_become_directives_or_lines() {
        let line = samples::line("a # SKIP\n\\not ok 7", verdict::Verdict::Allowed, None);
        let text = samples::written_lines(ReportFormat::Tap, &[line]);
        assert!(text.contains("a \\# SKIP\\\\n\\\\not ok 7 under"), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
    }
}
