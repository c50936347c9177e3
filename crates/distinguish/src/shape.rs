//! Shapes: threads of instructions of a kind at a location, without orders, scopes and places.
//!
//! # Invariants
//! - One shape stands for all that differ from it in the names of threads and locations.
//! - What orders nothing is left out: fences at the ends of a thread, fences behind fences,
//!   barriers of one thread alone, locations that are accessed once or never written.
//! - All accesses of a location are plain, or none is. A thread comes to at most one barrier.

use std::collections::BTreeSet;

use program::Place;

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Writes.
    Write,
    /// Reads.
    Read,
    /// Reads and writes at once: an exchange.
    Update,
    /// Reads and writes at once, and tells nobody what it read: an addition.
    Reduce,
    /// Orders.
    Fence,
    /// Writes, and is not atomic.
    PlainWrite,
    /// Reads, and is not atomic.
    PlainRead,
    /// Meets the other threads of its group.
    Barrier,
}

impl Kind {
    /// Whether it reads memory.
    pub fn reads(self) -> bool {
        matches!(
            self,
            Kind::Read | Kind::Update | Kind::Reduce | Kind::PlainRead
        )
    }

    /// Whether it says in a register what it read.
    pub fn tells(self) -> bool {
        matches!(self, Kind::Read | Kind::Update | Kind::PlainRead)
    }

    /// Whether it writes memory.
    pub fn writes(self) -> bool {
        matches!(
            self,
            Kind::Write | Kind::Update | Kind::Reduce | Kind::PlainWrite
        )
    }

    /// Whether it accesses memory.
    pub fn accesses(self) -> bool {
        self.reads() || self.writes()
    }

    /// Whether it is an access that is not atomic.
    pub fn is_plain(self) -> bool {
        matches!(self, Kind::PlainRead | Kind::PlainWrite)
    }

    /// In names of programs.
    fn mark(self) -> &'static str {
        match self {
            Kind::Write => "W",
            Kind::Read => "R",
            Kind::Update => "U",
            Kind::Reduce => "A",
            Kind::Fence => "F",
            Kind::PlainWrite => "w",
            Kind::PlainRead => "r",
            Kind::Barrier => "B",
        }
    }
}

/// An instruction of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// What it does.
    pub kind: Kind,
    /// Where; of a fence, nothing.
    pub location: Option<u8>,
}

/// A program: its shape, where its threads run, its letters.
pub(crate) type Program<'s> = (&'s Shape, &'s [Place], &'s [usize]);

/// Names of locations.
pub const LOCATIONS: [&str; 3] = ["x", "y", "z"];

/// At most so many threads.
pub const MOST_THREADS: usize = 4;

/// Threads of instructions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// The threads, the longest first.
    pub threads: Vec<Vec<Slot>>,
}

impl Shape {
    /// Its instructions, thread by thread, each with its thread.
    pub fn slots(&self) -> impl Iterator<Item = (usize, Slot)> + '_ {
        self.threads
            .iter()
            .enumerate()
            .flat_map(|(t, slots)| slots.iter().map(move |slot| (t, *slot)))
    }

    /// How many locations it has.
    pub fn locations(&self) -> usize {
        self.slots()
            .filter_map(|(_, slot)| slot.location)
            .max()
            .map_or(0, |l| usize::from(l) + 1)
    }

    /// As in `WxWy+RyRx`.
    pub fn name(&self) -> String {
        let slot = |s: &Slot| {
            let location = s.location.map_or("", |l| LOCATIONS[usize::from(l)]);
            format!("{}{location}", s.kind.mark())
        };
        let threads = self
            .threads
            .iter()
            .map(|t| t.iter().map(slot).collect::<String>());
        threads.collect::<Vec<_>>().join("+")
    }

    /// Whether it has an instruction of that kind.
    pub fn has(&self, kind: Kind) -> bool {
        self.slots().any(|(_, slot)| slot.kind == kind)
    }

    /// The one shape that stands for it and all that differ in names.
    fn canonical(&self) -> Shape {
        let count = self.locations();
        let renamed = |names: &[u8]| {
            let rename = |s: &Slot| Slot {
                location: s.location.map(|l| names[usize::from(l)]),
                ..*s
            };
            let mut threads: Vec<Vec<Slot>> = self
                .threads
                .iter()
                .map(|t| t.iter().map(rename).collect())
                .collect();
            threads.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            Shape { threads }
        };
        let all = permutations(count).into_iter().map(|names| renamed(&names));
        all.min().expect("there is the identity")
    }

    /// Whether a location is that of plain accesses.
    pub fn is_plain(&self, location: usize) -> bool {
        self.slots()
            .any(|(_, slot)| slot.location == Some(location as u8) && slot.kind.is_plain())
    }

    /// Whether every location is accessed twice and written, in one way, and no thread is alone
    /// with its barrier, or does nothing else.
    fn is_shared(&self) -> bool {
        let shared = |l: u8| {
            let here = || self.slots().filter(|(_, slot)| slot.location == Some(l));
            let plain = here().filter(|(_, slot)| slot.kind.is_plain()).count();
            here().count() > 1
                && here().any(|(_, s)| s.kind.writes())
                && (plain == 0 || plain == here().count())
        };
        let barriers = self
            .slots()
            .filter(|(_, slot)| slot.kind == Kind::Barrier)
            .count();
        let idle = |slots: &Vec<Slot>| !slots.iter().any(|slot| slot.kind.accesses());
        (0..self.locations() as u8).all(shared) && barriers != 1 && !self.threads.iter().any(idle)
    }
}

/// The permutations of `0..n`.
pub fn permutations(n: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    for i in 0..n as u8 {
        let longer = |p: Vec<u8>| {
            (0..=p.len()).map(move |at| {
                let mut p = p.clone();
                p.insert(at, i);
                p
            })
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

/// All shapes of that many instructions of those kinds, those of fewer read-modify-writes and
/// threads first.
pub fn shapes(size: usize, kinds: &[Kind]) -> Vec<Shape> {
    let mut found = BTreeSet::new();
    let mut lengths = Vec::new();
    partitions(size, size, MOST_THREADS, &mut Vec::new(), &mut lengths);
    for lengths in lengths {
        let threads = lengths.iter().map(|_| Vec::new()).collect();
        extend(&lengths, 0, &mut Shape { threads }, kinds, &mut found);
    }
    let mut all: Vec<Shape> = found.into_iter().collect();
    let rank = |s: &Shape| {
        let updates = s
            .slots()
            .filter(|(_, slot)| slot.kind.reads() && slot.kind.writes())
            .count();
        (updates, s.threads.len())
    };
    all.sort_by_key(rank);
    all
}

/// Ways to divide instructions among threads, the longest first.
fn partitions(
    left: usize,
    longest: usize,
    threads: usize,
    so_far: &mut Vec<usize>,
    out: &mut Vec<Vec<usize>>,
) {
    if left == 0 {
        out.push(so_far.clone());
    } else if threads > 0 {
        for length in (1..=left.min(longest)).rev() {
            so_far.push(length);
            partitions(left - length, length, threads - 1, so_far, out);
            so_far.pop();
        }
    }
}

/// Adds the next instruction in every way; locations are named in the order of their first use.
fn extend(
    lengths: &[usize],
    thread: usize,
    shape: &mut Shape,
    kinds: &[Kind],
    found: &mut BTreeSet<Shape>,
) {
    let Some(&length) = lengths.get(thread) else {
        if shape.is_shared() {
            found.insert(shape.canonical());
        }
        return;
    };
    let at = shape.threads[thread].len();
    if at == length {
        return extend(lengths, thread + 1, shape, kinds, found);
    }
    let before = &shape.threads[thread];
    let fence = at > 0 && at + 1 < length && before[at - 1].kind != Kind::Fence;
    let barrier = !before.iter().any(|slot| slot.kind == Kind::Barrier);
    let fresh = shape.locations().min(LOCATIONS.len() - 1) as u8;
    let located = |kind: Kind| (0..=fresh).filter(move |_| kind.accesses()).map(Some);
    let nowhere =
        |kind| (kind == Kind::Fence && fence || kind == Kind::Barrier && barrier).then_some(None);
    let slots: Vec<Slot> = kinds
        .iter()
        .flat_map(|&kind| {
            located(kind)
                .chain(nowhere(kind))
                .map(move |location| Slot { kind, location })
        })
        .collect();
    for slot in slots {
        shape.threads[thread].push(slot);
        extend(lengths, thread, shape, kinds, found);
        shape.threads[thread].pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: [Kind; 4] = [Kind::Write, Kind::Read, Kind::Update, Kind::Fence];

    #[test]
    fn shapes_are_counted() {
        let counts = |more: &[Kind], to| {
            let kinds = [&USUAL[..], more].concat();
            (1..=to)
                .map(|size| shapes(size, &kinds).len())
                .collect::<Vec<usize>>()
        };
        assert_eq!(counts(&[], 5), [0, 13, 69, 958, 11_857]);
        assert_eq!(counts(&[Kind::Reduce], 4), [0, 24, 160, 3139]);
        // Of two instructions, five pairs of plain accesses more: two writes, or one and a read, in
        // one thread or two.
        assert_eq!(counts(&[Kind::PlainWrite, Kind::PlainRead], 2), [0, 18]);
        // Of four, two threads that access one location before or after a barrier.
        assert_eq!(counts(&[Kind::Barrier], 3), [0, 13, 69]);
    }

    #[test]
    fn names_tell_shapes_apart() {
        let more = [
            Kind::Reduce,
            Kind::PlainWrite,
            Kind::PlainRead,
            Kind::Barrier,
        ];
        let all = shapes(4, &[&USUAL[..], &more].concat());
        let names: BTreeSet<String> = all.iter().map(Shape::name).collect();
        assert_eq!(names.len(), all.len());
        assert!(
            names.contains("WxWy+RyRx") || names.contains("WyWx+RxRy"),
            "{names:?}"
        );
        for name in ["wxB+Brx", "rxB+Bwx"] {
            assert!(names.contains(name), "{name}");
        }
    }
}
