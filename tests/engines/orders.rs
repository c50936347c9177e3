//! Random programs with many writes to one location, only some of them ordered by the model, or
//! with many fences. The circuit leaves out facts that follow from an order alone, and all engines
//! still agree.

use std::time::Duration;

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::parse;
use fencepost::verdict::Verdict;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use testkit::suite::{number, programs, shipped};

/// Two threads that write one location about nine times each, in different ways, and read it.
fn generate(seed: u64) -> String {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let rng = &mut rng;
    // If few writes are weak, or of a scope without the other thread, much of the order matters.
    let strong = rng.random_range(0.5..1.0);
    let apart = rng.random_bool(0.7);
    let mut next = 0;
    let mut text = String::new();
    let mut condition = Vec::new();
    for t in 0..2 {
        let mut code = String::new();
        let mut loads = 0;
        for i in 0..9 {
            let strength = match rng.random_bool(strong) {
                true => *["relaxed.gpu", "relaxed.gpu", "relaxed.cta"]
                    .choose(rng)
                    .expect("there are some"),
                false => "weak",
            };
            if loads < 2 && rng.random_range(0..9) < i {
                code += &format!("ld.{strength}.u32 r{loads}, [x]; ");
                condition.push(format!("P{t}:r{loads} == {}", rng.random_range(0..=20)));
                loads += 1;
            } else {
                next += 1;
                code += &match rng.random_range(0..12) {
                    0 => format!("atom.relaxed.gpu.exch.b32 s{i}, [x], {next}; "),
                    _ => format!("st.{strength}.u32 [x], {next}; "),
                };
            }
        }
        let cta = if apart { t } else { 0 };
        text += &format!("[[thread]]\ncta = {cta}\ncode = '''{code}'''\n");
    }
    condition.truncate(rng.random_range(1..=2));
    let condition = if condition.is_empty() {
        "x == 3".to_owned()
    } else {
        condition.join(" && ")
    };
    format!("name = \"seed-{seed}\"\ncondition = '{condition}'\nmemory = {{ x = 0 }}\n{text}")
}

#[test]
fn detours_along_an_order_take_no_gates() {
    compare(generate);
}

/// Compares all engines on programs of one kind.
fn compare(generate: fn(u64) -> String) {
    let model = shipped("ptx");
    let limits = Limits {
        timeout: Some(Duration::from_millis(500)),
        ..Limits::default()
    };
    let (count, first) = (programs(300), number("FENCEPOST_SEED", 1));
    let (mut reached, mut not, mut late) = (0, 0, 0);
    for seed in first..first + count {
        let text = generate(seed);
        let test = parse("orders.toml", text.as_bytes())
            .unwrap_or_else(|e| panic!("{e:?}\n{text}"))
            .remove(0);
        let mut said: Vec<(Verdict, Engine)> = Vec::new();
        for &engine in Engine::ALONE {
            let answer = Session::new(&test, &model, engine, limits, &[]).reachability(None, false);
            assert_eq!(answer.defect, None, "{text}");
            match answer.verdict {
                Verdict::Undecided(_) => late += 1,
                verdict => said.push((verdict, engine)),
            }
        }
        assert!(
            said.windows(2).all(|two| two[0].0 == two[1].0),
            "{said:?}\n{text}"
        );
        match said.first() {
            Some((Verdict::Allowed, _)) => reached += 1,
            Some(_) => not += 1,
            None => {}
        }
    }
    assert!(
        reached > count / 10 && not > count / 10 && late < count / 2,
        "{reached} reached, {not} not, {late} times no answer"
    );
}

/// Two or three threads with fences between their accesses. Most fences are sequentially
/// consistent, some are in a branch, and some have a different scope.
fn fences(seed: u64) -> String {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let rng = &mut rng;
    let threads = rng.random_range(2..=3);
    let (apart, wide) = (rng.random_bool(0.7), rng.random_range(0.5..1.0));
    let mut text = String::new();
    let mut condition = Vec::new();
    for t in 0..threads {
        let mut code = String::new();
        let mut loads = 0;
        for i in 0..11 - 2 * threads {
            let place = ["x", "y"].choose(rng).expect("there are some");
            let fence = match rng.random_bool(wide) {
                true => "fence.sc.gpu",
                false => *["fence.sc.cta", "fence.acq_rel.gpu", "fence.sc.sys"]
                    .choose(rng)
                    .expect("there are some"),
            };
            code += &match rng.random_range(0..10) {
                0..3 => format!(
                    "st.relaxed.gpu.u32 [{place}], {}; ",
                    rng.random_range(1..=2)
                ),
                3 => format!(
                    "st.release.gpu.u32 [{place}], {}; ",
                    rng.random_range(1..=2)
                ),
                4..7 if loads < 3 => {
                    loads += 1;
                    condition.push(format!(
                        "P{t}:r{} == {}",
                        loads - 1,
                        rng.random_range(0..=2)
                    ));
                    let order = if rng.random_bool(0.7) {
                        "relaxed"
                    } else {
                        "acquire"
                    };
                    format!("ld.{order}.gpu.u32 r{}, [{place}]; ", loads - 1)
                }
                7 if loads > 0 => format!(
                    "setp.eq.u32 p, r{}, 0; @p bra L{i}; {fence}; L{i}: ",
                    loads - 1
                ),
                _ => format!("{fence}; "),
            };
        }
        let cta = if apart { t } else { 0 };
        text += &format!("[[thread]]\ncta = {cta}\ncode = '''{code}'''\n");
    }
    condition.truncate(rng.random_range(2..=4));
    let condition = if condition.is_empty() {
        "x == 1".to_owned()
    } else {
        condition.join(" && ")
    };
    format!(
        "name = \"seed-{seed}\"\ncondition = '{condition}'\nmemory = {{ x = 0, y = 0 }}\n{text}"
    )
}

#[test]
fn among_fences_causality_is_their_order() {
    compare(fences);
}
