//! Inlines functions of the code: binds the parameters of the kernel to the test, and lowers the
//! body of any other function at each call.
//!
//! # Invariants
//! - Before the body begins, arguments are converted to the types of their parameters, and copied.
//! - A function sees the declarations outside of all functions, and nothing of its callers.
//!   Conditions cannot name its variables.
//!
//! # Sources
//! - C11, 6.5.2.2 and 6.9.1; ISO C++, expr.call; CUDA C++ Programming Guide, *Function Execution
//!   Space Specifiers*.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use super::ast::{
    Base, Declarator, Expr as Tree, ExprKind, Function, Stmt, StmtKind, Storage, TypeName,
};
use super::calls::MOST_ARGUMENTS;
use super::classes::is_pipeline_class;
use super::lower::{CONSTRUCTOR, Frame, Known, Lowering, OWN_CLASS, Touches};
use super::place::{Place, shifted};
use super::scope::{Binding, Instance, Variable};
use super::types::{Qualified, Type, Value};
use program::{Class, Expr, Init, Instr, LocId, Op, RegId, Space, Ty};

/// Limits for one thread after inlining: the number of micro-ops, and the number of calls.
const LONGEST: usize = 50_000;
const MOST_CALLS: usize = 10_000;

/// The deepest nesting of a call in expressions and statements, including that of the functions
/// around it.
const DEEPEST: usize = 150;

impl Lowering<'_, '_> {
    /// Lowers the statements of a thread: all of them, or those of the kernel if the code has one.
    pub(super) fn thread(&mut self, all: &[Stmt]) {
        let kernels: Vec<(&Stmt, &Rc<Function>)> = all
            .iter()
            .filter_map(|stmt| match &stmt.kind {
                StmtKind::Function(Some(f))
                    if f.result.specifiers.has(Storage::Kernel).is_some() =>
                {
                    Some((stmt, f))
                }
                _ => None,
            })
            .collect();
        fn executes(stmt: &&Stmt) -> bool {
            !matches!(
                stmt.kind,
                StmtKind::Declare(_)
                    | StmtKind::Function(_)
                    | StmtKind::Prototype(_)
                    | StmtKind::Empty
            )
        }
        match kernels.as_slice() {
            [] => {
                let functions = all
                    .iter()
                    .any(|stmt| matches!(stmt.kind, StmtKind::Function(Some(_))));
                if functions
                    && !all.iter().any(|stmt| {
                        !matches!(
                            stmt.kind,
                            StmtKind::Function(_) | StmtKind::Prototype(_) | StmtKind::Empty
                        )
                    })
                {
                    self.error(
                        "no-kernel",
                        &all[0].range,
                        "this code has functions, and nothing that runs",
                        |d| d.label("expected a kernel, or statements behind them"),
                    );
                }
                self.statements(all);
            }
            [(_, kernel)] => {
                if let Some(stmt) = all.iter().find(executes) {
                    self.error(
                        "c-syntax",
                        &stmt.range,
                        "a statement outside of the kernel",
                        |d| d.label("expected it in the kernel"),
                    );
                    return;
                }
                self.kernel = Some(self.str(&kernel.result.declarator.name));
                self.outside = true;
                self.statements(all);
                self.outside = false;
                self.kernel(kernel);
            }
            [_, (again, _), ..] => {
                self.error("no-kernel", &again.range, "a second kernel", |d| {
                    d.label("expected one function, which the threads run")
                });
            }
        }
    }

    /// Registers a function of the code.
    pub(super) fn function_of_code(&mut self, function: &Rc<Function>) {
        let word = self.str(&function.result.declarator.name);
        let Some((class, own)) = word.rsplit_once("::") else {
            let word: String = word.split_whitespace().collect();
            self.define_function(&word, function, None);
            return;
        };
        let Some(Binding::Type(of)) = self.find_binding(class) else {
            let name = &function.result.declarator.name;
            self.error(
                "unknown-type",
                name,
                format!("`{class}` is no class here"),
                |d| d.label("expected a class that is defined before"),
            );
            return;
        };
        let class = of.ty.name();
        let own = match function.constructs {
            Some(_) => CONSTRUCTOR.to_owned(),
            None => own.split_whitespace().collect(),
        };
        self.define_function(&format!("{class}::{own}"), function, Some(&class));
    }

    /// Registers a function under a name; that of a member function contains the structure's.
    pub(super) fn define_function(
        &mut self,
        word: &str,
        function: &Rc<Function>,
        class: Option<&str>,
    ) {
        let name = &function.result.declarator.name;
        if function.params.len() > MOST_ARGUMENTS {
            let message = format!("`{word}` has more than {MOST_ARGUMENTS} parameters");
            self.error("unsupported", name, message, |d| d.label("expected fewer"));
            return;
        }
        let known = self.functions.get(word);
        let same = |known: &Known| known.all().any(|other| Rc::ptr_eq(other, function));
        if class.is_some() && known.is_some_and(same) {
            return;
        }
        if function.specialises.is_some() {
            match self.functions.get_mut(word) {
                Some(known) => known.special.push(function.clone()),
                None => self.error(
                    "unknown-function",
                    name,
                    "a specialisation of nothing",
                    |d| d.label("expected a template of that name before"),
                ),
            }
            return;
        }
        let again =
            known.is_some_and(|known| !self.env.language.cpp || self.is_defined(known, function));
        if again && function.is_of_pack() {
            return;
        }
        if again {
            self.error(
                "duplicate-name",
                name,
                format!("there is a function `{word}` before"),
                |d| d.label("expected another name, or other types of parameters"),
            );
            return;
        }
        self.has_operators |= word.contains("operator");
        let touches = match class {
            Some(class) => self.touches_of_method(class, function),
            None => self.touches_of_function(function),
        };
        let written = function
            .params
            .iter()
            .map(|p| {
                p.declarator.reference && !p.declarator.temporary && !p.specifiers.of_base.constant
            })
            .collect();
        let known = Known {
            function: function.clone(),
            others: Vec::new(),
            special: Vec::new(),
            touches,
            written,
            returns: self.returned(function),
            class: class.map(str::to_owned),
        };
        match self.functions.get_mut(word) {
            Some(first) => first.overload(known),
            None => drop(self.functions.insert(word.to_string(), known)),
        }
    }

    /// The structure that a function returns, or what it returns a reference to.
    fn returned(&mut self, function: &Function) -> Option<Qualified> {
        let result = &function.result;
        if !result.declarator.reference {
            let structure = self.known_structure(result).map(Qualified::from);
            let made = matches!(result.specifiers.base, Base::Instance(..));
            if !made || !function.template.is_empty() {
                return structure;
            }
        }
        let auto = matches!(result.specifiers.base, Base::Auto);
        if auto || !function.template.is_empty() {
            return None;
        }
        let errors = self.sink.errors();
        let of = self.named_type(result)?;
        let reference = result.declarator.reference || matches!(of.ty, Type::Struct(_));
        (reference && self.sink.errors() == errors).then_some(of)
    }

    /// The accesses of a member function: its members are memory.
    fn touches_of_method(&mut self, class: &str, function: &Function) -> Touches {
        let plain = self
            .made_type(class)
            .is_some_and(|ty| Qualified::from(ty).is_plain());
        if !plain || function.constructs.is_some() {
            return Touches::Everything;
        }
        let params: HashSet<&str> = function
            .params
            .iter()
            .map(|p| self.str(&p.declarator.name))
            .collect();
        let mut own = params.clone();
        let mut changes = false;
        for stmt in &function.body {
            declared(stmt, &mut |d| {
                own.insert(self.str(&d.name));
            });
        }
        function.body.iter().for_each(|stmt| {
            stmt.each_expr(&mut |tree| changes |= self.changes_a_member(tree, &own))
        });
        match changes {
            true => Touches::Everything,
            false => self.touches_of_function(function).max(Touches::Memory),
        }
    }

    /// The accesses of a lambda beyond its parameters and variables; it may read captured
    /// variables.
    pub(super) fn touches_of_lambda(
        &self,
        function: &Function,
        sees: &[(String, Binding)],
    ) -> Touches {
        let (mut own, mut pure, mut changes) = (HashSet::new(), true, false);
        own.extend(function.params.iter().map(|p| self.str(&p.declarator.name)));
        for stmt in &function.body {
            declared(stmt, &mut |d| {
                own.insert(self.str(&d.name));
            });
            acts(stmt, self.unit.text.as_str(), &mut pure);
        }
        for stmt in &function.body {
            stmt.each_expr(&mut |tree| changes |= self.changes_a_member(tree, &own));
        }
        if !pure || changes {
            return Touches::Everything;
        }
        let captured = sees.iter().filter(|s| matches!(s.1, Binding::Register(_)));
        own.extend(captured.map(|(word, _)| word.as_str()));
        let mut touches = Touches::Nothing;
        for stmt in &function.body {
            stmt.each_expr(&mut |tree| touches = touches.max(self.touches_of_tree(tree, &own)));
        }
        // What memory it reads may be volatile.
        match touches {
            Touches::Nothing => Touches::Nothing,
            _ => Touches::Everything,
        }
    }

    /// Whether an expression in a member function assigns to something that is not its own.
    fn changes_a_member(&self, tree: &Tree, own: &HashSet<&str>) -> bool {
        let here = match &tree.kind {
            ExprKind::Assign(_, target, _) | ExprKind::Step { target, .. } => {
                !matches!(target.kind, ExprKind::Name) || !own.contains(self.str(&target.range))
            }
            _ => false,
        };
        here || tree
            .parts()
            .into_iter()
            .any(|part| self.changes_a_member(part, own))
    }

    /// The class of that name.
    fn made_type(&self, class: &str) -> Option<Type> {
        let made = self.made_instances.get(class).cloned();
        made.or_else(|| match self.scopes.find(class) {
            Some(Binding::Type(of)) => Some(of.ty.clone()),
            _ => None,
        })
    }

    /// The types of a function's parameters, by their words.
    fn parameter_words(&self, function: &Function) -> Vec<(&str, usize, usize)> {
        let params = function.params.iter();
        params
            .map(|p| {
                (
                    self.str(&p.specifiers.range),
                    p.declarator.pointers.len(),
                    p.declarator.arrays.len(),
                )
            })
            .collect()
    }

    /// Whether a function of the name has the same types of parameters, by their words.
    fn is_defined(&self, known: &Known, function: &Function) -> bool {
        known.all().any(|f| {
            let replaced = f.is_of_pack() && !function.is_of_pack();
            !replaced
                && self.parameter_words(f) == self.parameter_words(function)
                && f.template.len() == function.template.len()
                && f.constant == function.constant
        })
    }

    /// The functions that a call for an object may mean. Of two functions with the same parameters,
    /// a constant object has the one that does not change it, and any other object has the other
    /// (ISO C++, over.match.funcs).
    fn for_object(&self, known: &Known, constant: Option<bool>) -> Known {
        let Some(constant) = constant else {
            return known.clone();
        };
        let has_twin = |f: &Function| {
            let mut others = known.all().filter(|other| other.constant != f.constant);
            others.any(|other| self.parameter_words(other) == self.parameter_words(f))
        };
        let fitting = known
            .all()
            .filter(|f| f.constant == constant || !has_twin(f));
        let mut all: Vec<Rc<Function>> = fitting.cloned().collect();
        match all.is_empty() {
            true => known.clone(),
            false => Known {
                function: all.remove(0),
                others: all,
                ..known.clone()
            },
        }
    }

    /// The accesses of a function beyond its parameters and variables.
    fn touches_of_function(&self, function: &Function) -> Touches {
        let mut own: HashSet<&str> = HashSet::new();
        let params: HashSet<&str> = function
            .params
            .iter()
            .map(|p| self.str(&p.declarator.name))
            .collect();
        let (mut pure, mut plain) = (true, function.params.iter().all(|p| self.leads_to_plain(p)));
        for stmt in &function.body {
            declared(stmt, &mut |d| {
                own.insert(self.str(&d.name));
            });
            acts(stmt, self.unit.text.as_str(), &mut pure);
            points_plainly(stmt, &mut plain);
        }
        if !pure {
            return Touches::Everything;
        }
        // After the block of a variable, the name refers to the hidden declaration again.
        own.retain(|word| self.scopes.find(word).is_none());
        own.extend(params);
        let mut touches = Touches::Nothing;
        function.body.iter().for_each(|stmt| {
            stmt.each_expr(&mut |tree| touches = touches.max(self.touches_of_tree(tree, &own)))
        });
        // The target of a pointer may be volatile or atomic if the function does not declare its
        // type.
        if touches == Touches::Memory && !plain {
            Touches::Everything
        } else {
            touches
        }
    }

    fn touches_of_tree(&self, tree: &Tree, own: &HashSet<&str>) -> Touches {
        fn pure(pure: bool) -> Touches {
            if pure {
                Touches::Nothing
            } else {
                Touches::Everything
            }
        }
        let here = match &tree.kind {
            ExprKind::Deref(_) | ExprKind::Index(..) => Touches::Memory,
            ExprKind::Field(..) if !self.is_special(tree) => Touches::Memory,
            ExprKind::Method(..)
            | ExprKind::Refer(_)
            | ExprKind::Lambda(_)
            | ExprKind::Invoke(..)
            | ExprKind::Placed(..)
            | ExprKind::Scoped(_, _, Some(_)) => Touches::Everything,
            ExprKind::Cast(to, _) => pure(is_plain(to)),
            ExprKind::Assign(_, target, _) | ExprKind::Step { target, .. } => {
                // A field of a parameter belongs to the function, too.
                pure(matches!(target.kind, ExprKind::Name) || self.is_special(target))
            }
            ExprKind::Call(name, _) => match self.str(name) {
                name if own.contains(name) => Touches::Everything,
                name if self.is_plain_read(name) => Touches::Memory,
                name => pure(self.is_pure(name)),
            },
            ExprKind::Name => {
                let word = self.str(&tree.range);
                let elsewhere = match self.scopes.find(word) {
                    Some(binding) => {
                        matches!(
                            binding,
                            Binding::Memory(..) | Binding::Register(_) | Binding::Atomic(_)
                        )
                    }
                    None => self.location(word).is_some(),
                };
                pure(own.contains(word) || !elsewhere)
            }
            _ => Touches::Nothing,
        };
        tree.parts()
            .into_iter()
            .fold(here, |all, part| all.max(self.touches_of_tree(part, own)))
    }

    /// Lowers a kernel. Its parameters get the initial values of the test's registers with the same
    /// names, or the addresses of memory with those names.
    fn kernel(&mut self, kernel: &Rc<Function>) {
        let name = &kernel.result.declarator.name;
        match self.named_type(&kernel.result) {
            Some(of) if of.ty == Type::Void => {}
            Some(_) => {
                self.error("wrong-operand", name, "a kernel returns nothing", |d| {
                    d.label("expected `void`")
                });
            }
            None => return,
        }
        self.scopes.enter();
        self.outermost = self.scopes.depth();
        if self.bind_template_of_kernel(kernel) {
            for param in &kernel.params {
                self.bind_parameter(param, &kernel.body);
            }
            self.statements(&kernel.body);
            let depth = self.scopes.depth();
            self.end_objects(depth, true, &kernel.result.declarator.name);
        }
        self.scopes.leave();
    }

    /// Whether a type leads to plain memory only.
    fn leads_to_plain(&self, name: &TypeName) -> bool {
        if is_plain(name) {
            return true;
        }
        let of = &name.specifiers;
        let qualified = of.of_base.volatile || of.of_base.atomic;
        let word = match &of.base {
            Base::Named(range) => self.str(range),
            _ => return false,
        };
        fn plain(ty: Type) -> bool {
            Qualified::from(ty).is_plain()
        }
        let named = match self.find_binding(word) {
            Some(Binding::Type(of)) => !of.volatile && plain(of.ty.clone()),
            _ => self.vector(word).is_some_and(plain),
        };
        named && !qualified && name.declarator.pointers.iter().all(|p| !p.volatile)
    }

    /// The type of a parameter of a kernel.
    pub(super) fn kernel_parameter(&mut self, param: &TypeName) -> Option<Qualified> {
        self.parameter(param, true)
    }

    fn bind_parameter(&mut self, param: &super::ast::TypeName, body: &[Stmt]) {
        if self.bind_pipe(param) || self.bind_image(param) {
            return;
        }
        let name = &param.declarator.name;
        let word = self.str(name);
        let Some(of) = self.parameter(param, true) else {
            return;
        };
        if word.is_empty() {
            return;
        }
        let changed = changes(body, word, &|range| self.str(range));
        if let Some(Binding::Register(given)) = self.scopes.find(word).cloned() {
            // Any launch may give any value of the type.
            if let (true, Some(ty)) = (self.env.places_are_registers, of.ty.word()) {
                self.regs[usize::from(given.reg.0)].ty = ty;
            }
            let mut value = self.given_value(given.reg, &given.of.ty);
            // A launch gives the number of an enumerator.
            if matches!((&of.ty, &value.ty), (Type::Enum(_), Type::Int(_))) {
                value.ty = of.ty.clone();
            }
            let expr = self.assignable(&value, &of.ty, name);
            if self.addressed.contains(word) {
                if let Some(binding) = self.parameter_in_memory(word, of, expr, name) {
                    self.scopes.bind(word, binding);
                }
                return;
            }
            if !changed {
                // Without changes, the parameter keeps the value from the test.
                self.scopes
                    .bind(word, Binding::Constant(Value::new(expr, of.ty)));
                return;
            }
            let (reg, _) = self.variable_register(word, &of.ty);
            self.scopes.bind(
                word,
                Binding::Register(Variable {
                    reg,
                    of,
                    known: None,
                }),
            );
            return;
        }
        let Some(loc) = self.location(word) else {
            self.error(
                "unbound-parameter",
                name,
                format!("nothing is bound to the parameter `{word}`"),
                |d| {
                    d.label("expected memory of that name, or a value").help(format!(
                    "give it in `regs = {{ {word} = 4 }}`, as `regs = {{ {word} = \"&x\" }}`, or \
                    declare `{word}` in `[memory]`"
                ))
                },
            );
            self.scopes.bind(word, Binding::Constant(self.nothing()));
            return;
        };
        let there = self.as_the_parameter_says(loc, &of, param.declarator.reference);
        if matches!(of.ty, Type::Struct(_)) && !param.declarator.reference {
            self.structure_given(name, Expr::Address(loc), there, of);
            return;
        }
        if param.declarator.reference {
            self.refer_to(name, Place::Memory(Expr::Address(loc), there), of, name);
            return;
        }
        if let Some(space) = of.ty.target().and_then(|to| to.space)
            && space != self.symbols.object(loc).1.space
        {
            self.refuse_space(name);
        }
        let value = Value::new(Expr::Address(loc), there.pointer());
        let expr = self.assignable(&value, &of.ty, name);
        let binding = match changed {
            false => Binding::Constant(Value::new(expr, of.ty)),
            true => {
                let reg = self.hidden_register(word, &of.ty);
                self.push(Op::Assign {
                    dst: reg,
                    value: expr,
                });
                Binding::Register(Variable {
                    reg,
                    of,
                    known: None,
                })
            }
        };
        self.scopes.bind(word, binding);
    }

    /// Reports a parameter that names another address space than that of its memory.
    fn refuse_space(&mut self, name: &Range<usize>) {
        let message = format!(
            "`{}` is in other memory than its parameter says",
            self.str(name)
        );
        self.error("wrong-space", name, message, |d| {
            d.label("expected a pointer to where it is")
                .note("`[memory]` says where it is, with `space`")
        });
    }

    /// Binds a structure that a kernel takes by value: each thread has a copy of what the test
    /// gives.
    fn structure_given(
        &mut self,
        name: &Range<usize>,
        from: Expr,
        there: Qualified,
        of: Qualified,
    ) {
        let word = self.str(name);
        let Some(at) = self.unnamed(&format!("{word}()"), &of, name) else {
            return;
        };
        self.copy_members(at.clone(), of.clone(), from, there, name);
        self.scopes.bind(word, Binding::Memory(at, of));
    }

    /// The type of the memory that a kernel parameter is bound to. If the test declares only an
    /// integer, the parameter may declare it an atomic object.
    fn as_the_parameter_says(&mut self, loc: LocId, of: &Qualified, reference: bool) -> Qualified {
        let there = self.of_location(loc);
        let wanted = match &of.ty {
            Type::Pointer(to) if !reference => to,
            _ => of,
        };
        match &wanted.ty {
            Type::Object(Class::Atomic(_), value) if **value == there.ty => {
                return Qualified {
                    ty: wanted.ty.clone(),
                    ..there
                };
            }
            ty if wanted.atomic && self.env.strict && *ty == there.ty => {
                if let Some(object) = self.symbols.object_mut(loc)
                    && object.atomic.is_none()
                {
                    object.atomic = Some(true);
                }
            }
            _ => {}
        }
        self.of_location(loc)
    }

    /// The value that the test gave a register. Launches that are left open give others.
    fn given_value(&self, reg: program::RegId, ty: &Type) -> Value {
        let expr = match self.initial(reg) {
            Init::Int(_) if self.env.places_are_registers => Expr::Reg(reg),
            Init::Int(v) => Expr::Const(v),
            Init::Unknown => Expr::Const(0),
            Init::Address { loc, index } => shifted(
                &Expr::Address(loc),
                self.symbols.layout(loc).offset(index) as u64,
            ),
        };
        // The number 0 is the null pointer.
        let fixed = matches!(expr, Expr::Const(_));
        Value {
            fixed,
            ..Value::new(expr, ty.clone())
        }
    }

    /// The type of a parameter: an array becomes a pointer.
    fn parameter(&mut self, param: &super::ast::TypeName, structures: bool) -> Option<Qualified> {
        let of = match param.declarator.arrays.as_slice() {
            [] => self.named_type(param)?,
            // The size in the first dimension has no meaning (C11, 6.7.6.3).
            [_, ..] => {
                let specifiers = self.base(&param.specifiers)?;
                self.array_type(
                    specifiers,
                    &param.declarator.name,
                    &param.declarator.pointers,
                    &param.declarator.arrays[1..],
                    None,
                )?
                .pointer()
                .into()
            }
        };
        if of.space.is_some_and(|space| space != Space::Local) {
            let range = &param.specifiers.range;
            self.error(
                "wrong-space",
                range,
                "a parameter with an address space",
                |d| {
                    d.label("expected a pointer to that address space, or a value")
                        .note("parameters are private (OpenCL C, Address Space Qualifiers)")
                },
            );
            return None;
        }
        let object = of.ty.is_aggregate() || matches!(of.ty, Type::Object(..));
        let copied = structures && matches!(of.ty, Type::Struct(_));
        if of.word().is_none() && !copied && !(object && param.declarator.reference) {
            let name = of.ty.name();
            self.error(
                "wrong-operand",
                &param.specifiers.range,
                format!("a parameter of type `{name}`"),
                |d| {
                    let d = d.label("expected a type that has values");
                    if object {
                        d.help("give a pointer, or in C++ a reference, to it")
                    } else {
                        d
                    }
                },
            );
            return None;
        }
        Some(of)
    }

    /// Lowers a call of a function of the code; `None`: the code has no such function.
    pub(super) fn call_of_code(
        &mut self,
        tree: &Tree,
        name: &Range<usize>,
        args: &[Tree],
    ) -> Option<Value> {
        let word = self.str(name);
        let given: Vec<&Tree> = args.iter().collect();
        match self.scopes.find(word).cloned() {
            Some(Binding::Closure(closure)) => {
                return Some(self.call_closure(&tree.range, &closure, &given));
            }
            Some(Binding::Memory(at, of)) => {
                let known = self.method_of_type(&of.ty, "operator()")?.clone();
                let receiver = Some((at, of));
                return self.call_function(&tree.range, name, &known, receiver, &given);
            }
            _ => {}
        }
        if let Some((known, receiver)) = self.method_of_this(word) {
            return self.call_function(&tree.range, name, &known, receiver, &given);
        }
        if let Some((known, class)) = self.function_of_class(word) {
            // `B::f()` in a member function is about the same object.
            let receiver = match self.scopes.find("this") {
                Some(Binding::Constant(this)) => Some((this.expr.clone(), Qualified::from(class))),
                _ => None,
            };
            return self.call_function(&tree.range, name, &known, receiver, &given);
        }
        if self.is_call_of_language(word, args) {
            return None;
        }
        let known = self.functions.get(word)?.clone();
        self.call_function(&tree.range, name, &known, None, &given)
    }

    /// Lowers a call of a function; of a member function, for an object.
    pub(super) fn call_function(
        &mut self,
        range: &Range<usize>,
        name: &Range<usize>,
        known: &Known,
        receiver: Option<(Expr, Qualified)>,
        args: &[&Tree],
    ) -> Option<Value> {
        let constant = receiver.as_ref().map(|(_, of)| of.constant);
        let known = &self.for_object(known, constant);
        let Some((function, instance)) = self.function_for(range, name, known, args) else {
            return Some(self.nothing());
        };
        let callee = Callee {
            function,
            instance,
            receiver,
            class: known.class.clone(),
        };
        let (start, errors) = (self.code.len(), self.sink.errors());
        let value = self.call_callee(range, callee, args);
        Some(self.known_result(start, errors, value))
    }

    /// The result of a call whose code computes with constants alone: a constant. That code is
    /// dropped.
    pub(super) fn known_result(&mut self, start: usize, errors: usize, value: Value) -> Value {
        let Expr::Reg(result) = value.expr else {
            return value;
        };
        if !self.env.language.cpp || self.refers || self.sink.errors() > errors {
            return value;
        }
        match computed(&self.code[start..], start, result) {
            Some(n) => {
                self.code.truncate(start);
                Value::literal(n, value.ty)
            }
            None => value,
        }
    }

    /// Lowers the body of a function at a call.
    pub(super) fn call_callee(
        &mut self,
        range: &Range<usize>,
        callee: Callee,
        args: &[&Tree],
    ) -> Value {
        let function = callee.function.clone();
        let declarator = &function.result.declarator;
        let arguments = self.spelled_arguments(&callee.instance);
        if self.refuse_call(range, &function, &arguments) {
            return self.nothing();
        }
        let auto =
            matches!(function.result.specifiers.base, Base::Auto) && declarator.pointers.is_empty();
        let result = match auto {
            true => None,
            false => match self.in_instance(&callee.instance, |l| l.named_type(&function.result)) {
                Some(of) => Some(of),
                None => return self.nothing(),
            },
        };
        let bindings: Vec<Option<Binding>> = function
            .params
            .iter()
            .zip(args.iter().copied().chain(defaults(&function, args.len())))
            .map(|(param, arg)| self.argument_of(param, &callee.instance, arg, &function.body))
            .collect();
        let word = self.str(&declarator.name);
        let mut frame = Frame {
            name: word.to_string(),
            at: declarator.name.start,
            instance: arguments,
            owner: self.owner_of(&callee),
            depth: 0,
            result,
            refers: declarator.reference,
            dst: None,
            place: None,
            returns: Vec::new(),
        };
        if self.give_result_room(&mut frame, &function).is_none() {
            return self.nothing();
        }
        let base = self.scopes.enter_function();
        self.bind_names_of(&callee);
        for (param, binding) in function.params.iter().zip(bindings) {
            let word = self.str(&param.declarator.name);
            if let Some(binding) = binding {
                self.scopes.bind(word, binding);
            }
        }
        frame.depth = self.scopes.depth();
        if let (Some(given), Some((at, of))) = (&function.constructs, &callee.receiver) {
            self.initialise_members(at, of, given, &declarator.name);
        }
        let frame = self.inside(frame, &function.body);
        self.scopes.leave_function(base);
        match frame {
            Some(frame) => self.value_of_call(frame),
            None => Value::void(),
        }
    }

    /// The name of a function with its class and the arguments of its own template. What a lambda
    /// captures is no part of it.
    fn owner_of(&self, callee: &Callee) -> String {
        let own = |word: &str| {
            let mut parameters = callee.function.template.iter();
            parameters.any(|param| self.str(&param.name) == word)
        };
        let mut instance = callee.instance.clone();
        instance.retain(|(word, _)| own(word));
        let mut owner = self.str(&callee.function.result.declarator.name).to_owned();
        if let Some(class) = &callee.class {
            owner = format!("{class}::{owner}");
        }
        if !instance.is_empty() {
            owner += &format!("<{}>", self.spelled_arguments(&instance));
        }
        owner
    }

    /// The full name of the function around the current code; empty in the kernel.
    pub(super) fn owner(&self) -> &str {
        self.frames.last().map_or("", |frame| &frame.owner)
    }

    /// Reports a call that cannot be written out; `true` if it is one.
    fn refuse_call(&mut self, range: &Range<usize>, function: &Function, arguments: &str) -> bool {
        let name = &function.result.declarator.name;
        let word = self.str(name);
        let kernel = function.result.specifiers.has(Storage::Kernel).is_some();
        let recursive = self
            .frames
            .iter()
            .any(|frame| frame.at == name.start && frame.instance == arguments);
        self.calls += 1;
        let long = self.code.len() > LONGEST || self.calls > MOST_CALLS;
        let (message, label) = if kernel {
            (
                format!("`{word}` is a kernel"),
                "kernels are launched, not called",
            )
        } else if recursive {
            (
                format!("`{word}` calls itself"),
                "recursion is not supported: expected a loop",
            )
        } else if long {
            (
                "this thread is too long, its functions written out".to_string(),
                "expected less code",
            )
        } else if self.depth > DEEPEST {
            (
                "this is nested too deeply, its functions written out".to_string(),
                "expected fewer levels",
            )
        } else {
            return false;
        };
        self.error("unsupported", range, message, |d| d.label(label));
        true
    }

    /// Gives a function a register or memory for its result. `None`: this function reported an
    /// error.
    fn give_result_room(&mut self, frame: &mut Frame, function: &Function) -> Option<()> {
        let name = &function.result.declarator.name;
        frame.dst = match &frame.result {
            Some(_) if frame.refers => Some(self.temporary(Ty::WORD)),
            Some(of) => of.word().map(|ty| self.temporary(ty)),
            None => None,
        };
        if let Some(of) = &frame.result
            && matches!(of.ty, Type::Struct(_))
            && !frame.refers
        {
            let at = self.unnamed(&format!("{}()", frame.name), of, name)?;
            frame.place = Some((at, of.clone()));
        }
        let gives_value = frame.dst.is_some() || frame.place.is_some();
        if gives_value && !function.body.last().is_some_and(Stmt::always_returns) {
            self.error("undefined-value", name, "it may end without a value", |d| {
                d.label("expected `return` at its end, or in both branches of an `if` there")
            });
        }
        Some(())
    }

    /// Binds the names that the body of a function sees beside its parameters.
    fn bind_names_of(&mut self, callee: &Callee) {
        for (word, binding) in &callee.instance {
            self.scopes.bind(word, binding.clone());
        }
        if let Some(class) = &callee.class {
            self.bind_class(class);
        }
        match (&callee.receiver, &callee.class) {
            (Some((at, of)), _) => {
                let of = Qualified {
                    constant: of.constant || callee.function.constant,
                    ..of.clone()
                };
                self.bind_members(at.clone(), &of);
            }
            (None, Some(class)) => {
                if let Some(ty) = self.made_type(class) {
                    self.scopes.bind(OWN_CLASS, Binding::Type(ty.into()));
                }
            }
            (None, None) => {}
        }
    }

    /// The value of a call whose function has ended.
    fn value_of_call(&mut self, frame: Frame) -> Value {
        self.refers = frame.refers;
        let ty = frame.result.map_or(Type::Void, |of| match frame.refers {
            true => of.pointer(),
            false => of.ty,
        });
        match (frame.dst, frame.place) {
            (Some(dst), _) => Value::new(Expr::Reg(dst), ty),
            (None, Some((at, _))) => Value::new(at, ty),
            (None, None) => Value::void(),
        }
    }

    /// Memory of the thread for a parameter with an address that the function takes.
    fn parameter_in_memory(
        &mut self,
        word: &str,
        of: Qualified,
        value: Expr,
        range: &Range<usize>,
    ) -> Option<Binding> {
        let at = self.unnamed(word, &of, range)?;
        self.write(&Place::Memory(at.clone(), of.clone()), value);
        Some(Binding::Memory(at, of))
    }

    /// Binds a parameter for one call.
    pub(super) fn argument_of(
        &mut self,
        param: &super::ast::TypeName,
        instance: &Instance,
        arg: &Tree,
        body: &[Stmt],
    ) -> Option<Binding> {
        if let Base::Refer(reference) = &param.specifiers.base {
            return self.reference_given(reference, arg);
        }
        if let Base::Class(range) = &param.specifiers.base
            && is_pipeline_class(self.str(range).split('<').next().unwrap_or_default().trim())
            && param.declarator.reference
        {
            return self.pipeline_given(self.str(range), arg);
        }
        if param.is_function_pointer() && !self.is_closure(arg) {
            self.refuse_function_pointer(&arg.range);
            return None;
        }
        if self.is_closure(arg) {
            return self.closure_of(arg).map(Binding::Closure);
        }
        if let Some(group) = self.group_of(arg) {
            return Some(Binding::Group(group));
        }
        let of = match param.is_generic() {
            true => self.generic_parameter(param, arg)?,
            false => self.in_instance(instance, |l| l.parameter(param, true))?,
        };
        // A reference to a constant, or to a temporary value, takes any value.
        let takes_values = of.constant || param.declarator.temporary;
        let by_reference =
            param.declarator.reference && (!takes_values || self.names_place(arg, &of));
        if matches!(of.ty, Type::Struct(_)) && !by_reference {
            let word = self.str(&param.declarator.name);
            let at = self.unnamed(if word.is_empty() { "()" } else { word }, &of, &arg.range)?;
            self.construct(&at, &of, &[arg], &arg.range);
            return Some(Binding::Memory(at, of));
        }
        if by_reference {
            let place = self.place(arg)?;
            return self.reference_to(place, of, &arg.range);
        }
        let word = self.str(&param.declarator.name);
        let value = self.scalar(arg);
        let expr = self.assignable(&value, &of.ty, &arg.range);
        if self.addressed.contains(word) {
            return self.parameter_in_memory(word, of, expr, &arg.range);
        }
        let fixed = matches!(expr, Expr::Const(_) | Expr::Address(_));
        if fixed && !changes(body, word, &|range| self.str(range)) {
            return Some(Binding::Constant(Value::new(expr, of.ty)));
        }
        let reg = self.hidden_register(word, &of.ty);
        self.push(Op::Assign {
            dst: reg,
            value: expr,
        });
        Some(Binding::Register(Variable {
            reg,
            of,
            known: None,
        }))
    }
}

impl Lowering<'_, '_> {
    /// The type of a parameter `auto v` for an argument.
    fn generic_parameter(&mut self, param: &TypeName, arg: &Tree) -> Option<Qualified> {
        let of = match self.type_of_place(arg) {
            Some(of) => of,
            None => self.unevaluated(arg).ty.into(),
        };
        let ty = match of.ty.clone() {
            Type::Array(element, _) if !param.declarator.reference => Type::Pointer(element),
            ty => ty,
        };
        let constant =
            param.specifiers.of_base.constant || (param.declarator.reference && of.constant);
        Some(Qualified {
            constant,
            ..ty.into()
        })
    }

    /// Whether an expression names a place of a type, so that a reference refers to it.
    fn names_place(&self, tree: &Tree, of: &Qualified) -> bool {
        let is_place = match &tree.kind {
            ExprKind::Name => match self.binding(tree) {
                Some(Binding::Register(variable)) => variable.known.is_none(),
                Some(Binding::Memory(..)) => true,
                Some(_) => false,
                None => self.location(self.str(&tree.range)).is_some(),
            },
            ExprKind::Field(..) if self.is_special(tree) => false,
            ExprKind::Deref(_) | ExprKind::Index(..) | ExprKind::Field(..) => true,
            _ => false,
        };
        is_place
            && self
                .type_of_place(tree)
                .is_none_or(|there| there.ty == of.ty)
    }
}

/// A function of the code for a call.
pub(super) struct Callee {
    pub(super) function: Rc<Function>,
    /// The names that it sees: the parameters of its template, the captures of a lambda.
    pub(super) instance: Instance,
    /// The object that a member function is called for.
    pub(super) receiver: Option<(Expr, Qualified)>,
    /// The class of a member function.
    pub(super) class: Option<String>,
}

/// The value of a register after code of assignments and branches; `None`: the code does more, or
/// takes too many steps. The code begins at index `start`.
fn computed(code: &[Instr], start: usize, result: RegId) -> Option<i64> {
    let mut values: HashMap<RegId, i64> = HashMap::new();
    let mut at = 0;
    for _ in 0..LONGEST {
        let Some(instr) = code.get(at) else {
            return values.get(&result).copied();
        };
        let known = |expr: &Expr| {
            expr.value(&|leaf| match leaf {
                Expr::Reg(reg) => values.get(reg).copied(),
                _ => None,
            })
        };
        match &instr.op {
            Op::Assign { dst, value } => {
                let value = known(value)?;
                values.insert(*dst, value);
                at += 1;
            }
            Op::Branch { cond, target } => {
                at = match known(cond)? {
                    0 => at + 1,
                    _ => target.checked_sub(start)?,
                };
            }
            _ => return None,
        }
    }
    None
}

/// The default arguments for the parameters behind the ones that a call gives.
fn defaults(function: &Function, given: usize) -> impl Iterator<Item = &Tree> {
    function.defaults.iter().skip(given).flatten()
}

/// Whether statements may change a variable, or refer to it.
fn changes<'a>(body: &'a [Stmt], word: &str, text: &dyn Fn(&Range<usize>) -> &'a str) -> bool {
    fn within<'a>(tree: &Tree, word: &str, text: &dyn Fn(&Range<usize>) -> &'a str) -> bool {
        let named = |tree: &Tree| matches!(tree.kind, ExprKind::Name) && text(&tree.range) == word;
        let here = match &tree.kind {
            ExprKind::Assign(_, target, _) | ExprKind::Step { target, .. } => named(target),
            ExprKind::AddressOf(target) => named(target),
            // The callee may take it by reference.
            ExprKind::Call(_, args) | ExprKind::Method(_, _, args) => args.iter().any(named),
            _ => false,
        };
        here || tree
            .parts()
            .into_iter()
            .any(|part| within(part, word, text))
    }
    let mut changed = false;
    for stmt in body {
        stmt.each_expr(&mut |tree| changed |= within(tree, word, text));
        declared(stmt, &mut |d| changed |= d.reference);
        changed |= has_assembly(stmt);
    }
    changed
}

fn has_assembly(stmt: &Stmt) -> bool {
    let mut found = matches!(stmt.kind, StmtKind::Assembly(_));
    parts(stmt, &mut |part| found |= has_assembly(part));
    found
}

/// Calls `f` with the direct substatements.
fn parts<'a>(stmt: &'a Stmt, f: &mut dyn FnMut(&'a Stmt)) {
    match &stmt.kind {
        StmtKind::If { then, other, .. } => {
            f(then);
            other.iter().for_each(|s| f(s));
        }
        StmtKind::Loop {
            init, step, body, ..
        } => {
            init.iter().chain(step).for_each(|s| f(s));
            f(body);
        }
        StmtKind::Switch { body, .. } | StmtKind::Elements { body, .. } => f(body),
        StmtKind::Block(all) => all.iter().for_each(f),
        StmtKind::Instance { barrier: stmt, .. } | StmtKind::Labelled(_, stmt) => f(stmt),
        _ => {}
    }
}

/// Calls `f` with each declarator of a statement.
fn declared<'a>(stmt: &'a Stmt, f: &mut dyn FnMut(&'a Declarator)) {
    if let StmtKind::Declare(declaration) = &stmt.kind {
        declaration.all.iter().for_each(|d| f(&d.declarator));
    }
    if let StmtKind::Elements { element, .. } = &stmt.kind {
        f(&element.declarator);
    }
    parts(stmt, &mut |part| declared(part, f));
}

/// Whether a type leads to plain memory only, as far as its words show.
fn is_plain(name: &TypeName) -> bool {
    let of = &name.specifiers;
    let pointers = name
        .declarator
        .pointers
        .iter()
        .all(|p| !p.volatile && !p.atomic);
    matches!(
        of.base,
        Base::Void | Base::Bool | Base::Int(_) | Base::Float(_)
    ) && !of.of_base.volatile
        && !of.of_base.atomic
        && pointers
}

/// Clears `plain` if a declaration leads to memory that may not be plain.
fn points_plainly(stmt: &Stmt, plain: &mut bool) {
    if let StmtKind::Declare(declaration) = &stmt.kind {
        let of = &declaration.specifiers;
        *plain &= matches!(
            of.base,
            Base::Bool | Base::Int(_) | Base::Float(_) | Base::Auto
        ) && !of.of_base.volatile
            && !of.of_base.atomic;
        *plain &= declaration.all.iter().all(|d| {
            d.declarator
                .pointers
                .iter()
                .all(|p| !p.volatile && !p.atomic)
        });
    }
    parts(stmt, &mut |part| points_plainly(part, plain));
}

/// Clears `pure` if a statement does more than its expressions, or declares more than registers.
fn acts(stmt: &Stmt, text: &str, pure: &mut bool) {
    match &stmt.kind {
        StmtKind::Assembly(assembly) => *pure &= assembly.computes(text),
        StmtKind::Host(_)
        | StmtKind::Instance { .. }
        | StmtKind::Labelled(..)
        | StmtKind::Goto(_)
        | StmtKind::Elements { .. } => *pure = false,
        StmtKind::Declare(declaration) => {
            let of = &declaration.specifiers;
            *pure &= declaration
                .all
                .iter()
                .all(|d| d.declarator.arrays.is_empty())
                && [Storage::Shared, Storage::Static]
                    .iter()
                    .all(|s| of.has(*s).is_none())
                && of.of_base.space.is_none();
        }
        _ => {}
    }
    parts(stmt, &mut |part| acts(part, text, pure));
}
