//! An execution of a program as one of the changed program, in which it is rejected: so little differs that what makes the
//! difference can be seen.
//!
//! The changed program has the events of the program, and perhaps some fences more. Where an order that the model leaves
//! free has to have pairs of them, or of events that were not in it before, the places that they can take are tried.
//!
//! # Invariants
//! - What is handed out was replayed in the changed program.

use super::missing::pairing;
use cat::rel::{EventSet, Rel};
use engine::execution::Execution;
use engine::replay;
use engine::replay::Replayed;
use engine::task::Task;
use program::edits::Edit;

/// At most so many ways to order events are tried.
const MOST: usize = 256;

/// The execution in the changed program, if that rejects it.
pub(crate) fn carried_over(
    task: &Task<'_>,
    edits: &[Edit],
    changed: &Task<'_>,
    execution: &Execution,
) -> Option<(Execution, Replayed)> {
    let start = start(task, edits, changed, execution)?;
    let mut candidates = vec![start.clone()];
    for (f, free) in changed.model.free.iter().enumerate() {
        let Some(covering) = free.covering else { continue };
        let must = replay::declared(changed, &start, covering);
        let within = replay::declared(changed, &start, free.within);
        for x in start.executed.iter() {
            candidates = candidates.iter().flat_map(|c| placed(c, f, x, &must, &within)).take(MOST).collect();
        }
    }
    candidates.into_iter().find_map(|candidate| {
        let replayed = replay::replay(changed, &candidate).ok()?;
        (!replayed.rejected_by.is_empty()).then_some((candidate, replayed))
    })
}

/// The execution with fences that are in no order yet.
fn start(task: &Task<'_>, edits: &[Edit], changed: &Task<'_>, from: &Execution) -> Option<Execution> {
    let event = pairing(task, edits, changed)?;
    let n = changed.sk.len();
    let mut place = vec![0; task.sk.len()];
    event.iter().enumerate().for_each(|(e, i)| i.iter().for_each(|&i| place[i] = e));
    let mut executed = EventSet::empty(n);
    let mut reads = vec![None; n];
    for e in 0..n {
        // A fence executes if that does which it stands in front of.
        let Some(i) = event[e..].iter().find_map(|i| *i) else { continue };
        if from.executed.has(i) {
            executed.insert(e);
        }
        reads[e] = event[e].and_then(|i| from.reads[i]);
    }
    let rel = |r: &Rel| Rel::from_pairs(n, r.iter().map(|(i, j)| (place[i], place[j])));
    Some(Execution {
        executed,
        reads,
        choices: from.choices.clone(),
        free: from.free.iter().map(rel).collect(),
        finals: from.finals.iter().map(|&(c, w)| (c, place[w])).collect(),
    })
}

/// The execution with the event `x` ordered among those that it has to be ordered with, in every way.
fn placed(execution: &Execution, free: usize, x: usize, must: &Rel, within: &Rel) -> Vec<Execution> {
    let order = &execution.free[free];
    let open = |&y: &usize| y != x && (must.has(x, y) || must.has(y, x)) && !order.has(x, y) && !order.has(y, x);
    let mut others: Vec<usize> = execution.executed.iter().filter(open).collect();
    if others.is_empty() {
        return vec![execution.clone()];
    }
    // The order is transitive: what comes later has more before it.
    others.sort_by_key(|&y| (execution.executed.iter().filter(|&z| order.has(z, y)).count(), y));
    let ways = (0..=others.len()).rev().map(|at| {
        let mut order = order.clone();
        for (i, &y) in others.iter().enumerate() {
            let (a, b) = if i < at { (y, x) } else { (x, y) };
            order.insert(a, b);
        }
        order.plus(&execution.executed).and(within)
    });
    let good = ways.filter(|order| !order.has_cycle(&execution.executed));
    good.map(|order| {
        let mut placed = execution.clone();
        placed.free[free] = order;
        placed
    })
    .collect()
}
