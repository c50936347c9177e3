//! Has a compiler make PTX of source files, and reads that.
//!
//! # Invariants
//! - Nothing depends on a compiler: without `--with`, one is only suggested, where one is
//!   installed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::seams;
use compilers::{Compiler, Family, Output};
use diag::{Diagnostic, Severity};
use front::litmus::source::{CompiledWith, Options, SourceKind};
use front::litmus::{TestFile, read_compiled};

/// The words of CUDA C++ and OpenCL C that clang knows without headers of a toolkit.
const PRELUDE: &str = include_str!("with/prelude.h");

/// Ids of errors about what Fencepost does not read; a compiler may.
const UNREAD: [&str; 5] = [
    "unsupported",
    "unsupported-function",
    "c-syntax",
    "unknown-name",
    "unknown-function",
];

/// Reads a file; of a source file, with `--with`, the code that a compiler makes of it.
///
/// # Errors
/// Everything that is wrong with the text.
pub(super) fn read(
    name: &str,
    bytes: &[u8],
    options: &Options,
) -> Result<TestFile, Vec<Diagnostic>> {
    let kind = source_kind(name, options);
    match (options.with, kind) {
        (Some(with), Some(kind)) => compiled(name, bytes, options, with, kind),
        _ => {
            let read = seams::read_file(name, bytes, options);
            read.map_err(|wrong| suggested(wrong, kind))
        }
    }
}

/// The language of a source file that a compiler takes.
fn source_kind(name: &str, options: &Options) -> Option<SourceKind> {
    let ending = Path::new(name)
        .extension()
        .and_then(|ending| ending.to_str());
    let kind = options.language.or(ending.and_then(SourceKind::of_ending));
    kind.filter(|kind| ![SourceKind::Ptx, SourceKind::SpirV].contains(kind))
}

fn compiled(
    name: &str,
    bytes: &[u8],
    options: &Options,
    with: CompiledWith,
    kind: SourceKind,
) -> Result<TestFile, Vec<Diagnostic>> {
    let word = word_of(with);
    fn wrong(message: String) -> Diagnostic {
        Diagnostic::plain("compiler", message)
    }
    let Some(path) = installed(with) else {
        let d = wrong(format!(
            "there is no {word} here: `--with {word}` has nothing to run"
        ));
        let help = match with {
            CompiledWith::Nvcc => "set `NVCC` to its path, or put it on `PATH`",
            CompiledWith::Clang => "put it on `PATH`",
        };
        return Err(vec![d.help(help)]);
    };
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let family = match with {
        CompiledWith::Nvcc => Family::Nvcc,
        CompiledWith::Clang => Family::Clang,
    };
    if (family, kind) == (Family::Nvcc, SourceKind::OpenCl) {
        let d = wrong(format!(
            "nvcc does not compile OpenCL C, the language of `{name}`"
        ));
        return Err(vec![d.help("`--with clang` does")]);
    }
    let compiler =
        Compiler::new(family, &path, &options.include, None).map_err(|why| vec![wrong(why)])?;
    let made = compiler.module_of(Path::new(name), PRELUDE);
    match made {
        Ok(Output::Text(module)) => {
            let by = format!("{word} ({})", compiler.version);
            read_compiled(name, text, &module, kind, options, &by)
        }
        Ok(Output::Refused(why)) => {
            let d = wrong(format!("{word} does not compile `{name}`: {why}"));
            Err(vec![d.help(
                "without `--with`, Fencepost reads the source itself",
            )])
        }
        Err(error) => Err(vec![wrong(format!("{word} cannot be run: {error}"))]),
    }
}

fn word_of(with: CompiledWith) -> &'static str {
    match with {
        CompiledWith::Nvcc => "nvcc",
        CompiledWith::Clang => "clang",
    }
}

/// The path of an installed compiler.
fn installed(with: CompiledWith) -> Option<PathBuf> {
    if let (CompiledWith::Nvcc, Some(path)) = (with, env::var_os("NVCC")) {
        return Some(path.into()).filter(|path: &PathBuf| path.is_file());
    }
    let folders = env::var_os("PATH")?;
    let named = |name: &str| match (with, name) {
        (CompiledWith::Nvcc, "nvcc") | (CompiledWith::Clang, "clang") => true,
        (CompiledWith::Clang, name) => name
            .strip_prefix("clang-")
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit())),
        _ => false,
    };
    env::split_paths(&folders).find_map(|folder| {
        let entries = fs::read_dir(&folder).ok()?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| named(name))
            .collect();
        names.sort();
        names.into_iter().next().map(|name| folder.join(name))
    })
}

/// Errors about a source that Fencepost does not read, with the compiler that may.
fn suggested(mut wrong: Vec<Diagnostic>, kind: Option<SourceKind>) -> Vec<Diagnostic> {
    let with = match kind {
        Some(SourceKind::Cuda) => CompiledWith::Nvcc,
        _ => return wrong,
    };
    fn unread(d: &&mut Diagnostic) -> bool {
        d.severity == Severity::Error && UNREAD.contains(&d.id)
    }
    if let Some(last) = wrong.iter_mut().rev().find(unread)
        && installed(with).is_some()
    {
        let word = word_of(with);
        last.notes.push(format!(
            "`--with {word}` reads the code that {word} makes of the file, and answers about that"
        ));
    }
    wrong
}
