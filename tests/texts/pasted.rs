//! Pasted code: for each row of the book's table a test that contains it, or the message that
//! refuses it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use fencepost::litmus::parse;
use testkit::suite::files;

const PAGE: &str = include_str!("../../docs/src/c-family.md");

/// The wanted tests that exist. If a file has several tests, its name is the beginning of their
/// names.
fn there(wanted: &BTreeSet<&str>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus"),
        &["toml"],
    ) {
        let text = fs::read_to_string(&path).expect("readable");
        let names = text
            .lines()
            .filter_map(|line| line.strip_prefix("name = \"")?.split(['"', '$']).next());
        let may_be = |beginning: &str| wanted.iter().any(|name| name.starts_with(beginning));
        if names.into_iter().any(may_be)
            && let Ok(tests) = parse(&path.to_string_lossy(), text.as_bytes())
        {
            found.extend(tests.into_iter().map(|test| test.name));
        }
    }
    found
}

/// The texts between marks in a cell.
fn marked(cell: &str, mark: char) -> Vec<&str> {
    cell.split(mark).skip(1).step_by(2).collect()
}

/// The messages about these statements of CUDA C++.
fn said(code: &str) -> Vec<String> {
    let head =
        "name = \"pasted\"\ndialect = \"cuda\"\ncondition = \"x == 0\"\nmemory = { x = 0 }\n";
    let text = format!("{head}[[thread]]\nblock = 0\ncode = \'\'\'{code}\'\'\'\n");
    let messages = |diagnostics: Vec<fencepost::diag::Diagnostic>| {
        diagnostics
            .into_iter()
            .map(|d| format!("{} {}", d.message, d.label))
            .collect()
    };
    parse("pasted.toml", text.as_bytes()).map_or_else(messages, |_| Vec::new())
}

#[test]
fn what_is_pasted_has_a_test_or_is_refused_as_the_book_says() {
    let mut held_by: Vec<(&str, &str)> = Vec::new();
    let table = PAGE
        .split("## Common constructs")
        .nth(1)
        .and_then(|rest| rest.split("\n## ").next())
        .expect("the table");
    let mut rows = 0;
    for row in table
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| pasted"))
    {
        let cells: Vec<&str> = row
            .split(" | ")
            .map(|cell| cell.trim_matches(['|', ' ']))
            .collect();
        let [what, reading, held] = cells[..] else {
            panic!("{row}")
        };
        rows += 1;
        if reading == "refused" {
            let (code, why) = (marked(what, '`'), marked(held, '*'));
            let said = said(code[0]);
            assert!(
                said.iter().any(|message| message.contains(why[0])),
                "{row}: {said:?}"
            );
        } else {
            assert!(
                ["modelled", "mapped", "ignored"].contains(&reading),
                "{row}"
            );
            let tests = marked(held, '`');
            assert!(!tests.is_empty(), "{row}");
            held_by.extend(tests.into_iter().map(|test| (row, test)));
        }
    }
    assert!(rows > 30, "{rows}");
    let there = there(&held_by.iter().map(|(_, test)| *test).collect());
    held_by
        .iter()
        .for_each(|(row, test)| assert!(there.contains(*test), "{row}: there is no test `{test}`"));
}
