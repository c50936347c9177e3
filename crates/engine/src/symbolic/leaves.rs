//! Builds the leaves of a task's circuit: conditions, values, and cells of relations.
//!
//! # Invariants
//! - A value is a list of (integer, condition). The conditions of one value exclude each other and
//!   cover everything, given that its reads execute. A value with too many integers to list is a
//!   word of bits.
//! - Leaf cells are about two events given that both execute.

use std::collections::BTreeMap;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::words::BitWord;
use crate::facts::Facts;
use crate::skeleton::base::Base;
use crate::skeleton::images::MAX_VALUES;
use crate::skeleton::images::{Image, together};
use crate::skeleton::linear::are_equal;
use crate::skeleton::{Cond, CondAtom, Term, TermId};
use cat::algebra::circuit::CircuitLeaves;
use cat::algebra::gates::{Gates, Lit};
use cat::model::ir::FreeId;
use cat::model::signature::BaseId;
use cat::rel::EventId;
use program::{BinOp, CmpOp, Ty};

/// A value by cases.
pub(super) type Cases = Vec<(i64, Lit)>;

/// A value.
#[derive(Clone)]
pub(super) enum CircuitValue {
    /// By cases.
    Cases(Rc<Cases>),
    /// By its bits.
    Word(Rc<BitWord>),
}

impl CircuitValue {
    /// A constant.
    pub(super) fn constant(v: i64) -> CircuitValue {
        CircuitValue::Cases(Rc::new(vec![(v, Lit::TRUE)]))
    }

    /// Its bits.
    pub(super) fn word(&self, gates: &mut Gates) -> Rc<BitWord> {
        match self {
            CircuitValue::Cases(cases) => Rc::new(BitWord::of_cases(gates, cases)),
            CircuitValue::Word(word) => word.clone(),
        }
    }

    /// The value under an assignment, and the literals that determine it.
    pub(super) fn read(&self, is: impl Fn(Lit) -> bool) -> Option<(i64, Vec<Lit>)> {
        match self {
            CircuitValue::Cases(cases) => cases
                .iter()
                .find(|c| is(c.1))
                .map(|&(v, lit)| (v, vec![lit])),
            CircuitValue::Word(word) => {
                let lits: Vec<Lit> = word
                    .bits()
                    .iter()
                    .map(|&l| if is(l) { l } else { !l })
                    .collect();
                let bits = word.bits().iter().rev();
                Some((bits.fold(0, |v, &l| v << 1 | i64::from(is(l))), lits))
            }
        }
    }
}

/// Gates of leaves: guards, values, open cells.
pub(super) struct LeafGates<'a> {
    pub(super) facts: Rc<Facts<'a>>,
    pub(super) conds: FxHashMap<Cond, Lit>,
    pub(super) terms: FxHashMap<TermId, Rc<Cases>>,
    pub(super) words: FxHashMap<TermId, Rc<BitWord>>,
    pub(super) choices: Vec<Lit>,
    /// Values of reads, as inputs.
    pub(super) reads: Vec<Option<CircuitValue>>,
    /// By list of reads: the combinations of their values.
    pub(super) combined: FxHashMap<Vec<EventId>, Rc<Vec<Lit>>>,
    pub(super) free: Vec<FxHashMap<(u32, u32), Lit>>,
}

impl LeafGates<'_> {
    /// A condition of the skeleton.
    pub(super) fn cond(&mut self, gates: &mut Gates, c: Cond) -> Lit {
        let facts = self.facts.clone();
        let pool = &facts.sk.pool;
        let Some((atom, low, high)) = pool.decision(c) else {
            return Lit::constant(c == Cond::TRUE);
        };
        if let Some(&l) = self.conds.get(&c) {
            return l;
        }
        let test = match pool.atom(atom) {
            CondAtom::Choice(i) => self.choices[i as usize],
            CondAtom::Eq(ty, a, b) => self.compare(gates, CmpOp::Eq, ty, a, b),
            CondAtom::Lt(ty, a, b) => self.compare(gates, CmpOp::Lt, ty, a, b),
        };
        let (low, high) = (self.cond(gates, low), self.cond(gates, high));
        let lit = gates.ite(test, high, low);
        self.conds.insert(c, lit);
        lit
    }

    fn compare(&mut self, gates: &mut Gates, op: CmpOp, ty: Ty, a: TermId, b: TermId) -> Lit {
        let facts = self.facts.clone();
        let images = [facts.domains.image(a), facts.domains.image(b)];
        match together(&|e| self.reads_of(e).len(), &images, |row| {
            op.holds(ty, row[0], row[1])
        }) {
            Some((reads, truths)) => {
                let combinations = self.combinations(gates, &reads);
                the_yes(gates, truths.into_iter().zip(combinations.iter().copied()))
            }
            None => {
                let equal = are_equal(&facts.sk.pool, u32::from(ty.bits), a, b);
                if let Some(equal) = equal.filter(|_| op == CmpOp::Eq) {
                    return Lit::constant(equal);
                }
                let (a, b) = (self.value(gates, a), self.value(gates, b));
                holds(gates, op, ty, &a, &b)
            }
        }
    }

    fn reads_of(&self, e: EventId) -> &Rc<Cases> {
        match self.reads[e.index()].as_ref().expect("reads have inputs") {
            CircuitValue::Cases(cases) => cases,
            CircuitValue::Word(_) => unreachable!("functions have reads with listed values"),
        }
    }

    /// For each combination of the values of some reads, the literal that they have it; the values
    /// of the last read change fastest.
    fn combinations(&mut self, gates: &mut Gates, reads: &[EventId]) -> Rc<Vec<Lit>> {
        if let Some(known) = self.combined.get(reads) {
            return known.clone();
        }
        let list = match reads.split_last() {
            None => vec![Lit::TRUE],
            Some((&last, rest)) => {
                let (rest, last) = (self.combinations(gates, rest), self.reads_of(last).clone());
                rest.iter()
                    .flat_map(|&all| last.iter().map(move |&(_, one)| (all, one)))
                    .map(|(all, one)| gates.and(all, one))
                    .collect()
            }
        };
        let list = Rc::new(list);
        self.combined.insert(reads.to_vec(), list.clone());
        list
    }

    /// Whether the values of a term are listed.
    fn is_listed(&self, t: TermId) -> bool {
        !matches!(self.facts.domains.image(t), Image::Word)
    }

    /// Whether an operand of a term is known only by its bits.
    fn is_of_words(&self, t: TermId) -> bool {
        match self.facts.sk.pool.term(t) {
            Term::Const(_) | Term::Read(_) | Term::Bin(BinOp::Unknown, ..) => false,
            Term::Cast(_, a) => self.is_unlisted(a),
            Term::Fused(_, three) => three.into_iter().any(|t| self.is_unlisted(t)),
            Term::Ite(_, a, b) | Term::Bin(_, _, a, b) => {
                self.is_unlisted(a) || self.is_unlisted(b)
            }
        }
    }

    /// Whether the values of a term are not listed.
    fn is_unlisted(&self, t: TermId) -> bool {
        !self.is_listed(t)
    }

    /// A value of the skeleton.
    pub(super) fn value(&mut self, gates: &mut Gates, t: TermId) -> CircuitValue {
        if self.is_listed(t) {
            CircuitValue::Cases(self.term(gates, t))
        } else {
            CircuitValue::Word(self.word(gates, t))
        }
    }

    /// The bits of a value of the skeleton.
    pub(super) fn word(&mut self, gates: &mut Gates, t: TermId) -> Rc<BitWord> {
        if let Some(word) = self.words.get(&t) {
            return word.clone();
        }
        let made = match self.facts.sk.pool.term(t) {
            _ if self.is_listed(t) && !self.is_of_words(t) => {
                let cases = self.term(gates, t);
                BitWord::of_cases(gates, &cases)
            }
            Term::Const(v) => BitWord::constant(v),
            Term::Read(e) => match self.reads[e.index()].as_ref().expect("reads have inputs") {
                CircuitValue::Cases(cases) => BitWord::of_cases(gates, cases),
                CircuitValue::Word(word) => (**word).clone(),
            },
            Term::Cast(ty, a) => self.word(gates, a).wrapped(ty),
            Term::Ite(c, a, b) => {
                let c = self.cond(gates, c);
                let (a, b) = (self.word(gates, a), self.word(gates, b));
                BitWord::ite(gates, c, &a, &b)
            }
            Term::Bin(op, ty, a, b) => {
                let (a, b) = (self.word(gates, a), self.word(gates, b));
                BitWord::apply(gates, op, ty, &a, &b)
            }
            Term::Fused(..) => unreachable!("its values are listed"),
        };
        let made = Rc::new(made);
        self.words.insert(t, made.clone());
        made
    }

    /// The cases of a value of the skeleton, which must be listed.
    pub(super) fn term(&mut self, gates: &mut Gates, t: TermId) -> Rc<Cases> {
        if let Some(c) = self.terms.get(&t) {
            return c.clone();
        }
        let facts = self.facts.clone();
        let cases = match (facts.domains.image(t), facts.sk.pool.term(t)) {
            (Image::Of(reads, values), _) => {
                let combinations = self.combinations(gates, reads);
                collect(
                    gates,
                    values.iter().copied().zip(combinations.iter().copied()),
                )
            }
            (Image::Word, _) => unreachable!("they are not listed"),
            (Image::Any(values), _) if self.is_of_words(t) => {
                let word = self.word(gates, t);
                let cases: Vec<(i64, Lit)> = values
                    .iter()
                    .map(|&v| (v, equals(&word, gates, v)))
                    .collect();
                collect(gates, cases)
            }
            (Image::Any(_), Term::Const(_) | Term::Read(_)) => {
                unreachable!("they are functions of reads")
            }
            (Image::Any(_), Term::Cast(ty, a)) => {
                let a = self.term(gates, a);
                collect(gates, a.iter().map(|&(v, l)| (ty.wrap(v), l)))
            }
            (Image::Any(_), Term::Ite(c, a, b)) => {
                let c = self.cond(gates, c);
                let (a, b) = (self.term(gates, a), self.term(gates, b));
                let mut list = Vec::new();
                for &(v, l) in a.iter() {
                    list.push((v, gates.and(c, l)));
                }
                for &(v, l) in b.iter() {
                    list.push((v, gates.and(!c, l)));
                }
                collect(gates, list)
            }
            (Image::Any(_), Term::Bin(op, ty, a, b)) => {
                let (a, b) = (self.term(gates, a), self.term(gates, b));
                calculated_cases(gates, op, ty, &a, &b)
            }
            (Image::Any(_), Term::Fused(fused, three)) => {
                let [a, b, c] = three.map(|t| self.term(gates, t));
                let mut list = Vec::new();
                for (&(x, lx), &(y, ly)) in a.iter().flat_map(|x| b.iter().map(move |y| (x, y))) {
                    let both = gates.and(lx, ly);
                    list.extend(
                        c.iter()
                            .map(|&(z, lz)| (fused.apply(x, y, z), gates.and(both, lz))),
                    );
                }
                collect(gates, list)
            }
        };
        self.terms.insert(t, cases.clone());
        cases
    }
}

/// The literal that a word has a value.
fn equals(word: &BitWord, gates: &mut Gates, v: i64) -> Lit {
    BitWord::holds(gates, CmpOp::Eq, Ty::WORD, word, &BitWord::constant(v))
}

/// Joins cases of equal value.
pub(super) fn collect(gates: &mut Gates, list: impl IntoIterator<Item = (i64, Lit)>) -> Rc<Cases> {
    let mut by_value: BTreeMap<i64, Vec<Lit>> = BTreeMap::new();
    for (v, l) in list {
        if l != Lit::FALSE {
            by_value.entry(v).or_default().push(l);
        }
    }
    Rc::new(
        by_value
            .into_iter()
            .map(|(v, ls)| (v, gates.any(ls)))
            .collect(),
    )
}

/// The literal that a comparison of two values holds.
pub(super) fn compare_cases(
    gates: &mut Gates,
    a: &Cases,
    b: &Cases,
    holds: impl Fn(i64, i64) -> bool,
) -> Lit {
    let mut cases = Vec::with_capacity(a.len() * b.len());
    for &(x, lx) in a {
        cases.extend(b.iter().map(|&(y, ly)| (holds(x, y), gates.and(lx, ly))));
    }
    the_yes(gates, cases)
}

/// Whether `a op b` holds in type `ty`.
pub(super) fn holds(
    gates: &mut Gates,
    op: CmpOp,
    ty: Ty,
    a: &CircuitValue,
    b: &CircuitValue,
) -> Lit {
    if let (CircuitValue::Cases(a), CircuitValue::Cases(b)) = (a, b) {
        return compare_cases(gates, a, b, |x, y| op.holds(ty, x, y));
    }
    let (a, b) = (a.word(gates), b.word(gates));
    BitWord::holds(gates, op, ty, &a, &b)
}

/// The result of an operation on two values: cases if they are few enough to list, otherwise bits.
pub(super) fn calculated(
    gates: &mut Gates,
    op: BinOp,
    ty: Ty,
    a: &CircuitValue,
    b: &CircuitValue,
) -> CircuitValue {
    match (a, b) {
        (CircuitValue::Cases(a), CircuitValue::Cases(b)) if a.len() * b.len() <= MAX_VALUES => {
            CircuitValue::Cases(calculated_cases(gates, op, ty, a, b))
        }
        _ => {
            let (a, b) = (a.word(gates), b.word(gates));
            CircuitValue::Word(Rc::new(BitWord::apply(gates, op, ty, &a, &b)))
        }
    }
}

fn calculated_cases(gates: &mut Gates, op: BinOp, ty: Ty, a: &Cases, b: &Cases) -> Rc<Cases> {
    let mut list = Vec::new();
    for &(x, lx) in a {
        for &(y, ly) in b {
            list.push((op.apply(ty, x, y), gates.and(lx, ly)));
        }
    }
    collect(gates, list)
}

/// The literal that one of the cases marked true holds.
fn the_yes(gates: &mut Gates, cases: impl IntoIterator<Item = (bool, Lit)>) -> Lit {
    let (mut yes, mut no) = (Vec::new(), Vec::new());
    for (says, lit) in cases {
        if says { yes.push(lit) } else { no.push(lit) }
    }
    // Exactly one case holds, so the shorter list suffices.
    if no.is_empty() {
        Lit::TRUE
    } else if no.len() < yes.len() {
        !gates.any(no)
    } else {
        gates.any(yes)
    }
}

impl CircuitLeaves for LeafGates<'_> {
    fn executes(&mut self, gates: &mut Gates, event: usize) -> Lit {
        self.cond(gates, self.facts.sk.events[event].guard)
    }

    fn base(&mut self, gates: &mut Gates, id: BaseId, i: usize, j: usize) -> Lit {
        let Base::Rel(relation) = self.facts.base(id) else {
            unreachable!("sets have no open cells")
        };
        let from = relation
            .open
            .partition_point(|cell| (cell.0, cell.1) < (i, j));
        let here: Vec<Cond> = relation.open[from..]
            .iter()
            .take_while(|cell| (cell.0, cell.1) == (i, j))
            .map(|cell| cell.2)
            .collect();
        let here: Vec<Lit> = here
            .into_iter()
            .map(|cond| self.cond(gates, cond))
            .collect();
        gates.any(here)
    }

    fn free(&mut self, _: &mut Gates, id: FreeId, i: usize, j: usize) -> Lit {
        self.free[id.0 as usize]
            .get(&(i as u32, j as u32))
            .copied()
            .unwrap_or(Lit::FALSE)
    }
}
