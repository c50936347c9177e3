//! Meetings: lanes of a warp that hand each other values (`shfl.sync`, `vote.sync`).
//!
//! A lane waits until all that it names stand at an instruction that names the same ones; then all of them get what each
//! brought, and go on. Nothing is handed over of what they know of memory.
//!
//! # Invariants
//! - Who stands there has evaluated nothing yet: registers of a thread that waits do not change.

use super::code::{Act, Code, eval};
use program::Scope;

/// The threads that meet, of those that stand somewhere and wait: where, and with which registers. With each group, what
/// its lanes bring, by lane.
pub(super) fn meetings<'a>(
    code: &Code,
    stands: &impl Fn(usize) -> Option<(usize, &'a [i64])>,
) -> Vec<(Vec<usize>, Vec<i64>)> {
    let brings = |t: usize| {
        let (pc, regs) = stands(t)?;
        match &code.threads[t].acts[pc] {
            Act::Give { value, lanes } => Some((*lanes, eval(value, regs))),
            _ => None,
        }
    };
    let mut found: Vec<(Vec<usize>, Vec<i64>)> = Vec::new();
    for t in 0..code.threads.len() {
        let Some((lanes, _)) = brings(t).filter(|_| !found.iter().any(|f| f.0.contains(&t))) else { continue };
        let warp = code.members(code.group(t, Scope::Warp), Scope::Warp).iter().copied();
        let is_named = |u: &usize| lanes.checked_shr(code.lanes[*u]).unwrap_or(0) & 1 != 0;
        let group: Vec<usize> = warp.filter(is_named).collect();
        let mut brought = vec![0; 32];
        let all_come = group.iter().all(|&u| {
            brings(u).filter(|b| b.0 == lanes).is_some_and(|(_, value)| {
                brought[code.lanes[u] as usize] = value;
                true
            })
        });
        if all_come && group.contains(&t) {
            found.push((group, brought));
        }
    }
    found
}
