//! Queries: what an engine is asked, in one form for all properties.

use std::time::Instant;

use super::execution::Execution;
use crate::litmus::Prop;
use crate::skeleton::Cond;
use crate::stop;

/// Find an execution such that …
#[derive(Clone, Debug)]
pub(crate) struct Query<'q> {
    /// … every thread runs to its end,
    pub(crate) complete: bool,
    /// … each proposition has the given truth (implies `complete`),
    pub(crate) props: Vec<(&'q Prop, bool)>,
    /// … one of these flags of the model is raised,
    pub(crate) flags: Option<Vec<usize>>,
    /// … this condition of the skeleton holds,
    pub(crate) require: Cond,
    /// … no access names memory that does not exist,
    pub(crate) no_fault: bool,
    /// … and these axioms of the model hold.
    pub(crate) axioms: Vec<bool>,
}

/// What came out of a query.
#[derive(Debug)]
pub(crate) enum Found {
    /// An execution.
    Yes(Box<Execution>),
    /// There is none.
    No,
    /// A limit was hit.
    Unknown(String),
}

/// A deadline that is cheap to ask about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(pub(crate) Option<Instant>);

impl Deadline {
    /// Whether it has passed.
    pub(crate) fn passed(&self) -> bool {
        stop::late(self.0)
    }

    /// Milliseconds left; `None`: no deadline.
    #[cfg(feature = "z3")]
    pub(crate) fn left_ms(&self) -> Option<u64> {
        if stop::requested().is_some() {
            return Some(0);
        }
        self.0.map(|d| d.saturating_duration_since(Instant::now()).as_millis() as u64)
    }
}

/// The reason for running out of time.
pub(crate) const TIMED_OUT: &str = "out of time";

/// Final values of what a task observes, in its order.
pub(crate) type FinalState = Vec<i64>;

/// An engine, prepared for one task.
pub(crate) trait Checker {
    /// Looks for one execution.
    fn find(&mut self, query: &Query<'_>, deadline: Deadline) -> Found;

    /// The final states of all executions that the query describes, sorted; or the reason for giving up, with those
    /// found so far.
    fn states(&mut self, query: &Query<'_>, deadline: Deadline) -> (Vec<FinalState>, Option<String>);
}
