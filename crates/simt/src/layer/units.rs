//! Threads of a warp in units that a schedule optimizer forms.
//!
//! Each thread has a program counter. The first thread to step forms a unit with all threads of its
//! warp that are at the same instruction. The whole unit executes it, thread by thread in any
//! order, before another thread of the warp steps. Then any thread may form the next unit, so
//! threads of a warp can wait for each other.
//!
//! # Invariants
//! - Every run is a run of independent threads.
//!
//! # Sources
//! - PTX ISA, *PTX Machine Model*, *Independent Thread Scheduling*: the optimizer groups active
//!   threads of one warp into SIMT units.
//!
//! # Where we differ
//! - The optimizer is one that forms the largest units. The text names none.

use super::warps::same_code;
use crate::code::Code;
use crate::set::bits;
use crate::thread::{ThreadState, ThreadStatus};
use program::Scope;

/// The warp of each thread.
#[derive(Clone, Debug)]
pub(super) struct Units {
    /// Lanes by warp, as threads.
    warps: Vec<Vec<usize>>,
    /// By thread: warp and lane.
    place: Vec<(usize, usize)>,
    /// By thread: the first thread of the warp with the same code.
    code: Vec<usize>,
}

impl Units {
    /// The warps of a program.
    ///
    /// # Errors
    /// If a warp has too many threads.
    pub(super) fn new(code: &Code) -> Result<Units, String> {
        let number = code.threads.len();
        let mut units = Units {
            warps: Vec::new(),
            place: vec![(0, 0); number],
            code: (0..number).collect(),
        };
        for t in (0..number).filter(|&t| code.group(t, Scope::Warp) == t) {
            let lanes = code.members(t, Scope::Warp);
            if lanes.len() > u64::BITS as usize {
                return Err(format!(
                    "not in this machine: warps of more than {} threads",
                    u64::BITS
                ));
            }
            for (lane, &u) in lanes.iter().enumerate() {
                units.place[u] = (units.warps.len(), lane);
                let mut before = lanes[..lane].iter().copied();
                let acts = |of: usize| &code.threads[of].acts;
                if let Some(first) = before.find(|&first| same_code(acts(first), acts(u))) {
                    units.code[u] = first;
                }
            }
            units.warps.push(lanes.to_vec());
        }
        Ok(units)
    }

    /// No unit has formed: by warp, the lanes of the unit that have yet to step.
    pub(super) fn start(&self) -> Vec<u64> {
        vec![0; self.warps.len()]
    }

    fn is_in_unit(&self, state: &[u64], thread: usize) -> bool {
        let (warp, lane) = self.place[thread];
        state[warp] >> lane & 1 != 0
    }

    pub(super) fn may_step(&self, state: &[u64], thread: usize) -> bool {
        state[self.place[thread].0] == 0 || self.is_in_unit(state, thread)
    }

    /// Whether the unit of a thread has formed, so that its step forms none.
    pub(super) fn has_formed(&self, state: &[u64], thread: usize) -> bool {
        self.is_in_unit(state, thread)
    }

    /// A thread stepped from an instruction, or waits there.
    pub(super) fn stepped(
        &self,
        state: &mut [u64],
        threads: &[ThreadState],
        thread: usize,
        from: usize,
        woken: &mut Vec<usize>,
    ) {
        let (warp, lane) = self.place[thread];
        let lanes = &self.warps[warp];
        let fits = |l: usize| {
            let other = &threads[lanes[l]];
            self.code[lanes[l]] == self.code[thread]
                && other.pc == from
                && other.status == ThreadStatus::Running
        };
        let others = match state[warp] {
            0 => (0..lanes.len()).fold(0, |set, l| set | 1 << l),
            unit => unit,
        };
        let others = others & !(1 << lane);
        let left = bits(others)
            .filter(|&l| fits(l))
            .fold(0, |set, l| set | 1 << l);
        state[warp] = left;
        if left == 0 {
            woken.extend(lanes.iter().copied().filter(|&u| u != thread));
        }
    }

    pub(super) fn obstacle(&self, code: &Code, state: &[u64], thread: usize) -> Option<String> {
        let (warp, _) = self.place[thread];
        let next = bits(state[warp])
            .next()
            .filter(|_| !self.may_step(state, thread))?;
        let name = &code.program.threads[self.warps[warp][next]].name;
        Some(format!(
            "the unit of {name} in its warp executes an instruction"
        ))
    }
}
