//! Reads bytes into tests: chooses the reader for a file, and reports files that no reader accepts.
//!
//! # Invariants
//! - Either all tests of a file or all of its errors. Of a source file, the kernels that can be
//!   read are tests, and what is wrong with the others is told beside them.

use std::path::Path;

use super::source::{self, Options, SourceKind, not_utf8};
use super::{dotlitmus, toml};
use crate::isa::spirv;
use diag::{Diagnostic, Severity, Sink, SourceFile, Span, file};
use program::litmus::LitmusTest;

/// First words of `.litmus` files.
const LITMUS_WORDS: &[&str] = &["PTX", "VULKAN", "Vulkan", "OPENCL", "OpenCL", "C"];

/// Reads the tests of a file. Messages use the path as given.
///
/// # Errors
/// All mistakes in the file.
pub fn read_path(path: &Path) -> Result<Vec<LitmusTest>, Vec<Diagnostic>> {
    let name = path.display().to_string();
    match file::read(path, file::LARGEST) {
        Ok(bytes) => parse(&name, &bytes),
        Err(error) => Err(vec![Diagnostic::plain(
            "unreadable-file",
            format!("`{name}` cannot be read: {error}"),
        )]),
    }
}

/// The tests of a file, with warnings about it.
#[derive(Clone, Debug, Default)]
pub struct TestFile {
    /// The tests, in file order.
    pub tests: Vec<LitmusTest>,
    /// Warnings, in order of place; of a source file, also errors in kernels that are no tests.
    pub warnings: Vec<Diagnostic>,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A test, or a template for several.
    Toml,
    /// A published test.
    Litmus,
    /// Kernels.
    Source(SourceKind),
    /// Neither: the name says nothing, and the text is none of them.
    Other,
}

impl FileKind {
    /// By the ending of the name, else by how the text begins.
    pub fn of(name: &str, text: &str) -> FileKind {
        let path = Path::new(name);
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("");
        match ending {
            "toml" => return FileKind::Toml,
            "litmus" => return FileKind::Litmus,
            _ => {}
        }
        if let Some(kind) = SourceKind::of_ending(ending) {
            return FileKind::Source(kind);
        }
        let first = first_word(text);
        if LITMUS_WORDS.contains(&first) {
            return FileKind::Litmus;
        }
        if first == ".version" {
            return FileKind::Source(SourceKind::Ptx);
        }
        if text.contains("__global__") && !text.contains("[kernel]") {
            return FileKind::Source(SourceKind::Cuda);
        }
        let calls = ["clCreateProgramWithSource", "clCreateKernel"];
        if calls.iter().any(|call| text.contains(call)) && !text.contains("[[host]]") {
            return FileKind::Source(SourceKind::OpenCl);
        }
        // A test has keys from its first line on.
        fn is_key(line: &str) -> bool {
            let line = line.trim();
            line.starts_with('[')
                || line
                    .split_once('=')
                    .is_some_and(|(key, _)| is_toml_key(key))
        }
        let mut lines = text.lines().filter(|line| !is_remark(line));
        match lines.next() {
            Some(line) if !is_key(line) && !name.starts_with('<') => FileKind::Other,
            _ => FileKind::Toml,
        }
    }
}

fn is_remark(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

fn is_toml_key(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.\"'".contains(c))
}

fn first_word(text: &str) -> &str {
    let text = text.trim_start_matches('\u{feff}');
    text.split_whitespace().next().unwrap_or("")
}

/// Reads the tests in `bytes`; messages use `source_name`. The ending `.litmus` or `.toml` gives
/// the format; otherwise the file's first word decides.
///
/// # Errors
/// All mistakes in the text.
pub fn parse(source_name: &str, bytes: &[u8]) -> Result<Vec<LitmusTest>, Vec<Diagnostic>> {
    read(source_name, bytes).map(|read| read.tests)
}

/// Like [`parse`], with warnings.
///
/// # Errors
/// Everything that is wrong with the text.
pub fn read(source_name: &str, bytes: &[u8]) -> Result<TestFile, Vec<Diagnostic>> {
    read_with(source_name, bytes, &Options::default())
}

/// As [`read`], with options for source files.
///
/// # Errors
/// Everything that is wrong with the text.
pub fn read_with(
    source_name: &str,
    bytes: &[u8],
    options: &Options,
) -> Result<TestFile, Vec<Diagnostic>> {
    if bytes.len() as u64 > file::LARGEST {
        let message = format!(
            "`{source_name}` is too large: more than {} MiB",
            file::LARGEST >> 20
        );
        return Err(vec![Diagnostic::plain("file-too-large", message)]);
    }
    if is_spirv(source_name, bytes, options) {
        let kind = SourceKind::SpirV;
        let (file, refused) = source::source_file(source_name, bytes, kind, options)?;
        return read_source(kind, options, Sink::new(&file), refused);
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Err(vec![not_utf8(source_name, bytes, error.valid_up_to())]),
    };
    let file = SourceFile::with_headers(source_name, text, &options.headers);
    let mut sink = Sink::new(&file);
    let named = options.language.map(FileKind::Source);
    let of_name = FileKind::of(source_name, text);
    let kind = match of_name {
        FileKind::Source(_) | FileKind::Other | FileKind::Toml if is_unnamed(source_name) => {
            named.unwrap_or(of_name)
        }
        kind => kind,
    };
    let tests = match kind {
        FileKind::Source(kind) => return read_source(kind, options, sink, Vec::new()),
        FileKind::Litmus => dotlitmus::read(&mut sink).into_iter().collect(),
        FileKind::Toml => toml::read(&mut sink, None),
        FileKind::Other => {
            sink.push(unlike_all(&sink));
            Vec::new()
        }
    };
    if sink.errors() > 0 {
        Err(sink.into_diagnostics())
    } else {
        Ok(TestFile {
            tests,
            warnings: sink.into_diagnostics(),
        })
    }
}

/// The tests of a source file, made of the module that a compiler made of it. `by` names the
/// compiler.
///
/// # Errors
/// All that is wrong with the module, or with a launch.
pub fn read_compiled(
    name: &str,
    text: &str,
    module: &str,
    kind: SourceKind,
    options: &Options,
    by: &str,
) -> Result<TestFile, Vec<Diagnostic>> {
    let file = SourceFile::new(name, text);
    let of_module = source::of_module(&file, kind, options);
    let mut read = read_with(&format!("{name}.ptx"), module.as_bytes(), &of_module)?;
    for test in &mut read.tests {
        source::of_source(test, &file, by);
    }
    Ok(read)
}

/// Whether the ending of a name says nothing of what is in the file.
fn is_unnamed(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|e| e.to_str());
    !ending.is_some_and(|ending| {
        ["toml", "litmus"].contains(&ending) || SourceKind::of_ending(ending).is_some()
    })
}

/// Whether a file is a module of SPIR-V: its name, its first bytes or an option says so.
fn is_spirv(name: &str, bytes: &[u8], options: &Options) -> bool {
    let ending = Path::new(name).extension().and_then(|e| e.to_str());
    match ending.and_then(SourceKind::of_ending) {
        Some(kind) => kind == SourceKind::SpirV,
        None => {
            is_unnamed(name)
                && (options.language == Some(SourceKind::SpirV) || spirv::is_binary(bytes))
        }
    }
}

/// The tests of a source file; the errors, if it has none.
fn read_source(
    kind: SourceKind,
    options: &Options,
    mut sink: Sink,
    mut others: Vec<Diagnostic>,
) -> Result<TestFile, Vec<Diagnostic>> {
    let tests = source::read(kind, options, &mut sink, &mut others);
    let mut warnings = sink.into_diagnostics();
    warnings.extend(others);
    if tests.is_empty() && warnings.iter().any(|d| d.severity == Severity::Error) {
        Err(warnings)
    } else {
        Ok(TestFile { tests, warnings })
    }
}

/// A file that no reader takes.
fn unlike_all(sink: &Sink) -> Diagnostic {
    let first = sink.file().text.lines().next().map_or(0, str::len);
    let message = "this is neither a test nor a source file";
    Diagnostic::error("unknown-file", sink.file(), Span::new(0, first), message)
        .label("expected a test in TOML, a `.litmus` file, or kernels")
        .note(
            "the ending decides the kind of a file: `.toml`, `.litmus`, `.cu`, `.cuh`, `.cl`, \
            `.ptx`, `.spv`, `.spvasm`",
        )
        .help(
            "for another ending, name the language: `--language cuda`, `opencl`, `ptx` or `spirv`",
        )
}

/// Whether a file is in the `.litmus` format instead of TOML, by its ending or else its first word.
pub(super) fn is_litmus(file: &SourceFile) -> bool {
    let first = file
        .text
        .trim_start_matches('\u{feff}')
        .split_whitespace()
        .next()
        .unwrap_or("");
    match Path::new(&file.name)
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or("")
    {
        "litmus" => true,
        "toml" => false,
        _ => LITMUS_WORDS.contains(&first),
    }
}
