//! What would make a racy program race-free: wider scopes, stronger orders, fence flags, atomic accesses; and how to say
//! it. Only where no order and no scope helps is plain memory made atomic.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::Instant;

use engine::task::Task;
use program::edits::{self, Site};
use program::litmus::LitmusTest;
use program::strength::{self, Order};
use program::{LocId, Program, Scope};
use verdict::{Answer, Change, Fault, FaultEvent, Reason, Remedy, Verdict};

use crate::knobs::{self, Around, Knob, Spot};
use crate::search::{GivenUp, Search};
use crate::session::Session;

/// At most so many programs are decided before, and as many after memory is made atomic.
const DECISIONS: usize = 300;

/// Looks for what removes the races of a test; `first` is one of them, found in the program as it is.
pub(crate) fn remedy(session: &Session<'_>, task: &Task<'_>, first: &Fault, deadline: Option<Instant>) -> Remedy {
    let program = &session.test().program;
    let around = Around::unbounded(program);
    // Barriers that meet have the same flags.
    let is_fence = |knob: &Knob| knob.instr(program).is_some_and(|i| i.op.is_fence());
    let (fences, barriers): (Vec<Knob>, Vec<Knob>) = knobs::flags(&around).into_iter().partition(is_fence);
    // Scopes first: one that is too small is the likelier mistake.
    let kinds = [knobs::scopes(&around), knobs::strengths(&around), fences, knobs::buffers(&around)];
    let knobs = kinds.into_iter().flatten().chain(Knob::joined(barriers));
    let knobs: Vec<Knob> = knobs.filter_map(Knob::up).collect();
    let (ordered, orders) = (knobs.len(), program.instrs().any(|(_, _, i)| strength::order(&i.op).is_some()));
    // The last race that was found, and whether some program that was tried is left to implementations.
    let (race, left_open) = (RefCell::new(None::<Box<Fault>>), Cell::new(false));
    let race_free = |test: &LitmusTest, left| match session.of(test, left).race() {
        Some(Answer { verdict: Verdict::RaceFree, .. }) => Ok(true),
        Some(Answer { verdict: Verdict::Racy, fault, .. }) => {
            race.replace(fault);
            Ok(false)
        }
        // That helps no program that has to work everywhere.
        Some(Answer { verdict: Verdict::Undecided(Reason::ImplementationDefined { .. }), .. }) => {
            left_open.set(true);
            Ok(false)
        }
        Some(Answer { verdict: Verdict::Undecided(reason), .. }) => Err(GivenUp(reason)),
        _ => Err(GivenUp(Reason::Engine("the model knows no races".into()))),
    };
    let mut search = Search::new(session.test(), knobs, (false, DECISIONS, deadline), race_free);
    let mut found = search.one_two_or_all();
    // The memory that the accesses race for becomes atomic, and then, as long as there are races for other memory, more
    // of it.
    let (mut plain, mut object) = (plain_accesses(task), first.object.clone());
    while let Ok(None) = found {
        let Some((loc, accesses)) = object.and_then(|name| plain.remove(&name)) else { break };
        search.add(vec![knobs::atomicity(program, loc, &accesses)]);
        let top = search.top();
        let alone = (0..top.len()).map(|i| if i < ordered { 0 } else { top[i] }).collect();
        found = search.first_of([alone, top]);
        object = race.borrow().as_ref().and_then(|race| race.object.clone());
    }
    // Plain memory stays plain if it can, above all that of the first race: if the rest orders it, fewer changes are left.
    let lowered = found.and_then(|found| {
        let order = (ordered..search.knobs.len()).chain(0..ordered);
        found.map(|setting| search.lowered(setting, order)).transpose()
    });
    match lowered {
        Ok(Some(setting)) => {
            let turned = search.turned(&setting);
            let mut changes: Vec<Change> = turned.map(|(knob, level)| said(program, knob, level, first)).collect();
            changes.sort_by_key(|c| c.line);
            Remedy::Changes(changes)
        }
        Ok(None) if left_open.get() => Remedy::None(
            "they belong to commands that nothing orders, and what atomic operations of several kernel instances do to one \
             buffer is left to implementations"
                .into(),
        ),
        Ok(None) if !orders => Remedy::None("the program has no atomic operation and no fence that could order them".into()),
        Ok(None) => Remedy::None("they race even with every order seq_cst and every scope as wide as it can be".into()),
        Err(GivenUp(reason)) => Remedy::Undecided(reason),
    }
}

/// The plain accesses of a program, by the name of the location that they may be to.
fn plain_accesses(task: &Task<'_>) -> HashMap<String, (LocId, Vec<Spot>)> {
    let sk = &task.sk;
    let mut found = HashMap::new();
    for (e, event) in sk.events.iter().enumerate() {
        let Some(thread) = event.thread else { continue };
        let spot = (thread, event.instr);
        if !event.is_memory() || !strength::is_plain(&knobs::instr(&sk.program, spot).op) {
            continue;
        }
        for &cell in &task.domains.cells[e] {
            let loc = sk.memory.cell(sk.memory.cell(cell).memory).location.0;
            let accesses = &mut found.entry(sk.program.location(loc).name.clone()).or_insert((loc, Vec::new())).1;
            if !accesses.contains(&spot) {
                accesses.push(spot);
            }
        }
    }
    found
}

/// A change in words; `first` is the race that is shown with it.
fn said(program: &Program, knob: &Knob, level: usize, first: &Fault) -> Change {
    let spots: Vec<Spot> = knob.spots().collect();
    let location = knob.sites.iter().find_map(|site| match *site {
        Site::Location(loc) => Some(&program.location(loc).name),
        _ => None,
    });
    let (line, name) = called(program, &spots);
    let own = spots.first().map(|&spot| &knobs::instr(program, spot).op);
    let row = program.dialect.row();
    let word = |s: Scope| row.scope_word(s);
    let (line, text, reason) = match (knob.change(level), location) {
        (Some(edits::Change::Order(new)), _) => {
            let (old, new) =
                (own.and_then(strength::order).map_or("?", |o| row.order_word(o)), row.order_word(new));
            (
                line,
                format!("{name} at line {line} has `{new}`, not `{old}`"),
                format!("{name} at line {line} does not synchronize with `{old}`: it takes `{new}`"),
            )
        }
        (Some(edits::Change::Scope(new)), _) => {
            let old = own.and_then(strength::scope).unwrap_or(Scope::Thread);
            let (owner, word, new) = (program.thread(spots[0].0), word(old), word(new));
            // Of the accesses that race, the fault itself says so.
            let said = |e: &FaultEvent| (e.event.line, &e.event.thread_name) == (line, &owner.name);
            let out: Vec<&str> = (program.threads.iter())
                .filter(|t| t.name != owner.name && !owner.place.same(&t.place, old))
                .map(|t| t.name.as_str())
                .collect();
            let reason = match out.as_slice() {
                _ if first.events.iter().any(said) => String::new(),
                [] => format!("`{word}` of {name} at line {line} is not the scope of what it should meet"),
                out => format!("`{word}` of {name} at line {line} does not include {}", out.join(", ")),
            };
            (line, format!("{name} at line {line} has `{new}`, not `{word}`"), reason)
        }
        (Some(edits::Change::Atomic(order, scope)), Some(object)) => {
            let how = match order {
                Order::SeqCst => "`memory_order_seq_cst`",
                Order::AcqRel => "`memory_order_release` for stores, `memory_order_acquire` for loads",
                _ => "`memory_order_relaxed` is enough",
            };
            let at = scope.map_or(String::new(), |s| format!(" at `{}`", word(s)));
            let reason = if first.object.as_ref() == Some(object) {
                format!("nothing orders the accesses to `{object}`, and they are not all atomic")
            } else {
                format!("the accesses to `{object}` are not all atomic")
            };
            (0, format!("every access to `{object}` is atomic{at} ({how})"), reason)
        }
        (_, Some(object)) => (
            0,
            format!("`{object}` is fine-grained shared virtual memory with atomics"),
            format!("`{object}` is a buffer: operations on it reach no other device"),
        ),
        (_, None) => {
            let (what, have) = match own {
                Some(op) if op.barrier().is_some() => ("the barriers".to_owned(), "have"),
                _ => (format!("{name} at line {line}"), "has"),
            };
            (
                line,
                format!("{what} {have} `{}`", strength::ALL_FLAGS),
                format!("the flags of {what} leave out memory that has to be ordered"),
            )
        }
    };
    Change { line, text, reason }
}

/// The line of an operation, and what to call it and its copies.
fn called(program: &Program, spots: &[Spot]) -> (u32, String) {
    let Some(&first) = spots.first() else { return (0, String::new()) };
    let instr = knobs::instr(program, first);
    let name = |spot: &Spot| program.thread(spot.0).name.as_str();
    let owner = match spots {
        [first, .., last] => format!("the ({} to {})", name(first), name(last)),
        _ => format!("{}'s", name(&first)),
    };
    (instr.line, format!("{owner} {}", instr.op.noun()))
}
