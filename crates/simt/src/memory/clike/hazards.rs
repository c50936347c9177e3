//! Finds undefined behaviour of a finished history: races, and barriers that only part of a group
//! executes, or with different arguments.
//!
//! Sources: Khronos, OpenCL C, Synchronization Functions; NVIDIA, CUDA Programming Guide,
//! Synchronization Functions; ISO C++, thread.barrier, thread.latch, thread.sema.

use rustc_hash::FxHashMap;

use super::Clike;
use super::graph::{History, HistoryKind};
use super::language::Uniform;
use crate::code::Code;
use crate::record::{HazardKind, RunHazard};
use program::{Barrier, BarrierAction, BarrierNaming, Expr, Scope, Tag, ThreadId};

/// An execution of a barrier: its thread, its instruction and its phase.
struct BarrierCall<'a> {
    thread: usize,
    instr: usize,
    barrier: &'a Barrier,
    /// The mask of a warp's barrier, as it was at the call.
    mask: Option<i64>,
    /// All calls of one phase share this: the barrier and, if it has phases, the number of earlier
    /// calls in the thread.
    phase: (NamingKey, usize),
}

/// The calls of each phase.
type Phases<'c, 'a> = FxHashMap<(NamingKey, usize), Vec<&'c BarrierCall<'a>>>;

type NamingKey = (Scope, Option<i64>, Option<i64>, Option<i64>);

fn key(b: &Barrier, mask: Option<i64>) -> NamingKey {
    fn constant(e: &Expr) -> Option<i64> {
        match e {
            Expr::Const(v) => Some(*v),
            _ => None,
        }
    }
    match &b.naming {
        BarrierNaming::Counted { id, .. } => (b.domain, mask, None, constant(id)),
        BarrierNaming::Instance { instance, id, .. } => (
            b.domain,
            mask,
            Some(*instance),
            id.as_ref().and_then(constant),
        ),
    }
}

/// The calls of one half, by thread.
fn calls<'a>(code: &'a Code, m: &History, kind: HistoryKind) -> Vec<BarrierCall<'a>> {
    let mut list: Vec<BarrierCall<'a>> = Vec::new();
    for thread in 0..m.threads.len() {
        let mut earlier: FxHashMap<NamingKey, usize> = FxHashMap::default();
        for (_, e) in m.of(thread).filter(|(_, e)| e.kind == kind) {
            let Some(barrier) = code.threads[thread].acts[e.instr].barrier() else {
                continue;
            };
            let mask = barrier.lanes.is_some().then_some(e.value);
            let key = key(barrier, mask);
            let number = earlier.entry(key).or_default();
            let instance = matches!(barrier.naming, BarrierNaming::Instance { .. });
            list.push(BarrierCall {
                thread,
                instr: e.instr,
                barrier,
                mask,
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

/// Whether a call's barrier is also for the given thread.
fn invites(code: &Code, call: &BarrierCall<'_>, thread: usize) -> bool {
    let group = |t: usize| code.group(t, call.barrier.domain);
    thread != call.thread && group(thread) == group(call.thread) && !excludes(code, call, thread)
}

/// Whether the mask of a warp's barrier lacks a thread.
fn excludes(code: &Code, call: &BarrierCall<'_>, thread: usize) -> bool {
    call.mask
        .is_some_and(|mask| mask >> code.lanes[thread].min(31) & 1 == 0)
}

impl BarrierCall<'_> {
    /// Its thread and instruction.
    fn place(&self) -> (usize, usize) {
        (self.thread, self.instr)
    }
}

fn hazard(kind: HazardKind, first: (usize, usize), second: Option<(usize, usize)>) -> RunHazard {
    RunHazard {
        kind,
        first,
        second,
        loc: None,
    }
}

/// The calls in the phase of a call.
fn met<'p, 'c, 'a>(phases: &'p Phases<'c, 'a>, c: &BarrierCall<'_>) -> &'p [&'c BarrierCall<'a>] {
    phases.get(&c.phase).map_or(&[], Vec::as_slice)
}

/// Whether a thread waits at a barrier at the end of its history. A barrier with a wait is the last
/// action of a waiting thread; a thread that only arrives goes on.
fn is_blocked(code: &Code, m: &History, t: usize) -> bool {
    let last = m.of(t).next_back();
    let last = last.filter(|(_, e)| e.kind == HistoryKind::Arrive);
    last.and_then(|(_, e)| code.threads[t].acts[e.instr].barrier())
        .is_some_and(|b| b.action != BarrierAction::Arrive)
}

/// Whether a thread arrives at a collective without the wait that has to follow.
fn is_unawaited(a: &BarrierCall<'_>, waits: &[BarrierCall<'_>]) -> bool {
    a.barrier.is_collective()
        && a.barrier.action == BarrierAction::Arrive
        && !waits
            .iter()
            .any(|w| (w.thread, w.phase) == (a.thread, a.phase))
}

/// Whether a thread that runs the code of a call executed an instruction behind the call.
fn goes_on_behind(code: &Code, m: &History, call: &BarrierCall<'_>, thread: usize) -> bool {
    // The entries of the host's order are no instructions of the thread.
    code.kin[thread] == code.kin[call.thread]
        && m.of(thread).any(|(_, e)| {
            !matches!(e.kind, HistoryKind::Hand | HistoryKind::Tell) && e.instr > call.instr
        })
}

impl Clike {
    /// The undefined behaviour of a history in which every thread has ended or waits forever.
    pub(super) fn undefined(&self, code: &Code, m: &History) -> Vec<RunHazard> {
        let mut found: Vec<RunHazard> = m.race.iter().cloned().collect();
        found.extend(self.misused_objects(code, m));
        found.extend(m.misuse.map(|at| hazard(HazardKind::Misuse, at, None)));
        if self.language.uniform == Uniform::Free {
            return found;
        }
        let arrivals = calls(code, m, HistoryKind::Arrive);
        let waits = calls(code, m, HistoryKind::Wait);
        let mut phases: Phases<'_, '_> = FxHashMap::default();
        for a in &arrivals {
            phases.entry(a.phase).or_default().push(a);
        }
        let everyone = self.language.uniform == Uniform::Everyone;
        for w in waits.iter().filter(|_| everyone) {
            let other = met(&phases, w).iter().find(|a| {
                invites(code, a, w.thread) && arguments(a.barrier) != arguments(w.barrier)
            });
            found.extend(
                other.map(|a| hazard(HazardKind::BarrierArguments, a.place(), Some(w.place()))),
            );
        }
        for a in &arrivals {
            let thread = ThreadId(a.thread as u16);
            if code.program.is_uncooperative(thread, a.barrier) {
                found.push(hazard(HazardKind::Misuse, a.place(), None));
            }
            let met = met(&phases, a);
            if is_unawaited(a, &waits)
                || excludes(code, a, a.thread)
                || self.is_missed(code, m, met, a)
                || self.elsewhere(code, met, a)
            {
                found.push(hazard(HazardKind::Divergence, a.place(), None));
                break;
            }
        }
        found
    }

    /// Whether a thread that a call's barrier is for has not come to it and never will.
    fn is_missed(
        &self,
        code: &Code,
        m: &History,
        met: &[&BarrierCall<'_>],
        a: &BarrierCall<'_>,
    ) -> bool {
        // A barrier with a thread count (as in assembly within CUDA C++) requires nothing of the
        // other threads, nor of the place of their calls. No thread may end without executing a
        // collective. A thread that executes code behind the call has gone around it.
        !a.barrier.says_count()
            && (0..m.threads.len()).any(|t| {
                let is_over = a.barrier.is_collective()
                    || self.language.uniform == Uniform::Everyone
                    || is_blocked(code, m, t)
                    || goes_on_behind(code, m, a, t);
                invites(code, a, t) && is_over && !met.iter().any(|b| b.thread == t)
            })
    }

    /// Whether a thread of the block that runs the same code is at a different call, in the phase
    /// of `a`.
    fn elsewhere(&self, code: &Code, met: &[&BarrierCall<'_>], a: &BarrierCall<'_>) -> bool {
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
