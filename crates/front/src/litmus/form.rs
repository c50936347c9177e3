//! A kernel read once for every launch: its code with the place of the thread in registers.
//!
//! # Invariants
//! - The code of a [`Form`] is the same in every thread: it was lowered for two places that differ
//!   in every coordinate, and the results are equal.
//! - Registers of the thread's place have the names that code gives them: `threadIdx.x`, `tid.x`,
//!   `get_global_id.0`.

use diag::{Diagnostic, Sink, SourceFile, Span, file};
use program::litmus::LitmusTest;
use program::{Init, NdRange, WorkItem};

use super::read::is_litmus;
use super::toml;

/// A kernel whose thread is not fixed.
#[derive(Clone, Debug)]
pub struct Form {
    /// The test with one thread, which stands for all of them.
    pub test: LitmusTest,
    /// The launch that the file gives.
    pub range: NdRange,
    /// The registers that hold numbers given to the kernel.
    pub arguments: Vec<String>,
    /// What the file assumes of the launch and of the arguments, and where it stands.
    pub assume: Option<(String, Span)>,
}

/// Another launch of a kernel than the one that its file gives.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Its index space.
    pub range: NdRange,
    /// Other values of registers, by name.
    pub arguments: Vec<(String, i64)>,
    /// The threads that run; `None`: all.
    pub threads: Option<Vec<WorkItem>>,
    /// Arrays have at most so many elements.
    pub most_elements: usize,
}

/// What a file is read for.
#[derive(Clone, Debug, Default)]
pub(super) enum Reading {
    /// Its tests, as they are.
    #[default]
    Exact,
    /// Its kernels, with the thread's place in registers.
    Form,
    /// Its kernels, launched otherwise.
    At(Launch),
}

/// Elements of an array of which no more is known than its type.
pub(super) const ENOUGH: usize = 16;

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
    launch: Launch,
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

/// The text of a file in TOML.
fn text(name: &str, bytes: &[u8]) -> Option<std::sync::Arc<SourceFile>> {
    if bytes.len() as u64 > file::LARGEST {
        return None;
    }
    let file = SourceFile::new(name, std::str::from_utf8(bytes).ok()?);
    (!is_litmus(&file)).then_some(file)
}

/// A form of a test with two threads; `None`: they do not run the same code.
pub(super) fn of_two(
    mut test: LitmusTest,
    range: NdRange,
    arguments: Vec<String>,
    assume: Option<(String, Span)>,
) -> Result<Form, Span> {
    let [first, second] = &test.program.threads[..] else {
        return Err(Span::default());
    };
    let differs = first.code.iter().zip(&second.code);
    let mut differs = differs.filter(|(a, b)| format!("{:?}", a.op) != format!("{:?}", b.op));
    if let Some((at, _)) = differs.next() {
        return Err(at.span);
    }
    if first.code.len() != second.code.len() {
        return Err(first.code.last().map_or(Span::default(), |at| at.span));
    }
    test.program.threads.truncate(1);
    let thread = &test.program.threads[0];
    let is_number = |name: &String| {
        let register = thread.register(name.strip_prefix('%').unwrap_or(name));
        register.is_some_and(|r| matches!(thread.regs[usize::from(r.0)].init, Init::Int(_)))
    };
    let arguments = arguments.into_iter().filter(is_number).collect();
    Ok(Form {
        test,
        range,
        arguments,
        assume,
    })
}
