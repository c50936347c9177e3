//! Barriers of a run, and meetings of lanes.
//!
//! # Invariants
//! - The same threads complete each phase of a barrier in every execution, or the run is given up.

use super::super::barriers::BarrierKey;
use super::{EarlyEnd, Ended, NamedBarrier, SteadyRun, Turn, unsteady};
use program::{ATTENDED, Attendance, Barrier, BarrierAction, BarrierNaming, Expr, Op, Tag};

impl SteadyRun<'_> {
    /// The key, the members and the count of a barrier.
    fn named(&self, t: usize, at: usize, barrier: &Barrier) -> Ended<NamedBarrier> {
        let instr = self.instr(t, at);
        let BarrierNaming::Counted { id, count } = &barrier.naming else {
            return unsteady(instr, "a barrier of a published suite");
        };
        let known = |e: &Expr| self.eval(t, e);
        let lanes = barrier.lanes.as_ref().map(known);
        let count = count.as_ref().map(known);
        let (Some(id), true) = (known(id), count != Some(None) && lanes != Some(None)) else {
            return unsteady(instr, "a barrier that an unknown value names");
        };
        let (count, lanes) = (count.flatten(), lanes.flatten());
        let Some(group) = self.mates.get(&barrier.domain).map(|all| &all[t]) else {
            return unsteady(instr, "a barrier of this scope");
        };
        let members = group.iter().enumerate();
        let members =
            members.filter(|(rank, _)| lanes.is_none_or(|lanes| lanes >> (*rank).min(63) & 1 == 1));
        Ok(NamedBarrier {
            key: BarrierKey {
                domain: barrier.domain,
                group: group[0],
                id,
                lanes,
            },
            members: members.map(|(_, u)| *u).collect(),
            count,
        })
    }

    /// A barrier of threads.
    pub(super) fn barrier(&mut self, t: usize, at: usize, barrier: &Barrier) -> Ended<Turn> {
        let instr = self.instr(t, at);
        let named = self.named(t, at, barrier)?;
        let state = self.barriers.barrier(named.key);
        let arrived = state.arrived.contains(&t);
        let waits_in = match barrier.action {
            BarrierAction::Wait => state.last.get(&t).copied(),
            _ if self.threads[t].in_vain == Some(at) => state.last.get(&t).copied(),
            _ => None,
        };
        if let Some(phase) = waits_in {
            return Ok(self.released(t, at, &named, phase));
        }
        if arrived || barrier.action == BarrierAction::Wait {
            return unsteady(instr, "out of turn");
        }
        if *state.count.get_or_insert(named.count) != named.count {
            return unsteady(instr, "with another count than before");
        }
        state.users.insert(t);
        if named
            .count
            .is_some_and(|count| state.users.len() as i64 > count)
        {
            return unsteady(instr, "by more threads than its count");
        }
        self.tick(t);
        self.takes_turn(t, at, barrier.domain);
        let is_plain = barrier.action == BarrierAction::Sync && named.members.contains(&t);
        if !is_plain || barrier.is_collective() {
            self.doubt(t, at, "not all rules of this barrier are checked");
        }
        let known = &self.clocks[t];
        let state = self.barriers.barrier(named.key);
        let phase = state.complete.len();
        if known.phases.get(&state.index).copied().unwrap_or(0) != phase as i64 {
            return unsteady(instr, "possibly in an earlier phase");
        }
        match barrier.arrive.has(Tag::Relaxed) {
            true => {
                state.present.join_relaxed(known);
                let released = self.threads[t].released.iter();
                state.present.objects.extend(released);
            }
            false => state.present.join(known),
        }
        state.arrived.push(t);
        state.last.insert(t, phase);
        if barrier.action == BarrierAction::Arrive {
            self.completes(t, at, &named);
            return Ok(Turn::On);
        }
        self.threads[t].in_vain = Some(at);
        Ok(self.released(t, at, &named, phase))
    }

    /// Completes the present phase of a barrier if all have arrived.
    fn completes(&mut self, t: usize, at: usize, named: &NamedBarrier) {
        let state = self.barriers.barrier(named.key);
        let all = match named.count {
            Some(count) => state.arrived.len() as i64 >= count,
            None => named
                .members
                .iter()
                .all(|u| state.arrived.contains(u) || self.threads[*u].ended),
        };
        if all && !state.arrived.is_empty() {
            let is_full = named.members.iter().all(|u| state.arrived.contains(u));
            state.advance();
            self.events += 1;
            if named.count.is_none() && !is_full {
                self.doubt(t, at, "some threads have ended in front of it");
            }
        }
    }

    /// Lets a thread pass a barrier if the phase of its arrival is complete.
    fn released(&mut self, t: usize, at: usize, named: &NamedBarrier, phase: usize) -> Turn {
        self.completes(t, at, named);
        let state = self.barriers.barrier(named.key);
        let Some(given) = state.complete.get(phase) else {
            self.threads[t].in_vain = Some(at);
            return Turn::Waits;
        };
        self.clocks[t].join(given);
        self.tick(t);
        Turn::On
    }

    /// A meeting of threads, which exchange values.
    pub(super) fn meet(&mut self, t: usize, at: usize) -> Ended<Turn> {
        let instr = self.instr(t, at);
        let asked = |u: usize| {
            let thread = &self.threads[u];
            let code = &self.program.threads[u].code;
            match code.get(thread.pc).map(|instr| &instr.op) {
                Some(Op::Give { among, lanes, .. }) => Some((*among, self.eval(u, lanes))),
                _ => None,
            }
        };
        let Op::Give {
            among, attendance, ..
        } = &instr.op
        else {
            return Ok(Turn::On);
        };
        let own = asked(t);
        let Some((_, Some(lanes))) = own else {
            return unsteady(instr, "among lanes that an unknown value names");
        };
        let Some(group) = self.mates.get(among).map(|all| all[t].clone()) else {
            return unsteady(instr, "a meeting of this scope");
        };
        if *attendance == Attendance::Present {
            return unsteady(instr, "a meeting of those that happen to be there");
        }
        let ranks: Vec<(usize, usize)> = group.into_iter().enumerate().collect();
        let (mut brought, mut came) = (Vec::new(), Vec::new());
        let (mut set, mut absent) = (0, false);
        for (rank, u) in ranks
            .into_iter()
            .filter(|(rank, _)| *rank < 64 && lanes >> rank & 1 == 1)
        {
            if self.threads[u].ended && attendance.spares_ended() {
                absent = true;
                continue;
            }
            if asked(u) != own || self.threads[u].ended {
                self.threads[t].in_vain = Some(at);
                return Ok(Turn::Waits);
            }
            let Op::Give { value, .. } = &self.instr(u, self.threads[u].pc).op else {
                continue;
            };
            set |= 1 << rank;
            brought.push((rank, self.eval(u, value)));
            came.push(u);
        }
        if !came.contains(&t) {
            return Err(EarlyEnd::Misuse(t, at));
        }
        brought.push((usize::from(ATTENDED), Some(set)));
        if absent {
            self.doubt(t, at, "some threads have ended in front of it");
        }
        for u in came {
            self.tick(u);
            self.takes_turn(u, self.threads[u].pc, *among);
            let thread = &mut self.threads[u];
            // A thread that has not come keeps the value of the meeting before.
            thread.brought.resize(usize::from(ATTENDED) + 1, Some(0));
            for (rank, value) in &brought {
                thread.brought[*rank] = *value;
            }
            thread.pc += 1;
        }
        Ok(Turn::On)
    }
}
