//! `fencepost merge`: the parts of a run combine to the run, or an error says why not.

use super::{Folder, SPIN, mp, sb};

const PARTS: usize = 3;

/// A folder with the answers of a run, `whole.jsonl`, and of its parts, `1.jsonl` …
fn parted() -> Folder {
    let folder = Folder::new(&[
        ("t/a/MP.toml", &mp("MP", "forbidden")),
        ("t/a/Wrong.toml", &mp("Wrong", "allowed")),
        ("t/b/SB.toml", &sb("SB")),
        ("t/b/Spin.toml", SPIN),
    ]);
    let whole = folder.run(&["check", "t", "--all-properties", "--format", "jsonl"]);
    folder.write("whole.jsonl", &whole.out);
    for part in 1..=PARTS {
        let partition = format!("hash:{part}/{PARTS}");
        let said = folder.run(&[
            "check",
            "t",
            "--all-properties",
            "--format",
            "jsonl",
            "--partition",
            &partition,
        ]);
        folder.write(&format!("{part}.jsonl"), &said.out);
    }
    folder
}

#[test]
fn parts_are_the_whole_run_to_the_byte() {
    let folder = parted();
    let whole = folder.read("whole.jsonl");
    assert!(
        !whole.contains("\"part\":"),
        "a run that is whole has no parts"
    );
    for files in [
        ["1.jsonl", "2.jsonl", "3.jsonl"],
        ["3.jsonl", "1.jsonl", "2.jsonl"],
    ] {
        let said = folder.run(&[&["merge"], files.as_slice()].concat());
        assert_eq!(said.out, whole);
        // One expectation is unmet.
        assert_eq!(said.code, Some(1), "{}", said.err);
        assert!(said.err.contains("3 parts, 5 pairs"), "{}", said.err);
    }
}

#[test]
fn what_is_missing_or_there_twice_is_said() {
    let folder = parted();
    // Parts with an answer; the hash decides which ones.
    let full: Vec<usize> = (1..=PARTS)
        .filter(|part| !folder.read(&format!("{part}.jsonl")).is_empty())
        .collect();
    assert!(full.len() > 1, "{full:?}");
    let refused = |files: &[String], words: &[&str]| {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let said = folder.run(&[&["merge"], files.as_slice()].concat());
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(2), ""),
            "{files:?}: {}",
            said.err
        );
        for word in words {
            assert!(
                said.err.contains(word),
                "{files:?}: `{word}` is missing in:\n{}",
                said.err
            );
        }
    };
    let all: Vec<String> = (1..=PARTS).map(|part| format!("{part}.jsonl")).collect();
    for &part in &full {
        let name = format!("{part}.jsonl");
        let others: Vec<String> = all
            .iter()
            .filter(|other| **other != name)
            .cloned()
            .collect();
        // A part without answers says nothing, whether it is given or not.
        let silent = (1..=PARTS).filter(|one| *one == part || !full.contains(one));
        let silent: Vec<String> = silent.map(|one| one.to_string()).collect();
        refused(
            &others,
            &[
                "not the whole run",
                &format!("no answer of part {}", silent.join(", ")),
            ],
        );
        refused(
            &[all.clone(), vec![name.clone()]].concat(),
            &["occurs twice", &name],
        );
        let text = folder.read(&name);
        let first = text.lines().next().expect("an answer");
        if text.lines().count() > 1 {
            folder.write("cut.jsonl", &format!("{first}\n"));
            refused(
                &[others.clone(), vec!["cut.jsonl".into()]].concat(),
                &[&format!("part {part} of 3 has")],
            );
        }
        // Half a line, another run, an answer outside any part, and an answer in the wrong part.
        folder.write("half.jsonl", &first[..first.len() / 2]);
        refused(
            &["half.jsonl".into()],
            &["half.jsonl:1", "not an answer of a part of a run"],
        );
        let digest = first.split("\"whole\":\"").nth(1).expect("a digest");
        folder.write("other.jsonl", &text.replace(&digest[..8], "00000000"));
        refused(
            &[others.clone(), vec!["other.jsonl".into()]].concat(),
            &["are parts of different runs"],
        );
        folder.write(
            "moved.jsonl",
            &text.replace(&format!("\"number\":{part},"), "\"number\":9,"),
        );
        refused(
            &["moved.jsonl".into()],
            &["its numbers contradict each other"],
        );
        let next = part % PARTS + 1;
        folder.write(
            "moved.jsonl",
            &text.replace(
                &format!("\"number\":{part},"),
                &format!("\"number\":{next},"),
            ),
        );
        refused(
            &["moved.jsonl".into()],
            &[&format!("not in part {next} of 3")],
        );
    }
    refused(
        &["whole.jsonl".into()],
        &[
            "whole.jsonl:1",
            "missing field `part`",
            "--partition hash:M/N",
        ],
    );
    refused(&["none.jsonl".into()], &["`none.jsonl` does not exist"]);
    folder.write("empty.jsonl", "");
    refused(&["empty.jsonl".into()], &["contain no answers"]);
}

/// All answers with the number of a pair are about its test and model.
#[test]
fn a_pair_has_one_test_and_one_model() {
    let folder = Folder::new(&[("MP.toml", &mp("MP", "forbidden"))]);
    let arguments = [
        "check",
        "MP.toml",
        "--all-properties",
        "--format",
        "jsonl",
        "--partition",
        "hash:1/1",
    ];
    let text = folder.run(&arguments).out;
    folder.write("1.jsonl", &text);
    assert_eq!(folder.run(&["merge", "1.jsonl"]).code, Some(0));
    let (first, rest) = text.split_once('\n').unwrap();
    for (from, to) in [
        ("\"test\":\"MP\"", "\"test\":\"M\""),
        ("\"model\":\"ptx\"", "\"model\":\"sc\""),
        ("MP.toml", "M.toml"),
    ] {
        folder.write(
            "1.jsonl",
            &format!("{first}\n{}", rest.replacen(from, to, 1)),
        );
        let said = folder.run(&["merge", "1.jsonl"]);
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(2), ""),
            "{to}: {}",
            said.err
        );
        assert!(
            said.err
                .contains("the number of another pair, `MP` under `ptx`"),
            "{to}: {}",
            said.err
        );
    }
}

#[test]
fn parts_of_runs_that_differ_are_kept_apart() {
    let folder = parted();
    // A changed test or loop bound makes the other parts belong to another run.
    let again = |arguments: &[&str]| {
        for part in 1..=PARTS {
            let partition = format!("hash:{part}/{PARTS}");
            let check = [
                "check",
                "t",
                "--all-properties",
                "--format",
                "jsonl",
                "--partition",
                &partition,
            ];
            let said = folder.run(&[check.as_slice(), arguments].concat());
            folder.write(&format!("new-{part}.jsonl"), &said.out);
        }
        let mixed: Vec<String> = (1..=PARTS)
            .map(|part| {
                if part == PARTS {
                    format!("{part}.jsonl")
                } else {
                    format!("new-{part}.jsonl")
                }
            })
            .collect();
        let mixed: Vec<&str> = mixed.iter().map(String::as_str).collect();
        let said = folder.run(&[&["merge"], mixed.as_slice()].concat());
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(
            said.err.contains("are parts of different runs"),
            "{}",
            said.err
        );
    };
    again(&["--bound", "3"]);
    folder.write("t/b/SB.toml", &(sb("SB") + "\n# changed\n"));
    again(&[]);
}
