//! The plain evaluator: checks a complete candidate execution from scratch.
//!
//! # Invariants
//! - Reads only the skeleton, the model and the execution; it shares no search, no bounds and no circuit with the
//!   engines whose witnesses it judges.
//!
//! # Sources
//! - An independent checker behind the search: regalloc2's `checker`, egg's proof checking.

use super::eval::{self, Assignment, Eval};
use super::execution::Execution;
use super::query::{FinalState, Query};
use super::task::Task;
use crate::skeleton::Cond;
use crate::skeleton::base::Base;
use crate::skeleton::domain::fits;
use cat::algebra::bits::Bits;
use cat::algebra::{Leaves, RelAlgebra, Value, Values, interpret_all, needed};
use cat::model::ir::{FreeId, Kind, NodeId, Shape};
use cat::rel::{EventSet, Rel};
use program::litmus::Observable;
use program::memory::CellId;

/// What an execution turned out to be.
#[derive(Clone, Debug)]
pub struct Replayed {
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

/// Leaves of one candidate.
struct Candidate<'a> {
    task: &'a Task<'a>,
    execution: &'a Execution,
    known: &'a Assignment,
}

impl Leaves<Bits> for Candidate<'_> {
    fn base(&self, name: &str, _: Kind) -> Value<EventSet, Rel> {
        let executed = &self.execution.executed;
        match self.task.base(name) {
            Base::Set(s) => Value::Set(s.clone().and(executed)),
            Base::Rel(r) => {
                let mut rel = r.fixed.clone();
                let mut eval = Eval::new(&self.task.sk.pool, self.known);
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

/// What a declaration of a model comes to in an execution, where it does not depend on the free relations: their bounds.
pub fn declared(task: &Task<'_>, execution: &Execution, node: NodeId) -> Rel {
    let known = Assignment {
        reads: execution.reads.clone(),
        choices: execution.choices.iter().map(|&b| Some(b)).collect(),
    };
    let leaves = Candidate { task, execution, known: &known };
    let algebra = Bits { executed: execution.executed.clone() };
    let values = interpret_all(task.model, &algebra, &leaves, &needed(task.model, [node]));
    values[node.index()].as_deref().expect("it was asked for").rel().clone()
}

/// The values of all nodes in something that need be no candidate execution: no law is checked.
pub fn evaluate(task: &Task<'_>, execution: &Execution) -> Values<Bits> {
    let choices = execution.choices.iter().map(|&b| Some(b)).collect();
    let known = Assignment { reads: execution.reads.clone(), choices };
    let leaves = Candidate { task, execution, known: &known };
    let algebra = Bits { executed: execution.executed.clone() };
    let all: Vec<NodeId> = (0..task.model.nodes.len() as u32).map(NodeId).collect();
    interpret_all(task.model, &algebra, &leaves, &needed(task.model, all))
}

/// Replays an execution.
///
/// # Errors
/// The law that it breaks, if it is no candidate execution at all. (Axioms are not laws: see [`Replayed::rejected_by`].)
pub fn replay(task: &Task<'_>, execution: &Execution) -> Result<Replayed, String> {
    let sk = &task.sk;
    let known = Assignment {
        reads: execution.reads.clone(),
        choices: execution.choices.iter().map(|&b| Some(b)).collect(),
    };
    let mut eval = Eval::new(&sk.pool, &known);
    let mut decided = |c: Cond, what: &str| -> Result<bool, String> {
        eval.cond(c).ok_or_else(|| format!("{what} is not determined"))
    };
    for (i, event) in sk.events.iter().enumerate() {
        let executes = decided(event.guard, "a guard")?;
        if executes != execution.executed.has(i) {
            return Err(format!("event {i} executes although its guard is false, or the reverse"));
        }
        if event.is_read() && executes != execution.reads[i].is_some() {
            return Err(format!("read {i} has a value without executing, or the reverse"));
        }
    }
    for &c in &sk.constraints {
        if !decided(c, "a constraint")? {
            return Err("a constraint of the program (barriers) does not hold".to_string());
        }
    }
    let complete = decided(sk.complete, "completeness")?;
    check_free(task, execution, &known)?;
    check_values(task, execution, &known)?;
    check_barrier_order(task, execution, &known)?;
    let algebra = Bits { executed: execution.executed.clone() };
    let all: Vec<NodeId> = (0..task.model.nodes.len() as u32).map(NodeId).collect();
    let leaves = Candidate { task, execution, known: &known };
    let values = interpret_all(task.model, &algebra, &leaves, &needed(task.model, all));
    let value = |id: NodeId| values[id.index()].as_deref().expect("all nodes were asked for");
    let rejected_by = (0..task.model.axioms.len())
        .filter(|&i| {
            let a = &task.model.axioms[i];
            algebra.holds(a.test, value(a.node)) == a.negated
        })
        .collect();
    let flags = task.model.flags.iter().map(|f| algebra.holds(f.test, value(f.node)) != f.negated).collect();
    let state = if complete { final_state(task, execution, &known)? } else { Vec::new() };
    Ok(Replayed { values, rejected_by, flags, complete, state })
}

/// Replays an execution and checks that it answers the query.
pub fn check(task: &Task<'_>, execution: &Execution, query: &Query<'_>) -> Result<Replayed, String> {
    let replayed = replay(task, execution)?;
    if let Some(&i) = replayed.rejected_by.iter().find(|&&i| query.axioms[i]) {
        return Err(format!("axiom `{}` rejects it", task.model.axioms[i].name));
    }
    if (query.complete || !query.props.is_empty()) && !replayed.complete {
        return Err("a thread does not run to its end".to_string());
    }
    if let Some(flags) = &query.flags
        && !flags.iter().any(|&f| replayed.flags[f])
    {
        return Err("it does not raise the flag".to_string());
    }
    let known = Assignment {
        reads: execution.reads.clone(),
        choices: execution.choices.iter().map(|&b| Some(b)).collect(),
    };
    let mut eval = Eval::new(&task.sk.pool, &known);
    if eval.cond(query.require) != Some(true) {
        return Err("it does not meet the condition asked for".to_string());
    }
    for (p, truth) in &query.props {
        let mut value = |o: Observable| final_value(task, execution, &known, o).ok();
        let holds = eval::prop(p, &mut |atom| task.atom_value(atom, &mut value));
        if holds != Some(*truth) {
            return Err("its final state does not fit the proposition".to_string());
        }
    }
    Ok(replayed)
}

fn check_free(task: &Task<'_>, execution: &Execution, known: &Assignment) -> Result<(), String> {
    let model = task.model;
    let executed = &execution.executed;
    let algebra = Bits { executed: executed.clone() };
    let roots: Vec<NodeId> =
        model.free.iter().flat_map(|f| [Some(f.within), f.containing, f.covering].into_iter().flatten()).collect();
    let leaves = Candidate { task, execution, known };
    let values = interpret_all(model, &algebra, &leaves, &needed(model, roots));
    let rel = |id: NodeId| values[id.index()].as_deref().expect("asked for").rel();
    for (f, r) in model.free.iter().zip(&execution.free) {
        let within = rel(f.within);
        if !r.is_subset(within) {
            return Err(format!("`{}` leaves its upper bound", f.name));
        }
        if f.containing.is_some_and(|c| !rel(c).is_subset(r)) {
            return Err(format!("`{}` lacks a pair of its lower bound", f.name));
        }
        match f.shape {
            Shape::Function => {
                // What a model calls a function from writes to reads: one source for each executed read.
                let sources = r.inverse();
                for i in (0..task.sk.len()).filter(|&i| executed.has(i) && task.sk.events[i].is_read()) {
                    let wanted = if astray(task, known, i) { 0 } else { 1 };
                    if sources.successors(i).count() != wanted {
                        return Err(format!("`{}` does not give event {i} exactly one source", f.name));
                    }
                }
            }
            Shape::Order => {
                if r.has_cycle(executed) {
                    return Err(format!("`{}` has a cycle", f.name));
                }
                if !algebra.seq(r, r).and(within).is_subset(r) {
                    return Err(format!("`{}` is not transitive", f.name));
                }
                if let Some(c) = f.covering {
                    let undecided = rel(c).iter().any(|(i, j)| i != j && !r.has(i, j) && !r.has(j, i));
                    if undecided {
                        return Err(format!("`{}` leaves a pair undecided", f.name));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Whether an access names no memory that it can access: then it has no source and reads 0.
pub fn astray(task: &Task<'_>, known: &Assignment, event: usize) -> bool {
    let sk = &task.sk;
    let mut eval = Eval::new(&sk.pool, known);
    let address = sk.events[event].addr.and_then(|a| eval.term(a));
    address.and_then(|a| sk.memory.at(a)).is_none_or(|c| !fits(sk, &sk.events[event], c))
}

fn check_values(task: &Task<'_>, execution: &Execution, known: &Assignment) -> Result<(), String> {
    let sk = &task.sk;
    let mut eval = Eval::new(&sk.pool, known);
    for r in (0..sk.len()).filter(|&r| sk.events[r].is_read() && execution.executed.has(r)) {
        if astray(task, known, r) && execution.reads[r] != Some(0) {
            return Err(format!("read {r} names no memory and returns something"));
        }
    }
    for (w, r) in execution.free[task.model.values.0 as usize].iter() {
        let (write, read) = (&sk.events[w], &sk.events[r]);
        let mut cell = |e: &crate::skeleton::Event| {
            let address = e.addr.and_then(|a| eval.term(a))?;
            Some(sk.memory.cell(sk.memory.at(address)?).memory)
        };
        let (from, to) = (cell(write), cell(read));
        if from.is_none() || from != to {
            return Err(format!("read {r} takes the value of a write to other memory"));
        }
        let value = write.value.and_then(|v| eval.term(v));
        if value.map(|v| read.ty.wrap(v)) != execution.reads[r] {
            return Err(format!("read {r} does not return the value of its source"));
        }
    }
    Ok(())
}

fn check_barrier_order(task: &Task<'_>, execution: &Execution, known: &Assignment) -> Result<(), String> {
    let sk = &task.sk;
    let mut eval = Eval::new(&sk.pool, known);
    let mut order = sk.program_order();
    for &(a, b, cond) in &sk.barrier_order {
        if eval.cond(cond) == Some(true) {
            order.insert(a.index(), b.index());
        }
    }
    if order.has_cycle(&execution.executed) {
        Err("threads wait for each other at barriers".to_string())
    } else {
        Ok(())
    }
}

/// The final value of an observable in a complete execution.
pub fn final_value(
    task: &Task<'_>,
    execution: &Execution,
    known: &Assignment,
    observable: Observable,
) -> Result<i64, String> {
    let sk = &task.sk;
    let mut eval = Eval::new(&sk.pool, known);
    if let Observable::Reg(t, r) = observable {
        let term = sk.final_regs[t.0 as usize][r.0 as usize];
        return eval.term(term).ok_or_else(|| "a final register value is not determined".to_string());
    }
    let cell = sk.observed_cell(observable).ok_or("an observed location does not exist")?;
    let &w = execution.finals.get(&cell).ok_or("an observed location has no final write")?;
    let mut is_here = |i: usize| -> bool {
        let address: Option<i64> = sk.events[i].addr.and_then(|a| eval.term(a));
        let at: Option<CellId> = address.and_then(|a| sk.memory.at(a));
        at.is_some_and(|c| sk.memory.cell(c).memory == cell)
    };
    if !sk.events[w].is_write() || !execution.executed.has(w) || !is_here(w) {
        return Err("a final value comes from something that does not write there".to_string());
    }
    let order = &execution.free[task.model.finals.0 as usize];
    let followers: Vec<usize> = order.successors(w).collect();
    if followers.into_iter().any(|j| execution.executed.has(j) && is_here(j)) {
        return Err("a final value is overwritten".to_string());
    }
    let value = sk.events[w].value.expect("writes have values");
    eval.term(value).ok_or_else(|| "a final value is not determined".to_string())
}

fn final_state(task: &Task<'_>, execution: &Execution, known: &Assignment) -> Result<FinalState, String> {
    task.observed.iter().map(|&o| final_value(task, execution, known, o)).collect()
}

#[cfg(test)]
mod tests;
