//! Orders asynchronous copies: the events before their start, and the waits for them.
//!
//! # Invariants
//! - Events of asynchronous operations are in no thread's program order; only the relations here
//!   order them. In the list of events they follow the order of instructions, with those of one
//!   instruction adjacent.
//! - If an mbarrier object tracks an operation, an operation on the object follows its accesses.
//!   Otherwise a bulk operation is in a bulk group, and a matrix operation in a matrix group. Weak
//!   accesses are copies by `cp.async`; all others are in no group.
//!
//! # Sources
//! - PTX ISA 9.4, Memory Consistency Model, *Asynchronous Operations*.
//! - *Async-group mechanism*: a group holds the operations that its thread started since the
//!   previous group. A wait is for groups of its own thread.
//! - *cp.async.mbarrier.arrive*: an arrival is for all copies that its thread started before, of
//!   any group.
//! - *Mbarrier-based Completion Mechanism*: the operation on the object for a bulk copy covers only
//!   that copy.
//! - *cp.async.bulk.wait_group*: with `.read`, the wait covers only its reads.
//! - *wgmma.commit_group*: a group holds the operations of the warpgroup. So a wait by one of its
//!   threads is for the reads that any of them makes for the same instruction.

use std::collections::HashMap;

use super::base::{BaseRel, is_at, location, speaks_of_readings};
use crate::skeleton::graph::EdgeKind;
use crate::skeleton::pool::Cond;
use crate::skeleton::values::domain::Domains;
use crate::skeleton::{Event, Skeleton};
use cat::rel::Rel;
use program::memory::CellId;
use program::proxy::ASYNC_SPACES;
use program::{Scope, Space, Tag, ThreadId};

fn is_copy(e: &Event) -> bool {
    e.is_asynchronous() && !e.tags.has(Tag::Mbarrier) && e.is_memory()
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

/// Events before an operation starts. For a matrix operation, these are the events before a
/// `wgmma.fence` in front of it.
pub(crate) fn starts(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    fn of_matrices(e: &Event) -> bool {
        e.tags.has(Tag::Wgmma)
    }
    let mut rel = BaseRel::fixed(pairs(sk, |a, b| begins(a, b) && !of_matrices(b)));
    for (i, j) in pairs(sk, |a, b| begins(a, b) && of_matrices(b)).iter() {
        let guards: Vec<Cond> = sk.events[i..j]
            .iter()
            .filter(|e| e.tags.has(Tag::WgmmaFence) && e.thread == sk.events[i].thread)
            .map(|e| e.guard)
            .collect();
        // A fence comes before the operations behind it, if it executes.
        let first = if sk.events[i].tags.has(Tag::WgmmaFence) {
            Cond::TRUE
        } else {
            Cond::FALSE
        };
        let cond = guards
            .into_iter()
            .fold(first, |cond, guard| sk.pool.or(cond, guard));
        rel.add(i, j, cond);
    }
    rel
}

/// Whether an event of a thread comes before one of an asynchronous operation.
fn begins(a: &Event, b: &Event) -> bool {
    !a.is_asynchronous() && b.is_asynchronous()
}

/// Reads of an operation, each with the accesses that depend on it: the writes of atomics, and
/// dependent accesses.
pub(crate) fn inop(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    let fed = sk
        .edges
        .of(EdgeKind::Data)
        .iter()
        .chain(sk.edges.of(EdgeKind::Addr))
        .map(|&(a, b, _)| (a, b))
        .chain(sk.rmw.iter().copied());
    let pairs = fed
        .map(|(a, b)| (a.index(), b.index()))
        .filter(|&(a, b)| [a, b].iter().all(|&e| sk.events[e].is_asynchronous()));
    BaseRel::fixed(Rel::from_pairs(sk.len(), pairs))
}

fn is_bulk(e: &Event) -> bool {
    e.tags.has(Tag::AsyncProxy)
}

/// A tensor copy's reads of the tensor map are in a bulk group, even if an mbarrier object tracks
/// the copy.
fn is_map(e: &Event) -> bool {
    e.tags.has(Tag::TensormapProxy)
}

/// The tag for the groups that an access belongs to, or that a mark makes or waits for; empty for
/// those of `cp.async`.
fn groups(e: &Event) -> Option<Tag> {
    [Tag::Wgmma, Tag::Bulk]
        .into_iter()
        .find(|tag| e.tags.has(*tag))
}

/// As [`groups`], for an access of an asynchronous operation; `None` if it is in no group.
fn groups_of(sk: &Skeleton, i: usize) -> Option<Option<Tag>> {
    let e = &sk.events[i];
    match groups(e) {
        _ if !is_copy(e) || !is_map(e) && !told(sk, i).is_empty() => None,
        None if e.tags.has(Tag::TensorCore) => None,
        None if is_bulk(e) || is_map(e) => Some(Some(Tag::Bulk)),
        None if !e.tags.has(Tag::Weak) => None,
        own => Some(own),
    }
}

impl Skeleton {
    /// The first event of the asynchronous operation that contains an event.
    pub fn operation(&self, e: usize) -> Option<usize> {
        self.events[e].is_asynchronous().then(|| {
            (0..=e)
                .rev()
                .find(|&i| i == 0 || !goes_on(self, i))
                .unwrap_or(0)
        })
    }
}

/// Whether an event is of the same instruction as the previous one. Trial fences may lie between
/// its accesses.
fn goes_on(sk: &Skeleton, j: usize) -> bool {
    let (a, b) = (&sk.events[j - 1], &sk.events[j]);
    let id = |e: &Event| Some(sk.program.thread(e.thread?).code.get(e.instr)?.id);
    // If a loop reaches the instruction again, a new operation begins.
    let further =
        (a.instr, a.part) < (b.instr, b.part) || a.instr == b.instr && a.is_read() && b.is_write();
    a.thread == b.thread
        && id(a).is_some()
        && id(a) == id(b)
        && (further || b.tags.has(Tag::Mbarrier))
}

/// The events of the operation on an mbarrier object that ends an asynchronous operation.
fn told(sk: &Skeleton, i: usize) -> Vec<usize> {
    let behind = (i + 1..sk.len())
        .take_while(|&j| goes_on(sk, j))
        .skip_while(|&j| !sk.events[j].tags.has(Tag::Mbarrier));
    behind
        .take_while(|&j| sk.events[j].tags.has(Tag::Mbarrier))
        .collect()
}

/// Operations with the events that signal them: the operation that ends each; for copies by
/// `cp.async`, later arrivals; and for reads of tensor cores, later arrivals of `tcgen05.commit`.
pub(crate) fn carries(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    fn arrives(e: &Event) -> bool {
        e.is_asynchronous() && e.tags.has(Tag::Mbarrier) && !e.tags.has(Tag::MbarrierBytes)
    }
    let later = pairs(sk, |a, b| is_copy(a) && arrives(b));
    let mut rel = Rel::empty(sk.len());
    for i in (0..sk.len()).filter(|&i| is_copy(&sk.events[i])) {
        told(sk, i).into_iter().for_each(|j| rel.insert(i, j));
        let of_cores = sk.events[i].tags.has(Tag::TensorCore);
        if of_cores || groups_of(sk, i) == Some(None) {
            let arrivals = later.successors(i);
            arrivals
                .filter(|&j| sk.events[j].tags.has(Tag::TensorCore) == of_cores)
                .for_each(|j| rel.insert(i, j));
        }
    }
    BaseRel::fixed(rel)
}

/// Copies with waits for them: fewer groups may be pending than the thread made since the copy.
pub(crate) fn group_done(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    waits(sk, Tag::WaitGroup, |_| true)
}

/// Reads of copies with waits that cover only reads.
pub(crate) fn group_read(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    waits(sk, Tag::WaitGroupRead, Event::is_read)
}

fn waits(sk: &mut Skeleton, tag: Tag, of: fn(&Event) -> bool) -> BaseRel {
    let mut rel = BaseRel::fixed(Rel::empty(sk.len()));
    let shared = shared_reads(sk);
    for (i, j) in pairs(sk, |a, b| is_copy(a) && of(a) && b.tags.has(tag)).iter() {
        let Some(pending) = pending_at(sk, &sk.events[j]) else {
            continue;
        };
        if groups_of(sk, i) == Some(groups(&sk.events[j])) {
            let cond = at_least(sk, pending as usize + 1, i..j);
            rel.add(i, j, cond);
            for &other in shared.get(&i).into_iter().flatten() {
                rel.add(other, j, cond);
            }
        }
    }
    rel
}

/// The warps of a warpgroup (PTX ISA, *Warpgroup*).
const WARPS_OF_GROUP: u32 = 4;

/// Whether two threads belong to one warpgroup.
fn in_one_warpgroup(sk: &Skeleton, a: ThreadId, b: ThreadId) -> bool {
    let (a, b) = (&sk.program.thread(a).place, &sk.program.thread(b).place);
    let warps = a.warp.zip(b.warp);
    a.same(b, Scope::Cta) && warps.is_some_and(|(a, b)| a / WARPS_OF_GROUP == b / WARPS_OF_GROUP)
}

/// A read of a matrix instruction: the micro-op, its part, its text, and how often its thread came
/// to it before.
type MatrixRead<'sk> = (usize, u8, &'sk str, usize);

/// For each read of a matrix instruction, the reads that other threads of the warpgroup make for
/// the same execution of the instruction: those of the same micro-op, of threads that came to it
/// as often before.
fn shared_reads(sk: &Skeleton) -> HashMap<usize, Vec<usize>> {
    let mut came: HashMap<(ThreadId, usize, u8), usize> = HashMap::new();
    let mut same: HashMap<MatrixRead<'_>, Vec<(ThreadId, usize)>> = HashMap::new();
    for (i, e) in sk.events.iter().enumerate() {
        let Some(thread) = e.thread.filter(|_| e.tags.has(Tag::Wgmma) && is_copy(e)) else {
            continue;
        };
        let Some(instr) = sk.program.thread(thread).code.get(e.instr) else {
            continue;
        };
        let before = came.entry((thread, e.instr, e.part)).or_default();
        let read = (e.instr, e.part, instr.text.as_str(), *before);
        same.entry(read).or_default().push((thread, i));
        *before += 1;
    }
    let mut all: HashMap<usize, Vec<usize>> = HashMap::new();
    for reads in same.values().filter(|reads| reads.len() > 1) {
        for &(own, i) in reads {
            let others = reads.iter().filter(|read| read.1 != i);
            let shared = others.filter(|read| in_one_warpgroup(sk, own, read.0));
            all.insert(i, shared.map(|read| read.1).collect());
        }
    }
    all
}

/// The number of groups that may be pending behind a wait.
fn pending_at(sk: &Skeleton, e: &Event) -> Option<u32> {
    sk.program
        .thread(e.thread?)
        .code
        .get(e.instr)?
        .op
        .mark(e.kind)?
        .pending
}

/// Copies by `cp.async` in one group: the thread makes a group behind both, and none between them.
pub(crate) fn same_group(sk: &mut Skeleton, _: &Domains) -> BaseRel {
    let mut rel = BaseRel::fixed(Rel::empty(sk.len()));
    let plain: Vec<bool> = (0..sk.len())
        .map(|e| groups_of(sk, e) == Some(None))
        .collect();
    for (i, j) in pairs(sk, |a, b| is_copy(a) && is_copy(b)).iter() {
        if plain[i] && plain[j] {
            let some = at_least(sk, 1, i..j);
            let none = sk.pool.not(some);
            let made = at_least(sk, 1, j..sk.len());
            let both = sk.pool.and(none, made);
            rel.add(i, j, both);
        }
    }
    rel
}

/// Fences of the async proxy, or restricted to a state space, each with accesses to memory of the
/// state spaces that it names.
pub(crate) fn covers(sk: &mut Skeleton, domains: &Domains) -> BaseRel {
    let mut rel = BaseRel::fixed(Rel::empty(sk.len()));
    for i in 0..sk.len() {
        let names =
            |e: &Event| e.tags.has(Tag::ProxyFence) && (is_bulk(e) || e.tags.has(Tag::Half));
        let Some(thread) = sk.events[i].thread.filter(|_| names(&sk.events[i])) else {
            continue;
        };
        let space = ASYNC_SPACES
            .iter()
            .find(|row| sk.events[i].tags.has(row.1))
            .map(|row| row.1);
        let named = |c: CellId| {
            let cell = sk.memory.cell(c);
            match space {
                None => true,
                Some(Tag::OfGlobal) => cell.space == Space::Global,
                Some(Tag::OfCta) => {
                    cell.space == Space::Shared && is_within(sk, thread, cell.owner, Scope::Cta)
                }
                Some(_) => {
                    cell.space == Space::Shared && is_within(sk, thread, cell.owner, Scope::Cluster)
                }
            }
        };
        let all: Vec<(usize, Vec<CellId>)> = (0..sk.len())
            .filter(|&j| sk.events[j].is_memory())
            .map(|j| {
                (
                    j,
                    domains.cells[j]
                        .iter()
                        .copied()
                        .filter(|&c| named(c))
                        .collect(),
                )
            })
            .collect();
        for (j, cells) in all {
            let mut cond = Cond::FALSE;
            for &c in &cells {
                let here = if cells.len() == domains.cells[j].len() {
                    Cond::TRUE
                } else {
                    is_at(sk, j, c)
                };
                cond = sk.pool.or(cond, here);
            }
            rel.add(i, j, cond);
        }
    }
    rel
}

/// Whether the owner of memory is in the group of a thread.
fn is_within(sk: &Skeleton, thread: ThreadId, owner: Option<ThreadId>, scope: Scope) -> bool {
    owner.is_some_and(|t| {
        t == thread
            || sk
                .program
                .thread(t)
                .place
                .same(&sk.program.thread(thread).place, scope)
    })
}

/// The CTA of an event, by one of its threads, with conditions. An asynchronous operation that
/// writes shared memory belongs to the CTA with that memory; other events belong to the CTA of
/// their thread.
fn blocks(sk: &mut Skeleton, domains: &Domains, i: usize) -> Vec<(ThreadId, Cond)> {
    let Some(thread) = sk.events[i].thread else {
        return Vec::new();
    };
    let stands = |e: &Event| {
        (
            e.thread,
            sk.program
                .thread(thread)
                .code
                .get(e.instr)
                .map(|instr| instr.id),
        )
    };
    // A read precedes the write that depends on it.
    let write = (i..sk.len())
        .take_while(|j| {
            sk.events[*j].is_asynchronous() && stands(&sk.events[*j]) == stands(&sk.events[i])
        })
        .find(|&j| sk.events[j].is_write() && !sk.events[j].tags.has(Tag::Mbarrier));
    let Some(write) = write else {
        return vec![(thread, Cond::TRUE)];
    };
    let cells = &domains.cells[write];
    let alone = cells.len() == 1;
    cells
        .iter()
        .map(|&c: &CellId| {
            (
                sk.memory.cell(c).owner.unwrap_or(thread),
                if alone {
                    Cond::TRUE
                } else {
                    is_at(sk, write, c)
                },
            )
        })
        .collect()
}

/// Events of one CTA; an asynchronous operation belongs to the CTA to which it writes.
pub(crate) fn at_destination(sk: &mut Skeleton, domains: &Domains) -> BaseRel {
    let mut rel = BaseRel::fixed(Rel::empty(sk.len()));
    if !speaks_of_readings(&sk.program) {
        return rel;
    }
    let blocks: Vec<Vec<(ThreadId, Cond)>> =
        (0..sk.len()).map(|i| blocks(sk, domains, i)).collect();
    let n = sk.len();
    for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let mut cond = Cond::FALSE;
        for (&(a, here), &(b, there)) in blocks[i]
            .iter()
            .flat_map(|x| blocks[j].iter().map(move |y| (x, y)))
        {
            if a == b
                || sk
                    .program
                    .thread(a)
                    .place
                    .same(&sk.program.thread(b).place, Scope::Cta)
            {
                let both = sk.pool.and(here, there);
                cond = sk.pool.or(cond, both);
            }
        }
        rel.add(i, j, cond);
    }
    rel
}

/// Accesses to memory that one CTA owns, or that all share.
pub(crate) fn one_memory(sk: &mut Skeleton, domains: &Domains) -> BaseRel {
    if sk.program.asynchronous().is_none() {
        return BaseRel::fixed(Rel::empty(sk.len()));
    }
    location(sk, domains, |memory, c| memory.cell(c).owner)
}

/// The condition that the thread of the first event makes at least `count` groups among these
/// events.
fn at_least(sk: &mut Skeleton, count: usize, among: std::ops::Range<usize>) -> Cond {
    let (thread, own) = (sk.events[among.start].thread, groups_of(sk, among.start));
    let makes =
        |e: &&Event| e.thread == thread && e.tags.has(Tag::CommitGroup) && own == Some(groups(e));
    let guards: Vec<Cond> = sk.events[among]
        .iter()
        .filter(makes)
        .map(|e| e.guard)
        .collect();
    if guards.len() < count {
        return Cond::FALSE;
    }
    // By number: the condition that at least this number was made so far.
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
