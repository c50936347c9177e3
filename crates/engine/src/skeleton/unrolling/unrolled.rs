//! Defines the results of unrolling: guarded events, the operations of barriers, and the ends of
//! threads.

use super::state::UnrollState;
use crate::skeleton::event::Event;
use crate::skeleton::loops::Position;
use crate::skeleton::pool::{Cond, TermId, TermPool};
use crate::skeleton::progress::{LaneWait, Repeat, SpinIteration};
use cat::rel::EventId;
use program::host::QueryId;
use program::{Scope, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use verdict::{InstrPlace, Reason};

/// Instructions of threads.
pub(crate) type Instructions = FxHashSet<(ThreadId, usize)>;

/// Loops that take too many iterations to unroll to their end, by thread and rank of the head.
pub(crate) type LongLoops = FxHashSet<(ThreadId, u32)>;

/// A read-modify-write in a loop. It may write the value that it reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreservingRmw {
    pub(crate) thread: ThreadId,
    pub(crate) instr: usize,
    pub(crate) read: EventId,
    pub(crate) write: EventId,
    /// Whether the written value depends on the read.
    pub(crate) depends: bool,
}

/// Identifies one dynamic instance of a wait, across repeated unrollings of the same thread: its
/// position, and whether it waits to arrive.
pub(crate) type WaitKey = (ThreadId, Position, bool);

/// An arrival at a barrier, as unrolled.
#[derive(Clone, Debug)]
pub(crate) struct GuardedArrival {
    pub(crate) event: EventId,
    pub(crate) guard: Cond,
    /// The barrier.
    pub(crate) at: Use,
    pub(crate) place: Position,
}

/// Threads that meet to exchange values.
#[derive(Clone, Debug)]
pub(crate) struct LaneMeeting {
    pub(crate) guard: Cond,
    /// The number of events when they met.
    pub(crate) events: usize,
    /// The threads, each with its position.
    pub(crate) threads: Vec<(ThreadId, Position)>,
}

impl LaneMeeting {
    /// The threads that meet.
    fn lanes(&self) -> impl Iterator<Item = ThreadId> {
        self.threads.iter().map(|lane| lane.0)
    }
}

/// Iterations in which a thread only reads and meets others, and that bring it back where it was.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) thread: ThreadId,
    pub(crate) from: Position,
    /// The position at which they end, in the following iteration.
    pub(crate) to: Position,
    /// Identifies the loop and the iteration; `length` is the number of iterations.
    pub(crate) number: Vec<u32>,
    pub(crate) length: u32,
    /// The condition that the thread runs through them and continues.
    pub(crate) when: Cond,
    /// Whether they must have occurred once before they can be left out.
    pub(crate) twice: bool,
}

/// A wait at a barrier, as unrolled.
#[derive(Clone, Debug)]
pub(crate) struct GuardedWait {
    pub(crate) key: WaitKey,
    /// The event that executes if it passes: a wait, or the arrival that it delays.
    pub(crate) event: EventId,
    /// Guard of the instruction: the thread reached the wait.
    pub(crate) reached: Cond,
    /// Whether it passes: a choice, or true if that is sure.
    pub(crate) pass: Cond,
    /// The barrier.
    pub(crate) at: Use,
}

impl GuardedWait {
    /// Whether it only delays an arrival: a thread that has arrived cannot arrive again before the
    /// phase completes.
    pub(crate) fn to_arrive(&self) -> bool {
        self.key.2
    }
}

/// A barrier as an operation of a thread names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) thread: ThreadId,
    pub(crate) group: BarrierGroup,
    pub(crate) naming: Naming,
}

/// The threads that a barrier can bring together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BarrierGroup {
    pub(crate) domain: Scope,
    /// For a warp: the named lanes.
    pub(crate) lanes: Option<u32>,
}

/// [`BarrierNaming`](program::BarrierNaming) with its operands evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
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
pub(crate) struct ThreadEndings {
    /// It ran to its end.
    pub(crate) done: Cond,
    /// The loop bound cut it.
    pub(crate) cut: Cond,
    /// As `cut`, with the first instruction of the loop.
    pub(crate) cuts: Vec<(Cond, usize)>,
    /// It spins in an iteration without effect.
    pub(crate) spinning: Cond,
    /// As `spinning`, by iteration, with the instruction at which it begins.
    pub(crate) spins: Vec<(Cond, usize)>,
    /// As `spinning`, and with iterations that are left out only if several follow each other.
    pub(crate) idle: Cond,
    /// Final value of each register, if done; for questions about progress, wherever the thread
    /// ends.
    pub(crate) regs: Vec<TermId>,
    /// The further ends for questions about progress.
    pub(crate) progress: ProgressEndings,
}

/// The further ways in which a thread can end, for questions about progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProgressEndings {
    /// The scheduler never runs it again, by place.
    pub(crate) stopped: Vec<(usize, Cond)>,
    /// It waits for lanes that never arrive.
    pub(crate) apart: Vec<(LaneWait, Cond)>,
    /// It spins in an iteration without effect, by iteration.
    pub(crate) spins: Vec<SpinIteration>,
    /// It repeats blocks of iterations.
    pub(crate) repeats: Vec<Repeat>,
    /// The merged states in which the thread ends, if the question needs their registers.
    pub(crate) at_end: Option<UnrollState>,
}

/// The results of unrolling.
#[derive(Default)]
pub(crate) struct Unrolling {
    pub(crate) pool: TermPool,
    pub(crate) events: Vec<Event>,
    pub(crate) rmw: Vec<(EventId, EventId)>,
    /// By value read from several cells: its pieces.
    pub(crate) pieces: FxHashMap<TermId, Vec<TermId>>,
    pub(crate) arrivals: Vec<GuardedArrival>,
    pub(crate) waits: Vec<GuardedWait>,
    /// Barriers of the suites on ways that no execution takes: they are never reached.
    pub(crate) unreached: Vec<Use>,
    pub(crate) endings: Vec<ThreadEndings>,
    /// Syntactic dependencies, if the options require them: address, data, control.
    pub(crate) addr: Vec<(EventId, EventId)>,
    pub(crate) data: Vec<(EventId, EventId)>,
    pub(crate) ctrl: Vec<(EventId, EventId)>,
    pub(crate) has_loops: bool,
    /// Read-modify-writes in loops that may write the value they read.
    pub(crate) kept: Vec<PreservingRmw>,
    /// Reads in loops.
    pub(crate) looped: Instructions,
    /// Whether iterations were left out, with such read-modify-writes or without.
    pub(crate) left_out: BTreeSet<bool>,
    /// Iterations that several threads can leave out together.
    pub(crate) segments: Vec<Segment>,
    /// The smallest bound that cuts nothing in the unrolled part.
    pub(crate) deepest: u32,
    /// Whether some iterations did not count against the bound, and the loops with too many of
    /// them.
    pub(crate) counted: bool,
    pub(crate) long: LongLoops,
    /// For questions about progress: the constraints on choices of this module, and the position of
    /// every event of a thread.
    pub(crate) constraints: Vec<Cond>,
    pub(crate) places: Vec<(EventId, Position)>,
    /// For questions about progress: the choices of weak compare-exchanges to fail spuriously, with
    /// their positions.
    pub(crate) spurious: Vec<(ThreadId, Position, Cond)>,
    /// Every execution of a query.
    pub(crate) answers: Vec<QueryAnswer>,
    /// Pairs of an event before a meeting of lanes and an event of another lane after it: the base
    /// relation `meets`.
    pub(crate) meets: Vec<(EventId, EventId, Cond)>,
    pub(crate) meetings: Vec<LaneMeeting>,
    /// The place where a thread waits for lanes that may not arrive.
    pub(crate) apart: Option<Reason>,
    /// The condition that a thread waits for lanes that do not arrive, with its place.
    pub(crate) unmet: Vec<(Cond, InstrPlace)>,
}

impl Unrolling {
    /// Records which events meetings separate: an event of one lane before a meeting, and one of
    /// another lane after it. If two lanes met before under the same condition, or surely, that
    /// meeting has the pairs with earlier events: events after the later one are after both.
    fn separate_by_meetings(&mut self) {
        let mut of_thread: FxHashMap<ThreadId, Vec<usize>> = FxHashMap::default();
        for (i, event) in self.events.iter().enumerate() {
            if let Some(thread) = event.thread {
                of_thread.entry(thread).or_default().push(i);
            }
        }
        let mut last: FxHashMap<(ThreadId, ThreadId, Cond), usize> = FxHashMap::default();
        for met in &self.meetings {
            for a in met.lanes() {
                for b in met.lanes().filter(|b| *b != a) {
                    let [from, surely] = [met.guard, Cond::TRUE]
                        .map(|guard| last.get(&(a, b, guard)).copied().unwrap_or(0));
                    last.insert((a, b, met.guard), met.events);
                    let [of_a, of_b] = [a, b].map(|t| of_thread.get(&t).map_or(&[][..], |e| e));
                    let before = of_a.partition_point(|e| *e < from.max(surely));
                    let until = of_a.partition_point(|e| *e < met.events);
                    let after = of_b.partition_point(|e| *e < met.events);
                    for &x in &of_a[before..until] {
                        let pairs = of_b[after..].iter();
                        let pairs = pairs.map(|&y| (EventId::new(x), EventId::new(y), met.guard));
                        self.meets.extend(pairs);
                    }
                }
            }
        }
    }

    /// Records which events meetings separate. Renumbers all events thread by thread, because
    /// threads that meet were unrolled together.
    pub(crate) fn in_order_of_threads(&mut self) {
        self.separate_by_meetings();
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
pub(crate) struct QueryAnswer {
    pub(crate) query: QueryId,
    pub(crate) thread: ThreadId,
    pub(crate) instr: usize,
    pub(crate) place: Position,
    /// The number of events before it: later events of its thread have higher numbers.
    pub(crate) events: usize,
    pub(crate) guard: Cond,
    /// Whether the answer is "not complete": a choice.
    pub(crate) open: Cond,
    /// Whether the answer says that a command has not started.
    pub(crate) waiting: Cond,
    /// Whether the answer says that a command was not submitted.
    pub(crate) queued: Cond,
    /// The condition that it repeats without end: in an iteration without effect that represents
    /// all further ones, or in a repeated one.
    pub(crate) for_ever: Cond,
}

#[cfg(test)]
mod tests {
    use super::*;
    use program::{EventKind, Tags, Ty};

    /// A fence of a thread.
    fn fence(thread: u16) -> Event {
        Event {
            kind: EventKind::Fence,
            thread: Some(ThreadId(thread)),
            instr: 0,
            guard: Cond::TRUE,
            tags: Tags::default(),
            scope: None,
            addr: None,
            value: None,
            ty: Ty::WORD,
            part: 0,
            parts: 1,
        }
    }

    /// Three threads with events in turn, and their meetings: the second is one of two threads.
    fn meeting(guards: [Cond; 3], pool: TermPool) -> Unrolling {
        let met = |at: usize| LaneMeeting {
            guard: guards[at],
            events: 3 * (at + 1),
            threads: (0..if at == 1 { 2 } else { 3 })
                .map(|t| (ThreadId(t), Position::default()))
                .collect(),
        };
        Unrolling {
            events: (0..12).map(|i| fence(i % 3)).collect(),
            meetings: (0..guards.len()).map(met).collect(),
            pool,
            ..Unrolling::default()
        }
    }

    #[test]
    fn meetings_separate_events_under_their_conditions() {
        let mut pool = TermPool::default();
        let of = [Cond::TRUE, pool.fresh_choice(), pool.fresh_choice()];
        for n in 0..27 {
            let mut out = meeting([of[n % 3], of[n / 3 % 3], of[n / 9]], pool.clone());
            out.separate_by_meetings();
            for (x, y) in (0..12).flat_map(|x| (0..12).map(move |y| (x, y))) {
                let apart = out.meetings.iter().filter(|met| {
                    let lanes = [x, y].map(|e| out.events[e].thread.expect("of a thread"));
                    let both = lanes.iter().all(|t| met.lanes().any(|lane| lane == *t));
                    both && lanes[0] != lanes[1] && x < met.events && met.events <= y
                });
                let pairs = out
                    .meets
                    .iter()
                    .filter(|p| (p.0.index(), p.1.index()) == (x, y));
                let listed: Vec<Cond> = pairs.map(|pair| pair.2).collect();
                let pool = &mut out.pool;
                let expected = apart.fold(Cond::FALSE, |any, met| pool.or(any, met.guard));
                let any = listed.iter().fold(Cond::FALSE, |any, c| pool.or(any, *c));
                assert_eq!(any, expected, "{n}: {x} {y}");
                let once: FxHashSet<&Cond> = listed.iter().collect();
                assert_eq!(once.len(), listed.len(), "{n}: {x} {y}");
            }
        }
    }
}
