//! What makes a finished history undefined: races, and barriers that not all of a group execute, or not with the same
//! arguments.
//!
//! Source: Khronos, OpenCL C, Synchronization Functions; OpenCL API specification, Memory Model, Data races.

use super::Clike;
use super::graph::{Contents, Kind};
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

type Key = (Scope, Option<i64>, Option<i64>);

fn key(b: &Barrier) -> Key {
    let constant = |e: &Expr| match e {
        Expr::Const(v) => Some(*v),
        _ => None,
    };
    match &b.naming {
        BarrierNaming::Counted { id, .. } => (b.domain, None, constant(id)),
        BarrierNaming::Instance { instance, id, .. } => {
            (b.domain, Some(*instance), id.as_ref().and_then(constant))
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

impl Clike {
    /// What is undefined about a history in which every thread has ended or waits for ever.
    pub(super) fn undefined(&self, code: &Code, m: &Contents) -> Vec<Hazard> {
        let mut found: Vec<Hazard> = m.race.iter().cloned().collect();
        if !self.language.uniform {
            return found;
        }
        let (arrivals, waits) = (calls(code, m, Kind::Arrive), calls(code, m, Kind::Wait));
        let hazard = |kind, a: &Call<'_>, b: Option<&Call<'_>>| Hazard {
            kind,
            first: (a.thread, a.instr),
            second: b.map(|b| (b.thread, b.instr)),
            loc: None,
        };
        for w in &waits {
            let differs = |a: &&Call<'_>| {
                a.thread != w.thread
                    && code.group(a.thread, w.barrier.domain) == code.group(w.thread, w.barrier.domain)
                    && a.meets(w)
                    && arguments(a.barrier) != arguments(w.barrier)
            };
            found.extend(arrivals.iter().find(differs).map(|a| hazard(HazardKind::BarrierArguments, a, Some(w))));
        }
        for a in &arrivals {
            let group = |t: usize| code.group(t, a.barrier.domain);
            let missing = |t: usize| {
                group(t) == group(a.thread)
                    && t != a.thread
                    && !arrivals.iter().any(|b| b.thread == t && b.meets(a))
            };
            if (0..m.threads.len()).any(missing) {
                found.push(hazard(HazardKind::Divergence, a, None));
                break;
            }
        }
        found
    }
}
