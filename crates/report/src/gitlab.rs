//! `gitlab`: findings for the Code Quality report of GitLab, shown in merge requests.
//!
//! # Invariants
//! - Only cases that need attention are written.
//! - Each finding has a fingerprint of its own. It has no line, so a finding stays the same one
//!   when lines move.
//!
//! # Sources
//! - GitLab Docs, *Code Quality*, Code Quality report format: the required fields.

use std::collections::HashMap;
use std::io::{self, Write};

use serde::Serialize;

use super::case::{Cases, ReportCase};
use super::compact;
use super::status::QueryStatus;
use super::summary::Summary;
use diag::visible;

/// Collects the findings and writes them at the end, as one array.
#[derive(Debug, Default)]
pub struct Gitlab {
    findings: Vec<Finding>,
    /// By name: the number of findings with this name.
    names: HashMap<String, usize>,
}

#[derive(Debug, Serialize)]
struct Finding {
    description: String,
    check_name: &'static str,
    fingerprint: String,
    severity: &'static str,
    location: FindingPlace,
}

#[derive(Debug, Serialize)]
struct FindingPlace {
    path: String,
    lines: FindingLines,
}

#[derive(Debug, Serialize)]
struct FindingLines {
    begin: usize,
}

fn severity(status: QueryStatus) -> &'static str {
    match status {
        QueryStatus::Passed | QueryStatus::Known => "info",
        QueryStatus::Defect => "blocker",
        status if status.warns() => "minor",
        _ => "major",
    }
}

impl Cases for Gitlab {
    fn case(&mut self, _: &mut dyn Write, case: ReportCase) -> io::Result<()> {
        if !case.status.needs_attention() || case.interrupted {
            return Ok(());
        }
        let name = format!("{}: {}: {}", case.status.rule(), case.group, case.title);
        let count = self.names.entry(name.clone()).or_default();
        *count += 1;
        let place = case.site.as_ref();
        let path = place.map_or(case.group.as_str(), |site| &site.file);
        self.findings.push(Finding {
            description: visible(&format!("{}: {}", case.title, case.message)),
            check_name: case.status.rule(),
            fingerprint: visible(&format!("{name} {count}")),
            severity: severity(case.status),
            location: FindingPlace {
                path: visible(path.strip_prefix("./").unwrap_or(path)),
                lines: FindingLines {
                    begin: place.map_or(1, |site| site.line.max(1)),
                },
            },
        });
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
        if let Some(description) = summary.interruption() {
            self.findings.push(Finding {
                description,
                check_name: "interrupted",
                fingerprint: "interrupted".into(),
                severity: "minor",
                location: FindingPlace {
                    path: ".".into(),
                    lines: FindingLines { begin: 1 },
                },
            });
        }
        compact::write(out, &self.findings)?;
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::super::{HumanOptions, ReportFormat, samples};

    #[test]
    fn findings_have_the_fields_that_gitlab_requires() {
        let text = samples::written(ReportFormat::Gitlab, &HumanOptions::default());
        let findings: Vec<Value> = serde_json::from_str(&text).unwrap();
        let severities: Vec<&str> = findings
            .iter()
            .map(|finding| finding["severity"].as_str().unwrap())
            .collect();
        assert_eq!(severities, ["major", "minor", "blocker"]);
        let first = &findings[0];
        assert_eq!(first["check_name"], "expectation-not-met");
        assert_eq!(first["location"]["path"], "tests/MP.litmus");
        assert_eq!(first["location"]["lines"]["begin"], 3);
        let said = "MP under ptx-v7.5: reachability: expected forbidden, got allowed";
        assert_eq!(first["description"], said);
    }

    #[test]
    fn equal_findings_have_fingerprints_of_their_own() {
        let line = || samples::line("MP", verdict::Verdict::Allowed, Some("forbidden"));
        let text = samples::written_lines(ReportFormat::Gitlab, &[line(), line()]);
        let findings: Vec<Value> = serde_json::from_str(&text).unwrap();
        let prints: BTreeSet<&str> = findings
            .iter()
            .map(|finding| finding["fingerprint"].as_str().unwrap())
            .collect();
        assert_eq!(prints.len(), 2, "{text}");
    }
}
