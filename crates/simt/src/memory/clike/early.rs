//! Binding before commit: load buffering.
//!
//! A write that is bound early stands in its location's list, and others may read it; a read that
//! is bound early has its source, and its thread may use the value to look further ahead. Such
//! events are *early*: they have their numbers, and are in no thread's list. When their instruction
//! has its turn they are committed as any other event is, except that source and place are given.
//!
//! # Why it is sound
//! Take a finished run: nothing is early any more, and the history is as if all events had been
//! committed without early binds, except that a read may have been committed before the write that
//! it reads, and that a write's place was chosen before its turn. It is an execution of the model
//! because everything is checked when the last event that takes part in it is committed:
//! - *Happens-before.* An event's past is settled when it is committed. Program order and barriers
//!   come in that order; an acquire that finds an early write in its release sequence knows all
//!   releases that it will ever find behind it, or waits ([`Halt::Blocked`]): the releases that lie
//!   between the thread's next instruction and an early write of its own, arrivals at barriers
//!   among them, are counted when it is bound, and count down as they have their turn. Only for
//!   those that do not reach it nothing waits. So the order of commits extends happens-before,
//!   which has no cycle.
//! - *Coherence.* Places in a list never change their order. A committed event agrees with what
//!   happens before it, by places alone, whether the writes there are early or not. What happens
//!   before an early write is asked at its commit: its place, given before, has to be behind all
//!   that its thread knows by then. That refuses, too, a write that comes to happen after a read of
//!   itself.
//! - *Atomicity* and what release sequences were relied on for are matters of places alone.
//! - *Sequential consistency.* A cycle is complete when its last event is committed. A write that
//!   was early has events behind it when it is committed, so that agreement is asked for then,
//!   whatever its place.
//! - *Races.* The later of two commits finds the race, as ever: what is committed before an early
//!   write cannot happen after it.
//! - *Values.* A bind needs operands that are known from what was committed or bound before: binds
//!   extend reads-from and dependencies, which have no cycle then.
//!
//! Locations without modification order have nothing to choose a place in, and their reads need a
//! write that happens before them: no write there is ever bound early.
//!
//! # What it shows
//! The bounds on the number of binds and on the look ahead, and branches that it does not pass,
//! lose some executions with a cycle of program order and reads-from; so does an acquire that
//! waits. Nothing else is lost on purpose; how much it is, is measured
//! (`tests/executor/languages.rs`).
//!
//! Sources: the models' texts. Views of promises that must come true: J. Kang, C.-K. Hur, O. Lahav,
//! V. Vafeiadis, D. Dreyer, "A Promising Semantics for Relaxed-Memory Concurrency", POPL 2017; here
//! nothing is certified, as a run that breaks its promises counts for nothing.

use super::Clike;
use super::graph::{Contents, Event, Kind};
use super::language::Meeting;
use crate::code::{Act, Code, Fence, Place};
use crate::memory::ahead::Release;
use crate::memory::early::{Binding, Binds, Half};
use crate::memory::{At, Context, Target};
use crate::{Early, Halt, Result, record};

impl Contents {
    /// Whether a write is early, and one of this thread.
    pub(super) fn is_own_early(&self, write: usize, thread: usize) -> bool {
        self.early.of(thread).any(|b| b.write == Some(write))
    }

    /// The number of a bind among those of its thread, in program order.
    pub(super) fn rank_of_bind(&self, write: usize) -> usize {
        self.early
            .of(self.events[write].thread)
            .position(|b| b.write == Some(write))
            .unwrap_or(0)
    }
}

impl Binding for Clike {
    const HALVES: bool = false;

    fn early(&self) -> Early {
        self.early
    }

    fn arrivals_release(&self) -> bool {
        self.language.meeting == Meeting::Fences
    }

    fn may_publish(&self, code: &Code, loc: usize) -> bool {
        self.ordered(code, loc)
    }

    fn bound(m: &Contents) -> &Binds {
        &m.early
    }

    fn bound_mut(m: &mut Contents) -> &mut Binds {
        &mut m.early
    }

    fn taken(m: &Contents, _: usize, read: usize) -> i64 {
        m.events[read].value
    }

    /// Any write that the thread's next event could read, as far as coherence goes, and earlier
    /// early ones of its own.
    fn source(&self, cx: &mut Context<'_>, m: &mut Contents, t: Target) -> Result<usize> {
        let mut e = self.access(cx.code, t, (Kind::Read, 0), false);
        let mut now = e.clone();
        self.follow(cx.code, m, &mut now);
        let least = self.least(cx.code, m, &now).unwrap_or(0);
        let later = |w: usize| {
            m.early
                .of(t.at.thread)
                .any(|b| b.write == Some(w) && b.clock > t.at.clock)
        };
        let all = m.order[t.place.loc].iter().copied();
        e.source = cx.pick(
            &all.filter(|&w| m.position(w) >= least && !later(w))
                .collect::<Vec<_>>(),
        )?;
        e.value = m.events[e.source].value;
        Ok(m.number(e))
    }

    /// At a place in its location's list that it may have as far as is known.
    fn show(
        &self,
        cx: &mut Context<'_>,
        m: &mut Contents,
        t: Target,
        value: i64,
        half: Half,
    ) -> Result<usize> {
        let mut e = self.access(cx.code, t, (Kind::Write, value), false);
        if let Half::Of(_, read) = half {
            e.read = Some(read);
        }
        let mut now = e.clone();
        self.follow(cx.code, m, &mut now);
        let least = self.least(cx.code, m, &now).map_or(1, |p| p + 1);
        let at = cx.pick(&self.places(m, &e, least))?;
        let index = m.number(e);
        m.place_at(index, at);
        self.note_place(cx, m, index);
        Ok(index)
    }

    fn catch(&self, _: &Code, _: &mut Contents, _: usize, _: (Target, usize)) {
        unreachable!("no write is published alone");
    }
}

impl Clike {
    /// Whether a release that has not had its turn may come to be behind a write, and what it
    /// releases reaches an acquire, as far as a region is concerned.
    pub(super) fn awaits(
        &self,
        code: &Code,
        m: &Contents,
        write: usize,
        (e, region): (&Event, usize),
    ) -> bool {
        let Some(bind) = m.early.of_write(m.events[write].loc, write) else {
            return false;
        };
        let reaches = |r: &Release| {
            let at = At {
                thread: bind.thread,
                instr: r.instr,
                clock: r.clock,
            };
            let release = match &code.threads[at.thread].acts[r.instr] {
                Act::Mark {
                    mark:
                        Fence::Thread {
                            scope,
                            regions,
                            capped,
                            ..
                        },
                    ..
                } => self.strait(code, at, Kind::Fence, (*regions, *capped, *scope)),
                Act::Barrier(b) => self.half(code, at, Kind::Arrive, b),
                // Of the write's own location.
                Act::Store { access, .. } | Act::Rmw { write: access, .. } => {
                    let place = Place {
                        loc: bind.loc,
                        va: 0,
                    };
                    self.access(
                        code,
                        Target {
                            at,
                            place,
                            access: *access,
                        },
                        (Kind::Write, 0),
                        false,
                    )
                }
                _ => return true,
            };
            release.regions.has(region) && self.inclusive(code, &release, e, region)
        };
        self.rules.waiting && bind.thread != e.thread && bind.releases.iter().any(reaches)
    }

    /// Commits a write that was bound early, and has its turn.
    pub(super) fn keep(
        &self,
        cx: &mut Context<'_>,
        m: &mut Contents,
        mut e: Event,
        index: usize,
    ) -> Result {
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
