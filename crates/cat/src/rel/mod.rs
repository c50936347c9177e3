//! Events as small integers, sets and relations of them as rows of machine words.
//!
//! # Invariants
//! - Bits at or beyond the number of events are zero, so equality of values is equality of words.
//! - This module is a leaf and knows no memory model.

mod relation;
mod set;

pub use relation::Rel;
pub(crate) use relation::first_common;
pub use set::EventSet;

/// Index of an event within its skeleton.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(pub u16);

impl EventId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// From an index.
    ///
    /// # Panics
    /// If the index does not fit; a skeleton never has that many events.
    pub fn new(index: usize) -> Self {
        EventId(u16::try_from(index).expect("skeletons have at most MAX_EVENTS events"))
    }
}

/// The positions of the set bits of a row of words, in increasing order.
pub fn ones(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(i, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let bit = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            Some(i * 64 + bit)
        })
    })
}

#[cfg(test)]
mod tests;
