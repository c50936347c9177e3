//! Queries: what an engine is asked, in one form for all properties.

use std::time::Instant;

use super::execution::Execution;
use crate::skeleton::Cond;
use cat::model::Model;
use cat::rel::Rel;
use program::litmus::Prop;
use verdict::Reason;

/// Find an execution such that …
#[derive(Clone, Debug)]
pub struct Query<'q> {
    /// … every thread runs to its end,
    pub complete: bool,
    /// … each proposition has the given truth (implies `complete`),
    pub props: Vec<(&'q Prop, bool)>,
    /// … one of these flags of the model is raised,
    pub flags: Option<Vec<usize>>,
    /// … by other pairs than these,
    pub spared: Option<Rel>,
    /// … this condition of the skeleton holds,
    pub require: Cond,
    /// … no access names memory that does not exist,
    pub no_fault: bool,
    /// … and these axioms of the model hold.
    pub axioms: Vec<bool>,
}

impl Query<'_> {
    /// Any execution of a model in which every thread runs to its end and every access names
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

/// What came out of a query.
#[derive(Debug)]
pub enum Found {
    /// An execution.
    Yes(Box<Execution>),
    /// There is none.
    No,
    /// A limit was hit.
    Unknown(Reason),
}

/// A deadline that is cheap to ask about.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(pub Option<Instant>);

impl Deadline {
    /// Whether it has passed.
    pub fn passed(&self) -> bool {
        stop::late(self.0)
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

/// Final values of what a task observes, in its order.
pub type FinalState = Vec<i64>;
