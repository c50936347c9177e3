//! Finds barriers that not all threads of a group reach, or that they reach at different calls.
//!
//! A barrier with a thread count, possible in CUDA C++ through assembly, demands nothing of other
//! threads. Its threads may also reach it at different calls: in PTX, producers arrive in one place
//! and consumers wait in another.

use super::BarrierRules;
use super::aligned::code_of;
use super::phases::PhaseChoices;
use crate::skeleton::pool::Cond;
use crate::skeleton::unrolling::unrolled::{GuardedArrival, Naming, Unrolling};
use cat::rel::EventId;
use diag::Span;
use program::dialect::Convergence;
use program::{Barrier, Program, Scope, ThreadId};

impl BarrierRules<'_> {
    /// Whether barriers apply only to threads that have not ended.
    fn running(&self) -> bool {
        self.program.dialect.row().convergence == Convergence::Running
    }

    /// The condition that a thread of the group meets arrival `i` at another call of their common
    /// code, given that it executes.
    /// - OpenCL C, *Synchronization Functions*: all work-items must reach the barrier.
    /// - CUDA Programming Guide, *Synchronization Functions*: the condition that leads to
    ///   `__syncthreads` must not differ in the block. Threads of a warp may meet wherever their
    ///   masks agree, but each must be in its own mask.
    /// - For threads of several blocks, at a barrier of a cluster or a grid, no source demands
    ///   this. In PTX, `barrier.cluster` demands it only of the threads of a warp.
    pub(super) fn other_call(
        &mut self,
        i: usize,
        a: &GuardedArrival,
        chosen: &PhaseChoices,
    ) -> Cond {
        let lane = self.program.lane(a.at.thread);
        if a.at
            .group
            .lanes
            .is_some_and(|mask| mask >> lane.min(31) & 1 == 0)
        {
            return Cond::TRUE;
        }
        let counted = matches!(a.at.naming, Naming::Counted { count: None, .. });
        if !counted || (self.running() && a.at.group.domain == Scope::Warp) {
            return Cond::FALSE;
        }
        let program = self.program;
        let mine = call_of(program, a.at.thread, a.event, self.out);
        let mut result = Cond::FALSE;
        for (j, b, m) in self.matching_arrivals(a.at).iter() {
            if b.at.thread == a.at.thread
                || !program
                    .thread(b.at.thread)
                    .place
                    .same(&program.thread(a.at.thread).place, Scope::Cta)
                || code_of(program, b.at.thread) != code_of(program, a.at.thread)
                || call_of(program, b.at.thread, b.event, self.out) == mine
            {
                continue;
            }
            let same = self.is_phases_behind(0, (i, a), (*j, b), chosen);
            let pool = self.pool();
            let here = pool.and(b.guard, *m);
            let both = pool.and(same, here);
            result = pool.or(result, both);
        }
        self.pool().restrict(result, a.guard)
    }

    /// The condition that some thread of the group never reaches the barrier of arrival `i`, given
    /// that it executes. In CUDA, a thread that has ended need not arrive. The exception is a
    /// collective of its group: all threads of the group take part (CUDA Programming Guide,
    /// Cooperative Groups, *Collective Operations*). A thread that executes code behind the call
    /// has gone around it and is missed, even if it ends later (*Synchronization Functions*: the
    /// condition must evaluate identically across the block).
    pub(super) fn diverges(&mut self, i: usize, a: &GuardedArrival, chosen: &PhaseChoices) -> Cond {
        let to = a.at;
        if matches!(to.naming, Naming::Counted { count: Some(_), .. }) {
            return Cond::FALSE;
        }
        let instr = self.out.events[a.event.index()].instr;
        let barrier = self.program.thread(a.at.thread).code[instr].op.barrier();
        let spares_ended = self.running() && !barrier.is_some_and(Barrier::is_collective);
        let mut result = Cond::FALSE;
        let mut phases = Vec::new();
        if matches!(a.at.naming, Naming::Counted { .. }) {
            let mine = self.phases_of((i, a), chosen);
            for (k, &mine) in mine
                .iter()
                .enumerate()
                .filter(|(_, mine)| **mine != Cond::FALSE)
            {
                phases.push((mine, self.threads_in_phase(to, k, chosen)));
            }
        }
        for t in self.program.thread_ids() {
            if t == a.at.thread || !self.same_group(a.at.group, a.at.thread, t) {
                continue;
            }
            let arrived = match a.at.naming {
                Naming::Instance { .. } => {
                    let matching = self.matching_arrivals(to);
                    let own = matching.iter().filter(|(_, b, _)| b.at.thread == t);
                    own.fold(Cond::FALSE, |so_far, (_, b, m)| {
                        let here = self.pool().and(b.guard, *m);
                        self.pool().or(so_far, here)
                    })
                }
                Naming::Counted { .. } => {
                    let pool = self.pool();
                    phases.iter().fold(Cond::FALSE, |so_far, (mine, threads)| {
                        let both = pool.and(*mine, threads.get(&t).copied().unwrap_or(Cond::FALSE));
                        pool.or(so_far, both)
                    })
                }
            };
            if arrived == Cond::TRUE {
                continue;
            }
            let gone = if spares_ended {
                self.goes_on_behind(instr, a.at.thread, t)
            } else {
                self.ended(t)
            };
            let stuck = self.stuck(t);
            let over = self.pool().or(stuck, gone);
            let missing = self.pool().not(arrived);
            let never = self.pool().and(missing, over);
            result = self.pool().or(result, never);
        }
        self.pool().restrict(result, a.guard)
    }

    /// When thread `u`, which runs the code of thread `t`, executes an event behind an instruction.
    fn goes_on_behind(&mut self, instr: usize, t: ThreadId, u: ThreadId) -> Cond {
        let code = |t: ThreadId| {
            let code = &self.program.thread(t).code;
            (code.first().map(|c| c.span), code.len())
        };
        if code(t) != code(u) {
            return Cond::FALSE;
        }
        if let Some(&known) = self.behind.get(&(instr, u)) {
            return known;
        }
        let behind = self.events_behind(t, u);
        let behind = behind.into_iter().filter(|event| event.0 > instr);
        let guards: Vec<Cond> = behind.map(|event| event.1).collect();
        let pool = self.pool();
        let any = guards
            .into_iter()
            .fold(Cond::FALSE, |any, guard| pool.or(any, guard));
        self.behind.insert((instr, u), any);
        any
    }
}

/// The position of the instruction of an event in the text.
fn call_of(program: &Program, t: ThreadId, e: EventId, out: &Unrolling) -> Span {
    program.thread(t).code[out.events[e.index()].instr].span
}
