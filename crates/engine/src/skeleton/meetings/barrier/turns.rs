//! Checks that arrivals and waits of one thread take turns, at a barrier for all threads of its
//! group.
//!
//! If arrivals and waits are separate instructions, a thread can execute the wrong one. It can
//! arrive again without a wait, or wait without an arrival. Neither blocks here, so that the
//! undefined behaviour is visible. In questions about progress, a thread that waits without an
//! arrival waits for its own arrival.
//!
//! # Sources
//! - PTX ISA 9.4, *barrier.cluster*: each thread arrives only once before the barrier completes.
//!   After a wait has seen the completion, the thread may arrive again.
//! - CUDA C++ Programming Guide, Cooperative Groups, *barrier_arrive and barrier_wait*: all threads
//!   of the group arrive and wait once per phase. They use the group for nothing else between.

use super::BarrierRules;
use crate::skeleton::graph::Edges;
use crate::skeleton::pool::Cond;
use crate::skeleton::unrolling::unrolled::{GuardedWait, Naming, Use};
use cat::rel::EventId;
use program::BarrierAction;
use verdict::Reason;

/// An arrival or wait of a thread at a barrier.
struct BarrierTurn {
    event: EventId,
    /// The condition that it takes place.
    done: Cond,
    arrives: bool,
}

impl BarrierRules<'_> {
    /// Whether arrivals and waits have to take turns at this barrier, and can fail to.
    fn has_turns(&mut self, at: Use) -> Result<bool, Reason> {
        let for_all = matches!(at.naming, Naming::Counted { count: None, .. });
        let splits = |r: &Self| {
            let code = &r.program.thread(at.thread).code;
            code.iter().filter_map(|i| i.op.barrier()).any(|b| {
                b.takes_turns() && b.domain == at.group.domain && b.action != BarrierAction::Sync
            })
        };
        Ok(for_all && splits(self) && self.counts(at)? == [None])
    }

    /// The arrivals and waits of a thread at a barrier, in program order.
    fn turns(&mut self, at: Use) -> Vec<BarrierTurn> {
        let mut turns = Vec::new();
        for (_, a, m) in self.matching_arrivals(at).iter() {
            if a.at.thread == at.thread {
                let done = self.pool().and(a.guard, *m);
                turns.push(BarrierTurn {
                    event: a.event,
                    done,
                    arrives: true,
                });
            }
        }
        for w in self.out.waits.clone() {
            let m = if w.at.thread == at.thread && !w.to_arrive() {
                self.matches(w.at, at)
            } else {
                Cond::FALSE
            };
            if m != Cond::FALSE {
                let passed = self.pool().and(w.reached, w.pass);
                let done = self.pool().and(passed, m);
                turns.push(BarrierTurn {
                    event: w.event,
                    done,
                    arrives: false,
                });
            }
        }
        turns.sort_by_key(|turn| turn.event);
        turns
    }

    /// The condition that a thread reaches a wait without an arrival since its last one.
    pub(super) fn waits_too_early(&mut self, w: &GuardedWait) -> Result<Cond, Reason> {
        if !self.has_turns(w.at)? {
            return Ok(Cond::FALSE);
        }
        let (mut early, mut none_since) = (Cond::FALSE, Cond::TRUE);
        for turn in self
            .turns(w.at)
            .into_iter()
            .rev()
            .filter(|turn| turn.event < w.event)
        {
            let pool = self.pool();
            if !turn.arrives {
                let last = pool.and(turn.done, none_since);
                early = pool.or(early, last);
            }
            let not = pool.not(turn.done);
            none_since = pool.and(none_since, not);
        }
        Ok(self.pool().or(early, none_since))
    }

    /// Pairs of arrivals, or of waits, of which the second takes the other's turn. A first wait is
    /// related to itself, and so is an arrival of a thread that ends without a wait.
    pub(super) fn out_of_turn(&mut self) -> Result<Edges, Reason> {
        let mut edges = Edges::new();
        let mut seen: Vec<Use> = Vec::new();
        let arrivals = self.out.arrivals.iter().map(|a| a.at);
        let all: Vec<Use> = arrivals
            .chain(self.out.waits.iter().map(|w| w.at))
            .collect();
        for at in all {
            let mut known = seen.iter().filter(|other| other.thread == at.thread);
            if known.any(|other| (other.group, other.naming) == (at.group, at.naming))
                || !self.has_turns(at)?
            {
                continue;
            }
            seen.push(at);
            let turns = self.turns(at);
            for (i, turn) in turns.iter().enumerate() {
                let mut none_since = Cond::TRUE;
                for before in turns[..i].iter().rev() {
                    let pool = self.pool();
                    if before.arrives == turn.arrives {
                        let last = pool.and(before.done, none_since);
                        push(
                            &mut edges,
                            before.event,
                            turn.event,
                            pool.restrict(last, turn.done),
                        );
                    }
                    let not = pool.not(before.done);
                    none_since = pool.and(none_since, not);
                }
                let mut alone = none_since;
                if turn.arrives {
                    alone = turns[i + 1..]
                        .iter()
                        .fold(self.ended(at.thread), |so_far, later| {
                            let pool = self.pool();
                            let not = pool.not(later.done);
                            pool.and(so_far, not)
                        });
                }
                push(
                    &mut edges,
                    turn.event,
                    turn.event,
                    self.pool().restrict(alone, turn.done),
                );
            }
        }
        Ok(edges)
    }
}

fn push(edges: &mut Edges, a: EventId, b: EventId, cond: Cond) {
    if cond != Cond::FALSE {
        edges.push((a, b, cond));
    }
}
