//! How fast the executor is: random schedules and states of exhaustive explorations, by memory.
//!
//! Memory per state is not for a benchmark to measure: run `fencepost run TEST --schedule
//! exhaustive` under `/usr/bin/time -v` with and without `--states 1`, and divide the difference of
//! the maximum resident set sizes by the number of states (`states` in `--format json`).

mod measure;

use std::hint::black_box;
use std::path::Path;

use fencepost::litmus::{self, LitmusTest};
use fencepost::simt::{Early, MachineMemory, RunOptions, Schedule, observe};
use measure::measure;

/// Store buffering and four threads in PTX, message passing in two languages, a reduction of 128
/// threads.
const CASES: &[(&str, &[(MachineMemory, Early)])] = &[
    (
        "litmus/ptx/02-fence-sc/IRIW+fence.sc.gpu.toml",
        &[
            (MachineMemory::Sc, Early::None),
            (MachineMemory::Weak, Early::None),
            (MachineMemory::Weak, Early::Full(1)),
        ],
    ),
    (
        "litmus/ptx/06-causality/MP+rel.gpu+acq.gpu.toml",
        &[
            (MachineMemory::Sc, Early::None),
            (MachineMemory::Weak, Early::None),
            (MachineMemory::Weak, Early::Full(1)),
        ],
    ),
    (
        "litmus/cuda/IRIW+rel+acq.device.toml",
        &[(MachineMemory::Cuda, Early::None)],
    ),
];

/// Random runs per measurement.
const RUNS: u64 = 1_000;

fn test(file: &str) -> LitmusTest {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let Ok(bytes) = std::fs::read(path) else {
        panic!("{file} is gone")
    };
    litmus::parse(file, &bytes)
        .expect("a shipped test is sound")
        .remove(0)
}

fn options(memory: MachineMemory, early: Early) -> RunOptions {
    RunOptions {
        memory,
        early,
        timeout: None,
        ..RunOptions::default()
    }
}

fn schedules() {
    for (file, machines) in CASES {
        let test = test(file);
        for &(memory, early) in *machines {
            let options = options(memory, early);
            let schedule = Schedule::Random {
                runs: RUNS,
                seed: 1,
            };
            measure(
                &format!(
                    "{}, {}, {early}: random schedules",
                    test.name,
                    memory.name()
                ),
                RUNS,
                || {
                    observe(black_box(&test), &options, schedule)
                        .expect("it runs")
                        .steps
                },
            );
        }
    }
}

fn states() {
    for (file, machines) in CASES {
        let test = test(file);
        for &(memory, early) in *machines {
            let options = options(memory, early);
            let explored = || {
                observe(black_box(&test), &options, Schedule::Exhaustive)
                    .expect("it runs")
                    .states
            };
            measure(
                &format!("{}, {}, {early}: states", test.name, memory.name()),
                explored(),
                explored,
            );
        }
    }
}

fn kernels() {
    let test = test("litmus/kernels/reduction.toml");
    let mapping =
        fencepost::program::mapping::Mapping::current(test.program.dialect).expect("a mapping");
    let lowered = mapping.lowered(&test).expect("it lowers");
    for (memory, test) in [
        (MachineMemory::Sc, &test),
        (MachineMemory::Weak, &lowered),
        (MachineMemory::Cuda, &test),
    ] {
        let options = options(memory, Early::None);
        let schedule = Schedule::Random { runs: 1, seed: 1 };
        measure(
            &format!("{}, {}: random schedules", test.name, memory.name()),
            1,
            || {
                observe(black_box(test), &options, schedule)
                    .expect("it runs")
                    .steps
            },
        );
    }
}

fn main() {
    schedules();
    states();
    kernels();
}
