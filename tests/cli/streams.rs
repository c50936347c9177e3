//! The built binary from outside: usage errors, exit codes, streams.
//!
//! Other files test the decisions; this one tests properties that hold for all tests and models.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use super::{Said, command, fencepost};

fn here(arguments: &[&str]) -> Said {
    fencepost(Path::new("."), arguments)
}

#[test]
fn help_lists_the_commands_and_exit_codes() {
    let Said {
        code, out: text, ..
    } = here(&["--help"]);
    assert_eq!(code, Some(0));
    for word in [
        "check",
        "ask",
        "outcomes",
        "compare",
        "models",
        "import",
        "schema",
        "Exit codes",
        "70",
    ] {
        assert!(text.contains(word), "{word} is missing in:\n{text}");
    }
    for command in [
        "check", "ask", "outcomes", "compare", "models", "import", "schema",
    ] {
        assert_eq!(here(&[command, "--help"]).code, Some(0), "{command}");
    }
}

#[test]
fn the_version_is_told() {
    let output = here(&["--version"]);
    assert_eq!(
        output.out,
        format!("fencepost {}\n", env!("CARGO_PKG_VERSION"))
    );
}

/// A file that is no library in place of libz3: only an engine that opens libz3 finds out.
#[cfg(all(target_os = "linux", target_arch = "x86_64", feature = "z3"))]
#[test]
fn libz3_is_loaded_where_it_is_asked_and_missed_there() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["libz3.so.5.3", "libz3.so"] {
        fs::write(folder.path().join(name), "no library").expect("writable");
    }
    let test = "litmus/ptx/01-coherence/CoRW+rlx.gpu+rlx.gpu.toml";
    let with = |engine| {
        let arguments = ["check", "--engine", engine, test];
        Said::from(
            command(Path::new("."), &arguments)
                .env("LD_LIBRARY_PATH", folder.path())
                .output()
                .expect("it starts"),
        )
    };
    for engine in ["auto", "sat", "enumerate"] {
        let said = with(engine);
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{engine}");
    }
    for engine in ["symbolic", "both"] {
        let said = with(engine);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{engine}");
        for words in [
            "error[wrong-z3]",
            "libz3 cannot be loaded",
            "libz3.so.5.3",
            "LD_LIBRARY_PATH",
            "other engines",
        ] {
            assert!(said.err.contains(words), "{engine}: {}", said.err);
        }
    }
}

#[test]
fn wrong_usage_is_told_on_stderr() {
    let cases: [(&[&str], &str); 12] = [
        (&[], "Usage"),
        (&["chekc"], "check"),
        (&["check", "--timeout", "10"], "a number and a unit"),
        (&["check", "--timeout", "0s"], "no limit"),
        (&["check", "--format", "xml"], "jsonl"),
        (&["check", "--report", "jsonl"], "FORMAT=FILE"),
        (&["check", "--report", "xml=a"], "xml"),
        (&["check", "--set", "dep"], "OPTION=VALUE"),
        (&["check", "--jobs", "0"], "0"),
        (&["check", "--bound", "many"], "many"),
        (&["check", "--engine", "z3"], "symbolic"),
        (&["ask"], "TEST"),
    ];
    for (arguments, word) in cases {
        let output = here(arguments);
        assert_eq!(output.code, Some(2), "{arguments:?}");
        assert!(output.err.contains(word), "{arguments:?}: {}", output.err);
        assert_eq!(output.out, "", "{arguments:?}");
    }
}

#[test]
fn options_of_models_are_checked_before_anything_is_read() {
    let output = here(&[
        "check",
        "missing",
        "--set",
        "depp=value",
        "--set",
        "dep=values",
    ]);
    assert_eq!(output.code, Some(2));
    let text = output.err;
    assert!(text.contains("did you mean `dep`?"), "{text}");
    assert!(text.contains("did you mean `value`?"), "{text}");
    assert!(!text.contains("missing"), "{text}");
}

#[test]
fn a_missing_file_is_invalid_input() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["check", "ask", "outcomes", "import"] {
        let output = fencepost(folder.path(), &[command, "gone.toml"]);
        assert_eq!(output.code, Some(2), "{command}");
        assert!(
            output.err.contains("`gone.toml` does not exist"),
            "{command}: {}",
            output.err
        );
    }
}

#[test]
fn an_empty_folder_has_no_tests() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("Cargo.toml"), "[package]").unwrap();
    for arguments in [
        &["check"][..],
        &["check", "."],
        &["check", ".", "--format", "jsonl"],
        &["import", "."],
    ] {
        let output = fencepost(folder.path(), arguments);
        assert_eq!(output.code, Some(4), "{arguments:?}");
        assert!(output.err.contains("no test matched"), "{}", output.err);
    }
    let output = fencepost(folder.path(), &["check", "--format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(
        (&value["version"], &value["answers"]),
        (&serde_json::json!(1), &serde_json::json!([]))
    );
}

#[test]
fn a_file_that_is_no_test_is_invalid_input() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.toml"), "this is = no test").unwrap();
    fs::write(folder.path().join("b.litmus"), [0xff, 0xfe, 0x00]).unwrap();
    let output = fencepost(folder.path(), &["check", "--format", "jsonl"]);
    assert_eq!(output.code, Some(2));
    assert_eq!(output.out, "");
    let text = output.err;
    assert!(
        text.contains("a.toml") && text.contains("b.litmus"),
        "{text}"
    );
}

#[test]
fn an_unknown_model_is_invalid_input() {
    let output = here(&["models", "no-such-model"]);
    assert_eq!(output.code, Some(2));
    assert!(
        output.err.contains("there is no model `no-such-model`"),
        "{}",
        output.err
    );
    let output = here(&["models", "gone/missing.cat"]);
    assert_eq!(output.code, Some(2));
    assert!(output.err.contains("missing.cat"), "{}", output.err);
}

#[test]
fn a_report_that_cannot_be_written_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let output = fencepost(folder.path(), &["check", "--report", "jsonl=."]);
    assert_eq!(output.code, Some(2));
    assert!(output.err.contains("cannot write"), "{}", output.err);
}

#[test]
fn reports_go_beside_the_main_output() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "check",
        "--report",
        "json=a.json",
        "--report",
        "human=a.txt",
        "--color",
        "always",
    ];
    assert_eq!(fencepost(folder.path(), &arguments).code, Some(4));
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("a.json")).unwrap()).unwrap();
    assert_eq!(json["summary"]["answers"], 0);
    // Files have no colours.
    assert_eq!(
        fs::read_to_string(folder.path().join("a.txt")).unwrap(),
        "0 answers\n"
    );
}

#[test]
fn colours_are_for_terminals_unless_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let coloured = |arguments: &[&str]| fencepost(folder.path(), arguments).out.contains('\u{1b}');
    assert!(!coloured(&["check"]));
    assert!(coloured(&["check", "--color", "always"]));
    assert!(!coloured(&["check", "--color", "never"]));
}

#[test]
fn the_schema_is_json() {
    let output = here(&["schema"]);
    assert_eq!(output.code, Some(0));
    serde_json::from_str::<serde_json::Value>(&output.out).expect("the schema is JSON");
}

#[test]
fn standard_input_is_a_test_file() {
    let mut command = command(Path::new("."), &["check", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"neither = 'TOML test nor litmus'")
        .unwrap();
    let output = Said::from(child.wait_with_output().unwrap());
    assert_eq!(output.code, Some(2));
    assert!(output.err.contains("<stdin>"), "{}", output.err);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_without_end_is_not_read() {
    let output = here(&["check", "/dev/zero"]);
    assert_eq!(output.code, Some(2));
    assert!(
        output.err.contains("only regular files are read"),
        "{}",
        output.err
    );
}

#[cfg(unix)]
#[test]
fn a_reader_that_leaves_ends_the_output_quietly() {
    for arguments in [
        &["--help"][..],
        &["schema"],
        &["models"],
        &["check", "--format", "json"],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = command(folder.path(), arguments);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = Said::from(child.wait_with_output().unwrap());
        assert!(
            !output.err.contains("panic"),
            "{arguments:?}: {}",
            output.err
        );
        assert!(
            !output.err.contains("pipe"),
            "{arguments:?}: {}",
            output.err
        );
        assert!(
            matches!(output.code, Some(0 | 4)),
            "{arguments:?}: {:?}",
            output.code
        );
    }
}

#[test]
fn tests_that_only_the_executor_is_asked_about_run() {
    let lock = "litmus/kernels/lock-in-a-warp.toml";
    let told = here(&["run", lock, "--runs", "20"]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.out.contains("ended: "), "{}", told.out);
    let told = here(&[
        "run",
        lock,
        "--scheduling",
        "lockstep",
        "--schedule",
        "exhaustive",
    ]);
    assert!(told.out.contains("livelock"), "{}", told.out);
    // The models are not applied to them.
    assert_eq!(here(&["check", lock]).code, Some(4));
}
