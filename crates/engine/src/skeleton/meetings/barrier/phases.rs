//! Assigns phases to arrivals at barriers, with free choices if the program does not determine
//! them.

use std::rc::Rc;

use super::{BarrierEdges, BarrierRules, PhaseArrivals};
use crate::skeleton::graph::{EdgeKind, EdgeLists, Edges, MAX_PHASE_CHOICES};
use crate::skeleton::pool::{Cond, TermId};
use crate::skeleton::unrolling::unrolled::{GuardedArrival, GuardedWait, Naming, Use};
use program::ThreadId;
use rustc_hash::FxHashMap;
use verdict::Reason;

/// An arrival, and its index among all arrivals.
pub(super) type IndexedArrival<'x> = (usize, &'x GuardedArrival);

/// Free choices made for arrivals, by index.
pub(super) struct PhaseChoices {
    /// Counted barriers with more threads than their count: `phase[i][k]` means that arrival `i` is
    /// in phase `k`.
    pub(super) phase: Vec<Option<Vec<Cond>>>,
    /// Instance barriers with a quorum: arrival `i` is in the chosen set.
    pub(super) member: Vec<Option<Cond>>,
}

impl PhaseChoices {
    /// No choice for any of `arrivals` arrivals.
    pub(super) fn nothing(arrivals: usize) -> PhaseChoices {
        PhaseChoices {
            phase: vec![None; arrivals],
            member: vec![None; arrivals],
        }
    }
}

impl BarrierRules<'_> {
    /// Makes the free choices of all barriers, with their constraints.
    pub(super) fn choose(&mut self, constraints: &mut Vec<Cond>) -> Result<PhaseChoices, Reason> {
        let arrivals = self.out.arrivals.clone();
        let mut chosen = PhaseChoices::nothing(arrivals.len());
        for (i, a) in arrivals.iter().enumerate() {
            let to = a.at;
            match a.at.naming {
                Naming::Counted { .. } => {
                    if !self.is_determined(to)? {
                        let all = self.matching_arrivals(to).len();
                        if all > MAX_PHASE_CHOICES {
                            return Err(Reason::TooManyPhases(MAX_PHASE_CHOICES));
                        }
                        let phases = self.most_phases(to)?;
                        let within = self.within(a, phases);
                        let phases: Vec<Cond> = (0..phases)
                            .map(|k| {
                                if within.contains(&k) {
                                    self.pool().fresh_choice()
                                } else {
                                    Cond::FALSE
                                }
                            })
                            .collect();
                        let one = self.pool().exactly(1, &phases);
                        constraints.push(self.pool().implies(a.guard, one));
                        chosen.phase[i] = Some(phases);
                    }
                }
                Naming::Instance { .. } => {
                    let matching = self.matching_arrivals(to);
                    let quorums: Vec<TermId> = self.quorums(to);
                    let mut all_needed = true;
                    for q in quorums.iter().copied() {
                        all_needed &= self.constant(q, "quorum")? >= matching.len();
                    }
                    if !quorums.is_empty() && !all_needed {
                        let member = self.pool().fresh_choice();
                        constraints.push(self.pool().implies(member, a.guard));
                        chosen.member[i] = Some(member);
                    }
                }
            }
        }
        self.constrain_phases(&arrivals, &chosen, constraints)?;
        self.constrain_members(&chosen, constraints)?;
        Ok(chosen)
    }

    /// The largest number of phases of the arrivals at this barrier: each phase but the last is
    /// full. A phase for all threads can be full with one arrival, if the other threads have ended;
    /// then all later arrivals belong to that thread. A phase with different counts can be full
    /// with two arrivals.
    fn most_phases(&mut self, to: Use) -> Result<usize, Reason> {
        let counts = self.counts(to)?;
        let least = counts
            .iter()
            .map(|count| count.unwrap_or(2))
            .min()
            .unwrap_or(1);
        let least = if counts.len() > 1 {
            least.min(2)
        } else {
            least
        }
        .max(1);
        let mut of_one: FxHashMap<ThreadId, usize> = FxHashMap::default();
        for (_, a, _) in self.matching_arrivals(to).iter() {
            *of_one.entry(a.at.thread).or_default() += 1;
        }
        let all: usize = of_one.values().sum();
        let alone = if counts.contains(&None) {
            of_one.values().copied().max().unwrap_or(0)
        } else {
            1
        };
        Ok((all - alone) / least + alone)
    }

    /// The range of phases possible for an arrival, out of `phases`: the phases of one thread
    /// increase.
    fn within(&mut self, a: &GuardedArrival, phases: usize) -> std::ops::Range<usize> {
        let (mut first, mut end) = (0, phases);
        for (_, b, m) in self.matching_arrivals(a.at).iter() {
            let also = self.pool().implies(a.guard, b.guard);
            if b.at.thread == a.at.thread && (*m, also) == (Cond::TRUE, Cond::TRUE) {
                first += usize::from(b.event < a.event);
                end -= usize::from(b.event > a.event).min(end);
            }
        }
        first..end
    }

    /// A wait with a quorum passes if enough of the chosen arrivals come, one without if all that
    /// come are chosen.
    fn constrain_members(
        &mut self,
        chosen: &PhaseChoices,
        constraints: &mut Vec<Cond>,
    ) -> Result<(), Reason> {
        let waits = self.out.waits.clone();
        for w in &waits {
            if let Naming::Instance { quorum, .. } = w.at.naming {
                let mut members = Vec::new();
                let mut all = Cond::TRUE;
                for (i, a, m) in self.matching_arrivals(w.at).iter() {
                    let Some(member) = chosen.member[*i] else {
                        continue;
                    };
                    let pool = self.pool();
                    members.push(pool.and(member, *m));
                    let here = pool.and(a.guard, *m);
                    let included = pool.implies(here, member);
                    all = pool.and(all, included);
                }
                if members.is_empty() {
                    continue;
                }
                let enough = match quorum {
                    Some(q) => {
                        let q = self.constant(q, "quorum")?;
                        self.pool().at_least(q, &members)
                    }
                    None => all,
                };
                let passed = self.pool().and(w.reached, w.pass);
                constraints.push(self.pool().implies(passed, enough));
            }
        }
        Ok(())
    }

    /// No phase has more arrivals than complete it, and each but the first follows a full one. If
    /// that one is for all threads, every thread of a later phase arrived in it. No source defines
    /// a phase of arrivals with different counts.
    fn constrain_phases(
        &mut self,
        arrivals: &[GuardedArrival],
        chosen: &PhaseChoices,
        constraints: &mut Vec<Cond>,
    ) -> Result<(), Reason> {
        for (i, a) in arrivals.iter().enumerate() {
            let Some(phases) = &chosen.phase[i] else {
                continue;
            };
            let to = a.at;
            let counts = self.counts(to)?;
            let count = self.count(to)?;
            for (k, &mine) in phases.iter().enumerate() {
                let in_k = self.in_phase(to, k, chosen);
                let here = self.pool().and(a.guard, mine);
                if let Some(count) = count {
                    let mixed = self.mixed(&in_k);
                    let mut alike = in_k.to_vec();
                    alike.retain(|of| self.count(of.0) == Ok(Some(count)));
                    let pool = self.pool();
                    let too_many = pool.at_least(count + 1, &conditions(&in_k));
                    // If others take part, they arrived before these completed the phase.
                    let made_up = pool.at_least(count.max(2), &conditions(&alike));
                    let wrong = pool.ite_cond(mixed, made_up, too_many);
                    let clash = pool.and(here, wrong);
                    constraints.push(pool.not(clash));
                }
                if k > 0 {
                    let before = self.in_phase(to, k - 1, chosen);
                    let full = self.is_full(to, &counts, &before);
                    let came = self.arrived(to.thread, &before);
                    let for_all = self.for_all(&before);
                    let pool = self.pool();
                    let any = pool.at_least(1, &conditions(&before));
                    let full = pool.and(full, any);
                    let came = pool.implies(for_all, came);
                    let follows = pool.and(full, came);
                    constraints.push(pool.implies(here, follows));
                }
            }
            // The phases of one thread increase.
            for (j, b) in arrivals.iter().enumerate() {
                if b.at.thread != a.at.thread || b.event <= a.event {
                    continue;
                }
                let Some(later) = &chosen.phase[j] else {
                    continue;
                };
                let m = self.matches(b.at, to);
                let pool = self.pool();
                let both = pool.and(a.guard, b.guard);
                let both = pool.and(both, m);
                for (k, &mine) in phases.iter().enumerate() {
                    for &not_later in later.iter().take(k + 1) {
                        let clash = pool.and(mine, not_later);
                        let clash = pool.and(clash, both);
                        constraints.push(pool.not(clash));
                    }
                }
            }
        }
        Ok(())
    }

    /// The arrivals at the barrier that may be in phase `k`, each with its condition.
    pub(super) fn in_phase(&mut self, to: Use, k: usize, chosen: &PhaseChoices) -> PhaseArrivals {
        let key = (self.barrier(to), k);
        if let Some(known) = self.in_phase.get(&key) {
            return known.clone();
        }
        let mut list = Vec::new();
        for (i, a, m) in self.matching_arrivals(to).iter() {
            let in_k = self.phase_is((*i, a), k, chosen);
            let pool = self.pool();
            let here = pool.and(a.guard, *m);
            list.push((a.at, pool.and(here, in_k)));
        }
        let list: Rc<[_]> = list.into();
        self.in_phase.insert(key, list.clone());
        list
    }

    /// By thread: the condition that it arrives at the barrier in phase `k`.
    pub(super) fn threads_in_phase(
        &mut self,
        to: Use,
        k: usize,
        chosen: &PhaseChoices,
    ) -> Rc<FxHashMap<ThreadId, Cond>> {
        let key = (self.barrier(to), k);
        if let Some(known) = self.threads_in_phase.get(&key) {
            return known.clone();
        }
        let in_k = self.in_phase(to, k, chosen);
        let threads = Rc::new(self.threads(&in_k));
        self.threads_in_phase.insert(key, threads.clone());
        threads
    }

    /// The condition that the phase is for all running threads of the group: one of them arrived
    /// without a count, and none with another count.
    pub(super) fn for_all(&mut self, in_phase: &[(Use, Cond)]) -> Cond {
        let without = in_phase
            .iter()
            .filter(|a| self.count(a.0) == Ok(None))
            .map(|a| a.1)
            .collect::<Vec<_>>();
        let mixed = self.mixed(in_phase);
        let pool = self.pool();
        let (without, alike) = (pool.at_least(1, &without), pool.not(mixed));
        pool.and(without, alike)
    }

    /// The condition that two of these arrivals give different thread counts.
    pub(super) fn mixed(&mut self, in_phase: &[(Use, Cond)]) -> Cond {
        // At one barrier, arrivals without a count agree.
        let mut given = in_phase.iter().map(|a| self.count(a.0));
        let first = given.next();
        if given.all(|count| Some(count) == first) {
            return Cond::FALSE;
        }
        let mut mixed = Cond::FALSE;
        for (n, &(a, here)) in in_phase.iter().enumerate() {
            for &(b, there) in &in_phase[n + 1..] {
                if self.unlike(a, b) {
                    let both = self.pool().and(here, there);
                    mixed = self.pool().or(mixed, both);
                }
            }
        }
        mixed
    }

    /// By thread: the condition that it is among the arrivals.
    pub(super) fn threads(&mut self, in_phase: &[(Use, Cond)]) -> FxHashMap<ThreadId, Cond> {
        let mut threads = FxHashMap::default();
        for &(of, here) in in_phase {
            let so_far = threads.entry(of.thread).or_insert(Cond::FALSE);
            *so_far = self.pool().or(*so_far, here);
        }
        threads
    }

    /// The condition that a thread is among the arrivals.
    pub(super) fn arrived(&mut self, thread: ThreadId, in_phase: &[(Use, Cond)]) -> Cond {
        let own = in_phase.iter().filter(|a| a.0.thread == thread);
        own.fold(Cond::FALSE, |so_far, a| self.pool().or(so_far, a.1))
    }

    /// By phase: the condition that an arrival is in it, given that it executes. It is in no phase
    /// beyond the list.
    pub(super) fn phases_of(&mut self, a: IndexedArrival<'_>, chosen: &PhaseChoices) -> Rc<[Cond]> {
        let (i, a) = a;
        if let Some(phases) = &chosen.phase[i] {
            return phases.as_slice().into();
        }
        if let Some(known) = self.determined.get(&i) {
            return known.clone();
        }
        let earlier = self.earlier(a.at.thread, a.event, a.at);
        let phases: Rc<[Cond]> = (0..=earlier.len())
            .map(|k| self.pool().exactly(k, &earlier))
            .collect();
        self.determined.insert(i, phases.clone());
        phases
    }

    /// The condition that an arrival is in phase `k`, given that it executes.
    pub(super) fn phase_is(
        &mut self,
        a: IndexedArrival<'_>,
        k: usize,
        chosen: &PhaseChoices,
    ) -> Cond {
        self.phases_of(a, chosen)
            .get(k)
            .copied()
            .unwrap_or(Cond::FALSE)
    }

    /// By phase: the condition that the wait is for it, because its thread's latest arrival is in
    /// that phase. It is for no phase beyond the list.
    pub(super) fn waits_for(&mut self, w: &GuardedWait, chosen: &PhaseChoices) -> Rc<[Cond]> {
        let key = (w.event, w.to_arrive());
        if let Some(known) = self.waited.get(&key) {
            return known.clone();
        }
        let matching = self.matching_arrivals(w.at);
        let own = matching
            .iter()
            .filter(|(_, a, _)| a.at.thread == w.at.thread && a.event < w.event);
        let mut result = Vec::new();
        let mut none_later = Cond::TRUE;
        for (i, a, m) in own.rev() {
            let phases = self.phases_of((*i, a), chosen);
            let pool = self.pool();
            let here = pool.and(a.guard, *m);
            let latest = pool.and(here, none_later);
            result.resize(result.len().max(phases.len()), Cond::FALSE);
            for (so_far, &in_k) in result.iter_mut().zip(phases.iter()) {
                let hit = pool.and(latest, in_k);
                *so_far = pool.or(*so_far, hit);
            }
            let absent = pool.not(here);
            none_later = pool.and(none_later, absent);
        }
        let result: Rc<[Cond]> = result.into();
        self.waited.insert(key, result.clone());
        result
    }

    /// The condition that some phase satisfies both; `second` is evaluated only for phases that can
    /// satisfy the first.
    pub(super) fn some_phase(
        &mut self,
        first: &[Cond],
        mut second: impl FnMut(&mut Self, usize) -> Cond,
    ) -> Cond {
        let mut result = Cond::FALSE;
        for (k, &holds) in first
            .iter()
            .enumerate()
            .filter(|(_, holds)| **holds != Cond::FALSE)
        {
            let also = second(self, k);
            let both = self.pool().and(holds, also);
            result = self.pool().or(result, both);
        }
        result
    }

    /// The condition that arrival `b` is `distance` phases behind `a`, given that they are at one
    /// barrier.
    pub(super) fn is_phases_behind(
        &mut self,
        distance: usize,
        a: IndexedArrival<'_>,
        b: IndexedArrival<'_>,
        chosen: &PhaseChoices,
    ) -> Cond {
        let mine = self.phases_of(a, chosen);
        self.some_phase(&mine, |r, k| r.phase_is(b, k + distance, chosen))
    }

    /// The condition that two arrivals are at one barrier in one phase. Instance barriers have a
    /// single phase.
    pub(super) fn together(
        &mut self,
        a: IndexedArrival<'_>,
        b: IndexedArrival<'_>,
        chosen: &PhaseChoices,
    ) -> Cond {
        let m = self.matches(a.1.at, b.1.at);
        if m == Cond::FALSE || !matches!(a.1.at.naming, Naming::Counted { .. }) {
            return m;
        }
        let same = self.is_phases_behind(0, a, b, chosen);
        self.pool().and(m, same)
    }

    /// Events of one barrier and phase, in either direction.
    pub(super) fn partners(
        &mut self,
        arrivals: &[GuardedArrival],
        chosen: &PhaseChoices,
        edges: &EdgeLists,
    ) -> Edges {
        let waits = edges.of(EdgeKind::Sync).iter();
        let mut partners: Edges = waits
            .flat_map(|&(a, w, c)| [(a, w, c), (w, a, c)])
            .collect();
        for (i, a) in arrivals.iter().enumerate() {
            for (j, b) in arrivals.iter().enumerate().filter(|(j, _)| *j != i) {
                let cond = self.together((i, a), (j, b), chosen);
                if cond != Cond::FALSE {
                    partners.push((a.event, b.event, cond));
                }
            }
        }
        partners
    }

    /// Records arrivals at one barrier with different counts. If the program determines the phases,
    /// no two of them can meet.
    pub(super) fn meets_unlike(
        &mut self,
        a: IndexedArrival<'_>,
        b: IndexedArrival<'_>,
        chosen: &PhaseChoices,
        result: &mut BarrierEdges,
    ) {
        let m = self.matches(a.1.at, b.1.at);
        if chosen.phase[a.0].is_none() || m == Cond::FALSE || !self.unlike(a.1.at, b.1.at) {
            return;
        }
        if a.0 < b.0 {
            result
                .edges
                .add(EdgeKind::UnlikeCount, (a.1.event, b.1.event, m));
            let together = self.together(a, b, chosen);
            result
                .edges
                .add(EdgeKind::UnlikeMet, (a.1.event, b.1.event, together));
        }
    }

    /// The condition that arrival `a` is in the phase right before that of `b`.
    pub(super) fn next_phase(
        &mut self,
        a: IndexedArrival<'_>,
        b: IndexedArrival<'_>,
        chosen: &PhaseChoices,
    ) -> Result<Cond, Reason> {
        let Naming::Counted { .. } = a.1.at.naming else {
            return Ok(Cond::FALSE);
        };
        if a.0 == b.0 {
            return Ok(Cond::FALSE);
        }
        let m = self.matches(a.1.at, b.1.at);
        if m == Cond::FALSE {
            return Ok(m);
        }
        let next = self.is_phases_behind(1, a, b, chosen);
        let cond = self.pool().and(m, next);
        let care = self.pool().and(a.1.guard, b.1.guard);
        Ok(self.pool().restrict(cond, care))
    }
}

/// The conditions of arrivals, without the arrivals.
pub(super) fn conditions(in_phase: &[(Use, Cond)]) -> Vec<Cond> {
    in_phase.iter().map(|a| a.1).collect()
}
