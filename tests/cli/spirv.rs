//! Kernels in SPIR-V as input: modules as text and binary, and what is said of broken ones.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Said, fencepost};

fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus/kernels")
}

fn said(arguments: &[&str]) -> Said {
    fencepost(&kernels(), arguments)
}

#[test]
fn a_module_and_its_twin_are_told_apart() {
    let right = said(&["check", "--no-cache", "message-passing.spvasm"]);
    assert_eq!(right.code, Some(0), "{}{}", right.out, right.err);
    assert!(right.out.contains("1 race-free"), "{}", right.out);
    let racy = said(&["check", "--no-cache", "message-passing.relaxed.spvasm"]);
    assert_eq!(racy.code, Some(1), "{}{}", racy.out, racy.err);
    // The place is that of the instruction, which names its line in the source.
    let place = "message-passing.relaxed.spvasm:65:";
    assert!(racy.out.contains(place), "{}", racy.out);
    assert!(racy.out.contains("OpLoad %uint %x"), "{}", racy.out);
}

#[test]
fn a_module_has_outcomes_under_both_families_of_models() {
    for model in ["opencl", "ptx"] {
        let arguments = [
            "outcomes",
            "message-passing.spvasm",
            "--model",
            model,
            "--format",
            "jsonl",
        ];
        let outcomes = said(&arguments);
        assert_eq!(outcomes.code, Some(0), "{}", outcomes.err);
        let expected = r#"{"state":{"x[0]":"1","flag[0]":"1","out[0]":"1"},"allowed":true"#;
        let one = outcomes.out.matches("\"allowed\":true").count() == 1;
        assert!(one, "no {expected} alone in {}", outcomes.out);
    }
    let runs = said(&["run", "message-passing.spvasm", "--runs", "20"]);
    assert_eq!(runs.code, Some(0), "{}{}", runs.out, runs.err);
}

#[test]
fn a_module_is_imported_as_opencl() {
    let imported = said(&["import", "message-passing.spvasm"]);
    assert_eq!(imported.code, Some(0), "{}", imported.err);
    let text = imported.out;
    assert!(text.contains("dialect = \"opencl\""), "{text}");
    assert!(text.contains("kernel void mp(global uint * x"), "{text}");
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("mp.toml"), &text).expect("writable");
    let again = fencepost(folder.path(), &["ask", "mp.toml", "--outcome", "out == 0"]);
    assert!(
        again.out.contains("forbidden"),
        "{}{}",
        again.out,
        again.err
    );
}

#[test]
fn advice_about_a_module_is_refused() {
    let advised = said(&["advise", "message-passing.relaxed.spvasm"]);
    assert_eq!(advised.code, Some(2), "{}{}", advised.out, advised.err);
    assert!(
        advised.err.contains("is a module of SPIR-V"),
        "{}",
        advised.err
    );
}

#[test]
fn broken_modules_are_errors_at_their_place() {
    let text = fs::read_to_string(kernels().join("message-passing.spvasm")).expect("readable");
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes, expected) in [
        ("empty.spv", Vec::new(), "0 bytes are less than its head"),
        ("word.spv", vec![0; 20], "it begins with 0x00000000"),
        ("long.spv", vec![0; 10 << 20], "it begins with 0x00000000"),
        (
            "image.spvasm",
            text.replace("Int64\n", "ImageBasic\n").into(),
            "image.spvasm:6:",
        ),
        (
            "none.spvasm",
            text.replace("OpEntryPoint", "OpEntry").into(),
            "is not an instruction",
        ),
        ("text.spvasm", vec![0xff; 40], "is not UTF-8"),
    ] {
        fs::write(folder.path().join(name), bytes).expect("writable");
        let said = fencepost(folder.path(), &["check", name]);
        assert_eq!(said.code, Some(2), "{name}: {}{}", said.out, said.err);
        assert!(said.err.contains(expected), "{name}: {}", said.err);
    }
}
