//! Which engine to ask, and when to give up.

use std::time::Duration;

use verdict::{Answer, Reason};

use crate::engines;

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
        answer.undecided(Reason::LoopBound(self.bound))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bound: 4, timeout: Some(Duration::from_secs(60)) }
    }
}
