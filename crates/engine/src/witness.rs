//! Turns executions into plain data to print: [`verdict::Witness`].

use super::eval::Eval;
use super::execution::Execution;
use super::facts::Facts;
use super::replay::Replay;
use cat::algebra::Value;
use cat::model::ir::{FreeId, FreeShape, NodeId, NodeOp};
use cat::rel::{EventSet, Rel};
use program::memory::CellId;
use program::{EventKind, Program, Scope};
use verdict::Reason;
use verdict::{Seat, Style, Witness, WitnessEvent};

/// A relation with more pairs is not readable.
const MOST_PAIRS: usize = 20_000;

/// Describes a replayed execution: its events, `po`, the free relations, `fr` and the relations
/// that the model shows. Orders are reduced to their immediate pairs.
pub fn describe(facts: &Facts<'_>, execution: &Execution, replayed: &Replay) -> Witness {
    describe_with(facts, execution, replayed, &[]).0
}

/// As [`describe`], and the result always includes the events `also`. Also returns the position of
/// each event.
pub fn describe_with(
    facts: &Facts<'_>,
    execution: &Execution,
    replayed: &Replay,
    also: &[usize],
) -> (Witness, Vec<Option<usize>>) {
    let sk = &facts.sk;
    let n = sk.len();
    let shown = shown(facts, execution, also);
    let mut position = vec![None; n];
    shown
        .iter()
        .enumerate()
        .for_each(|(at, &e)| position[e] = Some(at));
    let mut relations = Vec::new();
    let [program_order, from_reads] = Witness::ALWAYS.map(|(name, _)| name.to_owned());
    let po = sk.program_order().clone().restricted(&execution.executed);
    relations.push((program_order, positions(&position, &immediate(&po))));
    for (f, rel) in facts.task.model.free.iter().zip(&execution.free) {
        let rel = if f.shape == FreeShape::Order {
            immediate(rel)
        } else {
            rel.clone()
        };
        relations.push((f.name.clone(), positions(&position, &rel)));
    }
    let (rf, co) = (
        facts.task.model.values.0 as usize,
        facts.task.model.finals.0 as usize,
    );
    let mut fr = execution.free[rf]
        .inverse()
        .seq(&execution.free[co], &execution.executed);
    (0..n).for_each(|i| fr.remove(i, i));
    relations.push((from_reads, positions(&position, &fr)));
    for (name, node) in &facts.task.model.shows {
        if let Some(Value::Rel(r)) = replayed.values[node.index()].as_deref() {
            relations.push((name.clone(), positions(&position, r)));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    relations.retain(|(name, pairs)| !pairs.is_empty() && seen.insert(name.clone()));
    let events = shown.iter().map(|&e| event(facts, execution, e)).collect();
    let state = facts.name_state(&replayed.state);
    let derived = match facts.task.detail {
        false => Vec::new(),
        true => named(facts)
            .into_iter()
            .filter(|(name, _)| !relations.iter().any(|(known, _)| known == name))
            .filter_map(
                |(name, node)| match replayed.values[node.index()].as_deref() {
                    Some(Value::Rel(r)) if !r.is_empty() && r.len() <= MOST_PAIRS => {
                        Some((name, positions(&position, r)))
                    }
                    _ => None,
                },
            )
            .filter(|(_, pairs)| !pairs.is_empty())
            .collect(),
    };
    let threads = seats(&sk.program);
    let free = |id: FreeId, style| (facts.task.model.free[id.0 as usize].name.clone(), style);
    let roles = [
        free(facts.task.model.values, Style::ReadsFrom),
        free(facts.task.model.finals, Style::Coherence),
    ];
    let texts = facts
        .task
        .model
        .drawn
        .iter()
        .filter_map(|(name, style)| Some((name.clone(), Style::named(style)?)));
    let always = Witness::ALWAYS.map(|(name, style)| (name.to_owned(), style));
    let styles = always.into_iter().chain(roles).chain(texts).collect();
    (
        Witness {
            events,
            relations,
            state,
            ends: Vec::new(),
            threads,
            derived,
            styles,
        },
        position,
    )
}

/// The pairs of a relation, by the positions of their events.
fn positions(position: &[Option<usize>], rel: &Rel) -> Vec<(usize, usize)> {
    rel.iter()
        .filter_map(|(i, j)| Some((position[i]?, position[j]?)))
        .collect()
}

/// The events to show, in order; always includes `also`.
fn shown(facts: &Facts<'_>, execution: &Execution, also: &[usize]) -> Vec<usize> {
    let sk = &facts.sk;
    // An initial write without any pair would only be noise.
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
            sk.events[e].kind != EventKind::Init
                || touched.has(e)
                || execution.finals.iter().any(|last| last.1 == e)
        })
        .collect()
}

/// The position of an event in the description of its execution.
pub fn position(facts: &Facts<'_>, execution: &Execution, event: usize) -> Option<usize> {
    shown(facts, execution, &[])
        .iter()
        .position(|&e| e == event)
}

/// The relations that have a name: base relations that the model uses, then its definitions, each
/// by its last meaning.
fn named(facts: &Facts<'_>) -> Vec<(String, NodeId)> {
    let model = facts.task.model;
    let mut found: Vec<(String, NodeId)> = Vec::new();
    for (i, node) in model.nodes.iter().enumerate() {
        if let NodeOp::Base(id) = node.op {
            found.push((model.base(id).name.to_owned(), NodeId(i as u32)));
        }
    }
    for (name, node, _) in &model.lets {
        found.retain(|(known, _)| known != name);
        found.push((name.clone(), *node));
    }
    found
}

/// The groups of each thread of a program, in the words of its dialect.
fn seats(program: &Program) -> Vec<Seat> {
    let levels = program.dialect.row().levels;
    let domains = program.threads.iter().any(|t| t.place.domain != 0);
    program
        .threads
        .iter()
        .map(|t: &program::Thread| {
            let place = &t.place;
            if place.host && !levels.is_empty() {
                return Seat {
                    thread: t.name.clone(),
                    groups: vec!["host".to_owned()],
                };
            }
            let mut groups = Vec::new();
            for level in levels {
                let told = level.scope != Scope::Warp || shares_warp(program, t);
                groups.extend(
                    place
                        .group(level.scope)
                        .filter(|_| told)
                        .map(|n| format!("{} {n}", level.noun)),
                );
                if level.scope == Scope::Gpu && domains {
                    groups.push(format!("domain {}", place.domain));
                }
            }
            Seat {
                thread: t.name.clone(),
                groups,
            }
        })
        .collect()
}

/// Whether other threads are in the warp of a thread.
fn shares_warp(program: &Program, t: &program::Thread) -> bool {
    program
        .threads
        .iter()
        .filter(|o| o.place.same(&t.place, Scope::Warp))
        .count()
        > 1
}

/// The memory that an event of an execution accesses.
pub fn cell(facts: &Facts<'_>, execution: &Execution, e: usize) -> Option<CellId> {
    let address = Eval::new(&facts.sk, &execution.known()).address(e)?;
    facts
        .sk
        .memory
        .cell_at(address, facts.sk.events[e].ty.bytes())
}

/// One event of an execution.
pub fn event(facts: &Facts<'_>, execution: &Execution, e: usize) -> WitnessEvent {
    let sk = &facts.sk;
    let event = &sk.events[e];
    let mut action = event.kind.row().mark.to_string();
    if event.addr.is_some() && !event.is_of_tensor_memory() {
        action.push(' ');
        action.push_str(cell(facts, execution, e).map_or("?", |c| &sk.memory.cell(c).name));
    }
    if event.value.is_some() {
        let value = Eval::new(sk, &execution.known()).value(e);
        let shown = |v| match cell(facts, execution, e) {
            Some(c) if event.thread.is_some() && facts.is_unknown(c) => "?".to_string(),
            Some(c)
                if event.thread.is_none() && sk.memory.cell(sk.memory.cell(c).memory).unknown =>
            {
                "?".to_string()
            }
            Some(c) => sk.memory.show_in(&sk.program, c, v),
            None => facts.show(v),
        };
        let value = value.map_or_else(|| "?".to_string(), shown);
        action.push_str(&format!(" = {value}"));
    }
    let (thread_name, line, text) = match event.thread {
        None => ("init".to_string(), 0.into(), String::new()),
        Some(t) => {
            let thread = sk.program.thread(t);
            let instr = &thread.code[event.instr];
            (thread.name.clone(), instr.line.clone(), instr.text.clone())
        }
    };
    let agent = agent(facts, execution, e);
    WitnessEvent {
        thread: event.thread.map(|t| t.0 as usize),
        thread_name,
        agent,
        line,
        action,
        text,
    }
}

/// The agent of its thread that performs an event, if one does. Agents have numbers if the
/// execution has several.
fn agent(facts: &Facts<'_>, execution: &Execution, e: usize) -> Option<String> {
    let sk = &facts.sk;
    let own = sk.operation(e)?;
    let mut agents: Vec<usize> = execution
        .executed
        .iter()
        .filter(|&o| sk.events[o].thread == sk.events[e].thread)
        .filter_map(|o| sk.operation(o))
        .collect();
    agents.dedup();
    let at = agents
        .iter()
        .position(|&o| o == own)
        .filter(|_| agents.len() > 1);
    Some(at.map_or_else(|| "agent".to_owned(), |at| format!("agent {}", at + 1)))
}

/// The pairs of an order that transitivity does not imply.
fn immediate(order: &Rel) -> Rel {
    let all = EventSet::full(order.universe_len());
    let long = order.seq(order, &all);
    order.clone().minus(&long)
}

/// Whether the loop bound cuts a thread in an execution.
pub fn is_cut(facts: &Facts<'_>, execution: &Execution) -> bool {
    Eval::new(&facts.sk, &execution.known()).cond(facts.sk.cut) == Some(true)
}

/// Why a question stays open, given an execution in which an access addresses no memory, or a
/// thread meets others that do not arrive.
pub fn astray(facts: &Facts<'_>, execution: &Execution) -> Reason {
    let sk = &facts.sk;
    let known = execution.known();
    let mut eval = Eval::new(sk, &known);
    let mut accesses =
        (0..sk.len()).filter(|&e| execution.executed.has(e) && facts.domains.may_fault[e]);
    let found = accesses.find(|&e| eval.is_astray(e)).and_then(|e| {
        let instr = &sk.program.thread(sk.events[e].thread?).code[sk.events[e].instr];
        Some((instr.op.aborts(), sk.place(e)?))
    });
    let unmet = sk
        .unmet
        .iter()
        .find(|(when, _)| eval.cond(*when) == Some(true));
    match found {
        None if let Some((_, place)) = unmet => Reason::Apart {
            place: place.clone(),
            named: true,
        },
        Some((true, place)) => Reason::Aborted(place),
        found => Reason::Astray(found.map(|(_, place)| place)),
    }
}
