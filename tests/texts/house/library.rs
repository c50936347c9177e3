//! Checks what the package brings to a program that uses it as a library.

use std::collections::BTreeSet;
use std::process::Command;

use super::root;

/// The packages that the package needs on this machine, with these features.
fn packages(features: &str) -> BTreeSet<String> {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--edges", "normal"])
        .args(["--package", "fencepost", "--prefix", "none"])
        .args(["--no-default-features", "--features", features])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let text = String::from_utf8(tree.stdout).expect("UTF-8");
    assert!(
        tree.status.success(),
        "{}",
        String::from_utf8_lossy(&tree.stderr)
    );
    text.lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect()
}

/// What only a program needs.
const OF_PROGRAMS: [&str; 8] = [
    "clap",
    "clap_mangen",
    "indicatif",
    "mimalloc",
    "signal-hook",
    "tempfile",
    "fencepost-parametric",
    "fencepost-streams",
];

#[test]
fn the_library_brings_no_command_line() {
    let library = packages("");
    for name in OF_PROGRAMS {
        assert!(!library.contains(name), "the library needs {name}");
    }
    for name in ["z3", "cudarc", "opencl3"] {
        assert!(!library.contains(name), "the library needs {name}");
    }
    assert!(library.contains("fencepost-engine"), "{library:?}");
}

#[test]
fn the_program_is_a_feature() {
    let program = packages("cli");
    for name in OF_PROGRAMS {
        assert!(program.contains(name), "the program lacks {name}");
    }
    assert!(!program.contains("z3"), "only the feature z3 links it");
    assert!(packages("device").contains("cudarc"));
}
