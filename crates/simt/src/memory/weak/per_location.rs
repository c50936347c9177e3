//! Sequential consistency per location, where other axioms do not imply it: programs with several proxies, and mbarrier objects.
//!
//! Accesses of one virtual address through different proxies are not morally strong with each other, so causality does
//! not order them; program order on the address does. Nor does causality order operations on an mbarrier object whose scopes do
//! not include each other. So the accesses committed are kept, and with every commit program order of an address and
//! communication that is morally strong, or on one object, must stay acyclic.
//!
//! # Sources
//! - PTX ISA, Memory Consistency Model, Axioms, Sequential Consistency Per Location; `SC-per-Location` in
//!   `models/ptx.cat`.

use std::hash::{Hash, Hasher};

use super::view::Row;
use super::write::Location;
use super::{Contents, Weak};
use crate::code::{Access, Code};
use crate::memory::{At, Target};
use crate::set::Relation;
use crate::{Halt, Result};
use program::{Proxy, Scope};

/// A committed access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Done {
    thread: usize,
    va: u16,
    proxy: Proxy,
    strong: bool,
    scope: Scope,
    /// Whether it is an operation on an mbarrier object.
    object: bool,
    /// Whether it writes.
    write: bool,
    /// The slot that it writes, or takes its value from.
    slot: usize,
}

impl Weak {
    /// Remembers a committed access, and checks.
    pub(super) fn done(
        &self,
        m: &mut Contents,
        code: &Code,
        Target { at: At { thread, .. }, place, access }: Target,
        (write, slot): (bool, usize),
    ) -> Result {
        let Access { proxy, strong, scope, .. } = access;
        let object = access.object.is_some();
        if !(code.proxies || object) || !self.rules.per_location {
            return Ok(());
        }
        let done = Done { thread, va: place.va, proxy, strong, scope, object, write, slot };
        let list = &mut m.locations[place.loc].done;
        // A read that repeats the one before it, as in a loop that waits, stands for both.
        let before = list.iter().rev().find(|d| d.thread == thread && d.va == place.va);
        if !write && before == Some(&done) {
            return Ok(());
        }
        list.push(done);
        if is_acyclic(code, &m.locations[place.loc]) { Ok(()) } else { Err(Halt::Refused) }
    }
}

fn is_acyclic(code: &Code, location: &Location) -> bool {
    let list = &location.done;
    let strong = |a: &Done, b: &Done| {
        a.object && b.object
            || (a.va, a.proxy) == (b.va, b.proxy)
                && (a.thread == b.thread
                    || a.strong && b.strong && code.mutual((a.thread, a.scope), (b.thread, b.scope)))
    };
    let after = |w: usize| location.get(w).co_after;
    let edge = |i: usize, j: usize| {
        let (a, b) = (&list[i], &list[j]);
        if a.thread == b.thread && a.va == b.va && i < j {
            return true;
        }
        i != j
            && strong(a, b)
            && match (a.write, b.write) {
                (true, false) => a.slot == b.slot,
                (_, true) => after(a.slot) >> b.slot & 1 != 0,
                (false, false) => false,
            }
    };
    Relation::from_fn(list.len(), edge).is_acyclic()
}

impl Location {
    /// Forgets the accesses of dead writes: none that is new can come before them.
    pub(super) fn forget(&mut self, dead: Row) {
        self.done.retain(|d| dead >> d.slot & 1 == 0);
    }

    /// Hashes the accesses kept, thread by thread.
    pub(super) fn hash_done(&self, names: &[u8], mut out: &mut dyn Hasher) {
        let mut order: Vec<&Done> = self.done.iter().collect();
        order.sort_by_key(|d| d.thread);
        out.write_usize(order.len());
        for d in order {
            (d.thread, d.va, d.proxy, d.strong, d.scope, d.write, names[d.slot]).hash(&mut out);
        }
    }
}
