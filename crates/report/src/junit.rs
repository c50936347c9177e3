//! `junit`: the XML that CI servers read: a suite per test file, a case per answer.
//!
//! # Invariants
//! - An expectation that was not decided is an `error`: a report that is all green means that all of them were met. What
//!   is undecided without an expectation is `skipped`.
//! - No time stamps, no run identifiers; `time` attributes only if timings were asked for.
//!
//! # Sources
//! - The JUnit/XUnit dialect of Apache Maven Surefire, *surefire-test-report.xsd*, as `quick-junit` writes it.

use std::io::{self, Write};
use std::time::Duration;

use indexmap::IndexMap;
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::Summary;
use super::case::{Case, Cases, Status};

/// Collects the cases; the counts come first in the file, so it is written at the end.
#[derive(Debug, Default)]
pub struct Junit {
    suites: IndexMap<String, Vec<Case>>,
}

impl Cases for Junit {
    fn case(&mut self, _: &mut dyn Write, case: Case) -> io::Result<()> {
        self.suites.entry(case.group.clone()).or_default().push(case);
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write, _: &Summary) -> io::Result<()> {
        let mut report = Report::new("fencepost");
        for (name, cases) in std::mem::take(&mut self.suites) {
            let mut suite = TestSuite::new(&name);
            let total: Option<f64> = cases.iter().map(|case| case.ms).sum();
            if let Some(ms) = total {
                suite.set_time(milliseconds(ms));
            }
            suite.add_test_cases(cases.iter().map(|case| test_case(&name, case)));
            report.add_test_suite(suite);
        }
        // The crate's error would hide what kind a failed write was: a reader that left is no failure.
        out.write_all(report.to_string().map_err(io::Error::other)?.as_bytes())
    }
}

fn test_case(suite: &str, case: &Case) -> TestCase {
    let mut status = match case.status {
        Status::Passed => TestCaseStatus::success(),
        Status::Unmet => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Status::Undecided(false) => TestCaseStatus::skipped(),
        Status::Undecided(true) | Status::Defect | Status::Invalid => {
            TestCaseStatus::non_success(NonSuccessKind::Error)
        }
    };
    if case.status.needs_attention() {
        status.set_message(&case.message);
        status.set_type(case.status.rule());
        let mut text = String::new();
        if let Some(site) = &case.site {
            text += &format!("{site}\n");
        }
        for (name, value) in &case.details {
            text += &format!("{name}: {value}\n");
        }
        status.set_description(text);
    }
    let mut written = TestCase::new(&case.title, status);
    written.set_classname(suite);
    if let Some(ms) = case.ms {
        written.set_time(milliseconds(ms));
    }
    if let Some(site) = &case.site {
        // Not in the schema, but what several servers link a case to its source by.
        written.extra.insert("file".into(), site.file.as_str().into());
        written.extra.insert("line".into(), site.line.to_string().into());
    }
    written.add_properties(case.details.iter().map(|(name, value)| Property::new(name, value)));
    written
}

fn milliseconds(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms / 1000.0).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::{Format, HumanOptions, samples};

    #[test]
    fn counts_and_kinds_are_those_of_the_answers() {
        let text = samples::written(Format::Junit, &HumanOptions::default());
        let head = r#"<testsuites name="fencepost" tests="6" skipped="0" failures="1" errors="2">"#;
        assert!(text.contains(head), "{text}");
        let failure =
            r#"<failure message="reachability is allowed, expected forbidden" type="expectation-not-met">"#;
        assert!(text.contains(failure), "{text}");
        assert!(!text.contains("time"), "{text}");
    }

    #[test]
    fn markup_in_names_stays_text() {
        let mut line = samples::line("a<b>&\"'\n\u{1}", verdict::Verdict::Forbidden, None);
        line.path = "<p>&.toml".into();
        let text = samples::written_lines(Format::Junit, &[line]);
        assert!(text.contains("&lt;p&gt;&amp;.toml"), "{text}");
        assert!(text.contains(r"a&lt;b&gt;&amp;&quot;&apos;\n\u{1} under ptx-v7.5"), "{text}");
    }
}
