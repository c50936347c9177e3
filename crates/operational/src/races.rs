//! Finds races, undefined behaviour and hangs in runs of programs that are too large for the
//! engines.
//!
//! # Invariants
//! - A race counts as a race of the model only if its run passes the plain evaluator as a candidate
//!   execution, and the model's flag marks it. A race that only vector clocks show is reported as
//!   such. The same goes for undefined behaviour.
//! - A run hangs only if every thread of it has ended, waits for others that never come, or repeats
//!   its steps while all others have their turns. Such a run is endless under every progress model.
//! - The runs are always the same. The time limit only cuts them short.

use std::time::{Duration, Instant};

use super::passes;
use super::settled::settled;
use super::trial::{ReplayResult, try_run};
use cat::model::ir::{Model, TestEffect};
use engine::facts::Facts;
use engine::fault;
use engine::task::Task;
use program::litmus::LitmusTest;
use program::options::Setting;
use simt::race::Race;
use simt::record::RunHazard;
use simt::schedule::{Observation, Recorded, StopKind, StopReport};
use simt::{Early, MachineMemory, RunOptions, Schedule};
use verdict::Fault;

/// The sizes of the batches of runs; the search stops after the first batch with a race.
const BATCHES: [u64; 3] = [1, 4, 15];
/// The time limit for the runs and their evaluation.
const LONGEST: Duration = Duration::from_secs(20);
/// The largest number of races that the model examines.
const TRIES: usize = 4;

/// The result of the search for races or undefined behaviour.
#[derive(Debug)]
pub enum RunSearch {
    /// A fault, in an execution of the model.
    Shown(Box<Fault>),
    /// A fault by the executor's account, and the reason why its run did not reach the model, or
    /// the model's answer.
    Seen {
        /// The fault: its places, and of a race the missing condition.
        what: String,
        /// The reason why the model did not confirm it.
        but: String,
    },
    /// No fault in this number of runs.
    Not(u64),
    /// The runs were not examined; the reason.
    None(String),
}

/// The result of the search for hangs.
#[derive(Debug)]
pub enum HangSearch {
    /// A run that hangs: the reason, line by line.
    Shown(Vec<String>),
    /// No run of this number hangs.
    Not(u64),
    /// The runs were not examined; the reason.
    None(String),
}

/// The memory on which runs of a test are searched, and the time for it.
fn searched(
    test: &LitmusTest,
    timeout: Option<Duration>,
) -> Result<(MachineMemory, Instant), String> {
    let time = timeout.map_or(LONGEST, |t| t.min(LONGEST));
    let dialect = test.program.dialect;
    match MachineMemory::of(dialect, dialect.default_model()) {
        Some(memory) => Ok((memory, Instant::now() + time)),
        None => Err(format!("it does not run {dialect} code")),
    }
}

/// Searches runs of a test on its weak memory for one that hangs.
pub fn look_for_hang(test: &LitmusTest, timeout: Option<Duration>) -> HangSearch {
    if test.filter.is_some() {
        return HangSearch::None("a run without an outcome passes no filter".into());
    }
    let (memory, deadline) = match searched(test, timeout) {
        Ok(searched) => searched,
        Err(why) => return HangSearch::None(why),
    };
    let random = (0..)
        .zip(BATCHES)
        .map(|(seed, runs)| Schedule::Random { runs, seed });
    let mut runs = 0;
    for schedule in random.chain([Schedule::Exhaustive]) {
        let options = RunOptions {
            memory,
            early: Early::None,
            timeout: Some(deadline.saturating_duration_since(Instant::now())),
            ..RunOptions::default()
        };
        let observation = match simt::observe(test, &options, schedule) {
            Ok(observation) => observation,
            Err(why) => return HangSearch::None(why),
        };
        let hangs =
            |stop: &&StopReport| matches!(stop.how, StopKind::Deadlock | StopKind::Livelock);
        if let Some(stop) = observation.stops.iter().find(hangs) {
            return HangSearch::Shown(stop.why.clone());
        }
        if let Schedule::Random { runs: more, .. } = schedule {
            runs += more;
        }
        if Instant::now() >= deadline {
            break;
        }
    }
    HangSearch::Not(runs)
}

/// Searches runs of a test on its weak memory for a race, or for undefined behaviour.
pub fn look(
    test: &LitmusTest,
    model: &Model,
    set: &[Setting],
    timeout: Option<Duration>,
    effect: TestEffect,
) -> RunSearch {
    look_in(&BATCHES, test, model, set, timeout, effect)
}

/// As [`look`], in the first few runs.
pub fn look_once(
    test: &LitmusTest,
    model: &Model,
    set: &[Setting],
    timeout: Duration,
    effect: TestEffect,
) -> RunSearch {
    look_in(&BATCHES[..2], test, model, set, Some(timeout), effect)
}

fn look_in(
    batches: &[u64],
    test: &LitmusTest,
    model: &Model,
    set: &[Setting],
    timeout: Option<Duration>,
    effect: TestEffect,
) -> RunSearch {
    let (memory, deadline) = match searched(test, timeout) {
        Ok(searched) => searched,
        Err(why) => return RunSearch::None(why),
    };
    let (mut judged, mut not_judged) = (0, None);
    for (seed, &runs) in batches.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let options = RunOptions {
            memory,
            early: Early::None,
            races: true,
            timeout: Some(left),
            ..RunOptions::default()
        };
        let schedule = Schedule::Random {
            runs,
            seed: seed as u64,
        };
        let observation = match simt::observe(test, &options, schedule) {
            Ok(observation) => observation,
            Err(why) => return RunSearch::None(why),
        };
        let mut seen = None;
        for (what, schedule) in faults(test, &observation, effect).into_iter().take(TRIES) {
            match proved(test, model, set, &options, effect, schedule, deadline) {
                Ok(fault) => return RunSearch::Shown(Box::new(fault)),
                Err(but) => _ = seen.get_or_insert(RunSearch::Seen { what, but }),
            }
        }
        if let Some(seen) = seen {
            return seen;
        }
        judged += match effect {
            TestEffect::Race => observation.judged,
            _ => runs,
        };
        not_judged = not_judged.or(observation.not_judged);
        if Instant::now() >= deadline {
            break;
        }
    }
    not_judged
        .filter(|_| judged == 0)
        .map_or(RunSearch::Not(judged), RunSearch::None)
}

/// The faults that runs show, each in words and with its run.
fn faults<'o>(
    test: &LitmusTest,
    observation: &'o Observation,
    effect: TestEffect,
) -> Vec<(String, &'o Recorded)> {
    if effect == TestEffect::Race {
        let races = observation.races.iter();
        return races.map(|race| (words(race), &race.schedule)).collect();
    }
    let hazards = observation.hazards.iter();
    hazards
        .filter(|seen| seen.hazard.kind.is_undefined())
        .map(|seen| (place(test, &seen.hazard), &seen.schedule))
        .collect()
}

/// Undefined behaviour in words: its kind and its places.
fn place(test: &LitmusTest, hazard: &RunHazard) -> String {
    let places: Vec<String> = std::iter::once(&hazard.first)
        .chain(&hazard.second)
        .map(|&(thread, instr)| {
            let thread = &test.program.threads[thread];
            let instr = &thread.code[instr];
            format!("{} line {} (`{}`)", thread.name, instr.line, instr.text)
        })
        .collect();
    format!("{}: {}", hazard.kind.name(), places.join(" and "))
}

fn words(race: &Race) -> String {
    format!(
        "on `{}`, {} with {}: {}",
        race.location, race.first, race.second, race.why
    )
}

/// The model's fault of that kind for a run, if the model finds one there.
///
/// # Errors
/// If it does not.
fn proved(
    test: &LitmusTest,
    model: &Model,
    set: &[Setting],
    options: &RunOptions,
    effect: TestEffect,
    schedule: &Recorded,
    deadline: Instant,
) -> Result<Fault, String> {
    fn left_out(why: &str) -> String {
        format!("the model was not asked about the run: {why}")
    }
    if options.memory.knows_races() {
        return Err(left_out(
            "the memory of a source language has no order of all writes",
        ));
    }
    let options = &RunOptions {
        races: false,
        ..*options
    };
    let run = simt::replay(test, options, schedule)?;
    let [seen] = run.outcomes.as_slice() else {
        return Err(left_out("the run does not end"));
    };
    if !passes(test, &seen.state) {
        return Err(left_out("the test's filter excludes it"));
    }
    let settled = settled(test, &run.events).map_err(left_out)?;
    let facts = Facts::of(&Task::new(&settled, model, set, 1), Some(deadline))
        .map_err(|why| left_out(&why.to_string()))?;
    let (execution, replayed) = match try_run(&facts, &run.events, &[])? {
        ReplayResult::Consistent(done) => *done,
        ReplayResult::LeftOut(why) => return Err(left_out(why)),
    };
    if facts.rivals.is_some() {
        return Err(
            "`same-value=benign` depends on all executions, and a run is only one".to_owned(),
        );
    }
    let flags = |effect: TestEffect| -> Vec<usize> {
        let flags = 0..model.flags.len();
        flags.filter(|&i| model.flags[i].effect == effect).collect()
    };
    let (sought, races) = (flags(effect), flags(TestEffect::Race));
    let fault = fault::describe(&facts, &execution, &replayed, &sought, &races, None);
    fault.ok_or_else(|| match effect {
        TestEffect::Race => "the model calls no two accesses of that run a race".to_owned(),
        _ => "the model calls nothing in that run undefined".to_owned(),
    })
}
