//! Expressions: names, types, operators, calls.
//!
//! # Invariants
//! - A node's kind is known when it is created, so typing and lowering are one pass. Only `0` has
//!   no kind; without context it is a relation.
//! - A set in a sequence denotes its identity relation.
//! - A function applied to the same nodes is lowered once.

use super::super::ast::{CatExpr, CatExprKind, ChainOp, Ident, LetBinding, UnaryOp};
use super::super::ir::{Kind, NodeId};
use super::super::resolve::{CallSite, FunctionBody, NameEnv, NameValue, kind_word};
use super::{ClausePart, Lowerer, wrong_arity};
use diag::Diagnostic;

/// The limit on nested function calls.
pub(super) const MAX_CALLS: usize = 64;
/// The limit on recursion while lowering; brackets of called functions count.
const MAX_DEPTH: usize = 500;
/// The limit on lowered expressions; functions count at each call.
const MAX_STEPS: usize = 2_000_000;

impl Lowerer<'_> {
    /// The value of a definition's right-hand side.
    pub(super) fn binding(&mut self, binding: &LetBinding, env: &mut NameEnv) -> NameValue {
        if let Some((what, _)) = binding.body.unsupported() {
            return NameValue::Unsupported(what.into());
        }
        let Some(params) = &binding.params else {
            return self.eval(&binding.body, env);
        };
        let params: Vec<String> = params.iter().map(|p| p.name.clone()).collect();
        if let Some(what) = self.check_names(&binding.body, &params, env) {
            return NameValue::Unsupported(what);
        }
        let body = FunctionBody::Written {
            params,
            body: binding.body.clone(),
        };
        self.new_function(&binding.name.name, body, env.clone())
    }

    /// The meaning of an expression.
    pub(super) fn eval(&mut self, expr: &CatExpr, env: &mut NameEnv) -> NameValue {
        self.steps += 1;
        if self.depth >= MAX_DEPTH || self.steps > MAX_STEPS {
            let message = if self.steps > MAX_STEPS {
                "the model is too large: its functions expand to over a million expressions"
            } else {
                "this expression nests too deeply, the functions that it calls included"
            };
            self.error("too-large", expr.span, env, message);
            return NameValue::Poison;
        }
        self.depth += 1;
        let value = self.eval_inner(expr, env);
        self.depth -= 1;
        value
    }

    fn eval_inner(&mut self, expr: &CatExpr, env: &mut NameEnv) -> NameValue {
        match &expr.kind {
            CatExprKind::Name(name) => self.name(name, expr.span, env),
            CatExprKind::Universe => NameValue::Node(self.build.universe()),
            CatExprKind::Zero => NameValue::Zero,
            CatExprKind::EmptySet => NameValue::Node(self.build.empty(Kind::Set)),
            CatExprKind::Unary(op, inner) => self.unary(*op, inner, expr, env),
            CatExprKind::Chain(ChainOp::Seq, list) => self.sequence(list, expr, env),
            CatExprKind::Chain(ChainOp::Product, list) => self.product(list, expr, env),
            CatExprKind::Chain(op, list) => self.boolean(*op, list, expr, env),
            CatExprKind::Call(name, args) => self.call(name, args, expr, env),
            CatExprKind::Let(bindings, body) => {
                let depth = env.locals.len();
                let values: Vec<NameValue> =
                    bindings.iter().map(|b| self.binding(b, env)).collect();
                for (binding, value) in bindings.iter().zip(values) {
                    if let NameValue::Node(node) = value {
                        self.build.name(node, &binding.name.name);
                    }
                    env.locals.push((binding.name.name.clone(), value));
                }
                let value = self.eval(body, env);
                env.locals.truncate(depth);
                value
            }
            CatExprKind::If(_, _, no) => self.eval(no, env),
            CatExprKind::Try(first, second) => {
                let mut known = true;
                first.walk(&mut |e| {
                    if let CatExprKind::Name(name) = &e.kind {
                        known &= self.lookup(name, env).is_some();
                    }
                    known
                });
                self.eval(if known { first } else { second }, env)
            }
            CatExprKind::Unsupported(what, _) => {
                self.unsupported(what, expr.span, None, env);
                NameValue::Poison
            }
        }
    }

    fn unary(
        &mut self,
        op: UnaryOp,
        inner: &CatExpr,
        expr: &CatExpr,
        env: &mut NameEnv,
    ) -> NameValue {
        let value = self.eval(inner, env);
        let node = match op {
            UnaryOp::Not => self.node_of(value, inner, env),
            UnaryOp::Identity => self.set_for(value, inner, env, "`[…]` needs a set"),
            _ => self.relation_for(value, inner, env, "this operator needs a relation"),
        };
        let Some(node) = node else {
            return NameValue::Poison;
        };
        self.build.place = (env.file, expr.span);
        NameValue::Node(match op {
            UnaryOp::Not => {
                if !self.monotone(node, inner, env, "under `~`") {
                    return NameValue::Poison;
                }
                let all = self.build.all(self.build.kind(node));
                self.build.diff(all, node)
            }
            UnaryOp::Identity => self.build.identity(node),
            UnaryOp::Inverse => self.build.inverse(node),
            UnaryOp::Optional => self.build.optional(node),
            UnaryOp::Plus => self.build.plus(node),
            UnaryOp::Star => {
                let plus = self.build.plus(node);
                self.build.optional(plus)
            }
        })
    }

    /// `|`, `&` and `\`: sets with sets, relations with relations.
    fn boolean(
        &mut self,
        op: ChainOp,
        list: &[CatExpr],
        expr: &CatExpr,
        env: &mut NameEnv,
    ) -> NameValue {
        // The first operand of a difference always stays.
        let first = usize::from(op == ChainOp::Diff);
        let stays = |e: &CatExpr| self.meet((env.file, e.span), ClausePart::Operand(op), Some(e));
        let gone = list
            .iter()
            .skip(first)
            .map(stays)
            .collect::<Vec<bool>>()
            .iter()
            .position(|stays| !stays);
        let without;
        let list = match gone {
            Some(at) => {
                without = [&list[..first + at], &list[first + at + 1..]].concat();
                without.as_slice()
            }
            None => list,
        };
        let values: Vec<NameValue> = list.iter().map(|e| self.eval(e, env)).collect();
        let mut typed: Option<(Kind, &CatExpr)> = None;
        let mut nodes: Vec<Option<NodeId>> = Vec::new();
        let mut poisoned = false;
        for (value, e) in values.into_iter().zip(list) {
            if matches!(value, NameValue::Zero) {
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
                        ChainOp::Union => "|",
                        ChainOp::Inter => "&",
                        _ => "\\",
                    };
                    let message = format!(
                        "`{symbol}` joins a {} and a {}",
                        kind_word(other),
                        kind_word(kind)
                    );
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
            return NameValue::Poison;
        }
        let Some((kind, _)) = typed else {
            return NameValue::Zero;
        };
        self.build.place = (env.file, expr.span);
        let empty = self.build.empty(kind);
        let nodes: Vec<NodeId> = nodes
            .into_iter()
            .map(|node| node.unwrap_or(empty))
            .collect();
        for (node, e) in nodes
            .iter()
            .zip(list)
            .skip(first)
            .filter(|_| op == ChainOp::Diff)
        {
            if !self.monotone(*node, e, env, "on the right of `\\`") {
                return NameValue::Poison;
            }
        }
        self.build.place = (env.file, expr.span);
        let joined = nodes.split_first().map(|(left, rest)| {
            rest.iter().fold(*left, |left, node: &NodeId| match op {
                ChainOp::Union => self.build.union(left, *node),
                ChainOp::Inter => self.build.inter(left, *node),
                _ => self.build.diff(left, *node),
            })
        });
        joined.map_or(NameValue::Zero, NameValue::Node)
    }

    fn sequence(&mut self, list: &[CatExpr], expr: &CatExpr, env: &mut NameEnv) -> NameValue {
        // Brackets have no effect in a sequence. In a flat list, identities can restrict the
        // neighbouring factor.
        let mut factors: Vec<&CatExpr> = Vec::new();
        let mut todo: Vec<&CatExpr> = list.iter().rev().collect();
        while let Some(e) = todo.pop() {
            match &e.kind {
                CatExprKind::Chain(ChainOp::Seq, inner) => todo.extend(inner.iter().rev()),
                _ => factors.push(e),
            }
        }
        let mut nodes = Vec::new();
        let mut poisoned = false;
        for e in factors {
            let value = self.eval(e, env);
            match self.node_of(value, e, env) {
                Some(node) => {
                    let node = if self.build.kind(node) == Kind::Set {
                        self.build.identity(node)
                    } else {
                        node
                    };
                    nodes.push(node);
                }
                None => poisoned = true,
            }
        }
        if poisoned {
            return NameValue::Poison;
        }
        self.build.place = (env.file, expr.span);
        NameValue::Node(self.build.seq_all(&nodes))
    }

    fn product(&mut self, list: &[CatExpr], expr: &CatExpr, env: &mut NameEnv) -> NameValue {
        let mut sets = Vec::new();
        for e in list {
            let value = self.eval(e, env);
            sets.push(self.set_for(
                value,
                e,
                env,
                "`*` between operands is the product of two sets",
            ));
        }
        let [Some(a), Some(b)] = sets[..] else {
            if sets.len() > 2 {
                self.error(
                    "type-mismatch",
                    expr.span,
                    env,
                    "a product has two sets, not more",
                );
            }
            return NameValue::Poison;
        };
        self.build.place = (env.file, expr.span);
        NameValue::Node(self.build.product(a, b))
    }

    // Calls.

    fn call(
        &mut self,
        name: &Ident,
        args: &[CatExpr],
        expr: &CatExpr,
        env: &mut NameEnv,
    ) -> NameValue {
        let function = match self.lookup(&name.name, env) {
            Some((NameValue::Function(function), _)) => function,
            Some((NameValue::Unsupported(what), place)) => {
                self.unsupported(&what, name.span, place, env);
                return NameValue::Poison;
            }
            Some((NameValue::Poison, _)) => return NameValue::Poison,
            Some((_, place)) => {
                let source = self.files[env.file as usize].clone();
                let mut diagnostic = Diagnostic::error(
                    "not-a-function",
                    &source,
                    name.span,
                    format!("`{}` is not a function", name.name),
                )
                .label("applied here")
                .help("is an operator missing after it?");
                if let Some((_, span)) = place.filter(|p| p.0 == env.file) {
                    diagnostic = diagnostic.also(span, format!("`{}` is defined here", name.name));
                }
                self.report(diagnostic, env.file);
                return NameValue::Poison;
            }
            None => {
                if matches!(
                    name.name.as_str(),
                    "newSet" | "newRelation" | "linearisations" | "generate_orders"
                ) {
                    self.unsupported(&name.name, name.span, None, env);
                } else {
                    self.unknown_name(&name.name, name.span, env);
                }
                return NameValue::Poison;
            }
        };
        let values: Vec<NameValue> = args.iter().map(|a| self.eval(a, env)).collect();
        let wanted = match &function.body {
            FunctionBody::Written { params, .. } => params.len(),
            _ => 1,
        };
        if values.len() != wanted {
            let source = self.files[env.file as usize].clone();
            self.report(wrong_arity(&source, name, wanted, values.len()), env.file);
            return NameValue::Poison;
        }
        if values.iter().any(|v| matches!(v, NameValue::Poison)) {
            return NameValue::Poison;
        }
        let argument = |this: &mut Self, env: &NameEnv| match &function.body {
            FunctionBody::ToId => {
                this.set_for(values[0].clone(), &args[0], env, "`toid` needs a set")
            }
            _ => this.relation_for(
                values[0].clone(),
                &args[0],
                env,
                "this function needs a relation",
            ),
        };
        match &function.body {
            FunctionBody::Written { params, body } => {
                self.expand(name, &function, params, body, values, env)
            }
            FunctionBody::Domain | FunctionBody::Range | FunctionBody::ToId => {
                let Some(node) = argument(self, env) else {
                    return NameValue::Poison;
                };
                self.build.place = (env.file, expr.span);
                NameValue::Node(match &function.body {
                    FunctionBody::Domain => self.build.domain(node),
                    FunctionBody::Range => self.build.range(node),
                    _ => self.build.identity(node),
                })
            }
        }
    }

    /// Lowers the body of a function from a model file with its arguments.
    fn expand(
        &mut self,
        name: &Ident,
        function: &super::ModelFunction,
        params: &[String],
        body: &CatExpr,
        values: Vec<NameValue>,
        env: &NameEnv,
    ) -> NameValue {
        let nodes: Option<Vec<NodeId>> = values
            .iter()
            .map(|v| {
                if let NameValue::Node(node) = v {
                    Some(*node)
                } else {
                    None
                }
            })
            .collect();
        let key = nodes.map(|nodes| (function.id, nodes));
        if let Some(value) = key.as_ref().and_then(|k| self.memo.get(k)) {
            return value.clone();
        }
        if self.calls.len() >= MAX_CALLS {
            self.error(
                "too-many-calls",
                name.span,
                env,
                "functions call each other too deeply",
            );
            return NameValue::Poison;
        }
        self.calls.push(CallSite {
            name: function.name.clone(),
            file: env.file,
            span: name.span,
        });
        let mut inner = function.env.clone();
        inner.locals.extend(params.iter().cloned().zip(values));
        let value = self.eval(body, &mut inner);
        self.calls.pop();
        if let Some(key) = key {
            self.memo.insert(key, value.clone());
        }
        value
    }
}
