//! Reads test files, several at once, and keeps their order.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::paths::{self, Found};
use super::pool::{Pool, PoolEvent};
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

/// The contents of one file, in the form that a command asked for.
pub(super) struct FileContents<T> {
    /// `path` in result lines.
    pub path: String,
    /// Its place below the folder that the search began in.
    pub below: String,
    pub contents: T,
}

/// The result of reading. `F`: a file.
pub(super) struct Loaded<F = File> {
    /// The files that could be read, in order.
    pub files: Vec<F>,
    /// Errors about the other files, and warnings about these.
    pub diagnostics: Vec<Diagnostic>,
    /// Defects of Fencepost.
    pub crashes: Vec<Crash>,
    /// The places of all files, read or not.
    pub inputs: Vec<PathBuf>,
    /// An interrupt came before every file was read: `files` lacks tests.
    pub interrupted: bool,
}

/// The files that a command names, and how they are read.
#[derive(Clone, Copy)]
pub(super) struct LoadRequest<'a> {
    pub arguments: &'a [PathBuf],
    pub pool: Pool,
    /// How source files are read.
    pub options: &'a Options,
    /// The kernels in folders that are read.
    pub kernels: &'a [PathBuf],
}

/// Finds and reads all tests of a request.
pub(super) fn load(request: LoadRequest<'_>) -> Loaded {
    let loaded = load_as(request, with::read);
    let mut diagnostics = loaded.diagnostics;
    let mut files = Vec::new();
    for file in loaded.files {
        let Tests { tests, warnings } = file.contents;
        diagnostics.extend(warnings);
        files.push(File {
            path: file.path,
            below: file.below,
            tests,
        });
    }
    Loaded {
        files,
        diagnostics,
        crashes: loaded.crashes,
        inputs: loaded.inputs,
        interrupted: loaded.interrupted,
    }
}

/// Finds all files of a request. `reader` reads each from its name and its bytes.
pub(super) fn load_as<T: Send>(
    request: LoadRequest<'_>,
    reader: impl Fn(&str, &[u8], &Options) -> Result<T, Vec<Diagnostic>> + Sync,
) -> Loaded<FileContents<T>> {
    let mut diagnostics = Vec::new();
    let found = paths::discover_with(request.arguments, request.kernels, &mut diagnostics);
    let include = &request.options.include;
    let found = headers::without_included(found, request.arguments, include);
    let mut loaded = Loaded {
        files: Vec::new(),
        diagnostics,
        crashes: Vec::new(),
        inputs: found.iter().filter_map(|f| f.file.clone()).collect(),
        // The search for files ends early, too.
        interrupted: stop::requested().is_some(),
    };
    let mut take = |Found { path, below, .. }: Found, outcome: FileResult<T>| match outcome {
        FileResult::Contents(contents) => loaded.files.push(FileContents {
            path,
            below,
            contents,
        }),
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
        take(only.clone(), read(only, request.options, &reader));
        return loaded;
    }
    request.pool.in_order(
        &found,
        |found| (found.clone(), read(found, request.options, &reader)),
        |event| {
            let PoolEvent::Result((found, outcome)) = event else {
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
enum FileResult<T> {
    Contents(T),
    Invalid(Vec<Diagnostic>),
    Crashed(Vec<u8>, String),
    Interrupted,
}

fn read<T>(
    found: &Found,
    options: &Options,
    reader: impl Fn(&str, &[u8], &Options) -> Result<T, Vec<Diagnostic>>,
) -> FileResult<T> {
    if stop::requested().is_some() {
        return FileResult::Interrupted;
    }
    let name = match &found.file {
        Some(file) => file.to_string_lossy().into_owned(),
        None => "<stdin>".to_owned(),
    };
    let bytes = match &found.file {
        Some(path) => file::read(path, file::LARGEST),
        None => file::take(io::stdin(), file::LARGEST),
    };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) => return FileResult::Invalid(vec![paths::unreadable(name.as_ref(), &error)]),
    };
    let options = &match &found.file {
        Some(path) => headers::with_options(path, &bytes, options),
        None => options.clone(),
    };
    match panics::catch(|| reader(&name, &bytes, options)) {
        Ok(Ok(contents)) => FileResult::Contents(contents),
        Ok(Err(diagnostics)) => FileResult::Invalid(diagnostics),
        Err(message) => FileResult::Crashed(bytes, message),
    }
}

/// The text of a file that is no test, of at most `most` bytes.
///
/// # Errors
/// If it cannot be read, is too large, or is no text.
pub(super) fn text(path: &Path, most: u64) -> Result<String, Box<Diagnostic>> {
    let bytes = file::read(path, most);
    utf8(path, bytes)
}

/// The text of standard input.
pub(super) fn text_of_stdin() -> Result<String, Box<Diagnostic>> {
    utf8(Path::new("-"), file::take(io::stdin(), file::LARGEST))
}

fn utf8(path: &Path, bytes: io::Result<Vec<u8>>) -> Result<String, Box<Diagnostic>> {
    let bytes = bytes.map_err(|error| Box::new(paths::unreadable(path, &error)))?;
    String::from_utf8(bytes).map_err(|_| {
        Box::new(Diagnostic::plain(
            "not-utf8",
            format!("`{}` is not UTF-8 text", path.display()),
        ))
    })
}
