//! Host programs whose kernels are in PTX.
//!
//! - On random programs whose kernels are given in CUDA C++ and in PTX: the model `ptx` has the same outcomes of the program
//!   in PTX and of the whole of the other one mapped, the same race, the same end. Both ways use the mapping; but one reads PTX.
//! - On these and on random programs with proxies and aliases: the executor shows just what `ptx` allows where reads are not
//!   ahead of writes. It knows what ends and starts of kernels hand on; the model knows the launch graph.
//!
//! `FENCEPOST_PROGRAMS` sets the number of random programs, `FENCEPOST_SEED` the first seed.

mod common;

use std::collections::BTreeSet;
use std::time::Duration;

use common::in_ptx::program;
use common::suite::number;
use fencepost::check::liveness::{Liveness, ProgressModel, Setting};
use fencepost::check::{Engine, Limits, Session, operational};
use fencepost::diag::SourceFile;
use fencepost::litmus::LitmusTest;
use fencepost::model::{Library, Model, Shipped, load, load_shipped};
use fencepost::program::Dialect;
use fencepost::program::mapping::Mapping;
use fencepost::simt::{Early, MachineMemory, Options, Rules, Schedule, observe};
use fencepost::skeleton::signature::signature;
use fencepost::verdict::{State, Verdict};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

fn limits() -> Limits {
    Limits { bound: 4, timeout: Some(Duration::from_secs(1)) }
}

fn ptx() -> Model {
    load_shipped("ptx", &signature()).expect("shipped").expect("valid")
}

/// The model, of a machine that takes every step in its order.
fn in_order() -> Model {
    let text = &Library::model("ptx").expect("shipped").text;
    let text = format!("{text}\nacyclic po | rf | sc | syncbar | exitbar | launch | call-order as In-Order\n");
    load(SourceFile::new("in-order.cat", text), "in-order", &Shipped, &signature(), None).expect("valid")
}

/// What a model allows; `None` if it did not get to an end.
fn allowed(test: &LitmusTest, model: &Model) -> Option<BTreeSet<State>> {
    let outcomes = Session::new(test, model, Engine::Auto, limits(), &[]).outcomes();
    assert_eq!(outcomes.defect, None, "{}", test.file.text);
    outcomes.complete.then(|| outcomes.outcomes.into_iter().filter(|o| o.allowed).map(|o| o.state).collect())
}

fn race(test: &LitmusTest, model: &Model) -> Verdict {
    Session::new(test, model, Engine::Auto, limits(), &[]).race().expect("it speaks of races").verdict
}

fn end(test: &LitmusTest, model: &Model) -> Verdict {
    let setting = Setting::new(test, model);
    Liveness::new(&setting, Engine::Auto, limits(), &[]).ask(ProgressModel::Fair).verdict
}

/// What runs show, if these are all there are.
fn shown(test: &LitmusTest, rules: Rules) -> Option<BTreeSet<State>> {
    let options =
        Options { memory: MachineMemory::Weak, early: Early::None, rules, states: 50_000, ..Options::default() };
    let seen = observe(test, &options, Schedule::Exhaustive).unwrap_or_else(|e| panic!("{e}\n{}", test.file.text));
    seen.complete.then(|| operational::name(test, &seen).into_iter().map(|n| n.0).collect())
}

#[test]
fn kernels_in_ptx_are_what_those_in_cuda_are_mapped_to() {
    let (programs, first) = (number("FENCEPOST_PROGRAMS", 60), number("FENCEPOST_SEED", 1));
    let (model, mapping) = (ptx(), Mapping::current(Dialect::Cuda).expect("there is one"));
    let (mut compared, mut outcomes, mut racy) = (0, 0, 0);
    for seed in first..first + programs {
        let pair = program(&mut Pcg64Mcg::seed_from_u64(seed), false);
        let (own, mapped) = (pair.in_ptx(), pair.in_cuda().via(mapping).expect("all of it maps"));
        let (Some(a), Some(b)) = (allowed(&own, &model), allowed(&mapped, &model)) else { continue };
        assert_eq!(a, b, "seed {seed}\n{}", own.file.text);
        assert_eq!(race(&own, &model), race(&mapped, &model), "seed {seed}\n{}", own.file.text);
        assert_eq!(end(&own, &model), end(&mapped, &model), "seed {seed}\n{}", own.file.text);
        compared += 1;
        outcomes += a.len();
        racy += u64::from(race(&own, &model) == Verdict::Racy);
    }
    println!("{compared} of {programs} programs compared: {outcomes} outcomes, {racy} racy");
    assert!(compared * 10 > programs * 8 && racy > 0 && racy < compared);
}

fn runs(proxies: bool, count: u64) {
    let (programs, first) = (number("FENCEPOST_PROGRAMS", count), number("FENCEPOST_SEED", 1));
    let (model, in_order) = (ptx(), in_order());
    let (mut equal, mut outcomes, mut weak) = (0, 0, 0);
    for seed in first..first + programs {
        let test = program(&mut Pcg64Mcg::seed_from_u64(seed), proxies).in_ptx();
        let (Some(seen), Some(all)) = (shown(&test, Rules::ALL), allowed(&test, &in_order)) else { continue };
        assert_eq!(seen, all, "seed {seed}\n{}", test.file.text);
        let Some(most) = allowed(&test, &model) else { continue };
        assert!(seen.is_subset(&most), "seed {seed}\n{}", test.file.text);
        equal += 1;
        outcomes += seen.len();
        let rules = Rules { kernels: false, ..Rules::ALL };
        weak += u64::from(shown(&test, rules).is_some_and(|without| !without.is_subset(&most)));
    }
    println!(
        "{equal} of {programs} programs compared: {outcomes} outcomes; {weak} need that kernels cross proxies"
    );
    assert!(equal * 10 > programs * 8);
    assert_eq!(weak > 0, proxies, "kernels cross proxies where there are some");
}

#[test]
fn runs_show_what_the_model_allows() {
    runs(false, 60);
}

#[test]
fn runs_cross_proxies_where_the_model_does() {
    runs(true, 60);
}
