//! Asynchronous operations of a run: their accesses, their groups, and the fences between proxies.
//!
//! # Invariants
//! - An operation performs its accesses when its thread begins it. Others know of them once its
//!   object has been signalled, or its group has been awaited.

use super::super::clock::Performer;
use super::super::shadow::{AccessKind, Touch};
use super::{
    BULK, Completion, EarlyEnd, Ended, MATRICES, SteadyRun, TENSOR_LOADS, TENSOR_STORES, Turn,
    WARPS, unsteady,
};
use program::{Access, EventKind, Mark, Op, Scope, TENSOR_TAGS, Tag};

impl SteadyRun<'_> {
    /// Begins an asynchronous operation: it performs its accesses, and the thread goes on.
    pub(super) fn begin(&mut self, t: usize, first: usize) -> Ended<Turn> {
        let code = &self.program.threads[t].code;
        let end = first
            + code[first..]
                .iter()
                .take_while(|i| i.id == code[first].id)
                .count();
        let tracked = code[first..end]
            .iter()
            .any(|i| i.op.has(Tag::Asynchronous) && i.op.has(Tag::Mbarrier));
        self.tick(t);
        let mut own: Option<Performer> = None;
        let mut at = first;
        while at < end {
            let instr = &code[at];
            at += 1;
            match &instr.op {
                Op::Assign { dst, value } => {
                    let value = self.eval(t, value);
                    self.set(t, *dst, value);
                }
                Op::Branch { cond, target } => match self.eval(t, cond) {
                    None => return unsteady(instr, "with an unknown value"),
                    Some(0) => {}
                    Some(_) => at = *target,
                },
                Op::Load { access, .. } | Op::Store { access, .. } => {
                    let write = instr.op.write().is_some();
                    let tracked = tracked.then_some(&mut own);
                    let performer = self.performer(t, access, write, tracked);
                    self.perform(t, at - 1, access, performer)?;
                }
                Op::Rmw { addr, write, .. }
                    if write.tags.has_any(&[Tag::MbarrierBytes, Tag::TensorCore]) =>
                {
                    let Some(address) = self.eval(t, addr) else {
                        return unsteady(instr, "with an mbarrier object at an unknown address");
                    };
                    let commits = write.tags.has(Tag::TensorCore);
                    let phase = match commits {
                        true => Some(self.phase_of_commit(t, at - 1, address)?),
                        false => None,
                    };
                    let performers = match commits {
                        true => self.committed_products(t),
                        false => own.into_iter().collect(),
                    };
                    let site = (t, at - 1);
                    let object = self.ranges(t, at - 1, write)?;
                    let known = self.clocks[t].clone();
                    self.pending.push_back(Completion {
                        performers,
                        site,
                        address,
                        object,
                        known,
                        phase,
                    });
                    // The check of its precondition follows.
                    at += 2;
                }
                _ => return unsteady(instr, "an asynchronous operation of this form"),
            }
        }
        self.threads[t].pc = end;
        Ok(Turn::On)
    }

    /// The performer of an access of an operation.
    fn performer(
        &mut self,
        t: usize,
        access: &Access,
        write: bool,
        own: Option<&mut Option<Performer>>,
    ) -> Performer {
        if access.tags.has(Tag::TensorCore) {
            return self.product(t);
        }
        let new = self.performers;
        if let Some(own) = own {
            if own.is_none() {
                self.performers += 1;
            }
            return *own.get_or_insert(new);
        }
        let family = match () {
            () if access.tags.has(Tag::Wgmma) => MATRICES,
            () if access.tags.has_any(&[Tag::AsyncProxy, Tag::TensormapProxy]) => BULK,
            () => 0,
        };
        let open = &mut self.threads[t].groups[family].open;
        if open.is_none() {
            self.performers += 2;
        }
        open.get_or_insert([new, new + 1])[usize::from(write)]
    }

    /// An access of an operation.
    fn perform(&mut self, t: usize, at: usize, access: &Access, performer: Performer) -> Ended<()> {
        let instr = self.instr(t, at);
        if access.scope.is_some() {
            return unsteady(instr, "an asynchronous operation of this form");
        }
        let write = instr.op.write().is_some();
        self.doubt_object(t, at);
        if let Some((ranges, memory)) = self.ranges(t, at, access)? {
            let touch = Touch {
                performer,
                event: 1,
                site: (t, at),
                write,
                kind: AccessKind::Weak,
                async_proxy: access.tags.has(Tag::AsyncProxy),
                tensormap: access.tags.has(Tag::TensormapProxy),
                memory,
            };
            let known = match access.tags.has(Tag::Wgmma) {
                true => self.threads[t].fenced.clone(),
                false => self.clocks[t].clone(),
            };
            self.touch(touch, &ranges, &known)?;
            if write {
                ranges
                    .iter()
                    .for_each(|(from, to)| self.memory.store(*from, *to, None));
            }
        }
        if let Op::Load { dst, addr, .. } = &instr.op {
            let map = access.tags.has(Tag::TensormapProxy);
            let address = self.eval(t, addr).filter(|_| map);
            let value = address.and_then(|at| self.memory.load(at, access.ty.bytes()));
            self.set(t, *dst, value);
        }
        Ok(())
    }

    /// Fences, groups, and misuse.
    pub(super) fn mark(&mut self, t: usize, at: usize, mark: &Mark) -> Ended<Turn> {
        let instr = self.instr(t, at);
        let tags = &mark.tags;
        if tags.has(Tag::Misuse) {
            return Err(EarlyEnd::Misuse(t, at));
        }
        if tags.has_any(&TENSOR_TAGS) {
            return self.tensor(t, at, mark);
        }
        let others = [Tag::Half, Tag::Alias, Tag::GridWait, Tag::Object];
        if mark.kind != EventKind::Fence || tags.has_any(&others) {
            return unsteady(instr, "a fence of this form");
        }
        let orders = tags.has_any(&[Tag::Acquire, Tag::Release, Tag::SeqCst, Tag::TensormapProxy]);
        if orders && !tags.has(Tag::MbarrierInit) {
            return unsteady(instr, "a fence of memory");
        }
        let family = match () {
            () if tags.has(Tag::Wgmma) => MATRICES,
            () if tags.has(Tag::Bulk) => BULK,
            () => 0,
        };
        if tags.has_any(&[Tag::WaitGroup, Tag::WaitGroupRead]) {
            let reads = tags.has(Tag::WaitGroupRead);
            return self.awaits(t, at, family, mark.pending.unwrap_or(0), reads);
        }
        self.tick(t);
        if tags.has(Tag::Lanes) {
            self.takes_turn(t, at, Scope::Warp);
        }
        if tags.has(Tag::CommitGroup) {
            let groups = &mut self.threads[t].groups[family];
            let open = std::mem::take(&mut groups.open);
            groups.made.push(open);
        }
        if tags.has(Tag::WgmmaFence) {
            self.threads[t].fenced = self.clocks[t].clone();
        }
        if tags.has(Tag::ProxyFence) && tags.has(Tag::AsyncProxy) {
            let of_global = tags.has(Tag::OfGlobal);
            let of_shared = tags.has_any(&[Tag::OfCta, Tag::OfCluster]);
            if !of_global {
                self.clocks[t].fence(0);
            }
            if !of_shared {
                self.clocks[t].fence(1);
            }
        }
        if tags.has(Tag::MbarrierInit) {
            self.threads[t].released = self.threads[t].inits.clone();
            let own = self.threads[t].inits.clone();
            self.clocks[t].objects.extend(own);
        }
        Ok(Turn::On)
    }

    /// A wait for groups; one for matrix instructions is for those of the warpgroup.
    pub(super) fn awaits(
        &mut self,
        t: usize,
        at: usize,
        family: usize,
        pending: u32,
        reads: bool,
    ) -> Ended<Turn> {
        let made = self.threads[t].groups[family].made.len();
        let until = made.saturating_sub(pending as usize);
        let of: Vec<usize> = match family {
            MATRICES => self.warpgroup(t),
            // The first lane performs them for its warp.
            TENSOR_LOADS | TENSOR_STORES => self.mates[&Scope::Warp][t].clone(),
            _ => vec![t],
        };
        let mut others = of.iter().map(|u| &self.threads[*u]);
        if others.any(|other| other.groups[family].made.len() < until && !other.ended) {
            self.threads[t].in_vain = Some(at);
            return Ok(Turn::Waits);
        }
        self.tick(t);
        for u in of {
            let made = &self.threads[u].groups[family].made;
            let done = made[..until.min(made.len())].iter().flatten();
            for [read, written] in done {
                self.clocks[t].learn(*read, 1);
                if !reads {
                    self.clocks[t].learn(*written, 1);
                }
            }
        }
        Ok(Turn::On)
    }

    fn warpgroup(&self, t: usize) -> Vec<usize> {
        let mates = self.mates[&Scope::Cta][t].iter().copied();
        let own = self.warpgroup_number(t);
        mates
            .filter(|u| *u == t || own.is_some() && self.warpgroup_number(*u) == own)
            .collect()
    }

    fn warpgroup_number(&self, t: usize) -> Option<u32> {
        let place = &self.program.threads[t].place;
        place.warp.map(|warp| warp / WARPS)
    }
}
