//! A kernel read once for every launch: its code with the place of the thread in registers.
//!
//! # Invariants
//! - The code of a [`Form`] is the same in every thread: it was lowered for two places that differ
//!   in every coordinate, and the results are equal.
//! - Registers of the thread's place have the names that code gives them: `threadIdx.x`, `tid.x`,
//!   `get_global_id.0`.

use diag::{Diagnostic, Sink, SourceFile, file};
use program::litmus::LitmusTest;

use super::read::is_litmus;
use super::reading::Reading;
pub use super::reading::{Form, LaunchVariant, ObjectSize, PointerTarget};
use super::{source, toml};
pub use crate::isa::clike::BlockLimit;

/// Reads the kernels of a file; none, where its tests are lists of threads or host programs.
///
/// # Errors
/// What is wrong with the file, or cannot be said for all threads at once.
pub fn forms(name: &str, bytes: &[u8]) -> Result<Vec<Form>, Vec<Diagnostic>> {
    let Some(file) = text(name, bytes) else {
        return Ok(Vec::new());
    };
    let mut sink = Sink::new(&file);
    let forms = toml::forms(&mut sink);
    match sink.errors() {
        0 => Ok(forms),
        _ => Err(sink.into_diagnostics()),
    }
}

/// Reads a test with another launch of its kernel.
///
/// # Errors
/// What is wrong with the file, or with the launch.
pub fn at(
    name: &str,
    bytes: &[u8],
    test: &str,
    launch: LaunchVariant,
) -> Result<Option<LitmusTest>, Vec<Diagnostic>> {
    let Some(file) = text(name, bytes) else {
        return Ok(None);
    };
    let mut sink = Sink::new(&file);
    let tests = toml::read_as(&mut sink, Some(test), Reading::At(launch));
    match sink.errors() {
        0 => Ok(tests.into_iter().next()),
        _ => Err(sink.into_diagnostics()),
    }
}

/// Reads the kernel of a source file that a test was made of; `None`: it has no form, as it has a
/// cluster.
///
/// # Errors
/// What is wrong with the file, or cannot be said for all threads at once.
pub fn of_source(test: &LitmusTest) -> Result<Option<Form>, Vec<Diagnostic>> {
    match &test.launch {
        Some(launch) => source::form(launch, test.program.dialect, &test.file),
        None => Ok(None),
    }
}

/// Reads a kernel of a source file with another launch.
///
/// # Errors
/// What is wrong with the file, or with the launch.
pub fn of_source_at(
    test: &LitmusTest,
    launch: &LaunchVariant,
) -> Result<Option<LitmusTest>, Vec<Diagnostic>> {
    match &test.launch {
        Some(own) => source::at(own, test.program.dialect, &test.file, launch),
        None => Ok(None),
    }
}

/// The tests of the launches that a program has with the written constants, each for itself.
pub fn full_launches(program: &LitmusTest) -> impl Iterator<Item = (&str, Option<LitmusTest>)> {
    let launch = program.launch.as_ref();
    let full = launch.and_then(|launch| Some((launch, launch.full.as_ref()?)));
    let all = full.into_iter().flat_map(|(launch, full)| {
        let texts = full.texts.iter().map(String::as_str);
        texts.map(move |text| (launch, text))
    });
    let dialect = program.program.dialect;
    all.map(move |(launch, text)| {
        let test = source::launched_alone(launch, dialect, &program.file, text);
        (text, test)
    })
}

/// The text of a file in TOML.
fn text(name: &str, bytes: &[u8]) -> Option<std::sync::Arc<SourceFile>> {
    if bytes.len() as u64 > file::LARGEST {
        return None;
    }
    let file = SourceFile::new(name, std::str::from_utf8(bytes).ok()?);
    (!is_litmus(&file)).then_some(file)
}
