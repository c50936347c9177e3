//! Dependencies that values really carry.
//!
//! A write depends on a read if the read occurs in the term of its value (or address) after folding, under the
//! condition that the term takes that branch; an event depends by control on the reads that occur in its guard. Both
//! are canonical forms, so `r ^ r`, `r * 0` and a guard that folds away at a join carry nothing. A store that both
//! sides of a branch begin with depends on the branch no more than a store after the join would.
//!
//! A wait at a barrier depends on the reads that decide whether it passes, in whatever thread they are: a thread that waits
//! for another one to end cannot supply the value for which that one waits.
//!
//! # Sources
//! - PTX ISA, Memory Consistency Model, No-Thin-Air: dependencies as a matter of what a value depends on, not of syntax.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::event::Event;
use super::pool::{Atom, AtomId, Cond, Pool, Term, TermId};
use cat::rel::EventId;
use program::EventKind;
use verdict::Reason;

type Support = BTreeMap<EventId, Cond>;

/// Computes supports of terms, with a memo.
pub(super) struct Dependencies<'a> {
    pool: &'a mut Pool,
    /// What decides a choice, where something does: when a wait at a barrier passes.
    choices: &'a FxHashMap<u32, Cond>,
    /// Choices being looked into: waits can depend on each other.
    open: Vec<u32>,
    terms: FxHashMap<TermId, Support>,
}

impl<'a> Dependencies<'a> {
    pub(super) fn new(pool: &'a mut Pool, choices: &'a FxHashMap<u32, Cond>) -> Self {
        Dependencies { pool, choices, open: Vec::new(), terms: Default::default() }
    }

    /// Whether what was computed means nothing, since the pool gave up.
    pub(super) fn given_up(&self) -> Result<(), Reason> {
        self.pool.given_up()
    }

    /// The reads in a term, each with the condition under which the value depends on it.
    pub(super) fn of_term(&mut self, t: TermId) -> Support {
        if let Some(s) = self.terms.get(&t) {
            return s.clone();
        }
        let mut support = Support::new();
        match self.pool.term(t) {
            Term::Const(_) => {}
            Term::Read(e) => {
                support.insert(e, Cond::TRUE);
            }
            Term::Bin(_, _, a, b) => {
                self.add(&mut support, a, Cond::TRUE);
                self.add(&mut support, b, Cond::TRUE);
            }
            Term::Cast(_, a) => self.add(&mut support, a, Cond::TRUE),
            Term::Ite(c, a, b) => {
                for e in self.of_cond(c) {
                    support.insert(e, Cond::TRUE);
                }
                self.add(&mut support, a, c);
                let not_c = self.pool.not(c);
                self.add(&mut support, b, not_c);
            }
        }
        self.terms.insert(t, support.clone());
        support
    }

    fn add(&mut self, support: &mut Support, t: TermId, when: Cond) {
        for (e, c) in self.of_term(t) {
            let c = self.pool.and(c, when);
            let old = support.get(&e).copied().unwrap_or(Cond::FALSE);
            support.insert(e, self.pool.or(old, c));
        }
    }

    /// The reads that a condition depends on.
    pub(super) fn of_cond(&mut self, c: Cond) -> Vec<EventId> {
        let mut reads = Vec::new();
        for atom in self.pool.support(c) {
            reads.extend(self.of_atom(atom));
        }
        reads.sort_unstable();
        reads.dedup();
        reads
    }

    fn of_atom(&mut self, atom: AtomId) -> Vec<EventId> {
        match self.pool.atom(atom) {
            Atom::Eq(_, a, b) | Atom::Lt(_, a, b) => {
                let mut reads: Vec<EventId> = self.of_term(a).into_keys().collect();
                reads.extend(self.of_term(b).into_keys());
                reads
            }
            Atom::Choice(i) => match self.choices.get(&i) {
                Some(&decided) if !self.open.contains(&i) => {
                    self.open.push(i);
                    let reads = self.of_cond(decided);
                    self.open.pop();
                    reads
                }
                _ => Vec::new(),
            },
        }
    }

    /// The reads on which the execution of an event depends.
    pub(super) fn control(&mut self, events: &[Event], id: EventId) -> Vec<EventId> {
        let event = &events[id.index()];
        let mut guard = event.guard;
        if event.kind == EventKind::Write {
            for (i, other) in events.iter().enumerate() {
                if i == id.index() || !same_store(event, other) {
                    continue;
                }
                let either = self.pool.or(event.guard, other.guard);
                if self.pool.and(event.guard, other.guard) == Cond::FALSE
                    && self.first_in_both(events, id.index(), i, either)
                {
                    guard = either;
                    break;
                }
            }
        }
        self.of_cond(guard)
    }

    /// Whether everything before the two events in their thread either always executes when one of them does, or is
    /// not earlier than one of them on any path: both are the first thing that their side of the branch does.
    fn first_in_both(&mut self, events: &[Event], i: usize, j: usize, either: Cond) -> bool {
        let thread = events[i].thread;
        let first = |k: usize| k - usize::from(events[k].part);
        let apart = |&k: &usize| first(k) != first(i) && first(k) != first(j) && events[k].thread == thread;
        (0..i.max(j)).filter(apart).all(|k| {
            let g = events[k].guard;
            let related = self.pool.and(either, g);
            if related == Cond::FALSE || self.pool.implies(either, g) == Cond::TRUE {
                return true;
            }
            // Created between the two, on the side of the earlier one: after it, so harmless.
            let (first, last) = (i.min(j), i.max(j));
            k > first && self.pool.and(g, events[last].guard) == Cond::FALSE
        })
    }
}

fn same_store(a: &Event, b: &Event) -> bool {
    a.thread == b.thread
        && a.kind == b.kind
        && a.addr == b.addr
        && a.value == b.value
        && a.tags == b.tags
        && a.scope == b.scope
        && a.ty == b.ty
}
