//! Reads the phrases in a model's comments that express its relations and sets in words.
//!
//! A comment that begins with `In words:` has a line per name, `NAME: clause`, in which `A` and `B`
//! stand for the two events, and `A` alone for a member of a set:
//!
//! ```text
//! (* In words:
//!    synchronizes: A synchronizes with B
//!    release-write: A is a release
//!    not visible: another write comes between A and B *)
//! ```
//!
//! `not NAME` is the phrase for events that the relation does not relate.
//!
//! Other comments contain lists of the same form:
//!
//! - `Shown in:`, tests that show a name, in addition to the tests of the axioms, `NAME: TEST,
//!   TEST`;
//! - `Drawn as:`, how pictures draw relations, `STYLE: NAME, NAME`;
//! - `Kept by mappings:`, the known part of some axioms that mappings keep, `GAP: DEFINITION`, and
//!   `instead of: AXIOM, AXIOM`.
//!
//! # Invariants
//! - Phrases are for human readers. No answer depends on them, and explanations fall back to names
//!   without them.
//! - If several notes concern one name, the file read first counts; the main file is first.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ir::Model;
use super::lex;
use diag::SourceFile;

/// The phrase of every name that has one, with `{a}` and `{b}` for the events.
pub fn words(model: &Model) -> BTreeMap<String, String> {
    notes(&model.files, "In words:")
        .into_iter()
        .map(|(name, clause)| (name, placed(&clause)))
        .collect()
}

/// The entries of all comments that begin with `head`, by the name before the colon of each line.
pub fn notes(files: &[Arc<SourceFile>], head: &str) -> BTreeMap<String, String> {
    let mut notes = BTreeMap::new();
    let with_some = files.iter().filter(|file| file.text.contains(head));
    for comment in with_some.flat_map(|file| lex::lex(file).comments) {
        let text = lex::clean(std::slice::from_ref(&comment));
        let lines = text.strip_prefix(head).into_iter().flat_map(str::lines);
        for (name, note) in lines.filter_map(|line| line.split_once(": ")) {
            notes
                .entry(name.trim().to_owned())
                .or_insert_with(|| note.trim().to_owned());
        }
    }
    notes
}

/// Replaces the words `A` and `B` by placeholders for events.
fn placed(clause: &str) -> String {
    clause
        .split(' ')
        .map(|w| {
            let (word, mark) = w.split_at(w.trim_end_matches([',', ';', ':']).len());
            let word = match word {
                "A" => "{a}",
                "B" => "{b}",
                "A's" => "{a}'s",
                "B's" => "{b}'s",
                other => other,
            };
            format!("{word}{mark}")
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::placed;

    #[test]
    fn letters_that_stand_alone_are_places_also_before_a_mark() {
        assert_eq!(
            placed("A comes before B, which A's CTA names; B"),
            "{a} comes before {b}, which {a}'s CTA names; {b}"
        );
        assert_eq!(placed("Aside, a CTA: BB"), "Aside, a CTA: BB");
    }
}
