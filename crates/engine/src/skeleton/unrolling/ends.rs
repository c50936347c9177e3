//! Finds the ways in which threads end, for questions about progress
//! ([`progress`](crate::skeleton::progress)).

use rustc_hash::FxHashMap;

use super::returns::VisitHistory;
use super::state::UnrollState;
use super::unroll::Unroller;
use super::unrolled::{Naming, ThreadEndings, Unrolling};
use crate::skeleton::loops::{Jump, Loops, Position};
use crate::skeleton::pool::{Cond, TermId};
use crate::skeleton::progress::{BlockedAt, ProgressFacts, Repeat, SpinIteration, ThreadProgress};
use cat::rel::EventId;
use program::{CmpOp, EventKind, Program, RegId, ThreadId, Ty};
use verdict::Reason;

/// Collects the facts about progress from an unrolling.
pub(crate) fn collect(
    program: &Program,
    out: &mut Unrolling,
    partners: Vec<(EventId, EventId, Cond)>,
) -> ProgressFacts {
    let endings: Vec<ThreadEndings> = out.endings.clone();
    let mut threads = Vec::new();
    for (t, ending) in endings.into_iter().enumerate() {
        let mut blocked = Vec::new();
        for w in out
            .waits
            .clone()
            .iter()
            .filter(|w| w.at.thread.0 as usize == t)
        {
            let stuck = out.pool.not(w.pass);
            let stuck = out.pool.and(w.reached, stuck);
            if stuck != Cond::FALSE {
                blocked.push((BlockedAt::Barrier(w.event), stuck));
            }
        }
        blocked.extend(
            ending
                .progress
                .apart
                .into_iter()
                .map(|(apart, stuck)| (BlockedAt::Lanes(apart), stuck)),
        );
        // A thread can first stop before its first instruction; without instructions it executes
        // nothing.
        let started = match ending.progress.stopped.first() {
            Some(&(_, first)) => out.pool.not(first),
            None => Cond::constant(!program.threads[t].code.is_empty()),
        };
        threads.push(ThreadProgress {
            done: ending.done,
            cut: ending.cut,
            started,
            blocked,
            spins: ending.progress.spins,
            repeats: ending.progress.repeats,
            stopped: ending.progress.stopped,
        });
    }
    ProgressFacts { threads, partners }
}

impl Unroller<'_> {
    /// Records a thread that ends in a round without effect, which began at `from`, in `state`.
    pub(crate) fn spins(
        &mut self,
        state: &UnrollState,
        from: &Position,
        thread: ThreadId,
    ) -> Result<(), Reason> {
        let inside = |place: &Position| place >= from;
        self.not_for_ever(state.guard, thread, &inside);
        let events = self
            .placed(thread)
            .filter(|(_, place)| inside(place))
            .map(|(e, _)| *e)
            .collect();
        self.endings.spins.push(SpinIteration {
            cond: state.guard,
            header: from.pc(),
            events,
        });
        self.ends(state)
    }

    /// Records the queries that a thread repeats without end; whether their answers can stay the
    /// same depends on the queried work.
    pub(crate) fn asks_for_ever(
        &mut self,
        repeats: Cond,
        thread: ThreadId,
        inside: &dyn Fn(&Position) -> bool,
    ) {
        let Unrolling { pool, answers, .. } = &mut self.out;
        for answer in answers
            .iter_mut()
            .filter(|a| a.thread == thread && inside(&a.place))
        {
            answer.for_ever = pool.or(answer.for_ever, repeats);
        }
    }

    /// A weak compare-exchange does not fail spuriously without end (ISO C++
    /// [atomics.types.operations]).
    fn not_for_ever(
        &mut self,
        repeats: Cond,
        thread: ThreadId,
        inside: &dyn Fn(&Position) -> bool,
    ) {
        self.asks_for_ever(repeats, thread, inside);
        for i in 0..self.out.spurious.len() {
            let (of, place, fails) = &self.out.spurious[i];
            if *of == thread && inside(place) {
                let pool = &mut self.out.pool;
                let both = pool.and(repeats, *fails);
                self.out.constraints.push(pool.not(both));
            }
        }
    }

    /// Events of a thread with their places.
    fn placed(&self, thread: ThreadId) -> impl Iterator<Item = &(EventId, Position)> {
        self.out
            .places
            .iter()
            .filter(move |(e, _)| self.out.events[e.index()].thread == Some(thread))
    }

    /// Records that a thread may repeat its last iterations without end, if they are two blocks of
    /// equal content. The thread jumps back to `to` in `state`, in the loop at `round`; `state`
    /// keeps the rest of the executions.
    pub(crate) fn repeats(
        &mut self,
        state: &mut UnrollState,
        jump: Jump<'_>,
        past: &VisitHistory,
        loops: &Loops,
        thread: ThreadId,
    ) -> Result<(), Reason> {
        let Jump { to, round } = jump;
        let (header, executed) = (to.pc(), to.number(round));
        for period in 1..=executed / 2 {
            if state.guard == Cond::FALSE {
                return Ok(());
            }
            let later = executed - period;
            let (from, middle) = (
                to.at_number(round, later - period),
                to.at_number(round, later),
            );
            let (Some(first), Some(second)) = (past.visit(&from), past.visit(&middle)) else {
                continue;
            };
            let registers: Vec<(TermId, TermId)> = (0..second.regs.len())
                .filter(|i| loops.is_live(header, RegId(*i as u16)))
                .map(|i| (second.regs[i], state.regs[i]))
                .collect();
            let pool = &mut self.out.pool;
            let there = pool.and(first.guard, second.guard);
            let mut possible = pool.and(state.guard, there);
            for &(x, y) in &registers {
                let same = pool.cmp(CmpOp::Eq, Ty::WORD, x, y);
                possible = pool.and(possible, same);
            }
            if possible == Cond::FALSE {
                continue;
            }
            let pairs = self.paired(thread, jump, period);
            let same = self.same_content(&pairs);
            let pool = &mut self.out.pool;
            let possible = pool.and(possible, same);
            if possible == Cond::FALSE {
                continue;
            }
            let choice = pool.fresh_choice();
            self.out.constraints.push(pool.implies(choice, possible));
            let on = pool.not(choice);
            let on = pool.and(state.guard, on);
            state.guard = pool.and(possible, choice);
            self.not_for_ever(choice, thread, &|place| *place >= middle);
            self.ends(state)?;
            state.guard = on;
            let range = from..to.clone();
            self.endings.repeats.push(Repeat {
                choice,
                header,
                period,
                pairs,
                registers,
                range,
            });
        }
        Ok(())
    }

    /// The events of the last two blocks of `period` iterations of the loop at `round`, before the
    /// iteration at `to`, paired by place.
    fn paired(
        &self,
        thread: ThreadId,
        jump: Jump<'_>,
        period: u32,
    ) -> Vec<(Option<EventId>, Option<EventId>)> {
        let Jump { to, round } = jump;
        type Pair = (Option<EventId>, Option<EventId>);
        let mut found: FxHashMap<(u32, &[u32], EventKind), Pair> = FxHashMap::default();
        let mut order = Vec::new();
        let later = to.number(round) - period;
        let from = to.at_number(round, later - period);
        for (e, place) in self.placed(thread) {
            let rest = place
                .suffix(to.around(round))
                .and_then(<[u32]>::split_first);
            let Some((&number, rest)) = rest.filter(|_| *place >= from) else {
                continue;
            };
            // An instruction makes at most one event of a kind.
            let key = (
                (number + 2 * period - later) % period,
                rest,
                self.out.events[e.index()].kind,
            );
            let slot = found.entry(key).or_insert_with(|| {
                order.push(key);
                (None, None)
            });
            *(if number < later {
                &mut slot.0
            } else {
                &mut slot.1
            }) = Some(*e);
        }
        order.iter().map(|key| found[key]).collect()
    }

    /// The condition that two blocks have equal content: events, addresses, values, barriers.
    fn same_content(&mut self, pairs: &[(Option<EventId>, Option<EventId>)]) -> Cond {
        let mut all = Cond::TRUE;
        for &(a, b) in pairs {
            let (ga, gb) = (guard_of(&self.out, a), guard_of(&self.out, b));
            let both_or_none = self.out.pool.iff(ga, gb);
            all = self.out.pool.and(all, both_or_none);
            let (Some(a), Some(b)) = (a, b) else { continue };
            let mut equal = Cond::TRUE;
            for (x, y) in content(&self.out, a).into_iter().zip(content(&self.out, b)) {
                let same = self.out.pool.cmp(CmpOp::Eq, Ty::WORD, x, y);
                equal = self.out.pool.and(equal, same);
            }
            let equal = self.out.pool.implies(gb, equal);
            all = self.out.pool.and(all, equal);
        }
        all
    }
}

/// The guard of an event; false without one.
fn guard_of(out: &Unrolling, e: Option<EventId>) -> Cond {
    e.map_or(Cond::FALSE, |e| out.events[e.index()].guard)
}

/// The content of an event in addition to its instruction: address and value, or the name of its
/// barrier.
fn content(out: &Unrolling, e: EventId) -> Vec<TermId> {
    let event = &out.events[e.index()];
    let naming = out
        .arrivals
        .iter()
        .find(|a| a.event == e)
        .map(|a| a.at.naming);
    let naming = naming.or_else(|| out.waits.iter().find(|w| w.event == e).map(|w| w.at.naming));
    match naming {
        None => event.addr.into_iter().chain(event.value).collect(),
        Some(Naming::Counted { id, count }) => [id].into_iter().chain(count).collect(),
        Some(Naming::Instance { id, quorum, .. }) => id.into_iter().chain(quorum).collect(),
    }
}
