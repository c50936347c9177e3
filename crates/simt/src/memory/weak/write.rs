//! Writes, and the partial coherence order of each location.
//!
//! # Invariants
//! - `co_after` is irreflexive and transitively closed; the initial write, while it lives, is in
//!   slot 0 and before all others.
//! - No pair of `never` is ever in `co_after`.

use std::rc::Rc;

use super::per_location::Done;
use super::view::{Row, View};
use crate::record::Source;
use crate::set::bits;
use crate::{Halt, Result};
use program::{Proxy, Scope};

/// At most so many writes of one location may live at once.
pub(super) const MAX_SLOTS: usize = Row::BITS as usize;

/// The first operation of a release pattern: with everything base-causality before or equal to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Head {
    pub(super) thread: u16,
    pub(super) scope: Scope,
    pub(super) view: View,
}

/// Where the read half of a read-modify-write takes its value from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    /// It is no read-modify-write.
    None,
    /// That is still open (an exchange whose write was published alone).
    Unbound,
    /// The write in this slot of the same location; whether that `rf` is morally strong.
    From(u8, bool),
    /// A write that is gone: its heads were taken over.
    Gone,
}

/// An arrival at an mbarrier object: what it hands to who waits, and its scope.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Arrival {
    pub(super) head: Head,
    pub(super) scope: Scope,
    /// It is of an asynchronous operation, of which every wait learns.
    pub(super) told: bool,
    /// It is what such an operation has read, for an acquire fence behind the wait.
    pub(super) read: bool,
}

/// The arrivals at an mbarrier object.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// In the current phase.
    pub(super) current: Vec<Arrival>,
    /// In the phase before, which is complete.
    pub(super) complete: Vec<Arrival>,
}

impl Arrivals {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arrival> {
        self.current.iter().chain(&self.complete)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Arrival> {
        self.current.iter_mut().chain(&mut self.complete)
    }
}

/// One write.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) source: Source,
    pub(super) va: u16,
    pub(super) proxy: Proxy,
    pub(super) strong: bool,
    pub(super) scope: Scope,
    pub(super) value: i64,
    pub(super) committed: bool,
    /// Read by somebody while it was not committed.
    pub(super) read_early: bool,
    pub(super) origin: Origin,
    /// Which of the cells of its operation it is to, and how many these are.
    pub(super) part: (u8, u8),
    /// Half of an atomic.
    pub(super) atomic: bool,
    pub(super) heads: Rc<Vec<Head>>,
    /// It is an operation on an mbarrier object.
    pub(super) object: bool,
    /// The arrivals at the object up to here.
    pub(super) arrivals: Rc<Arrivals>,
    /// `heads` holds those of the atomics it continues, too.
    pub(super) flat: bool,
    pub(super) co_after: Row,
    /// Writes that it must never be co-before, by from-reads and causality.
    pub(super) never: Row,
    /// Writes that it is ordered with: that it is morally strong with, that are of one mbarrier
    /// object with it, or atomics that overlap with it in part.
    pub(super) ms: Row,
}

impl Write {
    /// A weak one of the generic proxy that nothing is known about yet.
    pub(super) fn new(source: Source, value: i64) -> Write {
        Write {
            source,
            va: 0,
            proxy: Proxy::Generic,
            strong: false,
            scope: Scope::Thread,
            value,
            committed: false,
            read_early: false,
            origin: Origin::None,
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

    /// The operation that made it: its thread, and the number of its first write; `None` for
    /// initial writes.
    pub(super) fn operation(&self) -> Option<(usize, u32)> {
        match self.source {
            Source::Initial(_) => None,
            Source::Write(t, n) => Some((t, n - u32::from(self.part.0))),
        }
    }

    /// Its thread; `None` for initial writes.
    pub(super) fn thread(&self) -> Option<usize> {
        match self.source {
            Source::Initial(_) => None,
            Source::Write(t, _) => Some(t),
        }
    }
}

/// The writes of one location.
#[derive(Clone, Debug, Default)]
pub(super) struct Location {
    pub(super) slots: Vec<Option<Write>>,
    /// Accesses that were committed, in programs with several proxies and to mbarrier objects.
    pub(super) done: Vec<Done>,
    /// Writes that nothing new may be placed before.
    pub(super) sealed: Row,
    /// Writes that nothing new may be placed before that is morally strong with them.
    pub(super) sealed_ms: Row,
}

impl Location {
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

    /// Puts a write into the lowest free slot, and settles whom it is morally strong with.
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
                return Err(Halt::Limit(
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

    /// Frees slots, and forgets them everywhere here.
    pub(super) fn remove(&mut self, gone: Row) {
        for (i, w) in self.slots.iter_mut().enumerate() {
            if gone >> i & 1 != 0 {
                *w = None;
            } else if let Some(w) = w {
                w.co_after &= !gone;
                w.never &= !gone;
                w.ms &= !gone;
                if let Origin::From(slot, _) = w.origin
                    && gone >> slot & 1 != 0
                {
                    w.origin = Origin::Gone;
                }
            }
        }
        self.sealed &= !gone;
        self.sealed_ms &= !gone;
        while matches!(self.slots.last(), Some(None)) {
            self.slots.pop();
        }
    }

    /// The writes co-before one.
    pub(super) fn co_before(&self, slot: usize) -> Row {
        self.live()
            .filter(|(_, w)| w.co_after >> slot & 1 != 0)
            .fold(0, |row, (i, _)| row | 1 << i)
    }

    /// The writes with nothing co-after them, among those committed.
    pub(super) fn maximal(&self) -> impl Iterator<Item = (usize, &Write)> {
        self.live().filter(|(_, w)| w.co_after == 0)
    }

    /// Makes `b` coherence-after `a`, and closes transitively.
    pub(super) fn add_co(&mut self, a: usize, b: usize, check_atomicity: bool) -> Result {
        if a == b || self.get(b).co_after >> a & 1 != 0 {
            return Err(Halt::Refused);
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
                return Err(Halt::Refused);
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
            let Origin::From(s, _) = w.origin else {
                continue;
            };
            let s = usize::from(s);
            if self.get(s).co_after & self.co_before(u) & w.ms & !(1 << s | 1 << u) != 0 {
                return Err(Halt::Refused);
            }
        }
        Ok(())
    }
}
