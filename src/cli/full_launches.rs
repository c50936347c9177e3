//! Asks the engine for every launch about the launches of a program that is decided with smaller
//! constants.
//!
//! # Invariants
//! - A race counts if no values that the program gives decide whether its accesses are made. The
//!   launch alone then races as it does in the program.
//! - A proof holds for every content of memory, so it holds in the program.

use std::time::{Duration, Instant};

use super::every_launch::{EveryLaunch, is_plain};
use super::kernels::same_sizes;
use super::plan::{Question, Unit};
use super::settings::Settings;
use front::litmus::form;
use program::litmus::LitmusTest;
use verdict::{Answer, Launches, Reach, Verdict};
use why::Ask;

/// The time for all launches of a program.
const LONGEST: Duration = Duration::from_secs(12);

/// What is known of one launch.
enum Alone {
    RaceFree,
    /// The answer, and the launch that it is about.
    Racy(Box<(Answer, LitmusTest)>),
    /// Neither is known, and why.
    Open(String),
}

/// Adds to the answer about a program those about its launches with the written constants. With the
/// answer, the launch that races.
pub(super) fn joined(
    unit: &Unit<'_>,
    settings: &Settings,
    question: &Question,
    mut answer: Answer,
) -> (Answer, Option<LitmusTest>) {
    let Some(full) = unit.source.launch.as_ref().and_then(|l| l.full.as_ref()) else {
        return (answer, None);
    };
    let is_open = matches!(answer.verdict, Verdict::RaceFree | Verdict::Undecided(_));
    if !matches!(question.ask, Ask::Race) || !is_open || !is_plain(unit, settings) {
        return (answer, None);
    }
    let start = Instant::now();
    let mut open = Vec::new();
    for (text, test) in form::full_launches(unit.source) {
        let alone = match test {
            _ if start.elapsed() > LONGEST => Alone::Open("there was no time".to_owned()),
            Some(test) => alone(test, settings),
            None => Alone::Open("it cannot be read alone".to_owned()),
        };
        match alone {
            Alone::RaceFree => {}
            Alone::Racy(found) => return (found.0, Some(found.1)),
            Alone::Open(why) => open.push(format!("`{text}` is not proved: {why}")),
        }
    }
    if !full.are_all {
        open.push("not all launches were tried alone".to_owned());
    }
    let said = match open.as_slice() {
        [] => "each launch is race-free for itself".to_owned(),
        open => open.join("; "),
    };
    answer.reach = Some(Box::new(Reach {
        launches: Launches::One,
        assumed: Vec::new(),
        lines: None,
        open: Some(said),
    }));
    (answer, None)
}

/// Whether a race is shown in a launch of the given size.
fn is_whole(shown: &LitmusTest, given: &LitmusTest) -> bool {
    let launches = shown.launch.as_ref().zip(given.launch.as_ref());
    launches.is_some_and(|(shown, given)| same_sizes(shown, given))
}

/// Asks about one launch.
fn alone(test: LitmusTest, settings: &Settings) -> Alone {
    let kernel = EveryLaunch::of_launch(&test, settings.limits.timeout);
    let Err(open) = kernel.proof(&Ask::Race) else {
        return Alone::RaceFree;
    };
    // Other values may be in memory than those that the race needs.
    let depends = test
        .launch
        .as_ref()
        .is_none_or(|launch| !launch.zeroed.is_empty());
    if depends || open.apart.is_none() {
        return Alone::Open(open.why);
    }
    match kernel.search(&Ask::Race) {
        (answer, Some(shown)) if answer.verdict == Verdict::Racy && is_whole(&shown, &test) => {
            Alone::Racy(Box::new((answer, shown)))
        }
        _ => Alone::Open(open.why),
    }
}
