//! `fencepost check`: decides every expectation.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use super::args::{CheckArgs, Deny, FormatArg, LintArg, PicturesArg};
use super::blessing::{self, Edit};
use super::cache::{self, Cache};
use super::decide::{self, Decided};
use super::exit;
use super::failed::FailedRecord;
use super::guidelines;
use super::launches;
use super::plan::{self, Question, RequestedModels, Unit};
use super::run::Run;
use super::select::Selection;
use super::settings::Settings;
use super::terminal::Terminal;
use super::watch;
use diag::Diagnostic;
use program::litmus::LitmusTest;
use report::{AnswerLine, ReportSubject, counted};

/// Runs it; returns the exit code.
pub(super) fn run(args: &CheckArgs, terminal: &Terminal) -> u8 {
    let round = || check(args, terminal).unwrap_or_else(|code| code);
    if args.watch {
        watch::run(args, terminal, round)
    } else {
        round()
    }
}

fn check(args: &CheckArgs, terminal: &Terminal) -> Result<u8, u8> {
    let start = Instant::now();
    let mut run = Run::new(terminal, &args.question, ReportSubject::Answers)?;
    let wanted = configure(&mut run, args);
    let asked = launches::asked(args).map_err(|diagnostic| {
        terminal.diagnose(&diagnostic);
        exit::INVALID
    })?;
    let mut selection = run.select(&args.select)?;
    let record = open_cache(&mut run, args);
    if args.rerun_failed {
        rerun(&mut run, record.as_ref(), &mut selection);
    }

    let (files, launches) = match asked {
        None => (run.load(&args.paths), None),
        Some(asked) => launches::load(&mut run, args, asked),
    };
    let mut tests = files.iter().flat_map(|file| &file.tests);
    if !parametric::solver::is_there() && tests.any(|test| test.launch.is_some()) {
        terminal.remark(
            "note: the answers are for the launch that they name; a proof for every launch needs \
            the program `z3`: `pip install z3-solver`, or name it in FENCEPOST_Z3",
        );
    }
    if args.lint == Some(LintArg::Guidelines) {
        let tests = files.iter().flat_map(|file| &file.tests);
        let warnings: Vec<Diagnostic> = tests.flat_map(guidelines::warnings).collect();
        run.complain(&warnings);
    }
    if args.question.models.is_empty() {
        run.of_runs = files
            .iter()
            .flat_map(|f| &f.tests)
            .filter(|t| t.expect.is_empty() && !t.runs.is_empty())
            .count();
    }
    let models = match launches {
        // Proofs need no expectation.
        Some(_) => RequestedModels::Dialect(&args.question.models),
        None => RequestedModels::Expected(&args.question.models),
    };
    let mut units = run.plan_for(&files, models, |test, model| {
        Ok(match &launches {
            Some(launches) => launches.questions(test, model, args),
            None => questions(test, model, args),
        })
    });
    selection.narrow_questions(&mut units, &run.settings);
    run.open(&units, false)?;
    let cache = run.cache.clone();
    let answers = |unit: &Unit<'_>, settings: &Settings| {
        let mut decided = match &launches {
            Some(launches) => launches.answers(unit, settings),
            None => decide::kept(unit, settings, cache.as_deref()),
        };
        selection.mark(unit, &mut decided.results);
        decided
    };
    let mut receiver = Receiver {
        edits: Vec::new(),
        record,
        fail_fast: args.fail_fast,
    };
    run.decide(
        &units,
        |unit, settings| judge(unit, answers(unit, settings), &selection, &wanted),
        |run, checked| receiver.receive(run, checked),
    );
    let Receiver { edits, record, .. } = receiver;
    bless(&mut run, &edits);
    let everything = selection.is_everything() && !run.summary.stopped;
    let unwritable = record.and_then(|record| record.write(everything));
    run.complain(&unwritable.into_iter().collect::<Vec<_>>());
    let code = run.end();
    if terminal.wants_effort(args.question.timings) {
        terminal.remark(&effort(&run, start));
    }
    Ok(code)
}

/// Sets up a run as the arguments say; returns the parts of answers that are needed.
fn configure(run: &mut Run<'_>, args: &CheckArgs) -> AnswerParts {
    let terminal = run.terminal;
    run.sources = args.sources.options();
    let settings = &mut run.settings;
    settings.explain = terminal.thorough;
    settings.name_axioms = terminal.verbose;
    settings.explain_unmet = true;
    settings.deny_undefined = args.deny == Some(Deny::Undefined);
    settings.deny_race = args.deny == Some(Deny::Race);
    settings.every_launch = parametric::solver::is_there();
    let mut formats = args
        .question
        .reports
        .iter()
        .map(|(format, _)| *format)
        .chain([args.question.format]);
    let mut pictures = PicturesArg::None;
    if formats.any(|format| format == FormatArg::Html) {
        pictures = args.pictures;
        settings.explain |= pictures == PicturesArg::All;
        settings.detail = pictures != PicturesArg::None;
    }
    AnswerParts {
        bless: args.bless,
        verbose: terminal.verbose,
        pictures,
    }
}

/// Opens the cache of a run, and the record of failures beside it. The record is kept if verdicts
/// are, or for `--rerun-failed`.
fn open_cache(run: &mut Run<'_>, args: &CheckArgs) -> Option<FailedRecord> {
    let folder = cache::default_folder(args.cache_dir.as_deref());
    let keeps = !(args.no_cache || cache::is_off());
    run.cache = folder
        .as_deref()
        .filter(|_| keeps)
        .map(|folder| Arc::new(Cache::new(folder)));
    let folder = folder.filter(|_| keeps || args.rerun_failed)?;
    Some(FailedRecord::open(&folder, &args.paths))
}

/// The questions about a test under a model.
fn questions(test: &LitmusTest, model: &str, args: &CheckArgs) -> Vec<Question> {
    let mut all = plan::expectations(
        test,
        model,
        args.all_properties || !args.property.is_empty(),
    );
    let races = |q: &Question| q.property().to_string() == "race";
    if args.lint.is_some() && model.starts_with("opencl") && !all.iter().any(races) {
        let every = plan::expectations(test, model, true);
        all.extend(every.into_iter().filter(races));
    }
    // Where a smaller launch is decided, this is asked of the given one.
    let barriers = match args.property.as_slice() {
        [] => test.launch.as_ref().is_some_and(|l| l.is_smaller),
        some => some.iter().any(|name| name == "divergence"),
    };
    if barriers && test.launch.is_some() && parametric::solver::is_there() {
        all.push(plan::of_barriers(test));
    }
    all.retain(|q| args.property.is_empty() || args.property.contains(&q.property().to_string()));
    all
}

/// The receiver of answers, in order.
struct Receiver {
    /// The edits that bless expectations.
    edits: Vec<Edit>,
    /// The record of failures.
    record: Option<FailedRecord>,
    fail_fast: bool,
}

impl Receiver {
    /// Reports an answer, and notes its effects. Breaks off if the run is over.
    fn receive(&mut self, run: &mut Run<'_>, checked: Checked) -> ControlFlow<()> {
        let line = &checked.line;
        if let Some(pictured) = &checked.pictured {
            run.outputs.drawing(pictured)?;
        }
        let edit = checked
            .edit
            .map(|edit| edit.map_err(|warning| run.complain(&[warning])));
        count(run, line, matches!(edit, Some(Ok(_))));
        self.edits.extend(edit.and_then(Result::ok));
        if let Some(record) = &mut self.record {
            record.note(line);
        }
        match (checked.shown, checked.pictured.is_some()) {
            (true, true) => run.outputs.writing(line)?,
            (true, false) => run.outputs.line(line)?,
            (false, _) => run.summary.hidden += 1,
        }
        if self.fail_fast && (line.status().fails() || line.answer.defect.is_some()) {
            run.summary.stopped = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// The parts of an answer that are needed beside the verdict.
struct AnswerParts {
    bless: bool,
    verbose: bool,
    pictures: PicturesArg,
}

/// One answer, and what to do with it.
struct Checked {
    /// Without evidence: `ask` and `show` give that.
    line: AnswerLine,
    /// The same with its evidence, for the reports that draw.
    pictured: Option<AnswerLine>,
    shown: bool,
    edit: Option<Result<Edit, Diagnostic>>,
}

/// What to do with the answers about one pair. Runs on a worker.
fn judge(
    unit: &Unit<'_>,
    answers: Decided<AnswerLine>,
    selection: &Selection,
    wanted: &AnswerParts,
) -> Decided<Checked> {
    answers.map(|mut line| {
        let question = unit
            .questions
            .iter()
            .find(|q| q.property() == line.property);
        let shown = selection.shows(unit, question, line.answer.verdict.word());
        let edit = wanted.bless.then(|| blessing::edit(unit, &line)).flatten();
        let unmet = line.status().fails();
        let drawn = match wanted.pictures {
            PicturesArg::None => false,
            PicturesArg::Unmet => unmet,
            PicturesArg::All => true,
        };
        let pictured = (shown && drawn).then(|| line.clone());
        if unmet || wanted.verbose {
            line.drop_executions();
        } else {
            line.drop_evidence();
            line.answer.explanation = None;
        }
        Checked {
            line,
            pictured,
            shown,
            edit,
        }
    })
}

/// Counts a line, and notes its effect on the exit code. A `blessed` expectation will be met by
/// then.
fn count(run: &mut Run<'_>, line: &AnswerLine, blessed: bool) {
    run.summary.add(line);
    run.events.answered = true;
    run.events.unmet |= line.status().fails() && !blessed;
    run.events.undecided |= line.answer.verdict.reason().is_some();
}

/// Narrows the selection to the last failures. If none are known, says so and leaves it unchanged.
fn rerun(run: &mut Run<'_>, record: Option<&FailedRecord>, selection: &mut Selection) {
    let (failed, warning) = record.map(FailedRecord::before).unwrap_or_default();
    run.complain(&warning.into_iter().collect::<Vec<_>>());
    match failed {
        Some(failed) if !failed.is_empty() => selection.failed = Some(failed),
        Some(_) => run
            .terminal
            .remark("nothing failed in the last run: this run decides every test"),
        None => run
            .terminal
            .remark("no record of a last run: this run decides every test"),
    }
}

/// Writes the expectations that were not met.
fn bless(run: &mut Run<'_>, edits: &[Edit]) {
    if edits.is_empty() {
        return;
    }
    let blessed = blessing::apply(edits);
    run.complain(&blessed.diagnostics);
    run.events.unmet |= blessed.left > 0;
    for (site, what) in &blessed.written {
        run.terminal.remark(&format!("blessed: {site}: {what}"));
    }
    let (expectations, files) = (
        counted(blessed.written.len(), "expectation"),
        counted(blessed.files, "file"),
    );
    run.terminal
        .remark(&format!("blessed: {expectations} in {files}"));
}

/// The number of answers, the engines behind them, and the time.
fn effort(run: &Run<'_>, start: Instant) -> String {
    let engines: Vec<_> = run
        .summary
        .engines
        .iter()
        .map(|(engine, n)| format!("{n} by {engine}"))
        .collect();
    let by = if engines.is_empty() {
        String::new()
    } else {
        format!(": {}", engines.join(", "))
    };
    let kept = match &run.cache {
        Some(cache) => format!("{} pairs from the cache", cache.hits()),
        None => "no cache".to_owned(),
    };
    let time = start.elapsed().as_secs_f64();
    let s = if run.summary.answers == 1 { "" } else { "s" };
    format!("{} answer{s}{by}; {kept}; {time:.2} s", run.summary.answers)
}
