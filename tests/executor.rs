//! The executor against the models, on random programs and on the tests of the repository.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use common::generate::{Shape, Source, program};
use common::rings::ring;
use common::suite::{files, number};
use fencepost::check::{Engine, Limits, Session, operational};
use fencepost::litmus::{LitmusTest, read_path};
use fencepost::model::{Model, load_shipped};
use fencepost::simt::{Early, MemoryKind, Options, Rules, Schedule, observe};
use fencepost::skeleton::signature::signature;
use fencepost::verdict::State;

const SHAPE: Shape = Shape { threads: 3, instructions: 4 };

fn model(name: &str) -> Model {
    load_shipped(name, &signature()).expect("shipped").expect("valid")
}

/// What a model allows; `None` if that is not known within the time.
fn allowed(test: &LitmusTest, model: &Model) -> Option<BTreeSet<State>> {
    let limits = Limits { bound: 6, timeout: Some(Duration::from_millis(number("FENCEPOST_TIMEOUT_MS", 500))) };
    let outcomes = Session::new(test, model, Engine::Auto, limits, &[]).outcomes();
    assert_eq!(outcomes.defect, None, "{}", test.file.text);
    outcomes.complete.then(|| outcomes.outcomes.into_iter().filter(|o| o.allowed).map(|o| o.state).collect())
}

/// What the machine shows; the second says whether that is all that it can show.
fn shown(test: &LitmusTest, options: &Options) -> Result<(BTreeSet<State>, bool), String> {
    let observation = observe(test, options, Schedule::Exhaustive)?;
    let named = operational::name(test, &observation);
    Ok((named.into_iter().map(|n| n.0).collect(), observation.complete))
}

/// A comparison of whole sets.
#[derive(Debug, PartialEq)]
enum Compared {
    Equal,
    Skipped(String),
    Different { only_model: BTreeSet<State>, only_machine: BTreeSet<State> },
}

fn compare(test: &LitmusTest, model: &Model, options: &Options) -> Compared {
    let (machine, complete) = match shown(test, options) {
        Ok(shown) => shown,
        Err(why) => return Compared::Skipped(why.split('(').next().unwrap_or_default().to_owned()),
    };
    let Some(expected) = allowed(test, model) else { return Compared::Skipped("model: not complete".into()) };
    let only_machine: BTreeSet<State> = machine.difference(&expected).cloned().collect();
    if only_machine.is_empty() && !complete {
        return Compared::Skipped("machine: not complete".into());
    }
    let only_model: BTreeSet<State> = expected.difference(&machine).cloned().collect();
    if only_machine.is_empty() && only_model.is_empty() {
        return Compared::Equal;
    }
    Compared::Different { only_model, only_machine }
}

fn options(memory: MemoryKind, early: Early) -> Options {
    let timeout = Some(Duration::from_millis(number("FENCEPOST_TIMEOUT_MS", 500)));
    Options { memory, early, states: 200_000, timeout, ..Options::default() }
}

fn random(count: u64, what: &str, compare: impl Fn(&LitmusTest) -> Compared) {
    let (count, first) = (number("FENCEPOST_PROGRAMS", count), number("FENCEPOST_SEED", 1));
    let mut skipped = BTreeMap::<String, u64>::new();
    for seed in first..first + count {
        let source: Source = program(seed, SHAPE);
        match compare(&source.read(&format!("seed-{seed}"))) {
            Compared::Equal => {}
            Compared::Skipped(why) => *skipped.entry(why).or_default() += 1,
            Compared::Different { .. } => {
                let fails = |s: &Source| matches!(compare(&s.read("smaller")), Compared::Different { .. });
                let small = source.shrink(fails);
                panic!("seed {seed}: {:#?}\n{}", compare(&small.read("smaller")), small.text("Smaller"));
            }
        }
    }
    println!("{what}: {count} programs; skipped: {skipped:?}");
}

#[test]
fn sc_is_the_model_sc_on_random_programs() {
    let sc = model("sc");
    random(60, "sc", |test| compare(test, &sc, &options(MemoryKind::Sc, Early::None)));
}

fn folder(path: &Path, what: &str, compare: impl Fn(&LitmusTest) -> Compared) {
    let (mut equal, mut skipped, mut different) = (0, BTreeMap::<String, u64>::new(), Vec::new());
    for file in files(path, &["toml", "litmus"]) {
        for test in read_path(&file).unwrap_or_default() {
            match compare(&test) {
                Compared::Equal => equal += 1,
                Compared::Skipped(why) => *skipped.entry(why).or_default() += 1,
                other => different.push(format!("{} {}: {other:#?}", file.display(), test.name)),
            }
        }
    }
    println!("{what}: {}: {equal} equal, skipped: {skipped:#?}", path.display());
    assert!(different.is_empty(), "{} differ\n{}", different.len(), different.join("\n"));
}

#[test]
fn sc_is_the_model_sc_on_the_tests_of_the_repository() {
    let sc = model("sc");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus");
    folder(&path, "sc", |test| compare(test, &sc, &options(MemoryKind::Sc, Early::None)));
}

/// `ptx` with early binds ruled out: nothing is read before it is written, in one order of everything.
fn in_order() -> Model {
    let ptx = fencepost::model::Library::model("ptx").expect("shipped");
    let text = format!("{}\nacyclic po | rf | sc | syncbar | exitbar as In-Order\n", ptx.text);
    let file = fencepost::diag::SourceFile::new("in-order.cat", text);
    fencepost::model::load(file, "in-order", &fencepost::model::Shipped, &signature(), None).expect("valid")
}

#[test]
fn without_early_binds_weak_is_ptx_in_order() {
    let model = in_order();
    random(60, "none", |test| compare(test, &model, &options(MemoryKind::Weak, Early::None)));
}

#[test]
fn weak_in_order_on_the_tests_of_the_repository() {
    let model = in_order();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus");
    folder(&path, "none", |test| compare(test, &model, &options(MemoryKind::Weak, Early::None)));
}

/// Rings and mixed programs in turn.
fn either(seed: u64) -> Source {
    if seed % 2 == 0 { ring(seed) } else { program(seed, SHAPE) }
}

/// Counts over programs on which both sides are complete.
#[derive(Debug, Default)]
struct Coverage {
    programs: u64,
    allowed: usize,
    shown: usize,
    missing_in: u64,
    states: u64,
}

fn coverage(early: Early, seeds: std::ops::Range<u64>, source: impl Fn(u64) -> Source) -> Coverage {
    let ptx = model("ptx");
    let mut sum = Coverage::default();
    for seed in seeds {
        let source = source(seed);
        let test = source.read(&format!("seed-{seed}"));
        let Ok(observation) = observe(&test, &options(MemoryKind::Weak, early), Schedule::Exhaustive) else {
            continue;
        };
        let shown: BTreeSet<State> = operational::name(&test, &observation).into_iter().map(|n| n.0).collect();
        let Some(allowed) = allowed(&test, &ptx) else { continue };
        let outside: Vec<&State> = shown.difference(&allowed).collect();
        assert!(outside.is_empty(), "seed {seed}, {early}: {outside:#?}\n{}", source.text("Outside"));
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
    let (count, first) = (number("FENCEPOST_PROGRAMS", 120), number("FENCEPOST_SEED", 1));
    for (early, least) in [(Early::None, 85.0), (Early::Local, 88.0), (Early::Full(1), 99.0)] {
        let sum = coverage(early, first..first + count, either);
        let percent = 100.0 * sum.shown as f64 / sum.allowed.max(1) as f64;
        println!("{early}: {sum:?}: {percent:.3} %");
        assert!(percent >= least, "{early}: {percent} % of {sum:?}");
    }
}

#[test]
fn sc_is_inside_weak() {
    for seed in 1..40 {
        let test = either(seed).read("generated");
        let weak = shown(&test, &options(MemoryKind::Weak, Early::None));
        let sc = shown(&test, &options(MemoryKind::Sc, Early::None));
        if let (Ok((weak, true)), Ok((sc, true))) = (weak, sc) {
            assert!(sc.is_subset(&weak), "seed {seed}");
        }
    }
}

/// A rule taken out: its name, what is left, early binds, and a seed that shows the difference.
type Mutant = (&'static str, Rules, Early, u64);

fn mutants() -> Vec<Mutant> {
    let all = Rules::ALL;
    let (none, full) = (Early::None, Early::Full(1));
    vec![
        ("hidden", Rules { hidden: false, ..all }, none, 1),
        ("never_before", Rules { never_before: false, ..all }, none, 1),
        ("after_known", Rules { after_known: false, ..all }, none, 1),
        ("strong_order", Rules { strong_order: false, ..all }, none, 1),
        ("atomicity", Rules { atomicity: false, ..all }, none, 1),
        ("observation", Rules { observation: false, ..all }, none, 1),
        ("tokens", Rules { tokens: false, ..all }, full, 1),
        ("waiting", Rules { waiting: false, ..all }, full, 1),
        ("synchronization", Rules { synchronization: false, ..all }, none, 1),
        ("release_fence", Rules { release_fence: false, ..all }, none, 1),
        ("release_write", Rules { release_write: false, ..all }, none, 1),
        ("chains", Rules { chains: false, ..all }, none, 1),
        ("fence_sc", Rules { fence_sc: false, ..all }, none, 1),
        ("barriers", Rules { barriers: false, ..all }, none, 1),
    ]
}

/// Outcomes that a machine without a rule shows and the model forbids.
fn outside(seed: u64, rules: Rules, early: Early, ptx: &Model) -> Vec<State> {
    let test = either(seed).read(&format!("seed-{seed}"));
    let whole = options(MemoryKind::Weak, early);
    let (Ok((all, true)), Ok((mutated, _))) = (shown(&test, &whole), shown(&test, &Options { rules, ..whole }))
    else {
        return Vec::new();
    };
    let new: Vec<State> = mutated.difference(&all).cloned().collect();
    if new.is_empty() {
        return new;
    }
    let Some(allowed) = allowed(&test, ptx) else { return Vec::new() };
    new.into_iter().filter(|s| !allowed.contains(s)).collect()
}

#[test]
fn every_rule_is_needed() {
    let ptx = model("ptx");
    let most = number("FENCEPOST_PROGRAMS", 40);
    let missed: Vec<String> = mutants()
        .into_iter()
        .filter_map(|(name, rules, early, seed)| {
            let found = (seed..seed + most).find(|&s| !outside(s, rules, early, &ptx).is_empty());
            println!("{name}: {found:?}");
            found.is_none().then(|| format!("without `{name}` nothing forbidden shows"))
        })
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
}
