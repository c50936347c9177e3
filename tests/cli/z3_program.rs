//! Tests of the program `z3`, which a build without libz3 asks.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Said, command};

/// The program that `tools/get_z3.py` puts into the folder of libz3.
fn z3() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = std::env::var_os("FENCEPOST_Z3").map_or_else(|| root.join(".z3/z3"), PathBuf::from);
    assert!(
        path.is_file(),
        "{} is missing: run `python3 tools/get_z3.py .z3`, or set FENCEPOST_Z3",
        path.display()
    );
    path
}

fn with(z3: &Path, arguments: &[&str]) -> Said {
    let mut command = command(Path::new(env!("CARGO_MANIFEST_DIR")), arguments);
    command
        .env("FENCEPOST_Z3", z3)
        .env("FENCEPOST_NO_CACHE", "1");
    Said::from(command.output().expect("it starts"))
}

/// A program that knows its version, and answers questions with this script.
fn fake(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("z3");
    let head =
        "#!/bin/sh\nif [ \"$1\" = -version ]; then echo 'Z3 version 5.3.2 - 64 bit'; exit; fi\n";
    fs::write(&path, format!("{head}{script}\n")).expect("writable");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
    path
}

#[test]
fn the_program_gives_the_verdicts_of_libz3() {
    let said = with(
        &z3(),
        &[
            "check",
            "--engine",
            "symbolic",
            "litmus/ptx/06-causality",
            "litmus/cuda/range",
        ],
    );
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(said.out.contains("all met"), "{}", said.out);
}

#[test]
fn the_program_lists_outcomes_and_proves_for_every_launch() {
    let test = "litmus/ptx/06-causality/MP+rel.gpu+acq.gpu.toml";
    let outcomes = |engine| {
        with(
            &z3(),
            &["outcomes", "--model", "ptx", "--engine", engine, test],
        )
        .out
    };
    assert_eq!(outcomes("symbolic"), outcomes("sat"));
    let folder = tempfile::tempdir().expect("a folder");
    let kernel = folder.path().join("add.cu");
    let text = |index: &str| {
        format!(
            "__global__ void add(int *out, int n) {{\n  \
             int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) out[{index}] = i;\n}}\n"
        )
    };
    let path = kernel.to_str().expect("UTF-8");
    fs::write(&kernel, text("i")).expect("writable");
    let proved = with(&z3(), &["check", "--launch", "any", path]);
    assert_eq!(proved.code, Some(0), "{}{}", proved.out, proved.err);
    assert!(proved.out.contains("for every launch"), "{}", proved.out);
    fs::write(&kernel, text("i / 2")).expect("writable");
    let racy = with(&z3(), &["check", "--launch", "any", path]);
    assert!(
        racy.out.contains("race on `out["),
        "{}{}",
        racy.out,
        racy.err
    );
}

#[test]
fn a_missing_and_a_wrong_program_are_named_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let test = "litmus/ptx/01-coherence/CoRW+rlx.gpu+rlx.gpu.toml";
    let other = folder.path().join("z3");
    fs::write(&other, "").expect("writable");
    for (program, words) in [
        (Path::new("missing/z3"), "there is no such file"),
        (other.as_path(), "is not the program `z3`"),
    ] {
        let said = with(program, &["check", "--engine", "symbolic", test]);
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(2), ""),
            "{}",
            said.err
        );
        for words in [
            words,
            "pip install z3-solver",
            "FENCEPOST_Z3",
            "other engines",
        ] {
            assert!(said.err.contains(words), "{words}: {}", said.err);
        }
        // The engines of the build need no program.
        let said = with(program, &["check", test]);
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    }
}

/// Only where libz3 is not linked: an empty `PATH` has no `z3`.
#[cfg(not(feature = "z3"))]
#[test]
fn a_kernel_without_z3_gets_an_answer_for_its_launch_and_a_note() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "__global__ void k(int *out) { out[threadIdx.x] = 1; }\n";
    fs::write(folder.path().join("k.cu"), text).expect("writable");
    let mut command = command(folder.path(), &["check", "k.cu"]);
    command.env("PATH", "").env_remove("FENCEPOST_Z3");
    let said = Said::from(command.output().expect("it starts"));
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(
        said.out.contains("launch chosen: 1 race-free"),
        "{}",
        said.out
    );
    assert!(said.err.contains("pip install z3-solver"), "{}", said.err);
}

/// A program that answers wrongly in form decides nothing.
#[test]
fn a_broken_program_leaves_everything_undecided() {
    let folder = tempfile::tempdir().expect("a folder");
    let test = "litmus/ptx/01-coherence/CoRW+rlx.gpu+rlx.gpu.toml";
    for (script, words) in [
        ("exit 1", "ended without an answer"),
        ("cat > /dev/null; exit 0", "out of time"),
        ("echo '(error \"out of memory\")'; exit 1", "out of memory"),
        (
            "echo '(error \"line 1: no\")'; echo unsat; exit 1",
            "line 1: no",
        ),
        ("echo maybe; echo fencepost-end; sleep 1", "printed `maybe`"),
        // The end of the answer is missing.
        ("echo unsat; exit 0", "unsat"),
    ] {
        let program = fake(folder.path(), script);
        let said = with(
            &program,
            &[
                "check",
                "--engine",
                "symbolic",
                "--timeout",
                "2s",
                "--model",
                "ptx",
                test,
            ],
        );
        assert_eq!(said.code, Some(3), "{script}: {}{}", said.out, said.err);
        assert!(said.out.contains(words), "{script}: {}", said.out);
    }
}
