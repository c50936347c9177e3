//! Queries: a host thread asks whether an event or the work of a stream is complete, and goes on
//! whatever the answer is.
//!
//! A query is no call: it stands in branches and loops, and may be asked again and again. What it
//! asks about is settled by the call of its own thread that it stands behind, and by those of other
//! threads that come first: what it finds between two of these is a [`View`]. In CUDA, the answer
//! that all is complete orders memory as the call that waits would; the answer that something is
//! not says that it was not complete at that time, and orders nothing. In OpenCL no answer orders
//! anything.
//!
//! # Invariants
//! - Each query has a view in every launch graph, and several only where calls of other threads
//!   change what it asks about.
//! # Sources
//! - CUDA runtime API, cudaEventQuery, cudaStreamQuery: "for the purposes of Unified Memory, a
//!   return value of cudaSuccess is equivalent to having called" the function that waits; an event
//!   that was never recorded is complete.
//! - OpenCL API specification, clGetEventInfo: not a synchronization point.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::touch::{self, About};
use super::{
    Asked, CallId, HandleId, HostOp, HostProgram, LaunchGraph, Need, Node, On, Query, QueryId, Ref,
};
use crate::{Op, Program, ThreadId};

impl HostProgram {
    /// The queries of a thread, each with the call that it stands behind.
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

    /// Calls of other threads that change what a query asks about.
    pub(super) fn changers(&self, id: QueryId) -> Vec<CallId> {
        let query = self.query(id);
        let about = self.asks_about(query);
        let changes = |c: &CallId| {
            self.call(*c).thread != query.thread && !self.changes(*c).is_disjoint(&about)
        };
        self.call_ids().filter(changes).collect()
    }

    /// What decides it. Which work a record captures depends on the order of calls, and each order
    /// has a graph of its own.
    fn asks_about(&self, query: &Query) -> BTreeSet<About> {
        match query.of {
            Asked::Lane(lane) => touch::of_lane(self, lane).collect(),
            Asked::Event(Ref::Handle(h)) => BTreeSet::from([About::Handle(h)]),
            Asked::Event(Ref::Command(_)) => BTreeSet::new(),
        }
    }

    /// What a query could ask about, and a call makes another.
    fn changes(&self, call: CallId) -> BTreeSet<About> {
        match self.call(call).op {
            HostOp::Enqueue { command, .. } => self
                .command(command)
                .lane
                .into_iter()
                .flat_map(|l| touch::of_lane(self, l))
                .collect(),
            HostOp::Record(h, lane) => touch::of_lane(self, lane)
                .chain([About::Handle(h)])
                .collect(),
            HostOp::LaneWait(lane, _) => touch::of_lane(self, lane).collect(),
            _ => BTreeSet::new(),
        }
    }
}

/// What a query finds if it is asked at a time at which just these calls of other threads have
/// changed it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// What has to be over so that all is complete.
    pub needs: Vec<Need>,
    /// The calls that have changed what it asks about.
    pub before: Vec<CallId>,
    /// Those that will.
    pub after: Vec<CallId>,
}

impl LaunchGraph {
    /// The views of all queries: of which query, and their number there.
    pub fn views(&self) -> Vec<(QueryId, usize)> {
        self.asked
            .iter()
            .flat_map(|(q, views)| (0..views.len()).map(|v| (*q, v)))
            .collect()
    }

    /// How many views a query has; none if it is never asked, as a call before it is not issued.
    pub fn views_of(&self, query: QueryId) -> usize {
        self.asked.get(&query).map_or(0, Vec::len)
    }

    /// A view of a query.
    pub fn view(&self, query: QueryId, number: usize) -> &View {
        &self.asked[&query][number]
    }

    /// Notes what a query finds that is asked now, after so many calls.
    pub(super) fn looks(&mut self, query: QueryId, needs: Vec<Need>, issued: usize) {
        let views = self.asked.entry(query).or_default();
        match views.last_mut() {
            // Calls between which nothing changes for it may be before or after.
            Some(last) if last.needs == needs => last.after = self.order[issued..].to_vec(),
            _ => {
                let (before, after) =
                    (self.order[..issued].to_vec(), self.order[issued..].to_vec());
                views.push(View {
                    needs,
                    before,
                    after,
                });
            }
        }
    }

    /// For each view, which operations come before the point at which what it asks about is
    /// complete, as far as memory is concerned.
    pub fn before_views(&self, operations: &[(ThreadId, usize)], fine: bool) -> Vec<Vec<bool>> {
        let mut known: HashMap<Node, HashSet<Node>> = HashMap::new();
        let views = self.views();
        let mut table = vec![Vec::with_capacity(operations.len()); views.len()];
        for operation in operations {
            let leaves = self.around(*operation).1;
            let reached = known
                .entry(leaves)
                .or_insert_with(|| self.reached(leaves, fine));
            for ((q, v), row) in views.iter().zip(&mut table) {
                row.push(reached.contains(&Node::Query(*q, *v)));
            }
        }
        table
    }

    /// For each view, which operations come after all that it asks about is complete.
    pub fn after_views(&self, operations: &[(ThreadId, usize)]) -> Vec<Vec<bool>> {
        let row = |after: Vec<HashSet<Node>>| {
            let enters = operations.iter().map(|o| self.around(*o).0);
            enters
                .map(|e| after.iter().all(|nodes| nodes.contains(&e)))
                .collect()
        };
        self.after_needs().map(row).collect()
    }

    /// For each view, the views in which no query can say that all is complete before all is that
    /// this one asks about.
    pub fn covered(&self) -> Vec<Vec<bool>> {
        let views = self.views();
        let row = |after: Vec<HashSet<Node>>| {
            let nodes = views.iter().map(|(q, v)| Node::Query(*q, *v));
            nodes
                .map(|node| after.iter().all(|reached| reached.contains(&node)))
                .collect()
        };
        self.after_needs().map(row).collect()
    }

    /// For each view, what comes after each thing that it needs.
    fn after_needs(&self) -> impl Iterator<Item = Vec<HashSet<Node>>> + '_ {
        let views = self.asked.values().flatten();
        views.map(|view| {
            view.needs
                .iter()
                .map(|need| self.reached(need.on.node(), true))
                .collect()
        })
    }

    /// Which operations come before a call, because of their thread's order or of other calls.
    pub fn before_call(&self, call: CallId, operations: &[(ThreadId, usize)]) -> Vec<bool> {
        let before = |o: &(ThreadId, usize)| {
            self.reached(self.around(*o).1, true)
                .contains(&Node::Call(call))
        };
        operations.iter().map(before).collect()
    }

    /// Which come after it.
    pub fn after_call(&self, call: CallId, operations: &[(ThreadId, usize)]) -> Vec<bool> {
        let reached = self.reached(Node::Return(call), true);
        operations
            .iter()
            .map(|o| reached.contains(&self.around(*o).0))
            .collect()
    }

    /// Whether a query cannot be asked in the one view, and after that another in the other one: a
    /// call that the first one comes after is the call that the second one comes before, or comes
    /// after that.
    pub fn comes_later(
        &self,
        host: &HostProgram,
        one: (QueryId, usize),
        other: (QueryId, usize),
    ) -> bool {
        let (one, other) = (self.view(one.0, one.1), self.view(other.0, other.1));
        let precedes = |y: CallId, x: CallId| {
            let own = host.call(x).thread == host.call(y).thread && y < x;
            x == y || own || self.first.binary_search(&(y, x)).is_ok()
        };
        one.before
            .iter()
            .any(|x| other.after.iter().any(|y| precedes(*y, *x)))
    }

    /// The threads that have to end before what a query asks about in a view is complete, and
    /// whether it ever can be: no call sets the user event that it asks about, say.
    pub fn awaited_by(
        &self,
        program: &Program,
        query: QueryId,
        view: usize,
    ) -> (Vec<ThreadId>, bool) {
        let host = program.host.as_deref().expect("a host program");
        let needs = |t: &ThreadId| {
            self.never(&[Node::Leave(*t)])
                .contains(&Node::Query(query, view))
        };
        let of_commands = |t: &ThreadId| host.command_of(*t).is_some();
        let threads = program
            .thread_ids()
            .filter(of_commands)
            .filter(needs)
            .collect();
        let set = |h: HandleId| host.calls.iter().any(|c| c.op == HostOp::SetUser(h));
        let ever = |need: &Need| !matches!(need.on, On::User(h) if !set(h));
        (threads, self.view(query, view).needs.iter().all(ever))
    }
}
