//! Remembers the accesses of a run by the memory that they touch, and finds races among them.
//!
//! # Invariants
//! - The list of a chunk of memory has, of each performer, its latest read and its latest write of
//!   each kind. An earlier one comes before the later one, so a race with it is a race with both.

use std::collections::HashMap;

use super::clock::{Clock, Performer};

/// Bytes of memory with one list.
const CHUNK: i64 = 16;

/// The kind of an access, as far as races depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessKind {
    Weak,
    /// The initialisation of an mbarrier object.
    Init,
    /// Another operation on an mbarrier object.
    Object,
    /// A product of tensor cores: those of one thread with one form and accumulator are a pipeline.
    Product {
        /// The thread.
        thread: usize,
        /// The shape and the kind.
        form: u64,
        /// The accumulator.
        address: i64,
    },
}

/// An access of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub(super) performer: Performer,
    /// Its number among the events of its performer.
    pub(super) event: u32,
    /// The thread that begins it, and the index of its micro-op.
    pub(super) site: (usize, usize),
    pub(super) write: bool,
    pub(super) kind: AccessKind,
    /// Whether it uses the async proxy.
    pub(super) async_proxy: bool,
    /// Whether it reads a tensor map for an operation.
    pub(super) tensormap: bool,
    /// 0: shared memory, 1: other memory.
    pub(super) memory: usize,
}

impl Touch {
    /// Whether it comes before an access that begins with this knowledge.
    fn is_before(&self, next: &Touch, known: &Clock, address: i64) -> bool {
        let kinds = (self.kind, next.kind);
        if kinds == (AccessKind::Init, AccessKind::Object) && known.objects.contains(&address) {
            return true;
        }
        let generic = !self.async_proxy;
        if generic && next.async_proxy {
            return known.fenced(next.memory, self.performer, self.event);
        }
        known.of(self.performer) >= self.event
    }

    fn conflicts(&self, next: &Touch) -> bool {
        let objects = (self.kind, next.kind) == (AccessKind::Object, AccessKind::Object);
        let pipelined = matches!(self.kind, AccessKind::Product { .. }) && self.kind == next.kind;
        (self.write || next.write) && !objects && !pipelined
    }

    fn is_alike(&self, other: &Touch) -> bool {
        (self.performer, self.write, self.kind, self.async_proxy)
            == (other.performer, other.write, other.kind, other.async_proxy)
    }
}

/// An access to some bytes of a chunk.
#[derive(Clone, Copy, Debug)]
struct PastTouch {
    touch: Touch,
    from: u8,
    to: u8,
}

/// Two accesses without order, and a byte that both touch.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunRace {
    pub(super) first: Touch,
    pub(super) second: Touch,
    pub(super) address: i64,
}

/// The accesses so far.
#[derive(Default)]
pub(super) struct Shadow {
    chunks: HashMap<i64, Vec<PastTouch>>,
    /// The first race of each two micro-ops' lines.
    pub(super) races: Vec<RunRace>,
    /// An operation whose tensor map a thread writes: fences of its proxy are not modelled here.
    pub(super) rewritten: Option<(usize, usize)>,
}

impl Shadow {
    /// Adds an access to ranges of addresses, which begins with the given knowledge.
    pub(super) fn touch(
        &mut self,
        touch: Touch,
        ranges: &[(i64, i64)],
        known: &Clock,
        is_new: &dyn Fn(&[RunRace], &Touch, &Touch) -> bool,
    ) {
        for &(from, to) in ranges {
            let mut at = from;
            while at < to {
                let chunk = at.div_euclid(CHUNK);
                let end = to.min((chunk + 1) * CHUNK);
                let new = PastTouch {
                    touch,
                    from: (at - chunk * CHUNK) as u8,
                    to: (end - chunk * CHUNK) as u8,
                };
                let list = self.chunks.entry(chunk).or_default();
                let old = list.iter();
                for old in old.filter(|old| new.from < old.to && old.from < new.to) {
                    let both = [(&old.touch, &touch), (&touch, &old.touch)];
                    let map = both.iter().find(|(map, by)| map.tensormap && by.write);
                    if let Some((map, _)) = map {
                        self.rewritten = Some(map.site);
                        continue;
                    }
                    if old.touch.conflicts(&touch)
                        && !old
                            .touch
                            .is_before(&touch, known, chunk * CHUNK + i64::from(old.from))
                        && is_new(&self.races, &old.touch, &touch)
                    {
                        self.races.push(RunRace {
                            first: old.touch,
                            second: touch,
                            address: chunk * CHUNK + i64::from(old.from.max(new.from)),
                        });
                    }
                }
                list.retain(|old| {
                    !(old.touch.is_alike(&touch) && (old.from, old.to) == (new.from, new.to))
                });
                list.push(new);
                at = end;
            }
        }
    }
}
