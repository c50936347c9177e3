//! Evaluating terms, conditions and propositions under what is known so far.
//!
//! # Invariants
//! - Three-valued and sound: a known result is the result under every completion of the assignment.

use rustc_hash::FxHashMap;

use crate::skeleton::{Atom, Cond, Pool, Term, TermId};
use program::litmus::{Atom as PropAtom, Prop};

/// What is known of reads and choices.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// By event: the value that a read returns.
    pub reads: Vec<Option<i64>>,
    /// By choice.
    pub choices: Vec<Option<bool>>,
}

/// An evaluator with a memo, for one assignment.
pub struct Eval<'a> {
    pool: &'a Pool,
    known: &'a Assignment,
    terms: FxHashMap<TermId, Option<i64>>,
    conds: FxHashMap<Cond, Option<bool>>,
}

impl<'a> Eval<'a> {
    /// An evaluator that knows nothing yet.
    pub fn new(pool: &'a Pool, known: &'a Assignment) -> Self {
        Eval { pool, known, terms: FxHashMap::default(), conds: FxHashMap::default() }
    }

    /// The value of a term.
    pub fn term(&mut self, t: TermId) -> Option<i64> {
        match self.pool.term(t) {
            Term::Const(v) => return Some(v),
            Term::Read(e) => return self.known.reads[e.index()],
            _ => {}
        }
        if let Some(v) = self.terms.get(&t) {
            return *v;
        }
        let v = match self.pool.term(t) {
            Term::Const(_) | Term::Read(_) => unreachable!("handled above"),
            Term::Bin(op, ty, a, b) => match (self.term(a), self.term(b)) {
                (Some(a), Some(b)) => Some(op.apply(ty, a, b)),
                _ => None,
            },
            Term::Cast(ty, a) => self.term(a).map(|v| ty.wrap(v)),
            Term::Ite(c, a, b) => match self.cond(c) {
                Some(true) => self.term(a),
                Some(false) => self.term(b),
                None => {
                    let (a, b) = (self.term(a), self.term(b));
                    if a == b { a } else { None }
                }
            },
        };
        self.terms.insert(t, v);
        v
    }

    /// The value of a condition.
    pub fn cond(&mut self, c: Cond) -> Option<bool> {
        let Some((atom, low, high)) = self.pool.decision(c) else {
            return Some(c == Cond::TRUE);
        };
        if let Some(v) = self.conds.get(&c) {
            return *v;
        }
        let test = match self.pool.atom(atom) {
            Atom::Eq(ty, a, b) => match (self.term(a), self.term(b)) {
                (Some(a), Some(b)) => Some(ty.wrap(a) == ty.wrap(b)),
                _ => None,
            },
            Atom::Lt(ty, a, b) => match (self.term(a), self.term(b)) {
                (Some(a), Some(b)) => Some(program::CmpOp::Lt.holds(ty, a, b)),
                _ => None,
            },
            Atom::Choice(i) => self.known.choices[i as usize],
        };
        let v = match test {
            Some(true) => self.cond(high),
            Some(false) => self.cond(low),
            None => {
                let (low, high) = (self.cond(low), self.cond(high));
                if low == high { low } else { None }
            }
        };
        self.conds.insert(c, v);
        v
    }
}

/// Evaluates a proposition, given final values as far as they are known.
pub fn prop(p: &Prop, value: &mut dyn FnMut(&PropAtom) -> Option<i64>) -> Option<bool> {
    match p {
        Prop::And(ps) => {
            let mut all = Some(true);
            for p in ps {
                match prop(p, value) {
                    Some(false) => return Some(false),
                    None => all = None,
                    Some(true) => {}
                }
            }
            all
        }
        Prop::Or(ps) => {
            let mut any = Some(false);
            for p in ps {
                match prop(p, value) {
                    Some(true) => return Some(true),
                    None => any = None,
                    Some(false) => {}
                }
            }
            any
        }
        Prop::Not(p) => prop(p, value).map(|b| !b),
        Prop::Cmp(op, ty, a, b) => {
            let (a, b) = (value(a)?, value(b)?);
            Some(op.holds(*ty, a, b))
        }
    }
}
