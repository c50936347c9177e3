//! Words of code that are no terms: the passages of the book that have them in code.
//!
//! # Invariants
//! - A passage is a row of a table, an item of a list, or a paragraph.
//! - A word stands for itself alone: `latch` is not in `latches`.

/// The pages that say what code can do, and their texts.
const PAGES: [(&str, &str); 7] = [
    (
        "test-format.md",
        include_str!("../../../docs/src/test-format.md"),
    ),
    ("c-family.md", include_str!("../../../docs/src/c-family.md")),
    (
        "source-files.md",
        include_str!("../../../docs/src/source-files.md"),
    ),
    ("civl.md", include_str!("../../../docs/src/civl.md")),
    ("host.md", include_str!("../../../docs/src/host.md")),
    ("scopes.md", include_str!("../../../docs/src/scopes.md")),
    (
        "compiled-kernels.md",
        include_str!("../../../docs/src/compiled-kernels.md"),
    ),
];

/// The most passages of an answer.
const MOST: usize = 3;

/// A passage of the book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// The file of its page.
    pub page: &'static str,
    /// The heading above it.
    pub heading: String,
    /// Its text.
    pub text: String,
}

/// The first passages that have a word in code.
pub(super) fn passages(word: &str) -> Vec<Passage> {
    let mut found = Vec::new();
    for (page, text) in PAGES {
        let mut heading = "";
        for block in blocks(text) {
            if let Some(title) = block.strip_prefix('#') {
                heading = title.trim_start_matches('#').trim();
                continue;
            }
            if found.len() < MOST && has_in_code(block, word) {
                found.push(Passage {
                    page,
                    heading: heading.to_owned(),
                    text: plain(block),
                });
            }
        }
    }
    found
}

/// Headings, rows of tables, items of lists and paragraphs, without listings.
fn blocks(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let (mut start, mut at, mut is_listing) = (0, 0, false);
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        let begins = line.starts_with(['|', '#', '-']) || line.trim().is_empty();
        if begins || is_fence || is_listing {
            all.push(&text[start..at]);
            start = at;
        }
        at += line.len();
        if is_fence || is_listing || line.starts_with('#') {
            let keeps = line.starts_with('#') && !is_listing;
            all.push(if keeps { line } else { "" });
            start = at;
        }
        is_listing ^= is_fence;
    }
    all.push(&text[start..]);
    all.retain(|block| !block.trim().is_empty());
    all
}

/// Whether one of the pieces of code in a text has a word.
fn has_in_code(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_whole = |code: &str| {
        code.match_indices(word).any(|(at, _)| {
            let before = code[..at].chars().next_back();
            let after = code[at + word.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
    };
    !word.is_empty() && text.split('`').skip(1).step_by(2).any(is_whole)
}

/// Without marks of tables and links, in one line.
fn plain(block: &str) -> String {
    let block = block.trim();
    let text = match block.strip_prefix('|') {
        Some(row) => {
            let row = row.replace("\\|", "\u{1}");
            let cells = row
                .split('|')
                .map(str::trim)
                .filter(|cell| !cell.is_empty());
            cells.collect::<Vec<_>>().join(" – ").replace('\u{1}', "|")
        }
        None => block.strip_prefix("- ").unwrap_or(block).to_owned(),
    };
    super::glossary::plain(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_code_has_its_passages() {
        for word in [
            "enqueue_marker",
            "__int128",
            "clEnqueueFillBuffer",
            "to_global",
        ] {
            let all = passages(word);
            assert!(!all.is_empty() && all.len() <= MOST, "{word}: {all:?}");
            assert!(all.iter().all(|p| p.text.contains(word)), "{word}: {all:?}");
            assert!(all.iter().all(|p| !p.heading.is_empty()), "{word}: {all:?}");
        }
    }

    #[test]
    fn other_words_have_none() {
        for word in ["", "enqueue_mark", "enqueue", "no_such_word"] {
            assert_eq!(passages(word), [], "{word}");
        }
    }
}
