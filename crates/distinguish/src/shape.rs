//! Shapes: threads of instructions, each with a kind and a location, without orders, scopes and
//! places.
//!
//! # Invariants
//! - One shape represents all that differ only in the names of threads and locations.
//! - Useless parts are excluded: fences at the ends of a thread or after fences, barriers with a
//!   single thread, and locations that are accessed once or never written.
//! - The accesses of a location are all plain or all atomic. A thread reaches at most one barrier.

use std::collections::BTreeSet;

use program::Place;

/// The kind of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstrKind {
    /// An atomic write.
    Write,
    /// An atomic read.
    Read,
    /// An exchange: reads and writes at once.
    Update,
    /// An addition: reads and writes at once, and returns nothing.
    Reduce,
    /// A fence.
    Fence,
    /// A non-atomic write.
    PlainWrite,
    /// A non-atomic read.
    PlainRead,
    /// A barrier of a group of threads.
    Barrier,
}

impl InstrKind {
    /// Whether it reads memory.
    pub fn reads(self) -> bool {
        matches!(
            self,
            InstrKind::Read | InstrKind::Update | InstrKind::Reduce | InstrKind::PlainRead
        )
    }

    /// Whether a register receives the value read.
    pub fn tells(self) -> bool {
        matches!(
            self,
            InstrKind::Read | InstrKind::Update | InstrKind::PlainRead
        )
    }

    /// Whether it writes memory.
    pub fn writes(self) -> bool {
        matches!(
            self,
            InstrKind::Write | InstrKind::Update | InstrKind::Reduce | InstrKind::PlainWrite
        )
    }

    /// Whether it accesses memory.
    pub fn accesses(self) -> bool {
        self.reads() || self.writes()
    }

    /// Whether it is a non-atomic access.
    pub fn is_plain(self) -> bool {
        matches!(self, InstrKind::PlainRead | InstrKind::PlainWrite)
    }

    /// The letter in shape names.
    fn mark(self) -> &'static str {
        match self {
            InstrKind::Write => "W",
            InstrKind::Read => "R",
            InstrKind::Update => "U",
            InstrKind::Reduce => "A",
            InstrKind::Fence => "F",
            InstrKind::PlainWrite => "w",
            InstrKind::PlainRead => "r",
            InstrKind::Barrier => "B",
        }
    }
}

/// An instruction of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShapeSlot {
    /// Its kind.
    pub kind: InstrKind,
    /// Its location; `None` for a fence.
    pub location: Option<u8>,
}

/// A program: its shape, its placement, its letters.
pub(crate) type LetteredProgram<'s> = (&'s ProgramShape, &'s [Place], &'s [usize]);

/// Names of locations.
pub const LOCATIONS: [&str; 3] = ["x", "y", "z"];

/// The largest number of threads.
pub const MOST_THREADS: usize = 4;

/// Threads of instructions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramShape {
    /// The threads, the longest first.
    pub threads: Vec<Vec<ShapeSlot>>,
}

impl ProgramShape {
    /// Its instructions, thread by thread, each with its thread.
    pub fn slots(&self) -> impl Iterator<Item = (usize, ShapeSlot)> + '_ {
        self.threads
            .iter()
            .enumerate()
            .flat_map(|(t, slots)| slots.iter().map(move |slot| (t, *slot)))
    }

    /// The number of locations.
    pub fn locations(&self) -> usize {
        self.slots()
            .filter_map(|(_, slot)| slot.location)
            .max()
            .map_or(0, |l| usize::from(l) + 1)
    }

    /// A name such as `WxWy+RyRx`.
    pub fn name(&self) -> String {
        let threads = self.threads.iter().map(|t| {
            t.iter()
                .map(|s| {
                    let location = s.location.map_or("", |l| LOCATIONS[usize::from(l)]);
                    format!("{}{location}", s.kind.mark())
                })
                .collect::<String>()
        });
        threads.collect::<Vec<_>>().join("+")
    }

    /// Whether it has an instruction of that kind.
    pub fn has(&self, kind: InstrKind) -> bool {
        self.slots().any(|(_, slot)| slot.kind == kind)
    }

    /// The representative of all shapes that differ only in names.
    fn canonical(&self) -> ProgramShape {
        let count = self.locations();
        let renamed = |names: &[u8]| {
            let mut threads: Vec<Vec<ShapeSlot>> = self
                .threads
                .iter()
                .map(|t| {
                    t.iter()
                        .map(|s| ShapeSlot {
                            location: s.location.map(|l| names[usize::from(l)]),
                            ..*s
                        })
                        .collect()
                })
                .collect();
            threads.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            ProgramShape { threads }
        };
        let all = permutations(count).into_iter().map(|names| renamed(&names));
        all.min().expect("there is the identity")
    }

    /// Whether a location has plain accesses.
    pub fn is_plain(&self, location: usize) -> bool {
        self.slots()
            .any(|(_, slot)| slot.location == Some(location as u8) && slot.kind.is_plain())
    }

    /// Whether every location is written, accessed twice, and only plain or only atomic. Also no
    /// thread is alone with its barrier or contains only a barrier.
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
            .filter(|(_, slot)| slot.kind == InstrKind::Barrier)
            .count();
        (0..self.locations() as u8).all(shared)
            && barriers != 1
            && !self
                .threads
                .iter()
                .any(|slots| !slots.iter().any(|slot| slot.kind.accesses()))
    }
}

/// The permutations of `0..n`.
pub fn permutations(n: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    for i in 0..n as u8 {
        all = all
            .into_iter()
            .flat_map(|p| {
                (0..=p.len()).map(move |at| {
                    let mut p = p.clone();
                    p.insert(at, i);
                    p
                })
            })
            .collect();
    }
    all
}

/// All shapes with that many instructions of those kinds, fewer read-modify-writes and threads
/// first.
pub fn shapes(size: usize, kinds: &[InstrKind]) -> Vec<ProgramShape> {
    let mut found = BTreeSet::new();
    let mut lengths = Vec::new();
    partitions(size, size, MOST_THREADS, &mut Vec::new(), &mut lengths);
    for lengths in lengths {
        let threads = lengths.iter().map(|_| Vec::new()).collect();
        extend(
            &lengths,
            0,
            &mut ProgramShape { threads },
            kinds,
            &mut found,
        );
    }
    let mut all: Vec<ProgramShape> = found.into_iter().collect();
    all.sort_by_key(|s: &ProgramShape| {
        let updates = s
            .slots()
            .filter(|(_, slot)| slot.kind.reads() && slot.kind.writes())
            .count();
        (updates, s.threads.len())
    });
    all
}

/// The partitions of instructions among threads, the longest thread first.
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
    shape: &mut ProgramShape,
    kinds: &[InstrKind],
    found: &mut BTreeSet<ProgramShape>,
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
    let fence = at > 0 && at + 1 < length && before[at - 1].kind != InstrKind::Fence;
    let barrier = !before.iter().any(|slot| slot.kind == InstrKind::Barrier);
    let fresh = shape.locations().min(LOCATIONS.len() - 1) as u8;
    let nowhere = |kind| {
        (kind == InstrKind::Fence && fence || kind == InstrKind::Barrier && barrier).then_some(None)
    };
    let slots: Vec<ShapeSlot> = kinds
        .iter()
        .flat_map(|&kind| {
            (0..=fresh)
                .filter(move |_| kind.accesses())
                .map(Some)
                .chain(nowhere(kind))
                .map(move |location| ShapeSlot { kind, location })
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

    const USUAL: [InstrKind; 4] = [
        InstrKind::Write,
        InstrKind::Read,
        InstrKind::Update,
        InstrKind::Fence,
    ];

    #[test]
    fn shapes_are_counted() {
        let counts = |more: &[InstrKind], to| {
            let kinds = [&USUAL[..], more].concat();
            (1..=to)
                .map(|size| shapes(size, &kinds).len())
                .collect::<Vec<usize>>()
        };
        assert_eq!(counts(&[], 5), [0, 13, 69, 958, 11_857]);
        assert_eq!(counts(&[InstrKind::Reduce], 4), [0, 24, 160, 3139]);
        // Two instructions have five further shapes with plain accesses: two writes, or a write and
        // a read, in one thread or two.
        assert_eq!(
            counts(&[InstrKind::PlainWrite, InstrKind::PlainRead], 2),
            [0, 18]
        );
        // Barriers first appear with four instructions: two threads access one location before or
        // after a barrier.
        assert_eq!(counts(&[InstrKind::Barrier], 3), [0, 13, 69]);
    }

    #[test]
    fn names_tell_shapes_apart() {
        let more = [
            InstrKind::Reduce,
            InstrKind::PlainWrite,
            InstrKind::PlainRead,
            InstrKind::Barrier,
        ];
        let all = shapes(4, &[&USUAL[..], &more].concat());
        let names: BTreeSet<String> = all.iter().map(ProgramShape::name).collect();
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
