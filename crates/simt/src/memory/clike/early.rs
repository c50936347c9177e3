//! Binding before commit: load buffering.
//!
//! A write that is bound early stands in its location's list, and others may read it; a read that is bound early has its
//! source, and its thread may use the value to look further ahead. Such events are *early*: they have their numbers, and
//! are in no thread's list. When their instruction has its turn they are committed as any other event is, except that
//! source and place are given.
//!
//! # Why it is sound
//! Take a finished run: nothing is early any more, and the history is as if all events had been committed without early
//! binds, except that a read may have been committed before the write that it reads, and that a write's place was chosen
//! before its turn. It is an execution of the model because everything is checked when the last event that takes part
//! in it is committed:
//! - *Happens-before.* An event's past is settled when it is committed. Program order and barriers come in that order; an
//!   acquire that finds an early write in its release sequence knows all releases that it will ever find behind it,
//!   or waits ([`Halt::Blocked`]): the releases that lie between the thread's next instruction and an early write of
//!   its own, arrivals at barriers among them, are counted when it is bound, and count down as they have their turn. Only
//!   for those that do not reach it nothing waits. So the order of commits extends happens-before, which has no cycle.
//! - *Coherence.* Places in a list never change their order. A committed event agrees with what happens before it, by
//!   places alone, whether the writes there are early or not. What happens before an early write is asked at its commit:
//!   its place, given before, has to be behind all that its thread knows by then. That refuses, too, a write that comes to
//!   happen after a read of itself.
//! - *Atomicity* and what release sequences were relied on for are matters of places alone.
//! - *Sequential consistency.* A cycle is complete when its last event is committed. A write that was early has events behind
//!   it when it is committed, so that agreement is asked for then, whatever its place.
//! - *Races.* The later of two commits finds the race, as ever: what is committed before an early write cannot happen after it.
//! - *Values.* A bind needs operands that are known from what was committed or bound before: binds extend reads-from and
//!   dependencies, which have no cycle then.
//!
//! Locations without modification order have nothing to choose a place in, and their reads need a write that happens
//! before them: no write there is ever bound early.
//!
//! # What it shows
//! The bounds on the number of binds and on the look ahead, and branches that it does not pass, lose some executions with a
//! cycle of program order and reads-from; so does an acquire that waits. Nothing else is lost on purpose; how much it is, is measured (`tests/executor_clike.rs`).
//!
//! Sources: the models' texts. Views of promises that must come true: J. Kang, C.-K. Hur, O. Lahav, V. Vafeiadis, D. Dreyer,
//! "A Promising Semantics for Relaxed-Memory Concurrency", POPL 2017; here nothing is certified, as a run that breaks its
//! promises counts for nothing.

use super::graph::{Contents, Event, Kind};
use super::language::Meeting;
use super::{At, Clike, Context};
use crate::code::{Act, Code, Fence, Place};
use crate::memory::ahead::{Bound, Candidate, Look, Release};
use crate::record;
use crate::state::Thread;
use crate::{Early, Halt};

/// What an instruction was bound to before its turn.
#[derive(Clone, Debug)]
pub(super) struct Bind {
    pub(super) thread: usize,
    /// The instruction, by the thread's clock when it has its turn.
    pub(super) clock: u32,
    /// Its read.
    pub(super) read: Option<usize>,
    /// Its write.
    pub(super) write: Option<usize>,
    /// Releases before or at it that have not had their turn and could head a sequence through its write.
    pub(super) releases: Vec<Release>,
}

impl Contents {
    /// What the instruction that has its turn was bound to.
    pub(super) fn take_bind(&mut self, at: At) -> Option<Bind> {
        let i = self.early.iter().position(|b| (b.thread, b.clock) == (at.thread, at.clock))?;
        Some(self.early.remove(i))
    }

    /// An instruction has had its turn: early writes after it no longer wait for its release.
    pub(super) fn had_turn(&mut self, at: At) {
        let mine = self.early.iter_mut().filter(|b| b.thread == at.thread);
        mine.for_each(|b| b.releases.retain(|r| r.clock > at.clock));
    }

    /// Whether a write is early, and one of this thread.
    pub(super) fn is_own_early(&self, write: usize, thread: usize) -> bool {
        self.early.iter().any(|b| b.write == Some(write) && b.thread == thread)
    }

    /// The number of a bind among those of its thread, in program order.
    pub(super) fn rank_of_bind(&self, write: usize) -> usize {
        let clock = |b: &Bind| (b.write == Some(write)).then_some(b.clock);
        let Some(clock) = self.early.iter().find_map(clock) else { return 0 };
        let thread = self.events[write].thread;
        self.early.iter().filter(|b| b.thread == thread && b.clock < clock).count()
    }
}

impl Clike {
    /// Whether anything is ever bound early.
    pub(super) fn binds_early(&self) -> bool {
        self.early != Early::None && !(self.language.in_order && self.rules.in_order)
    }

    /// Whether a release that has not had its turn may come to be behind a write, and what it releases reaches an acquire, as
    /// far as a region is concerned.
    pub(super) fn awaits(&self, code: &Code, m: &Contents, write: usize, (e, region): (&Event, usize)) -> bool {
        let Some(bind) = m.early.iter().find(|b| b.write == Some(write)) else { return false };
        let reaches = |r: &Release| {
            let at = At { thread: bind.thread, instr: r.instr, clock: r.clock };
            let release = match &code.threads[at.thread].acts[r.instr] {
                Act::Fence(Fence::Thread { scope, regions, capped, .. }) => {
                    self.strait(code, at, Kind::Fence, (*regions, *capped, *scope))
                }
                Act::Barrier(b) => self.half(code, at, Kind::Arrive, b),
                // Of the write's own location.
                Act::Store { access, .. } | Act::Rmw { write: access, .. } => {
                    self.access(code, at, (Kind::Write, m.events[write].loc, 0), access, false)
                }
                _ => return true,
            };
            release.regions.has(region) && self.inclusive(code, &release, e, region)
        };
        self.rules.waiting && bind.thread != e.thread && bind.releases.iter().any(reaches)
    }

    /// What a thread could bind early now.
    pub(super) fn candidates(&self, code: &Code, m: &Contents, threads: &[Thread], t: usize) -> Vec<Candidate> {
        let mine = || m.early.iter().filter(|b| b.thread == t);
        let bound = |clock: u32| {
            let bind = mine().find(|b| b.clock == clock)?;
            Some(Bound { read: bind.read.map(|r| m.events[r].value), write: bind.write.is_some() })
        };
        let (early, thread, binds) = (self.early, &threads[t], mine().count());
        let fences = self.language.meeting == Meeting::Fences;
        let look = Look { code, early, t, thread, bound: &bound, binds, halves: false, fences };
        let mut found = look.candidates();
        found.retain(|c| {
            matches!(code.threads[t].acts[c.instr], Act::Load { .. }) || self.ordered(code, c.place.loc)
        });
        found
    }

    /// Binds one of the candidates.
    pub(super) fn bind(
        &self,
        cx: &mut Context<'_>,
        m: &mut Contents,
        threads: &[Thread],
        t: usize,
    ) -> Result<(), Halt> {
        let chosen = Candidate::choose(self.candidates(cx.code, m, threads, t), cx, t)?;
        let (instr, clock, place, value) = (chosen.instr, chosen.clock, chosen.place, chosen.value);
        let (code, at) = (cx.code, At { thread: t, instr, clock });
        let mut bind = Bind { thread: t, clock, read: None, write: None, releases: chosen.releases.clone() };
        match &code.threads[t].acts[instr] {
            Act::Load { access, .. } => {
                let make = |value| self.access(code, at, (Kind::Read, place.loc, value), access, false);
                bind.read = Some(self.choose_source(cx, m, at, place, &make)?);
            }
            Act::Store { access, .. } => {
                let e = self.access(code, at, (Kind::Write, place.loc, value), access, false);
                bind.write = Some(self.publish(cx, m, e)?);
            }
            atomic @ Act::Rmw { read, write, .. } => {
                let make = |value| self.access(code, at, (Kind::Read, place.loc, value), read, false);
                let half = self.choose_source(cx, m, at, place, &make)?;
                bind.read = Some(half);
                if let Some(value) = chosen.written(atomic, m.events[half].value)? {
                    let mut e = self.access(code, at, (Kind::Write, place.loc, value), write, false);
                    e.read = Some(half);
                    bind.write = Some(self.publish(cx, m, e)?);
                }
            }
            _ => return Err(Halt::Refused),
        }
        m.early.push(bind);
        Ok(())
    }

    /// Gives a read its source before its turn: any write that its thread's next event could read, as far as coherence goes,
    /// and earlier early ones of its own.
    fn choose_source(
        &self,
        cx: &mut Context<'_>,
        m: &mut Contents,
        at: At,
        place: Place,
        make: &dyn Fn(i64) -> Event,
    ) -> Result<usize, Halt> {
        let mut now = make(0);
        self.follow(cx.code, m, &mut now);
        let least = self.least(cx.code, m, &now).unwrap_or(0);
        let later =
            |w: usize| m.early.iter().any(|b| b.write == Some(w) && b.thread == at.thread && b.clock > at.clock);
        let sources: Vec<usize> =
            m.order[place.loc].iter().copied().filter(|&w| m.position(w) >= least && !later(w)).collect();
        if sources.is_empty() {
            return Err(Halt::Refused);
        }
        let source = sources[cx.chooser.choose(sources.len())];
        let mut e = make(m.events[source].value);
        e.source = source;
        Ok(m.number(e))
    }

    /// Makes a write visible before its turn, at a place in its location's list that it may have as far as is known.
    fn publish(&self, cx: &mut Context<'_>, m: &mut Contents, e: Event) -> Result<usize, Halt> {
        let mut now = e.clone();
        self.follow(cx.code, m, &mut now);
        let least = self.least(cx.code, m, &now).map_or(1, |p| p + 1);
        let places = self.places(m, &e, least);
        if places.is_empty() {
            return Err(Halt::Refused);
        }
        let at = places[cx.chooser.choose(places.len())];
        let (instr, loc, value) = (e.instr, e.loc, e.value);
        let index = m.number(e);
        m.place_at(index, at);
        self.note_place(cx, m, (index, at), (instr, loc, value));
        Ok(index)
    }

    /// Commits a write that was bound early, and has its turn.
    pub(super) fn keep(
        &self,
        cx: &mut Context<'_>,
        m: &mut Contents,
        mut e: Event,
        index: usize,
    ) -> Result<(), Halt> {
        self.follow(cx.code, m, &mut e);
        let behind = |least| m.position(index) > least;
        if self.rules.early_places && !self.least(cx.code, m, &e).is_none_or(behind) {
            return Err(Halt::Refused);
        }
        self.append(cx.code, m, e, Some(index))?;
        if self.rules.early_agreement && !self.agrees(cx.code, m) {
            return Err(Halt::Refused);
        }
        cx.log.note(record::Event::Commit(m.name(index)));
        Ok(())
    }
}
