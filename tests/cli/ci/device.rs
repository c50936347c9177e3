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
        (["run", "sb.toml", "--resume=x", "--on", "opencl"], "--partition"),
        (["run", "sb.toml", "--runs=5", "--on", "opencl"], "cannot be used with"),
        (["run", "sb.toml", "--schedule=exhaustive", "--on", "opencl"], "cannot be used with"),
    ];
    for (words, wanted) in refused {
        let said = folder.run(&words);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{words:?}: {}", said.err);
        assert!(said.err.contains(wanted), "{words:?}: `{wanted}` is missing in:\n{}", said.err);
    }
}

/// A result of the one test of a run, in one part.
fn result(seed: &str, runs: &str, observed: &str, reason: &str) -> String {
    let part = r#"{"number":1,"of":1,"pair":0,"here":1,"pairs":1,"answer":0,"answers":1,"whole":"d"}"#;
    format!(
        r#"{{"path":"t.toml","test":"T","model":"opencl","schedule":"device","runs":{runs},"complete":false,"observed":[{observed}],"not_observed":[],"ended":{{}},"memory":"on a","seed":{seed},"bound":null{reason},"part":{part}}}"#
    ) + "\n"
}

#[test]
fn results_of_one_test_are_added() {
    let folder = Folder::new(&[]);
    let outcome =
        |count: u32, allowed: &str| format!(r#"{{"state":{{"x":"1"}},"count":{count},"allowed":{allowed}}}"#);
    folder.write("a.jsonl", &result("1", "5", &outcome(5, "true"), ""));
    folder.write("b.jsonl", &result("2", "7", &outcome(7, "true"), ""));
    folder.write("find.jsonl", &result("3", "2", &outcome(2, "false"), ""));
    folder.write("not.jsonl", &result("null", "null", "", r#","reason":"no such scope""#));
    let merged = |files: &[&str]| folder.run(&[&["merge"], files].concat());
    let both = merged(&["a.jsonl", "b.jsonl"]);
    assert_eq!(both.code, Some(0), "{}", both.err);
    assert!(both.out.contains(r#""runs":12,"#) && both.out.contains(r#""count":12,"#), "{}", both.out);
    assert!(!both.out.contains("part") && both.out.contains(r#""seed":null"#), "{}", both.out);
    // What could not be run in one place, and was in another, is no gap.
    assert_eq!(merged(&["a.jsonl", "not.jsonl"]).code, Some(0));
    assert_eq!(merged(&["not.jsonl", "not.jsonl"]).code, Some(3));
    assert_eq!(merged(&["a.jsonl", "find.jsonl"]).code, Some(1));
    let twice = merged(&["a.jsonl", "b.jsonl", "a.jsonl"]);
    assert_eq!((twice.code, twice.out.as_str()), (Some(2), ""));
    assert!(twice.err.contains("is there twice"), "{}", twice.err);
    // A result of the executor is not one of a device.
    folder.write("run.jsonl", &result("1", "5", "", "").replace("device", "random"));
    assert!(merged(&["run.jsonl"]).err.contains("neither an answer nor a result on a device"));
}

#[test]
#[ignore = "needs an OpenCL device"]
fn a_run_that_was_cut_short_goes_on() {
    let files = ["A", "B", "C"].map(|name| (format!("{name}.toml"), SB.replace("\"SB\"", &format!("\"{name}\""))));
    let folder = Folder::new(&files.each_ref().map(|(name, text)| (name.as_str(), text.as_str())));
    let run = |seed: &str, more: &[&str]| {
        let words =
            ["run", ".", "--on", "opencl", "--instances", "1e4", "--partition", "hash:1/1", "--seed", seed];
        folder.run(&[&words, more].concat())
    };
    let whole = run("0", &["--format", "jsonl"]);
    assert_eq!((whole.code, whole.out.lines().count()), (Some(0), 3), "{}", whole.err);
    let first = whole.out.lines().next().expect("a line");
    // Half of the second line was written.
    folder.write("cut.jsonl", &whole.out[..first.len() + 40]);
    let rest = run("0", &["--format", "jsonl", "--resume", "cut.jsonl"]);
    assert_eq!((rest.code, rest.out.lines().count()), (Some(0), 3), "{}", rest.err);
    assert_eq!(rest.out.lines().next(), Some(first), "what was there is told again as it was");
    folder.write("rest.jsonl", &rest.out);
    assert_eq!(folder.run(&["merge", "rest.jsonl"]).code, Some(0));
    for (said, wanted) in [
        (run("7", &["--format", "jsonl", "--resume", "cut.jsonl"]), "of another seed"),
        (run("0", &["--resume", "cut.jsonl"]), "for `--format jsonl`"),
        (run("0", &["--format", "jsonl", "--model", "opencl-3.1", "--resume", "cut.jsonl"]), "of another run"),
    ] {
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{}", said.err);
        assert!(said.err.contains(wanted), "`{wanted}` is missing in:\n{}", said.err);
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
