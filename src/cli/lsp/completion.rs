//! Completes words: keys of tests, models, orders, scopes, and names of the model language.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::document::{Document, DocumentKind};
use super::text;
use cat::model::Library;
use diag::SourceFile;
use engine::skeleton::signature::signature;
use program::dialect::{DIALECTS, DialectRow};

/// What kind of thing a proposal is; the numbers are the protocol's `CompletionItemKind`.
#[derive(Clone, Copy)]
enum ItemKind {
    Property = 10,
    Value = 12,
    Keyword = 14,
    Module = 9,
}

/// The words that begin a statement or an expression of a model.
const KEYWORDS: [&str; 14] = [
    "let",
    "rec",
    "and",
    "acyclic",
    "irreflexive",
    "empty",
    "flag",
    "as",
    "include",
    "free",
    "option",
    "within",
    "covering",
    "show",
];

/// The proposals at an offset.
pub(super) fn at(document: &Document, offset: usize) -> Vec<Value> {
    let (start, _) = text::word(&document.text, offset);
    let line_start = document.text[..start].rfind('\n').map_or(0, |at| at + 1);
    let before = &document.text[line_start..start];
    match document.language {
        DocumentKind::Cat => of_models(&document.text),
        DocumentKind::Source => of_dialects(before, dialects_of(document)),
        DocumentKind::Litmus => of_dialects(before, DIALECTS.iter().collect()),
        DocumentKind::Toml => {
            let section = section(&document.text[..line_start]);
            if is_in_code(&document.text[..start]) {
                of_dialects(before, dialects_of(document))
            } else {
                of_test(&section, before)
            }
        }
    }
}

fn item(label: &str, kind: ItemKind, doc: &str) -> Value {
    json!({ "label": label, "kind": kind as i32, "detail": doc })
}

/// Base names, names that the text defines, and those of the preludes.
fn of_models(text: &str) -> Vec<Value> {
    let signature = signature();
    let preludes: Vec<Arc<SourceFile>> = Library::preludes()
        .into_iter()
        .filter_map(Library::prelude)
        .collect();
    let texts = preludes.iter().map(|prelude| prelude.text.as_str());
    let own: BTreeSet<&str> = texts.chain([text]).flat_map(definitions).collect();
    let own = own
        .into_iter()
        .map(|name| item(name, ItemKind::Value, "definition"));
    let names = signature.names.iter();
    names
        .map(|base| item(base.name, ItemKind::Value, base.doc))
        .chain(own)
        .chain(
            KEYWORDS
                .iter()
                .map(|word| item(word, ItemKind::Keyword, "")),
        )
        .collect()
}

/// The names that a model defines, one after `let`, `rec`, `and` or `free`.
fn definitions(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || "_-.".contains(c)));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let pairs: Vec<&str> = words
        .windows(2)
        .filter(|two| ["let", "rec", "and", "free"].contains(&two[0]) && two[1] != "rec")
        .map(|two| two[1])
        .collect();
    pairs.into_iter()
}

/// The dialect of a document: its key `dialect`, or the ending of its name.
fn dialects_of(document: &Document) -> Vec<&'static DialectRow> {
    let ending = document.path.extension().and_then(|ending| ending.to_str());
    let name = match ending {
        Some("cu" | "cuh") => "cuda",
        Some("cl") => "opencl",
        Some("toml") => {
            let mut lines = document.text.lines().map(str::trim);
            let key = lines.find_map(|line| line.strip_prefix("dialect")?.trim().strip_prefix('='));
            key.map_or("ptx", |value| value.trim().trim_matches(['"', '\'']))
        }
        _ => "ptx",
    };
    DIALECTS.iter().filter(|row| row.name == name).collect()
}

/// Orders and scopes. In PTX each begins with a dot, which the text may have already.
fn of_dialects(before: &str, rows: Vec<&DialectRow>) -> Vec<Value> {
    let is_behind_dot = before.ends_with('.');
    let mut all = Vec::new();
    for row in rows {
        let orders = row.orders.iter().map(|(word, _)| (*word, "memory order"));
        let scopes = row.scopes.iter().map(|(word, _)| (*word, "scope"));
        for (word, doc) in orders.chain(scopes) {
            match word.strip_prefix('.') {
                Some(bare) if is_behind_dot => all.push(item(bare, ItemKind::Value, doc)),
                Some(_) => {}
                None if is_behind_dot => {}
                None => all.push(item(word, ItemKind::Value, doc)),
            }
        }
    }
    all
}

/// Whether the text ends inside a string in three quotes.
fn is_in_code(before: &str) -> bool {
    before.matches("'''").count() % 2 == 1 || before.matches("\"\"\"").count() % 2 == 1
}

/// The table that a line belongs to: the last head before it.
fn section(before: &str) -> Vec<String> {
    let head = before
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| line.starts_with('['));
    let head = head.unwrap_or("").trim_matches(['[', ']']);
    let words = head.split('.').map(|word| word.trim().trim_matches('"'));
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Keys and values of a test.
fn of_test(section: &[String], before: &str) -> Vec<Value> {
    let schema = front::litmus::schema();
    let mut place = &schema;
    let is_key = !before.contains(['=', '{']);
    for name in section {
        place = below(place, name);
    }
    let is_expectation = section.len() == 1 && section[0] == "expect";
    if is_expectation && is_key {
        let models = Library::names().into_iter();
        return models
            .map(|name| item(name, ItemKind::Module, "model"))
            .collect();
    }
    if is_expectation {
        // Behind `ptx = {` the keys are those of any model.
        place = below(place, "");
    } else if !is_key {
        let key = before.split('=').next().unwrap_or("").trim();
        return values(below(place, key));
    }
    if before.trim_end().ends_with(['"', '\'']) {
        let key = before.rsplit(['{', ',']).next().unwrap_or("");
        let key = key.split('=').next().unwrap_or("").trim();
        return values(below(place, key));
    }
    let properties = place["properties"].as_object().into_iter().flatten();
    properties
        .map(|(name, schema)| {
            item(
                name,
                ItemKind::Property,
                schema["description"].as_str().unwrap_or(""),
            )
        })
        .collect()
}

/// The schema of a key; of any key if the schema names none.
fn below<'s>(schema: &'s Value, key: &str) -> &'s Value {
    let schema = match &schema["items"] {
        Value::Null => schema,
        items => items,
    };
    let found = match &schema["properties"][key] {
        Value::Null => &schema["additionalProperties"],
        found => found,
    };
    match &found["items"] {
        Value::Null => found,
        items => items,
    }
}

/// The words that a schema lists, in any of its alternatives.
fn values(schema: &Value) -> Vec<Value> {
    let lists = [&schema["anyOf"], &schema["oneOf"]];
    let inner = lists.into_iter().filter_map(Value::as_array).flatten();
    let words = [schema]
        .into_iter()
        .chain(inner)
        .filter_map(|s| s["enum"].as_array())
        .flatten();
    words
        .filter_map(Value::as_str)
        .map(|word| item(word, ItemKind::Value, ""))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The labels where the text has `|`.
    fn labels(name: &str, marked: &str) -> Vec<String> {
        let offset = marked.find('|').expect("a mark");
        let text = marked.replacen('|', "", 1);
        let uri = format!("file:///{name}");
        let item = json!({ "uri": uri, "version": 1, "text": text });
        let document = Document::new(&item).expect("a known language");
        let items = at(&document, offset);
        items
            .iter()
            .map(|item| item["label"].as_str().expect("a label").to_owned())
            .collect()
    }

    fn has(labels: &[String], word: &str) -> bool {
        labels.iter().any(|label| label == word)
    }

    #[test]
    fn code_gets_orders_and_scopes_of_its_dialect() {
        let ptx = labels("a.toml", "[[thread]]\ncode = '''\nld.|");
        assert!(has(&ptx, "acquire") && has(&ptx, "gpu") && !has(&ptx, "cta = 0"));
        let cuda = labels(
            "a.toml",
            "dialect = \"cuda\"\n[[thread]]\ncode = '''\nx.load(mem|",
        );
        assert!(
            has(&cuda, "memory_order_acquire") && !has(&cuda, "acquire"),
            "{cuda:?}"
        );
        let source = labels("k.cl", "memory_|");
        assert!(has(&source, "memory_scope_device") && has(&source, "memory_order_seq_cst"));
    }

    #[test]
    fn tests_get_keys_models_and_verdicts() {
        let top = labels("a.toml", "na|");
        assert!(has(&top, "condition") && has(&top, "thread"));
        let thread = labels("a.toml", "[[thread]]\n|");
        assert!(has(&thread, "code") && has(&thread, "cta") && !has(&thread, "condition"));
        let expect = labels("a.toml", "[expect]\npt|");
        assert!(has(&expect, "ptx-v7.5") && !has(&expect, "code"));
        let key = labels("a.toml", "[expect]\nptx = { |");
        assert!(has(&key, "reachability"), "{key:?}");
        let verdict = labels("a.toml", "[expect]\nptx = { reachability = \"|");
        assert!(has(&verdict, "forbidden"), "{verdict:?}");
        let dialect = labels("a.toml", "dialect = \"|");
        assert!(has(&dialect, "opencl"), "{dialect:?}");
    }

    #[test]
    fn models_get_base_relations() {
        let model = labels("m.cat", "acyclic p|");
        assert!(has(&model, "po") && has(&model, "irreflexive") && has(&model, "rf"));
        let own = labels("m.cat", "let rec hb = po | hb;hb\nacyclic h|");
        assert!(has(&own, "hb"), "{own:?}");
    }
}
