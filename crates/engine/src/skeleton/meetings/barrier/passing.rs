//! Decides when waits pass, and which events come before them.

use super::phases::{PhaseChoices, conditions};
use super::{BarrierEdges, BarrierRules};
use crate::skeleton::graph::EdgeKind;
use crate::skeleton::pool::Cond;
use crate::skeleton::unrolling::unrolled::{GuardedArrival, GuardedWait, Naming, Use};
use cat::rel::EventId;
use program::{Barrier, ThreadId};
use verdict::Reason;

/// Events of threads that do not arrive, each with its condition; and for each such thread the
/// condition that it does not.
type Ended = (Vec<(EventId, Cond)>, Vec<Cond>);

/// Whether a barrier also waits for threads that have ended.
fn awaits_all(to: Use) -> bool {
    Barrier::awaits_ended(to.group.domain)
}

impl BarrierRules<'_> {
    /// The condition that a wait passes, for any choice of phases.
    pub(super) fn passes(&mut self, w: &GuardedWait) -> Result<Cond, Reason> {
        // A chosen phase never makes a wait surely pass: those barriers remain choices.
        let none = PhaseChoices::nothing(self.out.arrivals.len());
        if matches!(w.at.naming, Naming::Counted { .. }) && !self.is_determined(w.at)? {
            return Ok(Cond::FALSE);
        }
        self.passes_with(w, &none)
    }

    /// The condition that a reached wait lets its thread pass.
    pub(super) fn passes_with(
        &mut self,
        w: &GuardedWait,
        chosen: &PhaseChoices,
    ) -> Result<Cond, Reason> {
        let to = w.at;
        let matching = self.matching_arrivals(to);
        match w.at.naming {
            Naming::Instance { quorum: None, .. } => {
                let mut all = Cond::TRUE;
                for (_, a, m) in matching.iter() {
                    let pool = self.pool();
                    let here = pool.implies(*m, a.guard);
                    all = pool.and(all, here);
                }
                for never in self.out.unreached.clone() {
                    let other = self.matches(never, to);
                    let pool = self.pool();
                    let other = pool.not(other);
                    all = pool.and(all, other);
                }
                Ok(all)
            }
            Naming::Instance {
                quorum: Some(q), ..
            } => {
                let q = self.constant(q, "quorum")?;
                let mut here = Vec::new();
                for (_, a, m) in matching.iter() {
                    here.push(self.pool().and(a.guard, *m));
                }
                Ok(self.pool().at_least(q, &here))
            }
            Naming::Counted { .. } => {
                let counts = self.counts(to)?;
                let mine = self.waits_for(w, chosen);
                let barrier = self.barrier(to);
                let mut passes = self.some_phase(&mine, |r: &mut Self, k| {
                    let key = (barrier, k, counts.clone());
                    if let Some(&known) = r.full.get(&key) {
                        return known;
                    }
                    let in_k = r.in_phase(to, k, chosen);
                    let full = r.is_full(to, &counts, &in_k);
                    r.full.insert(key, full);
                    full
                });
                if w.to_arrive() {
                    let earlier = self.earlier(w.at.thread, w.event, to);
                    let pool = self.pool();
                    let first = pool.exactly(0, &earlier);
                    passes = pool.or(passes, first);
                } else if !self.purpose.is_progress() {
                    // No wait remains that would hide undefined behaviour.
                    let early = self.waits_too_early(w)?;
                    passes = self.pool().or(passes, early);
                }
                Ok(passes)
            }
        }
    }

    /// The condition that a phase is complete. Arrivals with and without a count can share a phase.
    /// If their counts differ, the program is undefined, and the phase counts as complete, so that
    /// no wait hides this.
    pub(super) fn is_full(
        &mut self,
        to: Use,
        counts: &[Option<usize>],
        in_phase: &[(Use, Cond)],
    ) -> Cond {
        let mut full = Cond::TRUE;
        for &count in counts {
            let enough = match count {
                Some(c) => self.pool().at_least(c, &conditions(in_phase)),
                None => self.all_came(to, in_phase),
            };
            let mut given = Cond::TRUE;
            if counts.len() > 1 {
                given = Cond::FALSE;
                for (of, here) in in_phase {
                    if self.count(*of) == Ok(count) {
                        given = self.pool().or(given, *here);
                    }
                }
            }
            let pool = self.pool();
            let enough = pool.implies(given, enough);
            full = pool.and(full, enough);
        }
        if counts.len() > 1 {
            let mixed = self.mixed(in_phase);
            full = self.pool().or(full, mixed);
        }
        full
    }

    /// The condition that every thread of the group has arrived in a phase. At a barrier that does
    /// not wait for ended threads, an ended thread counts, too.
    fn all_came(&mut self, to: Use, in_phase: &[(Use, Cond)]) -> Cond {
        let (mut all, threads) = (Cond::TRUE, self.threads(in_phase));
        // From the last thread to the first: diagrams that begin with later decisions are shared.
        let threads_of_program: Vec<ThreadId> = self.program.thread_ids().collect();
        for t in threads_of_program.into_iter().rev() {
            if self.same_group(to.group, to.thread, t) {
                let arrived = threads.get(&t).copied().unwrap_or(Cond::FALSE);
                let ended = if awaits_all(to) {
                    Cond::FALSE
                } else {
                    self.ended(t)
                };
                let came = self.pool().or(ended, arrived);
                all = self.pool().and(came, all);
            }
        }
        all
    }

    /// The condition that a thread runs to its end.
    pub(super) fn ended(&self, thread: ThreadId) -> Cond {
        self.out.endings[thread.0 as usize].done
    }

    /// Adds the events that come before a wait because their thread has to end before it passes.
    pub(super) fn exits(
        &mut self,
        w: &GuardedWait,
        chosen: &PhaseChoices,
        result: &mut BarrierEdges,
    ) -> Result<(), Reason> {
        let mine = self.waits_for(w, chosen);
        let (ended, absent) = self.ended_before(w.at, w.event, w.reached, &mine, chosen)?;
        result
            .absent
            .extend(absent.into_iter().map(|cond| (w.event, w.reached, cond)));
        for (id, cond) in ended {
            let edges = if w.to_arrive() {
                result.edges.of_mut(EdgeKind::Next)
            } else {
                result.edges.of_mut(EdgeKind::Exits)
            };
            edges.push((id, w.event, cond));
            result
                .edges
                .add(EdgeKind::BarrierOrder, (id, w.event, cond));
        }
        Ok(())
    }

    /// Adds the events that come before an arrival because their thread has to end before the
    /// previous phase is complete.
    pub(super) fn exits_to_arrive(
        &mut self,
        i: usize,
        a: &GuardedArrival,
        chosen: &PhaseChoices,
        result: &mut BarrierEdges,
    ) -> Result<(), Reason> {
        // If no phase is chosen, the thread took part in the previous phase and waited.
        if chosen.phase[i].is_some() {
            let mine = self.phases_of((i, a), chosen);
            for (id, cond) in self
                .ended_before(a.at, a.event, a.guard, &mine[1..], chosen)?
                .0
            {
                result
                    .edges
                    .add(EdgeKind::BarrierOrder, (id, a.event, cond));
            }
        }
        Ok(())
    }

    /// The events of threads of the group that are absent from the phase that `event` waits for.
    /// None, unless the barrier waits for all running threads. Also, for each such thread, the
    /// condition that it does not arrive.
    fn ended_before(
        &mut self,
        to: Use,
        event: EventId,
        reached: Cond,
        over: &[Cond],
        chosen: &PhaseChoices,
    ) -> Result<Ended, Reason> {
        let (mut ended, mut threads) = (Vec::new(), Vec::new());
        let counted = matches!(to.naming, Naming::Counted { .. });
        if !counted || awaits_all(to) || !self.counts(to)?.contains(&None) {
            return Ok((ended, threads));
        }
        // Each possible phase: its threads, and the condition that it is complete and for all.
        let mut all = Vec::new();
        for (k, &over) in over
            .iter()
            .enumerate()
            .filter(|(_, over)| **over != Cond::FALSE)
        {
            let in_k = self.in_phase(to, k, chosen);
            let for_all = self.for_all(&in_k);
            let counts = self.pool().and(over, for_all);
            if counts != Cond::FALSE {
                all.push((self.threads_in_phase(to, k, chosen), counts));
            }
        }
        for t in self.program.thread_ids() {
            if t == to.thread || !self.same_group(to.group, to.thread, t) {
                continue;
            }
            let mut absent = Cond::FALSE;
            for (threads, counts) in &all {
                let arrived = threads.get(&t).copied().unwrap_or(Cond::FALSE);
                let pool = self.pool();
                let missing = pool.not(arrived);
                let missing = pool.and(*counts, missing);
                absent = pool.or(absent, missing);
            }
            if absent == Cond::FALSE {
                continue;
            }
            threads.push(self.pool().restrict(absent, reached));
            for i in 0..self.out.events.len() {
                let (id, thread, guard) = (
                    EventId::new(i),
                    self.out.events[i].thread,
                    self.out.events[i].guard,
                );
                if thread != Some(t) || id == event {
                    continue;
                }
                let pool = self.pool();
                let care = pool.and(guard, reached);
                if pool.and(care, absent) != Cond::FALSE {
                    ended.push((id, pool.restrict(absent, care)));
                }
            }
        }
        Ok((ended, threads))
    }

    /// The condition that arrival `i` is ordered before the wait, given that both execute.
    pub(super) fn synchronises(
        &mut self,
        i: usize,
        a: &GuardedArrival,
        w: &GuardedWait,
        chosen: &PhaseChoices,
    ) -> Result<Cond, Reason> {
        let m = self.matches(a.at, w.at);
        if m == Cond::FALSE {
            return Ok(m);
        }
        match w.at.naming {
            Naming::Instance { .. } => Ok(match chosen.member[i] {
                Some(member) => self.pool().and(m, member),
                None => m,
            }),
            Naming::Counted { .. } => {
                let arrives = self.phases_of((i, a), chosen);
                let waited = self.waits_for(w, chosen);
                let same = self.some_phase(&arrives, |_, k| {
                    waited.get(k).copied().unwrap_or(Cond::FALSE)
                });
                let cond = self.pool().and(m, same);
                // The condition only matters if both execute.
                let care = self.pool().and(a.guard, w.reached);
                Ok(self.pool().restrict(cond, care))
            }
        }
    }
}
