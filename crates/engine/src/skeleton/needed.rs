//! Values on which nothing depends, for programs of which not all values can be listed.
//!
//! Whether a kernel races seldom depends on what it computes: sums and products are stored, read
//! again and stored, and decide neither which instructions execute nor what they access. Where the
//! values of a program are too many to be listed, those that nothing depends on are given up: what
//! is written where no read matters is taken for zero.
//!
//! # Why nothing is lost
//! - What matters is found backwards. It begins with every condition and every address of the
//!   skeleton, and with what is asked for. What a read returns that matters was written to one of
//!   the cells that it may access; all that is written there matters, with the reads that it is
//!   made of.
//! - So executions with the values and executions without them are the same but for those values:
//!   the same events execute and access the same memory, reads have the same sources, and reads
//!   that matter return the same. For that, each of the latter must have values: it has if no value
//!   depends on itself, so this is for models that exclude values out of thin air.
//! - Dependencies were found before, of the values as they were.
//! - Which cells an access may be to follows from its address, if that is a constant, else from
//!   [`Points`]; addresses that lead out of their object are none of its matter. [`Needed::covers`]
//!   asks for them once all addresses are known.
//! - An answer that shows or tests a value that was given up is none: [`Needed::knows`].

use std::collections::BTreeSet;

use super::domain::Domains;
use super::pool::{Term, TermId};
use super::{Event, Pool, Skeleton};
use program::litmus::Observable;
use program::memory::CellId;
use program::points::Points;

/// What something depends on.
#[derive(Clone, Debug)]
pub struct Needed {
    /// By event: the memory that it may access, as far as that is known before values are.
    places: Vec<BTreeSet<CellId>>,
    /// Memory of which it matters what is there.
    cells: BTreeSet<CellId>,
    /// By term: whether it matters.
    terms: Vec<bool>,
    /// Terms that were found to matter, with what they are made of still to be looked at.
    open: Vec<TermId>,
}

impl Needed {
    /// Finds what matters where that is asked for, and gives up all other values.
    pub(crate) fn alone(sk: &mut Skeleton, asked: &[Observable]) -> Needed {
        let mut needed = Needed {
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
        if !std::mem::replace(&mut self.terms[Pool::term_index(t)], true) {
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

    /// Whether a term matters; those that have no parts are always known.
    pub(super) fn rests_on(&self, sk: &Skeleton, t: TermId) -> bool {
        matches!(sk.pool.term(t), Term::Const(_) | Term::Read(_)) || self.terms[Pool::term_index(t)]
    }

    /// Whether no access is to memory that it was not thought to be to.
    pub(crate) fn covers(&self, sk: &Skeleton, domains: &Domains) -> bool {
        let memory = |c: &CellId| sk.memory.cell(*c).memory;
        domains
            .cells
            .iter()
            .zip(&self.places)
            .all(|(cells, places)| cells.iter().map(memory).all(|c| places.contains(&c)))
    }

    /// Whether what is in memory was not given up.
    pub(crate) fn has(&self, cell: CellId) -> bool {
        self.cells.contains(&cell)
    }

    /// Whether what an observable shows was not given up.
    pub(crate) fn knows(&self, sk: &Skeleton, observable: Observable) -> bool {
        match observable {
            Observable::Reg(t, r) => {
                self.terms[Pool::term_index(sk.final_regs[usize::from(t.0)][usize::from(r.0)])]
            }
            of => sk.observed_cell(of).is_none_or(|cell| self.has(cell)),
        }
    }
}

/// By event: the memory that it may access.
fn places(sk: &Skeleton) -> Vec<BTreeSet<CellId>> {
    let points = Points::compute(&sk.program);
    let of = |e: usize, event: &Event| {
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
        let is = |cell: &&program::memory::Cell| {
            objects
                .as_ref()
                .is_none_or(|objects| objects.contains(&sk.program.object(cell.location.0)))
        };
        sk.memory
            .cells
            .iter()
            .filter(is)
            .map(|cell| cell.memory)
            .collect()
    };
    sk.events
        .iter()
        .enumerate()
        .map(|(e, event)| of(e, event))
        .collect()
}
