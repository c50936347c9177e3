//! One thread's statements to micro-ops: names resolved, operands checked against the instruction table.
//!
//! # Invariants
//! - Errors never stop the walk: one pass reports everything that is wrong with a thread.
//! - The result is only used if nothing was reported; until then a branch target may be a placeholder.
//! - Types of locations are settled ([`super::Unit::settle_types`]) before any thread is lowered.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::names::Name;
use super::parse::OperandKind;
use super::regs::{Regs, bare};
use super::table::{Matched, Quals, Role, Row};
use super::{Env, Item, Lowered, Unit};
use crate::isa::Symbols;
use diag::{Diagnostic, Sink, Span};
use program::{CmpOp, Element, Expr, Init, Instr, LocId, Op, RegId, Ty};

/// An operand, resolved.
#[derive(Clone, Debug)]
pub(super) enum Arg {
    /// `None`: discarded.
    Dst(Option<RegId>),
    /// A value or an address.
    Expr(Expr),
    /// The elements of a vector.
    Vector(Vec<Arg>),
    /// The text range of a label.
    Label(Range<usize>),
}

/// An instruction, resolved.
pub(super) struct Call {
    pub(super) row: &'static Row,
    pub(super) quals: Quals,
    /// The type it works in.
    pub(super) ty: Ty,
    /// The location it names, if it names one.
    pub(super) loc: Option<LocId>,
    /// Its predicate, if the row takes it.
    pub(super) pred: Option<Expr>,
    /// Its operands; those left out are missing at the end.
    pub(super) args: Vec<Arg>,
    /// Opcode and qualifiers.
    pub(super) opcode: Range<usize>,
}

impl Call {
    /// The register that operand `i` names.
    pub(super) fn dst(&self, i: usize) -> Option<RegId> {
        match self.args.get(i) {
            Some(Arg::Dst(reg)) => *reg,
            _ => None,
        }
    }

    /// Operand `i`, element by element.
    pub(super) fn elements(&self, i: usize) -> &[Arg] {
        match self.args.get(i) {
            Some(Arg::Vector(all)) => all,
            Some(one) => std::slice::from_ref(one),
            None => &[],
        }
    }

    /// The value of operand `i`, if it was given.
    pub(super) fn given(&self, i: usize) -> Option<Expr> {
        match self.args.get(i) {
            Some(Arg::Expr(e)) => Some(e.clone()),
            _ => None,
        }
    }

    /// The value of operand `i`.
    pub(super) fn expr(&self, i: usize) -> Expr {
        self.given(i).unwrap_or(Expr::Const(0))
    }
}

/// Where a lowering puts its micro-ops.
pub(super) struct Emit<'a, 's> {
    pub(super) unit: &'a Unit,
    pub(super) env: &'a Env,
    pub(super) symbols: &'a Symbols,
    pub(super) sink: &'s mut Sink,
    pub(super) regs: Regs,
    pub(super) written: HashSet<&'a str>,
    pub(super) declared: HashMap<String, Ty>,
    code: Vec<Instr>,
    labels: HashMap<&'a str, usize>,
    fixups: Vec<(usize, Range<usize>)>,
    untyped: Vec<usize>,
    leaves: bool,
    /// The current instruction has an address in a register and no type.
    pub(super) through_register: bool,
    current: (Span, u32, String),
}

/// A branch target that is still to be filled in with the end of the thread.
const END: usize = usize::MAX;

/// Lowers one thread.
pub(super) fn lower(unit: &Unit, env: &Env, symbols: &Symbols, sink: &mut Sink) -> Lowered {
    let mut emit = Emit {
        unit,
        env,
        symbols,
        sink,
        regs: Regs::default(),
        written: HashSet::new(),
        declared: HashMap::new(),
        code: Vec::new(),
        labels: HashMap::new(),
        fixups: Vec::new(),
        untyped: Vec::new(),
        leaves: false,
        through_register: false,
        current: (Span::default(), 0, String::new()),
    };
    emit.collect_written();
    emit.collect_registers();
    emit.emit_all();
    emit.patch();
    let init: HashMap<&str, &Init> = env.regs.iter().map(|r| (bare(&r.name), &r.init)).collect();
    Lowered { regs: emit.regs.finish(&init), code: emit.code, leaves: emit.leaves, untyped: emit.untyped }
}

impl<'a> Emit<'a, '_> {
    pub(super) fn error(
        &mut self,
        id: &'static str,
        range: Range<usize>,
        message: impl Into<String>,
        finish: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let span = self.unit.text.span(range);
        self.sink.error(id, span, message, finish);
    }

    pub(super) fn str(&self, range: &Range<usize>) -> &'a str {
        &self.unit.text.as_str()[range.clone()]
    }

    /// Appends a micro-op of the current instruction.
    pub(super) fn push(&mut self, op: Op) {
        let (span, line, text) = self.current.clone();
        if self.through_register && op.is_access() {
            self.untyped.push(self.code.len());
        }
        self.code.push(Instr { op, element: Element::ONLY, span, line, text });
    }

    /// Where the next micro-op comes.
    pub(super) fn here(&self) -> usize {
        self.code.len()
    }

    /// Appends a jump to a micro-op.
    pub(super) fn jump(&mut self, cond: Expr, target: usize) {
        self.push(Op::Branch { cond, target });
    }

    /// Appends the end of the thread.
    pub(super) fn leave(&mut self) {
        self.leaves = true;
        self.push(Op::Branch { cond: Expr::Const(1), target: END });
    }

    /// A register that no code names; `None` if there are too many.
    pub(super) fn temporary(&mut self, c: &Call, name: &str, ty: Ty) -> Option<RegId> {
        let id = self.regs.intern(name);
        match id {
            Some(id) => self.regs.wrote(id, ty),
            None => {
                self.error("too-many-registers", c.opcode.clone(), "a thread has at most 65535 registers", |d| d)
            }
        }
        id
    }

    /// Appends the elements of the current instruction.
    pub(super) fn push_elements(&mut self, ops: Vec<Op>) {
        let first = self.code.len();
        // There are at most eight.
        let of = ops.len() as u8;
        ops.into_iter().for_each(|op| self.push(op));
        for (at, instr) in (0..of).zip(&mut self.code[first..]) {
            instr.element = Element { at, of, ..Element::ONLY };
        }
    }

    /// Appends the pieces of one scalar of 128 bits, the lowest first.
    pub(super) fn push_scalar(&mut self, pieces: Vec<Op>) {
        let first = self.code.len();
        self.push_elements(pieces);
        self.code[first..].iter_mut().for_each(|instr| instr.element.whole = true);
    }

    /// Appends a jump to a label.
    pub(super) fn branch(&mut self, cond: Expr, label: Option<&Arg>) {
        match label {
            Some(Arg::Label(range)) => self.fixups.push((self.code.len(), range.clone())),
            _ => self.leaves = true,
        }
        self.push(Op::Branch { cond, target: END });
    }

    /// The value as one of type `ty`.
    pub(super) fn fit(&self, value: Expr, ty: Ty) -> Expr {
        match value {
            Expr::Const(v) => Expr::Const(ty.wrap(v)),
            _ if ty.bits == 64 || value.base().is_some() => value,
            Expr::Reg(r) if self.regs.holds(r, ty) => value,
            value => Expr::Cast(ty, Box::new(value)),
        }
    }

    /// The type an instruction works in.
    pub(super) fn call_ty(&self, m: &Matched) -> Ty {
        if let Some(ty) = m.quals.ty() {
            return ty;
        }
        let loc = m.row.operands.iter().zip(&m.raw.operands).find_map(|(role, operand)| match &operand.kind {
            OperandKind::Name(n) if *role == Role::Addr => match self.classify(self.str(&n.name), Role::Addr) {
                Name::Location(loc) => Some(loc),
                _ => None,
            },
            _ => None,
        });
        loc.map_or(Ty::WORD, |loc| self.symbols.ty(loc))
    }

    fn emit_all(&mut self) {
        let unit = self.unit;
        for item in &unit.items {
            match item {
                Item::Reg { .. } => {}
                Item::Label(range) => {
                    let name = self.str(range);
                    if self.labels.insert(name, self.code.len()).is_some() {
                        self.error(
                            "duplicate-label",
                            range.clone(),
                            format!("label `{name}` is set twice"),
                            |d| d.label("set again here"),
                        );
                    }
                }
                Item::Instr(m) => self.instruction(m),
            }
        }
    }

    fn instruction(&mut self, m: &'a Matched) {
        let span = self.unit.text.span(m.raw.range.clone());
        let text = self.str(&m.raw.range).split_whitespace().collect::<Vec<_>>().join(" ");
        self.current = (span, self.sink.line(span.start), text);
        let (most, given) = (m.row.operands.len(), m.raw.operands.len());
        if given > most || given < most - m.row.optional {
            let name = self.str(&m.raw.opcode);
            let wanted = match m.row.optional {
                0 => format!("{most}"),
                optional => format!("{} to {most}", most - optional),
            };
            let plural = if wanted == "1" { "operand" } else { "operands" };
            let message = format!("`{name}` takes {wanted} {plural}, {given} given");
            self.error("wrong-operands", m.raw.range.clone(), message, |d| {
                d.label(format!("expected the form {}", m.row.syntax))
            });
            return;
        }
        let ty = self.call_ty(m);
        let mut loc = None;
        self.through_register = false;
        let mut args = Vec::with_capacity(given);
        for (role, operand) in m.row.operands.iter().zip(&m.raw.operands) {
            match self.argument(m, *role, operand, ty, &mut loc) {
                Some(arg) => args.push(arg),
                None => return,
            }
        }
        let pred = m.raw.pred.as_ref().and_then(|(negated, range)| {
            let reg = self.regs.find(self.str(range))?;
            Some(truth(Expr::Reg(reg), *negated))
        });
        let around = match (&pred, m.row.takes_predicate) {
            (Some(pred), false) => {
                let at = self.code.len();
                self.push(Op::Branch { cond: truth(pred.clone(), true), target: END });
                Some(at)
            }
            _ => None,
        };
        let opcode = m.raw.opcode.start..m.raw.quals.last().map_or(m.raw.opcode.end, |q| q.end);
        let call = Call { row: m.row, quals: m.quals.clone(), ty, loc, pred, args, opcode };
        (m.row.lower)(self, &call);
        if let Some(at) = around {
            let end = self.code.len();
            if let Some(target) = self.code[at].op.target_mut() {
                *target = end;
            }
        }
    }

    /// Fills in branch targets.
    fn patch(&mut self) {
        let end = self.code.len();
        for (at, range) in std::mem::take(&mut self.fixups) {
            let name = self.str(&range);
            match self.labels.get(name) {
                Some(&place) => {
                    if let Some(target) = self.code[at].op.target_mut() {
                        *target = place;
                    }
                }
                None => {
                    let known: Vec<&str> =
                        if self.sink.full() { Vec::new() } else { self.labels.keys().copied().collect() };
                    self.error(
                        "unknown-label",
                        range,
                        format!("there is no label `{name}` in this thread"),
                        |d| d.label("expected a label of this thread").did_you_mean(name, known),
                    );
                }
            }
        }
        for instr in &mut self.code {
            if let Some(target) = instr.op.target_mut() {
                *target = (*target).min(end);
            }
        }
    }
}

/// A predicate's truth value, or the opposite of it.
pub(super) fn truth(value: Expr, negated: bool) -> Expr {
    match value {
        value if !negated => value,
        // Not not.
        Expr::Cmp(CmpOp::Eq, Ty::WORD, inner, zero) if *zero == Expr::Const(0) => *inner,
        value => Expr::Cmp(CmpOp::Eq, Ty::WORD, Box::new(value), Box::new(Expr::Const(0))),
    }
}
