//! Orders accesses by mbarrier objects: which arrivals a wait has seen, whatever the number of
//! rounds.
//!
//! A ring has stages. An object of a stage goes from phase to phase, and threads come back to the
//! stage after a fixed number of iterations. So the iteration gives the number of an arrival at the
//! object, and of a wait.
//!
//! # The argument
//! - *Waits*: a thread waits at an object for phases of parities 0, 1, 0, … in turn. Behind its
//!   wait number `n`, at least `n + 1` phases are complete: the number of phases never falls, and
//!   the parity tells `n` from `n + 1`. If the first parity is 1, at least `n` are.
//! - *Arrivals*: at most `c` threads arrive at an object of `c` arrivals, and none arrives a number
//!   `n` before `n` phases are complete. Then each of the `c` has arrived `n` times when `n` phases
//!   are complete.
//! - So what comes before the arrival number `n` of a thread happens before what comes behind a
//!   wait that has seen more than `n` phases (*mbarrier-sync* in `models/ptx.cat`). A wait that is
//!   late sees a later arrival of the same thread.
//! - That no arrival is early follows where one thread arrives, from a wait at the same object, or
//!   from a wait at another object, whose arrivals come behind waits at this one. Such reasons may
//!   go around in a circle: each is about an earlier time.
//!
//! # Sources
//! - PTX ISA 9.4, *mbarrier*: Phase, Phase completion; `mbarrier.test_wait`.

use std::time::Duration;

use program::{BinOp, CmpOp, Init, LocId, LocationKind, Program, Ty, mbarrier};
use rustc_hash::FxHashMap;

use crate::operations::{Handover, ObjectOp, ObjectRole};
use crate::pairs::{SymbolicRun, Together, Two};
use crate::solver::{Said, SolverConstants, ask};
use crate::term::{Level, Node, Origin, Term};
use crate::{integers, words};

/// The time for one question.
const QUESTION: Duration = Duration::from_secs(2);

/// The most stages of a ring.
const MOST_STAGES: i64 = 1024;

/// A wait whose parities are in turn.
struct ParityWait {
    op: ObjectOp,
    number: Term,
    /// How many more phases than its number are complete behind it.
    ahead: i64,
}

/// Arrivals of threads that are no more than the object expects.
struct Arrivals {
    op: ObjectOp,
    number: Term,
    is_one: bool,
}

/// Finds the handovers of a kernel. `wraps`: numbers are machine words.
pub(crate) fn handovers(run: &mut SymbolicRun, program: &Program, wraps: bool) -> Vec<Handover> {
    let objects = run.behaviour.objects.clone();
    let (mut waits, mut arrivals) = (Vec::new(), Vec::new());
    let mut proof = PhaseProof { run, wraps };
    for op in &objects {
        match op.role {
            ObjectRole::Wait(parity) => waits.extend(proof.awaited(op, parity)),
            ObjectRole::Arrive => arrivals.extend(proof.arrivals(op, &objects, program)),
            ObjectRole::Init(_) | ObjectRole::Other => {}
        }
    }
    // The reasons may go around in a circle, so those that fail fall away one after the other.
    loop {
        let before = arrivals.len();
        let kept: Vec<bool> = (0..before)
            .map(|n| proof.is_in_time(n, &arrivals, &waits))
            .collect();
        let mut kept = kept.into_iter();
        arrivals.retain(|_| kept.next() == Some(true));
        if arrivals.len() == before {
            break;
        }
    }
    let pairs = arrivals
        .iter()
        .flat_map(|a| waits.iter().map(move |w| (a, w)));
    let pairs =
        pairs.filter(|(a, w)| a.op.object == w.op.object && a.op.synchronizes && w.op.synchronizes);
    let handover = |(a, w): (&Arrivals, &ParityWait)| Handover {
        arrival: a.op.clone(),
        number: a.number,
        wait: w.op.clone(),
        complete: proof.complete(w),
    };
    pairs.map(handover).collect()
}

/// Asks questions about operations on objects.
struct PhaseProof<'a> {
    run: &'a mut SymbolicRun,
    /// Whether all questions are about machine words, where numbers wrap around.
    wraps: bool,
}

impl PhaseProof<'_> {
    /// Whether conditions cannot hold together. Where that takes sums not to overflow, the numbers
    /// of all operations on objects are held against their types ([`crate::overflow`]).
    fn never(&mut self, conditions: &[Term]) -> bool {
        if !self.wraps {
            let (text, overflow) = integers::question(&mut self.run.terms, conditions);
            if ask(&text, QUESTION, SolverConstants::Nothing) == Said::No {
                self.run.trusts_phases |= overflow;
                return true;
            }
        }
        let text = words::question(&self.run.terms, conditions);
        ask(&text, QUESTION, SolverConstants::Nothing) == Said::No
    }

    /// What holds of a thread at some operations.
    fn facts(&self, ops: &[&ObjectOp]) -> Vec<Term> {
        let setting = &self.run.setting;
        let mut all = [&setting.facts[..], &setting.of_thread].concat();
        ops.iter().for_each(|op| all.extend(&op.facts));
        all
    }

    /// How many times a thread did an operation at the same object before; `None`: the iteration
    /// does not tell.
    fn number(&mut self, op: &ObjectOp) -> Option<Term> {
        let k = match op.iterations[..] {
            [] => return Some(self.run.terms.int(0)),
            [k] => k,
            _ => return None,
        };
        let range = self.run.terms.range(k);
        let terms = &mut self.run.terms;
        let other = terms.fresh("other iteration", Level::Grid, Origin::Iteration, range);
        let by = FxHashMap::from_iter([(k, other)]);
        let mut facts = self.facts(&[op]);
        let terms = &mut self.run.terms;
        facts.extend(op.facts.iter().map(|t| terms.replace(*t, &by)));
        let (guard, head) = (terms.replace(op.guard, &by), terms.replace(op.head, &by));
        let earlier = terms.cmp(CmpOp::Lt, Ty::WORD, other, k);
        let not = terms.not(guard);
        // It does so in each iteration before.
        let skipped = [&facts[..], &[op.guard, head, earlier, not]].concat();
        if !self.never(&skipped) {
            return None;
        }
        let periods = self.periods(op);
        periods
            .into_iter()
            .find(|n| self.has_period(op, *n, (k, other), &facts))
            .map(|n| {
                let n = self.run.terms.int(n);
                self.run.terms.bin(BinOp::Div, Ty::WORD, k, n)
            })
    }

    /// Numbers of stages that a ring may have: one, and the divisors that its code has.
    fn periods(&self, op: &ObjectOp) -> Vec<i64> {
        let mut all = vec![1];
        let parity = match op.role {
            ObjectRole::Wait(parity) => Some(parity),
            _ => None,
        };
        let roots: Vec<Term> = [Some(op.offset), parity].into_iter().flatten().collect();
        let terms = &self.run.terms;
        terms.visit(&roots, &mut |t| {
            if let Node::Bin(BinOp::Rem | BinOp::Div, _, _, n) = *terms.node(t) {
                let size = terms.constant(n);
                all.extend(size.filter(|n| (2..=MOST_STAGES).contains(n)));
            }
            if let Node::Bin(BinOp::And, _, _, n) = *terms.node(t) {
                let size = terms.constant(n).map(|n| n + 1);
                all.extend(size.filter(|n| (2..=MOST_STAGES).contains(n)));
            }
        });
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether a thread comes to the same object in just those iterations that differ by a multiple
    /// of a number.
    fn has_period(&mut self, op: &ObjectOp, n: i64, pair: (Term, Term), facts: &[Term]) -> bool {
        let (k, other) = pair;
        let terms = &mut self.run.terms;
        let by = FxHashMap::from_iter([(k, other)]);
        let offset = terms.replace(op.offset, &by);
        let n = terms.int(n);
        let stages = [k, other].map(|k| terms.bin(BinOp::Rem, Ty::WORD, k, n));
        let same_stage = terms.cmp(CmpOp::Eq, Ty::WORD, stages[0], stages[1]);
        let same_object = terms.cmp(CmpOp::Eq, Ty::WORD, op.offset, offset);
        let (not_stage, not_object) = (terms.not(same_stage), terms.not(same_object));
        let moved = [facts, &[same_stage, not_object]].concat();
        let met = [facts, &[not_stage, same_object]].concat();
        self.never(&moved) && self.never(&met)
    }

    /// A wait whose parities are in turn.
    fn awaited(&mut self, op: &ObjectOp, parity: Term) -> Option<ParityWait> {
        let number = self.number(op)?;
        let is_in_turn = |ahead: &i64| {
            let facts = self.facts(&[op]);
            let terms = &mut self.run.terms;
            let by = terms.int(ahead + 1);
            let turn = terms.plus(number, by);
            let two = terms.int(2);
            let turn = terms.bin(BinOp::Rem, Ty::WORD, turn, two);
            let other = terms.cmp(CmpOp::Ne, Ty::WORD, parity, turn);
            self.never(&[&facts[..], &[op.guard, other]].concat())
        };
        let ahead = [1, 0].into_iter().find(is_in_turn)?;
        Some(ParityWait {
            op: op.clone(),
            number,
            ahead,
        })
    }

    /// How many phases are complete behind a wait.
    fn complete(&mut self, wait: &ParityWait) -> Term {
        let ahead = self.run.terms.int(wait.ahead);
        self.run.terms.plus(wait.number, ahead)
    }

    /// Arrivals of no more threads than the object expects.
    fn arrivals(
        &mut self,
        op: &ObjectOp,
        objects: &[ObjectOp],
        program: &Program,
    ) -> Option<Arrivals> {
        let number = self.number(op)?;
        let mut counts: Vec<Term> = made(program, op.object)
            .map(|count| self.run.terms.int(count))
            .into_iter()
            .collect();
        for other in objects.iter().filter(|other| other.object == op.object) {
            let is_itself = other.order == op.order;
            if is_itself || matches!(other.role, ObjectRole::Wait(_)) || self.differ(op, other) {
                continue;
            }
            match other.role {
                ObjectRole::Init(count) => counts.push(count),
                _ => return None,
            }
        }
        counts.sort_unstable();
        counts.dedup();
        let [count] = counts[..] else { return None };
        let terms = &self.run.terms;
        let is_shared = terms.level(count) != Level::Thread && !terms.has(&[count], Origin::Free);
        (is_shared && self.are_at_most(op, count)).then(|| Arrivals {
            op: op.clone(),
            number,
            is_one: self.run.terms.constant(count) == Some(1),
        })
    }

    /// Whether two operations never are of the same object.
    fn differ(&mut self, a: &ObjectOp, b: &ObjectOp) -> bool {
        [Together::Thread, Together::Block].into_iter().all(|how| {
            let conditions = self.of_two(how, [&[a], &[b]], |two| {
                vec![two.are_equal([a.offset, b.offset])]
            });
            self.never(&conditions)
        })
    }

    /// Whether at most `count` threads of a block do an operation on one object: their numbers in
    /// the block are less than that apart.
    fn are_at_most(&mut self, op: &ObjectOp, count: Term) -> bool {
        let rank = self.run.setting.rank;
        let conditions = self.of_two(Together::Block, [&[op], &[op]], |two| {
            let same = two.are_equal([op.offset; 2]);
            let (first, second) = (two.of(0, rank), two.of(1, rank));
            let behind = two.of(1, count);
            let behind = two.terms.plus(second, behind);
            let far = two.terms.cmp(CmpOp::Ge, Ty::WORD, first, behind);
            vec![same, far]
        });
        self.never(&conditions)
    }

    /// The condition that two threads do operations, and some more; each does its own in the same
    /// iteration.
    fn of_two(
        &mut self,
        together: Together,
        ops: [&[&ObjectOp]; 2],
        more: impl FnOnce(&mut Two<'_>) -> Vec<Term>,
    ) -> Vec<Term> {
        let mut two = Two::new(self.run, together);
        let mut all = two.apart();
        for (which, ops) in ops.into_iter().enumerate() {
            for t in ops.iter().flat_map(|op| op.facts.iter().chain([&op.guard])) {
                let t = two.of(which, *t);
                all.push(t);
            }
        }
        all.extend(more(&mut two));
        all
    }

    /// Whether no thread arrives a number `n` before `n` phases are complete.
    fn is_in_time(&mut self, n: usize, arrivals: &[Arrivals], waits: &[ParityWait]) -> bool {
        let own = &arrivals[n];
        if own.is_one {
            return true;
        }
        let mine: Vec<(&ParityWait, i64)> = waits
            .iter()
            .filter_map(|wait| Some((wait, self.seen(&own.op, wait)?)))
            .collect();
        if mine.iter().any(|(wait, seen)| {
            let same = wait.op.object == own.op.object && *seen >= 0;
            same && self.is_same_object(&own.op, &wait.op)
        }) {
            return true;
        }
        mine.iter().any(|(wait, seen)| {
            let by = arrivals.iter().filter(|a| a.op.object == wait.op.object);
            let mut back = by.flat_map(|a| waits.iter().map(move |w| (a, w)));
            back.any(|(other, behind)| {
                let is_before = behind.op.order < other.op.order;
                // Only a release that is acquired tells what its thread has seen.
                behind.op.object == own.op.object
                    && is_before
                    && other.op.synchronizes
                    && wait.op.synchronizes
                    && self
                        .seen(&other.op, behind)
                        .is_some_and(|ahead| seen + ahead >= 1)
                    && self.comes_back(own, wait, other, behind)
            })
        })
    }

    /// How many phases more than the number of its arrival a thread has seen complete by a wait in
    /// the same loop; `None`: the wait does not belong to the arrival.
    fn seen(&mut self, arrival: &ObjectOp, wait: &ParityWait) -> Option<i64> {
        if arrival.iterations != wait.op.iterations {
            return None;
        }
        let is_before = wait.op.order < arrival.order;
        let facts = self.facts(&[arrival]);
        let skips = self.run.terms.not(wait.op.guard);
        let skipped = [&facts[..], &[arrival.guard, skips]].concat();
        let waits = self.never(&skipped);
        // One that comes behind the arrival was passed a round before.
        let rounds = i64::from(!is_before);
        (waits && (is_before || !arrival.iterations.is_empty())).then(|| wait.ahead - rounds)
    }

    /// Whether a thread does two operations of an iteration on the same object.
    fn is_same_object(&mut self, a: &ObjectOp, b: &ObjectOp) -> bool {
        let facts = self.facts(&[a, b]);
        let differ = self.run.terms.cmp(CmpOp::Ne, Ty::WORD, a.offset, b.offset);
        self.never(&[&facts[..], &[a.guard, b.guard, differ]].concat())
    }

    /// Whether a thread that arrives and waits meets the arrivals of others, who have waited for
    /// the object at which it arrives.
    fn comes_back(
        &mut self,
        own: &Arrivals,
        wait: &ParityWait,
        other: &Arrivals,
        behind: &ParityWait,
    ) -> bool {
        let ops: [&[&ObjectOp]; 2] = [&[&own.op, &wait.op], &[&other.op, &behind.op]];
        [Together::Thread, Together::Block].into_iter().all(|how| {
            let conditions = self.of_two(how, ops, |two| {
                let met = two.are_equal([wait.op.offset, other.op.offset]);
                let back = two.are_equal([own.op.offset, behind.op.offset]);
                let numbers = [wait.number, own.number].map(|n| two.of(0, n));
                let others = [behind.number, other.number].map(|n| two.of(1, n));
                let parts =
                    [numbers, others].map(|[a, b]| two.terms.cmp(CmpOp::Ne, Ty::WORD, a, b));
                let not_back = two.terms.not(back);
                let wrong = two.terms.or(vec![not_back, parts[0], parts[1]]);
                vec![met, wrong]
            });
            self.never(&conditions)
        })
    }
}

/// The count of the objects of an array that memory begins with; `None`: it has none.
fn made(program: &Program, object: LocId) -> Option<i64> {
    let LocationKind::Object { init, .. } = &program.location(object).kind else {
        return None;
    };
    let counts: Vec<i64> = init
        .iter()
        .map(|word| match word {
            Init::Int(word) if mbarrier::phase_of(*word) == 0 => mbarrier::count_of(*word),
            _ => 0,
        })
        .collect();
    match counts[..] {
        [first, ..] if first != 0 && counts.iter().all(|n| *n == first) => Some(first),
        _ => None,
    }
}
