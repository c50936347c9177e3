//! Shapes: threads of instructions of a kind at a location, without orders, scopes and places.
//!
//! # Invariants
//! - One shape stands for all that differ from it in the names of threads and locations.
//! - What orders nothing is left out: fences at the ends of a thread, fences behind fences, locations that are accessed
//!   once or never written.

use std::collections::BTreeSet;

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
}

impl Kind {
    /// Whether it reads memory.
    pub fn reads(self) -> bool {
        matches!(self, Kind::Read | Kind::Update | Kind::Reduce)
    }

    /// Whether it says in a register what it read.
    pub fn tells(self) -> bool {
        matches!(self, Kind::Read | Kind::Update)
    }

    /// Whether it writes memory.
    pub fn writes(self) -> bool {
        matches!(self, Kind::Write | Kind::Update | Kind::Reduce)
    }

    /// In names of programs.
    fn mark(self) -> &'static str {
        match self {
            Kind::Write => "W",
            Kind::Read => "R",
            Kind::Update => "U",
            Kind::Reduce => "A",
            Kind::Fence => "F",
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
        self.threads.iter().enumerate().flat_map(|(t, slots)| slots.iter().map(move |slot| (t, *slot)))
    }

    /// How many locations it has.
    pub fn locations(&self) -> usize {
        self.slots().filter_map(|(_, slot)| slot.location).max().map_or(0, |l| usize::from(l) + 1)
    }

    /// As in `WxWy+RyRx`.
    pub fn name(&self) -> String {
        let slot = |s: &Slot| {
            let location = s.location.map_or("", |l| LOCATIONS[usize::from(l)]);
            format!("{}{location}", s.kind.mark())
        };
        let threads = self.threads.iter().map(|t| t.iter().map(slot).collect::<String>());
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
            let rename = |s: &Slot| Slot { location: s.location.map(|l| names[usize::from(l)]), ..*s };
            let mut threads: Vec<Vec<Slot>> =
                self.threads.iter().map(|t| t.iter().map(rename).collect()).collect();
            threads.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            Shape { threads }
        };
        let all = permutations(count).into_iter().map(|names| renamed(&names));
        all.min().expect("there is the identity")
    }

    /// Whether every location is accessed twice and written.
    fn is_shared(&self) -> bool {
        (0..self.locations() as u8).all(|l| {
            let here = || self.slots().filter(|(_, slot)| slot.location == Some(l));
            here().count() > 1 && here().any(|(_, slot)| slot.kind.writes())
        })
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

/// All shapes of that many instructions, those of fewer read-modify-writes and threads first; with additions if so `reduced`.
pub fn shapes(size: usize, reduced: bool) -> Vec<Shape> {
    let mut found = BTreeSet::new();
    let mut lengths = Vec::new();
    let kinds: &[Kind] = &[Kind::Write, Kind::Read, Kind::Update, Kind::Reduce];
    let kinds = if reduced { kinds } else { &kinds[..3] };
    partitions(size, size, MOST_THREADS, &mut Vec::new(), &mut lengths);
    for lengths in lengths {
        let threads = lengths.iter().map(|_| Vec::new()).collect();
        extend(&lengths, 0, &mut Shape { threads }, kinds, &mut found);
    }
    let mut all: Vec<Shape> = found.into_iter().collect();
    let rank = |s: &Shape| {
        let updates = s.slots().filter(|(_, slot)| slot.kind.reads() && slot.kind.writes()).count();
        (updates, s.threads.len())
    };
    all.sort_by_key(rank);
    all
}

/// Ways to divide instructions among threads, the longest first.
fn partitions(left: usize, longest: usize, threads: usize, so_far: &mut Vec<usize>, out: &mut Vec<Vec<usize>>) {
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
fn extend(lengths: &[usize], thread: usize, shape: &mut Shape, kinds: &[Kind], found: &mut BTreeSet<Shape>) {
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
    let fits = at > 0 && at + 1 < length && shape.threads[thread][at - 1].kind != Kind::Fence;
    let fresh = shape.locations().min(LOCATIONS.len() - 1) as u8;
    let accesses = kinds.iter().flat_map(|&kind| (0..=fresh).map(move |l| Slot { kind, location: Some(l) }));
    for slot in accesses.chain(fits.then_some(Slot { kind: Kind::Fence, location: None })) {
        shape.threads[thread].push(slot);
        extend(lengths, thread, shape, kinds, found);
        shape.threads[thread].pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_counted() {
        let counts: Vec<usize> = (1..=5).map(|size| shapes(size, false).len()).collect();
        assert_eq!(counts, [0, 13, 69, 958, 11_857]);
        let reduced: Vec<usize> = (1..=4).map(|size| shapes(size, true).len()).collect();
        assert_eq!(reduced, [0, 24, 160, 3139]);
    }

    #[test]
    fn names_tell_shapes_apart() {
        let all = shapes(4, true);
        let names: BTreeSet<String> = all.iter().map(Shape::name).collect();
        assert_eq!(names.len(), all.len());
        assert!(names.contains("WxWy+RyRx") || names.contains("WyWx+RxRy"), "{names:?}");
    }
}
