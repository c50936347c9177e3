//! Input that is wrong, hostile or too large, given to the built binary: what it says, and what it must not say.
//!
//! # Invariants
//! - Bad input has no verdict: no line on standard output, a diagnostic with its place on standard error, code 2.
//! - What is too large is `undecided` with the limit that it met, code 3; never a wrong answer, a panic or an abort.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::{Said, fencepost};

const GOOD: &str = r#"name = "MP"
condition = 'P1:r0 == 1 /\ P1:r1 == 0'
memory = { x = 0, f = 0 }

[[thread]]
cta = 0
code = """
st.weak x, 1
st.release.gpu f, 1
"""

[[thread]]
cta = 1
code = """
ld.acquire.gpu r0, f
ld.weak r1, x
"""

[expect]
ptx = { reachability = "forbidden" }
"#;

/// A folder with files to run the binary in.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        files.iter().for_each(|(name, text)| folder.write(name, text.as_bytes()));
        folder
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs the binary. Whatever it is given, it never panics and never dies of a signal.
    fn run(&self, arguments: &[&str]) -> Said {
        let said = fencepost(self.path(), &[arguments, &["--color", "never"]].concat());
        assert!(said.code.is_some(), "{arguments:?} died:\n{}", said.err);
        for word in ["panicked", "overflowed", "a defect of Fencepost"] {
            assert!(!said.err.contains(word) && !said.out.contains(word), "{arguments:?}: {}", said.err);
        }
        said
    }

    /// `check` on bad input: no verdict, code 2, and each of `words` on standard error.
    fn refused(&self, arguments: &[&str], words: &[&str]) {
        let said = self.run(&[&["check", "--format", "jsonl"], arguments].concat());
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{arguments:?}: {}", said.err);
        for word in words {
            assert!(said.err.contains(word), "{arguments:?}: `{word}` is missing in:\n{}", said.err);
        }
    }

    /// `check` on input that is too much: undecided for that reason, code 3.
    fn undecided(&self, arguments: &[&str], reason: &str) {
        let said = self.run(&[&["check", "--format", "jsonl"], arguments].concat());
        assert_eq!(said.code, Some(3), "{arguments:?}: {}{}", said.out, said.err);
        for line in said.out.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["verdict"], "undecided", "{arguments:?}: {line}");
            let told = line["reason"].as_str().unwrap_or_default();
            assert!(told.contains(reason), "{arguments:?}: `{reason}` is missing in `{told}`");
        }
        assert!(!said.out.is_empty(), "{arguments:?}");
    }
}

/// A test whose one thread runs `code`.
fn one_thread(condition: &str, memory: &str, code: &str) -> String {
    format!(
        "name = \"T\"\ncondition = '{condition}'\nmemory = {{ {memory} }}\n[[thread]]\ncode = '''\n{code}\n'''\n"
    )
}

#[test]
fn paths_that_hold_no_test() {
    let folder = Folder::new(&[("empty/README.md", "")]);
    folder.refused(&["gone.toml"], &["error[missing-path]: `gone.toml` does not exist"]);
    let said = folder.run(&["check", "empty"]);
    assert_eq!(said.code, Some(4));
    assert!(said.err.contains("no test matched"), "{}", said.err);
}

#[test]
fn text_that_is_no_test() {
    let folder = Folder::new(&[
        ("syntax.toml", "name = \"T\"\ncondition = = 1\n"),
        ("key.toml", &GOOD.replace("condition", "conditoin")),
        ("type.toml", &GOOD.replace("cta = 1", "cta = \"one\"")),
        ("name.toml", &GOOD.replace("\"MP\"", "\"M\\nP\"")),
        ("escape.toml", &GOOD.replace("\"MP\"", "\"\\u001b[31mMP\"")),
    ]);
    folder.write("latin.toml", b"name = \"T\"\ndoc = \"gr\xfcn\"\n");
    folder.refused(&["syntax.toml"], &["error[toml-syntax]", "syntax.toml:2:"]);
    folder.refused(&["key.toml"], &["no key `conditoin`", "key.toml:2:1", "did you mean `condition`?"]);
    folder.refused(&["type.toml"], &["error[wrong-type]", "type.toml:13:7"]);
    folder.refused(&["latin.toml"], &["error[not-utf8]: `latin.toml` is not UTF-8", "line 2, column 10"]);
    folder.refused(&["name.toml"], &["error[bad-name]: `M\\nP` cannot be", "name.toml:1:"]);
    folder.refused(&["escape.toml"], &["error[bad-name]", "holds a control character"]);
}

#[test]
fn code_that_means_nothing() {
    let cases = [
        ("st.weak x, 1", "sst.weak x, 1", "error[unknown-instruction]: there is no instruction `sst`", "8:1"),
        ("st.weak x, 1", "st.weak x, r9", "`r9`", "8:12"),
        ("st.weak x, 1", "bra nowhere;", "`nowhere`", "8:5"),
        ("st.weak x, 1", "st.weak y, 1", "error[unknown-location]: there is no location `y`", "8:9"),
        ("st.weak x, 1", "st.weak x[7], 1", "error[out-of-bounds]: `x` has one element, this is number 7", "8:9"),
        ("P1:r0 == 1", "P1:r7 == 1", "`r7`", "2:"),
        ("P1:r0 == 1", "P9:r0 == 1", "error[unknown-thread]: there is no thread `P9`", "2:"),
        ("P1:r0 == 1", "x[3] == 1", "error[out-of-bounds]", "2:"),
        ("P1:r0 == 1", "P1:r0 = = 1", "error[condition-syntax]", "2:"),
        ("ptx = {", "pxt = {", "there is no model `pxt`", ":20:"),
        ("\"forbidden\"", "\"forbiden\"", "`reachability` cannot be `forbiden`", ":20:"),
    ];
    for (good, bad, message, place) in cases {
        let folder = Folder::new(&[("t.toml", &GOOD.replacen(good, bad, 1))]);
        folder.refused(&["t.toml"], &[message, place, "t.toml:"]);
    }
}

#[test]
fn models_that_mean_nothing() {
    let deep = format!("\"deep\"\nacyclic {}po{} as a\n", "(".repeat(100_000), ")".repeat(100_000));
    let folder = Folder::new(&[
        ("good.toml", GOOD),
        ("type.cat", "\"T\"\nlet a = W | po\nacyclic a as x\n"),
        ("name.cat", "\"T\"\nacyclic poo as x\n"),
        ("set.cat", "\"T\"\nempty RR & R as x\n"),
        ("self.cat", "\"T\"\ninclude \"self.cat\"\nacyclic po as x\n"),
        ("gone.cat", "\"T\"\ninclude \"nothing.cat\"\n"),
        ("open.cat", "\"T\" (* no end\nacyclic po as x\n"),
        ("rec.cat", "\"T\"\nlet rec a = po \\ a\nacyclic a as x\n"),
        ("deep.cat", &deep),
        ("folder.cat/README.md", ""),
    ]);
    folder.write("latin.cat", b"\"T\"\n(* gr\xfcn *)\n");
    let cases = [
        ("type.cat", "`|` joins a set and a relation", "type.cat:2:13"),
        ("name.cat", "error[unknown-name]: unknown name `poo`", "name.cat:2:9"),
        ("set.cat", "error[unknown-name]: unknown name `RR`", "set.cat:2:7"),
        ("self.cat", "error[include-cycle]", "self.cat:2:1"),
        ("gone.cat", "there is no file `nothing.cat`", "gone.cat:2:1"),
        ("open.cat", "error[unterminated-comment]", "open.cat:1:5"),
        ("rec.cat", "error[not-monotone]", "rec.cat:2:18"),
        ("deep.cat", "error[nesting-too-deep]", "deep.cat:2:1"),
        ("latin.cat", "`latin.cat` is not UTF-8: byte 0xfc", "line 2, column 6"),
        ("folder.cat", "cannot read `folder.cat`", ""),
        ("missing.cat", "cannot read `missing.cat`", ""),
        ("pxt", "there is no model `pxt`", "did you mean `ptx`?"),
        ("vulkan", "not shipped", ""),
    ];
    for (model, message, place) in cases {
        folder.refused(&["good.toml", "--model", model], &[message, place]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_model_file_without_end_is_not_read() {
    Folder::new(&[("good.toml", GOOD)])
        .refused(&["good.toml", "--model", "/dev/zero"], &["only regular files are read"]);
}

#[test]
fn good_tests_beside_bad_ones_are_still_decided() {
    let folder = Folder::new(&[
        ("a.toml", "name = "),
        ("b.toml", GOOD),
        ("sub/c.toml", &GOOD.replace("st.weak", "sst.weak")),
        ("sub/d.toml", GOOD),
    ]);
    folder.write("e.litmus", &[0xff, 0xfe]);
    let said = folder.run(&["check", "--format", "jsonl"]);
    assert_eq!(said.code, Some(2));
    let paths: Vec<String> = (said.out.lines())
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .inspect(|line| assert_eq!(line["verdict"], "forbidden"))
        .map(|line| line["path"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(paths, ["b.toml", "sub/d.toml"]);
    for word in ["a.toml:1:", "c.toml:8:1", "e.litmus"] {
        assert!(said.err.contains(word), "{word}: {}", said.err);
    }
}

#[test]
fn large_files_are_read() {
    let comment = format!("# {}\n", "x".repeat(10_000_000));
    let folder = Folder::new(&[
        ("good.toml", &format!("{comment}{GOOD}")),
        ("bad.toml", &format!("{comment}{}", GOOD.replace("st.weak", "sst.weak"))),
        ("huge.toml", &comment.repeat(2)),
    ]);
    assert_eq!(folder.run(&["check", "good.toml"]).code, Some(0));
    folder.refused(&["bad.toml"], &["unknown-instruction", "bad.toml:9:1"]);
    folder.refused(&["huge.toml"], &["larger than 16 MiB"]);
}

#[test]
fn too_many_events() {
    let folder = Folder::new(&[
        ("t.toml", &one_thread("x == 1", "x = 0", &"st x, 1\n".repeat(100_000))),
        ("array.toml", &one_thread("x == 1", &format!("x = 0, a = [{}]", "0,".repeat(100_000)), "st x, 1")),
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
    // No execution completes, which no bound changes.
    let said = folder.run(&["check", "spins.toml", "--format", "jsonl"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("\"verdict\":\"forbidden\"") && said.out.contains("\"bound\":null"), "{}", said.out);
    folder.refused(&["counts.toml", "--bound", "1000000"], &["1000000", "--bound"]);
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
    assert_eq!(folder.run(&["check", "some.toml", "wide.toml"]).code, Some(0));
    for file in ["deep.toml", "not.toml"] {
        folder.refused(&[file], &["error[nesting-too-deep]: a condition nests at most 100 deep", ":2:"]);
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
        ("deep.toml", &one_thread("x == 1", "x = 0", &doubled(100_000))),
        ("chosen.toml", &one_thread("x == 1", "x = 0", &format!("{chosen}st x, r0"))),
    ]);
    assert_eq!(folder.run(&["check", "some.toml"]).code, Some(0));
    folder.undecided(&["deep.toml"], "too deep a value");
    folder.undecided(&["chosen.toml"], "too ");
}

/// Once exponential in the number of increments: with 40 of them this did not end.
#[test]
fn counters_behind_branches() {
    let mut code = "mov.u32 s, 0;\n".to_owned();
    for i in 0..40 {
        write!(code, "ld.weak.u32 r{i}, [x];\nbeq r{i}, 0, L{i}\nadd.u32 s, s, 1;\nL{i}:\n").unwrap();
    }
    let mut test = one_thread("P0:s == 1", "x = 0", &code);
    test += "[[thread]]\ncta = 1\ncode = 'st x, 1'\n";
    let folder = Folder::new(&[("t.toml", &test)]);
    let said = folder.run(&["check", "t.toml", "--engine", "enumerate", "--format", "jsonl"]);
    assert_eq!(said.code, Some(0), "{}", said.out);
    assert!(said.out.contains("\"verdict\":\"allowed\""), "{}", said.out);
}

/// Once a table of instructions times registers, also without loops.
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
fn pointers_that_may_be_null() {
    let mut test =
        one_thread("P0:r1 == 5", "y = 0, p = 0", "ld.relaxed.gpu.u64 %rd0, [p];\nld.weak.u32 %r1, [%rd0];");
    test += "[[thread]]\ncta = 1\ncode = 'mov.u64 %rd1, y; st.relaxed.gpu.u64 [p], %rd1;'\n";
    let folder = Folder::new(&[("t.toml", &test)]);
    folder.undecided(&["t.toml"], "ld.weak.u32 %r1, [%rd0]");
}

#[test]
fn addresses_inside_of_an_element() {
    let code = "ld.weak.u64 %rd0, [i];\nmov.u64 %rd1, a;\nadd.u64 %rd2, %rd1, %rd0;\nld.weak.u32 %r1, [%rd2];";
    let test = one_thread("P0:r1 == 5", "a = { type = 'u32', init = [0, 5] }, i = 2", code);
    let folder = Folder::new(&[("t.toml", &test)]);
    folder.undecided(&["t.toml"], "ld.weak.u32 %r1, [%rd2]");
}

#[test]
fn time_that_runs_out() {
    let folder = Folder::new(&[("t.toml", &one_thread("x == 7", "x = 0", &"atom.add r0, x, 1\n".repeat(400)))]);
    folder.undecided(&["t.toml", "--timeout", "1ms"], "out of time");
    folder.undecided(&["t.toml", "--timeout", "1ms", "--engine", "enumerate"], "out of time");
}

/// Conditions that grow with every instruction: what is slow is to unroll them, before an engine is asked.
#[test]
fn time_that_runs_out_while_a_thread_is_unrolled() {
    let step = |i: usize| {
        format!(
            "ld.relaxed.gpu.u32 %r1, [i];\nxor.b32 %r2, %r2, %r1;\nadd.u32 %r3, %r3, %r2;\nsetp.lt.u32 %p1, %r3, {i};\n\
             @%p1 xor.b32 %r2, %r2, %r3;\n@!%p1 add.u32 %r3, %r3, %r2;\n"
        )
    };
    let code = (0..1200).map(step).collect::<String>();
    let folder = Folder::new(&[("t.toml", &one_thread("P0:r2 == 7", "i = { type = 'u32', init = 0 }", &code))]);
    let begin = std::time::Instant::now();
    folder.undecided(&["t.toml", "--timeout", "20ms"], "out of time");
    assert!(begin.elapsed().as_secs() < 20, "the deadline is asked for");
}

/// Lanes that hand each other values must be known to meet.
#[test]
fn lanes_that_may_not_meet() {
    let warp = |first: &str, second: &str| {
        let thread = |code: &str| format!("[[thread]]\ncta = 0\nwarp = 0\ncode = '''\n{code}\n'''\n");
        let head = "name = 't'\ncondition = 'P1:r1 == 5'\n[memory]\ni = { type = 'u32', init = 0 }\n";
        let writer = "[[thread]]\ncta = 1\ncode = 'st.relaxed.gpu.u32 [i], 1;'\n";
        format!("{head}{}{}{writer}", thread(first), thread(second))
    };
    let shuffle = "shfl.sync.idx.b32 r1, 5, 0, 31, -1;\n";
    let perhaps = format!("ld.relaxed.gpu.u32 r0, [i];\nsetp.eq.u32 p, r0, 1;\n@p {shuffle}");
    for (first, second, reason) in [
        (shuffle, "mov.u32 r1, 2;", "may not all come"),
        (shuffle, perhaps.as_str(), "may not all come"),
        ("mov.u32 r1, 2;", "shfl.sync.idx.b32 r1, 5, 0, 31, 0x1;", "it names threads without itself"),
        ("shfl.sync.down.b32 r1, 5, 1, 31, 0x1;", "mov.u32 r1, 2;", "it names threads without itself"),
    ] {
        let folder = Folder::new(&[("t.toml", &warp(first, second))]);
        folder.undecided(&["t.toml"], reason);
    }
    let together = "which threads of a warp run together";
    let again = "mov.u32 r2, 0;\nL: activemask.b32 r1;\nadd.u32 r2, r2, 1;\nsetp.lt.u32 p, r2, 2;\n@p bra L;";
    for (first, second) in [(again, again), ("L: activemask.b32 r1;", "L: mov.u32 r2, 0;\nactivemask.b32 r1;")] {
        let folder = Folder::new(&[("t.toml", &warp(first, second))]);
        folder.undecided(&["t.toml"], together);
    }
    let read = "ld.relaxed.gpu.u32 r0, [i];\nshfl.sync.idx.b32 r1, 5, 0, 31, r0;";
    let folder = Folder::new(&[("t.toml", &warp(read, read))]);
    folder.undecided(&["t.toml"], "may not all come");
    let barrier = "ld.relaxed.gpu.u32 r0, [i];\nbar.warp.sync r0;\nmov.u32 r1, 5;";
    let folder = Folder::new(&[("t.toml", &warp(barrier, barrier))]);
    folder.undecided(&["t.toml"], "for lanes that depend on what is read");
}

/// Work-items that hand each other values must be known to meet, and to name the same one.
#[test]
fn work_items_that_may_not_meet() {
    let group = |first: &str, second: &str| {
        let thread = |code: &str| format!("[[thread]]\nwork_group = 0\ncode = '''\n{code}\n'''\n");
        let head = "name = 't'\ndialect = 'opencl'\ncondition = 'P0:r == 5'\n";
        let memory = "[memory]\nf = { type = 'atomic_int', space = 'local' }\n";
        format!("{head}{memory}{}{}", thread(first), thread(second))
    };
    let write = "atomic_store_explicit(f, 1, memory_order_relaxed, memory_scope_work_group);";
    let read = &format!("{write} int r = atomic_load_explicit(f, memory_order_relaxed, memory_scope_work_group);");
    let some = format!("{read} if (r) {{ r = work_group_any(1); }}");
    let broadcast = |item: &str| format!("{read} r = work_group_broadcast(5, {item});");
    let either = "int r = atomic_load_explicit(f, memory_order_relaxed, memory_scope_work_group);";
    let either = &format!("{either} {write} r = work_group_broadcast(5, r);");
    for (first, second, reason) in [
        (some.as_str(), "int r = work_group_any(0);", "may not all come"),
        (&broadcast("0"), &broadcast("1"), "names threads without itself"),
        (&broadcast("2"), &broadcast("2"), "names threads without itself"),
        ("int r = work_group_any(0);", "int r = sub_group_any(0);", "may not all come"),
    ] {
        let folder = Folder::new(&[("t.toml", &group(first, second))]);
        folder.undecided(&["t.toml"], reason);
    }
    // That both have read 1 is known, though not before memory is read; or they may have read the same.
    for (code, doubt) in [(&broadcast("r"), false), (either, true)] {
        let folder = Folder::new(&[("t.toml", &group(code, code))]);
        let said = folder.run(&["check", "t.toml", "--format", "jsonl"]);
        assert!(said.out.contains("allowed"), "{}", said.out);
        assert_eq!(said.out.contains("may not all come"), doubt, "{}", said.out);
    }
}

#[test]
fn options_that_mean_nothing() {
    let folder = Folder::new(&[("good.toml", GOOD)]);
    folder.refused(&["good.toml", "--prelude", "ptxx"], &["there is no prelude `ptxx`", "did you mean `ptx`?"]);
    folder.refused(&["good.toml", "--set", "dep=syn"], &["option `dep` cannot be `syn`"]);
    folder.refused(&["good.toml", "--report", "json=a", "--report", "human=a"], &["two reports would go to `a`"]);
    folder.refused(&["good.toml", "--report", "json=good.toml/a"], &["cannot write `good.toml/a`"]);
    folder.refused(&["good.toml", "--jobs", "0"], &["--jobs"]);
    assert!(!folder.path().join("a").exists());
}

#[test]
fn repetitions_are_answered_once() {
    let folder = Folder::new(&[("good.toml", GOOD)]);
    let absolute = folder.path().join("good.toml");
    let arguments = ["check", "good.toml", "./good.toml", absolute.to_str().unwrap(), "--format", "jsonl"];
    let said = folder.run(&[&arguments[..], &["--model", "ptx", "--model", "sc", "--model", "ptx"]].concat());
    assert_eq!((said.code, said.out.lines().count()), (Some(0), 2), "{}{}", said.out, said.err);
}

#[test]
fn a_model_without_axioms_is_worth_a_warning() {
    let folder = Folder::new(&[("good.toml", GOOD), ("none.cat", "\"none\"\n")]);
    let said = folder.run(&["check", "good.toml", "--model", "none.cat"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("warning[no-axioms]: model `none.cat` has no axioms"), "{}", said.err);
}

#[test]
fn line_ends_and_marks_of_other_systems() {
    let litmus = "PTX MP\n\"doc\"\n{\nx=0;\nf=0;\n}\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n\
                  st.weak x, 1 | ld.acquire.gpu r0, f ;\n | ld.weak r2, f ;\n\
                  st.release.gpu f, 1 | ld.weak r1, x ;\nexists (P1:r0 == 1 /\\ P1:r1 == 0)";
    let model = "\"sc\"\nacyclic po | rf | co | fr as sc\n";
    let folder = Folder::new(&[("a.cat", &model.replace('\n', "\r\n")), ("b.cat", &format!("\u{feff}{model}"))]);
    for (name, text) in [("t.toml", GOOD), ("t.litmus", litmus)] {
        let variants =
            [text.to_owned(), text.replace('\n', "\r\n"), format!("\u{feff}{text}"), text.trim_end().to_owned()];
        for text in variants {
            folder.write(name, text.as_bytes());
            for model in ["ptx", "a.cat", "b.cat"] {
                let said = folder.run(&["check", name, "--model", model, "--format", "jsonl"]);
                assert_eq!(said.code, Some(0), "{text:?}: {}", said.err);
                assert!(said.out.contains("\"verdict\":\"forbidden\""), "{text:?}: {}", said.out);
            }
        }
    }
}

/// A test in a C-like dialect whose one thread runs `code`.
fn c_like(dialect: &str, memory: &str, code: &str) -> String {
    format!(
        "name = \"T\"\ndialect = \"{dialect}\"\ncondition = 'true'\n[memory]\n{memory}\n[[thread]]\ncode = '''\n{code}\n'''\n"
    )
}

#[test]
fn orders_and_scopes_that_a_dialect_does_not_have() {
    let cases = [
        ("c", "atomic_store_explicit(x, 1, memory_order_acquire);", "a store cannot acquire (C11, 7.17.7.1)"),
        ("c", "int r = atomic_load_explicit(x, memory_order_release);", "a load cannot release (C11, 7.17.7.2)"),
        (
            "c",
            "atomic_store_explicit(x, 1, memory_order_relaxed, memory_scope_device);",
            "there are no scopes in C",
        ),
        (
            "opencl",
            "atomic_store_explicit(x, 1, memory_order_acquire, memory_scope_device);",
            "a store cannot acquire",
        ),
        (
            "opencl",
            "int r = atomic_load_explicit(x, memory_order_release, memory_scope_device);",
            "a load cannot release",
        ),
        (
            "opencl",
            "int r = atomic_load_explicit(x, memory_order_consume, memory_scope_device);",
            "a load cannot release",
        ),
        (
            "opencl",
            "atomic_store_explicit(x, 1, memory_order_relaxed, memory_scope_block);",
            "did you mean `memory_scope_work_group`?",
        ),
        (
            "opencl",
            "atomic_store_explicit(x, 1, memory_order_relaxed, thread_scope_device);",
            "did you mean `memory_scope_device`?",
        ),
        (
            "opencl",
            "atomic_work_item_fence(0, memory_order_release, memory_scope_device);",
            "a fence without flags is undefined",
        ),
    ];
    for (dialect, code, rule) in cases {
        let folder = Folder::new(&[("t.toml", &c_like(dialect, "x = { type = \"atomic_int\" }", code))]);
        folder.refused(&["t.toml"], &["t.toml:8:", rule]);
    }
    let reference = "cuda::atomic_ref<int, cuda::thread_scope_device>(x)";
    let cases = [
        (
            format!("{reference}.store(1, cuda::memory_order_acquire);"),
            "a store cannot acquire (ISO C++, atomics.ref.ops)",
        ),
        (
            format!("int r = {reference}.load(cuda::memory_order_release);"),
            "a load cannot release (ISO C++, atomics.ref.ops)",
        ),
        (reference.replace("device", "gpu") + ".store(1);", "did you mean `thread_scope_device`?"),
        ("cuda::atomic<int> a;".into(), "is a `cuda::atomic<int, cuda::thread_scope_system>` of one thread"),
        ("#include \"mine.h\"".into(), "headers of your own are not supported"),
        ("#ifdef DEBUG".into(), "what is compiled here is not in the code"),
        ("template <int N> void f() {}".into(), "templates of your own are not supported"),
        ("x = 1; int r = __ldg(&x);".into(), "`__ldg` of memory that may be written"),
        ("int *p = &x; int r = __ldg(p); *p = 1;".into(), "use a plain load, or `__ldcg`"),
        ("int r = __nanosleep(1);".into(), "this has no value"),
        ("unsigned t = 1; int r = abs(t);".into(), "`abs` of something without a sign"),
        ("static int t = 1;".into(), "`static` variables are not supported"),
        ("static const int t = x;".into(), "the value of a `static` variable is no constant"),
        ("static const int *t = nullptr;".into(), "the value of a `static` variable is no constant"),
        ("int r = __shfl(1, 0);".into(), "`__shfl` is not supported: shuffles without `_sync`"),
        ("int r = __shfl_sync(-1, 1, 0, x);".into(), "only constants are supported here"),
        ("int r = __shfl_sync(-1, 1, 0, 3);".into(), "expected a power of two"),
    ];
    for (code, rule) in cases {
        let folder = Folder::new(&[("t.toml", &c_like("cuda", "x = 0", &code))]);
        folder.refused(&["t.toml"], &["t.toml:8:", rule]);
    }
}

#[test]
fn members_are_named_as_their_structure_has_them() {
    let test = |memory: &str, condition: &str| {
        let code = "struct Node { int data; int at[2]; }; Node t = m; int r = t.data;";
        format!(
            "name = \"t\"\ndialect = \"cuda\"\ncondition = \"{condition}\"\n[memory]\nx = 0\n{memory}\n[[thread]]\ncode = \"{code}\"\n"
        )
    };
    let node = "m = { type = \"Node\" }";
    for (memory, condition, part) in [
        (node, "m == 1", "`m` has more than one value"),
        (node, "m.dat == 1", "did you mean `m.data`?"),
        (node, "m.at == 1", "expected one of `m.data`, `m.at[0]`, `m.at[1]`"),
        (node, "m[1].data == 1", "`m` has no `[1].data`"),
        (node, "x.data == 1", "`x` is no structure"),
        (node, "P0:t == 1", "`t` has more than one value"),
        (node, "P0:r == &m.q", "`m` has no `.q`"),
        ("m = { type = \"Nodes\" }", "x == 1", "`type` cannot be `Nodes`"),
        ("m = { type = \"Node\", init = [1, 2] }", "x == 1", "2 values for a `Node`"),
        ("m = { type = \"Node\", size = 100000 }", "x == 1", "memory holds 1 to 16384 values"),
        ("m = { type = \"Node\", init = [1, 2, \"&m.q\"] }", "x == 1", "there is no `&m.q`"),
    ] {
        let folder = Folder::new(&[("t.toml", &test(memory, condition))]);
        folder.refused(&["t.toml"], &["t.toml:", part]);
    }
}

#[test]
fn evaluations_that_are_not_sequenced_cannot_be_written() {
    for code in [
        "*x = (*x)++;",
        "*x = ++*x;",
        "int r = ++*x + *x;",
        "int i = 0; int r = i++ + i;",
        "int r = (*x = 1) + *x;",
        "int r = (*x += 1) + *x;",
    ] {
        let folder = Folder::new(&[("t.toml", &c_like("c", "x = { type = \"int\" }", code))]);
        folder.refused(&["t.toml"], &["t.toml:8:", "error[unsequenced]"]);
    }
}

#[test]
fn constant_memory_is_neither_atomic_nor_written() {
    let memory = "c = { type = \"atomic_int\", space = \"const\" }\nd = { type = \"int\", space = \"const\" }";
    let cases = [
        "int r = atomic_load_explicit(c, memory_order_relaxed, memory_scope_device);",
        "atomic_store_explicit(c, 1, memory_order_relaxed, memory_scope_device);",
        "*d = 1;",
    ];
    for code in cases {
        let folder = Folder::new(&[("t.toml", &c_like("opencl", memory, code))]);
        folder.refused(&["t.toml"], &["error[constant-memory]", "t.toml:9:", "which is in constant memory"]);
    }
    // A plain load is what constant memory is for.
    let folder = Folder::new(&[("t.toml", &c_like("opencl", memory, "int r = *d;"))]);
    assert_eq!(folder.run(&["check", "t.toml"]).code, Some(0));
}

#[test]
fn local_memory_that_work_groups_share_is_worth_a_warning() {
    let litmus = "OPENCL shared\n{ [x] = 0; }\n\
        P0@wg 0, dev 0 (local atomic_int* x) { atomic_store_explicit(x, 1, memory_order_relaxed); }\n\
        P1@wg 1, dev 0 (local atomic_int* x) { int r0 = atomic_load_explicit(x, memory_order_relaxed); }\n\
        exists (1:r0 = 1)\n";
    let folder = Folder::new(&[("t.litmus", litmus), ("own.litmus", &litmus.replace("@wg 1", "@wg 0"))]);
    let said = folder.run(&["check", "t.litmus", "--format", "jsonl"]);
    assert_eq!((said.code, said.out.lines().count()), (Some(0), 1), "{}", said.err);
    for words in
        ["warning[shared-local]: local memory `x` is shared by two work-groups", "t.litmus:4:", "3 | P0@wg 0"]
    {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    assert_eq!(folder.run(&["check", "own.litmus"]).err, "");
    // In TOML, each work-group has a copy of its own: nothing is shared, and nobody sees the other's value.
    let toml = "name = \"T\"\ndialect = \"opencl\"\ncondition = 'P1:r0 == 1'\n[memory]\n\
        x = { type = \"atomic_int\", space = \"local\" }\n[[thread]]\nwork_group = 0\ncode = 'atomic_store(x, 1);'\n\
        [[thread]]\nwork_group = 1\ncode = 'int r0 = atomic_load(x);'\n";
    folder.write("t.toml", toml.as_bytes());
    let said = folder.run(&["check", "t.toml", "--format", "jsonl"]);
    assert!(said.err.is_empty() && said.out.contains("\"verdict\":\"forbidden\""), "{}{}", said.out, said.err);
}

#[test]
fn a_wait_that_waits_for_nothing_is_worth_a_warning() {
    let test = |code: &str| {
        let head = "name = \"T\"\ncondition = 'P0:r0 == 1'\n[memory]\ng = { type = \"u64\", init = [1, 1] }\n\
                    s = { type = \"u64\", init = [0, 0], space = \"shared\" }\n\
                    b = { type = \"mbarrier\", space = \"shared\" }\n[[thread]]\n";
        format!("{head}code = '''\n{code}\nld.shared.u64 r0, [s]\n'''\n")
    };
    let (copy, commit, wait) =
        ("cp.async.ca.shared.global [s], [g], 8", "cp.async.commit_group", "cp.async.wait_group");
    let (store, tracked) = (
        "cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16",
        "mbarrier.init.shared::cta.b64 [b], 1\n\
         cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [b]",
    );
    let (reduce, release, matrix) = (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [g], [s], 16",
        "red.async.release.gpu.global.add.u64 [g], 1",
        "wgmma.fence\nwgmma.mma_async q, [s], 16",
    );
    let cases = [
        (format!("{copy}\n{commit}\n{wait} 0"), None),
        (format!("{copy}\n{commit}\n{commit}\n{wait} 1"), None),
        (format!("{copy}\ncp.async.wait_all"), None),
        (format!("{store}\ncp.async.bulk.commit_group\ncp.async.bulk.wait_group.read 0"), None),
        (format!("{wait} 0"), Some("no `cp.async` of this thread")),
        (format!("{copy}\n{wait} 0"), Some("no `cp.async.commit_group` stands between")),
        (format!("{commit}\n{copy}\n{wait} 0"), Some("no `cp.async.commit_group` stands between")),
        (format!("{copy}\n{commit}\n{wait} 1"), Some("1 of 1 groups that may be incomplete")),
        (format!("{copy}\n{commit}\ncp.async.bulk.wait_group 0"), Some("no `cp.async.bulk` of this thread")),
        (
            format!("{tracked}\ncp.async.bulk.commit_group\ncp.async.bulk.wait_group 0"),
            Some("tracked by an mbarrier"),
        ),
        ("cp.async.wait_all".to_owned(), Some("no `cp.async` of this thread")),
        (format!("{reduce}\ncp.async.bulk.commit_group\ncp.async.bulk.wait_group 0"), None),
        (format!("{reduce}\ncp.async.bulk.wait_group 0"), Some("no `cp.async.bulk.commit_group` stands between")),
        (format!("{reduce}\n{commit}\n{wait} 0"), Some("no `cp.async` of this thread")),
        (format!("{release}\n{commit}\n{wait} 0"), Some("no `cp.async` of this thread")),
        (format!("{matrix}\nwgmma.commit_group\nwgmma.wait_group 0"), None),
        (format!("{matrix}\nwgmma.wait_group 0"), Some("no `wgmma.commit_group` stands between")),
        (
            format!("{matrix}\ncp.async.bulk.commit_group\ncp.async.bulk.wait_group 0"),
            Some("no `cp.async.bulk` of this"),
        ),
    ];
    for (code, wanted) in cases {
        let folder = Folder::new(&[("t.toml", &test(&code))]);
        let said = folder.run(&["check", "t.toml", "--model", "ptx"]);
        assert!(matches!(said.code, Some(0 | 3)), "{code}: {}", said.err);
        match wanted {
            None => assert!(!said.err.contains("empty-wait"), "{code}: {}", said.err),
            Some(why) => {
                for word in ["warning[empty-wait]: a wait that waits for nothing", why] {
                    assert!(said.err.contains(word), "{code}: `{word}` is missing in:\n{}", said.err);
                }
            }
        }
    }
}

#[test]
fn of_a_program_that_may_end_early_nothing_else_is_said() {
    let ptx = |order: &str| {
        format!(
            "name = \"T\"\ncondition = 'P1:r0 == 1 && P1:r1 == 0'\nmemory = {{ x = 0, f = 0 }}\n[[thread]]\n\
             code = \"st.weak x, 1; st.{order}.gpu f, 1\"\n[[thread]]\ncta = 1\ncode = '''\nld.acquire.gpu r0, f\n\
             bne r0, 1, end\nld.weak r1, x\nsetp.ne.u32 p, r1, 1\n@p trap\nend:\n'''\n"
        )
    };
    let cuda = |order: &str, check: &str| {
        let flag = "cuda::atomic_ref<int, cuda::thread_scope_device>(f)";
        format!(
            "name = \"T\"\ndialect = \"cuda\"\nmemory = {{ x = 0, f = 0 }}\ncondition = 'P1:r == 2'\n[[thread]]\n\
             code = \"x = 1; {flag}.store(1, cuda::memory_order_{order});\"\n[[thread]]\nblock = 1\n\
             code = \"int r = {flag}.load(cuda::memory_order_acquire); if (r == 1) {{ {check} }}\"\n"
        )
    };
    let cases = [
        (ptx("release"), "forbidden", ""),
        (ptx("relaxed"), "undecided", "`@p trap` (P1, line 13) can end the program"),
        (cuda("release", "assert(x == 1);"), "forbidden", ""),
        (cuda("relaxed", "assert(x == 1);"), "undecided", "`assert(x == 1);` (P1, line 9) can end the program"),
        (cuda("release", "__trap();"), "undecided", "`__trap();` (P1, line 9) can end the program"),
    ];
    for (text, verdict, why) in cases {
        let folder = Folder::new(&[("t.toml", &text)]);
        let said = folder.run(&["check", "t.toml", "--engine", "both", "--format", "jsonl"]);
        assert_eq!(
            said.code,
            Some(if verdict == "undecided" { 3 } else { 0 }),
            "{text}\n{}{}",
            said.out,
            said.err
        );
        for wanted in [&format!("\"verdict\":\"{verdict}\""), why] {
            assert!(said.out.contains(wanted), "{text}\n`{wanted}` is missing in:\n{}", said.out);
        }
        let seen = folder.run(&["run", "t.toml", "--schedule", "exhaustive"]).out;
        assert_eq!(seen.contains("ends the program"), verdict == "undecided", "{text}\n{seen}");
    }
}

#[test]
fn the_scope_of_one_work_item_is_worth_a_warning() {
    let code = "atomic_store_explicit(x, 1, memory_order_relaxed, memory_scope_work_item);";
    let folder = Folder::new(&[("t.toml", &c_like("opencl", "x = { type = \"atomic_int\" }", code))]);
    let said = folder.run(&["check", "t.toml"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.err.contains("warning[useless-scope]") && said.err.contains("OpenCL C, Memory Scope"),
        "{}",
        said.err
    );
}

/// Operators on such an object would have no scope in CUDA C++, and PTX knows none.
#[test]
fn atomic_types_of_c_are_of_no_other_dialect() {
    for (dialect, code, wanted) in [
        ("cuda", "x = 1;", "`cuda::std::atomic_int`"),
        ("ptx", "st.relaxed.gpu.u32 [x], 1;", "expected a type such as `u32`"),
    ] {
        for ty in ["atomic_int", "atomic_ulong", "atomic_flag"] {
            let folder = Folder::new(&[("t.toml", &c_like(dialect, &format!("x = {{ type = \"{ty}\" }}"), code))]);
            let said = folder.run(&["check", "t.toml"]);
            assert_eq!(said.code, Some(2), "{dialect}: {}{}", said.out, said.err);
            for words in ["error[conflicting-keys]", "has no atomic types of C", wanted, ":5:"] {
                assert!(said.err.contains(words), "{dialect}: `{words}` is missing in\n{}", said.err);
            }
        }
    }
}

#[test]
fn index_spaces_that_there_are_not() {
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "opencl",
            "global = 2\nlocal = 2\noffset = 18446744073709551614",
            &["bad-range", "exceed the largest `size_t`", ":7:10"],
        ),
        (
            "opencl",
            "global = [4, 3]\nlocal = [2, 2]\nuniform = true",
            &["bad-range", "dimension 1, 3 work-items are not whole work-groups of 2", ":5:10"],
        ),
        ("opencl", "global = 4\nlocal = 0", &["bad-range", "groups of size 0", ":6:9"]),
        ("opencl", "global = 4\nlocal = [2, 2]", &["bad-range", "2 dimensions, but `global` has 1"]),
        ("opencl", "global = [1, 1, 1, 1]\nlocal = 1", &["bad-range", "1 to 3 dimensions"]),
        ("opencl", "global = 4", &["missing-key", "no `local`"]),
        ("opencl", "global = 4\nlocal = 2\ngrid = 2", &["conflicting-keys", "both say how many work-items"]),
        ("opencl", "global = [4294967296, 4294967296]\nlocal = [1, 1]", &["too-many-threads"]),
        ("opencl", "global = -4\nlocal = 2", &["wrong-type", "a negative integer"]),
        ("cuda", "global = 4\nlocal = 2", &["conflicting-keys", "expected `grid` and `block`"]),
        ("cuda", "block = [2, 0]", &["bad-number", "`block` cannot be 0", ":5:9"]),
        ("cuda", "grid = 2", &["missing-key", "no `block`"]),
        ("cuda", "grid = [4294967296, 4294967296]\nblock = [4294967296, 2]", &["too-many-threads"]),
    ];
    for (dialect, range, words) in cases {
        let text = format!(
            "name = \"t\"\ndialect = \"{dialect}\"\nmemory = {{ x = 0 }}\n[kernel]\n{range}\ncode = \"int r = 1;\"\n"
        );
        Folder::new(&[("t.toml", &text)]).refused(&["t.toml"], words);
    }
}

#[test]
fn every_misuse_of_asynchronous_operations_has_its_own_words() {
    let test = |first: &str| {
        format!(
            "name = \"Bad\"\ncondition = 'g[0] == 7'\n[memory]\ng = [7, 8]\nh = [7, 8]\nw = 0\n\
             s = {{ init = [0, 0], space = \"shared\" }}\nu = {{ type = \"mbarrier\", space = \"shared\" }}\n\
             b = {{ type = \"mbarrier\", init = 1, space = \"shared\" }}\n\
             [[thread]]\ncta = 0\ncluster = 0\ncode = '''\n{first}\n'''\n\
             [[thread]]\ncta = 1\ncluster = 0\ncode = 'nanosleep.u32 1'\n[expect]\nptx = {{ undefined = \"defined\" }}\n"
        )
    };
    let load = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes";
    let multicast = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster";
    let store = "cp.async.bulk.global.shared::cta.bulk_group";
    let expect = "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [b]";
    let refused = [
        (format!("{load} [g], [h], 16, [b]"), "this writes shared memory, and `g` lives elsewhere"),
        (format!("{store} [g], [h], 16"), "this reads shared memory, and `h` lives elsewhere"),
        (format!("{store} [g+8], [s], 16"), "16 bytes at byte 8 of `g`, whose elements have 8 bytes"),
        (format!("{store} [g], [s], 8"), "a bulk operation has a multiple of 16 bytes"),
        (format!("{expect}, 1048576"), "an mbarrier object cannot count 1048576 bytes"),
        ("ld.shared.u64 r0, [b]".to_owned(), "an ordinary access to an mbarrier object is undefined"),
        ("mbarrier.arrive.shared.b64 _, [w]".to_owned(), "`w` is no mbarrier object"),
        ("mbarrier.wait [b], 2".to_owned(), "a phase has no parity 2"),
        (format!("{multicast} [s], [g], 16, [b], 8"), "the cluster has no CTA of rank 3"),
        (format!("{multicast} [s], [g], 16, [b], 0"), "0 names no CTAs"),
        ("mapa.shared::cluster.u64 r1, b, 2".to_owned(), "the cluster has no CTA of rank 2"),
    ];
    for (code, words) in refused {
        Folder::new(&[("bad.toml", &test(&code))]).refused(&["bad.toml"], &[words, "bad.toml:14:1"]);
    }
    // What only an execution shows is undefined in it.
    let remote = "mapa.shared::cluster.u64 r1, b, 1";
    let undefined = [
        ("mbarrier.arrive.shared.b64 _, [u]".to_owned(), "it finds in `P0:u`: no mbarrier object"),
        (
            format!("{expect}, 1048575\n{expect}, 1048575"),
            "it finds in `P0:b`: phase 0, pending 1 of 1, tx 1048575",
        ),
        (format!("{remote}\n{load} [s], [g], 16, [r1]"), "is not in the memory of the CTA to which the copy of"),
    ];
    for (code, words) in undefined {
        let folder = Folder::new(&[("bad.toml", &test(&code))]);
        let said = folder.run(&["ask", "bad.toml", "--model", "ptx"]);
        assert!(said.out.contains("the program is undefined") && said.out.contains(words), "{}", said.out);
    }
}

#[test]
fn objects_of_the_library_that_are_no_mbarrier_objects_have_no_counterpart_in_ptx() {
    for (memory, code) in [
        (
            "b = { type = \"cuda::barrier<cuda::thread_scope_device>\", init = 1, space = \"shared\" }",
            "b.arrive();",
        ),
        ("b = { type = \"cuda::barrier<cuda::thread_scope_block>\", init = 1 }", "b.arrive();"),
        (
            "b = { type = \"cuda::latch<cuda::thread_scope_block>\", init = 1, space = \"shared\" }",
            "b.count_down();",
        ),
        (
            "b = { type = \"cuda::barrier<cuda::thread_scope_block>\", init = 1, space = \"shared\" }\n\
             d = { type = \"cuda::barrier<cuda::thread_scope_block>\", init = 1 }\nn = 1",
            "auto *p = n ? &b : &d; p->arrive();",
        ),
    ] {
        let folder = Folder::new(&[("t.toml", &c_like("cuda", memory, code))]);
        let said = folder.run(&["ask", "t.toml", "--model", "ptx"]);
        assert!(said.out.contains("barriers of block scope in shared memory"), "{code}: {}{}", said.out, said.err);
    }
}

#[test]
fn functions_that_are_instructions_in_forms_that_are_not_supported() {
    let memory = "x = { init = [0, 0, 0, 0], type = \"int\", space = \"shared\" }\n\
                  g = { init = [0, 0, 0, 0], type = \"int\" }\n\
                  c = { init = [0, 0, 0, 0], type = \"char\", space = \"shared\" }\n\
                  d = { init = [0, 0, 0, 0], type = \"char\" }\n\
                  w = { type = \"u64\" }\nb = { type = \"u64\", space = \"shared\" }\n\
                  n = 16\n\
                  bar = { type = \"cuda::barrier<cuda::thread_scope_block>\", init = 1, space = \"shared\" }\n\
                  far = { type = \"cuda::barrier<cuda::thread_scope_device>\", init = 1, space = \"shared\" }";
    let bulk = |ends: &str| {
        format!("cuda::ptx::cp_async_bulk(cuda::ptx::space_shared, cuda::ptx::space_global, {ends}, &b);")
    };
    for (code, words) in [
        (
            "cuda::ptx::clusterlaunchcontrol_try_cancel(&x, &b);".to_owned(),
            "the instruction `cuda::ptx::clusterlaunchcontrol_try_cancel` is not supported",
        ),
        (
            "cuda::ptx::fence_proxy_alias(1);".to_owned(),
            "this form of `cuda::ptx::fence_proxy_alias` is not supported",
        ),
        ("cuda::ptx::mbarrier_init(&g[0], 1);".to_owned(), "this is no address of a 64-bit word"),
        ("cuda::ptx::mbarrier_init(&w, 1);".to_owned(), "`w` is not in shared memory"),
        ("cuda::ptx::mbarrier_init(&b, 40000);".to_owned(), "an mbarrier object cannot count 40000 arrivals"),
        (bulk("x, g, 12"), "a bulk operation has a multiple of 16 bytes"),
        (bulk("x, g, n"), "this has to be a constant"),
        (bulk("x, g, 32"), "bytes 0 to 31 of `g`, which has 16"),
        (bulk("x, x, 16"), "`x` is not in global memory"),
        (bulk("g, g, 16"), "`g` is not in shared memory"),
        (bulk("n ? x : x, g, 16"), "what this points to cannot be told"),
        (bulk("x, d, 16"), "a copy between elements of different sizes"),
        ("cuda::device::memcpy_async_tx(x, g, 16, far);".to_owned(), "this is no barrier of block scope"),
        ("cuda::device::barrier_native_handle(x);".to_owned(), "this is no barrier of block scope"),
        (
            "cuda::memcpy_async(x, g, 6, bar);".to_owned(),
            "6 bytes that are aligned at 4 are no asynchronous copy here",
        ),
        (
            "cuda::memcpy_async(c, d, 4, bar);".to_owned(),
            "4 bytes that are aligned at 1 are no asynchronous copy here",
        ),
        ("cuda::memcpy_async(1, x, g, 16, bar);".to_owned(), "this form of `cuda::memcpy_async` is not supported"),
        ("auto p = cuda::make_pipeline(1, 2);".to_owned(), "this is no pipeline that is supported"),
        (
            "cuda::pipeline<cuda::thread_scope_block> p;".to_owned(),
            "this declaration of a pipeline is not supported",
        ),
        ("auto p = cuda::make_pipeline(); p.quit();".to_owned(), "`quit` of a pipeline is not supported"),
        (
            "cuda::pipeline_consumer_wait_prior<1>(x);".to_owned(),
            "this takes a number and a pipeline of one thread",
        ),
    ] {
        Folder::new(&[("t.toml", &c_like("cuda", memory, &code))]).refused(&["t.toml"], &[words]);
    }
    let moved = "name = \"T\"\ndialect = \"cuda\"\ncondition = 'true'\nmemory = { g = { init = [1, 2, 3, 4], type = \"int\" } }\n\
                 [kernel]\nblock = 1\ncode = '''\n__global__ void k(int *g) {\n__shared__ int x[4]; auto p = cuda::make_pipeline();\n\
                 for (int i = 0; i < 2; ++i) { cuda::memcpy_async(x, g, 4, p); g = g + 1; }\n}\n'''\n";
    Folder::new(&[("t.toml", moved)]).refused(&["t.toml"], &["what this points to cannot be told"]);
    let host = "name = \"T\"\ndialect = \"cuda\"\ncondition = 'true'\nmemory = { x = 0 }\n[[host]]\ncode = \"cudaGridDependencySynchronize();\"\n";
    Folder::new(&[("t.toml", host)])
        .refused(&["t.toml"], &["`cudaGridDependencySynchronize` is a function of the device"]);
    // The language has no words for them; and what a pointer is to is known when the program is mapped.
    for (model, code, words) in [
        ("cuda", "cuda::memcpy_async(x, g, 16, bar);", "PTX in assembly or in a function of the library"),
        (
            "ptx",
            "auto *p = n ? &b : &w; cuda::ptx::mbarrier_arrive(p);",
            "an mbarrier object is a word of 64 bits in shared memory, and `w` is not",
        ),
    ] {
        let folder = Folder::new(&[("t.toml", &c_like("cuda", memory, code))]);
        let said = folder.run(&["ask", "t.toml", "--model", model]);
        assert!(said.out.contains(words), "{code}: {}{}", said.out, said.err);
    }
}

#[test]
fn counts_and_arguments_that_barriers_of_the_library_do_not_have() {
    for (code, words) in [
        ("init(&b, 40000);", "expected a count between 0 and 32767"),
        ("b.wait();", "one argument: what it waits for"),
        ("b.wait_parity();", "one argument: what it waits for"),
        ("b.try_wait_for(0);", "two arguments: what it waits for, and how long"),
        ("b.try_wait_until(0, 0);", "`try_wait_until` of a barrier is not supported"),
    ] {
        let memory = "b = { type = \"cuda::barrier<cuda::thread_scope_block>\", space = \"shared\" }";
        Folder::new(&[("t.toml", &c_like("cuda", memory, code))]).refused(&["t.toml"], &[words]);
    }
}

#[test]
fn what_has_no_counterpart_in_ptx_is_undecided_under_models_of_ptx() {
    let code = "int r = atomic_fetch_add_explicit(x, 1, memory_order_relaxed, memory_scope_device);";
    let folder = Folder::new(&[("t.toml", &c_like("opencl", "x = { type = \"u8\", atomic = true }", code))]);
    let said = folder.run(&["check", "t.toml", "--model", "ptx"]);
    assert_eq!(said.code, Some(3), "{}", said.err);
    for words in [
        "undecided",
        "not in this model: mapping `opencl-ptx` has no counterpart in PTX of `int r = atomic_fetch_add_explicit(",
        "line 8",
        "PTX `atom` has no such operation of 8 bits",
    ] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    // Of an undecided program no outcome is listed, and none is compared.
    for command in ["outcomes t.toml --model ptx", "compare t.toml --models opencl,ptx", "run t.toml --model ptx"]
    {
        let said = folder.run(&command.split(' ').collect::<Vec<_>>());
        assert!(
            said.out.contains("not in this model: mapping `opencl-ptx`"),
            "{command}: {}{}",
            said.out,
            said.err
        );
    }
    assert_eq!(folder.run(&["check", "t.toml", "--model", "opencl"]).code, Some(0));
}

/// Memory of several sizes is what its declaration says, and an access that is to no whole field of it is refused or, where values decide
/// that, undecided.
#[test]
fn fields_that_mean_nothing_and_accesses_that_are_to_none() {
    let load = "mov.u64 p, s\nld.u32 r0, [p]";
    for (memory, code, word) in [
        ("fields = { a = \"u33\" }", load, "`u33` is no type of a field"),
        ("fields = { a = \"u8[0]\" }", load, "`u8[0]` is no type of a field"),
        ("fields = { \"a-b\" = \"u8\" }", load, "`a-b` cannot be the name of a field"),
        ("fields = {}", load, "at least one field"),
        ("fields = { a = \"u32\" }, type = \"u32\"", load, "`type` beside `fields`"),
        ("fields = { a = \"u32\" }, bytes = 4", load, "`bytes` beside `fields`"),
        ("fields = { a = \"mbarrier\" }", load, "an mbarrier object is in shared memory"),
        ("fields = { a = \"u32\", b = \"u8\" }, init = [1, 2, 3]", load, "3 values"),
        ("bytes = 0", load, "an array has 1 to 65536 bytes"),
        ("bytes = 8, init = 1", load, "`init` beside `bytes`"),
        ("fields = { k = \"u64\", n = \"u32\" }", load, "a 32-bit access to `s.k`, which has 64 bits"),
        (
            "fields = { n = \"u16[2]\", k = \"u32\" }",
            "mov.u64 p, s\nld.u32 i, [index]\nmul.wide.u32 o, i, 4\nadd.u64 p, p, o\nld.u32 r0, [p]",
            "to one field or to several of `s`",
        ),
    ] {
        let test =
            one_thread("P0:r0 == 5", &format!("s = {{ {memory} }}, index = {{ init = 0, type = \"u32\" }}"), code);
        let folder = Folder::new(&[("t.toml", &test)]);
        folder.refused(&["t.toml"], &[word, "t.toml:"]);
    }
    let code = "mov.u64 p, s\nld.u32 i, [index]\nmul.wide.u32 o, i, 4\nadd.u64 p, p, o\nld.u32 r0, [p]";
    let memory = |index| {
        format!(
            "s = {{ fields = {{ a = \"u32[2]\", k = \"u64\" }} }}, index = {{ init = {index}, type = \"u32\" }}"
        )
    };
    let folder = Folder::new(&[
        ("t.toml", &one_thread("P0:r0 == 5", &memory(2), code)),
        ("u.toml", &one_thread("P0:r0 == 5", &memory(1), code)),
    ]);
    folder.undecided(&["t.toml"], "ld.u32 r0, [p]");
    assert_eq!(folder.run(&["check", "u.toml"]).code, Some(0));
    let cuda = "name = \"T\"\ndialect = \"cuda\"\ncondition = \"true\"\nmemory = { s = { bytes = 8 } }\n[[thread]]\ncode = \"s = 1;\"\n";
    Folder::new(&[("t.toml", cuda)]).refused(&["t.toml"], &["memory of the dialect `cuda` has no `bytes`"]);
}
