//! Asynchronous copies: after what they start, and what waits for them.
//!
//! # Invariants
//! - Events of asynchronous operations are in no thread's program order; the relations here are all that orders them. The
//!   list of events has them where their instructions stand.
//!
//! # Sources
//! - PTX ISA 9.4, Memory Consistency Model, *Asynchronous Operations*; *Async-group mechanism*: a group is what its thread has
//!   begun since the one before, and a wait is for groups of its own thread; *cp.async.mbarrier.arrive*: an arrival is for all
//!   copies that its thread began before, of whatever group.

use super::base::BaseRel;
use super::domain::Domains;
use super::pool::Cond;
use super::{Event, Skeleton};
use cat::rel::Rel;

fn is_copy(e: &Event) -> bool {
    e.is_asynchronous() && !e.tags.has("MB") && e.is_memory()
}

/// Pairs of events of one thread, in the order of their instructions.
fn pairs(sk: &Skeleton, holds: impl Fn(&Event, &Event) -> bool) -> Rel {
    let (events, thread) = (&sk.events, |e: usize| sk.events[e].thread);
    if !events.iter().any(Event::is_asynchronous) {
        return Rel::empty(sk.len());
    }
    Rel::from_fn(sk.len(), |i, j| {
        i < j && thread(i).is_some() && thread(i) == thread(j) && holds(&events[i], &events[j])
    })
}

/// What comes before an operation begins.
pub(super) fn starts(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    BaseRel::fixed(pairs(sk, |a, b| !a.is_asynchronous() && b.is_asynchronous()))
}

/// Reads of an operation, and the writes next to them.
pub(super) fn inop(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    let feeds = |a: &Event, b: &Event| [a, b].iter().all(|e| e.is_asynchronous()) && a.is_read() && b.is_write();
    let next = (1..sk.len()).map(|j| (j - 1, j));
    BaseRel::fixed(Rel::from_pairs(sk.len(), next.filter(|&(i, j)| feeds(&sk.events[i], &sk.events[j]))))
}

/// Copies, and later arrivals that tell of them.
pub(super) fn carries(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    BaseRel::fixed(pairs(sk, |a, b| is_copy(a) && b.is_asynchronous() && b.tags.has("MB")))
}

/// Copies, and waits with fewer groups of the thread left out than were made since the copy.
pub(super) fn group_done(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    let mut rel = BaseRel::fixed(Rel::empty(sk.len()));
    for (i, j) in pairs(sk, |a, b| is_copy(a) && b.tags.has("GW")).iter() {
        let mark = |e: &Event| sk.program.thread(e.thread?).code.get(e.instr)?.op.mark(e.kind)?.pending;
        let Some(pending) = mark(&sk.events[j]) else { continue };
        let cond = at_least(sk, pending as usize + 1, i..j);
        rel.add(i, j, cond);
    }
    rel
}

/// Copies of one group.
pub(super) fn same_group(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    let mut rel = BaseRel::fixed(Rel::empty(sk.len()));
    for (i, j) in pairs(sk, |a, b| is_copy(a) && is_copy(b)).iter() {
        let some = at_least(sk, 1, i..j);
        let none = sk.pool.not(some);
        rel.add(i, j, none);
    }
    rel
}

/// Whether the thread of the first event makes so many groups among these events.
fn at_least(sk: &mut Skeleton, count: usize, among: std::ops::Range<usize>) -> Cond {
    let thread = sk.events[among.start].thread;
    let makes = |e: &&Event| e.thread == thread && e.tags.has("CG");
    let guards: Vec<Cond> = sk.events[among].iter().filter(makes).map(|e| e.guard).collect();
    if guards.len() < count {
        return Cond::FALSE;
    }
    // By number: whether there are at least so many so far.
    let mut so_far = vec![Cond::FALSE; count + 1];
    so_far[0] = Cond::TRUE;
    for guard in guards {
        for n in (0..count).rev() {
            let one_more = sk.pool.and(so_far[n], guard);
            so_far[n + 1] = sk.pool.or(so_far[n + 1], one_more);
        }
    }
    so_far[count]
}
