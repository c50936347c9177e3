//! Relations and sets in words: what the texts of a model say of the names that they define.
//!
//! A comment that begins with `In words:` has a line per name, `NAME: clause`, in which `A` and `B` stand for the two
//! events, and `A` alone for a member of a set:
//!
//! ```text
//! (* In words:
//!    synchronizes: A synchronizes with B
//!    release-write: A is a release
//!    not visible: another write comes between A and B *)
//! ```
//!
//! `not NAME` is said of events that the relation does not have.
//!
//! # Invariants
//! - Words are for people. No answer depends on them, and a model without them is explained by its names.
//! - Of several clauses for one name, that of the file read first counts; the main file is the first.

use std::collections::BTreeMap;

use super::ir::Model;
use super::lex;

/// How such a comment begins.
const HEAD: &str = "In words:";

/// The clause of every name that has one, with `{a}` and `{b}` for the events.
pub fn words(model: &Model) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    for file in &model.files {
        for comment in lex::lex(file).comments {
            let text = lex::clean(std::slice::from_ref(&comment));
            let Some(lines) = text.strip_prefix(HEAD) else { continue };
            for line in lines.lines() {
                if let Some((name, clause)) = line.split_once(": ") {
                    words.entry(name.trim().to_owned()).or_insert_with(|| placed(clause.trim()));
                }
            }
        }
    }
    words
}

/// `A` and `B`, where they stand alone, become places for events.
fn placed(clause: &str) -> String {
    let word = |w: &str| match w {
        "A" => "{a}".to_owned(),
        "B" => "{b}".to_owned(),
        "A's" => "{a}'s".to_owned(),
        "B's" => "{b}'s".to_owned(),
        other => other.to_owned(),
    };
    clause.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
