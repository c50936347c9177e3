//! Operations on several cells at once: wide accesses to memory that others access in smaller
//! pieces, and accesses of 128 bits.
//!
//! Each cell is read or written like a separate access; further rules keep the model's axioms about
//! whole operations. The choices for the cells come one after the other, so they may turn out not
//! to fit together: the step is then refused.
//!
//! - A thread that observes one cell of a write observes all cells that both access. A release
//!   hands on the same knowledge through all of its cells, so none hands on anything before the
//!   turn of the last one.
//! - Knowledge that a read gets through one cell holds for its others.
//! - Coherence orders two writes the same way in all cells that both access.
//! - Sequential consistency per location is checked for whole operations.
//! - Under `tearing = none`, a read that takes one cell of a write takes no cell that this write
//!   overwrites.
//!
//! # Sources
//! - `whole`, `release-acquire`, Whole-Coherence, SC-per-Location, Mixed-Atomicity, Whole-Reads and
//!   Whole-Sources in `models/ptx.cat`; PTX ISA, Memory Consistency Model, *Limitations on
//!   Mixed-size Data-races*.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::write::{PatternHead, ReadOrigin};
use super::{Weak, WeakContents};
use crate::code::AccessPlace;
use crate::memory::{Age, Context, MemoryAccess, NewValues};
use crate::record::RunEvent;
use crate::{Result, StepHalt};

impl WeakContents {
    /// The other cells of a write's operation: their places and writes.
    pub(super) fn siblings(&self, loc: usize, slot: usize) -> Vec<(AccessPlace, usize)> {
        let write = self.locations[loc].get(slot);
        let Some(operation) = write.operation().filter(|_| write.part.1 > 1) else {
            return Vec::new();
        };
        let others = self
            .locations
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != loc);
        others
            .filter_map(|(loc, l)| {
                let mut live = l.live();
                let (slot, w) =
                    live.find(|(_, w)| w.part.1 > 1 && w.operation() == Some(operation))?;
                Some((AccessPlace { loc, va: w.va }, slot))
            })
            .collect()
    }

    /// Forgets a read of several cells that found the same as the previous one, as in a waiting
    /// loop.
    fn forget_repeated(&mut self, reads: &[MemoryAccess]) {
        let two = |t: &MemoryAccess| {
            let list = self.locations[t.place.loc].done.iter().rev();
            let mut own = list.filter(|d| d.is_of(t.at.thread, t.place.va));
            own.next()
                .zip(own.next())
                .filter(|(last, before)| last.repeats(before))
                .map(|(_, before)| before.clock)
        };
        let before: Vec<Option<u32>> = reads.iter().map(two).collect();
        if before.first().is_some_and(Option::is_some)
            && before.iter().all(|clock| *clock == before[0])
        {
            for t in reads {
                let list = &mut self.locations[t.place.loc].done;
                let last = list.iter().rposition(|d| d.is_of(t.at.thread, t.place.va));
                list.remove(last.expect("it was just found"));
            }
        }
    }
}

impl Weak {
    /// Performs an operation on several cells.
    pub(super) fn at_once(
        &self,
        cx: &mut Context<'_>,
        m: &mut WeakContents,
        reads: &[MemoryAccess],
        writes: &[MemoryAccess],
        new: NewValues<'_>,
    ) -> Result<Vec<i64>> {
        let mut sources = Vec::with_capacity(reads.len());
        for t in reads {
            let slot = self.read(cx, m, *t, None, 0)?;
            let overwritten = m.locations[t.place.loc].get(slot).co_after != 0;
            let weak = !t.access.strong && writes.is_empty();
            cx.ages(overwritten, if weak { Age::Stale } else { Age::Old });
            sources.push(slot);
        }
        for (t, &slot) in reads.iter().zip(&sources) {
            let known = Self::applying(m, cx.code, *t, Some(false));
            if self.hides(m, t.place, slot, known) {
                return Err(StepHalt::Refused);
            }
            if self.rules.never_before {
                m.locations[t.place.loc].get_mut(slot).never |= known & !(1 << slot);
            }
        }
        if cx.code.untorn {
            Self::untorn(m, reads, &sources)?;
        }
        let old: Vec<i64> = reads
            .iter()
            .zip(&sources)
            .map(|(t, slot)| m.locations[t.place.loc].get(*slot).value)
            .collect();
        if writes.is_empty() {
            m.forget_repeated(reads);
        }
        let mut written = Vec::with_capacity(writes.len());
        for (i, (t, value)) in writes.iter().zip(new(&old)).enumerate() {
            let Some(value) = value else { continue };
            let origin = match reads.get(i) {
                Some(read) => Self::origin(m, cx.code, *read, sources[i]),
                None => ReadOrigin::None,
            };
            written.push((*t, self.publish(cx, m, *t, value, origin)?));
        }
        for &(t, slot) in &written {
            self.comes(cx, m, t, slot)?;
        }
        self.as_wholes(cx, m)?;
        for &(t, slot) in &written {
            self.hands_on(m, cx.code, t, slot)?;
        }
        // A release pattern continues through any cell of an atomic.
        if written.iter().any(|(t, _)| t.access.updates) {
            let heads = |&(t, slot): &(MemoryAccess, usize)| {
                m.locations[t.place.loc].get(slot).heads.clone()
            };
            let mut all: Vec<PatternHead> = Vec::new();
            for head in written
                .iter()
                .map(heads)
                .collect::<Vec<_>>()
                .iter()
                .flat_map(|heads| heads.iter())
            {
                if !all.contains(head) {
                    all.push(head.clone());
                }
            }
            let all = Rc::new(all);
            for (t, slot) in &written {
                m.locations[t.place.loc].get_mut(*slot).heads = all.clone();
            }
        }
        Ok(old)
    }

    /// Checks that no read is torn. If it takes one cell from a write, its source in another cell
    /// of that write may differ. But it must not be a write that the first one overwrites, nor one
    /// that writes both cells.
    fn untorn(m: &mut WeakContents, reads: &[MemoryAccess], sources: &[usize]) -> Result {
        for (one, &from) in reads.iter().zip(sources) {
            let siblings = m.siblings(one.place.loc, from);
            for (other, &taken) in reads.iter().zip(sources) {
                fn here(all: &[(AccessPlace, usize)], loc: usize) -> Option<usize> {
                    all.iter().find(|s| s.0.loc == loc).map(|s| s.1)
                }
                let Some(whole) = here(&siblings, other.place.loc).filter(|whole| *whole != taken)
                else {
                    continue;
                };
                let both = here(&m.siblings(other.place.loc, taken), one.place.loc).is_some();
                let write = m.locations[other.place.loc].get_mut(taken);
                if both || write.co_after >> whole & 1 != 0 {
                    return Err(StepHalt::Refused);
                }
                write.never |= 1 << whole;
            }
        }
        Ok(())
    }

    /// Orders writes of several cells the same way in all cells that they share.
    ///
    /// # Errors
    /// Refused, if that is impossible.
    pub(super) fn as_wholes(&self, cx: &mut Context<'_>, m: &mut WeakContents) -> Result {
        if !self.rules.wholes {
            return Ok(());
        }
        // By operation: its cells.
        let mut operations: BTreeMap<(usize, u32), Vec<(usize, usize)>> = BTreeMap::new();
        for (loc, l) in m.locations.iter().enumerate() {
            for (slot, w) in l.live().filter(|(_, w)| w.part.1 > 1 && w.committed) {
                operations
                    .entry(w.operation().expect("no initial write has several"))
                    .or_default()
                    .push((loc, slot));
            }
        }
        loop {
            let mut changed = false;
            for (one, cells) in &operations {
                for (_, others) in operations.iter().filter(|(other, _)| *other != one) {
                    let shared = |&(loc, a): &(usize, usize)| {
                        others
                            .iter()
                            .find(|(l, _)| *l == loc)
                            .map(|(_, b)| (loc, a, *b))
                    };
                    let shared: Vec<_> = cells.iter().filter_map(shared).collect();
                    let ordered = |&(loc, a, b): &(usize, usize, usize)| {
                        m.locations[loc].get(a).co_after >> b & 1 != 0
                    };
                    if !shared.iter().any(ordered) || shared.iter().all(ordered) {
                        continue;
                    }
                    for (loc, a, b) in shared {
                        let location = &mut m.locations[loc];
                        location.add_co(a, b, self.rules.atomicity)?;
                        cx.log.note(RunEvent::After(
                            loc,
                            location.get(a).source,
                            location.get(b).source,
                        ));
                        changed = true;
                    }
                }
            }
            if !changed {
                return Ok(());
            }
        }
    }
}
