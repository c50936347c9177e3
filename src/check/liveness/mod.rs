//! Liveness: can some fair execution go on for ever, or wait for ever?
//!
//! One mechanism serves both engines: the skeleton lets threads end in further ways ([`crate::skeleton::progress`]), which
//! of them are fair to threads is a condition on it ([`fairness`]), and what is fair to memory are further axioms, in
//! `models/lib/liveness.cat`. So a question about liveness is a question about reachability of another program under
//! another model. What is found passes the replay, and then [`evidence`], which reads the definition off the execution.
//!
//! # Invariants
//! - The test's condition is ignored; its filter is not: where a thread does not run to its end, its registers have the
//!   values that they hold where it ends.
//! - `terminates` is answered only if no fair execution goes on at the loop bound.
//!
//! # Sources
//! - See [`crate::program::progress`] and `models/lib/liveness.cat`.

mod evidence;
mod explain;
mod fairness;
mod host;
mod sure;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::Instant;

pub use crate::program::progress::ProgressModel;

use super::engines::{Checked, Halt, Prepared};
use super::query::{Deadline, Query, TIMED_OUT};
use super::task::Task;
use super::{Engine, Limits, session, witness};
use crate::litmus::LitmusTest;
use crate::model::{Library, Model, Shipped, load};
use crate::program::ThreadId;
use crate::skeleton::{Cond, Purpose, progress};
use crate::verdict::{Answer, ThreadEnd, Verdict, Witness};
use fairness::Conditions;
use host::{Case, Ends};

/// Why there is no answer where threads may be stopped for ever.
const STOPPED: &str = "liveness of host programs in which something waits for threads that may loop or wait for ever, where threads may be stopped";

/// The rules about endless executions.
static RULES: LazyLock<Model> = LazyLock::new(|| {
    let text = Library::file("lib/liveness.cat").expect("it is shipped");
    load(text, "liveness", &Shipped, &progress::signature(), None).expect("it is valid")
});

/// A test and a model, made ready for questions about liveness.
pub struct Setting {
    model: Model,
    ends: Ends,
    /// The tests of the cases, in their order.
    tests: Vec<LitmusTest>,
}

impl Setting {
    /// Prepares a test and a model.
    pub fn new(test: &LitmusTest, model: &Model) -> Setting {
        let test = LitmusTest { condition: None, observe: Vec::new(), ..test.clone() };
        let ends = host::ends(&test.program);
        let of = |case: &Case| LitmusTest { program: case.program.clone(), ..test.clone() };
        let tests = match &ends {
            Ends::Open(cases) => cases.iter().map(of).collect(),
            _ => Vec::new(),
        };
        Setting { model: model.with_axioms(&RULES), ends, tests }
    }
}

/// Questions about the liveness of one test under one model.
pub struct Liveness<'a> {
    setting: &'a Setting,
    engine: Engine,
    limits: Limits,
    set: Vec<(String, String)>,
    /// By case, loop bound, and whether threads may stop.
    ready: BTreeMap<(usize, u32, bool), Result<Ready<'a>, String>>,
}

/// A task with its engines and the conditions to ask for.
struct Ready<'a> {
    prepared: Prepared<'a>,
    conditions: BTreeMap<ProgressModel, Conditions>,
    /// An execution that hangs though every thread is run, if one was found: it hangs under any progress model.
    hangs: Option<Rc<Checked>>,
}

impl<'a> Liveness<'a> {
    /// Prepares nothing yet; every failure shows up as an `undecided` answer.
    /// `set` overrides options of the test and of the model (validated names and values).
    pub fn new(setting: &'a Setting, engine: Engine, limits: Limits, set: &[(String, String)]) -> Self {
        Liveness { setting, engine, limits, set: set.to_vec(), ready: BTreeMap::new() }
    }

    /// Does every execution that is fair under the progress model end?
    pub fn ask(&mut self, model: ProgressModel) -> Answer {
        let deadline = Deadline(self.limits.timeout.map(|t| Instant::now() + t));
        let mut answer = Answer::new(Verdict::Terminates, self.engine.name());
        let cases = match &self.setting.ends {
            Ends::Open(cases) if cases.len() > 1 && model.may_stop() => {
                return answer.undecided(STOPPED.to_string());
            }
            Ends::Open(cases) => cases.len(),
            Ends::Hangs(witness) => {
                answer.verdict = Verdict::Hangs;
                answer.witness = Some((**witness).clone());
                return answer;
            }
            Ends::Undecided(reason) => return answer.undecided(reason.clone()),
        };
        let limits = self.limits;
        limits.deepen(answer, |bound, answer| {
            let mut whole = true;
            for case in 0..cases {
                match self.at((case, bound), model, deadline, answer)? {
                    Found::Hang => return Ok(true),
                    Found::Nothing => {}
                    Found::More => whole = false,
                }
            }
            Ok(whole)
        })
    }

    /// Asks about one case, at one loop bound.
    fn at(
        &mut self,
        (case, bound): (usize, u32),
        model: ProgressModel,
        deadline: Deadline,
        answer: &mut Answer,
    ) -> Result<Found, Halt> {
        let engine = self.engine;
        let held = match &self.setting.ends {
            Ends::Open(cases) => cases[case].held.as_slice(),
            _ => &[],
        };
        if let Some(Ok(Ready { prepared, hangs: Some(found), .. })) = self.ready.get(&(case, bound, false)) {
            answer.bound = (prepared.task.sk.cut != Cond::FALSE).then_some(bound);
            answer.witness = Some(shown(&prepared.task, found, model, held)?);
            answer.verdict = Verdict::Hangs;
            return Ok(Found::Hang);
        }
        let ready = self.ready((case, bound), model, deadline).map_err(Halt::Undecided)?;
        let task = ready.prepared.task.clone();
        let conditions = ready.conditions[&model];
        if task.sk.cut != Cond::FALSE {
            answer.bound = Some(bound);
        }
        let mut query = Query {
            complete: false,
            props: task.test.filter.iter().map(|p| (p, true)).collect(),
            flags: None,
            require: conditions.hangs,
            no_fault: task.fault != Cond::FALSE,
            axioms: vec![true; task.model.axioms.len()],
        };
        let (said, who) = ready.prepared.ask(engine, &query, deadline);
        answer.engine = who;
        if let Some(found) = said.found()? {
            answer.verdict = Verdict::Hangs;
            answer.witness = Some(shown(&task, &found, model, held)?);
            ready.hangs = (!model.may_stop()).then(|| Rc::new(*found));
            return Ok(Found::Hang);
        }
        if task.open_values {
            return Err(Halt::Undecided(session::OPEN_VALUES.to_string()));
        }
        if task.fault != Cond::FALSE {
            let astray = Query { props: Vec::new(), require: task.fault, no_fault: false, ..query.clone() };
            if let Some(found) = ready.prepared.ask(engine, &astray, deadline).0.found()? {
                return Err(Halt::Undecided(session::astray(&task, &found.0)));
            }
        }
        if task.sk.cut == Cond::FALSE {
            return Ok(Found::Nothing);
        }
        // A filter speaks of an end that was not reached.
        (query.require, query.props) = (conditions.goes_on, Vec::new());
        let goes_on = ready.prepared.ask(engine, &query, deadline).0.found()?.is_some();
        Ok(if goes_on { Found::More } else { Found::Nothing })
    }

    fn ready(
        &mut self,
        (case, bound): (usize, u32),
        model: ProgressModel,
        deadline: Deadline,
    ) -> Result<&mut Ready<'a>, String> {
        let (setting, set, stops) = (self.setting, &self.set, model.may_stop());
        let (test, key) = (&setting.tests[case], (case, bound, stops));
        let none: (&[ThreadId], &[ThreadId]) = (&[], &[]);
        let (hang, end) = match &setting.ends {
            Ends::Open(cases) => (cases[case].hang.as_slice(), cases[case].end.as_slice()),
            _ => none,
        };
        // Time is per question: what ran out of it for one may do for the next.
        if matches!(self.ready.get(&key), Some(Err(reason)) if reason == TIMED_OUT) {
            self.ready.remove(&key);
        }
        self.ready
            .entry(key)
            .or_insert_with(|| {
                let purpose = Purpose::Progress { stops, registers: test.filter.is_some() };
                let mut task = Task::build(purpose, test, &setting.model, set, bound, false, deadline.0)?;
                let asked = ProgressModel::ALL.into_iter().filter(|p| p.may_stop() == stops);
                let sk = &mut task.sk;
                let conditions = asked.map(|p| (p, fairness::conditions(sk, p).of_case(sk, hang, end))).collect();
                Ok(Ready { prepared: Prepared::new(task), conditions, hangs: None })
            })
            .as_mut()
            .map_err(|reason| reason.clone())
    }
}

/// What came of a question about one case at one loop bound.
enum Found {
    /// An execution that hangs.
    Hang,
    /// None does.
    Nothing,
    /// None does, but a larger bound may tell more.
    More,
}

/// An execution as evidence for a hang, if it is one; `held` says how those stand that the execution leaves out.
fn shown(
    task: &Task<'_>,
    found: &Checked,
    model: ProgressModel,
    held: &[(ThreadId, ThreadEnd)],
) -> Result<Witness, Halt> {
    let progress = task.sk.progress.as_deref().expect("built for progress");
    let evidence = evidence::judge(task, &found.0, progress, model)
        .map_err(|law| Halt::Defect(format!("an execution that is said to hang does not: {law}")))?;
    let mut ends = explain::explain(task, &found.0, progress, &evidence, model);
    held.iter().for_each(|(t, end)| ends[usize::from(t.0)] = end.clone());
    Ok(Witness { ends, ..witness::describe(task, &found.0, &found.1) })
}
