//! Sets of events.

use super::{EventId, ones};

/// A set of events out of a fixed number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventSet {
    n: usize,
    words: Vec<u64>,
}

impl EventSet {
    /// The empty set among `n` events.
    pub fn empty(n: usize) -> Self {
        EventSet {
            n,
            words: vec![0; n.div_ceil(64)],
        }
    }

    /// All `n` events.
    pub fn full(n: usize) -> Self {
        let mut set = EventSet {
            n,
            words: vec![!0; n.div_ceil(64)],
        };
        if let Some(last) = set.words.last_mut().filter(|_| !n.is_multiple_of(64)) {
            *last = (1 << (n % 64)) - 1;
        }
        set
    }

    /// The events for which `f` holds.
    pub fn from_fn(n: usize, mut f: impl FnMut(EventId) -> bool) -> Self {
        let mut set = EventSet::empty(n);
        for i in 0..n {
            if f(EventId::new(i)) {
                set.insert(i);
            }
        }
        set
    }

    /// The number of possible members.
    pub fn universe_len(&self) -> usize {
        self.n
    }

    /// Whether event `i` is in it.
    #[inline]
    pub fn has(&self, i: usize) -> bool {
        self.words[i / 64] >> (i % 64) & 1 != 0
    }

    /// Adds event `i`.
    #[inline]
    pub fn insert(&mut self, i: usize) {
        debug_assert!(i < self.n);
        self.words[i / 64] |= 1 << (i % 64);
    }

    /// Removes event `i`.
    #[inline]
    pub fn remove(&mut self, i: usize) {
        self.words[i / 64] &= !(1 << (i % 64));
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&w| w == 0)
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// The members in increasing order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        ones(&self.words)
    }

    /// The words of the set, 64 events each.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Union.
    pub fn or(mut self, other: &EventSet) -> Self {
        self.words
            .iter_mut()
            .zip(&other.words)
            .for_each(|(a, b)| *a |= b);
        self
    }

    /// Intersection.
    pub fn and(mut self, other: &EventSet) -> Self {
        self.words
            .iter_mut()
            .zip(&other.words)
            .for_each(|(a, b)| *a &= b);
        self
    }

    /// Difference.
    pub fn minus(mut self, other: &EventSet) -> Self {
        self.words
            .iter_mut()
            .zip(&other.words)
            .for_each(|(a, b)| *a &= !b);
        self
    }
}
