//! Lowers the classes of the code: instances of their templates, constructors, initialisers of
//! members, destructors, base classes, constants.
//!
//! # Invariants
//! - An object is memory; its members are those of its base classes, then its own.
//! - The name of an instance has its arguments: `Pair<int, 4>`. Two classes of one name are one
//!   type.
//! - The destructors of a block's objects run wherever control leaves the block, the last object
//!   first.
//!
//! # Sources
//! - ISO C++, class.ctor, class.base.init, class.dtor, temp.class, temp.expl.spec.
//!
//! # Where we differ
//! - A base class is laid out as a first member. Compilers reuse its padding in some classes.

use std::ops::Range;
use std::rc::Rc;

use super::ast::{Declaration, Expr as Tree, Initial, StructSyntax, TemplateArgument};
use super::lower::{CONSTRUCTOR, ClassOfCode, Known, Lowering, ScopedObject};
use super::place::{Place, shifted};
use super::scope::{Binding, Instance};
use super::types::{Qualified, Structure, Type, Value};
use program::{Class, Expr};

/// The name under which a class has its destructor.
const DESTRUCTOR: &str = "(destructor)";

/// The maximum number of instances of a template. Its members may be instances of it.
const DEEPEST_INSTANCE: usize = 64;

impl<'a> Lowering<'a, '_> {
    pub(super) fn class_of(&self, ty: &Type) -> Option<&ClassOfCode> {
        match ty {
            Type::Struct(structure) => self.classes.get(&structure.name),
            _ => None,
        }
    }

    /// The instance of a class template.
    pub(super) fn instance_of_class(
        &mut self,
        range: &Range<usize>,
        given: &[TemplateArgument],
    ) -> Option<Type> {
        let word = self.str(range);
        let all = self.class_templates.get(word).cloned().unwrap_or_default();
        let Some(primary) = all.iter().find(|syntax| syntax.specialises.is_none()) else {
            self.error(
                "unknown-type",
                range,
                format!("`{word}` is no template here"),
                |d| d.label("expected the name of one"),
            );
            return None;
        };
        let mut instance = Instance::new();
        for (n, param) in primary.template.iter().enumerate() {
            let binding = match (given.get(n), &param.default) {
                (Some(argument), _) => self.template_argument(param, argument, &instance, false)?,
                (None, Some(of)) => self.template_argument(param, of, &instance, true)?,
                (None, None) => {
                    let open = self.str(&param.name);
                    let message = format!("nothing says what `{open}` of `{word}` is");
                    self.error("wrong-operands", range, message, |d| {
                        d.label("expected the arguments of the template")
                    });
                    return None;
                }
            };
            instance.push((self.str(&param.name).to_owned(), binding));
        }
        let name = format!("{word}<{}>", self.spelled_arguments(&instance));
        if let Some(known) = self.made_instances.get(&name) {
            return Some(known.clone());
        }
        if self.made_instances.len() > DEEPEST_INSTANCE {
            self.error(
                "too-deep",
                range,
                "this template has too many instances",
                |d| d.label(format!("expected at most {DEEPEST_INSTANCE}")),
            );
            return None;
        }
        let special = all
            .iter()
            .filter(|syntax| syntax.specialises.is_some())
            .find(|syntax| self.is_specialised(syntax, primary, &instance));
        let (syntax, own) = match special {
            Some(special) => (special.clone(), Instance::new()),
            None => (primary.clone(), instance),
        };
        let structure = Rc::new(Structure::new(&name));
        let ty = Type::Struct(structure.clone());
        self.made_instances.insert(name, ty.clone());
        self.define_class(&structure, &syntax, word, own)?;
        Some(ty)
    }

    /// Whether a specialisation is the one for an instance.
    fn is_specialised(
        &mut self,
        special: &StructSyntax,
        primary: &StructSyntax,
        instance: &Instance,
    ) -> bool {
        let given = special.specialises.as_deref().unwrap_or_default();
        special.template.is_empty() && self.are_arguments(&primary.template, given, instance)
    }

    /// Whether arguments that the code writes are those of an instance.
    pub(super) fn are_arguments(
        &mut self,
        template: &[super::ast::TemplateParameter],
        given: &[TemplateArgument],
        instance: &Instance,
    ) -> bool {
        let mut written = Instance::new();
        for (param, argument) in template.iter().zip(given) {
            match self.template_argument(param, argument, &Instance::new(), false) {
                Some(binding) => written.push((self.str(&param.name).to_owned(), binding)),
                None => return false,
            }
        }
        given.len() == template.len()
            && self.spelled_arguments(&written) == self.spelled_arguments(instance)
    }

    /// The arguments of an instance as code writes them.
    pub(super) fn spelled_arguments(&self, instance: &Instance) -> String {
        let spelled = |binding: &Binding| match binding {
            Binding::Type(of) => {
                let constant = if of.constant { "const " } else { "" };
                format!("{constant}{}", of.ty.name())
            }
            Binding::Constant(value) => match value.constant() {
                Some(n) => n.to_string(),
                None => format!("{:?}", value.expr),
            },
            Binding::Spelled(range) => self.str(range).to_owned(),
            Binding::Closure(closure) => {
                let name = &closure.function.result.declarator.name;
                format!("{}@{}", self.str(name), name.start)
            }
            _ => "?".to_owned(),
        };
        let all: Vec<String> = instance.iter().map(|(_, b)| spelled(b)).collect();
        all.join(", ")
    }

    /// Defines a class: its constants, its members, its functions.
    pub(super) fn define_class(
        &mut self,
        structure: &Rc<Structure>,
        syntax: &Rc<StructSyntax>,
        word: &str,
        instance: Instance,
    ) -> Option<()> {
        let name = structure.name.clone();
        let plain = instance.is_empty() && syntax.specialises.is_none();
        let base = match plain {
            true => {
                self.scopes.enter();
                None
            }
            false => Some(self.scopes.enter_function()),
        };
        let itself = Binding::Type(Type::Struct(structure.clone()).into());
        for (word, binding) in &instance {
            self.scopes.bind(word, binding.clone());
        }
        if !word.is_empty() {
            self.scopes.bind(word, itself);
        }
        let defined = self.class_contents(structure, syntax, instance);
        if defined.is_some() {
            let methods: Vec<_> = syntax.functions.clone();
            for function in &methods {
                let own = self.str(&function.result.declarator.name);
                let own = match own {
                    own if own.starts_with('~') => DESTRUCTOR.to_owned(),
                    _ if function.constructs.is_some() => CONSTRUCTOR.to_owned(),
                    own => own.split_whitespace().collect(),
                };
                self.define_function(&format!("{name}::{own}"), function, Some(&name));
            }
        }
        match base {
            None => {
                self.scopes.leave();
            }
            Some(base) => self.scopes.leave_function(base),
        }
        defined
    }

    /// The constants and members of a class.
    fn class_contents(
        &mut self,
        structure: &Rc<Structure>,
        syntax: &Rc<StructSyntax>,
        instance: Instance,
    ) -> Option<()> {
        let mut bases = Vec::new();
        let mut first: Vec<(String, Qualified)> = Vec::new();
        let mut start = None;
        for base in &syntax.bases {
            let of = self.named_type(base)?;
            let Type::Struct(inherited) = &of.ty else {
                self.error(
                    "wrong-operand",
                    &base.specifiers.range,
                    "this is no class",
                    |d| d.label("expected one"),
                );
                return None;
            };
            if start.is_some() {
                let range = &base.specifiers.range;
                self.error("unsupported", range, "a second base class", |d| {
                    d.label("expected one").help("make it a member")
                });
                return None;
            }
            if let Some(of_base) = self.classes.get(&inherited.name) {
                for (word, binding) in of_base.constants.clone() {
                    self.scopes.bind(&word, binding);
                }
            }
            start = Some(inherited.clone());
            first.extend(
                inherited
                    .members()
                    .iter()
                    .map(|m| (m.name.clone(), m.of.clone())),
            );
            bases.push((of.ty.clone(), 0));
        }
        for declaration in &syntax.constants {
            self.class_constants(declaration)?;
        }
        let align = match &syntax.align {
            Some(align) => self.fixed(align, "an alignment")?.max(1) as u64,
            None => 1,
        };
        let mut own = self.class_members(syntax, &first)?;
        if own.is_empty() && first.is_empty() {
            // An object without members has an address all the same.
            own.push(("(empty)".to_owned(), Type::Int(super::types::BYTE).into()));
        }
        match syntax.is_union {
            true => {
                self.members_of_union(syntax, &own)?;
                structure.define_union(own, align);
            }
            false => structure.define_class(start.as_deref(), own, align),
        }
        let constants = self.scopes.constants_here();
        let class = ClassOfCode {
            syntax: syntax.clone(),
            instance,
            constants,
            bases,
        };
        self.classes.insert(structure.name.clone(), class);
        Some(())
    }

    /// Reports a union that is more than one number with several types.
    fn members_of_union(
        &mut self,
        syntax: &StructSyntax,
        own: &[(String, Qualified)],
    ) -> Option<()> {
        let size = own.first().map_or(0, |(_, of)| of.ty.size());
        let is_plain = own
            .iter()
            .all(|(_, of)| of.word().is_some() && of.ty.size() == size);
        if is_plain && syntax.bases.is_empty() {
            return Some(());
        }
        self.error(
            "unsupported",
            &syntax.range,
            "such unions are not supported",
            |d| {
                d.label("expected numbers of one size").help(
                    "write the whole as one integer, and its parts as `(w >> 32) & 0xffffffff`",
                )
            },
        );
        None
    }

    /// `static constexpr int n = 4;`, `typedef int T;`, `enum { A };`
    fn class_constants(&mut self, declaration: &Declaration) -> Option<()> {
        let base = self.base(&declaration.specifiers)?;
        let types = declaration
            .specifiers
            .has(super::ast::Storage::Typedef)
            .is_some();
        for declared in &declaration.all {
            let word = self.str(&declared.declarator.name);
            let auto = matches!(declaration.specifiers.base, super::ast::Base::Auto);
            let mut of = self.declared_type(base.clone(), &declared.declarator, None)?;
            if types {
                self.scopes.bind(word, Binding::Type(of));
                continue;
            }
            let tree = match &declared.value {
                Some(Initial::Value(tree)) => Some(tree),
                Some(Initial::List(all, _)) => match all.as_slice() {
                    [Initial::Value(tree)] => Some(tree),
                    _ => None,
                },
                _ => None,
            };
            let value = tree.map(|tree| self.scalar(tree));
            match value.filter(|value| value.fixed) {
                Some(value) => {
                    if auto {
                        of.ty = value.ty.clone();
                    }
                    let value = value.converted(&of.ty);
                    self.scopes.bind(
                        word,
                        Binding::Constant(Value {
                            fixed: true,
                            ..value
                        }),
                    );
                }
                None => {
                    let name = &declared.declarator.name;
                    self.error("unsupported", name, "a member that is no constant", |d| {
                        d.label("expected a number that the text determines")
                            .help("declare it outside of the structure")
                    });
                    return None;
                }
            }
        }
        Some(())
    }

    /// Binds what a function of a class sees of it, without an object.
    pub(super) fn bind_class(&mut self, name: &str) {
        for (word, binding) in self.seen_in_class(name) {
            self.scopes.bind(&word, binding);
        }
    }

    /// The names that a function of a class sees: the parameters of its template, its constants.
    pub(super) fn seen_in_class(&self, name: &str) -> Instance {
        let Some(class) = self.classes.get(name) else {
            return Instance::new();
        };
        let mut all = class.instance.clone();
        all.extend(class.constants.iter().cloned());
        all
    }

    /// The constant or type of a class that `S::n` names.
    pub(super) fn of_class(&self, word: &str) -> Option<&Binding> {
        let (class, name) = word.rsplit_once("::")?;
        let Some(Binding::Type(of)) = self.find_binding(class) else {
            return None;
        };
        let class = self.class_of(&of.ty)?;
        class.constants.iter().find(|c| c.0 == name).map(|c| &c.1)
    }

    /// The binding of a name, which may be one of a class.
    pub(super) fn find_binding(&self, word: &str) -> Option<&Binding> {
        self.scopes.find(word).or_else(|| self.of_class(word))
    }

    /// The function of a class that `S::f` names.
    pub(super) fn function_of_class(&self, word: &str) -> Option<(Known, Type)> {
        let (class, name) = word.rsplit_once("::")?;
        let Some(Binding::Type(of)) = self.find_binding(class) else {
            return None;
        };
        Some((self.method_of_type(&of.ty, name)?.clone(), of.ty.clone()))
    }

    /// `S<4>::value`, `S<int>::f(x)`
    pub(super) fn scoped(
        &mut self,
        tree: &Tree,
        of: &super::ast::TypeName,
        name: &Range<usize>,
        args: Option<&[Tree]>,
    ) -> Value {
        let Some(of) = self.named_type(of) else {
            return self.nothing();
        };
        let word = self.str(name);
        let constant = self.class_of(&of.ty).and_then(|class| {
            let found = class.constants.iter().find(|c| c.0 == word)?;
            match &found.1 {
                Binding::Constant(value) => Some(value.clone()),
                _ => None,
            }
        });
        match (args, constant, self.method_of_type(&of.ty, word).cloned()) {
            (None, Some(value), _) => value,
            (Some(args), _, Some(known)) => {
                let args: Vec<&Tree> = args.iter().collect();
                self.call_function(&tree.range, name, &known, None, &args)
                    .unwrap_or_else(Value::void)
            }
            _ => {
                let class = of.ty.name();
                let message = format!("a `{class}` has no constant or function `{word}`");
                self.error("no-field", name, message, |d| {
                    d.label("expected one of the class")
                });
                self.nothing()
            }
        }
    }

    pub(super) fn has_constructor(&self, ty: &Type) -> bool {
        self.method_of_type(ty, CONSTRUCTOR).is_some()
    }

    /// Makes an object at an address from arguments: by its constructor, else member by member.
    pub(super) fn construct(
        &mut self,
        at: &Expr,
        of: &Qualified,
        args: &[&Tree],
        range: &Range<usize>,
    ) {
        let own = Qualified {
            constant: false,
            ..of.clone()
        };
        let same = match args {
            [one] => self
                .type_of_place(one)
                .is_some_and(|there| there.ty == of.ty),
            _ => false,
        };
        if same {
            self.copy_structure(at.clone(), own, args[0], range);
            return;
        }
        if let Some(known) = self.method_of_type(&of.ty, CONSTRUCTOR).cloned() {
            self.call_function(range, range, &known, Some((at.clone(), own)), args);
            return;
        }
        if let Type::Array(element, _) = &of.ty {
            if self.needs_initialising(&element.ty) {
                for (offset, part) in of.parts() {
                    self.construct(&shifted(at, offset), &part, &[], range);
                }
            }
            return;
        }
        match args {
            [] => return self.initialise_members(at, &own, &[], range),
            // Without a constructor, nothing converts a value to a structure.
            [one] => return self.copy_structure(at.clone(), own, one, range),
            _ => {}
        }
        let parts = own.parts();
        if args.len() > parts.len() {
            let message = format!("more values than a `{}` has", of.ty.name());
            self.error("wrong-operand", range, message, |d| {
                d.label("expected fewer")
            });
            return;
        }
        for ((offset, part), arg) in parts.iter().zip(args) {
            self.initialise(
                &shifted(at, *offset),
                part,
                std::slice::from_ref(arg),
                range,
            );
        }
    }

    /// Whether an object of the type begins with values without an initialiser.
    pub(super) fn needs_initialising(&self, ty: &Type) -> bool {
        if let Type::Array(of, _) = ty {
            return self.needs_initialising(&of.ty);
        }
        let Some(class) = self.class_of(ty) else {
            return false;
        };
        let members = class.syntax.members.iter().flatten();
        let defaults = members.flat_map(|d| &d.all).any(|d| d.value.is_some());
        let inside = Qualified::from(ty.clone()).parts();
        self.has_constructor(ty)
            || defaults
            || class
                .bases
                .iter()
                .any(|base| self.needs_initialising(&base.0))
            || inside
                .iter()
                .any(|(_, part)| self.needs_initialising(&part.ty))
    }

    /// Gives an object its first value: of a class, by construction; else, of one argument.
    fn initialise(&mut self, at: &Expr, of: &Qualified, args: &[&Tree], range: &Range<usize>) {
        let own = Qualified {
            constant: false,
            ..of.clone()
        };
        match args {
            _ if own.ty.is_aggregate() => self.construct(at, &own, args, range),
            [] => self.write(&Place::Memory(at.clone(), own), Expr::Const(0)),
            [one] => {
                let value = self.scalar(one);
                let value = self.assignable(&value, &own.ty, &one.range);
                self.write(&Place::Memory(at.clone(), own), value);
            }
            _ => self.error("wrong-operand", range, "more than one value", |d| {
                d.label("expected one")
            }),
        }
    }

    /// The first values of an object's members: those that a constructor gives, else those of their
    /// declarations.
    pub(super) fn initialise_members(
        &mut self,
        at: &Expr,
        of: &Qualified,
        given: &[(Range<usize>, Initial)],
        range: &Range<usize>,
    ) {
        let Some(class) = self.class_of(&of.ty).cloned() else {
            return;
        };
        for (base, offset) in &class.bases {
            let place = shifted(at, *offset);
            let of_base = Qualified::from(base.clone());
            let by_name = given.iter().find(|(name, _)| {
                let word = self.str(name);
                let is =
                    matches!(self.find_binding(word), Some(Binding::Type(of)) if of.ty == *base);
                is || word == base.name()
            });
            match by_name {
                Some((_, value)) => self.initial_of(&place, &of_base, value, range),
                None if self.needs_initialising(base) => {
                    self.construct(&place, &of_base, &[], range);
                }
                None => {}
            }
        }
        let declared = class.syntax.members.iter().flatten().flat_map(|d| &d.all);
        let defaults: Vec<_> = declared.collect();
        for (name, _) in given {
            let word = self.str(name);
            let known = of.ty.member(word).is_some()
                || matches!(self.find_binding(word), Some(Binding::Type(_)));
            if !known {
                let message = format!("a `{}` has no member `{word}`", of.ty.name());
                self.error("no-field", name, message, |d| d.label("expected a member"));
            }
        }
        for default in defaults {
            let word = self.str(&default.declarator.name);
            let Some((offset, part)) = of.ty.member(word) else {
                continue;
            };
            let (place, part) = (shifted(at, offset), part.within(of));
            let by_name = given.iter().find(|(name, _)| self.str(name) == word);
            match (by_name.map(|g| &g.1), &default.value) {
                (Some(value), _) | (None, Some(value)) => {
                    self.initial_of(&place, &part, value, range);
                }
                (None, None) if self.needs_initialising(&part.ty) => {
                    self.construct(&place, &part, &[], range);
                }
                (None, None) => {}
            }
        }
    }

    /// Gives an object the value of an initialiser.
    pub(super) fn initial_of(
        &mut self,
        at: &Expr,
        of: &Qualified,
        value: &Initial,
        range: &Range<usize>,
    ) {
        match value {
            Initial::Value(tree) => self.initialise(at, of, &[tree], range),
            Initial::Call(all, range) => {
                let args: Vec<&Tree> = all.iter().collect();
                self.initialise(at, of, &args, range);
            }
            Initial::List(all, range) => self.initial_list(at, of, all, range),
            Initial::Member(..) => {}
        }
    }

    /// Gives an object the values of a list in braces.
    pub(super) fn initial_list(
        &mut self,
        at: &Expr,
        of: &Qualified,
        all: &[Initial],
        range: &Range<usize>,
    ) {
        let trees: Option<Vec<&Tree>> = all
            .iter()
            .map(|value| match value {
                Initial::Value(tree) => Some(tree),
                _ => None,
            })
            .collect();
        let own = Qualified {
            constant: false,
            ..of.clone()
        };
        match trees {
            Some(trees) if self.has_constructor(&of.ty) || !of.ty.is_aggregate() => {
                self.initialise(at, of, &trees, range);
            }
            _ => {
                if all.len() < own.parts().len() && self.needs_initialising(&of.ty) {
                    self.fill(at, &own, all);
                    self.defaults_behind(at, &own, all, range);
                    return;
                }
                self.fill(at, &own, all);
            }
        }
    }

    /// The initialisers of the members that a list of values does not reach.
    fn defaults_behind(
        &mut self,
        at: &Expr,
        of: &Qualified,
        all: &[Initial],
        range: &Range<usize>,
    ) {
        let Some(class) = self.class_of(&of.ty).cloned() else {
            return;
        };
        let members = class.syntax.members.iter().flatten().flat_map(|d| &d.all);
        for (n, default) in members.enumerate() {
            let word = self.str(&default.declarator.name);
            let named = all.iter().any(|value| match value {
                Initial::Member(name, _) => self.str(name) == word,
                _ => false,
            });
            let positional = !all.iter().any(|v| matches!(v, Initial::Member(..)));
            if named || (positional && n < all.len()) {
                continue;
            }
            let (Some(value), Some((offset, part))) = (&default.value, of.ty.member(word)) else {
                continue;
            };
            let part = part.within(of);
            self.initial_of(&shifted(at, offset), &part, value, range);
        }
    }

    /// `T(1, 2)`
    pub(super) fn made_of(&mut self, tree: &Tree, of: &Qualified, args: &[&Tree]) -> Value {
        if of.word().is_some() && args.is_empty() {
            return Value::literal(0, of.ty.clone());
        }
        if !matches!(of.ty, Type::Struct(_)) {
            self.error("wrong-operand", &tree.range, "this is no value", |d| {
                d.label("expected a structure, or one value")
            });
            return self.nothing();
        }
        let own = Qualified::from(of.ty.clone());
        let Some(at) = self.unnamed(&format!("{}()", of.ty.name()), &own, &tree.range) else {
            return self.nothing();
        };
        self.construct(&at, &own, args, &tree.range);
        Value::new(at, own.ty)
    }

    /// `new (p) T(1, 2)`
    pub(super) fn place_new(
        &mut self,
        tree: &Tree,
        at: &Tree,
        of: &super::ast::TypeName,
        args: &[Tree],
    ) -> Value {
        let pointer = self.scalar(at);
        let Some(of) = self.named_type(of) else {
            return self.nothing();
        };
        let target = pointer.target().map(|to| to.ty.clone());
        if target.as_ref().is_none_or(|to| *to != of.ty) {
            let name = of.ty.name();
            self.error(
                "wrong-operand",
                &at.range,
                format!("this is no pointer to a `{name}`"),
                |d| {
                    d.label("expected the address of such an object")
                        .help("declare the object with that type, and write `new (&object) …`")
                },
            );
            return self.nothing();
        }
        self.begin_at(pointer, of, args, &tree.range)
    }

    /// Makes an object at the address that a pointer holds.
    fn begin_at(
        &mut self,
        pointer: Value,
        of: Qualified,
        args: &[Tree],
        range: &Range<usize>,
    ) -> Value {
        let addr = self.stable(pointer.expr);
        let args: Vec<&Tree> = args.iter().collect();
        match &of.ty {
            Type::Object(class, _) => self.place_object(*class, addr.clone(), &args, range),
            _ => self.initialise(&addr, &of, &args, range),
        }
        Value::new(addr, of.pointer())
    }

    /// `construct_at(&object, 2)`: as `new (&object) T(2)` (ISO C++, specialized.construct).
    pub(super) fn construct_at(&mut self, tree: &Tree, at: &Tree, args: &[Tree]) -> Value {
        let pointer = self.scalar(at);
        match pointer.target().map(|of| Qualified::clone(of)) {
            Some(of) if of.ty != Type::Void => self.begin_at(pointer, of, args, &tree.range),
            _ => {
                self.error(
                    "wrong-operand",
                    &at.range,
                    "`construct_at` takes the address of an object",
                    |d| {
                        d.label(
                            "expected the address of an object, as in `construct_at(&object, 2)`",
                        )
                    },
                );
                self.nothing()
            }
        }
    }

    /// `destroy_at(&object)`: calls the destructor (ISO C++, specialized.destroy).
    pub(super) fn destroy_at(&mut self, at: &Tree) -> Value {
        let pointer = self.scalar(at);
        let of = pointer.target().cloned();
        match of.map(|of| of.ty.clone()) {
            Some(Type::Object(Class::Barrier(_) | Class::Latch(_) | Class::Semaphore(..), _)) => {
                let addr = self.stable(pointer.expr);
                self.destroy(addr);
            }
            Some(Type::Int(_) | Type::Bool | Type::Float(_) | Type::Enum(_) | Type::Pointer(_)) => {
            }
            _ => self.error(
                "unsupported",
                &at.range,
                "the destructor of this is not called by its address",
                |d| d.label("expected the address of a barrier, latch or semaphore"),
            ),
        }
        Value::void()
    }

    /// Makes an object of the library at an address, with its count.
    fn place_object(&mut self, class: Class, addr: Expr, args: &[&Tree], range: &Range<usize>) {
        let [count] = args else {
            self.error(
                "wrong-operands",
                range,
                "an object is made with a count",
                |d| d.label("expected one value"),
            );
            return;
        };
        let value = self.scalar(count);
        if matches!(class, Class::Barrier(_)) {
            let n = match value.constant() {
                Some(n) => Expr::Const(n),
                None => self.stable(value.fit(program::Ty::WORD)),
            };
            self.make_barrier(addr, n, &count.range);
            return;
        }
        let word = value.constant().map(|n| super::classes::initial(class, n));
        match word {
            Some(Ok(word)) => {
                let access = program::Access {
                    tags: program::Tags::of(&[program::Tag::Object, program::Tag::Begins]),
                    scope: None,
                    ty: program::Ty::WORD,
                };
                self.push(program::Op::Store {
                    addr,
                    value: Expr::Const(word),
                    access,
                });
            }
            _ => self.error(
                "unsupported",
                &count.range,
                "this count is no constant",
                |d| d.label("expected a number that the text determines"),
            ),
        }
    }

    /// Notes that an object has a destructor, which runs when the current block ends.
    pub(super) fn ends_with_block(&mut self, at: &Expr, of: &Qualified) {
        if self.method_of_type(&of.ty, DESTRUCTOR).is_some() {
            let depth = self.scopes.depth();
            self.endings.push(ScopedObject {
                depth,
                at: at.clone(),
                of: of.clone(),
            });
        }
    }

    /// Runs the destructors of objects of blocks at least as deep as `depth`; `over`: the blocks
    /// end here.
    pub(super) fn end_objects(&mut self, depth: usize, over: bool, range: &Range<usize>) {
        let ending = self.endings.iter().rev();
        let all: Vec<ScopedObject> = ending.take_while(|e| e.depth >= depth).cloned().collect();
        for ending in &all {
            let known = self.method_of_type(&ending.of.ty, DESTRUCTOR).cloned();
            let own = Qualified {
                constant: false,
                ..ending.of.clone()
            };
            if let Some(known) = known {
                let receiver = Some((ending.at.clone(), own));
                self.call_function(range, range, &known, receiver, &[]);
            }
        }
        if over {
            self.endings.truncate(self.endings.len() - all.len());
        }
    }
}
