//! The model language: `.cat` text to relational IR.
//!
//! [`load`] reads a model with all its includes. It returns the [`ir::Model`] that all checkers
//! use, or every error in the text. [`Library`] contains the shipped files; [`mod@print`] writes a
//! syntax tree as text.
//!
//! Stages, one module each: `lex`, [`parse`], `resolve` (names), `lower` (types, functions,
//! recursion), `build` (the hash-consed table).
//!
//! # Invariants
//! - This module knows base names only through the [`Signature`] argument.
//! - No input causes a panic or unbounded recursion.
//!
//! # Preludes
//! A model that declares a free relation uses no prelude. A model that declares none, like every
//! published file, gets the prelude of its dialect. That is a model text that declares `rf`, `co`
//! and the dialect's other assumptions: `ptx` for PTX tests, `total` for all others. The head of
//! the model has no influence. [`declares_free`] says whether a model needs a prelude.
//!
//! # Sources
//! - herdtools7, manual, *The cat language*; Alglave, Maranget, Tautschnig, "Herding Cats", TOPLAS
//!   2014.
//! - The dialect of Dartagnan's model files (Dat3M, `Cat.g4`).
//! # Where we differ
//! - `free`, `values`, `final` and `option` are ours.
//! - Every model sees `stdlib.cat`. Its definitions use the free relations, even if the model
//!   redefines their names.

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
/// `name` is the model's name in output. `prelude` names the shipped prelude for a model without
/// free relations. `main` is the first of [`Model::files`].
///
/// # Errors
/// All errors in the text and its includes.
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

/// Reads a shipped model; `None` if there is none with that name. Shipped models declare their free
/// relations.
pub fn load_shipped(name: &str, signature: &Signature) -> Option<Result<Model, Vec<Diagnostic>>> {
    let source = Library::model(name)?;
    Some(load(source, name, &Shipped, signature, None))
}

/// Reads a model from a file. Its name is the file's name without `.cat`. It may include files from
/// the same folder.
///
/// # Errors
/// If the file cannot be read; all errors in its text.
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

/// Whether a model, or a file that it includes, declares a free relation and so needs no prelude.
pub fn declares_free(main: &Arc<SourceFile>, includes: &dyn IncludeResolver) -> bool {
    let signature = Signature::default();
    lower::Lowerer::new(&signature, includes, main.clone()).has_free()
}
