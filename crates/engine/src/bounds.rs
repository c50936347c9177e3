//! Bounds of a task before anything is chosen.

use std::rc::Rc;

use super::query::Deadline;
use super::task::Task;
use crate::skeleton::Cond;
use cat::algebra::bounds::{Bound, Bounds};
use cat::algebra::{Leaves, Value, Values, interpret, needed};
use cat::model::ir::{FreeId, Kind, NodeId, Shape};
use cat::rel::{EventSet, Rel};

/// Bounds of leaves before anything is chosen.
struct InitialLeaves<'x, 'a> {
    task: &'x Task<'a>,
    algebra: &'x Bounds,
    free: Vec<Bound<Rel>>,
}

impl Leaves<Bounds> for InitialLeaves<'_, '_> {
    fn base(&self, name: &str, _: Kind) -> Value<Bound<EventSet>, Bound<Rel>> {
        self.task.base_bounds(name, self.algebra, |_| None)
    }

    fn free(&self, id: FreeId) -> Bound<Rel> {
        self.free[id.0 as usize].clone()
    }
}

/// Bounds of every node, and of the free relations.
pub(crate) struct TaskBounds {
    /// Events that surely and possibly execute.
    pub(crate) algebra: Rc<Bounds>,
    /// By node.
    pub(crate) values: Rc<Values<Bounds>>,
    /// By free relation.
    pub(crate) free: Vec<Bound<Rel>>,
}

impl TaskBounds {
    /// Computes them. `None`: out of time.
    pub(crate) fn new(task: &Task<'_>, deadline: Deadline) -> Option<TaskBounds> {
        let sk = &task.sk;
        let n = sk.len();
        let model = task.model;
        let algebra = Bounds {
            must: EventSet::from_fn(n, |e| sk.event(e).guard == Cond::TRUE),
            may: EventSet::from_fn(n, |e| sk.event(e).guard != Cond::FALSE),
        };
        let roots = model.free.iter().flat_map(|f| [Some(f.within), f.containing, f.covering]).flatten();
        let leaves = InitialLeaves { task, algebra: &algebra, free: Vec::new() };
        let fixed = interpret(model, &algebra, &leaves, &needed(model, roots), &Vec::new(), deadline.0)?;
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
                    Shape::Order => {
                        let must = f.containing.map_or_else(|| Rel::empty(n), |c| rel(c).must.clone());
                        let mut may = within.may.clone().minus(&must.inverse());
                        (0..n).for_each(|i| may.remove(i, i));
                        Bound { must: must.and(&may), may }
                    }
                }
            })
            .collect();
        let all = (0..model.nodes.len() as u32).map(NodeId);
        let leaves = InitialLeaves { task, algebra: &algebra, free: free.clone() };
        let values = interpret(model, &algebra, &leaves, &needed(model, all), &Vec::new(), deadline.0)?;
        Some(TaskBounds { algebra: Rc::new(algebra), values: Rc::new(values), free })
    }
}
