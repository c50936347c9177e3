//! Filters, partitions, `--bless`, `--fail-fast` and `--rerun-failed`, alone and together.

use std::collections::BTreeSet;
use std::fs;

use super::{Folder, SPIN, mp, names, objects, sb};

fn suite() -> Folder {
    Folder::new(&[
        ("a/MP.toml", &mp("MP", "forbidden")),
        ("a/Wrong.toml", &mp("Wrong", "allowed")),
        ("b/SB.toml", &sb("SB")),
        ("b/Spin.toml", SPIN),
    ])
}

#[test]
fn filters_choose_by_what_is_known_before_deciding() {
    let folder = suite();
    for (filter, expected) in [
        ("name = MP", &["MP"][..]),
        ("name ~ ^S", &["SB", "SB", "Spin"]),
        ("tag = mp and not name = MP", &["Wrong"]),
        ("model = sc", &["SB"]),
        ("expected = forbidden", &["MP", "SB", "Spin"]),
        ("expected != forbidden and model = ptx", &["Wrong", "SB"]),
        ("feature = loop or tag = sb and model = sc", &["SB", "Spin"]),
        ("path ~ b/*B", &["SB", "SB"]),
        (
            "dialect = ptx and property = reachability and name = 'SB'",
            &["SB", "SB"],
        ),
    ] {
        let said = folder.run(&["check", "--format", "jsonl", "--filter", filter]);
        assert_eq!(names(&said), expected, "{filter}: {}", said.err);
    }
    let nothing = folder.run(&["check", "--filter", "name = none-such"]);
    assert_eq!(nothing.code, Some(4));
    assert!(nothing.err.contains("no test matched"), "{}", nothing.err);
    for words in ["selected by `--filter`", "`--no-tests pass` accepts"] {
        assert!(nothing.err.contains(words), "{}", nothing.err);
    }
    // A name in place of a path.
    let word = folder.run(&["check", "Spin"]);
    assert_eq!(word.code, Some(2));
    assert!(word.err.contains("`--filter Spin`"), "{}", word.err);
    let file = folder.run(&["check", "Spin.toml"]);
    assert!(!file.err.contains("--filter"), "{}", file.err);
}

#[test]
fn a_filter_by_verdicts_hides_answers_and_changes_no_code() {
    let folder = suite();
    let said = folder.run(&[
        "check",
        "--format",
        "json",
        "--filter",
        "verdict = undecided",
    ]);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["answers"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&report["answers"][0]["test"], said.code),
        (&"Spin".into(), Some(1))
    );
    assert_eq!(
        (&report["summary"]["answers"], &report["summary"]["hidden"]),
        (&5.into(), &4.into())
    );
}

#[test]
fn a_filter_that_cannot_be_read_points_at_the_place() {
    let folder = suite();
    let said = folder.run(&["check", "--filter", "model = ptx and (nmae = MP"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    for word in [
        "error[filter]",
        "--filter:1:18",
        "^^^^",
        "did you mean `name`?",
    ] {
        assert!(said.err.contains(word), "{word}: {}", said.err);
    }
}

#[test]
fn parts_are_disjoint_and_together_everything() {
    let folder = suite();
    let key = |o: &serde_json::Value| format!("{} {} {}", o["path"], o["test"], o["model"]);
    let all: BTreeSet<_> = objects(&folder.run(&["check", "--format", "jsonl"]).out)
        .iter()
        .map(key)
        .collect();
    let mut together = BTreeSet::new();
    for part in 1..=3 {
        let said = folder.run(&[
            "check",
            "--format",
            "jsonl",
            "--partition",
            &format!("hash:{part}/3"),
        ]);
        for object in objects(&said.out) {
            assert!(together.insert(key(&object)), "twice: {object}");
        }
    }
    assert_eq!(together, all);
    for wrong in ["hash:4/3", "hash:0/3", "1/3", "hash:a/b"] {
        assert_eq!(
            folder.run(&["check", "--partition", wrong]).code,
            Some(2),
            "{wrong}"
        );
    }
}

#[test]
fn blessing_writes_what_was_decided_and_nothing_else() {
    let folder = suite();
    let (wrong, spin) = (folder.read("a/Wrong.toml"), folder.read("b/Spin.toml"));
    let said = folder.run(&["check", "--bless"]);
    assert_eq!(said.code, Some(3), "the rest is undecided: {}", said.err);
    assert!(
        said.err.contains("blessed: 1 expectation in 1 file"),
        "{}",
        said.err
    );
    assert_eq!(
        folder.read("a/Wrong.toml"),
        wrong.replace("\"allowed\"", "\"forbidden\"")
    );
    assert_eq!(folder.read("b/Spin.toml"), spin);
    let again = folder.run(&["check", "a", "--bless"]);
    assert_eq!((again.code, again.err.as_str()), (Some(0), ""));
}

#[test]
fn what_was_not_asked_is_not_blessed() {
    let folder = Folder::new(&[("a.toml", &mp("MP", "required"))]);
    let said = folder.run(&["check", "--bless"]);
    assert_eq!(said.code, Some(1));
    assert!(
        said.err.contains("warning[not-blessed]") && said.err.contains("this run did not ask"),
        "{}",
        said.err
    );
    assert_eq!(folder.read("a.toml"), mp("MP", "required"));
}

#[test]
fn instances_of_a_template_are_blessed_each_in_its_place() {
    let text = mp("${name}", "x").replace("st.release.gpu", "st.release.${s}");
    let (head, _) = text.split_once("[expect]").unwrap();
    let instance = |name: &str, scope: &str, expected: &str| {
        format!(
            "\n[[instance]]\nname = \"{name}\"\ns = \"{scope}\"\nexpect.ptx.reachability = \"{expected}\"\n"
        )
    };
    let with = |cta: &str, gpu: &str| {
        format!(
            "{head}{}{}",
            instance("MP-cta", "cta", cta),
            instance("MP-gpu", "gpu", gpu)
        )
    };
    let folder = Folder::new(&[("t.toml", &with("forbidden", "allowed"))]);
    let said = folder.run(&["check", "--bless", "--format", "jsonl"]);
    assert_eq!(folder.read("t.toml"), with("allowed", "forbidden"));
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert_eq!(folder.run(&["check"]).code, Some(0));
}

#[test]
fn the_first_failure_ends_the_run_if_asked() {
    let folder = suite();
    let said = folder.run(&["check", "--fail-fast", "--format", "jsonl"]);
    assert_eq!(
        (names(&said), said.code),
        (vec!["MP".to_owned(), "Wrong".to_owned()], Some(1))
    );
    let filtered = folder.run(&[
        "check",
        "--fail-fast",
        "--filter",
        "name != Wrong",
        "--format",
        "jsonl",
    ]);
    assert_eq!(names(&filtered).len(), 4);
}

#[test]
fn what_failed_is_run_again_until_it_does_not() {
    let folder = suite();
    let run = |more: &[&str]| folder.cached(&[&["check", "--format", "jsonl"], more].concat());
    let first = run(&["--rerun-failed"]);
    assert_eq!(names(&first).len(), 5);
    assert!(
        first.err.contains("no record of a last run"),
        "{}",
        first.err
    );
    assert_eq!(names(&run(&["--rerun-failed"])), ["Wrong", "Spin"]);
    assert_eq!(
        names(&run(&["--rerun-failed", "--filter", "tag = mp"])),
        ["Wrong"]
    );
    assert_eq!(
        names(&run(&[
            "--rerun-failed",
            "--partition",
            "hash:1/1",
            "--fail-fast"
        ])),
        ["Wrong"]
    );
    folder.write("a/Wrong.toml", &mp("Wrong", "forbidden"));
    assert_eq!(
        names(&run(&["--rerun-failed", "--filter", "tag = mp"])),
        ["Wrong"]
    );
    assert_eq!(
        names(&run(&["--rerun-failed"])),
        ["Spin"],
        "what was not asked stays, what is met goes"
    );
    folder.write("b/Spin.toml", &mp("Spin", "forbidden"));
    assert_eq!(names(&run(&["--rerun-failed"])), ["Spin"]);
    let all = run(&["--rerun-failed"]);
    assert_eq!(names(&all).len(), 5);
    assert!(
        all.err.contains("nothing failed in the last run"),
        "{}",
        all.err
    );
}

#[test]
fn a_word_alone_is_a_part_of_the_name() {
    let folder = suite();
    for (filter, expected) in [
        ("Spin", &["Spin"][..]),
        ("S and model = sc", &["SB"]),
        ("not S", &["MP", "Wrong"]),
        ("'^SB$'", &["SB", "SB"]),
    ] {
        let said = folder.run(&["check", "--format", "jsonl", "--filter", filter]);
        assert_eq!(names(&said), expected, "{filter}: {}", said.err);
    }
    assert_eq!(folder.run(&["check", "--filter", "gpu"]).code, Some(4));
}

#[test]
fn a_list_shows_the_questions_and_decides_nothing() {
    let folder = suite();
    let said = folder.run(&["check", "--list"]);
    let expected = "\
a/MP.toml: MP [ptx]: reachability
a/Wrong.toml: Wrong [ptx]: reachability
b/SB.toml: SB [ptx]: reachability
b/SB.toml: SB [sc]: reachability
b/Spin.toml: Spin [ptx]: reachability
4 tests in 4 files, 5 questions
";
    assert_eq!((said.out.as_str(), said.code), (expected, Some(0)));
    let said = folder.run(&[
        "check", "a", "--list", "--format", "jsonl", "--filter", "MP",
    ]);
    let expected = "{\"path\":\"a/MP.toml\",\"test\":\"MP\",\"model\":\"ptx\",\"properties\":[\"reachability\"]}\n";
    assert_eq!(said.out, expected);
    // A run asks no property.
    let said = folder.run(&["run", "a", "--list", "--filter", "MP"]);
    assert_eq!(said.out, "a/MP.toml: MP [ptx]\n1 test in 1 file\n");
    let none = folder.run(&["check", "--list", "--filter", "none-such"]);
    assert_eq!(none.code, Some(4));
    let said = folder.run(&["check", "--list", "--format", "tap"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("`--format human`"), "{}", said.err);
    folder.write("c/Broken.toml", "name = 1");
    assert_eq!(folder.run(&["check", "--list"]).code, Some(2));
}

/// A git command in a folder; `false`: it failed, or there is no git.
fn git(folder: &Folder, arguments: &[&str]) -> bool {
    let name = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
    std::process::Command::new("git")
        .current_dir(folder.path(""))
        .args(name)
        .args(arguments)
        .output()
        .is_ok_and(|output| output.status.success())
}

#[test]
fn only_changed_files_are_decided() {
    let folder = suite();
    // Above the folder there is no repository.
    let outside = folder.run(&["check", "--changed"]);
    assert_eq!(outside.code, Some(2));
    assert!(
        outside.err.contains("`--changed` needs git"),
        "{}",
        outside.err
    );
    if !git(&folder, &["init", "--quiet"]) {
        return;
    }
    assert!(git(&folder, &["add", "."]));
    assert!(git(&folder, &["commit", "--quiet", "-m", "one"]));
    let changed = |arguments: &[&str]| {
        let said = folder.run(&[&["check", "--format", "jsonl"], arguments].concat());
        (names(&said), said)
    };
    assert_eq!(changed(&["--changed"]).1.code, Some(4));
    folder.write("a/Wrong.toml", &mp("Wrong", "forbidden"));
    folder.write("new/New.toml", &mp("New", "forbidden"));
    assert_eq!(changed(&["--changed"]).0, ["Wrong", "New"]);
    assert_eq!(changed(&["--changed", "a"]).0, ["Wrong"]);
    assert!(git(&folder, &["add", "."]));
    assert!(git(&folder, &["commit", "--quiet", "-m", "two"]));
    assert_eq!(changed(&["--changed"]).1.code, Some(4));
    assert_eq!(changed(&["--changed=HEAD~1"]).0, ["Wrong", "New"]);
    let (_, said) = changed(&["--changed=none-such"]);
    assert_eq!(said.code, Some(2));
    // A file elsewhere with the same place below its folder is another file.
    folder.write("other/a/Wrong.toml", &mp("Other", "forbidden"));
    assert!(git(&folder, &["add", "."]));
    assert!(git(&folder, &["commit", "--quiet", "-m", "three"]));
    folder.write("a/Wrong.toml", &mp("Changed", "forbidden"));
    fs::create_dir(folder.path("real")).unwrap();
    fs::rename(folder.path("a"), folder.path("real/a")).unwrap();
    let real = folder.path("real").display().to_string();
    let arguments = ["check", "--format", "jsonl", "--changed", &real];
    let said = folder.command_in("other".as_ref(), &arguments).output();
    let said = crate::Said::from(said.unwrap());
    assert!(names(&said).contains(&"Changed".to_owned()), "{}", said.err);
    fs::rename(folder.path("real/a"), folder.path("a")).unwrap();
    fs::remove_dir_all(folder.path("other")).unwrap();
    // Any test may rest on a model.
    folder.write("models/own.cat", "\"own\"\nacyclic po | rf\n");
    let (kept, said) = changed(&["--changed"]);
    assert_eq!(kept.len(), 6);
    let reason = "`models/own.cat` changed: this run keeps the tests of all files";
    assert!(said.err.contains(reason), "{}", said.err);
}
