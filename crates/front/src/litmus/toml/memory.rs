//! `[memory]` and `regs`: locations, aliases, initial values.

use std::collections::HashSet;

use ::toml::de::{DeTable, DeValue};

use super::template::TemplateChoice;
use super::{TestReader, integer};
use crate::document::{Value, entries, span_of};
use crate::isa::clike::{declare_pipe, floating_format, is_boolean, type_named as c_type_named};
use crate::isa::ptx::{RegInit, type_named};
use crate::isa::{Object, SymbolKind, Symbols};
use crate::litmus::keys;
use crate::litmus::reading::{ENOUGH, ObjectSize, Reading};
use diag::{MappedText, Span};
use program::{
    Class, Dialect, Init, Layout, LocId, LocationKind, MemoryKind, Program, Proxy, Space, mbarrier,
};

/// An initial value that may name a location declared later.
#[derive(Clone)]
enum InitialValue {
    Int(i64),
    Unknown,
    Address(MappedText),
}

/// The word for memory that begins with any value.
pub(in crate::litmus) const UNKNOWN: &str = "unknown";

/// The type of an mbarrier object.
pub(super) const MBARRIER: &str = "mbarrier";

/// The maximum number of elements of an array given by its size.
const MAX_ELEMENTS: u32 = 65_536;

/// An entry of a table: its name, the place of the name, and its value.
type TableEntry<'t, 'a> = (&'t str, Span, &'t Value<'a>);

/// Puts each further name of memory (`at`) behind the memory that it names.
fn behind_their_objects<'t, 'a>(all: Vec<TableEntry<'t, 'a>>) -> Vec<TableEntry<'t, 'a>> {
    let named = |value: &'t Value<'a>| value.get_ref().as_table()?.get("at")?.get_ref().as_str();
    let mut ordered: Vec<TableEntry<'t, 'a>> = Vec::new();
    let mut early: Vec<TableEntry<'t, 'a>> = Vec::new();
    for entry in all {
        let name = entry.0;
        let is_declared = |of: &str| ordered.iter().any(|known| known.0 == of);
        match named(entry.2) {
            Some(of) if !is_declared(of) => early.push(entry),
            _ => {
                ordered.push(entry);
                let (behind, rest) = early.into_iter().partition(|e| named(e.2) == Some(name));
                ordered.extend::<Vec<_>>(behind);
                early = rest;
            }
        }
    }
    ordered.extend(early);
    ordered
}

impl TestReader<'_, '_> {
    /// Reads the `[memory]` table.
    pub(super) fn memory(&mut self, dialect: Dialect, choice: &TemplateChoice) -> Symbols {
        let mut symbols = Symbols::default();
        let Some(table) = self.root.get("memory").and_then(|v| v.get_ref().as_table()) else {
            return symbols;
        };
        let mut starts: Vec<(LocId, Vec<InitialValue>)> = Vec::new();
        for (name, span, value) in behind_their_objects(entries(table)) {
            if !is_identifier(name) {
                self.sink.error(
                    "bad-name",
                    span,
                    format!("`{name}` cannot be the name of a location"),
                    |d| d.label("expected letters, digits, `_` and `$`, not starting with a digit"),
                );
                continue;
            }
            if let DeValue::Table(t) = value.get_ref()
                && t.contains_key("at")
            {
                if let Some(of) = self.same_address(t, &symbols, choice) {
                    symbols.declare_at(name, span, of, self.sink);
                }
                continue;
            }
            let declared = match value.get_ref() {
                DeValue::Table(t) if t.contains_key("alias") => self
                    .alias(t, &symbols, choice)
                    .map(|kind| (kind, Vec::new())),
                DeValue::Table(t) => Some(self.object(dialect, t, choice)),
                _ => Some((object(1, Space::Global), self.starts(value, choice))),
            };
            let Some((mut kind, values)) = declared else {
                continue;
            };
            self.c_object(dialect, value, &mut kind, choice);
            if let SymbolKind::Object(object) = &mut kind {
                let unknown = values
                    .iter()
                    .any(|value| matches!(value, InitialValue::Unknown));
                let first = if unknown { Init::Unknown } else { Init::Int(0) };
                object.init = vec![first; values.len().max(1)];
            }
            let multimem = self.multimem(value);
            if let Some(id) = symbols.declare(name, span, kind, self.sink) {
                if multimem {
                    symbols.set_multimem(id);
                }
                starts.push((id, values));
                declare_pipe(&mut symbols, id, self.sink);
            }
        }
        for (id, values) in starts {
            let init: Vec<Init> = values
                .into_iter()
                .map(|start| self.first_value(start, id, &symbols))
                .collect();
            let init = self.class_init(&symbols, id, init);
            symbols.set_init(id, init);
        }
        symbols
    }

    /// The sizes of the objects of a form, as far as the file gives them. Of memory that accesses
    /// have divided, none is known.
    pub(super) fn sizes(&mut self, program: &Program, choice: &TemplateChoice) -> Vec<ObjectSize> {
        let memory = self.root.get("memory").and_then(|v| v.get_ref().as_table());
        let mut sizes = Vec::new();
        for (number, location) in program.locations.iter().enumerate() {
            let LocationKind::Object { layout, init, .. } = &location.kind else {
                continue;
            };
            let object = LocId(number as u16);
            let bytes = layout.bytes(init.len());
            let given = memory.and_then(|memory| memory.get(location.name.as_str()));
            let count = match given.map(|value| value.get_ref().as_table()) {
                None => None,
                Some(table) => table.and_then(|table| self.count(table, &["size"], choice)),
            };
            let element = layout.bytes(layout.cells());
            let bytes = match count {
                None => bytes,
                Some(count) if bytes == element * u64::from(count).min(ENOUGH as u64) => {
                    element * u64::from(count)
                }
                Some(_) => continue,
            };
            sizes.push(ObjectSize {
                object,
                bytes,
                of_code: given.is_none(),
            });
        }
        sizes
    }

    /// How many elements an array that is given by its size may have.
    fn most_elements(&self) -> u32 {
        match &self.reading {
            Reading::At(launch) => launch.most_elements as u32,
            Reading::Exact | Reading::Form => MAX_ELEMENTS,
        }
    }

    /// Whether an alias has a multimem address.
    fn multimem(&mut self, value: &Value<'_>) -> bool {
        let table = value.get_ref().as_table();
        let Some((table, given)) = table.and_then(|table| Some((table, table.get("multimem")?)))
        else {
            return false;
        };
        if !table.contains_key("alias") || table.contains_key("proxy") {
            self.sink.error(
                "conflicting-keys",
                span_of(given),
                "this has no multimem address",
                |d| d.label("expected an `alias` without `proxy`, in a test in PTX"),
            );
            return false;
        }
        given.get_ref().as_bool().unwrap_or(false)
    }

    /// The location of which a name is a further name (`at`). Reports an error and returns `None`
    /// if it is not declared before.
    fn same_address(
        &mut self,
        table: &DeTable<'_>,
        symbols: &Symbols,
        choice: &TemplateChoice,
    ) -> Option<LocId> {
        for (key, span, _) in entries(table).into_iter().filter(|(key, ..)| *key != "at") {
            let message = format!("a second name of an address takes no `{key}`");
            self.sink.error("conflicting-keys", span, message, |d| {
                d.label("declare it where the memory is declared")
            });
        }
        self.named_before(table, "at", symbols, choice)
    }

    /// Reads an alias. Reports an error and returns `None` if the aliased name is not declared
    /// before.
    fn alias(
        &mut self,
        table: &DeTable<'_>,
        symbols: &Symbols,
        choice: &TemplateChoice,
    ) -> Option<SymbolKind> {
        for key in ["init", "type", "space", "bytes", "fields", "tensor"] {
            if let Some(value) = table.get(key) {
                let message = format!("an alias takes no `{key}`");
                self.sink
                    .error("conflicting-keys", span_of(value), message, |d| {
                        d.label("declare it where the memory is declared")
                    });
            }
        }
        let proxy = self
            .word(table, "proxy", keys::PROXIES, choice)
            .and_then(Proxy::named)
            .unwrap_or(Proxy::Generic);
        let of = self.named_before(table, "alias", symbols, choice)?;
        Some(SymbolKind::Alias { of, proxy })
    }

    /// The location that a key names; it must be declared before.
    fn named_before(
        &mut self,
        table: &DeTable<'_>,
        key: &str,
        symbols: &Symbols,
        choice: &TemplateChoice,
    ) -> Option<LocId> {
        let target = self.string(table, key, choice)?;
        let name = target.as_str();
        let found = symbols.find(name);
        if found.is_none() {
            let later = self
                .root
                .get("memory")
                .and_then(|m| m.get_ref().as_table())
                .is_some_and(|t| t.contains_key(name));
            let span = target.span(0..name.len());
            let message = match key {
                "alias" => format!("there is no location `{name}` to alias"),
                _ => format!("there is no location `{name}`"),
            };
            self.sink.error("unknown-location", span, message, |d| {
                if later {
                    let what = if key == "alias" {
                        "alias"
                    } else {
                        "further name"
                    };
                    d.label("declared later")
                        .help(format!("move the {what} after the location that it names"))
                } else {
                    d.label("expected a location declared before")
                        .did_you_mean(name, symbols.names())
                }
            });
        }
        found
    }

    fn object(
        &mut self,
        dialect: Dialect,
        table: &DeTable<'_>,
        choice: &TemplateChoice,
    ) -> (SymbolKind, Vec<InitialValue>) {
        if let Some(proxy) = table.get("proxy") {
            self.sink.error(
                "conflicting-keys",
                span_of(proxy),
                "only an alias goes through a proxy",
                |d| d.label("expected `alias` with it"),
            );
        }
        let space = match self.word(table, "space", keys::SPACES, choice) {
            Some("shared") => Space::Shared,
            Some("const") => Space::Constant,
            Some("param") => Space::Param,
            Some("local") => Space::Local,
            _ => Space::Global,
        };
        let mut values = table
            .get("init")
            .map_or(Vec::new(), |v| self.starts(v, choice));
        let record = self.structure(dialect, table, choice);
        let size = self.count(table, &["size"], choice);
        let size = match &self.reading {
            Reading::Exact => size,
            // How large memory is does not matter where the launch is left open.
            Reading::Form => size.map(|size| size.min(ENOUGH as u32)),
            Reading::At(launch) => size.map(|size| size.min(launch.most_elements as u32)),
        };
        let (fields, bytes) = (self.fields(table, choice), self.bytes(table, choice));
        if let Some(fields) = &fields {
            values = self.structures(fields, values, size, table);
        } else if let Some(bytes) = bytes {
            let first = self.of_all_bytes(&values, table);
            values = vec![first; bytes as usize];
        } else if let Some(record) = &record {
            values = self.structures(&record.layout(), values, size, table);
        } else if let Some(size) = size {
            values = self.repeated(values, size, table);
        }
        let tensor = self.tensor(table, choice);
        let mut kind = object(values.len(), space);
        if let SymbolKind::Object(object) = &mut kind {
            object.tensor = tensor.map(Box::new);
        }
        if let SymbolKind::Object(object) = &mut kind
            && (fields.is_some() || bytes.is_some())
        {
            self.of_bytes(object, table, fields);
        } else if let (SymbolKind::Object(object), Some(_)) = (&mut kind, &record) {
            (object.record, object.declared) = (record, true);
        } else if let SymbolKind::Object(object) = &mut kind
            && let Some(class) = self.class(table, choice)
        {
            let span = table.get("type").map_or(Span::default(), span_of);
            if let Some((ty, class)) = class {
                object.ty = Some((ty, span));
                object.class = Some(class);
            }
            let name = self.string(table, "type", choice);
            object.boolean = name.is_some_and(|name| is_boolean(name.as_str()));
            object.declared = true;
        } else if let (SymbolKind::Object(object), Some(word)) =
            (&mut kind, self.word(table, "type", keys::TYPES, choice))
        {
            let span = table.get("type").map_or(Span::default(), span_of);
            object.class = (word == MBARRIER).then_some(Class::Mbarrier);
            let ty = type_named(word).or_else(|| {
                if word == MBARRIER {
                    return Some(mbarrier::WORD);
                }
                let (ty, atomic) = c_type_named(word)?;
                object.atomic = Some(atomic);
                Some(ty)
            });
            object.ty = ty.map(|ty| (ty, span));
            object.boolean = is_boolean(word);
            object.floating = floating_format(word);
            object.declared = true;
        }
        (kind, values)
    }

    /// The initial values of an array with a size: one value for all elements.
    fn repeated(
        &mut self,
        mut values: Vec<InitialValue>,
        size: u32,
        table: &DeTable<'_>,
    ) -> Vec<InitialValue> {
        let span = table.get("size").map_or(Span::default(), span_of);
        if values.len() > 1 {
            let message = "a list of values has its own size";
            self.sink.error("conflicting-keys", span, message, |d| {
                d.label("expected one value with `size`")
            });
            return values;
        }
        if !(1..=self.most_elements()).contains(&size) {
            let message = format!("an array has 1 to {MAX_ELEMENTS} elements");
            self.sink.error("bad-number", span, message, |d| {
                d.label("expected another size")
            });
            return values;
        }
        let first = values.pop().unwrap_or(InitialValue::Int(0));
        vec![first; size as usize]
    }

    /// The initial values of structures: all members, structure after structure, or one structure's
    /// members, repeated `size` times.
    fn structures(
        &mut self,
        layout: &Layout,
        mut values: Vec<InitialValue>,
        size: Option<u32>,
        table: &DeTable<'_>,
    ) -> Vec<InitialValue> {
        let cells = layout.cells();
        if values.is_empty() {
            values = vec![InitialValue::Int(0); cells];
        } else if let [InitialValue::Unknown] = values[..] {
            values = vec![InitialValue::Unknown; cells];
        }
        let count = size.unwrap_or(1).max(1) as usize;
        let span = table
            .get("size")
            .or(table.get("init"))
            .map_or(Span::default(), span_of);
        if size == Some(0) || count.saturating_mul(cells) > MAX_ELEMENTS as usize {
            let message = format!("memory holds 1 to {MAX_ELEMENTS} values");
            self.sink.error("bad-number", span, message, |d| {
                d.label("expected another size")
            });
            return vec![InitialValue::Int(0); cells];
        }
        match values.len() {
            // The values of one structure, repeated.
            n if n == cells => vec![values; count].concat(),
            n if n.is_multiple_of(cells) && size.is_none_or(|_| n == cells * count) => values,
            n => {
                let name = layout.name().unwrap_or("structure");
                self.sink.error(
                    "bad-value",
                    span,
                    format!("{n} values for a `{name}`"),
                    |d| {
                        let paths: Vec<String> = (0..cells as u32)
                            .map(|c| layout.suffix(c, cells))
                            .take(8)
                            .collect();
                        d.label(format!(
                            "expected {cells} for each: `{}`",
                            paths.join("`, `")
                        ))
                    },
                );
                vec![InitialValue::Int(0); cells * count]
            }
        }
    }

    /// The initial value of all bytes of an array; it is cut into cells later.
    fn of_all_bytes(&mut self, values: &[InitialValue], table: &DeTable<'_>) -> InitialValue {
        match values {
            [] | [InitialValue::Int(0)] => InitialValue::Int(0),
            [InitialValue::Unknown] => InitialValue::Unknown,
            _ => {
                let span = table.get("init").map_or(Span::default(), span_of);
                self.sink.error(
                    "conflicting-keys",
                    span,
                    "`init` together with `bytes`",
                    |d| d.label("expected `\"unknown\"`, or nothing: zeros"),
                );
                InitialValue::Int(0)
            }
        }
    }

    /// The initial values given by a value or a list.
    fn starts(&mut self, value: &Value<'_>, choice: &TemplateChoice) -> Vec<InitialValue> {
        match value.get_ref() {
            DeValue::Array(items) => {
                if items.is_empty() {
                    self.sink.error(
                        "empty-list",
                        span_of(value),
                        "an array has at least one element",
                        |d| d.label("expected initial values"),
                    );
                }
                items.iter().map(|item| self.start(item, choice)).collect()
            }
            _ => vec![self.start(value, choice)],
        }
    }

    fn start(&mut self, value: &Value<'_>, choice: &TemplateChoice) -> InitialValue {
        if let DeValue::Integer(_) = value.get_ref() {
            return InitialValue::Int(self.checked_integer(value));
        }
        match self.text(value, choice) {
            Some(text) => self.text_value(text),
            None => InitialValue::Int(0),
        }
    }

    fn checked_integer(&mut self, value: &Value<'_>) -> i64 {
        integer(value.get_ref()).unwrap_or_else(|| {
            self.sink.error(
                "bad-number",
                span_of(value),
                "this integer does not fit 64 bits",
                |d| d.label("expected an integer of at most 64 bits"),
            );
            0
        })
    }

    /// A text as an initial value: `"&x"`, or an integer from a placeholder.
    fn text_value(&mut self, text: MappedText) -> InitialValue {
        let trimmed = text.as_str().trim();
        if trimmed.starts_with('&') {
            return InitialValue::Address(text);
        }
        match trimmed.parse() {
            Ok(value) => InitialValue::Int(value),
            Err(_) if trimmed == UNKNOWN => InitialValue::Unknown,
            Err(_) => {
                let span = text.span(0..text.as_str().len());
                self.sink.error(
                    "bad-value",
                    span,
                    format!("`{trimmed}` is not an initial value"),
                    |d| {
                        d.label(
                            "expected an integer, an address such as \"&x\" or \"&x[1]\", or \
                             \"unknown\"",
                        )
                    },
                );
                InitialValue::Int(0)
            }
        }
    }

    /// Resolves the initial value of an element of an object.
    fn first_value(&mut self, start: InitialValue, of: LocId, symbols: &Symbols) -> Init {
        let span = match &start {
            InitialValue::Address(text) => text.span(0..text.as_str().len()),
            InitialValue::Int(_) | InitialValue::Unknown => Span::default(),
        };
        let init = self.resolve(start, symbols);
        let of_program = |id: LocId| {
            let object = symbols.object(id).1;
            object.kind == MemoryKind::ProgramScope || object.space == Space::Constant
        };
        if let Init::Address { loc, .. } = init
            && symbols.object(of).1.kind == MemoryKind::ProgramScope
            && !of_program(loc)
        {
            let message = format!(
                "the address of `{}` is not a constant",
                symbols.get(loc).name
            );
            self.sink.error("program-scope", span, message, |d| {
                d.label(
                    "expected a number, or the address of another variable at program \
                     scope",
                )
                .note(
                    "memory that the host allocates is not known when the program is built \
                     (OpenCL C, Initialization of Program Scope and Static Variables)",
                )
            });
        }
        init
    }

    fn resolve(&mut self, start: InitialValue, symbols: &Symbols) -> Init {
        let text = match start {
            InitialValue::Int(value) => return Init::Int(value),
            InitialValue::Unknown => return Init::Unknown,
            InitialValue::Address(text) => text,
        };
        let source = text.as_str();
        let begin = source.find('&').map_or(0, |n| n + 1);
        let rest = &source[begin..];
        let name = rest.split(['[', '.']).next().unwrap_or("").trim();
        let at = begin + rest.find(name).unwrap_or(0);
        let suffix: String = rest.trim_start()[name.len()..].split_whitespace().collect();
        let place = text.span(at..at + name.len());
        let Some(loc) = symbols.find(name) else {
            self.sink.error(
                "unknown-location",
                place,
                format!("there is no location `{name}`"),
                |d| {
                    d.label("expected a location")
                        .did_you_mean(name, symbols.names())
                },
            );
            return Init::Int(0);
        };
        let object = symbols.object(loc).1;
        match object.layout().find(&suffix, object.init.len()) {
            Some(index) => Init::Address { loc, index },
            None => {
                let count = symbols.elements(loc);
                let has = if count == 1 {
                    "one element".to_string()
                } else {
                    format!("{count} elements")
                };
                let message = format!("`{name}` has {has}; there is no `{}`", source.trim());
                self.sink.error("out-of-bounds", place, message, |d| {
                    d.label("counted from 0")
                });
                Init::Int(0)
            }
        }
    }

    pub(super) fn regs(
        &mut self,
        table: &DeTable<'_>,
        symbols: &Symbols,
        choice: &TemplateChoice,
    ) -> Vec<RegInit> {
        let Some(regs) = table.get("regs").and_then(|v| v.get_ref().as_table()) else {
            return Vec::new();
        };
        let mut list: Vec<RegInit> = Vec::new();
        let mut set = HashSet::new();
        for (name, span, value) in entries(regs) {
            let bare = name.strip_prefix('%').unwrap_or(name);
            // A part of a kernel's parameter has its offset after the name: `p+8`.
            let (whole, offset) = bare.split_once('+').unwrap_or((bare, "8"));
            let is_offset = !offset.starts_with('0') && offset.parse::<u32>().is_ok();
            if !is_identifier(whole) || !is_offset {
                self.sink.error(
                    "bad-name",
                    span,
                    format!("`{name}` cannot be the name of a register"),
                    |d| d.label("expected letters, digits, `_` and `$`, not starting with a digit"),
                );
                continue;
            }
            if !set.insert(bare) {
                self.sink.error(
                    "duplicate-register",
                    span,
                    format!("register `{bare}` is set twice"),
                    |d| d.label("set again here"),
                );
                continue;
            }
            let start = match self.start(value, choice) {
                InitialValue::Unknown => {
                    self.sink
                        .error("bad-value", span_of(value), "a register has a value", |d| {
                            d.label("expected an integer, or an address such as \"&x\"")
                        });
                    InitialValue::Int(0)
                }
                start => start,
            };
            let mut init = self.resolve(start, symbols);
            if let Reading::At(launch) = &self.reading
                && let Some((_, value)) = launch.arguments.iter().find(|(of, _)| of == name)
            {
                init = Init::Int(*value);
            }
            list.push(RegInit {
                name: bare.to_string(),
                init,
                span,
            });
        }
        list
    }
}

fn object(elements: usize, space: Space) -> SymbolKind {
    let scalar = Object::scalar(0);
    SymbolKind::Object(Object {
        init: vec![Init::Int(0); elements.max(1)],
        space,
        ..scalar
    })
}

/// Whether code can use the name.
pub(in crate::litmus) fn is_identifier(name: &str) -> bool {
    name != "_"
        && name.starts_with(begins_identifier)
        && name
            .chars()
            .all(|c| begins_identifier(c) || c.is_ascii_digit())
}

fn begins_identifier(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '_' | '$')
}
