//! Outcomes that are forbidden only because no execution runs to its end: the answer says so,
//! unless the test shows that its author knows.

use serde_json::Value;

use super::fencepost;

/// A reader that waits for a flag that no thread sets.
const TEST: &str = r#"name = "wait"
condition = 'CONDITION'
MORE
[memory]
x = 0
f = 0
[[thread]]
cta = 0
code = """
TOP:
ld.acquire.gpu r0, f
WAIT
ld.weak r1, x
"""
[[thread]]
cta = 1
code = "st.weak x, 1"
[expect]
ptx = { reachability = "forbidden"LIVENESS }
"#;

/// The answer of `check` about the test, for people and for programs.
fn said(condition: &str, wait: &str, more: &str, liveness: &str) -> (String, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let words = [
        ("CONDITION", condition),
        ("WAIT", wait),
        ("MORE", more),
        ("LIVENESS", liveness),
    ];
    let text = words
        .into_iter()
        .fold(TEST.to_owned(), |text, (word, by)| text.replace(word, by));
    std::fs::write(folder.path().join("t.toml"), text).expect("writable");
    let check =
        |more: &[&str]| fencepost(folder.path(), &[&["check", "t.toml"], more].concat()).out;
    (
        check(&[]),
        serde_json::from_str(
            check(&["--format", "jsonl"])
                .lines()
                .next()
                .expect("a line"),
        )
        .expect("JSON"),
    )
}

const WAIT: &str = "beq r0, 0, TOP";

#[test]
fn a_program_that_never_ends_forbids_nothing_in_particular() {
    let (out, line) = said("P0:r1 == 1", WAIT, "", "");
    assert!(
        out.contains("no execution runs to its end") && out.contains("--property liveness"),
        "{out}"
    );
    assert_eq!(
        (&line["verdict"], &line["vacuous"]),
        (&"forbidden".into(), &true.into())
    );
    // A test that ends; its actions forbid the outcome.
    let (out, line) = said("P0:r1 == 2", "", "", "");
    assert!(out.contains("all met") && !out.contains("note:"), "{out}");
    assert_eq!(
        (&line["verdict"], &line["vacuous"]),
        (&"forbidden".into(), &Value::Null)
    );
}

#[test]
fn an_author_who_knows_is_not_told() {
    // The author says how it ends, or requests nothing but the end.
    for (condition, liveness) in [
        ("P0:r1 == 1", r#", liveness = { fair = "hangs" }"#),
        ("0 == 0", ""),
    ] {
        let (out, _) = said(condition, WAIT, "", liveness);
        assert!(
            out.contains("all met") && !out.contains("note:"),
            "{condition}: {out}"
        );
    }
}

#[test]
fn a_filter_that_lets_nothing_through() {
    let (out, _) = said("P0:r1 == 1", "", "filter = 'P0:r0 == 1'", "");
    assert!(
        out.contains("no execution that ends satisfies the filter"),
        "{out}"
    );
    let (out, _) = said("P0:r1 == 2", "", "filter = 'P0:r0 == 0'", "");
    assert!(out.contains("all met") && !out.contains("note:"), "{out}");
}
