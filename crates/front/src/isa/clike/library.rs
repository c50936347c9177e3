//! Gives code the functions and types of CUDA's headers that are written in CUDA C++ here.
//!
//! The front end inlines them as it inlines functions of the code.
//!
//! # Invariants
//! - Code gets the definitions that it names, and those that these name. What the code defines
//!   itself stays as it is.
//! - The place of a definition is that of a word that needs it.
//!
//! # Sources
//! - C11, 7.24, *String handling*; cuRAND Library, *Device API Overview*.

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use diag::{MappedText, Span};
use program::Dialect;

use super::Language;
use super::items::{Item, items};
use super::text_words::words;

const TEXT: &str = include_str!("library.cuh");

/// Copies elements, and clears them.
pub(super) const COPY: &str = "__copy_elements";
const CLEAR: &str = "__clear_elements";

/// Functions for a number of bytes, and the definition that does their work.
pub(super) const OF_BYTES: &[(&str, &str)] = &[
    ("memcpy", COPY),
    ("memmove", COPY),
    ("__builtin_memcpy", COPY),
    ("__builtin_memmove", COPY),
    ("memset", CLEAR),
    ("__builtin_memset", CLEAR),
];

static ITEMS: LazyLock<Vec<Item>> =
    LazyLock::new(|| items(&MappedText::verbatim(TEXT, 0), language_of_library()));

fn language_of_library() -> &'static Language {
    Language::of(Dialect::Cuda).expect("CUDA C++ has a row")
}

/// The code behind the definitions that it needs.
pub(super) fn with_definitions(text: MappedText, language: &Language) -> MappedText {
    if !language.cpp {
        return text;
    }
    let source = text.as_str();
    let mut roots: BTreeMap<&str, Span> = BTreeMap::new();
    for (range, _) in words(source) {
        let word = &source[range.clone()];
        let stands_for = OF_BYTES.iter().find(|row| row.0 == word);
        let word = stands_for.map_or(word, |row| row.1);
        if ITEMS.iter().any(|item| item.declares(word)) {
            roots.entry(word).or_insert_with(|| text.span(range));
        }
    }
    if roots.is_empty() {
        return text;
    }
    let own = items(&text, language).into_iter().flat_map(|i| i.names);
    let own: HashSet<String> = own.collect();
    roots.retain(|word, _| !own.contains(*word));
    let mut out = MappedText::new();
    for (item, span) in ITEMS.iter().zip(definitions(roots)) {
        if let Some(span) = span {
            out.push_opaque(&TEXT[item.range.clone()], span);
            out.push_opaque("\n", span);
        }
    }
    out.push_slice(&text, 0..source.len());
    out
}

/// For each definition, the place of the word that needs it, if one does.
fn definitions(roots: BTreeMap<&str, Span>) -> Vec<Option<Span>> {
    let mut needed = vec![None; ITEMS.len()];
    let mut open: Vec<(&str, Span)> = roots.into_iter().collect();
    while let Some((word, span)) = open.pop() {
        let of_word = ITEMS.iter().enumerate().filter(|(_, i)| i.declares(word));
        for (at, item) in of_word {
            if needed[at].is_none() {
                needed[at] = Some(span);
                open.extend(item.words().map(|word| (word, span)));
            }
        }
    }
    needed
}
