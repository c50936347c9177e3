//! `human`: the answers that need attention, with place and next action, and a summary line.
//! Verbose output has one aligned line per answer, with evidence on request.
//!
//! Colours are always written; the caller removes them if the stream is not a terminal.
//!
//! # Invariants
//! - Lines fold between words if a width is given. No input text reaches the terminal as a command.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::iter;

use anstyle::{AnsiColor, Style};

use super::advice::AdviceReport;
use super::case::{ReportCase, outcome};
use super::comparison::Comparison;
use super::compiled::CompiledReport;
use super::distinction::Distinction;
use super::execution::{end_line, execution, picture, state_text};
use super::fold::fold;
use super::line::{AnswerLine, OutcomeTable};
use super::observations::Observations;
use super::reporter::Reporter;
use super::status::QueryStatus;
use super::suite::ConformanceSuite;
use super::summary::Summary;
use diag::{render, visible};
use verdict::{Definedness, Property, Reason, Verdict};

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const UNSURE: Style = AnsiColor::Yellow.on_default();
const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// The amount of output and its width.
#[derive(Clone, Debug, Default)]
pub struct HumanOptions {
    /// Only what needs attention.
    pub quiet: bool,
    /// Every answer, with its engine and axioms.
    pub verbose: bool,
    /// Every answer with evidence: the execution, or the axioms.
    pub explain: bool,
    /// Few answers were requested: answers without expectations are shown, too.
    pub few: bool,
    /// The limit on columns of a line; `None`: no limit.
    pub columns: Option<usize>,
    /// Names shared by several tests; only paths distinguish these.
    pub namesakes: BTreeSet<String>,
    /// Width of the test column.
    pub test_width: usize,
    /// Width of the model column.
    pub model_width: usize,
    /// Width of the property column; 0 hides it, if all answers are about reachability.
    pub property_width: usize,
}

impl HumanOptions {
    /// The name of a test, with its path if the name is ambiguous.
    pub fn called(&self, test: &str, path: &str) -> String {
        visible(&if self.namesakes.contains(test) {
            format!("{test} ({path})")
        } else {
            test.to_owned()
        })
    }
}

/// Writes `human`.
#[derive(Clone, Debug)]
pub struct Human {
    options: HumanOptions,
    /// The kernel that was last said to be undecided, and why.
    undecided: Option<(String, String, String)>,
}

impl Human {
    /// With these options.
    pub fn new(options: HumanOptions) -> Self {
        let undecided = None;
        Human { options, undecided }
    }

    /// Writes lines, folded to the width.
    fn told(
        &self,
        out: &mut dyn Write,
        tell: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut text = Vec::new();
        tell(&mut text)?;
        out.write_all(fold(&String::from_utf8_lossy(&text), self.options.columns).as_bytes())
    }

    /// Writes an answer that needs attention: the expected and actual answer, and the next action.
    fn attention(
        &self,
        out: &mut dyn Write,
        line: &AnswerLine,
        case: &ReportCase,
    ) -> io::Result<()> {
        let style = match case.status {
            QueryStatus::Known => DIM,
            status if status.warns() => UNSURE,
            _ => BAD,
        };
        let place = case
            .site
            .as_ref()
            .map_or(String::new(), |site| format!("{site}: "));
        let property = if line.property == Property::Reachability {
            ""
        } else {
            &format!(", {}", line.property)
        };
        let via = line
            .mapping
            .map_or(String::new(), |mapping| format!(" via {mapping}"));
        let (test, model) = (visible(&line.test), visible(&line.model));
        let ms = line.ms.map_or(String::new(), |ms| format!(", {ms} ms"));
        let message = &case.message;
        let set: String = line.set().map(|set| format!(", {set}")).collect();
        writeln!(
            out,
            "{BOLD}{place}{BOLD:#}{style}{message}{style:#}: {test} under \
             {model}{via}{property}{set}{ms}"
        )?;
        if let Some(help) = &case.help {
            writeln!(out, "  help: {help}")?;
        }
        if self.options.verbose {
            defect(out, line)?;
            racing(out, line)?;
            if let Some(witness) = &line.answer.witness {
                witness
                    .ends
                    .iter()
                    .try_for_each(|end| end_line(out, end, 0))?;
                picture(out, &witness.ends)?;
            }
            if let Some(explanation) = &line.answer.explanation {
                super::explanation::human(out, explanation, false)?;
            }
        }
        Ok(())
    }

    /// The remarks at the end of an answer's line.
    fn remarks(&self, line: &AnswerLine) -> Vec<String> {
        let (options, answer) = (&self.options, &line.answer);
        let mut rest = Vec::new();
        match (line.expected, line.met()) {
            (Some(_), Some(true)) => rest.push("as expected".to_owned()),
            (Some(expected), Some(false)) => {
                let under = line
                    .reading
                    .as_ref()
                    .map(|r| format!("{} under `{}`", r.expected, r.under));
                let expected = under.as_deref().unwrap_or(expected);
                rest.push(format!("{BAD}NOT MET{BAD:#}: expected {expected}"));
            }
            (Some(expected), None) => rest.push(format!("expected {expected}")),
            (None, _) => {}
        }
        rest.extend(undefined(answer.definedness.as_ref(), options.verbose));
        if let Some(fault) = &answer.fault {
            rest.push(fault.places());
        }
        rest.extend(line.further_races());
        rest.extend(line.set());
        rest.extend(line.mapping.map(|mapping| format!("via {mapping}")));
        let told = match &answer.definedness {
            Some(Definedness::Undecided(reason)) => Some(reason),
            _ => None,
        };
        rest.extend(
            answer
                .verdict
                .reason()
                .filter(|reason| told != Some(*reason))
                .map(Reason::to_string),
        );
        rest.extend(answer.bound.map(|bound| format!("loop bound {bound}")));
        if options.verbose {
            rest.push(answer.engine.to_owned());
            if !answer.axioms.is_empty() && !options.explain {
                rest.push(format!("by {}", answer.axioms.join(", ")));
            }
        }
        rest.extend(line.ms.map(|ms| format!("{ms} ms")));
        rest
    }

    /// One line per answer.
    fn row(&self, out: &mut dyn Write, line: &AnswerLine) -> io::Result<()> {
        let options = &self.options;
        let answer = &line.answer;
        let (test, model) = (options.test_width, options.model_width);
        let name = options.called(&line.test, &line.path);
        write!(
            out,
            "{name:test$}  {DIM}{:model$}{DIM:#}  ",
            visible(&line.model)
        )?;
        if options.property_width > 0 {
            write!(
                out,
                "{:1$}  ",
                line.property.to_string(),
                options.property_width
            )?;
        }
        // The quantifier belongs to the condition; other properties have none.
        let quantifier = if line.property == Property::Reachability {
            line.quantifier
        } else {
            ""
        };
        let style = verdict_style(line);
        let rest = self.remarks(line);
        let unasked = line.quantifier == "none" && line.property == Property::Reachability;
        let word = match outcome(line) {
            "violated" if !line.values().is_empty() => {
                &format!("violated, by {}", state_text(line.values()))
            }
            "allowed" if unasked => "no condition given; some execution exists",
            "forbidden" if unasked => "no condition given; no execution exists",
            word => word,
        };
        let quantifier = if unasked { "" } else { quantifier };
        if rest.is_empty() {
            writeln!(out, "{DIM}{quantifier:7}{DIM:#} {style}{word}{style:#}")?;
        } else {
            writeln!(
                out,
                "{DIM}{quantifier:7}{DIM:#} {style}{word:9}{style:#}  {}",
                rest.join(", ")
            )?;
        }
        defect(out, line)?;
        if options.verbose || options.explain {
            racing(out, line)?;
        }
        if !options.explain {
            if let (true, Some(witness)) = (options.verbose, &answer.witness) {
                witness
                    .ends
                    .iter()
                    .try_for_each(|end| end_line(out, end, 0))?;
                picture(out, &witness.ends)?;
            }
            return match &answer.explanation {
                Some(explanation) => super::explanation::human(out, explanation, false),
                None => Ok(()),
            };
        }
        explain(out, line, options.verbose)?;
        match line.fault() {
            Some(fault) => super::fault::human(out, &line.path, fault, options.verbose),
            None => Ok(()),
        }
    }
}

/// All races, if there are more than the answer shows.
fn racing(out: &mut dyn Write, line: &AnswerLine) -> io::Result<()> {
    let races = line.answer.races.iter().flat_map(|races| &races.pairs);
    for pair in races.filter(|_| line.further_races().is_some()) {
        let on = pair
            .place
            .as_ref()
            .map_or(String::new(), |place| format!(" on `{place}`"));
        let of = pair
            .events
            .each_ref()
            .map(|event| format!("`{}`", event.event.text.trim()));
        writeln!(
            out,
            "  race{}: {}, {} and {}",
            visible(&on),
            visible(&pair.places()),
            visible(&of[0]),
            visible(&of[1])
        )?;
    }
    Ok(())
}

/// The broken law of a defect.
fn defect(out: &mut dyn Write, line: &AnswerLine) -> io::Result<()> {
    let texts = line
        .answer
        .defect
        .iter()
        .flat_map(|defect| defect.lines())
        .enumerate();
    texts.into_iter().try_for_each(|(i, text)| {
        let head = if i == 0 { "DEFECT:" } else { "       " };
        writeln!(out, "  {BAD}{head}{BAD:#} {text}")
    })
}

/// The colour of a verdict shows whether it is decided and expected; never whether it is "good".
fn verdict_style(line: &AnswerLine) -> Style {
    match (&line.answer.verdict, line.met()) {
        (Verdict::Undecided(_), _) => UNSURE,
        (_, Some(true)) => GOOD,
        (_, Some(false)) => BAD,
        (_, None) => BOLD,
    }
}

impl Reporter for Human {
    fn line(&mut self, out: &mut dyn Write, line: &AnswerLine) -> io::Result<()> {
        let options = &self.options;
        let case = ReportCase::of(line);
        let status = case.status;
        // One line at the end counts these.
        if case.interrupted {
            return Ok(());
        }
        let must =
            status.fails() || matches!(status, QueryStatus::Undecided(_) | QueryStatus::Defect);
        if options.quiet && !must {
            return Ok(());
        }
        if let (Some(_), Some(reason)) = (&line.kernel, line.answer.verdict.reason())
            && line.expected.is_none()
        {
            let this = (line.path.clone(), line.test.clone(), reason.to_string());
            if self.undecided.as_ref() == Some(&this) && !self.options.verbose {
                return Ok(());
            }
            self.undecided = Some(this);
        }
        let options = &self.options;
        if let Some(kernel) = &line.kernel
            && !matches!(status, QueryStatus::Undecided(_) | QueryStatus::Defect)
        {
            for diagnostic in &kernel.found {
                out.write_all(render(diagnostic, diag::TextStyle::Coloured).as_bytes())?;
            }
            if kernel.found.is_empty() && options.verbose {
                self.told(out, |out| self.row(out, line))?;
            }
            return self.told(out, |out| {
                if options.explain && options.verbose {
                    explain(out, line, true)?;
                }
                let notes = line.notes.iter();
                notes
                    .into_iter()
                    .try_for_each(|note| writeln!(out, "  note: {}", visible(note)))
            });
        }
        self.told(out, |out| {
            if !options.explain && status.needs_attention() {
                self.attention(out, line, &case)?;
            } else if options.explain || options.verbose || (options.few && line.expected.is_none())
            {
                self.row(out, line)?;
            } else if !line.notes.is_empty() {
                writeln!(out, "{}: {}: {}", line.site, case.message, case.title)?;
            } else {
                return Ok(());
            }
            line.answer
                .dependences
                .iter()
                .try_for_each(|on| writeln!(out, "  {}", visible(&on.text())))?;
            line.notes
                .iter()
                .try_for_each(|note| writeln!(out, "  note: {}", visible(note)))
        })
    }

    fn observations(&mut self, out: &mut dyn Write, observations: &Observations) -> io::Result<()> {
        if self.options.quiet && !observations.striking() {
            return Ok(());
        }
        self.told(out, |out| super::observations::human(out, observations))
    }

    fn table(&mut self, out: &mut dyn Write, table: &OutcomeTable) -> io::Result<()> {
        self.told(out, |out| outcomes(out, table, self.options.verbose))
    }

    fn distinction(&mut self, out: &mut dyn Write, distinction: &Distinction) -> io::Result<()> {
        self.told(out, |out| {
            super::distinction::human(out, distinction, self.options.verbose)
        })
    }

    fn suite(&mut self, out: &mut dyn Write, suite: &ConformanceSuite) -> io::Result<()> {
        self.told(out, |out| super::suite::human(out, suite))
    }

    fn compiled(&mut self, out: &mut dyn Write, compiled: &CompiledReport) -> io::Result<()> {
        self.told(out, |out| {
            super::compiled::human(out, compiled, self.options.verbose)
        })
    }

    fn advice(&mut self, out: &mut dyn Write, advice: &AdviceReport) -> io::Result<()> {
        if self.options.quiet && !advice.striking() {
            return Ok(());
        }
        let (all, columns) = (
            self.options.few || self.options.verbose,
            self.options.columns,
        );
        self.told(out, |out| super::advice::human(out, advice, all, columns))
    }

    fn comparison(&mut self, out: &mut dyn Write, comparison: &Comparison) -> io::Result<()> {
        if self.options.quiet && !comparison.striking() {
            return Ok(());
        }
        self.told(out, |out| {
            super::comparison::human(out, comparison, self.options.verbose)
        })
    }

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
        self.told(out, |out| {
            if let Some(unasked) = summary.interruption() {
                writeln!(out, "{UNSURE}{unasked}{UNSURE:#}")?;
            }
            for line in summary
                .comparisons()
                .into_iter()
                .chain(summary.observations())
            {
                writeln!(out, "{line}")?;
            }
            for line in summary.kernels.launches() {
                writeln!(out, "{}", visible(&line))?;
            }
            writeln!(out, "{BOLD}{summary}{BOLD:#}")
        })
    }
}

/// One list of outcomes.
fn outcomes(out: &mut dyn Write, table: &OutcomeTable, verbose: bool) -> io::Result<()> {
    let list = &table.outcomes;
    write!(
        out,
        "{BOLD}{}{BOLD:#} under {}",
        visible(&table.test),
        visible(&table.model)
    )?;
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
        (false, Some(why)) => write!(
            out,
            ", {UNSURE}and the list is not complete: {why}{UNSURE:#}"
        )?,
    }
    if let Some(bound) = list.bound {
        write!(out, ", loop bound {bound}")?;
    }
    if verbose {
        write!(out, ", {}", list.engine)?;
    }
    if let Some(ms) = table.ms {
        write!(out, ", {ms} ms")?;
    }
    if let Some(text) = undefined(list.definedness.as_ref(), verbose) {
        write!(out, ", {text}")?;
    }
    writeln!(out)?;
    outcome_rows(out, table)?;
    if let Some(Definedness::Undefined(fault)) = &list.definedness {
        writeln!(
            out,
            "  the program is undefined, so that every outcome is possible:"
        )?;
        super::fault::human(out, &table.path, fault, verbose)?;
    }
    if let Some(defect) = &list.defect {
        writeln!(out, "  {BAD}DEFECT:{BAD:#} {defect}")?;
    }
    writeln!(out)
}

/// The part of the result line about undefined behaviour.
fn undefined(definedness: Option<&Definedness>, verbose: bool) -> Option<String> {
    match definedness? {
        Definedness::Defined => verbose.then(|| "defined".to_owned()),
        Definedness::Undefined(fault) => Some(format!("{BAD}{}{BAD:#}", fault.brief())),
        Definedness::Undecided(reason) => Some(format!(
            "{UNSURE}not decided whether the program is defined: {reason}{UNSURE:#}"
        )),
    }
}

/// One row per outcome, one column per observable.
fn outcome_rows(out: &mut dyn Write, table: &OutcomeTable) -> io::Result<()> {
    let rows = &table.outcomes.outcomes;
    let Some(first) = rows.first() else {
        return Ok(());
    };
    let mut widths: Vec<usize> = first
        .state
        .iter()
        .map(|(name, _)| name.chars().count())
        .collect();
    for row in rows {
        for (width, (_, value)) in widths.iter_mut().zip(&row.state) {
            *width = (*width).max(value.chars().count());
        }
    }
    // A list may have hundreds of thousands of rows.
    let mut line = String::new();
    let mut cells =
        |style: Style, cells: &mut dyn Iterator<Item = &str>, last: [&str; 2]| -> io::Result<()> {
            line.clear();
            for (cell, width) in cells.zip(&widths) {
                line.extend(iter::repeat_n(' ', 1 + width - cell.chars().count()));
                line.push_str(cell);
            }
            writeln!(out, " {style}{line}{}{style:#}{}", last[0], last[1])
        };
    cells(
        DIM,
        &mut first.state.iter().map(|(name, _)| &**name),
        ["", ""],
    )?;
    for row in rows {
        let style = if row.allowed { Style::new() } else { DIM };
        let racy = match (&row.race, row.racy) {
            (Some(race), _) => format!(", racy: {}", race.places()),
            (None, true) => ", racy".to_owned(),
            (None, false) => String::new(),
        };
        let word = if row.allowed {
            "  allowed"
        } else {
            "  forbidden"
        };
        cells(
            style,
            &mut row.state.iter().map(|(_, value)| &**value),
            [word, &racy],
        )?;
    }
    Ok(())
}

/// Explains an answer.
fn explain(out: &mut dyn Write, line: &AnswerLine, verbose: bool) -> io::Result<()> {
    if line.property == Property::Reachability && !line.proposition.is_empty() {
        let violates = if line.quantifier == "forall" {
            ", by a violation of it"
        } else {
            ""
        };
        writeln!(
            out,
            "  asked: {} ({}){violates}",
            line.quantifier, line.proposition
        )?;
    }
    let answer = &line.answer;
    match (&answer.verdict, &answer.witness) {
        (Verdict::Undecided(_), _) => return Ok(()),
        (_, Some(witness)) => execution(out, witness)?,
        (_, None) if !answer.axioms.is_empty() && answer.explanation.is_none() => {
            writeln!(
                out,
                "  together these axioms exclude every execution: {}",
                answer.axioms.join(", ")
            )?;
        }
        (_, None) => {}
    }
    match (&answer.explanation, &answer.definedness) {
        // For an undefined program, the fault is the explanation.
        (Some(_), Some(Definedness::Undefined(_))) if answer.verdict == Verdict::Allowed => Ok(()),
        (Some(explanation), _) => super::explanation::human(out, explanation, verbose),
        (None, _) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use verdict::{Ending, ThreadEnd, Witness};

    use super::super::{ReportFormat, samples};
    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    fn options() -> HumanOptions {
        HumanOptions {
            test_width: 6,
            model_width: 8,
            property_width: 12,
            ..HumanOptions::default()
        }
    }

    const ATTENTION: &str = "\
tests/MP.litmus:3: expected forbidden, got allowed: MP under ptx-v7.5
  help: if the model is right, `--bless` writes this answer into the test
tests/Loop.litmus:3: expected allowed, got undecided (loop bound: P1 can go on after 4 iterations \
of the loop at line 7; try `--bound 8`): Loop under ptx-v7.5
tests/Odd.litmus:3: a defect of Fencepost: engines differ: symbolic allowed, enumerate forbidden: \
Odd under ptx-v7.5
";
    const SUMMARY: &str = "\
6 answers: 2 allowed, 2 forbidden, 1 racy, 1 undecided; 3 expectations, 1 NOT MET; undecided: 1 × \
loop bound; \
1 DEFECT; 1 error in the input
";

    #[test]
    fn what_needs_attention_is_told_and_counted() {
        let text = plain(&samples::written(ReportFormat::Human, &options()));
        assert_eq!(text, format!("{ATTENTION}{SUMMARY}"));
        let quiet = plain(&samples::written(
            ReportFormat::Human,
            &HumanOptions {
                quiet: true,
                ..options()
            },
        ));
        assert_eq!(quiet, text);
    }

    #[test]
    fn every_answer_is_an_aligned_line_if_asked_for() {
        let text = plain(&samples::written(
            ReportFormat::Human,
            &HumanOptions {
                verbose: true,
                ..options()
            },
        ));
        let rows = [
            "MP-gpu  ptx-v7.5  reachability  exists  forbidden  as expected, symbolic, by \
            Causality",
            "MP      ptx-v7.5  race                  racy       symbolic",
            "Atom    ptx-v7.5  reachability  forall  always holds  as expected, symbolic, by \
             Causality",
        ];
        for row in rows {
            assert!(text.lines().any(|line| line == row), "{row}: {text}");
        }
        // With few answers, those without expectations are shown.
        let text = plain(&samples::written(
            ReportFormat::Human,
            &HumanOptions {
                few: true,
                ..options()
            },
        ));
        assert!(
            text.contains("\nMP      ptx-v7.5  race                  racy\n")
                && !text.contains("MP-gpu"),
            "{text}"
        );
    }

    #[test]
    fn what_was_interrupted_is_one_line() {
        let mut summary = Summary::default();
        let (mut out, mut human) = (Vec::new(), Human::new(options()));
        for _ in 0..3 {
            let line = samples::line(
                "MP",
                Verdict::Undecided(Reason::Interrupted),
                Some("forbidden"),
            );
            summary.add(&line);
            human.line(&mut out, &line).unwrap();
        }
        assert!(out.is_empty());
        human.end(&mut out, &summary).unwrap();
        let text = plain(&String::from_utf8(out).unwrap());
        assert!(
            text.starts_with("interrupted: 3 of 3 answers are missing\n"),
            "{text}"
        );
    }

    #[test]
    fn an_execution_is_shown_by_threads() {
        let mut line = samples::line("MP", Verdict::Allowed, None);
        line.answer.witness = Some(samples::witness());
        let mut out = Vec::new();
        Human::new(HumanOptions {
            explain: true,
            ..options()
        })
        .line(&mut out, &line)
        .unwrap();
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
        assert_eq!(
            text.split_once('\n').unwrap().1,
            expected.trim_start_matches('\n')
        );
    }

    #[test]
    fn a_hang_is_told_by_threads() {
        let end = |thread: &str, ending, line: u32, text: &str, why: &str| ThreadEnd {
            ending,
            line: line.into(),
            text: text.into(),
            served: ending == Ending::Looping,
            why: why.into(),
            ..ThreadEnd::done(thread)
        };
        let mut line = samples::line("Spin", Verdict::Hangs, None);
        line.property = Property::Liveness("obe".into());
        let ends = vec![
            end(
                "P0",
                Ending::Looping,
                7,
                "ld.relaxed.gpu r0, f",
                "loops forever, reading f = 0",
            ),
            end(
                "P1",
                Ending::Stopped,
                0,
                "",
                "does not run at all: it has not started",
            ),
        ];
        line.answer.witness = Some(Witness {
            ends,
            ..samples::witness()
        });
        let shown = |options: HumanOptions| {
            let mut out = Vec::new();
            Human::new(options).line(&mut out, &line).unwrap();
            plain(&String::from_utf8(out).unwrap())
        };
        let told = "      P0  looping  loops forever, reading f = 0  line 7: ld.relaxed.gpu r0, \
            f\n      P1  stopped  does not run at all: it has not started\n";
        assert!(!shown(options()).contains("looping"));
        for options in [
            HumanOptions {
                verbose: true,
                ..options()
            },
            HumanOptions {
                explain: true,
                ..options()
            },
        ] {
            let text = shown(options);
            assert!(text.ends_with(told), "{text}");
        }
    }

    #[test]
    fn outcomes_are_a_table() {
        let mut out = Vec::new();
        Human::new(options())
            .table(&mut out, &samples::table())
            .unwrap();
        let text = plain(&String::from_utf8(out).unwrap());
        let expected = "MP under ptx: 1 outcome allowed, and the list is complete\n  P1:r0  \
            x\n      0  2  allowed, racy\n      1 10  forbidden\n\n";
        assert_eq!(text, expected);
    }
}
