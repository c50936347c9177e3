//! Finds changes that make a racy program race-free, and says them.
//!
//! Changes that order the accesses come first: wider scopes, stronger orders, fences and their
//! flags, barriers, waits for copies and earlier kernels, calls of the host. If none of them helps,
//! plain memory becomes atomic. That alone may leave the test's condition allowed. If stronger
//! orders of the same accesses forbid it, the remedy has these; otherwise it says that the order of
//! values stays as open as before.
//!
//! # Invariants
//! - Nothing becomes weaker. The proposed program is defined, and hangs no more than the original.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::{Duration, Instant};

use engine::facts::Facts;
use program::edits::{Change, EditSite, enough};
use program::litmus::{LitmusTest, Quantifier};
use program::strength::{self, Order};
use program::{LocId, Program, Scope, SourceLine};
use verdict::{Answer, Change as Advised, Fault, FaultEvent, Need, Reason, Remedy, Verdict, Where};

use crate::knobs::{self, Around, Changes, Kind, Knob, Spot, Version, Written};
use crate::needs::ends;
use crate::search::{GivenUp, Search, of_test};
use crate::session::Session;
use crate::written::Source;

/// The number of programs decided before memory becomes atomic, and again after.
const DECISIONS: usize = 300;

/// A change that makes a program race-free.
pub(crate) struct Repair {
    pub(crate) remedy: Remedy,
    /// The changed test.
    pub(crate) version: Option<Version>,
    /// The changes.
    pub(crate) changes: Changes,
    /// The number of programs decided.
    pub(crate) decided: usize,
}

/// Looks for changes that remove the races of a test. `first` is one of its races, found in the
/// original program.
pub(crate) fn remedy(
    session: &Session<'_>,
    facts: &Facts<'_>,
    first: &Fault,
    deadline: Option<Instant>,
) -> Option<Repair> {
    let written = session.written();
    let program = &written.program;
    let around = Around::unbounded(program);
    // The plain accesses are known for the judged program.
    let source_of_mapping = !std::ptr::eq(written, session.test());
    let (mut knobs, source, weak): (Vec<Knob>, Source<'_>, Vec<Knob>) = match Source::new(written) {
        // Scopes and regions first: one that is too small is the likelier mistake. Then new text:
        // fences and barriers.
        Some(source) => {
            let buffers = knobs::buffers(&around)
                .into_iter()
                .filter_map(Knob::up)
                .collect();
            let words = [
                source.scopes(Scope::Sys),
                source.flags(),
                source.orders(),
                buffers,
            ];
            let kinds = words
                .into_iter()
                .chain([source.fences(enough(program)), source.waits()]);
            (kinds.flatten().collect(), source, Vec::new())
        }
        None => {
            let source = Source::assembly(written)?;
            let around = Around::new(program);
            let up = |kind: Kind| {
                kind(&around)
                    .into_iter()
                    .filter_map(Knob::up)
                    .filter_map(|k| k.writable(written))
            };
            let (weak, strong): (Vec<Knob>, Vec<Knob>) = up(knobs::orders).partition(|knob| {
                knob.instr(program)
                    .is_some_and(|instr| strength::is_plain(&instr.op))
            });
            let kinds = [
                up(knobs::scopes).collect(),
                strong,
                up(knobs::fences).collect(),
            ];
            let new = [
                up(knobs::proxy_fences_anywhere).collect(),
                up(knobs::fences_before).collect(),
            ];
            let kinds = kinds.into_iter().chain(new);
            let knobs: Vec<Knob> = kinds.flatten().collect();
            (
                knobs.into_iter().chain(source.waits()).collect(),
                source,
                weak,
            )
        }
    };
    let (barriers, straight) = source.barriers();
    let straight = knobs.len()..knobs.len() + straight;
    knobs.extend(barriers.into_iter().chain(source.calls()));
    let (mut ordered, orders) = (
        knobs.len(),
        program
            .instrs()
            .any(|(_, _, i)| strength::order(&i.op).is_some()),
    );
    // The last race found, and whether some tried program is left to implementations.
    let (race, left_open) = (RefCell::new(None::<Box<Fault>>), Cell::new(false));
    // Whether the condition has to be forbidden besides.
    let in_order = Cell::new(false);
    let race_free = |test: &LitmusTest, left| {
        let Some(judged) = session.judged(test) else {
            return Ok(false);
        };
        match session.of(&judged, left).race() {
            Some(Answer {
                verdict: Verdict::RaceFree,
                ..
            }) => Ok(ends(session, test, &judged, left)
                && (!in_order.get() || is_forbidden(session, &judged, left)?)),
            Some(Answer {
                verdict: Verdict::Racy,
                fault,
                ..
            }) => {
                race.replace(fault);
                Ok(false)
            }
            // A program that only some implementations define is no remedy.
            Some(Answer {
                verdict: Verdict::Undecided(Reason::ImplementationDefined { .. }),
                ..
            }) => {
                left_open.set(true);
                Ok(false)
            }
            Some(Answer {
                verdict: Verdict::Undecided(reason),
                ..
            }) => Err(GivenUp(reason)),
            _ => Err(GivenUp(Reason::Engine("the model knows no races".into()))),
        }
    };
    let decides = of_test(written, race_free);
    let mut search =
        Search::new(written, knobs, false, DECISIONS, deadline, decides).past_undecided();
    let mut found = search.one_two_or_all();
    if let (Ok(None), true) = (&found, straight.len() > 1) {
        // If several barriers are missing, none helps alone.
        let all = (0..search.knobs.len()).map(|i| {
            if straight.contains(&i) {
                search.knobs[i].top()
            } else {
                0
            }
        });
        let all = all.collect();
        found = search.first_of([all]);
    }
    // A barrier or a call may need another one, or a wait, beside it.
    if let Ok(None) = found {
        let pairs = search.pairs_alone();
        found = search.first_of(pairs);
    }
    // Threads with code of different text meet at a barrier.
    if let Ok(None) = found {
        let meetings = source.meetings();
        let none = vec![0; ordered];
        let alone = |at: usize| {
            let only = (0..meetings.len()).map(|i| usize::from(i == at));
            none.iter().copied().chain(only).collect()
        };
        let alone: Vec<Vec<usize>> = (0..meetings.len()).map(alone).collect();
        search.add(meetings);
        ordered = search.knobs.len();
        found = search.first_of(alone);
    }
    // The memory of the race becomes atomic, and then more memory, as long as races for it are
    // left.
    let (mut plain, mut object) = match source_of_mapping {
        true => (HashMap::new(), None),
        false => (plain_accesses(facts), first.object.clone()),
    };
    if let (Ok(None), false) = (&found, weak.is_empty()) {
        search.add(weak);
        let top = search.top();
        let alone = (0..top.len())
            .map(|i| if i < ordered { 0 } else { top[i] })
            .collect();
        (found, object) = (search.first_of([alone, top]), None);
    }
    while let Ok(None) = found {
        let Some((loc, accesses)) = object.and_then(|name| plain.remove(&name)) else {
            break;
        };
        let Some(knob) = source.atomicity(loc, &accesses) else {
            break;
        };
        search.add(vec![knob]);
        let top = search.top();
        let alone = (0..top.len())
            .map(|i| if i < ordered { 0 } else { top[i] })
            .collect();
        found = search.first_of([alone, top]);
        object = race.borrow().as_ref().and_then(|race| race.object.clone());
    }
    // Plain memory stays plain if it can, above all that of the first race: if the rest orders it,
    // fewer changes are left. Of the rest, added text goes first, and scopes last.
    let order = (ordered..search.knobs.len()).chain((0..ordered).rev());
    let strongest = found.as_ref().ok().cloned().flatten();
    let mut lowered = found.and_then(|found| {
        found
            .map(|setting| search.lowered(setting, order.clone()))
            .transpose()
    });
    if let (Ok(Some(setting)), Some(strongest)) = (&lowered, strongest) {
        let only_silences = search
            .turned(setting)
            .all(|(knob, level)| silences(program, knob, level));
        let unwanted = written.condition.is_some() && written.quantifier == Quantifier::Exists;
        if only_silences && unwanted {
            in_order.set(true);
            search.forget();
            let better = search.first_of([strongest]);
            let better = better.and_then(|found| {
                found
                    .map(|setting| search.lowered(setting, order))
                    .transpose()
            });
            match better {
                Ok(Some(better)) if better != *setting => lowered = Ok(Some(better)),
                _ => in_order.set(false),
            }
        }
    }
    let version = lowered.as_ref().ok().and_then(|found| {
        let setting = found.as_ref()?;
        Some((search.version(setting)?, search.changes(setting)))
    });
    let decided = search.decided();
    let remedy = match lowered {
        Ok(Some(setting)) => {
            let turned = search.turned(&setting);
            // What is ordered by the rest needs no warning.
            let warns = !in_order.get();
            let mut changes: Vec<Advised> = turned
                .flat_map(|(knob, level)| said(written, knob, level, first, warns))
                .collect();
            changes.sort_by_key(|c| c.line.number);
            Remedy::Changes(changes)
        }
        Ok(None) if search.open.is_some() => Remedy::Undecided(search.open.unwrap_or(Reason::Time)),
        Ok(None) if left_open.get() => Remedy::None(
            "nothing orders their commands, and atomic operations of several kernel instances on \
            one buffer are implementation-defined"
                .into(),
        ),
        Ok(None) if !orders => Remedy::None(
            "the program has no atomic operation or fence that could order them, and no added \
            barrier or call does"
                .into(),
        ),
        Ok(None) => Remedy::None(
            "they race even with every order and every scope as strong as can be written there"
                .into(),
        ),
        Err(GivenUp(reason)) => Remedy::Undecided(reason),
    };
    let (version, changes) = version.map_or((None, Changes::default()), |(version, changes)| {
        (Some(version), changes)
    });
    Some(Repair {
        remedy,
        version,
        changes,
        decided,
    })
}

/// Whether no execution of a program has the condition of the test.
fn is_forbidden(
    session: &Session<'_>,
    judged: &LitmusTest,
    left: Option<Duration>,
) -> Result<bool, GivenUp> {
    match session.of(judged, left).reachability(None, false).verdict {
        Verdict::Undecided(reason) => Err(GivenUp(reason)),
        verdict => Ok(verdict == Verdict::Forbidden),
    }
}

/// The plain accesses of a program, by the name of the location that they may access.
fn plain_accesses(facts: &Facts<'_>) -> HashMap<String, (LocId, Vec<Spot>)> {
    let sk = &facts.sk;
    let mut found = HashMap::new();
    for (e, event) in sk.events.iter().enumerate() {
        let Some(thread) = event.thread else { continue };
        let spot = (thread, event.instr);
        if !event.is_memory() || !strength::is_plain(&knobs::instr(&sk.program, spot).op) {
            continue;
        }
        for &cell in &facts.domains.cells[e] {
            let loc = sk.memory.cell(sk.memory.cell(cell).memory).location.0;
            let accesses = &mut found
                .entry(sk.program.location(loc).name.clone())
                .or_insert((loc, Vec::new()))
                .1;
            if !accesses.contains(&spot) {
                accesses.push(spot);
            }
        }
    }
    found
}

/// The changes of a knob in words; `first` is the race that is shown with them. `warns`: whether to
/// say that a change orders nothing.
fn said(test: &LitmusTest, knob: &Knob, level: usize, first: &Fault, warns: bool) -> Vec<Advised> {
    let program = &test.program;
    let location = knob.sites.iter().find_map(|site| match *site {
        EditSite::Location(loc) => Some(&program.location(loc).name),
        _ => None,
    });
    if let (Some(object), Some(_)) = (location, knob.change(level)) {
        let text = format!("`{object}` is fine-grained shared virtual memory with atomics");
        let reason = format!("`{object}` is a buffer: operations on it reach no other device");
        return vec![Advised {
            line: 0.into(),
            text,
            reason,
            edit: None,
        }];
    }
    let mut reason = reason(program, knob, location, first);
    let silences = warns && silences(program, knob, level);
    let change = |need: Need| {
        let Need {
            line,
            thread,
            what,
            instead,
            text,
            place,
        } = &need;
        let whose = if thread.is_empty() {
            String::new()
        } else {
            format!("{thread}'s ")
        };
        let text = match place {
            Where::Instead => format!("{whose}line {line} has `{instead}`, not `{what}`"),
            Where::Before => format!("{whose}line {line} has `{instead}` before `{text}`"),
            _ if text.is_empty() => format!("{whose}line {line} has `{instead}` in front"),
            _ => format!("{whose}line {line} has `{instead}` after `{text}`"),
        };
        let text = if silences {
            format!("{text} (values stay unordered)")
        } else {
            text
        };
        Advised {
            line: line.clone(),
            text,
            reason: std::mem::take(&mut reason),
            edit: Some(need),
        }
    };
    knob.needs(test, 0, level).into_iter().map(change).collect()
}

/// Whether a change makes accesses atomic and orders nothing: the race is gone, and the order of
/// values is as open as before.
fn silences(program: &Program, knob: &Knob, level: usize) -> bool {
    if let Some(Change::Atomic(order, _)) = knob.change(level) {
        return order == Order::Relaxed;
    }
    let relaxed = program.dialect.row().order_word(Order::Relaxed);
    let of_location = knob
        .sites
        .iter()
        .any(|site| matches!(site, EditSite::Location(_)));
    of_location && knob.says(level) == relaxed
}

/// Why the written text does not suffice; empty if the fault says so.
fn reason(program: &Program, knob: &Knob, location: Option<&String>, first: &Fault) -> String {
    if let Some(object) = location {
        return match first.object.as_ref() == Some(object) {
            true => {
                format!("nothing orders the accesses to `{object}`, and they are not all atomic")
            }
            false => format!("the accesses to `{object}` are not all atomic"),
        };
    }
    let spots: Vec<Spot> = knob.spots().collect();
    let Some(op) = knob.instr(program).map(|instr| &instr.op) else {
        return String::new();
    };
    let (line, name) = called(program, &spots);
    let row = program.dialect.row();
    match knob.kind() {
        Written::Scope => {
            let old = strength::scope(op).unwrap_or(Scope::Thread);
            let (owner, word) = (program.thread(spots[0].0), row.scope_word(old));
            // The fault itself says so of the racing accesses.
            let said =
                |e: &FaultEvent| (&e.event.line, &e.event.thread_name) == (&line, &owner.name);
            let out: Vec<&str> = (program.threads.iter())
                .filter(|t| t.name != owner.name && !owner.place.same(&t.place, old))
                .map(|t| t.name.as_str())
                .collect();
            match out.as_slice() {
                _ if first.events.iter().any(said) => String::new(),
                [] => format!(
                    "the scope `{word}` of {name} at line {line} differs from that of the other \
                    side"
                ),
                out => format!(
                    "`{word}` of {name} at line {line} does not include {}",
                    out.join(", ")
                ),
            }
        }
        Written::Order => {
            let old = strength::order(op).map_or("?", |o| row.order_word(o));
            format!("{name} at line {line} does not synchronize with `{old}`")
        }
        Written::Flags => {
            let what = if op.barrier().is_some() {
                "the barriers".to_owned()
            } else {
                format!("{name} at line {line}")
            };
            format!("the flags of {what} leave out memory that has to be ordered")
        }
        Written::Barrier | Written::Call | Written::More => String::new(),
    }
}

/// The line of an operation, and a name for it and its copies.
fn called(program: &Program, spots: &[Spot]) -> (SourceLine, String) {
    let Some(&first) = spots.first() else {
        return (0.into(), String::new());
    };
    let instr = knobs::instr(program, first);
    let name = |spot: &Spot| program.thread(spot.0).name.as_str();
    let owner = match spots {
        [first, .., last] => format!("the ({} to {})", name(first), name(last)),
        _ => format!("{}'s", name(&first)),
    };
    (instr.line.clone(), format!("{owner} {}", instr.op.noun()))
}
