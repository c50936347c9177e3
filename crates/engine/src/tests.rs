//! Helps unit tests: texts and shipped files as tests, shipped models, the query for a condition.

use std::fs;
use std::path::{Path, PathBuf};

use crate::facts::Facts;
use crate::query::Query;
use crate::skeleton::signature::signature;
use crate::task::Task;
use cat::model::ir::Model;
use cat::model::load_shipped;
use program::litmus::LitmusTest;

/// The first test of a text.
pub(crate) fn parsed(text: &str) -> LitmusTest {
    let read = front::litmus::parse("t.toml", text.as_bytes());
    read.unwrap_or_else(|why| panic!("{why:?}\n{text}"))
        .remove(0)
}

/// A shipped model.
pub(crate) fn shipped(name: &str) -> Model {
    load_shipped(name, &signature())
        .expect("shipped")
        .expect("loads")
}

/// The facts of a small test.
pub(crate) fn facts<'a>(test: &'a LitmusTest, model: &'a Model) -> Facts<'a> {
    Facts::of(&Task::new(test, model, &[], 1), None).expect("a small test")
}

/// The query for executions that satisfy the test's condition.
pub(crate) fn holds<'a>(test: &'a LitmusTest, model: &'a Model) -> Query<'a> {
    Query {
        props: vec![(test.condition.as_ref().expect("has one"), true)],
        ..Query::complete(model)
    }
}

/// All tests under `litmus/` from files that contain a word.
pub(crate) fn corpus(word: &str) -> Vec<LitmusTest> {
    let mut found = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../litmus");
    files(&folder, &mut found);
    found.sort();
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).ok()?;
        let text = Some(text).filter(|text| text.contains(word))?;
        front::litmus::parse(&path.to_string_lossy(), text.as_bytes()).ok()
    };
    found.iter().filter_map(read).flatten().collect()
}

/// Adds all TOML files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => files(&path, found),
            false if path.extension().is_some_and(|e| e == "toml") => found.push(path),
            false => {}
        }
    }
}
