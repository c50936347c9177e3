//! From gates to clauses, and the small interface that a solver has to offer.
//!
//! # Invariants
//! - A gate is defined in the polarities in which it is used, and only there (Plaisted, Greenbaum 1986).
//! - Clauses are only ever added: questions are assumptions.
//! - The solver is asked only when every gate it has a variable for is defined ([`Cnf::define`] ran to its end).

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::query::Deadline;
use cat::algebra::gates::{Gate, Gates, Lit};
use verdict::Reason;

/// A solver variable or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SatLit {
    pub(super) var: u32,
    pub(super) positive: bool,
}

impl std::ops::Not for SatLit {
    type Output = SatLit;
    fn not(self) -> SatLit {
        SatLit { var: self.var, positive: !self.positive }
    }
}

/// What a solver says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There is an assignment.
    Sat,
    /// There is none.
    Unsat,
    /// A limit was hit.
    Unknown(Reason),
}

/// A propositional solver.
pub(super) trait Solver {
    /// A new variable; variables are numbered from 0. `likely`: what is a good guess at its value, if there is one.
    fn new_var(&mut self, likely: Option<bool>) -> u32;
    /// Adds a disjunction.
    fn add_clause(&mut self, clause: &[SatLit]);
    /// Solves under assumptions, for at most that many milliseconds.
    fn solve(&mut self, assumptions: &[SatLit], milliseconds: Option<u64>) -> Outcome;
    /// The value of a variable in the assignment found last.
    fn value(&self, var: u32) -> bool;
}

impl Solver for Box<dyn Solver> {
    fn new_var(&mut self, likely: Option<bool>) -> u32 {
        self.as_mut().new_var(likely)
    }

    fn add_clause(&mut self, clause: &[SatLit]) {
        self.as_mut().add_clause(clause);
    }

    fn solve(&mut self, assumptions: &[SatLit], milliseconds: Option<u64>) -> Outcome {
        self.as_mut().solve(assumptions, milliseconds)
    }

    fn value(&self, var: u32) -> bool {
        self.as_ref().value(var)
    }
}

/// Gates as clauses of a solver, emitted on demand.
pub(super) struct Cnf<S> {
    pub(super) solver: S,
    /// Good guesses at inputs.
    likely: Rc<FxHashMap<usize, bool>>,
    /// By gate: its variable and the polarities defined so far (bit 0: positive, bit 1: negative).
    vars: Vec<Option<(u32, u8)>>,
    /// Gates used in a polarity in which they may still have to be defined.
    pending: Vec<Lit>,
    pub(super) clauses: usize,
}

impl<S: Solver> Cnf<S> {
    pub(super) fn new(solver: S, likely: Rc<FxHashMap<usize, bool>>) -> Self {
        Cnf { solver, likely, vars: Vec::new(), pending: Vec::new(), clauses: 0 }
    }

    fn add(&mut self, clause: &[SatLit]) {
        self.clauses += 1;
        self.solver.add_clause(clause);
    }

    /// The solver variable of a gate.
    fn var(&mut self, gates: &Gates, gate: usize) -> u32 {
        if self.vars.len() < gates.len() {
            self.vars.resize(gates.len(), None);
        }
        match self.vars[gate] {
            Some((var, _)) => var,
            None => {
                let var = self.solver.new_var(self.likely.get(&gate).copied());
                self.vars[gate] = Some((var, 0));
                var
            }
        }
    }

    /// The solver literal of a gate literal; [`Cnf::define`] will define it in the polarity in which it is used here.
    pub(super) fn lit(&mut self, gates: &Gates, lit: Lit) -> SatLit {
        self.pending.push(lit);
        SatLit { var: self.var(gates, lit.gate()), positive: !lit.negated() }
    }

    /// Adds the definitions that are missing. `false`: time was up first; what is left stays for the next call.
    pub(super) fn define(&mut self, gates: &Gates, deadline: Deadline) -> bool {
        let mut steps = 0usize;
        while let Some(l) = self.pending.pop() {
            steps += 1;
            if steps.is_multiple_of(256) && deadline.passed() {
                self.pending.push(l);
                return false;
            }
            let wanted = if l.negated() { 2 } else { 1 };
            let var = self.var(gates, l.gate());
            let have = self.vars[l.gate()].map_or(0, |v| v.1);
            if have & wanted != 0 {
                continue;
            }
            self.vars[l.gate()] = Some((var, have | wanted));
            match gates.gate(l.gate()) {
                Gate::Input => {}
                Gate::True => {
                    if have == 0 {
                        self.add(&[SatLit { var, positive: true }]);
                    }
                }
                Gate::And(operands) => {
                    // A gate that implies its operands uses them as they are, one that they imply uses their negations.
                    let mine = SatLit { var, positive: true };
                    if wanted == 1 {
                        for &o in operands {
                            let operand = self.lit(gates, o);
                            self.add(&[!mine, operand]);
                        }
                    } else {
                        let mut clause: Vec<SatLit> = operands.iter().map(|&o| self.lit(gates, !o)).collect();
                        clause.push(mine);
                        self.add(&clause);
                    }
                }
            }
        }
        true
    }

    /// Demands a disjunction of gate literals.
    pub(super) fn demand(&mut self, gates: &Gates, clause: &[Lit]) {
        if clause.contains(&Lit::TRUE) {
            return;
        }
        let lits: Vec<SatLit> = clause.iter().filter(|&&l| l != Lit::FALSE).map(|&l| self.lit(gates, l)).collect();
        self.add(&lits);
    }

    /// Values of all gates in the assignment found last; inputs that no clause mentions are false.
    pub(super) fn values(&self, gates: &Gates) -> Vec<bool> {
        gates.evaluate(|i| match self.vars.get(i) {
            Some(Some((var, _))) => self.solver.value(*var),
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// A solver that keeps its clauses.
    #[derive(Default)]
    struct Recorder {
        vars: u32,
        clauses: Vec<Vec<SatLit>>,
    }

    impl Solver for Recorder {
        fn new_var(&mut self, _: Option<bool>) -> u32 {
            self.vars += 1;
            self.vars - 1
        }

        fn add_clause(&mut self, clause: &[SatLit]) {
            let mut clause = clause.to_vec();
            clause.sort();
            self.clauses.push(clause);
        }

        fn solve(&mut self, _: &[SatLit], _: Option<u64>) -> Outcome {
            Outcome::Unknown(Reason::Time)
        }

        fn value(&self, _: u32) -> bool {
            false
        }
    }

    #[test]
    fn definitions_stop_at_the_deadline_and_go_on_from_there() {
        let mut gates = Gates::default();
        let mut chain = gates.input();
        for _ in 0..2_000 {
            let next = gates.input();
            chain = !gates.and(chain, next);
        }
        let clauses_by = |deadlines: &[Deadline]| {
            let mut cnf = Cnf::new(Recorder::default(), Rc::default());
            cnf.demand(&gates, &[chain]);
            let finished: Vec<bool> = deadlines.iter().map(|&d| cnf.define(&gates, d)).collect();
            (finished, cnf.solver.clauses)
        };
        let (never, past) = (Deadline(None), Deadline(Some(Instant::now())));
        let (finished, whole) = clauses_by(&[never]);
        assert_eq!(finished, [true]);
        let (finished, partial) = clauses_by(&[past]);
        assert_eq!(finished, [false]);
        assert!(partial.len() < whole.len() / 2, "{} of {}", partial.len(), whole.len());
        let (finished, resumed) = clauses_by(&[past, past, never]);
        assert_eq!(finished, [false, false, true]);
        assert_eq!(resumed, whole);
    }
}
