//! The clauses of a model, and the model without one of them: what a test-suite is measured by.
//!
//! A clause is what can go and leave a model: an axiom, a flag, an operand of `|` or `&`, what `\`
//! takes away, a lower bound of a free relation, or the value of an option, for which another one
//! stands in.
//!
//! # Invariants
//! - Clauses are those of the model's own files, as far as something uses them; the library's are
//!   not.
//! - A clause is named by what it is part of and its text, so that its name outlives changes
//!   elsewhere; of several of one name, all but the first have a number.

use std::collections::BTreeMap;
use std::sync::Arc;

use diag::{Diagnostic, SourceFile, Span};

use super::ast::{Chain, Stmt, StmtKind};
use super::ir::Model;
use super::library::IncludeResolver;
use super::lower::{Lowerer, Trees};
use super::part::{Gone, Met};
use super::signature::Signature;

pub use super::part::Part;

/// Something that can go from a model.
#[derive(Clone, Debug)]
pub struct Clause {
    /// As in `release-write: & REL`.
    pub name: String,
    /// What it is.
    pub part: Part,
    /// Where it stands, in [`Model::files`]`[.0]`.
    pub place: (u32, Span),
}

/// A model's text, and how it is read.
#[derive(Clone)]
pub struct Text<'a> {
    /// Its main file.
    pub main: Arc<SourceFile>,
    /// What output calls it.
    pub name: &'a str,
    /// Where the files come from that it includes.
    pub includes: &'a dyn IncludeResolver,
    /// What it may refer to.
    pub signature: &'a Signature,
    /// The shipped prelude that it takes if it declares no free relation.
    pub prelude: Option<&'a str>,
}

impl Text<'_> {
    /// The model, and its clauses in the order of the text.
    ///
    /// # Errors
    /// As [`super::load`].
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
    /// What is left is no model.
    pub fn without(&self, clause: &Clause) -> Result<Model, Vec<Diagnostic>> {
        let mut lowerer = Lowerer::new(self.signature, self.includes, self.main.clone());
        lowerer.gone = Some(Gone::new(clause.place, clause.part));
        lowerer.run(self.name, self.prelude)
    }
}

/// What was met, each once, and its name.
fn clauses(model: &Model, met: Vec<Met>, trees: &Trees) -> Vec<Clause> {
    let mut all: Vec<Clause> = Vec::new();
    for Met { place, part, text } in met {
        // What functions hold is met at every call.
        if !all.iter().any(|c| (c.place, c.part) == (place, part)) {
            all.push(Clause {
                name: text,
                part,
                place,
            });
        }
    }
    // What is included comes first: definitions before what rests on them.
    all.sort_by_key(|c| (std::cmp::Reverse(c.place.0), c.place.1.start, c.place.1.end));
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for clause in &mut all {
        let (file, span) = clause.place;
        let text = std::mem::take(&mut clause.name);
        let of = || part_of(&trees[&file].statements, span);
        let name = match clause.part {
            Part::Axiom(i) => format!("axiom {}", model.axioms[i].name),
            Part::Flag(i) => format!("flag {}", model.flags[i].name),
            Part::Bound => format!("{}: at least {text}", of()),
            Part::Option(value) => {
                let option = model.signature.options.iter().find(|o| o.name == of());
                format!(
                    "option {} = {}",
                    of(),
                    option.map_or("?", |o| o.values[value])
                )
            }
            Part::Operand(Chain::Inter) => format!("{}: & {text}", of()),
            Part::Operand(Chain::Diff) => format!("{}: \\ {text}", of()),
            Part::Operand(_) => format!("{}: | {text}", of()),
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

/// The definition, axiom, flag, free relation or option that holds a place.
fn part_of(statements: &[Stmt], span: Span) -> String {
    let holds = |s: &&Stmt| s.span.start <= span.start && span.end <= s.span.end;
    let Some(statement) = statements.iter().find(holds) else {
        return String::new();
    };
    match &statement.kind {
        StmtKind::Let { bindings, .. } => {
            let of = bindings
                .iter()
                .rev()
                .find(|b| b.name.span.start <= span.start);
            of.map_or(String::new(), |b| b.name.name.clone())
        }
        StmtKind::Free(decl) => decl.name.name.clone(),
        StmtKind::Option(name, _) => name.name.clone(),
        StmtKind::Test(test) => test.name.as_ref().map_or(String::new(), |n| n.name.clone()),
        StmtKind::Procedure(name, _, _) => name.name.clone(),
        StmtKind::If(_, _, no) => part_of(no, span),
        _ => String::new(),
    }
}
