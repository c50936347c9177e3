//! Random programs, alone and next to threads with too many values to list. There the engines drop
//! values that no answer depends on, and the answers are the same.

use std::time::Duration;

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::parse;
use fencepost::verdict::{Reason, Verdict};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use testkit::suite::{number, programs, shipped};

/// Threads that are independent of the others: three reads of eleven values with distinct sums, and
/// computations with these.
fn many() -> String {
    let stores: String = (1..=10)
        .map(|v: i32| format!("st.relaxed.gpu.u32 [m], {}; ", (v as f32).to_bits()))
        .collect();
    let loads: String = (0..3)
        .map(|i| format!("ld.relaxed.gpu.u32 m{i}, [m]; "))
        .collect();
    format!(
        "[[thread]]\ncta = 8\ncode = '''{stores}'''\n[[thread]]\nname = \"M\"\ncta = 9\ncode = '''{loads}mul.f32 a, m0, 0f42000000; \
         mul.f32 b, m1, 0f44800000; add.f32 c, a, b; add.f32 s, c, m2; add.f32 t, s, s; st.relaxed.gpu.u32 [n], t;'''\n"
    )
}

/// A program in which some values decide execution or addresses, and others are only passed on; and
/// possible conditions.
fn generate(seed: u64) -> (String, Vec<String>) {
    let rng = &mut Pcg64Mcg::seed_from_u64(seed);
    let one =
        |rng: &mut Pcg64Mcg, words: &[&'static str]| *words.choose(rng).expect("there are some");
    let (mut threads, mut asked) = (
        String::new(),
        vec!["x[0] == 2".to_owned(), "y == 1".to_owned()],
    );
    for t in 0..rng.random_range(2..=3) {
        let mut code = "mov.u32 v, 1; ".to_owned();
        for i in 0..rng.random_range(2..4) {
            let (place, how) = (
                one(rng, &["[x]", "[x+4]", "[y]", "[f]"]),
                one(rng, &["weak", "relaxed.gpu", "acquire.gpu"]),
            );
            code += &format!("ld.{how}.u32 r{i}, {place}; ");
            code += &match rng.random_range(0..4) {
                0 => format!("add.u32 v, r{i}, 1; "),
                1 => format!("add.u32 v, v, r{i}; "),
                2 => format!("setp.eq.u32 p, r{i}, 1; selp.u32 v, 2, v, p; "),
                _ => String::new(),
            };
            let place = one(rng, &["[x]", "[y]", "[f]", "[a]"]);
            let access = match (rng.random_range(0..4), place) {
                (0, "[x]" | "[y]") => format!("atom.relaxed.gpu.add.u32 w, {place}, v; "),
                (1, "[f]") => "atom.relaxed.gpu.cas.b32 w, [f], 0, v; ".to_owned(),
                _ => format!(
                    "st.{}.u32 {place}, v; ",
                    one(rng, &["weak", "relaxed.gpu", "release.gpu"])
                ),
            };
            code += &format!(
                "and.b32 o, r{i}, 1; mul.wide.u32 d, o, 4; mov.u64 a, x; add.u64 a, a, d; "
            );
            code += &match rng.random_bool(0.3) {
                true => format!("setp.ne.u32 q, r{i}, 1; @q bra S{i}; {access}S{i}: "),
                false => access,
            };
            asked.extend((0..3).map(|v| format!("P{t}:r{i} == {v}")));
        }
        threads += &format!(
            "[[thread]]\ncta = {}\ncode = '''{code}'''\n",
            rng.random_range(0..2)
        );
    }
    (threads, asked)
}

/// Whether a condition can hold, and whether there is a race; `None` if either is unknown.
fn answers(threads: &str, condition: &str, model: &str) -> Option<(bool, bool)> {
    let text = format!(
        "name = \"t\"\ncondition = '{condition}'\n[memory]\nx = {{ size = 2, type = \"u32\" }}\ny = {{ type = \"u32\" }}\n\
         f = {{ type = \"u32\" }}\nm = {{ type = \"u32\" }}\nn = {{ type = \"u32\" }}\n{threads}"
    );
    let test = parse("t.toml", text.as_bytes())
        .unwrap_or_else(|e| panic!("{e:?}\n{text}"))
        .remove(0);
    let model = shipped(model);
    let limits = Limits {
        bound: None,
        timeout: Some(Duration::from_millis(number("FENCEPOST_TIMEOUT_MS", 5_000))),
    };
    let mut session = Session::new(&test, &model, Engine::Auto, limits, &[]);
    let holds = session.reachability(None, false);
    let races = session.race();
    let of = |verdict: &Verdict| match verdict {
        Verdict::Allowed | Verdict::Racy => Some(true),
        Verdict::Forbidden | Verdict::RaceFree => Some(false),
        Verdict::Undecided(Reason::Time) => None,
        other => panic!("{other:?}\n{text}"),
    };
    for answer in races.iter().chain([&holds]) {
        assert_eq!(answer.defect, None, "{text}");
    }
    Some((
        of(&holds.verdict)?,
        races.is_some_and(|races| of(&races.verdict) == Some(true)),
    ))
}

#[test]
fn what_nothing_depends_on_can_be_given_up() {
    let (count, first) = (programs(200), number("FENCEPOST_SEED", 1));
    let (mut compared, mut hold, mut race) = (0, 0, 0);
    for seed in first..first + count {
        let (threads, asked) = generate(seed);
        let condition = &asked[seed as usize % asked.len()];
        for model in ["ptx", "sc"] {
            let beside = threads.clone() + &many();
            let (Some(alone), Some(given_up)) = (
                answers(&threads, condition, model),
                answers(&beside, condition, model),
            ) else {
                continue;
            };
            assert_eq!(
                alone, given_up,
                "seed {seed}, {model}, {condition}: {threads}"
            );
            (compared, hold, race) = (
                compared + 1,
                hold + u64::from(alone.0),
                race + u64::from(alone.1),
            );
        }
    }
    assert!(compared > count, "{compared}");
    for some in [hold, race] {
        assert!(
            some * 5 > compared && some < compared,
            "{hold} hold, {race} race, of {compared}"
        );
    }
}

/// Queries about the values that are too many stay undecided, as do those under a model with values
/// out of thin air.
#[test]
fn what_depends_on_them_is_undecided() {
    let ask = |condition: &str, model: &str| {
        let text = format!(
            "name = \"t\"\ncondition = '{condition}'\n[memory]\nm = {{ type = \"u32\" }}\nn = {{ type = \"u32\" }}\n{}",
            many()
        );
        let test = parse("t.toml", text.as_bytes())
            .unwrap_or_else(|e| panic!("{e:?}\n{text}"))
            .remove(0);
        let model = shipped(model);
        Session::new(&test, &model, Engine::Auto, Limits::default(), &[])
            .reachability(None, false)
            .verdict
    };
    assert_eq!(ask("M:m0 == 0", "ptx"), Verdict::Allowed);
    for condition in ["M:t == 0", "n == 0", "M:m0 == 0 /\\ n == 7"] {
        match ask(condition, "ptx") {
            Verdict::Undecided(reason @ Reason::TooManyValues(Some(_))) => {
                assert!(
                    reason
                        .to_string()
                        .contains("`st.relaxed.gpu.u32 [n], t` (M, line "),
                    "{reason}"
                );
            }
            other => panic!("{condition}: {other:?}"),
        }
    }
}
