//! Stores values and conditions as hash-consed terms, before the results of reads are known.
//!
//! A [`Term`] is an integer that depends on reads. A [`Cond`] is a condition, kept as a reduced
//! ordered binary decision diagram over [`CondAtom`]s. So equal conditions are equal ids, and `(g ∧
//! c) ∨ (g ∧ ¬c)` *is* `g` at every join.
//!
//! # Invariants
//! - Terms and conditions are created bottom-up; an id refers to smaller ids only.
//! - Every typed operation wraps its term to the type; a [`Term::Read`] is wrapped to the type of
//!   its access.
//! - Atoms are canonical: comparisons are `==`, `<` only; operands of `==` are sorted. Operands of
//!   symmetric operations are sorted and have no conversions, unless one is a constant.
//! - A watched pool gives up in an operation that finds it too large or too late. The results of
//!   that operation and of all later ones are then meaningless, and [`TermPool::given_up`] returns
//!   the reason.

use std::time::Instant;

use rustc_hash::FxHashMap;

use cat::rel::EventId;
use program::{BinOp, CmpOp, Fused, Ty};
use verdict::Reason;

/// The largest number of terms and of decisions of conditions.
pub(crate) const MAX_POOL: usize = 2_000_000;

/// Index of a [`Term`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermId(u32);

/// An integer that depends on the results of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A constant.
    Const(i64),
    /// The result of a read event.
    Read(EventId),
    /// An operation, wrapped to the type.
    Bin(BinOp, Ty, TermId, TermId),
    /// Conversion to a type.
    Cast(Ty, TermId),
    /// `if cond then a else b`.
    Ite(Cond, TermId, TermId),
    /// A product of two floating-point numbers and the sum of it and a third.
    Fused(Fused, [TermId; 3]),
}

/// A condition: a node of the decision diagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cond(u32);

impl Cond {
    /// False.
    pub const FALSE: Cond = Cond(0);
    /// True.
    pub const TRUE: Cond = Cond(1);

    /// The constant condition for `b`.
    pub fn constant(b: bool) -> Cond {
        if b { Cond::TRUE } else { Cond::FALSE }
    }

    /// Whether it is a constant.
    pub fn is_const(self) -> bool {
        self.0 < 2
    }
}

/// Index of an [`CondAtom`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AtomId(pub u32);

/// The test at a node of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CondAtom {
    /// Two terms are equal in a type.
    Eq(Ty, TermId, TermId),
    /// One term is less than the other in a type.
    Lt(Ty, TermId, TermId),
    /// A free choice of the program: the index of a barrier decision (see `skeleton::barrier`).
    Choice(u32),
}

#[derive(Clone, Copy, Debug)]
struct Decision {
    atom: AtomId,
    low: Cond,
    high: Cond,
}

/// The arena of terms and conditions.
#[derive(Clone, Debug, Default)]
pub struct TermPool {
    terms: Vec<Term>,
    term_ids: FxHashMap<Term, TermId>,
    /// The type that a term is surely wrapped to.
    types: Vec<Option<Ty>>,
    atoms: Vec<CondAtom>,
    atom_ids: FxHashMap<CondAtom, AtomId>,
    decisions: Vec<Decision>,
    decision_ids: FxHashMap<(AtomId, Cond, Cond), Cond>,
    ite_memo: FxHashMap<(Cond, Cond, Cond), Cond>,
    restrict_memo: FxHashMap<(Cond, Cond), Cond>,
    /// Results of operations and comparisons that were pushed into choices. Choices share their
    /// branches: without these caches, a counter takes time exponential in its increments.
    cast_memo: FxHashMap<(Ty, TermId), TermId>,
    bin_memo: FxHashMap<(BinOp, Ty, TermId, TermId), TermId>,
    cmp_memo: FxHashMap<CondAtom, Cond>,
    /// By term: its nesting depth.
    depths: Vec<u32>,
    /// The number of unknown results.
    made: i64,
    choices: u32,
    watch: Option<Watch>,
}

/// The limits of a watched pool.
#[derive(Clone, Debug)]
struct Watch {
    deadline: Option<Instant>,
    /// Operations so far.
    ticks: u32,
    given_up: Option<Reason>,
}

impl TermPool {
    /// An empty pool that gives up when it becomes too large, or at the deadline.
    pub fn watched(deadline: Option<Instant>) -> TermPool {
        let mut pool = TermPool::default();
        pool.watch(deadline);
        pool
    }

    /// Watches the operations from here on, until [`TermPool::unwatch`].
    pub fn watch(&mut self, deadline: Option<Instant>) {
        self.watch = Some(Watch {
            deadline,
            ticks: 0,
            given_up: None,
        });
    }

    /// Checks whether the results of operations are meaningful.
    ///
    /// # Errors
    /// The reason why they are not.
    pub fn given_up(&self) -> Result<(), Reason> {
        self.watch
            .as_ref()
            .and_then(|w| w.given_up.clone())
            .map_or(Ok(()), Err)
    }

    /// Ends the watch: later operations run to their end, however long they take.
    ///
    /// # Errors
    /// As [`TermPool::given_up`].
    pub fn unwatch(&mut self) -> Result<(), Reason> {
        self.given_up()?;
        self.watch = None;
        Ok(())
    }

    /// Counts a step of work, here or in a caller; returns whether to give up.
    pub(super) fn tick(&mut self) -> bool {
        let size = self.size();
        let deep = stop::deep();
        let Some(watch) = &mut self.watch else {
            return deep;
        };
        watch.ticks = watch.ticks.wrapping_add(1);
        if deep {
            watch.given_up.get_or_insert(Reason::Time);
        } else if watch.given_up.is_none() && watch.ticks.is_multiple_of(1024) {
            if size > MAX_POOL {
                watch.given_up = Some(Reason::TooManyParts(MAX_POOL));
            } else if stop::late(watch.deadline) {
                watch.given_up = Some(Reason::Time);
            }
        }
        watch.given_up.is_some()
    }

    /// Renumbers the events that terms read.
    pub(super) fn renumber(&mut self, of: &[EventId]) {
        for term in &mut self.terms {
            if let Term::Read(e) = term {
                *e = of[e.index()];
            }
        }
        self.term_ids = self
            .terms
            .iter()
            .enumerate()
            .map(|(i, term)| (*term, TermId(i as u32)))
            .collect();
    }

    /// A term.
    pub fn term(&self, id: TermId) -> Term {
        self.terms[id.0 as usize]
    }

    /// Number of terms.
    pub fn term_count(&self) -> usize {
        self.terms.len()
    }

    /// The nesting depth of a term.
    pub fn depth(&self, id: TermId) -> u32 {
        self.depths[id.0 as usize]
    }

    /// Number of terms and of decisions in conditions; the pool's memory is proportional to it.
    pub fn size(&self) -> usize {
        self.terms.len() + self.decisions.len()
    }

    /// All term ids, operands first.
    pub fn term_ids(&self) -> impl Iterator<Item = TermId> + use<> {
        (0..self.terms.len() as u32).map(TermId)
    }

    /// An atom.
    pub fn atom(&self, id: AtomId) -> CondAtom {
        self.atoms[id.0 as usize]
    }

    /// Number of choices made with [`TermPool::fresh_choice`].
    pub fn choice_count(&self) -> u32 {
        self.choices
    }

    /// Position of a term in [`TermPool::term_ids`].
    pub fn term_index(id: TermId) -> usize {
        id.0 as usize
    }

    fn intern(&mut self, term: Term, ty: Option<Ty>) -> TermId {
        if let Some(&id) = self.term_ids.get(&term) {
            return id;
        }
        let id = TermId(self.terms.len() as u32);
        let below = match term {
            Term::Const(_) | Term::Read(_) => 0,
            Term::Cast(_, a) => self.depth(a),
            Term::Bin(_, _, a, b) | Term::Ite(_, a, b) => self.depth(a).max(self.depth(b)),
            Term::Fused(_, [a, b, c]) => self.depth(a).max(self.depth(b)).max(self.depth(c)),
        };
        self.terms.push(term);
        self.depths.push(below + 1);
        self.types.push(ty);
        self.term_ids.insert(term, id);
        id
    }

    /// A constant.
    pub fn constant(&mut self, v: i64) -> TermId {
        self.intern(Term::Const(v), None)
    }

    /// The result of `event`, wrapped to `ty`.
    pub fn read(&mut self, event: EventId, ty: Ty) -> TermId {
        self.intern(Term::Read(event), Some(ty))
    }

    /// The value of a term, if it is a constant.
    pub fn as_const(&self, id: TermId) -> Option<i64> {
        match self.term(id) {
            Term::Const(v) => Some(v),
            _ => None,
        }
    }

    /// A term converted to a type.
    pub fn cast(&mut self, ty: Ty, a: TermId) -> TermId {
        match self.term(a) {
            Term::Const(v) => self.constant(ty.wrap(v)),
            _ if ty.bits == 64 || self.types[a.0 as usize] == Some(ty) => a,
            Term::Ite(c, x, y) => {
                if let Some(&known) = self.cast_memo.get(&(ty, a)) {
                    return known;
                }
                if self.tick() {
                    return a;
                }
                let (x, y) = (self.cast(ty, x), self.cast(ty, y));
                let result = self.ite(c, x, y);
                self.cast_memo.insert((ty, a), result);
                result
            }
            _ => self.intern(Term::Cast(ty, a), Some(ty)),
        }
    }

    /// An operation in type `ty`. Folds constants, and results that are constant for any operands
    /// (`x ^ x`, `x * 0`), so that a value carries only real dependencies.
    pub fn bin(&mut self, op: BinOp, ty: Ty, a: TermId, b: TermId) -> TermId {
        if op == BinOp::Unknown {
            return self.unknown(ty, a, b);
        }
        let (ca, cb) = (self.as_const(a), self.as_const(b));
        if let (Some(x), Some(y)) = (ca, cb) {
            return self.constant(op.apply(ty, x, y));
        }
        let (least, most) = match 1i64 << (ty.bits - 1) {
            lowest if ty.signed => (lowest, !lowest),
            _ => (0, -1),
        };
        let unsigned = Ty {
            signed: false,
            ..ty
        };
        let too_far =
            |v: Option<i64>| v.is_some_and(|v| unsigned.wrap(v) as u64 >= u64::from(ty.bits));
        match op {
            BinOp::Shl if too_far(cb) => return self.constant(0),
            BinOp::Shr if too_far(cb) && !ty.signed => return self.constant(0),
            BinOp::Min if is_value(ty, least, ca) => return self.cast(ty, a),
            BinOp::Min if is_value(ty, least, cb) => return self.cast(ty, b),
            BinOp::Max if is_value(ty, most, ca) => return self.cast(ty, a),
            BinOp::Max if is_value(ty, most, cb) => return self.cast(ty, b),
            BinOp::Or if is_value(ty, -1, ca) || is_value(ty, -1, cb) => {
                return self.constant(ty.wrap(-1));
            }
            BinOp::Xor | BinOp::Sub if a == b => return self.constant(0),
            BinOp::Mul | BinOp::And if is_value(ty, 0, ca) || is_value(ty, 0, cb) => {
                return self.constant(0);
            }
            BinOp::Shl if is_value(ty, 0, ca) => return self.constant(0),
            BinOp::And | BinOp::Or | BinOp::Min | BinOp::Max if a == b => return self.cast(ty, a),
            // Identity operands leave the other operand unchanged.
            BinOp::And if is_value(ty, -1, ca) => return self.cast(ty, b),
            BinOp::And if is_value(ty, -1, cb) => return self.cast(ty, a),
            BinOp::Max if is_value(ty, least, ca) => return self.cast(ty, b),
            BinOp::Max if is_value(ty, least, cb) => return self.cast(ty, a),
            BinOp::Min if is_value(ty, most, ca) => return self.cast(ty, b),
            BinOp::Min if is_value(ty, most, cb) => return self.cast(ty, a),
            BinOp::Add | BinOp::Or | BinOp::Xor if is_value(ty, 0, ca) => return self.cast(ty, b),
            BinOp::Add | BinOp::Or | BinOp::Xor | BinOp::Sub | BinOp::Shl
                if is_value(ty, 0, cb) =>
            {
                return self.cast(ty, a);
            }
            _ => {}
        }
        // The conjunction of two conditions is a condition, because other code may test each of
        // them alone.
        if matches!(op, BinOp::And | BinOp::Or) && self.is_truth(a) && self.is_truth(b) {
            let (a, b) = (self.non_zero(a), self.non_zero(b));
            let both = if op == BinOp::And {
                self.and(a, b)
            } else {
                self.or(a, b)
            };
            return self.truth(both);
        }
        // A choice between constants remains one, which keeps conditions on it exact.
        let of_choice = match (self.term(a), self.term(b)) {
            (Term::Ite(c, x, y), Term::Const(_)) => Some((c, [(x, b), (y, b)])),
            (Term::Const(_), Term::Ite(c, x, y)) => Some((c, [(a, x), (a, y)])),
            _ => None,
        };
        if let Some((c, ways)) = of_choice {
            if let Some(&known) = self.bin_memo.get(&(op, ty, a, b)) {
                return known;
            }
            if self.tick() {
                return a;
            }
            let [x, y] = ways.map(|(a, b)| self.bin(op, ty, a, b));
            let result = self.ite(c, x, y);
            self.bin_memo.insert((op, ty, a, b), result);
            return result;
        }
        // Lanes that exchange values add the same ones in another order.
        let (mut a, mut b) = (a, b);
        if op.is_symmetric() && ca.is_none() && cb.is_none() {
            let [x, y] = [a, b].map(|t| self.uncast(ty, t));
            (a, b) = (x.min(y), x.max(y));
        }
        self.intern(Term::Bin(op, ty, a, b), Some(ty))
    }

    /// An operand of an operation in type `ty`, without a conversion that keeps the bits of `ty`.
    fn uncast(&self, ty: Ty, operand: TermId) -> TermId {
        match self.term(operand) {
            Term::Cast(kept, of) if kept.bits >= ty.bits => of,
            _ => operand,
        }
    }

    /// An unknown result of its operands: a term of its own, as another one may differ.
    fn unknown(&mut self, ty: Ty, a: TermId, b: TermId) -> TermId {
        self.made += 1;
        let number = self.constant(self.made);
        let b = self.intern(Term::Bin(BinOp::Unknown, ty, b, number), Some(ty));
        self.intern(Term::Bin(BinOp::Unknown, ty, a, b), Some(ty))
    }

    /// A fused product and sum in floating point.
    pub fn fused(&mut self, fused: Fused, three: [TermId; 3]) -> TermId {
        if let [Some(a), Some(b), Some(c)] = three.map(|t| self.as_const(t)) {
            return self.constant(fused.apply(a, b, c));
        }
        self.intern(
            Term::Fused(fused, three),
            Some(Ty {
                bits: fused.format.bits,
                signed: false,
            }),
        )
    }

    /// `if c then a else b`.
    pub fn ite(&mut self, c: Cond, a: TermId, b: TermId) -> TermId {
        if a == b || c == Cond::TRUE {
            return a;
        }
        if c == Cond::FALSE {
            return b;
        }
        let ty = match (self.types[a.0 as usize], self.types[b.0 as usize]) {
            (Some(x), Some(y)) if x == y => Some(x),
            _ => None,
        };
        self.intern(Term::Ite(c, a, b), ty)
    }

    /// Whether a term is a condition as a value.
    fn is_truth(&self, a: TermId) -> bool {
        let Term::Ite(_, x, y) = self.term(a) else {
            return false;
        };
        [x, y]
            .into_iter()
            .all(|t| matches!(self.term(t), Term::Const(0 | 1)))
    }

    /// The condition as a value: 1 or 0.
    pub fn truth(&mut self, c: Cond) -> TermId {
        let (one, zero) = (self.constant(1), self.constant(0));
        self.ite(c, one, zero)
    }

    /// Whether a term is not 0.
    pub fn non_zero(&mut self, a: TermId) -> Cond {
        let zero = self.constant(0);
        self.cmp(CmpOp::Ne, Ty::WORD, a, zero)
    }

    /// A comparison.
    pub fn cmp(&mut self, op: CmpOp, ty: Ty, a: TermId, b: TermId) -> Cond {
        match op {
            CmpOp::Eq => self.equal(ty, a, b),
            CmpOp::Ne => {
                let c = self.equal(ty, a, b);
                self.not(c)
            }
            CmpOp::Lt => self.less(ty, a, b),
            CmpOp::Gt => self.less(ty, b, a),
            CmpOp::Ge => {
                let c = self.less(ty, a, b);
                self.not(c)
            }
            CmpOp::Le => {
                let c = self.less(ty, b, a);
                self.not(c)
            }
        }
    }

    fn equal(&mut self, ty: Ty, a: TermId, b: TermId) -> Cond {
        if a == b {
            return Cond::TRUE;
        }
        if let (Some(x), Some(y)) = (self.as_const(a), self.as_const(b)) {
            return Cond::constant(CmpOp::Eq.holds(ty, x, y));
        }
        let ty = self
            .common(a, b)
            .filter(|own| own.bits <= ty.bits)
            .unwrap_or(ty);
        let atom = CondAtom::Eq(ty, a.min(b), a.max(b));
        if let Some(c) = self.distribute(atom, a, b, |pool, x, y| pool.equal(ty, x, y)) {
            return c;
        }
        self.literal(atom)
    }

    /// The common type of two terms' values. They are equal in this type exactly if they are equal
    /// in any type as wide. So the condition is the same whatever type the program compares them
    /// in.
    fn common(&self, a: TermId, b: TermId) -> Option<Ty> {
        let own = self.known_type(a).or(self.known_type(b))?;
        (self.has_type(own, a) && self.has_type(own, b)).then_some(own)
    }

    /// Whether the value of a term is of a type.
    fn has_type(&self, own: Ty, t: TermId) -> bool {
        self.known_type(t) == Some(own) || self.as_const(t).is_some_and(|v| own.wrap(v) == v)
    }

    /// The type that a term is surely wrapped to.
    pub(crate) fn known_type(&self, t: TermId) -> Option<Ty> {
        self.types[t.0 as usize]
    }

    fn less(&mut self, ty: Ty, a: TermId, b: TermId) -> Cond {
        if a == b {
            return Cond::FALSE;
        }
        if let (Some(x), Some(y)) = (self.as_const(a), self.as_const(b)) {
            return Cond::constant(CmpOp::Lt.holds(ty, x, y));
        }
        let atom = CondAtom::Lt(ty, a, b);
        if let Some(c) = self.distribute(atom, a, b, |pool, x, y| pool.less(ty, x, y)) {
            return c;
        }
        self.literal(atom)
    }

    /// Pushes the comparison `atom` into a choice on either side.
    fn distribute(
        &mut self,
        atom: CondAtom,
        a: TermId,
        b: TermId,
        mut f: impl FnMut(&mut TermPool, TermId, TermId) -> Cond,
    ) -> Option<Cond> {
        let (c, (xa, xb), (ya, yb)) = match (self.term(a), self.term(b)) {
            (Term::Ite(c, x, y), _) => (c, (x, b), (y, b)),
            (_, Term::Ite(c, x, y)) => (c, (a, x), (a, y)),
            _ => return None,
        };
        if let Some(&known) = self.cmp_memo.get(&atom) {
            return Some(known);
        }
        if self.tick() {
            return Some(Cond::FALSE);
        }
        let (x, y) = (f(self, xa, xb), f(self, ya, yb));
        let result = self.ite_cond(c, x, y);
        self.cmp_memo.insert(atom, result);
        Some(result)
    }

    fn literal(&mut self, atom: CondAtom) -> Cond {
        let id = match self.atom_ids.get(&atom) {
            Some(&id) => id,
            None => {
                let id = AtomId(self.atoms.len() as u32);
                self.atoms.push(atom);
                self.atom_ids.insert(atom, id);
                id
            }
        };
        self.decide(id, Cond::FALSE, Cond::TRUE)
    }

    /// A new free choice.
    pub fn fresh_choice(&mut self) -> Cond {
        let choice = self.choices;
        self.choices += 1;
        self.literal(CondAtom::Choice(choice))
    }

    /// The number of a choice made with [`TermPool::fresh_choice`], if the condition is one.
    pub fn as_choice(&self, c: Cond) -> Option<u32> {
        match self.decision(c)? {
            (atom, Cond::FALSE, Cond::TRUE) => match self.atom(atom) {
                CondAtom::Choice(i) => Some(i),
                _ => None,
            },
            _ => None,
        }
    }

    /// The condition that an atom holds.
    pub(crate) fn of_atom(&mut self, atom: AtomId) -> Cond {
        self.decide(atom, Cond::FALSE, Cond::TRUE)
    }

    fn decide(&mut self, atom: AtomId, low: Cond, high: Cond) -> Cond {
        if low == high {
            return low;
        }
        if let Some(&c) = self.decision_ids.get(&(atom, low, high)) {
            return c;
        }
        let c = Cond(self.decisions.len() as u32 + 2);
        self.decisions.push(Decision { atom, low, high });
        self.decision_ids.insert((atom, low, high), c);
        c
    }

    /// The test at the root of a condition: atom, branch if false, branch if true. `None` for
    /// constants.
    pub fn decision(&self, c: Cond) -> Option<(AtomId, Cond, Cond)> {
        let d = self.decisions.get(c.0.checked_sub(2)? as usize)?;
        Some((d.atom, d.low, d.high))
    }

    /// `if c then a else b` on conditions.
    pub fn ite_cond(&mut self, c: Cond, a: Cond, b: Cond) -> Cond {
        if c == Cond::TRUE || a == b {
            return a;
        }
        if c == Cond::FALSE {
            return b;
        }
        if a == Cond::TRUE && b == Cond::FALSE {
            return c;
        }
        if let Some(&r) = self.ite_memo.get(&(c, a, b)) {
            return r;
        }
        if self.tick() {
            return Cond::FALSE;
        }
        let top = [c, a, b]
            .into_iter()
            .filter_map(|x| self.decision(x))
            .map(|d| d.0)
            .min()
            .expect("c is not constant");
        let ((c0, c1), (a0, a1), (b0, b1)) = (
            self.branches(top, c),
            self.branches(top, a),
            self.branches(top, b),
        );
        let low = self.ite_cond(c0, a0, b0);
        let high = self.ite_cond(c1, a1, b1);
        let r = self.decide(top, low, high);
        self.ite_memo.insert((c, a, b), r);
        r
    }

    /// The branches of a condition at an atom that no condition tests before.
    fn branches(&self, top: AtomId, x: Cond) -> (Cond, Cond) {
        match self.decision(x) {
            Some((atom, low, high)) if atom == top => (low, high),
            _ => (x, x),
        }
    }

    /// Conjunction.
    pub fn and(&mut self, a: Cond, b: Cond) -> Cond {
        self.ite_cond(a, b, Cond::FALSE)
    }

    /// Disjunction.
    pub fn or(&mut self, a: Cond, b: Cond) -> Cond {
        self.ite_cond(a, Cond::TRUE, b)
    }

    /// Negation.
    pub fn not(&mut self, a: Cond) -> Cond {
        self.ite_cond(a, Cond::FALSE, Cond::TRUE)
    }

    /// `a → b`.
    pub fn implies(&mut self, a: Cond, b: Cond) -> Cond {
        self.ite_cond(a, b, Cond::TRUE)
    }

    /// `a ↔ b`.
    pub fn iff(&mut self, a: Cond, b: Cond) -> Cond {
        let not_b = self.not(b);
        self.ite_cond(a, b, not_b)
    }

    /// The condition that at least `k` of the conditions hold.
    pub fn at_least(&mut self, k: usize, conds: &[Cond]) -> Cond {
        let sure = conds.iter().filter(|&&c| c == Cond::TRUE).count();
        let open: Vec<Cond> = conds.iter().copied().filter(|c| !c.is_const()).collect();
        let Some(k @ 1..) = k.checked_sub(sure) else {
            return Cond::TRUE;
        };
        if open.len() < k {
            return Cond::FALSE;
        }
        // counts[j]: at least j of the previous conditions hold
        let mut counts = vec![Cond::FALSE; k + 1];
        counts[0] = Cond::TRUE;
        for c in open {
            for j in (1..=k).rev() {
                counts[j] = self.ite_cond(c, counts[j - 1], counts[j]);
            }
        }
        counts[k]
    }

    /// The condition that exactly `k` of the conditions hold.
    pub fn exactly(&mut self, k: usize, conds: &[Cond]) -> Cond {
        let enough = self.at_least(k, conds);
        let more = self.at_least(k + 1, conds);
        let not_more = self.not(more);
        self.and(enough, not_more)
    }

    /// Replaces a condition by a simpler one that agrees with it whenever `care` holds.
    pub fn restrict(&mut self, c: Cond, care: Cond) -> Cond {
        if c.is_const() || care == Cond::TRUE {
            return c;
        }
        if care == Cond::FALSE {
            return Cond::FALSE;
        }
        if let Some(&known) = self.restrict_memo.get(&(c, care)) {
            return known;
        }
        if self.tick() {
            return Cond::FALSE;
        }
        let result = self.restrict_anew(c, care);
        self.restrict_memo.insert((c, care), result);
        result
    }

    fn restrict_anew(&mut self, c: Cond, care: Cond) -> Cond {
        let (atom, low, high) = self.decision(c).expect("not constant");
        let (care_atom, care_low, care_high) = self.decision(care).expect("not constant");
        if care_atom < atom {
            let either = self.or(care_low, care_high);
            return self.restrict(c, either);
        }
        let (care_low, care_high) = if care_atom == atom {
            (care_low, care_high)
        } else {
            (care, care)
        };
        if care_low == Cond::FALSE {
            return self.restrict(high, care_high);
        }
        if care_high == Cond::FALSE {
            return self.restrict(low, care_low);
        }
        let (low, high) = (self.restrict(low, care_low), self.restrict(high, care_high));
        self.decide(atom, low, high)
    }

    /// Whether the first condition implies the second; decided without new parts.
    pub(crate) fn entails(&self, a: Cond, b: Cond) -> bool {
        let mut unlimited = usize::MAX;
        self.entails_within(a, b, &mut unlimited)
    }

    /// As [`TermPool::entails`], but takes its steps from a budget. A spent budget gives `false`.
    pub(crate) fn entails_within(&self, a: Cond, b: Cond, steps: &mut usize) -> bool {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut open = vec![(a, b)];
        while let Some((a, b)) = open.pop() {
            let Some(left) = steps.checked_sub(1) else {
                return false;
            };
            *steps = left;
            if a == Cond::FALSE || b == Cond::TRUE || a == b || !seen.insert((a, b)) {
                continue;
            }
            let of = [a, b].map(|c| self.decision(c));
            let Some(first) = of
                .iter()
                .flatten()
                .map(|d| d.0)
                .min()
                .filter(|_| b != Cond::FALSE)
            else {
                return false;
            };
            // A condition without the atom is the same on both sides of it.
            let sides = |c: Cond| match self.decision(c) {
                Some((atom, low, high)) if atom == first => [low, high],
                _ => [c, c],
            };
            let (of_a, of_b) = (sides(a), sides(b));
            open.extend([(of_a[0], of_b[0]), (of_a[1], of_b[1])]);
        }
        true
    }

    /// The atoms that the condition depends on, in order.
    pub fn support(&self, c: Cond) -> Vec<AtomId> {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut atoms = std::collections::BTreeSet::new();
        let mut stack = vec![c];
        while let Some(c) = stack.pop() {
            if let Some((atom, low, high)) = self.decision(c).filter(|_| seen.insert(c)) {
                atoms.insert(atom);
                stack.extend([low, high]);
            }
        }
        atoms.into_iter().collect()
    }

    /// The terms that a condition compares; its other atoms are choices.
    pub(crate) fn compared(&self, c: Cond) -> impl Iterator<Item = TermId> + '_ {
        self.support(c)
            .into_iter()
            .filter_map(|atom| match self.atom(atom) {
                CondAtom::Eq(_, a, b) | CondAtom::Lt(_, a, b) => Some([a, b]),
                CondAtom::Choice(_) => None,
            })
            .flatten()
    }

    /// The parts of a term, including the terms that its condition compares.
    pub(crate) fn parts(&self, t: TermId) -> Vec<TermId> {
        match self.term(t) {
            Term::Const(_) | Term::Read(_) => Vec::new(),
            Term::Cast(_, a) => vec![a],
            Term::Bin(_, _, a, b) => vec![a, b],
            Term::Fused(_, three) => three.to_vec(),
            Term::Ite(c, a, b) => self.compared(c).chain([a, b]).collect(),
        }
    }
}

/// Whether a constant is known and equal to `n` in a type.
fn is_value(ty: Ty, n: i64, v: Option<i64>) -> bool {
    v.is_some_and(|v| ty.wrap(v) == ty.wrap(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_fold_at_joins() {
        let mut p = TermPool::default();
        let (g, c, d) = (p.fresh_choice(), p.fresh_choice(), p.fresh_choice());
        let not_c = p.not(c);
        let not_d = p.not(d);
        let gc = p.and(g, c);
        let gcd = p.and(gc, d);
        let gcnd = p.and(gc, not_d);
        let gnc = p.and(g, not_c);
        let one = p.or(gcd, gnc);
        assert_eq!(p.or(one, gcnd), g);
    }

    #[test]
    fn values_without_dependency_are_constants() {
        let mut p = TermPool::default();
        let r = p.read(EventId(3), Ty::WORD);
        let zero = p.constant(0);
        assert_eq!(p.bin(BinOp::Xor, Ty::WORD, r, r), zero);
        assert_eq!(p.bin(BinOp::Mul, Ty::WORD, r, zero), zero);
        assert_eq!(p.bin(BinOp::Add, Ty::WORD, r, zero), r);
    }

    #[test]
    fn comparing_a_choice_of_constants_gives_back_the_choice() {
        let mut p = TermPool::default();
        let c = p.fresh_choice();
        let flag = p.truth(c);
        assert_eq!(p.non_zero(flag), c);
    }

    #[test]
    fn operations_on_choices_are_watched() {
        const MANY: i64 = 1_500;
        let mut pool = TermPool::watched(None);
        let mut chosen = pool.constant(0);
        for n in 1..MANY {
            let (choice, other) = (pool.fresh_choice(), pool.constant(n));
            chosen = pool.ite(choice, chosen, other);
        }
        for n in 1..MANY {
            let constant = pool.constant(MANY * n);
            pool.bin(BinOp::Add, Ty::WORD, chosen, constant);
        }
        assert_eq!(pool.given_up(), Err(Reason::TooManyParts(MAX_POOL)));
    }

    #[test]
    fn a_watched_pool_gives_up_and_says_so() {
        let wide = |deadline| {
            let mut p = TermPool::watched(deadline);
            let all = (0..200).fold(Cond::FALSE, |sum, _| {
                let choice = p.fresh_choice();
                p.iff(sum, choice)
            });
            let _ = p.not(all);
            p
        };
        assert_eq!(wide(Some(Instant::now())).given_up(), Err(Reason::Time));
        let mut fine = wide(None);
        assert_eq!((fine.given_up(), fine.unwatch()), (Ok(()), Ok(())));
    }

    #[test]
    fn counting() {
        let mut p = TermPool::default();
        let cs: Vec<Cond> = (0..3).map(|_| p.fresh_choice()).collect();
        let all = p.at_least(3, &cs);
        let ab = p.and(cs[0], cs[1]);
        assert_eq!(all, p.and(ab, cs[2]));
        assert_eq!(p.at_least(4, &cs), Cond::FALSE);
        assert_eq!(p.at_least(0, &cs), Cond::TRUE);
        let none = p.exactly(0, &cs);
        let any = p.at_least(1, &cs);
        assert_eq!(none, p.not(any));
    }

    #[test]
    fn restriction_drops_what_the_care_set_decides() {
        let mut p = TermPool::default();
        let (g, c) = (p.fresh_choice(), p.fresh_choice());
        let gc = p.and(g, c);
        assert_eq!(p.restrict(gc, g), c);
    }

    #[test]
    fn parts_that_conditions_share_are_restricted_once() {
        let mut pool = TermPool::default();
        let choices: Vec<Cond> = (0..60).map(|_| pool.fresh_choice()).collect();
        let mut odd = Cond::FALSE;
        for &choice in choices.iter().rev() {
            let even = pool.not(odd);
            odd = pool.ite_cond(choice, even, odd);
        }
        let some = pool.at_least(1, &choices);
        let simpler = pool.restrict(odd, some);
        assert_eq!(pool.and(simpler, some), pool.and(odd, some));
    }
}
