//! Bounds of a model's leaves, for what is known of a task's open cells and free relations; and what they say before anything
//! is chosen of who can read from whom.

use std::time::Instant;

use super::task::Task;
use crate::skeleton::base::Base;
use crate::skeleton::domain::self_dependent;
use crate::skeleton::{Cond, Event};
use cat::algebra::bounds::{Bound, Bounds, Truth};
use cat::algebra::{Leaves, Value, interpret, needed};
use cat::model::ir::{Axiom, FreeId, Kind, NodeId, Shape};
use cat::model::signature::BaseId;
use cat::rel::{EventSet, Rel};

/// Bounds of leaves among the events of `algebra`.
pub(super) struct BoundLeaves<'x, 'a> {
    pub(super) task: &'x Task<'a>,
    pub(super) algebra: &'x Bounds,
    /// What is known of [`Task::open`].
    pub(super) open: &'x [Option<bool>],
    pub(super) free: &'x [Bound<Rel>],
}

impl Leaves<Bounds> for BoundLeaves<'_, '_> {
    fn base(&self, id: BaseId, _: Kind) -> Value<Bound<EventSet>, Bound<Rel>> {
        let may = &self.algebra.may;
        let (first, base) = &self.task.bases[&id];
        match base {
            Base::Set(s) => {
                let s = s.clone().and(may);
                Value::Set(Bound { must: s.clone(), may: s })
            }
            Base::Rel(r) if r.open.is_empty() => Value::Rel(Bound::known(r.fixed.clone().restricted(may))),
            Base::Rel(r) => {
                let mut bound = Bound { must: r.fixed.clone(), may: r.fixed.clone() };
                for (&(i, j, _), known) in r.open.iter().zip(&self.open[*first..]) {
                    if *known == Some(true) {
                        bound.must.insert(i, j);
                    }
                    if *known != Some(false) {
                        bound.may.insert(i, j);
                    }
                }
                Value::Rel(Bound { must: bound.must.restricted(may), may: bound.may.restricted(may) })
            }
        }
    }

    fn free(&self, id: FreeId) -> Bound<Rel> {
        self.free[id.0 as usize].clone()
    }
}

/// What the declaration of an order says of it.
pub(super) fn declared_order(within: &Bound<Rel>, containing: Option<&Bound<Rel>>) -> Bound<Rel> {
    let n = within.may.universe_len();
    let must = containing.map_or_else(|| Rel::empty(n), |c| c.must.clone());
    let mut may = within.may.clone().minus(&must.inverse());
    (0..n).for_each(|i| may.remove(i, i));
    Bound { must: must.and(&may), may }
}

/// Pairs asked about by [`never_read`]: each costs an evaluation of the model.
const MAX_PAIRS: usize = 1_000;

/// The pairs of a write and a read, among those by which values can depend on themselves, where an axiom fails in every execution
/// in which the one is read by the other: a thread does not read what it writes later, nor behind a barrier that all have to
/// come to. `None`: past the deadline.
pub(super) fn never_read(task: &Task<'_>, deadline: Option<Instant>) -> Option<Rel> {
    let (sk, model) = (&task.sk, task.model);
    let n = sk.len();
    let mut never = Rel::empty(n);
    let is = |e: usize, kind: fn(&Event) -> bool| kind(&sk.events[e]);
    let mut pairs = Vec::new();
    for group in self_dependent(sk, &|_, _| true) {
        for &w in group.iter().filter(|&&w| is(w, Event::is_write)) {
            let reads = group.iter().filter(|&&r| is(r, Event::is_read) && task.domains.may_overlap(sk, r, w));
            pairs.extend(reads.map(|&r| (w, r)));
        }
    }
    pairs.truncate(MAX_PAIRS);
    let free = model.free.iter().flat_map(|f| [Some(f.within), f.containing]).flatten();
    let axioms = model.axioms.iter().map(|a| a.node);
    let (of_free, of_axioms) = (needed(model, free), needed(model, axioms));
    let open = vec![None; task.open.len()];
    let may = EventSet::from_fn(n, |e| sk.event(e).guard != Cond::FALSE);
    for (w, r) in pairs {
        let must = EventSet::from_fn(n, |e| [w, r].contains(&e.index()) || sk.event(e).guard == Cond::TRUE);
        let algebra = Bounds { must, may: may.clone() };
        let leaves = BoundLeaves { task, algebra: &algebra, open: &open, free: &[] };
        let fixed = interpret(model, &algebra, &leaves, &of_free, (&[], &[]), deadline)?;
        let bound = |id: NodeId| fixed[id.index()].as_deref().expect("asked for").rel();
        let free = model.free.iter().map(|f| match f.shape {
            Shape::Order => declared_order(bound(f.within), f.containing.map(bound)),
            Shape::Function => {
                let mut may = bound(f.within).may.clone().restricted(&algebra.may);
                (0..n).filter(|&other| other != w).for_each(|other| may.remove(other, r));
                let must = Rel::from_fn(n, |a, b| (a, b) == (w, r));
                Bound { must, may }
            }
        });
        let free: Vec<Bound<Rel>> = free.collect();
        let leaves = BoundLeaves { free: &free, ..leaves };
        let values = interpret(model, &algebra, &leaves, &of_axioms, (&fixed, &[]), deadline)?;
        let fails = |a: &Axiom| {
            let value = values[a.node.index()].as_deref().expect("asked for");
            algebra.holds(a.test, value) == if a.negated { Truth::Yes } else { Truth::No }
        };
        if model.axioms.iter().any(fails) {
            never.insert(w, r);
        }
    }
    Some(never)
}
