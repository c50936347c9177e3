//! Finds reads in iterations that could be left out if they could not race.
//!
//! An iteration that executes only reads can be left out of an execution, but a race with one of
//! them cannot. If a thread alone leaves out an iteration, executions in which it remains there
//! show the race. These do not show a race with a write after the thread has left the loop. For
//! example, `P1` reads a flag that `P0` sets behind its loop, and writes the location that the loop
//! reads. So one iteration with such reads has to remain ([`super::returns`]). The same holds
//! whenever several threads leave out iterations together, because none remains in them.

use std::cell::LazyCell;

use super::kept::strong;
use super::unrolled::{Instructions, Unrolling};
use crate::skeleton::event::Event;
use crate::skeleton::pool::TermPool;
use program::points::{Points, Targets};
use program::{Program, Tag};

/// The reads of loops that may race with a write whose thread can know that the reader has left the
/// loop.
pub(crate) fn reads(program: &Program, out: &Unrolling) -> Instructions {
    if out.left_out.is_empty() {
        return Instructions::default();
    }
    // Other threads know it, too, if they wait for its end.
    let ends = program.host.is_some() || !out.waits.is_empty();
    // Lazy, because most addresses are known.
    let points = LazyCell::new(|| Points::compute(program));
    // Operations on mbarrier objects do not race with each other.
    let kind = |e: &Event, w: &Event| {
        (e.tags.has(Tag::Mbarrier) && w.tags.has(Tag::Mbarrier)) || strong(program, e, w)
    };
    let races = |e: &Event| {
        events_of(out, Event::is_write).any(|(_, w)| {
            (w.thread != e.thread || w.is_asynchronous())
                && !kind(e, w)
                && overlap(&out.pool, e, w, &|e| objects(program, &points, e))
        })
    };
    events_of(out, Event::is_read)
        .filter(|(_, e)| e.thread.is_some_and(|t| out.looped.contains(&(t, e.instr))))
        .filter(|(i, e)| (ends || others_know(out, *i, e)) && races(e))
        .filter_map(|(_, e)| Some((e.thread?, e.instr)))
        .collect()
}

/// Whether other threads can know that the thread of read `i` has left its loop: it takes part in
/// something with them, or writes afterwards.
fn others_know(out: &Unrolling, i: usize, e: &Event) -> bool {
    out.segments.iter().any(|s| Some(s.thread) == e.thread)
        || events_of(out, Event::is_write).any(|(j, w)| j > i && w.thread == e.thread)
}

/// The objects that an access may go to; empty if they are unknown.
fn objects(program: &Program, points: &Points, e: &Event) -> Targets {
    let at = e.thread.map(|t| {
        (
            usize::from(t.0),
            program.thread(t).code[e.instr].op.address(),
        )
    });
    at.and_then(|(t, addr)| Some(points.of(t, addr?)))
        .unwrap_or_default()
}

/// The events of threads of a kind.
fn events_of(out: &Unrolling, of: fn(&Event) -> bool) -> impl Iterator<Item = (usize, &Event)> {
    out.events
        .iter()
        .enumerate()
        .filter(move |(_, e)| e.thread.is_some() && of(e))
}

/// Whether two accesses may go to the same memory.
fn overlap(pool: &TermPool, a: &Event, b: &Event, objects: &dyn Fn(&Event) -> Targets) -> bool {
    if let (Some((a, end_a)), Some((b, end_b))) = (bytes_of(pool, a), bytes_of(pool, b)) {
        return a < end_b && b < end_a;
    }
    let (a, b) = (objects(a), objects(b));
    a.is_empty() || b.is_empty() || !a.is_disjoint(&b)
}

/// The bytes of an access with a constant address.
fn bytes_of(pool: &TermPool, e: &Event) -> Option<(i64, i64)> {
    pool.as_const(e.addr?)
        .map(|at| (at, at + i64::from(e.ty.bytes())))
}
