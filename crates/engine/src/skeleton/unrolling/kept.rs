//! Finds read-modify-writes that write the value they read, so that an iteration without another
//! effect can be left out.
//!
//! These loops write in each iteration, but wait like a loop of loads:
//! - `while (atomicExch(&lock, 1)) ;`
//! - `while (atomicAdd(&flag, 0) == 0) ;`
//! - `while (atomicMax(&flag, 0) == 0) ;`
//! - `while (atomicOr(&lock, 1) & 1) ;`
//! - `while (atomicCAS(&flag, 0, 0) == 0) ;`
//!
//! Take an execution with such an iteration. Its read R reads from a write V, and its write W has
//! the same value. Remove the iteration, and let the readers of W read from V.
//!
//! # Why the rest is still an execution of the model
//! - All accesses to the location are atomic, of one size, through one address, and with scopes
//!   that include each other's thread ([`holds`] checks it). So coherence is total there, and W
//!   comes right after V. The readers of W then come before the same writes as before.
//! - V reaches the readers of W through R and W, by reads-from between morally strong accesses and
//!   the read-modify-write. Chains of synchronization pass through it (PTX ISA, Memory Consistency
//!   Model, Observation Order; ISO C++, intro.races, release sequence). Communication is closed
//!   under composition, so it contains the new pair. Every order on the remaining events is part of
//!   the old one. So every relation that must be acyclic, irreflexive or empty remains so, and
//!   every race remains.
//! - Values must not justify themselves (No-Thin-Air), and the new pair replaces V → R → W →
//!   reader. If W or its value depends on R, as for an addition of 0, the old path was already a
//!   chain of reads-from and dependencies. If not, as for an exchange, the old chain broke at R,
//!   and the new pair may close a cycle. [`holds`] admits three cases without such a cycle:
//!   - Nothing depends on a reader.
//!   - No remaining reader has the value, because a thread that reads it repeats its loop. The
//!     possible values matter if they are few numbers: a thread that continues only if it reads
//!     neither 0 nor 1 never continues.
//!   - Every write to the location depends only on reads of the location, as in a lock. Then a
//!     cycle consists only of such writes and reads. Each write but V follows a read of the
//!     previous write, or, for the first one, a read of W. So each comes later in coherence than
//!     the previous one, and V later than W, which is impossible.
//!
//! # Invariants
//! - Unrolling assumes this for every such instruction in a loop, and checks it afterwards. If the
//!   check fails, it unrolls the program again and counts the writes of that instruction as
//!   effects.

use rustc_hash::{FxHashMap, FxHashSet};

use super::deps::Dependencies;
use super::unrolled::{Instructions, PreservingRmw, Unrolling};
use crate::skeleton::event::Event;
use crate::skeleton::pool::{AtomId, Cond, CondAtom, Term, TermId, TermPool};
use cat::rel::EventId;
use program::memory::{CellId, Memory};
use program::{BinOp, Program, Tag, Update};

/// The largest number of values of a location for which the values themselves matter.
const MAX_VALUES: usize = 4;

/// The condition that a read-modify-write with this `guard` writes the value it reads, if that is
/// plausible. The flag says whether the written value depends on the read.
pub(crate) fn keeps(
    pool: &mut TermPool,
    update: &Update,
    old: TermId,
    new: TermId,
    ty: program::Ty,
    guard: Cond,
) -> (Cond, bool) {
    match (update, pool.term(new)) {
        (Update::Exchange(_), _) => (writes_same(ty, old, new, pool), false),
        // The operand is 0, possibly through a register.
        (Update::Apply(..), _) if new == old => (Cond::TRUE, true),
        // These operations often return their operand. All ones can result whatever was read.
        (Update::Apply(..), Term::Const(_)) => (writes_same(ty, old, new, pool), false),
        (
            Update::Apply(..),
            Term::Bin(BinOp::And | BinOp::Or | BinOp::Min | BinOp::Max, _, a, b),
        ) if a == old && matches!(pool.term(b), Term::Const(_)) => {
            (writes_same(ty, old, new, pool), true)
        }
        // It writes the expected value, `atomicCAS(&flag, 0, 0)`, or the result of such an
        // operation on it, as for a byte of a word.
        (Update::CompareExchange { .. }, made) => {
            let same = writes_same(ty, old, new, pool);
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

/// The condition that two values are equal.
fn writes_same(ty: program::Ty, old: TermId, new: TermId, pool: &mut TermPool) -> Cond {
    pool.cmp(program::CmpOp::Eq, ty, old, new)
}

/// The instructions whose iterations must stay: their writes count as effects, whatever the value.
pub(crate) fn writing(program: &Program, memory: &Memory, out: &mut Unrolling) -> Instructions {
    let mut found = Instructions::default();
    if out.kept.is_empty() || !out.left_out.contains(&true) {
        return found;
    }
    let kept = std::mem::take(&mut out.kept);
    let reads = reads(out);
    let used: FxHashSet<EventId> = reads.iter().flatten().copied().collect();
    for k in &kept {
        if !found.contains(&(k.thread, k.instr)) && !holds(program, memory, out, k, &used, &reads) {
            found.insert((k.thread, k.instr));
        }
    }
    found
}

/// By event: the reads that it depends on.
fn reads(out: &mut Unrolling) -> Vec<FxHashSet<EventId>> {
    let decided = FxHashMap::default();
    let mut deps = Dependencies::new(&mut out.pool, &decided);
    let mut reads: Vec<FxHashSet<EventId>> = out
        .events
        .iter()
        .map(|event: &Event| {
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
        })
        .collect();
    for &(read, event) in out.addr.iter().chain(&out.data).chain(&out.ctrl) {
        reads[event.index()].insert(read);
    }
    reads
}

/// Whether iterations in which this instruction keeps the value may be left out, by the conditions
/// on this instruction.
fn holds(
    program: &Program,
    memory: &Memory,
    out: &mut Unrolling,
    k: &PreservingRmw,
    used: &FxHashSet<EventId>,
    reads: &[FxHashSet<EventId>],
) -> bool {
    let Some(location) = accessed(memory, &out.pool, &out.events[k.read.index()]) else {
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
        match accessed(memory, &out.pool, e) {
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
    // Events behind a wait at a barrier depend on more reads than `reads` lists.
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

/// The cell of an access with a constant address.
fn accessed(memory: &Memory, pool: &TermPool, e: &Event) -> Option<CellId> {
    memory.cell_at(pool.as_const(e.addr?)?, e.ty.bytes())
}

/// The condition that each read returns one of the written values; true if these are not few
/// numbers.
fn known(out: &mut Unrolling, reads: &[EventId], values: Vec<Option<i64>>) -> Cond {
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
pub(crate) fn strong(program: &Program, a: &Event, b: &Event) -> bool {
    let unscoped = program.dialect.row().scopes.is_empty();
    let atomic = a.tags.has(Tag::Atomic) && b.tags.has(Tag::Atomic);
    atomic
        && (a.ty.bits, a.parts) == (b.ty.bits, b.parts)
        && b.tags.has(Tag::Generic) == a.tags.has(Tag::Generic)
        && reaches(program, unscoped, a, b)
        && reaches(program, unscoped, b, a)
}

/// Whether the scope of an event includes the thread of another; `unscoped` if it has none.
fn reaches(program: &Program, unscoped: bool, x: &Event, y: &Event) -> bool {
    match (x.thread, y.thread) {
        (Some(t), Some(u)) => {
            t == u
                || x.scope.map_or(unscoped, |s| {
                    program.thread(t).place.same(&program.thread(u).place, s)
                })
        }
        _ => true,
    }
}

/// Whether a condition fails if a read has this value, by the value alone.
fn never(pool: &mut TermPool, cond: Cond, read: EventId, value: i64) -> bool {
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

fn truth(pool: &TermPool, atom: CondAtom, read: EventId, value: i64) -> Option<bool> {
    let term = |t: TermId| number(pool, t, read, value);
    match atom {
        CondAtom::Eq(ty, a, b) => Some(ty.wrap(term(a)?) == ty.wrap(term(b)?)),
        CondAtom::Lt(ty, a, b) => Some(program::CmpOp::Lt.holds(ty, term(a)?, term(b)?)),
        CondAtom::Choice(_) => None,
    }
}

/// The value of a term if a read has this value; `None` if that does not determine it.
fn number(pool: &TermPool, t: TermId, read: EventId, value: i64) -> Option<i64> {
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
