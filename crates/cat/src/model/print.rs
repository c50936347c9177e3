//! Writes syntax trees as text.
//!
//! # Invariants
//! - Parsing the output gives the same tree ([`super::ast`]: equality ignores spans and comments).
//! - Brackets appear only where precedence needs them. The postfix closure is written `^*`, so that
//!   it cannot be read as a product.

use std::fmt::Write;

use super::ast::{
    CatExpr, CatExprKind, CatStmt, CatStmtKind, ChainOp, LetBinding, ModelFile, TestRole, TestWord,
    UnaryOp,
};

/// The text of a file.
pub fn file(file: &ModelFile) -> String {
    let mut out = String::new();
    if !file.head.is_empty() {
        let _ = writeln!(out, "{}", file.head.join(" "));
    }
    comment(&mut out, &file.header, "");
    if !file.header.is_empty() {
        out.push('\n');
    }
    statements(&mut out, &file.statements, "");
    out
}

/// The text of an expression.
pub fn expr(e: &CatExpr) -> String {
    let mut out = String::new();
    write_expr(&mut out, e, 0);
    out
}

/// A comment; omitted if its text contains a comment marker.
fn comment(out: &mut String, text: &str, indent: &str) {
    if text.is_empty() || text.contains("(*") || text.contains("*)") {
        return;
    }
    let lines: Vec<&str> = text.lines().collect();
    let _ = writeln!(
        out,
        "{indent}(* {} *)",
        lines.join(&format!("\n{indent}   "))
    );
}

fn statements(out: &mut String, list: &[CatStmt], indent: &str) {
    for statement in list {
        if let CatStmtKind::Test(test) = &statement.kind {
            comment(out, &test.doc, indent);
        }
        out.push_str(indent);
        write_statement(out, statement, indent);
        out.push('\n');
    }
}

fn write_statement(out: &mut String, statement: &CatStmt, indent: &str) {
    fn names(list: &[super::ast::Ident]) -> String {
        list.iter()
            .map(|n| n.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    }
    let deeper = format!("{indent}  ");
    match &statement.kind {
        CatStmtKind::Let {
            recursive,
            bindings,
        } => {
            out.push_str(if *recursive { "let rec " } else { "let " });
            write_bindings(out, bindings);
        }
        CatStmtKind::Free(decl) => {
            let _ = write!(
                out,
                "free {} : {} within {}",
                decl.name.name,
                decl.shape.name,
                expr(&decl.within)
            );
            if let Some(e) = &decl.containing {
                let _ = write!(out, " containing {}", expr(e));
            }
            if let Some(e) = &decl.covering {
                let _ = write!(out, " covering {}", expr(e));
            }
        }
        CatStmtKind::Values(name) => out.push_str(&format!("values {}", name.name)),
        CatStmtKind::Final(name) => out.push_str(&format!("final {}", name.name)),
        CatStmtKind::Option(name, value) => {
            out.push_str(&format!("option {} = {}", name.name, value.name))
        }
        CatStmtKind::Test(test) => {
            out.push_str(match test.role {
                TestRole::Axiom => "",
                TestRole::Flag => "flag ",
                TestRole::UndefinedUnless => "undefined_unless ",
            });
            out.push_str(if test.negated { "~" } else { "" });
            out.push_str(match test.word {
                TestWord::Acyclic => "acyclic ",
                TestWord::Irreflexive => "irreflexive ",
                TestWord::Empty => "empty ",
            });
            write_expr(out, &test.expr, 0);
            if let Some(name) = &test.name {
                let _ = write!(out, " as {}", name.name);
            }
            if let Some(means) = &test.means {
                let _ = write!(out, " means {}", means.name);
            }
        }
        CatStmtKind::Show(list) => {
            out.push_str("show ");
            for (at, (e, name)) in list.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write_expr(out, e, 0);
                if let Some(name) = name {
                    let _ = write!(out, " as {}", name.name);
                }
            }
        }
        CatStmtKind::Unshow(list) => out.push_str(&format!("unshow {}", names(list))),
        CatStmtKind::ShowFlag(list) => out.push_str(&format!("showflag {}", names(list))),
        CatStmtKind::Include(path) => out.push_str(&format!("include \"{path}\"")),
        CatStmtKind::Procedure(name, params, body) => {
            let _ = writeln!(out, "procedure {}({}) =", name.name, names(params));
            statements(out, body, &deeper);
            let _ = write!(out, "{indent}end");
        }
        CatStmtKind::Call(name, args) => {
            let _ = write!(out, "call {}", name.name);
            write_args(out, args);
        }
        CatStmtKind::With(name, e) => {
            let _ = write!(out, "with {} from ", name.name);
            write_expr(out, e, 0);
        }
        CatStmtKind::If(variant, yes, no) => {
            let _ = writeln!(out, "if \"{variant}\"");
            statements(out, yes, &deeper);
            if !no.is_empty() {
                let _ = writeln!(out, "{indent}else");
                statements(out, no, &deeper);
            }
            let _ = write!(out, "{indent}end");
        }
    }
}

fn write_bindings(out: &mut String, bindings: &[LetBinding]) {
    for (at, binding) in bindings.iter().enumerate() {
        out.push_str(if at > 0 { " and " } else { "" });
        out.push_str(&binding.name.name);
        if let Some(params) = &binding.params {
            let list: Vec<&str> = params.iter().map(|p| p.name.as_str()).collect();
            let _ = write!(out, "({})", list.join(", "));
        }
        out.push_str(" = ");
        write_expr(out, &binding.body, 0);
    }
}

fn write_args(out: &mut String, args: &[CatExpr]) {
    out.push('(');
    for (at, arg) in args.iter().enumerate() {
        out.push_str(if at > 0 { ", " } else { "" });
        write_expr(out, arg, 0);
    }
    out.push(')');
}

/// The binding strength of a form. An operand gets brackets unless it binds at least as tightly as
/// its position requires.
fn level(e: &CatExpr) -> u8 {
    match &e.kind {
        // The long forms extend as far to the right as possible.
        CatExprKind::Let(..)
        | CatExprKind::If(..)
        | CatExprKind::Try(..)
        | CatExprKind::Unsupported(..) => 0,
        CatExprKind::Chain(op, _) => chain_level(*op),
        CatExprKind::Unary(UnaryOp::Not, _) => 6,
        CatExprKind::Unary(UnaryOp::Identity, _) => 8,
        CatExprKind::Unary(..) => 7,
        _ => 8,
    }
}

fn chain_level(op: ChainOp) -> u8 {
    match op {
        ChainOp::Union => 1,
        ChainOp::Seq => 2,
        ChainOp::Diff => 3,
        ChainOp::Inter => 4,
        ChainOp::Product => 5,
    }
}

fn write_expr(out: &mut String, e: &CatExpr, min: u8) {
    let bracket = level(e) < min;
    out.push_str(if bracket { "(" } else { "" });
    match &e.kind {
        CatExprKind::Name(name) => out.push_str(name),
        CatExprKind::Universe => out.push('_'),
        CatExprKind::Zero => out.push('0'),
        CatExprKind::EmptySet => out.push_str("{}"),
        CatExprKind::Unary(UnaryOp::Not, inner) => {
            out.push('~');
            write_expr(out, inner, 6);
        }
        CatExprKind::Unary(UnaryOp::Identity, inner) => {
            out.push('[');
            write_expr(out, inner, 0);
            out.push(']');
        }
        CatExprKind::Unary(op, inner) => {
            write_expr(out, inner, 7);
            out.push_str(match op {
                UnaryOp::Inverse => "^-1",
                UnaryOp::Optional => "^?",
                UnaryOp::Plus => "^+",
                _ => "^*",
            });
        }
        CatExprKind::Chain(op, list) => {
            let symbol = match op {
                ChainOp::Union => " | ",
                ChainOp::Seq => " ; ",
                ChainOp::Diff => " \\ ",
                ChainOp::Inter => " & ",
                ChainOp::Product => " * ",
            };
            for (at, operand) in list.iter().enumerate() {
                out.push_str(if at > 0 { symbol } else { "" });
                write_expr(out, operand, chain_level(*op) + 1);
            }
        }
        CatExprKind::Call(name, args) => {
            out.push_str(&name.name);
            write_args(out, args);
        }
        CatExprKind::Let(bindings, body) => {
            out.push_str("let ");
            write_bindings(out, bindings);
            out.push_str(" in ");
            write_expr(out, body, 0);
        }
        CatExprKind::If(variant, yes, no) => {
            let _ = write!(out, "if \"{variant}\" then ");
            write_expr(out, yes, 0);
            out.push_str(" else ");
            write_expr(out, no, 0);
        }
        CatExprKind::Try(first, second) => {
            out.push_str("try ");
            write_expr(out, first, 1);
            out.push_str(" with ");
            write_expr(out, second, 0);
        }
        CatExprKind::Unsupported(_, text) => out.push_str(text),
    }
    out.push_str(if bracket { ")" } else { "" });
}
