//! Checks TOML documents against a table of their keys: unknown keys, missing keys, values of the
//! wrong kind.
//!
//! The readers can then ignore values that do not fit, since this module has already reported them.

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};

use diag::{Sink, Span};

/// One key of a table.
#[derive(Clone, Copy)]
pub(crate) struct TableKey {
    pub(crate) name: &'static str,
    pub(crate) shape: ValueShape,
    pub(crate) required: bool,
    pub(crate) doc: &'static str,
}

/// The form of a value.
#[derive(Clone, Copy)]
pub(crate) enum ValueShape {
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of these types, or the name of a class of CUDA C++, such as `cuda::atomic<int>`, or of a
    /// structure that the code defines.
    Type(&'static [&'static str]),
    /// An integer that is not negative. In templates, also a string that expands to one.
    Count,
    Integer,
    Bool,
    List(&'static ValueShape),
    /// A table with exactly these keys.
    Table(&'static [TableKey]),
    /// A table with these keys, and any others of the given shape.
    Open(&'static [TableKey], &'static ValueShape),
    OneOf(&'static [ValueShape]),
}

pub(crate) const fn key(name: &'static str, shape: ValueShape, doc: &'static str) -> TableKey {
    TableKey {
        name,
        shape,
        required: false,
        doc,
    }
}

pub(crate) const fn required(name: &'static str, shape: ValueShape, doc: &'static str) -> TableKey {
    TableKey {
        name,
        shape,
        required: true,
        doc,
    }
}

/// A value with its place.
pub(crate) type Value<'a> = Spanned<DeValue<'a>>;

/// The place of a value or key.
pub(crate) fn span_of<T>(value: &Spanned<T>) -> Span {
    let range = value.span();
    Span::new(range.start, range.end)
}

/// The entries of a table in file order.
pub(crate) fn entries<'t, 'a>(table: &'t DeTable<'a>) -> Vec<(&'t str, Span, &'t Value<'a>)> {
    let mut all: Vec<_> = table
        .iter()
        .map(|(k, v)| (k.get_ref().as_ref(), span_of(k), v))
        .collect();
    all.sort_by_key(|e| e.1);
    all
}

/// Parses a file as TOML. Reports syntax errors; a file that has some is not read further.
pub(crate) fn parse<'t>(text: &'t str, sink: &mut Sink) -> Option<Spanned<DeTable<'t>>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    // If the ending is not `.toml`, the file is probably not TOML: one error is enough to say so.
    let name = &sink.file().name;
    let shown = if name.ends_with(".toml") || name.starts_with('<') {
        errors.len()
    } else {
        1
    };
    for error in errors.iter().take(shown) {
        let range = error.span().unwrap_or(0..0);
        sink.error(
            "toml-syntax",
            Span::new(range.start, range.end),
            "this is not TOML",
            |d| d.label(error.message().to_string()),
        );
    }
    errors.is_empty().then_some(document)
}

/// Checks a table against its keys, and against `open` for all other keys.
pub(crate) fn table(
    table: &DeTable<'_>,
    at: Span,
    keys: &[TableKey],
    open: Option<&ValueShape>,
    what: &str,
    sink: &mut Sink,
) {
    for (name, span, value) in entries(table) {
        match (keys.iter().find(|k| k.name == name), open) {
            (Some(key), _) => check(value, &key.shape, name, sink),
            (None, Some(shape)) => check(value, shape, name, sink),
            (None, None) => {
                let names: Vec<&str> = keys.iter().map(|k| k.name).collect();
                sink.error(
                    "unknown-key",
                    span,
                    format!("{what} has no key `{name}`"),
                    |d| {
                        let d = d
                            .label("unknown key")
                            .did_you_mean(name, names.iter().copied());
                        if d.help.is_some() {
                            d
                        } else {
                            d.help(format!("known keys: {}", names.join(", ")))
                        }
                    },
                );
            }
        }
    }
    for key in keys
        .iter()
        .filter(|k| k.required && !table.contains_key(k.name))
    {
        sink.error(
            "missing-key",
            at,
            format!("{what} has no `{}`", key.name),
            |d| d.label(format!("`{}` is needed: {}", key.name, key.doc)),
        );
    }
}

/// Whether a value is of the kind that a shape requires, ignoring its contents.
fn outer_fits(value: &DeValue<'_>, shape: &ValueShape) -> bool {
    match shape {
        ValueShape::Text | ValueShape::Word(_) | ValueShape::Type(_) => {
            matches!(value, DeValue::String(_))
        }
        ValueShape::Count => match value {
            DeValue::Integer(i) => !i.as_str().starts_with('-'),
            DeValue::String(s) => s.contains("${"),
            _ => false,
        },
        ValueShape::Integer => matches!(value, DeValue::Integer(_)),
        ValueShape::Bool => matches!(value, DeValue::Boolean(_)),
        ValueShape::List(_) => matches!(value, DeValue::Array(_)),
        ValueShape::Table(_) | ValueShape::Open(..) => matches!(value, DeValue::Table(_)),
        ValueShape::OneOf(shapes) => shapes.iter().any(|s| outer_fits(value, s)),
    }
}

fn describe(shape: &ValueShape) -> String {
    match shape {
        ValueShape::Text => "a string".to_string(),
        ValueShape::Word(words) | ValueShape::Type(words) => format!("one of {}", words.join(", ")),
        ValueShape::Count => "an integer that is not negative".to_string(),
        ValueShape::Integer => "an integer".to_string(),
        ValueShape::Bool => "true or false".to_string(),
        ValueShape::List(ValueShape::Table(_) | ValueShape::Open(..)) => {
            "a list of tables".to_string()
        }
        ValueShape::List(_) => "a list".to_string(),
        ValueShape::Table(_) | ValueShape::Open(..) => "a table".to_string(),
        ValueShape::OneOf(shapes) => shapes.iter().map(describe).collect::<Vec<_>>().join(" or "),
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(i) if i.as_str().starts_with('-') => "a negative integer",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a floating-point number",
        DeValue::Boolean(_) => "a truth value",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn check(value: &Value<'_>, shape: &ValueShape, name: &str, sink: &mut Sink) {
    let span = span_of(value);
    if !outer_fits(value.get_ref(), shape) {
        let expected = describe(shape);
        sink.error(
            "wrong-type",
            span,
            format!("`{name}` is {}", kind(value.get_ref())),
            |d| d.label(format!("expected {expected}")),
        );
        return;
    }
    match (value.get_ref(), shape) {
        // Other words may name classes, or structures that the code defines.
        (DeValue::String(_), ValueShape::Type(_)) => {}
        (DeValue::String(s), ValueShape::Word(words))
            if !s.contains("${") && !words.contains(&s.as_ref()) =>
        {
            sink.error(
                "unknown-word",
                span,
                format!("`{name}` cannot be `{s}`"),
                |d| {
                    d.label(format!("expected one of {}", words.join(", ")))
                        .did_you_mean(s, words.iter().copied())
                },
            );
        }
        (DeValue::Array(items), ValueShape::List(inner)) => {
            items.iter().for_each(|item| check(item, inner, name, sink));
        }
        (DeValue::Table(t), ValueShape::Table(keys)) => {
            table(t, span, keys, None, &format!("`{name}`"), sink)
        }
        (DeValue::Table(t), ValueShape::Open(keys, shape)) => {
            table(t, span, keys, Some(shape), &format!("`{name}`"), sink);
        }
        (v, ValueShape::OneOf(shapes)) => {
            if let Some(shape) = shapes.iter().find(|s| outer_fits(v, s)) {
                check(value, shape, name, sink);
            }
        }
        _ => {}
    }
}
