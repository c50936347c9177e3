//! What the launch graph of a host program orders, as pairs of events.
//!
//! The order in which the calls of several host threads are issued is a free choice of the skeleton: each way to issue
//! them has a condition, of which exactly one holds.
//!
//! # Sources
//! - See [`crate::program::host`].

use super::barrier::Edges;
use super::pool::{Cond, Pool};
use super::{BuildError, Event};
use crate::program::Program;
use crate::program::host::{LaunchGraph, Launches};
use crate::rel::EventId;

/// What launches order.
#[derive(Default)]
pub(super) struct LaunchEdges {
    /// The base relation `launch`.
    pub(super) launch: Edges,
    /// The base relation `launch-fine`.
    pub(super) fine: Edges,
    /// The base relation `call-order`.
    pub(super) calls: Edges,
    /// Exactly one way is taken.
    pub(super) constraints: Vec<Cond>,
}

/// The pairs of events that launches order.
pub(super) fn edges(program: &Program, events: &[Event], pool: &mut Pool) -> Result<LaunchEdges, BuildError> {
    let mut result = LaunchEdges::default();
    if program.host.is_none() {
        return Ok(result);
    }
    let launches = Launches::of(program).map_err(|e| BuildError::TooManyOrders(e.to_string()))?;
    if launches.ways.is_empty() {
        let why = launches.stuck.map_or(String::new(), |(_, stuck)| stuck.brief(program));
        return Err(BuildError::Deadlock(why));
    }
    let ways: Vec<Cond> = match launches.ways.len() {
        1 => vec![Cond::TRUE],
        n => (0..n).map(|_| pool.fresh_choice()).collect(),
    };
    if ways.len() > 1 {
        result.constraints.push(pool.exactly(1, &ways));
    }
    let of_threads: Vec<usize> = (0..events.len()).filter(|&i| events[i].thread.is_some()).collect();
    let operations: Vec<_> =
        of_threads.iter().map(|&i| (events[i].thread.expect("of a thread"), events[i].instr)).collect();
    let tables = |of: &dyn Fn(&LaunchGraph) -> Vec<Vec<bool>>| launches.ways.iter().map(of).collect::<Vec<_>>();
    let lists = [
        (&mut result.launch, tables(&|way| way.ordered(&operations, false))),
        (&mut result.fine, tables(&|way| way.ordered(&operations, true))),
        (&mut result.calls, tables(&|way| way.called_before(&operations))),
    ];
    for (list, tables) in lists {
        for (a, &i) in of_threads.iter().enumerate() {
            for (b, &j) in of_threads.iter().enumerate() {
                let holds = tables.iter().filter(|table| table[a][b]).count();
                let mut cond = Cond::constant(holds == tables.len());
                if holds > 0 && cond == Cond::FALSE {
                    for (_, &way) in tables.iter().zip(&ways).filter(|(table, _)| table[a][b]) {
                        cond = pool.or(cond, way);
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
