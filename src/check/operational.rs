//! What the executor observed, held against a model.
//!
//! # Invariants
//! - An outcome counts as allowed only if the checkers find a consistent execution that ends so, and as forbidden only if
//!   they say that there is none.
//! - The test's filter restricts observations as it restricts executions.

use super::eval;
use super::{Engine, Limits, Session};
use crate::litmus::{Atom, LitmusTest, Observable, Prop};
use crate::model::ir::Model;
use crate::program::CmpOp;
use crate::simt::schedule::{Observation, Recorded, Seen};
use crate::skeleton::{Memory, observable_ty};
use crate::verdict::{Outcomes, State, Verdict};

/// An observed outcome.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Final values by name.
    pub state: State,
    /// In how many runs, or final states.
    pub count: u64,
    /// Whether the model allows it; `None`: undecided.
    pub allowed: Option<bool>,
    /// If undecided: why.
    pub reason: Option<String>,
    /// A run that ends so.
    pub schedule: Recorded,
}

/// Observations beside what a model says.
#[derive(Clone, Debug)]
pub struct Held {
    /// What was observed, sorted by state.
    pub observed: Vec<Observed>,
    /// What the model allows and nobody observed.
    pub not_observed: Vec<State>,
    /// Whether the list of what the model allows is complete.
    pub complete: bool,
    /// If not: why.
    pub reason: Option<String>,
    /// The loop bound that the model's answer needed.
    pub bound: Option<u32>,
    /// A broken law of the checkers.
    pub defect: Option<String>,
}

/// Observed outcomes by name, without those that the test's filter excludes.
pub fn name(test: &LitmusTest, observation: &Observation) -> Vec<(State, Seen)> {
    let memory = Memory::new(&test.program);
    let observables = test.observables();
    let passes = |seen: &&Seen| {
        let value = |o: &Observable| observables.iter().position(|x| x == o).map(|i| seen.state[i]);
        let address = |loc, index| {
            let viewer = test.program.thread_ids().next();
            memory.cell_of(&test.program, loc, index, viewer).map(|c| memory.cell(c).address)
        };
        let mut atom = |a: &Atom| match a {
            Atom::Const(v) => Some(*v),
            Atom::Observable(o) => value(o),
            Atom::Address { loc, index } => address(*loc, *index),
        };
        test.filter.as_ref().is_none_or(|f| eval::prop(f, &mut atom) == Some(true))
    };
    let named = |seen: &Seen| -> State {
        let value = |(o, &v): (&Observable, &i64)| {
            let v = observable_ty(&test.program, &memory, *o).wrap(v);
            (memory.observable_name(&test.program, *o), memory.show(&test.program, v))
        };
        observables.iter().zip(&seen.state).map(value).collect()
    };
    let mut list: Vec<(State, Seen)> =
        observation.outcomes.iter().filter(passes).map(|seen| (named(seen), seen.clone())).collect();
    list.sort_by(|a, b| a.0.cmp(&b.0));
    list
}

/// Holds observed outcomes against a model.
pub fn hold(
    test: &LitmusTest,
    model: &Model,
    engine: Engine,
    limits: Limits,
    set: &[(String, String)],
    observation: &Observation,
) -> Held {
    let named = name(test, observation);
    let mut session = Session::new(test, model, engine, limits, set);
    let Outcomes { complete, reason, outcomes, bound, mut defect, .. } = session.outcomes();
    let allowed: Vec<&State> = outcomes.iter().filter(|o| o.allowed).map(|o| &o.state).collect();
    let mut observed = Vec::new();
    for (state, seen) in named {
        let (verdict, reason) = if allowed.contains(&&state) {
            (Some(true), None)
        } else if complete {
            (Some(false), None)
        } else {
            // The list may lack it: ask for this one.
            let answer = session.reachability(Some(&exactly(test, &seen)), false);
            defect = defect.or(answer.defect);
            match answer.verdict {
                Verdict::Allowed => (Some(true), None),
                Verdict::Forbidden => (Some(false), None),
                other => (None, other.reason().map(str::to_owned)),
            }
        };
        observed.push(Observed { state, count: seen.count, allowed: verdict, reason, schedule: seen.schedule });
    }
    let missing = |s: &&&State| observed.iter().all(|o| o.state != ***s);
    let not_observed = allowed.iter().filter(missing).map(|s| (*s).clone()).collect();
    Held { observed, not_observed, complete, reason, bound, defect }
}

/// The proposition that every observable has its value in this outcome.
fn exactly(test: &LitmusTest, seen: &Seen) -> Prop {
    let memory = Memory::new(&test.program);
    let equal = |(o, v): (Observable, &i64)| {
        let ty = observable_ty(&test.program, &memory, o);
        Prop::Cmp(CmpOp::Eq, ty, Atom::Observable(o), Atom::Const(*v))
    };
    Prop::And(test.observables().into_iter().zip(&seen.state).map(equal).collect())
}
