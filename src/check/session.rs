//! Questions about one test under one model.
//!
//! # Invariants
//! - Smaller loop bounds are tried first. A negative answer is given only if no consistent execution is cut at the bound
//!   (or goes astray in memory, or needs a value out of thin air that no domain holds); else it is `undecided`.
//! - Every execution that an engine finds is replayed; one that fails is a defect, never an answer.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

use super::enumerate::Enumerate;
#[cfg(feature = "z3")]
use super::query::TIMED_OUT;
use super::query::{Checker, Deadline, FinalState, Found, Query};
use super::task::Task;
use super::{Engine, Limits, replay, witness};
use crate::litmus::{LitmusTest, Prop};
use crate::model::ir::Model;
use crate::skeleton::Cond;
use crate::verdict::{Answer, Outcome, Outcomes, State, Verdict};

/// What flags are called that mean a data race; the others mean undefined behaviour.
const RACE_FLAGS: &[&str] = &["race", "racy", "data-race", "data_race", "dr"];

/// How the names of flags end that warn of something that is not undefined.
const HAZARD: &str = "-hazard";

/// Steps that `auto` gives the enumerating engine before it asks Z3.
#[cfg(feature = "z3")]
const AUTO_STEPS: u64 = 400;

/// Questions about one test under one model.
pub struct Session<'a> {
    test: &'a LitmusTest,
    model: &'a Model,
    engine: Engine,
    limits: Limits,
    set: Vec<(String, String)>,
    explain: bool,
    /// Values out of thin air are tried even if the model excludes them.
    thin_air: bool,
    prepared: BTreeMap<u32, Result<Prepared<'a>, String>>,
}

/// A task with its engines.
struct Prepared<'a> {
    task: Rc<Task<'a>>,
    enumerate: Enumerate<'a>,
    #[cfg(feature = "z3")]
    symbolic: Option<super::symbolic::Symbolic<'a>>,
}

/// One question, before bounds and engines.
#[derive(Clone, Debug)]
struct Question {
    /// Reachability: whether the condition is to be violated.
    condition: Option<bool>,
    complete: bool,
    flags: Option<Vec<usize>>,
    positive: Verdict,
    negative: Verdict,
}

/// What the engines said.
enum Said {
    Yes(Box<(super::execution::Execution, replay::Replayed)>),
    No,
    Unknown(String),
    Defect(String),
}

impl<'a> Session<'a> {
    /// Prepares nothing yet; every failure shows up as an `undecided` answer.
    /// `set` overrides options of the test and of the model (validated names and values).
    pub fn new(
        test: &'a LitmusTest,
        model: &'a Model,
        engine: Engine,
        limits: Limits,
        set: &[(String, String)],
    ) -> Self {
        Session {
            test,
            model,
            engine,
            limits,
            set: set.to_vec(),
            explain: false,
            thin_air: false,
            prepared: BTreeMap::new(),
        }
    }

    /// The same session with nothing prepared.
    fn fresh(&self) -> Self {
        Session::new(self.test, self.model, self.engine, self.limits, &self.set)
    }

    /// Negative answers name a minimal set of axioms; costs a few more questions.
    pub fn explaining(mut self) -> Self {
        self.explain = true;
        self
    }

    /// Can `prop` hold (`negate`: fail) in a consistent, complete execution that satisfies the test's filter? Without
    /// `prop` the test's own condition is asked about, and if it has none, any complete execution will do.
    pub fn reachability(&mut self, prop: Option<&Prop>, negate: bool) -> Answer {
        if let Some(p) = prop
            && self.test.condition.as_ref() != Some(p)
        {
            // Another proposition observes other things, so the test is prepared anew.
            let test = LitmusTest { condition: Some(p.clone()), ..self.test.clone() };
            let mut session = Session::new(&test, self.model, self.engine, self.limits, &self.set);
            session.explain = self.explain;
            return session.reachability(None, negate);
        }
        self.answer(&Question {
            condition: Some(negate),
            complete: true,
            flags: None,
            positive: Verdict::Allowed,
            negative: Verdict::Forbidden,
        })
    }

    /// Does some consistent execution race? `None` if the model has no race flag.
    pub fn race(&mut self) -> Option<Answer> {
        let flags = self.flags(true)?;
        Some(self.answer(&Question {
            condition: None,
            complete: false,
            flags: Some(flags),
            positive: Verdict::Racy,
            negative: Verdict::RaceFree,
        }))
    }

    /// Does some consistent execution raise a flag other than the race flag? `None` if the model has none.
    pub fn undefined(&mut self) -> Option<Answer> {
        let flags = self.flags(false)?;
        Some(self.answer(&Question {
            condition: None,
            complete: false,
            flags: Some(flags),
            positive: Verdict::Undefined,
            negative: Verdict::Defined,
        }))
    }

    fn flags(&self, race: bool) -> Option<Vec<usize>> {
        let is_race = |name: &str| RACE_FLAGS.contains(&name.to_lowercase().as_str());
        let flags: Vec<usize> = (0..self.model.flags.len())
            .filter(|&i| {
                let name = &self.model.flags[i].name;
                is_race(name) == race && !name.ends_with(HAZARD)
            })
            .collect();
        (!flags.is_empty()).then_some(flags)
    }

    /// The loop bounds to try, smallest first.
    fn bounds(&self) -> Vec<u32> {
        let mut bounds = vec![];
        let mut b = 1;
        while b < self.limits.bound {
            bounds.push(b);
            b *= 2;
        }
        bounds.push(self.limits.bound.max(1));
        bounds
    }

    fn deadline(&self) -> Deadline {
        Deadline(self.limits.timeout.map(|t| Instant::now() + t))
    }

    fn engine_name(&self) -> &'static str {
        match self.engine {
            Engine::Both => "both",
            Engine::Enumerate => "enumerate",
            Engine::Symbolic => "symbolic",
            Engine::Auto => "enumerate",
        }
    }

    fn prepare(&mut self, bound: u32, deadline: Deadline) -> Result<&mut Prepared<'a>, String> {
        let (test, model, set, thin_air) = (self.test, self.model, &self.set, self.thin_air);
        self.prepared
            .entry(bound)
            .or_insert_with(|| {
                let task = if thin_air {
                    Task::with_thin_air(test, model, set, bound, deadline.0)
                } else {
                    Task::new(test, model, set, bound, deadline.0)
                };
                let task = Rc::new(task?);
                Ok(Prepared {
                    enumerate: Enumerate::new(&task),
                    #[cfg(feature = "z3")]
                    symbolic: None,
                    task,
                })
            })
            .as_mut()
            .map_err(|reason| reason.clone())
    }

    fn answer(&mut self, question: &Question) -> Answer {
        let deadline = self.deadline();
        let mut answer = Answer {
            verdict: question.negative.clone(),
            engine: self.engine_name(),
            bound: None,
            axioms: Vec::new(),
            witness: None,
            defect: None,
        };
        for bound in self.bounds() {
            let task = match self.prepare(bound, deadline) {
                Ok(p) => p.task.clone(),
                Err(reason) => {
                    answer.verdict = Verdict::Undecided(reason);
                    return answer;
                }
            };
            if task.sk.cut != Cond::FALSE {
                answer.bound = Some(bound);
            }
            let query = self.query(&task, question);
            let (said, engine) = self.ask(bound, &query, deadline);
            answer.engine = engine;
            match said {
                Said::Yes(found) => {
                    answer.verdict = question.positive.clone();
                    answer.witness = Some(witness::describe(&task, &found.0, &found.1));
                    return answer;
                }
                Said::Unknown(reason) => {
                    answer.verdict = Verdict::Undecided(reason);
                    return answer;
                }
                Said::Defect(law) => {
                    answer.verdict = Verdict::Undecided("defect".to_string());
                    answer.defect = Some(law);
                    return answer;
                }
                Said::No => {}
            }
            if task.sk.cut == Cond::FALSE && task.fault == Cond::FALSE && !task.open_values {
                self.name_axioms(&mut answer, bound, &query, deadline);
                return answer;
            }
            match self.closed(&task, bound, deadline) {
                Closed::Yes => {
                    self.name_axioms(&mut answer, bound, &query, deadline);
                    return answer;
                }
                Closed::Never(reason) => {
                    answer.verdict = Verdict::Undecided(reason);
                    return answer;
                }
                Closed::Defect(law) => {
                    answer.verdict = Verdict::Undecided("defect".to_string());
                    answer.defect = Some(law);
                    return answer;
                }
                Closed::NotAtThisBound => {}
            }
        }
        answer.verdict =
            Verdict::Undecided(format!("loop bound: a thread can go on after {} iterations", self.limits.bound));
        answer
    }

    /// Whether the executions seen at a bound are all there are.
    fn closed(&mut self, task: &Rc<Task<'a>>, bound: u32, deadline: Deadline) -> Closed {
        if task.open_values {
            return Closed::Never(
                "values out of thin air: this model does not exclude them, and they are too many".into(),
            );
        }
        let mut query = Query {
            complete: false,
            props: Vec::new(),
            flags: None,
            require: task.fault,
            no_fault: false,
            axioms: vec![true; task.model.axioms.len()],
        };
        if task.fault != Cond::FALSE {
            match self.ask(bound, &query, deadline).0 {
                Said::No => {}
                Said::Yes(found) => return Closed::Never(astray(task, &found.0)),
                Said::Unknown(reason) => return Closed::Never(reason),
                Said::Defect(law) => return Closed::Defect(law),
            }
        }
        if task.sk.cut == Cond::FALSE {
            return Closed::Yes;
        }
        query.require = task.sk.cut;
        match self.ask(bound, &query, deadline).0 {
            Said::No => Closed::Yes,
            Said::Yes(_) => Closed::NotAtThisBound,
            Said::Unknown(reason) => Closed::Never(reason),
            Said::Defect(law) => Closed::Defect(law),
        }
    }

    fn query(&self, task: &Task<'a>, question: &Question) -> Query<'a> {
        let mut props = Vec::new();
        if let Some(filter) = &self.test.filter {
            props.push((filter, true));
        }
        if let (Some(negate), Some(condition)) = (question.condition, &self.test.condition) {
            props.push((condition, !negate));
        }
        Query {
            complete: question.complete,
            props,
            flags: question.flags.clone(),
            require: Cond::TRUE,
            no_fault: task.fault != Cond::FALSE,
            axioms: vec![true; task.model.axioms.len()],
        }
    }

    /// Puts a query to the engine or engines, and replays what they find.
    fn ask(&mut self, bound: u32, query: &Query<'a>, deadline: Deadline) -> (Said, &'static str) {
        let engine = self.engine;
        let prepared = self.prepare(bound, deadline).expect("prepared before");
        let task = prepared.task.clone();
        let judge = |found: Found, who: &str| match found {
            Found::No => Said::No,
            Found::Unknown(reason) => Said::Unknown(reason),
            Found::Yes(execution) => match replay::check(&task, &execution, query) {
                Ok(replayed) => Said::Yes(Box::new((*execution, replayed))),
                Err(law) => Said::Defect(format!("a witness of the {who} engine failed its replay: {law}")),
            },
        };
        match engine {
            Engine::Enumerate => (judge(prepared.enumerate.find(query, deadline), "enumerating"), "enumerate"),
            #[cfg(feature = "z3")]
            Engine::Symbolic => (judge(prepared.find(query, deadline), "symbolic"), "symbolic"),
            #[cfg(feature = "z3")]
            Engine::Auto => match prepared.enumerate.find_within(query, deadline, Some(AUTO_STEPS)) {
                Some(found) => (judge(found, "enumerating"), "enumerate"),
                None => (judge(prepared.find(query, deadline), "symbolic"), "symbolic"),
            },
            #[cfg(feature = "z3")]
            Engine::Both => {
                let first = judge(prepared.find(query, deadline), "symbolic");
                let second = judge(prepared.enumerate.find(query, deadline), "enumerating");
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
            #[cfg(not(feature = "z3"))]
            Engine::Auto => (judge(prepared.enumerate.find(query, deadline), "enumerating"), "enumerate"),
            #[cfg(not(feature = "z3"))]
            Engine::Symbolic | Engine::Both => {
                let _ = judge;
                (Said::Unknown("not supported: built without Z3".into()), "symbolic")
            }
        }
    }

    /// Finds axioms that together exclude every execution, none of which can be spared. Tried in the order of the
    /// model, so the set does not depend on the engine.
    fn name_axioms(&mut self, answer: &mut Answer, bound: u32, query: &Query<'a>, deadline: Deadline) {
        if !self.explain {
            return;
        }
        let mut query = query.clone();
        // Without the axiom that excludes them, values out of thin air count.
        let mut wider = Session { thin_air: true, ..self.fresh() };
        let asker = match wider.prepare(bound, deadline) {
            Ok(prepared) => {
                query.no_fault |= prepared.task.fault != Cond::FALSE;
                &mut wider
            }
            Err(_) => &mut *self,
        };
        for i in 0..query.axioms.len() {
            query.axioms[i] = false;
            if !matches!(asker.ask(bound, &query, deadline).0, Said::No) {
                query.axioms[i] = true;
            }
        }
        answer.axioms = (0..query.axioms.len())
            .filter(|&i| query.axioms[i])
            .map(|i| self.model.axioms[i].name.clone())
            .collect();
    }

    /// Every outcome: final values of what the test observes, for complete executions that satisfy its filter.
    pub fn outcomes(&mut self) -> Outcomes {
        let deadline = self.deadline();
        let race = self.flags(true);
        let mut result = Outcomes {
            complete: false,
            reason: None,
            outcomes: Vec::new(),
            engine: self.engine_name(),
            bound: None,
            defect: None,
        };
        for bound in self.bounds() {
            let task = match self.prepare(bound, deadline) {
                Ok(p) => p.task.clone(),
                Err(reason) => {
                    result.reason = Some(reason);
                    return result;
                }
            };
            if task.sk.cut != Cond::FALSE {
                result.bound = Some(bound);
            }
            let question = Question {
                condition: None,
                complete: true,
                flags: None,
                positive: Verdict::Allowed,
                negative: Verdict::Forbidden,
            };
            let mut query = self.query(&task, &question);
            let mut lists: Vec<Vec<FinalState>> = Vec::new();
            let mut queries = vec![query.clone()];
            if let Some(flags) = &race {
                queries.push(Query { flags: Some(flags.clone()), ..query.clone() });
            }
            query.axioms = vec![false; query.axioms.len()];
            queries.push(query);
            for q in &queries {
                match self.states(bound, q, deadline) {
                    (states, None, engine) => {
                        lists.push(states);
                        result.engine = engine;
                    }
                    (states, Some(Gap::Reason(reason)), _) => {
                        result.reason = Some(reason);
                        lists.push(states);
                    }
                    (_, Some(Gap::Defect(law)), _) => {
                        result.defect = Some(law);
                        return result;
                    }
                }
            }
            let allowed = &lists[0];
            let racy: &[FinalState] = if race.is_some() { &lists[1] } else { &[] };
            let mut all: Vec<FinalState> = lists.iter().flatten().cloned().collect();
            all.sort();
            all.dedup();
            result.outcomes = all
                .iter()
                .map(|s| Outcome {
                    state: name_state(&task, s),
                    allowed: allowed.contains(s),
                    racy: racy.contains(s),
                })
                .collect();
            if result.reason.is_some() {
                return result;
            }
            match self.closed(&task, bound, deadline) {
                Closed::Yes => {
                    result.complete = true;
                    return result;
                }
                Closed::Never(reason) => {
                    result.reason = Some(reason);
                    return result;
                }
                Closed::Defect(law) => {
                    result.defect = Some(law);
                    return result;
                }
                Closed::NotAtThisBound => {}
            }
        }
        result.reason = Some(format!("loop bound: a thread can go on after {} iterations", self.limits.bound));
        result
    }

    fn states(
        &mut self,
        bound: u32,
        query: &Query<'a>,
        deadline: Deadline,
    ) -> (Vec<FinalState>, Option<Gap>, &'static str) {
        let engine = self.engine;
        let prepared = self.prepare(bound, deadline).expect("prepared before");
        let reason = |(states, reason): (Vec<FinalState>, Option<String>), engine| {
            (states, reason.map(Gap::Reason), engine)
        };
        match engine {
            Engine::Enumerate => reason(prepared.enumerate.states(query, deadline), "enumerate"),
            #[cfg(feature = "z3")]
            Engine::Symbolic => reason(prepared.states(query, deadline), "symbolic"),
            #[cfg(feature = "z3")]
            Engine::Auto => match prepared.enumerate.states_within(query, deadline, Some(AUTO_STEPS)) {
                Some(found) => reason(found, "enumerate"),
                None => reason(prepared.states(query, deadline), "symbolic"),
            },
            #[cfg(feature = "z3")]
            Engine::Both => {
                let (mut a, gap_a) = prepared.states(query, deadline);
                let (b, gap_b) = prepared.enumerate.states(query, deadline);
                if endless_values(&prepared.task, query) {
                    // Values out of thin air go on without end, and each engine sees another part of them.
                    a.extend(b);
                    a.sort();
                    a.dedup();
                    return (a, gap_a.or(gap_b).map(Gap::Reason), "both");
                }
                let gap = gap_a.or(gap_b);
                if gap.is_none() && a != b {
                    let task = prepared.task.clone();
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
                    return (a, Some(Gap::Defect(law)), "both");
                }
                (a, gap.map(Gap::Reason), "both")
            }
            #[cfg(not(feature = "z3"))]
            Engine::Auto => reason(prepared.enumerate.states(query, deadline), "enumerate"),
            #[cfg(not(feature = "z3"))]
            Engine::Symbolic | Engine::Both => {
                (Vec::new(), Some(Gap::Reason("not supported: built without Z3".into())), "symbolic")
            }
        }
    }
}

/// Why a list of states is not the whole answer.
enum Gap {
    Reason(String),
    /// Only two engines can differ.
    #[cfg_attr(not(feature = "z3"), allow(dead_code))]
    Defect(String),
}

enum Closed {
    Yes,
    NotAtThisBound,
    Never(String),
    Defect(String),
}

#[cfg(feature = "z3")]
impl<'a> Prepared<'a> {
    /// Puts a query to the symbolic engine, which is made when first needed.
    fn find(&mut self, query: &Query<'_>, deadline: Deadline) -> Found {
        match self.symbolic(deadline) {
            Some(engine) => engine.find(query, deadline),
            None => Found::Unknown(TIMED_OUT.to_string()),
        }
    }

    /// As [`Prepared::find`], for all final states.
    fn states(&mut self, query: &Query<'_>, deadline: Deadline) -> (Vec<FinalState>, Option<String>) {
        match self.symbolic(deadline) {
            Some(engine) => engine.states(query, deadline),
            None => (Vec::new(), Some(TIMED_OUT.to_string())),
        }
    }

    fn symbolic(&mut self, deadline: Deadline) -> Option<&mut super::symbolic::Symbolic<'a>> {
        if self.symbolic.is_none() {
            self.symbolic = super::symbolic::Symbolic::new(&self.task, deadline);
        }
        self.symbolic.as_mut()
    }
}

fn name_state(task: &Task<'_>, state: &FinalState) -> State {
    task.observed.iter().zip(state).map(|(&o, &v)| (task.observable_name(o), task.show_value(o, v))).collect()
}

/// Whether values out of thin air go on without end: no engine sees all of them. A model that excludes them does so by an
/// axiom, which the query may leave out.
#[cfg(feature = "z3")]
fn endless_values(task: &Task<'_>, query: &Query<'_>) -> bool {
    task.open_values || (task.domains.open && query.axioms.contains(&false))
}

/// Names an access of the execution that names no memory.
fn astray(task: &Task<'_>, execution: &super::execution::Execution) -> String {
    let sk = &task.sk;
    let known = super::eval::Assignment {
        reads: execution.reads.clone(),
        choices: execution.choices.iter().map(|&b| Some(b)).collect(),
    };
    let mut eval = super::eval::Eval::new(&sk.pool, &known);
    let culprit = (0..sk.len()).find(|&e| {
        execution.executed.has(e)
            && task.domains.may_fault[e]
            && sk.events[e]
                .addr
                .and_then(|a| eval.term(a))
                .and_then(|a| sk.memory.at(a))
                .is_none_or(|c| !crate::skeleton::domain::fits(sk, &sk.events[e], c))
    });
    match culprit.and_then(|e| Some((e, sk.events[e].thread?))) {
        Some((e, t)) => {
            let instr = &sk.program.thread(t).code[sk.events[e].instr];
            format!(
                "`{}` ({}, line {}) can access memory that no location names, or that it may not access",
                instr.text,
                sk.program.thread(t).name,
                instr.line
            )
        }
        None => "an access can name no memory".to_string(),
    }
}
