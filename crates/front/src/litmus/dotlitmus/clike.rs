//! The C-like dialects of `.litmus` files: initial block and functions.
//!
//! # Invariants
//! - A location is in every region in which some thread declares it. It is atomic if all
//!   declarations make it atomic.
//!
//! # Sources
//! - The published C11 and OpenCL suites and their grammar. The format cannot state memory kinds,
//!   so every location of global memory counts as fine-grained with atomics. A location of local
//!   memory is one object for all work-groups; operations on it have the scope that they state.

use std::collections::HashSet;
use std::ops::Range;

use super::LitmusReader;
use super::cells::{self, WordCursor, skip_space};
use crate::isa::clike::{ClikeCode, Env, TypeWords};
use crate::isa::{Object, SymbolKind};
use crate::litmus::build::CThreadDraft;
use crate::litmus::fronts::language;
use diag::{MappedText, Span};
use program::{GroupSeat, Init, LocId, MemoryKind, Place};

impl LitmusReader<'_> {
    /// Reads `{ [x] = 0; atomic_int y[2] = {0, 0}; 0:r0 = 1; }`. Returns the offset after it.
    pub(super) fn c_init_block(&mut self, open: usize) -> Option<usize> {
        let close = self.closing(open, "initial block")?;
        let mut start = open + 1;
        let mut depth = 0;
        let text = self.clean;
        for (at, c) in text[open + 1..close - 1]
            .char_indices()
            .chain([(close - open - 2, ';')])
        {
            let at = open + 1 + at;
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ';' if depth == 0 => {
                    if !text[start..at].trim().is_empty() {
                        self.c_init_entry(start..at);
                    }
                    start = at + 1;
                }
                _ => {}
            }
        }
        Some(close)
    }

    /// The offset after the brace that closes the one at `open`.
    fn closing(&mut self, open: usize, what: &str) -> Option<usize> {
        let mut depth = 0usize;
        for (at, c) in self.clean[open..].char_indices() {
            match c {
                '{' => depth += 1,
                '}' => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(open + at + 1);
                    }
                }
                _ => {}
            }
        }
        self.fail(open..open + 1, format!("the {what} is not closed"), "`}`")
    }

    fn c_init_entry(&mut self, range: Range<usize>) -> Option<()> {
        let clean = self.clean;
        let expected = "`[x] = 0`, `atomic_int y[2] = {0, 0}` or `0:r0 = 0`";
        let whole = clean[range.clone()].trim();
        let mut at = WordCursor::new(clean, range.clone());
        let mut name = at.token();
        let mut declaration = TypeWords::default();
        // The words before the name form the type; the name is the last word.
        loop {
            let mut ahead = at.clone();
            let next = ahead.token();
            let is_word = |r: &Range<usize>| cells::is_name(&clean[r.clone()]);
            if !is_word(&name) || !(is_word(&next) || &clean[next.clone()] == "*") {
                break;
            }
            if declaration.word(&clean[name.clone()], true).is_err() {
                return self.fail(name, format!("`{whole}` is not an initial value"), expected);
            }
            name = if is_word(&next) { next } else { ahead.token() };
            at = ahead;
        }
        if &clean[name.clone()] == "[" {
            name = at.token();
            if &clean[at.token()] != "]" {
                return self.fail(range, "malformed initial value", expected);
            }
        }
        let mut sign = at.token();
        if &clean[sign.clone()] == ":" {
            return self.initial_register(name, at);
        }
        let mut count = None;
        if &clean[sign.clone()] == "[" {
            count = Some(usize::try_from(self.integer(&mut at)?).unwrap_or(0));
            if &clean[at.token()] != "]" {
                return self.fail(range, "malformed array", expected);
            }
            sign = at.token();
        }
        if !cells::is_name(&clean[name.clone()]) || !matches!(&clean[sign.clone()], "=" | "") {
            return self.fail(name, format!("`{whole}` is not an initial value"), expected);
        }
        let mut values = Vec::new();
        if &clean[sign] == "=" {
            let mut ahead = at.clone();
            if &clean[ahead.token()] == "{" {
                at = ahead;
                loop {
                    values.push(Init::Int(self.integer(&mut at)?));
                    let comma = at.token();
                    match &clean[comma.clone()] {
                        "," => {}
                        "}" => break,
                        _ => return self.fail(comma, "malformed array", "`,` or `}`"),
                    }
                }
            } else {
                values.push(Init::Int(self.integer(&mut at)?));
            }
        }
        let rest = at.token();
        if !rest.is_empty() {
            return self.fail(rest, "malformed initial value", "`;`");
        }
        let most = 1 << 16;
        let count = count.unwrap_or(1).max(values.len()).max(1);
        if count > most {
            return self.fail(
                range,
                "this array is too long",
                &format!("at most {most} elements"),
            );
        }
        values.resize(count, Init::Int(0));
        let span = Span::new(name.start, name.end);
        let kind = SymbolKind::Object(Object {
            init: values,
            ..Object::scalar(0)
        });
        let id = self.symbols.declare(&clean[name], span, kind, self.sink)?;
        if let Some(ty) = declaration.ty {
            self.symbols.access(id, ty, span, self.sink);
        }
        if let Some(object) = self.symbols.object_mut(id) {
            object.boolean = declaration.boolean;
        }
        Some(())
    }

    /// Reads the functions. Returns the offset after the last one.
    pub(super) fn functions(&mut self, start: usize) -> Option<(Vec<CThreadDraft>, usize)> {
        let mut threads: Vec<CThreadDraft> = Vec::new();
        let mut at = skip_space(self.clean, start);
        while at < self.clean.len() && !cells::starts_final_part(&self.clean[at..]) {
            let (thread, end) = self.function(at, threads.len())?;
            threads.push(thread);
            at = skip_space(self.clean, end);
        }
        if threads.is_empty() {
            let here = at.min(self.clean.len());
            return self.fail(
                here..here,
                "there is no program",
                "`P0 (atomic_int* x) { … }`",
            );
        }
        for (number, place, reg) in std::mem::take(&mut self.regs) {
            match threads.get_mut(usize::from(number)) {
                Some(thread) => thread.env.regs.push((reg.name, reg.init, reg.span)),
                None => {
                    self.sink.error(
                        "unknown-thread",
                        place,
                        format!("there is no thread `P{number}`"),
                        |d| d.label("expected a thread of this test"),
                    );
                }
            }
        }
        Some((threads, at))
    }

    /// Reads `P0@wg 0, dev 0 (global atomic_int* x) { … }`.
    fn function(&mut self, start: usize, number: usize) -> Option<(CThreadDraft, usize)> {
        let clean = self.clean;
        let mut at = WordCursor::new(clean, start..clean.len());
        let name = at.token();
        if clean[name.clone()] != format!("P{number}") {
            let message = format!("threads are in order; this one should be `P{number}`");
            return self.fail(
                name,
                message,
                &format!("`P{number} (…) {{ … }}`, or a condition"),
            );
        }
        let mut place = Place::device(0, 0);
        let mut open = at.token();
        if &clean[open.clone()] == "@" {
            loop {
                let key = at.token();
                let value = at.token();
                let Ok(n) = clean[value.clone()].parse::<u32>() else {
                    return self.fail(
                        key.start..value.end,
                        "malformed thread header",
                        "`wg 0` or `dev 0`",
                    );
                };
                match &clean[key.clone()] {
                    "wg" => place.cta = n,
                    "dev" => place.gpu = n,
                    "sg" => place.warp = Some(n),
                    _ => {
                        return self.fail(
                            key,
                            "unknown word in a thread header",
                            "`wg`, `dev` or `sg`",
                        );
                    }
                }
                open = at.token();
                if &clean[open.clone()] != "," {
                    break;
                }
            }
        }
        if &clean[open.clone()] != "(" {
            return self.fail(open, "malformed thread header", "`(` and the parameters");
        }
        let Some(close) = clean[open.end..].find(')').map(|n| open.end + n) else {
            return self.fail(open, "the parameters are not closed", "`)`");
        };
        let mut visible = HashSet::new();
        let mut from = open.end;
        for parameter in clean[open.end..close].split(',') {
            let range = from..from + parameter.len();
            from = range.end + 1;
            if !parameter.trim().is_empty() {
                visible.extend(self.parameter(range));
            }
        }
        let body = skip_space(clean, close + 1);
        if !clean[body..].starts_with('{') {
            return self.fail(
                close..close + 1,
                "this thread has no body",
                "`{` behind the parameters",
            );
        }
        let end = self.closing(body, "body of this thread")?;
        let text = MappedText::verbatim(&clean[body + 1..end - 1], body + 1);
        let unit = ClikeCode::parse(text, language(self.dialect), self.sink);
        let env = Env {
            language: language(self.dialect),
            strict: false,
            capped: false,
            warp: GroupSeat::ALONE,
            block: GroupSeat::ALONE,
            cluster: Vec::new(),
            specials: Vec::new(),
            places_are_registers: false,
            visible: Some(visible),
            regs: Vec::new(),
            host: None,
        };
        let name = clean[name].to_string();
        Some((
            CThreadDraft {
                name,
                place,
                unit: unit.into(),
                of_kernel: false,
                env,
            },
            end,
        ))
    }

    /// Reads `volatile global int* x` and returns the name.
    fn parameter(&mut self, range: Range<usize>) -> Option<String> {
        let clean = self.clean;
        let mut at = WordCursor::new(clean, range.clone());
        let mut declaration = TypeWords::default();
        let mut name = None;
        loop {
            let token = at.token();
            let word = &clean[token.clone()];
            match word {
                "" => break,
                "*" => {
                    let mut next = at.token();
                    // Skips qualifiers of the pointer: `int* restrict x`.
                    while declaration.word(&clean[next.clone()], false).is_ok() && !next.is_empty()
                    {
                        next = at.token();
                    }
                    name = Some(next);
                }
                _ if name.is_some() || !cells::is_name(word) => {
                    return self.fail(
                        token,
                        "malformed parameter",
                        "a parameter such as `atomic_int* x`",
                    );
                }
                _ => {
                    if let Err(near) = declaration.word(word, self.dialect.row().regions) {
                        let span = Span::new(token.start, token.end);
                        self.sink.error(
                            "unknown-type",
                            span,
                            format!("`{word}` is not a type"),
                            |d| {
                                let d = d.label("expected a type such as `atomic_int`");
                                match near {
                                    Some(near) => d.help(format!("did you mean `{near}`?")),
                                    None => d,
                                }
                            },
                        );
                        return None;
                    }
                }
            }
        }
        let (Some(name), Some(ty)) = (
            name.filter(|n| cells::is_name(&clean[n.clone()])),
            declaration.ty,
        ) else {
            return self.fail(
                range,
                "malformed parameter",
                "a parameter such as `atomic_int* x`",
            );
        };
        let span = Span::new(name.start, name.end);
        let text = &clean[name];
        let id = self.symbols.find(text).or_else(|| {
            let kind = SymbolKind::Object(Object::scalar(0));
            self.symbols.declare(text, span, kind, self.sink)
        })?;
        self.symbols.access(id, ty, span, self.sink);
        self.unite(id, &declaration);
        Some(text.to_string())
    }

    /// Combines one thread's declaration of a location with those of the other threads.
    fn unite(&mut self, id: LocId, declaration: &TypeWords) {
        if let Some(object) = self.symbols.object_mut(id) {
            object.atomic = Some(object.atomic.unwrap_or(true) && declaration.atomic);
            object.boolean |= declaration.boolean;
            object.opencl.global |= declaration.global;
            if declaration.global {
                object.kind = MemoryKind::SvmFineAtomic;
            }
            object.opencl.local |= declaration.local;
        }
    }
}
