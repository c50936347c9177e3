//! Checks kinds: sets and relations where the other is needed, and recursive names in positions
//! where they are not allowed.

use super::super::ast::{CatExpr, CatExprKind};
use super::super::ir::{Kind, NodeId};
use super::super::resolve::{NameEnv, NameValue, kind_word};
use super::Lowerer;
use diag::Diagnostic;

impl Lowerer<'_> {
    /// The node of a value of either kind; a bare `0` is the empty relation.
    pub(super) fn node_of(
        &mut self,
        value: NameValue,
        expr: &CatExpr,
        env: &NameEnv,
    ) -> Option<NodeId> {
        match value {
            NameValue::Node(node) => Some(node),
            NameValue::Zero => Some(self.build.empty(Kind::Rel)),
            NameValue::Function(function) => {
                let message = format!("`{}` is a function; it needs arguments", function.name);
                self.error("type-mismatch", expr.span, env, &message);
                None
            }
            NameValue::Unsupported(what) => {
                self.unsupported(&what, expr.span, None, env);
                None
            }
            NameValue::Poison => None,
        }
    }

    /// The node of a value that must be a relation.
    pub(super) fn relation_for(
        &mut self,
        value: NameValue,
        expr: &CatExpr,
        env: &NameEnv,
        why: &str,
    ) -> Option<NodeId> {
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
    pub(super) fn set_for(
        &mut self,
        value: NameValue,
        expr: &CatExpr,
        env: &NameEnv,
        why: &str,
    ) -> Option<NodeId> {
        if matches!(value, NameValue::Zero) {
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

    pub(super) fn mismatch(
        &self,
        expr: &CatExpr,
        kind: Kind,
        env: &NameEnv,
        message: String,
    ) -> Diagnostic {
        let source = &self.files[env.file as usize];
        let diagnostic = Diagnostic::error("type-mismatch", source, expr.span, message)
            .label(format!("this is a {}", kind_word(kind)));
        self.with_definition(diagnostic, expr, env)
    }

    /// Points at the definition of a name, if it is in the same file.
    pub(super) fn with_definition(
        &self,
        diagnostic: Diagnostic,
        expr: &CatExpr,
        env: &NameEnv,
    ) -> Diagnostic {
        let CatExprKind::Name(name) = &expr.kind else {
            return diagnostic;
        };
        if env.library.is_some() || env.locals.iter().any(|(n, _)| n == name) {
            return diagnostic;
        }
        match self.scope.get(name, env.limit).and_then(|d| d.place) {
            Some((file, span)) if file == env.file => {
                diagnostic.also(span, format!("`{name}` is defined here"))
            }
            Some((file, span)) => {
                let source = &self.files[file as usize];
                let (line, column) = source.line_column(span.start as usize);
                diagnostic.note(format!(
                    "`{name}` is defined at {}:{line}:{column}",
                    source.name
                ))
            }
            None => diagnostic,
        }
    }

    /// Reports a recursive name in a position that is not monotone, where no least fixpoint exists.
    pub(super) fn monotone(
        &mut self,
        node: NodeId,
        expr: &CatExpr,
        env: &NameEnv,
        place: &str,
    ) -> bool {
        if !self.build.is_recursive(node) {
            return true;
        }
        let source = self.files[env.file as usize].clone();
        let diagnostic = Diagnostic::error(
            "not-monotone",
            &source,
            expr.span,
            format!("`let rec` defines a name that occurs {place}"),
        )
        .label("depends on the recursive name")
        .note(
            "the right side must grow with the defined name; otherwise there is no least solution",
        );
        self.report(diagnostic, env.file);
        false
    }
}
