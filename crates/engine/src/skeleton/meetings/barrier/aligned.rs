//! Checks `.aligned` instructions, which all threads of a warp must execute together: the base
//! relation `divergence` of PTX.
//!
//! Threads of a warp that run the same code must execute the same such instructions in the same
//! order. The first of one thread is the first of each other, and so on. Branches around them need
//! no check. If threads differ in a branch around such an instruction, their orders differ; after
//! they join, the orders agree again.
//!
//! # Invariants
//! - A thread that has ended is neither awaited nor missed, if it executed nothing behind the
//!   instruction. The reason is that compilers turn an early return into a branch to the end. A
//!   thread that continues behind it, or waits elsewhere without end, is missed.
//! - A test can give threads different code. Such threads have no instruction in common, and no
//!   rule applies.
//! - An instruction that arrives and waits counts once, as its arrival; a mask of a warp's barrier
//!   must hold the thread itself.
//!
//! # Sources
//! - PTX ISA 9.4, *barrier*: for `.aligned`, all threads in the warp must execute the same
//!   instruction. "In conditionally executed code", only if "it is known that all threads in the
//!   warp evaluate the condition identically, otherwise behavior is undefined". It waits for the
//!   threads of the warp that have not exited. The section *barrier.cluster* has the same words.
//! - PTX ISA 9.4, *bar.warp.sync*: undefined, if the executing thread is not in the mask.

use std::collections::BTreeMap;

use super::BarrierRules;
use crate::skeleton::graph::Edges;
use crate::skeleton::pool::Cond;
use cat::rel::EventId;
use diag::Span;
use program::{BarrierAction, Program, Scope, Tag, ThreadId};

/// An aligned instruction as a thread executes it.
struct AlignedTurn {
    event: EventId,
    guard: Cond,
    /// The instruction, by its position in the text.
    what: [u32; 2],
    /// By number: the condition that it is the instruction of that number in its thread.
    number: Vec<Cond>,
}

/// Whether two threads are in one warp and run the same code.
fn in_step(program: &Program, a: ThreadId, b: ThreadId) -> bool {
    a != b && program.same_group(a, b, Scope::Warp) && code_of(program, a) == code_of(program, b)
}

/// The position of the code of a thread in the text.
pub(super) fn code_of(program: &Program, t: ThreadId) -> Option<Span> {
    program.thread(t).code.first().map(|c| c.span)
}

impl BarrierRules<'_> {
    /// Pairs of different aligned instructions that threads of a warp execute at the same turn. An
    /// instruction is related to itself if some thread never reaches it, or if a warp's barrier has
    /// a mask without its own thread.
    pub(super) fn unaligned(&mut self) -> Edges {
        let mut found = Edges::new();
        for a in self.out.arrivals.clone() {
            let lane = self.program.lane(a.at.thread);
            if a.at
                .group
                .lanes
                .is_some_and(|mask| mask >> lane.min(31) & 1 == 0)
            {
                found.push((a.event, a.event, Cond::TRUE));
            }
        }
        let turns = self.aligned_in_order();
        for (&t, mine) in &turns {
            let mates: Vec<ThreadId> = self
                .program
                .thread_ids()
                .filter(|&u| in_step(self.program, t, u))
                .collect();
            for u in mates {
                let stuck = self.stuck(u);
                let events = self.events_behind(t, u);
                let theirs = turns.get(&u).map_or(&[][..], Vec::as_slice);
                for a in mine {
                    let mut absent = Cond::FALSE;
                    for (k, &mine) in a
                        .number
                        .iter()
                        .enumerate()
                        .filter(|(_, mine)| **mine != Cond::FALSE)
                    {
                        let mut comes = Cond::FALSE;
                        for b in theirs {
                            let Some(&number) = b.number.get(k).filter(|n| **n != Cond::FALSE)
                            else {
                                continue;
                            };
                            comes = self.pool().or(comes, number);
                            if t < u && a.what != b.what {
                                let both = self.pool().and(mine, number);
                                found.push((a.event, b.event, both));
                            }
                        }
                        let missing = self.pool().not(comes);
                        let missing = self.pool().and(mine, missing);
                        absent = self.pool().or(absent, missing);
                    }
                    if absent == Cond::FALSE {
                        continue;
                    }
                    let at = self.out.events[a.event.index()].instr;
                    let goes_on = events.iter().filter(|e| e.0 > at).map(|e| e.1);
                    let goes_on: Vec<Cond> = goes_on.collect();
                    let pool = self.pool();
                    let astray = goes_on
                        .into_iter()
                        .fold(stuck, |any, guard| pool.or(any, guard));
                    let never = pool.and(absent, astray);
                    found.push((a.event, a.event, self.pool().restrict(never, a.guard)));
                }
            }
        }
        found.retain(|edge| edge.2 != Cond::FALSE);
        found
    }

    /// By thread: its aligned instructions, in their order.
    fn aligned_in_order(&mut self) -> BTreeMap<ThreadId, Vec<AlignedTurn>> {
        let (program, out) = (self.program, &self.out);
        let instr = |e: EventId| {
            let event = &out.events[e.index()];
            event
                .tags
                .has(Tag::Aligned)
                .then(|| &program.thread(event.thread.expect("of a thread")).code[event.instr])
        };
        let arrivals = out.arrivals.iter().map(|a| (a.at.thread, a.event, a.guard));
        let waits = out
            .waits
            .iter()
            .filter(|w| !w.to_arrive())
            .map(|w| (w.at.thread, w.event, w.reached));
        let stands = |e: EventId| instr(e).map(|instr| [instr.span.start, instr.span.end]);
        let is_turn = |e: EventId, waits: bool| {
            let barrier = instr(e)?.op.barrier()?;
            (waits == (barrier.action == BarrierAction::Wait)).then_some(stands(e)?)
        };
        let arrivals = arrivals.filter_map(|(t, e, guard)| Some((t, e, guard, is_turn(e, false)?)));
        let waits = waits.filter_map(|(t, e, guard)| Some((t, e, guard, is_turn(e, true)?)));
        let of_lanes = out
            .events
            .iter()
            .enumerate()
            .filter(|(_, event)| event.tags.has(Tag::Lanes));
        let of_lanes = of_lanes.filter_map(|(i, event)| {
            let e = EventId::new(i);
            Some((event.thread?, e, event.guard, stands(e)?))
        });
        let mut all: Vec<(ThreadId, EventId, Cond, [u32; 2])> =
            arrivals.chain(waits).chain(of_lanes).collect();
        all.sort_by_key(|turn| (turn.0, turn.1));
        let mut turns: BTreeMap<ThreadId, Vec<AlignedTurn>> = BTreeMap::new();
        let mut guards: Vec<Cond> = Vec::new();
        for (t, event, guard, what) in all {
            let mine = turns.entry(t).or_default();
            if mine.is_empty() {
                guards.clear();
            }
            let number = (0..=mine.len())
                .map(|k| {
                    let pool = self.pool();
                    let earlier = pool.exactly(k, &guards);
                    pool.and(earlier, guard)
                })
                .collect();
            guards.push(guard);
            mine.push(AlignedTurn {
                event,
                guard,
                what,
                number,
            });
        }
        turns
    }

    /// The events of thread `u`, each with its instruction and guard, if both threads have the same
    /// code.
    pub(super) fn events_behind(&self, t: ThreadId, u: ThreadId) -> Vec<(usize, Cond)> {
        if self.program.thread(t).code.len() != self.program.thread(u).code.len() {
            return Vec::new();
        }
        let mine = self.out.events.iter().filter(|e| e.thread == Some(u));
        mine.map(|e| (e.instr, e.guard)).collect()
    }

    /// The condition that a thread waits without end.
    pub(super) fn stuck(&mut self, thread: ThreadId) -> Cond {
        if let Some(&known) = self.stuck.get(&thread) {
            return known;
        }
        let waits: Vec<(Cond, Cond)> = self
            .out
            .waits
            .iter()
            .filter(|w| w.at.thread == thread)
            .map(|w| (w.reached, w.pass))
            .collect();
        let stuck = waits
            .into_iter()
            .fold(Cond::FALSE, |stuck, (reached, pass)| {
                let pool = self.pool();
                let blocked = pool.not(pass);
                let blocked = pool.and(reached, blocked);
                pool.or(stuck, blocked)
            });
        self.stuck.insert(thread, stuck);
        stuck
    }
}
