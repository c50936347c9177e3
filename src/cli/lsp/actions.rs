//! Lenses with verdicts over expectations, and actions: the verified repair, bless, ask why.
//!
//! # Invariants
//! - A repair is an edit that the checker decided to forbid the outcome, or to remove the race. If
//!   its place cannot be found in the text, no action is offered.

use serde_json::{Value, json};

use super::document::{Document, DocumentKind};
use super::text;

/// The lines of expectations, counted from 0, with the model of each.
fn expectations(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut is_inside = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(head) = line.strip_prefix('[') {
            let head = head.trim_matches(['[', ']']);
            is_inside = head == "expect";
            if let Some(model) = head.strip_prefix("expect.") {
                found.push((number, model.trim_matches(['"', '\'']).to_owned()));
            }
        } else if is_inside
            && !line.starts_with('#')
            && let Some((key, _)) = line.split_once('=')
        {
            let key = key.trim();
            // `ptx.race = …` names the model first; a name with dots has quotes.
            let model = match key.strip_prefix(['"', '\'']) {
                Some(quoted) => quoted.split(['"', '\'']).next(),
                None => key.split('.').next(),
            };
            found.push((number, model.unwrap_or(key).to_owned()));
        }
    }
    found
}

/// The lenses of a document.
pub(super) fn lenses(document: &Document) -> Vec<Value> {
    if document.language != DocumentKind::Toml {
        return Vec::new();
    }
    let lens = |(line, model): (usize, String)| {
        let there = json!({ "line": line, "character": 0 });
        json!({
            "range": { "start": there, "end": there },
            "command": {
                "title": title(document, &model),
                "command": "fencepost.why",
                "arguments": [document.uri, model],
            },
        })
    };
    expectations(&document.text).into_iter().map(lens).collect()
}

/// The verdicts under a model, in words.
fn title(document: &Document, model: &str) -> String {
    if document.report.is_null() {
        return format!("{model}: not decided yet");
    }
    let said: Vec<String> = document
        .answers()
        .filter(|answer| answer["model"] == model)
        .map(verdict)
        .collect();
    match said.as_slice() {
        [] => format!("{model}: no answer"),
        [one] => format!("{model}: {one}"),
        many if many.iter().all(|one| one == &many[0]) => {
            format!("{model}: {} × {}", many.len(), many[0])
        }
        // A template has dozens.
        [first, rest @ ..] if rest.len() > 3 => {
            let unmet = said.iter().filter(|one| one.contains("expected")).count();
            format!(
                "{model}: {} answers, {unmet} not as expected, {first}, …",
                said.len()
            )
        }
        few => format!("{model}: {}", few.join("; ")),
    }
}

fn verdict(answer: &Value) -> String {
    let word = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
    let mut text = word("verdict");
    if word("property") != "reachability" {
        text = format!("{} {text}", word("property"));
    }
    let expected = word("expected");
    // `required P` is met by the verdict `forbidden` for its violation.
    let is_met =
        expected == word("verdict") || (expected == "required" && word("verdict") == "forbidden");
    match answer["reason"].as_str() {
        Some(reason) => format!("{text} ({reason})"),
        None if expected.is_empty() || is_met => text,
        None => format!("{text}, expected {expected}"),
    }
}

/// The actions at a line, counted from 0.
pub(super) fn at(document: &Document, line: u64) -> Vec<Value> {
    let mut all = repairs(document);
    let is_test = matches!(document.language, DocumentKind::Toml | DocumentKind::Litmus);
    if is_test {
        let lines = expectations(&document.text);
        let model = lines.iter().find(|(number, _)| *number as u64 == line);
        let arguments = match model {
            Some((_, model)) => json!([document.uri, model]),
            None => json!([document.uri]),
        };
        all.push(json!({
            "title": "Ask why",
            "kind": "source",
            "command": {
                "title": "Ask why", "command": "fencepost.why", "arguments": arguments,
            },
        }));
    }
    let is_unmet = document
        .answers()
        .any(|answer| verdict(answer).contains(", expected "));
    if document.language == DocumentKind::Toml && is_unmet {
        all.push(json!({
            "title": "Bless: make the expectations what was decided",
            "kind": "quickfix",
            "command": {
                "title": "Bless", "command": "fencepost.bless", "arguments": [document.uri],
            },
        }));
    }
    all
}

/// The repairs that the answers carry, each once.
fn repairs(document: &Document) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for answer in document.answers() {
        let edits = answer["explanation"]["missing"]["edits"].as_array();
        let edits = edits.map(Vec::as_slice).unwrap_or_default();
        let changes: Option<Vec<Value>> = edits.iter().map(|edit| change(document, edit)).collect();
        let Some(changes) = changes.filter(|changes| !changes.is_empty()) else {
            continue;
        };
        let action = json!({
            "title": name(answer, edits),
            "kind": "quickfix",
            "isPreferred": true,
            "edit": { "changes": { &document.uri: changes } },
        });
        if !all.contains(&action) {
            all.push(action);
        }
    }
    all
}

/// Describes a repair in words.
fn name(answer: &Value, edits: &[Value]) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let parts: Vec<String> = edits
        .iter()
        .map(|edit| {
            let (instead, line) = (word(&edit["instead"]), &edit["line"]);
            match edit["place"].as_str() {
                Some("instead") => {
                    format!("`{instead}` for `{}` at line {line}", word(&edit["what"]))
                }
                Some(place) => format!("`{instead}` {place} line {line}"),
                None => format!("`{instead}` at line {line}"),
            }
        })
        .collect();
    format!(
        "Forbid it under {}: {}",
        word(&answer["model"]),
        parts.join(", ")
    )
}

/// An edit of the checker as one of the editor.
fn change(document: &Document, edit: &Value) -> Option<Value> {
    let number = usize::try_from(edit["line"].as_u64()?).ok()?;
    let (start, line) = text::line(&document.text, number)?;
    let (statement, instead) = (edit["text"].as_str()?, edit["instead"].as_str()?);
    let at = line.find(statement)?;
    // Two statements of the same text: which one is meant, only the checker knows.
    if line[at + statement.len()..].contains(statement) {
        return None;
    }
    let (from, to) = match edit["place"].as_str()? {
        "instead" => {
            let what = edit["what"].as_str().filter(|what| !what.is_empty())?;
            let inner = statement.find(what)?;
            (at + inner, at + inner + what.len())
        }
        "before" => (at, at),
        "after" => (at + statement.len(), at + statement.len()),
        _ => return None,
    };
    let separator = if line.contains(';') { "; " } else { "\n" };
    let new = match edit["place"].as_str()? {
        "before" => format!("{instead}{separator}"),
        "after" => format!("{separator}{instead}"),
        _ => instead.to_owned(),
    };
    let range = text::range(&document.text, start + from, start + to);
    Some(json!({ "range": range, "newText": new }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"MP\"\n[[thread]]\n\
        code = '''\nst.weak x, 1\nst.release.cta f, 1\n'''\n\
        [expect]\nptx = { reachability = \"forbidden\" }\n\"ptx-v7.5\" = { race = \"racy\" }\n";

    fn document() -> Document {
        let item = json!({ "uri": "file:///MP.toml", "version": 1, "text": TEXT });
        Document::new(&item).expect("a test")
    }

    #[test]
    fn lenses_say_what_was_decided() {
        let mut document = document();
        let titles = |document: &Document| -> Vec<String> {
            let lenses = lenses(document);
            let title = |lens: &Value| lens["command"]["title"].as_str().map(str::to_owned);
            lenses.iter().filter_map(title).collect()
        };
        assert_eq!(
            titles(&document),
            ["ptx: not decided yet", "ptx-v7.5: not decided yet"]
        );
        document.report = json!({ "answers": [
            { "model": "ptx", "property": "reachability", "verdict": "allowed",
              "expected": "forbidden" },
            { "model": "ptx-v7.5", "property": "race", "verdict": "racy", "expected": "racy" },
        ] });
        let after = ["ptx: allowed, expected forbidden", "ptx-v7.5: race racy"];
        assert_eq!(titles(&document), after);
        assert_eq!(lenses(&document)[0]["range"]["start"]["line"], 7);
    }

    #[test]
    fn a_repair_edits_the_word_and_bless_is_offered_for_what_is_unmet() {
        let mut document = document();
        document.report = json!({ "answers": [{
            "model": "ptx", "property": "reachability", "verdict": "allowed",
            "expected": "forbidden",
            "explanation": { "missing": { "edits": [{
                "line": 5, "text": "st.release.cta f, 1", "what": ".cta", "instead": ".gpu",
                "place": "instead" }] } },
        }] });
        let all = at(&document, 7);
        let titles: Vec<&str> = all.iter().filter_map(|a| a["title"].as_str()).collect();
        let repair = "Forbid it under ptx: `.gpu` for `.cta` at line 5";
        let bless = "Bless: make the expectations what was decided";
        assert_eq!(titles, [repair, "Ask why", bless]);
        let edit = &all[0]["edit"]["changes"]["file:///MP.toml"][0];
        assert_eq!(edit["newText"], ".gpu");
        assert_eq!(
            edit["range"]["start"],
            json!({ "line": 4, "character": 10 })
        );
        assert_eq!(all[1]["command"]["arguments"][1], "ptx");
        // A place that the text does not have.
        document.report["answers"][0]["explanation"]["missing"]["edits"][0]["line"] = json!(4);
        assert_eq!(at(&document, 0).len(), 2);
    }
}
