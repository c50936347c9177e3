//! Explains why a run does not go on: threads that wait or spin, and the threads that could end
//! that.

use super::agents;
use super::code::Code;
use super::memory::Backend;
use super::schedule::StopReason;
use super::set::Set;
use super::state::MachineState;
use super::step::Machine;
use super::thread::{ThreadState, ThreadStatus};
use super::waits::{self, Obstacle, innermost};
use program::Expr;

/// The largest number of names in a row.
const MAX_NAMES: usize = 6;

/// The reasons of a state in which no thread can step.
pub(super) fn stuck<B: Backend>(machine: &Machine<'_, B>, state: &MachineState<B>) -> StopReason {
    let all: Vec<(usize, String)> = (0..state.threads.len())
        .filter(|&t| !state.threads[t].is_over())
        .map(|t| (t, situation(machine, state, t)))
        .collect();
    let mut why = grouped(machine.code, all);
    why.extend(missing(machine, state));
    why.extend(state.host.pending(machine.code, &state.threads));
    StopReason {
        why,
        ends: waits::ends(machine, state, None),
    }
}

/// The reasons of a state in which threads step without progress; `turning` lists those threads, if
/// known.
pub(super) fn spinning<B: Backend>(
    machine: &Machine<'_, B>,
    state: &MachineState<B>,
    turning: Option<&Set>,
) -> StopReason {
    let code = machine.code;
    let mut spins: Vec<(usize, String)> = Vec::new();
    let mut others: Vec<(usize, String)> = Vec::new();
    let mut sought: Vec<usize> = Vec::new();
    for (t, thread) in state
        .threads
        .iter()
        .enumerate()
        .filter(|(_, thread)| !thread.is_over())
    {
        let is_free = || {
            matches!(
                waits::obstacle(machine, state, t),
                Obstacle::Turn { layer: None, .. }
            )
        };
        match (thread.status, spin(code, t, thread)) {
            (ThreadStatus::Running, Some(SpinLoop { text, locs }))
                if turning.is_none_or(|set| set.has(t)) && (turning.is_some() || is_free()) =>
            {
                spins.push((t, text));
                sought.extend(locs);
            }
            _ => others.push((t, situation(machine, state, t))),
        }
    }
    sought.sort_unstable();
    sought.dedup();
    let mut lines = grouped(code, spins);
    for loc in sought {
        let name = &code.cell_of(loc).name;
        let may = |t: usize| may_write(code, t, state.threads[t].pc, loc);
        let (helpers, rest): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|(t, _)| may(*t) == Some(true));
        others = rest;
        let left = (0..state.threads.len()).filter(|&t| !state.threads[t].is_over());
        let nobody = helpers.is_empty() && left.map(may).all(|m| m == Some(false));
        if nobody {
            lines.push(format!("no remaining thread writes `{name}`"));
        }
        lines.extend(
            grouped(code, helpers)
                .into_iter()
                .map(|l| format!("threads that still write `{name}`: {l}")),
        );
    }
    lines.extend(grouped(code, others));
    lines.extend(missing(machine, state));
    StopReason {
        why: lines,
        ends: waits::ends(machine, state, turning),
    }
}

/// The obstacle of a thread, in words that follow its name.
fn situation<B: Backend>(machine: &Machine<'_, B>, state: &MachineState<B>, t: usize) -> String {
    let pc = state.threads[t].pc;
    let at = || {
        let instr = &machine.code.program.threads[t].code[pc];
        format!("line {} (`{}`)", instr.line, instr.text)
    };
    match waits::obstacle(machine, state, t) {
        Obstacle::Ended => "has ended".into(),
        Obstacle::Arrivals => format!("waits at {}", at()),
        Obstacle::Lost => format!("goes round and round at {} without touching memory", at()),
        Obstacle::Agents => format!("{} at {}", agents::WAITS, at()),
        Obstacle::Host { why, calling } if pc > 0 || calling => format!("{why}, at {}", at()),
        Obstacle::Host { why, .. } => why,
        Obstacle::Turn {
            layer: Some(why), ..
        } => format!("is before {}: {why}", at()),
        Obstacle::Turn { layer: None, .. } => format!("is before {}", at()),
    }
}

/// Lines that say which threads are missing at barriers.
fn missing<B: Backend>(machine: &Machine<'_, B>, state: &MachineState<B>) -> Vec<String> {
    let code = machine.code;
    let mut lines = Vec::new();
    let over = |u: usize| state.threads[u].is_over();
    for (arrived, waiting, absent, count) in state.barriers.waits(code, over) {
        let Some(first) = waiting.iter().next() else {
            continue;
        };
        let line = code
            .line(first, state.threads[first].pc)
            .cloned()
            .unwrap_or_default();
        if let Some(n) = count {
            let arrived = match arrived.len() {
                1 => "1 has".to_owned(),
                more => format!("{more} have"),
            };
            lines.push(format!(
                "the barrier at line {line} waits for {n} threads, and {arrived} arrived"
            ));
            continue;
        }
        let text = |u: usize| match over(u) {
            true => format!("has ended, and the barrier of line {line} waits for it"),
            false => format!("never arrives at the barrier of line {line}"),
        };
        let texts = absent.into_iter().map(|u| (u, text(u))).collect();
        lines.extend(grouped(code, texts));
    }
    lines
}

/// Merges equal texts into one line with the names of all their threads.
fn grouped(code: &Code, texts: Vec<(usize, String)>) -> Vec<String> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for (t, text) in texts {
        match groups.iter_mut().find(|g| g.0 == text) {
            Some(group) => group.1.push(t),
            None => groups.push((text, vec![t])),
        }
    }
    groups
        .into_iter()
        .map(|(text, threads)| format!("{} {text}", names(code, &threads)))
        .collect()
}

/// Names of threads in a row.
pub(super) fn names(code: &Code, threads: &[usize]) -> String {
    let list: Vec<&str> = threads
        .iter()
        .take(MAX_NAMES)
        .map(|&t| code.program.threads[t].name.as_str())
        .collect();
    match threads.len() {
        n if n > MAX_NAMES => format!("{}, … ({n} threads):", list.join(", ")),
        1 => list.join(", "),
        _ => format!("each of {}", list.join(", ")),
    }
}

/// A loop that a thread executes.
struct SpinLoop {
    text: String,
    /// The locations that it reads.
    locs: Vec<usize>,
}

/// The innermost loop around the next instruction, and the locations that it reads.
fn spin(code: &Code, t: usize, thread: &ThreadState) -> Option<SpinLoop> {
    let acts = &code.threads[t].acts;
    let (from, to) = innermost(code, t, thread)?.into_inner();
    let mut locs: Vec<usize> = Vec::new();
    for act in &acts[from..=to] {
        if act.read().is_some()
            && let Some(loc) = code.touched(act, &thread.regs)
            && !locs.contains(&loc)
        {
            locs.push(loc);
        }
    }
    let mut ends = [from, to].map(|pc| code.line(t, pc).cloned().unwrap_or_default());
    ends.sort();
    let [first, last] = ends;
    let lines = if first == last {
        format!("line {first}")
    } else {
        format!("lines {first} to {last}")
    };
    let on: Vec<String> = locs
        .iter()
        .map(|&l| format!("`{}`", code.cell_of(l).name))
        .collect();
    let text = if on.is_empty() {
        format!("spins in {lines}")
    } else {
        format!("spins in {lines} on {}", on.join(", "))
    };
    Some(SpinLoop { text, locs })
}

/// Whether the code from `pc` on may write a location; `None` if an address on the way is not
/// plain.
fn may_write(code: &Code, t: usize, pc: usize, loc: usize) -> Option<bool> {
    let acts = &code.threads[t].acts;
    let (mut seen, mut todo, mut unknown) = (vec![false; acts.len() + 1], vec![pc], false);
    while let Some(at) = todo.pop() {
        if std::mem::replace(&mut seen[at], true) || at == acts.len() {
            continue;
        }
        match acts[at].address().filter(|_| acts[at].write().is_some()) {
            Some(Expr::Const(_)) if code.touched(&acts[at], &[]) == Some(loc) => {
                return Some(true);
            }
            Some(Expr::Const(_)) | None => {}
            Some(_) => unknown = true,
        }
        todo.extend(acts[at].target().into_iter().chain([at + 1]));
    }
    (!unknown).then_some(false)
}
