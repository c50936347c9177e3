//! The page about CIVL's library: each row names two tests of `litmus/` with different answers.

use std::path::Path;

use fencepost::litmus::{LitmusTest, read_path};

/// The rows of the page, without its head.
fn rows() -> Vec<Vec<String>> {
    let page = include_str!("../../docs/src/civl.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let cells = |row: &str| {
        let all = row.trim_matches('|').split(" | ");
        all.map(|cell| cell.trim().to_owned()).collect()
    };
    rows.map(cells).collect()
}

/// The tests of a file.
fn tests(name: &str) -> Vec<LitmusTest> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("litmus")
        .join(format!("{}.toml", name.trim_matches('`')));
    read_path(&path).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"))
}

/// What the files expect of the model of CUDA C++, and the condition that this is about.
fn expected(name: &str) -> Vec<String> {
    let of = |test: &LitmusTest| {
        let expected = test.expect.get("cuda").cloned().unwrap_or_default();
        let (race, reaches) = (expected.race, expected.reachability);
        let lives = (expected.lifetime, expected.undefined);
        format!("{} {race:?} {reaches:?} {lives:?}", test.condition_text)
    };
    tests(name).iter().map(of).collect()
}

#[test]
fn each_function_of_civl_has_a_test_and_a_twin() {
    let rows = rows();
    assert_eq!(rows.len(), 17);
    for row in &rows {
        let [_, _, test, twin] = row.as_slice() else {
            panic!("{row:?}");
        };
        let (right, wrong) = (expected(test), expected(twin));
        assert_ne!(right, wrong, "{test} and {twin} have the same answers");
        assert!(
            right.iter().any(|text| text.contains("Some(")),
            "{test} expects nothing of `cuda`"
        );
    }
}

/// The page names each function of CIVL's text.
#[test]
fn the_page_names_all_functions_of_the_library() {
    let page = include_str!("../../docs/src/civl.md");
    for name in [
        "$cuda_context_t",
        "$cuda_init",
        "$cuda_finalize",
        "$cuda_stream_create",
        "$cuda_stream_wait",
        "$cuda_enqueue_kernel",
        "$cuda_kernel_instance_t",
        "$cuda_wait_in_queue",
        "$cuda_run_procs",
        "$cuda_kernel_finish",
        "$cuda_index",
        "$cuda_kernel_index",
        "$gbarrier_create",
        "$barrier_call",
        "$gcomm_create",
        "$comm_create",
        "$read_set_push",
        "$write_set_push",
        "$check_data_race",
        "$local_start",
        "$local_end",
        "$yield",
    ] {
        assert!(page.contains(name), "the page lacks `{name}`");
    }
}
