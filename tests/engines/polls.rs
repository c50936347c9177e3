//! Random programs with counted polls: the count does not change outcomes except through the code
//! that it selects. If the condition observes the count, every poll is there, and the outcomes
//! without the count are the same.

use std::collections::BTreeSet;
use std::time::Duration;

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::parse;
use fencepost::skeleton::Skeleton;
use fencepost::verdict::State;
use program::options::OptionValues;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use testkit::suite::{number, programs, shipped};

/// A program whose first thread polls, with the count among the observables or without it.
fn generate(seed: u64) -> [String; 2] {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let rng = &mut rng;
    let one =
        |rng: &mut Pcg64Mcg, words: &[&'static str]| *words.choose(rng).expect("there are some");
    let order = |rng: &mut Pcg64Mcg| one(rng, &["relaxed.gpu", "relaxed.cta", "acquire.gpu"]);
    let poll = match rng.random_range(0..4) {
        0 => format!("atom.{}.add.u32 r0, [x], 0;", order(rng)),
        1 => "ld.weak.u32 r0, [x];".to_owned(),
        _ => format!("ld.{}.u32 r0, [x];", order(rng)),
    };
    let (compare, until, most) = (
        one(rng, &["eq", "ne", "ge"]),
        rng.random_range(1..3),
        rng.random_range(1..4),
    );
    // The code for an exhausted count: wait in another way, look at another location, give up.
    let other = one(
        rng,
        &[
            "",
            "mov.u32 r5, 3; nanosleep.u32 r5;",
            "setp.gt.u32 p2, r4, 5; @p2 bra SLEEP; add.u32 r5, r5, 1; SLEEP: mov.u32 r6, r5;",
            "ld.relaxed.gpu.u32 r3, [y];",
            "ld.relaxed.gpu.u32 r3, [y]; setp.ne.u32 p2, r3, 0; @p2 bra OUT;",
            "st.relaxed.gpu.u32 [y], 5; bra OUT;",
            "bra OUT;",
            "div.u32 r6, 7, r5;",
        ],
    );
    let count = match rng.random_range(0..3) {
        // As in libcu++: the count comes before the poll, and the jump to it leads back.
        0 => format!(
            "bra TOP; MORE: add.u32 n, n, 1; TOP: {poll} setp.{compare}.u32 p, r0, {until}; @p bra OUT; \
             setp.lt.u32 p1, n, {most}; @p1 bra MORE; {other} bra TOP; OUT:"
        ),
        1 => format!(
            "TOP: {poll} setp.{compare}.u32 p, r0, {until}; @p bra OUT; setp.ge.u32 p1, n, {most}; @p1 bra ELSE; \
             add.u32 n, n, 1; bra TOP; ELSE: {other} bra TOP; OUT:"
        ),
        _ => format!(
            "TOP: {poll} setp.{compare}.u32 p, r0, {until}; @p bra OUT; min.u32 n, n, {most}; setp.lt.u32 p1, n, {most}; \
             add.u32 n, n, 1; @p1 bra TOP; {other} min.u32 n, n, {most}; bra TOP; OUT:"
        ),
    };
    let accesses = |rng: &mut Pcg64Mcg, name: &str| {
        let mut code = String::new();
        for i in 0..rng.random_range(1..4) {
            let place = one(rng, &["x", "x", "y", "z"]);
            code += &match rng.random_range(0..6) {
                0 => format!("ld.weak.u32 {name}{i}, [{place}]; "),
                1 => format!("ld.relaxed.gpu.u32 {name}{i}, [{place}]; "),
                2 | 3 => {
                    let how = one(rng, &["weak", "relaxed.gpu", "release.gpu"]);
                    format!("st.{how}.u32 [{place}], {}; ", rng.random_range(1..3))
                }
                4 => format!("atom.relaxed.gpu.add.u32 {name}{i}, [{place}], 1; "),
                _ => "fence.acq_rel.gpu; ".to_owned(),
            };
        }
        code
    };
    let (after, mut others) = (accesses(rng, "b"), String::new());
    for _ in 1..rng.random_range(2..=3) {
        others += &format!(
            "[[thread]]\ncta = {}\ncode = '''{}'''\n",
            rng.random_range(0..2),
            accesses(rng, "c")
        );
    }
    let named = |code: &str, of: &str| {
        let names = (0..3).filter(|i| code.contains(&format!("u32 {of}{i},")));
        names
            .map(|i| format!(", \"P{}:{of}{i}\"", u8::from(of == "c")))
            .collect::<String>()
    };
    let seen = format!("\"x\", \"y\", \"z\", \"P0:r0\"{}", named(&after, "b"));
    ["", ", \"P0:n\""].map(|count_of| {
        format!(
            "name = \"seed-{seed}\"\nobserve = [{seen}{count_of}]\n[memory]\nx = {{ type = \"u32\" }}\ny = {{ type = \"u32\" }}\n\
             z = {{ type = \"u32\" }}\n[[thread]]\ncta = 0\ncode = '''mov.u32 n, 0; mov.u32 r4, 9; mov.u32 r5, 1; {count} {after}'''\n\
             {others}"
        )
    })
}

/// The number of events; and, if known, the outcomes without the count, and whether one comes from
/// a racy execution.
fn answers(text: &str) -> (usize, Option<(BTreeSet<State>, bool)>) {
    let test = parse("t.toml", text.as_bytes())
        .unwrap_or_else(|e| panic!("{e:?}\n{text}"))
        .remove(0);
    let model = shipped("ptx");
    let limits = Limits {
        bound: Some(2),
        timeout: Some(Duration::from_millis(number("FENCEPOST_TIMEOUT_MS", 2_000))),
    };
    let events = Skeleton::build(&test, OptionValues::default(), 2).map_or(0, |sk| sk.len());
    let outcomes = Session::new(&test, &model, Engine::Auto, limits, &[]).outcomes();
    assert_eq!(outcomes.defect, None, "{text}");
    let races = outcomes.outcomes.iter().any(|o| o.racy);
    let without = |mut state: State| {
        state.retain(|(name, _)| &**name != "P0:n");
        state
    };
    let allowed = outcomes
        .outcomes
        .into_iter()
        .filter(|o| o.allowed)
        .map(|o| without(o.state))
        .collect();
    (events, outcomes.complete.then_some((allowed, races)))
}

#[test]
fn polls_that_are_counted_are_one() {
    let (count, first) = (programs(150), number("FENCEPOST_SEED", 1));
    let (mut compared, mut fewer) = (0, 0);
    for seed in first..first + count {
        let [without, with] = generate(seed);
        let ((few, Some(one)), (many, Some(all))) = (answers(&without), answers(&with)) else {
            continue;
        };
        assert_eq!(one, all, "{without}");
        assert!(few <= many, "{without}");
        (compared, fewer) = (compared + 1, fewer + u64::from(few < many));
    }
    assert!(
        compared > count / 2 && fewer > count / 8,
        "{compared} compared, {fewer} of them with fewer polls"
    );
}
