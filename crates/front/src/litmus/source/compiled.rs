//! Reads the PTX that a compiler makes of a source file: launches are those of the source, and
//! places are lines of the source.
//!
//! # Invariants
//! - The tests are about the compiled code. The launch of each names the compiler.
//! - An instruction without a line of the source has the line of its kernel.

use std::sync::Arc;

use super::bind::{BoundLaunch, bytes_of};
use super::kernels;
use super::{Options, SourceKind};
use diag::{Sink, SourceFile, SourceLine, Span};
use program::litmus::LitmusTest;

/// A compiler that makes PTX of source files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompiledWith {
    /// NVIDIA's nvcc.
    Nvcc,
    /// clang.
    Clang,
}

/// How the module of a source file is read: with the launches of the source.
pub(in crate::litmus) fn of_module(
    file: &Arc<SourceFile>,
    kind: SourceKind,
    options: &Options,
) -> Options {
    Options {
        language: Some(SourceKind::Ptx),
        launches: launches(file, kind, options),
        ..Options::default()
    }
}

/// Makes a test of a module one of the source file. `by` names the compiler.
pub(in crate::litmus) fn of_source(test: &mut LitmusTest, file: &Arc<SourceFile>, by: &str) {
    in_lines_of(test, file);
    if let Some(launch) = &mut test.launch {
        launch.compiler = Some(by.to_owned());
    }
}

/// The launches of a source file as its module takes them. A kernel that the front end for its
/// language cannot read has the launch that the file says, or a chosen one.
fn launches(file: &Arc<SourceFile>, kind: SourceKind, options: &Options) -> Vec<String> {
    let mut sink = Sink::new(file);
    kernels::launches(kind, options, &mut sink)
        .into_iter()
        .map(|(text, bound)| bound.map_or(text, typed))
        .collect()
}

/// A launch with the types of its buffers, which a module does not say.
fn typed(mut bound: BoundLaunch) -> String {
    let base = bound
        .kernel
        .split('<')
        .next()
        .unwrap_or_default()
        .to_owned();
    bound.kernel = base;
    for memory in &mut bound.memory {
        let bits = bytes_of(&memory.element).map(|bytes| 8 * bytes);
        match bits {
            Some(bits) if !memory.dynamic => {
                let signed = memory.element.starts_with('s');
                memory.element = format!("{}{bits}", if signed { "s" } else { "u" });
                memory.typed = true;
            }
            _ => memory.length = None,
        }
    }
    bound.text()
}

/// Gives a test the lines of the source that its code was made from.
fn in_lines_of(test: &mut LitmusTest, file: &Arc<SourceFile>) {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(file.text.match_indices('\n').map(|(at, _)| at + 1))
        .collect();
    let span_of = |line: u32| {
        let start = *starts.get(line.checked_sub(1)? as usize)?;
        let text = file.text[start..].lines().next()?;
        let indent = text.len() - text.trim_start().len();
        Some(Span::new(start + indent, start + text.trim_end().len()))
    };
    let kernel = test
        .launch
        .as_ref()
        .map_or("", |launch| launch.kernel.as_str());
    let kernel = file.text.find(kernel).map_or(0, |at| at);
    let (first, _) = file.line_column(kernel);
    for thread in &mut test.program.threads {
        for instr in &mut thread.code {
            let origin = instr.line.origin.iter().filter(|origin| {
                origin.file.rsplit(['/', '\\']).next() == file.name.rsplit(['/', '\\']).next()
            });
            let line = origin
                .map(|origin| origin.line)
                .next_back()
                .unwrap_or(first as u32);
            instr.span = span_of(line).unwrap_or_default();
            instr.line = SourceLine::from(line);
        }
    }
    if let Some(launch) = &mut test.launch {
        launch.span = span_of(first as u32).unwrap_or_default();
    }
    test.file = file.clone();
}
