//! Declarations: types, registers, memory that the code declares.
//!
//! # Invariants
//! - A variable of a thread is a register. The first one of a name is what a condition calls by that name, and so are later
//!   ones of the same type in blocks beside; one that hides another has no such name. If blocks beside each other declare
//!   one name with two types, a condition cannot name either.
//! - A variable without an initialiser is 0 each time its declaration is reached.
//!
//! # Sources
//! - C11, 6.7; ISO C++, dcl; CUDA C++ Programming Guide, *Variable Memory Space Specifiers*; OpenCL C, *Address Space
//!   Qualifiers*: which variables a block may declare, and that those shared by a group have no initialiser.

use std::ops::Range;
use std::rc::Rc;

use super::ast::{
    Base, Declaration, Declarator, Declared, EnumSyntax, Expr as Tree, ExprKind, Initial, Qualifiers, Specifiers,
    StmtKind, Storage, StructSyntax, TypeName,
};
use super::classes::{atomic_alias, class_named, initial, is_class_word};
use super::is_boolean;
use super::lower::Lowering;
use super::place::{Place, shifted};
use super::ptx_forms::plain;
use super::scope::{Binding, Variable};
use super::types::{Enumeration, Qualified, Record, Structure, Type, Value};
use super::words::{has_type, type_named};
use crate::isa::{Object, SymbolKind};
use program::{Class, Expr, Init, LocId, MemoryKind, OpenClMemory, Space, Ty};

/// At most so many elements of an array that code declares.
const MAX_ELEMENTS: u64 = 16_384;

impl<'a> Lowering<'a, '_> {
    /// The type that a cast names.
    pub(super) fn named_type(&mut self, name: &TypeName) -> Option<Qualified> {
        let base = self.base(&name.specifiers)?;
        self.declared_type(base, &name.declarator, None)
    }

    /// The type that a declaration begins with; of `auto`, `void`. An enumeration in it is defined.
    pub(super) fn base(&mut self, specifiers: &Specifiers) -> Option<Qualified> {
        let mut named = None;
        let ty = match &specifiers.base {
            Base::Void | Base::Auto => Type::Void,
            Base::Bool => Type::Bool,
            Base::Int(ty) => Type::Int(*ty),
            Base::Enum(syntax) => self.enumeration(syntax)?,
            Base::Struct(syntax) => self.structure(syntax)?,
            Base::Class(range) => self.class_type(range)?,
            Base::Refer(reference) => {
                self.error("wrong-operand", &reference.name, "an atomic reference is no object", |d| {
                    d.label("expected the type of what it refers to")
                        .help("declare one by `cuda::atomic_ref<int, cuda::thread_scope_device> r(x);`")
                });
                return None;
            }
            Base::Named(range) => match self.scopes.find(self.str(range)) {
                Some(Binding::Type(of)) => {
                    named = Some(of.clone());
                    of.ty.clone()
                }
                _ => {
                    let name = self.str(range);
                    let built_in =
                        type_named(name).filter(|of| has_type(name, self.env.language.dialect) && !of.1);
                    let of = self.vector(name).or(built_in.map(|(ty, _)| match is_boolean(name) {
                        true => Type::Bool,
                        false => Type::Int(ty),
                    }));
                    let Some(of) = of else {
                        self.error("unknown-type", range, format!("`{name}` is no type here"), |d| {
                            d.label("expected a type")
                        });
                        return None;
                    };
                    of
                }
            },
        };
        let Qualifiers { constant, volatile, atomic, space, .. } = specifiers.of_base;
        let constant = constant || specifiers.has(Storage::Constexpr).is_some();
        let of = Qualified { ty, constant, volatile, atomic, space };
        // What a `typedef` says besides the type.
        Some(match named {
            Some(named) => Qualified {
                constant: constant || named.constant,
                volatile: volatile || named.volatile,
                atomic: atomic || named.atomic,
                space: space.or(named.space),
                ..of
            },
            None => of,
        })
    }

    /// The type of a declared name; `elements`: of an array without a size, so many are initialised.
    pub(super) fn declared_type(
        &mut self,
        base: Qualified,
        declarator: &Declarator,
        elements: Option<usize>,
    ) -> Option<Qualified> {
        self.array_type(base, &declarator.pointers, &declarator.arrays, elements)
    }

    /// The type that pointers and dimensions make of another.
    pub(super) fn array_type(
        &mut self,
        base: Qualified,
        pointers: &[Qualifiers],
        arrays: &[(Option<Tree>, Range<usize>)],
        elements: Option<usize>,
    ) -> Option<Qualified> {
        let mut of = base;
        for pointer in pointers {
            let Qualifiers { constant, volatile, atomic, space, .. } = *pointer;
            of = Qualified { ty: of.pointer(), constant, volatile, atomic, space };
        }
        for (size, range) in arrays.iter().rev() {
            let n = match (size, elements) {
                (Some(size), _) => self.fixed(size, "the size of an array")?,
                (None, Some(n)) => n as i64,
                (None, None) => {
                    self.error("wrong-operand", range, "an array without a size", |d| d.label("expected a size"));
                    return None;
                }
            };
            if of.ty.size() == 0 {
                let name = of.ty.name();
                self.error("wrong-operand", range, format!("an array of `{name}`, which has no size"), |d| {
                    d.label("expected elements that have one")
                });
                return None;
            }
            if n < 1 || of.ty.cells().saturating_mul(n as u64) > MAX_ELEMENTS {
                let message = format!("an array has 1 to {MAX_ELEMENTS} elements, not {n}");
                self.error("bad-number", range, message, |d| d.label("expected another size"));
                return None;
            }
            let (constant, volatile, space) = (of.constant, of.volatile, of.space);
            of = Qualified { constant, volatile, space, ..Type::Array(of.into(), n as u32).into() };
        }
        Some(of)
    }

    /// The value of a constant expression.
    pub(super) fn fixed(&mut self, tree: &Tree, what: &str) -> Option<i64> {
        self.fixed_as(tree, what, |ty| ty.promoted().is_some())
    }

    /// The same, of a type that is asked for.
    pub(super) fn fixed_as(&mut self, tree: &Tree, what: &str, of: impl Fn(&Type) -> bool) -> Option<i64> {
        let value = self.scalar(tree);
        match value.constant().filter(|_| value.fixed && of(&value.ty)) {
            Some(n) => Some(n),
            None => {
                if !self.is_nothing(&value) {
                    self.error("wrong-operand", &tree.range, format!("{what} is no constant"), |d| {
                        d.label("expected a constant of the text").note(
                            "numbers, enumerators, and in C++ `const` and `constexpr` variables with such values",
                        )
                    });
                }
                None
            }
        }
    }

    /// A vector type of CUDA or of OpenCL C, by its name.
    pub(super) fn vector(&self, name: &str) -> Option<Type> {
        self.env.language.vector(name).map(|of| Type::Struct(of.into()))
    }

    /// The structure that is named, if the name is that of one.
    pub(super) fn known_structure(&self, name: &TypeName) -> Option<Type> {
        let alone = name.declarator.pointers.is_empty() && name.declarator.arrays.is_empty();
        let word = match &name.specifiers.base {
            Base::Named(range) => self.str(range).to_owned(),
            Base::Struct(syntax) => format!("struct {}", self.str(syntax.name.as_ref()?)),
            _ => return None,
        };
        let ty = match self.scopes.find(&word) {
            Some(Binding::Type(of)) => of.ty.clone(),
            _ => self.vector(&word)?,
        };
        (alone && !name.declarator.reference && matches!(ty, Type::Struct(_))).then_some(ty)
    }

    /// A class of the library.
    fn class_type(&mut self, range: &Range<usize>) -> Option<Type> {
        let words = self.str(range).split_whitespace().collect::<Vec<_>>().join(" ");
        let word = words.split('<').next()?.trim();
        let named = is_class_word(word) || (atomic_alias(word).is_some() && !word.contains("::"));
        let name = if named { format!("cuda::{words}") } else { words };
        let Some(named) = class_named(&name) else {
            self.error("unsupported", range, format!("a `{name}` is not supported here"), |d| {
                d.label("expected it in a declaration of its own, or as a reference that a function takes")
            });
            return None;
        };
        match named {
            Ok((ty, class)) => {
                let of = if is_boolean(&name) { Type::Bool } else { Type::Int(ty) };
                Some(Type::Object(class, of.into()))
            }
            Err(problem) => {
                self.error("unknown-type", range, format!("`{name}` is no type here"), |d| d.label(problem));
                None
            }
        }
    }

    /// Defines an enumeration, or finds one by its name.
    fn enumeration(&mut self, syntax: &Rc<EnumSyntax>) -> Option<Type> {
        let tag = |name: &str| format!("enum {name}");
        let Some(all) = &syntax.all else {
            let range = syntax.name.as_ref()?;
            let name = self.str(range);
            return match self.scopes.find(&tag(name)) {
                Some(Binding::Type(of)) => Some(of.ty.clone()),
                _ => {
                    self.error("unknown-type", range, format!("there is no enumeration `{name}` here"), |d| {
                        d.label("expected one that was defined before")
                    });
                    None
                }
            };
        };
        // The names of a scoped one are its own.
        if syntax.scoped {
            self.scopes.enter();
        }
        let values = self.enumerators(all);
        if syntax.scoped {
            self.scopes.leave();
        }
        let values = values?;
        let (least, most) = values.iter().fold((0, 0), |(a, b), v| (v.1.min(a), v.1.max(b)));
        // What the compilers take where the text says no type: the first of these that holds all values.
        let fits = |ty: &Ty| ty.wrap(least) == least && ty.wrap(most) == most;
        // The underlying type of a scoped one is `int` (ISO C++, dcl.enum).
        let underlying = syntax.underlying.or(syntax.scoped.then_some(Ty::S32));
        let ty = underlying.or([Ty::U32, Ty::S32, Ty::WORD].into_iter().find(fits))?;
        if underlying.is_some() && !fits(&ty) {
            let name = syntax.name.as_ref().unwrap_or(&all[0].0);
            self.error("wrong-operand", name, "an enumerator is no value of the underlying type", |d| {
                d.label("expected a larger type, or other values")
            });
        }
        let promoted = match (self.env.language.cpp, underlying) {
            // ISO C++, conv.prom: by its values, or by the type that it names.
            (true, None) => [Ty::S32, Ty::U32, Ty::WORD].into_iter().find(fits)?,
            _ if ty.bits < 32 => Ty::S32,
            _ => ty,
        };
        let name = syntax.name.as_ref().map_or("enum", |range| self.str(range));
        let scoped = syntax.scoped;
        let ty = Type::Enum(Rc::new(Enumeration { name: name.to_string(), ty, promoted, scoped }));
        if self.env.language.cpp {
            for (word, value) in values {
                let value = Value::literal(value, ty.clone());
                if !scoped {
                    self.scopes.bind(word, Binding::Constant(value.clone()));
                }
                if syntax.name.is_some() {
                    self.scopes.bind(&format!("{name}::{word}"), Binding::Constant(value));
                }
            }
        }
        if syntax.name.is_some() {
            self.scopes.bind(&tag(name), Binding::Type(ty.clone().into()));
            if self.env.language.cpp {
                self.scopes.bind(name, Binding::Type(ty.clone().into()));
            }
        }
        Some(ty)
    }

    /// The enumerators of a definition, with their values.
    fn enumerators(&mut self, all: &[(Range<usize>, Option<Tree>)]) -> Option<Vec<(&'a str, i64)>> {
        let mut values = Vec::new();
        let mut next = 0i64;
        for (name, value) in all {
            if let Some(value) = value {
                next = self.fixed(value, "the value of an enumerator")?;
            }
            // Within the definition, and in C also behind it, an enumerator is an `int` if it is one.
            let ty = if Ty::S32.wrap(next) == next { Ty::S32 } else { Ty::WORD };
            self.bind(name, Binding::Constant(Value::literal(next, Type::Int(ty))));
            values.push((self.str(name), next));
            next = next.wrapping_add(1);
        }
        Some(values)
    }

    /// Defines a structure, or finds one by its name; one that is only named may be pointed to.
    fn structure(&mut self, syntax: &Rc<StructSyntax>) -> Option<Type> {
        let word = syntax.name.as_ref().map_or("", |range| self.str(range));
        let tag = format!("struct {word}");
        let known = match self.scopes.find(&tag) {
            Some(Binding::Type(Qualified { ty: Type::Struct(of), .. })) => Some(of.clone()),
            _ => None,
        };
        let here = self.scopes.declares(&tag);
        let structure = match (known, &syntax.members) {
            (Some(of), None) => return Some(Type::Struct(of)),
            (Some(of), Some(_)) if here => of,
            _ => {
                let of = Rc::new(Structure::new(if word.is_empty() { "struct" } else { word }));
                if !word.is_empty() {
                    let binding = Binding::Type(Type::Struct(of.clone()).into());
                    self.scopes.bind(&tag, binding.clone());
                    if self.env.language.cpp {
                        self.scopes.bind(word, binding);
                    }
                }
                of
            }
        };
        let ty = Type::Struct(structure.clone());
        let Some(declarations) = &syntax.members else { return Some(ty) };
        if structure.is_complete() {
            self.error("duplicate-name", &syntax.range, format!("`{word}` is defined twice in this block"), |d| {
                d.label("expected another name")
            });
            return None;
        }
        let mut members: Vec<(String, Qualified)> = Vec::new();
        let mut cells = 0u64;
        for declaration in declarations {
            let base = self.base(&declaration.specifiers)?;
            for declared in &declaration.all {
                let name = &declared.declarator.name;
                let word = self.str(name);
                let of = self.declared_type(base.clone(), &declared.declarator, None)?;
                let problem = match () {
                    () if declared.declarator.reference => Some("a reference in a structure"),
                    () if of.ty.size() == 0 => Some("a member of a type that has no size here"),
                    () if members.iter().any(|m| m.0 == word) => Some("a second member of that name"),
                    () if of.space.is_some() => Some("a member in an address space of its own"),
                    () if matches!(of.ty, Type::Object(class, _) if !matches!(class, Class::Atomic(_))) => {
                        Some("a member of a class that is made with a count")
                    }
                    () => None,
                };
                if let Some(problem) = problem {
                    self.error("wrong-operand", name, problem, |d| d.label("expected another member"));
                    return None;
                }
                cells = cells.saturating_add(of.ty.cells());
                members.push((word.to_string(), of));
            }
        }
        if !(1..=MAX_ELEMENTS).contains(&cells) {
            let message = format!("a structure of 1 to {MAX_ELEMENTS} integers, not {cells}");
            self.error("bad-number", &syntax.range, message, |d| d.label("expected another one"));
            return None;
        }
        structure.define(members);
        Some(ty)
    }

    /// The structure of a name, as the declarations at the beginning of code define it.
    pub(super) fn defined_structure(&mut self, name: &str) -> Option<Record> {
        let only_types = |declaration: &Declaration| {
            declaration.all.is_empty()
                || [Storage::Typedef, Storage::Constexpr].iter().any(|s| declaration.specifiers.has(*s).is_some())
                || declaration.specifiers.of_base.constant
        };
        for stmt in &self.unit.stmts {
            match &stmt.kind {
                StmtKind::Declare(declaration) if only_types(declaration) => self.declaration(declaration),
                _ => {}
            }
        }
        let tag = format!("struct {name}");
        match self.scopes.find(name).or_else(|| self.scopes.find(&tag)) {
            None => self.vector(name).map(Record),
            Some(Binding::Type(of)) if matches!(&of.ty, Type::Struct(s) if s.is_complete()) => {
                Some(Record(of.ty.clone()))
            }
            _ => None,
        }
    }

    /// Gives a name to something in the innermost block.
    pub(super) fn bind(&mut self, name: &Range<usize>, binding: Binding) {
        let word = self.str(name);
        self.may_declare(name);
        self.scopes.bind(word, binding);
    }

    /// Whether a name may be declared here; if not, that is reported.
    fn may_declare(&mut self, name: &Range<usize>) -> bool {
        let word = self.str(name);
        if self.location(word).is_some() {
            self.error("duplicate-name", name, format!("`{word}` is the name of a location"), |d| {
                d.label("expected another name")
            });
            return false;
        }
        if self.scopes.declares(word) {
            self.error("duplicate-name", name, format!("`{word}` is declared twice in this block"), |d| {
                d.label("expected another name, or an assignment")
            });
            return false;
        }
        true
    }

    /// A declaration.
    pub(super) fn declaration(&mut self, declaration: &Declaration) {
        let specifiers = &declaration.specifiers;
        if self.declares_pipeline(declaration) {
            return;
        }
        let Some(mut base) = self.base(specifiers) else { return };
        if !self.may_be_stored(specifiers) {
            return;
        }
        // `typedef struct { … } S;`: the structure is called so, too (ISO C++, dcl.typedef).
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
                    self.bind(name, Binding::Type(of));
                }
            } else if matches!(specifiers.base, Base::Auto) {
                self.deduced(specifiers, declared);
            } else {
                // Where the values of one element are not in braces, counting them says nothing.
                let flat = declared.declarator.arrays.len() > 1 || matches!(base.ty, Type::Struct(_));
                let elements = match &declared.value {
                    Some(Initial::List(all, _)) if !flat || all.iter().all(|v| matches!(v, Initial::List(..))) => {
                        Some(all.len())
                    }
                    // `extern int s[];`: how many there are is said elsewhere.
                    None => specifiers.has(Storage::Extern).map(|_| 1),
                    _ => None,
                };
                if let Some(of) = self.declared_type(base.clone(), &declared.declarator, elements) {
                    self.variable(specifiers, declared, of);
                }
            }
        }
    }

    /// Reports storage classes that no variable of a block has, or none here.
    fn may_be_stored(&mut self, specifiers: &Specifiers) -> bool {
        let constant = specifiers.of_base.constant || specifiers.has(Storage::Constexpr).is_some();
        let auto = matches!(specifiers.base, Base::Auto);
        for (storage, range) in &specifiers.storage {
            let word = self.str(range);
            let (message, help) = match storage {
                // What a block has one object of, and what never changes, is the same with it (CUDA C++ Programming Guide,
                // Static Variables within Function).
                Storage::Static if specifiers.has(Storage::Shared).is_some() || (constant && !auto) => continue,
                Storage::Typedef | Storage::Constexpr | Storage::Register | Storage::Shared | Storage::Aligned => {
                    continue;
                }
                Storage::Static | Storage::Constant | Storage::Device if self.outside => continue,
                // One object of the device, as if it were declared beside the kernel (CUDA C++ Programming Guide, the same;
                // OpenCL C, Storage-Class Specifiers).
                Storage::Static if self.kernel.is_some() && !auto => continue,
                // Its size is said by the launch, and here by the test.
                Storage::Extern if specifiers.has(Storage::Shared).is_some() => continue,
                Storage::Static => (
                    format!("`{word}` variables are not supported here"),
                    "the language has them, one object for all threads: declare it in `[memory]`, or use the kernel form",
                ),
                Storage::Extern => (
                    format!("`{word}` declarations are not supported"),
                    "declare the memory in `[memory]`, with its size",
                ),
                Storage::Constant | Storage::Device => (
                    format!("a `{word}` variable in a function"),
                    "the language has them outside of functions only: declare it in `[memory]`",
                ),
                Storage::Inline | Storage::Kernel => {
                    (format!("`{word}` is said of a variable"), "it is said of functions only")
                }
            };
            self.error("unsupported", range, message, |d| d.label("expected another declaration").help(help));
            return false;
        }
        true
    }

    /// `auto r = value`
    fn deduced(&mut self, specifiers: &Specifiers, declared: &Declared) {
        let name = &declared.declarator.name;
        let value = match &declared.value {
            Some(Initial::Value(value)) => value,
            Some(Initial::List(all, _)) if matches!(all.as_slice(), [Initial::Value(_)]) => match &all[0] {
                Initial::Value(value) => value,
                Initial::List(..) | Initial::Member(..) => return,
            },
            _ => {
                self.error("wrong-operand", name, "this value decides no type", |d| d.label("expected one value"));
                return;
            }
        };
        if let Some(group) = self.group_of(value) {
            self.bind(name, Binding::Group(group));
            return;
        }
        // Pipelines are not copied.
        let makes = matches!(&value.kind, ExprKind::Call(name, _) if plain(self.str(name)) == "make_pipeline");
        if makes || declared.declarator.reference && self.is_pipeline(value) {
            if let Some(pipe) = self.pipeline_of(value) {
                self.bind(name, Binding::Pipeline(pipe));
            }
            return;
        }
        if let ExprKind::Refer(reference) = &value.kind {
            self.refer(name, reference);
            return;
        }
        // `auto again = f;` of an atomic reference is the same reference; objects cannot be copied.
        if let Some(Binding::Atomic(atomic)) = self.binding(value).cloned() {
            self.bind(name, Binding::Atomic(atomic));
            return;
        }
        if self.is_object(value) && !declared.declarator.reference {
            let word = self.str(&value.range);
            self.error(
                "wrong-operand",
                &value.range,
                format!("`{word}` is an object, which has no copies"),
                |d| {
                    d.label("expected a value")
                        .help(format!("write `{word}.load()`, or `auto &` for a reference to it"))
                },
            );
            return;
        }
        let constant = specifiers.of_base.constant || specifiers.has(Storage::Constexpr).is_some();
        if let (Some(Qualified { ty: ty @ Type::Struct(_), .. }), Some(Initial::Value(_)), false) =
            (self.type_of_place(value), &declared.value, declared.declarator.reference)
        {
            self.memory(declared, Qualified { constant, ..ty.into() }, Space::Local, Vec::new());
            return;
        }
        if declared.declarator.reference {
            let Some(place) = self.place(value) else { return };
            let base = Qualified { constant: constant || place.of().constant, ..place.of().clone() };
            self.refer_to(name, place, base, &value.range);
            return;
        }
        if !self.env.language.cpp {
            self.error("unsupported", &specifiers.range, "`auto` does not stand for a type in C", |d| {
                d.label("expected the type")
            });
            return;
        }
        let value = self.scalar(value);
        let pointers = declared.declarator.pointers.len();
        if pointers > 0 && value.target().is_none() {
            self.error("wrong-operand", name, "this is no pointer", |d| d.label("expected `auto` without `*`"));
            return;
        }
        let of = Qualified { constant, ..value.ty.clone().into() };
        self.register(name, of, Some(value));
    }

    /// A variable of a known type.
    fn variable(&mut self, specifiers: &Specifiers, declared: &Declared, of: Qualified) {
        let name = &declared.declarator.name;
        if of.ty == Type::Void {
            let word = self.str(name);
            self.error("wrong-operand", name, format!("`{word}` would be a `void`"), |d| {
                d.label("expected a type that has values")
            });
            return;
        }
        if declared.declarator.reference {
            let Some(Initial::Value(value)) = &declared.value else {
                self.error("wrong-operand", name, "a reference refers to something", |d| {
                    d.label("expected `= x` behind it")
                });
                return;
            };
            let Some(place) = self.place(value) else { return };
            self.refer_to(name, place, of, &value.range);
            return;
        }
        let shared = specifiers.has(Storage::Shared).is_some() || of.space == Some(Space::Shared);
        let region = of.space;
        if let Some(range) = specifiers.has(Storage::Extern) {
            self.declared_by_test(declared, &of, range);
            return;
        }
        let nested = !self.frames.is_empty() || self.scopes.depth() != self.outermost;
        let lasting = specifiers.has(Storage::Static).is_some();
        if let (true, Some(space @ (Space::Shared | Space::Constant)), true) =
            (self.env.language.row().regions && !self.outside && !lasting, region, nested)
        {
            let word = if space == Space::Shared { "local" } else { "constant" };
            self.error("wrong-space", name, format!("a `{word}` variable inside of a block or a function"), |d| {
                d.label("expected it among the outermost declarations of the kernel")
                    .note(format!(
                        "`{word}` variables are declared at kernel function scope (OpenCL C, {word} Address Space)"
                    ))
                    .help(format!("declare it there, and give functions a pointer: `{word} int *p`"))
            });
            return;
        }
        // A constant is the same for all threads.
        let constant = of.constant && region.is_none() && of.word().is_some();
        let of_device = [Storage::Device, Storage::Constant].iter().any(|s| specifiers.has(*s).is_some());
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
            Some(Space::Constant) if self.kernel.is_some() => self.of_function(specifiers, declared, of),
            Some(Space::Global | Space::Constant) => {
                let word = self.str(&specifiers.range);
                self.error("unsupported", &specifiers.range, format!("a `{word}` variable in a kernel"), |d| {
                    d.label("expected a private or a local variable").help(
                        "declare it in `[memory]`; the language has global variables outside of kernels only",
                    )
                });
            }
            _ if of.ty.is_aggregate() => self.memory(declared, of, Space::Local, Vec::new()),
            _ if matches!(of.ty, Type::Object(..)) => {
                let (word, class) = (self.str(name), of.ty.name());
                self.error("unsupported", name, format!("`{word}` is a `{class}` of one thread"), |d| {
                    d.label("expected an object that threads share").help(format!(
                        "declare it in `[memory]`, as in `{word} = {{ type = \"{class}\" }}`, `__shared__` in the kernel, or \
                         `__device__` before it"
                    ))
                });
            }
            _ => self.scalar_variable(specifiers, declared, of),
        }
    }

    fn scalar_variable(&mut self, specifiers: &Specifiers, declared: &Declared, of: Qualified) {
        let name = &declared.declarator.name;
        let one = match &declared.value {
            Some(Initial::List(all, range)) => match all.as_slice() {
                [Initial::Value(value)] => Some(value),
                // `int r = {};`
                [] => None,
                _ => {
                    self.error("wrong-operand", range, "more than one value", |d| d.label("expected one"));
                    return;
                }
            },
            Some(Initial::Value(value)) => Some(value),
            Some(Initial::Member(..)) | None => None,
        };
        if let Some(tree) = one
            && self.mentions(tree, self.str(name))
        {
            let word = self.str(name);
            self.error("undefined-value", &tree.range, format!("`{word}` in its own initialiser"), |d| {
                d.label("it has no value yet").help("a name is known behind its declarator, whatever it hides")
            });
        }
        let value = one.map(|tree| {
            let value = self.scalar(tree);
            let expr = self.assignable(&value, &of.ty, &tree.range);
            Value { expr, ty: of.ty.clone(), fixed: value.fixed }
        });
        let fixed = value.as_ref().is_some_and(|v| v.fixed);
        if let (Some(range), false) = (specifiers.has(Storage::Static), fixed && of.constant) {
            self.error("unsupported", range, "the value of a `static` variable is no constant", |d| {
                d.label("expected a constant of the text").help("declare it in `[memory]`")
            });
        }
        if let (Some(range), false) = (specifiers.has(Storage::Constexpr), fixed) {
            self.error("wrong-operand", range, "the value of a `constexpr` variable is no constant", |d| {
                d.label("expected a constant of the text")
            });
        }
        self.register(name, of, value);
    }

    /// Declares a register.
    fn register(&mut self, name: &Range<usize>, of: Qualified, value: Option<Value>) {
        // Whatever is done with a name that may not be declared is no further mistake.
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
    pub(super) fn refer_to(&mut self, name: &Range<usize>, place: Place, of: Qualified, range: &Range<usize>) {
        if let Some(binding) = self.reference_to(place, of, range) {
            let word = self.str(name);
            if word != self.str(range) {
                self.may_declare(name);
            }
            self.scopes.bind(word, binding);
        }
    }

    /// What a reference to a place is bound to.
    pub(super) fn reference_to(&mut self, place: Place, of: Qualified, range: &Range<usize>) -> Option<Binding> {
        let there = place.of();
        if let Some(lost) = there.lost(&of) {
            self.error("wrong-operand", range, format!("the reference would lose `{lost}`"), |d| {
                d.label(format!("expected a `{lost}` reference"))
            });
            return None;
        }
        if there.ty != of.ty {
            let (a, b) = (there.ty.name(), of.ty.name());
            self.error("wrong-operand", range, format!("a `{a}` is no `{b}`"), |d| {
                d.label("expected something of the type of the reference")
                    .note("references to temporary values are not supported")
            });
            return None;
        }
        Some(match place {
            Place::Register(variable) => Binding::Register(Variable { of, ..variable }),
            Place::Memory(addr, _) => Binding::Memory(self.stable(addr), of),
        })
    }

    /// An address that stays what it is, whatever happens to the variables in it.
    pub(super) fn stable(&mut self, addr: Expr) -> Expr {
        match addr {
            Expr::Address(_) => addr,
            addr => self.kept(Value::of(addr, Ty::WORD)).expr,
        }
    }

    /// `extern __shared__ int s[];`: memory of that name, whose size the test says.
    fn declared_by_test(&mut self, declared: &Declared, of: &Qualified, range: &Range<usize>) {
        let name = &declared.declarator.name;
        let word = self.str(name);
        let element = match &of.ty {
            Type::Array(element, _) => &element.ty,
            ty => ty,
        };
        let there = self.location(word).map(|loc| (self.of_location(loc), self.symbols.object(loc).1.space));
        let alike = there.as_ref().is_some_and(|(of, space)| of.ty == *element && *space == Space::Shared);
        if !alike {
            let message = match there {
                Some(_) => format!("`{word}` is other memory than this declaration says"),
                None => format!("the size of `{word}` is not in the code"),
            };
            let ty = element.name();
            self.error("unsupported", range, message, |d| {
                d.label("expected memory of that name and type in the test").help(format!(
                    "declare it in `[memory]`, with its size: `{word} = {{ size = 4, init = 0, type = \"{ty}\", space = \"shared\" }}`"
                ))
            });
        }
    }

    /// A variable outside of all functions: one object for all threads of the device.
    fn of_program(&mut self, specifiers: &Specifiers, declared: &Declared, of: Qualified) {
        let name = &declared.declarator.name;
        let region = of.space;
        let constant = specifiers.has(Storage::Constant).is_some() || region == Some(Space::Constant);
        let host = self.env.language.cpp && !constant && specifiers.has(Storage::Device).is_none();
        if host || matches!(region, Some(Space::Local | Space::Shared)) {
            let word = self.str(name);
            let message = format!("`{word}` is a variable {}", if host { "of the host" } else { "of no thread" });
            self.error("unsupported", name, message, |d| {
                d.label("expected a variable of the device").help(if host {
                    "write `__device__` before it"
                } else {
                    "declare it in the kernel"
                })
            });
            return;
        }
        if let Some(init) = self.first_values(declared, &of) {
            let space = if constant { Space::Constant } else { Space::Global };
            self.memory(declared, of, space, init);
        }
    }

    /// The constants that a variable begins with.
    fn first_values(&mut self, declared: &Declared, of: &Qualified) -> Option<Vec<Init>> {
        let name = &declared.declarator.name;
        if declared.value.is_none() && of.space == Some(Space::Constant) {
            let message = format!("`{}` is in constant memory, and has no value", self.str(name));
            self.error("wrong-operand", name, message, |d| {
                d.label("expected an initialiser").note("nothing can give it one later")
            });
            return None;
        }
        let mut init = Vec::new();
        match &declared.value {
            Some(Initial::List(all, _)) if of.ty.is_aggregate() => self.list_of_constants(of, all, &mut init),
            value => self.constants(of, &mut one(value.as_ref()), &mut init),
        }?;
        Some(init)
    }

    /// `static int n = 1;` in a function: one object for all threads of the device and all calls. No other function knows it, so
    /// it is called by the function's name, too.
    fn of_function(&mut self, specifiers: &Specifiers, declared: &Declared, of: Qualified) {
        let name = &declared.declarator.name;
        if !self.may_declare(name) {
            return;
        }
        let region = of.space;
        let sized = of.ty.size() > 0 && (of.ty.is_aggregate() || of.ty.stored().is_some());
        let elsewhere = matches!(region, Some(Space::Local | Space::Shared));
        if !sized || elsewhere {
            let range = specifiers.has(Storage::Static).unwrap_or(name);
            self.error("unsupported", range, "this is no variable that lasts", |d| {
                d.label("expected a variable of the device, of a type that has a size")
            });
            return;
        }
        let word = self.str(name);
        let loc = match self.lasting.get(&name.start) {
            Some(loc) => *loc,
            None => {
                let space = region.unwrap_or(Space::Global);
                let Some(init) = self.first_values(declared, &of) else { return };
                let function = self.frames.last().map_or(self.kernel.unwrap_or(""), |frame| &frame.name);
                let called = format!("{function}::{word}");
                let object = self.object_of_type(&of, space, init, name);
                let Some(loc) = self.object_of_code(&called, name, object) else { return };
                self.declared_memory.push(loc);
                self.lasting.insert(name.start, loc);
                loc
            }
        };
        self.scopes.bind(word, Binding::Memory(Expr::Address(loc), of));
    }

    /// Reports values that are left when all parts of an object have one.
    fn no_more(&mut self, of: &Qualified, left: Option<&Initial>) -> Option<()> {
        let Some(Initial::Value(Tree { range, .. }) | Initial::List(_, range) | Initial::Member(range, _)) = left
        else {
            return Some(());
        };
        let message = format!("more values than a `{}` has", of.ty.name());
        self.error("wrong-operand", range, message, |d| d.label("expected fewer"));
        None
    }

    /// The constants of a list in braces.
    fn list_of_constants(&mut self, of: &Qualified, all: &[Initial], out: &mut Vec<Init>) -> Option<()> {
        match self.by_member(of, all)? {
            Some(values) => {
                for ((_, part), value) in of.parts().iter().zip(values) {
                    match value {
                        Some(Initial::List(all, _)) if part.ty.is_aggregate() => {
                            self.list_of_constants(part, all, out)?;
                        }
                        value => self.constants(part, &mut one(value), out)?,
                    }
                }
                Some(())
            }
            None => {
                let mut values = all.iter();
                self.constants(of, &mut values, out)?;
                self.no_more(of, values.next())
            }
        }
    }

    /// The constants that an object begins with, one for each integer in it; what no value is left for is 0.
    fn constants<'v>(
        &mut self,
        of: &Qualified,
        values: &mut std::slice::Iter<'v, Initial>,
        out: &mut Vec<Init>,
    ) -> Option<()> {
        if of.ty.is_aggregate() {
            // Values without braces of their own are taken one after the other (C11, 6.7.9).
            for (_, part) in of.parts() {
                match values.as_slice().first() {
                    Some(Initial::List(all, _)) if part.ty.is_aggregate() => {
                        values.next();
                        self.list_of_constants(&part, all, out)?;
                    }
                    _ => self.constants(&part, values, out)?,
                }
            }
            return Some(());
        }
        let tree = match values.next() {
            None => {
                out.push(Init::Int(0));
                return Some(());
            }
            Some(Initial::Value(tree)) => tree,
            Some(Initial::Member(range, _)) => {
                self.error("wrong-operand", range, "this names a member", |d| d.label("expected a value"));
                return None;
            }
            Some(Initial::List(all, range)) => match all.as_slice() {
                [Initial::Value(tree)] => tree,
                [] => {
                    out.push(Init::Int(0));
                    return Some(());
                }
                _ => {
                    self.error("wrong-operand", range, "a list for one value", |d| d.label("expected a value"));
                    return None;
                }
            },
        };
        let inner = match &of.ty {
            Type::Object(_, of) => of,
            ty => ty,
        };
        let value = self.scalar(tree);
        let init = match self.assignable(&value, inner, &tree.range) {
            Expr::Const(v) if value.fixed => match &of.ty {
                Type::Object(class, _) => initial(*class, v).map(Init::Int),
                _ => Ok(Init::Int(v)),
            },
            Expr::Address(loc) => Ok(Init::Address { loc, index: 0 }),
            _ => Err("expected a constant of the text".to_owned()),
        };
        match init {
            Ok(init) => out.push(init),
            Err(problem) => {
                self.error("wrong-operand", &tree.range, "this is no value to begin with", |d| d.label(problem));
                return None;
            }
        }
        Some(())
    }

    /// Memory that the code declares: of all threads, with its first values; of a group of threads, or of each thread.
    fn memory(&mut self, declared: &Declared, of: Qualified, space: Space, init: Vec<Init>) {
        let name = &declared.declarator.name;
        let word = self.str(name);
        if !self.may_declare(name) {
            return;
        }
        if of.ty.size() == 0 {
            let message = format!("a `{}` has no size here", of.ty.name());
            self.error("wrong-operand", name, message, |d| d.label("expected a type that is defined before"));
            return;
        }
        if let (Space::Shared, Some(_)) = (space, &declared.value) {
            self.error("wrong-operand", name, format!("`{word}` has an initialiser"), |d| {
                d.label("expected none")
                    .note("variables that a group of threads shares cannot be initialised")
                    .help("assign to it in one thread, and let the others wait at a barrier")
            });
            return;
        }
        let loc = match space {
            Space::Shared => self.shared_object(word, name, name.start, &of),
            _ => {
                let object = self.object_of_type(&of, space, init, name);
                self.object_of_code(word, name, object).inspect(|loc| self.declared_memory.push(*loc))
            }
        };
        let Some(loc) = loc else { return };
        let addr = Expr::Address(loc);
        let binding = Binding::Memory(addr.clone(), of.clone());
        if self.outside {
            self.scopes.bind_outside(word, binding);
            return;
        }
        self.scopes.bind(word, binding);
        match &declared.value {
            Some(Initial::List(all, _)) => self.fill(&addr, &of, all),
            Some(Initial::Value(value)) if matches!(of.ty, Type::Struct(_)) => {
                self.copy_structure((addr, of), value, &value.range);
            }
            Some(Initial::Value(value)) => {
                self.error("wrong-operand", &value.range, "one value for an array", |d| {
                    d.label("expected a list in `{}`")
                });
            }
            Some(Initial::Member(..)) | None => {}
        }
    }

    /// An object that a group of threads has one of, the same in each call of the function; by a place in the text that nothing
    /// else has.
    pub(super) fn shared_object(
        &mut self,
        word: &str,
        name: &Range<usize>,
        place: usize,
        of: &Qualified,
    ) -> Option<LocId> {
        if let Some(loc) = self.lasting.get(&place) {
            return Some(*loc);
        }
        let object = self.object_of_type(of, Space::Shared, Vec::new(), name);
        let loc = self.object_of_code(word, name, object)?;
        self.declared_memory.push(loc);
        self.lasting.insert(place, loc);
        Some(loc)
    }

    /// An object of a type; of all threads, with its first values.
    fn object_of_type(&self, of: &Qualified, space: Space, init: Vec<Init>, range: &Range<usize>) -> Object {
        // The elements of an array; one of an array of one is the object itself.
        let element = match &of.ty {
            Type::Array(element, n) if *n > 1 || element.ty.stored().is_some() => Qualified::clone(element),
            _ => of.clone(),
        };
        let span = self.unit.text.span(range.clone());
        let mut atomic = false;
        element.ty.each_cell(&mut |_, _, of| atomic |= of.atomic);
        let of_program = matches!(space, Space::Global | Space::Constant);
        Object {
            ty: element.ty.stored().map(|ty| (ty, span)),
            declared: true,
            record: element.ty.is_aggregate().then(|| Record(element.ty.clone())),
            init: if of_program { init } else { vec![Init::Int(0); of.ty.cells() as usize] },
            space,
            atomic: Some(element.atomic || atomic),
            opencl: OpenClMemory {
                global: space == Space::Local || of_program,
                local: space == Space::Shared,
                capped: !of_program,
            },
            kind: match space {
                Space::Global if self.env.language.row().regions => MemoryKind::ProgramScope,
                Space::Global | Space::Constant => MemoryKind::default(),
                _ => MemoryKind::Private,
            },
            class: match element.ty {
                Type::Object(class, _) => Some(class),
                _ => None,
            },
            boolean: element.ty.is_boolean(),
            of_code: true,
            ..Object::scalar(0)
        }
    }

    /// Memory of the thread's own for a structure that has no name.
    pub(super) fn unnamed(&mut self, word: &str, of: &Qualified, range: &Range<usize>) -> Option<Expr> {
        let object = self.object_of_type(of, Space::Local, Vec::new(), range);
        let loc = self.object_of_code(word, range, object)?;
        self.declared_memory.push(loc);
        Some(Expr::Address(loc))
    }

    /// The object that a declaration of the code stands for. The threads of a kernel declare one; a thread has one for each
    /// declaration, and a condition knows the first of a name.
    fn object_of_code(&mut self, word: &str, name: &Range<usize>, object: Object) -> Option<LocId> {
        let span = self.unit.text.span(name.clone());
        for n in 0.. {
            let called = if n == 0 { word.to_string() } else { format!("{word}#{n}") };
            let Some(old) = self.symbols.find(&called) else {
                return self.symbols.declare(&called, span, SymbolKind::Object(object), self.sink);
            };
            let taken = self.declared_memory.contains(&old);
            if self.symbols.is_like(old, &object) && !taken {
                return Some(old);
            }
            if object.space == Space::Local {
                continue;
            }
            if taken {
                self.error("duplicate-name", name, format!("`{word}` is declared in two blocks"), |d| {
                    d.label("expected another name").note("memory that threads share has one name for each object")
                });
                return None;
            }
            return self.symbols.declare(&called, span, SymbolKind::Object(object), self.sink);
        }
        None
    }

    /// Initialises an array or structure with a list, each time its declaration is reached.
    pub(super) fn fill(&mut self, addr: &Expr, of: &Qualified, all: &[Initial]) {
        match self.by_member(of, all) {
            None => {}
            Some(Some(values)) => {
                for ((offset, part), value) in of.parts().into_iter().zip(values) {
                    self.fill_part(&shifted(addr, offset), &part, &mut one(value));
                }
            }
            Some(None) => {
                let mut values = all.iter();
                self.fill_parts(addr, of, &mut values);
                self.no_more(of, values.next());
            }
        }
    }

    /// The values of a list that names members, by member; the inner `None`: it names none. The outer one: it is wrong.
    fn by_member<'v>(&mut self, of: &Qualified, all: &'v [Initial]) -> Option<Option<Vec<Option<&'v Initial>>>> {
        if !all.iter().any(|value| matches!(value, Initial::Member(..))) {
            return Some(None);
        }
        let names: Vec<String> = match &of.ty {
            Type::Struct(structure) => structure.members().iter().map(|m| m.name.clone()).collect(),
            _ => Vec::new(),
        };
        let mut values = vec![None; names.len()];
        let mut last = 0;
        for value in all {
            let (range, message) = match value {
                Initial::Member(name, value) => match names.iter().position(|n| n == self.str(name)) {
                    None => (name, format!("a `{}` has no member `{}`", of.ty.name(), self.str(name))),
                    Some(at) if values[at].is_some() => (name, format!("`{}` has two values", self.str(name))),
                    Some(at) if self.env.language.cpp && at < last => {
                        (name, format!("`{}` stands before this member in the structure", self.str(name)))
                    }
                    Some(at) => {
                        values[at] = Some(&**value);
                        last = at;
                        continue;
                    }
                },
                Initial::Value(Tree { range, .. }) | Initial::List(_, range) => {
                    (range, "a value without a name among those with names".to_owned())
                }
            };
            let range = range.clone();
            self.error("wrong-operand", &range, message, |d| {
                d.label("expected the values of members, in their order")
            });
            return None;
        }
        Some(Some(values))
    }

    /// Initialises the parts of an aggregate with the values that come next: those of a part without braces of its own are
    /// taken from the same list, and a part that none is left for is 0 (C11, 6.7.9).
    fn fill_parts(&mut self, addr: &Expr, of: &Qualified, values: &mut std::slice::Iter<'_, Initial>) {
        for (offset, part) in of.parts() {
            self.fill_part(&shifted(addr, offset), &part, values);
        }
    }

    fn fill_part(&mut self, at: &Expr, part: &Qualified, values: &mut std::slice::Iter<'_, Initial>) {
        let value = match values.as_slice().first() {
            Some(Initial::Value(tree)) if part.ty.is_aggregate() => {
                if self.type_of_place(tree).is_none_or(|of| of.ty != part.ty) {
                    self.fill_parts(at, part, values);
                } else {
                    values.next();
                    self.copy_structure((at.clone(), part.clone()), tree, &tree.range);
                }
                return;
            }
            Some(Initial::List(all, _)) if part.ty.is_aggregate() => {
                values.next();
                self.fill(at, part, all);
                return;
            }
            Some(Initial::List(_, range) | Initial::Member(range, _)) => {
                self.error("wrong-operand", range, "a list for one value", |d| d.label("expected a value"));
                return;
            }
            Some(Initial::Value(tree)) if part.word().is_none() => {
                let message = format!("a value for a `{}`", part.ty.name());
                self.error("unsupported", &tree.range, message, |d| {
                    d.label("expected no initialiser").help("store it in a statement of its own")
                });
                return;
            }
            Some(Initial::Value(tree)) => {
                let value = self.scalar(tree);
                self.assignable(&value, &part.ty, &tree.range)
            }
            None if part.ty.is_aggregate() => {
                self.fill_parts(at, part, values);
                return;
            }
            None => Expr::Const(0),
        };
        values.next();
        self.write(&Place::Memory(at.clone(), part.clone()), value);
    }
}

/// One value, or none, as those that come next.
fn one(value: Option<&Initial>) -> std::slice::Iter<'_, Initial> {
    value.map_or([].iter(), |value| std::slice::from_ref(value).iter())
}
