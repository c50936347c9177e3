//! Tests in folders, and how much is tested.
//!
//! `cargo test` takes a part of what there is, which is enough to see that something broke; with `FENCEPOST_LONG`, as in
//! CI, it takes all. The test of the corpus leaves nothing out either way.

use std::path::{Path, PathBuf};

/// Tests that are about runs alone: too large to be compared with a model.
const KERNELS: &str = "kernels";

/// All files below a folder with one of the extensions, sorted; without those of the folder [`KERNELS`] in it.
pub fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() && path.file_name().is_some_and(|n| n == KERNELS) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().and_then(|e| e.to_str()).is_some_and(|e| extensions.contains(&e)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Where a quick run takes a part, it takes one of so many.
const QUICK: usize = 5;

/// Whether all is tested that there is, and not a part.
pub fn is_long() -> bool {
    std::env::var_os("FENCEPOST_LONG").is_some()
}

/// All of a list, or one in so many.
pub fn sample<T>(all: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    all.into_iter().step_by(if is_long() { 1 } else { QUICK })
}

/// How many random programs: so many in a long run, or what `FENCEPOST_PROGRAMS` says.
pub fn programs(long: u64) -> u64 {
    number("FENCEPOST_PROGRAMS", if is_long() { long } else { long.div_ceil(QUICK as u64) })
}

/// A number from the environment.
pub fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}
