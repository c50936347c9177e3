//! Tests how `action.yml` hands its inputs to the program. A script in the program's place writes
//! down its arguments.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

/// The script of the step that runs the program.
fn script() -> String {
    let action = fs::read_to_string("action.yml").expect("the action");
    let (_, step) = action.split_once("- name: Check\n").expect("the step");
    let (_, script) = step.split_once("run: |\n").expect("a script");
    script.to_owned()
}

/// The result of the step, and the arguments that the program got.
fn run(paths: &str, arguments: &str) -> (Output, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("fencepost");
    fs::write(
        &program,
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > words\nexit 3\n",
    )
    .expect("writable");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a script");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut bash = Command::new("bash");
    bash.args(["-e", "-o", "pipefail", "-c", &script()])
        .current_dir(folder.path())
        .env("PATH", format!("{}:{path}", folder.path().display()))
        .env("GITHUB_OUTPUT", folder.path().join("output"));
    for input in ["PROFILE", "JUNIT", "SARIF", "PARTITION"] {
        bash.env(input, "");
    }
    let output = bash
        .env("PATHS", paths)
        .env("ARGUMENTS", arguments)
        .output();
    let words = fs::read_to_string(folder.path().join("words")).unwrap_or_default();
    (
        output.expect("bash"),
        words.lines().map(str::to_owned).collect(),
    )
}

#[test]
fn arguments_in_quotes_stay_whole() {
    let (output, words) = run("a 'b c'", "--filter 'not tag = slow' $(touch made)");
    let expected = [
        "check",
        "--format",
        "github",
        "--filter",
        "not tag = slow",
        "$(touch",
        "made)",
        "a",
        "b c",
    ];
    assert_eq!(words, expected, "{output:?}");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[test]
fn without_inputs_only_the_format_is_given() {
    assert_eq!(run("", "").1, ["check", "--format", "github"]);
}

#[test]
fn a_quote_without_its_partner_checks_nothing() {
    let (output, words) = run("", "--filter 'not tag = slow");
    assert!(!output.status.success() && words.is_empty(), "{output:?}");
}
