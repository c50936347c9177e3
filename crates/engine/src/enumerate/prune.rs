//! What the bounds of a partial candidate say: whether an axiom fails in every completion, and whether all hold.

use std::collections::BTreeMap;

use super::search::{Partial, Search, Stop};
use crate::eval::Eval;
use crate::skeleton::base::Base;
use crate::task::Task;
use cat::algebra::bounds::{Bound, Bounds, Truth};
use cat::algebra::{Leaves, Value, Values, interpret};
use cat::model::ir::{FreeId, Kind, NodeId};
use cat::rel::{EventSet, Rel};

/// Bounds of the leaves for a partial candidate.
struct PartialLeaves<'x> {
    task: &'x Task<'x>,
    algebra: &'x Bounds,
    open: &'x BTreeMap<String, Vec<Option<bool>>>,
    free: Vec<Bound<Rel>>,
}

impl Leaves<Bounds> for PartialLeaves<'_> {
    fn base(&self, name: &str, _: Kind) -> Value<Bound<EventSet>, Bound<Rel>> {
        // A name without open cells is not in the map, and is not asked about any.
        let open = self.open.get(name);
        self.task.base_bounds(name, self.algebra, |cell| open.and_then(|known| known[cell]))
    }

    fn free(&self, id: FreeId) -> Bound<Rel> {
        self.free[id.0 as usize].clone()
    }
}
impl Search<'_, '_, '_> {
    fn open_cells(&self, partial: &Partial) -> BTreeMap<String, Vec<Option<bool>>> {
        let mut eval = Eval::new(&self.task.sk.pool, &partial.known);
        let mut open = BTreeMap::new();
        for (name, base) in &self.task.bases {
            if let Base::Rel(r) = base
                && !r.open.is_empty()
            {
                open.insert(name.clone(), r.open.iter().map(|o| eval.cond(o.2)).collect());
            }
        }
        open
    }

    /// Bounds of the static nodes.
    pub(super) fn fixed_values(&mut self, partial: &Partial, algebra: &Bounds) -> Result<Values<Bounds>, Stop> {
        let open = self.open_cells(partial);
        let key: Vec<Option<bool>> = open.values().flatten().copied().collect();
        if let Some((a, k, values)) = &self.cache
            && a == algebra
            && *k == key
        {
            return Ok(values.clone());
        }
        let leaves = PartialLeaves { task: self.task, algebra, open: &open, free: Vec::new() };
        let values = interpret(self.task.model, algebra, &leaves, &self.fixed, &Vec::new(), self.deadline.0);
        let values = values.ok_or(Stop::Time)?;
        self.cache = Some((algebra.clone(), key, values.clone()));
        Ok(values)
    }

    /// Whether no axiom fails for sure.
    pub(super) fn plausible(&mut self, partial: &Partial, algebra: &Bounds) -> Result<bool, Stop> {
        let fixed = self.fixed_values(partial, algebra)?;
        let sk = &self.task.sk;
        let n = sk.len();
        let model = self.task.model;
        let bound = |id: NodeId| fixed[id.index()].as_deref().expect("bounds are static").rel();
        let mut free = Vec::new();
        for (i, f) in model.free.iter().enumerate() {
            let within = bound(f.within);
            if i == model.values.0 as usize {
                let mut rf = Bound { must: Rel::empty(n), may: Rel::empty(n) };
                for r in (0..n).filter(|&r| sk.events[r].is_read() && algebra.may.has(r)) {
                    match partial.source[r] {
                        Some(w) => {
                            if !within.may.has(w, r) {
                                return Ok(false);
                            }
                            rf.must.insert(w, r);
                            rf.may.insert(w, r);
                        }
                        None if partial.astray[r] => {}
                        None => {
                            for w in algebra.may.iter() {
                                if within.may.has(w, r) && self.may_read(partial, r, w) {
                                    rf.may.insert(w, r);
                                }
                            }
                        }
                    }
                }
                free.push(rf);
            } else {
                let must = f.containing.map_or_else(|| Rel::empty(n), |c| bound(c).must.clone());
                let mut may = within.may.clone().minus(&must.inverse());
                (0..n).for_each(|i| may.remove(i, i));
                free.push(Bound { must: must.and(&may), may });
            }
        }
        let values = self.run_model(partial, algebra, &fixed, free)?;
        Ok(self.axioms(algebra, &values) != Truth::No && self.flags(algebra, &values) != Truth::No)
    }

    pub(super) fn run_model(
        &self,
        partial: &Partial,
        algebra: &Bounds,
        fixed: &Values<Bounds>,
        free: Vec<Bound<Rel>>,
    ) -> Result<Values<Bounds>, Stop> {
        // Static nodes are all in `fixed`, so no base relation is built again.
        let open = if self.wanted.iter().zip(fixed).any(|(w, f)| *w && f.is_none()) {
            self.open_cells(partial)
        } else {
            BTreeMap::new()
        };
        let leaves = PartialLeaves { task: self.task, algebra, open: &open, free };
        interpret(self.task.model, algebra, &leaves, &self.wanted, fixed, self.deadline.0).ok_or(Stop::Time)
    }

    pub(super) fn axioms(&self, algebra: &Bounds, values: &Values<Bounds>) -> Truth {
        let mut all = Truth::Yes;
        for (a, _) in self.task.model.axioms.iter().zip(&self.query.axioms).filter(|(_, on)| **on) {
            let value = values[a.node.index()].as_deref().expect("axioms are wanted");
            match negate(algebra.holds(a.test, value), a.negated) {
                Truth::No => return Truth::No,
                Truth::Unknown => all = Truth::Unknown,
                Truth::Yes => {}
            }
        }
        all
    }

    /// Whether one of the flags asked for is raised.
    pub(super) fn flags(&self, algebra: &Bounds, values: &Values<Bounds>) -> Truth {
        let Some(flags) = &self.query.flags else { return Truth::Yes };
        let mut any = Truth::No;
        for &f in flags {
            let flag = &self.task.model.flags[f];
            let value = values[flag.node.index()].as_deref().expect("flags are wanted");
            match negate(algebra.holds(flag.test, value), flag.negated) {
                Truth::Yes => return Truth::Yes,
                Truth::Unknown => any = Truth::Unknown,
                Truth::No => {}
            }
        }
        any
    }
}

fn negate(t: Truth, negated: bool) -> Truth {
    match (t, negated) {
        (Truth::Yes, true) => Truth::No,
        (Truth::No, true) => Truth::Yes,
        (t, _) => t,
    }
}
