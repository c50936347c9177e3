//! Compilers under test: what they make of atomic operations, held against a mapping.
//!
//! | File | What |
//! |---|---|
//! | `operation` | the operations, and how each language writes them |
//! | `compiler` | compilers that are installed, and what they print |
//! | `record` | what one of them printed, kept as a file |
//! | `compiled` | the accesses and fences in what was printed |
//! | `strength` | whether they are as strong as asked |
//!
//! # Invariants
//! - No compiler is needed to read what one printed: a [`Record`] has all of it.
//! - What is weaker here is weaker instruction by instruction; whether a program notices, the
//!   models tell ([`Report::mapping`] is what they judge).

mod compiled;
mod compiler;
mod operation;
mod record;
mod strength;

pub use compiled::{Item, What, functions};
pub use compiler::{Compiler, Family, Output, PATIENCE};
pub use operation::{
    Form, LANGUAGES, Language, LanguageRow, Operation, kind_word, order_word, scope_word,
};
pub use record::Record;
pub use strength::{Strength, strength};

use front::mapping::{Kind, Mapping, Order, Reach, Row, Step};
use program::Scope;

/// What became of one operation.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Which.
    pub operation: Operation,
    /// What was made of it; an error: the compiler's reason to refuse it.
    pub made: Result<Vec<Item>, String>,
    /// What the mapping asks for.
    pub asked: Vec<Step>,
    /// How the two compare; `None`: it was refused, or nobody can say.
    pub strength: Option<Strength>,
}

/// What became of all operations of a language.
#[derive(Clone, Debug)]
pub struct Report {
    /// Who compiled what.
    pub record: Record,
    /// The mapping that it is held against.
    pub mapping: &'static Mapping,
    /// By operation.
    pub operations: Vec<Judged>,
}

/// Rows of read-modify-writes serve compare-exchanges, too: there, their step is one.
fn of(row: Kind, step: Kind) -> Kind {
    match (row, step) {
        (Kind::Rmw | Kind::Cas, Kind::Rmw | Kind::Cas) => row,
        _ => step,
    }
}

/// What a mapping makes of an operation at fixed scopes; `None`: it has no row.
pub fn asked(mapping: &Mapping, kind: Kind, order: Order, scope: Scope) -> Option<Vec<Step>> {
    let fixed = |step: &Step| {
        let reach = match step.reach {
            Reach::Mapped => Reach::Fixed(mapping.scope(scope)?),
            reach => reach,
        };
        Some(Step {
            reach,
            kind: of(kind, step.kind),
            ..*step
        })
    };
    mapping
        .steps(kind, order, Some(scope))?
        .iter()
        .map(fixed)
        .collect()
}

impl Report {
    /// Holds what was printed against a mapping. Operations that it has no row for are left out.
    pub fn new(record: Record, mapping: &'static Mapping) -> Report {
        let mut operations = Vec::new();
        for (operation, output) in record.outputs() {
            let (kind, order, scope) = operation.row();
            let Some(asked) = asked(mapping, kind, order, scope) else {
                continue;
            };
            let strength = output
                .as_ref()
                .ok()
                .and_then(|made| strength(kind, made, &asked));
            operations.push(Judged {
                operation,
                made: output,
                asked,
                strength,
            });
        }
        Report {
            record,
            mapping,
            operations,
        }
    }

    /// How many came out so.
    pub fn count(&self, strength: Strength) -> usize {
        self.operations
            .iter()
            .filter(|j| j.strength == Some(strength))
            .count()
    }

    /// The mapping, with what the compiler made in place of its rows: of that kind and order, or of
    /// all. Of operations of 32 bits, and of exchanges for read-modify-writes. Where no row can say
    /// what was made (a loop, a reduction, a call), the mapping's stays. `None`: every row is as
    /// before.
    pub fn observed(&self, only: Option<(Kind, Order)>) -> Option<Mapping> {
        let mut rows: Vec<Row> = Vec::new();
        let mut differs = false;
        for judged in &self.operations {
            let Operation { form, bits, .. } = judged.operation;
            if !matches!(bits, 0 | 32) || matches!(form, Form::Add | Form::AddUnused) {
                continue;
            }
            let (kind, order, scope) = judged.operation.row();
            let made = judged
                .made
                .as_ref()
                .ok()
                .filter(|_| only.is_none_or(|only| only == (kind, order)));
            let step = |item: &Item| match &item.what {
                What::Step(step) if !item.is_looped && !item.is_optional => Some(Step {
                    kind: of(kind, step.kind),
                    ..*step
                }),
                _ => None,
            };
            let made: Option<Vec<Step>> = made.and_then(|items| items.iter().map(step).collect());
            let differing = made.filter(|steps| *steps != judged.asked);
            differs |= differing.is_some();
            // A mapping without rows for compare-exchanges has those of read-modify-writes for
            // them.
            let steps = differing.or_else(|| (kind == Kind::Cas).then(|| judged.asked.clone()));
            // C has no scopes: its operations say none.
            let scope = (self.record.language != Language::C11).then_some(scope);
            rows.extend(steps.map(|steps| Row {
                kind,
                order,
                scope,
                steps,
            }));
        }
        if !differs {
            return None;
        }
        let mut mapping = self.mapping.clone();
        mapping.name = self.record.name();
        mapping.asked.clone_from(&mapping.name);
        mapping.current = false;
        let (compiler, language) = (&self.record.compiler, self.record.language.row().name);
        mapping.doc = format!(
            "what {compiler} made of {language}; where it made nothing, as in {}",
            self.mapping.name
        );
        mapping.sources = vec![format!("the output of {}", self.record.compiler)];
        mapping.gaps.clear();
        let key = |row: &Row| (row.kind, row.order, row.scope);
        mapping
            .rows
            .retain(|old| !rows.iter().any(|new| key(new) == key(old)));
        mapping.rows.extend(rows);
        Some(mapping)
    }
}

/// The mapping with the rows of compare-exchanges for exchanges: what it makes of the one that
/// succeeds.
pub fn as_exchanges(mapping: &Mapping) -> Mapping {
    let exchange = |row: &Row| {
        let steps = row
            .steps
            .iter()
            .map(|step| Step {
                kind: of(Kind::Rmw, step.kind),
                ..*step
            })
            .collect();
        Row {
            kind: Kind::Rmw,
            steps,
            ..row.clone()
        }
    };
    let of_compares: Vec<Row> = mapping
        .rows
        .iter()
        .filter(|row| row.kind == Kind::Cas)
        .map(exchange)
        .collect();
    let key = |row: &Row| (row.kind, row.order, row.scope);
    let mut mapping = mapping.clone();
    mapping
        .rows
        .retain(|old| !of_compares.iter().any(|new| key(new) == key(old)));
    mapping.rows.extend(of_compares);
    mapping
}
