//! Finds misuse in a run of PTX code: operations that break their precondition, and aligned
//! instructions that the threads of a warp did not execute together.
//!
//! The program itself marks the first kind: it executes a fence with the tag `MISUSE` there. The
//! rules of the second kind are those of the checkers' base relation `divergence`: the first
//! aligned instruction of a thread belongs to the first of each other thread of its warp, and so
//! on. Of such a pair, both must be one instruction. A thread that lacks an instruction is missed
//! if it executed a later one, or waits forever.
//!
//! # Invariants
//! - A thread that ended before the instruction, or left by a branch to the end, is not missed.
//! - The state must be the end of the run: every thread has ended, or waits forever.
//!
//! # Sources
//! - PTX ISA 9.4, *bar / barrier*, *barrier.cluster*: `.aligned`; *shfl.sync*, *vote.sync*:
//!   undefined, if the executing thread is not in the mask; *mbarrier*: preconditions.

use super::code::{Act, Code};
use super::record::{HazardKind, RunEvent, RunHazard, Spot, WriteId};
use super::thread::{ThreadState, ThreadStatus};
use program::dialect::Convergence;
use program::{BarrierAction, Scope, Tag};

/// The actions of one thread that matter to aligned instructions.
#[derive(Clone, Default)]
struct Trail {
    /// Its aligned instructions, in the order of their execution.
    aligned: Vec<usize>,
    /// The last instruction, in the order of the text, that it executed as an event.
    furthest: Option<usize>,
    /// Whether it waits forever.
    stuck: bool,
}

/// Whether a run of this program can have misuse that this file finds. The memories of other
/// languages find their own.
pub(super) fn applies(code: &Code) -> bool {
    code.program.dialect.row().convergence == Convergence::Aligned
        && (may_part(code)
            || code
                .program
                .instrs()
                .any(|(.., instr)| instr.op.has(Tag::Misuse)))
}

/// Whether a warp of several threads has aligned instructions.
fn may_part(code: &Code) -> bool {
    let in_warp = |t: usize| code.members(code.group(t, Scope::Warp), Scope::Warp).len() > 1;
    let aligned = |t: usize| {
        let acts = 0..code.threads[t].acts.len();
        acts.into_iter()
            .any(|pc| is_aligned(code, t, pc, true) || is_aligned(code, t, pc, false))
    };
    (0..code.own_threads()).any(|t| in_warp(t) && aligned(t))
}

/// Whether an instruction is aligned; one that arrives and waits counts as its arrival. `waits`:
/// whether the question is about a wait.
fn is_aligned(code: &Code, thread: usize, instr: usize, waits: bool) -> bool {
    match &code.threads[thread].acts[instr] {
        Act::Barrier(b) => b.is_aligned() && waits == (b.action == BarrierAction::Wait),
        Act::Mark { .. } => !waits && code.program.threads[thread].code[instr].op.has(Tag::Lanes),
        _ => false,
    }
}

/// By thread of the test: its actions up to the end of a run.
fn trails(code: &Code, events: &[RunEvent], threads: &[ThreadState]) -> Vec<Trail> {
    let mut trails = vec![Trail::default(); code.own_threads()];
    let mut note = |thread: usize, instr: usize, aligned: bool| {
        // An agent's thread has begun it at an instruction of its own, which is noted.
        if let Some(trail) = trails.get_mut(thread) {
            trail.furthest = trail.furthest.max(Some(instr));
            trail.aligned.extend(aligned.then_some(instr));
        }
    };
    for event in events {
        match *event {
            RunEvent::Read { thread, instr, .. } => note(thread, instr, false),
            RunEvent::Write {
                source: WriteId::Write(thread, _),
                instr,
                ..
            } => note(thread, instr, false),
            RunEvent::Fence(Spot { thread, instr })
            | RunEvent::Arrive(Spot { thread, instr }, _) => {
                note(thread, instr, is_aligned(code, thread, instr, false));
            }
            RunEvent::Pass(Spot { thread, instr }, _) => {
                note(thread, instr, is_aligned(code, thread, instr, true));
            }
            RunEvent::Begin(Spot { thread, instr }, _) => note(thread, instr, false),
            _ => {}
        }
    }
    for (t, trail) in trails.iter_mut().enumerate() {
        let thread = &threads[t];
        let at_barrier = code.threads[t].acts.get(thread.pc).and_then(Act::barrier);
        trail.stuck = thread.status == ThreadStatus::Waiting && at_barrier.is_some();
        if trail.stuck && is_aligned(code, t, thread.pc, true) {
            trail.aligned.push(thread.pc);
        }
    }
    trails
}

/// The misuse of a run that has come to its end.
pub(super) fn find(code: &Code, events: &[RunEvent], threads: &[ThreadState]) -> Vec<RunHazard> {
    let mut found: Vec<RunHazard> = events
        .iter()
        .filter_map(|event| unmet_precondition(code, event))
        .collect();
    found.extend(parted(code, events, threads));
    found.sort();
    found.dedup();
    found
}

/// An operation with an unmet precondition; for an agent, the instruction that began it.
fn unmet_precondition(code: &Code, event: &RunEvent) -> Option<RunHazard> {
    let RunEvent::Fence(Spot { thread, instr }) = *event else {
        return None;
    };
    let misuse = code.program.threads[thread].code[instr].op.has(Tag::Misuse);
    misuse.then(|| RunHazard {
        kind: HazardKind::Misuse,
        first: code
            .agent(thread)
            .map_or((thread, instr), |agent| (agent.owner, agent.instr.start)),
        second: None,
        loc: None,
    })
}

/// The first aligned instruction of a run that not all threads of a warp executed as they must.
fn parted(code: &Code, events: &[RunEvent], threads: &[ThreadState]) -> Option<RunHazard> {
    let trails = trails(code, events, threads);
    fn hazard(first: (usize, usize), second: Option<(usize, usize)>) -> Option<RunHazard> {
        Some(RunHazard {
            kind: HazardKind::Divergence,
            first,
            second,
            loc: None,
        })
    }
    for (t, mine) in trails.iter().enumerate() {
        let mates = code.members(code.group(t, Scope::Warp), Scope::Warp);
        let mates = mates.iter().filter(|&&u| u != t);
        for &u in mates.filter(|&&u| code.kin[u] == code.kin[t]) {
            let theirs = &trails[u];
            for (number, &instr) in mine.aligned.iter().enumerate() {
                match theirs.aligned.get(number) {
                    Some(&other) if other == instr => {}
                    Some(&other) => return hazard((t, instr), Some((u, other))),
                    None if theirs.stuck || theirs.furthest > Some(instr) => {
                        return hazard((t, instr), None);
                    }
                    None => {}
                }
            }
        }
    }
    None
}
