//! What became of a question, in the words that all formats share.

/// What became of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// As expected, or answered where nothing was expected.
    Passed,
    /// Not as expected, which the test says is known.
    Known,
    /// The program is undefined, which the test does not mention; whether that is a failure.
    Undefined(bool),
    /// Not as expected; or as expected, where the test says that it is known not to be.
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
            Status::Known => "known-failure",
            Status::Undefined(_) => "undefined-program",
            Status::Unmet => "expectation-not-met",
            Status::Undecided(_) => "undecided",
            Status::Defect => "defect",
            Status::Invalid => "invalid-input",
        }
    }

    /// Whether somebody has to look.
    pub fn needs_attention(self) -> bool {
        !matches!(self, Status::Passed)
    }

    /// Whether it makes the run fail.
    pub fn fails(self) -> bool {
        matches!(self, Status::Unmet | Status::Undefined(true))
    }

    /// Whether it is worth a warning and no more.
    pub(super) fn warns(self) -> bool {
        matches!(self, Status::Undecided(_) | Status::Undefined(false))
    }
}
