//! Sequential consistency: checks the axioms of the models for sequentially consistent operations.
//!
//! The relations are those of the models' texts, over the events so far. The history grows along
//! program order and reads-from, and relations between earlier events never change. So a cycle
//! never goes away.
//!
//! Only pairs of sequentially consistent operations matter in the end, and there are few of them.
//! So the check follows the relations from each of them as images of sets of events, not as whole
//! relations.
//!
//! # Invariants
//! - A new event without an outgoing edge is on no cycle: [`Clike::agrees`] need not run after it.
//!   (An outgoing edge goes along modification order, or from a read to a write that overwrites its
//!   value.)
//!
//! Sources: M. Batty, A. Donaldson, J. Wickerson, "Overhauling SC Atomics in C11 and OpenCL", POPL
//! 2016; O. Lahav, V. Vafeiadis, J. Kang, C.-K. Hur, D. Dreyer, "Repairing Sequential Consistency
//! in C/C++11", PLDI 2017, section 3.4.

use rustc_hash::FxHashMap;

use super::graph::{History, HistoryEvent, HistoryKind};
use super::language::{Agreement, ScopeRule};
use super::{Clike, GLOBAL};
use crate::code::Code;
use crate::set::{BitMatrix, Set};

impl Clike {
    /// Whether the sequentially consistent operations satisfy the axiom.
    pub(super) fn agrees(&self, code: &Code, m: &History) -> bool {
        if !self.rules.agreement {
            return true;
        }
        let is_strong = |e: &HistoryEvent| e.sc && (self.rules.agreement_fences || !e.is_fence());
        // No event precedes initial writes, so they are on no cycle.
        let first = code.locations.len();
        let strong: Vec<usize> = (first..m.events.len())
            .filter(|&i| is_strong(&m.events[i]))
            .collect();
        // A single fence can form a cycle alone only if a location is in no region.
        let least = if self.language.regions { 1 } else { 2 };
        if strong.len() < least {
            return true;
        }
        let images = RelationImages {
            memory: self,
            code,
            m,
            first,
        };
        let rows: Vec<Set> = strong
            .iter()
            .map(|&a| match self.language.agreement {
                Agreement::Simple => images.simple(a, &strong),
                Agreement::Partial => images.partial(a, &strong),
            })
            .collect();
        let scoped = self.language.scopes != ScopeRule::Everywhere;
        let inclusive = |a: usize, b: usize| {
            self.inclusive(code, &m.events[strong[a]], &m.events[strong[b]], GLOBAL)
        };
        let simple = self.language.agreement == Agreement::Simple;
        let counts = |a, b| {
            if scoped {
                inclusive(a, b)
            } else {
                !simple || a != b
            }
        };
        BitMatrix::from_fn(strong.len(), |a, b| rows[a].has(strong[b]) && counts(a, b)).is_acyclic()
    }
}

/// Follows relations from sets of events.
struct RelationImages<'a> {
    memory: &'a Clike,
    code: &'a Code,
    m: &'a History,
    /// The first event after the initial writes.
    first: usize,
}

impl RelationImages<'_> {
    /// The strong events that event `a` must precede: no cycle of happens-before and communication
    /// (Overhauling).
    fn simple(&self, a: usize, strong: &[usize]) -> Set {
        let mut from: Set = [a].into_iter().collect();
        if self.is_fence(a) {
            from.join(&self.po(&from));
        }
        let mut to = self.hb(&from);
        to.join(&self.later(&from));
        let after = self.po(&to);
        self.among(strong, |b| to.has(b) || self.is_fence(b) && after.has(b))
    }

    /// The strong events that event `a` must precede: no cycle of partial SC (Repairing).
    fn partial(&self, a: usize, strong: &[usize]) -> Set {
        let one: Set = [a].into_iter().collect();
        let mut from = one.clone();
        let behind = self.hb(&one);
        if self.is_fence(a) {
            from.join(&behind);
        }
        let mut to = self.other(&self.hb(&self.other(&from)));
        to.join(&self.po(&from));
        to.join(&self.hb_of_location(&from));
        to.join(&self.later(&from));
        let after = self.hb(&to);
        let mut row = self.among(strong, |b| to.has(b) || self.is_fence(b) && after.has(b));
        if self.is_fence(a) {
            let mut eco = self.later(&behind);
            eco.join(&self.rf(&eco));
            eco.join(&self.rf(&behind));
            let far = self.hb(&eco);
            row.join(&self.among(strong, |b| {
                self.is_fence(b) && (behind.has(b) || far.has(b))
            }));
        }
        row
    }

    fn among(&self, events: &[usize], keep: impl Fn(usize) -> bool) -> Set {
        events.iter().copied().filter(|&e| keep(e)).collect()
    }

    fn all(&self) -> impl Iterator<Item = (usize, &HistoryEvent)> {
        self.m
            .events
            .iter()
            .enumerate()
            .skip(self.first)
            .map(|(i, e)| (i, &**e))
    }

    /// Whether a strong event is a fence, and not half of a barrier.
    fn is_fence(&self, event: usize) -> bool {
        self.m.events[event].kind == HistoryKind::Fence
    }

    fn filter(&self, keep: impl Fn(&HistoryEvent) -> bool) -> Set {
        self.all()
            .filter(|(_, e)| keep(e))
            .map(|(i, _)| i)
            .collect()
    }

    /// The events that come after one of these in happens-before.
    fn hb(&self, from: &Set) -> Set {
        self.filter(|e| e.past.iter().any(|p| p.meets(from)))
    }

    /// The same, restricted to accesses of the same location.
    fn hb_of_location(&self, from: &Set) -> Set {
        let mut of: FxHashMap<usize, Set> = FxHashMap::default();
        for i in from.iter().filter(|&i| self.m.events[i].is_access()) {
            of.entry(self.m.events[i].loc).or_default().insert(i);
        }
        let same = |e: &HistoryEvent| {
            of.get(&e.loc)
                .is_some_and(|set| e.past.iter().any(|p| p.meets(set)))
        };
        self.filter(|e| e.is_access() && same(e))
    }

    /// The events that follow one of these in program order.
    fn po(&self, from: &Set) -> Set {
        let mut out = Set::default();
        for thread in &self.m.threads {
            if let Some(at) = thread.iter().position(|&i| from.has(i)) {
                thread[at + 1..].iter().for_each(|&i| out.insert(i));
            }
        }
        out
    }

    /// The same, without accesses of the same location.
    fn other(&self, from: &Set) -> Set {
        let mut out = Set::default();
        for thread in &self.m.threads {
            // The events met so far: whether one accesses no location, and the locations of the
            // others.
            let (mut free, mut locs): (bool, [Option<usize>; 2]) = (false, [None; 2]);
            for &i in thread {
                let e = &self.m.events[i];
                let loc = e.is_access().then_some(e.loc);
                if free || locs.iter().flatten().any(|&l| Some(l) != loc) {
                    out.insert(i);
                }
                match (from.has(i), loc) {
                    (false, _) => {}
                    (true, None) => free = true,
                    (true, Some(_)) if locs[0].is_none() || locs[0] == loc => locs[0] = loc,
                    (true, Some(_)) => locs[1] = loc,
                }
            }
        }
        out
    }

    /// The reads that read from one of these.
    fn rf(&self, from: &Set) -> Set {
        self.filter(|e| e.kind == HistoryKind::Read && from.has(e.source))
    }

    /// The writes that come later in modification order than one of these, or than the write that
    /// it reads.
    fn later(&self, from: &Set) -> Set {
        let mut least: FxHashMap<usize, usize> = FxHashMap::default();
        for i in from.iter() {
            let e = &self.m.events[i];
            if e.is_access() && self.memory.ordered(self.code, e.loc) {
                let level = self.m.position(if e.is_write() { i } else { e.source });
                least
                    .entry(e.loc)
                    .and_modify(|l| *l = level.min(*l))
                    .or_insert(level);
            }
        }
        let mut out = Set::default();
        for (loc, level) in least {
            self.m.order[loc][level + 1..]
                .iter()
                .for_each(|&w| out.insert(w));
        }
        out
    }
}
