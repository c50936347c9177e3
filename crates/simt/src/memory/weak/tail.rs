//! Acquire patterns: a thread takes over the knowledge that release patterns attached to the writes
//! that it has read.

use std::rc::Rc;

use super::view::WriteView;
use super::write::{PatternHead, ReadOrigin};
use super::{Weak, WeakContents};
use crate::code::Code;
use crate::{Result, StepHalt};
use program::Scope;

/// A strong read that a later acquire may turn into an acquire pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum PendingRead {
    /// The write read: location and slot.
    Write(u16, u8),
    /// A release pattern that the read completes; only the acquire is missing.
    Head(PatternHead),
}

impl WeakContents {
    /// Records a strong read.
    pub(super) fn pend(&mut self, thread: usize, va: u16, what: PendingRead) {
        let mut new = vec![what];
        if let [PendingRead::Write(loc, slot)] = new[..] {
            let write = self.locations[usize::from(loc)].get(usize::from(slot));
            if write.committed && write.flat {
                new = write.heads.iter().cloned().map(PendingRead::Head).collect();
            }
        }
        let me = &mut self.threads[thread];
        for p in new {
            let entry = (va, p);
            let beaten = match &entry.1 {
                PendingRead::Head(h) => !me.agent && h.view.is_within(&me.known),
                PendingRead::Write(..) => false,
            };
            if !beaten && !me.pending.contains(&entry) {
                me.pending.push(entry);
            }
        }
    }

    /// Copies heads to atomics whose source has all of its heads.
    pub(super) fn flatten(&mut self, loc: usize) {
        let location = &mut self.locations[loc];
        loop {
            let ready = location.live().find_map(|(i, w)| {
                if w.flat || !w.committed {
                    return None;
                }
                match w.origin {
                    ReadOrigin::From(s, strong) => {
                        let source = location.get(usize::from(s));
                        (source.thread().is_none() || source.committed && source.flat)
                            .then(|| (i, strong.then(|| source.heads.clone())))
                    }
                    ReadOrigin::None | ReadOrigin::Gone => Some((i, None)),
                    ReadOrigin::Unbound => None,
                }
            });
            let Some((slot, heads)) = ready else { return };
            let write = location.get_mut(slot);
            if let Some(heads) = heads {
                let own = Rc::make_mut(&mut write.heads);
                for h in heads.iter() {
                    if !own.contains(h) {
                        own.push(h.clone());
                    }
                }
            }
            write.flat = true;
        }
    }
}

impl Weak {
    /// Completes acquire patterns: for reads of that address, or for a fence of all reads.
    ///
    /// # Errors
    /// Blocked, if it synchronizes with a release whose turn has not come; then nothing has
    /// changed.
    pub(super) fn tail(
        &self,
        m: &mut WeakContents,
        code: &Code,
        thread: usize,
        scope: Scope,
        va: Option<u16>,
    ) -> Result {
        if !self.rules.synchronization {
            return Ok(());
        }
        let joins = |t: usize, s: Scope| {
            !self.rules.scopes || t == thread || code.mutual(t, s, thread, scope)
        };
        let mut gained: Vec<WriteView> = Vec::new();
        let mut take = |h: &PatternHead| {
            if joins(usize::from(h.thread), h.scope) {
                gained.push(h.view.clone());
            }
        };
        for (_, pending) in m.threads[thread]
            .pending
            .iter()
            .filter(|p| va.is_none_or(|va| p.0 == va))
        {
            let (loc, mut slot) = match pending {
                PendingRead::Head(h) => {
                    take(h);
                    continue;
                }
                PendingRead::Write(loc, slot) => (usize::from(*loc), usize::from(*slot)),
            };
            // Follows the atomics that the write continues. Exchanges that were published early can
            // form a ring.
            let mut visited = 0u128;
            while visited >> slot & 1 == 0 {
                visited |= 1 << slot;
                let write = m.locations[loc].get(slot);
                if write.committed {
                    write.heads.iter().for_each(&mut take);
                    if write.flat {
                        break;
                    }
                } else {
                    self.uncommitted(m, loc, slot, &joins, &mut take)?;
                }
                match write.origin {
                    ReadOrigin::From(source, true) => slot = usize::from(source),
                    ReadOrigin::Unbound if self.rules.waiting => return Err(StepHalt::Blocked),
                    _ => break,
                }
            }
        }
        let known = &mut m.threads[thread].known;
        gained.iter().for_each(|v| known.join(v));
        Ok(())
    }

    /// The heads that a write has before its commit. Blocked, if further relevant heads are to
    /// come.
    fn uncommitted(
        &self,
        m: &WeakContents,
        loc: usize,
        slot: usize,
        joins: &dyn Fn(usize, Scope) -> bool,
        take: &mut dyn FnMut(&PatternHead),
    ) -> Result {
        let write = m.locations[loc].get(slot);
        let Some(u) = write.thread() else {
            return Ok(());
        };
        if self.rules.waiting && Self::releases_to_come(m, loc, slot).any(|s| joins(u, s)) {
            return Err(StepHalt::Blocked);
        }
        let them = &m.threads[u];
        for (scope, view) in &them.release_fences {
            take(&PatternHead {
                thread: u as u16,
                scope: *scope,
                view: view.clone(),
            });
        }
        for ((_, scope), view) in them
            .release_writes
            .iter()
            .filter(|((va, _), _)| *va == write.va)
        {
            take(&PatternHead {
                thread: u as u16,
                scope: *scope,
                view: view.clone(),
            });
        }
        Ok(())
    }
}
