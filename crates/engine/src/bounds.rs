//! Bounds of a model's leaves, for what is known of a task's open cells and free relations.

use super::task::Task;
use crate::skeleton::base::Base;
use cat::algebra::bounds::{Bound, Bounds};
use cat::algebra::{Leaves, Value};
use cat::model::ir::{FreeId, Kind};
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
