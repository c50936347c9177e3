//! Warps with one program counter and a mask of active lanes, as in GPUs before Volta.
//!
//! A warp issues one instruction for its active lanes, and the next one after all of them have
//! executed it. If lanes take different sides of a branch, the sides run one after the other, in
//! either order. Each runs to the point where they meet again: the branch's immediate
//! post-dominator. A stack records which lanes wait at which point. Lanes of one instruction access
//! memory one by one, in any order.
//!
//! # Invariants
//! - The lanes of the top frame are at one instruction, or have executed it and wait for the lanes
//!   in `todo`. In a *split* warp neither of the two top frames has begun.
//! - A frame's lanes include those of the frames of its sides above it. After a step, no frame
//!   contains a lane that has ended.
//!
//! # Sources
//! - CUDA Programming Guide, *SIMT Architecture*: one program counter shared amongst the threads of
//!   a warp, with an active mask. The stack with immediate post-dominators is the usual model of
//!   it: W. Fung, I. Sham, G. Yuan, T. Aamodt, "Dynamic Warp Formation and Scheduling for Efficient
//!   GPU Control Flow", MICRO 2007.

use std::mem::discriminant;

use super::flow::reconvergence;
use crate::code::{Act, Code, eval};
use crate::set::bits;
use crate::thread::{ThreadState, ThreadStatus};
use crate::{FaultKind, Result, StepHalt};
use program::{Barrier, Scope};

/// A set of lanes.
type Lanes = u64;

/// The warp of each thread.
#[derive(Clone, Debug)]
pub(super) struct LockstepWarps {
    /// Lanes by warp, as threads.
    warps: Vec<Vec<usize>>,
    /// By thread: warp and lane.
    place: Vec<(usize, usize)>,
    /// By warp and instruction: the point where the sides meet again.
    meet: Vec<Vec<usize>>,
}

/// The state of a warp.
#[derive(Clone, Debug, Hash)]
pub(super) struct Warp {
    stack: Vec<WarpFrame>,
    /// Active lanes that have not executed the current instruction.
    todo: Lanes,
    /// Whether the two top frames are sides whose order is still open.
    split: bool,
}

/// Lanes that run together.
#[derive(Clone, Debug, Hash)]
struct WarpFrame {
    lanes: Lanes,
    /// The instruction at which they meet the others again; `None` for the whole warp.
    until: Option<usize>,
}

impl LockstepWarps {
    /// The warps of a program.
    ///
    /// # Errors
    /// If the threads of a warp run different code.
    pub(super) fn new(code: &Code) -> Result<LockstepWarps, String> {
        let mut warps: Vec<Vec<usize>> = Vec::new();
        let mut place = vec![(0, 0); code.threads.len()];
        for t in (0..code.threads.len()).filter(|&t| code.group(t, Scope::Warp) == t) {
            let lanes = code.members(t, Scope::Warp);
            if lanes.len() > Lanes::BITS as usize {
                return Err(format!(
                    "not in this machine: warps of more than {} threads",
                    Lanes::BITS
                ));
            }
            for (lane, &u) in lanes.iter().enumerate() {
                place[u] = (warps.len(), lane);
                if !same_code(&code.threads[t].acts, &code.threads[u].acts) {
                    let names = [t, u].map(|x| code.program.threads[x].name.clone());
                    return Err(format!(
                        "not in this machine: {} and {} share a warp, but run different code; a \
                            warp with one program counter runs one code",
                        names[0], names[1]
                    ));
                }
            }
            warps.push(lanes.to_vec());
        }
        let meet = warps
            .iter()
            .map(|w| reconvergence(&code.threads[w[0]].acts))
            .collect();
        Ok(LockstepWarps { warps, place, meet })
    }

    pub(super) fn start(&self, code: &Code, threads: &[ThreadState]) -> Vec<Warp> {
        fn whole(w: &[usize]) -> WarpFrame {
            WarpFrame {
                lanes: u64::MAX >> (64 - w.len()),
                until: None,
            }
        }
        let mut state: Vec<Warp> = self
            .warps
            .iter()
            .map(|w| Warp {
                stack: vec![whole(w)],
                todo: 0,
                split: false,
            })
            .collect();
        for (w, warp) in state.iter_mut().enumerate() {
            self.issue(code, warp, threads, w, 0);
        }
        state
    }

    pub(super) fn is_active(&self, state: &[Warp], thread: usize) -> bool {
        let (w, lane) = self.place[thread];
        state[w].todo >> lane & 1 != 0
    }

    pub(super) fn is_split(&self, state: &[Warp], thread: usize) -> bool {
        state[self.place[thread].0].split
    }

    /// The active lanes of a thread's warp.
    pub(super) fn active(&self, state: &[Warp], thread: usize) -> Lanes {
        let (w, lane) = self.place[thread];
        self.side(&state[w], lane).map_or(0, |f| f.lanes)
    }

    /// The frame that would run if this lane stepped now.
    fn side<'a>(&self, warp: &'a Warp, lane: usize) -> Option<&'a WarpFrame> {
        let top = warp.stack.len().checked_sub(1)?;
        if warp.split && warp.stack[top].lanes >> lane & 1 == 0 {
            return warp.stack.get(top.checked_sub(1)?);
        }
        warp.stack.last()
    }

    /// A thread stepped from an instruction, or waits there.
    pub(super) fn stepped(
        &self,
        code: &Code,
        state: &mut [Warp],
        threads: &[ThreadState],
        thread: usize,
        from: usize,
        woken: &mut Vec<usize>,
    ) {
        let (w, lane) = self.place[thread];
        let warp = &mut state[w];
        if warp.split {
            // The first lane to step decides which side comes first.
            let top = warp.stack.len() - 1;
            if warp.stack[top].lanes >> lane & 1 == 0 {
                warp.stack.swap(top - 1, top);
            }
            warp.split = false;
            warp.todo = warp.stack[top].lanes;
            woken.extend(bits(warp.todo).map(|l| self.warps[w][l]));
        }
        if threads[thread].status == ThreadStatus::Waiting {
            // The instruction is executed once the barrier lets the lane pass.
            return;
        }
        warp.todo &= !(1 << lane);
        if warp.todo == 0 {
            self.issue(code, warp, threads, w, from);
            woken.extend(bits(warp.todo).map(|l| self.warps[w][l]));
        }
    }

    /// All active lanes have executed the instruction at `from`: finds the lanes that step next.
    fn issue(&self, code: &Code, warp: &mut Warp, threads: &[ThreadState], w: usize, from: usize) {
        let at = |lane: usize| threads[self.warps[w][lane]].pc;
        let over = bits(warp.stack[0].lanes).filter(|&l| threads[self.warps[w][l]].is_over());
        let over = over.fold(0, |set, l| set | 1 << l);
        warp.stack.iter_mut().for_each(|f| f.lanes &= !over);
        while let Some(top) = warp.stack.last_mut() {
            // Lanes that reached the meeting point wait below.
            if let Some(until) = top.until {
                top.lanes = bits(top.lanes)
                    .filter(|&l| at(l) != until)
                    .fold(0, |set, l| set | 1 << l);
            }
            let Some(first) = bits(top.lanes).next().map(at) else {
                if warp.stack.len() == 1 {
                    return;
                }
                warp.stack.pop();
                continue;
            };
            let here = bits(top.lanes)
                .filter(|&l| at(l) == first)
                .fold(0, |set, l| set | 1 << l);
            let (lanes, there) = (top.lanes, top.lanes & !here);
            if there == 0 {
                warp.todo = lanes;
                return;
            }
            let meet = self.meet[w]
                .get(from)
                .copied()
                .unwrap_or(code.threads[self.warps[w][0]].acts.len());
            let sides = [here, there]
                .into_iter()
                .filter(|&s| bits(s).next().map(at) != Some(meet));
            let sides: Vec<WarpFrame> = sides
                .map(|lanes| WarpFrame {
                    lanes,
                    until: Some(meet),
                })
                .collect();
            warp.split = sides.len() == 2;
            warp.todo = sides.iter().fold(0, |set, f| set | f.lanes);
            warp.stack.extend(sides);
            return;
        }
    }

    /// Checks that a barrier is for the whole warp, or for exactly the lanes of its mask.
    pub(super) fn arrives(
        &self,
        code: &Code,
        state: &[Warp],
        threads: &[ThreadState],
        thread: usize,
        barrier: &Barrier,
    ) -> Result {
        let (w, lane) = self.place[thread];
        let named = barrier.lanes.as_ref().map_or(Lanes::MAX, |mask| {
            eval(mask, &threads[thread].regs) as Lanes
        });
        let active = self.side(&state[w], lane).map_or(0, |f| f.lanes);
        let missing = bits(state[w].stack[0].lanes & named & !active)
            .map(|l| self.warps[w][l])
            .collect::<Vec<_>>();
        if missing.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = missing
            .iter()
            .take(4)
            .map(|&u| code.program.threads[u].name.as_str())
            .collect();
        let more = if missing.len() > 4 { ", …" } else { "" };
        Err(StepHalt::Fault {
            kind: FaultKind::Barrier,
            thread,
            instr: threads[thread].pc,
            what: format!(
                "is reached by part of a warp: {}{more} took another side of a branch, and \
                    barriers count whole warps",
                names.join(", ")
            ),
        })
    }

    pub(super) fn obstacle(
        &self,
        code: &Code,
        state: &[Warp],
        threads: &[ThreadState],
        thread: usize,
    ) -> Option<String> {
        let (w, lane) = self.place[thread];
        let warp = &state[w];
        if self.is_active(state, thread) || threads[thread].is_over() {
            return None;
        }
        let runs = self.side(warp, lane)?;
        let active = bits(runs.lanes & warp.todo)
            .next()
            .map(|l| self.warps[w][l]);
        if runs.lanes >> lane & 1 != 0 {
            let other = active
                .map(|u| code.program.threads[u].name.as_str())
                .unwrap_or_default();
            return Some(format!(
                "it waits for {other}, a lane of the same instruction"
            ));
        }
        // The missing lane waits at the meeting point, or for its side's turn.
        let meet = |until: Option<usize>| {
            until
                .and_then(|pc| code.line(thread, pc))
                .map_or("the end".into(), |l| format!("line {l}"))
        };
        let mine = warp
            .stack
            .iter()
            .rev()
            .skip(1)
            .find(|f| f.lanes >> lane & 1 != 0);
        let other = active
            .map(|u| code.program.threads[u].name.as_str())
            .unwrap_or("the other lanes");
        let until = runs.until;
        Some(
            if until == Some(threads[thread].pc) || mine.is_some_and(|f| f.until.is_none()) {
                format!(
                    "it is inactive in the same warp until {other} reaches {}",
                    meet(until)
                )
            } else {
                format!(
                    "its side of the branch is inactive in the same warp until {other} reaches {}",
                    meet(until)
                )
            },
        )
    }
}

/// Whether two threads run the same code: the same kinds of instructions, and branches with the
/// same targets.
pub(super) fn same_code(a: &[Act], b: &[Act]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(x, y)| discriminant(x) == discriminant(y) && x.target() == y.target())
}
