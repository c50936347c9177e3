//! Reads an execution of a program as one of the changed program, which rejects it. The two differ
//! in little, so the cause of the difference is visible.
//!
//! The changed program has the events of the program, and perhaps more fences. If an order that the
//! model leaves free must relate the fences, or events that it did not relate before, their
//! possible places are tried.
//!
//! # Invariants
//! - Replay in the changed program confirmed each result.

use super::missing::pairing;
use super::telling;
use crate::knobs::Added;
use cat::rel::{EventSet, Rel};
use engine::eval::Eval;
use engine::execution::Execution;
use engine::facts::Facts;
use engine::replay;
use engine::replay::Replay;

/// The number of orders of events that are tried.
const MOST: usize = 256;

/// The number of rejected executions among which the most telling one is chosen.
const TOLD: usize = 8;

/// The execution in the changed program, if that rejects it, and an axiom that it breaks.
pub(crate) fn carried_over(
    facts: &Facts<'_>,
    added: &Added,
    changed: &Facts<'_>,
    execution: &Execution,
) -> Option<(Execution, Replay, usize)> {
    let start = start(facts, added, changed, execution)?;
    let mut candidates = vec![start.clone()];
    for (f, free) in changed.task.model.free.iter().enumerate() {
        let Some(covering) = free.covering else {
            continue;
        };
        let must = replay::declared(changed, &start, covering);
        let within = replay::declared(changed, &start, free.within);
        for x in start.executed.iter() {
            candidates = candidates
                .iter()
                .flat_map(|c| placed(c, f, x, &must, &within))
                .take(MOST)
                .collect();
        }
    }
    let replayed = candidates.into_iter().filter_map(|candidate| {
        let replayed = replay::replay(changed, &candidate).ok()?;
        (!replayed.rejected_by.is_empty()).then_some((candidate, replayed))
    });
    let mut rejected: Vec<(Execution, Replay)> = replayed.take(TOLD).collect();
    let (best, axiom) = telling(changed, rejected.iter(), |replayed| {
        replayed.rejected_by.clone()
    })?;
    let at = rejected.iter().position(|one| std::ptr::eq(one, best))?;
    let (execution, replayed) = rejected.swap_remove(at);
    Some((execution, replayed, axiom))
}

/// An execution that breaks some axioms, a wanted one among them; or the same with an event at
/// another place in an order that the model leaves free. The most telling one is chosen.
pub(crate) fn reordered(
    facts: &Facts<'_>,
    found: (Execution, Replay),
    axiom: usize,
) -> (Execution, Replay) {
    let (execution, broken) = (&found.0, found.1.rejected_by.clone());
    let mut others: Vec<Execution> = Vec::new();
    for (f, free) in facts.task.model.free.iter().enumerate() {
        let Some(covering) = free.covering else {
            continue;
        };
        let must = replay::declared(facts, execution, covering);
        let within = replay::declared(facts, execution, free.within);
        let order = &execution.free[f];
        for x in execution.executed.iter().filter(|x| {
            execution
                .executed
                .iter()
                .any(|y| order.has(*x, y) || order.has(y, *x))
        }) {
            let mut without = execution.clone();
            let rest = order.iter().filter(|(i, j)| *i != x && *j != x);
            without.free[f] = Rel::from_pairs(facts.sk.len(), rest);
            others.extend(placed(&without, f, x, &must, &within));
        }
    }
    let again = others.into_iter().take(MOST).filter_map(|other| {
        let replayed = replay::replay(facts, &other).ok()?;
        (replayed.rejected_by == broken).then_some((other, replayed))
    });
    let mut all = vec![found.clone()];
    all.extend(again.take(TOLD));
    match telling(facts, all.iter(), |_| vec![axiom]) {
        Some((best, _)) => best.clone(),
        None => found,
    }
}

/// The execution with fences that have no order yet.
fn start(
    facts: &Facts<'_>,
    added: &Added,
    changed: &Facts<'_>,
    from: &Execution,
) -> Option<Execution> {
    let event = pairing(facts, added, changed)?;
    let n = changed.sk.len();
    let mut place = vec![0; facts.sk.len()];
    event
        .iter()
        .enumerate()
        .for_each(|(e, i)| i.iter().for_each(|&i| place[i] = e));
    let rel = |r: &Rel| Rel::from_pairs(n, r.iter().map(|(i, j)| (place[i], place[j])));
    let mut execution = Execution {
        executed: EventSet::empty(n),
        reads: event
            .iter()
            .map(|i| i.and_then(|i| from.reads[i]))
            .collect(),
        choices: from.choices.clone(),
        free: from.free.iter().map(rel).collect(),
        finals: from.finals.iter().map(|&(c, w)| (c, place[w])).collect(),
    };
    // The reads and choices determine which events execute, the new ones, too.
    let known = execution.known();
    let mut eval = Eval::new(&changed.sk, &known);
    execution.executed =
        EventSet::from_fn(n, |e| eval.cond(changed.sk.event(e).guard) == Some(true));
    Some(execution)
}

/// The execution with event `x` ordered, in every way, among the events that must be ordered with
/// it.
pub(crate) fn placed(
    execution: &Execution,
    free: usize,
    x: usize,
    must: &Rel,
    within: &Rel,
) -> Vec<Execution> {
    let order = &execution.free[free];
    let mut others: Vec<usize> = execution
        .executed
        .iter()
        .filter(|&y| {
            y != x && (must.has(x, y) || must.has(y, x)) && !order.has(x, y) && !order.has(y, x)
        })
        .collect();
    if others.is_empty() {
        return vec![execution.clone()];
    }
    // The order is transitive: a later event has more before it.
    others.sort_by_key(|&y| {
        (
            execution
                .executed
                .iter()
                .filter(|&z| order.has(z, y))
                .count(),
            y,
        )
    });
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
