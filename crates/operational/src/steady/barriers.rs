//! Barriers and mbarrier objects of a run: who arrived in which phase, and what a phase hands over.
//!
//! # Invariants
//! - An arrival counts for the same phase in every execution, because its thread knows that all
//!   earlier phases are complete. A run with another arrival is given up.
//! - A wait learns only of the phases that every execution must have completed by then: of the
//!   states of the object that let it pass, the first that its thread does not know to be over.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::clock::Clock;
use program::Scope;

/// A barrier of a group of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct BarrierKey {
    pub(super) domain: Scope,
    /// The first thread of the group.
    pub(super) group: usize,
    pub(super) id: i64,
    pub(super) lanes: Option<i64>,
}

/// The phases of a barrier or an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Phases {
    /// Its number in clocks.
    pub(super) index: usize,
    /// What the arrivals of the present phase hand over.
    pub(super) present: Clock,
    /// What each complete phase handed over.
    pub(super) complete: Vec<Clock>,
    /// What the threads knew that began the operations of the present phase, and of each complete
    /// one. It comes before the end of the phase, but is not handed over.
    pub(super) begun: Clock,
    pub(super) all_begun: Vec<Clock>,
    /// The threads that arrived in the present phase.
    pub(super) arrived: Vec<usize>,
    /// By thread: the phase in which it arrived last.
    pub(super) last: BTreeMap<usize, usize>,
    /// The threads that arrived in any phase.
    pub(super) users: BTreeSet<usize>,
    /// The number of arrivals that completes a phase, as the first one gives it.
    pub(super) count: Option<Option<i64>>,
}

impl Phases {
    /// Completes the present phase.
    pub(super) fn advance(&mut self) {
        let mut clock = std::mem::take(&mut self.present);
        clock.knows_phases(self.index, self.complete.len() as i64 + 1);
        self.complete.push(clock);
        self.all_begun.push(std::mem::take(&mut self.begun));
        self.arrived.clear();
    }
}

/// All of them.
#[derive(Default)]
pub(super) struct RunBarriers {
    by_key: HashMap<BarrierKey, Phases>,
    by_address: HashMap<i64, Phases>,
    /// Objects before a second `init` at their address.
    gone: Vec<Phases>,
    made: usize,
}

impl RunBarriers {
    pub(super) fn barrier(&mut self, key: BarrierKey) -> &mut Phases {
        let made = &mut self.made;
        self.by_key.entry(key).or_insert_with(|| Phases {
            index: next(made),
            ..Phases::default()
        })
    }

    /// The object at an address.
    pub(super) fn object(&mut self, address: i64) -> &mut Phases {
        let made = &mut self.made;
        self.by_address.entry(address).or_insert_with(|| Phases {
            index: next(made),
            ..Phases::default()
        })
    }

    /// A new object at an address. Returns the number of the object that was there, if a thread
    /// has used it.
    pub(super) fn renew(&mut self, address: i64) -> Option<usize> {
        let gone = self.by_address.remove(&address)?;
        let index = gone.index;
        self.gone.push(gone);
        Some(index)
    }

    /// The object with a number.
    pub(super) fn numbered(&self, index: usize) -> Option<&Phases> {
        let mut all = self.by_address.values().chain(&self.gone);
        all.find(|object| object.index == index)
    }
}

fn next(made: &mut usize) -> usize {
    *made += 1;
    *made
}
