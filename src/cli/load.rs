//! Reads test files, several at once, and keeps their order.

use std::fs;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::paths::{self, Found};
use super::pool::{Event, Pool};
use super::{panics, seams};
use diag::Diagnostic;
use front::litmus::Read as Tests;
use program::litmus::LitmusTest;

/// No test is larger. Without a limit, a device that never ends would fill the memory.
const LARGEST: u64 = 16 << 20;

/// The tests of one file.
pub(super) struct File {
    /// `path` in result lines.
    pub path: String,
    /// Its tests, in order.
    pub tests: Vec<LitmusTest>,
}

/// A file that the front end panicked on.
pub(super) struct Crash {
    /// `path` in result lines.
    pub path: String,
    /// What was in it.
    pub bytes: Vec<u8>,
    /// The panic's message.
    pub message: String,
}

/// What reading gave.
#[derive(Default)]
pub(super) struct Loaded {
    /// The files that could be read, in order.
    pub files: Vec<File>,
    /// What is wrong with the others, and odd about these.
    pub diagnostics: Vec<Diagnostic>,
    /// Defects of ours.
    pub crashes: Vec<Crash>,
}

/// Finds and reads all tests under `arguments`.
pub(super) fn load(arguments: &[PathBuf], pool: &Pool) -> Loaded {
    let mut loaded = Loaded::default();
    let found = paths::discover(arguments, &mut loaded.diagnostics);
    pool.in_order(
        &found,
        |found| (found.path.clone(), read(found)),
        |event| {
            // Reading is over soon, with or without a request to stop.
            let Event::Result((path, result)) = event else { return ControlFlow::Break(()) };
            match result {
                Outcome::Tests(Tests { tests, warnings }) => {
                    loaded.diagnostics.extend(warnings);
                    loaded.files.push(File { path, tests });
                }
                Outcome::Invalid(diagnostics) => loaded.diagnostics.extend(diagnostics),
                Outcome::Crashed(bytes, message) => loaded.crashes.push(Crash { path, bytes, message }),
            }
            ControlFlow::Continue(())
        },
    );
    loaded
}

/// What came of one file.
enum Outcome {
    Tests(Tests),
    Invalid(Vec<Diagnostic>),
    Crashed(Vec<u8>, String),
}

fn read(found: &Found) -> Outcome {
    if stop::requested().is_some() {
        return Outcome::Invalid(Vec::new());
    }
    let name = match &found.file {
        Some(file) => file.to_string_lossy().into_owned(),
        None => "<stdin>".to_owned(),
    };
    let bytes = match bytes(found) {
        Ok(bytes) if bytes.len() as u64 > LARGEST => {
            let message = format!("`{name}` is larger than {} MiB: that is no test", LARGEST >> 20);
            return Outcome::Invalid(vec![Diagnostic::plain("too-large", message)]);
        }
        Ok(bytes) => bytes,
        Err(error) => return Outcome::Invalid(vec![paths::unreadable(name.as_ref(), &error)]),
    };
    match panics::catch(|| seams::read_tests(&name, &bytes)) {
        Ok(Ok(tests)) => Outcome::Tests(tests),
        Ok(Err(diagnostics)) => Outcome::Invalid(diagnostics),
        Err(message) => Outcome::Crashed(bytes, message),
    }
}

/// The text of a file that is no test.
///
/// # Errors
/// If it cannot be read, is too large, or is no text.
pub(super) fn text(path: &Path) -> Result<String, Diagnostic> {
    let found = Found { path: path.display().to_string(), file: Some(path.to_owned()) };
    let bytes = bytes(&found).map_err(|error| paths::unreadable(path, &error))?;
    let name = path.display();
    if bytes.len() as u64 > LARGEST {
        return Err(Diagnostic::plain("too-large", format!("`{name}` is larger than {} MiB", LARGEST >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| Diagnostic::plain("not-utf8", format!("`{name}` is no UTF-8 text")))
}

/// The content, cut off soon after the limit.
fn bytes(found: &Found) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match &found.file {
        Some(file) => fs::File::open(file)?.take(LARGEST + 1).read_to_end(&mut bytes)?,
        None => io::stdin().take(LARGEST + 1).read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}
