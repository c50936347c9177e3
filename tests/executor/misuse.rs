//! Misuse that runs show, held against what tests of the repository expect of `undefined`: parted
//! warps, branches around barriers, masks, and preconditions of operations.
//!
//! These tests are undefined in each run, or in so many that chance finds one. Where a test is
//! defined and terminates by what it expects, no run hangs.

use std::path::Path;

use fencepost::litmus::{LitmusTest, read_path};
use fencepost::simt::schedule::StopKind;
use fencepost::simt::{FaultKind, MachineMemory, RunOptions, Schedule, observe};

/// Whether some run of a test shows something undefined; and whether some run hangs.
fn shown(test: &LitmusTest, memory: MachineMemory, schedule: Schedule<'_>) -> (bool, bool) {
    let options = RunOptions {
        memory,
        ..RunOptions::default()
    };
    let seen = observe(test, &options, schedule).expect("the machine runs it");
    let parted = |how| how == StopKind::Fault(FaultKind::Barrier);
    let stops = |how: &dyn Fn(StopKind) -> bool| seen.stops.iter().any(|stop| how(stop.how));
    (
        !seen.hazards.is_empty() || stops(&parted),
        stops(&|how| matches!(how, StopKind::Deadlock | StopKind::Livelock)),
    )
}

/// Holds the runs of each test of a file against what it expects under a model.
fn hold(file: &str, model: &str, memory: MachineMemory) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("litmus")
        .join(file);
    let tests = read_path(&path).expect("valid");
    for test in &tests {
        let expect = &test.expect[model];
        let undefined = expect.undefined.expect("said");
        let terminates = expect.liveness.get("fair") == Some(&false);
        let schedules = [
            Schedule::Random { runs: 200, seed: 1 },
            Schedule::Exhaustive,
        ];
        for schedule in schedules {
            let (misuse, hangs) = shown(test, memory, schedule);
            let place = format!("{} under {model}, {schedule:?}", test.name);
            assert_eq!(misuse, undefined, "{place}");
            assert!(!hangs || undefined || !terminates, "{place} hangs");
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

#[test]
fn a_split_barrier_is_no_divergence() {
    hold("kernels/split-barriers.toml", "cuda", MachineMemory::Cuda);
}

/// A coalesced group of a branch has any set of the lanes that come there. Its barrier is then one
/// of lanes that are known only in the run.
#[test]
fn a_barrier_of_an_open_group_joins_its_lanes() {
    let test = |barrier: &str| {
        let text = format!(
            "name = 'T'\ndialect = 'cuda'\ncondition = 'true'\n\
             memory = {{ x = [1, 1, 1, 1, 1, 1, 1, 1], y = [0, 0, 0, 0, 0, 0, 0, 0] }}\n\
             [kernel]\ngrid = 1\nblock = 8\ncode = '''\n\
             namespace cg = cooperative_groups;\nint t = threadIdx.x;\n\
             if (x[t] > 0) {{\n  cg::coalesced_group g = cg::coalesced_threads();\n  y[t] = t;\n  \
             {barrier}\n  int other = g.shfl(t, (g.thread_rank() + 1) % g.size());\n  \
             int r = y[other];\n}}\n'''\n"
        );
        let tests = fencepost::litmus::parse("t.toml", text.as_bytes()).expect("valid");
        let options = RunOptions {
            memory: MachineMemory::Cuda,
            ..RunOptions::default()
        };
        let schedule = Schedule::Random { runs: 300, seed: 1 };
        let seen = observe(&tests[0], &options, schedule).expect("the machine runs it");
        assert!(seen.stops.is_empty(), "{barrier}");
        seen.hazards.len()
    };
    assert_eq!(test("g.sync();"), 0);
    assert!(test("") > 0);
}
