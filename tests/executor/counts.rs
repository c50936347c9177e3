//! Barriers of PTX with thread counts, on random programs of three threads: compares the executor,
//! which runs phase after phase, with the phases that the engines choose.
//!
//! Two arrivals with different counts in one phase end a run of the executor; the model calls the
//! program undefined.

use std::time::Duration;

use fencepost::check::liveness::{Liveness, LivenessTask, ProgressModel};
use fencepost::check::{Engine, Limits, Session, operational};
use fencepost::litmus::LitmusTest;
use fencepost::model::Model;
use fencepost::simt::schedule::StopKind;
use fencepost::simt::{FaultKind, MachineMemory, RunOptions, Schedule, observe};
use fencepost::verdict::{Reason, Verdict};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::{BTreeMap, BTreeSet};
use testkit::suite::{number, programs, shipped};

const BARRIERS: [&str; 9] = [
    "bar.sync 1",
    "bar.sync 1, 2",
    "bar.sync 1, 3",
    "bar.arrive 1, 2",
    "bar.arrive 1, 3",
    "bar.sync 2",
    "bar.sync 2, 2",
    "bar.arrive 2, 2",
    "bar.sync 2, 3",
];

/// Three threads of one CTA; which of them comes first shows in memory.
fn program(seed: u64) -> LitmusTest {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut threads = String::new();
    for t in 0..3 {
        let mut code = Vec::new();
        let barriers = rng.random_range(1..3);
        for n in 0..barriers {
            code.push((*BARRIERS.choose(&mut rng).expect("some")).to_owned());
            if rng.random_bool(0.4) {
                code.push(match rng.random_bool(0.5) {
                    true => format!("st.relaxed.cta [x], {}", t + 1),
                    false => format!("ld.relaxed.cta r{n}, [x]"),
                });
            }
        }
        threads += &format!("[[thread]]\ncta = 0\ncode = \"{}\"\n", code.join("; "));
    }
    let text = format!("name = 'seed-{seed}'\ncondition = 'true'\nmemory = {{ x = 0 }}\n{threads}");
    fencepost::litmus::parse("generated.toml", text.as_bytes())
        .expect("valid")
        .remove(0)
}

/// The common answer about a program, in a word; an error if the two disagree.
fn compare(
    test: &LitmusTest,
    ptx: &Model,
    sc: &Model,
    limits: Limits,
) -> Result<&'static str, String> {
    let options = RunOptions {
        memory: MachineMemory::Sc,
        states: 100_000,
        ..RunOptions::default()
    };
    let shown = observe(test, &options, Schedule::Exhaustive)?;
    let (mixed, waits) = (
        shown.ended.by(StopKind::Fault(FaultKind::Barrier)) > 0,
        shown.ended.by(StopKind::Deadlock) > 0,
    );
    assert!(shown.complete || mixed, "{:?}", shown.reason);
    let mut answers = Vec::new();
    for engine in [Engine::Sat, Engine::Enumerate] {
        let mut session = Session::new(test, ptx, engine, limits, &[]);
        let undefined = session
            .undefined()
            .or_else(|| session.never_undefined())
            .expect("a flag");
        if let Some(defect) = undefined.defect {
            return Err(defect);
        }
        let setting = LivenessTask::new(test, sc);
        let hangs = Liveness::new(&setting, engine, limits, &[]).ask(ProgressModel::Fair);
        answers.push((undefined.verdict, hangs.verdict));
    }
    let is_open = |v: &Verdict| {
        matches!(
            v,
            Verdict::Undecided(Reason::TooManyParts(_) | Reason::Time)
        )
    };
    if answers
        .iter()
        .any(|(undefined, hangs)| is_open(undefined) || is_open(hangs))
    {
        return Ok("too large");
    }
    let [first, second] = &answers[..] else {
        unreachable!("two engines")
    };
    if first != second {
        return Err(format!("the engines say {answers:?}"));
    }
    match first {
        (Verdict::Undefined, _) if mixed => return Ok("undefined"),
        // An execution that waits forever has no verdict in the model.
        (Verdict::Undecided(_) | Verdict::Defined, Verdict::Hangs) if mixed => {
            return Ok("waits, and is undefined");
        }
        (Verdict::Undecided(_) | Verdict::Defined, Verdict::Hangs) if waits => {}
        (Verdict::Defined, Verdict::Terminates) if !waits && !mixed => {}
        said => {
            return Err(format!(
                "the engines say {said:?}, the executor {:?}",
                shown.ended
            ));
        }
    }
    let machine: BTreeSet<_> = operational::name(test, &shown)
        .into_iter()
        .map(|n| n.0)
        .collect();
    let said = Session::new(test, sc, Engine::Sat, limits, &[]).outcomes();
    let allowed: BTreeSet<_> = said
        .outcomes
        .into_iter()
        .filter(|o| o.allowed)
        .map(|o| o.state)
        .collect();
    match said.complete && machine != allowed {
        true => Err(format!(
            "the model allows {allowed:?}, the executor shows {machine:?}"
        )),
        false if waits => Ok("waits"),
        false => Ok("ends"),
    }
}

#[test]
fn phases_of_counted_barriers_are_those_that_are_run() {
    let load = |name| shipped(name);
    let (ptx, sc) = (load("ptx"), load("sc"));
    let limits = Limits {
        bound: None,
        timeout: Some(Duration::from_secs(2)),
    };
    let (count, first) = (programs(800), number("FENCEPOST_SEED", 1));
    let mut counts = BTreeMap::<&str, u64>::new();
    for seed in first..first + count {
        let test = program(seed);
        match compare(&test, &ptx, &sc, limits) {
            Ok(what) => *counts.entry(what).or_default() += 1,
            Err(what) => panic!("{what}\n{}", test.file.text),
        }
    }
    println!("{count} programs: {counts:?}");
    assert!(
        ["ends", "waits", "undefined"]
            .iter()
            .all(|what| counts.contains_key(what)),
        "{counts:?}"
    );
}
