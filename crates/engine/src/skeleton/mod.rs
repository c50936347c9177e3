//! The skeleton: what the program fixes, as one guarded event graph per test.
//!
//! Threads are unrolled into events, each with a *guard*, the condition under which it executes. Values are terms over
//! what reads return; conditions are decision diagrams over comparisons of such terms. Nothing here knows a memory
//! model; a model sees a skeleton through the base relations of [`signature`].
//!
//! # Invariants
//! - Events are numbered: initial writes first, then the threads in order, each in an order that contains its `po`.
//! - The graph is built for one set of [`Options`] and one loop bound; [`Skeleton::cut`] tells when the bound was met.
//! - A base relation speaks of two events *given that both execute* ([`base`]).

use std::sync::Arc;

use thiserror::Error;

use cat::rel::{EventId, Rel};
use program::litmus::{LitmusTest, Observable};
use program::memory::{CellId, Memory};
use program::{Program, ThreadId, Ty};

mod answers;
mod barrier;
pub mod base;
mod deps;
pub mod domain;
pub mod event;
mod execute;
mod images;
mod launch;
mod loops;
pub mod options;
pub mod pool;
pub mod progress;
pub mod signature;
mod unroll;
mod unrolled;

pub use event::{Event, EventKind};
pub use options::Options;
pub use pool::{Atom, Cond, Pool, Term, TermId};
pub use progress::{Progress, Purpose};

use unroll::Unroller;
use unrolled::Unrolled;

/// At most this many events: relations are dense, so memory grows with the square.
pub const MAX_EVENTS: usize = 2048;
/// At most this many steps of one thread while it is unrolled.
pub(crate) const MAX_STEPS: usize = 200_000;
/// At most this deep values may nest: whatever walks over them goes as deep.
pub(crate) const MAX_VALUE_DEPTH: u32 = 4_000;
/// At most this many terms and decisions of conditions.
pub(crate) const MAX_POOL: usize = 2_000_000;
/// At most this many arrivals at one barrier whose phases are not determined.
pub(crate) const MAX_PHASE_CHOICES: usize = 12;

/// Why a program has no skeleton. Each of these makes every question about the test `undecided`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BuildError {
    /// More events than relations can hold.
    #[error("too many events: the test unrolls to more than {MAX_EVENTS}")]
    TooManyEvents,
    /// Unrolling does not end in reasonable time.
    #[error("too many steps: a thread unrolls to more than {MAX_STEPS} instructions")]
    TooManySteps,
    /// A register is computed from itself too often.
    #[error("too deep a value: a register takes more than {MAX_VALUE_DEPTH} operations in a row")]
    TooDeepValue,
    /// Conditions and values take too much memory.
    #[error("too many paths: conditions and values of the test have more than {MAX_POOL} parts")]
    TooManyParts,
    /// A barrier with more possible phase assignments than are worth trying.
    #[error(
        "too many barrier phases: more than {MAX_PHASE_CHOICES} arrivals share a barrier with a smaller count"
    )]
    TooManyPhases,
    /// A thread count or quorum that is not a constant.
    #[error("not supported: a barrier's {0} that is not a constant")]
    DynamicBarrierOperand(&'static str),
    /// Two instructions give one barrier different thread counts.
    #[error("not supported: one barrier used with different thread counts")]
    MixedBarrierCounts,
    /// A model for which a read-modify-write is one event that both reads and writes.
    #[error("not supported: a model in which a read-modify-write is one event (`rmw = single`), asked about one")]
    SingleEventRmw,
    /// A reduction with acquire order under a model in which reductions never acquire.
    #[error("not in this model: `red` with acquire order (the option `red = atom` gives it a meaning)")]
    AcquiringReduction,
    /// A host program in which some wait never ends.
    #[error("deadlock: {0}")]
    Deadlock(String),
    /// A host program whose calls can be issued in too many orders.
    #[error("{0}")]
    TooManyOrders(String),
}

/// A test's guarded event graph.
#[derive(Clone, Debug)]
pub struct Skeleton {
    /// The program it was built from.
    pub program: Arc<Program>,
    /// What it was built for.
    pub options: Options,
    /// The loop bound it was built for.
    pub bound: u32,
    /// Terms and conditions.
    pub pool: Pool,
    /// The address map.
    pub memory: Memory,
    /// All events.
    pub events: Vec<Event>,
    /// The cell of each initial write, by event index.
    pub init_cells: Vec<CellId>,
    /// When each thread runs to its end.
    pub done: Vec<Cond>,
    /// When final values exist: every thread runs to its end, or was unrolled to have some wherever it ends.
    pub complete: Cond,
    /// When some thread is cut at the loop bound.
    pub cut: Cond,
    /// Whether any thread has a loop.
    pub has_loops: bool,
    /// Final value of every register of every thread, meaningful where the thread is done.
    pub final_regs: Vec<Vec<TermId>>,
    /// What holds in every execution, whatever the model.
    pub constraints: Vec<Cond>,
    /// Order in time that barriers impose; with program order it must be acyclic.
    pub barrier_order: Vec<(EventId, EventId, Cond)>,
    /// Read half and write half of each RMW.
    pub rmw: Vec<(EventId, EventId)>,
    /// How threads end that do not run to their end, if the skeleton was built for that question.
    pub progress: Option<Arc<Progress>>,
    pub(crate) syncbar: Vec<(EventId, EventId, Cond)>,
    pub(crate) exitbar: Vec<(EventId, EventId, Cond)>,
    pub(crate) divergence: Vec<(EventId, EventId, Cond)>,
    pub(crate) launch: Vec<(EventId, EventId, Cond)>,
    pub(crate) launch_fine: Vec<(EventId, EventId, Cond)>,
    pub(crate) call_order: Vec<(EventId, EventId, Cond)>,
    pub(crate) addr: Vec<(EventId, EventId, Cond)>,
    pub(crate) data: Vec<(EventId, EventId, Cond)>,
    pub(crate) ctrl: Vec<(EventId, EventId, Cond)>,
    /// Real value flow, whatever the option `dep`: from reads to the writes whose value, address or execution they
    /// decide.
    pub(crate) flow: Vec<(EventId, EventId, Cond)>,
}

impl Skeleton {
    /// Unrolls a test's program.
    ///
    /// # Errors
    /// If a limit is exceeded or the program uses something that has no meaning under the options.
    pub fn build(test: &LitmusTest, options: Options, bound: u32) -> Result<Skeleton, BuildError> {
        Skeleton::build_for(Purpose::Outcomes, test, options, bound)
    }

    /// As [`Skeleton::build`], for other questions too.
    ///
    /// # Errors
    /// As there.
    pub fn build_for(
        purpose: Purpose,
        test: &LitmusTest,
        options: Options,
        bound: u32,
    ) -> Result<Skeleton, BuildError> {
        let program = Arc::new(test.program.clone());
        let memory = Memory::new(&program);
        let observed = observed_registers(test);
        let mut passing = Default::default();
        let (mut out, first_events) = loop {
            let (mut out, init) = unroll(&program, &memory, options, bound, &passing, &observed, purpose)?;
            let known = barrier::passing(&program, &mut out)?;
            // Waits that were found to pass keep their key from one unrolling to the next.
            let grown: rustc_hash::FxHashSet<_> = passing.union(&known).cloned().collect();
            if grown.len() == passing.len() {
                break (out, init);
            }
            passing = grown;
        };
        let mut barriers = barrier::edges(&program, &mut out, purpose)?;
        barriers.constraints.append(&mut out.constraints);
        let mut launches = launch::edges(&program, &mut out)?;
        barriers.constraints.append(&mut launches.constraints);
        let partners = std::mem::take(&mut barriers.partners);
        let progress = purpose.is_progress().then(|| Arc::new(progress::collect(&program, &mut out, partners)));
        let always = |pairs: &[(EventId, EventId)]| pairs.iter().map(|&(a, b)| (a, b, Cond::TRUE)).collect();
        let mut sk = Skeleton {
            options,
            bound,
            memory,
            init_cells: first_events,
            done: out.endings.iter().map(|e| e.done).collect(),
            complete: Cond::TRUE,
            cut: Cond::FALSE,
            has_loops: out.has_loops,
            final_regs: out.endings.iter().map(|e| e.regs.clone()).collect(),
            constraints: barriers.constraints,
            barrier_order: barriers.order,
            rmw: out.rmw,
            progress,
            syncbar: barriers.sync,
            exitbar: barriers.exits,
            divergence: barriers.divergence,
            launch: launches.launch,
            launch_fine: launches.fine,
            call_order: launches.calls,
            addr: always(&out.addr),
            data: always(&out.data),
            ctrl: always(&out.ctrl),
            flow: Vec::new(),
            events: out.events,
            pool: out.pool,
            program,
        };
        for ending in &out.endings {
            if !purpose.is_progress() {
                sk.complete = sk.pool.and(sk.complete, ending.done);
            }
            sk.cut = sk.pool.or(sk.cut, ending.cut);
        }
        sk.constraints.retain(|&c| c != Cond::TRUE);
        sk.value_dependencies(&barriers.decided);
        Ok(sk)
    }

    fn value_dependencies(&mut self, decided: &rustc_hash::FxHashMap<u32, Cond>) {
        let mut deps = deps::Dependencies::new(&mut self.pool, decided);
        let (mut addr, mut data, mut ctrl) = (Vec::new(), Vec::new(), Vec::new());
        for (i, event) in self.events.iter().enumerate() {
            let id = EventId::new(i);
            if event.kind == EventKind::Init {
                continue;
            }
            if let Some(a) = event.addr {
                addr.extend(deps.of_term(a).into_iter().map(|(r, c)| (r, id, c)));
            }
            if let (Some(v), EventKind::Write) = (event.value, event.kind) {
                data.extend(deps.of_term(v).into_iter().map(|(r, c)| (r, id, c)));
            }
            ctrl.extend(deps.control(&self.events, id).into_iter().map(|r| (r, id, Cond::TRUE)));
        }
        self.flow = addr.iter().chain(&data).chain(&ctrl).copied().collect();
        if self.options.dep_syntactic {
            // Syntax shows nothing of a wait that depends on what another thread reads.
            let across = |&(r, e, _): &(EventId, EventId, Cond)| {
                self.events[r.index()].thread != self.events[e.index()].thread
            };
            self.ctrl.extend(ctrl.iter().filter(|c| across(c)));
        } else {
            (self.addr, self.data, self.ctrl) = (addr, data, ctrl);
        }
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Program order over all events; pairs on different sides of a branch are in it, and never both execute.
    pub fn program_order(&self) -> Rel {
        let same_thread =
            |i: usize, j: usize| self.events[i].thread.is_some() && self.events[i].thread == self.events[j].thread;
        Rel::from_fn(self.len(), |i, j| i < j && same_thread(i, j))
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

/// What a test asks about: the registers needed at the end of each thread.
fn observed_registers(test: &LitmusTest) -> Vec<Vec<bool>> {
    let mut needed: Vec<Vec<bool>> = test.program.threads.iter().map(|t| vec![false; t.regs.len()]).collect();
    let mut note = |o: Observable| {
        if let Observable::Reg(t, r) = o {
            needed[t.0 as usize][r.0 as usize] = true;
        }
    };
    test.observe.iter().copied().for_each(&mut note);
    for prop in test.condition.iter().chain(&test.filter) {
        prop.observables(&mut note);
    }
    needed
}

fn unroll(
    program: &Program,
    memory: &Memory,
    options: Options,
    bound: u32,
    passing: &rustc_hash::FxHashSet<unrolled::WaitKey>,
    observed: &[Vec<bool>],
    purpose: Purpose,
) -> Result<(Unrolled, Vec<CellId>), BuildError> {
    let (out, endings) = Default::default();
    let mut unroller = Unroller { program, memory, options, bound, passing, purpose, out, endings };
    let mut init_cells = Vec::new();
    for (i, cell) in memory.cells.iter().enumerate() {
        let id = CellId(i as u32);
        if cell.memory != id {
            continue;
        }
        if unroller.out.events.len() >= MAX_EVENTS {
            return Err(BuildError::TooManyEvents);
        }
        let addr = unroller.out.pool.constant(cell.address);
        let value = unroller.out.pool.constant(cell.init);
        init_cells.push(id);
        unroller.out.events.push(Event {
            kind: EventKind::Init,
            thread: None,
            instr: 0,
            guard: Cond::TRUE,
            tags: program::Tags::of(&["GEN"]),
            scope: None,
            addr: Some(addr),
            value: Some(value),
            ty: cell.ty,
        });
    }
    for thread in program.thread_ids() {
        unroller.thread(thread, &observed[thread.0 as usize])?;
    }
    Ok((unroller.out, init_cells))
}

/// The type in which an observable is compared and printed.
pub fn observable_ty(program: &Program, memory: &Memory, observable: Observable) -> Ty {
    match observable {
        Observable::Reg(ThreadId(t), r) => program.threads[t as usize].regs[r.0 as usize].ty,
        o => memory.observed(program, o).map_or(Ty::WORD, |c| memory.cell(c).ty),
    }
}
