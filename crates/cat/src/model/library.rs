//! The embedded `models/` directory, and the resolution of included files.
//!
//! # Invariants
//! - A top-level `*.cat` file is a model, except [`SHARED`]. `prelude/` holds preludes; `lib/`
//!   holds replacements for libraries that published files include.
//! - A file in the folder of the including one takes precedence over a shipped one with the same
//!   name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use diag::{Diagnostic, SourceFile};
use models::MODELS;

/// Top-level files that are not models.
const SHARED: &[&str] = &[
    "base.cat",
    "cuda-base.cat",
    "opencl-base.cat",
    "opencl-sc-condition.cat",
    "opencl-scopes.cat",
    "stdlib.cat",
];

/// The shipped model files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Library;

impl Library {
    /// The names of the shipped models, sorted.
    pub fn names() -> Vec<&'static str> {
        let mut names: Vec<&str> = MODELS
            .files()
            .filter_map(|f| f.path().to_str())
            .filter(|name| !SHARED.contains(name))
            .filter_map(|name| name.strip_suffix(".cat"))
            .collect();
        names.sort_unstable();
        names
    }

    /// The names of the shipped preludes, sorted.
    pub fn preludes() -> Vec<&'static str> {
        let mut names: Vec<&str> = MODELS
            .get_dir("prelude")
            .into_iter()
            .flat_map(|d| d.files())
            .filter_map(|f| f.path().file_stem()?.to_str())
            .collect();
        names.sort_unstable();
        names
    }

    /// The shipped file at that path inside `models/`.
    pub fn file(path: &str) -> Option<Arc<SourceFile>> {
        let text = MODELS.get_file(path)?.contents_utf8()?;
        Some(SourceFile::new(format!("models/{path}"), text))
    }

    /// The shipped model with that name.
    pub fn model(name: &str) -> Option<Arc<SourceFile>> {
        Self::names()
            .contains(&name)
            .then(|| Self::file(&format!("{name}.cat")))
            .flatten()
    }

    /// The prelude with that name.
    pub fn prelude(name: &str) -> Option<Arc<SourceFile>> {
        Self::preludes()
            .contains(&name)
            .then(|| Self::file(&format!("prelude/{name}.cat")))
            .flatten()
    }

    /// A shipped file that another file may include, from `models/` or `models/lib/`.
    pub fn included(path: &str) -> Option<Arc<SourceFile>> {
        Self::file(path).or_else(|| Self::file(&format!("lib/{path}")))
    }
}

/// Finds the files that `include` statements name.
pub trait IncludeResolver: Sync {
    /// The file `path` as written in `including`; `Ok(None)` if it does not exist, an error if it
    /// cannot be read.
    fn resolve(
        &self,
        including: &SourceFile,
        path: &str,
    ) -> Result<Option<Arc<SourceFile>>, Box<Diagnostic>>;
}

/// Resolves shipped files only.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shipped;

impl IncludeResolver for Shipped {
    fn resolve(
        &self,
        _: &SourceFile,
        path: &str,
    ) -> Result<Option<Arc<SourceFile>>, Box<Diagnostic>> {
        Ok(Library::included(path))
    }
}

/// Resolves files in the folder of the including one (its name is a path), then shipped ones.
///
/// A model can come from an untrusted source, and messages quote its lines. So no `include` reads a
/// file outside the model's folder, even through `..` or a link.
#[derive(Clone, Debug)]
pub struct OnDisk {
    /// The canonical path of the model's folder; `None` if it does not exist.
    folder: Option<PathBuf>,
}

impl OnDisk {
    /// The resolver for the model at that path.
    pub fn of(model: &Path) -> OnDisk {
        OnDisk {
            folder: parent(model).canonicalize().ok(),
        }
    }
}

/// The folder that a file is in.
fn parent(file: &Path) -> &Path {
    file.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

impl IncludeResolver for OnDisk {
    fn resolve(
        &self,
        including: &SourceFile,
        path: &str,
    ) -> Result<Option<Arc<SourceFile>>, Box<Diagnostic>> {
        // An empty parent keeps the name of a file in the working directory unchanged.
        let beside = Path::new(&including.name)
            .parent()
            .unwrap_or(Path::new(""))
            .join(path);
        if !beside.exists() || beside.is_dir() {
            return Ok(Library::included(path));
        }
        if !beside.canonicalize().is_ok_and(|file: PathBuf| {
            self.folder
                .as_ref()
                .is_some_and(|folder| file.starts_with(folder))
        }) {
            let message = format!("`{path}` is outside the folder of the model");
            let help =
                "copy the file into that folder; a model includes files below it and shipped ones";
            return Err(Box::new(
                Diagnostic::plain("include-outside", message).help(help),
            ));
        }
        read(&beside).map(Some)
    }
}

/// Reads a model file; its name is its path.
pub(super) fn read(path: &Path) -> Result<Arc<SourceFile>, Box<Diagnostic>> {
    let shown = path.display();
    let bytes = diag::file::read(path, diag::file::LARGEST).map_err(|e| {
        Box::new(Diagnostic::plain(
            "cannot-read",
            format!("cannot read `{shown}`: {e}"),
        ))
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let read = String::from_utf8_lossy(&error.as_bytes()[..at]).into_owned();
        let line = read.matches('\n').count() + 1;
        let column = read.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        let byte = error.as_bytes()[at];
        let message =
            format!("`{shown}` is not UTF-8: byte 0x{byte:02x} at line {line}, column {column}");
        Box::new(Diagnostic::plain("not-utf8", message).help("model files are UTF-8 text"))
    })?;
    Ok(SourceFile::new(shown.to_string(), text))
}
