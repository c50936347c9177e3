//! Asks questions about two threads: over the integers, then over machine words.

use std::time::Duration;

use program::{CmpOp, Ty};
use rustc_hash::FxHashMap;

use crate::pairs::{PairQuestion, SymbolicRun};
use crate::solver::{Said, SolverConstants, ask};
use crate::term::{Origin, Term, Terms};
use crate::{integers, words};

/// Asks a question in one arithmetic and then the other; with it, whether free values take part,
/// and whether sums were taken not to overflow.
pub(crate) fn asked(
    run: &mut SymbolicRun,
    mut question: PairQuestion,
    time: Duration,
) -> (Said, bool, bool) {
    let whole = [&question.conditions[..], question.unordered.as_slice()].concat();
    let whole = run.terms.and(whole);
    if run.terms.constant(whole) == Some(0) {
        return (Said::No, false, false);
    }
    let mut over = unify(run, &mut question, time);
    let terms = &mut run.terms;
    question.conditions.extend(question.unordered);
    let (text, overflow) = integers::question(terms, &question.conditions);
    if ask(&text, time, SolverConstants::Nothing) == Said::No {
        return (Said::No, false, over | overflow);
    }
    let mut unified = false;
    for (x, y) in question.iterations.clone() {
        let differ = terms.cmp(CmpOp::Ne, Ty::WORD, x, y);
        let mut all = question.conditions.clone();
        all.push(differ);
        let (text, overflow) = integers::question(terms, &all);
        if ask(&text, time, SolverConstants::Nothing) == Said::No {
            over |= overflow;
            unified = true;
            let by = FxHashMap::from_iter([(y, x)]);
            let conditions = std::mem::take(&mut question.conditions).into_iter();
            question.conditions = conditions.map(|t| terms.replace(t, &by)).collect();
        }
    }
    if unified {
        let (text, overflow) = integers::question(terms, &question.conditions);
        if ask(&text, time, SolverConstants::Nothing) == Said::No {
            return (Said::No, false, over | overflow);
        }
    }
    let (said, free) = said_of_words(terms, &question, time);
    (said, free, over)
}

/// The same in the arithmetic of machines alone.
pub(crate) fn asked_of_words(
    run: &mut SymbolicRun,
    mut question: PairQuestion,
    time: Duration,
) -> (Said, bool, bool) {
    question.conditions.extend(question.unordered);
    let (said, free) = said_of_words(&run.terms, &question, time);
    (said, free, false)
}

fn said_of_words(terms: &Terms, question: &PairQuestion, time: Duration) -> (Said, bool) {
    let text = words::question(terms, &question.conditions);
    let places = question.places.iter().flatten();
    let names: Vec<String> = places.map(|(_, t)| format!("t{}", t.0)).collect();
    let said = ask(&text, time, SolverConstants::Words(&names));
    (said, terms.has(&question.conditions, Origin::Free))
}

/// Unifies the iterations of two threads that must be equal if no barrier comes between. Returns
/// whether that takes sums not to overflow. Accesses in the same iterations share the answer.
fn unify(run: &mut SymbolicRun, question: &mut PairQuestion, time: Duration) -> bool {
    let Some(unordered) = question.unordered else {
        return false;
    };
    let mut over = false;
    let mut open = Vec::new();
    for (x, y) in std::mem::take(&mut question.iterations) {
        let differ = run.terms.cmp(CmpOp::Ne, Ty::WORD, x, y);
        let mut all = question.common.clone();
        all.extend([unordered, differ]);
        let equal = match run.equal.get(&all) {
            Some(equal) => *equal,
            None => {
                let (text, overflow) = integers::question(&mut run.terms, &all);
                let equal = ask(&text, time, SolverConstants::Nothing) == Said::No;
                let equal = equal.then_some(overflow);
                run.equal.insert(all, equal);
                equal
            }
        };
        let Some(overflow) = equal else {
            open.push((x, y));
            continue;
        };
        over |= overflow;
        let by = FxHashMap::from_iter([(y, x)]);
        let mut put = |t: Term| run.terms.replace(t, &by);
        let conditions = std::mem::take(&mut question.conditions).into_iter();
        question.conditions = conditions.map(&mut put).collect();
        let common = std::mem::take(&mut question.common).into_iter();
        question.common = common.map(&mut put).collect();
        question.unordered = question.unordered.map(put);
    }
    question.iterations = open;
    over
}
