//! Finds the source lines of code from its directives: `#line` names a line of a module, `.file`
//! and `.loc` name a line of a source.
//!
//! # Invariants
//! - All code on one line of the test has the same origin. A line that corresponds to several
//!   places, such as a placeholder's, has no origin.
//! - An inlined line comes after the line of its call, and is marked as inlined. Files outside the
//!   kernel's folder count as a library: of a chain through a library, only the first and the last
//!   line are kept.
//!
//! # Sources
//! - PTX ISA 9.4, *Lexical Elements*: Source Format (`#line`); *Directives*: Debugging Directives
//!   (`.file`, `.loc` with `inlined_at`).
//! - C23 6.10.5: the line after `#line n "file"` is line n of that file.

use std::collections::HashMap;
use std::ops::Range;

use super::lex::{PtxToken, lex};
use diag::{MappedText, Sink, SourceOrigin, Token};

/// The origins of each line of the test.
#[derive(Clone, Debug, Default)]
pub(super) struct Origins(HashMap<u32, Vec<SourceOrigin>>);

/// The numbers of a file, a line and a column.
type Spot = [i64; 3];

/// The text between quotation marks.
pub(super) fn unquoted(text: &str) -> &str {
    text.trim_matches('"')
}

/// The number and the name in a `.file` directive, from its operands.
pub(super) fn file<'a>(text: &'a str, operands: &[Token<PtxToken>]) -> Option<(i64, &'a str)> {
    match operands {
        [
            Token {
                kind: PtxToken::Int(number),
                ..
            },
            Token {
                kind: PtxToken::Str,
                range,
            },
            ..,
        ] => Some((*number, unquoted(&text[range.clone()]))),
        _ => None,
    }
}

/// The numbers of the files in the `.loc` directives of a text.
pub(crate) fn files_named(text: &str) -> Vec<i64> {
    let tokens = lex(text);
    tokens
        .windows(2)
        .filter(|words: &&[Token<PtxToken>]| {
            words[0].kind == PtxToken::Word && &text[words[0].range.clone()] == ".loc"
        })
        .filter_map(|words: &[Token<PtxToken>]| {
            if let PtxToken::Int(file) = words[1].kind {
                Some(file)
            } else {
                None
            }
        })
        .collect()
}

impl Origins {
    /// Reads the directives of a text.
    pub(super) fn read(text: &MappedText, sink: &Sink) -> Origins {
        let all = text.as_str();
        if !all.contains("#line") && !all.contains(".loc") {
            return Origins::default();
        }
        let word = |range: &Range<usize>| &all[range.clone()];
        let tokens = lex(all);
        let lines: Vec<&[Token<PtxToken>]> =
            tokens.split(|t| t.kind == PtxToken::Newline).collect();
        let directive = |line: &[Token<PtxToken>], name: &str| {
            line.first()
                .is_some_and(|first| first.kind == PtxToken::Word && word(&first.range) == name)
        };
        let files = lines
            .iter()
            .filter(|line| directive(line, ".file"))
            .filter_map(|line| file(all, &line[1..]));
        let files: HashMap<i64, &str> = files.collect();
        let mut found = Origins::default();
        let mut inlined: HashMap<Spot, Spot> = HashMap::new();
        // The module's line from the last `#line`, and the source lines from the last `.loc`.
        let mut module: Option<(usize, u32, &str)> = None;
        let mut source: Vec<SourceOrigin> = Vec::new();
        let (mut at, mut counted) = (0, 0);
        for line in lines {
            let Some(first) = line.first() else { continue };
            at += all[counted..first.range.start].matches('\n').count();
            counted = first.range.start;
            if let Some((number, name)) = line_directive(all, line) {
                (module, source) = (Some((at + 1, number, name)), Vec::new());
                continue;
            }
            if directive(line, ".loc") {
                let Some(spot) = numbers(&line[1..]) else {
                    continue;
                };
                let by = line
                    .iter()
                    .position(|t| t.kind == PtxToken::Word && word(&t.range) == "inlined_at");
                if let Some(caller) = by.and_then(|by| numbers(&line[by + 1..])) {
                    inlined.insert(spot, caller);
                }
                source = chain(spot, &inlined, &files);
                continue;
            }
            let of_module = module.map(|(from, number, name)| SourceOrigin {
                file: name.to_owned(),
                line: number.saturating_add((at - from) as u32),
                inlined: false,
            });
            let origin: Vec<SourceOrigin> = source.iter().cloned().chain(of_module).collect();
            let here = sink.line(text.span(first.range.clone()).start);
            let known = found.0.entry(here).or_insert_with(|| origin.clone());
            if *known != origin {
                known.clear();
            }
        }
        found
    }

    /// The origins of a line of the test.
    pub(super) fn of(&self, line: u32) -> Vec<SourceOrigin> {
        self.0.get(&line).cloned().unwrap_or_default()
    }
}

fn numbers(tokens: &[Token<PtxToken>]) -> Option<Spot> {
    tokens
        .get(..3)?
        .iter()
        .map(|t: &Token<PtxToken>| {
            if let PtxToken::Int(n) = t.kind {
                Some(n)
            } else {
                None
            }
        })
        .collect::<Option<Vec<_>>>()?
        .try_into()
        .ok()
}

/// The line and the file in `#line 17 "k.ptx"`.
fn line_directive<'a>(text: &'a str, line: &[Token<PtxToken>]) -> Option<(u32, &'a str)> {
    match line {
        [
            hash,
            word,
            Token {
                kind: PtxToken::Int(number),
                ..
            },
            Token {
                kind: PtxToken::Str,
                range,
            },
        ] if hash.kind == PtxToken::Punct('#') && &text[word.range.clone()] == "line" => {
            Some((u32::try_from(*number).ok()?, unquoted(&text[range.clone()])))
        }
        _ => None,
    }
}

/// A line of a source with the lines that it is inlined at, the kernel's first.
fn chain(
    spot: Spot,
    inlined: &HashMap<Spot, Spot>,
    files: &HashMap<i64, &str>,
) -> Vec<SourceOrigin> {
    let mut spots = vec![spot];
    while let Some(caller) = spots
        .last()
        .and_then(|spot| inlined.get(spot))
        .filter(|caller| !spots.contains(caller))
    {
        spots.push(*caller);
    }
    fn folder(file: &str) -> usize {
        file.rfind(['/', '\\']).map_or(0, |at| at + 1)
    }
    let named = |spot: &Spot| files.get(&spot[0]).copied();
    let Some(kernel) = spots.last().and_then(named) else {
        return Vec::new();
    };
    let own = |file: &&str| file.starts_with(&kernel[..folder(kernel)]) && !file.contains("..");
    let mut lines: Vec<(&str, u32, bool)> = Vec::new();
    for spot in spots.iter().rev() {
        let line = named(spot).zip(u32::try_from(spot[1]).ok().filter(|line| *line > 0));
        let line = line.map(|(file, line)| (file, line, file == kernel || own(&file)));
        lines.extend(line.filter(|line| lines.last() != Some(line)));
    }
    let count = lines.len();
    (0..count)
        .filter(|at: &usize| lines[*at].2 || *at == 0 || lines[*at - 1].2 || at + 1 == count)
        .map(|at: usize| SourceOrigin {
            file: lines[at].0.to_owned(),
            line: lines[at].1,
            inlined: at > 0,
        })
        .collect()
}
