//! The rows of the specifications: each has a test and a twin with another expectation, or an error
//! that quotes the text. `BLESS=1 cargo test --test texts rows` writes them as a page.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::{LitmusTest, parse, read_path};
use fencepost::program::litmus::Expectation;
use fencepost::verdict::Verdict;
use testkit::suite::{files, shipped};

const DATA: &str = "docs/src/rows.toml";
const PAGE: &str = "docs/src/rows.md";

/// The documents: a key of the data, and the heading.
const DOCUMENTS: [(&str, &str); 5] = [
    ("cuda", "CUDA C++"),
    ("ptx", "PTX"),
    ("civl", "CUDA in CIVL"),
    ("opencl", "OpenCL"),
    ("machine", "The machine of PTX"),
];

const HEAD: &str = "\
# The specifications, row by row

Five documents say what GPUs and their languages do: the memory model of CUDA C++, that of PTX, the
implementation of CUDA in CIVL, the execution and memory model of OpenCL, and the machine model of
PTX. Each row is a concept of one of them, with a test of `litmus`. Its twin changes this concept
alone, and has another answer. What the executor shows has the numbers of two `[[run]]`s. A test
makes this page from `rows.toml`: it checks that both exist and that their expectations differ. A
row without a test is refused. The error quotes the sentence that leaves open what happens.
";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A concept of a specification.
struct SpecRow {
    /// The numbers of the concept.
    numbers: String,
    says: String,
    evidence: Evidence,
}

enum Evidence {
    /// A test and its twin, as folder and name.
    Pair(String, String),
    /// The same with the numbers of their runs.
    Runs([(String, usize); 2]),
    /// The sentence that is silent, and a test that is refused with it.
    Refusal { silent: String, input: String },
    /// The sentence that is silent, and a test that is undecided for it.
    LeftOpen { silent: String, test: String },
}

impl SpecRow {
    fn of(table: &toml::Value) -> SpecRow {
        let text = |key: &str| {
            table
                .get(key)
                .and_then(|value| value.as_str())
                .map(str::to_owned)
        };
        let numbers = text("row").expect("a row has a number");
        let says = text("says").unwrap_or_else(|| panic!("{numbers} says nothing"));
        let runs = table.get("runs").and_then(|runs| runs.as_array());
        let run = |at: usize| {
            let number = runs.and_then(|runs| runs.get(at)?.as_integer());
            usize::try_from(number.expect("the number of a run")).expect("it is positive")
        };
        let evidence = match (text("test"), text("twin"), text("silent"), text("input")) {
            (Some(test), Some(twin), None, None) if runs.is_some() => {
                Evidence::Runs([(test, run(0)), (twin, run(1))])
            }
            (Some(test), Some(twin), None, None) => Evidence::Pair(test, twin),
            (Some(test), None, Some(silent), None) => Evidence::LeftOpen { silent, test },
            (None, None, Some(silent), Some(input)) => Evidence::Refusal { silent, input },
            _ => panic!("{numbers} has neither a test with its twin nor a refusal"),
        };
        SpecRow {
            numbers,
            says,
            evidence,
        }
    }
}

/// The rows of a document, in their order.
fn rows(document: &str) -> Vec<SpecRow> {
    let data = fs::read_to_string(root().join(DATA)).expect("the data");
    let data: toml::Table = data.parse().expect("TOML");
    for key in data.keys() {
        let known = DOCUMENTS.iter().any(|of| of.0 == key);
        assert!(known, "there is no document `{key}`");
    }
    let all = data.get(document).and_then(|rows| rows.as_array());
    all.map_or(Vec::new(), |rows| rows.iter().map(SpecRow::of).collect())
}

/// Whether two tests expect different answers to one question, under one model.
fn differ(test: &Expectation, twin: &Expectation) -> bool {
    fn both<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
        a.is_some() && b.is_some() && a != b
    }
    both(&test.reachability, &twin.reachability)
        || both(&test.race, &twin.race)
        || both(&test.undefined, &twin.undefined)
        || both(&test.lifetime, &twin.lifetime)
        || (test.liveness.iter())
            .any(|(progress, hangs)| twin.liveness.get(progress).is_some_and(|it| it != hangs))
}

/// The tests of `litmus`, by folder and name.
#[derive(Default)]
struct Folders {
    all: BTreeMap<String, BTreeMap<String, LitmusTest>>,
}

impl Folders {
    fn test(&mut self, path: &str) -> &LitmusTest {
        let (folder, name) = path.rsplit_once('/').expect("a folder and a name");
        let tests = self.all.entry(folder.to_owned()).or_insert_with(|| {
            let paths = files(&root().join("litmus").join(folder), &["toml"]);
            let tests = paths
                .iter()
                .flat_map(|path| read_path(path).expect("tests"));
            tests.map(|test| (test.name.clone(), test)).collect()
        });
        let test = tests.get(name);
        test.unwrap_or_else(|| panic!("there is no test `{path}`"))
    }
}

/// Whether a row names a source file.
fn is_source(name: &str) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|it| ["cl", "cu", "spvasm"].iter().any(|known| it == *known))
}

#[test]
fn each_row_has_a_test_and_a_twin_with_another_answer() {
    let mut folders = Folders::default();
    for row in DOCUMENTS.iter().flat_map(|document| rows(document.0)) {
        let Evidence::Pair(test, twin) = &row.evidence else {
            continue;
        };
        if is_source(test) {
            for name in [test, twin] {
                assert!(
                    root().join("litmus").join(name).is_file(),
                    "there is no `{name}`"
                );
            }
            assert_ne!(test, twin);
            continue;
        }
        let [test_expects, twin_expects] =
            [test, twin].map(|path| folders.test(path).expect.clone());
        let mut models = test_expects.iter();
        let other = models.any(|(model, expected)| {
            let of_twin = twin_expects.get(model);
            of_twin.is_some_and(|twin| differ(expected, twin))
        });
        assert!(
            other,
            "{}: `{test}` and `{twin}` have the same answer",
            row.numbers
        );
    }
}

#[test]
fn the_runs_of_each_row_end_differently() {
    let mut folders = Folders::default();
    for row in DOCUMENTS.iter().flat_map(|document| rows(document.0)) {
        let Evidence::Runs(pair) = &row.evidence else {
            continue;
        };
        let [test, twin] = pair.clone().map(|(path, number)| {
            let run = folders.test(&path).runs[number - 1].clone();
            (run.ends, run.race, run.condition)
        });
        assert_ne!(test, twin, "{}: {}", row.numbers, row.says);
    }
}

#[test]
fn each_refusal_quotes_the_sentence_that_is_silent() {
    for row in DOCUMENTS.iter().flat_map(|document| rows(document.0)) {
        let Evidence::Refusal { silent, input } = &row.evidence else {
            continue;
        };
        let errors = parse("refused.toml", input.as_bytes()).expect_err("it is refused");
        let errors = format!("{errors:?}");
        assert!(errors.contains(silent.as_str()), "{}: {errors}", row.says);
    }
}

#[test]
fn each_open_answer_quotes_the_sentence_that_is_silent() {
    let mut folders = Folders::default();
    for (document, _) in DOCUMENTS {
        for row in rows(document) {
            let Evidence::LeftOpen { silent, test } = &row.evidence else {
                continue;
            };
            let model = shipped(document);
            let test = folders.test(test);
            let mut session = Session::new(test, &model, Engine::Sat, Limits::default(), &[]);
            let answer = session.reachability(test.condition.as_ref(), false);
            let Verdict::Undecided(reason) = &answer.verdict else {
                panic!("{}: {:?}", row.says, answer.verdict);
            };
            let reason = reason.to_string();
            assert!(reason.contains(silent.as_str()), "{}: {reason}", row.says);
        }
    }
}

/// Words that the documents and the rows use.
const WORDS: &[&str] = &[
    "alias",
    "activemask",
    "async proxy",
    "atomic_signal_fence",
    "barrier",
    "coalesced_threads",
    "cuMemMap",
    "data race",
    "destructor",
    "fence",
    "grid",
    "independent thread scheduling",
    "kernel instance",
    "latch",
    "local memory",
    "lockstep",
    "managed memory",
    "mapped memory",
    "matrix descriptor",
    "memory synchronization domain",
    "multicast",
    "multimem address",
    "multiprocessor",
    "native atomics",
    "null stream",
    "occupancy",
    "packed",
    "physical address",
    "proxy",
    "read set",
    "reconvergence",
    "registers",
    "release sequence",
    "request_stop",
    "residency",
    "schedule optimizer",
    "scope",
    "semaphore",
    "shared memory",
    "signal handler",
    "state space",
    "stop_callback",
    "stop_source",
    "stop_token",
    "stream",
    "strong operation",
    "surface",
    "swizzle",
    "tensor map",
    "tensor memory",
    "texture",
    "thread scope",
    "transaction count",
    "vector",
    "virtual address",
    "vote",
    "warpgroup",
    "weak operation",
    "write set",
];

#[test]
fn the_glossary_has_the_words_of_the_documents() {
    let glossary = fs::read_to_string(root().join("docs/src/glossary.md")).expect("the glossary");
    let heads = glossary.lines().filter_map(|line| line.strip_prefix("## "));
    let terms: Vec<&str> = heads.flat_map(|head| head.split(", ")).collect();
    for word in WORDS {
        assert!(terms.contains(word), "the glossary has no `{word}`");
    }
}

/// The page of all rows.
fn page() -> String {
    let mut text = HEAD.to_owned();
    for (document, heading) in DOCUMENTS {
        let all = rows(document);
        if all.is_empty() {
            continue;
        }
        write!(text, "\n## {heading}\n\n").expect("a string");
        text += "| row | concept | state | test | twin |\n|---|---|---|---|---|\n";
        for SpecRow {
            numbers,
            says,
            evidence,
        } in &all
        {
            let shown = match evidence {
                Evidence::Pair(test, twin) => {
                    let [test, twin] = [test, twin].map(|path| path.trim_start_matches("../"));
                    format!("works | `{test}` | `{twin}`")
                }
                Evidence::Runs(pair) => {
                    let [test, twin] =
                        (pair.clone()).map(|(path, run)| format!("`{path}`, run {run}"));
                    format!("works | {test} | {twin}")
                }
                Evidence::Refusal { silent, .. } => format!("refused: \"{silent}\" | – | –"),
                Evidence::LeftOpen { silent, test } => {
                    format!("undecided: \"{silent}\" | `{test}` | –")
                }
            };
            writeln!(text, "| {numbers} | {says} | {shown} |").expect("a string");
        }
    }
    text
}

#[test]
fn the_page_of_rows_is_true() {
    let new = page();
    let old = fs::read_to_string(root().join(PAGE)).unwrap_or_default();
    if std::env::var_os("BLESS").is_some() {
        fs::write(root().join(PAGE), &new).expect("written");
    } else {
        assert_eq!(old, new, "{PAGE} is made anew by BLESS=1");
    }
}
