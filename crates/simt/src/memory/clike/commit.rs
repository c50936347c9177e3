//! Commits an access: picks the source of a read or the place of a write, and finds races.

use std::rc::Rc;

use super::graph::{History, HistoryEvent, HistoryKind};
use super::{Clike, GLOBAL, REGIONS};
use crate::code::{AccessPlace, Code, FailureOrder, PhysicalLocation, Regions};
use crate::memory::{Age, Context, MemoryAccess};
use crate::record::{self, HazardKind, RunHazard};
use crate::{Result, StepHalt};
use program::Scope;

/// The largest number of events in a history.
const MAX_EVENTS: usize = 8_192;

impl Clike {
    /// Whether the writes of a location have a modification order.
    pub(super) fn ordered(&self, code: &Code, loc: usize) -> bool {
        !self.language.visible || code.locations[loc].atomic
    }

    /// Adds to an event's past, in the regions that it belongs to, its thread's earlier events and
    /// the initial writes.
    pub(super) fn follow(&self, code: &Code, m: &History, e: &mut HistoryEvent) {
        for g in REGIONS {
            if !e.regions.has(g) {
                continue;
            }
            if let Some((last, from)) = m.of(e.thread).rev().find(|(_, p)| p.regions.has(g)) {
                e.past[g].join(&from.past[g]);
                e.past[g].insert(last);
            }
            (0..code.locations.len())
                .filter(|&i| m.events[i].regions.has(g))
                .for_each(|i| e.past[g].insert(i));
        }
    }

    /// Performs the acquire fence of the wait that a thread has just passed.
    pub(super) fn close(&self, cx: &mut Context<'_>, m: &mut History, thread: usize) -> Result {
        let Some(&last) = m.threads[thread].last().filter(|&&i| m.events[i].open) else {
            return Ok(());
        };
        let mut wait = (*m.events[last]).clone();
        wait.open = false;
        self.acquire(cx.code, cx.chooser, m, &mut wait)?;
        m.events[last] = Rc::new(wait);
        Ok(())
    }

    /// Appends an event to its thread; an event that was early keeps its number.
    pub(super) fn append(
        &self,
        code: &Code,
        m: &mut History,
        e: HistoryEvent,
        early: Option<usize>,
    ) -> Result<usize> {
        if m.events.len() >= MAX_EVENTS {
            return Err(StepHalt::Limit(
                "a history of more than 8,192 events, the limit of this memory (`--model ptx` \
                runs it as PTX)",
            ));
        }
        if e.is_access() {
            self.race(code, m, &e);
        }
        Ok(match early {
            Some(index) => {
                m.settle(e, index);
                index
            }
            None => m.push(e),
        })
    }

    /// Commits a read of a location and returns the event's number. The read is complete except for
    /// its source, or was bound early.
    pub(super) fn read(
        &self,
        cx: &mut Context<'_>,
        m: &mut History,
        make: &dyn Fn(i64) -> HistoryEvent,
        (loc, bound): (usize, Option<usize>),
    ) -> Result<usize> {
        let code = cx.code;
        let given = bound.map(|b| m.events[b].source);
        // The thread's present knowledge rules out most writes; the source adds the rest of it.
        let mut start = make(0);
        self.follow(code, m, &mut start);
        let least = self.least(code, m, &start).unwrap_or(0);
        let mut candidates = m.order[loc].clone();
        candidates.retain(|&w| {
            start.source = w;
            given.is_none_or(|g| g == w)
                && m.position(w) >= least
                && !m.is_own_early(w, start.thread)
                && (start.acquire || self.sees(code, m, &start))
        });
        let source = cx.pick(&candidates)?;
        // An atomic write becomes visible to threads that keep looking.
        let age = if start.atomic { Age::Old } else { Age::Stale };
        cx.ages(m.order[loc].last() != Some(&source), age);
        let mut e = make(m.events[source].value);
        (e.source, e.past) = (source, start.past);
        self.acquire(code, cx.chooser, m, &mut e)?;
        if !self.coherent_read(code, m, &e) || !self.sees(code, m, &e) {
            return Err(StepHalt::Refused);
        }
        let (thread, instr, value) = (e.thread, e.instr, e.value);
        let index = self.append(code, m, e, bound)?;
        if m.order[loc].last() != Some(&source) && !self.agrees(code, m) {
            return Err(StepHalt::Refused);
        }
        cx.log.note(record::RunEvent::Read {
            thread,
            instr,
            loc,
            source: m.name(source),
            value,
        });
        Ok(index)
    }

    /// Whether a read's source is at least as new as the writes and reads that happen before the
    /// read.
    fn coherent_read(&self, code: &Code, m: &History, e: &HistoryEvent) -> bool {
        self.least(code, m, e)
            .is_none_or(|least| m.position(e.source) >= least)
    }

    /// The position of the latest write that an access has in its past, directly or through a read.
    /// Without a modification order the list only serves the final value: a write follows the
    /// writes in its past.
    pub(super) fn least(&self, code: &Code, m: &History, e: &HistoryEvent) -> Option<usize> {
        let ordered = self.ordered(code, e.loc);
        if !self.rules.coherence || !(ordered || e.is_write()) {
            return None;
        }
        let known = REGIONS.into_iter().flat_map(|g| e.past[g].iter());
        let writes = known.filter_map(|i| {
            let x = &m.events[i];
            let counts = x.loc == e.loc && (x.is_write() || ordered && x.is_access());
            counts.then(|| m.position(if x.is_write() { i } else { x.source }))
        });
        writes.max()
    }

    /// Whether the source of a read is visible, at a location without modification order. It
    /// happens before the read, and no other write comes between.
    fn sees(&self, code: &Code, m: &History, e: &HistoryEvent) -> bool {
        if !self.rules.visible || self.ordered(code, e.loc) {
            return true;
        }
        let home = m.events[e.loc].regions;
        REGIONS.into_iter().filter(|&g| home.has(g)).all(|g| {
            let past = &e.past[g];
            past.has(e.source)
                && !past.iter().any(|w| {
                    let x = &m.events[w];
                    x.is_write() && x.loc == e.loc && x.past[g].has(e.source)
                })
        })
    }

    /// Commits a write at a possible place in its location's list, or at its existing place if it
    /// was bound early.
    pub(super) fn write(
        &self,
        cx: &mut Context<'_>,
        m: &mut History,
        mut e: HistoryEvent,
        bound: Option<usize>,
    ) -> Result {
        if let Some(index) = bound {
            return self.keep(cx, m, e, index);
        }
        let code = cx.code;
        self.follow(code, m, &mut e);
        let least = self.least(code, m, &e).map_or(1, |p| p + 1);
        let len = m.order[e.loc].len();
        let places = if self.loose[e.loc] {
            vec![len]
        } else {
            self.places(m, &e, least)
        };
        let index = self.append(code, m, e, None)?;
        let at = cx.pick(&places)?;
        cx.ages(at < len, Age::Old);
        m.place_at(index, at);
        if at < len && !self.agrees(code, m) {
            return Err(StepHalt::Refused);
        }
        self.note_place(cx, m, index);
        cx.log.note(record::RunEvent::Commit(m.name(index)));
        Ok(())
    }

    /// Logs a write and its place in its location's list.
    pub(super) fn note_place(&self, cx: &mut Context<'_>, m: &History, index: usize) {
        let (source, at, e) = (m.name(index), m.position(index), &m.events[index]);
        let (loc, list) = (e.loc, &m.order[e.loc]);
        cx.log.note(record::RunEvent::Write {
            source,
            instr: e.instr,
            loc,
            value: e.value,
        });
        if !self.loose[loc] {
            cx.log
                .note(record::RunEvent::After(loc, m.name(list[at - 1]), source));
            if let Some(&next) = list.get(at + 1) {
                cx.log
                    .note(record::RunEvent::After(loc, source, m.name(next)));
            }
        }
    }

    /// The possible places of a new write in its location's list, from `least` on. No write of
    /// another thread comes between the halves of a read-modify-write. No foreign write comes into
    /// a release sequence that an acquire relied on.
    pub(super) fn places(&self, m: &History, e: &HistoryEvent, least: usize) -> Vec<usize> {
        let list = &m.order[e.loc];
        let mut free = vec![true; list.len() + 1];
        if self.rules.atomicity {
            if let Some(read) = e.read {
                // The halves of the same instruction.
                let from = m.position(m.events[read].source);
                let foreign = list[from + 1..]
                    .iter()
                    .position(|&w| m.events[w].thread != e.thread);
                if let Some(foreign) = foreign {
                    free[from + 2 + foreign..].fill(false);
                }
            }
            for &u in list.iter().filter(|&&u| m.events[u].thread != e.thread) {
                if let Some(read) = m.events[u].read {
                    let (from, to) = (m.position(m.events[read].source), m.position(u));
                    free[(from + 1).min(to + 1)..=to].fill(false);
                }
            }
        }
        for pin in m
            .pins
            .iter()
            .filter(|p| p.holds && m.events[p.head].loc == e.loc)
        {
            if m.events[pin.head].thread != e.thread && e.read.is_none() {
                free[m.position(pin.head) + 1..=m.position(pin.last)].fill(false);
            }
        }
        (least..free.len()).filter(|&at| free[at]).collect()
    }

    /// Records the first race.
    fn race(&self, code: &Code, m: &mut History, e: &HistoryEvent) {
        if m.race.is_some() {
            return;
        }
        let races = |(i, x): &(usize, &HistoryEvent)| {
            x.is_access()
                && x.loc == e.loc
                && (x.is_write() || e.is_write())
                && !self.exempt(code, x, e)
                && !REGIONS
                    .iter()
                    .any(|&g| x.regions.has(g) && e.regions.has(g) && e.past[g].has(*i))
        };
        let others = (0..m.threads.len()).filter(|&t| t != e.thread);
        let found = others
            .flat_map(|t| m.of(t))
            .find(races)
            .map(|(_, x)| RunHazard {
                kind: HazardKind::Race,
                first: (x.thread, x.instr).min((e.thread, e.instr)),
                second: Some((x.thread, x.instr).max((e.thread, e.instr))),
                loc: Some(e.loc),
            });
        m.race = found;
    }

    /// Builds the event of an access, without its past and without a read's source.
    pub(super) fn access(
        &self,
        code: &Code,
        t: MemoryAccess,
        kind: HistoryKind,
        value: i64,
        failed: bool,
    ) -> HistoryEvent {
        let MemoryAccess {
            at,
            place: AccessPlace { loc, .. },
            access,
        } = t;
        let location = &code.locations[loc];
        let read = kind == HistoryKind::Read;
        let (mut acquire, mut sc) = (
            read && (access.acquire || access.sc || access.consume),
            access.sc,
        );
        if failed
            && self.language.failure
            && let Some(failure) = access.failure
        {
            (acquire, sc) = (
                failure != FailureOrder::Relaxed,
                failure == FailureOrder::SeqCst,
            );
        }
        // In OpenCL, an operation whose scope is wider than the work-item is atomic.
        let mut atomic = if self.language.regions {
            access.scope != Scope::Thread
        } else {
            access.atomic
        };
        if self.language.kinds && access.scope == Scope::Sys {
            atomic &= self.kinds[loc].holds(access.updates);
            sc &= atomic;
        }
        let local = self.language.regions;
        let scope = if local {
            self.reach(code, at.thread, location, access.scope)
        } else {
            [access.scope; 2]
        };
        let release = !read && (access.release || access.sc);
        let e = HistoryEvent::new(kind, at.spot(), self.home(location));
        HistoryEvent {
            loc,
            value,
            acquire,
            release,
            sc,
            atomic,
            scope,
            ..e
        }
    }

    /// The regions of a location.
    pub(super) fn home(&self, location: &PhysicalLocation) -> Regions {
        match () {
            () if !self.language.regions => Regions::one(GLOBAL),
            () if !self.rules.regions => Regions::of(true, true),
            () => Regions::of(location.opencl.global, location.opencl.local),
        }
    }
}
