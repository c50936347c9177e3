//! Random programs with a loop whose iterations may write the value that they read. The loop allows
//! every outcome of its straight-line form, which has the first iterations written out. No
//! iterations are skipped in the straight-line form.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::parse;
use fencepost::verdict::State;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use testkit::suite::{number, programs, shipped};

/// The number of iterations written out.
const WRITTEN_OUT: u32 = 3;

/// One of several words.
pub(crate) fn one<'a>(rng: &mut Pcg64Mcg, words: &[&'a str]) -> &'a str {
    words.choose(rng).expect("there are some")
}

/// A program, with its loop and with the loop's first iterations written out.
fn generate(seed: u64) -> (String, String) {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let rng = &mut rng;
    let order = |rng: &mut Pcg64Mcg| {
        let scope = if rng.random_bool(0.1) { "cta" } else { "gpu" };
        format!(
            "{}.{scope}",
            one(
                rng,
                &["relaxed", "relaxed", "acq_rel", "acquire", "release"]
            )
        )
    };
    // An iteration leaves the loop if it jumps to `OUT`.
    let value = rng.random_range(0..3);
    let ends = rng.random_range(0..3);
    let update = match rng.random_range(0..13) {
        0 => format!("atom.{}.add.u32 r0, [l], 0;", order(rng)),
        1 => format!("atom.{}.or.b32 r0, [l], {value};", order(rng)),
        9 | 10 => {
            let operation = one(
                rng,
                &["min.u32", "max.u32", "max.s32", "and.b32", "xor.b32"],
            );
            format!("atom.{}.{operation} r0, [l], {value};", order(rng))
        }
        11 => format!("atom.{}.and.b32 r0, [l], -1;", order(rng)),
        12 => {
            let operation = one(rng, &["or.b32", "and.b32", "max.u32"]);
            format!(
                "ld.relaxed.gpu.u32 w, [l]; {operation} z, w, {value}; atom.{}.cas.b32 r0, [l], w, z;",
                order(rng)
            )
        }
        2 => format!("mov.u32 z, 0; atom.{}.add.u32 r0, [l], z;", order(rng)),
        3 | 4 => format!("atom.{}.cas.b32 r0, [l], {value}, {value};", order(rng)),
        _ => format!("atom.{}.exch.b32 r0, [l], {value};", order(rng)),
    };
    let mut iteration = update;
    if rng.random_bool(0.2) {
        iteration += " ld.relaxed.gpu.u32 r1, [y];";
    }
    let compare = one(rng, &["eq", "ne", "ne"]);
    write!(iteration, " setp.{compare}.u32 p, r0, {ends};").expect("a string");
    // A first attempt may come before the loop.
    let first = if rng.random_bool(0.4) {
        format!("{iteration} @p bra OUT; ")
    } else {
        String::new()
    };
    let looped = format!("{first}TOP: {iteration} @p bra OUT; bra TOP; OUT:");
    let written_out = first
        + &format!("{iteration} @p bra OUT; ").repeat(WRITTEN_OUT as usize)
        + "mov.u32 r9, 1; bra END; OUT:";
    let mut others = String::new();
    let accesses = |rng: &mut Pcg64Mcg, count: u32, name: &str| {
        let mut code: String = (0..3).map(|i| format!("mov.u32 {name}{i}, 7; ")).collect();
        for i in 0..count {
            let place = one(rng, &["l", "l", "x", "y"]);
            let value = rng.random_range(0..3);
            let r = format!("{name}{i}");
            // Some writes store values that were read: they may not justify themselves.
            let given = if i > 0 && rng.random_bool(0.4) {
                format!("{name}{}", i - 1)
            } else {
                value.to_string()
            };
            code += &match rng.random_range(0..9) {
                0..=2 => format!("ld.relaxed.gpu.u32 {r}, [{place}]; "),
                3 => format!("ld.acquire.gpu.u32 {r}, [{place}]; "),
                4 | 5 => {
                    let order = one(rng, &["relaxed", "release"]);
                    match i > 0 && rng.random_bool(0.4) {
                        // Whether the write happens may not justify itself either.
                        true => format!(
                            "setp.ne.u32 q, {name}{}, 0; @q st.{order}.gpu.u32 [{place}], {value}; ",
                            i - 1
                        ),
                        false => format!("st.{order}.gpu.u32 [{place}], {given}; "),
                    }
                }
                6 => format!("atom.{}.exch.b32 {r}, [{place}], {given}; ", order(rng)),
                7 => format!(
                    "atom.{}.add.u32 {r}, [{place}], {}; ",
                    order(rng),
                    value % 2
                ),
                _ if rng.random_bool(0.3) => format!("st.weak.u32 [{place}], {given}; "),
                _ => format!("fence.{}.gpu; ", one(rng, &["sc", "acq_rel"])),
            };
        }
        code
    };
    let (before, after) = (rng.random_range(0..2), rng.random_range(0..3));
    let (before, after) = (accesses(rng, before, "a"), accesses(rng, after, "b"));
    for _ in 1..rng.random_range(2..=3) {
        let count = rng.random_range(1..=3);
        let cta = rng.random_range(0..2);
        let code = accesses(rng, count, "c");
        writeln!(others, "[[thread]]\ncta = {cta}\ncode = '''{code}'''").expect("a string");
    }
    let text = |middle: &str| {
        format!(
            "name = \"seed-{seed}\"\nfilter = \"P0:r9 == 0\"\nobserve = [\"l\", \"x\", \"y\", \"P0:r0\", \"P0:b0\", \"P1:c0\", \
             \"P1:c1\", \"P1:c2\"]\n[memory]\nl = {{ type = \"u32\", init = {} }}\nx = {{ type = \"u32\" }}\ny = {{ type = \"u32\" }}\n\
             [[thread]]\ncta = 0\ncode = '''mov.u32 r9, 0; {before}{middle} {after}END: mov.u32 r8, 0;'''\n\
             {others}",
            (seed % 2)
        )
    };
    (text(&looped), text(&written_out))
}

/// The outcomes up to a loop bound, and whether one comes from a racy execution; `None` if unknown.
pub(crate) fn answers(text: &str, model: &str, bound: u32) -> Option<(BTreeSet<State>, bool)> {
    let test = parse("t.toml", text.as_bytes())
        .unwrap_or_else(|e| panic!("{e:?}\n{text}"))
        .remove(0);
    let model = shipped(model);
    let timeout = Some(Duration::from_millis(number("FENCEPOST_TIMEOUT_MS", 2_000)));
    let limits = Limits {
        bound: Some(bound),
        timeout,
    };
    let outcomes = Session::new(&test, &model, Engine::Auto, limits, &[]).outcomes();
    assert_eq!(outcomes.defect, None, "{text}");
    let races = outcomes.outcomes.iter().any(|o| o.racy);
    let allowed = outcomes
        .outcomes
        .into_iter()
        .filter(|o| o.allowed)
        .map(|o| o.state)
        .collect();
    outcomes.complete.then_some((allowed, races))
}

/// The numbers of programs compared with their straight-line form, of racy ones among them, and of
/// undecided ones.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) compared: u64,
    pub(crate) racy: u64,
    pub(crate) undecided: u64,
}

impl Held {
    /// Checks that, up to a bound, the loop allows all outcomes of the straight-line form, and
    /// races if that form does.
    pub(crate) fn against(&mut self, looped: &str, written_out: &str, bound: u32) {
        for model in ["ptx", "sc"] {
            let Some((of_loop, races)) = answers(looped, model, bound) else {
                self.undecided += 1;
                continue;
            };
            let Some((of_straight, straight_races)) = answers(written_out, model, bound) else {
                continue;
            };
            let more: Vec<_> = of_straight.difference(&of_loop).collect();
            assert!(
                more.is_empty(),
                "{model}: {looped}\nwritten out, there is more: {more:?}"
            );
            assert!(
                races || !straight_races,
                "{model}: {looped}\nwritten out, it races"
            );
            self.compared += 1;
            self.racy += u64::from(races);
        }
    }
}

#[test]
fn iterations_that_write_what_they_read_may_be_left_out() {
    let (count, first) = (programs(200), number("FENCEPOST_SEED", 1));
    let mut held = Held::default();
    for seed in first..first + count {
        let (looped, written_out) = generate(seed);
        held.against(&looped, &written_out, 2);
    }
    println!("{held:?}");
    assert!(held.compared > count / 2, "{held:?}");
}
