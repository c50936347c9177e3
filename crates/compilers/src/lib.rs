//! Tests compilers: compares the code that they generate for atomic operations with a mapping.
//!
//! | File | What |
//! |---|---|
//! | `operation` | the operations, and their source text in each language |
//! | `compiler` | finding and running installed compilers |
//! | `record` | the output of one compiler, kept as a file |
//! | `compiled` | the accesses and fences in that output |
//! | `strength` | whether they are as strong as the mapping requires |
//!
//! # Invariants
//! - Reading recorded output needs no compiler: a [`CompilerRecord`] contains all of it.
//! - The comparison here is instruction by instruction. The models decide whether a program can
//!   observe a weaker instruction ([`CompilerReport::mapping`] is the mapping to judge).

mod compiled;
mod compiler;
mod operation;
mod record;
mod strength;

pub use compiled::{CompiledInstr, CompiledItem, functions};
pub use compiler::{Compiler, Family, Output, PATIENCE};
pub use operation::{
    AtomicOperation, LANGUAGES, LanguageRow, OperationForm, SourceLanguage, kind_word, order_word,
    scope_word,
};
pub use record::CompilerRecord;
pub use strength::{Strength, strength};

use front::mapping::{Mapping, MappingRow, MappingStep, OpKind, SourceOrder, StepScope};
use program::Scope;

/// The result for one operation.
#[derive(Clone, Debug)]
pub struct OperationResult {
    /// The operation.
    pub operation: AtomicOperation,
    /// The generated code; an error is the compiler's reason for refusing it.
    pub made: Result<Vec<CompiledItem>, String>,
    /// The steps that the mapping requires.
    pub asked: Vec<MappingStep>,
    /// The comparison of the two; `None`: the compiler refused it, or the two cannot be compared.
    pub strength: Option<Strength>,
}

/// The results for all operations of a language.
#[derive(Clone, Debug)]
pub struct CompilerReport {
    /// The compiler's output.
    pub record: CompilerRecord,
    /// The mapping to compare with.
    pub mapping: &'static Mapping,
    /// The result of each operation.
    pub operations: Vec<OperationResult>,
}

/// The rows of read-modify-writes also serve compare-exchanges, whose steps are then
/// compare-exchanges.
fn of(row: OpKind, step: OpKind) -> OpKind {
    match (row, step) {
        (OpKind::Rmw | OpKind::Cas, OpKind::Rmw | OpKind::Cas) => row,
        _ => step,
    }
}

/// The steps of a mapping for an operation, with fixed scopes; `None`: it has no row.
pub fn asked(
    mapping: &Mapping,
    kind: OpKind,
    order: SourceOrder,
    scope: Scope,
) -> Option<Vec<MappingStep>> {
    mapping
        .steps(kind, order, Some(scope))?
        .iter()
        .map(|step| {
            let reach = match step.reach {
                StepScope::Mapped => StepScope::Fixed(mapping.scope(scope)?),
                reach => reach,
            };
            Some(MappingStep {
                reach,
                kind: of(kind, step.kind),
                ..*step
            })
        })
        .collect()
}

impl CompilerReport {
    /// Compares recorded output with a mapping. Operations without a row are left out.
    pub fn new(record: CompilerRecord, mapping: &'static Mapping) -> CompilerReport {
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
            operations.push(OperationResult {
                operation,
                made: output,
                asked,
                strength,
            });
        }
        CompilerReport {
            record,
            mapping,
            operations,
        }
    }

    /// The number of operations with this result.
    pub fn count(&self, strength: Strength) -> usize {
        self.operations
            .iter()
            .filter(|j| j.strength == Some(strength))
            .count()
    }

    /// The mapping with the generated code in place of its rows: of all rows, or of those with one
    /// kind and order. Uses operations of 32 bits, and exchanges for read-modify-writes. If a row
    /// cannot express the generated code (a loop, a reduction, a call), the original row stays.
    /// `None`: no row differs.
    pub fn observed(&self, only: Option<(OpKind, SourceOrder)>) -> Option<Mapping> {
        let mut rows: Vec<MappingRow> = Vec::new();
        let mut differs = false;
        for judged in &self.operations {
            let AtomicOperation { form, bits, .. } = judged.operation;
            if !matches!(bits, 0 | 32)
                || matches!(form, OperationForm::Add | OperationForm::AddUnused)
            {
                continue;
            }
            let (kind, order, scope) = judged.operation.row();
            let made = judged
                .made
                .as_ref()
                .ok()
                .filter(|_| only.is_none_or(|only| only == (kind, order)));
            let made: Option<Vec<MappingStep>> = made.and_then(|items| {
                items
                    .iter()
                    .map(|item| match &item.what {
                        CompiledInstr::Step(step) if !item.is_looped && !item.is_optional => {
                            Some(MappingStep {
                                kind: of(kind, step.kind),
                                ..*step
                            })
                        }
                        _ => None,
                    })
                    .collect()
            });
            let differing = made.filter(|steps| *steps != judged.asked);
            differs |= differing.is_some();
            // A mapping without rows for compare-exchanges uses its rows for read-modify-writes.
            let steps = differing.or_else(|| (kind == OpKind::Cas).then(|| judged.asked.clone()));
            // C has no scopes, so its rows name none.
            let scope = (self.record.language != SourceLanguage::C11).then_some(scope);
            rows.extend(steps.map(|steps| MappingRow {
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
            "the instructions that {compiler} printed for {language}; the others as in {}",
            self.mapping.name
        );
        mapping.sources = vec![format!("the output of {}", self.record.compiler)];
        mapping.gaps.clear();
        fn key(row: &MappingRow) -> (OpKind, SourceOrder, Option<Scope>) {
            (row.kind, row.order, row.scope)
        }
        mapping
            .rows
            .retain(|old| !rows.iter().any(|new| key(new) == key(old)));
        mapping.rows.extend(rows);
        Some(mapping)
    }
}

/// The mapping with its compare-exchange rows for exchanges: the code of a successful
/// compare-exchange.
pub fn as_exchanges(mapping: &Mapping) -> Mapping {
    fn exchange(row: &MappingRow) -> MappingRow {
        let steps = row
            .steps
            .iter()
            .map(|step| MappingStep {
                kind: of(OpKind::Rmw, step.kind),
                ..*step
            })
            .collect();
        MappingRow {
            kind: OpKind::Rmw,
            steps,
            ..row.clone()
        }
    }
    let of_compares: Vec<MappingRow> = mapping
        .rows
        .iter()
        .filter(|row| row.kind == OpKind::Cas)
        .map(exchange)
        .collect();
    fn key(row: &MappingRow) -> (OpKind, SourceOrder, Option<Scope>) {
        (row.kind, row.order, row.scope)
    }
    let mut mapping = mapping.clone();
    mapping
        .rows
        .retain(|old| !of_compares.iter().any(|new| key(new) == key(old)));
    mapping.rows.extend(of_compares);
    mapping
}
