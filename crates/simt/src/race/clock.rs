//! Counts events and proxy fences by vector clocks. A clock knows the events that come before the
//! next one. It also knows which of them a fence of the async proxy separates from it.
//!
//! # Invariants
//! - Events before a fence, and events of complete operations, also come before.
//! - In programs without the async proxy, only the events are counted.
//!
//! # Sources
//! - PTX ISA 9.4, Memory Consistency Model, *Causality Order*; *Asynchronous Copy*, *Async Proxy*:
//!   a proxy fence follows the completion of an asynchronous operation.
//! - `proxy-preserved` in `models/ptx.cat`: the clauses that [`VectorClock::orders`] follows.

use std::collections::BTreeMap;
use std::ops::Index;

use crate::code::{Code, FenceMemory, FenceReach};
use program::Proxy;

/// A fence of the async proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AsyncFence {
    memory: FenceMemory,
    thread: usize,
    /// Whether it is half of a fence. Halves work in pairs, under each value of `async-fence`.
    half: bool,
}

/// The attributes of an access that decide which fences it needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProxyAccess {
    pub(super) thread: usize,
    pub(super) proxy: Proxy,
}

/// The events that come before the next event of a thread, as numbers by thread.
#[derive(Clone, Debug)]
pub(super) struct VectorClock {
    events: Vec<u32>,
    /// The events of operations that are known to be complete; empty without the async proxy.
    complete: Vec<u32>,
    /// The events before a fence of the async proxy.
    fenced: BTreeMap<AsyncFence, Vec<u32>>,
}

impl Index<usize> for VectorClock {
    type Output = u32;

    fn index(&self, thread: usize) -> &u32 {
        &self.events[thread]
    }
}

/// Makes each number at least that of `other`.
fn raise(into: &mut [u32], other: &[u32]) {
    into.iter_mut()
        .zip(other)
        .for_each(|(a, &b)| *a = (*a).max(b));
}

impl VectorClock {
    /// A clock that knows no event.
    pub(super) fn new(code: &Code) -> VectorClock {
        let n = code.threads.len();
        VectorClock {
            events: vec![0; n],
            complete: vec![0; if code.proxies { n } else { 0 }],
            fenced: BTreeMap::new(),
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
        for (fence, events) in &other.fenced {
            match self.fenced.get_mut(fence) {
                Some(own) => raise(own, events),
                None => {
                    self.fenced.insert(*fence, events.clone());
                }
            }
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
    pub(super) fn crosses(&mut self, memory: FenceMemory, thread: usize, half: bool) {
        let fence = AsyncFence {
            memory,
            thread,
            half,
        };
        let fenced = self
            .fenced
            .entry(fence)
            .or_insert_with(|| vec![0; self.events.len()]);
        raise(fenced, &self.events);
    }

    /// Whether an access to a location, the event `time` of its thread, comes before the next
    /// access there. If their proxies differ, they also need a proxy fence between them.
    pub(super) fn orders(
        &self,
        code: &Code,
        loc: usize,
        (first, time): (ProxyAccess, u32),
        next: ProxyAccess,
    ) -> bool {
        if self[first.thread] < time {
            return false;
        }
        let [from, to] = [first, next].map(|a| code.cta[a.thread]);
        let from_async = first.proxy == Proxy::Async;
        match next.proxy == Proxy::Async {
            to_async if from_async == to_async && (!from_async || from == to) => return true,
            false if self.complete.get(first.thread) >= Some(&time) => return true,
            _ => {}
        }
        self.fenced.iter().any(|(fence, events)| {
            events[first.thread] >= time
                && fence.reaches(code, first, next)
                && code.is_in(loc, fence.memory, fence.thread)
        })
    }
}

impl AsyncFence {
    /// Whether it separates two accesses, by the option `async-fence`. A generic access of an
    /// asynchronous operation counts as one of any thread, which orders more.
    fn reaches(&self, code: &Code, first: ProxyAccess, next: ProxyAccess) -> bool {
        fn is_async(access: ProxyAccess) -> bool {
            access.proxy == Proxy::Async
        }
        let of_generic = |access: ProxyAccess| {
            code.agent(access.thread).is_some() || self.thread == access.thread
        };
        let begins = |access: ProxyAccess| {
            code.agent(access.thread)
                .is_some_and(|agent| agent.owner == self.thread)
        };
        match (code.fence_reach, is_async(first), is_async(next)) {
            (FenceReach::Path, ..) => true,
            _ if self.half => true,
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
