//! Lowers one thread's statements to micro-ops: resolves names and checks operands against the
//! instruction table.
//!
//! # Invariants
//! - Errors never stop the pass: it reports all mistakes of a thread.
//! - The result is only used if there were no errors; before that, a branch target may be a
//!   placeholder.
//! - If an instruction needs constants but has registers, the thread is lowered again with the
//!   values that [`known`] finds.
//! - Types of locations are settled ([`super::Unit::settle_types`]) before any thread is lowered.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, PoisonError};

use super::copies::mark;
use super::descriptors;
use super::known::{self, ValueRequest, Values};
use super::names::NameMeaning;
use super::parse::{OperandKind, PtxOperand};
use super::regs::{Regs, bare, is_half};
use super::table::{InstrRow, Matched, OperandRole, PRED, QualKind, Quals};
use super::wgmma::FragmentState;
use super::{CodeItem, LoweredThread, PtxCode, PtxEnv};
use crate::isa::Symbols;
use diag::{Diagnostic, Sink, SourceLine, Span, one_line};
use program::{
    Access, AsmInstr, Barrier, BarrierAction, BarrierNaming, CmpOp, Element, Expr, Init, Instr,
    InstrId, LocId, Op, RegId, Register, Scope, Space, Tag, Tags, Tile, Ty,
};

#[derive(Clone, Debug)]
pub(super) enum PtxArg {
    /// A destination; `None` for `_`, which discards the result.
    Dst(Option<RegId>),
    /// A value or an address.
    Expr(Expr),
    Vector(Vec<PtxArg>),
    /// A label, as a range of the text.
    Label(Range<usize>),
}

/// A resolved instruction.
pub(super) struct PtxInstr {
    pub(super) row: &'static InstrRow,
    pub(super) quals: Quals,
    /// The type of its operation.
    pub(super) ty: Ty,
    /// The location in its address operand, if it names one.
    pub(super) loc: Option<LocId>,
    /// Its predicate, if the row handles predicates.
    pub(super) pred: Option<Expr>,
    /// Its operands; optional ones may be missing at the end.
    pub(super) args: Vec<PtxArg>,
    /// For each operand, whether it was a register with a known value.
    pub(super) found: Vec<bool>,
    /// The text range of opcode and qualifiers.
    pub(super) opcode: Range<usize>,
}

impl PtxInstr {
    /// The register that operand `i` names.
    pub(super) fn dst(&self, i: usize) -> Option<RegId> {
        match self.args.get(i) {
            Some(PtxArg::Dst(reg)) => *reg,
            _ => None,
        }
    }

    /// The elements of operand `i`; a scalar is its own single element.
    pub(super) fn elements(&self, i: usize) -> &[PtxArg] {
        match self.args.get(i) {
            Some(PtxArg::Vector(all)) => all,
            Some(one) => std::slice::from_ref(one),
            None => &[],
        }
    }

    /// Whether operand `i` was a register with a known value.
    pub(super) fn is_found(&self, i: usize) -> bool {
        self.found.get(i) == Some(&true)
    }

    /// The value of operand `i`, if the instruction has it.
    pub(super) fn given(&self, i: usize) -> Option<Expr> {
        match self.args.get(i) {
            Some(PtxArg::Expr(e)) => Some(e.clone()),
            _ => None,
        }
    }

    /// The value of operand `i`, or 0 if the instruction does not have it.
    pub(super) fn expr(&self, i: usize) -> Expr {
        self.given(i).unwrap_or(Expr::Const(0))
    }
}

/// The state of a lowering; rows emit their micro-ops through it.
pub(super) struct Emit<'a, 's> {
    pub(super) unit: &'a PtxCode,
    pub(super) env: &'a PtxEnv,
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
    current: (InstrId, Span, SourceLine, String),
    assembly: Option<Arc<AsmInstr>>,
    /// All lanes of the warp arrive here together: no label or branch since the start or the last
    /// barrier of the CTA.
    pub(super) converged: bool,
    /// An earlier instruction may have ended the thread.
    pub(super) may_have_ended: bool,
    /// An earlier instruction already requires that all lanes execute it together, with no label or
    /// branch since.
    together: bool,
    /// The lists of registers that matrix instructions use until they are waited for.
    pub(super) fragments: Vec<FragmentState>,
    /// The number of branches that only check the current item's registers.
    pub(super) checks: usize,
    /// The known values of registers before the items that need them.
    known: &'a KnownItems,
    /// The items that need known values of registers.
    asking: Vec<ConstantRequest>,
    /// The current item needs known addresses, too.
    asks: bool,
}

/// An item that needs the known values of registers: it could not be lowered, or needs addresses.
struct ConstantRequest {
    item: usize,
    /// The index of its first micro-op.
    first: usize,
    /// Whether it needs addresses, too. An access with the type of its location does not.
    addresses: bool,
}

/// The known values of registers before an item.
#[derive(Debug, PartialEq)]
pub(super) struct KnownRegisters {
    values: Values,
    /// Whether the values include addresses.
    addresses: bool,
    /// Whether a path reaches the item.
    reached: bool,
}

/// The largest CTA in which each element of a tile is a micro-op. The exact engines decide no loop
/// over tiles in larger ones.
const MOST_WITHOUT_TILES: u32 = 32;

/// A placeholder for the end of the thread as a branch target.
const END: usize = usize::MAX;

/// By item: the known values of registers before it.
pub(super) type KnownItems = HashMap<usize, KnownRegisters>;

pub(super) fn lower(
    unit: &PtxCode,
    env: &PtxEnv,
    symbols: &Symbols,
    sink: &mut Sink,
) -> LoweredThread {
    let before = sink.mark();
    let mut latest = unit.latest.lock().unwrap_or_else(PoisonError::into_inner);
    // Values that the code confirms are known, wherever they came from.
    if !latest.is_empty() {
        let (lowered, asking) = lower_with(unit, env, symbols, sink, &latest);
        if known_at(unit, env, symbols, &lowered, &asking) == *latest {
            return lowered;
        }
        sink.take_back(before);
    }
    let mut known = KnownItems::new();
    // The known values of one instruction may determine those of the next, so repeat until nothing
    // changes.
    for _ in 0..unit.items.len() {
        let (lowered, asking) = lower_with(unit, env, symbols, sink, &known);
        if asking.is_empty() {
            return lowered;
        }
        let found = known_at(unit, env, symbols, &lowered, &asking);
        if found == known {
            *latest = known;
            return lowered;
        }
        known = found;
        sink.take_back(before);
    }
    lower_with(unit, env, symbols, sink, &known).0
}

/// The known values before the items that need them.
fn known_at(
    unit: &PtxCode,
    env: &PtxEnv,
    symbols: &Symbols,
    lowered: &LoweredThread,
    asking: &[ConstantRequest],
) -> KnownItems {
    let found = known::before(
        &lowered.code,
        &start(env, symbols, &lowered.regs),
        &|loc| is_narrow(env, symbols, loc),
        &requests(unit, asking, &lowered.regs),
    );
    let found = asking.iter().zip(found).map(|(a, (mut values, reached))| {
        values.retain(|_, value| a.addresses || matches!(value, Expr::Const(_)));
        (
            a.item,
            KnownRegisters {
                values,
                addresses: a.addresses,
                reached,
            },
        )
    });
    found.collect()
}

/// The items that ask, with the registers that each of them names.
fn requests(unit: &PtxCode, asking: &[ConstantRequest], regs: &[Register]) -> Vec<ValueRequest> {
    fn names<'t>(unit: &'t PtxCode, operand: &PtxOperand, found: &mut BTreeSet<&'t str>) {
        match &operand.kind {
            OperandKind::Name(name) => {
                _ = found.insert(bare(&unit.text.as_str()[name.name.clone()]))
            }
            OperandKind::Vector(all) | OperandKind::Pair(all) | OperandKind::Texel(all) => {
                all.iter().for_each(|one| names(unit, one, found));
            }
            _ => {}
        }
    }
    // A register of a block has the block's number, and half of a wide one has a suffix.
    let mut named: HashMap<&str, Vec<RegId>> = HashMap::new();
    for (id, reg) in (0..).map(RegId).zip(regs) {
        let name = bare(&reg.name);
        named.entry(name).or_default().push(id);
        let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '%'));
        if let Some(end) = end {
            named.entry(&name[..end]).or_default().push(id);
        }
    }
    let request = |request: &ConstantRequest| {
        let mut found = BTreeSet::new();
        if let CodeItem::Instr(m) = &unit.items[request.item] {
            m.raw
                .operands
                .iter()
                .for_each(|one| names(unit, one, &mut found));
        }
        let registers = found.iter().filter_map(|name| named.get(name));
        ValueRequest {
            at: request.first,
            registers: registers.flatten().copied().collect(),
        }
    };
    asking.iter().map(request).collect()
}

/// Whether the addresses of a location fit 32 bits.
fn is_narrow(env: &PtxEnv, symbols: &Symbols, loc: LocId) -> bool {
    let object = symbols.object(loc).0;
    symbols.object(loc).1.space.is_narrow()
        || env.regs.iter().any(|r| match r.init {
            Init::Address { loc: other, .. } => {
                is_half(&r.name) && symbols.object(other).0 == object
            }
            _ => false,
        })
}

/// The values that the test gives to registers.
fn start(env: &PtxEnv, symbols: &Symbols, regs: &[Register]) -> Values {
    let all = (0..).map(RegId).zip(regs);
    all.filter(|(_, reg)| env.regs.iter().any(|r| bare(&r.name) == reg.name))
        .map(|(id, reg)| (id, start_value(symbols, &reg.init)))
        .collect()
}

fn start_value(symbols: &Symbols, init: &Init) -> Expr {
    match *init {
        Init::Int(v) => Expr::Const(v),
        Init::Unknown => Expr::Const(0),
        Init::Address { loc, index } => {
            known::behind(Expr::Address(loc), symbols.layout(loc).offset(index))
        }
    }
}

/// Lowers one thread with the known values of registers. Also returns the items that need such
/// values.
fn lower_with(
    unit: &PtxCode,
    env: &PtxEnv,
    symbols: &Symbols,
    sink: &mut Sink,
    known: &KnownItems,
) -> (LoweredThread, Vec<ConstantRequest>) {
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
        current: Default::default(),
        assembly: None,
        converged: true,
        may_have_ended: false,
        together: false,
        fragments: Vec::new(),
        checks: 0,
        known,
        asking: Vec::new(),
        asks: false,
    };
    emit.collect_written();
    emit.collect_registers();
    emit.collect_fragments();
    emit.emit_all();
    emit.patch();
    let init: HashMap<&str, &Init> = env.regs.iter().map(|r| (bare(&r.name), &r.init)).collect();
    let regs = emit.regs.finish(&init);
    (
        LoweredThread {
            regs,
            code: emit.code,
            leaves: emit.leaves,
            untyped: emit.untyped,
        },
        emit.asking,
    )
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
        let (id, span, line, text) = self.current.clone();
        let names_multimem = op.operands().into_iter().any(|operand| {
            operand.any(&|e| matches!(e, Expr::Address(loc) if self.symbols.is_multimem(*loc)))
        });
        let of_multimem = self
            .assembly
            .as_ref()
            .is_some_and(|a| a.opcode == "multimem");
        if names_multimem && !of_multimem {
            self.sink.error(
                "multimem-access",
                span,
                "this names a multimem location",
                |d| {
                    d.label("expected an instruction that begins with `multimem`")
                        .note(
                            "an ordinary access to a multimem address is undefined (PTX ISA, \
                             multimem)",
                        )
                },
            );
        }
        if self.through_register && op.is_access() {
            self.untyped.push(self.code.len());
        }
        self.code.push(Instr {
            assembly: self.assembly.clone(),
            ..Instr::new(id, op, span, line, text)
        });
    }

    /// Emits an access to a tile.
    pub(super) fn push_tile(&mut self, op: Op, tile: Tile<Expr>) {
        self.push(op);
        if let Some(access) = self.code.last_mut() {
            access.tile = Some(tile.into());
        }
    }

    /// Whether accesses to tiles are micro-ops of their own ([`program::Tile`]).
    pub(super) fn has_tiles(&self) -> bool {
        self.env.seats.block_size() > MOST_WITHOUT_TILES
    }

    /// The index of the next micro-op.
    pub(super) fn here(&self) -> usize {
        self.code.len()
    }

    /// Appends a jump to the micro-op at index `target`.
    pub(super) fn jump(&mut self, cond: Expr, target: usize) {
        self.push(Op::Branch { cond, target });
    }

    /// The labels in a list, which is named by the label before it.
    pub(super) fn targets(&self, list: &Range<usize>) -> Option<&'a [Range<usize>]> {
        let unit = self.unit;
        unit.items
            .windows(2)
            .find_map(|pair: &'a [CodeItem]| match pair {
                [CodeItem::Label(label), CodeItem::Targets(targets)]
                    if self.str(label) == self.str(list) =>
                {
                    Some(&targets[..])
                }
                _ => None,
            })
    }

    /// Sets the target of a jump.
    pub(super) fn aim(&mut self, jump: usize, to: usize) {
        if let Some(target) = self.code[jump].op.target_mut() {
            *target = to;
        }
    }

    /// Ends the thread, after undefined behaviour.
    pub(super) fn leave(&mut self) {
        self.push(Op::Branch {
            cond: Expr::Const(1),
            target: END,
        });
    }

    /// A register that code cannot name; reports an error and returns `None` if there are too many.
    pub(super) fn temporary(&mut self, c: &PtxInstr, name: &str, ty: Ty) -> Option<RegId> {
        let id = self.regs.intern(name);
        match id {
            Some(id) => self.regs.wrote(id, ty),
            None => self.error(
                "too-many-registers",
                c.opcode.clone(),
                "a thread has at most 65535 registers",
                |d| d,
            ),
        }
        id
    }

    /// Appends the elements of a vector instruction.
    pub(super) fn push_elements(&mut self, ops: Vec<Op>) {
        let first = self.code.len();
        // A vector has at most eight elements.
        let of = ops.len() as u8;
        ops.into_iter().for_each(|op| self.push(op));
        for (at, instr) in (0..of).zip(&mut self.code[first..]) {
            instr.element = Element {
                at,
                of,
                ..Element::ONLY
            };
        }
    }

    /// Appends the parts of one scalar of 128 bits, the lowest first.
    pub(super) fn push_scalar(&mut self, pieces: Vec<Op>) {
        let first = self.code.len();
        self.push_elements(pieces);
        self.code[first..]
            .iter_mut()
            .for_each(|instr| instr.element.whole = true);
    }

    pub(super) fn branch(&mut self, cond: Expr, label: Option<&PtxArg>) {
        match label {
            Some(PtxArg::Label(range)) => {
                self.may_have_ended |= self.ends_at(range);
                self.fixups.push((self.code.len(), range.clone()));
            }
            _ => {
                self.may_have_ended = true;
                self.leaves = true;
            }
        }
        self.push(Op::Branch { cond, target: END });
    }

    /// Whether the code at a label only ends the thread.
    fn ends_at(&self, label: &Range<usize>) -> bool {
        let unit = self.unit;
        let mut items = unit.items.iter().skip_while(
            |item| !matches!(item, CodeItem::Label(at) if self.str(at) == self.str(label)),
        );
        let next = items.find(|item| matches!(item, CodeItem::Instr(_)));
        next.is_none_or(|item| {
            let CodeItem::Instr(m) = item else {
                return false;
            };
            m.raw.pred.is_none() && ["ret", "exit"].contains(&m.row.opcode)
        })
    }

    /// The value, converted to type `ty`.
    pub(super) fn fit(&self, value: Expr, ty: Ty) -> Expr {
        match value {
            Expr::Const(v) => Expr::Const(ty.wrap(v)),
            _ if ty.bits == 64 || value.base().is_some() => value,
            Expr::Reg(r) if self.regs.holds(r, ty) => value,
            value => Expr::Cast(ty, Box::new(value)),
        }
    }

    /// The type of an instruction's operation.
    pub(super) fn call_ty(&self, m: &Matched) -> Ty {
        if let Some(ty) = m.quals.ty() {
            return ty;
        }
        let loc = m
            .row
            .operands
            .iter()
            .zip(&m.raw.operands)
            .find_map(|(role, operand)| match &operand.kind {
                OperandKind::Name(n) if *role == OperandRole::Addr => {
                    match self.classify(self.str(&n.name), OperandRole::Addr) {
                        NameMeaning::Location(loc) => Some(loc),
                        _ => None,
                    }
                }
                _ => None,
            });
        loc.map_or(Ty::WORD, |loc| self.symbols.ty(loc))
    }

    /// Requests a second lowering with the known addresses in registers.
    pub(super) fn ask(&mut self) {
        self.asks = true;
    }

    fn emit_all(&mut self) {
        let unit = self.unit;
        self.leave_unset();
        for (at, item) in unit.items.iter().enumerate() {
            match item {
                CodeItem::Reg { .. } | CodeItem::Targets(_) => {}
                CodeItem::Label(range) => {
                    (self.converged, self.together) = (false, false);
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
                CodeItem::Instr(m) => {
                    let (first, errors) = (self.code.len(), self.sink.errors());
                    self.asks = self.known.get(&at).is_some_and(|known| known.addresses);
                    self.checks = 0;
                    self.instruction(m, at);
                    // Without `.aligned`, lanes need not reach the barrier together.
                    let aligned = m.row.opcode == "bar"
                        || m.quals.all(QualKind::Ignored).any(|w| w == "aligned");
                    self.converged = match &self.code[first..] {
                        [one] if aligned && one.op.barrier().is_some_and(gathers) => {
                            !self.may_have_ended
                        }
                        all => self.converged && branches(all) == self.checks,
                    };
                    self.together &= branches(&self.code[first..]) == self.checks;
                    let failed = self.sink.errors() > errors;
                    if failed {
                        self.forget(m);
                        // Values are known in front of a micro-op. Without one, this would be the
                        // one behind a label, where other ways come in.
                        self.jump(Expr::Const(0), END);
                    }
                    if failed || self.asks || self.known.contains_key(&at) {
                        // A predicated instruction begins after the branch that skips it.
                        let around = matches!(
                            self.code.get(first),
                            Some(Instr {
                                op: Op::Branch { .. },
                                ..
                            })
                        );
                        let first = first + usize::from(m.raw.pred.is_some() && around);
                        self.asking.push(ConstantRequest {
                            item: at,
                            first,
                            addresses: self.asks,
                        });
                    }
                }
            }
        }
    }

    /// Makes the registers that a failed instruction writes unknown, by a load into each.
    fn forget(&mut self, m: &'a Matched) {
        for (role, operand, _) in m.operands() {
            if let (
                OperandRole::Dst
                | OperandRole::DstPred
                | OperandRole::DstAndPred
                | OperandRole::DstParam,
                OperandKind::Name(n),
            ) = (role, &operand.kind)
                && let Some(dst) = self.regs.find(self.str(&n.piece()))
            {
                let access = Access {
                    tags: Tags::default(),
                    scope: None,
                    ty: Ty::WORD,
                };
                self.push(Op::Load {
                    dst,
                    addr: Expr::Const(0),
                    access,
                });
            }
        }
    }

    /// The value of an operand in registers, if it is known before an item.
    fn constant(&self, arg: &PtxArg, at: usize) -> Option<PtxArg> {
        let (PtxArg::Expr(e), Some(known)) = (arg, self.known.get(&at)) else {
            return None;
        };
        let is_fixed = match e {
            Expr::Const(_) => true,
            // A predicate is not a number.
            Expr::Reg(r) => self.regs.has_type(*r, PRED),
            _ => e.base().is_some(),
        };
        if is_fixed {
            return None;
        }
        let value = known::value(e, &|r| known.values.get(&r).cloned(), &|loc| {
            is_narrow(self.env, self.symbols, loc)
        });
        let value = value?;
        if descriptors::is_encoded(&value) {
            let takes = matches!(&self.unit.items[at], CodeItem::Instr(m) if m.takes_descriptors());
            return descriptors::operand(value, e)
                .filter(|_| takes)
                .map(PtxArg::Expr);
        }
        self.is_inside(&value, known.reached)
            .then_some(PtxArg::Expr(value))
    }

    /// Whether a known address may replace its register. An address outside its location in shared
    /// memory belongs to other memory, such as the copy of another CTA. An unreachable access may
    /// have any address.
    fn is_inside(&self, value: &Expr, reached: bool) -> bool {
        let Expr::Bin(_, _, base, offset) = value else {
            return true;
        };
        let (Some(loc), Expr::Const(offset)) = (base.base(), &**offset) else {
            return false;
        };
        let apart = reached && self.symbols.object(loc).1.space != Space::Shared;
        apart || (0..self.bytes_of(loc)).contains(offset)
    }

    /// The size of a location in bytes.
    pub(super) fn bytes_of(&self, loc: LocId) -> i64 {
        let object = self.symbols.object(loc).1;
        match &object.record {
            Some(_) => self.symbols.layout(loc).bytes(object.init.len()) as i64,
            None => self.symbols.count(loc) as i64 * i64::from(self.symbols.ty(loc).bytes()),
        }
    }

    /// Sets the place in the code of the micro-ops that follow.
    pub(super) fn at(&mut self, span: Span, text: String) {
        let number = self.sink.line(span.start);
        let line = SourceLine {
            number,
            origin: self.unit.origins.of(number),
        };
        self.current = (InstrId(self.current.0.0 + 1), span, line, text);
        self.assembly = None;
    }

    fn instruction(&mut self, m: &'a Matched, at: usize) {
        let span = self.unit.text.span(m.raw.range.clone());
        self.at(span, one_line(self.str(&m.raw.range)));
        let opcode = m.raw.opcode.start..m.raw.quals.last().map_or(m.raw.opcode.end, |q| q.end);
        self.assembly = Some(Arc::new(AsmInstr {
            opcode: self.str(&m.raw.opcode).to_owned(),
            qualifiers: m.raw.quals.iter().map(|q| self.str(q).to_owned()).collect(),
            operands: one_line(self.str(&(opcode.end..m.raw.range.end))),
        }));
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
        let (mut args, mut found) = (Vec::with_capacity(given), Vec::with_capacity(given));
        for (role, operand) in m.row.operands.iter().zip(&m.raw.operands) {
            match self.argument(m, *role, operand, ty, &mut loc) {
                Some(PtxArg::Vector(parts)) if *role == OperandRole::Texel => {
                    let parts = parts.into_iter();
                    let parts = parts.map(|part| self.constant(&part, at).unwrap_or(part));
                    args.push(PtxArg::Vector(parts.collect()));
                    found.push(false);
                }
                Some(arg) => {
                    let constant = self.constant(&arg, at);
                    found.push(constant.is_some());
                    args.push(constant.unwrap_or(arg));
                }
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
                self.push(Op::Branch {
                    cond: truth(pred.clone(), true),
                    target: END,
                });
                Some(at)
            }
            _ => None,
        };
        // If some lanes do not execute it, the program is undefined. Barriers check this
        // themselves, and one check is enough. In assembly inside other languages, the models have
        // no such check.
        let aligned = m.quals.all(QualKind::Ignored).any(|w| w == "aligned")
            && !matches!(m.row.opcode, "bar" | "barrier");
        let parts = around.is_some() || !self.converged && !self.together;
        if aligned && parts && self.env.seats.warp_size() > 1 && !self.env.nameless {
            self.push(mark(&[Tag::Aligned, Tag::Lanes], None));
            self.together = true;
        }
        let call = PtxInstr {
            row: m.row,
            quals: m.quals.clone(),
            ty,
            loc,
            pred,
            args,
            found,
            opcode,
        };
        self.check_fragments(m);
        (m.row.lower)(self, &call);
        if let Some(at) = around {
            let end = self.code.len();
            if let Some(target) = self.code[at].op.target_mut() {
                *target = end;
            }
        }
    }

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
                    let known: Vec<&str> = if self.sink.full() {
                        Vec::new()
                    } else {
                        self.labels.keys().copied().collect()
                    };
                    self.error(
                        "unknown-label",
                        range,
                        format!("there is no label `{name}` in this thread"),
                        |d| {
                            d.label("expected a label of this thread")
                                .did_you_mean(name, known)
                        },
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

fn branches(code: &[Instr]) -> usize {
    let all = code.iter();
    all.filter(|instr| matches!(instr.op, Op::Branch { .. }))
        .count()
}

/// Whether all threads of the CTA wait at a barrier.
fn gathers(barrier: &Barrier) -> bool {
    let whole = matches!(&barrier.naming, BarrierNaming::Counted { count: None, .. });
    barrier.action == BarrierAction::Sync && barrier.domain == Scope::Cta && whole
}

/// The truth value of a predicate, optionally negated.
pub(super) fn truth(value: Expr, negated: bool) -> Expr {
    match value {
        value if !negated => value,
        // Removes a double negation.
        Expr::Cmp(CmpOp::Eq, Ty::WORD, inner, zero) if *zero == Expr::Const(0) => *inner,
        value => Expr::Cmp(
            CmpOp::Eq,
            Ty::WORD,
            Box::new(value),
            Box::new(Expr::Const(0)),
        ),
    }
}
