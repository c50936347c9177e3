//! What a test expects of runs, held against what they show.

use std::time::Duration;

use super::name;
use crate::check::eval;
use crate::litmus::{Atom, LitmusTest, Observable, RunExpectation};
use crate::program::mapping::Mapping;
use crate::simt::schedule::{Observation, Seen};
use crate::simt::{Early, Launch, MemoryKind, Options, Schedule, Scheduling, observe};
use crate::skeleton::Memory;

/// Random runs, unless the test says how many.
const RUNS: u32 = 100;

/// At most so many steps of a run, unless the test says how many.
const STEPS: u32 = 1_000_000;

/// Carries out the runs that an expectation is about.
///
/// # Errors
/// Why they cannot be.
pub fn carry_out(
    test: &LitmusTest,
    run: &RunExpectation,
    timeout: Option<Duration>,
) -> Result<Observation, String> {
    let memory = if run.memory == Some("weak") { MemoryKind::Weak } else { MemoryKind::Sc };
    let mapping = Mapping::current(test.program.dialect).filter(|_| memory == MemoryKind::Weak);
    let lowered = match mapping.map(|m| test.via(m)) {
        None => None,
        Some(Ok(lowered)) => Some(lowered),
        Some(Err(why)) => return Err(why),
    };
    let scheduling = Scheduling::ALL.into_iter().find(|s| Some(s.name()) == run.scheduling);
    let launch = Launch {
        warp_size: run.warp_size,
        sms: run.sms,
        resident: run.resident,
        cooperative: run.cooperative,
        ..Launch::default()
    };
    let options = Options {
        memory,
        early: Early::None,
        scheduling: scheduling.unwrap_or(Scheduling::Independent),
        launch,
        steps: run.steps.unwrap_or(STEPS) as usize,
        timeout,
        races: true,
        ..Options::default()
    };
    let schedule = match run.schedule {
        Some("exhaustive") => Schedule::Exhaustive,
        _ => Schedule::Random { runs: u64::from(run.runs.unwrap_or(RUNS)), seed: 1 },
    };
    observe(lowered.as_ref().unwrap_or(test), &options, schedule)
}

/// What of an expectation was not met, in words.
pub fn unmet(test: &LitmusTest, run: &RunExpectation, observed: &Result<Observation, String>) -> Vec<String> {
    let seen = match observed {
        Ok(seen) => seen,
        Err(why) if run.ends == Some("launch-failure") && why.starts_with("launch failed") => return Vec::new(),
        Err(why) => return vec![why.clone()],
    };
    let mut unmet = Vec::new();
    let stops: Vec<String> =
        seen.stops.iter().map(|s| format!("{} {}: {}", s.count, s.how.name(), s.why.join("; "))).collect();
    match run.ends {
        Some("finished") if !stops.is_empty() || seen.ended.finished == 0 => {
            let (n, why) = (stops.len(), stops.join(" | "));
            unmet.push(format!("expected every run to finish, but {n} kinds of them: {why}"));
        }
        Some(how) if how != "finished" && !seen.stops.iter().any(|s| s.how.name() == how) => {
            let finished = seen.ended.finished;
            unmet.push(format!("expected a run to end by {how}: {finished} finished; {}", stops.join(" | ")));
        }
        _ => {}
    }
    let races = seen.races.iter().map(|r| format!("{} / {}: {}", r.first, r.second, r.why)).collect::<Vec<_>>();
    match run.race {
        Some("racy") if races.is_empty() => {
            unmet.push(format!("expected a race, and {} runs have none", seen.judged))
        }
        Some("race-free") if !races.is_empty() => unmet.push(format!("expected no race: {}", races.join(" | "))),
        Some("race-free") if seen.judged == 0 => unmet.push("no run was looked at for races".into()),
        _ => {}
    }
    if let Some(why) = &run.why {
        let texts = races.iter().chain(&stops);
        if !texts.clone().any(|text| text.contains(why)) {
            let all: Vec<&str> = texts.map(String::as_str).collect();
            unmet.push(format!("expected the reason `{why}`, and there is: {}", all.join(" | ")));
        }
    }
    if let Some(expected) = run.condition {
        let holds: Vec<bool> = seen.outcomes.iter().map(|o| holds(test, o)).collect();
        let fits = match expected {
            "always" => !holds.is_empty() && holds.iter().all(|h| *h),
            "never" => !holds.iter().any(|h| *h),
            _ => holds.iter().any(|h| *h),
        };
        if !fits {
            let states: Vec<String> = name(test, seen)
                .iter()
                .map(|(state, seen)| {
                    let values: Vec<String> = state.iter().map(|(n, v)| format!("{n} = {v}")).collect();
                    format!("{} ({} times)", values.join(", "), seen.count)
                })
                .collect();
            unmet.push(format!("expected the condition to hold {expected}: {}", states.join("; ")));
        }
    }
    unmet
}

/// Whether the test's condition holds of an outcome.
fn holds(test: &LitmusTest, seen: &Seen) -> bool {
    let memory = Memory::new(&test.program);
    let observables = test.observables();
    let value = |o: &Observable| observables.iter().position(|x| x == o).map(|i| seen.state[i]);
    let mut atom = |a: &Atom| match a {
        Atom::Const(v) => Some(*v),
        Atom::Observable(o) => value(o),
        Atom::Address { loc, index } => {
            let viewer = test.program.thread_ids().next();
            memory.cell_of(&test.program, *loc, *index, viewer).map(|c| memory.cell(c).address)
        }
    };
    test.condition.as_ref().is_none_or(|c| eval::prop(c, &mut atom) == Some(true))
}
