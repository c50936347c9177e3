//! Asynchronous copies: after what they start, and what waits for them.
//!
//! # Invariants
//! - Events of asynchronous operations are in no thread's program order; the relations here are all that orders them. The
//!   list of events has them where their instructions stand, those of one instruction side by side.
//! - A bulk copy that an mbarrier object tracks has an operation on it behind its accesses; one without is of a bulk group.
//!
//! # Sources
//! - PTX ISA 9.4, Memory Consistency Model, *Asynchronous Operations*; *Async-group mechanism*: a group is what its thread has
//!   begun since the one before, and a wait is for groups of its own thread; *cp.async.mbarrier.arrive*: an arrival is for all
//!   copies that its thread began before, of whatever group. *Mbarrier-based Completion Mechanism*: of a bulk copy, the operation on
//!   the object tells of that copy alone. *cp.async.bulk.wait_group*: with `.read`, of its reads alone.

use super::base::{BaseRel, is_at, location};
use super::domain::Domains;
use super::pool::Cond;
use super::{Event, Skeleton};
use cat::rel::Rel;
use program::memory::CellId;
use program::proxy::ASYNC_SPACES;
use program::{Scope, Space, ThreadId};

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

fn is_bulk(e: &Event) -> bool {
    e.tags.has("ASYNC")
}

/// The operation on an mbarrier object that tells of a bulk copy: its events.
fn told(sk: &Skeleton, i: usize) -> Vec<usize> {
    let stands = |e: &Event| Some((sk.program.thread(e.thread?).code.get(e.instr)?.span, e.instr, e.part));
    let next = |j: usize| {
        let (Some(a), Some(b)) = (stands(&sk.events[j - 1]), stands(&sk.events[j])) else { return false };
        sk.events[j].thread == sk.events[i].thread
            && a.0 == b.0
            && ((a.1, a.2) < (b.1, b.2) || sk.events[j].tags.has("MB"))
    };
    let behind = (i + 1..sk.len()).take_while(|&j| next(j)).skip_while(|&j| !sk.events[j].tags.has("MB"));
    behind.take_while(|&j| sk.events[j].tags.has("MB")).collect()
}

/// Copies, and arrivals that tell of them: later ones of all copies that are not bulk copies.
pub(super) fn carries(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    let arrives = |e: &Event| e.is_asynchronous() && e.tags.has("MB") && !e.tags.has("MBT");
    let mut rel = pairs(sk, |a, b| is_copy(a) && !is_bulk(a) && arrives(b));
    for i in (0..sk.len()).filter(|&i| is_copy(&sk.events[i]) && is_bulk(&sk.events[i])) {
        told(sk, i).into_iter().for_each(|j| rel.insert(i, j));
    }
    BaseRel::fixed(rel)
}

/// Copies, and waits with fewer groups of the thread left out than were made since the copy.
pub(super) fn group_done(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    waits(sk, "GW", |_| true)
}

/// Reads of copies, and waits for such alone.
pub(super) fn group_read(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    waits(sk, "GR", Event::is_read)
}

fn waits(sk: &mut Skeleton, tag: &str, of: fn(&Event) -> bool) -> BaseRel {
    let mut rel = BaseRel::fixed(Rel::empty(sk.len()));
    let kind = |e: &Event| e.tags.has("BULK");
    for (i, j) in pairs(sk, |a, b| is_copy(a) && of(a) && b.tags.has(tag) && is_bulk(a) == kind(b)).iter() {
        let mark = |e: &Event| sk.program.thread(e.thread?).code.get(e.instr)?.op.mark(e.kind)?.pending;
        let Some(pending) = mark(&sk.events[j]) else { continue };
        if is_bulk(&sk.events[i]) && !told(sk, i).is_empty() {
            continue;
        }
        let cond = at_least(sk, pending as usize + 1, i..j);
        rel.add(i, j, cond);
    }
    rel
}

/// Copies of one group that are not bulk copies.
pub(super) fn same_group(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    let mut rel = BaseRel::fixed(Rel::empty(sk.len()));
    for (i, j) in pairs(sk, |a, b| [a, b].iter().all(|e| is_copy(e) && !is_bulk(e))).iter() {
        let some = at_least(sk, 1, i..j);
        let none = sk.pool.not(some);
        rel.add(i, j, none);
    }
    rel
}

/// Fences of the async proxy, and accesses to memory of the state spaces that they name.
pub(super) fn covers(sk: &mut Skeleton, domains: &Domains) -> BaseRel {
    let mut rel = BaseRel::fixed(Rel::empty(sk.len()));
    for i in 0..sk.len() {
        let Some(thread) = sk.events[i].thread.filter(|_| sk.events[i].tags.has("PF") && is_bulk(&sk.events[i]))
        else {
            continue;
        };
        let within = |owner: Option<ThreadId>, scope: Scope| {
            owner.is_some_and(|t| {
                t == thread || sk.program.thread(t).place.same(&sk.program.thread(thread).place, scope)
            })
        };
        let space = ASYNC_SPACES.iter().find(|row| sk.events[i].tags.has(row.1)).map(|row| row.1);
        let named = |c: CellId| {
            let cell = sk.memory.cell(c);
            match space {
                None => true,
                Some("OF_GLOBAL") => cell.space == Space::Global,
                Some("OF_CTA") => cell.space == Space::Shared && within(cell.owner, Scope::Cta),
                Some(_) => cell.space == Space::Shared && within(cell.owner, Scope::Cluster),
            }
        };
        let all: Vec<(usize, Vec<CellId>)> = (0..sk.len())
            .filter(|&j| sk.events[j].is_memory())
            .map(|j| (j, domains.cells[j].iter().copied().filter(|&c| named(c)).collect()))
            .collect();
        for (j, cells) in all {
            let mut cond = Cond::FALSE;
            for &c in &cells {
                let here = if cells.len() == domains.cells[j].len() { Cond::TRUE } else { is_at(sk, j, c) };
                cond = sk.pool.or(cond, here);
            }
            rel.add(i, j, cond);
        }
    }
    rel
}

/// Accesses to memory that one CTA has, or that all have.
pub(super) fn one_memory(sk: &mut Skeleton, domains: &Domains) -> BaseRel {
    if sk.program.asynchronous().is_none() {
        return BaseRel::fixed(Rel::empty(sk.len()));
    }
    location(sk, domains, |memory, c| memory.cell(c).owner)
}

/// Whether the thread of the first event makes so many groups among these events.
fn at_least(sk: &mut Skeleton, count: usize, among: std::ops::Range<usize>) -> Cond {
    let thread = sk.events[among.start].thread;
    let bulk = is_bulk(&sk.events[among.start]);
    let makes = |e: &&Event| e.thread == thread && e.tags.has("CG") && e.tags.has("BULK") == bulk;
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
