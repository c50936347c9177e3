//! `fencepost advise`: the cheapest orders, scopes and fences that keep a program right; the
//! cheapest repair.
//!
//! Tests of one file that share their code get advice together: the advised program keeps all their
//! expectations, under all their models.
//!
//! # Invariants
//! - The proposed text was read anew, and all engines decided it. Only this last check covers
//!   liveness.

use std::collections::BTreeSet;

use super::args::{AdviseArgs, DenyAdvice};
use super::decide::{self, Decided};
use super::defect;
use super::every_launch::EveryLaunch;
use super::plan::{self, Question, Unit};
use super::run::Run;
use super::running::Titled;
use super::settings::Settings;
use super::terminal::Terminal;
use super::{load, panics, seams};
use diag::{SourceFile, file};
use engine::Engine;
use front::litmus::source::Options;
use program::Dialect;
use report::{
    AdviceItem, AdvicePart, AdviceReport, AdviceVerdict, AnswerLine, ReportSubject, unified,
};
use stop::Spent;
use verdict::{Explanation, Missing, Need, Property, Reason};
use why::Ask;
use why::advice::{self, Advice, Costs, Part, SearchSetup, Solution, TestGoals, Without};

/// Runs it; returns the exit code.
pub(super) fn run(args: &AdviseArgs, terminal: &Terminal) -> u8 {
    advise(args, terminal).unwrap_or_else(|code| code)
}

/// Tests made of the same code, each under a model, with their goals.
struct AdviceGroup<'a> {
    units: Vec<UnitGoals<'a>>,
}

impl Titled for AdviceGroup<'_> {
    fn title(&self) -> String {
        let first = self.units.first();
        first.map_or(String::new(), |goals| goals.unit.title())
    }
}

/// A test under a model, and the properties to keep.
#[derive(Clone)]
struct UnitGoals<'a> {
    unit: &'a Unit<'a>,
    goals: Vec<Ask>,
}

fn advise(args: &AdviseArgs, terminal: &Terminal) -> Result<u8, u8> {
    let mut run = Run::new(terminal, &args.question, ReportSubject::Others)?;
    run.settings.every_launch = parametric::solver::is_there();
    run.sources = args.sources.options();
    let costs = costs(args).map_err(|diagnostics| {
        terminal.diagnose_all(&diagnostics);
        super::exit::INVALID
    })?;
    let sources = args.sources.options();
    let selection = run.select(&args.select)?;
    let files = run.load(&args.paths);
    let mut tests = files.iter().flat_map(|file| &file.tests);
    if let Some(test) = tests.find(|test| test.file.translation.is_some()) {
        terminal.diagnose(&of_module(&test.file.name));
        return Err(super::exit::INVALID);
    }
    let mut units = run.plan(&files, |test, model| {
        Ok(plan::expectations(test, model, false))
    });
    selection.narrow(&mut units);
    run.open(&units, false)?;
    let groups: Vec<AdviceGroup<'_>> = (units.chunk_by(|a, b| a.path == b.path))
        .flat_map(groups)
        .map(|units| AdviceGroup {
            units: units
                .into_iter()
                .map(|unit| UnitGoals {
                    unit,
                    goals: goals(unit, args.repair),
                })
                .collect(),
        })
        .collect();
    run.decide(
        &groups,
        |group, settings| judge(group, settings, &costs, &sources),
        |run, advice| {
            run.summary.add_advice(&advice);
            run.events.answered = true;
            run.events.undecided |= advice.verdict == AdviceVerdict::Undecided;
            // With `--repair` no test claims that the program is right.
            let wrong = matches!(
                advice.verdict,
                AdviceVerdict::Repaired | AdviceVerdict::BeyondRepair
            );
            let denied = args.deny == Some(DenyAdvice::OverSynchronised);
            run.events.unmet |= wrong && !args.repair
                || denied && advice.verdict == AdviceVerdict::OverSynchronised;
            run.outputs.advice(&advice)
        },
    );
    Ok(run.end())
}

/// Refuses a module of SPIR-V.
fn of_module(name: &str) -> diag::Diagnostic {
    let message = format!("advice changes source text, and `{name}` is a module of SPIR-V");
    diag::Diagnostic::plain("unsupported-spirv", message)
        .help("ask for advice about its OpenCL C: `fencepost import` writes that")
}

/// The table of costs.
fn costs(args: &AdviseArgs) -> Result<Costs, Vec<diag::Diagnostic>> {
    let Some(path) = &args.cost else {
        return Ok(Costs::shipped());
    };
    let text = load::text(path, file::LARGEST).map_err(|diagnostic| vec![*diagnostic])?;
    Costs::read(&SourceFile::new(path.to_string_lossy(), text))
}

/// Places of instructions in a file.
type Spans = BTreeSet<(u32, u32)>;

/// The units of a file, grouped by shared code.
fn groups<'a>(units: &'a [Unit<'a>]) -> Vec<Vec<&'a Unit<'a>>> {
    let mut groups: Vec<(Spans, Vec<&Unit<'_>>)> = Vec::new();
    for unit in units {
        let spans = unit
            .source
            .program
            .instrs()
            .map(|(_, _, i)| (i.span.start, i.span.end));
        let spans: Spans = spans.filter(|span| span.0 < span.1).collect();
        // Several groups may turn out to be one.
        let (same, others): (Vec<_>, Vec<_>) = (groups.into_iter()).partition(|group| {
            !group.0.is_disjoint(&spans)
                || group
                    .1
                    .iter()
                    .any(|other| std::ptr::eq(other.source, unit.source))
        });
        groups = others;
        let mut all = (spans, Vec::new());
        for (spans, units) in same {
            all.0.extend(spans);
            all.1.extend(units);
        }
        all.1.push(unit);
        groups.push(all);
    }
    groups.into_iter().map(|group| group.1).collect()
}

/// The goals: the expectations that a right program meets. Without expectations, the condition must
/// not happen, or, quantified by `forall`, must. With `repair`, outcomes that are expected to go
/// wrong must not happen. A kernel of a source file must be defined and, unless its language allows
/// races, race-free.
fn goals(unit: &Unit<'_>, repair: bool) -> Vec<Ask> {
    let expectation = unit.source.expect.get(&unit.model.label);
    if expectation.is_some_and(|e| e.known.is_some()) {
        return Vec::new();
    }
    let is_kernel = unit.source.launch.is_some() && expectation.is_none();
    let allows_races = unit.source.program.dialect == Dialect::Ptx;
    let goal = |question: &Question| {
        let expected = question.expected;
        let (ask, is_goal) = match question.ask {
            Ask::Reachability {
                prop: Some(_),
                negate,
            } => {
                let right = match expected {
                    Some("allowed") => repair,
                    Some(_) => true,
                    None => expectation.is_none() || repair,
                };
                (Ask::Reachability { prop: None, negate }, right)
            }
            Ask::Race if is_kernel && expected.is_none() => (Ask::Race, repair || !allows_races),
            Ask::Misuse if is_kernel && expected.is_none() => (Ask::Undefined, true),
            Ask::Race | Ask::Undefined => {
                let ask = question.ask.clone();
                let right = expected.is_some_and(|e| repair || e == ask.goal());
                (ask, right)
            }
            _ => return None,
        };
        is_goal.then_some(ask)
    };
    let mut goals: Vec<Ask> = unit.questions.iter().filter_map(goal).collect();
    // If a test expects no more than a race, its condition must not hold either.
    let asks = unit
        .questions
        .iter()
        .any(|q| q.property() == Property::Reachability);
    if repair && !asks && unit.source.condition.is_some() {
        let own = plan::own_condition(unit.source, &unit.model.label);
        goals.extend(goal(&own));
    }
    goals
}

/// Looks for the advice, and decides it again.
fn judge(
    group: &AdviceGroup<'_>,
    settings: &Settings,
    costs: &Costs,
    sources: &Options,
) -> Decided<AdviceReport> {
    let with_goals = group.units.iter().filter(|of| !of.goals.is_empty());
    let mut wanted: Vec<UnitGoals<'_>> = with_goals.cloned().collect();
    let mut told = empty_report(group);
    let Some(first) = wanted.first().map(|of| of.unit) else {
        return Decided::new(vec![told], Vec::new());
    };
    let how = SearchSetup {
        engine: settings.engine,
        limits: settings.limits,
        set: &settings.set,
        costs,
    };
    if let [only] = &wanted[..]
        && let Ok(true) = panics::catch(|| tell_barrier(&mut told, only, settings))
    {
        return Decided::new(vec![told], Vec::new());
    }
    let mut defects = Vec::new();
    match panics::catch(|| advice::advise(questions(&wanted), &how)) {
        _ if stop::spent() == Some(Spent::Stack) => {
            told.verdict = AdviceVerdict::Undecided;
            told.reason = Some(Reason::Stack.to_string());
        }
        Err(message) => {
            let defect = defect::record(&first.test, &first.model, "advice", &message, settings);
            defects.push(defect);
            told.verdict = AdviceVerdict::Undecided;
            told.reason = Some(Reason::Broken.to_string());
        }
        Ok(found) => {
            // The goals that the program had anyway.
            for (number, goal) in &found.kept {
                wanted[*number].goals.push(goal.clone());
            }
            tell_search(&mut told, &found, &wanted);
            if let Some(solution) = found.found {
                tell_solution(&mut told, &solution, found.held, first);
                let (lost, broken) = confirmed(group, &wanted, &solution.text, settings, sources);
                if !lost.is_empty() {
                    let lost = lost.join(", ");
                    told.verdict = AdviceVerdict::Undecided;
                    told.reason = Some(format!("the cheapest program does not keep {lost}"));
                }
                defects = broken;
                told.program = Some(solution.text);
            }
        }
    }
    Decided::new(vec![told], defects)
}

/// Reports a barrier that makes a kernel race-free in launches of any size; whether there is one.
fn tell_barrier(told: &mut AdviceReport, of: &UnitGoals<'_>, settings: &Settings) -> bool {
    let goal = Ask::Race;
    if !of.goals.iter().any(|g| g.property() == goal.property()) {
        return false;
    }
    // The exact engines mend kernels whose launch they decide, with the cheapest barrier.
    let kernel = EveryLaunch::of(of.unit, settings).filter(EveryLaunch::is_smaller);
    let Some(found) = kernel.and_then(|kernel| kernel.repair()) else {
        return false;
    };
    let unit = of.unit;
    told.verdict = AdviceVerdict::Repaired;
    let (test, model) = (unit.source.name.clone(), unit.model.label.clone());
    told.keeps = vec![(test, model, goal.goal())];
    let (line, barrier) = (found.change.line, found.barrier);
    told.changes = vec![AdvicePart {
        text: format!("`{barrier}` comes {} line {}", found.side, line.number),
        line,
        threads: String::new(),
    }];
    told.diff = unified(&told.path, &unit.source.file.text, &found.text);
    told.proved = Some(found.proved.word());
    told.program = Some(found.text);
    true
}

/// The report before the search. If no test has goals, it names them all.
fn empty_report(group: &AdviceGroup<'_>) -> AdviceReport {
    let (mut tests, mut models): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let have_goals = group.units.iter().any(|of| !of.goals.is_empty());
    for UnitGoals { unit, goals } in &group.units {
        if goals.is_empty() && have_goals {
            continue;
        }
        if !tests.contains(&unit.source.name) {
            tests.push(unit.source.name.clone());
        }
        if !models.contains(&unit.model.label) {
            models.push(unit.model.label.clone());
        }
    }
    AdviceReport {
        path: group.units[0].unit.path.to_owned(),
        tests,
        models,
        verdict: AdviceVerdict::NothingToKeep,
        keeps: Vec::new(),
        cost: 0,
        cheapest: None,
        least: true,
        changes: Vec::new(),
        menu: Vec::new(),
        choices: 0,
        programs: 0,
        undecided: 0,
        reason: None,
        proved: None,
        reading: None,
        diff: String::new(),
        program: None,
    }
}

/// The questions to the search.
fn questions<'a>(wanted: &[UnitGoals<'a>]) -> Vec<TestGoals<'a>> {
    wanted
        .iter()
        .map(|UnitGoals { unit, goals }| TestGoals {
            test: unit.source,
            model: &unit.model.model,
            name: &unit.model.label,
            mapping: unit.mapping,
            goals: goals.clone(),
        })
        .collect()
}

/// Reports the search, and the reason if it found nothing.
fn tell_search(told: &mut AdviceReport, found: &Advice, wanted: &[UnitGoals<'_>]) {
    for UnitGoals { unit, goals } in wanted {
        let keeps = goals.iter().map(|goal| {
            let (test, model) = (unit.source.name.clone(), unit.model.label.clone());
            (test, model, goal.goal())
        });
        told.keeps.extend(keeps);
    }
    told.least = found.least;
    (told.cost, told.choices, told.programs) = (found.cost, found.choices, found.decided);
    told.undecided = found.undecided;
    let given_up = found
        .given_up
        .as_ref()
        .map(|reason| match (reason, stop::spent()) {
            (Reason::Time, Some(Spent::Memory)) => &Reason::Memory,
            _ => reason,
        });
    told.reason = given_up.map(ToString::to_string);
    if found.found.is_some() {
        return;
    }
    told.reading = found.reading.as_ref().and_then(in_reading);
    told.verdict = match (&found.given_up, found.undecided) {
        (None, 0) if found.held == Some(false) => AdviceVerdict::BeyondRepair,
        _ => AdviceVerdict::Undecided,
    };
    if told.verdict == AdviceVerdict::Undecided && told.reason.is_none() {
        let reason = "the search found no program, and some programs are undecided";
        told.reason = Some(reason.to_owned());
    }
}

/// What would forbid the outcome in another reading of the source, as `check` says it.
fn in_reading(reading: &(String, Vec<Need>)) -> Option<String> {
    let (under, edits) = reading;
    let none = format!("the reading `{under}` of the source forbids it as written");
    let missing = Missing {
        edits: edits.clone(),
        under: Some(under.clone()),
        breach: None,
        links: Vec::new(),
        none: edits.is_empty().then_some(none),
    };
    report::remedy(&Explanation {
        missing: Some(missing),
        ..Explanation::default()
    })
}

/// Reports the cheapest program. `held`: whether the original has all goals.
fn tell_solution(
    told: &mut AdviceReport,
    solution: &Solution,
    held: Option<bool>,
    original: &Unit<'_>,
) {
    told.cheapest = Some(solution.cost);
    told.changes = solution.changes.iter().map(part).collect();
    told.menu = solution.menu.iter().map(item).collect();
    told.diff = unified(&told.path, &original.source.file.text, &solution.text);
    told.verdict = match held {
        Some(false) => AdviceVerdict::Repaired,
        _ if solution.cost < told.cost => AdviceVerdict::OverSynchronised,
        _ => AdviceVerdict::Minimal,
    };
}

fn part(part: &Part) -> AdvicePart {
    AdvicePart {
        line: part.line.clone(),
        threads: part.threads.clone(),
        text: part.text.clone(),
    }
}

fn item((of, without): &(Part, Without)) -> AdviceItem {
    let (needed, more, instead) = match without {
        Without::Needed => (Some(true), None, Vec::new()),
        Without::More(more, instead) => {
            (Some(false), Some(*more), instead.iter().map(part).collect())
        }
        Without::Open(_) => (None, None, Vec::new()),
    };
    AdviceItem {
        part: part(of),
        needed,
        more,
        instead,
    }
}

/// Decides the proposed file by all engines: goals that it misses, and broken laws. It must confirm
/// the search.
fn confirmed(
    group: &AdviceGroup<'_>,
    wanted: &[UnitGoals<'_>],
    text: &str,
    settings: &Settings,
    sources: &Options,
) -> (Vec<String>, Vec<defect::Defect>) {
    let path = group.units[0].unit.path;
    let both = Settings {
        engine: Engine::Both,
        ..settings.clone()
    };
    let (mut lost, mut defects) = (Vec::new(), Vec::new());
    let tests = match seams::read_file(path, text.as_bytes(), sources) {
        Ok(read) => read.tests,
        Err(errors) => {
            let why = errors
                .first()
                .map_or(String::new(), |error| error.message.clone());
            return (vec![format!("its form as a test: {why}")], defects);
        }
    };
    for UnitGoals { unit: old, .. } in &group.units {
        let Some(test) = tests.iter().find(|test| test.name == old.source.name) else {
            lost.push(format!("the test {}", old.source.name));
            continue;
        };
        let label = &old.model.label;
        let is_old =
            |of: &&UnitGoals<'_>| of.unit.source.name == test.name && of.unit.model.label == *label;
        let goals = wanted.iter().find(is_old).map_or(&[][..], |of| &of.goals);
        let goal_of = |question: &Question| {
            let property = question.property();
            goals.iter().find(|goal| goal.property() == property)
        };
        let mut questions = plan::expectations(test, label, true);
        questions.retain(|q| goal_of(q).is_some() || q.expected == Some("terminates"));
        let judged = match old.mapping.map(|mapping| mapping.lowered(test)) {
            None => std::borrow::Cow::Borrowed(test),
            Some(Ok(lowered)) => std::borrow::Cow::Owned(lowered),
            Some(Err(_)) => continue,
        };
        let unit = Unit {
            path,
            test: judged,
            source: test,
            mapping: old.mapping,
            refused: old.refused.clone(),
            model: old.model.clone(),
            questions,
            place: 0,
        };
        let answered = decide::answers(&unit, &both);
        defects.extend(answered.defects);
        for (question, line) in unit.questions.iter().zip(&answered.results) {
            fn said(line: &AnswerLine) -> String {
                line.answer.verdict.word().to_owned()
            }
            let kept = match goal_of(question) {
                Some(Ask::Reachability { .. }) => said(line) == "forbidden",
                Some(goal) => said(line) == goal.goal(),
                None => line.met() != Some(false),
            };
            if !kept {
                lost.push(format!(
                    "{} ({} under {label})",
                    question.property(),
                    test.name
                ));
            }
        }
    }
    (lost, defects)
}
