//! Candidate executions by explicit enumeration.
//!
//! A depth-first search over the choices that make a candidate, in this order: which operation
//! comes next at a location ([`chains`]); the source of any other read that surely executes at a
//! known address; a choice of the skeleton; where a value depends on itself, the value; then the
//! final write of each observed cell, the pairs that an order must decide, and other pairs, until
//! every axiom is sure. Guards, values and addresses follow.
//!
//! # Invariants
//! - Complete: a branch is cut only when an axiom, a shape or the query fails in every completion
//!   of it, by the bounds of [`cat::algebra::bounds`], or because reads are left that can only read
//!   what they make themselves.
//! - The search stops below a node as soon as every axiom holds in every completion; the open pairs
//!   of an order are then left out, which is a completion because the pairs kept are transitively
//!   closed.
//! # Sources
//! - Resolving read sources before paths: see the pitfalls of path enumeration in Kokologiannakis
//!   et al., GenMC.

mod chains;
mod orders;
mod prune;
mod search;
mod settle;

use std::rc::Rc;

use super::query::{Deadline, FinalState, Found, Query};
use super::task::Task;
pub(crate) use search::Patience;
use search::{Goal, Search, Stop};
use verdict::Reason;

/// The enumerating engine.
pub(crate) struct Enumerate<'a> {
    task: Rc<Task<'a>>,
}

impl<'a> Enumerate<'a> {
    /// Prepares nothing.
    pub(crate) fn new(task: &Rc<Task<'a>>) -> Self {
        Enumerate { task: task.clone() }
    }

    /// Looks for one execution; `None` when patience is over.
    pub(crate) fn find_within(
        &self,
        query: &Query<'_>,
        deadline: Deadline,
        patience: Option<Patience>,
    ) -> Option<Found> {
        let mut search = Search::new(&self.task, query, Goal::One, deadline, patience);
        let ended = search.run();
        match (ended, search.found) {
            (_, Some(execution)) => Some(Found::Yes(Box::new(execution))),
            (Ok(()), None) => Some(Found::No),
            (Err(Stop::Steps), None) => None,
            (Err(Stop::Values | Stop::Room), None) if patience.is_some() => None,
            (Err(Stop::Room), None) => Some(Found::Unknown(Reason::TooManyOrders)),
            (Err(Stop::Values), None) => Some(Found::Unknown(Reason::TooManyValues(None))),
            (Err(Stop::Time | Stop::Again), None) => Some(Found::Unknown(Reason::Time)),
        }
    }

    /// The final states of all executions that the query describes, sorted; or the reason for
    /// giving up, with those found so far. `None` when patience is over.
    pub(crate) fn states_within(
        &self,
        query: &Query<'_>,
        deadline: Deadline,
        patience: Option<Patience>,
    ) -> Option<(Vec<FinalState>, Option<Reason>)> {
        let mut search = Search::new(&self.task, query, Goal::States, deadline, patience);
        match search.run() {
            Err(Stop::Steps) => None,
            Err(Stop::Values | Stop::Room) if patience.is_some() => None,
            Err(Stop::Room) => Some((
                search.states.into_iter().collect(),
                Some(Reason::TooManyOrders),
            )),
            Err(Stop::Values) => Some((
                search.states.into_iter().collect(),
                Some(Reason::TooManyValues(None)),
            )),
            Err(Stop::Time | Stop::Again) => {
                Some((search.states.into_iter().collect(), Some(Reason::Time)))
            }
            Ok(()) => Some((search.states.into_iter().collect(), None)),
        }
    }

    /// As [`Enumerate::find_within`], with patience without end.
    pub(crate) fn find(&self, query: &Query<'_>, deadline: Deadline) -> Found {
        self.find_within(query, deadline, None)
            .expect("patience is not limited")
    }

    /// As [`Enumerate::states_within`], with patience without end.
    pub(crate) fn states(
        &self,
        query: &Query<'_>,
        deadline: Deadline,
    ) -> (Vec<FinalState>, Option<Reason>) {
        self.states_within(query, deadline, None)
            .expect("patience is not limited")
    }
}

/// How many steps a search takes, and whether it comes to an end.
#[cfg(test)]
pub(crate) fn steps(task: &Task<'_>, query: &Query<'_>, patience: Option<Patience>) -> (u64, bool) {
    let mut search = Search::new(task, query, Goal::One, Deadline(None), patience);
    let ended = search.run().is_ok();
    (search.steps, ended)
}
