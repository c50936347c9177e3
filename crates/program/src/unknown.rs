//! Values that are not worked out ([`BinOp::Unknown`]): what an approximation gives, arithmetic of types that are not modelled.
//!
//! # Invariants
//! - A program is decided with a stand-in for such a value, so an answer holds only if nothing that it rests on depends on one:
//!   [`Unknowns`] says whether that is so.
//! - Memory that may hold such a value does, in whatever order threads run and whatever they read, as in [`crate::points`]: where an
//!   address can be of any object, all hold what is written there. Registers hold it on each way of their thread on which they may, but
//!   for ways that a condition, which is the same number whenever it is come to, does not allow.
//! - What an instruction tells of such a value ([`BinOp::Tells`]) is known: the stand-in is right in that.

use std::collections::{BTreeMap, BTreeSet};

use crate::litmus::Observable;
use crate::points::{Points, Targets};
use crate::{BinOp, Expr, Instr, LocId, Op, Program, RegId, ThreadId, Update};

/// A micro-op of a program: its thread, and its position there.
pub type Site = (ThreadId, usize);

/// Registers that may hold unknown values, each with a micro-op that makes such a value.
type Registers = BTreeMap<RegId, Site>;

/// What is said of registers at a place.
#[derive(Clone, Debug, Default)]
struct Held {
    unknown: Registers,
    /// Those that hold the same number on every way there.
    known: BTreeMap<RegId, i64>,
}

impl Held {
    /// What an expression is, if that is the same on every way here.
    fn constant(&self, e: &Expr) -> Option<i64> {
        e.value(&|leaf| if let Expr::Reg(r) = leaf { self.known.get(r).copied() } else { None })
    }

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

    /// Adds one more way to a place. Whether what is said there changes.
    fn meet(&self, states: &mut BTreeMap<usize, Held>, at: usize) -> bool {
        let Some(state) = states.get_mut(&at) else {
            states.insert(at, self.clone());
            return true;
        };
        let before = (state.unknown.len(), state.known.len());
        self.unknown.iter().for_each(|(&reg, &site)| _ = state.unknown.entry(reg).or_insert(site));
        state.known.retain(|reg, value| self.known.get(reg) == Some(value));
        (state.unknown.len(), state.known.len()) != before
    }
}

/// Which registers and memory may hold unknown values, and what depends on them.
#[derive(Clone, Debug, Default)]
pub struct Unknowns {
    /// By thread, at its end.
    registers: Vec<Registers>,
    memory: BTreeMap<LocId, Site>,
    /// What threads hand to others, by the micro-op.
    given: BTreeMap<Site, Site>,
    /// A way, an address or whether something is written depends on a value: where it is made, and what depends on it.
    steered: Option<(Site, Site)>,
}

/// Whether a program makes such values at all.
pub fn are_made(program: &Program) -> bool {
    program.instrs().any(|(_, _, instr)| updates(&instr.op) || instr.op.operands().into_iter().any(makes))
}

/// Whether an atomic writes such a value.
fn updates(op: &Op) -> bool {
    matches!(op, Op::Rmw { update: Update::Apply(BinOp::Unknown, _), .. })
}

/// Whether an expression makes such a value.
fn makes(e: &Expr) -> bool {
    e.any(&|e| matches!(e, Expr::Bin(BinOp::Unknown, ..)))
}

impl Unknowns {
    /// Analyses a program.
    pub fn of(program: &Program) -> Unknowns {
        let mut unknowns = Unknowns::default();
        if !are_made(program) {
            return unknowns;
        }
        let points = Points::compute(program);
        let all: Targets = (0..program.locations.len() as u16).map(|l| program.object(LocId(l))).collect();
        let objects: Vec<Vec<Targets>> = program
            .thread_ids()
            .map(|t| {
                let of = |instr: &Instr| instr.op.address().map(|addr| points.of(usize::from(t.0), addr));
                let some = |objects: Targets| if objects.is_empty() { all.clone() } else { objects };
                program.thread(t).code.iter().map(|instr| of(instr).map(some).unwrap_or_default()).collect()
            })
            .collect();
        // What memory holds is known once nothing is added to it.
        loop {
            let before = (unknowns.memory.len(), unknowns.given.len());
            unknowns.registers.clear();
            unknowns.steered = None;
            for t in program.thread_ids() {
                unknowns.flow(program, t, &objects[usize::from(t.0)]);
            }
            if (unknowns.memory.len(), unknowns.given.len()) == before {
                return unknowns;
            }
        }
    }

    /// Where a value is made on which the course of the program depends, and what depends on it.
    pub fn steered(&self) -> Option<(Site, Site)> {
        self.steered
    }

    /// Where a value is made that an observable may show.
    pub fn shown(&self, program: &Program, of: Observable) -> Option<Site> {
        match of {
            Observable::Reg(t, r) => self.registers.get(usize::from(t.0))?.get(&r).copied(),
            Observable::Mem { loc, .. } => self.in_memory(program, loc),
        }
    }

    /// Where a value is made that may be in memory.
    pub fn in_memory(&self, program: &Program, loc: LocId) -> Option<Site> {
        self.memory.get(&program.object(loc)).copied()
    }

    /// Goes through a thread, on all of its ways. States are kept where ways meet, and carried from there to the next such place.
    fn flow(&mut self, program: &Program, t: ThreadId, objects: &[Targets]) {
        let code = &program.thread(t).code;
        let heads: BTreeSet<usize> = code.iter().filter_map(|i| i.op.target()).chain([code.len()]).collect();
        let mut states = BTreeMap::from([(0, Held::default())]);
        let mut open = BTreeSet::from([0]);
        while let Some(head) = open.pop_first() {
            let (mut at, mut held) = (head, states[&head].clone());
            while let Some(instr) = code.get(at) {
                self.step(program, (t, at), &instr.op, &objects[at], &mut held);
                let taken = if let Op::Branch { cond, .. } = &instr.op { held.constant(cond) } else { None };
                let target = instr.op.target().filter(|_| taken != Some(0));
                let next = instr.op.falls_through() && taken.is_none_or(|cond| cond == 0);
                at += 1;
                let meets = next && heads.contains(&at);
                for to in target.into_iter().chain(meets.then_some(at)) {
                    if held.meet(&mut states, to) {
                        open.insert(to);
                    }
                }
                if meets || !next {
                    break;
                }
            }
        }
        self.registers.push(states.remove(&code.len()).unwrap_or_default().unknown);
    }

    /// What a micro-op does with values.
    fn step(&mut self, program: &Program, here: Site, op: &Op, objects: &Targets, held: &mut Held) {
        let of = |e: &Expr| {
            if matches!(e, Expr::Bin(BinOp::Tells, ..)) {
                return None;
            }
            let mut found = makes(e).then_some(here);
            e.registers(&mut |r| found = found.or(held.unknown.get(&r).copied()));
            found
        };
        let in_memory = objects.iter().find_map(|o| self.memory.get(o)).copied();
        let steered = self.steers(op, in_memory, &of);
        let read = match op {
            Op::Assign { value, .. } => of(value),
            Op::Take { lane, .. } => self.taken(program, here, *lane),
            _ => in_memory,
        };
        let written = match op {
            Op::Store { value, .. } => of(value),
            Op::Rmw { .. } if updates(op) => Some(here),
            Op::Rmw { update, .. } => update.operands().into_iter().find_map(of),
            _ => None,
        };
        let given = if let Op::Give { value, .. } = op { of(value) } else { None };
        if let Some(site) = written {
            for object in objects {
                self.memory.entry(*object).or_insert(site);
            }
        }
        if let Some(site) = given {
            self.given.entry(here).or_insert(site);
        }
        if let Some(dst) = op.defines() {
            let known = if let Op::Assign { value, .. } = op { held.constant(value) } else { None };
            held.set(dst, read, known);
        }
        self.steered = self.steered.or(steered.map(|made| (made, here)));
    }

    /// What a thread may take from a lane of its group: what that gives at the instruction where it met it; a thread that does not have
    /// that instruction may have met it at any other.
    fn taken(&self, program: &Program, (t, at): Site, lane: u8) -> Option<Site> {
        let gives = |t: ThreadId| {
            let code = program.thread(t).code.iter().enumerate();
            code.filter(|(_, instr)| matches!(instr.op, Op::Give { .. }))
        };
        let (_, met) = gives(t).rfind(|(give, _)| *give < at)?;
        let (own, Op::Give { among, .. }) = (Some(met.span), &met.op) else { return None };
        let place = &program.thread(t).place;
        let is_it = |other: &ThreadId| {
            program.thread(*other).place.same(place, *among)
                && program.seat(*other, *among).rank == u32::from(lane)
        };
        program.thread_ids().filter(is_it).find_map(|other| {
            let same = gives(other).any(|(_, instr)| Some(instr.span) == own);
            let met = gives(other).filter(|(_, instr)| !same || Some(instr.span) == own);
            met.filter_map(|(give, _)| self.given.get(&(other, give)).copied()).next()
        })
    }

    /// Whether the course of the program depends on an unknown value here: which way is taken, what is accessed, whether it is
    /// written, who meets.
    fn steers(&self, op: &Op, in_memory: Option<Site>, of: &impl Fn(&Expr) -> Option<Site>) -> Option<Site> {
        let value = match op {
            Op::Assign { value, .. } | Op::Store { value, .. } | Op::Give { value, .. } => Some(value),
            Op::Rmw { update: Update::Exchange(e) | Update::Apply(_, e), .. } => Some(e),
            Op::Rmw { update: Update::CompareExchange { new, .. } | Update::When { new, .. }, .. } => Some(new),
            _ => None,
        };
        let compares = matches!(op, Op::Rmw { update: Update::CompareExchange { .. } | Update::When { .. }, .. });
        let others = op.operands().into_iter().filter(|e| !value.is_some_and(|value| std::ptr::eq(value, *e)));
        in_memory.filter(|_| compares).or_else(|| others.into_iter().find_map(of))
    }
}
