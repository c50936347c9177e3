//! Loads models by name or file, each once per prelude.
//!
//! # Invariants
//! - A fault of a model is reported once, however many tests use the model.
//! - A [`Named`] model's label is its name in expectations and result lines.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::seams;
use cat::model::ir::Model;
use diag::Diagnostic;
use program::Dialect;
use program::dialect::DIALECTS;

/// A model, and its names.
#[derive(Clone)]
pub(super) struct Named {
    /// Its shipped name, or the file name without `.cat`.
    pub label: String,
    /// The name in the request, which answers show: a file is no shipped model, whatever its name.
    pub request: String,
    /// The model.
    pub model: Arc<Model>,
}

/// The model that expectations of a request are about.
pub(super) fn label(request: &str) -> String {
    let stem = request
        .strip_suffix(".cat")
        .map(|_| Path::new(request).file_stem());
    stem.flatten().map_or(request.to_owned(), |stem| {
        stem.to_string_lossy().into_owned()
    })
}

/// The kind of a name.
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
    /// By name and the dialect of tests: the dialect that the model is about.
    spoken: HashMap<(String, Dialect), Option<Dialect>>,
    /// By name and prelude; `None` if it could not be loaded.
    loaded: HashMap<(String, String), Option<Named>>,
    diagnostics: Vec<Diagnostic>,
}

impl Catalogue {
    /// Without models yet. `prelude` overrides that of the test's dialect.
    pub(super) fn new(prelude: Option<String>) -> Catalogue {
        Catalogue {
            shipped: seams::model_names(),
            prelude,
            spoken: HashMap::new(),
            loaded: HashMap::new(),
            diagnostics: Vec::new(),
        }
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

    /// The error for a name without a model.
    pub(super) fn unknown(&self, name: &str) -> Diagnostic {
        match self.kind(name) {
            NameKind::Reserved => Diagnostic::plain(
                "model-not-shipped",
                format!("model `{name}` is not shipped yet"),
            )
            .help("its published .cat file may be tried with `--model FILE.cat`"),
            _ => Diagnostic::plain("unknown-model", format!("there is no model `{name}`"))
                .note(format!(
                    "models: {}; or a file that ends in .cat",
                    self.shipped.join(", ")
                ))
                .did_you_mean(name, self.shipped.iter().map(String::as_str)),
        }
    }

    /// The dialect that a model is about; `None` if it may judge any, or cannot be loaded.
    pub(super) fn spoken(&mut self, name: &str, dialect: Dialect) -> Option<Dialect> {
        match self.kind(name) {
            NameKind::Shipped => Dialect::of_model(name),
            NameKind::Reserved | NameKind::Unknown => None,
            NameKind::File => {
                let key = (name.to_owned(), dialect);
                if let Some(known) = self.spoken.get(&key) {
                    return *known;
                }
                let prelude =
                    |dialect: Dialect| self.prelude.as_deref().unwrap_or(dialect.row().prelude);
                // Its fault is reported at its use.
                let spoken = match seams::load_model(name, prelude(dialect)) {
                    Ok(model) => seams::spoken(&model),
                    // The words that it lacks may be those of another prelude.
                    Err(_) => DIALECTS.iter().map(|row| row.dialect).find(|&other| {
                        prelude(other) != prelude(dialect)
                            && seams::load_model(name, prelude(other)).is_ok()
                    }),
                };
                self.spoken.insert(key, spoken);
                spoken
            }
        }
    }

    /// The model of that name, for tests of that dialect; `None` if it cannot be loaded;
    /// [`Catalogue::diagnostics`] has the reason.
    pub(super) fn get(&mut self, name: &str, dialect: Dialect) -> Option<Named> {
        let prelude = self
            .prelude
            .clone()
            .unwrap_or_else(|| dialect.row().prelude.to_owned());
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
                    self.diagnostics
                        .push(Diagnostic::plain("no-axioms", message).warning());
                }
                let label = if kind == NameKind::Shipped {
                    name.to_owned()
                } else {
                    model.name.clone()
                };
                Some(Named {
                    label,
                    request: name.to_owned(),
                    model: Arc::new(model),
                })
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

    /// The faults so far.
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
        assert_eq!(
            diagnostics[0].help.as_deref(),
            Some("did you mean `ptx-v7.5`?")
        );
    }
}
