//! Pipelines, complete and with one synchronization missing: the lines that an answer points at,
//! and the addition that it proposes.

use std::path::Path;

use super::fencepost;

const ASK: &[&str] = &["ask"];
/// For larger programs: without the reasons of the answers.
const CHECK: &[&str] = &[
    "check",
    "-v",
    "--property",
    "reachability",
    "--property",
    "race",
];

/// The answer about each test of a file.
fn said_of(file: &str, command: &[&str]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let said = fencepost(root, &[command, &[file, "--model", "ptx"]].concat());
    let mut answers: Vec<(String, String)> = Vec::new();
    for line in said.out.lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        match answers.last_mut() {
            Some((before, answer)) if before == name => *answer += &format!("{line}\n"),
            _ if line.starts_with("Pipeline") => {
                answers.push((name.to_owned(), format!("{line}\n")))
            }
            Some((_, answer)) => *answer += &format!("{line}\n"),
            None => {}
        }
    }
    answers
}

/// The place of the first or second occurrence of a line in a file, as answers print it.
fn line_of(file: &str, text: &str, second: bool) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(root.join(file)).expect("readable");
    let mut places = source.lines().enumerate().filter(|(_, line)| *line == text);
    let (at, _) = places
        .nth(usize::from(second))
        .unwrap_or_else(|| panic!("{text}"));
    format!("line {}", at + 1)
}

/// Checks that the answer about each twin has all of these.
fn points_at(file: &str, command: &[&str], twins: &[(&str, &[String])]) {
    let answers = said_of(file, command);
    assert_eq!(answers.len(), twins.len(), "{answers:?}");
    for (twin, wanted) in twins {
        let answer = answers
            .iter()
            .find(|a| a.0 == *twin)
            .unwrap_or_else(|| panic!("{twin}"));
        for text in *wanted {
            assert!(
                answer.1.contains(text.as_str()),
                "{twin} says nothing of {text}:\n{}",
                answer.1
            );
        }
    }
}

const LOAD: &str = "litmus/ptx-async/17-pipelines/Load.toml";

#[test]
fn bulk_loads_and_mbarrier_objects() {
    let copy = |from: &str| {
        let text = format!(
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [x], [{from}], 16, [f0]"
        );
        line_of(LOAD, &text, false)
    };
    let read = line_of(LOAD, "ld.weak a, x", false);
    let in_flight = |from: &str| {
        [
            "in flight (P0's agent".to_owned(),
            format!("{} with P2 {read})", copy(from)),
        ]
    };
    let expect = "mbarrier.arrive.expect_tx _, [f0], 16";
    let fence = format!(
        "`fence.proxy.async` before `{expect}` (P0, {})",
        line_of(LOAD, expect, false)
    );
    points_at(
        LOAD,
        ASK,
        &[
            (
                "Pipeline+load",
                &["forbidden".into(), "without it, it would be allowed".into()],
            ),
            ("Pipeline+load-full", &in_flight("g")),
            ("Pipeline+load-empty", &in_flight("h")),
            (
                "Pipeline+load-fence",
                &[format!("it would be forbidden with\n    {fence}\n")],
            ),
            ("Pipeline+load-release", &in_flight("h")),
        ],
    );
}

const STORE: &str = "litmus/ptx-async/17-pipelines/Store.toml";

#[test]
fn bulk_stores_of_what_was_computed() {
    let copy = line_of(
        STORE,
        "cp.async.bulk.global.shared::cta.bulk_group [g], [x], 16",
        false,
    );
    let in_flight = |by: &str| {
        [
            "in flight (P2's agent".to_owned(),
            format!("{copy} with P0 {})", line_of(STORE, by, false)),
        ]
    };
    // The arrival comes after the missing fence.
    let arrival = line_of(STORE, "mbarrier.${arrive} _, [f0]", false);
    let fence = format!("`fence.proxy.async` before `mbarrier.arrive _, [f0]` (P0, {arrival})");
    points_at(
        STORE,
        ASK,
        &[
            ("Pipeline+store", &["forbidden".into()]),
            (
                "Pipeline+store-fence",
                &[format!("it would be forbidden with\n    {fence}\n")],
            ),
            ("Pipeline+store-release", &in_flight("st.weak x, 1")),
            ("Pipeline+store-full", &in_flight("st.weak x, 1")),
            ("Pipeline+store-empty", &in_flight("st.weak x, 3")),
            ("Pipeline+store-read", &in_flight("st.weak x, 3")),
        ],
    );
}

/// Too large for the engines that enumerate.
const CLUSTER: &str = "tests/cli/pipelines/Cluster.toml";

#[test]
fn multicast_with_remote_arrivals() {
    let copy = |from: &str| {
        let text = format!(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [x], [{from}], 16, [f0], 3"
        );
        line_of(CLUSTER, &text, false)
    };
    let far = line_of(CLUSTER, "ld.weak a, x", true);
    let in_flight = |from: &str| {
        [
            "in flight (P0's agent".to_owned(),
            format!("{} with P3 {far})", copy(from)),
        ]
    };
    points_at(
        CLUSTER,
        CHECK,
        &[
            (
                "Pipeline.cluster+right",
                &["forbidden".into(), "race-free".into()],
            ),
            ("Pipeline.cluster+full", &in_flight("g")),
            ("Pipeline.cluster+expect", &in_flight("g")),
            // Nothing tells the producer that the readers are done: both copies race with each of
            // them.
            (
                "Pipeline.cluster+empty",
                &[
                    "in flight (P0's agent".into(),
                    " with P".into(),
                    "racy".into(),
                ],
            ),
            ("Pipeline.cluster+empty.cta", &in_flight("h")),
            (
                "Pipeline.cluster+fence",
                &[
                    "racy       P0's agent".to_owned(),
                    format!("{} with P3 {far}", copy("h")),
                ],
            ),
            ("Pipeline.cluster+fence.cta", &["forbidden".into()]),
            ("Pipeline.cluster+fence.producer", &["forbidden".into()]),
            ("Pipeline.cluster+release", &in_flight("h")),
            ("Pipeline.cluster+release.cta", &in_flight("h")),
        ],
    );
}

/// A fence that one of the values in the condition needs is not spared, although the shown
/// execution has another value.
#[test]
fn what_several_values_rest_on() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let whole = std::fs::read_to_string(root.join(CLUSTER)).expect("readable");
    let (test, _) = whole.split_once("[[matrix]]").expect("it has expectations");
    let kept = test.lines().filter(|line| {
        let twin = line.starts_with("  { name = ") && !line.contains("\"right\"");
        !twin && !line.starts_with("condition") && *line != "${refill}"
    });
    let lines: Vec<&str> = kept.collect();
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!("condition = 'P2:a != 7'\n{}\n", lines.join("\n"));
    std::fs::write(folder.path().join("t.toml"), text).expect("writable");
    let said = fencepost(folder.path(), &["ask", "t.toml", "--model", "ptx"]).out;
    let (_, needed) = said
        .split_once("it needs all of these:")
        .unwrap_or_else(|| panic!("{said}"));
    assert!(needed.contains("`fence.proxy.async` (P2, "), "{needed}");
}

/// Two rounds of requests to the scheduler of clusters, as in the ISA's example, and without each
/// half of its fence.
#[test]
fn requests_in_a_loop() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in ["tests/cli/pipelines/Requests.toml", CLUSTER] {
        let said = fencepost(root, &["check", file]);
        assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    }
}
