//! Commits accesses: the halves of reads, writes and atomics, in program order of their thread.
//!
//! Every rule names the model's axiom that it implements. `K` is the committing thread's view.

use std::rc::Rc;

use super::tags::PathTag;
use super::tail::PendingRead;
use super::view::{ViewKey, WriteSet, WriteView};
use super::write::{PatternHead, ReadOrigin, Write};
use super::{Weak, WeakContents};
use crate::code::{Access, AccessPlace, Code};
use crate::memory::{Age, At, Context, MemoryAccess, NewValue};
use crate::record::{RunEvent, WriteId};
use crate::set::bits;
use crate::{Result, StepHalt};
use program::Scope;

impl Weak {
    /// Whether an access is morally strong with a write of its location. Both are by one thread, or
    /// strong with scopes that include each other; they use one proxy and one address. Initial
    /// writes never are.
    pub(super) fn strong_with(code: &Code, write: &Write, t: MemoryAccess) -> bool {
        let Some(u) = write.thread() else {
            return false;
        };
        let MemoryAccess {
            at: At { thread, .. },
            place,
            access,
        } = t;
        (write.va, write.part) == (place.va, access.part)
            && write.proxy == access.proxy
            && (u == thread
                || write.strong
                    && access.strong
                    && code.mutual(u, write.scope, thread, access.scope))
    }

    /// Whether coherence orders an access with a write of its location. They are morally strong,
    /// operations on one mbarrier object, or atomics that overlap in part.
    pub(super) fn coherent_with(code: &Code, write: &Write, t: MemoryAccess) -> bool {
        let alike = MemoryAccess {
            access: Access {
                part: write.part,
                ..t.access
            },
            ..t
        };
        let atomics = write.atomic && t.access.updates && Self::strong_with(code, write, alike);
        write.object && t.access.object.is_some() || atomics || Self::strong_with(code, write, t)
    }

    /// The origin of a read-modify-write's write, whose read reads from `source`.
    pub(super) fn origin(
        m: &WeakContents,
        code: &Code,
        read: MemoryAccess,
        source: usize,
    ) -> ReadOrigin {
        let from = m.locations[read.place.loc].get(source);
        ReadOrigin::From(source as u8, Self::strong_with(code, from, read))
    }

    /// Adds an entry to the thread's view and, for an agent, to its own accesses.
    pub(super) fn knows(
        &self,
        m: &mut WeakContents,
        code: &Code,
        t: MemoryAccess,
        slot: usize,
        token: bool,
    ) {
        let me = &mut m.threads[t.at.thread];
        Self::know(code, &mut me.known, t, slot, token);
        if code.agent(t.at.thread).is_some() {
            Self::know(code, &mut me.own, t, slot, token);
            if code.threads[t.at.thread].acts[t.at.instr].write().is_none() {
                Self::know(code, &mut me.own_reads, t, slot, token);
            }
        }
    }

    /// Adds the entry that a thread makes by this access.
    pub(super) fn know(
        code: &Code,
        known: &mut WriteView,
        t: MemoryAccess,
        slot: usize,
        token: bool,
    ) {
        let cta = code.cta[t.at.thread] as u16;
        let key = |tag| ViewKey {
            loc: t.place.loc as u16,
            va: t.place.va,
            tag,
            token,
        };
        known.add(key(PathTag::of(t.access.proxy, cta)), 1 << slot);
        // The thread of an access matters only at the end of a kernel, in programs with several
        // proxies.
        if !code.plain && code.program.host.is_some() {
            known.add(key(PathTag::Of(cta)), 1 << slot);
        }
    }

    /// The writes of the location in `K`, as known or as tokens, that apply to the access.
    pub(super) fn applying(
        m: &WeakContents,
        code: &Code,
        t: MemoryAccess,
        token: Option<bool>,
    ) -> WriteSet {
        let cta = code.cta[t.at.thread] as u16;
        let entries = m.threads[t.at.thread].known.entries();
        entries
            .iter()
            .filter(|e| {
                usize::from(e.key.loc) == t.place.loc
                    && token.is_none_or(|token| e.key.token == token)
                    && match t.access.map {
                        true => e.key.va == t.place.va && e.key.tag == PathTag::OfMap(cta),
                        false => e.key.tag.applies(e.key.va, t.place.va, t.access.proxy, cta),
                    }
            })
            .fold(0, |row, e| row | e.writes)
    }

    /// Whether reading that write would hide a known write from the thread (Causality, from-reads).
    pub(super) fn hides(
        &self,
        m: &WeakContents,
        place: AccessPlace,
        slot: usize,
        known: WriteSet,
    ) -> bool {
        self.rules.hidden && m.locations[place.loc].get(slot).co_after & known & !(1 << slot) != 0
    }

    /// The writes that a read-modify-write cannot follow: another one that is morally strong with
    /// it follows them already. Coherence orders the two, and the later one would come between the
    /// source and the write of the earlier one (Atomicity).
    pub(super) fn taken(
        &self,
        m: &WeakContents,
        code: &Code,
        read: MemoryAccess,
        write: MemoryAccess,
        new: NewValue<'_>,
    ) -> WriteSet {
        let rules = &self.rules;
        if !(rules.atomicity && rules.strong_order && rules.observation && rules.after_known) {
            return 0;
        }
        let location = &m.locations[read.place.loc];
        let mut taken = 0;
        for (slot, other) in location.live() {
            let ReadOrigin::From(source, _) = other.origin else {
                continue;
            };
            let source = usize::from(source);
            let from = location.get(source);
            let is_before = from.thread().is_none() || Self::strong_with(code, from, read);
            if other.committed
                && from.co_after >> slot & 1 != 0
                && is_before
                && Self::coherent_with(code, other, write)
                && new(from.value).is_some()
            {
                taken |= 1 << source;
            }
        }
        taken
    }

    /// Performs the read half; `bound` is the write to which an early bind tied it, and `taken` are
    /// writes that it cannot read. Returns the write that it reads.
    pub(super) fn read(
        &self,
        cx: &mut Context<'_>,
        m: &mut WeakContents,
        t: MemoryAccess,
        bound: Option<usize>,
        taken: WriteSet,
    ) -> Result<usize> {
        let (code, MemoryAccess { at, place, access }) = (cx.code, t);
        let known = Self::applying(m, code, t, Some(false));
        let slot = match bound {
            Some(slot) if self.hides(m, place, slot, known) => return Err(StepHalt::Refused),
            Some(slot) => slot,
            None => {
                let later = |w: &Write| {
                    !w.committed
                        && w.thread() == Some(at.thread)
                        && w.va == place.va
                        && w.proxy == access.proxy
                };
                let live = m.locations[place.loc].live();
                let live = live.filter(|(i, _)| taken >> i & 1 == 0);
                let candidates =
                    live.filter(|(i, w)| !later(w) && !self.hides(m, place, *i, known));
                cx.pick(&candidates.map(|(i, _)| i).collect::<Vec<_>>())?
            }
        };
        if self.rules.never_before {
            m.locations[place.loc].get_mut(slot).never |= known & !(1 << slot);
        }
        let write = m.locations[place.loc].get_mut(slot);
        let strong = Self::strong_with(code, write, t);
        // Observation order: later events are causally after the write.
        if strong && self.rules.observation {
            self.knows(m, code, t, slot, false);
            let siblings = if self.rules.wholes {
                m.siblings(place.loc, slot)
            } else {
                Vec::new()
            };
            for (place, slot) in siblings {
                self.knows(m, code, MemoryAccess { place, ..t }, slot, false);
            }
        }
        let write = m.locations[place.loc].get_mut(slot);
        if !write.committed {
            // Reads-from against causality: the write must not turn out to come causally after this
            // read.
            write.read_early = true;
            let own = write.thread() == Some(at.thread)
                && write.va == place.va
                && write.proxy == access.proxy;
            if own && self.rules.tokens {
                return Err(StepHalt::Refused);
            }
            if self.rules.tokens {
                self.knows(m, code, t, slot, true);
            }
        }
        let write = m.locations[place.loc].get(slot);
        let (value, source) = (write.value, write.source);
        let from_strong = write.strong;
        let patterns = access.object.is_none() && !(access.red && self.rules.reductions);
        if strong && access.strong && from_strong && patterns {
            m.pend(
                at.thread,
                place.va,
                PendingRead::Write(place.loc as u16, slot as u8),
            );
        }
        if access.acquire && !(access.red && self.rules.reductions) {
            self.tail(m, code, at.thread, access.scope, Some(place.va))?;
        }
        self.done(m, code, t, (false, slot))?;
        cx.log.note(RunEvent::Read {
            thread: at.thread,
            instr: at.instr,
            loc: place.loc,
            source,
            value,
        });
        Ok(slot)
    }

    /// Makes a write visible.
    pub(super) fn publish(
        &self,
        cx: &mut Context<'_>,
        m: &mut WeakContents,
        t: MemoryAccess,
        value: i64,
        origin: ReadOrigin,
    ) -> Result<usize> {
        let (code, MemoryAccess { at, place, access }) = (cx.code, t);
        let number = m.threads[at.thread].writes;
        m.threads[at.thread].writes += 1;
        let (
            va,
            Access {
                proxy,
                strong,
                scope,
                ..
            },
        ) = (place.va, access);
        let object = access.object.is_some();
        let write = Write {
            va,
            proxy,
            strong,
            scope,
            origin,
            object,
            part: access.part,
            atomic: access.updates,
            ..Write::new(WriteId::Write(at.thread, number), value)
        };
        cx.log.note(RunEvent::Write {
            source: write.source,
            instr: at.instr,
            loc: place.loc,
            value,
        });
        m.locations[place.loc].insert(write, |other| Self::coherent_with(code, other, t))
    }

    /// Commits a visible write.
    pub(super) fn commit(
        &self,
        cx: &mut Context<'_>,
        m: &mut WeakContents,
        t: MemoryAccess,
        slot: usize,
    ) -> Result {
        self.comes(cx, m, t, slot)?;
        if self.several {
            self.as_wholes(cx, m)?;
        }
        self.hands_on(m, cx.code, t, slot)
    }

    /// A write has its turn: fixes its place in coherence order.
    pub(super) fn comes(
        &self,
        cx: &mut Context<'_>,
        m: &mut WeakContents,
        t: MemoryAccess,
        slot: usize,
    ) -> Result {
        let (code, MemoryAccess { at, place, .. }) = (cx.code, t);
        let either = Self::applying(m, code, t, None);
        if self.rules.tokens && either >> slot & 1 != 0 {
            return Err(StepHalt::Refused);
        }
        let known = Self::applying(m, code, t, Some(false));
        let location = &mut m.locations[place.loc];
        // Coherence: causality order of writes.
        if self.rules.after_known {
            for k in bits(known & !(1 << slot)) {
                location.add_co(k, slot, self.rules.atomicity)?;
            }
        }
        // Coherence order relates morally strong writes in one direction or the other.
        if self.rules.strong_order {
            for other in bits(location.get(slot).ms) {
                let ordered = location.get(slot).co_after >> other & 1 != 0
                    || location.get(other).co_after >> slot & 1 != 0;
                if !location.get(other).committed || ordered {
                    continue;
                }
                let (a, b) = if cx.chooser.choose(2) == 0 {
                    (other, slot)
                } else {
                    (slot, other)
                };
                location.add_co(a, b, self.rules.atomicity)?;
            }
        }
        let write = location.get(slot);
        if write.co_after & location.sealed != 0
            || write.co_after & location.sealed_ms & write.ms != 0
        {
            return Err(StepHalt::Refused);
        }
        cx.ages(write.co_after != 0, Age::Old);
        let write = location.get_mut(slot);
        write.committed = true;
        let source = write.source;
        for before in bits(location.co_before(slot)) {
            cx.log.note(RunEvent::After(
                place.loc,
                location.get(before).source,
                source,
            ));
        }
        for after in bits(location.get(slot).co_after) {
            cx.log.note(RunEvent::After(
                place.loc,
                source,
                location.get(after).source,
            ));
        }
        cx.log.note(RunEvent::Commit(source));
        if self.early != crate::Early::None {
            m.drop_tokens(place.loc, slot);
        }
        m.early.had_turn(at);
        self.knows(m, code, t, slot, false);
        Ok(())
    }

    /// The handover of a write that has had its turn.
    pub(super) fn hands_on(
        &self,
        m: &mut WeakContents,
        code: &Code,
        t: MemoryAccess,
        slot: usize,
    ) -> Result {
        let MemoryAccess { at, place, access } = t;
        let write = m.locations[place.loc].get(slot);
        let (strong, origin) = (write.strong, write.origin);
        let me = &mut m.threads[at.thread];
        if let Some(does) = access.object {
            self.on_object(m, code, t, slot, origin, does);
            return self.done(m, code, t, (true, slot));
        }
        if access.release {
            let known = me.known.clone();
            me.release_writes.insert((place.va, access.scope), known);
        }
        let mut heads: Vec<PatternHead> = Vec::new();
        if strong {
            let thread = at.thread as u16;
            let fences = me
                .release_fences
                .iter()
                .filter(|_| self.rules.release_fence)
                .map(|(s, v)| (*s, v));
            let writes = me
                .release_writes
                .iter()
                .filter(|((va, _), _)| *va == place.va);
            // Without the rule, a release write heads only its own pattern.
            let writes = writes.filter(|((_, s), _)| {
                self.rules.release_write || access.release && *s == access.scope
            });
            let all = fences.chain(writes.map(|((_, s), v)| (*s, v)));
            heads.extend(all.map(|(scope, view)| PatternHead {
                thread,
                scope,
                view: view.clone(),
            }));
            if me.made_known != WriteView::default() {
                heads.push(PatternHead {
                    thread,
                    scope: Scope::Cluster,
                    view: me.made_known.clone(),
                });
            }
        }
        let write = m.locations[place.loc].get_mut(slot);
        write.heads = Rc::new(heads);
        write.flat = matches!(origin, ReadOrigin::None);
        if !self.rules.chains {
            write.flat = true;
        }
        m.flatten(place.loc);
        self.done(m, code, t, (true, slot))
    }
}
