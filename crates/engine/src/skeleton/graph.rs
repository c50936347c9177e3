//! Defines the guarded event graph, and its size limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use cat::rel::{EventId, Rel};
use program::litmus::Observable;
use program::memory::{CellId, Memory};
use program::options::OptionValues;
use program::unknown::Site;
use program::{EventKind, Program, ThreadId, Ty};
use verdict::InstrPlace;

use super::event::Event;
use super::fixed::UnwrittenObjects;
use super::pool::{Cond, TermId, TermPool};
use super::progress::{ProgressFacts, ThreadProgress};

/// The largest number of events: relations are dense, so memory grows with the square.
pub const MAX_EVENTS: usize = 6144;
/// The largest number of steps of one thread during unrolling.
pub(crate) const MAX_STEPS: usize = 200_000;
/// The largest depth of nested values: functions that walk them recurse as deep.
pub(crate) const MAX_VALUE_DEPTH: u32 = 4_000;
/// The largest number of arrivals at one barrier with undetermined phases.
pub(crate) const MAX_PHASE_CHOICES: usize = 12;

/// Pairs of events, each under a condition that holds given that both execute.
pub(super) type Edges = Vec<(EventId, EventId, Cond)>;

/// The kinds of pairs of events that a program fixes. Most are base relations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EdgeKind {
    /// Order in time from barriers; with program order it must be acyclic. It has [`Sync`],
    /// [`Exits`], and arrivals of one phase before those of the next. If phases are chosen, it also
    /// has the order from lanes that meet.
    ///
    /// [`Sync`]: EdgeKind::Sync
    /// [`Exits`]: EdgeKind::Exits
    BarrierOrder,
    /// Arrival to wait of one barrier and phase: `syncbar`.
    Sync,
    /// Event of a thread to a wait that passes because that thread has ended: `exitbar`.
    Exits,
    /// Event of a phase to an arrival of the next one that waited for the end of the phase:
    /// `nextbar`.
    Next,
    /// Events before a meeting of lanes to those of other lanes after it: `meets`.
    Meets,
    /// `divergence`: relates an arrival to itself if some thread of the group never arrives in that
    /// phase, because it ends, or waits elsewhere without end. In PTX it also relates aligned
    /// arrivals of a warp that diverges.
    Divergence,
    /// Arrivals at one barrier with different thread counts, in either order of their phases:
    /// `unlike-count`.
    UnlikeCount,
    /// Such pairs within one phase: `unlike-met`.
    UnlikeMet,
    /// Repeated arrivals or waits of a thread at a barrier where they have to take turns:
    /// `out-of-turn`.
    OutOfTurn,
    /// Order from calls of the runtime: `launch`.
    Launch,
    /// The same, for fine-grained memory: `launch-fine`.
    LaunchFine,
    /// `call-order`.
    CallOrder,
    /// `dependents`.
    Dependents,
    /// Address dependencies.
    Addr,
    /// Data dependencies.
    Data,
    /// Control dependencies.
    Ctrl,
    /// Pairs of a read and a write: the read decides the value, the address or the execution of the
    /// write. The option `dep` does not change these pairs.
    Flow,
}

/// Pairs of events by kind, each under a condition that holds given that both execute.
#[derive(Clone, Debug, Default)]
pub(crate) struct EdgeLists(BTreeMap<EdgeKind, Edges>);

impl EdgeLists {
    /// The pairs of a kind.
    pub(crate) fn of(&self, kind: EdgeKind) -> &[(EventId, EventId, Cond)] {
        self.0.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// The pairs of a kind, to change.
    pub(crate) fn of_mut(&mut self, kind: EdgeKind) -> &mut Edges {
        self.0.entry(kind).or_default()
    }

    /// Adds a pair.
    pub(crate) fn add(&mut self, kind: EdgeKind, edge: (EventId, EventId, Cond)) {
        self.of_mut(kind).push(edge);
    }

    /// Adds the pairs of other kinds.
    pub(crate) fn append(&mut self, mut others: EdgeLists) {
        self.0.append(&mut others.0);
    }

    /// The conditions of all pairs.
    fn conds(&self) -> impl Iterator<Item = Cond> {
        self.0.values().flatten().map(|edge| edge.2)
    }
}

/// An instruction of a thread.
pub(crate) fn place(program: &Program, site: Site) -> InstrPlace {
    let (thread, at) = site;
    let thread = program.thread(thread);
    let instr = &thread.code[at];
    InstrPlace {
        text: instr.text.clone(),
        thread: thread.name.clone(),
        line: instr.line.clone(),
    }
}

/// A test's guarded event graph.
#[derive(Clone, Debug)]
pub struct Skeleton {
    /// The program it was built from.
    pub program: Arc<Program>,
    /// The options it was built for.
    pub options: OptionValues,
    /// The loop bound it was built for.
    pub bound: u32,
    /// Terms and conditions.
    pub pool: TermPool,
    /// The address map.
    pub memory: Memory,
    /// The objects that no thread writes.
    pub fixed: UnwrittenObjects,
    /// All events.
    pub events: Vec<Event>,
    /// The cell of each initial write, by event index.
    pub init_cells: Vec<CellId>,
    /// The condition that each thread runs to its end.
    pub done: Vec<Cond>,
    /// The condition that final values exist: every thread runs to its end, or was unrolled to have
    /// final values wherever it stops.
    pub complete: Cond,
    /// The condition that the loop bound cuts some thread.
    pub cut: Cond,
    /// As `cut`, by thread, with the first instruction of the loop.
    pub cuts: Vec<(Cond, ThreadId, usize)>,
    /// Waits at barriers: the condition that a thread reaches it, and the condition that it passes.
    pub(crate) waits: Vec<(Cond, Cond, ThreadId, usize)>,
    /// The condition that a thread loops without end and without effect, and its instruction.
    pub(crate) spins: Vec<(Cond, ThreadId, usize)>,
    /// The smallest bound that cuts nothing, if nothing is cut.
    pub deepest: u32,
    /// Whether any thread has a loop.
    pub has_loops: bool,
    /// Final value of every register of every thread, meaningful if the thread is done.
    pub final_regs: Vec<Vec<TermId>>,
    /// Conditions that hold in every execution under every model.
    pub constraints: Vec<Cond>,
    /// The condition that a thread waits for lanes of its group that do not arrive, with its place.
    pub unmet: Vec<(Cond, InstrPlace)>,
    /// Read half and write half of each RMW.
    pub rmw: Vec<(EventId, EventId)>,
    /// Writes with given-up values ([`super::values::needed`]): their terms are not the written
    /// values.
    pub(crate) given_up: Vec<usize>,
    /// The write halves of operations on mbarrier objects, each with its phase and the next phase.
    pub(crate) phases: Vec<(EventId, TermId, TermId)>,
    pub(super) order: Rel,
    /// How threads end that do not run to their end, if the skeleton was built for that question.
    pub progress: Option<Arc<ProgressFacts>>,
    /// By possible order of the calls of a host program: the condition for that order.
    pub(crate) launch_ways: Vec<Cond>,
    /// Pairs of events by kind.
    pub(crate) edges: EdgeLists,
}

impl Skeleton {
    /// Number of events.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Program order over all events. It contains pairs on different sides of a branch, which never
    /// both execute.
    pub fn program_order(&self) -> &Rel {
        &self.order
    }

    /// The cell of an access to that address, if the event can access it.
    pub fn cell(&self, event: usize, address: i64) -> Option<CellId> {
        let Event {
            thread,
            kind,
            ty,
            part,
            parts,
            ..
        } = self.events[event];
        // The whole access is aligned to its size, whatever its cells are.
        let size = i64::from(ty.bytes());
        if (address - i64::from(part) * size) % (i64::from(parts) * size) != 0 && parts > 1 {
            return None;
        }
        match thread {
            Some(t) => self.memory.accessed(
                &self.program,
                t,
                address,
                ty.bytes(),
                kind == EventKind::Write,
            ),
            None => self.memory.cell_at(address, ty.bytes()),
        }
    }

    /// As [`Skeleton::cell`], with aliases resolved to their memory.
    pub fn accessed(&self, event: usize, address: i64) -> Option<CellId> {
        self.cell(event, address)
            .map(|c| self.memory.cell(c).memory)
    }

    /// The term of an observable, if it is a register.
    pub(crate) fn observed_register(&self, observable: Observable) -> Option<TermId> {
        let Observable::Reg(t, r) = observable else {
            return None;
        };
        Some(self.final_regs[usize::from(t.0)][usize::from(r.0)])
    }

    /// The event of the first cell of an access; for other events, the event itself.
    pub fn first_part(&self, event: usize) -> usize {
        event - usize::from(self.events[event].part)
    }

    /// The instruction of an event; `None` for an initial write.
    pub(crate) fn place(&self, event: usize) -> Option<InstrPlace> {
        let Event { thread, instr, .. } = self.events[event];
        Some(place(&self.program, (thread?, instr)))
    }

    /// Conditions and terms that decide which events execute, which memory they access, and how
    /// they are related. Excludes written values, and final values of registers.
    pub(crate) fn decisive(&self) -> (Vec<Cond>, Vec<TermId>) {
        // Names every field, so that a new field needs a decision here.
        #[rustfmt::skip]
        let Skeleton {
            events, done, complete, cut, cuts, waits, spins, unmet, constraints, phases, edges,
            program: _, options: _, bound: _, pool: _, memory: _, fixed: _, init_cells: _,
            deepest: _, has_loops: _, final_regs: _, given_up: _, rmw: _, order: _,
            launch_ways: _, progress,
        } = self;
        let guards = events.iter().map(|e| e.guard);
        let mut conds: Vec<Cond> = guards
            .chain(done.iter().copied())
            .chain([*complete, *cut])
            .collect();
        conds.extend(
            cuts.iter()
                .map(|of| of.0)
                .chain(unmet.iter().map(|of| of.0))
                .chain(constraints.iter().copied()),
        );
        conds.extend(
            waits
                .iter()
                .flat_map(|of| [of.0, of.1])
                .chain(spins.iter().map(|of| of.0)),
        );
        conds.extend(edges.conds());
        let mut terms: Vec<TermId> = events.iter().filter_map(|e| e.addr).collect();
        terms.extend(phases.iter().flat_map(|&(_, now, next)| [now, next]));
        for ProgressFacts { threads, partners } in progress.iter().map(Arc::as_ref) {
            conds.extend(partners.iter().map(|pair| pair.2));
            for ThreadProgress {
                done,
                cut,
                started,
                blocked,
                spins,
                repeats,
                stopped,
            } in threads
            {
                conds.extend([*done, *cut, *started]);
                conds.extend(
                    blocked
                        .iter()
                        .map(|of| of.1)
                        .chain(stopped.iter().map(|of| of.1)),
                );
                conds.extend(
                    spins
                        .iter()
                        .map(|spin| spin.cond)
                        .chain(repeats.iter().map(|repeat| repeat.choice)),
                );
                // A repetition also repeats the written values.
                let pairs = repeats
                    .iter()
                    .flat_map(|repeat| &repeat.pairs)
                    .flat_map(|&(a, b)| [a, b]);
                let rounds = pairs
                    .flatten()
                    .chain(spins.iter().flat_map(|spin| spin.events.iter().copied()));
                terms.extend(rounds.filter_map(|e| events[e.index()].value));
                terms.extend(
                    repeats
                        .iter()
                        .flat_map(|repeat| &repeat.registers)
                        .flat_map(|&(a, b)| [a, b]),
                );
            }
        }
        (conds, terms)
    }

    /// Whether it has no events at all.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The event with that id.
    pub fn event(&self, id: EventId) -> &Event {
        &self.events[id.index()]
    }

    /// The memory cell that an observable names.
    pub fn observed_cell(&self, observable: Observable) -> Option<CellId> {
        self.memory.observed(&self.program, observable)
    }
}

/// The type in which an observable is compared and printed.
pub fn observable_ty(program: &Program, memory: &Memory, observable: Observable) -> Ty {
    match observable {
        Observable::Reg(ThreadId(t), r) => program.threads[t as usize].regs[r.0 as usize].ty,
        o => memory
            .observed(program, o)
            .map_or(Ty::WORD, |c| memory.cell(c).ty),
    }
}
