//! Blocks that wait for a free multiprocessor.
//!
//! A GPU has room for so many blocks at once. Blocks are let in by number, each as soon as there is room; a block stays until all
//! its threads have ended, and is never put aside for another. Host threads need no room.
//!
//! # Sources
//! - CUDA Programming Guide, *Hardware Implementation*: blocks are distributed to multiprocessors with free capacity, and new
//!   ones start as others finish. *Cooperative Groups, Grid Synchronization*: a cooperative launch fails unless all
//!   blocks are resident at once.

use crate::program::Scope;
use crate::simt::Launch;
use crate::simt::code::Code;
use crate::simt::state::Thread;

/// Who is in which block, and how many fit.
#[derive(Clone, Debug)]
pub(super) struct Residency {
    capacity: usize,
    /// By GPU, in the order of their numbers: blocks, with their threads.
    blocks: Vec<Vec<Vec<usize>>>,
    /// By thread: GPU and block, as places in `blocks`; `None` for a host thread.
    place: Vec<Option<(usize, usize)>>,
}

impl Residency {
    /// The blocks of a program; `None` if there is room for any number.
    pub(super) fn new(code: &Code, launch: &Launch) -> Option<Residency> {
        let capacity = launch.capacity()?;
        let program = &code.program;
        let mut blocks: Vec<Vec<Vec<usize>>> = Vec::new();
        let mut place = vec![None; program.threads.len()];
        let mut gpus: Vec<usize> = Vec::new();
        for (t, thread) in program.threads.iter().enumerate().filter(|(_, t)| !t.place.host) {
            let gpu = code.group(t, Scope::Gpu);
            let g = gpus.iter().position(|&x| x == gpu).unwrap_or_else(|| {
                gpus.push(gpu);
                blocks.push(Vec::new());
                gpus.len() - 1
            });
            if code.group(t, Scope::Cta) == t {
                blocks[g].push(code.members(t, Scope::Cta).to_vec());
            }
            debug_assert!(!thread.place.host);
        }
        for (g, list) in blocks.iter_mut().enumerate() {
            list.sort_by_key(|b| program.threads[b[0]].place.cta);
            for (b, threads) in list.iter().enumerate() {
                threads.iter().for_each(|&t| place[t] = Some((g, b)));
            }
        }
        Some(Residency { capacity, blocks, place })
    }

    /// How many blocks are let in first.
    pub(super) fn start(&self, threads: &[Thread]) -> Vec<u32> {
        let mut admitted = vec![0; self.blocks.len()];
        for g in 0..self.blocks.len() {
            self.fill(&mut admitted, threads, g);
        }
        admitted
    }

    /// Lets blocks in while there is room.
    fn fill(&self, admitted: &mut [u32], threads: &[Thread], g: usize) {
        let blocks = &self.blocks[g];
        while (admitted[g] as usize) < blocks.len() {
            let over = |b: &&Vec<usize>| b.iter().all(|&t| threads[t].is_over());
            let inside = &blocks[..admitted[g] as usize];
            if inside.len() - inside.iter().filter(over).count() >= self.capacity {
                break;
            }
            admitted[g] += 1;
        }
    }

    pub(super) fn is_in(&self, admitted: &[u32], thread: usize) -> bool {
        self.place[thread].is_none_or(|(g, b)| b < admitted[g] as usize)
    }

    /// A thread has ended.
    pub(super) fn ended(&self, admitted: &mut [u32], threads: &[Thread], thread: usize, woken: &mut Vec<usize>) {
        let Some((g, b)) = self.place[thread] else { return };
        if self.blocks[g][b].iter().all(|&t| threads[t].is_over()) {
            let before = admitted[g] as usize;
            self.fill(admitted, threads, g);
            woken.extend(self.blocks[g][before..admitted[g] as usize].iter().flatten());
        }
    }
}
