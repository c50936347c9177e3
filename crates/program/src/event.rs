//! Kinds of events: what an instruction does, one event at a time, as a model sees it.
//!
//! A kind is a row of [`KINDS`]; the sets of events that models build on, apart from tags, are rows
//! of [`EVENT_SETS`].

/// What an event is.
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
    /// Passing a barrier: executes only if the barrier lets the thread pass.
    Wait,
}

/// What is told of a kind.
pub struct KindRow {
    /// The kind.
    pub kind: EventKind,
    /// What stands for it in pictures and executions, before its place and value if it has them.
    pub mark: &'static str,
    /// What sentences call it.
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

/// The sets that consist of all events of some kinds: name, meaning, what an event in it is,
/// kinds.
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
    /// Its row.
    pub fn row(self) -> &'static KindRow {
        &KINDS[self as usize]
    }

    /// Whether all events of the kind are in that set of [`EVENT_SETS`].
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
