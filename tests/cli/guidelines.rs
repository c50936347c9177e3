//! `check --lint guidelines`: which of OpenCL's five guidelines a program leaves, and where.

use std::fs;
use std::path::Path;

use super::{Said, fencepost};

/// The answers about a test with this memory and this code of two work-items.
fn check(memory: &str, first: &str, second: &str) -> Said {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        "name = \"T\"\ndialect = \"opencl\"\ncondition = 'P1:r == 1'\n[memory]\n{memory}\n\
         [[thread]]\nwork_group = 0\ncode = '''\n{first}\n'''\n\
         [[thread]]\nwork_group = 0\ncode = '''\n{second}\n'''\n"
    );
    fs::write(folder.path().join("t.toml"), text).expect("writable");
    fencepost(
        folder.path(),
        &["check", "--lint", "guidelines", "-v", "t.toml"],
    )
}

const GLOBAL: &str = "x = { type = \"atomic_int\" }";

#[test]
fn a_program_that_follows_them_has_no_warning() {
    let said = check(
        GLOBAL,
        "atomic_store_explicit(x, 1, memory_order_seq_cst, memory_scope_device);",
        "int r = atomic_load_explicit(x, memory_order_seq_cst, memory_scope_all_svm_devices);",
    );
    assert_eq!(
        (said.code, said.err.as_str()),
        (Some(0), ""),
        "{}",
        said.out
    );
    // The fifth one is asked for.
    assert!(said.out.contains("race-free"), "{}", said.out);
}

#[test]
fn a_weaker_order_and_a_narrower_scope_leave_the_fourth() {
    for (operation, label) in [
        (
            "atomic_store_explicit(x, 1, memory_order_release, memory_scope_device);",
            "this order is weaker",
        ),
        (
            "atomic_store_explicit(x, 1, memory_order_seq_cst, memory_scope_work_group);",
            "this scope is narrower",
        ),
        (
            "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device);",
            "this order is weaker",
        ),
    ] {
        let said = check(GLOBAL, operation, "int r = 0;");
        assert!(said.err.contains("warning[guideline-4]"), "{}", said.err);
        assert!(said.err.contains(label), "{}", said.err);
    }
}

#[test]
fn memory_of_all_devices_needs_the_scope_of_all_devices() {
    let memory = "x = { type = \"atomic_int\", kind = \"svm-fine-atomic\" }";
    let store = |scope: &str| {
        format!("atomic_store_explicit(x, 1, memory_order_seq_cst, memory_scope_{scope});")
    };
    let said = check(memory, &store("device"), "int r = 0;");
    assert!(said.err.contains("warning[guideline-3]"), "{}", said.err);
    let said = check(memory, &store("all_svm_devices"), "int r = 0;");
    assert_eq!(said.err, "", "{}", said.out);
}

#[test]
fn local_memory_is_shared_through_barriers() {
    let memory = "x = { type = \"atomic_int\", space = \"local\" }";
    let said = check(
        memory,
        "atomic_store_explicit(x, 1, memory_order_seq_cst, memory_scope_work_group);",
        "int r = 0;",
    );
    assert!(said.err.contains("warning[guideline-2]"), "{}", said.err);
    let said = check(
        "x = { type = \"int\", space = \"local\" }",
        "*x = 1; barrier(CLK_LOCAL_MEM_FENCE);",
        "barrier(CLK_LOCAL_MEM_FENCE); int r = *x;",
    );
    assert_eq!(said.err, "", "{}", said.out);
}

#[test]
fn commands_share_memory_through_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = |wait: &str| {
        format!(
            "name = \"T\"\ndialect = \"opencl\"\n\
             queues = {{ q = \"out-of-order\" }}\n[memory]\nx = {{ type = \"atomic_int\" }}\n\
             [[kernel]]\nname = \"A\"\ncode = \"{wait}\"\n[[kernel]]\nname = \"B\"\n\
             code = \"atomic_store(x, 2);\"\n[[host]]\n\
             code = \"clEnqueueTask(q, A); clEnqueueTask(q, B); clFinish(q);\"\n"
        )
    };
    for (code, warned) in [("atomic_store(x, 1);", true), ("int r = 0;", false)] {
        fs::write(folder.path().join("t.toml"), text(code)).expect("writable");
        let said = fencepost(folder.path(), &["check", "--lint", "guidelines", "t.toml"]);
        let found = said.err.contains("warning[guideline-1]");
        assert_eq!(found, warned, "{}{}", said.out, said.err);
    }
}

#[test]
fn the_tests_of_the_guidelines_are_told_which_one_they_leave() {
    let file = "litmus/opencl/Guidelines.toml";
    let said = fencepost(
        Path::new("."),
        &["check", "--lint", "guidelines", "-v", file],
    );
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    for (name, leaves) in [
        ("followed", false),
        ("wider", false),
        ("order", true),
        ("scope", true),
    ] {
        let text = format!("`SB.guidelines-{name}` leaves guideline 4");
        assert_eq!(said.err.contains(&text), leaves, "{name}: {}", said.err);
    }
}

/// The programs that follow them have the outcomes of interleavings, and those that do not have
/// others.
#[test]
fn no_program_that_follows_them_has_another_outcome() {
    let ask = |models: &[&str], further: &[&str]| {
        let head = ["distinguish", "--format", "jsonl", "--size", "4"];
        let said = fencepost(Path::new("."), &[&head, models, further].concat());
        assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
        let line: serde_json::Value = serde_json::from_str(said.out.trim()).expect("JSON");
        (line["complete"].clone(), line["found"].clone())
    };
    let further = ["--with", "plain,barrier,branch"];
    for model in ["opencl", "opencl-3.1", "opencl-2.0", "opencl-total"] {
        let nothing = (true.into(), serde_json::Value::Array(Vec::new()));
        let guidelines = [&["--guidelines"], &further[..]].concat();
        assert_eq!(ask(&[model, "sc"], &guidelines), nothing, "{model}");
        let found = ask(&[model, "sc"], &further).1;
        assert_eq!(found[0]["size"], 4, "{model}: {found}");
    }
}

#[test]
fn only_opencl_has_guidelines() {
    let said = fencepost(
        Path::new("."),
        &["distinguish", "ptx", "sc", "--guidelines"],
    );
    assert_eq!(said.code, Some(2), "{}", said.out);
    assert!(
        said.err.contains("leave out `--guidelines`"),
        "{}",
        said.err
    );
}
