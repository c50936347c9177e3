//! Both engines on one task: who is asked, and what to make of two answers.
//!
//! # Invariants
//! - An execution leaves this module only after its replay.
//! - A difference between the engines is a defect, never an answer.

use std::rc::Rc;

use super::Engine;
use super::enumerate::{Enumerate, Patience};
use super::execution::Execution;
use super::query::{Checker, Deadline, FinalState, Found, Query};
use super::replay::{self, Replayed};
use super::task::Task;
use crate::limits::Halt;
use verdict::{Reason, State};

/// How long `auto` has patience with the enumerating engine before it asks Z3, if it can. A circuit has at least a gate for
/// each pair of events, so more of them are worth more steps; and each state that is found spares a call of the solver.
fn patience(task: &Task<'_>) -> Option<Patience> {
    const FEWEST: u64 = 400;
    let events = task.sk.len() as u64;
    cfg!(feature = "z3").then(|| Patience { steps: FEWEST.max(events * events / 3), more_by_state: 200 })
}

/// A task with its engines.
pub struct Prepared<'a> {
    /// What is asked about.
    pub task: Rc<Task<'a>>,
    enumerate: Enumerate<'a>,
    #[cfg(feature = "z3")]
    symbolic: Option<super::symbolic::Symbolic<'a>>,
}

/// An execution that passed its replay, and what that says of it.
pub type Checked = (Execution, Replayed);

/// What the engines said.
pub enum Said {
    /// There is one.
    Yes(Box<Checked>),
    /// There is none.
    No,
    /// A limit was met.
    Unknown(Reason),
    /// A law was broken.
    Defect(String),
}

impl Said {
    /// The execution, if there is one.
    pub fn found(self) -> Result<Option<Box<Checked>>, Halt> {
        match self {
            Said::Yes(found) => Ok(Some(found)),
            Said::No => Ok(None),
            Said::Unknown(reason) => Err(Halt::Undecided(reason)),
            Said::Defect(law) => Err(Halt::Defect(law)),
        }
    }
}

impl<'a> Prepared<'a> {
    /// A task without any work done for it yet.
    pub fn new(task: Task<'a>) -> Self {
        let task = Rc::new(task);
        Prepared {
            enumerate: Enumerate::new(&task),
            #[cfg(feature = "z3")]
            symbolic: None,
            task,
        }
    }

    /// Puts a query to the engine or engines, and replays what they find.
    pub fn ask(&mut self, engine: Engine, query: &Query<'_>, deadline: Deadline) -> (Said, &'static str) {
        let task = self.task.clone();
        let judge = |found: Found, who: &str| match found {
            Found::No => Said::No,
            Found::Unknown(reason) => Said::Unknown(reason),
            Found::Yes(execution) => match replay::check(&task, &execution, query) {
                Ok(replayed) => Said::Yes(Box::new((*execution, replayed))),
                Err(law) => Said::Defect(format!("a witness of the {who} engine failed its replay: {law}")),
            },
        };
        match possible(engine) {
            Engine::Enumerate => (judge(self.enumerate.find(query, deadline), "enumerating"), "enumerate"),
            Engine::Symbolic => (judge(self.find(query, deadline), "symbolic"), "symbolic"),
            Engine::Auto => match self.enumerate.find_within(query, deadline, patience(&task)) {
                Some(found) => (judge(found, "enumerating"), "enumerate"),
                None => match self.find(query, deadline) {
                    // What is too large for a circuit may still be small enough to walk through.
                    Found::Unknown(reason) if reason != Reason::Time => {
                        (judge(self.enumerate.find(query, deadline), "enumerating"), "enumerate")
                    }
                    found => (judge(found, "symbolic"), "symbolic"),
                },
            },
            Engine::Both => {
                let first = judge(self.find(query, deadline), "symbolic");
                let second = judge(self.enumerate.find(query, deadline), "enumerating");
                let said = match (first, second) {
                    (Said::Defect(law), _) | (_, Said::Defect(law)) => Said::Defect(law),
                    (Said::Unknown(reason), _) | (_, Said::Unknown(reason)) => Said::Unknown(reason),
                    (Said::No, Said::No) => Said::No,
                    (yes @ Said::Yes(_), Said::Yes(_)) => yes,
                    // Where values out of thin air go on without end, each engine sees another part of them.
                    (yes @ Said::Yes(_), Said::No) | (Said::No, yes @ Said::Yes(_))
                        if endless_values(&task, query) =>
                    {
                        yes
                    }
                    (Said::Yes(_), Said::No) => Said::Defect(
                        "the engines differ: symbolic finds an execution, enumerate finds none".into(),
                    ),
                    (Said::No, Said::Yes(_)) => Said::Defect(
                        "the engines differ: enumerate finds an execution, symbolic finds none".into(),
                    ),
                };
                (said, "both")
            }
        }
    }

    /// The final states of all executions that a query describes, by the engine or engines.
    pub fn all_states(
        &mut self,
        engine: Engine,
        query: &Query<'_>,
        deadline: Deadline,
    ) -> (Vec<FinalState>, Option<Halt>, &'static str) {
        let ((states, reason), who) = match possible(engine) {
            Engine::Enumerate => (self.enumerate.states(query, deadline), "enumerate"),
            Engine::Symbolic => (self.states(query, deadline), "symbolic"),
            Engine::Auto => match self.enumerate.states_within(query, deadline, patience(&self.task)) {
                Some(found) => (found, "enumerate"),
                None => match self.states(query, deadline) {
                    (_, Some(why)) if why != Reason::Time => (self.enumerate.states(query, deadline), "enumerate"),
                    found => (found, "symbolic"),
                },
            },
            Engine::Both => {
                let (mut a, gap_a) = self.states(query, deadline);
                let (b, gap_b) = self.enumerate.states(query, deadline);
                let gap = gap_a.or(gap_b);
                if endless_values(&self.task, query) {
                    // Values out of thin air go on without end, and each engine sees another part of them.
                    a.extend(b);
                    a.sort_unstable();
                    a.dedup();
                } else if gap.is_none() && a != b {
                    let task = self.task.clone();
                    let only = |x: &[FinalState], y: &[FinalState]| {
                        let missing =
                            x.iter().filter(|s| !y.contains(s)).map(|s| format!("{:?}", name_state(&task, s)));
                        missing.collect::<Vec<_>>().join(" ")
                    };
                    let law = format!(
                        "the engines differ in outcomes: only symbolic: {}; only enumerate: {}",
                        only(&a, &b),
                        only(&b, &a)
                    );
                    return (a, Some(Halt::Defect(law)), "both");
                }
                ((a, gap), "both")
            }
        };
        (states, reason.map(Halt::Undecided), who)
    }

    /// Puts a query to the symbolic engine.
    fn find(&mut self, query: &Query<'_>, deadline: Deadline) -> Found {
        match self.symbolic(deadline) {
            Ok(engine) => engine.find(query, deadline),
            Err(reason) => Found::Unknown(reason),
        }
    }

    /// As [`Prepared::find`], for all final states.
    fn states(&mut self, query: &Query<'_>, deadline: Deadline) -> (Vec<FinalState>, Option<Reason>) {
        match self.symbolic(deadline) {
            Ok(engine) => engine.states(query, deadline),
            Err(reason) => (Vec::new(), Some(reason)),
        }
    }

    /// The symbolic engine, which is made when first needed.
    #[cfg(feature = "z3")]
    fn symbolic(&mut self, deadline: Deadline) -> Result<&mut dyn Checker, Reason> {
        // An encoding that ran out of time is of no use to the next question, which has its own.
        if self.symbolic.as_ref().is_none_or(|s| s.out_of_time()) {
            self.symbolic = super::symbolic::Symbolic::new(&self.task, deadline);
        }
        self.symbolic.as_mut().map(|engine| engine as &mut dyn Checker).ok_or(Reason::Time)
    }

    #[cfg(not(feature = "z3"))]
    fn symbolic(&mut self, _: Deadline) -> Result<&mut dyn Checker, Reason> {
        Err(Reason::Unsupported("built without Z3".into()))
    }
}

/// The engine, or what is left of it in this build.
fn possible(engine: Engine) -> Engine {
    if engine == Engine::Both && !cfg!(feature = "z3") { Engine::Symbolic } else { engine }
}

/// A final state by name.
pub fn name_state(task: &Task<'_>, state: &FinalState) -> State {
    task.observed.iter().zip(state).map(|(&o, &v)| (task.observable_name(o), task.show_value(o, v))).collect()
}

/// Whether values out of thin air go on without end: no engine sees all of them. A model that excludes them does so by an
/// axiom, which the query may leave out.
fn endless_values(task: &Task<'_>, query: &Query<'_>) -> bool {
    task.open_values || (task.domains.open && query.axioms.contains(&false))
}

#[cfg(all(test, feature = "z3"))]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::skeleton::Cond;
    use crate::skeleton::signature::signature;
    use cat::model::load_shipped;

    #[test]
    fn a_question_that_ran_out_of_time_takes_nothing_from_the_next() {
        // Large enough that the circuit itself runs out of time, and not only the hand-over to the solver.
        let mut text =
            "name = \"SB\"\ncondition = 'P0:r0 == 0 /\\ P1:r0 == 0'\nmemory = { x = 0, y = 0 }\n".to_string();
        for (cta, (mine, other)) in [("x", "y"), ("y", "x")].into_iter().enumerate() {
            let store = format!("st.relaxed.gpu {mine}, 1; ").repeat(8);
            text += &format!("[[thread]]\ncta = {cta}\ncode = \"{store} ld.relaxed.gpu r0, {other}\"\n");
        }
        let test = front::litmus::parse("sb.toml", text.as_bytes()).expect("a good test").remove(0);
        let model = load_shipped("ptx", &signature()).expect("shipped").expect("loads");
        let task = Task::new(&test, &model, &[], 1, None).expect("a small test");
        let mut prepared = Prepared::new(task);
        let query = Query {
            complete: true,
            props: vec![(test.condition.as_ref().expect("has one"), true)],
            flags: None,
            require: Cond::TRUE,
            no_fault: true,
            axioms: vec![true; model.axioms.len()],
        };
        // The circuit is there already when the axioms are asked for without time to build their part of it.
        let no_axioms = Query { axioms: vec![false; model.axioms.len()], ..query.clone() };
        prepared.ask(Engine::Symbolic, &no_axioms, Deadline(None));
        for engine in [Engine::Symbolic, Engine::Enumerate, Engine::Both] {
            let past = Deadline(Some(Instant::now()));
            let (said, _) = prepared.ask(engine, &query, past);
            assert!(matches!(said, Said::Unknown(Reason::Time)) || engine == Engine::Enumerate);
            let (said, _) = prepared.ask(engine, &query, Deadline(None));
            assert!(matches!(said, Said::Yes(_)), "{engine:?}");
        }
    }
}
