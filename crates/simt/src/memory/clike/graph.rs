//! The contents: the events so far, what each knows of the others, and the order of the writes of
//! each location.
//!
//! # Invariants
//! - An event's past is final: it is what happens before it in each region, itself left out.
//! - The first events are the initial writes, one per location, in the order of the locations.
//! - `order` has every write of a location, and `rank` where it stands there. Where the location
//!   has no modification order, only read-modify-writes give the list a meaning; without any, it
//!   has none.
//! - Apart from the numbers of events, which depend on who came first, equal histories have equal
//!   contents.

use std::rc::Rc;

use crate::code::{Code, Regions};
use crate::memory::early::Binds;
use crate::record::{Hazard, Source, Spot};
use crate::set::Set;
use program::Scope;

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Initial,
    Read,
    Write,
    Fence,
    Arrive,
    Wait,
    /// What a thread knows is handed to the runtime.
    Hand,
    /// A thread is told by the runtime.
    Tell,
}

impl Kind {
    /// Whether others are told of it.
    pub(super) fn gives(self) -> bool {
        matches!(self, Kind::Arrive | Kind::Hand)
    }
}

/// One event.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) kind: Kind,
    /// Meaningless for initial writes.
    pub(super) thread: usize,
    pub(super) instr: usize,
    /// Meaningless for fences and barriers.
    pub(super) loc: usize,
    pub(super) value: i64,
    /// Of a read: the write that it reads from.
    pub(super) source: usize,
    /// Of the write of a read-modify-write: its read.
    pub(super) read: Option<usize>,
    pub(super) regions: Regions,
    pub(super) acquire: bool,
    pub(super) release: bool,
    pub(super) sc: bool,
    /// An atomic operation or a fence.
    pub(super) atomic: bool,
    /// The effective scope, where global and where local memory is concerned.
    pub(super) scope: [Scope; 2],
    /// A wait whose acquire fence has not been carried out: nothing of its thread has followed yet.
    pub(super) open: bool,
    /// What happens before it, by region.
    pub(super) past: [Set; 2],
}

impl Event {
    /// One that neither accesses nor synchronizes yet.
    pub(super) fn new(kind: Kind, Spot { thread, instr }: Spot, regions: Regions) -> Event {
        Event {
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
        matches!(self.kind, Kind::Initial | Kind::Write)
    }

    pub(super) fn is_access(&self) -> bool {
        matches!(self.kind, Kind::Initial | Kind::Read | Kind::Write)
    }

    pub(super) fn is_fence(&self) -> bool {
        !self.is_access()
    }
}

/// What was assumed of a release sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pin {
    pub(super) head: usize,
    pub(super) last: usize,
    /// That nothing foreign ever comes between; else that something will.
    pub(super) holds: bool,
}

/// The contents.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    pub(super) events: Vec<Rc<Event>>,
    /// By thread: its events, in program order.
    pub(super) threads: Vec<Vec<usize>>,
    /// By thread: those of its events that are release fences.
    pub(super) fences: Vec<Vec<usize>>,
    /// By location: its writes.
    pub(super) order: Vec<Vec<usize>>,
    /// By event: where in its location's list a write is, and the how manieth write of its thread
    /// it is, in the order in which they were made; meaningless for others.
    rank: Vec<(u32, u32)>,
    pub(super) pins: Vec<Pin>,
    /// What was bound early: events that are in no thread's list yet.
    pub(super) early: Binds,
    /// The first race found.
    pub(super) race: Option<Hazard>,
    /// The first call of a function whose precondition did not hold: thread and instruction.
    pub(super) misuse: Option<(usize, usize)>,
}

impl Contents {
    pub(super) fn new(code: &Code, regions: impl Fn(usize) -> Regions) -> Contents {
        let initial = |(loc, location): (usize, &crate::code::Location)| {
            let initial = Event::new(
                Kind::Initial,
                Spot {
                    thread: usize::MAX,
                    instr: 0,
                },
                regions(loc),
            );
            Rc::new(Event {
                loc,
                value: location.init,
                ..initial
            })
        };
        Contents {
            events: code.locations.iter().enumerate().map(initial).collect(),
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
    pub(super) fn of(&self, thread: usize) -> impl DoubleEndedIterator<Item = (usize, &Event)> {
        self.threads[thread].iter().map(|&i| (i, &*self.events[i]))
    }

    /// Where in its location's list a write is.
    pub(super) fn position(&self, write: usize) -> usize {
        self.rank[write].0 as usize
    }

    /// Appends an event to its thread; gives its number. A write is in no list yet.
    pub(super) fn push(&mut self, event: Event) -> usize {
        let (thread, releases) = (event.thread, event.is_fence() && event.release);
        let index = self.number(event);
        self.threads[thread].push(index);
        if releases {
            self.fences[thread].push(index);
        }
        index
    }

    /// Gives an event its number.
    pub(super) fn number(&mut self, event: Event) -> usize {
        let mut made = 0;
        if event.is_write() {
            let committed = self.of(event.thread).filter(|(_, e)| e.kind == Kind::Write);
            let early = self.early.of(event.thread).filter(|b| b.write.is_some());
            made = committed.count() + early.count();
        }
        self.rank.push((0, made as u32));
        self.events.push(Rc::new(event));
        self.events.len() - 1
    }

    /// Appends an event that was early to its thread.
    pub(super) fn settle(&mut self, event: Event, index: usize) {
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

    /// Whether a write belongs to release sequences of a thread, wherever it stands in one.
    pub(super) fn is_member(&self, write: usize, thread: usize) -> bool {
        self.events[write].thread == thread || self.events[write].read.is_some()
    }

    /// Whether nothing foreign is between the ends of a release sequence.
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
    pub(super) fn name(&self, write: usize) -> Source {
        let event = &self.events[write];
        match event.kind {
            Kind::Initial => Source::Initial(event.loc),
            _ => Source::Write(event.thread, self.rank[write].1),
        }
    }

    /// The number of an event that does not depend on who came first: its thread, and how many
    /// events that had before.
    pub(super) fn place(&self, event: usize) -> (usize, usize) {
        let thread = self.events[event].thread;
        match self.threads.get(thread) {
            Some(list) => {
                let early = || list.len() + 1 + self.rank_of_bind(event);
                // In order, but for events that were early.
                let at = list
                    .binary_search(&event)
                    .ok()
                    .or_else(|| list.iter().rposition(|&i| i == event));
                (thread, at.unwrap_or_else(early))
            }
            None => (usize::MAX, event),
        }
    }

    /// Forgets an event that no other needs.
    pub(super) fn forget(&mut self, gone: usize) {
        let moved = |i: usize| i - usize::from(i > gone);
        self.events.remove(gone);
        self.rank.remove(gone);
        for event in &mut self.events {
            let e = Rc::make_mut(event);
            e.source = moved(e.source);
            e.read = e.read.map(moved);
            e.past = [e.past[0].without(gone), e.past[1].without(gone)];
        }
        for list in self
            .threads
            .iter_mut()
            .chain(&mut self.fences)
            .chain(&mut self.order)
        {
            list.retain(|&i| i != gone);
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
