//! Tests the output for people: places that need attention, and one line of numbers. Also known
//! failures, undefined programs, tests of the same name, narrow terminals.

use super::{Folder, Said, mp, sb};

/// A flag without atomics: undefined behaviour in CUDA C++.
fn racy(expected: &str) -> String {
    format!(
        "\
name = \"Racy\"
dialect = \"cuda\"
condition = 'P1:a == 1'
memory = {{ x = {{ type = \"int\" }} }}
[[thread]]
code = \"x = 1;\"
[[thread]]
block = 1
code = \"int a = x;\"
[expect]
cuda = {{ {expected} }}
"
    )
}

/// The lines of standard output at a width.
fn at_width(folder: &Folder, columns: &str, arguments: &[&str]) -> Said {
    Said::from(
        folder
            .command(arguments)
            .env("COLUMNS", columns)
            .output()
            .unwrap(),
    )
}

#[test]
fn all_met_is_one_line() {
    let folder = Folder::new(&[("MP.toml", &mp("MP", "forbidden")), ("SB.toml", &sb("SB"))]);
    let line = "3 answers: 1 allowed, 2 forbidden; 3 expectations, all met\n";
    for arguments in [
        &["check"][..],
        &["check", "MP.toml", "SB.toml"],
        &["check", "-q"],
    ] {
        let said = folder.run(arguments);
        assert_eq!(
            (said.out.as_str(), said.err.as_str(), said.code),
            (line, "", Some(0)),
            "{arguments:?}"
        );
    }
    let verbose = folder.run(&["check", "-v"]).out;
    assert_eq!(verbose.matches("  as expected, ").count(), 3, "{verbose}");
    assert!(
        verbose.starts_with("MP  ptx  exists  forbidden  as expected, "),
        "{verbose}"
    );
    // Few answers without expectations are listed; many are counted.
    let few = folder.run(&["check", "--model", "ptx-v6.0"]);
    assert_eq!(few.out.lines().count(), 3, "{}", few.out);
    let models = ["ptx", "ptx-v6.0", "ptx-v7.5"].map(|m| format!("--model={m}"));
    let all: Vec<&str> = ["check", "--all-properties"]
        .into_iter()
        .chain(models.iter().map(String::as_str))
        .collect();
    assert_eq!(folder.run(&all).out.lines().count(), 1);
}

#[test]
fn a_failure_says_where_what_and_what_would_help() {
    let folder = Folder::new(&[
        ("a/W.toml", &mp("W", "allowed")),
        ("b/MP.toml", &mp("MP", "forbidden")),
    ]);
    let said = folder.run(&["check", "."]);
    let expected = "\
a/W.toml:13: expected allowed, got forbidden: W under ptx
  help: it would be allowed with `.relaxed` in place of `.release` of `st.release.gpu f, 1` (P0, line 8)
2 answers: 2 forbidden; 2 expectations, 1 NOT MET
";
    assert_eq!((said.out.as_str(), said.code), (expected, Some(1)));
    assert!(
        folder
            .run(&["check", "-v"])
            .out
            .contains("breaks the axiom Causality"),
        "the proof is told with -v"
    );
    let weak = mp("W", "forbidden").replace(".acquire", ".relaxed");
    folder.write("a/W.toml", &weak);
    let said = folder.run(&["check", "a"]);
    let head = "a/W.toml:13: expected forbidden, got allowed (P1:r0 = 1, P1:r1 = 0): W under ptx\n  help: it would be \
                forbidden with `.acquire` in place of `.relaxed` of ";
    assert!(said.out.starts_with(head), "{}", said.out);
    let line = "a/W.toml:13: expected forbidden, got allowed (P1:r0 = 1, P1:r1 = 0)";
    for format in ["junit", "sarif", "github", "tap"] {
        let said = folder.run(&["check", "a", "--format", format]);
        assert!(said.out.contains(line), "{format}: {}", said.out);
    }
    let page = folder.run(&["check", "--format", "html"]).out;
    let (failed, met) = (
        page.find(">W</th>").unwrap(),
        page.find(">MP</th>").unwrap(),
    );
    assert!(failed < met, "what fails comes first");
}

#[test]
fn a_requirement_holds_or_is_violated_by_values() {
    let required = mp("R", "required").replace("P1:r0 == 1 /\\ P1:r1 == 0", "P1:r0 == 0");
    let folder = Folder::new(&[("R.toml", &required)]);
    let said = folder.run(&["check"]);
    assert!(
        said.out
            .starts_with("R.toml:13: expected required, got violated, by P1:r0 = 1: R under ptx\n"),
        "{}",
        said.out
    );
    folder.write(
        "R.toml",
        &required
            .replace("P1:r0 == 0", "P1:r0 == 0 \\\\/ P1:r1 == 1")
            .replace("\\\\", "\\"),
    );
    let said = folder.run(&["check", "-v"]);
    assert!(
        said.out
            .starts_with("R  ptx  forall  always holds  as expected"),
        "{}",
        said.out
    );
}

#[test]
fn an_undefined_program_that_the_test_does_not_mention_is_told_and_may_be_denied() {
    let folder = Folder::new(&[("Racy.toml", &racy("reachability = \"allowed\""))]);
    let said = folder.run(&["check"]);
    assert_eq!(said.code, Some(0), "{}", said.out);
    assert!(
        said.out.starts_with(
            "Racy.toml:11: allowed, as expected; racy: the program is undefined (P0 line 6 with P1 line 9): Racy under cuda\n"
        ),
        "{}",
        said.out
    );
    assert!(
        said.out.ends_with("all met; 1 undefined program\n"),
        "{}",
        said.out
    );
    let denied = folder.run(&["check", "--deny", "undefined"]);
    assert_eq!(denied.code, Some(1));
    assert!(
        denied
            .out
            .contains(":11: expected defined, got undefined: racy"),
        "{}",
        denied.out
    );
    // Answers about termination count, too; each program counts once.
    folder.write(
        "Racy.toml",
        &racy("reachability = \"allowed\", liveness = { fair = \"terminates\" }"),
    );
    let said = folder.run(&["check"]);
    assert_eq!(
        said.out.matches("the program is undefined").count(),
        2,
        "{}",
        said.out
    );
    assert!(
        said.out.ends_with("all met; 1 undefined program\n"),
        "{}",
        said.out
    );
    folder.write("Racy.toml", &racy("liveness = { fair = \"terminates\" }"));
    assert_eq!(folder.run(&["check", "--deny", "undefined"]).code, Some(1));
    folder.write(
        "Racy.toml",
        &racy("reachability = \"allowed\", race = \"racy\""),
    );
    let said = folder.run(&["check", "--deny", "undefined"]);
    assert_eq!(
        (said.out.lines().count(), said.code),
        (1, Some(0)),
        "{}",
        said.out
    );
}

#[test]
fn a_race_comes_with_what_would_make_it_none() {
    let folder = Folder::new(&[("Racy.toml", &racy("race = \"race-free\""))]);
    let said = folder.run(&["check"]);
    let head = "Racy.toml:11: expected race-free, got racy (P0 line 6 with P1 line 9): Racy under cuda, race\n  help: it becomes race-free if ";
    assert!(
        said.out.starts_with(head) && said.code == Some(1),
        "{}",
        said.out
    );
}

#[test]
fn a_known_failure_is_told_and_one_that_passes_fails() {
    let known = |expected: &str| {
        mp("K", expected).replace("\" } #", "\", known = \"the model is newer\" } #")
    };
    let folder = Folder::new(&[("K.toml", &known("allowed"))]);
    let said = folder.run(&["check"]);
    let head = "K.toml:13: known failure: expected allowed, got forbidden: K under ptx\n  help: known: the model is newer\n";
    assert!(
        said.out.starts_with(head) && said.code == Some(0),
        "{}",
        said.out
    );
    assert!(said.out.ends_with("1 known failure\n"), "{}", said.out);
    assert_eq!(folder.run(&["check", "-q"]).out.lines().count(), 1);
    assert!(
        folder
            .run(&["check", "--format", "tap"])
            .out
            .contains("not ok 1 - K.toml: K under ptx: reachability # TODO")
    );
    assert!(
        folder
            .run(&["check", "--format", "junit"])
            .out
            .contains("skipped=\"1\" failures=\"0\"")
    );
    assert!(
        folder
            .run(&["check", "--format", "jsonl"])
            .out
            .contains("\"known\":\"the model is newer\"")
    );
    let (before, blessed) = (folder.read("K.toml"), folder.run(&["check", "--bless"]));
    assert_eq!(
        (folder.read("K.toml"), blessed.err.as_str()),
        (before, ""),
        "what is known stays"
    );
    folder.write("K.toml", &known("forbidden"));
    let said = folder.run(&["check"]);
    let head = "K.toml:13: expected a known failure (the model is newer), got every expectation met: K under ptx\n  help: take ";
    assert!(
        said.out.starts_with(head) && said.code == Some(1),
        "{}",
        said.out
    );
    // One failure among several expectations is enough.
    folder.write(
        "K.toml",
        &known("forbidden").replace("known =", "race = \"race-free\", known ="),
    );
    let said = folder.run(&["check"]);
    assert_eq!(said.code, Some(0), "{}", said.out);
    for (wrong, what) in [
        ("known = \" \"", "without a reason"),
        ("known = \"x\"", "of no expected answer"),
    ] {
        folder.write(
            "K.toml",
            &mp("K", "allowed").replace("reachability = \"allowed\"", wrong),
        );
        let said = folder.run(&["check"]);
        assert_eq!(said.code, Some(2));
        assert!(
            said.err.contains(what) && said.err.contains("K.toml:13:"),
            "{}",
            said.err
        );
    }
}

#[test]
fn tests_of_one_name_are_told_apart() {
    let files = [
        ("x/a.toml", &*mp("MP", "forbidden")),
        ("y/a.toml", &mp("MP", "allowed")),
        ("b.toml", &sb("SB")),
    ];
    let folder = Folder::new(&files);
    let rows = folder.run(&["check", ".", "-v"]).out;
    assert!(rows.contains("\nMP (x/a.toml)  ptx"), "{rows}");
    assert!(rows.starts_with("SB             ptx"), "{rows}");
    let paths = |arguments: &[&str]| -> Vec<String> {
        let said = folder.run(&[&["check", "--format", "jsonl"], arguments].concat());
        super::objects(&said.out)
            .iter()
            .map(|o| o["path"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(paths(&["x", "y"]), ["x/a.toml", "y/a.toml"]);
    assert_eq!(paths(&["x/a.toml", "y/a.toml"]), ["x/a.toml", "y/a.toml"]);
    assert_eq!(paths(&["x"]), ["x/a.toml"]);
    let compared = folder.run(&["compare", "x", "y", "--models", "ptx,sc"]);
    assert!(
        compared.out.contains("ptx and sc, 2 tests"),
        "{}",
        compared.out
    );
}

#[test]
fn lines_fold_between_words() {
    let folder = Folder::new(&[("W.toml", &mp("W", "allowed"))]);
    let whole = folder.run(&["check", "-v"]).out;
    let said = at_width(&folder, "60", &["check", "-v"]);
    assert!(
        said.out.lines().all(|line| line.chars().count() <= 60),
        "{}",
        said.out
    );
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(words(&said.out), words(&whole));
    // A report in a file has no width limit.
    at_width(
        &folder,
        "40",
        &["check", "-v", "--report", "human=out/deep/er/a.txt"],
    );
    assert_eq!(
        folder.read("out/deep/er/a.txt"),
        whole,
        "its folder is made"
    );
}

#[test]
fn blessing_lists_what_it_wrote() {
    let folder = Folder::new(&[("a/W.toml", &mp("W", "allowed"))]);
    let said = folder.run(&["check", "--bless"]);
    let expected = "blessed: a/W.toml:13: W under ptx, reachability: allowed becomes forbidden\nblessed: 1 expectation in 1 file\n";
    assert_eq!(said.err, expected);
}

#[test]
fn no_test_is_a_failure_unless_it_is_none() {
    let folder = Folder::new(&[("MP.toml", &mp("MP", "forbidden"))]);
    let run = |no_tests: &str| folder.run(&["check", "--filter", "name = X", no_tests]);
    assert_eq!(run("--no-tests=fail").code, Some(4));
    let pass = run("--no-tests=pass");
    assert_eq!((pass.code, pass.err.as_str()), (Some(0), ""));
}

#[test]
fn a_comparison_has_the_formats_and_codes_of_a_check() {
    let folder = Folder::new(&[("SB.toml", &sb("SB"))]);
    let compare = |more: &[&str]| folder.run(&[&["compare", "SB.toml"], more].concat());
    assert_eq!(compare(&[]).code, Some(0), "the difference is expected");
    assert_eq!(compare(&["--models", "ptx,ptx-v6.0"]).code, Some(0));
    for (format, part) in [
        ("junit", "<testcase name=\"SB: ptx and sc\""),
        ("tap", "ok 4 - SB.toml: SB: ptx and sc"),
        ("html", "<td>differ</td>"),
        ("sarif", "\"results\": []"),
        ("github", "fencepost: 2 answers"),
    ] {
        let said = compare(&["--models", "ptx,sc", "--format", format]);
        assert!(
            said.out.contains(part) && said.code == Some(0),
            "{format}: {}",
            said.out
        );
    }
    folder.write(
        "SB.toml",
        &sb("SB").replace(
            "sc = { reachability = \"forbidden\" }",
            "sc = { reachability = \"allowed\" }",
        ),
    );
    assert_eq!(
        compare(&[]).code,
        Some(1),
        "the difference is not the expected one"
    );
}
