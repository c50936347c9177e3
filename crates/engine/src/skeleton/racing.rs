//! Reads in iterations that could be left out, were it not for races.
//!
//! An iteration in which nothing but reads is executed can be left out of an execution, but a race
//! with one of them cannot. Where a thread leaves out an iteration alone it is seen all the same,
//! in executions in which the thread stays there. These do not show a race with a write that comes
//! after the thread has left the loop: `P1` reads a flag that `P0` sets behind its loop, and writes
//! what the loop reads. So one iteration with such reads has to be there ([`super::returns`]), and
//! wherever iterations of several threads are left out together, as nobody stays in these.

use std::cell::LazyCell;

use rustc_hash::FxHashSet;

use super::event::Event;
use super::kept::strong;
use super::pool::Pool;
use super::unrolled::Unrolled;
use program::points::{Points, Targets};
use program::{Program, Tag, ThreadId};

/// Instructions of threads.
pub(super) type Instructions = FxHashSet<(ThreadId, usize)>;

/// The reads of loops that may race with a write of which their thread knows when it has left the
/// loop.
pub(super) fn reads(program: &Program, out: &Unrolled) -> Instructions {
    if out.left_out.is_empty() {
        return Instructions::default();
    }
    // Others know of it, too, where they wait for its end.
    let ends = program.host.is_some() || !out.waits.is_empty();
    let events = |of: fn(&Event) -> bool| {
        out.events
            .iter()
            .enumerate()
            .filter(move |(_, e)| e.thread.is_some() && of(e))
    };
    let read_in_loop = |e: &&Event| e.thread.is_some_and(|t| out.looped.contains(&(t, e.instr)));
    let together = |e: &Event| out.segments.iter().any(|s| Some(s.thread) == e.thread);
    let goes_on = |i: usize, e: &Event| {
        ends || together(e) || events(Event::is_write).any(|(j, w)| j > i && w.thread == e.thread)
    };
    // Seldom needed: most addresses are known.
    let points = LazyCell::new(|| Points::compute(program));
    let objects = |e: &Event| -> Targets {
        let at = e.thread.map(|t| {
            (
                usize::from(t.0),
                program.thread(t).code[e.instr].op.address(),
            )
        });
        at.and_then(|(t, addr)| Some(points.of(t, addr?)))
            .unwrap_or_default()
    };
    // Operations on mbarrier objects are one kind of access among themselves.
    let kind = |e: &Event, w: &Event| {
        (e.tags.has(Tag::Mbarrier) && w.tags.has(Tag::Mbarrier)) || strong(program, e, w)
    };
    let races = |e: &Event| {
        let other = |w: &Event| w.thread != e.thread || w.is_asynchronous();
        events(Event::is_write)
            .any(|(_, w)| other(w) && !kind(e, w) && overlap(&out.pool, (e, w), &objects))
    };
    events(Event::is_read)
        .filter(|(i, e)| read_in_loop(e) && goes_on(*i, e) && races(e))
        .filter_map(|(_, e)| Some((e.thread?, e.instr)))
        .collect()
}

/// Whether two accesses may be to the same memory.
fn overlap(pool: &Pool, (a, b): (&Event, &Event), objects: &dyn Fn(&Event) -> Targets) -> bool {
    let at = |e: &Event| {
        pool.as_const(e.addr?)
            .map(|at| (at, at + i64::from(e.ty.bytes())))
    };
    if let (Some((a, end_a)), Some((b, end_b))) = (at(a), at(b)) {
        return a < end_b && b < end_a;
    }
    let (a, b) = (objects(a), objects(b));
    a.is_empty() || b.is_empty() || !a.is_disjoint(&b)
}
