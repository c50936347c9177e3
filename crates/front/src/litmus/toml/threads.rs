//! `[[thread]]` and `[kernel]`: the threads, their code and their places.

use std::collections::HashSet;

use ::toml::de::{DeTable, DeValue};

use super::memory::is_identifier;
use super::template::{TemplateChoice, tables};
use super::{TestReader, integer};
use crate::document::span_of;
use crate::isa::Symbols;
use crate::isa::ptx::{PtxCode, RegInit};
use crate::litmus::build::ThreadDraft;
use crate::litmus::fronts::Front;
use crate::litmus::places::{MAX_THREADS, special_registers};
use crate::litmus::reading::Reading;
use diag::Span;
use program::{Dialect, Init, Place, SCOPE_ROWS, Scope};

impl TestReader<'_, '_> {
    /// The threads of the kernel, followed by the listed ones.
    pub(super) fn threads(
        &mut self,
        dialect: Dialect,
        symbols: &Symbols,
        choice: &TemplateChoice,
    ) -> (Vec<ThreadDraft>, Vec<PtxCode>) {
        let mut threads = Vec::new();
        let mut units = Vec::new();
        if let Some(kernel) = self.root.get("kernel").and_then(|v| v.get_ref().as_table()) {
            self.kernel(dialect, kernel, symbols, choice, &mut threads, &mut units);
        }
        let first = threads.len();
        self.each_thread(dialect, first, choice, |reader, table, name, place| {
            let regs = reader.regs(table, symbols, choice);
            // All CTAs of a cluster start at the same time.
            let apart = |t: &&ThreadDraft| {
                t.place.launched != place.launched && t.place.same(&place, Scope::Cluster)
            };
            if let Some(other) = threads.iter().find(apart) {
                let key = table
                    .get("launched")
                    .or_else(|| table.get("code"))
                    .map_or(Span::default(), span_of);
                let message = format!(
                    "`{name}` and `{}` are of one cluster or CTA, and one is launched",
                    other.name
                );
                reader.sink.error("conflicting-keys", key, message, |d| {
                    d.label("expected `launched = true` for all threads of a cluster, or for none")
                });
            }
            if let Some(code) = reader.string(table, "code", choice) {
                units.push(PtxCode::parse(code, reader.sink));
                threads.push(ThreadDraft {
                    name,
                    place,
                    unit: units.len() - 1,
                    regs,
                    specials: Vec::new(),
                });
            }
        });
        (threads, units)
    }

    /// Calls `f` for every `[[thread]]` with its name and place. The first thread gets the number
    /// `first`.
    pub(super) fn each_thread(
        &mut self,
        dialect: Dialect,
        first: usize,
        choice: &TemplateChoice,
        mut f: impl FnMut(&mut Self, &DeTable<'_>, String, Place),
    ) {
        let mut names = HashSet::new();
        let list = tables(self.root, "thread");
        if let Some(extra) = list.get(MAX_THREADS.saturating_sub(first)) {
            let span = extra.get("code").map_or(Span::default(), span_of);
            self.too_many(span);
            return;
        }
        for (number, table) in (first..).zip(list) {
            let place = self.place(dialect, table, number, choice);
            let name = match self.string(table, "name", choice) {
                None => format!("P{number}"),
                Some(text) => {
                    let span = text.span(0..text.as_str().len());
                    self.check_name(text.as_str(), number, span, &mut names);
                    text.as_str().to_string()
                }
            };
            f(self, table, name, place);
        }
    }

    fn check_name(&mut self, name: &str, number: usize, span: Span, names: &mut HashSet<String>) {
        let other = name
            .strip_prefix('P')
            .and_then(|n| n.parse::<usize>().ok())
            .filter(|n| *n != number);
        if !is_identifier(name) {
            self.sink.error(
                "bad-name",
                span,
                format!("`{name}` cannot be the name of a thread"),
                |d| d.label("expected letters, digits and `_`, not starting with a digit"),
            );
        } else if !names.insert(name.to_string()) {
            self.sink.error(
                "duplicate-thread",
                span,
                format!("two threads are called `{name}`"),
                |d| d.label("the second one"),
            );
        } else if let Some(other) = other {
            self.sink.error(
                "bad-name",
                span,
                format!("`{name}` would be the name of thread number {other}"),
                |d| d.label(format!("this is thread number {number}")),
            );
        }
    }

    /// Reads a number that may have any of several key names.
    pub(super) fn count(
        &mut self,
        table: &DeTable<'_>,
        names: &[&str],
        choice: &TemplateChoice,
    ) -> Option<u32> {
        let mut given = names.iter().filter_map(|n| Some((*n, table.get(*n)?)));
        let (name, value) = given.next()?;
        if let Some((other, place)) = given.next() {
            let message = format!("`{other}` and `{name}` mean the same");
            let first = span_of(value);
            self.sink
                .error("conflicting-keys", span_of(place), message, |d| {
                    d.label("expected one of them").also(first, "the other one")
                });
        }
        let number = match value.get_ref() {
            DeValue::Integer(_) => integer(value.get_ref()).and_then(|n| u32::try_from(n).ok()),
            _ => self
                .text(value, choice)
                .and_then(|t| t.as_str().trim().parse().ok()),
        };
        // The check of keys has already reported negative numbers and values of other kinds.
        let reported = match value.get_ref() {
            DeValue::Integer(i) => i.as_str().starts_with('-'),
            DeValue::String(_) => false,
            _ => true,
        };
        if number.is_none() && !reported {
            self.sink.error(
                "bad-number",
                span_of(value),
                format!("`{name}` is not the number of a group"),
                |d| d.label("expected an integer of at most 32 bits"),
            );
        }
        number
    }

    fn place(
        &mut self,
        dialect: Dialect,
        table: &DeTable<'_>,
        number: usize,
        choice: &TemplateChoice,
    ) -> Place {
        let mut place = Place::device(0, 0);
        let mut is_placed = false;
        for level in SCOPE_ROWS.iter().rev().map(|row| row.scope) {
            let number = self.count(table, &Dialect::keys(level), choice);
            is_placed |= number.is_some();
            place.set_group(level, number);
        }
        let domain = self.count(table, &["domain"], choice);
        let kernel = self.count(table, &["kernel"], choice);
        if let (Some(value), true) = (table.get("kernel"), !Front::of(dialect).ranges) {
            let message = format!("threads of the dialect `{dialect}` have no `kernel`");
            self.sink
                .error("conflicting-keys", span_of(value), message, |d| {
                    d.label("only OpenCL asks to which kernel instance a work-item belongs")
                });
        }
        let host = table
            .get("host")
            .and_then(|v| v.get_ref().as_bool())
            .unwrap_or(false);
        if host && (is_placed || domain.is_some() || kernel.is_some()) {
            let span = table.get("host").map_or(Span::default(), span_of);
            self.sink.error(
                "conflicting-keys",
                span,
                "a host thread is on no GPU and in no CTA",
                |d| d.label("expected no place with it"),
            );
        }
        // A host thread gets a separate device, with a number far above those that tests use.
        let own_device = u32::MAX - u32::try_from(number).unwrap_or(0);
        Place {
            gpu: if host { own_device } else { place.gpu },
            domain: domain.unwrap_or(0),
            kernel: kernel.unwrap_or(0),
            host,
            launched: table
                .get("launched")
                .and_then(|v| v.get_ref().as_bool())
                .unwrap_or(false),
            ..place
        }
    }

    /// Adds the threads of a kernel: one code; they differ in their place and in their special
    /// registers.
    fn kernel(
        &mut self,
        dialect: Dialect,
        table: &DeTable<'_>,
        symbols: &Symbols,
        choice: &TemplateChoice,
        threads: &mut Vec<ThreadDraft>,
        units: &mut Vec<PtxCode>,
    ) {
        let grid = self.grid(dialect, table, choice);
        let regs = self.regs(table, symbols, choice);
        let Some(code) = self.code(table, choice) else {
            return;
        };
        if grid.is_empty() {
            return;
        }
        units.push(PtxCode::parse(code, self.sink));
        for (at, place) in grid {
            let mut specials = special_registers(at);
            let mut regs = regs.clone();
            if let Reading::Form = self.reading {
                regs.extend(specials.drain(..).map(|(name, value)| RegInit {
                    name,
                    init: Init::Int(value),
                    span: Span::default(),
                }));
            }
            let name = format!("P{}", threads.len());
            threads.push(ThreadDraft {
                name,
                place,
                unit: units.len() - 1,
                regs,
                specials,
            });
        }
    }
}
