//! Undefined behaviour as a user sees it. Snapshots show the output of `ask`, `check`, `outcomes`
//! and `compare` for programs that a model calls undefined; laws constrain the remedies that they
//! propose.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::{LitmusTest, parse};
use fencepost::verdict::{Definedness, Fault, Reason, Remedy, Verdict};
use testkit::suite::{in_parallel, is_long, sample, shipped, step};

use super::fencepost;

/// The output of the binary in a folder with one test.
fn printed(test: &str, arguments: &[&str]) -> String {
    printed_with(test, &[], arguments)
}

fn printed_with(test: &str, files: &[(&str, &str)], arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.toml"), test).unwrap();
    files
        .iter()
        .for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
    let said = fencepost(
        folder.path(),
        &[arguments, &["--color", "never", "--engine", "enumerate"]].concat(),
    );
    let trimmed: Vec<&str> = said.out.lines().map(str::trim_end).collect();
    format!(
        "{}\n{}[{}]",
        trimmed.join("\n"),
        said.err,
        said.code.unwrap()
    )
}

/// Message passing in CUDA C++, from one block to another; the reader waits for the flag.
fn message_passing(scope_of_store: &str) -> String {
    format!(
        r#"name = "S"
dialect = "cuda"
condition = 'P1:r1 == 0'
memory = {{ x = 0, f = 0 }}

[[thread]]
block = 0
code = """
x = 42;
cuda::atomic_ref<int, cuda::thread_scope_{scope_of_store}> a(f);
a.store(1, cuda::memory_order_release);
"""

[[thread]]
block = 1
code = """
cuda::atomic_ref<int, cuda::thread_scope_device> a(f);
while (a.load(cuda::memory_order_acquire) != 1);
int r1 = x;
"""
"#
    )
}

/// An OpenCL test of two work-items, in these work-groups.
fn opencl(memory: &str, groups: [u32; 2], codes: [&str; 2], condition: &str) -> String {
    let mut text = format!(
        "name = \"T\"\ndialect = \"opencl\"\ncondition = '{condition}'\n[memory]\n{memory}\n"
    );
    for (group, code) in groups.iter().zip(codes) {
        text += &format!("[[thread]]\nwork_group = {group}\ncode = '''\n{code}\n'''\n");
    }
    text
}

macro_rules! snapshot {
    ($text:expr) => {
        insta::with_settings!({ omit_expression => true, snapshot_path => "undefined" }, {
            insta::assert_snapshot!($text)
        })
    };
}

#[test]
fn the_flag_at_device_scope() {
    let test = message_passing("device");
    let text = [
        &["ask", "t.toml"][..],
        &["check", "t.toml"],
        &["check", "t.toml", "--format", "jsonl"],
    ];
    snapshot!(text.map(|a| printed(&test, a)).join("\n"));
}

#[test]
fn the_flag_at_block_scope() {
    let test = message_passing("block");
    let text = [
        &["ask", "t.toml"][..],
        &["ask", "t.toml", "--outcome", "P1:r1 == 7"],
        &["check", "t.toml"],
        &["check", "t.toml", "--all-properties", "--format", "jsonl"],
        &["check", "t.toml", "--model", "ptx", "--all-properties"],
    ];
    snapshot!(text.map(|a| printed(&test, a)).join("\n"));
}

#[test]
fn outcomes_of_an_undefined_program() {
    let test = message_passing("block");
    let text = [
        &["outcomes", "t.toml"][..],
        &["outcomes", "t.toml", "--races"],
        &["outcomes", "t.toml", "--format", "jsonl"],
    ];
    snapshot!(text.map(|a| printed(&test, a)).join("\n"));
}

#[test]
fn comparisons_of_an_undefined_program() {
    let test = message_passing("block");
    let text = [
        &["compare", "t.toml", "--models", "cuda,ptx"][..],
        &["compare", "t.toml", "--models", "cuda,sc"],
    ];
    snapshot!(text.map(|a| printed(&test, a)).join("\n"));
}

#[test]
fn opencl_scopes_that_are_too_small_or_unequal() {
    let test = |store: &str, load: &str| {
        let write =
            format!("atomic_store_explicit(x, 1, memory_order_relaxed, memory_scope_{store});");
        let read =
            format!("int r0 = atomic_load_explicit(x, memory_order_relaxed, memory_scope_{load});");
        opencl(
            "x = { type = \"atomic_int\" }",
            [0, 1],
            [&write, &read],
            "P1:r0 == 1",
        )
    };
    let small = test("work_group", "device");
    let same_group = small.replace("work_group = 1", "work_group = 0");
    let text = [
        printed(&small, &["ask", "t.toml"]),
        // Whether unequal scopes may include each other depends on the model.
        printed(&same_group, &["ask", "t.toml", "--model", "opencl"]),
        printed(
            &same_group,
            &["check", "t.toml", "--model", "opencl-3.1", "-v"],
        ),
    ];
    snapshot!(text.join("\n"));
}

#[test]
fn opencl_local_and_global_memory() {
    // The flag is in local memory, so it orders nothing in global memory.
    let memory = "x = { type = \"int\" }\nf = { type = \"atomic_int\", space = \"local\" }";
    let codes = [
        "*x = 1;\natomic_store_explicit(f, 1, memory_order_release, memory_scope_work_group);",
        "int r0 = atomic_load_explicit(f, memory_order_acquire, memory_scope_work_group);\nint r1 = 7;\nif (r0 == 1) { r1 = *x; }",
    ];
    let flag = opencl(memory, [0, 0], codes, "P1:r1 == 0");
    // The barrier is for local memory; the accesses are to global memory.
    let codes = [
        "*x = 1;\nbarrier(CLK_LOCAL_MEM_FENCE);",
        "barrier(CLK_LOCAL_MEM_FENCE);\nint r1 = *x;",
    ];
    let barrier = opencl("x = { type = \"int\" }", [0, 0], codes, "P1:r1 == 0");
    snapshot!(
        [flag, barrier]
            .map(|t| printed(&t, &["ask", "t.toml"]))
            .join("\n")
    );
}

#[test]
fn barriers_that_diverge_or_differ() {
    let x = "x = { type = \"int\" }";
    let divergent = opencl(
        x,
        [0, 0],
        ["if (*x == 0) { barrier(0); }", "int r0 = 1;"],
        "P1:r0 == 1",
    );
    let codes = [
        "barrier(CLK_LOCAL_MEM_FENCE);",
        "barrier(CLK_GLOBAL_MEM_FENCE);\nint r0 = 1;",
    ];
    let different = opencl(x, [0, 0], codes, "P1:r0 == 1");
    let text = [
        printed(&divergent, &["ask", "t.toml"]),
        printed(
            &divergent,
            &["check", "t.toml", "--all-properties", "--format", "jsonl"],
        ),
        printed(&different, &["ask", "t.toml"]),
        printed(&different, &["outcomes", "t.toml"]),
    ];
    snapshot!(text.join("\n"));
}

/// The model's text gives the name of a flag.
#[test]
fn an_unsequenced_race_of_a_model_of_ones_own() {
    let model = r#"C "accesses of one thread"
let unsequenced-race = (((W * M) | (M * W)) & loc & int) \ id
let ordered = rf
flag ~empty (unsequenced-race \ ordered) as unsequenced
flag ~empty unsequenced-race as undefined
"#;
    let test = "name = \"T\"\ndialect = \"c\"\ncondition = 'P0:r0 == 1'\nmemory = { x = { type = \"int\" } }\n[[thread]]\n\
                code = '''\n*x = 1;\nint r0 = *x;\n'''\n";
    let arguments = ["ask", "t.toml", "--model", "own.cat", "--prelude", "total"];
    snapshot!(printed_with(test, &[("own.cat", model)], &arguments));
}

/// Makes the proposed change by hand.
#[test]
fn what_is_said_to_help_helps() {
    let said = printed(&message_passing("block"), &["ask", "t.toml"]);
    assert!(said.contains("it becomes race-free if"), "{said}");
    assert!(
        said.contains("P0's line 10 has `thread_scope_device`, not `thread_scope_block`"),
        "{said}"
    );
    let line = |text: &str| text.lines().nth(9).unwrap().to_owned();
    let changed = message_passing("block").replace("thread_scope_block", "thread_scope_device");
    assert!(
        line(&changed).starts_with("cuda::atomic_ref<int, cuda::thread_scope_device>"),
        "{changed}"
    );
    let said = printed(&changed, &["check", "t.toml", "--all-properties"]);
    assert!(
        said.contains("race-free") && said.contains("defined"),
        "{said}"
    );
}

#[test]
fn a_program_that_there_is_no_time_for_is_not_called_defined() {
    let test = &parse("t.toml", message_passing("device").as_bytes()).expect("well-formed")[0];
    let model = shipped("cuda");
    let mut session = Session::new(test, &model, Engine::Enumerate, Limits::default(), &[]);
    let without = session.definedness(Some(Duration::ZERO));
    assert_eq!(without, Some(Ok(Definedness::Undecided(Reason::Time))));
    assert_eq!(session.definedness(None), Some(Ok(Definedness::Defined)));
}

/// All tests under a folder.
fn tests_in(folder: &str) -> Vec<LitmusTest> {
    let mut paths: Vec<_> = fs::read_dir(Path::new(folder))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        parse(&path.to_string_lossy(), &fs::read(path).unwrap()).expect("well-formed")
    };
    paths
        .iter()
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .flat_map(read)
        .collect()
}

/// The fault of every test that its model calls undefined, with the remedies.
fn faults(tests: &[LitmusTest], model: &str) -> Vec<(String, Fault)> {
    let model = shipped(model);
    let of_test = |_, test: &LitmusTest| {
        let limits = Limits::default();
        let mut session = Session::new(test, &model, Engine::Enumerate, limits, &[]).explaining();
        let undefined = session
            .undefined()
            .expect("knows undefined behaviour")
            .verdict;
        match session
            .definedness(limits.timeout)
            .expect("knows undefined behaviour")
            .expect("no defect")
        {
            Definedness::Undefined(fault) => {
                assert_eq!(undefined, Verdict::Undefined, "{}", test.name);
                return Some((test.name.clone(), *fault));
            }
            Definedness::Defined => assert_eq!(undefined, Verdict::Defined, "{}", test.name),
            // Assembly, which has a meaning only under a model of PTX.
            Definedness::Undecided(Reason::NotInModel(_)) => {}
            // The text leaves it open.
            Definedness::Undecided(Reason::ImplementationDefined { .. }) => {}
            Definedness::Undecided(reason) => panic!("{}: {reason}", test.name),
        }
        None
    };
    in_parallel(tests, of_test).into_iter().flatten().collect()
}

/// A remedy at the end of a kernel whose threads differ in length: it comes after the last
/// instruction of some of them.
#[test]
fn what_is_put_in_behind_the_last_instruction_is_said() {
    let path = "litmus/host/opencl/Child.local-flag.toml";
    let said = fencepost(Path::new("."), &["ask", path, "--model", "opencl"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("it becomes race-free if"), "{}", said.out);
}

#[test]
fn every_race_has_two_accesses_to_one_place_and_a_remedy() {
    let mut remedies = String::new();
    for (folder, model) in [("litmus/cuda", "cuda"), ("litmus/opencl", "opencl")] {
        let tests: Vec<LitmusTest> = if is_long() {
            tests_in(folder)
        } else {
            sample(tests_in(folder)).collect()
        };
        let faults = faults(&tests, model);
        assert!(faults.len() > 10 / step(), "{folder}: {}", faults.len());
        for (name, fault) in faults {
            assert!(!fault.why.is_empty() && fault.execution.is_some(), "{name}");
            if !fault.race {
                assert_eq!(fault.remedy, None, "{name}");
                continue;
            }
            assert_eq!(fault.events.len(), 2, "{name}");
            assert!(
                fault.place.is_some()
                    && fault.events[0].event.thread != fault.events[1].event.thread,
                "{name}"
            );
            let text = match fault.remedy.expect("folders searched") {
                Remedy::Changes(changes) => {
                    assert!(
                        !changes.is_empty(),
                        "{name}: it races, so something must change"
                    );
                    changes
                        .iter()
                        .map(|c| c.text.clone())
                        .collect::<Vec<_>>()
                        .join("; ")
                }
                Remedy::None(why) => format!("none: {why}"),
                Remedy::Undecided(why) => panic!("{name}: {why}"),
            };
            remedies += &format!("{name}: {text}\n");
        }
    }
    if !is_long() {
        let all = include_str!(
            "undefined/cli__undefined__every_race_has_two_accesses_to_one_place_and_a_remedy.snap"
        );
        let known: BTreeSet<&str> = all.lines().collect();
        let new: Vec<&str> = remedies
            .lines()
            .filter(|line| !known.contains(line))
            .collect();
        assert!(new.is_empty(), "not as with FENCEPOST_LONG: {new:#?}");
        return;
    }
    snapshot!(remedies);
}
