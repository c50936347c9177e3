//! Reads test files, several at once, and keeps their order.

use std::fs;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::PathBuf;

use super::paths::{self, Found};
use super::pool::Pool;
use super::{panics, seams};
use crate::diag::Diagnostic;
use crate::litmus::LitmusTest;

/// The tests of one file.
pub(super) struct File {
    /// `path` in result lines.
    pub path: String,
    /// Its tests, in order.
    pub tests: Vec<LitmusTest>,
}

/// What reading gave.
#[derive(Default)]
pub(super) struct Loaded {
    /// The files that could be read, in order.
    pub files: Vec<File>,
    /// What is wrong with the others.
    pub diagnostics: Vec<Diagnostic>,
    /// Panics of the front end: defects of ours, each with the file it happened on.
    pub defects: Vec<(String, String)>,
}

/// Finds and reads all tests under `arguments`.
pub(super) fn load(arguments: &[PathBuf], pool: &Pool) -> Loaded {
    let mut loaded = Loaded::default();
    let found = paths::discover(arguments, &mut loaded.diagnostics);
    let mut rest = Vec::new();
    pool.in_order(
        &found,
        |found| (found.clone(), panics::catch(|| read(found))),
        |(found, result)| {
            match result {
                Ok(Ok(tests)) => loaded.files.push(File { path: found.path, tests }),
                Ok(Err(diagnostics)) => rest.extend(diagnostics),
                Err(message) => loaded.defects.push((found.path, message)),
            }
            ControlFlow::Continue(())
        },
    );
    loaded.diagnostics.extend(rest);
    loaded
}

fn read(found: &Found) -> Result<Vec<LitmusTest>, Vec<Diagnostic>> {
    match &found.file {
        Some(file) => {
            let bytes = fs::read(file).map_err(|error| vec![paths::unreadable(file, &error)])?;
            seams::read_tests(&file.to_string_lossy(), &bytes)
        }
        None => {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes).map_err(|error| {
                vec![Diagnostic::plain("unreadable-path", format!("cannot read standard input: {error}"))]
            })?;
            seams::read_tests("<stdin>", &bytes)
        }
    }
}
