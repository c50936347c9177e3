//! Tests advice from the built binary.

use std::path::Path;

use serde_json::Value;

use super::{Said, fencepost};

const MP: &str = r#"
name = "MP"
condition = 'P1:r0 == 1 /\ P1:r1 == 0'
[memory]
x = 0
f = 0
[[thread]]
cta = 0
code = '''
st.weak x, 1
fence.sc.sys
st.relaxed.sys f, 1
'''
[[thread]]
cta = 1
code = '''
ld.acquire.gpu r0, f
ld.weak r1, x
'''
[expect]
ptx = { reachability = "forbidden" }
"#;

/// Advice about a test file, with the file.
fn advise(text: &str, arguments: &[&str]) -> (Vec<Value>, Said) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("t.toml"), text).expect("writable");
    for (i, table) in arguments
        .iter()
        .enumerate()
        .filter(|(i, _)| *i > 0 && arguments[*i - 1] == "--cost")
    {
        if let Some(text) = COSTS.iter().find(|c| c.0 == *table) {
            std::fs::write(folder.path().join(arguments[i]), text.1).expect("writable");
        }
    }
    let said = fencepost(
        folder.path(),
        &[&["advise", "--format", "jsonl", "t.toml"], arguments].concat(),
    );
    (
        said.out
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect(),
        said,
    )
}

/// Tables of costs by file name.
const COSTS: &[(&str, &str)] = &[
    ("short", "access weak = 0\n"),
    ("odd", "access weak = 0\nacces relaxed = 4\n"),
];

#[test]
fn what_is_stronger_than_it_must_be_is_a_failure_if_denied() {
    let (lines, said) = advise(MP, &[]);
    assert_eq!(
        (said.code, &lines[0]["verdict"]),
        (Some(0), &"over-synchronised".into()),
        "{}",
        said.err
    );
    let (_, denied) = advise(MP, &["--deny", "over-synchronised"]);
    assert_eq!(denied.code, Some(1), "{}", denied.err);
    let program = lines[0]["program"].as_str().expect("a program");
    assert!(
        program.contains("st.weak x, 1\nst.release.gpu f, 1\n"),
        "{program}"
    );
    let diff = lines[0]["diff"].as_str().expect("a difference");
    assert!(
        diff.contains("-fence.sc.sys\n-st.relaxed.sys f, 1\n+st.release.gpu f, 1\n"),
        "{diff}"
    );
    // The advised program is no longer over-synchronised, and meets its expectations.
    let (again, said) = advise(program, &["--deny", "over-synchronised"]);
    assert_eq!(
        (said.code, &again[0]["verdict"]),
        (Some(0), &"minimal".into()),
        "{}",
        said.err
    );
    assert_eq!(again[0]["cost"], lines[0]["cheapest"]);
}

#[test]
fn a_wrong_program_is_repaired_and_not_met() {
    let wrong = MP.replace("fence.sc.sys\n", "");
    let (lines, said) = advise(&wrong, &[]);
    assert_eq!(
        (said.code, &lines[0]["verdict"]),
        (Some(1), &"repaired".into()),
        "{}",
        said.err
    );
    // The search also repairs a violation that the test expects, if that is requested.
    let known = wrong.replace("\"forbidden\"", "\"allowed\"");
    let (lines, said) = advise(&known, &[]);
    assert_eq!(
        (said.code, &lines[0]["verdict"]),
        (Some(0), &"nothing-to-keep".into()),
        "{}",
        said.err
    );
    let (lines, said) = advise(&known, &["--repair"]);
    assert_eq!(
        (said.code, &lines[0]["verdict"]),
        (Some(0), &"repaired".into()),
        "{}",
        said.err
    );
}

#[test]
fn what_nothing_makes_right_is_beyond_repair() {
    let (lines, said) = advise(&MP.replace("P1:r0 == 1 /\\ P1:r1 == 0", "P1:r0 == 1"), &[]);
    assert_eq!(
        (said.code, &lines[0]["verdict"]),
        (Some(1), &"beyond-repair".into()),
        "{}",
        said.err
    );
    assert_eq!(
        (&lines[0]["program"], &lines[0]["cheapest"]),
        (&Value::Null, &Value::Null)
    );
}

/// An undecided query inside the search counts as failing, and the answer gives their number.
#[test]
fn what_is_undecided_on_the_way_is_counted() {
    let arguments = [
        "advise",
        "litmus/skeleton/loops-together.toml",
        "--filter",
        "name = Loop-together.lock",
    ];
    let said = fencepost(Path::new("."), &arguments);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let flat = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("of them undecided, which count as failing)"),
        "{}",
        said.out
    );
}

#[test]
fn several_models_and_tests_are_kept_at_once() {
    // In one CTA the narrow scope would do; in two it does not.
    let two = MP
        .replace("name = \"MP\"", "name = \"${name}\"")
        .replace("cta = 1", "cta = \"${cta}\"")
        + "sc = { reachability = \"forbidden\" }\n[[instance]]\nname = \"one\"\ncta = \"0\"\n[[instance]]\nname = \"two\"\ncta = \"1\"\n";
    let (lines, said) = advise(&two, &[]);
    assert_eq!(
        (said.code, lines.len()),
        (Some(0), 1),
        "{}{}",
        said.out,
        said.err
    );
    assert_eq!(lines[0]["tests"], serde_json::json!(["one", "two"]));
    assert_eq!(lines[0]["models"], serde_json::json!(["ptx", "sc"]));
    let program = lines[0]["program"].as_str().expect("a program");
    assert!(program.contains("st.release.gpu f, 1"), "{program}");
}

#[test]
fn liveness_is_asked_of_the_answer() {
    let spins = MP
        .replace(
            "ld.acquire.gpu r0, f\n",
            "LOOP: ld.acquire.gpu r0, f\nbne r0, 1, LOOP\n",
        )
        .replace(
            "reachability = \"forbidden\"",
            "reachability = \"forbidden\", liveness.fair = \"terminates\"",
        );
    let (lines, said) = advise(&spins, &[]);
    assert_eq!(
        (said.code, &lines[0]["verdict"]),
        (Some(0), &"over-synchronised".into()),
        "{}{}",
        said.out,
        said.err
    );
}

#[test]
fn what_is_not_found_out_is_undecided() {
    let (lines, said) = advise(MP, &["--timeout", "1ms"]);
    assert_eq!(
        (said.code, &lines[0]["verdict"]),
        (Some(3), &"undecided".into()),
        "{}",
        said.err
    );
    assert_eq!(lines[0]["reason"], "out of time");
}

#[test]
fn bad_input_has_its_place() {
    let (_, said) = advise(MP, &["--model", "pxt"]);
    assert_eq!(said.code, Some(2));
    assert!(
        said.err.contains("pxt") && said.err.contains("ptx"),
        "{}",
        said.err
    );
    let (_, said) = advise(MP, &["--cost", "none"]);
    assert_eq!(said.code, Some(2));
    let (_, said) = advise(MP, &["--cost", "odd"]);
    assert_eq!(said.code, Some(2));
    assert!(
        said.err.contains("odd:2:1") && said.err.contains("`acces relaxed`"),
        "{}",
        said.err
    );
    let (_, said) = advise(MP, &["--cost", "short"]);
    assert!(said.err.contains("without access relaxed"), "{}", said.err);
    let (lines, said) = advise("nam = \"E\"\n", &[]);
    assert_eq!((said.code, lines.len()), (Some(2), 0), "{}", said.err);
}

#[test]
fn a_program_with_nothing_to_weaken_is_minimal() {
    let text = MP
        .replace("fence.sc.sys\n", "")
        .replace("P1:r0 == 1 /\\ P1:r1 == 0", "P1:r0 == 2");
    let text = text
        .replace("st.relaxed.sys", "st.weak")
        .replace("ld.acquire.gpu", "ld.weak");
    let (lines, said) = advise(&text, &["--deny", "over-synchronised"]);
    assert_eq!(
        (said.code, &lines[0]["verdict"]),
        (Some(0), &"minimal".into()),
        "{}",
        said.err
    );
    assert_eq!(
        (&lines[0]["cost"], &lines[0]["menu"]),
        (&0.into(), &Value::Array(Vec::new()))
    );
}

#[test]
fn code_is_advised_in_its_own_language() {
    let here = Path::new(".");
    let arguments = [
        "advise",
        "--format",
        "jsonl",
        "litmus/idioms/cuda/A01.toml",
        "--filter",
        "name = A01.o",
    ];
    let said = fencepost(here, &arguments);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let line: Value = serde_json::from_str(said.out.lines().next().expect("a line")).expect("JSON");
    let program = line["program"].as_str().expect("a program");
    let own =
        "cuda::atomic_ref<int, cuda::thread_scope_device>(f).store(1, cuda::memory_order_release);";
    assert!(program.contains(own), "{program}");
}

/// If the fence comes from a key of its instance, advice cannot change it in the text of all
/// instances; another fence may be next to it.
#[test]
fn a_fence_that_cannot_be_changed_is_no_obstacle() {
    let arguments = [
        "advise",
        "--format",
        "jsonl",
        "litmus/compiled/hazard-pointer.toml",
        "--repair",
    ];
    let said = fencepost(
        Path::new("."),
        &[&arguments[..], &["--filter", "name = hazard-pointer.weak"]].concat(),
    );
    assert_eq!(said.code, Some(0), "{}", said.err);
    let advice: Value =
        serde_json::from_str(said.out.lines().next().expect("a line")).expect("JSON");
    assert_eq!(advice["verdict"], "repaired", "{advice}");
    assert!(
        advice["changes"].to_string().contains("fence.sc.gpu"),
        "{advice}"
    );
}

/// A flag has two addresses, or a copy goes through the async proxy. The missing part is a proxy
/// fence, and `check` and `advise` name the same one.
#[test]
fn a_missing_proxy_fence_is_found_as_check_finds_it() {
    let flag = "name = \"alias\"\ncondition = 'P1:r0 == 1 /\\ P1:r1 == 0'\n\
        memory = { x = 0, f = 0, g = { alias = \"f\" } }\n\
                [[thread]]\ncta = 0\ncode = '''\nst.weak x, 1\nst.release.gpu g, 1\n'''\n\
                [[thread]]\ncta = 1\ncode = '''\nld.acquire.gpu r0, f\nld.weak r1, x\n'''\n\
                [expect]\nptx = { reachability = \"forbidden\" }\n";
    let raced = flag
        .replace("ld.weak r1, x\n", "bne r0, 1, E\nld.weak r1, x\nE:\n")
        .replace("reachability = \"forbidden\"", "race = \"race-free\"");
    let copied = "name = \"async\"\n[memory]\n\
        s = { init = [0, 0, 0, 0], type = \"u32\", space = \"shared\" }\n\
                  g = { init = [0, 0, 0, 0], type = \"u32\" }\n[[thread]]\ncta = 0\ncode = '''\n\
                  st.shared.u32 [s], 1\n\
                  bar.sync 0\n'''\n[[thread]]\ncta = 0\ncode = '''\nbar.sync 0\n\
                  cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16\n'''\n[expect]\n\
                  ptx = { race = \"race-free\" }\n";
    let fenced: &[&str] = &["--set", "alias-overlap=fenced"];
    for (text, set, fence) in [
        (flag, fenced, "fence.proxy.alias"),
        (raced.as_str(), fenced, "fence.proxy.alias"),
        (copied, &[], "fence.proxy.async"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("t.toml"), text).expect("writable");
        let said = fencepost(folder.path(), &[&["check", "t.toml"], set].concat());
        let all = said.out + &said.err;
        assert_eq!(all.matches(&format!("`{fence}`")).count(), 1, "{all}");
        assert!(
            !all.contains("unordered") && !all.contains("fence.sc"),
            "{all}"
        );

        let (advice, _) = advise(text, &[&["--repair"], set].concat());
        let [one] = advice.as_slice() else {
            panic!("{advice:?}")
        };
        let changes = one["changes"].as_array().expect("a list");
        assert_eq!(changes.len(), 1, "{advice:?}");
        let diff = one["diff"].as_str().expect("a text");
        let added = diff
            .lines()
            .filter(|l| l.starts_with('+') && !l.starts_with("++"));
        assert_eq!(added.filter(|l| l.contains(fence)).count(), 1, "{diff}");
    }
    // By the letter of the source nothing helps, and the other reading is named.
    let (advice, _) = advise(flag, &["--repair"]);
    assert_eq!(advice[0]["verdict"], "beyond-repair", "{advice:?}");
    let reading = advice[0]["reading"].as_str().expect("a text");
    assert!(
        reading.contains("`alias-overlap=fenced`") && reading.contains("`fence.proxy.alias`"),
        "{reading}"
    );
}

/// A kernel of a source file must be race-free and defined, as `check` asks it.
#[test]
fn kernels_of_source_files_are_repaired_as_check_says() {
    let kernel = |barrier: &str| {
        format!(
            "// fencepost: k<<<1, 4>>>(in[4], out[4])\n\
             __global__ void k(const int *in, int *out) {{\n\
             __shared__ int s[4];\nint t = threadIdx.x;\ns[t] = in[t];\n\
             {barrier}out[t] = s[3 - t];\n}}\n"
        )
    };
    let opencl = |barrier: &str| {
        format!(
            "// fencepost: k<<<1, 4>>>(a[4], b[4])\n\
             __kernel void k(__global int *a, __global int *b) {{\n\
             __local int s[4];\nint t = get_local_id(0);\ns[t] = a[t];\n\
             {barrier}b[t] = s[3 - t];\n}}\n"
        )
    };
    let of = |file: &str, text: &str| -> (Value, Option<i32>) {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(file), text).expect("writable");
        let said = fencepost(folder.path(), &["advise", "--format", "jsonl", file]);
        let advice = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}", said.err));
        (advice, said.code)
    };
    let barrier = "barrier(CLK_LOCAL_MEM_FENCE);\n";
    for (file, wrong, right, added) in [
        (
            "k.cu",
            kernel(""),
            kernel("__syncthreads();\n"),
            "__syncthreads();",
        ),
        (
            "k.cl",
            opencl(""),
            opencl(barrier),
            "barrier(CLK_LOCAL_MEM_FENCE);",
        ),
    ] {
        let (advice, code) = of(file, &wrong);
        assert_eq!(
            (&advice["verdict"], code),
            (&Value::from("repaired"), Some(1)),
            "{advice}"
        );
        let diff = advice["diff"].as_str().expect("a text");
        assert_eq!(diff.matches(added).count(), 1, "{diff}");
        let (advice, code) = of(file, &right);
        assert_eq!(
            (&advice["verdict"], code),
            (&Value::from("minimal"), Some(0)),
            "{advice}"
        );
    }
}
