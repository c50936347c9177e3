//! Compares models with the built binary: the OpenCL tests and the idioms against PTX, wrong or
//! older mappings, and the rule behind each difference.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use testkit::suite::{files, is_long, sample, step};

use super::fencepost;

/// The lines of reachability under `ptx`, and the exit code, for OpenCL.
fn compare(arguments: &[&str]) -> (Vec<Value>, Option<i32>) {
    compare_from("opencl", arguments)
}

fn compare_from(model: &str, arguments: &[&str]) -> (Vec<Value>, Option<i32>) {
    let (lines, code) = answers(&format!("{model},ptx"), arguments);
    (
        lines.into_iter().filter(|l| l["model"] == "ptx").collect(),
        code,
    )
}

/// The lines of reachability of a comparison, and the exit code. Without `models`, the models are
/// those of the expectations.
fn answers(models: &str, arguments: &[&str]) -> (Vec<Value>, Option<i32>) {
    let compare = ["compare", "--format", "jsonl", "--engine", "enumerate"];
    let named: &[&str] = if models.is_empty() {
        &[]
    } else {
        &["--models", models]
    };
    let said = fencepost(Path::new("."), &[&compare, named, arguments].concat());
    let lines = said
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    (
        lines.filter(|l| l["property"] == "reachability").collect(),
        said.code,
    )
}

fn relation(line: &Value) -> &str {
    line["compared"][0]["relation"].as_str().unwrap_or("none")
}

/// Whether an expectation is unmet; a requirement is met if nothing violates it.
fn is_unmet(line: &Value) -> bool {
    let expected = line["expected"].as_str();
    expected.is_some_and(|word| {
        line["verdict"]
            != if word == "required" {
                "forbidden"
            } else {
                word
            }
    })
}

/// Files of which some question is undecided: values of lanes and of unwritten memory that are not
/// worked out, values out of thin air, images and pipes, and functions without a mapping.
const UNDECIDED: [&str; 11] = [
    "Active.apart.toml",
    "Active.toml",
    "Async-copy.toml",
    "Atomic.float.add.toml",
    "Image.left-open.toml",
    "Image.pixels.toml",
    "Image.toml",
    "Image.volumes.toml",
    "Image.work-items.toml",
    "Local.declared.racy.toml",
    "Pipe.full.toml",
];

#[test]
fn the_current_mapping_has_one_known_gap() {
    let all = files(Path::new("litmus/opencl"), &["toml"]);
    let named = all.iter().filter(|f| {
        ["T02.toml", "T75.toml", "T79.toml"]
            .iter()
            .any(|name| f.ends_with(name))
    });
    let looked_at: BTreeSet<PathBuf> = named.cloned().chain(sample(all.iter().cloned())).collect();
    let looked_at: Vec<&str> = looked_at
        .iter()
        .filter(|f| !UNDECIDED.iter().any(|name| f.ends_with(name)))
        .map(|f| f.to_str().expect("UTF-8"))
        .collect();
    let (lines, code) = compare(&looked_at);
    assert_eq!(code, Some(0));
    assert!(
        lines.len() >= looked_at.len().max(93 / step()),
        "{}",
        lines.len()
    );
    let of = |word: &str| {
        let found = lines.iter().filter(|l| relation(l) == word);
        found
            .map(|l| l["test"].as_str().unwrap_or(""))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("known gap"), ["T79"]);
    assert_eq!(of("violated"), [""; 0]);
    assert_eq!(of("undecided"), [""; 0]);
    assert!(of("exempt: undefined").contains(&"T02") && of("respected").contains(&"T75"));
    for line in &lines {
        assert_eq!(line["mapping"], "opencl-ptx");
        assert!(!is_unmet(line), "{}", line["test"]);
    }
}

#[test]
fn of_the_idioms_only_the_one_about_the_erratum_tells_the_mappings_apart() {
    for language in ["cuda", "opencl"] {
        let all = files(&Path::new("litmus/idioms").join(language), &["toml"]);
        let of_the_erratum = all.iter().find(|f| f.ends_with("A24.toml")).cloned();
        let looked_at: BTreeSet<PathBuf> = sample(sample(all)).chain(of_the_erratum).collect();
        let looked_at: Vec<&str> = looked_at
            .iter()
            .map(|f| f.to_str().expect("UTF-8"))
            .collect();
        for (mapping, expected) in [
            ("ptx", &[][..]),
            ("ptx-erratum", &["A24.b"]),
            ("ptx-old-rmw", &[]),
        ] {
            let mapping = format!("{language}-{mapping}");
            let (lines, code) = compare_from(
                language,
                &[&looked_at[..], &["--mapping", &mapping]].concat(),
            );
            let violated = lines
                .iter()
                .filter(|l| relation(l) == "violated")
                .map(|l| l["test"].as_str());
            assert_eq!(
                violated.flatten().collect::<Vec<_>>(),
                expected,
                "{mapping}"
            );
            let respected = lines.iter().filter(|l| relation(l) == "respected").count();
            assert!(!is_long() || lines.len() > 200 && respected > 50);
            assert!(lines.iter().all(|l| relation(l) != "undecided"));
            // The comparison fails on a mapping gap, and on an unmet expectation about another
            // mapping.
            let fails = !expected.is_empty() || lines.iter().any(is_unmet);
            assert_eq!(code, Some(i32::from(fails)), "{mapping}");
        }
    }
}

/// Message passing to a sequentially consistent load.
const TEST: &str = r#"
name = "MP+rel+sc"
dialect = "opencl"
condition = 'P1:a == 1 /\ P1:b == 0'

[memory]
x = { type = "atomic_int" }
y = { type = "atomic_int" }

[[thread]]
work_group = 0
code = '''
atomic_store_explicit(x, 1, memory_order_relaxed, memory_scope_device);
atomic_store_explicit(y, 1, memory_order_release, memory_scope_device);
'''

[[thread]]
work_group = 1
code = '''
int a = atomic_load_explicit(y, memory_order_seq_cst, memory_scope_device);
int b = atomic_load_explicit(x, memory_order_relaxed, memory_scope_device);
'''
"#;

#[test]
fn the_erratum_loses_message_passing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("MP.toml");
    std::fs::write(&file, TEST).expect("writable");
    let file = file.to_str().expect("UTF-8");
    let (lines, _) = compare(&[file]);
    assert_eq!(
        (relation(&lines[0]), lines[0]["verdict"].as_str()),
        ("respected", Some("forbidden"))
    );
    let (lines, code) = compare(&[file, "--mapping", "opencl-ptx-erratum"]);
    assert_eq!(
        (relation(&lines[0]), lines[0]["verdict"].as_str()),
        ("violated", Some("allowed"))
    );
    assert_eq!(lines[0]["mapping"], "opencl-ptx-erratum");
    assert_eq!(code, Some(1));
}

#[test]
fn a_mapping_that_is_not_there_is_told() {
    let (lines, code) = compare(&["litmus/opencl/T01.toml", "--mapping", "opencl-ptz"]);
    assert_eq!((lines.len(), code), (0, Some(2)));
}

/// The comparison of a test's first two models: relation, rule, and the lines to which the rule
/// applies.
fn stands(test: &str, models: &str, more: &[&str]) -> (String, String, Vec<u64>) {
    let path = format!("litmus/{test}.toml");
    let arguments: Vec<&str> = [path.as_str()]
        .into_iter()
        .chain(more.iter().copied())
        .collect();
    let (lines, code) = answers(models, &arguments);
    let fails = lines
        .iter()
        .any(|l| relation(l) == "violated" || is_unmet(l));
    assert_eq!(code, Some(i32::from(fails)), "{test}");
    let finding = &lines[0]["compared"][0];
    let text = |key: &str| finding[key].as_str().unwrap_or("").to_owned();
    let places = finding["places"].as_array().expect("a list");
    let lines = places
        .iter()
        .map(|p| p["line"].as_u64().expect("a number"))
        .collect();
    (text("relation"), text("rule"), lines)
}

#[test]
fn the_rule_and_where_it_bites() {
    let cases: &[(&str, &str, &str, &str, &[u64])] = &[
        (
            "compare/Scope.unequal.opencl",
            "opencl,opencl-3.1",
            "differ",
            "race (scope inclusion)",
            &[22],
        ),
        (
            "compare/Scope.narrow.ptx",
            "ptx,sc",
            "differ",
            "scope inclusion",
            &[15],
        ),
        (
            "compare/Scope.narrow.cuda",
            "cuda,ptx",
            "exempt: undefined",
            "race (scope inclusion)",
            &[16],
        ),
        (
            "compare/Region.flag.opencl",
            "opencl,ptx",
            "exempt: undefined",
            "race (region)",
            &[15, 22],
        ),
        (
            "compare/Region.barrier.opencl",
            "opencl,ptx",
            "exempt: undefined",
            "race (region)",
            &[15, 21],
        ),
        (
            "compare/SC-fence.IRIW.opencl",
            "opencl,ptx",
            "respected",
            "SC fence",
            &[28],
        ),
        (
            "compare/SC-fence.narrow.opencl",
            "opencl,opencl-total",
            "differ",
            "scope inclusion",
            &[16, 24],
        ),
        (
            "compare/Race.MP.ptx",
            "ptx,sc",
            "differ",
            "release and acquire",
            &[15, 21],
        ),
        (
            "compare/Race.volatile.cuda",
            "cuda,ptx",
            "exempt: undefined",
            "race (atomicity)",
            &[14, 20],
        ),
        (
            "compare/Thin-air.LB+data.opencl",
            "opencl,ptx",
            "respected",
            "thin air",
            &[15, 16, 22, 23],
        ),
        (
            "compare/Thin-air.LB.c",
            "c11,rc11",
            "differ",
            "thin air",
            &[14, 15, 20, 21],
        ),
        (
            "compare/Gap.Z6.U.opencl",
            "opencl,ptx",
            "known gap",
            "mapping gap (leading fences)",
            &[15],
        ),
        (
            "compare/Gap.own-read.sc.cuda",
            "cuda,ptx",
            "known gap",
            "mapping gap (SC read-modify-write)",
            &[14],
        ),
        (
            "compare/Gap.leading-scope.cuda",
            "cuda,ptx",
            "known gap",
            "mapping gap (scopes of leading fences)",
            &[15],
        ),
        (
            "compare/Gap.own-read.opencl",
            "opencl,ptx",
            "known gap",
            "mapping gap (SC read-modify-write)",
            &[14],
        ),
        (
            "compare/Map.unused-result.red.ptx",
            "ptx,sc",
            "differ",
            "reduction",
            &[21],
        ),
        (
            "compare/Scope.unequal.cuda",
            "cuda,ptx",
            "respected",
            "",
            &[],
        ),
    ];
    for (test, models, relation, rule, lines) in cases {
        let found = stands(test, models, &[]);
        assert_eq!(
            found,
            (relation.to_string(), rule.to_string(), lines.to_vec()),
            "{test}"
        );
    }
}

/// `ask` and `compare` name the same cause: the first as missing in the program, the second as
/// missing under the first of two models.
#[test]
fn ask_and_compare_name_one_cause() {
    let (of_sc, of_ptx) = (("differ", "sc"), ("exempt: undefined", "ptx"));
    for (test, model, (expected, other), rule) in [
        (
            "ptx/02-fence-sc/IRIW+fence.acq_rel.gpu",
            "ptx",
            of_sc,
            "sequential consistency",
        ),
        (
            "ptx/16-reductions/MP+rel.gpu+red.gpu-rlx.gpu",
            "ptx",
            of_sc,
            "release and acquire",
        ),
        ("compare/Scope.narrow.ptx", "ptx", of_sc, "scope inclusion"),
        ("ptx/15-aliases/CoRR.alias", "ptx", of_sc, "proxy"),
        (
            "cuda/Kernel+last-block.no-fence",
            "cuda",
            of_sc,
            "race (program order)",
        ),
        (
            "compare/Race.volatile.cuda",
            "cuda",
            of_sc,
            "race (atomicity)",
        ),
        // Only the order on failure.
        (
            "cuda/MP+rel+failed-cas.rlx",
            "cuda",
            of_ptx,
            "race (release and acquire)",
        ),
        // The widest scope does not help if scopes must be equal; a narrower one does.
        ("opencl/T23", "opencl", of_ptx, "race (scope inclusion)"),
        ("opencl/T103", "opencl", of_ptx, "race (scope inclusion)"),
        // Flags before orders, no flags at all, memory of another region.
        ("opencl/T28", "opencl", of_ptx, "race (region)"),
        ("opencl/T93", "opencl", of_ptx, "race (region)"),
        ("opencl/T35", "opencl", of_ptx, "race (region)"),
    ] {
        let path = format!("litmus/{test}.toml");
        let (relation, named, compared) = stands(test, &format!("{model},{other}"), &[]);
        assert_eq!(
            (relation.as_str(), named.as_str()),
            (expected, rule),
            "{test}"
        );
        let said = fencepost(
            Path::new("."),
            &["ask", &path, "--model", model, "--format", "jsonl"],
        );
        let line = said
            .out
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
            .next();
        let line = line.expect("an answer");
        let edits = [
            &line["race"]["remedy"],
            &line["explanation"]["missing"]["edits"],
        ];
        let edits = edits
            .into_iter()
            .find_map(Value::as_array)
            .expect("something that it lacks");
        let mut asked: Vec<u64> = edits
            .iter()
            .filter_map(|edit| edit["line"].as_u64())
            .collect();
        asked.dedup();
        assert_eq!(asked, compared, "{test}");
    }
}

/// Sequential consistency across scopes: PTX does not keep it between devices, and this gap differs
/// from that of T79.
#[test]
fn opencl_2_0_has_a_gap_of_its_own() {
    let gap = |test: &str| stands(test, "opencl-2.0,ptx", &[]).1;
    assert_eq!(gap("opencl/T77"), "mapping gap (scopes of SC)");
    assert_eq!(gap("opencl/T79"), "mapping gap (leading fences)");
    assert_eq!(
        stands("opencl/T69", "opencl-total,ptx", &[]).1,
        "mapping gap (scopes of SC)"
    );
    assert_eq!(
        stands("opencl/T76", "opencl-total,ptx", &[]).1,
        "mapping gap (scopes of SC)"
    );
}

/// The guarantees of each version of the language that each mapping keeps.
#[test]
fn mappings_and_the_versions_they_fit() {
    let relation =
        |test: &str, models: &str, mapping: &str| stands(test, models, &["--mapping", mapping]).0;
    for (test, models, mapping, expected) in [
        (
            "compare/Map.sc-load.cuda",
            "cuda,ptx",
            "cuda-ptx",
            "respected",
        ),
        (
            "compare/Map.sc-load.cuda",
            "cuda,ptx",
            "cuda-ptx-erratum",
            "violated",
        ),
        (
            "compare/Map.sc-load.opencl",
            "opencl,ptx",
            "opencl-ptx-erratum",
            "violated",
        ),
        (
            "compare/Map.Fig12.store.cuda",
            "cuda-17,ptx",
            "cuda-ptx",
            "known gap",
        ),
        (
            "compare/Map.Fig12.store.opencl",
            "opencl,ptx",
            "opencl-ptx",
            "known gap",
        ),
        (
            "compare/Map.Fig12.store.opencl",
            "opencl,ptx",
            "opencl-ptx-old-rmw",
            "respected",
        ),
        (
            "compare/Map.Fig12.store.cuda",
            "cuda-17,ptx",
            "cuda-ptx-old-rmw",
            "respected",
        ),
        (
            "compare/Map.Fig12.rmw.cuda",
            "cuda-17,ptx",
            "cuda-ptx",
            "respected",
        ),
        (
            "compare/Gap.own-read.sc.cuda",
            "cuda,ptx",
            "cuda-ptx-old-rmw",
            "respected",
        ),
        (
            "compare/Gap.leading-scope.cuda",
            "cuda,ptx",
            "cuda-ptx-old-rmw",
            "known gap",
        ),
        (
            "compare/Gap.own-read.opencl",
            "opencl,ptx",
            "opencl-ptx-old-rmw",
            "respected",
        ),
    ] {
        assert_eq!(
            relation(test, models, mapping),
            expected,
            "{test} under {models} through {mapping}"
        );
    }
}

#[test]
fn without_models_those_of_the_expectations_are_compared() {
    let (lines, code) = answers("", &["litmus/compare/Race.RelSeq.cuda.toml"]);
    assert_eq!(code, Some(0));
    let models: Vec<&str> = lines.iter().filter_map(|l| l["model"].as_str()).collect();
    assert_eq!(models, ["cuda", "cuda-17", "ptx"]);
    let (_, code) = answers("cuda", &["litmus/compare/Race.RelSeq.cuda.toml"]);
    assert_eq!(code, Some(2));
}

/// The other models get the same query as the first: a violation is not compared with a condition.
#[test]
fn all_models_are_asked_the_same() {
    let (lines, _) = answers("opencl,ptx", &["litmus/opencl/range/offset.toml"]);
    let asked: Vec<_> = lines
        .iter()
        .map(|l| (l["quantifier"].as_str(), l["verdict"].as_str()))
        .collect();
    assert_eq!(asked, [(Some("forall"), Some("forbidden")); 2]);
    assert_eq!(
        stands("opencl/range/offset", "opencl,ptx", &[]).0,
        "respected"
    );
}
