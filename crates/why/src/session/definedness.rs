//! Side questions: whether the program is defined at all, and which change makes it so.

use std::time::Duration;

use super::{BoundedQuestion, Session};
use crate::knobs::Version;
use crate::remedy::{Repair, remedy};
use cat::model::ir::TestEffect;
use engine::query::Deadline;
use engine::{Engine, Limits, Liveness, ProgressModel, liveness};
use program::litmus::{LitmusTest, Prop};
use verdict::{Definedness, Fault, Reason, Remedy, Verdict};

impl<'a> Session<'a> {
    /// Whether the program is defined at all; an answer about one of its outcomes assumes this.
    /// `None` if the model knows no undefined behaviour, or none that applies to such programs.
    /// Takes no longer than `timeout`. A session that explains also names changes that make a racy
    /// program race-free.
    ///
    /// # Errors
    /// A broken law, as in [`Answer::defect`](verdict::Answer::defect).
    pub fn definedness(
        &mut self,
        timeout: Option<Duration>,
    ) -> Option<Result<Definedness, String>> {
        self.flags(TestEffect::Undefined)
            .filter(|_| self.never_undefined().is_none())?;
        if timeout.is_some_and(|t| t.is_zero()) {
            return Some(Ok(Definedness::Undecided(Reason::Time)));
        }
        let (limits, explain) = (self.limits, self.explain);
        (self.limits.timeout, self.explain) = (timeout, false);
        let deadline = self.deadline();
        let answer = self.undefined();
        let definedness =
            answer.map(
                |answer| match (answer.verdict, answer.fault, answer.defect) {
                    (_, _, Some(law)) => Err(law),
                    (Verdict::Defined, ..) => Ok(Definedness::Defined),
                    (Verdict::Undefined, Some(mut fault), _) => {
                        if explain && fault.race {
                            fault.remedy =
                                self.remedied(&fault, deadline).map(|(remedy, _)| remedy);
                        }
                        Ok(Definedness::Undefined(fault))
                    }
                    (Verdict::Undecided(reason), ..) => Ok(Definedness::Undecided(reason)),
                    (verdict, ..) => Err(format!(
                        "`{}` is not an answer about undefined behaviour",
                        verdict.word()
                    )),
                },
            );
        (self.limits, self.explain) = (limits, explain);
        definedness
    }

    /// A race in an execution that satisfies `prop`, if there is one.
    pub fn race_with(&mut self, prop: &Prop) -> Option<Box<Fault>> {
        let flags = self.flags(TestEffect::Race)?;
        let test = LitmusTest {
            condition: Some(prop.clone()),
            ..self.test.clone()
        };
        let mut session = Session::new(&test, self.model, self.engine, self.limits, &self.set);
        session
            .answer(&BoundedQuestion {
                condition: Some(false),
                complete: true,
                ..BoundedQuestion::race(flags)
            })
            .fault
    }

    /// A session about another test, with the remaining time. Where all engines answer here, one is
    /// enough there.
    pub(crate) fn of<'t>(&self, test: &'t LitmusTest, timeout: Option<Duration>) -> Session<'t>
    where
        'a: 't,
    {
        let engine = if self.engine == Engine::Both {
            Engine::Auto
        } else {
            self.engine
        };
        let limits = Limits {
            timeout,
            ..self.limits
        };
        Session {
            aside: true,
            ..Session::new(test, self.model, engine, limits, &self.set)
        }
    }

    /// Whether a test hangs although every thread runs, as far as that is decided.
    pub(crate) fn hangs(&self, test: &LitmusTest, timeout: Option<Duration>) -> bool {
        let setting = liveness::LivenessTask::new(test, self.model);
        let engine = if self.engine == Engine::Both {
            Engine::Auto
        } else {
            self.engine
        };
        let limits = Limits {
            timeout,
            ..self.limits
        };
        let answer = Liveness::new(&setting, engine, limits, &self.set)
            .aside()
            .ask(ProgressModel::Fair);
        answer.verdict == Verdict::Hangs
    }

    /// A change that makes the program race-free, and the changed test; not for PTX unless wanted.
    pub(crate) fn remedied(
        &mut self,
        fault: &Fault,
        deadline: Deadline,
    ) -> Option<(Remedy, Option<Version>)> {
        let repairable = self.test.program.dialect.row().repairable;
        let Repair {
            remedy, version, ..
        } = repairable
            .then(|| self.repaired(fault, deadline))
            .flatten()?;
        Some((remedy, version))
    }

    /// A change that makes the program race-free, and the changed test with its changes.
    pub(crate) fn repaired(&mut self, fault: &Fault, deadline: Deadline) -> Option<Repair> {
        let facts = self
            .prepare(self.limits.bounds(self.test)[0], deadline)
            .ok()?
            .facts
            .clone();
        remedy(self, &facts, fault, deadline.0)
    }

    /// A change that makes the program race-free; `fault` is one of its races.
    pub fn remedy(&mut self, fault: &Fault) -> Option<Remedy> {
        let deadline = self.deadline();
        self.repaired(fault, deadline).map(|repair| repair.remedy)
    }
}
