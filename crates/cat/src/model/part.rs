//! What the lowering of a model tells of its clauses, and which one it leaves out.

use diag::Span;

use super::ast::Chain;
use super::build::Place;

/// What a clause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// An axiom, by number.
    Axiom(usize),
    /// A flag, by number.
    Flag(usize),
    /// What a free relation holds or covers at least.
    Bound,
    /// Another value of an option, by number.
    Option(usize),
    /// An operand.
    Operand(Chain),
}

/// A clause, where it was met.
pub(super) struct Met {
    pub(super) place: Place,
    pub(super) part: Part,
    /// Its text, if it is an expression.
    pub(super) text: String,
}

/// Which clause goes.
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

    /// The value that an option has instead.
    pub(super) fn value(&self) -> Option<usize> {
        match self.part {
            Part::Option(value) => Some(value),
            _ => None,
        }
    }
}
