//! Bounds of a task before anything is chosen.

use std::rc::Rc;

use crate::bounds::{BoundLeaves, declared_order};
use crate::query::Deadline;
use crate::skeleton::Cond;
use crate::task::Task;
use cat::algebra::bounds::{Bound, Bounds};
use cat::algebra::{Values, interpret, needed};
use cat::model::ir::{NodeId, Shape};
use cat::rel::{EventSet, Rel};

/// Bounds of every node, and of the free relations.
pub(super) struct TaskBounds {
    /// Events that surely and possibly execute.
    pub(super) algebra: Rc<Bounds>,
    /// By node.
    pub(super) values: Rc<Values<Bounds>>,
    /// By free relation.
    pub(super) free: Vec<Bound<Rel>>,
}

impl TaskBounds {
    /// Computes them. `None`: out of time.
    pub(super) fn new(task: &Task<'_>, deadline: Deadline) -> Option<TaskBounds> {
        let sk = &task.sk;
        let n = sk.len();
        let model = task.model;
        let algebra = Bounds {
            must: EventSet::from_fn(n, |e| sk.event(e).guard == Cond::TRUE),
            may: EventSet::from_fn(n, |e| sk.event(e).guard != Cond::FALSE),
        };
        let roots = model.free.iter().flat_map(|f| [Some(f.within), f.containing, f.covering]).flatten();
        let open = vec![None; task.open.len()];
        let leaves = BoundLeaves { task, algebra: &algebra, open: &open, free: &[] };
        let fixed = interpret(model, &algebra, &leaves, &needed(model, roots), (&[], &[]), deadline.0)?;
        let rel = |id: NodeId| fixed[id.index()].as_deref().expect("asked for").rel();
        let free: Vec<Bound<Rel>> = model
            .free
            .iter()
            .map(|f| {
                let within = rel(f.within);
                match f.shape {
                    Shape::Function => {
                        let may = Rel::from_fn(n, |w, r| {
                            within.may.has(w, r)
                                && sk.events[r].is_read()
                                && sk.events[w].is_write()
                                && task.domains.may_overlap(sk, r, w)
                        });
                        let mut must = Rel::empty(n);
                        for r in (0..n).filter(|&r| sk.events[r].is_read() && !task.domains.may_fault[r]) {
                            let mut sources = (0..n).filter(|&w| may.has(w, r) && algebra.may.has(w));
                            if let (Some(w), None) = (sources.next(), sources.next()) {
                                must.insert(w, r);
                            }
                        }
                        Bound { must, may: may.restricted(&algebra.may) }
                    }
                    Shape::Order => declared_order(within, f.containing.map(rel)),
                }
            })
            .collect();
        let leaves = BoundLeaves { free: &free, ..leaves };
        let all = vec![true; model.nodes.len()];
        let values = interpret(model, &algebra, &leaves, &all, (&fixed, &[]), deadline.0)?;
        Some(TaskBounds { algebra: Rc::new(algebra), values: Rc::new(values), free })
    }
}
