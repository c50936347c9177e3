//! Tests axioms by executions given by hand, for axioms that decide no outcome of ordinary
//! programs.
//!
//! Each comes with a twin that differs in one edge, or one access, and that no axiom rejects.

use super::replay;
use crate::eval::{Assignment, Eval};
use crate::execution::Execution;
use crate::facts::Facts;
use crate::skeleton::base::Base;
use crate::task::Task;
use crate::tests::{parsed, shipped};
use cat::model::ir::Model;
use cat::rel::{EventSet, Rel};
use program::EventKind::{self, Fence, Init, Read, Write};
use program::litmus::LitmusTest;

/// An event: the number of its thread (any, for initial writes), its kind, and its index among the
/// events of that kind.
type Name = (usize, EventKind, usize);

const X: Name = (0, Init, 0);

fn test(memory: &str, codes: &[(u32, &str)]) -> LitmusTest {
    let mut text = format!("name = \"hand\"\n[memory]\n{memory}\n");
    for (cta, code) in codes {
        text += &format!("[[thread]]\ncta = {cta}\ncode = \"{code}\"\n");
    }
    parsed(&text)
}

fn event(facts: &Facts<'_>, (thread, kind, nth): Name) -> usize {
    let is_it = |&i: &usize| {
        let e = &facts.sk.events[i];
        e.kind == kind && (kind == Init || e.thread.is_some_and(|t| usize::from(t.0) == thread))
    };
    (0..facts.sk.len())
        .filter(is_it)
        .nth(nth)
        .expect("the test has that event")
}

/// The execution with these edges; every read returns the value of its source, and coherence has
/// initial writes first.
fn execution(
    facts: &Facts<'_>,
    rf: &[(Name, Name)],
    co: &[(Name, Name)],
    sc: &[(Name, Name)],
) -> Execution {
    let (sk, n) = (&facts.sk, facts.sk.len());
    let edges = |pairs: &[(Name, Name)]| {
        Rel::from_pairs(
            n,
            pairs
                .iter()
                .map(|&(a, b)| (event(facts, a), event(facts, b))),
        )
    };
    let (rf, mut co, sc) = (edges(rf), edges(co), edges(sc));
    let Base::Rel(loc) = facts.base(facts.task.model.signature.find("loc").expect("a base name"))
    else {
        panic!("`loc` is a relation")
    };
    for (i, w) in loc
        .fixed
        .iter()
        .filter(|&(i, w)| sk.events[i].kind == Init && sk.events[w].kind == Write)
    {
        co.insert(i, w);
    }
    let mut known = Assignment {
        reads: vec![None; n],
        choices: Vec::new(),
    };
    let values: Vec<Option<i64>> = {
        let mut eval = Eval::new(sk, &known);
        (0..n)
            .map(|e| {
                if sk.events[e].is_write() {
                    eval.value(e)
                } else {
                    None
                }
            })
            .collect()
    };
    for (w, r) in rf.iter() {
        known.reads[r] = values[w];
    }
    let free = facts.task.model.free.iter().map(|f| match f.name.as_str() {
        "rf" => rf.clone(),
        "co" => co.clone(),
        "sc" => sc.clone(),
        other => panic!("unknown free relation `{other}`"),
    });
    Execution {
        executed: EventSet::full(n),
        reads: known.reads,
        choices: vec![true; sk.pool.choice_count() as usize],
        free: free.collect(),
        finals: Vec::new(),
    }
}

/// The names of the axioms that reject the execution.
fn rejected(
    test: &LitmusTest,
    model: &Model,
    rf: &[(Name, Name)],
    co: &[(Name, Name)],
    sc: &[(Name, Name)],
) -> Vec<String> {
    let facts = Facts::of(&Task::new(test, model, &[], 1), None).expect("small");
    let replayed = match replay(&facts, &execution(&facts, rf, co, sc)) {
        Ok(replayed) => replayed,
        Err(law) => panic!("no candidate execution: {law}"),
    };
    assert!(replayed.complete);
    replayed
        .rejected_by
        .iter()
        .map(|&i| model.axioms[i].name.clone())
        .collect()
}

/// Fence-SC order against base causality order, through a barrier.
#[test]
fn fence_sc_order_does_not_run_against_causality() {
    let test = test(
        "x = 0",
        &[
            (0, "fence.sc.gpu; bar.sync 1"),
            (0, "bar.sync 1; fence.sc.gpu"),
        ],
    );
    let (first, second) = ((0, Fence, 0), (1, Fence, 0));
    let against = [(second, first)];
    assert_eq!(
        rejected(&test, &shipped("ptx-v7.5"), &[], &[], &against),
        ["Fence-SC"]
    );
    // Base causality order contains Fence-SC order, so it is cyclic too under models with that
    // rule.
    assert_eq!(
        rejected(&test, &shipped("ptx"), &[], &[], &against),
        ["Fence-SC", "Well-Formedness"]
    );
    for name in ["ptx-v7.5", "ptx"] {
        assert!(rejected(&test, &shipped(name), &[], &[], &[(first, second)]).is_empty());
    }
}

/// Without the barrier, the fences may come in either order.
#[test]
fn fences_that_causality_leaves_alone_come_in_any_order() {
    let test = test("x = 0", &[(0, "fence.sc.gpu"), (0, "fence.sc.gpu")]);
    let (first, second) = ((0, Fence, 0), (1, Fence, 0));
    assert!(rejected(&test, &shipped("ptx"), &[], &[], &[(first, second)]).is_empty());
    assert!(rejected(&test, &shipped("ptx"), &[], &[], &[(second, first)]).is_empty());
}

/// Store buffering on one location that two proxies reach. Causality order does not cross from one
/// proxy to the other without a proxy fence. But the accesses of each proxy are morally strong, and
/// program order relates the two.
#[test]
fn one_location_is_sequentially_consistent_across_proxies() {
    let memory = "x = 0\ns = { alias = \"x\", proxy = \"surface\" }";
    let code = |read: &str| {
        test(
            memory,
            &[
                (0, "st.relaxed.gpu x, 1; suld.relaxed.gpu r0, s"),
                (1, &format!("sust.relaxed.gpu s, 2; {read} r0, x")),
            ],
        )
    };
    let stale = [(X, (0, Read, 0)), (X, (1, Read, 0))];
    for name in ["ptx-v7.5", "ptx"] {
        let model = shipped(name);
        assert_eq!(
            rejected(&code("ld.relaxed.gpu"), &model, &stale, &[], &[]),
            ["SC-per-Location"]
        );
        // A weak read is not morally strong with any access of another thread.
        assert!(rejected(&code("ld.weak"), &model, &stale, &[], &[]).is_empty());
        // One of the reads sees the other thread's write.
        let fresh = [((1, Write, 0), (0, Read, 0)), (X, (1, Read, 0))];
        assert!(rejected(&code("ld.relaxed.gpu"), &model, &fresh, &[], &[]).is_empty());
    }
}

/// A read that goes back in coherence order, the textbook case: causality excludes it as well.
#[test]
fn reads_of_one_location_follow_coherence() {
    let test = test(
        "x = 0",
        &[
            (0, "st.relaxed.gpu x, 1"),
            (1, "ld.relaxed.gpu r0, x; ld.relaxed.gpu r1, x"),
        ],
    );
    let write = (0, Write, 0);
    let (first, second) = ((1, Read, 0), (1, Read, 1));
    let back = [(write, first), (X, second)];
    assert_eq!(
        rejected(&test, &shipped("ptx"), &back, &[], &[]),
        ["SC-per-Location", "Causality"]
    );
    let forth = [(X, first), (write, second)];
    assert!(rejected(&test, &shipped("ptx"), &forth, &[], &[]).is_empty());
}

/// Load buffering with fences through the surface proxy, between CTAs: each fence would synchronize
/// with the other. No causality order relates accesses of that proxy, so only base causality order
/// shows it.
#[test]
fn base_causality_order_is_acyclic() {
    let memory = "x = 0\ny = 0\ns = { alias = \"x\", proxy = \"surface\" }\nt = { alias = \"y\", proxy = \"surface\" }";
    let code = |cta: u32, fence: &str| {
        test(
            memory,
            &[
                (
                    0,
                    "suld.relaxed.gpu r0, s; fence.acq_rel.gpu; sust.relaxed.gpu t, 1",
                ),
                (
                    cta,
                    &format!("suld.relaxed.gpu r0, t; {fence}; sust.relaxed.gpu s, 1"),
                ),
            ],
        )
    };
    let crossed = [((1, Write, 0), (0, Read, 0)), ((0, Write, 0), (1, Read, 0))];
    let ptx = shipped("ptx");
    assert_eq!(
        rejected(&code(1, "fence.acq_rel.gpu"), &ptx, &crossed, &[], &[]),
        ["Well-Formedness"]
    );
    // In one CTA causality order relates them: a write to itself by way of the read that observes
    // it, too.
    assert_eq!(
        rejected(&code(0, "fence.acq_rel.gpu"), &ptx, &crossed, &[], &[]),
        ["Coherence", "Causality", "Well-Formedness"]
    );
    assert!(rejected(&code(1, "fence.acq_rel.cta"), &ptx, &crossed, &[], &[]).is_empty());
    // The published text has no such rule.
    assert!(
        rejected(
            &code(1, "fence.acq_rel.gpu"),
            &shipped("ptx-v7.5"),
            &crossed,
            &[],
            &[]
        )
        .is_empty()
    );
}
