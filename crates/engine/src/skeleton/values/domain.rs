//! Computes the values that each read can return: the closure of the program's constants under its
//! operations.
//!
//! # Invariants
//! - *Complete for values with a beginning*. Take an execution in which no value depends on itself
//!   through `rf` and value flow. There every read returns a value of its domain, and every address
//!   is a listed one. A value travels through each read at most once, so as many rounds of
//!   propagation as there are reads reach everything.
//! - A model may admit values that depend on themselves (out of thin air). Then the domains are
//!   *seeded* with the constants that the condition names, and with one that occurs nowhere. If the
//!   domains are still not closed, and such values come from more than adding constants,
//!   [`Domains::open`] is set and negative answers become `undecided`.
//! - With [`KnownFacts::by_guards`], a write hands on values only if its guard can hold by the
//!   values so far ([`super::reached`], which has the argument).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use rustc_hash::FxHashMap;

use super::images::{Image, ImageFailure, MAX_VALUES, TermImages, Values, distinct};
use super::needed::NeededTerms;
use super::reached::ListedGuards;
use crate::skeleton::graph::EdgeKind;
use crate::skeleton::pool::{Cond, Term, TermId};
use crate::skeleton::{Event, Skeleton, TermPool};
use cat::rel::{EventSet, Rel};
use program::BinOp;
use program::memory::CellId;
use verdict::Reason;

/// The number of rounds before the search for values that depend on themselves.
const PATIENT_ROUNDS: usize = 4;

/// Known facts about all executions of interest.
#[derive(Clone, Default)]
pub struct KnownFacts<'k> {
    /// Pairs of a write and a read that never reads from it.
    pub never: Option<&'k Rel>,
    /// By read: a list that contains its value in every execution.
    pub found: Option<&'k BTreeMap<usize, Values>>,
    /// Terms in place of those of the skeleton.
    pub terms: KnownTerms,
    /// Whether the axioms exclude values out of thin air, so that writes need a reason to execute.
    pub by_guards: bool,
}

/// Terms that known facts justify in place of those of the skeleton.
#[derive(Clone, Debug, Default)]
pub struct KnownTerms {
    /// By write of an atomic: the sum of several that its readers see instead of its value.
    pub(crate) seen: FxHashMap<usize, TermId>,
    /// By write half of an operation on an mbarrier object: its phase, and the next phase.
    pub(crate) phases: FxHashMap<usize, [TermId; 2]>,
}

/// Possible values of every term, and possible cells of every access.
#[derive(Clone, Debug)]
pub struct Domains {
    /// By term: the function of reads that it computes, and its values.
    images: TermImages,
    /// By event: the cells it may access. Cells of aliases appear as such.
    pub cells: Vec<Vec<CellId>>,
    /// By event: whether its address may be outside memory, or in memory that does not fit the
    /// access.
    pub may_fault: Vec<bool>,
    /// Whether values may be missing.
    pub open: bool,
    /// Whether a read may return a value out of thin air that represents all unnamed values.
    pub seeded: bool,
    /// Terms in place of those of the skeleton.
    pub(crate) known: KnownTerms,
    /// The writes that never execute, because their guards need values out of thin air.
    pub(crate) unreached: EventSet,
}

impl Domains {
    /// Computes the domains.
    /// - `seeds` are values out of thin air, for reads that can depend on themselves.
    /// - `needed` limits the terms that matter.
    /// - With `rough`, only addresses have to be listed.
    ///
    /// # Errors
    /// An address, or an operand of floating point, takes more than a thousand values, or
    /// `deadline` passes.
    pub fn compute(
        sk: &Skeleton,
        seeds: &[i64],
        known: &KnownFacts<'_>,
        needed: Option<&NeededTerms>,
        rough: bool,
        deadline: Option<Instant>,
    ) -> Result<Domains, Reason> {
        let n = sk.len();
        // The known facts use event numbers, so they apply only if the number of events is the
        // same.
        let KnownFacts {
            never,
            found,
            terms,
            by_guards,
        } = match known.never {
            Some(never) if never.universe_len() == n => known.clone(),
            _ => KnownFacts {
                by_guards: known.by_guards,
                ..KnownFacts::default()
            },
        };
        let is_open = |&e: &usize| by_guards && sk.events[e].guard != Cond::TRUE;
        let mut unreached = EventSet::empty(n);
        let writes: Vec<usize> = (0..n).filter(|&i| sk.events[i].is_write()).collect();
        writes
            .iter()
            .copied()
            .filter(is_open)
            .for_each(|w| unreached.insert(w));
        let mut propagation = Propagation {
            sk,
            never,
            found,
            needed,
            rough,
            deadline,
            reads: (0..n).filter(|&i| sk.events[i].is_read()).collect(),
            writes,
            of_read: vec![Some(Values::new()); n],
            knots: Vec::new(),
            stale: vec![true; n],
            moved: vec![true; n],
            domains: Domains {
                images: TermImages::default(),
                cells: vec![Vec::new(); n],
                may_fault: vec![false; n],
                open: false,
                seeded: false,
                known: terms,
                unreached,
            },
        };
        let shifting = !seeds.is_empty() && propagation.seed(seeds);
        propagation.run(shifting)?;
        let mut domains = propagation.domains;
        // The axioms justify that these writes never execute.
        domains.open |= !domains.unreached.is_empty();
        Ok(domains)
    }

    /// The possible values of a term, sorted; `None` if it may have any value.
    pub fn of(&self, t: TermId) -> Option<&Values> {
        self.images.sorted[TermPool::term_index(t)].as_ref()
    }

    /// The possible values of a term, or only those that the last round added.
    fn values(&self, t: TermId, whole: bool) -> Option<&Values> {
        let all = self.of(t)?;
        Some(match whole {
            true => all,
            false => &self.images.gained[TermPool::term_index(t)],
        })
    }

    /// The possible values of an address, sorted.
    pub fn addresses(&self, t: TermId) -> &Values {
        self.of(t)
            .expect("where an address is not listed, there are no domains")
    }

    /// The function of reads that a term computes.
    pub fn image(&self, t: TermId) -> &Image {
        &self.images.all[TermPool::term_index(t)]
    }

    /// The term that a read of this write returns.
    pub(crate) fn seen(&self, sk: &Skeleton, write: usize) -> TermId {
        let seen = self.known.seen.get(&write).copied();
        seen.unwrap_or_else(|| sk.events[write].value.expect("writes have values"))
    }

    /// The write halves of operations on mbarrier objects, each with its phase and the next phase.
    pub(crate) fn phases(&self, sk: &Skeleton) -> Vec<(usize, [TermId; 2])> {
        let phases = sk.phases.iter().map(|&(write, now, next)| {
            let write = write.index();
            let known = self.known.phases.get(&write);
            (write, known.copied().unwrap_or([now, next]))
        });
        phases.collect()
    }

    /// The memory cell of an access, if it is the same in all executions in which the access
    /// executes.
    pub(crate) fn surely_at(&self, sk: &Skeleton, access: usize) -> Option<CellId> {
        match self.cells[access][..] {
            [cell] if !self.may_fault[access] => Some(sk.memory.cell(cell).memory),
            _ => None,
        }
    }

    /// Whether a write may reach memory that unrolling took for unwritten.
    pub(crate) fn hit_fixed(&self, sk: &Skeleton) -> bool {
        let cells = sk.events.iter().zip(&self.cells);
        let mut written = cells
            .filter(|(event, _)| event.thread.is_some() && event.is_write())
            .flat_map(|(_, cells)| cells);
        written.any(|&cell| sk.fixed.has(&sk.program, sk.memory.cell(cell).location.0))
    }

    /// Whether a read may return the value of a write, as far as places and guards tell.
    pub(crate) fn may_read(&self, sk: &Skeleton, read: usize, write: usize) -> bool {
        !self.unreached.has(write) && self.may_overlap(sk, read, write)
    }

    /// Whether two accesses may go to the same memory.
    pub fn may_overlap(&self, sk: &Skeleton, a: usize, b: usize) -> bool {
        self.cells[a].iter().any(|&x| {
            self.cells[b]
                .iter()
                .any(|&y| sk.memory.cell(x).memory == sk.memory.cell(y).memory)
        })
    }

    fn accessible(
        &self,
        sk: &Skeleton,
        event: usize,
        addr: TermId,
    ) -> Result<(Vec<CellId>, bool), Reason> {
        let mut cells = Vec::new();
        let mut fault = false;
        let listed = self
            .of(addr)
            .ok_or_else(|| Reason::TooManyValues(sk.place(event)))?;
        if sk.events[event].is_of_tensor_memory() {
            return Ok((cells, fault));
        }
        for &a in listed {
            match sk.cell(event, a) {
                Some(c) => cells.push(c),
                None => fault = true,
            }
        }
        Ok((cells, fault))
    }
}

/// Values on their way from writes to reads, until no read gains one.
struct Propagation<'x> {
    sk: &'x Skeleton,
    never: Option<&'x Rel>,
    found: Option<&'x BTreeMap<usize, Values>>,
    needed: Option<&'x NeededTerms>,
    rough: bool,
    deadline: Option<Instant>,
    reads: Vec<usize>,
    writes: Vec<usize>,
    /// By event: the values of a read; `None` if they are not listed.
    of_read: Vec<Option<Values>>,
    knots: Vec<Knot>,
    /// By event: whether the values of this read changed in the last round.
    stale: Vec<bool>,
    /// By event: whether its address changed in this round.
    moved: Vec<bool>,
    domains: Domains,
}

impl Propagation<'_> {
    fn may_read(&self, w: usize, r: usize) -> bool {
        self.never.is_none_or(|never| !never.has(w, r))
    }

    /// Gives values out of thin air to the reads that can depend on themselves; returns whether
    /// they do so only through shifts by constants.
    fn seed(&mut self, seeds: &[i64]) -> bool {
        let sk = self.sk;
        let cycles = self_dependent(sk, &|w, r| self.may_read(w, r));
        for &r in cycles.iter().flatten().filter(|&&e| sk.events[e].is_read()) {
            let values = self.of_read[r].as_mut().expect("as yet they are listed");
            *values = distinct(seeds.iter().map(|&s| sk.events[r].ty.wrap(s)).collect());
        }
        self.domains.seeded = cycles.iter().flatten().next().is_some();
        cycles.iter().all(|c| only_shifts(sk, c))
    }

    /// Propagates values until they are complete. `shifting`: values that depend on themselves do
    /// so only through shifts by constants.
    fn run(&mut self, shifting: bool) -> Result<(), Reason> {
        let rounds = self.reads.len() + 1;
        // The knowledge about reads, terms and cells only grows. After the first round, a read's
        // values are the old ones and those that follow from a change.
        for round in 0.. {
            self.update()?;
            self.access()?;
            self.reach();
            if round == PATIENT_ROUNDS {
                let n = self.sk.len();
                self.knots = self_dependent(self.sk, &|w, r| self.may_read(w, r))
                    .into_iter()
                    .map(|events| Knot::new(n, &events, &self.reads))
                    .collect();
            }
            self.feed_knots();
            let mut changed = false;
            self.stale.fill(false);
            for at in 0..self.reads.len() {
                if stop::late(self.deadline) {
                    return Err(Reason::Time);
                }
                changed |= self.extend(self.reads[at]);
            }
            if !changed && self.knots.iter().all(|knot| !knot.goes_on) {
                break;
            }
            if !changed || round >= rounds {
                // All values with a beginning are known now. A value that depends on itself through
                // shifts by constants alone contradicts itself, or is arbitrary; the seeds
                // represent an arbitrary one.
                self.domains.open = !shifting;
                break;
            }
        }
        self.update()
    }

    /// Updates the images of terms after a change of reads.
    fn update(&mut self) -> Result<(), Reason> {
        let (sk, needed, stale) = (self.sk, self.needed, &self.stale);
        let updated = self.domains.images.update(
            &sk.pool,
            |t: TermId| needed.is_none_or(|needed| needed.rests_on(sk, t)),
            &self.of_read,
            |e| stale[e.index()],
            self.rough,
            self.deadline,
        );
        updated.map_err(|why| stuck(sk, why))
    }

    /// Updates the cells of accesses after a change of addresses.
    fn access(&mut self) -> Result<(), Reason> {
        let d = &mut self.domains;
        for (i, event) in self.sk.events.iter().enumerate() {
            self.moved[i] = event
                .addr
                .is_some_and(|addr| d.images.changed[TermPool::term_index(addr)]);
            if let Some(addr) = event.addr.filter(|_| self.moved[i]) {
                (d.cells[i], d.may_fault[i]) = d.accessible(self.sk, i, addr)?;
            }
        }
        Ok(())
    }

    /// Finds the writes that can execute by the values so far.
    fn reach(&mut self) {
        let (sk, d) = (self.sk, &mut self.domains);
        let guards = ListedGuards {
            pool: &sk.pool,
            images: &d.images.all,
            of_read: &self.of_read,
        };
        for &w in &self.writes {
            if d.unreached.has(w) && guards.may_hold(sk.events[w].guard) {
                d.unreached.remove(w);
                // Its values are news to all reads.
                self.moved[w] = true;
            }
        }
    }

    /// Counts the rounds since a new value entered each knot.
    fn feed_knots(&mut self) {
        let mut knots = std::mem::take(&mut self.knots);
        for knot in &mut knots {
            let fed = knot
                .reads
                .iter()
                .any(|&r| self.moved[r] || self.is_fed_from_outside(knot, r))
                || self
                    .sk
                    .edges
                    .of(EdgeKind::Flow)
                    .iter()
                    .any(|&(from, to, _)| {
                        !knot.events.has(from.index())
                            && knot.events.has(to.index())
                            && self.stale[from.index()]
                    });
            knot.rounds = if fed { 0 } else { knot.rounds + 1 };
            // By then, every value that entered the knot has passed through all its reads.
            let done = knot.rounds > knot.reads.len();
            knot.again = std::mem::replace(&mut knot.is_done, done) && !done;
            knot.goes_on &= !knot.again;
        }
        self.knots = knots;
    }

    /// Whether a read of a knot may read from a changed write outside.
    fn is_fed_from_outside(&self, knot: &Knot, r: usize) -> bool {
        self.writes.iter().any(|&w| {
            !knot.events.has(w)
                && (self.moved[w] || self.is_changed(w))
                && self.may_read(w, r)
                && self.domains.may_read(self.sk, r, w)
        })
    }

    /// Whether the values that a write makes visible changed.
    fn is_changed(&self, w: usize) -> bool {
        self.domains.images.changed[TermPool::term_index(self.domains.seen(self.sk, w))]
    }

    /// Adds values to a read; returns whether it gained some.
    fn extend(&mut self, r: usize) -> bool {
        let knot = self.knots.iter().position(|knot| knot.events.has(r));
        let again = knot.is_some_and(|at| self.knots[at].again);
        // The values of a read that is not listed cannot grow.
        let Some(known) = &self.of_read[r] else {
            return false;
        };
        let (sk, d) = (self.sk, &self.domains);
        let found = self.found.and_then(|found| found.get(&r));
        let can = |v: &i64| found.is_none_or(|found| found.binary_search(v).is_ok());
        let ty = sk.events[r].ty;
        let is_done = knot.is_some_and(|at| self.knots[at].is_done);
        let mut sources = self.writes.iter().filter_map(|&w| {
            let whole = again || self.moved[r] || self.moved[w];
            let may = (whole || self.is_changed(w)) && self.may_read(w, r) && d.may_read(sk, r, w);
            // The read has the other values since earlier rounds.
            may.then(|| d.values(d.seen(sk, w), whole || is_done))
        });
        if let Some(at) = knot.filter(|&at| self.knots[at].is_done) {
            let gains = sources.any(|values| {
                values.is_none_or(|all| {
                    all.iter()
                        .map(|&v| ty.wrap(v))
                        .any(|v| can(&v) && known.binary_search(&v).is_err())
                })
            });
            self.knots[at].goes_on |= gains;
            return false;
        }
        let mut added = Values::new();
        if d.may_fault[r] {
            added.push(0);
        }
        let listed = sources.all(|values| match (values, found) {
            (Some(all), _) => {
                added.extend(all.iter().map(|&v| ty.wrap(v)).filter(can));
                true
            }
            (None, Some(found)) => {
                added.extend(found);
                true
            }
            (None, None) => false,
        });
        added.retain(|v| known.binary_search(v).is_err());
        let gained = !listed || !added.is_empty();
        self.stale[r] = gained;
        let known = self.of_read[r].as_mut().expect("it is listed");
        if !added.is_empty() {
            known.append(&mut added);
            *known = distinct(std::mem::take(known));
        }
        if !listed || known.len() > MAX_VALUES {
            self.of_read[r] = None;
        }
        gained
    }
}

/// Accesses whose values may depend on themselves through writes of other threads, like those of a
/// counter. A value that enters the group travels through each read at most once.
struct Knot {
    events: EventSet,
    reads: Vec<usize>,
    /// Rounds of propagation since a new value entered.
    rounds: usize,
    /// Whether these rounds sufficed; whether they did before and no longer do; whether values
    /// would grow without end.
    is_done: bool,
    again: bool,
    goes_on: bool,
}

impl Knot {
    fn new(n: usize, events: &[usize], reads: &[usize]) -> Knot {
        let reads = reads
            .iter()
            .copied()
            .filter(|r| events.contains(r))
            .collect();
        let mut set = EventSet::empty(n);
        events.iter().for_each(|&e| set.insert(e));
        Knot {
            events: set,
            reads,
            rounds: 0,
            is_done: false,
            again: false,
            goes_on: false,
        }
    }
}

/// Why values are unknown, with the first instruction that causes it.
fn stuck(sk: &Skeleton, why: ImageFailure) -> Reason {
    let ImageFailure::At(term) = why else {
        return Reason::Time;
    };
    // Operands come before the terms that use them.
    let mut rests: Vec<bool> = Vec::new();
    for t in sk.pool.term_ids() {
        rests.push(
            t == term
                || sk
                    .pool
                    .parts(t)
                    .into_iter()
                    .any(|part| rests[TermPool::term_index(part)]),
        );
    }
    Reason::TooManyValues(
        (0..sk.len())
            .find(|e: &usize| {
                let Event {
                    addr, value, guard, ..
                } = sk.events[*e];
                addr.into_iter()
                    .chain(value)
                    .chain(sk.pool.compared(guard))
                    .any(|t| rests[TermPool::term_index(t)])
            })
            .and_then(|e| sk.place(e)),
    )
}

/// Groups of accesses whose values may depend on themselves through writes of other threads.
pub fn self_dependent(sk: &Skeleton, may: &dyn Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let (reads, writes) = (accesses(sk, Event::is_read), accesses(sk, Event::is_write));
    // Deliberately coarse: dynamic addresses may reach anything.
    let mut graph = petgraph::graphmap::DiGraphMap::<usize, ()>::new();
    for &(r, w, _) in sk.edges.of(EdgeKind::Flow) {
        graph.add_edge(r.index(), w.index(), ());
    }
    for &w in &writes {
        for &r in reads.iter().filter(|&&r| may(w, r)) {
            let (x, y) = (
                constant_memory(sk, &sk.events[w]),
                constant_memory(sk, &sk.events[r]),
            );
            if x.is_none() || y.is_none() || x == y {
                graph.add_edge(w, r, ());
            }
        }
    }
    petgraph::algo::tarjan_scc(&graph)
        .into_iter()
        .filter(|scc| scc.len() > 1)
        .collect()
}

/// The memory of an access with a constant address.
fn constant_memory(sk: &Skeleton, e: &Event) -> Option<CellId> {
    let cell = e
        .addr
        .and_then(|a| sk.pool.as_const(a))
        .and_then(|a| sk.memory.cell_at(a, e.ty.bytes()));
    cell.map(|c| sk.memory.cell(c).memory)
}

/// The events of a kind.
fn accesses(sk: &Skeleton, kind: fn(&Event) -> bool) -> Vec<usize> {
    (0..sk.len())
        .filter(|&i| kind(&sk.events[i]))
        .collect::<Vec<_>>()
}

/// Whether every value that the writes of a group derive from its reads is one of them, plus or
/// minus a constant.
fn only_shifts(sk: &Skeleton, group: &[usize]) -> bool {
    let values = group
        .iter()
        .filter(|&&e| sk.events[e].is_write())
        .filter_map(|&e| sk.events[e].value);
    // Each term, and whether it is inside an operation other than a shift.
    let mut open: Vec<(TermId, bool)> = values.map(|t| (t, false)).collect();
    let mut seen: BTreeSet<(usize, bool)> = BTreeSet::new();
    while let Some((t, opaque)) = open.pop() {
        if !seen.insert((TermPool::term_index(t), opaque)) {
            continue;
        }
        match sk.pool.term(t) {
            Term::Const(_) => {}
            Term::Read(e) if opaque && group.contains(&e.index()) => return false,
            Term::Read(_) => {}
            Term::Cast(_, a) => open.push((a, opaque)),
            Term::Fused(_, three) => open.extend(three.map(|t| (t, true))),
            Term::Ite(_, a, b) => open.extend([(a, opaque), (b, opaque)]),
            Term::Bin(op, _, a, b) => {
                let shift = match op {
                    BinOp::Add => sk.pool.as_const(a).is_some() || sk.pool.as_const(b).is_some(),
                    BinOp::Sub => sk.pool.as_const(b).is_some(),
                    _ => false,
                };
                open.extend([(a, opaque || !shift), (b, opaque || !shift)]);
            }
        }
    }
    true
}

/// Constants that a program's conditions compare with: a value out of thin air could be tested
/// against them.
pub fn compared_constants(sk: &Skeleton) -> Vec<i64> {
    let mut constants = BTreeSet::new();
    let mut conds: Vec<Cond> = sk.events.iter().map(|e| e.guard).collect();
    conds.push(sk.complete);
    for c in conds {
        constants.extend(sk.pool.compared(c).filter_map(|t| sk.pool.as_const(t)));
    }
    constants.into_iter().collect()
}
