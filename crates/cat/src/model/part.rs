//! The record of clauses while lowering a model, and the clause to leave out.

use diag::Span;

use super::ast::ChainOp;
use super::build::Place;

/// The kind of a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClausePart {
    /// An axiom, by number.
    Axiom(usize),
    /// A flag, by number.
    Flag(usize),
    /// The lower bound or the covering of a free relation.
    Bound,
    /// The value of an option; removal sets the value with this number.
    Option(usize),
    /// An operand of a chain.
    Operand(ChainOp),
}

/// An occurrence of a clause.
pub(super) struct ClauseOccurrence {
    pub(super) place: Place,
    pub(super) part: ClausePart,
    /// Its text, if it is an expression.
    pub(super) text: String,
}

/// The clause to leave out.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClauseRemoval {
    place: Place,
    part: ClausePart,
}

impl ClauseRemoval {
    pub(super) fn new(place: Place, part: ClausePart) -> ClauseRemoval {
        ClauseRemoval { place, part }
    }

    pub(super) fn is_at(&self, file: u32, span: Span) -> bool {
        self.place == (file, span)
    }

    /// The replacement value of an option.
    pub(super) fn value(&self) -> Option<usize> {
        match self.part {
            ClausePart::Option(value) => Some(value),
            _ => None,
        }
    }
}
