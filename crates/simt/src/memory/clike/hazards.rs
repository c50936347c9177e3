//! What makes a finished history undefined: races, and barriers that not all of a group execute, or
//! not with the same arguments.
//!
//! Sources: Khronos, OpenCL C, Synchronization Functions; NVIDIA, CUDA Programming Guide,
//! Synchronization Functions; ISO C++, thread.barrier, thread.latch, thread.sema.

use rustc_hash::FxHashMap;

use super::Clike;
use super::graph::{Contents, Kind};
use super::language::Uniform;
use crate::code::{Code, eval};
use crate::record::{Hazard, HazardKind};
use program::{Barrier, BarrierAction, BarrierNaming, Expr, Scope, Tag, ThreadId};

/// An execution of a barrier: who, where, and which phase.
struct Call<'a> {
    thread: usize,
    instr: usize,
    barrier: &'a Barrier,
    /// Calls of one phase of a barrier have it in common: the barrier, and, where that has phases,
    /// how many calls of it came before in its thread.
    phase: (Key, usize),
}

/// The calls of one phase, by phase.
type Phases<'c, 'a> = FxHashMap<(Key, usize), Vec<&'c Call<'a>>>;

type Key = (Scope, Option<i64>, Option<i64>, Option<i64>);

/// The lanes that a barrier of a warp names; they are a constant in this memory.
fn mask(b: &Barrier) -> Option<i64> {
    b.lanes.as_ref().map(|mask| eval(mask, &[]))
}

fn key(b: &Barrier) -> Key {
    let constant = |e: &Expr| match e {
        Expr::Const(v) => Some(*v),
        _ => None,
    };
    match &b.naming {
        BarrierNaming::Counted { id, .. } => (b.domain, mask(b), None, constant(id)),
        BarrierNaming::Instance { instance, id, .. } => (
            b.domain,
            mask(b),
            Some(*instance),
            id.as_ref().and_then(constant),
        ),
    }
}

/// The calls of one half, by thread.
fn calls<'a>(code: &'a Code, m: &Contents, kind: Kind) -> Vec<Call<'a>> {
    let mut list: Vec<Call<'a>> = Vec::new();
    for thread in 0..m.threads.len() {
        let mut earlier: FxHashMap<Key, usize> = FxHashMap::default();
        for (_, e) in m.of(thread).filter(|(_, e)| e.kind == kind) {
            let Some(barrier) = code.threads[thread].acts[e.instr].barrier() else {
                continue;
            };
            let key = key(barrier);
            let number = earlier.entry(key).or_default();
            let instance = matches!(barrier.naming, BarrierNaming::Instance { .. });
            list.push(Call {
                thread,
                instr: e.instr,
                barrier,
                phase: (key, if instance { 0 } else { *number }),
            });
            *number += 1;
        }
    }
    list
}

fn arguments(b: &Barrier) -> (bool, bool, Option<Scope>) {
    (b.arrive.has(Tag::Global), b.arrive.has(Tag::Local), b.scope)
}

/// Whether a barrier brings together the thread at a call with another one.
fn invites(code: &Code, call: &Call<'_>, thread: usize) -> bool {
    let group = |t: usize| code.group(t, call.barrier.domain);
    thread != call.thread
        && group(thread) == group(call.thread)
        && !excludes(code, call.barrier, thread)
}

/// Whether the mask of a warp's barrier lacks a thread.
fn excludes(code: &Code, b: &Barrier, thread: usize) -> bool {
    mask(b).is_some_and(|mask| mask >> code.lanes[thread].min(31) & 1 == 0)
}

impl Clike {
    /// What is undefined about a history in which every thread has ended or waits for ever.
    pub(super) fn undefined(&self, code: &Code, m: &Contents) -> Vec<Hazard> {
        let mut found: Vec<Hazard> = m.race.iter().cloned().collect();
        found.extend(self.misused_objects(code, m));
        let hazard = |kind, first, second| Hazard {
            kind,
            first,
            second,
            loc: None,
        };
        found.extend(m.misuse.map(|at| hazard(HazardKind::Misuse, at, None)));
        if self.language.uniform == Uniform::Free {
            return found;
        }
        let (arrivals, waits) = (calls(code, m, Kind::Arrive), calls(code, m, Kind::Wait));
        let mut phases: Phases<'_, '_> = FxHashMap::default();
        arrivals
            .iter()
            .for_each(|a| phases.entry(a.phase).or_default().push(a));
        let met = |c: &Call<'_>| phases.get(&c.phase).map_or(&[][..], Vec::as_slice);
        let place = |c: &Call<'_>| (c.thread, c.instr);
        for w in waits
            .iter()
            .filter(|_| self.language.uniform == Uniform::Everyone)
        {
            let differs = |a: &&&Call<'_>| {
                invites(code, a, w.thread) && arguments(a.barrier) != arguments(w.barrier)
            };
            let other = met(w).iter().find(differs);
            found.extend(
                other.map(|a| hazard(HazardKind::BarrierArguments, place(a), Some(place(w)))),
            );
        }
        // Every barrier that is waited at is the last thing that its thread has done; who only
        // arrives goes on.
        let waits_at = |t: usize, i: usize| {
            code.threads[t].acts[i]
                .barrier()
                .is_some_and(|b| b.action != BarrierAction::Arrive)
        };
        let blocked = |t: usize| {
            m.of(t)
                .next_back()
                .is_some_and(|(_, e)| e.kind == Kind::Arrive && waits_at(t, e.instr))
        };
        let over = |t: usize| self.language.uniform == Uniform::Everyone || blocked(t);
        for a in &arrivals {
            let came = |t: usize| met(a).iter().any(|b| b.thread == t);
            // One that says how many take part, as assembly in CUDA C++ can, asks nothing of the
            // others, and nothing of where each of them comes to it.
            let asks_all = !a.barrier.says_count();
            // Of a collective, nobody may have ended without it.
            let missed = |t: usize| a.barrier.is_collective() || over(t);
            let absent = || {
                asks_all
                    && (0..m.threads.len()).any(|t| invites(code, a, t) && missed(t) && !came(t))
            };
            let thread = ThreadId(a.thread as u16);
            if code.program.is_uncooperative(thread, a.barrier) {
                found.push(hazard(HazardKind::Misuse, place(a), None));
            }
            // Who arrives without waiting has to wait later.
            let apart = a.barrier.is_collective() && a.barrier.action == BarrierAction::Arrive;
            let unawaited = || {
                apart
                    && !waits
                        .iter()
                        .any(|w| (w.thread, w.phase) == (a.thread, a.phase))
            };
            if unawaited()
                || excludes(code, a.barrier, a.thread)
                || absent()
                || self.elsewhere(code, met(a), a)
            {
                found.push(hazard(HazardKind::Divergence, place(a), None));
                break;
            }
        }
        found
    }

    /// Whether a thread of the block that runs the same code meets a call at another one, of those
    /// of its phase.
    fn elsewhere(&self, code: &Code, met: &[&Call<'_>], a: &Call<'_>) -> bool {
        let counted = matches!(a.barrier.naming, BarrierNaming::Counted { count: None, .. });
        if !counted
            || (self.language.uniform == Uniform::Waiting && a.barrier.domain == Scope::Warp)
        {
            return false;
        }
        let span = |t: usize, i: usize| code.program.threads[t].code.get(i).map(|c| c.span);
        let block = |t: usize| &code.program.threads[t].place;
        met.iter().any(|b| {
            invites(code, a, b.thread)
                && block(b.thread).same(block(a.thread), Scope::Cta)
                && span(b.thread, 0) == span(a.thread, 0)
                && span(b.thread, b.instr) != span(a.thread, a.instr)
        })
    }
}
