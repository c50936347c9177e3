//! Turns gates into clauses, and defines the small interface that a solver implements.
//!
//! # Invariants
//! - A gate is defined in the polarities in which it is used, and only there (Plaisted, Greenbaum
//!   1986). A gate with one use is written out at that use, if a clause can hold it, and has no
//!   variable.
//! - Clauses are only ever added: questions are assumptions.
//! - The solver runs only when every gate with a variable is defined ([`Cnf::define`] ran to its
//!   end).

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
        SatLit {
            var: self.var,
            positive: !self.positive,
        }
    }
}

/// The result of a solver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SolverAnswer {
    /// The clauses have a satisfying assignment.
    Sat,
    /// They have none.
    Unsat,
    /// A limit was reached.
    Unknown(Reason),
}

/// A propositional solver.
pub(super) trait Solver {
    /// A new variable; variables are numbered from 0. `likely` is a guess at its value, if there is
    /// one.
    fn new_var(&mut self, likely: Option<bool>) -> u32;
    /// Adds a disjunction.
    fn add_clause(&mut self, clause: &[SatLit]);
    /// Solves under assumptions, for at most that number of milliseconds.
    fn solve(&mut self, assumptions: &[SatLit], milliseconds: Option<u64>) -> SolverAnswer;
    /// The value of a variable in the last assignment.
    fn value(&self, var: u32) -> bool;
}

impl Solver for Box<dyn Solver> {
    fn new_var(&mut self, likely: Option<bool>) -> u32 {
        self.as_mut().new_var(likely)
    }

    fn add_clause(&mut self, clause: &[SatLit]) {
        self.as_mut().add_clause(clause);
    }

    fn solve(&mut self, assumptions: &[SatLit], milliseconds: Option<u64>) -> SolverAnswer {
        self.as_mut().solve(assumptions, milliseconds)
    }

    fn value(&self, var: u32) -> bool {
        self.as_ref().value(var)
    }
}

/// Gates as clauses of a solver, emitted on demand.
pub(super) struct Cnf<S> {
    pub(super) solver: S,
    /// Likely values of inputs.
    likely: Rc<FxHashMap<usize, bool>>,
    /// By gate: its variable and the polarities defined so far (bit 0: positive, bit 1: negative).
    vars: Vec<Option<(u32, u8)>>,
    /// By gate that [`Cnf::count_uses`] has seen: the number of gates and clauses that use it; 2
    /// means two or more.
    uses: Vec<u8>,
    /// Gates used in a polarity that may still need a definition.
    pending: Vec<Lit>,
    pub(super) clauses: usize,
}

impl<S: Solver> Cnf<S> {
    pub(super) fn new(solver: S, likely: Rc<FxHashMap<usize, bool>>) -> Self {
        Cnf {
            solver,
            likely,
            vars: Vec::new(),
            uses: Vec::new(),
            pending: Vec::new(),
            clauses: 0,
        }
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

    /// The solver literal of a gate literal; [`Cnf::define`] will define it in this polarity.
    pub(super) fn lit(&mut self, gates: &Gates, lit: Lit) -> SatLit {
        self.pending.push(lit);
        SatLit {
            var: self.var(gates, lit.gate()),
            positive: !lit.negated(),
        }
    }

    /// Counts the uses of each gate, in the circuit and in clauses that will be added next.
    pub(super) fn count_uses(&mut self, gates: &Gates, clauses: &[Vec<Lit>]) {
        for gate in self.uses.len()..gates.len() {
            self.uses.push(0);
            if let Gate::And(operands) = gates.gate(gate) {
                operands.iter().for_each(|&o| self.use_again(o));
            }
        }
        clauses.iter().flatten().for_each(|&l| self.use_again(l));
    }

    fn use_again(&mut self, l: Lit) {
        let uses = &mut self.uses[l.gate()];
        *uses = (*uses + 1).min(2);
    }

    /// Adds the missing definitions. Returns `false` if time ran out; the rest stays for the next
    /// call.
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
                        self.add(&[SatLit {
                            var,
                            positive: true,
                        }]);
                    }
                }
                Gate::And(operands) => {
                    // Clauses from the gate to its operands use them unchanged; the reverse clause
                    // uses their negations.
                    let mine = SatLit {
                        var,
                        positive: true,
                    };
                    let mut clause = Vec::new();
                    if wanted == 1 {
                        let mut implied = operands.to_vec();
                        while let Some(o) = implied.pop() {
                            match self.alone(gates, o) {
                                Some(parts) => implied.extend(parts),
                                None => {
                                    clause.push(!mine);
                                    self.disjoin(gates, &[!o], &mut clause);
                                    self.add(&clause);
                                    clause.clear();
                                }
                            }
                        }
                    } else {
                        clause.push(mine);
                        self.disjoin(gates, operands, &mut clause);
                        self.add(&clause);
                    }
                }
            }
        }
        true
    }

    /// The operands of a conjunction that has only this use, so that it is written out here.
    fn alone<'g>(&self, gates: &'g Gates, l: Lit) -> Option<&'g [Lit]> {
        let at = l.gate();
        let alone = self.uses.get(at) == Some(&1) && self.vars.get(at).is_none_or(Option::is_none);
        match gates.gate(at) {
            Gate::And(operands) if alone && !l.negated() => Some(operands),
            _ => None,
        }
    }

    /// Adds to a clause that not all of these literals hold.
    fn disjoin(&mut self, gates: &Gates, all: &[Lit], clause: &mut Vec<SatLit>) {
        let mut all = all.to_vec();
        while let Some(l) = all.pop() {
            match self.alone(gates, l) {
                Some(parts) => all.extend(parts),
                None => clause.push(self.lit(gates, !l)),
            }
        }
    }

    /// Demands a disjunction of gate literals.
    pub(super) fn demand(&mut self, gates: &Gates, clause: &[Lit]) {
        if clause.contains(&Lit::TRUE) {
            return;
        }
        let all: Vec<Lit> = clause
            .iter()
            .filter(|&&l| l != Lit::FALSE)
            .map(|&l| !l)
            .collect();
        let mut lits = Vec::new();
        self.disjoin(gates, &all, &mut lits);
        self.add(&lits);
    }

    /// Values of all gates in the last assignment; inputs outside all clauses are false.
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

        fn solve(&mut self, _: &[SatLit], _: Option<u64>) -> SolverAnswer {
            SolverAnswer::Unknown(Reason::Time)
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
        assert!(
            partial.len() < whole.len() / 2,
            "{} of {}",
            partial.len(),
            whole.len()
        );
        let (finished, resumed) = clauses_by(&[past, past, never]);
        assert_eq!(finished, [false, false, true]);
        assert_eq!(resumed, whole);
    }

    #[test]
    fn what_is_used_once_has_no_variable() {
        let vars = |again: bool| {
            let mut gates = Gates::default();
            let [a, b, c, d] = [(); 4].map(|()| gates.input());
            let inner = gates.or(a, b);
            let outer = gates.and(inner, c);
            let other = if again { gates.and(inner, d) } else { d };
            let mut cnf = Cnf::new(Recorder::default(), Rc::default());
            let clause = vec![outer, other];
            cnf.count_uses(&gates, std::slice::from_ref(&clause));
            cnf.demand(&gates, &clause);
            assert!(cnf.define(&gates, Deadline(None)));
            (cnf.solver.vars, cnf.clauses)
        };
        // The inputs and the outer gate; then a second outer gate, and the inner one.
        assert_eq!((vars(false), vars(true)), ((5, 3), (7, 6)));
    }

    #[test]
    fn clauses_say_what_the_circuit_says() {
        const INPUTS: usize = 4;
        let mut number = 1u64;
        let mut below = |n: usize| {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (number >> 33) as usize % n
        };
        for _ in 0..300 {
            let mut gates = Gates::default();
            let inputs: Vec<Lit> = (0..INPUTS).map(|_| gates.input()).collect();
            let mut made = inputs.clone();
            let mut some = |made: &[Lit]| {
                let l = made[below(made.len())];
                if below(2) == 0 { l } else { !l }
            };
            for _ in 0..12 {
                let gate = gates.all([some(&made), some(&made), some(&made)]);
                made.push(gate);
            }
            let clauses: Vec<Vec<Lit>> = (0..3).map(|_| vec![some(&made), some(&made)]).collect();
            let assumed = some(&made);
            let mut cnf = Cnf::new(super::super::batsat::Batsat::default(), Rc::default());
            cnf.count_uses(&gates, &clauses);
            clauses.iter().for_each(|clause| cnf.demand(&gates, clause));
            let inputs: Vec<SatLit> = inputs.iter().map(|&l| cnf.lit(&gates, l)).collect();
            let on = cnf.lit(&gates, assumed);
            assert!(cnf.define(&gates, Deadline(None)));
            for bits in 0..1 << INPUTS {
                let values = gates.evaluate(|input| bits >> (input - 1) & 1 == 1);
                let is = |l: Lit| values[l.gate()] != l.negated();
                let holds =
                    is(assumed) && clauses.iter().all(|clause| clause.iter().any(|&l| is(l)));
                let mut assumptions: Vec<SatLit> = (0..INPUTS)
                    .map(|i| {
                        if bits >> i & 1 == 1 {
                            inputs[i]
                        } else {
                            !inputs[i]
                        }
                    })
                    .collect();
                assumptions.push(on);
                let found = cnf.solver.solve(&assumptions, None);
                assert_eq!(
                    found,
                    if holds {
                        SolverAnswer::Sat
                    } else {
                        SolverAnswer::Unsat
                    },
                    "{clauses:?} {assumed:?} {bits:b}"
                );
            }
        }
    }
}
