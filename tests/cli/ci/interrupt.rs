//! SIGINT and SIGTERM: the run ends within a second, reports the decided answers, and leaves
//! complete files.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Folder, mp, objects};

/// A test with too many stores for any enumeration of their orders to end.
fn endless_for_enumeration() -> String {
    let mut text = "name = \"Endless\"\ncondition = 'P0:r0 == 0 /\\ P1:r0 == 0 /\\ P2:r0 == 0 /\\ P3:r0 == 0'\n\
                    memory = { x0 = 0, x1 = 0, x2 = 0, x3 = 0 }\n"
        .to_owned();
    for i in 0..4 {
        let next = |k: usize| (i + 1 + k) % 4;
        text += &format!(
            "[[thread]]\ncta = {i}\ncode = \"st.relaxed.gpu x{i}, 1; st.relaxed.gpu x{i}, 2; st.relaxed.gpu x{i}, 3; \
             fence.sc.gpu; ld.relaxed.gpu r0, x{}; ld.relaxed.gpu r1, x{}; ld.relaxed.gpu r2, x{}\"\n",
            next(0),
            next(1),
            next(2)
        );
    }
    text + "[expect]\nptx = { reachability = \"forbidden\" }\n"
}

/// Atomic additions, different ones in each thread, that keep a solver busy.
fn endless_for_the_solver() -> String {
    let mut text =
        "name = \"Endless\"\ncondition = 'P0:r4 == 20 /\\ P1:r4 == 20'\nmemory = { x = 0 }\n"
            .to_owned();
    for i in 0..4 {
        let add = |k: usize| format!("atom.relaxed.gpu.add.u32 r{k}, x, {}; ", 2 * i + 2);
        text += &format!(
            "[[thread]]\ncta = {i}\ncode = \"{}\"\n",
            (0..5).map(add).collect::<String>()
        );
    }
    text + "[expect]\nptx = { reachability = \"forbidden\" }\n"
}

fn interrupted(endless: &str, engine: &str, signal: &str, code: i32) {
    let folder = Folder::new(&[
        ("a.toml", &mp("First", "forbidden")),
        ("b.toml", endless),
        ("c.toml", endless),
    ]);
    folder.write("old.xml", "the report of the last run");
    let mut command = folder.with_cache(&[
        "check",
        "--engine",
        engine,
        "--timeout",
        "none",
        "--jobs",
        "2",
    ]);
    command.args([
        "--format",
        "jsonl",
        "--report",
        "junit=old.xml",
        "--report",
        "sarif=new.sarif",
    ]);
    command.args(["--report", "human=out.txt", "--report", "github=out.log"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    out.read_line(&mut text).unwrap();
    // Lets it get deep into the next ones.
    std::thread::sleep(Duration::from_millis(1500));
    assert!(
        child.try_wait().unwrap().is_none(),
        "the test is not endless any more"
    );
    let before = Instant::now();
    assert!(
        Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let status = child.wait().unwrap();
    let took = before.elapsed();
    out.read_to_string(&mut text).unwrap();
    assert_eq!(status.code(), Some(code));
    assert!(took < Duration::from_secs(1), "it took {took:?}");
    let lines = objects(&text);
    let told: Vec<_> = lines
        .iter()
        .map(|o| (o["test"].as_str().unwrap(), o["verdict"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("First", "forbidden"),
            ("Endless", "undecided"),
            ("Endless", "undecided")
        ]
    );
    assert!(
        lines[1..].iter().all(|o| o["reason"] == "interrupted"),
        "{text}"
    );
    let junit = folder.read("old.xml");
    assert!(
        junit.trim_end().ends_with("</testsuites>") && junit.contains("interrupted"),
        "{junit}"
    );
    serde_json::from_str::<serde_json::Value>(&folder.read("new.sarif")).unwrap();
    // For people, the missing answers take one line.
    for report in ["out.txt", "out.log"] {
        let text = folder.read(report);
        assert!(
            text.contains("interrupted: 2 of 3 answers are missing\n") && !text.contains("Endless"),
            "{text}"
        );
    }
    let names = fs::read_dir(folder.path(""))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap());
    assert!(names.into_iter().all(|name| !name.ends_with(".tmp")));
    let warm = folder.cached(&["check", "a.toml", "--engine", engine, "--timings"]);
    assert!(
        warm.err.contains("1 pairs from the cache"),
        "what was decided is kept: {}",
        warm.err
    );
}

/// A report of only the tests read so far would look complete.
#[test]
fn an_interrupt_of_reading_is_an_error_in_each_report() {
    let folder = Folder::new(&[("b.toml", &mp("Second", "forbidden"))]);
    let mut command = folder.command(&["check", "--jobs", "1", "-", "b.toml", "--format", "tap"]);
    command.args([
        "--report",
        "junit=out.xml",
        "--report",
        "sarif=out.sarif",
        "--report",
        "github=out.log",
    ]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert!(
        Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    std::thread::sleep(Duration::from_millis(100));
    // Now the first one exists, and the second one is not read any more.
    child
        .stdin
        .take()
        .unwrap()
        .write_all(mp("First", "forbidden").as_bytes())
        .unwrap();
    let said = super::Said::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{}", said.err);
    let told = "interrupted before all tests were read";
    assert!(
        said.err.contains(told) && said.out.contains("not ok"),
        "{}{}",
        said.err,
        said.out
    );
    for report in ["out.xml", "out.sarif", "out.log"] {
        assert!(
            folder.read(report).contains(told),
            "{}",
            folder.read(report)
        );
    }
    assert!(
        !folder.read("out.xml").contains("errors=\"0\""),
        "{}",
        folder.read("out.xml")
    );
}

#[test]
fn an_interrupt_ends_the_enumeration() {
    interrupted(&endless_for_enumeration(), "enumerate", "-INT", 130);
}

#[test]
fn a_termination_ends_the_enumeration() {
    interrupted(&endless_for_enumeration(), "enumerate", "-TERM", 143);
}

#[cfg(feature = "z3")]
#[test]
fn an_interrupt_ends_the_solver() {
    interrupted(&endless_for_the_solver(), "symbolic", "-INT", 130);
}

#[test]
fn an_interrupt_ends_the_sat_solver() {
    interrupted(&endless_for_the_solver(), "sat", "-INT", 130);
}

#[test]
fn all_engines_end() {
    interrupted(&endless_for_the_solver(), "both", "-TERM", 143);
}
