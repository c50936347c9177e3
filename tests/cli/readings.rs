//! Answers that depend on the reading of the source: the messages by default, and with a chosen
//! reading.

use serde_json::{Value, json};

use super::{Said, fencepost};

/// A bulk copy of another thread's writes in the CTA; the thread that begins it has the proxy
/// fence.
const TEST: &str = r#"name = "issuer"
condition = 'g == 0'
OPTIONS
[memory]
x = { init = [0, 0], space = "shared" }
g = [7, 7]
[[thread]]
cta = 0
code = """
st.weak x, 1
bar.sync 0
"""
[[thread]]
cta = 0
code = """
bar.sync 0
FENCE
cp.async.bulk.global.shared::cta.bulk_group [g], [x], 16
"""
"#;

fn said(fence: &str, options: &str, arguments: &[&str]) -> Said {
    let folder = tempfile::tempdir().expect("a folder");
    let text = TEST.replace("FENCE", fence).replace("OPTIONS", options);
    std::fs::write(folder.path().join("t.toml"), text).expect("writable");
    fencepost(
        folder.path(),
        &[&[arguments[0], "t.toml", "--model", "ptx"], &arguments[1..]].concat(),
    )
}

#[test]
fn an_answer_that_depends_on_a_reading_says_so() {
    let sentence = "depends on the reach of fence.proxy.async: forbidden under `path`, `cta`; allowed under `thread`, `letter`";
    for command in ["check", "ask"] {
        let out = said("fence.proxy.async", "", &[command]).out;
        assert!(
            out.contains("forbidden") && out.contains(sentence) && out.contains("PTX ISA 9.4"),
            "{command}: {out}"
        );
    }
    let out = said("fence.proxy.async", "", &["check", "--format", "jsonl"]).out;
    let line: Value = serde_json::from_str(&out).expect("a line of JSON");
    assert_eq!(
        (&line["verdict"], &line["depends"][0]["option"]),
        (&json!("forbidden"), &json!("async-fence"))
    );
    let verdicts = json!({ "path": "forbidden", "cta": "forbidden", "thread": "allowed", "letter": "allowed" });
    assert_eq!(line["depends"][0]["verdicts"], verdicts);
}

#[test]
fn one_that_is_the_same_under_all_readings_does_not() {
    // Without the fence there is no ambiguity.
    let out = said("", "", &["check"]).out;
    assert!(out.contains("allowed") && !out.contains("depends"), "{out}");
}

#[test]
fn a_reading_that_was_chosen_is_the_only_one() {
    let chosen = said(
        "fence.proxy.async",
        "",
        &["check", "--set", "async-fence=thread"],
    )
    .out;
    let of_test = said(
        "fence.proxy.async",
        "options = { async-fence = \"letter\" }",
        &["check"],
    )
    .out;
    for out in [chosen, of_test] {
        assert!(out.contains("allowed") && !out.contains("depends"), "{out}");
    }
}

#[test]
fn expectations_name_readings() {
    let expect = |values: &str| {
        format!(
            "[expect]\nptx = {{ reachability = \"forbidden\", readings = {{ async-fence = {{ {values} }} }} }}\n"
        )
    };
    let fence = "fence.proxy.async";
    let right = expect("thread = \"allowed\", letter = \"allowed\"");
    for arguments in [&["check"][..], &["check", "--set", "async-fence=thread"]] {
        assert_eq!(
            said(fence, &right, arguments).code,
            Some(0),
            "{arguments:?}"
        );
    }
    // Under other values, the answer is as expected.
    let short = expect("thread = \"allowed\"");
    let out = said(fence, &short, &["check"]);
    assert!(
        out.out
            .contains("expected forbidden under `async-fence=letter`, got allowed"),
        "{}",
        out.out
    );
    assert_eq!(out.code, Some(1));
    let line: Value =
        serde_json::from_str(&said(fence, &short, &["check", "--format", "jsonl"]).out)
            .expect("a line of JSON");
    let reading =
        json!({ "under": "async-fence=letter", "expected": "forbidden", "verdict": "allowed" });
    assert_eq!(line["reading"], reading);
    // The requested answer is the other one.
    let chosen = said(fence, &short, &["check", "--set", "async-fence=letter"]);
    assert!(
        chosen.code == Some(1) && chosen.out.contains("expected forbidden, got allowed"),
        "{}",
        chosen.out
    );
    // An answer that depends on no reading contradicts an expectation that it does.
    let none = said(
        "",
        &right
            .replace("reachability = \"forbidden\"", "reachability = \"allowed\"")
            .replace("letter = \"allowed\"", "letter = \"forbidden\""),
        &["check"],
    );
    assert!(
        none.out
            .contains("expected forbidden under `async-fence=letter`, got allowed"),
        "{}",
        none.out
    );
}

/// One address releases a flag and another one acquires it; `FENCE` is before the acquire.
const ALIASES: &str = r#"name = "aliases"
condition = 'P1:r0 == 1 /\ P1:r1 == 0'
[memory]
x = 0
f = 0
g = { alias = "f" }
[[thread]]
cta = 0
code = """
st.weak x, 1
st.release.gpu f, 1
"""
[[thread]]
cta = 1
code = """
FENCE
ld.acquire.gpu r0, g
ld.weak r1, x
"""
"#;

#[test]
fn a_fence_of_aliases_helps_in_one_reading_and_says_so() {
    let said = |fence: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(
            folder.path().join("t.toml"),
            ALIASES.replace("FENCE", fence),
        )
        .expect("writable");
        fencepost(folder.path(), &["ask", "t.toml", "--model", "ptx"]).out
    };
    let (with, without) = (said("fence.proxy.alias"), said(""));
    assert!(
        with.contains("allowed under `letter`; forbidden under `fenced`"),
        "{with}"
    );
    assert!(
        with.contains("the reading `alias-overlap=fenced` of the source forbids it as written"),
        "{with}"
    );
    let one = "it would be forbidden, in the reading `alias-overlap=fenced` of the source, with\n    `fence.proxy.alias` before `ld.acquire.gpu r0, g`";
    assert!(
        without.contains(one) && !without.contains("depends on") && !without.contains("and `fence"),
        "{without}"
    );
}
