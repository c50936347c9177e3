//! Changes as a programmer would write them: other words for orders and scopes, functions with
//! other endings, fences and barriers between statements, atomic accesses in place of plain ones.
//!
//! A change replaces a few parts of the file. The front end alone decides what the new file means;
//! a text that it refuses is never offered.
//!
//! # Invariants
//! - The front end read every level of a [`Knob`], and the level changes or adds an instruction.
//! - New text goes behind a statement, on its line: lines keep their numbers.

use std::ops::Range;

use diag::Span;
use front::litmus::{Splice, respelled};
use program::litmus::LitmusTest;
use program::writing::Writing;
use program::{Dialect, DialectRow, Instr};

use self::tokens::{declarations, regions, tokens};
use crate::knobs::{Knob, KnobLevel, Spot, Written, said};

mod atomic;
mod barriers;
mod calls;
mod gaps;
#[cfg(test)]
mod tests;
mod tokens;
mod words;

/// The code of a test as text.
pub(crate) struct Source<'t> {
    test: &'t LitmusTest,
    row: &'static DialectRow,
    writing: &'static Writing,
    /// The tokens of each part of the file that is code, behind an empty one.
    tokens: Vec<Range<usize>>,
}

/// The effect of a change, as the front end reads it.
struct Effect {
    /// Instructions that have another order, scope or kind of access.
    changed: Vec<Spot>,
    /// Added instructions, by their place in the changed program.
    added: Vec<Spot>,
}

impl<'t> Source<'t> {
    /// The code of a test; `None` if changes are not written in its dialect.
    pub(crate) fn new(test: &'t LitmusTest) -> Option<Source<'t>> {
        let row = test.program.dialect.row();
        let writing = row.writing?;
        let mut source = Source {
            test,
            row,
            writing,
            tokens: Vec::new(),
        };
        // An empty token separates regions.
        source.tokens = (declarations(test).into_iter().chain(regions(test)))
            .flat_map(|region| {
                std::iter::once(region.start..region.start).chain(tokens(&test.file.text, region))
            })
            .collect();
        Some(source)
    }

    /// The code of a test in PTX. Only statements are added there; other changes are printed.
    pub(crate) fn assembly(test: &'t LitmusTest) -> Option<Source<'t>> {
        let row = test.program.dialect.row();
        let mut source = Source {
            test,
            row,
            writing: &program::writing::PTX,
            tokens: Vec::new(),
        };
        source.tokens = (regions(test).into_iter())
            .flat_map(|region| {
                std::iter::once(region.start..region.start).chain(tokens(&test.file.text, region))
            })
            .collect();
        (test.program.dialect == Dialect::Ptx).then_some(source)
    }

    fn is_assembly(&self) -> bool {
        self.row.writing.is_none()
    }

    /// A statement as it is added: in kernels of assembly, behind an instruction or in front of the
    /// first one.
    fn statement_at(&self, gap: &Range<usize>, statement: &str) -> String {
        match self
            .kernels()
            .find(|span| [span.start, span.end].contains(&gap.start))
        {
            Some(span) if self.is_assembly() && span.end == gap.start => format!("; {statement}"),
            Some(_) if self.is_assembly() => format!("{statement}; "),
            _ => format!(" {statement};"),
        }
    }

    /// The places of instructions of kernels.
    fn kernels(&self) -> impl Iterator<Item = Range<usize>> + use<'_> {
        let program = &self.test.program;
        let code = program
            .instrs()
            .filter(|(t, _, _)| !program.thread(*t).place.host);
        code.map(|(_, _, instr)| instr.span.range())
            .filter(|span| !span.is_empty())
    }

    fn text(&self) -> &'t str {
        &self.test.file.text
    }

    /// A token, by index; empty behind the last one.
    fn token(&self, at: usize) -> &'t str {
        self.tokens
            .get(at)
            .map_or("", |range| &self.text()[range.clone()])
    }

    fn before(&self, at: usize, by: usize) -> &'t str {
        at.checked_sub(by).map_or("", |at| self.token(at))
    }

    /// The effect of a change; `None` if the front end refuses it.
    fn effect(&self, splices: &[Splice]) -> Option<Effect> {
        let (new, put_in) = respelled(self.test, splices)?;
        let (mut changed, mut added) = (Vec::new(), Vec::new());
        for t in new.program.thread_ids() {
            let (old, new) = (
                &self.test.program.thread(t).code,
                &new.program.thread(t).code,
            );
            let is_new = |instr: &Instr| put_in.iter().any(|span| within(instr.span, *span));
            let (there, kept): (Vec<_>, Vec<_>) =
                new.iter().enumerate().partition(|(_, instr)| is_new(instr));
            added.extend(there.into_iter().map(|(i, _)| (t, i)));
            if kept.len() != old.len() {
                return None;
            }
            let differs = |(i, (a, (_, b))): (usize, (&Instr, &(usize, &Instr)))| {
                (said(&a.op) != said(&b.op)).then_some((t, i))
            };
            changed.extend(old.iter().zip(&kept).enumerate().filter_map(differs));
        }
        Some(Effect { changed, added })
    }

    /// A knob that puts other words in one place: those that the front end takes.
    fn knob(
        &self,
        kind: Written,
        range: &Range<usize>,
        words: impl IntoIterator<Item = String>,
    ) -> Option<Knob> {
        let span = Span::new(range.start, range.end);
        let mut spots = Vec::new();
        let mut levels = Vec::new();
        for word in words {
            let splices = vec![Splice { span, text: word }];
            let effect = self
                .effect(&splices)
                .filter(|e| !e.changed.is_empty() || !e.added.is_empty());
            let Some(effect) = effect else { continue };
            spots = if effect.added.is_empty() {
                effect.changed
            } else {
                effect.added
            };
            levels.push(KnobLevel::text(splices));
        }
        (!levels.is_empty()).then(|| Knob::written_so(kind, &spots, levels))
    }
}

fn within(inner: Span, outer: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}
