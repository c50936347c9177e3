//! Z3 behind [`Solver`]: the only file that names it.
//!
//! # Invariants
//! - Everything is propositional, in the logic `QF_FD`: Z3's finite-domain solver.
//! - Terms belong to this thread's context and never leave it.
//! - What is found depends on the clauses and questions alone, not on what the thread was asked before: see [`settle`].

use std::cell::Cell;
use std::sync::Once;

use z3::ast::Bool;
use z3::{Context, Params, SatResult};

use super::sat::{Outcome, SatLit, Solver};
use verdict::Reason;

/// A Z3 solver.
pub(super) struct Z3 {
    solver: z3::Solver,
    vars: Vec<Bool>,
    negated: Vec<Bool>,
    values: Vec<bool>,
}

impl Z3 {
    pub(super) fn new() -> Self {
        settle();
        let solver = z3::Solver::new_for_logic("QF_FD").unwrap_or_default();
        solver.set_params(&params());
        Z3 { solver, vars: Vec::new(), negated: Vec::new(), values: Vec::new() }
    }

    fn term(&self, l: SatLit) -> &Bool {
        if l.positive { &self.vars[l.var as usize] } else { &self.negated[l.var as usize] }
    }
}

/// Has Z3 take the literals of a clause as they come, before it makes its first solver. It would sort them by the numbers of
/// their terms, and these are given anew when terms are dropped: so what was asked before would decide which of several
/// executions is found.
fn settle() {
    static SETTLED: Once = Once::new();
    SETTLED.call_once(|| z3::set_global_param("rewriter.sort_disjunctions", "false"));
}

/// What every question is asked with: Z3 leaves SIGINT to whoever listens for it.
fn params() -> Params {
    let mut params = Params::new();
    params.set_bool("ctrl_c", false);
    params
}

/// Lets a request to stop end what Z3 does on this thread.
///
/// Where nobody can request a stop this does nothing. Elsewhere the thread's context is kept until the process ends, so
/// that there is something to interrupt whenever the request comes; a pool has few threads.
fn let_be_interrupted() {
    thread_local! {
        static REGISTERED: Cell<bool> = const { Cell::new(false) };
    }
    if stop::is_listening() && !REGISTERED.replace(true) {
        let context: &'static Context = Box::leak(Box::new(Context::thread_local()));
        let handle = context.handle();
        stop::on_request(move || handle.interrupt());
    }
}

impl Solver for Z3 {
    fn new_var(&mut self, _: Option<bool>) -> u32 {
        let var = self.vars.len() as u32;
        let term = Bool::new_const(var);
        self.negated.push(term.not());
        self.vars.push(term);
        var
    }

    fn add_clause(&mut self, clause: &[SatLit]) {
        match clause {
            [one] => self.solver.assert(self.term(*one)),
            _ => {
                let terms: Vec<&Bool> = clause.iter().map(|&l| self.term(l)).collect();
                self.solver.assert(Bool::or(&terms));
            }
        }
    }

    fn solve(&mut self, assumptions: &[SatLit], milliseconds: Option<u64>) -> Outcome {
        if let Some(ms) = milliseconds {
            if ms == 0 {
                return Outcome::Unknown(Reason::Time);
            }
            let mut params = params();
            params.set_u32("timeout", u32::try_from(ms).unwrap_or(u32::MAX));
            self.solver.set_params(&params);
        }
        let_be_interrupted();
        let terms: Vec<Bool> = assumptions.iter().map(|&l| self.term(l).clone()).collect();
        match self.solver.check_assumptions(&terms) {
            SatResult::Unsat => Outcome::Unsat,
            SatResult::Sat => {
                let Some(model) = self.solver.get_model() else {
                    return Outcome::Unknown(Reason::Engine("the solver has no model".into()));
                };
                self.values = self
                    .vars
                    .iter()
                    .map(|v| model.get_const_interp(v).and_then(|b| b.as_bool()).unwrap_or(false))
                    .collect();
                Outcome::Sat
            }
            SatResult::Unknown => {
                let reason = self.solver.get_reason_unknown().unwrap_or_default();
                Outcome::Unknown(match reason.as_str() {
                    "timeout" | "canceled" | "" => Reason::Time,
                    other => Reason::Engine(format!("the solver gave up: {other}")),
                })
            }
        }
    }

    fn value(&self, var: u32) -> bool {
        self.values.get(var as usize).copied().unwrap_or(false)
    }
}
