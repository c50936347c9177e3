//! Kinds of events. An instruction makes one or more events; models see these.
//!
//! [`KINDS`] has one row for each kind. [`EVENT_SETS`] lists the sets of events that models start
//! from, except the sets of tags.

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// Initial write of one cell.
    Init,
    /// Reads memory.
    Read,
    /// Writes memory.
    Write,
    /// A fence.
    Fence,
    /// Arrival at a barrier.
    Arrive,
    /// Passing a barrier: executes only if the barrier releases the thread.
    Wait,
}

/// The texts for a kind of event.
pub struct KindRow {
    /// The kind.
    pub kind: EventKind,
    /// The symbol in pictures and executions. The event's location and value follow it.
    pub mark: &'static str,
    /// The noun in messages.
    pub noun: &'static str,
}

/// Every kind, in the order of [`EventKind`].
pub const KINDS: &[KindRow] = &[
    KindRow {
        kind: EventKind::Init,
        mark: "W",
        noun: "initial write",
    },
    KindRow {
        kind: EventKind::Read,
        mark: "R",
        noun: "load",
    },
    KindRow {
        kind: EventKind::Write,
        mark: "W",
        noun: "store",
    },
    KindRow {
        kind: EventKind::Fence,
        mark: "F",
        noun: "fence",
    },
    KindRow {
        kind: EventKind::Arrive,
        mark: "BA",
        noun: "barrier",
    },
    KindRow {
        kind: EventKind::Wait,
        mark: "BW",
        noun: "barrier",
    },
];

/// The sets that contain all events of some kinds: name, meaning, noun for one event, kinds.
pub const EVENT_SETS: &[(&str, &str, &str, &[EventKind])] = &[
    ("R", "reads", "a read", &[EventKind::Read]),
    (
        "W",
        "writes, initial ones included",
        "a write",
        &[EventKind::Write, EventKind::Init],
    ),
    (
        "M",
        "reads and writes",
        "a memory access",
        &[EventKind::Read, EventKind::Write, EventKind::Init],
    ),
    (
        "F",
        "fences and both halves of barriers",
        "a fence",
        &[EventKind::Fence, EventKind::Arrive, EventKind::Wait],
    ),
    (
        "IW",
        "initial writes",
        "an initial write",
        &[EventKind::Init],
    ),
];

impl EventKind {
    /// The row of this kind.
    pub fn row(self) -> &'static KindRow {
        &KINDS[self as usize]
    }

    /// Whether the set of [`EVENT_SETS`] with this name contains the kind.
    pub fn is_in(self, set: &str) -> bool {
        EVENT_SETS.iter().any(|s| s.0 == set && s.3.contains(&self))
    }

    /// Whether it is a write, initial or not.
    pub fn writes(self) -> bool {
        matches!(self, EventKind::Write | EventKind::Init)
    }

    /// Whether it accesses memory.
    pub fn accesses(self) -> bool {
        self.writes() || self == EventKind::Read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_stands_in_its_place() {
        for (i, row) in KINDS.iter().enumerate() {
            assert_eq!(row.kind as usize, i);
        }
    }
}
