//! Reads a test again after parts of its file were replaced.
//!
//! # Invariants
//! - The front end reads the new text like any other file. Threads, locations and nameable
//!   registers keep their indices, so a proposition keeps its meaning.

use super::{dotlitmus, read, source, toml};
use diag::{Sink, Span};
use program::litmus::LitmusTest;
use program::{Program, Thread};

/// A replacement for a part of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Splice {
    /// The replaced range; if empty, the text is inserted.
    pub span: Span,
    /// The new text.
    pub text: String,
}

/// The text after all replacements, and the ranges of the new parts in it; `None` if two
/// replacements overlap.
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

/// Reads the test with parts of its file replaced. Returns it with the places of the new text.
/// `None` if the front end refuses the new file, or its names differ.
pub fn respelled(test: &LitmusTest, splices: &[Splice]) -> Option<(LitmusTest, Vec<Span>)> {
    let (text, put_in) = spliced(&test.file.text, splices)?;
    let file = test.file.changed(text);
    let mut sink = Sink::new(&file);
    let dialect = test.program.dialect;
    let tests = match (&test.launch, read::is_litmus(&file)) {
        // With its launch on the command line, a kernel has one test, called by its name alone.
        (Some(launch), _) => {
            let again = source::read_again(launch, dialect, &mut sink);
            let name = test.name.clone();
            again
                .into_iter()
                .map(|new| LitmusTest {
                    name: name.clone(),
                    ..new
                })
                .collect()
        }
        (None, true) => dotlitmus::read(&mut sink).into_iter().collect(),
        (None, false) => toml::read(&mut sink, Some(&test.name)),
    };
    let new = tests
        .into_iter()
        .find(|new: &LitmusTest| new.name == test.name)
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
    // Registers that code cannot name may differ.
    old.threads.len() == new.threads.len()
        && old.locations.len() == new.locations.len()
        && old
            .threads
            .iter()
            .zip(&new.threads)
            .all(|(a, b)| a.place == b.place && nameable(a) == nameable(b))
        && old
            .locations
            .iter()
            .zip(&new.locations)
            .all(|(a, b)| a.name == b.name)
}

fn nameable(thread: &Thread) -> Vec<(usize, String)> {
    let regs = thread
        .regs
        .iter()
        .enumerate()
        .filter(|(_, reg)| !reg.name.starts_with('$'));
    regs.map(|(i, reg)| (i, reg.name.clone())).collect()
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
