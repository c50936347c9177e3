//! One thread's statements to micro-ops: names resolved, operands checked against the instruction table.
//!
//! # Invariants
//! - Errors never stop the walk: one pass reports everything that is wrong with a thread.
//! - The result is only used if nothing was reported; until then a branch target may be a placeholder.
//! - Types of locations are settled ([`super::Unit::settle_types`]) before any thread is lowered.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::parse::{NameOperand, Operand, OperandKind};
use super::regs::{Regs, bare};
use super::table::{GroupKind, Matched, PRED, Quals, ResultTy, Role, Row, type_named};
use super::{Env, Item, Lowered, Unit};
use crate::diag::{Diagnostic, Sink, Span};
use crate::program::isa::{SymbolKind, Symbols};
use crate::program::{BinOp, CmpOp, Expr, Init, Instr, LocId, Op, RegId, Ty};

/// An operand, resolved.
#[derive(Clone, Debug)]
pub(super) enum Arg {
    /// `None`: discarded.
    Dst(Option<RegId>),
    /// A value or an address.
    Expr(Expr),
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
    pub(super) symbols: &'a mut Symbols,
    pub(super) sink: &'s mut Sink,
    regs: Regs,
    written: HashSet<&'a str>,
    declared: HashMap<String, Ty>,
    code: Vec<Instr>,
    labels: HashMap<&'a str, usize>,
    fixups: Vec<(usize, Range<usize>)>,
    untyped: Vec<usize>,
    /// The current instruction has an address in a register and no type.
    through_register: bool,
    current: (Span, u32, String),
}

/// A branch target that is still to be filled in with the end of the thread.
const END: usize = usize::MAX;

/// Lowers one thread.
pub(super) fn lower(unit: &Unit, env: &Env, symbols: &mut Symbols, sink: &mut Sink) -> Lowered {
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
        through_register: false,
        current: (Span::default(), 0, String::new()),
    };
    emit.collect_written();
    emit.collect_registers();
    emit.emit_all();
    emit.patch();
    let init: HashMap<&str, &Init> = env.regs.iter().map(|r| (bare(&r.name), &r.init)).collect();
    Lowered { regs: emit.regs.finish(&init), code: emit.code, untyped: emit.untyped }
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

    fn str(&self, range: &Range<usize>) -> &'a str {
        &self.unit.text.as_str()[range.clone()]
    }

    /// Appends a micro-op of the current instruction.
    pub(super) fn push(&mut self, op: Op) {
        let (span, line, text) = self.current.clone();
        if self.through_register && matches!(op, Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. }) {
            self.untyped.push(self.code.len());
        }
        self.code.push(Instr { op, span, line, text });
    }

    /// Appends a jump to a label.
    pub(super) fn branch(&mut self, cond: Expr, label: Option<&Arg>) {
        if let Some(Arg::Label(range)) = label {
            self.fixups.push((self.code.len(), range.clone()));
        }
        self.push(Op::Branch { cond, target: END });
    }

    /// The value as one of type `ty`.
    pub(super) fn fit(&self, value: Expr, ty: Ty) -> Expr {
        match value {
            Expr::Const(v) => Expr::Const(ty.wrap(v)),
            _ if ty.bits == 64 => value,
            Expr::Reg(r) if self.regs.holds(r, ty) => value,
            value => Expr::Cast(ty, Box::new(value)),
        }
    }

    // ---- registers ------------------------------------------------------------------------------------------------

    /// The names that some instruction writes, or that the test gives a value.
    fn collect_written(&mut self) {
        let unit = self.unit;
        self.written.extend(self.env.regs.iter().map(|r| bare(&r.name)));
        for item in &unit.items {
            let Item::Instr(m) = item else { continue };
            for (role, operand) in m.row.operands.iter().zip(&m.raw.operands) {
                if let (Role::Dst, OperandKind::Name(n)) = (role, &operand.kind) {
                    self.written.insert(bare(self.str(&n.name)));
                }
            }
        }
    }

    /// Numbers the registers in order of appearance and finds their types.
    fn collect_registers(&mut self) {
        let unit = self.unit;
        for item in &unit.items {
            match item {
                Item::Label(_) => {}
                Item::Reg { ty, name, count } => self.declare(ty, name, *count),
                Item::Instr(m) => self.registers_of(m),
            }
        }
        if self.env.strict && !unit.incomplete {
            let unknown: Vec<(String, Span)> = self
                .regs
                .iter()
                .filter(|info| !self.written.contains(info.name.as_str()) && !unit.suspects.contains(&info.name))
                .filter_map(|info| Some((info.name.clone(), info.read?)))
                .collect();
            for (name, span) in unknown {
                let mut known: Vec<&str> = self.written.iter().copied().collect();
                known.sort_unstable();
                let message = format!("register `{name}` is read, but nothing in this thread writes it");
                self.sink.error("unknown-register", span, message, |d| {
                    let d = d.label("expected a register that has a value").did_you_mean(&name, known);
                    match d.help {
                        Some(_) => d,
                        None => d.help(format!("give it a value with `regs = {{ {name} = 0 }}`")),
                    }
                });
            }
        }
        for reg in &self.env.regs {
            if self.symbols.find(bare(&reg.name)).is_some() {
                self.clash(bare(&reg.name), reg.span);
            }
            if self.regs.intern(&reg.name).is_none() {
                self.sink.error("too-many-registers", reg.span, "a thread has at most 65535 registers", |d| d);
            }
        }
    }

    fn clash(&mut self, name: &str, span: Span) {
        let place = self.symbols.find(name).map(|id| self.symbols.get(id).span);
        self.sink.error("name-clash", span, format!("`{name}` is a location, not a register"), |d| {
            let d = d.label("expected a register");
            match place {
                Some(place) if place != span => d.also(place, "the location"),
                _ => d,
            }
        });
    }

    fn declare(&mut self, ty: &Range<usize>, name: &Range<usize>, count: Option<i64>) {
        let spelled = self.str(ty).trim_start_matches('.');
        let Some(known) = type_named(spelled) else {
            let message = format!("registers of type `.{spelled}` are not supported");
            self.error("unsupported-type", ty.clone(), message, |d| {
                d.label("expected an integer type or `.pred`")
            });
            return;
        };
        let name = bare(self.str(name));
        match count {
            None => {
                self.declared.insert(name.to_string(), known);
            }
            // Only names that occur matter, so a large count costs nothing.
            Some(_) => {
                self.declared.insert(format!("{name}<"), known);
            }
        }
    }

    /// The type of a declared register: by its name, or as one of a declared family `%r<n>`.
    fn declared_ty(&self, name: &str) -> Option<Ty> {
        let name = bare(name);
        if self.declared.is_empty() {
            return None;
        }
        let family = name.trim_end_matches(|c: char| c.is_ascii_digit());
        self.declared.get(name).or_else(|| self.declared.get(&format!("{family}<"))).copied()
    }

    fn registers_of(&mut self, m: &'a Matched) {
        if let Some((_, pred)) = &m.raw.pred {
            self.note_read(pred, Role::Pred, PRED);
        }
        let ty = self.call_ty(m);
        for (role, operand) in m.row.operands.iter().zip(&m.raw.operands) {
            let OperandKind::Name(n) = &operand.kind else { continue };
            match role {
                Role::Dst => self.note_write(&n.name, result_ty(m.row, ty)),
                Role::Val | Role::Addr | Role::Pred | Role::Loose => self.note_read(&n.name, *role, ty),
                Role::Label => {}
            }
        }
    }

    fn note_write(&mut self, range: &Range<usize>, ty: Ty) {
        let name = self.str(range);
        if self.symbols.find(bare(name)).is_some() {
            let span = self.unit.text.span(range.clone());
            self.clash(bare(name), span);
            return;
        }
        if let Some(declared) = self.declared_ty(name).filter(|d| d.bits < ty.bits || (*d == PRED) != (ty == PRED))
        {
            self.mismatch(range, declared, ty);
        }
        match self.regs.intern(name) {
            Some(id) => self.regs.wrote(id, ty),
            None => self.too_many_registers(range),
        }
    }

    fn too_many_registers(&mut self, range: &Range<usize>) {
        self.error("too-many-registers", range.clone(), "a thread has at most 65535 registers", |d| d);
    }

    fn mismatch(&mut self, range: &Range<usize>, declared: Ty, used: Ty) {
        let describe = |ty: Ty| {
            if ty == PRED { "a predicate".to_string() } else { format!("{} bits wide", ty.bits) }
        };
        let message = format!("`{}` is {}, used as {}", self.str(range), describe(declared), describe(used));
        self.error("type-mismatch", range.clone(), message, |d| d.label(format!("expected {}", describe(used))));
    }

    fn note_read(&mut self, range: &Range<usize>, role: Role, ty: Ty) {
        let name = self.str(range);
        if !matches!(self.classify(name, role), Name::Register) {
            return;
        }
        if !self.env.strict && self.symbols.find(name).is_some() {
            let span = self.unit.text.span(range.clone());
            self.clash(name, span);
            return;
        }
        let bits = match role {
            Role::Addr => Ty::U64,
            _ => ty,
        };
        if role != Role::Loose {
            if let Some(declared) = self.declared_ty(name).filter(|d| d.bits < bits.bits && bits.bits != 64) {
                self.mismatch(range, declared, bits);
            }
        }
        let span = self.unit.text.span(range.clone());
        match self.regs.intern(name) {
            Some(id) => self.regs.read(id, span),
            None => self.too_many_registers(range),
        }
    }

    /// What a name in an operand of that role stands for.
    fn classify(&self, name: &str, role: Role) -> Name {
        if name.starts_with('%') {
            if let Some((_, value)) = self.env.specials.iter().find(|s| s.0 == name) {
                return Name::Special(*value);
            }
            return if is_special(name) { Name::UnknownSpecial } else { Name::Register };
        }
        // The published suites tell registers from locations by their position only.
        if !self.env.strict {
            return if role == Role::Addr {
                self.symbols.find(name).map_or(Name::Unknown, Name::Location)
            } else {
                Name::Register
            };
        }
        if role != Role::Pred {
            if let Some(loc) = self.symbols.find(name) {
                return Name::Location(loc);
            }
        }
        let register = role != Role::Addr || self.written.contains(name) || self.declared_ty(name).is_some();
        if register { Name::Register } else { Name::Unknown }
    }

    // ---- instructions ---------------------------------------------------------------------------------------------

    /// The type an instruction works in.
    fn call_ty(&self, m: &Matched) -> Ty {
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
            match self.operand(m, *role, operand, ty, &mut loc) {
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
            if let Op::Branch { target, .. } = &mut self.code[at].op {
                *target = end;
            }
        }
    }

    fn operand(
        &mut self,
        m: &Matched,
        role: Role,
        operand: &Operand,
        ty: Ty,
        loc: &mut Option<LocId>,
    ) -> Option<Arg> {
        let wrong = |emit: &mut Self, found: &str| {
            let message = format!("expected {}, found {found}", role.expected());
            emit.error("wrong-operand", operand.range.clone(), message, |d| {
                d.label(format!("expected the form {}", m.row.syntax))
            });
            None
        };
        match (&operand.kind, role) {
            (OperandKind::Unsupported(what), _) => {
                let message = format!("{what} are not supported");
                self.error("unsupported-operand", operand.range.clone(), message, |d| {
                    d.label(format!("expected {}", role.expected()))
                });
                None
            }
            (OperandKind::Int(v), Role::Val | Role::Loose) => {
                if role == Role::Val && !fits(*v, ty) {
                    let message = format!("{v} does not fit {} bits", ty.bits);
                    self.error("constant-out-of-range", operand.range.clone(), message, |d| {
                        d.label(format!("expected a constant of {} bits", ty.bits))
                    });
                }
                Some(Arg::Expr(Expr::Const(*v)))
            }
            (OperandKind::Int(_), _) => wrong(self, "a constant"),
            (OperandKind::Discard, Role::Dst) => Some(Arg::Dst(None)),
            (OperandKind::Discard, _) => wrong(self, "`_`"),
            (OperandKind::Name(n), Role::Dst) if plain(n) => {
                Some(Arg::Dst(self.regs.find(self.str(&n.name)))).filter(|arg| matches!(arg, Arg::Dst(Some(_))))
            }
            (OperandKind::Name(n), Role::Label) if plain(n) => Some(Arg::Label(n.name.clone())),
            (OperandKind::Name(n), Role::Pred) if !n.brackets => {
                let reg = self.regs.find(self.str(&n.name))?;
                Some(Arg::Expr(truth(Expr::Reg(reg), n.negated)))
            }
            (OperandKind::Name(n), Role::Val | Role::Loose) if !n.brackets && !n.negated => self.value(n, ty),
            (OperandKind::Name(n), Role::Addr) if !n.negated => self.address(m, n, ty, loc),
            (OperandKind::Name(n), _) if n.brackets => wrong(self, "an address"),
            (OperandKind::Name(n), _) => {
                let found = format!("`{}`", self.str(&n.name));
                wrong(self, &found)
            }
        }
    }

    /// A register, a special register, or the address of a location.
    fn value(&mut self, n: &NameOperand, ty: Ty) -> Option<Arg> {
        let name = self.str(&n.name);
        match self.classify(name, Role::Val) {
            Name::Special(v) => Some(Arg::Expr(Expr::Const(v))),
            Name::UnknownSpecial => self.unknown_special(n),
            Name::Location(id) => {
                if ty.bits != 64 {
                    let message = format!("the address of `{name}` needs 64 bits, not {}", ty.bits);
                    self.error("type-mismatch", n.name.clone(), message, |d| d.label("an address"));
                    return None;
                }
                let element = self.element(n, self.symbols.ty(id))?;
                self.in_bounds(n, id, element)?;
                Some(Arg::Expr(plus(Expr::Address(id), element)))
            }
            Name::Register | Name::Unknown => {
                let reg = self.regs.find(name)?;
                if n.offset != 0 || n.index != 0 {
                    let message = format!("`{name}` is a register; an offset belongs into an address or an `add`");
                    self.error("wrong-operand", n.name.clone(), message, |d| d.label("expected a location"));
                    return None;
                }
                Some(Arg::Expr(Expr::Reg(reg)))
            }
        }
    }

    fn unknown_special(&mut self, n: &NameOperand) -> Option<Arg> {
        let name = self.str(&n.name);
        let known: Vec<&str> = self.env.specials.iter().map(|s| s.0.as_str()).collect();
        let message = format!("the special register `{name}` has no value here");
        self.error("unknown-register", n.name.clone(), message, |d| {
            if known.is_empty() {
                d.label("known only in code given by `[kernel]`")
            } else {
                d.label("not a special register of the kernel form").did_you_mean(name, known)
            }
        });
        None
    }

    /// The element that `+ bytes` and `[n]` lead to.
    fn element(&mut self, n: &NameOperand, ty: Ty) -> Option<i64> {
        let size = i64::from(ty.bytes());
        if n.offset % size != 0 {
            let message = format!("the offset {} is not a multiple of the element size, {size} bytes", n.offset);
            self.error("misaligned", n.name.start..n.name.end, message, |d| {
                d.label("offsets count bytes").note("partially overlapping accesses are not supported")
            });
            return None;
        }
        n.index.checked_add(n.offset / size)
    }

    fn in_bounds(&mut self, n: &NameOperand, id: LocId, element: i64) -> Option<()> {
        let count = self.symbols.object(id).1.init.len();
        if usize::try_from(element).is_ok_and(|e| e < count) {
            return Some(());
        }
        let name = self.str(&n.name);
        let has = if count == 1 { "one element".to_string() } else { format!("{count} elements") };
        self.error(
            "out-of-bounds",
            n.name.clone(),
            format!("`{name}` has {has}, this is number {element}"),
            |d| d.label("counted from 0"),
        );
        None
    }

    fn address(&mut self, m: &Matched, n: &NameOperand, ty: Ty, loc: &mut Option<LocId>) -> Option<Arg> {
        let name = self.str(&n.name);
        match self.classify(name, Role::Addr) {
            Name::Location(id) => {
                *loc = Some(id);
                self.check_space(m, n, id);
                let element = self.element(n, self.symbols.ty(id))?;
                self.in_bounds(n, id, element)?;
                Some(Arg::Expr(plus(Expr::Address(id), element)))
            }
            Name::Register => {
                let reg = self.regs.find(name)?;
                let element = self.element(n, ty)?;
                self.through_register = m.quals.ty().is_none();
                Some(Arg::Expr(plus(Expr::Reg(reg), element)))
            }
            Name::Special(_) | Name::UnknownSpecial => {
                self.error("wrong-operand", n.name.clone(), format!("`{name}` is not an address"), |d| {
                    d.label(format!("expected {}", Role::Addr.expected()))
                });
                None
            }
            Name::Unknown => {
                let known: Vec<&str> = self.symbols.names().collect();
                let span = self.unit.text.span(n.name.clone());
                let diagnostic = Diagnostic::error(
                    "unknown-location",
                    self.sink.file(),
                    span,
                    format!("there is no location `{name}`"),
                )
                .label("expected a location, or a register that holds an address")
                .did_you_mean(name, known);
                let diagnostic = match diagnostic.help {
                    Some(_) => diagnostic,
                    None => diagnostic.help(format!("declare it: `[memory]` with `{name} = 0`")),
                };
                self.sink.push(diagnostic);
                None
            }
        }
    }

    fn check_space(&mut self, m: &Matched, n: &NameOperand, id: LocId) {
        use crate::program::Space;
        let Some(written) = m.quals.get(GroupKind::Space) else { return };
        let space = self.symbols.object(id).1.space;
        let matches = match written {
            "global" => space == Space::Global,
            "const" => space == Space::Constant || matches!(self.symbols.get(id).kind, SymbolKind::Alias { .. }),
            "local" => space == Space::Local,
            _ => space == Space::Shared,
        };
        if matches {
            return;
        }
        let name = self.str(&n.name);
        let place = m.quals.place(GroupKind::Space).unwrap_or_default();
        let declared = self.symbols.get(id).span;
        let short = written.split(':').next().unwrap_or(written);
        let message = format!("`.{written}` access to `{name}`, which lives elsewhere");
        self.error("wrong-space", place, message, |d| {
            d.label("this state space")
                .also(declared, "declared here")
                .help(format!("declare it with `{name} = {{ init = 0, space = \"{short}\" }}`"))
        });
    }

    /// Fills in branch targets.
    fn patch(&mut self) {
        let end = self.code.len();
        for (at, range) in std::mem::take(&mut self.fixups) {
            let name = self.str(&range);
            match self.labels.get(name) {
                Some(&place) => {
                    if let Op::Branch { target, .. } = &mut self.code[at].op {
                        *target = place;
                    }
                }
                None => {
                    let mut known: Vec<&str> = self.labels.keys().copied().collect();
                    known.sort_unstable();
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
            if let Op::Branch { target, .. } = &mut instr.op {
                *target = (*target).min(end);
            }
        }
    }
}

/// What a name stands for.
enum Name {
    Location(LocId),
    Register,
    Special(i64),
    UnknownSpecial,
    Unknown,
}

/// Whether a name is one of PTX's special registers (PTX ISA, Special Registers).
fn is_special(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    name.contains('.')
        || matches!(stem, "%laneid" | "%warpid" | "%nwarpid" | "%smid" | "%nsmid" | "%gridid" | "%clock")
}

/// Nothing but a name.
fn plain(n: &NameOperand) -> bool {
    !n.brackets && !n.negated && n.offset == 0 && n.index == 0
}

/// The type that a row writes when it works in `ty`.
fn result_ty(row: &Row, ty: Ty) -> Ty {
    match row.result {
        ResultTy::Own => ty,
        ResultTy::Pred => PRED,
        ResultTy::Wide => Ty { bits: ty.bits.saturating_mul(2).min(64), ..ty },
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

/// `base + element`.
fn plus(base: Expr, element: i64) -> Expr {
    match element {
        0 => base,
        n => Expr::Bin(BinOp::Add, Ty::U64, Box::new(base), Box::new(Expr::Const(n))),
    }
}

/// Whether a constant is a value of the type, read as signed or unsigned.
fn fits(v: i64, ty: Ty) -> bool {
    ty.bits == 64 || ty.bits == 8 && ty == PRED && (0..=1).contains(&v) || {
        let half = 1i64 << (ty.bits - 1);
        -half <= v && v < 2 * half
    }
}
