//! Replaces local memory by registers, if all accesses to it have known addresses.
//!
//! Code that is compiled without optimisation keeps its variables in local memory and passes their
//! addresses to functions. A data-flow analysis follows values through registers and through that
//! memory. Then each part of an object becomes a register, and an access to it becomes a move.
//!
//! # Invariants
//! - An object moves to registers only if every access of every thread that may reach it is to
//!   known bytes of it. Objects named by a condition of the test stay in memory.
//! - An unknown value carries the set of objects in local memory that it may point to. Other
//!   threads cannot access local memory: through an address from another thread, a thread accesses
//!   its own local memory.
//! - Accesses are aligned to their sizes, so one of two overlapping accesses contains the other;
//!   the largest becomes a register.
//! - A branch that always goes one way becomes unconditional, and unreachable code is removed:
//!   libraries have separate code for local memory, which accesses it byte by byte.
//!
//! # Sources
//! - PTX ISA 9.4, *Local State Space*: private memory of a thread; *Addresses as Operands*,
//!   Alignment.

use std::collections::{BTreeMap, BTreeSet};

use super::arith::op;
use super::known::{self, Domain};
use super::memory::asks_space;
use super::pointers::Untyped;
use crate::isa::OpenObjects;
use program::points::{Targets, access_of};
use program::{
    BinOp, Element, Expr, Init, Instr, LocId, LocationKind, Op, Program, RegId, Register, Space, Ty,
};

/// The knowledge about a value.
#[derive(Clone, Debug, PartialEq)]
enum AbstractValue {
    /// A constant, or the address of a byte of an object.
    Is(Expr),
    /// If it is an address in local memory, it points into one of these objects.
    Of(Targets),
}

/// A range of bytes: object, first byte, size.
type Place = (LocId, i64, i64);

/// The knowledge at one point of a path.
#[derive(Clone)]
struct FlowState {
    regs: Vec<AbstractValue>,
    /// Known memory contents: object and first byte, with size and value. Elsewhere, an object
    /// holds any value that was ever stored in it.
    cells: BTreeMap<(LocId, i64), (i64, AbstractValue)>,
}

impl FlowState {
    /// Whether an expression is a register with a known address, or an address.
    fn is_address(&self, e: &Expr) -> bool {
        match e {
            Expr::Reg(r) => match &self.regs[usize::from(r.0)] {
                AbstractValue::Is(e) => e.base().is_some(),
                AbstractValue::Of(_) => false,
            },
            e => matches!(e, Expr::Address(_)),
        }
    }
}

/// The replacement of a reachable micro-op.
#[derive(Clone)]
enum Fact {
    /// It stays as it is.
    Stays,
    /// It accesses these bytes; a load returns this value, if it is known.
    Access(Place, Option<Expr>),
    /// It assigns this value, or branches on it.
    Is(Expr),
}

/// The objects in local memory.
struct LocalObjects {
    all: Targets,
    /// Objects that stay in memory.
    left: Targets,
}

/// Moves local memory to registers.
pub(super) fn keep(program: &mut Program, untyped: &[Untyped], open: &OpenObjects) {
    let mut objects = LocalObjects {
        all: candidates(program, open),
        left: Targets::new(),
    };
    let threads: Vec<usize> = (0..program.threads.len())
        .filter(|t| untyped[*t].is_some())
        .collect();
    let mut facts: Vec<Vec<Option<Fact>>> = Vec::new();
    while objects.left.len() < objects.all.len() {
        let left = objects.left.len();
        facts = threads
            .iter()
            .map(|&t: &usize| {
                LocalMemoryFlow::run(
                    program,
                    t,
                    untyped[t].as_deref().unwrap_or_default(),
                    &mut objects,
                )
            })
            .collect();
        if objects.left.len() == left {
            break;
        }
    }
    let kept = &objects.all - &objects.left;
    let parts: Vec<BTreeSet<Place>> = facts.iter().map(|facts| parts(facts)).collect();
    if kept.is_empty()
        || !threads
            .iter()
            .zip(&parts)
            .all(|(t, parts): (&usize, &BTreeSet<Place>)| {
                program.threads[*t].regs.len() + parts.len() <= usize::from(u16::MAX)
            })
    {
        return;
    }
    for ((t, facts), parts) in threads.into_iter().zip(facts).zip(parts) {
        rewrite(program, t, facts, parts);
    }
    for object in kept {
        if let LocationKind::Object { space, .. } =
            &mut program.locations[usize::from(object.0)].kind
        {
            *space = Space::Register;
        }
    }
}

/// Candidates for registers: objects in local memory that start as zeros, and that nothing else in
/// the test mentions.
fn candidates(program: &Program, open: &OpenObjects) -> Targets {
    let mut all: Targets = (0..program.locations.len() as u16)
        .map(LocId)
        .filter(|object| is_zero_local(program, *object))
        .collect();
    for other in (0..program.locations.len() as u16).map(LocId) {
        let object = program.object(other);
        if other != object {
            all.remove(&object);
        }
    }
    all.retain(|object| !open.untyped.contains(object) && !open.watched.contains(object));
    all
}

/// Whether a location is an object in local memory that starts as zeros.
fn is_zero_local(program: &Program, location: LocId) -> bool {
    match &program.location(location).kind {
        LocationKind::Object {
            space: Space::Local,
            init,
            class: None,
            ..
        } => init.iter().all(|init| *init == Init::Int(0)),
        _ => false,
    }
}

/// The largest places that a thread accesses; all other accessed places are parts of them.
fn parts(facts: &[Option<Fact>]) -> BTreeSet<Place> {
    let places = facts.iter().flatten().filter_map(|fact| match fact {
        Fact::Access(place, _) => Some(*place),
        _ => None,
    });
    let mut all: Vec<Place> = places.collect::<BTreeSet<_>>().into_iter().collect();
    // If two places begin at one byte, the larger comes first.
    all.sort_by_key(|&(object, first, size)| (object, first, -size));
    let mut found: Vec<Place> = Vec::new();
    for (object, first, size) in all {
        if !found
            .last()
            .is_some_and(|last| last.0 == object && first < last.1 + last.2)
        {
            found.push((object, first, size));
        }
    }
    found.into_iter().collect()
}

/// Gives a thread a register for each part, and turns its accesses to them into moves.
fn rewrite(program: &mut Program, t: usize, facts: Vec<Option<Fact>>, parts: BTreeSet<Place>) {
    let mut registers: BTreeMap<(LocId, i64), (RegId, Ty)> = BTreeMap::new();
    for (object, first, size) in parts {
        let thread = &program.threads[t];
        let mut name = format!("{}${first}", program.location(object).name);
        while thread.register(&name).is_some() {
            name.push('$');
        }
        let ty = Ty {
            bits: 8 * size as u8,
            signed: false,
        };
        registers.insert((object, first), (RegId(thread.regs.len() as u16), ty));
        program.threads[t].regs.push(Register {
            name,
            ty,
            init: Init::Int(0),
        });
    }
    let part = |(object, first, _): Place| {
        let (&(_, from), &(reg, ty)) = registers
            .range(..=(object, first))
            .next_back()
            .expect("each access is within one part");
        (reg, ty, 8 * (first - from))
    };
    for (at, (instr, fact)) in program.threads[t].code.iter_mut().zip(facts).enumerate() {
        match fact {
            None => {
                instr.op = Op::Branch {
                    cond: Expr::Const(0),
                    target: at + 1,
                }
            }
            Some(Fact::Stays) => continue,
            Some(Fact::Is(known)) => match &mut instr.op {
                Op::Assign { value, .. } => *value = known,
                Op::Branch { cond, target } => {
                    if known == Expr::Const(0) {
                        *target = at + 1;
                    }
                    *cond = known;
                }
                _ => unreachable!("nothing else is known"),
            },
            Some(Fact::Access(place, known)) => {
                let (reg, whole, shift) = part(place);
                instr.op = match &instr.op {
                    Op::Load { dst, access, .. } => {
                        let value = known.unwrap_or_else(|| read(reg, whole, access.ty, shift));
                        Op::Assign { dst: *dst, value }
                    }
                    Op::Store { value, access, .. } => Op::Assign {
                        dst: reg,
                        value: changed(reg, whole, access.ty, shift, value),
                    },
                    _ => unreachable!("no other access reaches a part"),
                };
            }
        }
        instr.element = Element::ONLY;
    }
}

/// Reads a value of type `ty` from a register, from bit `shift` on.
fn read(reg: RegId, whole: Ty, ty: Ty, shift: i64) -> Expr {
    let value = if shift == 0 {
        Expr::Reg(reg)
    } else {
        op(BinOp::Shr, whole, Expr::Reg(reg), Expr::Const(shift))
    };
    if ty.bits == 64 {
        value
    } else {
        Expr::Cast(ty, Box::new(value))
    }
}

/// A register with the bits from `shift` on replaced by a value.
fn changed(reg: RegId, whole: Ty, ty: Ty, shift: i64, value: &Expr) -> Expr {
    let unsigned = Ty {
        signed: false,
        ..ty
    };
    let value = if ty.bits == 64 {
        value.clone()
    } else {
        Expr::Cast(unsigned, Box::new(value.clone()))
    };
    if ty.bits == whole.bits {
        return value;
    }
    let rest = op(
        BinOp::And,
        whole,
        Expr::Reg(reg),
        Expr::Const(!(unsigned.wrap(-1) << shift)),
    );
    let value = if shift == 0 {
        value
    } else {
        op(BinOp::Shl, whole, value, Expr::Const(shift))
    };
    op(BinOp::Or, whole, rest, value)
}

/// The analysis of one thread.
struct LocalMemoryFlow<'a> {
    program: &'a Program,
    /// The accesses without a type.
    untyped: &'a [usize],
    objects: &'a mut LocalObjects,
    /// Objects with addresses that may be stored anywhere.
    escaped: Targets,
    /// For each object, the objects with addresses that may be stored in it.
    held: BTreeMap<LocId, Targets>,
    facts: Vec<Option<Fact>>,
}

fn initial_value(program: &Program, init: &Init) -> Expr {
    match *init {
        Init::Int(v) => Expr::Const(v),
        Init::Unknown => Expr::Const(0),
        Init::Address { loc, index } => {
            let offset = program.layout(loc).offset(index);
            known::behind(Expr::Address(program.object(loc)), offset)
        }
    }
}

impl<'a> LocalMemoryFlow<'a> {
    /// Repeats the analysis until the sets of remaining objects and stored addresses no longer
    /// grow.
    fn run(
        program: &'a Program,
        t: usize,
        untyped: &'a [usize],
        objects: &'a mut LocalObjects,
    ) -> Vec<Option<Fact>> {
        let thread = &program.threads[t];
        let start = FlowState {
            regs: thread
                .regs
                .iter()
                .map(|reg| AbstractValue::Is(initial_value(program, &reg.init)))
                .collect(),
            cells: BTreeMap::new(),
        };
        let (escaped, held) = Default::default();
        let mut flow = LocalMemoryFlow {
            program,
            untyped,
            objects,
            escaped,
            held,
            facts: Vec::new(),
        };
        loop {
            let before = flow.size();
            flow.facts = vec![None; thread.code.len()];
            known::flow(&thread.code, start.clone(), &mut flow);
            if flow.size() == before {
                return flow.facts;
            }
        }
    }

    /// The size of the growing sets.
    fn size(&self) -> usize {
        let held: usize = self.held.values().map(BTreeSet::len).sum();
        self.objects.left.len() + self.escaped.len() + held
    }

    /// The objects in local memory that a value may point to.
    fn of(&self, value: &AbstractValue) -> Targets {
        match value {
            AbstractValue::Is(e) => e
                .base()
                .filter(|loc| self.objects.all.contains(loc))
                .into_iter()
                .collect(),
            AbstractValue::Of(targets) => targets.clone(),
        }
    }

    /// A value read from unknown memory: it may point to any object with an address stored there.
    fn anything(&self) -> AbstractValue {
        let left = self
            .objects
            .left
            .iter()
            .filter_map(|object| self.held.get(object));
        AbstractValue::Of(left.chain([&self.escaped]).flatten().copied().collect())
    }

    fn value(&self, e: &Expr, state: &FlowState) -> AbstractValue {
        if let Some(known) = known::value(
            e,
            &|r: RegId| match &state.regs[usize::from(r.0)] {
                AbstractValue::Is(e) => Some(e.clone()),
                AbstractValue::Of(_) => None,
            },
            &|loc| match self.program.location(loc).kind {
                LocationKind::Object { space, .. } => space.is_narrow(),
                LocationKind::Alias { .. } => false,
            },
        ) {
            return AbstractValue::Is(known);
        }
        let mut targets = Targets::new();
        e.visit(&mut |e| match e {
            Expr::Reg(r) => targets.extend(self.of(&state.regs[usize::from(r.0)])),
            Expr::Address(_) => targets.extend(self.of(&AbstractValue::Is(e.clone()))),
            _ => {}
        });
        AbstractValue::Of(targets)
    }

    /// The bytes of an object in local memory that an access covers, if they are known and the
    /// object can move to registers.
    fn place(&self, at: usize, address: &AbstractValue, ty: Ty) -> Option<Place> {
        let AbstractValue::Is(address) = address else {
            return None;
        };
        let (object, first) = known::place(address)?;
        let LocationKind::Object { layout, init, .. } = &self.program.location(object).kind else {
            return None;
        };
        let (bytes, size) = (layout.bytes(init.len()) as i64, i64::from(ty.bytes()));
        let inside = first >= 0 && first + size <= bytes && first % size == 0;
        let kept = self.objects.all.contains(&object) && !self.objects.left.contains(&object);
        (kept && inside && self.untyped.binary_search(&at).is_err())
            .then_some((object, first, size))
    }

    /// The answer of an `isspacep` instruction, if it is known.
    fn space_answer(&self, instr: &Instr, state: &FlowState) -> Option<bool> {
        let (address, is_in) = asks_space(instr)?;
        match self.value(address, state) {
            AbstractValue::Is(e) => match self.program.location(e.base()?).kind {
                LocationKind::Object { space, .. } => Some(is_in(space)),
                LocationKind::Alias { .. } => None,
            },
            // The value points to no local memory, so a query for local memory has the answer no.
            AbstractValue::Of(targets) => {
                (targets.is_empty() && is_in(Space::Local) && !is_in(Space::Global))
                    .then_some(false)
            }
        }
    }

    /// The value of a load from known bytes.
    fn load(&self, place: Place, ty: Ty, state: &FlowState) -> AbstractValue {
        let (object, first, size) = place;
        match state.cells.get(&(object, first)) {
            Some((bytes, AbstractValue::Is(Expr::Const(v)))) if *bytes == size => {
                AbstractValue::Is(Expr::Const(ty.wrap(*v)))
            }
            Some((bytes, value)) if *bytes == size => value.clone(),
            _ => AbstractValue::Of(self.held.get(&object).cloned().unwrap_or_default()),
        }
    }

    /// Stores a value to known bytes.
    fn store(&mut self, place: Place, value: AbstractValue, state: &mut FlowState) {
        let (object, first, size) = place;
        let value = match value {
            // A narrow store keeps only some bits of the address.
            AbstractValue::Is(e) if e.base().is_some() && size < 8 => {
                AbstractValue::Of(self.of(&AbstractValue::Is(e)))
            }
            other => other,
        };
        let targets = self.of(&value);
        self.held.entry(object).or_default().extend(targets);
        let overlapping: Vec<_> = state
            .cells
            .range((object, i64::MIN)..(object, first + size))
            .filter(|((_, from), (bytes, _))| from + bytes > first)
            .map(|(key, _)| *key)
            .collect();
        for key in overlapping {
            state.cells.remove(&key);
        }
        state.cells.insert((object, first), (size, value));
    }

    /// The target of an unknown access may change, so it stays in memory; stored addresses may
    /// escape through it.
    fn escape(&mut self, op: &Op, address: Option<&AbstractValue>, state: &FlowState) {
        if let Some(address) = address {
            let targets = self.of(address);
            self.objects.left.extend(targets);
        }
        for operand in op.operands() {
            if op.address().is_some_and(|a| std::ptr::eq(a, operand)) {
                continue;
            }
            let targets = self.of(&self.value(operand, state));
            self.escaped.extend(targets);
        }
    }
}

impl Domain for LocalMemoryFlow<'_> {
    type State = FlowState;

    fn step(&mut self, at: usize, instr: Option<&Instr>, state: &mut FlowState) {
        let Some(instr) = instr else { return };
        let op = &instr.op;
        let address = op.address().map(|addr| self.value(addr, state));
        let ty = access_of(op).map_or(Ty::WORD, |(_, ty)| ty);
        let place = address
            .as_ref()
            .and_then(|address| self.place(at, address, ty));
        let mut fact = Fact::Stays;
        let mut result = None;
        match (op, place) {
            (Op::Assign { value, .. }, _) => {
                let answer = self.space_answer(instr, state);
                let found = match answer {
                    Some(answer) => AbstractValue::Is(Expr::Const(i64::from(answer))),
                    None if asks_space(instr).is_some() => AbstractValue::Of(Targets::new()),
                    None => self.value(value, state),
                };
                // `pointers` checks arithmetic on addresses, so it must stay.
                if let AbstractValue::Is(known @ Expr::Const(_)) = &found
                    && (answer.is_some() || !value.any(&|e| state.is_address(e)))
                {
                    fact = Fact::Is(known.clone());
                }
                result = Some(found);
            }
            (Op::Branch { cond, .. }, _) => {
                if let AbstractValue::Is(known @ Expr::Const(_)) = self.value(cond, state) {
                    fact = Fact::Is(known);
                }
            }
            (Op::Load { .. }, Some(place)) => {
                let value = self.load(place, ty, state);
                let known = match &value {
                    AbstractValue::Is(e) => Some(e.clone()),
                    AbstractValue::Of(_) => None,
                };
                fact = Fact::Access(place, known);
                result = Some(value);
            }
            (Op::Store { value, .. }, Some(place)) => {
                let value = self.value(value, state);
                self.store(place, value, state);
                fact = Fact::Access(place, None);
            }
            _ => {
                self.escape(op, address.as_ref(), state);
                result = Some(self.anything());
            }
        }
        if let (Some(dst), Some(result)) = (op.defines(), result) {
            state.regs[usize::from(dst.0)] = result;
        }
        self.facts[at] = Some(fact);
    }

    fn taken(&self, cond: &Expr, state: &FlowState) -> Option<bool> {
        match self.value(cond, state) {
            AbstractValue::Is(Expr::Const(v)) => Some(v != 0),
            _ => None,
        }
    }

    fn meet(&self, state: &mut FlowState, other: &FlowState) -> bool {
        let mut changed = false;
        let mut join = |a: &mut AbstractValue, b: &AbstractValue| {
            if a != b {
                let both = AbstractValue::Of(&self.of(a) | &self.of(b));
                changed |= *a != both;
                *a = both;
            }
        };
        state
            .regs
            .iter_mut()
            .zip(&other.regs)
            .for_each(|(a, b)| join(a, b));
        let before = state.cells.len();
        state
            .cells
            .retain(|key, (size, value)| match other.cells.get(key) {
                Some((bytes, other)) if bytes == size => {
                    join(value, other);
                    true
                }
                _ => false,
            });
        changed | (state.cells.len() < before)
    }
}
