//! Asks one run that stands for all executions: about a kernel with accesses to tiles, which the
//! exact engines refuse, and about a kernel with many threads, before they are asked.

use std::time::{Duration, Instant};

use super::plan::Unit;
use super::settings::Settings;
use engine::ProgressModel;
use operational::SteadyAnswer;
use verdict::{Answer, Definedness, RacingPair, RacingPairs, Reason, STEADY, Verdict};
use why::Ask;

/// The time of an answer, if there is no limit.
const USUAL: Duration = Duration::from_secs(60);

/// The answer about a program with tiles; `None` if it has none, or for other questions.
pub(super) fn answer(unit: &Unit<'_>, ask: &Ask, settings: &Settings) -> Option<Answer> {
    unit.test.program.tiled()?;
    let is_known = matches!(
        ask,
        Ask::Race | Ask::Undefined | Ask::Misuse | Ask::Liveness(ProgressModel::Fair)
    );
    if !is_known || unit.refused.is_some() {
        return None;
    }
    let time = settings.limits.timeout.unwrap_or(USUAL);
    let deadline = Some(Instant::now() + time);
    let run = operational::steady(&unit.test, &unit.model.model, &settings.set, deadline);
    Some(match run {
        SteadyAnswer::Open(why) => undecided(format!("executions may differ: {why}")),
        SteadyAnswer::HangsOnce { waits, .. } if matches!(ask, Ask::Liveness(_)) => {
            waited(&waits, None)
        }
        SteadyAnswer::Misused(_, races)
        | SteadyAnswer::RacyUntil(races, _)
        | SteadyAnswer::HangsOnce { races, .. }
            if matches!(ask, Ask::Race) && !races.pairs.is_empty() =>
        {
            let mut answer = raced(races.pairs, false);
            answer.remarks.extend(races.early);
            answer
        }
        SteadyAnswer::RacyUntil(_, why) | SteadyAnswer::HangsOnce { why, .. } => {
            undecided(format!("executions may differ: {why}"))
        }
        SteadyAnswer::Misused(fault, _) => match ask {
            Ask::Undefined | Ask::Misuse => {
                let mut answer = Answer::new(Verdict::Undefined, STEADY);
                answer.fault = Some(fault);
                answer
            }
            _ => undecided(format!(
                "an execution is undefined: {}",
                place(&fault.events)
            )),
        },
        SteadyAnswer::Decided {
            races,
            waits,
            missable,
            events,
            elects,
            ..
        } => {
            let mut answer = match ask {
                Ask::Race => raced(races, true),
                Ask::Liveness(_) if waits.is_empty() && !races.is_empty() => {
                    undecided("a race may change the course of an execution".to_owned())
                }
                Ask::Liveness(_) => waited(&waits, missable),
                _ => undecided(
                    "the run breaks no precondition; nothing is known of the model's other rules"
                        .to_owned(),
                ),
            };
            answer.events = Some(events);
            if elects {
                answer.remarks.push(
                    "`elect.sync` is taken to elect the first lane of a warp, or the last one"
                        .to_owned(),
                );
            }
            answer
        }
    })
}

/// One run of a program; `None` if it says nothing of the model.
pub(super) fn one_run(
    unit: &Unit<'_>,
    settings: &Settings,
    time: Duration,
) -> Option<SteadyAnswer> {
    if unit.refused.is_some() || unit.test.program.tiled().is_some() {
        return None;
    }
    let deadline = Some(Instant::now() + time);
    let (test, model) = (&unit.test, &unit.model.model);
    Some(operational::steady(test, model, &settings.set, deadline))
}

/// The answer of a run that finds no fault. The other engines show a fault by an execution.
/// `is_test`: the program is no kernel of a source file.
pub(super) fn faultless(run: &SteadyAnswer, ask: &Ask, is_test: bool) -> Option<Answer> {
    let SteadyAnswer::Decided {
        races,
        waits,
        missable: None,
        doubt: None,
        events,
        elects: false,
    } = run
    else {
        return None;
    };
    if !races.is_empty() || !waits.is_empty() {
        return None;
    }
    let verdict = match ask {
        Ask::Race => Verdict::RaceFree,
        Ask::Liveness(ProgressModel::Fair) => Verdict::Terminates,
        Ask::Undefined | Ask::Misuse => Verdict::Defined,
        _ => return None,
    };
    let mut answer = Answer::new(verdict, STEADY);
    answer.events = Some(*events);
    // An answer about a test says whether the test is defined.
    if matches!(ask, Ask::Liveness(_)) {
        answer.definedness = is_test.then_some(Definedness::Defined);
    }
    Some(answer)
}

fn undecided(why: String) -> Answer {
    Answer::new(Verdict::Undecided(Reason::NotProved(why)), STEADY)
}

fn place(events: &[verdict::FaultEvent]) -> String {
    events.first().map_or(String::new(), |event| event.place())
}

/// The answer with all races of the run.
fn raced(pairs: Vec<RacingPair>, complete: bool) -> Answer {
    let Some(first) = pairs.first() else {
        return Answer::new(Verdict::RaceFree, STEADY);
    };
    let mut answer = Answer::new(Verdict::Racy, STEADY);
    answer.fault = Some(Box::new(operational::race_fault(first)));
    answer.races = Some(Box::new(RacingPairs { pairs, complete }));
    answer
}

/// The answer about waits.
fn waited(waits: &[String], missable: Option<String>) -> Answer {
    match (waits.first(), missable) {
        (None, None) => Answer::new(Verdict::Terminates, STEADY),
        (None, Some(why)) => undecided(why),
        (Some(_), _) => {
            let mut answer = Answer::new(Verdict::Hangs, STEADY);
            answer.remarks = waits.iter().take(3).cloned().collect();
            answer
        }
    }
}
