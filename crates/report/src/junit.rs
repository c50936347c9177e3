//! `junit`: XML for CI servers, with a suite per test file and a case per answer.
//!
//! # Invariants
//! - An undecided expectation is an `error`, so a report without errors means that all expectations
//!   are met. An undecided answer without an expectation is `skipped`.
//! - No time stamps or run identifiers; `time` attributes only with timings.
//!
//! # Sources
//! - The JUnit/XUnit dialect of Apache Maven Surefire, *surefire-test-report.xsd*. Attributes
//!   `file` and `line` are not in the schema, but several servers use them to link a case to its
//!   source.

use std::fmt::Write as _;
use std::io::{self, Write};

use indexmap::IndexMap;

use super::case::{Cases, ReportCase};
use super::status::QueryStatus;
use super::summary::Summary;

/// Collects the cases and writes them at the end, because the counts come first in the file.
#[derive(Debug, Default)]
pub struct Junit {
    suites: IndexMap<String, Vec<ReportCase>>,
}

impl Cases for Junit {
    fn case(&mut self, _: &mut dyn Write, case: ReportCase) -> io::Result<()> {
        self.suites
            .entry(case.group.clone())
            .or_default()
            .push(case);
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write, _: &Summary) -> io::Result<()> {
        let suites = std::mem::take(&mut self.suites);
        let [skipped, failures, errors] = counts(suites.values().flatten());
        let tests: usize = suites.values().map(Vec::len).sum();
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        writeln!(
            out,
            "<testsuites name=\"fencepost\" tests=\"{tests}\" skipped=\"{skipped}\" \
             failures=\"{failures}\" \
             errors=\"{errors}\">"
        )?;
        for (name, cases) in &suites {
            let [skipped, failures, errors] = counts(cases);
            let total: Option<f64> = cases.iter().map(|case| case.ms).sum();
            writeln!(
                out,
                "    <testsuite name=\"{}\" tests=\"{}\" skipped=\"{skipped}\" errors=\"{errors}\" \
                 failures=\"{failures}\"{}>",
                escaped(name),
                cases.len(),
                time(total)
            )?;
            cases
                .iter()
                .try_for_each(|case| write_case(out, name, case))?;
            writeln!(out, "    </testsuite>")?;
        }
        writeln!(out, "</testsuites>")
    }
}

/// The child element of a case that did not pass.
fn element(status: QueryStatus) -> Option<&'static str> {
    match status {
        QueryStatus::Passed | QueryStatus::Undefined(false) | QueryStatus::Fault(false) => None,
        QueryStatus::Undecided(false) | QueryStatus::Known => Some("skipped"),
        QueryStatus::Unmet | QueryStatus::Undefined(true) | QueryStatus::Fault(true) => {
            Some("failure")
        }
        QueryStatus::Undecided(true) | QueryStatus::Defect | QueryStatus::Invalid => Some("error"),
    }
}

/// The numbers of skipped cases, failures and errors.
fn counts<'a>(cases: impl IntoIterator<Item = &'a ReportCase>) -> [usize; 3] {
    let mut counts = [0; 3];
    for name in cases.into_iter().filter_map(|case| element(case.status)) {
        counts[["skipped", "failure", "error"]
            .iter()
            .position(|n| *n == name)
            .expect("one of these")] += 1;
    }
    counts
}

fn write_case(out: &mut dyn Write, suite: &str, case: &ReportCase) -> io::Result<()> {
    let name = escaped(&case.title);
    write!(
        out,
        "        <testcase name=\"{name}\" classname=\"{}\"{}",
        escaped(suite),
        time(case.ms)
    )?;
    if let Some(site) = &case.site {
        write!(
            out,
            " file=\"{}\" line=\"{}\"",
            whole(&site.file),
            site.line
        )?;
    }
    let element = element(case.status);
    if element.is_none() && case.details.is_empty() {
        return writeln!(out, "/>");
    }
    writeln!(out, ">")?;
    if !case.details.is_empty() {
        writeln!(out, "            <properties>")?;
        for (name, value) in &case.details {
            let (name, value) = (escaped(name), escaped(value));
            writeln!(
                out,
                "                <property name=\"{name}\" value=\"{value}\"/>"
            )?;
        }
        writeln!(out, "            </properties>")?;
    }
    if let Some(element) = element {
        if case.status.needs_attention() {
            let (message, rule) = (escaped(&case.line()), escaped(case.status.rule()));
            let mut text = String::new();
            for (name, value) in &case.details {
                let _ = writeln!(text, "{name}: {value}");
            }
            let text = escaped(&text);
            writeln!(
                out,
                "            <{element} message=\"{message}\" type=\"{rule}\">{text}</{element}>"
            )?;
        } else {
            writeln!(out, "            <{element}/>")?;
        }
    }
    writeln!(out, "        </testcase>")
}

/// The `time` attribute, in seconds.
fn time(ms: Option<f64>) -> String {
    ms.map_or(String::new(), |ms| format!(" time=\"{:.3}\"", ms / 1000.0))
}

/// Escapes an attribute so that its text is preserved, on one line and without commands for a CI
/// server: uses character references.
fn whole(text: &str) -> String {
    escaped(text)
        .replace('\n', "&#10;")
        .replace('\t', "&#9;")
        .replace("##", "#&#35;")
}

/// Escapes the content of an element, or an attribute in double quotes. Drops characters that XML
/// excludes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{HumanOptions, ReportFormat, samples};

    #[test]
    fn counts_and_kinds_are_those_of_the_answers() {
        let text = samples::written(ReportFormat::Junit, &HumanOptions::default());
        let head = r#"<testsuites name="fencepost" tests="6" skipped="0" failures="1" errors="2">"#;
        assert!(text.contains(head), "{text}");
        let failure = r#"<failure message="tests/MP.litmus:3: expected forbidden, got allowed" type="expectation-not-met">"#;
        assert!(text.contains(failure), "{text}");
        assert!(!text.contains("time"), "{text}");
    }

    #[test]
    fn markup_in_names_stays_text() {
        let mut line = samples::line("a<b>&\"'\n\u{1}", verdict::Verdict::Forbidden, None);
        line.path = "<p>&.toml".into();
        let text = samples::written_lines(ReportFormat::Junit, &[line]);
        assert!(text.contains("&lt;p&gt;&amp;.toml"), "{text}");
        assert!(
            text.contains(r"a&lt;b&gt;&amp;&quot;&apos;\n\u{1} under ptx-v7.5"),
            "{text}"
        );
    }
}
