//! The orders in which the calls of several host threads can be issued, and what each of them makes
//! of the program.
//!
//! Where two threads enqueue on one lane, or one records an event that another waits for, the order
//! is free: each execution has one. Orders that come to the same are looked at once.
//!
//! # Invariants
//! - An order respects each thread's own, and that a command's event is known only after the
//!   command was enqueued.
//! - The first way is that of the threads in turn, if that is possible.
//! # Sources
//! - OpenCL API specification, *Host environment and thread safety*: calls may come from several
//!   threads at a time.

use std::collections::HashSet;

use thiserror::Error;

use super::graph::Effect;
use super::submission::{issued, known};
use super::{CallId, LaunchGraph, Stuck};
use crate::{Program, ThreadId};

/// At most so many orders of calls are looked at.
const MAX_ORDERS: usize = 5_000;

/// More orders of calls than anyone can look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("too many orders of calls: host threads can issue theirs in more than {MAX_ORDERS} ways")]
pub struct TooManyOrders;

/// What the host threads of a program can come to.
#[derive(Clone, Debug)]
pub struct Launches {
    /// The graphs of orders in which everything runs, each different from the others.
    pub ways: Vec<LaunchGraph>,
    /// An order in which something never runs, with the reason.
    pub stuck: Option<(LaunchGraph, Stuck)>,
}

impl Launches {
    /// All ways to issue the calls of a program that has a host part, or those that are given with
    /// it.
    ///
    /// # Errors
    /// If there are too many.
    pub fn of(program: &Program) -> Result<Launches, TooManyOrders> {
        let host = program.host.as_deref().expect("a host program");
        if let Some(orders) = &host.orders {
            let ways = orders
                .iter()
                .map(|order| LaunchGraph::untimed(program, order))
                .collect();
            return Ok(Launches { ways, stuck: None });
        }
        let mut search = Search {
            program,
            by_thread: by_thread(program),
            seen: HashSet::new(),
            orders: 0,
            found: Launches {
                ways: Vec::new(),
                stuck: None,
            },
        };
        let next = vec![0; search.by_thread.len()];
        search.from(next, &mut Vec::new())?;
        let mut found = search.found;
        if found.ways.is_empty() && found.stuck.is_none() {
            // No order respects all events: each thread waits to be told of an event of another.
            let order: Vec<CallId> = search.by_thread.concat();
            let graph = LaunchGraph::untimed(program, &order);
            found.stuck = graph.stuck_in(program, true).map(|stuck| (graph, stuck));
        }
        Ok(found)
    }

    /// The threads of the host.
    pub fn host_threads(program: &Program) -> impl Iterator<Item = ThreadId> + '_ {
        let host = program.host.as_deref();
        program
            .thread_ids()
            .filter(move |t| host.is_some_and(|h| h.command_of(*t).is_none()))
    }
}

/// The calls of each thread that makes some, in their order.
pub(super) fn by_thread(program: &Program) -> Vec<Vec<CallId>> {
    let host = program.host.as_deref().expect("a host program");
    // Calls are numbered in the order of the code of each thread.
    let mut by_thread: Vec<Vec<CallId>> = vec![Vec::new(); program.threads.len()];
    for id in host.call_ids() {
        by_thread[usize::from(host.call(id).thread.0)].push(id);
    }
    by_thread.retain(|calls| !calls.is_empty());
    by_thread
}

struct Search<'a> {
    program: &'a Program,
    by_thread: Vec<Vec<CallId>>,
    /// What orders came to.
    seen: HashSet<Effect>,
    orders: usize,
    found: Launches,
}

impl Search<'_> {
    fn from(&mut self, next: Vec<usize>, order: &mut Vec<CallId>) -> Result<(), TooManyOrders> {
        if next
            .iter()
            .zip(&self.by_thread)
            .all(|(n, calls)| *n == calls.len())
        {
            return self.take(order);
        }
        for t in 0..next.len() {
            let Some(&call) = self.by_thread[t].get(next[t]) else {
                continue;
            };
            if !known(self.program, call, order) {
                continue;
            }
            let mut after = next.clone();
            after[t] += 1;
            order.push(call);
            self.from(after, order)?;
            order.pop();
        }
        Ok(())
    }

    /// Whether what is stuck in an order is so in some run: without the calls that are never
    /// issued, because one before them does not return, too. Otherwise nobody issues the calls in
    /// that order.
    fn comes_about(&self, graph: &LaunchGraph, stuck: &Stuck, order: &[CallId]) -> bool {
        let (mut never, mut before) = (graph.never(&stuck.nodes()), order.to_vec());
        loop {
            let issued = issued(self.program, &never, &before);
            if issued.len() == before.len() {
                return true;
            }
            let less = LaunchGraph::untimed(self.program, &issued);
            let Some(still) = less.stuck(self.program) else {
                return false;
            };
            (never, before) = (less.never(&still.nodes()), issued);
        }
    }

    fn take(&mut self, order: &[CallId]) -> Result<(), TooManyOrders> {
        self.orders += 1;
        if self.orders > MAX_ORDERS {
            return Err(TooManyOrders);
        }
        let graph = LaunchGraph::new(self.program, order);
        if let Some(stuck) = graph.stuck(self.program) {
            if self.comes_about(&graph, &stuck, order) {
                self.found.stuck.get_or_insert((graph, stuck));
            }
            return Ok(());
        }
        // A thread that still waits issues no further call: such an order does not exist.
        if graph.stuck_in(self.program, true).is_some() || !self.seen.insert(graph.comes_to()) {
            return Ok(());
        }
        self.found.ways.push(graph);
        Ok(())
    }
}
