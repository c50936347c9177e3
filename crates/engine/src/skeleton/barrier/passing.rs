//! When waits pass, and what comes before them.

use super::phases::{Chosen, conditions};
use super::{BarrierEdges, Rules};
use crate::skeleton::pool::Cond;
use crate::skeleton::unrolled::{Arrival, Naming, Wait};
use cat::rel::EventId;
use program::ThreadId;
use verdict::Reason;

impl Rules<'_> {
    /// When a wait passes, whatever is chosen.
    pub(super) fn passes(&mut self, w: &Wait) -> Result<Cond, Reason> {
        // A chosen phase never lets a wait pass for sure: those barriers stay choices.
        let none = Chosen::nothing(self.out.arrivals.len());
        if let Naming::Counted { .. } = w.at.naming {
            let to = w.at;
            let users = self.users(to).len();
            if self.count_of(to)?.is_some_and(|c| c < users) {
                return Ok(Cond::FALSE);
            }
        }
        self.passes_with(w, &none)
    }

    /// When a wait that is reached lets its thread pass.
    pub(super) fn passes_with(&mut self, w: &Wait, chosen: &Chosen) -> Result<Cond, Reason> {
        let to = w.at;
        let matching = self.matching_arrivals(to);
        match w.at.naming {
            Naming::Instance { quorum: None, .. } => {
                let mut all = Cond::TRUE;
                for (_, a, m) in matching {
                    let pool = self.pool();
                    let here = pool.implies(m, a.guard);
                    all = pool.and(all, here);
                }
                Ok(all)
            }
            Naming::Instance { quorum: Some(q), .. } => {
                let q = self.constant(q, "quorum")?;
                let mut here = Vec::new();
                for (_, a, m) in matching {
                    here.push(self.pool().and(a.guard, m));
                }
                Ok(self.pool().at_least(q, &here))
            }
            Naming::Counted { .. } => {
                let count = self.count_of(to)?;
                let mine = |r: &mut Self, k| r.waits_for(w, k, chosen);
                let full = |r: &mut Self, k| {
                    let in_k = r.in_phase(to, k, chosen);
                    match count {
                        Some(c) => r.pool().at_least(c, &conditions(&in_k)),
                        None => r.all_came(w, &in_k),
                    }
                };
                Ok(self.some_phase(0..matching.len(), mine, full))
            }
        }
    }

    /// When every thread of the group has arrived in a phase, or has ended.
    fn all_came(&mut self, w: &Wait, in_phase: &[(ThreadId, Cond)]) -> Cond {
        let mut all = Cond::TRUE;
        for t in self.program.thread_ids() {
            if self.same_group(w.at.group, w.at.thread, t) {
                let arrived = self.arrived(t, in_phase);
                let ended = self.ended(t);
                let came = self.pool().or(ended, arrived);
                all = self.pool().and(all, came);
            }
        }
        all
    }

    /// When a thread runs to its end.
    pub(super) fn ended(&self, thread: ThreadId) -> Cond {
        self.out.endings[thread.0 as usize].done
    }

    /// The events that come before a wait because their thread has to end before it passes: those of threads of the
    /// group that do not arrive in the phase waited for, if the barrier waits for all that have not ended.
    pub(super) fn exits(&mut self, w: &Wait, chosen: &Chosen, result: &mut BarrierEdges) -> Result<(), Reason> {
        let to = w.at;
        if !matches!(w.at.naming, Naming::Counted { .. }) || self.count_of(to)?.is_some() {
            return Ok(());
        }
        for t in self.program.thread_ids() {
            if t == w.at.thread || !self.same_group(w.at.group, w.at.thread, t) {
                continue;
            }
            let mine = |r: &mut Self, k| r.waits_for(w, k, chosen);
            let missing = |r: &mut Self, k| {
                let in_k = r.in_phase(to, k, chosen);
                let arrived = r.arrived(t, &in_k);
                r.pool().not(arrived)
            };
            let absent = self.some_phase(self.phases(), mine, missing);
            if absent == Cond::FALSE {
                continue;
            }
            for i in 0..self.out.events.len() {
                let (id, thread, guard) = (EventId::new(i), self.out.events[i].thread, self.out.events[i].guard);
                if thread != Some(t) {
                    continue;
                }
                let pool = self.pool();
                let care = pool.and(guard, w.reached);
                if pool.and(care, absent) != Cond::FALSE {
                    let cond = pool.restrict(absent, care);
                    result.exits.push((id, w.event, cond));
                    result.order.push((id, w.event, cond));
                }
            }
        }
        Ok(())
    }

    /// When arrival `i` is ordered before the wait, given that both execute.
    pub(super) fn synchronises(
        &mut self,
        i: usize,
        a: &Arrival,
        w: &Wait,
        chosen: &Chosen,
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
                let arrives = |r: &mut Self, k| r.phase_is(i, a, k, chosen);
                let same = self.some_phase(self.phases(), arrives, |r, k| r.waits_for(w, k, chosen));
                let cond = self.pool().and(m, same);
                // Only matters when both execute.
                let care = self.pool().and(a.guard, w.reached);
                Ok(self.pool().restrict(cond, care))
            }
        }
    }
}
