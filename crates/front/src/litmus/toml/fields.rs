//! PTX memory with values of several sizes: `fields` if the test gives them, `bytes` if accesses
//! decide.

use ::toml::de::DeTable;

use super::TestReader;
use super::memory::MBARRIER;
use super::template::TemplateChoice;
use crate::document::{entries, span_of};
use crate::isa::Object;
use crate::isa::ptx::type_named;
use crate::litmus::keys;
use diag::Span;
use program::{Field, Layout, Space, Ty, mbarrier};

/// The unit that code counts in such memory.
const BYTE: Ty = Ty {
    bits: 8,
    signed: false,
};

/// The maximum size of an array given by `bytes`.
const MAX_BYTES: u32 = 262_144;

/// The maximum number of elements of an array in a structure.
const MAX_ELEMENTS: u32 = 65_536;

impl TestReader<'_, '_> {
    /// Reads `fields`; each begins at a multiple of its size, as in C.
    pub(super) fn fields(
        &mut self,
        table: &DeTable<'_>,
        choice: &TemplateChoice,
    ) -> Option<Layout> {
        let given = table.get("fields")?;
        self.alone(table, "fields", &["type", "bytes"]);
        let (mut size, mut align) = (0u32, 1);
        let mut all: Vec<Field> = Vec::new();
        for (name, place, value) in entries(given.get_ref().as_table()?) {
            if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') || name.is_empty() {
                self.sink.error(
                    "bad-name",
                    place,
                    format!("`{name}` cannot be the name of a field"),
                    |d| d.label("expected letters, digits and `_`"),
                );
            }
            let Some(text) = self.text(value, choice) else {
                continue;
            };
            let text = text.as_str();
            let (word, count) = match text.strip_suffix(']').and_then(|rest| rest.split_once('[')) {
                Some((word, count)) => (
                    word.trim(),
                    count
                        .trim()
                        .parse()
                        .ok()
                        .filter(|n| (1..=MAX_ELEMENTS).contains(n)),
                ),
                None => (text.trim(), Some(1)),
            };
            let ty = if word == MBARRIER {
                Some(mbarrier::WORD)
            } else {
                type_named(word)
            };
            let (Some(ty), Some(count)) = (ty, count) else {
                self.sink.error(
                    "unknown-type",
                    span_of(value),
                    format!("`{text}` is not a type of a field"),
                    |d| {
                        let words = keys::TYPES
                            .iter()
                            .copied()
                            .filter(|w| *w == MBARRIER || type_named(w).is_some());
                        d.label(format!(
                            "expected a type, or an array of 1 to {MAX_ELEMENTS}, such as `u32[4]`"
                        ))
                        .did_you_mean(word, words)
                    },
                );
                continue;
            };
            size = size.next_multiple_of(ty.bytes());
            align = align.max(ty.bytes());
            for k in 0..count {
                let index = if text.contains('[') {
                    format!("[{k}]")
                } else {
                    String::new()
                };
                let (path, mbarrier) = (format!(".{name}{index}"), word == MBARRIER);
                all.push(Field {
                    path,
                    offset: size,
                    ty,
                    boolean: false,
                    mbarrier,
                });
                size += ty.bytes();
            }
            if all.len() > MAX_ELEMENTS as usize {
                self.sink.error(
                    "bad-number",
                    span_of(value),
                    format!("a structure has at most {MAX_ELEMENTS} values"),
                    |d| d.label("too many"),
                );
                return None;
            }
        }
        if entries(given.get_ref().as_table()?).is_empty() {
            self.sink.error(
                "empty-list",
                span_of(given),
                "a structure has at least one field",
                |d| d.label("expected a field, such as `data = \"u32\"`"),
            );
        }
        if all.is_empty() {
            return None;
        }
        Some(Layout::record(None, all, size.next_multiple_of(align)))
    }

    pub(super) fn bytes(&mut self, table: &DeTable<'_>, choice: &TemplateChoice) -> Option<u32> {
        let given = table.get("bytes")?;
        self.alone(table, "bytes", &["type", "size"]);
        let count = self.count(table, &["bytes"], choice)?;
        if !(1..=MAX_BYTES).contains(&count) {
            self.sink.error(
                "bad-number",
                span_of(given),
                format!("an array has 1 to {MAX_BYTES} bytes"),
                |d| d.label("expected another size"),
            );
            return Some(1);
        }
        Some(count)
    }

    /// Turns an object into one of bytes, with fields or without.
    pub(super) fn of_bytes(
        &mut self,
        object: &mut Object,
        table: &DeTable<'_>,
        fields: Option<Layout>,
    ) {
        let place = table
            .get("fields")
            .or(table.get("bytes"))
            .map_or(Span::default(), span_of);
        object.ty = Some((BYTE, place));
        object.declared = true;
        object.cut = fields.is_none();
        if fields.as_ref().is_some_and(Layout::has_mbarriers) && object.space != Space::Shared {
            self.sink.error(
                "wrong-space",
                place,
                "an mbarrier object is in shared memory",
                |d| {
                    d.label("expected `space = \"shared\"` with it")
                        .note("PTX ISA 9.4, mbarrier")
                },
            );
        }
        object.fields = fields;
    }

    /// Reports keys that contradict `key`.
    fn alone(&mut self, table: &DeTable<'_>, key: &str, others: &[&str]) {
        for (other, value) in others
            .iter()
            .filter_map(|other| Some((other, table.get(*other)?)))
        {
            let message =
                format!("`{other}` together with `{key}`, which already gives the layout");
            self.sink
                .error("conflicting-keys", span_of(value), message, |d| {
                    d.label("expected one of them")
                });
        }
    }
}
