//! What makes a finished history undefined: races, and barriers that not all of a group execute, or not with the same
//! arguments.
//!
//! Sources: Khronos, OpenCL C, Synchronization Functions; NVIDIA, CUDA Programming Guide, Synchronization Functions; ISO
//! C++, thread.barrier, thread.latch, thread.sema.

use super::Clike;
use super::graph::{Contents, Kind};
use super::language::Uniform;
use crate::program::{Barrier, BarrierNaming, Expr, Scope};
use crate::simt::code::{Act, Code};
use crate::simt::record::{Hazard, HazardKind};

/// An execution of a barrier: who, where, and the how manieth of that barrier in its thread.
struct Call<'a> {
    thread: usize,
    instr: usize,
    barrier: &'a Barrier,
    number: usize,
}

type Key = (Scope, Option<u32>, Option<i64>, Option<i64>);

fn key(b: &Barrier) -> Key {
    let constant = |e: &Expr| match e {
        Expr::Const(v) => Some(*v),
        _ => None,
    };
    match &b.naming {
        BarrierNaming::Counted { id, .. } => (b.domain, b.lanes, None, constant(id)),
        BarrierNaming::Instance { instance, id, .. } => {
            (b.domain, b.lanes, Some(*instance), id.as_ref().and_then(constant))
        }
    }
}

impl Call<'_> {
    /// Whether two calls are of one barrier and one phase of it.
    fn meets(&self, other: &Call<'_>) -> bool {
        let instance = matches!(self.barrier.naming, BarrierNaming::Instance { .. });
        key(self.barrier) == key(other.barrier) && (instance || self.number == other.number)
    }
}

/// The calls of one half, by thread.
fn calls<'a>(code: &'a Code, m: &Contents, kind: Kind) -> Vec<Call<'a>> {
    let mut list: Vec<Call<'a>> = Vec::new();
    for thread in 0..m.threads.len() {
        for (_, e) in m.of(thread).filter(|(_, e)| e.kind == kind) {
            let Act::Barrier(barrier) = &code.threads[thread].acts[e.instr] else { continue };
            let earlier = list.iter().filter(|c| c.thread == thread && key(c.barrier) == key(barrier)).count();
            list.push(Call { thread, instr: e.instr, barrier, number: earlier });
        }
    }
    list
}

fn arguments(b: &Barrier) -> (bool, bool, Option<Scope>) {
    (b.arrive.has("GLOBAL"), b.arrive.has("LOCAL"), b.scope)
}

/// Whether a barrier brings together the thread at a call with another one.
fn invites(code: &Code, call: &Call<'_>, thread: usize) -> bool {
    let group = |t: usize| code.group(t, call.barrier.domain);
    thread != call.thread && group(thread) == group(call.thread) && !excludes(code, call.barrier, thread)
}

/// Whether the mask of a warp's barrier lacks a thread.
fn excludes(code: &Code, b: &Barrier, thread: usize) -> bool {
    b.lanes.is_some_and(|mask| mask >> code.lanes[thread].min(31) & 1 == 0)
}

impl Clike {
    /// What is undefined about a history in which every thread has ended or waits for ever.
    pub(super) fn undefined(&self, code: &Code, m: &Contents) -> Vec<Hazard> {
        let mut found: Vec<Hazard> = m.race.iter().cloned().collect();
        let hazard = |kind, first, second| Hazard { kind, first, second, loc: None };
        found.extend(m.misuse.map(|at| hazard(HazardKind::Misuse, at, None)));
        if self.language.uniform == Uniform::Free {
            return found;
        }
        let (arrivals, waits) = (calls(code, m, Kind::Arrive), calls(code, m, Kind::Wait));
        let place = |c: &Call<'_>| (c.thread, c.instr);
        for w in waits.iter().filter(|_| self.language.uniform == Uniform::Everyone) {
            let differs = |a: &&Call<'_>| {
                invites(code, a, w.thread) && a.meets(w) && arguments(a.barrier) != arguments(w.barrier)
            };
            let other = arrivals.iter().find(differs);
            found.extend(other.map(|a| hazard(HazardKind::BarrierArguments, place(a), Some(place(w)))));
        }
        // Every barrier that is waited at is the last thing that its thread has done.
        let blocked = |t: usize| m.of(t).next_back().is_some_and(|(_, e)| e.kind == Kind::Arrive);
        let over = |t: usize| self.language.uniform == Uniform::Everyone || blocked(t);
        for a in &arrivals {
            let came = |t: usize| arrivals.iter().any(|b| b.thread == t && b.meets(a));
            let absent = || (0..m.threads.len()).any(|t| invites(code, a, t) && over(t) && !came(t));
            if excludes(code, a.barrier, a.thread) || absent() || self.elsewhere(code, &arrivals, a) {
                found.push(hazard(HazardKind::Divergence, place(a), None));
                break;
            }
        }
        found
    }

    /// Whether a thread that runs the same code meets a call at another one.
    fn elsewhere(&self, code: &Code, arrivals: &[Call<'_>], a: &Call<'_>) -> bool {
        let counted = matches!(a.barrier.naming, BarrierNaming::Counted { .. });
        if !counted || (self.language.uniform == Uniform::Waiting && a.barrier.domain == Scope::Warp) {
            return false;
        }
        let span = |t: usize, i: usize| code.program.threads[t].code.get(i).map(|c| c.span);
        arrivals.iter().any(|b| {
            invites(code, a, b.thread)
                && b.meets(a)
                && span(b.thread, 0) == span(a.thread, 0)
                && span(b.thread, b.instr) != span(a.thread, a.instr)
        })
    }
}
