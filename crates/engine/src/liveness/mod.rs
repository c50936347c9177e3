//! Answers liveness questions: can some fair execution continue, or wait, without end?
//!
//! One mechanism serves all engines. The skeleton lets threads end in further ways
//! ([`crate::skeleton::progress`]). Fairness to threads is a condition on it ([`fairness`]), and
//! fairness to memory is further axioms, in `models/lib/liveness.cat`. So a liveness question is a
//! reachability question of another program under another model. An execution that an engine finds
//! passes the replay, and then [`evidence`], which checks it against the definition.
//!
//! # Invariants
//! - The test's condition is ignored, but its filter applies. A thread that does not run to its end
//!   has the register values from the place where it stops.
//! - The answer `terminates` requires that no fair execution continues at the loop bound.
//!
//! # Sources
//! - See [`program::progress`] and `models/lib/liveness.cat`.

mod beside;
mod brink;
mod cases;
mod evidence;
mod explain;
mod fairness;
mod held;
mod host;
mod started;
mod sure;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::Instant;

pub use brink::Stretch;
pub use program::progress::ProgressModel;
pub use started::{RunnablePart, parts};

use super::engines::{Checked, TaskEngines};
use super::facts::Facts;
use super::limits::{BoundTrial, Halt};
use super::query::{Deadline, Query};
use super::task::Task;
use super::{Engine, Limits, witness};
use crate::skeleton::signature::of_endless;
use crate::skeleton::{Cond, Purpose};
use cases::LivenessCase;
use cat::model::{Library, Model, Shipped, load};
use fairness::Conditions;
use host::Ends;
use program::litmus::LitmusTest;
use program::options;
use verdict::{Answer, Reason, Verdict, Witness};

/// The rules about endless executions.
static RULES: LazyLock<Model> = LazyLock::new(|| {
    let text = Library::file("lib/liveness.cat").expect("it is shipped");
    load(text, "liveness", &Shipped, &of_endless(), None).expect("it is valid")
});

/// A test and a model, prepared for questions about liveness.
pub struct LivenessTask {
    model: Model,
    test: LitmusTest,
    ends: Ends,
    /// Whether all threads end, whatever they read and whichever are run.
    sure: bool,
    /// The cases if every thread is run, and the cases if threads may be stopped.
    posed: [OnceCell<Result<Vec<CaseTest>, Reason>>; 2],
}

/// A case, as a test.
struct CaseTest {
    case: LivenessCase,
    test: LitmusTest,
}

impl LivenessTask {
    /// Prepares a test and a model.
    pub fn new(test: &LitmusTest, model: &Model) -> LivenessTask {
        let test = LitmusTest {
            condition: None,
            observe: Vec::new(),
            ..test.clone()
        };
        let ends = host::ends(&test.program);
        let sure =
            test.program.host.is_none() && sure::all(&test.program).into_iter().all(|sure| sure);
        LivenessTask {
            model: model.with_axioms(&RULES),
            test,
            ends,
            sure,
            posed: Default::default(),
        }
    }

    /// The cases of the part that depends on threads. `stops`: the scheduler may stop them.
    ///
    /// # Errors
    /// Why they are unknown.
    fn posed(&self, stops: bool) -> Result<&[CaseTest], Reason> {
        let (program, ways) = match &self.ends {
            Ends::Open(ways) => (&self.test.program, ways),
            _ => return Ok(&[]),
        };
        let all = || match program.host {
            None => Ok(vec![LivenessCase::only(program)]),
            Some(_) => cases::cases(program, ways, stops),
        };
        let posed = self.posed[usize::from(stops)].get_or_init(|| {
            Ok(all()?
                .into_iter()
                .map(|case: LivenessCase| {
                    let test = LitmusTest {
                        program: case.program.clone(),
                        ..self.test.clone()
                    };
                    CaseTest { case, test }
                })
                .collect())
        });
        posed.as_deref().map_err(Clone::clone)
    }
}

/// Questions about the liveness of one test under one model.
pub struct Liveness<'a> {
    setting: &'a LivenessTask,
    engine: Engine,
    limits: Limits,
    set: Vec<options::Setting>,
    /// Whether only verdicts count, and no answer lists its reads of unwritten memory.
    aside: bool,
    /// By loop bound, whether threads may stop, and case: the prepared task.
    ready: BTreeMap<(u32, bool, usize), Result<CaseEngines<'a>, Reason>>,
}

/// A task with its engines and the conditions for queries.
struct CaseEngines<'a> {
    prepared: TaskEngines<'a>,
    conditions: BTreeMap<ProgressModel, Conditions>,
    /// An execution that hangs although every thread is run, if one was found: it hangs under any
    /// progress model.
    hangs: Option<Rc<Checked>>,
}

impl<'a> Liveness<'a> {
    /// Does no work yet; every failure becomes an `undecided` answer. `set` overrides options of
    /// the test and of the model.
    pub fn new(
        setting: &'a LivenessTask,
        engine: Engine,
        limits: Limits,
        set: &[options::Setting],
    ) -> Self {
        Liveness {
            setting,
            engine,
            limits,
            set: set.to_vec(),
            aside: false,
            ready: BTreeMap::new(),
        }
    }

    /// Answers do not list their reads of unwritten memory; this may spare questions.
    pub fn aside(mut self) -> Self {
        self.aside = true;
        self
    }

    /// Does every execution that is fair under the progress model end?
    pub fn ask(&mut self, model: ProgressModel) -> Answer {
        // Whether an access goes astray does not depend on the stopped threads.
        let model = if self.setting.sure {
            ProgressModel::Fair
        } else {
            model
        };
        let deadline = Deadline(self.limits.timeout.map(|t| Instant::now() + t));
        let mut answer = Answer::new(Verdict::Terminates, self.engine.name());
        match &self.setting.ends {
            Ends::Open(_) => {}
            Ends::Hangs(witness) => {
                answer.verdict = Verdict::Hangs;
                answer.witness = Some((**witness).clone());
                return answer;
            }
            Ends::Undecided(reason) => return answer.undecided(reason.clone()),
        }
        let posed = match self.setting.posed(model.may_stop()) {
            Ok(posed) => posed,
            Err(reason) => return self.by_others(model, reason),
        };
        if let Some(reason) = posed.iter().find_map(|p| p.case.beside.unsettled(model)) {
            return self.by_others(model, reason);
        }
        let limits = self.limits;
        limits.answer(&self.setting.test, &answer, |bound, answer| {
            let mut tried = BoundTrial {
                open: None,
                cut: false,
                deepest: 0,
            };
            for (case, posed) in posed.iter().enumerate() {
                match self.at(case, bound, model, posed, deadline, answer)? {
                    BoundResult::Hang(hang) => return Ok(hang),
                    BoundResult::Not(not) => {
                        tried.open = tried.open.or(not.open);
                        tried.cut |= not.cut;
                        tried.deepest = tried.deepest.max(not.deepest);
                    }
                }
            }
            Ok(tried)
        })
    }

    /// The answer if the progress model gives none, for a reason. Execution that is fair to every
    /// thread is fair under each model. And threads served under `obe` are served under the models
    /// that serve more, whatever the order of groups.
    fn by_others(&mut self, model: ProgressModel, reason: Reason) -> Answer {
        let undecided = Answer::new(Verdict::Terminates, self.engine.name()).undecided(reason);
        if !model.may_stop() {
            return undecided;
        }
        let fair = self.ask(ProgressModel::Fair);
        if fair.verdict == Verdict::Hangs {
            return fair;
        }
        if matches!(model, ProgressModel::HsaObe | ProgressModel::Lobe) {
            let fewest = self.ask(ProgressModel::Obe);
            if fewest.verdict == Verdict::Terminates {
                return fewest;
            }
        }
        undecided
    }

    /// Queries one case at one loop bound.
    fn at(
        &mut self,
        case: usize,
        bound: u32,
        model: ProgressModel,
        posed: &'a CaseTest,
        deadline: Deadline,
        answer: &mut Answer,
    ) -> Result<BoundResult, Halt> {
        let engine = self.engine;
        let known = self
            .ready
            .range((bound, false, 0)..=(bound, false, usize::MAX))
            .find_map(|(key, ready)| {
                let CaseEngines {
                    prepared, hangs, ..
                } = ready.as_ref().ok()?;
                Some((key.2, &prepared.facts, hangs.as_ref()?))
            });
        if let Some((case, facts, found)) = known {
            let posed = &self.setting.posed(false).map_err(Halt::Undecided)?[case];
            let tried = facts.tried(None);
            answer.witness = Some(shown(facts, found, model, &posed.case)?);
            answer.verdict = Verdict::Hangs;
            return Ok(BoundResult::Hang(tried));
        }
        let aside = self.aside;
        let ready = self
            .ready(case, bound, model, posed, deadline)
            .map_err(Halt::Undecided)?;
        let facts = ready.prepared.facts.clone();
        if !aside {
            answer.unwritten.extend(facts.reads_of_nothing_written());
        }
        let conditions = ready.conditions[&model].clone();
        if facts.sk.cut != Cond::FALSE {
            answer.bound = Some(bound);
        }
        let mut query = Query {
            complete: false,
            props: facts.task.test.filter.iter().map(|p| (p, true)).collect(),
            require: conditions.hangs,
            no_fault: facts.fault != Cond::FALSE,
            ..Query::complete(facts.task.model)
        };
        let (said, who) = ready.prepared.ask(engine, &query, deadline);
        answer.engine = who;
        if let Some(found) = said.found()? {
            answer.verdict = Verdict::Hangs;
            answer.witness = Some(shown(&facts, &found, model, &posed.case)?);
            ready.hangs = (!model.may_stop()).then(|| Rc::new(*found));
            return Ok(BoundResult::Hang(facts.tried(None)));
        }
        if facts.open_values {
            return Err(Halt::Undecided(Reason::ThinAir));
        }
        if facts.fault != Cond::FALSE {
            let astray = Query {
                props: Vec::new(),
                require: facts.fault,
                no_fault: false,
                ..query.clone()
            };
            if let Some(found) = ready.prepared.ask(engine, &astray, deadline).0.found()? {
                return Err(Halt::Undecided(witness::astray(&facts, &found.0)));
            }
        }
        if facts.sk.cut == Cond::FALSE {
            return Ok(BoundResult::Not(facts.tried(None)));
        }
        // A filter is about an end that was not reached.
        (query.require, query.props) = (conditions.goes_on, Vec::new());
        if ready
            .prepared
            .ask(engine, &query, deadline)
            .0
            .found()?
            .is_none()
        {
            return Ok(BoundResult::Not(facts.tried(None)));
        }
        // The first loop that a thread can continue, so that every engine names the same one.
        let mut first = conditions.loops.len() - 1;
        for (i, goes_on) in conditions.loops.iter().enumerate() {
            query.require = *goes_on;
            if ready
                .prepared
                .ask(engine, &query, deadline)
                .0
                .found()?
                .is_some()
            {
                first = i;
                break;
            }
        }
        Ok(BoundResult::Not(facts.tried(Some(first))))
    }

    fn ready(
        &mut self,
        case: usize,
        bound: u32,
        model: ProgressModel,
        posed: &'a CaseTest,
        deadline: Deadline,
    ) -> Result<&mut CaseEngines<'a>, Reason> {
        let (setting, set, stops) = (self.setting, &self.set, model.may_stop());
        let aside = self.aside;
        let (test, of, key) = (&posed.test, &posed.case, (bound, stops, case));
        // Time is per question: the next question may have enough.
        if matches!(self.ready.get(&key), Some(Err(Reason::Time))) {
            self.ready.remove(&key);
        }
        self.ready
            .entry(key)
            .or_insert_with(|| {
                let purpose = Purpose::Progress {
                    stops,
                    registers: test.filter.is_some(),
                };
                let task = Task {
                    purpose,
                    ..Task::new(test, &setting.model, set, bound)
                };
                let mut facts = Facts::of(&task, deadline.0)?;
                let asked = ProgressModel::ALL
                    .into_iter()
                    .filter(|p| p.may_stop() == stops);
                let sk = &mut facts.sk;
                sk.pool.watch(deadline.0);
                let conditions = asked
                    .map(|p| (p, fairness::conditions(sk, p).of_case(sk, of)))
                    .collect();
                sk.pool.unwatch()?;
                Ok(CaseEngines {
                    prepared: match aside {
                        true => TaskEngines::suspecting(facts, deadline)?,
                        false => TaskEngines::settled(facts, deadline)?,
                    },
                    conditions,
                    hangs: None,
                })
            })
            .as_mut()
            .map_err(|reason| reason.clone())
    }
}

/// The result for one case at one loop bound.
enum BoundResult {
    /// An execution that hangs.
    Hang(BoundTrial),
    /// None hangs within the bound.
    Not(BoundTrial),
}

/// An execution of a case as evidence for a hang, if it is one.
fn shown(
    facts: &Facts<'_>,
    found: &Checked,
    model: ProgressModel,
    case: &LivenessCase,
) -> Result<Witness, Halt> {
    let progress = facts.sk.progress.as_deref().expect("built for progress");
    let evidence = evidence::judge(facts, &found.0, progress, model).map_err(|law| {
        Halt::Defect(format!("an execution that is said to hang does not: {law}"))
    })?;
    let ends = explain::explain(facts, &found.0, progress, &evidence, model, case);
    Ok(Witness {
        ends,
        ..witness::describe(facts, &found.0, &found.1)
    })
}
