//! Tests `fencepost outcomes` from outside: forbidden outcomes consist of values that executions
//! compute.

use std::fs;

use super::fencepost;

/// A sum of four numbers, level by level, in shared memory.
fn tree(barrier: &str) -> String {
    let threads: String = (0..4)
        .map(|t| {
            let level = |apart: usize| match t < apart {
                true => format!(
                    "ld.shared.u32 r0, [s+{}]; ld.shared.u32 r1, [s+{}]; add.u32 r0, r0, r1; st.shared.u32 [s+{}], r0; ",
                    4 * t,
                    4 * (t + apart),
                    4 * t
                ),
                false => String::new(),
            };
            let end = if t == 0 { "ld.shared.u32 r0, [s]; st.global.u32 [out], r0" } else { "" };
            let code = format!("ld.global.u32 r2, [in+{}]; st.shared.u32 [s+{}], r2; {barrier}", 4 * t, 4 * t);
            format!("[[thread]]\ncta = 0\ncode = \"{code} {}{barrier} {}{barrier} {end}\"\n", level(2), level(1))
        })
        .collect();
    format!(
        "name = \"tree\"\nobserve = [\"out\"]\n[memory]\nin = {{ type = \"u32\", init = [3, 5, 9, 17] }}\nout = {{ type = \"u32\" }}\n\
         s = {{ type = \"u32\", size = 4, space = \"shared\" }}\n{threads}"
    )
}

/// The lines of the list: a value and its verdict.
fn listed(test: &str, arguments: &[&str]) -> (String, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("test.toml"), test).expect("written");
    let said = fencepost(
        folder.path(),
        &[&["outcomes", "test.toml"], arguments].concat(),
    );
    let mut lines = said
        .out
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let head = lines.next().unwrap_or_else(|| panic!("{}", said.err));
    (
        head,
        lines.skip(1).take_while(|line| !line.is_empty()).collect(),
    )
}

#[test]
fn values_that_no_execution_computes_are_not_listed() {
    let (head, list) = listed(&tree("bar.sync 0;"), &[]);
    assert!(
        head.ends_with("1 outcome allowed, and the list is complete"),
        "{head}"
    );
    // The initial value of memory, and the sum.
    assert_eq!(list, ["0 forbidden", "34 allowed"]);
    let (_, list) = listed(&tree(""), &[]);
    let sums: Vec<String> = [3, 8, 12, 17, 25, 34]
        .iter()
        .map(|sum| format!("{sum} allowed, racy"))
        .collect();
    assert_eq!(list, [vec!["0 forbidden".to_owned()], sums].concat());
}

#[test]
fn what_comes_up_on_the_way_is_listed_as_forbidden() {
    let add = "[[thread]]\ncta = 0\ncode = \"atom.relaxed.gpu.add.u32 r0, [x], 1\"\n";
    let test = format!(
        "name = \"T\"\nobserve = [\"x\"]\nmemory = {{ x = {{ type = \"u32\" }} }}\n{add}{add}"
    );
    assert_eq!(
        listed(&test, &["--engine", "both"]).1,
        ["1 forbidden", "2 allowed"]
    );
    let test = "name = \"T\"\nobserve = [\"x\"]\nmemory = { x = 0 }\n[[thread]]\ncode = \"st.weak x, 1; st.weak x, 2\"\n";
    assert_eq!(
        listed(test, &["--engine", "both"]).1,
        ["1 forbidden", "2 allowed"]
    );
}

#[test]
fn nothing_is_called_forbidden_while_others_may_be_allowed() {
    let (head, list) = listed(&tree(""), &["--timeout", "1ms"]);
    assert!(head.contains("not complete"), "{head}");
    assert!(
        list.iter().all(|line| !line.ends_with("forbidden")),
        "{list:?}"
    );
}
