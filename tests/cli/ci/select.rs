//! Filters, partitions, `--bless`, `--fail-fast` and `--rerun-failed`, alone and together.

use std::collections::BTreeSet;

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
