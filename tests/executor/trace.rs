//! Traces of runs as printed: the spin lock of two lanes of one warp, with one program counter and
//! with two.

use std::path::Path;

use fencepost::litmus::{LitmusTest, read_path};
use fencepost::simt::schedule::StopKind;
use fencepost::simt::{MachineMemory, RunOptions, Schedule, Scheduling, observe, replay, trace};

fn lock() -> LitmusTest {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus/kernels/lock-in-a-warp.toml");
    read_path(&path).expect("well-formed").remove(0)
}

fn options(scheduling: Scheduling, memory: MachineMemory) -> RunOptions {
    RunOptions {
        scheduling,
        memory,
        steps: 40,
        ..RunOptions::default()
    }
}

#[test]
fn in_lockstep_the_lock_is_never_released() {
    let (test, options) = (lock(), options(Scheduling::Lockstep, MachineMemory::Sc));
    let seen = observe(&test, &options, Schedule::Random { runs: 1, seed: 1 }).expect("runs");
    let stop = &seen.stops[0];
    assert_eq!(stop.how, StopKind::Limit);
    let run = replay(&test, &options, &stop.schedule).expect("fits");
    insta::assert_snapshot!(format!(
        "{}\n{}",
        stop.why.join("\n"),
        trace(&test, &run.events)
    ));
}

#[test]
fn every_schedule_in_lockstep_is_a_livelock() {
    let (test, options) = (lock(), options(Scheduling::Lockstep, MachineMemory::Sc));
    let seen = observe(&test, &options, Schedule::Exhaustive).expect("runs");
    assert!(seen.outcomes.is_empty() && seen.complete);
    let text: Vec<String> = seen
        .stops
        .iter()
        .map(|s| format!("{}:\n  {}", s.how.name(), s.why.join("\n  ")))
        .collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn with_a_program_counter_each_both_get_the_lock() {
    let (test, options) = (
        lock(),
        options(Scheduling::Independent, MachineMemory::Weak),
    );
    let seen = observe(&test, &options, Schedule::Random { runs: 1, seed: 2 }).expect("runs");
    let run = replay(&test, &options, &seen.outcomes[0].schedule).expect("fits");
    insta::assert_snapshot!(trace(&test, &run.events));
}
