//! Writes, and the partial coherence order of each location.
//!
//! # Invariants
//! - `co_after` is irreflexive and transitively closed. The initial write, as long as it exists, is
//!   in slot 0 and before all others.
//! - No pair of `never` is ever in `co_after`.

use std::rc::Rc;

use super::per_location::CommittedAccess;
use super::view::{WriteSet, WriteView};
use crate::record::WriteId;
use crate::set::bits;
use crate::{Result, StepHalt};
use program::{Proxy, Scope};

/// The largest number of live writes of a location.
pub(super) const MAX_SLOTS: usize = WriteSet::BITS as usize;

/// The first operation of a release pattern, with every write base-causality before or equal to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PatternHead {
    pub(super) thread: u16,
    pub(super) scope: Scope,
    pub(super) view: WriteView,
}

/// The source of the read half of a read-modify-write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ReadOrigin {
    /// The write is not part of a read-modify-write.
    None,
    /// The source is still open (an exchange whose write was published alone).
    Unbound,
    /// The write in this slot of the same location; whether that `rf` is morally strong.
    From(u8, bool),
    /// A removed write; its heads were taken over.
    Gone,
}

/// An arrival at an mbarrier object: the knowledge for waiting threads, and its scope.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ObjectArrival {
    pub(super) head: PatternHead,
    pub(super) scope: Scope,
    /// Whether it reports an asynchronous operation; then every wait learns from it.
    pub(super) told: bool,
    /// Whether it holds the reads of such an operation, for an acquire fence after the wait.
    pub(super) read: bool,
}

/// The arrivals at an mbarrier object.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectArrivals {
    /// In the current phase.
    pub(super) current: Vec<ObjectArrival>,
    /// In the previous phase, which is complete.
    pub(super) complete: Vec<ObjectArrival>,
}

impl ObjectArrivals {
    pub(super) fn iter(&self) -> impl Iterator<Item = &ObjectArrival> {
        self.current.iter().chain(&self.complete)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ObjectArrival> {
        self.current.iter_mut().chain(&mut self.complete)
    }
}

/// One write.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) source: WriteId,
    pub(super) va: u16,
    pub(super) proxy: Proxy,
    pub(super) strong: bool,
    pub(super) scope: Scope,
    pub(super) value: i64,
    pub(super) committed: bool,
    /// Whether some thread read it before its commit.
    pub(super) read_early: bool,
    pub(super) origin: ReadOrigin,
    /// Which cell of its operation it writes, and how many cells there are.
    pub(super) part: (u8, u8),
    /// Whether it is half of an atomic.
    pub(super) atomic: bool,
    pub(super) heads: Rc<Vec<PatternHead>>,
    /// Whether it is an operation on an mbarrier object.
    pub(super) object: bool,
    /// The arrivals at the object up to here.
    pub(super) arrivals: Rc<ObjectArrivals>,
    /// Whether `heads` includes those of the atomics that it continues.
    pub(super) flat: bool,
    pub(super) co_after: WriteSet,
    /// Writes that it must never precede in coherence order, by from-reads and causality.
    pub(super) never: WriteSet,
    /// Writes with which coherence orders it: those morally strong with it, those of the same
    /// mbarrier object, and atomics that overlap with it in part.
    pub(super) ms: WriteSet,
}

impl Write {
    /// A weak write of the generic proxy, without any relations yet.
    pub(super) fn new(source: WriteId, value: i64) -> Write {
        Write {
            source,
            va: 0,
            proxy: Proxy::Generic,
            strong: false,
            scope: Scope::Thread,
            value,
            committed: false,
            read_early: false,
            origin: ReadOrigin::None,
            part: (0, 1),
            atomic: false,
            heads: Rc::default(),
            object: false,
            arrivals: Rc::default(),
            flat: false,
            co_after: 0,
            never: 0,
            ms: 0,
        }
    }

    /// The operation that made it: its thread, and the number of the operation's first write.
    /// `None` for initial writes.
    pub(super) fn operation(&self) -> Option<(usize, u32)> {
        match self.source {
            WriteId::Initial(_) => None,
            WriteId::Write(t, n) => Some((t, n - u32::from(self.part.0))),
        }
    }

    /// Its thread; `None` for initial writes.
    pub(super) fn thread(&self) -> Option<usize> {
        match self.source {
            WriteId::Initial(_) => None,
            WriteId::Write(t, _) => Some(t),
        }
    }
}

/// The writes of one location.
#[derive(Clone, Debug, Default)]
pub(super) struct LocationWrites {
    pub(super) slots: Vec<Option<Write>>,
    /// Committed accesses, in programs with several proxies and for mbarrier objects.
    pub(super) done: Vec<CommittedAccess>,
    /// Writes before which no new write may come.
    pub(super) sealed: WriteSet,
    /// Writes before which no new write may come that is morally strong with them.
    pub(super) sealed_ms: WriteSet,
}

impl LocationWrites {
    pub(super) fn get(&self, slot: usize) -> &Write {
        self.slots[slot].as_ref().expect("slots in rows are taken")
    }

    pub(super) fn get_mut(&mut self, slot: usize) -> &mut Write {
        self.slots[slot].as_mut().expect("slots in rows are taken")
    }

    /// The taken slots with their writes.
    pub(super) fn live(&self) -> impl Iterator<Item = (usize, &Write)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(i, w)| w.as_ref().map(|w| (i, w)))
    }

    /// The committed writes of a thread among [`LocationWrites::live`].
    pub(super) fn live_of(&self, thread: usize) -> impl Iterator<Item = (usize, &Write)> {
        self.live()
            .filter(move |(_, w)| w.committed && w.thread() == Some(thread))
    }

    /// Puts a write into the lowest free slot, and finds the writes that it is morally strong with.
    pub(super) fn insert(
        &mut self,
        mut write: Write,
        ms: impl Fn(&Write) -> bool,
    ) -> Result<usize> {
        let slot = match self.slots.iter().position(Option::is_none) {
            Some(slot) => slot,
            None if self.slots.len() < MAX_SLOTS => {
                self.slots.push(None);
                self.slots.len() - 1
            }
            None => {
                return Err(StepHalt::Limit(
                    "history bound: too many writes of one location",
                ));
            }
        };
        for (i, other) in self.slots.iter_mut().enumerate() {
            let Some(other) = other else { continue };
            if other.thread().is_none() {
                other.co_after |= 1 << slot;
            } else if ms(other) {
                other.ms |= 1 << slot;
                write.ms |= 1 << i;
            }
        }
        self.slots[slot] = Some(write);
        Ok(slot)
    }

    /// Frees slots, and removes them from all sets here.
    pub(super) fn remove(&mut self, gone: WriteSet) {
        for (i, w) in self.slots.iter_mut().enumerate() {
            if gone >> i & 1 != 0 {
                *w = None;
            } else if let Some(w) = w {
                w.co_after &= !gone;
                w.never &= !gone;
                w.ms &= !gone;
                if let ReadOrigin::From(slot, _) = w.origin
                    && gone >> slot & 1 != 0
                {
                    w.origin = ReadOrigin::Gone;
                }
            }
        }
        self.sealed &= !gone;
        self.sealed_ms &= !gone;
        while matches!(self.slots.last(), Some(None)) {
            self.slots.pop();
        }
    }

    /// The writes coherence-before one.
    pub(super) fn co_before(&self, slot: usize) -> WriteSet {
        self.live()
            .filter(|(_, w)| w.co_after >> slot & 1 != 0)
            .fold(0, |row, (i, _)| row | 1 << i)
    }

    /// The writes without a coherence-later one.
    pub(super) fn maximal(&self) -> impl Iterator<Item = (usize, &Write)> {
        self.live().filter(|(_, w)| w.co_after == 0)
    }

    /// Makes `b` coherence-after `a`, and closes transitively.
    pub(super) fn add_co(&mut self, a: usize, b: usize, check_atomicity: bool) -> Result {
        if a == b || self.get(b).co_after >> a & 1 != 0 {
            return Err(StepHalt::Refused);
        }
        if self.get(a).co_after >> b & 1 != 0 {
            return Ok(());
        }
        let before = self.co_before(a) | 1 << a;
        let after = self.get(b).co_after | 1 << b;
        for x in bits(before) {
            let w = self.get_mut(x);
            w.co_after |= after;
            if w.co_after & w.never != 0 {
                return Err(StepHalt::Refused);
            }
        }
        if check_atomicity {
            self.check_atomicity()
        } else {
            Ok(())
        }
    }

    /// Atomicity: no write that is morally strong with a read-modify-write comes between its source
    /// and its write half.
    fn check_atomicity(&self) -> Result {
        for (u, w) in self.live() {
            let ReadOrigin::From(s, _) = w.origin else {
                continue;
            };
            let s = usize::from(s);
            if self.get(s).co_after & self.co_before(u) & w.ms & !(1 << s | 1 << u) != 0 {
                return Err(StepHalt::Refused);
            }
        }
        Ok(())
    }
}
