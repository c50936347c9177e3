//! Finds the variables with addresses that code takes. They are memory of the thread; all others
//! are registers.
//!
//! # Invariants
//! - A name means all variables of that name in the code.
//! - The expected value of a compare-exchange needs no address.

use std::collections::HashSet;
use std::ops::Range;

use super::ClikeCode;
use super::ast::{Base, Expr, ExprKind, Stmt, StmtKind};

/// The names of the variables with addresses that a thread's code takes.
pub(super) fn addressed(unit: &ClikeCode) -> HashSet<&str> {
    let text = unit.text.as_str();
    let mut found = HashSet::new();
    let mut add = |range: &Range<usize>| {
        found.insert(&text[range.clone()]);
    };
    unit.stmts
        .iter()
        .for_each(|stmt| of_statement(stmt, text, &mut add));
    found
}

fn of_statement(stmt: &Stmt, text: &str, add: &mut dyn FnMut(&Range<usize>)) {
    if let StmtKind::Function(Some(function)) = &stmt.kind {
        function
            .body
            .iter()
            .for_each(|stmt| of_statement(stmt, text, add));
    }
    if let StmtKind::Declare(declaration) = &stmt.kind
        && let Base::Struct(syntax) = &declaration.specifiers.base
    {
        let bodies = syntax.functions.iter().flat_map(|function| &function.body);
        bodies.for_each(|stmt| of_statement(stmt, text, add));
    }
    stmt.each_expr(&mut |tree| of_expression(tree, text, add));
}

fn of_expression(tree: &Expr, text: &str, add: &mut dyn FnMut(&Range<usize>)) {
    match &tree.kind {
        ExprKind::AddressOf(of) if matches!(of.kind, ExprKind::Name) => add(&of.range),
        ExprKind::Lambda(lambda) => {
            for stmt in &lambda.function.body {
                of_statement(stmt, text, add);
            }
        }
        ExprKind::Call(name, args) | ExprKind::Method(_, name, args)
            if text[name.clone()].contains("compare_exchange") =>
        {
            for arg in args {
                match &arg.kind {
                    ExprKind::AddressOf(of) if matches!(of.kind, ExprKind::Name) => {}
                    _ => of_expression(arg, text, add),
                }
            }
            return;
        }
        _ => {}
    }
    tree.parts()
        .into_iter()
        .for_each(|part| of_expression(part, text, add));
}
