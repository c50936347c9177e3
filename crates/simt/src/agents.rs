//! Runs asynchronous operations: an *agent*, a thread added to the test, performs each of their
//! accesses.
//!
//! An instruction begins its agents with a copy of its thread's registers, and its thread goes on.
//! One agent performs a read and the write that it feeds. A tensor copy is one agent, element by
//! element, because the map that it reads decides where every element goes. A second agent
//! completes the operation at the mbarrier object; it waits for the agents of the accesses.
//!
//! # Invariants
//! - Agents come behind the threads of the test, which keep their numbers and their code.
//! - An agent that has not begun, or is done, counts as ended.
//! - Agents belong to no barrier. A kernel ends only after the agents that its threads began.
//! - An instruction that is executed again waits for its agents: they carry out one round at a
//!   time.
//!
//! # Sources
//! - PTX ISA 9.4, Memory Consistency Model, *Asynchronous Operations*; *Async-group mechanism*;
//!   *cp.async.mbarrier.arrive*.

use std::collections::BTreeSet;

use super::elements;
use program::litmus::LitmusTest;
use program::{Element, Instr, Op, Program, RegId, Scope, Tag, Tags, Thread, ThreadId};

/// A family of instructions with common groups: operations join groups of their family, marks make
/// them, waits await them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Groups of `cp.async`.
    Copies,
    /// Bulk groups.
    Bulk,
    /// Groups of matrix instructions (`wgmma`).
    Matrices,
    /// The reads of tensor cores, which `tcgen05.commit` awaits.
    Cores,
}

/// A wait for groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Await {
    pub(super) group: Group,
    /// The number of latest groups that need not be complete.
    pub(super) pending: u32,
    /// Whether the wait is only for the reads of the operations.
    pub(super) reads: bool,
}

/// A thread that carries out part of an asynchronous operation.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    /// The thread that begins it.
    pub(super) owner: usize,
    /// The micro-ops of its instruction in the owner's code.
    pub(super) instr: std::ops::Range<usize>,
    /// The family of groups that it joins; `None`: no group.
    pub(super) group: Option<Group>,
    /// The agents that it waits for and whose end it reports to an mbarrier object.
    pub(super) tells: Vec<usize>,
}

/// The reason in messages why an agent that has begun cannot step.
pub(super) const WAITS: &str = "waits for the accesses of its operation";

/// The family of groups that a mark is about.
pub(super) fn group_of(tags: &Tags) -> Group {
    match () {
        () if tags.has(Tag::Wgmma) => Group::Matrices,
        () if tags.has(Tag::TensorCore) => Group::Cores,
        () if tags.has_any(&[Tag::Bulk, Tag::AsyncProxy, Tag::TensormapProxy]) => Group::Bulk,
        () => Group::Copies,
    }
}

/// Rewrites a test for the machine: agents perform the asynchronous accesses, and choices order the
/// elements of vectors. Returns `None` if the test has neither.
///
/// # Errors
/// If the machine cannot run the test.
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
        // An agent begins with a copy of its owner's registers.
        threads[first + a].regs = threads[agent.owner].regs.clone();
    }
    Ok((Some(ordered), agents))
}

/// The test with agents, and the agents; `None` if the test has nothing asynchronous.
///
/// # Errors
/// If agents cannot carry out an operation.
fn apart(test: &LitmusTest) -> Result<Option<(LitmusTest, Vec<Agent>)>, String> {
    if test.program.asynchronous().is_none() {
        return Ok(None);
    }
    if let Some(instr) = test.program.tiled() {
        let what = "an access to a tile by a CTA of more than 32 threads";
        return Err(format!("not in this machine: `{}`, {what}", instr.text));
    }
    one_for_each_warpgroup(&test.program)?;
    let mut new = test.clone();
    let mut agents = Vec::new();
    for t in test.program.thread_ids() {
        let code = &test.program.thread(t).code;
        let mut at = 0;
        while at < code.len() {
            let same = code[at..]
                .iter()
                .take_while(|i| i.id == code[at].id)
                .count();
            if let Some(skip) = code[at..at + same]
                .iter()
                .position(|i| i.op.has(Tag::Asynchronous))
            {
                // The thread itself skips the accesses that do not happen.
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

/// Refuses matrix instructions of several threads of a warpgroup: a wait by one of them is for the
/// reads of all, and agents know their own thread alone.
fn one_for_each_warpgroup(program: &Program) -> Result<(), String> {
    let mut seen: Vec<ThreadId> = Vec::new();
    for t in program.thread_ids() {
        let thread = program.thread(t);
        let mut reads = thread.code.iter().filter(|instr| {
            let mut all = instr.op.accesses();
            all.any(|access| access.tags.has(Tag::Wgmma))
        });
        let (Some(first), Some(warp)) = (reads.next(), thread.place.warp) else {
            continue;
        };
        let together = |other: &ThreadId| {
            let other = &program.thread(*other).place;
            other.same(&thread.place, Scope::Cta) && other.warp.is_some_and(|w| w / 4 == warp / 4)
        };
        if seen.iter().any(together) {
            return Err(format!(
                "not in this machine: `{}` by several threads of a warpgroup",
                first.text
            ));
        }
        seen.push(t);
    }
    Ok(())
}

/// The element of a micro-op that has no order with its siblings, unless they are pieces of one
/// scalar.
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

/// The micro-ops of an instruction that one agent performs.
struct AgentPart {
    /// The index of its first micro-op in the instruction.
    first: usize,
    code: Vec<Instr>,
    /// Whether it is about an mbarrier object.
    object: bool,
}

/// Divides the micro-ops of an instruction among agents.
fn parts(all: &[Instr]) -> Result<Vec<AgentPart>, String> {
    let mut parts: Vec<AgentPart> = Vec::new();
    // The part of the previous micro-op.
    let mut latest = 0;
    for (i, op) in all.iter().enumerate() {
        let object = op.op.has(Tag::Mbarrier);
        let last_is_object = parts.last().is_some_and(|p| p.object);
        if op.element.whole && op.element.at > 0 {
            parts[latest].code.push(op.clone());
        } else if !object && last_is_object && !op.op.is_access() {
            parts.last_mut().expect("looked at").code.push(op.clone());
        } else if !op.op.is_access() {
            return Err(format!(
                "not in this machine: `{}`, an asynchronous operation of this form",
                op.text
            ));
        } else {
            // If a micro-op needs several reads, the agent of the first performs it and the other
            // reads.
            let feeding = match object {
                true => BTreeSet::new(),
                false => feeding(&parts, op),
            };
            latest = feeding.first().copied().unwrap_or(parts.len());
            if latest == parts.len() {
                parts.push(AgentPart {
                    first: i,
                    code: Vec::new(),
                    object,
                });
            }
            let others = feeding
                .iter()
                .skip(1)
                .rev()
                .map(|&p| parts.remove(p).code)
                .collect::<Vec<_>>();
            parts[latest]
                .code
                .extend(others.into_iter().rev().flatten().chain([op.clone()]));
        }
    }
    Ok(parts)
}

/// The parts with the reads that a micro-op needs. The copies to another CTA use a register again:
/// the latest read counts.
fn feeding(parts: &[AgentPart], op: &Instr) -> BTreeSet<usize> {
    let mut needs: Vec<RegId> = Vec::new();
    for e in op.op.operands() {
        e.registers(&mut |r| needs.push(r));
    }
    needs
        .iter()
        .filter_map(|need| {
            parts
                .iter()
                .rposition(|p| !p.object && p.code.iter().any(|o| o.op.defines() == Some(*need)))
        })
        .collect()
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
    let parts = parts(&all)?;
    let mut data: Vec<usize> = Vec::new();
    let tracked = parts.iter().any(|p| p.object);
    let reads_map = all.iter().any(|i| i.op.has(Tag::TensormapProxy));
    if tracked
        && reads_map
        && program
            .thread(t)
            .code
            .iter()
            .any(|i| i.op.has(Tag::WaitGroupRead))
    {
        let what = "which reads a tensor map and is in no group, in a thread that waits for the \
            reads of groups";
        return Err(format!("not in this machine: `{}`, {what}", all[0].text));
    }
    for part in parts {
        let (mut code, object) = (part.code, part.object);
        let number = threads + agents.len();
        for micro in &mut code {
            micro.element = alone(micro.element);
            if let Some(target) = micro.op.target_mut() {
                *target -= instr.start + part.first;
            }
        }
        let tells = match (object, data.is_empty()) {
            (false, _) => Vec::new(),
            (true, false) => std::mem::take(&mut data),
            // It waits for all copies by `cp.async`, or reads of tensor cores, that its thread has
            // begun.
            (true, true) => {
                let of_cores = code.iter().any(|i| i.op.has(Tag::TensorCore));
                let awaited = match of_cores {
                    true => Group::Cores,
                    false => Group::Copies,
                };
                (0..agents.len())
                    .filter(|&a| agents[a].owner == owner && agents[a].group == Some(awaited))
                    .map(|a| threads + a)
                    .collect()
            }
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
