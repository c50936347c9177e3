//! Sequential consistency per location, in programs where other axioms do not imply it: those with
//! several proxies, and mbarrier objects.
//!
//! Accesses of one virtual address through different proxies are not morally strong with each
//! other. Program order on the address orders them, but causality does not. Causality does not
//! order operations on an mbarrier object either, if their scopes do not include each other. So the
//! memory keeps the committed accesses. At every commit, program order of an address must form no
//! cycle with communication that is morally strong or on one object. If operations access several
//! cells, the check covers all locations together.
//!
//! # Sources
//! - PTX ISA, Memory Consistency Model, Axioms, Sequential Consistency Per Location;
//!   `SC-per-Location` in `models/ptx.cat`.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use super::view::WriteSet;
use super::write::LocationWrites;
use super::{Weak, WeakContents};
use crate::code::{Access, Code};
use crate::memory::{At, MemoryAccess};
use crate::set::BitMatrix;
use crate::{Result, StepHalt};
use program::{Proxy, Scope};

/// A committed access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommittedAccess {
    thread: usize,
    va: u16,
    proxy: Proxy,
    strong: bool,
    scope: Scope,
    /// Which cell of its operation it accesses, and how many cells there are.
    part: (u8, u8),
    /// The time of its turn.
    pub(super) clock: u32,
    /// Whether it is an operation on an mbarrier object.
    object: bool,
    /// Whether it writes.
    write: bool,
    /// The slot of the write that it makes or reads from.
    slot: usize,
}

impl Weak {
    /// Records a committed access, and checks the axiom.
    pub(super) fn done(
        &self,
        m: &mut WeakContents,
        code: &Code,
        MemoryAccess {
            at: At { thread, clock, .. },
            place,
            access,
        }: MemoryAccess,
        (write, slot): (bool, usize),
    ) -> Result {
        let Access {
            proxy,
            strong,
            scope,
            part,
            ..
        } = access;
        let object = access.object.is_some();
        if !(code.proxies || object || self.several) || !self.rules.per_location {
            return Ok(());
        }
        let done = CommittedAccess {
            thread,
            va: place.va,
            proxy,
            strong,
            scope,
            part,
            clock,
            object,
            write,
            slot,
        };
        let list = &mut m.locations[place.loc].done;
        // A read that repeats the previous one, as in a waiting loop, is kept only once.
        let before = list
            .iter()
            .rev()
            .find(|d| d.thread == thread && d.va == place.va);
        if !write && part.1 == 1 && before.is_some_and(|d| done.repeats(d)) {
            return Ok(());
        }
        list.push(done);
        // An operation on several cells is checked with its last cell.
        let open = part.0 + 1 < part.1;
        let acyclic = open
            || if self.several {
                together_acyclic(code, &m.locations, self.rules.wholes)
            } else {
                let (location, n) = (&m.locations[place.loc], m.locations[place.loc].done.len());
                BitMatrix::from_fn(n, |i, j| location.comes_before(code, i, j)).is_acyclic()
            };
        if acyclic {
            Ok(())
        } else {
            Err(StepHalt::Refused)
        }
    }
}

/// Whether program order of addresses and communication are acyclic; `as_wholes` treats an
/// operation as one node.
fn together_acyclic(code: &Code, locations: &[LocationWrites], as_wholes: bool) -> bool {
    let mut wholes: BTreeMap<_, usize> = BTreeMap::new();
    let mut count = 0;
    let mut number = |d: &CommittedAccess| {
        let new = count;
        let number = match d.whole().filter(|_| as_wholes) {
            Some(whole) => *wholes.entry(whole).or_insert(new),
            None => new,
        };
        count += usize::from(number == new);
        number
    };
    let numbers: Vec<Vec<usize>> = locations
        .iter()
        .map(|l| l.done.iter().map(&mut number).collect())
        .collect();
    let mut edges = vec![false; count * count];
    for (location, numbers) in locations.iter().zip(&numbers) {
        for (i, &a) in numbers.iter().enumerate() {
            for (j, &b) in numbers.iter().enumerate() {
                edges[a * count + b] |= location.comes_before(code, i, j);
            }
        }
    }
    BitMatrix::from_fn(count, |a, b| edges[a * count + b]).is_acyclic()
}

impl CommittedAccess {
    /// Whether it belongs to this thread and address.
    pub(super) fn is_of(&self, thread: usize, va: u16) -> bool {
        self.thread == thread && self.va == va
    }

    /// Whether it equals another access, except for the time.
    pub(super) fn repeats(&self, other: &CommittedAccess) -> bool {
        *self
            == CommittedAccess {
                clock: self.clock,
                ..*other
            }
    }

    /// The half of the operation on several cells that it belongs to; `None`: it accesses one cell.
    pub(super) fn whole(&self) -> Option<(usize, u32, bool)> {
        (self.part.1 > 1).then_some((self.thread, self.clock, self.write))
    }
}

impl LocationWrites {
    /// Whether the access kept as number `i` comes before number `j`, by program order of its
    /// address or communication.
    pub(super) fn comes_before(&self, code: &Code, i: usize, j: usize) -> bool {
        let (a, b) = (&self.done[i], &self.done[j]);
        if a.thread == b.thread && a.va == b.va && i < j {
            return true;
        }
        let strong = a.object && b.object
            || (a.va, a.proxy, a.part) == (b.va, b.proxy, b.part)
                && (a.thread == b.thread
                    || a.strong && b.strong && code.mutual(a.thread, a.scope, b.thread, b.scope));
        i != j
            && strong
            && match (a.write, b.write) {
                (true, false) => a.slot == b.slot,
                (_, true) => self.get(a.slot).co_after >> b.slot & 1 != 0,
                (false, false) => false,
            }
    }

    /// Forgets the accesses of dead writes: none that is new can come before them.
    pub(super) fn forget(&mut self, dead: WriteSet) {
        self.done.retain(|d| dead >> d.slot & 1 == 0);
    }

    /// Hashes the accesses kept, thread by thread. `turns`: those of operations on several cells,
    /// in order.
    pub(super) fn hash_done(&self, names: &[u8], turns: &[(usize, u32)], mut out: &mut dyn Hasher) {
        let mut order: Vec<&CommittedAccess> = self.done.iter().collect();
        order.sort_by_key(|d| d.thread);
        out.write_usize(order.len());
        for d in order {
            let turn = turns
                .binary_search(&(d.thread, d.clock))
                .ok()
                .filter(|_| d.part.1 > 1);
            (
                d.thread,
                d.va,
                d.proxy,
                d.strong,
                d.scope,
                d.write,
                names[d.slot],
                d.part,
                turn,
            )
                .hash(&mut out);
        }
    }
}
