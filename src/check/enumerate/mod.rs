//! Candidate executions by explicit enumeration.
//!
//! A depth-first search over the choices that make a candidate, in this order: the source of a read that surely executes
//! at a known address; a choice of the skeleton; where a value depends on itself, the value; then the final write of
//! each observed cell, the pairs that an order must decide, and other pairs, until every axiom is sure. Guards, values
//! and addresses follow.
//!
//! # Invariants
//! - Complete: a branch is cut only when an axiom, a shape or the query fails in every completion of it, by the bounds
//!   of [`crate::algebra::bounds`].
//! - The search stops below a node as soon as every axiom holds in every completion; the open pairs of an order are
//!   then left out, which is a completion because the pairs kept are transitively closed.
//! # Sources
//! - Resolving read sources before paths: see the pitfalls of path enumeration in Kokologiannakis et al., GenMC.

mod orders;
mod search;

use super::query::{Checker, Deadline, FinalState, Found, Query};
use super::task::Task;
use search::{Goal, Search};

/// The enumerating engine.
pub(crate) struct Enumerate<'t, 'a> {
    task: &'t Task<'a>,
}

impl<'t, 'a> Enumerate<'t, 'a> {
    /// Prepares nothing.
    pub(crate) fn new(task: &'t Task<'a>) -> Self {
        Enumerate { task }
    }
}

impl Checker for Enumerate<'_, '_> {
    fn find(&mut self, query: &Query<'_>, deadline: Deadline) -> Found {
        let mut search = Search::new(self.task, query, Goal::One, deadline);
        match search.run() {
            Err(reason) => Found::Unknown(reason),
            Ok(()) => match search.found {
                Some(execution) => Found::Yes(Box::new(execution)),
                None => Found::No,
            },
        }
    }

    fn states(&mut self, query: &Query<'_>, deadline: Deadline) -> (Vec<FinalState>, Option<String>) {
        let mut search = Search::new(self.task, query, Goal::States, deadline);
        let reason = search.run().err();
        (search.states.into_iter().collect(), reason)
    }
}
