//! Collects the diagnostics of one file; front ends report into it.
//!
//! # Invariants
//! - Instances of a template report the same mistake once.
//! - At most [`LIMIT`] diagnostics are kept, followed by one that says that there are more.
//! - An allowed warning is not shown. One that is allowed and never comes is a warning itself.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Diagnostic, Severity, SourceFile, SourceLine, Span};

/// The number of diagnostics of one file that are kept.
const LIMIT: usize = 100;

/// An error is in the [`Sink`]; the caller gives up without another one.
#[derive(Debug)]
pub struct ErrorReported;

/// A state of a [`Sink`], to which it can return.
#[derive(Clone, Copy, Debug)]
pub struct SinkMark {
    kept: usize,
    errors: usize,
}

/// Collects the diagnostics of one file.
#[derive(Debug)]
pub struct Sink {
    file: Arc<SourceFile>,
    line_starts: Vec<u32>,
    found: Vec<Diagnostic>,
    seen: HashSet<(&'static str, Span, String)>,
    errors: usize,
    /// The warnings that the file allows, each with the place that says so.
    allowed: Vec<(String, Span)>,
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
            allowed: Vec::new(),
        }
    }

    /// The file that the diagnostics are about.
    pub fn file(&self) -> &Arc<SourceFile> {
        &self.file
    }

    /// The 1-based line of a byte offset, in logarithmic time.
    pub fn line(&self, offset: u32) -> u32 {
        let lines = |offset: u32| self.line_starts.partition_point(|&start| start <= offset);
        let first = self.file.part(offset as usize).1.start as u32;
        let before = if first == 0 { 0 } else { lines(first) };
        (lines(offset) - before) as u32 + 1
    }

    /// The line of a byte offset, with the line of another file that it was made from.
    pub fn source_line(&self, offset: u32) -> SourceLine {
        let number = self.line(offset);
        let translation = self.file.translation.as_ref();
        let origin = translation.and_then(|it| it.origins.get(&number));
        SourceLine {
            number,
            origin: origin.into_iter().cloned().collect(),
        }
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
            // If there are only warnings, the extra diagnostic is a warning, too: warnings do not
            // make a file invalid.
            self.found.push(if self.errors == 0 {
                more.warning()
            } else {
                more
            });
            return;
        }
        self.found.push(diagnostic);
    }

    /// Records an error; `finish` completes it: `sink.error(…, |d| d.label(…))`.
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

    /// Like [`Sink::error`], but a warning: the construct is allowed, but its author probably meant
    /// something else.
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

    /// Whether further diagnostics are only counted. Callers then skip the search for "did you
    /// mean", which is slow in a large file.
    pub fn full(&self) -> bool {
        self.found.len() > LIMIT
    }

    /// The number of errors reported, including repeated ones.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// The number of diagnostics kept.
    pub fn kept(&self) -> usize {
        self.found.len()
    }

    /// The present state, for [`Sink::take_back`].
    pub fn mark(&self) -> SinkMark {
        SinkMark {
            kept: self.kept(),
            errors: self.errors,
        }
    }

    /// Removes all diagnostics recorded since `mark`.
    pub fn take_back(&mut self, mark: SinkMark) {
        for d in self.found.drain(mark.kept.min(self.found.len())..) {
            self.seen.remove(&(d.id, d.span, d.message));
        }
        self.errors = mark.errors;
    }

    /// Adds a help text to the first diagnostic after the first `kept` ones, unless it already has
    /// one.
    pub fn advise(&mut self, kept: usize, help: &str) {
        if let Some(first) = self.found.get_mut(kept).filter(|d| d.help.is_none()) {
            first.help = Some(help.to_string());
        }
    }

    /// The same; if it already has a help text, the text becomes a remark.
    pub fn advise_also(&mut self, kept: usize, help: &str) {
        if let Some(first) = self.found.get_mut(kept) {
            first.advise_also(help);
        }
    }

    /// Allows a kind of warning in this file. `span` is the place that says so.
    pub fn allow(&mut self, id: &str, span: Span) {
        self.allowed.push((id.to_owned(), span));
    }

    /// All diagnostics, sorted by place; without allowed warnings.
    pub fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        for (id, span) in std::mem::take(&mut self.allowed) {
            let kept = self.found.len();
            self.found
                .retain(|d| d.severity == Severity::Error || d.id != id);
            if self.found.len() == kept && self.errors == 0 {
                let message = format!("no warning of this file is called `{id}`");
                self.warn("useless-allow", span, message, |d| {
                    d.label("allows nothing")
                });
            }
        }
        self.found.sort_by_key(|d| d.span);
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports one warning, and an error if `is_wrong`; returns the names of those shown.
    fn shown(allowed: &str, is_wrong: bool) -> Vec<&'static str> {
        let mut sink = Sink::new(&SourceFile::new("a.toml", "some text"));
        sink.allow(allowed, Span::new(0, 1));
        sink.warn("odd", Span::new(2, 3), "odd", |d| d);
        if is_wrong {
            sink.error("wrong", Span::new(4, 5), "wrong", |d| d);
        }
        sink.into_diagnostics().iter().map(|d| d.id).collect()
    }

    #[test]
    fn an_allowed_warning_is_not_shown_and_no_error_can_be_allowed() {
        assert!(shown("odd", false).is_empty());
        assert_eq!(shown("other", false), ["useless-allow", "odd"]);
        assert_eq!(shown("wrong", true), ["odd", "wrong"]);
        assert_eq!(shown("odd", true), ["wrong"]);
    }
}
