//! Compares the runs of a test with its expectations about runs.
//!
//! # Invariants
//! - An expectation about *every* run, or about none, is met only if all requested runs took place.
//!   It is undecided if a limit of time, states or history cut the exploration, or if there were
//!   fewer random runs than requested. One run that shows it meets an expectation about *some* run,
//!   and one run that contradicts it makes it unmet, despite any cut.

use std::time::Duration;

use super::{hazards, holds, leave_out_races, name};
use front::mapping::Mapping;
use program::litmus::{LitmusTest, RunExpectation};
use program::occupancy::multiprocessor;
use simt::record::{HazardKind, RunHazard};
use simt::schedule::Observation;
use simt::{Early, LaunchOptions, MachineMemory, RunOptions, Schedule, Scheduling, observe};

/// The largest number of steps of a run, if the test does not give one.
const STEPS: u32 = 1_000_000;

/// The largest number of unexpected outcomes that are listed.
const MAX_STATES: usize = 8;

/// The result of an expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectationResult {
    /// The runs show it.
    Met,
    /// They show something else: the differences, line by line.
    Unmet(Vec<String>),
    /// The runs do not decide it, for this reason.
    Undecided(String),
}

/// Carries out the runs of an expectation.
///
/// # Errors
/// If they cannot be carried out.
pub fn carry_out(
    test: &LitmusTest,
    run: &RunExpectation,
    timeout: Option<Duration>,
) -> Result<Observation, String> {
    let dialect = test.program.dialect;
    let memory = match run.memory {
        Some("weak") => MachineMemory::Weak,
        Some("language") => {
            MachineMemory::of(dialect, dialect.default_model()).unwrap_or(MachineMemory::Weak)
        }
        _ => MachineMemory::Sc,
    };
    let mapping = Mapping::current(dialect).filter(|_| memory == MachineMemory::Weak);
    let lowered = match mapping.map(|m| m.lowered(test)) {
        None => None,
        Some(Ok(lowered)) => Some(lowered),
        Some(Err(why)) => return Err(why),
    };
    let scheduling = Scheduling::ALL
        .into_iter()
        .find(|s| Some(s.name()) == run.scheduling);
    let resident = match run.target.and_then(multiprocessor) {
        None => run.resident,
        Some(sm) => match sm.room_for(&test.program, run.registers.map(u64::from)) {
            Ok(room) => u32::try_from(room).ok(),
            Err(_) => Some(0),
        },
    };
    let launch = LaunchOptions {
        warp_size: run.warp_size,
        sms: run.sms,
        resident,
        cooperative: run.cooperative,
        ..LaunchOptions::default()
    };
    let options = RunOptions {
        memory,
        early: run.early.and_then(Early::parse).unwrap_or(Early::None),
        scheduling: scheduling.unwrap_or(Scheduling::Independent),
        launch,
        steps: run.steps.unwrap_or(STEPS) as usize,
        timeout,
        races: true,
        ..RunOptions::default()
    };
    let schedule = match run.schedule {
        Some("exhaustive") => Schedule::Exhaustive,
        _ => Schedule::Random {
            runs: u64::from(run.runs.unwrap_or(program::litmus::RUNS)),
            seed: 1,
        },
    };
    let test = lowered.as_ref().unwrap_or(test);
    let mut observation = observe(test, &options, schedule)?;
    leave_out_races(test, &options, &mut observation);
    Ok(observation)
}

/// Judges an expectation by its runs.
pub fn judge(
    test: &LitmusTest,
    run: &RunExpectation,
    observed: &Result<Observation, String>,
) -> ExpectationResult {
    let seen = match observed {
        Ok(seen) => seen,
        Err(why) => return ExpectationResult::Undecided(why.clone()),
    };
    let Mismatch { against, lacking } = unmet(test, run, seen);
    let every =
        run.ends == Some("finished") || run.race == Some("race-free") || is_of_all(run.condition);
    match seen.limit() {
        // Other runs may still show the missing parts.
        Some(why) if against.is_empty() && (every || !lacking.is_empty()) => {
            ExpectationResult::Undecided(why.to_owned())
        }
        _ if !against.is_empty() || !lacking.is_empty() => {
            ExpectationResult::Unmet([against, lacking].concat())
        }
        _ => ExpectationResult::Met,
    }
}

/// Whether an expectation about the condition is about all outcomes.
fn is_of_all(condition: Option<&str>) -> bool {
    matches!(condition, Some("always" | "never"))
}

/// The unmet parts of an expectation, in words.
#[derive(Default)]
struct Mismatch {
    /// Observations that should not have come: more runs do not change that.
    against: Vec<String>,
    /// Missing observations.
    lacking: Vec<String>,
}

fn unmet(test: &LitmusTest, run: &RunExpectation, seen: &Observation) -> Mismatch {
    let mut unmet = Mismatch::default();
    let stops: Vec<String> = seen
        .stops
        .iter()
        .map(|s| format!("{} {}: {}", s.count, s.how.name(), s.why.join("; ")))
        .collect();
    unmet.compare_ends(run, seen, &stops);
    // A race that the memory found may lack an explanation.
    let own = hazards(test, seen)
        .into_iter()
        .filter(|h| h.kind == HazardKind::Race)
        .map(|h| race(test, &h));
    let explained = seen
        .races
        .iter()
        .map(|r| format!("{} / {}: {}", r.first, r.second, r.why));
    let races: Vec<String> = explained.chain(own).collect();
    unmet.compare_races(test, run, seen, &races);
    if let Some(why) = &run.why {
        let texts = races.iter().chain(&stops);
        if !texts.clone().any(|text| text.contains(why)) {
            let all: Vec<&str> = texts.map(String::as_str).collect();
            unmet.lacking.push(format!(
                "expected the reason `{why}`, found: {}",
                all.join(" | ")
            ));
        }
    }
    if let Some(expected) = run.condition {
        unmet.compare_condition(test, expected, seen);
    }
    unmet
}

impl Mismatch {
    fn compare_ends(&mut self, run: &RunExpectation, seen: &Observation, stops: &[String]) {
        match run.ends {
            Some("finished") if !stops.is_empty() => {
                let (n, why) = (stops.len(), stops.join(" | "));
                self.against.push(format!(
                    "expected every run to finish, but runs end in {n} other ways: {why}"
                ));
            }
            Some("finished") if seen.ended.finished == 0 => {
                self.lacking.push("no run finished".into())
            }
            Some(how) if how != "finished" && !seen.stops.iter().any(|s| s.how.name() == how) => {
                let finished = seen.ended.finished;
                let why = format!(
                    "expected a run to end by {how}; {finished} finished, and others: {}",
                    stops.join(" | ")
                );
                self.lacking.push(why);
            }
            // Without an expectation about it, the launch must not fail.
            None if !seen.launches() => self.against.extend(stops.iter().cloned()),
            _ => {}
        }
    }

    fn compare_races(
        &mut self,
        test: &LitmusTest,
        run: &RunExpectation,
        seen: &Observation,
        races: &[String],
    ) {
        let language = run.memory == Some("language") && dialect_races(test);
        match run.race {
            Some("racy") if races.is_empty() => self.lacking.push(format!(
                "expected a race; the {} runs have none",
                seen.judged
            )),
            Some("race-free") if !races.is_empty() => {
                self.against
                    .push(format!("expected no race: {}", races.join(" | ")));
            }
            Some("race-free") if seen.judged == 0 && !language => {
                self.lacking.push("no run was searched for races".into());
            }
            _ => {}
        }
    }

    fn compare_condition(&mut self, test: &LitmusTest, expected: &str, seen: &Observation) {
        let holds: Vec<bool> = seen
            .outcomes
            .iter()
            .map(|o| holds(test, test.condition.as_ref(), &o.state))
            .collect();
        let fits = match expected {
            "always" => !holds.is_empty() && holds.iter().all(|h| *h),
            "never" => !holds.iter().any(|h| *h),
            _ => holds.iter().any(|h| *h),
        };
        if fits {
            return;
        }
        let states: Vec<String> = name(test, seen)
            .iter()
            .map(|(state, seen)| {
                let values: Vec<String> = state.iter().map(|(n, v)| format!("{n} = {v}")).collect();
                format!("{} ({} times)", values.join(", "), seen.count)
            })
            .collect();
        let shown = states[..states.len().min(MAX_STATES)].join("; ");
        let more = match states.len().saturating_sub(MAX_STATES) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        // Only an outcome that was seen contradicts it.
        let list = if is_of_all(Some(expected)) && !holds.is_empty() {
            &mut self.against
        } else {
            &mut self.lacking
        };
        list.push(format!(
            "expected the condition to hold {expected}: {shown}{more}"
        ));
    }
}

/// Whether the memory of the test's language finds races.
fn dialect_races(test: &LitmusTest) -> bool {
    let dialect = test.program.dialect;
    MachineMemory::of(dialect, dialect.default_model()).is_some_and(MachineMemory::knows_races)
}

/// A race that the memory found, in words.
fn race(test: &LitmusTest, hazard: &RunHazard) -> String {
    let sides: Vec<String> = std::iter::once(&hazard.first)
        .chain(&hazard.second)
        .map(|&(thread, instr)| {
            let thread = &test.program.threads[thread];
            format!(
                "{} line {}: `{}`",
                thread.name, thread.code[instr].line, thread.code[instr].text
            )
        })
        .collect();
    format!("data race: {}", sides.join(" / "))
}
