//! Every outcome of a test, one loop bound after the other.

use super::{Question, Session};
use cat::model::ir::Effect;
use engine::limits::{Depth, Halt, Tried};
use engine::query::{Deadline, FinalState, Query};
use engine::skeleton::Cond;
use verdict::{Outcome, Outcomes};

impl Session<'_> {
    /// Every outcome: final values of what the test observes, for complete executions that satisfy its filter.
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
        match limits.deepen(test, &start, |bound, result| self.outcomes_at(bound, deadline, result)) {
            Depth::Told(result, bound) => Outcomes { bound, ..result },
            Depth::Open(result, reason) => Outcomes { reason: Some(reason), ..result },
            Depth::Halted(result, Halt::Undecided(reason)) => Outcomes { reason: Some(reason), ..result },
            Depth::Halted(result, Halt::Defect(law)) => Outcomes { defect: Some(law), ..result },
        }
    }

    /// Lists the outcomes at one loop bound.
    fn outcomes_at(&mut self, bound: u32, deadline: Deadline, result: &mut Outcomes) -> Result<Tried, Halt> {
        let (race, engine) = (self.flags(Effect::Race), self.engine);
        let task = self.prepare(bound, deadline).map_err(Halt::Undecided)?.task.clone();
        if task.sk.cut != Cond::FALSE {
            result.bound = Some(bound);
        }
        let mut query = self.query(&task, &Question::reachability(None));
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
                (states, Some(Halt::Undecided(reason)), _) => {
                    result.reason = Some(reason);
                    lists.push(states);
                }
                (_, Some(law), _) => return Err(law),
            }
        }
        let allowed = &lists[0];
        let racy: &[FinalState] = if race.is_some() { &lists[1] } else { &[] };
        // Each of them is sorted.
        let mut all: Vec<&FinalState> = lists.iter().flatten().collect();
        all.sort();
        all.dedup();
        result.outcomes = all
            .iter()
            .zip(task.name_states(all.iter().copied()))
            .map(|(s, state)| Outcome {
                state,
                allowed: allowed.binary_search(s).is_ok(),
                racy: racy.binary_search(s).is_ok(),
                race: None,
            })
            .collect();
        if result.reason.is_some() {
            return Ok(task.tried(None));
        }
        let tried = self.closed(&task, bound, deadline)?;
        if tried.open.is_none() {
            result.reason = self.left_open();
            result.complete = result.reason.is_none();
        }
        Ok(tried)
    }
}
