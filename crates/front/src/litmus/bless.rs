//! Rewrites one expectation in a test file and leaves the rest unchanged.
//!
//! # Invariants
//! - The edited text differs from the original in one place only, and reads as TOML with the new
//!   answer in it.
//! - An existing answer is changed where it is: in a cell of a `[[matrix]]`, an `[[instance]]`, or
//!   `[expect]`. A new answer goes to the narrowest table that is about this test alone.

use ::toml::de::{DeTable, DeValue};

use super::toml::target::{EditTarget, find};
use super::toml::template::tables;
use super::write::{quote, toml_key};
use crate::document::{Value, entries, span_of};
use diag::Span;

/// Edits the text of a TOML file: sets the expectation of `test` for `model` about `property` to
/// `verdict`.
///
/// `property` and `verdict` are words of the format: `reachability` with `allowed`, `forbidden` or
/// `required`, `race` with `racy` or `race-free`, `undefined` with `undefined` or `defined`,
/// `lifetime` with `misused` or `proper`,
/// `liveness:fair` with `terminates` or `hangs`.
///
/// Returns `None` if the file lacks the test, or a place that is about the test alone. `[expect]`
/// of a template with axes is about several tests.
pub fn bless(text: &str, test: &str, model: &str, property: &str, verdict: &str) -> Option<String> {
    let document = DeTable::parse(text).ok()?;
    let root = document.get_ref();
    let answer = ExpectedAnswer {
        model,
        property,
        verdict,
    };
    match find(root, text, test, model, property, verdict)? {
        EditTarget::Replace(span, new) => Some(splice(text, span, &new)),
        EditTarget::Expect(Some(i)) => {
            let instance = tables(root, "instance").get(i).copied()?;
            in_instance(text, instance, &answer).filter(|new| answer.is_in(new, Some(i)))
        }
        EditTarget::Expect(None) => in_root(text, root, &answer)
            .filter(|new| answer.is_in(new, None))
            .or_else(|| Some(answer.appended(text)).filter(|new| answer.is_in(new, None))),
    }
}

struct ExpectedAnswer<'a> {
    model: &'a str,
    property: &'a str,
    verdict: &'a str,
}

impl ExpectedAnswer<'_> {
    fn progress(&self) -> Option<&str> {
        self.property.strip_prefix("liveness:")
    }

    /// The answer as an entry of a model's table: `race = "racy"`.
    fn entry(&self) -> String {
        match self.progress() {
            Some(progress) => format!(
                "liveness = {{ {} = {} }}",
                toml_key(progress),
                quote(self.verdict)
            ),
            None => format!("{} = {}", self.property, quote(self.verdict)),
        }
    }

    /// Whether a text contains the answer, for an instance or for the whole file.
    fn is_in(&self, text: &str, instance: Option<usize>) -> bool {
        let Ok(document) = DeTable::parse(text) else {
            return false;
        };
        let root = document.get_ref();
        let owner = match instance {
            Some(i) => tables(root, "instance").get(i).copied(),
            None => Some(root),
        };
        let mut path = vec!["expect", self.model];
        match self.progress() {
            Some(progress) => path.extend(["liveness", progress]),
            None => path.push(self.property),
        }
        let Some((last, tables)) = path.split_last() else {
            return false;
        };
        let table = tables
            .iter()
            .try_fold(owner, |t, key| Some(t?.get(*key)?.get_ref().as_table()))
            .flatten();
        table
            .and_then(|t| t.get(*last))
            .and_then(|v| v.get_ref().as_str())
            == Some(self.verdict)
    }

    /// The text with a new `[expect.MODEL]` table at its end, for files whose notation allows no
    /// other addition.
    fn appended(&self, text: &str) -> String {
        let gap = if text.ends_with('\n') { "\n" } else { "\n\n" };
        format!(
            "{text}{gap}[expect.{}]\n{}\n",
            toml_key(self.model),
            self.entry()
        )
    }

    /// The answer as an entry of `expect`: `ptx = { race = "racy" }`.
    fn line(&self) -> String {
        format!("{} = {{ {} }}", toml_key(self.model), self.entry())
    }
}

fn splice(text: &str, span: Span, new: &str) -> String {
    let range = span.range();
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}

fn child<'t, 'a>(table: &'t DeTable<'a>, key: &str) -> Option<&'t Value<'a>> {
    table.get(key)
}

/// Changes or adds the answer in an existing `expect` table. `None` if the table is missing, or its
/// notation allows no addition.
fn in_expect(text: &str, owner: &DeTable<'_>, answer: &ExpectedAnswer<'_>) -> Option<String> {
    let expect = child(owner, "expect")?;
    let models = expect.get_ref().as_table()?;
    let Some(model) = child(models, answer.model) else {
        return add(text, owner, "expect", expect, &answer.line());
    };
    let properties = model.get_ref().as_table()?;
    let Some(progress) = answer.progress() else {
        return match child(properties, answer.property) {
            Some(old) => Some(splice(text, span_of(old), &quote(answer.verdict))),
            None => add(text, models, answer.model, model, &answer.entry()),
        };
    };
    match child(properties, "liveness") {
        None => add(text, models, answer.model, model, &answer.entry()),
        Some(liveness) => match child(liveness.get_ref().as_table()?, progress) {
            Some(old) => Some(splice(text, span_of(old), &quote(answer.verdict))),
            None => {
                let entry = format!("{} = {}", toml_key(progress), quote(answer.verdict));
                add(text, properties, "liveness", liveness, &entry)
            }
        },
    }
}

/// Adds an entry to the table at `owner.key`, in the notation of that table.
fn add(
    text: &str,
    owner: &DeTable<'_>,
    key: &str,
    table: &Value<'_>,
    entry: &str,
) -> Option<String> {
    let span = span_of(table);
    let entries = entries(table.get_ref().as_table()?);
    if text[span.range()].starts_with('{') {
        let end = span.end as usize - 1;
        let body = text[..end].trim_end();
        let comma = if entries.is_empty() || body.ends_with(',') {
            ""
        } else {
            ","
        };
        return Some(format!("{body}{comma} {entry} {}", &text[end..]));
    }
    // A table with a header: the entry becomes a new line after its last entry, or after the
    // header.
    let key_span = owner
        .iter()
        .find(|(k, _)| k.get_ref().as_ref() == key)
        .map(|(k, _)| span_of(k))?;
    let line_start = text[..key_span.start as usize]
        .rfind('\n')
        .map_or(0, |n| n + 1);
    if !text[line_start..].trim_start().starts_with('[') {
        return None;
    }
    let last = entries
        .iter()
        .filter(|e| !matches!(e.2.get_ref(), DeValue::Table(_)) || inline(text, e.2));
    let at = last.map(|e| span_of(e.2).end).max().unwrap_or(key_span.end) as usize;
    Some(insert_line(text, at, entry))
}

fn inline(text: &str, value: &Value<'_>) -> bool {
    text[span_of(value).range()].starts_with('{')
}

/// Inserts a line after the one that contains byte `at`.
fn insert_line(text: &str, at: usize, line: &str) -> String {
    match text[at..].find('\n') {
        Some(n) => format!("{}{line}\n{}", &text[..at + n + 1], &text[at + n + 1..]),
        None => format!("{text}\n{line}\n"),
    }
}

fn in_root(text: &str, root: &DeTable<'_>, answer: &ExpectedAnswer<'_>) -> Option<String> {
    if root.contains_key("expect") {
        return in_expect(text, root, answer);
    }
    let gap = if text.ends_with('\n') { "\n" } else { "\n\n" };
    Some(format!("{text}{gap}[expect]\n{}\n", answer.line()))
}

fn in_instance(text: &str, instance: &DeTable<'_>, answer: &ExpectedAnswer<'_>) -> Option<String> {
    if instance.contains_key("expect") {
        return in_expect(text, instance, answer);
    }
    let name = span_of(child(instance, "name")?).end as usize;
    let entry = format!("expect = {{ {} }}", answer.line());
    let line = text[..name].rfind('\n').map_or(0, |n| n + 1);
    // The instance is either `{ name = "a", … }` in a list, or a table with a header.
    Some(if text[line..name].contains('{') {
        format!("{}, {entry}{}", &text[..name], &text[name..])
    } else {
        insert_line(text, name, &entry)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "# a comment\nname = \"t\"\ncondition = 'x == 1'\nmemory = { x = 0 \
             }\n\n[expect]\nptx = { reachability = \"allowed\" } # why\n";

    #[test]
    fn an_answer_is_replaced_and_nothing_else() {
        let new = bless(PLAIN, "t", "ptx", "reachability", "forbidden");
        assert_eq!(new, Some(PLAIN.replace("allowed", "forbidden")));
    }

    #[test]
    fn answers_are_added_where_they_belong() {
        let new = bless(PLAIN, "t", "ptx", "liveness:hsa-obe", "hangs").expect("a place for it");
        assert!(
            new.contains(
                "{ reachability = \"allowed\", liveness = { hsa-obe = \"hangs\" } } # why"
            ),
            "{new}"
        );
        let new = bless(PLAIN, "t", "sc", "race", "racy").expect("a place for it");
        assert!(
            new.ends_with("} # why\nsc = { race = \"racy\" }\n"),
            "{new}"
        );
        let bare = "name = 't'\n[expect.ptx]\nreachability = 'allowed'\n";
        let new = bless(bare, "t", "ptx", "race", "racy");
        assert_eq!(
            new.as_deref(),
            Some("name = 't'\n[expect.ptx]\nreachability = 'allowed'\nrace = \"racy\"\n")
        );
        let new = bless(bare, "t", "sc", "race", "racy");
        assert_eq!(new, Some(format!("{bare}\n[expect.sc]\nrace = \"racy\"\n")));
        let new = bless("name = 't'", "t", "ptx", "race", "racy");
        assert_eq!(
            new.as_deref(),
            Some("name = 't'\n\n[expect]\nptx = { race = \"racy\" }\n")
        );
        assert_eq!(bless(PLAIN, "other", "ptx", "race", "racy"), None);
    }

    #[test]
    fn cells_of_a_matrix_and_instances_are_changed_in_place() {
        let matrix = "name = 'm'\naxis = [{ name = 'w', value = [{ name = 'a' }, { name = 'b' }] \
                 }]\n[[matrix]]\nmodel = 'ptx'\nrows = 'w'\ntable = '''\na A\nb A\n'''\n";
        let new = bless(matrix, "m+b", "ptx", "reachability", "forbidden");
        assert_eq!(new, Some(matrix.replace("b A", "b F")));
        assert_eq!(
            bless(matrix, "m+b", "sc", "reachability", "forbidden"),
            None,
            "nothing speaks of m+b alone"
        );
        let instances = "name = 'm'\n[[instance]]\nname = 'm1'\n[[instance]]\nname = 'm2'\n";
        let new = bless(instances, "m2", "ptx", "race", "racy");
        assert_eq!(
            new,
            Some(format!(
                "{instances}expect = {{ ptx = {{ race = \"racy\" }} }}\n"
            ))
        );
    }
}
