//! Lists every outcome of a test, one loop bound after the other.

use super::{BoundedQuestion, Session};
use cat::model::ir::TestEffect;
use engine::Engine;
use engine::computed::{computed, ends_in};
use engine::execution::Execution;
use engine::limits::{BoundTrial, Depth, Halt};
use engine::query::{Deadline, FinalState, Query};
use engine::skeleton::Cond;
use verdict::{Outcome, Outcomes};

/// The number of states whose executions are searched for values written on the way.
const LOOKED_AT: usize = 32;

impl Session<'_> {
    /// Every outcome: final values of what the test observes, for complete executions that satisfy
    /// its filter.
    pub fn outcomes(&mut self) -> Outcomes {
        let deadline = self.deadline();
        let start = Outcomes {
            complete: false,
            reason: None,
            outcomes: Vec::new(),
            engine: self.engine.name(),
            bound: None,
            defect: None,
            definedness: None,
        };
        let (limits, test) = (self.limits, self.test);
        match limits.deepen(test, &start, |bound, result| {
            self.outcomes_at(bound, deadline, result)
        }) {
            Depth::Told(result, bound) => Outcomes { bound, ..result },
            Depth::Open(result, reason) => Outcomes {
                reason: Some(reason),
                ..result
            },
            Depth::Halted(result, Halt::Undecided(reason)) => Outcomes {
                reason: Some(reason),
                ..result
            },
            Depth::Halted(result, Halt::Defect(law)) => Outcomes {
                defect: Some(law),
                ..result
            },
        }
    }

    /// Lists the outcomes at one loop bound.
    fn outcomes_at(
        &mut self,
        bound: u32,
        deadline: Deadline,
        result: &mut Outcomes,
    ) -> Result<BoundTrial, Halt> {
        let (race, engine) = (self.flags(TestEffect::Race), self.engine);
        let facts = self
            .prepare(bound, deadline)
            .map_err(Halt::Undecided)?
            .facts
            .clone();
        if facts.sk.cut != Cond::FALSE {
            result.bound = Some(bound);
        }
        let query = self.query(&facts, &BoundedQuestion::reachability(None));
        let ask = |session: &mut Self, q: &Query<'_>, result: &mut Outcomes| {
            let (states, halt, who) = session
                .prepare(bound, deadline)
                .expect("prepared before")
                .all_states(engine, q, deadline);
            match halt {
                None => result.engine = who,
                Some(Halt::Undecided(reason)) => result.reason = Some(reason),
                Some(law) => return Err(law),
            }
            Ok(states)
        };
        let allowed = ask(self, &query, result)?;
        let racy = match &race {
            Some(flags) => ask(
                self,
                &Query {
                    flags: Some(flags.clone()),
                    ..query.clone()
                },
                result,
            )?,
            None => Vec::new(),
        };
        // A value that is not in the allowed list is forbidden only if that list is complete.
        let forbidden = if result.reason.is_none() {
            let executions = self.of_each(&query, &allowed, bound, deadline);
            let computed = computed(&facts, &allowed, &executions);
            let props = query
                .props
                .iter()
                .copied()
                .chain([(&computed, true)])
                .collect();
            ask(
                self,
                &Query {
                    axioms: vec![false; query.axioms.len()],
                    props,
                    ..query
                },
                result,
            )?
        } else {
            Vec::new()
        };
        // Each list is sorted.
        let mut all: Vec<&FinalState> = allowed.iter().chain(&racy).chain(&forbidden).collect();
        all.sort();
        all.dedup();
        result.outcomes = all
            .iter()
            .zip(facts.name_states(all.iter().copied()))
            .map(|(s, state)| Outcome {
                state,
                allowed: allowed.binary_search(s).is_ok() || racy.binary_search(s).is_ok(),
                racy: racy.binary_search(s).is_ok(),
                race: None,
            })
            .collect();
        if result.reason.is_some() {
            return Ok(facts.tried(None));
        }
        let tried = self.closed(&facts, bound, deadline)?;
        if tried.open.is_none() {
            result.reason = self.left_open();
            result.complete = result.reason.is_none();
        }
        Ok(tried)
    }

    /// An execution for each of the first states, as far as they are found; the same for every
    /// engine.
    fn of_each(
        &mut self,
        query: &Query<'_>,
        states: &[FinalState],
        bound: u32,
        deadline: Deadline,
    ) -> Vec<Execution> {
        let facts = self
            .prepare(bound, deadline)
            .expect("prepared before")
            .facts
            .clone();
        let mut found = Vec::new();
        for state in states.iter().take(LOOKED_AT) {
            let ends = ends_in(&facts, state);
            let props = query.props.iter().copied().chain([(&ends, true)]).collect();
            let asked = Query {
                props,
                ..query.clone()
            };
            let (said, _) = self.prepare(bound, deadline).expect("prepared before").ask(
                Engine::Auto,
                &asked,
                deadline,
            );
            match said.found() {
                Ok(Some(execution)) => found.push(execution.0),
                _ => break,
            }
        }
        found
    }
}
