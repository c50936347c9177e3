//! Read-modify-writes that write what they read: when an iteration that does nothing else can be
//! left out.
//!
//! `while (atomicExch(&lock, 1)) ;`, `while (atomicAdd(&flag, 0) == 0) ;`, `while (atomicMax(&flag, 0)
//! == 0) ;`, `while (atomicOr(&lock, 1) & 1) ;` and `while (atomicCAS(&flag, 0, 0) == 0) ;` write
//! in each iteration, and yet wait as a loop of loads does. Take an execution with such an
//! iteration, whose read R takes the value from a write V, and whose write W has the same value.
//! Leave the iteration out, and let those that read from W read from V.
//!
//! # Why the rest is still an execution of the model
//! - All accesses to the location are atomic, of one size, through one address, and each one's
//!   scope includes every other one's thread ([`holds`] asks for it). So coherence is total there,
//!   W comes right after V, and what reads from W comes before the same writes as before.
//! - V reaches the readers of W through R and W, by reads-from between morally strong accesses and
//!   the read-modify-write. Chains of synchronization pass through it (PTX ISA, Memory Consistency
//!   Model, Observation Order; ISO C++, intro.races, release sequence), and communication, closed
//!   under composition, holds the new pair. Every order of what is left is part of what it was, so
//!   that nothing that has to be acyclic, irreflexive or empty breaks, and what raced races still.
//! - Where values must not justify themselves (No-Thin-Air), the new pair takes the place of V → R
//!   → W → reader. If the value of W depends on R, as that of an addition of 0 does, or whether W
//!   is written at all, that is a chain of reads-from and dependencies. If it does not, as that of
//!   an exchange, the chain was broken at R, and the new pair may close a cycle; but not if nothing
//!   depends on a reader, or if no reader is left that has the value: those that read it go round
//!   themselves. Which values there are to read counts where they are few numbers: a thread that
//!   goes on if it has read neither 0 nor 1 is none. Nor if every write to the location depends on
//!   reads of the location alone, as in a lock: then the cycle goes from one to the next through
//!   such writes and reads only. Each write but V stands behind a read that reads from the one
//!   before, or, the first of them, from W, so that each comes later in coherence than the one
//!   before, and V later than W.
//!
//! # Invariants
//! - It is assumed of every such instruction in a loop, and asked when the program is unrolled.
//!   Where it does not hold, the program is unrolled again, and the writes of that instruction
//!   count.

use rustc_hash::{FxHashMap, FxHashSet};

use super::deps::Dependencies;
use super::event::Event;
use super::pool::{Atom, AtomId, Cond, Pool, Term, TermId};
use super::racing::Instructions;
use super::unrolled::Unrolled;
use cat::rel::EventId;
use program::memory::{CellId, Memory};
use program::{BinOp, Program, Tag, ThreadId, Update};

/// Where a location may hold more values than this, nothing is made of which they are.
const MAX_VALUES: usize = 4;

/// A read-modify-write in a loop that may write what it reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub(super) thread: ThreadId,
    pub(super) instr: usize,
    pub(super) read: EventId,
    pub(super) write: EventId,
    /// Whether what it writes depends on what it reads.
    pub(super) depends: bool,
}

/// When a read-modify-write that writes under `guard` writes what it reads, as far as it is worth
/// asking, and whether what it writes depends on it.
pub(super) fn keeps(
    pool: &mut Pool,
    update: &Update,
    (old, new): (TermId, TermId),
    ty: program::Ty,
    guard: Cond,
) -> (Cond, bool) {
    let same = |pool: &mut Pool| pool.cmp(program::CmpOp::Eq, ty, old, new);
    match (update, pool.term(new)) {
        (Update::Exchange(_), _) => (same(pool), false),
        // An operand that is 0 in whatever register, too.
        (Update::Apply(..), _) if new == old => (Cond::TRUE, true),
        // What these make of a value is often that value. Whatever was read, all ones may come out
        // of it.
        (Update::Apply(..), Term::Const(_)) => (same(pool), false),
        (
            Update::Apply(..),
            Term::Bin(BinOp::And | BinOp::Or | BinOp::Min | BinOp::Max, _, a, b),
        ) if a == old && matches!(pool.term(b), Term::Const(_)) => (same(pool), true),
        // It writes what it expects, `atomicCAS(&flag, 0, 0)`, or what such an operation makes of
        // that, as for a byte of a word.
        (Update::CompareExchange { .. }, made) => {
            let same = same(pool);
            let often = matches!(
                made,
                Term::Bin(BinOp::And | BinOp::Or | BinOp::Min | BinOp::Max, ..)
            );
            let never = if often { same } else { Cond::FALSE };
            (
                if pool.and(guard, same) == guard {
                    Cond::TRUE
                } else {
                    never
                },
                true,
            )
        }
        _ => (Cond::FALSE, true),
    }
}

/// Those instructions of which iterations may not be left out: their writes count whatever they
/// write.
pub(super) fn writing(program: &Program, memory: &Memory, out: &mut Unrolled) -> Instructions {
    let mut found = Instructions::default();
    if out.kept.is_empty() || !out.left_out.contains(&true) {
        return found;
    }
    let kept = std::mem::take(&mut out.kept);
    let reads = reads(out);
    let used: FxHashSet<EventId> = reads.iter().flatten().copied().collect();
    for k in &kept {
        if !found.contains(&(k.thread, k.instr)) && !holds(program, memory, out, k, (&used, &reads))
        {
            found.insert((k.thread, k.instr));
        }
    }
    found
}

/// By event, the reads on which it depends.
fn reads(out: &mut Unrolled) -> Vec<FxHashSet<EventId>> {
    let decided = FxHashMap::default();
    let mut deps = Dependencies::new(&mut out.pool, &decided);
    let of_event = |event: &Event| {
        let value = event.value.filter(|_| event.is_write());
        let terms: FxHashSet<EventId> = event
            .addr
            .into_iter()
            .chain(value)
            .flat_map(|term| deps.of_term(term).into_keys())
            .collect();
        terms
            .into_iter()
            .chain(deps.of_cond(event.guard).into_keys())
            .collect()
    };
    let mut reads: Vec<FxHashSet<EventId>> = out.events.iter().map(of_event).collect();
    for &(read, event) in out.addr.iter().chain(&out.data).chain(&out.ctrl) {
        reads[event.index()].insert(read);
    }
    reads
}

/// Whether iterations in which an instruction keeps the value may be left out, as far as the
/// instruction is concerned.
fn holds(
    program: &Program,
    memory: &Memory,
    out: &mut Unrolled,
    k: &Kept,
    (used, reads): (&FxHashSet<EventId>, &[FxHashSet<EventId>]),
) -> bool {
    let cell = |pool: &Pool, e: &Event| -> Option<CellId> {
        memory.cell_at(pool.as_const(e.addr?)?, e.ty.bytes())
    };
    let Some(location) = cell(&out.pool, &out.events[k.read.index()]) else {
        return false;
    };
    let value = out.events[k.write.index()]
        .value
        .and_then(|v| out.pool.as_const(v));
    let accesses = out
        .events
        .iter()
        .enumerate()
        .filter(|(_, e)| (e.is_read() || e.is_write()) && e.thread.is_some());
    let first = memory.cell(memory.cell(location).memory);
    let (mut readers, mut values) = (
        Vec::new(),
        vec![Some(first.init).filter(|_| !first.unknown)],
    );
    let (mut of_location, mut writes) = (FxHashSet::default(), Vec::new());
    for (i, e) in accesses {
        match cell(&out.pool, e) {
            Some(other) if memory.cell(other).memory != memory.cell(location).memory => continue,
            Some(other) if other != location => return false,
            None => return false,
            Some(_) => {}
        }
        for other in [k.read, k.write] {
            if !strong(program, e, &out.events[other.index()]) {
                return false;
            }
        }
        if e.is_write() {
            writes.push(EventId::new(i));
            values.push(
                e.value
                    .and_then(|v| out.pool.as_const(v))
                    .map(|v| e.ty.wrap(v)),
            );
        }
        if e.is_read() {
            of_location.insert(EventId::new(i));
            if used.contains(&EventId::new(i)) {
                readers.push(EventId::new(i));
            }
        }
    }
    // What comes behind a wait at a barrier depends on more than is noted here.
    let passes: Vec<AtomId> = out
        .waits
        .iter()
        .flat_map(|wait| out.pool.support(wait.pass))
        .collect();
    let by_location = writes.into_iter().all(|w| {
        let guard = out.pool.support(out.events[w.index()].guard);
        reads[w.index()].is_subset(&of_location) && !guard.iter().any(|atom| passes.contains(atom))
    });
    if k.depends || by_location {
        return true;
    }
    let Some(value) = value else { return false };
    let known = known(out, &readers, values);
    readers.into_iter().all(|r| {
        let event = &out.events[r.index()];
        let idle = event
            .thread
            .map_or(Cond::FALSE, |t| out.endings[usize::from(t.0)].idle);
        let (guard, value) = (event.guard, event.ty.wrap(value));
        let stays = out.pool.not(idle);
        let stays = out.pool.and(guard, stays);
        let stays = out.pool.and(known, stays);
        never(&mut out.pool, stays, r, value)
    })
}

/// That reads of a location find one of the values that are written there, as far as these are few
/// numbers.
fn known(out: &mut Unrolled, reads: &[EventId], values: Vec<Option<i64>>) -> Cond {
    let Some(mut values) = values.into_iter().collect::<Option<Vec<i64>>>() else {
        return Cond::TRUE;
    };
    values.sort_unstable();
    values.dedup();
    if values.len() > MAX_VALUES {
        return Cond::TRUE;
    }
    let mut known = Cond::TRUE;
    for &r in reads {
        let ty = out.events[r.index()].ty;
        let read = out.pool.read(r, ty);
        let each: Vec<Cond> = (values.iter())
            .map(|&v| {
                let value = out.pool.constant(ty.wrap(v));
                out.pool.cmp(program::CmpOp::Eq, ty, read, value)
            })
            .collect();
        let one = out.pool.exactly(1, &each);
        known = out.pool.and(known, one);
    }
    known
}

/// Whether two accesses are atomic, of one size, and include each other's thread in their scopes.
pub(super) fn strong(program: &Program, a: &Event, b: &Event) -> bool {
    let unscoped = program.dialect.row().scopes.is_empty();
    let reaches = |x: &Event, y: &Event| match (x.thread, y.thread) {
        (Some(t), Some(u)) => {
            t == u
                || x.scope.map_or(unscoped, |s| {
                    program.thread(t).place.same(&program.thread(u).place, s)
                })
        }
        _ => true,
    };
    let proxy = |e: &Event| e.tags.has(Tag::Generic) == a.tags.has(Tag::Generic);
    let atomic = a.tags.has(Tag::Atomic) && b.tags.has(Tag::Atomic);
    atomic
        && (a.ty.bits, a.parts) == (b.ty.bits, b.parts)
        && proxy(b)
        && reaches(a, b)
        && reaches(b, a)
}

/// Whether a condition does not hold where a read has a value, as far as that can be told from the
/// value alone.
fn never(pool: &mut Pool, cond: Cond, read: EventId, value: i64) -> bool {
    let mut care = Cond::TRUE;
    for atom in pool.support(cond) {
        let Some(holds) = truth(pool, pool.atom(atom), read, value) else {
            continue;
        };
        let it = pool.of_atom(atom);
        let it = if holds { it } else { pool.not(it) };
        care = pool.and(care, it);
    }
    pool.and(cond, care) == Cond::FALSE
}

fn truth(pool: &Pool, atom: Atom, read: EventId, value: i64) -> Option<bool> {
    let term = |t: TermId| number(pool, t, read, value);
    match atom {
        Atom::Eq(ty, a, b) => Some(ty.wrap(term(a)?) == ty.wrap(term(b)?)),
        Atom::Lt(ty, a, b) => Some(program::CmpOp::Lt.holds(ty, term(a)?, term(b)?)),
        Atom::Choice(_) => None,
    }
}

/// What a term is if a read has a value; `None` if that does not say.
fn number(pool: &Pool, t: TermId, read: EventId, value: i64) -> Option<i64> {
    match pool.term(t) {
        Term::Const(v) => Some(v),
        Term::Read(r) => (r == read).then_some(value),
        Term::Bin(op, ty, a, b) => Some(op.apply(
            ty,
            number(pool, a, read, value)?,
            number(pool, b, read, value)?,
        )),
        Term::Cast(ty, a) => number(pool, a, read, value).map(|v| ty.wrap(v)),
        Term::Fused(fused, three) => {
            let [a, b, c] = three.map(|t| number(pool, t, read, value));
            Some(fused.apply(a?, b?, c?))
        }
        Term::Ite(..) => None,
    }
}
