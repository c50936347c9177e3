//! Defines queries: one form of question for all properties, which every engine takes.

use std::time::{Duration, Instant};

use super::execution::Execution;
use crate::skeleton::Cond;
use cat::model::Model;
use cat::rel::Rel;
use program::litmus::Prop;
use verdict::Reason;

/// Describes the execution to find: it meets the requirement of every field.
#[derive(Clone, Debug)]
pub struct Query<'q> {
    /// Every thread runs to its end.
    pub complete: bool,
    /// Each proposition has the given truth (implies `complete`).
    pub props: Vec<(&'q Prop, bool)>,
    /// The execution raises one of these flags of the model.
    pub flags: Option<Vec<usize>>,
    /// It raises the flag by other pairs than these.
    pub spared: Option<Rel>,
    /// This condition of the skeleton holds.
    pub require: Cond,
    /// No access addresses memory that does not exist.
    pub no_fault: bool,
    /// These axioms of the model hold.
    pub axioms: Vec<bool>,
}

impl Query<'_> {
    /// Any execution of a model in which every thread runs to its end and every access addresses
    /// memory.
    pub fn complete(model: &Model) -> Self {
        Query {
            complete: true,
            props: Vec::new(),
            flags: None,
            spared: None,
            require: Cond::TRUE,
            no_fault: true,
            axioms: vec![true; model.axioms.len()],
        }
    }
}

/// The result of a query.
#[derive(Debug)]
pub enum QueryResult {
    /// An execution.
    Yes(Box<Execution>),
    /// No such execution exists.
    No,
    /// A limit was reached.
    Unknown(Reason),
}

/// A deadline that is cheap to check.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(pub Option<Instant>);

impl Deadline {
    /// Whether it has passed.
    pub fn passed(&self) -> bool {
        stop::late(self.0)
    }

    /// The deadline of something that may take so long from now on.
    pub fn after(timeout: Option<Duration>) -> Deadline {
        Deadline(timeout.map(|time| Instant::now() + time))
    }

    /// The time left, divided by so many parts; `None`: no deadline.
    pub fn share(&self, parts: u32) -> Option<Duration> {
        self.0
            .map(|end| end.saturating_duration_since(Instant::now()) / parts.max(1))
    }

    /// Milliseconds left; `None`: no deadline.
    pub fn left_ms(&self) -> Option<u64> {
        if stop::requested().is_some() {
            return Some(0);
        }
        self.0
            .map(|d| d.saturating_duration_since(Instant::now()).as_millis() as u64)
    }
}

/// Final values of a task's observables, in its order.
pub type FinalState = Vec<i64>;
