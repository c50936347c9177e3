//! `fencepost merge`: joins the answers of the parts of a run.
//!
//! # Invariants
//! - It prints what the whole run would have printed, to the byte; or it prints nothing.
//! - Parts belong to one run if the digest of everything that the answers depend on is the same:
//!   tests, models, questions, options, the build. Every pair and every answer has a number in that
//!   run: parts are disjoint and complete if each number occurs once.

mod histogram;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::args::MergeArgs;
use super::exit::{self, Events};
use super::load;
use super::partition::Partition;
use super::terminal::Terminal;
use diag::{Diagnostic, SourceFile, Span};
use report::{Observations, PartOf, UnmetReading, counted, is_met};

/// The beginning of the last key of a line.
const MARK: &str = ",\"part\":{";

/// The largest part, in bytes.
const LARGEST: u64 = 4 << 30;

/// The parts of an answer that are read.
#[derive(Deserialize)]
struct PartAnswer {
    path: String,
    test: String,
    model: String,
    /// For a question.
    verdict: Option<String>,
    expected: Option<String>,
    /// For a run on a device.
    schedule: Option<String>,
    #[serde(default)]
    observed: Vec<Observed>,
    reason: Option<String>,
    #[serde(default)]
    memory: String,
    runs: Option<u64>,
    seed: Option<u64>,
    #[serde(default)]
    defect: Option<String>,
    #[serde(default)]
    known: Option<String>,
    reading: Option<UnmetReading>,
    part: PartOf,
}

/// The parts of an outcome that are read.
#[derive(Deserialize)]
struct Observed {
    allowed: Option<bool>,
}

impl PartAnswer {
    fn happens(&self, events: &mut Events) {
        events.answered = true;
        events.defect |= self.defect.is_some();
        if let Some(verdict) = &self.verdict {
            events.undecided |= verdict == "undecided";
            // A known failure has a reason: it fails once the expectation is met.
            events.unmet |= is_met(self.expected.as_deref(), verdict)
                .is_some_and(|met| (met && self.reading.is_none()) == self.known.is_some());
        } else {
            events.undecided |=
                self.reason.is_some() || self.observed.iter().any(|o| o.allowed.is_none());
            events.unmet |= self.observed.iter().any(|o| o.allowed == Some(false));
        }
    }

    /// The machine and the seed of a run: results of one test that differ in these are added.
    fn run(&self) -> Option<(&str, Option<u64>)> {
        let on_device = self.schedule.as_deref() == Some(Observations::ON_DEVICE);
        on_device.then_some((self.memory.as_str(), self.seed))
    }
}

/// An answer at its place.
struct PlacedAnswer<'t> {
    answer: PartAnswer,
    /// Without the part that states its place.
    line: &'t str,
    file: Arc<SourceFile>,
    span: Span,
}

impl PlacedAnswer<'_> {
    /// The number of the answer in the whole run.
    fn number(&self) -> (usize, usize) {
        (self.answer.part.pair, self.answer.part.answer)
    }
}

/// Runs it; returns the exit code.
pub(super) fn run(args: &MergeArgs, terminal: &Terminal) -> u8 {
    let mut diagnostics = Vec::new();
    let mut sources = Vec::new();
    for path in &args.files {
        match load::text(path, LARGEST) {
            Ok(text) => sources.push(SourceFile::new(path.display().to_string(), text)),
            Err(diagnostic) => diagnostics.push(*diagnostic),
        }
    }
    let mut all: Vec<PlacedAnswer<'_>> = Vec::new();
    for file in &sources {
        let (there, wrong) = read(file);
        all.extend(there);
        diagnostics.extend(wrong.map(|diagnostic| *diagnostic));
    }
    if diagnostics.is_empty() {
        diagnostics = one_run(&all)
            .and_then(|()| one_pair(&all))
            .and_then(|()| disjoint(&all))
            .and_then(|()| complete(&all))
            .err()
            .unwrap_or_default();
    }
    if terminal.diagnose_all(&diagnostics) > 0 {
        return exit::INVALID;
    }
    all.sort_by_key(PlacedAnswer::number);
    let (mut text, mut events) = (String::new(), Events::default());
    for several in all.chunk_by(|a, b| a.number() == b.number()) {
        let lines: Vec<String> = several
            .iter()
            .map(|one| format!("{}}}", one.line))
            .collect();
        match histogram::added(&lines.iter().map(String::as_str).collect::<Vec<_>>()) {
            Ok(line) => text += &(line + "\n"),
            Err(why) => {
                terminal.diagnose(&broken(&several[0].file, several[0].span, why.to_string()));
                return exit::INVALID;
            }
        }
        // A test that ran in some place leaves no gap if it could not run in another.
        let ran =
            |one: &&PlacedAnswer<'_>| one.answer.run().is_some_and(|(_, seed)| seed.is_some());
        let some = several.iter().any(|one| ran(&one));
        several
            .iter()
            .filter(|one| !some || ran(one))
            .for_each(|one| one.answer.happens(&mut events));
    }
    if let Some(PartOf { of, pairs, .. }) = all.first().map(|one| &one.answer.part) {
        let (parts, pairs) = (counted(*of as usize, "part"), counted(*pairs, "pair"));
        terminal.remark(&format!(
            "{parts}, {pairs}, {}: each occurs once",
            counted(all.len(), "answer")
        ));
    }
    terminal.printed(&text, events.code())
}

/// The answers of a file up to the first line that is none: a fault of one line is likely one of
/// all.
fn read(file: &Arc<SourceFile>) -> (Vec<PlacedAnswer<'_>>, Option<Box<Diagnostic>>) {
    let mut all = Vec::new();
    for (span, line) in file.lines() {
        match found(file, line, span) {
            Ok(one) => all.push(one),
            Err(diagnostic) => return (all, Some(diagnostic)),
        }
    }
    (all, None)
}

/// An existing result on a device.
pub(super) struct Kept {
    /// The line, as written.
    pub line: String,
    /// Its place.
    pub part: PartOf,
    /// The device, as [`Observations::memory`] states it.
    pub memory: String,
    /// The seed and the number of runs; `None`: it was not run.
    pub seed_and_runs: Option<(u64, u64)>,
    /// Its effect on the exit code.
    pub events: Events,
}

/// The results of a run on a device that may have been cut short, with the digest of what they
/// depend on.
///
/// # Errors
/// If a line other than the last one is no result.
pub(super) fn kept(path: &Path) -> Result<Vec<Kept>, Box<Diagnostic>> {
    let file = SourceFile::new(path.display().to_string(), load::text(path, LARGEST)?);
    let (all, wrong) = read(&file);
    let is_cut = all.len() + 1 == file.lines().count() && file.text.bytes().last() != Some(b'\n');
    if let Some(diagnostic) = wrong.filter(|_| !is_cut) {
        return Err(diagnostic);
    }
    let mut results = Vec::new();
    for one in all {
        let Some((memory, seed)) = one.answer.run() else {
            return Err(broken(
                &file,
                one.span,
                "it is not a result of a device".to_owned(),
            ));
        };
        let mut events = Events::default();
        one.answer.happens(&mut events);
        results.push(Kept {
            line: file.text[one.span.start as usize..one.span.end as usize].to_owned(),
            memory: memory.to_owned(),
            seed_and_runs: seed.zip(one.answer.runs),
            part: one.answer.part.clone(),
            events,
        });
    }
    Ok(results)
}

/// A line that is no answer of a part, and why.
fn broken(file: &Arc<SourceFile>, span: Span, why: String) -> Box<Diagnostic> {
    const WANTED: &str = "`merge` takes the output of `fencepost check --partition hash:M/N \
        --format jsonl` (or of `run --on`), one file for each part";
    let error = Diagnostic::error(
        "no-part",
        file,
        span,
        "this line is not an answer of a part of a run",
    );
    Box::new(error.label(why).help(WANTED))
}

/// Reads a line.
fn found<'t>(
    file: &Arc<SourceFile>,
    line: &'t str,
    span: Span,
) -> Result<PlacedAnswer<'t>, Box<Diagnostic>> {
    let broken = |why: String| broken(file, span, why);
    let answer: PartAnswer = serde_json::from_str(line).map_err(|error| {
        let why = error.to_string();
        broken(why.split(" at line").next().unwrap_or_default().to_owned())
    })?;
    if answer.verdict.is_none() && answer.run().is_none() {
        return Err(broken(
            "it is neither an answer nor a result of a device".to_owned(),
        ));
    }
    let (line, _) = line
        .rsplit_once(MARK)
        .ok_or_else(|| broken("`part` is not its last key".to_owned()))?;
    let PartOf {
        number,
        of,
        pair,
        pairs,
        answer: nth,
        answers,
        ..
    } = answer.part;
    if !(1..=of).contains(&number) || pair >= pairs || nth >= answers {
        return Err(broken("its numbers contradict each other".to_owned()));
    }
    let partition = Partition {
        part: number,
        parts: of,
    };
    if !partition.holds(&answer.path, &answer.test, &answer.model) {
        let why = format!("this pair is not in part {number} of {of}");
        return Err(Box::new(
            Diagnostic::error("wrong-part", file, span, why).label("was it changed?"),
        ));
    }
    Ok(PlacedAnswer {
        answer,
        line,
        file: file.clone(),
        span,
    })
}

type Judged = Result<(), Vec<Diagnostic>>;

/// Whether all parts belong to one run.
fn one_run(all: &[PlacedAnswer<'_>]) -> Judged {
    let run = |one: &PlacedAnswer<'_>| {
        let PartOf {
            of, pairs, whole, ..
        } = &one.answer.part;
        (*of, *pairs, whole.clone())
    };
    let Some((first, other)) = all
        .first()
        .and_then(|first| Some((first, all.iter().find(|o| run(o) != run(first))?)))
    else {
        return Ok(());
    };
    let (a, b) = (&first.file.name, &other.file.name);
    let message = format!("`{a}` and `{b}` are parts of different runs");
    let help = "run all parts with the same tests, models, options, number of parts and build of \
        Fencepost";
    Err(vec![
        Diagnostic::error("another-run", &other.file, other.span, message)
            .label("its `part` differs")
            .help(help),
    ])
}

/// Whether all answers of a pair are about its test and model.
fn one_pair(all: &[PlacedAnswer<'_>]) -> Judged {
    let pair = |one: &PlacedAnswer<'_>| {
        (
            one.answer.path.clone(),
            one.answer.test.clone(),
            one.answer.model.clone(),
        )
    };
    let mut first: BTreeMap<usize, &PlacedAnswer<'_>> = BTreeMap::new();
    for one in all {
        let known = *first.entry(one.answer.part.pair).or_insert(one);
        if pair(known) != pair(one) {
            let PartAnswer {
                path, test, model, ..
            } = &known.answer;
            let message =
                format!("this answer has the number of another pair, `{test}` under `{model}`");
            let note = format!(
                "that test is in `{path}`, and its answer in `{}`",
                known.file.name
            );
            let diagnostic = Diagnostic::error("wrong-pair", &one.file, one.span, message);
            return Err(vec![diagnostic.label("was it changed?").note(note)]);
        }
    }
    Ok(())
}

/// Whether no answer occurs twice, and no result of one run.
fn disjoint(all: &[PlacedAnswer<'_>]) -> Judged {
    let mut seen: BTreeMap<_, &PlacedAnswer<'_>> = BTreeMap::new();
    for one in all {
        if one.answer.run().is_some_and(|(_, seed)| seed.is_none()) {
            // It was not run: that may be so in every part.
            continue;
        }
        if let Some(other) = seen.insert((one.number(), one.answer.run()), one) {
            let PartAnswer { test, model, .. } = &one.answer;
            let message = format!("the answer for `{test}` under `{model}` occurs twice");
            let note = format!("the other one is in `{}`", other.file.name);
            let diagnostic = Diagnostic::error("twice", &one.file, one.span, message)
                .label("this one")
                .note(note);
            return Err(vec![diagnostic.help("name the file of each part once")]);
        }
    }
    Ok(())
}

/// Whether every answer is present.
fn complete(all: &[PlacedAnswer<'_>]) -> Judged {
    let Some(PartOf { of, pairs, .. }) = all.first().map(|one| one.answer.part.clone()) else {
        return Err(vec![Diagnostic::plain(
            "no-answers",
            "these files contain no answers",
        )]);
    };
    // By part: its pairs, their expected number, and pairs that lack an answer.
    let mut parts: BTreeMap<u64, (BTreeSet<usize>, usize, BTreeSet<usize>)> = BTreeMap::new();
    let mut answers: BTreeMap<usize, usize> = BTreeMap::new();
    for one in all {
        *answers.entry(one.answer.part.pair).or_default() += 1;
    }
    for one in all {
        let part = &one.answer.part;
        let (there, here, lacking) = parts.entry(part.number).or_default();
        there.insert(part.pair);
        *here = part.here;
        if answers[&part.pair] < part.answers {
            lacking.insert(part.pair);
        }
    }
    let mut missing = Vec::new();
    for (number, (there, here, lacking)) in &parts {
        if there.len() < *here || !lacking.is_empty() {
            let whole = there.len() - lacking.len();
            missing.push(format!(
                "part {number} of {of} has {whole} of its {here} (test, model) pairs"
            ));
        }
    }
    // A part without a pair is complete without a line.
    if parts.values().map(|(_, here, _)| here).sum::<usize>() < pairs {
        let none = (1..=of)
            .filter(|number| !parts.contains_key(number))
            .map(|number| number.to_string());
        missing.push(format!(
            "no answer of part {}",
            none.collect::<Vec<_>>().join(", ")
        ));
    }
    if missing.is_empty() {
        return Ok(());
    }
    let diagnostic = Diagnostic::plain("incomplete", "these parts are not the whole run");
    let help = "run the missing parts again; a part run with `--filter verdict…` or `--fail-fast` \
        is incomplete";
    Err(vec![
        missing
            .into_iter()
            .fold(diagnostic, Diagnostic::note)
            .help(help),
    ])
}
