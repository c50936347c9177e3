//! Exit codes, an interface that scripts rely on, and their precedence.

use diag::Diagnostic;

/// Every expectation met; for `ask` and `outcomes`: answered.
pub const OK: u8 = 0;
/// At least one expectation not met.
pub const UNMET: u8 = 1;
/// A test, model, option or file could not be understood. The others are still decided and
/// reported.
pub const INVALID: u8 = 2;
/// Nothing failed, but an answer is undecided; it is named with its reason.
pub const UNDECIDED: u8 = 3;
/// No test matched.
pub const NO_TEST: u8 = 4;
/// A defect of Fencepost itself: engines disagree, a witness failed its replay, an internal law was
/// broken.
pub const DEFECT: u8 = 70;

/// The events of a run that the exit code depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// An answer was decided.
    pub answered: bool,
    /// An expectation was not met.
    pub unmet: bool,
    /// Some input was invalid.
    pub invalid: bool,
    /// An answer is undecided.
    pub undecided: bool,
    /// A law of Fencepost was broken.
    pub defect: bool,
}

impl Events {
    /// The events of both.
    pub fn and(self, other: Events) -> Events {
        Events {
            answered: self.answered || other.answered,
            unmet: self.unmet || other.unmet,
            invalid: self.invalid || other.invalid,
            undecided: self.undecided || other.undecided,
            defect: self.defect || other.defect,
        }
    }

    /// The exit code: 70, then 2, then 1, then 3; 4 if no question existed.
    pub fn code(self) -> u8 {
        if self.defect {
            DEFECT
        } else if self.invalid {
            INVALID
        } else if self.unmet {
            UNMET
        } else if self.undecided {
            UNDECIDED
        } else if self.answered {
            OK
        } else {
            NO_TEST
        }
    }
}

/// The message with [`NO_TEST`].
pub(super) fn no_test() -> Diagnostic {
    Diagnostic::plain("no-test", "no test matched")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graver_code_wins() {
        let mut events = Events::default();
        assert_eq!(events.code(), NO_TEST);
        events.answered = true;
        assert_eq!(events.code(), OK);
        events.undecided = true;
        assert_eq!(events.code(), UNDECIDED);
        events.unmet = true;
        assert_eq!(events.code(), UNMET);
        events.invalid = true;
        assert_eq!(events.code(), INVALID);
        events.defect = true;
        assert_eq!(events.code(), DEFECT);
    }

    #[test]
    fn invalid_input_alone_is_not_an_empty_selection() {
        assert_eq!(
            Events {
                invalid: true,
                ..Events::default()
            }
            .code(),
            INVALID
        );
    }
}
