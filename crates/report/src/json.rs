//! `jsonl`: one object per answer, one per line. `json`: one object for the whole run,
//! `{"version":1,"answers":[…],"summary":{…}}`; each answer has the keys of a `jsonl` line. The
//! list is called `tables` for `outcomes`, `runs` for `run`, `searches` for `distinguish`, and
//! `compilers` for `compilers`, where it also holds the searches. If the input has errors, `errors`
//! follows the summary: one object for each, with its place.

use std::io::{self, Write};

use diag::Diagnostic;
use serde::Serialize;

use super::advice::AdviceReport;
use super::answer;
use super::comparison::Comparison;
use super::compiled::CompiledReport;
use super::distinction::Distinction;
use super::line::{AnswerLine, OutcomeTable};
use super::observations::Observations;
use super::reporter::Reporter;
use super::suite::ConformanceSuite;
use super::summary::Summary;

/// The version of the format; it changes if a key is removed or changes its meaning.
pub(super) const VERSION: u32 = 1;

/// Writes `json` or `jsonl`, object by object.
#[derive(Clone, Debug, Default)]
pub struct Json {
    /// Whether to write one object for the whole run instead of a line for each.
    whole: bool,
    started: bool,
    errors: Vec<InputError>,
}

/// An error in the input. Lines and columns count from 1; an error without a place has neither.
#[derive(Clone, Debug, Serialize)]
struct InputError {
    id: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "String::is_empty")]
    label: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

impl InputError {
    fn of(diagnostic: &Diagnostic) -> InputError {
        let start = diagnostic.span.start as usize;
        let source = diagnostic.source.as_ref();
        let place = source.map(|source| source.line_column(start));
        InputError {
            id: diagnostic.id,
            message: diagnostic.message.clone(),
            path: source.map(|source| source.part(start).0.to_owned()),
            line: place.map(|(line, _)| line),
            column: place.map(|(_, column)| column),
            label: diagnostic.label.clone(),
            notes: diagnostic.notes.clone(),
            help: diagnostic.help.clone(),
        }
    }
}

impl Json {
    /// The writer of `json`.
    pub fn whole() -> Json {
        Json {
            whole: true,
            ..Json::default()
        }
    }

    /// The writer of `jsonl`.
    pub fn lines() -> Json {
        Json::default()
    }

    /// Writes an object of a list.
    fn object(
        &mut self,
        out: &mut dyn Write,
        list: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let first = !std::mem::replace(&mut self.started, true);
        match (self.whole, first) {
            (true, true) => writeln!(out, "{{\"version\":{VERSION},\"{list}\":[")?,
            (true, false) => out.write_all(b",\n")?,
            (false, _) => {}
        }
        write(out)?;
        if self.whole {
            Ok(())
        } else {
            out.write_all(b"\n")
        }
    }
}

impl Reporter for Json {
    fn line(&mut self, out: &mut dyn Write, line: &AnswerLine) -> io::Result<()> {
        self.object(out, "answers", |out| answer::write_line(out, line))
    }

    fn diagnostic(&mut self, _: &mut dyn Write, diagnostic: &Diagnostic) -> io::Result<()> {
        self.errors.push(InputError::of(diagnostic));
        Ok(())
    }

    fn table(&mut self, out: &mut dyn Write, table: &OutcomeTable) -> io::Result<()> {
        self.object(out, "tables", |out| answer::write_table(out, table))
    }

    fn observations(&mut self, out: &mut dyn Write, observations: &Observations) -> io::Result<()> {
        self.object(out, "runs", |out| {
            super::observations::write(out, observations)
        })
    }

    fn distinction(&mut self, out: &mut dyn Write, distinction: &Distinction) -> io::Result<()> {
        self.object(out, "searches", |out| {
            super::distinction::write(out, distinction)
        })
    }

    fn suite(&mut self, out: &mut dyn Write, suite: &ConformanceSuite) -> io::Result<()> {
        self.object(out, "suites", |out| super::suite::write(out, suite))
    }

    fn compiled(&mut self, out: &mut dyn Write, compiled: &CompiledReport) -> io::Result<()> {
        self.object(out, "compilers", |out| {
            super::compiled::write(out, compiled)
        })
    }

    fn advice(&mut self, out: &mut dyn Write, advice: &AdviceReport) -> io::Result<()> {
        self.object(out, "advice", |out| super::advice::write(out, advice))
    }

    fn comparison(&mut self, out: &mut dyn Write, comparison: &Comparison) -> io::Result<()> {
        for (column, this) in comparison.columns.iter().enumerate() {
            for line in 0..this.lines.len() {
                self.object(out, "answers", |out| {
                    answer::write_compared(out, comparison, column, line)
                })?;
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
        match (self.whole, self.started) {
            (false, _) => return Ok(()),
            (true, true) => out.write_all(b"\n],\"summary\":")?,
            (true, false) => write!(out, "{{\"version\":{VERSION},\"answers\":[],\"summary\":")?,
        }
        super::compact::write(out, summary)?;
        if !self.errors.is_empty() {
            out.write_all(b",\"errors\":")?;
            super::compact::write(out, &self.errors)?;
        }
        out.write_all(b"}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HumanOptions, ReportFormat, samples};
    use super::*;

    #[test]
    fn it_is_one_object_with_a_summary() {
        let text = samples::written(ReportFormat::Json, &HumanOptions::default());
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["version"], 1);
        assert_eq!(value["answers"].as_array().unwrap().len(), 6);
        assert_eq!(value["answers"][1]["verdict"], "allowed");
        assert_eq!(
            text.lines().last().unwrap(),
            r#"],"summary":{"answers":6,"verdicts":{"allowed":2,"forbidden":2,"racy":1,"undecided":1},"met":2,"unmet":1,"undecided":{"loop bound":1},"defects":1,"invalid":1,"passed_over":0,"stopped":false}}"#
        );
    }

    #[test]
    fn errors_of_the_input_follow_with_their_places() {
        let source = diag::SourceFile::new("a.toml", "name = 1\nb\n");
        let error = Diagnostic::error("odd-key", &source, diag::Span::new(9, 10), "odd").help("c");
        let (mut out, mut json) = (Vec::new(), Json::whole());
        json.diagnostic(&mut out, &error).unwrap();
        json.end(&mut out, &Summary::default()).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let expected = serde_json::json!([{ "id": "odd-key", "message": "odd", "path": "a.toml",
            "line": 2, "column": 1, "help": "c" }]);
        assert_eq!(value["errors"], expected);
    }

    #[test]
    fn without_answers_it_is_still_an_object() {
        let mut out = Vec::new();
        Json::whole().end(&mut out, &Summary::default()).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["answers"], serde_json::json!([]));
    }
}
