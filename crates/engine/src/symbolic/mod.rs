//! The symbolic engine: one circuit per task, one solver per circuit, questions and axioms as assumptions.
//!
//! # Invariants
//! - What a program and a model's shapes demand is clauses; what a question demands is assumptions. So one solver answers
//!   every question about a task.
//! - Every execution found is decoded to plain data before anyone sees it.

mod bounds;
mod encode;
mod leaves;
mod relations;
mod sat;
mod z3;

use std::rc::Rc;

use super::query::{Checker, Deadline, FinalState, Found, Query};
use super::task::Task;
use bounds::TaskBounds;
use cat::algebra::gates::{Exhausted, Lit};
use encode::{Encoding, with_encoding};
use sat::{Cnf, Outcome, SatLit, Solver};
use verdict::Reason;

/// The symbolic engine, prepared for one task.
pub(crate) struct Symbolic<'a> {
    task: Rc<Task<'a>>,
    cnf: Cnf<z3::Z3>,
    encoding: Encoding<'a>,
    emitted: usize,
}

impl<'a> Symbolic<'a> {
    /// Encodes what holds in every execution of the task. `None`: out of time.
    pub(crate) fn new(task: &Rc<Task<'a>>, deadline: Deadline) -> Option<Self> {
        let start = Rc::new(TaskBounds::new(task, deadline)?);
        let encoding = with_encoding(task, start, deadline);
        Some(Symbolic { task: task.clone(), cnf: Cnf::new(z3::Z3::new()), encoding, emitted: 0 })
    }

    /// Whether the encoding was given up for lack of time.
    pub(crate) fn out_of_time(&self) -> bool {
        self.encoding.gates.exhausted() == Some(Exhausted::Time)
    }

    /// Why the encoding is of no use, if it is not.
    fn given_up(&self) -> Option<Reason> {
        match self.encoding.gates.exhausted() {
            Some(Exhausted::Time) => Some(Reason::Time),
            Some(Exhausted::Size) => Some(Reason::TooManyGates),
            None if self.encoding.failed() => {
                Some(Reason::Unsupported("a recursive definition that needs too many rounds".into()))
            }
            None => None,
        }
    }

    /// Hands new clauses to the solver; what is left when time is up stays for later.
    fn flush(&mut self, deadline: Deadline) -> Result<(), Reason> {
        while self.emitted < self.encoding.clauses.len() {
            if self.emitted.is_multiple_of(256) && deadline.passed() {
                return Err(Reason::Time);
            }
            self.cnf.demand(&self.encoding.gates, &self.encoding.clauses[self.emitted]);
            self.emitted += 1;
            self.define(deadline)?;
        }
        self.define(deadline)
    }

    fn define(&mut self, deadline: Deadline) -> Result<(), Reason> {
        if self.cnf.define(&self.encoding.gates, deadline) { Ok(()) } else { Err(Reason::Time) }
    }

    /// The assumptions that stand for a query; `None` if one of them is plainly false.
    fn assumptions(
        &mut self,
        query: &Query<'_>,
        complete: bool,
        deadline: Deadline,
    ) -> Result<Option<Vec<SatLit>>, Reason> {
        let mut lits: Vec<Lit> = Vec::new();
        for (i, _) in query.axioms.iter().enumerate().filter(|(_, on)| **on) {
            lits.push(self.encoding.axiom(i));
        }
        if let Some(flags) = &query.flags {
            let flags: Vec<Lit> = flags.iter().map(|&f| self.encoding.flag(f)).collect();
            lits.push(self.encoding.gates.any(flags));
        }
        if query.complete || complete || !query.props.is_empty() {
            lits.push(self.encoding.cond(self.task.sk.complete));
        }
        lits.push(self.encoding.cond(query.require));
        if query.no_fault {
            lits.push(!self.encoding.cond(self.task.fault));
        }
        for &(p, truth) in &query.props {
            let l = self.encoding.prop(p);
            lits.push(if truth { l } else { !l });
        }
        if let Some(reason) = self.given_up() {
            return Err(reason);
        }
        if lits.contains(&Lit::FALSE) {
            return Ok(None);
        }
        let mut sat = Vec::new();
        for l in lits {
            if l != Lit::TRUE {
                sat.push(self.cnf.lit(&self.encoding.gates, l));
            }
        }
        sat.sort_unstable();
        sat.dedup();
        self.flush(deadline)?;
        Ok(Some(sat))
    }
}

impl Checker for Symbolic<'_> {
    fn find(&mut self, query: &Query<'_>, deadline: Deadline) -> Found {
        self.encoding.gates.set_deadline(deadline.0);
        let assumptions = match self.assumptions(query, false, deadline) {
            Err(reason) => return Found::Unknown(reason),
            Ok(None) => return Found::No,
            Ok(Some(a)) => a,
        };
        match self.cnf.solver.solve(&assumptions, deadline.left_ms()) {
            Outcome::Unsat => Found::No,
            Outcome::Unknown(reason) => Found::Unknown(reason),
            Outcome::Sat => {
                let values = self.cnf.values(&self.encoding.gates);
                Found::Yes(Box::new(self.encoding.decode(&values)))
            }
        }
    }

    fn states(&mut self, query: &Query<'_>, deadline: Deadline) -> (Vec<FinalState>, Option<Reason>) {
        let mut states: Vec<FinalState> = Vec::new();
        let finish = |mut states: Vec<FinalState>, reason| {
            states.sort_unstable();
            (states, reason)
        };
        self.encoding.gates.set_deadline(deadline.0);
        let mut assumptions = match self.assumptions(query, true, deadline) {
            Err(reason) => return (states, Some(reason)),
            Ok(None) => return (states, None),
            Ok(Some(a)) => a,
        };
        // States found are excluded under a switch of their own, so that later questions do not see it.
        let switch = self.encoding.gates.input();
        let on = self.cnf.lit(&self.encoding.gates, switch);
        assumptions.push(on);
        loop {
            let observed: Vec<_> = self.task.observed.iter().map(|&o| self.encoding.observable(o)).collect();
            if let Err(reason) = self.flush(deadline) {
                return finish(states, Some(reason));
            }
            match self.cnf.solver.solve(&assumptions, deadline.left_ms()) {
                Outcome::Unsat => return finish(states, None),
                Outcome::Unknown(reason) => return finish(states, Some(reason)),
                Outcome::Sat => {}
            }
            let values = self.cnf.values(&self.encoding.gates);
            let mut state = Vec::new();
            let mut block = vec![!switch];
            for map in &observed {
                let holds = |l: Lit| values[l.gate()] != l.negated();
                let Some(&(v, lit)) = map.iter().find(|(_, l)| holds(*l)) else {
                    return finish(states, Some(Reason::Engine("an observed value has no case".into())));
                };
                state.push(v);
                block.push(!lit);
            }
            if states.contains(&state) {
                return finish(states, Some(Reason::Engine("a state was found twice".into())));
            }
            states.push(state);
            self.cnf.demand(&self.encoding.gates, &block);
        }
    }
}
