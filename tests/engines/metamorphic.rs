//! Checks changes of tests that must have no effect, or must only forbid, under every model of
//! their dialect.
//!
//! - The order of threads and the names and order of locations change nothing.
//! - A stronger order, a wider scope or a further fence allows no new outcome. This holds in the
//!   models that promise it, for programs that the model calls defined. [`EXCEPTIONS`] lists the
//!   models that promise less, each with a test.
//!
//! `testkit::suite` sets the number of changed tests of each dialect, from the repository and from
//! the folder that `FENCEPOST_SUITE` names; `FENCEPOST_SEED` selects them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::{LitmusTest, read_path};
use fencepost::model::{Library, Model};
use fencepost::program::{Dialect, Op};
use fencepost::verdict::{State, Verdict};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use testkit::rewrite::{MARK, Stronger, permuted, renamed, strengthened};
use testkit::suite::{files, number, programs, shipped};

/// Models that do not promise that a kind of change only forbids, and the reason.
const EXCEPTIONS: &[(&str, Stronger, &str)] = &[
    (
        "opencl",
        Stronger::Scope,
        "scopes must be equal: a wider one may include no other",
    ),
    ("opencl-simp", Stronger::Scope, "as `opencl`"),
    ("opencl-2.0", Stronger::Scope, "as `opencl`"),
    ("opencl-total", Stronger::Scope, "as `opencl`"),
    ("opencl-c20", Stronger::Scope, "as `opencl`"),
    ("opencl-widened", Stronger::Scope, "as `opencl`"),
    ("opencl-thin-air-dep", Stronger::Scope, "as `opencl`"),
    ("opencl-thin-air-sb", Stronger::Scope, "as `opencl`"),
    (
        "opencl-simp",
        Stronger::Order,
        "one SC operation of another scope takes sequential consistency from all",
    ),
    ("opencl-2.0", Stronger::Order, "as `opencl-simp`"),
    ("opencl-simp", Stronger::Fence, "as with orders"),
    ("opencl-2.0", Stronger::Fence, "as with orders"),
];

/// Tests with more instructions are left out: their outcomes are computed many times.
const SMALL: usize = 20;

/// The shipped models of a dialect.
fn models(dialect: Dialect) -> Vec<Model> {
    let speaks = |name: &&str| {
        let family = name.split('-').next().unwrap_or(name);
        match dialect {
            Dialect::C => family == "c11" || family == "rc11",
            other => family == other.name(),
        }
    };
    Library::names()
        .into_iter()
        .filter(speaks)
        .chain(["sc"])
        .map(shipped)
        .collect()
}

fn session<'a>(test: &'a LitmusTest, model: &'a Model) -> Session<'a> {
    let limits = Limits {
        bound: Some(2),
        timeout: Some(Duration::from_millis(1000)),
    };
    Session::new(test, model, Engine::Enumerate, limits, &[])
}

/// The allowed states, and whether they are racy, without the marks of renaming. `None` if the list
/// is not complete: the listed part then depends on the search for values out of thin air.
fn states(test: &LitmusTest, model: &Model) -> Option<BTreeMap<State, bool>> {
    let list = session(test, model).outcomes();
    assert_eq!(list.defect, None, "{} under {}", test.name, model.name);
    list.complete.then(|| {
        let plain = |text: &str| text.replace(MARK, "");
        let row = |state: State| -> State {
            let mut state: State = state
                .into_iter()
                .map(|(n, v)| (plain(&n).into(), plain(&v).into()))
                .collect();
            state.sort();
            state
        };
        list.outcomes
            .into_iter()
            .filter(|o| o.allowed)
            .map(|o| (row(o.state), o.racy))
            .collect()
    })
}

fn allowed(test: &LitmusTest, model: &Model) -> Option<BTreeSet<State>> {
    Some(states(test, model)?.into_keys().collect())
}

/// Whether the model calls the program undefined; `None` if undecided.
fn undefined(test: &LitmusTest, model: &Model) -> Option<bool> {
    match session(test, model).undefined().map(|a| a.verdict) {
        None | Some(Verdict::Defined) => Some(false),
        Some(Verdict::Undefined) => Some(true),
        Some(_) => None,
    }
}

/// A sample of tests of the repository and of a suite, with a limit for each dialect.
fn tests() -> Vec<LitmusTest> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus")];
    folders.extend(std::env::var_os("FENCEPOST_SUITE").map(Into::into));
    let mut rng = Pcg64Mcg::seed_from_u64(number("FENCEPOST_SEED", 1));
    let mut by_dialect: BTreeMap<Dialect, Vec<LitmusTest>> = BTreeMap::new();
    for file in folders
        .iter()
        .flat_map(|folder| files(folder, &["toml", "litmus"]))
    {
        for test in read_path(&file).into_iter().flatten() {
            let size: usize = test.program.threads.iter().map(|t| t.code.len()).sum();
            // The threads of a host program are numbered with its enqueued commands, and the lanes
            // of a warp in the order of threads.
            let lanes = test.program.instrs().any(|(_, _, i)| match &i.op {
                Op::Give { .. } => true,
                op => op.barrier().is_some_and(|b| b.lanes.is_some()),
            });
            // The distance of another CTA's memory is a number in the code: copies are in the order
            // of threads.
            let peers = test.program.instrs().any(|(_, _, i)| {
                ["mapa", "map_shared_rank", "multicast"]
                    .iter()
                    .any(|w| i.text.contains(w))
            });
            let plain = test.program.dialect != Dialect::Vulkan
                && test.program.host.is_none()
                && !lanes
                && !peers;
            if size <= SMALL && plain {
                by_dialect
                    .entry(test.program.dialect)
                    .or_default()
                    .push(test);
            }
        }
    }
    let count = programs(25) as usize;
    let mut tests = Vec::new();
    for list in by_dialect.values_mut() {
        list.shuffle(&mut rng);
        tests.extend(list.drain(..list.len().min(count)));
    }
    tests
}

#[test]
fn order_of_threads_and_names_mean_nothing() {
    let mut rng = Pcg64Mcg::seed_from_u64(number("FENCEPOST_SEED", 1));
    let (mut compared, mut skipped) = (0, 0);
    for test in tests() {
        let (other, new) = (permuted(&test, &mut rng), renamed(&test));
        for model in models(test.program.dialect) {
            let Some(expected) = states(&test, &model) else {
                skipped += 1;
                continue;
            };
            for changed in [&other, &new] {
                // The original was in time, but the changed test need not be.
                let Some(found) = states(changed, &model) else {
                    skipped += 1;
                    continue;
                };
                assert_eq!(found, expected, "{} under {}", test.name, model.name);
                compared += 1;
            }
        }
    }
    println!("{compared} comparisons, {skipped} pairs of a test and a model skipped");
    assert!(compared > skipped, "too much is out of reach");
}

#[test]
fn stronger_programs_allow_nothing_new() {
    let mut rng = Pcg64Mcg::seed_from_u64(number("FENCEPOST_SEED", 1));
    let mut compared = 0;
    let mut new: BTreeMap<(String, Stronger), Vec<String>> = BTreeMap::new();
    let mut promised: Vec<String> = Vec::new();
    for test in tests() {
        for kind in [Stronger::Order, Stronger::Scope, Stronger::Fence] {
            let Some((stronger, what)) = strengthened(&test, kind, &mut rng) else {
                continue;
            };
            for model in models(test.program.dialect) {
                if undefined(&test, &model) != Some(false) {
                    continue;
                }
                let (Some(before), Some(after)) =
                    (allowed(&test, &model), allowed(&stronger, &model))
                else {
                    continue;
                };
                compared += 1;
                let more: Vec<_> = after.difference(&before).collect();
                if more.is_empty() {
                    continue;
                }
                let text = format!(
                    "{} under {}: {what}\nallows {more:?}",
                    test.name, model.name
                );
                if !EXCEPTIONS.iter().any(|e| e.0 == model.name && e.1 == kind) {
                    promised.push(text.clone());
                }
                new.entry((model.name.clone(), kind))
                    .or_default()
                    .push(text);
            }
        }
    }
    println!(
        "{compared} comparisons; new outcomes under models that do not promise that there are none:"
    );
    for ((model, kind), list) in &new {
        println!("  {model}, {kind:?}: {}; such as {}", list.len(), list[0]);
    }
    assert!(promised.is_empty(), "{}", promised.join("\n\n"));
    assert!(compared > 0);
}

/// A test of the repository, with a word of its code replaced.
fn with(path: &str, old: &str, new: &str) -> [LitmusTest; 2] {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a file");
    assert!(text.contains(old), "{path} has no {old}");
    let read = |text: &str| {
        fencepost::litmus::parse(path, text.as_bytes())
            .expect("a valid test")
            .remove(0)
    };
    [read(&text), read(&text.replacen(old, new, 1))]
}

fn condition(test: &LitmusTest, model: &Model) -> Verdict {
    session(test, model).reachability(None, false).verdict
}

/// OpenCL up to 3.0 requires equal scopes: a wider scope on one side creates a race.
#[test]
fn a_wider_scope_adds_a_race_in_opencl() {
    let [before, after] = with(
        "litmus/opencl/T01.toml",
        "memory_scope_work_group",
        "memory_scope_device",
    );
    for (name, races) in [("opencl", true), ("opencl-3.1", false)] {
        let model = shipped(name);
        assert_eq!(undefined(&before, &model), Some(false));
        assert_eq!(undefined(&after, &model), Some(races), "{name}");
    }
}

/// In OpenCL 2.0, operations are sequentially consistent only if all of them have the same scope.
/// One more such operation with a narrower scope frees all the others.
#[test]
fn one_more_sc_fence_can_free_the_others_in_opencl_2_0() {
    let fence = "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_seq_cst, memory_scope_work_group);\n";
    let line = "atomic_store_explicit(x, 1, memory_order_seq_cst, memory_scope_device);";
    let [before, after] = with("litmus/opencl/T60.toml", line, &format!("{fence}{line}"));
    for name in ["opencl-2.0", "opencl-simp"] {
        let model = shipped(name);
        assert_eq!(condition(&before, &model), Verdict::Forbidden, "{name}");
        assert_eq!(condition(&after, &model), Verdict::Allowed, "{name}");
    }
    assert_eq!(condition(&after, &shipped("opencl")), Verdict::Forbidden);
}

/// Models promise nothing for programs with races. After the acquire of the flag, the new data is a
/// visible side effect; before it, only the old data was.
#[test]
fn synchronization_can_add_an_outcome_to_a_racy_program() {
    let [before, after] = with(
        "litmus/compare/Race.MP.opencl.toml",
        "memory_order_relaxed, memory_scope_device);\nint r1",
        "memory_order_acquire, memory_scope_device);\nint r1",
    );
    let [_, after] = {
        let text = after.file.text.replacen(
            "(f, 1, memory_order_relaxed",
            "(f, 1, memory_order_release",
            1,
        );
        let read = |text: &str| {
            fencepost::litmus::parse("after.toml", text.as_bytes())
                .expect("valid")
                .remove(0)
        };
        [read(&text), read(&text)]
    };
    let model = shipped("opencl");
    let (before, after) = (
        allowed(&before, &model).expect("few"),
        allowed(&after, &model).expect("few"),
    );
    let new: Vec<_> = after.difference(&before).collect();
    assert_eq!(
        new,
        [&vec![
            ("P1:r0".into(), "1".into()),
            ("P1:r1".into(), "1".into())
        ]]
    );
}
