//! Counts events and proxy fences by vector clocks. A clock knows the events that come before the
//! next one. It also knows which of them a fence of the async proxy separates from it, or a release
//! half and an acquire half, for the async proxy or for a tensor map.
//!
//! # Invariants
//! - Events before a fence, and events of complete operations, also come before.
//! - In programs without the async proxy, only the events are counted.
//!
//! # Sources
//! - PTX ISA 9.4, Memory Consistency Model, *Causality Order*; *Asynchronous Copy*, *Async Proxy*:
//!   a proxy fence follows the completion of an asynchronous operation.
//! - PTX ISA 9.4, membar / fence: halves of `fence.proxy.async::generic`, and of
//!   `fence.proxy.tensormap`.
//! - `proxy-preserved` in `models/ptx.cat`: the clauses that [`VectorClock::orders`] follows.

use std::collections::BTreeMap;
use std::ops::Index;

use crate::code::{Code, FenceMemory, FenceReach};
use program::Proxy;

/// A fence of the async proxy, or half of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AsyncFence {
    memory: FenceMemory,
    thread: usize,
}

/// A release half of a fence of the async proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ReleaseHalf {
    fence: AsyncFence,
    /// Whether it releases only the reads of its thread.
    of_reads: bool,
}

/// The attributes of an access that decide which fences it needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProxyAccess {
    pub(super) thread: usize,
    pub(super) proxy: Proxy,
    /// Whether it reads a tensor map through the tensormap proxy.
    pub(super) map: bool,
    pub(super) write: bool,
}

impl ProxyAccess {
    fn is_async(self) -> bool {
        self.proxy == Proxy::Async
    }
}

/// The events before a release half, as numbers by thread.
#[derive(Clone, Debug, Default)]
struct ReleasedEvents {
    /// For accesses of the generic proxy.
    events: Vec<u32>,
    /// For those of the async proxy: their operations are complete.
    complete: Vec<u32>,
}

/// The events that come before the next event of a thread, as numbers by thread.
#[derive(Clone, Debug)]
pub(super) struct VectorClock {
    events: Vec<u32>,
    /// The events of operations that are known to be complete; empty without the async proxy.
    complete: Vec<u32>,
    /// The events before a fence of the async proxy.
    fenced: BTreeMap<AsyncFence, Vec<u32>>,
    /// The events before a release half.
    released: BTreeMap<ReleaseHalf, ReleasedEvents>,
    /// The events before a release half that comes before an acquire half.
    halves: BTreeMap<(ReleaseHalf, AsyncFence), ReleasedEvents>,
    /// The events before a release half of `fence.proxy.tensormap`; empty if there is none.
    maps_released: Vec<u32>,
    /// The same before an acquire half, by its map and CTA. `None` if the map is not known.
    maps: BTreeMap<(Option<usize>, usize), Vec<u32>>,
}

impl Index<usize> for VectorClock {
    type Output = u32;

    fn index(&self, thread: usize) -> &u32 {
        &self.events[thread]
    }
}

/// Makes each number at least that of `other`. An empty list has no event.
fn raise(into: &mut Vec<u32>, other: &[u32]) {
    if into.len() < other.len() {
        into.resize(other.len(), 0);
    }
    into.iter_mut()
        .zip(other)
        .for_each(|(a, &b)| *a = (*a).max(b));
}

impl ReleasedEvents {
    fn raise(&mut self, other: &ReleasedEvents) {
        raise(&mut self.events, &other.events);
        raise(&mut self.complete, &other.complete);
    }
}

impl VectorClock {
    /// A clock that knows no event.
    pub(super) fn new(code: &Code) -> VectorClock {
        let n = code.threads.len();
        VectorClock {
            events: vec![0; n],
            complete: vec![0; if code.proxies { n } else { 0 }],
            fenced: BTreeMap::new(),
            released: BTreeMap::new(),
            halves: BTreeMap::new(),
            maps_released: Vec::new(),
            maps: BTreeMap::new(),
        }
    }

    /// Counts an event of a thread.
    pub(super) fn tick(&mut self, thread: usize) {
        self.events[thread] += 1;
    }

    /// Takes over the knowledge of another clock.
    pub(super) fn join(&mut self, other: &VectorClock) {
        raise(&mut self.events, &other.events);
        raise(&mut self.complete, &other.complete);
        raise(&mut self.maps_released, &other.maps_released);
        for (fence, events) in &other.fenced {
            raise(self.fenced.entry(*fence).or_default(), events);
        }
        for (half, given) in &other.released {
            self.released.entry(*half).or_default().raise(given);
        }
        for (halves, given) in &other.halves {
            self.halves.entry(*halves).or_default().raise(given);
        }
        for (map, events) in &other.maps {
            raise(self.maps.entry(*map).or_default(), events);
        }
    }

    /// Learns that an asynchronous operation has performed its events up to a number.
    pub(super) fn learns(&mut self, agent: usize, events: u32) {
        self.events[agent] = events.max(self.events[agent]);
    }

    /// The same, with the proxy fence that follows the completion.
    pub(super) fn completes(&mut self, agent: usize, events: u32) {
        self.learns(agent, events);
        if let Some(known) = self.complete.get_mut(agent) {
            *known = events.max(*known);
        }
    }

    /// Performs a fence of the async proxy by a thread.
    pub(super) fn crosses(&mut self, memory: FenceMemory, thread: usize) {
        let fence = AsyncFence { memory, thread };
        raise(self.fenced.entry(fence).or_default(), &self.events);
    }

    /// Performs a release half of a fence of the async proxy by a thread.
    pub(super) fn releases(&mut self, memory: FenceMemory, thread: usize, of_reads: bool) {
        let fence = AsyncFence { memory, thread };
        let given = self
            .released
            .entry(ReleaseHalf { fence, of_reads })
            .or_default();
        raise(&mut given.events, &self.events);
        raise(&mut given.complete, &self.complete);
    }

    /// Performs an acquire half of a fence of the async proxy by a thread.
    pub(super) fn acquires(&mut self, memory: FenceMemory, thread: usize) {
        let fence = AsyncFence { memory, thread };
        for (half, given) in &self.released {
            self.halves.entry((*half, fence)).or_default().raise(given);
        }
    }

    /// Performs a release half of `fence.proxy.tensormap`.
    pub(super) fn releases_maps(&mut self) {
        raise(&mut self.maps_released, &self.events);
    }

    /// Performs an acquire half of `fence.proxy.tensormap` for a map, in a CTA.
    pub(super) fn acquires_map(&mut self, map: Option<usize>, cta: usize) {
        let events = self.maps.entry((map, cta)).or_default();
        raise(events, &self.maps_released);
    }

    /// Whether an access to a location, the event `time` of its thread, comes before the next
    /// access there. If their proxies differ, they also need a proxy fence between them.
    pub(super) fn orders(
        &self,
        code: &Code,
        loc: usize,
        first: ProxyAccess,
        time: u32,
        next: ProxyAccess,
    ) -> bool {
        if self[first.thread] < time {
            return false;
        }
        let knows = |events: &[u32]| events.get(first.thread) >= Some(&time);
        let [from, to] = [first, next].map(|a| code.cta[a.thread]);
        if next.map {
            let names = |map: Option<usize>| map.is_none_or(|map| map == loc);
            let mut maps = self.maps.iter();
            return !first.is_async()
                && maps.any(|((map, cta), events)| names(*map) && *cta == to && knows(events));
        }
        if first.map {
            return !next.is_async() && knows(&self.complete);
        }
        match next.is_async() {
            to_async if first.is_async() == to_async && (!to_async || from == to) => return true,
            false if knows(&self.complete) => return true,
            _ => {}
        }
        self.fenced.iter().any(|(fence, events)| {
            knows(events)
                && fence.reaches(code, first, next)
                && code.is_in(loc, fence.memory, fence.thread)
        }) || next.is_async() && self.by_halves(code, loc, first, time)
    }

    /// Whether a release half and an acquire half lie between an access and the next one, which is
    /// of the async proxy.
    fn by_halves(&self, code: &Code, loc: usize, first: ProxyAccess, time: u32) -> bool {
        self.halves.iter().any(|((half, acquire), given)| {
            let events = match first.is_async() {
                true => &given.complete,
                false => &given.events,
            };
            let names = !half.of_reads
                || !first.write && !first.is_async() && first.thread == half.fence.thread;
            let covers = |fence: &AsyncFence| code.is_in(loc, fence.memory, fence.thread);
            names
                && events.get(first.thread) >= Some(&time)
                && covers(&half.fence)
                && covers(acquire)
        })
    }
}

impl AsyncFence {
    /// Whether it separates two accesses, by the option `async-fence`. A generic access of an
    /// asynchronous operation counts as one of any thread, which orders more.
    fn reaches(&self, code: &Code, first: ProxyAccess, next: ProxyAccess) -> bool {
        let of_generic = |access: ProxyAccess| {
            code.agent(access.thread).is_some() || self.thread == access.thread
        };
        let begins = |access: ProxyAccess| {
            code.agent(access.thread)
                .is_some_and(|agent| agent.owner == self.thread)
        };
        match (code.fence_reach, first.is_async(), next.is_async()) {
            (FenceReach::Path, ..) => true,
            (FenceReach::Cta, _, true) => code.cta[self.thread] == code.cta[next.thread],
            (FenceReach::Cta, ..) => code.cta[self.thread] == code.cta[first.thread],
            (FenceReach::Thread, false, _) => of_generic(first),
            (FenceReach::Thread, true, true) => begins(next),
            (FenceReach::Letter, false, _) => of_generic(first) && begins(next),
            (FenceReach::Letter, true, true) => false,
            (FenceReach::Thread | FenceReach::Letter, true, false) => of_generic(next),
        }
    }
}
