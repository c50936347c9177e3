//! Counts the events that come before the next event of a thread, and those of them that a proxy
//! fence separates from it.
//!
//! # Invariants
//! - A number of a clock belongs to a *performer*: a thread, or an asynchronous operation. An
//!   operation performs all of its accesses at once, as its event 1.
//! - A clock knows an operation only once a wait found it complete. Its accesses are then ordered
//!   before those of every proxy: an implicit proxy fence follows the completion.
//!
//! # Sources
//! - PTX ISA 9.4, Memory Consistency Model, *Causality Order*, *Asynchronous Operations*; *Async
//!   Proxy*.
//! - `proxy-preserved` in `models/ptx.cat`, with `async-fence = path`.

use std::collections::{BTreeMap, BTreeSet};

/// The number of a performer.
pub(super) type Performer = usize;

/// The events that come before, by performer; performers beyond the end have none.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    events: Vec<u32>,
    /// Those before a fence of the async proxy: for shared memory, and for global memory.
    fenced: [Vec<u32>; 2],
    /// By barrier: the number of its phases that are complete.
    pub(super) phases: BTreeMap<usize, i64>,
    /// The addresses of mbarrier objects whose initialisation `fence.mbarrier_init` made known.
    pub(super) objects: BTreeSet<i64>,
}

fn raise(into: &mut Vec<u32>, other: &[u32]) {
    if into.len() < other.len() {
        into.resize(other.len(), 0);
    }
    into.iter_mut()
        .zip(other)
        .for_each(|(own, other)| *own = (*own).max(*other));
}

impl Clock {
    /// The number of known events of a performer.
    pub(super) fn of(&self, performer: Performer) -> u32 {
        self.events.get(performer).copied().unwrap_or(0)
    }

    /// Learns of the events of a performer up to a number.
    pub(super) fn learn(&mut self, performer: Performer, events: u32) {
        if self.events.len() <= performer {
            self.events.resize(performer + 1, 0);
        }
        self.events[performer] = self.events[performer].max(events);
    }

    /// Takes over the knowledge of another clock.
    pub(super) fn join(&mut self, other: &Clock) {
        raise(&mut self.events, &other.events);
        for (own, other) in self.fenced.iter_mut().zip(&other.fenced) {
            raise(own, other);
        }
        self.join_relaxed(other);
    }

    /// Takes over the phases and objects that another clock knows.
    pub(super) fn join_relaxed(&mut self, other: &Clock) {
        for (barrier, phases) in &other.phases {
            self.knows_phases(*barrier, *phases);
        }
        self.objects.extend(&other.objects);
    }

    /// Learns that so many phases of a barrier are complete.
    pub(super) fn knows_phases(&mut self, barrier: usize, phases: i64) {
        let own = self.phases.entry(barrier).or_default();
        *own = (*own).max(phases);
    }

    /// Performs a fence of the async proxy, for shared or global memory.
    pub(super) fn fence(&mut self, memory: usize) {
        let known = std::mem::take(&mut self.events);
        raise(&mut self.fenced[memory], &known);
        self.events = known;
    }

    /// Whether an event comes before an access of the async proxy to shared or global memory.
    pub(super) fn fenced(&self, memory: usize, performer: Performer, event: u32) -> bool {
        self.fenced[memory].get(performer).copied().unwrap_or(0) >= event
    }
}
