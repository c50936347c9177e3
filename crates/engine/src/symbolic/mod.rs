//! The symbolic engines: one circuit per task, given to one solver or the other; questions and
//! axioms as assumptions.
//!
//! # Invariants
//! - What a program and a model's shapes demand is clauses; what a question demands is assumptions.
//!   So one solver answers every question about a task.
//! - The circuit is the same for every solver; what one of them has learnt no other one sees.
//! - Every execution found is decoded to plain data before anyone sees it.

mod batsat;
mod encode;
mod leaves;
mod relations;
mod sat;
mod symmetry;
mod words;
#[cfg(feature = "z3")]
mod z3;

use std::collections::BTreeSet;
use std::rc::Rc;

use super::bounds::TaskBounds;
use super::query::{Deadline, FinalState, Found, Query};
use super::task::Task;
use cat::algebra::gates::{Budget, Exhausted, Lit};
use encode::{Encoding, with_encoding};
use sat::{Cnf, Outcome, SatLit, Solver};
use symmetry::Class;
use verdict::Reason;

/// What solves the circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// Z3.
    #[cfg(feature = "z3")]
    Z3,
    /// The solver in Rust.
    Sat,
}

impl Backend {
    /// Whether of threads that are alike only one way round is looked for. Z3 is the reference, and
    /// looks for all.
    fn uses_symmetry(self) -> bool {
        self == Backend::Sat
    }

    fn solver(self) -> Box<dyn Solver> {
        match self {
            #[cfg(feature = "z3")]
            Backend::Z3 => Box::new(z3::Z3::new()),
            Backend::Sat => Box::<batsat::Batsat>::default(),
        }
    }
}

/// A task as a circuit, prepared for any solver.
pub(crate) struct Symbolic<'a> {
    task: Rc<Task<'a>>,
    size: usize,
    encoding: Encoding<'a>,
    told: Vec<(Backend, Told)>,
    /// Threads that are alike, once that was asked for.
    classes: Option<Vec<Class>>,
}

/// A solver, and how much of the circuit it has been told.
struct Told {
    cnf: Cnf<Box<dyn Solver>>,
    emitted: usize,
}

impl Told {
    /// Hands new clauses to the solver; what is left when time is up stays for later.
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

/// A question put: a solver that knows the circuit, and what the question assumes.
struct Asked<'s, 'a> {
    told: &'s mut Told,
    encoding: &'s mut Encoding<'a>,
    assumptions: Vec<SatLit>,
    /// Threads whose exchange changes nothing about the question: only one way round is looked for.
    alike: Vec<Class>,
}

/// Why an encoding is of no use, if it is not.
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

/// What makes a circuit large, in gates or clauses.
#[derive(Clone, Copy, Default)]
pub(crate) struct Expected {
    /// What is read is what was written, for each value that is itself computed from others.
    pub(crate) values: usize,
    /// Listed values of reads are inputs, triples of orders are clauses, and an open pair of a
    /// relation costs a quarter of a gate to two, where circuits have some thousands (`cargo bench --bench
    /// families`).
    pub(crate) relations: usize,
}

impl<'a> Symbolic<'a> {
    /// Encodes what holds in every execution of the task that these bounds are about, in a circuit
    /// of at most that size.
    pub(crate) fn new(
        task: &Rc<Task<'a>>,
        start: Rc<TaskBounds>,
        size: usize,
        deadline: Deadline,
    ) -> Self {
        let encoding = with_encoding(
            task,
            start,
            Budget {
                size,
                deadline: deadline.0,
            },
        );
        Symbolic {
            task: task.clone(),
            size,
            encoding,
            told: Vec::new(),
            classes: None,
        }
    }

    /// About how large a circuit from these bounds is at least; triples of orders are counted up to
    /// `most`.
    pub(crate) fn expected(task: &Task<'a>, start: &TaskBounds, most: usize) -> Expected {
        let events = &task.sk.events;
        let listed = |e: usize| {
            events[e]
                .value
                .and_then(|term| task.domains.of(term))
                .map_or(0, Vec::len)
        };
        let several = |e: &usize| listed(*e) > 1;
        let reads = (0..events.len())
            .filter(|&e| events[e].is_read())
            .filter(several);
        let read_from = &start.free[task.model.values.0 as usize];
        let values = read_from
            .may
            .iter()
            .filter(|(w, r)| several(w) && several(r))
            .map(|(w, _)| listed(w))
            .sum();
        let relations = reads.map(listed).sum::<usize>()
            + start.open(task) / 4
            + relations::triples(task, start, most);
        Expected { values, relations }
    }

    /// What the circuit starts from.
    pub(crate) fn start(&self) -> &Rc<TaskBounds> {
        &self.encoding.start
    }

    /// How large the circuit may become.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Whether the encoding was given up for lack of time.
    pub(crate) fn out_of_time(&self) -> bool {
        self.encoding.gates.exhausted() == Some(Exhausted::Time)
    }

    /// What a query demands; `None` if some of it is plainly false.
    fn demands(&mut self, query: &Query<'_>, complete: bool) -> Result<Option<Vec<Lit>>, Reason> {
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
        given_up(&self.encoding)?;
        if lits.contains(&Lit::FALSE) {
            return Ok(None);
        }
        lits.retain(|&l| l != Lit::TRUE);
        Ok(Some(lits))
    }

    /// The threads that are alike as far as a query, or one for final states, is concerned.
    fn alike(&mut self, query: &Query<'_>, states: bool) -> Vec<Class> {
        let classes = self
            .classes
            .get_or_insert_with(|| symmetry::classes(&self.task));
        symmetry::of_query(&self.task, classes, query, states)
    }

    /// Puts a query to a solver; `None` if some of what it demands is plainly false.
    fn question(
        &mut self,
        with: Backend,
        query: &Query<'_>,
        complete: bool,
        deadline: Deadline,
    ) -> Result<Option<Asked<'_, 'a>>, Reason> {
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
                    Told {
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
        Ok(Some(Asked {
            told,
            encoding: &mut self.encoding,
            assumptions,
            alike,
        }))
    }

    /// Looks for one execution.
    pub(crate) fn find(&mut self, with: Backend, query: &Query<'_>, deadline: Deadline) -> Found {
        let Asked {
            told,
            encoding,
            assumptions,
            ..
        } = match self.question(with, query, false, deadline) {
            Err(reason) => return Found::Unknown(reason),
            Ok(None) => return Found::No,
            Ok(Some(question)) => question,
        };
        match told.cnf.solver.solve(&assumptions, deadline.left_ms()) {
            Outcome::Unsat => Found::No,
            Outcome::Unknown(reason) => Found::Unknown(reason),
            Outcome::Sat => {
                let values = told.cnf.values(&encoding.gates);
                let execution = encoding.decode(&values);
                // What nobody asked about before is made for the execution, and time may have been
                // up by then.
                given_up(encoding).map_or_else(Found::Unknown, |()| Found::Yes(Box::new(execution)))
            }
        }
    }

    /// The final states of all executions that the query describes, sorted; or the reason for
    /// giving up, with those found so far.
    pub(crate) fn states(
        &mut self,
        with: Backend,
        query: &Query<'_>,
        deadline: Deadline,
    ) -> (Vec<FinalState>, Option<Reason>) {
        let task = self.task.clone();
        let Asked {
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
        let finish = |states: BTreeSet<FinalState>, reason| (states.into_iter().collect(), reason);
        // States found are excluded under a switch of their own, so that later questions do not see
        // it.
        let switch = encoding.gates.input();
        let on = told.cnf.lit(&encoding.gates, switch);
        assumptions.push(on);
        let observed: Vec<_> = task
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
                Outcome::Unsat => {
                    return match symmetry::permuted(&task, &alike, &states, deadline) {
                        Ok(all) => finish(all, None),
                        Err(reason) => finish(states, Some(reason)),
                    };
                }
                Outcome::Unknown(reason) => return finish(states, Some(reason)),
                Outcome::Sat => {}
            }
            let values = told.cnf.values(&encoding.gates);
            let mut state = Vec::new();
            let mut block = vec![!switch];
            for value in &observed {
                let is = |l: Lit| values[l.gate()] != l.negated();
                let Some((v, lits)) = value.read(is) else {
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
