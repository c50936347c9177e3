//! Unknown values: properties that do not depend on them are decided, and the others are undecided,
//! with the instruction named.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::fencepost;

/// A writer that hands over a computed value, and a reader that takes it when the flag permits.
const TEST: &str = r#"name = "handed"
condition = 'CONDITION'
[memory]
x = { type = "u32", init = 1065353216 }
y = { type = "u32" }
z = { type = "u32", size = 4 }
f = { type = "u32" }
[[thread]]
cta = 0
code = """
ld.weak.u32 r0, [x]
ex2.approx.ftz.f32 r1, r0
WRITER
st.weak.u32 [y], r1
st.STORE.gpu.u32 [f], 1
"""
[[thread]]
cta = 1
code = """
ld.acquire.gpu.u32 r0, [f]
setp.ne.u32 p, r0, 1
@p bra END
ld.weak.u32 r1, [y]
READER
END:
"""
"#;

/// The answer about a property: the verdict, and the whole line.
fn asked(
    property: &str,
    condition: &str,
    store: &str,
    writer: &str,
    reader: &str,
) -> (String, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let words = [
        ("CONDITION", condition),
        ("STORE", store),
        ("WRITER", writer),
        ("READER", reader),
    ];
    let text = words
        .into_iter()
        .fold(TEST.to_owned(), |text, (word, by)| text.replace(word, by));
    std::fs::write(folder.path().join("t.toml"), text).expect("writable");
    let arguments = [
        "check",
        "t.toml",
        "--model",
        "ptx",
        "--engine",
        "both",
        "--property",
        property,
        "--format",
        "jsonl",
    ];
    let said = fencepost(folder.path(), &arguments);
    let line: Value = serde_json::from_str(
        said.out
            .lines()
            .next()
            .unwrap_or_else(|| panic!("{}", said.err)),
    )
    .expect("JSON");
    (line["verdict"].as_str().expect("a word").to_owned(), line)
}

#[test]
fn what_does_not_depend_on_them_is_decided() {
    assert_eq!(
        asked("race", "P1:r0 == 1", "release", "", "").0,
        "race-free"
    );
    let (verdict, line) = asked("race", "P1:r0 == 1", "relaxed", "", "");
    assert_eq!(verdict, "racy");
    assert!(
        line.to_string().contains("y = ?")
            || line["race"]["accesses"].to_string().contains("y = ?"),
        "{line}"
    );
    assert_eq!(
        asked("reachability", "P1:r0 == 1", "release", "", "").0,
        "allowed"
    );
    assert_eq!(
        asked("reachability", "P1:r0 == 2", "release", "", "").0,
        "forbidden"
    );
    // A value computed from it and thrown away, another element, a value that is compared and not
    // used.
    assert_eq!(
        asked(
            "race",
            "P1:r0 == 1",
            "release",
            "setp.gt.f32 q, r1, r0",
            "add.f32 r2, r1, r1"
        )
        .0,
        "race-free"
    );
}

#[test]
fn what_is_asked_about_them_is_undecided() {
    for condition in [
        "P0:r1 == 0",
        "y == 0",
        "P1:r1 == 0 /\\ P1:r0 == 1",
        "~(y == 7)",
    ] {
        let (verdict, line) = asked("reachability", condition, "release", "", "");
        assert_eq!(verdict, "undecided", "{condition}: {line}");
        let reason = line["reason"].as_str().expect("one");
        assert!(
            reason.starts_with(
                "not worked out: the value of `ex2.approx.ftz.f32 r1, r0` (P0, line 12)"
            ),
            "{reason}"
        );
    }
}

/// Branches, addresses, comparisons in memory, even if the value went through memory or through
/// another lane.
#[test]
fn what_runs_by_them_is_undecided() {
    for (writer, reader, depends) in [
        (
            "setp.gt.f32 q, r1, r0\n@q st.weak.u32 [z], 1",
            "",
            "@q st.weak.u32 [z], 1` (P0, line 14)",
        ),
        (
            "",
            "setp.gt.f32 q, r1, r1\n@q bra END\nst.weak.u32 [z], 1",
            "@q bra END` (P1, line 25)",
        ),
        (
            "",
            "and.b32 r2, r1, 12\ncvt.u64.u32 ro, r2\nmov.u64 ra, z\nadd.u64 rd, ra, ro\nst.weak.u32 [rd], 1",
            "st.weak.u32 [rd], 1",
        ),
        (
            "",
            "atom.relaxed.gpu.cas.b32 r3, [y], 0, 1",
            "atom.relaxed.gpu.cas.b32 r3, [y], 0, 1` (P1, line 24)",
        ),
        (
            "",
            "atom.relaxed.gpu.cas.b32 r3, [z], r1, 1",
            "atom.relaxed.gpu.cas.b32 r3, [z], r1, 1",
        ),
    ] {
        for property in ["race", "reachability"] {
            let (verdict, line) = asked(property, "P1:r0 == 1", "release", writer, reader);
            assert_eq!(verdict, "undecided", "{writer} {reader}: {line}");
            let reason = line["reason"].as_str().expect("one");
            assert!(
                reason.contains("ex2.approx.ftz.f32 r1, r0") && reason.contains(depends),
                "{reason}"
            );
        }
    }
    // The same with a known value.
    let known = "mov.b32 r1, 0f40000000\nsetp.gt.f32 q, r1, r0\n@q st.weak.u32 [z], 1";
    assert_eq!(
        asked(
            "race",
            "P1:r0 == 1",
            "release",
            known.replace("r1", "r5").as_str(),
            ""
        )
        .0,
        "race-free"
    );
}

/// Lanes exchange values: those of one shuffle, and not of another.
#[test]
fn values_of_other_lanes() {
    let lanes = |value: &str| {
        format!(
            r#"name = "lanes"
dialect = "ptx"
condition = 'z == 1'
[memory]
x = {{ type = "u32", init = 1065353216 }}
z = {{ type = "u32" }}
[kernel]
grid = 1
block = 2
code = """
ld.weak.u32 r0, [x]
ex2.approx.ftz.f32 r1, r0
shfl.sync.bfly.b32 r2, r0, 1, 31, 3
shfl.sync.bfly.b32 r3, r1, 1, 31, 3
setp.eq.u32 q, {value}, 7
@q st.relaxed.gpu.u32 [z], 1
"""
"#
        )
    };
    let folder = tempfile::tempdir().expect("a folder");
    for (value, verdict) in [("r2", "forbidden"), ("r3", "undecided")] {
        std::fs::write(folder.path().join("t.toml"), lanes(value)).expect("writable");
        let said = fencepost(
            folder.path(),
            &["check", "t.toml", "--model", "ptx", "--format", "jsonl"],
        );
        assert!(
            said.out.contains(&format!("\"verdict\":\"{verdict}\"")),
            "{value}: {} {}",
            said.out,
            said.err
        );
    }
}

#[test]
fn the_executor_runs_what_does_not_depend_on_them() {
    let folder = tempfile::tempdir().expect("a folder");
    for (condition, code) in [("P1:r0 == 1", 0), ("y == 0", 3)] {
        let words = [
            ("CONDITION", condition),
            ("STORE", "release"),
            ("WRITER", ""),
            ("READER", ""),
        ];
        let text = words
            .into_iter()
            .fold(TEST.to_owned(), |text, (word, by)| text.replace(word, by));
        std::fs::write(folder.path().join("t.toml"), text).expect("writable");
        let said = fencepost(
            folder.path(),
            &["run", "t.toml", "--model", "ptx", "--runs", "20"],
        );
        assert_eq!(
            said.code,
            Some(code),
            "{condition}: {} {}",
            said.out,
            said.err
        );
    }
    let said = fencepost(folder.path(), &["outcomes", "t.toml", "--model", "ptx"]);
    assert!(
        said.out.contains("not worked out"),
        "{} {}",
        said.out,
        said.err
    );
}

/// Attention over tiles that two threads copy asynchronously while they work on others, in two
/// stages. It races for any approximated exponentials if a wait for copies or a barrier is missing.
/// Only the last barrier can go, as no copy follows it.
#[test]
fn a_pipeline_of_tiles_needs_each_wait_and_each_barrier() {
    let folder = tempfile::tempdir().expect("a folder");
    let module =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus/compiled/modules/flash.sm_90.ptx");
    let module = std::fs::read_to_string(module).expect("a module");
    let asked = |text: &str| {
        std::fs::write(folder.path().join("k.ptx"), text).expect("writable");
        let buffers = [
            "0=q:f32[2]=1,2",
            "1=k:f32[10]=1,2,3",
            "2=v:f32[10]=4,5,6",
            "3=out:f32[2]",
            "4=5",
        ];
        let launch = ["import", "k.ptx", "--block", "2", "-o", "k.toml", "--force"];
        let arguments: Vec<&str> = launch
            .into_iter()
            .chain(buffers.into_iter().flat_map(|buffer| ["--arg", buffer]))
            .collect();
        let said = fencepost(folder.path(), &arguments);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let said = fencepost(
            folder.path(),
            &["check", "k.toml", "--property", "race", "--format", "jsonl"],
        );
        let line: Value =
            serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}{}", said.out, said.err));
        line["verdict"].as_str().expect("a word").to_owned()
    };
    assert_eq!(asked(&module), "race-free");
    let of = |word: &str| {
        module
            .match_indices(word)
            .map(|(at, _)| at)
            .collect::<Vec<_>>()
    };
    let (waits, barriers) = (of("cp.async.wait_group"), of("bar.sync"));
    assert_eq!((waits.len(), barriers.len()), (3, 6));
    for at in waits.iter().chain(&barriers) {
        let without = format!("{}//{}", &module[..*at], &module[*at..]);
        let expected = if Some(at) == barriers.last() {
            "race-free"
        } else {
            "racy"
        };
        assert_eq!(asked(&without), expected, "{}", &module[*at..at + 20]);
    }
}

/// A softmax of four numbers as a compiler prints it: queries about its values are undecided, and
/// each barrier is needed.
#[test]
fn a_kernel_whose_values_are_too_many_races_or_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let module =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus/compiled/modules/softmax.sm_90.ptx");
    let module = std::fs::read_to_string(module).expect("a module");
    let asked = |text: &str, property: &str| {
        std::fs::write(folder.path().join("k.ptx"), text).expect("writable");
        let _ = std::fs::remove_file(folder.path().join("k.toml"));
        let launch = [
            "import",
            "k.ptx",
            "--block",
            "4",
            "--arg",
            "0=in:f32[4]=1,2.5,0.5,3",
            "--arg",
            "1=out:f32[4]",
        ];
        let said = fencepost(
            folder.path(),
            &[&launch[..], &["--ask", "out[0] == 0", "-o", "k.toml"]].concat(),
        );
        assert_eq!(said.code, Some(0), "{}", said.err);
        let said = fencepost(
            folder.path(),
            &[
                "check",
                "k.toml",
                "--property",
                property,
                "--format",
                "jsonl",
            ],
        );
        let line: Value =
            serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}{}", said.out, said.err));
        (line["verdict"].as_str().expect("a word").to_owned(), line)
    };
    assert_eq!(asked(&module, "race").0, "race-free");
    let (verdict, line) = asked(&module, "reachability");
    let reason = line["reason"].as_str().unwrap_or_default();
    assert!(
        verdict == "undecided" && reason.contains("not worked out: the value of `ex2.approx.f32 "),
        "{line}"
    );
    let barriers: Vec<usize> = module.match_indices("bar.sync").map(|(at, _)| at).collect();
    assert_eq!(barriers.len(), 7);
    for at in barriers {
        let without = format!("{}//{}", &module[..at], &module[at..]);
        let (verdict, line) = asked(&without, "race");
        assert_eq!(verdict, "racy", "{line}");
        let accesses = line["race"]["accesses"].as_array().expect("both");
        let texts: Vec<&str> = accesses
            .iter()
            .map(|access| access["text"].as_str().expect("text"))
            .collect();
        assert!(
            texts.iter().all(|text| text.contains(".shared.f32")),
            "{texts:?}"
        );
        assert!(
            texts.iter().any(|text| text.starts_with("st")) && line.to_string().contains(" = ?"),
            "{line}"
        );
    }
}

/// A floating-point result of many values has no bits for a circuit, so its values have to be
/// listed.
#[test]
fn a_number_of_too_many_values_is_undecided() {
    let stores = |place: &str| {
        (0..40)
            .map(|i| format!("st.relaxed.gpu.u32 {place}, {i}\n"))
            .collect::<String>()
    };
    let text = format!(
        "name = \"sums\"\ncondition = 'P2:h == 3'\n[memory]\nx = 0\ny = 0\n\
         [[thread]]\ncta = 0\ncode = '''\n{}'''\n[[thread]]\ncta = 1\ncode = '''\n{}'''\n\
         [[thread]]\ncta = 2\ncode = '''\nld.relaxed.gpu.u32 a, x\nld.relaxed.gpu.u32 b, y\ncvt.rn.f32.u32 f, a\n\
         mul.lo.u32 c, b, 100\ncvt.rn.f32.u32 g, c\nadd.f32 h, f, g\n'''\n",
        stores("x"),
        stores("y")
    );
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("sums.toml"), text).expect("writable");
    let said = fencepost(
        folder.path(),
        &[
            "check",
            "sums.toml",
            "--property",
            "reachability",
            "--format",
            "jsonl",
        ],
    );
    let line: Value =
        serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}{}", said.out, said.err));
    let reason = line["reason"].as_str().unwrap_or_default();
    assert!(
        line["verdict"] == "undecided" && reason.starts_with("too many values"),
        "{line}"
    );
}

/// A value out of thin air in a condition's computation may be any value; the answer says nothing
/// about one that the condition does not name.
#[test]
fn values_out_of_thin_air_are_not_computed_with() {
    let thread = |from: &str, to: &str| {
        format!(
            "[[thread]]\ncode = \"int r0 = atomic_load_explicit(&{from}, memory_order_relaxed); \
             atomic_store_explicit(&{to}, r0, memory_order_relaxed);\"\n"
        )
    };
    let folder = tempfile::tempdir().expect("a folder");
    for (condition, c11) in [
        ("P0:r0 - 50 == -8", "undecided"),
        ("P0:r0 == 42", "allowed"),
    ] {
        let text = format!(
            "name = \"oota\"\ndialect = \"c\"\ncondition = '{condition}'\n[memory]\nx = {{ type = \"atomic_int\" }}\n\
             y = {{ type = \"atomic_int\" }}\n{}{}",
            thread("x", "y"),
            thread("y", "x")
        );
        fs::write(folder.path().join("oota.toml"), text).expect("writable");
        for (model, verdict) in [("c11", c11), ("rc11", "forbidden")] {
            let said = fencepost(
                folder.path(),
                &["check", "oota.toml", "--model", model, "--format", "jsonl"],
            );
            let shown = format!("\"verdict\":\"{verdict}\"");
            assert!(
                said.out.contains(&shown),
                "{condition} under {model}: {}{}",
                said.out,
                said.err
            );
        }
    }
}
