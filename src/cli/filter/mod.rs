//! `--filter EXPR`: selects tests, models, properties and verdicts.
//!
//! ```text
//! expr   = term { "or" term }
//! term   = factor { "and" factor }
//! factor = "not" factor | "(" expr ")" | KEY ( "=" | "!=" | "~" | "!~" ) VALUE | VALUE
//! ```
//! `=` compares the whole word, `~` looks for a [`pattern`]; a value alone is `name ~ VALUE`.
//! Values with blanks or parentheses need quotes.
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
use verdict::Verdict;

/// A subject of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilterKey {
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
const KEYS: [(&str, FilterKey); 9] = [
    ("name", FilterKey::Name),
    ("path", FilterKey::Path),
    ("tag", FilterKey::Tag),
    ("feature", FilterKey::Feature),
    ("dialect", FilterKey::Dialect),
    ("model", FilterKey::Model),
    ("property", FilterKey::Property),
    ("expected", FilterKey::Expected),
    ("verdict", FilterKey::Verdict),
];

/// The expectation of a question without one.
const NOTHING: &str = "none";

impl FilterKey {
    /// Its possible words; `None`: any.
    fn words(self) -> Option<Vec<&'static str>> {
        match self {
            FilterKey::Dialect => Some(DIALECTS.iter().map(|row| row.name).collect()),
            FilterKey::Feature => Some(FEATURES.iter().map(|f| f.0).collect()),
            FilterKey::Verdict => Some(Verdict::WORDS.to_vec()),
            FilterKey::Expected => {
                let decided = Verdict::WORDS
                    .into_iter()
                    .filter(|word| *word != "undecided");
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
enum FilterExpr {
    And(Vec<FilterExpr>),
    Or(Vec<FilterExpr>),
    Not(Box<FilterExpr>),
    Is(FilterKey, Match),
}

impl FilterExpr {
    /// Whether it holds; `None`: it depends on facts that are not known yet.
    fn eval(&self, facts: &dyn Fn(FilterKey, &Match) -> Option<bool>) -> Option<bool> {
        // As Kleene: known parts may decide alone.
        let all = |parts: &[FilterExpr], decisive: bool| {
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
            FilterExpr::And(parts) => all(parts, false),
            FilterExpr::Or(parts) => all(parts, true),
            FilterExpr::Not(part) => part.eval(facts).map(|truth| !truth),
            FilterExpr::Is(key, wanted) => facts(*key, wanted),
        }
    }
}

/// A filter.
#[derive(Clone, Debug)]
pub(super) struct Filter(FilterExpr);

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
        let facts = |key: FilterKey, wanted: &Match| {
            let is = |value: &str| Some(wanted.holds(value));
            match key {
                FilterKey::Name => is(&unit.test.name),
                FilterKey::Path => is(unit.path),
                FilterKey::Tag => Some(unit.test.tags.iter().any(|tag| wanted.holds(tag))),
                // For the program as written, not as a mapping lowered it.
                FilterKey::Feature => Some(
                    FEATURES
                        .iter()
                        .any(|f| wanted.holds(f.0) && (f.2)(&unit.source.program)),
                ),
                FilterKey::Dialect => is(unit.source.program.dialect.name()),
                FilterKey::Model => is(&unit.model.label),
                FilterKey::Property => question.and_then(|q| is(&q.property().to_string())),
                FilterKey::Expected => question.and_then(|q| is(q.expected.unwrap_or(NOTHING))),
                FilterKey::Verdict => verdict.and_then(is),
            }
        };
        self.0.eval(&facts) != Some(false)
    }
}

impl fmt::Display for FilterExpr {
    /// With all parentheses; for tests.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, parts: &[FilterExpr], word: &str| {
            let parts: Vec<_> = parts.iter().map(FilterExpr::to_string).collect();
            write!(f, "({})", parts.join(word))
        };
        match self {
            FilterExpr::And(parts) => list(f, parts, " and "),
            FilterExpr::Or(parts) => list(f, parts, " or "),
            FilterExpr::Not(part) => write!(f, "not {part}"),
            FilterExpr::Is(key, wanted) => {
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
            FilterKey::Name => Some(wanted.holds("MP+rel+acq")),
            FilterKey::Model => Some(wanted.holds("ptx")),
            FilterKey::Verdict => verdict.map(|v| wanted.holds(v)),
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
