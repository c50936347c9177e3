//! Executions as plain data to print: [`crate::verdict::Witness`].

use super::eval::Assignment;
use super::execution::Execution;
use super::replay::Replayed;
use super::task::Task;
use crate::model::ir::Shape;
use crate::rel::{EventSet, Rel};
use crate::skeleton::{CellId, EventKind};
use crate::verdict::{Witness, WitnessEvent};

/// Describes a replayed execution: its events, `po`, the free relations, `fr` and what the model shows. Orders are
/// reduced to their immediate pairs.
pub(super) fn describe(task: &Task<'_>, execution: &Execution, replayed: &Replayed) -> Witness {
    describe_with(task, execution, replayed, &[]).0
}

/// As [`describe`], with these events whatever they are; also says at which position each event is.
pub(super) fn describe_with(
    task: &Task<'_>,
    execution: &Execution,
    replayed: &Replayed,
    also: &[usize],
) -> (Witness, Vec<Option<usize>>) {
    let sk = &task.sk;
    let n = sk.len();
    // Initial writes that nothing refers to would only be noise.
    let mut touched = EventSet::empty(n);
    also.iter().for_each(|&e| touched.insert(e));
    for rel in &execution.free {
        for (i, j) in rel.iter() {
            touched.insert(i);
            touched.insert(j);
        }
    }
    let shown: Vec<usize> = execution
        .executed
        .iter()
        .filter(|&e| {
            sk.events[e].kind != EventKind::Init || touched.has(e) || execution.finals.values().any(|&w| w == e)
        })
        .collect();
    let position = |e: usize| shown.iter().position(|&s| s == e);
    let list = |rel: &Rel| -> Vec<(usize, usize)> {
        rel.iter().filter_map(|(i, j)| Some((position(i)?, position(j)?))).collect()
    };
    let mut relations = Vec::new();
    let po = sk.program_order().restricted(&execution.executed);
    relations.push(("po".to_string(), list(&immediate(&po))));
    for (f, rel) in task.model.free.iter().zip(&execution.free) {
        let rel = if f.shape == Shape::Order { immediate(rel) } else { rel.clone() };
        relations.push((f.name.clone(), list(&rel)));
    }
    let (rf, co) = (task.model.values.0 as usize, task.model.finals.0 as usize);
    let mut fr = execution.free[rf].inverse().seq(&execution.free[co], &execution.executed);
    (0..n).for_each(|i| fr.remove(i, i));
    relations.push(("fr".to_string(), list(&fr)));
    for (name, node) in &task.model.shows {
        if let Some(crate::algebra::Value::Rel(r)) = replayed.values[node.index()].as_deref() {
            relations.push((name.clone(), list(r)));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    relations.retain(|(name, pairs)| !pairs.is_empty() && seen.insert(name.clone()));
    let events = shown.iter().map(|&e| event(task, execution, e)).collect();
    let state = task
        .observed
        .iter()
        .zip(&replayed.state)
        .map(|(&o, &v)| (task.observable_name(o), task.show_value(o, v)))
        .collect();
    (Witness { events, relations, state, ends: Vec::new() }, (0..n).map(position).collect())
}

/// The memory that an event of an execution accesses.
pub(super) fn cell(task: &Task<'_>, execution: &Execution, e: usize) -> Option<CellId> {
    let known = known(execution);
    let address = super::eval::Eval::new(&task.sk.pool, &known).term(task.sk.events[e].addr?)?;
    task.sk.memory.at(address)
}

/// What an execution fixes.
pub(super) fn known(execution: &Execution) -> Assignment {
    let choices = execution.choices.iter().map(|&b| Some(b)).collect();
    Assignment { reads: execution.reads.clone(), choices }
}

/// One event of an execution.
pub(super) fn event(task: &Task<'_>, execution: &Execution, e: usize) -> WitnessEvent {
    let sk = &task.sk;
    let event = &sk.events[e];
    let known = known(execution);
    let mut eval = super::eval::Eval::new(&sk.pool, &known);
    let place = cell(task, execution, e).map_or_else(|| "?".to_string(), |c| sk.memory.cell(c).name.clone());
    let value = event.value.and_then(|v| eval.term(v)).map_or_else(|| "?".to_string(), |v| task.show(v));
    let action = match event.kind {
        EventKind::Init | EventKind::Write => format!("W {place} = {value}"),
        EventKind::Read => format!("R {place} = {value}"),
        EventKind::Fence => "F".to_string(),
        EventKind::Arrive => "BA".to_string(),
        EventKind::Wait => "BW".to_string(),
    };
    let (thread_name, line, text) = match event.thread {
        None => ("init".to_string(), 0, String::new()),
        Some(t) => {
            let thread = sk.program.thread(t);
            let instr = &thread.code[event.instr];
            (thread.name.clone(), instr.line, instr.text.clone())
        }
    };
    WitnessEvent { thread: event.thread.map(|t| t.0 as usize), thread_name, line, action, text }
}

/// The pairs of an order that do not follow by transitivity.
fn immediate(order: &Rel) -> Rel {
    let all = EventSet::full(order.universe_len());
    let long = order.seq(order, &all);
    order.clone().minus(&long)
}
