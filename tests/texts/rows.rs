//! The rows of OpenCL: each has a test, and a twin with another expectation, or an error that
//! quotes the specification.

use std::collections::BTreeMap;
use std::path::Path;

use fencepost::litmus::read_path;
use fencepost::program::litmus::Expectation;
use testkit::suite::files;

const PAGE: &str = include_str!("../../docs/src/opencl-rows.md");

/// Whether two tests expect different answers to one question.
fn differ(test: &Expectation, twin: &Expectation) -> bool {
    fn both<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
        a.is_some() && b.is_some() && a != b
    }
    both(&test.reachability, &twin.reachability)
        || both(&test.race, &twin.race)
        || both(&test.undefined, &twin.undefined)
        || (test.liveness.iter())
            .any(|(progress, hangs)| twin.liveness.get(progress).is_some_and(|it| it != hangs))
}

#[test]
fn each_row_of_opencl_has_a_test_and_a_twin_with_another_answer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus");
    let mut expected: BTreeMap<String, Expectation> = BTreeMap::new();
    for folder in ["opencl", "host/opencl"] {
        for path in files(&root.join(folder), &["toml"]) {
            for test in read_path(&path).expect("a test") {
                if let Some(expect) = test.expect.get("opencl") {
                    expected.insert(test.name.clone(), expect.clone());
                }
            }
        }
    }
    let rows: Vec<Vec<&str>> = PAGE
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains('`'))
        .map(|line| line.split('`').collect())
        .collect();
    assert!(rows.len() > 15, "{}", rows.len());
    for row in rows {
        let names = &row[row.len() - 4..];
        let (test, twin) = (names[0], names[2]);
        let found = |name: &str| match expected.get(name) {
            Some(expected) => expected.clone(),
            None => panic!("there is no test `{name}`"),
        };
        assert!(
            differ(&found(test), &found(twin)),
            "`{test}` and `{twin}` have the same answer"
        );
    }
}

/// A host program with one line of the host.
fn host(line: &str) -> String {
    format!(
        "name = \"refused\"\ndialect = \"opencl\"\nqueues = {{ q = \"in-order\" }}\n\
         memory = {{ x = {{ type = \"int\" }} }}\n[[host]]\ncode = \"{line}\"\n"
    )
}

#[test]
fn errors_quote_what_the_specification_leaves_open() {
    let lines = [
        "clEnqueueNativeKernel(q, f);",
        "clCreateProgramWithBuiltInKernels(q);",
        "cl_event u = clCreateUserEvent(NULL); clSetUserEventStatus(u, -1);",
    ];
    let quoted: Vec<&str> = PAGE
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains('"'))
        .filter_map(|line| line.split('"').nth(1))
        .collect();
    assert_eq!(quoted.len(), lines.len());
    for (line, quote) in lines.iter().zip(quoted) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("refused.toml");
        std::fs::write(&path, host(line)).expect("written");
        let errors = format!("{:?}", read_path(&path).expect_err("it is refused"));
        assert!(errors.contains(quote), "{line}: {errors}");
    }
}
