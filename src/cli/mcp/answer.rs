//! Makes the answers of tools: a short text for the agent, and the verdicts as data.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::child::Finished;
use crate::cli::exit;

/// The parts of an answer in JSON that an agent gets; witnesses and proofs are too long.
const KEPT: [&str; 12] = [
    "test", "model", "property", "verdict", "expected", "bound", "reason", "axioms", "launch",
    "proved", "assumed", "up_to",
];

/// The longest text, in bytes.
const LONGEST: usize = 6000;

/// The answer for wrong arguments, and for calls that could not run.
pub(super) fn failed(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "isError": true })
}

/// The answer for a call that took too long.
pub(super) fn out_of_time(limit: Duration) -> Value {
    failed(&format!(
        "No answer within {} s: this says nothing about the program. Next: raise timeout_seconds \
        (at most 600), give a smaller launch (fewer blocks, threads or loop iterations), or ask \
        for one property.",
        limit.as_secs()
    ))
}

/// The answer from the output of a child.
pub(super) fn of(finished: &Finished) -> Value {
    let code = finished.code.and_then(|code| u8::try_from(code).ok());
    let mut text = finished.out.trim_end().to_owned();
    let errors = finished.err.trim_end();
    if !errors.is_empty() {
        if !text.is_empty() {
            text += "\n\n";
        }
        text += errors;
    }
    if let Some(next) = next(code, &finished.report) {
        text = format!("{text}\nNext: {next}");
    }
    let is_error = !matches!(code, Some(exit::OK | exit::UNMET | exit::UNDECIDED));
    let mut answer = json!({
        "content": [{ "type": "text", "text": cut(text) }],
        "isError": is_error,
    });
    if !is_error {
        answer["structuredContent"] = data(&finished.report);
    }
    answer
}

/// Shortens a text to whole lines.
fn cut(mut text: String) -> String {
    if text.len() > LONGEST {
        let at = text.as_bytes()[..LONGEST]
            .iter()
            .rposition(|&byte| byte == b'\n');
        text.truncate(at.unwrap_or(0));
        text += "\n… (cut; run `fencepost` on the file for the rest)";
    }
    text
}

/// The next step, if there is one that the text does not name.
fn next(code: Option<u8>, report: &Value) -> Option<&'static str> {
    match code {
        Some(exit::INVALID) => Some("correct the input at the places above, and call again."),
        Some(exit::NO_TEST) => Some("the input holds no kernel and no test; pass one."),
        Some(exit::DEFECT) | None => {
            Some("this is a defect of Fencepost, not of the program; do not rely on the answer.")
        }
        Some(exit::UNDECIDED) => Some(
            "`undecided` is no answer. Remove the named reason, give a smaller `launch`, or raise \
            timeout_seconds.",
        ),
        _ if has(
            report,
            &["racy", "undefined", "divergent", "hangs", "out-of-bounds"],
        ) =>
        {
            Some("apply the repair that the help names, if there is one, and call again.")
        }
        _ => None,
    }
}

/// Whether an answer of the report has one of these verdicts.
fn has(report: &Value, verdicts: &[&str]) -> bool {
    let answers = report["answers"].as_array();
    answers.into_iter().flatten().any(|answer| {
        let verdict = answer["verdict"].as_str();
        verdict.is_some_and(|verdict| verdicts.contains(&verdict))
    })
}

/// The verdicts as data.
fn data(report: &Value) -> Value {
    let list = ["answers", "advice"]
        .into_iter()
        .find_map(|key| report[key].as_array());
    let answers: Vec<Value> = list.into_iter().flatten().map(of_answer).collect();
    json!({ "answers": answers })
}

fn of_answer(answer: &Value) -> Value {
    let mut kept = serde_json::Map::new();
    for key in KEPT
        .iter()
        .chain(&["tests", "models", "changes", "diff", "cost"])
    {
        if let Some(value) = answer.get(*key).filter(|value| !value.is_null()) {
            kept.insert((*key).to_owned(), value.clone());
        }
    }
    let race = &answer["race"];
    if race.is_object() {
        let accesses = race["accesses"].as_array().into_iter().flatten();
        let lines: Vec<&Value> = accesses.map(|access| &access["line"]).collect();
        kept.insert("race_lines".to_owned(), json!(lines));
        kept.insert("race_place".to_owned(), race["place"].clone());
        if let Some(remedy) = race.get("remedy") {
            kept.insert("remedy".to_owned(), remedy.clone());
        }
    }
    let edits = &answer["explanation"]["missing"]["edits"];
    if edits.is_array() {
        kept.insert("remedy".to_owned(), edits.clone());
    }
    Value::Object(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(code: u8, report: Value) -> Finished {
        Finished {
            code: Some(i32::from(code)),
            out: "out\n".into(),
            err: "err\n".into(),
            report,
            sarif: Value::Null,
            text: None,
        }
    }

    #[test]
    fn invalid_input_is_an_error_and_a_racy_kernel_is_an_answer() {
        let invalid = of(&finished(exit::INVALID, Value::Null));
        assert_eq!(invalid["isError"], true);
        let text = invalid["content"][0]["text"].as_str().expect("text");
        assert!(text.starts_with("out\n\nerr\nNext: correct"), "{text}");
        let racy = json!({ "answers": [{ "verdict": "racy", "witness": {}, "race": {
            "place": "s[2]", "accesses": [{ "line": 8 }, { "line": 9 }] } }] });
        let racy = of(&finished(exit::UNMET, racy));
        assert_eq!(racy["isError"], false);
        let answer = &racy["structuredContent"]["answers"][0];
        assert_eq!(answer["race_lines"], json!([8, 9]));
        assert!(answer.get("witness").is_none());
        let text = racy["content"][0]["text"].as_str().expect("text");
        assert!(text.contains("Next: apply the repair"), "{text}");
    }

    #[test]
    fn long_texts_end_with_a_whole_line() {
        let text = "é line\n".repeat(2000);
        let short = cut(text);
        assert!(short.len() < LONGEST + 100);
        let body: Vec<&str> = short.lines().collect();
        assert!(body[..body.len() - 1].iter().all(|line| *line == "é line"));
    }
}
