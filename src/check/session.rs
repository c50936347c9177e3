//! Questions about one test under one model.
//!
//! # Invariants
//! - Smaller loop bounds are tried first. A negative answer is given only if no consistent execution is cut at the bound
//!   (or goes astray in memory, or needs a value out of thin air that no domain holds); else it is `undecided`.
//! - Every execution that an engine finds is replayed; one that fails is a defect, never an answer.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

use super::engines::{Gap, Prepared, Said, name_state};
use super::query::{Deadline, FinalState, Query, TIMED_OUT};
use super::task::Task;
use super::{Engine, Limits, fault, replay, witness};
use crate::litmus::{LitmusTest, Prop};
use crate::model::ir::Model;
use crate::skeleton::Cond;
use crate::verdict::{Answer, FaultEvent, Outcome, Outcomes, Verdict};

mod definedness;
mod explaining;

/// What flags are called that mean a data race; the others mean undefined behaviour.
const RACE_FLAGS: &[&str] = &["race", "racy", "data-race", "data_race", "dr"];

/// How the names of flags end that warn of something that is not undefined.
const HAZARD: &str = "-hazard";

/// What the flag is called that means what implementations may settle as they like: no answer about the program holds
/// for all of them, except that it is undefined.
const IMPLEMENTATION_DEFINED: &str = "implementation-defined";

/// Whether that is why a question is undecided.
pub(super) fn is_left_open(reason: &str) -> bool {
    reason.starts_with(IMPLEMENTATION_DEFINED)
}

/// Why values out of thin air leave a question open.
pub(super) const OPEN_VALUES: &str =
    "values out of thin air: this model does not exclude them, and they are too many";

/// Questions about one test under one model.
pub struct Session<'a> {
    test: &'a LitmusTest,
    model: &'a Model,
    engine: Engine,
    limits: Limits,
    set: Vec<(String, String)>,
    explain: bool,
    /// Answers about outcomes come with an explanation.
    explanations: bool,
    /// Executions are described with every relation that the model names.
    detail: bool,
    /// Values out of thin air are tried even if the model excludes them.
    thin_air: bool,
    prepared: BTreeMap<u32, Result<Prepared<'a>, String>>,
    /// The answer about undefined behaviour, once it was decided.
    undefined: Option<Answer>,
    /// What implementations settle, once it was asked.
    left_open: Option<Option<String>>,
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
            explanations: false,
            detail: false,
            thin_air: false,
            prepared: BTreeMap::new(),
            undefined: None,
            left_open: None,
        }
    }

    /// The same session with nothing prepared.
    fn fresh(&self) -> Self {
        let fresh = Session::new(self.test, self.model, self.engine, self.limits, &self.set);
        Session { detail: self.detail, ..fresh }
    }

    /// The test that it is about.
    pub(super) fn test(&self) -> &'a LitmusTest {
        self.test
    }

    /// Negative answers name a minimal set of axioms; costs a few more questions.
    pub fn explaining(mut self) -> Self {
        self.explain = true;
        self
    }

    /// Executions come with every relation that the model names: [`Witness::derived`](crate::verdict::Witness).
    pub fn detailed(mut self) -> Self {
        self.detail = true;
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
            (session.explain, session.explanations) = (self.explain, self.explanations);
            session.detail = self.detail;
            return session.reachability(None, negate);
        }
        let answer = self.answer(&Question {
            condition: Some(negate),
            complete: true,
            flags: None,
            positive: Verdict::Allowed,
            negative: Verdict::Forbidden,
        });
        self.for_all_implementations(answer)
    }

    /// Does some consistent execution race? `None` if the model has no race flag.
    pub fn race(&mut self) -> Option<Answer> {
        let flags = self.flags(true)?;
        let answer = self.marked(Question {
            condition: None,
            complete: false,
            flags: Some(flags),
            positive: Verdict::Racy,
            negative: Verdict::RaceFree,
        });
        Some(self.for_all_implementations(answer))
    }

    /// Does some consistent execution raise a flag other than the race flag? `None` if the model has none.
    pub fn undefined(&mut self) -> Option<Answer> {
        let flags = self.flags(false)?;
        // What names its axioms has to be asked anew.
        let known = self.undefined.as_ref().filter(|a| !self.explain || a.verdict == Verdict::Undefined);
        if let Some(known) = known {
            return Some(known.clone());
        }
        let answer = self.marked(Question {
            condition: None,
            complete: false,
            flags: Some(flags),
            positive: Verdict::Undefined,
            negative: Verdict::Defined,
        });
        let answer = self.for_all_implementations(answer);
        if answer.verdict.reason().is_none() {
            self.undefined = Some(answer.clone());
        }
        Some(answer)
    }

    /// Asks for executions that a flag marks. In a host program, a command runs only after others have ended, and the
    /// events of one that never runs are none: what only executions show in which some thread does not end shows nothing.
    fn marked(&mut self, question: Question) -> Answer {
        let program = &self.test.program;
        if program.host.is_none() {
            return self.answer(&question);
        }
        let ended = self.answer(&Question { complete: true, ..question.clone() });
        if ended.verdict != question.negative {
            return ended;
        }
        let mut answer = self.answer(&question);
        let stuck = crate::program::host::Launches::of(program).is_ok_and(|l| l.stuck.is_some());
        if answer.verdict == question.positive {
            answer.verdict = Verdict::Undecided(
                "only executions in which a thread does not end show it, and then later commands may not run"
                    .into(),
            );
            answer.witness = None;
            answer.fault = None;
        } else if stuck && answer.verdict == question.negative {
            answer.verdict = Verdict::Undecided("deadlock: in some order of calls, a wait never ends".into());
        }
        answer
    }

    fn flags(&self, race: bool) -> Option<Vec<usize>> {
        let is_race = |name: &str| RACE_FLAGS.contains(&name.to_lowercase().as_str());
        let flags: Vec<usize> = (0..self.model.flags.len())
            .filter(|&i| {
                let name = &self.model.flags[i].name;
                is_race(name) == race && !name.ends_with(HAZARD) && name != IMPLEMENTATION_DEFINED
            })
            .collect();
        (!flags.is_empty()).then_some(flags)
    }

    /// The answer, unless implementations differ in it. What is undefined although everything that is left to them goes
    /// as well as it can is undefined everywhere.
    fn for_all_implementations(&mut self, mut answer: Answer) -> Answer {
        let everywhere = matches!(answer.verdict, Verdict::Racy | Verdict::Undefined | Verdict::Undecided(_));
        if !everywhere
            && let Some(reason) = self.left_open()
            && !self.is_undefined_everywhere(&answer)
        {
            answer = Answer { verdict: Verdict::Undecided(reason), axioms: Vec::new(), witness: None, ..answer };
        }
        answer
    }

    /// Of a program that is undefined whatever an implementation does, an outcome is as the model says: the answer comes
    /// with that.
    fn is_undefined_everywhere(&mut self, answer: &Answer) -> bool {
        matches!(answer.verdict, Verdict::Allowed | Verdict::Forbidden)
            && self.undefined().is_some_and(|answer| answer.verdict == Verdict::Undefined)
    }

    /// What the model leaves to implementations in some execution, in words.
    fn left_open(&mut self) -> Option<String> {
        if let Some(known) = &self.left_open {
            return known.clone();
        }
        let is_open = |i: &usize| self.model.flags[*i].name == IMPLEMENTATION_DEFINED;
        let flags: Vec<usize> = (0..self.model.flags.len()).filter(is_open).collect();
        let found = (!flags.is_empty()).then(|| {
            let doc = self.model.flags[flags[0]].doc.split_whitespace().collect::<Vec<_>>().join(" ");
            let explain = std::mem::replace(&mut self.explain, false);
            let answer = self.marked(Question {
                condition: None,
                complete: false,
                flags: Some(flags),
                positive: Verdict::Undefined,
                negative: Verdict::Defined,
            });
            self.explain = explain;
            answer.fault.map(|fault| {
                let event = |e: &FaultEvent| {
                    format!("`{}` ({}, line {})", e.event.text, e.event.thread_name, e.event.line)
                };
                let events: Vec<String> = fault.events.iter().map(event).collect();
                format!("{IMPLEMENTATION_DEFINED}: {}; {}", events.join(" and "), doc.trim_end_matches('.'))
            })
        });
        let found = found.flatten();
        self.left_open = Some(found.clone());
        found
    }

    fn deadline(&self) -> Deadline {
        Deadline(self.limits.timeout.map(|t| Instant::now() + t))
    }

    fn prepare(&mut self, bound: u32, deadline: Deadline) -> Result<&mut Prepared<'a>, String> {
        let (test, model, set, thin_air, detail) = (self.test, self.model, &self.set, self.thin_air, self.detail);
        // Time is per question: what ran out of it for one may do for the next.
        if matches!(self.prepared.get(&bound), Some(Err(reason)) if reason == TIMED_OUT) {
            self.prepared.remove(&bound);
        }
        self.prepared
            .entry(bound)
            .or_insert_with(|| {
                let task = if thin_air {
                    Task::with_thin_air(test, model, set, bound, deadline.0)
                } else {
                    Task::new(test, model, set, bound, deadline.0)
                };
                task.map(|task| Prepared::new(Task { detail, ..task }))
            })
            .as_mut()
            .map_err(|reason| reason.clone())
    }

    fn answer(&mut self, question: &Question) -> Answer {
        let deadline = self.deadline();
        let mut answer = Answer {
            verdict: question.negative.clone(),
            engine: self.engine.name(),
            bound: None,
            axioms: Vec::new(),
            witness: None,
            defect: None,
            fault: None,
            definedness: None,
            explanation: None,
        };
        for bound in self.limits.bounds() {
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
                    answer.fault = question.flags.as_ref().and_then(|flags| {
                        let races = self.flags(true).unwrap_or_default();
                        fault::describe(&task, &found.0, &found.1, flags, &races).map(Box::new)
                    });
                    self.show_missing(&mut answer, bound, question, &found, deadline);
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
        answer.verdict = Verdict::Undecided(loop_bound(self.limits.bound));
        answer
    }

    /// Whether the executions seen at a bound are all there are.
    fn closed(&mut self, task: &Rc<Task<'a>>, bound: u32, deadline: Deadline) -> Closed {
        if task.open_values {
            return Closed::Never(OPEN_VALUES.into());
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

    /// Puts a query to the engine or engines at a bound that was prepared before.
    fn ask(&mut self, bound: u32, query: &Query<'a>, deadline: Deadline) -> (Said, &'static str) {
        let engine = self.engine;
        self.prepare(bound, deadline).expect("prepared before").ask(engine, query, deadline)
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
        let explanations = self.explanations && answer.verdict == Verdict::Forbidden;
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
        if explanations {
            asker.show_breaches(answer, bound, &query, deadline);
        }
        answer.axioms = (0..query.axioms.len())
            .filter(|&i| query.axioms[i])
            .map(|i| self.model.axioms[i].name.clone())
            .collect();
    }

    /// Every outcome: final values of what the test observes, for complete executions that satisfy its filter.
    pub fn outcomes(&mut self) -> Outcomes {
        let deadline = self.deadline();
        let (race, engine) = (self.flags(true), self.engine);
        let mut result = Outcomes {
            complete: false,
            reason: None,
            outcomes: Vec::new(),
            engine: self.engine.name(),
            bound: None,
            defect: None,
            definedness: None,
        };
        for bound in self.limits.bounds() {
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
                match self.prepare(bound, deadline).expect("prepared before").all_states(engine, q, deadline) {
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
                    race: None,
                })
                .collect();
            if result.reason.is_some() {
                return result;
            }
            match self.closed(&task, bound, deadline) {
                Closed::Yes => {
                    result.reason = self.left_open();
                    result.complete = result.reason.is_none();
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
        result.reason = Some(loop_bound(self.limits.bound));
        result
    }
}

/// Whether the executions seen at a bound are all there are.
enum Closed {
    Yes,
    NotAtThisBound,
    Never(String),
    Defect(String),
}

/// Why a loop bound leaves a question open.
pub(super) fn loop_bound(bound: u32) -> String {
    format!("loop bound: a thread can go on after {bound} iterations")
}

/// Names an access of the execution that names no memory.
pub(super) fn astray(task: &Task<'_>, execution: &super::execution::Execution) -> String {
    let sk = &task.sk;
    let known = super::eval::Assignment {
        reads: execution.reads.clone(),
        choices: execution.choices.iter().map(|&b| Some(b)).collect(),
    };
    let mut accesses = (0..sk.len()).filter(|&e| execution.executed.has(e) && task.domains.may_fault[e]);
    let culprit = accesses.find(|&e| replay::astray(task, &known, e));
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
