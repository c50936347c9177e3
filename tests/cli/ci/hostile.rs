//! Files that are no regular files, names that look like commands, closed streams: nothing hangs,
//! no command is executed, and no loss is silent.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{Folder, Said, mp};

fn pipe(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The result of a command, which may take at most a minute.
fn soon(mut command: Command) -> Said {
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{command:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Said::from(child.wait_with_output().unwrap())
}

#[test]
fn only_regular_files_are_read() {
    let folder = Folder::new(&[
        ("MP.toml", &mp("MP", "forbidden")),
        ("m.cat", "include \"pipe.cat\"\nacyclic po as A\n"),
    ]);
    pipe(&folder.path("tests/pipe.toml"));
    pipe(&folder.path("pipe.cat"));
    pipe(&folder.path("run.json"));
    for arguments in [
        &["check", "tests"][..],
        &["check", "tests/pipe.toml"],
        &["check", "MP.toml", "--model", "pipe.cat"],
        &["check", "MP.toml", "--model", "m.cat"],
        &["run", "MP.toml", "--schedule", "replay:run.json"],
        &["ask", "/dev/zero"],
        &["import", "tests"],
    ] {
        let said = soon(folder.command(arguments));
        assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.err);
        assert!(
            said.err.contains("only regular files are read"),
            "{arguments:?}: {}",
            said.err
        );
    }
    pipe(&folder.path("project/fencepost.toml"));
    let said = soon(folder.command_in(Path::new("project"), &["check", "../MP.toml"]));
    assert!(
        said.code == Some(2) && said.err.contains("only regular files are read"),
        "{}",
        said.err
    );
}

#[test]
fn a_cache_of_pipes_and_devices_is_a_warning() {
    let folder = Folder::new(&[("MP.toml", &mp("MP", "forbidden"))]);
    let good = folder.cached(&["check"]);
    let mut entries = vec![folder.cache().join("verdicts")];
    while entries.last().unwrap().is_dir() {
        let entry = fs::read_dir(entries.last().unwrap())
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        entries.push(entry);
    }
    let entry = entries.pop().unwrap();
    for odd in ["pipe", "/dev/zero"] {
        fs::remove_file(&entry).unwrap();
        if odd == "pipe" {
            pipe(&entry)
        } else {
            symlink(odd, &entry).unwrap()
        }
        let said = soon(folder.with_cache(&["check"]));
        assert_eq!((&said.out, said.code), (&good.out, Some(0)), "{odd}");
        assert!(
            said.err.contains("only regular files are read"),
            "{odd}: {}",
            said.err
        );
    }
}

/// SIGTERM ends a run.
fn ends_when_told_to(mut child: std::process::Child) {
    assert!(
        Command::new("kill")
            .args(["-TERM", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() && begin.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = child.try_wait().unwrap();
    let _ = child.kill();
    assert_eq!(ended.and_then(|status| status.code()), Some(143));
}

#[test]
fn somebody_who_waits_for_standard_input_can_be_stopped() {
    let folder = Folder::new(&[]);
    let mut command = folder.command(&["check", "-"]);
    let child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    ends_when_told_to(child);
}

#[test]
fn a_pipe_that_nobody_reads_keeps_no_run_that_is_to_end() {
    let folder = Folder::new(&[("MP.toml", &mp("MP", "forbidden"))]);
    pipe(&folder.path("report"));
    let mut child = folder
        .command(&["check", "MP.toml", "--report", "json=report"])
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert!(
        child.try_wait().unwrap().is_none(),
        "somebody reads the pipe"
    );
    ends_when_told_to(child);
}

#[test]
fn of_a_line_without_end_the_beginning_is_shown() {
    let folder = Folder::new(&[("part.jsonl", &"x".repeat(1 << 20))]);
    let said = folder.run(&["merge", "part.jsonl"]);
    assert_eq!(said.code, Some(2));
    assert!(
        said.err.len() < 10_000 && said.err.contains("this line is not an answer of a part"),
        "{}",
        said.err.len()
    );
}

#[test]
fn a_link_to_nothing_is_called_one() {
    let folder = Folder::new(&[]);
    symlink("gone", folder.path("link.toml")).unwrap();
    let said = folder.run(&["check", "link.toml"]);
    assert!(
        said.err
            .contains("`link.toml` is a link to `gone`, which does not exist"),
        "{}",
        said.err
    );
    assert!(!said.err.contains("did you mean"), "{}", said.err);
}

/// Whether no line is a command to a CI server: `::` at its beginning, or `##[` anywhere.
fn is_harmless(text: &str) -> bool {
    text.lines()
        .all(|line| !line.trim_start().starts_with("::") && !line.contains("##["))
}

#[test]
fn no_name_becomes_a_command() {
    let (name, path) = ("::error::x ##[error]y", "z\n::error::w\n##[group]v.toml");
    let folder = Folder::new(&[
        (path, &mp(name, "allowed")),
        ("::warning::.toml", &mp(name, "required")),
        ("a\n::error::b.toml", "name = \"::error::c\"\n::error::d\n"),
    ]);
    for format in ["human", "tap", "junit", "sarif", "gitlab", "markdown"] {
        for more in [
            &["check"][..],
            &["check", "-v"],
            &["check", "-q"],
            &["check", "--bless"],
        ] {
            let said = folder.run(
                &[
                    more,
                    &["--format", format, "--model", "ptx", "--all-properties"],
                ]
                .concat(),
            );
            assert!(is_harmless(&said.out), "{format}: {}", said.out);
            assert!(is_harmless(&said.err), "{format}: {}", said.err);
        }
    }
    let github = folder.run(&["check", "--format", "github"]);
    let commands = github
        .out
        .lines()
        .filter(|line| line.starts_with("::"))
        .count();
    assert_eq!(
        commands,
        github.out.matches("title=").count(),
        "{}",
        github.out
    );
    for arguments in [
        &["ask", "::warning::.toml"][..],
        &["outcomes", "::warning::.toml"],
        &["run", "::warning::.toml", "--runs", "10"],
        &["compare", "::warning::.toml", "--models", "ptx,sc"],
        &["check", "::warning::.toml", "--format", "\n::error::x"],
        &["check", "gone\n::error::x"],
        &["check", "::warning::.toml", "--model", "a\n::error::b.cat"],
    ] {
        for columns in ["20", "200"] {
            let said = Said::from(
                folder
                    .command(arguments)
                    .env("COLUMNS", columns)
                    .output()
                    .unwrap(),
            );
            assert!(
                is_harmless(&said.out) && is_harmless(&said.err),
                "{arguments:?}: {}{}",
                said.out,
                said.err
            );
        }
    }
}

#[test]
fn no_output_takes_the_place_of_an_input() {
    let model = "\"T\"\nacyclic po as A\n";
    let folder = Folder::new(&[("t/MP.toml", &mp("MP", "forbidden")), ("m.cat", model)]);
    symlink(folder.path("t/MP.toml"), folder.path("link")).unwrap();
    for arguments in [
        &["check", "t", "--report", "junit=t/MP.toml"][..],
        &["check", "t/MP.toml", "--report", "sarif=./t/../t/MP.toml"],
        &["ask", "t/MP.toml", "--report", "html=link"],
        &["check", "t", "--model", "m.cat", "--report", "tap=m.cat"],
        &[
            "compare",
            "t",
            "--models",
            "ptx,sc",
            "--report",
            "github=t/MP.toml",
        ],
        &["outcomes", "t/MP.toml", "--report", "jsonl=t/MP.toml"],
        &["run", "t/MP.toml", "--runs", "1", "--record", "t/MP.toml"],
        &[
            "check",
            "t",
            "--report",
            "junit=new",
            "--report",
            "sarif=./new",
        ],
    ] {
        let said = folder.run(arguments);
        assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.err);
        assert!(
            said.err.contains("was not overwritten"),
            "{arguments:?}: {}",
            said.err
        );
        assert_eq!(
            (folder.read("t/MP.toml"), folder.read("m.cat")),
            (mp("MP", "forbidden"), model.to_owned())
        );
    }
    assert!(!folder.path("new").exists());
}

#[test]
fn control_characters_of_names_are_shown_as_escapes() {
    let folder = Folder::new(&[("t/a\u{9b}31m\u{1b}[0m.toml", &mp("MP", "allowed"))]);
    for format in [
        "human", "json", "jsonl", "junit", "sarif", "github", "gitlab", "markdown", "tap", "html",
    ] {
        let said = folder.run(&["check", "t", "--format", format]);
        assert_eq!(said.code, Some(1), "{format}: {}", said.err);
        let raw = |text: &str| {
            text.chars()
                .any(|c| c.is_control() && c != '\n' && c != '\t')
        };
        assert!(
            !raw(&said.out) && !raw(&said.err),
            "{format}: {:?}",
            said.out
        );
    }
}

#[test]
fn what_cannot_be_written_is_told() {
    let folder = Folder::new(&[("MP.toml", &mp("MP", "forbidden"))]);
    let binary = env!("CARGO_BIN_EXE_fencepost");
    for arguments in [
        "check MP.toml",
        "outcomes MP.toml",
        "ask MP.toml",
        "models",
        "schema",
        "--help",
    ] {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("exec \"{binary}\" {arguments} >&-")])
            .current_dir(folder.path(""));
        let said = soon(shell);
        assert_eq!(said.code, Some(2), "{arguments}: {}", said.err);
        assert!(
            said.err
                .contains("cannot write `standard output`: it is closed"),
            "{arguments}: {}",
            said.err
        );
    }
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("exec \"{binary}\" check MP.toml >/dev/null")])
        .current_dir(folder.path(""));
    assert_eq!(soon(shell).code, Some(0));
}

#[test]
fn a_thousand_jobs_for_one_test_are_one() {
    let folder = Folder::new(&[("MP.toml", &mp("MP", "forbidden"))]);
    let begin = Instant::now();
    assert_eq!(folder.run(&["check", "--jobs", "1000"]).code, Some(0));
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn options_of_tests_are_those_of_models() {
    let with = |option: &str| format!("{}[options]\n{option}\n", mp("MP", "forbidden"));
    let folder = Folder::new(&[]);
    for (option, hint) in [
        ("dep = \"syntactik\"", "did you mean `syntactic`?"),
        ("depp = \"value\"", "did you mean `dep`?"),
        ("nonsense = \"1\"", "nonsense"),
        ("rmw = \"two\"", "pair, single"),
        ("rmw = 2", "rmw"),
    ] {
        folder.write("MP.toml", &with(option));
        for command in ["check", "ask", "run", "outcomes"] {
            let said = folder.run(&[command, "MP.toml"]);
            assert!(
                said.code == Some(2) && !said.out.contains("MP"),
                "{command} {option}: {}",
                said.out
            );
            assert!(
                said.err.contains(hint) && said.err.contains("MP.toml:15:"),
                "{option}: {}",
                said.err
            );
        }
    }
    folder.write("MP.toml", &with("rmw = \"pair\"\ndep = \"value\""));
    let said = folder.run(&["run", "MP.toml", "--runs", "100"]);
    assert_eq!(
        said.code,
        Some(0),
        "what is the default is run: {}{}",
        said.out,
        said.err
    );
}
