//! Sets of threads.
//!
//! # Invariants
//! - The last word of a set is not 0: equal sets are equal values.

use smallvec::SmallVec;

/// A set of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Threads(SmallVec<[u64; 1]>);

impl Threads {
    /// Whether a thread is in it.
    pub(super) fn has(&self, t: usize) -> bool {
        self.0.get(t / 64).is_some_and(|word| word >> (t % 64) & 1 != 0)
    }

    /// Adds a thread.
    pub(super) fn insert(&mut self, t: usize) {
        if self.0.len() <= t / 64 {
            self.0.resize(t / 64 + 1, 0);
        }
        self.0[t / 64] |= 1 << (t % 64);
    }

    /// How many threads are in it.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether it has none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its threads, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(i, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    i * 64 + bit
                })
            })
        })
    }
}

impl FromIterator<usize> for Threads {
    fn from_iter<I: IntoIterator<Item = usize>>(threads: I) -> Threads {
        let mut set = Threads::default();
        threads.into_iter().for_each(|t| set.insert(t));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_what_was_put_in_and_not_taken_out() {
        let set: Threads = [3, 64, 200, 3].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 64, 200]);
        assert_eq!((set.len(), set.has(64), set.has(65), set.has(5000)), (3, true, false, false));
        assert!(!set.is_empty() && Threads::default().is_empty());
    }
}
