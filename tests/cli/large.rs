//! Programs that are too large for the engines: tests which facts the executor's runs show, and the
//! advice on further steps.

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use super::fencepost;

/// The sum of eleven threads has too many values to list, and is an address: the last thread writes
/// there, next to another thread.
fn many_values(first: &str) -> String {
    let mut text = String::from(
        "name = \"many\"\ncondition = 'P11:r0 == 0'\n[memory]\nc = { type = \"u32\" }\na = { type = \"u32\", size = 2048 }\n",
    );
    for t in 0..11 {
        let _ = write!(
            text,
            "[[thread]]\ncta = {t}\ncode = \"red.relaxed.gpu.add.u32 [c], {}\"\n",
            1 << t
        );
    }
    let _ = write!(
        text,
        "[[thread]]\ncta = 11\ncode = \"ld.relaxed.gpu.u32 r0, [c]; mul.wide.u32 rd0, r0, 4; mov.u64 rd1, a; \
         add.u64 rd2, rd1, rd0; st.weak.u32 [rd2], 1\"\n[[thread]]\ncta = 12\ncode = \"{first}\"\n[expect]\nptx = {{ race = \"racy\" }}\n"
    );
    text
}

fn asked(test: &str) -> (Value, String) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("test.toml"), test).expect("written");
    let said = |format| {
        fencepost(
            folder.path(),
            &["check", "test.toml", "--no-cache", "-v", "--format", format],
        )
    };
    let (line, human) = (said("jsonl"), said("human"));
    (
        serde_json::from_str(
            line.out
                .lines()
                .next()
                .unwrap_or_else(|| panic!("{}", line.err)),
        )
        .expect("JSON"),
        human.out,
    )
}

#[test]
fn a_race_in_a_run_that_the_model_knows_is_an_answer() {
    let (line, human) = asked(&many_values(&(0..200).fold(String::new(), |all, n| {
        format!("{all}st.weak.u32 [a+{}], 2; ", 4 * n * 10)
    })));
    assert_eq!(
        (&line["verdict"], &line["engine"]),
        (&"racy".into(), &"executor".into()),
        "{line} {human}"
    );
    assert!(
        human.contains("P11 line") && human.contains("a run of the executor has this race"),
        "{human}"
    );
}

/// From 32 threads on, a few runs come before the engines.
#[test]
fn runs_of_a_wide_launch_come_first() {
    let stores = (0..200).map(|n| format!("st.weak.u32 [a+{}], 2; ", 40 * n));
    let many = many_values(&stores.collect::<String>());
    for (more, first) in [(0, false), (24, true)] {
        let threads = (0..more).map(|t| {
            let cta = 20 + t;
            format!("[[thread]]\ncta = {cta}\ncode = \"ld.relaxed.gpu.u32 r0, [c]\"\n")
        });
        let threads = threads.collect::<String>() + "[expect]";
        let text = many.replace("[expect]", &threads);
        let (line, human) = asked(&text);
        assert_eq!(
            (&line["verdict"], &line["engine"]),
            (&"racy".into(), &"executor".into()),
            "{human}"
        );
        assert_eq!(!human.contains("the engines gave up"), first, "{human}");
    }
}

#[test]
fn where_runs_show_no_race_the_answer_stays_open_and_says_what_to_try() {
    let (line, human) = asked(&many_values("st.relaxed.gpu.u32 [c], 0"));
    assert_eq!(line["verdict"], "undecided", "{line}");
    for text in [
        "the executor found no race in 20 runs",
        "a smaller launch",
        "fencepost run test.toml --runs 1000",
    ] {
        assert!(human.contains(text), "{text}: {human}");
    }
}

/// Of a program that takes the engines too long, a run still shows the race: some of the time is
/// kept for that.
#[test]
fn runs_are_tried_before_time_is_up() {
    let mut test =
        String::from("name = \"slow\"\nmemory = { a = 0, b = 0, c = 0, d = 0, x = 0 }\n");
    for thread in 0..8 {
        let mut code: Vec<String> = (0..6)
            .map(|k| {
                let at = ["a", "b", "c", "d"][(thread + k) % 4];
                format!("atom.acq_rel.gpu.add.u32 r{k}, [{at}], {}", thread + 1)
            })
            .collect();
        match thread {
            0 => code.insert(0, "st.weak.u32 [x], 1".to_owned()),
            7 => code.push("ld.weak.u32 q, [x]".to_owned()),
            _ => {}
        }
        let code = code.join("; ");
        test += &format!("[[thread]]\ncta = {thread}\ncode = \"{code}\"\n");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.toml"), test).unwrap();
    let words = [
        "check",
        "t.toml",
        "--property",
        "race",
        "--model",
        "ptx",
        "--timeout",
        "8s",
    ];
    let said = fencepost(folder.path(), &words);
    assert!(said.out.contains("1 answer: 1 racy"), "{}", said.err);
}

/// The answer to one property of a test, and the remarks.
fn property(test: &str, property: &str) -> (Value, String) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("test.toml"), test).expect("written");
    let ask = ["check", "test.toml", "-v", "--property", property];
    let said = |format| fencepost(folder.path(), &[&ask[..], &["--format", format]].concat());
    let (line, human) = (said("jsonl"), said("human"));
    let line = line.out.lines().next().unwrap_or_default();
    (serde_json::from_str(line).expect("JSON"), human.out)
}

#[test]
fn a_run_that_hangs_is_an_answer() {
    let waits = |other: &str| {
        let more =
            format!("[[thread]]\ncta = 12\ncode = \"barrier.sync {other}\"\n[expect]\nptx = {{}}");
        many_values("barrier.sync 1").replace("[expect]\nptx = { race = \"racy\" }", &more)
    };
    let (line, human) = property(&waits("2"), "liveness:fair");
    assert_eq!(
        (&line["verdict"], &line["engine"]),
        (&"hangs".into(), &"executor".into()),
        "{line} {human}"
    );
    let why = "a run of the executor hangs: P12 waits at line";
    assert!(human.contains(why), "{human}");
    let (line, human) = property(&waits("1"), "liveness:fair");
    assert_eq!(line["verdict"], "undecided", "{line}");
    assert!(
        human.contains("the executor found no hang in 20 runs"),
        "{human}"
    );
}

#[test]
fn misuse_in_a_run_that_the_model_knows_is_an_answer() {
    let arrives = |before: &str| {
        let code = format!("{before}mbarrier.arrive.shared.b64 _, [b]");
        let object = "[memory]\nb = { type = \"mbarrier\", init = 2, space = \"shared\" }\n";
        many_values(&code).replace("[memory]\n", object)
    };
    let (line, human) = property(&arrives("mbarrier.inval.shared.b64 [b]; "), "undefined");
    assert_eq!(
        (&line["verdict"], &line["engine"]),
        (&"undefined".into(), &"executor".into()),
        "{line} {human}"
    );
    assert!(human.contains("the model confirms it"), "{human}");
    let (line, human) = property(&arrives(""), "undefined");
    assert_eq!(line["verdict"], "undecided", "{line}");
    let none = "the executor found no undefined behaviour in 20 runs";
    assert!(human.contains(none), "{human}");
}

/// A program with an instruction that the engines do not support at its place: a run shows its race
/// all the same, and its twin without one stays undecided, with a way on.
#[test]
fn runs_help_where_the_engines_do_not_support_a_program() {
    let text = |second: &str| {
        let code = |place: &str| {
            format!(
                "[[thread]]\ncta = 0\nwarp = 0\ncode = \"mov r2, 0; L: activemask.b32 r1; \
                 st.weak {place}, 1; add r2, r2, 1; blt r2, 2, L;\"\n"
            )
        };
        format!(
            "name = \"active\"\ncondition = 'x == 1'\n[memory]\nx = 0\ny = 0\n{}{}[expect]\n\
             ptx = {{ race = \"racy\" }}\n",
            code("x"),
            code(second)
        )
    };
    let (line, human) = asked(&text("x"));
    assert_eq!(
        (&line["verdict"], &line["engine"]),
        (&"racy".into(), &"executor".into())
    );
    assert!(
        human.contains("the engines gave up (not supported)"),
        "{human}"
    );
    let (line, human) = asked(&text("y"));
    assert_eq!(line["verdict"], "undecided");
    let way_on = "`fencepost run test.toml --runs 1000` searches more runs";
    assert!(
        human.contains(way_on) && !human.contains("smaller launch"),
        "{human}"
    );
}
