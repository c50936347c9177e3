//! Normalises states, removes dead writes and computes fingerprints.
//!
//! A waiting loop comes back to the same state only if states are compared by the parts that can
//! still matter. So tidying makes three reductions:
//! - It drops a write from a view if a coherence-later one under the same key is there.
//! - It drops completed patterns that add no knowledge.
//! - It removes *dead* writes: committed, overwritten by a write that every thread knows, and
//!   referenced nowhere.
//!
//! The constraints of a dead write remain as seals: writes before which no new write may come.
//!
//! A thread that never looks keeps all writes alive. Past [`HISTORY`] live writes of one thread,
//! every thread learns its latest one. More knowledge forbids more and allows nothing new, so that
//! loses behaviour but is sound.

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use super::per_location::CommittedAccess;
use super::tags::PathTag;
use super::tail::PendingRead;
use super::view::{ViewKey, WriteSet, WriteView};
use super::write::{LocationWrites, PatternHead, ReadOrigin};
use super::{Knowledge, Weak, WeakContents};
use crate::code::Code;
use crate::fingerprint::Hasher128;
use crate::record::WriteId;
use crate::set::bits;
use crate::thread::ThreadState;
use program::Proxy;

/// The number of live writes of one thread past which every thread learns its latest one.
const HISTORY: usize = 6;

impl Weak {
    /// Brings everything into normal form; returns `false` if behaviour was lost.
    pub(super) fn normalise(
        &self,
        code: &Code,
        m: &mut WeakContents,
        carried: &mut dyn Iterator<Item = &mut WriteView>,
    ) -> bool {
        let mut carried: Vec<&mut WriteView> = carried.collect();
        let mut whole = true;
        for loc in 0..m.locations.len() {
            m.flatten(loc);
        }
        m.reduce(&mut carried);
        m.settle_patterns();
        if self.collect && code.plain {
            whole = !m.age();
            if !whole {
                m.reduce(&mut carried);
                m.settle_patterns();
            }
            for loc in 0..m.locations.len() {
                let dead = m.dead(loc);
                if dead != 0 {
                    m.bury(loc, dead, &mut carried);
                }
            }
        }
        whole
    }
}

impl WeakContents {
    /// Drops known writes if a coherence-later one under the same key is known.
    fn reduce(&mut self, carried: &mut [&mut WriteView]) {
        let after: Vec<Vec<WriteSet>> = self
            .locations
            .iter()
            .map(|l| {
                l.slots
                    .iter()
                    .map(|w| w.as_ref().map_or(0, |w| w.co_after))
                    .collect()
            })
            .collect();
        let reduced = |key: &ViewKey, row: WriteSet| {
            if key.token || row.count_ones() < 2 {
                return row;
            }
            let after = &after[usize::from(key.loc)];
            bits(row)
                .filter(|&w| after[w] & row == 0)
                .fold(0, |kept, w| kept | 1 << w)
        };
        self.update_views(reduced);
        carried.iter_mut().for_each(|v| v.update(reduced));
    }

    /// Replaces pending writes by their heads, and drops heads that add no knowledge.
    fn settle_patterns(&mut self) {
        for t in 0..self.threads.len() {
            let pending = std::mem::take(&mut self.threads[t].pending);
            for (va, p) in pending {
                let me = &self.threads[t];
                let gone =
                    matches!(&p, PendingRead::Head(h) if !me.agent && h.view.is_within(&me.known));
                if !gone {
                    self.pend(t, va, p);
                }
            }
            let pending = &mut self.threads[t].pending;
            fn beaten(i: usize, list: &[(u16, PendingRead)]) -> bool {
                let (va, PendingRead::Head(a)) = &list[i] else {
                    return false;
                };
                list.iter().enumerate().any(|(j, (other, p))| match p {
                    PendingRead::Head(b) => i != j && va == other && below(a, b, i, j),
                    PendingRead::Write(..) => false,
                })
            }
            let keep: Vec<bool> = (0..pending.len()).map(|i| !beaten(i, pending)).collect();
            let mut keep = keep.into_iter();
            pending.retain(|_| keep.next().unwrap_or(true));
        }
        for w in self
            .locations
            .iter_mut()
            .flat_map(|l| l.slots.iter_mut().flatten())
        {
            let heads = &w.heads;
            let beaten = |i: usize| {
                heads
                    .iter()
                    .enumerate()
                    .any(|(j, b)| i != j && below(&heads[i], b, i, j))
            };
            if (0..heads.len()).any(beaten) {
                let kept: Vec<PatternHead> = (0..heads.len())
                    .filter(|&i| !beaten(i))
                    .map(|i| heads[i].clone())
                    .collect();
                w.heads = Rc::new(kept);
            }
        }
    }

    /// Committed writes that no thread can read any more and that nothing references.
    fn dead(&self, loc: usize) -> WriteSet {
        let location = &self.locations[loc];
        let mut known_to_all = WriteSet::MAX;
        for t in self.threads.iter().filter(|t| !t.idle) {
            let known = t
                .known
                .entries()
                .iter()
                .filter(|e| {
                    usize::from(e.key.loc) == loc && e.key.tag == PathTag::Generic && !e.key.token
                })
                .fold(0, |row, e| row | e.writes);
            // Every write before one that this thread knows.
            known_to_all &= bits(known).fold(0, |row, k| row | location.co_before(k));
        }
        let mut named = 0;
        for t in &self.threads {
            for (_, p) in &t.pending {
                if let PendingRead::Write(l, slot) = p
                    && usize::from(*l) == loc
                {
                    named |= 1 << slot;
                }
            }
            for e in t
                .known
                .entries()
                .iter()
                .filter(|e| e.key.token && usize::from(e.key.loc) == loc)
            {
                named |= e.writes;
            }
        }
        for b in self.early.iter().filter(|b| b.loc == loc) {
            named |= [b.read, b.write]
                .into_iter()
                .flatten()
                .fold(0, |row, s| row | 1 << s);
        }
        for (_, w) in location.live() {
            if let (ReadOrigin::From(s, _), false) = (w.origin, w.flat) {
                named |= 1 << s;
            }
        }
        location
            .live()
            .filter(|(i, w)| {
                w.committed
                    && w.flat
                    && w.co_after != 0
                    && known_to_all >> i & 1 != 0
                    && named >> i & 1 == 0
            })
            .fold(0, |row, (i, _)| row | 1 << i)
    }

    /// Removes dead writes; their constraints stay as seals.
    fn bury(&mut self, loc: usize, dead: WriteSet, carried: &mut [&mut WriteView]) {
        let location = &mut self.locations[loc];
        let mut sealed = 0;
        let mut sealed_ms = 0;
        for s in bits(dead) {
            let source = location.get(s);
            sealed |= source.never;
            for (u, w) in location.live() {
                if matches!(w.origin, ReadOrigin::From(o, _) if usize::from(o) == s) {
                    // Every new write comes after the source. So a new write that is morally strong
                    // with the atomic must not come before the atomic. No new write may come before
                    // an older one that would thereby be between source and atomic.
                    sealed_ms |= 1 << u;
                    sealed |= location.co_before(u) & w.ms & !source.co_after & !(1 << s);
                }
            }
        }
        location.sealed |= sealed;
        location.sealed_ms |= sealed_ms;
        location.remove(dead);
        location.forget(dead);
        let without = |k: &ViewKey, row: WriteSet| {
            if usize::from(k.loc) == loc {
                row & !dead
            } else {
                row
            }
        };
        self.update_views(without);
        carried.iter_mut().for_each(|v| v.update(without));
    }

    /// Gives every thread knowledge of the latest write of a thread with too many live ones;
    /// returns `true` if there was such a thread.
    fn age(&mut self) -> bool {
        let mut aged = false;
        for t in 0..self.threads.len() {
            let counts = self.locations.iter().map(|l| l.live_of(t).count());
            let counts: Vec<usize> = counts.collect();
            if counts.iter().sum::<usize>() <= HISTORY {
                continue;
            }
            let Some(loc) = (0..counts.len()).max_by_key(|&l| counts[l]) else {
                continue;
            };
            if counts[loc] < 2 {
                continue;
            }
            let latest = self.locations[loc].live_of(t).max_by_key(|(_, w)| w.source);
            if let Some((slot, w)) = latest {
                let key = ViewKey {
                    loc: loc as u16,
                    va: w.va,
                    tag: PathTag::of(Proxy::Generic, 0),
                    token: false,
                };
                self.threads
                    .iter_mut()
                    .for_each(|t| t.known.add(key, 1 << slot));
                aged = true;
            }
        }
        aged
    }

    /// Hashes everything that can matter, with writes named by thread and order.
    pub(super) fn hash_into(
        &self,
        threads: &[ThreadState],
        carried: &mut dyn Iterator<Item = &WriteView>,
        mut out: &mut dyn Hasher,
    ) {
        let names = StateNames::new(&self.locations);
        let wide = self
            .locations
            .iter()
            .flat_map(|l| &l.done)
            .filter_map(CommittedAccess::whole);
        let mut turns: Vec<(usize, u32)> = wide.map(|(thread, clock, _)| (thread, clock)).collect();
        turns.sort_unstable();
        turns.dedup();
        for (loc, l) in self.locations.iter().enumerate() {
            names.hash_location(loc, l, out);
            l.hash_done(&names.0[loc], &turns, out);
        }
        for t in &self.threads {
            names.hash_thread(t, out);
        }
        out.write_usize(self.early.iter().count());
        for b in self.early.iter() {
            let clock = threads[b.thread].clock;
            (b.thread, b.clock - clock, b.loc).hash(&mut out);
            let name = |slot: usize| names.0[b.loc][slot];
            (b.read.map(name), b.write.map(name)).hash(&mut out);
            b.releases
                .iter()
                .for_each(|r| (r.clock - clock, r.scope).hash(&mut out));
        }
        for (key, v) in &self.fence_sc {
            key.hash(&mut out);
            names.hash_view(v, out);
        }
        carried.for_each(|v| names.hash_view(v, out));
    }
}

/// By location and slot: the number of the write, in the order of threads and of their writes.
struct StateNames(Vec<Vec<u8>>);

impl StateNames {
    fn new(locations: &[LocationWrites]) -> StateNames {
        StateNames(
            locations
                .iter()
                .map(|l| {
                    let mut order: Vec<(WriteId, usize)> =
                        l.live().map(|(i, w)| (w.source, i)).collect();
                    order.sort_unstable();
                    let mut names = vec![0; l.slots.len()];
                    for (name, &(_, slot)) in order.iter().enumerate() {
                        names[slot] = name as u8;
                    }
                    names
                })
                .collect(),
        )
    }

    /// The set of a location's writes, by number.
    fn row(&self, loc: usize, r: WriteSet) -> WriteSet {
        bits(r).fold(0, |renamed, slot| renamed | 1 << self.0[loc][slot])
    }

    fn hash_view(&self, v: &WriteView, mut out: &mut dyn Hasher) {
        out.write_usize(v.entries().len());
        for e in v.entries() {
            (e.key, self.row(usize::from(e.key.loc), e.writes)).hash(&mut out);
        }
    }

    fn head(&self, h: &PatternHead) -> u128 {
        let mut f = Hasher128::default();
        (h.thread, h.scope).hash(&mut f);
        self.hash_view(&h.view, &mut f);
        f.value()
    }

    fn hash_location(&self, loc: usize, l: &LocationWrites, mut out: &mut dyn Hasher) {
        let mut order: Vec<usize> = l.live().map(|(i, _)| i).collect();
        order.sort_by_key(|&i| self.0[loc][i]);
        out.write_usize(order.len());
        for w in order.into_iter().map(|i| l.get(i)) {
            (w.thread(), w.va, w.proxy, w.strong, w.scope, w.value).hash(&mut out);
            (w.committed, !w.committed && w.read_early, w.flat).hash(&mut out);
            (w.part, w.atomic, w.operation().filter(|_| w.part.1 > 1)).hash(&mut out);
            (self.row(loc, w.co_after), self.row(loc, w.never)).hash(&mut out);
            match w.origin {
                ReadOrigin::From(s, strong) => {
                    (1u8, self.0[loc][usize::from(s)], strong).hash(&mut out)
                }
                ReadOrigin::Unbound => 2u8.hash(&mut out),
                ReadOrigin::None | ReadOrigin::Gone => 3u8.hash(&mut out),
            }
            let heads = w
                .heads
                .iter()
                .fold(0u128, |sum, h| sum.wrapping_add(self.head(h)));
            (w.heads.len(), heads).hash(&mut out);
            for list in [&w.arrivals.current, &w.arrivals.complete] {
                let sum = list.iter().fold(0u128, |sum, a| {
                    let arrival = (self.head(&a.head), a.scope, a.told, a.read);
                    sum.wrapping_add(Hasher128::of(&arrival))
                });
                (list.len(), sum).hash(&mut out);
            }
        }
        (self.row(loc, l.sealed), self.row(loc, l.sealed_ms)).hash(&mut out);
    }

    fn hash_thread(&self, t: &Knowledge, mut out: &mut dyn Hasher) {
        t.idle.hash(&mut out);
        for v in [&t.known, &t.inits, &t.made_known, &t.own, &t.own_reads] {
            self.hash_view(v, out);
        }
        for (scope, v) in &t.release_fences {
            scope.hash(&mut out);
            self.hash_view(v, out);
        }
        for (key, v) in &t.release_writes {
            key.hash(&mut out);
            self.hash_view(v, out);
        }
        let pending = t.pending.iter().fold(0u128, |sum, (va, p)| {
            sum.wrapping_add(match p {
                PendingRead::Head(h) => Hasher128::of(&(*va, self.head(h))),
                PendingRead::Write(l, s) => {
                    Hasher128::of(&(*va, *l, self.0[usize::from(*l)][usize::from(*s)], 7u8))
                }
            })
        });
        (t.pending.len(), pending).hash(&mut out);
    }
}

/// Whether head `i` adds nothing to head `j`; if both are equal, the later is below the earlier.
fn below(a: &PatternHead, b: &PatternHead, i: usize, j: usize) -> bool {
    a.thread == b.thread
        && a.scope == b.scope
        && a.view.is_within(&b.view)
        && (a.view != b.view || i > j)
}
