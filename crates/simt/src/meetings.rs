//! Meetings: threads of a group exchange values (`shfl.sync`, `vote.sync`,
//! `work_group_reduce_add`).
//!
//! A thread waits until all threads that it names have reached an instruction that names the same
//! ones. Then each gets the values of all, and goes on. The exchange hands over no knowledge of
//! memory.
//!
//! # Invariants
//! - A waiting thread has evaluated nothing yet: its registers do not change.

use super::code::{Act, Code, eval};
use program::Scope;

/// The groups of waiting threads that can meet, each with the values of its lanes. `stands` gives
/// the instruction and registers of a waiting thread.
pub(super) fn meetings<'a>(
    code: &Code,
    stands: &impl Fn(usize) -> Option<(usize, &'a [i64])>,
) -> Vec<(Vec<usize>, Vec<i64>)> {
    let brings = |t: usize| {
        let (pc, regs) = stands(t)?;
        match &code.threads[t].acts[pc] {
            Act::Give {
                value,
                among,
                lanes,
                converged: false,
            } => Some(((*among, eval(lanes, regs)), eval(value, regs))),
            _ => None,
        }
    };
    let mut found: Vec<(Vec<usize>, Vec<i64>)> = Vec::new();
    for t in 0..code.threads.len() {
        let Some((asked, _)) = brings(t).filter(|_| !found.iter().any(|f| f.0.contains(&t))) else {
            continue;
        };
        let mates = code
            .members(code.group(t, asked.0), asked.0)
            .iter()
            .copied()
            .enumerate();
        let group: Vec<(usize, usize)> = mates.filter(|(rank, _)| names(asked.1, *rank)).collect();
        let mut brought = vec![0; i64::BITS as usize];
        let all_come = group.iter().all(|&(rank, u)| {
            brings(u)
                .filter(|b| b.0 == asked)
                .is_some_and(|(_, value)| {
                    brought[rank] = value;
                    true
                })
        });
        if all_come && group.iter().any(|m| m.1 == t) {
            found.push((group.into_iter().map(|m| m.1).collect(), brought));
        }
    }
    found
}

/// The threads of the group that wait at the same instruction as this one, by `stands`, each with
/// its rank and its value.
pub(super) fn beside<'a>(
    code: &Code,
    t: usize,
    stands: impl Fn(usize) -> Option<(usize, &'a [i64])>,
) -> Vec<(usize, usize, i64)> {
    let brings = |u: usize| {
        let (pc, regs) = stands(u).filter(|(pc, _)| stands(t).is_some_and(|mine| mine.0 == *pc))?;
        match &code.threads[u].acts[pc] {
            Act::Give {
                value,
                among,
                converged: true,
                ..
            } => Some((*among, eval(value, regs))),
            _ => None,
        }
    };
    let Some((among, _)) = brings(t) else {
        return Vec::new();
    };
    let mates = code.members(code.group(t, among), among).iter().enumerate();
    mates
        .filter_map(|(rank, &u)| Some((u, rank, brings(u)?.1)))
        .collect()
}

/// Whether a mask contains the thread of that rank in its group.
fn names(mask: i64, rank: usize) -> bool {
    mask.checked_shr(rank as u32).unwrap_or(0) & 1 != 0
}

/// Whether a thread names itself.
pub(super) fn names_itself(code: &Code, t: usize, among: Scope, mask: i64) -> bool {
    let mates = code.members(code.group(t, among), among);
    mates
        .iter()
        .position(|&u| u == t)
        .is_some_and(|rank| names(mask, rank))
}
