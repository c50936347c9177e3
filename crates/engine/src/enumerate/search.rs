//! Searches depth-first over sources, values and choices of the program.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::candidate::{Chains, EventFacts, Next, PartialCandidate, SearchStop, StaticValues};
use crate::eval;
use crate::eval::{Assignment, Eval};
use crate::execution::Execution;
use crate::facts::Facts;
use crate::query::{Deadline, FinalState, Query};
use crate::skeleton::pool::Cond;
use crate::thin_air::closes_value_flow;
use cat::algebra::bounds::Bounds;
use cat::algebra::{Values, needed_unless};
use cat::rel::EventSet;
use program::litmus::Observable;
use program::memory::CellId;

/// The result that the search collects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchGoal {
    /// One execution.
    One,
    /// The final states of all executions.
    States,
}

/// How far a search goes before another engine takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// The number of steps.
    pub(crate) steps: u64,
    /// The number of steps after which the search estimates its whole length.
    pub(crate) probe: u64,
    /// The number of extra steps for each state that it finds.
    pub(crate) more_by_state: u64,
}

/// The memory, in words, for the orders of all decisions on the path: each keeps its own.
const ROOM: usize = 1 << 27;

/// The number of steps after which a search begins again; it grows by the factor [`LONGER`] each
/// time. Shorter searches, such as all within `auto`'s patience, take the order of events.
const FIRST_TRY: u64 = 1_000;
const LONGER: u64 = 4;

/// A search for candidates that satisfy a query.
pub(super) struct CandidateSearch<'t, 'a, 'q> {
    pub(super) facts: &'t Facts<'a>,
    pub(super) query: &'q Query<'q>,
    pub(super) goal: SearchGoal,
    pub(super) deadline: Deadline,
    pub(super) patience: Option<Patience>,
    pub(super) steps: u64,
    /// By decision on the path: how many other ways are left. For decisions that are complete: the
    /// steps below the first way, counted once per other way, and the steps below the other ways.
    left: Vec<usize>,
    firsts: u64,
    others: u64,
    /// By location: how many sources of its reads failed without a further decision, so far and
    /// when the search last began again. The search decides the location with the most failures
    /// first. Otherwise it would repeat locations that no axiom and no part of the query restricts,
    /// once for each of their ways. (Boussemart, Hemery, Lecoutre, Sais, "Boosting Systematic
    /// Search by Weighting Constraints", ECAI 2004.)
    failures: FxHashMap<CellId, u64>,
    learnt: FxHashMap<CellId, u64>,
    /// The step at which the search begins again, and how often it branched over a read, a choice
    /// or a value.
    again_at: u64,
    decisions: u64,
    /// The words that are left of [`ROOM`].
    pub(super) room: usize,
    /// By event: for the read of a read-modify-write, its write.
    pub(super) updates: Vec<Option<usize>>,
    /// Whether an axiom of the query keeps values from depending on themselves.
    pub(super) closed: bool,
    /// Nodes below the axioms and flags of the query.
    pub(super) wanted: Vec<bool>,
    /// The nodes of these axioms.
    pub(super) tested: Vec<bool>,
    /// Nodes below the bounds of free relations, and those of `wanted` that are static or always
    /// empty.
    pub(super) fixed: Vec<bool>,
    /// The last computed values of static nodes, and of all wanted nodes.
    pub(super) known: Option<Rc<StaticValues>>,
    pub(super) last: Option<Rc<(Bounds, Values<Bounds>)>>,
    pub(super) cells: Vec<usize>,
    pub(super) found: Option<Execution>,
    pub(super) states: BTreeSet<FinalState>,
}

impl<'t, 'a, 'q> CandidateSearch<'t, 'a, 'q> {
    pub(super) fn new(
        facts: &'t Facts<'a>,
        query: &'q Query<'q>,
        goal: SearchGoal,
        deadline: Deadline,
        patience: Option<Patience>,
    ) -> Self {
        let model = facts.task.model;
        let axioms = model
            .axioms
            .iter()
            .zip(&query.axioms)
            .filter(|(_, on)| **on)
            .map(|(a, _)| a.node);
        let mut tested = vec![false; model.nodes.len()];
        axioms.clone().for_each(|node| tested[node.index()] = true);
        let flags = query.flags.iter().flatten().map(|&f| model.flags[f].node);
        let bounds = model
            .free
            .iter()
            .flat_map(|f| [Some(f.within), f.containing, f.covering]);
        let wanted = needed_unless(model, axioms.chain(flags), |id| facts.absent[id.index()]);
        let mut fixed = needed_unless(model, bounds.flatten(), |id| facts.absent[id.index()]);
        for (i, node) in model.nodes.iter().enumerate() {
            fixed[i] |= wanted[i] && (node.is_static || facts.absent[i]);
        }
        let mut mentioned: Vec<Observable> =
            program::litmus::observables(query.props.iter().map(|p| p.0), &[]);
        if goal == SearchGoal::States {
            mentioned.extend(&facts.observed);
        }
        let cells = (0..facts.observed_cells.len())
            .filter(|&c| {
                mentioned
                    .iter()
                    .any(|&o| facts.sk.observed_cell(o) == Some(facts.observed_cells[c]))
            })
            .collect();
        let mut updates = vec![None; facts.sk.len()];
        facts
            .sk
            .rmw
            .iter()
            .for_each(|(r, w)| updates[r.index()] = Some(w.index()));
        let mut on = model
            .axioms
            .iter()
            .zip(&query.axioms)
            .filter(|(_, on)| **on);
        CandidateSearch {
            facts,
            query,
            goal,
            deadline,
            patience,
            steps: 0,
            left: Vec::new(),
            firsts: 0,
            others: 0,
            failures: FxHashMap::default(),
            learnt: FxHashMap::default(),
            again_at: FIRST_TRY,
            decisions: 0,
            room: ROOM,
            updates,
            closed: on.any(|(a, _)| closes_value_flow(model, a, false)),
            wanted,
            tested,
            fixed,
            known: None,
            last: None,
            cells,
            found: None,
            states: BTreeSet::new(),
        }
    }

    /// Runs to the end, or to the first execution.
    ///
    /// # Errors
    /// A limit was reached; the results so far remain.
    pub(super) fn run(&mut self) -> Result<(), SearchStop> {
        let sk = &self.facts.sk;
        let partial = PartialCandidate {
            known: Assignment::nothing(sk),
            source: vec![None; sk.len()],
            astray: vec![false; sk.len()],
            chains: Chains::default(),
        };
        loop {
            match self.sources(partial.clone()) {
                Err(SearchStop::Again) => {}
                ended => return ended,
            }
            self.left.clear();
            (self.firsts, self.others, self.room) = (0, 0, ROOM);
            self.learnt.clone_from(&self.failures);
            self.again_at += self.steps * (LONGER - 1);
        }
    }

    pub(super) fn tick(&mut self) -> Result<(), SearchStop> {
        self.steps += 1;
        if self
            .patience
            .is_some_and(|patience| self.is_spent(patience))
        {
            return Err(SearchStop::Steps);
        }
        if self.steps >= self.again_at {
            return Err(SearchStop::Again);
        }
        if self.steps.is_multiple_of(16) && self.deadline.passed() {
            Err(SearchStop::Time)
        } else {
            Ok(())
        }
    }

    /// Whether patience is over: the steps are used up, or the expected length of the whole search
    /// is too large.
    fn is_spent(&self, patience: Patience) -> bool {
        let share = if self.steps > patience.probe {
            self.share()
        } else {
            1.0
        };
        let for_states = patience.more_by_state * self.states.len() as u64;
        self.steps as f64 > patience.steps as f64 * share + for_states as f64
    }

    /// The estimated share of the tree that is complete. For each open decision, the other ways are
    /// expected to take as long, relative to the first way, as in complete decisions. (Kilby,
    /// Slaney, Thiébaux, Walsh, "Estimating Search Tree Size", AAAI 2006, assume that all ways take
    /// equally long. Here the other ways often end at once: only one of a condition's values can be
    /// right.)
    fn share(&self) -> f64 {
        if self.firsts == 0 {
            return 1.0;
        }
        let ratio = self.others as f64 / self.firsts as f64;
        self.left
            .iter()
            .map(|&ways| 1.0 / (1.0 + ratio * ways as f64))
            .product()
    }

    pub(super) fn over(&self) -> bool {
        self.goal == SearchGoal::One && self.found.is_some()
    }

    pub(super) fn needs_complete(&self) -> bool {
        self.query.complete || !self.query.props.is_empty() || self.goal == SearchGoal::States
    }

    /// Decides sources, choices and values, one after the other.
    fn sources(&mut self, mut partial: PartialCandidate) -> Result<(), SearchStop> {
        self.tick()?;
        let facts = self.facts;
        let sk = &facts.sk;
        if !self.propagate(&mut partial) {
            return Ok(());
        }
        let mut eval = Eval::new(sk, &partial.known);
        let guards: Vec<Option<bool>> = sk.events.iter().map(|e| eval.cond(e.guard)).collect();
        if self.is_ruled_out(&mut eval, &guards) {
            return Ok(());
        }
        let seen = self.event_facts(&partial, &mut eval, &guards);
        // A chosen source may not execute, or a later decision may have removed the read.
        for (r, &w) in partial.source.iter().enumerate() {
            let Some(w) = w else { continue };
            if guards[r] == Some(false)
                || guards[w] == Some(false)
                || !self.may_read(&partial.chains, &seen, r, w)
            {
                return Ok(());
            }
        }
        if facts.check_barrier_order && eval.waits_in_circle(&seen.algebra.must) {
            return Ok(());
        }
        let Some(mut bounds) = self.plausible(&partial, &seen, &mut eval)? else {
            return Ok(());
        };
        // The next decision: a read that surely executes at a known address.
        let next = seen
            .algebra
            .must
            .iter()
            .filter(|&r: &usize| sk.events[r].is_read() && partial.is_open(r))
            .filter_map(|r| Some((r, seen.memory[r]?)));
        let next: Vec<(usize, Option<CellId>)> = next.collect();
        if let Some((r, _)) = next.iter().find(|(_, at)| at.is_none()) {
            partial.astray[*r] = true;
            partial.known.reads[*r] = Some(0);
            return self.sources(partial);
        }
        let mut chains = std::mem::take(&mut partial.chains);
        let chained = self.follow(&partial, &mut chains, &seen, &mut eval, &mut bounds)?;
        partial.chains = chains;
        let r = match chained {
            Next::Nothing => return Ok(()),
            Next::Of(w, readers) => {
                return self.each(
                    &partial,
                    seen.at(w),
                    readers.len(),
                    0..=readers.len(),
                    |next, i| {
                        readers[..i].iter().for_each(|&r| next.chains.bar(r, w));
                        if let Some(&r) = readers.get(i) {
                            next.source[r] = Some(w);
                        }
                    },
                );
            }
            Next::Read(r) => Some(r),
            Next::Any => next
                .iter()
                .map(|read| read.0)
                .min_by_key(|&r| (Reverse(self.weight(seen.at(r))), r)),
        };
        if let Some(r) = r {
            let here =
                |&w: &usize| sk.events[w].is_write() && self.may_read(&partial.chains, &seen, r, w);
            let writes: Vec<usize> = seen.algebra.may.iter().filter(here).collect();
            let (at, sources) = (seen.at(r), writes.len());
            return self.each(&partial, at, sources, writes, |next, w| {
                next.source[r] = Some(w)
            });
        }
        if let Some(choice) = partial.known.choices.iter().position(Option::is_none) {
            return self.each(&partial, None, 0, [true, false], |next, value| {
                next.known.choices[choice] = Some(value)
            });
        }
        if let Some(r) = self.self_dependent_read(&partial, &mut eval) {
            let term = sk.events[r].value.expect("reads have values");
            let values = facts
                .domains
                .of(term)
                .ok_or(SearchStop::Values)?
                .iter()
                .copied();
            return self.each(&partial, None, 0, values, |next, value| {
                next.known.reads[r] = Some(value)
            });
        }
        debug_assert!(
            guards.iter().all(Option::is_some),
            "without open reads and choices all guards are known"
        );
        self.settle(partial)
    }

    /// Whether the query or the program rules out every completion, by the known values.
    fn is_ruled_out(&self, eval: &mut Eval<'_>, guards: &[Option<bool>]) -> bool {
        let (facts, sk) = (self.facts, &self.facts.sk);
        if sk.constraints.iter().any(|&c| eval.cond(c) == Some(false))
            || self.needs_complete() && eval.cond(sk.complete) == Some(false)
            || eval.cond(self.query.require) == Some(false)
            || self.query.no_fault && eval.cond(facts.fault) == Some(true)
        {
            return true;
        }
        let mut register = |o: Observable| match o {
            Observable::Reg(t, r) => eval.register(t, r),
            Observable::Mem { .. } => None,
        };
        for (p, truth) in &self.query.props {
            if eval::prop(p, &mut |a| facts.atom_value(a, &mut register)) == Some(!*truth) {
                return true;
            }
        }
        self.goal == SearchGoal::States && self.all_found(eval, guards)
    }

    /// The facts about events that follow from the decisions so far.
    fn event_facts(
        &self,
        partial: &PartialCandidate,
        eval: &mut Eval<'_>,
        guards: &[Option<bool>],
    ) -> EventFacts {
        let sk = &self.facts.sk;
        // A write that is read from executes, whatever its guard, and so does the read of its
        // read-modify-write. This reveals a cycle of sources before values are chosen for it.
        let mut must = EventSet::from_fn(sk.len(), |e| guards[e.index()] == Some(true));
        partial
            .source
            .iter()
            .flatten()
            .for_each(|&w| must.insert(w));
        for (r, w) in &sk.rmw {
            if must.has(w.index()) {
                must.insert(r.index());
            }
        }
        EventFacts {
            algebra: Bounds {
                must,
                may: EventSet::from_fn(sk.len(), |e| guards[e.index()] != Some(false)),
                companions: None,
            },
            memory: (0..sk.len()).map(|e| eval.memory(e)).collect(),
        }
    }

    /// A read with a source, but without a value, because its value depends on itself. Chooses a
    /// read on the cycle, not one that depends on it: its source then checks the chosen value.
    fn self_dependent_read(
        &self,
        partial: &PartialCandidate,
        eval: &mut Eval<'_>,
    ) -> Option<usize> {
        let sk = &self.facts.sk;
        let unknown = |r: &usize| partial.source[*r].is_some() && partial.known.reads[*r].is_none();
        let mut r = (0..sk.len()).find(unknown)?;
        let mut passed = EventSet::empty(sk.len());
        while !passed.has(r) {
            passed.insert(r);
            let source = partial.source[r].and_then(|w| sk.events[w].value);
            r = source
                .and_then(|value| eval.waits_for(value))
                .filter(unknown)
                .unwrap_or(r);
        }
        Some(r)
    }

    /// Whether every completion ends in a known state, as far as values are known.
    fn all_found(&self, eval: &mut Eval<'_>, guards: &[Option<bool>]) -> bool {
        let facts = self.facts;
        let mut values = |&o: &Observable| -> Option<Vec<i64>> {
            if let Observable::Reg(t, r) = o {
                return Some(vec![eval.register(t, r)?]);
            }
            let cell = facts.sk.observed_cell(o)?;
            let index = facts.observed_cells.iter().position(|&c| c == cell)?;
            let last =
                |&(w, at): &(usize, Cond)| guards[w] != Some(false) && eval.cond(at) != Some(false);
            let last: Vec<usize> = facts.at_cell[index]
                .iter()
                .copied()
                .filter(last)
                .map(|(w, _)| w)
                .collect();
            last.into_iter().map(|w| eval.value(w)).collect()
        };
        let values: Option<Vec<Vec<i64>>> = facts.observed.iter().map(&mut values).collect();
        values.is_some_and(|values| includes(&self.states, &values, &mut Vec::new()))
    }

    /// The number of sources of reads at a location that failed.
    pub(super) fn weight(&self, at: Option<CellId>) -> u64 {
        at.and_then(|cell| self.learnt.get(&cell))
            .copied()
            .unwrap_or(0)
    }

    /// Continues with every way to decide one thing; the first `sources` ways are sources of reads
    /// at location `at`.
    fn each<T>(
        &mut self,
        partial: &PartialCandidate,
        at: Option<CellId>,
        sources: usize,
        ways: impl IntoIterator<Item = T>,
        decide: impl Fn(&mut PartialCandidate, T),
    ) -> Result<(), SearchStop> {
        self.decisions += 1;
        let ways: Vec<T> = ways.into_iter().collect();
        let (others, before) = (ways.len().saturating_sub(1), self.steps);
        let mut first = 0;
        // The values before the decision have more in common with each way than the values below
        // the previous way.
        let last = self.last.clone();
        self.left.push(others);
        for (i, way) in ways.into_iter().enumerate() {
            let mut next = partial.clone();
            decide(&mut next, way);
            *self.left.last_mut().expect("pushed above") = others - i;
            self.last.clone_from(&last);
            let here = self.decisions;
            self.sources(next)?;
            if self.over() {
                return Ok(());
            }
            if let (Some(cell), true) = (at, i < sources && self.decisions == here) {
                *self.failures.entry(cell).or_default() += 1;
            }
            if i == 0 {
                first = self.steps - before;
            }
        }
        self.left.pop();
        self.firsts += first * others as u64;
        self.others += self.steps - before - first;
        Ok(())
    }

    /// Whether read `r` may take its value from write `w`: addresses permit it, as far as they are
    /// known, and no chain bars it.
    pub(super) fn may_read(&self, chains: &Chains, seen: &EventFacts, r: usize, w: usize) -> bool {
        !chains.bars(r, w) && self.may_meet(seen, r, w)
    }

    /// Whether read `r` and write `w` may access the same location.
    fn may_meet(&self, seen: &EventFacts, r: usize, w: usize) -> bool {
        match (seen.memory[r], seen.memory[w]) {
            (Some(x), Some(y)) => x.is_some() && x == y,
            _ => self.facts.domains.may_overlap(&self.facts.sk, r, w),
        }
    }

    /// Propagates values from sources to reads. False if a chosen value turns out wrong.
    pub(super) fn propagate(&self, partial: &mut PartialCandidate) -> bool {
        let sk = &self.facts.sk;
        loop {
            let mut updates: Vec<(usize, i64)> = Vec::new();
            let mut eval = Eval::new(sk, &partial.known);
            for (r, &source) in partial.source.iter().enumerate() {
                let Some(v) = source.and_then(|w| eval.value(w)) else {
                    continue;
                };
                let v = sk.events[r].ty.wrap(v);
                match partial.known.reads[r] {
                    Some(old) if old != v => return false,
                    Some(_) => {}
                    None => updates.push((r, v)),
                }
            }
            if updates.is_empty() {
                return true;
            }
            for (r, v) in updates {
                partial.known.reads[r] = Some(v);
            }
        }
    }
}

/// Whether `states` contains every state that begins with `first` and continues with a value of
/// each further place.
fn includes(states: &BTreeSet<FinalState>, values: &[Vec<i64>], first: &mut FinalState) -> bool {
    let Some(here) = values.get(first.len()) else {
        return states.contains(first);
    };
    here.iter().all(|&value| {
        first.push(value);
        let all = includes(states, values, first);
        first.pop();
        all
    })
}
