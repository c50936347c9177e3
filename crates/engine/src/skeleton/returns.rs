//! Where an unrolled thread has been before: when it is back in the state of an earlier visit, and
//! which iterations of its loops count against the bound.
//!
//! A thread that jumps back is *back where it was* if an earlier visit to that instruction found
//! the same values in all registers that are still needed, and the thread did nothing since that
//! others can notice, or nothing but write what it had read ([`super::kept`]). What lies between, a *round*,
//! can be left out of any execution. One that goes on for ever without effect can go round for ever
//! in a single one, in which each read returns what it returns there again and again: leave out all
//! rounds before the first state that occurs for ever, and from there on walk the shortest way back
//! to it. That speaks of states and of jumps alone, so it holds for nested loops, for loops with
//! several entries, and for rounds of several iterations.
//!
//! A round with a read that may race (`racing`) must be there to be seen to. Of two such rounds in
//! a row one can be left out: a race is of a read in one of them, and stays when the other one is
//! gone, as nothing is ordered by what is gone.
//!
//! Threads that meet in a round, at a barrier or to hand each other values, can leave it out
//! together ([`super::barrier`]); here is only noted when each of them is back where it was.
//!
//! An iteration does not count against the bound if a branch that could have ended the loop was
//! decided by numbers, other ones than the last time: `i < 4` in `for (i = 0; i < 4; i++)`. Such a
//! loop is unrolled to its end, unless it takes more than [`MAX_COUNTED`] iterations; then they
//! count as those of other loops do.
//!
//! # Invariants
//! - A visit has its guard. Every execution takes one path, so the guards of two positions hold
//!   together just if the path leads through both.
//! - After as many iterations as the bound allows, a thread goes on as long as nobody can notice,
//!   and is cut where somebody could: who leaves the loop by then is not cut.

use rustc_hash::{FxHashMap, FxHashSet};

use super::loops::{Loops, Position};
use super::pool::{Cond, Pool, TermId};
use super::unroll::State;
use program::{CmpOp, RegId, ThreadId, Ty};

/// Loops that are known to end are unrolled up to this many iterations, whatever the bound.
pub(crate) const MAX_COUNTED: u32 = 256;
/// Rounds of more iterations than this are not looked for.
const MAX_ROUND: u32 = 64;

/// Loops that take too many iterations to be unrolled to their end, by thread and rank of the head.
pub(super) type LongLoops = FxHashSet<(ThreadId, u32)>;

/// A state at an instruction to which a jump leads back.
pub(super) struct Visit {
    pub(super) guard: Cond,
    pub(super) regs: Vec<TermId>,
}

/// An iteration of a loop, while it is unrolled.
#[derive(Clone, Copy, Default)]
struct Iteration {
    /// How many of those before it count against the bound.
    spent: u32,
    /// Whether it does not count itself.
    free: bool,
}

/// When an instruction does something that others can notice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Effect {
    /// Something else than to write what was there.
    pub(super) changes: Cond,
    /// It writes what was there.
    pub(super) keeps: Cond,
    /// It meets other threads.
    pub(super) meets: Cond,
    /// It reads what may race.
    pub(super) shows: Cond,
}

impl Effect {
    pub(super) const NONE: Effect = Effect {
        changes: Cond::FALSE,
        keeps: Cond::FALSE,
        meets: Cond::FALSE,
        shows: Cond::FALSE,
    };

    /// Something that changes what others see.
    pub(super) fn when(changes: Cond) -> Effect {
        Effect {
            changes,
            ..Effect::NONE
        }
    }

    /// To meet other threads.
    pub(super) fn meeting(meets: Cond) -> Effect {
        Effect {
            meets,
            ..Effect::NONE
        }
    }
}

/// Iterations that bring a thread back where it was.
pub(super) struct Round {
    /// Where they begin.
    pub(super) from: Position,
    /// How many they are.
    pub(super) length: u32,
    pub(super) when: Cond,
    /// Whether something was written in them that was there.
    pub(super) keeps: bool,
    pub(super) how: How,
}

/// Who can leave a round out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Its thread.
    Alone,
    /// Nobody yet: one such round has to be there.
    First,
    /// All that meet in it; one such round has to be there if something in it may race.
    Together { shows: bool },
}

/// Where the present thread has been.
#[derive(Default)]
pub(super) struct Past {
    visits: FxHashMap<Position, Visit>,
    /// When something was done there that others can notice, and when it was to write what was
    /// there; in the order of positions.
    effects: Vec<(Position, Effect)>,
    iterations: FxHashMap<Vec<u32>, Iteration>,
    /// What a branch that may count iterations was decided by the last time, by loop.
    decided: FxHashMap<(Vec<u32>, usize), Vec<Option<i64>>>,
}

impl Past {
    /// Notes that a state stands at a position.
    pub(super) fn arrives(&mut self, at: &Position, state: &State, loops: &Loops) {
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

    /// Notes when an instruction does something that others can notice.
    pub(super) fn does(&mut self, at: &Position, effect: Effect) {
        if effect != Effect::NONE && at.iterations().next().is_some() {
            self.effects.push((at.clone(), effect));
        }
    }

    /// How many iterations that count lie before the one that a position is in, of the loop with
    /// the most; and the rank of its head.
    pub(super) fn spent(&self, at: &Position) -> (u32, u32) {
        let all = at
            .iterations()
            .map(|i| (self.iterations[i].spent, i[i.len() - 2]));
        all.max_by_key(|(spent, _)| *spent).unwrap_or((0, 0))
    }

    /// The same after the iteration of the loop at `round` that a position is in.
    pub(super) fn spent_after(&self, at: &Position, round: usize) -> u32 {
        let iteration =
            &self.iterations[[at.around(round), &[at.number(round)]].concat().as_slice()];
        iteration.spent + u32::from(!iteration.free)
    }

    /// Notes that a branch which may count the iterations of a loop was decided, by what its
    /// counters hold where that are numbers. Answers with the loop if it took too many such
    /// iterations.
    pub(super) fn decided(
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

    /// The visit to an instruction in another iteration.
    pub(super) fn visit(&self, at: &Position) -> Option<&Visit> {
        self.visits.get(at)
    }

    /// The rounds that end in a state which jumps back to `to`, in another iteration of the loop at
    /// `round`. They exclude each other, the latest beginning goes first. What may race is left out
    /// where it is done twice in a row, and what writes what was there if that is to be `seen`;
    /// those that are done for the first time exclude nothing, nor do those of several threads.
    pub(super) fn rounds(
        &self,
        pool: &mut Pool,
        state: &State,
        loops: &Loops,
        (to, round): (&Position, usize),
        seen: bool,
    ) -> Vec<Round> {
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
                    How::Together { shows },
                ));
            }
            let alone = pool.not(meets);
            let alone = pool.and(back, alone);
            let twice = if seen { keeps } else { shows };
            // It has been there if what came before was as long.
            let halves = found
                .iter()
                .filter(|r| r.how == How::First && 2 * r.length == length);
            let half = halves.fold(Cond::FALSE, |half, r| pool.or(half, r.when));
            let once = pool.not(twice);
            let enough = pool.or(once, half);
            let changes = pool.not(keeps);
            for (which, keeps) in [(changes, false), (keeps, true)] {
                let when = pool.and(alone, which);
                found.push(round(pool.and(when, twice), keeps, How::First));
                let when = pool.and(when, enough);
                let on = pool.not(when);
                open = pool.and(open, on);
                found.push(round(when, keeps, How::Alone));
            }
        }
        found.retain(|r| r.when != Cond::FALSE);
        found
    }
}
