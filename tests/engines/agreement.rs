//! Compares the engines with each other, and checks changes of tests that must have no effect or
//! must only forbid.
//!
//! For random programs, the whole outcome sets of all engines are compared, under every shipped
//! model. Permuting threads and renaming changes nothing; stronger orders, wider scopes and further
//! fences allow nothing new under `ptx`.
//!
//! `testkit::suite` sets the number of random programs, `FENCEPOST_SEED` the first seed,
//! `FENCEPOST_TIMEOUT_MS` the time for one query; programs that take longer are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::{Atom, ConditionTerm, LitmusTest, Observable, Prop};
use fencepost::model::Model;
use fencepost::program::{BinOp, CmpOp, RegId, ThreadId, Ty};
use fencepost::verdict::{Outcomes, Reason};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use testkit::generate::{Shape, Source, ThreadSource, fenced, program};
use testkit::mbarriers;
use testkit::suite::{number, programs, shipped};

const SHAPE: Shape = Shape {
    threads: 4,
    instructions: 5,
};
/// Smaller programs, for tests that compute whole sets many times.
const SMALL: Shape = Shape {
    threads: 3,
    instructions: 4,
};

fn outcomes(test: &LitmusTest, model: &Model, engine: Engine) -> Outcomes {
    let limits = Limits {
        bound: Some(2),
        timeout: Some(Duration::from_millis(number("FENCEPOST_TIMEOUT_MS", 300))),
    };
    Session::new(test, model, engine, limits, &[]).outcomes()
}

fn name(source: &Source) -> LitmusTest {
    source.read("generated")
}

#[test]
fn engines_agree() {
    outcomes_agree(60, |seed| program(seed, SHAPE));
}

/// Several fences of different scopes in one thread: orders of fences that hold only for some of
/// them.
#[test]
fn engines_agree_on_scoped_fences() {
    outcomes_agree(200, |seed| fenced(seed, SMALL));
}

/// Checks that all engines have the same outcomes, for random programs under every model of PTX.
fn outcomes_agree(all: u64, program: impl Fn(u64) -> Source) {
    let models: Vec<Model> = ["ptx", "ptx-v6.0", "ptx-v7.5", "sc"]
        .into_iter()
        .map(shipped)
        .collect();
    let (count, first) = (programs(all), number("FENCEPOST_SEED", 1));
    let mut incomplete: BTreeMap<String, u64> = BTreeMap::new();
    for seed in first..first + count {
        let source = program(seed);
        if std::env::var_os("FENCEPOST_TRACE").is_some() {
            // The last printed seed is the one that does not end.
            eprintln!("seed {seed}");
        }
        let test = name(&source);
        for model in &models {
            let result = outcomes(&test, model, Engine::Both);
            if result.defect.is_some() {
                let small =
                    source.shrink(|s| outcomes(&name(s), model, Engine::Both).defect.is_some());
                let law = outcomes(&name(&small), model, Engine::Both)
                    .defect
                    .unwrap_or_default();
                panic!(
                    "seed {seed}, {}: {law}\n{}",
                    model.name,
                    small.text(&format!("Seed-{seed}"))
                );
            }
            if !result.complete {
                let why = result
                    .reason
                    .map_or(String::new(), |reason| reason.to_string());
                *incomplete
                    .entry(why.split([':', '`']).next().unwrap_or_default().to_owned())
                    .or_default() += 1;
            }
        }
    }
    println!("{count} programs; not complete: {incomplete:?}");
    // The number of timeouts depends on the machine, so it is shown and not judged.
    incomplete.remove("out of time");
    assert!(
        incomplete.values().sum::<u64>() <= count,
        "too many are incomplete: {incomplete:?}"
    );
}

/// The SAT engine searches only one order of threads that are alike; the others search all.
#[test]
fn engines_agree_on_threads_that_are_alike() {
    let models = [shipped("ptx"), shipped("sc")];
    let (count, first) = (programs(60), number("FENCEPOST_SEED", 1));
    let (mut complete, mut listed, mut asked) = (0, 0, 0);
    for seed in first..first + count {
        let mut source = program(seed, SMALL);
        source.threads.truncate(2);
        // Copies of a thread, some of them in another place.
        let copied = source.threads[seed as usize % source.threads.len()].clone();
        let copies: Vec<usize> = (source.threads.len()..4).collect();
        for &at in &copies {
            let apart = [seed / 2 % 3, seed / 6 % 3][at % 2] as usize;
            let cta = [copied.cta, source.threads[0].cta, 10 + at as u32][apart];
            source.threads.push(ThreadSource {
                name: format!("C{at}"),
                cta,
                ..copied.clone()
            });
        }
        let test = name(&source);
        for model in &models {
            let result = outcomes(&test, model, Engine::Both);
            if let Some(law) = result.defect {
                panic!(
                    "seed {seed}, {}: {law}\n{}",
                    model.name,
                    source.text(&format!("Seed-{seed}"))
                );
            }
            complete += u64::from(result.complete);
            // Rejected candidates are also listed in every order, as by Z3, which searches all
            // orders.
            let rows = |engine| {
                let list = outcomes(&test, model, engine);
                let rows = list
                    .outcomes
                    .into_iter()
                    .map(|row| (row.state, row.allowed))
                    .collect::<Vec<_>>();
                list.complete.then_some(rows)
            };
            if let (Some(one_way), Some(each_way)) = (rows(Engine::Sat), rows(Engine::Symbolic)) {
                assert_eq!(one_way, each_way, "seed {seed}, {}", model.name);
                listed += 1;
            }
            // Conditions about all copies alike, and about some of them.
            let registers = test.program.threads[copies[0]].regs.len();
            for value in 0..3 {
                let holds = |at: &usize| {
                    let reg = RegId((seed as usize % registers.max(1)) as u16);
                    let observable = Observable::Reg(ThreadId(*at as u16), reg);
                    Prop::Cmp(
                        CmpOp::Eq,
                        Ty::WORD,
                        Atom::Observable(observable).into(),
                        Atom::Const(value).into(),
                    )
                };
                let all: Vec<Prop> = copies.iter().map(holds).collect();
                let one = Prop::And(vec![
                    all[0].clone(),
                    Prop::Not(Box::new(all[all.len() - 1].clone())),
                ]);
                let reg = RegId((seed as usize % registers.max(1)) as u16);
                let each = copies.iter().map(|at| {
                    ConditionTerm::from(Atom::Observable(Observable::Reg(
                        ThreadId(*at as u16),
                        reg,
                    )))
                });
                let by = [BinOp::Add, BinOp::Sub, BinOp::Mul][seed as usize % 3];
                let computed = each
                    .reduce(|a, b| ConditionTerm::Of(by, a.into(), b.into()))
                    .expect("there are copies");
                let is = [CmpOp::Eq, CmpOp::Le][seed as usize / 3 % 2];
                let summed = Prop::Cmp(is, Ty::WORD, computed, Atom::Const(value + 1).into());
                for condition in [Prop::And(all.clone()), Prop::Or(all), one, summed] {
                    if registers == 0 {
                        continue;
                    }
                    let asking = LitmusTest {
                        condition: Some(condition),
                        ..test.clone()
                    };
                    let limits = Limits {
                        bound: Some(2),
                        timeout: Some(Duration::from_millis(300)),
                    };
                    let mut session = Session::new(&asking, model, Engine::Both, limits, &[]);
                    let answer = session.reachability(None, false);
                    assert_eq!(
                        answer.defect, None,
                        "seed {seed}, {}: {:?}",
                        model.name, asking.condition
                    );
                    asked += u64::from(answer.verdict.reason().is_none());
                }
            }
        }
    }
    println!(
        "{count} programs, {complete} complete sets of outcomes, {listed} listed twice, {asked} questions answered"
    );
    let z3 = cfg!(feature = "z3");
    assert!(
        complete * 2 > count && (listed > 0 || !z3) && asked > count,
        "too few: {complete}, {listed}, {asked}"
    );
}

#[test]
fn engines_agree_on_mbarriers() {
    agree(mbarriers::program);
}

#[test]
fn engines_agree_on_asynchronous_copies() {
    agree(mbarriers::with_copies);
}

#[test]
fn engines_agree_on_asynchronous_operations() {
    agree(mbarriers::with_operations);
}

fn agree(make: fn(u64, usize) -> mbarriers::Source) {
    let models = [shipped("ptx"), shipped("sc")];
    let (count, first) = (programs(60), number("FENCEPOST_SEED", 1));
    let (mut complete, mut late) = (0, 0);
    for seed in first..first + count {
        let source = make(seed, 4);
        let decide = |s: &mbarriers::Source, model: &Model| {
            outcomes(&s.read("generated"), model, Engine::Both)
        };
        for model in &models {
            let result = decide(&source, model);
            complete += u64::from(result.complete);
            late += u64::from(result.reason == Some(Reason::Time));
            if result.defect.is_some() {
                let small = source.shrink(|s| decide(s, model).defect.is_some());
                let law = decide(&small, model).defect.unwrap_or_default();
                panic!(
                    "seed {seed}, {}: {law}\n{}",
                    model.name,
                    small.text(&format!("Seed-{seed}"))
                );
            }
        }
    }
    println!("{count} programs, {complete} complete sets of outcomes, {late} out of time");
    // How many run out of time depends on the machine, so these are not held against the engines.
    assert!(
        (complete + late) * 2 > count,
        "too few are complete: {complete}"
    );
    assert!(complete > 0, "none is complete");
}

/// States, with names sorted and changed, and whether each is racy; `None` if the list is not
/// complete.
type States = BTreeMap<Vec<(String, String)>, (bool, bool)>;

fn states(source: &Source, model: &Model, names: &BTreeMap<String, String>) -> Option<States> {
    let result = outcomes(&name(source), model, Engine::Auto);
    assert_eq!(result.defect, None);
    let rename = |n: &str| names.get(n).map_or(n, String::as_str).to_owned();
    result.complete.then(|| {
        let sorted = result.outcomes.into_iter().map(|o| {
            let mut state: Vec<_> = o
                .state
                .into_iter()
                .map(|(n, v)| (rename(&n), v.to_string()))
                .collect();
            state.sort();
            (state, (o.allowed, o.racy))
        });
        sorted.collect()
    })
}

#[test]
fn order_of_threads_and_names_mean_nothing() {
    let (count, first) = (programs(40), number("FENCEPOST_SEED", 1));
    let same = BTreeMap::new();
    for model in [shipped("ptx"), shipped("sc")] {
        for seed in first..first + count {
            let source = program(seed, SMALL);
            let mut rng = Pcg64Mcg::seed_from_u64(seed);
            let permuted = source.permuted(&mut rng);
            let (renamed, names) = source.renamed();
            let Some(expected) = states(&source, &model, &same) else {
                continue;
            };
            // Any of them may run out of time.
            if let Some(found) = states(&permuted, &model, &same) {
                assert_eq!(
                    found,
                    expected,
                    "{}\n{}",
                    source.text("A"),
                    permuted.text("B")
                );
            }
            let expected = states(&source, &model, &names);
            if let (Some(found), Some(expected)) = (states(&renamed, &model, &same), expected) {
                assert_eq!(
                    found,
                    expected,
                    "{}\n{}",
                    source.text("A"),
                    renamed.text("B")
                );
            }
        }
    }
}

#[test]
fn strengthening_allows_nothing_new() {
    let model = shipped("ptx");
    let same = BTreeMap::new();
    let (count, first) = (programs(200), number("FENCEPOST_SEED", 1));
    let allowed = |source: &Source| {
        let states = states(source, &model, &same)?;
        Some(
            states
                .into_iter()
                .filter(|s| s.1.0)
                .map(|s| s.0)
                .collect::<BTreeSet<_>>(),
        )
    };
    for seed in first..first + count {
        let source = program(seed, SMALL);
        let (stronger, change) = source.strengthened(&mut Pcg64Mcg::seed_from_u64(seed));
        let (Some(before), Some(after)) = (allowed(&source), allowed(&stronger)) else {
            continue;
        };
        let new: Vec<_> = after.difference(&before).collect();
        assert!(
            new.is_empty(),
            "seed {seed}: {change}\nallows {new:#?}\n{}",
            source.text("Before")
        );
    }
}
