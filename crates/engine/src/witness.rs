//! Executions as plain data to print: [`verdict::Witness`].

use super::eval::Assignment;
use super::execution::Execution;
use super::replay::Replayed;
use super::task::Task;
use crate::skeleton::EventKind;
use cat::algebra::Value;
use cat::model::ir::{NodeId, NodeOp, Shape};
use cat::rel::{EventSet, Rel};
use program::memory::CellId;
use program::{Dialect, Program, Scope};
use verdict::{Seat, Witness, WitnessEvent};

/// A relation with more pairs tells nobody anything.
const MOST_PAIRS: usize = 20_000;

/// Describes a replayed execution: its events, `po`, the free relations, `fr` and what the model shows. Orders are
/// reduced to their immediate pairs.
pub fn describe(task: &Task<'_>, execution: &Execution, replayed: &Replayed) -> Witness {
    describe_with(task, execution, replayed, &[]).0
}

/// As [`describe`], with these events whatever they are; also says at which position each event is.
pub fn describe_with(
    task: &Task<'_>,
    execution: &Execution,
    replayed: &Replayed,
    also: &[usize],
) -> (Witness, Vec<Option<usize>>) {
    let sk = &task.sk;
    let n = sk.len();
    let shown = shown(task, execution, also);
    let mut position = vec![None; n];
    shown.iter().enumerate().for_each(|(at, &e)| position[e] = Some(at));
    let list = |rel: &Rel| -> Vec<(usize, usize)> {
        rel.iter().filter_map(|(i, j)| Some((position[i]?, position[j]?))).collect()
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
        if let Some(Value::Rel(r)) = replayed.values[node.index()].as_deref() {
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
    let derived = match task.detail {
        false => Vec::new(),
        true => named(task)
            .into_iter()
            .filter(|(name, _)| !relations.iter().any(|(known, _)| known == name))
            .filter_map(|(name, node)| match replayed.values[node.index()].as_deref() {
                Some(Value::Rel(r)) if !r.is_empty() && r.len() <= MOST_PAIRS => Some((name, list(r))),
                _ => None,
            })
            .filter(|(_, pairs)| !pairs.is_empty())
            .collect(),
    };
    let threads = seats(&sk.program);
    (Witness { events, relations, state, ends: Vec::new(), threads, derived }, position)
}

/// The events that are shown, in order; `also` are, whatever they are.
fn shown(task: &Task<'_>, execution: &Execution, also: &[usize]) -> Vec<usize> {
    let sk = &task.sk;
    // Initial writes that nothing refers to would only be noise.
    let mut touched = EventSet::empty(sk.len());
    also.iter().for_each(|&e| touched.insert(e));
    for rel in &execution.free {
        for (i, j) in rel.iter() {
            touched.insert(i);
            touched.insert(j);
        }
    }
    execution
        .executed
        .iter()
        .filter(|&e| {
            sk.events[e].kind != EventKind::Init || touched.has(e) || execution.finals.values().any(|&w| w == e)
        })
        .collect()
}

/// The place of an event in the description of its execution.
pub fn position(task: &Task<'_>, execution: &Execution, event: usize) -> Option<usize> {
    shown(task, execution, &[]).iter().position(|&e| e == event)
}

/// The relations that have a name: base relations of the program that the model speaks of, then its definitions, each by
/// its last meaning.
fn named(task: &Task<'_>) -> Vec<(String, NodeId)> {
    let model = task.model;
    let mut found: Vec<(String, NodeId)> = Vec::new();
    for (i, node) in model.nodes.iter().enumerate() {
        if let NodeOp::Base(name) = &node.op {
            found.push((name.clone(), NodeId(i as u32)));
        }
    }
    for (name, node, _) in &model.lets {
        found.retain(|(known, _)| known != name);
        found.push((name.clone(), *node));
    }
    found
}

/// Where each thread of a program runs, in the words of its dialect.
fn seats(program: &Program) -> Vec<Seat> {
    let (device, cluster, group, warp) = match program.dialect {
        Dialect::Ptx => ("GPU", "cluster", "CTA", "warp"),
        Dialect::Cuda => ("GPU", "cluster", "block", "warp"),
        Dialect::OpenCl => ("device", "cluster", "work-group", "sub-group"),
        Dialect::Vulkan => ("device", "cluster", "workgroup", "subgroup"),
        // C has threads, and nothing that they are part of.
        Dialect::C => {
            let seat = |t: &program::Thread| Seat { thread: t.name.clone(), groups: Vec::new() };
            return program.threads.iter().map(seat).collect();
        }
    };
    let domains = program.threads.iter().any(|t| t.place.domain != 0);
    let shared =
        |t: &program::Thread| program.threads.iter().filter(|o| o.place.same(&t.place, Scope::Warp)).count() > 1;
    let seat = |t: &program::Thread| {
        let place = &t.place;
        if place.host {
            return Seat { thread: t.name.clone(), groups: vec!["host".to_owned()] };
        }
        let mut groups = vec![format!("{device} {}", place.gpu)];
        if domains {
            groups.push(format!("domain {}", place.domain));
        }
        if program.dialect == Dialect::Vulkan {
            groups.push(format!("queue family {}", place.queue_family));
        }
        groups.extend(place.cluster.map(|n| format!("{cluster} {n}")));
        groups.push(format!("{group} {}", place.cta));
        groups.extend(place.warp.filter(|_| shared(t)).map(|n| format!("{warp} {n}")));
        Seat { thread: t.name.clone(), groups }
    };
    program.threads.iter().map(seat).collect()
}

/// The memory that an event of an execution accesses.
pub fn cell(task: &Task<'_>, execution: &Execution, e: usize) -> Option<CellId> {
    let known = known(execution);
    let address = super::eval::Eval::new(&task.sk.pool, &known).term(task.sk.events[e].addr?)?;
    task.sk.memory.at(address)
}

/// What an execution fixes.
pub fn known(execution: &Execution) -> Assignment {
    let choices = execution.choices.iter().map(|&b| Some(b)).collect();
    Assignment { reads: execution.reads.clone(), choices }
}

/// One event of an execution.
pub fn event(task: &Task<'_>, execution: &Execution, e: usize) -> WitnessEvent {
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
