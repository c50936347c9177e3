//! The memory of languages with data races: OpenCL C, CUDA C++ and C.
//!
//! One machine serves all of them; a table lists their differences ([`mod@language`]). The machine
//! keeps the history of events, each with its past in happens-before, and the modification order of
//! each location. A step commits one event at the end of its thread. A read takes any write that
//! coherence and visibility allow. A write goes to any place in modification order behind the
//! writes in its past. Threads commit in program order and reads take existing writes, so an
//! event's past is final at its commit. Some writes exist early: see [`early`].
//!
//! # Claims
//! - Without early binds, every outcome is one that the language's model allows, in an execution in
//!   which `po`, `rf` and barriers are acyclic. Every outcome of such executions can be reached.
//! - Early binds ([`early`]) add outcomes of the load-buffering family, but none that the model
//!   forbids. They do not reach all, so finding no race proves nothing. The model `rc11` has no
//!   such executions: nothing is bound early.
//! - A race is reported only for histories that come to their end, as in the models.
//! - All this is checked, not proven: see the tests.
//!
//! # Invariants
//! - Equal histories behave equally, whatever the order of their steps; the fingerprint is that of
//!   the history.
//! - If threads spin, the memory forgets reads and acquire fences that a later round repeats. So
//!   spinning on unchanged memory comes back to the same state. Loops that write make the history
//!   grow.
//!
//! Sources: Khronos, OpenCL API specification, Memory Model; ISO C11, 5.1.2.4; ISO C++20,
//! intro.races; NVIDIA, libcu++, "Memory model".

mod agree;
mod commit;
mod early;
mod graph;
mod hazards;
mod include;
mod kinds;
pub(crate) mod language;
mod objects;
mod synchronize;
mod tidy;

use std::hash::Hasher;

use graph::{History, HistoryEvent, HistoryKind};
use language::{BarrierMeaning, LanguageRules, Sequence};
use objects::ObjectUses;
use smallvec::SmallVec;

use super::early::Binding;
use super::rules::MemoryRules;
use super::{At, Backend, Context, MemoryAccess, NewValue};
use crate::code::{Act, Code, Fence, Regions, eval};
use crate::record::{self, RunHazard};
use crate::thread::ThreadState;
use crate::{Early, Result, StepHalt};
use program::{Barrier, Scope, Tag};

/// The region of global memory; the only region in languages without regions.
const GLOBAL: usize = 0;
const LOCAL: usize = 1;
const REGIONS: [usize; 2] = [GLOBAL, LOCAL];

/// The rules of this memory.
#[derive(Clone, Debug)]
pub(crate) struct Clike {
    language: LanguageRules,
    rules: MemoryRules,
    early: Early,
    /// By location: whether its writes need no order at all.
    loose: Vec<bool>,
    /// By location, if the language has kinds of memory: the operations that are atomic at system
    /// scope.
    kinds: Vec<kinds::Atomicity>,
    /// If the language has memory objects: the uses of memory that is shared by whole objects.
    objects: Option<ObjectUses>,
}

impl Clike {
    /// The memory of a language.
    ///
    /// # Errors
    /// If the memory cannot run the program.
    pub(crate) fn new(
        language: LanguageRules,
        rules: MemoryRules,
        early: Early,
        code: &Code,
    ) -> Result<Clike, String> {
        let updated = |loc: usize| {
            code.threads.iter().any(|t| {
                // The last instruction from which on the location may be accessed.
                let updates = t
                    .acts
                    .iter()
                    .enumerate()
                    .filter(|(_, a)| matches!(a, Act::Rmw { .. }));
                updates
                    .map(|(pc, _)| t.reach[pc])
                    .any(|r| loc >= 128 || r >> loc & 1 != 0)
            })
        };
        let loose = (0..code.locations.len())
            .map(|loc| language.visible && !code.locations[loc].atomic && !updated(loc))
            .collect();
        let objects = language.regions.then(|| ObjectUses::new(code));
        let kinds = if language.kinds {
            kinds::all(code)?
        } else {
            Vec::new()
        };
        Ok(Clike {
            language,
            rules,
            early,
            loose,
            kinds,
            objects,
        })
    }

    /// A fence or half of a barrier as an event, without its past.
    fn strait(
        &self,
        code: &Code,
        at: At,
        kind: HistoryKind,
        regions: Regions,
        capped: bool,
        scope: Scope,
    ) -> HistoryEvent {
        let regions = match () {
            () if !self.language.regions => Regions::one(GLOBAL),
            () if !self.rules.regions => Regions::of(true, true),
            () => regions,
        };
        let local = self.language.regions;
        let scope = if local {
            Clike::fence_reach(code, at.thread, capped, scope)
        } else {
            [scope; 2]
        };
        HistoryEvent {
            atomic: true,
            scope,
            ..HistoryEvent::new(kind, at.spot(), regions)
        }
    }

    /// Half of a barrier as an event; it is a fence if the language's barriers are fences.
    fn half(&self, code: &Code, at: At, kind: HistoryKind, b: &Barrier) -> HistoryEvent {
        let tags = if kind == HistoryKind::Arrive {
            &b.arrive
        } else {
            &b.wait
        };
        // No sentence says what a barrier of images orders between work-items. Here it orders
        // global memory, as implementations do; answers about such programs are open.
        let global = tags.has(Tag::Global) || tags.has(Tag::ImageFence);
        let regions = Regions::of(global, tags.has(Tag::Local));
        let mut e = self.strait(
            code,
            at,
            kind,
            regions,
            tags.has(Tag::Capped),
            b.scope.unwrap_or(Scope::Thread),
        );
        let fences = self.language.meeting == BarrierMeaning::Fences;
        (e.release, e.acquire) = (
            fences && kind == HistoryKind::Arrive,
            fences && kind == HistoryKind::Wait,
        );
        e.atomic = fences;
        e
    }

    /// An event by which the runtime orders actions of two threads in global memory.
    fn edge(&self, code: &Code, at: At, kind: HistoryKind) -> HistoryEvent {
        self.strait(code, at, kind, Regions::one(GLOBAL), false, Scope::Sys)
    }

    /// Whether the thread's next action may first have to choose which release sequences to rely
    /// on.
    fn is_open(&self, m: &History, thread: usize) -> bool {
        m.threads[thread].last().is_some_and(|&i| m.events[i].open)
    }
}

/// Arrivals: thread, and index among its arrivals.
type Arrivals = SmallVec<[(u16, u16); 4]>;

/// The next arrival of a thread.
fn next(m: &History, thread: usize) -> Arrivals {
    let earlier = m.of(thread).filter(|(_, e)| e.kind.gives()).count();
    SmallVec::from_slice(&[(thread as u16, earlier as u16)])
}

/// The events of the arrivals.
fn given(m: &History, carried: &Arrivals) -> Vec<usize> {
    carried
        .iter()
        .filter_map(|&(t, n)| {
            let mut of = m.of(usize::from(t)).filter(|(_, e)| e.kind.gives());
            of.nth(usize::from(n)).map(|(i, _)| i)
        })
        .collect()
}

impl Backend for Clike {
    type Memory = History;
    type Carried = Arrivals;

    type Saved = History;

    fn save(&self, m: &History, _: usize, _: Option<usize>) -> History {
        m.clone()
    }

    fn restore(&self, m: &mut History, saved: History) {
        *m = saved;
    }

    fn start(&self, code: &Code) -> History {
        History::new(code, |loc| self.home(&code.locations[loc]))
    }

    fn load(&self, cx: &mut Context<'_>, m: &mut History, t: MemoryAccess) -> Result<i64> {
        self.close(cx, m, t.at.thread)?;
        let code = cx.code;
        let bound = m.early.take(t.at).and_then(|b| b.read);
        let read = self.read(
            cx,
            m,
            &|value| self.access(code, t, HistoryKind::Read, value, false),
            (t.place.loc, bound),
        )?;
        Ok(m.events[read].value)
    }

    fn store(&self, cx: &mut Context<'_>, m: &mut History, t: MemoryAccess, value: i64) -> Result {
        self.close(cx, m, t.at.thread)?;
        let e = self.access(cx.code, t, HistoryKind::Write, value, false);
        let bound = m.early.take(t.at).and_then(|b| b.write);
        self.write(cx, m, e, bound)?;
        m.early.had_turn(t.at);
        Ok(())
    }

    fn rmw(
        &self,
        cx: &mut Context<'_>,
        m: &mut History,
        read: MemoryAccess,
        write: MemoryAccess,
        new: NewValue<'_>,
    ) -> Result<i64> {
        self.close(cx, m, read.at.thread)?;
        let code = cx.code;
        let bind = m.early.take(read.at);
        let half = self.read(
            cx,
            m,
            &|value| self.access(code, read, HistoryKind::Read, value, new(value).is_none()),
            (read.place.loc, bind.as_ref().and_then(|b| b.read)),
        )?;
        let old = m.events[half].value;
        if let Some(value) = new(old) {
            let mut e = self.access(code, write, HistoryKind::Write, value, false);
            e.read = Some(half);
            self.write(cx, m, e, bind.and_then(|b| b.write))?;
        }
        m.early.had_turn(read.at);
        Ok(old)
    }

    fn fence(&self, cx: &mut Context<'_>, m: &mut History, at: At, fence: Fence) -> Result {
        let Fence::Thread {
            acquire,
            release,
            sc,
            scope,
            regions,
            capped,
            misuse,
        } = fence
        else {
            return Err(StepHalt::Unsupported(
                "not in this machine: a proxy fence outside PTX".into(),
            ));
        };
        if acquire || release {
            self.close(cx, m, at.thread)?;
            let mut e = self.strait(cx.code, at, HistoryKind::Fence, regions, capped, scope);
            (e.acquire, e.release, e.sc) = (acquire, release, sc);
            self.follow(cx.code, m, &mut e);
            self.acquire(cx.code, cx.chooser, m, &mut e)?;
            // No event comes after it yet: it is on no cycle.
            self.append(cx.code, m, e, None)?;
        }
        if misuse {
            m.misuse.get_or_insert((at.thread, at.instr));
        }
        m.early.had_turn(at);
        cx.log.note(record::RunEvent::Fence(at.spot()));
        Ok(())
    }

    fn fence_commutes(&self, m: &History, thread: usize, fence: Fence) -> bool {
        // If release sequences may break, the time of an acquire matters.
        let acquires = matches!(fence, Fence::Thread { acquire: true, .. });
        !(self.is_open(m, thread) || acquires && self.language.sequence == Sequence::Run)
    }

    fn arrive(
        &self,
        cx: &mut Context<'_>,
        m: &mut History,
        at: At,
        b: &Barrier,
    ) -> Result<Arrivals> {
        self.close(cx, m, at.thread)?;
        let mut e = self.half(cx.code, at, HistoryKind::Arrive, b);
        e.value = b.lanes.as_ref().map_or(0, |mask| eval(mask, &[]));
        self.follow(cx.code, m, &mut e);
        let arrivals = next(m, at.thread);
        self.append(cx.code, m, e, None)?;
        Ok(arrivals)
    }

    fn arrival_commutes(&self, m: &History, thread: usize) -> bool {
        !self.is_open(m, thread)
    }

    fn join(into: &mut Arrivals, other: &Arrivals) {
        into.extend(other.iter().copied());
        into.sort_unstable();
        into.dedup();
    }

    fn pass(&self, code: &Code, m: &mut History, at: At, carried: &Arrivals) {
        let Some(b) = code.threads[at.thread].acts[at.instr].barrier() else {
            return;
        };
        let mut e = self.half(code, at, HistoryKind::Wait, b);
        // A warp's barrier arrives and waits in one instruction.
        let arrival = m.of(at.thread).next_back();
        e.value = arrival
            .filter(|(_, a)| a.kind == HistoryKind::Arrive)
            .map_or(0, |(_, a)| a.value);
        self.follow(code, m, &mut e);
        self.take(m, &mut e, given(m, carried).into_iter());
        e.open = e.acquire;
        m.push(e);
    }

    fn shut(&self, cx: &mut Context<'_>, m: &mut History, thread: usize) -> Result {
        self.close(cx, m, thread)
    }

    fn hand(&self, code: &Code, m: &mut History, at: At) -> Arrivals {
        let arrivals = next(m, at.thread);
        let mut e = self.edge(code, at, HistoryKind::Hand);
        self.follow(code, m, &mut e);
        m.push(e);
        arrivals
    }

    fn tell(&self, code: &Code, m: &mut History, at: At, carried: &Arrivals) {
        let mut e = self.edge(code, at, HistoryKind::Tell);
        self.follow(code, m, &mut e);
        self.take(m, &mut e, given(m, carried).into_iter());
        m.push(e);
    }

    fn binds(&self) -> bool {
        self.early != Early::None && !(self.language.in_order && self.rules.in_order)
    }

    fn may_bind_early(
        &self,
        code: &Code,
        m: &History,
        threads: &[ThreadState],
        thread: usize,
    ) -> bool {
        self.binds() && !self.candidates(code, m, threads, thread).is_empty()
    }

    fn bind_early(
        &self,
        cx: &mut Context<'_>,
        m: &mut History,
        all: &[ThreadState],
        t: usize,
    ) -> Result {
        self.bind(cx, m, all, t)
    }

    fn is_pending(&self, m: &History) -> bool {
        !m.early.is_empty()
    }

    fn may_refuse(&self) -> bool {
        true
    }

    fn tidy(
        &self,
        code: &Code,
        m: &mut History,
        _: &mut dyn Iterator<Item = &mut Arrivals>,
    ) -> bool {
        self.clean(code, m);
        true
    }

    fn hash(
        &self,
        m: &History,
        threads: &[ThreadState],
        carried: &mut dyn Iterator<Item = &Arrivals>,
        hasher: &mut dyn Hasher,
    ) {
        self.digest(m, threads, hasher);
        carried.for_each(|c| {
            hasher.write_usize(c.len());
            c.iter()
                .for_each(|&(t, n)| hasher.write_u32(u32::from(t) << 16 | u32::from(n)));
        });
    }

    fn finals(&self, m: &History, loc: usize) -> Vec<i64> {
        let value = |&w: &usize| m.events[w].value;
        let list = &m.order[loc];
        if !self.loose[loc] || list.len() == 1 {
            return list.last().map(value).into_iter().collect();
        }
        // The writes that a reader after all threads could see: no other write has them in its
        // past.
        let hidden = |w: usize| {
            list.iter()
                .any(|&x| REGIONS.into_iter().any(|g| m.events[x].past[g].has(w)))
        };
        let seen = list[1..]
            .iter()
            .filter(|w| !self.rules.visible || !hidden(**w));
        let mut values: Vec<i64> = seen.map(value).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    fn is_whole(&self, m: &History) -> bool {
        !self.is_pending(m) && m.pins.iter().all(|p| p.holds || !m.is_run(*p))
    }

    fn hazards(&self, code: &Code, m: &History) -> Vec<RunHazard> {
        // Early events have not happened: the history so far is not the beginning of an execution.
        if self.is_pending(m) {
            Vec::new()
        } else {
            self.undefined(code, m)
        }
    }
}
