//! Orders accesses by mbarrier objects: which arrivals a wait has seen, whatever the number of
//! rounds.
//!
//! A ring has stages. An object of a stage goes from phase to phase, and threads come back to the
//! stage after a fixed number of iterations. So the iteration gives the number of an arrival at the
//! object, and of a wait.
//!
//! # The argument
//! - *Waits for a parity*: a thread waits at an object for phases of parities 0, 1, 0, … in turn.
//!   Behind its wait number `n`, at least `n + 1` phases are complete: the number of phases never
//!   falls, and the parity tells `n` from `n + 1`. If the first parity is 1, at least `n` are.
//! - *Waits for a token*: behind a wait for the phase in which an arrival number `n` of the thread
//!   fell, at least `n + 1` phases are complete, if no arrival is early.
//! - *Arrivals*: at most `c` threads arrive at an object of `c` arrivals, and none arrives a number
//!   `n` before `n` phases are complete. Then each of the `c` has arrived `n` times when `n` phases
//!   are complete.
//! - So what comes before the arrival number `n` of a thread happens before what comes behind a
//!   wait that has seen more than `n` phases (*mbarrier-sync* in `models/ptx.cat`, and
//!   *release-acquire* in `models/cuda-base.cat`). A wait that is late sees a later arrival of the
//!   same thread.
//! - Threads may arrive at an object in several places of the code. An arrival counts those of its
//!   thread before it, or more: that asks for more complete phases, and so proves less.
//! - That no arrival is early follows where one thread arrives, or from a wait at the same object.
//!   It also follows from a wait at another object, if arrivals there come behind waits at this
//!   one. Where other threads arrive there, too, but fewer than `c`, some thread has come that way.
//!   Such reasons may go around in a circle: each is about an earlier time.
//!
//! # Sources
//! - PTX ISA 9.4, *mbarrier*: Phase, Phase completion; `mbarrier.test_wait`.
//! - ISO C++, thread.barrier.class.

use std::time::Duration;

use program::{BinOp, CmpOp, Init, LocId, LocationKind, Program, Ty, mbarrier};
use rustc_hash::FxHashMap;

use crate::exec::MemoryEffect;
use crate::operations::{Handover, ObjectOp, ObjectRole};
use crate::pairs::{SymbolicRun, Together, Two};
use crate::solver::{Said, SolverConstants, ask};
use crate::term::{Level, Node, Origin, Term};
use crate::{integers, words};

/// The time for one question.
const QUESTION: Duration = Duration::from_secs(2);

/// The most stages of a ring.
const MOST_STAGES: i64 = 1024;

/// A wait that tells how many phases are complete.
struct PhaseWait {
    op: ObjectOp,
    number: Term,
    /// How many more phases than its number are complete behind it.
    ahead: i64,
    /// The wait has the token of this arrival, a place in the code. The arrival must not be early.
    of: Option<usize>,
}

/// How many phases a thread has seen complete by a wait, before or behind it.
#[derive(Clone, Copy)]
struct SeenPhases<'w> {
    wait: &'w PhaseWait,
    complete: Term,
}

/// Arrivals of threads that are no more than the object expects.
struct Arrivals {
    op: ObjectOp,
    /// How many times their thread arrived at the object before, or more.
    number: Term,
    /// How many arrivals complete a phase.
    count: Term,
}

/// Finds the handovers of a kernel. `wraps`: numbers are machine words.
pub(crate) fn handovers(run: &mut SymbolicRun, program: &Program, wraps: bool) -> Vec<Handover> {
    let objects = run.behaviour.objects.clone();
    let (mut waits, mut arrivals) = (Vec::new(), Vec::new());
    let mut proof = PhaseProof {
        run,
        wraps,
        answers: FxHashMap::default(),
        numbers: FxHashMap::default(),
    };
    for op in &objects {
        match op.role {
            ObjectRole::Wait(parity) => waits.extend(proof.awaited(op, parity)),
            ObjectRole::WaitFor(token) => waits.extend(proof.awaited_by(op, token, &objects)),
            ObjectRole::Arrive => arrivals.extend(proof.arrivals(op, &objects, program)),
            ObjectRole::Init(_) | ObjectRole::Other => {}
        }
    }
    // The reasons may go around in a circle, so those that fail fall away one after the other.
    loop {
        let before = arrivals.len();
        let kept: Vec<bool> = (0..before)
            .map(|n| {
                proof.are_all(&arrivals[n].op, &objects, &arrivals)
                    && proof.is_in_time(n, &objects, &arrivals, &waits)
            })
            .collect();
        let mut kept = kept.into_iter();
        arrivals.retain(|_| kept.next() == Some(true));
        waits.retain(|wait: &PhaseWait| {
            let is_kept = |of: usize| arrivals.iter().any(|a| a.op.order == of);
            wait.of.is_none_or(is_kept)
        });
        if arrivals.len() == before {
            break;
        }
    }
    let pairs = arrivals
        .iter()
        .flat_map(|a| waits.iter().map(move |w| (a, w)));
    let pairs =
        pairs.filter(|(a, w)| a.op.object == w.op.object && a.op.synchronizes && w.op.synchronizes);
    let handover = |(a, w): (&Arrivals, &PhaseWait)| Handover {
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
    /// Questions of one kind, each with the answer.
    answers: FxHashMap<Vec<Term>, bool>,
    /// By place in the code: how many times a thread did an operation before.
    numbers: FxHashMap<usize, Option<Term>>,
}

impl PhaseProof<'_> {
    /// Whether conditions cannot hold together. Where that takes sums not to overflow, the numbers
    /// of all operations on objects are held against their types ([`crate::overflow`]).
    fn never(&mut self, conditions: &[Term]) -> bool {
        if self.is_never(conditions) {
            return true;
        }
        !self.wraps && self.never_of_words(conditions)
    }

    /// The same by one kind of question. Where the answer may well be no, machine words take long
    /// to give it.
    fn is_never(&mut self, conditions: &[Term]) -> bool {
        if let Some(answer) = self.answers.get(conditions) {
            return *answer;
        }
        let answer = if self.wraps {
            self.never_of_words(conditions)
        } else {
            let (text, overflow) = integers::question(&mut self.run.terms, conditions);
            let answer = ask(&text, QUESTION, SolverConstants::Nothing) == Said::No;
            self.run.trusts_phases |= answer && overflow;
            answer
        };
        self.answers.insert(conditions.to_vec(), answer);
        answer
    }

    fn never_of_words(&self, conditions: &[Term]) -> bool {
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
        if let Some(known) = self.numbers.get(&op.order) {
            return *known;
        }
        let number = self.counted(op);
        self.numbers.insert(op.order, number);
        number
    }

    fn counted(&mut self, op: &ObjectOp) -> Option<Term> {
        let k = match op.iterations[..] {
            [] => return Some(self.run.terms.int(0)),
            [_] if self.is_once(op) => return Some(self.run.terms.int(0)),
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
    fn awaited(&mut self, op: &ObjectOp, parity: Term) -> Option<PhaseWait> {
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
        Some(PhaseWait {
            op: op.clone(),
            number,
            ahead,
            of: None,
        })
    }

    /// A wait for the phase of an arrival of its thread in the same iteration.
    fn awaited_by(
        &mut self,
        op: &ObjectOp,
        token: Term,
        objects: &[ObjectOp],
    ) -> Option<PhaseWait> {
        let arrival = objects.iter().find(|other| {
            let is_arrival = other.role == ObjectRole::Arrive && other.token == Some(token);
            let is_before = other.order < op.order && other.iterations == op.iterations;
            is_arrival && is_before && other.object == op.object
        })?;
        // Each such wait follows its own arrival, so both have one number.
        let numbers = [self.number(op)?, self.number(arrival)?];
        let comes = self.comes_by(op, arrival) && self.is_same_object(op, arrival);
        (comes && numbers[0] == numbers[1]).then(|| PhaseWait {
            op: op.clone(),
            number: numbers[1],
            ahead: 1,
            of: Some(arrival.order),
        })
    }

    /// How many phases are complete behind a wait.
    fn complete(&mut self, wait: &PhaseWait) -> Term {
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
        let mut number = self.number(op)?;
        let mut counts: Vec<Term> = made(program, op.object)
            .map(|count| self.run.terms.int(count))
            .into_iter()
            .collect();
        let mut all = vec![op];
        for other in objects.iter().filter(|other| other.object == op.object) {
            let is_itself = other.order == op.order;
            let is_wait = matches!(other.role, ObjectRole::Wait(_) | ObjectRole::WaitFor(_));
            if is_itself || is_wait || self.differ(op, other) {
                continue;
            }
            match other.role {
                ObjectRole::Init(count) if is_earlier(other, op) => counts.push(count),
                ObjectRole::Arrive => {
                    let more = self.earlier(op, other)?;
                    number = self.run.terms.plus(number, more);
                    all.push(other);
                }
                _ => return None,
            }
        }
        counts.sort_unstable();
        counts.dedup();
        let [count] = counts[..] else { return None };
        let terms = &self.run.terms;
        let is_shared = terms.level(count) != Level::Thread && !terms.has(&[count], Origin::Free);
        let is_known = is_shared && self.are_operations(op, objects);
        (is_known && self.are_at_most(&all, count)).then(|| Arrivals {
            op: op.clone(),
            number,
            count,
        })
    }

    /// Whether nothing but operations on it writes an object.
    fn are_operations(&self, of: &ObjectOp, objects: &[ObjectOp]) -> bool {
        let accesses = self.run.behaviour.accesses.iter();
        let mut writes =
            accesses.filter(|a| a.object == of.object && a.does != MemoryEffect::Reads);
        writes.all(|a| objects.iter().any(|op| op.order == a.order))
    }

    /// How many times a thread has done another operation at the object before one, or more.
    fn earlier(&mut self, op: &ObjectOp, other: &ObjectOp) -> Option<Term> {
        let both = self.of_two(Together::Thread, [&[op], &[other]], |two| {
            vec![two.are_equal([op.offset, other.offset])]
        });
        if self.is_never(&both) {
            return Some(self.run.terms.int(0));
        }
        if op.iterations == other.iterations && !op.iterations.is_empty() {
            let number = self.number(other)?;
            let facts = self.facts(&[op, other]);
            let differ = self
                .run
                .terms
                .cmp(CmpOp::Ne, Ty::WORD, op.offset, other.offset);
            let is_behind = other.order > op.order
                && self.is_never(&[&facts[..], &[op.guard, differ]].concat());
            let more = self.run.terms.int(i64::from(!is_behind));
            return Some(self.run.terms.plus(number, more));
        }
        let pairs = op.iterations.iter().zip(&other.iterations);
        if pairs.take(1).any(|(a, b)| a == b) {
            return None;
        }
        if other.order > op.order {
            return Some(self.run.terms.int(0));
        }
        self.is_once(other).then(|| self.run.terms.int(1))
    }

    /// Whether a thread does an operation at one object in one iteration alone.
    fn is_once(&mut self, op: &ObjectOp) -> bool {
        if op.iterations.is_empty() {
            return true;
        }
        let [k] = op.iterations[..] else {
            return false;
        };
        let twice = self.of_two(Together::Thread, [&[op], &[op]], |two| {
            let same = two.are_equal([op.offset; 2]);
            let (a, b) = (two.of(0, k), two.of(1, k));
            vec![same, two.terms.cmp(CmpOp::Ne, Ty::WORD, a, b)]
        });
        self.is_never(&twice)
    }

    /// Whether two operations never are of the same object.
    fn differ(&mut self, a: &ObjectOp, b: &ObjectOp) -> bool {
        [Together::Thread, Together::Block].into_iter().all(|how| {
            let conditions = self.of_two(how, [&[a], &[b]], |two| {
                vec![two.are_equal([a.offset, b.offset])]
            });
            self.is_never(&conditions)
        })
    }

    /// Whether at most `count` threads of a block do one of these operations on one object: their
    /// numbers in the block are less than that apart.
    fn are_at_most(&mut self, ops: &[&ObjectOp], count: Term) -> bool {
        let rank = self.run.setting.rank;
        ops.iter().all(|first| {
            ops.iter().all(|second| {
                let conditions = self.of_two(Together::Block, [&[first], &[second]], |two| {
                    let same = two.are_equal([first.offset, second.offset]);
                    let (low, high) = (two.of(1, rank), two.of(0, rank));
                    let behind = two.of(1, count);
                    let behind = two.terms.plus(low, behind);
                    let far = two.terms.cmp(CmpOp::Ge, Ty::WORD, high, behind);
                    vec![same, far]
                });
                self.is_never(&conditions)
            })
        })
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

    /// Whether nothing changes the object of an operation but arrivals that may be in time.
    fn are_all(&mut self, of: &ObjectOp, objects: &[ObjectOp], arrivals: &[Arrivals]) -> bool {
        let others = objects.iter().filter(|other| {
            let changes = matches!(other.role, ObjectRole::Arrive | ObjectRole::Other);
            let is_known = arrivals.iter().any(|a| a.op.order == other.order);
            changes && other.object == of.object && !is_known
        });
        let others: Vec<&ObjectOp> = others.collect();
        others.into_iter().all(|other| self.differ(of, other))
    }

    /// Whether no thread arrives a number `n` before `n` phases are complete.
    fn is_in_time(
        &mut self,
        n: usize,
        objects: &[ObjectOp],
        arrivals: &[Arrivals],
        waits: &[PhaseWait],
    ) -> bool {
        let own = &arrivals[n];
        let counts = [own.count, own.number].map(|t| self.run.terms.constant(t));
        if counts[0] == Some(1) || counts[1] == Some(0) {
            return true;
        }
        let mine: Vec<SeenPhases<'_>> = waits
            .iter()
            .filter_map(|wait| self.seen(&own.op, wait))
            .collect();
        mine.into_iter().any(|seen| {
            let wait = seen.wait;
            let same = wait.op.object == own.op.object && self.is_same_object(&own.op, &wait.op);
            (same && self.is_reached(own, seen.complete))
                || self.are_all(&wait.op, objects, arrivals)
                    && self.is_told(own, seen, arrivals, waits)
        })
    }

    /// How many phases a thread has seen complete before an arrival, by a wait in the same loop;
    /// `None`: the wait does not belong to the arrival.
    fn seen<'w>(&mut self, arrival: &ObjectOp, wait: &'w PhaseWait) -> Option<SeenPhases<'w>> {
        if arrival.iterations != wait.op.iterations || !self.comes_by(arrival, &wait.op) {
            return None;
        }
        let is_before = wait.op.order < arrival.order;
        // One that comes behind the arrival was passed a round before.
        let ahead = wait.ahead - i64::from(!is_before);
        let ahead = self.run.terms.int(ahead);
        let complete = self.run.terms.plus(wait.number, ahead);
        let is_known = is_before || !arrival.iterations.is_empty();
        is_known.then_some(SeenPhases { wait, complete })
    }

    /// Whether a thread that does an operation does the other one in the same iteration.
    fn comes_by(&mut self, op: &ObjectOp, other: &ObjectOp) -> bool {
        let facts = self.facts(&[op]);
        let skips = self.run.terms.not(other.guard);
        self.is_never(&[&facts[..], &[op.guard, skips]].concat())
    }

    /// Whether an arrival needs no more phases than these.
    fn is_reached(&mut self, own: &Arrivals, seen: Term) -> bool {
        let facts = self.facts(&[&own.op]);
        let early = self.run.terms.cmp(CmpOp::Lt, Ty::WORD, seen, own.number);
        self.is_never(&[&facts[..], &[own.op.guard, early]].concat())
    }

    /// Whether other threads tell a thread that its own arrival is not early: they have seen it, and
    /// the thread has seen them arrive at the object of a wait.
    fn is_told(
        &mut self,
        own: &Arrivals,
        seen: SeenPhases<'_>,
        arrivals: &[Arrivals],
        waits: &[PhaseWait],
    ) -> bool {
        // Behind no complete phase, nobody has told anything.
        let facts = self.facts(&[&own.op]);
        let terms = &mut self.run.terms;
        let (zero, one) = (terms.int(0), terms.int(1));
        let nothing = terms.cmp(CmpOp::Lt, Ty::WORD, seen.complete, one);
        let needs = terms.cmp(CmpOp::Gt, Ty::WORD, own.number, zero);
        if !seen.wait.op.synchronizes
            || !self.is_never(&[&facts[..], &[own.op.guard, nothing, needs]].concat())
        {
            return false;
        }
        let there = arrivals
            .iter()
            .filter(|a| a.op.object == seen.wait.op.object);
        let (tell, silent): (Vec<&Arrivals>, Vec<&Arrivals>) =
            there.partition(|other| self.tells(own, seen, other, waits));
        let Some(count) = tell.first().map(|a| a.count) else {
            return false;
        };
        let less = self.run.terms.int(-1);
        let fewer = self.run.terms.plus(count, less);
        let same = tell.iter().chain(&silent).all(|a| a.count == count);
        let silent: Vec<&ObjectOp> = silent.into_iter().map(|a| &a.op).collect();
        same && self.are_at_most(&silent, fewer)
    }

    /// Whether an arrival that a wait has seen comes behind enough phases of the own object.
    fn tells(
        &mut self,
        own: &Arrivals,
        seen: SeenPhases<'_>,
        other: &Arrivals,
        waits: &[PhaseWait],
    ) -> bool {
        let mut behind: Vec<Option<SeenPhases<'_>>> = vec![None];
        for back in waits.iter().filter(|w| w.op.object == own.op.object) {
            if back.op.order < other.op.order {
                behind.extend(self.seen(&other.op, back).map(Some));
            }
        }
        // Only a release that is acquired tells what its thread has seen.
        other.op.synchronizes
            && behind.into_iter().any(|back| {
                [Together::Thread, Together::Block].into_iter().all(|how| {
                    let early = self.told_early(how, own, seen, other, back);
                    self.is_never(&early)
                })
            })
    }

    /// The condition that a wait has seen an arrival, but the thread of that arrival had not seen
    /// enough phases of the own object.
    fn told_early(
        &mut self,
        how: Together,
        own: &Arrivals,
        seen: SeenPhases<'_>,
        other: &Arrivals,
        back: Option<SeenPhases<'_>>,
    ) -> Vec<Term> {
        let ops: [&[&ObjectOp]; 2] = [&[&own.op, &seen.wait.op], &[&other.op]];
        self.of_two(how, ops, |two| {
            let met = two.are_equal([seen.wait.op.offset, other.op.offset]);
            let [number, seen] = [own.number, seen.complete].map(|t| two.of(0, t));
            let (zero, one) = (two.terms.int(0), two.terms.int(1));
            let needs = two.terms.cmp(CmpOp::Gt, Ty::WORD, number, zero);
            let arrived = two.of(1, other.number);
            let arrived = two.terms.plus(arrived, one);
            let is_seen = two.terms.cmp(CmpOp::Ge, Ty::WORD, arrived, seen);
            let mut all = vec![met, needs, is_seen];
            if let Some(back) = back {
                let same = two.are_equal([own.op.offset, back.wait.op.offset]);
                let other_object = two.terms.not(same);
                let complete = two.of(1, back.complete);
                let early = two.terms.cmp(CmpOp::Lt, Ty::WORD, complete, number);
                all.push(two.terms.or(vec![other_object, early]));
            }
            all
        })
    }

    /// Whether a thread does two operations of an iteration on the same object.
    fn is_same_object(&mut self, a: &ObjectOp, b: &ObjectOp) -> bool {
        let facts = self.facts(&[a, b]);
        let differ = self.run.terms.cmp(CmpOp::Ne, Ty::WORD, a.offset, b.offset);
        self.never(&[&facts[..], &[a.guard, b.guard, differ]].concat())
    }
}

/// Whether an operation comes before another one, and not again behind it.
fn is_earlier(op: &ObjectOp, other: &ObjectOp) -> bool {
    let mut pairs = op.iterations.iter().zip(&other.iterations);
    op.order < other.order && pairs.next().is_none_or(|(a, b)| a != b)
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
