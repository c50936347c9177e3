//! Relations on events: one row of words per event.
//!
//! # Invariants
//! - Copies share their words until one of them changes. So both bounds of a known relation share
//!   one copy.

use std::rc::Rc;

use super::{EventSet, ones};

/// Relations on more events are closed along their order, if they have one.
const MANY: usize = 256;

/// A binary relation on a fixed number of events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rel {
    n: usize,
    width: usize,
    words: Rc<[u64]>,
}

impl Rel {
    /// The empty relation on `n` events.
    pub fn empty(n: usize) -> Self {
        let width = n.div_ceil(64);
        Rel {
            n,
            width,
            words: std::iter::repeat_n(0, n * width).collect(),
        }
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
        Rel::from_pairs(
            n,
            (0..n)
                .flat_map(|i| (0..n).map(move |j| (i, j)))
                .filter(|&(i, j)| f(i, j)),
        )
    }

    /// The given pairs.
    pub fn from_pairs(n: usize, pairs: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut rel = Rel::empty(n);
        let words = Rc::get_mut(&mut rel.words).expect("a new relation has one owner");
        for (i, j) in pairs {
            debug_assert!(i < n && j < n);
            words[i * rel.width + j / 64] |= 1 << (j % 64);
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

    /// Adds `(i, j)`.
    #[inline]
    pub fn insert(&mut self, i: usize, j: usize) {
        debug_assert!(i < self.n && j < self.n);
        Rc::make_mut(&mut self.words)[i * self.width + j / 64] |= 1 << (j % 64);
    }

    /// Removes `(i, j)`.
    #[inline]
    pub fn remove(&mut self, i: usize, j: usize) {
        Rc::make_mut(&mut self.words)[i * self.width + j / 64] &= !(1 << (j % 64));
    }

    /// The successors of `i`, as words.
    #[inline]
    pub fn row(&self, i: usize) -> &[u64] {
        &self.words[i * self.width..(i + 1) * self.width]
    }

    #[inline]
    fn row_mut(&mut self, i: usize) -> &mut [u64] {
        &mut Rc::make_mut(&mut self.words)[i * self.width..(i + 1) * self.width]
    }

    /// Adds successors of `i`, as words.
    pub(crate) fn add_to_row(&mut self, i: usize, words: impl Iterator<Item = u64>) {
        let row = self.row_mut(i).iter_mut();
        row.zip(words).for_each(|(own, more)| *own |= more);
    }

    /// Whether two relations share their words, so that a result for one is valid for the other.
    #[inline]
    pub fn is_shared(&self, other: &Rel) -> bool {
        Rc::ptr_eq(&self.words, &other.words)
    }

    /// Combines two relations word by word.
    #[inline]
    fn combined(mut self, other: &Rel, word: impl Fn(u64, u64) -> u64) -> Self {
        match Rc::get_mut(&mut self.words) {
            Some(words) => words
                .iter_mut()
                .zip(&*other.words)
                .for_each(|(a, b)| *a = word(*a, *b)),
            None => {
                self.words = self
                    .words
                    .iter()
                    .zip(&*other.words)
                    .map(|(a, b)| word(*a, *b))
                    .collect()
            }
        }
        self
    }

    /// The successors of `i`.
    pub fn successors(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        ones(self.row(i))
    }

    /// All pairs in lexicographic order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.n).flat_map(move |i| self.successors(i).map(move |j| (i, j)))
    }

    /// Whether it has no pairs.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&w| w == 0)
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Union.
    pub fn or(self, other: &Rel) -> Self {
        self.combined(other, |a, b| a | b)
    }

    /// Intersection.
    pub fn and(self, other: &Rel) -> Self {
        self.combined(other, |a, b| a & b)
    }

    /// Difference.
    pub fn minus(self, other: &Rel) -> Self {
        self.combined(other, |a, b| a & !b)
    }

    /// Whether every pair of `self` is in `other`.
    pub fn is_subset(&self, other: &Rel) -> bool {
        self.words
            .iter()
            .zip(&*other.words)
            .all(|(a, b)| a & !b == 0)
    }

    /// The pairs whose ends are both in `set`.
    pub fn restricted(mut self, set: &EventSet) -> Self {
        if set.len() == self.n {
            return self;
        }
        let words = Rc::make_mut(&mut self.words);
        for (i, row) in words.chunks_exact_mut(self.width.max(1)).enumerate() {
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
        // Most relations of a large program are empty except for a few rows.
        let mut middle = middle.clone();
        for k in 0..self.n {
            if other.row(k).iter().all(|&w| w == 0) {
                middle.remove(k);
            }
        }
        // The number of rows that each method adds.
        let used = || {
            self.words
                .chunks_exact(self.width)
                .flat_map(|row| row.iter().zip(middle.words()).map(|(a, b)| a & b))
        };
        let by_eights = || 32 * self.n + used().map(bytes_in_use).sum::<usize>();
        let out = if self.n > 256
            && used().map(|word| word.count_ones() as usize).sum::<usize>() > by_eights()
        {
            self.seq_by_eights(other, &middle)
        } else {
            self.seq_singly(other, &middle)
        };
        Rel {
            words: out.into(),
            ..*self
        }
    }

    /// Adds the successor rows of each middle event.
    fn seq_singly(&self, other: &Rel, middle: &EventSet) -> Vec<u64> {
        let mut out = vec![0; self.words.len()];
        for i in 0..self.n {
            for word in 0..self.width {
                let mut rest = self.words[i * self.width + word] & middle.words()[word];
                while rest != 0 {
                    let k = word * 64 + rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    let (from, to) = (k * self.width, i * self.width);
                    for w in 0..self.width {
                        out[to + w] |= other.words[from + w];
                    }
                }
            }
        }
        out
    }

    /// Adds the successor rows of every set of eight neighbouring middle events once. (Arlazarov,
    /// Dinic, Kronrod, Faradzhev, "On Economical Construction of the Transitive Closure of a
    /// Directed Graph", 1970.)
    fn seq_by_eights(&self, other: &Rel, middle: &EventSet) -> Vec<u64> {
        let width = self.width;
        let mut out = vec![0; self.words.len()];
        let mut sums = vec![0; 256 * width];
        for first in (0..self.n).step_by(8) {
            let eight = |row: &[u64]| (row[first / 64] >> (first % 64)) as usize & 0xff;
            let all = eight(middle.words());
            for set in (1..256).filter(|set| set & !all == 0) {
                let (others, this) = sums.split_at_mut(set * width);
                let others = &others[(set & (set - 1)) * width..];
                let last = other.row(first + set.trailing_zeros() as usize);
                for ((sum, a), b) in this.iter_mut().zip(others).zip(last) {
                    *sum = a | b;
                }
            }
            for (row, sum) in self
                .words
                .chunks_exact(width)
                .zip(out.chunks_exact_mut(width))
            {
                let set = eight(row) & all;
                if set != 0 {
                    sum.iter_mut()
                        .zip(&sums[set * width..])
                        .for_each(|(a, b)| *a |= b);
                }
            }
        }
        out
    }

    /// The converse.
    pub fn inverse(&self) -> Rel {
        Rel::from_pairs(self.n, self.iter().map(|(i, j)| (j, i)))
    }

    /// Transitive closure, through middle events in `middle` only.
    ///
    /// An order of many events is closed along itself: an event takes over the rows of those
    /// successors that no other one covers. Everything else goes by Warshall's algorithm, which
    /// takes cubic time.
    pub fn plus(self, middle: &EventSet) -> Rel {
        let ends_first = match self.n > MANY {
            true => self.ends_first(middle),
            false => None,
        };
        match ends_first {
            Some(order) => self.closed_along(middle, &order),
            None => self.closed_by_middles(middle),
        }
    }

    fn closed_along(mut self, middle: &EventSet, ends_first: &[usize]) -> Rel {
        let width = self.width;
        let words = Rc::make_mut(&mut self.words);
        let mut row = vec![0; width];
        for &i in ends_first {
            row.fill(0);
            for (at, among) in middle.words().iter().enumerate() {
                let mut open = words[i * width + at] & among & !row[at];
                while open != 0 {
                    let j = at * 64 + open.trailing_zeros() as usize;
                    let of_j = &words[j * width..(j + 1) * width];
                    row.iter_mut().zip(of_j).for_each(|(a, b)| *a |= b);
                    open &= (open - 1) & !row[at];
                }
            }
            let own = &mut words[i * width..(i + 1) * width];
            own.iter_mut().zip(&row).for_each(|(a, b)| *a |= b);
        }
        self
    }

    /// All events, each behind those events of `middle` that it reaches through `middle`; `None`:
    /// there is a cycle.
    fn ends_first(&self, middle: &EventSet) -> Option<Vec<usize>> {
        let mut left = EventSet::full(self.n);
        let mut on_path = EventSet::empty(self.n);
        let (mut path, mut order) = (Vec::new(), Vec::with_capacity(self.n));
        for root in 0..self.n {
            let mut next = left.has(root).then_some(root);
            while let Some(i) = next {
                left.remove(i);
                path.push(i);
                if middle.has(i) {
                    on_path.insert(i);
                }
                if first_common(self.row(i), on_path.words()).is_some() {
                    return None;
                }
                next = None;
                while let (None, Some(&i)) = (next, path.last()) {
                    next = self.successor(i, middle, &left);
                    if next.is_none() {
                        path.pop();
                        on_path.remove(i);
                        order.push(i);
                    }
                }
            }
        }
        Some(order)
    }

    /// The first successor of an event in both sets.
    fn successor(&self, i: usize, a: &EventSet, b: &EventSet) -> Option<usize> {
        let sets = a.words().iter().zip(b.words());
        let mut words = self.row(i).iter().zip(sets).enumerate();
        words.find_map(|(at, (row, (a, b)))| {
            let common = row & a & b;
            (common != 0).then(|| at * 64 + common.trailing_zeros() as usize)
        })
    }

    /// Transitive closure by Warshall's algorithm.
    fn closed_by_middles(mut self, middle: &EventSet) -> Rel {
        let width = self.width;
        let words = Rc::make_mut(&mut self.words);
        for k in middle.iter() {
            let row_k: smallvec::SmallVec<[u64; 2]> =
                smallvec::SmallVec::from_slice(&words[k * width..(k + 1) * width]);
            if row_k.iter().all(|&w| w == 0) {
                continue;
            }
            for row in words
                .chunks_exact_mut(width)
                .filter(|row| row[k / 64] >> (k % 64) & 1 != 0)
            {
                row.iter_mut().zip(&row_k).for_each(|(a, b)| *a |= b);
            }
        }
        self
    }

    /// Events with a successor in `among`.
    pub fn domain(&self, among: &EventSet) -> EventSet {
        let mut set = EventSet::empty(self.n);
        for i in 0..self.n {
            if self
                .row(i)
                .iter()
                .zip(among.words())
                .any(|(a, b)| a & b != 0)
            {
                set.insert(i);
            }
        }
        set
    }

    /// Events with a predecessor in `among`.
    pub fn range(&self, among: &EventSet) -> EventSet {
        let mut set = EventSet::empty(self.n);
        for i in among.iter() {
            set.words_mut()
                .iter_mut()
                .zip(self.row(i))
                .for_each(|(a, b)| *a |= b);
        }
        set
    }

    /// Whether some event of `among` is related to itself.
    pub fn has_loop(&self, among: &EventSet) -> bool {
        among.iter().any(|i| self.has(i, i))
    }

    /// Whether it has a cycle among the events of `among`. Searches depth first, visits each event
    /// once, and checks for edges back to the current path.
    pub fn has_cycle(&self, among: &EventSet) -> bool {
        let mut left = among.clone();
        let mut on_path = EventSet::empty(self.n);
        let mut path = Vec::new();
        for root in among.iter() {
            let mut next = left.has(root).then_some(root);
            while let Some(i) = next {
                left.remove(i);
                on_path.insert(i);
                path.push(i);
                if first_common(self.row(i), on_path.words()).is_some() {
                    return true;
                }
                next = None;
                while let (None, Some(&i)) = (next, path.last()) {
                    next = first_common(self.row(i), left.words());
                    if next.is_none() {
                        path.pop();
                        on_path.remove(i);
                    }
                }
            }
        }
        false
    }
}

/// The number of non-zero bytes of a word.
fn bytes_in_use(word: u64) -> usize {
    let folded = word | word >> 4;
    let folded = folded | folded >> 2;
    let folded = folded | folded >> 1;
    (folded & 0x0101_0101_0101_0101).count_ones() as usize
}

/// The first event in both rows.
pub(crate) fn first_common(a: &[u64], b: &[u64]) -> Option<usize> {
    let mut words = a.iter().zip(b).map(|(a, b)| a & b).enumerate();
    words
        .find(|word| word.1 != 0)
        .map(|(at, word)| at * 64 + word.trailing_zeros() as usize)
}
