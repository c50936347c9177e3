//! How long it takes to read a test, to build its skeleton, and to answer one question, by engine;
//! and the whole folder of tests with each engine.

mod measure;

use std::hint::black_box;
use std::path::{Path, PathBuf};

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::{self, LitmusTest};
use fencepost::model::{self, Model};
use fencepost::program::options::OptionValues;
use fencepost::skeleton::Skeleton;
use fencepost::skeleton::signature::signature;
use measure::measure;

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
    Engine::ALONE
        .iter()
        .map(|&engine| (engine.name(), engine))
        .collect()
}

fn ptx() -> Model {
    model::load_shipped("ptx", &signature())
        .expect("shipped")
        .expect("a shipped model is sound")
}

fn ask(test: &LitmusTest, model: &Model, engine: Engine) -> String {
    let answer =
        Session::new(test, model, engine, Limits::default(), &[]).reachability(None, false);
    format!("{:?}", answer.verdict)
}

/// All test files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
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

fn one_by_one() {
    let model = ptx();
    for file in FILES {
        let Ok(bytes) = std::fs::read(root().join(file)) else {
            panic!("{file} is gone")
        };
        let tests = litmus::parse(file, &bytes).expect("a shipped test is sound");
        let test = &tests[0];
        let name = |what: &str| format!("{}: {what}", test.name);
        measure(&name("parse"), 1, || {
            litmus::parse(file, black_box(&bytes)).map(|t| t.len())
        });
        measure(&name("skeleton"), 1, || {
            Skeleton::build(black_box(test), OptionValues::default(), 4).map(|s| s.len())
        });
        for (engine, which) in engines() {
            measure(&name(engine), 1, || ask(black_box(test), &model, which));
        }
    }
}

fn folder() {
    let model = ptx();
    let files = files(&root().join("litmus"));
    let tests: Vec<LitmusTest> = files
        .iter()
        .flat_map(|file| litmus::read_path(file).expect("a shipped test is sound"))
        .filter(|test| test.expect.contains_key("ptx"))
        .collect();
    measure("litmus: parse", files.len() as u64, || {
        files
            .iter()
            .map(|file| litmus::read_path(file).map_or(0, |t| t.len()))
            .sum::<usize>()
    });
    for (engine, which) in engines() {
        let asked = || tests.iter().step_by(STRIDE);
        measure(&format!("litmus: {engine}"), asked().count() as u64, || {
            asked()
                .map(|test| ask(test, &model, which).len())
                .sum::<usize>()
        });
    }
}

fn main() {
    one_by_one();
    folder();
}
