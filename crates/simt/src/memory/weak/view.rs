//! Views: the knowledge of a thread, as sets of writes per location.
//!
//! An entry lists writes of one location. If they are *known*, each of them, or a strong read that
//! observed it, is base-causality before the next event of the view's owner. If they are a *token*,
//! such a read has read them before their commit. The entry carries the virtual address of that
//! write or read, and a [`PathTag`]: the proxies that the path from there has crossed.
//!
//! # Invariants
//! - Entries are sorted by key, and no entry is empty: equal views are equal values.

use std::rc::Rc;

use super::tags::PathTag;

/// A set of writes of one location, by slot.
pub(super) type WriteSet = u128;

/// The key of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ViewKey {
    pub(super) loc: u16,
    pub(super) va: u16,
    pub(super) tag: PathTag,
    pub(super) token: bool,
}

/// Some writes under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ViewEntry {
    pub(super) key: ViewKey,
    pub(super) writes: WriteSet,
}

/// The knowledge of a thread or of a pattern. Cheap to copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct WriteView(Rc<Vec<ViewEntry>>);

impl WriteView {
    pub(super) fn entries(&self) -> &[ViewEntry] {
        &self.0
    }

    /// Adds writes under a key.
    pub(super) fn add(&mut self, key: ViewKey, writes: WriteSet) {
        match self.0.binary_search_by(|e| e.key.cmp(&key)) {
            Ok(at) if self.0[at].writes & writes == writes => {}
            Ok(at) => Rc::make_mut(&mut self.0)[at].writes |= writes,
            Err(at) => Rc::make_mut(&mut self.0).insert(at, ViewEntry { key, writes }),
        }
    }

    /// Whether `other` contains every entry.
    pub(super) fn is_within(&self, other: &WriteView) -> bool {
        if Rc::ptr_eq(&self.0, &other.0) {
            return true;
        }
        let mut rest = other.0.iter();
        self.0.iter().all(|e| {
            rest.by_ref()
                .find(|o| o.key >= e.key)
                .is_some_and(|o| o.key == e.key && e.writes & !o.writes == 0)
        })
    }

    /// Adds all entries of `other`.
    pub(super) fn join(&mut self, other: &WriteView) {
        if self.0.is_empty() {
            *self = other.clone();
        } else if !other.is_within(self) {
            let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
            let mut both = Vec::with_capacity(self.0.len() + other.0.len());
            loop {
                match (a.peek(), b.peek()) {
                    (Some(x), Some(y)) if x.key == y.key => {
                        both.push(ViewEntry {
                            key: x.key,
                            writes: x.writes | y.writes,
                        });
                        a.next();
                        b.next();
                    }
                    (Some(x), Some(y)) if x.key < y.key => both.extend(a.next()),
                    (Some(_), None) => both.extend(a.next()),
                    (_, Some(_)) => both.extend(b.next()),
                    (None, None) => break,
                }
            }
            self.0 = Rc::new(both);
        }
    }

    /// Replaces the writes of every entry; removes entries that become empty.
    pub(super) fn update(&mut self, new: impl Fn(&ViewKey, WriteSet) -> WriteSet) {
        if self.0.iter().any(|e| new(&e.key, e.writes) != e.writes) {
            let entries = Rc::make_mut(&mut self.0);
            entries
                .iter_mut()
                .for_each(|e| e.writes = new(&e.key, e.writes));
            entries.retain(|e| e.writes != 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(loc: u16) -> ViewKey {
        ViewKey {
            loc,
            va: loc,
            tag: PathTag::Generic,
            token: false,
        }
    }

    fn view(entries: &[(u16, WriteSet)]) -> WriteView {
        let mut v = WriteView::default();
        entries
            .iter()
            .for_each(|&(loc, writes)| v.add(key(loc), writes));
        v
    }

    #[test]
    fn joining_is_union() {
        let lists: [&[(u16, WriteSet)]; 6] = [
            &[],
            &[(0, 1)],
            &[(1, 2)],
            &[(0, 3), (2, 1)],
            &[(0, 4), (1, 2), (2, 1)],
            &[(1, 1), (3, 1)],
        ];
        for a in lists {
            for b in lists {
                let mut joined = view(a);
                joined.join(&view(b));
                let both: Vec<_> = a.iter().chain(b).copied().collect();
                assert_eq!(joined, view(&both), "{a:?} {b:?}");
                assert!(view(a).is_within(&joined) && view(b).is_within(&joined));
                assert_eq!(joined.is_within(&view(a)), joined == view(a), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn empty_entries_go() {
        let mut v = view(&[(0, 3), (1, 1)]);
        v.update(|k, w| if k.loc == 0 { w & 1 } else { 0 });
        assert_eq!(v, view(&[(0, 1)]));
    }
}
