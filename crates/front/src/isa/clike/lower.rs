//! Statements to micro-ops.
//!
//! # Invariants
//! - Errors never stop the walk: one pass reports everything that is wrong with a thread.
//! - Every branch target is filled in when the walk ends.

use std::collections::HashMap;
use std::ops::Range;

use super::ast::{Declared, Expr as Tree, ExprKind, Stmt, StmtKind};
use super::cuda::Atomic;
use super::eval::{Value, falsity, fold};
use super::groups::ThreadGroup;
use super::host::HostState;
use super::{Env, Lowered, Unit};
use crate::isa::{SymbolKind, Symbols};
use diag::{Diagnostic, Sink, Span};
use program::{Access, BinOp, Element, Expr, Init, Instr, Op, RegId, Register, Space, Tags, Ty};

/// A branch target that is still to be filled in.
const OPEN: usize = usize::MAX;

/// Branches out of the innermost loop, by index.
#[derive(Default)]
struct Exits {
    breaks: Vec<usize>,
    continues: Vec<usize>,
}

/// A register as the code sees it.
#[derive(Clone, Copy)]
pub(super) struct Variable {
    pub(super) reg: RegId,
    pub(super) ty: Ty,
    /// The type it points to, if it is a pointer.
    pub(super) target: Option<Ty>,
}

/// Where a lowering puts its micro-ops.
pub(super) struct Lowering<'a, 's> {
    pub(super) unit: &'a Unit,
    pub(super) env: &'a Env,
    pub(super) symbols: &'a Symbols,
    pub(super) sink: &'s mut Sink,
    pub(super) variables: HashMap<String, Variable>,
    /// CUDA: atomic references by name.
    pub(super) references: HashMap<String, Atomic>,
    /// CUDA: groups of threads by name.
    pub(super) groups: HashMap<String, ThreadGroup>,
    regs: Vec<Register>,
    pub(super) code: Vec<Instr>,
    /// What only host code has.
    pub(super) host: HostState,
    loops: Vec<Exits>,
    returns: Vec<usize>,
    current: (Span, u32, String),
    /// The number of the label before a barrier.
    pub(super) instance: Option<i64>,
}

/// Lowers one thread.
pub(super) fn lower(unit: &Unit, env: &Env, symbols: &Symbols, sink: &mut Sink) -> Lowered {
    let mut l = Lowering {
        unit,
        env,
        symbols,
        sink,
        variables: HashMap::new(),
        references: HashMap::new(),
        groups: HashMap::new(),
        regs: Vec::new(),
        code: Vec::new(),
        host: HostState::default(),
        loops: Vec::new(),
        returns: Vec::new(),
        current: (Span::default(), 0, String::new()),
        instance: None,
    };
    for (name, init, _) in &env.regs {
        let target = match init {
            Init::Address { loc, .. } => Some(symbols.ty(*loc)),
            Init::Int(_) => None,
        };
        let ty = if target.is_some() { Ty::WORD } else { Ty::S32 };
        let init = match init {
            Init::Int(v) => Init::Int(ty.wrap(*v)),
            address => address.clone(),
        };
        l.add(name, ty, target, init);
    }
    l.statements(&unit.stmts);
    let end = l.code.len();
    for at in std::mem::take(&mut l.returns) {
        l.patch(at, end);
    }
    Lowered { regs: l.regs, code: l.code, calls: l.host.requests }
}

impl<'a> Lowering<'a, '_> {
    pub(super) fn error(
        &mut self,
        id: &'static str,
        range: &Range<usize>,
        message: impl Into<String>,
        finish: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let span = self.unit.text.span(range.clone());
        self.sink.error(id, span, message, finish);
    }

    pub(super) fn str(&self, range: &Range<usize>) -> &'a str {
        &self.unit.text.as_str()[range.clone()]
    }

    /// Appends a micro-op of the current statement.
    pub(super) fn push(&mut self, op: Op) -> usize {
        let (span, line, text) = self.current.clone();
        self.code.push(Instr { op, element: Element::ONLY, span, line, text });
        self.code.len() - 1
    }

    /// A branch whose target is filled in later.
    pub(super) fn branch(&mut self, cond: Expr) -> usize {
        self.push(Op::Branch { cond, target: OPEN })
    }

    pub(super) fn patch(&mut self, at: usize, to: usize) {
        if let Some(target) = self.code.get_mut(at).and_then(|instr| instr.op.target_mut()) {
            *target = to;
        }
    }

    fn add(&mut self, name: &str, ty: Ty, target: Option<Ty>, init: Init) -> Variable {
        // A thread with more registers than there are indices has long exceeded every other limit.
        let reg = RegId(u16::try_from(self.regs.len()).unwrap_or(u16::MAX));
        let variable = Variable { reg, ty, target };
        if self.regs.len() < usize::from(u16::MAX) {
            self.regs.push(Register { name: name.to_string(), ty, init });
        } else {
            let span = self.current.0;
            self.sink.error("too-many-registers", span, "a thread has at most 65535 registers", |d| d);
        }
        self.variables.insert(name.to_string(), variable);
        variable
    }

    /// A register that no code can name.
    pub(super) fn temporary(&mut self, ty: Ty) -> RegId {
        let name = format!("${}", self.regs.len());
        self.add(&name, ty, None, Init::Int(0)).reg
    }

    /// A register that no code can name, and that keeps its value.
    pub(super) fn hidden(&mut self, name: &str, ty: Ty) -> RegId {
        self.add(name, ty, None, Init::Int(0)).reg
    }

    /// Ends the thread.
    pub(super) fn leave(&mut self) {
        let at = self.branch(Expr::Const(1));
        self.returns.push(at);
        self.host.paths.leave();
    }

    /// What a plain access carries. In OpenCL it has the scope of its work-item, as the published models have it.
    pub(super) fn plain(&self, ty: Ty) -> Access {
        Access { tags: Tags::default(), scope: self.env.language.plain_scope, ty }
    }

    /// The location of constant memory that an address names, if it surely names one.
    pub(super) fn constant(&self, addr: &Expr) -> Option<&'a str> {
        let symbol = self.symbols.get(addr.base()?);
        match &symbol.kind {
            SymbolKind::Object(object) if object.space == Space::Constant => Some(&symbol.name),
            _ => None,
        }
    }

    /// Marks what is lowered from now on as made of that text.
    fn at(&mut self, range: &Range<usize>) {
        let span = self.unit.text.span(range.clone());
        let text = self.str(range).split_whitespace().collect::<Vec<_>>().join(" ");
        self.current = (span, self.sink.line(span.start), text);
    }

    fn statements(&mut self, all: &[Stmt]) {
        for stmt in all {
            self.statement(stmt);
        }
    }

    fn statement(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Empty => {}
            StmtKind::Block(all) => self.statements(all),
            StmtKind::Declare(all) => {
                self.at(&stmt.range);
                for declared in all {
                    self.declare(declared);
                }
            }
            StmtKind::Assembly(assembly) => {
                self.at(&stmt.range);
                self.assembly(assembly, &stmt.range);
            }
            StmtKind::Host(call) => {
                self.at(&stmt.range);
                self.host_call(call, &stmt.range);
            }
            StmtKind::Refer(name, reference) => {
                self.at(&stmt.range);
                self.refer(name, reference);
            }
            StmtKind::Assign { target, op, value } => {
                self.at(&stmt.range);
                self.assign(target, *op, value);
            }
            StmtKind::Expr(e) => {
                self.at(&stmt.range);
                match &e.kind {
                    ExprKind::Step { target, one, op, .. } => self.assign(target, Some(*op), one),
                    _ => drop(self.eval(e)),
                }
            }
            StmtKind::If { cond, then, other } => {
                let skip = self.unless(cond);
                let taken = match &self.code[skip].op {
                    Op::Branch { cond, .. } => fold(cond).map(|c| c == 0),
                    _ => None,
                };
                self.host.paths.enter(taken);
                self.statement(then);
                self.host.paths.exit(taken);
                self.host.paths.enter(taken.map(|t| !t));
                match other {
                    None => {
                        let end = self.code.len();
                        self.patch(skip, end);
                    }
                    Some(other) => {
                        let over = self.branch(Expr::Const(1));
                        let middle = self.code.len();
                        self.patch(skip, middle);
                        self.statement(other);
                        let end = self.code.len();
                        self.patch(over, end);
                    }
                }
                self.host.paths.exit(taken.map(|t| !t));
            }
            StmtKind::Loop { init, cond, step, body, test_last } => {
                if let Some(init) = init {
                    self.statement(init);
                }
                self.repeat(cond.as_ref(), step.as_deref(), body, *test_last);
            }
            StmtKind::Instance { number, barrier } => {
                self.instance = Some(*number);
                self.statement(barrier);
                if self.instance.take().is_some() {
                    self.error("misplaced-label", &stmt.range, format!("`B{number}:` labels no barrier"), |d| {
                        d.label("expected a barrier behind the label")
                    });
                }
            }
            StmtKind::Break | StmtKind::Continue => {
                self.at(&stmt.range);
                let leave = matches!(stmt.kind, StmtKind::Break);
                let at = self.branch(Expr::Const(1));
                match self.loops.last_mut() {
                    Some(exits) if leave => exits.breaks.push(at),
                    Some(exits) => exits.continues.push(at),
                    None => {
                        let word = if leave { "break" } else { "continue" };
                        self.error("c-syntax", &stmt.range, format!("`{word}` outside of a loop"), |d| {
                            d.label("expected a loop around it")
                        });
                    }
                }
            }
            StmtKind::Return => {
                self.at(&stmt.range);
                self.leave();
            }
        }
    }

    /// Evaluates a condition; the branch that is taken where it does not hold.
    fn unless(&mut self, cond: &Tree) -> usize {
        self.at(&cond.range);
        let value = self.eval(cond);
        self.branch(falsity(&value))
    }

    fn repeat(&mut self, cond: Option<&Tree>, step: Option<&Stmt>, body: &Stmt, test_last: bool) {
        let head = self.code.len();
        let out = match cond {
            Some(cond) if !test_last => Some(self.unless(cond)),
            _ => None,
        };
        self.loops.push(Exits::default());
        self.host.paths.enter(None);
        self.statement(body);
        self.host.paths.exit(None);
        let exits = self.loops.pop().unwrap_or_default();
        let next = self.code.len();
        if let Some(step) = step {
            self.statement(step);
        }
        let last = match cond {
            Some(cond) if test_last => Some(self.unless(cond)),
            _ => None,
        };
        let back = self.branch(Expr::Const(1));
        self.patch(back, head);
        let end = self.code.len();
        for at in out.into_iter().chain(last).chain(exits.breaks) {
            self.patch(at, end);
        }
        for at in exits.continues {
            self.patch(at, next);
        }
    }

    fn declare(&mut self, declared: &Declared) {
        let name = self.str(&declared.name);
        if let (true, Some(value)) = (declared.auto, &declared.value)
            && self.declare_group(&declared.name, value)
        {
            return;
        }
        let value = declared.value.as_ref().map(|e| self.eval(e));
        let taken = self.references.contains_key(name) || self.groups.contains_key(name);
        if taken || self.location(name).is_some() {
            self.error("duplicate-name", &declared.name, format!("`{name}` is the name of a location"), |d| {
                d.label("expected another name for the register")
            });
            return;
        }
        let (ty, target) = match &value {
            Some(value) if declared.auto => (promoted(value), value.target),
            _ if declared.pointer => (Ty::WORD, Some(declared.ty)),
            _ => (declared.ty, None),
        };
        let variable = match self.variables.get(name) {
            Some(old) if old.ty == ty && old.target == target => *old,
            Some(_) => {
                self.error("duplicate-name", &declared.name, format!("`{name}` has another type before"), |d| {
                    d.label("expected another name").note("a register is known in the whole thread")
                });
                return;
            }
            None => self.add(name, ty, target, Init::Int(0)),
        };
        if let Some(value) = value {
            self.set(variable, value);
        }
    }

    /// `f++` and its like, as a value: of atomic objects alone, where it is a call of a function.
    pub(super) fn step(&mut self, target: &Tree, one: &Tree, op: BinOp, prefix: bool) -> Value {
        if self.is_object(target) {
            return self.step_object(target, one, op, prefix);
        }
        let message = format!("the value of `{}` as it changes cannot be used", self.str(&target.range));
        self.error("c-syntax", &target.range, message, |d| {
            d.label("expected an expression that changes nothing")
                .note("an assignment is a statement of its own here, so that no evaluations are unsequenced")
        });
        Value::int(0)
    }

    fn set(&mut self, variable: Variable, value: Value) {
        let value = value.fit(variable.ty);
        self.push(Op::Assign { dst: variable.reg, value });
    }

    fn assign(&mut self, target: &Tree, op: Option<BinOp>, value: &Tree) {
        if self.is_object(target) {
            self.assign_object(target, op, value);
            return;
        }
        let name = self.str(&target.range);
        let memory = || self.location(name).is_some_and(|loc| self.is_variable(loc));
        if matches!(target.kind, ExprKind::Name) && (self.variables.contains_key(name) || !memory()) {
            let mut value = self.eval(value);
            let variable = match self.variables.get(name) {
                Some(variable) => *variable,
                None if self.location(name).is_some() => {
                    self.error("wrong-operand", &target.range, format!("`{name}` is a location"), |d| {
                        d.label("expected a register").help(format!("`*{name} = …` is a plain store"))
                    });
                    return;
                }
                None if self.env.strict => {
                    self.unknown_register(&target.range);
                    return;
                }
                None => self.add(name, Ty::S32, None, Init::Int(0)),
            };
            if let Some(op) = op {
                let old = Value { expr: Expr::Reg(variable.reg), ty: variable.ty, target: variable.target };
                value = Value::bin(op, old, value);
            }
            self.set(variable, value);
            return;
        }
        let Some((addr, ty)) = self.place(target) else {
            self.eval(value);
            return;
        };
        if let Some(name) = self.constant(&addr) {
            let message = format!("a store to `{name}`, which is in constant memory");
            self.error("constant-memory", &target.range, message, |d| {
                d.label("expected memory that can be written").note("constant memory is read-only")
            });
            return;
        }
        let mut value = match op {
            None => self.eval(value),
            Some(op) => {
                let access = self.access(target, ty);
                let old = self.load(addr.clone(), access);
                let value = self.eval(value);
                Value::bin(op, old, value)
            }
        };
        // A store through a pointer keeps addresses whole.
        value.expr = value.fit(ty);
        let access = self.access(target, ty);
        self.push(Op::Store { addr, value: value.expr, access });
    }
}

/// The type of a register that is declared with `auto`.
fn promoted(value: &Value) -> Ty {
    if value.target.is_some() { Ty::WORD } else { value.ty }
}
