//! Checks the register of comments: the code acts, and a sentence names its actor.
//!
//! Words such as "what is", "who" or "nobody" mark a sentence without an actor. A few of them are
//! right where they are; many of them make a text that has to be translated.
//!
//! # Invariants
//! - Only comments count, of the product: no strings, no tests.

use std::fs;

use super::imports::rust_files;
use super::root;

/// The largest number of marks in 10,000 words.
const BOUND: usize = 40;

/// Words that mark a sentence without an actor, by the first one: any of the others may follow it;
/// without others, the word alone is a mark.
const MARKS: &[(&str, &[&str])] = &[
    (
        "what",
        &[
            "is", "are", "was", "were", "has", "have", "had", "it", "they", "a", "an", "the",
            "there", "this", "that", "one", "comes", "stands", "follows", "depends", "makes",
            "can", "may", "could", "does", "do", "others", "nobody",
        ],
    ),
    ("who", &[]),
    ("whom", &[]),
    ("whoever", &[]),
    ("whose", &[]),
    ("nobody", &[]),
    ("somebody", &[]),
    ("anybody", &[]),
    ("everybody", &[]),
    ("tell", &[]),
    ("tells", &[]),
    ("asked", &[]),
    ("beside", &[]),
    ("besides", &[]),
    ("stand", &[]),
    ("stands", &[]),
    ("stood", &[]),
    ("is", &["told", "no", "none"]),
    ("are", &["told", "no", "none"]),
    ("so", &["many", "much", "few"]),
    ("for", &["ever"]),
    ("by", &["itself", "themselves"]),
];

/// The words of a line, without punctuation.
fn words(line: &str) -> Vec<String> {
    line.split_whitespace()
        .map(|word| {
            word.trim_matches(|c: char| !c.is_alphanumeric())
                .to_lowercase()
        })
        .collect()
}

/// The number of marks in a line.
fn marks(line: &str) -> usize {
    let words = words(line);
    let follows = |at: usize, others: &[&str]| {
        others.is_empty()
            || words
                .get(at + 1)
                .is_some_and(|next| others.contains(&next.as_str()))
    };
    let marked = |at: usize| {
        MARKS
            .iter()
            .any(|(first, others)| words[at] == *first && follows(at, others))
    };
    (0..words.len()).filter(|&at| marked(at)).count()
}

/// The text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']).trim_start())
}

#[test]
fn comments_name_the_actor() {
    let product = |path: &std::path::Path| {
        let path = path.to_string_lossy();
        !path.contains("/testkit/") && !path.contains("/tests/") && !path.ends_with("/tests.rs")
    };
    let files = ["src", "crates"]
        .iter()
        .flat_map(|folder| rust_files(&root().join(folder)))
        .filter(|path| product(path));
    let (mut all, mut marked, mut worst) = (0, 0, Vec::new());
    for path in files {
        let text = fs::read_to_string(&path).expect("readable");
        for (number, line) in text.lines().enumerate() {
            let Some(comment) = comment(line) else {
                continue;
            };
            all += comment.split_whitespace().count();
            let found = marks(comment);
            marked += found;
            if found > 1 {
                worst.push(format!("{}:{}: {comment}", path.display(), number + 1));
            }
        }
    }
    assert!(
        marked * 10_000 <= BOUND * all,
        "{marked} marks in {all} words; the worst lines:\n{}",
        worst.join("\n")
    );
}

#[test]
fn marks_are_found() {
    assert_eq!(marks("What is told to whoever asks."), 3);
    assert_eq!(marks("`Facts::of` computes bounds."), 0);
    assert_eq!(comment("    //! A head."), Some("A head."));
    assert_eq!(comment("let x = 1; // A remark."), None);
}
