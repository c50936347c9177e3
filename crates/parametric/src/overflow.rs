//! Questions about one thread: do numbers leave their types, which proofs over the integers take to
//! stay there.
//!
//! Launches that are left open are asked about up to a modest size.
//!
//! # Invariants
//! - A number that leaves a signed type of CUDA C++ or OpenCL C is a fault of the code: nothing is
//!   proved of it. Unsigned numbers and those of PTX wrap around, so the proof is made anew over
//!   machine words.
//! - A number that depends on arguments, memory or iterations is not said to leave its type. Its
//!   line is part of the assumption.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use program::{BinOp, CmpOp, Dialect, Ty};
use rustc_hash::FxHashSet;

use crate::exec::AccessAt;
use crate::integers::trusted;
use crate::pairs::SymbolicRun;
use crate::solver::{Said, SolverConstants, ask};
use crate::term::{Node, Origin, Term, Terms, children, range_of};
use crate::words;

/// The time for all questions about a kernel, and for one of them. They make a proof stronger.
const TIME: Duration = Duration::from_secs(1);
const QUESTION: Duration = Duration::from_millis(200);

/// Launches that are left open are looked at up to so many threads. Of larger ones, answers name
/// the assumption.
const MODEST: i64 = 1 << 16;

/// What numbers do in a launch, by the instructions of the accesses that they decide on.
#[derive(Default)]
pub(crate) struct Overflow {
    /// A number leaves a signed type, whatever inputs are.
    pub(crate) undefined: Option<usize>,
    /// A number wraps around, whatever inputs are.
    pub(crate) wraps: bool,
    /// It is not known that all numbers stay in their types.
    pub(crate) open: BTreeSet<usize>,
}

/// Looks at the numbers of all accesses.
pub(crate) fn overflow(run: &mut SymbolicRun, dialect: Dialect, time: Duration) -> Overflow {
    let end = Instant::now() + time.min(TIME);
    let mut found = Overflow::default();
    let mut known: FxHashSet<Vec<Term>> = FxHashSet::default();
    let most = run.terms.int(MODEST);
    let count = run.setting.count;
    let is_given = run.terms.constant(count).is_some();
    let is_modest = match run.terms.constant(count) {
        Some(_) => run.terms.int(1),
        None => run.terms.cmp(CmpOp::Le, Ty::WORD, count, most),
    };
    for access in run.behaviour.accesses.clone() {
        let setting = &run.setting;
        let mut reached = [&setting.facts[..], &setting.of_thread, &access.facts].concat();
        reached.extend([is_modest, access.guard]);
        let values = [access.offset, access.interval];
        let trusted = trusted(&mut run.terms, &reached, &values);
        let is_wrapping = trusted
            .iter()
            .all(|t| wraps_around(&run.terms, dialect, *t));
        let leaving: Vec<Term> = trusted
            .into_iter()
            .map(|t| leaves(&mut run.terms, t))
            .collect();
        if leaving.is_empty() || !known.insert([&reached[..], &leaving].concat()) {
            continue;
        }
        let some = run.terms.or(leaving.clone());
        let left = end.saturating_duration_since(Instant::now()).min(QUESTION);
        match holds(&run.terms, &reached, some, left) {
            Said::No => continue,
            // Machine words need no answer: a number that wraps around decides on the race.
            Said::Unknown(_) => {
                let of_place = !is_of_inputs(&run.terms, &[&reached[..], &leaving].concat())
                    && !leaving.iter().any(|t| is_of_loops(&run.terms, *t));
                found.wraps |= is_given && is_wrapping && of_place;
            }
            Said::Yes(_) => {
                if is_undefined(run, dialect, &access, &reached, left) {
                    found.undefined = Some(access.at);
                    return found;
                }
                // The solver may not answer in time: then the number counts, too.
                found.wraps |= leaving.into_iter().any(|t| {
                    let left = end.saturating_duration_since(Instant::now()).min(QUESTION);
                    let is_known = !is_of_inputs(&run.terms, &[&reached[..], &[t]].concat());
                    let is_known = is_known && !is_of_loops(&run.terms, t);
                    is_known && !matches!(holds(&run.terms, &reached, t, left), Said::No)
                });
            }
        }
        found.open.insert(access.at);
    }
    found
}

/// Whether a number wraps around where it leaves its type.
fn wraps_around(terms: &Terms, dialect: Dialect, t: Term) -> bool {
    let is_signed = match *terms.node(t) {
        Node::Bin(BinOp::Add | BinOp::Sub | BinOp::Mul, ty, ..) => ty.signed,
        _ => false,
    };
    !is_signed || dialect == Dialect::Ptx
}

/// Whether a thread comes somewhere where a condition holds.
fn holds(terms: &Terms, reached: &[Term], condition: Term, time: Duration) -> Said {
    if time.is_zero() {
        return Said::Unknown("time".into());
    }
    let text = words::question(terms, &[reached, &[condition]].concat());
    ask(&text, time, SolverConstants::Nothing)
}

/// Whether the index of an access surely is computed with a number that leaves a signed type.
fn is_undefined(
    run: &mut SymbolicRun,
    dialect: Dialect,
    access: &AccessAt,
    reached: &[Term],
    time: Duration,
) -> bool {
    if dialect == Dialect::Ptx {
        return false;
    }
    let mut computed = Vec::new();
    always_in(&run.terms, access.offset, &mut computed);
    for t in computed {
        let Node::Bin(BinOp::Add | BinOp::Sub | BinOp::Mul, ty, ..) = *run.terms.node(t) else {
            continue;
        };
        if !ty.signed || ty.bits != 32 || is_of_loops(&run.terms, t) {
            continue;
        }
        let left = leaves(&mut run.terms, t);
        let is_known = !is_of_inputs(&run.terms, &[reached, &[left]].concat());
        if is_known && matches!(holds(&run.terms, reached, left, time), Said::Yes(_)) {
            return true;
        }
    }
    false
}

/// The terms that a thread computes for a value, whichever way it goes.
fn always_in(terms: &Terms, t: Term, all: &mut Vec<Term>) {
    if all.contains(&t) {
        return;
    }
    all.push(t);
    match terms.node(t) {
        Node::Ite(..) => {}
        node => children(node)
            .into_iter()
            .for_each(|child| always_in(terms, child, all)),
    }
}

/// Whether a term is one of an iteration. A loop computes such values step by step, and the engine
/// does not ask whether it comes to a step that leaves the type.
fn is_of_loops(terms: &Terms, t: Term) -> bool {
    let of_loops = [Origin::Iteration, Origin::Last, Origin::Loop];
    of_loops.iter().any(|of| terms.has(&[t], *of))
}

/// Whether conditions depend on more than the place of a thread and the iterations of its loops.
fn is_of_inputs(terms: &Terms, conditions: &[Term]) -> bool {
    let known = [Origin::Place, Origin::Iteration, Origin::Last];
    let all = terms.symbols_in(conditions);
    all.iter()
        .any(|(_, id)| !known.contains(&terms.symbol(*id).origin))
}

/// The condition that the result of an operation or a conversion is not in its type.
fn leaves(terms: &mut Terms, t: Term) -> Term {
    match *terms.node(t) {
        Node::Cast(_, a) => terms.cmp(CmpOp::Ne, Ty::WORD, t, a),
        Node::Bin(op @ (BinOp::Add | BinOp::Sub | BinOp::Mul), ty, a, b) if ty.bits < 64 => {
            let whole = terms.bin(op, Ty::WORD, a, b);
            let (least, most) = range_of(ty);
            let (least, most) = (terms.int(least as i64), terms.int(most as i64));
            if !ty.signed {
                return terms.cmp(CmpOp::Gt, Ty::U64, whole, most);
            }
            let below = terms.cmp(CmpOp::Lt, Ty::WORD, whole, least);
            let above = terms.cmp(CmpOp::Gt, Ty::WORD, whole, most);
            terms.or(vec![below, above])
        }
        Node::Bin(op @ (BinOp::Add | BinOp::Sub), _, a, b) => {
            // The sign of the result is one that the signs of the operands exclude.
            let (x, y) = (
                terms.bin(BinOp::Xor, Ty::WORD, a, t),
                match op {
                    BinOp::Add => terms.bin(BinOp::Xor, Ty::WORD, b, t),
                    _ => terms.bin(BinOp::Xor, Ty::WORD, a, b),
                },
            );
            let both = terms.bin(BinOp::And, Ty::WORD, x, y);
            let zero = terms.int(0);
            terms.cmp(CmpOp::Lt, Ty::WORD, both, zero)
        }
        Node::Bin(BinOp::Mul, ty, a, b) => product_leaves(terms, ty, [a, b]),
        Node::Bin(BinOp::Shl, ty, a, b) => {
            let back = terms.bin(BinOp::Shr, ty, t, b);
            terms.cmp(CmpOp::Ne, Ty::WORD, back, a)
        }
        // Nothing is known of others: they are taken to leave their types.
        _ => terms.int(1),
    }
}

/// The condition that a product of 64 bits is not in its type. Halves of the factors say so without
/// a division, which solvers are slow at. The least number of a signed type counts as outside.
fn product_leaves(terms: &mut Terms, ty: Ty, factors: [Term; 2]) -> Term {
    let (half, mask) = (terms.int(32), terms.int(0xffff_ffff));
    let mut of = |op, ty, a, b| terms.bin(op, ty, a, b);
    let [[x_high, x_low], [y_high, y_low]] = factors.map(|factor| {
        let mut size = factor;
        if ty.signed {
            let last = of(BinOp::Shr, Ty::WORD, factor, half);
            let sign = of(BinOp::Shr, Ty::WORD, last, half);
            let flipped = of(BinOp::Xor, Ty::WORD, factor, sign);
            size = of(BinOp::Sub, Ty::WORD, flipped, sign);
        }
        let high = of(BinOp::Shr, Ty::U64, size, half);
        [high, of(BinOp::And, Ty::U64, size, mask)]
    });
    let left = of(BinOp::Mul, Ty::U64, x_high, y_low);
    let right = of(BinOp::Mul, Ty::U64, y_high, x_low);
    let across = of(BinOp::Add, Ty::U64, left, right);
    let low = of(BinOp::Mul, Ty::U64, x_low, y_low);
    let carry = of(BinOp::Shr, Ty::U64, low, half);
    let whole = of(BinOp::Add, Ty::U64, across, carry);
    let most = terms.int((1i64 << if ty.signed { 31 } else { 32 }) - 1);
    let zero = terms.int(0);
    let both = [x_high, y_high].map(|high| terms.cmp(CmpOp::Ne, Ty::U64, high, zero));
    let both = terms.and(both.to_vec());
    let beyond = [across, whole].map(|sum| terms.cmp(CmpOp::Gt, Ty::U64, sum, most));
    terms.or([&[both][..], &beyond].concat())
}

#[cfg(all(test, feature = "z3"))]
mod tests {
    use super::*;
    use crate::term::{Level, Origin};

    /// Whether a question finds values for which a term leaves its type.
    fn found(terms: &mut Terms, t: Term) -> bool {
        let left = leaves(terms, t);
        let said = holds(terms, &[], left, Duration::from_secs(20));
        assert!(!matches!(said, Said::Unknown(_)));
        matches!(said, Said::Yes(_))
    }

    #[test]
    fn numbers_leave_their_types() {
        use BinOp::{Add, Mul, Shl, Sub};
        let mut terms = Terms::default();
        let mut upto = |most: i128| terms.fresh("x", Level::Grid, Origin::Place, (0, most));
        let (x, y) = (upto(1 << 16), upto(1 << 16));
        let large = upto((1 << 62) - 1);
        let cases = [
            (Mul, Ty::S32, x, y, true),
            (Mul, Ty::U32, x, y, true),
            (Mul, Ty::WORD, x, y, false),
            (Mul, Ty::WORD, large, x, true),
            (Add, Ty::S32, x, y, false),
            (Add, Ty::WORD, large, large, false),
            (Sub, Ty::S32, x, y, false),
            (Sub, Ty::U32, x, y, true),
        ];
        for (op, ty, a, b, leaves) in cases {
            let t = terms.add(Node::Bin(op, ty, a, b));
            assert_eq!(found(&mut terms, t), leaves, "{op:?} {ty:?}");
        }
        for (by, leaves) in [(14, false), (15, true)] {
            let by = terms.int(by);
            let t = terms.add(Node::Bin(Shl, Ty::S32, x, by));
            assert_eq!(found(&mut terms, t), leaves);
        }
        for (of, leaves) in [(x, false), (large, true)] {
            let t = terms.add(Node::Cast(Ty::U32, of));
            assert_eq!(found(&mut terms, t), leaves);
        }
    }
}
