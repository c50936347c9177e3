//! `fencepost run`: what the executor observes, each outcome held against the model.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::args::{LaunchArgs, MemoryArg, RunArgs, ScheduleArg};
use super::decide::{Decided, milliseconds};
use super::defect;
use super::plan::Unit;
use super::run::Run;
use super::settings::Settings;
use super::terminal::{Terminal, cannot_write};
use super::{exit, panics};
use crate::check::operational::{self, Faults, Held};
use crate::diag::Diagnostic;
use crate::litmus::LitmusTest;
use crate::report::{Hazard, Hazards, Observations, Observed, Part, Raced, Stopped, Subject};
use crate::simt::schedule::{Ended, Observation, Recorded};
use crate::simt::{self, Launch, MemoryKind, Options, Schedule, Scheduling, record};
use crate::verdict::Verdict;

/// A file of recorded runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recording {
    /// The version of the format.
    version: u32,
    /// The test's name, for people.
    test: String,
    /// What it runs.
    program: String,
    /// The runs, one per outcome.
    runs: Vec<Recorded>,
}

/// What the options ask for.
#[derive(Clone)]
struct Plan {
    /// Of these, the memory is chosen per test.
    options: Options,
    weak: bool,
    mixed: bool,
    how: How,
    trace: bool,
    record: bool,
}

#[derive(Clone)]
enum How {
    Exhaustive,
    Random { runs: u64, seed: u64 },
    Replay(Recording),
}

/// What came of one test: the report, and the recording if one was asked for.
struct Outcome {
    report: Observations,
    recording: Option<Recording>,
}

/// Runs it; returns the exit code.
pub(super) fn run(args: &RunArgs, terminal: &Terminal) -> u8 {
    execute(args, terminal).unwrap_or_else(|code| code)
}

fn execute(args: &RunArgs, terminal: &Terminal) -> Result<u8, u8> {
    let scheduling = Scheduling::from(args.scheduling);
    let weak = match args.memory {
        Some(memory) => memory == MemoryArg::Weak,
        None => scheduling != Scheduling::Lockstep,
    };
    let LaunchArgs { warp_size, sms, resident, cooperative, max_block, max_shared } = args.launch;
    let launch = Launch { warp_size, sms, resident, cooperative, max_block, max_shared };
    let mut question = args.question.clone();
    if question.models.is_empty() && !weak {
        // The model that the memory claims to be inside of.
        question.models = vec![MemoryKind::Sc.model().to_owned()];
    }
    let mut run = Run::new(terminal, &question, Subject::Others)?;
    let how = match &args.schedule {
        ScheduleArg::Exhaustive => How::Exhaustive,
        ScheduleArg::Random => How::Random { runs: args.runs, seed: args.seed },
        ScheduleArg::Replay(file) => How::Replay(read(file).map_err(|d| {
            terminal.diagnose(&d);
            exit::INVALID
        })?),
    };
    let selection = run.select(&args.select)?;
    let mut files = run.load(&args.paths);
    if question.models.is_empty() {
        // Without `--model`, each test runs under the model of its dialect, whatever it expects of others.
        for test in files.iter_mut().flat_map(|f| &mut f.tests) {
            test.expect.clear();
            test.runs.clear();
        }
    }
    let mut units = run.plan(&files, |_, _| Ok(Vec::new()));
    selection.narrow(&mut units);
    if args.record.is_some() && units.len() != 1 {
        let plain =
            Diagnostic::plain("one-test", format!("`--record` is for one test, and here are {}", units.len()));
        terminal.diagnose(&plain.help("name one file with one test, and one model"));
        return Err(exit::INVALID);
    }
    let timeout = run.settings.limits.timeout;
    let options = Options {
        scheduling,
        launch,
        memory: MemoryKind::Sc,
        early: args.early.unwrap_or(simt::Early::None),
        steps: args.steps,
        states: args.states,
        timeout,
        races: true,
        ..Options::default()
    };
    let plan =
        Plan { options, weak, mixed: args.early.is_none(), how, trace: args.trace, record: args.record.is_some() };
    run.open(&units, false)?;
    let mut recording = None;
    run.decide(
        &units,
        |unit, settings| judge(unit, settings, &plan),
        |run, outcome| {
            let report = outcome.report;
            recording = outcome.recording;
            run.summary.add_observations(&report);
            run.events.answered = true;
            run.events.invalid |= matches!(plan.how, How::Replay(_)) && report.refused.is_some();
            run.events.undecided |= report.refused.is_some()
                || !report.too_large && report.observed.iter().any(|o| o.allowed.is_none());
            run.events.unmet |= report.observed.iter().any(|o| o.allowed == Some(false));
            run.outputs.observations(&report)
        },
    );
    if let (Some(file), Some(recording)) = (&args.record, recording)
        && let Err(diagnostic) = write(file, &recording)
    {
        run.complain(&[*diagnostic]);
    }
    Ok(run.end())
}

/// The weak memory for a test and a model: that of the model if it has one, else that of the test's dialect.
fn weak(unit: &Unit<'_>) -> MemoryKind {
    let dialect = unit.test.program.dialect;
    let of = |model| MemoryKind::of(dialect, model);
    of(&unit.model.label).or_else(|| of(dialect.default_model())).unwrap_or(MemoryKind::Weak)
}

fn judge(unit: &Unit<'_>, settings: &Settings, plan: &Plan) -> Decided<Outcome> {
    let start = Instant::now();
    let memory = if plan.weak { weak(unit) } else { MemoryKind::Sc };
    let plan = &Plan { options: Options { memory, ..plan.options }, ..plan.clone() };
    let mut report = Observations {
        path: unit.path.to_owned(),
        test: unit.test.name.clone(),
        model: unit.model.label.clone(),
        mapping: unit.mapping,
        memory: machine(plan, simt::is_mixed(&unit.test)),
        schedule: match plan.how {
            How::Exhaustive => "exhaustive",
            How::Random { .. } => "random",
            How::Replay(_) => "replay",
        },
        runs: match plan.how {
            How::Random { runs, seed } => Some((runs, seed)),
            _ => None,
        },
        ..Observations::default()
    };
    let (mut defects, mut recording) = (Vec::new(), None);
    let test: &LitmusTest = &unit.test;
    let sure = unit.model.label == plan.options.memory.model() && settings.set.is_empty();
    let done = panics::catch(|| {
        if let Some(reason) = &unit.refused {
            return Err(reason.clone());
        }
        let observation = observe(test, plan)?;
        let model = &unit.model.model;
        let (engine, limits) = (settings.engine, settings.limits);
        let mut held = operational::hold(test, model, engine, limits, &settings.set, &observation);
        // Language memories keep no order of writes that nothing orders: a run is not one candidate execution.
        if sure && !plan.options.memory.knows_races() {
            operational::replay(&mut held, test, model, limits, &plan.options);
        }
        // A program too large for the model is too large for this, too.
        let asked = plan.options.memory.knows_races() && !held.too_large;
        let faults = asked.then(|| operational::faults(test, model, engine, limits, &settings.set, &observation));
        Ok::<_, String>((observation, held, faults))
    });
    match done {
        Err(message) => report.defect = Some(message),
        Ok(Err(why)) => report.refused = Some(why),
        Ok(Ok((observation, held, faults))) => {
            recording = plan.record.then(|| Recording {
                version: 1,
                test: test.name.clone(),
                program: simt::fingerprint(test),
                runs: held.observed.iter().map(|o| o.schedule.clone()).collect(),
            });
            tell(&mut report, test, plan, &observation);
            let outside = fill(&mut report, test, plan, &observation, &held);
            let broken = faults.as_ref().and_then(|f| f.defect.clone());
            if plan.options.memory.knows_races() {
                report.hazards = Some(hazards(test, &observation, faults.as_ref()));
                report.not_judged = None;
            }
            if sure && report.defect.is_none() {
                report.defect = outside.or(broken);
            }
        }
    }
    if let Some(text) = &report.defect {
        let runs = recording.iter().flat_map(|r: &Recording| &r.runs).map(|r| serde_json::json!(r).to_string());
        let text = runs.fold(text.clone(), |text, run| text + "\nschedule: " + &run);
        defects.push(defect::record(test, &unit.model, "run", &text, settings));
    }
    report.ms = settings.timings.then(|| milliseconds(start));
    Decided::new(vec![Outcome { report, recording }], defects)
}

/// The machine, in words.
fn machine(plan: &Plan, mixed: bool) -> String {
    let options = &plan.options;
    let mut text = memory(plan, mixed);
    if options.scheduling != Scheduling::Independent {
        text += &format!(", {} scheduling", options.scheduling.name());
    }
    if let Some(size) = options.launch.warp_size {
        text += &format!(", warps of {size}");
    }
    if let Some(room) = options.launch.capacity() {
        text += &format!(", room for {room} block{}", if room == 1 { "" } else { "s" });
    }
    text
}

fn memory(plan: &Plan, mixed: bool) -> String {
    let early = match (plan.options.memory, &plan.how, plan.mixed) {
        (MemoryKind::Sc, ..) => return "sequentially consistent memory".into(),
        (memory, ..) if !memory.binds() => return format!("memory of {}, early binds: none", memory.name()),
        (_, How::Replay(_), _) => "as recorded".into(),
        (_, How::Random { .. }, true) if !mixed => "none".into(),
        (_, How::Random { .. }, true) => "none, and full:2 in one run of four".into(),
        (_, How::Exhaustive, true) => "none, then full:1".into(),
        (_, _, false) => plan.options.early.to_string(),
    };
    format!("weak memory, early binds: {early}")
}

fn observe(test: &LitmusTest, plan: &Plan) -> Result<Observation, String> {
    let schedule = match &plan.how {
        How::Exhaustive => Schedule::Exhaustive,
        How::Random { runs, seed } => Schedule::Random { runs: *runs, seed: *seed },
        How::Replay(recording) => {
            if recording.program != simt::fingerprint(test) {
                return Err(format!(
                    "the recorded schedule is of another program, that of test `{}`",
                    recording.test
                ));
            }
            let mut all = Observation::default();
            for recorded in &recording.runs {
                all.merge(simt::replay(test, &plan.options, recorded)?);
            }
            return Ok(all);
        }
    };
    if plan.mixed {
        simt::observe_mixed(test, &plan.options, schedule)
    } else {
        simt::observe(test, &plan.options, schedule)
    }
}

/// Adds what the runs showed beside outcomes.
fn tell(report: &mut Observations, test: &LitmusTest, plan: &Plan, observation: &Observation) {
    report.stops = observation
        .stops
        .iter()
        .map(|s| Stopped {
            how: s.how.name(),
            count: s.count,
            why: s.why.clone(),
            ends: s.ends.clone(),
            trace: plan.trace.then(|| trace(test, plan, &s.schedule)),
        })
        .collect();
    report.races = observation
        .races
        .iter()
        .map(|r| Raced {
            location: r.location.clone(),
            space: r.space,
            sides: [r.first.to_string(), r.second.to_string()],
            why: r.why.clone(),
            count: r.count,
        })
        .collect();
    report.judged = observation.judged;
    report.not_judged = observation.not_judged.clone();
}

/// Fills the report; gives the law that is broken if the model forbids something observed.
fn fill(
    report: &mut Observations,
    test: &LitmusTest,
    plan: &Plan,
    observation: &Observation,
    held: &Held,
) -> Option<String> {
    let Ended { finished, deadlock, livelock, stale, step_limit, stray, divergence, division, discarded } =
        observation.ended;
    let ended = [
        ("finished", finished),
        ("deadlock", deadlock),
        ("livelock", livelock),
        ("stale-livelock", stale),
        ("step-limit", step_limit),
        ("stray", stray),
        ("divergence", divergence),
        ("division", division),
        ("discarded", discarded),
    ];
    report.ended = ended.into_iter().filter(|e| e.1 > 0).collect();
    report.complete = observation.complete;
    report.reason = observation.reason.clone().or_else(|| {
        let why = held.reason.as_ref()?;
        (!held.complete).then(|| format!("what the model allows: {why}"))
    });
    report.bound = held.bound;
    report.too_large = held.too_large;
    report.not_observed = held.not_observed.clone();
    report.defect = held.defect.clone();
    report.observed = held
        .observed
        .iter()
        .map(|o| Observed {
            state: o.state.clone(),
            count: o.count,
            allowed: o.allowed,
            trace: plan.trace.then(|| trace(test, plan, &o.schedule)),
        })
        .collect();
    let outside: Vec<String> = held
        .observed
        .iter()
        .filter(|o| o.allowed == Some(false))
        .map(|o| o.state.iter().map(|(n, v)| format!("{n} = {v}")).collect::<Vec<_>>().join(", "))
        .collect();
    (!outside.is_empty()).then(|| format!("the executor shows what the model forbids: {}", outside.join("; ")))
}

/// What was observed to be undefined, and what the model says of it.
fn hazards(test: &LitmusTest, observation: &Observation, faults: Option<&Faults>) -> Hazards {
    let part = |&(thread, instr): &(usize, usize)| {
        let thread = &test.program.threads[thread];
        let instr = &thread.code[instr];
        Part { thread: thread.name.clone(), line: instr.line, text: instr.text.clone() }
    };
    let names = simt::location_names(test);
    let one = |h: &record::Hazard| Hazard {
        kind: h.kind.name(),
        place: h.loc.map(|loc| names[loc].clone()),
        parts: std::iter::once(&h.first).chain(&h.second).map(part).collect(),
    };
    let word = |of: fn(&Faults) -> &Option<Verdict>| faults.and_then(|f| of(f).as_ref()).map(Verdict::word);
    let observed = operational::hazards(test, observation).iter().map(one).collect();
    Hazards { observed, race: word(|f| &f.race), undefined: word(|f| &f.undefined) }
}

fn trace(test: &LitmusTest, plan: &Plan, recorded: &Recorded) -> String {
    match simt::replay(test, &plan.options, recorded) {
        Ok(observation) => simt::trace(test, &observation.events),
        Err(why) => why,
    }
}

fn read(file: &Path) -> Result<Recording, Box<Diagnostic>> {
    let name = file.display();
    let unreadable = |why: String| {
        Box::new(
            Diagnostic::plain("bad-schedule", format!("`{name}` is no recorded schedule: {why}"))
                .help("such files are written by `fencepost run --record FILE`"),
        )
    };
    let text = fs::read_to_string(file)
        .map_err(|e| Box::new(Diagnostic::plain("unreadable-file", format!("`{name}` cannot be read: {e}"))))?;
    let recording: Recording = serde_json::from_str(&text).map_err(|e| unreadable(e.to_string()))?;
    if recording.version != 1 {
        return Err(unreadable(format!("version {} of the format; this program knows 1", recording.version)));
    }
    Ok(recording)
}

fn write(file: &Path, recording: &Recording) -> Result<(), Box<Diagnostic>> {
    let mut text = serde_json::to_string_pretty(recording).expect("a recording is plain data");
    text.push('\n');
    fs::write(file, text).map_err(|e| Box::new(cannot_write(file, &e)))
}
