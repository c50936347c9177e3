//! Tests `fencepost run` from outside: expectations about runs, bad programs, schedules that do not
//! fit, and defects with their reproducers.

use std::fs;
use std::path::Path;

use testkit::suite::{files, is_long, sample, step};

use super::{Said, fencepost};

/// Message passing that the model forbids to fail.
const MP: &str = r#"name = "MP"
condition = 'P1:r0 == 1 /\ P1:r1 == 0'
memory = { x = 0, f = 0 }

[[thread]]
cta = 0
code = "st.weak x, 1; st.release.gpu f, 1"

[[thread]]
cta = 1
code = "ld.acquire.gpu r0, f; ld.weak r1, x"
"#;

/// A kernel of four threads with the given code.
fn kernel(code: &str, rest: &str) -> String {
    format!(
        "name = \"K\"\ndialect = \"cuda\"\nmemory = {{ x = 0, a = {{ size = 3 }}, b = {{ size = 4 }} }}\n\n[kernel]\nblock = 4\n\
         code = '''\nint i = threadIdx.x;\n{code}\n'''\n{rest}"
    )
}

/// Runs `fencepost run` on a test.
fn run(test: &str, arguments: &[&str]) -> Said {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("test.toml"), test).expect("written");
    fencepost(folder.path(), &[&["run", "test.toml"], arguments].concat())
}

/// Checks that every text is there.
#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
}

#[test]
fn what_tests_expect_of_runs_is_judged() {
    let test = |race: &str| {
        format!(
            "{MP}\n[[run]]\nmemory = \"weak\"\nschedule = \"exhaustive\"\nends = \"finished\"\nrace = \"{race}\"\ncondition = \"never\"\n"
        )
    };
    let met = run(&test("racy"), &["--runs", "10"]);
    assert_eq!(met.code, Some(0), "{}", met.err);
    let line = "line 14, weak, exhaustive: ends finished, racy, condition never";
    has(
        &met.out,
        &[&format!("as expected: {line}"), "1 expectation, all met"],
    );
    let unmet = run(&test("race-free"), &["--runs", "10"]);
    assert_eq!(unmet.code, Some(1), "{}", unmet.err);
    has(
        &unmet.out,
        &[
            "NOT MET: line 14, ",
            "expected no race: P",
            "1 expectation, 1 NOT MET",
        ],
    );
    let json = run(&test("race-free"), &["--runs", "10", "--format", "jsonl"]);
    has(
        &json.out,
        &[
            r#""expected":[{"line":14,"run":"weak, exhaustive: ends finished, race-free, condition never","met":false,"why":["#,
        ],
    );
    // The race appears once for any number of models.
    let both = run(
        &test("racy"),
        &["--runs", "10", "--model", "ptx", "--model", "sc"],
    );
    assert_eq!(both.out.matches("as expected").count(), 1, "{}", both.out);
}

#[test]
fn what_a_limit_cuts_is_undecided() {
    let steps = |n: u32| {
        format!("{MP}\n[[run]]\nschedule = \"exhaustive\"\ncondition = \"never\"\nsteps = {n}\n")
    };
    assert_eq!(run(&steps(10), &["--runs", "10"]).code, Some(0));
    let cut = run(&steps(1), &["--runs", "10"]);
    assert_eq!(cut.code, Some(3), "{}\n{}", cut.out, cut.err);
    has(&cut.out, &["undecided: line 14", "step limit"]);
}

#[test]
fn an_operation_that_a_limit_cuts_says_what_it_waits_for() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus/ptx-async/13-bulk-reductions/Peer.toml");
    let folder = tempfile::tempdir().expect("a folder");
    let name = "name=Peer-bulk+reduce+thread";
    let cut = [
        "run",
        path.to_str().expect("UTF-8"),
        "--filter",
        name,
        "--runs",
        "50",
        "--steps",
        "10",
    ];
    let said = fencepost(folder.path(), &cut);
    assert_eq!(said.code, Some(3), "{}\n{}", said.out, said.err);
    has(
        &said.out,
        &[
            "50 step-limit",
            "P0's copy 5 waits for the accesses of its operation at line 22",
        ],
    );
}

#[test]
fn check_says_who_carries_runs_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let test = format!("{MP}\n[[run]]\nends = \"finished\"\n");
    fs::write(folder.path().join("test.toml"), test).expect("written");
    let said = fencepost(folder.path(), &["check", "."]);
    assert_eq!(said.code, Some(4));
    has(
        &said.err,
        &[
            "1 test expects only runs of the executor",
            "`fencepost run`",
        ],
    );
}

#[test]
fn bad_programs_are_named_with_their_line_and_the_rest_is_told() {
    let stray = run(
        &kernel("if (i < 3) { b[i] = 1; } else { b[i] = a[i]; }", ""),
        &["--runs", "20"],
    );
    has(
        &stray.out,
        &["20 stray", "P3: line ", "reads outside memory"],
    );
    assert_eq!(stray.code, Some(0), "{}", stray.err);
    let divides = run(&kernel("b[i] = 6 / i;", ""), &["--runs", "20"]);
    has(
        &divides.out,
        &["20 division", "P0: line 9: `b[i] = 6 / i;` divides by zero"],
    );
    let large = run(
        &kernel("x = 1;", "").replace("block = 4", "block = 4096"),
        &["--runs", "20"],
    );
    has(&large.out, &["4096", "1024"]);
    assert!(
        !large.out.contains("the model:"),
        "no run is held against it: {}",
        large.out
    );
}

#[test]
fn what_was_observed_before_an_end_is_reported() {
    let code = "if (i == 0) { x = 1; }\nif (i == 1) { b[1] = 12 / (1 - atomicAdd(&x, 0)); }";
    let test = kernel(code, "").replace("dialect", "condition = 'b[1] == 12'\ndialect");
    let said = run(&test, &["--runs", "200", "--memory", "sc"]);
    has(
        &said.out,
        &[
            "12 ",
            " finished, ",
            " division",
            "divides by zero",
            "allowed",
        ],
    );
    let all = run(&test, &["--schedule", "exhaustive", "--memory", "sc"]);
    has(&all.out, &["12 ", " finished, ", " division", "line 11: "]);
}

#[test]
fn endless_kernels_end_and_say_who_spins() {
    let test = kernel(
        "b[i] = 1;\nif (i == 0) { while (atomicAdd(&x, 0) == 0) { } }",
        "",
    );
    let said = run(&test, &["--runs", "3", "--steps", "500", "--model", "ptx"]);
    has(
        &said.out,
        &[
            "3 step-limit",
            "did not end within 500 steps",
            "P0 spins in line 10 on `x`",
        ],
    );
    let all = run(
        &test,
        &["--schedule", "exhaustive", "--memory", "sc", "--trace"],
    );
    has(
        &all.out,
        &[
            "livelock",
            "P0 spins in line 10 on `x`",
            "… and from here on again and again:",
        ],
    );
}

#[test]
fn where_no_run_finishes_nothing_was_held_against_the_model() {
    let spins = "if (i == 0) { while (atomicAdd(&x, 0) == 0) { } }";
    let all = ["--schedule", "exhaustive", "--memory", "sc"];
    let hangs = run(&kernel(spins, ""), &all);
    assert_eq!(hangs.code, Some(3), "{}\n{}", hangs.out, hangs.err);
    has(
        &hangs.out,
        &["ended: ", "livelock", "undecided: no run finished"],
    );
    assert_eq!(
        run(&kernel(spins, ""), &["--runs", "3", "--steps", "500"]).code,
        Some(3)
    );
    let json = run(
        &kernel(spins, ""),
        &[&all[..], &["--format", "jsonl"]].concat(),
    );
    has(&json.out, &[r#""reason":"no run finished"#]);
    // Some run finishes.
    let some = run(
        &kernel(&format!("if (i == 1) {{ x = 1; }}\n{spins}"), ""),
        &all,
    );
    assert_eq!(some.code, Some(0), "{}\n{}", some.out, some.err);
    // The test expects that it hangs, in runs or under the model.
    for rest in [
        "[[run]]\nschedule = \"exhaustive\"\nends = \"livelock\"\n",
        "[expect]\ncuda = { liveness = { fair = \"hangs\" } }\n",
    ] {
        let said = run(&kernel(spins, rest), &all);
        assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    }
}

#[test]
fn a_schedule_of_another_test_is_no_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
    write("a.toml", MP);
    write("b.toml", &MP.replace("ld.weak r1, x", "ld.weak r1, f"));
    let recorded = fencepost(
        folder.path(),
        &["run", "a.toml", "--runs", "50", "--record", "a.json"],
    );
    assert_eq!(recorded.code, Some(0), "{}", recorded.err);
    let again = fencepost(
        folder.path(),
        &["run", "a.toml", "--schedule", "replay:a.json", "--trace"],
    );
    assert_eq!(again.code, Some(0), "{}", again.err);
    has(&again.out, &["a run to ", "st.release.gpu f, 1"]);
    let other = fencepost(
        folder.path(),
        &["run", "b.toml", "--schedule", "replay:a.json"],
    );
    assert_eq!(other.code, Some(2), "{}", other.out);
    has(
        &other.out,
        &["the recorded schedule belongs to another program, of test `MP`"],
    );
    write("c.json", "{ \"version\": 1 }");
    let broken = fencepost(
        folder.path(),
        &["run", "a.toml", "--schedule", "replay:c.json"],
    );
    assert_eq!(broken.code, Some(2));
    has(&broken.err, &["`c.json` is not a recorded schedule"]);
    let text = fs::read_to_string(folder.path().join("a.json")).expect("there");
    write(
        "d.json",
        &text.replacen("\"thread\": 0", "\"thread\": 7", 1),
    );
    let misfit = fencepost(
        folder.path(),
        &["run", "a.toml", "--schedule", "replay:d.json"],
    );
    assert_eq!(misfit.code, Some(2), "{}", misfit.out);
    has(
        &misfit.out,
        &["does not fit this test", "its thread cannot step"],
    );
}

#[test]
fn a_livelock_is_recorded_and_replayed() {
    let folder = tempfile::tempdir().expect("a folder");
    let test = kernel("if (i == 0) { while (atomicAdd(&x, 0) == 0) { } }", "");
    fs::write(folder.path().join("t.toml"), test).expect("written");
    let all = [
        "run",
        "t.toml",
        "--memory",
        "sc",
        "--schedule",
        "exhaustive",
        "--record",
        "l.json",
    ];
    has(&fencepost(folder.path(), &all).out, &["ended: 1 livelock"]);
    let again = fencepost(
        folder.path(),
        &["run", "t.toml", "--schedule", "replay:l.json"],
    );
    has(&again.out, &["under sc", "ended: 1 livelock", "P0 spins"]);
}

/// Follows the command in a reproducer.
fn follow(folder: &Path) -> Said {
    let report = fs::read_to_string(folder.join("defect.txt")).expect("there");
    let command = report.lines().last().expect("a command");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    fencepost(folder, &[&words[..], &["--repro-dir", "."]].concat())
}

/// The only reproducer below a folder.
fn reproducer(folder: &Path) -> std::path::PathBuf {
    let entries = fs::read_dir(folder)
        .expect("a folder")
        .map(|e| e.expect("an entry").path());
    let mut found: Vec<_> = entries.filter(|p| p.is_dir()).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn an_outcome_that_the_model_forbids_is_a_defect_that_can_be_seen_again() {
    // A machine without one of its rules shows it.
    for (arguments, model) in [
        (vec!["--runs", "500"], "ptx"),
        (vec!["--schedule", "exhaustive"], "ptx"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("mp.toml"), MP).expect("written");
        let fixed = [
            "run",
            "mp.toml",
            "--repro-dir",
            "defects",
            "--without",
            "synchronization",
        ];
        let said = fencepost(folder.path(), &[&fixed[..], &arguments].concat());
        assert_eq!(said.code, Some(70), "{}\n{}", said.out, said.err);
        let law = "the executor shows outcomes that the model forbids: P1:r0 = 1, P1:r1 = 0";
        has(&said.out, &["FORBIDDEN", &format!("DEFECT: {law}")]);
        has(
            &said.err,
            &[
                law,
                "a reproducer was written to defects/fencepost-defect-",
                "under ptx, run",
            ],
        );
        let again = follow(&reproducer(&folder.path().join("defects")));
        assert_eq!(again.code, Some(70), "{}\n{}", again.out, again.err);
        has(
            &again.out,
            &[model, "as recorded", law, "a run to P1:r0 = 1, P1:r1 = 0:"],
        );
        // The complete machine does not show it.
        let whole = fencepost(
            folder.path(),
            &[&["run", "mp.toml"], &arguments[..]].concat(),
        );
        assert_eq!(whole.code, Some(0), "{}", whole.out);
    }
}

#[test]
fn a_race_that_the_model_does_not_know_is_a_defect_that_can_be_seen_again() {
    let test = r#"name = "MP"
dialect = "cuda"
memory = { x = 0, f = 0 }

[[thread]]
block = 0
code = "x = 1; cuda::atomic_ref<int, cuda::thread_scope_device> g(f); g.store(1, cuda::memory_order_release);"

[[thread]]
block = 1
code = "cuda::atomic_ref<int, cuda::thread_scope_device> g(f); int r = 0; if (g.load(cuda::memory_order_acquire) == 1) { r = x; }"
"#;
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("mp.toml"), test).expect("written");
    let whole = fencepost(folder.path(), &["run", "mp.toml", "--runs", "200"]);
    assert_eq!(whole.code, Some(0), "{}\n{}", whole.out, whole.err);
    let fixed = [
        "run",
        "mp.toml",
        "--runs",
        "200",
        "--repro-dir",
        "defects",
        "--without",
        "synchronization",
    ];
    let said = fencepost(folder.path(), &fixed);
    assert_eq!(said.code, Some(70), "{}\n{}", said.out, said.err);
    has(
        &said.err,
        &["the executor shows a race in a program that the model calls race-free"],
    );
    let again = follow(&reproducer(&folder.path().join("defects")));
    assert_eq!(again.code, Some(70), "{}\n{}", again.out, again.err);
    has(
        &again.out,
        &["data race on x: P0 line 7", "the executor shows a race"],
    );
}

#[test]
fn a_model_of_the_users_own_is_held_against_runs_and_defects_are_not_ours() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(
        folder.path().join("mp.toml"),
        MP.replace("release", "relaxed"),
    )
    .expect("written");
    let strict = "\"Strict\"\nlet fr = rf^-1; co\nacyclic po | rf | co | fr as SC\n";
    fs::write(folder.path().join("strict.cat"), strict).expect("written");
    let said = fencepost(
        folder.path(),
        &["run", "mp.toml", "--runs", "500", "--model", "strict.cat"],
    );
    assert_eq!(said.code, Some(1), "{}\n{}", said.out, said.err);
    has(&said.out, &["FORBIDDEN"]);
}

#[test]
fn unknown_rules_are_told() {
    let said = run(MP, &["--without", "gravity"]);
    assert_eq!(said.code, Some(2));
    has(&said.err, &["no rule `gravity`", "synchronization"]);
}

#[test]
fn the_numbers_of_many_tests_are_summed_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
    write("a.toml", MP);
    write(
        "b.toml",
        &MP.replace("\"MP\"", "\"MP2\"")
            .replace("release", "relaxed"),
    );
    let said = fencepost(folder.path(), &["run", ".", "--schedule", "exhaustive"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let line = "ptx, 2 tests run, 0 not: ";
    has(
        &said.out,
        &[
            line,
            "7 outcomes observed, 0 of them outside the model, 0 undecided",
        ],
    );
    has(
        &said.out,
        &[
            "7 of 7 allowed outcomes observed (100.00 %)",
            "2 tests with a complete state space",
        ],
    );
    let said = fencepost(
        folder.path(),
        &["run", ".", "--format", "json", "--runs", "100"],
    );
    has(
        &said.out,
        &[
            r#""observed":[{"allowed":7,"#,
            r#""runs":200,"states":0,"tests":2"#,
        ],
    );
}

/// In assembly: producers only arrive at a barrier, and consumers wait there.
#[test]
fn a_barrier_that_says_how_many_take_part_asks_nothing_of_the_others() {
    let test = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus/cuda/Kernel+named-barrier.toml");
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [
        "run",
        test.to_str().expect("UTF-8"),
        "--model",
        "cuda",
        "--runs",
        "20",
        "--format",
        "json",
    ];
    let said = fencepost(folder.path(), &arguments);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(
        !said.out.contains("divergence") && said.out.contains(r#""defects":0"#),
        "{}",
        said.out
    );
}

/// A number from the environment.
fn setting(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

/// Runs the tests of the repository that the machine can run, except the long list of idioms. Also
/// runs the tests in the folder `FENCEPOST_SUITE` (which may be `litmus/idioms`). Each gets
/// `FENCEPOST_RUNS` random schedules, and every schedule within `FENCEPOST_TIMEOUT`.
#[test]
fn nothing_is_outside_the_models() {
    let litmus = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus");
    let idioms = litmus.join("idioms");
    let mut paths: Vec<_> = sample(
        files(&litmus, &["toml"])
            .into_iter()
            .filter(|p| !p.starts_with(&idioms)),
    )
    .collect();
    paths.extend(std::env::var_os("FENCEPOST_SUITE").map(std::path::PathBuf::from));
    let paths: Vec<&str> = paths.iter().map(|p| p.to_str().expect("UTF-8")).collect();
    let (runs, timeout) = if is_long() {
        ("200", "200ms")
    } else {
        ("50", "20ms")
    };
    let (runs, timeout) = (
        setting("FENCEPOST_RUNS", runs),
        setting("FENCEPOST_TIMEOUT", timeout),
    );
    let folder = tempfile::tempdir().expect("a folder");
    for schedule in [
        &["--runs", runs.as_str()][..],
        &["--schedule", "exhaustive"],
    ] {
        let fixed = [
            "run",
            "--timeout",
            timeout.as_str(),
            "--format",
            "json",
            "--report",
            "human=table.txt",
        ];
        let said = fencepost(folder.path(), &[&fixed[..], schedule, &paths].concat());
        assert!(
            matches!(said.code, Some(0 | 3)),
            "{:?}: {}",
            said.code,
            said.err
        );
        let table = fs::read_to_string(folder.path().join("table.txt")).expect("written");
        let lines: Vec<&str> = table.lines().filter(|l| l.contains(" run, ")).collect();
        println!("{}", lines.join("\n"));
        assert!(lines.len() >= 3, "{lines:?}");
        let all = serde_json::from_str::<serde_json::Value>(&said.out).expect("one object");
        let summary = &all["summary"];
        assert_eq!(summary["defects"], 0);
        for model in summary["observed"].as_array().expect("a list") {
            assert_eq!(model["outside"], 0, "{model}");
        }
        let ptx = summary["observed"]
            .as_array()
            .expect("a list")
            .iter()
            .find(|m| m["model"] == "ptx");
        assert!(
            ptx.expect("there")["tests"].as_u64() > Some(500 / step() as u64),
            "{summary}"
        );
    }
}

/// `--cooperative` makes the launch of the test one, for the run and for what the model says of it.
#[test]
fn a_cooperative_launch_may_be_asked_for() {
    let test = r#"name = "G"
dialect = "cuda"
memory = { x = 0 }

[kernel]
grid = 2
block = 1
code = "cooperative_groups::this_grid().sync();"
"#;
    let without = run(test, &["--runs", "5"]);
    has(
        &without.out,
        &["misuse: P0 line 8", "undefined: any outcome"],
    );
    let with = run(test, &["--runs", "5", "--cooperative"]);
    has(
        &with.out,
        &["no undefined behaviour observed; the model: race-free, defined"],
    );
}

#[test]
fn resources_decide_how_many_blocks_are_resident() {
    let test = kernel("x = 1;", "");
    let room = |arguments: &[&str]| run(&test, &[&["--runs", "1"], arguments].concat());
    let plain = room(&["--resident", "auto:sm_75"]);
    has(&plain.out, &["room for 16 blocks"]);
    let registers = room(&["--resident", "auto:sm_90", "--registers", "128"]);
    has(&registers.out, &["room for 16 blocks"]);
    let unknown = room(&["--resident", "auto:sm_60"]);
    assert_eq!(unknown.code, Some(2), "{}", unknown.err);
    has(&unknown.err, &["sm_70", "sm_120"]);
}

#[test]
fn keys_of_resources_belong_together() {
    for (keys, said) in [
        ("registers = 64", "add `target`"),
        ("target = \"sm_80\"\nresident = 2", "leave out `resident`"),
        ("target = \"sm_60\"", "sm_70"),
    ] {
        let test = format!(
            "{}\n[[run]]\n{keys}\nends = \"finished\"\n",
            kernel("x = 1;", "")
        );
        let wrong = run(&test, &["--runs", "1"]);
        assert_eq!(wrong.code, Some(2), "{keys}: {}", wrong.err);
        has(&wrong.err, &[said]);
    }
}
