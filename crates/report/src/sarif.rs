//! `sarif`: the Static Analysis Results Interchange Format for code-scanning services.
//!
//! # Invariants
//! - Only cases that need attention are results: unmet expectations, undecided answers, defects of
//!   the checker, and input errors.
//! - An answer with several racing pairs is one result for each pair, at the line of its first
//!   access; any other answer is one result.
//! - The run lists exactly the rules that some result names.
//! - Paths are URI references; relative ones start at the source root.
//!
//! # Sources
//! - OASIS, *Static Analysis Results Interchange Format (SARIF) Version 2.1.0*, with Errata 01:
//!   run, result, location objects; *URI-valued properties* for the format of paths.

use std::io::{self, Write};

use indexmap::IndexMap;
use serde::Serialize;

use super::case::{Cases, ReportCase};
use super::line::FileSite;
use super::status::QueryStatus;
use super::summary::Summary;
use diag::visible;
use verdict::RacingPair;

/// The address of the format's schema.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Collects the results and writes them at the end, because the rules come first in the file.
#[derive(Debug, Default)]
pub struct Sarif {
    cases: Vec<ReportCase>,
}

impl Cases for Sarif {
    fn case(&mut self, _: &mut dyn Write, case: ReportCase) -> io::Result<()> {
        if case.status.needs_attention() {
            self.cases.push(case);
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
        let mut rules = Vec::new();
        for case in &self.cases {
            if !rules.contains(&case.status.rule()) {
                rules.push(case.status.rule());
            }
        }
        let log = Log {
            schema: SCHEMA,
            version: "2.1.0",
            runs: [SarifRun {
                tool: SarifTool {
                    driver: Driver {
                        name: "Fencepost",
                        version: env!("CARGO_PKG_VERSION"),
                        rules: rules.iter().map(|id| rule(id)).collect(),
                    },
                },
                column_kind: "unicodeCodePoints",
                results: self
                    .cases
                    .iter()
                    .flat_map(|case| results(case, &rules))
                    .collect(),
                properties: IndexMap::from([("summary", summary.to_string())]),
            }],
        };
        serde_json::to_writer_pretty(&mut *out, &log)?;
        out.write_all(b"\n")
    }
}

#[derive(Serialize)]
struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [SarifRun; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifRun {
    tool: SarifTool,
    column_kind: &'static str,
    results: Vec<SarifResult>,
    properties: IndexMap<&'static str, String>,
}

#[derive(Serialize)]
struct SarifTool {
    driver: Driver,
}

#[derive(Serialize)]
struct Driver {
    name: &'static str,
    version: &'static str,
    rules: Vec<SarifRule>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifRule {
    id: &'static str,
    short_description: Message,
    default_configuration: Configuration,
}

#[derive(Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Serialize)]
struct Message {
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult {
    rule_id: &'static str,
    rule_index: usize,
    level: &'static str,
    message: Message,
    locations: Vec<SarifLocation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<SarifLocation>,
    partial_fingerprints: IndexMap<&'static str, String>,
    properties: IndexMap<&'static str, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifLocation {
    #[serde(skip_serializing_if = "Option::is_none")]
    physical_location: Option<Physical>,
    logical_locations: [Logical; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Physical {
    artifact_location: Artifact,
    region: Region,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Artifact {
    uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri_base_id: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: usize,
    start_column: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Logical {
    fully_qualified_name: String,
}

fn rule(id: &'static str) -> SarifRule {
    let text = match id {
        "program-fault" => "The program races, is undefined or hangs under the model",
        "expectation-not-met" => "The model's verdict differs from the test's expectation",
        "known-failure" => {
            "The model's verdict differs from the expectation, a failure that the test declares \
            as known"
        }
        "undefined-program" => {
            "The program is undefined under the model, and the test does not expect that"
        }
        "undecided" => {
            "The checker reached a limit of time, memory or loop iterations before it had a verdict"
        }
        "defect" => {
            "A defect of Fencepost: engines disagree, a witness failed its replay, a law was broken"
        }
        _ => "Fencepost cannot read a test, model, option or file",
    };
    let level = match id {
        "undecided" | "undefined-program" => "warning",
        "known-failure" => "note",
        _ => "error",
    };
    SarifRule {
        id,
        short_description: Message { text: text.into() },
        default_configuration: Configuration { level },
    }
}

/// The results of one answer: one for each pair that races, or one.
fn results(case: &ReportCase, rules: &[&'static str]) -> Vec<SarifResult> {
    match case.pairs.as_slice() {
        [] | [_] => vec![result(case, rules)],
        pairs => pairs
            .iter()
            .map(|pair| result_of_pair(case, pair, rules))
            .collect(),
    }
}

/// The result of one racing pair among several.
fn result_of_pair(case: &ReportCase, pair: &RacingPair, rules: &[&'static str]) -> SarifResult {
    let mut finding = result(case, rules);
    let place = pair.place.as_deref();
    let on = place.map_or(String::new(), |place| format!(" on {place}"));
    let at = visible(&format!("data race{on}: {}", pair.places()));
    finding.message.text = format!("{at}\n{}", finding.message.text);
    finding.properties.insert("at", visible(&pair.places()));
    let texts = pair.events.each_ref().map(|e| {
        let (thread, text) = (&e.event.thread_name, e.event.text.trim());
        format!("{thread} {text}")
    });
    // Instructions stay the same when lines move.
    let pair_name = visible(&format!("{on} {}", texts.join(" with ")));
    for name in finding.partial_fingerprints.values_mut() {
        name.push_str(&pair_name);
    }
    let name = format!("{}: {}", case.group, case.title);
    let [first, second] = pair.events.each_ref().map(|e| {
        let line = e.event.line.number as usize;
        location(case.site.as_ref(), (line > 0).then_some((line, 1)), &name)
    });
    (finding.locations, finding.related_locations) = (vec![first], vec![second]);
    finding
}

/// A place in the file of a test: at this line and column, or where the test says.
fn location(site: Option<&FileSite>, at: Option<(usize, usize)>, name: &str) -> SarifLocation {
    let physical = site.filter(|site| site.file != "<stdin>").map(|site| {
        let (start_line, start_column) = at.unwrap_or((site.line, site.column));
        Physical {
            artifact_location: artifact(&site.file),
            region: Region {
                start_line,
                start_column,
            },
        }
    });
    SarifLocation {
        physical_location: physical,
        logical_locations: [Logical {
            fully_qualified_name: name.to_owned(),
        }],
    }
}

fn result(case: &ReportCase, rules: &[&'static str]) -> SarifResult {
    let id = case.status.rule();
    let name = format!("{}: {}", case.group, case.title);
    let mut text = format!("{}: {}", case.line(), case.title);
    for (detail, value) in case
        .details
        .iter()
        .filter(|(detail, _)| ["note", "help"].contains(detail))
    {
        text += &format!("\n{detail}: {value}");
    }
    SarifResult {
        rule_id: id,
        rule_index: rules.iter().position(|r| *r == id).unwrap_or_default(),
        level: match case.status {
            QueryStatus::Known => "note",
            status if status.warns() => "warning",
            _ => "error",
        },
        message: Message { text },
        locations: vec![location(case.site.as_ref(), None, &name)],
        related_locations: Vec::new(),
        // The query keeps its fingerprint if lines move.
        partial_fingerprints: IndexMap::from([("fencepostQuestion/v1", name)]),
        properties: case.details.iter().cloned().collect(),
    }
}

/// A path as a URI reference.
fn artifact(path: &str) -> Artifact {
    let path = path.replace('\\', "/");
    let plain = path.strip_prefix("./").unwrap_or(&path);
    let mut uri = String::new();
    for byte in plain.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(byte.into())
            }
            other => uri += &format!("%{other:02X}"),
        }
    }
    if plain.starts_with('/') {
        Artifact {
            uri: format!("file://{uri}"),
            uri_base_id: None,
        }
    } else {
        Artifact {
            uri,
            uri_base_id: Some("%SRCROOT%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::{HumanOptions, ReportFormat, samples};
    use super::*;

    fn log() -> Value {
        let text = samples::written(ReportFormat::Sarif, &HumanOptions::default());
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn results_name_the_rules_of_the_run() {
        let log = log();
        let run = &log["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        let results = run["results"].as_array().unwrap();
        let ids: Vec<_> = results
            .iter()
            .map(|r| r["ruleId"].as_str().unwrap())
            .collect();
        assert_eq!(ids, ["expectation-not-met", "undecided", "defect"]);
        for result in results {
            assert_eq!(
                rules[result["ruleIndex"].as_u64().unwrap() as usize]["id"],
                result["ruleId"]
            );
        }
    }

    #[test]
    fn a_result_says_where() {
        let log = log();
        let place = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "tests/MP.litmus");
        assert_eq!(place["region"]["startLine"], 3);
    }

    #[test]
    fn paths_become_uri_references() {
        assert_eq!(
            artifact("./a b/é:<x>.toml").uri,
            "a%20b/%C3%A9%3A%3Cx%3E.toml"
        );
        let absolute = artifact("/tmp/a%.toml");
        assert_eq!(
            (absolute.uri.as_str(), absolute.uri_base_id),
            ("file:///tmp/a%25.toml", None)
        );
    }
}
