//! Runs the symbolic engines: one circuit per task, for either solver, with axioms and questions as
//! assumptions.
//!
//! # Invariants
//! - The requirements of a program and of a model's shapes are clauses; those of a question are
//!   assumptions. So one solver answers every question about a task.
//! - The circuit is the same for every solver; each solver learns separately.
//! - Every execution is decoded to plain data before it leaves the module.

mod batsat;
mod encode;
mod leaves;
mod program;
mod relations;
mod sat;
mod symmetry;
mod words;
#[cfg(feature = "z3")]
mod z3;

use std::collections::BTreeSet;
use std::rc::Rc;

use super::facts::Facts;
use super::facts::bounds::TaskBounds;
use super::query::{Deadline, FinalState, Query, QueryResult};
use cat::algebra::gates::{Budget, Exhausted, Lit};
use encode::{Encoding, with_encoding};
use sat::{Cnf, SatLit, Solver, SolverAnswer};
use symmetry::SymmetryClass;
use verdict::Reason;

/// The solver of the circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// Z3: libz3, or the program `z3` if the user named one or the build has no libz3.
    Z3,
    /// The solver in Rust.
    Sat,
}

impl Backend {
    /// Whether the search covers only one arrangement of exchangeable threads. Z3 is the reference,
    /// and searches all.
    fn uses_symmetry(self) -> bool {
        self == Backend::Sat
    }

    fn solver(self) -> Box<dyn Solver> {
        match self {
            #[cfg(feature = "z3")]
            Backend::Z3 if !smtlib::is_chosen() => Box::new(z3::Z3::new()),
            Backend::Z3 => Box::<program::Z3Program>::default(),
            Backend::Sat => Box::<batsat::Batsat>::default(),
        }
    }
}

/// A task as a circuit, prepared for any solver.
pub(crate) struct Symbolic<'a> {
    facts: Rc<Facts<'a>>,
    size: usize,
    encoding: Encoding<'a>,
    told: Vec<(Backend, LoadedSolver)>,
    /// Threads that are alike, after the first query that needs them.
    classes: Option<Vec<SymmetryClass>>,
}

/// A solver, and the part of the circuit that it has.
struct LoadedSolver {
    cnf: Cnf<Box<dyn Solver>>,
    emitted: usize,
}

impl LoadedSolver {
    /// Passes new clauses to the solver; if time runs out, the rest stays for later.
    fn flush(&mut self, encoding: &Encoding<'_>, deadline: Deadline) -> Result<(), Reason> {
        self.cnf
            .count_uses(&encoding.gates, &encoding.clauses[self.emitted..]);
        while self.emitted < encoding.clauses.len() {
            if self.emitted.is_multiple_of(256) && deadline.passed() {
                return Err(Reason::Time);
            }
            self.cnf
                .demand(&encoding.gates, &encoding.clauses[self.emitted]);
            self.emitted += 1;
            self.define(encoding, deadline)?;
        }
        self.define(encoding, deadline)
    }

    fn define(&mut self, encoding: &Encoding<'_>, deadline: Deadline) -> Result<(), Reason> {
        if self.cnf.define(&encoding.gates, deadline) {
            Ok(())
        } else {
            Err(Reason::Time)
        }
    }
}

/// A query to a solver that has the circuit, with the query's assumptions.
struct PreparedQuery<'s, 'a> {
    told: &'s mut LoadedSolver,
    encoding: &'s mut Encoding<'a>,
    assumptions: Vec<SatLit>,
    /// Threads that can be exchanged without changing the query: the search covers only one
    /// arrangement.
    alike: Vec<SymmetryClass>,
}

/// Why an encoding is useless, if it is.
fn given_up(encoding: &Encoding<'_>) -> Result<(), Reason> {
    match encoding.gates.exhausted() {
        Some(Exhausted::Time) => Err(Reason::Time),
        Some(Exhausted::Size) => Err(Reason::TooManyGates),
        None if encoding.failed() => Err(Reason::Unsupported(
            "a recursive definition that needs too many rounds".into(),
        )),
        None => Ok(()),
    }
}

/// The expected size of a circuit, in gates or clauses, by cause.
#[derive(Clone, Copy, Default)]
pub(crate) struct CircuitEstimate {
    /// Clauses that equate read and written values, for each value that is computed from others.
    pub(crate) values: usize,
    /// Listed values of reads (inputs), triples of orders (clauses), and open pairs of relations.
    /// An open pair costs a quarter of a gate to two gates, in circuits of some thousands (`cargo
    /// bench --bench families`).
    pub(crate) relations: usize,
}

impl<'a> Symbolic<'a> {
    /// Encodes the executions of the task that these bounds cover, in a circuit of at most this
    /// size.
    pub(crate) fn new(
        facts: &Rc<Facts<'a>>,
        start: Rc<TaskBounds>,
        size: usize,
        deadline: Deadline,
    ) -> Self {
        let encoding = with_encoding(
            facts,
            start,
            Budget {
                size,
                deadline: deadline.0,
            },
        );
        Symbolic {
            facts: facts.clone(),
            size,
            encoding,
            told: Vec::new(),
            classes: None,
        }
    }

    /// A rough lower bound on the size of a circuit from these bounds; triples of orders are
    /// counted up to `most`.
    pub(crate) fn expected(facts: &Facts<'a>, start: &TaskBounds, most: usize) -> CircuitEstimate {
        let events = &facts.sk.events;
        let several = |e: &usize| listed_values(facts, *e) > 1;
        let reads = (0..events.len())
            .filter(|&e| events[e].is_read())
            .filter(several);
        let read_from = &start.free[facts.task.model.values.0 as usize];
        let values = read_from
            .may
            .iter()
            .filter(|(w, r)| several(w) && several(r))
            .map(|(w, _)| listed_values(facts, w))
            .sum();
        let relations = reads.map(|e| listed_values(facts, e)).sum::<usize>()
            + start.open(facts) / 4
            + relations::triples(facts, start, most);
        CircuitEstimate { values, relations }
    }

    /// The bounds that the circuit starts from.
    pub(crate) fn start(&self) -> &Rc<TaskBounds> {
        &self.encoding.start
    }

    /// The size limit of the circuit.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Whether the encoding ran out of time.
    pub(crate) fn out_of_time(&self) -> bool {
        self.encoding.gates.exhausted() == Some(Exhausted::Time)
    }

    /// The requirements of a query; `None` if one of them is constantly false.
    fn demands(&mut self, query: &Query<'_>, complete: bool) -> Result<Option<Vec<Lit>>, Reason> {
        let mut props = query.props.iter();
        if props.any(|&(prop, truth)| self.encoding.by_sums(prop) == Some(!truth)) {
            return Ok(None);
        }
        let mut lits: Vec<Lit> = Vec::new();
        for (i, _) in query.axioms.iter().enumerate().filter(|(_, on)| **on) {
            lits.push(self.encoding.axiom(i));
        }
        if let Some(flags) = &query.flags {
            let spared = query.spared.as_ref();
            let flags: Vec<Lit> = flags
                .iter()
                .map(|&f| self.encoding.flag(f, spared))
                .collect();
            lits.push(self.encoding.gates.any(flags));
        }
        if query.complete || complete || !query.props.is_empty() {
            lits.push(self.encoding.cond(self.facts.sk.complete));
        }
        lits.push(self.encoding.cond(query.require));
        if query.no_fault {
            lits.push(!self.encoding.cond(self.facts.fault));
        }
        for &(p, truth) in &query.props {
            let l = self.encoding.prop(p);
            lits.push(if truth { l } else { !l });
        }
        given_up(&self.encoding)?;
        if lits.contains(&Lit::FALSE) {
            return Ok(None);
        }
        lits.retain(|&l| l != Lit::TRUE);
        Ok(Some(lits))
    }

    /// The threads that a query treats alike; with `states`, also in the final states.
    fn alike(&mut self, query: &Query<'_>, states: bool) -> Vec<SymmetryClass> {
        let classes = self
            .classes
            .get_or_insert_with(|| symmetry::classes(&self.facts));
        symmetry::of_query(&self.facts, classes, query, states)
    }

    /// Prepares a query for a solver; `None` if one of its requirements is constantly false.
    fn question(
        &mut self,
        with: Backend,
        query: &Query<'_>,
        complete: bool,
        deadline: Deadline,
    ) -> Result<Option<PreparedQuery<'_, 'a>>, Reason> {
        self.encoding.gates.set_deadline(deadline.0);
        let Some(mut demands) = self.demands(query, complete)? else {
            return Ok(None);
        };
        let alike = if with.uses_symmetry() {
            self.alike(query, complete)
        } else {
            Vec::new()
        };
        demands.extend(
            self.encoding
                .sorted(&alike, &query.axioms)
                .into_iter()
                .filter(|&l| l != Lit::TRUE),
        );
        given_up(&self.encoding)?;
        let at = self
            .told
            .iter()
            .position(|(backend, _)| *backend == with)
            .unwrap_or_else(|| {
                self.told.push((
                    with,
                    LoadedSolver {
                        cnf: Cnf::new(with.solver(), self.encoding.likely.clone()),
                        emitted: 0,
                    },
                ));
                self.told.len() - 1
            });
        let told = &mut self.told[at].1;
        let mut assumptions: Vec<SatLit> = demands
            .into_iter()
            .map(|l| told.cnf.lit(&self.encoding.gates, l))
            .collect();
        assumptions.sort_unstable();
        assumptions.dedup();
        told.flush(&self.encoding, deadline)?;
        Ok(Some(PreparedQuery {
            told,
            encoding: &mut self.encoding,
            assumptions,
            alike,
        }))
    }

    /// Looks for one execution.
    pub(crate) fn find(
        &mut self,
        with: Backend,
        query: &Query<'_>,
        deadline: Deadline,
    ) -> QueryResult {
        let PreparedQuery {
            told,
            encoding,
            assumptions,
            ..
        } = match self.question(with, query, false, deadline) {
            Err(reason) => return QueryResult::Unknown(reason),
            Ok(None) => return QueryResult::No,
            Ok(Some(question)) => question,
        };
        match told.cnf.solver.solve(&assumptions, deadline.left_ms()) {
            SolverAnswer::Unsat => QueryResult::No,
            SolverAnswer::Unknown(reason) => QueryResult::Unknown(reason),
            SolverAnswer::Sat => {
                let values = told.cnf.values(&encoding.gates);
                let execution = encoding.decode(&values);
                // Decoding builds gates that no clause used before, and may run out of time.
                given_up(encoding).map_or_else(QueryResult::Unknown, |()| {
                    QueryResult::Yes(Box::new(execution))
                })
            }
        }
    }

    /// The final states of all executions that the query describes, sorted, and why the list is
    /// incomplete, if it is.
    pub(crate) fn states(
        &mut self,
        with: Backend,
        query: &Query<'_>,
        deadline: Deadline,
    ) -> (Vec<FinalState>, Option<Reason>) {
        let facts = self.facts.clone();
        let PreparedQuery {
            told,
            encoding,
            mut assumptions,
            alike,
        } = match self.question(with, query, true, deadline) {
            Err(reason) => return (Vec::new(), Some(reason)),
            Ok(None) => return (Vec::new(), None),
            Ok(Some(question)) => question,
        };
        let mut states: BTreeSet<FinalState> = BTreeSet::new();
        // A separate switch excludes known states, so that later questions do not see the
        // exclusion.
        let switch = encoding.gates.input();
        let on = told.cnf.lit(&encoding.gates, switch);
        assumptions.push(on);
        let observed: Vec<_> = facts
            .observed
            .iter()
            .map(|&o| encoding.observable(o))
            .collect();
        if let Err(reason) = given_up(encoding) {
            return finish(states, Some(reason));
        }
        loop {
            if let Err(reason) = told.flush(encoding, deadline) {
                return finish(states, Some(reason));
            }
            match told.cnf.solver.solve(&assumptions, deadline.left_ms()) {
                SolverAnswer::Unsat => {
                    return match symmetry::permuted(&facts, &alike, &states, deadline) {
                        Ok(all) => finish(all, None),
                        Err(reason) => finish(states, Some(reason)),
                    };
                }
                SolverAnswer::Unknown(reason) => return finish(states, Some(reason)),
                SolverAnswer::Sat => {}
            }
            let values = told.cnf.values(&encoding.gates);
            let mut state = Vec::new();
            let mut block = vec![!switch];
            for value in &observed {
                let Some((v, lits)) = value.read(|l: Lit| values[l.gate()] != l.negated()) else {
                    return finish(
                        states,
                        Some(Reason::Engine("an observed value has no case".into())),
                    );
                };
                state.push(v);
                block.extend(lits.into_iter().map(|l| !l));
            }
            if !states.insert(state) {
                return finish(
                    states,
                    Some(Reason::Engine("a state was found twice".into())),
                );
            }
            told.cnf.demand(&encoding.gates, &block);
        }
    }
}

/// The number of listed values of an event.
fn listed_values(facts: &Facts<'_>, e: usize) -> usize {
    facts.sk.events[e]
        .value
        .and_then(|term| facts.domains.of(term))
        .map_or(0, Vec::len)
}

fn finish(
    states: BTreeSet<FinalState>,
    reason: Option<Reason>,
) -> (Vec<FinalState>, Option<Reason>) {
    (states.into_iter().collect(), reason)
}
