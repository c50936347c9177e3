//! Names: what they mean at a place, and what to say when they mean nothing.
//!
//! # Invariants
//! - A name means its latest definition before the place of use, whether `let`, free relation or
//!   base name: later definitions shadow earlier ones, and a function keeps the names of the place
//!   where it was defined.
//! - Definitions of the library (`stdlib.cat`) are looked up last and evaluated when first used,
//!   over the *free* relations and base names alone: `let co = co+` in a model does not change the
//!   library's `fr`.
//! - [`Value::Poison`] stands for something that was already reported; nothing is reported about it
//!   again.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::ast::{Binding, Expr};
use super::build::Place;
use super::ir::{Kind, NodeId};
use diag::Span;

/// What an expression or a name denotes.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A set or a relation.
    Node(NodeId),
    /// `0`, whose kind the context decides.
    Zero,
    /// A function.
    Function(Rc<Function>),
    /// A definition whose right-hand side has no meaning here: the construct.
    Unsupported(Rc<str>),
    /// An error that was reported.
    Poison,
}

/// A function with the names that it sees.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) body: FunctionBody,
    pub(super) env: Env,
}

/// What a function does.
#[derive(Debug)]
pub(super) enum FunctionBody {
    /// Written in a model file.
    Written { params: Vec<String>, body: Expr },
    /// `domain`
    Domain,
    /// `range`
    Range,
    /// `toid`
    ToId,
}

/// The names visible at a place.
#[derive(Clone, Debug, Default)]
pub(super) struct Env {
    /// Definitions numbered below this are visible.
    pub(super) limit: u32,
    /// Inside the library: its definitions numbered below this are visible, and no others.
    pub(super) library: Option<u32>,
    /// Parameters and local definitions, innermost last.
    pub(super) locals: Vec<(String, Value)>,
    /// The file that the text is in.
    pub(super) file: u32,
}

/// A definition and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) number: u32,
    pub(super) value: Value,
    pub(super) place: Option<Place>,
}

/// All definitions so far.
#[derive(Default)]
pub(super) struct Scope {
    definitions: FxHashMap<String, Vec<Definition>>,
    count: u32,
}

impl Scope {
    /// Adds a definition, which shadows earlier ones of its name.
    pub(super) fn define(&mut self, name: &str, value: Value, place: Option<Place>) {
        let definition = Definition {
            number: self.count,
            value,
            place,
        };
        self.definitions
            .entry(name.to_string())
            .or_default()
            .push(definition);
        self.count += 1;
    }

    /// The number that the next definition gets: a limit that shows all so far.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// The latest definition numbered below `limit`.
    pub(super) fn get(&self, name: &str, limit: u32) -> Option<&Definition> {
        let list = self.definitions.get(name)?;
        list[..list.partition_point(|d| d.number < limit)].last()
    }

    /// All names, sorted.
    pub(super) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.definitions.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}

/// The library's definitions, not yet evaluated.
#[derive(Default)]
pub(super) struct LibraryScope {
    pub(super) bindings: Vec<Rc<Binding>>,
    pub(super) known: FxHashMap<u32, Value>,
    pub(super) file: Option<u32>,
}

impl LibraryScope {
    /// The latest definition of that name numbered below `limit`.
    pub(super) fn find(&self, name: &str, limit: u32) -> Option<u32> {
        let limit = (limit as usize).min(self.bindings.len());
        self.bindings[..limit]
            .iter()
            .rposition(|b| b.name.name == name)
            .map(|at| at as u32)
    }
}

/// "set" or "relation".
pub(super) fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Set => "set",
        Kind::Rel => "relation",
    }
}

/// One level of calls: which function, from where. For the notes of a diagnostic.
#[derive(Clone, Debug)]
pub(super) struct CallSite {
    pub(super) name: String,
    pub(super) file: u32,
    pub(super) span: Span,
}
