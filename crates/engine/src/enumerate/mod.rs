//! Enumerates candidate executions explicitly.
//!
//! The engine searches depth-first over the choices that make a candidate, in this order:
//! 1. the operation that comes next at a location ([`chains`]);
//! 2. the source of any other read that surely executes at a known address;
//! 3. a choice of the skeleton;
//! 4. a value that depends on itself;
//! 5. the final write of each observed cell;
//! 6. the pairs that an order must decide, and other pairs, until every axiom is sure.
//!
//! Guards, values and addresses follow from these.
//!
//! # Invariants
//! - The search is complete. It cuts a branch only if an axiom, a shape or the query fails in every
//!   completion, by the bounds of [`cat::algebra::bounds`]. It also cuts one if the remaining reads
//!   can only read their own results.
//! - The search stops below a node as soon as every axiom holds in every completion. It then leaves
//!   out the open pairs of an order. The result is a completion, because the kept pairs are
//!   transitively closed.
//!
//! # Sources
//! - Resolving read sources before paths: see the pitfalls of path enumeration in Kokologiannakis
//!   et al., GenMC.

mod candidate;
mod chains;
mod orders;
mod prune;
mod search;
mod settle;

use std::rc::Rc;

use super::facts::Facts;
use super::query::{Deadline, FinalState, Query, QueryResult};
use candidate::SearchStop;
pub(crate) use search::Patience;
use search::{CandidateSearch, SearchGoal};
use verdict::Reason;

/// The enumerating engine.
pub(crate) struct Enumerate<'a> {
    facts: Rc<Facts<'a>>,
}

impl<'a> Enumerate<'a> {
    /// Creates the engine; does no work yet.
    pub(crate) fn new(facts: &Rc<Facts<'a>>) -> Self {
        Enumerate {
            facts: facts.clone(),
        }
    }

    /// Looks for one execution; `None` when patience ends.
    pub(crate) fn find_within(
        &self,
        query: &Query<'_>,
        deadline: Deadline,
        patience: Option<Patience>,
    ) -> Option<QueryResult> {
        let mut search =
            CandidateSearch::new(&self.facts, query, SearchGoal::One, deadline, patience);
        let ended = search.run();
        match (ended, search.found) {
            (_, Some(execution)) => Some(QueryResult::Yes(Box::new(execution))),
            (Ok(()), None) => Some(QueryResult::No),
            (Err(SearchStop::Steps), None) => None,
            (Err(SearchStop::Values | SearchStop::Room), None) if patience.is_some() => None,
            (Err(SearchStop::Room), None) => Some(QueryResult::Unknown(Reason::TooManyOrders)),
            (Err(SearchStop::Values), None) => {
                Some(QueryResult::Unknown(Reason::TooManyValues(None)))
            }
            (Err(SearchStop::Time | SearchStop::Again), None) => {
                Some(QueryResult::Unknown(Reason::Time))
            }
        }
    }

    /// The final states of all executions that the query describes, sorted, and why the list is
    /// incomplete, if it is. `None` when patience ends.
    pub(crate) fn states_within(
        &self,
        query: &Query<'_>,
        deadline: Deadline,
        patience: Option<Patience>,
    ) -> Option<(Vec<FinalState>, Option<Reason>)> {
        let mut search =
            CandidateSearch::new(&self.facts, query, SearchGoal::States, deadline, patience);
        match search.run() {
            Err(SearchStop::Steps) => None,
            Err(SearchStop::Values | SearchStop::Room) if patience.is_some() => None,
            Err(SearchStop::Room) => Some((
                search.states.into_iter().collect(),
                Some(Reason::TooManyOrders),
            )),
            Err(SearchStop::Values) => Some((
                search.states.into_iter().collect(),
                Some(Reason::TooManyValues(None)),
            )),
            Err(SearchStop::Time | SearchStop::Again) => {
                Some((search.states.into_iter().collect(), Some(Reason::Time)))
            }
            Ok(()) => Some((search.states.into_iter().collect(), None)),
        }
    }

    /// As [`Enumerate::find_within`], with unlimited patience.
    pub(crate) fn find(&self, query: &Query<'_>, deadline: Deadline) -> QueryResult {
        self.find_within(query, deadline, None)
            .expect("patience is not limited")
    }

    /// As [`Enumerate::states_within`], with unlimited patience.
    pub(crate) fn states(
        &self,
        query: &Query<'_>,
        deadline: Deadline,
    ) -> (Vec<FinalState>, Option<Reason>) {
        self.states_within(query, deadline, None)
            .expect("patience is not limited")
    }
}

/// The number of steps of a search, and whether it ends.
#[cfg(test)]
pub(crate) fn steps(
    facts: &Facts<'_>,
    query: &Query<'_>,
    patience: Option<Patience>,
) -> (u64, bool) {
    let mut search = CandidateSearch::new(facts, query, SearchGoal::One, Deadline(None), patience);
    let ended = search.run().is_ok();
    (search.steps, ended)
}
