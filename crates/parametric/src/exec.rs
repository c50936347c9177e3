//! Runs one thread symbolically: all its accesses and barriers, each with the condition under which
//! it is reached.
//!
//! Code goes forward from branch to branch; where ways meet, values become choices between those of
//! the ways. Loops are in [`crate::loops`].
//!
//! # Invariants
//! - A guard never leaves out an execution: where something is not known, it is a free symbol.
//! - Each access of a thread has symbols of its own for what was read before it; a question is
//!   about one access of each of two threads.

use std::collections::{BTreeMap, BTreeSet};

use front::litmus::form::PointerTarget;
use program::tags::Tag;
use program::{
    Attendance, Barrier, BarrierAction, BarrierNaming, BinOp, CmpOp, Dialect, Expr, Init, Instr,
    LocId, LocationKind, Mark, Op, Program, Scope, Space, TENSOR_TAGS, Ty,
};
use rustc_hash::FxHashMap;

use crate::layout::{CodeOrder, in_order, into_a_loop, loops};
use crate::operations::{Cell, ObjectOp, PhaseTest, Ticket, Writes, is_of_object, synchronizes};
use crate::term::{Level, Node, Origin, Symbol, SymbolId, Term, Terms, range_of};

/// The effect of an access on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryEffect {
    /// Reads.
    Reads,
    /// Writes.
    Writes,
    /// Reads and writes in one step.
    Updates,
}

/// An access of one thread.
#[derive(Clone, Debug)]
pub struct AccessAt {
    /// The condition under which it happens.
    pub guard: Term,
    /// What holds of the symbols that it speaks of.
    pub facts: Vec<Term>,
    /// Its effect.
    pub does: MemoryEffect,
    /// How far it is atomic, if it is.
    pub atomic: Option<Scope>,
    /// The object.
    pub object: LocId,
    /// How many bytes behind its beginning.
    pub offset: Term,
    /// Its size.
    pub bytes: u32,
    /// How many barriers come before it that order memory of its kind.
    pub interval: Term,
    /// Which kind of memory: an index of [`ExitAt::intervals`].
    pub kind: usize,
    /// The number of groups of its thread before its own, for an asynchronous copy.
    pub copy: Option<Term>,
    /// The place of its copy in the code, for one of a work-group: an index of
    /// [`Program::group_copies`].
    pub of_group: Option<usize>,
    /// How many copies of each such place are complete for its thread.
    pub waited: Vec<Term>,
    /// How many groups of copies are complete for its thread, and were at its last barrier.
    pub complete: [Term; 2],
    /// How many barriers of a warp come before it, for each mask of [`Behaviour::masks`].
    pub of_warp: Vec<Term>,
    /// The iterations of the loops around it, outermost first.
    pub iterations: Vec<Term>,
    /// Its instruction.
    pub at: usize,
    /// Its position in a walk through the code.
    pub order: usize,
}

/// The place of an access of one thread.
#[derive(Clone, Debug)]
pub struct PlaceAt {
    /// The condition under which the access happens.
    pub guard: Term,
    /// What holds of the symbols that it speaks of.
    pub facts: Vec<Term>,
    /// The object.
    pub object: LocId,
    /// How many bytes behind its beginning.
    pub offset: Term,
    /// Its size.
    pub bytes: u32,
    /// Its instruction.
    pub at: usize,
}

/// A barrier of one thread, or the start of an iteration with one.
#[derive(Clone, Debug)]
pub struct BarrierAt {
    /// The condition under which it is reached.
    pub guard: Term,
    /// What holds of the symbols of the guard.
    pub facts: Vec<Term>,
    /// What holds of a thread that comes to it: it is in iterations that its loops have.
    pub within: Vec<Term>,
    /// The iterations of the loops around it, outermost first.
    pub iterations: Vec<Term>,
    /// Which threads have to come to it together.
    pub among: Among,
    /// Whether it orders memory.
    pub orders: bool,
    /// Its instruction.
    pub at: usize,
    /// Its position in a walk through the code.
    pub order: usize,
}

/// The threads that a barrier brings together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// Those of a block.
    Block,
    /// The lanes of a warp in a mask.
    Lanes(u32),
}

/// A thread begins a copy of its work-group, or waits for one. All threads give the same operands.
#[derive(Clone, Debug)]
pub struct BeginAt {
    /// The condition under which it does.
    pub guard: Term,
    /// What holds of the symbols that it speaks of.
    pub facts: Vec<Term>,
    /// The objects and offsets of both ends, and the number of elements.
    pub operands: Vec<Term>,
    /// The iterations of the loops around it, outermost first.
    pub iterations: Vec<Term>,
    /// Its instruction.
    pub at: usize,
}

/// A thread ends in front of a barrier: others do not wait for it there, nor does anything that
/// they do behind it come behind what this thread did last.
#[derive(Clone, Debug)]
pub struct ExitAt {
    /// The condition under which it ends there.
    pub guard: Term,
    /// What holds of the symbols of the guard.
    pub facts: Vec<Term>,
    /// How many barriers it has passed, for each kind of memory.
    pub intervals: [Term; 2],
    /// Its instruction.
    pub at: usize,
    /// The place of its instruction in the order in which the code is gone through.
    pub order: usize,
}

/// Values of a counter that grows from iteration to iteration by what a term says.
#[derive(Clone, Debug)]
pub struct Growth {
    /// The counter, as a function whose last argument is the iteration.
    pub counter: SymbolId,
    /// Its arguments: the iterations, outermost first.
    pub iterations: Vec<Term>,
    /// What it is in iteration 0.
    pub from: Term,
    /// What one iteration adds, which is never negative.
    pub by: Term,
}

/// A loop doubles a number and is taken to end before the number leaves its type.
#[derive(Clone, Debug)]
pub struct Doubling {
    /// The condition under which the loop goes on behind the last iteration that it is taken to
    /// have.
    pub goes_on: Term,
    /// What holds of the symbols that it speaks of.
    pub facts: Vec<Term>,
    /// Whether the number wraps around where it leaves its type.
    pub wraps: bool,
    /// The first instruction of the loop.
    pub at: usize,
}

/// A loop, which is taken to end.
#[derive(Clone, Debug)]
pub struct LoopAt {
    /// The condition under which a thread comes to it.
    pub guard: Term,
    /// What holds of the symbols of the guard.
    pub facts: Vec<Term>,
    /// That it ends.
    pub ended: Term,
    /// Its first instruction.
    pub at: usize,
}

/// What a thread does.
#[derive(Clone, Debug, Default)]
pub struct Behaviour {
    /// Its accesses to memory that others see.
    pub accesses: Vec<AccessAt>,
    /// The places of its accesses to objects of known size, whether others see these or not.
    pub places: Vec<PlaceAt>,
    /// Its barriers.
    pub barriers: Vec<BarrierAt>,
    /// Where it begins copies of its work-group.
    pub begins: Vec<BeginAt>,
    /// Where it ends early.
    pub exits: Vec<ExitAt>,
    /// Counters of loops.
    pub growths: Vec<Growth>,
    /// Its loops.
    pub loops: Vec<LoopAt>,
    /// Loops that double a number.
    pub doublings: Vec<Doubling>,
    /// Its operations on mbarrier objects.
    pub objects: Vec<ObjectOp>,
    /// What its atomic additions read.
    pub tickets: Vec<Ticket>,
    /// Whether some value is that of an execution without a race.
    pub trusts: bool,
    /// What is not modelled, with its instruction: nothing can be proved where it may be reached.
    pub unknown: BTreeMap<usize, String>,
    /// The masks of barriers of a warp.
    pub masks: Vec<u32>,
    /// The parameter structures whose pointers accesses follow.
    pub followed: BTreeSet<LocId>,
    /// Accesses whose address may be null, by instruction.
    pub nulls: BTreeSet<usize>,
    /// Barriers that are taken to order nothing, by instruction.
    pub ignored: BTreeSet<usize>,
}

/// Where a thread stands.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) guard: Term,
    pub(crate) facts: Vec<Term>,
    /// That the iterations in which it is are none behind the last.
    pub(crate) within: Vec<Term>,
    /// Values of registers; behind them, those of [`Counter`].
    pub(crate) regs: Vec<Term>,
    /// What places hold that the thread wrote, where that is known.
    pub(crate) cells: BTreeMap<Cell, Term>,
}

/// The counters of a thread.
#[derive(Clone, Copy)]
pub(crate) enum Counter {
    /// Barriers that order shared memory.
    Shared,
    /// Barriers that order global memory.
    Global,
    /// Groups of asynchronous copies that it made.
    Groups,
    /// Those of them that are complete, as it knows from waits.
    Complete,
    /// How many were complete at its last barrier.
    AtBarrier,
}

pub(crate) const COUNTERS: usize = 5;

/// Runs a thread.
pub(crate) struct Exec<'a> {
    pub(crate) program: &'a Program,
    pub(crate) code: &'a [Instr],
    pub(crate) terms: &'a mut Terms,
    pub(crate) found: Behaviour,
    /// Whether accesses are kept, or values alone are of interest.
    pub(crate) recording: bool,
    /// The iterations in which the thread is, outermost first.
    pub(crate) outer: Vec<Term>,
    /// The conditions under which these begin.
    pub(crate) heads: Vec<Term>,
    /// The numbers that the loop at hand doubles: the last iteration before each leaves its type,
    /// and whether it wraps around there.
    pub(crate) doubled: Vec<(i128, bool)>,
    /// The last test of a phase of an mbarrier object.
    pub(crate) phase_test: Option<PhaseTest>,
    /// The loops: headers, and the last instructions.
    pub(crate) loops: BTreeMap<usize, usize>,
    /// For each instruction, its index in the program.
    pub(crate) origin: Vec<usize>,
    pub(crate) writes: Writes,
    pub(crate) reads: ReadValues,
    /// The objects that pointers in parameter structures lead to.
    pub(crate) targets: &'a [PointerTarget],
    pub(crate) memory: FxHashMap<(LocId, Ty), SymbolId>,
    operations: FxHashMap<String, SymbolId>,
    /// The barrier of a block: its number.
    block_barrier: Option<Expr>,
}

/// The values that a proof takes reads to see; it takes all others for any value. And those of
/// numbers in loops.
#[derive(Clone, Copy, Debug)]
pub struct ReadValues {
    /// Those of an execution up to its first race.
    pub trusting: bool,
    /// In memory of one thread, the last value that the thread stored.
    pub remembers: bool,
    /// Whether numbers that loops double may wrap around. Else loops end before that, which
    /// [`Behaviour::doublings`] have to show.
    pub wraps: bool,
}

/// What a thread does that begins with these values in its registers.
pub fn behaviour(
    program: &Program,
    regs: Vec<Term>,
    terms: &mut Terms,
    reads: ReadValues,
    targets: &[PointerTarget],
) -> Behaviour {
    let CodeOrder { code, origin } = in_order(&program.threads[0].code);
    let code = &code[..];
    let ids = code.iter().filter_map(|instr| match &instr.op {
        Op::Barrier(b) if b.domain == Scope::Cta => match &b.naming {
            BarrierNaming::Counted { id, count: None } => Some(id.clone()),
            _ => None,
        },
        _ => None,
    });
    let mut exec = Exec {
        program,
        code,
        found: Behaviour {
            masks: masks(program, code),
            ..Behaviour::default()
        },
        recording: true,
        outer: Vec::new(),
        heads: Vec::new(),
        doubled: Vec::new(),
        phase_test: None,
        loops: loops(code),
        origin,
        writes: Writes::of(program, targets),
        reads,
        targets,
        memory: FxHashMap::default(),
        operations: FxHashMap::default(),
        block_barrier: { ids }.next(),
        terms,
    };
    if let Some(at) = into_a_loop(code, &exec.loops) {
        exec.unknown(at, "a branch into the middle of a loop");
    }
    let mut start = State {
        guard: exec.terms.int(1),
        facts: Vec::new(),
        within: Vec::new(),
        regs,
        cells: BTreeMap::new(),
    };
    let zero = exec.terms.int(0);
    start.regs.extend([zero; COUNTERS]);
    start.regs.extend(exec.found.masks.iter().map(|_| zero));
    let mut pending = BTreeMap::from([(0, start)]);
    exec.range(0..code.len(), &mut pending, None);
    exec.found
}

/// The masks of barriers of a warp that are constants.
fn masks(program: &Program, code: &[Instr]) -> Vec<u32> {
    fn of_warp(instr: &Instr) -> Option<u32> {
        match &instr.op {
            Op::Barrier(barrier) if barrier.domain == Scope::Warp => match &barrier.lanes {
                None => Some(u32::MAX),
                Some(Expr::Const(mask)) => Some(*mask as u32),
                Some(_) => None,
            },
            _ => None,
        }
    }
    // A sub-group of OpenCL has a size that the program does not know.
    if !has_warps(program) {
        return Vec::new();
    }
    let mut masks: Vec<u32> = code.iter().filter_map(of_warp).collect();
    masks.sort_unstable();
    masks.dedup();
    masks
}

fn has_warps(program: &Program) -> bool {
    program.dialect != Dialect::OpenCl
}

impl Exec<'_> {
    /// Runs the instructions of a range; what leaves it stays in `pending`, and what goes back to
    /// `header` is returned.
    pub(crate) fn range(
        &mut self,
        range: std::ops::Range<usize>,
        pending: &mut BTreeMap<usize, State>,
        header: Option<usize>,
    ) -> Option<State> {
        let mut back = None;
        while let Some((&at, _)) = pending.range(range.clone()).next() {
            let Some(state) = pending.remove(&at) else {
                break;
            };
            if self.terms.constant(state.guard) == Some(0) {
                continue;
            }
            match self.loops.get(&at) {
                Some(end) if header != Some(at) => self.looped(at, *end, state, pending),
                _ => {
                    for (target, state) in self.step(at, state) {
                        self.leave_for(pending, target, state);
                    }
                }
            }
            // The first state at the header was taken before any other; what comes later goes back.
            if let Some(state) = header.and_then(|header| pending.remove(&header)) {
                back = Some(self.merged(back, state));
            }
        }
        back
    }

    /// Adds a way to a place.
    pub(crate) fn leave_for(
        &mut self,
        pending: &mut BTreeMap<usize, State>,
        target: usize,
        state: State,
    ) {
        let before = pending.remove(&target);
        let state = self.merged(before, state);
        pending.insert(target, state);
    }

    /// Two ways to a place as one.
    fn merged(&mut self, a: Option<State>, b: State) -> State {
        let Some(a) = a else { return b };
        fn parts(terms: &Terms, t: Term) -> Vec<Term> {
            match terms.node(t) {
                Node::And(all) => all.clone(),
                _ => vec![t],
            }
        }
        let others = parts(self.terms, b.guard);
        let own: Vec<Term> = parts(self.terms, a.guard)
            .into_iter()
            .filter(|t| !others.contains(t))
            .collect();
        // Where the one way goes, the other does not.
        let cond = self.terms.and(own);
        let regs = a.regs.iter().zip(&b.regs);
        let regs = regs.map(|(x, y)| self.terms.ite(cond, *x, *y)).collect();
        let mut cells = BTreeMap::new();
        for (cell, x) in a.cells {
            if let Some(y) = b.cells.get(&cell) {
                cells.insert(cell, self.terms.ite(cond, x, *y));
            }
        }
        let mut facts = a.facts;
        facts.extend(b.facts);
        facts.sort_unstable();
        facts.dedup();
        State {
            guard: self.terms.or(vec![a.guard, b.guard]),
            facts,
            within: a.within,
            regs,
            cells,
        }
    }

    pub(crate) fn unknown(&mut self, at: usize, why: impl Into<String>) {
        if self.recording {
            let at = self.origin[at];
            self.found.unknown.entry(at).or_insert(why.into());
        }
    }

    pub(crate) fn free(&mut self, at: usize, ty: Ty) -> Term {
        let name = format!("value read at instruction {at}");
        let (outer, range) = (self.outer.clone(), range_of(ty));
        let symbol = Symbol {
            name,
            level: Level::Thread,
            origin: Origin::Free,
            range,
        };
        let id = self.terms.declare(symbol);
        self.terms.add(Node::Symbol(id, outer))
    }

    /// Runs an instruction; where the thread goes then.
    fn step(&mut self, at: usize, mut state: State) -> Vec<(usize, State)> {
        let code = self.code;
        if synchronizes(&code[at].op) {
            self.forget_shared(&mut state);
        }
        match &code[at].op {
            Op::Assign { dst, value } => {
                let value = self.eval(at, value, &state);
                state.regs[usize::from(dst.0)] = value;
                self.begin_of_group(at, *dst, &state);
            }
            // Operations on objects meet their preconditions: an assumption that answers name.
            Op::Branch { target, .. } if self.is_precondition(at) => {
                return vec![(*target, state)];
            }
            Op::Branch { cond, target } => {
                let cond = self.eval(at, cond, &state);
                let cond = self.terms.truth(cond);
                let not = self.terms.not(cond);
                let mut taken = state.clone();
                taken.guard = self.terms.and(vec![taken.guard, cond]);
                state.guard = self.terms.and(vec![state.guard, not]);
                if *target == code.len() {
                    self.exit(at, &taken);
                }
                let ways = [(*target, taken), (at + 1, state)].into_iter();
                return ways
                    .filter(|(_, s)| self.terms.constant(s.guard) != Some(0))
                    .collect();
            }
            op if op.aborts() => {
                if calls_unknown(&code[at]) {
                    self.unknown(at, "a call of an unknown function");
                }
                return Vec::new();
            }
            op if is_of_object(op) => self.of_object(at, &mut state),
            op if is_unknown(op) => {
                self.unknown(
                    at,
                    "an asynchronous operation, or one on an mbarrier object",
                );
                if let Some(dst) = op.defines() {
                    state.regs[usize::from(dst.0)] = self.free(at, Ty::WORD);
                }
            }
            Op::Load { dst, addr, access } => {
                let value = self.access(at, &mut state, addr, MemoryEffect::Reads, access);
                state.regs[usize::from(dst.0)] = value;
                self.of_barrier(at, &state);
            }
            Op::Store {
                addr,
                value,
                access,
            } => {
                self.access(at, &mut state, addr, MemoryEffect::Writes, access);
                self.store(at, &mut state, addr, value, access);
                self.of_barrier(at, &state);
            }
            Op::Rmw {
                dst, addr, write, ..
            } => {
                // A compare-exchange that fails only reads; that it writes is the worse case.
                let value = self.access(at, &mut state, addr, MemoryEffect::Updates, write);
                if let Some(dst) = dst {
                    state.regs[usize::from(dst.0)] = value;
                }
                self.of_barrier(at, &state);
            }
            Op::Barrier(barrier) => self.barrier(at, barrier, &mut state),
            Op::Take { dst, .. } => state.regs[usize::from(dst.0)] = self.free(at, Ty::WORD),
            Op::Choice { dst, .. } => {
                let bit = Ty {
                    bits: 1,
                    signed: false,
                };
                state.regs[usize::from(dst.0)] = self.free(at, bit);
            }
            Op::Mark { mark, .. } => self.groups(mark, &mut state),
            Op::Give {
                among,
                lanes,
                attendance,
                ..
            } => self.meets(at, *among, lanes, *attendance, &state),
            Op::Call(_) | Op::Enqueue(_) | Op::Status { .. } => {
                self.unknown(at, "a call of the runtime");
            }
        }
        vec![(at + 1, state)]
    }

    /// Notes where a thread ends in front of a barrier. In a loop it is left to the question
    /// whether threads part before that.
    fn exit(&mut self, at: usize, state: &State) {
        let skips = self.code[at..]
            .iter()
            .any(|instr| instr.op.barrier().is_some());
        if !self.recording || !self.outer.is_empty() || !skips {
            return;
        }
        let first = self.program.threads[0].regs.len();
        self.found.exits.push(ExitAt {
            guard: state.guard,
            facts: state.facts.clone(),
            intervals: [state.regs[first], state.regs[first + 1]],
            at: self.origin[at],
            order: at,
        });
    }

    /// Counts groups of copies. A wait makes all but the latest ones complete.
    fn groups(&mut self, mark: &Mark, state: &mut State) {
        let tags = &mark.tags;
        if tags.has_any(&[Tag::Bulk, Tag::Wgmma]) {
            return;
        }
        let groups = self.counter(Counter::Groups);
        if tags.has(Tag::CommitGroup) {
            let one = self.terms.int(1);
            state.regs[groups] = self.terms.plus(state.regs[groups], one);
        }
        if let (true, Some(pending)) = (tags.has(Tag::WaitGroup), mark.pending) {
            let complete = self.counter(Counter::Complete);
            let pending = self.terms.int(-i64::from(pending));
            state.regs[complete] = self.terms.plus(state.regs[groups], pending);
        }
    }

    /// Takes a barrier to order nothing.
    fn ignore(&mut self, at: usize) {
        if self.recording {
            self.found.ignored.insert(self.origin[at]);
        }
    }

    /// Notes a barrier.
    pub(crate) fn comes(&mut self, at: usize, among: Among, orders: bool, state: &State) {
        if !self.recording {
            return;
        }
        self.found.barriers.push(BarrierAt {
            guard: state.guard,
            facts: state.facts.clone(),
            within: state.within.clone(),
            iterations: self.outer.clone(),
            among,
            orders,
            at: self.origin[at],
            order: at,
        });
    }

    /// The mask of lanes that a barrier or a meeting names; `None`: it is not known.
    fn mask(&mut self, at: usize, lanes: Option<&Expr>, state: &State) -> Option<u32> {
        let Some(lanes) = lanes else {
            return Some(u32::MAX);
        };
        let lanes = self.eval(at, lanes, state);
        self.terms.constant(lanes).map(|mask| mask as u32)
    }

    fn barrier_of_warp(&mut self, at: usize, barrier: &Barrier, state: &mut State) {
        let mask = self.mask(at, barrier.lanes.as_ref(), state);
        let number = mask.and_then(|mask| self.found.masks.iter().position(|m| *m == mask));
        let (Some(mask), Some(number)) = (mask, number) else {
            return self.ignore(at);
        };
        self.comes(at, Among::Lanes(mask), true, state);
        let counter = self.of_warps().start + number;
        let one = self.terms.int(1);
        state.regs[counter] = self.terms.plus(state.regs[counter], one);
    }

    /// The counters of barriers of a warp.
    pub(crate) fn of_warps(&self) -> std::ops::Range<usize> {
        let first = self.program.threads[0].regs.len() + COUNTERS;
        first..first + self.found.masks.len()
    }

    /// Lanes of a warp exchange values: they come together, which orders no memory. That a lane
    /// which has ended is not awaited is left to the exact engines, which try each alarm.
    fn meets(
        &mut self,
        at: usize,
        among: Scope,
        lanes: &Expr,
        attendance: Attendance,
        state: &State,
    ) {
        if attendance == Attendance::Present {
            return;
        }
        let mask = self.mask(at, Some(lanes), state);
        match mask.filter(|_| among == Scope::Warp && has_warps(self.program)) {
            Some(mask) => self.comes(at, Among::Lanes(mask), false, state),
            None => self.ignore(at),
        }
    }

    pub(crate) fn counter(&self, counter: Counter) -> usize {
        self.program.threads[0].regs.len() + counter as usize
    }

    fn barrier(&mut self, at: usize, barrier: &Barrier, state: &mut State) {
        let of_block = barrier.domain == Scope::Cta
            && barrier.lanes.is_none()
            && barrier.action == BarrierAction::Sync
            && match &barrier.naming {
                BarrierNaming::Counted { id, count: None } => {
                    Some(id) == self.block_barrier.as_ref()
                }
                _ => false,
            };
        if barrier.domain == Scope::Warp && barrier.action == BarrierAction::Sync {
            return self.barrier_of_warp(at, barrier, state);
        }
        if !of_block {
            return self.ignore(at);
        }
        self.comes(at, Among::Block, true, state);
        let (complete, known) = (Counter::Complete, Counter::AtBarrier);
        let (complete, known) = (self.counter(complete), self.counter(known));
        state.regs[known] = state.regs[complete];
        let regions = self.program.dialect.row().regions;
        let one = self.terms.int(1);
        for (counter, tag) in [
            (Counter::Shared, Tag::Local),
            (Counter::Global, Tag::Global),
        ] {
            if !regions || barrier.arrive.has(tag) {
                let at = self.counter(counter);
                state.regs[at] = self.terms.plus(state.regs[at], one);
            }
        }
    }

    pub(crate) fn eval(&mut self, at: usize, e: &Expr, state: &State) -> Term {
        match e {
            Expr::Const(v) => self.terms.int(*v),
            Expr::Reg(r) => state.regs[usize::from(r.0)],
            Expr::Address(loc) => address(self.program, *loc, self.terms),
            Expr::Bin(BinOp::Unknown | BinOp::Tells, ty, ..) => self.free(at, *ty),
            Expr::Bin(op, ty, a, b) => {
                let (a, b) = (self.eval(at, a, state), self.eval(at, b, state));
                match op {
                    BinOp::Float(..) | BinOp::Inc | BinOp::Dec => {
                        self.operation(format!("{op:?}"), *ty, vec![a, b])
                    }
                    _ => self.terms.bin(*op, *ty, a, b),
                }
            }
            Expr::Cmp(op, ty, a, b) => {
                let (a, b) = (self.eval(at, a, state), self.eval(at, b, state));
                self.terms.cmp(*op, *ty, a, b)
            }
            Expr::Select(c, a, b) => {
                let cond = self.eval(at, c, state);
                let cond = self.terms.truth(cond);
                let (a, b) = (self.eval(at, a, state), self.eval(at, b, state));
                self.terms.ite(cond, a, b)
            }
            Expr::Cast(ty, a) => {
                let a = self.eval(at, a, state);
                self.terms.cast(*ty, a)
            }
            Expr::Fused(kind, parts) => {
                let args = parts.iter().map(|p| self.eval(at, p, state)).collect();
                self.operation(format!("{kind:?}"), Ty::WORD, args)
            }
        }
    }

    /// An operation of which only this is known: equal operands give equal results.
    fn operation(&mut self, name: String, ty: Ty, args: Vec<Term>) -> Term {
        let name = format!("{name} {ty:?} {}", args.len());
        let id = match self.operations.get(&name) {
            Some(id) => *id,
            None => {
                let symbol = Symbol {
                    name: name.clone(),
                    level: Level::Grid,
                    origin: Origin::Operation,
                    range: range_of(ty),
                };
                let id = self.terms.declare(symbol);
                self.operations.insert(name, id);
                id
            }
        };
        self.terms.add(Node::Symbol(id, args))
    }

    /// `v != 0` as a condition about a type.
    pub(crate) fn is_zero(&mut self, v: Term) -> Term {
        let zero = self.terms.int(0);
        self.terms.cmp(CmpOp::Eq, Ty::WORD, v, zero)
    }
}

/// Whether an instruction calls an unknown function, rather than ending the program as `trap` does.
fn calls_unknown(instr: &Instr) -> bool {
    let assembly = instr.assembly.as_ref();
    assembly.is_some_and(|assembly| assembly.opcode == "call")
}

/// Whether a micro-op is one of an asynchronous operation that is not modelled. Copies that belong
/// to groups of `cp.async` are.
fn is_unknown(op: &Op) -> bool {
    let not_modelled = [
        Tag::Mbarrier,
        Tag::AsyncProxy,
        Tag::TensormapProxy,
        Tag::Wgmma,
        Tag::LaunchControl,
    ];
    match op {
        Op::Mark { .. } => {
            op.has_any(&[Tag::Mbarrier, Tag::Asynchronous]) || op.has_any(&TENSOR_TAGS)
        }
        Op::Load { .. } | Op::Store { .. } => {
            op.has(Tag::Mbarrier) || (op.has(Tag::Asynchronous) && op.has_any(&not_modelled))
        }
        _ => op.has_any(&[Tag::Mbarrier, Tag::Asynchronous]),
    }
}

/// The address of the object of a location. Those of shared memory have 32 bits in PTX.
fn address(program: &Program, loc: LocId, terms: &mut Terms) -> Term {
    let object = program.object(loc);
    let is_global = matches!(
        program.location(object).kind,
        LocationKind::Object {
            space: Space::Global,
            ..
        }
    );
    let narrow = program.dialect == Dialect::Ptx && !is_global;
    terms.add(Node::Address(object, if narrow { 32 } else { 64 }))
}

/// What registers begin with, where nothing else is said.
pub(crate) fn initial(program: &Program, init: &Init, terms: &mut Terms) -> Option<Term> {
    match init {
        Init::Int(v) => Some(terms.int(*v)),
        Init::Address { loc, index } => {
            let base = address(program, *loc, terms);
            let offset = i64::from(program.layout(*loc).offset(*index) as u32);
            let offset = terms.int(offset);
            Some(terms.plus(base, offset))
        }
        Init::Unknown => None,
    }
}
