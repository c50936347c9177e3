//! `--filter EXPR`: selects tests, models, properties and verdicts.
//!
//! ```text
//! expr   = term { "or" term }
//! term   = factor { "and" factor }
//! factor = "not" factor | "(" expr ")" | KEY ( "=" | "!=" | "~" | "!~" ) VALUE
//! ```
//! `=` compares the whole word, `~` looks for a [`pattern`]. Values with blanks or parentheses need
//! quotes.
//!
//! # Invariants
//! - The filter decides as early as it can: no question is put that it cannot let through.
//! - A part about verdicts is open until then; it hides answers from reports, and changes no exit
//!   code.
//! - Words of a closed list are checked against it: a typo is an error, never an empty selection.

use std::fmt;

use super::plan::{Question, Unit};
use diag::{Diagnostic, SourceFile};

mod features;
mod parse;
mod pattern;

use features::FEATURES;

use pattern::Pattern;
use program::dialect::DIALECTS;

/// A subject of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Name,
    Path,
    Tag,
    Feature,
    Dialect,
    Model,
    Property,
    Expected,
    Verdict,
}

/// Every key with its name.
const KEYS: [(&str, Key); 9] = [
    ("name", Key::Name),
    ("path", Key::Path),
    ("tag", Key::Tag),
    ("feature", Key::Feature),
    ("dialect", Key::Dialect),
    ("model", Key::Model),
    ("property", Key::Property),
    ("expected", Key::Expected),
    ("verdict", Key::Verdict),
];

/// The expectation of a question without one.
const NOTHING: &str = "none";

const VERDICTS: [&str; 9] = [
    "allowed",
    "forbidden",
    "racy",
    "race-free",
    "undefined",
    "defined",
    "hangs",
    "terminates",
    "undecided",
];

impl Key {
    /// Its possible words; `None`: any.
    fn words(self) -> Option<Vec<&'static str>> {
        match self {
            Key::Dialect => Some(DIALECTS.iter().map(|row| row.name).collect()),
            Key::Feature => Some(FEATURES.iter().map(|f| f.0).collect()),
            Key::Verdict => Some(VERDICTS.to_vec()),
            Key::Expected => {
                let decided = VERDICTS.into_iter().filter(|word| *word != "undecided");
                Some(decided.chain(["required", NOTHING]).collect())
            }
            _ => None,
        }
    }
}

/// A requirement on a value.
#[derive(Clone, Debug)]
enum Match {
    Exactly(String),
    Like(Pattern),
}

impl Match {
    fn holds(&self, value: &str) -> bool {
        match self {
            Match::Exactly(word) => word == value,
            Match::Like(pattern) => pattern.is_in(value),
        }
    }
}

#[derive(Clone, Debug)]
enum Expr {
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
    Is(Key, Match),
}

impl Expr {
    /// Whether it holds; `None`: it depends on facts that are not known yet.
    fn eval(&self, facts: &dyn Fn(Key, &Match) -> Option<bool>) -> Option<bool> {
        // As Kleene: known parts may decide alone.
        let all = |parts: &[Expr], decisive: bool| {
            let mut open = false;
            for part in parts {
                match part.eval(facts) {
                    Some(truth) if truth == decisive => return Some(decisive),
                    Some(_) => {}
                    None => open = true,
                }
            }
            (!open).then_some(!decisive)
        };
        match self {
            Expr::And(parts) => all(parts, false),
            Expr::Or(parts) => all(parts, true),
            Expr::Not(part) => part.eval(facts).map(|truth| !truth),
            Expr::Is(key, wanted) => facts(*key, wanted),
        }
    }
}

/// A filter.
#[derive(Clone, Debug)]
pub(super) struct Filter(Expr);

impl Filter {
    /// Reads a filter; `origin` is the name of its text in messages.
    pub(super) fn parse(origin: &str, text: &str) -> Result<Filter, Box<Diagnostic>> {
        parse::parse(&SourceFile::new(origin, text)).map(Filter)
    }

    /// Whether a question may pass, as far as is known; after the decision, with `verdict`. A pair
    /// without questions counts as one.
    pub(super) fn admits(
        &self,
        unit: &Unit<'_>,
        question: Option<&Question>,
        verdict: Option<&str>,
    ) -> bool {
        let facts = |key: Key, wanted: &Match| {
            let is = |value: &str| Some(wanted.holds(value));
            match key {
                Key::Name => is(&unit.test.name),
                Key::Path => is(unit.path),
                Key::Tag => Some(unit.test.tags.iter().any(|tag| wanted.holds(tag))),
                // For the program as written, not as a mapping lowered it.
                Key::Feature => Some(
                    FEATURES
                        .iter()
                        .any(|f| wanted.holds(f.0) && (f.2)(&unit.source.program)),
                ),
                Key::Dialect => is(unit.source.program.dialect.name()),
                Key::Model => is(&unit.model.label),
                Key::Property => question.and_then(|q| is(&q.property.to_string())),
                Key::Expected => question.and_then(|q| is(q.expected.unwrap_or(NOTHING))),
                Key::Verdict => verdict.and_then(is),
            }
        };
        self.0.eval(&facts) != Some(false)
    }
}

impl fmt::Display for Expr {
    /// With all parentheses; for tests.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, parts: &[Expr], word: &str| {
            let parts: Vec<_> = parts.iter().map(Expr::to_string).collect();
            write!(f, "({})", parts.join(word))
        };
        match self {
            Expr::And(parts) => list(f, parts, " and "),
            Expr::Or(parts) => list(f, parts, " or "),
            Expr::Not(part) => write!(f, "not {part}"),
            Expr::Is(key, wanted) => {
                let name = KEYS
                    .iter()
                    .find(|row| row.1 == *key)
                    .map_or("", |row| row.0);
                match wanted {
                    Match::Exactly(word) => write!(f, "{name}={word}"),
                    Match::Like(pattern) => write!(f, "{name}~{}", pattern.text()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth(text: &str, verdict: Option<&str>) -> Option<bool> {
        let Filter(expr) = Filter::parse("--filter", text).unwrap();
        expr.eval(&|key, wanted| match key {
            Key::Name => Some(wanted.holds("MP+rel+acq")),
            Key::Model => Some(wanted.holds("ptx")),
            Key::Verdict => verdict.map(|v| wanted.holds(v)),
            _ => Some(false),
        })
    }

    #[test]
    fn what_is_not_known_stays_open_unless_the_rest_decides() {
        assert_eq!(truth("verdict = allowed", None), None);
        assert_eq!(truth("not verdict = allowed", None), None);
        assert_eq!(truth("verdict = allowed and model = sc", None), Some(false));
        assert_eq!(truth("verdict = allowed or model = ptx", None), Some(true));
        assert_eq!(truth("verdict = allowed or model = sc", None), None);
        assert_eq!(
            truth("verdict = allowed or model = sc", Some("allowed")),
            Some(true)
        );
        assert_eq!(
            truth("verdict = allowed or model = sc", Some("forbidden")),
            Some(false)
        );
    }

    #[test]
    fn names_are_compared_or_searched() {
        assert_eq!(truth("name = MP+rel+acq", None), Some(true));
        assert_eq!(truth("name = MP", None), Some(false));
        assert_eq!(truth("name ~ rel", None), Some(true));
        assert_eq!(truth("name ~ ^MP*acq$", None), Some(true));
        assert_eq!(truth("name !~ rel", None), Some(false));
        assert_eq!(truth("name != MP", None), Some(true));
    }
}
