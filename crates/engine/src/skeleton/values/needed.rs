//! Drops values that nothing depends on, for programs with too many values to list.
//!
//! Whether a kernel races seldom depends on its results: sums and products are stored, read again
//! and stored. They decide neither which instructions execute nor which memory they access. If the
//! values of a program are too many to list, those that nothing depends on are given up. A write
//! counts as a write of zero if no relevant read needs its value.
//!
//! # Why nothing is lost
//! - A backward search finds the terms that matter. It begins with every condition and every
//!   address of the skeleton, and with the observables of the question. If a read matters, all
//!   values written to its possible cells matter, with the reads in them.
//! - So executions with and without these values differ only in them. The same events execute and
//!   access the same memory, reads have the same sources, and reads that matter return the same.
//!   That requires a value for each of the latter, which exists if no value depends on itself. So
//!   this is for models that exclude values out of thin air.
//! - Dependencies were computed before, from the full values.
//! - The address of an access gives its possible cells if it is a constant, otherwise [`Points`]
//!   does, which ignores addresses outside their object. [`NeededTerms::covers`] checks those once
//!   all addresses are known.
//! - An answer must not show or test a value that was given up: [`NeededTerms::knows`].

use std::collections::BTreeSet;

use crate::skeleton::pool::{Term, TermId};
use crate::skeleton::{Event, Skeleton, TermPool};
use program::litmus::Observable;
use program::memory::CellId;
use program::points::Points;

/// The terms and memory that something depends on.
#[derive(Clone, Debug)]
pub struct NeededTerms {
    /// By event: the memory that it may access, as far as known before values are.
    places: Vec<BTreeSet<CellId>>,
    /// Memory whose content matters.
    cells: BTreeSet<CellId>,
    /// By term: whether it matters.
    terms: Vec<bool>,
    /// Terms that matter but have unexamined parts.
    open: Vec<TermId>,
}

impl NeededTerms {
    /// Finds the terms that matter for these observables, and gives up all other values.
    pub(crate) fn alone(sk: &mut Skeleton, asked: &[Observable]) -> NeededTerms {
        let mut needed = NeededTerms {
            places: places(sk),
            cells: BTreeSet::new(),
            terms: vec![false; sk.pool.term_count()],
            open: Vec::new(),
        };
        let (conds, terms) = sk.decisive();
        let compared = conds.into_iter().flat_map(|c| sk.pool.compared(c));
        compared.chain(terms).for_each(|t| needed.term(t));
        for &observable in asked {
            match observable {
                Observable::Reg(t, r) => {
                    needed.term(sk.final_regs[usize::from(t.0)][usize::from(r.0)])
                }
                of => sk
                    .observed_cell(of)
                    .into_iter()
                    .for_each(|cell| needed.memory(sk, cell)),
            }
        }
        while let Some(t) = needed.open.pop() {
            match sk.pool.term(t) {
                Term::Read(e) => {
                    needed.places[e.index()]
                        .clone()
                        .into_iter()
                        .for_each(|cell| needed.memory(sk, cell));
                }
                _ => sk
                    .pool
                    .parts(t)
                    .into_iter()
                    .for_each(|part| needed.term(part)),
            }
        }
        let zero = sk.pool.constant(0);
        for (e, (event, places)) in sk.events.iter_mut().zip(&needed.places).enumerate() {
            let known = event
                .value
                .is_some_and(|value| sk.pool.as_const(value).is_some());
            if event.is_write() && !known && places.is_disjoint(&needed.cells) {
                event.value = Some(zero);
                sk.given_up.push(e);
            }
        }
        needed
    }

    fn term(&mut self, t: TermId) {
        if !std::mem::replace(&mut self.terms[TermPool::term_index(t)], true) {
            self.open.push(t);
        }
    }

    fn memory(&mut self, sk: &Skeleton, cell: CellId) {
        if !self.cells.insert(cell) {
            return;
        }
        for (i, event) in sk.events.iter().enumerate() {
            if event.is_write() && self.places[i].contains(&cell) {
                event.value.into_iter().for_each(|t| self.term(t));
            }
        }
    }

    /// Whether a term matters; terms without parts are always known.
    pub(crate) fn rests_on(&self, sk: &Skeleton, t: TermId) -> bool {
        matches!(sk.pool.term(t), Term::Const(_) | Term::Read(_))
            || self.terms[TermPool::term_index(t)]
    }

    /// Whether every access stays within the memory assumed for it; `cells` has its cells by event.
    pub(crate) fn covers(&self, sk: &Skeleton, cells: &[Vec<CellId>]) -> bool {
        cells.iter().zip(&self.places).all(|(cells, places)| {
            cells
                .iter()
                .map(|c| sk.memory.cell(*c).memory)
                .all(|c| places.contains(&c))
        })
    }

    /// Whether the values of this memory were kept.
    pub(crate) fn has(&self, cell: CellId) -> bool {
        self.cells.contains(&cell)
    }

    /// Whether the value of an observable was kept.
    pub(crate) fn knows(&self, sk: &Skeleton, observable: Observable) -> bool {
        match observable {
            Observable::Reg(t, r) => {
                self.terms[TermPool::term_index(sk.final_regs[usize::from(t.0)][usize::from(r.0)])]
            }
            of => sk.observed_cell(of).is_none_or(|cell| self.has(cell)),
        }
    }
}

/// By event: the memory that it may access.
fn places(sk: &Skeleton) -> Vec<BTreeSet<CellId>> {
    let points = Points::compute(&sk.program);
    sk.events
        .iter()
        .enumerate()
        .map(|(e, event)| memory_of(sk, &points, e, event))
        .collect()
}

/// The memory that an event may access.
fn memory_of(sk: &Skeleton, points: &Points, e: usize, event: &Event) -> BTreeSet<CellId> {
    let Some(addr) = event.addr else {
        return BTreeSet::new();
    };
    if let Some(address) = sk.pool.as_const(addr) {
        return sk.accessed(e, address).into_iter().collect();
    }
    let objects = event.thread.and_then(|t| {
        let address = sk.program.thread(t).code[event.instr].op.address()?;
        Some(points.of(usize::from(t.0), address)).filter(|objects| !objects.is_empty())
    });
    sk.memory
        .cells
        .iter()
        .filter(|cell: &&program::memory::Cell| {
            objects
                .as_ref()
                .is_none_or(|objects| objects.contains(&sk.program.object(cell.location.0)))
        })
        .map(|cell| cell.memory)
        .collect()
}
