//! Reuses executions that answered a question about one version of a program, in another version.
//!
//! Versions differ in orders, scopes and fences. An execution that shows a program to be wrong
//! mostly shows it for a stronger one, too, as long as the stronger part is not involved. Checking
//! that takes no engine.
//!
//! # Invariants
//! - An execution counts only if replay in the other version accepts it, and it answers the
//!   question there.

use super::Session;
use super::{BoundedQuestion, signature};
use crate::explain::placed;
use cat::model::ir::TestEffect;
use cat::rel::{EventSet, Rel};
use engine::eval::Eval;
use engine::execution::Execution;
use engine::facts::Facts;
use engine::replay;
use program::{EventKind, ThreadId};

/// The number of ways to complete an execution that are tried.
const MOST: usize = 16;

/// An execution that answered a question.
pub(crate) struct Shown {
    question: BoundedQuestion,
    bound: u32,
    events: Vec<(Option<ThreadId>, EventKind)>,
    execution: Execution,
}

impl Shown {
    pub(super) fn new(
        question: &BoundedQuestion,
        bound: u32,
        facts: &Facts<'_>,
        execution: &Execution,
    ) -> Shown {
        let events = kinds(facts);
        Shown {
            question: question.clone(),
            bound,
            events,
            execution: execution.clone(),
        }
    }

    /// By event of the other version, the original event. Accesses and barriers are the same;
    /// fences are the same if they lie between the same accesses and barriers.
    fn pairing(&self, facts: &Facts<'_>) -> Option<Vec<Option<usize>>> {
        let new = kinds(facts);
        let mut paired = vec![None; new.len()];
        let mut threads: Vec<Option<ThreadId>> =
            new.iter().chain(&self.events).map(|e| e.0).collect();
        threads.sort_unstable();
        threads.dedup();
        for thread in threads {
            let of = |events: &[(Option<ThreadId>, EventKind)]| -> Vec<usize> {
                (0..events.len())
                    .filter(|&e| events[e].0 == thread)
                    .collect()
            };
            let (before, after) = (of(&self.events), of(&new));
            let mut old = before.into_iter().peekable();
            for e in after {
                let is_fence = new[e].1 == EventKind::Fence;
                // Fences that are gone.
                while !is_fence
                    && old
                        .next_if(|&i| self.events[i].1 == EventKind::Fence)
                        .is_some()
                {}
                let same = old.next_if(|&i| self.events[i].1 == new[e].1);
                if same.is_none() && !is_fence {
                    return None;
                }
                paired[e] = same;
            }
            if old.any(|i| self.events[i].1 != EventKind::Fence) {
                return None;
            }
        }
        Some(paired)
    }

    /// The execution in another version, completed in every way by orders that only that version
    /// has.
    fn carried(&self, facts: &Facts<'_>) -> Vec<Execution> {
        let from = &self.execution;
        let fits = from.choices.len() == facts.sk.pool.choice_count() as usize;
        let Some(paired) = self.pairing(facts).filter(|_| fits) else {
            return Vec::new();
        };
        let n = facts.sk.len();
        let mut place = vec![None; self.events.len()];
        paired
            .iter()
            .enumerate()
            .for_each(|(e, i)| i.iter().for_each(|&i| place[i] = Some(e)));
        let rel = |r: &Rel| {
            Rel::from_pairs(
                n,
                r.iter().filter_map(|(i, j)| Some((place[i]?, place[j]?))),
            )
        };
        let mut execution = Execution {
            executed: EventSet::empty(n),
            reads: paired
                .iter()
                .map(|i| i.and_then(|i| from.reads[i]))
                .collect(),
            choices: from.choices.clone(),
            free: from.free.iter().map(rel).collect(),
            finals: from
                .finals
                .iter()
                .filter_map(|&(cell, w)| Some((cell, place[w]?)))
                .collect(),
        };
        let known = execution.known();
        let mut eval = Eval::new(&facts.sk, &known);
        execution.executed =
            EventSet::from_fn(n, |e| eval.cond(facts.sk.event(e).guard) == Some(true));
        let mut ways = vec![execution];
        for (f, free) in facts.task.model.free.iter().enumerate() {
            let within = replay::declared(facts, &ways[0], free.within);
            ways.iter_mut()
                .for_each(|way| way.free[f] = way.free[f].clone().and(&within));
            let Some(covering) = free.covering else {
                continue;
            };
            let must = replay::declared(facts, &ways[0], covering);
            let executed: Vec<usize> = ways[0].executed.iter().collect();
            for x in executed {
                ways = ways
                    .iter()
                    .flat_map(|way| placed(way, f, x, &must, &within))
                    .take(MOST)
                    .collect();
                if ways.is_empty() {
                    return ways;
                }
            }
        }
        ways
    }
}

fn kinds(facts: &Facts<'_>) -> Vec<(Option<ThreadId>, EventKind)> {
    facts
        .sk
        .events
        .iter()
        .map(|event| (event.thread, event.kind))
        .collect()
}

impl Session<'_> {
    /// The execution behind the last positive answer.
    pub(crate) fn take_shown(&mut self) -> Option<Shown> {
        self.shown.take()
    }

    /// Whether an execution that answered a question about another version answers it here.
    pub(crate) fn still_shows(&mut self, shown: &Shown) -> bool {
        let open = self
            .flags(TestEffect::ImplementationDefined)
            .unwrap_or_default();
        let is_open = open
            .into_iter()
            .any(|flag| signature::may_raise(self.model, flag, &self.test.program));
        if is_open || self.test.program.host.is_some() {
            // One execution alone is no answer.
            return false;
        }
        let deadline = self.deadline();
        let Ok(facts) = self
            .prepare(shown.bound, deadline)
            .map(|prepared| prepared.facts.clone())
        else {
            return false;
        };
        let query = self.query(&facts, &shown.question);
        shown
            .carried(&facts)
            .iter()
            .any(|execution| replay::check(&facts, execution, &query).is_ok())
    }
}
