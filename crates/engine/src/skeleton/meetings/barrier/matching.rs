//! Decides which operations meet at one barrier, and how many threads it needs.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::{BarrierId, BarrierRules, MatchingArrivals};
use crate::skeleton::pool::{Cond, TermId};
use crate::skeleton::unrolling::unrolled::{BarrierGroup, Naming, Use};
use cat::rel::EventId;
use program::{CmpOp, ThreadId, Ty};
use verdict::Reason;

impl BarrierRules<'_> {
    /// Whether two threads can meet at barriers of a group.
    pub(super) fn same_group(&self, group: BarrierGroup, a: ThreadId, b: ThreadId) -> bool {
        let place = |t| &self.program.thread(t).place;
        a == b
            || (place(a).same(place(b), group.domain)
                && self.takes_part(group, a)
                && self.takes_part(group, b))
    }

    /// Whether a thread is among the named lanes of a group.
    fn takes_part(&self, group: BarrierGroup, t: ThreadId) -> bool {
        group
            .lanes
            .is_none_or(|mask| mask >> self.program.lane(t).min(31) & 1 != 0)
    }

    fn equal(&mut self, a: TermId, b: TermId) -> Cond {
        self.pool().cmp(CmpOp::Eq, Ty::WORD, a, b)
    }

    /// The condition that two barrier operations name the same barrier.
    pub(super) fn matches(&mut self, a: Use, b: Use) -> Cond {
        if a.group != b.group || !self.same_group(a.group, a.thread, b.thread) {
            return Cond::FALSE;
        }
        match (a.naming, b.naming) {
            (Naming::Counted { id: x, .. }, Naming::Counted { id: y, .. }) => self.equal(x, y),
            (
                Naming::Instance {
                    instance: i, id: x, ..
                },
                Naming::Instance {
                    instance: j, id: y, ..
                },
            ) => match (x, y) {
                _ if i != j => Cond::FALSE,
                (Some(x), Some(y)) => self.equal(x, y),
                _ => Cond::TRUE,
            },
            _ => Cond::FALSE,
        }
    }

    /// The barrier of an operation.
    pub(super) fn barrier(&mut self, of: Use) -> BarrierId {
        let first = match self.firsts.get(&(of.group, of.thread)) {
            Some(&first) => first,
            None => {
                let mut threads = self.program.thread_ids();
                let first = threads.find(|&t| self.same_group(of.group, t, of.thread));
                let first = first.unwrap_or(of.thread);
                self.firsts.insert((of.group, of.thread), first);
                first
            }
        };
        let name = match of.naming {
            Naming::Counted { id, .. } => (None, Some(id)),
            Naming::Instance { instance, id, .. } => (Some(instance), id),
        };
        BarrierId {
            group: of.group,
            first,
            name,
        }
    }

    /// The arrivals that may be at this barrier, each with the condition for it.
    pub(super) fn matching_arrivals(&mut self, to: Use) -> MatchingArrivals {
        let barrier = self.barrier(to);
        if let Some(known) = self.matching.get(&barrier) {
            return known.clone();
        }
        let mut found = Vec::new();
        for i in 0..self.out.arrivals.len() {
            let m = self.matches(self.out.arrivals[i].at, to);
            if m != Cond::FALSE {
                found.push((i, self.out.arrivals[i].clone(), m));
            }
        }
        let found: Rc<[_]> = found.into();
        self.matching.insert(barrier, found.clone());
        found
    }

    /// The value of an operand that is the same in all executions.
    pub(super) fn constant(&self, t: TermId, what: &'static str) -> Result<usize, Reason> {
        let v = self.out.pool.as_const(t).ok_or_else(|| {
            Reason::Unsupported(format!("a barrier's {what} that is not a constant"))
        })?;
        Ok(usize::try_from(v).unwrap_or(0))
    }

    /// The conditions "`of` arrived at this barrier before `event`", one per arrival.
    pub(super) fn earlier(&mut self, of: ThreadId, event: EventId, to: Use) -> Vec<Cond> {
        let mut conds = Vec::new();
        for (_, a, m) in self.matching_arrivals(to).iter() {
            if a.at.thread == of && a.event < event {
                conds.push(self.pool().and(a.guard, *m));
            }
        }
        conds
    }

    /// The thread count that an operation gives.
    pub(super) fn count(&self, of: Use) -> Result<Option<usize>, Reason> {
        let Naming::Counted { count, .. } = of.naming else {
            return Ok(None);
        };
        count.map(|t| self.constant(t, "thread count")).transpose()
    }

    /// The thread counts that operations at this barrier give, each once.
    pub(super) fn counts(&mut self, to: Use) -> Result<Vec<Option<usize>>, Reason> {
        let barrier = self.barrier(to);
        let mut counts = match self.counts.get(&barrier) {
            Some(known) => known.clone(),
            None => {
                let mut counts = BTreeSet::new();
                for (_, a, _) in self.matching_arrivals(to).iter() {
                    counts.insert(self.count(a.at)?);
                }
                self.counts.insert(barrier, counts.clone());
                counts
            }
        };
        counts.insert(self.count(to)?);
        Ok(counts.into_iter().collect())
    }

    /// The number of threads of the program in the barrier's group.
    fn group_size(&self, to: Use) -> usize {
        self.program
            .thread_ids()
            .filter(|&t| self.same_group(to.group, to.thread, t))
            .count()
    }

    /// Whether two arrivals at one barrier give different thread counts. No count means all threads
    /// of the group.
    pub(super) fn unlike(&self, a: Use, b: Use) -> bool {
        self.count_or_all(a) != self.count_or_all(b)
    }

    /// The thread count of an operation; without one, all threads of the group.
    fn count_or_all(&self, of: Use) -> Result<Option<usize>, Reason> {
        self.count(of)
            .map(|c| c.or_else(|| Some(self.group_size(of))))
    }

    /// Whether the program determines the phase of every arrival at this barrier. The phase is then
    /// the number of earlier arrivals of its thread. The reason is that no phase can complete
    /// before every thread with as many arrivals has arrived, and all these give one count.
    pub(super) fn is_determined(&mut self, to: Use) -> Result<bool, Reason> {
        let counts = self.counts(to)?;
        let key = (self.barrier(to), counts);
        if let Some(&known) = self.fixed_phases.get(&key) {
            return Ok(known);
        }
        let fixed = self.fixes_phases(to, &key.1)?;
        self.fixed_phases.insert(key, fixed);
        Ok(fixed)
    }

    /// As [`BarrierRules::is_determined`], for a barrier at which operations give `counts`.
    fn fixes_phases(&mut self, to: Use, counts: &[Option<usize>]) -> Result<bool, Reason> {
        let users = self.users(to);
        if let [only] = counts
            && only.is_none_or(|c| c >= users.len())
        {
            return Ok(true);
        }
        let matching = self.matching_arrivals(to);
        let all = self.group_size(to);
        for k in 0..matching.len() {
            let (mut threads, mut given) = (BTreeSet::new(), BTreeSet::new());
            for (_, a, m) in matching.iter() {
                let earlier = self.earlier(a.at.thread, a.event, a.at);
                let pool = self.pool();
                let here = pool.exactly(k, &earlier);
                let here = pool.and(here, a.guard);
                if pool.and(here, *m) != Cond::FALSE {
                    threads.insert(a.at.thread);
                    given.insert(self.count(a.at)?.unwrap_or(all));
                }
            }
            if given.len() > 1 || given.iter().any(|&c| c < threads.len()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The threads that may arrive at this barrier.
    pub(super) fn users(&mut self, to: Use) -> Vec<ThreadId> {
        let mut users: Vec<ThreadId> = self
            .matching_arrivals(to)
            .iter()
            .map(|(_, a, _)| a.at.thread)
            .collect();
        users.sort_unstable();
        users.dedup();
        users
    }

    /// The quorums of the waits that may be at this barrier.
    pub(super) fn quorums(&mut self, to: Use) -> Vec<TermId> {
        let waits = self.out.waits.clone();
        let mut quorums = Vec::new();
        for w in waits {
            if self.matches(w.at, to) != Cond::FALSE
                && let Naming::Instance {
                    quorum: Some(q), ..
                } = w.at.naming
            {
                quorums.push(q);
            }
        }
        quorums.sort_unstable();
        quorums.dedup();
        quorums
    }
}
