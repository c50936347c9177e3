//! How long it takes to read a test, to build its skeleton, and to answer one question, by engine; and the whole folder
//! of tests with each engine.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::{self, LitmusTest};
use fencepost::model::{self, Model};
use fencepost::skeleton::signature::signature;
use fencepost::skeleton::{Options, Skeleton};

/// Message passing, four threads, the first cell of a table, and a barrier.
const FILES: &[&str] = &[
    "litmus/ptx/06-causality/MP+rel.gpu+acq.gpu.toml",
    "litmus/ptx/02-fence-sc/IRIW+fence.sc.gpu.toml",
    "litmus/idioms/ptx/B01.toml",
    "litmus/barriers/counted.toml",
];

/// Of every so many tests in the folder, one is asked about when the whole folder is.
const STRIDE: usize = 8;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn engines() -> Vec<(&'static str, Engine)> {
    let mut engines = vec![("enumerate", Engine::Enumerate)];
    if cfg!(feature = "z3") {
        engines.push(("symbolic", Engine::Symbolic));
    }
    engines
}

fn ptx() -> Model {
    model::load_shipped("ptx", &signature()).expect("shipped").expect("a shipped model is sound")
}

fn ask(test: &LitmusTest, model: &Model, engine: Engine) -> String {
    let answer = Session::new(test, model, engine, Limits::default(), &[]).reachability(None, false);
    format!("{:?}", answer.verdict)
}

/// All test files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            out.extend(files(&path));
        } else if path.extension().is_some_and(|e| e == "toml") {
            out.push(path);
        }
    }
    out
}

fn one_by_one(c: &mut Criterion) {
    let model = ptx();
    for file in FILES {
        let Ok(bytes) = std::fs::read(root().join(file)) else { panic!("{file} is gone") };
        let tests = litmus::parse(file, &bytes).expect("a shipped test is sound");
        let test = &tests[0];
        let mut group = c.benchmark_group(&test.name);
        group.bench_function("parse", |b| b.iter(|| litmus::parse(file, black_box(&bytes)).map(|t| t.len())));
        group.bench_function("skeleton", |b| {
            b.iter(|| Skeleton::build(black_box(test), Options::default(), 4).map(|s| s.len()))
        });
        for (name, engine) in engines() {
            group.bench_function(name, |b| b.iter(|| ask(black_box(test), &model, engine)));
        }
        group.finish();
    }
}

fn folder(c: &mut Criterion) {
    let model = ptx();
    let files = files(&root().join("litmus"));
    let tests: Vec<LitmusTest> = files
        .iter()
        .flat_map(|file| litmus::read_path(file).expect("a shipped test is sound"))
        .filter(|test| test.expect.contains_key("ptx"))
        .collect();
    let mut group = c.benchmark_group("litmus");
    group.sample_size(10).warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_secs(5));
    group.bench_function("parse", |b| {
        b.iter(|| files.iter().map(|file| litmus::read_path(file).map_or(0, |t| t.len())).sum::<usize>())
    });
    for (name, engine) in engines() {
        group.bench_function(name, |b| {
            b.iter(|| tests.iter().step_by(STRIDE).map(|test| ask(test, &model, engine).len()).sum::<usize>())
        });
    }
    group.finish();
}

fn settings() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
}

criterion_group! { name = checking; config = settings(); targets = one_by_one, folder }
criterion_main!(checking);
