//! What a model may refer to: base sets and relations, and options. The skeleton fills it in; this module only
//! defines its form, so that the model language knows no program.

use super::ir::Kind;

/// One base set or relation.
#[derive(Clone, Debug)]
pub struct BaseName {
    /// The name in model files.
    pub name: &'static str,
    /// Set or relation.
    pub kind: Kind,
    /// One line.
    pub doc: &'static str,
}

/// One option: all that a model can tell the skeleton.
#[derive(Clone, Debug)]
pub struct OptionSpec {
    /// The name after `option`.
    pub name: &'static str,
    /// The values it can take; the first is the default.
    pub values: &'static [&'static str],
    /// One line.
    pub doc: &'static str,
}

/// The whole table.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    /// Base sets and relations.
    pub names: Vec<BaseName>,
    /// Options.
    pub options: Vec<OptionSpec>,
}

impl Signature {
    /// The base set or relation of that name.
    pub fn get(&self, name: &str) -> Option<&BaseName> {
        self.names.iter().find(|n| n.name == name)
    }
}
