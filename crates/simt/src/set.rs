//! Sets of small numbers as bits, and relations as rows of them.
//!
//! # Invariants
//! - The last word of a set built by insertion is not 0: equal sets are equal values.

use smallvec::{SmallVec, smallvec};

/// The numbers of the bits of a word.
pub(super) fn bits(word: impl Into<u128>) -> impl Iterator<Item = usize> {
    let mut word: u128 = word.into();
    std::iter::from_fn(move || {
        (word != 0).then(|| {
            let bit = word.trailing_zeros() as usize;
            word &= word - 1;
            bit
        })
    })
}

/// A set of small numbers: of threads, of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Set(SmallVec<[u64; 2]>);

impl Set {
    /// Whether the set contains a number.
    pub(super) fn has(&self, i: usize) -> bool {
        self.0
            .get(i / 64)
            .is_some_and(|word| word >> (i % 64) & 1 != 0)
    }

    /// Adds a number.
    pub(super) fn insert(&mut self, i: usize) {
        if self.0.len() <= i / 64 {
            self.0.resize(i / 64 + 1, 0);
        }
        self.0[i / 64] |= 1 << (i % 64);
    }

    /// Adds all numbers of another set.
    pub(super) fn join(&mut self, other: &Set) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    /// Whether the two sets have a common number.
    pub(super) fn meets(&self, other: &Set) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// The number of elements.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The elements, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0
            .iter()
            .enumerate()
            .flat_map(|(i, &word)| bits(word).map(move |bit| i * 64 + bit))
    }
}

impl FromIterator<usize> for Set {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Set {
        let mut set = Set::default();
        numbers.into_iter().for_each(|i| set.insert(i));
        set
    }
}

/// A relation over the numbers below the number of its rows.
#[derive(Clone, Debug)]
pub(super) struct BitMatrix(Vec<Set>);

impl BitMatrix {
    pub(super) fn from_fn(n: usize, holds: impl Fn(usize, usize) -> bool) -> BitMatrix {
        BitMatrix(
            (0..n)
                .map(|a| {
                    let mut row = Set(smallvec![0; n.div_ceil(64)]);
                    (0..n).filter(|&b| holds(a, b)).for_each(|b| row.insert(b));
                    row
                })
                .collect(),
        )
    }

    pub(super) fn is_acyclic(&self) -> bool {
        // 0: not visited, 1: on the path, 2: done.
        fn visit(rows: &[Set], state: &mut [u8], a: usize) -> bool {
            state[a] = 1;
            let fine = rows[a].iter().all(|b| match state[b] {
                0 => visit(rows, state, b),
                mark => mark == 2,
            });
            state[a] = 2;
            fine
        }
        let mut state = vec![0; self.0.len()];
        (0..self.0.len()).all(|a| state[a] != 0 || visit(&self.0, &mut state, a))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_was_put_in() {
        let set: Set = [3, 64, 200, 3, 0].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 3, 64, 200]);
        assert_eq!(
            (set.len(), set.has(64), set.has(65), set.has(5000)),
            (4, true, false, false)
        );
        assert!(!set.is_empty() && Set::default().is_empty());
    }

    #[test]
    fn sets_meet_in_what_both_have() {
        let set = |list: &[usize]| list.iter().copied().collect::<Set>();
        assert!(set(&[3, 200]).meets(&set(&[200])));
        assert!(!set(&[3, 200]).meets(&set(&[2, 64])) && !set(&[3]).meets(&Set::default()));
    }

    #[test]
    fn relations_show_their_cycles() {
        assert!(BitMatrix::from_fn(70, |a, b| a + 1 == b).is_acyclic());
        assert!(!BitMatrix::from_fn(70, |a, b| (a + 1) % 70 == b).is_acyclic());
        assert!(!BitMatrix::from_fn(70, |a, b| a == 69 && b == 69).is_acyclic());
    }
}
