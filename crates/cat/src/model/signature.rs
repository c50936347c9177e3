//! The base sets and relations and the options that a model may use. The skeleton supplies them, so
//! that the model language knows no program.

use std::sync::Arc;

use super::ir::Kind;

/// A base set or relation: its index in [`Signature::names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BaseId(pub u16);

impl BaseId {
    /// As an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// One base set or relation.
#[derive(Clone, Debug)]
pub struct BaseName {
    /// The name in model files.
    pub name: &'static str,
    /// Set or relation.
    pub kind: Kind,
    /// A description in one line.
    pub doc: &'static str,
}

/// An option, by which a model controls the skeleton.
#[derive(Clone, Debug)]
pub struct OptionSpec {
    /// The name after `option`.
    pub name: &'static str,
    /// The values it can take; the first is the default.
    pub values: &'static [&'static str],
    /// A description in one line.
    pub doc: &'static str,
    /// A base name: in published files that do not mention it, the option has its last value.
    pub unspoken: Option<&'static str>,
}

/// The value of an option: indices in [`Signature::options`] and [`OptionSpec::values`].
pub type OptionValue = (usize, usize);

/// All base names and options.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    /// Base sets and relations.
    pub names: Arc<[BaseName]>,
    /// Options.
    pub options: Vec<OptionSpec>,
}

impl Signature {
    /// The base set or relation of that name.
    pub fn find(&self, name: &str) -> Option<BaseId> {
        self.names
            .iter()
            .position(|n| n.name == name)
            .map(|at| BaseId(at as u16))
    }
}
