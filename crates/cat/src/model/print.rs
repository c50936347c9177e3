//! Writes syntax trees as text.
//!
//! # Invariants
//! - Parsing the output gives the same tree ([`super::ast`]: equality ignores spans and comments).
//! - Brackets appear only where precedence needs them. The postfix closure is written `^*`, so that
//!   it cannot be read as a product.

use std::fmt::Write;

use super::ast::{Binding, Chain, Expr, ExprKind, File, Stmt, StmtKind, TestRole, TestWord, Unary};

/// The text of a file.
pub fn file(file: &File) -> String {
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
pub fn expr(e: &Expr) -> String {
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

fn statements(out: &mut String, list: &[Stmt], indent: &str) {
    for statement in list {
        if let StmtKind::Test(test) = &statement.kind {
            comment(out, &test.doc, indent);
        }
        out.push_str(indent);
        write_statement(out, statement, indent);
        out.push('\n');
    }
}

fn write_statement(out: &mut String, statement: &Stmt, indent: &str) {
    let names = |list: &[super::ast::Ident]| {
        list.iter()
            .map(|n| n.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let deeper = format!("{indent}  ");
    match &statement.kind {
        StmtKind::Let {
            recursive,
            bindings,
        } => {
            out.push_str(if *recursive { "let rec " } else { "let " });
            write_bindings(out, bindings);
        }
        StmtKind::Free(decl) => {
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
        StmtKind::Values(name) => out.push_str(&format!("values {}", name.name)),
        StmtKind::Final(name) => out.push_str(&format!("final {}", name.name)),
        StmtKind::Option(name, value) => {
            out.push_str(&format!("option {} = {}", name.name, value.name))
        }
        StmtKind::Test(test) => {
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
        StmtKind::Show(list) => {
            out.push_str("show ");
            for (at, (e, name)) in list.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write_expr(out, e, 0);
                if let Some(name) = name {
                    let _ = write!(out, " as {}", name.name);
                }
            }
        }
        StmtKind::Unshow(list) => out.push_str(&format!("unshow {}", names(list))),
        StmtKind::ShowFlag(list) => out.push_str(&format!("showflag {}", names(list))),
        StmtKind::Include(path) => out.push_str(&format!("include \"{path}\"")),
        StmtKind::Procedure(name, params, body) => {
            let _ = writeln!(out, "procedure {}({}) =", name.name, names(params));
            statements(out, body, &deeper);
            let _ = write!(out, "{indent}end");
        }
        StmtKind::Call(name, args) => {
            let _ = write!(out, "call {}", name.name);
            write_args(out, args);
        }
        StmtKind::With(name, e) => {
            let _ = write!(out, "with {} from ", name.name);
            write_expr(out, e, 0);
        }
        StmtKind::If(variant, yes, no) => {
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

fn write_bindings(out: &mut String, bindings: &[Binding]) {
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

fn write_args(out: &mut String, args: &[Expr]) {
    out.push('(');
    for (at, arg) in args.iter().enumerate() {
        out.push_str(if at > 0 { ", " } else { "" });
        write_expr(out, arg, 0);
    }
    out.push(')');
}

/// The binding strength of a form. An operand gets brackets unless it binds at least as tightly as
/// its position requires.
fn level(e: &Expr) -> u8 {
    match &e.kind {
        // The long forms extend as far to the right as possible.
        ExprKind::Let(..) | ExprKind::If(..) | ExprKind::Try(..) | ExprKind::Unsupported(..) => 0,
        ExprKind::Chain(op, _) => chain_level(*op),
        ExprKind::Unary(Unary::Not, _) => 6,
        ExprKind::Unary(Unary::Identity, _) => 8,
        ExprKind::Unary(..) => 7,
        _ => 8,
    }
}

fn chain_level(op: Chain) -> u8 {
    match op {
        Chain::Union => 1,
        Chain::Seq => 2,
        Chain::Diff => 3,
        Chain::Inter => 4,
        Chain::Product => 5,
    }
}

fn write_expr(out: &mut String, e: &Expr, min: u8) {
    let bracket = level(e) < min;
    out.push_str(if bracket { "(" } else { "" });
    match &e.kind {
        ExprKind::Name(name) => out.push_str(name),
        ExprKind::Universe => out.push('_'),
        ExprKind::Zero => out.push('0'),
        ExprKind::EmptySet => out.push_str("{}"),
        ExprKind::Unary(Unary::Not, inner) => {
            out.push('~');
            write_expr(out, inner, 6);
        }
        ExprKind::Unary(Unary::Identity, inner) => {
            out.push('[');
            write_expr(out, inner, 0);
            out.push(']');
        }
        ExprKind::Unary(op, inner) => {
            write_expr(out, inner, 7);
            out.push_str(match op {
                Unary::Inverse => "^-1",
                Unary::Optional => "^?",
                Unary::Plus => "^+",
                _ => "^*",
            });
        }
        ExprKind::Chain(op, list) => {
            let symbol = match op {
                Chain::Union => " | ",
                Chain::Seq => " ; ",
                Chain::Diff => " \\ ",
                Chain::Inter => " & ",
                Chain::Product => " * ",
            };
            for (at, operand) in list.iter().enumerate() {
                out.push_str(if at > 0 { symbol } else { "" });
                write_expr(out, operand, chain_level(*op) + 1);
            }
        }
        ExprKind::Call(name, args) => {
            out.push_str(&name.name);
            write_args(out, args);
        }
        ExprKind::Let(bindings, body) => {
            out.push_str("let ");
            write_bindings(out, bindings);
            out.push_str(" in ");
            write_expr(out, body, 0);
        }
        ExprKind::If(variant, yes, no) => {
            let _ = write!(out, "if \"{variant}\" then ");
            write_expr(out, yes, 0);
            out.push_str(" else ");
            write_expr(out, no, 0);
        }
        ExprKind::Try(first, second) => {
            out.push_str("try ");
            write_expr(out, first, 1);
            out.push_str(" with ");
            write_expr(out, second, 0);
        }
        ExprKind::Unsupported(_, text) => out.push_str(text),
    }
    out.push_str(if bracket { ")" } else { "" });
}
