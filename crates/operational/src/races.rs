//! Finds races in runs of programs that are too large for the engines.
//!
//! # Invariants
//! - A race counts as a race of the model only if its run passes the plain evaluator as a candidate
//!   execution, and the model's flag marks it. A race that only vector clocks show is reported as
//!   such.
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
use simt::{Early, MachineMemory, RunOptions, Schedule};
use verdict::Fault;

/// The sizes of the batches of runs; the search stops after the first batch with a race.
const BATCHES: [u64; 3] = [1, 4, 15];
/// The time limit for the runs and their evaluation.
const LONGEST: Duration = Duration::from_secs(20);
/// The largest number of races that the model examines.
const TRIES: usize = 4;

/// The result of the search for races.
#[derive(Debug)]
pub enum RaceSearch {
    /// A race, in an execution of the model.
    Shown(Box<Fault>),
    /// A race by the executor's account, and the reason why its run did not reach the model, or the
    /// model's answer.
    Seen {
        /// The race: its two places, and the missing condition.
        race: String,
        /// The reason why the model did not confirm it.
        but: String,
    },
    /// No race in this number of runs.
    Not(u64),
    /// The runs were not examined; the reason.
    None(String),
}

/// Searches runs of a test on its weak memory for a race.
pub fn look(
    test: &LitmusTest,
    model: &Model,
    set: &[Setting],
    timeout: Option<Duration>,
) -> RaceSearch {
    let time = timeout.map_or(LONGEST, |t| t.min(LONGEST));
    let deadline = Instant::now() + time;
    let dialect = test.program.dialect;
    let Some(memory) = MachineMemory::of(dialect, dialect.default_model()) else {
        return RaceSearch::None(format!("it does not run {dialect} code"));
    };
    let (mut judged, mut not_judged) = (0, None);
    for (seed, runs) in BATCHES.into_iter().enumerate() {
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
            Err(why) => return RaceSearch::None(why),
        };
        let mut seen = None;
        for race in observation.races.iter().take(TRIES) {
            match proved(test, model, set, &options, race, deadline) {
                Ok(fault) => return RaceSearch::Shown(Box::new(fault)),
                Err(but) => {
                    _ = seen.get_or_insert_with(|| RaceSearch::Seen {
                        race: words(race),
                        but,
                    })
                }
            }
        }
        if let Some(seen) = seen {
            return seen;
        }
        judged += observation.judged;
        not_judged = not_judged.or(observation.not_judged);
        if Instant::now() >= deadline {
            break;
        }
    }
    not_judged
        .filter(|_| judged == 0)
        .map_or(RaceSearch::Not(judged), RaceSearch::None)
}

fn words(race: &Race) -> String {
    format!(
        "on `{}`, {} with {}: {}",
        race.location, race.first, race.second, race.why
    )
}

/// The model's fault for the run with a race, if the model calls it a race.
///
/// # Errors
/// If it does not.
fn proved(
    test: &LitmusTest,
    model: &Model,
    set: &[Setting],
    options: &RunOptions,
    race: &Race,
    deadline: Instant,
) -> Result<Fault, String> {
    let left_out = |why: &str| format!("the model was not asked about the run: {why}");
    if options.memory.knows_races() {
        return Err(left_out(
            "the memory of a source language has no order of all writes",
        ));
    }
    let options = &RunOptions {
        races: false,
        ..*options
    };
    let run = simt::replay(test, options, &race.schedule)?;
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
    let flags: Vec<usize> = (0..model.flags.len())
        .filter(|&i| model.flags[i].effect == TestEffect::Race)
        .collect();
    let fault = fault::describe(&facts, &execution, &replayed, &flags, &flags, None);
    fault.ok_or_else(|| "the model calls no two accesses of that run a race".to_owned())
}
