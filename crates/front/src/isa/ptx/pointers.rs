//! Addresses in registers: what they can point to, and arithmetic on them.
//!
//! PTX counts addresses in bytes, micro-ops in elements. Which size an element has is known for a named location; for
//! a register it follows from the locations whose address can reach it. A flow-insensitive analysis over the whole
//! program finds these; offsets added to an address are then divided by the element size.
//!
//! # Invariants
//! - An access through a register has the size of every object that the register can point to; anything else is
//!   reported as `mixed-size`.
//! - Nothing is guessed: arithmetic that has no meaning in elements is reported.
//! - Threads that were not written in PTX, such as those of the host, count in elements already: addresses are followed
//!   through them, and they stay as they are.

use std::collections::{BTreeSet, HashMap};

use super::Lowered;
use diag::{Sink, Span};
use program::{BinOp, Expr, Init, LocId, LocationKind, Op, Program, RegId, Ty, Update};

/// Rounds of the analysis. Each follows addresses along the whole code, so few are needed.
const MAX_ROUNDS: usize = 64;

/// Objects by index.
type Targets = BTreeSet<LocId>;

/// Of a thread in PTX, its accesses through registers that were written without a type; `None`: it was not written in PTX.
type Untyped = Option<Vec<usize>>;

/// Settles accesses and arithmetic through addresses in registers. `untyped` says which they are, thread by thread; `open`
/// lists the objects that have no type yet.
pub fn resolve(program: &mut Program, untyped: &[Untyped], open: &[LocId], sink: &mut Sink) {
    let indirect = |op: &Op| address_of(op).is_some_and(|(addr, _)| static_base(addr).is_none());
    let any = program.threads.iter().any(|t| t.code.iter().any(|i| indirect(&i.op) || takes_address(&i.op)));
    let pointers = program.threads.iter().flat_map(|t| &t.regs).any(|r| matches!(r.init, Init::Address { .. }));
    if !any && !pointers {
        return;
    }
    let Some(points) = Points::compute(program) else {
        let span = program.threads.iter().flat_map(|t| &t.code).next().map_or(Span::default(), |i| i.span);
        sink.error("unsupported-address", span, "addresses take too long a way through registers", |d| {
            d.label("in this test").note(format!("an address is followed through at most {MAX_ROUNDS} copies"))
        });
        return;
    };
    infer(program, &points, untyped, open, sink);
    for (t, untyped) in untyped.iter().enumerate() {
        let Some(untyped) = untyped else { continue };
        for i in 0..program.threads[t].code.len() {
            let span = program.threads[t].code[i].span;
            let mut op = program.threads[t].code[i].op.clone();
            let was_untyped = untyped.binary_search(&i).is_ok();
            let mut pass = Pass { program, points: &points, thread: t, span, sink };
            pass.access(&mut op, was_untyped);
            if let Op::Assign { value, .. } = &mut op {
                pass.arithmetic(value);
            }
            program.threads[t].code[i].op = op;
        }
    }
}

/// Gives objects without a type that of the first access through a register.
fn infer(program: &mut Program, points: &Points, untyped: &[Untyped], open: &[LocId], sink: &mut Sink) {
    let mut found: HashMap<LocId, Ty> = HashMap::new();
    for (t, (thread, untyped)) in program.threads.iter().zip(untyped).enumerate() {
        let Some(untyped) = untyped else { continue };
        for (i, instr) in thread.code.iter().enumerate() {
            let Some((addr, ty)) = address_of(&instr.op) else { continue };
            if untyped.binary_search(&i).is_err() && static_base(addr).is_none() {
                for object in points.of(program, t, addr).into_iter().filter(|o| open.contains(o)) {
                    found.entry(object).or_insert(ty);
                }
            }
        }
    }
    for (object, new) in &found {
        if let LocationKind::Object { ty, init, .. } = &mut program.locations[usize::from(object.0)].kind {
            *ty = *new;
            init.iter_mut().for_each(|v| {
                if let Init::Int(v) = v {
                    *v = new.wrap(*v);
                }
            });
        }
    }
    for (t, untyped) in untyped.iter().enumerate() {
        for i in 0..program.threads[t].code.len() {
            let Some((addr, known)) = address_of(&program.threads[t].code[i].op) else { continue };
            let object = static_base(addr).map(|loc| program.object(loc));
            let Some((object, ty)) = object.and_then(|object| Some((object, found.get(&object)?))) else {
                continue;
            };
            if untyped.is_some() {
                set_ty(&mut program.threads[t].code[i].op, *ty);
            } else if known != *ty {
                // What the thread does with the value rests on its type.
                let (name, span) = (program.location(object).name.clone(), program.threads[t].code[i].span);
                sink.error("missing-type", span, format!("`{name}` needs a type"), |d| {
                    d.label("the type is known from accesses through registers alone")
                        .help(format!("declare it, for example `{name} = {{ type = \"u32\" }}`"))
                });
            }
        }
    }
}

fn set_ty(op: &mut Op, ty: Ty) {
    match op {
        Op::Load { access, .. } | Op::Store { access, .. } => access.ty = ty,
        Op::Rmw { read, write, .. } => {
            read.ty = ty;
            write.ty = ty;
        }
        _ => {}
    }
}

/// The address and type of a memory access.
fn address_of(op: &Op) -> Option<(&Expr, Ty)> {
    match op {
        Op::Load { addr, access, .. } | Op::Store { addr, access, .. } => Some((addr, access.ty)),
        Op::Rmw { addr, read, .. } => Some((addr, read.ty)),
        _ => None,
    }
}

/// The location that an address names, if it names one.
fn static_base(addr: &Expr) -> Option<LocId> {
    match addr {
        Expr::Address(loc) => Some(*loc),
        Expr::Bin(_, _, base, _) => static_base(base),
        _ => None,
    }
}

/// Whether a value that is stored or assigned holds the address of a location.
fn takes_address(op: &Op) -> bool {
    match op {
        Op::Assign { value, .. } | Op::Store { value, .. } => names_address(value),
        Op::Rmw { update: Update::Exchange(v) | Update::Apply(_, v), .. } => names_address(v),
        Op::Rmw { update: Update::CompareExchange { new, .. }, .. } => names_address(new),
        _ => false,
    }
}

fn names_address(value: &Expr) -> bool {
    match value {
        Expr::Address(_) => true,
        Expr::Const(_) | Expr::Reg(_) => false,
        Expr::Bin(_, _, a, b) | Expr::Cmp(_, _, a, b) => names_address(a) || names_address(b),
        Expr::Select(_, a, b) => names_address(a) || names_address(b),
        Expr::Cast(_, a) => names_address(a),
    }
}

/// What registers and memory can hold.
struct Points {
    regs: HashMap<(usize, RegId), Targets>,
    memory: HashMap<LocId, Targets>,
    /// Registers that also hold plain integers.
    integers: BTreeSet<(usize, RegId)>,
}

impl Points {
    fn compute(program: &Program) -> Option<Points> {
        let mut points = Points { regs: HashMap::new(), memory: HashMap::new(), integers: BTreeSet::new() };
        for (i, location) in program.locations.iter().enumerate() {
            if let LocationKind::Object { init, .. } = &location.kind {
                let targets = init.iter().filter_map(|v| match v {
                    Init::Address { loc, .. } => Some(program.object(*loc)),
                    Init::Int(_) => None,
                });
                points.memory.entry(LocId(i as u16)).or_default().extend(targets);
            }
        }
        for (t, thread) in program.threads.iter().enumerate() {
            for (r, reg) in thread.regs.iter().enumerate() {
                if let Init::Address { loc, .. } = reg.init {
                    points.regs.entry((t, RegId(r as u16))).or_default().insert(program.object(loc));
                }
            }
        }
        let mut stable = false;
        for round in 0..MAX_ROUNDS {
            let before = points.size();
            for (t, thread) in program.threads.iter().enumerate() {
                // Backwards now and then: copies against the order of the code are then followed in one round too.
                if round % 2 == 0 {
                    thread.code.iter().for_each(|i| points.step(program, t, &i.op));
                } else {
                    thread.code.iter().rev().for_each(|i| points.step(program, t, &i.op));
                }
            }
            stable = points.size() == before;
            if stable {
                break;
            }
        }
        if !stable {
            return None;
        }
        for (t, thread) in program.threads.iter().enumerate() {
            for instr in &thread.code {
                let written = match &instr.op {
                    Op::Assign { dst, value } => Some((*dst, points.of(program, t, value).is_empty())),
                    Op::Load { dst, .. } | Op::Rmw { dst: Some(dst), .. } => {
                        Some((*dst, points.loaded(program, t, &instr.op).is_empty()))
                    }
                    _ => None,
                };
                if let Some((dst, true)) = written {
                    points.integers.insert((t, dst));
                }
            }
        }
        Some(points)
    }

    fn size(&self) -> usize {
        self.regs.values().chain(self.memory.values()).map(BTreeSet::len).sum()
    }

    /// The objects that a value can point to.
    fn of(&self, program: &Program, thread: usize, value: &Expr) -> Targets {
        match value {
            Expr::Const(_) | Expr::Cmp(..) => Targets::new(),
            Expr::Address(loc) => Targets::from([program.object(*loc)]),
            Expr::Reg(r) => self.regs.get(&(thread, *r)).cloned().unwrap_or_default(),
            Expr::Bin(_, _, a, b) | Expr::Select(_, a, b) => {
                let mut all = self.of(program, thread, a);
                all.extend(self.of(program, thread, b));
                all
            }
            Expr::Cast(ty, _) if ty.bits < 64 => Targets::new(),
            Expr::Cast(_, a) => self.of(program, thread, a),
        }
    }

    /// What an access can read. Narrow accesses cannot hold an address.
    fn loaded(&self, program: &Program, thread: usize, op: &Op) -> Targets {
        match address_of(op) {
            Some((addr, ty)) if ty.bits == 64 => {
                let objects = self.of(program, thread, addr);
                objects.iter().filter_map(|o| self.memory.get(o)).flatten().copied().collect()
            }
            _ => Targets::new(),
        }
    }

    fn step(&mut self, program: &Program, t: usize, op: &Op) {
        let read = match op {
            Op::Assign { dst, value } => Some((*dst, self.of(program, t, value))),
            Op::Load { dst, .. } | Op::Rmw { dst: Some(dst), .. } => Some((*dst, self.loaded(program, t, op))),
            _ => None,
        };
        if let Some((dst, targets)) = read.filter(|r| !r.1.is_empty()) {
            self.regs.entry((t, dst)).or_default().extend(targets);
        }
        let written = match op {
            Op::Store { addr, value, .. } => Some((addr, self.of(program, t, value))),
            Op::Rmw { addr, update, .. } => {
                let (Update::Exchange(v)
                | Update::Apply(_, v)
                | Update::CompareExchange { new: v, .. }
                | Update::When { new: v, .. }) = update;
                Some((addr, self.of(program, t, v)))
            }
            _ => None,
        };
        if let Some((addr, targets)) = written.filter(|w| !w.1.is_empty()) {
            for object in self.of(program, t, addr) {
                self.memory.entry(object).or_default().extend(targets.iter().copied());
            }
        }
    }
}

/// One instruction under the result of the analysis.
struct Pass<'a> {
    program: &'a Program,
    points: &'a Points,
    thread: usize,
    span: Span,
    sink: &'a mut Sink,
}

impl Pass<'_> {
    fn ty(&self, object: LocId) -> Ty {
        match &self.program.location(object).kind {
            LocationKind::Object { ty, .. } => *ty,
            LocationKind::Alias { .. } => Ty::WORD,
        }
    }

    fn name(&self, object: LocId) -> &str {
        &self.program.location(object).name
    }

    /// Checks an access through a register, and gives it a type if it has none.
    fn access(&mut self, op: &mut Op, untyped: bool) {
        let Some((addr, ty)) = address_of(op) else { return };
        if static_base(addr).is_some() {
            return;
        }
        let targets = self.points.of(self.program, self.thread, addr);
        let Some(first) = targets.first().copied() else {
            self.sink.error(
                "not-an-address",
                self.span,
                "no address of a location can get into this register",
                |d| {
                    d.label("expected a register that holds an address")
                        .help("give it one with `mov.u64 %rd1, x` or with `regs = { rd1 = \"&x\" }`")
                },
            );
            return;
        };
        let wanted = if untyped { self.ty(first) } else { ty };
        let offset = matches!(addr, Expr::Bin(..));
        if untyped && wanted.bits != ty.bits && offset {
            self.sink.error("missing-type", self.span, "an offset from a register needs the access's type", |d| {
                d.label(format!("expected a type of {} bits", wanted.bits))
            });
            return;
        }
        if let Some(other) = targets.iter().copied().find(|o| self.ty(*o).bits != wanted.bits) {
            let (name, bits) = (self.name(other), self.ty(other).bits);
            let message =
                format!("a {}-bit access that can reach `{name}`, which has {bits}-bit elements", wanted.bits);
            self.sink.error("mixed-size", self.span, message, |d| {
                d.label(format!("{} bits", wanted.bits))
                    .note("accesses of different sizes to one location are not supported")
            });
            return;
        }
        set_ty(op, wanted);
    }

    fn pointer(&self, value: &Expr) -> bool {
        !self.points.of(self.program, self.thread, value).is_empty()
    }

    /// Turns byte offsets into elements. Addresses of named locations were dealt with when they were read.
    fn arithmetic(&mut self, value: &mut Expr) {
        match value {
            Expr::Bin(op, ty, a, b) => {
                let (left, right) = (self.pointer(a), self.pointer(b));
                if static_base(a).is_some() || static_base(b).is_some() || (!left && !right) {
                    return;
                }
                let scalable = matches!((*op, left, right), (BinOp::Add, true, false) | (BinOp::Add, false, true))
                    || (*op == BinOp::Sub && left && !right);
                if !scalable || ty.bits != 64 {
                    self.unsupported("only adding an offset to an address, in 64 bits, is supported");
                    return;
                }
                let (base, offset) = if left { (a, b) } else { (b, a) };
                if self.holds_integers(base) {
                    self.unsupported("this register holds addresses and integers; use two registers");
                    return;
                }
                let targets = self.points.of(self.program, self.thread, base);
                let sizes: BTreeSet<u32> = targets.iter().map(|o| self.ty(*o).bytes()).collect();
                let [size] = sizes.into_iter().collect::<Vec<_>>()[..] else {
                    self.unsupported("this address can be of locations with different element sizes");
                    return;
                };
                if let Some(scaled) = scale(offset, size) {
                    **offset = scaled;
                } else {
                    self.sink.error(
                        "misaligned",
                        self.span,
                        "this offset is not a multiple of the element size",
                        |d| {
                            d.label(format!("elements have {size} bytes"))
                                .note("partially overlapping accesses are not supported")
                        },
                    );
                }
            }
            Expr::Cast(ty, inner) if ty.bits < 64 && self.pointer(inner) => {
                self.unsupported("an address does not fit fewer than 64 bits");
            }
            Expr::Select(_, a, b) => {
                self.arithmetic(a);
                self.arithmetic(b);
            }
            _ => {}
        }
    }

    fn holds_integers(&self, value: &Expr) -> bool {
        let mut found = false;
        value.registers(&mut |r| found |= self.points.integers.contains(&(self.thread, r)));
        found
    }

    fn unsupported(&mut self, why: &str) {
        self.sink.error("unsupported-address", self.span, "this arithmetic on an address is not supported", |d| {
            d.label("computes with an address").note(why)
        });
    }
}

/// A byte offset in elements of `size` bytes; `None` if a constant is not a multiple.
pub(super) fn scale(offset: &Expr, size: u32) -> Option<Expr> {
    let size = i64::from(size);
    match offset {
        Expr::Const(n) if n % size == 0 => Some(Expr::Const(n / size)),
        Expr::Const(_) => None,
        other if size == 1 => Some(other.clone()),
        other => {
            let wide = Ty { bits: 64, signed: true };
            Some(Expr::Bin(BinOp::Div, wide, Box::new(other.clone()), Box::new(Expr::Const(size))))
        }
    }
}

impl Lowered {
    /// The accesses through registers without a type, for [`resolve`].
    pub fn untyped(&self) -> &[usize] {
        &self.untyped
    }
}
