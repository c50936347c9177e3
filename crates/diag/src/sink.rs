//! Where a front end puts its diagnostics: all errors of one file, each once.
//!
//! # Invariants
//! - The instances of a template report the same mistake once.
//! - At most [`LIMIT`] diagnostics are kept; the last one then says that there are more.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Diagnostic, Severity, SourceFile, Span};

/// How many diagnostics of one file are kept.
const LIMIT: usize = 100;

/// Collects the diagnostics of one file.
#[derive(Debug)]
pub struct Sink {
    file: Arc<SourceFile>,
    line_starts: Vec<u32>,
    found: Vec<Diagnostic>,
    seen: HashSet<(&'static str, Span, String)>,
    errors: usize,
}

impl Sink {
    /// An empty sink for `file`.
    pub fn new(file: &Arc<SourceFile>) -> Sink {
        let starts = file
            .text
            .bytes()
            .enumerate()
            .filter(|(_, b)| *b == b'\n')
            .map(|(i, _)| i as u32 + 1);
        Sink {
            file: file.clone(),
            line_starts: starts.collect(),
            found: Vec::new(),
            seen: HashSet::new(),
            errors: 0,
        }
    }

    /// The file it is for.
    pub fn file(&self) -> &Arc<SourceFile> {
        &self.file
    }

    /// The 1-based line of a byte offset, in logarithmic time.
    pub fn line(&self, offset: u32) -> u32 {
        self.line_starts.partition_point(|&start| start <= offset) as u32 + 1
    }

    /// Records a diagnostic, unless the same one was recorded before.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Error {
            self.errors += 1;
        }
        if self.found.len() > LIMIT {
            return;
        }
        if !self
            .seen
            .insert((diagnostic.id, diagnostic.span, diagnostic.message.clone()))
        {
            return;
        }
        if self.found.len() == LIMIT {
            let more = Diagnostic::error(
                "too-many-errors",
                &self.file,
                diagnostic.span,
                "there are more errors",
            )
            .label(format!("only the first {LIMIT} are shown"));
            // Warnings alone are no reason to refuse a file.
            self.found.push(if self.errors == 0 {
                more.warning()
            } else {
                more
            });
            return;
        }
        self.found.push(diagnostic);
    }

    /// Records an error and hands out the builder's input: `sink.error(…, |d| d.label(…))`.
    pub fn error(
        &mut self,
        id: &'static str,
        span: Span,
        message: impl Into<String>,
        finish: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        if self.full() {
            self.errors += 1;
            return;
        }
        let diagnostic = finish(Diagnostic::error(id, &self.file, span, message));
        self.push(diagnostic);
    }

    /// As [`Sink::error`], of something that a test may have, but that its author hardly meant.
    pub fn warn(
        &mut self,
        id: &'static str,
        span: Span,
        message: impl Into<String>,
        finish: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let diagnostic = finish(Diagnostic::error(id, &self.file, span, message)).warning();
        self.push(diagnostic);
    }

    /// Whether further diagnostics are only counted. Looking for "did you mean" is then in vain,
    /// and in a large file too slow.
    pub fn full(&self) -> bool {
        self.found.len() > LIMIT
    }

    /// How many errors were reported, repeated ones included.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// How many diagnostics are kept.
    pub fn kept(&self) -> usize {
        self.found.len()
    }

    /// Takes back what was recorded since there were `kept` diagnostics and `errors` errors.
    pub fn take_back(&mut self, (kept, errors): (usize, usize)) {
        for d in self.found.drain(kept.min(self.found.len())..) {
            self.seen.remove(&(d.id, d.span, d.message));
        }
        self.errors = errors;
    }

    /// Adds what to do to the first diagnostic after the first `kept` ones, unless it says so
    /// itself.
    pub fn advise(&mut self, kept: usize, help: &str) {
        if let Some(first) = self.found.get_mut(kept).filter(|d| d.help.is_none()) {
            first.help = Some(help.to_string());
        }
    }

    /// What was found, in order of place.
    pub fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|d| d.span);
        self.found
    }
}
