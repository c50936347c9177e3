//! Checkers: questions about a test under a model, answered by either engine or both.
//!
//! [`Session`] is the one entry point. It owns what can be reused between questions about one (test, model) pair.
//!
//! | Module | What |
//! |---|---|
//! | [`task`] | one test under one model at one loop bound, ready for either engine |
//! | `enumerate` | the engine that tries every candidate, with bounds |
//! | `symbolic` | the engine that asks Z3 |
//! | [`operational`] | what the executor observed, held against the model |
//! | [`known_gap`] | a source model reduced to what a mapping is known to keep of it |
//! | [`liveness`] | questions about executions that never end |
//! | `replay` | the plain evaluator that every witness passes before anyone sees it |
//! | `explain` | why an outcome is forbidden, or what is missing for it to be |
//! | `fault` | what is wrong with an execution that a model flags |
//! | `search` | few changes of a program that turn an answer |
//! | `repair` | what would make a racy program race-free |

#[cfg(feature = "z3")]
mod bounds;
mod engines;
mod enumerate;
mod eval;
pub mod execution;
mod explain;
mod fault;
pub mod known_gap;
pub mod liveness;
pub mod operational;
mod query;
mod repair;
mod replay;
mod search;
mod session;
#[cfg(feature = "z3")]
mod symbolic;
pub mod task;
mod witness;
pub mod z3_version;

use std::time::Duration;

pub use liveness::{Liveness, ProgressModel};
pub use session::Session;

use crate::verdict::Answer;

/// Which engine answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Enumeration for a limited number of steps, then Z3.
    Auto,
    /// Z3.
    Symbolic,
    /// Explicit enumeration.
    Enumerate,
    /// Both; a difference is a defect.
    Both,
}

impl Engine {
    /// The engine that answers, where no other one was needed.
    fn name(self) -> &'static str {
        match self {
            Engine::Both => "both",
            Engine::Enumerate | Engine::Auto => "enumerate",
            Engine::Symbolic => "symbolic",
        }
    }
}

/// When to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// At most this many iterations of a loop.
    pub bound: u32,
    /// Wall time per question; `None` for no limit.
    pub timeout: Option<Duration>,
}

impl Limits {
    /// The loop bounds to try, smallest first.
    fn bounds(&self) -> Vec<u32> {
        let mut bounds = vec![];
        let mut b = 1;
        while b < self.bound {
            bounds.push(b);
            b *= 2;
        }
        bounds.push(self.bound.max(1));
        bounds
    }

    /// Asks `at` one loop bound after the other, until it says that a larger one can tell no more.
    fn deepen(
        &self,
        mut answer: Answer,
        mut at: impl FnMut(u32, &mut Answer) -> Result<bool, engines::Halt>,
    ) -> Answer {
        for bound in self.bounds() {
            match at(bound, &mut answer) {
                Ok(true) => return answer,
                Ok(false) => {}
                Err(halt) => return halt.end(answer),
            }
        }
        answer.undecided(session::loop_bound(self.bound))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bound: 4, timeout: Some(Duration::from_secs(60)) }
    }
}
