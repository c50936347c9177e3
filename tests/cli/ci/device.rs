//! `fencepost run --on` and `fencepost devices`.
//!
//! Tests that need a device are ignored by default. With an OpenCL driver: `cargo test --test cli
//! -- --ignored device`.

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

/// Runs the binary as if no driver were installed.
fn without_drivers(folder: &Folder, words: &[&str]) -> Said {
    let none = ["OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "OPENCL_VENDOR_PATH"];
    let mut command = folder.command(words);
    none.iter()
        .for_each(|name| _ = command.env(name, folder.path("")));
    command
        .output()
        .expect("the binary was built for this test")
        .into()
}

#[test]
fn without_a_device_nothing_is_run_and_that_is_said() {
    let folder = Folder::new(&[("sb.toml", SB)]);
    let (opencl, cuda) = ("no OpenCL ", "no CUDA ");
    let asked = [
        (["devices"].as_slice(), vec![opencl, cuda]),
        (&["run", "--on", "opencl", "sb.toml"], vec![opencl]),
        (&["run", "--on", "cuda", "sb.toml"], vec![cuda]),
    ];
    // An installed driver of CUDA cannot be hidden.
    let hidden =
        |wanted: &Vec<&str>| !wanted.contains(&cuda) || !Path::new("/dev/nvidiactl").exists();
    for (words, wanted) in asked.into_iter().filter(|row| hidden(&row.1)) {
        let said = without_drivers(&folder, words);
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(3), ""),
            "{words:?}: {}",
            said.err
        );
        assert!(
            wanted.iter().all(|wanted| said.err.contains(wanted)),
            "{words:?}: {}",
            said.err
        );
    }
}

#[test]
fn options_that_say_nothing_of_a_device_are_refused_with_one() {
    let folder = Folder::new(&[("sb.toml", SB)]);
    let refused = [
        (
            ["run", "sb.toml", "--on", "metal", "-q"],
            "expected opencl or cuda, or opencl:DEVICE",
        ),
        (
            ["run", "sb.toml", "--on", "opencl:", "-q"],
            "expected opencl or cuda, or opencl:DEVICE",
        ),
        (
            ["run", "sb.toml", "--instances", "0", "--on=opencl"],
            "expected a number",
        ),
        (
            ["run", "sb.toml", "--instances", "1e99", "--on=opencl"],
            "expected a number",
        ),
        (["run", "sb.toml", "--instances", "5", "-q"], "--on"),
        (["run", "sb.toml", "--time", "5s", "-q"], "--on"),
        (
            ["run", "sb.toml", "--resume=x", "--on", "opencl"],
            "--partition",
        ),
        (
            ["run", "sb.toml", "--runs=5", "--on", "opencl"],
            "cannot be used with",
        ),
        (
            ["run", "sb.toml", "--schedule=exhaustive", "--on", "opencl"],
            "cannot be used with",
        ),
    ];
    for (words, wanted) in refused {
        let said = folder.run(&words);
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(2), ""),
            "{words:?}: {}",
            said.err
        );
        assert!(
            said.err.contains(wanted),
            "{words:?}: `{wanted}` is missing in:\n{}",
            said.err
        );
    }
}

/// A result of the one test of a run, in one part.
fn result(seed: &str, runs: &str, observed: &str, reason: &str) -> String {
    let part =
        r#"{"number":1,"of":1,"pair":0,"here":1,"pairs":1,"answer":0,"answers":1,"whole":"d"}"#;
    format!(
        r#"{{"path":"t.toml","test":"T","model":"opencl","schedule":"device","runs":{runs},"complete":false,"observed":[{observed}],"not_observed":[],"ended":{{}},"memory":"on a","seed":{seed},"bound":null{reason},"part":{part}}}"#
    ) + "\n"
}

#[test]
fn results_of_one_test_are_added() {
    let folder = Folder::new(&[]);
    let outcome = |count: u32, allowed: &str| {
        format!(r#"{{"state":{{"x":"1"}},"count":{count},"allowed":{allowed}}}"#)
    };
    folder.write("a.jsonl", &result("1", "5", &outcome(5, "true"), ""));
    folder.write("b.jsonl", &result("2", "7", &outcome(7, "true"), ""));
    folder.write("find.jsonl", &result("3", "2", &outcome(2, "false"), ""));
    folder.write(
        "not.jsonl",
        &result("null", "null", "", r#","reason":"no such scope""#),
    );
    let merged = |files: &[&str]| folder.run(&[&["merge"], files].concat());
    let both = merged(&["a.jsonl", "b.jsonl"]);
    assert_eq!(both.code, Some(0), "{}", both.err);
    assert!(
        both.out.contains(r#""runs":12,"#) && both.out.contains(r#""count":12,"#),
        "{}",
        both.out
    );
    assert!(
        !both.out.contains("part") && both.out.contains(r#""seed":null"#),
        "{}",
        both.out
    );
    // A test that could not run in one place, but ran in another, is no gap.
    assert_eq!(merged(&["a.jsonl", "not.jsonl"]).code, Some(0));
    assert_eq!(merged(&["not.jsonl", "not.jsonl"]).code, Some(3));
    assert_eq!(merged(&["a.jsonl", "find.jsonl"]).code, Some(1));
    let twice = merged(&["a.jsonl", "b.jsonl", "a.jsonl"]);
    assert_eq!((twice.code, twice.out.as_str()), (Some(2), ""));
    assert!(twice.err.contains("occurs twice"), "{}", twice.err);
    // A result of the executor is not a result of a device.
    folder.write(
        "run.jsonl",
        &result("1", "5", "", "").replace("device", "random"),
    );
    assert!(
        merged(&["run.jsonl"])
            .err
            .contains("neither an answer nor a result of a device")
    );
}

/// The same in PTX.
const SB_IN_PTX: &str = r#"name = "SB"
condition = 'P0:a == 0 /\ P1:b == 0'
[memory]
x = { type = "s32" }
y = { type = "s32" }
[[thread]]
cta = 0
code = "st.relaxed.gpu x, 1; ld.relaxed.gpu a, y"
[[thread]]
cta = 1
code = "st.relaxed.gpu y, 1; ld.relaxed.gpu b, x"
"#;

/// A folder with a driver of CUDA written for this test; `None` if there is no C compiler.
fn with_driver() -> Option<Folder> {
    let folder = Folder::new(&[
        ("sb.toml", SB_IN_PTX),
        ("cl.toml", SB),
        ("driver.c", include_str!("driver.c")),
    ]);
    let compiled = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-w", "-o", "libcuda.so", "driver.c"])
        .current_dir(folder.path(""))
        .status();
    compiled
        .is_ok_and(|status| status.success())
        .then_some(folder)
}

/// Runs the binary with that driver, in the given mode.
fn run(folder: &Folder, driver: &str, words: &[&str]) -> Said {
    let mut command = folder.command(words);
    command
        .env("LD_LIBRARY_PATH", folder.path(""))
        .env("DRIVER", driver);
    command
        .output()
        .expect("the binary was built for this test")
        .into()
}

#[test]
fn what_a_driver_of_cuda_is_told_and_says_is_what_is_run() {
    let Some(folder) = with_driver() else { return };
    let devices = run(&folder, "", &["devices"]);
    assert!(
        devices
            .out
            .contains("cuda:0 No GPU (CUDA, driver 12.4), sm_90, 8 compute units"),
        "{}",
        devices.out
    );
    let words = [
        "run",
        "sb.toml",
        "--on",
        "cuda:0",
        "--instances",
        "1000",
        "--format",
        "jsonl",
    ];
    let seen = run(&folder, "", &words);
    assert_eq!(seen.code, Some(0), "{}", seen.err);
    for outcome in ["0,0", "0,1", "1,0", "1,1"] {
        let (a, b) = outcome.split_once(',').expect("two");
        let state = format!(r#"{{"state":{{"P0:a":"{a}","P1:b":"{b}"}},"count":"#);
        assert!(
            seen.out.contains(&state),
            "{state} is missing in {}",
            seen.out
        );
    }
    let find = run(
        &folder,
        "",
        &[&words[..], &["--model", "sc", "--repro-dir", "found", "-q"]].concat(),
    );
    assert_eq!(find.code, Some(1), "{}", find.err);
    let wanted =
        "cuda:0 No GPU (CUDA, driver 12.4) shows outcomes that sc forbids: P0:a = 0, P1:b = 0";
    assert!(find.err.contains(wanted), "{}", find.err);
    let written = std::fs::read_dir(folder.path("found"))
        .expect("a folder")
        .next()
        .expect("one")
        .expect("one");
    for (file, wanted) in [
        ("kernel.ptx", "st.relaxed.gpu.global.s32"),
        ("find.txt", "--on cuda:0 --model sc"),
    ] {
        let text = std::fs::read_to_string(written.path().join(file)).expect(file);
        assert!(text.contains(wanted), "{file}:\n{text}");
    }
}

#[test]
fn a_driver_of_cuda_that_fails_is_told_and_the_other_tests_go_on() {
    let Some(folder) = with_driver() else { return };
    let none = run(&folder, "none", &["run", "sb.toml", "--on", "cuda"]);
    assert_eq!(
        (none.code, none.out.as_str()),
        (Some(3), ""),
        "{}",
        none.err
    );
    assert!(
        none.err.contains("no CUDA device was found"),
        "{}",
        none.err
    );
    let failures = [
        (
            "refuses",
            "the compiler of the device refuses the kernel: ptxas application ptx input, line 7",
        ),
        (
            "full",
            "CUDA: memory: CUDA_ERROR_OUT_OF_MEMORY, out of memory",
        ),
        (
            "vanishes",
            "CUDA: the launch: CUDA_ERROR_UNKNOWN, something is wrong",
        ),
    ];
    for (driver, wanted) in failures {
        let said = run(
            &folder,
            driver,
            &[
                "run", "sb.toml", "cl.toml", "--on", "cuda", "--format", "jsonl",
            ],
        );
        assert_eq!(
            (said.code, said.out.lines().count()),
            (Some(3), 2),
            "{driver}: {}",
            said.err
        );
        assert!(
            said.out.contains(wanted),
            "{driver}: `{wanted}` is missing in\n{}",
            said.out
        );
        assert!(
            said.out.contains("it is not in PTX"),
            "{driver}: {}",
            said.out
        );
    }
}

#[test]
#[ignore = "needs an OpenCL device"]
fn a_run_that_was_cut_short_goes_on() {
    let files = ["A", "B", "C"].map(|name| {
        (
            format!("{name}.toml"),
            SB.replace("\"SB\"", &format!("\"{name}\"")),
        )
    });
    let folder = Folder::new(
        &files
            .each_ref()
            .map(|(name, text)| (name.as_str(), text.as_str())),
    );
    let run = |seed: &str, more: &[&str]| {
        let words = [
            "run",
            ".",
            "--on",
            "opencl",
            "--instances",
            "1e4",
            "--partition",
            "hash:1/1",
            "--seed",
            seed,
        ];
        folder.run(&[&words, more].concat())
    };
    let whole = run("0", &["--format", "jsonl"]);
    assert_eq!(
        (whole.code, whole.out.lines().count()),
        (Some(0), 3),
        "{}",
        whole.err
    );
    let first = whole.out.lines().next().expect("a line");
    // Keeps half of the second line.
    folder.write("cut.jsonl", &whole.out[..first.len() + 40]);
    let rest = run("0", &["--format", "jsonl", "--resume", "cut.jsonl"]);
    assert_eq!(
        (rest.code, rest.out.lines().count()),
        (Some(0), 3),
        "{}",
        rest.err
    );
    assert_eq!(
        rest.out.lines().next(),
        Some(first),
        "what was there is told again as it was"
    );
    folder.write("rest.jsonl", &rest.out);
    assert_eq!(folder.run(&["merge", "rest.jsonl"]).code, Some(0));
    for (said, wanted) in [
        (
            run("7", &["--format", "jsonl", "--resume", "cut.jsonl"]),
            "another seed",
        ),
        (
            run("0", &["--resume", "cut.jsonl"]),
            "needs `--format jsonl`",
        ),
        (
            run(
                "0",
                &[
                    "--format",
                    "jsonl",
                    "--model",
                    "opencl-3.1",
                    "--resume",
                    "cut.jsonl",
                ],
            ),
            "belongs to another run",
        ),
    ] {
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(2), ""),
            "{}",
            said.err
        );
        assert!(
            said.err.contains(wanted),
            "`{wanted}` is missing in:\n{}",
            said.err
        );
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
    // The device decides which outcomes come.
    let find = (0..20)
        .map(|seed| run("sc", &seed.to_string()))
        .find(|said| said.code != Some(0));
    let find = find.expect("no weak outcome in four million instances");
    assert_eq!(find.code, Some(1), "{}", find.err);
    assert!(
        find.out.contains(r#""state":{"P0:a":"0","P1:b":"0"}"#),
        "{}",
        find.out
    );
    assert!(find.out.contains(r#""schedule":"device""#), "{}", find.out);
    assert!(
        find.err
            .contains("shows outcomes that sc forbids: P0:a = 0, P1:b = 0"),
        "{}",
        find.err
    );
    let written = std::fs::read_dir(folder.path("found"))
        .expect("a folder")
        .next()
        .expect("one")
        .expect("one");
    for (file, wanted) in [
        ("test.toml", "name = \"SB\""),
        ("kernel.cl", "kernel void test"),
        ("find.txt", "--on opencl:0 --model sc"),
    ] {
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
    let words = [
        "run",
        "litmus/opencl",
        "--on",
        "opencl",
        "--instances",
        "5e3",
        "--format",
        "jsonl",
        "-q",
    ];
    let said = fencepost(root, &words);
    // Some tests do not fit on a single device.
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
    assert!(run > 250, "{run} run, {refused} not");
}
