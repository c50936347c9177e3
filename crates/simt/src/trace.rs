//! Prints a run step by step.
//!
//! For warps with one program counter, each line shows the lanes: `*` for the one that steps, `#`
//! for those active with it, `.` for the others. A repeated part at the end is shown once.

use std::collections::BTreeSet;

use super::agents::taken_apart;
use super::place::place;
use super::record::{RunEvent, Spot, WriteId};
use program::litmus::LitmusTest;
use program::memory::{CellId, Memory};
use program::{Program, ThreadId};

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
    let effects = StepEffects::new(test, program, events);
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
    let texts = program
        .threads
        .iter()
        .flat_map(|t| &t.code)
        .map(|i| i.text.chars().count());
    let code_width = texts.max().unwrap_or(0).clamp(MIN_CODE, MAX_CODE);
    let mut lines: Vec<String> = Vec::new();
    if lanes > 0 {
        let turns = events.iter().filter_map(|e| match e {
            RunEvent::Turn { thread, .. } => Some(*thread),
            _ => None,
        });
        for t in turns.collect::<BTreeSet<usize>>() {
            let name = &program.threads[t].name;
            lines.push(format!("  {name}: {}", place(program, t)));
        }
    }
    let mut turn = (0, None);
    // The index of the first step of a livelock's round.
    let mut way = 0;
    for e in events {
        match e {
            RunEvent::Turn { thread, active } => turn = (*thread, *active),
            RunEvent::Round => {
                (way, turn) = (lines.len(), (0, None));
                lines.push("  … and from here on again and again:".into());
            }
            _ => {}
        }
        let Some((thread, instr, what)) = effects.of(e) else {
            continue;
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
        let line = format!(
            "  {:width$}{gap}{shown}  {code:<code_width$}  {what}",
            thread.name
        );
        lines.push(line.trim_end().to_owned());
    }
    let round = lines.split_off(if way > 0 { way } else { lines.len() });
    fold(lines)
        + &round
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>()
}

/// The effects of events, in words.
struct StepEffects<'p> {
    program: &'p Program,
    memory: Memory,
    names: Vec<String>,
    cells: Vec<CellId>,
    /// The value of each write.
    writes: Vec<(WriteId, i64)>,
}

impl<'p> StepEffects<'p> {
    fn new(test: &LitmusTest, program: &'p Program, events: &[RunEvent]) -> StepEffects<'p> {
        let memory = Memory::new(program);
        let cells = memory
            .cells
            .iter()
            .enumerate()
            .filter(|(i, c)| c.memory.0 as usize == *i)
            .map(|(_, c)| c.memory)
            .collect();
        let writes = events.iter().filter_map(|e| match e {
            RunEvent::Write { source, value, .. } => Some((*source, *value)),
            _ => None,
        });
        StepEffects {
            program,
            cells,
            names: location_names(test),
            writes: writes.collect(),
            memory,
        }
    }

    fn show(&self, loc: usize, value: i64) -> String {
        self.memory.show_in(self.program, self.cells[loc], value)
    }

    /// The thread, the instruction and the effect of an event; `None` if no line shows it.
    fn of(&self, event: &RunEvent) -> Option<(usize, Option<usize>, String)> {
        fn at(s: &Spot, what: &str) -> Option<(usize, Option<usize>, String)> {
            Some((s.thread, Some(s.instr), what.to_owned()))
        }
        match event {
            RunEvent::Read {
                thread,
                instr,
                loc,
                source,
                value,
            } => {
                let source = match source {
                    WriteId::Initial(_) => "initially".to_owned(),
                    WriteId::Write(t, n) => {
                        format!("from {}'s write {}", self.program.threads[*t].name, n + 1)
                    }
                };
                let (name, value) = (&self.names[*loc], self.show(*loc, *value));
                let what = format!("{name} = {value} ({source})");
                Some((*thread, Some(*instr), what))
            }
            RunEvent::Write {
                source: WriteId::Write(t, n),
                instr,
                loc,
                value,
            } => {
                let (name, value) = (&self.names[*loc], self.show(*loc, *value));
                let what = format!("{name} := {value} (write {})", n + 1);
                Some((*t, Some(*instr), what))
            }
            RunEvent::Early(s) => at(s, "before its turn:"),
            RunEvent::Fence(s) => at(s, ""),
            RunEvent::Arrive(s, _) => at(s, "arrives"),
            RunEvent::Pass(s, _) => at(s, "passes"),
            RunEvent::After(loc, a @ WriteId::Write(..), b @ WriteId::Write(t, _)) => {
                let value = |s: &WriteId| {
                    let write = self.writes.iter().find(|w| w.0 == *s);
                    self.show(*loc, write.map_or(0, |w| w.1))
                };
                let name = &self.names[*loc];
                let what = format!("coherence of {name}: {} before {}", value(a), value(b));
                Some((*t, None, what))
            }
            _ => None,
        }
    }
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
