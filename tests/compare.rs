//! Models compared through the built binary: the OpenCL tests and the idioms against PTX, and mappings that are wrong.

use std::process::Command;

use serde_json::Value;

/// The lines of reachability under `ptx`, and the exit code, for OpenCL.
fn compare(arguments: &[&str]) -> (Vec<Value>, Option<i32>) {
    compare_from("opencl", arguments)
}

fn compare_from(model: &str, arguments: &[&str]) -> (Vec<Value>, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .args(["compare", "--models", &format!("{model},ptx"), "--format", "jsonl", "--engine", "enumerate"])
        .args(arguments)
        .output()
        .expect("the binary was built for this test");
    let text = String::from_utf8(output.stdout).expect("stdout is UTF-8");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    (lines.filter(|l| l["model"] == "ptx" && l["property"] == "reachability").collect(), output.status.code())
}

fn relation(line: &Value) -> &str {
    line["compared"][0]["relation"].as_str().unwrap_or("none")
}

#[test]
fn the_current_mapping_has_one_known_gap() {
    let (lines, code) = compare(&["litmus/opencl"]);
    assert_eq!(code, Some(0));
    assert_eq!(lines.len(), 88);
    let of = |word: &str| {
        let found = lines.iter().filter(|l| relation(l) == word);
        found.map(|l| l["test"].as_str().unwrap_or("")).collect::<Vec<_>>()
    };
    assert_eq!(of("known gap"), ["T79"]);
    assert_eq!(of("violated"), [""; 0]);
    assert_eq!(of("undecided"), [""; 0]);
    assert!(of("exempt: undefined").contains(&"T02") && of("respected").contains(&"T75"));
    for line in &lines {
        assert_eq!(line["mapping"], "opencl-ptx");
        assert!(line["expected"].is_null() || line["expected"] == line["verdict"], "{}", line["test"]);
    }
}

#[test]
fn of_the_idioms_only_the_one_about_the_erratum_tells_the_mappings_apart() {
    for language in ["cuda", "opencl"] {
        let folder = format!("litmus/idioms/{language}");
        for (mapping, expected) in [("ptx", &[][..]), ("ptx-erratum", &["A24.b"]), ("ptx-old-rmw", &[])] {
            let mapping = format!("{language}-{mapping}");
            let (lines, code) = compare_from(language, &[&folder, "--mapping", &mapping]);
            let violated = lines.iter().filter(|l| relation(l) == "violated").map(|l| l["test"].as_str());
            assert_eq!(violated.flatten().collect::<Vec<_>>(), expected, "{mapping}");
            assert!(lines.len() > 400 && lines.iter().filter(|l| relation(l) == "respected").count() > 100);
            assert!(lines.iter().all(|l| relation(l) != "undecided"));
            assert_eq!(code, Some(0));
        }
    }
}

/// Message passing to a sequentially consistent load.
const TEST: &str = r#"
name = "MP+rel+sc"
dialect = "opencl"
condition = 'P1:a == 1 /\ P1:b == 0'

[memory]
x = { type = "atomic_int" }
y = { type = "atomic_int" }

[[thread]]
work_group = 0
code = '''
atomic_store_explicit(x, 1, memory_order_relaxed, memory_scope_device);
atomic_store_explicit(y, 1, memory_order_release, memory_scope_device);
'''

[[thread]]
work_group = 1
code = '''
int a = atomic_load_explicit(y, memory_order_seq_cst, memory_scope_device);
int b = atomic_load_explicit(x, memory_order_relaxed, memory_scope_device);
'''
"#;

#[test]
fn the_erratum_loses_message_passing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("MP.toml");
    std::fs::write(&file, TEST).expect("writable");
    let file = file.to_str().expect("UTF-8");
    let (lines, _) = compare(&[file]);
    assert_eq!((relation(&lines[0]), lines[0]["verdict"].as_str()), ("respected", Some("forbidden")));
    let (lines, code) = compare(&[file, "--mapping", "opencl-ptx-erratum"]);
    assert_eq!((relation(&lines[0]), lines[0]["verdict"].as_str()), ("violated", Some("allowed")));
    assert_eq!(lines[0]["mapping"], "opencl-ptx-erratum");
    assert_eq!(code, Some(0));
}

#[test]
fn a_mapping_that_is_not_there_is_told() {
    let (lines, code) = compare(&["litmus/opencl/T01.toml", "--mapping", "opencl-ptz"]);
    assert_eq!((lines.len(), code), (0, Some(2)));
}
