//! Random programs that may hang: spin loops, exchanges in loops, barriers, writes that wake somebody.
//!
//! Most writes write 1, and most loops wait for 1: else nearly every program hangs.

use std::fmt::Write as _;

use rand::Rng;
use rand_pcg::Pcg64Mcg;

/// How an access is written: the orders of loads, stores and read-modify-writes of one program.
struct Words {
    load: &'static str,
    store: &'static str,
    update: &'static str,
}

const WORDS: [Words; 6] = [
    Words { load: "relaxed.gpu", store: "relaxed.gpu", update: "relaxed.gpu" },
    Words { load: "acquire.gpu", store: "release.gpu", update: "acq_rel.gpu" },
    Words { load: "relaxed.cta", store: "relaxed.cta", update: "relaxed.gpu" },
    Words { load: "weak", store: "weak", update: "relaxed.gpu" },
    Words { load: "weak", store: "release.gpu", update: "relaxed.gpu" },
    Words { load: "relaxed.gpu", store: "weak", update: "acquire.gpu" },
];

/// A test with two or three random threads.
pub fn program(name: &str, rng: &mut Pcg64Mcg) -> String {
    let mut text = format!("name = \"{name}\"\n[memory]\nx = 0\ny = 0\n");
    let words = if rng.random_bool(0.4) { &WORDS[0] } else { &WORDS[rng.random_range(0..WORDS.len())] };
    let mut labels = 0;
    for _ in 0..rng.random_range(2..=3) {
        let cta = rng.random_range(0..2);
        let code = thread(words, rng, &mut labels);
        writeln!(text, "[[thread]]\ncta = {cta}\ncode = \"{code}\"").expect("a string");
    }
    text
}

fn thread(words: &Words, rng: &mut Pcg64Mcg, labels: &mut u32) -> String {
    let Words { load, store, update } = words;
    let mut code: Vec<String> = Vec::new();
    for _ in 0..rng.random_range(1..=3) {
        let place = ["x", "y"][rng.random_range(0..2)];
        let value = i32::from(rng.random_range(0..5) > 0);
        let (test, tested) = [("beq", 0), ("beq", 0), ("bne", 1), ("beq", 1)][rng.random_range(0..4)];
        *labels += 1;
        let l = format!("L{labels}");
        code.push(match rng.random_range(0..20u32) {
            0..=3 => format!("ld.{load} r0, {place}; {test} r0, {tested}, {l}; st.{store} x, {value}; {l}:"),
            4 | 5 => format!("{l}: ld.{load} r0, {place}; {test} r0, {tested}, {l}"),
            6 => format!("{l}: atom.{update}.exch r0, {place}, {value}; {test} r0, {tested}, {l}"),
            7 => format!("{l}: atom.{update}.cas r0, {place}, {tested}, {value}; {test} r0, {tested}, {l}"),
            8 => format!("{l}: st.{store} x, {value}; ld.{load} r0, y; {test} r0, {tested}, {l}"),
            9 => "bar.sync 0".to_string(),
            10 if rng.random_bool(0.5) => "bar.sync 1, 2".to_string(),
            10 => format!("{l}: bar.sync 0; ld.{load} r0, {place}; {test} r0, {tested}, {l}"),
            11 => "fence.sc.gpu".to_string(),
            12 => format!("{l}: ld.{load} r0, x; ld.{load} r1, y; {test} r1, {tested}, {l}"),
            _ => format!("st.{store} {place}, {value}"),
        });
    }
    code.join("; ")
}
