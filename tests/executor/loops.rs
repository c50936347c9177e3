//! Replays runs of programs with loops through the model, as straight programs:
//! `check::operational::straight`.

use std::path::Path;
use std::time::Duration;

use fencepost::check::{Limits, operational};
use fencepost::litmus::{LitmusTest, parse, read_path};
use fencepost::model::Model;
use fencepost::program::{Dialect, Op};
use fencepost::simt::schedule::Observation;
use fencepost::simt::{Early, MachineMemory, MemoryRules, RunOptions, Schedule, observe};
use testkit::suite::{files, is_long, number, sample, shipped};

fn ptx() -> Model {
    shipped("ptx")
}

fn options(early: Early) -> RunOptions {
    let timeout = Some(Duration::from_millis(number("FENCEPOST_TIMEOUT_MS", 500)));
    RunOptions {
        memory: MachineMemory::Weak,
        early,
        steps: 400,
        timeout,
        ..RunOptions::default()
    }
}

fn limits() -> Limits {
    Limits {
        bound: Some(4),
        timeout: Some(Duration::from_secs(10)),
    }
}

/// The observations, without the model's answer about outcomes.
fn held(test: &LitmusTest, observation: &Observation) -> operational::ModelComparison {
    let named = operational::name(test, observation).into_iter();
    let observed = named.map(|(state, seen)| operational::ObservedOutcome {
        state,
        count: seen.count,
        allowed: None,
        reason: None,
        schedule: seen.schedule,
    });
    operational::ModelComparison {
        observed: observed.collect(),
        ..operational::ModelComparison::default()
    }
}

/// A spin on a flag, and the data that it guards; the writer comes late.
fn spin(order: &str) -> LitmusTest {
    let text = format!(
        "name = 'spin'\ncondition = 'P1:r1 == 0'\nmemory = {{ x = 0, f = 0 }}\n\
         [[thread]]\ncta = 0\ncode = 'st.weak x, 1; st.release.gpu f, 1'\n\
         [[thread]]\ncta = 1\ncode = 'L: ld.{order}.gpu r0, f; beq r0, 0, L; ld.weak r1, x'\n"
    );
    parse("spin.toml", text.as_bytes())
        .expect("well-formed")
        .remove(0)
}

#[test]
fn a_run_that_spins_is_an_execution_of_the_model() {
    let ptx = ptx();
    let test = spin("acquire");
    // Runs with many failing iterations among them.
    for seed in 0..100 {
        let one = observe(
            &test,
            &options(Early::None),
            Schedule::Random { runs: 1, seed },
        )
        .expect("it runs");
        let mut held = held(&test, &one);
        operational::replay(&mut held, &test, &ptx, limits(), &options(Early::None));
        assert_eq!(
            (held.defect, held.left_out, held.replayed),
            (None, None, 1),
            "seed {seed}"
        );
    }
}

#[test]
fn a_run_that_the_model_rejects_is_noticed_though_it_spins() {
    let ptx = ptx();
    let broken = RunOptions {
        rules: MemoryRules {
            synchronization: false,
            ..MemoryRules::ALL
        },
        ..options(Early::None)
    };
    let test = spin("acquire");
    let seen = observe(&test, &broken, Schedule::Random { runs: 300, seed: 1 }).expect("it runs");
    let mut held = held(&test, &seen);
    operational::replay(&mut held, &test, &ptx, limits(), &broken);
    let law = held
        .defect
        .expect("a read of the old value after an acquire");
    assert!(
        law.contains("P1:r1 = 0 failed its replay: axiom `Causality` rejects it"),
        "{law}"
    );
    // Without an acquire, the outcome is no defect.
    let test = spin("relaxed");
    let seen = observe(
        &test,
        &options(Early::None),
        Schedule::Random { runs: 300, seed: 1 },
    )
    .expect("it runs");
    assert_eq!(seen.outcomes.len(), 2);
}

fn has_loop(test: &LitmusTest) -> bool {
    let mut code = test
        .program
        .threads
        .iter()
        .flat_map(|t| t.code.iter().enumerate());
    code.any(|(pc, i)| matches!(i.op, Op::Branch { target, .. } if target <= pc))
}

#[test]
fn runs_of_the_tests_with_loops_are_executions_of_the_model() {
    let ptx = ptx();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus");
    let suite = std::env::var_os("FENCEPOST_SUITE").map(std::path::PathBuf::from);
    let (mut tests, mut replayed, mut left_out) =
        (0, 0, std::collections::BTreeMap::<&str, usize>::new());
    let paths = std::iter::once(root)
        .chain(suite)
        .flat_map(|p| files(&p, &["toml", "litmus"]));
    for path in sample(paths) {
        for test in read_path(&path).unwrap_or_default() {
            let small = test.program.threads.len() <= 16;
            if test.program.dialect != Dialect::Ptx || !small || !has_loop(&test) {
                continue;
            }
            tests += 1;
            for early in [Early::None, Early::Full(1)] {
                let options = options(early);
                let Ok(seen) = observe(&test, &options, Schedule::Random { runs: 50, seed: 3 })
                else {
                    continue;
                };
                let mut held = held(&test, &seen);
                operational::replay(&mut held, &test, &ptx, limits(), &options);
                assert_eq!(
                    held.defect,
                    None,
                    "{} {}, {early}",
                    path.display(),
                    test.name
                );
                replayed += held.replayed;
                let others = held.observed.len() - held.replayed;
                *left_out.entry(held.left_out.unwrap_or("none")).or_default() += others;
            }
        }
    }
    println!("{tests} tests with loops: {replayed} runs replayed; not: {left_out:?}");
    assert!(!is_long() || replayed > 100, "{replayed}");
}
