//! Answers a question about a property.

use super::Session;
use crate::ask::Ask;
use verdict::{Answer, Fault, Reason, Verdict};

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
            Ask::Lifetime => self.lifetime(),
            Ask::Liveness(_) => None,
        }
    }
}

/// Of an answer about undefined behaviour, whether it is a barrier that threads miss.
fn divergence(answer: Answer) -> Answer {
    fn is_it(fault: &Fault) -> bool {
        fault.relation.contains("diverg")
    }
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
