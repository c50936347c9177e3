//! PTX's weak memory, as a machine: accesses are *bound* (a read takes its source, a write becomes
//! visible) and *committed* (all axioms are checked).
//!
//! # Rules
//! Instructions commit in program order, each when the scheduler picks its thread. So the order of
//! commits is a linear extension of base causality order, and a commit finds all its predecessors
//! committed. Reads may take old writes, and a new write may come coherence-before existing ones.
//! Reordering and non-multi-copy-atomicity need no more. Only executions with a cycle of `po`,
//! `rf`, `sc` and barriers (the load-buffering family) need binds before commit; see
//! [`early`](super::super::Early).
//!
//! | File | Rules |
//! |---|---|
//! | `write` | the partial coherence order of a location; atomicity |
//! | `view` | the knowledge of a thread: writes base-causality before its next event |
//! | `tags` | the proxies that the path from such a write has crossed |
//! | `commit` | read half and write half: causality, coherence, observation |
//! | `tail` | release and acquire patterns |
//! | `several` | operations on several cells at once |
//! | `objects` | mbarrier objects: the handover from arrivals to waits |
//! | `per_location` | program order through several proxies, and of mbarrier objects |
//! | `early` | binding before commit: see [`memory::early`](super::early) |
//! | `tidy` | normal form, dead writes, fingerprints |
//!
//! # Why it is sound
//! Take a finished run with its recorded `rf` and `co`; `sc` is the order in which fences were
//! committed. The order of commits extends base causality order:
//! - program order by construction;
//! - `fence.sc` and barriers by their rules;
//! - release and acquire, because an acquire waits for the releases that it synchronizes with.
//!
//! By induction over commits, a thread's view holds exactly the writes base-causality before its
//! next event, and those that a strong read there observed. Each comes with the proxies crossed; a
//! write may be left out if a coherence-later one under the same key is in the view. The axioms
//! follow:
//! - `commit` checks *Coherence* and *Causality*.
//! - *Fence-SC* and *Well-Formedness* hold because the order of commits is a linear order.
//! - Every insertion into coherence order checks *Atomicity*.
//! - *No-Thin-Air* holds because values are bound in an order that contains `rf` and dependencies.
//! - *SC-per-Location* follows from the others for accesses of one address and proxy; it is checked
//!   if an address is used through several.
//!
//! This is an argument on paper: the tests compare outcome sets, and the model replays every
//! reported run.
//!
//! # Limits
//! Without early binds, the machine does not show outcomes that need a cycle of `po`, `rf`, `sc`
//! and barriers. With at most `n` early binds per thread, it misses outcomes that need more binds
//! or a longer window. No bind passes a branch with unknown operands.
//!
//! # Sources
//! - PTX ISA, Memory Consistency Model; `models/ptx.cat` is its text here.
//! - Views instead of histories: J. Kang, C.-K. Hur, O. Lahav, V. Vafeiadis, D. Dreyer, "A
//!   Promising Semantics for Relaxed-Memory Concurrency", POPL 2017. The differences: coherence is
//!   a partial order, views hold sets of writes, and early writes need no certification. A run that
//!   does not commit them does not count.

mod commit;
mod early;
mod objects;
mod per_location;
mod several;
mod tags;
mod tail;
mod tidy;
mod view;
mod write;

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::rc::Rc;

use super::early::{Binding, Binds};
use super::rules::MemoryRules;
use super::{Age, At, Backend, Context, MemoryAccess, NewValue, NewValues};
use crate::code::{Code, Fence};
use crate::record::{RunEvent, WriteId};
use crate::thread::ThreadState;
use crate::{Early, Result, StepHalt};
use program::{Barrier, Scope, Tag};
use tail::PendingRead;
use view::{ViewKey, WriteSet, WriteView};
use write::{LocationWrites, ReadOrigin, Write};

/// The rules of a weak memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weak {
    pub(crate) early: Early,
    pub(crate) rules: MemoryRules,
    /// Whether to forget dead writes, so that loops come back to the same state.
    pub(crate) collect: bool,
    /// Whether some operation accesses several cells at once.
    pub(crate) several: bool,
}

/// The knowledge of a thread, and its pending patterns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Knowledge {
    /// Every write base-causality before its next event.
    known: WriteView,
    /// By scope: the view at its latest release fence.
    release_fences: BTreeMap<Scope, WriteView>,
    /// By address and scope: the view at its latest release write, including that write.
    release_writes: BTreeMap<(u16, Scope), WriteView>,
    /// Its initializations of mbarrier objects.
    inits: WriteView,
    /// The initializations before its latest `fence.mbarrier_init`.
    made_known: WriteView,
    /// Strong reads by address, which a later acquire may complete.
    pending: Vec<(u16, PendingRead)>,
    /// The number of its writes.
    writes: u32,
    /// For an agent: the entries of its accesses, and of its reads alone.
    own: WriteView,
    own_reads: WriteView,
    /// Whether it is an agent. Its strong reads count for a thread that learns of its completion,
    /// whatever the agent's other knowledge.
    agent: bool,
    /// Whether it is an agent that has ended or has not begun.
    idle: bool,
}

/// The contents of a weak memory.
#[derive(Clone, Debug)]
pub(crate) struct WeakContents {
    locations: Vec<LocationWrites>,
    threads: Vec<Knowledge>,
    /// By thread and scope: the view after its latest `fence.sc`.
    fence_sc: BTreeMap<(u16, Scope), WriteView>,
    early: Binds,
}

/// The part of the contents that one access can change.
#[derive(Debug)]
pub(crate) struct Saved {
    thread: usize,
    knowledge: Knowledge,
    location: Option<(usize, LocationWrites)>,
}

impl WeakContents {
    /// The views of all threads.
    fn views_of_threads(&mut self) -> impl Iterator<Item = &mut WriteView> {
        let of_threads = self.threads.iter_mut().flat_map(|t| {
            let pending = t.pending.iter_mut().filter_map(|p| match &mut p.1 {
                PendingRead::Head(h) => Some(&mut h.view),
                PendingRead::Write(..) => None,
            });
            [
                &mut t.known,
                &mut t.inits,
                &mut t.made_known,
                &mut t.own,
                &mut t.own_reads,
            ]
            .into_iter()
            .chain(t.release_fences.values_mut())
            .chain(t.release_writes.values_mut())
            .chain(pending)
        });
        of_threads.chain(self.fence_sc.values_mut())
    }

    /// Replaces the writes in every view.
    fn update_views(&mut self, new: impl Fn(&ViewKey, WriteSet) -> WriteSet) {
        for w in self
            .locations
            .iter_mut()
            .flat_map(|l| l.slots.iter_mut().flatten())
        {
            let changes = |v: &WriteView| {
                v.entries()
                    .iter()
                    .any(|e| new(&e.key, e.writes) != e.writes)
            };
            if w.heads.iter().any(|h| changes(&h.view)) {
                Rc::make_mut(&mut w.heads)
                    .iter_mut()
                    .for_each(|h| h.view.update(&new));
            }
            if w.arrivals.iter().any(|a| changes(&a.head.view)) {
                Rc::make_mut(&mut w.arrivals)
                    .iter_mut()
                    .for_each(|a| a.head.view.update(&new));
            }
        }
        self.views_of_threads().for_each(|v| v.update(&new));
    }

    /// A write was committed: forgets the tokens of earlier reads of it.
    fn drop_tokens(&mut self, loc: usize, slot: usize) {
        if self.has_tokens() {
            self.update_views(|k, row| {
                if k.token && usize::from(k.loc) == loc {
                    row & !(1 << slot)
                } else {
                    row
                }
            });
        }
    }

    fn has_tokens(&self) -> bool {
        self.threads
            .iter()
            .any(|t| t.known.entries().iter().any(|e| e.key.token))
    }
}

impl Backend for Weak {
    type Memory = WeakContents;
    type Carried = WriteView;
    type Saved = Saved;

    fn save(&self, m: &WeakContents, thread: usize, loc: Option<usize>) -> Saved {
        Saved {
            thread,
            knowledge: m.threads[thread].clone(),
            location: loc.map(|l| (l, m.locations[l].clone())),
        }
    }

    fn restore(&self, m: &mut WeakContents, saved: Saved) {
        m.threads[saved.thread] = saved.knowledge;
        if let Some((loc, location)) = saved.location {
            m.locations[loc] = location;
        }
    }

    fn start(&self, code: &Code) -> WeakContents {
        WeakContents {
            locations: code
                .locations
                .iter()
                .enumerate()
                .map(|(i, l)| {
                    let write = Write {
                        committed: true,
                        flat: true,
                        ..Write::new(WriteId::Initial(i), l.init)
                    };
                    LocationWrites {
                        slots: vec![Some(write)],
                        ..LocationWrites::default()
                    }
                })
                .collect(),
            threads: (0..code.threads.len())
                .map(|t| code.agent(t).is_some())
                .map(|agent| Knowledge {
                    agent,
                    idle: agent,
                    ..Knowledge::default()
                })
                .collect(),
            fence_sc: BTreeMap::new(),
            early: Binds::default(),
        }
    }

    fn load(&self, cx: &mut Context<'_>, m: &mut WeakContents, t: MemoryAccess) -> Result<i64> {
        let bound = m.early.take(t.at).and_then(|b| b.read);
        let slot = self.read(cx, m, t, bound, 0)?;
        let write = m.locations[t.place.loc].get(slot);
        cx.ages(
            write.co_after != 0,
            if t.access.strong {
                Age::Old
            } else {
                Age::Stale
            },
        );
        Ok(write.value)
    }

    fn store(
        &self,
        cx: &mut Context<'_>,
        m: &mut WeakContents,
        t: MemoryAccess,
        value: i64,
    ) -> Result {
        let slot = match m.early.take(t.at).and_then(|b| b.write) {
            // No thread has read this early write: the run that does not publish it early is the
            // same.
            Some(slot) if !m.locations[t.place.loc].get(slot).read_early => {
                return Err(StepHalt::Refused);
            }
            Some(slot) => slot,
            None => self.publish(cx, m, t, value, ReadOrigin::None)?,
        };
        self.commit(cx, m, t, slot)
    }

    fn rmw(
        &self,
        cx: &mut Context<'_>,
        m: &mut WeakContents,
        read: MemoryAccess,
        write: MemoryAccess,
        new: NewValue<'_>,
    ) -> Result<i64> {
        let bind = m.early.take(read.at);
        let taken = self.taken(m, cx.code, read, write, new);
        let source = self.read(cx, m, read, bind.as_ref().and_then(|b| b.read), taken)?;
        let from = m.locations[read.place.loc].get(source);
        let old = from.value;
        cx.ages(from.co_after != 0, Age::Old);
        let Some(value) = new(old) else {
            m.early.had_turn(read.at);
            return Ok(old);
        };
        let origin = Self::origin(m, cx.code, read, source);
        let slot = match bind.and_then(|b| b.write) {
            Some(slot) => {
                m.locations[read.place.loc].get_mut(slot).origin = origin;
                slot
            }
            None => self.publish(cx, m, write, value, origin)?,
        };
        self.commit(cx, m, write, slot)?;
        Ok(old)
    }

    fn several(
        &self,
        cx: &mut Context<'_>,
        m: &mut WeakContents,
        reads: &[MemoryAccess],
        writes: &[MemoryAccess],
        new: NewValues<'_>,
    ) -> Result<Vec<i64>> {
        self.at_once(cx, m, reads, writes, new)
    }

    fn fence(&self, cx: &mut Context<'_>, m: &mut WeakContents, at: At, fence: Fence) -> Result {
        for fence in fence.in_turn() {
            self.fence_in_turn(cx.code, m, at, fence)?;
        }
        cx.log.note(RunEvent::Fence(at.spot()));
        Ok(())
    }

    fn fence_commutes(&self, _: &WeakContents, _: usize, fence: Fence) -> bool {
        !matches!(fence, Fence::Thread { sc: true, .. })
    }

    fn arrive(
        &self,
        _: &mut Context<'_>,
        m: &mut WeakContents,
        at: At,
        barrier: &Barrier,
    ) -> Result<WriteView> {
        let me = &m.threads[at.thread];
        if !self.rules.barriers {
            return Ok(WriteView::default());
        }
        if !barrier.arrive.has(Tag::Relaxed) {
            return Ok(me.known.clone());
        }
        // A relaxed arrival hands on only the knowledge that an earlier release fence published.
        let mut view = WriteView::default();
        me.release_fences.values().for_each(|v| view.join(v));
        view.join(&me.made_known);
        Ok(view)
    }

    fn join(into: &mut WriteView, other: &WriteView) {
        into.join(other);
    }

    fn pass(&self, _: &Code, m: &mut WeakContents, at: At, carried: &WriteView) {
        m.threads[at.thread].known.join(carried);
    }

    fn hand(&self, code: &Code, m: &mut WeakContents, at: At) -> WriteView {
        let mut view = m.threads[at.thread].known.clone();
        // Adds the agent's accesses of earlier rounds.
        view.join(&m.threads[at.thread].own);
        if !code.plain && self.rules.kernels {
            tags::leave(&mut view, code.cta[at.thread] as u16);
        }
        view
    }

    fn hand_released(&self, m: &WeakContents, thread: usize, scope: Scope) -> WriteView {
        let mut view = WriteView::default();
        let fences = &m.threads[thread].release_fences;
        fences
            .iter()
            .filter(|(of, _)| **of == scope || **of == Scope::Sys)
            .for_each(|(_, v)| view.join(v));
        view
    }

    fn learn(&self, m: &mut WeakContents, thread: usize, carried: &WriteView) {
        m.threads[thread].known.join(carried);
    }

    fn tell(&self, code: &Code, m: &mut WeakContents, at: At, carried: &WriteView) {
        let mut view = carried.clone();
        if !code.plain && self.rules.kernels {
            tags::enter(&mut view, code.cta[at.thread] as u16);
        }
        m.threads[at.thread].known.join(&view);
    }

    /// The agent comes after everything that precedes the instruction.
    fn begin(&self, m: &mut WeakContents, owner: usize, agent: usize) {
        let Knowledge {
            known,
            release_fences,
            made_known,
            ..
        } = m.threads[owner].clone();
        let it = &mut m.threads[agent];
        *it = Knowledge {
            known,
            release_fences,
            made_known,
            writes: it.writes,
            ..std::mem::take(it)
        };
        it.pending.clear();
        it.release_writes.clear();
        it.idle = false;
    }

    fn gather(&self, m: &mut WeakContents, of: &[usize], agent: usize) {
        for &a in of {
            let Knowledge { own, pending, .. } = m.threads[a].clone();
            m.threads[agent].own.join(&own);
            pending.into_iter().for_each(|(va, p)| m.pend(agent, va, p));
        }
    }

    fn ended(&self, m: &mut WeakContents, agent: usize) {
        m.threads[agent].idle = true;
    }

    /// Only the agent's accesses come before the thread's next event.
    fn complete(&self, m: &mut WeakContents, thread: usize, agent: usize, reads: bool) {
        let it = &m.threads[agent];
        let mut view = if reads {
            it.own_reads.clone()
        } else {
            it.own.clone()
        };
        tags::complete(&mut view);
        let pending = it.pending.clone();
        m.threads[thread].known.join(&view);
        pending
            .into_iter()
            .for_each(|(va, p)| m.pend(thread, va, p));
    }

    fn binds(&self) -> bool {
        self.early != Early::None
    }

    fn may_bind_early(
        &self,
        code: &Code,
        m: &WeakContents,
        threads: &[ThreadState],
        thread: usize,
    ) -> bool {
        self.early != Early::None && !self.candidates(code, m, threads, thread).is_empty()
    }

    fn bind_early(
        &self,
        cx: &mut Context<'_>,
        m: &mut WeakContents,
        all: &[ThreadState],
        t: usize,
    ) -> Result {
        self.bind(cx, m, all, t)
    }

    fn is_pending(&self, m: &WeakContents) -> bool {
        !m.early.is_empty()
    }

    /// Each cell of an operation is a separate choice.
    fn may_refuse(&self) -> bool {
        self.several
    }

    fn tidy(
        &self,
        code: &Code,
        m: &mut WeakContents,
        carried: &mut dyn Iterator<Item = &mut WriteView>,
    ) -> bool {
        self.normalise(code, m, carried)
    }

    fn hash(
        &self,
        m: &WeakContents,
        threads: &[ThreadState],
        carried: &mut dyn Iterator<Item = &WriteView>,
        hasher: &mut dyn Hasher,
    ) {
        m.hash_into(threads, carried, hasher);
    }

    fn finals(&self, m: &WeakContents, loc: usize) -> Vec<i64> {
        let mut values: Vec<i64> = m.locations[loc].maximal().map(|(_, w)| w.value).collect();
        values.sort_unstable();
        values.dedup();
        values
    }
}

impl Weak {
    /// Performs one part of a fence.
    fn fence_in_turn(&self, code: &Code, m: &mut WeakContents, at: At, fence: Fence) -> Result {
        match fence {
            Fence::Thread {
                acquire,
                release,
                sc,
                scope,
                ..
            } => {
                if acquire {
                    self.tail(m, code, at.thread, scope, None)?;
                }
                if sc {
                    let me = &mut m.threads[at.thread];
                    for (&(u, s), view) in m.fence_sc.iter().filter(|_| self.rules.fence_sc) {
                        let u = usize::from(u);
                        if u == at.thread || code.mutual(u, s, at.thread, scope) {
                            me.known.join(view);
                        }
                    }
                    m.fence_sc
                        .insert((at.thread as u16, scope), me.known.clone());
                }
                if release {
                    let me = &mut m.threads[at.thread];
                    me.release_fences.insert(scope, me.known.clone());
                    m.early.had_turn(at);
                }
            }
            Fence::Inits => {
                let me = &mut m.threads[at.thread];
                me.made_known = me.inits.clone();
            }
            Fence::Async(part) => {
                let cta = code.cta[at.thread] as u16;
                tags::cross_async(
                    &mut m.threads[at.thread].known,
                    cta,
                    code.local_fences,
                    |loc: u16| code.is_in(usize::from(loc), part, at.thread),
                );
            }
            Fence::Map { acquire, scope, va } => {
                let cta = code.cta[at.thread] as u16;
                tags::map(&mut m.threads[at.thread].known, acquire, scope, va, cta);
            }
            Fence::Matrices
            | Fence::Commit(_)
            | Fence::Await(_)
            | Fence::Trigger
            | Fence::GridWait => {}
            proxy => tags::cross(
                &mut m.threads[at.thread].known,
                proxy,
                code.cta[at.thread] as u16,
            ),
        }
        Ok(())
    }
}
