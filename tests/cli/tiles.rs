//! Matrix pipelines of whole warpgroups: `check` of a module alone decides them, and finds what was
//! taken out.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::fencepost;

/// The answers about a module, by property.
fn answers(folder: &Path, module: &str) -> Vec<Value> {
    fs::write(folder.join("k.ptx"), module).expect("writable");
    let said = fencepost(folder, &["check", "k.ptx", "--format", "jsonl"]);
    assert_eq!(said.err, "", "{}", said.out);
    let lines = said.out.lines().filter(|line| line.contains("\"verdict\""));
    lines
        .map(|line| serde_json::from_str(line).expect("an object"))
        .collect()
}

fn pipeline() -> String {
    module("pipeline")
}

/// The module of that name.
fn module(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join(format!("tests/cli/tiles/{name}.ptx"));
    fs::read_to_string(path).expect("readable")
}

fn is_about(answer: &Value, property: &str) -> bool {
    let name = answer["property"].as_str().unwrap_or_default();
    name.split(':').next() == Some(property)
}

fn verdict<'a>(all: &'a [Value], property: &str) -> &'a str {
    let of = |answer: &&Value| is_about(answer, property);
    let answer = all.iter().find(of).expect("an answer");
    answer["verdict"].as_str().expect("a word")
}

#[test]
fn a_pipeline_of_a_warpgroup_is_decided() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = answers(folder.path(), &pipeline());
    assert_eq!(verdict(&all, "race"), "race-free");
    assert_eq!(verdict(&all, "liveness"), "terminates");
    let module = pipeline().replace("st.shared.u32 [%r42+8192]", "st.shared.u32 [%r42+8704]");
    let all = answers(folder.path(), &module);
    assert_eq!(verdict(&all, "race"), "race-free");
}

/// Each part that is taken out, what is then found, and two words of the places.
#[test]
fn what_is_taken_out_of_a_pipeline_is_found() {
    let rows = [
        (
            "wgmma.wait_group.sync.aligned 0;\n\tmbarrier",
            "mbarrier",
            "race",
            "racy",
            ["cp.async.bulk", "wgmma"],
        ),
        (
            "fence.proxy.async.shared::cta;",
            "",
            "race",
            "racy",
            ["st.shared", "wgmma"],
        ),
        ("bar.sync 1;", "", "race", "racy", ["st.shared", "wgmma"]),
        ("and.b32 %r21, %r40, 1;", "", "liveness", "hangs", ["", ""]),
        (
            "mov.u32 %r17, 8192;",
            "mov.u32 %r17, 8192;\n\tshl.b32 %r17, %r17, 1;",
            "liveness",
            "hangs",
            ["", ""],
        ),
        (
            "mbarrier.arrive.shared::cta.b64 _, [%r6];",
            "",
            "liveness",
            "hangs",
            ["", ""],
        ),
        (
            "wgmma.fence.sync.aligned;",
            "",
            "undefined",
            "undefined",
            ["wgmma.mma_async", ""],
        ),
    ];
    all_are_found(&pipeline(), &rows);
}

#[test]
fn products_in_tensor_memory_are_decided() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = answers(folder.path(), &module("tensor"));
    assert_eq!(verdict(&all, "race"), "race-free");
    assert_eq!(verdict(&all, "liveness"), "terminates");
}

#[test]
fn what_is_taken_out_around_tensor_memory_is_found() {
    let rows = [
        (
            "tcgen05.wait::ld.sync.aligned;",
            "",
            "race",
            "racy",
            ["tcgen05.ld", "tcgen05.dealloc"],
        ),
        (
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r3+16400];",
            "",
            "liveness",
            "hangs",
            ["", ""],
        ),
        (
            "[%r3+16400], %r21;",
            "[%r3+16400], %r22;",
            "race",
            "racy",
            ["cp.async.bulk", "tcgen05.mma"],
        ),
        (
            "bar.sync 0;\n\tld.shared",
            "ld.shared",
            "race",
            "racy",
            ["tcgen05.alloc", "ld.shared"],
        ),
        (
            "bar.sync 1;",
            "",
            "race",
            "racy",
            ["tcgen05.ld", "tcgen05.dealloc"],
        ),
        (
            "[%r8], 32;",
            "[%r8], 64;",
            "undefined",
            "undefined",
            ["tcgen05.ld", ""],
        ),
        (
            "shl.b32 %r7, %r6, 21;",
            "shl.b32 %r7, %r6, 20;",
            "undefined",
            "undefined",
            ["tcgen05.ld", ""],
        ),
        (
            "tcgen05.ld",
            "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 64;\n\ttcgen05.ld",
            "undefined",
            "undefined",
            ["tcgen05.ld", ""],
        ),
    ];
    all_are_found(&module("tensor"), &rows);
}

/// Parts of a module that are replaced, by which, the property and the verdict that say so, and two
/// words of the answer.
type Replaced<'t> = (&'t str, &'t str, &'t str, &'t str, [&'t str; 2]);

fn all_are_found(whole: &str, rows: &[Replaced<'_>]) {
    for row in rows {
        let &(part, instead, property, expected, places) = row;
        let module = whole;
        assert_eq!(module.matches(part).count(), 1, "{part}");
        let folder = tempfile::tempdir().expect("a folder");
        let all = answers(folder.path(), &module.replace(part, instead));
        assert_eq!(verdict(&all, property), expected, "{part}");
        let of = |answer: &&Value| is_about(answer, property);
        let text = all
            .iter()
            .find(of)
            .map(Value::to_string)
            .unwrap_or_default();
        for place in places {
            assert!(text.contains(place), "{part}: {place}: {text}");
        }
    }
}

/// The pipeline with both tiles copied, and a shift of the number of bytes that a phase expects.
fn copied(shift: &str) -> String {
    let mut module = pipeline();
    let copy = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes";
    let first = format!("{copy} [%r11], [%rd1, {{%r14, %r15}}], [%r5];");
    let second = format!("{copy} [%r16], [%rd1, {{%r14, %r15}}], [%r5];");
    let both = format!("add.s32 %r16, %r11, 8192;\n\t{first}\n\t{second}");
    let expected = format!("mov.u32 %r17, 16384;\n\t{shift}");
    let changes = [
        ("%r23, 9216", "%r23, 16384"),
        ("18432", "32768"),
        ("18440", "32776"),
        ("18448", "32784"),
        ("18456", "32792"),
        ("mov.u32 %r17, 8192;", &expected),
        ("st.shared.u32 [%r42+8192], %r2;", ""),
        (&first, &both),
    ];
    for (part, instead) in changes {
        assert!(module.contains(part), "{part}");
        module = module.replace(part, instead);
    }
    module
}

#[test]
fn bytes_that_a_phase_does_not_expect_are_found() {
    let rows = [
        ("", "race", "race-free", [""; 2]),
        (
            "shr.b32 %r17, %r17, 1;",
            "race",
            "racy",
            ["wgmma", "expects fewer bytes than come"],
        ),
        (
            "shl.b32 %r17, %r17, 1;",
            "liveness",
            "hangs",
            ["tx 16384", "other bytes come than are expected"],
        ),
    ];
    for (shift, property, expected, words) in rows {
        let folder = tempfile::tempdir().expect("a folder");
        let all = answers(folder.path(), &copied(shift));
        assert_eq!(verdict(&all, property), expected, "{shift}: {all:?}");
        // Remarks are for people.
        let said = fencepost(folder.path(), &["check", "k.ptx"]);
        for word in words {
            assert!(said.out.contains(word), "{shift}: {word}: {}", said.out);
        }
    }
}
