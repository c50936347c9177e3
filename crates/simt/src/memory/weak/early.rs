//! Binding instructions before their turn.
//!
//! What can be bound is found by looking [ahead](super::super::ahead). Commit checks everything again; a run in which
//! something bound early cannot be committed counts for nothing.
//!
//! # Invariants
//! - Binds happen in an order that contains reads-from and value dependencies: no value justifies itself (No-Thin-Air).

use super::write::{Origin, Write};
use super::{Contents, Weak};
use crate::Halt;
use crate::code::{Access, Act, Code, Place};
use crate::memory::ahead::{Bound, Candidate, Look, Release, What};
use crate::memory::{At, Context};
use crate::state::Thread;
use program::Scope;

/// What an instruction was bound to before its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bind {
    /// The instruction, by the thread's clock when it has its turn.
    pub(super) clock: u32,
    /// Its location.
    pub(super) loc: usize,
    /// The slot that its read takes.
    pub(super) read: Option<usize>,
    /// The slot of its write.
    pub(super) write: Option<usize>,
    /// Releases before or at it that have not had their turn and could head a pattern through its write.
    pub(super) releases: Vec<Release>,
}

impl Weak {
    /// What a thread could bind early now.
    pub(super) fn candidates(&self, code: &Code, m: &Contents, threads: &[Thread], t: usize) -> Vec<Candidate> {
        let mine = &m.threads[t].early;
        let bound = |clock: u32| {
            let bind = mine.iter().find(|b| b.clock == clock)?;
            let read = bind.read.map(|slot| m.locations[bind.loc].get(slot).value);
            Some(Bound { read, write: bind.write.is_some() })
        };
        let (early, thread) = (self.early, &threads[t]);
        Look { code, early, t, thread, bound: &bound, binds: mine.len(), halves: true, fences: false }.candidates()
    }

    /// Binds one of the candidates.
    pub(super) fn bind(
        &self,
        cx: &mut Context<'_>,
        m: &mut Contents,
        threads: &[Thread],
        t: usize,
    ) -> Result<(), Halt> {
        let chosen = Candidate::choose(self.candidates(cx.code, m, threads, t), cx, t)?;
        let (instr, clock, place, value) = (chosen.instr, chosen.clock, chosen.place, chosen.value);
        let at = At { thread: t, instr, clock };
        let mut bind = Bind { clock, loc: place.loc, read: None, write: None, releases: chosen.releases.clone() };
        match &cx.code.threads[t].acts[instr] {
            Act::Load { access, .. } => bind.read = Some(self.source(cx, m, at, place, access)?),
            Act::Store { access, .. } => {
                let slot = self.publish(cx, m, at, place, (access, value, Origin::None))?;
                bind.write = Some(slot);
            }
            atomic @ Act::Rmw { read, write, .. } => {
                if chosen.what == What::Publish {
                    let slot = self.publish(cx, m, at, place, (write, value, Origin::Unbound))?;
                    bind.write = Some(slot);
                } else {
                    let source = self.source(cx, m, at, place, read)?;
                    bind.read = Some(source);
                    let from = m.locations[place.loc].get(source);
                    let origin = Origin::From(source as u8, Self::strong_with(cx.code, from, t, place, read));
                    if chosen.what == What::Catch {
                        let known = m.threads[t].take_bind(clock).ok_or(Halt::Refused)?;
                        let slot = known.write.ok_or(Halt::Refused)?;
                        m.locations[place.loc].get_mut(slot).origin = origin;
                        bind = Bind { read: bind.read, ..known };
                    } else {
                        let new = chosen.written(atomic, from.value)?;
                        if let Some(new) = new {
                            let slot = self.publish(cx, m, at, place, (write, new, origin))?;
                            bind.write = Some(slot);
                        }
                    }
                }
            }
            _ => return Err(Halt::Refused),
        }
        let early = &mut m.threads[t].early;
        early.push(bind);
        early.sort_by_key(|b| b.clock);
        Ok(())
    }

    /// The source of a read that is bound early.
    fn source(
        &self,
        cx: &mut Context<'_>,
        m: &mut Contents,
        at: At,
        place: Place,
        access: &Access,
    ) -> Result<usize, Halt> {
        let known = Self::applying(m, cx.code, at.thread, place, access, Some(false));
        let visible = |slot: usize, w: &Write| {
            if w.committed || w.thread() != Some(at.thread) {
                return true;
            }
            let mine = &m.threads[at.thread].early;
            let when = mine.iter().find(|b| (b.loc, b.write) == (place.loc, Some(slot))).map_or(0, |b| b.clock);
            when < at.clock || when > at.clock && (w.va, w.proxy) != (place.va, access.proxy)
        };
        let sources: Vec<usize> = m.locations[place.loc]
            .live()
            .filter(|(i, w)| visible(*i, w) && !self.hides(m, place, *i, known))
            .map(|(i, _)| i)
            .collect();
        if sources.is_empty() {
            return Err(Halt::Refused);
        }
        let slot = sources[cx.chooser.choose(sources.len())];
        let write = m.locations[place.loc].get_mut(slot);
        write.read_early |= !write.committed;
        Ok(slot)
    }

    /// Scopes of the releases that could still head a pattern through a write that was published early.
    pub(super) fn releases_to_come(&self, m: &Contents, loc: usize, slot: usize) -> Vec<Scope> {
        let binds = m.threads.iter().flat_map(|t| &t.early);
        let bind = binds.into_iter().find(|b| (b.loc, b.write) == (loc, Some(slot)));
        bind.map(|b| b.releases.iter().map(|r| r.scope).collect()).unwrap_or_default()
    }
}
