//! `--list`: the tests of a run with their models and questions, undecided.

use std::collections::BTreeSet;

use serde::Serialize;

use super::plan::Unit;
use report::{ReportFormat, counted};

/// A test under a model, in the order of the run.
#[derive(Serialize)]
struct ListLine<'a> {
    path: &'a str,
    test: &'a str,
    model: &'a str,
    /// Empty if the command asks in another way than by properties.
    properties: Vec<String>,
}

/// The list of some units; `None`: the format has none.
pub(super) fn list(units: &[Unit<'_>], format: ReportFormat) -> Option<String> {
    let all: Vec<ListLine<'_>> = units.iter().map(ListLine::of).collect();
    match format {
        ReportFormat::Human => Some(human(&all)),
        ReportFormat::Json => serde_json::to_string(&all).ok().map(|text| text + "\n"),
        ReportFormat::Jsonl => {
            let lines = all.iter().map(serde_json::to_string);
            let lines: Vec<String> = lines.collect::<Result<_, _>>().ok()?;
            Some(lines.iter().map(|line| format!("{line}\n")).collect())
        }
        _ => None,
    }
}

impl<'a> ListLine<'a> {
    fn of(unit: &'a Unit<'_>) -> ListLine<'a> {
        let properties = unit.questions.iter().map(|q| q.property().to_string());
        ListLine {
            path: unit.path,
            test: &unit.source.name,
            model: &unit.model.request,
            properties: properties.collect(),
        }
    }
}

/// A line a test and model, and their numbers.
fn human(all: &[ListLine<'_>]) -> String {
    let mut text = String::new();
    for listed in all {
        text += &format!("{}: {} [{}]", listed.path, listed.test, listed.model);
        if !listed.properties.is_empty() {
            text += &format!(": {}", listed.properties.join(", "));
        }
        text.push('\n');
    }
    let files: BTreeSet<&str> = all.iter().map(|l| l.path).collect();
    let tests: BTreeSet<(&str, &str)> = all.iter().map(|l| (l.path, l.test)).collect();
    text += &format!(
        "{} in {}",
        counted(tests.len(), "test"),
        counted(files.len(), "file")
    );
    let questions: usize = all.iter().map(|l| l.properties.len()).sum();
    if questions > 0 {
        text += &format!(", {}", counted(questions, "question"));
    }
    text.push('\n');
    text
}
