//! `--with nvcc`: the code that a compiler makes of a source file, told in lines of the source. A
//! script in the compiler's place hands out what nvcc 13.5 made of the files (`-O3 -lineinfo`).
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{Said, command};

const SCRIPT: &str = r#"#!/bin/sh
case "$*" in
*--version*) echo "Cuda compilation tools, release 13.5, V13.5.37" ;;
*--list-gpu*) echo sm_80 ;;
*)
    while [ "$1" != -o ]; do shift; done
    cp "$MODULE" "$2"
    ;;
esac
"#;

/// Checks a source file through the script. `module` is what the script makes of it.
fn check(source: &str, module: &str, options: &[&str]) -> Said {
    let folder = tempfile::tempdir().expect("a folder");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    fs::copy(
        tests.join("sources").join(source),
        folder.path().join(source),
    )
    .expect("a source");
    let script = folder.path().join("nvcc");
    fs::write(&script, SCRIPT).expect("writable");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a script");
    command(
        folder.path(),
        &[
            &["check", "--with", "nvcc", "--deny", "race", source],
            options,
        ]
        .concat(),
    )
    .env("NVCC", &script)
    .env("MODULE", tests.join("with").join(module))
    .output()
    .expect("the binary")
    .into()
}

#[test]
fn compiled_code_is_told_in_lines_of_its_source() {
    let said = check("block_reduction.bug.cu", "block_reduction.bug.ptx", &[]);
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    let told = said.out + &said.err;
    for text in [
        "warning[race]: `block_sum`: threads race on `_ZZ9block_sumPKiPiiE1s[",
        "block_reduction.bug.cu:11",
        "note: this is about the code that nvcc (Cuda compilation tools, release 13.5, V13.5.37)",
    ] {
        assert!(told.contains(text), "{text}: {told}");
    }
    // A change of the compiled code is none of the source.
    assert!(!told.contains("help:"), "{told}");
    let options = ["--format", "jsonl"];
    let said = check(
        "block_reduction.bug.cu",
        "block_reduction.bug.ptx",
        &options,
    );
    assert!(said.out.contains("\"verdict\":\"racy\""), "{}", said.out);
    assert!(!said.out.contains("remedy"), "{}", said.out);
}

#[test]
fn its_right_twin_is_race_free() {
    let said = check("block_reduction.cu", "block_reduction.ptx", &[]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(said.out.contains("1 race-free"), "{}", said.out);
}

#[test]
fn a_compiler_that_fails_is_an_error() {
    let said = check("block_reduction.cu", "no-such-module.ptx", &[]);
    assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
    assert!(
        said.err
            .contains("nvcc does not compile `block_reduction.cu`"),
        "{}",
        said.err
    );
}
