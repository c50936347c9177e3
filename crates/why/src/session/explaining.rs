//! Explains answers about outcomes, beside the answer.

use std::rc::Rc;

use super::{BoundedQuestion, Session};
use crate::explain::{self, Refuting};
use crate::knobs::Added;
use crate::needs::{Forbidding, fence_forbidding, forbidding, needs};
use cat::model::ir::Model;
use engine::engines::{Checked, Reply};
use engine::eval::Eval;
use engine::execution::Execution;
use engine::facts::Facts;
use engine::query::{Deadline, Query};
use front::litmus::condition;
use program::ThreadId;
#[cfg(test)]
use program::litmus::LitmusTest;
use program::litmus::Prop;
use program::options::Setting;
use verdict::{Answer, Explanation, Missing, Reason};

impl<'a> Session<'a> {
    /// Answers about outcomes come with an [`Explanation`]; this costs many more questions.
    pub fn with_explanations(mut self) -> Self {
        (self.explain, self.explanations) = (true, true);
        self
    }

    /// Notes an explanation's statements about changed programs.
    #[cfg(test)]
    pub(crate) fn claim(&self, claims: Vec<(LitmusTest, bool)>) {
        self.claims.borrow_mut().extend(claims);
    }

    /// All statements of explanations about changed programs.
    #[cfg(test)]
    pub(crate) fn claims(self) -> Vec<(LitmusTest, bool)> {
        self.claims.into_inner()
    }

    /// The model of the questions.
    pub(crate) fn model(&self) -> &'a Model {
        self.model
    }

    /// For each axiom of a minimal set (those of `query`), an execution that breaks it alone; and
    /// the parts of the program that the answer rests on.
    pub(super) fn show_breaches(
        &mut self,
        answer: &mut Answer,
        bound: u32,
        query: &Query<'a>,
        deadline: Deadline,
    ) {
        let mut explanation = Explanation::default();
        let core: Vec<usize> = (0..query.axioms.len())
            .filter(|&i| query.axioms[i])
            .collect();
        let mut shown: Option<(Rc<Facts<'a>>, Box<Checked>)> = None;
        for &axiom in &core {
            match self.without(axiom, bound, query, deadline) {
                Reply::Yes(found) => {
                    let facts = self
                        .prepare(bound, deadline)
                        .expect("prepared before")
                        .facts
                        .clone();
                    let found = Box::new(explain::reordered(&facts, *found, axiom));
                    match explain::breach(&facts, &found.0, &found.1, axiom) {
                        Ok(breach) => explanation.broken.push(breach),
                        Err(law) => answer.defect = Some(law),
                    }
                    shown.get_or_insert((facts, found));
                }
                Reply::Unknown(reason) => explanation.given_up = Some(reason),
                Reply::Defect(law) => answer.defect = Some(law),
                // A part that time did not suffice for counts as needed.
                Reply::No if deadline.passed() => explanation.given_up = Some(Reason::Time),
                Reply::No => {
                    answer.defect = Some("an axiom that can be spared counts as needed".into())
                }
            }
        }
        if core.is_empty() {
            explanation.impossible = self.impossible(bound, query, deadline);
        } else if let Some((facts, found)) = shown {
            let negate = query.props.last().is_some_and(|p| !p.1);
            explanation.needs = Some(needs(
                self,
                negate,
                &|spot| written(&facts, &found.0, spot.0, spot.1),
                &|spot| taken(&facts, &found.0, spot.0, spot.1),
                deadline.0,
            ));
        }
        answer.explanation = Some(Box::new(explanation));
    }

    /// An execution that breaks one axiom: no other at all, or else none of the others in the
    /// query.
    fn without(
        &mut self,
        axiom: usize,
        bound: u32,
        query: &Query<'a>,
        deadline: Deadline,
    ) -> Reply {
        let mut only = Query {
            axioms: vec![true; query.axioms.len()],
            ..query.clone()
        };
        only.axioms[axiom] = false;
        match self.ask(bound, &only, deadline).0 {
            Reply::No => {
                only.axioms = query.axioms.clone();
                only.axioms[axiom] = false;
                self.ask(bound, &only, deadline).0
            }
            said => said,
        }
    }

    /// The parts of the proposition that no execution satisfies, without any axiom; empty if each
    /// can hold alone.
    fn impossible(&mut self, bound: u32, query: &Query<'a>, deadline: Deadline) -> Vec<String> {
        let Some((whole, true)) = query.props.last().copied() else {
            return Vec::new();
        };
        let parts = match whole {
            Prop::And(parts) => parts.as_slice(),
            other => std::slice::from_ref(other),
        };
        let mut list = Vec::new();
        for part in parts {
            let mut props = query.props.clone();
            props.pop();
            props.push((part, true));
            let alone = Query {
                props,
                ..query.clone()
            };
            if matches!(self.ask(bound, &alone, deadline).0, Reply::No) {
                list.push(condition::show(part, &self.test.program));
            }
        }
        list
    }

    /// What an allowed outcome lacks to be forbidden. `found` shows that it is allowed.
    pub(super) fn show_missing(
        &mut self,
        answer: &mut Answer,
        bound: u32,
        question: &BoundedQuestion,
        found: &Checked,
        deadline: Deadline,
    ) {
        if !self.explanations {
            return;
        }
        let Some(negate) = question.condition else {
            return;
        };
        let mut missing = Missing {
            edits: Vec::new(),
            under: None,
            breach: None,
            links: Vec::new(),
            none: None,
        };
        let forbidding = self.forbidding(negate, deadline);
        let simple = forbidding
            .as_ref()
            .is_ok_and(|changed| changed.needs.len() == 1);
        let reading = if simple {
            None
        } else {
            self.by_reading(negate, deadline)
        };
        match forbidding {
            _ if let Some((setting, found)) = reading => {
                let (name, value) = setting.words();
                let (under, needs) = (format!("{name}={value}"), found.needs);
                if needs.is_empty() {
                    missing.none = Some(format!(
                        "the reading `{under}` of the source forbids it as written"
                    ));
                }
                (missing.edits, missing.under) = (needs, Some(under));
            }
            Err(reason) => missing.none = Some(reason),
            Ok(changed) => {
                missing.edits = changed.needs;
                let added = &changed.version.added;
                let facts = self
                    .prepare(bound, deadline)
                    .expect("prepared before")
                    .facts
                    .clone();
                let judged = self.judged(&changed.version.test).expect("it was decided");
                let mut session = self.of(&judged, self.limits.timeout);
                let refuted = session.refuted(bound, question, &facts, added, found, deadline);
                if let Some((other, (execution, replayed), axiom)) = refuted {
                    let refuting = Refuting {
                        facts: &other,
                        execution: &execution,
                        replayed: &replayed,
                        axiom,
                    };
                    match explain::missing_links(&facts, added, &refuting) {
                        Ok((breach, links)) => {
                            (missing.breach, missing.links) = (Some(breach), links)
                        }
                        Err(law) => answer.defect = Some(law),
                    }
                }
            }
        }
        answer.explanation = Some(Box::new(Explanation {
            missing: Some(missing),
            ..Explanation::default()
        }));
    }

    /// The fewest changes that forbid an outcome. Where a reading is chosen, proxy fences of which
    /// that reading alone speaks are among them.
    ///
    /// # Errors
    /// Why there are none.
    pub(crate) fn forbidding(
        &self,
        negate: bool,
        deadline: Deadline,
    ) -> Result<Forbidding, String> {
        let found = forbidding(self, negate, deadline.0);
        fn count(found: &Forbidding) -> usize {
            found.needs.len()
        }
        if found.as_ref().is_ok_and(|found| count(found) == 1) {
            return found;
        }
        let chosen = self.chosen_readings().into_iter();
        let fences = chosen
            .filter_map(|setting| fence_forbidding(self, negate, setting, deadline.0))
            .find(|fences| count(fences) > 0);
        match (fences, found) {
            (Some(fences), Ok(found)) if count(&found) < count(&fences) => Ok(found),
            (Some(fences), _) => Ok(fences),
            (None, found) => found,
        }
    }

    /// Another reading of the source under which the program, perhaps with more proxy fences,
    /// forbids an outcome; and the fences.
    pub(crate) fn by_reading(
        &mut self,
        negate: bool,
        deadline: Deadline,
    ) -> Option<(Setting, Forbidding)> {
        self.other_readings().into_iter().find_map(|setting| {
            let found = fence_forbidding(self.under(setting), negate, setting, deadline.0)?;
            Some((setting, found))
        })
    }

    /// An execution of this session's program that has the outcome and breaks an axiom. The
    /// execution behind the changed program's answer comes first, then any.
    fn refuted(
        &mut self,
        bound: u32,
        question: &BoundedQuestion,
        before: &Facts<'_>,
        added: &Added,
        found: &Checked,
        deadline: Deadline,
    ) -> Option<(Rc<Facts<'a>>, Checked, usize)> {
        let facts = self.prepare(bound, deadline).ok()?.facts.clone();
        if let Some((execution, replayed, axiom)) =
            explain::carried_over(before, added, &facts, &found.0)
        {
            return Some((facts, (execution, replayed), axiom));
        }
        let mut wider = Session {
            thin_air: true,
            ..self.fresh()
        };
        let facts = wider.prepare(bound, deadline).ok()?.facts.clone();
        let query = wider.query(&facts, question);
        for axiom in 0..query.axioms.len() {
            if let Reply::Yes(found) = wider.without(axiom, bound, &query, deadline) {
                return Some((
                    facts.clone(),
                    explain::reordered(&facts, *found, axiom),
                    axiom,
                ));
            }
        }
        None
    }
}

/// The value that a store writes in an execution in which it executes once.
fn written(
    facts: &Facts<'_>,
    execution: &Execution,
    thread: ThreadId,
    instr: usize,
) -> Option<i64> {
    let mut all = (0..facts.sk.len()).filter(|&e| {
        let event = &facts.sk.events[e];
        event.thread == Some(thread) && event.instr == instr && event.is_write()
    });
    let (Some(e), None) = (all.next(), all.next()) else {
        return None;
    };
    if !execution.executed.has(e) {
        return None;
    }
    Eval::new(&facts.sk, &execution.known()).value(e)
}

/// Whether an execution takes a branch that leads over instructions: none of them executes.
fn taken(facts: &Facts<'_>, execution: &Execution, thread: ThreadId, instr: usize) -> Option<bool> {
    let code = &facts.sk.program.thread(thread).code;
    let between = instr + 1..code[instr].op.target()?;
    let events: Vec<usize> = (0..facts.sk.len())
        .filter(|&e| {
            facts.sk.events[e].thread == Some(thread) && between.contains(&facts.sk.events[e].instr)
        })
        .collect();
    (!events.is_empty()).then(|| !events.iter().any(|&e| execution.executed.has(e)))
}
