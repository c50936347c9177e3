//! Reads test files, several at once, and keeps their order.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::paths::{self, Found};
use super::pool::{Event, Pool};
use super::{exit, headers, interrupt, panics, with};
use diag::{Diagnostic, file};
use front::litmus::TestFile as Tests;
use front::litmus::source::Options;
use program::litmus::LitmusTest;

/// The tests of one file.
pub(super) struct File {
    /// `path` in result lines.
    pub path: String,
    /// Its place below the folder that the search began in.
    pub below: String,
    /// Its tests, in order.
    pub tests: Vec<LitmusTest>,
}

/// A file that the front end panicked on.
pub(super) struct Crash {
    /// `path` in result lines.
    pub path: String,
    /// Its contents.
    pub bytes: Vec<u8>,
    /// The panic's message.
    pub message: String,
}

/// The result of reading.
#[derive(Default)]
pub(super) struct Loaded {
    /// The files that could be read, in order.
    pub files: Vec<File>,
    /// Errors about the other files, and warnings about these.
    pub diagnostics: Vec<Diagnostic>,
    /// Defects of Fencepost.
    pub crashes: Vec<Crash>,
    /// The places of all files, read or not.
    pub inputs: Vec<PathBuf>,
    /// An interrupt came before every file was read: `files` lacks tests.
    pub interrupted: bool,
}

/// Finds and reads all tests under `arguments`; `options`: how source files are read;
/// `kernels`: which ones in folders are.
pub(super) fn load(
    arguments: &[PathBuf],
    pool: Pool,
    options: &Options,
    kernels: &[PathBuf],
) -> Loaded {
    let mut loaded = Loaded::default();
    let found = paths::discover_with(arguments, kernels, &mut loaded.diagnostics);
    loaded.inputs = found
        .iter()
        .filter_map(|found| found.file.clone())
        .collect();
    // The search for files ends early, too.
    loaded.interrupted = stop::requested().is_some();
    let mut take = |Found { path, below, .. }: Found, outcome: FileResult| match outcome {
        FileResult::Tests(Tests { tests, warnings }) => {
            loaded.diagnostics.extend(warnings);
            loaded.files.push(File { path, below, tests });
        }
        FileResult::Invalid(diagnostics) => loaded.diagnostics.extend(diagnostics),
        FileResult::Crashed(bytes, message) => loaded.crashes.push(Crash {
            path,
            bytes,
            message,
        }),
        FileResult::Interrupted => loaded.interrupted = true,
    };
    // Starting a thread costs more than reading one small file. An input that may keep its reader
    // waiting gets one.
    if let [only] = found.as_slice()
        && only.file.as_ref().is_some_and(|file| file.is_file())
    {
        take(only.clone(), read(only, options));
        return loaded;
    }
    pool.in_order(
        &found,
        |found| (found.clone(), read(found, options)),
        |event| {
            let Event::Result((found, outcome)) = event else {
                // A reader waits for standard input.
                interrupt::leave(interrupt::code().unwrap_or(exit::INVALID));
            };
            take(found, outcome);
            ControlFlow::Continue(())
        },
    );
    loaded
}

/// The result of one file.
enum FileResult {
    Tests(Tests),
    Invalid(Vec<Diagnostic>),
    Crashed(Vec<u8>, String),
    Interrupted,
}

fn read(found: &Found, options: &Options) -> FileResult {
    if stop::requested().is_some() {
        return FileResult::Interrupted;
    }
    let name = match &found.file {
        Some(file) => file.to_string_lossy().into_owned(),
        None => "<stdin>".to_owned(),
    };
    let read = match &found.file {
        Some(path) => file::read(path, file::LARGEST),
        None => file::take(io::stdin(), file::LARGEST),
    };
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(error) => return FileResult::Invalid(vec![paths::unreadable(name.as_ref(), &error)]),
    };
    let options = &match &found.file {
        Some(path) => headers::with_options(path, &bytes, options),
        None => options.clone(),
    };
    match panics::catch(|| with::read(&name, &bytes, options)) {
        Ok(Ok(tests)) => FileResult::Tests(tests),
        Ok(Err(diagnostics)) => FileResult::Invalid(diagnostics),
        Err(message) => FileResult::Crashed(bytes, message),
    }
}

/// The text of a file that is no test, of at most `most` bytes.
///
/// # Errors
/// If it cannot be read, is too large, or is no text.
pub(super) fn text(path: &Path, most: u64) -> Result<String, Box<Diagnostic>> {
    let bytes =
        file::read(path, most).map_err(|error| Box::new(paths::unreadable(path, &error)))?;
    String::from_utf8(bytes).map_err(|_| {
        Box::new(Diagnostic::plain(
            "not-utf8",
            format!("`{}` is not UTF-8 text", path.display()),
        ))
    })
}
