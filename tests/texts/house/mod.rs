//! Checks the sources: the dependencies that cargo does not enforce, and the map of the house.
//!
//! # Invariants
//! - Inside a crate, files of different folders do not import each other in circles. Inside a
//!   folder, no more files do than [`CIRCLES`] says.
//! - Only the files of [`SOLVER`] use the solver's crate; no other file knows which solver there is.
//! - Every file says what it does, and none is unsafe.
//! - Comments name the actor: CI holds the register.
//! - The map in the book is true. `BLESS=1 cargo test --test texts house` rewrites it.

mod imports;
mod library;
mod map;
mod register;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use imports::{Crate, rust_files, tokens};

/// The files that may name the solver's crate.
const SOLVER: &[&str] = &[
    "crates/engine/src/symbolic/z3.rs",
    "crates/engine/src/z3_version.rs",
    "crates/parametric/src/solver.rs",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All crates of the house by name.
fn crates() -> BTreeMap<String, Crate> {
    let mut all = BTreeMap::from([("fencepost".to_owned(), Crate::read(root(), "src"))]);
    for entry in std::fs::read_dir(root().join("crates")).expect("the crates") {
        let name = entry
            .expect("readable")
            .file_name()
            .to_string_lossy()
            .into_owned();
        let source = format!("crates/{name}/src");
        all.insert(name, Crate::read(root(), &source));
    }
    all
}

#[test]
fn folders_do_not_import_each_other_in_circles() {
    for (name, house) in crates() {
        let mut circles = house.circles();
        circles.retain(|circle| house.is_across_folders(circle));
        assert!(
            circles.is_empty(),
            "{name}: files import each other: {circles:#?}"
        );
    }
}

/// By crate: how many of its files are in circles inside a folder. The numbers only fall.
const CIRCLES: &[(&str, usize)] = &[
    ("cat", 10),
    ("diag", 5),
    ("distinguish", 2),
    ("fencepost", 10),
    ("front", 71),
    ("operational", 3),
    ("parametric", 4),
    ("program", 5),
    ("report", 8),
    ("simt", 18),
    ("verdict", 4),
    ("why", 13),
];

#[test]
fn few_files_of_a_folder_import_each_other_in_circles() {
    for (name, house) in crates() {
        let mut circles = house.circles();
        circles.retain(|circle| !house.is_across_folders(circle));
        let count = circles.iter().map(BTreeSet::len).sum::<usize>();
        let known = CIRCLES.iter().find(|known| known.0 == name);
        let most = known.map_or(0, |known| known.1);
        assert!(
            count <= most,
            "{name}: {count} files import each other in circles, {most} did: {circles:#?}"
        );
    }
}

#[test]
fn the_solver_has_few_doors() {
    for (file, words) in crates().values().flat_map(Crate::outside) {
        let is_door = SOLVER.iter().any(|door| Path::new(door) == file);
        assert_eq!(words.contains("z3"), is_door, "{}", file.display());
    }
}

/// Code before `main`, names for WebAssembly, and calls of drivers and of libz3 need the word; no
/// other code may use it.
const UNSAFE: [&str; 5] = [
    "crates/play/src/lib.rs",
    "crates/streams/src/lib.rs",
    "crates/device/src/opencl/runtime.rs",
    "crates/device/src/cuda/runtime.rs",
    "crates/libz3/src/lib.rs",
];

#[test]
fn every_file_begins_with_what_it_is() {
    for file in ["src", "crates", "tests", "benches"]
        .iter()
        .flat_map(|folder| rust_files(&root().join(folder)))
    {
        let text = std::fs::read_to_string(&file).expect("readable");
        let first = text.lines().next().unwrap_or("");
        assert!(
            first.starts_with("//! ") && first.len() > "//! ".len() + 10,
            "{} has no module doc",
            file.display()
        );
        let is_unsafe = tokens(&text).iter().any(|token| token == "unsafe");
        assert!(
            !is_unsafe || UNSAFE.iter().any(|known| file.ends_with(known)),
            "{} is unsafe",
            file.display()
        );
    }
}

/// The examples that the book adds, *How to add …*, do not exist yet: a reader who follows it finds
/// the described state.
#[test]
fn what_the_book_adds_is_not_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect(path);
    let page = read("docs/src/extending.md");
    for (name, file, there) in [
        ("\"pmevent\"", "crates/front/src/isa/ptx/outside.rs", true),
        ("\"istypep\"", "crates/front/src/isa/ptx/outside.rs", true),
        (
            "Dialect::Vulkan",
            "crates/front/src/litmus/fronts.rs",
            false,
        ),
        (
            "\"mixed-host\"",
            "crates/engine/src/skeleton/relations/signature.rs",
            false,
        ),
    ] {
        assert!(page.contains(name.trim_matches('"')), "{name}");
        assert_eq!(read(file).contains(name), there, "{name} in {file}");
    }
}
