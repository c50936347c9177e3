//! Points-to analysis: the objects to which a value can point. It is flow-insensitive and covers
//! the whole program.
//!
//! # Invariants
//! - The result includes every address that a register or object can hold in any execution. Narrow
//!   accesses hold no addresses.
//! - Values that threads exchange ([`Op::Give`]) count as addresses only if the instruction
//!   accesses memory through them. Then every thread that does so with an instruction of the same
//!   name may have received each of them (PTX ISA, *ldmatrix*: all use the same qualifiers).
//!   Elsewhere they are numbers.
//! - A value that is shifted, or masked by [`LOW`], is a number: it selects a byte of an element,
//!   or it is a part of a descriptor. The distance of two addresses is a number, too.
//! - Address arithmetic stays inside its object. The engines detect accesses beyond it by address.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use diag::Span;

use crate::litmus::Observable;
use crate::{BinOp, Expr, Init, Instr, LocId, LocationKind, Op, Program, RegId, Ty, is_of_word};

/// Objects by index.
pub type Targets = BTreeSet<LocId>;

/// The address bits that a mask turns into a plain number.
const LOW: std::ops::Range<i64> = 0..1 << 20;

/// Whether a mask keeps only those bits.
fn is_low(mask: &Expr) -> bool {
    matches!(mask, Expr::Const(mask) if LOW.contains(mask))
}

fn is_address(value: &Expr) -> bool {
    matches!(value, Expr::Address(_))
}

/// The address and type of a memory access.
pub fn access_of(op: &Op) -> Option<(&Expr, Ty)> {
    Some((op.address()?, op.accesses().next()?.ty))
}

/// A place that can hold an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Reg(usize, RegId),
    Object(LocId),
    /// The values that threads exchange by an instruction with this name, hashed.
    Given(u64),
}

/// The addresses that registers and memory can hold.
#[derive(Debug)]
pub struct Points {
    /// For each location, its object.
    objects: Vec<LocId>,
    held: FxHashMap<Holder, Targets>,
    /// The instructions, with their threads, that access memory through exchanged values.
    handing: FxHashSet<(usize, Span)>,
}

impl Points {
    /// Analyses a program.
    pub fn compute(program: &Program) -> Points {
        let all = || (0..program.locations.len() as u16).map(LocId);
        let of = |is: fn(&Op) -> bool| -> FxHashSet<(usize, Span)> {
            let found = program.instrs().filter(|(_, _, instr)| is(&instr.op));
            found
                .map(|(t, _, instr)| (usize::from(t.0), instr.span))
                .collect()
        };
        let handing = of(|op| matches!(op, Op::Take { .. }));
        let handing = &handing & &of(|op| access_of(op).is_some());
        let objects = all().map(|l| program.object(l)).collect();
        let mut points = Points {
            objects,
            held: FxHashMap::default(),
            handing,
        };
        for (loc, location) in all().zip(&program.locations) {
            if let LocationKind::Object { init, .. } = &location.kind {
                init.iter()
                    .for_each(|v| points.start(Holder::Object(loc), v));
            }
        }
        for (t, thread) in program.threads.iter().enumerate() {
            for (r, reg) in thread.regs.iter().enumerate() {
                points.start(Holder::Reg(t, RegId(r as u16)), &reg.init);
            }
        }
        let of = |t: usize| {
            program.threads[t]
                .code
                .iter()
                .enumerate()
                .filter(move |(i, _)| !is_of_word(&program.threads[t].code, *i))
        };
        let code =
            || (0..program.threads.len()).flat_map(|t| of(t).map(move |(_, instr)| (t, instr)));
        while code().fold(false, |grown, (t, instr)| points.step(t, instr) || grown) {}
        points
    }

    fn start(&mut self, holder: Holder, init: &Init) {
        if let Init::Address { loc, .. } = init {
            self.add(holder, Targets::from([self.objects[usize::from(loc.0)]]));
        }
    }

    /// Adds targets to a holder; returns whether any was new.
    fn add(&mut self, holder: Holder, targets: Targets) -> bool {
        if targets.is_empty() {
            return false;
        }
        let held = self.held.entry(holder).or_default();
        let before = held.len();
        held.extend(targets);
        held.len() > before
    }

    /// Whether a register or memory can hold an address of an object.
    pub fn holds(&self, of: Observable, object: LocId) -> bool {
        let holder = match of {
            Observable::Reg(t, r) => Holder::Reg(usize::from(t.0), r),
            Observable::Mem { loc, .. } => Holder::Object(self.objects[usize::from(loc.0)]),
        };
        self.held
            .get(&holder)
            .is_some_and(|held| held.contains(&object))
    }

    /// The objects that a value can point to.
    pub fn of(&self, thread: usize, value: &Expr) -> Targets {
        match value {
            Expr::Address(loc) => Targets::from([self.objects[usize::from(loc.0)]]),
            Expr::Reg(r) => self
                .held
                .get(&Holder::Reg(thread, *r))
                .cloned()
                .unwrap_or_default(),
            Expr::Bin(BinOp::Shl | BinOp::Shr, ..) => Targets::new(),
            Expr::Bin(BinOp::Sub, _, a, b) if is_address(b) && !self.of(thread, a).is_empty() => {
                Targets::new()
            }
            Expr::Bin(BinOp::And, _, a, b) if is_low(a) || is_low(b) => Targets::new(),
            Expr::Bin(_, _, a, b) | Expr::Select(_, a, b) => {
                &self.of(thread, a) | &self.of(thread, b)
            }
            Expr::Cast(ty, a) if ty.bits >= 32 => self.of(thread, a),
            Expr::Const(_) | Expr::Cmp(..) | Expr::Cast(..) | Expr::Fused(..) => Targets::new(),
        }
    }

    /// Propagates through one instruction; returns whether anything was new.
    fn step(&mut self, t: usize, instr: &Instr) -> bool {
        let op = &instr.op;
        let given = || {
            let accesses = self.handing.contains(&(t, instr.span));
            let mut hash = FxHasher::default();
            instr
                .text
                .split_whitespace()
                .find(|word| !word.starts_with('@'))
                .hash(&mut hash);
            accesses.then(|| Holder::Given(hash.finish()))
        };
        // Narrow accesses hold no addresses.
        let places = match access_of(op) {
            Some((addr, ty)) if ty.bits == 64 => self.of(t, addr),
            _ => Targets::new(),
        };
        let read = match op {
            Op::Assign { value, .. } => self.of(t, value),
            Op::Take { .. } => given()
                .and_then(|holder| self.held.get(&holder))
                .cloned()
                .unwrap_or_default(),
            _ => places
                .iter()
                .filter_map(|o| self.held.get(&Holder::Object(*o)))
                .flatten()
                .copied()
                .collect(),
        };
        if let Op::Give { value, .. } = op {
            return given().is_some_and(|holder| self.add(holder, self.of(t, value)));
        }
        let mut grown = op
            .defines()
            .is_some_and(|dst| self.add(Holder::Reg(t, dst), read));
        // The last operand is the written value.
        let written = op
            .write()
            .and_then(|_| op.operands().pop())
            .map_or(Targets::new(), |value| self.of(t, value));
        for object in places {
            grown |= self.add(Holder::Object(object), written.clone());
        }
        grown
    }

    /// The objects that some instruction may write, with repetitions.
    pub fn written<'p>(&'p self, program: &'p Program) -> impl Iterator<Item = LocId> + 'p {
        let addresses = program.threads.iter().enumerate().flat_map(|(t, thread)| {
            thread
                .code
                .iter()
                .filter(|instr| instr.op.write().is_some())
                .map(move |instr| (t, instr.op.address()))
        });
        addresses.flat_map(|(t, addr)| addr.map(|addr| self.of(t, addr)).unwrap_or_default())
    }
}
