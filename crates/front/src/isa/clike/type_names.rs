//! Finds the type that a declaration's specifiers and declarators name: arrays, vectors,
//! structures, enumerations, classes.
//!
//! # Sources
//! - C11, 6.7.2, 6.7.6; ISO C++, dcl.type, dcl.enum, class; OpenCL C, *Built-in Vector Data Types*.

use std::ops::Range;
use std::rc::Rc;

use super::ast::{
    Base, Declaration, Declarator, EnumSyntax, Expr as Tree, Qualifiers, Specifiers, Stmt,
    StmtKind, Storage, StructSyntax, TypeName,
};
use super::classes::{atomic_alias, class_named, is_class_word};
use super::is_boolean;
use super::lower::Lowering;
use super::scope::Binding;
use super::types::{Enumeration, Qualified, Record, Structure, Type, Value};
use super::words::{has_type, type_named};
use diag::{MAX_NESTING, one_line};
use program::{Class, Space, Ty};

/// The largest number of elements of an array that code declares.
const MAX_ELEMENTS: u64 = 65_536;

impl<'a> Lowering<'a, '_> {
    /// The type that a cast names.
    pub(super) fn named_type(&mut self, name: &TypeName) -> Option<Qualified> {
        let base = self.base(&name.specifiers)?;
        self.declared_type(base, &name.declarator, None)
    }

    /// The type that a declaration begins with; for `auto`, `void`. Defines an enumeration in it.
    pub(super) fn base(&mut self, specifiers: &Specifiers) -> Option<Qualified> {
        let shared = (specifiers.of_base.space).is_some_and(|space| space != Space::Local);
        if shared && self.str(&specifiers.range).contains("reserve_id_t") {
            self.refuse_shared_reservation(&specifiers.range);
            return None;
        }
        self.base_anywhere(specifiers)
    }

    /// The same, in any address space.
    fn base_anywhere(&mut self, specifiers: &Specifiers) -> Option<Qualified> {
        let mut named = None;
        let ty = match &specifiers.base {
            Base::Void | Base::Auto => Type::Void,
            Base::Bool => Type::Bool,
            Base::Int(ty) => Type::Int(*ty),
            Base::Float(format) => Type::Float(*format),
            Base::Enum(syntax) => self.enumeration(syntax)?,
            Base::Struct(syntax) => self.structure(syntax)?,
            Base::Class(range) => self.class_type(range)?,
            Base::Refer(reference) => {
                self.error(
                    "wrong-operand",
                    &reference.name,
                    "an atomic reference is not an object",
                    |d| {
                        d.label("expected the type of the object").help(
                            "declare one by `cuda::atomic_ref<int, cuda::thread_scope_device> \
                            r(x);`",
                        )
                    },
                );
                return None;
            }
            Base::Instance(range, given) => self.instance_of_class(range, given)?,
            Base::TypeOf(tree) => self.unevaluated(tree).ty,
            Base::Function(range) => {
                self.refuse_function_pointer(range);
                return None;
            }
            Base::Image(range) => {
                self.error("unsupported", range, "this cannot be an image", |d| {
                    d.label("expected an image as a parameter of a kernel")
                });
                return None;
            }
            Base::Group => {
                self.error(
                    "wrong-operand",
                    &specifiers.range,
                    "a group of threads is no object",
                    |d| d.label("expected `auto g = …`, or a parameter of a function"),
                );
                return None;
            }
            Base::Named(range) => match self.find_binding(self.str(range)) {
                Some(Binding::Type(of)) => {
                    named = Some(of.clone());
                    of.ty.clone()
                }
                _ => {
                    let name = self.str(range);
                    let built_in = type_named(name)
                        .filter(|of| has_type(name, self.env.language.dialect) && !of.1);
                    let of = self
                        .vector(name)
                        .or(built_in.map(|(ty, _)| match is_boolean(name) {
                            true => Type::Bool,
                            false => Type::Int(ty),
                        }));
                    let Some(of) = of else {
                        self.error(
                            "unknown-type",
                            range,
                            format!("`{name}` is not a type here"),
                            |d| d.label("expected a type"),
                        );
                        return None;
                    };
                    of
                }
            },
        };
        let Qualifiers {
            constant,
            volatile,
            atomic,
            space,
            ..
        } = specifiers.of_base;
        let constant = constant || specifiers.has(Storage::Constexpr).is_some();
        let of = Qualified {
            ty,
            constant,
            volatile,
            atomic,
            space,
        };
        // A `typedef` adds its qualifiers.
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

    /// The type of a declared name; `elements`: the number of initialisers, for an array without a
    /// size.
    pub(super) fn declared_type(
        &mut self,
        base: Qualified,
        declarator: &Declarator,
        elements: Option<usize>,
    ) -> Option<Qualified> {
        if declarator.calls {
            self.refuse_function_pointer(&declarator.name);
            return None;
        }
        self.array_type(
            base,
            &declarator.name,
            &declarator.pointers,
            &declarator.arrays,
            elements,
        )
    }

    /// The type that pointers and dimensions form from another type, in the declaration of `name`.
    pub(super) fn array_type(
        &mut self,
        base: Qualified,
        name: &Range<usize>,
        pointers: &[Qualifiers],
        arrays: &[(Option<Tree>, Range<usize>)],
        elements: Option<usize>,
    ) -> Option<Qualified> {
        if base.ty.depth() + pointers.len() + arrays.len() > MAX_NESTING {
            self.error("too-deep", name, "this type is nested too deeply", |d| {
                d.label(format!(
                    "expected at most {MAX_NESTING} pointers, dimensions and structures inside \
                    each other"
                ))
            });
            return None;
        }
        let mut of = base;
        for pointer in pointers {
            let Qualifiers {
                constant,
                volatile,
                atomic,
                space,
                ..
            } = *pointer;
            of = Qualified {
                ty: of.pointer(),
                constant,
                volatile,
                atomic,
                space,
            };
        }
        for (size, range) in arrays.iter().rev() {
            let n = match (size, elements) {
                (Some(size), _) => self.fixed(size, "the size of an array")?,
                (None, Some(n)) => n as i64,
                (None, None) => {
                    self.error("wrong-operand", range, "an array without a size", |d| {
                        d.label("expected a size")
                    });
                    return None;
                }
            };
            if of.ty.size() == 0 {
                let name = of.ty.name();
                self.error(
                    "wrong-operand",
                    range,
                    format!("an array of `{name}`, which has no size"),
                    |d| d.label("expected elements that have one"),
                );
                return None;
            }
            if n < 1 || of.ty.cells().saturating_mul(n as u64) > MAX_ELEMENTS {
                let message = format!("an array has 1 to {MAX_ELEMENTS} elements, not {n}");
                self.error("bad-number", range, message, |d| {
                    d.label("expected another size")
                });
                return None;
            }
            let (constant, volatile, space) = (of.constant, of.volatile, of.space);
            of = Qualified {
                constant,
                volatile,
                space,
                ..Type::Array(of.into(), n as u32).into()
            };
        }
        Some(of)
    }

    /// The value of a constant expression.
    pub(super) fn fixed(&mut self, tree: &Tree, what: &str) -> Option<i64> {
        self.fixed_as(tree, what, |ty| ty.promoted().is_some())
    }

    /// The same, for a type that `of` accepts.
    pub(super) fn fixed_as(
        &mut self,
        tree: &Tree,
        what: &str,
        of: impl Fn(&Type) -> bool,
    ) -> Option<i64> {
        let value = self.scalar(tree);
        match value.constant().filter(|_| value.fixed && of(&value.ty)) {
            Some(n) => Some(n),
            None => {
                if !self.is_nothing(&value) {
                    self.error(
                        "wrong-operand",
                        &tree.range,
                        format!("{what} is not a constant"),
                        |d| {
                            d.label("expected a constant of the text").note(
                            "numbers, enumerators, and in C++ `const` and `constexpr` variables \
                            with such values",
                        )
                        },
                    );
                }
                None
            }
        }
    }

    /// A vector type of CUDA or of OpenCL C, by its name.
    pub(super) fn vector(&self, name: &str) -> Option<Type> {
        self.env
            .language
            .vector(name)
            .map(|of| Type::Struct(of.into()))
    }

    /// The structure of that name, if there is one.
    pub(super) fn known_structure(&self, name: &TypeName) -> Option<Type> {
        let alone = name.declarator.pointers.is_empty() && name.declarator.arrays.is_empty();
        let word = match &name.specifiers.base {
            Base::Named(range) => self.str(range).to_owned(),
            Base::Struct(syntax) => format!("struct {}", self.str(syntax.name.as_ref()?)),
            _ => return None,
        };
        let ty = match self.find_binding(&word) {
            Some(Binding::Type(of)) => of.ty.clone(),
            _ => self.vector(&word)?,
        };
        (alone && !name.declarator.reference && matches!(ty, Type::Struct(_))).then_some(ty)
    }

    /// A class of the library.
    fn class_type(&mut self, range: &Range<usize>) -> Option<Type> {
        let words = self.spelled_class(range);
        let word = words.split('<').next()?.trim();
        let named = is_class_word(word) || (atomic_alias(word).is_some() && !word.contains("::"));
        let name = if named {
            format!("cuda::{words}")
        } else {
            words
        };
        let Some(named) = class_named(&name) else {
            self.error(
                "unsupported",
                range,
                format!("a `{name}` is not supported here"),
                |d| d.label("expected it in a separate declaration, or as a reference parameter"),
            );
            return None;
        };
        match named {
            Ok((ty, class)) => {
                let of = if is_boolean(&name) {
                    Type::Bool
                } else {
                    Type::Int(ty)
                };
                Some(Type::Object(class, of.into()))
            }
            Err(problem) => {
                self.error(
                    "unknown-type",
                    range,
                    format!("`{name}` is not a type here"),
                    |d| d.label(problem),
                );
                None
            }
        }
    }

    /// The name of a class of the library, with the arguments that parameters of a template stand
    /// for.
    fn spelled_class(&self, range: &Range<usize>) -> String {
        let text = self.str(range);
        let Some((head, rest)) = text.split_once('<') else {
            return one_line(text);
        };
        let arguments = rest.trim_end().trim_end_matches('>').split(',');
        let spelled = arguments.map(|word| match self.find_binding(word.trim()) {
            Some(Binding::Spelled(of)) => self.str(of).to_owned(),
            Some(Binding::Type(of)) => match &of.ty {
                Type::Int(ty) => {
                    let sign = if ty.signed { "" } else { "u" };
                    format!("{sign}int{}_t", ty.bits)
                }
                ty => ty.name(),
            },
            Some(Binding::Constant(value)) => value
                .constant()
                .map_or(word.trim().to_owned(), |n| n.to_string()),
            _ => one_line(word),
        });
        format!(
            "{}<{}>",
            head.trim(),
            spelled.collect::<Vec<_>>().join(", ")
        )
    }

    /// Defines an enumeration, or finds one by its name.
    fn enumeration(&mut self, syntax: &Rc<EnumSyntax>) -> Option<Type> {
        fn tag(name: &str) -> String {
            format!("enum {name}")
        }
        let Some(all) = &syntax.all else {
            let range = syntax.name.as_ref()?;
            let name = self.str(range);
            return match self.scopes.find(&tag(name)) {
                Some(Binding::Type(of)) => Some(of.ty.clone()),
                _ => {
                    self.error(
                        "unknown-type",
                        range,
                        format!("there is no enumeration `{name}` here"),
                        |d| d.label("expected one that was defined before"),
                    );
                    None
                }
            };
        };
        // A scoped enumeration has a scope for its names.
        if syntax.scoped {
            self.scopes.enter();
        }
        let values = self.enumerators(all);
        if syntax.scoped {
            self.scopes.leave();
        }
        let values = values?;
        let (least, most) = values
            .iter()
            .fold((0, 0), |(a, b), v| (v.1.min(a), v.1.max(b)));
        // Without a type in the text, compilers take the first of these types that holds all
        // values.
        let fits = |ty: &Ty| ty.wrap(least) == least && ty.wrap(most) == most;
        // The underlying type of a scoped enumeration is `int` (ISO C++, dcl.enum).
        let underlying = syntax.underlying.or(syntax.scoped.then_some(Ty::S32));
        let ty = underlying.or([Ty::U32, Ty::S32, Ty::WORD].into_iter().find(fits))?;
        if underlying.is_some() && !fits(&ty) {
            let name = syntax.name.as_ref().unwrap_or(&all[0].0);
            self.error(
                "wrong-operand",
                name,
                "an enumerator is not a value of the underlying type",
                |d| d.label("expected a larger type, or other values"),
            );
        }
        let promoted = match (self.env.language.cpp, underlying) {
            // The values determine the type, or the code names it (ISO C++, conv.prom).
            (true, None) => [Ty::S32, Ty::U32, Ty::WORD].into_iter().find(fits)?,
            _ if ty.bits < 32 => Ty::S32,
            _ => ty,
        };
        let name = syntax.name.as_ref().map_or("enum", |range| self.str(range));
        let scoped = syntax.scoped;
        let ty = Type::Enum(Rc::new(Enumeration {
            name: name.to_string(),
            ty,
            promoted,
            scoped,
        }));
        if self.env.language.cpp {
            for (word, value) in values {
                let value = Value::literal(value, ty.clone());
                if !scoped {
                    self.scopes.bind(word, Binding::Constant(value.clone()));
                }
                if syntax.name.is_some() {
                    self.scopes
                        .bind(&format!("{name}::{word}"), Binding::Constant(value));
                }
            }
        }
        if syntax.name.is_some() {
            self.scopes
                .bind(&tag(name), Binding::Type(ty.clone().into()));
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
            // An enumerator is an `int` if the value fits. This holds within the definition, and in
            // C also after it.
            let ty = if Ty::S32.wrap(next) == next {
                Ty::S32
            } else {
                Ty::WORD
            };
            self.bind(name, Binding::Constant(Value::literal(next, Type::Int(ty))));
            values.push((self.str(name), next));
            next = next.wrapping_add(1);
        }
        Some(values)
    }

    /// Defines a structure, or finds one by its name. A structure without a definition may be the
    /// target of a pointer.
    fn structure(&mut self, syntax: &Rc<StructSyntax>) -> Option<Type> {
        let word = syntax.name.as_ref().map_or("", |range| self.str(range));
        let tag = format!("struct {word}");
        if !syntax.template.is_empty() || syntax.specialises.is_some() {
            let all = self.class_templates.entry(word.to_owned()).or_default();
            let known = all.iter().any(|one| Rc::ptr_eq(one, syntax));
            if syntax.members.is_some() && !known {
                all.push(syntax.clone());
            }
            return Some(Type::Void);
        }
        let known = match self.scopes.find(&tag) {
            Some(Binding::Type(Qualified {
                ty: Type::Struct(of),
                ..
            })) => Some(of.clone()),
            _ => None,
        };
        let here = self.scopes.declares(&tag);
        let structure = match (known, &syntax.members) {
            (Some(of), None) => return Some(Type::Struct(of)),
            (Some(of), Some(_)) if here => of,
            _ => {
                let of = Rc::new(Structure::new(if word.is_empty() {
                    "struct"
                } else {
                    word
                }));
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
        if syntax.members.is_none() {
            return Some(ty);
        }
        if structure.is_complete() {
            self.error(
                "duplicate-name",
                &syntax.range,
                format!("`{word}` is defined twice in this block"),
                |d| d.label("expected another name"),
            );
            return None;
        }
        self.define_class(&structure, syntax, word, Vec::new())?;
        Some(ty)
    }

    /// The members that a class declares itself; `inherited`: those of its base class.
    pub(super) fn class_members(
        &mut self,
        syntax: &StructSyntax,
        inherited: &[(String, Qualified)],
    ) -> Option<Vec<(String, Qualified)>> {
        let mut members: Vec<(String, Qualified)> = Vec::new();
        let mut cells = 0u64;
        for declaration in syntax.members.iter().flatten() {
            let base = self.base(&declaration.specifiers)?;
            for declared in &declaration.all {
                let name = &declared.declarator.name;
                let word = self.str(name);
                let of = self.declared_type(base.clone(), &declared.declarator, None)?;
                let problem = match () {
                    () if declared.declarator.reference => Some("a reference in a structure"),
                    () if of.ty.size() == 0 => Some("a member of a type that has no size here"),
                    () if members.iter().chain(inherited).any(|m| m.0 == word) => {
                        Some("a second member of that name")
                    }
                    () if of.space.is_some() => Some("a member with an address space"),
                    () => match of.ty {
                        Type::Object(Class::Atomic(_), _) => None,
                        Type::Object(..) => Some("a member of a class that is made with a count"),
                        _ => None,
                    },
                };
                if let Some(problem) = problem {
                    self.error("wrong-operand", name, problem, |d| {
                        d.label("expected another member")
                    });
                    return None;
                }
                cells = cells.saturating_add(of.ty.cells());
                members.push((word.to_string(), of));
            }
        }
        let empty = cells == 0 && self.env.language.cpp;
        if !empty && !(1..=MAX_ELEMENTS).contains(&cells) {
            let message = format!("a structure of 1 to {MAX_ELEMENTS} integers, not {cells}");
            self.error("bad-number", &syntax.range, message, |d| {
                d.label("expected another one")
            });
            return None;
        }
        Some(members)
    }

    /// The structure of that name, from the declarations at the beginning of the code.
    pub(super) fn defined_structure(&mut self, name: &str) -> Option<Record> {
        self.define_types();
        let tag = format!("struct {name}");
        match self.scopes.find(name).or_else(|| self.scopes.find(&tag)) {
            None => self.vector(name).map(Record),
            Some(Binding::Type(of)) if matches!(&of.ty, Type::Struct(s) if s.is_complete()) => {
                Some(Record(of.ty.clone()))
            }
            _ => None,
        }
    }

    /// Makes the types and the constants known that stand at the beginning of the code.
    pub(super) fn define_types(&mut self) {
        let unit = self.unit;
        for stmt in &unit.stmts {
            self.define_constant(stmt);
        }
    }

    /// Makes the types and the constants of a declaration known, if it declares nothing else.
    pub(super) fn define_constant(&mut self, stmt: &Stmt) {
        fn only_types(declaration: &Declaration) -> bool {
            declaration.all.is_empty()
                || [Storage::Typedef, Storage::Constexpr]
                    .iter()
                    .any(|s| declaration.specifiers.has(*s).is_some())
                || declaration.specifiers.of_base.constant
        }
        match &stmt.kind {
            StmtKind::Declare(declaration) if only_types(declaration) => {
                self.declaration(declaration)
            }
            StmtKind::Function(Some(function)) => self.function_of_code(function),
            _ => {}
        }
    }
}
