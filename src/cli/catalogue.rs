//! Models by name or file, each loaded once per prelude.
//!
//! # Invariants
//! - What is wrong with a model is told once, however many tests ask for it.
//! - A [`Named`] model's label is what expectations and result lines call it.

use std::collections::HashMap;
use std::sync::Arc;

use super::seams;
use cat::model::ir::Model;
use diag::Diagnostic;
use program::Dialect;

/// A model, and what to call it.
#[derive(Clone)]
pub(super) struct Named {
    /// Its shipped name, or the file name without `.cat`.
    pub label: String,
    /// As it was asked for.
    pub request: String,
    /// The model.
    pub model: Arc<Model>,
}

/// What a name turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameKind {
    /// A shipped model.
    Shipped,
    /// Reserved for a model that is not shipped yet.
    Reserved,
    /// A path.
    File,
    /// None of these.
    Unknown,
}

/// Loads models on demand.
pub(super) struct Catalogue {
    shipped: Vec<String>,
    prelude: Option<String>,
    /// By name and prelude; `None` if it could not be loaded.
    loaded: HashMap<(String, String), Option<Named>>,
    diagnostics: Vec<Diagnostic>,
}

impl Catalogue {
    /// Nothing is loaded yet. `prelude` overrides that of the test's dialect.
    pub(super) fn new(prelude: Option<String>) -> Catalogue {
        Catalogue { shipped: seams::model_names(), prelude, loaded: HashMap::new(), diagnostics: Vec::new() }
    }

    /// The shipped models' names.
    pub(super) fn shipped(&self) -> &[String] {
        &self.shipped
    }

    /// What kind of name it is.
    pub(super) fn kind(&self, name: &str) -> NameKind {
        if self.shipped.iter().any(|n| n == name) {
            NameKind::Shipped
        } else if name.ends_with(".cat") || name.contains(['/', std::path::MAIN_SEPARATOR]) {
            NameKind::File
        } else if seams::RESERVED_NAMES.contains(&name) {
            NameKind::Reserved
        } else {
            NameKind::Unknown
        }
    }

    /// What is wrong with a name that names nothing we have.
    pub(super) fn unknown(&self, name: &str) -> Diagnostic {
        match self.kind(name) {
            NameKind::Reserved => {
                Diagnostic::plain("model-not-shipped", format!("model `{name}` is not shipped yet"))
                    .help("its published .cat file may be tried with `--model FILE.cat`")
            }
            _ => Diagnostic::plain("unknown-model", format!("there is no model `{name}`"))
                .note(format!("models: {}; or a file that ends in .cat", self.shipped.join(", ")))
                .did_you_mean(name, self.shipped.iter().map(String::as_str)),
        }
    }

    /// The model of that name, for tests of that dialect; `None` if it cannot be had, which [`Catalogue::diagnostics`]
    /// then tells.
    pub(super) fn get(&mut self, name: &str, dialect: Dialect) -> Option<Named> {
        let prelude = self.prelude.clone().unwrap_or_else(|| dialect.row().prelude.to_owned());
        self.load(name, &prelude)
    }

    /// The model of that name with that prelude.
    pub(super) fn load(&mut self, name: &str, prelude: &str) -> Option<Named> {
        let key = (name.to_owned(), prelude.to_owned());
        if let Some(known) = self.loaded.get(&key) {
            return known.clone();
        }
        let kind = self.kind(name);
        let result = match kind {
            NameKind::Shipped | NameKind::File => seams::load_model(name, prelude),
            NameKind::Reserved | NameKind::Unknown => Err(vec![self.unknown(name)]),
        };
        let model = match result {
            Ok(model) => {
                if model.axioms.is_empty() {
                    let message = format!("model `{name}` has no axioms: it allows everything");
                    self.diagnostics.push(Diagnostic::plain("no-axioms", message).warning());
                }
                let label = if kind == NameKind::Shipped { name.to_owned() } else { model.name.clone() };
                Some(Named { label, request: name.to_owned(), model: Arc::new(model) })
            }
            Err(diagnostics) => {
                // With another prelude, most messages are the same ones.
                for diagnostic in diagnostics {
                    if !self.diagnostics.contains(&diagnostic) {
                        self.diagnostics.push(diagnostic);
                    }
                }
                None
            }
        };
        self.loaded.insert(key, model.clone());
        model
    }

    /// What went wrong so far.
    pub(super) fn diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Catalogue {
        let mut catalogue = Catalogue::new(None);
        catalogue.shipped = vec!["ptx".into(), "ptx-v6.0".into(), "ptx-v7.5".into()];
        catalogue
    }

    #[test]
    fn names_are_told_apart() {
        let c = catalogue();
        assert_eq!(c.kind("ptx"), NameKind::Shipped);
        assert_eq!(c.kind("vulkan"), NameKind::Reserved);
        assert_eq!(c.kind("ptx.cat"), NameKind::File);
        assert_eq!(c.kind("./ptx"), NameKind::File);
        assert_eq!(c.kind("ptx-v7.6"), NameKind::Unknown);
    }

    #[test]
    fn a_typo_is_told_once_with_a_proposal() {
        let mut c = catalogue();
        assert!(c.get("ptx-v7.6", Dialect::Ptx).is_none());
        assert!(c.get("ptx-v7.6", Dialect::C).is_none());
        let diagnostics = c.diagnostics();
        assert_eq!(diagnostics.len(), 1);
        assert_eq!(diagnostics[0].help.as_deref(), Some("did you mean `ptx-v7.5`?"));
    }
}
