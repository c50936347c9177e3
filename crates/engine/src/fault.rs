//! Describes the events that a flag of a model marks in an execution, and why the model objects to
//! them.
//!
//! The model gives the reasons. A flag tests a relation, which is a union of named relations; the
//! pair comes from the first non-empty one. The right side of a difference (`conflict \
//! (both-atomic | hb)`) names what would have excused the pair.
//!
//! # Invariants
//! - It reads the values that replay computed, and no claim of an engine.
//! - It contains no name of a model.

use std::collections::BTreeSet;

use super::eval::Eval;
use super::execution::Execution;
use super::facts::Facts;
use super::replay::Replay;
use super::witness;
use crate::skeleton::{Event, signature};
use cat::algebra::Value;
use cat::model::ir::{Model, NodeId, NodeOp, TestEffect};
use cat::model::words::words;
use cat::rel::Rel;
use program::memory::CellId;
use program::{Dialect, Place, Scope, Tag};
use verdict::{Fault, FaultEvent, RacingPair};

/// Describes the first events that one of `flags` marks outside `spared`. `races` are the flags
/// that mean a data race.
pub fn describe(
    facts: &Facts<'_>,
    execution: &Execution,
    replayed: &Replay,
    flags: &[usize],
    races: &[usize],
    spared: Option<&Rel>,
) -> Option<Fault> {
    let model = facts.task.model;
    let &flag = flags
        .iter()
        .find(|&&f| replayed.is_raised(facts, f, spared))?;
    let races: Vec<NodeId> = races
        .iter()
        .flat_map(|&f| parts(model, model.flags[f].node))
        .map(|p| p.0)
        .collect();
    let found = first_marked(model, replayed, model.flags[flag].node, spared);
    let outlived = outlived(model);
    let flag = model.flags[flag].name.clone();
    let execution_shown = Some(witness::describe(facts, execution, replayed));
    let Some((node, name, events)) = found else {
        // A flag such as `~acyclic` marks no single pair.
        return Some(Fault {
            relation: flag.clone(),
            flag,
            race: false,
            lifetime: false,
            place: None,
            object: None,
            events: Vec::new(),
            why: Vec::new(),
            remedy: None,
            execution: execution_shown,
        });
    };
    let place = common_memory(facts, execution, &events);
    let object = place.map(|c| {
        facts
            .sk
            .program
            .location(facts.sk.memory.cell(c).location.0)
            .name
            .clone()
    });
    let place = place.map(|c| facts.sk.memory.cell(c).name.clone());
    let clause = name
        .as_ref()
        .filter(|_| !races.contains(&node))
        .and_then(|name| words(model).remove(name));
    let mut why: Vec<String> = clause
        .into_iter()
        .map(|clause| said(facts, &events, &clause))
        .collect();
    why.extend(met(facts, execution, &events));
    // If the model itself has words for it, two events at different places need no further reason.
    if why.is_empty() || place.is_some() && events.len() > 1 {
        why.extend(reasons(facts, node, &events, place.as_deref()));
    }
    if races.contains(&node) {
        why.extend(apart_in_time(facts, &events));
    }
    let is_late = events.iter().any(|&e| {
        let event = &facts.sk.events[e];
        event.tags.has(Tag::Ends) && !event.kind.accesses()
    });
    let events = events
        .iter()
        .map(|&e| fault_event(facts, execution, e, witness::position(facts, execution, e)))
        .collect();
    Some(Fault {
        relation: name.unwrap_or_else(|| flag.clone()),
        flag,
        race: races.contains(&node),
        lifetime: outlived.contains(&node) || is_late,
        place,
        object,
        events,
        why,
        remedy: None,
        execution: execution_shown,
    })
}

/// The first events that a flag marks outside `spared`: the relation or set with its name, and the
/// events.
fn first_marked(
    model: &Model,
    replayed: &Replay,
    flagged: NodeId,
    spared: Option<&Rel>,
) -> Option<(NodeId, Option<String>, Vec<usize>)> {
    parts(model, flagged).into_iter().find_map(|(node, name)| {
        let events = match replayed.values[node.index()].as_deref()? {
            Value::Rel(rel) => {
                // Each pair once, in the order of the events.
                let counts =
                    |&(i, j): &(usize, usize)| spared.is_none_or(|spared| !spared.has(i, j));
                let pair = rel.iter().filter(counts).find(|(i, j)| i <= j);
                let (i, j) = pair.or_else(|| rel.iter().find(counts))?;
                if i == j { vec![i] } else { vec![i, j] }
            }
            Value::Set(set) => vec![set.iter().next()?],
        };
        Some((node, name, events))
    })
}

/// The memory that all of one or two events access.
fn common_memory(facts: &Facts<'_>, execution: &Execution, events: &[usize]) -> Option<CellId> {
    let cells: Vec<_> = events
        .iter()
        .map(|&e| witness::cell(facts, execution, e))
        .collect();
    match cells.as_slice() {
        [Some(a), Some(b)] if memory(facts, *a) == memory(facts, *b) => Some(memory(facts, *a)),
        [Some(a)] => Some(memory(facts, *a)),
        _ => None,
    }
}

/// The memory of a cell.
fn memory(facts: &Facts<'_>, c: CellId) -> CellId {
    facts.sk.memory.cell(c).memory
}

/// Why the commands of two events can run at the same time, if both are commands of a host program.
fn apart_in_time(facts: &Facts<'_>, events: &[usize]) -> Option<String> {
    let (&[i, j], host) = (events, facts.sk.program.host.as_deref()?) else {
        return None;
    };
    let [a, b] = [i, j].map(|e| facts.sk.events[e].thread);
    host.apart(&facts.sk.program, a?, b?)
}

/// The pairs of events that one of `races` marks in an execution; a flag on single events yields
/// none.
pub fn pairs(facts: &Facts<'_>, replayed: &Replay, races: &[usize]) -> Vec<(usize, usize)> {
    let mut all = BTreeSet::new();
    for &flag in races {
        if let Some(Value::Rel(rel)) =
            replayed.values[facts.task.model.flags[flag].node.index()].as_deref()
        {
            all.extend(rel.iter().map(|(i, j)| (i.min(j), i.max(j))));
        }
    }
    all.into_iter().collect()
}

/// Two events that race in an execution.
pub fn racing(facts: &Facts<'_>, execution: &Execution, i: usize, j: usize) -> RacingPair {
    let place = match [i, j].map(|e| witness::cell(facts, execution, e)) {
        [Some(a), Some(b)] => {
            let [a, b] = [a, b].map(|c| memory(facts, c));
            (a == b).then(|| facts.sk.memory.cell(a).name.clone())
        }
        _ => None,
    };
    let events = [i, j].map(|e| fault_event(facts, execution, e, None));
    RacingPair { place, events }
}

/// An event with its position in the execution that is shown.
fn fault_event(
    facts: &Facts<'_>,
    execution: &Execution,
    e: usize,
    at: Option<usize>,
) -> FaultEvent {
    let event = &facts.sk.events[e];
    let of_thread = event.thread.map(|t| facts.sk.program.thread(t));
    FaultEvent {
        event: witness::event(facts, execution, e),
        noun: noun(facts, event),
        at,
        span: of_thread.map(|thread| thread.code[event.instr].span),
    }
}

/// The model's clause about a relation, with the events filled in.
fn said(facts: &Facts<'_>, events: &[usize], clause: &str) -> String {
    let ends = [events.first(), events.last()].map(|e| {
        e.map(|&e| &facts.sk.events[e]).map_or(String::new(), |e| {
            format!("{}'s {}", owner(facts, e), noun(facts, e))
        })
    });
    clause.replace("{a}", &ends[0]).replace("{b}", &ends[1])
}

/// The state of an mbarrier object that a misused operation finds.
fn met(facts: &Facts<'_>, execution: &Execution, events: &[usize]) -> Option<String> {
    let (sk, &[misuse]) = (&facts.sk, events) else {
        return None;
    };
    let at = |e: usize| {
        Some((
            sk.events[e].thread?,
            sk.program.thread(sk.events[e].thread?).code[sk.events[e].instr].span,
        ))
    };
    let read = (0..misuse)
        .rev()
        .filter(|_| sk.events[misuse].tags.has(Tag::Misuse))
        .find(|&e| {
            let read = &sk.events[e];
            read.is_read()
                && read.tags.has(Tag::Mbarrier)
                && execution.executed.has(e)
                && at(e) == at(misuse)
        })?;
    let cell = witness::cell(facts, execution, read)?;
    let value = Eval::new(sk, &execution.known()).value(read)?;
    Some(format!(
        "it finds in `{}`: {}",
        sk.memory.cell(cell).name,
        sk.memory.show_in(&sk.program, cell, value)
    ))
}

/// The relations that mean a use after an end.
fn outlived(model: &Model) -> Vec<NodeId> {
    let flags = model.flags.iter();
    let flags = flags.filter(|flag| flag.effect == TestEffect::Lifetime);
    let nodes = flags.flat_map(|flag| parts(model, flag.node));
    nodes.map(|part| part.0).collect()
}

/// Whether a race is undefined behaviour under a model, whatever the values.
pub(crate) fn race_is_undefined(model: &Model) -> bool {
    let members = |effect: TestEffect| {
        let flags = model.flags.iter().filter(move |f| f.effect == effect);
        flags.flat_map(|f| parts(model, f.node)).map(|part| part.0)
    };
    let races: Vec<NodeId> = members(TestEffect::Race).collect();
    members(TestEffect::Undefined).any(|node| races.contains(&node))
}

/// The members of a union, in order, each with its name; a member without a name gets that of the
/// union. Any other node is its own only member.
fn parts(model: &Model, node: NodeId) -> Vec<(NodeId, Option<String>)> {
    let name = name(model, node);
    let NodeOp::Union(a, b) = model.node(node).op else {
        return vec![(node, name)];
    };
    let members = [parts(model, a), parts(model, b)].concat().into_iter();
    members
        .map(|(member, own)| (member, own.or(name.clone())))
        .collect()
}

/// The model's name of a node.
fn name(model: &Model, node: NodeId) -> Option<String> {
    let found = model.node(node);
    match (&found.name, &found.op) {
        (Some(name), _) => Some(name.clone()),
        (None, NodeOp::Base(id)) => Some(model.base(*id).name.to_owned()),
        // The inverse has the name of its operand.
        (None, NodeOp::Inverse(of)) => name_of_operand(model, *of),
        (None, NodeOp::IdentityOn(set)) => name_of_operand(model, *set),
        (None, NodeOp::Free(free)) => model.free.get(free.0 as usize).map(|f| f.name.clone()),
        _ => None,
    }
}

fn name_of_operand(model: &Model, node: NodeId) -> Option<String> {
    let found = model.node(node);
    found.name.clone().or_else(|| match &found.op {
        NodeOp::Base(id) => Some(model.base(*id).name.to_owned()),
        _ => None,
    })
}

/// The named relations on the right side of a difference, in source order, each once.
fn excuses(model: &Model, mut node: NodeId) -> Vec<String> {
    let mut taken = Vec::new();
    while let NodeOp::Diff(rest, away) = model.node(node).op {
        let names = named_parts(model, away);
        // The source has the innermost difference first.
        taken.splice(0..0, names);
        node = rest;
    }
    let mut once = Vec::new();
    for name in taken {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once
}

/// The names in a union; a named union counts as one.
fn named_parts(model: &Model, node: NodeId) -> Vec<String> {
    match (name(model, node), &model.node(node).op) {
        (Some(name), _) => vec![name],
        (None, NodeOp::Union(a, b)) => [named_parts(model, *a), named_parts(model, *b)].concat(),
        _ => Vec::new(),
    }
}

/// Why the model objects: the excuses that the pair lacks, and the properties of the two events.
fn reasons(facts: &Facts<'_>, node: NodeId, events: &[usize], place: Option<&str>) -> Vec<String> {
    let mut why = Vec::new();
    let named = match &facts.task.model.node(node).op {
        // `[X]` marks the events of a set.
        NodeOp::IdentityOn(set) => *set,
        _ => node,
    };
    if let NodeOp::Base(id) = facts.task.model.node(named).op {
        let row = signature::row(id);
        why.push(format!("`{}`: {}", row.name, row.meaning()));
    }
    let [i, j] = *events else { return why };
    let (a, b) = (&facts.sk.events[i], &facts.sk.events[j]);
    if let Some(place) = place {
        let writers: Vec<String> = [a, b]
            .iter()
            .filter(|e| e.is_write())
            .map(|e| format!("{} writes", owner(facts, e)))
            .collect();
        if !writers.is_empty() {
            why.push(format!(
                "they conflict: both access `{place}`, and {}",
                writers.join(", ")
            ));
        }
        access_reasons(facts, a, b, &mut why);
    } else {
        let (x, y) = (odd_tags(a, b), odd_tags(b, a));
        for (event, odd) in [(a, x), (b, y)] {
            if !odd.is_empty() {
                let what = format!("{}'s {}", owner(facts, event), noun(facts, event));
                why.push(format!("only {what} has {}", odd.join(", ")));
            }
        }
    }
    let excuses: Vec<String> = excuses(facts.task.model, node)
        .iter()
        .map(|n| format!("`{n}`"))
        .collect();
    match excuses.as_slice() {
        [] => {}
        [one] => why.push(format!("{one} would excuse them, and does not relate them")),
        [first @ .., last] => {
            why.push(format!(
                "{} or {last} would excuse them, and none relates them",
                first.join(", ")
            ));
        }
    }
    why
}

/// Reasons about two accesses: one is not atomic, or its scope does not include the other.
fn access_reasons(facts: &Facts<'_>, a: &Event, b: &Event, why: &mut Vec<String>) {
    let plain: Vec<&Event> = [a, b].into_iter().filter(|e| !is_atomic(e)).collect();
    match plain.as_slice() {
        [] => {}
        [one] => why.push(format!(
            "{}'s {} is not atomic",
            owner(facts, one),
            noun(facts, one)
        )),
        _ => why.push("neither is atomic".to_owned()),
    }
    if !plain.is_empty() {
        return;
    }
    let mut all_reach = true;
    for (x, y) in [(a, b), (b, a)] {
        let (Some(scope), Some(from), Some(to)) = (x.scope, x.thread, y.thread) else {
            continue;
        };
        let (from, to) = (facts.sk.program.thread(from), facts.sk.program.thread(to));
        if from.name != to.name && !from.place.same(&to.place, scope) {
            all_reach = false;
            why.push(format!(
                "the scope of {}'s {}, `{}`, does not include {}{}",
                from.name,
                noun(facts, x),
                scope_word(facts, scope),
                to.name,
                elsewhere(&from.place, &to.place, scope, facts.sk.program.dialect)
            ));
        }
    }
    if let (true, Some(x), Some(y)) = (all_reach, a.scope, b.scope)
        && x != y
    {
        let (x, y) = (scope_word(facts, x), scope_word(facts, y));
        why.push(format!(
            "their scopes include each other, but differ: `{x}` and `{y}`"
        ));
    }
}

fn is_atomic(event: &Event) -> bool {
    event.tags.has(Tag::Atomic)
        || (event.scope.is_some()
            && !event.tags.has(Tag::Weak)
            && event.scope != Some(Scope::Thread))
}

/// The group in which the other thread differs, by the scope that does not include it.
pub fn elsewhere(from: &Place, to: &Place, scope: Scope, dialect: Dialect) -> String {
    match scope {
        _ if to.host && !from.host => ", a thread of the host".to_owned(),
        _ if from.gpu != to.gpu => ", which runs on another device".to_owned(),
        Scope::Thread => ", which is another thread".to_owned(),
        Scope::Grid | Scope::Gpu | Scope::Sys => String::new(),
        _ => format!(", which runs in another {}", dialect.row().noun(scope)),
    }
}

/// A scope as the dialect writes it.
pub fn scope_word(facts: &Facts<'_>, scope: Scope) -> String {
    facts.sk.program.dialect.row().scope_word(scope)
}

/// The performer of an event: the name of its thread, an agent of it, or `init`.
pub fn owner(facts: &Facts<'_>, event: &Event) -> String {
    let Some(thread) = event.thread.map(|t| &facts.sk.program.thread(t).name) else {
        return "init".to_owned();
    };
    if event.is_asynchronous() {
        format!("{thread}'s agent")
    } else {
        thread.clone()
    }
}

/// The kind of event in a word or two.
pub fn noun(facts: &Facts<'_>, event: &Event) -> String {
    let plain = !facts.sk.program.dialect.row().weak && event.is_memory() && !is_atomic(event);
    let plain = if plain { "plain " } else { "" };
    let half = event.is_memory() && event.tags.has(Tag::Rmw);
    let word = if half {
        "read-modify-write"
    } else {
        event.kind.row().noun
    };
    format!("{plain}{word}")
}

/// Tags and scope that `event` has and `other` lacks, except the tags that mark halves of a
/// barrier.
fn odd_tags(event: &Event, other: &Event) -> Vec<String> {
    const HALVES: &[Tag] = &[
        Tag::Barrier,
        Tag::BarrierArrive,
        Tag::BarrierWait,
        Tag::EntryFence,
        Tag::ExitFence,
        Tag::Release,
        Tag::Acquire,
        Tag::Aligned,
    ];
    let odd = event.tags.without(HALVES);
    let mut odd: Vec<String> = odd
        .iter()
        .filter(|t| !other.tags.has(*t))
        .map(|t| format!("`{}`", t.name()))
        .collect();
    if let Some(scope) = event.scope
        && other.scope != event.scope
    {
        let tag = scope.row().sets.last().unwrap_or(&"");
        odd.push(format!("the scope `{tag}`"));
    }
    odd
}
