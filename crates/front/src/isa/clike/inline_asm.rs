//! Assembly in CUDA C++: PTX between the statements of a thread, with operands.
//!
//! # Invariants
//! - The text is read by the rows of PTX; what it means is said there alone. Its accesses and fences stay those of PTX: a mapping
//!   to PTX leaves them as they are, and a model of C++ has no words for them ([`program::Program::assembly`]).
//! - Its barriers are named barriers, which the language has no other form of; barrier 0 is the one that `__syncthreads()` waits at.
//! - An operand has the size that its constraint says, and an access that of the type which its address points to.
//!
//! # Sources
//! - NVIDIA, *Inline PTX Assembly in CUDA*: operands, constraints, `%%`, `volatile`, `"memory"`; PTX ISA, *bar / barrier*.

use std::collections::HashMap;
use std::ops::Range;

use super::ast::Expr as Tree;
use super::groups::WORK_GROUP_BARRIER;
use super::lower::Lowering;
use super::parse::{Failed, Parsed, Parser};
use super::place::Place;
use super::types::Value;
use crate::isa::{Symbols, ptx};
use diag::MappedText;
use program::{Barrier, BarrierNaming, BinOp, Expr, Op, RegId, Scope, Space, Tags, Ty};

/// What may stand between `asm` and its parenthesis.
const VOLATILE: &[&str] = &["volatile", "__volatile__", "__volatile"];

/// Operands by the last letter of their constraint: the size, and how PTX declares a register of it.
const CONSTRAINTS: &[(&str, u8, &str)] = &[("h", 16, ".b16"), ("r", 32, ".b32"), ("l", 64, ".b64")];

/// PTX's names of the place of a thread, and those of CUDA C++.
const SPECIALS: &[(&str, &str)] = &[
    ("%tid.x", "threadIdx.x"),
    ("%tid.y", "threadIdx.y"),
    ("%tid.z", "threadIdx.z"),
    ("%ctaid.x", "blockIdx.x"),
    ("%ctaid.y", "blockIdx.y"),
    ("%ctaid.z", "blockIdx.z"),
    ("%ntid.x", "blockDim.x"),
    ("%ntid.y", "blockDim.y"),
    ("%ntid.z", "blockDim.z"),
    ("%nctaid.x", "gridDim.x"),
    ("%nctaid.y", "gridDim.y"),
    ("%nctaid.z", "gridDim.z"),
];

/// An operand of a statement.
#[derive(Debug)]
pub(super) struct Operand {
    /// The contents of its string.
    constraint: Range<usize>,
    value: Tree,
}

/// An assembly statement.
#[derive(Debug)]
pub(super) struct Assembly {
    /// The contents of its strings.
    strings: Vec<Range<usize>>,
    volatile: bool,
    outputs: Vec<Operand>,
    inputs: Vec<Operand>,
    /// It says that it touches memory.
    memory: bool,
}

impl Assembly {
    /// The operands.
    pub(super) fn values(&self) -> impl Iterator<Item = &Tree> {
        self.outputs.iter().chain(&self.inputs).map(|operand| &operand.value)
    }
}

/// An operand, evaluated.
enum Given {
    /// The register that stands for it, what it points to, whether that is surely not in global memory, and where an output goes.
    Register {
        reg: RegId,
        name: String,
        ty: Ty,
        target: Option<Ty>,
        elsewhere: bool,
        place: Option<Place>,
    },
    Constant(i64),
}

/// Whether a word begins such a statement.
pub(super) fn begins(word: &str) -> bool {
    matches!(word, "asm" | "__asm__" | "__asm")
}

impl Parser<'_, '_> {
    /// `asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory")`, without the `;`.
    pub(super) fn assembly(&mut self) -> Parsed<Assembly> {
        self.next();
        let mut volatile = false;
        while VOLATILE.contains(&self.word()) {
            volatile = true;
            self.next();
        }
        self.expect("(")?;
        let mut strings = Vec::new();
        while let Some(contents) = self.string() {
            strings.push(contents);
        }
        if strings.is_empty() {
            return self.unexpected("a string of PTX, such as `\"fence.acq_rel.gpu;\"`");
        }
        let (mut outputs, mut inputs, mut memory) = (Vec::new(), Vec::new(), false);
        if self.eat(":") {
            outputs = self.operands()?;
            if self.eat(":") {
                inputs = self.operands()?;
                if self.eat(":") {
                    memory = self.clobbers()?;
                }
            }
        }
        self.expect(")")?;
        Ok(Assembly { strings, volatile, outputs, inputs, memory })
    }

    fn operands(&mut self) -> Parsed<Vec<Operand>> {
        let mut all = Vec::new();
        while let Some(constraint) = self.string() {
            self.expect("(")?;
            let value = self.expression()?;
            self.expect(")")?;
            all.push(Operand { constraint, value });
            if !self.eat(",") {
                break;
            }
        }
        Ok(all)
    }

    /// What else the statement touches: whether memory is named.
    fn clobbers(&mut self) -> Parsed<bool> {
        let mut memory = false;
        while let Some(contents) = self.string() {
            if self.str(&contents) != "memory" {
                let span = self.text.span(contents);
                self.sink.error("unsupported", span, "only memory can be named here", |d| {
                    d.label("expected `\"memory\"`").note("PTX has no registers that a program could name")
                });
                return Err(Failed);
            }
            memory = true;
            if !self.eat(",") {
                break;
            }
        }
        Ok(memory)
    }
}

impl Lowering<'_, '_> {
    /// An assembly statement.
    pub(super) fn assembly(&mut self, assembly: &Assembly, range: &Range<usize>) {
        if !self.env.language.cpp {
            self.error("unsupported", range, "assembly is not supported in this dialect", |d| {
                d.label("expected another statement")
            });
            return;
        }
        let mut given = Vec::new();
        for (operand, output) in
            assembly.outputs.iter().map(|o| (o, true)).chain(assembly.inputs.iter().map(|o| (o, false)))
        {
            match self.given(operand, output, given.len()) {
                Some(value) => given.push(value),
                None => return,
            }
        }
        let Some(text) = self.expanded(&assembly.strings, &given) else { return };
        if !self.in_its_space(&text, &given, range) {
            return;
        }
        let before = self.sink.errors();
        let lane = ("%laneid".to_string(), i64::from(self.env.warp.rank));
        let special = |(ptx, cuda): &(&str, &str)| {
            let value = self.env.specials.iter().find(|s| s.0 == *cuda)?.1;
            Some((ptx.to_string(), value))
        };
        let specials = SPECIALS.iter().filter_map(special).chain([lane]).collect();
        let regs = given.iter().filter_map(|g| match g {
            Given::Register { name, .. } => {
                let init = program::Init::Int(0);
                Some(ptx::RegInit { name: name.clone(), init, span: diag::Span::default() })
            }
            Given::Constant(_) => None,
        });
        let warp = self.env.warp;
        let env = ptx::Env { strict: true, warp, specials, regs: regs.collect(), ..ptx::Env::default() };
        let lowered = ptx::Unit::parse(text, self.sink).lower(&env, &Symbols::default(), self.sink);
        if self.sink.errors() > before {
            return;
        }
        if lowered.code.iter().any(ptx::is_non_coherent) {
            self.error("unsupported", range, "non-coherent loads are not supported in assembly", |d| {
                d.label("expected a load without `.nc`")
                    .note("whether something writes what it reads is known in tests in PTX alone")
            });
            return;
        }
        if lowered.leaves {
            self.error("unsupported", range, "ending the thread is not supported in assembly", |d| {
                d.label("expected no `exit` and no `ret`").help("write `return;`")
            });
            return;
        }
        let is_input = |r: RegId| {
            let name = &lowered.regs[usize::from(r.0)].name;
            given.iter().any(|g| matches!(g, Given::Register { name: n, place: None, .. } if n == name))
        };
        if lowered.code.iter().filter_map(|i| i.op.defines()).any(is_input) {
            self.error("written-input", range, "the assembly writes an operand that is an input", |d| {
                d.label("expected it among the outputs, as in `: \"+r\"(x)`")
                    .note("the compiler takes an input for unchanged (GCC, Extended Asm)")
            });
            return;
        }
        if !lowered.untyped().is_empty() {
            self.error("missing-type", range, "an access of assembly names its type", |d| {
                d.label("expected a type such as `.u32` or `.b32`")
            });
            return;
        }
        let acts = lowered.code.iter().any(|i| i.op.is_ptx() || matches!(i.op, Op::Barrier(_)));
        if acts && !(assembly.volatile && assembly.memory) {
            let what = if assembly.volatile { "without `\"memory\"`" } else { "without `volatile`" };
            let span = self.unit.text.span(range.clone());
            self.sink.warn("movable-assembly", span, format!("an assembly statement {what} may be moved"), |d| {
                d.label("here it stays where it is").help("write `asm volatile(\"…\" : … : … : \"memory\")`").note(
                    "a compiler may move accesses to memory across it (Inline PTX Assembly in CUDA, Incorrect Optimization)",
                )
            });
        }
        // Registers of its own and of operands, as the thread knows them.
        let mut regs = Vec::new();
        for reg in &lowered.regs {
            let of_operand = given.iter().find_map(|g| match g {
                Given::Register { reg: id, name, .. } if *name == reg.name => Some(*id),
                _ => None,
            });
            regs.push(of_operand.unwrap_or_else(|| self.temporary(reg.ty)));
        }
        let mut points: HashMap<RegId, Ty> = HashMap::new();
        for value in &given {
            if let Given::Register { reg, target: Some(ty), .. } = value {
                points.insert(*reg, *ty);
            }
        }
        let start = self.code.len();
        for mut instr in lowered.code {
            let of = |r: &mut RegId| *r = regs[usize::from(r.0)];
            instr.op.operands_mut().into_iter().for_each(|e| {
                e.visit_mut(&mut |e| {
                    if let Expr::Reg(r) = e {
                        of(r);
                    }
                })
            });
            if let Some(dst) = instr.op.defines_mut() {
                of(dst);
            }
            if let Some(target) = instr.op.target_mut() {
                *target += start;
            }
            match instr.op {
                Op::Barrier(barrier) if barrier.domain == Scope::Cta => self.named_barrier(barrier),
                Op::Barrier(_) => {
                    self.error(
                        "unsupported",
                        range,
                        "of barriers, only those of a block are supported here",
                        |d| {
                            d.label("expected `bar.sync` or `bar.arrive`")
                                .help("use `__syncwarp` or a group, or write the test in PTX: `dialect = \"ptx\"`")
                        },
                    );
                    return;
                }
                op => {
                    if !self.sized(&op, &mut points, range) {
                        return;
                    }
                    let at = self.push(op);
                    self.code[at].element = instr.element;
                }
            }
        }
        for value in given {
            if let Given::Register { reg, ty, place: Some(place), .. } = value {
                let value = Value::of(Expr::Reg(reg), ty).converted(&place.of().ty).expr;
                self.write(&place, value);
            }
        }
    }

    /// Evaluates an operand into a register of its own.
    fn given(&mut self, operand: &Operand, output: bool, number: usize) -> Option<Given> {
        let constraint = self.str(&operand.constraint);
        let letter = constraint.trim_start_matches(['=', '+', '&']);
        let known = CONSTRAINTS.iter().find(|c| c.0 == letter);
        let marked = constraint.starts_with(['=', '+']);
        let (Some((_, bits, _)), true) = (known, marked == output) else {
            if (letter, output, marked) == ("n", false, false) {
                return self.constant_operand(&operand.value);
            }
            let expected = if output { "`=r`, `=l`, `=h`, `+r`, `+l` or `+h`" } else { "`r`, `l`, `h` or `n`" };
            let message = format!("`{constraint}` is no constraint that is supported here");
            self.error("unsupported", &operand.constraint, message, |d| {
                d.label(format!("expected {expected}")).note("floating point and 128 bits are not supported")
            });
            return None;
        };
        let place = if output { Some(self.place(&operand.value)?) } else { None };
        let value = match &place {
            Some(place) if !self.writable(place, &operand.value.range) => return None,
            Some(place) if constraint.starts_with('+') => self.read(place.clone()),
            Some(place) => Value::new(Expr::Const(0), place.of().ty.clone()),
            None => self.scalar(&operand.value),
        };
        if value.word().bits != *bits {
            let message = format!("`{constraint}` is for {bits} bits, this operand has {}", value.word().bits);
            self.error("type-mismatch", &operand.value.range, message, |d| {
                d.label("expected a value of that size, as the compiler does")
            });
            return None;
        }
        let ty = Ty { bits: *bits, signed: false };
        let reg = self.temporary(ty);
        self.push(Op::Assign { dst: reg, value: value.fit(ty) });
        let target = value.target().and_then(|to| to.word());
        let base = value.expr.base().map(|loc| self.symbols.object(loc).1.space);
        let elsewhere = base.is_some_and(|space| space != Space::Global);
        Some(Given::Register { reg, name: format!("$op{number}"), ty, target, elsewhere, place })
    }

    /// Whether pointers, which are generic addresses, go where the text says: those of global memory are the same there, those of
    /// other memory have to be converted (PTX ISA, cvta).
    fn in_its_space(&mut self, text: &MappedText, given: &[Given], range: &Range<usize>) -> bool {
        let says = |word: &str| text.as_str().contains(word);
        let converted = |space: &str| !says(&format!(".{space}")) || says(&format!("cvta.to.{space}"));
        let other = |g: &Given| matches!(g, Given::Register { elsewhere: true, .. });
        let wrong = match () {
            () if !converted("shared") => "shared",
            () if !converted("local") => "local",
            () if says(".global") && given.iter().any(other) => "global",
            () => return true,
        };
        self.error("wrong-space", range, format!("`.{wrong}` of an address that is not one of that space"), |d| {
            d.label("a pointer is a generic address")
                .help(format!("leave `.{wrong}` out, or convert the address with `cvta.to.{wrong}.u64`"))
        });
        false
    }

    fn constant_operand(&mut self, value: &Tree) -> Option<Given> {
        let constant = self.eval(value).constant();
        if constant.is_none() {
            self.error("wrong-operand", &value.range, "this is no constant", |d| {
                d.label("expected a constant, as `n` says")
            });
        }
        constant.map(Given::Constant)
    }

    /// The text of the strings, with operands for `%0`, white space for `\n` and `\t`.
    fn expanded(&mut self, strings: &[Range<usize>], given: &[Given]) -> Option<MappedText> {
        let mut text = MappedText::new();
        for (value, range) in given.iter().zip(std::iter::repeat(&strings[0])) {
            if let Given::Register { name, ty, .. } = value {
                let declared = CONSTRAINTS.iter().find(|c| c.1 == ty.bits).map_or("", |c| c.2);
                text.push_opaque(&format!(".reg {declared} {name}; "), self.unit.text.span(range.clone()));
            }
        }
        for string in strings {
            let mut from = string.start;
            let mut at = string.start;
            while at < string.end {
                let rest = self.str(&(at..string.end));
                let digits = rest.bytes().skip(1).take_while(u8::is_ascii_digit).count();
                let (new, len) = match rest.as_bytes() {
                    [b'%', b'%', ..] => ("%".to_string(), 2),
                    [b'%', ..] if digits > 0 => {
                        let number = rest[1..=digits].parse::<usize>().ok();
                        match number.and_then(|n| given.get(n)) {
                            Some(Given::Register { name, .. }) => (name.clone(), digits + 1),
                            Some(Given::Constant(value)) => (value.to_string(), digits + 1),
                            None => {
                                let range = at..at + digits + 1;
                                let message = format!("there is no operand `{}`", self.str(&range));
                                self.error("wrong-operands", &range, message, |d| {
                                    d.label(format!("{} given", given.len()))
                                });
                                return None;
                            }
                        }
                    }
                    [b'\\', b'n', ..] => ("\n".to_string(), 2),
                    [b'\\', b't' | b'r', ..] => (" ".to_string(), 2),
                    [b'\\', ..] => {
                        self.error("c-syntax", &(at..at + 1), "this escape means nothing in PTX", |d| {
                            d.label("expected `\\n` or `\\t`")
                        });
                        return None;
                    }
                    _ => {
                        at += rest.chars().next().map_or(1, char::len_utf8);
                        continue;
                    }
                };
                text.push_slice(&self.unit.text, from..at);
                text.push_opaque(&new, self.unit.text.span(at..at + len));
                (at, from) = (at + len, at + len);
            }
            text.push_slice(&self.unit.text, from..string.end);
        }
        Some(text)
    }

    /// Whether an access has the size of what its address points to; follows addresses from register to register.
    fn sized(&mut self, op: &Op, points: &mut HashMap<RegId, Ty>, range: &Range<usize>) -> bool {
        if let Op::Assign { dst, value } = op {
            match pointee(value, points) {
                Some(ty) => points.insert(*dst, ty),
                None => points.remove(dst),
            };
            return true;
        }
        let (Some(addr), Some(access)) = (op.address(), op.accesses().next()) else { return true };
        if !op.is_ptx() {
            self.error("unsupported", range, "assembly through other proxies than the generic one", |d| {
                d.label("expected accesses such as `ld.global` and `ld.shared`")
                    .help("write the test in PTX: `dialect = \"ptx\"`")
            });
            return false;
        }
        let wanted = access.ty;
        match pointee(addr, points) {
            Some(ty) if ty.bits == wanted.bits => true,
            Some(ty) => {
                self.mixed_size(range, wanted, ty);
                false
            }
            None => {
                self.error("unsupported-address", range, "what this access is to cannot be told", |d| {
                    d.label("expected the address of a pointer operand, perhaps with an offset")
                        .help("give the pointer itself: `\"l\"(p)`")
                });
                false
            }
        }
    }

    fn named_barrier(&mut self, mut barrier: Barrier) {
        if let BarrierNaming::Counted { id: id @ Expr::Const(0), .. } = &mut barrier.naming {
            *id = Expr::Const(WORK_GROUP_BARRIER);
        }
        (barrier.arrive, barrier.wait) = (Tags::of(&["B", "BA"]), Tags::of(&["B", "BW"]));
        self.push(Op::Barrier(barrier));
    }
}

/// What an expression points to, given what registers do: a register, perhaps with an offset, or one of two that are alike.
fn pointee(expr: &Expr, points: &HashMap<RegId, Ty>) -> Option<Ty> {
    let of = |e: &Expr| pointee(e, points);
    match expr {
        Expr::Reg(r) => points.get(r).copied(),
        Expr::Bin(BinOp::Add, _, a, b) => match (of(a), of(b)) {
            (Some(ty), None) | (None, Some(ty)) => Some(ty),
            _ => None,
        },
        Expr::Bin(BinOp::Sub, _, a, b) if of(b).is_none() => of(a),
        // The address of a vector, if it is aligned.
        Expr::Select(_, a, b) if matches!(**b, Expr::Const(_)) => of(a),
        _ => None,
    }
}
