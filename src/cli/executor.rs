//! `fencepost run`: the executor's observations, each outcome compared with the model, and the
//! expectations about runs. With `--on`, a device's observations instead.

mod device;
mod recording;
mod tell;

use std::borrow::Cow;
use std::time::{Duration, Instant};

use super::args::{LaunchArgs, MemoryArg, Resident, RunArgs, ScheduleArg};
use super::decide::{Decided, milliseconds};
use super::defect::{self, Again, Defect};
use super::plan::{RequestedModels, Unit};
use super::run::Run;
use super::running::Titled;
use super::settings::Settings;
use super::terminal::Terminal;
use super::{exit, panics};
use diag::Diagnostic;
use engine::Limits;
use engine::query::Deadline;
use operational::{self, ExpectationResult, Faults, ModelComparison};
use program::litmus::LitmusTest;
use program::occupancy::Multiprocessor;
use program::options::Setting;
use recording::Recording;
use report::{Observations, ReportSubject, RunExpected};
use simt::schedule::{Observation, Recorded};
use simt::{self, LaunchOptions, MachineMemory, RunOptions, Schedule, Scheduling};

/// The options, checked.
#[derive(Clone)]
struct RunPlan {
    /// The memory is chosen per test.
    options: RunOptions,
    weak: bool,
    mixed: bool,
    how: RunMethod,
    trace: bool,
    record: bool,
    /// The multiprocessor whose resources decide how many blocks are resident, and the registers of
    /// a thread.
    occupancy: Option<(&'static Multiprocessor, Option<u32>)>,
    /// The rule that is taken out of the machine, to see whether a check notices.
    without: Option<String>,
}

impl RunPlan {
    /// How many blocks of a test a multiprocessor has room for, if its resources decide that; an
    /// error if it has room for none.
    fn room(&self, test: &LitmusTest) -> Option<Result<u32, String>> {
        let (sm, registers) = self.occupancy?;
        let room = sm.room_for(&test.program, registers.map(u64::from));
        Some(room.map(|room| u32::try_from(room).unwrap_or(u32::MAX)))
    }
}

#[derive(Clone)]
enum RunMethod {
    Exhaustive,
    Random { runs: u64, seed: u64 },
    Replay(Recording),
}

impl RunMethod {
    /// # Errors
    /// If a recording cannot be read.
    fn of(args: &RunArgs) -> Result<RunMethod, Box<Diagnostic>> {
        Ok(match &args.schedule {
            ScheduleArg::Exhaustive => RunMethod::Exhaustive,
            ScheduleArg::Random => RunMethod::Random {
                runs: args.runs,
                seed: args.seed,
            },
            ScheduleArg::Replay(file) => RunMethod::Replay(recording::read(file)?),
        })
    }
}

/// One test under one model.
struct ExecutorJob<'a> {
    unit: Unit<'a>,
    /// Whether the test's expectations about runs are judged here: once for all models.
    expectations: bool,
}

impl Titled for ExecutorJob<'_> {
    fn title(&self) -> String {
        self.unit.title()
    }
}

/// The result of one test: the report, and the recording if wanted.
struct RunResult {
    report: Observations,
    recording: Option<Recording>,
}

/// Runs it; returns the exit code.
pub(super) fn run(args: &RunArgs, terminal: &Terminal) -> u8 {
    let code = match &args.on {
        Some(on) => device::execute(args, on, terminal),
        None => execute(args, terminal),
    };
    code.unwrap_or_else(|code| code)
}

fn execute(args: &RunArgs, terminal: &Terminal) -> Result<u8, u8> {
    let invalid = |d: &Diagnostic| {
        terminal.diagnose(d);
        exit::INVALID
    };
    let how = RunMethod::of(args).map_err(|d| invalid(&d))?;
    let weak = is_weak(args, &how);
    let mut question = args.question.clone();
    question.memory.retain(|memory| !is_machine(memory));
    if question.models.is_empty() && !weak {
        // The model that the memory claims to be inside of.
        question.models = vec![MachineMemory::Sc.model().to_owned()];
    }
    let mut run = Run::new(terminal, &question, ReportSubject::Others)?;
    run.sources = args.sources.options();
    let selection = run.select(&args.select)?;
    let files = run.load(&args.paths);
    run.keep_inputs(args.record.iter())?;
    // Without `--model`, each test runs under the model of its dialect, whatever its expectations
    // of others.
    let mut units = run.plan_for(
        &files,
        RequestedModels::Dialect(&question.models),
        |_, _| Ok(Vec::new()),
    );
    selection.narrow(&mut units);
    if let RunMethod::Replay(recording) = &how
        && units.iter().any(|u| recording.is_of(&u.test))
    {
        // Of a template's instances, the recorded one.
        units.retain(|u| recording.is_of(&u.test));
    }
    if args.record.is_some() && units.len() != 1 {
        let plain = Diagnostic::plain(
            "one-test",
            format!("`--record` takes one test; here are {}", units.len()),
        );
        return Err(invalid(
            &plain.help("name one file with one test, and one model"),
        ));
    }
    let plan = RunPlan {
        options: options(args, run.settings.limits.timeout).map_err(|d| invalid(&d))?,
        weak,
        mixed: args.early.is_none(),
        how,
        trace: args.trace,
        record: args.record.is_some(),
        occupancy: match args.launch.resident {
            Some(Resident::Auto(sm)) => Some((sm, args.launch.registers)),
            _ => None,
        },
        without: args.without.clone(),
    };
    run.open(&units, false)?;
    let mut last: Option<*const LitmusTest> = None;
    let jobs: Vec<ExecutorJob<'_>> = units
        .into_iter()
        .map(|unit| {
            let first = last.replace(unit.source) != Some(unit.source);
            ExecutorJob {
                expectations: first && !matches!(plan.how, RunMethod::Replay(_)),
                unit,
            }
        })
        .collect();
    let mut recording = None;
    run.decide(
        &jobs,
        |job, settings| judge(job, settings, &plan),
        |run, outcome| {
            recording = outcome.recording;
            count(run, &plan, &outcome.report);
            run.outputs.observations(&outcome.report)
        },
    );
    if let (Some(file), Some(recording)) = (&args.record, recording)
        && let Err(diagnostic) = recording::write(file, &recording)
    {
        run.complain(&[*diagnostic]);
    }
    Ok(run.end())
}

/// Whether `--memory` names a memory of the executor, not a kind of memory of a model.
fn is_machine(memory: &MemoryArg) -> bool {
    matches!(memory, MemoryArg::Sc | MemoryArg::Weak)
}

/// Whether the runs have a weak memory, as the arguments or the recording say.
fn is_weak(args: &RunArgs, how: &RunMethod) -> bool {
    let named = args.question.memory.iter().rfind(|m| is_machine(m));
    match (named, how) {
        (Some(memory), _) => *memory == MemoryArg::Weak,
        (None, RunMethod::Replay(recording)) => recording.memory() != Some(MachineMemory::Sc),
        (None, _) => Scheduling::from(args.scheduling) != Scheduling::Lockstep,
    }
}

/// The executor's options.
///
/// # Errors
/// If `--without` names no rule of the machine.
fn options(args: &RunArgs, timeout: Option<Duration>) -> Result<RunOptions, Box<Diagnostic>> {
    let LaunchArgs {
        warp_size,
        sms,
        resident,
        registers: _,
        cooperative,
        max_block,
        max_shared,
    } = args.launch;
    // Those of a target are computed for each test.
    let resident = match resident {
        Some(Resident::Blocks(blocks)) => Some(blocks),
        Some(Resident::Auto(_)) | None => None,
    };
    let options = RunOptions {
        scheduling: Scheduling::from(args.scheduling),
        launch: LaunchOptions {
            warp_size,
            sms,
            resident,
            cooperative,
            max_block,
            max_shared,
        },
        memory: MachineMemory::Sc,
        early: args.early.unwrap_or(simt::Early::None),
        steps: args.steps,
        states: args.states,
        timeout,
        races: true,
        lazy: args.submit_on_flush,
        ..RunOptions::default()
    };
    let Some(rule) = &args.without else {
        return Ok(options);
    };
    options.without(rule).map_err(|known| {
        let message = format!("the machine has no rule `{rule}`");
        let plain = Diagnostic::plain("unknown-rule", message);
        Box::new(plain.help(format!("there are {}", known.join(", "))))
    })
}

/// Counts a report for the summary and the exit code.
fn count(run: &mut Run<'_>, plan: &RunPlan, report: &Observations) {
    run.summary.add_observations(report);
    run.events.answered = true;
    run.events.invalid |= matches!(plan.how, RunMethod::Replay(_)) && report.refused.is_some();
    run.events.undecided |= report.refused.is_some()
        || report.unfinished
        || report.expected.iter().any(|e| e.met.is_none())
        || !report.too_large && report.observed.iter().any(|o| o.allowed.is_none());
    run.events.unmet |= report.expected.iter().any(|e| e.met == Some(false))
        || report.observed.iter().any(|o| o.allowed == Some(false));
}

/// The weak memory for a test and a model: that of the model if it has one, else that of the test's
/// dialect.
fn weak(unit: &Unit<'_>) -> MachineMemory {
    let dialect = unit.test.program.dialect;
    let of = |model| MachineMemory::of(dialect, model);
    of(&unit.model.label)
        .or_else(|| of(dialect.default_model()))
        .unwrap_or(MachineMemory::Weak)
}

fn judge(job: &ExecutorJob<'_>, settings: &Settings, plan: &RunPlan) -> Decided<RunResult> {
    let start = Instant::now();
    let unit = &job.unit;
    let memory = if plan.weak {
        weak(unit)
    } else {
        MachineMemory::Sc
    };
    let test: &LitmusTest = &with_options(unit, settings);
    let mut launch = plan.options.launch;
    if let Some(Ok(room)) = plan.room(test) {
        launch.resident = Some(room);
    }
    let plan = &RunPlan {
        options: RunOptions {
            memory,
            launch,
            ..plan.options
        },
        ..plan.clone()
    };
    let mut report = empty_report(unit, plan);
    let (mut defects, mut recording) = (Vec::new(), None);
    match panics::catch(|| JudgedRuns::of(unit, test, settings, plan)) {
        Err(message) => {
            let again = again(plan, None);
            let defect = defect::record_run(test, &unit.model, &message, settings, &again);
            defects.push(defect);
            report.defect = Some(message);
        }
        Ok(Err(why)) => report.refused = Some(why),
        Ok(Ok(seen)) => {
            recording = plan
                .record
                .then(|| Recording::of(test, runs(&seen.observation, &seen.held, false)));
            seen.tell(&mut report, unit, test, settings, plan);
            if let Some(text) = &report.defect {
                let runs = Recording::of(test, runs(&seen.observation, &seen.held, true));
                let again = again(plan, (!runs.runs.is_empty()).then_some(&runs));
                let defect = defect::record_run(test, &unit.model, text, settings, &again);
                defects.push(defect);
            }
        }
    }
    if job.expectations {
        let (expected, broken) = expectations(unit, settings);
        report.expected = expected;
        defects.extend(broken);
    }
    report.ms = settings.timings.then(|| milliseconds(start));
    Decided::new(vec![RunResult { report, recording }], defects)
}

/// The report before anything ran.
fn empty_report(unit: &Unit<'_>, plan: &RunPlan) -> Observations {
    let (schedule, runs) = match plan.how {
        RunMethod::Exhaustive => ("exhaustive", None),
        RunMethod::Random { runs, seed } => ("random", Some((runs, seed))),
        RunMethod::Replay(_) => ("replay", None),
    };
    Observations {
        path: unit.path.to_owned(),
        test: unit.test.name.clone(),
        model: unit.model.request.clone(),
        mapping: unit.mapping.map(|m| m.name()),
        memory: tell::machine(plan, simt::is_mixed(&unit.test)),
        schedule,
        runs,
        ..Observations::default()
    }
}

/// The test with the command's options about races, which the executor needs, too.
fn with_options<'a>(unit: &Unit<'a>, settings: &Settings) -> Cow<'a, LitmusTest> {
    let about_races = settings.set.iter().filter(|set| set.row().told);
    let about_races: Vec<Setting> = about_races.copied().collect();
    let mut test = unit.test.clone();
    if !about_races.is_empty() {
        let test = test.to_mut();
        test.options
            .retain(|old| about_races.iter().all(|set| set.option != old.option));
        test.options.extend(about_races);
    }
    test
}

/// Whether the model is the shipped one that the memory implements, without options: any
/// difference is a defect. A user's file may have the name of a shipped model.
fn is_memory_of(unit: &Unit<'_>, settings: &Settings, plan: &RunPlan) -> bool {
    let shipped = unit.model.request == unit.model.label;
    shipped && unit.model.label == plan.options.memory.model() && settings.set.is_empty()
}

/// Runs of a test, and what the model says of them.
struct JudgedRuns {
    observation: Observation,
    held: ModelComparison,
    /// The model's answers about races and hazards, if the runs call for them.
    faults: Option<Faults>,
    /// The number of runs that the model replayed, if it replays them.
    replayed: Option<usize>,
}

impl JudgedRuns {
    /// # Errors
    /// The reason why the test cannot run.
    fn of(
        unit: &Unit<'_>,
        test: &LitmusTest,
        settings: &Settings,
        plan: &RunPlan,
    ) -> Result<JudgedRuns, String> {
        if let Some(reason) = &unit.refused {
            return Err(reason.to_string());
        }
        let deadline = Deadline::after(settings.limits.timeout);
        plan.room(test).transpose()?;
        // Half of the time is for what the model says of the runs.
        let in_time = RunPlan {
            options: RunOptions {
                timeout: deadline.share(2),
                ..plan.options
            },
            ..plan.clone()
        };
        let mut observation = observe(test, &in_time)?;
        operational::leave_out_races(test, &plan.options, &mut observation);
        // The models know the launch from the test.
        let launched = simt::cooperative(test, &plan.options.launch);
        let judged = launched.as_ref().unwrap_or(test);
        let (model, engine, set) = (&unit.model.model, settings.engine, &settings.set);
        let limits = |parts| Limits {
            timeout: deadline.share(parts),
            ..settings.limits
        };
        let mut held = operational::hold(judged, model, engine, limits(2), set, &observation);
        let knows_races = plan.options.memory.knows_races();
        // Language memories keep no order of writes that nothing orders: a run is not one candidate
        // execution.
        let replays = is_memory_of(unit, settings, plan) && !knows_races;
        if replays {
            operational::replay(&mut held, judged, model, limits(2), &plan.options);
        }
        // A program too large for the model is too large here, too. A program that no machine can
        // launch has no differing runs.
        let asked = (knows_races || !observation.hazards.is_empty())
            && !held.too_large
            && observation.launches();
        let faults =
            asked.then(|| operational::faults(judged, model, engine, limits(1), set, &observation));
        Ok(JudgedRuns {
            observation,
            replayed: replays.then_some(held.replayed),
            held,
            faults,
        })
    }

    /// Fills in the report.
    fn tell(
        &self,
        report: &mut Observations,
        unit: &Unit<'_>,
        test: &LitmusTest,
        settings: &Settings,
        plan: &RunPlan,
    ) {
        let observation = &self.observation;
        report.replayed = self.replayed;
        report.not_replayed = self.held.left_out;
        tell::tell(report, test, plan, observation);
        // A replay shows the recorded run, whatever that was.
        report.unfinished = observation.ended.only_hangs()
            && !expects_to_hang(unit.source)
            && !matches!(plan.how, RunMethod::Replay(_));
        let outside = tell::fill(report, test, plan, observation, &self.held);
        let broken = self.faults.as_ref().and_then(|f| f.defect.clone());
        if plan.options.memory.knows_races() || !observation.hazards.is_empty() {
            report.hazards = Some(tell::hazards(test, observation, self.faults.as_ref()));
        }
        if plan.options.memory.knows_races() {
            report.not_judged = None;
        }
        if is_memory_of(unit, settings, plan) {
            let laws = [outside, report.defect.take(), broken];
            let laws = laws.into_iter().flatten();
            report.defect = laws.reduce(|all, law| all + "; " + &law);
        }
    }
}

/// Whether a test expects something of runs, or that it hangs: that judges runs that do not finish.
fn expects_to_hang(test: &LitmusTest) -> bool {
    let hangs = test
        .expect
        .values()
        .any(|e| e.liveness.values().any(|hangs| *hangs));
    hangs || !test.runs.is_empty()
}

/// Carries out the runs that a test has expectations about, and judges them.
fn expectations(unit: &Unit<'_>, settings: &Settings) -> (Vec<RunExpected>, Vec<Defect>) {
    let test = unit.source;
    let mut defects = Vec::new();
    let one = |run| {
        let judged = panics::catch(|| {
            let observed = operational::carry_out(test, run, settings.limits.timeout);
            operational::judge(test, run, &observed)
        });
        let (met, why) = match judged {
            Ok(ExpectationResult::Met) => (Some(true), Vec::new()),
            Ok(ExpectationResult::Unmet(lines)) => (Some(false), lines),
            Ok(ExpectationResult::Undecided(why)) => (None, vec![why]),
            Err(message) => {
                defects.push(defect::record_run(
                    test,
                    &unit.model,
                    &message,
                    settings,
                    &Again::default(),
                ));
                (None, vec![format!("a defect of Fencepost: {message}")])
            }
        };
        RunExpected {
            line: test.file.line_column(run.span.start as usize).0 as u32,
            text: run.to_string(),
            met,
            why,
        }
    };
    (test.runs.iter().map(one).collect(), defects)
}

/// The number of runs written with a defect.
const MAX_RUNS: usize = 16;

/// The runs to write down: one per outcome, way to stop and kind of undefined behaviour. For a
/// defect, the runs that show a forbidden outcome; without any, all that may be related.
fn runs(observation: &Observation, held: &ModelComparison, defect: bool) -> Vec<Recorded> {
    let outcomes = |only: bool| {
        let picked = held
            .observed
            .iter()
            .filter(move |o| !only || o.allowed == Some(false));
        picked.map(|o| o.schedule.clone())
    };
    if defect && outcomes(true).next().is_some() {
        return outcomes(true).take(MAX_RUNS).collect();
    }
    let stops = observation.stops.iter().map(|s| s.schedule.clone());
    let hazards = observation.hazards.iter().map(|h| h.schedule.clone());
    let mut all: Vec<Recorded> = Vec::new();
    for recorded in outcomes(false).chain(stops).chain(hazards) {
        if !all.contains(&recorded) {
            all.push(recorded);
        }
    }
    if defect {
        all.truncate(MAX_RUNS);
    }
    all
}

/// How to see it again: by a recording, if there is one.
fn again(plan: &RunPlan, recording: Option<&Recording>) -> Again {
    let mut words = match (recording, &plan.how) {
        (Some(_), _) => format!(" --trace --schedule replay:{}", defect::SCHEDULE),
        (None, RunMethod::Random { runs, seed }) => format!(" --runs {runs} --seed {seed}"),
        (None, _) => " --schedule exhaustive".to_owned(),
    };
    if recording.is_none() {
        let RunOptions {
            scheduling,
            launch,
            early,
            steps,
            states,
            memory,
            ..
        } = &plan.options;
        words += &format!(
            " --scheduling {} --steps {steps} --states {states}",
            scheduling.name()
        );
        words += if *memory == MachineMemory::Sc {
            " --memory sc"
        } else {
            " --memory weak"
        };
        if !plan.mixed {
            words += &format!(" --early {early}");
        }
        let numbers = [
            ("warp-size", launch.warp_size),
            ("sms", launch.sms),
            ("resident", launch.resident),
        ];
        words.extend(
            numbers
                .iter()
                .filter_map(|(name, n)| n.map(|n| format!(" --{name} {n}"))),
        );
        words += if launch.cooperative {
            " --cooperative"
        } else {
            ""
        };
        words += &format!(
            " --max-block {} --max-shared {}",
            launch.max_block, launch.max_shared
        );
    }
    words.extend(plan.without.iter().map(|rule| format!(" --without {rule}")));
    Again {
        words,
        schedule: recording.map(recording::text),
    }
}

fn observe(test: &LitmusTest, plan: &RunPlan) -> Result<Observation, String> {
    let schedule = match &plan.how {
        RunMethod::Exhaustive => Schedule::Exhaustive,
        RunMethod::Random { runs, seed } => Schedule::Random {
            runs: *runs,
            seed: *seed,
        },
        RunMethod::Replay(recording) => {
            if !recording.is_of(test) {
                return Err(format!(
                    "the recorded schedule belongs to another program, of test `{}`",
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
