//! `html`: a suite as one page: a table with search and filters, and for each answer its picture
//! and explanation.
//!
//! # Invariants
//! - The page is self-contained: it uses no network and no other file. Without its script, it shows
//!   the whole table unfiltered.
//! - Answers that need attention come first; each of the two parts is in the order of the answers.
//! - An answer has a picture if its line contains the evidence. The caller decides for which lines
//!   to keep it.
//!
//! # Sources
//! - WHATWG, *HTML*: the `details` and `template` elements.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::case::ReportCase;
use super::comparison::Comparison;
use super::line::AnswerLine;
use super::picture::escape::xml;
use super::picture::{RelationChoice, Scene, page, subject};
use super::reporter::Reporter;
use super::status::QueryStatus;
use super::summary::Summary;
use diag::Diagnostic;
use diag::visible;

const SCRIPT: &str = include_str!("html.js");

/// Writes `html`.
#[derive(Clone, Debug, Default)]
pub struct Html {
    /// The answers that need attention.
    first: String,
    rest: String,
    answers: usize,
    pictures: usize,
    models: BTreeSet<String>,
    properties: BTreeSet<String>,
    verdicts: BTreeSet<String>,
    diagnostics: Vec<String>,
}

/// The word for a result in the table.
fn word(status: QueryStatus, expected: bool) -> &'static str {
    match status {
        QueryStatus::Passed if expected => "as expected",
        QueryStatus::Passed => "answered",
        QueryStatus::Known => "known failure",
        QueryStatus::Undefined(_) => "undefined program",
        QueryStatus::Fault(_) => "fault",
        QueryStatus::Unmet => "not met",
        QueryStatus::Undecided(_) => "undecided",
        QueryStatus::Defect => "defect",
        QueryStatus::Invalid => "invalid",
    }
}

impl Html {
    fn row(&mut self, line: &AnswerLine) {
        let case = ReportCase::of(line);
        let bound = line.answer.bound.map_or(String::new(), |b| b.to_string());
        let cells = [
            &line.test,
            &line.model,
            &line.property.to_string(),
            line.answer.verdict.word(),
            line.expected.unwrap_or_default(),
            word(case.status, line.expected.is_some()),
            line.answer.engine,
            &bound,
        ];
        let (inside, drawn) = self.details(line, &case);
        self.add(&case, cells, &line.path, &inside, drawn);
    }

    /// Adds a row with its details.
    fn add(&mut self, case: &ReportCase, cells: [&str; 8], path: &str, inside: &str, drawn: bool) {
        let [
            test,
            model,
            property,
            verdict,
            expected,
            result,
            engine,
            bound,
        ] = cells.map(xml);
        self.answers += 1;
        for (set, word) in [
            (&mut self.models, cells[1]),
            (&mut self.properties, cells[2]),
            (&mut self.verdicts, cells[3]),
        ] {
            set.insert(word.to_owned());
        }
        let class = match case.status {
            QueryStatus::Passed => "good",
            QueryStatus::Known => "unsure",
            status if status.warns() => "unsure",
            _ => "bad",
        };
        let rows = if case.status.needs_attention() {
            &mut self.first
        } else {
            &mut self.rest
        };
        let _ = writeln!(
            rows,
            "<tbody data-model=\"{model}\" data-property=\"{property}\" data-verdict=\"{verdict}\" \
             data-result=\"{result}\">\n<tr><th \
             scope=\"row\">{test}</th><td>{model}</td><td>{property}</td>\
             <td>{verdict}</td><td>{expected}</td><td \
             class=\"{class}\">{result}</td><td>{engine}</td><td>{bound}</td></tr>"
        );
        let path = xml(path);
        let _ = write!(rows, "<tr><td colspan=\"8\">");
        let _ = match (inside, drawn) {
            ("", _) => write!(rows, "<small class=\"dim\">{path}</small>"),
            (_, drawn) => write!(
                rows,
                "<details><summary>why{} <small \
                 class=\"dim\">{path}</small></summary>\n{inside}</details>",
                if drawn { ", with a picture" } else { "" }
            ),
        };
        rows.push_str("</td></tr>\n</tbody>\n");
    }

    /// The details of an answer's row, and whether it has a picture.
    fn details(&mut self, line: &AnswerLine, case: &ReportCase) -> (String, bool) {
        let mut inside = String::new();
        if case.status.needs_attention() {
            let _ = writeln!(inside, "<p>{}</p>", xml(&case.line()));
        }
        let told = ["condition", "axioms", "at", "mapping", "note", "help"];
        for (name, value) in case.details.iter().filter(|(name, _)| told.contains(name)) {
            let _ = writeln!(
                inside,
                "<p><span class=\"dim\">{name}:</span> <code>{}</code></p>",
                xml(value)
            );
        }
        let subjects = subject::subjects(line);
        if !subjects.is_empty() {
            // The browser lays out a template only when it is shown.
            inside.push_str("<template>\n");
            for subject in &subjects {
                let scene = Scene::new(subject, &RelationChoice::default());
                page::figure(&mut inside, &scene, &format!("p{}", self.pictures));
                self.pictures += 1;
            }
            inside.push_str("</template>\n");
        }
        for text in subject::texts(line) {
            page::pre(&mut inside, &text);
        }
        (inside, !subjects.is_empty())
    }

    fn select(&self, out: &mut String, id: &str, label: &str, values: &BTreeSet<String>) {
        let _ = write!(
            out,
            "<label>{label} <select id=\"{id}\"><option value=\"\">all</option>"
        );
        for value in values {
            let value = xml(value);
            let _ = write!(out, "<option value=\"{value}\">{value}</option>");
        }
        out.push_str("</select></label>\n");
    }

    fn page(&self, summary: &Summary) -> String {
        let mut out = page::head("Fencepost: report", self.pictures > 0);
        out.push_str("<h1>Fencepost: report</h1>\n");
        let verdicts: Vec<_> = summary
            .verdicts()
            .map(|(word, n)| format!("{n} {word}"))
            .collect();
        let _ = writeln!(
            out,
            "<p>{} answers: {}.</p>",
            self.answers,
            verdicts.join(", ")
        );
        let expectations = summary.met + summary.unmet;
        if expectations > 0 {
            let class = if summary.unmet > 0 { "bad" } else { "good" };
            let _ = writeln!(
                out,
                "<p>{expectations} expectations were decided: {} met, <span class=\"{class}\">{} \
                 not met</span>.</p>",
                summary.met, summary.unmet
            );
        }
        for (kind, n) in &summary.undecided {
            let _ = writeln!(out, "<p class=\"unsure\">{n} undecided: {}.</p>", xml(kind));
        }
        if summary.passed_over > 0 {
            let _ = writeln!(
                out,
                "<p>{} (test, model) pairs were skipped: the model does not apply to the test.</p>",
                summary.passed_over
            );
        }
        if summary.defects > 0 {
            let _ = writeln!(
                out,
                "<p class=\"bad\">{} defects of Fencepost.</p>",
                summary.defects
            );
        }
        if summary.stopped {
            out.push_str(
                "<p class=\"bad\">The run stopped early: not every test was decided.</p>\n",
            );
        }
        for diagnostic in &self.diagnostics {
            let _ = writeln!(out, "<p class=\"bad\">{}</p>", xml(diagnostic));
        }
        out.push_str("<div class=\"controls\" hidden><fieldset><legend>Show</legend>\n");
        out.push_str(
            "<label>search <input type=\"search\" id=\"search\" placeholder=\"test, \
            file\"></label>\n",
        );
        self.select(&mut out, "model", "model", &self.models);
        self.select(&mut out, "property", "property", &self.properties);
        self.select(&mut out, "verdict", "verdict", &self.verdicts);
        let results = [
            "as expected",
            "answered",
            "not met",
            "known failure",
            "undefined program",
            "undecided",
            "defect",
        ]
        .map(str::to_owned);
        self.select(&mut out, "result", "result", &results.into());
        out.push_str("<span id=\"count\" role=\"status\"></span>\n</fieldset></div>\n");
        out.push_str("<div class=\"scroll\"><table class=\"suite\">\n<thead><tr>");
        for name in [
            "test", "model", "property", "verdict", "expected", "result", "engine", "bound",
        ] {
            let _ = write!(out, "<th scope=\"col\">{name}</th>");
        }
        out.push_str("</tr></thead>\n");
        out
    }
}

impl Reporter for Html {
    fn line(&mut self, _: &mut dyn Write, line: &AnswerLine) -> io::Result<()> {
        self.row(line);
        Ok(())
    }

    fn draws(&self) -> bool {
        true
    }

    fn diagnostic(&mut self, _: &mut dyn Write, diagnostic: &Diagnostic) -> io::Result<()> {
        self.diagnostics.push(visible(&diagnostic.message));
        Ok(())
    }

    fn comparison(&mut self, _: &mut dyn Write, comparison: &Comparison) -> io::Result<()> {
        comparison
            .columns
            .iter()
            .flat_map(|column| &column.lines)
            .for_each(|line| self.row(line));
        for finding in &comparison.findings {
            let case = ReportCase::of_finding(comparison, finding);
            let models = format!("{} and {}", finding.left, finding.right);
            let word = finding.relation.word();
            let cells = [
                &comparison.test,
                models.as_str(),
                "comparison",
                word,
                "",
                self::word(case.status, false),
                "",
                "",
            ];
            let inside = format!("<p>{}</p>\n", xml(&case.message));
            self.add(&case, cells, &comparison.path, &inside, false);
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
        out.write_all(self.page(summary).as_bytes())?;
        out.write_all(self.first.as_bytes())?;
        out.write_all(self.rest.as_bytes())?;
        write!(
            out,
            "</table></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HumanOptions, ReportFormat, samples};
    use super::*;
    use verdict::Verdict;

    #[test]
    fn every_answer_has_a_row() {
        let text = samples::written(ReportFormat::Html, &HumanOptions::default());
        assert_eq!(text.matches("<tbody ").count(), samples::lines().len());
        assert_eq!(text.matches("data-result=\"not met\"").count(), 1);
        assert!(
            text.contains("6 answers: 2 allowed, 2 forbidden, 1 racy, 1 undecided."),
            "{text}"
        );
        assert!(text.contains("engines differ: symbolic allowed"));
    }

    #[test]
    fn evidence_is_drawn_and_names_are_text() {
        let mut line = samples::line("</script><b>\n&", Verdict::Allowed, None);
        line.answer.witness = Some(samples::witness());
        let (mut out, mut html) = (Vec::new(), Html::default());
        html.line(&mut out, &line).unwrap();
        html.end(&mut out, &Summary::default()).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("<svg ").count(), 1);
        assert!(text.contains("&lt;/script&gt;&lt;b&gt;\u{23ce}&amp;") && !text.contains("<b>"));
    }
}
