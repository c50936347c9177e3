//! The possible orders of the calls of several host threads, and the launch graph of each.
//!
//! Two threads may enqueue on one lane, or one may record an event that another waits for. Then
//! each execution has its order of these calls. Equivalent orders are examined once.
//!
//! # Invariants
//! - An order respects the order within each thread. A call uses a command's event only after the
//!   command was enqueued.
//! - The first way takes the threads in turn, if that is possible.
//! # Sources
//! - OpenCL API specification, *Host environment and thread safety*: calls may come from several
//!   threads at a time.

use std::collections::HashSet;

use thiserror::Error;

use super::graph::Effect;
use super::submission::{issued, known};
use super::{CallId, LaunchGraph, StuckWait};
use crate::{Program, ThreadId};

/// The limit on examined orders of calls.
const MAX_ORDERS: usize = 5_000;

/// The number of orders of calls exceeds the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("too many orders of calls: host threads can issue theirs in more than {MAX_ORDERS} ways")]
pub struct TooManyOrders;

/// The possible launches of a program.
#[derive(Clone, Debug)]
pub struct LaunchOrders {
    /// The different graphs of the orders in which everything runs.
    pub ways: Vec<LaunchGraph>,
    /// An order in which a part never runs, with the reason.
    pub stuck: Option<(LaunchGraph, StuckWait)>,
}

impl LaunchOrders {
    /// All ways to issue the calls of a program with a host part, or the ways that the program
    /// lists.
    ///
    /// # Errors
    /// If there are too many orders.
    pub fn of(program: &Program) -> Result<LaunchOrders, TooManyOrders> {
        let host = program.host.as_deref().expect("a host program");
        if let Some(orders) = &host.orders {
            let ways = orders
                .iter()
                .map(|order| LaunchGraph::untimed(program, order))
                .collect();
            return Ok(LaunchOrders { ways, stuck: None });
        }
        let mut search = OrderSearch {
            program,
            by_thread: by_thread(program),
            seen: HashSet::new(),
            orders: 0,
            found: LaunchOrders {
                ways: Vec::new(),
                stuck: None,
            },
        };
        let next = vec![0; search.by_thread.len()];
        search.from(next, &mut Vec::new())?;
        let mut found = search.found;
        if found.ways.is_empty() && found.stuck.is_none() {
            // No order respects all events: each thread waits for an event that another thread
            // makes.
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

/// The calls of each thread that has calls, in program order.
pub(super) fn by_thread(program: &Program) -> Vec<Vec<CallId>> {
    let host = program.host.as_deref().expect("a host program");
    // Calls are numbered in program order within each thread.
    let mut by_thread: Vec<Vec<CallId>> = vec![Vec::new(); program.threads.len()];
    for id in host.call_ids() {
        by_thread[usize::from(host.call(id).thread.0)].push(id);
    }
    by_thread.retain(|calls| !calls.is_empty());
    by_thread
}

struct OrderSearch<'a> {
    program: &'a Program,
    by_thread: Vec<Vec<CallId>>,
    /// The effects of the orders examined.
    seen: HashSet<Effect>,
    orders: usize,
    found: LaunchOrders,
}

impl OrderSearch<'_> {
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

    /// Whether some run gets stuck like this order does. Calls after a call that never returns are
    /// not issued, so the check repeats without them. If the check fails, no run issues the calls
    /// in this order.
    fn comes_about(&self, graph: &LaunchGraph, stuck: &StuckWait, order: &[CallId]) -> bool {
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
        // A waiting thread issues no further call, so no run has such an order.
        if graph.stuck_in(self.program, true).is_some() || !self.seen.insert(graph.comes_to()) {
            return Ok(());
        }
        self.found.ways.push(graph);
        Ok(())
    }
}
