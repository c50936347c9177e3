//! Answers questions about one test under one model.
//!
//! # Invariants
//! - Smaller loop bounds come first. A negative answer requires that no consistent execution is cut
//!   at the bound, goes astray in memory, or needs a value out of thin air that no domain holds;
//!   else the answer is `undecided`.
//! - Every execution that an engine finds is replayed; one that fails is a defect, never an answer.

use std::borrow::Cow;
#[cfg(test)]
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use cat::model::ir::{Model, TestEffect};
use engine::engines::{Reply, TaskEngines};
use engine::liveness::{self, Stretch};
use engine::skeleton::{Cond, signature};
use engine::{Engine, Limits};
use front::mapping::Mapping;
use program::litmus::{LitmusTest, Prop};
use program::options::Setting;
use rustc_hash::FxHashMap;
use verdict::{Answer, FaultEvent, InstrPlace, Reason, Verdict};

mod answer;
mod decide;
mod definedness;
mod explaining;
mod outcomes;
mod races;
mod readings;
mod recalled;

pub(crate) use recalled::Shown;

/// Questions about one test under one model.
pub struct Session<'a> {
    test: &'a LitmusTest,
    /// The test as written, and the mapping, if a mapping made the judged test.
    source: Option<(&'a LitmusTest, &'static Mapping)>,
    model: &'a Model,
    engine: Engine,
    limits: Limits,
    set: Vec<Setting>,
    /// The parts of threads that never run in the executions in question, because they wait for a
    /// thread that does not end.
    left: &'a [Stretch],
    explain: bool,
    /// Whether answers about outcomes come with an explanation.
    explanations: bool,
    /// Whether answers about races list all racing pairs.
    all_races: bool,
    /// Whether executions are described with every relation that the model names.
    detail: bool,
    /// Whether values out of thin air are tried even if the model excludes them.
    thin_air: bool,
    /// Whether only verdicts count, and no answer lists its reads of unwritten memory.
    aside: bool,
    prepared: BTreeMap<u32, Result<TaskEngines<'a>, Reason>>,
    /// The same test and model under other settings, by the setting that differs.
    others: FxHashMap<Setting, Session<'a>>,
    /// The answer about undefined behaviour, once decided.
    undefined: Option<Answer>,
    /// The choices that implementations settle, once looked for.
    left_open: Option<Option<Reason>>,
    /// The execution behind the last positive answer.
    shown: Option<Shown>,
    /// The programs that explanations spoke of, and whether each forbids the outcome.
    #[cfg(test)]
    claims: RefCell<Vec<(LitmusTest, bool)>>,
}

/// One question, before bounds and engines.
#[derive(Clone, Debug)]
struct BoundedQuestion {
    /// Reachability: whether the question is about the violation of the condition.
    condition: Option<bool>,
    complete: bool,
    flags: Option<Vec<usize>>,
    /// Pairs of accesses by two threads are passed over: they are races.
    but_races: bool,
    positive: Verdict,
    negative: Verdict,
}

impl BoundedQuestion {
    /// Is there a complete execution, one that satisfies or violates the condition?
    fn reachability(condition: Option<bool>) -> BoundedQuestion {
        let (positive, negative) = (Verdict::Allowed, Verdict::Forbidden);
        BoundedQuestion {
            condition,
            complete: true,
            flags: None,
            but_races: false,
            positive,
            negative,
        }
    }

    /// Does one of these flags mark some execution, as a race?
    fn race(flags: Vec<usize>) -> BoundedQuestion {
        let (positive, negative) = (Verdict::Racy, Verdict::RaceFree);
        BoundedQuestion {
            condition: None,
            complete: false,
            flags: Some(flags),
            but_races: false,
            positive,
            negative,
        }
    }

    /// Does one of these flags mark some execution, as undefined?
    fn undefined(flags: Vec<usize>) -> BoundedQuestion {
        BoundedQuestion {
            positive: Verdict::Undefined,
            negative: Verdict::Defined,
            ..BoundedQuestion::race(flags)
        }
    }
}

impl<'a> Session<'a> {
    /// Prepares nothing yet; every failure appears as an `undecided` answer. `set` overrides
    /// options of the test and of the model.
    pub fn new(
        test: &'a LitmusTest,
        model: &'a Model,
        engine: Engine,
        limits: Limits,
        set: &[Setting],
    ) -> Self {
        Session {
            test,
            source: None,
            model,
            engine,
            limits,
            set: set.to_vec(),
            left: &[],
            explain: false,
            explanations: false,
            all_races: false,
            detail: false,
            thin_air: false,
            aside: false,
            prepared: BTreeMap::new(),
            others: FxHashMap::default(),
            undefined: None,
            left_open: None,
            shown: None,
            #[cfg(test)]
            claims: RefCell::default(),
        }
    }

    /// Gives the next question so much time.
    pub fn limit(&mut self, timeout: Option<Duration>) {
        self.limits.timeout = timeout;
    }

    /// The same session with nothing prepared.
    fn fresh(&self) -> Self {
        let fresh = Session::new(self.test, self.model, self.engine, self.limits, &self.set);
        Session {
            detail: self.detail,
            source: self.source,
            left: self.left,
            ..fresh
        }
    }

    /// States that a mapping made the test from another one, which takes the changes.
    pub fn via(mut self, source: &'a LitmusTest, mapping: &'static Mapping) -> Self {
        self.source = Some((source, mapping));
        self
    }

    /// The test as written.
    pub(crate) fn written(&self) -> &'a LitmusTest {
        self.source.map_or(self.test, |source| source.0)
    }

    /// The test that is judged for a written one; `None` if the mapping has no words for it.
    pub(crate) fn judged<'t>(&self, test: &'t LitmusTest) -> Option<Cow<'t, LitmusTest>> {
        match self.source {
            None => Some(Cow::Borrowed(test)),
            Some((_, mapping)) => mapping.lowered(test).ok().map(Cow::Owned),
        }
    }

    /// The test of the questions.
    pub(super) fn test(&self) -> &'a LitmusTest {
        self.test
    }

    /// Negative answers name a minimal set of axioms; this costs a few more questions.
    pub fn explaining(mut self) -> Self {
        self.explain = true;
        self
    }

    /// Answers about races list [all racing pairs](verdict::RacingPairs); each pair costs a
    /// question.
    pub fn with_all_races(mut self) -> Self {
        self.all_races = true;
        self
    }

    /// Executions come with every relation that the model names:
    /// [`Witness::derived`](verdict::Witness).
    pub fn detailed(mut self) -> Self {
        self.detail = true;
        self
    }

    /// Can `prop` hold (`negate`: fail) in a consistent, complete execution that satisfies the
    /// test's filter? Without `prop` the question is about the test's own condition. If the test
    /// has none, any complete execution will do.
    pub fn reachability(&mut self, prop: Option<&Prop>, negate: bool) -> Answer {
        if let Some(p) = prop
            && self.test.condition.as_ref() != Some(p)
        {
            // Another proposition observes other registers, so the test is prepared anew.
            let other = |test: &LitmusTest| LitmusTest {
                condition: Some(p.clone()),
                ..test.clone()
            };
            let (test, source) = (
                other(self.test),
                self.source.map(|(source, by)| (other(source), by)),
            );
            let mut session = Session::new(&test, self.model, self.engine, self.limits, &self.set);
            session.source = source.as_ref().map(|(source, by)| (source, *by));
            (session.explain, session.explanations) = (self.explain, self.explanations);
            session.detail = self.detail;
            return session.reachability(None, negate);
        }
        let answer = self.answer(&BoundedQuestion::reachability(Some(negate)));
        self.for_all_implementations(answer)
    }

    /// Whether an outcome is forbidden only because no execution that passes the filter runs to its
    /// end; `false` if that is undecided.
    pub fn is_vacuous(&mut self, answer: &Answer) -> bool {
        if answer.verdict != Verdict::Forbidden {
            return false;
        }
        let bound = answer
            .bound
            .unwrap_or_else(|| self.limits.bounds(self.test)[0]);
        let deadline = self.deadline();
        let Ok(prepared) = self.prepare(bound, deadline) else {
            return false;
        };
        let facts = prepared.facts.clone();
        let may_be = facts.sk.complete != Cond::TRUE || self.test.filter.is_some();
        // Without observables, this was the question.
        if !may_be || facts.observed.is_empty() {
            return false;
        }
        let query = self.query(&facts, &BoundedQuestion::reachability(None));
        matches!(self.ask(bound, &query, deadline).0, Reply::No)
    }

    /// Does some consistent execution race? `None` if the model has no race flag.
    pub fn race(&mut self) -> Option<Answer> {
        let flags = self.flags(TestEffect::Race)?;
        let answer = self.marked(BoundedQuestion::race(flags));
        Some(self.for_all_implementations(answer))
    }

    /// The answer for a program with no construct that the model can call undefined. `None` for
    /// other programs, or if the model knows no undefined behaviour.
    pub fn never_undefined(&self) -> Option<Answer> {
        let flags = self.flags(TestEffect::Undefined)?;
        let may = flags
            .into_iter()
            .any(|flag| signature::may_raise(self.model, flag, &self.test.program));
        (!may).then(|| Answer::new(Verdict::Defined, self.engine.name()))
    }

    /// Does some consistent execution raise a flag other than the race flag? `None` if the model
    /// has no flag that can apply to such a program.
    pub fn undefined(&mut self) -> Option<Answer> {
        let flags = self
            .flags(TestEffect::Undefined)
            .filter(|_| self.never_undefined().is_none())?;
        // A question that names its axioms is asked anew.
        let known = self
            .undefined
            .as_ref()
            .filter(|a| !self.explain || a.verdict == Verdict::Undefined);
        if let Some(known) = known {
            return Some(known.clone());
        }
        let answer = self.marked(BoundedQuestion::undefined(flags));
        let answer = self.for_all_implementations(answer);
        if answer.verdict.reason().is_none() {
            self.undefined = Some(answer.clone());
        }
        Some(answer)
    }

    /// As [`Session::undefined`], of anything but races: barriers that some threads miss, objects
    /// that are used out of turn.
    pub fn misuse(&mut self) -> Option<Answer> {
        let flags = self
            .flags(TestEffect::Undefined)
            .filter(|_| self.never_undefined().is_none())?;
        let question = BoundedQuestion {
            but_races: true,
            ..BoundedQuestion::undefined(flags)
        };
        let answer = self.marked(question);
        Some(self.for_all_implementations(answer))
    }

    /// Does some consistent execution use memory, a stream or an event after its end? `None` if the
    /// model has no such flag.
    pub fn lifetime(&mut self) -> Option<Answer> {
        let flags = self.flags(TestEffect::Lifetime)?;
        let program = &self.test.program;
        let may = flags
            .iter()
            .any(|flag| signature::may_raise(self.model, *flag, program));
        if !may {
            return Some(Answer::new(Verdict::Proper, self.engine.name()));
        }
        let question = BoundedQuestion {
            positive: Verdict::Misused,
            negative: Verdict::Proper,
            ..BoundedQuestion::race(flags)
        };
        let answer = self.marked(question);
        Some(self.for_all_implementations(answer))
    }

    /// Asks for executions that a flag marks. In a host program, a command runs only after others
    /// have ended. If only executions in which some thread never ends show the flag, the question
    /// goes to the part of the program that runs without that thread's end.
    fn marked(&mut self, question: BoundedQuestion) -> Answer {
        let program = &self.test.program;
        if program.host.is_none() {
            return self.answer(&question);
        }
        let ended = self.answer(&BoundedQuestion {
            complete: true,
            ..question.clone()
        });
        if ended.verdict == question.positive
            || ended.defect.is_some()
            || ended.verdict == Verdict::Undecided(Reason::Time)
        {
            return ended;
        }
        let decided = ended.verdict == question.negative;
        let answer = if decided {
            self.answer(&question)
        } else {
            ended.clone()
        };
        if answer.verdict == question.negative {
            let stuck = program::host::LaunchOrders::of(program).is_ok_and(|l| l.stuck.is_some());
            let why = "in some order of calls, a wait never ends";
            return if stuck {
                answer.undecided(Reason::Deadlock(why.into()))
            } else {
                answer
            };
        }
        self.shown = None;
        match self.of_parts(&question) {
            Some(answer) if decided || answer.verdict.reason().is_none() => answer,
            None if answer.verdict == question.positive => Answer {
                witness: None,
                fault: None,
                ..answer
            }
            .undecided(Reason::Unended),
            _ => answer,
        }
    }

    /// The answer by the part of the program that can run without the rest; `None` if that is not
    /// known.
    fn of_parts(&mut self, question: &BoundedQuestion) -> Option<Answer> {
        let deadline = self.deadline();
        let mut all: Option<Answer> = None;
        for part in liveness::parts(&self.test.program)? {
            let test = LitmusTest {
                program: part.program,
                ..self.test.clone()
            };
            let left = deadline.left_ms().map(Duration::from_millis);
            let mut session = Session {
                explain: self.explain,
                detail: self.detail,
                left: &part.left,
                ..Session::new(
                    &test,
                    self.model,
                    self.engine,
                    Limits {
                        timeout: left,
                        ..self.limits
                    },
                    &self.set,
                )
            };
            let answer = session.answer(question);
            if answer.verdict == question.positive || answer.defect.is_some() {
                return Some(answer);
            }
            all = Some(match all {
                None => answer,
                Some(all) if all.verdict.reason().is_some() => all,
                Some(_) if answer.verdict.reason().is_some() => answer,
                Some(mut all) => {
                    all.bound = all.bound.max(answer.bound);
                    all.events = all.events.max(answer.events);
                    let named =
                        |name: &String| all.axioms.contains(name) || answer.axioms.contains(name);
                    all.axioms = self
                        .model
                        .axioms
                        .iter()
                        .map(|a| a.name.clone())
                        .filter(named)
                        .collect();
                    all
                }
            });
        }
        all
    }

    /// The flags with that effect; `None` if there are none.
    fn flags(&self, effect: TestEffect) -> Option<Vec<usize>> {
        let flags: Vec<usize> = (0..self.model.flags.len())
            .filter(|&i| self.model.flags[i].effect == effect)
            .collect();
        (!flags.is_empty()).then_some(flags)
    }

    /// The answer, unless implementations differ in it. If the program is undefined although every
    /// choice of the implementation goes well, it is undefined everywhere.
    fn for_all_implementations(&mut self, mut answer: Answer) -> Answer {
        let everywhere = matches!(
            answer.verdict,
            Verdict::Racy | Verdict::Undefined | Verdict::Misused | Verdict::Undecided(_)
        );
        if !everywhere
            && let Some(reason) = self.left_open()
            && !self.is_undefined_everywhere(&answer)
        {
            answer = Answer {
                axioms: Vec::new(),
                witness: None,
                ..answer.undecided(reason)
            };
        }
        answer
    }

    /// A program that is undefined under every implementation has the outcomes that the model
    /// gives: the answer says so.
    fn is_undefined_everywhere(&mut self, answer: &Answer) -> bool {
        matches!(answer.verdict, Verdict::Allowed | Verdict::Forbidden)
            && self
                .undefined()
                .is_some_and(|answer| answer.verdict == Verdict::Undefined)
    }

    /// The choice that the model leaves to implementations in some execution, in words.
    fn left_open(&mut self) -> Option<Reason> {
        if let Some(known) = &self.left_open {
            return known.clone();
        }
        let flags = self.flags(TestEffect::ImplementationDefined);
        let explain = std::mem::replace(&mut self.explain, false);
        let found = flags.into_iter().flatten().find_map(|flag| {
            let doc = diag::one_line(&self.model.flags[flag].doc);
            let answer = self.marked(BoundedQuestion::undefined(vec![flag]));
            answer.fault.map(|fault| {
                let at = fault
                    .events
                    .into_iter()
                    .map(|FaultEvent { event, .. }| InstrPlace {
                        text: event.text,
                        thread: event.thread_name,
                        line: event.line,
                    });
                Reason::ImplementationDefined {
                    at: at.collect(),
                    what: doc.trim_end_matches('.').to_owned(),
                }
            })
        });
        self.explain = explain;
        self.left_open = Some(found.clone());
        found
    }
}
