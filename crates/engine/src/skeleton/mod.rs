//! Builds the skeleton: the parts that a program fixes, as one guarded event graph per test.
//!
//! Threads are unrolled into events, each with a *guard*, the condition under which it executes.
//! Values are terms over the results of reads; conditions are decision diagrams over comparisons of
//! such terms. Nothing here depends on a memory model; a model uses a skeleton through the base
//! relations of [`signature`].
//!
//! # Invariants
//! - Events are numbered: initial writes first, then the threads in order, each in an order that
//!   contains its `po`.
//! - The graph is built for one set of [`OptionValues`] and one loop bound; [`Skeleton::cut`] is
//!   the condition that the bound was reached.
//! - A base relation is about two events *given that both execute* ([`base`]).

use std::sync::Arc;
use std::time::Instant;

use cat::rel::{EventId, Rel};
use program::litmus::{LitmusTest, Observable};
use program::memory::{CellId, Memory};
use program::options::OptionValues;
use program::{BinOp, Element, EventKind, Op, Program, Scope, Tag, ThreadId, mbarrier};
use verdict::Reason;

pub mod event;
pub mod fixed;
mod graph;
mod loops;
mod meetings;
pub mod pool;
pub mod progress;
mod relations;
mod touched;
mod unrolling;
mod values;

pub use event::Event;
pub(crate) use graph::{EdgeKind, place};
pub use graph::{MAX_EVENTS, Skeleton, observable_ty};
pub use pool::{Cond, CondAtom, Term, TermId, TermPool};
pub use progress::{ProgressFacts, Purpose};
pub use relations::{base, rivals, signature};
pub(crate) use values::linear;
pub use values::{domain, images, needed};

use fixed::UnwrittenObjects;
use meetings::barrier::alike::{SharedWaits, are_alike};
use meetings::{barrier, launch};
use touched::TouchedCells;
use unrolling::unroll::Unroller;
use unrolling::unrolled::{self, Instructions, LongLoops, ThreadEndings, Unrolling};
use unrolling::{deps, ends, kept, racing};

/// Checks that time is left, between one phase and the next.
fn in_time(deadline: Option<Instant>) -> Result<(), Reason> {
    if stop::late(deadline) {
        Err(Reason::Time)
    } else {
        Ok(())
    }
}

impl Skeleton {
    /// Unrolls a test's program for questions about its outcomes, without a deadline.
    ///
    /// # Errors
    /// As [`Skeleton::build_for`].
    pub fn build(test: &LitmusTest, options: OptionValues, bound: u32) -> Result<Skeleton, Reason> {
        Skeleton::build_for(Purpose::Outcomes, test, options, bound, true, None)
    }

    /// Unrolls a test's program. With `fold`, reads of memory that no thread writes have their
    /// fixed values ([`fixed`]).
    ///
    /// # Errors
    /// A limit is exceeded, `deadline` passes, or a part of the program has no meaning under the
    /// options.
    pub fn build_for(
        purpose: Purpose,
        test: &LitmusTest,
        options: OptionValues,
        bound: u32,
        fold: bool,
        deadline: Option<Instant>,
    ) -> Result<Skeleton, Reason> {
        let program = Arc::new(test.program.clone());
        let memory = Memory::new(&program);
        let fixed = if fold {
            UnwrittenObjects::of(&program)
        } else {
            UnwrittenObjects::default()
        };
        let input = UnrollInput {
            program: &program,
            memory: &memory,
            options,
            bound,
            deadline,
            fixed: &fixed,
            observed: &observed_registers(test),
            cells: &TouchedCells::first(&memory, test),
            purpose,
        };
        let (mut out, first_events) = unroll_with_passing(&input)?;
        let mut barriers = barrier::edges(&program, &mut out, purpose)?;
        barriers.constraints.append(&mut out.constraints);
        in_time(deadline)?;
        let mut launches = launch::edges(&program, &mut out, deadline)?;
        barriers.constraints.append(&mut launches.constraints);
        let partners = std::mem::take(&mut barriers.partners);
        let progress = purpose
            .is_progress()
            .then(|| Arc::new(ends::collect(&program, &mut out, partners)));
        let mut edges = barriers.edges;
        edges.append(launches.edges);
        *edges.of_mut(EdgeKind::Meets) = std::mem::take(&mut out.meets);
        // Neither the end of a thread nor a meeting of lanes waits for asynchronous operations.
        for kind in [EdgeKind::Exits, EdgeKind::Meets] {
            let list = edges.of_mut(kind);
            list.retain(|&(a, b, _)| {
                let ends = [a, b].map(|e| &out.events[e.index()]);
                ends.iter().all(|e| !e.is_asynchronous())
            });
        }
        let dependencies = [
            (EdgeKind::Addr, &out.addr),
            (EdgeKind::Data, &out.data),
            (EdgeKind::Ctrl, &out.ctrl),
        ];
        for (kind, pairs) in dependencies {
            let always = pairs.iter().map(|&(a, b)| (a, b, Cond::TRUE));
            edges.of_mut(kind).extend(always);
        }
        let mut sk = Skeleton {
            options,
            bound,
            memory,
            fixed,
            init_cells: first_events,
            done: out.endings.iter().map(|e| e.done).collect(),
            complete: Cond::TRUE,
            cut: Cond::FALSE,
            cuts: Vec::new(),
            waits: Vec::new(),
            spins: Vec::new(),
            deepest: out.deepest,
            has_loops: out.has_loops,
            final_regs: out.endings.iter().map(|e| e.regs.clone()).collect(),
            constraints: barriers.constraints,
            phases: phases(&mut out),
            rmw: out.rmw,
            unmet: out.unmet,
            given_up: Vec::new(),
            order: program_order(&program, &out.events),
            progress,
            launch_ways: launches.ways,
            edges,
            events: out.events,
            pool: out.pool,
            program,
        };
        sk.add_endings(&out.endings, purpose);
        sk.waits = out
            .waits
            .iter()
            .map(|w| (w.reached, w.pass, w.at.thread, sk.event(w.event).instr))
            .collect();
        sk.constraints.retain(|&c| c != Cond::TRUE);
        in_time(deadline)?;
        sk.value_dependencies(&barriers.decided, &barriers.absent)?;
        Ok(sk)
    }

    fn value_dependencies(
        &mut self,
        decided: &rustc_hash::FxHashMap<u32, deps::WaitDecision>,
        absent: &[(EventId, Cond, Cond)],
    ) -> Result<(), Reason> {
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
            ctrl.extend(
                deps.control(&self.events, id)
                    .into_iter()
                    .map(|(r, c)| (r, id, c)),
            );
            deps.given_up()?;
        }
        for &(wait, reached, ended) in absent {
            for (r, when) in deps.of_cond(ended) {
                let when = deps.all([reached, ended, when]);
                let behind =
                    (wait.index()..self.events.len()).filter(|&e| self.order.has(wait.index(), e));
                ctrl.extend(
                    behind
                        .filter(|_| when != Cond::FALSE)
                        .map(|e| (r, EventId::new(e), when)),
                );
            }
            deps.given_up()?;
        }
        let flow = addr.iter().chain(&data).chain(&ctrl).copied().collect();
        *self.edges.of_mut(EdgeKind::Flow) = flow;
        if self.options.dep_syntactic() {
            // Syntactic dependencies miss waits that depend on reads of other threads.
            ctrl.retain(|&(r, e, _)| self.event(r).thread != self.event(e).thread);
            self.edges.of_mut(EdgeKind::Ctrl).append(&mut ctrl);
        } else {
            *self.edges.of_mut(EdgeKind::Addr) = addr;
            *self.edges.of_mut(EdgeKind::Data) = data;
            *self.edges.of_mut(EdgeKind::Ctrl) = ctrl;
        }
        Ok(())
    }
}

impl Skeleton {
    /// Adds the ways in which threads end, and the condition that all do.
    fn add_endings(&mut self, endings: &[ThreadEndings], purpose: Purpose) {
        for (t, ending) in endings.iter().enumerate() {
            let thread = ThreadId(t as u16);
            self.cuts
                .extend(ending.cuts.iter().map(|&(cond, pc)| (cond, thread, pc)));
            self.spins
                .extend(ending.spins.iter().map(|&(cond, pc)| (cond, thread, pc)));
            if !purpose.is_progress() {
                self.complete = self.pool.and(self.complete, ending.done);
            }
            self.cut = self.pool.or(self.cut, ending.cut);
        }
    }
}

/// The phases of operations on mbarrier objects, as terms, because they are built before values are
/// known.
fn phases(out: &mut Unrolling) -> Vec<(EventId, TermId, TermId)> {
    let Unrolling {
        rmw, events, pool, ..
    } = out;
    let on_object = rmw
        .iter()
        .filter(|(_, write)| events[write.index()].tags.has(Tag::Mbarrier));
    on_object
        .map(|&(read, write): &(EventId, EventId)| {
            let word = events[read.index()].value.expect("reads have values");
            let mut bin = |op, a, n| {
                let n = pool.constant(n);
                pool.bin(op, mbarrier::WORD, a, n)
            };
            let now = bin(BinOp::Shr, word, mbarrier::PHASE.into());
            let next = bin(BinOp::Add, now, 1);
            (write, now, bin(BinOp::And, next, mbarrier::PHASES - 1))
        })
        .collect()
}

/// Program order. It does not relate elements of one execution of a vector instruction (PTX ISA,
/// Memory Consistency Model, Vector Data-types). Nor does it relate cells of one access; their
/// events are adjacent. It contains no asynchronous events.
fn program_order(program: &Program, events: &[Event]) -> Rel {
    let elements: Vec<_> = events
        .iter()
        .map(|e| element(program, e).filter(|e| e.of > 1))
        .collect();
    // Cells of one access share a number.
    let mut count = 0;
    let numbers: Vec<usize> = events
        .iter()
        .map(|e| {
            count += usize::from(e.part == 0);
            count
        })
        .collect();
    // Both halves of a read-modify-write belong to one execution of an element.
    let mut count = 0;
    let mut executions: Vec<usize> = Vec::with_capacity(events.len());
    for e in events {
        count += usize::from(e.part == 0 && !(e.is_write() && e.tags.has(Tag::Rmw)));
        executions.push(count);
    }
    let side_by_side = |i: usize, j: usize| match (elements[i], elements[j]) {
        _ if numbers[i] == numbers[j] => true,
        (Some(a), Some(b)) => {
            b.at > a.at
                && executions[j] - executions[i] == usize::from(b.at - a.at)
                && executions[j] - executions[i] == events[j].instr.wrapping_sub(events[i].instr)
        }
        _ => false,
    };
    Rel::from_fn(events.len(), |i, j| {
        i < j
            && events[i].thread.is_some()
            && events[i].thread == events[j].thread
            && !side_by_side(i, j)
            && ![i, j].iter().any(|&e| events[e].is_asynchronous())
    })
}

/// The element of a vector instruction that an event belongs to.
fn element(program: &Program, e: &Event) -> Option<Element> {
    Some(program.thread(e.thread?).code.get(e.instr)?.element)
}

/// The registers of each thread that a test observes at the end.
fn observed_registers(test: &LitmusTest) -> Vec<Vec<bool>> {
    let mut needed: Vec<Vec<bool>> = test
        .program
        .threads
        .iter()
        .map(|t| vec![false; t.regs.len()])
        .collect();
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

/// Unrolls a program until all waits that surely pass, and those that pass alike, are known.
fn unroll_with_passing(input: &UnrollInput<'_>) -> Result<(Unrolling, Vec<CellId>), Reason> {
    let (mut passing, mut long) = <(rustc_hash::FxHashSet<_>, LongLoops)>::default();
    let (mut shared, mut may_share) = (SharedWaits::default(), true);
    loop {
        let (mut out, init) = unroll(input, &passing, &shared, &mut long)?;
        let (known, alike) = barrier::passing(input.program, &mut out, input.purpose)?;
        out.pool.given_up()?;
        // Waits that surely pass keep their key from one unrolling to the next.
        let grown: rustc_hash::FxHashSet<_> = passing.union(&known).cloned().collect();
        if may_share && !are_alike(&shared, &alike, &grown) {
            (shared, may_share) = (SharedWaits::default(), false);
            passing.clear();
            continue;
        }
        if may_share && alike != shared {
            shared = alike;
            passing = grown;
            continue;
        }
        if grown.len() == passing.len() {
            if let Some(reason) = out.apart.take() {
                return Err(reason);
            }
            // Facts found while threads waited for a meeting may fail for threads that arrive
            // later.
            if known.len() < passing.len() {
                let what =
                    "a barrier for part of the threads, to which more come once lanes have met";
                return Err(Reason::Unsupported(what.into()));
            }
            return Ok((out, init));
        }
        passing = grown;
    }
}

/// The input of an unrolling.
struct UnrollInput<'x> {
    program: &'x Program,
    memory: &'x Memory,
    options: OptionValues,
    bound: u32,
    deadline: Option<Instant>,
    fixed: &'x UnwrittenObjects,
    observed: &'x [Vec<bool>],
    cells: &'x TouchedCells,
    purpose: Purpose,
}

/// Unrolls all threads. Loops that surely end are unrolled to their end, if the result stays within
/// the limits. `passing` are the waits that surely pass, `shared` those that share their choice,
/// and `long` collects loops that do not fit.
fn unroll(
    input: &UnrollInput<'_>,
    passing: &rustc_hash::FxHashSet<unrolled::WaitKey>,
    shared: &SharedWaits,
    long: &mut LongLoops,
) -> Result<(Unrolling, Vec<CellId>), Reason> {
    let &UnrollInput {
        program,
        memory,
        options,
        bound,
        deadline,
        fixed,
        observed,
        cells,
        purpose,
    } = input;
    let (mut writing, mut racing) = (Instructions::default(), Instructions::default());
    let mut cells = cells.clone();
    loop {
        let endings = Default::default();
        let out = Unrolling {
            pool: TermPool::watched(deadline),
            ..Unrolling::default()
        };
        let mut unroller = Unroller {
            program,
            memory,
            options,
            bound,
            passing,
            shared,
            choices: Default::default(),
            long,
            fixed,
            writing: &writing,
            racing: &racing,
            cells: &cells,
            purpose,
            out,
            endings,
        };
        let done = unroller.all(observed);
        let Unrolling {
            counted,
            long: found,
            ..
        } = &mut unroller.out;
        match done {
            Err(late @ Reason::Time) => return Err(late),
            Ok(init_cells) if found.is_empty() => {
                let mut out = unroller.out;
                if cells.grow(memory, &out) {
                    continue;
                }
                let grown = kept::writing(program, memory, &mut out);
                out.pool.given_up()?;
                let shown = if purpose.is_progress() {
                    Instructions::default()
                } else {
                    racing::reads(program, &out)
                };
                if grown.is_empty() && shown.is_subset(&racing) {
                    return Ok((out, init_cells));
                }
                writing.extend(grown);
                racing.extend(shown);
            }
            Err(limit) if found.is_empty() && !*counted => return Err(limit),
            Err(_) if found.is_empty() => {
                let all =
                    |t: ThreadId| (0..program.thread(t).code.len() as u32).map(move |pc| (t, pc));
                long.extend(program.thread_ids().flat_map(all));
            }
            _ => long.extend(std::mem::take(found)),
        }
    }
}

impl Unroller<'_> {
    fn all(&mut self, observed: &[Vec<bool>]) -> Result<Vec<CellId>, Reason> {
        let mut init_cells = Vec::new();
        for (i, cell) in self.memory.cells.iter().enumerate() {
            let id = CellId(i as u32);
            if cell.memory != id || !self.cells.has(id) {
                continue;
            }
            if self.out.events.len() >= MAX_EVENTS {
                return Err(Reason::TooManyEvents(MAX_EVENTS));
            }
            let addr = self.out.pool.constant(cell.address);
            let value = self.out.pool.constant(cell.init);
            init_cells.push(id);
            self.out.events.push(Event {
                kind: EventKind::Init,
                thread: None,
                instr: 0,
                guard: Cond::TRUE,
                tags: program::Tags::of(&[Tag::Generic]),
                scope: None,
                addr: Some(addr),
                value: Some(value),
                ty: cell.ty,
                part: 0,
                parts: 1,
            });
        }
        let mut endings: Vec<Option<ThreadEndings>> = vec![None; self.program.threads.len()];
        for thread in self.program.thread_ids() {
            if endings[usize::from(thread.0)].is_some() {
                continue;
            }
            let mut runs = Vec::new();
            for t in self.met_by(thread) {
                runs.push(self.begin(t, &observed[usize::from(t.0)])?);
            }
            let mut since = None;
            loop {
                let left: Vec<usize> = (0..runs.len())
                    .filter(|i| runs[*i].meets.is_none())
                    .collect();
                for &i in &left {
                    self.advance(&mut runs[i])?;
                }
                if runs.iter().all(|run| run.meets.is_none()) || !self.out.long.is_empty() {
                    break;
                }
                self.may_stop_before(&mut runs, &left, since)?;
                since = Some(self.out.events.len());
                if !self.meet(&mut runs)? {
                    self.part(&mut runs);
                }
            }
            if !self.out.long.is_empty() {
                break;
            }
            self.repeat_together(&runs);
            for run in runs {
                let t = usize::from(run.id.0);
                endings[t] = Some(self.finish(run)?);
            }
        }
        self.out.endings = endings.into_iter().flatten().collect();
        self.out.in_order_of_threads();
        Ok(init_cells)
    }

    /// The threads to unroll together with this one: those of its group, if they exchange values.
    fn met_by(&self, thread: ThreadId) -> Vec<ThreadId> {
        let place = &self.program.thread(thread).place;
        let scope = [Scope::Cta, Scope::Warp]
            .into_iter()
            .find(|s| self.mates(place, *s).any(|t| self.gives(t, *s)));
        scope.map_or_else(|| vec![thread], |scope| self.mates(place, scope).collect())
    }

    /// The threads in the group of a place.
    fn mates(&self, place: &program::Place, scope: Scope) -> impl Iterator<Item = ThreadId> {
        self.program
            .thread_ids()
            .filter(move |t| self.program.thread(*t).place.same(place, scope))
    }

    /// Whether a thread exchanges values among a scope.
    fn gives(&self, t: ThreadId, scope: Scope) -> bool {
        let code = &self.program.thread(t).code;
        code.iter()
            .any(|i| matches!(i.op, Op::Give { among, .. } if among == scope))
    }
}
