//! Sets of events as bits, and relations as rows of them.

use smallvec::{SmallVec, smallvec};

/// A set of small numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bits(SmallVec<[u64; 2]>);

impl Bits {
    pub(super) fn has(&self, i: usize) -> bool {
        self.0.get(i / 64).is_some_and(|w| w >> (i % 64) & 1 != 0)
    }

    pub(super) fn insert(&mut self, i: usize) {
        if self.0.len() <= i / 64 {
            self.0.resize(i / 64 + 1, 0);
        }
        self.0[i / 64] |= 1 << (i % 64);
    }

    pub(super) fn join(&mut self, other: &Bits) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    /// Whether the two have something in common.
    pub(super) fn meets(&self, other: &Bits) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(at, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest.wrapping_sub(1);
                (bit < 64).then_some(at * 64 + bit)
            })
        })
    }

    /// Without the number `gone`; larger ones move down by one.
    pub(super) fn without(&self, gone: usize) -> Bits {
        let mut out = Bits::default();
        self.iter().filter(|&i| i != gone).for_each(|i| out.insert(i - usize::from(i > gone)));
        out
    }
}

/// A relation over the numbers below the number of its rows.
#[derive(Clone, Debug)]
pub(super) struct Relation(Vec<Bits>);

impl Relation {
    pub(super) fn from_fn(n: usize, holds: impl Fn(usize, usize) -> bool) -> Relation {
        let mut rows: Vec<Bits> = vec![Bits(smallvec![0; n.div_ceil(64)]); n];
        for (a, row) in rows.iter_mut().enumerate() {
            (0..n).filter(|&b| holds(a, b)).for_each(|b| row.insert(b));
        }
        Relation(rows)
    }

    pub(super) fn is_acyclic(&self) -> bool {
        // 0: not visited, 1: on the path, 2: done.
        fn visit(rows: &[Bits], state: &mut [u8], a: usize) -> bool {
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
        let mut set = Bits::default();
        [0, 3, 64, 200].iter().for_each(|&i| set.insert(i));
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 3, 64, 200]);
        assert_eq!(set.without(3).iter().collect::<Vec<_>>(), [0, 63, 199]);
        assert!(set.has(200) && !set.has(201) && !set.has(1_000));
    }

    #[test]
    fn relations_show_their_cycles() {
        assert!(Relation::from_fn(70, |a, b| a + 1 == b).is_acyclic());
        assert!(!Relation::from_fn(70, |a, b| (a + 1) % 70 == b).is_acyclic());
        assert!(!Relation::from_fn(70, |a, b| a == 69 && b == 69).is_acyclic());
    }

    #[test]
    fn sets_meet_in_what_both_have() {
        let set = |list: &[usize]| {
            let mut set = Bits::default();
            list.iter().for_each(|&i| set.insert(i));
            set
        };
        assert!(set(&[3, 200]).meets(&set(&[200])));
        assert!(!set(&[3, 200]).meets(&set(&[2, 64])) && !set(&[3]).meets(&Bits::default()));
    }
}
