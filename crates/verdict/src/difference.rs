//! Compares two models on one test: how their answers relate, and why.

use crate::InstrPlace;

/// How the answers of two models on one test relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// Both models give the same answers.
    Agree,
    /// The models give different answers.
    Differ,
    /// The mapping allows only outcomes that its source model allows.
    Respected,
    /// The mapping allows a forbidden outcome, but the cause is documented: it does not keep an
    /// order of sequentially consistent accesses.
    KnownGap,
    /// The mapping allows an outcome that its source model forbids.
    Violated,
    /// The source program is undefined, so the mapping has no obligation.
    Exempt,
    /// The comparison was not decided.
    Undecided,
}

impl Relation {
    /// The word that reports print.
    pub fn word(self) -> &'static str {
        match self {
            Relation::Agree => "agree",
            Relation::Differ => "differ",
            Relation::Respected => "respected",
            Relation::KnownGap => "known gap",
            Relation::Violated => "violated",
            Relation::Exempt => "exempt: undefined",
            Relation::Undecided => "undecided",
        }
    }
}

impl InstrPlace {
    /// The text for a sentence that names several places. A place without a line prints its text
    /// alone.
    pub fn long(&self) -> String {
        match &self.line {
            line if line.is_known() => {
                format!(
                    "line {line} `{}` ({})",
                    self.text.trim_end_matches(';'),
                    self.thread
                )
            }
            _ => self.text.clone(),
        }
    }

    /// As [`InstrPlace::long`], without the instruction.
    pub fn short(&self) -> String {
        match &self.line {
            line if line.is_known() => format!("line {line} ({})", self.thread),
            _ => self.text.clone(),
        }
    }
}

/// The result of comparing two of the models.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The first model.
    pub left: String,
    /// The second model.
    pub right: String,
    /// Whether they differ on the test's condition; `None` if one is undecided.
    pub differs: Option<bool>,
    /// How their answers relate.
    pub relation: Relation,
    /// The rule that makes the difference; reports count by it.
    pub rule: Option<String>,
    /// The axioms by which the stronger model forbids an outcome that the other one allows.
    pub by: Option<String>,
    /// The instructions to which the rule applies.
    pub places: Vec<InstrPlace>,
    /// The reason, in one sentence.
    pub why: String,
}
