//! Splits a model into clauses, and builds the model without one of them. A test-suite is measured
//! by the clauses that it distinguishes.
//!
//! A clause is a removable part of a model: an axiom, a flag, an operand of `|` or `&`, a right
//! operand of `\`, a lower bound of a free relation, or the value of an option. Removing an
//! option's value replaces it by another value.
//!
//! # Invariants
//! - Clauses come from the model's own files, without the library, and only from parts that the
//!   model uses.
//! - A clause's name consists of the enclosing definition and its text, so that changes elsewhere
//!   do not rename it. If several share a name, all but the first get a number.

use std::collections::BTreeMap;
use std::sync::Arc;

use diag::{Diagnostic, SourceFile, Span};

use super::ast::{CatStmt, CatStmtKind, ChainOp};
use super::ir::Model;
use super::library::IncludeResolver;
use super::lower::{Lowerer, Trees};
use super::part::{ClauseOccurrence, ClauseRemoval};
use super::signature::Signature;

pub use super::part::ClausePart;

/// A removable part of a model.
#[derive(Clone, Debug)]
pub struct Clause {
    /// A name such as `release-write: & REL`.
    pub name: String,
    /// The kind of clause.
    pub part: ClausePart,
    /// Its span, in [`Model::files`]`[.0]`.
    pub place: (u32, Span),
}

/// A model's text and its context.
#[derive(Clone)]
pub struct ModelText<'a> {
    /// Its main file.
    pub main: Arc<SourceFile>,
    /// The name in output.
    pub name: &'a str,
    /// Resolves its includes.
    pub includes: &'a dyn IncludeResolver,
    /// The base names and options that it may use.
    pub signature: &'a Signature,
    /// The shipped prelude that it gets if it declares no free relation.
    pub prelude: Option<&'a str>,
}

impl ModelText<'_> {
    /// The model with its clauses in the order of the text.
    ///
    /// # Errors
    /// The errors of [`super::load`].
    pub fn clauses(&self) -> Result<(Model, Vec<Clause>), Vec<Diagnostic>> {
        let mut lowerer = Lowerer::new(self.signature, self.includes, self.main.clone());
        lowerer.met = Some(Vec::new());
        let (model, met, trees) = lowerer.run_with_clauses(self.name, self.prelude)?;
        let all = clauses(&model, met, &trees);
        Ok((model, all))
    }

    /// The model without one of its clauses.
    ///
    /// # Errors
    /// If the rest is not a valid model.
    pub fn without(&self, clause: &Clause) -> Result<Model, Vec<Diagnostic>> {
        let mut lowerer = Lowerer::new(self.signature, self.includes, self.main.clone());
        lowerer.gone = Some(ClauseRemoval::new(clause.place, clause.part));
        lowerer.run(self.name, self.prelude)
    }
}

/// The collected clauses, each once, with their names.
fn clauses(model: &Model, met: Vec<ClauseOccurrence>, trees: &Trees) -> Vec<Clause> {
    let mut all: Vec<Clause> = Vec::new();
    for ClauseOccurrence { place, part, text } in met {
        // The lowerer meets a function's parts at every call.
        if !all.iter().any(|c| (c.place, c.part) == (place, part)) {
            all.push(Clause {
                name: text,
                part,
                place,
            });
        }
    }
    // Included files come first, so that definitions precede their uses.
    all.sort_by_key(|c| (std::cmp::Reverse(c.place.0), c.place.1.start, c.place.1.end));
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for clause in &mut all {
        let (file, span) = clause.place;
        let text = std::mem::take(&mut clause.name);
        let of = || part_of(&trees[&file].statements, span);
        let name = match clause.part {
            ClausePart::Axiom(i) => format!("axiom {}", model.axioms[i].name),
            ClausePart::Flag(i) => format!("flag {}", model.flags[i].name),
            ClausePart::Bound => format!("{}: at least {text}", of()),
            ClausePart::Option(value) => {
                let option = model.signature.options.iter().find(|o| o.name == of());
                format!(
                    "option {} = {}",
                    of(),
                    option.map_or("?", |o| o.values[value])
                )
            }
            ClausePart::Operand(ChainOp::Inter) => format!("{}: & {text}", of()),
            ClausePart::Operand(ChainOp::Diff) => format!("{}: \\ {text}", of()),
            ClausePart::Operand(_) => format!("{}: | {text}", of()),
        };
        let count = names.entry(name.clone()).or_default();
        *count += 1;
        clause.name = if *count > 1 {
            format!("{name} #{count}")
        } else {
            name
        };
    }
    all
}

/// The definition, axiom, flag, free relation or option that contains a span.
fn part_of(statements: &[CatStmt], span: Span) -> String {
    let Some(statement) = statements
        .iter()
        .find(|s| s.span.start <= span.start && span.end <= s.span.end)
    else {
        return String::new();
    };
    match &statement.kind {
        CatStmtKind::Let { bindings, .. } => {
            let of = bindings
                .iter()
                .rev()
                .find(|b| b.name.span.start <= span.start);
            of.map_or(String::new(), |b| b.name.name.clone())
        }
        CatStmtKind::Free(decl) => decl.name.name.clone(),
        CatStmtKind::Option(name, _) => name.name.clone(),
        CatStmtKind::Test(test) => test.name.as_ref().map_or(String::new(), |n| n.name.clone()),
        CatStmtKind::Procedure(name, _, _) => name.name.clone(),
        CatStmtKind::If(_, _, no) => part_of(no, span),
        _ => String::new(),
    }
}
