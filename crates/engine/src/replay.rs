//! Checks a complete candidate execution from scratch, with a plain evaluator.
//!
//! # Invariants
//! - It reads only the skeleton, the model and the execution. It shares no search, no bounds and no
//!   circuit with the engines, so it can judge their witnesses.
//!
//! # Sources
//! - An independent checker behind the search: regalloc2's `checker`, egg's proof checking.

use super::eval::{self, Assignment, Eval};
use super::execution::Execution;
use super::facts::Facts;
use super::query::{FinalState, Query};
use crate::skeleton::Cond;
use crate::skeleton::base::Base;
use cat::algebra::bits::Bits;
use cat::algebra::{Leaves, Value, Values, interpret_all, needed};
use cat::model::ir::{FreeId, FreeShape, Kind, NodeId, Test};
use cat::model::signature::BaseId;
use cat::rel::{EventSet, Rel};
use program::litmus::Observable;

/// The result of replaying an execution.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Values of all nodes of the model.
    pub values: Values<Bits>,
    /// Names of the axioms that reject it.
    pub rejected_by: Vec<usize>,
    /// Flags that it raises.
    pub flags: Vec<bool>,
    /// Whether every thread runs to its end.
    pub complete: bool,
    /// Final values of the task's observables.
    pub state: FinalState,
}

impl Replay {
    /// Whether a flag is raised by pairs outside `spared`.
    pub(crate) fn is_raised(&self, facts: &Facts<'_>, flag: usize, spared: Option<&Rel>) -> bool {
        let tested = &facts.task.model.flags[flag];
        match (self.values[tested.node.index()].as_deref(), spared) {
            (Some(Value::Rel(rel)), Some(spared)) if tested.test == Test::Empty => {
                rel.is_subset(spared) != tested.negated
            }
            _ => self.flags[flag],
        }
    }
}

/// Leaves of one candidate.
struct CandidateLeaves<'a> {
    facts: &'a Facts<'a>,
    execution: &'a Execution,
    known: &'a Assignment,
}

impl Leaves<Bits> for CandidateLeaves<'_> {
    fn base(&self, id: BaseId, _: Kind) -> Value<EventSet, Rel> {
        let executed = &self.execution.executed;
        match self.facts.base(id) {
            Base::Set(s) => Value::Set(s.clone().and(executed)),
            Base::Rel(r) => {
                let mut rel = r.fixed.clone();
                let mut eval = Eval::new(&self.facts.sk, self.known);
                for &(i, j, cond) in &r.open {
                    if executed.has(i) && executed.has(j) && eval.cond(cond) == Some(true) {
                        rel.insert(i, j);
                    }
                }
                Value::Rel(rel.restricted(executed))
            }
        }
    }

    fn free(&self, id: FreeId) -> Rel {
        self.execution.free[id.0 as usize].clone()
    }
}

impl CandidateLeaves<'_> {
    /// The values of the chosen nodes, which include all their operands.
    fn values(&self, nodes: &[bool]) -> Values<Bits> {
        let algebra = Bits {
            executed: self.execution.executed.clone(),
        };
        interpret_all(self.facts.task.model, &algebra, self, nodes)
    }

    fn all(&self) -> Values<Bits> {
        self.values(&vec![true; self.facts.task.model.nodes.len()])
    }
}

/// The value in an execution of a bound in a declaration, which does not depend on the free
/// relations.
pub fn declared(facts: &Facts<'_>, execution: &Execution, node: NodeId) -> Rel {
    let candidate = CandidateLeaves {
        facts,
        execution,
        known: &execution.known(),
    };
    let values = candidate.values(&needed(facts.task.model, [node]));
    values[node.index()]
        .as_deref()
        .expect("it was asked for")
        .rel()
        .clone()
}

/// The values of all nodes under an assignment that may be no candidate execution: it checks no
/// law.
pub fn evaluate(facts: &Facts<'_>, execution: &Execution) -> Values<Bits> {
    CandidateLeaves {
        facts,
        execution,
        known: &execution.known(),
    }
    .all()
}

/// Replays an execution.
///
/// # Errors
/// The law that it breaks, if it is not a candidate execution. (Axioms are not laws: see
/// [`Replay::rejected_by`].)
pub fn replay(facts: &Facts<'_>, execution: &Execution) -> Result<Replay, String> {
    replay_known(facts, execution, &execution.known())
}

fn replay_known(
    facts: &Facts<'_>,
    execution: &Execution,
    known: &Assignment,
) -> Result<Replay, String> {
    let sk = &facts.sk;
    let mut eval = Eval::new(sk, known);
    let mut decided = |c: Cond, what: &str| -> Result<bool, String> {
        eval.cond(c)
            .ok_or_else(|| format!("{what} is not determined"))
    };
    for (i, event) in sk.events.iter().enumerate() {
        let executes = decided(event.guard, "a guard")?;
        if executes != execution.executed.has(i) {
            return Err(format!(
                "event {i} executes although its guard is false, or the reverse"
            ));
        }
        if event.is_read() && executes != execution.reads[i].is_some() {
            return Err(format!(
                "read {i} has a value without executing, or the reverse"
            ));
        }
    }
    for &c in &sk.constraints {
        if !decided(c, "a constraint")? {
            return Err("a constraint of the program (barriers) does not hold".to_string());
        }
    }
    let complete = decided(sk.complete, "completeness")?;
    let values = CandidateLeaves {
        facts,
        execution,
        known,
    }
    .all();
    check_free(facts, execution, &values, &mut eval)?;
    check_values(facts, execution, &mut eval)?;
    if eval.waits_in_circle(&execution.executed) {
        return Err("threads wait for each other at barriers".to_string());
    }
    let algebra = Bits {
        executed: execution.executed.clone(),
    };
    let rejected_by = (0..facts.task.model.axioms.len())
        .filter(|&i| {
            let a = &facts.task.model.axioms[i];
            algebra.holds(a.test, value_of(&values, a.node)) == a.negated
        })
        .collect();
    let flags = facts
        .task
        .model
        .flags
        .iter()
        .map(|f| algebra.holds(f.test, value_of(&values, f.node)) != f.negated)
        .collect();
    let observed = if complete {
        facts.observed.as_slice()
    } else {
        &[]
    };
    let state: Result<_, String> = observed
        .iter()
        .map(|&o| final_value(facts, execution, &mut eval, o))
        .collect();
    let state = state?;
    Ok(Replay {
        values,
        rejected_by,
        flags,
        complete,
        state,
    })
}

/// The value of a node.
fn value_of(values: &Values<Bits>, id: NodeId) -> &Value<EventSet, Rel> {
    values[id.index()]
        .as_deref()
        .expect("all nodes were asked for")
}

/// Replays an execution and checks that it answers the query.
pub fn check(
    facts: &Facts<'_>,
    execution: &Execution,
    query: &Query<'_>,
) -> Result<Replay, String> {
    let known = execution.known();
    let replayed = replay_known(facts, execution, &known)?;
    if let Some(&i) = replayed.rejected_by.iter().find(|&&i| query.axioms[i]) {
        return Err(format!(
            "axiom `{}` rejects it",
            facts.task.model.axioms[i].name
        ));
    }
    if (query.complete || !query.props.is_empty()) && !replayed.complete {
        return Err("a thread does not run to its end".to_string());
    }
    if let Some(flags) = &query.flags
        && !flags
            .iter()
            .any(|&f| replayed.is_raised(facts, f, query.spared.as_ref()))
    {
        return Err("it does not raise the flag".to_string());
    }
    let mut eval = Eval::new(&facts.sk, &known);
    if eval.cond(query.require) != Some(true) {
        return Err("it does not satisfy the condition of the question".to_string());
    }
    for (p, truth) in &query.props {
        let holds = eval::prop(p, &mut |atom| {
            facts.atom_value(atom, &mut |o: Observable| {
                final_value(facts, execution, &mut eval, o).ok()
            })
        });
        if holds != Some(*truth) {
            return Err("its final state does not fit the proposition".to_string());
        }
    }
    Ok(replayed)
}

fn check_free(
    facts: &Facts<'_>,
    execution: &Execution,
    values: &Values<Bits>,
    eval: &mut Eval<'_>,
) -> Result<(), String> {
    let executed = &execution.executed;
    for (f, r) in facts.task.model.free.iter().zip(&execution.free) {
        let within = rel_of(values, f.within);
        if !r.is_subset(within) {
            return Err(format!("`{}` leaves its upper bound", f.name));
        }
        if f.containing
            .is_some_and(|c| !rel_of(values, c).is_subset(r))
        {
            return Err(format!("`{}` lacks a pair of its lower bound", f.name));
        }
        match f.shape {
            FreeShape::Function => {
                // A function of the model goes from writes to reads: one source for each executed
                // read.
                let sources = r.inverse();
                for i in
                    (0..facts.sk.len()).filter(|&i| executed.has(i) && facts.sk.events[i].is_read())
                {
                    let wanted = if eval.is_astray(i) { 0 } else { 1 };
                    if sources.successors(i).count() != wanted {
                        return Err(format!(
                            "`{}` does not give event {i} exactly one source",
                            f.name
                        ));
                    }
                }
            }
            FreeShape::Order => {
                if r.has_cycle(executed) {
                    return Err(format!("`{}` has a cycle", f.name));
                }
                if !r.seq(r, executed).and(within).is_subset(r) {
                    return Err(format!("`{}` is not transitive", f.name));
                }
                if let Some(c) = f.covering {
                    let undecided = rel_of(values, c)
                        .iter()
                        .any(|(i, j)| i != j && !r.has(i, j) && !r.has(j, i));
                    if undecided {
                        return Err(format!("`{}` leaves a pair undecided", f.name));
                    }
                }
            }
        }
    }
    Ok(())
}

/// The value of a node that is a relation.
fn rel_of(values: &Values<Bits>, id: NodeId) -> &Rel {
    values[id.index()]
        .as_deref()
        .expect("all nodes were asked for")
        .rel()
}

fn check_values(
    facts: &Facts<'_>,
    execution: &Execution,
    eval: &mut Eval<'_>,
) -> Result<(), String> {
    let sk = &facts.sk;
    for r in (0..sk.len()).filter(|&r| sk.events[r].is_read() && execution.executed.has(r)) {
        if eval.is_astray(r) && execution.reads[r] != Some(0) {
            return Err(format!("read {r} names no memory and returns something"));
        }
    }
    for (w, r) in execution.free[facts.task.model.values.0 as usize].iter() {
        if eval.is_astray(w) || eval.memory(w) != eval.memory(r) {
            return Err(format!(
                "read {r} takes the value of a write to other memory"
            ));
        }
        if eval.value(w).map(|v| sk.events[r].ty.wrap(v)) != execution.reads[r] {
            return Err(format!("read {r} does not return the value of its source"));
        }
    }
    Ok(())
}

/// The final value of an observable in a complete execution.
fn final_value(
    facts: &Facts<'_>,
    execution: &Execution,
    eval: &mut Eval<'_>,
    observable: Observable,
) -> Result<i64, String> {
    let sk = &facts.sk;
    if let Observable::Reg(t, r) = observable {
        return eval
            .register(t, r)
            .ok_or_else(|| "a final register value is not determined".to_string());
    }
    let cell = sk
        .observed_cell(observable)
        .ok_or("an observed location does not exist")?;
    let w = execution
        .last_write(cell)
        .ok_or("an observed location has no final write")?;
    let mut is_here = |i: usize| eval.memory(i) == Some(Some(cell));
    if !sk.events[w].is_write() || !execution.executed.has(w) || !is_here(w) {
        return Err("a final value comes from something that does not write there".to_string());
    }
    let order = &execution.free[facts.task.model.finals.0 as usize];
    if order
        .successors(w)
        .any(|j| execution.executed.has(j) && is_here(j))
    {
        return Err("a final value is overwritten".to_string());
    }
    eval.value(w)
        .ok_or_else(|| "a final value is not determined".to_string())
}

#[cfg(test)]
mod tests;
