//! A run of the executor as a candidate execution, put before the plain evaluator.
//!
//! The run's own reads-from, coherence order and order of `fence.sc` are the candidate's free
//! relations: nothing is searched for. So a run that the model rejects is found even where some
//! other execution has the same outcome.
//!
//! # Limits
//! - Runs of programs with loops come as the straight program that they went through (`straight`):
//!   an iteration without effect stands in the skeleton of a loop for every further one, so a run
//!   that goes on after one has no counterpart there.
//! - Barriers with free choices (a smaller count or quorum than there are users, waits that depend
//!   on what is read) are left out, and models with other free relations than those of values and
//!   final values and one order of fences.

use std::collections::BTreeMap;

use cat::rel::{EventSet, Rel};
use engine::eval::{Assignment, Eval};
use engine::execution::Execution;
use engine::replay::{Replay, declared, replay};
use engine::task::Task;
use program::EventKind;
use simt::record::{Event, Source};

/// What came of it.
pub(super) enum Tried {
    /// The run is this consistent execution, and ends as the machine says.
    Consistent(Box<(Execution, Replay)>),
    /// It has no counterpart in the skeleton.
    LeftOut(&'static str),
}

/// Puts a finished run before the evaluator. `outcome` has the final values of the task's
/// observables.
///
/// # Errors
/// The law that it breaks.
pub(super) fn try_run(task: &Task<'_>, events: &[Event], outcome: &[i64]) -> Result<Tried, String> {
    let (sk, model) = (&task.sk, task.model);
    assert!(!sk.has_loops, "loops are unrolled by the run itself");
    if task.needed.is_some() {
        return Ok(Tried::LeftOut("values that are too many to be listed"));
    }
    if sk.pool.choice_count() > 0 {
        return Ok(Tried::LeftOut("barriers with free choices"));
    }
    // A run decides what its reads see, the order of writes, and one order of fences.
    let mut others = (0..model.free.len())
        .filter(|&i| i != model.values.0 as usize && i != model.finals.0 as usize);
    let of_fences = others.next();
    if others.next().is_some() {
        return Ok(Tried::LeftOut("a free relation that no run decides"));
    }
    let n = sk.len();
    let mut known = Assignment {
        reads: vec![None; n],
        choices: Vec::new(),
    };
    let mut executed = EventSet::from_fn(n, |e| sk.event(e).kind == EventKind::Init);
    // By source, its event; by executed read, its source; fences in the order in which they were
    // committed.
    let mut writes: BTreeMap<Source, usize> = (0..sk.init_cells.len())
        .map(|i| (Source::Initial(i), i))
        .collect();
    let (mut reads, mut fences) = (Vec::new(), Vec::new());
    let mut left: Vec<_> = sk
        .program
        .thread_ids()
        .map(|t| {
            let turns = events
                .iter()
                .enumerate()
                .filter(move |(_, e)| turn_of(e) == Some(usize::from(t.0)));
            (
                (0..n)
                    .filter(move |&i| sk.events[i].thread == Some(t))
                    .peekable(),
                turns,
            )
        })
        .collect();
    // What a thread does may depend on what others read, whose values it takes where they meet.
    loop {
        let (mut moved, mut open) = (false, None);
        for (mine, turns) in &mut left {
            while let Some(&i) = mine.peek() {
                let event = &sk.events[i];
                let Some(executes) = Eval::new(sk, &known).cond(event.guard) else {
                    open.get_or_insert(i);
                    break;
                };
                mine.next();
                moved = true;
                if !executes {
                    continue;
                }
                executed.insert(i);
                let (at, turn) = turns
                    .next()
                    .ok_or_else(|| format!("the run ends before event {i}"))?;
                match (event.kind, turn) {
                    (EventKind::Read, Event::Read { source, value, .. }) => {
                        known.reads[i] = Some(event.ty.wrap(*value));
                        reads.push((*source, i));
                    }
                    (EventKind::Write, Event::Commit(source)) => {
                        writes.insert(*source, i);
                    }
                    (EventKind::Fence, Event::Fence(_)) => fences.push((at, i)),
                    (EventKind::Arrive, Event::Arrive(..)) | (EventKind::Wait, Event::Pass(..)) => {
                    }
                    (kind, turn) => {
                        return Err(format!(
                            "event {i} is a {kind:?}, and the run has {turn:?} there"
                        ));
                    }
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
    let event = |s: &Source| {
        writes
            .get(s)
            .copied()
            .ok_or_else(|| format!("no event is the write {s:?}"))
    };
    let (mut rf, mut co, mut sc) = (Rel::empty(n), Rel::empty(n), Rel::empty(n));
    for (source, read) in &reads {
        rf.insert(event(source)?, *read);
    }
    for e in events {
        if let Event::After(_, a, b) = e {
            co.insert(event(a)?, event(b)?);
        }
    }
    let co = co.plus(&executed);
    fences.sort_unstable();
    for (k, (_, a)) in fences.iter().enumerate() {
        let is_sc = |e: usize| sk.events[e].tags.has("SC");
        for (_, b) in fences[k + 1..]
            .iter()
            .filter(|(_, b)| is_sc(*a) && is_sc(*b))
        {
            sc.insert(*a, *b);
        }
    }
    let finals = finals(task, &known, &executed, &co, outcome)?;
    let relation = |i: usize| match i {
        _ if i == model.values.0 as usize => rf.clone(),
        _ if i == model.finals.0 as usize => co.clone(),
        _ => Rel::empty(n),
    };
    let free = (0..model.free.len()).map(relation).collect();
    let mut execution = Execution {
        executed,
        reads: known.reads,
        choices: Vec::new(),
        free,
        finals,
    };
    if let Some(i) = of_fences {
        let within = declared(task, &execution, model.free[i].within);
        if within.iter().any(|(a, b)| {
            [a, b]
                .iter()
                .any(|&e| sk.events[e].kind != EventKind::Fence)
        }) {
            return Ok(Tried::LeftOut("a free relation that no run decides"));
        }
        // Fences that are not morally strong commit in some order, too, but nothing follows from
        // it.
        if let Some(covering) = model.free[i].covering {
            sc = sc.and(&declared(task, &execution, covering));
        }
        execution.free[i] = sc.plus(&execution.executed);
    }
    let replayed = replay(task, &execution)?;
    if let Some(&axiom) = replayed.rejected_by.first() {
        return Err(format!("axiom `{}` rejects it", model.axioms[axiom].name));
    }
    if !replayed.complete {
        return Err("a thread does not run to its end".into());
    }
    let wrapped = |(o, v): (&_, &i64)| task.observable_ty(*o).wrap(*v);
    let same = |(i, v): (usize, &i64)| {
        wrapped((&task.observed[i], v)) == wrapped((&task.observed[i], &outcome[i]))
    };
    if !replayed.state.iter().enumerate().all(same) {
        return Err(format!(
            "it ends in {:?}, and the machine in {outcome:?}",
            replayed.state
        ));
    }
    Ok(Tried::Consistent(Box::new((execution, replayed))))
}

/// The thread whose turn an event is.
fn turn_of(e: &Event) -> Option<usize> {
    match e {
        Event::Read { thread, .. } | Event::Commit(Source::Write(thread, _)) => Some(*thread),
        Event::Fence(at) | Event::Arrive(at, _) | Event::Pass(at, _) => Some(at.thread),
        _ => None,
    }
}

/// For each observed cell, a maximal write with the value that the machine ended with.
fn finals(
    task: &Task<'_>,
    known: &Assignment,
    executed: &EventSet,
    co: &Rel,
    outcome: &[i64],
) -> Result<Vec<(program::memory::CellId, usize)>, String> {
    let sk = &task.sk;
    let mut eval = Eval::new(sk, known);
    let mut finals = Vec::new();
    for (o, &wanted) in task.observed.iter().zip(outcome) {
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
        finals.push((cell, last.ok_or("a final value is that of no last write")?));
    }
    Ok(finals)
}
