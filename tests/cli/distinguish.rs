//! Tests the search of the built binary for programs on which models differ.

use std::path::Path;

use serde_json::Value;

use super::{Said, fencepost};

fn distinguish(arguments: &[&str]) -> (Vec<Value>, Said) {
    let said = fencepost(
        Path::new("."),
        &[&["distinguish", "--format", "jsonl"], arguments].concat(),
    );
    let lines = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    (lines, said)
}

#[test]
fn both_ways_are_asked() {
    let (lines, said) = distinguish(&["ptx", "sc", "--size", "3", "--both"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let [there, back] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    assert_eq!(
        (&there["found"][0]["size"], &there["found"][0]["relation"]),
        (&2.into(), &"differ".into())
    );
    assert_eq!(
        (&there["searched"], &back["searched"], &back["complete"]),
        (&2.into(), &3.into(), &true.into())
    );
    assert_eq!(
        (&back["allows"], &back["found"]),
        (&"sc".into(), &Value::Array(Vec::new()))
    );
}

#[test]
fn a_program_that_was_found_is_a_test_that_meets_its_expectations() {
    let (lines, _) = distinguish(&["opencl", "opencl-3.1"]);
    let program = lines[0]["found"][0]["program"].as_str().expect("found");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("found.toml"), program).expect("writable");
    let said = fencepost(folder.path(), &["check", "--engine", "both", "found.toml"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(said.out.contains("2 expectations, all met"), "{}", said.out);
}

#[test]
fn every_program_is_minimal() {
    let (lines, said) = distinguish(&["c11", "rc11", "--all", "--size", "4"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let found = lines[0]["found"].as_array().expect("a list");
    assert!(!found.is_empty());
    assert!(
        found
            .iter()
            .all(|p| p["relation"] == "differ" && p["size"] == 4),
        "{found:?}"
    );
}

#[test]
fn time_that_runs_out_is_undecided() {
    let (lines, said) = distinguish(&["sc", "ptx", "--size", "6", "--timeout", "300ms"]);
    assert_eq!(said.code, Some(3), "{}", said.err);
    assert_eq!(lines[0]["complete"], false);
    assert!(
        lines[0]["stopped"]["size"]
            .as_u64()
            .is_some_and(|size| size > 1),
        "{lines:?}"
    );
}

/// Each letter takes effect and is reported: the program contains it, or the description of the
/// search does.
#[test]
fn letters_that_are_asked_for_are_said() {
    let (lines, said) = distinguish(&["ptx", "sc", "--with", "sys,cas", "--size", "2"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let alphabet = lines[0]["alphabet"].as_str().expect("text");
    for part in [
        "compare-exchanges that succeed",
        "scopes cta, gpu, sys",
        "threads in any GPUs",
    ] {
        assert!(alphabet.contains(part), "{part}: {alphabet}");
    }
    assert!(
        lines[0]["found"][0]["program"]
            .as_str()
            .is_some_and(|p| p.contains(".cas ")),
        "{lines:?}"
    );
    let (lines, said) = distinguish(&["ptx", "sc", "--with", "cluster,red", "--size", "2"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let alphabet = lines[0]["alphabet"].as_str().expect("text");
    for part in ["reductions that add", "scopes cta, cluster, gpu"] {
        assert!(alphabet.contains(part), "{part}: {alphabet}");
    }
    let (lines, said) = distinguish(&["ptx", "sc", "--with", "alias,surface", "--size", "2"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let alphabet = lines[0]["alphabet"].as_str().expect("text");
    for part in ["the proxy fence of aliases", "the proxy fence of surfaces"] {
        assert!(alphabet.contains(part), "{part}: {alphabet}");
    }
    let (lines, said) = distinguish(&["ptx", "sc", "--with", "dep,branch,barrier", "--size", "2"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let alphabet = lines[0]["alphabet"].as_str().expect("text");
    for part in [
        "stores of values that depend on all earlier reads of the thread",
        "branches that end a thread unless an atomic read has the value of the outcome",
        "a barrier in all threads of a CTA, no branch before it",
    ] {
        assert!(alphabet.contains(part), "{part}: {alphabet}");
    }
    // Plain accesses are defined behind a branch, or a barrier.
    let letters = "plain,branch,barrier";
    let (lines, said) = distinguish(&["cuda-17", "cuda", "--with", letters, "--size", "3"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let alphabet = lines[0]["alphabet"].as_str().expect("text");
    assert!(
        alphabet.contains("plain stores and loads of further locations"),
        "{alphabet}"
    );
}

/// Two versions of PTX differ on two accesses if one is through a surface, and on reductions in one
/// direction.
#[test]
fn versions_of_ptx_differ_on_surfaces_and_reductions() {
    let sizes = |arguments: &[&str]| {
        let (lines, said) = distinguish(&[arguments, &["--both"]].concat());
        assert_eq!(said.code, Some(0), "{}", said.err);
        lines
            .iter()
            .map(|line| line["found"][0]["size"].as_u64())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        sizes(&["ptx-v7.5", "ptx-v6.0", "--with", "surface", "--size", "2"]),
        [Some(2), None]
    );
    assert_eq!(
        sizes(&["ptx-v7.5", "ptx-v6.0", "--size", "2"]),
        [None, None]
    );
    assert_eq!(
        sizes(&["ptx-v7.5", "ptx", "--with", "red", "--size", "3"]),
        [None, None]
    );
}

/// Only critical cycles: an exchange that reads an overwritten value is none.
#[test]
fn critical_outcomes_alone_can_be_asked_for() {
    let (lines, said) = distinguish(&["ptx", "sc", "--critical"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(lines[0]["found"][0]["size"], 4, "{lines:?}");
    let alphabet = lines[0]["alphabet"].as_str().expect("text");
    assert!(alphabet.ends_with(
        "only outcomes that no interleaving shows, while each location alone behaves like memory"
    ));
}

#[test]
fn a_broken_mapping_is_violated() {
    let (lines, said) = distinguish(&["ptx", "cuda", "--mapping", "cuda-ptx-erratum"]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert_eq!(lines[0]["found"][0]["relation"], "violated", "{lines:?}");
}

#[test]
fn models_that_have_nothing_in_common_are_refused() {
    for (arguments, message) in [
        (
            &["ptx", "c11"][..],
            "`ptx` judges PTX assembly, `c11` judges C11 atomics, and no mapping",
        ),
        (
            &["ptx", "cuda", "--mapping", "opencl-ptx"],
            "mapping `opencl-ptx` does not map CUDA C++",
        ),
        (&["ptx", "rc12"], "there is no model `rc12`"),
        (&["none.cat", "ptx"], "cannot read `none.cat`"),
        (&["ptx", "sc", "--size", "0"], "0 is not in 1..=6"),
        (
            &["ptx", "sc", "--model", "ptx"],
            "`distinguish` takes its two models as arguments, without `--model`",
        ),
        (&["ptx", "sc", "--size", "7"], "7 is not in 1..=6"),
        (
            &["ptx", "sc", "--mapping", "ptx-ptx"],
            "there is no mapping `ptx-ptx`",
        ),
        (
            &["c11", "rc11", "--with", "barrier"],
            "`--with barrier` needs barriers, and C11 atomics has none",
        ),
        (
            &["ptx", "sc", "--with", "plain"],
            "needs non-atomic accesses other than weak ones",
        ),
        (
            &["cuda", "cuda-17", "--with", "branch,dep"],
            "`cuda-17` calls some programs undefined",
        ),
        (
            &["ptx", "--suite", "--with", "barrier"],
            "a suite cannot have barriers",
        ),
        (
            &["ptx", "sc", "--with", "barriers"],
            "invalid value 'barriers' for '--with <LETTERS>'",
        ),
        (
            &["c11", "rc11", "--with", "sys"],
            "`--with sys` needs system scope, and C11 atomics has none",
        ),
        (
            &["c11", "rc11", "--with", "red"],
            "`--with red` needs reductions that return nothing",
        ),
        (
            &["opencl", "opencl-3.1", "--with", "surface"],
            "`--with surface` needs surfaces",
        ),
        (
            &["ptx", "--suite", "--with", "red"],
            "a suite cannot have reductions",
        ),
        (&["ptx", "--suite", "--critical"], "cannot be used with"),
        (
            &["ptx", "sc", "--report", "junit=a.xml"],
            "`junit` is a format of `check`",
        ),
    ] {
        let (lines, said) = distinguish(arguments);
        assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.err);
        assert!(
            lines.is_empty() && said.err.contains(message),
            "{arguments:?}: {}",
            said.err
        );
    }
}

#[test]
fn a_suite_has_minimal_tests_and_says_which_clauses_they_show() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("suite");
    let out = out.to_str().expect("UTF-8");
    let arguments = ["sc", "--suite", "--size", "2", "-o", out];
    let (lines, said) = distinguish(&arguments);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let [suite] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    assert_eq!(
        (&suite["model"], &suite["searched"], &suite["complete"]),
        (&"sc".into(), &2.into(), &true.into())
    );
    let tests = suite["tests"].as_array().expect("a list");
    let unshown = suite["unshown"].as_array().expect("a list");
    let named = |shape: &str| {
        tests
            .iter()
            .find(|t| t["test"] == shape)
            .unwrap_or_else(|| panic!("no {shape}: {tests:?}"))
    };
    assert!(
        named("Wx+Ux")["clauses"]
            .as_array()
            .expect("a list")
            .contains(&"axiom Atomicity".into()),
        "{tests:?}"
    );
    let files = std::fs::read_dir(out).expect("written").count();
    assert_eq!(
        files,
        tests.len() + unshown.iter().filter(|u| !u["test"].is_null()).count()
    );
    let said = fencepost(Path::new("."), &["check", "--engine", "both", out]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    // Existing files are not overwritten without a request.
    let (_, said) = distinguish(&arguments);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(
        said.err.contains("exists and is left as it is"),
        "{}",
        said.err
    );
    assert_eq!(
        distinguish(&[&arguments[..], &["--force"]].concat()).1.code,
        Some(0)
    );
}

#[test]
fn a_suite_is_of_one_model() {
    for (arguments, message) in [
        (&["ptx"][..], "required arguments"),
        (&["ptx", "sc", "--suite"], "cannot be used with"),
        (&["ptx", "--suite", "--both"], "cannot be used with"),
        (&["ptx", "sc", "-o", "x"], "cannot be used with"),
        (
            &["cuda", "--suite", "--mapping", "cuda-ptx"],
            "not behind mapping `cuda-ptx`",
        ),
    ] {
        let (lines, said) = distinguish(arguments);
        assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.err);
        assert!(
            lines.is_empty() && said.err.contains(message),
            "{arguments:?}: {}",
            said.err
        );
    }
    // If all programs were examined, time may still run out before all clauses were tested.
    let (lines, said) = distinguish(&["ptx", "--suite", "--size", "2", "--timeout", "300ms"]);
    assert_eq!(said.code, Some(3), "{}", said.err);
    assert!(
        lines[0]["late"].as_u64().is_some_and(|late| late > 0),
        "{lines:?}"
    );
    let (lines, said) = distinguish(&["ptx", "--suite", "--size", "5", "--timeout", "1s"]);
    assert_eq!(said.code, Some(3), "{}", said.err);
    assert_eq!(lines[0]["complete"], false);
    assert!(
        lines[0]["searched"].as_u64().is_some_and(|size| size < 5),
        "{lines:?}"
    );
}
