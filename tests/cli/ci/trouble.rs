//! Full disks, closed pipes, read-only folders: the verdicts stay right, and nothing panics.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use super::{Folder, Said, mp, sb};

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_spoils_one_report_and_nothing_else() {
    let folder = Folder::new(&[("MP.toml", &mp("MP", "forbidden"))]);
    let good = folder.run(&["check"]);
    for format in ["junit", "sarif", "github", "tap", "json", "jsonl", "human"] {
        let full = format!("{format}=/dev/full");
        let said = folder.run(&["check", "--report", &full, "--report", "tap=out.tap"]);
        assert_eq!(
            (said.out.as_str(), said.code),
            (good.out.as_str(), Some(2)),
            "{format}"
        );
        assert!(
            said.err.contains("cannot write `/dev/full`"),
            "{}",
            said.err
        );
        assert!(folder.read("out.tap").contains("ok 1"));
    }
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = folder
        .command(&["check", "--format", "junit"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write `standard output`"));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let texts: Vec<(String, String)> = (0..40)
        .map(|i| (format!("T{i}.toml"), sb(&format!("T{i}"))))
        .collect();
    let folder = Folder::new(
        &texts
            .iter()
            .map(|(n, t)| (n.as_str(), t.as_str()))
            .collect::<Vec<_>>(),
    );
    for format in ["human", "jsonl", "tap", "junit", "sarif", "github"] {
        let mut command = folder.command(&["check", "--format", format]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 4];
        let _ = child.stdout.as_mut().unwrap().read(&mut first);
        drop(child.stdout.take());
        let said = Said::from(child.wait_with_output().unwrap());
        assert_eq!((said.err.as_str(), said.code), ("", Some(0)), "{format}");
    }
}

#[test]
fn a_report_that_cannot_be_made_is_told_before_anything_is_decided() {
    let folder = Folder::new(&[("MP.toml", &mp("MP", "forbidden"))]);
    let said = folder.run(&["check", "--report", "junit=MP.toml/out.xml"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    assert!(
        said.err.contains("cannot write `MP.toml/out.xml`"),
        "{}",
        said.err
    );
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_read_only_is_a_warning_for_the_cache_and_an_error_for_reports() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new(&[("MP.toml", &mp("MP", "forbidden"))]);
    fs::create_dir(folder.cache()).unwrap();
    fs::create_dir(folder.path("out")).unwrap();
    let lock = |mode| {
        for path in [folder.cache(), folder.path("out")] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    lock(0o555);
    let may_write = fs::write(folder.path("out/probe"), "").is_ok();
    let (cached, report) = (
        folder.cached(&["check"]),
        folder.run(&["check", "--report", "tap=out/a.tap"]),
    );
    lock(0o755);
    assert_eq!(cached.code, Some(0), "{}", cached.err);
    // Root may write in any case.
    if !may_write {
        assert!(
            cached.err.contains("warning[unwritable-cache]"),
            "{}",
            cached.err
        );
        assert_eq!((report.code, report.out.as_str()), (Some(2), ""));
    }
}

#[test]
fn colours_follow_the_conventions() {
    let folder = Folder::new(&[("MP.toml", &mp("MP", "allowed"))]);
    let coloured = |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut command = folder.command(&[&["check"], arguments].concat());
        command.envs(variables.iter().copied());
        Said::from(command.output().unwrap()).out.contains('\u{1b}')
    };
    assert!(!coloured(&[], &[]), "a pipe is not a terminal");
    assert!(coloured(&[("CLICOLOR_FORCE", "1")], &[]));
    assert!(!coloured(
        &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")],
        &[]
    ));
    assert!(coloured(&[("NO_COLOR", "1")], &["--color", "always"]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1")], &["--color", "never"]));
    for format in ["junit", "sarif", "github", "tap", "jsonl"] {
        assert!(
            !coloured(&[("CLICOLOR_FORCE", "1")], &["--format", format]),
            "{format}"
        );
    }
}

#[test]
fn logs_stay_clean() {
    let folder = Folder::new(&[("MP.toml", &mp("MP", "forbidden")), ("SB.toml", &sb("SB"))]);
    let said = folder.run(&["check"]);
    assert_eq!((said.err.as_str(), said.code), ("", Some(0)));
    assert!(
        !said.out.contains(" ms") && !said.out.contains('\r'),
        "{}",
        said.out
    );
}
