//! Wraps Z3 as a [`Solver`]: the only file that names it.
//!
//! # Invariants
//! - Everything is propositional, in the logic `QF_FD`: Z3's finite-domain solver.
//! - Terms belong to this thread's context and never leave it.
//! - A result depends only on the clauses and questions, not on earlier questions of the thread:
//!   see [`settle`].

use std::cell::{Cell, RefCell};
use std::sync::Once;
use std::time::{Duration, Instant};

use z3::ast::Bool;
use z3::{Context, Model, Params, SatResult};

use super::sat::{SatLit, Solver, SolverAnswer};
use verdict::Reason;

/// The numbers of clauses and of conflicts. With at most this number of clauses, a question first
/// runs without a clock, which would be a thread of Z3. Within that number of conflicts, most are
/// answered faster than that thread starts.
const FEW: (usize, u32) = (10_000, 1_000);

/// The number of variables kept for later solvers.
const KEPT: usize = 1 << 16;

/// Z3's messages after it used up its memory.
const OUT_OF_MEMORY: [&str; 3] = ["max. memory", "memout", "out of memory"];

thread_local! {
    /// The variables of all solvers of this thread, each with its negation; all solvers share the
    /// numbering.
    static TERMS: RefCell<Vec<[Bool; 2]>> = const { RefCell::new(Vec::new()) };
}

/// A Z3 solver.
pub(super) struct Z3 {
    solver: z3::Solver,
    vars: u32,
    clauses: usize,
    /// Whether it gives up after the conflicts of [`FEW`].
    brief: bool,
    model: Option<Model>,
}

impl Z3 {
    pub(super) fn new() -> Self {
        settle();
        let solver = z3::Solver::new_for_logic("QF_FD").unwrap_or_default();
        solver.set_params(&params(FEW.1));
        Z3 {
            solver,
            vars: 0,
            clauses: 0,
            brief: true,
            model: None,
        }
    }

    /// Passes the terms of all variables of this solver to `look`.
    fn with_terms<T>(&self, look: impl FnOnce(&[[Bool; 2]]) -> T) -> T {
        TERMS.with_borrow_mut(|terms| {
            for var in terms.len()..self.vars as usize {
                let term = Bool::new_const(var as u32);
                let negated = term.not();
                terms.push([term, negated]);
            }
            look(terms)
        })
    }
}

impl Drop for Z3 {
    fn drop(&mut self) {
        TERMS.with_borrow_mut(|terms| terms.truncate(KEPT));
    }
}

/// The term of a literal.
fn term(terms: &[[Bool; 2]], l: SatLit) -> &Bool {
    &terms[l.var as usize][usize::from(!l.positive)]
}

/// Makes Z3 keep the literals of a clause in the given order; must run before the first solver
/// exists.
///
/// Z3 would sort the literals by the numbers of their terms, and it reuses numbers of dropped
/// terms. So earlier questions would decide which of several executions it finds. The other setting
/// skips a search for common parts of values in models: all values are true or false.
fn settle() {
    static SETTLED: Once = Once::new();
    SETTLED.call_once(|| {
        z3::set_global_param("rewriter.sort_disjunctions", "false");
        z3::set_global_param("model.compact", "false");
    });
}

/// The parameters of every question; they keep Z3 from handling SIGINT, which the program's
/// listener handles.
fn params(conflicts: u32) -> Params {
    let mut params = Params::new();
    params.set_bool("ctrl_c", false);
    params.set_u32("max_conflicts", conflicts);
    params
}

/// Lets a request to stop end Z3's work on this thread.
///
/// Without a listener this does nothing. Otherwise the thread's context lives until the process
/// ends, so that a request can interrupt it at any time; a pool has few threads.
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

impl Z3 {
    fn check(&self, terms: &[Bool], deadline: Option<Instant>) -> SatResult {
        if !self.brief {
            let mut params = params(u32::MAX);
            // Z3 counts the memory of all its solvers together.
            if let Some(most) = stop::memory_for_all() {
                params.set_u32(
                    "max_memory",
                    u32::try_from(most >> 20).unwrap_or(u32::MAX).max(1),
                );
            }
            if let Some(deadline) = deadline {
                let left = deadline
                    .saturating_duration_since(Instant::now())
                    .as_millis()
                    .max(1);
                params.set_u32("timeout", u32::try_from(left).unwrap_or(u32::MAX));
            }
            self.solver.set_params(&params);
        }
        self.solver.check_assumptions(terms)
    }
}

impl Solver for Z3 {
    fn new_var(&mut self, _: Option<bool>) -> u32 {
        self.vars += 1;
        self.vars - 1
    }

    fn add_clause(&mut self, clause: &[SatLit]) {
        self.clauses += 1;
        self.with_terms(|terms| match clause {
            [one] => self.solver.assert(term(terms, *one)),
            _ => {
                let clause: Vec<&Bool> = clause.iter().map(|&l| term(terms, l)).collect();
                self.solver.assert(Bool::or(&clause));
            }
        });
    }

    fn solve(&mut self, assumptions: &[SatLit], milliseconds: Option<u64>) -> SolverAnswer {
        if milliseconds == Some(0) {
            return SolverAnswer::Unknown(Reason::Time);
        }
        let deadline =
            milliseconds.and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)));
        let_be_interrupted();
        let terms: Vec<Bool> = self.with_terms(|terms| {
            assumptions
                .iter()
                .map(|&l| term(terms, l).clone())
                .collect()
        });
        self.model = None;
        self.brief &= self.clauses <= FEW.0;
        let mut result = self.check(&terms, deadline);
        if self.brief && result == SatResult::Unknown && !stop::late(deadline) {
            self.brief = false;
            result = self.check(&terms, deadline);
        }
        match result {
            SatResult::Unsat => SolverAnswer::Unsat,
            SatResult::Sat => {
                self.model = self.solver.get_model();
                match self.model {
                    Some(_) => SolverAnswer::Sat,
                    None => SolverAnswer::Unknown(Reason::Engine("the solver has no model".into())),
                }
            }
            SatResult::Unknown if stop::late(deadline) => SolverAnswer::Unknown(Reason::Time),
            SatResult::Unknown => {
                let reason = self.solver.get_reason_unknown().unwrap_or_default();
                SolverAnswer::Unknown(match reason.as_str() {
                    "timeout" | "canceled" | "" => Reason::Time,
                    memory if OUT_OF_MEMORY.iter().any(|said| memory.contains(said)) => {
                        Reason::Memory
                    }
                    other => Reason::Engine(format!("the solver gave up: {other}")),
                })
            }
        }
    }

    fn value(&self, var: u32) -> bool {
        self.model
            .as_ref()
            .and_then(|model| {
                self.with_terms(|terms| model.get_const_interp(&terms[var as usize][0]))
            })
            .and_then(|value| value.as_bool())
            .unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More pigeons than holes: this takes long, whatever the solver learns.
    #[test]
    fn what_takes_many_conflicts_is_asked_again_with_a_clock() {
        const HOLES: u32 = 7;
        let mut z3 = Z3::new();
        let positive = |var| SatLit {
            var,
            positive: true,
        };
        let pigeons: Vec<Vec<u32>> = (0..=HOLES)
            .map(|_| (0..HOLES).map(|_| z3.new_var(None)).collect())
            .collect();
        for (i, holes) in pigeons.iter().enumerate() {
            z3.add_clause(&holes.iter().map(|&var| positive(var)).collect::<Vec<_>>());
            for others in &pigeons[..i] {
                holes
                    .iter()
                    .zip(others)
                    .for_each(|(&a, &b)| z3.add_clause(&[!positive(a), !positive(b)]));
            }
        }
        assert!(z3.clauses < FEW.0 && z3.brief);
        // Two pigeons in one hole: a contradiction found at once.
        let first = positive(pigeons[0][0]);
        assert_eq!(
            z3.solve(&[first, positive(pigeons[1][0])], None),
            SolverAnswer::Unsat
        );
        assert!(z3.brief);
        assert_eq!(z3.solve(&[], None), SolverAnswer::Unsat);
        assert!(!z3.brief);
    }

    #[test]
    fn variables_that_are_not_kept_are_made_anew() {
        let many = KEPT as u32 + 3;
        let ask = |z3: &mut Z3| {
            let last = SatLit {
                var: many - 1,
                positive: true,
            };
            (
                z3.solve(&[last], None),
                z3.value(many - 1),
                z3.solve(&[!last], None),
            )
        };
        let mut z3 = Z3::new();
        (0..many).for_each(|_| _ = z3.new_var(None));
        z3.add_clause(&[SatLit {
            var: many - 1,
            positive: true,
        }]);
        let first = ask(&mut z3);
        assert_eq!(first, (SolverAnswer::Sat, true, SolverAnswer::Unsat));
        // Dropping another solver drops its terms, too.
        drop(Z3::new());
        assert_eq!(ask(&mut z3), first);
    }
}
