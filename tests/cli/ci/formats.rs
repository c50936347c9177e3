//! The formats for other tools: their content, their places, and robustness against any text in a
//! test.

use serde_json::Value;

use super::{Folder, SPIN, mp};

/// One expectation met, one unmet, one undecided, one invalid.
fn suite() -> Folder {
    Folder::new(&[
        ("a/MP.toml", &mp("MP", "forbidden")),
        ("a/Wrong.toml", &mp("Wrong", "allowed")),
        ("b/Spin.toml", SPIN),
        (
            "b/broken.toml",
            "name = \"Broken\"\nconditoin = 'x == 1'\nmemory = { x = 0 }\n",
        ),
    ])
}

const FORMATS: [&str; 9] = [
    "human", "json", "jsonl", "junit", "sarif", "github", "gitlab", "markdown", "tap",
];

#[test]
fn all_formats_at_once_say_the_same() {
    let folder = suite();
    let reports: Vec<String> = FORMATS
        .iter()
        .map(|f| format!("--report={f}={f}.out"))
        .collect();
    let mut arguments = vec!["check", ".", "--no-config"];
    arguments.extend(reports.iter().map(String::as_str));
    let said = folder.run(&arguments);
    assert_eq!(said.code, Some(2), "{}", said.err);
    let junit = folder.read("junit.out");
    assert!(
        junit.contains(r#"tests="4" skipped="0" failures="1" errors="2""#),
        "{junit}"
    );
    let tap = folder.read("tap.out");
    assert_eq!(
        tap.lines().filter(|l| l.starts_with("ok ")).count(),
        1,
        "{tap}"
    );
    assert_eq!(
        tap.lines().filter(|l| l.starts_with("not ok ")).count(),
        3,
        "{tap}"
    );
    assert!(tap.contains("\n1..4\n"), "{tap}");
    let github = folder.read("github.out");
    assert_eq!(github.matches("::error ").count(), 2, "{github}");
    assert_eq!(github.matches("::warning ").count(), 1, "{github}");
    let sarif: Value = serde_json::from_str(&folder.read("sarif.out")).unwrap();
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), 3);
    let gitlab: Vec<Value> = serde_json::from_str(&folder.read("gitlab.out")).unwrap();
    assert_eq!(gitlab.len(), 3, "{gitlab:?}");
    let markdown = folder.read("markdown.out");
    assert_eq!(markdown.matches("\n| error | ").count(), 2, "{markdown}");
    assert_eq!(markdown.matches("\n| warning | ").count(), 1, "{markdown}");
    for format in FORMATS {
        // For any number of workers, and also as the main output.
        for jobs in ["1", "4"] {
            let again = folder.run(&[
                "check",
                ".",
                "--no-config",
                "--jobs",
                jobs,
                "--format",
                format,
            ]);
            assert_eq!(
                again.out,
                folder.read(&format!("{format}.out")),
                "{format}, {jobs} jobs"
            );
        }
    }
}

/// A solver's thread has answered other queries before, different ones every time.
#[test]
fn executions_that_a_solver_finds_do_not_depend_on_jobs() {
    let folder = Folder::new(&[]);
    let litmus = concat!(env!("CARGO_MANIFEST_DIR"), "/litmus");
    let races = format!(
        "{litmus}/ptx/{}",
        if testkit::suite::is_long() {
            ""
        } else {
            "20-races"
        }
    );
    let hangs = format!("{litmus}/liveness");
    let executions = |engine, jobs| {
        let how = [
            "--engine",
            engine,
            "--no-cache",
            "--jobs",
            jobs,
            "--format",
            "jsonl",
            "-v",
        ];
        folder
            .run(&[&["check", &races, &hangs], how.as_slice()].concat())
            .out
    };
    for engine in ["symbolic", "sat"]
        .into_iter()
        .filter(|&engine| cfg!(feature = "z3") || engine != "symbolic")
    {
        let alone = executions(engine, "1");
        assert!(
            alone.contains(r#""accesses":[{"thread""#),
            "races are told by an execution"
        );
        assert!(
            alone.contains(r#""verdict":"hangs""#),
            "some executions are endless"
        );
        for jobs in ["2", "3"] {
            assert!(
                executions(engine, jobs) == alone,
                "{engine}: {jobs} workers find other executions than one"
            );
        }
    }
}

#[test]
fn places_are_those_of_the_expectations_and_of_the_mistakes() {
    let folder = suite();
    let said = folder.run(&["check", "a", "b", "--format", "github"]);
    assert!(
        said.out
            .contains("::error file=a/Wrong.toml,line=13,col=1,title=Wrong under ptx%3A "),
        "{}",
        said.out
    );
    assert!(
        said.out
            .contains("::error file=b/broken.toml,line=2,col=1,title=unknown-key::"),
        "{}",
        said.out
    );
    let sarif: Value =
        serde_json::from_str(&folder.run(&["check", "a", "--format", "sarif"]).out).unwrap();
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "a/Wrong.toml");
    assert_eq!(place["region"]["startLine"], 13);
}

/// Each pair of lines that races is a result at its own place.
#[test]
fn sarif_has_a_result_for_each_racing_pair() {
    let test = r#"name = "Two"
dialect = "cuda"
memory = { x = 0, y = 0 }

[[thread]]
block = 0
code = """
x = 1;
y = 1;
"""

[[thread]]
block = 1
code = """
int a = x;
int b = y;
"""

[expect]
cuda = { race = "race-free" }
"#;
    let folder = Folder::new(&[("a.toml", test)]);
    let sarif: Value =
        serde_json::from_str(&folder.run(&["check", "--format", "sarif"]).out).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let line = |result: &Value, locations: &str| {
        result[locations][0]["physicalLocation"]["region"]["startLine"]
            .as_u64()
            .unwrap()
    };
    let lines: Vec<(u64, u64)> = results
        .iter()
        .map(|r| (line(r, "locations"), line(r, "relatedLocations")))
        .collect();
    assert_eq!(lines, [(8, 15), (9, 16)]);
    let [first, second] = [0, 1].map(|i| &results[i]["partialFingerprints"]);
    assert_ne!(first, second);
}

#[test]
fn only_what_was_decided_makes_a_report_green() {
    let folder = Folder::new(&[("Spin.toml", SPIN)]);
    let said = folder.run(&["check", "--format", "junit"]);
    assert_eq!(said.code, Some(3));
    assert!(
        said.out.contains(r#"errors="1""#) && said.out.contains(r#"type="undecided""#),
        "{}",
        said.out
    );
    let asked = folder.run(&["check", "--format", "junit", "--model", "ptx-v6.0"]);
    assert!(
        asked.out.contains(r#"skipped="1""#),
        "nothing is expected of that model: {}",
        asked.out
    );
}

#[test]
fn names_with_markup_break_no_format() {
    let name = "<b>&'# ::error::x,%0A]]>";
    let folder = Folder::new(&[("a.toml", &mp(name, "allowed"))]);
    let junit = folder.run(&["check", "--format", "junit"]).out;
    assert!(
        !junit.contains("<b>") && junit.contains("&lt;b&gt;&amp;"),
        "{junit}"
    );
    let tap = folder.run(&["check", "--format", "tap"]).out;
    assert!(tap.contains("<b>&'\\# ::error::x"), "{tap}");
    let github = folder.run(&["check", "--format", "github"]).out;
    assert!(
        github.contains("title=<b>&'# %3A%3Aerror%3A%3Ax%2C%250A]]> under ptx"),
        "{github}"
    );
    let sarif: Value =
        serde_json::from_str(&folder.run(&["check", "--format", "sarif"]).out).unwrap();
    assert_eq!(sarif["runs"][0]["results"][0]["properties"]["test"], name);
}

#[cfg(unix)]
#[test]
fn paths_with_newlines_break_no_format() {
    let path = "x\n::error::y\nnot ok 7.toml";
    let folder = Folder::new(&[(path, &mp("MP", "allowed"))]);
    let github = folder.run(&["check", "--format", "github"]).out;
    assert_eq!(
        github.lines().filter(|l| l.starts_with("::")).count(),
        1,
        "{github}"
    );
    let tap = folder.run(&["check", "--format", "tap"]).out;
    assert_eq!(
        tap.lines().filter(|l| l.starts_with("not ok")).count(),
        1,
        "{tap}"
    );
    let junit = folder.run(&["check", "--format", "junit"]).out;
    assert!(
        junit.contains(r#"<testsuite name="x\n::error::y\nnot ok 7.toml""#),
        "{junit}"
    );
    let sarif: Value =
        serde_json::from_str(&folder.run(&["check", "--format", "sarif"]).out).unwrap();
    let uri = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
        ["uri"];
    assert_eq!(uri, "x%0A%3A%3Aerror%3A%3Ay%0Anot%20ok%207.toml");
}

#[test]
fn what_a_format_has_no_words_for_is_refused_before_anything_is_decided() {
    let folder = Folder::new(&[("MP.toml", &mp("MP", "forbidden"))]);
    for arguments in [
        &["outcomes", "MP.toml", "--format", "junit"][..],
        &["outcomes", "MP.toml", "--report", "sarif=out"],
        &["run", "MP.toml", "--format", "tap"],
        &["models", "--format", "github"],
    ] {
        let said = folder.run(arguments);
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(2), ""),
            "{arguments:?}"
        );
        assert!(
            said.err
                .contains("formats of this command: human, json, jsonl"),
            "{}",
            said.err
        );
    }
    assert!(!folder.path("out").exists());
    assert_eq!(
        folder.run(&["ask", "MP.toml", "--format", "tap"]).code,
        Some(0)
    );
}
