//! Leaves out iterations that threads go through together.
//!
//! `while (__syncthreads_or(!ready)) { ready = flag; }` waits like a loop of one thread. But no
//! thread can leave out an iteration alone, because the others would wait for it at a barrier. Take
//! an execution, a set of threads, and for each of these some consecutive iterations of a loop, its
//! *segment*, such that
//! - each thread of the set leaves its segment in the state in which it began (equal values in all
//!   registers that are still needed), and continues. In the segment it executes only reads,
//!   fences, writes of the value read there ([`super::super::kept`]), barriers and meetings
//!   (`shfl.sync` and its like);
//! - if a segment takes part in a phase of a barrier, or in a meeting, all participants do so
//!   within segments of the set;
//! - these barriers reset, and each instruction at them arrives and waits: nothing that a segment
//!   begins ends outside of it.
//!
//! Leave out all segments. The rest is an execution of the program. States follow each other as
//! before, and no remaining read took a value from a segment. Barriers let the same threads pass:
//! whole phases are gone, so the others are unchanged with lower numbers, and each follows a full
//! one. The order in time on the rest is part of the old one. For arrivals of the phase before a
//! removed one come before those of the phase after it, by way of the latter.
//!
//! The rest is an execution of the model, with the same outcome, because every relation on it is
//! part of the old one. So *events that the barriers of the segments ordered may be unordered now*.
//! A model that allows a program with more order allows it with less. This orders nothing that
//! raced, so every race remains, unless it was in a segment. If it may be, one segment has to
//! remain. At least one of two in a row has no part in the race and can be left out
//! ([`super::super::racing`]). The same holds in questions about progress, which detect endless
//! behaviour by a repetition.
//!
//! A constraint excludes executions with segments that can be left out; a loop is cut only if it
//! can continue without any.
//!
//! # Invariants
//! - The segments that could belong together are a guess: iterations of one number, of loops of one
//!   number, of all threads or of some. The constraint checks in each execution whether they do. A
//!   wrong guess only leaves out less.

use std::collections::BTreeMap;

use super::BarrierRules;
use super::phases::PhaseChoices;
use crate::skeleton::loops::Position;
use crate::skeleton::pool::Cond;
use crate::skeleton::unrolling::unrolled::{Naming, Segment, Use};
use cat::rel::EventId;
use program::{BarrierAction, ThreadId};

/// One segment for each of some threads.
type Together<'s> = BTreeMap<ThreadId, &'s Segment>;

/// With more threads, no subsets are tried.
const MAX_PARTS: usize = 4;

/// All segments, and subsets of them, because the other threads may have left the loop.
fn parts<'s>(all: &Together<'s>) -> Vec<Together<'s>> {
    let whole = (1u32 << all.len().min(MAX_PARTS)) - 1;
    let of = |part: u32| {
        all.iter()
            .enumerate()
            .filter(move |(i, _)| part >> i & 1 != 0)
            .map(|(_, (&t, &s))| (t, s))
    };
    match all.len() {
        ..=MAX_PARTS => (1..=whole).map(|part| of(part).collect()).collect(),
        _ => vec![all.clone()],
    }
}

/// The number and the length of the segments of this length right before those of number `number`.
fn before(number: &[u32], length: u32) -> Option<(Vec<u32>, u32)> {
    let (last, around) = number.split_last()?;
    Some(([around, &[last.checked_sub(length)?]].concat(), length))
}

impl BarrierRules<'_> {
    /// Excludes executions with iterations of several threads that can be left out.
    pub(super) fn leave_out(&mut self, chosen: &PhaseChoices, constraints: &mut Vec<Cond>) {
        let segments = std::mem::take(&mut self.out.segments);
        let mut alike: BTreeMap<(Vec<u32>, u32), Together<'_>> = BTreeMap::new();
        for s in segments.iter().filter(|s| s.when != Cond::FALSE) {
            alike
                .entry((s.number.clone(), s.length))
                .or_default()
                .insert(s.thread, s);
        }
        for ((number, length), all) in &alike {
            for together in self.apart(all).iter().flat_map(parts) {
                let mut idle = self.idle(&together, chosen);
                if together.values().any(|s| s.twice) && idle != Cond::FALSE {
                    let before = before(number, *length).and_then(|key| alike.get(&key));
                    let before = before.map(|all| {
                        let same = all.iter().filter(|(t, _)| together.contains_key(t));
                        same.map(|(&t, &s)| (t, s)).collect::<Together<'_>>()
                    });
                    let first = match before.filter(|before| before.len() == together.len()) {
                        Some(before) => self.idle(&before, chosen),
                        None => Cond::FALSE,
                    };
                    idle = self.pool().and(idle, first);
                }
                constraints.push(self.pool().not(idle));
            }
        }
    }

    /// Segments grouped by threads that may meet in them.
    fn apart<'s>(&mut self, all: &Together<'s>) -> Vec<Together<'s>> {
        let mut found: Vec<Together<'s>> = Vec::new();
        for (&t, &s) in all {
            let mut mine: Together<'s> = [(t, s)].into();
            for other in std::mem::take(&mut found) {
                if other.values().any(|o| self.may_meet(s, o)) {
                    mine.extend(other);
                } else {
                    found.push(other);
                }
            }
            found.push(mine);
        }
        found
    }

    fn may_meet(&mut self, s: &Segment, o: &Segment) -> bool {
        let (mine, others): (Vec<bool>, Vec<bool>) = (self.meets_in(s), self.meets_in(o));
        let (here, there): (Vec<_>, Vec<_>) = (self.arrivals_in(s), self.arrivals_in(o));
        mine.iter().zip(others).any(|(mine, other)| *mine && other)
            || here
                .iter()
                .any(|&a| there.iter().any(|&b| self.matches(a, b) != Cond::FALSE))
    }

    /// The barriers that a segment arrives at.
    fn arrivals_in(&self, s: &Segment) -> Vec<Use> {
        let inside = self
            .out
            .arrivals
            .iter()
            .filter(|a| s.contains(a.at.thread, &a.place));
        inside.map(|a| a.at).collect()
    }

    /// By meeting: whether a segment takes part.
    fn meets_in(&self, s: &Segment) -> Vec<bool> {
        self.out
            .meetings
            .iter()
            .map(|m| m.threads.iter().any(|(t, at)| s.contains(*t, at)))
            .collect()
    }

    /// The condition that segments can be left out together.
    fn idle(&mut self, together: &Together<'_>, chosen: &PhaseChoices) -> Cond {
        let mut idle = together
            .values()
            .fold(Cond::TRUE, |idle, s| self.pool().and(idle, s.when));
        for m in &self.out.meetings.clone() {
            let within = m
                .threads
                .iter()
                .filter(|(t, place)| is_inside(together, *t, place))
                .count();
            if within > 0 && within < m.threads.len() {
                let apart = self.pool().not(m.guard);
                idle = self.pool().and(idle, apart);
            }
        }
        let arrivals = self.out.arrivals.clone();
        let (within, outside): (Vec<_>, Vec<_>) = arrivals
            .iter()
            .enumerate()
            .partition(|(_, a)| is_inside(together, a.at.thread, &a.place));
        let alone = self
            .out
            .waits
            .iter()
            .filter(|w| !self.is_whole(w.at, w.event))
            .map(|w| w.at);
        let alone: Vec<Use> = alone.collect();
        for &(_, a) in &within {
            if alone
                .iter()
                .any(|&at| self.matches(a.at, at) != Cond::FALSE)
            {
                let none = self.pool().not(a.guard);
                idle = self.pool().and(idle, none);
            }
        }
        for &(i, a) in &within {
            for &(j, b) in within.iter().chain(&outside) {
                if idle == Cond::FALSE || self.matches(a.at, b.at) == Cond::FALSE {
                    continue;
                }
                let mut clash = self.pool().and(a.guard, b.guard);
                if self.is_whole(a.at, a.event) && self.is_whole(b.at, b.event) {
                    if is_inside(together, b.at.thread, &b.place) {
                        continue;
                    }
                    let same = self.together((i, a), (j, b), chosen);
                    clash = self.pool().and(clash, same);
                } else {
                    clash = a.guard;
                }
                let none = self.pool().not(clash);
                idle = self.pool().and(idle, none);
            }
        }
        idle
    }

    /// Whether the instruction of an event is at a barrier that resets, and both arrives and waits
    /// there.
    fn is_whole(&self, at: Use, event: EventId) -> bool {
        let code = &self.program.thread(at.thread).code;
        let barrier = code[self.out.events[event.index()].instr].op.barrier();
        matches!(at.naming, Naming::Counted { .. })
            && barrier.is_some_and(|b| b.action == BarrierAction::Sync)
    }
}

/// Whether a position of a thread lies in one of the segments.
fn is_inside(together: &Together<'_>, thread: ThreadId, place: &Position) -> bool {
    together
        .get(&thread)
        .is_some_and(|s| s.contains(thread, place))
}

impl Segment {
    /// Whether a position of a thread lies in the segment.
    fn contains(&self, thread: ThreadId, place: &Position) -> bool {
        thread == self.thread && self.from <= *place && *place < self.to
    }
}
