//! The tool for Compiler Explorer: the program, called as its base tool calls it.
//!
//! # Sources
//! - Compiler Explorer, docs/AddingATool.md, and its base tool: the configured options, then what
//!   the user types, then the file of the editor, in the folder of that file.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::{Said, fencepost};

/// The longest time of a tool, by default.
const LONGEST: Duration = Duration::from_millis(7500);

/// What an instance calls with a file in its editor.
fn pane(language: &str, file: &str, text: &str, typed: &[&str]) -> Said {
    let lines = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("editors/compiler-explorer")
            .join(format!("{language}.local.properties")),
    )
    .unwrap();
    let value = |key: &str| {
        let mut found = lines.lines().filter_map(|line| line.split_once('='));
        let line = found.find(|line| line.0 == key);
        line.unwrap_or_else(|| panic!("no {key}")).1
    };
    assert_eq!(value("tools"), "fencepost");
    assert_eq!(value("tools.fencepost.class"), "base-tool");
    assert_eq!(value("tools.fencepost.type"), "independent");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    fs::write(&path, text).unwrap();
    let options: Vec<&str> = value("tools.fencepost.options").split(' ').collect();
    let path = path.to_str().unwrap();
    let begun = Instant::now();
    let said = fencepost(folder.path(), &[&options, typed, &[path]].concat());
    assert!(begun.elapsed() < LONGEST, "{:?}", begun.elapsed());
    said
}

const RACY: &str = "__global__ void k(int *out) {\n  __shared__ int s[2];\n  s[threadIdx.x] = 1;\n\
    \x20 out[threadIdx.x] = s[1 - threadIdx.x];\n}\n";
const LAUNCH: [&str; 2] = ["--launch", "k<<<1, 2>>>(out[2])"];

#[test]
fn a_pane_shows_the_race_of_a_kernel_and_nothing_of_its_repair() {
    let racy = pane("cuda", "example.cu", RACY, &LAUNCH);
    assert_eq!(racy.code, Some(1), "{}{}", racy.out, racy.err);
    assert!(racy.out.contains("example.cu:"), "{}", racy.out);
    assert!(racy.out.contains("threads race on `s["), "{}", racy.out);
    let repaired = RACY.replace("= 1;\n", "= 1;\n  __syncthreads();\n");
    let repaired = pane("cuda", "example.cu", &repaired, &LAUNCH);
    assert_eq!(repaired.code, Some(0), "{}{}", repaired.out, repaired.err);

    let opencl = "__kernel void k(__global int *a) { a[0] = get_global_id(0); }\n";
    let opencl = pane("openclc", "example.cl", opencl, &[]);
    assert_eq!(opencl.code, Some(1), "{}{}", opencl.out, opencl.err);
    let wrong = pane("cuda", "example.cu", "__global__ void k( {", &[]);
    assert!(
        wrong.code == Some(2) && wrong.err.contains("example.cu:1"),
        "{}",
        wrong.err
    );
}
