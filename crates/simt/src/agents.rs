//! Asynchronous operations, run: each of their accesses is by an *agent*, a thread of its own.
//!
//! An instruction begins its agents with a copy of its thread's registers, and its thread goes on.
//! A read and the write that it feeds are one agent's, so that a tensor copy, all of which goes
//! where the map says that it has read, is one agent's, element by element; what an asynchronous
//! operation does to an mbarrier object when it is complete is another's, which waits for those.
//!
//! # Invariants
//! - Agents come behind the threads of the test, which keep their numbers and their code.
//! - An agent that was not begun, or is done, has ended.
//! - Agents are of no barrier. A kernel is not over before those that its threads have begun.
//! - An instruction that is come to again waits for its agents: they carry out one round at a time.
//!
//! # Sources
//! - PTX ISA 9.4, Memory Consistency Model, *Asynchronous Operations*; *Async-group mechanism*; *cp.async.mbarrier.arrive*.

use std::collections::BTreeSet;

use super::elements;
use program::litmus::LitmusTest;
use program::{Element, Instr, Op, Program, RegId, Tag, Tags, Thread, ThreadId};

/// Whose groups they are that an operation belongs to, or that a mark makes or waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Those of `cp.async`.
    Copies,
    /// Bulk groups.
    Bulk,
    /// Those of matrix instructions.
    Matrices,
}

/// A wait for groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Await {
    pub(super) group: Group,
    /// So many, the last ones, need not be complete.
    pub(super) pending: u32,
    /// Their reads alone.
    pub(super) reads: bool,
}

/// A thread that carries out part of an asynchronous operation.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    /// Who begins it.
    pub(super) owner: usize,
    /// Its instruction's micro-ops there.
    pub(super) instr: std::ops::Range<usize>,
    /// Its groups; `None`: it is in none.
    pub(super) group: Option<Group>,
    /// The agents that it waits for and tells of.
    pub(super) tells: Vec<usize>,
}

/// Why an agent is held that was begun.
pub(super) const WAITS: &str = "waits for the accesses of its operation";

/// The groups of a mark.
pub(super) fn group_of(tags: &Tags) -> Group {
    match () {
        () if tags.has(Tag::Wgmma) => Group::Matrices,
        () if tags.has_any(&[Tag::Bulk, Tag::AsyncProxy, Tag::TensormapProxy]) => Group::Bulk,
        () => Group::Copies,
    }
}

/// The test as it is run, with agents for what is asynchronous and the order of elements as
/// choices; `None` if it has neither.
///
/// # Errors
/// What the machine cannot do.
pub(super) fn taken_apart(test: &LitmusTest) -> Result<(Option<LitmusTest>, Vec<Agent>), String> {
    let (apart, agents) = apart(test)?.unzip();
    let mut agents = agents.unwrap_or_default();
    let Some((mut ordered, moved)) = elements::in_any_order(apart.as_ref().unwrap_or(test))? else {
        return Ok((apart, agents));
    };
    let threads = &mut ordered.program.threads;
    let first = threads.len() - agents.len();
    for (a, agent) in agents.iter_mut().enumerate() {
        let places = &moved[agent.owner];
        agent.instr = places[agent.instr.start]..places[agent.instr.end];
        // It begins with a copy of its owner's registers.
        threads[first + a].regs = threads[agent.owner].regs.clone();
    }
    Ok((Some(ordered), agents))
}

/// The test with agents, and these; `None` if it has nothing asynchronous.
///
/// # Errors
/// What agents cannot do.
fn apart(test: &LitmusTest) -> Result<Option<(LitmusTest, Vec<Agent>)>, String> {
    if test.program.asynchronous().is_none() {
        return Ok(None);
    }
    let mut new = test.clone();
    let mut agents = Vec::new();
    for t in test.program.thread_ids() {
        let code = &test.program.thread(t).code;
        let mut at = 0;
        while at < code.len() {
            let same = code[at..]
                .iter()
                .take_while(|i| i.span == code[at].span)
                .count();
            if let Some(skip) = code[at..at + same]
                .iter()
                .position(|i| i.op.has(Tag::Asynchronous))
            {
                // Its thread decides which of its accesses there are.
                let decides = |i: usize| {
                    let before = &code[at + skip..i];
                    matches!(code[i].op, Op::Branch { .. })
                        && !before.iter().any(|i| i.op.has(Tag::Mbarrier))
                };
                let mut from = at + skip;
                for to in (from..at + same).filter(|&i| decides(i)).chain([at + same]) {
                    if from < to {
                        of_instruction(&mut new.program, &mut agents, t, from..to)?;
                    }
                    from = to + 1;
                }
                for instr in &mut new.program.threads[usize::from(t.0)].code[at..at + same] {
                    instr.element = alone(instr.element);
                }
            }
            at += same;
        }
    }
    Ok(Some((new, agents)))
}

/// That of a micro-op that is in no order with its siblings, unless they are pieces of one scalar.
fn alone(element: Element) -> Element {
    if element.whole {
        element
    } else {
        Element {
            cells: element.cells,
            ..Element::ONLY
        }
    }
}

/// Makes the agents of an instruction of a thread.
fn of_instruction(
    program: &mut Program,
    agents: &mut Vec<Agent>,
    t: ThreadId,
    instr: std::ops::Range<usize>,
) -> Result<(), String> {
    let threads = program.threads.len() - agents.len();
    let all = program.thread(t).code[instr.clone()].to_vec();
    let owner = usize::from(t.0);
    // By part: where it begins, its micro-ops, and whether it is of an mbarrier object.
    let mut parts: Vec<(usize, Vec<Instr>, bool)> = Vec::new();
    // The part of the micro-op before.
    let mut latest = 0;
    for (i, op) in all.iter().enumerate() {
        let mut needs: Vec<RegId> = Vec::new();
        op.op
            .operands()
            .iter()
            .for_each(|e| e.registers(&mut |r| needs.push(r)));
        // A register is used again by the copies to another CTA: what was read last counts.
        let feeds = |need: &RegId| {
            parts
                .iter()
                .rposition(|p| !p.2 && p.1.iter().any(|o| o.op.defines() == Some(*need)))
        };
        let object = op.op.has(Tag::Mbarrier);
        let last_is_object = parts.last().is_some_and(|p| p.2);
        if op.element.whole && op.element.at > 0 {
            parts[latest].1.push(op.clone());
        } else if !object && last_is_object && !op.op.is_access() {
            parts.last_mut().expect("looked at").1.push(op.clone());
        } else if !op.op.is_access() {
            return Err(format!(
                "not in this machine: `{}`, an asynchronous operation of this form",
                op.text
            ));
        } else {
            // What needs several reads is done by the agent of the first, which makes the others,
            // too.
            let feeding: BTreeSet<usize> =
                needs.iter().filter(|_| !object).filter_map(feeds).collect();
            latest = feeding.first().copied().unwrap_or(parts.len());
            if latest == parts.len() {
                parts.push((i, Vec::new(), object));
            }
            let others = feeding
                .iter()
                .skip(1)
                .rev()
                .map(|&p| parts.remove(p).1)
                .collect::<Vec<_>>();
            parts[latest]
                .1
                .extend(others.into_iter().rev().flatten().chain([op.clone()]));
        }
    }
    let mut data: Vec<usize> = Vec::new();
    let tracked = parts.iter().any(|p| p.2);
    let reads_map = all.iter().any(|i| i.op.has(Tag::TensormapProxy));
    if tracked
        && reads_map
        && program
            .thread(t)
            .code
            .iter()
            .any(|i| i.op.has(Tag::WaitGroupRead))
    {
        let what = "which reads a tensor map, is in no group, and stands beside a wait for the reads of groups";
        return Err(format!("not in this machine: `{}`, {what}", all[0].text));
    }
    for (first, mut code, object) in parts {
        let number = threads + agents.len();
        for micro in &mut code {
            micro.element = alone(micro.element);
            if let Some(target) = micro.op.target_mut() {
                *target -= instr.start + first;
            }
        }
        let tells = match (object, data.is_empty()) {
            (false, _) => Vec::new(),
            (true, false) => std::mem::take(&mut data),
            // Of all copies by `cp.async` that its thread has begun.
            (true, true) => (0..agents.len())
                .filter(|&a| agents[a].owner == owner && agents[a].group == Some(Group::Copies))
                .map(|a| threads + a)
                .collect(),
        };
        if !object {
            data.push(number);
        }
        let weak = code.iter().any(|i| i.op.has(Tag::Weak));
        let tags = code
            .iter()
            .find_map(|i| i.op.accesses().next())
            .map(|a| group_of(&a.tags));
        let group = tags.filter(|g| !tracked && !object && (weak || *g != Group::Copies));
        agents.push(Agent {
            owner,
            instr: instr.clone(),
            group,
            tells,
        });
        let of = program.thread(t);
        let thread = Thread {
            name: format!("{}'s copy {}", of.name, agents.len()),
            code,
            ..of.clone()
        };
        program.threads.push(thread);
    }
    Ok(())
}
