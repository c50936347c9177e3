//! Reads `.litmus` files, the format of the published suites: a table of instructions with one
//! column per thread (PTX), or a function per thread (C, OpenCL; see [`clike`]).
//!
//! Vulkan is not read; the message says so. The suites' conventions hold: unlisted registers and
//! locations start at 0, and barrier operands are (instance, id, quorum).
//!
//! # Invariants
//! - Comments and strings are replaced by spaces before the reader searches for keywords, so they
//!   can contain every keyword.
//! - Offsets never change: a span in the blanked text is a span in the file.
//!
//! # Sources
//! - The published PTX suite and its grammar; herd7's `(* comments *)`, `locations` clause and
//!   `[x]` in conditions.

use std::collections::HashSet;
use std::ops::Range;

use indexmap::IndexMap;

use super::build::{CThreadDraft, ThreadDraft, build, build_clike};
use super::condition::{self, Resolver, Unknown};
use super::fronts::{Front, Syntax};
use crate::isa::ptx::{PtxCode, PtxEnv, RegInit};
use crate::isa::{Object, SymbolKind, Symbols};
use diag::{MappedText, Sink, Span, one_line};
use program::litmus::{LitmusTest, Observable, Prop, Quantifier};
use program::{Dialect, Init, Place, Proxy};

mod blank;
mod cells;
mod clike;
mod dialect;

use blank::blank;
use cells::{WordCursor, skip_space};
use dialect::{begin, dialect};

/// Threads with parsed code.
enum Threads {
    Ptx(Vec<ThreadDraft>, Vec<PtxCode>),
    CLike(Vec<CThreadDraft>),
}

/// Reads a `.litmus` file. `None`: errors were reported.
pub(super) fn read(sink: &mut Sink) -> Option<LitmusTest> {
    let file = sink.file().clone();
    let dialect = dialect(&file.text, sink)?;
    let front = Front::of(dialect);
    let (clean, strings) = blank(&file.text, matches!(front.syntax, Syntax::C), sink)?;
    let mut reader = LitmusReader {
        text: &file.text,
        clean: &clean,
        dialect,
        sink,
        symbols: Symbols::default(),
        regs: Vec::new(),
    };
    let (name, header_end) = reader.header()?;
    let body = reader.init_block(header_end)?;
    let (threads, end) = match front.syntax {
        Syntax::Ptx => {
            let (threads, units, end) = reader.program(body)?;
            (Threads::Ptx(threads, units), end)
        }
        Syntax::C => {
            let (threads, end) = reader.functions(body)?;
            (Threads::CLike(threads), end)
        }
    };
    let final_part = reader.final_part(end)?;
    let LitmusReader { sink, symbols, .. } = reader;
    let mut program = match threads {
        Threads::Ptx(threads, units) => {
            let env = PtxEnv {
                instance_barriers: true,
                acquiring_red: true,
                ..PtxEnv::default()
            };
            build(dialect, threads, &units, symbols, &env, sink)
        }
        Threads::CLike(threads) => build_clike(dialect, threads, symbols, sink),
    };
    let mut resolver = Resolver::new(&mut program, Unknown::Add);
    let mut prop = |range: &Option<Range<usize>>, sink: &mut Sink| -> Option<Option<Prop>> {
        let Some(range) = range else {
            return Some(None);
        };
        let text = MappedText::verbatim(&clean[range.clone()], range.start);
        condition::parse(&text, &mut resolver, sink).map(Some)
    };
    let filter = prop(&final_part.filter, sink);
    let condition = prop(&final_part.condition, sink);
    let mut observe: Vec<Observable> = Vec::new();
    for range in &final_part.locations {
        let text = MappedText::verbatim(&clean[range.clone()], range.start);
        observe.extend(condition::parse_observable(&text, &mut resolver, sink));
    }
    let condition_span =
        (final_part.condition.as_ref()).map_or(Span::default(), |r| Span::new(r.start, r.end));
    let condition_text = final_part
        .condition
        .map_or(String::new(), |r| one_line(&clean[r]));
    Some(LitmusTest {
        name,
        doc: strings
            .iter()
            .filter(|s| !is_source(s))
            .cloned()
            .collect::<Vec<_>>()
            .join("\n"),
        source: strings
            .iter()
            .filter(is_source)
            .cloned()
            .collect::<Vec<_>>()
            .join(" "),
        tags: Vec::new(),
        file,
        program,
        condition: condition?,
        condition_text,
        condition_span,
        quantifier: final_part.quantifier,
        filter: filter?,
        observe,
        expect: IndexMap::new(),
        options: Vec::new(),
        bound: None,
        runs: Vec::new(),
        launch: None,
    })
}

fn is_source(s: &&String) -> bool {
    s.starts_with("http")
}

struct LitmusReader<'a> {
    text: &'a str,
    /// The text with comments and strings blanked.
    clean: &'a str,
    dialect: Dialect,
    sink: &'a mut Sink,
    symbols: Symbols,
    /// Initial registers: thread number, place in the file, register.
    regs: Vec<(u16, Span, RegInit)>,
}

/// The clauses after the program.
#[derive(Default)]
struct FinalPart {
    filter: Option<Range<usize>>,
    quantifier: Quantifier,
    condition: Option<Range<usize>>,
    locations: Vec<Range<usize>>,
}

impl LitmusReader<'_> {
    fn fail<T>(
        &mut self,
        range: Range<usize>,
        message: impl Into<String>,
        expected: &str,
    ) -> Option<T> {
        let span = Span::new(range.start, range.end);
        self.sink.error("litmus-syntax", span, message, |d| {
            d.label(format!("expected {expected}"))
        });
        None
    }

    /// Reads the name. Returns it with the offset of the initial block's `{`.
    fn header(&mut self) -> Option<(String, usize)> {
        let start = begin(self.text);
        let line_end = self.text[start..]
            .find('\n')
            .map_or(self.text.len(), |n| start + n);
        let line = &self.text[start..line_end];
        let word = line.split_whitespace().next().unwrap_or("");
        let Some(name) = line.split_whitespace().nth(1) else {
            return self.fail(
                start..start + word.len(),
                "the test has no name",
                "the dialect and a name",
            );
        };
        let name_end = start + line.find(name).unwrap_or(0) + name.len();
        match self.clean[name_end..].find('{') {
            Some(n) => Some((name.to_string(), name_end + n)),
            None => self.fail(
                self.text.len()..self.text.len(),
                "there is no initial block",
                "`{`",
            ),
        }
    }

    /// Reads `{ x = 0; … }`. Returns the offset after it.
    fn init_block(&mut self, open: usize) -> Option<usize> {
        if let Syntax::C = Front::of(self.dialect).syntax {
            return self.c_init_block(open);
        }
        let Some(close) = self.clean[open..].find('}').map(|n| open + n) else {
            return self.fail(open..open + 1, "the initial block is not closed", "`}`");
        };
        let mut start = open + 1;
        for entry in self.clean[start..close].split(';') {
            let range = start..start + entry.len();
            start = range.end + 1;
            if !entry.trim().is_empty() {
                self.init_entry(range);
            }
        }
        Some(close + 1)
    }

    /// Reads `x = 0`, `P0:r0 = 0` or `y @ proxy aliases x`. Reports an error and skips the entry if
    /// it has another form.
    fn init_entry(&mut self, range: Range<usize>) -> Option<()> {
        let clean = self.clean;
        let mut at = WordCursor::new(clean, range.clone());
        let first = at.token();
        let name = &clean[first.clone()];
        let expected = "`x = 0`, `P0:r0 = 0` or `y @ proxy aliases x`";
        if !cells::is_name(name) && !cells::is_number(name) {
            return self.fail(
                first,
                format!("`{}` is not an initial value", range_text(clean, &range)),
                expected,
            );
        }
        let second = at.token();
        match &clean[second.clone()] {
            ":" => return self.initial_register(first, at),
            "=" if cells::is_name(name) => {
                let value = self.integer(&mut at)?;
                let kind = SymbolKind::Object(Object::scalar(value));
                self.symbols
                    .declare(name, Span::new(first.start, first.end), kind, self.sink);
            }
            "@" if cells::is_name(name) => {
                let proxy_range = at.token();
                let proxy = &clean[proxy_range.clone()];
                let Some(proxy) = Proxy::named(proxy) else {
                    let message = format!("`{proxy}` is not a proxy");
                    return self.fail(
                        proxy_range,
                        message,
                        "`generic`, `surface`, `texture` or `constant`",
                    );
                };
                let word = at.token();
                if &clean[word.clone()] != "aliases" {
                    return self.fail(word, "malformed alias", "`aliases`");
                }
                let of = at.token();
                let Some(target) = self.symbols.find(&clean[of.clone()]) else {
                    let other = clean[of.clone()].to_string();
                    let known: Vec<&str> = self.symbols.names().collect();
                    let span = Span::new(of.start, of.end);
                    self.sink.error(
                        "unknown-location",
                        span,
                        format!("there is no location `{other}`"),
                        |d| {
                            d.label("expected a location declared before")
                                .did_you_mean(&other, known)
                        },
                    );
                    return None;
                };
                let kind = SymbolKind::Alias { of: target, proxy };
                self.symbols
                    .declare(name, Span::new(first.start, first.end), kind, self.sink);
            }
            _ => return self.fail(second, "malformed initial value", expected),
        }
        let rest = at.token();
        if rest.is_empty() {
            Some(())
        } else {
            self.fail(rest, "malformed initial value", "`;`")
        }
    }

    /// Reads `r0 = 0` after `P0:`.
    fn initial_register(&mut self, first: Range<usize>, mut at: WordCursor<'_>) -> Option<()> {
        let clean = self.clean;
        let name = &clean[first.clone()];
        let register = at.token();
        let equals = at.token();
        let value = self.integer(&mut at)?;
        if !cells::is_name(&clean[register.clone()]) || &clean[equals.clone()] != "=" {
            return self.fail(
                register.start..equals.end,
                "malformed initial register",
                "`P0:r0 = 0`",
            );
        }
        let Some(thread) = name.strip_prefix('P').unwrap_or(name).parse().ok() else {
            return self.fail(
                first,
                format!("`{name}` is not a thread"),
                "a thread such as `P0`",
            );
        };
        let span = Span::new(register.start, register.end);
        let (name, init) = (clean[register].to_string(), Init::Int(value));
        let thread_span = Span::new(first.start, first.end);
        self.regs
            .push((thread, thread_span, RegInit { name, init, span }));
        let rest = at.token();
        if rest.is_empty() {
            Some(())
        } else {
            self.fail(rest, "malformed initial value", "`;`")
        }
    }

    fn integer(&mut self, at: &mut WordCursor<'_>) -> Option<i64> {
        let mut range = at.token();
        let negative = &self.clean[range.clone()] == "-";
        if negative {
            range = range.start..at.token().end;
        }
        let digits: String = self.clean[range.clone()].split_whitespace().collect();
        match digits.parse() {
            Ok(value) => Some(value),
            Err(_) => self.fail(range, format!("`{digits}` is not an integer"), "an integer"),
        }
    }

    /// Reads the table. Returns the threads, their code and the offset after the last row.
    fn program(&mut self, start: usize) -> Option<(Vec<ThreadDraft>, Vec<PtxCode>, usize)> {
        let mut at = skip_space(self.clean, start);
        let Some(end) = self.clean[at..].find(';').map(|n| at + n) else {
            return self.fail(
                at..self.clean.len().min(at + 1),
                "there is no program",
                "`P0@cta 0,gpu 0 | … ;`",
            );
        };
        let mut threads = Vec::new();
        for cell in cells::split(self.clean, at..end) {
            let thread = self.thread_header(cell, threads.len())?;
            threads.push(thread);
        }
        let mut columns = vec![MappedText::new(); threads.len()];
        at = skip_space(self.clean, end + 1);
        while at < self.clean.len() && !cells::starts_final_part(&self.clean[at..]) {
            let Some(end) = self.clean[at..].find(';').map(|n| at + n) else {
                return self.fail(
                    at..self.clean.trim_end().len(),
                    "this row has no end",
                    "`;`",
                );
            };
            let row = cells::split(self.clean, at..end);
            if row.len() != columns.len() {
                let message = format!(
                    "this row has {} cells, the header has {}",
                    row.len(),
                    columns.len()
                );
                self.fail::<()>(at..end, message, "as many cells as threads");
            }
            for (column, cell) in columns.iter_mut().zip(row) {
                let text = self.clean[cell.clone()].replace(['\n', '\r'], " ");
                if !text.trim().is_empty() {
                    column.push_verbatim(&text, cell.start);
                    column.push_opaque("\n", Span::new(cell.end, cell.end));
                }
            }
            at = skip_space(self.clean, end + 1);
        }
        let mut set = HashSet::new();
        for (number, place, reg) in std::mem::take(&mut self.regs) {
            match threads.get_mut(usize::from(number)) {
                Some(thread) if set.insert((number, reg.name.clone())) => thread.regs.push(reg),
                Some(_) => self.sink.error(
                    "duplicate-register",
                    reg.span,
                    "this register is set twice",
                    |d| d.label("set again here"),
                ),
                None => {
                    self.sink.error(
                        "unknown-thread",
                        place,
                        format!("there is no thread `P{number}`"),
                        |d| d.label("expected a thread of the table below"),
                    );
                }
            }
        }
        let units = columns
            .into_iter()
            .map(|text| PtxCode::parse(text, self.sink))
            .collect();
        Some((threads, units, at))
    }

    /// Reads `P0@cta 0,gpu 0`, with `cluster n` and `warp n` as extensions.
    fn thread_header(&mut self, cell: Range<usize>, number: usize) -> Option<ThreadDraft> {
        let clean = self.clean;
        let mut at = WordCursor::new(clean, cell.clone());
        let name = at.token();
        if clean[name.clone()] != format!("P{number}") || &clean[at.token()] != "@" {
            let message = format!("thread headers are in order; this one should be `P{number}@…`");
            return self.fail(cell, message, &format!("`P{number}@cta 0,gpu 0`"));
        }
        let mut place = Place::device(0, 0);
        loop {
            let key = at.token();
            let value_range = at.token();
            let Ok(value) = clean[value_range.clone()].parse::<u32>() else {
                return self.fail(
                    key.start..value_range.end,
                    "malformed thread header",
                    "`cta 0` or `gpu 0`",
                );
            };
            match &clean[key.clone()] {
                "cta" => place.cta = value,
                "gpu" => place.gpu = value,
                "cluster" => place.cluster = Some(value),
                "warp" => place.warp = Some(value),
                _ => return self.fail(key, "unknown word in a thread header", "`cta` or `gpu`"),
            }
            let comma = at.token();
            match &clean[comma.clone()] {
                "," => {}
                "" => break,
                _ => return self.fail(comma, "malformed thread header", "`,`"),
            }
        }
        let name = clean[name].to_string();
        Some(ThreadDraft {
            name,
            place,
            unit: number,
            regs: Vec::new(),
            specials: Vec::new(),
        })
    }

    /// Reads `[locations […]] [filter prop] [quantifier prop] [;]`.
    fn final_part(&mut self, start: usize) -> Option<FinalPart> {
        let mut part = FinalPart::default();
        let mut at = start;
        let end = self.clean.trim_end().len();
        let end = self.clean[..end]
            .strip_suffix(';')
            .map_or(end, str::len)
            .max(at);
        if let Some(rest) = cells::keyword(&self.clean[at..end], "locations") {
            let open = at + rest;
            let list = self.clean[open..end].trim_start();
            let Some(close) = self.clean[open..end]
                .find(']')
                .filter(|_| list.starts_with('['))
            else {
                return self.fail(
                    at..open,
                    "malformed `locations` clause",
                    "`locations [x; P0:r0;]`",
                );
            };
            let mut from = open + self.clean[open..].find('[').unwrap_or(0) + 1;
            for item in self.clean[from..open + close].split(';') {
                if !item.trim().is_empty() {
                    part.locations.push(from..from + item.len());
                }
                from += item.len() + 1;
            }
            at = skip_space(self.clean, open + close + 1).min(end);
        }
        let quantifier = cells::find_quantifier(&self.clean[at..end]);
        let before = quantifier.as_ref().map_or(end, |q| at + q.1.start);
        if let Some(rest) = cells::keyword(&self.clean[at..before], "filter") {
            part.filter = Some(at + rest..before);
        } else if !self.clean[at..before].trim().is_empty() {
            let message = "this is neither a filter nor a quantifier";
            return self.fail(
                at..before,
                message,
                "`exists`, `~exists`, `forall` or `filter`",
            );
        }
        if let Some((kind, words)) = quantifier {
            part.quantifier = kind;
            part.condition = Some(at + words.end..end);
        }
        Some(part)
    }
}

fn range_text<'t>(text: &'t str, range: &Range<usize>) -> &'t str {
    text[range.clone()].trim()
}
