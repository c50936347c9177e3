//! `csv`: one row for each answer; for `compare` one for each test and property, with a column for
//! each model; for `outcomes` one for each outcome.
//!
//! # Invariants
//! - The first row names the columns. A run has rows of one form.
//! - No text of a test ends a cell, or begins a formula in a spreadsheet.
//!
//! # Sources
//! - RFC 4180, *Common Format and MIME Type for Comma-Separated Values (CSV) Files*.
//! - OWASP, *CSV Injection*.

use std::io::{self, Write};

use super::comparison::Comparison;
use super::line::{AnswerLine, OutcomeTable};
use super::reporter::Reporter;
use super::summary::Summary;
use super::verdicts::{VerdictMatrix, answer_word};

/// Writes answers and outcomes at once, and the matrix of a comparison at the end.
#[derive(Clone, Debug, Default)]
pub struct Csv {
    started: bool,
    matrix: VerdictMatrix,
}

impl Csv {
    /// Writes the names of the columns before the first row.
    fn start(&mut self, out: &mut dyn Write, names: &str) -> io::Result<()> {
        match std::mem::replace(&mut self.started, true) {
            true => Ok(()),
            false => writeln!(out, "{names}"),
        }
    }
}

/// Quotes a text if it needs quotes.
fn cell(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '@', '\t', '\r'])
        || text.starts_with('-') && text.parse::<f64>().is_err();
    let guarded = if formula {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    match guarded.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", guarded.replace('"', "\"\"")),
        false => guarded,
    }
}

fn row(out: &mut dyn Write, cells: &[&str]) -> io::Result<()> {
    let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
    writeln!(out, "{}", cells.join(","))
}

impl Reporter for Csv {
    fn line(&mut self, out: &mut dyn Write, line: &AnswerLine) -> io::Result<()> {
        self.start(out, "path,test,model,property,quantifier,verdict,expected")?;
        let property = line.property.to_string();
        let verdict = line.answer.verdict.word();
        let expected = line.expected.unwrap_or_default();
        let (path, test, model) = (&line.path, &line.test, &line.model);
        row(
            out,
            &[
                path,
                test,
                model,
                &property,
                line.quantifier,
                verdict,
                expected,
            ],
        )
    }

    fn comparison(&mut self, _: &mut dyn Write, comparison: &Comparison) -> io::Result<()> {
        self.matrix.add_comparison(comparison);
        Ok(())
    }

    fn table(&mut self, out: &mut dyn Write, table: &OutcomeTable) -> io::Result<()> {
        self.start(out, "path,test,model,complete,outcome,answer")?;
        let complete = table.outcomes.complete.to_string();
        for outcome in &table.outcomes.outcomes {
            let values = outcome
                .state
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            let state = values.collect::<Vec<_>>().join(" ");
            let (path, test, model) = (&table.path, &table.test, &table.model);
            row(
                out,
                &[path, test, model, &complete, &state, answer_word(outcome)],
            )?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, _: &Summary) -> io::Result<()> {
        if self.matrix.rows.is_empty() {
            return Ok(());
        }
        let models = self.matrix.models.iter().map(String::as_str);
        let heads: Vec<&str> = ["path", "test", "property"]
            .into_iter()
            .chain(models)
            .collect();
        row(out, &heads)?;
        for ((path, test, property), verdicts) in &self.matrix.rows {
            let mut cells = vec![path.as_str(), test, property];
            let of = |model| verdicts.get(model).map_or("", String::as_str);
            cells.extend(self.matrix.models.iter().map(of));
            row(out, &cells)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HumanOptions, ReportFormat, samples};
    use super::*;

    #[test]
    fn every_answer_is_a_row() {
        let text = samples::written(ReportFormat::Csv, &HumanOptions::default());
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows.len(), 7, "{text}");
        assert_eq!(
            rows[..2],
            [
                "path,test,model,property,quantifier,verdict,expected",
                "ptx/MP-gpu.litmus,MP-gpu,ptx-v7.5,reachability,exists,forbidden,forbidden"
            ]
        );
        assert!(rows[5].ends_with("exists,undecided,allowed"), "{text}");
    }

    #[test]
    fn every_outcome_is_a_row() {
        let (mut out, mut csv) = (Vec::new(), Csv::default());
        csv.table(&mut out, &samples::table()).unwrap();
        csv.end(&mut out, &Summary::default()).unwrap();
        let expected = "path,test,model,complete,outcome,answer\n\
                        MP.toml,MP,ptx,true,P1:r0=0 x=2,\"allowed, racy\"\n\
                        MP.toml,MP,ptx,true,P1:r0=1 x=10,forbidden\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn no_text_ends_a_cell_or_is_a_formula() {
        assert_eq!(cell("a,b"), "\"a,b\"");
        assert_eq!(cell("a\"b\nc"), "\"a\"\"b\nc\"");
        assert_eq!(cell("=1+1"), "'=1+1");
        assert_eq!(cell("-x"), "'-x");
        assert_eq!((cell("-1"), cell("plain")), ("-1".into(), "plain".into()));
    }
}
