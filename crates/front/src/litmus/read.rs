//! Reads bytes into tests: chooses the reader for a file, and reports files that no reader accepts.
//!
//! # Invariants
//! - The result is either all tests of a file or all of its errors.

use std::path::Path;

use super::{dotlitmus, toml};
use diag::{Diagnostic, Sink, SourceFile, Span, file};
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
    /// Warnings, in order of place.
    pub warnings: Vec<Diagnostic>,
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
/// All mistakes in the text.
pub fn read(source_name: &str, bytes: &[u8]) -> Result<TestFile, Vec<Diagnostic>> {
    if bytes.len() as u64 > file::LARGEST {
        let message = format!(
            "`{source_name}` is too large: more than {} MiB",
            file::LARGEST >> 20
        );
        return Err(vec![Diagnostic::plain("file-too-large", message)]);
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Err(vec![not_utf8(source_name, bytes, error.valid_up_to())]),
    };
    let file = SourceFile::new(source_name, text);
    let mut sink = Sink::new(&file);
    let first = text
        .trim_start_matches('\u{feff}')
        .split_whitespace()
        .next()
        .unwrap_or("");
    let extension = Path::new(source_name)
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or("");
    if extension == "ptx" || first == ".version" {
        let at = text.find(first).unwrap_or(0);
        sink.error(
            "ptx-module",
            Span::new(at, at + first.len()),
            "this is a module of PTX, no test",
            |d| {
                d.label("expected a test").help(format!(
                    "`fencepost import {source_name}` lists its kernels; with `--kernel`, \
                     `--grid`, `--block` and `--arg` it makes a test of one"
                ))
            },
        );
        return Err(sink.into_diagnostics());
    }
    let tests = match is_litmus(&file) {
        true => dotlitmus::read(&mut sink).into_iter().collect(),
        false => toml::read(&mut sink, None),
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

/// Reports the first byte that is not UTF-8, with its place in a printable copy of the text.
fn not_utf8(source_name: &str, bytes: &[u8], at: usize) -> Diagnostic {
    let line = bytes[..at].iter().filter(|b| **b == b'\n').count() + 1;
    let start = bytes[..at]
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |n| n + 1);
    let column = String::from_utf8_lossy(&bytes[start..at]).chars().count() + 1;
    let message = format!(
        "`{source_name}` is not UTF-8: byte 0x{:02x} at line {line}, column {column}",
        bytes[at]
    );
    Diagnostic {
        span: Span::default(),
        ..Diagnostic::plain("not-utf8", message)
    }
    .help("test files are UTF-8 text")
}
