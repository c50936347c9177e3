//! `fencepost run --on` and `fencepost devices`.
//!
//! Tests that need a device are ignored unless they are asked for; with an OpenCL driver:
//! `cargo test --test cli -- --ignored device`.

use super::Folder;
use crate::{Said, fencepost};
use std::path::Path;

/// Store buffering with relaxed operations.
const SB: &str = r#"name = "SB"
dialect = "opencl"
condition = 'P0:a == 0 /\ P1:b == 0'
memory = { x = { type = "atomic_int" }, y = { type = "atomic_int" } }
[[thread]]
work_group = 0
code = """
atomic_store_explicit(x, 1, memory_order_relaxed, memory_scope_device);
int a = atomic_load_explicit(y, memory_order_relaxed, memory_scope_device);
"""
[[thread]]
work_group = 1
code = """
atomic_store_explicit(y, 1, memory_order_relaxed, memory_scope_device);
int b = atomic_load_explicit(x, memory_order_relaxed, memory_scope_device);
"""
"#;

/// As if no driver were installed.
fn without_drivers(folder: &Folder, words: &[&str]) -> Said {
    let none = ["OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "OPENCL_VENDOR_PATH"];
    let mut command = folder.command(words);
    none.iter().for_each(|name| _ = command.env(name, folder.path("")));
    command.output().expect("the binary was built for this test").into()
}

#[test]
fn without_a_device_nothing_is_run_and_that_is_said() {
    let folder = Folder::new(&[("sb.toml", SB)]);
    for words in [["devices"].as_slice(), &["run", "--on", "opencl", "sb.toml"]] {
        let said = without_drivers(&folder, words);
        assert_eq!((said.code, said.out.as_str()), (Some(3), ""), "{words:?}: {}", said.err);
        assert!(said.err.contains("there is no OpenCL"), "{words:?}: {}", said.err);
    }
}

#[test]
fn options_that_say_nothing_of_a_device_are_refused_with_one() {
    let folder = Folder::new(&[("sb.toml", SB)]);
    let refused = [
        (["run", "sb.toml", "--on", "cuda", "-q"], "expected opencl, or opencl:DEVICE"),
        (["run", "sb.toml", "--on", "opencl:", "-q"], "expected opencl, or opencl:DEVICE"),
        (["run", "sb.toml", "--instances", "0", "--on=opencl"], "expected a number"),
        (["run", "sb.toml", "--instances", "1e99", "--on=opencl"], "expected a number"),
        (["run", "sb.toml", "--instances", "5", "-q"], "--on"),
        (["run", "sb.toml", "--time", "5s", "-q"], "--on"),
        (["run", "sb.toml", "--runs=5", "--on", "opencl"], "cannot be used with"),
        (["run", "sb.toml", "--schedule=exhaustive", "--on", "opencl"], "cannot be used with"),
    ];
    for (words, wanted) in refused {
        let said = folder.run(&words);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{words:?}: {}", said.err);
        assert!(said.err.contains(wanted), "{words:?}: `{wanted}` is missing in:\n{}", said.err);
    }
}

#[test]
#[ignore = "needs an OpenCL device"]
fn a_device_refutes_a_model_that_forbids_what_it_shows() {
    let folder = Folder::new(&[("sb.toml", SB)]);
    let run = |model: &str, seed: &str| {
        folder.run(&[
            "run",
            "sb.toml",
            "--on",
            "opencl",
            "--model",
            model,
            "--instances",
            "2e5",
            "--seed",
            seed,
            "--repro-dir",
            "found",
            "--format",
            "jsonl",
        ])
    };
    // Which outcomes come is up to the device.
    let find = (0..20).map(|seed| run("sc", &seed.to_string())).find(|said| said.code != Some(0));
    let find = find.expect("no weak outcome in four million instances");
    assert_eq!(find.code, Some(1), "{}", find.err);
    assert!(find.out.contains(r#""state":{"P0:a":"0","P1:b":"0"}"#), "{}", find.out);
    assert!(find.out.contains(r#""schedule":"device""#), "{}", find.out);
    assert!(find.err.contains("shows what sc forbids: P0:a = 0, P1:b = 0"), "{}", find.err);
    let written = std::fs::read_dir(folder.path("found")).expect("a folder").next().expect("one").expect("one");
    for (file, wanted) in
        [("test.toml", "name = \"SB\""), ("kernel.cl", "kernel void test"), ("find.txt", "--on opencl --model sc")]
    {
        let text = std::fs::read_to_string(written.path().join(file)).expect(file);
        assert!(text.contains(wanted), "{file}:\n{text}");
    }
    let said = run("opencl", "0");
    assert_eq!(said.code, Some(0), "{}", said.err);
}

#[test]
#[ignore = "needs an OpenCL device"]
fn devices_show_nothing_that_the_model_forbids() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let words = ["run", "litmus/opencl", "--on", "opencl", "--instances", "2e4", "--format", "jsonl", "-q"];
    let said = fencepost(root, &words);
    // Some tests are not for one device.
    assert_eq!(said.code, Some(3), "{}", said.err);
    assert!(!said.out.contains("\"allowed\":false"), "{}", said.out);
    let (mut run, mut refused) = (0, 0);
    for line in said.out.lines() {
        if line.contains("\"ended\":{}") {
            refused += 1;
            assert!(line.contains("\"reason\":\""), "{line}");
        } else {
            run += 1;
        }
    }
    assert!(run > 150 && run > 2 * refused, "{run} run, {refused} not");
}
