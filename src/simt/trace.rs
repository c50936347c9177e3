//! A run, step by step, for people.

use super::record::{Event, Source};
use crate::litmus::LitmusTest;
use crate::skeleton::Memory;

/// The names of the locations, as [`Event::Read`] numbers them.
pub fn location_names(test: &LitmusTest) -> Vec<String> {
    let memory = Memory::new(&test.program);
    let own = memory.cells.iter().enumerate().filter(|(i, c)| c.memory.0 as usize == *i);
    own.map(|(_, c)| c.name.clone()).collect()
}

/// The events of a run as lines: thread, instruction, what it did.
pub fn trace(test: &LitmusTest, events: &[Event]) -> String {
    let program = &test.program;
    let memory = Memory::new(program);
    let names = location_names(test);
    // By write: its location and value.
    let mut writes: Vec<(Source, usize, i64)> = Vec::new();
    for e in events {
        if let Event::Write { source, loc, value, .. } = e {
            writes.push((*source, *loc, *value));
        }
    }
    let show = |v: i64| memory.show(program, v);
    let whose = |s: Source| match s {
        Source::Initial(_) => "initially".to_owned(),
        Source::Write(t, n) => format!("from {}'s write {}", program.threads[t].name, n + 1),
    };
    let width = program.threads.iter().map(|t| t.name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for e in events {
        let (thread, instr, what) = match e {
            Event::Read { thread, instr, loc, source, value } => {
                (*thread, Some(*instr), format!("{} = {} ({})", names[*loc], show(*value), whose(*source)))
            }
            Event::Write { source: Source::Write(t, n), instr, loc, value } => {
                (*t, Some(*instr), format!("{} := {} (write {})", names[*loc], show(*value), n + 1))
            }
            Event::Early { thread, instr } => (*thread, Some(*instr), "before its turn:".to_owned()),
            Event::Fence { thread, instr } => (*thread, Some(*instr), String::new()),
            Event::Arrive { thread, instr, .. } => (*thread, Some(*instr), "arrives".to_owned()),
            Event::Pass { thread, instr, .. } => (*thread, Some(*instr), "passes".to_owned()),
            Event::After(loc, a, b) => {
                let (Source::Write(t, _), false) = (*b, matches!(a, Source::Initial(_))) else { continue };
                let value = |s: &Source| writes.iter().find(|w| w.0 == *s).map_or(0, |w| w.2);
                let order = format!("coherence of {}: {} before {}", names[*loc], show(value(a)), show(value(b)));
                (t, None, order)
            }
            Event::Commit(_) | Event::Write { .. } | Event::Turn { .. } => continue,
        };
        let thread = &program.threads[thread];
        let code = instr.map_or("", |i| thread.code[i].text.as_str());
        out.push_str(format!("  {:width$}  {code:<36}  {what}", thread.name).trim_end());
        out.push('\n');
    }
    out
}
