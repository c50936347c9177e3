//! The effect of the host threads' calls if some points are never reached.
//!
//! A blocked thread issues no further call, and a call that is not issued blocks no other thread:
//! later work on its lane does not wait for it. So the blocked threads and the issued calls depend
//! on each other.
//!
//! # Invariants
//! - Exactly the calls that the unreached points block are not issued.
//! - Every possible order of calls is examined, equivalent ones once.
//! # Sources
//! - OpenCL API specification, *Host environment and thread safety*; *Flush and Finish*, for
//!   submission.

use std::collections::{BTreeSet, HashSet};

use petgraph::algo::tarjan_scc;
use thiserror::Error;

use super::graph::Effect;
use super::orders::by_thread;
use super::submission::{known, queued, submitted};
use super::{CallId, CommandId, HandleId, HostOp, LaunchGraph, LaunchNode, Mask, TooManyOrders};
use crate::Program;

/// The limit on sequences of calls examined for one set of points.
const MAX_SEQUENCES: usize = 2_000;

/// The reasons why the effect of the calls is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnclearEffect {
    /// There are too many orders.
    #[error(transparent)]
    TooManyOrders(#[from] TooManyOrders),
    /// Waits in some order form a cycle.
    #[error("threads loop or wait forever, and in some order of calls the calls wait in a circle")]
    Circle,
    /// Several calls set a user event.
    #[error("threads loop or wait forever, and one of several calls that set `{0}` is not issued")]
    SetTwice(String),
}

/// The effect of one order of calls, up to the last calls issued.
#[derive(Clone, Debug)]
pub struct PartialLaunch {
    /// The graph of the issued calls. It contains the enqueued commands, also those that none of
    /// these calls submits.
    pub graph: LaunchGraph,
    /// The points that are never reached.
    pub never: BTreeSet<LaunchNode>,
}

impl PartialLaunch {
    /// The commands of host queues that no call submits, enqueued or not.
    pub fn idle(&self, program: &Program) -> Vec<CommandId> {
        let host = program.host.as_deref().expect("a host program");
        let all: Vec<CallId> = host.call_ids().collect();
        let submitted = submitted(program, &self.graph.order);
        queued(program, &all)
            .filter(|c| !submitted.contains(c))
            .collect()
    }

    /// All possible effects if these points are never reached and all points that they do not block
    /// are reached. The program must have a host part.
    ///
    /// # Errors
    /// If the effect is unknown.
    pub fn all(
        program: &Program,
        stops: &[LaunchNode],
    ) -> Result<Vec<PartialLaunch>, UnclearEffect> {
        let by_thread = by_thread(program);
        let next = vec![0; by_thread.len()];
        let seen = HashSet::new();
        let mut search = PartialSearch {
            program,
            stops,
            by_thread,
            seen,
            taken: HashSet::new(),
            found: Vec::new(),
        };
        search.from(next, &mut Vec::new())?;
        Ok(search.found)
    }
}

struct PartialSearch<'a> {
    program: &'a Program,
    stops: &'a [LaunchNode],
    by_thread: Vec<Vec<CallId>>,
    /// The number of issued calls of each thread, with their effect.
    seen: HashSet<(Vec<usize>, Effect)>,
    /// The issued calls, with their effect.
    taken: HashSet<(Vec<CallId>, Effect)>,
    found: Vec<PartialLaunch>,
}

impl PartialSearch<'_> {
    fn from(&mut self, next: Vec<usize>, order: &mut Vec<CallId>) -> Result<(), UnclearEffect> {
        let graph = LaunchGraph::untimed(self.program, order);
        if !self.seen.insert((next.clone(), graph.comes_to())) {
            return Ok(());
        }
        if self.seen.len() > MAX_SEQUENCES {
            return Err(TooManyOrders.into());
        }
        let never = graph.never(self.stops);
        let mut is_last = true;
        for t in 0..next.len() {
            let Some(&call) = self.by_thread[t].get(next[t]) else {
                continue;
            };
            if never.contains(&LaunchNode::Call(call)) || !known(self.program, call, order) {
                continue;
            }
            is_last = false;
            let mut after = next.clone();
            after[t] += 1;
            order.push(call);
            self.from(after, order)?;
            order.pop();
        }
        if is_last { self.take(graph) } else { Ok(()) }
    }

    /// Accepts an order after which no further call is issued. It drops the calls behind a cycle of
    /// waits, which are not issued either.
    fn take(&mut self, mut graph: LaunchGraph) -> Result<(), UnclearEffect> {
        loop {
            let circle = circular(&graph, &[]);
            let never = graph.never(&[self.stops, circle.as_slice()].concat());
            let come: Vec<CallId> = graph
                .order
                .iter()
                .copied()
                .filter(|c| !never.contains(&LaunchNode::Call(*c)))
                .collect();
            if come.len() < graph.order.len() {
                graph = LaunchGraph::untimed(self.program, &come);
            } else if circle.is_empty() {
                break;
            } else {
                return Err(UnclearEffect::Circle);
            }
        }
        let host = self.program.host.as_deref().expect("a host program");
        let never = graph.never(self.stops);
        fn held(c: &CallId, never: &BTreeSet<LaunchNode>) -> bool {
            never.contains(&LaunchNode::Call(*c))
        }
        // No run stops here if some thread can continue, or if a call comes before one that it has
        // to wait for.
        let goes_on = host
            .call_ids()
            .any(|c| !graph.order.contains(&c) && !held(&c, &never));
        if goes_on || !circular(&graph, &graph.first).is_empty() {
            return Ok(());
        }
        for h in (0..host.handles.len() as u16).map(HandleId) {
            let mut sets = host
                .call_ids()
                .filter(|c| host.call(*c).op == HostOp::SetUser(h));
            if never.contains(&LaunchNode::User(h)) && sets.any(|c| !held(&c, &never)) {
                return Err(UnclearEffect::SetTwice(host.handle(h).name.clone()));
            }
        }
        let mut issued = graph.order.clone();
        issued.sort_unstable();
        if self.taken.insert((issued, graph.comes_to())) {
            let submitted = submitted(self.program, &graph.order);
            let waiting = queued(self.program, &graph.order).filter(|c| !submitted.contains(c));
            graph.unsubmitted = waiting.collect();
            self.found.push(PartialLaunch { graph, never });
        }
        Ok(())
    }
}

/// The points that wait for each other in a cycle, given the order of these pairs of calls.
fn circular(graph: &LaunchGraph, first: &[(CallId, CallId)]) -> Vec<LaunchNode> {
    let mut timed = graph.graph.clone();
    for &(a, b) in first {
        if let (Some(&a), Some(&b)) = (
            graph.index.get(&LaunchNode::Call(a)),
            graph.index.get(&LaunchNode::Call(b)),
        ) {
            let edge = super::LaunchEdge {
                rule: None,
                mask: Mask::Time,
            };
            timed.add_edge(a, b, edge);
        }
    }
    let parts = tarjan_scc(&timed).into_iter().filter(|part| part.len() > 1);
    parts.flatten().map(|at| timed[at]).collect()
}
