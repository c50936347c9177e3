//! Compares the executor's observations with a model.
//!
//! # Invariants
//! - An outcome counts as allowed only if the checkers find a consistent execution with it, and as
//!   forbidden only if they prove that there is none.
//! - The test's filter restricts observations as it restricts executions.
//! - If the memory claims to stay within the model, one run per outcome is replayed through the
//!   plain evaluator, with the limits that `trial` states.

use std::time::Instant;

use engine::eval;
mod expected;
mod races;
mod settled;
mod steady;
mod straight;
mod trial;

pub use expected::{ExpectationResult, carry_out, judge};
pub use races::{HangSearch, RunSearch, look, look_for_hang, look_once};
pub use steady::{SteadyAnswer, SteadyRaces, race_fault, steady};

use cat::model::ir::Model;
use engine::facts::Facts;
use engine::query::Deadline;
use engine::skeleton::observable_ty;
use engine::task::Task;
use engine::{Engine, Limits};
use program::CmpOp;
use program::litmus::{Atom, LitmusTest, Prop};
use program::memory::Memory;
use program::options::Setting;
use simt::record::{HazardKind, RunEvent, RunHazard};
use simt::schedule::{Observation, Recorded, RunOutcome};
use simt::{self, RunOptions};
use trial::ReplayResult;
use verdict::{Answer, Outcomes, Reason, State, Verdict};
use why::Session;

/// An observed outcome.
#[derive(Clone, Debug)]
pub struct ObservedOutcome {
    /// Final values by name.
    pub state: State,
    /// The number of runs, or of final states.
    pub count: u64,
    /// Whether the model allows it; `None`: undecided.
    pub allowed: Option<bool>,
    /// The reason, if undecided.
    pub reason: Option<Reason>,
    /// A run that ends with it.
    pub schedule: Recorded,
}

/// Observations, compared with a model.
#[derive(Clone, Debug, Default)]
pub struct ModelComparison {
    /// The observed outcomes, sorted by state.
    pub observed: Vec<ObservedOutcome>,
    /// Outcomes that the model allows and no run showed.
    pub not_observed: Vec<State>,
    /// Whether the list of outcomes that the model allows is complete.
    pub complete: bool,
    /// The reason why it is not.
    pub reason: Option<Reason>,
    /// The loop bound that the model's answer needed.
    pub bound: Option<u32>,
    /// A broken law of the checkers, or a run that the model rejects.
    pub defect: Option<String>,
    /// The number of outcomes with a run that was replayed through the model.
    pub replayed: usize,
    /// The reason why others have none.
    pub left_out: Option<&'static str>,
    /// Whether the program is too large for the checkers: nothing was compared.
    pub too_large: bool,
}

/// For programs with more accesses, the checkers decide each observed outcome instead of listing
/// the allowed ones, and no run is replayed.
const MANY_ACCESSES: usize = 256;

/// The checkers do not see programs with more accesses.
const MAX_ACCESSES: usize = 4096;

/// The number of accesses of a program; those in loops count once for every iteration.
fn accesses(test: &LitmusTest, bound: u32) -> usize {
    test.program
        .threads
        .iter()
        .map(|t| {
            let loops: Vec<_> = (0..t.code.len())
                .filter_map(|at| Some(t.code[at].op.target().filter(|to| *to <= at)?..=at))
                .collect();
            (0..t.code.len())
                .filter(|at| t.code[*at].op.is_access())
                .map(|at| {
                    if loops.iter().any(|l| l.contains(&at)) {
                        bound.max(1) as usize
                    } else {
                        1
                    }
                })
                .sum::<usize>()
        })
        .sum()
}

/// The model's answer about undefined behaviour, compared with the observations.
#[derive(Clone, Debug)]
pub struct Faults {
    /// Whether some execution races; `None`: the model does not know races.
    pub race: Option<Verdict>,
    /// Whether something else is undefined; `None`: the model does not know of anything.
    pub undefined: Option<Verdict>,
    /// A broken law: an observation without an execution of the model, or a defect of the checkers.
    pub defect: Option<String>,
}

/// Compares observed undefined behaviour with a model; the time limit covers both questions.
pub fn faults(
    test: &LitmusTest,
    model: &Model,
    engine: Engine,
    limits: Limits,
    set: &[Setting],
    observation: &Observation,
) -> Faults {
    let deadline = Deadline::after(limits.timeout);
    let mut session = Session::new(test, model, engine, limits, set);
    session.limit(deadline.share(2));
    let race = session.race();
    session.limit(deadline.share(1));
    let undefined = session.undefined();
    let seen = hazards(test, observation);
    let observed = |race: bool| {
        seen.iter().any(|h| {
            if race {
                h.kind == HazardKind::Race
            } else {
                h.kind.is_undefined()
            }
        })
    };
    let left_open = seen.iter().any(|h| !h.kind.is_undefined());
    fn verdict(answer: &Option<Answer>) -> Option<Verdict> {
        answer.as_ref().map(|a| a.verdict.clone())
    }
    let broken = [
        (
            observed(true) && verdict(&race) == Some(Verdict::RaceFree),
            "a race",
            "race-free",
        ),
        (
            observed(false) && verdict(&undefined) == Some(Verdict::Defined),
            "undefined behaviour",
            "defined",
        ),
        (
            left_open && verdict(&undefined) == Some(Verdict::Defined),
            "implementation-defined behaviour",
            "defined",
        ),
    ];
    let law = broken.iter().find(|b| b.0).map(|(_, what, word)| {
        format!("the executor shows {what} in a program that the model calls {word}")
    });
    let defect = [&race, &undefined]
        .into_iter()
        .flatten()
        .find_map(|a| a.defect.clone())
        .or(law);
    Faults {
        race: verdict(&race),
        undefined: verdict(&undefined),
        defect,
    }
}

/// Whether a proposition of the test holds for an observed outcome; a missing one always holds.
fn holds(test: &LitmusTest, prop: Option<&Prop>, state: &[i64]) -> bool {
    let memory = Memory::new(&test.program);
    let observables = test.observables();
    let mut atom = |a: &Atom| match a {
        Atom::Const(v) => Some(*v),
        Atom::Observable(o) => observables.iter().position(|x| x == o).map(|i| state[i]),
        Atom::Address { loc, index } => {
            let viewer = test.program.thread_ids().next();
            memory.address(&test.program, *loc, *index, viewer)
        }
    };
    prop.is_none_or(|p| eval::prop(p, &mut atom) == Some(true))
}

/// Whether the test's filter lets an outcome pass: a value for each of the test's observables.
pub fn passes(test: &LitmusTest, state: &[i64]) -> bool {
    holds(test, test.filter.as_ref(), state)
}

/// Observed undefined behaviour, once for each kind and place, without that of executions that the
/// test's filter excludes.
pub fn hazards(test: &LitmusTest, observation: &Observation) -> Vec<RunHazard> {
    let mut list: Vec<RunHazard> = observation
        .hazards
        .iter()
        .filter(|u| match &u.state {
            Some(state) => passes(test, state),
            // A run without an outcome passes no filter.
            None => test.filter.is_none(),
        })
        .map(|u| u.hazard.clone())
        .collect();
    list.dedup();
    list
}

/// Removes races of runs that the test's filter excludes. The first runs with a race count.
pub fn leave_out_races(test: &LitmusTest, options: &RunOptions, observation: &mut Observation) {
    if test.filter.is_none() {
        return;
    }
    let options = &RunOptions {
        races: false,
        ..*options
    };
    let passes = |schedule: &Recorded| match simt::replay(test, options, schedule) {
        Ok(run) => run.outcomes.iter().any(|seen| passes(test, &seen.state)),
        Err(_) => false,
    };
    observation.races.retain_mut(|race| {
        let run = race.runs().find(passes);
        let is_kept = run.is_some();
        race.schedule = run.unwrap_or_default();
        is_kept
    });
}

/// Observed outcomes by name, without those that the test's filter excludes.
pub fn name(test: &LitmusTest, observation: &Observation) -> Vec<(State, RunOutcome)> {
    let memory = Memory::new(&test.program);
    let observables = test.observables();
    let named = |seen: &RunOutcome| -> State {
        observables
            .iter()
            .zip(&seen.state)
            .map(|(o, &v)| {
                let ty = observable_ty(&test.program, &memory, *o);
                let shown = memory.show_held(&test.program, *o, ty, v);
                (
                    memory.observable_name(&test.program, *o).into(),
                    shown.into(),
                )
            })
            .collect()
    };
    let mut list: Vec<(State, RunOutcome)> = observation
        .outcomes
        .iter()
        .filter(|seen| passes(test, &seen.state))
        .map(|seen| (named(seen), seen.clone()))
        .collect();
    list.sort_by(|a, b| a.0.cmp(&b.0));
    list
}

/// Compares observed outcomes with a model; the time limit covers all questions together.
pub fn hold(
    test: &LitmusTest,
    model: &Model,
    engine: Engine,
    limits: Limits,
    set: &[Setting],
    observation: &Observation,
) -> ModelComparison {
    let named = name(test, observation);
    let accesses = accesses(test, limits.bound_of(test));
    if accesses > MAX_ACCESSES {
        let observed = named
            .into_iter()
            .map(|(state, seen)| {
                let (count, schedule) = (seen.count, seen.schedule);
                ObservedOutcome {
                    state,
                    count,
                    allowed: None,
                    reason: None,
                    schedule,
                }
            })
            .collect();
        return ModelComparison {
            observed,
            reason: Some(Reason::TooManyAccesses(accesses)),
            too_large: true,
            ..ModelComparison::default()
        };
    }
    let deadline = Deadline::after(limits.timeout);
    let mut session = Session::new(test, model, engine, limits, set);
    // Half of the time is for the outcomes that a list may lack.
    session.limit(deadline.share(2));
    let listed = (accesses <= MANY_ACCESSES).then(|| session.outcomes());
    let (complete, reason, outcomes, bound, mut defect) = match listed {
        Some(Outcomes {
            complete,
            reason,
            outcomes,
            bound,
            defect,
            ..
        }) => (complete, reason, outcomes, bound, defect),
        None => (
            false,
            Some(Reason::NotListed(accesses)),
            Vec::new(),
            None,
            None,
        ),
    };
    // No list of outcomes covers behaviour that implementations define.
    let left_open = matches!(reason, Some(Reason::ImplementationDefined { .. }));
    let allowed: Vec<&State> = outcomes
        .iter()
        .filter(|o| o.allowed && !left_open)
        .map(|o| &o.state)
        .collect();
    let mut observed = Vec::new();
    for (state, seen) in named {
        let (verdict, reason) = if allowed.contains(&&state) {
            (Some(true), None)
        } else if complete {
            (Some(false), None)
        } else {
            // The list may lack it: a query decides this outcome.
            session.limit(deadline.share(2));
            let answer = session.reachability(Some(&exactly(test, &seen)), false);
            defect = defect.or(answer.defect);
            match answer.verdict {
                Verdict::Allowed => (Some(true), None),
                Verdict::Forbidden => (Some(false), None),
                other => (None, other.reason().cloned()),
            }
        };
        observed.push(ObservedOutcome {
            state,
            count: seen.count,
            allowed: verdict,
            reason,
            schedule: seen.schedule,
        });
    }
    let not_observed = allowed
        .iter()
        .filter(|s| observed.iter().all(|o| o.state != ***s))
        .map(|s| (*s).clone())
        .collect();
    ModelComparison {
        observed,
        not_observed,
        complete,
        reason,
        bound,
        defect,
        ..ModelComparison::default()
    }
}

/// Replays a run of every observed outcome through a model, if the memory claims to stay within it.
pub fn replay(
    held: &mut ModelComparison,
    test: &LitmusTest,
    model: &Model,
    limits: Limits,
    options: &RunOptions,
) {
    if simt::elements::has_vectors(test) {
        held.left_out = Some("vectors: a run accesses their elements in one order of many");
        return;
    }
    if test.program.asynchronous().is_some() {
        held.left_out = Some("asynchronous operations: their accesses belong to no thread");
        return;
    }
    if accesses(test, limits.bound_of(test)) > MANY_ACCESSES {
        held.left_out = Some("too many accesses");
        return;
    }
    let deadline = limits.timeout.map(|t| Instant::now() + t);
    let facts = match straight::has_loop(test) {
        // Each run has a separate program.
        true => None,
        false => match Facts::of(
            &Task::new(test, model, &[], limits.bound_of(test)),
            deadline,
        ) {
            Ok(facts) => Some(facts),
            Err(_) => {
                held.left_out = Some("no skeleton");
                return;
            }
        },
    };
    // Races were searched when the run was first seen.
    let options = &RunOptions {
        races: false,
        ..*options
    };
    for o in &held.observed {
        let tried = simt::replay(test, options, &o.schedule).and_then(|run| {
            match (run.outcomes.as_slice(), &facts) {
                ([seen], Some(facts)) => trial::try_run(facts, &run.events, &seen.state),
                ([seen], None) => try_straight(test, model, &run.events, &seen.state, deadline),
                _ => Err("the replayed run does not end".into()),
            }
        });
        match tried {
            Ok(ReplayResult::Consistent(_)) => held.replayed += 1,
            Ok(ReplayResult::LeftOut(why)) => held.left_out = Some(why),
            Err(law) => {
                let state: Vec<String> =
                    o.state.iter().map(|(n, v)| format!("{n} = {v}")).collect();
                let law = format!("a run to {} failed its replay: {law}", state.join(", "));
                held.defect.get_or_insert(law);
            }
        }
    }
}

/// Replays a run of a program with loops through the model, by way of its straight program.
fn try_straight(
    test: &LitmusTest,
    model: &Model,
    events: &[RunEvent],
    outcome: &[i64],
    deadline: Option<Instant>,
) -> Result<ReplayResult, String> {
    if deadline.is_some_and(|end| Instant::now() >= end) {
        return Ok(ReplayResult::LeftOut("out of time"));
    }
    let straight = match straight::straight(test, events) {
        Ok(straight) => straight,
        Err(why) => return Ok(ReplayResult::LeftOut(why)),
    };
    if accesses(&straight, 1) > MANY_ACCESSES {
        return Ok(ReplayResult::LeftOut("too many accesses"));
    }
    match Facts::of(&Task::new(&straight, model, &[], 1), deadline) {
        Ok(facts) => trial::try_run(&facts, events, outcome),
        Err(_) => Ok(ReplayResult::LeftOut("no skeleton")),
    }
}

/// The proposition that every observable has its value in this outcome.
fn exactly(test: &LitmusTest, seen: &RunOutcome) -> Prop {
    let memory = Memory::new(&test.program);
    Prop::And(
        test.observables()
            .into_iter()
            .zip(&seen.state)
            .map(|(o, v)| {
                let ty = observable_ty(&test.program, &memory, o);
                Prop::Cmp(
                    CmpOp::Eq,
                    ty,
                    Atom::Observable(o).into(),
                    Atom::Const(*v).into(),
                )
            })
            .collect(),
    )
}
