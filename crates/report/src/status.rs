//! The status of a query, shared by all formats.

/// The status of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryStatus {
    /// As expected, or answered without an expectation.
    Passed,
    /// Not as expected, and the test lists this as known.
    Known,
    /// The program is undefined and the test does not mention it; the field says whether that is a
    /// failure.
    Undefined(bool),
    /// Nothing is expected, and the program races, is undefined or hangs; whether that is a
    /// failure.
    Fault(bool),
    /// Not as expected; or as expected although the test lists a known failure.
    Unmet,
    /// Undecided; the field says whether there is an expectation.
    Undecided(bool),
    /// The checker broke one of its laws.
    Defect,
    /// The input is invalid.
    Invalid,
}

impl QueryStatus {
    /// The id of the rule for this status.
    pub(super) fn rule(self) -> &'static str {
        match self {
            QueryStatus::Passed => "answered",
            QueryStatus::Known => "known-failure",
            QueryStatus::Undefined(_) => "undefined-program",
            QueryStatus::Fault(_) => "program-fault",
            QueryStatus::Unmet => "expectation-not-met",
            QueryStatus::Undecided(_) => "undecided",
            QueryStatus::Defect => "defect",
            QueryStatus::Invalid => "invalid-input",
        }
    }

    /// Whether the user should look at it.
    pub fn needs_attention(self) -> bool {
        !matches!(self, QueryStatus::Passed)
    }

    /// Whether it makes the run fail.
    pub fn fails(self) -> bool {
        matches!(
            self,
            QueryStatus::Unmet | QueryStatus::Undefined(true) | QueryStatus::Fault(true)
        )
    }

    /// Whether it is only a warning.
    pub(super) fn warns(self) -> bool {
        matches!(
            self,
            QueryStatus::Undecided(_) | QueryStatus::Undefined(false) | QueryStatus::Fault(false)
        )
    }
}
