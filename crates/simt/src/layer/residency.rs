//! Residency: blocks wait for a free multiprocessor.
//!
//! A GPU has room for a limited number of blocks at once. The blocks of one launch enter by number.
//! A block stays until all its threads have ended; no other block displaces it. If several launches
//! wait for room, the choice among them is free. The first step of one of its threads admits a
//! block, and the earlier blocks of its launch with it. Threads of the host, and commands that copy
//! or map memory, need no room.
//!
//! # Invariants
//! - On a GPU with one launch, blocks enter as soon as there is room: no other launch could take
//!   it.
//! - A cooperative launch among others enters as a whole.
//!
//! # Sources
//! - CUDA Programming Guide, *Hardware Implementation*: blocks are distributed to multiprocessors
//!   with free capacity, and new ones start as others finish. *Cooperative Groups, Grid
//!   Synchronization*: a cooperative launch fails unless all blocks are resident at once.
//! - OpenCL API specification, *Execution Model*: the work-groups of all ready commands form one
//!   pool of the device, which executes them in any order.

use crate::LaunchOptions;
use crate::code::Code;
use crate::thread::{ThreadState, ThreadStatus};
use program::host::{CommandId, CommandKind};
use program::{Scope, ThreadId};

/// The block of each thread, and the number of blocks that fit.
#[derive(Clone, Debug)]
pub(super) struct Residency {
    capacity: usize,
    launches: Vec<LaunchBlocks>,
    /// By GPU: its launches, as indices of `launches`.
    gpus: Vec<Vec<usize>>,
    /// By thread: launch and block, as indices of `launches` and of its blocks; `None` if the
    /// thread needs no room.
    place: Vec<Option<(usize, usize)>>,
}

/// The blocks of one launch.
#[derive(Clone, Debug)]
struct LaunchBlocks {
    /// An index of [`Residency::gpus`].
    gpu: usize,
    /// In the order of their numbers, with their threads.
    blocks: Vec<Vec<usize>>,
    /// Whether the blocks enter together.
    cooperative: bool,
}

/// The launch of a device thread; `None` if the thread needs no room. Without a host program there
/// is one launch.
pub(crate) fn launch(code: &Code, thread: usize) -> Option<Option<CommandId>> {
    let program = &code.program;
    if program.threads[thread].place.host {
        return None;
    }
    let Some(host) = program.host.as_deref() else {
        return Some(None);
    };
    let command = host.command_of(ThreadId(thread as u16))?;
    let runs = matches!(
        host.command(command).kind,
        CommandKind::Kernel | CommandKind::Initializer { .. }
    );
    runs.then_some(Some(command))
}

impl Residency {
    /// The blocks of a program; `None` if there is room for any number.
    pub(super) fn new(code: &Code, options: &LaunchOptions) -> Option<Residency> {
        let capacity = options.capacity()?;
        let program = &code.program;
        let mut all = Residency {
            capacity,
            launches: Vec::new(),
            gpus: Vec::new(),
            place: vec![None; program.threads.len()],
        };
        let (mut gpus, mut keys) = (Vec::new(), Vec::new());
        for (t, thread) in program.threads.iter().enumerate() {
            let (gpu, Some(launch)) = (code.group(t, Scope::Gpu), launch(code, t)) else {
                continue;
            };
            if code.group(t, Scope::Cta) != t {
                continue;
            }
            let g = gpus.iter().position(|&x| x == gpu).unwrap_or_else(|| {
                gpus.push(gpu);
                all.gpus.push(Vec::new());
                gpus.len() - 1
            });
            let key = (gpu, launch);
            let n = keys.iter().position(|&x| x == key).unwrap_or_else(|| {
                keys.push(key);
                all.gpus[g].push(all.launches.len());
                all.launches.push(LaunchBlocks {
                    gpu: g,
                    blocks: Vec::new(),
                    cooperative: false,
                });
                keys.len() - 1
            });
            all.launches[n]
                .blocks
                .push(code.members(t, Scope::Cta).to_vec());
            all.launches[n].cooperative |= options.cooperative || thread.place.cooperative;
        }
        for (n, launch) in all.launches.iter_mut().enumerate() {
            launch
                .blocks
                .sort_by_key(|b| program.threads[b[0]].place.cta);
            for (b, threads) in launch.blocks.iter().enumerate() {
                threads.iter().for_each(|&t| all.place[t] = Some((n, b)));
            }
        }
        Some(all)
    }

    /// The number of blocks of each launch that enter first.
    pub(super) fn start(&self, threads: &[ThreadState]) -> Vec<u32> {
        let mut admitted = vec![0; self.launches.len()];
        for g in 0..self.gpus.len() {
            self.fill(&mut admitted, threads, g);
        }
        admitted
    }

    /// A command has started.
    pub(super) fn started(&self, admitted: &mut [u32], threads: &[ThreadState]) {
        (0..self.gpus.len()).for_each(|g| self.fill(admitted, threads, g));
    }

    /// The number of further blocks that a GPU has room for.
    fn room(&self, admitted: &[u32], threads: &[ThreadState], gpu: usize) -> usize {
        self.capacity.saturating_sub(
            self.gpus[gpu]
                .iter()
                .map(|&n| {
                    self.launches[n].blocks[..admitted[n] as usize]
                        .iter()
                        .filter(|b| stays(b, threads))
                        .count()
                })
                .sum(),
        )
    }

    /// Admits blocks while there is room, if only one launch can take it.
    fn fill(&self, admitted: &mut [u32], threads: &[ThreadState], gpu: usize) {
        let &[n] = self.gpus[gpu].as_slice() else {
            return;
        };
        while self.launches[n]
            .blocks
            .get(admitted[n] as usize)
            .is_some_and(|b| b.iter().all(|&t| threads[t].status != ThreadStatus::Held))
            && self.room(admitted, threads, gpu) > 0
        {
            admitted[n] += 1;
        }
    }

    /// Whether the block of a thread has entered.
    pub(super) fn is_in(&self, admitted: &[u32], thread: usize) -> bool {
        self.place[thread].is_none_or(|(n, b)| b < admitted[n] as usize)
    }

    /// Whether the block of a thread has entered, or would enter by a step of the thread.
    pub(super) fn may_enter(
        &self,
        admitted: &[u32],
        threads: &[ThreadState],
        thread: usize,
    ) -> bool {
        let Some((n, b)) = self.place[thread] else {
            return true;
        };
        let launch = &self.launches[n];
        let up_to = if launch.cooperative {
            launch.blocks.len()
        } else {
            b + 1
        };
        self.is_in(admitted, thread) || {
            let new = launch.blocks[admitted[n] as usize..up_to].iter();
            new.filter(|b| stays(b, threads)).count() <= self.room(admitted, threads, launch.gpu)
        }
    }

    /// A thread took a step, so its block enters if it had not. Adds to `woken` the threads that
    /// may step now.
    pub(super) fn stepped(
        &self,
        admitted: &mut [u32],
        threads: &[ThreadState],
        thread: usize,
        woken: &mut Vec<usize>,
    ) {
        let Some((n, b)) = self.place[thread] else {
            return;
        };
        let launch = &self.launches[n];
        let before = admitted[n] as usize;
        if b >= before {
            admitted[n] = if launch.cooperative {
                launch.blocks.len()
            } else {
                b + 1
            } as u32;
        }
        if !stays(&launch.blocks[b], threads) {
            self.fill(admitted, threads, launch.gpu);
        }
        woken.extend(
            launch.blocks[before..(admitted[n] as usize).max(before)]
                .iter()
                .flatten(),
        );
    }
}

/// Whether an admitted block still takes room.
fn stays(block: &[usize], threads: &[ThreadState]) -> bool {
    !block.iter().all(|&t| threads[t].is_over())
}
