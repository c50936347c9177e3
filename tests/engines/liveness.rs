//! Checks liveness against two authorities that share nothing with the checker: a search for lassos
//! over interleavings, and the published verdicts of the CADP tests.
//!
//! - Under `sc`, for random programs with spin loops, exchanges and barriers, [`testkit::lasso`]
//!   searches the graph of all states. Every decided answer must agree, under every progress model,
//!   by all engines.
//! - The published PTX suite has the programs of the Vulkan CADP tests, with relaxed atomics of a
//!   scope that includes all threads. Only the Vulkan list has verdicts for all progress models.
//!   `FENCEPOST_SUITE` names the folder that holds both (`ptx/CADP`, `vulkan/verdicts.tsv`);
//!   without it that test does nothing.
//! - Queries that are `undecided` by definition, and the description of a hanging execution.
//!
//! `testkit::suite` sets the number of random programs, `FENCEPOST_SEED` the first seed,
//! `FENCEPOST_TIMEOUT_MS` the time for one query.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use fencepost::check::liveness::{Liveness, LivenessTask, ProgressModel};
use fencepost::check::{Engine, Limits};
use fencepost::litmus::{LitmusTest, parse, read_path};
use fencepost::model::Model;
use fencepost::verdict::hang::picture;
use fencepost::verdict::{Answer, Ending, Reason, Verdict};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use testkit::interleave::Stop;
use testkit::lasso::hangs;
use testkit::suite::{number, programs, shipped};

fn read(text: &str) -> LitmusTest {
    parse("t.toml", text.as_bytes())
        .unwrap_or_else(|e| panic!("{e:?}\n{text}"))
        .remove(0)
}

fn ask(test: &LitmusTest, model: &Model, progress: ProgressModel) -> Answer {
    let limits = Limits {
        bound: Some(4),
        timeout: Some(Duration::from_secs(60)),
    };
    Liveness::new(&LivenessTask::new(test, model), Engine::Both, limits, &[]).ask(progress)
}

/// A test from one line of code per thread, with the thread's CTA.
fn program(threads: &[(u32, &str)]) -> LitmusTest {
    let mut text = "name = \"T\"\n[memory]\nx = 0\ny = 0\n".to_string();
    for (cta, code) in threads {
        writeln!(text, "[[thread]]\ncta = {cta}\ncode = \"{code}\"").expect("a string");
    }
    read(&text)
}

/// The code of one random thread.
fn random_thread(rng: &mut Pcg64Mcg, names: &mut u32) -> String {
    let mut code: Vec<String> = Vec::new();
    for _ in 0..rng.random_range(1..=3) {
        let place = ["x", "y"][rng.random_range(0..2)];
        // Most writes write 1, and most loops wait for 1: otherwise nearly every program hangs.
        let value = i32::from(rng.random_range(0..5) > 0);
        let (test, tested) =
            [("beq", 0), ("beq", 0), ("bne", 1), ("beq", 1)][rng.random_range(0..4)];
        *names += 1;
        let l = format!("L{names}");
        code.push(match rng.random_range(0..18u32) {
            11.. => format!("st.relaxed.gpu {place}, {value}"),
            0..=3 => {
                format!("ld.relaxed.gpu r0, {place}; {test} r0, {tested}, {l}; st.relaxed.gpu x, {value}; {l}:")
            }
            4 | 5 => format!("{l}: ld.relaxed.gpu r0, {place}; {test} r0, {tested}, {l}"),
            6 => format!("{l}: atom.relaxed.gpu.exch r0, {place}, {value}; {test} r0, {tested}, {l}"),
            7 => format!("{l}: atom.relaxed.gpu.cas r0, {place}, {tested}, {value}; {test} r0, {tested}, {l}"),
            8 => format!("{l}: st.relaxed.gpu x, {value}; ld.relaxed.gpu r0, y; {test} r0, {tested}, {l}"),
            9 => "bar.sync 0".to_string(),
            10 if rng.random_bool(0.5) => "bar.sync 1, 2".to_string(),
            10 => format!("{l}: bar.sync 0; ld.relaxed.gpu r0, {place}; {test} r0, {tested}, {l}"),
        });
    }
    code.join("; ")
}

/// The code of two lanes of a warp: they exchange values, inside and outside loops, and diverge at
/// times.
fn random_warp(rng: &mut Pcg64Mcg, names: &mut u32) -> String {
    let mut code = vec!["setp.eq.u32 first, lane, 0".to_string()];
    for _ in 0..rng.random_range(1..=3) {
        let place = ["x", "y"][rng.random_range(0..2)];
        let (value, tested) = (
            i32::from(rng.random_range(0..5) > 0),
            i32::from(rng.random_bool(0.2)),
        );
        let lane = ["", "@first ", "@!first "][rng.random_range(0..3)];
        let vote = ["any", "all"][rng.random_range(0..2)];
        let poll = format!("ld.relaxed.gpu r0, {place}; setp.eq.u32 p, r0, {tested}");
        *names += 1;
        let l = format!("L{names}");
        code.push(match rng.random_range(0..17u32) {
            11.. => format!("{lane}st.relaxed.gpu {place}, {value}"),
            0 | 1 => format!("{l}: {poll}; vote.sync.{vote}.pred q, p, -1; @q bra {l}"),
            2 => format!("{l}: {poll}; @p bra {l}; vote.sync.{vote}.pred q, p, -1"),
            3 => format!("{poll}; shfl.sync.bfly.b32 r0, r0, 1, 31, -1; {lane}st.relaxed.gpu x, r0"),
            4 => format!("{poll}; bar.red.popc.u32 r1, 0, p; {l}: ld.relaxed.gpu r0, y; beq r0, r1, {l}"),
            5 => format!("{l}: st.relaxed.gpu x, {value}; {poll}; bar.red.or.pred q, 0, p; @q bra {l}"),
            6..=8 => {
                let other = ["@first", "@!first"][rng.random_range(0..2)];
                format!("vote.sync.{vote}.pred q, first, -1; {other} bra {l}; M{l}: {poll}; @p bra M{l}; {l}:")
            }
            9 => format!("{poll}; @p bra {l}; vote.sync.{vote}.pred q, p, -1; {l}:"),
            _ => format!("{lane}bra {l}; M{l}: {poll}; @p bra M{l}; {l}: vote.sync.{vote}.pred q, first, -1"),
        });
    }
    code.join("; ")
}

#[test]
fn lassos_of_random_programs() {
    lassos(60, 2, |rng, names| {
        let threads = (0..rng.random_range(2..=3))
            .map(|_| (rng.random_range(0..2), random_thread(rng, names)));
        let threads: Vec<(u32, String)> = threads.collect();
        let lines: Vec<(u32, &str)> = threads
            .iter()
            .map(|(cta, code)| (*cta, code.as_str()))
            .collect();
        program(&lines)
    });
}

#[test]
fn lassos_of_lanes() {
    lassos(60, 4, |rng, names| {
        let (warp, other) = (random_warp(rng, names), random_thread(rng, names));
        let mut text = "name = \"T\"\n[memory]\nx = 0\ny = 0\n".to_string();
        for lane in 0..2 {
            writeln!(
                text,
                "[[thread]]\ncta = 0\nwarp = 0\nregs = {{ lane = {lane} }}\ncode = \"{warp}\""
            )
            .expect("a string");
        }
        if rng.random_bool(0.8) {
            let cta = rng.random_range(0..2);
            writeln!(
                text,
                "[[thread]]\ncta = {cta}\nwarp = 1\ncode = \"{other}\""
            )
            .expect("a string");
        }
        read(&text)
    });
}

/// Makes programs, and compares both answers. At least one in `decided` answers is decided.
fn lassos(count: u64, decided: u64, mut make: impl FnMut(&mut Pcg64Mcg, &mut u32) -> LitmusTest) {
    let sc = shipped("sc");
    let (count, first) = (programs(count), number("FENCEPOST_SEED", 1));
    let timeout = Some(Duration::from_millis(number("FENCEPOST_TIMEOUT_MS", 2_000)));
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for seed in first..first + count {
        let test = make(&mut Pcg64Mcg::seed_from_u64(seed), &mut 0);
        let setting = LivenessTask::new(&test, &sc);
        let mut liveness = Liveness::new(
            &setting,
            Engine::Both,
            Limits {
                bound: Some(4),
                timeout,
            },
            &[],
        );
        for progress in ProgressModel::ALL {
            let expected = match hangs(&test, progress.name()) {
                Ok(hangs) => hangs,
                Err(
                    stop @ (Stop::TooManyStates
                    | Stop::Unsupported("values of lanes that have ended")),
                ) => {
                    *seen.entry(format!("{stop:?}")).or_default() += 1;
                    continue;
                }
                Err(stop) => panic!("seed {seed}: {stop:?}\n{}", test.file.text),
            };
            let answer = liveness.ask(progress);
            assert_eq!(
                answer.defect, None,
                "seed {seed}, {progress}\n{}",
                test.file.text
            );
            let reason = answer.verdict.reason().map(Reason::kind);
            *seen
                .entry(reason.clone().unwrap_or(answer.verdict.word().to_owned()))
                .or_default() += 1;
            let truth = if expected {
                Verdict::Hangs
            } else {
                Verdict::Terminates
            };
            assert!(
                reason.is_some() || answer.verdict == truth,
                "seed {seed}, {progress}: {} where interleavings say {}\n{}",
                answer.verdict.word(),
                truth.word(),
                test.file.text
            );
        }
    }
    println!("{count} programs: {seen:?}");
    let answers: u64 = ["hangs", "terminates"]
        .iter()
        .map(|w| seen.get(*w).copied().unwrap_or(0))
        .sum();
    assert!(
        answers * decided > count * ProgressModel::ALL.len() as u64,
        "too few are decided: {seen:?}"
    );
}

/// A published test whose PTX form is a different program from its Vulkan form. Where the Vulkan
/// form goes back to wait for the flag, the PTX form goes on. `litmus/liveness/handshake.toml` has
/// both.
const ANOTHER_PROGRAM: &str = "CADP/2_threads_4_instructions/84_simple.litmus";

#[test]
fn published_verdicts_of_cadp_tests() {
    let Some(suite) = std::env::var_os("FENCEPOST_SUITE") else {
        return;
    };
    let suite = Path::new(&suite);
    let Ok(list) = std::fs::read_to_string(suite.join("vulkan/verdicts.tsv")) else {
        return;
    };
    let mut published: BTreeMap<&str, Vec<(ProgressModel, &str)>> = BTreeMap::new();
    for line in list.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let progress = cells[2]
            .strip_prefix("liveness:")
            .and_then(ProgressModel::from_name);
        if let (Some(progress), true) = (progress, cells[0].starts_with("CADP/")) {
            published
                .entry(cells[0])
                .or_default()
                .push((progress, cells[3]));
        }
    }
    let ptx = shipped("ptx-v7.5");
    let mut counts: BTreeMap<(String, &str), u32> = BTreeMap::new();
    let mut different = Vec::new();
    for (path, rows) in published {
        let tests = read_path(&suite.join("ptx").join(path)).expect("a test of the suite");
        let setting = LivenessTask::new(&tests[0], &ptx);
        let mut liveness = Liveness::new(&setting, Engine::Auto, Limits::default(), &[]);
        for (progress, expected) in rows {
            let answer = liveness.ask(progress);
            assert_eq!(answer.defect, None, "{path}, {progress}");
            let how = match answer.verdict.word() {
                word if word == expected => "agree",
                "undecided" => "undecided",
                word => {
                    different.push((path, progress.name(), word));
                    "differ"
                }
            };
            *counts.entry((progress.to_string(), how)).or_default() += 1;
        }
    }
    println!("{counts:#?}");
    let known =
        ["fair", "hsa", "hsa-obe", "lobe"].map(|progress| (ANOTHER_PROGRAM, progress, "hangs"));
    assert_eq!(different, known, "rows that differ");
}

#[test]
fn what_no_bound_decides_is_undecided() {
    let ptx = shipped("ptx");
    let published = shipped("ptx-v7.5");
    let exchanger = "L: atom.relaxed.gpu.exch r0, x, 1; bne r0, 2, L";
    let lock = "L: atom.relaxed.gpu.cas r0, x, 0, 1; bne r0, 0, L";
    // An exchange that repeats eventually meets one of infinitely many writes.
    let meets = "M: st.relaxed.gpu x, 1; ld.relaxed.gpu r0, y; beq r0, 0, M";
    let exchanging = "L: atom.relaxed.gpu.exch r0, x, 0; bne r0, 1, L; st.relaxed.gpu y, 1";
    let cases: [(&str, &Model, LitmusTest, &str); 7] = [
        // Infinitely many writes do not all come before another one: the exchanger eventually meets
        // the 2.
        (
            "fair coherence",
            &ptx,
            program(&[(0, exchanger), (1, "st.relaxed.gpu x, 2")]),
            "terminates",
        ),
        (
            "exchanges among writes",
            &ptx,
            program(&[(0, exchanging), (1, meets)]),
            "undecided",
        ),
        (
            "no other write",
            &ptx,
            program(&[(0, exchanger), (1, "st.relaxed.gpu y, 2")]),
            "hangs",
        ),
        // A failed compare-and-swap that writes the old value back loops with effect.
        (
            "failed CAS without write",
            &ptx,
            program(&[(0, "st.relaxed.gpu x, 1; st.relaxed.gpu x, 0"), (1, lock)]),
            "terminates",
        ),
        (
            "failed CAS with write",
            &published,
            program(&[(0, "st.relaxed.gpu x, 1; st.relaxed.gpu x, 0"), (1, lock)]),
            "undecided",
        ),
        // A flag ends the loop at any time: a loop with effect may be cut first.
        (
            "repeated writes until told",
            &ptx,
            program(&[
                (
                    0,
                    "L: st.relaxed.gpu x, 1; ld.relaxed.gpu r0, y; beq r0, 0, L",
                ),
                (
                    1,
                    "M: ld.relaxed.gpu r0, x; beq r0, 0, M; st.relaxed.gpu y, 1",
                ),
            ]),
            "undecided",
        ),
        (
            "never told",
            &ptx,
            program(&[
                (
                    0,
                    "L: st.relaxed.gpu x, 1; ld.relaxed.gpu r0, y; beq r0, 0, L",
                ),
                (
                    1,
                    "M: ld.relaxed.gpu r0, x; beq r0, 0, M; st.relaxed.gpu y, 0",
                ),
            ]),
            "hangs",
        ),
    ];
    for (what, model, test, expected) in cases {
        let answer = ask(&test, model, ProgressModel::Fair);
        assert_eq!(answer.defect, None, "{what}");
        assert_eq!(answer.verdict.word(), expected, "{what}");
        if expected == "undecided" {
            assert!(
                matches!(
                    answer.verdict.reason(),
                    Some(Reason::LoopBound { bound: 4, .. })
                ),
                "{what}"
            );
            assert_eq!(answer.bound, Some(4), "{what}");
        }
    }
}

#[test]
fn a_hang_is_explained() {
    let ptx = shipped("ptx");
    let ends = |test: &LitmusTest, progress| {
        let answer = ask(test, &ptx, progress);
        assert_eq!((answer.defect, answer.verdict), (None, Verdict::Hangs));
        answer.witness.expect("a hang has a witness").ends
    };
    let test = program(&[
        (0, "L: ld.relaxed.gpu r0, x; beq r0, 0, L"),
        (1, "st.relaxed.gpu x, 1"),
        (2, "bar.sync 0, 2"),
        (2, "M: ld.relaxed.gpu r0, x; beq r0, 0, M; bar.sync 0, 2"),
    ]);
    let found = ends(&test, ProgressModel::Obe);
    let poller = found
        .iter()
        .find(|e| e.ending == Ending::Looping)
        .expect("someone polls");
    assert_eq!(poller.polls, [("x".to_string(), "0".to_string())]);
    assert!(
        poller.served && poller.why.ends_with("reading x = 0"),
        "{poller:?}"
    );
    let stopped = found
        .iter()
        .find(|e| e.thread == "P1")
        .expect("P1 is there");
    assert_eq!((stopped.ending, stopped.served), (Ending::Stopped, false));
    assert!(
        stopped
            .why
            .contains("obe need not run threads or groups that have not started"),
        "{stopped:?}"
    );

    let test = program(&[
        (0, "bar.sync 0, 2"),
        (0, "ld.relaxed.gpu r0, x; bne r0, 0, E; bar.sync 1, 2; E:"),
    ]);
    let found = ends(&test, ProgressModel::Fair);
    assert_eq!(
        found.iter().map(|e| e.ending).collect::<Vec<_>>(),
        [Ending::Blocked, Ending::Blocked]
    );
    assert_eq!(
        (found[0].line.number, found[0].text.as_str()),
        (7, "bar.sync 0, 2")
    );

    let test = program(&[
        (0, "bar.sync 0"),
        (0, "L: ld.relaxed.gpu r0, x; beq r0, 0, L; bar.sync 0"),
    ]);
    let found = ends(&test, ProgressModel::Fair);
    assert_eq!(
        (found[0].waits_for.as_slice(), found[1].ending),
        (&["P1".to_string()][..], Ending::Looping)
    );

    // Each thread waits for a write that the other makes after its wait.
    let test = program(&[
        (
            0,
            "L: ld.relaxed.gpu r0, x; bne r0, 1, L; st.relaxed.gpu y, 1",
        ),
        (
            1,
            "M: ld.relaxed.gpu r0, y; beq r0, 0, M; st.relaxed.gpu x, 1",
        ),
    ]);
    let (circle, lines) = picture(&ends(&test, ProgressModel::Fair));
    let told = "P0 line 7 waits for x == 1 -> only P1 line 10 writes it -> \
                P1 line 10 waits for y != 0 -> only P0 line 7 writes it -> P0";
    assert_eq!((circle, lines), (true, vec![told.to_owned()]));

    let test = program(&[
        (0, "st.relaxed.gpu x, 1; st.relaxed.gpu x, 2"),
        (1, "L: ld.relaxed.gpu r0, x; bne r0, 1, L"),
    ]);
    let (circle, lines) = picture(&ends(&test, ProgressModel::Fair));
    let told = "P1 line 10 waits for x == 1 (P0 line 7 wrote it, and is not seen) -> no thread \
        writes it any more";
    assert_eq!((circle, lines), (false, vec![told.to_owned()]));

    let test = program(&[(0, "L: atom.relaxed.gpu.exch r0, x, 1; bne r0, 2, L")]);
    let found = ends(&test, ProgressModel::Fair);
    assert_eq!((found[0].period, found[0].line.number), (Some(1), 7));
}
