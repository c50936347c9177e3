//! Detects that an unrolled thread is back in an earlier state, and counts loop iterations against
//! the bound.
//!
//! A thread that jumps back is *back where it was* under two conditions. An earlier visit to that
//! instruction found the same values in all registers that are still needed. And since then the
//! thread did nothing that others can notice, except to write what it had read ([`super::kept`]).
//! The iterations between, a *round*, can be left out of any execution.
//!
//! A thread that continues without end and without effect can repeat a single round. In it, each
//! read returns a value that it returns there infinitely often. To see it, leave out all rounds
//! before the first state that recurs without end, and from there take the shortest path back to
//! it. The argument is only about states and jumps. So it holds for nested loops, for loops with
//! several entries, and for rounds of several iterations.
//!
//! A round with a read that may race (`racing`) must be present for the race to show. One of two
//! such rounds in a row can be left out. A race involves a read in one of them, and remains without
//! the other, because the removed events order nothing.
//!
//! Threads that meet in a round, at a barrier or to exchange values, can leave it out together
//! ([`crate::skeleton::meetings::barrier`]). This module only records when each of them is back
//! where it was.
//!
//! An iteration does not count against the bound if constants decided a branch that could have
//! ended the loop, and they changed since the last time. An example is `i < 4` in `for (i = 0; i <
//! 4; i++)`. Such a loop is unrolled to its end, unless it takes more than [`MAX_COUNTED`]
//! iterations; then its iterations count like those of other loops.
//!
//! # Invariants
//! - A visit has its guard. Every execution takes one path, so the guards of two positions hold
//!   together exactly if the path leads through both.
//! - After as many iterations as the bound allows, a thread continues while others can notice
//!   nothing. It is cut at the first noticeable action, so a thread that leaves the loop before is
//!   not cut.

use rustc_hash::FxHashMap;

use super::state::UnrollState;
use crate::skeleton::loops::{Jump, Loops, Position};
use crate::skeleton::pool::{Cond, TermId, TermPool};
use program::{CmpOp, RegId, Ty};

/// Loops that surely end are unrolled up to this number of iterations, whatever the bound.
pub(crate) const MAX_COUNTED: u32 = 256;
/// The largest number of iterations in a round.
const MAX_ROUND: u32 = 64;

/// A state at an instruction to which a jump leads back.
pub(crate) struct Visit {
    pub(crate) guard: Cond,
    pub(crate) regs: Vec<TermId>,
}

/// An iteration of a loop during unrolling.
#[derive(Clone, Copy, Default)]
struct Iteration {
    /// How many earlier iterations count against the bound.
    spent: u32,
    /// Whether this one does not count.
    free: bool,
}

/// The conditions under which an instruction does something that others can notice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct VisibleEffect {
    /// It does more than write the value that was there.
    pub(crate) changes: Cond,
    /// It writes the value that was there.
    pub(crate) keeps: Cond,
    /// It meets other threads.
    pub(crate) meets: Cond,
    /// It performs a read that may race.
    pub(crate) shows: Cond,
}

impl VisibleEffect {
    pub(crate) const NONE: VisibleEffect = VisibleEffect {
        changes: Cond::FALSE,
        keeps: Cond::FALSE,
        meets: Cond::FALSE,
        shows: Cond::FALSE,
    };

    /// An effect that changes the state of others.
    pub(crate) fn when(changes: Cond) -> VisibleEffect {
        VisibleEffect {
            changes,
            ..VisibleEffect::NONE
        }
    }

    /// An effect that meets other threads.
    pub(crate) fn meeting(meets: Cond) -> VisibleEffect {
        VisibleEffect {
            meets,
            ..VisibleEffect::NONE
        }
    }
}

/// Iterations that bring a thread back where it was.
pub(crate) struct Round {
    /// The position at which they begin.
    pub(crate) from: Position,
    /// The number of iterations.
    pub(crate) length: u32,
    pub(crate) when: Cond,
    /// Whether they contain a write of the value that was there.
    pub(crate) keeps: bool,
    pub(crate) how: RoundRemoval,
}

/// The threads that can leave a round out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoundRemoval {
    /// Its thread alone.
    Alone,
    /// No thread yet: one such round has to remain.
    First,
    /// All threads that meet in it together; one such round has to remain if something in it may
    /// race.
    Together { shows: bool },
}

/// The history of the current thread.
#[derive(Default)]
pub(crate) struct VisitHistory {
    visits: FxHashMap<Position, Visit>,
    /// Noticeable effects, with their places, in the order of positions.
    effects: Vec<(Position, VisibleEffect)>,
    iterations: FxHashMap<Vec<u32>, Iteration>,
    /// By loop and branch that may count its iterations: the values that decided it the last time.
    decided: FxHashMap<(Vec<u32>, usize), Vec<Option<i64>>>,
}

impl VisitHistory {
    /// Records that a state reached a position.
    pub(crate) fn arrives(&mut self, at: &Position, state: &UnrollState, loops: &Loops) {
        for iteration in at.iterations() {
            if self.iterations.contains_key(iteration) {
                continue;
            }
            let (number, around) = iteration.split_last().expect("an iteration has a number");
            let before = number
                .checked_sub(1)
                .map(|n| self.iterations[&[around, &[n]].concat()]);
            let spent = before.map_or(0, |i| i.spent + u32::from(!i.free));
            self.iterations
                .insert(iteration.to_vec(), Iteration { spent, free: false });
        }
        if loops.is_head(at.pc()) {
            let visit = Visit {
                guard: state.guard,
                regs: state.regs.clone(),
            };
            self.visits.insert(at.clone(), visit);
        }
    }

    /// Records a noticeable effect of an instruction.
    pub(crate) fn does(&mut self, at: &Position, effect: VisibleEffect) {
        if effect != VisibleEffect::NONE && at.iterations().next().is_some() {
            self.effects.push((at.clone(), effect));
        }
    }

    /// The number of counted iterations before the position's current one, for the loop with the
    /// most; and the rank of its head.
    pub(crate) fn spent(&self, at: &Position) -> (u32, u32) {
        let all = at
            .iterations()
            .map(|i| (self.iterations[i].spent, i[i.len() - 2]));
        all.max_by_key(|(spent, _)| *spent).unwrap_or((0, 0))
    }

    /// As [`VisitHistory::spent`], for the loop at `round`, after the position's current iteration.
    pub(crate) fn spent_after(&self, at: &Position, round: usize) -> u32 {
        let iteration =
            &self.iterations[[at.around(round), &[at.number(round)]].concat().as_slice()];
        iteration.spent + u32::from(!iteration.free)
    }

    /// Records that a branch which may count the iterations of a loop was decided, with the
    /// constant values of its counters. Returns the loop if it took too many such iterations.
    pub(crate) fn decided(
        &mut self,
        at: &Position,
        round: usize,
        by: &[Option<i64>],
    ) -> Option<u32> {
        let key = (at.around(round).to_vec(), at.pc());
        if self.decided.get(&key).is_none_or(|last| last != by) {
            let iteration = [at.around(round), &[at.number(round)]].concat();
            let iteration = self
                .iterations
                .get_mut(&iteration)
                .expect("it has arrived there");
            iteration.free = true;
            if at.number(round) - iteration.spent >= MAX_COUNTED {
                return Some(at.head(round));
            }
            self.decided.insert(key, by.to_vec());
        }
        None
    }

    /// The visit at this position.
    pub(crate) fn visit(&self, at: &Position) -> Option<&Visit> {
        self.visits.get(at)
    }

    /// The rounds that end with a jump from `state` to `to`, in another iteration of the loop at
    /// `round`. They exclude each other; the latest beginning takes precedence. A round that may
    /// race is left out only if it occurs twice in a row. With `seen`, this holds instead for a
    /// round that writes the value that was there. First occurrences exclude nothing, and neither
    /// do rounds of several threads.
    pub(crate) fn rounds(
        &self,
        pool: &mut TermPool,
        state: &UnrollState,
        loops: &Loops,
        jump: Jump<'_>,
        seen: bool,
    ) -> Vec<Round> {
        let Jump { to, round } = jump;
        let next = to.number(round);
        let (mut open, mut keeps) = (state.guard, Cond::FALSE);
        let (mut meets, mut shows) = (Cond::FALSE, Cond::FALSE);
        let mut effects = self.effects.iter().rev().peekable();
        let mut found = Vec::new();
        for number in (next.saturating_sub(MAX_ROUND)..next).rev() {
            let from = to.at_number(round, number);
            while let Some((_, effect)) = effects.next_if(|(at, _)| *at >= from) {
                let none = pool.not(effect.changes);
                open = pool.and(open, none);
                keeps = pool.or(keeps, effect.keeps);
                meets = pool.or(meets, effect.meets);
                shows = pool.or(shows, effect.shows);
            }
            if open == Cond::FALSE {
                break;
            }
            let Some(visit) = self.visits.get(&from) else {
                continue;
            };
            let mut back = pool.and(open, visit.guard);
            for (i, (&old, &new)) in visit.regs.iter().zip(&state.regs).enumerate() {
                if back != Cond::FALSE && old != new && loops.is_live(to.pc(), RegId(i as u16)) {
                    let same = pool.cmp(CmpOp::Eq, Ty::WORD, old, new);
                    back = pool.and(back, same);
                }
            }
            let length = next - number;
            let round = |when, keeps, how| Round {
                from: from.clone(),
                length,
                when,
                keeps,
                how,
            };
            let met = pool.and(back, meets);
            if met != Cond::FALSE {
                let shows = pool.and(met, shows) != Cond::FALSE;
                found.push(round(
                    met,
                    pool.and(met, keeps) != Cond::FALSE,
                    RoundRemoval::Together { shows },
                ));
            }
            let alone = pool.not(meets);
            let alone = pool.and(back, alone);
            let twice = if seen { keeps } else { shows };
            // A first round of half this length means that the iterations before it form such a
            // round, too.
            let halves = found
                .iter()
                .filter(|r| r.how == RoundRemoval::First && 2 * r.length == length);
            let half = halves.fold(Cond::FALSE, |half, r| pool.or(half, r.when));
            let once = pool.not(twice);
            let enough = pool.or(once, half);
            let changes = pool.not(keeps);
            for (which, keeps) in [(changes, false), (keeps, true)] {
                let when = pool.and(alone, which);
                found.push(round(pool.and(when, twice), keeps, RoundRemoval::First));
                let when = pool.and(when, enough);
                let on = pool.not(when);
                open = pool.and(open, on);
                found.push(round(when, keeps, RoundRemoval::Alone));
            }
        }
        found.retain(|r| r.when != Cond::FALSE);
        found
    }
}
