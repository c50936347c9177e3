//! Replays a run of the executor as a candidate execution, through the plain evaluator.
//!
//! The run's own reads-from, coherence order and order of `fence.sc` are the candidate's free
//! relations, so there is no search. A run that the model rejects is found even if another
//! execution has the same outcome.
//!
//! # Limits
//! - A program with loops is replaced by the straight program of the run (`straight`). An iteration
//!   without effect stands for all later ones in the skeleton of a loop, so a run that continues
//!   after it has no counterpart there.
//! - Barriers with free choices are left out: a count or quorum smaller than the number of users,
//!   and waits that depend on values read. So are models with free relations other than those of
//!   values and final values and one order of fences.

use program::Tag;
use std::collections::BTreeMap;

use cat::rel::{EventSet, Rel};
use engine::eval::{Assignment, Eval};
use engine::execution::Execution;
use engine::facts::Facts;
use engine::replay::{Replay, declared, replay};
use engine::skeleton::Skeleton;
use program::EventKind;
use program::memory::CellId;
use simt::record::{RunEvent, WriteId};

/// The result of a replay.
pub(super) enum ReplayResult {
    /// The run is this consistent execution, with the outcome that the machine gave.
    Consistent(Box<(Execution, Replay)>),
    /// The run has no counterpart in the skeleton.
    LeftOut(&'static str),
}

/// Replays a finished run through the evaluator. `outcome` has the final values of the task's
/// observables.
///
/// # Errors
/// The law that it breaks.
pub(super) fn try_run(
    facts: &Facts<'_>,
    events: &[RunEvent],
    outcome: &[i64],
) -> Result<ReplayResult, String> {
    let (sk, model) = (&facts.sk, facts.task.model);
    assert!(!sk.has_loops, "loops are unrolled by the run itself");
    if facts.needed.is_some() {
        return Ok(ReplayResult::LeftOut("values too many to list"));
    }
    if sk.pool.choice_count() > 0 {
        return Ok(ReplayResult::LeftOut("barriers with free choices"));
    }
    // A run determines the sources of its reads, the order of writes, and one order of fences.
    let mut others = (0..model.free.len())
        .filter(|&i| i != model.values.0 as usize && i != model.finals.0 as usize);
    let of_fences = others.next();
    if others.next().is_some() {
        return Ok(ReplayResult::LeftOut("a free relation that no run decides"));
    }
    let MatchedRun {
        known,
        executed,
        writes,
        reads,
        mut fences,
    } = match_events(facts, events)?;
    let n = sk.len();
    fn event(s: &WriteId, writes: &BTreeMap<WriteId, usize>) -> Result<usize, String> {
        writes
            .get(s)
            .copied()
            .ok_or_else(|| format!("no event is the write {s:?}"))
    }
    let (mut rf, mut co, mut sc) = (Rel::empty(n), Rel::empty(n), Rel::empty(n));
    for (source, read) in &reads {
        rf.insert(event(source, &writes)?, *read);
    }
    for e in events {
        if let RunEvent::After(_, a, b) = e {
            co.insert(event(a, &writes)?, event(b, &writes)?);
        }
    }
    let co = co.plus(&executed);
    fences.sort_unstable();
    for (k, (_, a)) in fences.iter().enumerate() {
        let is_sc = |e: usize| sk.events[e].tags.has(Tag::SeqCst);
        for (_, b) in fences[k + 1..]
            .iter()
            .filter(|(_, b)| is_sc(*a) && is_sc(*b))
        {
            sc.insert(*a, *b);
        }
    }
    let finals = finals(facts, &known, &executed, &co, outcome)?;
    let free = (0..model.free.len())
        .map(|i| match i {
            _ if i == model.values.0 as usize => rf.clone(),
            _ if i == model.finals.0 as usize => co.clone(),
            _ => Rel::empty(n),
        })
        .collect();
    let mut execution = Execution {
        executed,
        reads: known.reads,
        choices: Vec::new(),
        free,
        finals,
    };
    if let Some(i) = of_fences {
        let within = declared(facts, &execution, model.free[i].within);
        if within.iter().any(|(a, b)| {
            [a, b]
                .iter()
                .any(|&e| sk.events[e].kind != EventKind::Fence)
        }) {
            return Ok(ReplayResult::LeftOut("a free relation that no run decides"));
        }
        // Fences that are not morally strong also commit in some order, which has no meaning.
        if let Some(covering) = model.free[i].covering {
            sc = sc.and(&declared(facts, &execution, covering));
        }
        execution.free[i] = sc.plus(&execution.executed);
    }
    let replayed = check(facts, &execution, outcome)?;
    Ok(ReplayResult::Consistent(Box::new((execution, replayed))))
}

/// The events of a run as events of the skeleton.
struct MatchedRun {
    /// The values of the reads.
    known: Assignment,
    executed: EventSet,
    /// The event of each write.
    writes: BTreeMap<WriteId, usize>,
    /// The executed reads, with their sources.
    reads: Vec<(WriteId, usize)>,
    /// The fences, with the positions of their commits.
    fences: Vec<(usize, usize)>,
}

/// The initial writes of a skeleton, by the executor's number of their memory: the executor counts
/// the cells of all memory.
fn initial_writes(sk: &Skeleton) -> BTreeMap<WriteId, usize> {
    let cells = sk.memory.cells.iter().enumerate();
    let own = cells.map(|(i, cell)| (CellId(i as u32), cell));
    let own = own
        .filter(|(id, cell)| cell.memory == *id)
        .map(|(id, _)| id);
    let mut left = sk.init_cells.iter().enumerate().peekable();
    let mut all = BTreeMap::new();
    for (location, id) in own.enumerate() {
        if let Some((event, _)) = left.next_if(|(_, cell)| **cell == id) {
            all.insert(WriteId::Initial(location), event);
        }
    }
    all
}

/// Matches the events of each thread with those of the skeleton.
///
/// # Errors
/// The event that has no counterpart.
fn match_events(facts: &Facts<'_>, events: &[RunEvent]) -> Result<MatchedRun, String> {
    let sk = &facts.sk;
    let n = sk.len();
    let mut run = MatchedRun {
        known: Assignment {
            reads: vec![None; n],
            choices: Vec::new(),
        },
        executed: EventSet::from_fn(n, |e| sk.event(e).kind == EventKind::Init),
        writes: initial_writes(sk),
        reads: Vec::new(),
        fences: Vec::new(),
    };
    let mut left: Vec<_> = sk
        .program
        .thread_ids()
        .map(|t| {
            let turns = events
                .iter()
                .enumerate()
                .filter(move |(_, e)| turn_of(e) == Some(usize::from(t.0)));
            let mine = (0..n).filter(move |&i| sk.events[i].thread == Some(t));
            (mine.peekable(), turns)
        })
        .collect();
    // A thread's steps may depend on values that others read, because they exchange them at
    // meetings.
    loop {
        let (mut moved, mut open) = (false, None);
        for (mine, turns) in &mut left {
            while let Some(&i) = mine.peek() {
                let Some(executes) = Eval::new(sk, &run.known).cond(sk.events[i].guard) else {
                    open.get_or_insert(i);
                    break;
                };
                mine.next();
                moved = true;
                if executes {
                    let (at, turn) = turns
                        .next()
                        .ok_or_else(|| format!("the run ends before event {i}"))?;
                    run.add(facts, i, at, turn)?;
                }
            }
        }
        match open {
            None => break,
            Some(_) if moved => {}
            Some(i) => {
                return Err(format!(
                    "whether event {i} executes does not follow from the run"
                ));
            }
        }
    }
    for (_, turns) in &mut left {
        if let Some((_, turn)) = turns.next() {
            return Err(format!(
                "the run goes on after the thread's last event: {turn:?}"
            ));
        }
    }
    Ok(run)
}

impl MatchedRun {
    /// Adds an event of the skeleton that the run executes as its event number `at`.
    fn add(
        &mut self,
        facts: &Facts<'_>,
        i: usize,
        at: usize,
        turn: &RunEvent,
    ) -> Result<(), String> {
        let event = &facts.sk.events[i];
        self.executed.insert(i);
        match (event.kind, turn) {
            (EventKind::Read, RunEvent::Read { source, value, .. }) => {
                self.known.reads[i] = Some(event.ty.wrap(*value));
                self.reads.push((*source, i));
            }
            (EventKind::Write, RunEvent::Commit(source)) => {
                self.writes.insert(*source, i);
            }
            (EventKind::Fence, RunEvent::Fence(_)) => self.fences.push((at, i)),
            (EventKind::Arrive, RunEvent::Arrive(..)) | (EventKind::Wait, RunEvent::Pass(..)) => {}
            (kind, turn) => {
                return Err(format!(
                    "event {i} is a {kind:?}, and the run has {turn:?} there"
                ));
            }
        }
        Ok(())
    }
}

/// Evaluates an execution, which has to be consistent, with the machine's outcome.
///
/// # Errors
/// The law that it breaks.
fn check(facts: &Facts<'_>, execution: &Execution, outcome: &[i64]) -> Result<Replay, String> {
    let replayed = replay(facts, execution)?;
    if let Some(&axiom) = replayed.rejected_by.first() {
        let axiom = &facts.task.model.axioms[axiom];
        return Err(format!("axiom `{}` rejects it", axiom.name));
    }
    if !replayed.complete {
        return Err("a thread does not run to its end".into());
    }
    if !replayed.state.iter().enumerate().all(|(i, v)| {
        let ty = facts.observable_ty(facts.observed[i]);
        ty.wrap(*v) == ty.wrap(outcome[i])
    }) {
        return Err(format!(
            "it ends in {:?}, and the machine in {outcome:?}",
            replayed.state
        ));
    }
    Ok(replayed)
}

/// The thread whose turn an event is.
fn turn_of(e: &RunEvent) -> Option<usize> {
    match e {
        RunEvent::Read { thread, .. } | RunEvent::Commit(WriteId::Write(thread, _)) => {
            Some(*thread)
        }
        RunEvent::Fence(at) | RunEvent::Arrive(at, _) | RunEvent::Pass(at, _) => Some(at.thread),
        _ => None,
    }
}

/// For each observed cell, a maximal write with the final value that the machine gave.
fn finals(
    facts: &Facts<'_>,
    known: &Assignment,
    executed: &EventSet,
    co: &Rel,
    outcome: &[i64],
) -> Result<Vec<(program::memory::CellId, usize)>, String> {
    let sk = &facts.sk;
    let mut eval = Eval::new(sk, known);
    let mut finals = Vec::new();
    for (o, &wanted) in facts.observed.iter().zip(outcome) {
        let Some(cell) = sk.observed_cell(*o) else {
            continue;
        };
        let last = (0..sk.len()).find(|&w| {
            sk.events[w].is_write()
                && executed.has(w)
                && eval.memory(w) == Some(Some(cell))
                && co.successors(w).next().is_none()
                && eval.value(w) == Some(wanted)
        });
        finals.push((cell, last.ok_or("no last write has the final value")?));
    }
    Ok(finals)
}
