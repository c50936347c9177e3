//! Bounds of a task before anything is chosen.
//!
//! An axiom that says that nothing of a relation lies outside a free order tells of pairs that are in the order whenever the
//! axiom holds. Where they are known beforehand, as the writes of one thread to one location are in PTX's coherence order,
//! they cost neither inputs nor clauses. A circuit that starts from such bounds is of use where these axioms are
//! asked for: [`TaskBounds::rests_on`].

use std::rc::Rc;

use crate::bounds::{BoundLeaves, declared_order};
use crate::query::Deadline;
use crate::skeleton::Cond;
use crate::task::Task;
use cat::algebra::bounds::{Bound, Bounds};
use cat::algebra::{Values, empty, interpret, needed_unless};
use cat::model::Model;
use cat::model::ir::{Axiom, FreeId, Kind, NodeId, NodeOp, Shape, Test};
use cat::rel::{EventSet, Rel};

/// Bounds of every node, and of the free relations.
pub(super) struct TaskBounds {
    /// Events that surely and possibly execute.
    pub(super) algebra: Rc<Bounds>,
    /// By node.
    pub(super) values: Rc<Values<Bounds>>,
    /// By free relation.
    pub(super) free: Vec<Bound<Rel>>,
    /// The axioms without which these bounds do not hold.
    pub(super) rests_on: Vec<usize>,
}

impl TaskBounds {
    /// Computes them, for executions in which certain axioms hold. `None`: out of time.
    pub(super) fn new(task: &Task<'_>, axioms: &[bool], deadline: Deadline) -> Option<TaskBounds> {
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
        // What is empty in every execution is so under any bounds, and most of a large model is that.
        let absent = |id: NodeId| task.absent[id.index()];
        let nothing = [Kind::Set, Kind::Rel].map(|kind| Rc::new(empty(&algebra, kind)));
        let nothing: Values<Bounds> = (model.nodes.iter().zip(&task.absent))
            .map(|(node, &absent)| absent.then(|| nothing[usize::from(node.kind == Kind::Rel)].clone()))
            .collect();
        let asked = needed_unless(model, roots, absent);
        let mut fixed = interpret(model, &algebra, &leaves, &asked, (&nothing, &[]), deadline.0)?;
        fixed.iter_mut().zip(&nothing).for_each(|(value, nothing)| *value = value.take().or(nothing.clone()));
        let rel = |id: NodeId| fixed[id.index()].as_deref().expect("asked for").rel();
        let mut free: Vec<Bound<Rel>> = model
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
        let all = vec![true; model.nodes.len()];
        let mut rests_on = Vec::new();
        loop {
            let leaves = BoundLeaves { free: &free, ..leaves };
            let values = interpret(model, &algebra, &leaves, &all, (&fixed, &[]), deadline.0)?;
            let asked: Vec<(usize, FreeId, Rel)> = (0..model.axioms.len())
                .filter(|&i| axioms[i])
                .filter_map(|i| {
                    let (inside, order) = contained(model, &model.axioms[i])?;
                    let known = &free[order.0 as usize];
                    let inside = &values[inside.index()].as_deref().expect("all were asked for").rel().must;
                    Some((i, order, inside.clone().and(&known.may).minus(&known.must)))
                })
                .filter(|(.., new)| !new.is_empty())
                .collect();
            if asked.is_empty() {
                return Some(TaskBounds { algebra: Rc::new(algebra), values: Rc::new(values), free, rests_on });
            }
            for (axiom, order, new) in asked {
                let Bound { must, may } = &mut free[order.0 as usize];
                *may = may.clone().minus(&new.inverse());
                *must = must.clone().or(&new).and(may);
                rests_on.push(axiom);
            }
        }
    }
}

/// What an axiom says is part of a free order, if it says such a thing: `empty r \ co`.
fn contained(model: &Model, axiom: &Axiom) -> Option<(NodeId, FreeId)> {
    let (Test::Empty, false, &NodeOp::Diff(inside, order)) =
        (axiom.test, axiom.negated, &model.node(axiom.node).op)
    else {
        return None;
    };
    let &NodeOp::Free(order) = &model.node(order).op else { return None };
    (model.free[order.0 as usize].shape == Shape::Order).then_some((inside, order))
}
