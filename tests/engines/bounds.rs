//! Loop bounds in answers: when they are needed, when they suffice, and that no negative answer
//! comes too early.

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::{LitmusTest, parse};
use fencepost::verdict::{Answer, Reason, Verdict};
use testkit::suite::shipped;

fn test(condition: &str, codes: &[&str]) -> LitmusTest {
    let mut text =
        format!("name = \"T\"\ncondition = '{condition}'\n[memory]\nx = 0\nf = 0\nn = 5\n");
    for (cta, code) in codes.iter().enumerate() {
        text += &format!("[[thread]]\ncta = {cta}\ncode = '{code}'\n");
    }
    parse("T.toml", text.as_bytes())
        .expect("well-formed")
        .remove(0)
}

/// The answer of all engines, which must agree.
#[track_caller]
fn ask(condition: &str, codes: &[&str], bound: u32) -> Answer {
    let test = test(condition, codes);
    let model = shipped("ptx");
    let limits = Limits {
        bound: Some(bound),
        ..Limits::default()
    };
    let mut answers = Engine::ALONE.iter().map(|&engine| {
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
    matches!(answer.verdict.reason(), Some(Reason::LoopBound { .. }))
}

/// Stores 1 to n, which is 5, in a form that hides the number of iterations.
const FIVE: &str = "st.weak n, 5; ld.relaxed.gpu r1, n; LOOP: add r0, r0, 1; st.relaxed.gpu x, r0; blt r0, r1, LOOP";
/// The same, with the test before the store.
const BEFORE: &str = "st.weak n, 5; ld.relaxed.gpu r1, n; LOOP: bge r0, r1, END; add r0, r0, 1; st.relaxed.gpu x, r0; goto LOOP; END:";

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
    assert_eq!(ask("x == 9", &[BEFORE], 5).verdict, Verdict::Forbidden);
    assert!(undecided(&ask("x == 9", &[BEFORE], 4)));
}

#[test]
fn an_answer_says_which_bound_it_needs() {
    for code in [FIVE, BEFORE] {
        for bound in [5, 6, 8, 50] {
            assert_eq!(ask("x == 9", &[code], bound).bound, Some(5));
            assert_eq!(ask("x == 5", &[code], bound).bound, Some(5));
        }
    }
    // The second thread shows it after one iteration of the first.
    let early = [
        "LOOP: add r0, r0, 1; st.relaxed.gpu x, r0; ld.relaxed.gpu r1, f; beq r1, 0, LOOP",
        "st.relaxed.gpu f, 1",
    ];
    assert_eq!(ask("P0:r0 == 1", &early, 8).bound, Some(1));
    assert_eq!(ask("P0:r0 == 3", &early, 8).bound, Some(3));
}

#[test]
fn an_undecided_answer_names_the_loop_and_a_larger_bound() {
    let answer = ask("x == 9", &[FIVE], 4);
    let said = answer.verdict.reason().expect("undecided").to_string();
    assert_eq!(
        said,
        "loop bound: P0 can go on after 4 iterations of the loop at line 9; try `--bound 8`"
    );
}

#[test]
fn a_loop_that_counts_needs_no_bound() {
    let before =
        "mov r0, 0; LOOP: bge r0, 20, END; st.relaxed.gpu x, r0; add r0, r0, 1; goto LOOP; END:";
    let after = "mov r0, 0; LOOP: st.relaxed.gpu x, r0; add r0, r0, 1; blt r0, 20, LOOP";
    let nested = "mov r0, 0; OUT: mov r1, 0; IN: st.relaxed.gpu x, r1; add r1, r1, 1; blt r1, 4, IN; add r0, r0, 1; \
                  mul r2, r0, r1; blt r0, 5, OUT";
    for (code, last) in [(before, 19), (after, 19), (nested, 3)] {
        for bound in [1, 4] {
            let answer = ask(&format!("x == {last}"), &[code], bound);
            assert_eq!(
                (answer.verdict, answer.bound),
                (Verdict::Allowed, None),
                "{code}"
            );
            let answer = ask(&format!("x == {}", last + 1), &[code], bound);
            assert_eq!(
                (answer.verdict, answer.bound),
                (Verdict::Forbidden, None),
                "{code}"
            );
        }
    }
    assert_eq!(ask("P0:r2 == 20", &[nested], 1).verdict, Verdict::Allowed);
    // An exit that depends on a read changes nothing either.
    let left = "LOOP: ld.relaxed.gpu r1, f; bne r1, 0, END; add r0, r0, 1; blt r0, 6, LOOP; END:";
    let answer = ask("P0:r0 == 7", &[left, "st.relaxed.gpu f, 1"], 1);
    assert_eq!((answer.verdict, answer.bound), (Verdict::Forbidden, None));
    assert_eq!(
        ask("P0:r0 == 6", &[left, "st.relaxed.gpu f, 1"], 1).verdict,
        Verdict::Allowed
    );
}

#[test]
fn a_loop_up_to_an_input_needs_no_bound() {
    for code in [FIVE, BEFORE] {
        let code = code.strip_prefix("st.weak n, 5; ").expect("it begins so");
        for (condition, verdict) in [("x == 9", Verdict::Forbidden), ("x == 5", Verdict::Allowed)] {
            let answer = ask(condition, &[code], 1);
            assert_eq!((answer.verdict, answer.bound), (verdict, None), "{code}");
        }
    }
}

#[test]
fn a_loop_that_counts_too_far_is_bounded() {
    let code = "mov r0, 0; LOOP: ld.relaxed.gpu r1, f; bne r1, 0, END; add r0, r0, 1; blt r0, 100000, LOOP; END:";
    assert!(undecided(&ask(
        "P0:r0 == 7",
        &[code, "st.relaxed.gpu f, 1"],
        4
    )));
    let answer = ask("P0:r0 == 1", &[code, "st.relaxed.gpu f, 1"], 4);
    assert_eq!((answer.verdict, answer.bound), (Verdict::Allowed, Some(2)));
    // The register does not change, so it is no counter.
    assert!(undecided(&ask(
        "x == 3",
        &["mov r0, 0; LOOP: st.relaxed.gpu x, 1; and r0, r0, 1; blt r0, 1, LOOP"],
        4
    )));
}

#[test]
fn a_spin_loop_needs_no_bound() {
    let codes = [
        "st.weak x, 1; st.release.gpu f, 1",
        "LOOP: ld.acquire.gpu r0, f; beq r0, 0, LOOP; ld.weak r1, x",
    ];
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
fn an_exchange_in_a_loop_waits_if_it_writes_what_it_reads() {
    let code = "LOOP: atom.acquire.gpu.exch r0, f, 1; bne r0, 0, LOOP; st.release.gpu f, 0";
    let answer = ask("P0:r0 != 0", &[code, code], 2);
    assert_eq!(
        (answer.verdict, answer.bound),
        (Verdict::Forbidden, Some(1))
    );
    // A first attempt before the loop decides which threads enter it; but all values written to the
    // lock depend on the lock alone.
    let first = format!(
        "atom.acquire.gpu.exch r0, f, 1; beq r0, 0, IN; {}",
        code.replace("; st", "; IN: st")
    );
    let answer = ask("P0:r0 != 0", &[&first, &first], 2);
    assert_eq!(
        (answer.verdict, answer.bound),
        (Verdict::Forbidden, Some(1))
    );
    // This fails if entering the loop decides which value another thread writes to it.
    let first = format!("{first}; st.relaxed.gpu x, 1");
    let depends = "ld.relaxed.gpu r1, x; beq r1, 0, END; atom.relaxed.gpu.exch r2, f, 1; END:";
    assert!(undecided(&ask("P0:r0 != 0", &[&first, &first, depends], 2)));
    // The lock can be lost any number of times, so no bound proves an outcome impossible if that
    // shows.
    let counts = "LOOP: atom.acquire.gpu.add r0, f, 1; bne r0, 0, LOOP; st.release.gpu f, 0";
    let narrow = "LOOP: atom.acquire.cta.exch r0, f, 1; bne r0, 0, LOOP; st.release.gpu f, 0";
    for code in [counts, narrow] {
        let answer = ask("P0:r0 != 0", &[code, code], 2);
        assert!(undecided(&answer), "{code}");
        assert_eq!(answer.bound, Some(2));
    }
    // A possible outcome is found at the smallest bound.
    let answer = ask("P0:r0 == 0", &[code, code], 4);
    assert_eq!((answer.verdict, answer.bound), (Verdict::Allowed, Some(1)));
}

#[test]
fn a_poll_that_carries_a_value_comes_back_to_it() {
    // The register holds the read of the previous iteration. Weak reads of racing writes may
    // alternate forever, but whenever the register has an earlier value again, nothing has changed.
    let codes = [
        "st.weak f, 1; st.weak f, 2",
        "LOOP: mov r2, r1; ld.weak r1, f; bne r1, 2, LOOP",
    ];
    assert_eq!(ask("P1:r2 == 2", &codes, 4).verdict, Verdict::Forbidden);
    assert_eq!(ask("P1:r2 == 1", &codes, 4).verdict, Verdict::Allowed);
    // Strong reads see at most two changes.
    let codes = [
        "st.relaxed.gpu f, 1; st.relaxed.gpu f, 2",
        "LOOP: mov r2, r1; ld.relaxed.gpu r1, f; bne r1, 2, LOOP",
    ];
    assert_eq!(ask("P1:r2 == 2", &codes, 4).verdict, Verdict::Forbidden);
}

#[test]
fn a_loop_that_nothing_ends_has_no_outcome() {
    let spinning = ask(
        "0 == 0",
        &["LOOP: ld.relaxed.gpu r0, f; beq r0, 0, LOOP"],
        1,
    );
    assert_eq!(
        (spinning.verdict, spinning.bound),
        (Verdict::Forbidden, None)
    );
    assert!(undecided(&ask(
        "0 == 0",
        &["LOOP: st.relaxed.gpu f, 1; goto LOOP"],
        4
    )));
}
