//! Compares the executor's memories of OpenCL C, CUDA C++ and C with the models of these languages.
//!
//! Without early binds a memory shows exactly the outcomes of its model with one more axiom:
//! program order, reads-from and barriers have no cycle. The comparison covers whole outcome sets,
//! races and other undefined behaviour. It uses random programs, the tests of the repository, and
//! those of `FENCEPOST_SUITE`.
//!
//! `testkit::suite` sets the number of random programs per language, `FENCEPOST_SEED` the first
//! seed, `FENCEPOST_TIMEOUT_MS` the time for one query. With `FENCEPOST_FULL` the model itself
//! shows which fraction of it the memory covers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fencepost::check::operational;
use fencepost::litmus::{LitmusTest, read_path};
use fencepost::program::Dialect;
use fencepost::program::host::LaunchOrders;
use fencepost::simt::{MachineMemory, MemoryRules, Schedule, observe};
use testkit::clike::shapes::program;
use testkit::clike::{Lang, Program};
use testkit::sides::{Behaviour, Mutant, Side, each_is_missed, modelled, shown, sides};
use testkit::suite::{files, number, programs, sample};

/// Sums over programs.
#[derive(Debug, Default)]
struct Sums {
    equal: u64,
    skipped: BTreeMap<String, u64>,
    outcomes: usize,
    racy: u64,
    undefined: u64,
    states: u64,
    machine: Duration,
    /// For the model itself: programs, outcomes, outcomes shown, outcomes shown outside, and race
    /// verdicts that differ.
    full: [usize; 5],
}

/// Compares one test; returns the difference.
fn compare(test: &LitmusTest, side: &Side, rules: MemoryRules, sums: &mut Sums) -> Option<String> {
    let start = Instant::now();
    let (machine, states) = match shown(test, &side.options(rules)) {
        Ok(shown) => shown,
        Err(why) => {
            *sums
                .skipped
                .entry(why.split('(').next().unwrap_or_default().to_owned())
                .or_default() += 1;
            return None;
        }
    };
    sums.machine += start.elapsed();
    sums.states += states;
    let Some(expected) = modelled(test, &side.in_order) else {
        *sums
            .skipped
            .entry("model: not complete".into())
            .or_default() += 1;
        return None;
    };
    if number("FENCEPOST_FULL", 0) != 0
        && let Some(full) = modelled(test, &side.full)
    {
        let reached = full.outcomes.intersection(&machine.outcomes).count();
        let outside = machine.outcomes.len() - reached;
        let figures = [
            1,
            full.outcomes.len(),
            reached,
            outside,
            usize::from(full.racy != machine.racy),
        ];
        sums.full
            .iter_mut()
            .zip(figures)
            .for_each(|(sum, n)| *sum += n);
    }
    sums.outcomes += expected.outcomes.len();
    sums.racy += u64::from(expected.racy);
    sums.undefined += u64::from(expected.undefined);
    // In runs, the answer about a status comes at some time, although in OpenCL it orders nothing.
    // The same holds for calls of two host threads.
    let asks = test
        .program
        .host
        .as_deref()
        .is_some_and(|h| h.queries.iter().any(|q| !q.orders(h)));
    let several = LaunchOrders::host_threads(&test.program).count() > 1;
    // A read of an image takes what was written last, with or without a fence.
    let images = test.file.text.contains("read_image");
    let fewer = (asks || several || images) && machine.outcomes.is_subset(&expected.outcomes);
    // Runs do not report that a block may not have started yet, or may have exited. They do not
    // follow lifetimes of memory, nor contents that a map discards, nor two addresses of one memory.
    let untold = [
        "map_shared_rank",
        "cudaFree",
        "clSVMFree",
        "alias = ",
        "CL_MAP_WRITE_INVALIDATE_REGION",
        "reserve_write_pipe",
    ];
    let lends = expected.undefined && untold.iter().any(|word| test.file.text.contains(word));
    if machine.racy == expected.racy
        && (lends || machine.undefined == expected.undefined)
        && (fewer || machine.outcomes == expected.outcomes)
    {
        sums.equal += 1;
        return None;
    }
    let only = |a: &Behaviour, b: &Behaviour| {
        a.outcomes
            .difference(&b.outcomes)
            .cloned()
            .collect::<Vec<_>>()
    };
    Some(format!(
        "only the model: {:?}\nonly the machine: {:?}\nracy: model {}, machine {}; undefined: model {}, machine {}",
        only(&expected, &machine),
        only(&machine, &expected),
        expected.racy,
        machine.racy,
        expected.undefined,
        machine.undefined
    ))
}

fn random(count: u64, side: &Side) {
    let (count, first) = (programs(count), number("FENCEPOST_SEED", 1));
    let mut sums = Sums::default();
    for seed in first..first + count {
        let source: Program = program(side.lang, seed);
        let differs = |p: &Program| {
            compare(
                &p.read("generated"),
                side,
                MemoryRules::ALL,
                &mut Sums::default(),
            )
        };
        if compare(&source.read("generated"), side, MemoryRules::ALL, &mut sums).is_some() {
            let small = source.shrink(|p| differs(p).is_some());
            let how = differs(&small).unwrap_or_default();
            panic!(
                "{}, seed {seed}:\n{how}\n{}",
                side.memory.name(),
                small.text("Smaller")
            );
        }
    }
    println!("{}: {count} programs: {sums:?}", side.memory.name());
}

#[test]
fn memories_are_their_models_in_order_on_random_programs() {
    for side in sides() {
        random(40, &side);
    }
}

fn folder(path: &Path) {
    let dialect = |side: &Side| match side.lang {
        Lang::OpenCl => Dialect::OpenCl,
        Lang::Cuda => Dialect::Cuda,
        Lang::C => Dialect::C,
    };
    let mut sides: Vec<(Side, Sums)> = sides()
        .into_iter()
        .map(|side| (side, Sums::default()))
        .collect();
    let mut different = Vec::new();
    for file in sample(files(path, &["toml", "litmus"])) {
        for test in read_path(&file).unwrap_or_default() {
            for (side, sums) in sides
                .iter_mut()
                .filter(|(side, _)| dialect(side) == test.program.dialect)
            {
                if let Some(how) = compare(&test, side, MemoryRules::ALL, sums) {
                    different.push(format!(
                        "{}: {} {}: {how}",
                        side.memory.name(),
                        file.display(),
                        test.name
                    ));
                }
            }
        }
    }
    for (side, sums) in &sides {
        println!("{}: {}: {sums:?}", side.memory.name(), path.display());
    }
    assert!(
        different.is_empty(),
        "{} differ\n{}",
        different.len(),
        different.join("\n")
    );
}

#[test]
fn memories_are_their_models_in_order_on_the_tests_of_the_repository() {
    folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus"));
}

#[test]
fn memories_are_their_models_in_order_on_the_shared_suite() {
    if let Some(path) = std::env::var_os("FENCEPOST_SUITE") {
        folder(&PathBuf::from(path));
    }
}

const MUTANTS: &[Mutant] = {
    use MachineMemory::{C11, Cuda, OpenCl, Rc11};
    &[
        (
            "coherence",
            |r| r.coherence = false,
            &[OpenCl, Cuda, C11, Rc11],
        ),
        (
            "atomicity",
            |r| r.atomicity = false,
            &[OpenCl, Cuda, C11, Rc11],
        ),
        ("visible", |r| r.visible = false, &[OpenCl, C11]),
        (
            "agreement",
            |r| r.agreement = false,
            &[OpenCl, Cuda, C11, Rc11],
        ),
        (
            "agreement of fences",
            |r| r.agreement_fences = false,
            &[OpenCl, Cuda, C11, Rc11],
        ),
        (
            "synchronization",
            |r| r.synchronization = false,
            &[OpenCl, Cuda, C11, Rc11],
        ),
        (
            "release fence",
            |r| r.release_fence = false,
            &[OpenCl, Cuda, C11, Rc11],
        ),
        (
            "acquire fence",
            |r| r.acquire_fence = false,
            &[OpenCl, Cuda, C11, Rc11],
        ),
        (
            "release sequence",
            |r| r.sequence = false,
            &[OpenCl, Cuda, C11, Rc11],
        ),
        ("both flags", |r| r.cross = false, &[OpenCl]),
        ("regions", |r| r.regions = false, &[OpenCl]),
        ("scopes", |r| r.scopes = false, &[OpenCl, Cuda]),
        ("barriers", |r| r.barriers = false, &[OpenCl, Cuda]),
    ]
};

#[test]
fn every_rule_is_needed() {
    each_is_missed(MUTANTS, &|side, test, rules| {
        // The machine is quick, and most programs do not use the rule.
        let run = |rules| shown(test, &side.options(rules)).ok().map(|s| s.0);
        if run(rules) == run(MemoryRules::ALL) {
            return None;
        }
        compare(test, side, rules, &mut Sums::default()).map(|how| how.replace('\n', "; "))
    });
}

/// A store that counts as part of a release sequence, or not. Another thread's store decides that
/// when it takes its place in modification order, and it waits for the acquire.
const LATE_BREAK: &str = r#"
name = "RelSeq+late-break"
dialect = "c"
condition = 'P1:r0 == 2 /\ P1:r1 == 0 /\ P2:r2 == 1 /\ y == 2'
[memory]
x = { type = "atomic_int" }
y = { type = "atomic_int" }
z = { type = "atomic_int" }
[[thread]]
code = '''
atomic_store_explicit(x, 1, memory_order_relaxed);
atomic_store_explicit(y, 1, memory_order_release);
atomic_store_explicit(y, 2, memory_order_relaxed);
'''
[[thread]]
code = '''
int r0 = atomic_load_explicit(y, memory_order_acquire);
int r1 = atomic_load_explicit(x, memory_order_relaxed);
atomic_store_explicit(z, 1, memory_order_relaxed);
'''
[[thread]]
code = '''
int r2 = atomic_load_explicit(z, memory_order_relaxed);
atomic_store_explicit(y, 3, memory_order_relaxed);
'''
"#;

#[test]
fn what_a_release_sequence_was_relied_on_for_stays_true() {
    let texts = [
        LATE_BREAK.to_owned(),
        LATE_BREAK.replace("dialect = \"c\"", "dialect = \"opencl\""),
    ];
    for (text, memory, lang) in [
        (&texts[0], MachineMemory::C11, Lang::C),
        (&texts[1], MachineMemory::OpenCl, Lang::OpenCl),
    ] {
        let side = Side::new(memory, lang);
        let test = fencepost::litmus::parse("late-break.toml", text.as_bytes())
            .expect("valid")
            .remove(0);
        let mut sums = Sums::default();
        let all = MemoryRules::ALL;
        assert_eq!(compare(&test, &side, all, &mut sums), None);
        assert_eq!(sums.equal, 1, "{sums:?}");
        for rules in [
            MemoryRules { pins: false, ..all },
            MemoryRules {
                breaks: false,
                ..all
            },
        ] {
            assert!(
                compare(&test, &side, rules, &mut sums).is_some(),
                "{}: {rules:?}",
                memory.name()
            );
        }
    }
}

#[test]
fn random_runs_show_what_every_schedule_shows() {
    for side in sides() {
        let seeds = 1..=programs(20);
        for test in seeds.map(|seed| program(side.lang, seed).read("generated")) {
            let Ok((all, _)) = shown(&test, &side.options(MemoryRules::ALL)) else {
                continue;
            };
            let schedule = Schedule::Random { runs: 200, seed: 1 };
            let some = observe(&test, &side.options(MemoryRules::ALL), schedule).expect("it runs");
            let named = operational::name(&test, &some);
            assert!(
                named.iter().all(|n| all.outcomes.contains(&n.0)),
                "{}",
                test.file.text
            );
            assert!(
                some.hazards.is_empty() || all.undefined,
                "{}",
                test.file.text
            );
            // Every recorded run can be replayed, with the same end.
            for (state, seen) in named {
                let again =
                    fencepost::simt::replay(&test, &side.options(MemoryRules::ALL), &seen.schedule);
                let again = operational::name(&test, &again.expect("it fits"));
                assert_eq!(
                    again.iter().map(|n| &n.0).collect::<Vec<_>>(),
                    [&state],
                    "{}",
                    test.file.text
                );
            }
        }
    }
}
