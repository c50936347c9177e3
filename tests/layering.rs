//! The direction in which the modules of the crate depend on each other, read from their `use crate::` lines and paths.
//!
//! # Invariants
//! - Arrows point one way: a module names only those of its row in [`LAYERS`].
//! - `report` never names `check`, and `model` never names `skeleton`: these two keep the rest honest.
//! - The solver's crate has two doors, [`SOLVER`]; nothing else knows which solver there is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// For every module of the crate, what it may name. Each row names earlier rows only, so there is no cycle.
const LAYERS: &[(&str, &[&str])] = &[
    ("diag", &[]),
    ("rel", &[]),
    ("stop", &[]),
    ("verdict", &[]),
    ("program", &["diag"]),
    ("model", &["diag", "rel"]),
    ("litmus", &["diag", "program"]),
    // Of models, the skeleton knows the words for sets and relations alone: see `PARTS`.
    ("skeleton", &["litmus", "model", "program", "rel", "stop"]),
    ("algebra", &["model", "rel", "stop"]),
    // Of the skeleton, the executor uses the address map alone; a memory model's text it never sees.
    ("simt", &["litmus", "program", "skeleton", "stop", "verdict"]),
    ("check", &["algebra", "litmus", "model", "program", "rel", "simt", "skeleton", "stop", "verdict"]),
    ("report", &["diag", "verdict"]),
    (
        "cli",
        &[
            "algebra", "check", "diag", "litmus", "model", "program", "rel", "report", "simt", "skeleton", "stop",
            "verdict",
        ],
    ),
];

/// Of some modules, another may name only these parts.
const PARTS: &[(&str, &str, &[&str])] = &[
    ("skeleton", "model", &["ir", "signature"]),
    ("algebra", "model", &["ir"]),
    ("simt", "skeleton", &["Cell", "CellId", "Memory"]),
    ("cli", "skeleton", &["signature"]),
];

/// The files that may name the solver's crate.
const SOLVER: &[&str] = &["check/symbolic/z3.rs", "check/z3_version.rs"];

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

/// The paths that begin with `crate::`, as (module, part): `crate::model::ir::Kind` gives (`model`, `ir`). A group
/// `crate::{a, b::c}` gives all its members; where the part is a group, each of its members.
fn named(code: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        for path in members(&code[at + "crate::".len()..]) {
            let (module, rest) = path.split_once("::").unwrap_or((&path, ""));
            let parts = if rest.is_empty() { vec![String::new()] } else { members(rest) };
            for part in parts {
                let part = part.split("::").next().unwrap_or("").to_owned();
                out.push((module.to_owned(), part));
            }
        }
    }
    out
}

/// The path at the beginning of `text`, or those in the braces there.
fn members(text: &str) -> Vec<String> {
    let Some(inside) = text.strip_prefix('{') else {
        let end = text.find(|c: char| !c.is_alphanumeric() && !"_:{".contains(c)).unwrap_or(text.len());
        // A group further on belongs to the path up to its closing brace.
        let end = match text[..end].find('{') {
            Some(open) => open + closing(&text[open..]),
            None => end,
        };
        return vec![text[..end].to_owned()];
    };
    let inside = &inside[..closing(text) - 2];
    let (mut depth, mut member, mut out) = (0, String::new(), Vec::new());
    for c in inside.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                out.push(std::mem::take(&mut member));
                continue;
            }
            c if c.is_whitespace() => continue,
            _ => {}
        }
        member.push(c);
    }
    out.push(member);
    out.retain(|m| !m.is_empty());
    out
}

/// Length of the group in braces at the beginning of `text`, both braces included.
fn closing(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

/// The module of the crate that a file under `src/` belongs to; `None` for `main.rs` and `lib.rs`.
fn module(file: &str) -> Option<&str> {
    let path = file.strip_prefix("src/")?;
    path.split_once('/').map(|(module, _)| module)
}

/// A file of unit tests: these may look wherever they like.
fn only_tests(file: &str) -> bool {
    file.ends_with("/tests.rs")
}

#[test]
fn the_table_has_a_row_for_every_module_and_no_cycle() {
    let modules: BTreeSet<String> =
        rust_files("src").iter().filter_map(|(f, _)| module(f)).map(str::to_owned).collect();
    let rows: BTreeSet<String> = LAYERS.iter().map(|(m, _)| (*m).to_owned()).collect();
    assert_eq!(modules, rows);
    for (i, (module, below)) in LAYERS.iter().enumerate() {
        for other in *below {
            let at = LAYERS.iter().position(|(m, _)| m == other);
            assert!(at.is_some_and(|at| at < i), "`{module}` may not name `{other}`, whose row comes later");
        }
    }
}

#[test]
fn modules_name_only_what_lies_below_them() {
    let mut wrong = Vec::new();
    for (file, text) in rust_files("src") {
        let Some(module) = module(&file) else { continue };
        if only_tests(&file) {
            continue;
        }
        let below = LAYERS.iter().find(|(m, _)| *m == module).map_or(&[][..], |row| row.1);
        for (other, part) in named(&code(&text)) {
            if other == module {
                continue;
            }
            if !below.contains(&other.as_str()) {
                wrong.push(format!("{file} names crate::{other}"));
            }
            let parts = PARTS.iter().find(|(m, o, _)| *m == module && *o == other).map(|row| row.2);
            if parts.is_some_and(|parts| !parts.contains(&part.as_str())) {
                wrong.push(format!("{file} names crate::{other}::{part}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_absences_that_matter_most() {
    for (file, text) in rust_files("src") {
        let named: BTreeSet<String> = named(&code(&text)).into_iter().map(|(module, _)| module).collect();
        match module(&file) {
            Some("report") => assert!(!named.contains("check"), "{file}"),
            Some("model") if !only_tests(&file) => assert!(!named.contains("skeleton"), "{file}"),
            Some(leaf @ ("rel" | "diag")) => assert!(named.iter().all(|m| m == leaf), "{file}: {named:?}"),
            _ => {}
        }
    }
}

#[test]
fn the_solver_has_two_doors() {
    for (file, text) in rust_files("src") {
        let names = code(&text).lines().any(|line| {
            let line = line.trim_start();
            line.starts_with("use z3")
                || line.match_indices("z3::").any(|(at, _)| {
                    let before = &line[..at];
                    // A module of ours of the same name is no solver; nor is `Z3::`.
                    !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
                        && !file.ends_with("check/symbolic/mod.rs")
                })
        });
        let door = SOLVER.iter().any(|door| file == format!("src/{door}"));
        assert!(!names || door, "{file} names the solver's crate");
    }
    // The exception above holds because the name is taken: inside `symbolic`, `z3` is a module.
    let symbolic =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/check/symbolic/mod.rs")).unwrap();
    assert!(symbolic.lines().any(|line| line.trim() == "mod z3;"));
}

#[test]
fn every_file_begins_with_what_it_is() {
    let folders = ["src", "tests", "benches"];
    for (file, text) in folders.iter().flat_map(|folder| rust_files(folder)) {
        let first = text.lines().next().unwrap_or("");
        assert!(first.starts_with("//! ") && first.len() > "//! ".len() + 10, "{file} has no module doc");
        assert!(!text.lines().any(|line| line.trim_start().starts_with("unsafe ")), "{file} is unsafe");
    }
}

#[test]
fn paths_are_read_as_rust_reads_them() {
    let pairs = |text: &str| named(&code(text)).into_iter().map(|(a, b)| format!("{a}/{b}")).collect::<Vec<_>>();
    assert_eq!(pairs("use crate::rel::EventId;"), ["rel/EventId"]);
    assert_eq!(pairs("use crate::model::{ir::Kind, load};"), ["model/ir", "model/load"]);
    assert_eq!(
        pairs("use crate::{\n    diag::Span,\n    model::ir::{Kind, Node},\n};"),
        ["diag/Span", "model/ir"]
    );
    assert_eq!(pairs("let x = crate::check::ask(y); // crate::report"), ["check/ask"]);
    assert_eq!(pairs("use crate::litmus;"), ["litmus/"]);
    assert_eq!(pairs("#[cfg(test)]\nmod tests {\n    use crate::cli;\n}\nuse crate::rel;"), ["rel/"]);
}
