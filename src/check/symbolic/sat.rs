//! From gates to clauses, and the small interface that a solver has to offer.
//!
//! # Invariants
//! - A gate is defined in the polarities in which it is used, and only there (Plaisted, Greenbaum 1986).
//! - Clauses are only ever added: questions are assumptions.

use crate::algebra::gates::{Gate, Gates, Lit};

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
    Unknown(String),
}

/// A propositional solver.
pub(super) trait Solver {
    /// A new variable; variables are numbered from 0.
    fn new_var(&mut self) -> u32;
    /// Adds a disjunction.
    fn add_clause(&mut self, clause: &[SatLit]);
    /// Solves under assumptions, for at most that many milliseconds.
    fn solve(&mut self, assumptions: &[SatLit], milliseconds: Option<u64>) -> Outcome;
    /// The value of a variable in the assignment found last.
    fn value(&self, var: u32) -> bool;
}

/// Gates as clauses of a solver, emitted on demand.
pub(super) struct Cnf<S> {
    pub(super) solver: S,
    /// By gate: its variable and the polarities defined so far (bit 0: positive, bit 1: negative).
    vars: Vec<Option<(u32, u8)>>,
    pub(super) clauses: usize,
}

impl<S: Solver> Cnf<S> {
    pub(super) fn new(solver: S) -> Self {
        Cnf { solver, vars: Vec::new(), clauses: 0 }
    }

    fn add(&mut self, clause: &[SatLit]) {
        self.clauses += 1;
        self.solver.add_clause(clause);
    }

    /// The solver literal of a gate literal, defined in the polarity in which the literal is used.
    pub(super) fn lit(&mut self, gates: &Gates, lit: Lit) -> SatLit {
        if self.vars.len() < gates.len() {
            self.vars.resize(gates.len(), None);
        }
        let mut todo = vec![lit];
        while let Some(l) = todo.pop() {
            let wanted = if l.negated() { 2 } else { 1 };
            let (var, have) = match self.vars[l.gate()] {
                Some(v) => v,
                None => (self.solver.new_var(), 0),
            };
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
                    // Clauses need the operands' variables only; their definitions follow from the stack.
                    let operands: Vec<(Lit, SatLit)> = operands
                        .iter()
                        .map(|&o| {
                            let slot = &mut self.vars[o.gate()];
                            let v = match slot {
                                Some((v, _)) => *v,
                                None => {
                                    let v = self.solver.new_var();
                                    *slot = Some((v, 0));
                                    v
                                }
                            };
                            (o, SatLit { var: v, positive: !o.negated() })
                        })
                        .collect();
                    let me = SatLit { var, positive: true };
                    if wanted == 1 {
                        for &(_, o) in &operands {
                            self.add(&[!me, o]);
                        }
                        todo.extend(operands.iter().map(|&(o, _)| o));
                    } else {
                        let mut clause: Vec<SatLit> = operands.iter().map(|&(_, o)| !o).collect();
                        clause.push(me);
                        self.add(&clause);
                        todo.extend(operands.iter().map(|&(o, _)| !o));
                    }
                }
            }
        }
        let (var, _) = self.vars[lit.gate()].expect("defined above");
        SatLit { var, positive: !lit.negated() }
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
