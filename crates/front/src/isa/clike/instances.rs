//! Chooses the function that a call means: among overloads, and among the instances of a template.
//!
//! # Invariants
//! - The names in the arguments of a template are those of the call. Only the function sees the
//!   parameters of its template.
//!
//! # Sources
//! - ISO C++, over.match, temp.deduct.call, dcl.fct.default.
//!
//! # Where we differ
//! - The overload with the most arguments of exactly its parameters' types is chosen. Before a
//!   template goes a function without one. If two overloads are equal, the call is an error.

use std::ops::Range;
use std::rc::Rc;

use super::ast::{
    Base, Expr as Tree, ExprKind, Function, TemplateArgument, TemplateParameter, TypeName,
};
use super::lower::{Known, Lowering};
use super::math;
use super::scope::{Binding, Instance};
use super::types::{Qualified, Type, Value};

impl Lowering<'_, '_> {
    /// The function that a call means, and the parameters of its template.
    pub(super) fn function_for(
        &mut self,
        range: &Range<usize>,
        name: &Range<usize>,
        known: &Known,
        args: &[&Tree],
    ) -> Option<(Rc<Function>, Instance)> {
        let all: Vec<&Rc<Function>> = std::iter::once(&known.function)
            .chain(&known.others)
            .collect();
        let fitting: Vec<_> = all.iter().filter(|f| takes(f, args.len())).collect();
        let function = match fitting.as_slice() {
            [] => {
                self.wrong_number(range, name, known, args.len());
                return None;
            }
            [one] => Rc::clone(one),
            several => {
                let several: Vec<_> = several.iter().map(|f| Rc::clone(f)).collect();
                self.best(range, name, known, &several, args)?
            }
        };
        let instance = self.instance_for(&function, known, name, args, range)?;
        Some(self.specialised(known, function, instance))
    }

    /// Whether a call means a function of the language, though the code has functions of that name:
    /// `fabs` of a number, beside one for vectors.
    pub(super) fn is_call_of_language(&self, word: &str, args: &[Tree]) -> bool {
        let Some(known) = self.functions.get(word).filter(|_| self.env.language.cpp) else {
            return false;
        };
        let makes = word.strip_prefix("make_");
        let is_of_language = math::is_function(word, self.env.language)
            || makes.is_some_and(|vector| self.vector(vector).is_some());
        let suits = |function: &&Rc<Function>| {
            takes(function, args.len())
                && function.params.iter().zip(args).all(|(param, arg)| {
                    param.is_generic()
                        || self.known_structure(param).is_some() == self.is_structure(arg)
                })
        };
        is_of_language && !known.all().any(|function| suits(&function))
    }

    /// The specialisation of a function template for an instance, if the code has one.
    fn specialised(
        &mut self,
        known: &Known,
        function: Rc<Function>,
        instance: Instance,
    ) -> (Rc<Function>, Instance) {
        if function.template.is_empty() {
            return (function, instance);
        }
        let own = instance[instance.len() - function.template.len()..].to_vec();
        for special in &known.special {
            let given = special.specialises.as_deref().unwrap_or_default();
            if self.are_arguments(&function.template, given, &own) {
                let before = instance.len() - own.len();
                return (special.clone(), instance[..before].to_vec());
            }
        }
        (function, instance)
    }

    fn wrong_number(
        &mut self,
        range: &Range<usize>,
        name: &Range<usize>,
        known: &Known,
        given: usize,
    ) {
        let word = match (&known.class, &known.function.constructs) {
            (Some(class), Some(_)) => class,
            _ => self.str(name),
        };
        let message = match known.others.is_empty() {
            true => format!(
                "`{word}` takes {} arguments, {given} given",
                known.function.params.len()
            ),
            false => format!("no `{word}` takes {given} arguments"),
        };
        self.error("wrong-operands", range, message, |d| {
            d.label("expected an argument per parameter")
        });
    }

    /// The overload that suits the types of the arguments best.
    fn best(
        &mut self,
        range: &Range<usize>,
        name: &Range<usize>,
        known: &Known,
        all: &[Rc<Function>],
        args: &[&Tree],
    ) -> Option<Rc<Function>> {
        let given: Vec<Type> = args.iter().map(|arg| self.type_given(arg)).collect();
        let mut ranked: Vec<(usize, (bool, bool), &Rc<Function>)> = Vec::new();
        for function in all {
            let errors = self.sink.errors();
            let Some((instance, _)) = self.deduced_instance(function, known, name, args) else {
                continue;
            };
            let rank = self.in_instance(&instance, |l| {
                let mut rank = Some(0);
                for (param, ty) in function.params.iter().zip(&given) {
                    if param.is_generic() || param.is_function_pointer() {
                        continue;
                    }
                    let of = l.named_type(param).map(|of| decayed(of.ty));
                    rank = rank.and_then(|all| Some(all + suits(&of?, ty)?));
                }
                rank
            });
            if self.sink.errors() > errors {
                return None;
            }
            if let Some(rank) = rank {
                let preferred = (function.template.is_empty(), !function.is_of_pack());
                ranked.push((rank, preferred, function));
            }
        }
        let best = ranked.iter().map(|r| (r.0, r.1)).max();
        let mut first = ranked.iter().filter(|r| Some((r.0, r.1)) == best);
        match (first.next(), first.next()) {
            (Some(one), None) => Some(Rc::clone(one.2)),
            (one, _) => {
                let word = self.str(name);
                let message = match one {
                    None => format!("no `{word}` takes arguments of these types"),
                    Some(_) => format!("two functions `{word}` suit these arguments alike"),
                };
                self.error("wrong-operands", range, message, |d| {
                    d.label("expected arguments of the types of one function")
                        .help("write a cast")
                });
                None
            }
        }
    }

    /// The type of an argument, as a parameter by value has it.
    fn type_given(&mut self, arg: &Tree) -> Type {
        // A closure has no type with a name.
        if self.is_closure(arg) {
            return Type::Void;
        }
        decayed(self.unevaluated(arg).ty)
    }

    /// Evaluates types inside of an instance of a template.
    pub(super) fn in_instance<R>(
        &mut self,
        instance: &Instance,
        f: impl FnOnce(&mut Self) -> R,
    ) -> R {
        if instance.is_empty() {
            return f(self);
        }
        let base = self.scopes.enter_function();
        for (word, binding) in instance {
            self.scopes.bind(word, binding.clone());
        }
        let result = f(self);
        self.scopes.leave_function(base);
        result
    }

    /// The parameters of a template for a call; reports those that nothing says.
    pub(super) fn instance_for(
        &mut self,
        function: &Function,
        known: &Known,
        name: &Range<usize>,
        args: &[&Tree],
        range: &Range<usize>,
    ) -> Option<Instance> {
        let (instance, own) = self.deduced_instance(function, known, name, args)?;
        if let Some(open) = function.template.get(own) {
            let (word, of) = (self.str(&open.name), self.str(name));
            let message = format!("nothing says what `{word}` of `{of}` is");
            self.error("wrong-operands", range, message, |d| {
                d.label("expected the arguments of the template")
                    .help(format!("write them, as in `{of}<int>(…)`"))
            });
            return None;
        }
        Some(instance)
    }

    /// The parameters of a template for a call, as far as they are known, and how many of the
    /// function's own are; `None`: an error. Those of its class come first.
    fn deduced_instance(
        &mut self,
        function: &Function,
        known: &Known,
        name: &Range<usize>,
        args: &[&Tree],
    ) -> Option<(Instance, usize)> {
        let class = known.class.as_deref();
        let mut instance = class.map_or_else(Instance::new, |class| self.seen_in_class(class));
        let unit = self.unit;
        let given = unit.instances.of_calls.get(&name.start);
        for (n, param) in function.template.iter().enumerate() {
            let written = given.and_then(|given| given.get(n));
            let binding = match written {
                Some(argument) => Some(self.template_argument(param, argument, &instance, false)?),
                None => match self.deduced_type(function, param, args) {
                    Some(of) => Some(Binding::Type(of)),
                    None => match &param.default {
                        Some(of) => Some(self.template_argument(param, of, &instance, true)?),
                        None => None,
                    },
                },
            };
            let Some(binding) = binding else {
                return Some((instance, n));
            };
            instance.push((self.str(&param.name).to_owned(), binding));
        }
        Some((instance, function.template.len()))
    }

    /// The meaning of an argument of a template; `inside`: the code of the template writes it.
    pub(super) fn template_argument(
        &mut self,
        param: &TemplateParameter,
        argument: &TemplateArgument,
        instance: &Instance,
        inside: bool,
    ) -> Option<Binding> {
        match (&param.of, argument) {
            (None, TemplateArgument::Type(of)) => {
                let of = match inside {
                    true => self.in_instance(instance, |l| l.named_type(of)),
                    false => self.named_type(of),
                };
                of.map(Binding::Type)
            }
            (Some(_), TemplateArgument::Value(value)) if param.words => {
                Some(Binding::Spelled(self.spelled_range(&value.range)))
            }
            (Some(of), TemplateArgument::Value(value)) if of.is_function_pointer() => {
                let found = match self.is_closure(value) {
                    true => self.closure_of(value),
                    false => None,
                };
                if found.is_none() {
                    self.refuse_function_pointer(&value.range);
                }
                found.map(Binding::Closure)
            }
            (Some(of), TemplateArgument::Value(value)) => {
                let of = self.in_instance(instance, |l| l.named_type(of))?;
                let what = "the argument of a template";
                fn is_constant(ty: &Type) -> bool {
                    ty.promoted().is_some() || matches!(ty, Type::Enum(_))
                }
                let n = match inside {
                    true => self.in_instance(instance, |l| l.fixed_as(value, what, is_constant)),
                    false => self.fixed_as(value, what, is_constant),
                }?;
                let value = Value::int(n).converted(&of.ty);
                Some(Binding::Constant(Value {
                    fixed: true,
                    ..value
                }))
            }
            _ => {
                let word = self.str(&param.name);
                let (is, expected) = match param.of {
                    None => ("a type", "expected a type for it"),
                    Some(_) => ("a constant", "expected a constant for it"),
                };
                let message = format!("`{word}` of the template is {is}");
                self.error("wrong-operands", &param.name, message, |d| {
                    d.label(expected)
                });
                None
            }
        }
    }

    /// The type that the arguments of a call give a parameter of the template.
    fn deduced_type(
        &mut self,
        function: &Function,
        param: &TemplateParameter,
        args: &[&Tree],
    ) -> Option<Qualified> {
        let word = self.str(&param.name);
        for (of, arg) in function.params.iter().zip(args) {
            if let Some(found) = self.deduced_in_class(of, param, arg) {
                return Some(found);
            }
            if !self.is_named(of, word) || of.is_function_pointer() {
                continue;
            }
            // Such arguments are bound as they are: their type has no name.
            if self.is_closure(arg) || self.group_of(arg).is_some() {
                return Some(Type::Void.into());
            }
            let ty = self.unevaluated(arg).ty;
            if let Some(found) = within(of, ty) {
                return Some(found);
            }
        }
        None
    }

    /// The type that an argument of type `S<int>` gives `T` for a parameter `S<T>`.
    fn deduced_in_class(
        &mut self,
        of: &TypeName,
        param: &TemplateParameter,
        arg: &Tree,
    ) -> Option<Qualified> {
        let Base::Instance(class, given) = &of.specifiers.base else {
            return None;
        };
        let word = self.str(&param.name);
        let at = given.iter().position(|argument| match argument {
            TemplateArgument::Type(of) => self.is_named(of, word),
            TemplateArgument::Value(_) => false,
        })?;
        let mut ty = self.unevaluated(arg).ty;
        if let Type::Pointer(to) | Type::Array(to, _) = &ty {
            ty = to.ty.clone();
        }
        let name = self.str(class).to_owned();
        let Type::Struct(structure) = &ty else {
            return None;
        };
        let same = structure.name.starts_with(&format!("{name}<"));
        match self.class_of(&ty)?.instance.get(at).filter(|_| same)? {
            (_, Binding::Type(of)) => Some(of.clone()),
            _ => None,
        }
    }

    /// Whether an argument is a lambda or a function.
    pub(super) fn is_closure(&self, arg: &Tree) -> bool {
        matches!(arg.kind, ExprKind::Lambda(_))
            || matches!(self.binding(arg), Some(Binding::Closure(_)))
            || self.is_function(arg)
    }

    /// The place of a word of the library: that of the argument, where a parameter stands for it.
    pub(super) fn spelled_range(&self, range: &Range<usize>) -> Range<usize> {
        match self.scopes.find(self.str(range)) {
            Some(Binding::Spelled(of)) => of.clone(),
            _ => range.clone(),
        }
    }

    fn is_named(&self, of: &TypeName, word: &str) -> bool {
        matches!(&of.specifiers.base, Base::Named(range) if self.str(range) == word)
    }

    /// Binds the parameters of a kernel's template: by an explicit instantiation, by the memory
    /// with the names of the kernel's parameters, or by defaults.
    pub(super) fn bind_template_of_kernel(&mut self, kernel: &Function) -> bool {
        let unit = self.unit;
        let name = self.str(&kernel.result.declarator.name);
        let given = unit.instances.explicit.get(name);
        let mut instance = Instance::new();
        for (n, param) in kernel.template.iter().enumerate() {
            let word = self.str(&param.name);
            let argument = given.and_then(|given| given.get(n));
            let binding = match argument {
                Some(argument) => self.template_argument(param, argument, &instance, false),
                None => match (self.type_of_memory(kernel, word), &param.default) {
                    (Some(of), _) if param.of.is_none() => Some(Binding::Type(of)),
                    (_, Some(of)) => self.template_argument(param, of, &instance, true),
                    _ => {
                        let message = format!("nothing says what `{word}` of `{name}` is");
                        self.error("unbound-parameter", &param.name, message, |d| {
                            d.label("expected an instance of the template")
                                .help(format!(
                                    "add `template __global__ void {name}<…>(…);` behind the kernel"
                                ))
                        });
                        None
                    }
                },
            };
            let Some(binding) = binding else {
                return false;
            };
            instance.push((word.to_owned(), binding));
        }
        for (word, binding) in &instance {
            self.scopes.bind(word, binding.clone());
        }
        true
    }

    /// The type of the memory with the name of a kernel's parameter of type `word *`.
    fn type_of_memory(&self, kernel: &Function, word: &str) -> Option<Qualified> {
        kernel.params.iter().find_map(|param| {
            let pointer = param.declarator.pointers.len() + param.declarator.arrays.len() == 1;
            let loc = self.location(self.str(&param.declarator.name))?;
            (pointer && self.is_named(param, word)).then(|| self.of_location(loc))
        })
    }
}

/// Whether a function takes that number of arguments.
fn takes(function: &Function, given: usize) -> bool {
    let defaults = function.defaults.iter().rev().take_while(|d| d.is_some());
    let most = function.params.len();
    (most - defaults.count()..=most).contains(&given)
}

/// An array becomes a pointer.
fn decayed(ty: Type) -> Type {
    match ty {
        Type::Array(of, _) => Type::Pointer(of),
        ty => ty,
    }
}

/// The type inside of an argument's type: where a parameter `const T *` takes an `int *`, `int`.
fn within(param: &TypeName, mut ty: Type) -> Option<Qualified> {
    let levels = param.declarator.pointers.len() + param.declarator.arrays.len();
    if levels == 0 {
        let whole = param.declarator.reference;
        return Some(if whole { ty } else { decayed(ty) }.into());
    }
    let mut of: Option<Qualified> = None;
    for _ in 0..levels {
        let (Type::Pointer(to) | Type::Array(to, _)) = ty else {
            return None;
        };
        ty = to.ty.clone();
        of = Some(Qualified::clone(&to));
    }
    let said = param.specifiers.of_base;
    of.map(|of| Qualified {
        constant: of.constant && !said.constant,
        volatile: of.volatile && !said.volatile,
        space: None,
        ..of
    })
}

/// How well a value of type `given` suits a parameter; `None`: it needs a cast.
fn suits(param: &Type, given: &Type) -> Option<usize> {
    fn arithmetic(ty: &Type) -> bool {
        matches!(ty, Type::Bool | Type::Int(_) | Type::Float(_))
    }
    match (param, given) {
        (a, b) if a == b => Some(3),
        (Type::Pointer(a), Type::Pointer(b)) if a.ty == b.ty && b.lost(a).is_none() => Some(2),
        (Type::Pointer(a), Type::Pointer(b)) if a.ty == Type::Void && b.lost(a).is_none() => {
            Some(1)
        }
        (Type::Int(a), b) if b.promoted() == Some(*a) => Some(2),
        (Type::Float(a), Type::Float(b)) if a.bits > b.bits => Some(2),
        (a, b) if arithmetic(a) && (arithmetic(b) || b.promoted().is_some()) => Some(1),
        _ => None,
    }
}
