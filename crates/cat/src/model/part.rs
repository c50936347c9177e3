//! The record of clauses while lowering a model, and the clause to leave out.

use diag::Span;

use super::ast::Chain;
use super::build::Place;

/// The kind of a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// An axiom, by number.
    Axiom(usize),
    /// A flag, by number.
    Flag(usize),
    /// The lower bound or the covering of a free relation.
    Bound,
    /// The value of an option; removal sets the value with this number.
    Option(usize),
    /// An operand of a chain.
    Operand(Chain),
}

/// An occurrence of a clause.
pub(super) struct Met {
    pub(super) place: Place,
    pub(super) part: Part,
    /// Its text, if it is an expression.
    pub(super) text: String,
}

/// The clause to leave out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gone {
    place: Place,
    part: Part,
}

impl Gone {
    pub(super) fn new(place: Place, part: Part) -> Gone {
        Gone { place, part }
    }

    pub(super) fn is_at(&self, file: u32, span: Span) -> bool {
        self.place == (file, span)
    }

    /// The replacement value of an option.
    pub(super) fn value(&self) -> Option<usize> {
        match self.part {
            Part::Option(value) => Some(value),
            _ => None,
        }
    }
}
