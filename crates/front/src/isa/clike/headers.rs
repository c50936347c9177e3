//! Puts the headers of a source file in the place of their `#include`.
//!
//! # Invariants
//! - Spans of a header's text are those of the header, whose text stands behind that of the file.
//! - A header with `#pragma once` comes once. Guards of the preprocessor have their own effect.
//!
//! # Sources
//! - C11, 6.10.2, *Source file inclusion*.

use std::collections::HashSet;

use super::preprocess::{is_of_language, is_of_samples};
use diag::{MappedText, SourceFile};

/// Headers inside of each other.
const DEEPEST: usize = 32;

/// The text of a file with its headers, or the code that it was translated to.
pub fn with_headers(file: &SourceFile) -> MappedText {
    if let Some(translation) = &file.translation {
        return translation.code.clone();
    }
    let mut out = MappedText::new();
    let mut once = HashSet::new();
    include(file, 0, 0, &mut once, &mut out);
    out
}

/// The names in `#include "name"` and `#include <name>` of a text, in order.
pub fn included(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(name_of)
}

/// The name in a line `#include "name"` or `#include <name>`.
fn name_of(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start();
    let rest = rest.strip_prefix("include")?.trim_start();
    let (rest, end) = match rest.strip_prefix('"') {
        Some(rest) => (rest, '"'),
        None => (rest.strip_prefix('<')?, '>'),
    };
    let name = rest.split_once(end)?.0;
    let known = (end == '>' && is_of_language(name)) || is_of_samples(name);
    (!known).then_some(name)
}

/// Appends the part of the file that begins at `start`.
fn include(
    file: &SourceFile,
    start: usize,
    depth: usize,
    once: &mut HashSet<usize>,
    out: &mut MappedText,
) {
    let part = file.part(start).1;
    let text = &file.text[part.clone()];
    if text.lines().any(is_once) {
        once.insert(start);
    }
    let mut at = part.start;
    for line in text.split_inclusive('\n') {
        let header = name_of(line).and_then(|name| {
            let found = file.headers.iter().find(|header| header.included == name);
            found.filter(|_| depth < DEEPEST)
        });
        match header {
            Some(header) => {
                if !once.contains(&header.start) {
                    include(file, header.start, depth + 1, once, out);
                }
                out.push_verbatim("\n", at + line.len() - 1);
            }
            None => out.push_verbatim(line, at),
        }
        at += line.len();
    }
}

/// `#pragma once`
fn is_once(line: &str) -> bool {
    let rest = line.trim_start().strip_prefix('#');
    let rest = rest.and_then(|rest| rest.trim_start().strip_prefix("pragma"));
    rest.is_some_and(|rest| rest.trim() == "once")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_stand_where_they_are_included() {
        let header = |name: &str, text: &str| (name.to_owned(), name.to_owned(), text.to_owned());
        let all = [
            header("a.h", "#pragma once\n#include \"b.h\"\nint a;\n"),
            header("b.h", "int b;\n"),
        ];
        let text = "#include \"a.h\"\n# include \"a.h\"\n#include \"c.h\"\nint m;\n";
        let file = SourceFile::with_headers("m.cu", text, &all);
        let made = with_headers(&file);
        let lines: Vec<&str> = made
            .as_str()
            .lines()
            .filter(|line| !line.is_empty())
            .collect();
        let expected = [
            "#pragma once",
            "int b;",
            "int a;",
            "#include \"c.h\"",
            "int m;",
        ];
        assert_eq!(lines, expected);
        let at = made.as_str().find("int b").unwrap_or(0);
        let span = made.span(at..at + 5);
        let place = (
            file.part(span.start as usize).0,
            file.line_column(span.start as usize),
        );
        assert_eq!(place, ("b.h", (1, 1)));
    }
}
