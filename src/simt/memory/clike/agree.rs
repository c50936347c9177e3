//! Sequential consistency: what the models ask of operations that say so.
//!
//! The relations are those of the models' texts, over the events so far. In a history that grows along program order
//! and reads-from, what held between earlier events keeps holding, so a cycle never goes away.
//!
//! Sources: M. Batty, A. Donaldson, J. Wickerson, "Overhauling SC Atomics in C11 and OpenCL", POPL 2016; O. Lahav,
//! V. Vafeiadis, J. Kang, C.-K. Hur, D. Dreyer, "Repairing Sequential Consistency in C/C++11", PLDI 2017, section 3.4.

use super::bits::Relation;
use super::graph::{Contents, Event, Kind};
use super::language::{Agreement, Scopes};
use super::{Clike, GLOBAL};
use crate::simt::code::Code;

impl Clike {
    /// Whether the sequentially consistent operations agree.
    pub(super) fn agrees(&self, code: &Code, m: &Contents) -> bool {
        if !self.rules.agreement {
            return true;
        }
        let strong = |e: &Event| e.sc && (self.rules.agreement_fences || !e.is_fence());
        // A single fence can only disagree with itself where a location is in no region.
        let least = if self.language.regions { 1 } else { 2 };
        if m.events.iter().filter(|e| strong(e)).count() < least {
            return true;
        }
        // Nothing comes before initial writes, so they are on no cycle.
        let first = code.locations.len();
        let n = m.events.len() - first;
        let event = |i: usize| &*m.events[first + i];
        let place: Vec<usize> =
            (0..n).map(|i| if event(i).is_write() { m.position(first + i) } else { 0 }).collect();
        // Where the write that an access reads from, or is, stands in modification order.
        let level = |i: usize| if event(i).is_write() { place[i] } else { m.position(event(i).source) };
        let level: Vec<usize> = (0..n).map(|i| if event(i).is_access() { level(i) } else { 0 }).collect();
        let same =
            |a: usize, b: usize| event(a).is_access() && event(b).is_access() && event(a).loc == event(b).loc;
        let ordered = |a: usize, b: usize| same(a, b) && self.ordered(code, event(a).loc);
        let hb = Relation::from_fn(n, |a, b| event(b).follows(first + a));
        // Modification order, and reads before the writes that overwrite what they read.
        let later = |a, b| event(b).kind == Kind::Write && ordered(a, b) && level[a] < level[b];
        let before = |a: usize, b: usize| a < b && event(a).thread == event(b).thread;
        let inclusive = |a: usize, b: usize| self.inclusive(code, event(a), event(b), GLOBAL);
        match self.language.agreement {
            Agreement::Simple => {
                let fence = |a: usize| event(a).kind == Kind::Fence && strong(event(a));
                let from = Relation::from_fn(n, |a, b| a == b || (fence(a) && before(a, b)));
                let to = Relation::from_fn(n, |a, b| a == b || (before(a, b) && fence(b)));
                let base = Relation::from_fn(n, |a, b| hb.has(a, b) || later(a, b));
                let scoped = self.language.scopes != Scopes::Everywhere;
                let keep = |a: usize, b: usize| {
                    strong(event(a)) && strong(event(b)) && if scoped { inclusive(a, b) } else { a != b }
                };
                from.then(&base).then(&to).filter(keep).is_acyclic()
            }
            Agreement::Partial => {
                let fence = |a: usize| event(a).kind == Kind::Fence && strong(event(a));
                let later = Relation::from_fn(n, later);
                let rf = Relation::from_fn(n, |a, b| event(b).kind == Kind::Read && event(b).source == first + a);
                let eco = later.clone().or(&rf).or(&later.then(&rf));
                let other = Relation::from_fn(n, |a, b| before(a, b) && !same(a, b));
                let scb = other
                    .then(&hb)
                    .then(&other)
                    .or(&Relation::from_fn(n, |a, b| before(a, b) || (hb.has(a, b) && same(a, b))))
                    .or(&later);
                let from = Relation::from_fn(n, |a, b| {
                    (a == b && strong(event(a))) || (fence(a) && (a == b || hb.has(a, b)))
                });
                let to = Relation::from_fn(n, |a, b| {
                    (a == b && strong(event(a))) || (fence(b) && (a == b || hb.has(a, b)))
                });
                let fences = hb.then(&eco).then(&hb).or(&hb).filter(|a, b| fence(a) && fence(b));
                let all = from.then(&scb).then(&to).or(&fences);
                let scoped = self.language.scopes != Scopes::Everywhere;
                if scoped { all.filter(inclusive).is_acyclic() } else { all.is_acyclic() }
            }
        }
    }
}
