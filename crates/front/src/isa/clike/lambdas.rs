//! Parses lambdas, and lowers them to the names that they see.
//!
//! # Invariants
//! - A closure is a function with bindings, and no value: code may call it, copy it and give it to
//!   a function of the code.
//! - A capture by reference sees later changes; a capture by value is a copy of its own.
//!
//! # Sources
//! - ISO C++, expr.prim.lambda.

use std::collections::HashSet;
use std::ops::Range;
use std::rc::Rc;

use super::ast::{
    Base, Capture, Declarator, Expr as Tree, ExprKind, Function, Lambda, Qualifiers, Specifiers,
    Stmt, StmtKind,
};
use super::inline::Callee;
use super::lex::Tok;
use super::lower::Lowering;
use super::parse::{Parsed, Parser};
use super::place::Place;
use super::scope::{Binding, LambdaValue, Variable};
use super::types::{Qualified, Type, Value};
use program::{Expr, Op, Space};

impl Parser<'_, '_> {
    /// `[&](int n) -> int { … }`
    pub(super) fn lambda(&mut self) -> Parsed<Tree> {
        let start = self.next().start;
        let (default, captures) = self.captures()?;
        let name = start..self.tokens.last().range.end;
        self.behind_parameters()?;
        let (params, defaults) = match self.eat("(") {
            true => self.parameters()?,
            false => (Vec::new(), Vec::new()),
        };
        self.behind_parameters()?;
        let result = self.result_of(
            Specifiers {
                base: Base::Auto,
                of_base: Qualifiers::default(),
                storage: Vec::new(),
                range: name.clone(),
            },
            Declarator {
                name,
                ..Declarator::default()
            },
        )?;
        if self.tokens.peek() != Tok::Punct("{") {
            return self.unexpected("`{` and the body of the lambda");
        }
        let body = self.nested(Self::body)?;
        let function = Function {
            result,
            params,
            defaults,
            template: Vec::new(),
            specialises: None,
            constant: false,
            constructs: None,
            body,
        };
        let lambda = Lambda {
            default,
            captures,
            function: function.into(),
        };
        let range = start..self.tokens.last().range.end;
        self.node(ExprKind::Lambda(lambda.into()), range, 0)
    }

    /// `&, n, &m]`, behind the `[`.
    fn captures(&mut self) -> Parsed<(Option<bool>, Vec<Capture>)> {
        let (mut default, mut all) = (None, Vec::new());
        while !self.eat("]") {
            let ends = matches!(self.tokens.peek_at(1), Tok::Punct("," | "]"));
            match self.tokens.peek() {
                Tok::Punct(sign @ ("&" | "=")) if ends => {
                    default = Some(sign == "&");
                    self.next();
                }
                Tok::Punct("*") => drop(self.next()),
                _ => {
                    let reference = self.eat("&");
                    if self.tokens.peek() != Tok::Name {
                        return self.unexpected("a name that the lambda captures");
                    }
                    let name = self.next();
                    let value = match self.eat("=") {
                        true => Some(self.expression()?),
                        false => None,
                    };
                    all.push(Capture {
                        name,
                        reference,
                        value,
                    });
                }
            }
            if !self.eat(",") && self.tokens.peek() != Tok::Punct("]") {
                return self.unexpected("`]`");
            }
        }
        Ok((default, all))
    }
}

impl Lowering<'_, '_> {
    /// The closure that an expression denotes; `None`: it denotes none.
    pub(super) fn closure_of(&mut self, tree: &Tree) -> Option<Rc<LambdaValue>> {
        match &tree.kind {
            ExprKind::Lambda(lambda) => Some(self.closure(lambda)),
            ExprKind::Call(name, args) if super::words::bare(self.str(name)) == "move" => {
                match args.as_slice() {
                    [arg] => self.closure_of(arg),
                    _ => None,
                }
            }
            _ => match self.binding(tree) {
                Some(Binding::Closure(closure)) => Some(closure.clone()),
                _ => self.function_value(tree),
            },
        }
    }

    /// Makes a closure: copies what the lambda captures by value.
    fn closure(&mut self, lambda: &Rc<Lambda>) -> Rc<LambdaValue> {
        let mut used = HashSet::new();
        let text = self.unit.text.as_str();
        for stmt in &lambda.function.body {
            names_in(stmt, &mut |range| {
                used.insert(&text[range.clone()]);
            });
        }
        let mut sees = self.scopes.own();
        for (word, binding) in &mut sees {
            let listed = lambda.captures.iter().find(|c| self.str(&c.name) == word);
            let by_value = match listed {
                Some(capture) => !capture.reference && capture.value.is_none(),
                None => lambda.default == Some(false) && used.contains(word.as_str()),
            };
            if by_value && let Some(copy) = self.copied(word, binding, &lambda.function) {
                *binding = copy;
            }
        }
        for capture in &lambda.captures {
            let word = self.str(&capture.name).to_owned();
            let Some(value) = &capture.value else {
                continue;
            };
            let binding = match capture.reference {
                true => self.place(value).map(|place| match place {
                    Place::Register(variable) => Binding::Register(variable),
                    Place::Memory(addr, of) => Binding::Memory(self.stable(addr), of),
                }),
                false => {
                    let value = self.scalar(value);
                    Some(self.variable_of(&word, value))
                }
            };
            sees.retain(|(name, _)| *name != word);
            sees.extend(binding.map(|binding| (word, binding)));
        }
        Rc::new(LambdaValue {
            touches: self.touches_of_lambda(&lambda.function, &sees),
            class: None,
            function: lambda.function.clone(),
            sees,
        })
    }

    fn variable_of(&mut self, word: &str, value: Value) -> Binding {
        let reg = self.hidden_register(word, &value.ty);
        self.push(Op::Assign {
            dst: reg,
            value: value.expr,
        });
        Binding::Register(Variable {
            reg,
            of: value.ty.into(),
            known: None,
        })
    }

    /// A copy of a variable of the thread; `None`: the name means something that has no copies.
    fn copied(&mut self, word: &str, binding: &Binding, function: &Function) -> Option<Binding> {
        match binding {
            Binding::Register(variable) if variable.known.is_none() => {
                let value = Value::new(Expr::Reg(variable.reg), variable.of.ty.clone());
                Some(self.variable_of(word, value))
            }
            Binding::Memory(addr, of) => {
                let of_thread = match addr {
                    Expr::Address(loc) => self.symbols.object(*loc).1.space == Space::Local,
                    _ => true,
                };
                if !of_thread || word == "this" {
                    return None;
                }
                if of.word().is_some() {
                    let value = self.read(Place::Memory(addr.clone(), of.clone()));
                    return Some(self.variable_of(word, value));
                }
                let own = Qualified {
                    constant: false,
                    ..of.clone()
                };
                let name = &function.result.declarator.name;
                let at = self.unnamed(word, &own, name)?;
                self.copy_members(at.clone(), own, addr.clone(), of.clone(), name);
                Some(Binding::Memory(at, of.clone()))
            }
            _ => None,
        }
    }

    /// Calls a closure.
    pub(super) fn call_closure(
        &mut self,
        range: &Range<usize>,
        closure: &LambdaValue,
        args: &[&Tree],
    ) -> Value {
        let wanted = closure.function.params.len();
        let least = wanted - closure.function.defaults.iter().flatten().count();
        if !(least..=wanted).contains(&args.len()) {
            let message = format!(
                "this function takes {wanted} arguments, {} given",
                args.len()
            );
            self.error("wrong-operands", range, message, |d| {
                d.label("expected an argument per parameter")
            });
            return self.nothing();
        }
        let callee = Callee {
            function: closure.function.clone(),
            instance: closure.sees.clone(),
            receiver: None,
            class: closure.class.clone(),
        };
        let (start, errors) = (self.code.len(), self.sink.errors());
        let value = self.call_callee(range, callee, args);
        match closure.sees.is_empty() {
            true => self.known_result(start, errors, value),
            false => value,
        }
    }

    /// Calls what an expression gives: a lambda, or an object with `operator()`.
    pub(super) fn invoke(&mut self, tree: &Tree, of: &Tree, args: &[Tree]) -> Value {
        let args: Vec<&Tree> = args.iter().collect();
        if let Some(closure) = self.closure_of(of) {
            return self.call_closure(&tree.range, &closure, &args);
        }
        if let Some(value) = self.call_of_object(&tree.range, of, &args) {
            return value;
        }
        self.error("wrong-operand", &of.range, "this is nothing to call", |d| {
            d.label("expected a function, a lambda or an object with `operator()`")
        });
        self.nothing()
    }

    /// A lambda as a value.
    pub(super) fn lambda_as_value(&mut self, tree: &Tree) -> Value {
        self.error(
            "unsupported",
            &tree.range,
            "a lambda is not a value here",
            |d| {
                d.label("expected a call of it, or `auto f = …`")
                    .help("give it to a function of the code, or call it where it stands")
            },
        );
        Value::new(Expr::Const(0), Type::Void)
    }
}

/// Calls `f` with the place of each name in a statement.
fn names_in(stmt: &Stmt, f: &mut dyn FnMut(&Range<usize>)) {
    match &stmt.kind {
        StmtKind::Function(Some(function)) => {
            function.body.iter().for_each(|stmt| names_in(stmt, f));
        }
        _ => stmt.each_expr(&mut |tree| names_in_expression(tree, f)),
    }
}

fn names_in_expression(tree: &Tree, f: &mut dyn FnMut(&Range<usize>)) {
    match &tree.kind {
        ExprKind::Name => f(&tree.range),
        ExprKind::Call(name, _) => f(name),
        ExprKind::Lambda(lambda) => {
            for stmt in &lambda.function.body {
                names_in(stmt, f);
            }
        }
        _ => {}
    }
    for part in tree.parts() {
        names_in_expression(part, f);
    }
}
