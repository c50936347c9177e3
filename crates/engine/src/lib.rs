//! Checkers: questions about a test under a model, answered by either engine or both.
//!
//! | Module | What |
//! |---|---|
//! | [`skeleton`] | what a program fixes: events, guards, values, base relations |
//! | [`task`] | one test under one model at one loop bound, ready for either engine |
//! | `enumerate` | the engine that tries every candidate, with bounds |
//! | `symbolic` | the engine that asks Z3 |
//! | [`liveness`] | questions about executions that never end |
//! | [`replay`] | the plain evaluator that every witness passes before anyone sees it |
//! | [`fault`] | what is wrong with an execution that a model flags |

#[cfg(feature = "z3")]
mod bounds;
pub mod engines;
mod enumerate;
pub mod eval;
pub mod execution;
pub mod fault;
pub mod liveness;
pub mod open;
pub mod query;
pub mod replay;
pub mod skeleton;
#[cfg(feature = "z3")]
mod symbolic;
pub mod task;
pub mod witness;
pub mod z3_version;

use std::time::Duration;

pub use liveness::{Liveness, ProgressModel};

use verdict::Answer;

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
    pub fn name(self) -> &'static str {
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
    pub fn bounds(&self) -> Vec<u32> {
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
    pub fn deepen(
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
        answer.undecided(open::loop_bound(self.bound))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bound: 4, timeout: Some(Duration::from_secs(60)) }
    }
}
