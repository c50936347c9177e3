//! Scopes and values of names.
//!
//! # Invariants
//! - A name denotes its latest definition before the use, whether `let`, free relation or base
//!   name. Later definitions shadow earlier ones. A function keeps the names visible at its
//!   definition.
//! - Definitions of the library (`stdlib.cat`) are looked up last and evaluated at their first use.
//!   They see only the *free* relations and base names: `let co = co+` in a model does not change
//!   the library's `fr`.
//! - [`NameValue::Poison`] marks a reported error and prevents further reports about it.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::ast::{CatExpr, LetBinding};
use super::build::Place;
use super::ir::{Kind, NodeId};
use diag::Span;

/// The meaning of an expression or a name.
#[derive(Clone, Debug)]
pub(super) enum NameValue {
    /// A set or a relation.
    Node(NodeId),
    /// `0`, whose kind the context decides.
    Zero,
    /// A function.
    Function(Rc<ModelFunction>),
    /// A definition with an unsupported right-hand side: the construct.
    Unsupported(Rc<str>),
    /// An error that was reported.
    Poison,
}

/// A function with the names visible in it.
#[derive(Debug)]
pub(super) struct ModelFunction {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) body: FunctionBody,
    pub(super) env: NameEnv,
}

/// The body of a function.
#[derive(Debug)]
pub(super) enum FunctionBody {
    /// Written in a model file.
    Written { params: Vec<String>, body: CatExpr },
    /// `domain`
    Domain,
    /// `range`
    Range,
    /// `toid`
    ToId,
}

/// The names visible at a place.
#[derive(Clone, Debug, Default)]
pub(super) struct NameEnv {
    /// Definitions with smaller numbers are visible.
    pub(super) limit: u32,
    /// Inside the library: only its definitions with smaller numbers are visible.
    pub(super) library: Option<u32>,
    /// Parameters and local definitions, innermost last.
    pub(super) locals: Vec<(String, NameValue)>,
    /// The file of the text.
    pub(super) file: u32,
}

/// A definition with its place.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) number: u32,
    pub(super) value: NameValue,
    pub(super) place: Option<Place>,
}

/// All definitions so far.
#[derive(Default)]
pub(super) struct DefinitionScope {
    definitions: FxHashMap<String, Vec<Definition>>,
    count: u32,
}

impl DefinitionScope {
    /// Adds a definition, which shadows earlier ones of its name.
    pub(super) fn define(&mut self, name: &str, value: NameValue, place: Option<Place>) {
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

    /// The number of the next definition; as a limit, it makes all definitions so far visible.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// The latest definition with a number below `limit`.
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
    pub(super) bindings: Vec<Rc<LetBinding>>,
    pub(super) known: FxHashMap<u32, NameValue>,
    pub(super) file: Option<u32>,
}

impl LibraryScope {
    /// The latest definition with that name and a number below `limit`.
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

/// One level of calls: the function and the place of the call. For the notes of a diagnostic.
#[derive(Clone, Debug)]
pub(super) struct CallSite {
    pub(super) name: String,
    pub(super) file: u32,
    pub(super) span: Span,
}
