//! The normal form of a history, and its fingerprint.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHashSet;

use super::Clike;
use super::graph::{History, HistoryEvent, HistoryKind};
use crate::code::Code;
use crate::thread::ThreadState;

impl Clike {
    /// Forgets promises that came true and, in programs with loops, events that a later round
    /// repeats.
    ///
    /// A read is repeated by a later one of the same instruction from the same write, an acquire
    /// fence by a later one of the same instruction. The thread must only have read between the
    /// two. Then no other thread has the earlier event in its past. The later one rules out at
    /// least as much, and the earlier one synchronized with nothing more.
    pub(super) fn clean(&self, code: &Code, m: &mut History) {
        let kept = m.pins.iter().copied().filter(|p| p.holds || m.is_run(*p));
        m.pins = kept.collect();
        if !code.loops {
            return;
        }
        let gone: FxHashSet<usize> = (0..m.threads.len())
            .flat_map(|thread| repeated(m, thread))
            .collect();
        if !gone.is_empty() {
            m.forget(&gone);
        }
    }

    /// Hashes everything that matters, with names that do not depend on the order of events.
    pub(super) fn digest(&self, m: &History, threads: &[ThreadState], mut hasher: &mut dyn Hasher) {
        hasher.write_u8(u8::from(m.race.is_some()) | u8::from(m.misuse.is_some()) << 1);
        for thread in 0..m.threads.len() {
            hasher.write_usize(m.threads[thread].len());
            for (_, e) in m.of(thread) {
                (e.kind, e.instr, e.open).hash(&mut hasher);
                match e.kind {
                    HistoryKind::Read => m.place(e.source).hash(&mut hasher),
                    HistoryKind::Write => (e.loc, e.value, e.read.is_some()).hash(&mut hasher),
                    _ => {}
                }
            }
        }
        for (loc, list) in m
            .order
            .iter()
            .enumerate()
            .filter(|(loc, _)| !self.loose[*loc])
        {
            hasher.write_usize(loc);
            list.iter().for_each(|&w| m.place(w).hash(&mut hasher));
        }
        for b in m.early.iter() {
            // Clocks count rounds of loops; only the distance ahead matters.
            (b.thread, b.clock - threads[b.thread].clock).hash(&mut hasher);
            b.read
                .map(|r| (m.events[r].instr, m.place(m.events[r].source)))
                .hash(&mut hasher);
            let write = b.write.map(|w| &m.events[w]);
            write.map(|w| (w.instr, w.loc, w.value)).hash(&mut hasher);
        }
        let mut pins: Vec<_> = m
            .pins
            .iter()
            .map(|p| (m.place(p.head), m.place(p.last), p.holds))
            .collect();
        pins.sort_unstable();
        pins.hash(&mut hasher);
    }
}

/// The events of a thread that later events repeat.
fn repeated(m: &History, thread: usize) -> Vec<usize> {
    fn quiet(e: &HistoryEvent) -> bool {
        match e.kind {
            HistoryKind::Read => true,
            HistoryKind::Fence => !e.release && !e.sc,
            _ => false,
        }
    }
    let mut later = FxHashSet::default();
    m.of(thread)
        .rev()
        .take_while(|(_, e)| quiet(e))
        .filter(|(_, e)| {
            let source = (e.kind == HistoryKind::Read).then_some(e.source);
            !later.insert((e.kind, e.instr, source))
        })
        .map(|(i, _)| i)
        .collect()
}
