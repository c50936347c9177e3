//! The contents of the memory: the events so far, the past of each, and the order of the writes of
//! each location.
//!
//! # Invariants
//! - An event's past is final: the events that happen before it in each region, without itself.
//! - The first events are the initial writes, one per location, in the order of the locations.
//! - `order` lists every write of a location, and `rank` its index there. For a location without
//!   modification order, only read-modify-writes give the list a meaning.
//! - Equal histories have equal contents, except for the numbers of events, which depend on the
//!   order of commits.

use std::rc::Rc;

use rustc_hash::FxHashSet;

use crate::code::{Code, Regions};
use crate::memory::early::Binds;
use crate::record::{RunHazard, Spot, WriteId};
use crate::set::Set;
use program::Scope;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum HistoryKind {
    Initial,
    Read,
    Write,
    Fence,
    Arrive,
    Wait,
    /// A thread hands its knowledge to the runtime.
    Hand,
    /// A thread learns from the runtime.
    Tell,
}

impl HistoryKind {
    /// Whether it hands knowledge to others.
    pub(super) fn gives(self) -> bool {
        matches!(self, HistoryKind::Arrive | HistoryKind::Hand)
    }
}

/// One event.
#[derive(Clone, Debug)]
pub(super) struct HistoryEvent {
    pub(super) kind: HistoryKind,
    /// Meaningless for initial writes.
    pub(super) thread: usize,
    pub(super) instr: usize,
    /// Meaningless for fences and barriers.
    pub(super) loc: usize,
    /// For the arrival or wait at a warp's barrier: its mask of lanes. Meaningless for fences.
    pub(super) value: i64,
    /// For a read: the write that it reads from.
    pub(super) source: usize,
    /// For the write of a read-modify-write: its read.
    pub(super) read: Option<usize>,
    pub(super) regions: Regions,
    pub(super) acquire: bool,
    pub(super) release: bool,
    pub(super) sc: bool,
    /// Whether it is an atomic operation or a fence.
    pub(super) atomic: bool,
    /// The effective scope, for global and for local memory.
    pub(super) scope: [Scope; 2],
    /// Whether it is a wait whose acquire fence is still to come: it is the last event of its
    /// thread.
    pub(super) open: bool,
    /// The events that happen before it, by region.
    pub(super) past: [Set; 2],
}

impl HistoryEvent {
    /// An event that neither accesses nor synchronizes yet.
    pub(super) fn new(
        kind: HistoryKind,
        Spot { thread, instr }: Spot,
        regions: Regions,
    ) -> HistoryEvent {
        HistoryEvent {
            kind,
            thread,
            instr,
            loc: usize::MAX,
            value: 0,
            source: 0,
            read: None,
            regions,
            acquire: false,
            release: false,
            sc: false,
            atomic: false,
            scope: [Scope::Thread; 2],
            open: false,
            past: Default::default(),
        }
    }

    pub(super) fn is_write(&self) -> bool {
        matches!(self.kind, HistoryKind::Initial | HistoryKind::Write)
    }

    pub(super) fn is_access(&self) -> bool {
        matches!(
            self.kind,
            HistoryKind::Initial | HistoryKind::Read | HistoryKind::Write
        )
    }

    pub(super) fn is_fence(&self) -> bool {
        !self.is_access()
    }
}

/// An assumption about a release sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pin {
    pub(super) head: usize,
    pub(super) last: usize,
    /// Whether it assumes that no foreign write ever comes between; otherwise, that one will.
    pub(super) holds: bool,
}

/// The contents.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(super) events: Vec<Rc<HistoryEvent>>,
    /// By thread: its events, in program order.
    pub(super) threads: Vec<Vec<usize>>,
    /// By thread: its release fences.
    pub(super) fences: Vec<Vec<usize>>,
    /// By location: its writes.
    pub(super) order: Vec<Vec<usize>>,
    /// By write: its index in its location's list, and its index among its thread's writes, in the
    /// order of their creation. Meaningless for other events.
    rank: Vec<(u32, u32)>,
    pub(super) pins: Vec<Pin>,
    /// Early events, which are in no thread's list yet.
    pub(super) early: Binds,
    /// The first race found.
    pub(super) race: Option<RunHazard>,
    /// The first library call whose precondition did not hold: thread and instruction.
    pub(super) misuse: Option<(usize, usize)>,
}

impl History {
    pub(super) fn new(code: &Code, regions: impl Fn(usize) -> Regions) -> History {
        History {
            events: code
                .locations
                .iter()
                .enumerate()
                .map(|(loc, location)| {
                    let initial = HistoryEvent::new(
                        HistoryKind::Initial,
                        Spot {
                            thread: usize::MAX,
                            instr: 0,
                        },
                        regions(loc),
                    );
                    Rc::new(HistoryEvent {
                        loc,
                        value: location.init,
                        ..initial
                    })
                })
                .collect(),
            threads: vec![Vec::new(); code.threads.len()],
            fences: vec![Vec::new(); code.threads.len()],
            order: (0..code.locations.len()).map(|loc| vec![loc]).collect(),
            rank: vec![(0, 0); code.locations.len()],
            early: Binds::default(),
            pins: Vec::new(),
            race: None,
            misuse: None,
        }
    }

    /// The events of a thread, in program order.
    pub(super) fn of(
        &self,
        thread: usize,
    ) -> impl DoubleEndedIterator<Item = (usize, &HistoryEvent)> {
        self.threads[thread].iter().map(|&i| (i, &*self.events[i]))
    }

    /// The index of a write in its location's list.
    pub(super) fn position(&self, write: usize) -> usize {
        self.rank[write].0 as usize
    }

    /// Appends an event to its thread and returns its number. A write is in no list yet.
    pub(super) fn push(&mut self, event: HistoryEvent) -> usize {
        let (thread, releases) = (event.thread, event.is_fence() && event.release);
        let index = self.number(event);
        self.threads[thread].push(index);
        if releases {
            self.fences[thread].push(index);
        }
        index
    }

    /// Assigns a number to an event.
    pub(super) fn number(&mut self, event: HistoryEvent) -> usize {
        let mut made = 0;
        if event.is_write() {
            let committed = self
                .of(event.thread)
                .filter(|(_, e)| e.kind == HistoryKind::Write);
            let early = self.early.of(event.thread).filter(|b| b.write.is_some());
            made = committed.count() + early.count();
        }
        self.rank.push((0, made as u32));
        self.events.push(Rc::new(event));
        self.events.len() - 1
    }

    /// Appends an early event to its thread.
    pub(super) fn settle(&mut self, event: HistoryEvent, index: usize) {
        self.threads[event.thread].push(index);
        self.events[index] = Rc::new(event);
    }

    /// Puts a write into its location's list.
    pub(super) fn place_at(&mut self, write: usize, at: usize) {
        let list = &mut self.order[self.events[write].loc];
        list.insert(at, write);
        list.iter()
            .enumerate()
            .skip(at)
            .for_each(|(rank, &w)| self.rank[w].0 = rank as u32);
    }

    /// Whether a write can be a member of a release sequence of the thread, at any position.
    pub(super) fn is_member(&self, write: usize, thread: usize) -> bool {
        self.events[write].thread == thread || self.events[write].read.is_some()
    }

    /// Whether no foreign write is between the ends of a release sequence.
    pub(super) fn is_run(&self, pin: Pin) -> bool {
        let (head, from, to) = (
            &self.events[pin.head],
            self.position(pin.head),
            self.position(pin.last),
        );
        self.order[head.loc][from..to]
            .iter()
            .all(|&w| self.is_member(w, head.thread))
    }

    /// The name of a write for the log.
    pub(super) fn name(&self, write: usize) -> WriteId {
        let event = &self.events[write];
        match event.kind {
            HistoryKind::Initial => WriteId::Initial(event.loc),
            _ => WriteId::Write(event.thread, self.rank[write].1),
        }
    }

    /// A number of an event that does not depend on the order of commits: its thread, and its index
    /// there.
    pub(super) fn place(&self, event: usize) -> (usize, usize) {
        let thread = self.events[event].thread;
        match self.threads.get(thread) {
            Some(list) => {
                // The list is in order, except for events that were early.
                let at = list
                    .binary_search(&event)
                    .ok()
                    .or_else(|| list.iter().rposition(|&i| i == event));
                (
                    thread,
                    at.unwrap_or_else(|| list.len() + 1 + self.rank_of_bind(event)),
                )
            }
            None => (usize::MAX, event),
        }
    }

    /// Forgets events that no other needs.
    pub(super) fn forget(&mut self, gone: &FxHashSet<usize>) {
        let mut kept = 0;
        let to: Vec<usize> = (0..self.events.len())
            .map(|i| {
                let at = kept;
                kept += usize::from(!gone.contains(&i));
                at
            })
            .collect();
        let moved = |i: usize| to.get(i).copied().unwrap_or(i);
        let stays = |i: &usize| !gone.contains(i);
        let without = |set: &Set| set.iter().filter(stays).map(moved).collect::<Set>();
        let mut at = 0..;
        self.events
            .retain(|_| at.next().as_ref().is_some_and(stays));
        let mut at = 0..;
        self.rank.retain(|_| at.next().as_ref().is_some_and(stays));
        for event in &mut self.events {
            let e = Rc::make_mut(event);
            e.source = moved(e.source);
            e.read = e.read.map(moved);
            e.past = [without(&e.past[0]), without(&e.past[1])];
        }
        for list in self
            .threads
            .iter_mut()
            .chain(&mut self.fences)
            .chain(&mut self.order)
        {
            list.retain(stays);
            list.iter_mut().for_each(|i| *i = moved(*i));
        }
        for pin in &mut self.pins {
            (pin.head, pin.last) = (moved(pin.head), moved(pin.last));
        }
        for bind in self.early.iter_mut() {
            (bind.read, bind.write) = (bind.read.map(moved), bind.write.map(moved));
        }
    }
}
