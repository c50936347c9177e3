//! Evaluates the bounds of a partial candidate: whether an axiom fails in every completion, and
//! whether all hold.

use std::rc::Rc;

use super::candidate::{EventFacts, PartialCandidate, SearchStop, StaticValues};
use super::search::CandidateSearch;
use crate::eval::Eval;
use crate::facts::bounds::{BoundLeaves, declared_order};
use cat::algebra::bounds::{Bound, Bounds, Truth};
use cat::algebra::{Reuse, Value, Values, empty, interpret, interpret_while};
use cat::model::ir::{FreeShape, ModelNode, NodeId};
use cat::rel::Rel;

/// The bounds of a partial candidate.
#[derive(Clone)]
pub(super) struct CandidateBounds {
    pub(super) known: Rc<StaticValues>,
    /// The bounds of each free relation.
    pub(super) free: Vec<Bound<Rel>>,
}

impl CandidateSearch<'_, '_, '_> {
    /// Bounds of the static nodes.
    pub(super) fn fixed_values(
        &mut self,
        eval: &mut Eval<'_>,
        algebra: &Bounds,
    ) -> Result<Rc<StaticValues>, SearchStop> {
        let open: Vec<Option<bool>> = self
            .facts
            .open
            .iter()
            .map(|&cond| eval.cond(cond))
            .collect();
        if let Some(known) = &self.known
            && known.algebra == *algebra
            && known.open == open
        {
            return Ok(known.clone());
        }
        let model = self.facts.task.model;
        let leaves = BoundLeaves {
            facts: self.facts,
            algebra,
            open: &open,
            free: &[],
        };
        let nothing = |(node, &absent): (&ModelNode, &bool)| {
            absent.then(|| Rc::new(empty(algebra, node.kind)))
        };
        let nothing: Values<Bounds> = model
            .nodes
            .iter()
            .zip(&self.facts.absent)
            .map(nothing)
            .collect();
        let reuse = Reuse {
            known: &nothing,
            before: &[],
        };
        let values = interpret(model, algebra, &leaves, &self.fixed, reuse, self.deadline.0);
        let values = values.ok_or(SearchStop::Time)?;
        let free = model.free.iter().map(|f| match f.shape {
            FreeShape::Function => static_bound(&values, f.within).clone(),
            FreeShape::Order => declared_order(
                static_bound(&values, f.within),
                f.containing.map(|id| static_bound(&values, id)),
            ),
        });
        let free = free.collect();
        let known = Rc::new(StaticValues {
            algebra: algebra.clone(),
            open,
            values,
            free,
        });
        self.known = Some(known.clone());
        Ok(known)
    }

    /// The bounds of a candidate; `None` if an axiom surely fails.
    pub(super) fn plausible(
        &mut self,
        partial: &PartialCandidate,
        seen: &EventFacts,
        eval: &mut Eval<'_>,
    ) -> Result<Option<CandidateBounds>, SearchStop> {
        let known = self.fixed_values(eval, &seen.algebra)?;
        let (sk, may) = (&self.facts.sk, &seen.algebra.may);
        let values = self.facts.task.model.values.0 as usize;
        let within = &known.free[values].may;
        let mut rf = Bound {
            must: Rel::empty(sk.len()),
            may: Rel::empty(sk.len()),
        };
        for r in may.iter().filter(|&r| sk.events[r].is_read()) {
            match partial.source[r] {
                Some(w) => {
                    if !within.has(w, r) {
                        return Ok(None);
                    }
                    rf.must.insert(w, r);
                    rf.may.insert(w, r);
                }
                None if partial.astray[r] => {}
                None => {
                    for w in may
                        .iter()
                        .filter(|&w| within.has(w, r) && self.may_read(&partial.chains, seen, r, w))
                    {
                        rf.may.insert(w, r);
                    }
                }
            }
        }
        let mut free = known.free.clone();
        free[values] = rf;
        let order = &mut free[self.facts.task.model.finals.0 as usize];
        partial
            .chains
            .ordered()
            .for_each(|(a, b)| put_before(order, a, b));
        let bounds = CandidateBounds { known, free };
        Ok(self.is_plausible(&bounds)?.then_some(bounds))
    }

    /// Whether no axiom surely fails.
    pub(super) fn is_plausible(&mut self, bounds: &CandidateBounds) -> Result<bool, SearchStop> {
        let (axioms, flags) = self.judged(&bounds.known, &bounds.free)?;
        Ok(axioms != Truth::No && flags != Truth::No)
    }

    /// Whether the axioms hold, and whether one of the query's flags is raised, given bounds of the
    /// free relations.
    pub(super) fn judged(
        &mut self,
        known: &StaticValues,
        free: &[Bound<Rel>],
    ) -> Result<(Truth, Truth), SearchStop> {
        let algebra = &known.algebra;
        let last = self.last.take().filter(|last| last.0 == *algebra);
        let before = last.as_ref().map_or(&[] as &[_], |last| &last.1);
        // The values of static nodes are all known, so the interpreter calls no base leaf.
        let leaves = BoundLeaves {
            facts: self.facts,
            algebra,
            open: &known.open,
            free,
        };
        let reuse = Reuse {
            known: &known.values,
            before,
        };
        let (model, mut axioms) = (self.facts.task.model, Truth::Yes);
        // After one axiom fails, the others need no evaluation.
        let mut go_on = |node: NodeId, value: &Value<_, _>| {
            if self.tested[node.index()] {
                let here = model
                    .axioms
                    .iter()
                    .zip(&self.query.axioms)
                    .filter(|(a, on)| **on && a.node == node);
                for (a, _) in here {
                    axioms = axioms.and(negate(algebra.holds(a.test, value), a.negated));
                }
            }
            axioms != Truth::No
        };
        let values = interpret_while(
            model,
            algebra,
            &leaves,
            &self.wanted,
            reuse,
            &|| self.deadline.passed(),
            &mut go_on,
        );
        let values = values.ok_or(SearchStop::Time)?;
        let flags = if axioms == Truth::No {
            Truth::Unknown
        } else {
            self.flags(algebra, &values)
        };
        self.last = Some(Rc::new((algebra.clone(), values)));
        Ok((axioms, flags))
    }

    /// Whether one of the query's flags is raised.
    fn flags(&self, algebra: &Bounds, values: &Values<Bounds>) -> Truth {
        let Some(flags) = &self.query.flags else {
            return Truth::Yes;
        };
        negate(
            flags
                .iter()
                .map(|&f| self.flag(algebra, values, f))
                .fold(Truth::Yes, Truth::and),
            true,
        )
    }

    /// Whether a flag stays down.
    fn flag(&self, algebra: &Bounds, values: &Values<Bounds>, f: usize) -> Truth {
        let flag = &self.facts.task.model.flags[f];
        let value = values[flag.node.index()]
            .as_deref()
            .expect("flags are wanted");
        let holds = match (value, &self.query.spared) {
            (Value::Rel(rel), Some(spared)) => {
                let (must, may) = (
                    rel.must.clone().minus(spared),
                    rel.may.clone().minus(spared),
                );
                algebra.holds(flag.test, &Value::Rel(Bound { must, may }))
            }
            _ => algebra.holds(flag.test, value),
        };
        negate(holds, !flag.negated)
    }
}

/// The bounds of a static relation.
fn static_bound(values: &Values<Bounds>, id: NodeId) -> &Bound<Rel> {
    values[id.index()]
        .as_deref()
        .expect("bounds are static")
        .rel()
}

/// Puts one event before another in an order.
pub(super) fn put_before(order: &mut Bound<Rel>, a: usize, b: usize) {
    order.must.insert(a, b);
    order.may.remove(b, a);
}

fn negate(t: Truth, negated: bool) -> Truth {
    match (t, negated) {
        (Truth::Yes, true) => Truth::No,
        (Truth::No, true) => Truth::Yes,
        (t, _) => t,
    }
}
