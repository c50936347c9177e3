//! Meetings: lanes of a warp that hand each other values (`shfl.sync`, `vote.sync`).
//!
//! A lane waits until all that it names stand at an instruction that names the same ones; then all of them get what each
//! brought, and go on. Nothing is handed over of what they know of memory.
//!
//! # Invariants
//! - Who stands there has evaluated nothing yet: registers of a thread that waits do not change.

use super::code::{Act, Code, eval};
use super::state::{Status, Thread};
use program::Scope;

/// What a lane names that waits to meet others.
fn named(code: &Code, threads: &[Thread], t: usize) -> Option<u32> {
    match code.threads[t].acts.get(threads[t].pc) {
        Some(Act::Give { lanes, .. }) if threads[t].status == Status::Waiting => Some(*lanes),
        _ => None,
    }
}

/// Hands over what lanes brought that meet; who they are.
pub(super) fn meet(code: &Code, threads: &mut [Thread]) -> Vec<usize> {
    let mut free = Vec::new();
    for t in 0..threads.len() {
        let Some(lanes) = named(code, threads, t).filter(|_| !free.contains(&t)) else { continue };
        let warp = code.members(code.group(t, Scope::Warp), Scope::Warp).iter().copied();
        let group: Vec<usize> = warp.filter(|&u| code.lanes[u] < 32 && lanes >> code.lanes[u] & 1 != 0).collect();
        if !group.contains(&t) || group.iter().any(|&u| named(code, threads, u) != Some(lanes)) {
            continue;
        }
        let mut brought = vec![0; 32];
        for &u in &group {
            let Act::Give { value, .. } = &code.threads[u].acts[threads[u].pc] else { continue };
            brought[code.lanes[u] as usize] = eval(value, &threads[u].regs);
        }
        for &u in &group {
            threads[u].brought.clone_from(&brought);
        }
        free.extend(group);
    }
    free
}
