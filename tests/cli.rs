//! The built binary from outside: usage errors, exit codes, streams.
//!
//! What is decided is tested elsewhere; in here, what holds whatever the tests and models say.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs the binary in `folder`.
fn fencepost_in(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output()
        .expect("the binary was built for this test")
}

fn fencepost(arguments: &[&str]) -> Output {
    fencepost_in(Path::new("."), arguments)
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("stdout is UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("stderr is UTF-8")
}

#[test]
fn help_lists_the_commands_and_exit_codes() {
    let output = fencepost(&["--help"]);
    assert_eq!(code(&output), Some(0));
    let text = stdout(&output);
    for word in ["check", "ask", "outcomes", "compare", "models", "import", "schema", "Exit codes", "70"] {
        assert!(text.contains(word), "{word} is missing in:\n{text}");
    }
    for command in ["check", "ask", "outcomes", "compare", "models", "import", "schema"] {
        assert_eq!(code(&fencepost(&[command, "--help"])), Some(0), "{command}");
    }
}

#[test]
fn the_version_is_told() {
    let output = fencepost(&["--version"]);
    assert_eq!(stdout(&output), format!("fencepost {}\n", env!("CARGO_PKG_VERSION")));
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
        let output = fencepost(arguments);
        assert_eq!(code(&output), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(word), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
}

#[test]
fn options_of_models_are_checked_before_anything_is_read() {
    let output = fencepost(&["check", "missing", "--set", "depp=value", "--set", "dep=values"]);
    assert_eq!(code(&output), Some(2));
    let text = stderr(&output);
    assert!(text.contains("did you mean `dep`?"), "{text}");
    assert!(text.contains("did you mean `value`?"), "{text}");
    assert!(!text.contains("missing"), "{text}");
}

#[test]
fn a_missing_file_is_invalid_input() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["check", "ask", "outcomes", "import"] {
        let output = fencepost_in(folder.path(), &[command, "gone.toml"]);
        assert_eq!(code(&output), Some(2), "{command}");
        assert!(stderr(&output).contains("`gone.toml` does not exist"), "{command}: {}", stderr(&output));
    }
}

#[test]
fn an_empty_folder_has_no_tests() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("Cargo.toml"), "[package]").unwrap();
    for arguments in [&["check"][..], &["check", "."], &["check", ".", "--format", "jsonl"]] {
        let output = fencepost_in(folder.path(), arguments);
        assert_eq!(code(&output), Some(4), "{arguments:?}");
        assert!(stderr(&output).contains("no test matched"), "{}", stderr(&output));
    }
    let output = fencepost_in(folder.path(), &["check", "--format", "json"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&value["version"], &value["answers"]), (&serde_json::json!(1), &serde_json::json!([])));
}

#[test]
fn a_file_that_is_no_test_is_invalid_input() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.toml"), "this is = no test").unwrap();
    fs::write(folder.path().join("b.litmus"), [0xff, 0xfe, 0x00]).unwrap();
    let output = fencepost_in(folder.path(), &["check", "--format", "jsonl"]);
    assert_eq!(code(&output), Some(2));
    assert_eq!(stdout(&output), "");
    let text = stderr(&output);
    assert!(text.contains("a.toml") && text.contains("b.litmus"), "{text}");
}

#[test]
fn an_unknown_model_is_invalid_input() {
    let output = fencepost(&["models", "no-such-model"]);
    assert_eq!(code(&output), Some(2));
    assert!(stderr(&output).contains("there is no model `no-such-model`"), "{}", stderr(&output));
    let output = fencepost(&["models", "gone/missing.cat"]);
    assert_eq!(code(&output), Some(2));
    assert!(stderr(&output).contains("missing.cat"), "{}", stderr(&output));
}

#[test]
fn a_report_that_cannot_be_written_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let output = fencepost_in(folder.path(), &["check", "--report", "jsonl=no/such/folder"]);
    assert_eq!(code(&output), Some(2));
    assert!(stderr(&output).contains("cannot write"), "{}", stderr(&output));
}

#[test]
fn reports_go_beside_the_main_output() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["check", "--report", "json=a.json", "--report", "human=a.txt", "--color", "always"];
    assert_eq!(code(&fencepost_in(folder.path(), &arguments)), Some(4));
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("a.json")).unwrap()).unwrap();
    assert_eq!(json["summary"]["answers"], 0);
    // No colours in a file.
    assert_eq!(fs::read_to_string(folder.path().join("a.txt")).unwrap(), "0 answers\n");
}

#[test]
fn colours_are_for_terminals_unless_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let coloured = |arguments: &[&str]| stdout(&fencepost_in(folder.path(), arguments)).contains('\u{1b}');
    assert!(!coloured(&["check"]));
    assert!(coloured(&["check", "--color", "always"]));
    assert!(!coloured(&["check", "--color", "never"]));
}

#[test]
fn the_schema_is_json() {
    let output = fencepost(&["schema"]);
    assert_eq!(code(&output), Some(0));
    serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("the schema is JSON");
}

#[test]
fn standard_input_is_a_test_file() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .args(["check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"neither = 'TOML test nor litmus'").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), Some(2));
    assert!(stderr(&output).contains("<stdin>"), "{}", stderr(&output));
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_without_end_is_not_read_for_ever() {
    let output = fencepost(&["check", "/dev/zero"]);
    assert_eq!(code(&output), Some(2));
    assert!(stderr(&output).contains("larger than"), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn a_reader_that_leaves_ends_the_output_quietly() {
    for arguments in [&["--help"][..], &["schema"], &["models"], &["check", "--format", "json"]] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_fencepost"))
            .args(arguments)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(!stderr(&output).contains("panic"), "{arguments:?}: {}", stderr(&output));
        assert!(!stderr(&output).contains("pipe"), "{arguments:?}: {}", stderr(&output));
        assert!(matches!(code(&output), Some(0 | 4)), "{arguments:?}: {:?}", output.status);
    }
}

#[test]
fn tests_that_only_the_executor_is_asked_about_run() {
    let lock = "litmus/kernels/lock-in-a-warp.toml";
    let told = fencepost(&["run", lock, "--runs", "20"]);
    assert_eq!(code(&told), Some(0), "{}", stderr(&told));
    assert!(stdout(&told).contains("ended: "), "{}", stdout(&told));
    let told = fencepost(&["run", lock, "--scheduling", "lockstep", "--schedule", "exhaustive"]);
    assert!(stdout(&told).contains("livelock"), "{}", stdout(&told));
    // The models are not asked about them.
    assert_eq!(code(&fencepost(&["check", lock])), Some(4));
}
