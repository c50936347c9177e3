//! Finds tests in folders, and sets the extent of testing.
//!
//! `cargo test` takes a part of all tests, which is enough to notice a defect. With
//! `FENCEPOST_LONG=1`, as CI sets for engines and kernels, it takes a quarter of the random
//! programs and of the files; with `FENCEPOST_LONG=all`, everything. Expectations in `litmus/` are
//! always all checked, but a quick run uses one engine, and a long one the others.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{iter, thread};

use cat::model::{Model, load_shipped};
use engine::skeleton::signature::signature;

/// Tests that are only about runs: too large for a comparison with a model.
const KERNELS: &str = "kernels";

/// A shipped model, by its name.
///
/// # Panics
/// If there is no such model, or if it is not valid.
pub fn shipped(name: &str) -> Model {
    load_shipped(name, &signature())
        .expect("a shipped model")
        .expect("a valid model")
}

/// All files below a folder with one of the extensions, sorted; without those of the folder
/// [`KERNELS`] in it.
pub fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() && path.file_name().is_some_and(|n| n == KERNELS) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .and_then(|e| e.to_str())
                .is_some_and(|e| extensions.contains(&e))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A quick run takes one of this number.
const QUICK: usize = 8;

/// A long run takes one of this number.
const LONG: usize = 4;

/// Whether more is tested than in a quick run.
pub fn is_long() -> bool {
    std::env::var_os("FENCEPOST_LONG").is_some()
}

/// All of a list, or one in [`step`].
pub fn sample<T>(all: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    all.into_iter().step_by(step())
}

/// A partial run tests one of this number.
pub fn step() -> usize {
    match std::env::var_os("FENCEPOST_LONG") {
        None => QUICK,
        Some(word) if word == "all" => 1,
        Some(_) => LONG,
    }
}

/// The number of random programs if `all` is the full number; `FENCEPOST_PROGRAMS` overrides it.
pub fn programs(all: u64) -> u64 {
    number("FENCEPOST_PROGRAMS", all.div_ceil(step() as u64))
}

/// A number from the environment.
pub fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(default)
}

/// The results of `work` for all items, in order; in parallel on all processors.
pub fn in_parallel<I: Sync, T: Send>(items: &[I], work: impl Fn(usize, &I) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let one = || {
        let mine = iter::from_fn(|| {
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&i| i < items.len())
        });
        mine.map(|i| (i, work(i, &items[i]))).collect::<Vec<_>>()
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let mut all: Vec<(usize, T)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(one)).collect();
        workers
            .into_iter()
            .flat_map(|w| w.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, made)| made).collect()
}
