//! Lowers `let rec`: least fixpoints, as closures where possible and as fixpoint groups otherwise.
//!
//! # Invariants
//! - Strongly connected components of members are solved one by one, dependencies first. A member
//!   that does not depend on itself is an ordinary definition.
//! - In a remaining group, every body depends on a variable of the group.
//!
//! # Where we differ
//! - herd iterates such definitions for each execution; here `X = A | X;B;X` and linear forms
//!   become closures.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;
use rustc_hash::FxHashMap;

use super::super::ast::{CatExpr, CatExprKind, ChainOp, LetBinding, UnaryOp};
use super::super::ir::{Kind, NodeId};
use super::super::resolve::{FunctionBody, NameEnv, NameValue, kind_word};
use super::Lowerer;
use diag::Diagnostic;

/// The limit on calls when inferring kinds of recursive names.
const MAX_INFERENCE_DEPTH: usize = 300;

impl Lowerer<'_> {
    pub(super) fn let_rec(&mut self, bindings: &[LetBinding], file: u32) {
        let mut env = self.env(file);
        let function = bindings.iter().any(|b| b.params.is_some());
        if let Some(what) = bindings
            .iter()
            .find_map(|b| b.body.unsupported())
            .map(|u| u.0)
        {
            return self.define_all_unsupported(bindings, &what, file);
        }
        if function {
            return self.define_all_unsupported(bindings, "let rec of a function", file);
        }
        let mut values: Vec<Option<NameValue>> = vec![None; bindings.len()];
        for component in components(bindings) {
            let members: Vec<&LetBinding> = component.iter().map(|&at| &bindings[at]).collect();
            let recursive = members.len() > 1 || uses(&members[0].body, &members[0].name.name);
            let solved = if recursive {
                self.solve(&members, &env)
            } else {
                vec![self.binding(members[0], &mut env)]
            };
            for (at, value) in component.into_iter().zip(solved) {
                env.locals
                    .push((bindings[at].name.name.clone(), value.clone()));
                values[at] = Some(value);
            }
        }
        for (binding, value) in bindings.iter().zip(values) {
            self.define(&binding.name, value.unwrap_or(NameValue::Poison), file);
        }
    }

    fn define_all_unsupported(&mut self, bindings: &[LetBinding], what: &str, file: u32) {
        for binding in bindings {
            self.define(&binding.name, NameValue::Unsupported(what.into()), file);
        }
    }

    /// The values of mutually recursive members.
    fn solve(&mut self, members: &[&LetBinding], env: &NameEnv) -> Vec<NameValue> {
        let kinds = self.infer(members, env);
        let mut solved: Vec<Option<NameValue>> = vec![None; members.len()];
        loop {
            let open: Vec<usize> = (0..members.len())
                .filter(|&at| solved[at].is_none())
                .collect();
            let names: Vec<String> = open
                .iter()
                .map(|&at| members[at].name.name.clone())
                .collect();
            let open_kinds: Vec<Kind> = open.iter().map(|&at| kinds[at]).collect();
            self.build.place = (env.file, members[open[0]].name.span);
            let (group, vars) = self.build.open_group(&names, &open_kinds);
            let mut inner = env.clone();
            for (member, value) in members.iter().zip(&solved) {
                inner
                    .locals
                    .extend(value.clone().map(|v| (member.name.name.clone(), v)));
            }
            inner.locals.extend(
                names
                    .iter()
                    .cloned()
                    .zip(vars.iter().map(|&v| NameValue::Node(v))),
            );
            let bodies: Option<Vec<NodeId>> = open
                .iter()
                .map(|&at| self.body(members[at], kinds[at], &mut inner))
                // Collecting first reports the errors of all members.
                .collect::<Vec<_>>()
                .into_iter()
                .collect();
            let Some(bodies) = bodies else {
                return vec![NameValue::Poison; members.len()];
            };
            let mut settled = false;
            for (&at, &body) in open.iter().zip(&bodies) {
                if !self.build.is_recursive(body) {
                    solved[at] = Some(NameValue::Node(body));
                    settled = true;
                }
            }
            if !settled {
                let values = match (&bodies[..], &vars[..]) {
                    (&[body], &[var]) if kinds[open[0]] == Kind::Rel => {
                        match self.build.closed_form(var, body) {
                            Some(node) => vec![node],
                            None => self.build.close_group(group, &bodies),
                        }
                    }
                    _ => self.build.close_group(group, &bodies),
                };
                for (&at, node) in open.iter().zip(values) {
                    solved[at] = Some(NameValue::Node(node));
                }
            }
            if solved.iter().all(Option::is_some) {
                return solved.into_iter().flatten().collect();
            }
        }
    }

    fn body(&mut self, member: &LetBinding, kind: Kind, env: &mut NameEnv) -> Option<NodeId> {
        let value = self.eval(&member.body, env);
        if matches!(value, NameValue::Zero) {
            return Some(self.build.empty(kind));
        }
        let node = self.node_of(value, &member.body, env)?;
        if self.build.kind(node) == kind {
            return Some(node);
        }
        let source = self.files[env.file as usize].clone();
        let diagnostic = Diagnostic::error(
            "type-mismatch",
            &source,
            member.body.span,
            format!("`{}` is used as a {}", member.name.name, kind_word(kind)),
        )
        .label(format!("this is a {}", kind_word(self.build.kind(node))))
        .also(member.name.span, "defined here");
        self.report(diagnostic, env.file);
        None
    }

    /// The kinds of mutually recursive members: those that their bodies determine, else relations.
    fn infer(&mut self, members: &[&LetBinding], env: &NameEnv) -> Vec<Kind> {
        let mut known: FxHashMap<String, Option<Kind>> = members
            .iter()
            .map(|m| (m.name.name.clone(), None))
            .collect();
        loop {
            let mut changed = false;
            for member in members {
                if known[&member.name.name].is_none() {
                    let kind = self.kind_of(&member.body, env, &known, 0);
                    changed |= kind.is_some();
                    known.insert(member.name.name.clone(), kind);
                }
            }
            if !changed {
                return members
                    .iter()
                    .map(|m| known[&m.name.name].unwrap_or(Kind::Rel))
                    .collect();
            }
        }
    }

    /// The kind of an expression, if its operators and known names determine it.
    fn kind_of(
        &mut self,
        expr: &CatExpr,
        env: &NameEnv,
        known: &FxHashMap<String, Option<Kind>>,
        depth: usize,
    ) -> Option<Kind> {
        if depth > MAX_INFERENCE_DEPTH {
            return None;
        }
        match &expr.kind {
            CatExprKind::Name(name) => match known.get(name) {
                Some(kind) => *kind,
                None => match self.lookup(name, env)?.0 {
                    NameValue::Node(node) => Some(self.build.kind(node)),
                    _ => None,
                },
            },
            CatExprKind::Universe | CatExprKind::EmptySet => Some(Kind::Set),
            CatExprKind::Zero | CatExprKind::Unsupported(..) => None,
            CatExprKind::Unary(UnaryOp::Not, inner) => self.kind_of(inner, env, known, depth + 1),
            CatExprKind::Unary(..) | CatExprKind::Chain(ChainOp::Seq | ChainOp::Product, _) => {
                Some(Kind::Rel)
            }
            CatExprKind::Chain(_, list) => list
                .iter()
                .find_map(|e| self.kind_of(e, env, known, depth + 1)),
            CatExprKind::Let(_, body) => self.kind_of(body, env, known, depth + 1),
            CatExprKind::If(_, _, no) => self.kind_of(no, env, known, depth + 1),
            CatExprKind::Try(first, _) => self.kind_of(first, env, known, depth + 1),
            CatExprKind::Call(name, args) => {
                let (NameValue::Function(function), _) = self.lookup(&name.name, env)? else {
                    return None;
                };
                match &function.body {
                    FunctionBody::Domain | FunctionBody::Range => Some(Kind::Set),
                    FunctionBody::ToId => Some(Kind::Rel),
                    FunctionBody::Written { params, body } => {
                        let mut inner = FxHashMap::default();
                        for (param, arg) in params.iter().zip(args) {
                            inner.insert(param.clone(), self.kind_of(arg, env, known, depth + 1));
                        }
                        // Each call may double the work; a few levels are enough in practice.
                        self.kind_of(body, &function.env, &inner, depth + 50)
                    }
                }
            }
        }
    }
}

/// Strongly connected components of the "mentions" relation, dependencies first.
fn components(bindings: &[LetBinding]) -> Vec<Vec<usize>> {
    let mut graph: DiGraph<usize, ()> = DiGraph::new();
    let nodes: Vec<_> = (0..bindings.len()).map(|at| graph.add_node(at)).collect();
    let mut by_name: FxHashMap<&str, usize> = FxHashMap::default();
    for (at, binding) in bindings.iter().enumerate() {
        by_name.insert(&binding.name.name, at);
    }
    for (at, binding) in bindings.iter().enumerate() {
        binding.body.walk(&mut |e| {
            if let CatExprKind::Name(name) = &e.kind
                && let Some(&used) = by_name.get(name.as_str())
            {
                graph.update_edge(nodes[at], nodes[used], ());
            }
            true
        });
    }
    let mut list: Vec<Vec<usize>> = kosaraju_scc(&graph)
        .into_iter()
        .map(|c| c.into_iter().map(|n| graph[n]).collect())
        .collect();
    for component in &mut list {
        component.sort_unstable();
    }
    list
}

fn uses(expr: &CatExpr, name: &str) -> bool {
    let mut found = false;
    expr.walk(&mut |e| {
        found |= matches!(&e.kind, CatExprKind::Name(n) if n == name);
        !found
    });
    found
}
