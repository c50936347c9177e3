//! Random programs that may hang: spin loops of many shapes, exchanges in loops, barriers, and
//! writes that wake a thread.
//!
//! Most writes write 1, and most loops wait for 1: otherwise nearly every program hangs.

use std::fmt::Write as _;

use rand::Rng;
use rand_pcg::Pcg64Mcg;

/// The words of accesses: the orders of loads, stores and read-modify-writes of one program.
struct Words {
    load: &'static str,
    store: &'static str,
    update: &'static str,
}

const WORDS: [Words; 6] = [
    Words {
        load: "relaxed.gpu",
        store: "relaxed.gpu",
        update: "relaxed.gpu",
    },
    Words {
        load: "acquire.gpu",
        store: "release.gpu",
        update: "acq_rel.gpu",
    },
    Words {
        load: "relaxed.cta",
        store: "relaxed.cta",
        update: "relaxed.gpu",
    },
    Words {
        load: "weak",
        store: "weak",
        update: "relaxed.gpu",
    },
    Words {
        load: "weak",
        store: "release.gpu",
        update: "relaxed.gpu",
    },
    Words {
        load: "relaxed.gpu",
        store: "weak",
        update: "acquire.gpu",
    },
];

/// A test with two or three random threads.
pub fn program(name: &str, rng: &mut Pcg64Mcg) -> String {
    let mut text = format!("name = \"{name}\"\n[memory]\nx = 0\ny = 0\n");
    let words = if rng.random_bool(0.4) {
        &WORDS[0]
    } else {
        &WORDS[rng.random_range(0..WORDS.len())]
    };
    let mut labels = 0;
    for _ in 0..rng.random_range(2..=3) {
        let cta = rng.random_range(0..2);
        let code = thread(words, rng, &mut labels);
        writeln!(text, "[[thread]]\ncta = {cta}\ncode = \"{code}\"").expect("a string");
    }
    text
}

fn thread(words: &Words, rng: &mut Pcg64Mcg, labels: &mut u32) -> String {
    let Words {
        load,
        store,
        update,
    } = words;
    let mut code: Vec<String> = Vec::new();
    for _ in 0..rng.random_range(1..=3) {
        let place = ["x", "y"][rng.random_range(0..2)];
        let value = i32::from(rng.random_range(0..5) > 0);
        let (test, tested) =
            [("beq", 0), ("beq", 0), ("bne", 1), ("beq", 1)][rng.random_range(0..4)];
        *labels += 1;
        let l = format!("L{labels}");
        code.push(match rng.random_range(0..26u32) {
            0..=3 => format!(
                "ld.{load} r0, {place}; {test} r0, {tested}, {l}; st.{store} x, {value}; {l}:"
            ),
            4 | 5 => format!("{l}: ld.{load} r0, {place}; {test} r0, {tested}, {l}"),
            6 if rng.random_bool(0.4) => {
                let read = ["add", "or"][rng.random_range(0..2)];
                format!("{l}: atom.{update}.{read} r0, {place}, 0; {test} r0, {tested}, {l}")
            }
            6 => format!("{l}: atom.{update}.exch r0, {place}, {value}; {test} r0, {tested}, {l}"),
            7 => format!(
                "{l}: atom.{update}.cas r0, {place}, {tested}, {value}; {test} r0, {tested}, {l}"
            ),
            8 => format!("{l}: st.{store} x, {value}; ld.{load} r0, y; {test} r0, {tested}, {l}"),
            9 => "bar.sync 0".to_string(),
            10 if rng.random_bool(0.5) => "bar.sync 1, 2".to_string(),
            10 => format!("{l}: bar.sync 0; ld.{load} r0, {place}; {test} r0, {tested}, {l}"),
            11 => "fence.sc.gpu".to_string(),
            12 => format!("{l}: ld.{load} r0, x; ld.{load} r1, y; {test} r1, {tested}, {l}"),
            13..=16 => wait(words, rng, &l, place, (test, tested)),
            17 => "bar.arrive 1, 2".to_string(),
            _ => format!("st.{store} {place}, {value}"),
        });
    }
    code.join("; ")
}

/// Waits of other shapes than a loop with one poll, as in compiled code and libraries.
fn wait(
    Words { load, .. }: &Words,
    rng: &mut Pcg64Mcg,
    l: &str,
    place: &str,
    (test, tested): (&str, i32),
) -> String {
    let other = if test == "beq" { "bne" } else { "beq" };
    let poll = |to: &str| format!("ld.{load} r0, {place}; {other} r0, {tested}, {to}");
    let end = format!("{l}E");
    match rng.random_range(0..9u32) {
        // Polls until the value changes, then loads it again: two backward jumps that cross.
        0 => format!(
            "{l}: {}; {l}P: ld.{load} r1, {place}; bne r1, r0, {l}; goto {l}P; {end}:",
            poll(&end)
        ),
        // Enters a loop of two reads at the second one, or not.
        1 => format!(
            "ld.{load} r2, y; beq r2, 0, {l}S; {l}: {}; {l}S: ld.{load} r1, x; beq r1, 0, {l}; bne r1, 1, {l}S; {end}:",
            poll(&end)
        ),
        // Polls several times in a round.
        2 => format!(
            "{l}: {}; {}; {}; goto {l}; {end}:",
            poll(&end),
            poll(&end),
            poll(&end)
        ),
        // Waits for two places.
        3 => format!(
            "{l}: ld.{load} r0, x; ld.{load} r1, y; add r2, r0, r1; {test} r2, {tested}, {l}"
        ),
        // Loops until it finds the same value twice, which need not be the awaited one.
        4 => format!(
            "{l}: mov r1, r0; ld.{load} r0, {place}; bne r0, r1, {l}; {test} r0, {tested}, {l}"
        ),
        // Counts a few polls, then goes on with others.
        5 => format!(
            "{l}: mov r3, 0; {l}P: {}; add r3, r3, 1; blt r3, 2, {l}P; ld.{load} r1, y; beq r1, r0, {l}; {end}:",
            poll(&end)
        ),
        // Waits for two values in turn.
        6 => format!(
            "{l}: xor r3, r3, 1; ld.{load} r0, {place}; beq r0, r3, {l}; {test} r0, {tested}, {l}"
        ),
        // Polls, then polls and counts, then goes on with others; the block that counts comes
        // before the one that polls.
        7 => format!(
            "{l}: {}; ld.{load} r1, {place}; bne r1, r0, {l}; mov r3, 0; goto {l}P; {l}C: add r3, r3, 1; \
             {l}P: ld.{load} r1, {place}; bne r1, r0, {l}; setp.lt.s64 p1, r3, 3; @p1 bra {l}C; goto {l}P; {end}:",
            poll(&end)
        ),
        // A loop in a loop.
        _ => format!(
            "{l}: ld.{load} r1, x; {l}P: ld.{load} r0, {place}; {test} r0, {tested}, {l}P; ld.{load} r2, x; bne r2, r1, {l}"
        ),
    }
}
