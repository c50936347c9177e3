//! Tensor memory in a run: its allocations, and the accesses of threads to each part.
//!
//! # Invariants
//! - Accesses are complete once a `tcgen05.wait` of the warp, or a wait for the phase of a
//!   `tcgen05.commit` of the thread, has seen them. Until then they race with whatever overlaps,
//!   except for products of one pipeline.
//! - Fences of `tcgen05` order nothing in a run: they matter for relaxed operations, with which a
//!   run is given up, and for pipelines of several threads.

use super::super::clock::Performer;
use super::super::shadow::{AccessKind, Touch};
use super::super::tensor_memory;
use super::{EarlyEnd, Ended, SteadyRun, TENSOR_LOADS, TENSOR_STORES, Turn, unsteady};
use program::{COLUMNS, Mark, Scope, Tag, TensorPart};

impl SteadyRun<'_> {
    /// The performer of the products of a thread since its last commit.
    pub(super) fn product(&mut self, t: usize) -> Performer {
        let new = self.performers;
        let thread = &mut self.threads[t];
        if thread.committed {
            thread.committed = false;
            thread.products.push(new);
            self.performers += 1;
        }
        thread.products.last().copied().unwrap_or(new)
    }

    /// The performers that a commit of a thread covers: all so far.
    pub(super) fn committed_products(&mut self, t: usize) -> Vec<Performer> {
        self.threads[t].committed = true;
        self.threads[t].products.clone()
    }

    /// The phase for which the arrival of a commit counts.
    pub(super) fn phase_of_commit(&mut self, t: usize, at: usize, address: i64) -> Ended<usize> {
        let object = self.barriers.object(address);
        let (index, over) = (object.index, object.complete.len());
        let known = self.clocks[t].phases.get(&index).copied().unwrap_or(0);
        match known == over as i64 {
            true => Ok(over),
            // PTX ISA, Phase of the mbarrier object: a wait for the phase before comes first.
            false => Err(EarlyEnd::Misuse(t, at)),
        }
    }

    /// An instruction of tensor memory.
    pub(super) fn tensor(&mut self, t: usize, at: usize, mark: &Mark) -> Ended<Turn> {
        let waits = [
            (Tag::TensorWaitLoad, TENSOR_LOADS),
            (Tag::TensorWaitStore, TENSOR_STORES),
        ];
        if let Some((_, family)) = waits.into_iter().find(|wait| mark.tags.has(wait.0)) {
            if self.threads[t].in_vain != Some(at) {
                let groups = &mut self.threads[t].groups[family];
                let open = groups.open.take();
                groups.made.push(open);
            }
            return self.awaits(t, at, family, 0, false);
        }
        let Some(part) = mark.tensor else {
            self.tick(t);
            return Ok(Turn::On);
        };
        let event = self.tick(t);
        let instr = self.instr(t, at);
        let address = instr.op.address().and_then(|addr| self.eval(t, addr));
        let Some(address) = address else {
            return unsteady(instr, "in tensor memory at an unknown address");
        };
        if mark.tags.has(Tag::TensorAlloc) && self.is_taken(t, address, &part) {
            return unsteady(instr, "whose columns it has not taken back");
        }
        let Some(ranges) = self.places(t, mark, address, &part) else {
            return Err(EarlyEnd::Misuse(t, at));
        };
        let (performer, event) = self.performer_of(t, mark, event);
        let is_product = mark.tags.has(Tag::TensorMultiply);
        let kind = match is_product {
            true => AccessKind::Product {
                thread: t,
                form: part.form,
                address,
            },
            false => AccessKind::Weak,
        };
        if is_product {
            let before = self.tensors.products.insert((part.form, address), t);
            let fenced = || {
                let mut all = self.program.instrs();
                all.any(|(_, _, instr)| instr.op.has(Tag::TensorBefore))
            };
            if before.is_some_and(|before| before != t) && fenced() {
                return unsteady(instr, "in a pipeline of several threads");
            }
        }
        let touch = Touch {
            performer,
            event,
            site: (t, at),
            write: !mark.tags.has_any(&[Tag::TensorLoad, Tag::TensorOperand]),
            kind,
            async_proxy: false,
            tensormap: false,
            memory: 0,
        };
        let known = self.clocks[t].clone();
        self.touch(touch, &ranges, &known)?;
        Ok(Turn::On)
    }

    /// Whether some of the columns of an allocation are allocated.
    fn is_taken(&self, t: usize, address: i64, part: &TensorPart) -> bool {
        let cta = self.mates[&Scope::Cta][t][0];
        let mut columns = address..address + i64::from(part.columns);
        columns.any(|column| self.tensors.allocated.contains(&(cta, column)))
    }

    /// Who performs an access, and its number there.
    fn performer_of(&mut self, t: usize, mark: &Mark, event: u32) -> (Performer, u32) {
        let family = match () {
            () if mark.tags.has(Tag::TensorLoad) => TENSOR_LOADS,
            () if mark.tags.has(Tag::TensorStore) => TENSOR_STORES,
            () if mark
                .tags
                .has_any(&[Tag::TensorMultiply, Tag::TensorOperand]) =>
            {
                return (self.product(t), 1);
            }
            () => return (t, event),
        };
        let new = self.performers;
        let open = &mut self.threads[t].groups[family].open;
        if open.is_none() {
            self.performers += 2;
        }
        (open.get_or_insert([new, new + 1])[0], 1)
    }

    /// The ranges of addresses of an access; `None` if it leaves the columns that are allocated, or
    /// the lanes of its warp. Allocates and deallocates.
    fn places(
        &mut self,
        t: usize,
        mark: &Mark,
        address: i64,
        part: &TensorPart,
    ) -> Option<Vec<(i64, i64)>> {
        let (group, column) = TensorPart::place(address)?;
        let groups = part.groups_at(group)?;
        let of_warp = mark.tags.has_any(&[Tag::TensorLoad, Tag::TensorStore]);
        if of_warp && !TensorPart::is_of_warp(groups, self.program.threads[t].place.warp) {
            return None;
        }
        let cta = self.mates[&Scope::Cta][t][0];
        let mut all = Vec::new();
        for (from, length) in part.ranges() {
            let (first, behind) = (column + from, column + from + length);
            if behind > COLUMNS {
                return None;
            }
            for column in first..behind {
                let is_allocated = match () {
                    () if mark.tags.has(Tag::TensorAlloc) => {
                        self.tensors.allocated.insert((cta, column))
                    }
                    () if mark.tags.has(Tag::TensorFree) => {
                        self.tensors.allocated.remove(&(cta, column))
                    }
                    () => self.tensors.allocated.contains(&(cta, column)),
                };
                if !is_allocated {
                    return None;
                }
            }
            let starts = (0..8).filter(|group| groups >> group & 1 == 1);
            let starts = starts.map(|group| tensor_memory::address(cta, group));
            all.extend(starts.map(|start| (start + first, start + behind)));
        }
        Some(all)
    }
}
