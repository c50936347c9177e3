//! Computes dependencies that values really carry.
//!
//! A write depends on a read if the folded term of its value (or address) contains the read. The
//! condition of the dependency is that the term takes that branch. An event has a control
//! dependency on the reads in its guard. Terms and guards are canonical forms. So `r ^ r`, `r * 0`
//! and a guard that disappears at a join carry nothing. If both sides of a branch begin with the
//! same store, that store does not depend on the branch, like a store after the join.
//!
//! Events behind a wait at a barrier depend on the reads that decide whether it passes, in any
//! thread, if their thread reached the wait. So a thread that waits for another to end cannot
//! supply the value that the other one waits for. If the other thread either ends or arrives, the
//! wait passes in both cases. If it has ended, later events depend on the reads that made it end.
//! These reads are complete, and cannot return a value that is written only later.
//!
//! # Sources
//! - PTX ISA, Memory Consistency Model, No-Thin-Air: dependencies follow from values, not from
//!   syntax.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::skeleton::event::Event;
use crate::skeleton::pool::{AtomId, Cond, CondAtom, Term, TermId, TermPool};
use cat::rel::EventId;
use program::EventKind;
use verdict::Reason;

type Support = BTreeMap<EventId, Cond>;

/// The conditions that decide whether a wait at a barrier passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitDecision {
    /// Its thread reaches it.
    pub(crate) reached: Cond,
    /// If so, it passes under this condition.
    pub(crate) passes: Cond,
}

/// Computes supports of terms, and caches them.
pub(crate) struct Dependencies<'a> {
    pool: &'a mut TermPool,
    /// By choice of a wait at a barrier: the conditions that decide it.
    choices: &'a FxHashMap<u32, WaitDecision>,
    terms: FxHashMap<TermId, Support>,
    conds: FxHashMap<Cond, Support>,
    /// By choice: the result of [`Dependencies::asked`].
    decided: FxHashMap<u32, Vec<(AtomId, Cond)>>,
}

impl<'a> Dependencies<'a> {
    pub(crate) fn new(pool: &'a mut TermPool, choices: &'a FxHashMap<u32, WaitDecision>) -> Self {
        Dependencies {
            pool,
            choices,
            terms: Default::default(),
            conds: Default::default(),
            decided: Default::default(),
        }
    }

    /// An error if the pool gave up, so that the results are meaningless.
    pub(crate) fn given_up(&self) -> Result<(), Reason> {
        self.pool.given_up()
    }

    /// The conjunction of the conditions.
    pub(crate) fn all(&mut self, conds: [Cond; 3]) -> Cond {
        conds
            .into_iter()
            .fold(Cond::TRUE, |all, cond| self.pool.and(all, cond))
    }

    /// The reads in a term, each with the condition under which the value depends on it.
    pub(crate) fn of_term(&mut self, t: TermId) -> Support {
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
            Term::Fused(_, three) => three
                .into_iter()
                .for_each(|t| self.add(&mut support, t, Cond::TRUE)),
            Term::Ite(c, a, b) => {
                support.extend(self.of_cond(c));
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

    /// The reads that a condition depends on, each with the condition of the dependency. Includes
    /// the reads behind its choices, also through other choices. Waits depend on each other along
    /// too many paths to walk each one.
    pub(crate) fn of_cond(&mut self, c: Cond) -> Support {
        if let Some(reads) = self.conds.get(&c) {
            return reads.clone();
        }
        let reads = self.reads_of(c);
        self.conds.insert(c, reads.clone());
        reads
    }

    fn reads_of(&mut self, c: Cond) -> Support {
        let (mut reads, mut choices) = (Support::new(), FxHashMap::default());
        let support = self.pool.support(c).into_iter();
        let mut open: BTreeMap<AtomId, Cond> = support.map(|atom| (atom, Cond::TRUE)).collect();
        while let Some((atom, when)) = open.pop_first()
            && self.given_up().is_ok()
        {
            match self.pool.atom(atom) {
                CondAtom::Eq(_, a, b) | CondAtom::Lt(_, a, b) => {
                    for e in [a, b]
                        .into_iter()
                        .flat_map(|t| self.of_term(t).into_keys())
                        .collect::<Vec<_>>()
                    {
                        let known = reads.entry(e).or_insert(Cond::FALSE);
                        *known = self.pool.or(*known, when);
                    }
                }
                CondAtom::Choice(i) => {
                    let Some(&WaitDecision { reached, passes }) = self.choices.get(&i) else {
                        continue;
                    };
                    // A thread that does not reach a wait does not depend on whether it would pass.
                    let when = self.pool.and(when, reached);
                    if !self.decided.contains_key(&i) {
                        let asked = self.asked(passes);
                        let asked = asked
                            .into_iter()
                            .map(|(a, c)| (a, self.pool.restrict(c, reached)))
                            .collect();
                        self.decided.insert(i, asked);
                    }
                    let known = choices.entry(i).or_insert(Cond::FALSE);
                    let either = self.pool.or(*known, when);
                    if either != *known {
                        *known = either;
                        for &(atom, asked) in &self.decided[&i] {
                            let when = self.pool.and(either, asked);
                            let known = open.entry(atom).or_insert(Cond::FALSE);
                            *known = self.pool.or(*known, when);
                        }
                    }
                }
            }
        }
        reads
    }

    /// The atoms that a decision of the condition tests in turn, each with the condition that it is
    /// tested. Their values justify the result, so nothing else has to. No wait for the end of a
    /// thread is needed if the thread reached the barrier.
    fn asked(&mut self, c: Cond) -> Vec<(AtomId, Cond)> {
        let mut found = Vec::new();
        let mut open: BTreeMap<AtomId, BTreeMap<Cond, Cond>> = BTreeMap::new();
        if let Some((atom, ..)) = self.pool.decision(c) {
            open.entry(atom).or_default().insert(c, Cond::TRUE);
        }
        while let Some((atom, nodes)) = open.pop_first() {
            let holds = self.pool.of_atom(atom);
            let fails = self.pool.not(holds);
            let mut asked = Cond::FALSE;
            for (node, when) in nodes {
                asked = self.pool.or(asked, when);
                let (_, low, high) = self.pool.decision(node).expect("it asks an atom");
                for (next, way) in [(low, fails), (high, holds)] {
                    if let Some((atom, ..)) = self.pool.decision(next) {
                        let when = self.pool.and(when, way);
                        let known = open
                            .entry(atom)
                            .or_default()
                            .entry(next)
                            .or_insert(Cond::FALSE);
                        *known = self.pool.or(*known, when);
                    }
                }
            }
            found.push((atom, asked));
        }
        found
    }

    /// The reads that decide whether an event executes.
    pub(crate) fn control(&mut self, events: &[Event], id: EventId) -> Support {
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

    /// Whether both events are the first action on their side of the branch. Everything before them
    /// in their thread must always execute when one of them does, or come no earlier than one of
    /// them on any path.
    fn first_in_both(&mut self, events: &[Event], i: usize, j: usize, either: Cond) -> bool {
        let thread = events[i].thread;
        let first = |k: usize| k - usize::from(events[k].part);
        let apart =
            |&k: &usize| first(k) != first(i) && first(k) != first(j) && events[k].thread == thread;
        (0..i.max(j)).filter(apart).all(|k| {
            let g = events[k].guard;
            let related = self.pool.and(either, g);
            if related == Cond::FALSE || self.pool.implies(either, g) == Cond::TRUE {
                return true;
            }
            // Unrolled between the two, on the side of the earlier one: it comes after that one, so
            // it is harmless.
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
