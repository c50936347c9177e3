//! Reads the text of a model: its definitions, axioms and flags, each with its comment and the
//! names that it uses.
//!
//! # Invariants
//! - Everything is read off the model's files, included ones and the library among them; the code
//!   names no model and no definition.
//! - The comment of a definition is the one directly above it, or above its paragraph.

use std::sync::Arc;

use cat::model::Library;
use cat::model::ast::{CatExpr, CatExprKind, CatStmt, CatStmtKind, TestRole};
use cat::model::ir::{Kind as Shape, Model};
use cat::model::parse::parse;
use diag::{SourceFile, Span};

/// The kind of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatementKind {
    /// `let`.
    Definition,
    /// `let f(x) = …`.
    Function,
    /// `free`.
    Free,
    /// `acyclic`, `irreflexive`, `empty`.
    Axiom,
    /// `flag`.
    Flag,
}

impl StatementKind {
    /// For people.
    pub(super) fn words(self) -> &'static str {
        match self {
            StatementKind::Definition => "definition",
            StatementKind::Function => "function",
            StatementKind::Free => "free relation",
            StatementKind::Axiom => "axiom",
            StatementKind::Flag => "flag",
        }
    }
}

/// One name that a model's text introduces.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The name.
    pub name: String,
    /// Its kind.
    pub kind: StatementKind,
    /// The file, and the line of the statement.
    pub file: String,
    /// See `file`.
    pub line: usize,
    /// The statement as written.
    pub text: String,
    /// Its comment; empty if there is none.
    pub comment: String,
    /// The file's source document, as its first comment has it.
    pub source: String,
    /// The names that it uses, each once, in order.
    pub speaks_of: Vec<String>,
    /// For a flag or axiom: the tested expression, as written.
    pub tested: String,
}

impl Entry {
    /// Whether it is a set of events, and no relation.
    pub(super) fn is_set(&self, model: &Model) -> bool {
        let flag = || {
            model
                .flags
                .iter()
                .find(|f| f.name == self.name)
                .map(|f| f.node)
        };
        let node = match self.kind {
            StatementKind::Flag => flag(),
            _ => model
                .lets
                .iter()
                .rev()
                .find(|l| l.0 == self.name)
                .map(|l| l.1),
        };
        node.is_some_and(|node| model.node(node).kind == Shape::Set)
    }
}

/// All entries in the text of a model, in the order of its files; the library's definitions come
/// last.
pub(super) fn entries(model: &Model) -> Vec<Entry> {
    let library = Library::file("stdlib.cat");
    let mut files: Vec<Arc<SourceFile>> = model.files.clone();
    files.extend(library.filter(|l| files.iter().all(|f| f.name != l.name)));
    let mut entries: Vec<Entry> = files.iter().flat_map(of_file).collect();
    for name in entries.iter_mut().flat_map(|e| &mut e.speaks_of) {
        if let Some(own) = model.of_role(name) {
            *name = own.to_owned();
        }
    }
    entries
}

fn of_file(source: &Arc<SourceFile>) -> Vec<Entry> {
    let (file, _) = parse(source);
    let cited = cited(&file.header);
    let mut list = Vec::new();
    for (i, statement) in file.statements.iter().enumerate() {
        let comment = || comment(source, &file.statements[..=i]);
        let mut add = |name: &str, kind, comment: String, exprs: &[&CatExpr]| {
            let tested = match kind {
                StatementKind::Axiom | StatementKind::Flag => exprs
                    .first()
                    .map_or("", |e| slice(source, e.span))
                    .to_owned(),
                _ => String::new(),
            };
            list.push(Entry {
                name: name.to_owned(),
                kind,
                file: source.name.clone(),
                line: source.line_column(statement.span.start as usize).0,
                text: slice(source, statement.span).trim_end().to_owned(),
                comment,
                source: cited.clone(),
                speaks_of: names(exprs),
                tested,
            });
        };
        match &statement.kind {
            CatStmtKind::Let { bindings, .. } => {
                for binding in bindings {
                    let kind = if binding.params.is_some() {
                        StatementKind::Function
                    } else {
                        StatementKind::Definition
                    };
                    add(&binding.name.name, kind, comment(), &[&binding.body]);
                }
            }
            CatStmtKind::Free(free) => {
                let mut exprs = vec![&free.within];
                exprs.extend(free.containing.iter().chain(&free.covering));
                add(&free.name.name, StatementKind::Free, comment(), &exprs);
            }
            CatStmtKind::Test(test) => {
                if let Some(name) = &test.name {
                    let kind = if test.role == TestRole::Axiom {
                        StatementKind::Axiom
                    } else {
                        StatementKind::Flag
                    };
                    let doc = if test.doc.is_empty() {
                        comment()
                    } else {
                        test.doc.clone()
                    };
                    add(&name.name, kind, doc, &[&test.expr]);
                }
            }
            _ => {}
        }
    }
    list
}

/// The paragraph of a header that names the source document.
fn cited(header: &str) -> String {
    let mut lines = header
        .lines()
        .map(str::trim)
        .skip_while(|line| !line.starts_with("Source"));
    lines
        .by_ref()
        .take_while(|line| !line.is_empty() && !line.starts_with("Deviations"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn slice(source: &SourceFile, span: Span) -> &str {
    source.text.get(span.range()).unwrap_or_default()
}

/// The comment above the last of these statements: directly above it, or above its paragraph.
fn comment(source: &SourceFile, statements: &[CatStmt]) -> String {
    for statement in statements.iter().rev() {
        let before = source
            .text
            .get(..statement.span.start as usize)
            .unwrap_or_default();
        let gap = &before[before.trim_end().len()..];
        if gap.matches('\n').count() > 1 {
            return String::new();
        }
        if let Some(open) = before
            .trim_end()
            .strip_suffix("*)")
            .and_then(|rest| rest.rfind("(*"))
        {
            let inner = before.trim_end().trim_end_matches("*)");
            let lines: Vec<&str> = inner[open + 2..].lines().map(str::trim).collect();
            return lines.join("\n").trim().to_owned();
        }
    }
    String::new()
}

/// The names in some expressions, each once, in order; parameters among them.
fn names(exprs: &[&CatExpr]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut note = |name: &str| {
        if names.iter().all(|n| n != name) {
            names.push(name.to_owned());
        }
    };
    for expr in exprs {
        expr.walk(&mut |e| {
            match &e.kind {
                CatExprKind::Name(name) => note(name),
                CatExprKind::Call(function, _) => note(&function.name),
                _ => {}
            }
            true
        });
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Entry> {
        of_file(&SourceFile::new("m.cat", text))
    }

    #[test]
    fn a_comment_is_that_of_the_paragraph() {
        let list =
            of("M \"m\"\n(* header *)\n\n(* Both. *)\nlet a = po\nlet b = a ; a\n\nlet c = b\n");
        let comments: Vec<&str> = list.iter().map(|e| e.comment.as_str()).collect();
        assert_eq!(comments, ["Both.", "Both.", ""]);
        assert_eq!((list[1].text.as_str(), list[1].line), ("let b = a ; a", 6));
        assert_eq!(list[1].speaks_of, ["a"]);
    }

    #[test]
    fn axioms_and_flags_know_what_they_test() {
        let list = of(
            "M \"m\"\n(* header *)\n\n(* Source. Forbids T. *)\nempty po \\ rf as A\nflag ~empty \
            po as f\n",
        );
        assert_eq!(
            (list[0].kind, list[0].tested.as_str()),
            (StatementKind::Axiom, "po \\ rf")
        );
        assert_eq!(list[0].comment, "Source. Forbids T.");
        assert_eq!(
            (list[1].kind, list[1].tested.as_str()),
            (StatementKind::Flag, "po")
        );
    }

    #[test]
    fn every_file_of_every_shipped_model_is_read() {
        let signature = engine::skeleton::signature::signature();
        for name in Library::names() {
            let model = cat::model::load_shipped(name, &signature).unwrap().unwrap();
            let list = entries(&model);
            for axiom in &model.axioms {
                assert!(
                    list.iter()
                        .any(|e| e.kind == StatementKind::Axiom && e.name == axiom.name),
                    "{name}: {}",
                    axiom.name
                );
            }
            for (definition, ..) in &model.lets {
                assert!(
                    list.iter().any(|e| e.name == *definition),
                    "{name}: {definition}"
                );
            }
        }
    }
}
