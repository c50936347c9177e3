//! An answer in a form that all formats share: status, title, message and help. A format implements
//! [`Cases`] to write such cases, and thereby becomes a [`Reporter`].
//!
//! # Invariants
//! - Every text of a [`ReportCase`] is one line without control characters, for any name of a test.
//! - Formats differ in how they write a case and never in its status: [`ReportCase::line`] is the
//!   same in each.

use std::io::{self, Write};

use super::comparison::Comparison;
use super::line::{AnswerLine, FileSite, KnownFailure, OutcomeTable, UnmetReading};
use super::reporter::{Reporter, unfit};
use super::status::QueryStatus;
use super::summary::Summary;
use super::{execution, explanation};
use diag::{Diagnostic, Severity, visible};
use verdict::{
    Definedness, Ending, Fault, Finding, Property, RacingPair, Reason, Relation, Remedy, Verdict,
};

/// One query with its answer, or one error in the input.
#[derive(Clone, Debug)]
pub(super) struct ReportCase {
    pub(super) status: QueryStatus,
    /// Its group: the path of the test file.
    pub(super) group: String,
    /// Its title: `MP under ptx: reachability`.
    pub(super) title: String,
    /// The expected and the actual answer, in a sentence.
    pub(super) message: String,
    /// The next action for the user.
    pub(super) help: Option<String>,
    /// Further details by name.
    pub(super) details: Vec<(&'static str, String)>,
    /// The place in the file; `None` if there is no file.
    pub(super) site: Option<FileSite>,
    /// The pairs of accesses that race.
    pub(super) pairs: Vec<RacingPair>,
    /// Wall time in milliseconds.
    pub(super) ms: Option<f64>,
    /// Whether an interrupt prevented the query.
    pub(super) interrupted: bool,
}

impl ReportCase {
    /// The message with its place: `a.toml:13: expected forbidden, got allowed (x = 1)`.
    pub(super) fn line(&self) -> String {
        match &self.site {
            // Each format writes the place of an input error in its way.
            Some(site) if self.status != QueryStatus::Invalid => {
                format!("{site}: {}", self.message)
            }
            _ => self.message.clone(),
        }
    }

    /// The case for an answer.
    pub(super) fn of(line: &AnswerLine) -> ReportCase {
        let answer = &line.answer;
        let status = line.status();
        let mut details = vec![
            ("test", line.test.clone()),
            ("model", line.model.clone()),
            ("property", line.property.to_string()),
            ("verdict", answer.verdict.word().to_owned()),
        ];
        let mut tell = |name, value: Option<String>| details.extend(value.map(|v| (name, v)));
        tell("expected", line.expected.map(str::to_owned));
        tell("reason", answer.verdict.reason().map(Reason::to_string));
        let asked = !line.proposition.is_empty();
        tell(
            "condition",
            asked.then(|| format!("{} ({})", line.quantifier, line.proposition)),
        );
        tell("engine", Some(answer.engine.to_owned()));
        tell("bound", answer.bound.map(|b| b.to_string()));
        tell(
            "axioms",
            (!answer.axioms.is_empty()).then(|| answer.axioms.join(", ")),
        );
        let pairs = answer.races.iter().flat_map(|races| &races.pairs);
        let all: Vec<String> = pairs.map(RacingPair::places).collect();
        let at = answer.fault.as_ref().map(|fault| fault.places());
        tell(
            "at",
            if all.is_empty() {
                at
            } else {
                Some(all.join("; "))
            },
        );
        for set in line.set() {
            tell("option", Some(set));
        }
        tell("mapping", line.mapping.map(str::to_owned));
        tell(
            "known",
            line.known.as_ref().map(|known| known.reason.clone()),
        );
        for dependence in &answer.dependences {
            tell("depends", Some(dependence.text()));
        }
        for note in &line.notes {
            tell("note", Some(note.clone()));
        }
        let help = help(line, status).map(|help| visible(&help));
        tell("help", help.clone());
        ReportCase {
            status,
            group: visible(&line.path),
            title: visible(&format!(
                "{} under {}: {}",
                line.test, line.model, line.property
            )),
            message: visible(&message(line, status)),
            help,
            details: details
                .into_iter()
                .map(|(name, value)| (name, visible(&value)))
                .collect(),
            site: Some(line.site.clone()).filter(|site| !site.file.is_empty()),
            pairs: answer
                .races
                .iter()
                .flat_map(|races| races.pairs.iter().cloned())
                .collect(),
            ms: line.ms,
            interrupted: answer.verdict.reason() == Some(&Reason::Interrupted),
        }
    }

    /// What is wrong with a kernel, at its place in the source file.
    fn of_fault(line: &AnswerLine, found: &Diagnostic) -> ReportCase {
        let mut case = ReportCase::of(line);
        let said = [found.message.clone(), found.label.clone()].into_iter();
        let more = found.secondary.iter().map(|(_, text)| text.clone());
        let all: Vec<String> = said
            .chain(more)
            .chain(found.notes.iter().cloned())
            .collect();
        let all: Vec<&str> = all
            .iter()
            .map(String::as_str)
            .filter(|text| !text.is_empty())
            .collect();
        case.message = visible(&all.join("; "));
        case.help = found.help.as_deref().map(visible).or(case.help);
        if let Some(source) = &found.source {
            case.site = Some(FileSite::at(source, found.span));
        }
        case
    }

    /// The case for the relation between two models on a test.
    pub(super) fn of_finding(comparison: &Comparison, finding: &Finding) -> ReportCase {
        let status = match finding.relation {
            Relation::Violated => QueryStatus::Unmet,
            Relation::Undecided => QueryStatus::Undecided(false),
            _ => QueryStatus::Passed,
        };
        let word = finding.relation.word();
        let mut details = vec![
            ("test", comparison.test.clone()),
            ("models", format!("{} and {}", finding.left, finding.right)),
            ("relation", word.to_owned()),
        ];
        details.extend(finding.rule.clone().map(|rule| ("rule", rule)));
        let first = comparison
            .columns
            .iter()
            .find_map(|column| column.lines.first());
        ReportCase {
            status,
            group: visible(&comparison.path),
            title: visible(&format!(
                "{}: {} and {}",
                comparison.test, finding.left, finding.right
            )),
            message: visible(&format!("{word}: {}", finding.why)),
            help: None,
            details: details
                .into_iter()
                .map(|(name, value)| (name, visible(&value)))
                .collect(),
            site: first
                .map(|line| line.site.clone())
                .filter(|site| !site.file.is_empty()),
            pairs: Vec::new(),
            ms: None,
            interrupted: false,
        }
    }

    /// The case for an input error; `None` for warnings.
    pub(super) fn of_diagnostic(diagnostic: &Diagnostic) -> Option<ReportCase> {
        if diagnostic.severity != Severity::Error {
            return None;
        }
        let status = if diagnostic.id == "defect" {
            QueryStatus::Defect
        } else {
            QueryStatus::Invalid
        };
        let site = diagnostic
            .source
            .as_ref()
            .map(|source| FileSite::at(source, diagnostic.span));
        let mut details = vec![("id", diagnostic.id.to_owned())];
        let more = [("found", &diagnostic.label)]
            .into_iter()
            .filter(|(_, text)| !text.is_empty());
        details.extend(more.map(|(name, text)| (name, text.clone())));
        details.extend(diagnostic.notes.iter().map(|note| ("note", note.clone())));
        details.extend(diagnostic.help.iter().map(|help| ("help", help.clone())));
        Some(ReportCase {
            status,
            group: site
                .as_ref()
                .map_or("input".to_owned(), |site| visible(&site.file)),
            title: visible(diagnostic.id),
            message: visible(&diagnostic.message),
            help: diagnostic.help.as_deref().map(visible),
            details: details
                .into_iter()
                .map(|(name, value)| (name, visible(&value)))
                .collect(),
            site,
            pairs: Vec::new(),
            ms: None,
            interrupted: false,
        })
    }
}

/// The answer in the words of the query: for a `forall`, whether it holds.
pub(super) fn outcome(line: &AnswerLine) -> &'static str {
    let holds = line.quantifier == "forall"
        && line.property == Property::Reachability
        && matches!(line.expected, None | Some("required"));
    match &line.answer.verdict {
        Verdict::Forbidden if holds => "always holds",
        Verdict::Allowed if holds => "violated",
        verdict => verdict.word(),
    }
}

/// The expected and the actual answer.
fn message(line: &AnswerLine, status: QueryStatus) -> String {
    let answer = &line.answer;
    let mut got = outcome(line).to_owned();
    if let Some(reason) = answer.verdict.reason() {
        got += &format!(" ({reason})");
    }
    if let Some(shown) =
        shown(line).filter(|_| matches!(status, QueryStatus::Unmet | QueryStatus::Known))
    {
        got += &if got == "violated" {
            format!(", by {shown}")
        } else {
            format!(" ({shown})")
        };
    }
    let undefined = match &answer.definedness {
        Some(Definedness::Undefined(fault)) => Some(fault.brief()),
        _ => None,
    };
    let also = undefined
        .as_ref()
        .map_or(String::new(), |brief| format!("; {brief}"));
    if let (QueryStatus::Unmet | QueryStatus::Known, Some(reading)) = (status, &line.reading) {
        let UnmetReading {
            under,
            expected,
            verdict,
        } = reading;
        return format!("expected {expected} under `{under}`, got {verdict}{also}");
    }
    match (status, line.expected, &line.known) {
        (QueryStatus::Defect, ..) => {
            format!(
                "a defect of Fencepost: {}",
                answer.defect.as_deref().unwrap_or_default()
            )
        }
        (QueryStatus::Known, Some(expected), _) => {
            format!("known failure: expected {expected}, got {got}{also}")
        }
        (
            _,
            _,
            Some(KnownFailure {
                reason,
                passes: true,
            }),
        ) => {
            format!("expected a known failure ({reason}), got every expectation met{also}")
        }
        (QueryStatus::Undefined(true), ..) => {
            format!(
                "expected defined, got undefined: {}",
                undefined.unwrap_or_default()
            )
        }
        (QueryStatus::Passed | QueryStatus::Undefined(_), Some(_), _) => {
            format!("{got}, as expected{also}")
        }
        (_, Some(expected), _) => format!("expected {expected}, got {got}{also}"),
        (_, None, _) => format!("{got}{also}"),
    }
}

/// Short evidence for the answer: values, racing accesses, or threads that do not end.
fn shown(line: &AnswerLine) -> Option<String> {
    let answer = &line.answer;
    match &answer.verdict {
        Verdict::Allowed => {
            Some(execution::state_text(line.values())).filter(|_| !line.values().is_empty())
        }
        Verdict::Racy | Verdict::Undefined | Verdict::Misused => {
            let places = answer
                .fault
                .as_ref()
                .map(|fault| fault.places())
                .filter(|places| !places.is_empty());
            let more = line
                .further_races()
                .map_or(String::new(), |more| format!(" {more}"));
            places.map(|places| format!("{places}{more}"))
        }
        Verdict::Hangs => {
            let mut ends = answer.witness.iter().flat_map(|witness| &witness.ends);
            let stuck = ends.find(|end| matches!(end.ending, Ending::Blocked | Ending::Looping))?;
            Some(format!("{} {}", stuck.thread, stuck.why))
        }
        _ => None,
    }
}

/// The next action for the user, on one line.
fn help(line: &AnswerLine, status: QueryStatus) -> Option<String> {
    let answer = &line.answer;
    match (status, &line.known, answer.verdict.reason()) {
        (_, Some(KnownFailure { passes: true, .. }), _) => {
            Some("take `known` out of the test".to_owned())
        }
        (QueryStatus::Known, Some(known), _) => Some(format!("known: {}", known.reason)),
        (QueryStatus::Undecided(_), _, Some(Reason::Time)) => {
            Some("`--timeout` gives it more time".to_owned())
        }
        (QueryStatus::Undecided(_), _, Some(Reason::Memory)) => {
            Some("`--memory` gives it more memory".to_owned())
        }
        (QueryStatus::Unmet, ..) => {
            let explained = answer.explanation.as_deref().and_then(explanation::remedy);
            let blessed =
                || "if the model is right, `--bless` writes this answer into the test".to_owned();
            explained
                .or_else(|| line.fault().and_then(remedy))
                .or_else(|| Some(blessed()))
        }
        (QueryStatus::Undefined(_), ..) => {
            let fault = line.fault()?;
            let word = if fault.race {
                "race = \"racy\""
            } else {
                "undefined = \"undefined\""
            };
            remedy(fault)
                .or_else(|| Some(format!("if this is intended, let the test expect `{word}`")))
        }
        _ => None,
    }
}

/// The changes that make a program defined.
fn remedy(fault: &Fault) -> Option<String> {
    match &fault.remedy {
        Some(Remedy::Changes(changes)) => {
            let texts: Vec<_> = changes.iter().map(|change| change.text.as_str()).collect();
            Some(format!("it becomes race-free if {}", texts.join(" and ")))
        }
        _ => None,
    }
}

/// A writer for a format that consists of cases.
pub(super) trait Cases {
    /// Writes one case.
    fn case(&mut self, out: &mut dyn Write, case: ReportCase) -> io::Result<()>;
    /// Writes one list of outcomes.
    fn outcomes(&mut self, _out: &mut dyn Write, _table: &OutcomeTable) -> io::Result<()> {
        unfit("lists of outcomes")
    }
    /// Writes the end.
    fn finish(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()>;
}

impl<C: Cases> Reporter for C {
    fn line(&mut self, out: &mut dyn Write, line: &AnswerLine) -> io::Result<()> {
        let found = line.kernel.iter().flat_map(|kernel| &kernel.found);
        let cases: Vec<ReportCase> = found
            .map(|found| ReportCase::of_fault(line, found))
            .collect();
        match cases.is_empty() {
            true => self.case(out, ReportCase::of(line)),
            false => cases.into_iter().try_for_each(|case| self.case(out, case)),
        }
    }

    fn diagnostic(&mut self, out: &mut dyn Write, diagnostic: &Diagnostic) -> io::Result<()> {
        ReportCase::of_diagnostic(diagnostic).map_or(Ok(()), |case| self.case(out, case))
    }

    fn comparison(&mut self, out: &mut dyn Write, comparison: &Comparison) -> io::Result<()> {
        comparison
            .columns
            .iter()
            .flat_map(|column| &column.lines)
            .try_for_each(|line| self.line(out, line))?;
        let mut findings = comparison.findings.iter();
        findings.try_for_each(|finding| self.case(out, ReportCase::of_finding(comparison, finding)))
    }

    fn table(&mut self, out: &mut dyn Write, table: &OutcomeTable) -> io::Result<()> {
        self.outcomes(out, table)
    }

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
        self.finish(out, summary)
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;
    use verdict::Property;

    #[test]
    fn every_kind_of_answer_has_its_status() {
        let found: Vec<_> = samples::lines()
            .iter()
            .map(|line| ReportCase::of(line).status)
            .collect();
        let expected = [
            QueryStatus::Passed,
            QueryStatus::Unmet,
            QueryStatus::Passed,
            QueryStatus::Passed,
            QueryStatus::Undecided(true),
            QueryStatus::Defect,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_line_says_where_what_was_expected_and_what_came_out() {
        let lines: Vec<_> = samples::lines()
            .iter()
            .map(|line| ReportCase::of(line).line())
            .collect();
        assert_eq!(
            lines[1],
            "tests/MP.litmus:3: expected forbidden, got allowed"
        );
        assert_eq!(
            lines[4],
            "tests/Loop.litmus:3: expected allowed, got undecided (loop bound: P1 can go on after \
             4 iterations of the loop at line 7; try `--bound 8`)"
        );
        let mut line = samples::line("MP", Verdict::Allowed, Some("forbidden"));
        line.answer.witness = Some(samples::witness());
        assert_eq!(
            ReportCase::of(&line).message,
            "expected forbidden, got allowed (P1:r0 = 1, x = 1)"
        );
        line.drop_evidence();
        assert_eq!(
            ReportCase::of(&line).message,
            "expected forbidden, got allowed (P1:r0 = 1, x = 1)"
        );
    }

    #[test]
    fn a_requirement_always_holds_or_is_violated() {
        let mut line = samples::line("A", Verdict::Allowed, Some("required"));
        line.quantifier = "forall";
        line.values = vec![("x".into(), "1".into())];
        assert_eq!(
            ReportCase::of(&line).message,
            "expected required, got violated, by x = 1"
        );
        line.answer.verdict = Verdict::Forbidden;
        assert_eq!(ReportCase::of(&line).message, "always holds, as expected");
    }

    #[test]
    fn what_is_known_fails_when_it_passes() {
        let mut line = samples::line("A", Verdict::Allowed, Some("forbidden"));
        line.known = Some(KnownFailure {
            reason: "a gap".into(),
            passes: false,
        });
        let case = ReportCase::of(&line);
        assert_eq!(
            case.message,
            "known failure: expected forbidden, got allowed"
        );
        assert!(!case.status.fails() && case.help.as_deref() == Some("known: a gap"));
        line.answer.verdict = Verdict::Forbidden;
        line.known = Some(KnownFailure {
            reason: "a gap".into(),
            passes: true,
        });
        let case = ReportCase::of(&line);
        assert_eq!(
            case.message,
            "expected a known failure (a gap), got every expectation met"
        );
        assert!(case.status.fails());
    }

    #[test]
    fn an_undefined_program_that_nobody_mentions_is_told() {
        let fault = Fault {
            flag: "race".into(),
            relation: "data-race".into(),
            race: true,
            lifetime: false,
            place: None,
            object: None,
            events: Vec::new(),
            why: Vec::new(),
            remedy: None,
            execution: None,
        };
        let mut line = samples::line("A", Verdict::Terminates, Some("terminates"));
        line.property = Property::Liveness("fair".into());
        line.answer.definedness = Some(Definedness::Undefined(Box::new(fault)));
        assert_eq!(
            ReportCase::of(&line).line(),
            "tests/A.litmus:3: terminates, as expected; racy: the program is undefined"
        );
        line.denies_undefined = true;
        assert!(line.status().fails());
        line.mentions_undefined = true;
        assert_eq!(line.status(), QueryStatus::Passed);
    }
}
