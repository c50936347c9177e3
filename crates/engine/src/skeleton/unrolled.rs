//! Defines the results of unrolling: guarded events, the operations of barriers, and the ends of
//! threads.

use super::event::Event;
use super::kept::PreservingRmw;
use super::loops::Position;
use super::pool::{Cond, TermId, TermPool};
use super::progress::{LaneWait, Repeat, SpinIteration};
use super::racing::Instructions;
use super::returns::LongLoops;
use super::unroll::UnrollState;
use cat::rel::EventId;
use program::host::QueryId;
use program::{Scope, ThreadId};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use verdict::{Place, Reason};

/// Identifies one dynamic instance of a wait, across repeated unrollings of the same thread: its
/// position, and whether it waits to arrive.
pub(super) type WaitKey = (ThreadId, Position, bool);

/// An arrival at a barrier, as unrolled.
#[derive(Clone, Debug)]
pub(super) struct GuardedArrival {
    pub(super) event: EventId,
    pub(super) guard: Cond,
    /// The barrier.
    pub(super) at: Use,
    pub(super) place: Position,
}

/// Threads that meet to exchange values.
#[derive(Clone, Debug)]
pub(super) struct LaneMeeting {
    pub(super) guard: Cond,
    /// The number of events when they met.
    pub(super) events: usize,
    /// The threads, each with its position.
    pub(super) threads: Vec<(ThreadId, Position)>,
}

/// Iterations in which a thread only reads and meets others, and that bring it back where it was.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) thread: ThreadId,
    pub(super) from: Position,
    /// The position at which they end, in the following iteration.
    pub(super) to: Position,
    /// Identifies the loop and the iteration; `length` is the number of iterations.
    pub(super) number: Vec<u32>,
    pub(super) length: u32,
    /// The condition that the thread runs through them and continues.
    pub(super) when: Cond,
    /// Whether they must have occurred once before they can be left out.
    pub(super) twice: bool,
}

/// A wait at a barrier, as unrolled.
#[derive(Clone, Debug)]
pub(super) struct GuardedWait {
    pub(super) key: WaitKey,
    /// The event that executes if it passes: a wait, or the arrival that it delays.
    pub(super) event: EventId,
    /// Guard of the instruction: the thread reached the wait.
    pub(super) reached: Cond,
    /// Whether it passes: a choice, or true if that is sure.
    pub(super) pass: Cond,
    /// The barrier.
    pub(super) at: Use,
}

impl GuardedWait {
    /// Whether it only delays an arrival: a thread that has arrived cannot arrive again before the
    /// phase completes.
    pub(super) fn to_arrive(&self) -> bool {
        self.key.2
    }
}

/// A barrier as an operation of a thread names it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) thread: ThreadId,
    pub(super) group: BarrierGroup,
    pub(super) naming: Naming,
}

/// The threads that a barrier can bring together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BarrierGroup {
    pub(super) domain: Scope,
    /// For a warp: the named lanes.
    pub(super) lanes: Option<u32>,
}

/// [`BarrierNaming`](program::BarrierNaming) with its operands evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    Counted {
        id: TermId,
        count: Option<TermId>,
    },
    Instance {
        instance: i64,
        id: Option<TermId>,
        quorum: Option<TermId>,
    },
}

/// The ways in which a thread's states end.
#[derive(Clone, Debug)]
pub(super) struct ThreadEndings {
    /// It ran to its end.
    pub(super) done: Cond,
    /// The loop bound cut it.
    pub(super) cut: Cond,
    /// As `cut`, with the first instruction of the loop.
    pub(super) cuts: Vec<(Cond, usize)>,
    /// It spins in an iteration without effect.
    pub(super) spinning: Cond,
    /// As `spinning`, by iteration, with the instruction at which it begins.
    pub(super) spins: Vec<(Cond, usize)>,
    /// As `spinning`, and with iterations that are left out only if several follow each other.
    pub(super) idle: Cond,
    /// Final value of each register, if done; for questions about progress, wherever the thread
    /// ends.
    pub(super) regs: Vec<TermId>,
    /// The further ends for questions about progress.
    pub(super) progress: ProgressEndings,
}

/// The further ways in which a thread can end, for questions about progress.
#[derive(Clone, Debug, Default)]
pub(super) struct ProgressEndings {
    /// The scheduler never runs it again, by place.
    pub(super) stopped: Vec<(usize, Cond)>,
    /// It waits for lanes that never arrive.
    pub(super) apart: Vec<(LaneWait, Cond)>,
    /// It spins in an iteration without effect, by iteration.
    pub(super) spins: Vec<SpinIteration>,
    /// It repeats blocks of iterations.
    pub(super) repeats: Vec<Repeat>,
    /// The merged states in which the thread ends, if the question needs their registers.
    pub(super) at_end: Option<UnrollState>,
}

/// The results of unrolling.
#[derive(Default)]
pub(super) struct Unrolling {
    pub(super) pool: TermPool,
    pub(super) events: Vec<Event>,
    pub(super) rmw: Vec<(EventId, EventId)>,
    /// By value read from several cells: its pieces.
    pub(super) pieces: FxHashMap<TermId, Vec<TermId>>,
    pub(super) arrivals: Vec<GuardedArrival>,
    pub(super) waits: Vec<GuardedWait>,
    /// Barriers of the suites on ways that no execution takes: they are never reached.
    pub(super) unreached: Vec<Use>,
    pub(super) endings: Vec<ThreadEndings>,
    /// Syntactic dependencies, if the options require them: address, data, control.
    pub(super) addr: Vec<(EventId, EventId)>,
    pub(super) data: Vec<(EventId, EventId)>,
    pub(super) ctrl: Vec<(EventId, EventId)>,
    pub(super) has_loops: bool,
    /// Read-modify-writes in loops that may write the value they read.
    pub(super) kept: Vec<PreservingRmw>,
    /// Reads in loops.
    pub(super) looped: Instructions,
    /// Whether iterations were left out, with such read-modify-writes or without.
    pub(super) left_out: BTreeSet<bool>,
    /// Iterations that several threads can leave out together.
    pub(super) segments: Vec<Segment>,
    /// The smallest bound that cuts nothing in the unrolled part.
    pub(super) deepest: u32,
    /// Whether some iterations did not count against the bound, and the loops with too many of
    /// them.
    pub(super) counted: bool,
    pub(super) long: LongLoops,
    /// For questions about progress: the constraints on choices of this module, and the position of
    /// every event of a thread.
    pub(super) constraints: Vec<Cond>,
    pub(super) places: Vec<(EventId, Position)>,
    /// For questions about progress: the choices of weak compare-exchanges to fail spuriously, with
    /// their positions.
    pub(super) spurious: Vec<(ThreadId, Position, Cond)>,
    /// Every execution of a query.
    pub(super) answers: Vec<QueryAnswer>,
    /// Pairs of an event before a meeting of lanes and an event of another lane after it: the base
    /// relation `meets`.
    pub(super) meets: Vec<(EventId, EventId, Cond)>,
    pub(super) meetings: Vec<LaneMeeting>,
    /// The place where a thread waits for lanes that may not arrive.
    pub(super) apart: Option<Reason>,
    /// The condition that a thread waits for lanes that do not arrive, with its place.
    pub(super) unmet: Vec<(Cond, Place)>,
}

impl Unrolling {
    /// Records which events meetings separate. Renumbers all events thread by thread, because
    /// threads that meet were unrolled together.
    pub(super) fn in_order_of_threads(&mut self) {
        let is_of = |e: &usize, t: ThreadId| self.events[*e].thread == Some(t);
        for LaneMeeting {
            guard: when,
            events,
            threads,
        } in &self.meetings
        {
            let each = || threads.iter().map(|(t, _)| *t);
            for (a, b) in each()
                .flat_map(|a| each().map(move |b| (a, b)))
                .filter(|(a, b)| a != b)
            {
                for before in (0..*events).filter(|e| is_of(e, a)) {
                    let after = (*events..self.events.len()).filter(|e| is_of(e, b));
                    self.meets
                        .extend(after.map(|e| (EventId::new(before), EventId::new(e), *when)));
                }
            }
        }
        if self.events.is_sorted_by_key(|e| e.thread) {
            return;
        }
        let mut order: Vec<usize> = (0..self.events.len()).collect();
        order.sort_by_key(|&i| self.events[i].thread);
        let mut of = vec![EventId::new(0); order.len()];
        order
            .iter()
            .enumerate()
            .for_each(|(new, &old)| of[old] = EventId::new(new));
        self.pool.renumber(&of);
        self.events = order.iter().map(|&old| self.events[old].clone()).collect();
        let pairs = [
            &mut self.rmw,
            &mut self.addr,
            &mut self.data,
            &mut self.ctrl,
        ];
        pairs.into_iter().flatten().for_each(|(a, b)| {
            renumber(&of, a);
            renumber(&of, b);
        });
        self.meets.iter_mut().for_each(|(a, b, _)| {
            renumber(&of, a);
            renumber(&of, b);
        });
        self.kept.iter_mut().for_each(|k| {
            renumber(&of, &mut k.read);
            renumber(&of, &mut k.write);
        });
        self.arrivals
            .iter_mut()
            .for_each(|a| renumber(&of, &mut a.event));
        self.arrivals.sort_by_key(|a| a.event);
        self.waits
            .iter_mut()
            .for_each(|w| renumber(&of, &mut w.event));
        self.waits.sort_by_key(|w| (w.at.thread, w.event));
        self.places.iter_mut().for_each(|(e, _)| renumber(&of, e));
        self.places.sort_by_key(|(e, _)| *e);
        for answer in &mut self.answers {
            let later = (answer.events..of.len()).map(|i| of[i]);
            let later = later.filter(|e| self.events[e.index()].thread == Some(answer.thread));
            answer.events = later.map(EventId::index).min().unwrap_or(of.len());
        }
        for ending in &mut self.endings {
            ending
                .progress
                .spins
                .iter_mut()
                .flat_map(|s| &mut s.events)
                .for_each(|e| renumber(&of, e));
            let pairs = ending
                .progress
                .repeats
                .iter_mut()
                .flat_map(|r| &mut r.pairs);
            pairs
                .flat_map(|(a, b)| [a, b])
                .flatten()
                .for_each(|e| renumber(&of, e));
        }
    }
}

/// Gives an event its new number.
fn renumber(of: &[EventId], e: &mut EventId) {
    if let Some(new) = of.get(e.index()) {
        *e = *new;
    }
}

/// One execution of a query, as unrolled.
#[derive(Clone, Debug)]
pub(super) struct QueryAnswer {
    pub(super) query: QueryId,
    pub(super) thread: ThreadId,
    pub(super) instr: usize,
    pub(super) place: Position,
    /// The number of events before it: later events of its thread have higher numbers.
    pub(super) events: usize,
    pub(super) guard: Cond,
    /// Whether the answer is "not complete": a choice.
    pub(super) open: Cond,
    /// The condition that it repeats without end: in an iteration without effect that represents
    /// all further ones, or in a repeated one.
    pub(super) for_ever: Cond,
}
