//! Finds the arrays of dynamic shared memory in the code of a kernel: `extern __shared__ int s[];`
//! in its body, outside of all functions, or in a function or class that it needs.
//!
//! # Invariants
//! - Each name is given once, in the order of the text: outside of functions and in the kernel
//!   first, then in other functions.
//!
//! # Sources
//! - CUDA C++ Programming Guide, *__shared__*: all these arrays begin at one address.

use super::ast::{Base, Declaration, Declared, Function, Specifiers, Stmt, StmtKind, Storage};

/// An array of dynamic shared memory: the specifiers of its declaration, and its name.
pub(super) type DynamicArray<'a> = (&'a Specifiers, &'a Declared);

/// The arrays of dynamic shared memory.
pub(super) fn arrays<'a>(
    text: &str,
    stmts: &'a [Stmt],
    kernel: &'a Function,
) -> Vec<DynamicArray<'a>> {
    let mut found: Vec<&Declaration> = Vec::new();
    for stmt in stmts.iter().chain(&kernel.body) {
        of_stmt(stmt, &mut found);
    }
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::Function(Some(function)) => of_function(function, &mut found),
            StmtKind::Declare(declaration) => {
                if let Base::Struct(class) = &declaration.specifiers.base {
                    let functions = class.functions.iter();
                    functions.for_each(|function| of_function(function, &mut found));
                }
            }
            _ => {}
        }
    }
    let mut arrays: Vec<DynamicArray<'a>> = Vec::new();
    for declaration in found {
        for declared in &declaration.all {
            let name = |declared: &Declared| &text[declared.declarator.name.clone()];
            if !arrays.iter().any(|known| name(known.1) == name(declared)) {
                arrays.push((&declaration.specifiers, declared));
            }
        }
    }
    arrays
}

fn of_function<'a>(function: &'a Function, found: &mut Vec<&'a Declaration>) {
    function.body.iter().for_each(|stmt| of_stmt(stmt, found));
}

fn of_stmt<'a>(stmt: &'a Stmt, found: &mut Vec<&'a Declaration>) {
    match &stmt.kind {
        StmtKind::Declare(declaration) => {
            let has = |storage| declaration.specifiers.has(storage).is_some();
            if has(Storage::Extern) && has(Storage::Shared) {
                found.push(declaration);
            }
        }
        StmtKind::Block(all) => all.iter().for_each(|stmt| of_stmt(stmt, found)),
        StmtKind::If { then, other, .. } => {
            of_stmt(then, found);
            other.iter().for_each(|stmt| of_stmt(stmt, found));
        }
        StmtKind::Loop { body, .. }
        | StmtKind::Elements { body, .. }
        | StmtKind::Switch { body, .. }
        | StmtKind::Labelled(_, body) => of_stmt(body, found),
        _ => {}
    }
}
