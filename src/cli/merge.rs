//! `fencepost merge`: the answers of the parts of a run as one.
//!
//! # Invariants
//! - What it prints is what the run would have printed as a whole, to the byte; or it prints nothing.
//! - Parts are of one run if the digest of everything that the answers depend on is the same: tests, models, questions, options, the
//!   build. Every pair and every answer has a number in that run: parts are disjoint and complete if each number is there once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;

use super::args::MergeArgs;
use super::exit::{self, Events};
use super::load;
use super::partition::Partition;
use super::terminal::Terminal;
use diag::{Diagnostic, SourceFile, Span};
use report::{PartOf, counted, is_met};

/// How the last key of a line begins.
const MARK: &str = ",\"part\":{";

/// No part is larger, in bytes.
const LARGEST: u64 = 4 << 30;

/// What is read of an answer.
#[derive(Deserialize)]
struct Answer {
    path: String,
    test: String,
    model: String,
    verdict: String,
    expected: Option<String>,
    #[serde(default)]
    defect: Option<String>,
    #[serde(default)]
    known: Option<String>,
    part: PartOf,
}

impl Answer {
    fn happens(&self, events: &mut Events) {
        events.answered = true;
        events.defect |= self.defect.is_some();
        events.undecided |= self.verdict == "undecided";
        // Of a known failure, the reason is there: it fails once the expectation is met.
        events.unmet |=
            is_met(self.expected.as_deref(), &self.verdict).is_some_and(|met| met == self.known.is_some());
    }
}

/// An answer where it was found.
struct Found<'t> {
    answer: Answer,
    /// Without what says where it stands.
    line: &'t str,
    file: Arc<SourceFile>,
    span: Span,
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
    let mut all: Vec<Found<'_>> = Vec::new();
    for file in &sources {
        let mut at = 0;
        for text in file.text.split_inclusive('\n') {
            let line = text.trim_end();
            let span = Span::new(at, at + line.len());
            at += text.len();
            match found(file, line, span) {
                Ok(one) => all.push(one),
                Err(diagnostic) => {
                    // What is wrong with one line is likely wrong with all.
                    diagnostics.push(*diagnostic);
                    break;
                }
            }
        }
    }
    if diagnostics.is_empty() {
        diagnostics =
            one_run(&all).and_then(|()| disjoint(&all)).and_then(|()| complete(&all)).err().unwrap_or_default();
    }
    if terminal.diagnose_all(&diagnostics) > 0 {
        return exit::INVALID;
    }
    all.sort_by_key(|one| (one.answer.part.pair, one.answer.part.answer));
    let (mut text, mut events) = (String::new(), Events::default());
    for one in &all {
        one.answer.happens(&mut events);
        text += one.line;
        text += "}\n";
    }
    if let Some(PartOf { of, pairs, .. }) = all.first().map(|one| &one.answer.part) {
        let (parts, pairs) = (counted(*of as usize, "part"), counted(*pairs, "pair"));
        terminal.remark(&format!("{parts}, {pairs}, {}: each is there once", counted(all.len(), "answer")));
    }
    terminal.printed(&text, events.code())
}

/// Reads a line.
fn found<'t>(file: &Arc<SourceFile>, line: &'t str, span: Span) -> Result<Found<'t>, Box<Diagnostic>> {
    const WANTED: &str =
        "`merge` takes what `fencepost check --partition hash:M/N --format jsonl` wrote, one file for each part";
    let broken = |why: String| {
        Box::new(
            Diagnostic::error("no-part", file, span, "this is no answer of a part of a run")
                .label(why)
                .help(WANTED),
        )
    };
    let answer: Answer = serde_json::from_str(line).map_err(|error| {
        let why = error.to_string();
        broken(why.split(" at line").next().unwrap_or_default().to_owned())
    })?;
    let (line, _) = line.rsplit_once(MARK).ok_or_else(|| broken("`part` is not its last key".to_owned()))?;
    let PartOf { number, of, pair, pairs, answer: nth, answers, .. } = answer.part;
    if !(1..=of).contains(&number) || pair >= pairs || nth >= answers {
        return Err(broken("these numbers cannot be".to_owned()));
    }
    let partition = Partition { part: number, parts: of };
    if !partition.holds(&answer.path, &answer.test, &answer.model) {
        let why = format!("this pair is not in part {number} of {of}");
        return Err(Box::new(Diagnostic::error("wrong-part", file, span, why).label("was it changed?")));
    }
    Ok(Found { answer, line, file: file.clone(), span })
}

type Judged = Result<(), Vec<Diagnostic>>;

/// Whether all parts are of one run.
fn one_run(all: &[Found<'_>]) -> Judged {
    let run = |one: &Found<'_>| {
        let PartOf { of, pairs, whole, .. } = &one.answer.part;
        (*of, *pairs, whole.clone())
    };
    let Some((first, other)) =
        all.first().and_then(|first| Some((first, all.iter().find(|o| run(o) != run(first))?)))
    else {
        return Ok(());
    };
    let (a, b) = (&first.file.name, &other.file.name);
    let message = format!("`{b}` is not a part of the run that `{a}` is a part of");
    let help =
        "tests, models, options and the program itself must be the same for all parts, and so must their number";
    Err(vec![
        Diagnostic::error("another-run", &other.file, other.span, message).label("its `part` differs").help(help),
    ])
}

/// Whether no answer is there twice.
fn disjoint(all: &[Found<'_>]) -> Judged {
    let mut seen: BTreeMap<(usize, usize), &Found<'_>> = BTreeMap::new();
    for one in all {
        let PartOf { pair, answer, .. } = one.answer.part;
        if let Some(other) = seen.insert((pair, answer), one) {
            let Answer { test, model, .. } = &one.answer;
            let message = format!("the answer about `{test}` under `{model}` is there twice");
            let note = format!("the other one is in `{}`", other.file.name);
            let diagnostic = Diagnostic::error("twice", &one.file, one.span, message).label("this one").note(note);
            return Err(vec![diagnostic.help("name the file of each part once")]);
        }
    }
    Ok(())
}

/// Whether every answer is there.
fn complete(all: &[Found<'_>]) -> Judged {
    let Some(PartOf { of, pairs, .. }) = all.first().map(|one| one.answer.part.clone()) else {
        return Err(vec![Diagnostic::plain("no-answers", "there are no answers in these files")]);
    };
    // By part: its pairs, how many there should be, and pairs that lack an answer.
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
            missing.push(format!("part {number} of {of} has {whole} of its {here} (test, model) pairs"));
        }
    }
    // A part without a pair is complete without a line.
    if parts.values().map(|(_, here, _)| here).sum::<usize>() < pairs {
        let none = (1..=of).filter(|number| !parts.contains_key(number)).map(|number| number.to_string());
        missing.push(format!("nothing is there of part {}", none.collect::<Vec<_>>().join(", ")));
    }
    if missing.is_empty() {
        return Ok(());
    }
    let diagnostic = Diagnostic::plain("incomplete", "these parts are not the whole run");
    let help = "run what is missing again; with `--filter verdict…` or `--fail-fast` a part has no complete list";
    Err(vec![missing.into_iter().fold(diagnostic, Diagnostic::note).help(help)])
}
