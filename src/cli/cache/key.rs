//! Computes one number from everything that the answers of a (test, model) pair depend on.
//!
//! # Invariants
//! - The key covers everything that can change an answer: the text of the test's file and the
//!   test's name in it; the launch of a kernel; the model as it was understood, with the texts of
//!   its files; the questions; the engine; the loop bound; options; the mapping; whether axioms are
//!   named; the build of this program; and the version of Z3, if it is used.
//! - Time limits, numbers of workers, paths and output options are not in it.
//! - Fields are hashed with their lengths: no two lists of fields give the same bytes.
//!
//! # Build identity
//! `build.rs` hashes the sources, the models, the manifest with the lock file, the features, the
//! target, the profile and the compiler's version into [`BUILD`]. A program built from anything
//! else uses another folder.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::cli::digest::hex;
use crate::cli::plan::Unit;
use crate::cli::settings::Settings;
use cat::model::ir::Model;
use diag::SourceFile;
use engine::Engine;

/// The identity of this build.
pub(in crate::cli) const BUILD: &str = env!("FENCEPOST_BUILD");

/// A key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Key([u8; 32]);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// A file, and the hash of its text.
type Hashed = (Arc<SourceFile>, [u8; 32]);

/// Makes keys; each model and each file is hashed once.
#[derive(Default)]
pub(in crate::cli) struct Keys {
    models: Mutex<HashMap<usize, [u8; 32]>>,
    /// By address; the values here stay alive.
    files: Mutex<HashMap<usize, Hashed>>,
}

impl Keys {
    /// The key of a pair.
    pub(in crate::cli) fn of(&self, unit: &Unit<'_>, settings: &Settings, explain: bool) -> Key {
        let file = &unit.test.file;
        let ending = Path::new(&file.name)
            .extension()
            .unwrap_or_default()
            .to_string_lossy();
        let mut fields = Fields::default();
        fields.add(BUILD);
        fields.add(solver(settings.engine));
        fields.add(&ending);
        fields.bytes(&self.file(file));
        fields.add(&unit.test.name);
        let launch = unit.source.launch.as_ref();
        fields.add(&launch.map_or(String::new(), |launch| format!("{launch:?}")));
        // Rows count, too: a user's file may change.
        fields.add(
            &unit
                .mapping
                .map_or(String::new(), |mapping| format!("{mapping:?}")),
        );
        fields.add(
            &unit
                .refused
                .as_ref()
                .map_or(String::new(), ToString::to_string),
        );
        fields.add(&unit.model.label);
        fields.bytes(&self.model(&unit.model.model));
        fields.add(&format!(
            "{:?} {:?} {:?} {explain} {} {} {} {}",
            settings.engine,
            settings.limits.bound,
            settings.set,
            settings.explain,
            settings.explain_unmet,
            settings.detail,
            settings.every_launch
        ));
        fields.add(&format!("{:?}", unit.questions));
        Key(fields.0.finalize().into())
    }

    /// The text of a file.
    fn file(&self, file: &Arc<SourceFile>) -> [u8; 32] {
        let mut known = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .entry(Arc::as_ptr(file) as usize)
            .or_insert_with(|| (file.clone(), Sha256::digest(file.text.as_bytes()).into()))
            .1
    }

    /// The model as it was understood, and the texts of its files. The files' places do not matter.
    fn model(&self, model: &Arc<Model>) -> [u8; 32] {
        // The plan keeps every model alive, so an address names one model.
        let address = Arc::as_ptr(model) as usize;
        let mut known = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(address).or_insert_with(|| {
            let mut fields = Fields::default();
            let understood = Model {
                files: Vec::new(),
                ..Model::clone(model)
            };
            fields.add(&format!("{understood:?}"));
            model.files.iter().for_each(|file| fields.add(&file.text));
            fields.0.finalize().into()
        })
    }
}

/// The version of Z3, if it is used.
fn solver(engine: Engine) -> &'static str {
    match engine.asks_z3() {
        true => engine::z3_version::loaded().expect("the settings loaded Z3"),
        false => "",
    }
}

/// Hashes fields one after the other.
#[derive(Default)]
struct Fields(Sha256);

impl Fields {
    fn add(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }
}

#[cfg(test)]
impl Key {
    /// Some key.
    pub(super) fn sample(byte: u8) -> Key {
        Key([byte; 32])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_kept_apart() {
        let hash = |texts: &[&str]| {
            let mut fields = Fields::default();
            texts.iter().for_each(|text| fields.add(text));
            fields.0.finalize()
        };
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
        assert_ne!(hash(&["a", ""]), hash(&["a"]));
    }

    #[test]
    fn the_build_has_an_identity() {
        assert_eq!(BUILD.len(), 32);
        assert!(BUILD.bytes().all(|b| b.is_ascii_hexdigit()));
    }
}
