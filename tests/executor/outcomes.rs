//! Compares the executor with the models, on random programs and on the tests of the repository.
//!
//! - The memory `sc` has exactly the outcomes of the model `sc`; `weak` without early binds has
//!   exactly those of `ptx` with one more axiom. With early binds `weak` stays within `ptx` and
//!   covers nearly all of it.
//! - Every rule of the weak memory is needed: without it, some program shows an outcome that `ptx`
//!   forbids.
//! - Runs are repeatable, recorded ones replay to the same events, and each is a consistent
//!   execution of the model.
//!
//! `testkit::suite` sets the number of random programs, `FENCEPOST_SEED` the first seed,
//! `FENCEPOST_TIMEOUT_MS` the time for one query, `FENCEPOST_SUITE` a folder of further tests.

use program::Tag;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use fencepost::check::{Engine, Limits, Session, operational};
use fencepost::litmus::{LitmusTest, read_path};
use fencepost::model::Model;
use fencepost::program::host::{ChildStart, CommandOrigin, HostCommand};
use fencepost::program::{Instr, Op};
use fencepost::simt::schedule::StopKind;
use fencepost::simt::{
    Early, MachineMemory, MemoryRules, RunOptions, Schedule, identity, observe, replay, trace,
};
use fencepost::skeleton::signature::signature;
use fencepost::verdict::State;
use testkit::generate::{Shape, Source, WAITS, fenced, program};
use testkit::mbarriers;
use testkit::rings::ring;
use testkit::suite::{files, is_long, number, programs, sample, shipped, step};

const SHAPE: Shape = Shape {
    threads: 3,
    instructions: 4,
};

/// The outcomes that a model allows; `None` if unknown within the time.
fn allowed(test: &LitmusTest, model: &Model) -> Option<BTreeSet<State>> {
    allowed_within(
        test,
        model,
        Duration::from_millis(number("FENCEPOST_TIMEOUT_MS", 500)),
    )
}

fn allowed_within(test: &LitmusTest, model: &Model, timeout: Duration) -> Option<BTreeSet<State>> {
    let limits = Limits {
        bound: Some(6),
        timeout: Some(timeout),
    };
    let outcomes = Session::new(test, model, Engine::Auto, limits, &[]).outcomes();
    assert_eq!(outcomes.defect, None, "{}", test.file.text);
    outcomes.allowed_states()
}

/// The outcomes that the machine shows, and whether it can show no others.
fn shown(test: &LitmusTest, options: &RunOptions) -> Result<(BTreeSet<State>, bool), String> {
    let observation = observe(test, options, Schedule::Exhaustive)?;
    let named = operational::name(test, &observation);
    Ok((
        named.into_iter().map(|n| n.0).collect(),
        observation.complete,
    ))
}

/// A comparison of whole sets.
#[derive(Debug, PartialEq)]
enum Compared {
    Equal,
    Skipped(String),
    Different {
        only_model: BTreeSet<State>,
        only_machine: BTreeSet<State>,
    },
}

fn compare(test: &LitmusTest, model: &Model, options: &RunOptions) -> Compared {
    let (machine, complete) = match shown(test, options) {
        Ok(shown) => shown,
        Err(why) => return Compared::Skipped(why.split('(').next().unwrap_or_default().to_owned()),
    };
    let Some(expected) = allowed(test, model) else {
        return Compared::Skipped("model: not complete".into());
    };
    let only_machine: BTreeSet<State> = machine.difference(&expected).cloned().collect();
    if only_machine.is_empty() && !complete {
        return Compared::Skipped("machine: not complete".into());
    }
    let only_model: BTreeSet<State> = expected.difference(&machine).cloned().collect();
    if only_machine.is_empty() && only_model.is_empty() {
        return Compared::Equal;
    }
    Compared::Different {
        only_model,
        only_machine,
    }
}

fn options(memory: MachineMemory, early: Early) -> RunOptions {
    let timeout = Some(Duration::from_millis(number("FENCEPOST_TIMEOUT_MS", 500)));
    RunOptions {
        memory,
        early,
        states: 200_000,
        timeout,
        ..RunOptions::default()
    }
}

fn random(count: u64, what: &str, compare: impl Fn(&LitmusTest) -> Compared) {
    let (count, first) = (programs(count), number("FENCEPOST_SEED", 1));
    let mut skipped = BTreeMap::<String, u64>::new();
    for seed in first..first + count {
        let source: Source = program(seed, SHAPE);
        match compare(&source.read(&format!("seed-{seed}"))) {
            Compared::Equal => {}
            Compared::Skipped(why) => *skipped.entry(why).or_default() += 1,
            Compared::Different { .. } => {
                let fails =
                    |s: &Source| matches!(compare(&s.read("smaller")), Compared::Different { .. });
                let small = source.shrink(fails);
                panic!(
                    "seed {seed}: {:#?}\n{}",
                    compare(&small.read("smaller")),
                    small.text("Smaller")
                );
            }
        }
    }
    println!("{what}: {count} programs; skipped: {skipped:?}");
}

#[test]
fn sc_is_the_model_sc_on_random_programs() {
    let sc = shipped("sc");
    random(60, "sc", |test| {
        compare(test, &sc, &options(MachineMemory::Sc, Early::None))
    });
}

/// Whether the model leaves events unordered that a single order of everything has to order. These
/// are the call of `enqueue_kernel` before a child that waits for nothing, and the end of a command
/// before a thread that queries its status. The specification promises nothing about memory there;
/// a machine that runs one step after the other shows less.
fn is_weaker_than_any_order(test: &LitmusTest) -> bool {
    let Some(host) = test.program.host.as_deref() else {
        return false;
    };
    let no_wait = |c: &HostCommand| {
        matches!(
            c.origin,
            CommandOrigin::Device {
                flag: ChildStart::NoWait,
                ..
            }
        )
    };
    let queue = |c: &HostCommand| c.lane.is_some_and(|l| !host.lane(l).kind.is_stream());
    let mut code = test.program.threads.iter().flat_map(|t| &t.code);
    host.commands.iter().any(|c| no_wait(c) && queue(c))
        || code.any(|i| matches!(i.op, Op::Status { .. }))
}

/// Whether the machine orders more than the model:
/// - It takes the reading of `fence.proxy.async` that orders most.
/// - Matrix instructions begin at their place, not behind the `wgmma.fence` before them.
/// - Half of a fence performs the whole fence.
/// - A tensor copy goes element by element.
/// - A thread that learns from one behind a `griddepcontrol.wait` has entered the async proxy, too.
fn is_ordered_more(test: &LitmusTest) -> bool {
    let mut code = test.program.threads.iter().flat_map(|t| &t.code);
    let alone = |i: &Instr| i.op.has_any(&[Tag::Wgmma, Tag::Half, Tag::TensormapProxy]);
    let entered = |i: &Instr| test.program.asynchronous().is_some() && i.op.has(Tag::GridWait);
    test.options.iter().any(|o| o.is_on()) || code.any(|i| alone(i) || entered(i))
}

fn folder(path: &Path, what: &str, compare: impl Fn(&LitmusTest) -> Compared) {
    let (mut equal, mut skipped, mut different) = (0, BTreeMap::<String, u64>::new(), Vec::new());
    for file in sample(files(path, &["toml", "litmus"])) {
        for test in read_path(&file).unwrap_or_default() {
            match compare(&test) {
                Compared::Equal => equal += 1,
                Compared::Different { only_machine, .. }
                    if only_machine.is_empty()
                        && (is_weaker_than_any_order(&test) || is_ordered_more(&test)) =>
                {
                    *skipped
                        .entry("model: weaker than what is run".into())
                        .or_default() += 1;
                }
                Compared::Skipped(why) => *skipped.entry(why).or_default() += 1,
                other => different.push(format!("{} {}: {other:#?}", file.display(), test.name)),
            }
        }
    }
    println!(
        "{what}: {}: {equal} equal, skipped: {skipped:#?}",
        path.display()
    );
    assert!(
        different.is_empty(),
        "{} differ\n{}",
        different.len(),
        different.join("\n")
    );
}

#[test]
fn sc_is_the_model_sc_on_the_tests_of_the_repository() {
    let sc = shipped("sc");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus");
    folder(&path, "sc", |test| {
        compare(test, &sc, &options(MachineMemory::Sc, Early::None))
    });
}

/// `ptx` without early binds: in one order of all events, no value is read before it is written.
fn in_order() -> Model {
    let ptx = fencepost::model::Library::model("ptx").expect("shipped");
    let text = format!(
        "{}\nacyclic po | rf | sc | syncbar | exitbar | nextbar | meets | starts | inop | carries | group-done | group-read as In-Order\n",
        ptx.text
    );
    let file = fencepost::diag::SourceFile::new("in-order.cat", text);
    fencepost::model::load(
        file,
        "in-order",
        &fencepost::model::Shipped,
        &signature(),
        None,
    )
    .expect("valid")
}

#[test]
fn without_early_binds_weak_is_ptx_in_order() {
    let model = in_order();
    random(60, "none", |test| {
        compare(test, &model, &options(MachineMemory::Weak, Early::None))
    });
}

#[test]
fn weak_in_order_on_the_tests_of_the_repository() {
    let model = in_order();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus");
    folder(&path, "none", |test| {
        compare(test, &model, &options(MachineMemory::Weak, Early::None))
    });
}

#[test]
fn runs_with_mbarriers_show_what_the_models_allow() {
    let (sc, in_order, ptx) = (shipped("sc"), in_order(), shipped("ptx"));
    let (count, first) = (programs(60), number("FENCEPOST_SEED", 1));
    let mut skipped = BTreeMap::<String, u64>::new();
    for (memory, early, model) in [
        (MachineMemory::Sc, Early::None, &sc),
        (MachineMemory::Weak, Early::None, &in_order),
        (MachineMemory::Weak, Early::Full(1), &ptx),
    ] {
        let differs = |s: &mbarriers::Source| match compare(
            &s.read("generated"),
            model,
            &options(memory, early),
        ) {
            Compared::Different { only_machine, .. }
                if only_machine.is_empty() && early != Early::None =>
            {
                None
            }
            Compared::Equal => None,
            other => Some(other),
        };
        for seed in first..first + count {
            let source = mbarriers::program(seed, 4);
            match differs(&source) {
                None => {}
                Some(Compared::Skipped(why)) => *skipped.entry(why).or_default() += 1,
                Some(_) => {
                    let small =
                        source.shrink(|s| matches!(differs(s), Some(Compared::Different { .. })));
                    panic!(
                        "seed {seed}, {}: {:#?}\n{}",
                        model.name,
                        differs(&small),
                        small.text("Smaller")
                    );
                }
            }
        }
    }
    println!("{count} programs with mbarriers, on three machines; skipped: {skipped:?}");
}

#[test]
fn asynchronous_operations_show_what_the_models_allow() {
    let (sc, in_order) = (shipped("sc"), in_order());
    let (count, first) = (programs(60), number("FENCEPOST_SEED", 1));
    for (memory, model) in [(MachineMemory::Sc, &sc), (MachineMemory::Weak, &in_order)] {
        let (mut equal, mut fewer, mut skipped) = (0, 0, BTreeMap::<String, u64>::new());
        let kinds: [fn(u64, usize) -> mbarriers::Source; 2] =
            [mbarriers::with_copies, mbarriers::with_operations];
        for (kind, seed) in kinds
            .into_iter()
            .flat_map(|kind| (first..first + count).map(move |seed| (kind, seed)))
        {
            let differs = |s: &mbarriers::Source| match compare(
                &s.read("generated"),
                model,
                &options(memory, Early::None),
            ) {
                Compared::Different { only_machine, .. }
                    if only_machine.is_empty() && is_ordered_more(&s.read("generated")) =>
                {
                    None
                }
                other => Some(other),
            };
            let source = kind(seed, 4);
            let test = source.read("generated");
            // Random schedules wait for copies, too.
            if let (Ok(some), Some(allowed)) = (
                observe(
                    &test,
                    &options(memory, Early::None),
                    Schedule::Random { runs: 30, seed },
                ),
                allowed(&test, model),
            ) {
                for (state, _) in operational::name(&test, &some) {
                    assert!(
                        allowed.contains(&state),
                        "seed {seed}: {state:?}\n{}",
                        test.file.text
                    );
                }
            }
            match differs(&source) {
                None => fewer += 1,
                Some(Compared::Equal) => equal += 1,
                Some(Compared::Skipped(why)) => *skipped.entry(why).or_default() += 1,
                Some(_) => {
                    let small =
                        source.shrink(|s| matches!(differs(s), Some(Compared::Different { .. })));
                    panic!(
                        "seed {seed}, {}: {:#?}\n{}",
                        model.name,
                        differs(&small),
                        small.text("Smaller")
                    );
                }
            }
        }
        println!(
            "{}: {equal} equal, {fewer} with fewer, skipped: {skipped:?}",
            model.name
        );
        assert!(count < 60 || equal > 20, "{equal}");
    }
}

/// The elements of a vector come in any order, relative to an asynchronous copy's writes of single
/// elements.
#[test]
fn vectors_are_run_beside_asynchronous_operations() {
    let seen = |code: &str| {
        let text = format!(
            "name = 'Copy'\ncondition = 'P0:a == 7 && P0:b == 8'\n\
             memory = {{ x = {{ init = [0, 0], type = 'u32', space = 'shared' }}, g = {{ init = [7, 8], type = 'u32' }} }}\n\
             [[thread]]\ncta = 0\ncode = '{code}'\n"
        );
        let seen = observe(
            &read(&text),
            &options(MachineMemory::Weak, Early::None),
            Schedule::Exhaustive,
        );
        let seen = seen.expect("it runs");
        assert!(seen.complete, "{:?}", seen.reason);
        seen.outcomes
            .iter()
            .map(|o| o.state.clone())
            .collect::<BTreeSet<_>>()
    };
    let all = BTreeSet::from([vec![0, 0], vec![0, 8], vec![7, 0], vec![7, 8]]);
    assert_eq!(seen("cp.async x, g, 8; ld.weak.v2.u32 {a, b}, [x];"), all);
    let last = BTreeSet::from([vec![7, 8]]);
    assert_eq!(
        seen("cp.async x, g, 8; cp.async.wait_all; ld.weak.v2.u32 {a, b}, [x];"),
        last
    );
    // The earlier instruction shifts the indices of the later one; the copy begins in a branch.
    let code = "ld.weak.v2.u32 {c, d}, [x]; setp.eq.u32 p, c, 1; @p bra Past; cp.async x, g, 8; cp.async.wait_all; \
                Past: ld.weak.v2.u32 {a, b}, [x];";
    assert_eq!(seen(code), last);
}

/// A kernel ends when its threads' asynchronous operations are complete, and a later kernel enters
/// the async proxy at its start.
#[test]
fn kernels_end_with_their_asynchronous_operations() {
    let seen = |memory, copy: &str, stream: &str| {
        let text = format!(
            "name = 'Copy'\ndialect = 'ptx'\ncondition = 'B:r == 1'\n\
             streams = {{ n = 'non-blocking', m = 'non-blocking' }}\n\
             memory = {{ x = {{ init = [0, 0], type = 'u64' }}, s = {{ init = [1, 1], type = 'u64', space = 'shared' }} }}\n\
             [[kernel]]\nname = 'A'\ncode = \"\"\"{copy}\"\"\"\n\
             [[kernel]]\nname = 'B'\ncode = 'ld.weak.u64 r, [x];'\n\
             [[host]]\ncode = 'A<<<1, 1, 0, n>>>(); B<<<1, 1, 0, {stream}>>>();'\n"
        );
        let seen = observe(
            &read(&text),
            &options(memory, Early::None),
            Schedule::Exhaustive,
        )
        .expect("it runs");
        assert!(seen.complete, "{:?}", seen.reason);
        seen.outcomes
            .iter()
            .map(|o| o.state.clone())
            .collect::<BTreeSet<_>>()
    };
    let (old, new) = (
        BTreeSet::from([vec![0], vec![1]]),
        BTreeSet::from([vec![1]]),
    );
    let copy = "cp.async.bulk.global.shared::cta.bulk_group [x], [s], 16;";
    for memory in [MachineMemory::Sc, MachineMemory::Weak] {
        assert_eq!(seen(memory, copy, "n"), new, "{memory:?}");
        assert_eq!(seen(memory, copy, "m"), old, "{memory:?}");
    }
}

#[test]
fn chance_waits_for_groups() {
    let text = "name = 'Copy'\ncondition = 'P0:a == 7'\nmemory = { x = { init = [0, 0], space = 'shared' }, g = [7, 8] }\n\
        [[thread]]\ncta = 0\ncode = 'cp.async x, g, 8; cp.async.wait_all; ld.weak a, x'\n";
    for memory in [MachineMemory::Sc, MachineMemory::Weak] {
        let runs = Schedule::Random { runs: 100, seed: 1 };
        let seen = observe(&read(text), &options(memory, Early::None), runs).expect("it runs");
        let states: Vec<&[i64]> = seen.outcomes.iter().map(|o| o.state.as_slice()).collect();
        assert_eq!(states, [[7]], "{memory:?}");
    }
}

/// Rings and mixed programs in turn.
fn either(seed: u64) -> Source {
    if seed.is_multiple_of(2) {
        ring(seed)
    } else {
        program(seed, SHAPE)
    }
}

/// Counts over programs that both sides completed.
#[derive(Debug, Default)]
struct Coverage {
    programs: u64,
    allowed: usize,
    shown: usize,
    missing_in: u64,
    states: u64,
}

fn coverage(early: Early, seeds: std::ops::Range<u64>, source: impl Fn(u64) -> Source) -> Coverage {
    let ptx = shipped("ptx");
    let mut sum = Coverage::default();
    for seed in seeds {
        let source = source(seed);
        let test = source.read(&format!("seed-{seed}"));
        let Ok(observation) = observe(
            &test,
            &options(MachineMemory::Weak, early),
            Schedule::Exhaustive,
        ) else {
            continue;
        };
        let shown: BTreeSet<State> = operational::name(&test, &observation)
            .into_iter()
            .map(|n| n.0)
            .collect();
        let Some(allowed) = allowed(&test, &ptx) else {
            continue;
        };
        let outside: Vec<&State> = shown.difference(&allowed).collect();
        assert!(
            outside.is_empty(),
            "seed {seed}, {early}: {outside:#?}\n{}",
            source.text("Outside")
        );
        if observation.complete {
            sum.programs += 1;
            sum.allowed += allowed.len();
            sum.shown += shown.len();
            sum.missing_in += u64::from(shown.len() < allowed.len());
            sum.states += observation.states;
            if shown.len() < allowed.len() && std::env::var_os("FENCEPOST_TRACE").is_some() {
                let missing: Vec<&State> = allowed.difference(&shown).collect();
                eprintln!("seed {seed}, {early} lacks {missing:?}");
            }
        }
    }
    sum
}

#[test]
fn early_binds_stay_inside_ptx_and_cover_it() {
    let (count, first) = (programs(120), number("FENCEPOST_SEED", 1));
    for (early, least) in [
        (Early::None, 85.0),
        (Early::Local, 88.0),
        (Early::Full(1), 99.0),
    ] {
        let sum = coverage(early, first..first + count, either);
        let percent = 100.0 * sum.shown as f64 / sum.allowed.max(1) as f64;
        println!("{early}: {sum:?}: {percent:.3} %");
        assert!(
            count < 120 || percent >= least,
            "{early}: {percent} % of {sum:?}"
        );
    }
}

#[test]
fn fences_of_several_scopes_stay_inside_ptx() {
    let (count, first) = (programs(200), number("FENCEPOST_SEED", 1));
    for early in [Early::None, Early::Full(1)] {
        let sum = coverage(early, first..first + count, |seed| fenced(seed, SHAPE));
        println!("{early}: {sum:?}");
        assert!(sum.shown > 0, "{early}: nothing was shown");
    }
}

#[test]
fn early_binds_stay_inside_ptx_on_the_tests_of_the_repository() {
    let ptx = shipped("ptx");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus");
    let suite = std::env::var_os("FENCEPOST_SUITE").map(std::path::PathBuf::from);
    for path in std::iter::once(path).chain(suite) {
        let (mut shown_all, mut shown_some, mut skipped) = (0, 0, BTreeMap::<String, u64>::new());
        // The share of complete tests differs from sample to sample: a quarter of the files is enough.
        let all = files(&path, &["toml", "litmus"]).into_iter();
        for file in all.step_by(step().min(4)) {
            for test in read_path(&file).unwrap_or_default() {
                let settings = RunOptions {
                    states: 20_000,
                    ..options(MachineMemory::Weak, Early::Full(1))
                };
                match compare(&test, &ptx, &settings) {
                    Compared::Equal => shown_all += 1,
                    Compared::Skipped(why) => *skipped.entry(why).or_default() += 1,
                    Compared::Different { only_machine, .. } => {
                        assert!(
                            only_machine.is_empty(),
                            "{} {}: {only_machine:#?}",
                            file.display(),
                            test.name
                        );
                        shown_some += 1;
                    }
                }
            }
        }
        println!(
            "full:1: {}: {shown_all} equal, {shown_some} with less, skipped: {skipped:#?}",
            path.display()
        );
        assert!(shown_all > 10 * shown_some);
    }
}

#[test]
fn sc_is_inside_weak() {
    for seed in 1..40 {
        let test = either(seed).read("generated");
        let weak = shown(&test, &options(MachineMemory::Weak, Early::None));
        let sc = shown(&test, &options(MachineMemory::Sc, Early::None));
        if let (Ok((weak, true)), Ok((sc, true))) = (weak, sc) {
            assert!(sc.is_subset(&weak), "seed {seed}");
        }
    }
}

/// A rule taken out: its name, the remaining rules, early binds, and a seed that shows the
/// difference.
type Mutant = (&'static str, MemoryRules, Early, u64);

fn mutants() -> Vec<Mutant> {
    let all = MemoryRules::ALL;
    let (none, full) = (Early::None, Early::Full(1));
    vec![
        (
            "hidden",
            MemoryRules {
                hidden: false,
                ..all
            },
            none,
            5,
        ),
        (
            "never_before",
            MemoryRules {
                never_before: false,
                ..all
            },
            none,
            2095,
        ),
        (
            "after_known",
            MemoryRules {
                after_known: false,
                ..all
            },
            none,
            2,
        ),
        (
            "strong_order",
            MemoryRules {
                strong_order: false,
                ..all
            },
            none,
            2,
        ),
        (
            "atomicity",
            MemoryRules {
                atomicity: false,
                ..all
            },
            none,
            2,
        ),
        (
            "observation",
            MemoryRules {
                observation: false,
                ..all
            },
            none,
            2,
        ),
        (
            "tokens",
            MemoryRules {
                tokens: false,
                ..all
            },
            full,
            20,
        ),
        (
            "waiting",
            MemoryRules {
                waiting: false,
                ..all
            },
            full,
            6,
        ),
        (
            "synchronization",
            MemoryRules {
                synchronization: false,
                ..all
            },
            none,
            6,
        ),
        (
            "release_fence",
            MemoryRules {
                release_fence: false,
                ..all
            },
            none,
            56,
        ),
        (
            "release_write",
            MemoryRules {
                release_write: false,
                ..all
            },
            none,
            56,
        ),
        (
            "chains",
            MemoryRules {
                chains: false,
                ..all
            },
            none,
            138,
        ),
        (
            "fence_sc",
            MemoryRules {
                fence_sc: false,
                ..all
            },
            none,
            40,
        ),
        (
            "barriers",
            MemoryRules {
                barriers: false,
                ..all
            },
            none,
            844,
        ),
    ]
}

#[test]
fn scopes_and_proxies_are_needed() {
    let cases = [
        (
            // A release fence of CTA scope before a flag that another CTA reads.
            "condition = 'P1:r0 == 1 && P1:r1 == 0'\nmemory = { x = 0, f = 0 }",
            [
                "cta = 0\ncode = 'st.weak x, 1; fence.release.cta; st.relaxed.gpu f, 1'",
                "cta = 1\ncode = 'ld.relaxed.gpu r0, f; fence.acquire.gpu; ld.weak r1, x'",
            ],
            MemoryRules {
                scopes: false,
                ..MemoryRules::ALL
            },
        ),
        (
            // A reduction does not acquire.
            "condition = 'f == 2 && P1:r1 == 0'\nmemory = { x = 0, f = 0 }",
            [
                "cta = 0\ncode = 'st.weak x, 1; st.release.gpu f, 1'",
                "cta = 1\ncode = 'red.relaxed.gpu.add f, 1; fence.acquire.gpu; ld.weak r1, x'",
            ],
            MemoryRules {
                reductions: false,
                ..MemoryRules::ALL
            },
        ),
    ];
    for (head, threads, rules) in cases {
        let threads: String = threads
            .iter()
            .map(|t| format!("[[thread]]\n{t}\n"))
            .collect();
        let test = read(&format!("name = 'T'\n{head}\n{threads}"));
        let settings = options(MachineMemory::Weak, Early::None);
        let whole = shown(&test, &settings).expect("runs").0;
        let without = shown(&test, &RunOptions { rules, ..settings })
            .expect("runs")
            .0;
        let allowed = allowed(&test, &shipped("ptx")).expect("small");
        assert!(whole.is_subset(&allowed));
        // Too much synchronization loses outcomes.
        let missing = whole.difference(&without);
        assert!(missing.count() > 0, "{head}: {whole:?}");
    }
    let all = MemoryRules::ALL;
    for (file, rules) in [
        // Program order of an address through two proxies.
        (
            "05-sc-per-location/CoWW-RR.gen-sur+sur-gen.toml",
            MemoryRules {
                per_location: false,
                ..all
            },
        ),
        // The sources of a read of two cells, and the order of two writes of two cells.
        (
            "24-mixed-sizes/LL.u64.toml",
            MemoryRules {
                wholes: false,
                ..all
            },
        ),
        (
            "24-mixed-sizes/CoWW.u64.toml",
            MemoryRules {
                wholes: false,
                ..all
            },
        ),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("litmus/ptx")
            .join(file);
        let test = read_path(&path).expect("well-formed").remove(0);
        let settings = options(MachineMemory::Weak, Early::None);
        let without = shown(&test, &RunOptions { rules, ..settings })
            .expect("runs")
            .0;
        let allowed = allowed(&test, &shipped("ptx")).expect("small");
        assert!(
            shown(&test, &settings).expect("runs").0.is_subset(&allowed),
            "{file}"
        );
        assert!(
            without.difference(&allowed).count() > 0,
            "{file}: {without:?}"
        );
    }
}

/// Outcomes that a machine without a rule shows and the model forbids.
fn outside(seed: u64, rules: MemoryRules, early: Early, ptx: &Model) -> Vec<State> {
    let test = either(seed).read(&format!("seed-{seed}"));
    // The time suffices for the seeds even on a busy machine.
    let patience = Duration::from_secs(20);
    let whole = RunOptions {
        timeout: Some(patience),
        ..options(MachineMemory::Weak, early)
    };
    let (Ok((all, true)), Ok((mutated, _))) = (
        shown(&test, &whole),
        shown(&test, &RunOptions { rules, ..whole }),
    ) else {
        return Vec::new();
    };
    let new: Vec<State> = mutated.difference(&all).cloned().collect();
    if new.is_empty() {
        return new;
    }
    let Some(allowed) = allowed_within(&test, ptx, patience) else {
        return Vec::new();
    };
    new.into_iter().filter(|s| !allowed.contains(s)).collect()
}

#[test]
fn every_rule_is_needed() {
    let ptx = shipped("ptx");
    // With more programs, the search continues from the seed that is known to show it.
    let most = number("FENCEPOST_PROGRAMS", 1);
    let missed: Vec<String> = mutants()
        .into_iter()
        .filter_map(|(name, rules, early, seed)| {
            let found = (seed..seed + most).find(|&s| !outside(s, rules, early, &ptx).is_empty());
            println!("{name}: {found:?}");
            found
                .is_none()
                .then(|| format!("without `{name}` nothing forbidden shows"))
        })
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

fn read(text: &str) -> LitmusTest {
    let errors = |errors: Vec<fencepost::diag::Diagnostic>| {
        errors
            .iter()
            .map(|d| fencepost::diag::render(d, fencepost::diag::TextStyle::Plain))
            .collect::<String>()
    };
    fencepost::litmus::parse("test.toml", text.as_bytes())
        .map_err(errors)
        .unwrap_or_else(|e| panic!("{e}"))
        .remove(0)
}

/// Whether the machine shows the condition.
fn shows(condition: &str, memory: &str, threads: &[&str], early: Early) -> bool {
    let threads: String = threads
        .iter()
        .map(|t| format!("[[thread]]\n{t}\n"))
        .collect();
    let text = format!(
        "name = 'T'\ncondition = 'true'\nfilter = '{condition}'\nmemory = {{ {memory} }}\n{threads}"
    );
    let test = read(&text);
    let observation = observe(
        &test,
        &options(MachineMemory::Weak, early),
        Schedule::Exhaustive,
    )
    .expect("runs");
    assert!(observation.complete, "{:?}", observation.reason);
    !operational::name(&test, &observation).is_empty()
}

#[test]
fn classical_weak_behaviour_is_shown() {
    let sb = [
        "cta = 0\ncode = 'st.relaxed.gpu x, 1; ld.relaxed.gpu r0, y'",
        "cta = 1\ncode = 'st.relaxed.gpu y, 1; ld.relaxed.gpu r0, x'",
    ];
    assert!(shows(
        "P0:r0 == 0 && P1:r0 == 0",
        "x = 0, y = 0",
        &sb,
        Early::None
    ));
    let fenced = sb.map(|t| t.replace("; ld", "; fence.sc.gpu; ld"));
    assert!(!shows(
        "P0:r0 == 0 && P1:r0 == 0",
        "x = 0, y = 0",
        &[&fenced[0], &fenced[1]],
        Early::Full(2)
    ));
    let mp = |order: &str, scope: &str| {
        let (st, ld) = if order == "relaxed" {
            ("relaxed", "relaxed")
        } else {
            ("release", "acquire")
        };
        let threads = [
            format!("cta = 0\ncode = 'st.weak x, 1; st.{st}.{scope} f, 1'"),
            format!("cta = 1\ncode = 'ld.{ld}.{scope} r0, f; ld.weak r1, x'"),
        ];
        shows(
            "P1:r0 == 1 && P1:r1 == 0",
            "x = 0, f = 0",
            &[&threads[0], &threads[1]],
            Early::Full(2),
        )
    };
    assert!(mp("relaxed", "gpu"));
    assert!(
        mp("release", "cta"),
        "scopes that do not include each other"
    );
    assert!(!mp("release", "gpu"));
    let lb = [
        "cta = 0\ncode = 'ld.relaxed.gpu r0, x; st.relaxed.gpu y, 1'",
        "cta = 1\ncode = 'ld.relaxed.gpu r0, y; st.relaxed.gpu x, 1'",
    ];
    assert!(!shows(
        "P0:r0 == 1 && P1:r0 == 1",
        "x = 0, y = 0",
        &lb,
        Early::None
    ));
    assert!(shows(
        "P0:r0 == 1 && P1:r0 == 1",
        "x = 0, y = 0",
        &lb,
        Early::Local
    ));
    let thin = lb.map(|t| t.replace(", 1'", ", r0'"));
    assert!(!shows(
        "P0:r0 == 1 && P1:r0 == 1",
        "x = 0, y = 0",
        &[&thin[0], &thin[1]],
        Early::Full(4)
    ));
    let iriw = [
        "cta = 0\ncode = 'st.relaxed.gpu x, 1'",
        "cta = 1\ncode = 'st.relaxed.gpu y, 1'",
        "cta = 2\ncode = 'ld.acquire.gpu r0, x; ld.acquire.gpu r1, y'",
        "cta = 3\ncode = 'ld.acquire.gpu r0, y; ld.acquire.gpu r1, x'",
    ];
    let split = "P2:r0 == 1 && P2:r1 == 0 && P3:r0 == 1 && P3:r1 == 0";
    assert!(shows(split, "x = 0, y = 0", &iriw, Early::None));
    let surface = |fence: &str| {
        let thread = format!("cta = 0\ncode = 'st.weak x, 1; {fence} suld.weak r0, s'");
        shows(
            "P0:r0 == 0",
            "x = 0, s = { alias = 'x', proxy = 'surface' }",
            &[&thread],
            Early::None,
        )
    };
    assert!(surface("") && !surface("fence.proxy.surface;"));
}

#[test]
fn random_runs_repeat_and_are_inside_ptx() {
    let ptx = shipped("ptx");
    for seed in 1..30 {
        let test = either(seed).read("generated");
        for early in [Early::None, Early::Full(2)] {
            // The time limit would end some runs early, and not the same ones each time.
            let settings = RunOptions {
                timeout: None,
                ..options(MachineMemory::Weak, early)
            };
            let sample = |seed| {
                observe(&test, &settings, Schedule::Random { runs: 200, seed }).expect("runs")
            };
            let (a, b) = (sample(1), sample(1));
            let list = |o: &fencepost::simt::schedule::Observation| {
                o.outcomes
                    .iter()
                    .map(|s| (s.state.clone(), s.count, s.schedule.clone()))
                    .collect::<Vec<_>>()
            };
            assert_eq!(list(&a), list(&b), "seed {seed}");
            let Some(allowed) = allowed(&test, &ptx) else {
                continue;
            };
            for (state, _) in operational::name(&test, &a) {
                assert!(allowed.contains(&state), "seed {seed}, {early}: {state:?}");
            }
        }
    }
}

#[test]
fn recorded_runs_replay_and_are_executions_of_the_model() {
    let (ptx, sc) = (shipped("ptx"), shipped("sc"));
    let mut replayed = 0;
    for seed in 1..=programs(50) {
        // One in four has mbarrier objects, with waits.
        let test = match seed % 4 {
            0 => mbarriers::with_waits(seed, 4).read("generated"),
            _ => either(seed).with_waits(seed).read("generated"),
        };
        for (memory, early, model) in [
            (MachineMemory::Sc, Early::None, &sc),
            (MachineMemory::Weak, Early::None, &ptx),
            (MachineMemory::Weak, Early::Full(1), &ptx),
        ] {
            let settings = options(memory, early);
            let limits = Limits {
                bound: Some(6),
                timeout: settings.timeout,
            };
            let Ok(all) = observe(&test, &settings, Schedule::Exhaustive) else {
                continue;
            };
            for seen in &all.outcomes {
                let again = replay(&test, &settings, &seen.schedule).expect("fits");
                assert_eq!(again.outcomes[0].state, seen.state, "seed {seed}");
                assert!(!trace(&test, &again.events).is_empty() || again.events.is_empty());
            }
            let mut held = operational::hold(&test, model, Engine::Enumerate, limits, &[], &all);
            operational::replay(&mut held, &test, model, limits, &settings);
            assert_eq!(
                held.defect, None,
                "seed {seed}, {early}: {}",
                test.file.text
            );
            replayed += held.replayed;
        }
    }
    println!("{replayed} runs replayed through the model");
    assert!(!is_long() || replayed * step() > 500, "{replayed}");
}

#[test]
fn runs_of_waits_that_have_nothing_to_wait_for_replay() {
    for wait in WAITS {
        let text = format!(
            "name = \"W\"\ncondition = 'P1:r1 == 0'\n[memory]\nx = 0\nf = 0\n\
             [[thread]]\ncta = 0\ncode = \"st.weak x, 1; {wait}; fence.acq_rel.gpu; {wait}; st.relaxed.gpu f, 1\"\n\
             [[thread]]\ncta = 1\ncode = \"{wait}; ld.acquire.gpu r0, f; {wait}; ld.weak r1, x\"\n"
        );
        let test = read(&text);
        for (memory, model) in [
            (MachineMemory::Sc, shipped("sc")),
            (MachineMemory::Weak, shipped("ptx")),
        ] {
            let settings = options(memory, Early::None);
            let limits = Limits {
                bound: Some(6),
                timeout: settings.timeout,
            };
            let all = observe(&test, &settings, Schedule::Exhaustive).expect("it runs");
            let mut held = operational::hold(&test, &model, Engine::Enumerate, limits, &[], &all);
            operational::replay(&mut held, &test, &model, limits, &settings);
            assert_eq!((held.defect, held.left_out), (None, None), "{wait}");
            assert_eq!(held.replayed, all.outcomes.len(), "{wait}");
        }
    }
}

#[test]
fn fences_of_threads_that_are_not_in_each_others_scope_are_not_ordered() {
    let fences = |cta: u32, first: &str, second: &str| {
        format!("[[thread]]\ncta = {cta}\ncode = \"{first}; fence.sc.cta; {second}\"\n")
    };
    let text = String::from("name = \"MP\"\ncondition = 'P1:r2 == 0'\n[memory]\nx = 0\nf = 0\n")
        + &fences(0, "st.weak x, 1", "st.relaxed.gpu f, 1")
        + &fences(1, "ld.relaxed.gpu r1, f", "ld.weak r2, x");
    let test = read(&text);
    let settings = options(MachineMemory::Weak, Early::None);
    let limits = Limits {
        bound: Some(6),
        timeout: settings.timeout,
    };
    // Every run, not only one for each outcome: in some the writer's fence is committed first.
    for seed in 0..200 {
        let one = observe(&test, &settings, Schedule::Random { runs: 1, seed }).expect("it runs");
        let mut held =
            operational::hold(&test, &shipped("ptx"), Engine::Enumerate, limits, &[], &one);
        operational::replay(&mut held, &test, &shipped("ptx"), limits, &settings);
        assert_eq!(held.defect, None, "seed {seed}");
    }
}

#[test]
fn runs_that_end_at_a_limit_replay() {
    let lock = "LOOP: atom.relaxed.gpu.exch r0, l, 1; bne r0, 0, LOOP; ld.weak r1, x; add r1, r1, 1; st.weak x, r1; st.relaxed.gpu l, 0";
    let text = format!(
        "name = \"lock\"\ncondition = \"x != 2\"\n[memory]\nx = 0\nl = 0\n[[thread]]\ncta = 0\ncode = \"{lock}\"\n[[thread]]\ncta = 1\ncode = \"{lock}\"\n"
    );
    let test = read(&text);
    let settings = options(MachineMemory::Weak, Early::Full(1));
    let all =
        observe(&test, &settings, Schedule::Exhaustive).expect("what was observed is reported");
    assert!(!all.complete && !all.stops.is_empty());
    for stop in &all.stops {
        let again = replay(&test, &settings, &stop.schedule).expect("it fits");
        assert_eq!(again.stops.len(), 1, "{:?}", stop.why);
    }
}

#[test]
fn a_schedule_of_another_test_is_rejected() {
    let (a, b) = (either(2).read("a"), either(4).read("b"));
    let settings = options(MachineMemory::Weak, Early::None);
    let all = observe(&a, &settings, Schedule::Exhaustive).expect("runs");
    let why = replay(&b, &settings, &all.outcomes[0].schedule).expect_err("another program");
    assert!(why.contains("does not fit"), "{why}");
    assert_ne!(identity(&a), identity(&b));
    assert_eq!(identity(&a), identity(&either(2).read("another name")));
}

#[test]
fn hangs_are_told() {
    let ended = |threads: &[&str]| {
        let threads: String = threads
            .iter()
            .map(|t| format!("[[thread]]\ncta = 0\n{t}\n"))
            .collect();
        let test = read(&format!(
            "name = 'T'\ncondition = 'x == 0'\nmemory = {{ x = 0 }}\n{threads}"
        ));
        let observation = observe(
            &test,
            &options(MachineMemory::Weak, Early::None),
            Schedule::Exhaustive,
        )
        .expect("runs");
        assert!(observation.complete, "{:?}", observation.reason);
        observation.ended
    };
    let waits = "code = 'bar.sync 0, 2'";
    assert!(ended(&[waits]).by(StopKind::Deadlock) > 0);
    assert_eq!(ended(&[waits, waits]).by(StopKind::Deadlock), 0);
    let spins = "code = 'L: ld.relaxed.gpu r0, x; beq r0, 0, L'";
    assert!(ended(&[spins]).by(StopKind::Livelock) > 0);
    let both = ended(&[spins, "code = 'st.relaxed.gpu x, 1'"]);
    assert!(
        both.by(StopKind::Livelock) == 0 && both.finished > 0,
        "{both:?}"
    );
}

#[test]
fn runs_that_time_does_not_suffice_for_are_not_called_judged() {
    let test = read(
        "name = 'T'\ncondition = 'x == 0'\nmemory = { x = 0 }\n[[thread]]\ncode = 'st.weak x, 1'\n",
    );
    let judged = |timeout| {
        let options = RunOptions {
            races: true,
            timeout,
            ..options(MachineMemory::Weak, Early::None)
        };
        let observation =
            observe(&test, &options, Schedule::Random { runs: 1, seed: 0 }).expect("runs");
        (observation.judged, observation.not_judged.is_some())
    };
    assert_eq!(judged(None), (1, false));
    assert_eq!(judged(Some(Duration::ZERO)), (0, true));
}

/// One atomic alone can follow another. A run that draws what an atomic reads has no other choice
/// left, however many threads add to one word.
#[test]
fn atomics_of_one_word_follow_each_other_at_once() {
    let test = read(
        "name = 'T'\ncondition = 'x == 100'\nmemory = { x = { type = 'u32' } }\n[kernel]\n\
         block = 100\ncode = 'red.relaxed.gpu.add.u32 x, 1'\n",
    );
    let options = RunOptions {
        timeout: Some(Duration::from_secs(20)),
        ..options(MachineMemory::Weak, Early::None)
    };
    let seen = observe(&test, &options, Schedule::Random { runs: 1, seed: 3 }).expect("runs");
    assert_eq!((seen.ended.finished, seen.steps), (1, 100));
}
