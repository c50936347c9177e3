//! Queries: a host thread queries whether an event or the work of a stream is complete, and
//! continues in either case.
//!
//! A query is no call: it may be in branches and loops, and may execute repeatedly. Two things
//! determine its subject: the last call of its thread before it, and the calls of other threads
//! issued so far. A [`QueryView`] is the state between two of these calls. In CUDA, the answer
//! "complete" orders memory like the waiting call. The answer "not complete" states a fact about
//! that time and orders nothing. In OpenCL no answer orders memory.
//!
//! # Invariants
//! - Each query has a view in every launch graph. It has several only if calls of other threads
//!   change its subject.
//! # Sources
//! - CUDA runtime API, cudaEventQuery, cudaStreamQuery: "for the purposes of Unified Memory, a
//!   return value of cudaSuccess is equivalent to having called" the function that waits; an event
//!   that was never recorded is complete.
//! - OpenCL API specification, clGetEventInfo: not a synchronization point.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::touch::{self, CallTopic};
use super::{
    CallId, HostOp, HostProgram, HostQuery, LaunchGraph, LaunchNode, On, QueryId, QuerySubject,
    Ref, StartCondition,
};
use crate::{Op, Program, ThreadId};

impl HostProgram {
    /// The queries of a thread, each with the last call before it.
    pub(super) fn placed_queries(
        program: &Program,
        thread: ThreadId,
    ) -> Vec<(QueryId, Option<CallId>)> {
        let mut last = None;
        let mut found = Vec::new();
        for instr in &program.thread(thread).code {
            match instr.op {
                Op::Call(call) => last = Some(call),
                Op::Status { of, .. } => found.push((of, last)),
                _ => {}
            }
        }
        found
    }

    /// The calls of other threads that change the subject of a query.
    pub(super) fn changers(&self, id: QueryId) -> Vec<CallId> {
        let query = self.query(id);
        let about = self.asks_about(query);
        self.call_ids()
            .filter(|c| {
                self.call(*c).thread != query.thread && !self.changes(*c).is_disjoint(&about)
            })
            .collect()
    }

    /// The objects that determine the answer. The work that a record captures depends on the order
    /// of calls, and each order has its own graph.
    fn asks_about(&self, query: &HostQuery) -> BTreeSet<CallTopic> {
        match query.of {
            QuerySubject::Lane(lane) => touch::of_lane(self, lane).collect(),
            QuerySubject::Event(Ref::Handle(h)) => BTreeSet::from([CallTopic::Handle(h)]),
            QuerySubject::Event(Ref::Command(_)) => BTreeSet::new(),
        }
    }

    /// The objects whose state a call changes for later queries.
    fn changes(&self, call: CallId) -> BTreeSet<CallTopic> {
        match self.call(call).op {
            HostOp::Enqueue { command, .. } => self
                .command(command)
                .lane
                .into_iter()
                .flat_map(|l| touch::of_lane(self, l))
                .collect(),
            HostOp::Record(h, lane) => touch::of_lane(self, lane)
                .chain([CallTopic::Handle(h)])
                .collect(),
            HostOp::LaneWait(lane, _) => touch::of_lane(self, lane).collect(),
            _ => BTreeSet::new(),
        }
    }
}

/// The state of a query's subject after exactly these calls of other threads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueryView {
    /// The conditions for the answer "complete".
    pub needs: Vec<StartCondition>,
    /// The calls that have changed the subject.
    pub before: Vec<CallId>,
    /// The calls that will change it later.
    pub after: Vec<CallId>,
}

impl LaunchGraph {
    /// The views of all queries, each as a query and a number.
    pub fn views(&self) -> Vec<(QueryId, usize)> {
        self.asked
            .iter()
            .flat_map(|(q, views)| (0..views.len()).map(|v| (*q, v)))
            .collect()
    }

    /// The number of views of a query; none if the query never executes, because a call before it
    /// is not issued.
    pub fn views_of(&self, query: QueryId) -> usize {
        self.asked.get(&query).map_or(0, Vec::len)
    }

    /// A view of a query.
    pub fn view(&self, query: QueryId, number: usize) -> &QueryView {
        &self.asked[&query][number]
    }

    /// Records the view of a query at this time, after the first `issued` calls.
    pub(super) fn looks(&mut self, query: QueryId, needs: Vec<StartCondition>, issued: usize) {
        let views = self.asked.entry(query).or_default();
        match views.last_mut() {
            // Calls that do not change the needs may come before or after.
            Some(last) if last.needs == needs => last.after = self.order[issued..].to_vec(),
            _ => {
                let (before, after) =
                    (self.order[..issued].to_vec(), self.order[issued..].to_vec());
                views.push(QueryView {
                    needs,
                    before,
                    after,
                });
            }
        }
    }

    /// For each view, which operations precede the completion of its subject in memory order.
    pub fn before_views(&self, operations: &[(ThreadId, usize)], fine: bool) -> Vec<Vec<bool>> {
        let mut known: HashMap<LaunchNode, HashSet<LaunchNode>> = HashMap::new();
        let views = self.views();
        let mut table = vec![Vec::with_capacity(operations.len()); views.len()];
        for operation in operations {
            let leaves = self.around(*operation).1;
            let reached = known
                .entry(leaves)
                .or_insert_with(|| self.reached(leaves, fine));
            for ((q, v), row) in views.iter().zip(&mut table) {
                row.push(reached.contains(&LaunchNode::Query(*q, *v)));
            }
        }
        table
    }

    /// For each view, which operations follow the completion of its whole subject.
    pub fn after_views(&self, operations: &[(ThreadId, usize)]) -> Vec<Vec<bool>> {
        self.after_needs()
            .map(|after| {
                let enters = operations.iter().map(|o| self.around(*o).0);
                enters
                    .map(|e| after.iter().all(|nodes| nodes.contains(&e)))
                    .collect()
            })
            .collect()
    }

    /// For each view, the views whose query can answer "complete" only after this view's subject is
    /// complete.
    pub fn covered(&self) -> Vec<Vec<bool>> {
        let views = self.views();
        self.after_needs()
            .map(|after| {
                let nodes = views.iter().map(|(q, v)| LaunchNode::Query(*q, *v));
                nodes
                    .map(|node| after.iter().all(|reached| reached.contains(&node)))
                    .collect()
            })
            .collect()
    }

    /// For each view, the nodes after each of its needs.
    fn after_needs(&self) -> impl Iterator<Item = Vec<HashSet<LaunchNode>>> + '_ {
        let views = self.asked.values().flatten();
        views.map(|view| {
            view.needs
                .iter()
                .map(|need| self.reached(need.on.node(), true))
                .collect()
        })
    }

    /// Which operations come before a call, by thread order or through other calls.
    pub fn before_call(&self, call: CallId, operations: &[(ThreadId, usize)]) -> Vec<bool> {
        operations
            .iter()
            .map(|o| {
                self.reached(self.around(*o).1, true)
                    .contains(&LaunchNode::Call(call))
            })
            .collect()
    }

    /// Which operations come after a call.
    pub fn after_call(&self, call: CallId, operations: &[(ThreadId, usize)]) -> Vec<bool> {
        let reached = self.reached(LaunchNode::Return(call), true);
        operations
            .iter()
            .map(|o| reached.contains(&self.around(*o).0))
            .collect()
    }

    /// Whether the view `other` cannot come after the view `one` in time: some call that `one`
    /// follows is a call that `other` precedes, or comes later than such a call.
    pub fn comes_later(
        &self,
        host: &HostProgram,
        one: (QueryId, usize),
        other: (QueryId, usize),
    ) -> bool {
        let (one, other) = (self.view(one.0, one.1), self.view(other.0, other.1));
        one.before.iter().any(|x| {
            other.after.iter().any(|y| {
                let own = host.call(*x).thread == host.call(*y).thread && *y < *x;
                *x == *y || own || self.first.binary_search(&(*y, *x)).is_ok()
            })
        })
    }

    /// The threads that have to end before a view's subject is complete, and whether it can ever be
    /// complete. A user event that no call sets never is.
    pub fn awaited_by(
        &self,
        program: &Program,
        query: QueryId,
        view: usize,
    ) -> (Vec<ThreadId>, bool) {
        let host = program.host.as_deref().expect("a host program");
        let threads = program
            .thread_ids()
            .filter(|t| host.command_of(*t).is_some())
            .filter(|t| {
                self.never(&[LaunchNode::Leave(*t)])
                    .contains(&LaunchNode::Query(query, view))
            })
            .collect();
        (
            threads,
            self.view(query, view)
                .needs
                .iter()
                .all(|need| match need.on {
                    On::User(h) => host.calls.iter().any(|c| c.op == HostOp::SetUser(h)),
                    _ => true,
                }),
        )
    }
}
