//! The status of a query, shared by all formats.

/// The status of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// As expected, or answered without an expectation.
    Passed,
    /// Not as expected, and the test lists this as known.
    Known,
    /// The program is undefined and the test does not mention it; the field says whether that is a
    /// failure.
    Undefined(bool),
    /// Not as expected; or as expected although the test lists a known failure.
    Unmet,
    /// Undecided; the field says whether there is an expectation.
    Undecided(bool),
    /// The checker broke one of its laws.
    Defect,
    /// The input is invalid.
    Invalid,
}

impl Status {
    /// The id of the rule for this status.
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

    /// Whether the user should look at it.
    pub fn needs_attention(self) -> bool {
        !matches!(self, Status::Passed)
    }

    /// Whether it makes the run fail.
    pub fn fails(self) -> bool {
        matches!(self, Status::Unmet | Status::Undefined(true))
    }

    /// Whether it is only a warning.
    pub(super) fn warns(self) -> bool {
        matches!(self, Status::Undecided(_) | Status::Undefined(false))
    }
}
