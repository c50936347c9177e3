//! Checkers: questions about a test under a model, answered by either engine or both.
//!
//! [`Session`] is the one entry point. It owns what can be reused between questions about one (test, model) pair.

pub mod z3_version;

use std::time::Duration;

use crate::litmus::{LitmusTest, Prop};
use crate::model::ir::Model;
use crate::verdict::{Answer, Outcomes};

/// Which engine answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The faster one for the question at hand.
    Auto,
    /// Z3.
    Symbolic,
    /// Explicit enumeration.
    Enumerate,
    /// Both; a difference is a defect.
    Both,
}

/// When to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// At most this many iterations of a loop.
    pub bound: u32,
    /// Per question.
    pub timeout: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bound: 4, timeout: Some(Duration::from_secs(60)) }
    }
}

/// Questions about one test under one model.
pub struct Session<'a> {
    _test: &'a LitmusTest,
    _model: &'a Model,
}

impl<'a> Session<'a> {
    /// Prepares nothing yet; every failure shows up as an `undecided` answer.
    /// `set` overrides options of the test and of the model (validated names and values).
    pub fn new(
        test: &'a LitmusTest,
        model: &'a Model,
        engine: Engine,
        limits: Limits,
        set: &[(String, String)],
    ) -> Self {
        let _ = (engine, limits, set);
        Session { _test: test, _model: model }
    }

    /// Can `prop` hold (`negate`: fail) in a consistent, complete execution that satisfies the test's filter?
    /// `None` asks for any complete execution.
    pub fn reachability(&mut self, prop: Option<&Prop>, negate: bool) -> Answer {
        let _ = (prop, negate);
        unimplemented!()
    }

    /// Does some consistent execution raise the race flag? `None` if the model has none.
    pub fn race(&mut self) -> Option<Answer> {
        unimplemented!()
    }

    /// Every outcome.
    pub fn outcomes(&mut self) -> Outcomes {
        unimplemented!()
    }
}
