//! Binds instructions before their turn: picks sources of reads and publishes writes.

use super::write::{ReadOrigin, Write};
use super::{Weak, WeakContents};
use crate::code::Code;
use crate::memory::early::{Binding, Binds, Half};
use crate::memory::{Context, MemoryAccess};
use crate::{Early, Result};
use program::Scope;

impl Binding for Weak {
    const HALVES: bool = true;

    fn early(&self) -> Early {
        self.early
    }

    fn arrivals_release(&self) -> bool {
        false
    }

    fn may_publish(&self, _: &Code, _: usize) -> bool {
        true
    }

    fn bound(m: &WeakContents) -> &Binds {
        &m.early
    }

    fn bound_mut(m: &mut WeakContents) -> &mut Binds {
        &mut m.early
    }

    fn taken(m: &WeakContents, loc: usize, read: usize) -> i64 {
        m.locations[loc].get(read).value
    }

    fn source(&self, cx: &mut Context<'_>, m: &mut WeakContents, t: MemoryAccess) -> Result<usize> {
        let known = Self::applying(m, cx.code, t, Some(false));
        let (at, place) = (t.at, t.place);
        let visible = |slot: usize, w: &Write| {
            if w.committed || w.thread() != Some(at.thread) {
                return true;
            }
            let when = m.early.of_write(place.loc, slot).map_or(0, |b| b.clock);
            when < at.clock || when > at.clock && (w.va, w.proxy) != (place.va, t.access.proxy)
        };
        let location = &m.locations[place.loc];
        let sources = location
            .live()
            .filter(|(i, w)| visible(*i, w) && !self.hides(m, place, *i, known));
        let slot = cx.pick(&sources.map(|(i, _)| i).collect::<Vec<_>>())?;
        let write = m.locations[place.loc].get_mut(slot);
        write.read_early |= !write.committed;
        Ok(slot)
    }

    fn show(
        &self,
        cx: &mut Context<'_>,
        m: &mut WeakContents,
        t: MemoryAccess,
        value: i64,
        half: Half,
    ) -> Result<usize> {
        let origin = match half {
            Half::None => ReadOrigin::None,
            Half::Open => ReadOrigin::Unbound,
            Half::Of(read, source) => Self::origin(m, cx.code, read, source),
        };
        self.publish(cx, m, t, value, origin)
    }

    fn catch(
        &self,
        code: &Code,
        m: &mut WeakContents,
        write: usize,
        read: MemoryAccess,
        source: usize,
    ) {
        m.locations[read.place.loc].get_mut(write).origin = Self::origin(m, code, read, source);
    }
}

impl Weak {
    /// The scopes of the releases that could still head a pattern through a write that was
    /// published early.
    pub(super) fn releases_to_come(
        m: &WeakContents,
        loc: usize,
        slot: usize,
    ) -> impl Iterator<Item = Scope> {
        m.early
            .of_write(loc, slot)
            .into_iter()
            .flat_map(|b| b.releases.iter().map(|r| r.scope))
    }
}
