//! Lowers declarations: decides which variables become registers, and binds names to everything
//! else that code can declare.
//!
//! # Invariants
//! - A variable of a thread is a register. A condition sees the first variable of a name under that
//!   name. Variables of the same name and type in sibling blocks share the register.
//! - A variable that hides another one is invisible to conditions. If sibling blocks declare one
//!   name with two types, a condition cannot name either.
//! - A variable without an initialiser becomes 0 each time control reaches its declaration.
//!
//! # Sources
//! - C11, 6.7; ISO C++, dcl.
//! - CUDA C++ Programming Guide, *Variable Memory Space Specifiers*; OpenCL C, *Address Space
//!   Qualifiers*: the variables that a block may declare. Variables shared by a group have no
//!   initialiser.

use std::ops::Range;

use super::ast::{
    Base, Declaration, Declared, Expr as Tree, ExprKind, Initial, Specifiers, Storage, TypeName,
};
use super::lower::Lowering;
use super::place::{Place, shifted};
use super::ptx_forms::plain;
use super::scope::{Binding, Variable};
use super::types::{Qualified, Type, Value};
use program::{BinOp, Expr, Space, Ty};

impl<'a> Lowering<'a, '_> {
    /// Binds a name in the innermost block.
    pub(super) fn bind(&mut self, name: &Range<usize>, binding: Binding) {
        let word = self.str(name);
        self.may_declare(name);
        self.scopes.bind(word, binding);
    }

    /// Whether the code may declare a name here. Reports an error if not.
    pub(super) fn may_declare(&mut self, name: &Range<usize>) -> bool {
        let word = self.str(name);
        if self.location(word).is_some() {
            self.error(
                "duplicate-name",
                name,
                format!("`{word}` is the name of a location"),
                |d| d.label("expected another name"),
            );
            return false;
        }
        if self.scopes.declares(word) {
            self.error(
                "duplicate-name",
                name,
                format!("`{word}` is declared twice in this block"),
                |d| d.label("expected another name, or an assignment"),
            );
            return false;
        }
        true
    }

    /// Lowers a declaration.
    pub(super) fn declaration(&mut self, declaration: &Declaration) {
        let specifiers = &declaration.specifiers;
        if self.declares_pipeline(declaration) || self.declares_functions(declaration) {
            return;
        }
        let Some(mut base) = self.base(specifiers) else {
            return;
        };
        if !self.may_be_stored(specifiers) {
            return;
        }
        // `typedef struct { … } S;` names the structure, too (ISO C++, dcl.typedef).
        if let (Base::Struct(syntax), Type::Struct(of), Some(first)) =
            (&specifiers.base, &base.ty, declaration.all.first())
            && syntax.name.is_none()
            && specifiers.has(Storage::Typedef).is_some()
        {
            base.ty = Type::Struct(of.renamed(self.str(&first.declarator.name)).into());
        }
        for declared in &declaration.all {
            let name = &declared.declarator.name;
            if specifiers.has(Storage::Typedef).is_some() {
                if let Some(of) = self.declared_type(base.clone(), &declared.declarator, None) {
                    // The same name for the same type may come again (C11, 6.7; ISO C++,
                    // dcl.typedef).
                    let there = self.scopes.find(self.str(name));
                    if matches!(there, Some(Binding::Type(there)) if *there == of) {
                        continue;
                    }
                    self.bind(name, Binding::Type(of));
                }
            } else if matches!(specifiers.base, Base::Auto) {
                self.deduced(specifiers, declared);
            } else {
                // If the braces around inner elements are missing, the number of values is not the
                // array size.
                let flat =
                    declared.declarator.arrays.len() > 1 || matches!(base.ty, Type::Struct(_));
                let elements = match &declared.value {
                    Some(Initial::List(all, _))
                        if !flat || all.iter().all(|v| matches!(v, Initial::List(..))) =>
                    {
                        Some(all.len())
                    }
                    // `extern int s[];`: the size comes from elsewhere.
                    None => specifiers.has(Storage::Extern).map(|_| 1),
                    _ => None,
                };
                if let Some(of) = self.declared_type(base.clone(), &declared.declarator, elements)
                    && self.may_begin(declared, &of)
                {
                    self.variable(specifiers, declared, of);
                }
            }
        }
    }

    /// Reports a list of values for a union. Only its first member would get a value.
    fn may_begin(&mut self, declared: &Declared, of: &Qualified) -> bool {
        let Some(Initial::List(_, range) | Initial::Call(_, range)) = &declared.value else {
            return true;
        };
        if !matches!(&of.ty, Type::Struct(structure) if structure.has_union()) {
            return true;
        }
        self.error("unsupported", range, "a list of values for a union", |d| {
            d.label("expected none")
                .help("declare the variable, then write its member")
        });
        false
    }

    /// Reports storage classes that a variable cannot have here.
    fn may_be_stored(&mut self, specifiers: &Specifiers) -> bool {
        let constant = specifiers.of_base.constant || specifiers.has(Storage::Constexpr).is_some();
        let auto = matches!(specifiers.base, Base::Auto);
        for (storage, range) in &specifiers.storage {
            let word = self.str(range);
            let (message, help) = match storage {
                // `static` changes nothing for an object of a block and for a constant (CUDA C++
                // Programming Guide, Static Variables within Function).
                Storage::Static
                    if specifiers.has(Storage::Shared).is_some() || (constant && !auto) =>
                {
                    continue;
                }
                Storage::Typedef
                | Storage::Constexpr
                | Storage::Register
                | Storage::Shared
                | Storage::Aligned => {
                    continue;
                }
                Storage::Static | Storage::Constant | Storage::Device if self.outside => continue,
                // The device has one such object, as if the declaration were outside the kernel
                // (CUDA C++ Programming Guide, the same; OpenCL C, Storage-Class Specifiers).
                Storage::Static if self.kernel.is_some() && !auto => continue,
                // The launch sets its size; in a test, the test does.
                Storage::Extern if specifiers.has(Storage::Shared).is_some() => continue,
                Storage::Static => (
                    format!("`{word}` variables are not supported here"),
                    "the language has them, one object for all threads: declare it in \
                    `[memory]`, or use the kernel form",
                ),
                Storage::Extern => (
                    format!("`{word}` declarations are not supported"),
                    "declare the memory in `[memory]`, with its size",
                ),
                Storage::Constant | Storage::Device => (
                    format!("a `{word}` variable in a function"),
                    "the language has them outside of functions only: declare it in `[memory]`",
                ),
                Storage::ReadOnly | Storage::WriteOnly | Storage::ReadWrite | Storage::Pipe => (
                    format!("`{word}` is said of a variable"),
                    "it is said of images and pipes that a kernel takes",
                ),
                Storage::Inline | Storage::OfPack | Storage::Kernel => (
                    format!("`{word}` is said of a variable"),
                    "it is said of functions only",
                ),
            };
            self.error("unsupported", range, message, |d| {
                d.label("expected another declaration").help(help)
            });
            return false;
        }
        true
    }

    /// `auto r = value`
    fn deduced(&mut self, specifiers: &Specifiers, declared: &Declared) {
        let name = &declared.declarator.name;
        let value = match &declared.value {
            Some(Initial::Value(value)) => value,
            Some(Initial::List(all, _)) if let [Initial::Value(value)] = all.as_slice() => value,
            _ => {
                self.error("wrong-operand", name, "this value decides no type", |d| {
                    d.label("expected one value")
                });
                return;
            }
        };
        if self.another_name(declared, value) {
            return;
        }
        let constant = specifiers.of_base.constant || specifiers.has(Storage::Constexpr).is_some();
        let reference = declared.declarator.reference;
        if !reference
            && matches!(declared.value, Some(Initial::Value(_)))
            && let Some(of) = self.type_of_place(value)
            && matches!(of.ty, Type::Struct(_))
        {
            let own = Qualified {
                constant,
                ..of.ty.into()
            };
            self.memory(declared, own, Space::Local, Vec::new());
        } else if reference {
            let Some(place) = self.place(value) else {
                return;
            };
            let base = Qualified {
                constant: constant || place.of().constant,
                ..place.of().clone()
            };
            self.refer_to(name, place, base, &value.range);
        } else if self.env.language.cpp {
            self.deduced_value(specifiers, declared, value, constant);
        } else {
            self.error(
                "unsupported",
                &specifiers.range,
                "`auto` does not name a type in C",
                |d| d.label("expected the type"),
            );
        }
    }

    /// Binds the name of an `auto` declaration to a group, a closure, a pipeline, or an atomic
    /// object, if its value is one. `true`: the declaration is dealt with.
    fn another_name(&mut self, declared: &Declared, value: &Tree) -> bool {
        let name = &declared.declarator.name;
        if let Some(group) = self.group_of(value) {
            self.bind(name, Binding::Group(group));
            return true;
        }
        if self.is_closure(value) {
            if let Some(closure) = self.closure_of(value) {
                self.bind(name, Binding::Closure(closure));
            }
            return true;
        }
        if !declared.declarator.parts.is_empty() {
            self.structured(declared, value);
            return true;
        }
        // The library does not copy pipelines.
        let makes = matches!(
            &value.kind,
            ExprKind::Call(name, _) if plain(self.str(name)) == "make_pipeline"
        );
        if makes || declared.declarator.reference && self.is_pipeline(value) {
            if let Some(pipe) = self.pipeline_of(value) {
                self.bind(name, Binding::Pipeline(pipe));
            }
            return true;
        }
        if let ExprKind::Refer(reference) = &value.kind {
            self.refer(name, reference);
            return true;
        }
        // `auto again = f;` copies an atomic reference; objects cannot be copied.
        if let Some(Binding::Atomic(atomic)) = self.binding(value).cloned() {
            self.bind(name, Binding::Atomic(atomic));
            return true;
        }
        let copies_object = self.is_object(value) && !declared.declarator.reference;
        if copies_object {
            let word = self.str(&value.range);
            let message = format!("`{word}` is an object, which has no copies");
            self.error("wrong-operand", &value.range, message, |d| {
                d.label("expected a value").help(format!(
                    "write `{word}.load()`, or `auto &` for a reference to it"
                ))
            });
        }
        copies_object
    }

    /// Declares a variable with the type of a value.
    fn deduced_value(
        &mut self,
        specifiers: &Specifiers,
        declared: &Declared,
        value: &Tree,
        constant: bool,
    ) {
        let name = &declared.declarator.name;
        let value_of = self.eval(value);
        // The result of a template is a structure only after the call.
        if let Type::Struct(_) = &value_of.ty {
            let of = Qualified {
                constant,
                ..value_of.ty.clone().into()
            };
            if let Some(at) = self.variable_with_address(name, &of) {
                let own = Qualified::from(of.ty);
                self.copy_members(at, own.clone(), value_of.expr, own, &value.range);
            }
            return;
        }
        let value = match value_of.ty {
            Type::Void => self.scalar(value),
            _ => value_of,
        };
        let pointers = declared.declarator.pointers.len();
        if pointers > 0 && value.target().is_none() {
            self.error("wrong-operand", name, "this is not a pointer", |d| {
                d.label("expected `auto` without `*`")
            });
            return;
        }
        let of = Qualified {
            constant,
            ..value.ty.clone().into()
        };
        if self.in_memory(specifiers, self.str(name)) {
            if let Some(at) = self.variable_with_address(name, &of) {
                self.write(&Place::Memory(at, of), value.expr);
            }
            return;
        }
        self.register(name, of, Some(value));
    }

    /// `auto [x, y] = p;`: names for the members of a copy; `auto &[x, y]`: of the object itself.
    fn structured(&mut self, declared: &Declared, value: &Tree) {
        let names = &declared.declarator.parts;
        let Some((from, there)) = self.memory_place(value) else {
            return;
        };
        let from = self.stable(from);
        let range = &declared.declarator.name;
        let (at, of) = match declared.declarator.reference {
            true => (from, there),
            false => {
                let own = Qualified::from(there.ty.clone());
                let Some(at) = self.unnamed("[]", &own, range) else {
                    return;
                };
                self.copy_members(at.clone(), own.clone(), from, there, range);
                (at, own)
            }
        };
        let parts = of.parts();
        if parts.len() != names.len() {
            let message = format!("a `{}` has {} parts", of.ty.name(), parts.len());
            self.error("wrong-operand", range, message, |d| {
                d.label("expected as many names")
            });
            return;
        }
        for (name, (offset, part)) in names.iter().zip(parts) {
            self.bind(name, Binding::Memory(shifted(&at, offset), part));
        }
    }

    /// Declares the variable of a loop over the elements of an array.
    pub(super) fn element(&mut self, element: &TypeName, place: Place, range: &Range<usize>) {
        let name = &element.declarator.name;
        let auto = matches!(element.specifiers.base, Base::Auto);
        let constant = element.specifiers.of_base.constant;
        let of = match auto {
            true => Some(Qualified {
                constant: constant || (element.declarator.reference && place.of().constant),
                ..place.of().clone()
            }),
            false => self.named_type(element),
        };
        let Some(of) = of else { return };
        if element.declarator.reference {
            self.refer_to(name, place, of, range);
            return;
        }
        let value = self.read(place);
        if matches!(value.ty, Type::Void) {
            self.error(
                "unsupported",
                name,
                "a copy of an element other than a number",
                |d| d.label("expected a reference: `auto &v`"),
            );
            return;
        }
        let expr = self.assignable(&value, &of.ty, name);
        let value = Value::new(expr, of.ty.clone());
        if self.addressed.contains(self.str(name)) {
            if let Some(at) = self.variable_with_address(name, &of) {
                self.write(&Place::Memory(at, of), value.expr);
            }
            return;
        }
        self.register(name, of, Some(value));
    }

    /// Declares a variable of a known type.
    fn variable(&mut self, specifiers: &Specifiers, declared: &Declared, of: Qualified) {
        let name = &declared.declarator.name;
        if of.ty == Type::Void {
            let message = format!("`{}` would be a `void`", self.str(name));
            self.error("wrong-operand", name, message, |d| {
                d.label("expected a type that has values")
            });
            return;
        }
        if declared.declarator.reference {
            self.typed_reference(declared, of);
            return;
        }
        let shared = specifiers.has(Storage::Shared).is_some() || of.space == Some(Space::Shared);
        let region = of.space;
        if let Some(range) = specifiers.has(Storage::Extern) {
            self.declared_by_test(declared, &of, range);
            return;
        }
        if !self.may_have_region(specifiers, name, region) {
            return;
        }
        // A constant is the same for all threads.
        let constant = of.constant && region.is_none() && of.word().is_some();
        let of_device = [Storage::Device, Storage::Constant]
            .iter()
            .any(|s| specifiers.has(*s).is_some());
        let own = shared && self.env.language.cpp;
        let lasts = specifiers.has(Storage::Static).is_some() && self.kernel.is_some();
        if lasts && !self.outside && !shared && !constant {
            self.of_function(specifiers, declared, of);
            return;
        }
        if self.outside && !own && (!constant || of_device) {
            self.of_program(specifiers, declared, of);
            return;
        }
        match region {
            _ if shared => self.memory(declared, of, Space::Shared, Vec::new()),
            Some(Space::Constant) if self.kernel.is_some() => {
                self.of_function(specifiers, declared, of);
            }
            Some(Space::Global | Space::Constant) => self.refuse_region(specifiers),
            _ if of.ty.is_aggregate() => self.memory(declared, of, Space::Local, Vec::new()),
            _ if matches!(of.ty, Type::Object(..)) => self.refuse_object(name, &of),
            _ => self.scalar_variable(specifiers, declared, of),
        }
    }

    /// Declares a reference of a known type.
    fn typed_reference(&mut self, declared: &Declared, of: Qualified) {
        let name = &declared.declarator.name;
        let Some(Initial::Value(value)) = &declared.value else {
            let message = "a reference refers to something";
            self.error("wrong-operand", name, message, |d| {
                d.label("expected `= x` behind it")
            });
            return;
        };
        if let Some(place) = self.place(value) {
            self.refer_to(name, place, of, &value.range);
        }
    }

    /// Whether a variable may be declared here in its address space. Reports an error if not.
    fn may_have_region(
        &mut self,
        specifiers: &Specifiers,
        name: &Range<usize>,
        region: Option<Space>,
    ) -> bool {
        let nested = !self.frames.is_empty() || self.scopes.depth() != self.outermost;
        let lasting = specifiers.has(Storage::Static).is_some();
        if !nested || !self.env.language.row().regions || self.outside || lasting {
            return true;
        }
        let word = match region {
            Some(Space::Shared) => "local",
            Some(Space::Constant) => "constant",
            _ => return true,
        };
        let message = format!("a `{word}` variable inside of a block or a function");
        self.error("wrong-space", name, message, |d| {
            d.label("expected it among the outermost declarations of the kernel")
                .note(format!(
                    "`{word}` variables are declared at kernel function scope (OpenCL C, {word} \
                    Address Space)"
                ))
                .help(format!(
                    "declare it there, and give functions a pointer: `{word} int *p`"
                ))
        });
        false
    }

    fn refuse_region(&mut self, specifiers: &Specifiers) {
        let word = self.str(&specifiers.range);
        let message = format!("a `{word}` variable in a kernel");
        self.error("unsupported", &specifiers.range, message, |d| {
            d.label("expected a private or a local variable").help(
                "declare it in `[memory]`; the language has global variables outside of kernels \
                only",
            )
        });
    }

    fn refuse_object(&mut self, name: &Range<usize>, of: &Qualified) {
        let (word, class) = (self.str(name), of.ty.name());
        let message = format!("`{word}` is a `{class}` of one thread");
        self.error("unsupported", name, message, |d| {
            d.label("expected an object that threads share")
                .help(format!(
                    "declare it in `[memory]`, as in `{word} = {{ type = \"{class}\" }}`, \
                    `__shared__` in the kernel, or `__device__` before it"
                ))
        });
    }

    fn scalar_variable(&mut self, specifiers: &Specifiers, declared: &Declared, of: Qualified) {
        let name = &declared.declarator.name;
        let one = match &declared.value {
            Some(Initial::List(all, range)) => match all.as_slice() {
                [Initial::Value(value)] => Some(value),
                // `int r = {};`
                [] => None,
                _ => {
                    self.error("wrong-operand", range, "more than one value", |d| {
                        d.label("expected one")
                    });
                    return;
                }
            },
            Some(Initial::Value(value)) => Some(value),
            Some(Initial::Call(..) | Initial::Member(..)) | None => None,
        };
        if let Some(tree) = one
            && self.mentions(tree, self.str(name))
        {
            let word = self.str(name);
            self.error(
                "undefined-value",
                &tree.range,
                format!("`{word}` in its own initialiser"),
                |d| {
                    d.label("it has no value yet")
                        .help("a name is known behind its declarator, whatever it hides")
                },
            );
        }
        let value = one.map(|tree| {
            let value = self.scalar(tree);
            let expr = self.assignable(&value, &of.ty, &tree.range);
            Value {
                expr,
                ty: of.ty.clone(),
                fixed: value.fixed,
            }
        });
        if self.in_memory(specifiers, self.str(name)) {
            if let Some(at) = self.variable_with_address(name, &of) {
                let value = value.map_or(Expr::Const(0), |value| value.expr);
                self.write(&Place::Memory(at, of), value);
            }
            return;
        }
        let fixed = value.as_ref().is_some_and(|v| v.fixed);
        if let (Some(range), false) = (specifiers.has(Storage::Static), fixed && of.constant) {
            self.error(
                "unsupported",
                range,
                "the value of a `static` variable is not a constant",
                |d| {
                    d.label("expected a constant of the text")
                        .help("declare it in `[memory]`")
                },
            );
        }
        if let (Some(range), false) = (specifiers.has(Storage::Constexpr), fixed) {
            self.error(
                "wrong-operand",
                range,
                "the value of a `constexpr` variable is not a constant",
                |d| d.label("expected a constant of the text"),
            );
        }
        self.register(name, of, value);
    }

    /// Whether a variable of the thread needs an address, and so is memory of the thread.
    fn in_memory(&self, specifiers: &Specifiers, word: &str) -> bool {
        let constant = specifiers.has(Storage::Constexpr).is_some()
            || specifiers.has(Storage::Static).is_some();
        !constant && !self.outside && self.addressed.contains(word)
    }

    /// Declares memory of the thread for a variable with an address.
    fn variable_with_address(&mut self, name: &Range<usize>, of: &Qualified) -> Option<Expr> {
        if !self.may_declare(name) {
            return None;
        }
        let word = self.str(name);
        let at = self.unnamed(word, of, name)?;
        self.scopes
            .bind(word, Binding::Memory(at.clone(), of.clone()));
        Some(at)
    }

    /// Declares a register.
    fn register(&mut self, name: &Range<usize>, of: Qualified, value: Option<Value>) {
        // Bind the name even after an error, so that its uses cause no further messages.
        self.may_declare(name);
        let word = self.str(name);
        let known = match &value {
            Some(value) if self.env.language.cpp && of.constant && value.fixed => value.constant(),
            _ => None,
        };
        let (reg, fresh) = self.variable_register(word, &of.ty);
        let variable = Variable { reg, of, known };
        self.scopes.bind(word, Binding::Register(variable.clone()));
        match value {
            Some(value) => self.write(&Place::Register(variable), value.expr),
            None if fresh => {}
            None => self.write(&Place::Register(variable), Expr::Const(0)),
        }
    }

    /// `int &r = x;`: another name for a place.
    pub(super) fn refer_to(
        &mut self,
        name: &Range<usize>,
        place: Place,
        of: Qualified,
        range: &Range<usize>,
    ) {
        if let Some(binding) = self.reference_to(place, of, range) {
            let word = self.str(name);
            if word != self.str(range) {
                self.may_declare(name);
            }
            self.scopes.bind(word, binding);
        }
    }

    /// The binding of a reference to a place.
    pub(super) fn reference_to(
        &mut self,
        place: Place,
        of: Qualified,
        range: &Range<usize>,
    ) -> Option<Binding> {
        let there = place.of();
        if let Some(lost) = there.lost(&of) {
            self.error(
                "wrong-operand",
                range,
                format!("the reference would lose `{lost}`"),
                |d| d.label(format!("expected a `{lost}` reference")),
            );
            return None;
        }
        if there.ty != of.ty {
            let (a, b) = (there.ty.name(), of.ty.name());
            self.error(
                "wrong-operand",
                range,
                format!("a `{a}` is not a `{b}`"),
                |d| {
                    d.label("expected something of the type of the reference")
                        .note("references to temporary values are not supported")
                },
            );
            return None;
        }
        Some(match place {
            Place::Register(variable) => Binding::Register(Variable { of, ..variable }),
            Place::Memory(addr, _) => Binding::Memory(self.stable(addr), of),
        })
    }

    /// An address that later changes of variables do not affect.
    pub(super) fn stable(&mut self, addr: Expr) -> Expr {
        match addr {
            Expr::Address(_) => addr,
            Expr::Bin(BinOp::Add, _, ref base, ref by)
                if matches!((&**base, &**by), (Expr::Address(_), Expr::Const(_))) =>
            {
                addr
            }
            addr => self.kept(Value::of(addr, Ty::WORD)).expr,
        }
    }
}
