//! Races that runs show between accesses of different proxies, held against what tests of the
//! the model says of `race`.
//!
//! No run may show a race of a race-free program. Some run of a racy one must show it.

use std::path::Path;
use std::time::Duration;

use fencepost::check::operational::leave_out_races;
use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::{LitmusTest, read_path};
use fencepost::model::Model;
use fencepost::simt::{Early, MachineMemory, RunOptions, Schedule, observe};
use fencepost::verdict::Verdict;
use testkit::suite::shipped;

/// The number of runs of each test.
const RUNS: u64 = 100;

/// Whether the runs of a test show a race; `None` if the machine does not run it.
fn shows_race(test: &LitmusTest) -> Option<bool> {
    let options = RunOptions {
        memory: MachineMemory::Weak,
        early: Early::None,
        races: true,
        ..RunOptions::default()
    };
    let schedule = Schedule::Random {
        runs: RUNS,
        seed: 1,
    };
    let mut seen = observe(test, &options, schedule).ok()?;
    assert_eq!(seen.not_judged, None, "{}", test.name);
    leave_out_races(test, &options, &mut seen);
    Some(!seen.races.is_empty())
}

/// Whether a test has a race by the model; `None` if it takes too long to decide.
fn is_racy(test: &LitmusTest, model: &Model) -> Option<bool> {
    let limits = Limits {
        bound: Some(4),
        timeout: Some(Duration::from_secs(30)),
    };
    let answer = Session::new(test, model, Engine::Auto, limits, &[]).race()?;
    match answer.verdict {
        Verdict::Racy => Some(true),
        Verdict::RaceFree => Some(false),
        _ => None,
    }
}

/// Holds the runs of the tests of a file against the model.
fn hold(file: &str) {
    let model = shipped("ptx");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus/ptx-async");
    let mut racy = 0;
    for test in &read_path(&folder.join(file)).expect("valid") {
        let (Some(expected), Some(shown)) = (is_racy(test, &model), shows_race(test)) else {
            continue;
        };
        racy += u32::from(expected);
        assert_eq!(shown, expected, "{file}: {}", test.name);
    }
    assert!(racy > 0, "{file}: no test is racy");
}

#[test]
fn copies_race_with_writes_of_their_tensor_maps() {
    hold("18-tensor-maps/Descriptor.toml");
    hold("18-tensor-maps/Descriptor.one-thread.toml");
}

#[test]
fn halves_of_fences_order_in_pairs() {
    hold("10-clusters/Halves.toml");
}
