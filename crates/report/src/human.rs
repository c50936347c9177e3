//! `human`: one aligned line per answer, the evidence where it was asked for, and one line of numbers at the end.
//!
//! Colours are always written; a stream that is no terminal takes them out again.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::execution::{end_line, execution, picture};
use super::line::visible;
use super::{Comparison, Line, Observations, Reporter, Summary, Table};
use verdict::{Definedness, Property, Reason, Verdict};

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const UNSURE: Style = AnsiColor::Yellow.on_default();
const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// How much to say, and how wide.
#[derive(Clone, Debug, Default)]
pub struct HumanOptions {
    /// Only what needs attention.
    pub quiet: bool,
    /// Engine and axioms of each answer.
    pub verbose: bool,
    /// Show the evidence: the execution, or the axioms.
    pub explain: bool,
    /// Width of the test column.
    pub test_width: usize,
    /// Width of the model column.
    pub model_width: usize,
    /// Width of the property column; 0 leaves it out, if reachability is all that is asked.
    pub property_width: usize,
}

/// Writes `human`.
#[derive(Clone, Debug)]
pub struct Human {
    options: HumanOptions,
}

impl Human {
    /// With these options.
    pub fn new(options: HumanOptions) -> Self {
        Human { options }
    }
}

/// The colour of a verdict's word says whether it is one, and whether it was expected; never whether it is "good".
fn verdict_style(line: &Line) -> Style {
    match (&line.answer.verdict, line.met()) {
        (Verdict::Undecided(_), _) => UNSURE,
        (_, Some(true)) => GOOD,
        (_, Some(false)) => BAD,
        (_, None) => BOLD,
    }
}

impl Reporter for Human {
    fn line(&mut self, out: &mut dyn Write, line: &Line) -> io::Result<()> {
        let options = &self.options;
        let answer = &line.answer;
        let attention = answer.defect.is_some() || answer.verdict.reason().is_some() || line.met() == Some(false);
        if options.quiet && !attention {
            return Ok(());
        }
        let (test, model) = (options.test_width, options.model_width);
        write!(out, "{:test$}  {DIM}{:model$}{DIM:#}  ", visible(&line.test), visible(&line.model))?;
        if options.property_width > 0 {
            write!(out, "{:1$}  ", line.property.to_string(), options.property_width)?;
        }
        // The quantifier is the condition's; other properties have none.
        let quantifier = if line.property == Property::Reachability { line.quantifier } else { "" };
        let style = verdict_style(line);
        let mut rest = Vec::new();
        match (line.expected, line.met()) {
            (Some(_), Some(true)) => rest.push("as expected".to_owned()),
            (Some(expected), Some(false)) => rest.push(format!("{BAD}NOT MET{BAD:#}: expected {expected}")),
            (Some(expected), None) => rest.push(format!("expected {expected}")),
            (None, _) => {}
        }
        rest.extend(undefined(answer.definedness.as_ref(), options.verbose));
        if let Some(fault) = &answer.fault {
            rest.push(fault.places());
        }
        rest.extend(line.mapping.map(|mapping| format!("via {mapping}")));
        let told = match &answer.definedness {
            Some(Definedness::Undecided(reason)) => Some(reason),
            _ => None,
        };
        rest.extend(answer.verdict.reason().filter(|reason| told != Some(*reason)).map(Reason::to_string));
        rest.extend(answer.bound.map(|bound| format!("loop bound {bound}")));
        if options.verbose {
            rest.push(answer.engine.to_owned());
            if !answer.axioms.is_empty() && !options.explain {
                rest.push(format!("by {}", answer.axioms.join(", ")));
            }
        }
        rest.extend(line.ms.map(|ms| format!("{ms} ms")));
        let word = answer.verdict.word();
        if rest.is_empty() {
            writeln!(out, "{DIM}{quantifier:7}{DIM:#} {style}{word}{style:#}")?;
        } else {
            writeln!(out, "{DIM}{quantifier:7}{DIM:#} {style}{word:9}{style:#}  {}", rest.join(", "))?;
        }
        for note in &line.notes {
            writeln!(out, "  note: {note}")?;
        }
        if let Some(defect) = &answer.defect {
            for (i, text) in defect.lines().enumerate() {
                let head = if i == 0 { "DEFECT:" } else { "       " };
                writeln!(out, "  {BAD}{head}{BAD:#} {text}")?;
            }
        }
        let hang = answer.witness.iter().flat_map(|w| &w.ends);
        if !options.explain && (options.verbose || line.met() == Some(false)) {
            for end in hang {
                end_line(out, end, 0)?;
            }
            if let Some(witness) = &answer.witness {
                picture(out, &witness.ends)?;
            }
        }
        if let (false, Some(explanation)) = (options.explain, &answer.explanation) {
            super::explanation::human(out, explanation, false)?;
        }
        if options.explain {
            explain(out, line, options.verbose)?;
            if let Some(fault) = line.fault() {
                super::fault::human(out, &line.path, fault, options.verbose)?;
            }
        }
        Ok(())
    }

    fn observations(&mut self, out: &mut dyn Write, observations: &Observations) -> io::Result<()> {
        if self.options.quiet && !observations.striking() {
            return Ok(());
        }
        super::observations::human(out, observations)
    }

    fn table(&mut self, out: &mut dyn Write, table: &Table) -> io::Result<()> {
        let list = &table.outcomes;
        write!(out, "{BOLD}{}{BOLD:#} under {}", visible(&table.test), visible(&table.model))?;
        if let Some(mapping) = table.mapping {
            write!(out, " via {mapping}")?;
        }
        match list.outcomes.iter().filter(|o| o.allowed).count() {
            1 => write!(out, ": 1 outcome allowed")?,
            n => write!(out, ": {n} outcomes allowed")?,
        }
        match (list.complete, &list.reason) {
            (true, _) => write!(out, ", and the list is complete")?,
            (false, None) => write!(out, ", {UNSURE}and the list is not complete{UNSURE:#}")?,
            (false, Some(why)) => write!(out, ", {UNSURE}and the list is not complete: {why}{UNSURE:#}")?,
        }
        if let Some(bound) = list.bound {
            write!(out, ", loop bound {bound}")?;
        }
        if self.options.verbose {
            write!(out, ", {}", list.engine)?;
        }
        if let Some(ms) = table.ms {
            write!(out, ", {ms} ms")?;
        }
        if let Some(text) = undefined(list.definedness.as_ref(), self.options.verbose) {
            write!(out, ", {text}")?;
        }
        writeln!(out)?;
        outcome_rows(out, table)?;
        if let Some(Definedness::Undefined(fault)) = &list.definedness {
            writeln!(out, "  the program is undefined, so that every outcome is possible:")?;
            super::fault::human(out, &table.path, fault, self.options.verbose)?;
        }
        if let Some(defect) = &list.defect {
            writeln!(out, "  {BAD}DEFECT:{BAD:#} {defect}")?;
        }
        writeln!(out)
    }

    fn comparison(&mut self, out: &mut dyn Write, comparison: &Comparison) -> io::Result<()> {
        if self.options.quiet && !comparison.striking() {
            return Ok(());
        }
        super::comparison::human(out, comparison, self.options.verbose)
    }

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
        for line in summary.comparisons().into_iter().chain(summary.observations()) {
            writeln!(out, "{line}")?;
        }
        writeln!(out, "{BOLD}{summary}{BOLD:#}")
    }
}

/// What the result line says of undefined behaviour.
fn undefined(definedness: Option<&Definedness>, verbose: bool) -> Option<String> {
    match definedness? {
        Definedness::Defined => verbose.then(|| "defined".to_owned()),
        Definedness::Undefined(fault) => Some(format!("{BAD}{}{BAD:#}", fault.brief())),
        Definedness::Undecided(reason) => {
            Some(format!("{UNSURE}not decided whether the program is defined: {reason}{UNSURE:#}"))
        }
    }
}

/// One row per outcome, one column per observable.
fn outcome_rows(out: &mut dyn Write, table: &Table) -> io::Result<()> {
    let rows = &table.outcomes.outcomes;
    let Some(first) = rows.first() else { return Ok(()) };
    let mut widths: Vec<usize> = first.state.iter().map(|(name, _)| name.chars().count()).collect();
    for row in rows {
        for (width, (_, value)) in widths.iter_mut().zip(&row.state) {
            *width = (*width).max(value.chars().count());
        }
    }
    let mut cells = |style: Style, cells: &mut dyn Iterator<Item = &str>, last: &str| -> io::Result<()> {
        write!(out, " ")?;
        for (cell, width) in cells.zip(&widths) {
            write!(out, " {style}{cell:>width$}{style:#}")?;
        }
        if last.is_empty() { writeln!(out) } else { writeln!(out, "  {last}") }
    };
    cells(DIM, &mut first.state.iter().map(|(name, _)| name.as_str()), "")?;
    for row in rows {
        let style = if row.allowed { Style::new() } else { DIM };
        let racy = match (&row.race, row.racy) {
            (Some(race), _) => format!(", racy: {}", race.places()),
            (None, true) => ", racy".to_owned(),
            (None, false) => String::new(),
        };
        let word = if row.allowed { "allowed" } else { "forbidden" };
        let mut values = row.state.iter().map(|(_, value)| value.as_str());
        cells(style, &mut values, &format!("{style}{word}{style:#}{racy}"))?;
    }
    Ok(())
}

/// Why the answer is what it is.
fn explain(out: &mut dyn Write, line: &Line, verbose: bool) -> io::Result<()> {
    if line.property == Property::Reachability && !line.proposition.is_empty() {
        let violates = if line.quantifier == "forall" { ", by a violation of it" } else { "" };
        writeln!(out, "  asked: {} ({}){violates}", line.quantifier, line.proposition)?;
    }
    let answer = &line.answer;
    match (&answer.verdict, &answer.witness) {
        (Verdict::Undecided(_), _) => return Ok(()),
        (_, Some(witness)) => execution(out, witness)?,
        (_, None) if !answer.axioms.is_empty() && answer.explanation.is_none() => {
            writeln!(out, "  together these axioms exclude every execution: {}", answer.axioms.join(", "))?;
        }
        (_, None) => {}
    }
    match (&answer.explanation, &answer.definedness) {
        // Of an undefined program, the fault says what is wrong.
        (Some(_), Some(Definedness::Undefined(_))) if answer.verdict == Verdict::Allowed => Ok(()),
        (Some(explanation), _) => super::explanation::human(out, explanation, verbose),
        (None, _) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use verdict::{Ending, ThreadEnd, Witness};

    use super::super::{Format, samples};
    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    fn options() -> HumanOptions {
        HumanOptions { test_width: 6, model_width: 8, property_width: 12, ..HumanOptions::default() }
    }

    #[test]
    fn lines_are_aligned_and_say_what_was_expected() {
        let text = plain(&samples::written(Format::Human, &options()));
        let expected = "\
MP-gpu  ptx-v7.5  reachability  exists  forbidden  as expected
MP      ptx-v7.5  reachability  exists  allowed    NOT MET: expected forbidden
MP      ptx-v7.5  race                  racy
Atom    ptx-v7.5  reachability  forall  forbidden  as expected
Loop    ptx-v7.5  reachability  exists  undecided  expected allowed, loop bound: P1 can go on after 4 iterations of the loop at line 7; try `--bound 8`, loop bound 4
Odd     ptx-v7.5  reachability  exists  allowed
  DEFECT: engines differ: symbolic allowed, enumerate forbidden
6 answers: 2 allowed, 2 forbidden, 1 racy, 1 undecided; 3 expectations, 1 NOT MET; undecided: 1 × loop bound; \
1 DEFECT; 1 error in the input
";
        assert_eq!(text, expected);
    }

    #[test]
    fn quiet_keeps_what_needs_attention() {
        let text = plain(&samples::written(Format::Human, &HumanOptions { quiet: true, ..options() }));
        let tests: Vec<_> = text.lines().filter_map(|l| l.split_whitespace().next()).collect();
        assert_eq!(tests, ["MP", "Loop", "Odd", "DEFECT:", "6"]);
    }

    #[test]
    fn an_execution_is_shown_by_threads() {
        let mut line = samples::line("MP", Verdict::Allowed, None);
        line.answer.witness = Some(samples::witness());
        let mut out = Vec::new();
        Human::new(HumanOptions { explain: true, ..options() }).line(&mut out, &line).unwrap();
        let text = plain(&String::from_utf8(out).unwrap());
        let expected = "
  asked: exists (P1:r0 == 1 /\\ P1:r1 == 0)
  by this execution:
    init
        a: W x = 0
    P0
        b: W x = 1  line 4: st.weak x, 1
    P1
        c: R x = 1  line 4: ld.weak r0, x
    rf  b->c
    co  a->b
    final state: P1:r0 = 1, x = 1
";
        assert_eq!(text.split_once('\n').unwrap().1, expected.trim_start_matches('\n'));
    }

    #[test]
    fn a_hang_is_told_by_threads() {
        let end = |thread: &str, ending, line, text: &str, why: &str| ThreadEnd {
            ending,
            line,
            text: text.into(),
            served: ending == Ending::Looping,
            why: why.into(),
            ..ThreadEnd::done(thread)
        };
        let mut line = samples::line("Spin", Verdict::Hangs, None);
        line.property = Property::Liveness("obe".into());
        let ends = vec![
            end("P0", Ending::Looping, 7, "ld.relaxed.gpu r0, f", "loops for ever, reading f = 0"),
            end("P1", Ending::Stopped, 0, "", "is not run at all: it has not started"),
        ];
        line.answer.witness = Some(Witness { ends, ..samples::witness() });
        let shown = |options: HumanOptions| {
            let mut out = Vec::new();
            Human::new(options).line(&mut out, &line).unwrap();
            plain(&String::from_utf8(out).unwrap())
        };
        let told = "      P0  looping  loops for ever, reading f = 0  line 7: ld.relaxed.gpu r0, f\n      P1  stopped  is not run at all: it has not started\n";
        assert!(!shown(options()).contains("looping"));
        for options in [HumanOptions { verbose: true, ..options() }, HumanOptions { explain: true, ..options() }] {
            let text = shown(options);
            assert!(text.ends_with(told), "{text}");
        }
    }

    #[test]
    fn outcomes_are_a_table() {
        let mut out = Vec::new();
        Human::new(options()).table(&mut out, &samples::table()).unwrap();
        let text = plain(&String::from_utf8(out).unwrap());
        let expected = "MP under ptx: 1 outcome allowed, and the list is complete\n  P1:r0  x\n      0  2  allowed, racy\n      1 10  forbidden\n\n";
        assert_eq!(text, expected);
    }
}
