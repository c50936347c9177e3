//! Binding before commit: shows load buffering.
//!
//! A write that is bound early is in its location's list, and others may read it. A read that is
//! bound early has its source, and its thread may use the value to look further ahead. Such events
//! are *early*: they have numbers, but are in no thread's list. At their instruction's turn they
//! are committed like any other event, with source and place given.
//!
//! # Why it is sound
//! In a finished run no event is early any more. The history looks as if all events had been
//! committed without early binds, with two exceptions. A read may precede the commit of the write
//! that it reads, and a write's place was chosen before its turn. The history is an execution of
//! the model, because commits check each of these:
//! - *Happens-before.* An event's past is final at its commit, and program order and barriers
//!   follow the order of commits. If an acquire finds an early write in its release sequence, it
//!   knows all releases behind that write, or waits ([`StepHalt::Blocked`]). The bind lists the
//!   releases between the thread's next instruction and its early write, arrivals at barriers
//!   included. The list shrinks as they have their turn. An acquire does not wait for releases
//!   whose scope does not reach it. So the order of commits extends happens-before, which has no
//!   cycle.
//! - *Coherence.* Places in a list never change their order. A committed event agrees with the
//!   events that happen before it, by places alone, early writes included. An early write is
//!   checked at its commit: its given place has to be behind all writes in its thread's past. That
//!   also refuses a write that happens after a read of itself.
//! - *Atomicity* and the release sequences relied on depend on places alone.
//! - *Sequential consistency.* A cycle is complete when its last event is committed. An early write
//!   has events behind it at its commit. So the axiom is checked then, whatever the place.
//! - *Races.* The later of two commits finds the race, as without binds: an event committed before
//!   an early write cannot happen after it.
//! - *Values.* A bind needs operands that earlier commits or binds determine. So binds extend
//!   reads-from and dependencies, which then have no cycle.
//!
//! No write is ever bound early at a location without modification order: it has no places to
//! choose, and its reads need a write that happens before them.
//!
//! # Coverage
//! Some executions with a cycle of program order and reads-from are lost: by the limits on binds
//! and on the look ahead, by branches that it does not pass, and by acquires that wait. No other
//! loss is intended; `tests/executor/languages.rs` measures it.
//!
//! Sources: the models' texts. Views of promises that must come true: J. Kang, C.-K. Hur, O. Lahav,
//! V. Vafeiadis, D. Dreyer, "A Promising Semantics for Relaxed-Memory Concurrency", POPL 2017.
//! Unlike there, nothing is certified: a run that breaks its promises does not count.

use super::Clike;
use super::graph::{History, HistoryEvent, HistoryKind};
use super::language::BarrierMeaning;
use crate::code::{AccessPlace, Act, Code, Fence};
use crate::memory::ahead::Release;
use crate::memory::early::{Binding, Binds, Half};
use crate::memory::{At, Context, MemoryAccess};
use crate::{Early, Result, StepHalt, record};

impl History {
    /// Whether a write is early and belongs to this thread.
    pub(super) fn is_own_early(&self, write: usize, thread: usize) -> bool {
        self.early.of(thread).any(|b| b.write == Some(write))
    }

    /// The index of a write's bind among those of its thread, in program order.
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
        self.language.meeting == BarrierMeaning::Fences
    }

    fn may_publish(&self, code: &Code, loc: usize) -> bool {
        self.ordered(code, loc)
    }

    fn bound(m: &History) -> &Binds {
        &m.early
    }

    fn bound_mut(m: &mut History) -> &mut Binds {
        &mut m.early
    }

    fn taken(m: &History, _: usize, read: usize) -> i64 {
        m.events[read].value
    }

    /// Picks a source among the writes that coherence lets the thread's next event read, and the
    /// thread's earlier early writes.
    fn source(&self, cx: &mut Context<'_>, m: &mut History, t: MemoryAccess) -> Result<usize> {
        let mut e = self.access(cx.code, t, HistoryKind::Read, 0, false);
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

    /// Chooses a place for the write in the list of its location. The events so far allow it.
    fn show(
        &self,
        cx: &mut Context<'_>,
        m: &mut History,
        t: MemoryAccess,
        value: i64,
        half: Half,
    ) -> Result<usize> {
        let mut e = self.access(cx.code, t, HistoryKind::Write, value, false);
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

    fn catch(&self, _: &Code, _: &mut History, _: usize, _: MemoryAccess, _: usize) {
        unreachable!("no write is published alone");
    }
}

impl Clike {
    /// Whether a pending release may come to be behind a write, and reaches an acquire in a region.
    pub(super) fn awaits(
        &self,
        code: &Code,
        m: &History,
        write: usize,
        e: &HistoryEvent,
        region: usize,
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
                } => self.strait(code, at, HistoryKind::Fence, *regions, *capped, *scope),
                Act::Barrier(b) => self.half(code, at, HistoryKind::Arrive, b),
                // A release at the write's own location.
                Act::Store { access, .. } | Act::Rmw { write: access, .. } => {
                    let place = AccessPlace {
                        loc: bind.loc,
                        va: 0,
                    };
                    self.access(
                        code,
                        MemoryAccess {
                            at,
                            place,
                            access: *access,
                        },
                        HistoryKind::Write,
                        0,
                        false,
                    )
                }
                _ => return true,
            };
            release.regions.has(region) && self.inclusive(code, &release, e, region)
        };
        self.rules.waiting && bind.thread != e.thread && bind.releases.iter().any(reaches)
    }

    /// Commits a write that was bound early, at its turn.
    pub(super) fn keep(
        &self,
        cx: &mut Context<'_>,
        m: &mut History,
        mut e: HistoryEvent,
        index: usize,
    ) -> Result {
        self.follow(cx.code, m, &mut e);
        if self.rules.early_places
            && self
                .least(cx.code, m, &e)
                .is_some_and(|least| m.position(index) <= least)
        {
            return Err(StepHalt::Refused);
        }
        self.append(cx.code, m, e, Some(index))?;
        if self.rules.early_agreement && !self.agrees(cx.code, m) {
            return Err(StepHalt::Refused);
        }
        cx.log.note(record::RunEvent::Commit(m.name(index)));
        Ok(())
    }
}
