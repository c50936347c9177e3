//! Limits of a single query: memory, and durations that no clock can hold. One query's limit does
//! not affect the others.

use std::fs;
use std::time::{Duration, Instant};

use crate::fencepost;

/// Message passing, which every engine decides at once.
const SMALL: &str = "name = \"Small\"\ncondition = 'P1:r0 == 1 && P1:r1 == 0'\nmemory = { x = 0, f = 0 }\n\
    [[thread]]\ncta = 0\ncode = \"st.weak x, 1; st.release.gpu f, 1\"\n\
    [[thread]]\ncta = 1\ncode = \"ld.acquire.gpu r0, f; ld.weak r1, x\"\n\
    [expect]\nptx = { reachability = \"forbidden\" }\n";

/// A launch with enough threads that each relation of its events takes megabytes.
fn big() -> String {
    "name = \"Big\"\ndialect = \"opencl\"\ncondition = 'x == 1'\nmemory = { x = { init = 0, svm = \"coarse\" } }\n\
     queues = { q = \"in-order\" }\n[[kernel]]\nname = \"K\"\ncode = \"*x = 1;\"\n\
     [[host]]\ncode = \"clEnqueueNDRangeKernel(q, K, NULL, 1000, 1); clFinish(q);\"\n\
     [expect]\nopencl = { reachability = \"allowed\" }\n"
        .to_owned()
}

#[test]
fn a_question_without_memory_takes_nothing_from_the_others() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.toml"), big()).unwrap();
    fs::write(folder.path().join("b.toml"), SMALL).unwrap();
    for jobs in ["1", "2"] {
        let report = format!("junit=report-{jobs}.xml");
        let limits = [
            "check",
            "--memory",
            "50M",
            "--no-cache",
            "--jobs",
            jobs,
            "--report",
            &report,
        ];
        let said = fencepost(folder.path(), &[&limits[..], &["--format", "tap"]].concat());
        assert_eq!(said.code, Some(3), "{}{}", said.out, said.err);
        assert!(
            said.out.contains("out of memory") && said.out.contains("`--memory` gives it more"),
            "{}",
            said.out
        );
        assert!(
            said.out.contains("ok 2 - b.toml: Small under ptx"),
            "{}",
            said.out
        );
        let written = fs::read_to_string(folder.path().join(format!("report-{jobs}.xml"))).unwrap();
        assert!(
            written.contains("out of memory") && written.contains("Small"),
            "{written}"
        );
    }
    let said = fencepost(
        folder.path(),
        &["check", "b.toml", "--memory", "50M", "--no-cache"],
    );
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
}

#[test]
fn a_slow_test_is_named_while_it_runs_and_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.toml"), big()).unwrap();
    fs::write(folder.path().join("b.toml"), SMALL).unwrap();
    let check = [
        "check",
        "--no-cache",
        "--timeout=2s",
        "--memory=none",
        "--slow-timeout",
    ];
    let said = fencepost(folder.path(), &[&check[..], &["20ms"]].concat());
    for line in [
        "slow: running for 0 s: a.toml: Big under opencl",
        "slow: ended after ",
    ] {
        assert!(said.err.contains(line), "{}", said.err);
    }
    assert!(!said.err.contains("b.toml"), "{}", said.err);
    for quiet in [&["none"][..], &["20ms", "-q"], &["5m"]] {
        let said = fencepost(folder.path(), &[&check[..], quiet].concat());
        assert!(!said.err.contains("slow:"), "{}", said.err);
    }
    let wrong = fencepost(folder.path(), &[&check[..], &["5"]].concat());
    assert_eq!(wrong.code, Some(2), "{}", wrong.err);
    fs::write(
        folder.path().join("fencepost.toml"),
        "slow-timeout = '20ms'",
    )
    .unwrap();
    let said = fencepost(folder.path(), &check[..4]);
    assert!(said.err.contains("slow: running"), "{}", said.err);
}

#[test]
fn limits_that_mean_nothing_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("b.toml"), SMALL).unwrap();
    for (option, expected) in [
        ("--timeout=9223372036854775807s", "above 100 years"),
        ("--timeout=5124095576030h", "above 100 years"),
        ("--timeout=18446744073709551615ms", "above 100 years"),
        ("--timeout=-1s", "a number and a unit"),
        ("--timeout=NaNs", "a number and a unit"),
        ("--timeout=1e30s", "is not a unit"),
        ("--memory=-1M", "a number and a unit"),
        ("--memory=50", "a number and a unit"),
        (
            "--memory=99999999999999999999T",
            "exceeds every address space",
        ),
        ("--memory=0M", "at least 1M"),
        ("--memory=sc", "a memory by name"),
        ("--jobs=-1", "invalid value"),
        ("--jobs=99999999999999999999", "invalid value"),
        ("--bound=4294967296", "invalid value"),
    ] {
        let said = fencepost(folder.path(), &["check", "b.toml", option]);
        assert!(
            said.code == Some(2) && said.err.contains(expected),
            "{option}: {}",
            said.err
        );
    }
    for option in [
        "--timeout=876000h",
        "--timeout=3153600000s",
        "--memory=none",
        "--memory=8388607T",
        "--jobs=65535",
    ] {
        let said = fencepost(folder.path(), &["check", "b.toml", option, "--no-cache"]);
        assert_eq!(said.code, Some(0), "{option}: {}", said.err);
    }
}

#[test]
fn what_no_output_shows_is_not_looked_for() {
    let race = "name = \"Race\"\ndialect = \"cuda\"\ncondition = 'x == 1'\nmemory = { x = 0 }\n\
        [[thread]]\nblock = 0\ncode = \"x = 1;\"\n[[thread]]\nblock = 1\ncode = \"x = 2;\"\n";
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("r.toml"), race).unwrap();
    let said = |more: &[&str]| fencepost(folder.path(), &[&["ask", "r.toml"], more].concat());
    assert!(said(&[]).out.contains("race-free"), "{}", said(&[]).out);
    assert!(
        said(&["-q", "--format", "jsonl"])
            .out
            .contains("\"remedy\":[")
    );
    let quiet = said(&["-q"]);
    assert_eq!(
        (quiet.code, quiet.out.contains("race-free")),
        (Some(0), false),
        "{}",
        quiet.out
    );
}

#[test]
fn types_have_a_depth() {
    let test = |code: &str| {
        let head = "name = \"t\"\ndialect = \"cuda\"\ncondition = 'x == 1'\nmemory = { x = 0 }\n[[thread]]\ncode = \"\"\"\n";
        format!("{head}{code}\nx = 1;\n\"\"\"\n")
    };
    let folder = tempfile::tempdir().unwrap();
    let typedefs = |n: usize| {
        let steps = (1..n)
            .map(|i| format!("typedef T{} T{i}[1];\n", i - 1))
            .collect::<String>();
        format!("typedef int T0;\n{steps}T{} a;", n - 1)
    };
    let structures = |n: usize| {
        let steps = (1..n)
            .map(|i| format!("struct S{i} {{ S{} m; }};\n", i - 1))
            .collect::<String>();
        format!("struct S0 {{ int m; }};\n{steps}S{} a;", n - 1)
    };
    for (few, many) in [
        (
            format!("int a{};", "[1]".repeat(90)),
            format!("int a{};", "[1]".repeat(50_000)),
        ),
        (
            format!("int {}p = nullptr;", "*".repeat(90)),
            format!("int {}p = nullptr;", "*".repeat(50_000)),
        ),
        (typedefs(90), typedefs(2_000)),
        (structures(90), structures(2_000)),
    ] {
        fs::write(folder.path().join("t.toml"), test(&few)).unwrap();
        let said = fencepost(folder.path(), &["check", "t.toml", "--no-cache"]);
        assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
        fs::write(folder.path().join("t.toml"), test(&many)).unwrap();
        let said = fencepost(folder.path(), &["check", "t.toml", "--no-cache"]);
        assert!(
            said.code == Some(2) && said.err.contains("nested too deeply"),
            "{}",
            said.err
        );
    }
}

/// The time of a run is that of all its stages together, however many outcomes it asks about.
#[test]
fn a_run_has_one_time_limit() {
    let mut test = String::from(
        "name = \"many\"\ncondition = 'P0:r0 == 1 /\\ P1:r1 == 2 /\\ P2:r2 == 4 /\\ P3:r3 == 1'\n\
         memory = { a = 0, b = 0, c = 0, d = 0 }\n",
    );
    for thread in 0..6 {
        let code: Vec<String> = (0..4)
            .map(|k| {
                let at = ["a", "b", "c", "d"][(thread + k) % 4];
                format!("atom.relaxed.gpu.add.u32 r{k}, [{at}], {}", thread + 1)
            })
            .collect();
        let code = code.join("; ");
        test += &format!("[[thread]]\ncta = {thread}\ncode = \"{code}\"\n");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.toml"), test).unwrap();
    let begun = Instant::now();
    let said = fencepost(folder.path(), &["run", "t.toml", "--timeout", "1s"]);
    assert!(
        said.out.contains("not complete: out of time"),
        "{}",
        said.out
    );
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
}
