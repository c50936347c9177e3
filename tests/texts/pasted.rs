//! What people paste: for each thing in the book's table a test that holds it, or what is said where it is refused.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use fencepost::litmus::parse;

const PAGE: &str = include_str!("../../docs/src/c-family.md");

/// The names of all tests below a folder.
fn names(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            names(&path, into);
        } else if path.extension().is_some_and(|e| e == "toml")
            && let Ok(tests) = parse(&path.to_string_lossy(), &fs::read(&path).expect("readable"))
        {
            into.extend(tests.into_iter().map(|test| test.name));
        }
    }
}

/// What stands between marks in a cell.
fn marked(cell: &str, mark: char) -> Vec<&str> {
    cell.split(mark).skip(1).step_by(2).collect()
}

/// What is wrong with these statements of CUDA C++.
fn said(code: &str) -> Vec<String> {
    let head = "name = \"pasted\"\ndialect = \"cuda\"\ncondition = \"x == 0\"\nmemory = { x = 0 }\n";
    let text = format!("{head}[[thread]]\nblock = 0\ncode = \'\'\'{code}\'\'\'\n");
    let messages = |diagnostics: Vec<fencepost::diag::Diagnostic>| {
        diagnostics.into_iter().map(|d| format!("{} {}", d.message, d.label)).collect()
    };
    parse("pasted.toml", text.as_bytes()).map_or_else(messages, |_| Vec::new())
}

#[test]
fn what_is_pasted_has_a_test_or_is_refused_as_the_book_says() {
    let mut known = BTreeSet::new();
    names(&Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus"), &mut known);
    let table =
        PAGE.split("## What is pasted").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("the table");
    let mut rows = 0;
    for row in table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| pasted")) {
        let cells: Vec<&str> = row.split(" | ").map(|cell| cell.trim_matches(['|', ' '])).collect();
        let [what, reading, held] = cells[..] else { panic!("{row}") };
        rows += 1;
        if reading == "refused" {
            let (code, why) = (marked(what, '`'), marked(held, '*'));
            let said = said(code[0]);
            assert!(said.iter().any(|message| message.contains(why[0])), "{row}: {said:?}");
        } else {
            assert!(["modelled", "mapped", "ignored"].contains(&reading), "{row}");
            let tests = marked(held, '`');
            assert!(!tests.is_empty(), "{row}");
            tests.iter().for_each(|test| assert!(known.contains(*test), "{row}: there is no test `{test}`"));
        }
    }
    assert!(rows > 30, "{rows}");
}
