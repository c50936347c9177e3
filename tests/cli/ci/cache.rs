//! Cached verdicts: they print as before, never answer another query, and no damage to them changes
//! an answer.

use std::fs;
use std::path::PathBuf;

use super::{Folder, SPIN, mp, sb};

/// All entries of the cache, sorted.
fn entries(folder: &Folder) -> Vec<PathBuf> {
    fn walk(path: PathBuf, out: &mut Vec<PathBuf>) {
        match fs::read_dir(&path) {
            Ok(list) => list.for_each(|entry| walk(entry.unwrap().path(), out)),
            Err(_) => out.push(path),
        }
    }
    let mut found = Vec::new();
    if folder.cache().join("verdicts").exists() {
        walk(folder.cache().join("verdicts"), &mut found);
    }
    found.sort();
    found
}

/// The number of pairs whose answers came from the cache, by the line with the times.
fn hits(err: &str) -> usize {
    let line = err
        .lines()
        .find(|l| l.contains("from the cache"))
        .unwrap_or_else(|| panic!("no effort in {err}"));
    line.split("; ")
        .nth(1)
        .and_then(|part| part.split(' ').next())
        .unwrap()
        .parse()
        .unwrap()
}

fn suite() -> Folder {
    Folder::new(&[
        ("MP.toml", &mp("MP", "forbidden")),
        ("SB.toml", &sb("SB")),
        ("Wrong.toml", &mp("W", "allowed")),
    ])
}

#[test]
fn a_kept_verdict_prints_as_it_did_in_every_format() {
    let folder = suite();
    let uncached = folder.run(&["check"]);
    let cold = folder.cached(&["check"]);
    let warm = folder.cached(&["check"]);
    assert_eq!(hits(&folder.cached(&["check", "--timings"]).err), 4);
    assert_eq!((warm.err.as_str(), cold.err.as_str()), ("", ""));
    assert_eq!(
        (uncached.out.as_str(), uncached.code),
        (cold.out.as_str(), cold.code)
    );
    assert_eq!((cold.out.as_str(), cold.code), (warm.out.as_str(), Some(1)));
    for format in ["human", "json", "jsonl", "junit", "sarif", "github", "tap"] {
        let arguments = ["check", "--format", format];
        assert_eq!(
            folder.run(&arguments).out,
            folder.cached(&arguments).out,
            "{format}"
        );
    }
}

#[test]
fn another_question_is_asked_anew() {
    let folder = suite();
    let ask = |more: &[&str]| {
        hits(
            &folder
                .cached(&[&["check", "--timings", "SB.toml"], more].concat())
                .err,
        )
    };
    assert_eq!(ask(&[]), 0);
    assert_eq!(ask(&["--bound", "2"]), 0);
    assert_eq!(ask(&["--engine", "enumerate"]), 0);
    assert_eq!(ask(&["--all-properties", "--model", "sc"]), 0);
    assert_eq!(
        ask(&["--timeout", "7s", "--jobs", "1", "--format", "tap"]),
        2,
        "these change no answer"
    );
    folder.write(
        "SB.toml",
        &sb("SB").replace("st.relaxed.gpu x", "st.relaxed.cta x"),
    );
    assert_eq!(ask(&[]), 0, "another test");
}

#[test]
fn a_model_is_known_by_its_text_and_by_what_it_includes() {
    let folder = suite();
    let cat = "\"M\"\ninclude \"rules.cat\"\n";
    folder.write("m.cat", cat);
    folder.write(
        "rules.cat",
        "let fr = rf^-1 ; co\nacyclic po | rf | co | fr as everything\n",
    );
    let arguments = [
        "check",
        "--timings",
        "SB.toml",
        "--model",
        "m.cat",
        "--format",
        "jsonl",
    ];
    let (first, second) = (folder.cached(&arguments), folder.cached(&arguments));
    assert!(
        first.out.contains("\"forbidden\""),
        "{}{}",
        first.out,
        first.err
    );
    assert_eq!((hits(&first.err), hits(&second.err)), (0, 1));
    folder.write(
        "rules.cat",
        "let fr = rf^-1 ; co\nacyclic po-loc | rf | co | fr as everything\n",
    );
    let third = folder.cached(&arguments);
    assert_eq!(hits(&third.err), 0);
    assert!(third.out.contains("\"allowed\""), "{}", third.out);
}

#[test]
fn a_file_that_is_cut_is_a_warning_and_is_mended() {
    let folder = suite();
    let cold = folder.cached(&["check"]);
    let files = entries(&folder);
    assert_eq!(files.len(), 4);
    for file in &files[..2] {
        let bytes = fs::read(file).unwrap();
        fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
    }
    let cut = folder.cached(&["check", "--timings"]);
    assert_eq!(hits(&cut.err), 2);
    assert!(
        cut.err.contains("warning[damaged-cache]") && cut.err.contains("(and 1 more like it)"),
        "{}",
        cut.err
    );
    let plain = folder.cached(&["check"]);
    assert_eq!(
        (plain.out, plain.err, plain.code),
        (cold.out, cold.err, cold.code),
        "mended"
    );
}

#[test]
fn a_changed_verdict_is_noticed() {
    let folder = suite();
    folder.cached(&["check", "MP.toml"]);
    let file = entries(&folder).remove(0);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("Forbidden"), "{text}");
    fs::write(&file, text.replace("Forbidden", "Allowed")).unwrap();
    let said = folder.cached(&["check", "MP.toml"]);
    assert!(
        said.out.contains("forbidden") && said.err.contains("checksum"),
        "{}{}",
        said.out,
        said.err
    );
    assert_eq!(said.code, Some(0));
}

#[test]
fn an_entry_that_cannot_be_read_or_replaced_changes_no_answer() {
    let folder = suite();
    let cold = folder.cached(&["check"]);
    for file in entries(&folder) {
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
    }
    let said = folder.cached(&["check"]);
    assert_eq!((said.out, said.code), (cold.out, cold.code));
    assert!(
        said.err.contains("damaged-cache") && said.err.contains("unwritable-cache"),
        "{}",
        said.err
    );
}

#[test]
fn a_cache_that_cannot_be_made_is_a_warning() {
    let folder = suite();
    let uncached = folder.run(&["check", "MP.toml"]);
    fs::write(folder.cache(), "a file, where the folder should be").unwrap();
    let said = folder.cached(&["check", "MP.toml"]);
    assert_eq!((said.out, said.code), (uncached.out, Some(0)));
    assert!(
        said.err.contains("warning[unwritable-cache]") && said.err.contains("--no-cache"),
        "{}",
        said.err
    );
}

#[test]
fn what_is_undecided_is_not_kept() {
    let folder = Folder::new(&[("Spin.toml", SPIN)]);
    let said = folder.cached(&["check", "--timings"]);
    assert_eq!((said.code, hits(&said.err)), (Some(3), 0));
    assert!(entries(&folder).is_empty());
}

#[test]
fn one_flag_or_variable_turns_it_off() {
    let folder = suite();
    let said = folder.cached(&["check", "--no-cache", "--timings"]);
    assert!(said.err.contains("no cache"), "{}", said.err);
    folder
        .with_cache(&["check"])
        .env("FENCEPOST_NO_CACHE", "1")
        .output()
        .unwrap();
    assert!(!folder.cache().exists());
}

#[test]
fn several_processes_share_one_cache() {
    let names: Vec<String> = (0..20).map(|i| format!("T{i}")).collect();
    let texts: Vec<(String, String)> = names.iter().map(|n| (format!("{n}.toml"), sb(n))).collect();
    let folder = Folder::new(
        &texts
            .iter()
            .map(|(n, t)| (n.as_str(), t.as_str()))
            .collect::<Vec<_>>(),
    );
    let uncached = folder.run(&["check", "--format", "jsonl"]);
    let children: Vec<_> = (0..4)
        .map(|_| {
            let mut command = folder.with_cache(&["check", "--format", "jsonl"]);
            command
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let said = super::Said::from(child.wait_with_output().unwrap());
        assert_eq!(
            (said.out.as_str(), said.err.as_str(), said.code),
            (uncached.out.as_str(), "", Some(0))
        );
    }
    let warm = folder.cached(&["check", "--timings", "--format", "jsonl"]);
    assert_eq!((hits(&warm.err), entries(&folder).len()), (40, 40));
    assert_eq!(
        folder.cached(&["check", "--format", "jsonl"]).out,
        uncached.out
    );
}
