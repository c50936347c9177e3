//! Loop bounds in answers: when they are needed, when they are met, and that a negative answer is never given too early.

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::{LitmusTest, parse};
use fencepost::model::load_shipped;
use fencepost::skeleton::signature::signature;
use fencepost::verdict::{Answer, Reason, Verdict};

#[cfg(feature = "z3")]
const ENGINES: &[Engine] = &[Engine::Enumerate, Engine::Symbolic];
#[cfg(not(feature = "z3"))]
const ENGINES: &[Engine] = &[Engine::Enumerate];

fn test(condition: &str, codes: &[&str]) -> LitmusTest {
    let mut text = format!("name = \"T\"\ncondition = '{condition}'\n[memory]\nx = 0\nf = 0\n");
    for (cta, code) in codes.iter().enumerate() {
        text += &format!("[[thread]]\ncta = {cta}\ncode = '{code}'\n");
    }
    parse("T.toml", text.as_bytes()).expect("well-formed").remove(0)
}

/// The answers of all engines, which must not differ.
#[track_caller]
fn ask(condition: &str, codes: &[&str], bound: u32) -> Answer {
    let test = test(condition, codes);
    let model = load_shipped("ptx", &signature()).expect("shipped").expect("loads");
    let limits = Limits { bound, ..Limits::default() };
    let mut answers = ENGINES.iter().map(|&engine| {
        let answer = Session::new(&test, &model, engine, limits, &[]).reachability(None, false);
        assert_eq!(answer.defect, None);
        answer
    });
    let first = answers.next().expect("there is an engine");
    for other in answers {
        assert_eq!((&first.verdict, first.bound), (&other.verdict, other.bound));
    }
    first
}

fn undecided(answer: &Answer) -> bool {
    matches!(answer.verdict.reason(), Some(Reason::LoopBound(_)))
}

/// Stores 1 to 5.
const FIVE: &str = "LOOP: add r0, r0, 1; st.relaxed.gpu x, r0; blt r0, 5, LOOP";

#[test]
fn a_loop_longer_than_the_bound_is_undecided() {
    assert!(undecided(&ask("x == 9", &[FIVE], 4)));
    assert!(undecided(&ask("x == 5", &[FIVE], 4)));
}

#[test]
fn a_loop_within_the_bound_is_decided() {
    assert_eq!(ask("x == 9", &[FIVE], 5).verdict, Verdict::Forbidden);
    assert_eq!(ask("x == 5", &[FIVE], 8).verdict, Verdict::Allowed);
    assert_eq!(ask("x == 4", &[FIVE], 8).verdict, Verdict::Forbidden);
}

#[test]
fn a_spin_loop_needs_no_bound() {
    let codes =
        ["st.weak x, 1; st.release.gpu f, 1", "LOOP: ld.acquire.gpu r0, f; beq r0, 0, LOOP; ld.weak r1, x"];
    let stale = ask("P1:r1 == 0", &codes, 1);
    assert_eq!((stale.verdict, stale.bound), (Verdict::Forbidden, None));
    let fresh = ask("P1:r1 == 1", &codes, 1);
    assert_eq!((fresh.verdict, fresh.bound), (Verdict::Allowed, None));
}

#[test]
fn a_failing_compare_and_swap_spins() {
    let code = "LOOP: atom.acquire.gpu.cas r0, f, 0, 1; bne r0, 0, LOOP; st.release.gpu f, 0";
    let both = ask("P0:r0 != 0", &[code, code], 1);
    assert_eq!((both.verdict, both.bound), (Verdict::Forbidden, None));
}

#[test]
fn an_exchange_in_a_loop_has_an_effect() {
    let code = "LOOP: atom.acquire.gpu.exch r0, f, 1; bne r0, 0, LOOP; st.release.gpu f, 0";
    // The lock can be lost any number of times, so nothing is impossible for sure.
    let answer = ask("P0:r0 != 0", &[code, code], 2);
    assert!(undecided(&answer));
    assert_eq!(answer.bound, Some(2));
    // What is possible is found at the smallest bound.
    let answer = ask("P0:r0 == 0", &[code, code], 4);
    assert_eq!((answer.verdict, answer.bound), (Verdict::Allowed, Some(1)));
}

#[test]
fn a_weak_poll_that_carries_a_value_has_no_end() {
    // The register holds what the iteration before read; weak reads of racing writes may alternate for ever.
    let codes = ["st.weak f, 1; st.weak f, 2", "LOOP: mov r2, r1; ld.weak r1, f; bne r1, 2, LOOP"];
    assert!(undecided(&ask("P1:r2 == 2", &codes, 4)));
    assert_eq!(ask("P1:r2 == 1", &codes, 4).verdict, Verdict::Allowed);
    // With strong ones there are at most two changes.
    let codes =
        ["st.relaxed.gpu f, 1; st.relaxed.gpu f, 2", "LOOP: mov r2, r1; ld.relaxed.gpu r1, f; bne r1, 2, LOOP"];
    assert_eq!(ask("P1:r2 == 2", &codes, 4).verdict, Verdict::Forbidden);
}

#[test]
fn a_loop_that_nothing_ends_has_no_outcome() {
    let spinning = ask("0 == 0", &["LOOP: ld.relaxed.gpu r0, f; beq r0, 0, LOOP"], 1);
    assert_eq!((spinning.verdict, spinning.bound), (Verdict::Forbidden, None));
    assert!(undecided(&ask("0 == 0", &["LOOP: st.relaxed.gpu f, 1; goto LOOP"], 4)));
}
