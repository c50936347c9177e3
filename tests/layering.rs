//! What cargo does not enforce of the house: one place that names the solver, documentation at the head of each file.
//!
//! Which crate may name which is said by their manifests.

use std::fs;
use std::path::{Path, PathBuf};

/// The files that may name the solver's crate.
const SOLVER: &[&str] = &["crates/engine/src/symbolic/z3.rs", "crates/engine/src/z3_version.rs"];

/// All Rust files below `folder`, sorted, by their path relative to the crate.
fn rust_files(folder: &str) -> Vec<(String, String)> {
    fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, out);
            } else if path.extension().is_some_and(|e| e == "rs") {
                out.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    walk(&root.join(folder), &mut paths);
    paths.sort();
    let name = |p: &Path| p.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
    paths.iter().map(|p| (name(p), fs::read_to_string(p).unwrap())).collect()
}

/// The file's text without comments, and without what only its unit tests see.
fn code(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" {
            // What follows is one item: to its closing brace in the first column, or to its `;`.
            for line in lines.by_ref() {
                if line == "}" || line.ends_with(';') && !line.starts_with(' ') {
                    break;
                }
            }
            continue;
        }
        out.push_str(line.split("//").next().unwrap_or(""));
        out.push('\n');
    }
    out
}

#[test]
fn the_solver_has_two_doors() {
    for (file, text) in ["src", "crates"].iter().flat_map(|folder| rust_files(folder)) {
        let names = code(&text).lines().any(|line| {
            let line = line.trim_start();
            line.starts_with("use z3")
                || line.match_indices("z3::").any(|(at, _)| {
                    let before = &line[..at];
                    // A module of ours of the same name is no solver; nor is `Z3::`.
                    !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
                        && !file.ends_with("engine/src/symbolic/mod.rs")
                })
        });
        let door = SOLVER.iter().any(|door| file == *door);
        assert!(!names || door, "{file} names the solver's crate");
    }
    // The exception above holds because the name is taken: inside `symbolic`, `z3` is a module.
    let symbolic =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/engine/src/symbolic/mod.rs")).unwrap();
    assert!(symbolic.lines().any(|line| line.trim() == "mod z3;"));
}

#[test]
fn every_file_begins_with_what_it_is() {
    let folders = ["src", "crates", "tests", "benches"];
    for (file, text) in folders.iter().flat_map(|folder| rust_files(folder)) {
        let first = text.lines().next().unwrap_or("");
        assert!(first.starts_with("//! ") && first.len() > "//! ".len() + 10, "{file} has no module doc");
        assert!(!text.lines().any(|line| line.trim_start().starts_with("unsafe ")), "{file} is unsafe");
    }
}
