//! Lowers free relations and their roles, and herd's `with x from S` as a free relation.
//!
//! # Invariants
//! - The bounds of a free relation are static.
//! - A free relation is a definition like any other: later definitions shadow its name, and the
//!   relation stays.
//!
//! # Where we differ
//! - `with x from generate_orders(S, r)` (one order per location) adds no free relation if the
//!   prelude's coherence is already total over `S`. Then `x` is the restriction of coherence to
//!   `S`, so final values agree with it.

use super::super::ast::{CatExpr, CatExprKind, FreeDecl, Ident};
use super::super::ir::{Axiom, FreeId, FreeRel, FreeShape, Kind, NodeId, Test, TestEffect};
use super::super::resolve::{NameEnv, NameValue};
use super::ClausePart;
use super::Lowerer;
use diag::{Diagnostic, Span};

impl Lowerer<'_> {
    pub(super) fn free_statement(&mut self, decl: &FreeDecl, file: u32) {
        let source = self.files[file as usize].clone();
        let shape = match decl.shape.name.as_str() {
            "function" => Some(FreeShape::Function),
            "order" => Some(FreeShape::Order),
            other => {
                let diagnostic = Diagnostic::error(
                    "unknown-shape",
                    &source,
                    decl.shape.span,
                    format!("there is no shape `{other}`"),
                )
                .label("`function` or `order`")
                .did_you_mean(other, ["function", "order"]);
                self.report(diagnostic, file);
                None
            }
        };
        let env = self.env(file);
        let within = self.bound(&decl.within, &env);
        let mut least = |e: &Option<CatExpr>| {
            let e = e.as_ref()?;
            let node = self.bound(e, &env);
            self.meet((file, e.span), ClausePart::Bound, Some(e))
                .then_some(node)
        };
        let (containing, covering) = (least(&decl.containing), least(&decl.covering));
        if let (Some(FreeShape::Function), Some(expr)) = (shape, &decl.covering) {
            let diagnostic = Diagnostic::error(
                "type-mismatch",
                &source,
                expr.span,
                "`covering` is for orders, not functions",
            )
            .also(decl.shape.span, "a function");
            self.report(diagnostic, file);
        }
        if let Some(earlier) = self.free.iter().find(|f| f.name == decl.name.name) {
            let (other, span) = earlier.span;
            let mut diagnostic = Diagnostic::error(
                "duplicate-free",
                &source,
                decl.name.span,
                format!("`{}` is declared free twice", decl.name.name),
            );
            diagnostic = if other == file {
                diagnostic.also(span, "declared here before")
            } else {
                diagnostic.note(format!(
                    "declared in `{}` before",
                    self.files[other as usize].name
                ))
            };
            self.report(diagnostic, file);
        }
        // A model with errors is not built. The replacement avoids follow-up errors at later uses
        // of the name.
        let empty = self.build.empty(Kind::Rel);
        let id = self.add_free(FreeRel {
            name: decl.name.name.clone(),
            shape: shape.unwrap_or(FreeShape::Order),
            within: within.unwrap_or(empty),
            containing: containing.map(|n| n.unwrap_or(empty)),
            covering: covering.map(|n| n.unwrap_or(empty)),
            span: (file, decl.name.span),
        });
        let node = self.build.free(id);
        self.scope.define(
            &decl.name.name,
            NameValue::Node(node),
            Some((file, decl.name.span)),
        );
    }

    fn add_free(&mut self, free: FreeRel) -> FreeId {
        self.free.push(free);
        FreeId(self.free.len() as u32 - 1)
    }

    /// A static relation.
    fn bound(&mut self, expr: &CatExpr, env: &NameEnv) -> Option<NodeId> {
        let mut env = env.clone();
        let value = self.eval(expr, &mut env);
        let node = self.relation_for(
            value,
            expr,
            &env,
            "the bound of a free relation is a relation",
        )?;
        if self.build.is_static(node) {
            return Some(node);
        }
        let source = self.files[env.file as usize].clone();
        let diagnostic = Diagnostic::error(
            "not-static",
            &source,
            expr.span,
            "the bound of a free relation must not depend on a free relation",
        )
        .label("depends on one");
        self.report(diagnostic, env.file);
        None
    }

    /// `values x` or `final x`
    pub(super) fn role(&mut self, name: &Ident, file: u32, values: bool) {
        let source = self.files[file as usize].clone();
        let (word, wanted, shape) = if values {
            ("values", FreeShape::Function, "function")
        } else {
            ("final", FreeShape::Order, "order")
        };
        let Some(at) = self.free.iter().position(|f| f.name == name.name) else {
            let names: Vec<&str> = self.free.iter().map(|f| f.name.as_str()).collect();
            let diagnostic = Diagnostic::error(
                "unknown-name",
                &source,
                name.span,
                format!("`{}` is not a free relation", name.name),
            )
            .label(format!("`{word}` names one that was declared free"))
            .did_you_mean(&name.name, names);
            return self.report(diagnostic, file);
        };
        if self.free[at].shape != wanted {
            let diagnostic = Diagnostic::error(
                "wrong-role",
                &source,
                name.span,
                format!(
                    "`{word}` needs a free {shape}, and `{}` is not one",
                    name.name
                ),
            );
            return self.report(diagnostic, file);
        }
        let role = if values {
            &mut self.values
        } else {
            &mut self.finals
        };
        let earlier = role.replace((FreeId(at as u32), (file, name.span)));
        if let Some((_, (other, span))) = earlier {
            let mut diagnostic = Diagnostic::error(
                "duplicate-role",
                &source,
                name.span,
                format!("`{word}` is stated twice"),
            );
            if other == file {
                diagnostic = diagnostic.also(span, "stated here before");
            }
            self.report(diagnostic, file);
        }
    }

    /// Requires exactly one relation with the role `values` and one with `final`.
    pub(super) fn check_roles(&mut self) {
        if self.free.is_empty() || self.diagnostics.iter().any(|d| d.id == "syntax-error") {
            return;
        }
        let main = self.files[0].clone();
        let end = main.text.len();
        let roles = [
            (
                self.values.is_none(),
                "values",
                "carries values from writes to reads",
                "rf",
            ),
            (
                self.finals.is_none(),
                "final",
                "decides which writes give final values",
                "co",
            ),
        ];
        for (missing, word, what, example) in roles {
            if missing {
                let diagnostic = Diagnostic::error(
                    "missing-role",
                    &main,
                    Span::new(end, end),
                    format!("no line of this model says which free relation {what}"),
                )
                .help(format!("add `{word} {example}`"));
                self.report_role(diagnostic, word);
            }
        }
    }

    /// Both roles may be missing at the same place. Different spans keep the second diagnostic from
    /// being dropped as a duplicate.
    fn report_role(&mut self, diagnostic: Diagnostic, word: &str) {
        let span = if word == "values" {
            diagnostic.span
        } else {
            Span {
                start: diagnostic.span.start,
                end: u32::MAX,
            }
        };
        if self.reported.insert((diagnostic.id, 0, span)) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// `with name from expr`
    pub(super) fn with(&mut self, name: &Ident, expr: &CatExpr, file: u32) {
        let mut env = self.env(file);
        let value = self.choice(name, expr, &mut env);
        self.define(name, value.map_or(NameValue::Poison, NameValue::Node), file);
    }

    fn choice(&mut self, name: &Ident, expr: &CatExpr, env: &mut NameEnv) -> Option<NodeId> {
        let (function, args) = match &expr.kind {
            CatExprKind::Call(function, args) => (function.name.as_str(), &args[..]),
            _ => ("", &[][..]),
        };
        let (set, base, per_location) = match (function, args) {
            ("generate_cos", [base]) => (None, base, true),
            ("generate_orders", [set, base]) => (Some(set), base, true),
            ("linearisations", [set, base]) => (Some(set), base, false),
            _ => {
                self.unsupported("with … from", expr.span, None, env);
                return None;
            }
        };
        let writes = self.base("W", Kind::Set);
        let set = match set {
            Some(e) => {
                let value = self.eval(e, env);
                self.set_for(value, e, env, "orders are over a set")
            }
            None => Some(writes),
        };
        let base_value = self.eval(base, env);
        let base_node = self.relation_for(base_value, base, env, "orders extend a relation");
        let (set, base_node) = (set?, base_node?);
        if !self.build.is_static(set) {
            self.unsupported(
                "with … from orders over a set that depends on a free relation",
                expr.span,
                None,
                env,
            );
            return None;
        }
        self.build.place = (env.file, expr.span);
        let mut within = self.build.product(set, set);
        if per_location {
            let loc = self.base("loc", Kind::Rel);
            within = self.build.inter(within, loc);
        }
        let id = self.build.id();
        let within = self.build.diff(within, id);
        let required = self.build.inter(base_node, within);
        let total = self
            .finals
            .map(|(id, _)| &self.free[id.0 as usize])
            .filter(|f| f.covering == Some(f.within));
        let coherence = total.map(|f| f.containing).zip(self.finals);
        let (order, known) = match coherence {
            Some((containing, (co, _))) if per_location && self.build.is_subset(set, writes) => {
                let co = self.build.free(co);
                let square = self.build.product(set, set);
                (
                    if set == writes {
                        co
                    } else {
                        self.build.inter(co, square)
                    },
                    containing,
                )
            }
            _ => {
                let id = self.add_free(FreeRel {
                    name: name.name.clone(),
                    shape: FreeShape::Order,
                    within,
                    containing: None,
                    covering: Some(within),
                    span: (env.file, name.span),
                });
                (self.build.free(id), None)
            }
        };
        let violated = self.build.diff(required, order);
        let empty = self.build.empty(Kind::Rel);
        if violated != empty && known != Some(required) && known != Some(base_node) {
            self.axioms.push(Axiom {
                name: format!("{}-extends", name.name),
                test: Test::Empty,
                negated: false,
                effect: TestEffect::Rejects,
                node: violated,
                doc: format!(
                    "`{}` ranges over the orders that extend the given relation.",
                    name.name
                ),
                span: (env.file, expr.span),
            });
        }
        Some(order)
    }
}
