//! All racing pairs, and races between writes of the same value, with the built binary.

use std::fs;

use serde_json::Value;

use super::{Said, fencepost};

/// All lanes store the same value; after a barrier, all read it.
const SAME: &str = r#"name = "same"
condition = "x == 8"
[memory]
x = 0
y = [0, 0]
[kernel]
grid = 1
block = 2
code = """
st.weak x, 7
BARRIER
ld.weak r1, x
AFTER
"""
"#;

fn said(barrier: &str, after: &str, arguments: &[&str]) -> Said {
    let folder = tempfile::tempdir().expect("a folder");
    let text = SAME.replace("BARRIER", barrier).replace("AFTER", after);
    fs::write(folder.path().join("t.toml"), text).expect("writable");
    fencepost(
        folder.path(),
        &[&[arguments[0], "t.toml"], &arguments[1..]].concat(),
    )
}

fn line(barrier: &str, after: &str, set: &[&str]) -> Value {
    let words = [
        "check",
        "--property",
        "race",
        "--engine",
        "both",
        "--format",
        "jsonl",
    ];
    let said = said(barrier, after, &[&words, set].concat());
    serde_json::from_str(
        said.out
            .lines()
            .next()
            .unwrap_or_else(|| panic!("{}", said.err)),
    )
    .expect("a line of JSON")
}

/// The lines of each pair.
fn lines(line: &Value) -> Vec<[u64; 2]> {
    let pairs = line["pairs"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let of = |pair: &Value| [0, 1].map(|i| pair["accesses"][i]["line"].as_u64().expect("a line"));
    let mut all: Vec<[u64; 2]> = pairs.iter().map(of).collect();
    all.iter_mut().for_each(|pair| pair.sort_unstable());
    all.sort_unstable();
    all
}

#[test]
fn all_pairs_of_lines_that_race_are_told_once() {
    let right = line("bar.sync 0", "", &[]);
    assert_eq!(
        (&right["verdict"], lines(&right)),
        (&"racy".into(), vec![[10, 10]])
    );
    let wrong = line("", "", &[]);
    assert_eq!(lines(&wrong), [[10, 10], [10, 12]]);
    assert_eq!(wrong["pairs_complete"], true);
    let more = line("", "st.weak x, 9", &[]);
    assert_eq!(
        lines(&more),
        [[10, 10], [10, 12], [10, 13], [12, 13], [13, 13]]
    );
    let told = said("", "", &["check", "--property", "race", "-v"]).out;
    assert!(
        told.contains("and 1 other pair of lines") && told.contains("  race on `x`: "),
        "{told}"
    );
    let brief = said("", "", &["check", "--property", "race"]).out;
    assert!(
        brief.contains("and 1 other pair of lines") && !brief.contains("  race on"),
        "{brief}"
    );
}

#[test]
fn writes_of_one_value_are_benign_if_that_is_asked_for() {
    let set = ["--set", "same-value=benign"];
    let right = line("bar.sync 0", "", &set);
    assert_eq!(
        (&right["verdict"], &right["settings"]["same-value"]),
        (&"race-free".into(), &"benign".into())
    );
    // The twin without the barrier has another race, with the readers.
    let wrong = line("", "", &set);
    assert_eq!(
        (&wrong["verdict"], lines(&wrong)),
        (&"racy".into(), vec![[10, 12]])
    );
    // A different value makes a different race.
    assert_eq!(lines(&line("bar.sync 0", "st.weak x, 9", &set)), [[12, 13]]);
    let told = said(
        "bar.sync 0",
        "",
        &[&["check", "--property", "race", "-v"], &set[..]].concat(),
    )
    .out;
    assert!(
        told.contains("race-free") && told.contains("same-value=benign"),
        "{told}"
    );
    let run = said(
        "bar.sync 0",
        "",
        &[&["run", "--runs", "100"], &set[..]].concat(),
    )
    .out;
    assert!(run.contains("no race in"), "{run}");
    let run = said("bar.sync 0", "", &["run", "--runs", "100"]).out;
    assert!(run.contains("race on `x`"), "{run}");
    let run = said("", "", &[&["run", "--runs", "100"], &set[..]].concat()).out;
    assert!(run.contains("race on `x`"), "{run}");
}

/// In a language, a race is undefined behaviour: there, no answer rests on equal values.
#[test]
fn equal_values_do_not_excuse_undefined_behaviour() {
    let folder = tempfile::tempdir().expect("a folder");
    let test = "name = \"t\"\ndialect = \"cuda\"\nmemory = { x = 0 }\n[[thread]]\nblock = 0\ncode = \"x = 7;\"\n\
                [[thread]]\nblock = 1\ncode = \"x = 7;\"\n[options]\nsame-value = \"benign\"\n";
    fs::write(folder.path().join("t.toml"), test).expect("writable");
    let asked = |model: &str, property: &str| {
        let words = ["check", "t.toml", "--property", property, "--model", model];
        fencepost(folder.path(), &words).out
    };
    for property in ["race", "undefined", "reachability"] {
        let told = asked("cuda", property);
        let why = "a race is undefined behaviour here, whatever the values";
        assert!(told.contains("undecided") && told.contains(why), "{told}");
    }
    assert!(asked("ptx", "race").contains("1 race-free"));
    let run = fencepost(folder.path(), &["run", "t.toml", "--runs", "50"]);
    assert!(
        run.out.contains("data race on x") && !run.out.contains("DEFECT"),
        "{} {}",
        run.out,
        run.err
    );
}

#[test]
fn copies_of_a_function_that_is_called_twice_are_two() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/litmus/ptx-async/07-copies/Copy.function-twice.toml"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["check", "--property", "race", "-v", file];
    let told = fencepost(folder.path(), &arguments).out;
    assert!(
        told.contains("P0's agent 1 line 20 with P0's agent 2 line 20"),
        "{told}"
    );
}

/// The help for the race of a test.
fn help(test: &str, model: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("t.toml"), test).expect("writable");
    let words = ["check", "t.toml", "--property", "race", "--model", model];
    let said = fencepost(folder.path(), &words);
    let text = said.out + &said.err;
    let line = text.lines().find(|line| line.contains("help: it becomes"));
    line.unwrap_or_else(|| panic!("no help: {text}")).to_owned()
}

/// Relaxed atomics alone would leave the condition allowed.
#[test]
fn a_remedy_orders_what_the_condition_asks_for() {
    let test = r#"name = "MP+plain"
condition = 'P1:r0 == 1 /\ P1:r1 == 0'
memory = { x = 0, f = 0 }
[[thread]]
cta = 0
code = """
st.weak.u32 [x], 1;
st.weak.u32 [f], 1;
"""
[[thread]]
cta = 1
code = """
ld.weak.u32 r0, [f];
ld.weak.u32 r1, [x];
"""
[expect]
ptx = { race = "race-free" }
"#;
    let told = help(test, "ptx");
    for part in [
        "line 8 has `.release.gpu`",
        "line 13 has `.acquire.gpu`",
        "line 7 has `.relaxed.gpu`",
        "line 14 has `.relaxed.gpu`",
    ] {
        assert!(told.contains(part), "{told}");
    }
    assert!(!told.contains("values stay unordered"), "{told}");
    // Without a condition nothing says which order is wanted.
    let told = help(
        &test.replace("condition = 'P1:r0 == 1 /\\ P1:r1 == 0'\n", ""),
        "ptx",
    );
    assert!(told.contains("values stay unordered"), "{told}");
}

/// Neither a wait for the copy nor a barrier helps alone.
#[test]
fn a_wait_and_a_barrier_are_tried_together() {
    let test = r#"name = "pair"
dialect = "cuda"
memory = { g = [1, 2], out = [0, 0] }
[kernel]
block = 2
code = """
__shared__ int s[2];
int t = threadIdx.x;
__pipeline_memcpy_async(&s[t], &g[t], 4);
__pipeline_commit();
out[t] = s[1 - t];
"""
[expect]
ptx = { race = "race-free" }
"#;
    let told = help(test, "ptx");
    assert!(told.contains("__pipeline_wait_prior(0);"), "{told}");
    assert!(told.contains("__syncthreads();"), "{told}");
}
