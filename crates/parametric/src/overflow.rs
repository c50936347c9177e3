//! Questions about one thread: do numbers leave their types, which proofs over the integers take to
//! stay there.
//!
//! Launches that are left open are asked about up to a modest size.
//!
//! # Invariants
//! - A number that leaves a signed type of CUDA C++ or OpenCL C is a fault of the code: nothing is
//!   proved of it. Unsigned numbers and those of PTX wrap around, so the proof is made anew over
//!   machine words.
//! - A number that depends on arguments, memory or iterations may leave its type where those are
//!   large. Its line is part of the assumption. But if it wraps around where they are small, the
//!   assumption would be false of a common launch: then the proof is made anew, too.
//! - A question without an answer counts as a number that leaves its type.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use program::{BinOp, CmpOp, Dialect, Ty};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::exec::Doubling;
use crate::integers::{leaving, trusted};
use crate::operations::ObjectRole;
use crate::pairs::SymbolicRun;
use crate::solver::{Said, SolverConstants, ask};
use crate::term::{Node, Origin, Term, Terms, children, exact, range_of};
use crate::words;

/// The time for all questions about a kernel, and for one of them. They make a proof stronger.
const TIME: Duration = Duration::from_secs(1);
const QUESTION: Duration = Duration::from_millis(200);

/// Launches that are left open are looked at up to so many threads. Of larger ones, answers name
/// the assumption.
const MODEST: i64 = 1 << 16;

/// The largest coordinate, input or iteration that is small. A product of six of these fits in 32
/// bits.
const SMALL: i64 = 16;

/// What numbers do in a launch, by the instructions that they decide on.
#[derive(Default)]
pub(crate) struct Overflow {
    /// A number leaves a signed type, whatever inputs are.
    pub(crate) undefined: Option<usize>,
    /// A number wraps around: whatever inputs are, or where they are small.
    pub(crate) wraps: bool,
    /// It is not known that all numbers stay in their types.
    pub(crate) open: BTreeSet<usize>,
}

/// An instruction, and the values at it that questions about two threads speak of.
struct NumbersAt {
    at: usize,
    /// What holds of each thread that the questions are about.
    reached: Vec<Term>,
    values: Vec<Term>,
    /// The offset of an access, which each thread computes that comes to it.
    offset: Option<Term>,
}

/// Looks at the numbers of all accesses and barriers.
pub(crate) fn overflow(run: &mut SymbolicRun, dialect: Dialect, time: Duration) -> Overflow {
    let most = run.terms.int(MODEST);
    let count = run.setting.count;
    let is_modest = match run.terms.constant(count) {
        Some(_) => run.terms.int(1),
        None => run.terms.cmp(CmpOp::Le, Ty::WORD, count, most),
    };
    let mut launch = [&run.setting.facts[..], &run.setting.of_thread].concat();
    launch.push(is_modest);
    let places = places(run);
    let mut numbers = LeavingNumbers {
        terms: &mut run.terms,
        dialect,
        end: Instant::now() + time.min(TIME),
        launch,
        staying: FxHashMap::default(),
        known: FxHashSet::default(),
        found: Overflow::default(),
    };
    for place in places {
        numbers.look_at(place);
        if numbers.found.undefined.is_some() {
            return numbers.found;
        }
    }
    for doubling in &run.behaviour.doublings {
        numbers.look_at_doubling(doubling);
    }
    numbers.found
}

/// The places of a kernel. A thread that does not come to a barrier is asked about, too, and so are
/// threads that end in front of one, or do not.
fn places(run: &SymbolicRun) -> Vec<NumbersAt> {
    let behaviour = &run.behaviour;
    let mut all = Vec::new();
    for access in &behaviour.accesses {
        let values = [access.offset, access.interval].into_iter();
        let values = values.chain(access.copy).chain(access.complete);
        let values = values.chain(access.waited.iter().copied());
        all.push(NumbersAt {
            at: access.at,
            reached: [&access.facts[..], &[access.guard]].concat(),
            values: values.chain(access.of_warp.iter().copied()).collect(),
            offset: Some(access.offset),
        });
    }
    for barrier in &behaviour.barriers {
        all.push(NumbersAt {
            at: barrier.at,
            reached: barrier.facts.clone(),
            values: [&barrier.within[..], &[barrier.guard]].concat(),
            offset: None,
        });
    }
    for op in &behaviour.objects {
        let own = match op.role {
            ObjectRole::Init(count) => Some(count),
            ObjectRole::Wait(parity) => Some(parity),
            ObjectRole::Arrive | ObjectRole::WaitFor(_) | ObjectRole::Other => None,
        };
        let values = [op.offset, op.guard, op.head].into_iter();
        all.push(NumbersAt {
            at: op.at,
            reached: op.facts.clone(),
            values: values.chain(own).collect(),
            offset: None,
        });
    }
    for begin in &behaviour.begins {
        all.push(NumbersAt {
            at: begin.at,
            reached: [&begin.facts[..], &[begin.guard]].concat(),
            values: begin.operands.clone(),
            offset: None,
        });
    }
    for exit in &behaviour.exits {
        all.push(NumbersAt {
            at: exit.at,
            reached: exit.facts.clone(),
            values: [&exit.intervals[..], &[exit.guard]].concat(),
            offset: None,
        });
    }
    all
}

/// Asks about the numbers of a kernel.
struct LeavingNumbers<'a> {
    terms: &'a mut Terms,
    dialect: Dialect,
    end: Instant,
    /// What holds of the launch and of each thread.
    launch: Vec<Term>,
    /// Whether a number is seen to stay in its type wherever it is computed.
    staying: FxHashMap<Term, bool>,
    known: FxHashSet<Vec<Term>>,
    found: Overflow,
}

impl LeavingNumbers<'_> {
    /// Looks at the numbers of one place.
    fn look_at(&mut self, place: NumbersAt) {
        let reached = [&self.launch[..], &place.reached].concat();
        let trusted = trusted(self.terms, &reached, &place.values);
        let mut open: Vec<Term> = trusted.into_iter().collect();
        open.retain(|t| !self.stays(*t));
        if open.is_empty() || !self.known.insert([&reached[..], &open].concat()) {
            return;
        }
        let said = self.leave(&reached, &open);
        if said == Said::No {
            return;
        }
        if let (Some(offset), Said::Yes(_)) = (place.offset, &said)
            && self.is_undefined(offset, &reached)
        {
            self.found.undefined = Some(place.at);
            return;
        }
        self.found.open.insert(place.at);
        open.retain(|t| wraps_around(self.terms, self.dialect, *t));
        for t in open {
            let has_known_place = !self.is_open(&reached, t);
            self.found.wraps |= match has_known_place {
                true => !self.stays_at(&reached, t) && self.leave(&reached, &[t]) != Said::No,
                false => self.leaves_where_small(&reached, t),
            };
        }
    }

    /// Looks at a number that a loop doubles.
    fn look_at_doubling(&mut self, doubling: &Doubling) {
        let reached = [&self.launch[..], &doubling.facts].concat();
        let goes_on = doubling.goes_on;
        if holds(self.terms, &reached, goes_on, self.left()) == Said::No {
            return;
        }
        self.found.open.insert(doubling.at);
        let (small, _) = self.small(&[&reached[..], &[goes_on]].concat(), &[]);
        let small = [reached, small].concat();
        self.found.wraps |=
            doubling.wraps && holds(self.terms, &small, goes_on, self.left()) != Said::No;
    }

    /// Whether a number of the place of a thread stays in its type wherever it is computed.
    fn stays(&mut self, t: Term) -> bool {
        if is_of_inputs(self.terms, &[t]) || is_of_loops(self.terms, t) {
            return false;
        }
        if let Some(known) = self.staying.get(&t) {
            return *known;
        }
        let launch = self.launch.clone();
        let stays = self.stays_at(&launch, t);
        self.staying.insert(t, stays);
        stays
    }

    /// Whether a number stays in its type under conditions, if all stay that it is made of.
    fn stays_at(&mut self, reached: &[Term], t: Term) -> bool {
        let time = self.left();
        let text = leaving(self.terms, reached, t).filter(|_| !time.is_zero());
        text.is_some_and(|text| ask(&text, time, SolverConstants::Nothing) == Said::No)
    }

    /// Whether a thread comes somewhere where one of some numbers leaves its type.
    fn leave(&mut self, reached: &[Term], numbers: &[Term]) -> Said {
        let leaving = numbers.iter().map(|t| leaves(self.terms, *t)).collect();
        let some = self.terms.or(leaving);
        holds(self.terms, reached, some, self.left())
    }

    /// The time for the next question.
    fn left(&self) -> Duration {
        self.end
            .saturating_duration_since(Instant::now())
            .min(QUESTION)
    }

    /// Whether it depends on more than the place of a thread whether a number leaves its type.
    fn is_open(&mut self, reached: &[Term], t: Term) -> bool {
        let leaving = leaves(self.terms, t);
        is_of_inputs(self.terms, &[reached, &[leaving]].concat()) || is_of_loops(self.terms, t)
    }

    /// Whether a number may leave its type where all coordinates, inputs and iterations are small.
    fn leaves_where_small(&mut self, reached: &[Term], t: Term) -> bool {
        // What an iteration finds of the one before means nothing in the first one.
        let before = self.before(t);
        let (small, least_of) = self.small(&[reached, &[t]].concat(), &before);
        let all = [reached, &small].concat();
        let mut ranges = SmallRanges {
            terms: self.terms,
            least_of,
            known: FxHashMap::default(),
        };
        !ranges.of(t).0 && self.leave(&all, &[t]) != Said::No
    }

    /// The conditions that all symbols of some terms are small, and their least values. Some
    /// symbols are not 0.
    fn small(&mut self, of: &[Term], not_zero: &[Term]) -> (Vec<Term>, FxHashMap<Term, i64>) {
        let (mut all, mut least_of) = (Vec::new(), FxHashMap::default());
        for (symbol, id) in self.terms.symbols_in(of) {
            if self.terms.symbol(id).origin == Origin::Operation {
                continue;
            }
            let least = i64::from(not_zero.contains(&symbol));
            least_of.insert(symbol, least);
            let (least, most) = (self.terms.int(least), self.terms.int(SMALL));
            all.push(self.terms.cmp(CmpOp::Ge, Ty::WORD, symbol, least));
            all.push(self.terms.cmp(CmpOp::Le, Ty::WORD, symbol, most));
        }
        (all, least_of)
    }

    /// The iterations `k` for which a term contains `k - 1`.
    fn before(&mut self, t: Term) -> Vec<Term> {
        let mut all = Vec::new();
        self.terms.visit(&[t], &mut |inner| {
            if let Node::Bin(BinOp::Add, Ty::WORD, k, by) = *self.terms.node(inner)
                && self.terms.constant(by) == Some(-1)
                && is_of_loops(self.terms, k)
            {
                all.push(k);
            }
        });
        all
    }

    /// Whether an offset surely is computed with a number that leaves a signed type.
    fn is_undefined(&mut self, offset: Term, reached: &[Term]) -> bool {
        if self.dialect == Dialect::Ptx {
            return false;
        }
        let mut computed = Vec::new();
        always_in(self.terms, offset, &mut computed);
        computed.into_iter().any(|t| {
            let Node::Bin(BinOp::Add | BinOp::Sub | BinOp::Mul, ty, ..) = *self.terms.node(t)
            else {
                return false;
            };
            let is_asked = ty.signed && ty.bits == 32 && !self.is_open(reached, t);
            is_asked && matches!(self.leave(reached, &[t]), Said::Yes(_))
        })
    }
}

/// Ranges of terms where symbols are small.
struct SmallRanges<'a> {
    terms: &'a Terms,
    /// The least values of symbols that are small.
    least_of: FxHashMap<Term, i64>,
    /// Of each term: whether the result of its operation is in its type, and its range.
    known: FxHashMap<Term, (bool, (i128, i128))>,
}

impl SmallRanges<'_> {
    fn of(&mut self, t: Term) -> (bool, (i128, i128)) {
        if let Some(known) = self.known.get(&t) {
            return *known;
        }
        let own = self.terms.range(t);
        let result = match *self.terms.node(t) {
            Node::Symbol(..) => (true, self.of_symbol(t)),
            Node::Bin(op, ty, a, b) => {
                let ranges = [a, b].map(|x| self.of(x).1);
                fitted(ty, exact(op, ranges), own)
            }
            Node::Cast(ty, a) => fitted(ty, Some(self.of(a).1), own),
            Node::Ite(_, a, b) => {
                let [a, b] = [a, b].map(|x| self.of(x).1);
                (true, (a.0.min(b.0), a.1.max(b.1)))
            }
            _ => (true, own),
        };
        self.known.insert(t, result);
        result
    }

    fn of_symbol(&self, t: Term) -> (i128, i128) {
        let own = self.terms.range(t);
        match self.least_of.get(&t) {
            Some(least) => (own.0.max(i128::from(*least)), own.1.min(i128::from(SMALL))),
            None => own,
        }
    }
}

/// Whether a result is in its type, and its range then; else the range that the term has.
fn fitted(ty: Ty, exact: Option<(i128, i128)>, own: (i128, i128)) -> (bool, (i128, i128)) {
    let of = range_of(ty);
    match exact {
        Some(range) if of.0 <= range.0 && range.1 <= of.1 => (true, range),
        _ => (false, own),
    }
}

/// Whether a number wraps around where it leaves its type. So do addresses, to which large numbers
/// are added that stand for negative ones.
fn wraps_around(terms: &Terms, dialect: Dialect, t: Term) -> bool {
    let is_signed = match *terms.node(t) {
        Node::Bin(BinOp::Add | BinOp::Sub | BinOp::Mul, ty, a, b) => {
            ty.signed && [a, b].iter().all(|x| !is_large(terms, *x))
        }
        _ => false,
    };
    !is_signed || dialect == Dialect::Ptx
}

/// Whether the word of a number may be negative, where the number is not.
fn is_large(terms: &Terms, t: Term) -> bool {
    terms.range(t).1 > i128::from(i64::MAX)
}

/// Whether a thread comes somewhere where a condition holds.
fn holds(terms: &Terms, reached: &[Term], condition: Term, time: Duration) -> Said {
    if time.is_zero() {
        return Said::Unknown("time".into());
    }
    let text = words::question(terms, &[reached, &[condition]].concat());
    ask(&text, time, SolverConstants::Nothing)
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
        // All words are in such a type; the numbers are not, which have other signs in both types.
        Node::Cast(ty, a) if ty.bits >= 64 => {
            let zero = terms.int(0);
            terms.cmp(CmpOp::Lt, Ty::WORD, a, zero)
        }
        Node::Cast(_, a) => terms.cmp(CmpOp::Ne, Ty::WORD, t, a),
        Node::Bin(op @ (BinOp::Add | BinOp::Sub | BinOp::Mul), ty, a, b) => {
            let mut ways = vec![result_leaves(terms, t, (op, ty), [a, b])];
            // A word that stands for a large number is negative to a signed operation.
            let is_unsigned = ty.bits == 64 && !ty.signed;
            for x in [a, b] {
                if !is_unsigned && is_large(terms, x) {
                    let zero = terms.int(0);
                    ways.push(terms.cmp(CmpOp::Lt, Ty::WORD, x, zero));
                }
            }
            terms.or(ways)
        }
        Node::Bin(BinOp::Shl, ty, a, b) => {
            let back = terms.bin(BinOp::Shr, ty, t, b);
            terms.cmp(CmpOp::Ne, Ty::WORD, back, a)
        }
        // Nothing is known of others: they are taken to leave their types.
        _ => terms.int(1),
    }
}

/// The condition that the result of an operation on words is not in its type.
fn result_leaves(terms: &mut Terms, t: Term, of: (BinOp, Ty), parts: [Term; 2]) -> Term {
    let ((op, ty), [a, b]) = (of, parts);
    if ty.bits < 64 {
        let whole = terms.bin(op, Ty::WORD, a, b);
        let (least, most) = range_of(ty);
        let (least, most) = (terms.int(least as i64), terms.int(most as i64));
        if !ty.signed {
            return terms.cmp(CmpOp::Gt, Ty::U64, whole, most);
        }
        let below = terms.cmp(CmpOp::Lt, Ty::WORD, whole, least);
        let above = terms.cmp(CmpOp::Gt, Ty::WORD, whole, most);
        return terms.or(vec![below, above]);
    }
    match op {
        BinOp::Add if !ty.signed => terms.cmp(CmpOp::Lt, Ty::U64, t, a),
        BinOp::Sub if !ty.signed => terms.cmp(CmpOp::Lt, Ty::U64, a, b),
        BinOp::Add | BinOp::Sub => {
            // The sign of the result is one that the signs of the operands exclude.
            let x = terms.bin(BinOp::Xor, Ty::WORD, a, t);
            let y = match op {
                BinOp::Add => terms.bin(BinOp::Xor, Ty::WORD, b, t),
                _ => terms.bin(BinOp::Xor, Ty::WORD, a, b),
            };
            let both = terms.bin(BinOp::And, Ty::WORD, x, y);
            let zero = terms.int(0);
            terms.cmp(CmpOp::Lt, Ty::WORD, both, zero)
        }
        _ => product_leaves(terms, ty, parts),
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
        let every = upto((1 << 64) - 1);
        let cases = [
            (Mul, Ty::S32, x, y, true),
            (Mul, Ty::U32, x, y, true),
            (Mul, Ty::WORD, x, y, false),
            (Mul, Ty::WORD, large, x, true),
            (Add, Ty::S32, x, y, false),
            (Add, Ty::WORD, large, large, false),
            (Add, Ty::U64, every, x, true),
            (Add, Ty::WORD, every, x, true),
            (Add, Ty::S32, every, x, true),
            (Sub, Ty::U64, every, x, true),
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
        let mut any = |ty: Ty| terms.fresh("x", Level::Grid, Origin::Place, range_of(ty));
        for (of, leaves) in [(any(Ty::U64), true), (any(Ty::U32), false)] {
            let t = terms.add(Node::Cast(Ty::WORD, of));
            assert_eq!(found(&mut terms, t), leaves);
        }
    }
}
