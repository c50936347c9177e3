//! An answer in the words that the formats for CI share: passed, failed, undecided, broken; a title, and what to say.
//! What writes such a format is a [`Cases`], and by that a [`Reporter`].
//!
//! # Invariants
//! - Every text of a [`Case`] is one line and holds no control characters, whatever a test is called.
//! - The formats differ in how they write a case, never in what they take it for.

use std::io::{self, Write};

use super::line::{Line, Site, visible};
use super::{Reporter, Summary};
use diag::{Diagnostic, Severity};
use verdict::{Definedness, Reason, Verdict};

/// What became of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// As expected, or answered where nothing was expected.
    Passed,
    /// Not as expected.
    Unmet,
    /// Not decided; whether something was expected.
    Undecided(bool),
    /// A law of ours was broken.
    Defect,
    /// The input cannot be used.
    Invalid,
}

impl Status {
    /// Identifier of the rule that a case of this kind falls under.
    pub(super) fn rule(self) -> &'static str {
        match self {
            Status::Passed => "answered",
            Status::Unmet => "expectation-not-met",
            Status::Undecided(_) => "undecided",
            Status::Defect => "defect",
            Status::Invalid => "invalid-input",
        }
    }

    /// Whether somebody has to look.
    pub(super) fn needs_attention(self) -> bool {
        self != Status::Passed
    }
}

/// One question with its answer, or one mistake in the input.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) status: Status,
    /// The group it belongs to: the test file, as it was found.
    pub(super) group: String,
    /// What it is about: `MP under ptx: reachability`.
    pub(super) title: String,
    /// What came out, in a sentence.
    pub(super) message: String,
    /// More of it, by name.
    pub(super) details: Vec<(&'static str, String)>,
    /// Where in the file; `None` for what has no file.
    pub(super) site: Option<Site>,
    /// Wall time in milliseconds.
    pub(super) ms: Option<f64>,
}

impl Case {
    /// An answer.
    pub(super) fn of(line: &Line) -> Case {
        let answer = &line.answer;
        let status = match (&answer.verdict, line.met()) {
            _ if answer.defect.is_some() => Status::Defect,
            (Verdict::Undecided(_), _) => Status::Undecided(line.expected.is_some()),
            (_, Some(false)) => Status::Unmet,
            _ => Status::Passed,
        };
        let word = answer.verdict.word();
        let mut message = match (status, line.expected) {
            (Status::Defect, _) => {
                format!("a defect of Fencepost: {}", answer.defect.as_deref().unwrap_or_default())
            }
            (Status::Undecided(_), _) => {
                let expected = line.expected.map_or(String::new(), |e| format!(", expected {e}"));
                let reason = answer.verdict.reason().map_or("no reason".to_owned(), Reason::to_string);
                format!("{} is undecided{expected}: {reason}", line.property)
            }
            (Status::Unmet, Some(expected)) => format!("{} is {word}, expected {expected}", line.property),
            (_, Some(_)) => format!("{} is {word}, as expected", line.property),
            (_, None) => format!("{} is {word}", line.property),
        };
        if let Some(Definedness::Undefined(fault)) = &answer.definedness {
            message += &format!("; {}", fault.brief());
        }
        let mut details = vec![
            ("test", line.test.clone()),
            ("model", line.model.clone()),
            ("property", line.property.to_string()),
            ("verdict", word.to_owned()),
        ];
        let mut tell = |name, value: Option<String>| details.extend(value.map(|v| (name, v)));
        tell("expected", line.expected.map(str::to_owned));
        tell("reason", answer.verdict.reason().map(Reason::to_string));
        let asked = !line.proposition.is_empty();
        tell("condition", asked.then(|| format!("{} ({})", line.quantifier, line.proposition)));
        tell("engine", Some(answer.engine.to_owned()));
        tell("bound", answer.bound.map(|b| b.to_string()));
        tell("axioms", (!answer.axioms.is_empty()).then(|| answer.axioms.join(", ")));
        tell("at", answer.fault.as_ref().map(|fault| fault.places()));
        tell("mapping", line.mapping.map(str::to_owned));
        for note in &line.notes {
            tell("note", Some(note.clone()));
        }
        Case {
            status,
            group: visible(&line.path),
            title: visible(&format!("{} under {}: {}", line.test, line.model, line.property)),
            message: visible(&message),
            details: details.into_iter().map(|(name, value)| (name, visible(&value))).collect(),
            site: Some(line.site.clone()).filter(|site| !site.file.is_empty()),
            ms: line.ms,
        }
    }

    /// A mistake in the input; warnings are none.
    pub(super) fn of_diagnostic(diagnostic: &Diagnostic) -> Option<Case> {
        if diagnostic.severity != Severity::Error {
            return None;
        }
        let status = if diagnostic.id == "defect" { Status::Defect } else { Status::Invalid };
        let site = diagnostic.source.as_ref().map(|source| Site::at(source, diagnostic.span));
        let mut details = vec![("id", diagnostic.id.to_owned())];
        let more = [("found", &diagnostic.label)].into_iter().filter(|(_, text)| !text.is_empty());
        details.extend(more.map(|(name, text)| (name, text.clone())));
        details.extend(diagnostic.notes.iter().map(|note| ("note", note.clone())));
        details.extend(diagnostic.help.iter().map(|help| ("help", help.clone())));
        Some(Case {
            status,
            group: site.as_ref().map_or("input".to_owned(), |site| visible(&site.file)),
            title: visible(diagnostic.id),
            message: visible(&diagnostic.message),
            details: details.into_iter().map(|(name, value)| (name, visible(&value))).collect(),
            site,
            ms: None,
        })
    }
}

/// Writes a format that is made of cases.
pub(super) trait Cases {
    /// One case.
    fn case(&mut self, out: &mut dyn Write, case: Case) -> io::Result<()>;
    /// Everything was said.
    fn finish(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()>;
}

impl<C: Cases> Reporter for C {
    fn line(&mut self, out: &mut dyn Write, line: &Line) -> io::Result<()> {
        self.case(out, Case::of(line))
    }

    fn diagnostic(&mut self, out: &mut dyn Write, diagnostic: &Diagnostic) -> io::Result<()> {
        Case::of_diagnostic(diagnostic).map_or(Ok(()), |case| self.case(out, case))
    }

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
        self.finish(out, summary)
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn every_kind_of_answer_has_its_status() {
        let found: Vec<_> = samples::lines().iter().map(|line| Case::of(line).status).collect();
        let expected = [
            Status::Passed,
            Status::Unmet,
            Status::Passed,
            Status::Passed,
            Status::Undecided(true),
            Status::Defect,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_message_says_what_came_out_and_what_was_expected() {
        let messages: Vec<_> = samples::lines().iter().map(|line| Case::of(line).message).collect();
        assert_eq!(messages[1], "reachability is allowed, expected forbidden");
        assert_eq!(
            messages[4],
            "reachability is undecided, expected allowed: loop bound: P1 can go on after 4 iterations of the loop at line 7; try `--bound 8`"
        );
    }

    #[test]
    fn what_a_terminal_would_act_upon_is_escaped() {
        assert_eq!(visible("a\nb\u{1b}[31m\u{202e}é"), "a\\nb\\u{1b}[31m\\u{202e}é");
    }
}
