//! Questions about the properties of a test.

use super::Session;
use engine::ProgressModel;
use program::litmus::Prop;
use verdict::{Answer, Fault, Property, Reason, Verdict};

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
            Ask::Liveness(_) => "terminates",
        }
    }
}

impl Session<'_> {
    /// Answers a question; `None`: the model has no such property, or the question is about
    /// liveness, which [`engine::Liveness`] answers.
    pub fn decide(&mut self, ask: &Ask) -> Option<Answer> {
        match ask {
            Ask::Reachability { prop, negate } => Some(self.reachability(prop.as_ref(), *negate)),
            Ask::Race => self.race(),
            Ask::Undefined => self.undefined(),
            Ask::Misuse => match self.misuse() {
                Some(answer) if answer.verdict == Verdict::Defined => self.undefined(),
                answer => answer,
            },
            Ask::Divergence => self.undefined().map(divergence),
            Ask::Liveness(_) => None,
        }
    }
}

/// Of an answer about undefined behaviour, whether it is a barrier that threads miss.
fn divergence(answer: Answer) -> Answer {
    let is_it = |fault: &Fault| fault.relation.contains("diverg");
    let verdict = match &answer.verdict {
        Verdict::Undefined if answer.fault.as_deref().is_some_and(is_it) => Verdict::Divergent,
        Verdict::Defined => Verdict::Uniform,
        Verdict::Undefined => {
            let why = "something else in the program is undefined".to_owned();
            Verdict::Undecided(Reason::NotProved(why))
        }
        other => other.clone(),
    };
    Answer { verdict, ..answer }
}
