//! Computes the order of events in a run, with vector clocks.
//!
//! A thread's clock gives, for each thread, the number of its events that come before the next
//! event of the first. Handovers between threads follow the release and acquire patterns of the
//! model, barriers, and in PTX `fence.sc`. The same rules with weaker requirements
//! ([`Requirement`]) explain why two accesses have no order. In PTX, an observed access also comes
//! before later accesses to the same location, without any of these: [`RunOrder::observed`].
//!
//! # Sources
//! - PTX ISA, Memory Consistency Model: *Release and Acquire Patterns*, *Synchronizes-with*,
//!   *Fence-SC*, *Observation Order*, *Causality Order*.
//! - ISO C++, *Data races*: in CUDA C++ a release sequence continues only through
//!   read-modify-writes, and `fence.sc` order does not synchronize threads.
//! - Vector clocks: C. Flanagan, S. Freund, "FastTrack: Efficient and Precise Dynamic Race
//!   Detection", PLDI 2009.

use program::Tag;
use std::collections::BTreeMap;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::clock::{ProxyAccess, VectorClock};
use crate::code::{Access, Act, Code, Fence, OnObject};
use crate::record::{RunEvent, Spot, WriteId};
use program::dialect::RaceRules;
use program::mbarrier::{PHASES, phase_of};
use program::{Expr, Proxy, Scope, Ty};

/// The requirements for one event to come before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requirement {
    /// The requirements of the model.
    All,
    /// Those of the model, as if all scopes were wide enough.
    AnyScope,
    /// Only that one reads the other's write.
    Communication,
}

/// A handover: one thread passes on everything that comes before one of its events.
#[derive(Clone, Debug)]
pub(super) struct ClockHandover {
    /// The thread and instruction that hand over.
    pub(super) from: (usize, usize),
    /// The thread and instruction that take over.
    pub(super) to: (usize, usize),
    /// The scopes of the two.
    pub(super) scopes: (Scope, Scope),
    /// The clock handed over.
    pub(super) clock: Rc<VectorClock>,
}

/// The first operation of a release pattern.
#[derive(Clone, Debug)]
struct ReleaseHead {
    thread: usize,
    instr: usize,
    scope: Scope,
    clock: Rc<VectorClock>,
}

/// A writing operation, in the chain of atomics through which its value is observed.
#[derive(Clone, Copy, Debug)]
struct ChainWrite {
    thread: usize,
    /// The numbers of its read (if it is an atomic) and of its write among the events of its
    /// thread.
    times: [u32; 2],
    /// The operation that it read from, if the two are morally strong.
    from: Option<usize>,
}

/// A read, and the write that it observes.
#[derive(Clone, Copy, Debug)]
struct Observer {
    thread: usize,
    time: u32,
    proxy: Proxy,
    source: WriteId,
    /// The last operation of the chain; `None` until the write is committed.
    last: Option<usize>,
}

/// A committed write.
#[derive(Clone, Debug)]
struct CommittedWrite {
    /// Its index among the operations that can be observed.
    step: usize,
    thread: usize,
    instr: usize,
    access: Access,
    heads: Rc<Vec<ReleaseHead>>,
    /// The events before it, including itself.
    clock: Rc<VectorClock>,
    value: i64,
    /// For an mbarrier object: the arrivals of the current phase and of the previous one, each with
    /// its scope.
    arrivals: [Rc<Vec<(ReleaseHead, Scope)>>; 2],
}

/// The order of the run so far.
pub(super) struct RunOrder<'a> {
    code: &'a Code,
    asked: Requirement,
    /// Whether PTX's rules apply: early exits, fence-SC and release sequences within a thread.
    ptx: bool,
    pub(super) clocks: Vec<VectorClock>,
    /// By thread: its release fences by scope.
    fences: Vec<BTreeMap<Scope, ReleaseHead>>,
    /// By thread: its release writes by location and scope.
    releases: Vec<BTreeMap<(usize, Scope), ReleaseHead>>,
    /// By thread: strong reads that a later acquire may complete.
    pending: Vec<Vec<(usize, WriteId)>>,
    /// By thread: heads of arrivals at mbarrier objects that a wait has observed; a later acquire
    /// fence takes them over.
    seen: Vec<Vec<ReleaseHead>>,
    writes: FxHashMap<WriteId, CommittedWrite>,
    fence_sc: BTreeMap<(usize, Scope), Rc<VectorClock>>,
    phases: FxHashMap<u32, VectorClock>,
    /// By point of the host program: the events before it.
    points: FxHashMap<u32, VectorClock>,
    /// By thread: the number of its events up to its last read.
    last_reads: Vec<u32>,
    /// By thread: the source and time of an atomic's read, until its write comes.
    read: Vec<Option<(WriteId, u32)>>,
    /// The operations that can be observed.
    steps: Vec<ChainWrite>,
    /// The reads of atomics that have written, by thread and number.
    halves: FxHashSet<(usize, u32)>,
    /// By location: its observers.
    observers: FxHashMap<usize, Vec<Observer>>,
    /// Visible writes that are not committed: location, instruction, value.
    visible: FxHashMap<WriteId, (usize, usize, i64)>,
    /// The handovers, in order; kept only for weaker requirements.
    pub(super) links: Vec<ClockHandover>,
    /// Whether a thread took over from a write that was bound early and is committed later. That
    /// handover is known too late: events may then only seem to have no order.
    pub(super) open: bool,
}

/// An access of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub(super) thread: usize,
    pub(super) instr: usize,
    pub(super) loc: usize,
    pub(super) write: bool,
    /// The value that it writes.
    pub(super) value: Option<i64>,
    pub(super) access: Access,
}

impl Touch {
    /// Its thread and proxy.
    pub(super) fn by_proxy(&self) -> ProxyAccess {
        ProxyAccess {
            thread: self.thread,
            proxy: self.access.proxy,
            map: self.access.map,
            write: self.write,
        }
    }
}

impl<'a> RunOrder<'a> {
    pub(super) fn new(code: &'a Code, asked: Requirement) -> RunOrder<'a> {
        let n = code.threads.len();
        RunOrder {
            code,
            asked,
            ptx: code.program.dialect.row().race_rules == Some(RaceRules::Patterns),
            clocks: vec![VectorClock::new(code); n],
            fences: vec![BTreeMap::new(); n],
            releases: vec![BTreeMap::new(); n],
            pending: vec![Vec::new(); n],
            seen: vec![Vec::new(); n],
            writes: FxHashMap::default(),
            fence_sc: BTreeMap::new(),
            phases: FxHashMap::default(),
            points: FxHashMap::default(),
            last_reads: vec![0; n],
            read: vec![None; n],
            steps: Vec::new(),
            halves: FxHashSet::default(),
            observers: FxHashMap::default(),
            visible: FxHashMap::default(),
            links: Vec::new(),
            open: false,
        }
    }

    fn half(&self, thread: usize, instr: usize, write: bool) -> Option<Access> {
        let act = &self.code.threads[thread].acts[instr];
        if write { act.write() } else { act.read() }.copied()
    }

    /// Processes an event. Calls `touch` for every access, before the access hands over or takes
    /// over.
    pub(super) fn event(&mut self, event: &RunEvent, touch: &mut dyn FnMut(&RunOrder<'_>, Touch)) {
        match *event {
            RunEvent::Read {
                thread,
                instr,
                loc,
                source,
                ..
            } => {
                let at = Spot { thread, instr };
                if let Some(access) = self.half(thread, instr, false) {
                    self.touched(at, loc, None, access, touch);
                    self.reads(at, loc, source, &access);
                }
            }
            RunEvent::Write {
                source,
                instr,
                loc,
                value,
            } => {
                self.visible.insert(source, (loc, instr, value));
            }
            RunEvent::Commit(source) => {
                if let (WriteId::Write(thread, _), Some((loc, instr, value))) =
                    (source, self.visible.remove(&source))
                    && let Some(access) = self.half(thread, instr, true)
                {
                    let at = Spot { thread, instr };
                    self.touched(at, loc, Some(value), access, touch);
                    self.writes(at, loc, source, value, access);
                }
            }
            RunEvent::Fence(at) => {
                self.tick(at.thread);
                if let Act::Mark { mark: fence, .. } = self.code.threads[at.thread].acts[at.instr] {
                    self.fences(at, fence);
                }
            }
            RunEvent::Arrive(at, phase) => self.arrives(at, phase),
            RunEvent::Pass(Spot { thread, .. }, phase) => {
                if let Some(given) = self.phases.get(&phase) {
                    self.clocks[thread].join(given);
                }
                self.tick(thread);
            }
            RunEvent::Begin(Spot { thread, .. }, agent) => {
                let known = self.clocks[thread].clone();
                self.clocks[agent].join(&known);
                self.tick(thread);
            }
            RunEvent::Complete(Spot { thread, .. }, agent, reads) => {
                let own = if reads {
                    self.last_reads[agent]
                } else {
                    self.clocks[agent][agent]
                };
                let known = &mut self.clocks[thread];
                match reads && self.code.strict_read_wait {
                    true => known.learns(agent, own),
                    false => known.completes(agent, own),
                }
            }
            RunEvent::Hand(..)
            | RunEvent::HandReleased(..)
            | RunEvent::Pour(..)
            | RunEvent::Tell(..) => self.host_event(event),
            RunEvent::Early(_)
            | RunEvent::After(..)
            | RunEvent::Turn { .. }
            | RunEvent::Jump(..)
            | RunEvent::Round => {}
        }
    }

    /// Counts an event of a thread.
    fn tick(&mut self, thread: usize) {
        self.clocks[thread].tick(thread);
    }

    /// Counts an access, which writes `value` if there is one, and reports it.
    fn touched(
        &mut self,
        at: Spot,
        loc: usize,
        value: Option<i64>,
        access: Access,
        touch: &mut dyn FnMut(&RunOrder<'_>, Touch),
    ) {
        let Spot { thread, instr } = at;
        self.tick(thread);
        if value.is_none() {
            self.last_reads[thread] = self.clocks[thread][thread];
        }
        self.looks_early(thread, loc);
        touch(
            self,
            Touch {
                thread,
                instr,
                loc,
                write: value.is_some(),
                value,
                access,
            },
        );
    }

    /// A thread arrives at a barrier, and hands over to the phase.
    fn arrives(&mut self, at: Spot, phase: u32) {
        let thread = at.thread;
        self.tick(thread);
        let relaxed = matches!(&self.code.threads[thread].acts[at.instr],
            Act::Barrier(b) if b.arrive.has(Tag::Relaxed))
            && self.asked != Requirement::Communication;
        let given: Vec<&VectorClock> = if relaxed {
            self.fences[thread].values().map(|h| &*h.clock).collect()
        } else {
            vec![&self.clocks[thread]]
        };
        let into = self
            .phases
            .entry(phase)
            .or_insert_with(|| VectorClock::new(self.code));
        given.into_iter().for_each(|c| into.join(c));
    }

    /// Hands over to a point of the host program, or from one.
    fn host_event(&mut self, event: &RunEvent) {
        match *event {
            RunEvent::Hand(Spot { thread, .. }, point) => {
                self.tick(thread);
                let into = self
                    .points
                    .entry(point)
                    .or_insert_with(|| VectorClock::new(self.code));
                into.join(&self.clocks[thread]);
            }
            RunEvent::HandReleased(Spot { thread, .. }, point, scope) => {
                self.tick(thread);
                let into = self
                    .points
                    .entry(point)
                    .or_insert_with(|| VectorClock::new(self.code));
                self.fences[thread]
                    .values()
                    .filter(|h| h.scope == scope || h.scope == Scope::Sys)
                    .for_each(|h| into.join(&h.clock));
            }
            RunEvent::Pour(from, into) => {
                if let Some(given) = self.points.get(&from).cloned() {
                    let into = self
                        .points
                        .entry(into)
                        .or_insert_with(|| VectorClock::new(self.code));
                    into.join(&given);
                }
            }
            RunEvent::Tell(Spot { thread, .. }, point) => {
                if let Some(given) = self.points.get(&point) {
                    self.clocks[thread].join(given);
                }
                self.tick(thread);
            }
            _ => {}
        }
    }

    fn mutual(&self, t: usize, a: Scope, u: usize, b: Scope) -> bool {
        self.asked == Requirement::AnyScope || self.code.mutual(t, a, u, b)
    }

    /// The operations that the accesses before the next one observe at its location, as threads
    /// and numbers of their events. The operations come before the next access, which has not
    /// handed over yet.
    pub(super) fn observed(&self, next: &Touch) -> FxHashSet<(usize, u32)> {
        let clock = &self.clocks[next.thread];
        let observers = self.observers.get(&next.loc).into_iter().flatten();
        let before = observers.filter(|o| {
            let by = ProxyAccess {
                thread: o.thread,
                proxy: o.proxy,
                map: false,
                write: false,
            };
            clock.orders(self.code, next.loc, by, o.time, next.by_proxy())
        });
        self.chains(before.filter_map(|o| o.last))
    }

    /// The operations that the atomic of `thread` whose write comes next observes.
    pub(super) fn follows(&self, thread: usize) -> FxHashSet<(usize, u32)> {
        let read = self.read[thread].and_then(|(source, _)| self.writes.get(&source));
        self.chains(read.map(|w| w.step).into_iter())
    }

    /// The events of some operations, and of those that they observe. Each operation is visited
    /// once: chains of polls are long, and share most of their operations.
    fn chains(&self, last: impl Iterator<Item = usize>) -> FxHashSet<(usize, u32)> {
        let mut visited = FxHashSet::default();
        let mut events = FxHashSet::default();
        for last in last {
            let chain = std::iter::successors(Some(last), |&at| self.steps[at].from);
            for at in chain.take_while(|&at| visited.insert(at)) {
                let step = &self.steps[at];
                events.extend(step.times.map(|time| (step.thread, time)));
            }
        }
        events
    }

    /// Whether an access is the read of an atomic whose write has come.
    pub(super) fn is_half(&self, thread: usize, time: u32) -> bool {
        self.halves.contains(&(thread, time))
    }

    /// Handles reads of a write before its commit: the operations that such a write observes are
    /// known too late.
    fn looks_early(&mut self, thread: usize, loc: usize) {
        let clock = &self.clocks[thread];
        self.open |= self.observers.get(&loc).into_iter().flatten().any(|o| {
            o.last.is_none() && clock[o.thread] >= o.time && self.visible.contains_key(&o.source)
        });
    }

    /// Records that a read observes its source, if the two are morally strong.
    fn observes(&mut self, t: usize, loc: usize, source: WriteId, access: &Access) {
        let time = self.clocks[t][t];
        let written = self
            .writes
            .get(&source)
            .map(|w| (w.thread, w.access, Some(w.step)));
        let Some((u, w, last)) = written.or_else(|| match (source, self.visible.get(&source)?) {
            (WriteId::Write(u, _), &(_, i, _)) => Some((u, self.half(u, i, true)?, None)),
            _ => None,
        }) else {
            return;
        };
        let strong = u == t
            || access.strong
                && w.strong
                && access.proxy == w.proxy
                && self.mutual(u, w.scope, t, access.scope);
        let observers = self.observers.entry(loc).or_default();
        if strong
            && !observers
                .iter()
                .any(|o| (o.thread, o.source, o.last) == (t, source, last))
        {
            observers.push(Observer {
                thread: t,
                time,
                proxy: access.proxy,
                source,
                last,
            });
        }
    }

    fn reads(&mut self, at: Spot, loc: usize, source: WriteId, access: &Access) {
        let Spot { thread: t, instr } = at;
        self.read[t] = Some((source, self.clocks[t][t]));
        if self.ptx && self.asked == Requirement::All {
            self.observes(t, loc, source, access);
        }
        // A write that was bound early is visible but not committed: its handover is known at the
        // commit.
        let early = || match (source, self.visible.get(&source)?) {
            (WriteId::Write(u, _), &(_, i, _)) => Some((u, self.half(u, i, true)?)),
            _ => None,
        };
        let committed = self.writes.get(&source);
        let Some((u, w)) = committed.map(|w| (w.thread, w.access)).or_else(early) else {
            return;
        };
        if self.asked == Requirement::Communication {
            if let Some(w) = committed.filter(|w| w.thread != t) {
                let link = ClockHandover {
                    from: (w.thread, w.instr),
                    to: (t, instr),
                    scopes: (w.access.scope, access.scope),
                    clock: w.clock.clone(),
                };
                self.clocks[t].join(&link.clock);
                self.links.push(link);
            }
            return;
        }
        let observes = access.strong
            && access.object.is_none()
            && w.strong
            && w.proxy == access.proxy
            && !(access.red && self.ptx)
            && (u == t || self.mutual(u, w.scope, t, access.scope));
        if observes && !self.pending[t].contains(&(loc, source)) {
            self.pending[t].push((loc, source));
        }
        if access.acquire && !(access.red && self.ptx) {
            self.acquire(at, access.scope, Some(loc));
        }
    }

    /// Performs the last operation of acquire patterns.
    fn acquire(&mut self, at: Spot, scope: Scope, loc: Option<usize>) {
        let Spot { thread: t, instr } = at;
        let pending: Vec<(usize, WriteId)> = self.pending[t]
            .iter()
            .filter(|p| loc.is_none_or(|l| l == p.0))
            .copied()
            .collect();
        for (_, source) in pending {
            self.open |= self.visible.contains_key(&source);
            let heads = self
                .writes
                .get(&source)
                .map(|w| w.heads.clone())
                .unwrap_or_default();
            for head in heads.iter().filter(|h| h.thread != t) {
                if !self.mutual(head.thread, head.scope, t, scope) {
                    continue;
                }
                if self.asked == Requirement::AnyScope {
                    self.links.push(ClockHandover {
                        from: (head.thread, head.instr),
                        to: (t, instr),
                        scopes: (head.scope, scope),
                        clock: head.clock.clone(),
                    });
                }
                self.clocks[t].join(&head.clock);
            }
        }
        // Clocks only grow, and a thread that knows an event knows all events before it. So
        // patterns once taken need no second look.
        let (clock, writes) = (&self.clocks[t], &self.writes);
        self.pending[t].retain(|(_, source)| {
            writes.get(source).is_none_or(|w| {
                w.heads
                    .iter()
                    .any(|h| h.thread != t && clock[h.thread] < h.clock[h.thread])
            })
        });
    }

    /// The arrivals at an mbarrier object after an operation that has read `read`; a wait takes
    /// over the completed ones.
    fn on_object(
        &mut self,
        at: Spot,
        loc: usize,
        value: i64,
        read: Option<WriteId>,
        access: &Access,
    ) -> [Rc<Vec<(ReleaseHead, Scope)>>; 2] {
        let Spot { thread: t, instr } = at;
        let from = read.and_then(|s| self.writes.get(&s));
        let before = phase_of(from.map_or(self.code.locations[loc].init, |w| w.value));
        let [mut current, complete] = from.map_or_else(Default::default, |w| w.arrivals.clone());
        if access.object == Some(OnObject::Arrive) {
            let clock = Rc::new(self.clocks[t].clone());
            let own = access.release.then_some(ReleaseHead {
                thread: t,
                instr,
                scope: access.scope,
                clock,
            });
            let heads = self.fences[t].values().cloned().chain(own);
            Rc::make_mut(&mut current).extend(heads.map(|head| (head, access.scope)));
        }
        if access.object == Some(OnObject::Complete) {
            // It reports the accesses of its operation, but no earlier events.
            let mut clock = VectorClock::new(self.code);
            let told = self
                .code
                .agent(t)
                .map(|agent| agent.tells.as_slice())
                .unwrap_or_default();
            told.iter()
                .chain([&t])
                .for_each(|&a| clock.completes(a, self.clocks[a][a]));
            let head = ReleaseHead {
                thread: t,
                instr,
                scope: access.scope,
                clock: Rc::new(clock),
            };
            Rc::make_mut(&mut current).push((head, access.scope));
        }
        if access.object == Some(OnObject::Wait) {
            let met = complete.iter().filter(|(h, s)| {
                h.thread != t
                    && (self.code.agent(h.thread).is_some()
                        || self.mutual(h.thread, *s, t, access.scope))
            });
            let heads: Vec<ReleaseHead> = met.map(|(h, _)| h.clone()).collect();
            for head in heads {
                // A thread that observes the completion of an asynchronous operation knows all of
                // its accesses.
                if self.code.agent(head.thread).is_some() {
                    self.clocks[t].join(&head.clock);
                    continue;
                }
                if access.acquire && self.mutual(head.thread, head.scope, t, access.scope) {
                    if self.asked == Requirement::AnyScope {
                        self.links.push(ClockHandover {
                            from: (head.thread, head.instr),
                            to: (t, instr),
                            scopes: (head.scope, access.scope),
                            clock: head.clock.clone(),
                        });
                    }
                    self.clocks[t].join(&head.clock);
                }
                self.seen[t].push(head);
            }
        }
        match phase_of(value) {
            after if after == before => [current, complete],
            after if after == (before + 1) % PHASES => [Rc::default(), current],
            _ => Default::default(),
        }
    }

    fn writes(&mut self, at: Spot, loc: usize, source: WriteId, value: i64, access: Access) {
        let Spot { thread: t, instr } = at;
        let rmw = matches!(self.code.threads[t].acts[instr], Act::Rmw { .. });
        let now = self.clocks[t][t];
        let (read, began) = self.read[t].take().filter(|_| rmw).unzip();
        let from = read.and_then(|s| self.writes.get(&s)).filter(|w| {
            let strong = w.access.strong && access.strong && w.access.proxy == access.proxy;
            w.thread == t || strong && self.mutual(w.thread, w.access.scope, t, access.scope)
        });
        self.steps.push(ChainWrite {
            thread: t,
            times: [began.unwrap_or(now), now],
            from: from.map(|w| w.step),
        });
        self.halves.extend(began.map(|time| (t, time)));
        let step = self.steps.len() - 1;
        self.open |= read.is_some_and(|source| self.visible.contains_key(&source));
        let mut arrivals = Default::default();
        if access.object.is_some() {
            arrivals = self.on_object(at, loc, value, read, &access);
        }
        let clock = Rc::new(self.clocks[t].clone());
        let mut heads: Vec<ReleaseHead> = Vec::new();
        if access.strong && access.object.is_none() {
            let own = ReleaseHead {
                thread: t,
                instr,
                scope: access.scope,
                clock: clock.clone(),
            };
            if access.release {
                if self.ptx {
                    self.releases[t].insert((loc, access.scope), own);
                } else {
                    heads.push(own);
                }
            }
            heads.extend(self.fences[t].values().cloned());
            // Later strong writes of the thread at the location hand on its releases there.
            heads.extend(
                self.releases[t]
                    .iter()
                    .filter(|(k, _)| k.0 == loc)
                    .map(|(_, h)| h.clone()),
            );
            // An atomic hands on the releases that it read.
            if let Some(w) = read.and_then(|s| self.writes.get(&s))
                && w.access.strong
                && w.access.proxy == access.proxy
                && (w.thread == t || self.mutual(w.thread, w.access.scope, t, access.scope))
            {
                for head in w.heads.iter() {
                    heads.retain(|h| {
                        !(h.thread == head.thread
                            && h.scope == head.scope
                            && h.clock[h.thread] <= head.clock[head.thread])
                    });
                    if heads
                        .iter()
                        .all(|h| h.thread != head.thread || h.scope != head.scope)
                    {
                        heads.push(head.clone());
                    }
                }
            }
        }
        self.writes.insert(
            source,
            CommittedWrite {
                step,
                thread: t,
                instr,
                access,
                heads: Rc::new(heads),
                clock,
                value,
                arrivals,
            },
        );
    }

    fn fences(&mut self, at: Spot, fence: Fence) {
        let t = at.thread;
        for part in fence.in_turn() {
            match (part, fence) {
                (Fence::Async(memory), Fence::Half { acquire: true, .. }) => {
                    self.clocks[t].acquires(memory, t);
                }
                (Fence::Async(memory), Fence::Half { of_reads, .. }) => {
                    self.clocks[t].releases(memory, t, of_reads);
                }
                (Fence::Async(memory), _) => self.clocks[t].crosses(memory, t),
                (Fence::Map { acquire: true, .. }, _) => {
                    let map = self.map_of(at);
                    self.clocks[t].acquires_map(map, self.code.cta[t]);
                }
                (Fence::Map { .. }, _) => self.clocks[t].releases_maps(),
                (Fence::Thread { .. }, _) => self.fence_of_memory(at, part),
                _ => {}
            }
        }
    }

    /// The map that an acquire half names; `None` if its address is in a register. The half then
    /// counts for every map, which orders more.
    fn map_of(&self, at: Spot) -> Option<usize> {
        let Act::Mark { addr, .. } = &self.code.threads[at.thread].acts[at.instr] else {
            return None;
        };
        let &Expr::Const(address) = addr.as_ref()? else {
            return None;
        };
        let place = self.code.place(at.thread, address, Ty::U64, false);
        place.map(|place| place.loc)
    }

    fn fence_of_memory(&mut self, at: Spot, fence: Fence) {
        let Spot { thread: t, instr } = at;
        let Fence::Thread {
            acquire,
            release,
            sc,
            scope,
            ..
        } = fence
        else {
            return;
        };
        if acquire {
            self.acquire(at, scope, None);
            let seen: Vec<ReleaseHead> = self.seen[t]
                .iter()
                .filter(|h| self.mutual(h.thread, h.scope, t, scope))
                .cloned()
                .collect();
            for head in &seen {
                self.clocks[t].join(&head.clock);
            }
        }
        if sc && self.ptx {
            let earlier: Vec<Rc<VectorClock>> = self
                .fence_sc
                .iter()
                .filter(|(k, _)| k.0 == t || self.mutual(k.0, k.1, t, scope))
                .map(|(_, c)| c.clone())
                .collect();
            earlier.iter().for_each(|c| self.clocks[t].join(c));
            self.fence_sc
                .insert((t, scope), Rc::new(self.clocks[t].clone()));
        }
        if release {
            let clock = Rc::new(self.clocks[t].clone());
            self.fences[t].insert(
                scope,
                ReleaseHead {
                    thread: t,
                    instr,
                    scope,
                    clock,
                },
            );
        }
    }
}
