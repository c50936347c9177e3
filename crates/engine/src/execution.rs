//! Defines executions: a skeleton with every choice made.

use super::eval::Assignment;
use cat::rel::{EventSet, Rel};
use program::memory::CellId;

/// A candidate execution as an engine returns it; nothing may rely on it before its replay.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The events that execute.
    pub executed: EventSet,
    /// By event: the value that each executed read returns.
    pub reads: Vec<Option<i64>>,
    /// By choice of the skeleton: its value.
    pub choices: Vec<bool>,
    /// By free relation of the model: its pairs.
    pub free: Vec<Rel>,
    /// For each observed cell, the write that gives its final value.
    pub finals: Vec<(CellId, usize)>,
}

impl Execution {
    /// The write that gives the final value of an observed cell.
    pub fn last_write(&self, cell: CellId) -> Option<usize> {
        self.finals
            .iter()
            .find(|last| last.0 == cell)
            .map(|last| last.1)
    }

    /// The values of its reads and choices.
    pub fn known(&self) -> Assignment {
        Assignment {
            reads: self.reads.clone(),
            choices: self.choices.iter().copied().map(Some).collect(),
        }
    }
}
