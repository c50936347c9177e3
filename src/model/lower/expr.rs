//! Expressions: names, types, operators, calls.
//!
//! # Invariants
//! - Kinds are known as soon as a node exists, so typing and lowering are one pass. `0` alone has no kind yet; where
//!   nothing decides, it is a relation.
//! - A set that stands in a sequence means its identity relation.
//! - The same function applied to the same nodes is lowered once.

use std::rc::Rc;

use super::super::ast::{Binding, Chain, Expr, ExprKind, Ident, Unary};
use super::super::build::Place;
use super::super::ir::{Kind, NodeId};
use super::super::resolve::{CallSite, Env, FunctionBody, Value, kind_word};
use super::{Lowerer, wrong_arity};
use crate::diag::{Diagnostic, Span};

/// How deep functions may call each other.
pub(super) const MAX_CALLS: usize = 64;
/// How deep lowering may recurse, brackets of called functions included.
const MAX_DEPTH: usize = 500;
/// How many expressions are lowered in all, functions counted at each call.
const MAX_STEPS: usize = 2_000_000;

impl Lowerer<'_> {
    /// The value of a definition's right-hand side.
    pub(super) fn binding(&mut self, binding: &Binding, env: &mut Env) -> Value {
        if let Some((what, _)) = binding.body.unsupported() {
            return Value::Unsupported(what.into());
        }
        let Some(params) = &binding.params else { return self.eval(&binding.body, env) };
        let params: Vec<String> = params.iter().map(|p| p.name.clone()).collect();
        if let Some(what) = self.check_names(&binding.body, &params, env) {
            return Value::Unsupported(what);
        }
        let body = FunctionBody::Written { params, body: binding.body.clone() };
        self.new_function(&binding.name.name, body, env.clone())
    }

    /// Reports names in a function's body that mean nothing, called or not. If one means something unsupported, so
    /// does the function, and nothing is reported.
    fn check_names(&mut self, body: &Expr, params: &[String], env: &Env) -> Option<Rc<str>> {
        let mut used: Vec<Ident> = Vec::new();
        let mut bound: Vec<String> = params.to_vec();
        body.walk(&mut |e| {
            match &e.kind {
                ExprKind::Name(name) => used.push(Ident { name: name.clone(), span: e.span }),
                ExprKind::Call(name, _) => used.push(name.clone()),
                ExprKind::Let(bindings, _) => {
                    for b in bindings {
                        bound.push(b.name.name.clone());
                        bound.extend(b.params.iter().flatten().map(|p| p.name.clone()));
                    }
                }
                _ => {}
            }
            true
        });
        let mut unknown = Vec::new();
        for name in used.into_iter().filter(|n| !bound.contains(&n.name)) {
            match self.lookup(&name.name, env) {
                Some((Value::Unsupported(what), _)) => return Some(what),
                Some(_) => {}
                None => unknown.push(name),
            }
        }
        for name in unknown {
            self.unknown_name(&name.name, name.span, env);
        }
        None
    }

    /// The meaning of an expression.
    pub(super) fn eval(&mut self, expr: &Expr, env: &mut Env) -> Value {
        self.steps += 1;
        if self.depth >= MAX_DEPTH || self.steps > MAX_STEPS {
            let message = if self.steps > MAX_STEPS {
                "the model is too large: its functions expand to millions of expressions"
            } else {
                "this expression nests too deeply, the functions that it calls included"
            };
            self.error("too-large", expr.span, env, message);
            return Value::Poison;
        }
        self.depth += 1;
        let value = self.eval_inner(expr, env);
        self.depth -= 1;
        value
    }

    fn eval_inner(&mut self, expr: &Expr, env: &mut Env) -> Value {
        match &expr.kind {
            ExprKind::Name(name) => self.name(name, expr.span, env),
            ExprKind::Universe => Value::Node(self.build.universe()),
            ExprKind::Zero => Value::Zero,
            ExprKind::EmptySet => Value::Node(self.build.empty(Kind::Set)),
            ExprKind::Unary(op, inner) => self.unary(*op, inner, expr, env),
            ExprKind::Chain(Chain::Seq, list) => self.sequence(list, expr, env),
            ExprKind::Chain(Chain::Product, list) => self.product(list, expr, env),
            ExprKind::Chain(op, list) => self.boolean(*op, list, expr, env),
            ExprKind::Call(name, args) => self.call(name, args, expr, env),
            ExprKind::Let(bindings, body) => {
                let depth = env.locals.len();
                let values: Vec<Value> = bindings.iter().map(|b| self.binding(b, env)).collect();
                for (binding, value) in bindings.iter().zip(values) {
                    if let Value::Node(node) = value {
                        self.build.name(node, &binding.name.name);
                    }
                    env.locals.push((binding.name.name.clone(), value));
                }
                let value = self.eval(body, env);
                env.locals.truncate(depth);
                value
            }
            ExprKind::If(_, _, no) => self.eval(no, env),
            ExprKind::Try(first, second) => {
                let mut known = true;
                first.walk(&mut |e| {
                    if let ExprKind::Name(name) = &e.kind {
                        known &= self.lookup(name, env).is_some();
                    }
                    known
                });
                self.eval(if known { first } else { second }, env)
            }
            ExprKind::Unsupported(what, _) => {
                self.unsupported(what, expr.span, None, env);
                Value::Poison
            }
        }
    }

    fn unary(&mut self, op: Unary, inner: &Expr, expr: &Expr, env: &mut Env) -> Value {
        let value = self.eval(inner, env);
        let node = match op {
            Unary::Not => self.node_of(value, inner, env),
            Unary::Identity => self.set_for(value, inner, env, "`[…]` needs a set"),
            _ => self.relation_for(value, inner, env, "this operator needs a relation"),
        };
        let Some(node) = node else { return Value::Poison };
        self.build.place = (env.file, expr.span);
        Value::Node(match op {
            Unary::Not => {
                if !self.monotone(node, inner, env, "under `~`") {
                    return Value::Poison;
                }
                let all = self.build.all(self.build.kind(node));
                self.build.diff(all, node)
            }
            Unary::Identity => self.build.identity(node),
            Unary::Inverse => self.build.inverse(node),
            Unary::Optional => self.build.optional(node),
            Unary::Plus => self.build.plus(node),
            Unary::Star => {
                let plus = self.build.plus(node);
                self.build.optional(plus)
            }
        })
    }

    /// `|`, `&` and `\`: sets with sets, relations with relations.
    fn boolean(&mut self, op: Chain, list: &[Expr], expr: &Expr, env: &mut Env) -> Value {
        let values: Vec<Value> = list.iter().map(|e| self.eval(e, env)).collect();
        let mut typed: Option<(Kind, &Expr)> = None;
        let mut nodes: Vec<Option<NodeId>> = Vec::new();
        let mut poisoned = false;
        for (value, e) in values.into_iter().zip(list) {
            if matches!(value, Value::Zero) {
                nodes.push(None);
                continue;
            }
            let Some(node) = self.node_of(value, e, env) else {
                poisoned = true;
                continue;
            };
            let kind = self.build.kind(node);
            match typed {
                Some((other, first)) if other != kind => {
                    let symbol = match op {
                        Chain::Union => "|",
                        Chain::Inter => "&",
                        _ => "\\",
                    };
                    let message = format!("`{symbol}` joins a {} and a {}", kind_word(other), kind_word(kind));
                    let diagnostic = self
                        .mismatch(e, kind, env, message)
                        .also(first.span, format!("this is a {}", kind_word(other)))
                        .help("`[S]` makes a relation of a set");
                    let diagnostic = self.with_definition(diagnostic, first, env);
                    self.report(diagnostic, env.file);
                    poisoned = true;
                }
                Some(_) => {}
                None => typed = Some((kind, e)),
            }
            nodes.push(Some(node));
        }
        if poisoned {
            return Value::Poison;
        }
        let Some((kind, _)) = typed else { return Value::Zero };
        self.build.place = (env.file, expr.span);
        let empty = self.build.empty(kind);
        let mut result: Option<NodeId> = None;
        for (node, e) in nodes.into_iter().zip(list) {
            let node = node.unwrap_or(empty);
            result = Some(match (result, op) {
                (None, _) => node,
                (Some(left), Chain::Union) => self.build.union(left, node),
                (Some(left), Chain::Inter) => self.build.inter(left, node),
                (Some(left), _) => {
                    if !self.monotone(node, e, env, "on the right of `\\`") {
                        return Value::Poison;
                    }
                    self.build.place = (env.file, expr.span);
                    self.build.diff(left, node)
                }
            });
        }
        result.map_or(Value::Zero, Value::Node)
    }

    fn sequence(&mut self, list: &[Expr], expr: &Expr, env: &mut Env) -> Value {
        // Brackets do not matter in a sequence: flat, identities can restrict the piece beside them.
        let mut factors: Vec<&Expr> = Vec::new();
        let mut todo: Vec<&Expr> = list.iter().rev().collect();
        while let Some(e) = todo.pop() {
            match &e.kind {
                ExprKind::Chain(Chain::Seq, inner) => todo.extend(inner.iter().rev()),
                _ => factors.push(e),
            }
        }
        let mut nodes = Vec::new();
        let mut poisoned = false;
        for e in factors {
            let value = self.eval(e, env);
            match self.node_of(value, e, env) {
                Some(node) => {
                    let node = if self.build.kind(node) == Kind::Set { self.build.identity(node) } else { node };
                    nodes.push(node);
                }
                None => poisoned = true,
            }
        }
        if poisoned {
            return Value::Poison;
        }
        self.build.place = (env.file, expr.span);
        Value::Node(self.build.seq_all(&nodes))
    }

    fn product(&mut self, list: &[Expr], expr: &Expr, env: &mut Env) -> Value {
        let mut sets = Vec::new();
        for e in list {
            let value = self.eval(e, env);
            sets.push(self.set_for(value, e, env, "`*` between operands is the product of two sets"));
        }
        let [Some(a), Some(b)] = sets[..] else {
            if sets.len() > 2 {
                self.error("type-mismatch", expr.span, env, "a product has two sets, not more");
            }
            return Value::Poison;
        };
        self.build.place = (env.file, expr.span);
        Value::Node(self.build.product(a, b))
    }

    // Calls.

    fn call(&mut self, name: &Ident, args: &[Expr], expr: &Expr, env: &mut Env) -> Value {
        let function = match self.lookup(&name.name, env) {
            Some((Value::Function(function), _)) => function,
            Some((Value::Unsupported(what), place)) => {
                self.unsupported(&what, name.span, place, env);
                return Value::Poison;
            }
            Some((Value::Poison, _)) => return Value::Poison,
            Some((_, place)) => {
                let source = self.files[env.file as usize].clone();
                let mut diagnostic = Diagnostic::error(
                    "not-a-function",
                    &source,
                    name.span,
                    format!("`{}` is no function", name.name),
                )
                .label("applied here")
                .help("is an operator missing after it?");
                if let Some((_, span)) = place.filter(|p| p.0 == env.file) {
                    diagnostic = diagnostic.also(span, format!("`{}` is defined here", name.name));
                }
                self.report(diagnostic, env.file);
                return Value::Poison;
            }
            None => {
                if matches!(name.name.as_str(), "newSet" | "newRelation" | "linearisations" | "generate_orders") {
                    self.unsupported(&name.name, name.span, None, env);
                } else {
                    self.unknown_name(&name.name, name.span, env);
                }
                return Value::Poison;
            }
        };
        let values: Vec<Value> = args.iter().map(|a| self.eval(a, env)).collect();
        let wanted = match &function.body {
            FunctionBody::Written { params, .. } => params.len(),
            _ => 1,
        };
        if values.len() != wanted {
            let source = self.files[env.file as usize].clone();
            self.report(wrong_arity(&source, name, wanted, values.len()), env.file);
            return Value::Poison;
        }
        if values.iter().any(|v| matches!(v, Value::Poison)) {
            return Value::Poison;
        }
        let argument = |this: &mut Self, env: &Env| match &function.body {
            FunctionBody::ToId => this.set_for(values[0].clone(), &args[0], env, "`toid` needs a set"),
            _ => this.relation_for(values[0].clone(), &args[0], env, "this function needs a relation"),
        };
        match &function.body {
            FunctionBody::Written { params, body } => self.expand(name, &function, params, body, values, env),
            FunctionBody::Domain | FunctionBody::Range | FunctionBody::ToId => {
                let Some(node) = argument(self, env) else { return Value::Poison };
                self.build.place = (env.file, expr.span);
                Value::Node(match &function.body {
                    FunctionBody::Domain => self.build.domain(node),
                    FunctionBody::Range => self.build.range(node),
                    _ => self.build.identity(node),
                })
            }
        }
    }

    /// The body of a written function over its arguments.
    fn expand(
        &mut self,
        name: &Ident,
        function: &super::Function,
        params: &[String],
        body: &Expr,
        values: Vec<Value>,
        env: &Env,
    ) -> Value {
        let nodes: Option<Vec<NodeId>> =
            values.iter().map(|v| if let Value::Node(node) = v { Some(*node) } else { None }).collect();
        let key = nodes.map(|nodes| (function.id, nodes));
        if let Some(value) = key.as_ref().and_then(|k| self.memo.get(k)) {
            return value.clone();
        }
        if self.calls.len() >= MAX_CALLS {
            self.error("too-many-calls", name.span, env, "functions call each other too deeply");
            return Value::Poison;
        }
        self.calls.push(CallSite { name: function.name.clone(), file: env.file, span: name.span });
        let mut inner = function.env.clone();
        inner.locals.extend(params.iter().cloned().zip(values));
        let value = self.eval(body, &mut inner);
        self.calls.pop();
        if let Some(key) = key {
            self.memo.insert(key, value.clone());
        }
        value
    }

    // Names.

    fn name(&mut self, name: &str, span: Span, env: &mut Env) -> Value {
        self.build.place = (env.file, span);
        match self.lookup(name, env) {
            Some((Value::Unsupported(what), place)) => {
                self.unsupported(&what, span, place, env);
                Value::Poison
            }
            Some((value, _)) => value,
            None => {
                self.unknown_name(name, span, env);
                Value::Poison
            }
        }
    }

    /// What a name means, and where it was defined.
    pub(super) fn lookup(&mut self, name: &str, env: &Env) -> Option<(Value, Option<Place>)> {
        if let Some((_, value)) = env.locals.iter().rev().find(|(n, _)| n == name) {
            return Some((value.clone(), None));
        }
        if let Some(limit) = env.library {
            if let Some(at) = self.library.find(name, limit) {
                return Some(self.library_value(at, env));
            }
            if let Some(at) = self.free.iter().position(|f| f.name == name) {
                let id = super::FreeId(at as u32);
                return Some((Value::Node(self.build.free(id)), Some(self.free[at].span)));
            }
            return self.builtin(name).map(|v| (v, None));
        }
        if let Some(definition) = self.scope.get(name, env.limit) {
            return Some((definition.value.clone(), definition.place));
        }
        if let Some(value) = self.builtin(name) {
            return Some((value, None));
        }
        let at = self.library.find(name, u32::MAX)?;
        Some(self.library_value(at, env))
    }

    /// Base names and what the language itself defines.
    fn builtin(&mut self, name: &str) -> Option<Value> {
        if let Some(base) = self.signature.get(name) {
            return Some(Value::Node(self.build.base(name, base.kind)));
        }
        let body = match name {
            "id" => return Some(Value::Node(self.build.id())),
            "emptyset" => return Some(Value::Node(self.build.empty(Kind::Set))),
            "domain" => FunctionBody::Domain,
            "range" => FunctionBody::Range,
            "toid" => FunctionBody::ToId,
            _ => return None,
        };
        Some(self.new_function(name, body, Env::default()))
    }

    /// A definition of the library, evaluated the first time it is used.
    fn library_value(&mut self, at: u32, user: &Env) -> (Value, Option<Place>) {
        let Some(file) = self.library.file else { return (Value::Poison, None) };
        let binding = self.library.bindings[at as usize].clone();
        let place = (file, binding.name.span);
        if let Some(value) = self.library.known.get(&at) {
            return (value.clone(), Some(place));
        }
        let before = self.diagnostics.len();
        let outer = self.build.place;
        let mut env = Env { limit: 0, library: Some(at), locals: Vec::new(), file };
        let calls = std::mem::take(&mut self.calls);
        let value = self.binding(&binding, &mut env);
        self.calls = calls;
        self.build.place = outer;
        if self.diagnostics.len() > before && user.library.is_some() {
            // The definition that was used first reports it.
            return (Value::Poison, Some(place));
        }
        if self.diagnostics.len() > before {
            // A free relation that it needs is not declared (yet): no fault of the library.
            let causes: Vec<Diagnostic> = self.diagnostics.drain(before..).collect();
            for cause in &causes {
                self.reported.remove(&(cause.id, file, cause.span));
            }
            if let Some(cause) = causes.into_iter().next() {
                let missing = cause.source.map_or(String::new(), |s| s.text[cause.span.range()].to_string());
                let source = self.files[user.file as usize].clone();
                let span = self.build.place.1;
                let diagnostic = Diagnostic::error(
                    "unknown-name",
                    &source,
                    span,
                    format!(
                        "`{}` of the library needs `{missing}`, which is not declared here",
                        binding.name.name
                    ),
                )
                .help(format!("declare it first: `free {missing} : …`"));
                self.report(diagnostic, user.file);
            }
            return (Value::Poison, Some(place));
        }
        if let Value::Node(node) = value {
            self.build.name(node, &binding.name.name);
            self.lets.push((binding.name.name.clone(), node, place));
        }
        self.library.known.insert(at, value.clone());
        (value, Some(place))
    }

    // Kinds.

    /// The node of a value of either kind; `0` alone is the empty relation.
    pub(super) fn node_of(&mut self, value: Value, expr: &Expr, env: &Env) -> Option<NodeId> {
        match value {
            Value::Node(node) => Some(node),
            Value::Zero => Some(self.build.empty(Kind::Rel)),
            Value::Function(function) => {
                let message = format!("`{}` is a function; it needs arguments", function.name);
                self.error("type-mismatch", expr.span, env, &message);
                None
            }
            Value::Unsupported(what) => {
                self.unsupported(&what, expr.span, None, env);
                None
            }
            Value::Poison => None,
        }
    }

    /// The node of a value that must be a relation.
    pub(super) fn relation_for(&mut self, value: Value, expr: &Expr, env: &Env, why: &str) -> Option<NodeId> {
        let node = self.node_of(value, expr, env)?;
        if self.build.kind(node) == Kind::Rel {
            return Some(node);
        }
        let diagnostic = self
            .mismatch(expr, Kind::Set, env, format!("{why}, found a set"))
            .help("`[S]` makes a relation of a set");
        self.report(diagnostic, env.file);
        None
    }

    /// The node of a value that must be a set.
    pub(super) fn set_for(&mut self, value: Value, expr: &Expr, env: &Env, why: &str) -> Option<NodeId> {
        if matches!(value, Value::Zero) {
            return Some(self.build.empty(Kind::Set));
        }
        let node = self.node_of(value, expr, env)?;
        if self.build.kind(node) == Kind::Set {
            return Some(node);
        }
        let diagnostic = self
            .mismatch(expr, Kind::Rel, env, format!("{why}, found a relation"))
            .help("`domain(r)` and `range(r)` make sets of a relation");
        self.report(diagnostic, env.file);
        None
    }

    fn mismatch(&self, expr: &Expr, kind: Kind, env: &Env, message: String) -> Diagnostic {
        let source = &self.files[env.file as usize];
        let diagnostic = Diagnostic::error("type-mismatch", source, expr.span, message)
            .label(format!("this is a {}", kind_word(kind)));
        self.with_definition(diagnostic, expr, env)
    }

    /// Points at the definition of a name, if it is in the same file.
    fn with_definition(&self, diagnostic: Diagnostic, expr: &Expr, env: &Env) -> Diagnostic {
        let ExprKind::Name(name) = &expr.kind else { return diagnostic };
        if env.library.is_some() || env.locals.iter().any(|(n, _)| n == name) {
            return diagnostic;
        }
        match self.scope.get(name, env.limit).and_then(|d| d.place) {
            Some((file, span)) if file == env.file => diagnostic.also(span, format!("`{name}` is defined here")),
            Some((file, span)) => {
                let source = &self.files[file as usize];
                let (line, column) = source.line_column(span.start as usize);
                diagnostic.note(format!("`{name}` is defined at {}:{line}:{column}", source.name))
            }
            None => diagnostic,
        }
    }

    /// Reports a recursive name where the fixpoint would not be least.
    fn monotone(&mut self, node: NodeId, expr: &Expr, env: &Env, place: &str) -> bool {
        if !self.build.is_recursive(node) {
            return true;
        }
        let source = self.files[env.file as usize].clone();
        let diagnostic = Diagnostic::error(
            "not-monotone",
            &source,
            expr.span,
            format!("a name that `let rec` is defining stands {place}"),
        )
        .label("depends on the recursive name")
        .note("a recursive definition must only grow with what it defines, or it has no least solution");
        self.report(diagnostic, env.file);
        false
    }

    // Messages.

    pub(super) fn error(&mut self, id: &'static str, span: Span, env: &Env, message: &str) {
        let source = self.files[env.file as usize].clone();
        self.report(Diagnostic::error(id, &source, span, message), env.file);
    }

    pub(super) fn unsupported(&mut self, what: &str, span: Span, defined: Option<Place>, env: &Env) {
        let source = self.files[env.file as usize].clone();
        let mut diagnostic = Diagnostic::error("not-supported", &source, span, format!("not supported: `{what}`"))
            .label("this construct has no meaning here");
        match defined {
            Some((file, at)) if file == env.file => diagnostic = diagnostic.also(at, "defined with it here"),
            Some((file, at)) => {
                let source = &self.files[file as usize];
                let (line, column) = source.line_column(at.start as usize);
                diagnostic = diagnostic.note(format!("defined with it at {}:{line}:{column}", source.name));
            }
            None => {}
        }
        self.report(diagnostic, env.file);
    }

    fn unknown_name(&mut self, name: &str, span: Span, env: &Env) {
        let source = self.files[env.file as usize].clone();
        let mut names: Vec<&str> = self.scope.names();
        names.extend(env.locals.iter().map(|(n, _)| n.as_str()));
        names.extend(self.signature.names.iter().map(|n| n.name));
        names.extend(self.library.bindings.iter().map(|b| b.name.name.as_str()));
        names.extend(["id", "domain", "range"]);
        let diagnostic = Diagnostic::error("unknown-name", &source, span, format!("unknown name `{name}`"))
            .label("neither defined above nor a base set or relation")
            .did_you_mean(name, names);
        self.report(diagnostic, env.file);
    }
}
