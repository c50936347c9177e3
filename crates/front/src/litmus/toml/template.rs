//! Templates: files that generate several tests.
//!
//! Each `[[axis]]` lists alternative values; every combination is a test. `[[instance]]` lists the
//! tests one by one. Either way, a test is the file with its placeholders `${key}` filled in.
//!
//! # Invariants
//! - Every placeholder is known, and some placeholder uses every given value: a misspelt key is an
//!   error.
//! - If a value does not give a key, the key is empty.
//! - The tests of a file come in order of the file, the first axis changing slowest.

use std::collections::{HashMap, HashSet};

use ::toml::de::{DeTable, DeValue};

use super::strings::map_string;
use crate::document::{Value, entries, span_of};
use diag::{MappedText, Sink, Span};

/// The maximum number of tests in a file.
const MAX_TESTS: usize = 10_000;

/// The values that distinguish one test of a file from the others.
#[derive(Default)]
pub(super) struct TemplateChoice {
    /// The index of the chosen value of each axis.
    pub(super) values: Vec<usize>,
    /// The index of the `[[instance]]`.
    pub(super) instance: Option<usize>,
}

pub(super) struct Axis {
    pub(super) name: String,
    pub(super) values: Vec<AxisValue>,
}

pub(super) struct AxisValue {
    pub(super) name: String,
    pub(super) span: Span,
    /// The text that replaces a placeholder with the axis's name.
    text: MappedText,
    bindings: Vec<(String, Span, MappedText)>,
}

impl AxisValue {
    /// A value that has only a name.
    pub(super) fn named(name: &str) -> AxisValue {
        AxisValue {
            name: name.to_owned(),
            span: Span::default(),
            text: MappedText::default(),
            bindings: Vec::new(),
        }
    }
}

/// All axes and instances of a file.
pub(super) struct Template {
    pub(super) axes: Vec<Axis>,
    instances: Vec<AxisValue>,
    /// All keys that placeholders can use, with the place of the first occurrence.
    keys: HashMap<String, Span>,
    used: HashSet<String>,
}

impl Template {
    pub(super) fn new(root: &DeTable<'_>, file: &str, sink: &mut Sink) -> Template {
        let mut template = Template {
            axes: Vec::new(),
            instances: Vec::new(),
            keys: HashMap::new(),
            used: HashSet::new(),
        };
        for table in tables(root, "axis") {
            let name = text_of(table, "name").unwrap_or_default();
            let span = table.get("name").map_or(Span::default(), span_of);
            if name.is_empty() || template.keys.insert(name.clone(), span).is_some() {
                sink.error(
                    "duplicate-placeholder",
                    span,
                    format!("`${{{name}}}` already has a meaning"),
                    |d| d.label("expected an unused name"),
                );
            }
            // A placeholder for the axis's name is optional.
            template.used.insert(name.clone());
            let values: Vec<AxisValue> = tables(table, "value")
                .into_iter()
                .map(|t| value(t, &["name"], file))
                .collect();
            let mut keys: HashMap<&str, Span> = HashMap::new();
            for (key, span, _) in values.iter().flat_map(|v| &v.bindings) {
                keys.entry(key).or_insert(*span);
            }
            let mut keys: Vec<(&str, Span)> = keys.into_iter().collect();
            keys.sort_by_key(|k| k.1);
            for (key, span) in keys {
                if let Some(first) = template.keys.insert(key.to_string(), span) {
                    sink.error(
                        "duplicate-placeholder",
                        span,
                        format!("`${{{key}}}` already has a meaning"),
                        |d| d.label("given again").also(first, "given here"),
                    );
                }
            }
            if values.is_empty() {
                sink.error(
                    "empty-axis",
                    span,
                    format!("the axis `{name}` has no values"),
                    |d| d.label("a template without values makes no tests"),
                );
            }
            report_equal_names(&values, sink);
            template.axes.push(Axis { name, values });
        }
        for table in tables(root, "instance") {
            let instance = value(table, &["name", "expect"], file);
            for (key, span, _) in &instance.bindings {
                template.keys.entry(key.clone()).or_insert(*span);
            }
            template.instances.push(instance);
        }
        if !template.instances.is_empty() {
            template.keys.entry("name".to_string()).or_default();
            template.used.insert("name".to_string());
        }
        if let (false, Some(instance)) = (template.axes.is_empty(), template.instances.first()) {
            sink.error(
                "conflicting-keys",
                instance.span,
                "a template has axes or instances, not both",
                |d| d.label("this file has `[[axis]]` as well"),
            );
        }
        template
    }

    pub(super) fn choices(&self, sink: &mut Sink) -> Vec<TemplateChoice> {
        if let Some(first_too_many) = self.instances.get(MAX_TESTS) {
            let span = first_too_many.span;
            sink.error(
                "too-many-tests",
                span,
                format!("a template makes at most {MAX_TESTS} tests"),
                |d| d.label("one too many"),
            );
            return Vec::new();
        }
        if !self.instances.is_empty() {
            return (0..self.instances.len())
                .map(|i| TemplateChoice {
                    instance: Some(i),
                    values: Vec::new(),
                })
                .collect();
        }
        let total = self
            .axes
            .iter()
            .try_fold(1usize, |n, a| n.checked_mul(a.values.len()));
        if total.is_none_or(|n| n > MAX_TESTS) {
            let span = self
                .axes
                .first()
                .and_then(|a| a.values.first())
                .map_or(Span::default(), |v| v.span);
            sink.error(
                "too-many-tests",
                span,
                format!("a template makes at most {MAX_TESTS} tests"),
                |d| d.label("the axes have more combinations"),
            );
            return Vec::new();
        }
        let mut picks: Vec<Vec<usize>> = vec![Vec::new()];
        for axis in &self.axes {
            picks = picks
                .into_iter()
                .flat_map(|pick: Vec<usize>| {
                    (0..axis.values.len())
                        .map(move |i| pick.iter().copied().chain([i]).collect::<Vec<_>>())
                })
                .collect();
        }
        picks
            .into_iter()
            .map(|values| TemplateChoice {
                values,
                instance: None,
            })
            .collect()
    }

    /// The chosen values, each with the placeholder key of its name.
    pub(super) fn chosen<'t>(
        &'t self,
        choice: &TemplateChoice,
    ) -> impl Iterator<Item = (&'t str, &'t AxisValue)> {
        let instance = choice.instance.map(|i| ("name", &self.instances[i]));
        let of_axes = self
            .axes
            .iter()
            .zip(&choice.values)
            .map(|(axis, &i)| (axis.name.as_str(), &axis.values[i]));
        instance.into_iter().chain(of_axes)
    }

    /// The text that replaces a placeholder.
    fn bound(&self, choice: &TemplateChoice, key: &str) -> Option<&MappedText> {
        self.chosen(choice).find_map(|(name, value)| {
            let given = value
                .bindings
                .iter()
                .find(|(given, ..)| given == key)
                .map(|(.., text)| text);
            given.or_else(|| (name == key).then_some(&value.text))
        })
    }

    /// The text with its placeholders filled in.
    pub(super) fn fill(
        &mut self,
        text: MappedText,
        choice: &TemplateChoice,
        sink: &mut Sink,
    ) -> MappedText {
        let source = text.as_str();
        if !source.contains("${") {
            return text;
        }
        let mut filled = MappedText::new();
        let mut at = 0;
        while let Some(open) = source[at..].find("${").map(|n| at + n) {
            filled.push_slice(&text, at..open);
            let Some(close) = source[open..].find('}').map(|n| open + n) else {
                sink.error(
                    "unknown-placeholder",
                    text.span(open..open + 2),
                    "this placeholder is not closed",
                    |d| d.label("expected `}` after it"),
                );
                return filled;
            };
            let key = &source[open + 2..close];
            if let Some(value) = self.bound(choice, key) {
                filled.push_slice(value, 0..value.as_str().len());
                self.used.insert(key.to_string());
            } else if self.keys.contains_key(key) {
                self.used.insert(key.to_string());
            } else {
                let mut known: Vec<&str> = self.keys.keys().map(String::as_str).collect();
                known.sort_unstable();
                let span = text.span(open..close + 1);
                sink.error(
                    "unknown-placeholder",
                    span,
                    format!("nothing gives `${{{key}}}` a value"),
                    |d| {
                        if known.is_empty() {
                            d.label("this file has neither `[[axis]]` nor `[[instance]]`")
                        } else {
                            d.label(format!("expected one of {}", known.join(", ")))
                                .did_you_mean(key, known)
                        }
                    },
                );
            }
            at = close + 1;
        }
        filled.push_slice(&text, at..source.len());
        filled
    }

    /// Reports keys that no placeholder used. Call it after filling all texts.
    pub(super) fn report_unused(&self, sink: &mut Sink) {
        let mut unused: Vec<_> = self
            .keys
            .iter()
            .filter(|(k, _)| !self.used.contains(*k))
            .collect();
        unused.sort_unstable();
        for (key, span) in unused {
            sink.error(
                "unused-substitution",
                *span,
                format!("no placeholder `${{{key}}}` uses this"),
                |d| d.label("this key has no effect"),
            );
        }
    }
}

/// The tables in the list `key`.
pub(in crate::litmus) fn tables<'t, 'a>(table: &'t DeTable<'a>, key: &str) -> Vec<&'t DeTable<'a>> {
    match table.get(key).map(Value::get_ref) {
        Some(DeValue::Array(items)) => items
            .iter()
            .filter_map(|i| i.get_ref().as_table())
            .collect(),
        _ => Vec::new(),
    }
}

fn text_of(table: &DeTable<'_>, key: &str) -> Option<String> {
    table
        .get(key)
        .and_then(|v| v.get_ref().as_str())
        .map(str::to_string)
}

fn value(table: &DeTable<'_>, own: &[&str], file: &str) -> AxisValue {
    let other = entries(table).into_iter().filter(|e| !own.contains(&e.0));
    let bindings = other.filter_map(|(key, span, v)| {
        let text = map_string(file, v.span(), v.get_ref().as_str()?);
        Some((key.to_string(), span, text))
    });
    let name = text_of(table, "name").unwrap_or_default();
    let span = table.get("name").map_or(Span::default(), span_of);
    AxisValue {
        text: MappedText::opaque(&name, span),
        name,
        span,
        bindings: bindings.collect(),
    }
}

fn report_equal_names(values: &[AxisValue], sink: &mut Sink) {
    let mut seen: HashMap<&str, Span> = HashMap::new();
    for value in values {
        if let Some(first) = seen.insert(&value.name, value.span) {
            sink.error(
                "duplicate-value",
                value.span,
                format!("two values are called `{}`", value.name),
                |d| d.label("the second one").also(first, "the first one"),
            );
        }
    }
}
