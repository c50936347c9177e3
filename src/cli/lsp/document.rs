//! Holds an open document: its language, its errors, and the verdicts of its last run.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::text;
use cat::model::{OnDisk, declares_free, load};
use diag::{Diagnostic, Severity, SourceFile};
use engine::skeleton::signature::signature;

/// The longest text that is read while it is typed, in bytes. Longer ones are left alone.
const LONGEST: usize = 4 << 20;

/// How the server treats a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DocumentKind {
    /// A litmus test in TOML.
    Toml,
    /// A litmus test in the notation of published suites.
    Litmus,
    /// A memory model.
    Cat,
    /// A source file with kernels.
    Source,
}

impl DocumentKind {
    /// From the ending of the name; `None`: the server leaves the document alone.
    fn of(path: &Path) -> Option<DocumentKind> {
        let name = path.file_name()?.to_str()?;
        match path.extension()?.to_str()? {
            "toml" if !matches!(name, "Cargo.toml" | "fencepost.toml") => Some(DocumentKind::Toml),
            "litmus" => Some(DocumentKind::Litmus),
            "cat" => Some(DocumentKind::Cat),
            "cu" | "cuh" | "cl" | "ptx" => Some(DocumentKind::Source),
            _ => None,
        }
    }

    /// Whether it is decided as it is typed. A source file is decided when it is saved.
    pub(super) fn is_decided_at_once(self) -> bool {
        matches!(self, DocumentKind::Toml | DocumentKind::Litmus)
    }
}

/// An open document.
pub(super) struct Document {
    pub(super) uri: String,
    pub(super) path: PathBuf,
    pub(super) language: DocumentKind,
    pub(super) version: Value,
    pub(super) text: String,
    /// The reports of the last run over this text; null if it has not ended.
    pub(super) report: Value,
    pub(super) sarif: Value,
}

impl Document {
    /// The document of a notification; `None` if the server leaves it alone.
    pub(super) fn new(item: &Value) -> Option<Document> {
        let uri = item["uri"].as_str()?.to_owned();
        let path = path_of(&uri);
        Some(Document {
            language: DocumentKind::of(&path)?,
            path,
            uri,
            version: item["version"].clone(),
            text: item["text"].as_str()?.to_owned(),
            report: Value::Null,
            sarif: Value::Null,
        })
    }

    /// Another text, of which nothing is decided.
    pub(super) fn change(&mut self, version: &Value, text: &str) {
        self.version = version.clone();
        text.clone_into(&mut self.text);
        self.report = Value::Null;
        self.sarif = Value::Null;
    }

    /// Whether the text is too long to be read.
    pub(super) fn is_too_long(&self) -> bool {
        self.text.len() > LONGEST
    }

    /// The name of the file.
    pub(super) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// The errors and warnings of the text; decides nothing.
    pub(super) fn problems(&self) -> Vec<Diagnostic> {
        if self.is_too_long() {
            let (size, most) = (self.text.len() >> 20, LONGEST >> 20);
            let message = format!("this text has {size} MiB; it is not checked above {most} MiB");
            let help = format!("`fencepost check {}` checks the file", self.name());
            return vec![Diagnostic::plain("long-text", message).warning().help(help)];
        }
        match self.language {
            DocumentKind::Toml | DocumentKind::Litmus => {
                match front::litmus::read(&self.name(), self.text.as_bytes()) {
                    Ok(file) => file.warnings,
                    Err(errors) => errors,
                }
            }
            DocumentKind::Cat => {
                let main = SourceFile::new(self.name(), self.text.clone());
                let signature = signature();
                let includes = OnDisk::of(&self.path);
                // A file without free relations takes a prelude. Which one, a test would say.
                let prelude = (!declares_free(&main, &includes)).then_some("ptx");
                let read = load(main, &self.name(), &includes, &signature, prelude);
                read.err().unwrap_or_default()
            }
            DocumentKind::Source => Vec::new(),
        }
    }

    /// The problems and the findings of the last run, as the editor wants them.
    pub(super) fn diagnostics(&self, problems: &[Diagnostic]) -> Vec<Value> {
        let mut all: Vec<Value> = problems
            .iter()
            .map(|problem| self.diagnostic(problem))
            .collect();
        let results = self.sarif["runs"][0]["results"].as_array();
        all.extend(
            results
                .into_iter()
                .flatten()
                .map(|result| self.finding(result)),
        );
        all
    }

    fn diagnostic(&self, problem: &Diagnostic) -> Value {
        let here = |source: &SourceFile| source.name == self.name();
        let range = match &problem.source {
            Some(source) if here(source) => {
                let (start, end) = (problem.span.start as usize, problem.span.end as usize);
                text::range(&self.text, start, end)
            }
            _ => text::range(&self.text, 0, 0),
        };
        let mut message = problem.message.clone();
        if !problem.label.is_empty() {
            message += &format!("\n{}", problem.label);
        }
        for note in &problem.notes {
            message += &format!("\nnote: {note}");
        }
        if let Some(help) = &problem.help {
            message += &format!("\nhelp: {help}");
        }
        json!({
            "range": range,
            "severity": if problem.severity == Severity::Error { 1 } else { 2 },
            "code": problem.id,
            "source": "fencepost",
            "message": message,
        })
    }

    /// A result of a report in SARIF.
    fn finding(&self, result: &Value) -> Value {
        let region = &result["locations"][0]["physicalLocation"]["region"];
        let number = |key: &str| region[key].as_u64().and_then(|n| usize::try_from(n).ok());
        let (line, column) = (
            number("startLine").unwrap_or(1),
            number("startColumn").unwrap_or(1),
        );
        let severity = match result["level"].as_str() {
            Some("error") => 1,
            Some("warning") => 2,
            _ => 3,
        };
        let code = match result["ruleId"].as_str() {
            Some("invalid-input") => result["properties"]["id"].clone(),
            _ => result["ruleId"].clone(),
        };
        json!({
            "range": text::rest_of_line(&self.text, line, column),
            "severity": severity,
            "code": code,
            "source": "fencepost",
            "message": result["message"]["text"],
        })
    }

    /// The answers of the last run.
    pub(super) fn answers(&self) -> impl Iterator<Item = &Value> {
        self.report["answers"].as_array().into_iter().flatten()
    }
}

/// The path of a URI with the scheme `file`; other URIs stay as they are.
fn path_of(uri: &str) -> PathBuf {
    let path = uri.strip_prefix("file://").unwrap_or(uri);
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        let hex = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match hex.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(name: &str, text: &str) -> Option<Document> {
        let uri = format!("file:///a%20b/{name}");
        Document::new(&json!({ "uri": uri, "version": 1, "text": text }))
    }

    #[test]
    fn names_say_the_language_and_escapes_are_read() {
        let test = document("MP.toml", "").expect("a test");
        assert_eq!(
            (test.language, test.path),
            (DocumentKind::Toml, "/a b/MP.toml".into())
        );
        assert!(document("Cargo.toml", "").is_none());
        assert!(document("notes.md", "").is_none());
        assert_eq!(path_of("untitled:%zz%4"), PathBuf::from("untitled:%zz%4"));
    }

    #[test]
    fn a_wrong_model_and_a_wrong_test_have_problems_at_their_places() {
        let model = document("m.cat", "acyclic po | rff as sc\n").expect("a model");
        let problems = model.problems();
        let diagnostics = model.diagnostics(&problems);
        assert_eq!(
            diagnostics[0]["range"]["start"],
            json!({ "line": 0, "character": 13 })
        );
        assert!(
            document("m.cat", "acyclic po | rf as sc\n")
                .expect("a model")
                .problems()
                .is_empty()
        );
        let test = document("a.toml", "name = \"a\"\ncolour = 1\n").expect("a test");
        assert!(!test.problems().is_empty());
    }

    #[test]
    fn findings_of_a_report_keep_place_and_severity() {
        let mut source = document("k.cu", "a\n  b = c;\n").expect("a source file");
        source.sarif = json!({ "runs": [{ "results": [{
            "ruleId": "program-fault",
            "level": "error",
            "message": { "text": "threads race" },
            "locations": [{ "physicalLocation": { "region": { "startLine": 2 } } }],
        }] }] });
        let all = source.diagnostics(&[]);
        assert_eq!(
            all[0]["range"]["start"],
            json!({ "line": 1, "character": 2 })
        );
        assert_eq!(
            (&all[0]["severity"], &all[0]["code"]),
            (&json!(1), &json!("program-fault"))
        );
    }
}
