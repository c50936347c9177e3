//! `fencepost.toml`: found in parent folders, overridden by the command line, and refused if any
//! part is not understood.

use std::path::Path;

use super::{Folder, Said, mp, names, sb};

const FILE: &str = "\
models = [\"sc\"]
paths = [\"tests\"]
format = \"jsonl\"

[profile.ci]
models = [\"ptx\"]
reports = [\"junit=out.xml\"]
filter = \"tag = mp\"
";

fn project() -> Folder {
    Folder::new(&[
        ("fencepost.toml", FILE),
        ("tests/MP.toml", &mp("MP", "forbidden")),
        ("tests/SB.toml", &sb("SB")),
        ("tests/deep/er/X.toml", &mp("X", "forbidden")),
    ])
}

#[test]
fn it_is_found_upwards_and_its_paths_are_its_own() {
    let folder = project();
    let here = folder.run(&["check"]);
    assert_eq!(names(&here), ["MP", "SB", "X"]);
    assert!(here.out.contains("\"model\":\"sc\""), "{}", here.out);
    let below = Said::from(
        folder
            .command_in(Path::new("tests/deep/er"), &["check", "-v"])
            .output()
            .unwrap(),
    );
    assert_eq!(names(&below), ["MP", "SB", "X"]);
    assert!(
        below
            .err
            .starts_with("options from ../../../fencepost.toml\n"),
        "{}",
        below.err
    );
}

#[test]
fn a_profile_wins_over_the_file_and_the_command_line_over_both() {
    let folder = project();
    let ci = folder.run(&["check", "--profile", "ci"]);
    assert_eq!(names(&ci), ["MP", "X"]);
    assert!(ci.out.contains("\"model\":\"ptx\""), "{}", ci.out);
    assert!(folder.read("out.xml").contains(r#"tests="2""#));
    let mine = folder.run(&[
        "check",
        "--profile",
        "ci",
        "--model",
        "sc",
        "--filter",
        "tag = sb",
        "tests",
    ]);
    assert_eq!(names(&mine), ["SB"]);
    assert!(mine.out.contains("\"model\":\"sc\""), "{}", mine.out);
    let human = folder.run(&["check", "--format", "human", "tests/MP.toml"]);
    assert!(
        human.out.starts_with("MP  sc  exists  forbidden"),
        "{}",
        human.out
    );
    let none = folder.run(&["check", "--no-config", "-v", "tests/MP.toml"]);
    assert!(none.out.starts_with("MP  ptx"), "{}", none.out);
}

#[test]
fn other_commands_take_what_concerns_them() {
    let folder = project();
    let said = folder.run(&["ask", "tests/SB.toml", "--profile", "ci"]);
    assert!(
        said.out.starts_with("SB  ptx  exists  allowed"),
        "{}",
        said.out
    );
    assert!(!folder.path("out.xml").exists());
}

#[test]
fn mistakes_are_told_with_their_place_and_end_the_run() {
    let folder = project();
    folder.write("fencepost.toml", "models = [\"sc\"]\nbuond = 4\n");
    let said = folder.run(&["check"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    for word in [
        "error[unknown-key]",
        "fencepost.toml:2:1",
        "did you mean `bound`?",
    ] {
        assert!(said.err.contains(word), "{word}: {}", said.err);
    }
    assert_eq!(folder.run(&["check", "--no-config", "tests"]).code, Some(0));
    folder.write("fencepost.toml", "models = [\n");
    assert_eq!(folder.run(&["check"]).code, Some(2));
    folder.write(
        "fencepost.toml",
        "filter = \"nmae = x\"\npaths = [\"tests\"]\n",
    );
    let said = folder.run(&["check"]);
    assert!(
        said.err.contains("fencepost.toml: filter:1:1")
            && said.err.contains("did you mean `name`?"),
        "{}",
        said.err
    );
    folder.write("fencepost.toml", FILE);
    let said = folder.run(&["check", "--profile", "cii"]);
    assert!(
        said.code == Some(2) && said.err.contains("did you mean `ci`?"),
        "{}",
        said.err
    );
    std::fs::remove_file(folder.path("fencepost.toml")).unwrap();
    assert_eq!(
        folder.run(&["check", "--profile", "ci", "tests"]).code,
        Some(2)
    );
}
