//! Lowers statements to micro-ops.
//!
//! # Invariants
//! - Errors never stop the walk: one pass reports all errors of a thread.
//! - The walk fills in every branch target before it ends.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use super::addressed::addressed;
use super::ast::{
    Base, Expr as Tree, ExprKind, Function, Initial, Prototype, Stmt, StmtKind, StructSyntax,
    TypeName,
};
use super::host::HostState;
use super::jump_places::Jumps;
use super::place::Place;
pub(super) use super::scope::Touches;
use super::scope::{Binding, Instance, Scopes, Variable};
use super::types::{Qualified, Type, Value, fold};
use super::{ClikeCode, Env, Lowered};
use crate::isa::{SymbolKind, Symbols};
use diag::{Diagnostic, Sink, SourceLine, Span, one_line};
use program::{
    Access, BinOp, CmpOp, Expr, Init, Instr, InstrId, LocId, Op, RegId, Register, Space, Tags, Ty,
};

/// The target of a branch before the walk fills it in.
const OPEN: usize = usize::MAX;

/// Branches out of a loop or `switch`, by index.
#[derive(Default)]
struct Exits {
    breaks: Vec<usize>,
    continues: Vec<usize>,
    /// The number of blocks around it.
    depth: usize,
    /// For a `switch`: the branches to each label, by the label's position in the text.
    cases: Option<HashMap<usize, Vec<usize>>>,
}

/// The labels of a `switch`.
struct SwitchLabels {
    /// The type of its value.
    ty: Ty,
    value: Expr,
    /// The scoped enumeration that the value is of.
    scoped: Option<Type>,
    /// The numbers of the labels so far.
    seen: Vec<i64>,
    /// Branches to a label, by where it begins.
    branches: HashMap<usize, Vec<usize>>,
    /// Where the label `default:` begins.
    default: Option<usize>,
}

/// A function during the lowering of its body at a call.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) name: String,
    /// The position of its definition in the text.
    pub(super) at: usize,
    /// The arguments of its template.
    pub(super) instance: String,
    /// Its name with its class and the arguments of its own template, as `Box<2>::sum<int>`: calls
    /// with one name share static objects.
    pub(super) owner: String,
    /// The number of blocks around its body.
    pub(super) depth: usize,
    /// The return type, and the register for the result. `None`: the first `return` decides.
    pub(super) result: Option<Qualified>,
    /// It returns a reference: the register holds an address.
    pub(super) refers: bool,
    pub(super) dst: Option<RegId>,
    /// The memory for a structure that the function returns.
    pub(super) place: Option<(Expr, Qualified)>,
    /// Branches to the end of the function.
    pub(super) returns: Vec<usize>,
}

/// A function of the code.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) function: Rc<Function>,
    /// C++: other functions of the name.
    pub(super) others: Vec<Rc<Function>>,
    /// C++: specialisations of its template.
    pub(super) special: Vec<Rc<Function>>,
    /// Its accesses beyond its own variables.
    pub(super) touches: Touches,
    /// For each parameter, whether it is a C++ reference that the function may write to.
    pub(super) written: Vec<bool>,
    /// The structure that it returns, or what it returns a reference to.
    pub(super) returns: Option<Qualified>,
    /// C++: the class that it is a member of.
    pub(super) class: Option<String>,
}

/// Whether a text may have pairs of small numbers.
fn may_have_pairs(source: &str) -> bool {
    ["half2", "bfloat162"]
        .iter()
        .any(|word| source.contains(word))
}

impl Known {
    /// All functions of the name.
    pub(super) fn all(&self) -> impl Iterator<Item = &Rc<Function>> {
        std::iter::once(&self.function).chain(&self.others)
    }

    /// Adds a function of the same name.
    pub(super) fn overload(&mut self, other: Known) {
        self.touches = self.touches.max(other.touches);
        for (n, written) in other.written.into_iter().enumerate() {
            match self.written.get_mut(n) {
                Some(all) => *all |= written,
                None => self.written.push(written),
            }
        }
        if self.returns != other.returns {
            self.returns = None;
        }
        self.others.push(other.function);
    }
}

/// The name under which a class has its constructors.
pub(super) const CONSTRUCTOR: &str = "(constructor)";

/// The name of the class of a function without an object.
pub(super) const OWN_CLASS: &str = "(class)";

/// A class of the code.
#[derive(Clone, Debug)]
pub(super) struct ClassOfCode {
    pub(super) syntax: Rc<StructSyntax>,
    /// The parameters of its template.
    pub(super) instance: Instance,
    /// Its constants and types.
    pub(super) constants: Vec<(String, Binding)>,
    /// Its base classes, with their offsets.
    pub(super) bases: Vec<(Type, u64)>,
}

/// An object with a destructor, and the block that it ends with.
#[derive(Clone, Debug)]
pub(super) struct ScopedObject {
    pub(super) depth: usize,
    pub(super) at: Expr,
    pub(super) of: Qualified,
}

/// The state of lowering one thread.
pub(super) struct Lowering<'a, 's> {
    pub(super) unit: &'a ClikeCode,
    pub(super) env: &'a Env,
    pub(super) symbols: &'s mut Symbols,
    pub(super) sink: &'s mut Sink,
    pub(super) scopes: Scopes,
    /// Memory that this thread's code has declared so far.
    pub(super) declared_memory: Vec<LocId>,
    /// The first array of dynamic shared memory in the code; all others begin at the same address.
    pub(super) dynamic: Option<(String, LocId)>,
    /// Objects that all calls of a function share, by the position of their declaration. Each
    /// instance of a template has its own (ISO C++, \[temp.spec\]).
    pub(super) lasting: HashMap<(usize, String), LocId>,
    /// The name of the kernel, if the code is that of a kernel.
    pub(super) kernel: Option<&'a str>,
    /// The number of blocks around the outermost statements of the kernel or thread.
    pub(super) outermost: usize,
    pub(super) regs: Vec<Register>,
    /// The registers of the thread's place, where it is in registers: one for each of
    /// [`Env::specials`].
    pub(super) places: Vec<RegId>,
    /// Registers and places: there, the lowering relied on the initial address of the register.
    pub(super) kept_addresses: Vec<(RegId, Range<usize>)>,
    /// The registers that conditions may name, with their types.
    named: BTreeMap<String, Vec<(Type, RegId)>>,
    /// The number of registers with values from the test; they come first.
    given: usize,
    /// Registers that code cannot name and that keep their values between statements.
    hidden: HashMap<String, RegId>,
    pub(super) code: Vec<Instr>,
    /// Reads of memory that no thread may write.
    pub(super) read_only: Vec<usize>,
    /// State for host code only.
    pub(super) host: HostState,
    exits: Vec<Exits>,
    /// Asynchronous copies of the work-group.
    pub(super) copies: super::copy_sites::AsyncCopies,
    /// OpenCL C: the images that the kernel takes.
    pub(super) images: Vec<super::image_words::ImageParameter>,
    /// OpenCL C: the pipes that the kernel takes.
    pub(super) pipes: Vec<super::pipe_words::PipeParameter>,
    /// The jumps of the current function.
    pub(super) jumps: Jumps,
    /// Functions of the code by name.
    pub(super) functions: HashMap<String, Known>,
    /// Functions that the code declares, by name.
    pub(super) prototypes: HashMap<&'a str, Vec<Rc<Prototype>>>,
    /// The functions around the current statement, the innermost last.
    pub(super) frames: Vec<Frame>,
    /// The number of calls of functions so far, and the nesting depth of the walk.
    pub(super) calls: usize,
    pub(super) depth: usize,
    returns: Vec<usize>,
    current: (InstrId, Span, SourceLine, String),
    /// The id of the last statement or operation begun.
    pub(super) last: InstrId,
    /// The number of the label before a barrier.
    pub(super) instance: Option<i64>,
    /// Variables of the host outside of all functions, which a kernel cannot use.
    pub(super) of_host: HashSet<&'a str>,
    /// The names of variables with an address that the code takes.
    pub(super) addressed: HashSet<&'a str>,
    /// C++: the classes of the code by name, the templates of classes, and their instances.
    pub(super) classes: HashMap<String, ClassOfCode>,
    pub(super) class_templates: HashMap<String, Vec<Rc<StructSyntax>>>,
    pub(super) made_instances: HashMap<String, Type>,
    /// C++: objects with destructors, the innermost block last.
    pub(super) endings: Vec<ScopedObject>,
    /// C++: the code defines operators.
    pub(super) has_operators: bool,
    /// C++: the code names pairs of small numbers, which have operators.
    pub(super) has_pairs: bool,
    /// C++: the last value is the address of the object that a reference refers to.
    pub(super) refers: bool,
    /// The current declarations are outside of all functions, next to a kernel.
    pub(super) outside: bool,
}

impl<'a, 's> Lowering<'a, 's> {
    pub(super) fn new(
        unit: &'a ClikeCode,
        env: &'a Env,
        symbols: &'s mut Symbols,
        sink: &'s mut Sink,
    ) -> Lowering<'a, 's> {
        Lowering {
            unit,
            env,
            symbols,
            sink,
            scopes: Scopes::new(),
            declared_memory: Vec::new(),
            dynamic: None,
            lasting: HashMap::new(),
            kernel: None,
            outermost: 0,
            regs: Vec::new(),
            places: Vec::new(),
            kept_addresses: Vec::new(),
            named: BTreeMap::new(),
            given: 0,
            hidden: HashMap::new(),
            code: Vec::new(),
            read_only: Vec::new(),
            host: HostState::default(),
            exits: Vec::new(),
            copies: super::copy_sites::AsyncCopies::default(),
            images: Vec::new(),
            pipes: Vec::new(),
            jumps: Jumps::default(),
            functions: HashMap::new(),
            prototypes: HashMap::new(),
            frames: Vec::new(),
            calls: 0,
            depth: 0,
            returns: Vec::new(),
            current: Default::default(),
            last: InstrId::default(),
            instance: None,
            of_host: HashSet::new(),
            addressed: addressed(unit),
            classes: HashMap::new(),
            class_templates: HashMap::new(),
            made_instances: HashMap::new(),
            endings: Vec::new(),
            has_operators: false,
            has_pairs: env.language.cpp && may_have_pairs(unit.text.as_str()),
            refers: false,
            outside: false,
        }
    }
}

/// Lowers one thread.
pub(super) fn lower(
    unit: &ClikeCode,
    env: &Env,
    symbols: &mut Symbols,
    sink: &mut Sink,
) -> Lowered {
    symbols.group_copies.clear();
    let mut l = Lowering::new(unit, env, symbols, sink);
    for (name, init, _) in &env.regs {
        let ty = match init {
            Init::Address { loc, index } => l.of_cell(*loc, *index).pointer(),
            // A declaration in the code may set the type; else, a number outside `int` gets a
            // wider one.
            Init::Int(v) => Value::int(*v).ty,
            Init::Unknown => Value::int(0).ty,
        };
        let reg = l.add(name, ty.word().unwrap_or(Ty::WORD), init.clone());
        l.scopes.bind_outside(
            name,
            Binding::Register(Variable {
                reg,
                of: ty.into(),
                known: None,
            }),
        );
    }
    if env.places_are_registers {
        l.place_registers();
    }
    l.given = l.regs.len();
    l.scopes.enter();
    l.outermost = l.scopes.depth();
    l.thread(&unit.stmts);
    l.end_jumps();
    let end = l.code.len();
    for at in std::mem::take(&mut l.returns) {
        l.patch(at, end);
    }
    l.end_copies();
    l.end_pipes();
    l.keep_addresses();
    if unit.of_file {
        l.promote_objects();
    }
    l.rename();
    Lowered {
        regs: l.regs,
        code: l.code,
        read_only: l.read_only,
        calls: l.host.requests,
    }
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

    /// The place of the current statement.
    pub(super) fn statement_span(&self) -> diag::Span {
        self.current.1
    }

    /// Appends a micro-op of the current statement.
    pub(super) fn push(&mut self, op: Op) -> usize {
        let (id, span, line, text) = self.current.clone();
        self.code.push(Instr::new(id, op, span, line, text));
        self.code.len() - 1
    }

    /// Appends a branch; the caller fills in its target later.
    pub(super) fn branch(&mut self, cond: Expr) -> usize {
        self.push(Op::Branch { cond, target: OPEN })
    }

    pub(super) fn patch(&mut self, at: usize, to: usize) {
        if let Some(target) = self
            .code
            .get_mut(at)
            .and_then(|instr| instr.op.target_mut())
        {
            *target = to;
        }
    }

    pub(super) fn add(&mut self, name: &str, ty: Ty, init: Init) -> RegId {
        // A thread with more registers than there are indices has exceeded every other limit
        // before.
        let reg = RegId(u16::try_from(self.regs.len()).unwrap_or(u16::MAX));
        if self.regs.len() < usize::from(u16::MAX) {
            self.regs.push(Register {
                name: name.to_string(),
                ty,
                init,
            });
        } else {
            let span = self.current.1;
            self.sink.error(
                "too-many-registers",
                span,
                "a thread has at most 65535 registers",
                |d| d,
            );
        }
        reg
    }

    /// A register that code cannot name.
    pub(super) fn temporary(&mut self, ty: Ty) -> RegId {
        let name = format!("${}", self.regs.len());
        self.add(&name, ty, Init::Int(0))
    }

    /// The register with this hidden name, which keeps its value between statements.
    pub(super) fn hidden(&mut self, name: &str, ty: Ty) -> RegId {
        match self.hidden.get(name) {
            Some(reg) => *reg,
            None => {
                let reg = self.add(name, ty, Init::Int(0));
                self.hidden.insert(name.to_owned(), reg);
                reg
            }
        }
    }

    /// A register for a variable that conditions cannot name.
    pub(super) fn hidden_register(&mut self, word: &str, ty: &Type) -> RegId {
        let name = format!("{word}#{}", self.regs.len());
        self.add(&name, ty.word().unwrap_or(Ty::WORD), Init::Int(0))
    }

    /// Whether the test gives a register its initial value.
    pub(super) fn is_given(&self, reg: RegId) -> bool {
        usize::from(reg.0) < self.given
    }

    /// The initial value of a register.
    pub(super) fn initial(&self, reg: RegId) -> Init {
        self.regs[usize::from(reg.0)].init.clone()
    }

    /// Lowers the body of a function at a call.
    pub(super) fn inside(&mut self, frame: Frame, body: &[Stmt]) -> Option<Frame> {
        let (exits, current) = (std::mem::take(&mut self.exits), self.current.clone());
        let jumps = std::mem::take(&mut self.jumps);
        let (depth, at) = (
            frame.depth,
            body.last().map_or(0..0, |stmt| stmt.range.clone()),
        );
        self.frames.push(frame);
        self.statements(body);
        self.end_objects(depth, true, &at);
        self.end_jumps();
        self.jumps = jumps;
        let mut frame = self.frames.pop()?;
        (self.exits, self.current) = (exits, current);
        let end = self.code.len();
        for at in std::mem::take(&mut frame.returns) {
            self.patch(at, end);
        }
        Some(frame)
    }

    /// The register of a declared variable, and whether it still has its initial value.
    pub(super) fn variable_register(&mut self, word: &str, ty: &Type) -> (RegId, bool) {
        let machine = ty.word().unwrap_or(Ty::WORD);
        if !self.frames.is_empty() {
            return (self.hidden_register(word, ty), false);
        }
        match self.scopes.find(word) {
            // The test gives the register its initial value, the code its type.
            Some(Binding::Register(given)) if usize::from(given.reg.0) < self.given => {
                let register = &mut self.regs[usize::from(given.reg.0)];
                register.ty = machine;
                if let Init::Int(v) = &mut register.init {
                    let value = Value::int(*v).converted(ty).expr;
                    *v = fold(&value).unwrap_or(machine.wrap(*v));
                }
                return (given.reg, true);
            }
            // The variable hides another one.
            Some(_) => return (self.hidden_register(word, ty), false),
            None => {}
        }
        let known = self
            .named
            .get(word)
            .and_then(|all| all.iter().find(|one| one.0 == *ty));
        if let Some((_, reg)) = known {
            return (*reg, false);
        }
        let reg = self.add(word, machine, Init::Int(0));
        self.named
            .entry(word.to_string())
            .or_default()
            .push((ty.clone(), reg));
        (reg, !self.is_in_loop())
    }

    /// Declares a register in dialects that need no declarations.
    pub(super) fn undeclared(&mut self, word: &str) {
        let reg = self.add(word, Ty::S32, Init::Int(0));
        let variable = Variable {
            reg,
            of: Type::INT.into(),
            known: None,
        };
        self.scopes.bind_outside(word, Binding::Register(variable));
    }

    /// Whether a block that has ended declared a name.
    pub(super) fn is_known_elsewhere(&self, name: &str) -> bool {
        self.named.contains_key(name)
    }

    /// The name of a variable.
    pub(super) fn register_name(&self, reg: RegId) -> String {
        let name = self
            .regs
            .get(usize::from(reg.0))
            .map_or("", |r| r.name.as_str());
        name.split('#').next().unwrap_or("").to_string()
    }

    /// Hides variables that have two types, so that conditions cannot name them.
    fn rename(&mut self) {
        for (name, all) in self.named.iter().filter(|(_, all)| all.len() > 1) {
            for (_, reg) in all {
                self.regs[usize::from(reg.0)].name = format!("{name}#{}", reg.0);
            }
        }
    }

    /// Ends the thread.
    pub(super) fn leave(&mut self) {
        let at = self.branch(Expr::Const(1));
        self.returns.push(at);
        self.host.paths.leave();
    }

    /// Whether a thread may have ended before this place.
    pub(super) fn may_have_ended(&self) -> bool {
        !self.returns.is_empty()
    }

    /// Whether this place is in a loop, in a `switch`, or behind a label.
    pub(super) fn is_in_loop(&self) -> bool {
        !self.exits.is_empty() || self.jumps.has_labels()
    }

    /// The tags and scope of a plain access. In OpenCL it has work-item scope, as in the published
    /// models.
    pub(super) fn plain(&self, ty: Ty) -> Access {
        Access {
            tags: Tags::default(),
            scope: self.env.language.plain_scope,
            ty,
        }
    }

    /// The name of the constant memory that an address surely points to, if any.
    pub(super) fn constant(&self, addr: &Expr) -> Option<&str> {
        let symbol = self.symbols.get(addr.base()?);
        match &symbol.kind {
            SymbolKind::Object(object) if object.space == Space::Constant => Some(&symbol.name),
            _ => None,
        }
    }

    /// The place of the current statement.
    pub(super) fn here(&self) -> Span {
        self.current.1
    }

    /// Sets the source text of the next micro-ops.
    fn at(&mut self, range: &Range<usize>) {
        let span = self.unit.text.span(range.clone());
        let file = self.sink.file();
        let text = match file.translation {
            Some(_) => one_line(&file.text[span.range()]),
            None => one_line(self.str(range)),
        };
        self.last.0 += 1;
        self.current = (self.last, span, self.sink.source_line(span.start), text);
    }

    /// `return value;` in a function.
    fn give_back(&mut self, value: Option<&Tree>, range: &Range<usize>) {
        if let Some(tree) = value {
            self.decide_result(tree);
        }
        let Some(frame) = self.frames.last() else {
            return;
        };
        let result = frame.result.as_ref().map_or(Type::Void, |of| of.ty.clone());
        let (dst, place, refers, depth) =
            (frame.dst, frame.place.clone(), frame.refers, frame.depth);
        match (value, dst) {
            (Some(tree), Some(dst)) if refers => {
                if let Some((addr, _)) = self.memory_place(tree) {
                    self.push(Op::Assign { dst, value: addr });
                }
            }
            (Some(tree), _) if place.is_some() => {
                let Some((at, of)) = place else { return };
                match &tree.kind {
                    ExprKind::Braced(None, all) => {
                        if let Initial::List(all, range) = &**all {
                            self.initial_list(&at, &of, all, range);
                        }
                    }
                    _ => self.construct(&at, &of, &[tree], &tree.range),
                }
            }
            (None, None) if place.is_some() => {
                self.error(
                    "wrong-operand",
                    range,
                    "this function returns a structure",
                    |d| d.label("expected one behind `return`"),
                );
            }
            (Some(tree), Some(dst)) => {
                let value = self.scalar(tree);
                let value = self.assignable(&value, &result, &tree.range);
                self.push(Op::Assign { dst, value });
            }
            (None, None) => {}
            (Some(tree), None) => self.discard(tree),
            (None, Some(_)) => {
                let name = result.name();
                self.error(
                    "wrong-operand",
                    range,
                    "this function returns a value",
                    |d| d.label(format!("expected a `{name}` behind `return`")),
                );
            }
        }
        self.end_objects(depth, false, range);
        let at = self.branch(Expr::Const(1));
        if let Some(frame) = self.frames.last_mut() {
            frame.returns.push(at);
        }
    }

    /// The type of a result that the first `return` decides, and room for it.
    fn decide_result(&mut self, tree: &Tree) {
        if self
            .frames
            .last()
            .is_none_or(|frame| frame.result.is_some())
        {
            return;
        }
        let of = match self
            .type_of_place(tree)
            .filter(|of| matches!(of.ty, Type::Struct(_)))
        {
            Some(of) => Qualified::from(of.ty),
            None => Qualified::from(self.unevaluated(tree).ty),
        };
        let of = match of.ty {
            Type::Array(element, _) => Qualified::from(Type::Pointer(element)),
            _ => of,
        };
        let place = match &of.ty {
            Type::Struct(_) => self
                .unnamed("()", &of, &tree.range)
                .map(|at| (at, of.clone())),
            _ => None,
        };
        let dst = of.word().map(|ty| self.temporary(ty));
        if let Some(frame) = self.frames.last_mut() {
            (frame.result, frame.dst, frame.place) = (Some(of), dst, place);
        }
    }

    pub(super) fn statements(&mut self, all: &[Stmt]) {
        for stmt in all {
            self.statement(stmt);
        }
    }

    /// Lowers a statement as a block, with or without braces.
    fn block(&mut self, stmt: &Stmt) {
        self.scopes.enter();
        self.statement(stmt);
        self.leave_block(&stmt.range);
    }

    /// Ends a block, and the objects in it.
    fn leave_block(&mut self, range: &Range<usize>) {
        let depth = self.scopes.depth();
        self.end_objects(depth, true, range);
        self.scopes.leave();
    }

    fn statement(&mut self, stmt: &Stmt) {
        self.depth += 1;
        self.statement_inner(stmt);
        self.depth -= 1;
    }

    fn statement_inner(&mut self, stmt: &Stmt) {
        // These statements begin with code of their own range.
        let is_simple = matches!(
            stmt.kind,
            StmtKind::Declare(_)
                | StmtKind::Assembly(_)
                | StmtKind::Host(_)
                | StmtKind::Expr(_)
                | StmtKind::Assert(_)
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Goto(_)
                | StmtKind::Return(_)
        );
        if is_simple {
            self.at(&stmt.range);
        }
        match &stmt.kind {
            StmtKind::Empty | StmtKind::Function(None) => {}
            StmtKind::Block(all) => {
                self.scopes.enter();
                self.statements(all);
                self.leave_block(&stmt.range);
            }
            StmtKind::Declare(declaration) => {
                let gives_value = declaration.all.iter().any(|d| d.value.is_some());
                if gives_value || self.env.language.cpp {
                    self.initialises_here();
                }
                self.declaration(declaration);
            }
            StmtKind::Assembly(assembly) => self.assembly(assembly, &stmt.range),
            StmtKind::Host(call) => self.host_call(call, &stmt.range),
            StmtKind::Expr(e) => self.discard(e),
            StmtKind::Assert(holds) => self.assert_constant(holds),
            StmtKind::If {
                constant: true,
                cond,
                then,
                other,
            } => {
                self.at(&cond.range);
                let taken = match self.fixed_as(cond, "this condition", |_| true) {
                    Some(0) => other.as_deref(),
                    Some(_) => Some(&**then),
                    None => None,
                };
                taken.into_iter().for_each(|stmt| self.block(stmt));
            }
            StmtKind::If {
                cond, then, other, ..
            } => self.branches(cond, then, other.as_deref()),
            StmtKind::Loop {
                init,
                cond,
                step,
                body,
                test_last,
            } => {
                self.scopes.enter();
                if let Some(init) = init {
                    self.statement(init);
                }
                self.repeat(cond.as_ref(), step.as_deref(), body, *test_last);
                self.scopes.leave();
            }
            StmtKind::Elements {
                element,
                over,
                body,
            } => {
                self.at(&over.range);
                self.scopes.enter();
                self.elements(element, over, body);
                self.scopes.leave();
            }
            StmtKind::Switch { value, body } => self.switch(value, body),
            StmtKind::Case(_) => self.case_label(&stmt.range),
            StmtKind::Instance { number, barrier } => self.labelled(*number, barrier, &stmt.range),
            StmtKind::Labelled(name, stmt) => {
                self.label(name);
                self.statement(stmt);
            }
            StmtKind::Goto(name) => self.go_to(name),
            StmtKind::Break => self.jump(true, &stmt.range),
            StmtKind::Continue => self.jump(false, &stmt.range),
            StmtKind::Function(Some(function)) => self.function_of_code(function),
            StmtKind::Prototype(prototype) => self.declare_prototype(prototype),
            StmtKind::Return(value) if !self.frames.is_empty() => {
                self.give_back(value.as_ref(), &stmt.range);
            }
            StmtKind::Return(value) => self.end_thread(value.as_ref(), &stmt.range),
        }
    }

    /// `static_assert(…)`
    fn assert_constant(&mut self, holds: &Tree) {
        if self.fixed(holds, "the assertion") == Some(0) {
            let message = "this does not hold";
            self.error("failed-assertion", &holds.range, message, |d| {
                d.label("expected a constant other than 0")
            });
        }
    }

    /// `if (cond) then else other`, decided when it runs.
    fn branches(&mut self, cond: &Tree, then: &Stmt, other: Option<&Stmt>) {
        let skip = self.unless(cond);
        let taken = match &self.code[skip].op {
            Op::Branch { cond, .. } => fold(cond).map(|c| c == 0),
            _ => None,
        };
        self.host.paths.enter(taken);
        self.block(then);
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
                self.block(other);
                let end = self.code.len();
                self.patch(over, end);
            }
        }
        self.host.paths.exit(taken.map(|t| !t));
    }

    /// Lets the branches of a `switch` to a label lead here.
    fn case_label(&mut self, range: &Range<usize>) {
        let here = self.code.len();
        let cases = self.exits.last_mut().and_then(|exits| exits.cases.as_mut());
        match cases.and_then(|cases| cases.remove(&range.start)) {
            Some(branches) => branches.into_iter().for_each(|at| self.patch(at, here)),
            None => {
                let message = "this labels nothing of a `switch`";
                self.error("c-syntax", range, message, |d| {
                    d.label("expected it in the block of one")
                        .note("not in a loop or a branch inside")
                });
            }
        }
    }

    /// `B1: barrier();`
    fn labelled(&mut self, number: i64, barrier: &Stmt, range: &Range<usize>) {
        self.instance = Some(number);
        self.statement(barrier);
        if self.instance.take().is_some() {
            let message = format!("`B{number}:` labels no barrier");
            self.error("misplaced-label", range, message, |d| {
                d.label("expected a barrier behind the label")
            });
        }
    }

    /// `break;` if `leave`, else `continue;`
    fn jump(&mut self, leave: bool, range: &Range<usize>) {
        let mut around = self.exits.iter().enumerate().rev();
        let found = around.find(|(_, exits)| leave || exits.cases.is_none());
        let found = found.map(|(number, exits)| (number, exits.depth));
        if let Some((_, depth)) = found {
            self.end_objects(depth + 1, false, range);
        }
        let at = self.branch(Expr::Const(1));
        match found {
            Some((number, _)) if leave => self.exits[number].breaks.push(at),
            Some((number, _)) => self.exits[number].continues.push(at),
            None => {
                let word = if leave { "break" } else { "continue" };
                let message = format!("`{word}` outside of a loop");
                self.error("c-syntax", range, message, |d| {
                    d.label("expected a loop around it")
                });
            }
        }
    }

    /// `return;` outside of functions.
    fn end_thread(&mut self, value: Option<&Tree>, range: &Range<usize>) {
        if let Some(value) = value {
            let message = "a thread gives no value back";
            self.error("wrong-operand", &value.range, message, |d| {
                d.label("expected `return;`")
            });
        }
        self.end_objects(self.outermost, false, range);
        self.leave();
    }

    /// Evaluates a condition; returns the branch for the case that it fails.
    fn unless(&mut self, cond: &Tree) -> usize {
        self.at(&cond.range);
        let value = self.condition(cond);
        self.branch(value.is_false())
    }

    fn repeat(&mut self, cond: Option<&Tree>, step: Option<&Stmt>, body: &Stmt, test_last: bool) {
        let head = self.code.len();
        let out = match cond {
            Some(cond) if !test_last => Some(self.unless(cond)),
            _ => None,
        };
        let depth = self.scopes.depth();
        self.exits.push(Exits {
            depth,
            ..Exits::default()
        });
        self.host.paths.enter(None);
        self.block(body);
        self.host.paths.exit(None);
        let exits = self.exits.pop().unwrap_or_default();
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

    /// The array that `for (int v : {1, 2})` is over.
    fn listed(&mut self, element: &TypeName, over: &Tree) -> Option<(Expr, Qualified)> {
        let ExprKind::Braced(None, all) = &over.kind else {
            return None;
        };
        let Initial::List(all, range) = &**all else {
            return None;
        };
        let of = match (&element.specifiers.base, all.first()) {
            (Base::Auto, Some(Initial::Value(first))) => self.unevaluated(first).ty.into(),
            (Base::Auto, _) => return None,
            _ => Qualified {
                constant: false,
                ..self.named_type(element)?
            },
        };
        let array: Qualified = Type::Array(of.into(), all.len() as u32).into();
        let at = self.unnamed("{}", &array, range)?;
        self.fill(&at, &array, all);
        Some((at, array))
    }

    /// `for (int v : a) body`: the body for each element of an array.
    fn elements(&mut self, element: &TypeName, over: &Tree, body: &Stmt) {
        let listed = self.listed(element, over);
        let array = match &listed {
            Some((_, of)) => Some(of.ty.clone()),
            None => self.type_of_place(over).map(|of| of.ty),
        };
        let Some(Type::Array(of, n)) = array else {
            self.error("unsupported", &over.range, "this is not an array", |d| {
                d.label("expected an array, with its size")
                    .help("count with an index")
            });
            return;
        };
        let first = match listed {
            Some((at, _)) => at,
            None => self.eval(over).expr,
        };
        let first = self.stable(first);
        let index = self.hidden_register("", &Type::Int(Ty::WORD));
        self.push(Op::Assign {
            dst: index,
            value: Expr::Const(0),
        });
        let head = self.code.len();
        fn here(op: BinOp, a: Expr, b: i64) -> Expr {
            Expr::Bin(op, Ty::WORD, a.into(), Expr::Const(b).into())
        }
        let out = self.branch(Expr::Cmp(
            CmpOp::Ge,
            Ty::WORD,
            Expr::Reg(index).into(),
            Expr::Const(i64::from(n)).into(),
        ));
        let distance = here(BinOp::Mul, Expr::Reg(index), of.ty.size() as i64);
        let at = Expr::Bin(BinOp::Add, Ty::WORD, first.into(), distance.into());
        let depth = self.scopes.depth();
        self.exits.push(Exits {
            depth,
            ..Exits::default()
        });
        self.host.paths.enter(None);
        self.scopes.enter();
        self.element(
            element,
            Place::Memory(at, Qualified::clone(&of)),
            &over.range,
        );
        self.statement(body);
        self.leave_block(&body.range);
        self.host.paths.exit(None);
        let exits = self.exits.pop().unwrap_or_default();
        let next = self.code.len();
        self.push(Op::Assign {
            dst: index,
            value: here(BinOp::Add, Expr::Reg(index), 1),
        });
        let back = self.branch(Expr::Const(1));
        self.patch(back, head);
        let end = self.code.len();
        for at in exits.breaks.into_iter().chain([out]) {
            self.patch(at, end);
        }
        for at in exits.continues {
            self.patch(at, next);
        }
    }

    /// Branches to the labels of a `switch`, then lowers its body, in which control falls from one
    /// label to the next.
    fn switch(&mut self, value: &Tree, body: &Stmt) {
        self.at(&value.range);
        let value_of = self.scalar(value);
        let scoped =
            matches!(&value_of.ty, Type::Enum(of) if of.scoped).then(|| value_of.ty.clone());
        let Some(ty) = value_of
            .ty
            .promoted()
            .or(scoped.as_ref().and_then(Type::word))
        else {
            let message = "this is not an integer";
            self.error("wrong-operand", &value.range, message, |d| {
                d.label("expected one")
            });
            return;
        };
        let value_of = match value_of.expr {
            Expr::Reg(_) | Expr::Const(_) => value_of,
            _ => self.kept(value_of),
        };
        let StmtKind::Block(all) = &body.kind else {
            let message = "a `switch` without a block";
            self.error("unsupported", &body.range, message, |d| {
                d.label("expected `{`")
            });
            return;
        };
        let mut labels = SwitchLabels {
            ty,
            value: value_of.fit(ty),
            scoped,
            seen: Vec::new(),
            branches: HashMap::new(),
            default: None,
        };
        if self.branch_to_labels(all, &mut labels).is_none() {
            return;
        }
        let otherwise = self.branch(Expr::Const(1));
        let mut cases = labels.branches;
        let mut exits = Exits {
            depth: self.scopes.depth(),
            ..Exits::default()
        };
        match labels.default {
            Some(at) => cases.entry(at).or_default().push(otherwise),
            None => exits.breaks.push(otherwise),
        }
        exits.cases = Some(cases);
        self.exits.push(exits);
        self.host.paths.enter(None);
        self.block(body);
        self.host.paths.exit(None);
        let exits = self.exits.pop().unwrap_or_default();
        let end = self.code.len();
        exits.breaks.into_iter().for_each(|at| self.patch(at, end));
    }

    /// Branches to each label of the block of a `switch`. `None`: this function reported an error.
    fn branch_to_labels(&mut self, all: &[Stmt], labels: &mut SwitchLabels) -> Option<()> {
        let mut initialised = None;
        for stmt in all {
            let label = match &stmt.kind {
                StmtKind::Declare(d) if d.all.iter().any(|d| d.value.is_some()) => {
                    initialised = Some(&stmt.range);
                    continue;
                }
                StmtKind::Case(label) => label,
                _ => continue,
            };
            if let Some(range) = initialised {
                let message = "a label behind it jumps past this declaration";
                self.error("c-syntax", range, message, |d| {
                    d.label("expected it in a separate block, `case 1: { int t = 0; … }`")
                });
                return None;
            }
            match label {
                Some(label) => self.branch_to_label(label, stmt.range.start, labels)?,
                None => labels.default = Some(stmt.range.start),
            }
        }
        Some(())
    }

    /// Branches to the label `case label:`, which begins at `start`.
    fn branch_to_label(
        &mut self,
        label: &Tree,
        start: usize,
        labels: &mut SwitchLabels,
    ) -> Option<()> {
        let scoped = labels.scoped.as_ref();
        let fits = |of: &Type| scoped.map_or(of.promoted().is_some(), |scoped| of == scoped);
        let n = labels.ty.wrap(self.fixed_as(label, "a label", fits)?);
        if labels.seen.contains(&n) {
            let message = format!("there is a `case {n}` before");
            self.error("c-syntax", &label.range, message, |d| {
                d.label("expected another value")
            });
        }
        labels.seen.push(n);
        let value = labels.value.clone();
        let at = self.branch(Expr::Cmp(
            CmpOp::Eq,
            labels.ty,
            value.into(),
            Expr::Const(n).into(),
        ));
        labels.branches.entry(start).or_default().push(at);
        Some(())
    }
}
