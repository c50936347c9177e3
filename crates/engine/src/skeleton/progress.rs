//! Describes threads that never end, for questions about progress.
//!
//! Unrolled for such a question, a thread ends in exactly one of these ways:
//! - *done*: it ran to its end;
//! - *blocked*: it reached a barrier that does not let it pass, or waits for lanes that never
//!   arrive;
//! - *looping without effect*: one iteration that changes nothing represents all further ones
//!   ([`SpinIteration`]);
//! - *looping with effect*: its last iterations are two consecutive blocks of equal content, and
//!   the later one repeats without end ([`Repeat`]);
//! - *stopped*: the scheduler never runs it again, possibly before its first instruction;
//! - *cut*: the thread reached the loop bound. This is not an end, but a gap in the knowledge.
//!
//! # Invariants
//! - Stopping and repeating are choices of the program. A choice is true only if the thread takes
//!   it, so each execution has one description.
//! - Rules about endless executions use the relations of [`ROWS`]; outside [`Purpose::Progress`]
//!   these do not exist.
//!
//! # Sources
//! - T. Sorensen, L. F. Salvador, H. Raval, H. Evrard, J. Wickerson, M. Martonosi, A. F. Donaldson,
//!   "Specifying and Testing GPU Workgroup Progress Models", OOPSLA 2021: threads that are not
//!   scheduled any more.
//! - Lahav, Namakonov, Oberhauser, Podkopaev, Vafeiadis, "Making Weak Memory Models Fair", OOPSLA
//!   2021: fairness to memory.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::Skeleton;
use super::base::{BaseRel, Build};
use super::graph::Edges;
use super::loops::{Jump, Loops, Position};
use super::pool::{Cond, TermId};
use super::returns::VisitHistory;
use super::unroll::{UnrollState, Unroller};
use super::unrolled::{Naming, ThreadEndings, Unrolling};
use cat::rel::{EventId, Rel};
use program::{CmpOp, EventKind, Program, RegId, Scope, ThreadId, Ty};
use verdict::Reason;

/// The kind of question that a skeleton is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Questions about executions that end.
    Outcomes,
    /// Questions about executions that do not end.
    Progress {
        /// Whether threads may stop without end.
        stops: bool,
        /// Whether registers have a final value wherever the thread ends.
        registers: bool,
    },
}

impl Purpose {
    /// Whether registers have a final value wherever a thread ends.
    pub(super) fn asks_for_registers(self) -> bool {
        matches!(
            self,
            Purpose::Progress {
                registers: true,
                ..
            }
        )
    }

    /// Whether it is [`Purpose::Progress`].
    pub fn is_progress(self) -> bool {
        self != Purpose::Outcomes
    }
}

/// An iteration without effect that a thread may repeat without end.
#[derive(Clone, Debug)]
pub struct SpinIteration {
    /// The condition that the thread ends there.
    pub cond: Cond,
    /// Instruction at which its rounds begin.
    pub header: usize,
    /// Events of the round; those on other paths never execute together with `cond`.
    pub events: Vec<EventId>,
}

/// Two consecutive blocks of iterations with effect; the later one may repeat without end.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// The choice to end there; true only if the blocks have equal content.
    pub choice: Cond,
    /// Instruction at which the loop begins.
    pub header: usize,
    /// Iterations in one block.
    pub period: u32,
    /// Events of the earlier and the later block with the same place in it. A missing one never
    /// executes.
    pub pairs: Vec<(Option<EventId>, Option<EventId>)>,
    /// Needed registers at the end of each block.
    pub registers: Vec<(TermId, TermId)>,
    /// Where the blocks begin, and where they end.
    pub(super) range: Range<Position>,
}

/// A place where a thread can be blocked.
#[derive(Clone, Debug)]
pub enum BlockedAt {
    /// A wait at a barrier.
    Barrier(EventId),
    /// A meeting with lanes to exchange values, at which some never arrive.
    Lanes(LaneWait),
}

/// A place where a thread waits for lanes of its group ([`program::Op::Give`]).
#[derive(Clone, Debug)]
pub struct LaneWait {
    pub(super) place: Position,
    /// The scope of the group.
    pub among: Scope,
    /// The lanes that it names, as a set of bits.
    pub named: TermId,
}

impl LaneWait {
    /// The instruction.
    pub fn instr(&self) -> usize {
        self.place.pc()
    }

    /// Whether both wait at the same place, in the same iterations.
    pub fn is_with(&self, other: &LaneWait) -> bool {
        (&self.place, self.among) == (&other.place, other.among)
    }
}

impl BlockedAt {
    /// The instruction.
    pub fn instr(&self, sk: &Skeleton) -> usize {
        match self {
            BlockedAt::Barrier(wait) => sk.event(*wait).instr,
            BlockedAt::Lanes(apart) => apart.instr(),
        }
    }
}

/// The ways in which one thread can end, each with its condition.
#[derive(Clone, Debug)]
pub struct ThreadProgress {
    /// It runs to its end.
    pub done: Cond,
    /// It reached the loop bound.
    pub cut: Cond,
    /// It executes at least one instruction.
    pub started: Cond,
    /// It is blocked, by place.
    pub blocked: Vec<(BlockedAt, Cond)>,
    /// It loops without effect.
    pub spins: Vec<SpinIteration>,
    /// It loops with effect.
    pub repeats: Vec<Repeat>,
    /// It is stopped, by place: before that instruction, or at the end of its code.
    pub stopped: Vec<(usize, Cond)>,
}

/// The ways in which all threads can end, and the barrier events that belong together.
#[derive(Clone, Debug)]
pub struct ProgressFacts {
    /// By thread.
    pub threads: Vec<ThreadProgress>,
    /// Events of one barrier and phase, in either direction.
    pub partners: Vec<(EventId, EventId, Cond)>,
}

/// A relation about how threads end: pairs of events, each under a condition.
pub(super) type Pairs = fn(&Skeleton, &ProgressFacts) -> Edges;

/// Base relations of rules about endless executions. Sets that depend on the execution are subsets
/// of the identity.
pub(super) const ROWS: &[(&str, &str, Pairs)] = &[
    (
        "repeated",
        "an event that is executed again and again, to itself",
        |_, progress| {
            progress
                .threads
                .iter()
                .flat_map(|thread: &ThreadProgress| {
                    let blocks = thread.repeats.iter().flat_map(|r| {
                        r.pairs
                            .iter()
                            .filter_map(|&(_, later)| Some((later?, later?, r.choice)))
                    });
                    let spins = thread
                        .spins
                        .iter()
                        .flat_map(|s| s.events.iter().map(|&e| (e, e, s.cond)));
                    blocks.chain(spins).collect::<Edges>()
                })
                .collect()
        },
    ),
    (
        "block",
        "an event of one of the two blocks of a thread that loops with effect, to itself",
        |_, progress| {
            let repeats = progress.repeats();
            repeats
                .flat_map(|(pair, choice)| either(pair).map(move |e| (e, e, choice)))
                .collect()
        },
    ),
    (
        "unfinished",
        "an event of a thread that is cut at the loop bound, to itself",
        |sk, progress| {
            (0..sk.len())
                .map(EventId::new)
                .filter_map(|e: EventId| {
                    Some((
                        e,
                        e,
                        progress.threads[usize::from(sk.event(e).thread?.0)].cut,
                    ))
                })
                .collect()
        },
    ),
    (
        "again",
        "event of an earlier block to the same one in the later block",
        |_, progress| {
            progress
                .repeats()
                .filter_map(|((earlier, later), choice)| Some((earlier?, later?, choice)))
                .collect()
        },
    ),
    (
        "partner",
        "barrier events of one barrier and phase",
        |_, progress| progress.partners.clone(),
    ),
];

impl ProgressFacts {
    /// Pairs of events of repeating blocks, each with the choice to end there.
    fn repeats(&self) -> impl Iterator<Item = ((Option<EventId>, Option<EventId>), Cond)> {
        let repeats = self.threads.iter().flat_map(|t| &t.repeats);
        repeats.flat_map(|r| r.pairs.iter().map(|&pair| (pair, r.choice)))
    }
}

fn either(pair: (Option<EventId>, Option<EventId>)) -> impl Iterator<Item = EventId> {
    pair.0.into_iter().chain(pair.1)
}

/// Collects the facts about progress from an unrolling.
pub(super) fn collect(
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

/// The builder for one of [`ROWS`].
pub(super) fn relation(pairs: Pairs) -> Build {
    Build::Rel(Box::new(move |sk, _| {
        let progress = sk
            .progress
            .clone()
            .expect("rules about endless executions are for skeletons that know them");
        let mut found: FxHashMap<(EventId, EventId), Cond> = FxHashMap::default();
        for (a, b, cond) in pairs(sk, &progress) {
            let old = found.get(&(a, b)).copied().unwrap_or(Cond::FALSE);
            found.insert((a, b), sk.pool.or(old, cond));
        }
        let mut rel = BaseRel::fixed(Rel::empty(sk.len()));
        for ((a, b), cond) in found {
            // Only executions in which both execute matter.
            let care = sk.pool.and(sk.event(a).guard, sk.event(b).guard);
            let cond = sk.pool.restrict(cond, care);
            rel.add(a.index(), b.index(), cond);
        }
        rel.open.sort_unstable();
        rel
    }))
}

impl Unroller<'_> {
    /// Records a thread that ends in a round without effect, which began at `from`, in `state`.
    pub(super) fn spins(
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
    pub(super) fn asks_for_ever(
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
    pub(super) fn repeats(
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
