//! Puts one question to the engines, at rising loop bounds.
//!
//! # Invariants
//! - A negative answer at a bound holds only if no consistent execution is cut there, goes astray
//!   in memory, or needs values that no domain holds ([`Session::closed`]).

use std::time::Instant;

use super::races::Races;
use super::{BoundedQuestion, Session, Shown};
use cat::model::ir::TestEffect;
use cat::rel::Rel;
use engine::engines::{Reply, TaskEngines};
use engine::facts::Facts;
use engine::limits::{BoundTrial, Halt};
use engine::query::{Deadline, Query};
use engine::skeleton::Cond;
use engine::task::Task;
use engine::{fault, witness};
use program::Tag;
use verdict::{Answer, Explanation, Reason, Verdict};

impl<'a> Session<'a> {
    pub(super) fn deadline(&self) -> Deadline {
        Deadline(self.limits.timeout.map(|t| Instant::now() + t))
    }

    pub(super) fn prepare(
        &mut self,
        bound: u32,
        deadline: Deadline,
    ) -> Result<&mut TaskEngines<'a>, Reason> {
        let task = Task {
            thin_air: self.thin_air,
            detail: self.detail,
            ..Task::new(self.test, self.model, &self.set, bound)
        };
        let (left, aside) = (self.left, self.aside);
        // Time is per question: one question may succeed where another ran out of time.
        if matches!(self.prepared.get(&bound), Some(Err(Reason::Time))) {
            self.prepared.remove(&bound);
        }
        self.prepared
            .entry(bound)
            .or_insert_with(|| {
                let facts = Facts::of(&task, deadline.0)?.leaving(left);
                match aside && facts.rivals.is_none() {
                    true => TaskEngines::suspecting(facts, deadline),
                    false => TaskEngines::settled(facts, deadline),
                }
            })
            .as_mut()
            .map_err(|reason| reason.clone())
    }

    pub(super) fn answer(&mut self, question: &BoundedQuestion) -> Answer {
        let (deadline, limits) = (self.deadline(), self.limits);
        let answer = Answer::new(question.negative.clone(), self.engine.name());
        limits.answer(self.test, &answer, |bound, answer| {
            self.at(bound, question, deadline, answer)
        })
    }

    /// Asks at one loop bound.
    fn at(
        &mut self,
        bound: u32,
        question: &BoundedQuestion,
        deadline: Deadline,
        answer: &mut Answer,
    ) -> Result<BoundTrial, Halt> {
        let facts = self
            .prepare(bound, deadline)
            .map_err(Halt::Undecided)?
            .facts
            .clone();
        answer.events = Some(facts.sk.len());
        if !self.aside {
            answer.unwritten = facts.reads_of_nothing_written();
        }
        if facts.sk.cut != Cond::FALSE {
            answer.bound = Some(bound);
        }
        let query = self.query(&facts, question);
        let of_race = question.positive == Verdict::Racy;
        let mut races = Races::of(&query);
        let (found, engine) = match of_race {
            true => self.race_between(&facts, bound, &mut races, deadline)?,
            false => {
                let (said, engine) = self.ask(bound, &query, deadline);
                (said.found()?, engine)
            }
        };
        answer.engine = engine;
        if let Some(found) = found {
            self.shown = Some(Shown::new(question, bound, &facts, &found.0));
            answer.verdict = question.positive.clone();
            answer.witness = Some(witness::describe(&facts, &found.0, &found.1));
            answer.fault = question.flags.as_ref().and_then(|flags| {
                let means = self.flags(TestEffect::Race).unwrap_or_default();
                let spared = if of_race {
                    races.spared()
                } else {
                    query.spared.as_ref()
                };
                fault::describe(&facts, &found.0, &found.1, flags, &means, spared).map(Box::new)
            });
            if of_race && self.all_races {
                answer.races = Some(Box::new(self.all_races(&facts, bound, races, deadline)?));
            }
            self.show_missing(answer, bound, question, &found, deadline);
            return Ok(facts.tried(None));
        }
        let tried = self.closed(&facts, bound, deadline)?;
        if tried.open.is_none() {
            self.name_axioms(
                answer,
                bound,
                if of_race { races.query() } else { &query },
                deadline,
            );
        }
        Ok(tried)
    }

    /// Whether the executions at a bound are all there are; if not, a larger bound may say more.
    pub(super) fn closed(
        &mut self,
        facts: &Facts<'a>,
        bound: u32,
        deadline: Deadline,
    ) -> Result<BoundTrial, Halt> {
        if facts.open_values {
            return Err(Halt::Undecided(Reason::ThinAir));
        }
        let mut query = Query {
            complete: false,
            require: facts.fault,
            no_fault: false,
            ..Query::complete(facts.task.model)
        };
        if facts.fault != Cond::FALSE
            && let Some(found) = self.ask(bound, &query, deadline).0.found()?
            // A larger bound may bring a partner that a thread does not meet yet.
            && (facts.sk.unmet.is_empty() || !witness::is_cut(facts, &found.0))
        {
            return Err(Halt::Undecided(witness::astray(facts, &found.0)));
        }
        if facts.sk.cut == Cond::FALSE {
            return Ok(facts.tried(None));
        }
        query.require = facts.sk.cut;
        if self.ask(bound, &query, deadline).0.found()?.is_none() {
            return Ok(facts.tried(None));
        }
        // The first of the loops with which a thread can go on: every engine names this one.
        let mut first = facts.sk.cuts.len() - 1;
        for (i, cut) in facts.sk.cuts.iter().enumerate() {
            query.require = cut.0;
            if self.ask(bound, &query, deadline).0.found()?.is_some() {
                first = i;
                break;
            }
        }
        Ok(facts.tried(Some(first)))
    }

    pub(super) fn query(&self, facts: &Facts<'a>, question: &BoundedQuestion) -> Query<'a> {
        let mut props = Vec::new();
        if let Some(filter) = &self.test.filter {
            props.push((filter, true));
        }
        if let (Some(negate), Some(condition)) = (question.condition, &self.test.condition) {
            props.push((condition, !negate));
        }
        // Uses after an end in a host program have a question of their own.
        let has_host = facts.sk.program.host.is_some();
        let two_accesses = |i: usize, j: usize| {
            let (a, b) = (&facts.sk.events[i], &facts.sk.events[j]);
            let accesses = a.thread != b.thread && a.kind.accesses() && b.kind.accesses();
            accesses || has_host && (a.tags.has(Tag::Ends) || b.tags.has(Tag::Ends))
        };
        let spared = question
            .but_races
            .then(|| Rel::from_fn(facts.sk.len(), two_accesses));
        Query {
            complete: question.complete,
            spared,
            props,
            flags: question.flags.clone(),
            no_fault: facts.fault != Cond::FALSE,
            require: facts.started,
            ..Query::complete(facts.task.model)
        }
    }

    /// Puts a query to the engine or engines at a bound that was prepared before.
    pub(super) fn ask(
        &mut self,
        bound: u32,
        query: &Query<'a>,
        deadline: Deadline,
    ) -> (Reply, &'static str) {
        let engine = self.engine;
        self.prepare(bound, deadline)
            .expect("prepared before")
            .ask(engine, query, deadline)
    }

    /// Finds a minimal set of axioms that together exclude every execution. It tries them in the
    /// order of the model, so the set does not depend on the engine.
    fn name_axioms(
        &mut self,
        answer: &mut Answer,
        bound: u32,
        query: &Query<'a>,
        deadline: Deadline,
    ) {
        if !self.explain {
            return;
        }
        let explanations = self.explanations && answer.verdict == Verdict::Forbidden;
        let mut query = query.clone();
        // Without the axiom that excludes them, values out of thin air count.
        let mut wider = Session {
            thin_air: true,
            ..self.fresh()
        };
        if let Some(why) = self.axioms_decide(&mut wider, bound, deadline) {
            if explanations {
                answer.explanation = Some(Box::new(Explanation {
                    given_up: Some(why),
                    ..Explanation::default()
                }));
            }
            return;
        }
        let asker = match wider.prepare(bound, deadline) {
            Ok(prepared) => {
                query.no_fault |= prepared.facts.fault != Cond::FALSE;
                &mut wider
            }
            Err(_) => &mut *self,
        };
        for i in 0..query.axioms.len() {
            query.axioms[i] = false;
            if !matches!(asker.ask(bound, &query, deadline).0, Reply::No) {
                query.axioms[i] = true;
            }
        }
        if explanations {
            asker.show_breaches(answer, bound, &query, deadline);
            #[cfg(test)]
            {
                let claims = asker.claims.take();
                self.claim(claims);
            }
        }
        answer.axioms = (0..query.axioms.len())
            .filter(|&i| query.axioms[i])
            .map(|i| self.model.axioms[i].name.clone())
            .collect();
    }

    /// Why no query can leave an axiom out: the facts of this task or of the wider one rest on the
    /// axioms.
    fn axioms_decide(
        &mut self,
        wider: &mut Session<'_>,
        bound: u32,
        deadline: Deadline,
    ) -> Option<Reason> {
        let narrow = self.prepare(bound, deadline).ok()?.facts.clone();
        if narrow.unlisted.is_some() {
            return narrow.unlisted.clone();
        }
        match wider.prepare(bound, deadline) {
            Ok(prepared) => prepared.facts.unlisted.clone(),
            Err(why) => narrow.is_narrowed().then_some(why),
        }
    }
}
