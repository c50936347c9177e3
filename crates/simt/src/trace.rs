//! Prints a run step by step.
//!
//! For warps with one program counter, each line shows the lanes: `*` for the one that steps, `#`
//! for those active with it, `.` for the others. A repeated part at the end is shown once.

use std::collections::BTreeSet;

use super::agents::taken_apart;
use super::place::place;
use super::record::{RunEvent, WriteId};
use program::ThreadId;
use program::litmus::LitmusTest;
use program::memory::{CellId, Memory};

/// The names of the locations, as [`RunEvent::Read`] numbers them.
pub fn location_names(test: &LitmusTest) -> Vec<String> {
    let memory = Memory::new(&test.program);
    let own = memory
        .cells
        .iter()
        .enumerate()
        .filter(|(i, c)| c.memory.0 as usize == *i);
    own.map(|(_, c)| c.name.clone()).collect()
}

/// The events of a run as lines: thread, instruction, effect.
pub fn trace(test: &LitmusTest, events: &[RunEvent]) -> String {
    // The indices of instructions refer to the code that ran.
    let ran = taken_apart(test).ok().and_then(|(apart, _)| apart);
    let program = &ran.as_ref().unwrap_or(test).program;
    let memory = Memory::new(program);
    let names = location_names(test);
    // For each write: its location and value.
    let mut writes: Vec<(WriteId, usize, i64)> = Vec::new();
    for e in events {
        if let RunEvent::Write {
            source, loc, value, ..
        } = e
        {
            writes.push((*source, *loc, *value));
        }
    }
    let cells: Vec<CellId> = memory
        .cells
        .iter()
        .enumerate()
        .filter(|(i, c)| c.memory.0 as usize == *i)
        .map(|(_, c)| c.memory)
        .collect();
    let show = |loc: usize, v: i64| memory.show_in(program, cells[loc], v);
    let whose = |s: WriteId| match s {
        WriteId::Initial(_) => "initially".to_owned(),
        WriteId::Write(t, n) => format!("from {}'s write {}", program.threads[t].name, n + 1),
    };
    let width = program
        .threads
        .iter()
        .map(|t| t.name.chars().count())
        .max()
        .unwrap_or(0);
    // Lanes are shown if any turn has them.
    let masks = events.iter().filter_map(|e| match e {
        RunEvent::Turn { active, .. } => *active,
        _ => None,
    });
    let lanes = masks.fold(0, |all, mask| all | mask);
    let lanes = (u64::BITS - lanes.leading_zeros()) as usize;
    let mut turn = (0, None);
    // The index of the first step of a livelock's round.
    let mut way = 0;
    let mut lines: Vec<String> = Vec::new();
    let texts = program
        .threads
        .iter()
        .flat_map(|t| &t.code)
        .map(|i| i.text.chars().count());
    let code_width = texts.max().unwrap_or(0).clamp(MIN_CODE, MAX_CODE);
    if lanes > 0 {
        let turns = events.iter().filter_map(|e| match e {
            RunEvent::Turn { thread, .. } => Some(*thread),
            _ => None,
        });
        for t in turns.collect::<BTreeSet<usize>>() {
            lines.push(format!(
                "  {}: {}",
                program.threads[t].name,
                place(program, t)
            ));
        }
    }
    for e in events {
        let (thread, instr, what) = match e {
            RunEvent::Read {
                thread,
                instr,
                loc,
                source,
                value,
            } => (
                *thread,
                Some(*instr),
                format!(
                    "{} = {} ({})",
                    names[*loc],
                    show(*loc, *value),
                    whose(*source)
                ),
            ),
            RunEvent::Write {
                source: WriteId::Write(t, n),
                instr,
                loc,
                value,
            } => (
                *t,
                Some(*instr),
                format!(
                    "{} := {} (write {})",
                    names[*loc],
                    show(*loc, *value),
                    n + 1
                ),
            ),
            RunEvent::Early(s) => (s.thread, Some(s.instr), "before its turn:".to_owned()),
            RunEvent::Fence(s) => (s.thread, Some(s.instr), String::new()),
            RunEvent::Arrive(s, _) => (s.thread, Some(s.instr), "arrives".to_owned()),
            RunEvent::Pass(s, _) => (s.thread, Some(s.instr), "passes".to_owned()),
            RunEvent::After(loc, a, b) => {
                let (WriteId::Write(t, _), false) = (*b, matches!(a, WriteId::Initial(_))) else {
                    continue;
                };
                let value = |s: &WriteId| writes.iter().find(|w| w.0 == *s).map_or(0, |w| w.2);
                let order = format!(
                    "coherence of {}: {} before {}",
                    names[*loc],
                    show(*loc, value(a)),
                    show(*loc, value(b))
                );
                (t, None, order)
            }
            RunEvent::Turn { thread, active } => {
                turn = (*thread, *active);
                continue;
            }
            RunEvent::Hand(..)
            | RunEvent::HandReleased(..)
            | RunEvent::Pour(..)
            | RunEvent::Tell(..)
            | RunEvent::Begin(..)
            | RunEvent::Complete(..) => {
                continue;
            }
            RunEvent::Round => {
                (way, turn) = (lines.len(), (0, None));
                lines.push("  … and from here on again and again:".into());
                continue;
            }
            RunEvent::Commit(_) | RunEvent::Write { .. } | RunEvent::Jump(..) => continue,
        };
        let shown = match turn {
            (t, Some(active)) if t == thread => {
                mask(program.lane(ThreadId(t as u16)), active, lanes)
            }
            _ => " ".repeat(lanes),
        };
        let gap = if lanes > 0 { "  " } else { "" };
        let thread = &program.threads[thread];
        let code = instr.map_or("", |i| thread.code[i].text.as_str());
        lines.push(
            format!(
                "  {:width$}{gap}{shown}  {code:<code_width$}  {what}",
                thread.name
            )
            .trim_end()
            .to_owned(),
        );
    }
    let round = lines.split_off(if way > 0 { way } else { lines.len() });
    fold(lines)
        + &round
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>()
}

/// The lanes of a warp: the one that steps, those active with it, the others.
fn mask(lane: u32, active: u64, lanes: usize) -> String {
    (0..lanes)
        .map(|l| match () {
            () if l == lane as usize => '*',
            () if active >> l & 1 != 0 => '#',
            () => '.',
        })
        .collect()
}

/// The width of the column with the code.
const MIN_CODE: usize = 36;
const MAX_CODE: usize = 60;

/// The largest number of repeated lines to search for.
const MAX_ROUND: usize = 64;

/// Joins the lines; a round that repeats at the end appears only once.
fn fold(mut lines: Vec<String>) -> String {
    let n = lines.len();
    let rounds = |p: usize| {
        (1..)
            .take_while(|k| (k + 1) * p <= n && lines[n - (k + 1) * p..n - k * p] == lines[n - p..])
            .count()
    };
    if let Some((p, more)) = (1..=MAX_ROUND.min(n / 3))
        .map(|p| (p, rounds(p)))
        .find(|(_, more)| *more >= 2)
    {
        lines.truncate(n - p * more);
        let s = if p == 1 { "line" } else { "lines" };
        lines.push(format!("  … the last {p} {s} {more} times more"));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_at_the_end_is_shown_once() {
        let lines = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        assert_eq!(
            fold(lines("abcbcbcbc")),
            "a\nb\nc\n  … the last 2 lines 3 times more\n"
        );
        assert_eq!(fold(lines("abcc")), "a\nb\nc\nc\n");
        assert_eq!(fold(Vec::new()), "");
    }

    #[test]
    fn a_mask_shows_every_lane() {
        assert_eq!(mask(1, 0b0110, 4), ".*#.");
    }
}
