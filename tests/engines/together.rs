//! Random programs with a loop in which two threads meet, at barriers or by votes. The loop allows
//! every outcome and race of its straight-line form, which has the first iterations written out. No
//! iterations are skipped in the straight-line form.

use std::fmt::Write as _;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use testkit::suite::{number, programs};

use crate::kept::{Held, one};

/// The number of iterations written out.
const WRITTEN_OUT: usize = 3;

/// An iteration for each of two threads, which leaves the loop if it jumps to `OUT`. They may leave
/// it in different iterations, and so end at barriers of different numbers: barriers work that way.
fn iterations(rng: &mut Pcg64Mcg) -> [String; 2] {
    let meet = one(
        rng,
        &[
            "bar.red.or.pred q, 0, p; @q bra OUT;",
            "bar.red.or.pred q, 0, p; @q bra OUT;",
            "not.pred q, p; bar.red.and.pred q, 0, q; @!q bra OUT;",
            "vote.sync.any.pred q, p, 3; @q bra OUT;",
            "vote.sync.all.pred q, p, 3; @q bra OUT;",
            "bar.sync 0; @p bra OUT;",
            "@p bra OUT; bar.sync 0;",
            "bar.sync 0; bar.sync 1, 64; @p bra OUT;",
        ],
    );
    let meet = meet.replace("64", "2");
    let again = one(rng, &["", "", "bar.sync 0;", "bar.warp.sync 3;"]);
    let both = rng.random_bool(0.4);
    let mut iteration = |polls: bool| {
        let order = one(
            rng,
            &[
                "relaxed.gpu",
                "relaxed.gpu",
                "acquire.gpu",
                "weak",
                "relaxed.cta",
            ],
        );
        let poll = match rng.random_range(0..8) {
            _ if !polls => String::new(),
            0 => "atom.acquire.gpu.exch.b32 r0, [f], 0;".to_owned(),
            1 => "atom.relaxed.gpu.cas.b32 r0, [f], 1, 2;".to_owned(),
            2 if again == "bar.sync 0;" => {
                "ld.relaxed.gpu.u32 r0, [f]; st.weak.u32 [s], r0;".to_owned()
            }
            _ => format!("ld.{order}.u32 r0, [f];"),
        };
        let more = one(
            rng,
            &[
                "",
                "",
                "",
                "ld.weak.u32 r1, [x];",
                "ld.relaxed.gpu.u32 r1, [x];",
                "fence.acq_rel.gpu;",
            ],
        );
        let late = if rng.random_bool(0.2) {
            "ld.weak.u32 r1, [x];"
        } else {
            ""
        };
        format!("{poll} {more} setp.ne.u32 p, r0, 0; {meet} {late} {again} ")
    };
    [iteration(true), iteration(both)]
}

/// Accesses, with their results in registers of the given name.
fn accesses(rng: &mut Pcg64Mcg, count: usize, name: &str) -> String {
    let mut code: String = (0..3).map(|i| format!("mov.u32 {name}{i}, 7; ")).collect();
    for i in 0..count {
        let place = one(rng, &["f", "f", "x", "y", "y"]);
        let value = rng.random_range(1..3);
        code += &match rng.random_range(0..9) {
            0 | 1 => format!("ld.relaxed.gpu.u32 {name}{i}, [{place}]; "),
            2 => format!("ld.acquire.gpu.u32 {name}{i}, [{place}]; "),
            3 => "ld.weak.u32 NAME, [x]; ".replace("NAME", &format!("{name}{i}")),
            4 | 5 => format!(
                "st.{}.gpu.u32 [{place}], {value}; ",
                one(rng, &["relaxed", "release"])
            ),
            6 => format!("st.weak.u32 [x], {value}; "),
            7 => format!("atom.relaxed.gpu.add.u32 {name}{i}, [{place}], 1; "),
            _ => format!("fence.{}.gpu; ", one(rng, &["sc", "acq_rel"])),
        };
    }
    code
}

/// A program, with its loop and with the loop's first iterations written out.
fn generate(seed: u64) -> [String; 2] {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let rng = &mut rng;
    let bodies = iterations(rng);
    let mut parts = Vec::new();
    for _ in 0..2 {
        let (before, after) = (rng.random_range(0..2), rng.random_range(0..3));
        parts.push((accesses(rng, before, "a"), accesses(rng, after, "b")));
    }
    let mut others = String::new();
    for _ in 0..rng.random_range(1..=2) {
        let count = rng.random_range(1..=3);
        let waits = if rng.random_bool(0.3) {
            "M: ld.relaxed.gpu.u32 d, [y]; setp.eq.u32 p, d, 0; @p bra M; "
        } else {
            ""
        };
        let (first, then) = (accesses(rng, 1, "d"), accesses(rng, count, "c"));
        writeln!(
            others,
            "[[thread]]\ncta = 1\ncode = '''{first} {waits} {then}'''"
        )
        .expect("a string");
    }
    [false, true].map(|written_out| {
        let mut text = format!(
            "name = \"seed-{seed}\"\nfilter = 'P0:r9 == 0 /\\ P1:r9 == 0'\nobserve = [\"f\", \"x\", \"y\", \"P0:r0\", \"P0:b0\", \
             \"P1:b0\", \"P1:b1\", \"P2:c0\", \"P2:c1\"]\n[memory]\nf = {{ type = \"u32\" }}\nx = {{ type = \"u32\" }}\n\
             y = {{ type = \"u32\" }}\ns = {{ type = \"u32\" }}\n"
        );
        for (body, (before, after)) in bodies.iter().zip(&parts) {
            let looped = match written_out {
                true => body.repeat(WRITTEN_OUT) + "mov.u32 r9, 1; bra END;",
                false => format!("TOP: {body} bra TOP;"),
            };
            let code = format!("mov.u32 r0, 0; mov.u32 r9, 0; {before} {looped} OUT: {after} END: mov.u32 r8, 0;");
            writeln!(text, "[[thread]]\ncta = 0\nwarp = 0\ncode = '''{code}'''").expect("a string");
        }
        text + &others
    })
}

#[test]
fn iterations_of_several_threads_may_be_left_out() {
    let (count, first) = (programs(150), number("FENCEPOST_SEED", 1));
    let mut held = Held::default();
    for seed in first..first + count {
        let [looped, written_out] = generate(seed);
        held.against(&looped, &written_out, 4);
    }
    println!("{held:?}");
    assert!(held.compared > count / 2 && held.racy > 0, "{held:?}");
}
