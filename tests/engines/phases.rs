//! Kernels of one block whose threads meet at barriers, leave loops and exit by what they read, against an interpreter with vector
//! clocks ([`testkit::phases`]): the same kernels race under `ptx`, and those that do not have the same outcomes.

use std::time::Duration;

use fencepost::check::{Engine, Limits, Session};
use fencepost::model::{Model, load_shipped};
use fencepost::skeleton::signature::signature;
use fencepost::verdict::Verdict;
use testkit::phases::{Behaviour, Kernel};
use testkit::suite::{number, programs};

/// How a comparison ended.
#[derive(Debug, PartialEq)]
enum Compared {
    Racy,
    Same,
    /// Threads wait for ever, or there is too much of it.
    Skipped,
    Different(String),
}

fn compare(kernel: &Kernel, model: &Model) -> Compared {
    let Some(expected) = kernel.behaviour().filter(|behaviour| !behaviour.stuck) else { return Compared::Skipped };
    let test = kernel.read();
    let limits = Limits {
        timeout: Some(Duration::from_millis(number("FENCEPOST_TIMEOUT_MS", 2_000))),
        ..Limits::default()
    };
    let mut session = Session::new(&test, model, Engine::Auto, limits, &[]);
    let racy = match session.race().map(|answer| answer.verdict) {
        Some(Verdict::Racy) => true,
        Some(Verdict::RaceFree) => false,
        _ => return Compared::Skipped,
    };
    // Where a thread has exited, nothing makes known what it did.
    if racy != expected.racy && !(racy && expected.loose) {
        return Compared::Different(format!("racy: {racy}, and the interpreter says {}", expected.racy));
    }
    if racy {
        return Compared::Racy;
    }
    let outcomes = session.outcomes();
    assert_eq!(outcomes.defect, None, "{}", test.file.text);
    if !outcomes.complete {
        return Compared::Skipped;
    }
    let allowed = outcomes.outcomes.into_iter().filter(|outcome| outcome.allowed).map(|outcome| {
        let mut state = outcome.state;
        state.sort();
        state
    });
    let found = Behaviour { outcomes: allowed.collect(), ..Behaviour::default() };
    if found.outcomes == expected.outcomes || expected.loose && found.outcomes.is_superset(&expected.outcomes) {
        return Compared::Same;
    }
    Compared::Different(format!(
        "only the model: {:?}\nonly the interpreter: {:?}",
        found.outcomes.difference(&expected.outcomes).collect::<Vec<_>>(),
        expected.outcomes.difference(&found.outcomes).collect::<Vec<_>>()
    ))
}

#[test]
fn kernels_of_one_block_are_what_interleavings_say() {
    let model = load_shipped("ptx", &signature()).expect("shipped").expect("valid");
    let (count, first) = (programs(3_000), number("FENCEPOST_SEED", 1));
    let (mut racy, mut same, mut skipped) = (0, 0, 0);
    for seed in first..first + count {
        let kernel = Kernel::of(seed);
        match compare(&kernel, &model) {
            Compared::Racy => racy += 1,
            Compared::Same => same += 1,
            Compared::Skipped => skipped += 1,
            Compared::Different(_) => {
                let differs = |kernel: &Kernel| matches!(compare(kernel, &model), Compared::Different(_));
                let small = kernel.smallest(differs);
                panic!("seed {seed}: {:?}\n{}", compare(&small, &model), small.text());
            }
        }
    }
    println!("{count} kernels: {racy} race, {same} the same, {skipped} skipped");
    assert!(racy > 0 && same > 0 && skipped * 2 < count, "{racy} {same} {skipped}");
}
