//! Values that are not worked out ([`BinOp::Unknown`]): what an approximation gives, arithmetic of
//! types that are not modelled.
//!
//! # Invariants
//! - A program is decided with a stand-in for such a value, so an answer holds only if nothing that
//!   it rests on depends on one: [`Unknowns`] says whether that is so.
//! - A cell of memory that may hold such a value does, in whatever order threads run and whatever
//!   they read. An address that numbers alone decide is of one cell. Any other is of all cells of
//!   the objects that [`crate::points`] names, and of all memory if it names none.
//! - Registers hold it on each way of their thread on which they may, but for ways that a
//!   condition, which is the same number whenever it is come to, does not allow. Ways with other
//!   numbers are told apart, so that a loop that counts is gone through turn by turn. Where that
//!   makes too many, they become one, of which nothing is known in which they differ.
//! - What an instruction tells of such a value ([`BinOp::Tells`]) is known: the stand-in is right
//!   in that.

use std::collections::{BTreeMap, BTreeSet};

use crate::litmus::Observable;
use crate::memory::{CellId, Memory};
use crate::points::{Points, Targets};
use crate::{BinOp, Expr, Instr, LocId, Op, Program, RegId, ThreadId, Update, live_registers};

/// A micro-op of a program: its thread, and its position there.
pub type Site = (ThreadId, usize);

/// Registers that may hold unknown values, each with a micro-op that makes such a value.
type Registers = BTreeMap<RegId, Site>;

/// At most so many ways to a place are told apart.
const WAYS: usize = 64;
/// So many micro-ops are gone through before ways are no longer told apart.
const STEPS: usize = 2_000_000;

/// What is said of registers on a way to a place.
#[derive(Clone, Debug, Default)]
struct Held {
    unknown: Registers,
    /// Those of which the number is known that they hold.
    known: BTreeMap<RegId, i64>,
}

impl Held {
    /// A register is written.
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

    /// Adds what another way may bring to the same place. Whether what is said there changes.
    fn join(&mut self, other: &Held) -> bool {
        let before = (self.unknown.len(), self.known.len());
        other
            .unknown
            .iter()
            .for_each(|(&reg, &site)| _ = self.unknown.entry(reg).or_insert(site));
        self.known
            .retain(|reg, value| other.known.get(reg) == Some(value));
        (self.unknown.len(), self.known.len()) != before
    }

    /// Adds a way to those of a place, of which so many may be told apart: the number of the one
    /// that it changes.
    fn meet(self, ways: &mut Vec<Held>, most: usize) -> Option<usize> {
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

/// What an access can be to.
enum Reach<'a> {
    /// A cell.
    Cell(CellId),
    /// Any cell of these objects.
    Objects(&'a Targets),
}

/// A program, with what the analysis asks of it.
struct Code<'a> {
    program: &'a Program,
    memory: Memory,
    /// By thread and micro-op: the objects that it may access.
    objects: Vec<Vec<Targets>>,
    /// The objects that something writes.
    written: Targets,
    /// By thread: registers on which an address or a way may depend.
    deciding: Vec<BTreeSet<RegId>>,
}

impl<'a> Code<'a> {
    fn new(program: &'a Program) -> Code<'a> {
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
            let some = |objects: Targets| {
                if objects.is_empty() {
                    all.clone()
                } else {
                    objects
                }
            };
            program
                .thread(t)
                .code
                .iter()
                .map(|instr| of(instr).map(some).unwrap_or_default())
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
        Code {
            program,
            memory: Memory::new(program),
            objects,
            written,
            deciding,
        }
    }

    /// What an expression is on a way of a thread, if numbers alone decide that.
    fn constant(&self, t: ThreadId, held: &Held, e: &Expr) -> Option<i64> {
        e.value(&|leaf| match leaf {
            Expr::Reg(r) => held.known.get(r).copied(),
            Expr::Address(loc) => self.memory.address(self.program, *loc, 0, Some(t)),
            _ => None,
        })
    }

    /// What a micro-op accesses on a way of a thread.
    fn reach(&self, (t, at): Site, op: &Op, held: &Held) -> Reach<'_> {
        let cell = || {
            let address = self.constant(t, held, op.address()?)?;
            let cell = self
                .memory
                .cell_at(address, op.accesses().next()?.ty.bytes())?;
            Some(self.memory.cell(cell).memory)
        };
        cell().map_or(
            Reach::Objects(&self.objects[usize::from(t.0)][at]),
            Reach::Cell,
        )
    }

    fn object(&self, cell: CellId) -> LocId {
        self.program.object(self.memory.cell(cell).location.0)
    }

    /// What a micro-op leaves in its register, if numbers alone decide that.
    fn left(&self, t: ThreadId, op: &Op, reach: &Reach<'_>, held: &Held) -> Option<i64> {
        match (op, reach) {
            (Op::Assign { value, .. }, _) => self.constant(t, held, value),
            // What nothing writes to stays as it was.
            (Op::Load { access, .. }, Reach::Cell(cell))
                if !self.written.contains(&self.object(*cell)) =>
            {
                let first = self.memory.cell(self.memory.cell(*cell).memory);
                (!first.unknown).then(|| access.ty.wrap(first.init))
            }
            _ => None,
        }
    }
}

/// The registers of a thread on which an address or a way may depend.
fn deciding(program: &Program, t: ThreadId) -> BTreeSet<RegId> {
    let code = &program.thread(t).code;
    let mut found = BTreeSet::new();
    for instr in code {
        let ways = if let Op::Branch { cond, .. } = &instr.op {
            Some(cond)
        } else {
            None
        };
        ways.into_iter()
            .chain(instr.op.address())
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

/// Which registers and memory may hold unknown values, and what depends on them.
#[derive(Clone, Debug, Default)]
pub struct Unknowns {
    /// By thread, at its end.
    registers: Vec<Registers>,
    /// Cells that may hold one, by their memory.
    cells: BTreeMap<CellId, Site>,
    /// Objects of which each cell may hold one.
    whole: BTreeMap<LocId, Site>,
    /// Objects of which some cell may hold one.
    part: BTreeMap<LocId, Site>,
    /// Reads that can find memory that nothing has written, where that has an unknown value.
    unwritten: BTreeSet<Site>,
    /// Micro-ops that may write one.
    writers: BTreeSet<Site>,
    /// What threads hand to others, by the micro-op.
    given: BTreeMap<Site, Site>,
    /// A way, an address or whether something is written depends on a value: where it is made, and
    /// what depends on it.
    steered: Option<(Site, Site)>,
}

/// Whether a program makes such values at all.
pub fn are_made(program: &Program) -> bool {
    program
        .instrs()
        .any(|(_, _, instr)| updates(&instr.op) || instr.op.operands().into_iter().any(makes))
}

/// Whether an atomic writes such a value.
fn updates(op: &Op) -> bool {
    matches!(
        op,
        Op::Rmw {
            update: Update::Apply(BinOp::Unknown, _),
            ..
        }
    )
}

/// Whether an expression makes such a value.
fn makes(e: &Expr) -> bool {
    e.any(&|e| matches!(e, Expr::Bin(BinOp::Unknown, ..)))
}

impl Unknowns {
    /// Analyses a program.
    pub fn of(program: &Program) -> Unknowns {
        Unknowns::with_unwritten(program, BTreeSet::new())
    }

    /// The same, where some reads can find memory that nothing has written
    /// ([`crate::Init::Unknown`]).
    pub fn with_unwritten(program: &Program, unwritten: BTreeSet<Site>) -> Unknowns {
        let mut unknowns = Unknowns {
            unwritten,
            ..Unknowns::default()
        };
        if !are_made(program) && unknowns.unwritten.is_empty() {
            return unknowns;
        }
        let code = Code::new(program);
        let mut left = STEPS;
        // What memory holds is known once nothing is added to it.
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

    /// Grows with what is found of memory, and of what threads hand to others.
    fn size(&self) -> usize {
        self.cells.len() + self.whole.len() + self.part.len() + self.given.len()
    }

    /// Where a value is made on which the course of the program depends, and what depends on it.
    pub fn steered(&self) -> Option<(Site, Site)> {
        self.steered
    }

    /// Where a value is made that an observable may show, in the memory of the program.
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

    /// Where a value is made that may be in a cell, in the memory of the program.
    pub fn in_cell(&self, program: &Program, memory: &Memory, cell: CellId) -> Option<Site> {
        let cell = memory.cell(cell);
        let whole = || self.whole.get(&program.object(cell.location.0));
        self.cells.get(&cell.memory).or_else(whole).copied()
    }

    /// Where a value is made that an access may find.
    fn found(&self, code: &Code<'_>, reach: &Reach<'_>) -> Option<Site> {
        match reach {
            Reach::Cell(cell) => self.in_cell(code.program, &code.memory, *cell),
            Reach::Objects(objects) => objects.iter().find_map(|o| self.part.get(o)).copied(),
        }
    }

    /// An access leaves such a value.
    fn leave(&mut self, code: &Code<'_>, reach: &Reach<'_>, site: Site) {
        match reach {
            Reach::Cell(cell) => {
                self.cells.entry(*cell).or_insert(site);
                self.part.entry(code.object(*cell)).or_insert(site);
            }
            Reach::Objects(objects) => {
                for object in *objects {
                    self.whole.entry(*object).or_insert(site);
                    self.part.entry(*object).or_insert(site);
                }
            }
        }
    }

    /// Goes through a thread, on all of its ways. States are kept where ways meet, and carried from
    /// there to the next such place.
    fn flow(&mut self, code: &Code<'_>, t: ThreadId, left: &mut usize) {
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
        let mut first = Held::default();
        for &reg in &code.deciding[usize::from(t.0)] {
            let init = &thread.regs[usize::from(reg.0)].init;
            first
                .known
                .insert(reg, code.memory.initial(code.program, init, Some(t)));
        }
        let mut ways: BTreeMap<usize, Vec<Held>> = BTreeMap::from([(0, vec![first])]);
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

    /// What a micro-op does with values.
    fn step(&mut self, code: &Code<'_>, here: Site, op: &Op, held: &mut Held) {
        let of = |e: &Expr| {
            if matches!(e, Expr::Bin(BinOp::Tells, ..)) {
                return None;
            }
            let mut found = makes(e).then_some(here);
            e.registers(&mut |r| found = found.or(held.unknown.get(&r).copied()));
            found
        };
        let nothing_written = self.unwritten.contains(&here).then_some(here);
        let reach = code.reach(here, op, held);
        let in_memory = self.found(code, &reach).or(nothing_written);
        let steered = self.steers(op, in_memory, &of);
        let read = match op {
            Op::Assign { value, .. } => of(value),
            Op::Take { lane, .. } => self.taken(code.program, here, *lane),
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
        // An atomic that computes from an unknown value writes one, to memory that has one already.
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

    /// What a thread may take from a lane of its group: what that gives at the instruction where it
    /// met it; a thread that does not have that instruction may have met it at any other.
    fn taken(&self, program: &Program, (t, at): Site, lane: u8) -> Option<Site> {
        let gives = |t: ThreadId| {
            let code = program.thread(t).code.iter().enumerate();
            code.filter(|(_, instr)| matches!(instr.op, Op::Give { .. }))
        };
        let (_, met) = gives(t).rfind(|(give, _)| *give < at)?;
        let (own, Op::Give { among, .. }) = (Some(met.span), &met.op) else {
            return None;
        };
        let place = &program.thread(t).place;
        let is_it = |other: &ThreadId| {
            program.thread(*other).place.same(place, *among)
                && program.seat(*other, *among).rank == u32::from(lane)
        };
        program.thread_ids().filter(is_it).find_map(|other| {
            let same = gives(other).any(|(_, instr)| Some(instr.span) == own);
            let met = gives(other).filter(|(_, instr)| !same || Some(instr.span) == own);
            met.filter_map(|(give, _)| self.given.get(&(other, give)).copied())
                .next()
        })
    }

    /// Whether the course of the program depends on an unknown value here: which way is taken, what
    /// is accessed, whether it is written, who meets.
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
