//! Checks the register of comments and messages: the code acts, and a sentence names its actor.
//!
//! Words such as "what is", "who" or "nobody" mark a sentence without an actor. A few of them are
//! right where they are; many of them make a text that has to be translated.
//!
//! # Invariants
//! - Only the product counts: no tests.
//! - A message is a string literal of at least three words. "There is no model `x`" is plain.

use std::fs;
use std::path::PathBuf;

use super::imports::rust_files;
use super::root;

/// The largest number of marks in 10,000 words of comments.
const BOUND: usize = 40;

/// The largest number of marks in 10,000 words of messages.
const MESSAGE_BOUND: usize = 15;

/// The start of the unit tests in a file of the product.
const UNIT_TESTS: &str = "#[cfg(test)]\nmod tests {";

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

/// The files of the product.
fn product_files() -> impl Iterator<Item = PathBuf> {
    let product = |path: &PathBuf| {
        let path = path.to_string_lossy();
        !path.contains("/testkit/") && !path.contains("/tests/") && !path.ends_with("tests.rs")
    };
    ["src", "crates"]
        .iter()
        .flat_map(|folder| rust_files(&root().join(folder)))
        .filter(product)
}

/// The string literals of a source text without unit tests, each with the number of its line.
fn literals(text: &str) -> Vec<(usize, String)> {
    let mut rest = text.split(UNIT_TESTS).next().unwrap_or_default();
    let (mut all, mut line) = (Vec::new(), 1);
    while let Some(first) = rest.chars().next() {
        let (length, literal) = match token(rest) {
            Some((length, literal)) => (length.min(rest.len()), literal),
            None => (first.len_utf8(), None),
        };
        // A literal that continues on the next line is one text.
        all.extend(literal.map(|text| (line, text.replace("\\\n", " "))));
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    all
}

/// The length of a comment, character or string at the start of a text; the content of a string.
fn token(text: &str) -> Option<(usize, Option<&str>)> {
    if text.starts_with("//") {
        return Some((text.find('\n').unwrap_or(text.len()), None));
    }
    if text.starts_with("'\"'") || text.starts_with("'\\") {
        return Some((3, None));
    }
    if let Some(raw) = text.strip_prefix("r#\"") {
        let end = raw.find("\"#")?;
        return Some((end + "r#\"\"#".len(), Some(&raw[..end])));
    }
    let string = text.strip_prefix('"')?;
    let mut escaped = false;
    let end = string.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    })?;
    Some((end + 2, Some(&string[..end])))
}

/// The counts of a register, and the lines with the most marks.
#[derive(Default)]
struct Register {
    words: usize,
    marks: usize,
    worst: Vec<String>,
}

impl Register {
    /// Counts a text at a place; `most` marks in it are too few to list.
    fn count(&mut self, text: &str, most: usize, place: impl FnOnce() -> String) {
        self.words += text.split_whitespace().count();
        let found = marks(text);
        self.marks += found;
        if found > most {
            self.worst.push(format!("{}: {text}", place()));
        }
    }

    fn check(&self, bound: usize) {
        let Register {
            words,
            marks,
            worst,
        } = self;
        assert!(
            marks * 10_000 <= bound * words,
            "{marks} marks in {words} words; the worst lines:\n{}",
            worst.join("\n")
        );
    }
}

#[test]
fn comments_name_the_actor() {
    let mut register = Register::default();
    for path in product_files() {
        let text = fs::read_to_string(&path).expect("readable");
        for (number, line) in text.lines().enumerate() {
            if let Some(comment) = comment(line) {
                register.count(comment, 1, || format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    register.check(BOUND);
}

#[test]
fn messages_name_the_actor() {
    let mut register = Register::default();
    for path in product_files() {
        let text = fs::read_to_string(&path).expect("readable");
        for (line, literal) in literals(&text) {
            let plain = literal.replace("here is no ", "here is ");
            let plain = plain.replace("here are no ", "here are ");
            if plain.split_whitespace().count() >= 3 {
                register.count(&plain, 0, || format!("{}:{line}", path.display()));
            }
        }
    }
    register.check(MESSAGE_BOUND);
}

#[test]
fn marks_are_found() {
    assert_eq!(marks("What is told to whoever asks."), 3);
    assert_eq!(marks("`Facts::of` computes bounds."), 0);
    assert_eq!(comment("    //! A head."), Some("A head."));
    assert_eq!(comment("let x = 1; // A remark."), None);
}

#[test]
fn literals_are_found() {
    let text =
        "// \"No\".\nlet a = ('\"', '\\'', \"one \\\n    two \\\"\");\nlet b = r#\"a \"b\"\"#;\n";
    let found: Vec<(usize, String)> = literals(text)
        .into_iter()
        .map(|(line, text)| (line, text.split_whitespace().collect::<Vec<_>>().join(" ")))
        .collect();
    assert_eq!(
        found,
        [(2, "one two \\\"".to_owned()), (4, "a \"b\"".to_owned())]
    );
    assert_eq!(literals(&format!("{UNIT_TESTS} \"a\"")), []);
}
