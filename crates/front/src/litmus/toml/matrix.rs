//! `[[matrix]]`: the expected answers of a template as a grid over two of its axes.
//!
//! ```text
//! table = '''
//!       none  acquire
//! weak  A     A
//! rel   A     F
//! '''
//! ```
//! The first line names the columns; every other line begins with the name of its row. White space
//! separates cells; `-` expects nothing. With `readings`, the columns are the values of an option
//! that chooses how to read a source, and each row is one test.

use ::toml::de::DeTable;
use indexmap::IndexMap;

use super::expect::{reachability, set, words_of};
use super::strings::map_string;
use super::template::{Axis, AxisValue, Template, TemplateChoice, tables};
use crate::document::{Value, entries, span_of};
use diag::{MappedText, Sink, Span};
use program::litmus::{Expectation, Reachability};
use program::options::{OPTIONS, Setting};

/// A grid, resolved against its template.
pub(super) struct Matrix {
    model: String,
    property: String,
    axiom: Option<String>,
    source: Option<String>,
    rows: usize,
    columns: Option<usize>,
    /// The option that gives the columns, if they are not an axis.
    readings: Option<usize>,
    /// Letters with their words.
    letters: Vec<(String, String)>,
    /// Row value, column value (0 without columns), word, place.
    cells: Vec<(usize, usize, String, Span)>,
}

impl Matrix {
    /// The cell for the test with that choice.
    fn cell(&self, choice: &TemplateChoice) -> Option<(&str, Span)> {
        let row = choice.values.get(self.rows)?;
        // Among the columns for readings, the first is the default.
        let column = self.columns.map_or(Some(&0), |c| choice.values.get(c))?;
        self.cells
            .iter()
            .find(|c| c.0 == *row && c.1 == *column)
            .map(|c| (c.2.as_str(), c.3))
    }

    /// The answers for the test under each reading.
    fn readings(&self, choice: &TemplateChoice) -> Vec<(Setting, Reachability)> {
        let Some((option, row)) = self.readings.zip(choice.values.get(self.rows)) else {
            return Vec::new();
        };
        let cells = self.cells.iter().filter(|c| c.0 == *row);
        cells
            .map(|c| (Setting { option, value: c.1 }, reachability(&c.2)))
            .collect()
    }

    /// The edit that sets the answer of the test to `word`: a place and a letter. `None` if the
    /// grid does not cover the test; `Some(None)` if it does, but has no letter for the word.
    pub(super) fn edit(
        &self,
        choice: &TemplateChoice,
        model: &str,
        property: &str,
        word: &str,
    ) -> Option<Option<(Span, String)>> {
        if self.model != model || self.property != property {
            return None;
        }
        let (_, span) = self.cell(choice)?;
        // A letter as wide as the old one keeps the columns aligned.
        let width = (span.end - span.start) as usize;
        let letters = self.letters.iter().filter(|l| l.1 == word);
        let best = letters.min_by_key(|l| l.0.len().abs_diff(width));
        Some(best.map(|l| (span, l.0.clone())))
    }

    /// Adds the grid's expectations for the test with that choice.
    pub(super) fn apply(&self, choice: &TemplateChoice, all: &mut IndexMap<String, Expectation>) {
        let Some((word, span)) = self.cell(choice) else {
            return;
        };
        let entry = all.entry(self.model.clone()).or_default();
        set(entry, &self.property, word);
        entry.span = span;
        if self.property == "reachability" {
            let forbidden = entry.reachability == Some(Reachability::Forbidden);
            entry.axiom = self.axiom.clone().filter(|_| forbidden);
            entry
                .readings
                .retain(|(setting, _)| Some(setting.option) != self.readings);
            entry.readings.extend(self.readings(choice));
        }
        if self.source.is_some() {
            entry.source = self.source.clone();
        }
    }
}

/// Reads all matrices of a file.
pub(super) fn read(
    root: &DeTable<'_>,
    template: &Template,
    file: &str,
    sink: &mut Sink,
) -> Vec<Matrix> {
    tables(root, "matrix")
        .into_iter()
        .filter_map(|t| one(t, template, file, sink))
        .collect()
}

fn text(table: &DeTable<'_>, key: &str) -> Option<String> {
    let text = table.get(key)?.get_ref().as_str()?;
    Some(text.to_string())
}

fn one(table: &DeTable<'_>, template: &Template, file: &str, sink: &mut Sink) -> Option<Matrix> {
    let mut axis = |key: &str| -> Option<usize> {
        let name = text(table, key)?;
        let found = template.axes.iter().position(|a| a.name == name);
        if found.is_none() {
            let span = table.get(key).map_or(Span::default(), span_of);
            sink.error(
                "unknown-axis",
                span,
                format!("there is no axis `{name}`"),
                |d| {
                    let names = template.axes.iter().map(|a| a.name.as_str());
                    d.label("expected the name of an `[[axis]]`")
                        .did_you_mean(&name, names)
                },
            );
        }
        found
    };
    let rows = axis("rows")?;
    let columns = match table.contains_key("columns") {
        true => Some(axis("columns")?),
        false => None,
    };
    let property = text(table, "property").unwrap_or("reachability".to_string());
    let readings = match table.get("readings") {
        Some(given) => Some(option(
            given,
            columns.is_some() || property != "reachability",
            sink,
        )?),
        None => None,
    };
    let of_option = readings.map(|option| {
        let values = OPTIONS[option]
            .values
            .iter()
            .map(|value| AxisValue::named(value));
        Axis {
            name: OPTIONS[option].name.to_owned(),
            values: values.collect(),
        }
    });
    let letters = letters(table, &property, sink);
    let grid = table.get("table")?;
    let grid = map_string(file, grid.span(), grid.get_ref().as_str()?);
    let cells = MatrixGrid {
        text: &grid,
        letters: &letters,
        property: &property,
        sink,
    }
    .read(
        &template.axes[rows],
        columns.map(|c| &template.axes[c]).or(of_option.as_ref()),
    );
    Some(Matrix {
        model: text(table, "model")?,
        property,
        axiom: text(table, "axiom"),
        source: text(table, "source"),
        rows,
        columns,
        readings,
        letters,
        cells,
    })
}

/// The option that gives the columns of a grid. `alone`: the grid also has `columns` or a
/// `property`, which is an error.
fn option(given: &Value<'_>, alone: bool, sink: &mut Sink) -> Option<usize> {
    let (name, span) = (given.get_ref().as_str()?, span_of(given));
    if alone {
        sink.error(
            "conflicting-keys",
            span,
            "answers for readings concern the condition and take no columns",
            |d| d.label("expected no `columns`, and no `property`"),
        );
        return None;
    }
    let known = || {
        OPTIONS
            .iter()
            .filter(|row| row.reading.is_some())
            .map(|row| row.name)
    };
    let found = OPTIONS
        .iter()
        .position(|row| row.name == name && row.reading.is_some());
    if found.is_none() {
        sink.error(
            "unknown-option",
            span,
            format!("`{name}` chooses no reading"),
            |d| {
                d.label("expected an option that chooses one")
                    .did_you_mean(name, known())
            },
        );
    }
    found
}

/// The meaning of the letters. Without `letters`: A, F and R, or the words.
fn letters(table: &DeTable<'_>, property: &str, sink: &mut Sink) -> Vec<(String, String)> {
    let words = words_of(property);
    let mut letters: Vec<(String, String)> = words
        .iter()
        .map(|w: &&str| (w.to_string(), w.to_string()))
        .collect();
    match table
        .get("letters")
        .map(Value::get_ref)
        .and_then(|v| v.as_table())
    {
        None if property == "reachability" => {
            letters.extend(words.iter().map(|w| (w[..1].to_uppercase(), w.to_string())));
        }
        None => {}
        Some(given) => {
            for (letter, _, value) in entries(given) {
                let word = value.get_ref().as_str().unwrap_or("");
                if words.contains(&word) {
                    letters.push((letter.to_string(), word.to_string()));
                } else {
                    let message = format!("`{word}` is not an answer about {property}");
                    sink.error("unknown-word", span_of(value), message, |d| {
                        let d = d.label(format!("expected one of {}", words.join(", ")));
                        d.did_you_mean(word, words.iter().copied())
                    });
                }
            }
        }
    }
    letters
}

struct MatrixGrid<'a> {
    text: &'a MappedText,
    letters: &'a [(String, String)],
    property: &'a str,
    sink: &'a mut Sink,
}

impl MatrixGrid<'_> {
    fn read(mut self, rows: &Axis, columns: Option<&Axis>) -> Vec<(usize, usize, String, Span)> {
        let text = self.text;
        let mut cells = Vec::new();
        let mut at = 0;
        let mut head: Option<Vec<Option<usize>>> = columns.is_none().then(|| vec![Some(0)]);
        for line in text.as_str().split('\n') {
            let mut words = Vec::new();
            for word in line.split_whitespace() {
                let start = at + (word.as_ptr() as usize - line.as_ptr() as usize);
                words.push((word, text.span(start..start + word.len())));
            }
            at += line.len() + 1;
            let Some((first, rest)) = words.split_first() else {
                continue;
            };
            let (Some(head), _) = (&head, columns) else {
                let axis = columns.unwrap_or(rows);
                head = Some(
                    words
                        .iter()
                        .map(|(word, span)| self.value(axis, word, *span))
                        .collect(),
                );
                continue;
            };
            let row = self.value(rows, first.0, first.1);
            if rest.len() != head.len() {
                let message = format!(
                    "this row has {} cells, the table has {} columns",
                    rest.len(),
                    head.len()
                );
                self.sink.error("wrong-columns", first.1, message, |d| {
                    d.label("in this row")
                });
                continue;
            }
            for ((word, span), column) in rest.iter().zip(head) {
                if matches!(*word, "-" | ".") {
                    continue;
                }
                let meaning = self.letters.iter().find(|l| l.0 == *word);
                match (row, *column, meaning) {
                    (Some(row), Some(column), Some((_, word))) => {
                        cells.push((row, column, word.clone(), *span))
                    }
                    (_, _, None) => {
                        let known: Vec<&str> = self.letters.iter().map(|l| l.0.as_str()).collect();
                        let message = format!("`{word}` is not an answer about {}", self.property);
                        self.sink.error("unknown-letter", *span, message, |d| {
                            d.label(format!("expected `-` or one of {}", known.join(", ")))
                        });
                    }
                    _ => {}
                }
            }
        }
        cells
    }

    fn value(&mut self, axis: &Axis, name: &str, span: Span) -> Option<usize> {
        let found = axis.values.iter().position(|v| v.name == name);
        if found.is_none() {
            let message = format!("the axis `{}` has no value `{name}`", axis.name);
            self.sink.error("unknown-value", span, message, |d| {
                let names = axis.values.iter().map(|v| v.name.as_str());
                d.label("expected the name of a value")
                    .did_you_mean(name, names)
            });
        }
        found
    }
}
