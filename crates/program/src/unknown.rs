//! Values that are not worked out ([`BinOp::Unknown`]): what an approximation gives, arithmetic of types that are not modelled.
//!
//! # Invariants
//! - A program is decided with a stand-in for such a value, so an answer holds only if nothing that it rests on depends on one:
//!   [`Unknowns`] says whether that is so.
//! - Memory that may hold such a value does, in whatever order threads run and whatever they read, as in [`crate::points`]: where an
//!   address can be of any object, all hold what is written there. Registers hold it on each way of their thread on which they may.
//! - What an instruction tells of such a value ([`BinOp::Tells`]) is known: the stand-in is right in that.

use std::collections::{BTreeMap, BTreeSet};

use crate::litmus::Observable;
use crate::points::{Points, Targets};
use crate::{BinOp, Expr, Instr, LocId, Op, Program, RegId, ThreadId, Update};

/// A micro-op of a program: its thread, and its position there.
pub type Site = (ThreadId, usize);

/// Registers that may hold unknown values, each with a micro-op that makes such a value.
type Registers = BTreeMap<RegId, Site>;

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

    /// Goes through a thread, on all of its ways.
    fn flow(&mut self, program: &Program, t: ThreadId, objects: &[Targets]) {
        let code = &program.thread(t).code;
        let mut states: Vec<Option<Registers>> = vec![None; code.len() + 1];
        states[0] = Some(Registers::new());
        let mut open = BTreeSet::from([0]);
        while let Some(at) = open.pop_first() {
            let (Some(mut held), Some(instr)) = (states[at].clone(), code.get(at)) else { continue };
            self.step(program, (t, at), &instr.op, &objects[at], &mut held);
            let next = instr.op.falls_through().then_some(at + 1);
            for to in instr.op.target().into_iter().chain(next) {
                let state = states[to].get_or_insert_with(|| {
                    open.insert(to);
                    Registers::new()
                });
                for (&reg, &site) in &held {
                    if state.insert(reg, site).is_none() {
                        open.insert(to);
                    }
                }
            }
        }
        self.registers.push(states.pop().flatten().unwrap_or_default());
    }

    /// What a micro-op does with values.
    fn step(&mut self, program: &Program, here: Site, op: &Op, objects: &Targets, held: &mut Registers) {
        let of = |e: &Expr| {
            if matches!(e, Expr::Bin(BinOp::Tells, ..)) {
                return None;
            }
            let mut found = makes(e).then_some(here);
            e.registers(&mut |r| found = found.or(held.get(&r).copied()));
            found
        };
        let in_memory = objects.iter().find_map(|o| self.memory.get(o)).copied();
        let steered = self.steers(op, in_memory, &of);
        let read = match op {
            Op::Assign { value, .. } => of(value),
            Op::Take { .. } => self.taken(program, here),
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
            match read {
                Some(site) => held.insert(dst, site),
                None => held.remove(&dst),
            };
        }
        self.steered = self.steered.or(steered.map(|made| (made, here)));
    }

    /// What a thread may take from others: what they give at the instruction where it met them; threads that do not have that
    /// instruction may have met it at any other.
    fn taken(&self, program: &Program, (t, at): Site) -> Option<Site> {
        let gives = |t: ThreadId| {
            let code = program.thread(t).code.iter().enumerate();
            code.filter(|(_, instr)| matches!(instr.op, Op::Give { .. }))
        };
        let own = gives(t).rfind(|(give, _)| *give < at).map(|(_, instr)| instr.span);
        program.thread_ids().find_map(|other| {
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
