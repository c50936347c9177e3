//! Source text, spans and diagnostics. Every mistake that a user can fix is reported as a
//! [`Diagnostic`].
//!
//! # Invariants
//! - A [`Span`] is a half-open byte range inside the text of the [`SourceFile`] it travels with.
//! - A diagnostic owns all data needed to print it; it never refers to a global source table.
//! - This crate is a leaf: it does not depend on programs, models or verdicts.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

mod cursor;
pub mod file;
mod line;
mod mapped;
mod render;
mod sink;
mod together;
mod visible;

pub use cursor::{Cursor, MAX_NESTING, Token};
pub use line::{SourceLine, SourceOrigin};
pub use mapped::MappedText;
pub use render::{TextStyle, render};
pub use sink::{ErrorReported, Sink, SinkMark};
pub use together::together;
pub use visible::{harmless, visible, visible_lines};

/// A text with one blank for each run of white space.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A half-open range of byte offsets into one source text.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset one past the last byte.
    pub end: u32,
}

impl Span {
    /// The range `start..end`, in bytes.
    pub fn new(start: usize, end: usize) -> Self {
        Span {
            start: start as u32,
            end: end.max(start) as u32,
        }
    }

    /// The smallest span that contains both.
    pub fn to(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    /// The span moved `by` bytes to the right, for code inside a string of a larger file.
    pub fn shifted(self, by: usize) -> Span {
        Span {
            start: self.start + by as u32,
            end: self.end + by as u32,
        }
    }

    /// The span as a range of `usize`.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A named text: a file, standard input, or a model embedded in the binary.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The name used in messages, usually the path as the user gave it.
    pub name: String,
    /// The whole text. The texts of headers follow that of the file.
    pub text: String,
    /// The headers that the text holds, in order.
    pub headers: Vec<SourceHeader>,
    /// The code that is read in place of the text.
    pub translation: Option<Translation>,
}

/// Code in another language that the text of a file was translated to.
#[derive(Debug, PartialEq, Eq)]
pub struct Translation {
    /// The code, with its places in the text.
    pub code: MappedText,
    /// The lines of a source file that lines of the text were made from.
    pub origins: BTreeMap<u32, SourceOrigin>,
}

/// A header. Its text follows the text of the file that includes it.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceHeader {
    /// The name with which messages name it.
    pub name: String,
    /// The word behind `#include`.
    pub included: String,
    /// Where its text begins.
    pub start: usize,
}

impl SourceFile {
    /// A shared source text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Arc<Self> {
        Arc::new(SourceFile {
            name: name.into(),
            text: text.into(),
            headers: Vec::new(),
            translation: None,
        })
    }

    /// A text with the code that is read in its place.
    pub fn translated(
        name: impl Into<String>,
        text: impl Into<String>,
        translation: Translation,
    ) -> Arc<Self> {
        Arc::new(SourceFile {
            name: name.into(),
            text: text.into(),
            headers: Vec::new(),
            translation: Some(translation),
        })
    }

    /// The lines without their ends and the blanks before these, with their places.
    pub fn lines(&self) -> impl Iterator<Item = (Span, &str)> {
        let whole = self.text.split_inclusive('\n');
        whole.scan(0, |at, whole| {
            let (start, line) = (*at, whole.trim_end());
            *at += whole.len();
            Some((Span::new(start, start + line.len()), line))
        })
    }

    /// The place of the first line.
    pub fn top(&self) -> Span {
        let end = self.text.bytes().position(|b| b == b'\n');
        Span::new(0, end.unwrap_or(self.text.len()))
    }

    /// A source text with its headers: how each is included, its name, and its text.
    pub fn with_headers(
        name: impl Into<String>,
        text: &str,
        headers: &[(String, String, String)],
    ) -> Arc<Self> {
        let mut file = SourceFile {
            name: name.into(),
            text: text.to_owned(),
            headers: Vec::new(),
            translation: None,
        };
        for (included, name, text) in headers {
            if !file.text.ends_with('\n') {
                file.text.push('\n');
            }
            file.headers.push(SourceHeader {
                name: name.clone(),
                included: included.clone(),
                start: file.text.len(),
            });
            file.text.push_str(text);
        }
        Arc::new(file)
    }

    /// The same file with another text, which differs in one place from this one.
    pub fn changed(&self, text: String) -> Arc<Self> {
        let same = self.text.bytes().zip(text.bytes());
        let before = same.take_while(|(old, new)| old == new).count();
        let headers = self.headers.iter().map(|header| SourceHeader {
            name: header.name.clone(),
            included: header.included.clone(),
            start: match header.start <= before {
                true => header.start,
                false => (header.start + text.len()).saturating_sub(self.text.len()),
            },
        });
        Arc::new(SourceFile {
            name: self.name.clone(),
            headers: headers.collect(),
            text,
            // It is one of the text before.
            translation: None,
        })
    }

    /// The file or the header that has a byte offset: its name, and the range of its text.
    pub fn part(&self, offset: usize) -> (&str, std::ops::Range<usize>) {
        let next = self.headers.partition_point(|h| h.start <= offset);
        let end = self.headers.get(next).map_or(self.text.len(), |h| h.start);
        match next.checked_sub(1).map(|at| &self.headers[at]) {
            Some(header) => (&header.name, header.start..end),
            None => (&self.name, 0..end),
        }
    }

    /// Line and column of a byte offset. Both count from 1; columns count characters.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &self.text[self.part(offset).1.start..offset];
        let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        (line, column)
    }
}

/// How bad a diagnostic is. Only [`Severity::Error`] makes an input invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The input cannot be used.
    Error,
    /// The input is used, but probably does not mean what its author intended.
    Warning,
}

/// One message about one place in one source, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable kebab-case identifier, such as `unknown-register`.
    pub id: &'static str,
    /// How bad the problem is.
    pub severity: Severity,
    /// The problem in one line.
    pub message: String,
    /// The text it is about; `None` without one, for example for a missing file.
    pub source: Option<Arc<SourceFile>>,
    /// The offending range in `source`.
    pub span: Span,
    /// Text next to the marked range, such as "expected a register".
    pub label: String,
    /// Further ranges in the same source, each with its text.
    pub secondary: Vec<(Span, String)>,
    /// Further remarks, one line each.
    pub notes: Vec<String>,
    /// Advice for the user.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at `span` of `source`.
    pub fn error(
        id: &'static str,
        source: &Arc<SourceFile>,
        span: Span,
        message: impl Into<String>,
    ) -> Self {
        Diagnostic {
            id,
            severity: Severity::Error,
            message: message.into(),
            source: Some(source.clone()),
            span,
            label: String::new(),
            secondary: Vec::new(),
            notes: Vec::new(),
            help: None,
        }
    }

    /// An error without a place in a text, such as an unreadable file or a bad argument.
    pub fn plain(id: &'static str, message: impl Into<String>) -> Self {
        Diagnostic {
            id,
            severity: Severity::Error,
            message: message.into(),
            source: None,
            span: Span::default(),
            label: String::new(),
            secondary: Vec::new(),
            notes: Vec::new(),
            help: None,
        }
    }

    /// Turns the diagnostic into a warning.
    pub fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// Adds the text next to the marked range.
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }

    /// Attaches an error about a whole file to the statement in another file that requested it.
    pub fn also_at(mut self, source: &Arc<SourceFile>, span: Span) -> Self {
        if self.source.is_none() {
            self.source = Some(source.clone());
            self.span = span;
        }
        self
    }

    /// Adds a secondary range.
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push((span, text.into()));
        self
    }

    /// Adds a remark.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Adds advice for the user.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Adds advice; beside advice that it has, the text becomes a remark.
    pub fn advise_also(&mut self, text: &str) {
        match &self.help {
            None => self.help = Some(text.to_owned()),
            Some(_) => self.notes.push(text.to_owned()),
        }
    }

    /// Adds "did you mean" if one of `candidates` is close to `word`.
    pub fn did_you_mean<'a>(
        self,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        match nearest(word, candidates) {
            Some(best) => self.help(format!("did you mean `{best}`?")),
            None => self,
        }
    }
}

impl fmt::Display for Diagnostic {
    /// One line: `file:line:column: severity: message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        if let Some(source) = &self.source {
            let (line, column) = source.line_column(self.span.start as usize);
            let name = source.part(self.span.start as usize).0;
            write!(f, "{}:{line}:{column}: ", visible(name))?;
        }
        write!(f, "{word}: {}", visible(&self.message))
    }
}

/// "Did you mean" compares at most this many names, so that a large generated file does not delay
/// the message.
const MAX_CANDIDATES: usize = 1000;

/// The candidate closest to `word` by edit distance, if it is close enough to propose. Among
/// equally close ones, the candidate that shares the longest piece with `word` wins.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    let ranked = candidates
        .into_iter()
        .filter(|c: &&str| c.len().abs_diff(word.len()) <= 4 * limit)
        .take(MAX_CANDIDATES)
        .map(|c| (edit_distance(word, c), c));
    // Replacing every character is not a typo.
    let near =
        ranked.filter(|&(d, c)| d <= limit && d < word.chars().count().max(c.chars().count()));
    near.min_by_key(|&(d, c)| (d, Reverse(common_piece(word, c)), c))
        .map(|(_, c)| c)
}

/// The length of the longest common substring of two words, ignoring case.
fn common_piece(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (
        a.to_lowercase().chars().collect(),
        b.to_lowercase().chars().collect(),
    );
    (0..a.len())
        .flat_map(|i| (0..b.len()).map(move |j| (i, j)))
        .map(|(i, j)| {
            a[i..]
                .iter()
                .zip(&b[j..])
                .take_while(|(x, y)| x == y)
                .count()
        })
        .max()
        .unwrap_or(0)
}

/// Edit distance in characters, ignoring case. Swapping two neighbours counts once (optimal string
/// alignment).
fn edit_distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, cb) in b.iter().enumerate() {
            let replaced = row[j] + usize::from(ca != cb);
            let mut best = replaced.min(next[j] + 1).min(row[j + 1] + 1);
            if i > 0 && j > 0 && a[i - 1] == *cb && *ca == b[j - 1] {
                best = best.min(before[j - 1] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_typos_and_leaves_strangers_alone() {
        assert_eq!(nearest("relaxd", ["relaxed", "release"]), Some("relaxed"));
        assert_eq!(nearest("gup", ["gpu", "cta"]), Some("gpu"));
        assert_eq!(nearest("stt", ["set", "st"]), Some("st"));
        assert_eq!(
            nearest("atomic_store", ["atomicOr", "__atomic_store_n"]),
            Some("__atomic_store_n")
        );
        assert_eq!(nearest("x", ["y"]), None);
        assert_eq!(nearest("zzz", ["relaxed", "release"]), None);
    }

    #[test]
    fn lines_and_columns_count_from_one_and_in_characters() {
        let s = SourceFile::new("t", "aé\nb");
        assert_eq!(s.line_column(0), (1, 1));
        assert_eq!(s.line_column(3), (1, 3));
        assert_eq!(s.line_column(4), (2, 1));
        let header = ("h".to_owned(), "dir/h".to_owned(), "x\ny\n".to_owned());
        let s = SourceFile::with_headers("t", "a\nb", &[header]);
        assert_eq!(s.text.as_str(), "a\nb\nx\ny\n");
        assert_eq!((s.part(3).0, s.line_column(3)), ("t", (2, 2)));
        assert_eq!((s.part(4).0, s.line_column(4)), ("dir/h", (1, 1)));
        assert_eq!((s.part(6).0, s.line_column(6)), ("dir/h", (2, 1)));
        let changed = s.changed("a\nbcd\nx\ny\n".to_owned());
        assert_eq!(
            (changed.part(6).0, changed.line_column(6)),
            ("dir/h", (1, 1))
        );
    }
}
