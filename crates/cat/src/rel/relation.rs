//! Relations on events: one row of words per event.

use super::{EventSet, ones};

/// A binary relation on a fixed number of events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rel {
    n: usize,
    width: usize,
    words: Vec<u64>,
}

impl Rel {
    /// The empty relation on `n` events.
    pub fn empty(n: usize) -> Self {
        let width = n.div_ceil(64);
        Rel { n, width, words: vec![0; n * width] }
    }

    /// `{(i, i) | i ∈ set}`.
    pub fn identity_on(set: &EventSet) -> Self {
        let mut rel = Rel::empty(set.universe_len());
        for i in set.iter() {
            rel.insert(i, i);
        }
        rel
    }

    /// `a × b`.
    pub fn product(a: &EventSet, b: &EventSet) -> Self {
        let mut rel = Rel::empty(a.universe_len());
        for i in a.iter() {
            rel.row_mut(i).copy_from_slice(b.words());
        }
        rel
    }

    /// The pairs for which `f` holds.
    pub fn from_fn(n: usize, mut f: impl FnMut(usize, usize) -> bool) -> Self {
        let mut rel = Rel::empty(n);
        for i in 0..n {
            for j in 0..n {
                if f(i, j) {
                    rel.insert(i, j);
                }
            }
        }
        rel
    }

    /// The given pairs.
    pub fn from_pairs(n: usize, pairs: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut rel = Rel::empty(n);
        for (i, j) in pairs {
            rel.insert(i, j);
        }
        rel
    }

    /// Number of events.
    pub fn universe_len(&self) -> usize {
        self.n
    }

    /// Whether `(i, j)` is in it.
    #[inline]
    pub fn has(&self, i: usize, j: usize) -> bool {
        self.words[i * self.width + j / 64] >> (j % 64) & 1 != 0
    }

    /// Puts `(i, j)` in.
    #[inline]
    pub fn insert(&mut self, i: usize, j: usize) {
        debug_assert!(i < self.n && j < self.n);
        self.words[i * self.width + j / 64] |= 1 << (j % 64);
    }

    /// Takes `(i, j)` out.
    #[inline]
    pub fn remove(&mut self, i: usize, j: usize) {
        self.words[i * self.width + j / 64] &= !(1 << (j % 64));
    }

    /// The successors of `i`, as words.
    #[inline]
    pub fn row(&self, i: usize) -> &[u64] {
        &self.words[i * self.width..(i + 1) * self.width]
    }

    #[inline]
    fn row_mut(&mut self, i: usize) -> &mut [u64] {
        &mut self.words[i * self.width..(i + 1) * self.width]
    }

    /// The successors of `i`.
    pub fn successors(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        ones(self.row(i))
    }

    /// All pairs in lexicographic order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.n).flat_map(move |i| self.successors(i).map(move |j| (i, j)))
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&w| w == 0)
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Union.
    pub fn or(mut self, other: &Rel) -> Self {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a |= b);
        self
    }

    /// Intersection.
    pub fn and(mut self, other: &Rel) -> Self {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a &= b);
        self
    }

    /// Difference.
    pub fn minus(mut self, other: &Rel) -> Self {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a &= !b);
        self
    }

    /// Whether every pair of `self` is in `other`.
    pub fn is_subset(&self, other: &Rel) -> bool {
        self.words.iter().zip(&other.words).all(|(a, b)| a & !b == 0)
    }

    /// The pairs whose ends are both in `set`.
    pub fn restricted(mut self, set: &EventSet) -> Self {
        for i in 0..self.n {
            let row = &mut self.words[i * self.width..(i + 1) * self.width];
            if set.has(i) {
                row.iter_mut().zip(set.words()).for_each(|(a, b)| *a &= b);
            } else {
                row.fill(0);
            }
        }
        self
    }

    /// `self ; other`, through middle events in `middle` only.
    pub fn seq(&self, other: &Rel, middle: &EventSet) -> Rel {
        let mut out = Rel::empty(self.n);
        for i in 0..self.n {
            for word in 0..self.width {
                let mut rest = self.words[i * self.width + word] & middle.words()[word];
                while rest != 0 {
                    let k = word * 64 + rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    let (from, to) = (k * self.width, i * self.width);
                    for w in 0..self.width {
                        out.words[to + w] |= other.words[from + w];
                    }
                }
            }
        }
        out
    }

    /// The converse.
    pub fn inverse(&self) -> Rel {
        let mut out = Rel::empty(self.n);
        for (i, j) in self.iter() {
            out.insert(j, i);
        }
        out
    }

    /// Transitive closure, through middle events in `middle` only (Warshall).
    pub fn plus(mut self, middle: &EventSet) -> Rel {
        for k in middle.iter() {
            let row_k: smallvec::SmallVec<[u64; 2]> = smallvec::SmallVec::from_slice(self.row(k));
            if row_k.iter().all(|&w| w == 0) {
                continue;
            }
            for i in 0..self.n {
                if self.has(i, k) {
                    self.row_mut(i).iter_mut().zip(&row_k).for_each(|(a, b)| *a |= b);
                }
            }
        }
        self
    }

    /// Events with a successor in `among`.
    pub fn domain(&self, among: &EventSet) -> EventSet {
        let mut set = EventSet::empty(self.n);
        for i in 0..self.n {
            if self.row(i).iter().zip(among.words()).any(|(a, b)| a & b != 0) {
                set.insert(i);
            }
        }
        set
    }

    /// Events with a predecessor in `among`.
    pub fn range(&self, among: &EventSet) -> EventSet {
        let mut set = EventSet::empty(self.n);
        for i in among.iter() {
            set.words_mut().iter_mut().zip(self.row(i)).for_each(|(a, b)| *a |= b);
        }
        set
    }

    /// Whether some event of `among` is related to itself.
    pub fn has_loop(&self, among: &EventSet) -> bool {
        among.iter().any(|i| self.has(i, i))
    }

    /// Whether it has a cycle among the events of `among`: repeatedly drops events without successors.
    pub fn has_cycle(&self, among: &EventSet) -> bool {
        let mut rest = among.clone();
        loop {
            let mut changed = false;
            for i in 0..self.n {
                if rest.has(i) && self.row(i).iter().zip(rest.words()).all(|(a, b)| a & b == 0) {
                    rest.remove(i);
                    changed = true;
                }
            }
            if rest.is_empty() {
                return false;
            }
            if !changed {
                return true;
            }
        }
    }
}
