//! The model language: `.cat` text to relational IR.
//!
//! [`load`] reads a model with everything that it includes and gives the [`ir::Model`] that all
//! checkers run, or every error in it. [`Library`] is what is shipped; [`mod@print`] writes a
//! syntax tree back as text.
//!
//! Stages, one module each: `lex`, [`parse`], `resolve` (what names mean), `lower` (types,
//! functions, recursion), `build` (the hash-consed table).
//!
//! # Invariants
//! - This module knows base names only through the [`Signature`] that it is handed.
//! - No input makes it panic or recurse without bound.
//!
//! # Preludes
//! A model that declares a free relation stands alone. One that declares none, like every published
//! file, takes its prelude, a model text that declares `rf`, `co` and what else its dialect takes
//! for granted: `ptx` for tests in PTX, `total` for all others, whatever the head of the model
//! says. [`declares_free`] tells whether it matters.
//!
//! # Sources
//! - herdtools7, manual, *The cat language*; Alglave, Maranget, Tautschnig, "Herding Cats", TOPLAS 2014.
//! - The dialect of Dartagnan's model files (Dat3M, `Cat.g4`).
//! # Where we differ
//! - `free`, `values`, `final` and `option` are ours.
//! - Every model sees `stdlib.cat`; its definitions speak of the free relations, not of what a
//!   model renames.

use std::path::Path;
use std::sync::Arc;

use diag::{Diagnostic, SourceFile};

pub mod ast;
mod build;
pub mod clauses;
pub mod ir;
mod join;
mod lex;
mod library;
mod lower;
pub mod parse;
mod part;
pub mod print;
mod resolve;
pub mod signature;
pub mod text;
pub mod words;

pub use ir::Model;
pub use library::{IncludeResolver, Library, OnDisk, Shipped};
pub use signature::Signature;

/// Reads a model.
///
/// `name` is what output calls it; `prelude` names the shipped prelude that it takes if it declares
/// no free relation. `main` is the first of [`Model::files`].
///
/// # Errors
/// Everything that is wrong with the text, and with what it includes.
pub fn load(
    main: Arc<SourceFile>,
    name: &str,
    includes: &dyn IncludeResolver,
    signature: &Signature,
    prelude: Option<&str>,
) -> Result<Model, Vec<Diagnostic>> {
    if main.text.len() as u64 > diag::file::LARGEST {
        let message = format!(
            "`{}` is larger than {} MiB",
            main.name,
            diag::file::LARGEST >> 20
        );
        return Err(vec![Diagnostic::plain("too-large", message)]);
    }
    lower::Lowerer::new(signature, includes, main).run(name, prelude)
}

/// Reads a shipped model, `None` if there is none of that name. Shipped models declare their free
/// relations.
pub fn load_shipped(name: &str, signature: &Signature) -> Option<Result<Model, Vec<Diagnostic>>> {
    let source = Library::model(name)?;
    Some(load(source, name, &Shipped, signature, None))
}

/// Reads a model from a file; it is called by the file's name without `.cat`, and may include files
/// beside it.
///
/// # Errors
/// The file cannot be read; everything that is wrong with its text.
pub fn load_file(
    path: &Path,
    signature: &Signature,
    prelude: Option<&str>,
) -> Result<Model, Vec<Diagnostic>> {
    let source = library::read(path).map_err(|d| vec![*d])?;
    let name = path.file_stem().map_or_else(
        || path.display().to_string(),
        |n| n.to_string_lossy().into_owned(),
    );
    load(source, &name, &OnDisk::of(path), signature, prelude)
}

/// Whether a model, or a file that it includes, declares a free relation, so that no prelude is
/// taken.
pub fn declares_free(main: &Arc<SourceFile>, includes: &dyn IncludeResolver) -> bool {
    let signature = Signature::default();
    lower::Lowerer::new(&signature, includes, main.clone()).has_free()
}
