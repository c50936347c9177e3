//! Finds reads of contents that a mapping or a pipe discarded, and accesses that are not ordered
//! before the end of the life of their memory.
//!
//! # Sources
//! - OpenCL API specification, clEnqueueMapBuffer: CL_MAP_WRITE_INVALIDATE_REGION; clSVMFree.
//!   OpenCL C, *Pipe Functions*: Restrictions.
//! - CUDA runtime API, cudaFreeAsync; ISO C++, basic.life.
//!
//! # Invariants
//! - The rules are those of the models: `read-discarded` of OpenCL, and `outlives` of OpenCL and
//!   CUDA C++.

use super::Clike;
use super::graph::{History, HistoryEvent, HistoryKind};
use crate::code::Code;
use crate::record::{HazardKind, RunHazard};
use program::Tag;

/// Whether the instruction of an event has a tag.
fn has(code: &Code, e: &HistoryEvent, tag: Tag) -> bool {
    let instrs = &code.program.threads[e.thread].code;
    e.kind != HistoryKind::Initial && instrs.get(e.instr).is_some_and(|instr| instr.op.has(tag))
}

fn pair(kind: HazardKind, a: &HistoryEvent, b: &HistoryEvent) -> RunHazard {
    RunHazard {
        kind,
        first: (a.thread, a.instr),
        second: Some((b.thread, b.instr)),
        loc: Some(a.loc),
    }
}

impl Clike {
    /// The first read of discarded contents, and the first access behind an end.
    pub(super) fn ended(&self, code: &Code, m: &History) -> Vec<RunHazard> {
        if !self.ends {
            return Vec::new();
        }
        let discarded = self.read_discarded(code, m);
        discarded.into_iter().chain(outlives(code, m)).collect()
    }

    fn read_discarded(&self, code: &Code, m: &History) -> Option<RunHazard> {
        if !self.language.regions {
            return None;
        }
        let of_events = m.events.iter().map(|e| has(code, e, Tag::Discards));
        let mut discarded: Vec<bool> = of_events.collect();
        // The end of a mapping writes back what the mapping discarded.
        let mut found = None;
        for (i, e) in m.events.iter().enumerate() {
            if e.kind != HistoryKind::Read || !discarded[e.source] {
                continue;
            }
            if !has(code, e, Tag::Unmap) {
                found.get_or_insert_with(|| pair(HazardKind::Discarded, &m.events[e.source], e));
                continue;
            }
            let behind = m.of(e.thread).skip_while(|(at, _)| *at != i);
            for (later, x) in behind {
                discarded[later] |= x.loc == e.loc && x.kind == HistoryKind::Write;
            }
        }
        found
    }
}

/// An access that is not ordered before the end of its memory's life, nor behind a new begin.
fn outlives(code: &Code, m: &History) -> Option<RunHazard> {
    let before = |i: usize, e: &HistoryEvent| e.past.iter().any(|past| past.has(i));
    let numbered = || m.events.iter().enumerate();
    let is_end = |e: &HistoryEvent| e.kind == HistoryKind::Write && has(code, e, Tag::Ends);
    let begins: Vec<usize> = numbered()
        .filter(|(_, e)| e.is_access() && has(code, e, Tag::Begins))
        .map(|(i, _)| i)
        .collect();
    for (end, ends) in numbered().filter(|(_, e)| is_end(e)) {
        let again = |i: usize, e: &HistoryEvent| {
            let mut behind = begins
                .iter()
                .filter(|begin| before(end, &m.events[**begin]));
            behind.any(|begin| *begin == i || before(*begin, e))
        };
        let later = numbered().find(|(i, e)| {
            let other = *i != end && e.is_access() && e.loc == ends.loc;
            other && e.kind != HistoryKind::Initial && !before(*i, ends) && !again(*i, e)
        });
        if let Some((_, later)) = later {
            return Some(pair(HazardKind::Outlives, ends, later));
        }
    }
    None
}
