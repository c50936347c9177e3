//! Wraps the crate `batsat`, a CDCL solver in Rust, as a [`Solver`]: the only file of the program
//! that names it.
//!
//! # Invariants
//! - The search is deterministic: its result depends only on the clauses and questions.
//! - The search polls the deadline and requests to stop, see [`DECISIONS`].

use std::cell::Cell;
use std::time::{Duration, Instant};

use batsat::{Callbacks, Lit, SolverInterface, lbool};

use super::sat::{SatLit, Solver, SolverAnswer};
use verdict::Reason;

/// The number of decisions between two polls of the deadline.
const DECISIONS: u32 = 64;

/// A batsat solver.
#[derive(Default)]
pub(super) struct Batsat {
    solver: batsat::Solver<SearchClock>,
    clause: Vec<Lit>,
}

/// Decides when to stop the search. Once late it stays late, because the solver polls once to leave
/// its search and once more to end.
#[derive(Default)]
struct SearchClock {
    deadline: Option<Instant>,
    calls: Cell<u32>,
    late: Cell<bool>,
}

impl Callbacks for SearchClock {
    fn stop(&self) -> bool {
        let calls = self.calls.get();
        self.calls.set(calls.wrapping_add(1));
        if calls.is_multiple_of(DECISIONS) && stop::late(self.deadline) {
            self.late.set(true);
        }
        self.late.get()
    }
}

impl Batsat {
    fn lit(&mut self, l: SatLit) -> Lit {
        Lit::new(self.solver.var_of_int(l.var), l.positive)
    }
}

impl Solver for Batsat {
    fn new_var(&mut self, likely: Option<bool>) -> u32 {
        // Without a guess, the solver begins with false, later with the variable's last value.
        let likely = likely.map_or(lbool::UNDEF, lbool::from);
        self.solver.new_var(likely, true).idx()
    }

    fn add_clause(&mut self, clause: &[SatLit]) {
        let mut lits = std::mem::take(&mut self.clause);
        lits.clear();
        lits.extend(clause.iter().map(|&l| self.lit(l)));
        // The result, whether the clauses are still satisfiable, is left to the next question.
        self.solver.add_clause_reuse(&mut lits);
        self.clause = lits;
    }

    fn solve(&mut self, assumptions: &[SatLit], milliseconds: Option<u64>) -> SolverAnswer {
        let deadline = milliseconds.map(|ms| Instant::now() + Duration::from_millis(ms));
        *self.solver.cb_mut() = SearchClock {
            deadline,
            ..SearchClock::default()
        };
        let assumptions: Vec<Lit> = assumptions.iter().map(|&l| self.lit(l)).collect();
        match self.solver.solve_limited(&assumptions) {
            found if found == lbool::TRUE => SolverAnswer::Sat,
            found if found == lbool::FALSE => SolverAnswer::Unsat,
            _ => SolverAnswer::Unknown(Reason::Time),
        }
    }

    fn value(&self, var: u32) -> bool {
        self.solver
            .get_model()
            .get(var as usize)
            .is_some_and(|&value| value == lbool::TRUE)
    }
}
