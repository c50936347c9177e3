//! Gives wrong, hostile or too large input to the built binary, and checks its messages.
//!
//! # Invariants
//! - Bad input has no verdict: no line on standard output, a diagnostic with its place on standard
//!   error, code 2.
//! - Input that is too large is `undecided` with the limit that it reached, code 3; never a wrong
//!   answer, a panic or an abort.

mod asynchronous;
mod languages;
mod limits;

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
        files
            .iter()
            .for_each(|(name, text)| folder.write(name, text.as_bytes()));
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

    /// Runs the binary. On any input, it never panics and never dies of a signal.
    fn run(&self, arguments: &[&str]) -> Said {
        let said = fencepost(self.path(), &[arguments, &["--color", "never"]].concat());
        assert!(said.code.is_some(), "{arguments:?} died:\n{}", said.err);
        for word in ["panicked", "overflowed", "a defect of Fencepost"] {
            assert!(
                !said.err.contains(word) && !said.out.contains(word),
                "{arguments:?}: {}",
                said.err
            );
        }
        said
    }

    /// `check` on bad input: no verdict, code 2, and each of `words` on standard error.
    fn refused(&self, arguments: &[&str], words: &[&str]) {
        let said = self.run(&[&["check", "--format", "jsonl"], arguments].concat());
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(2), ""),
            "{arguments:?}: {}",
            said.err
        );
        for word in words {
            assert!(
                said.err.contains(word),
                "{arguments:?}: `{word}` is missing in:\n{}",
                said.err
            );
        }
    }

    /// `check` on too much input: undecided for that reason, code 3.
    fn undecided(&self, arguments: &[&str], reason: &str) {
        let said = self.run(&[&["check", "--format", "jsonl"], arguments].concat());
        assert_eq!(
            said.code,
            Some(3),
            "{arguments:?}: {}{}",
            said.out,
            said.err
        );
        for line in said.out.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["verdict"], "undecided", "{arguments:?}: {line}");
            let told = line["reason"].as_str().unwrap_or_default();
            assert!(
                told.contains(reason),
                "{arguments:?}: `{reason}` is missing in `{told}`"
            );
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
    folder.refused(
        &["gone.toml"],
        &["error[missing-path]: `gone.toml` does not exist"],
    );
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
    folder.refused(
        &["key.toml"],
        &[
            "no key `conditoin`",
            "key.toml:2:1",
            "did you mean `condition`?",
        ],
    );
    folder.refused(&["type.toml"], &["error[wrong-type]", "type.toml:13:7"]);
    folder.refused(
        &["latin.toml"],
        &[
            "error[not-utf8]: `latin.toml` is not UTF-8",
            "line 2, column 10",
        ],
    );
    folder.refused(
        &["name.toml"],
        &["error[bad-name]: `M\\nP` cannot be", "name.toml:1:"],
    );
    folder.refused(
        &["escape.toml"],
        &["error[bad-name]", "holds a control character"],
    );
}

#[test]
fn code_that_means_nothing() {
    let cases = [
        (
            "st.weak x, 1",
            "sst.weak x, 1",
            "error[unknown-instruction]: there is no instruction `sst`",
            "8:1",
        ),
        ("st.weak x, 1", "st.weak x, r9", "`r9`", "8:12"),
        ("st.weak x, 1", "bra nowhere;", "`nowhere`", "8:5"),
        (
            "st.weak x, 1",
            "st.weak y, 1",
            "error[unknown-location]: there is no location `y`",
            "8:9",
        ),
        (
            "st.weak x, 1",
            "st.weak x[7], 1",
            "error[out-of-bounds]: `x` has one element, this is number 7",
            "8:9",
        ),
        ("P1:r0 == 1", "P1:r7 == 1", "`r7`", "2:"),
        (
            "P1:r0 == 1",
            "P9:r0 == 1",
            "error[unknown-thread]: there is no thread `P9`",
            "2:",
        ),
        ("P1:r0 == 1", "x[3] == 1", "error[out-of-bounds]", "2:"),
        ("P1:r0 == 1", "P1:r0 = = 1", "error[condition-syntax]", "2:"),
        ("ptx = {", "pxt = {", "there is no model `pxt`", ":20:"),
        (
            "\"forbidden\"",
            "\"forbiden\"",
            "`reachability` cannot be `forbiden`",
            ":20:",
        ),
    ];
    for (good, bad, message, place) in cases {
        let folder = Folder::new(&[("t.toml", &GOOD.replacen(good, bad, 1))]);
        folder.refused(&["t.toml"], &[message, place, "t.toml:"]);
    }
}

#[test]
fn models_that_mean_nothing() {
    let deep = format!(
        "\"deep\"\nacyclic {}po{} as a\n",
        "(".repeat(100_000),
        ")".repeat(100_000)
    );
    let folder = Folder::new(&[
        ("good.toml", GOOD),
        ("type.cat", "\"T\"\nlet a = W | po\nacyclic a as x\n"),
        ("name.cat", "\"T\"\nacyclic poo as x\n"),
        ("set.cat", "\"T\"\nempty RR & R as x\n"),
        ("self.cat", "\"T\"\ninclude \"self.cat\"\nacyclic po as x\n"),
        ("gone.cat", "\"T\"\ninclude \"nothing.cat\"\n"),
        ("absolute.cat", "\"T\"\ninclude \"/etc/passwd\"\n"),
        ("models/above.cat", "\"T\"\ninclude \"../rec.cat\"\n"),
        ("open.cat", "\"T\" (* no end\nacyclic po as x\n"),
        ("rec.cat", "\"T\"\nlet rec a = po \\ a\nacyclic a as x\n"),
        ("deep.cat", &deep),
        ("folder.cat/README.md", ""),
    ]);
    folder.write("latin.cat", b"\"T\"\n(* gr\xfcn *)\n");
    let cases = [
        (
            "type.cat",
            "`|` joins a set and a relation",
            "type.cat:2:13",
        ),
        (
            "name.cat",
            "error[unknown-name]: unknown name `poo`",
            "name.cat:2:9",
        ),
        (
            "set.cat",
            "error[unknown-name]: unknown name `RR`",
            "set.cat:2:7",
        ),
        ("self.cat", "error[include-cycle]", "self.cat:2:1"),
        ("gone.cat", "there is no file `nothing.cat`", "gone.cat:2:1"),
        (
            "absolute.cat",
            "`/etc/passwd` is outside the folder of the model",
            "absolute.cat:2:1",
        ),
        (
            "models/above.cat",
            "`../rec.cat` is outside the folder of the model",
            "above.cat:2:1",
        ),
        ("open.cat", "error[unterminated-comment]", "open.cat:1:5"),
        ("rec.cat", "error[not-monotone]", "rec.cat:2:18"),
        ("deep.cat", "error[nesting-too-deep]", "deep.cat:2:1"),
        (
            "latin.cat",
            "`latin.cat` is not UTF-8: byte 0xfc",
            "line 2, column 6",
        ),
        ("folder.cat", "cannot read `folder.cat`", ""),
        ("missing.cat", "cannot read `missing.cat`", ""),
        ("pxt", "there is no model `pxt`", "did you mean `ptx`?"),
        ("vulkan", "not shipped", ""),
    ];
    for (model, message, place) in cases {
        folder.refused(&["good.toml", "--model", model], &[message, place]);
    }
}

/// Files that another user may have named, and whose lines must stay private.
#[test]
fn a_foreign_file_shows_one_line() {
    let secret = "root:x:0:0\nsync:x:4:65534\nuser:y/z:1:1\n";
    let folder = Folder::new(&[
        ("good.toml", GOOD),
        ("secret", secret),
        (
            "models/sub/part.cat",
            "let part = po\ninclude \"../whole.cat\"\n",
        ),
        ("models/whole.cat", "let whole = po\n"),
        (
            "models/up.cat",
            "\"T\"\ninclude \"sub/part.cat\"\nacyclic part | whole as A\n",
        ),
    ]);
    for arguments in [&["good.toml", "--model", "./secret"][..], &["secret"]] {
        let said = folder.run(&[&["check"], arguments].concat());
        let quoted = secret
            .lines()
            .filter(|line| said.err.contains(line))
            .count();
        assert_eq!(
            (said.code, quoted),
            (Some(2), 1),
            "{arguments:?}: {}",
            said.err
        );
    }
    let said = folder.run(&["check", "good.toml", "--model", "models/up.cat"]);
    assert_eq!(
        said.code,
        Some(0),
        "below its own folder a model includes anything: {}",
        said.err
    );
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(
            folder.path().join("secret"),
            folder.path().join("models/link.cat"),
        )
        .unwrap();
        folder.write("models/link-user.cat", b"\"T\"\ninclude \"link.cat\"\n");
        folder.refused(
            &["good.toml", "--model", "models/link-user.cat"],
            &["`link.cat` is outside the folder"],
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_model_file_without_end_is_not_read() {
    Folder::new(&[("good.toml", GOOD)]).refused(
        &["good.toml", "--model", "/dev/zero"],
        &["only regular files are read"],
    );
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
fn pointers_that_may_be_null() {
    let mut test = one_thread(
        "P0:r1 == 5",
        "y = 0, p = 0",
        "ld.relaxed.gpu.u64 %rd0, [p];\nld.weak.u32 %r1, [%rd0];",
    );
    test += "[[thread]]\ncta = 1\ncode = 'mov.u64 %rd1, y; st.relaxed.gpu.u64 [p], %rd1;'\n";
    let folder = Folder::new(&[("t.toml", &test)]);
    folder.undecided(&["t.toml"], "ld.weak.u32 %r1, [%rd0]");
}

#[test]
fn addresses_inside_of_an_element() {
    let code = "ld.weak.u64 %rd0, [i];\nmov.u64 %rd1, a;\nadd.u64 %rd2, %rd1, %rd0;\nld.weak.u32 %r1, [%rd2];";
    let test = one_thread(
        "P0:r1 == 5",
        "a = { type = 'u32', init = [0, 5] }, i = 2",
        code,
    );
    let folder = Folder::new(&[("t.toml", &test)]);
    folder.undecided(&["t.toml"], "ld.weak.u32 %r1, [%rd2]");
}

/// Lanes that exchange values must provably meet.
#[test]
fn lanes_that_may_not_meet() {
    let warp = |first: &str, second: &str| {
        let thread =
            |code: &str| format!("[[thread]]\ncta = 0\nwarp = 0\ncode = '''\n{code}\n'''\n");
        let head =
            "name = 't'\ncondition = 'P1:r1 == 5'\n[memory]\ni = { type = 'u32', init = 0 }\n";
        let writer = "[[thread]]\ncta = 1\ncode = 'st.relaxed.gpu.u32 [i], 1;'\n";
        format!("{head}{}{}{writer}", thread(first), thread(second))
    };
    let shuffle = "shfl.sync.idx.b32 r1, 5, 0, 31, -1;\n";
    let perhaps = format!("ld.relaxed.gpu.u32 r0, [i];\nsetp.eq.u32 p, r0, 1;\n@p {shuffle}");
    for (first, second, reason) in [
        (shuffle, "mov.u32 r1, 2;", "may not arrive"),
        (shuffle, perhaps.as_str(), "may not arrive"),
        (
            "mov.u32 r2, 1;",
            "shfl.sync.down.b32 r1, 5, 1, 31, 0x2;",
            "not worked out",
        ),
        (
            "shfl.sync.down.b32 r1, 5, 1, 31, 0x3;",
            "shfl.sync.down.b32 r1, 5, 1, 31, 0x3;",
            "not worked out",
        ),
    ] {
        let folder = Folder::new(&[("t.toml", &warp(first, second))]);
        folder.undecided(&["t.toml"], reason);
    }
    let together = "`activemask` in a loop";
    let again = "mov.u32 r2, 0;\nL: activemask.b32 r1;\nadd.u32 r2, r2, 1;\nsetp.lt.u32 p, r2, 2;\n@p bra L;";
    for (first, second) in [
        (again, again),
        (
            "L: activemask.b32 r1;",
            "L: mov.u32 r2, 0;\nactivemask.b32 r1;",
        ),
    ] {
        let folder = Folder::new(&[("t.toml", &warp(first, second))]);
        folder.undecided(&["t.toml"], together);
    }
    // Each names itself; one of them also names the other, if it reads 1.
    let read = |own: &str| {
        format!(
            "ld.relaxed.gpu.u32 r0, [i];\nor.b32 r0, r0, {own};\nshfl.sync.idx.b32 r1, 5, {own}, 31, r0;"
        )
    };
    let folder = Folder::new(&[("t.toml", &warp(&read("1"), &read("2")))]);
    folder.undecided(&["t.toml"], "may not arrive");
    let barrier = "ld.relaxed.gpu.u32 r0, [i];\nbar.warp.sync r0;\nmov.u32 r1, 5;";
    let folder = Folder::new(&[("t.toml", &warp(barrier, barrier))]);
    folder.undecided(&["t.toml"], "with lanes that depend on a read");
}

/// Work-items that exchange values must provably meet, and name the same one.
#[test]
fn work_items_that_may_not_meet() {
    let group = |first: &str, second: &str| {
        let thread = |code: &str| format!("[[thread]]\nwork_group = 0\ncode = '''\n{code}\n'''\n");
        let head = "name = 't'\ndialect = 'opencl'\ncondition = 'P0:r == 5'\n";
        let memory = "[memory]\nf = { type = 'atomic_int', space = 'local' }\n";
        format!("{head}{memory}{}{}", thread(first), thread(second))
    };
    let write = "atomic_store_explicit(f, 1, memory_order_relaxed, memory_scope_work_group);";
    let read = &format!(
        "{write} int r = atomic_load_explicit(f, memory_order_relaxed, memory_scope_work_group);"
    );
    let some = format!("{read} if (r) {{ r = work_group_any(1); }}");
    let broadcast = |item: &str| format!("{read} r = work_group_broadcast(5, {item});");
    let either = "int r = atomic_load_explicit(f, memory_order_relaxed, memory_scope_work_group);";
    let either = &format!("{either} {write} r = work_group_broadcast(5, r);");
    for (first, second, reason) in [
        (
            some.as_str(),
            "int r = work_group_any(0);",
            "may not arrive",
        ),
        (
            &broadcast("0"),
            &broadcast("1"),
            "does not name its own thread",
        ),
        (
            &broadcast("2"),
            &broadcast("2"),
            "does not name its own thread",
        ),
        (
            "int r = work_group_any(0);",
            "int r = sub_group_any(0);",
            "may not arrive",
        ),
    ] {
        let folder = Folder::new(&[("t.toml", &group(first, second))]);
        folder.undecided(&["t.toml"], reason);
    }
    // Both have read 1, which is known, but not before memory is read; or they may have read the
    // same.
    for (code, doubt) in [(&broadcast("r"), false), (either, true)] {
        let folder = Folder::new(&[("t.toml", &group(code, code))]);
        let said = folder.run(&["check", "t.toml", "--format", "jsonl"]);
        assert!(said.out.contains("allowed"), "{}", said.out);
        assert_eq!(said.out.contains("may not arrive"), doubt, "{}", said.out);
    }
}

#[test]
fn options_that_mean_nothing() {
    let folder = Folder::new(&[("good.toml", GOOD)]);
    folder.refused(
        &["good.toml", "--prelude", "ptxx"],
        &["there is no prelude `ptxx`", "did you mean `ptx`?"],
    );
    folder.refused(
        &["good.toml", "--set", "dep=syn"],
        &["option `dep` cannot be `syn`"],
    );
    folder.refused(
        &["good.toml", "--report", "json=a", "--report", "human=a"],
        &["two reports have the same file `a`"],
    );
    folder.refused(
        &["good.toml", "--report", "json=good.toml/a"],
        &["cannot write `good.toml/a`"],
    );
    folder.refused(&["good.toml", "--jobs", "0"], &["--jobs"]);
    assert!(!folder.path().join("a").exists());
}

#[test]
fn repetitions_are_answered_once() {
    let folder = Folder::new(&[("good.toml", GOOD)]);
    let absolute = folder.path().join("good.toml");
    let arguments = [
        "check",
        "good.toml",
        "./good.toml",
        absolute.to_str().unwrap(),
        "--format",
        "jsonl",
    ];
    let said = folder.run(
        &[
            &arguments[..],
            &["--model", "ptx", "--model", "sc", "--model", "ptx"],
        ]
        .concat(),
    );
    assert_eq!(
        (said.code, said.out.lines().count()),
        (Some(0), 2),
        "{}{}",
        said.out,
        said.err
    );
}

#[test]
fn a_model_without_axioms_is_worth_a_warning() {
    let folder = Folder::new(&[("good.toml", GOOD), ("none.cat", "\"none\"\n")]);
    let said = folder.run(&["check", "good.toml", "--model", "none.cat"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.err
            .contains("warning[no-axioms]: model `none.cat` has no axioms"),
        "{}",
        said.err
    );
}

#[test]
fn line_ends_and_marks_of_other_systems() {
    let litmus = "PTX MP\n\"doc\"\n{\nx=0;\nf=0;\n}\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n\
                  st.weak x, 1 | ld.acquire.gpu r0, f ;\n | ld.weak r2, f ;\n\
                  st.release.gpu f, 1 | ld.weak r1, x ;\nexists (P1:r0 == 1 /\\ P1:r1 == 0)";
    let model = "\"sc\"\nacyclic po | rf | co | fr as sc\n";
    let folder = Folder::new(&[
        ("a.cat", &model.replace('\n', "\r\n")),
        ("b.cat", &format!("\u{feff}{model}")),
    ]);
    for (name, text) in [("t.toml", GOOD), ("t.litmus", litmus)] {
        let variants = [
            text.to_owned(),
            text.replace('\n', "\r\n"),
            format!("\u{feff}{text}"),
            text.trim_end().to_owned(),
        ];
        for text in variants {
            folder.write(name, text.as_bytes());
            for model in ["ptx", "a.cat", "b.cat"] {
                let said = folder.run(&["check", name, "--model", model, "--format", "jsonl"]);
                assert_eq!(said.code, Some(0), "{text:?}: {}", said.err);
                assert!(
                    said.out.contains("\"verdict\":\"forbidden\""),
                    "{text:?}: {}",
                    said.out
                );
            }
        }
    }
}

/// The declaration defines fields of several sizes. An access to no whole field is refused or, if
/// values decide that, undecided.
#[test]
fn fields_that_mean_nothing_and_accesses_that_are_to_none() {
    let load = "mov.u64 p, s\nld.u32 r0, [p]";
    for (memory, code, word) in [
        (
            "fields = { a = \"u33\" }",
            load,
            "`u33` is not a type of a field",
        ),
        (
            "fields = { a = \"u8[0]\" }",
            load,
            "`u8[0]` is not a type of a field",
        ),
        (
            "fields = { \"a-b\" = \"u8\" }",
            load,
            "`a-b` cannot be the name of a field",
        ),
        ("fields = {}", load, "at least one field"),
        (
            "fields = { a = \"u32\" }, type = \"u32\"",
            load,
            "`type` together with `fields`",
        ),
        (
            "fields = { a = \"u32\" }, bytes = 4",
            load,
            "`bytes` together with `fields`",
        ),
        (
            "fields = { a = \"mbarrier\" }",
            load,
            "an mbarrier object is in shared memory",
        ),
        (
            "fields = { a = \"u32\", b = \"u8\" }, init = [1, 2, 3]",
            load,
            "3 values",
        ),
        ("bytes = 0", load, "an array has 1 to 262144 bytes"),
        ("bytes = 8, init = 1", load, "`init` together with `bytes`"),
        (
            "fields = { k = \"u64\", n = \"u32\" }",
            load,
            "a 32-bit access to `s.k`, which has 64 bits",
        ),
        (
            "fields = { n = \"u16[2]\", k = \"u32\" }",
            "mov.u64 p, s\nld.u32 i, [index]\nmul.wide.u32 o, i, 4\nadd.u64 p, p, o\nld.u32 r0, [p]",
            "to one field or to several of `s`",
        ),
    ] {
        let test = one_thread(
            "P0:r0 == 5",
            &format!("s = {{ {memory} }}, index = {{ init = 0, type = \"u32\" }}"),
            code,
        );
        let folder = Folder::new(&[("t.toml", &test)]);
        folder.refused(&["t.toml"], &[word, "t.toml:"]);
    }
    let code =
        "mov.u64 p, s\nld.u32 i, [index]\nmul.wide.u32 o, i, 4\nadd.u64 p, p, o\nld.u32 r0, [p]";
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
    Folder::new(&[("t.toml", cuda)]).refused(
        &["t.toml"],
        &["memory of the dialect `cuda` has no `bytes`"],
    );
}
