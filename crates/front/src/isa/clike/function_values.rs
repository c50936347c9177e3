//! Parses pointers to functions, and follows them where the code says which function they point to.
//!
//! # Invariants
//! - A pointer to a function is bound to its function, and has no value: code may call it, give it
//!   to a function or a template of the code, and take it from a table by a constant index.
//! - The lowering refuses any other use at its place.
//!
//! # Sources
//! - C11, 6.3.2.1 and 6.7.6.3; ISO C++, conv.func, temp.arg.nontype; CUDA C++ Programming Guide,
//!   *Function Pointers*.

use std::ops::Range;
use std::rc::Rc;

use super::ast::{
    Base, Declaration, Declarator, Declared, Expr as Tree, ExprKind, Initial, Specifiers, Storage,
    TypeName,
};
use super::lex::Tok;
use super::lower::{Known, Lowering};
use super::parse::{Parsed, Parser};
use super::scope::{Binding, Instance, LambdaValue};

impl TypeName {
    /// Whether this is the type of a pointer to a function.
    pub(super) fn is_function_pointer(&self) -> bool {
        is_function_pointer(&self.specifiers, &self.declarator)
    }
}

/// Whether a declared name is a pointer to a function.
fn is_function_pointer(specifiers: &Specifiers, declarator: &Declarator) -> bool {
    declarator.calls
        || (matches!(specifiers.base, Base::Function(_)) && declarator.pointers.is_empty())
}

impl Parser<'_, '_> {
    /// Whether `(*f)(` or `(*)(` begins `n` tokens ahead.
    pub(super) fn points_to_function(&self, mut n: usize) -> bool {
        let begins = [self.tokens.peek_at(n), self.tokens.peek_at(n + 1)];
        if self.language.row().regions || begins != [Tok::Punct("("), Tok::Punct("*")] {
            return false;
        }
        n += 2;
        while !matches!(self.tokens.peek_at(n), Tok::Punct(")") | Tok::End) {
            let known = matches!(
                self.tokens.peek_at(n),
                Tok::Name | Tok::Int(..) | Tok::Punct("[" | "]")
            );
            if !known {
                return false;
            }
            n += 1;
        }
        self.tokens.peek_at(n + 1) == Tok::Punct("(")
    }

    /// `(*f[2])(int)`, and `(*)(int) f` where a name for the type was replaced by it.
    pub(super) fn function_pointer(&mut self, all: &mut Declarator) -> Parsed<()> {
        self.expect("(")?;
        self.expect("*")?;
        while self.word() == "const" {
            self.next();
        }
        all.calls = true;
        if self.tokens.peek() == Tok::Name {
            all.name = self.new_name("the name of a pointer")?;
            self.array_sizes(all)?;
        }
        self.expect(")")?;
        self.parenthesised()?;
        if all.name.is_empty() && self.tokens.peek() == Tok::Name {
            all.name = self.new_name("the name of a pointer")?;
            self.array_sizes(all)?;
        }
        if !all.name.is_empty() {
            let word = self.str(&all.name);
            self.variables.insert(word);
        }
        Ok(())
    }
}

impl Lowering<'_, '_> {
    /// Reports a pointer to a function where a type with values is expected.
    pub(super) fn refuse_function_pointer(&mut self, range: &Range<usize>) {
        self.error(
            "unsupported",
            range,
            "a pointer to a function is not followed here",
            |d| {
                d.label("the code does not say which function it points to")
                    .help(
                        "declare it in a function with its value, give it to a function of the \
                        code, or call the function by its name",
                    )
            },
        );
    }

    /// Lowers a declaration of pointers to functions; `false`: it declares something else.
    pub(super) fn declares_functions(&mut self, declaration: &Declaration) -> bool {
        let specifiers = &declaration.specifiers;
        let points = |d: &Declared| is_function_pointer(specifiers, &d.declarator);
        if !declaration.all.iter().any(points) {
            return false;
        }
        if specifiers.has(Storage::Typedef).is_some() {
            return true;
        }
        for declared in &declaration.all {
            self.function_variable(specifiers, declared);
        }
        true
    }

    /// `int (*f)(int) = add;`, `op_t table[] = { add, sub };`
    fn function_variable(&mut self, specifiers: &Specifiers, declared: &Declared) {
        let name = &declared.declarator.name;
        let constant = specifiers.of_base.constant
            || specifiers.has(Storage::Constexpr).is_some()
            || !self.outside;
        let shared = specifiers.has(Storage::Shared).is_some();
        let table = !declared.declarator.arrays.is_empty();
        let known = is_function_pointer(specifiers, &declared.declarator) && constant && !shared;
        let functions: Option<Vec<Rc<LambdaValue>>> = match &declared.value {
            _ if !known => None,
            Some(Initial::Value(value)) if !table => self.target_of(value).map(|of| vec![of]),
            Some(Initial::List(all, _)) => all
                .iter()
                .map(|value| match value {
                    Initial::Value(value) => self.target_of(value),
                    _ => None,
                })
                .collect(),
            _ => None,
        };
        let binding = match functions {
            Some(all) if table => Binding::Closures(all.into()),
            Some(all) if all.len() == 1 => Binding::Closure(all[0].clone()),
            _ => return self.refuse_function_pointer(name),
        };
        match self.outside {
            true => self.scopes.bind_outside(self.str(name), binding),
            false => self.bind(name, binding),
        }
    }

    /// The function that an expression denotes; `None`: it denotes none.
    fn target_of(&mut self, tree: &Tree) -> Option<Rc<LambdaValue>> {
        match self.is_closure(tree) {
            true => self.closure_of(tree),
            false => None,
        }
    }

    /// The function of the code that a name denotes, unless the name means something else here.
    fn function_named(&self, tree: &Tree) -> Option<Known> {
        let ExprKind::Name = &tree.kind else {
            return None;
        };
        let word = self.str(&tree.range);
        if self.scopes.find(word).is_some() || self.location(word).is_some() {
            return None;
        }
        let of_class = || self.function_of_class(word).map(|(known, _)| known);
        self.functions.get(word).cloned().or_else(of_class)
    }

    /// Whether an expression denotes a function by its name, its address or its place in a table.
    pub(super) fn is_function(&self, tree: &Tree) -> bool {
        match &tree.kind {
            ExprKind::AddressOf(of) => self.function_named(of).is_some(),
            ExprKind::Deref(of) => {
                self.is_function(of) || matches!(self.binding(of), Some(Binding::Closure(_)))
            }
            ExprKind::Index(of, _) => matches!(self.binding(of), Some(Binding::Closures(_))),
            _ => self.function_named(tree).is_some(),
        }
    }

    /// The function that an expression denotes by its name, its address or its place in a table.
    pub(super) fn function_value(&mut self, tree: &Tree) -> Option<Rc<LambdaValue>> {
        match &tree.kind {
            ExprKind::AddressOf(of) => self.function_value(of),
            ExprKind::Deref(of) => match self.binding(of) {
                Some(Binding::Closure(closure)) => Some(closure.clone()),
                _ => self.function_value(of),
            },
            ExprKind::Index(of, at) => {
                let Some(Binding::Closures(all)) = self.binding(of).cloned() else {
                    return None;
                };
                let index = self.scalar(at).constant();
                let index = index.and_then(|n| usize::try_from(n).ok());
                let found = index.and_then(|n| all.get(n).cloned());
                if found.is_none() {
                    self.refuse_function_pointer(&tree.range);
                }
                found
            }
            _ => self.function_by_name(tree),
        }
    }

    fn function_by_name(&mut self, tree: &Tree) -> Option<Rc<LambdaValue>> {
        let known = self.function_named(tree)?;
        let range = &tree.range;
        if known.all().count() > 1 {
            let message = format!("several functions are called `{}`", self.str(range));
            self.error("unsupported", range, message, |d| {
                d.label("the type of the pointer would choose one of them")
                    .help("give the function another name, or call it in a lambda")
            });
            return None;
        }
        let function = known.function.clone();
        let sees = match function.template.is_empty() {
            true => Instance::new(),
            false => self.instance_for(&function, &known, range, &[], range)?,
        };
        Some(Rc::new(LambdaValue {
            function,
            sees,
            touches: known.touches,
            class: known.class,
        }))
    }
}
