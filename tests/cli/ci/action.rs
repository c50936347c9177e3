//! Tests the scripts of `action.yml`: how it hands its inputs to the program (a script in the
//! program's place writes down its arguments), and how it downloads the program from a release (a
//! folder in its place).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// The script of a step.
fn script(step: &str) -> String {
    let action = fs::read_to_string("action.yml").expect("the action");
    let head = format!("- name: {step}\n");
    let (_, step) = action.split_once(&head).expect("the step");
    let (_, script) = step.split_once("run: |\n").expect("a script");
    let end = script.find("\n    - name:").unwrap_or(script.len());
    script[..end].to_owned()
}

/// The result of the step, and the arguments that the program got.
fn run(paths: &str, arguments: &str) -> (Output, Vec<String>) {
    run_with(&[], paths, arguments)
}

/// As [`run`], with further inputs.
fn run_with(inputs: &[(&str, &str)], paths: &str, arguments: &str) -> (Output, Vec<String>) {
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
    bash.args(["-e", "-o", "pipefail", "-c", &script("Check")])
        .current_dir(folder.path())
        .env("PATH", format!("{}:{path}", folder.path().display()))
        .env("GITHUB_OUTPUT", folder.path().join("output"));
    for input in ["PROFILE", "JUNIT", "SARIF", "PARTITION", "SUMMARY"] {
        bash.env(input, "");
    }
    for (input, value) in inputs {
        bash.env(input, value);
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
fn a_summary_goes_to_the_page_of_the_job() {
    let inputs = [("SUMMARY", "true"), ("GITHUB_STEP_SUMMARY", "page.md")];
    let expected = [
        "check",
        "--format",
        "github",
        "--report",
        "markdown=page.md",
    ];
    assert_eq!(run_with(&inputs, "", "").1, expected);
}

#[test]
fn a_quote_without_its_partner_checks_nothing() {
    let (output, words) = run("", "--filter 'not tag = slow");
    assert!(!output.status.success() && words.is_empty(), "{output:?}");
}

/// A folder like that of a release, with the program `text` for a target and its checksum.
fn release(target: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let version = folder.path().join("v1.2.3");
    fs::create_dir(&version).expect("writable");
    fs::write(version.join("fencepost"), text).expect("writable");
    let make = format!(
        "chmod +x fencepost && tar -czf fencepost-{target}.tar.gz fencepost && \
         sha256sum fencepost-{target}.tar.gz > fencepost-{target}.tar.gz.sha256"
    );
    let made = Command::new("sh")
        .args(["-c", &make])
        .current_dir(&version)
        .status();
    assert!(made.expect("sh").success());
    folder
}

/// Downloads a version from a release to a folder.
fn download(release: &Path, version: &str, processor: &str, to: &Path) -> Output {
    Command::new("bash")
        .args(["-e", "-o", "pipefail", "-c", &script("Download")])
        .env("RELEASES", format!("file://{}", release.display()))
        .env("VERSION", version)
        .env("RUNNER_OS", "Linux")
        .env("RUNNER_ARCH", processor)
        .env("RUNNER_TEMP", to)
        .env("GITHUB_PATH", to.join("path"))
        .output()
        .expect("bash")
}

fn has_curl() -> bool {
    let curl = Command::new("curl").arg("--version").output();
    curl.is_ok_and(|done| done.status.success())
}

#[test]
fn a_release_is_downloaded_once_and_checked() {
    if !has_curl() {
        eprintln!("curl is not there: the download is not tested");
        return;
    }
    for (target, processor) in [
        ("x86_64-unknown-linux-musl", "X64"),
        ("aarch64-unknown-linux-musl", "ARM64"),
    ] {
        let release = release(target, "#!/bin/sh\necho here\n");
        let to = tempfile::tempdir().expect("a folder");
        let output = download(release.path(), "v1.2.3", processor, to.path());
        assert!(output.status.success(), "{output:?}");
        let program = to.path().join("fencepost/bin/fencepost");
        let said = Command::new(&program).output().expect("it runs");
        assert_eq!(said.stdout, b"here\n");
        let path = fs::read_to_string(to.path().join("path")).expect("written");
        assert_eq!(path.trim_end(), program.parent().unwrap().to_str().unwrap());
        // What is there is not downloaded again.
        fs::remove_dir_all(release.path().join("v1.2.3")).expect("removable");
        let output = download(release.path(), "v1.2.3", processor, to.path());
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn a_program_with_another_checksum_is_not_installed() {
    if !has_curl() {
        eprintln!("curl is not there: the download is not tested");
        return;
    }
    let target = "x86_64-unknown-linux-musl";
    let release = release(target, "good");
    let other = release
        .path()
        .join(format!("v1.2.3/fencepost-{target}.tar.gz"));
    fs::write(other, "something else").expect("writable");
    let to = tempfile::tempdir().expect("a folder");
    let output = download(release.path(), "v1.2.3", "X64", to.path());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("::error::") && said.contains("checksum"),
        "{said}"
    );
    assert!(!to.path().join("fencepost/bin/fencepost").exists());
}

#[test]
fn what_cannot_be_downloaded_is_said() {
    let to = tempfile::tempdir().expect("a folder");
    let said = |version: &str, processor: &str| {
        let output = download(to.path(), version, processor, to.path());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    assert!(said("main", "X64").contains("`main` is no release"));
    assert!(said("v1.2.3", "RISCV").contains("set `build: true`"));
    assert!(!has_curl() || said("v1.2.3", "X64").contains("cannot be downloaded"));
}
