//! Builds the base relations that a model uses, and further conditions over a task's events.

use std::time::Instant;

use rustc_hash::FxHashMap;

use crate::skeleton::EdgeKind;
use crate::skeleton::base::{self, Base};
use crate::skeleton::domain::Domains;
use crate::skeleton::{Cond, Skeleton, signature};
use cat::model::ir::{Model, NodeOp};
use cat::model::signature::BaseId;
use cat::rel::EventSet;
use program::memory::CellId;
use verdict::Reason;

/// The base sets and relations that a model uses, each with the number of open cells of those
/// before it; and the conditions of all open cells.
#[expect(clippy::type_complexity)]
pub(super) fn bases(
    model: &Model,
    sk: &mut Skeleton,
    domains: &Domains,
    deadline: Option<Instant>,
) -> Result<(FxHashMap<BaseId, (usize, Base)>, Vec<Cond>), Reason> {
    let (mut bases, mut open) = (FxHashMap::default(), Vec::new());
    for node in &model.nodes {
        if let NodeOp::Base(id) = node.op
            && !bases.contains_key(&id)
        {
            let b = signature::base(sk, domains, id);
            let first = open.len();
            if let Base::Rel(r) = &b {
                open.extend(r.open.iter().map(|cell| cell.2));
            }
            bases.insert(id, (first, b));
            if stop::late(deadline) {
                return Err(Reason::Time);
            }
        }
    }
    Ok((bases, open))
}

/// The condition under which some access addresses no memory, or a thread meets others that do not
/// arrive.
pub(super) fn fault(
    sk: &mut Skeleton,
    domains: &Domains,
    deadline: Option<Instant>,
) -> Result<Cond, Reason> {
    let mut fault = Cond::FALSE;
    for i in 0..sk.len() {
        if i.is_multiple_of(256) && stop::late(deadline) {
            return Err(Reason::Time);
        }
        if domains.may_fault[i] {
            let f = base::faults(sk, domains, i);
            let here = sk.pool.and(f, sk.events[i].guard);
            fault = sk.pool.or(fault, here);
        }
    }
    for at in 0..sk.unmet.len() {
        fault = sk.pool.or(fault, sk.unmet[at].0);
    }
    Ok(fault)
}

/// The writes that may go to a cell, each with the condition for that.
pub(super) fn writers(sk: &mut Skeleton, domains: &Domains, cell: CellId) -> Vec<(usize, Cond)> {
    let mut writers = Vec::new();
    for i in 0..sk.len() {
        if !sk.events[i].is_write() {
            continue;
        }
        let mut here = Cond::FALSE;
        for &c in &domains.cells[i] {
            if sk.memory.cell(c).memory == cell {
                let at = base::is_at(sk, i, c);
                here = sk.pool.or(here, at);
            }
        }
        if here != Cond::FALSE {
            writers.push((i, here));
        }
    }
    writers
}

/// Whether `po` and barrier order together can be cyclic.
pub(super) fn has_cyclic_barrier_order(sk: &Skeleton) -> bool {
    let barriers = sk.edges.of(EdgeKind::BarrierOrder);
    !barriers.is_empty() && {
        let mut order = sk.program_order().clone();
        for &(a, b, _) in barriers {
            order.insert(a.index(), b.index());
        }
        order.has_cycle(&EventSet::full(sk.len()))
    }
}
