//! Meetings: threads of a group exchange values (`shfl.sync`, `vote.sync`,
//! `work_group_reduce_add`).
//!
//! A thread waits until all threads that it names have reached an instruction that names the same
//! ones, or have ended if the instruction says so. Then each gets the values of all, and goes on.
//! Two instructions with the same threads meet, wherever they stand in the code. The exchange hands
//! over no knowledge of memory.
//!
//! # Invariants
//! - A waiting thread has evaluated nothing yet: its registers do not change.

use super::code::{Act, Code, eval};
use program::{ATTENDED, Attendance, Scope};

/// The number of values that a thread has after a meeting: one for each lane, and the set of those
/// that came.
pub(super) const BROUGHT: usize = ATTENDED as usize + 1;

/// The groups of waiting threads that can meet, each with the values of its lanes. `stands` gives
/// the instruction and registers of a waiting thread; `is_over`, whether a thread has ended.
pub(super) fn meetings<'a>(
    code: &Code,
    stands: &impl Fn(usize) -> Option<(usize, &'a [i64])>,
    is_over: &impl Fn(usize) -> bool,
) -> Vec<(Vec<usize>, Vec<i64>)> {
    let brings = |t: usize| {
        let (pc, regs) = stands(t)?;
        match &code.threads[t].acts[pc] {
            Act::Give {
                value,
                among,
                lanes,
                attendance,
            } if *attendance != Attendance::Present => {
                let asked = (*among, eval(lanes, regs));
                Some((asked, attendance.spares_ended(), eval(value, regs)))
            }
            _ => None,
        }
    };
    let mut found: Vec<(Vec<usize>, Vec<i64>)> = Vec::new();
    if !code.has_meetings {
        return found;
    }
    for t in 0..code.threads.len() {
        let is_free = !found.iter().any(|f| f.0.contains(&t));
        let Some((asked, spares_ended, _)) = brings(t).filter(|_| is_free) else {
            continue;
        };
        let mates = code
            .members(code.group(t, asked.0), asked.0)
            .iter()
            .copied()
            .enumerate();
        let group: Vec<(usize, usize)> = mates.filter(|(rank, _)| names(asked.1, *rank)).collect();
        let mut brought = vec![0; BROUGHT];
        let mut came = Vec::new();
        let none_is_awaited = group.iter().all(|&(rank, u)| {
            let Some((_, _, value)) = brings(u).filter(|b| b.0 == asked) else {
                return spares_ended && is_over(u);
            };
            brought[rank] = value;
            brought[usize::from(ATTENDED)] |= 1 << rank;
            came.push(u);
            true
        });
        if none_is_awaited && came.contains(&t) {
            found.push((came, brought));
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
                attendance: Attendance::Present,
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
