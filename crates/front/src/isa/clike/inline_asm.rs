//! Lowers assembly in CUDA C++: PTX with operands, between the statements of a thread.
//!
//! # Invariants
//! - Only the rows of PTX parse the text and define its meaning.
//! - The accesses and fences remain those of PTX: a mapping to PTX does not change them. A model of
//!   C++ has no words for them ([`program::Program::assembly`]).
//! - The barriers are named barriers, which CUDA C++ cannot write in another form.
//!   `__syncthreads()` waits at barrier 0.
//! - The size of an operand is that of its constraint. The size of an access is that of the type
//!   that its address points to.
//!
//! # Sources
//! - NVIDIA, *Inline PTX Assembly in CUDA*: operands, constraints, `%%`, `volatile`, `"memory"`;
//!   PTX ISA, *bar / barrier*.

use std::ops::Range;

use super::ast::{Assembly, AssemblyOperand, Expr as Tree, ExprKind};
use super::lower::Lowering;
use super::parse::{Failed, Parsed, Parser};
use super::place::Place;
use super::types::Value;
use diag::MappedText;
use program::{BinOp, Expr, Init, Op, RegId, Space, Ty};

/// Words that may come between `asm` and its parenthesis.
const VOLATILE: &[&str] = &["volatile", "__volatile__", "__volatile"];

/// Operands by the last letter of their constraint: the size, and the PTX type of their register.
const CONSTRAINTS: &[(&str, u8, &str)] = &[("h", 16, ".b16"), ("r", 32, ".b32"), ("l", 64, ".b64")];

/// Instructions that compute with registers alone.
const COMPUTING: [&str; 30] = [
    "mov", "add", "sub", "mul", "mul24", "mad", "mad24", "sad", "div", "rem", "abs", "neg", "min",
    "max", "popc", "clz", "bfind", "brev", "bfe", "bfi", "dp4a", "and", "or", "xor", "not", "shl",
    "shr", "shf", "lop3", "prmt",
];

impl Assembly {
    /// Whether its instructions compute with registers alone, and write variables only.
    pub(super) fn computes(&self, text: &str) -> bool {
        let all: String = self.strings.iter().map(|s| &text[s.clone()]).collect();
        let mut instructions = all
            .split([';', '{', '}'])
            .map(|one| one.replace("\\n", " ").replace("\\t", " "));
        let computing = |one: &str| {
            let first = one.trim().split(['.', ' ']).next().unwrap_or("");
            first.is_empty() || COMPUTING.contains(&first)
        };
        !self.memory
            && instructions.all(|one| computing(&one))
            && self
                .outputs
                .iter()
                .all(|o| matches!(o.value.kind, ExprKind::Name))
    }
}

/// An operand, evaluated.
pub(super) enum AsmOperand {
    /// A register: its name in the text, the type it points to, whether it surely points outside
    /// global memory, the place of an output, and its value if known.
    Register {
        reg: RegId,
        name: String,
        ty: Ty,
        target: Option<Ty>,
        elsewhere: bool,
        place: Option<Place>,
        known: Option<Init>,
    },
    Constant(i64),
}

impl AsmOperand {
    /// A register without known properties.
    pub(super) fn unknown(reg: RegId, number: usize, ty: Ty) -> AsmOperand {
        let name = format!("$op{number}");
        AsmOperand::Register {
            reg,
            name,
            ty,
            target: None,
            elsewhere: false,
            place: None,
            known: None,
        }
    }

    /// The operand as the text writes it.
    pub(super) fn word(&self) -> String {
        match self {
            AsmOperand::Register { name, .. } => name.clone(),
            AsmOperand::Constant(value) => value.to_string(),
        }
    }
}

/// The source of the assembly.
pub(super) enum How {
    /// A statement. Its words decide whether compilers may move it.
    Statement { volatile: bool, memory: bool },
    /// A library function; the type of the elements that it copies.
    Library(Option<Ty>),
}

/// Whether a word begins an assembly statement.
pub(super) fn begins(word: &str) -> bool {
    matches!(word, "asm" | "__asm__" | "__asm")
}

impl Parser<'_, '_> {
    /// `asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory")`, without the
    /// `;`.
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
        Ok(Assembly {
            strings,
            volatile,
            outputs,
            inputs,
            memory,
        })
    }

    fn operands(&mut self) -> Parsed<Vec<AssemblyOperand>> {
        let mut all = Vec::new();
        while let Some(constraint) = self.string() {
            self.expect("(")?;
            let value = self.expression()?;
            self.expect(")")?;
            all.push(AssemblyOperand { constraint, value });
            if !self.eat(",") {
                break;
            }
        }
        Ok(all)
    }

    /// The clobber list: whether it names memory.
    fn clobbers(&mut self) -> Parsed<bool> {
        let mut memory = false;
        while let Some(contents) = self.string() {
            if self.str(&contents) != "memory" {
                let span = self.text.span(contents);
                self.sink
                    .error("unsupported", span, "only memory can be named here", |d| {
                        d.label("expected `\"memory\"`")
                            .note("PTX has no registers that a program could name")
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
    /// Lowers an assembly statement.
    pub(super) fn assembly(&mut self, assembly: &Assembly, range: &Range<usize>) {
        if !self.env.language.cpp {
            self.error(
                "unsupported",
                range,
                "assembly is not supported in this dialect",
                |d| d.label("expected another statement"),
            );
            return;
        }
        let mut given = Vec::new();
        for (operand, output) in assembly
            .outputs
            .iter()
            .map(|o| (o, true))
            .chain(assembly.inputs.iter().map(|o| (o, false)))
        {
            match self.given(operand, output, given.len()) {
                Some(value) => given.push(value),
                None => return,
            }
        }
        let Some(text) = self.expanded(&assembly.strings, &given) else {
            return;
        };
        if !self.in_its_space(&text, &given, range) {
            return;
        }
        let how = How::Statement {
            volatile: assembly.volatile,
            memory: assembly.memory,
        };
        self.lower_ptx(text, given, range, &how);
    }

    /// Evaluates an operand into a new register.
    fn given(
        &mut self,
        operand: &AssemblyOperand,
        output: bool,
        number: usize,
    ) -> Option<AsmOperand> {
        let constraint = self.str(&operand.constraint);
        let letter = constraint.trim_start_matches(['=', '+', '&']);
        let known = CONSTRAINTS.iter().find(|c| c.0 == letter);
        let marked = constraint.starts_with(['=', '+']);
        let (Some((_, bits, _)), true) = (known, marked == output) else {
            if (letter, output, marked) == ("n", false, false) {
                return self.constant_operand(&operand.value);
            }
            let expected = if output {
                "`=r`, `=l`, `=h`, `+r`, `+l` or `+h`"
            } else {
                "`r`, `l`, `h` or `n`"
            };
            let message = format!("`{constraint}` is not a supported constraint");
            self.error("unsupported", &operand.constraint, message, |d| {
                d.label(format!("expected {expected}"))
                    .note("floating point and 128 bits are not supported")
            });
            return None;
        };
        let place = if output {
            Some(self.place(&operand.value)?)
        } else {
            None
        };
        let value = match &place {
            Some(place) if !self.writable(place, &operand.value.range) => return None,
            Some(place) if constraint.starts_with('+') => self.read(place.clone()),
            Some(place) => Value::new(Expr::Const(0), place.of().ty.clone()),
            None => self.scalar(&operand.value),
        };
        if value.word().bits != *bits {
            let message = format!(
                "`{constraint}` is for {bits} bits, this operand has {}",
                value.word().bits
            );
            self.error("type-mismatch", &operand.value.range, message, |d| {
                d.label("expected a value of that size, as the compiler does")
            });
            return None;
        }
        let ty = Ty {
            bits: *bits,
            signed: false,
        };
        let reg = self.temporary(ty);
        self.push(Op::Assign {
            dst: reg,
            value: value.bits(ty),
        });
        let target = value.target().and_then(|to| to.word());
        let base = value
            .expr
            .base()
            .map(|loc| self.symbols.object(loc).1.space);
        let elsewhere = base.is_some_and(|space| space != Space::Global);
        let known = if place.is_none() {
            self.init_of(&value.expr)
        } else {
            None
        };
        Some(AsmOperand::Register {
            reg,
            name: format!("$op{number}"),
            ty,
            target,
            elsewhere,
            place,
            known,
        })
    }

    /// Whether pointers fit the state spaces in the text. Pointers are generic addresses: those of
    /// global memory are the same there, others need a conversion (PTX ISA, cvta).
    fn in_its_space(
        &mut self,
        text: &MappedText,
        given: &[AsmOperand],
        range: &Range<usize>,
    ) -> bool {
        let says = |word: &str| text.as_str().contains(word);
        let converted =
            |space: &str| !says(&format!(".{space}")) || says(&format!("cvta.to.{space}"));
        fn other(g: &AsmOperand) -> bool {
            matches!(
                g,
                AsmOperand::Register {
                    elsewhere: true,
                    ..
                }
            )
        }
        // A number is an address that the code converted (`__cvta_generic_to_shared`).
        let has_pointer = given.iter().any(|g| {
            matches!(
                g,
                AsmOperand::Register {
                    target: Some(_),
                    ..
                }
            )
        });
        let wrong = match () {
            () if !converted("shared") && has_pointer => "shared",
            () if !converted("local") => "local",
            () if says(".global") && given.iter().any(other) => "global",
            () => return true,
        };
        self.error(
            "wrong-space",
            range,
            format!("`.{wrong}` of an address that is not one of that space"),
            |d| {
                d.label("a pointer is a generic address").help(format!(
                    "leave `.{wrong}` out, or convert the address with `cvta.to.{wrong}.u64`"
                ))
            },
        );
        false
    }

    fn constant_operand(&mut self, value: &Tree) -> Option<AsmOperand> {
        let constant = self.eval(value).constant();
        if constant.is_none() {
            self.error(
                "wrong-operand",
                &value.range,
                "this is not a constant",
                |d| d.label("expected a constant, as `n` says"),
            );
        }
        constant.map(AsmOperand::Constant)
    }

    /// The value of a register at the start of the text, if known.
    pub(super) fn init_of(&self, value: &Expr) -> Option<Init> {
        let (loc, offset) = match value {
            Expr::Const(n) => return Some(Init::Int(*n)),
            Expr::Address(loc) => (*loc, 0),
            Expr::Bin(BinOp::Add, _, base, offset) => match (&**base, &**offset) {
                (Expr::Address(loc), Expr::Const(offset)) => (*loc, *offset),
                _ => return None,
            },
            _ => return None,
        };
        if self.symbols.object(loc).1.record.is_some() {
            let (layout, cells) = (
                self.symbols.layout(loc),
                self.symbols.object(loc).1.init.len(),
            );
            let index = (0..cells as u32).find(|n| layout.offset(*n) == offset)?;
            return Some(Init::Address { loc, index });
        }
        let bytes = i64::from(self.symbols.ty(loc).bytes());
        let elements = self.symbols.elements(loc) as i64;
        // Memory of other blocks may follow the last element.
        let index = u32::try_from(offset / bytes)
            .ok()
            .filter(|_| offset % bytes == 0 && offset < elements * bytes)?;
        Some(Init::Address { loc, index })
    }

    /// PTX declarations for the registers of operands.
    pub(super) fn declared_operands(
        &self,
        given: &[AsmOperand],
        range: &Range<usize>,
    ) -> MappedText {
        let mut text = MappedText::new();
        for value in given {
            if let AsmOperand::Register { name, ty, .. } = value {
                let declared = CONSTRAINTS
                    .iter()
                    .find(|c| c.1 == ty.bits)
                    .map_or("", |c| c.2);
                text.push_opaque(
                    &format!(".reg {declared} {name}; "),
                    self.unit.text.span(range.clone()),
                );
            }
        }
        text
    }

    /// The text of the strings, with operands for `%0` and white space for `\n` and `\t`.
    fn expanded(&mut self, strings: &[Range<usize>], given: &[AsmOperand]) -> Option<MappedText> {
        let mut text = self.declared_operands(given, &strings[0]);
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
                            Some(value) => (value.word(), digits + 1),
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
                        self.error(
                            "c-syntax",
                            &(at..at + 1),
                            "this escape means nothing in PTX",
                            |d| d.label("expected `\\n` or `\\t`"),
                        );
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
}
