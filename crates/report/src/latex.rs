//! `latex`: tables for papers, to be read with `\input`. Answers are a matrix of tests and models;
//! each list of outcomes is a table.
//!
//! # Invariants
//! - The tables need no package: `tabular` and `\hline`.
//! - Every character of TeX in a text is escaped.
//!
//! # Sources
//! - L. Lamport, *LaTeX: A Document Preparation System*: The tabular Environment; Special
//!   Characters.

use std::io::{self, Write};

use super::comparison::Comparison;
use super::line::{AnswerLine, OutcomeTable};
use super::reporter::Reporter;
use super::summary::Summary;
use super::verdicts::{VerdictMatrix, answer_word};

/// Writes outcomes at once, and the matrix of answers at the end.
#[derive(Clone, Debug, Default)]
pub struct Latex {
    matrix: VerdictMatrix,
}

/// Escapes a text.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '{' | '}' | '$' | '&' | '#' | '_' | '%' => out.extend(['\\', c]),
            '^' => out.push_str("\\textasciicircum{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '|' => out.push_str("\\textbar{}"),
            '"' => out.push_str("\\char34{}"),
            '\'' => out.push_str("\\char39{}"),
            '`' => out.push_str("\\char96{}"),
            // Two in a row are a dash.
            '-' => out.push_str("-{}"),
            // At the beginning of a row, a bracket would be an argument of the line break before.
            '[' => out.push_str("{[}"),
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

fn row(out: &mut dyn Write, cells: &[String]) -> io::Result<()> {
    writeln!(out, "  {} \\\\", cells.join(" & "))
}

/// Writes a table with its head.
fn table(
    out: &mut dyn Write,
    columns: &str,
    head: &[String],
    rows: impl Iterator<Item = Vec<String>>,
) -> io::Result<()> {
    writeln!(out, "\\begin{{tabular}}{{{columns}}}\n  \\hline")?;
    row(out, head)?;
    writeln!(out, "  \\hline")?;
    for cells in rows {
        row(out, &cells)?;
    }
    writeln!(out, "  \\hline\n\\end{{tabular}}")
}

fn code(text: &str) -> String {
    format!("\\texttt{{{}}}", escaped(text))
}

impl Reporter for Latex {
    fn line(&mut self, _: &mut dyn Write, line: &AnswerLine) -> io::Result<()> {
        self.matrix.add(line);
        Ok(())
    }

    fn comparison(&mut self, _: &mut dyn Write, comparison: &Comparison) -> io::Result<()> {
        self.matrix.add_comparison(comparison);
        Ok(())
    }

    fn table(&mut self, out: &mut dyn Write, outcomes: &OutcomeTable) -> io::Result<()> {
        let list = &outcomes.outcomes;
        let whole = if list.complete { "" } else { ", not complete" };
        let (test, model) = (&outcomes.test, &outcomes.model);
        writeln!(out, "% {} under {model}{whole}", diag::visible(test))?;
        let first = list.outcomes.first().map(|outcome| &outcome.state);
        let mut head: Vec<String> = first.into_iter().flatten().map(|v| code(&v.0)).collect();
        let columns = format!("{}l", "r".repeat(head.len()));
        head.push(escaped(model));
        let rows = list.outcomes.iter().map(|outcome| {
            let values = outcome.state.iter().map(|v| escaped(&v.1));
            values.chain([answer_word(outcome).to_owned()]).collect()
        });
        table(out, &columns, &head, rows)
    }

    fn end(&mut self, out: &mut dyn Write, _: &Summary) -> io::Result<()> {
        let matrix = &self.matrix;
        if matrix.rows.is_empty() {
            return Ok(());
        }
        let only = matrix.is_reachability();
        let fixed: &[&str] = if only {
            &["test"]
        } else {
            &["test", "property"]
        };
        let models = matrix.models.iter().map(|model| escaped(model));
        let head: Vec<String> = fixed
            .iter()
            .map(|name| (*name).to_owned())
            .chain(models)
            .collect();
        let rows = matrix.rows.iter().map(|((_, test, property), verdicts)| {
            let property = (!only).then(|| escaped(property));
            let of = |model| verdicts.get(model).map_or("--", String::as_str).to_owned();
            let verdicts = matrix.models.iter().map(of);
            [code(test)]
                .into_iter()
                .chain(property)
                .chain(verdicts)
                .collect()
        });
        table(out, &"l".repeat(head.len()), &head, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HumanOptions, ReportFormat, samples};
    use super::*;
    use verdict::Verdict;

    #[test]
    fn answers_are_a_matrix_of_tests_and_models() {
        let mut other = samples::line("MP", Verdict::Forbidden, None);
        other.model = "sc".into();
        let lines = [samples::line("MP", Verdict::Allowed, None), other];
        let text = samples::written_lines(ReportFormat::Latex, &lines);
        let expected = "\\begin{tabular}{lll}\n  \\hline\n  test & ptx-{}v7.5 & sc \\\\\n  \
                        \\hline\n  \\texttt{MP} & allowed & forbidden \\\\\n  \
                        \\hline\n\\end{tabular}\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_property_is_named_if_there_are_several() {
        let text = samples::written(ReportFormat::Latex, &HumanOptions::default());
        assert!(text.contains("test & property & ptx"), "{text}");
        assert!(text.contains("\\texttt{MP} & race & racy \\\\"), "{text}");
    }

    #[test]
    fn a_list_of_outcomes_is_a_table() {
        let (mut out, mut latex) = (Vec::new(), Latex::default());
        latex.table(&mut out, &samples::table()).unwrap();
        latex.end(&mut out, &Summary::default()).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.starts_with("% MP under ptx\n\\begin{tabular}{rrl}"),
            "{text}"
        );
        assert!(text.contains("  0 & 2 & allowed, racy \\\\\n"), "{text}");
    }

    #[test]
    fn names_are_no_commands() {
        assert_eq!(escaped("a_b & \\c"), "a\\_b \\& \\textbackslash{}c");
        assert_eq!(escaped("--'[x]"), "-{}-{}\\char39{}{[}x]");
    }
}
