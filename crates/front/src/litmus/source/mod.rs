//! Source files as tests: a kernel with a launch is one test.
//!
//! A launch comes from the command line, from a line of the file, or is chosen to suit the code.
//! The document of the test is made here, and read by the reader of TOML tests; the code is that
//! of the file.
//!
//! # Invariants
//! - Spans of a test point into the source file.
//! - The launch of a test can be written back: [`program::litmus::KernelLaunch::text`] gives the
//!   same test.
//! - The answer names a chosen launch. No answer rests on the way of choosing.

mod bind;
mod choose;
mod compiled;
mod head;
mod kernels;
mod launch;

mod ptx;
mod whole;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use diag::{Diagnostic, MappedText, Severity, Sink, SourceFile, Span};
use program::Dialect;
use program::litmus::LaunchOrigin;

pub use crate::isa::clike::included;
pub use compiled::CompiledWith;
pub(in crate::litmus) use compiled::{of_module, of_source};
pub(in crate::litmus) use kernels::{at, form, launched_alone, read, read_again};

use crate::isa::spirv;
use launch::WrittenLaunch;

/// How source files are read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The language of a file with any other ending.
    pub language: Option<SourceKind>,
    /// Launches of the command line: only these are tests.
    pub launches: Vec<String>,
    /// The arguments of programs: `argv` of `main`, without the name of the program.
    pub arguments: Vec<String>,
    /// Values of constants, by name.
    pub constants: BTreeMap<String, i64>,
    /// Folders of headers, in the order of the search; the caller searches them.
    pub include: Vec<PathBuf>,
    /// The headers of the file: the word behind `#include`, the name, and the text of each. The
    /// caller reads them.
    pub headers: Vec<(String, String, String)>,
    /// The compiler whose code is read in place of the source; the caller runs it.
    pub with: Option<CompiledWith>,
}

/// The language of a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// CUDA C++.
    Cuda,
    /// OpenCL C.
    OpenCl,
    /// PTX, as compilers print it.
    Ptx,
    /// SPIR-V with kernels of OpenCL, binary or as text.
    SpirV,
}

/// The languages, by the ending of a file and the word of `--language`.
const KINDS: [(&str, SourceKind); 10] = [
    ("cu", SourceKind::Cuda),
    ("cuh", SourceKind::Cuda),
    ("cuda", SourceKind::Cuda),
    ("cl", SourceKind::OpenCl),
    ("clh", SourceKind::OpenCl),
    ("opencl", SourceKind::OpenCl),
    ("ptx", SourceKind::Ptx),
    ("PTX", SourceKind::Ptx),
    ("spv", SourceKind::SpirV),
    ("spvasm", SourceKind::SpirV),
];

impl SourceKind {
    /// By the ending of a file's name.
    pub fn of_ending(ending: &str) -> Option<SourceKind> {
        KINDS
            .iter()
            .find(|kind| kind.0 == ending)
            .map(|kind| kind.1)
    }

    /// The dialect of its code.
    pub fn dialect(self) -> Dialect {
        match self {
            SourceKind::Cuda => Dialect::Cuda,
            SourceKind::OpenCl | SourceKind::SpirV => Dialect::OpenCl,
            SourceKind::Ptx => Dialect::Ptx,
        }
    }
}

/// The tests of a source file as TOML files, each with its name; and warnings.
///
/// # Errors
/// All that is wrong with the file and its launches.
pub fn to_toml(
    name: &str,
    bytes: &[u8],
    kind: SourceKind,
    options: &Options,
) -> Result<Documents, Vec<Diagnostic>> {
    let (file, mut others) = source_file(name, bytes, kind, options)?;
    let mut sink = Sink::new(&file);
    let all = kernels::documents(kind, options, &mut sink, &mut others);
    let mut found = sink.into_diagnostics();
    found.extend(others);
    match found.iter().any(|d| d.severity == Severity::Error) {
        true => Err(found),
        false => Ok((all, found)),
    }
}

/// A source file, and errors in kernels that it lacks.
///
/// # Errors
/// What is wrong with all of it.
pub(in crate::litmus) fn source_file(
    name: &str,
    bytes: &[u8],
    kind: SourceKind,
    options: &Options,
) -> Result<(Arc<SourceFile>, Vec<Diagnostic>), Vec<Diagnostic>> {
    if kind == SourceKind::SpirV {
        return spirv::translate(name, bytes).map(|module| (module.file, module.refused));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            let file = SourceFile::with_headers(name, text, &options.headers);
            Ok((file, Vec::new()))
        }
        Err(error) => Err(vec![not_utf8(name, bytes, error.valid_up_to())]),
    }
}

/// Reports the first byte that is not UTF-8, with its place in a printable copy of the text.
pub(in crate::litmus) fn not_utf8(source_name: &str, bytes: &[u8], at: usize) -> Diagnostic {
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

/// Texts with their names, and warnings.
pub type Documents = (Vec<(String, String)>, Vec<Diagnostic>);

/// A launch, where it was written, and what kind of place that is.
#[derive(Clone, Debug)]
struct WrittenLaunches {
    launch: WrittenLaunch,
    /// The text that its spans are of.
    file: Arc<SourceFile>,
    by: LaunchOrigin,
}

/// The launches that a file and the command line say, in order; those of the command line replace
/// those of the file. Errors in the command line go to `others`.
fn written(
    options: &Options,
    sink: &mut Sink,
    others: &mut Vec<Diagnostic>,
) -> Vec<WrittenLaunches> {
    let file = sink.file().clone();
    let mut all = Vec::new();
    for text in &options.launches {
        let source = SourceFile::new("--launch", text.as_str());
        let mut own = Sink::new(&source);
        let launch = launch::read(&MappedText::verbatim(text, 0), &mut own);
        others.extend(own.into_diagnostics());
        all.extend(launch.map(|launch| WrittenLaunches {
            launch,
            file: source,
            by: LaunchOrigin::CommandLine,
        }));
    }
    if !options.launches.is_empty() {
        return all;
    }
    let lines = launch::directives(&file.text, sink);
    all.extend(lines.into_iter().map(|launch| WrittenLaunches {
        launch,
        file: file.clone(),
        by: LaunchOrigin::Line,
    }));
    all
}
