//! Turns the order of a host program's launch graph into pairs of events.
//!
//! The order in which several host threads issue calls is a free choice of the skeleton. Each
//! possible order has a condition, and exactly one of these holds. The order from queries depends
//! on their answers ([`super::answers`]).
//!
//! # Sources
//! - See [`program::host`].

use std::time::Instant;

use super::answers::Answers;
use crate::skeleton::graph::{EdgeKind, EdgeLists};
use crate::skeleton::pool::Cond;
use crate::skeleton::unrolling::unrolled::Unrolling;
use cat::rel::EventId;
use program::host::{LaunchGraph, LaunchOrders};
use program::{Program, ThreadId};
use verdict::Reason;

/// The pairs of events that launches order.
#[derive(Default)]
pub(crate) struct LaunchEdges {
    /// Pairs of events by kind.
    pub(crate) edges: EdgeLists,
    /// Exactly one order of calls holds, and the answers are possible ones.
    pub(crate) constraints: Vec<Cond>,
    /// By possible order of the calls ([`Launches::ways`]): the condition for that order.
    pub(crate) ways: Vec<Cond>,
}

/// A table by pairs of operations: the condition that the first comes before the second.
type Table = Vec<Vec<Cond>>;

/// The pairs of events that launches order.
pub(crate) fn edges(
    program: &Program,
    out: &mut Unrolling,
    deadline: Option<Instant>,
) -> Result<LaunchEdges, Reason> {
    let mut result = LaunchEdges::default();
    if program.host.is_none() {
        return Ok(result);
    }
    let launches = LaunchOrders::of(program).map_err(|e| Reason::Calls(e.to_string()))?;
    if launches.ways.is_empty() {
        let why = launches
            .stuck
            .map_or(String::new(), |(_, stuck)| stuck.brief(program));
        return Err(Reason::Deadlock(why));
    }
    let pool = &mut out.pool;
    let ways: Vec<Cond> = match launches.ways.len() {
        1 => vec![Cond::TRUE],
        n => (0..n).map(|_| pool.fresh_choice()).collect(),
    };
    if ways.len() > 1 {
        result.constraints.push(pool.exactly(1, &ways));
    }
    result.ways = ways.clone();
    let of_threads: Vec<usize> = (0..out.events.len())
        .filter(|&i| out.events[i].thread.is_some())
        .collect();
    let operations: Vec<(ThreadId, usize)> = of_threads
        .iter()
        .map(|&i| {
            (
                out.events[i].thread.expect("of a thread"),
                out.events[i].instr,
            )
        })
        .collect();
    let mut launch = tables(&launches, deadline, &|way| way.ordered(&operations, false))?;
    let mut fine = tables(&launches, deadline, &|way| way.ordered(&operations, true))?;
    let mut calls = tables(&launches, deadline, &|way| way.called_before(&operations))?;
    let dependents = tables(&launches, deadline, &|way| {
        way.dependents(program, &operations)
    })?;
    if !out.answers.is_empty() {
        for (w, way) in launches.ways.iter().enumerate() {
            let mut answers = Answers::new(program, out, way, &of_threads, &operations);
            answers.order(false, &mut launch[w]);
            answers.order(true, &mut fine[w]);
            answers.times(&mut calls[w]);
            let all = answers.constraints();
            result
                .constraints
                .extend(all.into_iter().map(|c| out.pool.implies(ways[w], c)));
        }
    }
    let kinds = [
        (EdgeKind::Launch, launch),
        (EdgeKind::LaunchFine, fine),
        (EdgeKind::CallOrder, calls),
        (EdgeKind::Dependents, dependents),
    ];
    for (kind, tables) in kinds {
        let list = result.edges.of_mut(kind);
        for (a, &i) in of_threads.iter().enumerate() {
            if a.is_multiple_of(64) && stop::late(deadline) {
                return Err(Reason::Time);
            }
            for (b, &j) in of_threads.iter().enumerate() {
                let mut conds = tables.iter().map(|table| table[a][b]);
                let mut cond = Cond::FALSE;
                if conds.clone().all(|c| c == Cond::TRUE) {
                    cond = Cond::TRUE;
                } else if conds.any(|c| c != Cond::FALSE) {
                    for (table, &way) in tables.iter().zip(&ways) {
                        let both = out.pool.and(way, table[a][b]);
                        cond = out.pool.or(cond, both);
                    }
                }
                if cond != Cond::FALSE {
                    list.push((EventId::new(i), EventId::new(j), cond));
                }
            }
        }
    }
    Ok(result)
}

/// A table for each possible order of the calls.
fn tables(
    launches: &LaunchOrders,
    deadline: Option<Instant>,
    of: &dyn Fn(&LaunchGraph) -> Vec<Vec<bool>>,
) -> Result<Vec<Table>, Reason> {
    launches
        .ways
        .iter()
        .map(|way: &LaunchGraph| {
            if stop::late(deadline) {
                Err(Reason::Time)
            } else {
                Ok(fixed(of(way)))
            }
        })
        .collect()
}

/// A table whose pairs are known.
fn fixed(table: Vec<Vec<bool>>) -> Table {
    table
        .into_iter()
        .map(|row| row.into_iter().map(Cond::constant).collect())
        .collect()
}
