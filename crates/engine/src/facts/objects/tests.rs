//! Tests that the results for mbarrier objects hold in all executions, by queries to engines
//! without these results.

use std::time::{Duration, Instant};

use super::*;
use crate::engines::{Reply, TaskEngines};
use crate::facts::passes::PASSES;
use crate::facts::passes::tests::without;
use crate::limits::Engine;
use crate::query::{Deadline, Query};
use crate::skeleton::domain::{Domains, KnownFacts};
use crate::tests::{corpus, parsed, shipped as model_of};
use cat::model::ir::Model;
use program::litmus::LitmusTest;
use program::{CmpOp, Ty};

/// All tests with mbarrier objects under `litmus/`.
fn shipped() -> Vec<LitmusTest> {
    let mut tests = corpus("mbarrier");
    tests.retain(|test| test.program.has_mbarriers());
    tests
}

/// The program of `n` threads with this code; its objects expect one arrival of each.
fn alike(n: usize, code: &str) -> LitmusTest {
    let mut text = format!(
        "name = \"alike\"\n[memory]\nb = {{ type = \"mbarrier\", init = {n}, space = \"shared\" }}\n"
    );
    (0..n).for_each(|_| text += &format!("[[thread]]\ncta = 0\ncode = '''\n{code}\n'''\n"));
    parsed(&text)
}

/// Facts with the results for objects with more than `few` operations; `None` leaves the pass out.
fn facts<'a>(
    test: &'a LitmusTest,
    model: &'a Model,
    few: Option<usize>,
    deadline: Instant,
) -> Option<Facts<'a>> {
    FROM.set(few.unwrap_or(FEW));
    let passes = few.map_or_else(|| without("objects"), |_| PASSES.to_vec());
    let facts = Facts::by(&passes, &Task::new(test, model, &[], 2), Some(deadline)).ok();
    FROM.set(FEW);
    facts
}

/// The results for a task that was built without them.
fn known(facts: &Facts<'_>) -> Option<ObjectResults> {
    let bounds = TaskBounds::new(facts, &vec![true; facts.task.model.axioms.len()], None)?;
    FROM.set(0);
    let found = found(facts, &bounds, None);
    FROM.set(FEW);
    (!found.words.is_empty()).then_some(found)
}

/// A block in which all threads arrive at one object, wait for its phase, and read the earlier
/// write of their neighbour. If the object expects one arrival less, a wait may pass before the
/// last one comes.
const MEET: &str = r#"name = "meet"
condition = 'out[0] == 0'

[memory]
x = { init = 0, type = "u32", size = 16, space = "shared" }
out = { init = 1, type = "u32" }
b = { type = "mbarrier", init = "${count}", space = "shared" }

[kernel]
grid = 1
block = 16
code = """
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    cvt.u64.u32 %rd1, %r2;
    add.u64 %rd2, x, %rd1;
    st.shared.u32 [%rd2], 1;
    mbarrier.arrive.shared.b64 _, [b];
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p1, [b], 0;
    @!%p1 bra WAIT;
    add.u32 %r3, %r1, 1;
    and.b32 %r3, %r3, 15;
    shl.b32 %r3, %r3, 2;
    cvt.u64.u32 %rd3, %r3;
    add.u64 %rd4, x, %rd3;
    ld.shared.u32 %r4, [%rd4];
    setp.ne.u32 %p2, %r1, 3;
    @%p2 exit;
    st.u32 [out], %r4;
"""
"#;

/// One thread has a bulk copy bring 16 bytes to shared memory; all wait for the phase that it
/// completes, and one of them reads.
const BRING: &str = r#"name = "bring"
condition = 'out[0] == 0'

[memory]
g = { init = [7, 7, 7, 7], type = "u32" }
x = { init = [0, 0, 0, 0], type = "u32", space = "shared" }
out = { init = 1, type = "u32" }
b = { type = "mbarrier", init = 1, space = "shared" }

[kernel]
grid = 1
block = 16
code = """
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra OTHERS;
    mbarrier.arrive.expect_tx.shared.b64 _, [b], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [x], [g], 16, [b];
OTHERS:
    setp.eq.u32 %p2, %r1, 3;
    ${skip}
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p3, [b], 0;
    @!%p3 bra WAIT;
READ:
    @!%p2 exit;
    ld.shared.u32 %r4, [x+8];
    st.u32 [out], %r4;
"""
"#;

const BARRIER: &str = "mbarrier.arrive.shared.b64 _, [b];\nmbarrier.wait [b], 0;";

#[test]
fn arrivals_find_as_many_words_as_there_are_and_waits_one() {
    let model = model_of("ptx");
    for n in 2..6 {
        let test = alike(
            n,
            &format!("{BARRIER}\nmbarrier.arrive.shared.b64 _, [b];\nmbarrier.wait [b], 1;"),
        );
        let facts = facts(
            &test,
            &model,
            None,
            Instant::now() + Duration::from_secs(60),
        )
        .expect("a task");
        let found = known(&facts).expect("an object");
        for &((r, w), _, _) in &found.runs[0] {
            // By operation of its thread: the phases in which it can write, and the number of words
            // that it can find there.
            let at = found.runs[0].iter().filter(|turn| {
                turn.0.1 < w && facts.sk.events[turn.0.1].thread == facts.sk.events[w].thread
            });
            let at = at.count() as i64;
            let phase = (at + 1) / 2;
            assert_eq!(
                found.phases.get(&w),
                Some(&phase),
                "operation {at} of {n} threads"
            );
            let here = found.words[&r]
                .iter()
                .filter(|&&word| phase_of(word) == phase);
            // Before a wait, others may have arrived in the next phase, if there is one.
            assert_eq!(
                here.count(),
                if at == 3 { 1 } else { n },
                "operation {at} of {n} threads"
            );
        }
        assert_eq!(found.runs[0].len(), 4 * n);
    }
}

#[test]
fn no_execution_has_what_is_not_found() {
    let model = model_of("ptx");
    let (mut asked, mut objects) = (0, 0);
    for test in shipped().iter().step_by(2) {
        let deadline = Instant::now() + Duration::from_secs(2);
        let Some(mut facts) =
            facts(test, &model, None, deadline).filter(|facts| facts.implied.is_empty())
        else {
            continue;
        };
        let Some(found) = known(&facts) else { continue };
        let mut others = Vec::new();
        for (&r, words) in &found.words {
            let (value, guard) = (
                facts.sk.events[r].value.expect("reads have values"),
                facts.sk.events[r].guard,
            );
            let pool = &mut facts.sk.pool;
            let other = words.iter().fold(guard, |other, &word| {
                let word = pool.constant(word);
                let same = pool.cmp(CmpOp::Eq, Ty::WORD, value, word);
                let differs = pool.not(same);
                pool.and(other, differs)
            });
            others.push(other);
        }
        for (w, now, _) in facts.sk.phases.clone() {
            let guard = facts.sk.events[w.index()].guard;
            if let Some(&phase) = found.phases.get(&w.index()) {
                let pool = &mut facts.sk.pool;
                let phase = pool.constant(phase);
                let same = pool.cmp(CmpOp::Eq, Ty::WORD, now, phase);
                let differs = pool.not(same);
                others.push(pool.and(guard, differs));
            }
        }
        // Lists values for the new constants, too.
        facts.domains = Domains::compute(&facts.sk, &[], &KnownFacts::default(), None, false, None)
            .expect("as before");
        objects += 1;
        let mut prepared = TaskEngines::new(facts);
        for other in others.into_iter().filter(|&other| other != Cond::FALSE) {
            let query = Query {
                complete: false,
                require: other,
                ..Query::complete(&model)
            };
            let said = prepared
                .ask(Engine::Sat, &query, Deadline(Some(deadline)))
                .0;
            assert!(
                !matches!(said.found(), Ok(Some(_))),
                "{}: an operation finds what it cannot",
                test.name
            );
            asked += 1;
        }
    }
    assert!(
        objects > 40 && asked > 80,
        "{objects} tests, {asked} questions"
    );
}

#[test]
fn what_is_known_of_objects_changes_no_outcome() {
    let model = model_of("ptx");
    let mut compared = 0;
    for test in shipped().iter().skip(1).step_by(2) {
        let deadline = Instant::now() + Duration::from_secs(2);
        let states = |few: Option<usize>| {
            let facts = facts(test, &model, few, deadline)?;
            let is_known = !facts.implied.objects.words.is_empty();
            let mut prepared = TaskEngines::new(facts);
            let (states, why, _) = prepared.all_states(
                Engine::Sat,
                &Query::complete(&model),
                Deadline(Some(deadline)),
            );
            why.is_none().then_some((states, is_known))
        };
        let (Some((with, true)), Some((without, false))) = (states(Some(0)), states(None)) else {
            continue;
        };
        assert_eq!(with, without, "{}", test.name);
        compared += 1;
    }
    assert!(compared > 40, "{compared}");
}

#[test]
fn a_block_that_meets_at_an_object_is_decided() {
    let model = model_of("ptx");
    let rows = [
        (MEET, "${count}", "16", false),
        (MEET, "${count}", "15", true),
        (BRING, "${skip}", "", false),
        (BRING, "${skip}", "@%p2 bra READ;", true),
    ];
    for (text, placeholder, value, allowed) in rows {
        let text = text.replace(placeholder, value);
        let test = parsed(&text);
        let facts = facts(
            &test,
            &model,
            Some(FEW),
            Instant::now() + Duration::from_secs(600),
        )
        .expect("a task");
        let condition = test.condition.as_ref().expect("it asks something");
        let query = Query {
            props: vec![(condition, true)],
            ..Query::complete(&model)
        };
        match TaskEngines::new(facts)
            .ask(Engine::Sat, &query, Deadline(None))
            .0
        {
            Reply::Yes(_) => assert!(allowed, "{text}"),
            Reply::No => assert!(!allowed, "{text}"),
            _ => panic!("not decided: {text}"),
        }
    }
}
