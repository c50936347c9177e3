//! How two models stand to each other on a test, and why.

use crate::Place;

/// How two models stand to each other on a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// They give the same answers.
    Agree,
    /// They do not.
    Differ,
    /// A mapping allows nothing that its source model forbids.
    Respected,
    /// It does, in a way that is known: an order of sequentially consistent accesses that the
    /// mapping does not keep.
    KnownGap,
    /// It does.
    Violated,
    /// The source program is undefined, so nothing is asked of the mapping.
    Exempt,
    /// It cannot be said.
    Undecided,
}

impl Relation {
    /// The words in reports.
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

impl Place {
    /// In a sentence about several; without a line, it is something else of a program.
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

    /// The same without the instruction.
    pub fn short(&self) -> String {
        match &self.line {
            line if line.is_known() => format!("line {line} ({})", self.thread),
            _ => self.text.clone(),
        }
    }
}

/// What came out for two of the models.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The first of the models.
    pub left: String,
    /// The other one.
    pub right: String,
    /// Whether they differ on the test's condition; `None` if one is undecided.
    pub differs: Option<bool>,
    /// How they stand to each other.
    pub relation: Relation,
    /// The rule that makes the difference; for counting.
    pub rule: Option<String>,
    /// The axioms by which the stronger model forbids what the other one allows.
    pub by: Option<String>,
    /// Where the rule bites.
    pub places: Vec<Place>,
    /// The reason, in one sentence.
    pub why: String,
}
