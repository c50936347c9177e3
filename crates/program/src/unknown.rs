//! Tracks unknown values ([`BinOp::Unknown`]): results of approximate instructions and of
//! arithmetic in types that are not modelled.
//!
//! # Invariants
//! - A checker replaces an unknown value by a stand-in. So its answer is valid only if nothing
//!   relevant depends on such a value: [`Unknowns`] decides this.
//! - The result includes every memory cell that may hold an unknown value in any execution. An
//!   address computed from known numbers refers to one cell. Any other address refers to all cells
//!   of the objects that [`crate::points`] names, or to all memory if it names none.
//! - The result includes every register that may hold an unknown value on some path of its thread.
//!   Paths that a condition with a constant value excludes do not count. Paths with different known
//!   numbers stay separate, so the analysis unrolls a counting loop. If there are too many paths,
//!   they merge and lose the numbers in which they differ.
//! - A choice ([`Expr::Select`]) with a known condition has the value of one operand.
//! - The facts that an instruction states about such a value ([`BinOp::Tells`]) are known: the
//!   stand-in agrees with them.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::litmus::Observable;
use crate::memory::{CellId, Memory};
use crate::points::{Points, Targets};
use crate::{
    BinOp, Expr, Instr, LocId, Op, Program, RegId, Scope, ThreadId, Update, live_registers,
};

/// A micro-op, given by its thread and its index there.
pub type Site = (ThreadId, usize);

/// Registers that may hold unknown values, each with a micro-op that makes the value.
type Registers = BTreeMap<RegId, Site>;

/// The limit on separate paths to an instruction.
const WAYS: usize = 64;
/// The limit on steps before paths merge.
const STEPS: usize = 2_000_000;

/// The register state on a path to an instruction.
#[derive(Clone, Debug, Default)]
struct PathState {
    unknown: Registers,
    /// The registers with a known number.
    known: BTreeMap<RegId, i64>,
}

impl PathState {
    /// Records a write to a register.
    fn set(&mut self, reg: RegId, unknown: Option<Site>, known: Option<i64>) {
        match unknown {
            Some(site) => self.unknown.insert(reg, site),
            None => self.unknown.remove(&reg),
        };
        match known {
            Some(value) => self.known.insert(reg, value),
            None => self.known.remove(&reg),
        };
    }

    /// Merges the state of another path to the same instruction. Returns whether the state changed.
    fn join(&mut self, other: &PathState) -> bool {
        let before = (self.unknown.len(), self.known.len());
        other
            .unknown
            .iter()
            .for_each(|(&reg, &site)| _ = self.unknown.entry(reg).or_insert(site));
        self.known
            .retain(|reg, value| other.known.get(reg) == Some(value));
        (self.unknown.len(), self.known.len()) != before
    }

    /// Adds a path to those of an instruction, at most `most`. Returns the index of the path that
    /// changed.
    fn meet(self, ways: &mut Vec<PathState>, most: usize) -> Option<usize> {
        let same = ways.iter().position(|way| way.known == self.known);
        match same.or_else(|| (ways.len() >= most).then(|| ways.len() - 1)) {
            Some(at) => ways[at].join(&self).then_some(at),
            None => {
                ways.push(self);
                Some(ways.len() - 1)
            }
        }
    }
}

/// The memory that an access may refer to.
enum AccessTarget<'a> {
    /// A cell.
    Cell(CellId),
    /// Any cell of these objects.
    Objects(&'a Targets),
}

/// A program, with precomputed facts for the analysis.
struct CodeFacts<'a> {
    program: &'a Program,
    memory: Memory,
    /// By thread and micro-op: the objects that it may access.
    objects: Vec<Vec<Targets>>,
    /// The objects that some micro-op may write.
    written: Targets,
    /// By thread: registers on which an address or a branch may depend.
    deciding: Vec<BTreeSet<RegId>>,
    /// By the kind of a group in which lanes give values, and thread: the threads of its group.
    mates: BTreeMap<Scope, Vec<Rc<[ThreadId]>>>,
}

impl<'a> CodeFacts<'a> {
    fn new(program: &'a Program) -> CodeFacts<'a> {
        let points = Points::compute(program);
        let all: Targets = (0..program.locations.len() as u16)
            .map(|l| program.object(LocId(l)))
            .collect();
        let of_thread = |t: ThreadId| {
            let of = |instr: &Instr| {
                instr
                    .op
                    .address()
                    .map(|addr| points.of(usize::from(t.0), addr))
            };
            program
                .thread(t)
                .code
                .iter()
                .map(|instr| {
                    of(instr)
                        .map(|objects| {
                            if objects.is_empty() {
                                all.clone()
                            } else {
                                objects
                            }
                        })
                        .unwrap_or_default()
                })
                .collect()
        };
        let objects: Vec<Vec<Targets>> = program.thread_ids().map(of_thread).collect();
        let writes = program
            .instrs()
            .filter(|(_, _, instr)| instr.op.write().is_some());
        let written = writes
            .flat_map(|(t, at, _)| &objects[usize::from(t.0)][at])
            .copied()
            .collect();
        let deciding = program.thread_ids().map(|t| deciding(program, t)).collect();
        let given = program.instrs().filter_map(|(_, _, instr)| match instr.op {
            Op::Give { among, .. } => Some(among),
            _ => None,
        });
        let scopes: BTreeSet<Scope> = given.collect();
        let mates = scopes
            .into_iter()
            .map(|scope| (scope, mates(program, scope)));
        CodeFacts {
            program,
            memory: Memory::new(program),
            objects,
            written,
            deciding,
            mates: mates.collect(),
        }
    }

    /// The value of an expression on a path of a thread, if it is computed from known numbers.
    fn constant(&self, t: ThreadId, held: &PathState, e: &Expr) -> Option<i64> {
        e.value(&|leaf| match leaf {
            Expr::Reg(r) => held.known.get(r).copied(),
            Expr::Address(loc) => self.memory.address(self.program, *loc, 0, Some(t)),
            _ => None,
        })
    }

    /// The origin of an unknown value that an expression may have on a path of a thread. A choice
    /// with a known condition has the value of one operand.
    fn origin(&self, here: Site, held: &PathState, e: &Expr) -> Option<Site> {
        match e {
            Expr::Bin(BinOp::Tells, ..) => None,
            Expr::Select(cond, yes, no) => match self.constant(here.0, held, cond) {
                Some(0) => self.origin(here, held, no),
                Some(_) => self.origin(here, held, yes),
                None => {
                    let mut all = [cond, yes, no].into_iter();
                    all.find_map(|e| self.origin(here, held, e))
                }
            },
            e => {
                let mut found = makes(e).then_some(here);
                e.registers(&mut |r| found = found.or(held.unknown.get(&r).copied()));
                found
            }
        }
    }

    /// The memory that a micro-op may access on a path of a thread.
    fn reach(&self, (t, at): Site, op: &Op, held: &PathState) -> AccessTarget<'_> {
        let cell = || {
            let address = self.constant(t, held, op.address()?)?;
            let cell = self
                .memory
                .cell_at(address, op.accesses().next()?.ty.bytes())?;
            Some(self.memory.cell(cell).memory)
        };
        cell().map_or(
            AccessTarget::Objects(&self.objects[usize::from(t.0)][at]),
            AccessTarget::Cell,
        )
    }

    fn object(&self, cell: CellId) -> LocId {
        self.program.object(self.memory.cell(cell).location.0)
    }

    /// The known number that a micro-op writes to its register, if any.
    fn left(
        &self,
        t: ThreadId,
        op: &Op,
        reach: &AccessTarget<'_>,
        held: &PathState,
    ) -> Option<i64> {
        match (op, reach) {
            (Op::Assign { value, .. }, _) => self.constant(t, held, value),
            // Memory that no micro-op writes keeps its initial value.
            (Op::Load { access, .. }, AccessTarget::Cell(cell))
                if !self.written.contains(&self.object(*cell)) =>
            {
                let first = self.memory.cell(self.memory.cell(*cell).memory);
                (!first.unknown).then(|| access.ty.wrap(first.init))
            }
            _ => None,
        }
    }
}

/// For each thread, the threads of its group, in order.
fn mates(program: &Program, scope: Scope) -> Vec<Rc<[ThreadId]>> {
    let mut all: Vec<Option<Rc<[ThreadId]>>> = vec![None; program.threads.len()];
    for t in program.thread_ids() {
        if all[usize::from(t.0)].is_some() {
            continue;
        }
        let group: Rc<[ThreadId]> = program
            .thread_ids()
            .filter(|other| program.same_group(t, *other, scope))
            .collect();
        for mate in group.iter() {
            all[usize::from(mate.0)] = Some(group.clone());
        }
    }
    all.into_iter().flatten().collect()
}

/// The conditions of choices that may make an unknown value.
fn conditions(e: &Expr) -> Vec<&Expr> {
    let mut open = vec![e];
    let mut found = Vec::new();
    while let Some(next) = open.pop() {
        if let Expr::Select(cond, yes, no) = next
            && makes(next)
        {
            found.push(&**cond);
            open.extend([&**yes, &**no]);
        }
    }
    found
}

/// The registers of a thread on which an address, a branch, or a choice of an unknown value may
/// depend.
fn deciding(program: &Program, t: ThreadId) -> BTreeSet<RegId> {
    let code = &program.thread(t).code;
    let mut found = BTreeSet::new();
    for instr in code {
        let ways = if let Op::Branch { cond, .. } = &instr.op {
            Some(cond)
        } else {
            None
        };
        let operands = instr.op.operands();
        let chosen = operands.into_iter().flat_map(conditions);
        ways.into_iter()
            .chain(instr.op.address())
            .chain(chosen)
            .for_each(|e| e.registers(&mut |r| _ = found.insert(r)));
    }
    loop {
        let before = found.len();
        for instr in code {
            if let Op::Assign { dst, value } = &instr.op
                && found.contains(dst)
            {
                value.registers(&mut |r| _ = found.insert(r));
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// The registers and memory that may hold unknown values, and the first dependency on one.
#[derive(Clone, Debug, Default)]
pub struct Unknowns {
    /// By thread: registers at its end.
    registers: Vec<Registers>,
    /// Cells that may hold one, by the underlying memory.
    cells: BTreeMap<CellId, Site>,
    /// Objects each of whose cells may hold one.
    whole: BTreeMap<LocId, Site>,
    /// Objects with some cell that may hold one.
    part: BTreeMap<LocId, Site>,
    /// Reads that may read unwritten memory with an unknown initial value.
    unwritten: BTreeSet<Site>,
    /// Micro-ops that may write one.
    writers: BTreeSet<Site>,
    /// Unknown values that a micro-op hands to other threads.
    given: BTreeMap<Site, Site>,
    /// A branch, an address, or whether a write happens depends on an unknown value: its origin,
    /// and the dependent micro-op.
    steered: Option<(Site, Site)>,
}

/// Whether a program makes unknown values at all.
pub fn are_made(program: &Program) -> bool {
    program
        .instrs()
        .any(|(_, _, instr)| updates(&instr.op) || instr.op.operands().into_iter().any(makes))
}

/// Whether an atomic writes an unknown value.
fn updates(op: &Op) -> bool {
    matches!(
        op,
        Op::Rmw {
            update: Update::Apply(BinOp::Unknown, _),
            ..
        }
    )
}

/// Whether an expression makes an unknown value.
fn makes(e: &Expr) -> bool {
    e.any(&|e| matches!(e, Expr::Bin(BinOp::Unknown, ..)))
}

impl Unknowns {
    /// Analyses a program.
    pub fn of(program: &Program) -> Unknowns {
        Unknowns::with_unwritten(program, BTreeSet::new())
    }

    /// The same if some reads may read unwritten memory ([`crate::Init::Unknown`]).
    pub fn with_unwritten(program: &Program, unwritten: BTreeSet<Site>) -> Unknowns {
        let mut unknowns = Unknowns {
            unwritten,
            ..Unknowns::default()
        };
        if !are_made(program) && unknowns.unwritten.is_empty() {
            return unknowns;
        }
        let code = CodeFacts::new(program);
        let mut left = STEPS;
        // Repeats until the memory state no longer grows.
        loop {
            let before = unknowns.size();
            unknowns.registers.clear();
            unknowns.steered = None;
            program
                .thread_ids()
                .for_each(|t| unknowns.flow(&code, t, &mut left));
            if unknowns.size() == before {
                return unknowns;
            }
        }
    }

    /// A measure that grows with the state of memory and of exchanged values.
    fn size(&self) -> usize {
        self.cells.len() + self.whole.len() + self.part.len() + self.given.len()
    }

    /// The origin of an unknown value on which the control flow or memory accesses depend, and the
    /// dependent micro-op.
    pub fn steered(&self) -> Option<(Site, Site)> {
        self.steered
    }

    /// The origin of an unknown value that an observable may show, in the memory of the program.
    pub fn shown(&self, program: &Program, memory: &Memory, of: Observable) -> Option<Site> {
        match of {
            Observable::Reg(t, r) => self.registers.get(usize::from(t.0))?.get(&r).copied(),
            Observable::Mem { loc, .. } => match memory.observed(program, of) {
                Some(cell) => self.in_cell(program, memory, cell),
                None => self.part.get(&program.object(loc)).copied(),
            },
        }
    }

    /// Whether a micro-op may write an unknown value.
    pub fn writes(&self, site: Site) -> bool {
        self.writers.contains(&site)
    }

    /// The origin of an unknown value that a cell may hold, in the memory of the program.
    pub fn in_cell(&self, program: &Program, memory: &Memory, cell: CellId) -> Option<Site> {
        let cell = memory.cell(cell);
        self.cells
            .get(&cell.memory)
            .or_else(|| self.whole.get(&program.object(cell.location.0)))
            .copied()
    }

    /// The origin of an unknown value that an access may read.
    fn found(&self, code: &CodeFacts<'_>, reach: &AccessTarget<'_>) -> Option<Site> {
        match reach {
            AccessTarget::Cell(cell) => self.in_cell(code.program, &code.memory, *cell),
            AccessTarget::Objects(objects) => {
                objects.iter().find_map(|o| self.part.get(o)).copied()
            }
        }
    }

    /// Records that an access writes an unknown value.
    fn leave(&mut self, code: &CodeFacts<'_>, reach: &AccessTarget<'_>, site: Site) {
        match reach {
            AccessTarget::Cell(cell) => {
                self.cells.entry(*cell).or_insert(site);
                self.part.entry(code.object(*cell)).or_insert(site);
            }
            AccessTarget::Objects(objects) => {
                for object in *objects {
                    self.whole.entry(*object).or_insert(site);
                    self.part.entry(*object).or_insert(site);
                }
            }
        }
    }

    /// Analyses a thread on all its paths. States are kept where paths join, and propagated from
    /// there to the next join.
    fn flow(&mut self, code: &CodeFacts<'_>, t: ThreadId, left: &mut usize) {
        let thread = code.program.thread(t);
        let text = &thread.code;
        let heads: BTreeSet<usize> = text
            .iter()
            .filter_map(|i| i.op.target())
            .chain([text.len()])
            .collect();
        let live = if heads.len() > 1 {
            live_registers(thread, &vec![false; thread.regs.len()])
        } else {
            Vec::new()
        };
        let mut first = PathState::default();
        for &reg in &code.deciding[usize::from(t.0)] {
            let init = &thread.regs[usize::from(reg.0)].init;
            first
                .known
                .insert(reg, code.memory.initial(code.program, init, Some(t)));
        }
        let mut ways: BTreeMap<usize, Vec<PathState>> = BTreeMap::from([(0, vec![first])]);
        let mut open = BTreeSet::from([(0, 0)]);
        while let Some((head, way)) = open.pop_first() {
            let (mut at, mut held) = (head, ways[&head][way].clone());
            while let Some(instr) = text.get(at) {
                self.step(code, (t, at), &instr.op, &mut held);
                let cond = if let Op::Branch { cond, .. } = &instr.op {
                    Some(cond)
                } else {
                    None
                };
                let taken = cond.and_then(|cond| code.constant(t, &held, cond));
                let target = instr.op.target().filter(|_| taken != Some(0));
                let next = instr.op.falls_through() && taken.is_none_or(|cond| cond == 0);
                *left = left.saturating_sub(1);
                at += 1;
                let meets = next && heads.contains(&at);
                for to in target.into_iter().chain(meets.then_some(at)) {
                    let mut come = held.clone();
                    come.known
                        .retain(|reg, _| live.get(to).is_some_and(|live| live[usize::from(reg.0)]));
                    let most = if *left == 0 { 1 } else { WAYS };
                    if let Some(way) = come.meet(ways.entry(to).or_default(), most) {
                        open.insert((to, way));
                    }
                }
                if meets || !next {
                    break;
                }
            }
        }
        let mut end = Registers::new();
        ways.remove(&text.len())
            .into_iter()
            .flatten()
            .for_each(|way| {
                way.unknown
                    .into_iter()
                    .for_each(|(reg, site)| _ = end.entry(reg).or_insert(site));
            });
        self.registers.push(end);
    }

    /// Updates the state for one micro-op.
    fn step(&mut self, code: &CodeFacts<'_>, here: Site, op: &Op, held: &mut PathState) {
        let of = |e: &Expr| code.origin(here, held, e);
        let nothing_written = self.unwritten.contains(&here).then_some(here);
        let reach = code.reach(here, op, held);
        let in_memory = self.found(code, &reach).or(nothing_written);
        let steered = self.steers(op, in_memory, &of);
        let read = match op {
            Op::Assign { value, .. } => of(value),
            Op::Take { lane, .. } => self.taken(code, here, *lane),
            _ => in_memory,
        };
        let written = match op {
            Op::Store { value, .. } => of(value),
            Op::Rmw { .. } if updates(op) => Some(here),
            Op::Rmw {
                update: Update::Apply(..),
                ..
            } if nothing_written.is_some() => nothing_written,
            Op::Rmw { update, .. } => update.operands().into_iter().find_map(of),
            _ => None,
        };
        let given = if let Op::Give { value, .. } = op {
            of(value)
        } else {
            None
        };
        if let Some(site) = written {
            self.leave(code, &reach, site);
        }
        // An atomic on memory with an unknown value computes and writes another one.
        if written
            .or(in_memory.filter(|_| matches!(op, Op::Rmw { .. })))
            .is_some()
        {
            self.writers.insert(here);
        }
        if let Some(site) = given {
            self.given.entry(here).or_insert(site);
        }
        if let Some(dst) = op.defines() {
            let decides = read.is_none() && code.deciding[usize::from(here.0.0)].contains(&dst);
            let known = if decides {
                code.left(here.0, op, &reach, held)
            } else {
                None
            };
            held.set(dst, read, known);
        }
        self.steered = self.steered.or(steered.map(|made| (made, here)));
    }

    /// The origin of an unknown value that a thread may receive from a lane of its group. That lane
    /// gave the value at the same instruction. If that lane's thread does not contain the
    /// instruction, the value may come from any of its `Give`s.
    fn taken(&self, facts: &CodeFacts<'_>, (t, at): Site, lane: u8) -> Option<Site> {
        let program = facts.program;
        let gives = |t: ThreadId| {
            let code = program.thread(t).code.iter().enumerate();
            code.filter(|(_, instr)| matches!(instr.op, Op::Give { .. }))
        };
        let (_, met) = gives(t).rfind(|(give, _)| *give < at)?;
        let (own, Op::Give { among, .. }) = (Some(met.span), &met.op) else {
            return None;
        };
        let mates = &facts.mates[among][usize::from(t.0)];
        let other = *mates.get(usize::from(lane))?;
        let same = gives(other).any(|(_, instr)| Some(instr.span) == own);
        let met = gives(other).filter(|(_, instr)| !same || Some(instr.span) == own);
        met.filter_map(|(give, _)| self.given.get(&(other, give)).copied())
            .next()
    }

    /// Whether control or memory access depends on an unknown value here: the branch taken, the
    /// address, whether a write happens, or which threads meet.
    fn steers(
        &self,
        op: &Op,
        in_memory: Option<Site>,
        of: &impl Fn(&Expr) -> Option<Site>,
    ) -> Option<Site> {
        let value = match op {
            Op::Assign { value, .. } | Op::Store { value, .. } | Op::Give { value, .. } => {
                Some(value)
            }
            Op::Rmw {
                update: Update::Exchange(e) | Update::Apply(_, e),
                ..
            } => Some(e),
            Op::Rmw {
                update: Update::CompareExchange { new, .. } | Update::When { new, .. },
                ..
            } => Some(new),
            _ => None,
        };
        let compares = matches!(
            op,
            Op::Rmw {
                update: Update::CompareExchange { .. } | Update::When { .. },
                ..
            }
        );
        let others = op
            .operands()
            .into_iter()
            .filter(|e| !value.is_some_and(|value| std::ptr::eq(value, *e)));
        in_memory
            .filter(|_| compares)
            .or_else(|| others.into_iter().find_map(of))
    }
}
