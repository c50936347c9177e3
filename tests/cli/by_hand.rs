//! Tests the commands for interactive work with the binary: `new`, `explain`, `completions`, `man`,
//! `check --watch`, and the messages for misspelt words.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use super::{Said, command, fencepost};

/// Exit code, standard output, standard error.
fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Said { code, out, err } = fencepost(folder, arguments);
    (code, out, err)
}

const DIALECTS: [&str; 4] = ["ptx", "cuda", "opencl", "c"];
const TEMPLATES: [&str; 7] = ["mp", "sb", "lb", "iriw", "cas", "barrier", "kernel"];

#[test]
fn every_template_passes_check_and_names_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    for dialect in DIALECTS {
        for template in TEMPLATES {
            let name = format!("{dialect}/{template}+new");
            let (code, out, err) = run(
                folder.path(),
                &["new", &name, "--dialect", dialect, "--template", template],
            );
            if dialect == "c" && ["barrier", "kernel"].contains(&template) {
                assert_eq!(code, Some(2), "{name}: {out}{err}");
                assert!(err.contains("cas"), "{err}");
                continue;
            }
            assert_eq!(code, Some(0), "{name}: {err}");
            let text = fs::read_to_string(folder.path().join(format!("{name}.toml"))).unwrap();
            assert!(
                text.starts_with("#:schema fencepost.schema.json\n"),
                "{text}"
            );
            assert!(
                text.contains(&format!("name = \"{template}+new\"")),
                "{text}"
            );
        }
    }
    let (code, out, err) = run(folder.path(), &["check", "."]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("all met"), "{out}");
}

#[test]
fn the_schema_is_written_once_and_found_in_folders_above() {
    let folder = tempfile::tempdir().unwrap();
    let read = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
    assert_eq!(run(folder.path(), &["new", "a"]).0, Some(0));
    assert_eq!(
        read("fencepost.schema.json"),
        run(folder.path(), &["schema"]).1
    );
    fs::write(folder.path().join("fencepost.schema.json"), "{}").unwrap();
    assert_eq!(
        run(folder.path(), &["new", "deep/er/b"]).1,
        "deep/er/b.toml\n"
    );
    assert!(read("deep/er/b.toml").starts_with("#:schema ../../fencepost.schema.json\n"));
    assert_eq!(read("fencepost.schema.json"), "{}");
}

#[test]
fn nothing_is_overwritten_and_odd_names_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine.toml"), "precious").unwrap();
    for name in ["mine", "mine.toml", "./mine"] {
        let (code, out, err) = run(folder.path(), &["new", name]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{name}");
        assert!(err.contains("exists"), "{err}");
    }
    assert_eq!(
        fs::read_to_string(folder.path().join("mine.toml")).unwrap(),
        "precious"
    );
    for name in ["..", "/", "a/..", ".hidden", "line\nbreak", "${x}"] {
        let (code, _, err) = run(folder.path(), &["new", name]);
        assert_eq!(code, Some(2), "{name:?}");
        assert!(err.contains("cannot be the name of a test"), "{err}");
    }
    // A name may contain a quote.
    assert_eq!(run(folder.path(), &["new", "a\"b\\c"]).0, Some(0));
    assert_eq!(run(folder.path(), &["check", "a\"b\\c.toml"]).0, Some(0));
}

#[test]
fn a_project_begins_with_files_that_pass() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, err) = run(folder.path(), &["init"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let files = [
        "fencepost.toml",
        "fencepost.config.schema.json",
        "fencepost.schema.json",
        "litmus/MP.toml",
    ];
    assert_eq!(out.lines().collect::<Vec<_>>(), files);
    let read = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
    assert!(read("litmus/MP.toml").starts_with("#:schema ../fencepost.schema.json\n"));
    assert_eq!(
        read("fencepost.config.schema.json"),
        run(folder.path(), &["schema", "--config"]).1
    );
    for arguments in [&["check"][..], &["check", "--profile", "ci"]] {
        let (code, out, err) = run(folder.path(), arguments);
        assert_eq!(code, Some(0), "{out}{err}");
        assert!(out.contains("1 expectation, all met"), "{out}");
    }
    assert!(folder.path().join("fencepost.xml").is_file());
}

#[test]
fn a_project_that_has_begun_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("fencepost.toml"), "bound = 3\n").unwrap();
    let (code, out, err) = run(folder.path(), &["init", "."]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("`fencepost.toml` exists"), "{err}");
    assert!(!folder.path().join("litmus").exists());
    // Other files stay, too.
    let (code, ..) = run(folder.path(), &["new", "a/litmus/MP"]);
    assert_eq!(code, Some(0));
    let before = fs::read_to_string(folder.path().join("a/litmus/MP.toml")).unwrap();
    let (code, out, _) = run(folder.path(), &["init", "a"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("a/fencepost.toml") && !out.contains("MP.toml"));
    let after = fs::read_to_string(folder.path().join("a/litmus/MP.toml")).unwrap();
    assert_eq!(before, after);
}

#[test]
fn an_axiom_is_explained_with_its_clause_and_decided_on_a_test() {
    let (code, out, err) = run(Path::new("."), &["explain", "Causality", "--model", "ptx"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    for part in [
        "irreflexive (rf | fr) ; causality as Causality",
        "PTX ISA 9.4, Memory Consistency Model, Axioms, Causality",
        "Example: MP+rel.gpu+acq.gpu",
        "ptx forbids it: without Causality it would be allowed.",
    ] {
        assert!(out.contains(part), "{part} is not in\n{out}");
    }
}

#[test]
fn a_relation_is_shown_in_an_execution() {
    let (code, out, _) = run(
        Path::new("."),
        &["explain", "release-acquire", "--model", "ptx"],
    );
    assert_eq!(code, Some(0));
    assert!(out.contains("let release-acquire = "), "{out}");
    assert!(out.contains("[W f = 1]  ->  P1: "), "{out}");
}

#[test]
fn terms_base_names_and_options_are_explained() {
    for (words, part) in [
        (&["explain", "Cumulativity"][..], "also publishes writes"),
        (&["explain", "release", "sequence"], "Example: RelSeq+rmw"),
        (&["explain", "vloc"], "same virtual address"),
        (&["explain", "failed-cas"], "Values: none, write"),
        (&["explain", "fr"], "every model"),
        (&["explain"], "morally strong"),
    ] {
        let (code, out, err) = run(Path::new("."), words);
        assert_eq!(code, Some(0), "{words:?}: {err}");
        assert!(out.contains(part), "{part} is not in\n{out}");
    }
}

#[test]
fn a_file_of_ones_own_is_explained_too() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("m.cat"),
        "\"Mine\"\n(* Why. *)\nlet com = rf | co\nacyclic com | po as Own\n",
    )
    .unwrap();
    let (code, out, err) = run(folder.path(), &["explain", "Own", "--model", "m.cat"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("acyclic com | po as Own"), "{out}");
}

#[test]
fn completions_and_man_pages_come_from_the_arguments() {
    for (shell, part) in [
        ("bash", "complete"),
        ("zsh", "#compdef"),
        ("fish", "complete"),
        ("powershell", "Register"),
    ] {
        let (code, out, _) = run(Path::new("."), &["completions", shell]);
        assert_eq!(code, Some(0));
        for word in [part, "outcomes", "explain"] {
            assert!(out.contains(word), "{shell}: {word}");
        }
    }
    let (code, page, _) = run(Path::new("."), &["man"]);
    assert_eq!(code, Some(0));
    assert!(
        page.contains(".TH fencepost 1") && page.contains("Exit codes"),
        "{page}"
    );
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), &["man", "-o", "pages"]).0, Some(0));
    for page in [
        "fencepost.1",
        "fencepost-check.1",
        "fencepost-new.1",
        "fencepost-explain.1",
    ] {
        assert!(folder.path().join("pages").join(page).is_file(), "{page}");
    }
}

#[test]
fn words_that_are_almost_right_are_told() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), &["new", "MP+rel"]).0, Some(0));
    let text = fs::read_to_string(folder.path().join("MP+rel.toml")).unwrap();
    let broken = |name: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        fs::write(folder.path().join(name), text.replacen(from, to, 1)).unwrap();
    };
    broken("key.toml", "[expect]", "[expcet]");
    broken("word.toml", "forbidden", "forbiden");
    broken(
        "axiom.toml",
        "\"forbidden\"",
        "\"forbidden\", axiom = \"Causalty\"",
    );
    broken("location.toml", "st.weak x", "st.weak xx");
    broken("register.toml", "P1:r1 == 0", "P1:r11 == 0");
    broken("model.toml", "ptx = ", "ptxx = ");
    broken("qualifier.toml", ".release", ".realease");
    broken("opcode.toml", "st.weak", "stt.weak");
    for (arguments, right) in [
        (&["chekc"][..], "check"),
        (&["check", "--modle", "ptx"], "--model"),
        (&["check", "--format", "jsnol"], "jsonl"),
        (&["check", "MP+rle.toml"], "MP+rel.toml"),
        (&["check", "MP+rel.toml", "--model", "ptxx"], "`ptx`"),
        (&["check", "MP+rel.toml", "--set", "dpe=value"], "`dep`"),
        (&["check", "MP+rel.toml", "--set", "dep=valeu"], "`value`"),
        (
            &["check", "MP+rel.toml", "--mapping", "cuda-pxt"],
            "`cuda-ptx`",
        ),
        (&["check", "MP+rel.toml", "--prelude", "totla"], "`total`"),
        (&["ask", "MP+rel.toml", "--outcome", "P1:r3 == 0"], "`r0`"),
        (&["ask", "MP+rel.toml", "--outcome", "flga == 0"], "`flag`"),
        (&["ask", "MP+rel.toml", "--outcome", "P3:r0 == 0"], "`P0`"),
        (
            &["run", "MP+rel.toml", "--schedule", "exhaustiv"],
            "exhaustive?",
        ),
        (&["run", "MP+rel.toml", "--early", "ful:2"], "full?"),
        (&["models", "ptx-v7.6"], "`ptx-v7.5`"),
        (&["compare", "MP+rel.toml", "--models", "ptx,sd"], "`sc`"),
        (&["explain", "causalty"], "`Causality`"),
        (&["explain", "cumulativty"], "`cumulativity`"),
        (&["new", "x", "--template", "mpp"], "mp"),
        (&["completions", "bsh"], "bash"),
        (&["check", "key.toml"], "`expect`"),
        (&["check", "word.toml"], "`forbidden`"),
        (&["check", "location.toml"], "`x`"),
        (&["check", "register.toml"], "`r1`"),
        (&["check", "model.toml"], "`ptx`"),
        (&["check", "qualifier.toml"], "`release`"),
        (&["check", "opcode.toml"], "`st`"),
    ] {
        let (code, _, err) = run(folder.path(), arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {err}");
        let told = err.lines().any(|l| {
            ["did you mean", "similar"].iter().any(|w| l.contains(w)) && l.contains(right)
        });
        assert!(told, "{arguments:?} is not told {right}:\n{err}");
    }
    let (_, out, _) = run(folder.path(), &["check", "axiom.toml"]);
    assert!(out.contains("did you mean Causality?"), "{out}");
}

#[test]
fn standard_input_cannot_be_watched() {
    let (code, _, err) = run(Path::new("."), &["check", "-", "--watch"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("cannot be watched"), "{err}");
}

/// A line of standard output, within a minute: the machine may be busy.
fn line(lines: &mpsc::Receiver<String>, part: &str) -> String {
    loop {
        let line = lines
            .recv_timeout(Duration::from_secs(60))
            .unwrap_or_else(|e| panic!("no line with {part}: {e}"));
        if line.contains(part) {
            return line;
        }
    }
}

#[test]
fn a_change_is_decided_again() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), &["new", "MP"]).0, Some(0));
    let path = folder.path().join("MP.toml");
    let text = fs::read_to_string(&path).unwrap();
    let mut child = command(folder.path(), &["check", "MP.toml", "--watch"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (sender, lines) = mpsc::channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    line(&lines, "all met");
    fs::write(&path, text.replace(".acquire", ".relaxed")).unwrap();
    line(&lines, "MP.toml:");
    line(&lines, "1 NOT MET");
    fs::write(&path, "no test").unwrap();
    line(&lines, "1 error");
    fs::write(&path, text).unwrap();
    line(&lines, "all met");
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
}
