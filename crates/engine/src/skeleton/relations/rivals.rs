//! Finds writes of several threads to one place in memory that store different values. The option
//! `same-value` makes two writes of one value no race; it needs to know whether they can differ.
//!
//! # Invariants
//! - Two writes without an entry store the same value in every execution in which both go to one
//!   place.
//! - A value that is given up, or cannot be worked out, differs from any other that is not computed
//!   from the same reads in the same way. Accesses to different bytes differ, too.

use std::collections::{BTreeMap, BTreeSet};

use super::base::location;
use crate::skeleton::values::domain::Domains;
use crate::skeleton::{Cond, Skeleton};
use program::CmpOp;
use program::unknown::Unknowns;

/// An instruction, by its position in the text.
pub type Spot = (u32, u32);

/// The number of conditions joined into one. A small group is quick to decide, but the diagram of
/// all would be large.
const TOGETHER: usize = 32;

/// Writes of several threads to one place, by their text positions, the earlier one first.
#[derive(Clone, Debug, Default)]
pub struct Rivals {
    /// Conditions under which two writes store different values.
    differ: BTreeMap<[Spot; 2], Vec<Cond>>,
    /// Pairs of which it takes the values to know whether they differ.
    by_value: BTreeSet<[Spot; 2]>,
}

impl Rivals {
    /// Finds all such writes.
    pub(crate) fn of(sk: &mut Skeleton, domains: &Domains, unknowns: &Unknowns) -> Rivals {
        let there = location(sk, domains, |memory, c| memory.cell(c).memory);
        let fixed: Vec<_> = there
            .fixed
            .iter()
            .map(|(i, j)| (i, j, Cond::TRUE))
            .collect();
        let mut all: BTreeMap<[Spot; 2], Vec<Cond>> = BTreeMap::new();
        let mut by_value = BTreeSet::new();
        // By text positions: pairs of writes that always execute at one place, and store the same
        // value unless a condition is recorded.
        let mut alike: BTreeMap<[Spot; 2], BTreeMap<usize, usize>> = BTreeMap::new();
        for (i, j, here) in fixed.into_iter().chain(there.open) {
            let (a, b) = (&sk.events[i], &sk.events[j]);
            if i >= j
                || !a.is_write()
                || !b.is_write()
                || a.thread.is_none()
                || a.thread == b.thread
            {
                continue;
            }
            let (ty, same_bytes) = (a.ty, (a.part, a.parts) == (b.part, b.parts));
            let (guards, values) = ([a.guard, b.guard], a.value.zip(b.value));
            // One term has one value, whether it can be worked out or not.
            let is_same = values.is_some_and(|(x, y)| x == y)
                && [i, j].iter().all(|e| !sk.given_up.contains(e));
            if same_bytes && is_same {
                continue;
            }
            let both = sk.pool.and(guards[0], guards[1]);
            let both = sk.pool.and(both, here);
            let places = spots(sk, i, j);
            by_value.insert(places);
            let known = same_bytes
                && is_known(domains, unknowns, sk, i)
                && is_known(domains, unknowns, sk, j);
            if known && both == Cond::TRUE {
                // Equality is transitive.
                let alike = alike.entry(places).or_default();
                let (x, y) = (first_alike(alike, i), first_alike(alike, j));
                if x == y {
                    continue;
                }
                alike.insert(x.max(y), x.min(y));
            }
            let differ = match values.filter(|_| known) {
                Some((x, y)) => sk.pool.cmp(CmpOp::Ne, ty, x, y),
                None => Cond::TRUE,
            };
            let cond = sk.pool.and(both, differ);
            if cond != Cond::FALSE {
                all.entry(places).or_default().push(cond);
            }
        }
        Rivals {
            differ: all
                .into_iter()
                .map(|(at, conds)| {
                    (
                        at,
                        conds
                            .chunks(TOGETHER)
                            .map(|conds: &[Cond]| {
                                conds
                                    .iter()
                                    .fold(Cond::FALSE, |all, &cond| sk.pool.or(all, cond))
                            })
                            .collect(),
                    )
                })
                .collect(),
            by_value,
        }
    }

    /// The conditions under which writes at these positions store different values: any of them
    /// suffices.
    pub fn differ(&self, places: [Spot; 2]) -> &[Cond] {
        self.differ.get(&places).map_or(&[], Vec::as_slice)
    }

    /// Whether writes at these positions are known to store one value only if their values are.
    pub fn rest_on_values(&self, places: [Spot; 2]) -> bool {
        self.by_value.contains(&places)
    }
}

/// Whether the value of a write can be worked out.
fn is_known(domains: &Domains, unknowns: &Unknowns, sk: &Skeleton, e: usize) -> bool {
    !sk.given_up.contains(&e)
        && !domains.known.seen.contains_key(&e)
        && domains.cells[e]
            .iter()
            .all(|&c| unknowns.in_cell(&sk.program, &sk.memory, c).is_none())
}

/// The first of the writes that store the same value as this one.
fn first_alike(alike: &BTreeMap<usize, usize>, of: usize) -> usize {
    std::iter::successors(Some(of), |&e: &usize| {
        alike.get(&e).copied().filter(|&n| n != e)
    })
    .last()
    .expect("begins with it")
}

/// The text positions of two events, in text order; an event without one is at the beginning.
pub fn spots(sk: &Skeleton, i: usize, j: usize) -> [Spot; 2] {
    let mut both = [spot(sk, i), spot(sk, j)];
    both.sort_unstable();
    both
}

/// The text position of an event.
fn spot(sk: &Skeleton, e: usize) -> Spot {
    sk.events[e].thread.map_or((0, 0), |thread| {
        let span = sk.program.thread(thread).code[sk.events[e].instr].span;
        (span.start, span.end)
    })
}
