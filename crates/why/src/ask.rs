//! Questions about the properties of a test.

use engine::ProgressModel;
use program::litmus::Prop;
use verdict::Property;

/// A question about one property of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Can the proposition hold (`negate`: fail)?
    Reachability {
        /// `None`: the test's own condition; without one, any complete execution.
        prop: Option<Prop>,
        /// Whether the question is about a violation.
        negate: bool,
    },
    /// Is there a race?
    Race,
    /// Does the model call the program undefined?
    Undefined,
    /// The same; if the reason is not a race, the answer gives it.
    Misuse,
    /// Can threads of a block part before a barrier?
    Divergence,
    /// Is something used after its end?
    Lifetime,
    /// Does every execution end that is fair under the progress model?
    Liveness(ProgressModel),
}

impl Ask {
    /// The property that the question is about.
    pub fn property(&self) -> Property {
        match self {
            Ask::Reachability { .. } => Property::Reachability,
            Ask::Race => Property::Race,
            Ask::Undefined | Ask::Misuse => Property::Undefined,
            Ask::Divergence => Property::Divergence,
            Ask::Lifetime => Property::Lifetime,
            Ask::Liveness(progress) => Property::Liveness(progress.name().to_owned()),
        }
    }

    /// Whether it states an outcome.
    pub(crate) fn has_prop(&self) -> bool {
        matches!(self, Ask::Reachability { prop: Some(_), .. })
    }

    /// The answer of a right program, if an execution with the property is a mistake.
    pub fn goal(&self) -> &'static str {
        match self {
            Ask::Reachability { negate: false, .. } => "forbidden",
            Ask::Reachability { negate: true, .. } => "required",
            Ask::Race => "race-free",
            Ask::Undefined | Ask::Misuse => "defined",
            Ask::Divergence => "uniform",
            Ask::Lifetime => "proper",
            Ask::Liveness(_) => "terminates",
        }
    }
}
