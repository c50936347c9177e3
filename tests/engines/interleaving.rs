//! Compares the model `sc` with an interpreter that runs threads in turns.
//!
//! All engines share the skeleton, so their agreement says nothing about it; the interpreter
//! ([`testkit::interleave`]) shares nothing with it. Outcome sets must be equal, for random
//! programs and for every test of the repository.
//!
//! `testkit::suite` sets the number of random programs, `FENCEPOST_SEED` the first seed.
//! `FENCEPOST_SUITE` names a folder of further `.litmus` files; `FENCEPOST_TIMEOUT_MS` sets the
//! time for one query.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::{LitmusTest, read_path};
use fencepost::model::Model;
use testkit::generate::{Shape, Source, program};
use testkit::interleave::{FinalState, final_states};
use testkit::suite::{files, number, programs, sample, shipped};

const SHAPE: Shape = Shape {
    threads: 4,
    instructions: 5,
};

fn sc() -> Model {
    shipped("sc")
}

/// The result of a comparison.
#[derive(Debug, PartialEq)]
enum Compared {
    Equal,
    Skipped(String),
    Different {
        only_checker: BTreeSet<FinalState>,
        only_interpreter: BTreeSet<FinalState>,
    },
}

fn compare(test: &LitmusTest, model: &Model) -> Compared {
    let expected = match final_states(test) {
        Ok(states) => states,
        Err(stop) => return Compared::Skipped(format!("{stop:?}")),
    };
    let limits = Limits {
        bound: Some(6),
        timeout: Some(Duration::from_millis(number("FENCEPOST_TIMEOUT_MS", 300))),
    };
    let outcomes = Session::new(test, model, Engine::Auto, limits, &[]).outcomes();
    assert_eq!(outcomes.defect, None, "{}", test.file.text);
    if !outcomes.complete {
        return Compared::Skipped(
            outcomes
                .reason
                .map_or(String::new(), |reason| reason.kind()),
        );
    }
    let found: BTreeSet<FinalState> = outcomes
        .outcomes
        .into_iter()
        .filter(|o| o.allowed)
        .map(|o| {
            let mut state = o.state;
            state.sort();
            state
        })
        .collect();
    if found == expected {
        return Compared::Equal;
    }
    Compared::Different {
        only_checker: found.difference(&expected).cloned().collect(),
        only_interpreter: expected.difference(&found).cloned().collect(),
    }
}

#[test]
fn random_programs() {
    let model = sc();
    let (count, first) = (programs(300), number("FENCEPOST_SEED", 1));
    let mut skipped = std::collections::BTreeMap::<String, u64>::new();
    for seed in first..first + count {
        let source = program(seed, SHAPE);
        if std::env::var_os("FENCEPOST_TRACE").is_some() {
            // The last printed seed is the one that does not end.
            eprintln!("seed {seed}");
        }
        match compare(&source.read(&format!("seed-{seed}")), &model) {
            Compared::Equal => {}
            Compared::Skipped(why) => *skipped.entry(why).or_default() += 1,
            Compared::Different { .. } => {
                let fails = |s: &Source| {
                    matches!(
                        compare(&s.read("smaller"), &model),
                        Compared::Different { .. }
                    )
                };
                let small = source.shrink(fails);
                let what = compare(&small.read("smaller"), &model);
                panic!(
                    "seed {seed}: {what:#?}\n{}",
                    small.text(&format!("Seed-{seed}"))
                );
            }
        }
    }
    println!("{count} programs; skipped: {skipped:?}");
    // The number of timeouts depends on the machine, so it is shown and not judged.
    skipped.remove("out of time");
    assert!(
        skipped.values().sum::<u64>() * 10 <= count,
        "too many programs are out of reach: {skipped:?}"
    );
}

#[test]
fn tests_of_the_repository() {
    folder(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus"),
        &["toml", "litmus"],
    );
}

#[test]
fn tests_of_a_suite() {
    if let Some(path) = std::env::var_os("FENCEPOST_SUITE") {
        folder(Path::new(&path), &["litmus"]);
    }
}

fn folder(path: &Path, extensions: &[&str]) {
    let model = sc();
    let (mut equal, mut skipped) = (0, std::collections::BTreeMap::<String, u64>::new());
    let mut different = Vec::new();
    for file in sample(files(path, extensions)) {
        let Ok(tests) = read_path(&file) else {
            *skipped.entry("not read".to_string()).or_default() += 1;
            continue;
        };
        for test in tests {
            match compare(
                &LitmusTest {
                    filter: None,
                    ..test
                },
                &model,
            ) {
                Compared::Equal => equal += 1,
                Compared::Skipped(why) => *skipped.entry(why).or_default() += 1,
                other => different.push(format!("{}: {other:#?}", file.display())),
            }
        }
    }
    println!("{}: {equal} equal, skipped: {skipped:?}", path.display());
    assert!(different.is_empty(), "{}", different.join("\n"));
}
