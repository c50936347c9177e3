//! Large input: the answer is a decision, or `undecided` with the limit that was reached.

use std::fmt::Write as _;

use super::{Folder, GOOD, one_thread};

#[test]
fn large_files_are_read() {
    let comment = format!("# {}\n", "x".repeat(10_000_000));
    let folder = Folder::new(&[
        ("good.toml", &format!("{comment}{GOOD}")),
        (
            "bad.toml",
            &format!("{comment}{}", GOOD.replace("st.weak", "sst.weak")),
        ),
        ("huge.toml", &comment.repeat(2)),
    ]);
    assert_eq!(folder.run(&["check", "good.toml"]).code, Some(0));
    folder.refused(&["bad.toml"], &["unknown-instruction", "bad.toml:9:1"]);
    folder.refused(&["huge.toml"], &["larger than 16 MiB"]);
}

#[test]
fn too_many_events() {
    let folder = Folder::new(&[
        (
            "t.toml",
            &one_thread("x == 1", "x = 0", &"st x, 1\n".repeat(100_000)),
        ),
        (
            "array.toml",
            &one_thread(
                "x == 1",
                &format!("x = 0, a = [{}]", "0,".repeat(100_000)),
                // The address is known only when the program runs.
                "st x, 1\nld r1, x\nmov.u64 r2, a\nadd.u64 r2, r2, r1\nst [r2], 1",
            ),
        ),
    ]);
    for engine in ["auto", "enumerate"] {
        folder.undecided(&["t.toml", "--engine", engine], "too many events");
        folder.undecided(&["array.toml", "--engine", engine], "too many events");
    }
}

#[test]
fn loops_that_never_end() {
    let counts = "L: atom.add r0, x, 1\ngoto L";
    let folder = Folder::new(&[
        ("counts.toml", &one_thread("x == 1000000", "x = 0", counts)),
        ("spins.toml", &one_thread("x == 0", "x = 0", "L: goto L")),
    ]);
    folder.undecided(
        &["counts.toml"],
        "loop bound: P0 can go on after 4 iterations of the loop at line 6; try `--bound 8`",
    );
    folder.undecided(&["counts.toml", "--bound", "7"], "after 7 iterations");
    // No execution completes, and no bound changes that.
    let said = folder.run(&["check", "spins.toml", "--format", "jsonl"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.out.contains("\"verdict\":\"forbidden\"") && said.out.contains("\"bound\":null"),
        "{}",
        said.out
    );
    folder.refused(
        &["counts.toml", "--bound", "1000000"],
        &["1000000", "--bound"],
    );
}

#[test]
fn propositions_that_nest() {
    let nested = |n: usize| format!("{}x == 1{}", "(".repeat(n), ")".repeat(n));
    let test = |condition: &str| one_thread(condition, "x = 0", "st x, 1");
    let folder = Folder::new(&[
        ("some.toml", &test(&nested(100))),
        ("deep.toml", &test(&nested(100_000))),
        ("not.toml", &test(&format!("{}x == 1", "~".repeat(100_000)))),
        ("wide.toml", &test(&vec!["x == 1"; 20_000].join(" /\\ "))),
        ("table.toml", &format!("name = {}", "[".repeat(100_000))),
    ]);
    assert_eq!(
        folder.run(&["check", "some.toml", "wide.toml"]).code,
        Some(0)
    );
    for file in ["deep.toml", "not.toml"] {
        folder.refused(
            &[file],
            &[
                "error[nesting-too-deep]: a condition nests at most 100 deep",
                ":2:",
            ],
        );
    }
    folder.refused(&["table.toml"], &["error[toml-syntax]", "table.toml:1:"]);
}

#[test]
fn values_that_nest() {
    let doubled = |n: usize| format!("ld r0, x\n{}st x, r0", "add r0, r0, r0\n".repeat(n));
    let mut chosen = "ld r0, x\nld r1, x\n".to_owned();
    for i in 0..4000 {
        write!(chosen, "beq r1, {i}, L{i}\nadd r0, r0, r1\nL{i}:\n").unwrap();
    }
    let folder = Folder::new(&[
        ("some.toml", &one_thread("x == 1", "x = 0", &doubled(3000))),
        (
            "deep.toml",
            &one_thread("x == 1", "x = 0", &doubled(100_000)),
        ),
        (
            "chosen.toml",
            &one_thread("x == 1", "x = 0", &format!("{chosen}st x, r0")),
        ),
    ]);
    assert_eq!(folder.run(&["check", "some.toml"]).code, Some(0));
    folder.undecided(&["deep.toml"], "too deep a value");
    folder.undecided(&["chosen.toml"], "too ");
}

/// Unrolling was once exponential in the number of increments: 40 of them never finished.
#[test]
fn counters_behind_branches() {
    let mut code = "mov.u32 s, 0;\n".to_owned();
    for i in 0..40 {
        write!(
            code,
            "ld.weak.u32 r{i}, [x];\nbeq r{i}, 0, L{i}\nadd.u32 s, s, 1;\nL{i}:\n"
        )
        .unwrap();
    }
    let mut test = one_thread("P0:s == 1", "x = 0", &code);
    test += "[[thread]]\ncta = 1\ncode = 'st x, 1'\n";
    let folder = Folder::new(&[("t.toml", &test)]);
    let said = folder.run(&[
        "check",
        "t.toml",
        "--engine",
        "enumerate",
        "--format",
        "jsonl",
    ]);
    assert_eq!(said.code, Some(0), "{}", said.out);
    assert!(said.out.contains("\"verdict\":\"allowed\""), "{}", said.out);
}

/// Unrolling once built a table of instructions times registers, even without loops.
#[test]
fn many_registers() {
    let mut code = String::new();
    for i in 0..20_000 {
        writeln!(code, "add r{i}, 1, 1").unwrap();
    }
    let folder = Folder::new(&[("t.toml", &one_thread("P0:r7 == 2", "x = 0", &code))]);
    assert_eq!(folder.run(&["check", "t.toml"]).code, Some(0));
}

#[test]
fn time_that_runs_out() {
    let folder = Folder::new(&[(
        "t.toml",
        &one_thread("x == 7", "x = 0", &"atom.add r0, x, 1\n".repeat(400)),
    )]);
    folder.undecided(&["t.toml", "--timeout", "1ms"], "out of time");
    folder.undecided(
        &["t.toml", "--timeout", "1ms", "--engine", "enumerate"],
        "out of time",
    );
}

/// Conditions that grow with every instruction: unrolling them is slow, before any engine starts.
#[test]
fn time_that_runs_out_while_a_thread_is_unrolled() {
    let step = |i: usize| {
        format!(
            "ld.relaxed.gpu.u32 %r1, [i];\nxor.b32 %r2, %r2, %r1;\nadd.u32 %r3, %r3, %r2;\nsetp.lt.u32 %p1, %r3, {i};\n\
             @%p1 xor.b32 %r2, %r2, %r3;\n@!%p1 add.u32 %r3, %r3, %r2;\n"
        )
    };
    let code = (0..1200).map(step).collect::<String>();
    let folder = Folder::new(&[(
        "t.toml",
        &one_thread("P0:r2 == 7", "i = { type = 'u32', init = 0 }", &code),
    )]);
    let begin = std::time::Instant::now();
    folder.undecided(&["t.toml", "--timeout", "20ms"], "out of time");
    assert!(begin.elapsed().as_secs() < 20, "the deadline is asked for");
}
