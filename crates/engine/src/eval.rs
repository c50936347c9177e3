//! Evaluates terms, conditions and propositions under a partial assignment.
//!
//! # Invariants
//! - Evaluation is three-valued and sound: a known result is the result under every completion of
//!   the assignment.

use rustc_hash::FxHashMap;

use crate::skeleton::EdgeKind;
use crate::skeleton::{Cond, CondAtom, Skeleton, Term, TermId};
use cat::rel::EventSet;
use program::litmus::{Atom as PropAtom, ConditionTerm, Prop};
use program::memory::CellId;
use program::{RegId, ThreadId};

/// The known values of reads and choices.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// By event: the value that a read returns.
    pub reads: Vec<Option<i64>>,
    /// By choice: its value.
    pub choices: Vec<Option<bool>>,
}

impl Assignment {
    /// The assignment without any value.
    pub fn nothing(sk: &Skeleton) -> Assignment {
        Assignment {
            reads: vec![None; sk.len()],
            choices: vec![None; sk.pool.choice_count() as usize],
        }
    }
}

/// An evaluator for one assignment; it caches its results.
pub struct Eval<'a> {
    sk: &'a Skeleton,
    known: &'a Assignment,
    terms: FxHashMap<TermId, Option<i64>>,
    conds: FxHashMap<Cond, Option<bool>>,
}

impl<'a> Eval<'a> {
    /// An evaluator with an empty cache.
    pub fn new(sk: &'a Skeleton, known: &'a Assignment) -> Self {
        Eval {
            sk,
            known,
            terms: FxHashMap::default(),
            conds: FxHashMap::default(),
        }
    }

    /// The value of a term.
    pub fn term(&mut self, t: TermId) -> Option<i64> {
        let term = self.sk.pool.term(t);
        match term {
            Term::Const(v) => return Some(v),
            Term::Read(e) => return self.known.reads[e.index()],
            _ => {}
        }
        if let Some(v) = self.terms.get(&t) {
            return *v;
        }
        let v = match term {
            Term::Const(_) | Term::Read(_) => unreachable!("handled above"),
            Term::Bin(op, ty, a, b) => match (self.term(a), self.term(b)) {
                (Some(a), Some(b)) => Some(op.apply(ty, a, b)),
                _ => None,
            },
            Term::Cast(ty, a) => self.term(a).map(|v| ty.wrap(v)),
            Term::Fused(fused, three) => match three.map(|t| self.term(t)) {
                [Some(a), Some(b), Some(c)] => Some(fused.apply(a, b, c)),
                _ => None,
            },
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
        let Some((atom, low, high)) = self.sk.pool.decision(c) else {
            return Some(c == Cond::TRUE);
        };
        if let Some(v) = self.conds.get(&c) {
            return *v;
        }
        let test = match self.sk.pool.atom(atom) {
            CondAtom::Eq(ty, a, b) => match (self.term(a), self.term(b)) {
                (Some(a), Some(b)) => Some(ty.wrap(a) == ty.wrap(b)),
                _ => None,
            },
            CondAtom::Lt(ty, a, b) => match (self.term(a), self.term(b)) {
                (Some(a), Some(b)) => Some(program::CmpOp::Lt.holds(ty, a, b)),
                _ => None,
            },
            CondAtom::Choice(i) => self.known.choices[i as usize],
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

    /// A read that the value of a term waits for; `None` if the value is known, or waits only for
    /// choices.
    pub fn waits_for(&mut self, t: TermId) -> Option<usize> {
        if self.term(t).is_some() {
            return None;
        }
        match self.sk.pool.term(t) {
            Term::Const(_) => None,
            Term::Read(e) => Some(e.index()),
            Term::Bin(_, _, a, b) => self.waits_for(a).or_else(|| self.waits_for(b)),
            Term::Cast(_, a) => self.waits_for(a),
            Term::Fused(_, three) => three.into_iter().find_map(|t| self.waits_for(t)),
            Term::Ite(c, a, b) => match self.cond(c) {
                Some(true) => self.waits_for(a),
                Some(false) => self.waits_for(b),
                None => self.cond_waits_for(c),
            },
        }
    }

    /// As [`Eval::waits_for`], for a condition.
    fn cond_waits_for(&mut self, c: Cond) -> Option<usize> {
        if self.cond(c).is_some() {
            return None;
        }
        let (atom, low, high) = self.sk.pool.decision(c)?;
        let tested = match self.sk.pool.atom(atom) {
            CondAtom::Eq(_, a, b) | CondAtom::Lt(_, a, b) => {
                self.waits_for(a).or_else(|| self.waits_for(b))
            }
            CondAtom::Choice(_) => None,
        };
        tested
            .or_else(|| self.cond_waits_for(low))
            .or_else(|| self.cond_waits_for(high))
    }

    /// The final value of a register.
    pub fn register(&mut self, thread: ThreadId, register: RegId) -> Option<i64> {
        self.term(self.sk.final_regs[thread.0 as usize][register.0 as usize])
    }

    /// The value that an access reads or writes.
    pub fn value(&mut self, event: usize) -> Option<i64> {
        self.term(self.sk.events[event].value?)
    }

    /// The address of an access.
    pub fn address(&mut self, event: usize) -> Option<i64> {
        self.term(self.sk.events[event].addr?)
    }

    /// The memory cell of an access, if its address is known; `Some(None)` if it can access none
    /// there.
    pub fn memory(&mut self, event: usize) -> Option<Option<CellId>> {
        self.address(event)
            .map(|address| self.sk.accessed(event, address))
    }

    /// Whether an access has an address without memory that it can access. It then has no source
    /// and reads 0.
    pub fn is_astray(&mut self, event: usize) -> bool {
        self.memory(event).flatten().is_none()
    }

    /// Whether threads surely wait for each other in a cycle at barriers, among these events.
    pub fn waits_in_circle(&mut self, executed: &EventSet) -> bool {
        let mut order = self.sk.program_order().clone();
        for &(a, b, cond) in self.sk.edges.of(EdgeKind::BarrierOrder) {
            if self.cond(cond) == Some(true) {
                order.insert(a.index(), b.index());
            }
        }
        order.has_cycle(executed)
    }
}

/// Evaluates a proposition; `value` gives the final values that are known.
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
            let mut side = |of: &ConditionTerm| {
                let atom = &mut |atom: &PropAtom| value(atom).ok_or(());
                of.fold(atom, &mut |op, a, b| op.apply(*ty, a, b)).ok()
            };
            let (a, b) = (side(a)?, side(b)?);
            Some(op.holds(*ty, a, b))
        }
    }
}
