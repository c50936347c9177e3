//! Tests whose files were changed: what the front end makes of other code in the same place.
//!
//! # Invariants
//! - What comes out was read by the front end like any other file. Threads, locations and the
//!   registers that code can name keep their indices, so a proposition means the same before and
//!   after.

use super::{dotlitmus, read, toml};
use diag::{Sink, SourceFile, Span};
use program::litmus::LitmusTest;
use program::{Program, Thread};

/// A part of a file, and what stands there instead.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Splice {
    /// What is replaced; empty: the text is put in.
    pub span: Span,
    /// What stands there then.
    pub text: String,
}

/// The text with parts of it replaced, and where the new parts are in it; `None` if two of them
/// overlap.
fn spliced(text: &str, splices: &[Splice]) -> Option<(String, Vec<Span>)> {
    let mut sorted: Vec<&Splice> = splices.iter().collect();
    sorted.sort_by_key(|splice| splice.span);
    let (mut new, mut at, mut spans) = (String::with_capacity(text.len()), 0, Vec::new());
    for splice in sorted {
        let range = splice.span.range();
        new.push_str(text.get(at..range.start)?);
        let start = new.len();
        new.push_str(&splice.text);
        if range.is_empty() {
            spans.push(Span::new(start, new.len()));
        }
        at = range.end;
    }
    new.push_str(text.get(at..)?);
    Some((new, spans))
}

/// The test with parts of its file replaced, and where in the new file text was put in; `None` if
/// the front end refuses it, or what it makes of it has other names.
pub fn respelled(test: &LitmusTest, splices: &[Splice]) -> Option<(LitmusTest, Vec<Span>)> {
    let (text, put_in) = spliced(&test.file.text, splices)?;
    let file = SourceFile::new(test.file.name.clone(), text);
    let mut sink = Sink::new(&file);
    let tests = match read::is_litmus(&file) {
        true => dotlitmus::read(&mut sink).into_iter().collect(),
        false => toml::read(&mut sink, Some(&test.name)),
    };
    let new = tests
        .into_iter()
        .find(|new| new.name == test.name)
        .filter(|_| sink.errors() == 0)?;
    same_names(&test.program, &new.program).then(|| {
        let changed = LitmusTest {
            program: new.program,
            file,
            ..test.clone()
        };
        (changed, put_in)
    })
}

fn same_names(old: &Program, new: &Program) -> bool {
    // Of registers that no code can name there may be others.
    let named = |thread: &Thread| -> Vec<(usize, String)> {
        let regs = thread
            .regs
            .iter()
            .enumerate()
            .filter(|(_, reg)| !reg.name.starts_with('$'));
        regs.map(|(i, reg)| (i, reg.name.clone())).collect()
    };
    old.threads.len() == new.threads.len()
        && old.locations.len() == new.locations.len()
        && old
            .threads
            .iter()
            .zip(&new.threads)
            .all(|(a, b)| a.place == b.place && named(a) == named(b))
        && old
            .locations
            .iter()
            .zip(&new.locations)
            .all(|(a, b)| a.name == b.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_overlap_are_no_change() {
        let splice = |start, end, text: &str| Splice {
            span: Span::new(start, end),
            text: text.to_owned(),
        };
        let (text, put_in) =
            spliced("x = 1;", &[splice(4, 5, "22"), splice(0, 0, "F; ")]).expect("they do not");
        assert_eq!(
            (text.as_str(), put_in),
            ("F; x = 22;", vec![Span::new(0, 3)])
        );
        assert_eq!(
            spliced("x = 1;", &[splice(0, 3, "a"), splice(2, 4, "b")]),
            None
        );
    }
}
