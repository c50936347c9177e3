//! Misuse that runs show, held against what tests of the repository expect of `undefined`: parted
//! warps, branches around barriers, masks, and preconditions of operations.
//!
//! These tests are undefined in each run, or in so many that chance finds one.

use std::path::Path;

use fencepost::litmus::{LitmusTest, read_path};
use fencepost::simt::schedule::StopKind;
use fencepost::simt::{FaultKind, MachineMemory, RunOptions, Schedule, observe};

/// Whether some run of a test shows something undefined.
fn shows_misuse(test: &LitmusTest, memory: MachineMemory, schedule: Schedule<'_>) -> bool {
    let options = RunOptions {
        memory,
        ..RunOptions::default()
    };
    let seen = observe(test, &options, schedule).expect("the machine runs it");
    let parted = |how| how == StopKind::Fault(FaultKind::Barrier);
    !seen.hazards.is_empty() || seen.stops.iter().any(|stop| parted(stop.how))
}

/// Holds the runs of each test of a file against what it expects under a model.
fn hold(file: &str, model: &str, memory: MachineMemory) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("litmus")
        .join(file);
    let tests = read_path(&path).expect("valid");
    for test in &tests {
        let expected = test.expect[model].undefined.expect("said");
        let schedules = [
            Schedule::Random { runs: 200, seed: 1 },
            Schedule::Exhaustive,
        ];
        for schedule in schedules {
            let shown = shows_misuse(test, memory, schedule);
            assert_eq!(shown, expected, "{} under {model}, {schedule:?}", test.name);
        }
    }
}

#[test]
fn a_warp_that_parts_is_told() {
    hold("ptx/13-barriers/Aligned.toml", "ptx", MachineMemory::Weak);
    hold("ptx/23-lanes/Aligned-mma.toml", "ptx", MachineMemory::Weak);
}

#[test]
fn a_mask_without_its_thread_is_told() {
    hold("ptx/23-lanes/Mask.toml", "ptx", MachineMemory::Weak);
}

#[test]
fn a_thread_that_goes_around_a_barrier_is_told() {
    hold("cuda/Kernel+around.toml", "cuda", MachineMemory::Cuda);
}
