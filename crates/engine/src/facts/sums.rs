//! Replaces the partial sums that atomics write to one location by the whole sum, if nothing else
//! reads the partial ones.
//!
//! The atomics write one value for each partial sum of their operands, but a read behind all of
//! them sees one value. To keep domains small, each of these writes gets the value of the whole sum
//! ([`Domains::seen`]). It is the value of the last write. Only atomics that add to the sum read
//! the others, and nothing depends on what these atomics return.
//!
//! # Invariants
//! - The known axioms exclude every execution with another value. Coherence is total on these
//!   writes, and each atomic reads the write directly before its own. Any other read of one of them
//!   comes before none of them.
//! - An execution that leaves the engines has the values that these atomics really return
//!   ([`settled`]).

use std::collections::BTreeMap;
use std::time::Instant;

use rustc_hash::FxHashMap;

use super::Facts;
use super::bounds::TaskBounds;
use super::excluded::Exclusion;
use super::implied::{Halves, Implied, Sum};
use super::listing::Listing;
use crate::eval::Eval;
use crate::execution::Execution;
use crate::skeleton::domain::Domains;
use crate::skeleton::pool::{Term, TermId};
use crate::skeleton::{Cond, Skeleton, TermPool};
use crate::task::Task;
use program::BinOp;
use program::litmus::{LitmusTest, observables};
use program::memory::CellId;
use verdict::InstrPlace;

/// The number of values of atomics' writes from which sums are worthwhile.
const MANY_VALUES: usize = 64;

impl Sum {
    /// The instruction of one of the atomics.
    pub(crate) fn place(&self, sk: &Skeleton) -> Option<InstrPlace> {
        sk.place(self.members[0].1)
    }

    /// Gives the write of each atomic the value of the location behind all of them.
    pub(crate) fn seen(&self, sk: &mut Skeleton) -> Vec<(usize, TermId)> {
        let mut sum = sk.events[self.start].value.expect("writes have values");
        for &(r, w) in &self.members {
            if let Some(AtomicChange::By(op, operand)) = added(sk, r, w) {
                let (ty, guard) = (sk.events[w].ty, sk.events[w].guard);
                let more = sk.pool.bin(op, ty, sum, operand);
                sum = sk.pool.ite(guard, more, sum);
            }
        }
        self.members.iter().map(|&(_, w)| (w, sum)).collect()
    }
}

/// How an atomic changes the value that it reads.
enum AtomicChange {
    /// It leaves the value unchanged.
    Nothing,
    /// The operator and the other operand; the operands of several may come in any order.
    By(BinOp, TermId),
}

fn added(sk: &Skeleton, r: usize, w: usize) -> Option<AtomicChange> {
    let (read, value) = (sk.events[r].value?, sk.events[w].value?);
    match sk.pool.term(value) {
        _ if value == read => Some(AtomicChange::Nothing),
        Term::Cast(_, a) if a == read => Some(AtomicChange::Nothing),
        Term::Bin(op, ty, a, b) if op.is_free_of_order() && ty == sk.events[w].ty => {
            match (a == read, b == read) {
                (true, false) => Some(AtomicChange::By(op, b)),
                (false, true) => Some(AtomicChange::By(op, a)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Atomics that add to one cell.
#[derive(Default)]
struct Adders {
    /// The operation, and whether it is signed, after the first atomic.
    operation: Option<(BinOp, bool)>,
    /// Whether the atomics use different operations.
    differ: bool,
    members: Vec<Halves>,
}

/// Atomics that may be parts of sums, by cell: only their own writes depend on the values that they
/// return.
fn candidates(test: &LitmusTest, sk: &Skeleton, domains: &Domains) -> Vec<Vec<Halves>> {
    let halves = sk.rmw.iter().map(|&(r, w)| (r.index(), w.index()));
    let found: FxHashMap<usize, (usize, CellId, AtomicChange)> = halves
        .filter_map(|(r, w)| {
            let at = domains.surely_at(sk, w);
            let cell = at.filter(|_| domains.surely_at(sk, r) == at)?;
            Some((
                w,
                (
                    r,
                    cell,
                    added(sk, r, w).filter(|_| sk.events[w].parts == 1)?,
                ),
            ))
        })
        .collect();
    let (conds, mut open) = sk.decisive();
    open.extend(conds.into_iter().flat_map(|cond| sk.pool.compared(cond)));
    let written = (0..sk.len()).filter(|&e| sk.events[e].is_write());
    open.extend(written.filter_map(|w| match found.get(&w) {
        Some((.., AtomicChange::By(_, operand))) => Some(*operand),
        Some((.., AtomicChange::Nothing)) => None,
        None => sk.events[w].value,
    }));
    let asked = [test.observables(), observables(&test.filter, &[])].concat();
    open.extend(
        asked
            .into_iter()
            .filter_map(|observable| sk.observed_register(observable)),
    );
    let mut used = vec![false; sk.len()];
    let mut seen = vec![false; sk.pool.term_count()];
    while let Some(t) = open.pop() {
        if std::mem::replace(&mut seen[TermPool::term_index(t)], true) {
            continue;
        }
        match sk.pool.term(t) {
            Term::Read(e) => used[e.index()] = true,
            _ => open.extend(sk.pool.parts(t)),
        }
    }
    let mut by_cell: FxHashMap<CellId, Adders> = FxHashMap::default();
    for (&w, (r, cell, added)) in found.iter().filter(|(_, (r, ..))| !used[*r]) {
        let adders = by_cell.entry(*cell).or_default();
        if let AtomicChange::By(op, _) = added {
            let this = (*op, sk.events[w].ty.signed);
            adders.differ |= *adders.operation.get_or_insert(this) != this;
        }
        adders.members.push((*r, w));
    }
    let mut candidates: Vec<_> = by_cell
        .into_values()
        .filter(|of| !of.differ)
        .map(|of| of.members)
        .collect();
    candidates
        .iter_mut()
        .for_each(|members| members.sort_unstable());
    candidates.sort_unstable();
    candidates
}

/// Whether looking for sums is worthwhile: the domains list many values.
fn are_large(task: &Task<'_>, sk: &Skeleton, domains: &Domains) -> bool {
    if task.purpose.is_progress() || task.thin_air {
        return false;
    }
    let candidates = candidates(task.test, sk, domains);
    let members = candidates.iter().filter(|members| members.len() > 1);
    let values = members.flatten().map(|(_, w)| {
        let value = sk.events[*w].value.expect("writes have values");
        domains.of(value).map_or(MANY_VALUES, Vec::len)
    });
    values.sum::<usize>() >= MANY_VALUES
}

/// Whether looking for sums is worthwhile.
pub(super) fn helps(task: &Task<'_>, listing: &Listing) -> bool {
    are_large(task, &listing.sk, &listing.domains)
}

/// Adds the sums to the facts.
pub(super) fn add(
    plain: &Facts<'_>,
    bounds: &TaskBounds,
    _: Option<Instant>,
    implied: &mut Implied,
) {
    if are_large(&plain.task, &plain.sk, &plain.domains) {
        implied.sums = sums(plain, bounds);
    }
}

/// The sums of a task.
fn sums(facts: &Facts<'_>, bounds: &TaskBounds) -> Vec<Sum> {
    let model = facts.task.model;
    let Some(from_reads) = bounds.node_of_from_reads() else {
        return Vec::new();
    };
    let source = &bounds.free[model.values.0 as usize].may;
    let mut excluded = Exclusion::new(facts, bounds, from_reads);
    let mut sums = Vec::new();
    for all in candidates(facts.task.test, &facts.sk, &facts.domains) {
        let mut by_start: BTreeMap<usize, Vec<Halves>> = BTreeMap::new();
        let mut later: Vec<Halves> = Vec::new();
        for &(r, w) in &all {
            let mut starts =
                (0..facts.sk.len()).filter(|&s| source.has(s, r) && all.iter().all(|m| m.1 != s));
            match (starts.next(), starts.next()) {
                (Some(start), None) => by_start.entry(start).or_default().push((r, w)),
                // It comes behind another atomic, say of its own thread.
                (None, _) => later.push((r, w)),
                (Some(_), Some(_)) => {}
            }
        }
        if let (1, Some(members)) = (by_start.len(), by_start.values_mut().next()) {
            members.append(&mut later);
            members.sort_unstable();
        }
        sums.extend(
            by_start
                .into_iter()
                .map(|(start, members)| Sum { start, members })
                .filter(|sum| sum.members.len() > 1 && is_whole(facts, bounds, &mut excluded, sum)),
        );
    }
    // A sum that starts from another sum does not see the values of that sum.
    let all = sums.clone();
    sums.retain(|sum| !starts_from(&all, sum.start));
    sums
}

/// Whether a write is a member of one of these sums.
fn starts_from(sums: &[Sum], start: usize) -> bool {
    sums.iter()
        .flat_map(|sum| &sum.members)
        .any(|m| m.1 == start)
}

/// Whether all executions in which the axioms hold meet the conditions in the module's head.
fn is_whole(
    facts: &Facts<'_>,
    bounds: &TaskBounds,
    excluded: &mut Exclusion<'_, '_>,
    sum: &Sum,
) -> bool {
    let (sk, model) = (&facts.sk, facts.task.model);
    let [source, co] = [model.values, model.finals].map(|f| &bounds.free[f.0 as usize]);
    let Sum { start, members } = sum;
    let cell = facts.surely_at(members[0].1);
    let mut events = 0..sk.len();
    // The atomics start from one write that surely executes. Every other write comes before it or
    // behind all of them.
    facts.surely_at(*start) == cell
        && sk.events[*start].guard == Cond::TRUE
        && members.iter().all(|&(_, w)| co.must.has(*start, w))
        && events.all(|e| {
            let at = facts.domains.cells[e]
                .iter()
                .any(|&c| Some(sk.memory.cell(c).memory) == cell);
            let event = &sk.events[e];
            if !at || is_member(members, e) || e == *start {
                return true;
            }
            (!event.is_write()
                || co.must.has(e, *start)
                || members.iter().all(|&(_, w)| co.must.has(w, e)))
                && (!event.is_read()
                    || members.iter().all(|&(_, w)| !source.may.has(w, e))
                    || members.iter().all(|&(_, w)| bounds.is_never_behind(w, e)))
        })
        && members.iter().all(|&(r, w)| {
            let mut others = members.iter().filter(|&&(_, other)| other != w);
            (0..sk.len())
                .all(|s| !source.may.has(s, r) || s == *start || is_member(members, s) && s != w)
                && others.all(|&other| excluded.apart((r, w), other))
        })
}

/// Whether an event is a half of one of these atomics.
fn is_member(members: &[Halves], e: usize) -> bool {
    members.iter().any(|&(r, w)| r == e || w == e)
}

/// An execution with the values that the atomics really return.
pub(crate) fn settled(facts: &Facts<'_>, mut execution: Execution) -> Execution {
    for sum in &facts.implied.sums {
        let co = &execution.free[facts.task.model.finals.0 as usize];
        let mut members: Vec<_> = sum
            .members
            .iter()
            .filter(|m| execution.executed.has(m.1))
            .collect();
        members.sort_by_key(|m| {
            sum.members
                .iter()
                .filter(|other| co.has(other.1, m.1))
                .count()
        });
        let mut before = sum.start;
        for &&(r, w) in &members {
            let value = Eval::new(&facts.sk, &execution.known()).value(before);
            execution.reads[r] = value.map(|v| facts.sk.events[r].ty.wrap(v));
            before = w;
        }
    }
    execution
}
